"""Memory errors: those that ECC could not correct, and many that it could.

- Uncorrectable errors **new since the baseline** (the job's start in epilog, else the last healthcheck):
  `GH-ECC-UNC`, with the memory that was hit where the GPU says it. The volatile counter is compared while boot and
  driver are the same; when it went back, the driver was reloaded and it counts from zero; the aggregate counter, kept
  on the board, is compared always.
- **Without a baseline** an uncorrectable count above zero is a warning, not a fault: it says that something was hit
  since the driver was loaded, not when, and the jobs it hit are long gone. Draining for it would empty every site
  on the day of the installation. It becomes the baseline, and the next error is a fault. What is dangerous now
  is said by row_remap, sram and the kernel log.
- **Contained**: the log of the same round shows Xid 94 for the GPU and nothing worse about its memory (48, 95, 140,
  171, 172), no SRAM was hit, and a replacement of the row waits without having failed. Only the program that used the
  page died, and the page is out of use: a warning, jobs go on, and the GPU is reset when it is idle. Without the line
  in the log (or with records of it lost), or with errors of the SRAM, it is a fault as above.
- Corrected errors harm nobody, but often come before the others: more than the limit `corrected_per_hour` since the
  baseline is a warning, `GH-ECC-COR`. It takes at least `corrected_minimum` of them, so that a few within seconds are
  not taken for a rate. When uncorrectable ones come with them, the one finding says both.

Unknown: ECC is on (or nobody knows whether it is) and a counter could not be read. ECC off, or a GPU without it, is
healthy.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._klog import current
from slurm_gpuhealth.checks._shared import finding, gpus_unread, growth, known, missing, subject_of, unread, usable
from slurm_gpuhealth.model import WARNING

LIMITS = {
    "corrected_per_hour": (1000, "corrected errors an hour from which on there is a warning"),
    "corrected_minimum": (100, "corrected errors since the baseline that it takes at least"),
}

_VOLATILE, _AGGREGATE = "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate"
_CORRECTED = ("ecc_corrected_volatile", "ecc_corrected_aggregate")
_CONTAINED, _NOT_CONTAINED = 94, frozenset((48, 95, 140, 171, 172))     # Xid numbers


def check(facts, limits):
    """Findings about memory errors. limits: corrected_per_hour, corrected_minimum."""
    found = []
    for gpu in usable(facts):
        corrected = _new_corrected(facts, gpu)
        about = _uncorrectable(facts, gpu, corrected)
        found += about or _many_corrected(facts, gpu, corrected, limits)
        fields = missing(gpu, "ecc_mode", _VOLATILE, _AGGREGATE, *_CORRECTED)
        if fields and not known(gpu.ecc_mode, 0):
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)


def _uncorrectable(facts, gpu, corrected):
    counts = {name: getattr(gpu, name) for name in (_VOLATILE, _AGGREGATE) if F.is_known(getattr(gpu, name))}
    before = _before(facts, gpu)
    if before is None:
        if counts.get(_VOLATILE, 0) > 0:
            return [finding("GH-ECC-UNC", subject_of(gpu), "%d since driver load%s" % (
                counts[_VOLATILE], _where(gpu, "volatile")), severity=WARNING, first_sight=True, **counts)]
        return []
    new, when = 0, "volatile"
    if _VOLATILE in counts and _VOLATILE in before:
        new = counts[_VOLATILE] - before[_VOLATILE]
        if new < 0 or not _same_load(facts):
            # Counted from zero since: where the board's own total was kept it says whether there was an error.
            new = 0 if _AGGREGATE in counts and _AGGREGATE in before else counts[_VOLATILE]
    if _AGGREGATE in counts and _AGGREGATE in before and counts[_AGGREGATE] - before[_AGGREGATE] > new:
        new, when = counts[_AGGREGATE] - before[_AGGREGATE], "aggregate"
    if new <= 0:
        return []
    seen = "%d new uncorrectable%s" % (new, _where(gpu, when))
    if corrected:
        seen += ", %d corrected" % corrected
    more = {"corrected_new": corrected} if corrected else {}
    contained = _contained(facts, gpu)
    if contained:
        seen += ", contained"
        more.update(contained=True, do="reset")
    return [finding("GH-ECC-UNC", subject_of(gpu), seen, severity=WARNING if contained else None,
                    since=facts.baseline.time, new=new,
                    before={name: before[name] for name in counts if name in before}, **counts, **more)]


def _contained(facts, gpu):
    """Whether the driver says of the new errors that they hit one program's page, which is out of use now."""
    if not F.is_known(facts.klog) or facts.klog.lost or not F.is_known(gpu.bdf):
        return False
    if not known(gpu.remap_pending, 1) or not known(gpu.remap_failure, 0) or _hit(gpu, "volatile") - {"dram"}:
        return False
    # A line that names no GPU may be about this one.
    numbers = {event.code for event in current(facts) if event.kind == "xid" and event.bdf in (gpu.bdf, "")}
    here = {event.code for event in current(facts) if event.kind == "xid" and event.bdf == gpu.bdf}
    return _CONTAINED in here and not numbers & _NOT_CONTAINED


def _where(gpu, when):
    """" (dram)": the memories with uncorrectable errors, where the GPU says it, else ""."""
    hit = _hit(gpu, when)
    return " (%s)" % ", ".join(sorted(hit)) if hit else ""


def _hit(gpu, when):
    """Names of the memories with uncorrectable errors, as far as the GPU says it."""
    places = gpu.ecc_locations.get(when + "_uncorrected", {}) if F.is_known(gpu.ecc_locations) else {}
    return {name for name, count in places.items() if F.is_known(count) and count > 0}


def _new_corrected(facts, gpu):
    """Corrected errors since the baseline: the larger of what the two counters say, 0 where neither says anything."""
    if not F.is_known(gpu.uuid):
        return 0
    names = _CORRECTED if facts.baseline is not None and _same_load(facts) else _CORRECTED[1:]
    return max((growth(facts, gpu.uuid, name, getattr(gpu, name)) or 0 for name in names), default=0)


def _many_corrected(facts, gpu, new, limits):
    if new < max(1, limits["corrected_minimum"]) or facts.baseline.time is None:
        return []
    hours = max(facts.time - facts.baseline.time, 1) / 3600
    if new / hours < limits["corrected_per_hour"]:
        return []
    return [finding("GH-ECC-COR", subject_of(gpu), "%d corrected in %d min" % (new, max(1, round(hours * 60))),
                    new=new, hours=round(hours, 3))]


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
