"""Memory errors that ECC could not correct, and what the GPU did about bad memory.

- Uncorrectable errors **new since the baseline** (the job's start in epilog, else the last healthcheck):
  `GH-ECC-UNC`. The volatile counter is compared while boot and driver are the same; when it went back, the driver
  was reloaded and it counts from zero; the aggregate counter, kept on the board, is compared always.
- **Without a baseline** an uncorrectable count above zero is a warning, not a fault: it says that something was hit
  since the driver was loaded, not when, and the jobs it hit are long gone. Draining for it would empty every site
  on the day of the installation. It becomes the baseline, and the next error is a fault. What is dangerous now
  is said by the two below and by the kernel log.
- A row could not be remapped: `GH-REMAP-FAIL`, never clears. A remap or a page retirement waits for a reset:
  `GH-REMAP-PEND`, `GH-PAGE-PEND`, a note, as neither endangers running or new jobs (nvml.h).

Unknown: ECC is on and a counter could not be read. ECC off, or a GPU without it, is healthy.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable
from slurm_gpuhealth.model import WARNING

_VOLATILE, _AGGREGATE = "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"


def check(facts, limits):
    """Findings about memory errors."""
    found = []
    for gpu in usable(facts):
        found += _uncorrectable(facts, gpu)
        if gpu.remap_failure == 1:
            found.append(finding("GH-REMAP-FAIL", subject_of(gpu)))
        if gpu.remap_pending == 1:
            found.append(finding("GH-REMAP-PEND", subject_of(gpu)))
        if gpu.retired_pending == 1:
            found.append(finding("GH-PAGE-PEND", subject_of(gpu)))
        fields = missing(gpu, "ecc_mode", _VOLATILE, "remap_failure", "remap_pending", "retired_pending")
        if fields:
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)


def _uncorrectable(facts, gpu):
    counts = {name: getattr(gpu, name) for name in (_VOLATILE, _AGGREGATE) if F.is_known(getattr(gpu, name))}
    before = _before(facts, gpu)
    if before is None:
        if counts.get(_VOLATILE, 0) > 0:
            return [finding("GH-ECC-UNC", subject_of(gpu), "%d since driver load" % counts[_VOLATILE],
                            severity=WARNING, first_sight=True, **counts)]
        return []
    new = 0
    if _VOLATILE in counts and _VOLATILE in before:
        new = counts[_VOLATILE] - before[_VOLATILE]
        if new < 0 or not _same_load(facts):
            # Counted from zero since: where the board's own total was kept it says whether there was an error.
            new = 0 if _AGGREGATE in counts and _AGGREGATE in before else counts[_VOLATILE]
    if _AGGREGATE in counts and _AGGREGATE in before:
        new = max(new, counts[_AGGREGATE] - before[_AGGREGATE])
    if new <= 0:
        return []
    return [finding("GH-ECC-UNC", subject_of(gpu), "%d new uncorrectable" % new, since=facts.baseline.time,
                    new=new, before={name: before[name] for name in counts if name in before}, **counts)]


def _before(facts, gpu):
    """The counters of this GPU in the baseline, or None."""
    if facts.baseline is None or not F.is_known(gpu.uuid):
        return None
    found = (facts.baseline.counters or {}).get(gpu.uuid)
    return found if found and (_VOLATILE in found or _AGGREGATE in found) else None


def _same_load(facts):
    """Whether the volatile counters still count from the same start."""
    base = facts.baseline
    return base.boot_id == facts.boot_id and (not base.driver or not F.is_known(facts.driver)
                                              or base.driver == facts.driver)
