"""The GPUs are the ones that were here before.

Compares UUID and serial number with those of the last healthy round. A board that was not here before, in place of one
that is gone, is a warning, `GH-GPU-SWAP`: counters and history belong to the board, not to the slot, and start anew.
The same boards at other indices or PCI addresses are no finding: both may change with a reboot.

Unknown: a GPU did not say who it is.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable


def check(facts, limits):
    """Findings about GPUs that changed."""
    found, new = [], []
    known = {entry.uuid: entry for entry in facts.known_gpus if entry.uuid}
    present = {gpu.uuid for gpu in facts.gpus if F.is_known(gpu.uuid)}
    for gpu in usable(facts):
        fields = missing(gpu, "uuid", "bdf", "serial")
        if fields:
            found.append(unread(gpu, fields))
        if not F.is_known(gpu.uuid) or not F.is_known(gpu.bdf):
            continue
        before = known.get(gpu.uuid)
        if before is None:
            new.append(gpu)
        elif before.serial and isinstance(gpu.serial, str) and gpu.serial and gpu.serial != before.serial:
            found.append(finding("GH-GPU-SWAP", subject_of(gpu), gpu.serial, before.serial, field="serial"))
    # One that does not say who it is may be any that was at its place.
    silent = [gpu for gpu in facts.gpus if not F.is_known(gpu.uuid)]
    gone = [entry for entry in known.values() if entry.uuid not in present
            and not any(gpu.bdf == entry.bdf or gpu.index == entry.index for gpu in silent)]
    for gpu in new:
        # One in a slot that was empty is not in place of anything: gpu_count speaks of numbers.
        before = _place_of(gpu, gone)
        if before is not None:
            gone.remove(before)
            found.append(finding("GH-GPU-SWAP", subject_of(gpu), gpu.uuid, before.uuid, field="uuid"))
    return found + gpus_unread(facts)


def _place_of(gpu, gone):
    """Which of those that are gone this one stands for: at its address, else at its index, else any."""
    for name in ("bdf", "index"):
        for entry in gone:
            if getattr(entry, name) == getattr(gpu, name):
                return entry
    return gone[0] if gone else None
