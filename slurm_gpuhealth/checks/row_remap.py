"""What the GPU did about bad memory: remapped rows, retired pages, repairs.

- Ampere and later replace bad rows by spare ones. A row that could not be replaced: `GH-REMAP-FAIL`, which never
  clears. A replacement that waits for a reset: `GH-REMAP-PEND`, a note, as it endangers neither running nor new jobs
  (nvml.h). A memory bank without spare rows is a warning before the failure, one with few is a note: `GH-REMAP-LOW`.
- GPUs before Ampere retire pages instead, for good. One that waits for a reload of the driver: `GH-PAGE-PEND`, a note.
  From the limit `pages_warning` on (60, where NVIDIA takes a board back) `GH-PAGE-LIMIT` is a warning; at `pages_full`
  (64) the GPU has no room for another, and it is a fault.
- Hopper and later say themselves that memory cannot be repaired: `GH-MEM-BAD`. Later ones also say that a repair of a
  memory channel or a compute unit waits for a reset: `GH-REPAIR-PEND`, a note.

Spare rows, unrepairable memory and waiting repairs are asked for in health checks, and in prolog and epilog where there
was an error. With MIG the GPU tells none of this.

Unknown: one of these could not be read, though this GPU and driver have it.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import asked, finding, gpus_unread, missing, subject_of, unread, usable
from slurm_gpuhealth.model import FATAL, NOTE

LIMITS = {
    "pages_warning": (60, "retired pages from which on there is a warning (GPUs before Ampere)"),
    "pages_full": (64, "retired pages at which the GPU has no room for more"),
}

_ALWAYS = ("remap_failure", "remap_pending", "retired_pages", "retired_pending")
_SOMETIMES = ("remap_histogram", "unrepairable", "repair_pending")


def check(facts, limits):
    """Findings about rows, pages and repairs. limits: pages_warning, pages_full."""
    found = []
    for gpu in usable(facts):
        found += _rows(gpu) + _pages(gpu, limits) + _repairs(gpu)
        fields = missing(gpu, *_ALWAYS, *asked(gpu, *_SOMETIMES))
        if fields:
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)


def _rows(gpu):
    found = []
    if gpu.remap_failure == 1:
        found.append(finding("GH-REMAP-FAIL", subject_of(gpu)))
    if gpu.remap_pending == 1:
        found.append(finding("GH-REMAP-PEND", subject_of(gpu)))
    banks = gpu.remap_histogram
    if F.is_known(banks):
        if banks.get("none", 0) > 0:
            found.append(finding("GH-REMAP-LOW", subject_of(gpu), "%d banks without spare rows" % banks["none"],
                                 banks=banks))
        elif banks.get("low", 0) > 0:
            found.append(finding("GH-REMAP-LOW", subject_of(gpu), "%d banks with few spare rows" % banks["low"],
                                 severity=NOTE, banks=banks))
    return found


def _pages(gpu, limits):
    found = []
    if F.is_known(gpu.retired_pages) and gpu.retired_pages >= min(limits["pages_warning"], limits["pages_full"]):
        full = gpu.retired_pages >= limits["pages_full"]
        causes = gpu.retired_counts if F.is_known(gpu.retired_counts) else {}
        found.append(finding("GH-PAGE-LIMIT", subject_of(gpu), "%d pages retired" % gpu.retired_pages,
                             severity=FATAL if full else None, pages=gpu.retired_pages, **causes))
    if gpu.retired_pending == 1:
        found.append(finding("GH-PAGE-PEND", subject_of(gpu)))
    return found


def _repairs(gpu):
    found = []
    if F.is_known(gpu.unrepairable) and gpu.unrepairable:
        found.append(finding("GH-MEM-BAD", subject_of(gpu)))
    waiting = gpu.repair_pending if F.is_known(gpu.repair_pending) else {}
    parts = [text for name, text in (("channel", "memory channel"), ("tpc", "compute unit")) if waiting.get(name) == 1]
    if parts:
        found.append(finding("GH-REPAIR-PEND", subject_of(gpu), "%s repair pending" % " and ".join(parts), **waiting))
    return found
