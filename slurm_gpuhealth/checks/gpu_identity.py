"""The GPUs are the ones that were here before.

Compares UUID and serial number with those of the last healthy round. A change (a board was swapped, or two changed
places) is a warning: counters and history belong to the board, not to the slot, and start anew.

Unknown: a GPU did not say who it is.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable


def check(facts, limits):
    """Findings about GPUs that changed."""
    found = []
    by_place = {known.bdf: known for known in facts.known_gpus if known.bdf}
    for gpu in usable(facts):
        fields = missing(gpu, "uuid", "bdf")
        if fields:
            found.append(unread(gpu, fields))
            continue
        before = by_place.get(gpu.bdf)
        if before is None:
            continue        # a slot that was empty: gpu_count speaks of numbers
        if before.uuid and gpu.uuid != before.uuid:
            found.append(finding("GH-GPU-SWAP", subject_of(gpu), gpu.uuid, before.uuid, field="uuid"))
        elif before.serial and F.is_known(gpu.serial) and gpu.serial and gpu.serial != before.serial:
            found.append(finding("GH-GPU-SWAP", subject_of(gpu), gpu.serial, before.serial, field="serial"))
    return found + gpus_unread(facts)
