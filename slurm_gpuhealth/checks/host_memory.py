"""The node's own memory and processors: EDAC counters, machine checks.

- Uncorrected errors that are new since the last round, or a memory page that the kernel gave up: `GH-HOST-UE`.
  Without an earlier round to compare with, a counter above zero is a warning.
- Corrected errors at `corrected_per_hour` and more: `GH-HOST-CE`, a warning. A few a day are normal.
- Machine checks in the kernel log: uncorrected or fatal ones are `GH-MCE`. Deferred and recoverable ones warn:
  nothing was lost yet, and firmware tells PCIe errors in the same words. Corrected ones are a note, and a warning
  from `corrected_lines` lines in one round on (`GH-MCE-CE`).

What firmware tells at boot of the boot before is history. A node without an EDAC driver is judged by its log alone.
Unknown: the counters or the kernel log could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import events, not_asked, part, unread
from slurm_gpuhealth.checks._shared import counted_before, finding, log_unread
from slurm_gpuhealth.model import FATAL, NODE, NOTE, WARNING

LIMITS = {"corrected_per_hour": (100, "corrected errors of one memory controller in an hour that warn"),
          "corrected_lines": (100, "lines about corrected machine checks in one round that warn")}
_LEAST = 10     # corrected errors: fewer are no rate, however short the round


def check(facts, limits):
    """Findings about memory and processors. limits: corrected_per_hour, corrected_lines."""
    controllers = facts.memory_controllers
    found = []
    if F.is_known(controllers):
        for one in controllers:
            found += _counters(facts, one, limits)
    elif not not_asked(facts, controllers):
        found += unread("memory_controllers", controllers)
    found += _memory_events(facts, {item.subject.name for item in found if item.code == "GH-HOST-UE"})
    return found + _machine_checks(facts, found, limits) + log_unread(facts)


def _counters(facts, one, limits):
    found = []
    labels = {"dimms": [list(dimm) for dimm in one.dimms]} if one.dimms else {}
    new, sure = _new(facts, one, "uncorrected")
    if new:
        where = next((label for label, _, uncorrected in one.dimms if uncorrected), one.name)
        found.append(finding("GH-HOST-UE", part(one.name), "%d uncorrected, %s" % (new, where),
                             severity=FATAL if sure else WARNING, new=new, **labels))
    new, sure = _new(facts, one, "corrected")
    hours = _hours(facts)
    if new and sure and new >= _LEAST and hours and new / hours >= limits["corrected_per_hour"]:
        where = max(one.dimms, key=lambda dimm: dimm[1])[0] if one.dimms else one.name
        found.append(finding("GH-HOST-CE", part(one.name), "%d corrected in %.1f h, %s" % (new, hours, where), new=new,
                             **labels))
    return found


def _new(facts, one, counter):
    """(errors since the last round, whether that is sure). Counters begin at 0 with each boot and each load of the
    driver."""
    now = getattr(one, counter)
    if not now:
        return 0, True
    before = counted_before(facts, one.name, counter)
    if before is None:
        return now, False
    if facts.baseline.boot_id != facts.boot_id or now < before:
        return now, True
    return now - before, True


def _hours(facts):
    """Hours since the last round, or since the boot where that is later."""
    if facts.baseline is None or facts.baseline.time is None:
        return None
    seconds = facts.time - facts.baseline.time
    if facts.baseline.boot_id != facts.boot_id and F.is_known(facts.uptime):
        seconds = min(seconds, facts.uptime)
    return seconds / 3600 if seconds > 0 else None


def _memory_events(facts, counted):
    """Uncorrected memory errors that the log names, unless a counter has told of them."""
    seen = events(facts, "edac_uncorrected", "memory_failure")
    if not seen or counted:
        return []
    where = next((str(event.data["where"]) for event in seen if (event.data or {}).get("where")), "")
    return [finding("GH-HOST-UE", part("memory"), _words(seen, where),
                    since=seen[0].time, count=sum(event.count for event in seen), line=seen[-1].line[:200])]


def _words(seen, where):
    if where:
        return "uncorrected, %s" % where
    given_up = any(event.kind == "memory_failure" for event in seen)
    return "a page was given up" if given_up else "uncorrected memory error"


def _machine_checks(facts, found, limits):
    hard, soft, corrected = [], [], []
    for event in events(facts, "mce_uncorrected", "mce_deferred", "mce_apei", "mce_corrected", "mce_logged",
                        "edac_corrected"):
        severity = (event.data or {}).get("severity", "")
        if event.kind == "mce_uncorrected" or severity == "fatal":
            hard.append(event)
        elif event.kind == "mce_deferred" or severity == "recoverable":
            soft.append(event)
        elif severity != "info":
            corrected.append(event)
    if (hard or soft) and any(item.code == "GH-HOST-UE" and item.severity == FATAL for item in found):
        hard, soft = [], []      # the same event, told by the memory controller
    if hard or soft:
        worst = (hard or soft)[-1]
        return [finding("GH-MCE", NODE, "uncorrected" if hard else "recoverable", severity=None if hard else WARNING,
                        since=(hard or soft)[0].time, count=sum(event.count for event in hard or soft),
                        line=worst.line[:200], **_of(worst, "cpu", "bank", "status", "section", "device"))]
    count = sum(event.count for event in corrected)
    if not count:
        return []
    many = count >= limits["corrected_lines"]
    return [finding("GH-MCE-CE", NODE, "%d line%s" % (count, "s" * (count > 1)), severity=None if many else NOTE,
                    since=corrected[0].time, count=count, line=corrected[-1].line[:200])]


def _of(event, *names):
    return {name: event.data[name] for name in names if name in (event.data or {})}
