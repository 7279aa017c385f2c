"""The hardware does not hold the clocks of a working GPU down.

A power cap set by software, application clocks, sync boost and idling lower the clocks on purpose: never a finding. The
hardware's slowdown is also set for a moment at each change of the performance state. So it counts only when it stood in
every one of three looks 0.1 s apart, while the GPU worked (`busy_utilization`), in `rounds` health checks in a row; a
round also counts when the driver's own counter says that clocks were held down for more than `percent` of the time
since the last one. Until then it is a note.

- Hardware thermal slowdown: `GH-OVERHEAT`. External power brake (supply or rack): `GH-POWER-BRAKE`. Hardware slowdown
  without a reason: `GH-SLOWDOWN`. Clocks lowered by software to keep the temperature: `GH-THERMAL`, a warning.
- Fully used, no reason given, and the clock below `clock_percent` of the highest that is allowed: `GH-CLOCK-LOW`, a
  warning.

Unknown: the reasons, the driver's counters, or what says whether the GPU works could not be read. With MIG there is no
utilisation: then half of the power limit is "works".
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import (
    asked,
    finding,
    gpus_unread,
    growth,
    missing,
    seconds_since_baseline,
    streak,
    subject_of,
    unread,
    usable,
)
from slurm_gpuhealth.model import NOTE

LIMITS = {
    "rounds": (3, "health checks in a row that make it a fault"),
    "busy_utilization": (20, "percent of utilisation from which on a GPU works"),
    "percent": (20, "percent of the time between two health checks with clocks held down from which on a round counts"),
    "clock_percent": (50, "percent of the highest allowed clock below which a fully used GPU is too slow"),
    "clock_utilization": (90, "percent of utilisation from which on a GPU is fully used"),
}
# Bits of the clock event reasons (nvml.h, nvmlClocksEventReason*).
_HARDWARE, _SOFTWARE_THERMAL, _THERMAL, _BRAKE = 0x8, 0x20, 0x40, 0x80
_IDLE = 0x1
# name, bit, counter of Gpu.violations, code, words
_KINDS = (
    ("thermal", _THERMAL, "hw_thermal", "GH-OVERHEAT", "hardware thermal slowdown"),
    ("brake", _BRAKE, "hw_power_brake", "GH-POWER-BRAKE", "external power brake"),
    ("hardware", _HARDWARE, None, "GH-SLOWDOWN", "hardware slowdown"),
    ("software", _SOFTWARE_THERMAL, "sw_thermal", "GH-THERMAL", "clocks lowered for the temperature"),
)
_SHORTEST = 30      # seconds; over less a percentage says nothing
_BUSY_POWER = 0.5   # of the power limit, where there is no utilisation


def check(facts, limits):
    """Findings about clocks that are held down. limits: see LIMITS."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "clock_reasons", *asked(gpu, "reason_samples", "violations"), *_of_work(gpu, limits))
        if fields:
            found.append(unread(gpu, fields))
        for kind in _KINDS:
            found += _held_down(facts, gpu, kind, limits)
        found += _slow(facts, gpu, limits)
    return found + gpus_unread(facts)


def _of_work(gpu, limits):
    """Fields that say whether the GPU works, and when it is fully used, how fast."""
    if not F.is_known(gpu.utilization):
        return ("utilization", "power", "power_limit")
    if gpu.utilization < limits["clock_utilization"]:
        return ()
    return ("clock_sm", *asked(gpu, "clock_sm_max", "clock_app"))


def _held_down(facts, gpu, kind, limits):
    name, bit, counter, code, words = kind
    percent = _percent(facts, gpu, counter)
    stands = _stands(gpu, bit) and _busy(gpu, limits["busy_utilization"])
    if name == "hardware":      # the two others are its reasons, and set it too
        stands = stands and not _ever(gpu, _THERMAL | _BRAKE)
    if not stands and (percent is None or percent < limits["percent"]):
        return []
    key = "%s/%s" % (code if name != "software" else name, gpu.uuid)
    rounds = streak(facts, key)[0] + 1
    seen = words if percent is None else "%s %d %% of the time" % (words, percent)
    if rounds > 1:
        seen += " in %d rounds" % rounds
    return [finding(code, subject_of(gpu), seen, severity=None if rounds >= limits["rounds"] else NOTE,
                    streak=key, reasons=gpu.clock_reasons if F.is_known(gpu.clock_reasons) else None)]


def _samples(gpu):
    samples = gpu.reason_samples if F.is_known(gpu.reason_samples) else ()
    return samples or ((gpu.clock_reasons,) if F.is_known(gpu.clock_reasons) else ())


def _stands(gpu, bit):
    samples = _samples(gpu)
    return bool(samples) and all(mask & bit for mask in samples)


def _ever(gpu, bits):
    return any(mask & bits for mask in _samples(gpu))


def _busy(gpu, limit):
    if F.is_known(gpu.utilization):
        return gpu.utilization >= limit
    return F.is_known(gpu.power) and F.is_known(gpu.power_limit) and gpu.power >= _BUSY_POWER * gpu.power_limit > 0


def _percent(facts, gpu, counter):
    """Percent of the time since the baseline with clocks held down; None where it cannot be said."""
    seconds = seconds_since_baseline(facts)
    if counter is None or not F.is_known(gpu.violations) or seconds is None or seconds < _SHORTEST:
        return None
    new = growth(facts, gpu.uuid, "violations." + counter, gpu.violations.get(counter))
    return None if not new else new / 1e9 / seconds * 100


def _slow(facts, gpu, limits):
    """A fully used GPU whose clock is low without a reason."""
    known = [F.is_known(value) for value in (gpu.utilization, gpu.clock_sm, gpu.clock_sm_max, gpu.clock_reasons)]
    if not all(known) or gpu.utilization < limits["clock_utilization"] or gpu.clock_reasons & ~_IDLE:
        return []
    allowed = gpu.clock_sm_max
    if F.is_known(gpu.clock_app) and gpu.clock_app.get("sm"):
        allowed = min(allowed, gpu.clock_app["sm"])
    if gpu.clock_sm * 100 >= allowed * limits["clock_percent"]:
        return []
    key = "GH-CLOCK-LOW/%s" % gpu.uuid
    stuck = streak(facts, key)[0] + 1 >= limits["rounds"]
    return [finding("GH-CLOCK-LOW", subject_of(gpu), "%d MHz" % gpu.clock_sm, "%d MHz" % allowed,
                    severity=None if stuck else NOTE, streak=key, clock=gpu.clock_sm, allowed=allowed)]
