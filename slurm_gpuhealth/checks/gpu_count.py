"""All GPUs are there.

Compares the number of GPUs that NVML lists with the number that the node should have: `expected_gpus` of the
configuration, else gres.conf and slurm.conf, else the most ever seen on this node. Where healthy rounds have
taught which GPUs there are, each missing one is named (`GH-GPU-LOST gpu3`), so that jobs on the other GPUs can
go on; else the finding is about the node (`GH-GPU-COUNT 7/8`). More GPUs than expected is a warning: the
configuration is out of date. A node that should have none is healthy with none.

Unknown: the number could not be asked for.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, subject_of
from slurm_gpuhealth.model import ALL_GPUS, WARNING


def check(facts, limits):
    """Findings about the number of GPUs."""
    count, expected = facts.gpu_count, facts.expected.gpus
    if not F.is_known(count):
        return gpus_unread(facts)
    if not F.is_known(expected) or count == expected:
        return []
    if count > expected:
        return [finding("GH-GPU-COUNT", ALL_GPUS, str(count), str(expected), WARNING,
                        origin=facts.expected.origin, count=count, expected_count=expected)]
    gone = _gone(facts)
    if len(gone) == expected - count:
        return [finding("GH-GPU-LOST", subject_of(known), "not listed, %d/%d" % (count, expected),
                        count=count, expected_count=expected, listed=False) for known in gone]
    return [finding("GH-GPU-COUNT", ALL_GPUS, str(count), str(expected), origin=facts.expected.origin,
                    count=count, expected_count=expected)]


def _gone(facts):
    """Known GPUs that are not among those that NVML lists. [] when a listed one does not say who it is."""
    present: set = set()
    for gpu in facts.gpus:
        if not F.is_known(gpu.uuid) and not F.is_known(gpu.bdf):
            return []
        present.update(value for value in (gpu.uuid, gpu.bdf) if F.is_known(value))
    if len(facts.gpus) != facts.gpu_count:
        return []       # not all of those it lists have been read
    return [known for known in facts.known_gpus if known.uuid not in present and known.bdf not in present]
