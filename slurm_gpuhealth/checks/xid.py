"""What the NVIDIA driver wrote into the kernel log since the last look.

- A Xid that the table says to act on: `GH-XID<n>`, a fault of that GPU. What one incident wrote, 48, 63 and 154 say,
  is one finding under the strongest code with the others in its data; so is a burst of the same line.
- A Xid that a user's own program causes (13, 31, 43, 45, ...): `GH-XID-USER`, a note. The same GPU showing one under
  several jobs (limit `jobs`, 2) is a fault of the GPU: `GH-XID-REPEAT`.
- 154 by the number at its end: from 1 on the driver asks for a reset, a reboot or the like. 45 that names an earlier
  Xid belongs to that one.
- Off the bus without any Xid: `GH-BUS-OFF`; the driver could not initialise a GPU: `GH-RM-INIT`.
- A Xid number that nobody knows is a warning. What was logged before the driver was last loaded is over.
- A client of another driver version is a note: any user's container can be one; NVML itself tells gpu_usable.

The site's `xid:` table changes what is done about a number.
Unknown: the kernel log was not read.
"""
from __future__ import annotations

from slurm_gpuhealth import catalogue, model
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.catalogue.xid_table import RECOVERY_ACTIONS
from slurm_gpuhealth.checks._shared import finding, subject_at
from slurm_gpuhealth.model import ALL_GPUS, FATAL, NOTE, REQUEUE_NOW, SEVERITIES, UNREAD

_BURST = 180.0      # seconds between lines that still belong together
_EVENT_CODES = {"gpu_fell_off": "GH-BUS-OFF", "rm_init_failed": "GH-RM-INIT"}


POLICY = {"overrides": "xid", "repeat": "xid_repeat"}


def check(facts, limits):
    """Findings about GPUs from the kernel log. limits: overrides (`xid:` of the configuration), repeat
    (`xid_repeat:`)."""
    if not F.is_known(facts.klog):
        code = "GH-LOG-LATE" if facts.klog.reason in (F.TIMEOUT, F.HUNG) else "GH-LOG-FAIL"
        return [finding(code, model.NODE, facts.klog.detail or facts.klog.reason, severity=UNREAD)]
    by_gpu: dict = {}
    found = []
    for event in _since_driver_load(facts.klog.events):
        if event.kind == "nvml_version_mismatch":
            found.append(finding("GH-NVML-MISM", ALL_GPUS, "a client of another version", severity=NOTE,
                                 since=event.time, process=event.process, pid=event.pid, **(event.data or {})))
        elif (event.kind == "xid" and event.code is not None) or event.kind in _EVENT_CODES:
            by_gpu.setdefault(event.bdf, []).append(event)
    for bdf, events in by_gpu.items():
        found += _of_gpu(facts, subject_at(facts, bdf) if bdf else ALL_GPUS, events, limits)
    return found


def _since_driver_load(events):
    loads = [event for event in events if event.kind == "driver_load"]
    if not loads:
        return events
    last = loads[-1]
    return [event for event in events if event.last is None or last.time is None or event.last >= last.time]


def _of_gpu(facts, subject, events, limits):
    """Findings of one GPU: the strongest event takes in those that belong to it, then the next."""
    items = [item for item in (_judge(facts, subject, event, limits) for event in events) if item is not None]
    items = _one_user_note(items)
    items.sort(key=_rank)
    findings = []
    while items:
        lead, items = items[0], items[1:]
        own = [item for item in items if _belongs(item, lead)]
        items = [item for item in items if item not in own]
        findings.append(_with_others(lead, own))
    return findings


class _Item:
    """An event and the finding it would be."""

    def __init__(self, event, finding, job_action="none"):
        self.event, self.finding, self.job_action = event, finding, job_action
        self.numbers = {event.code} if event.kind == "xid" else set()


def _judge(facts, subject, event, limits):
    """The _Item of one event, or None when the site ignores it."""
    if event.kind != "xid":
        code = _EVENT_CODES[event.kind]
        return _Item(event, _finding(code, subject, event, ""), catalogue.lookup(code).job_action)
    data = event.data or {}
    action, severity, job_action = catalogue.xid_policy(event.code, data.get("to"), limits.get("overrides"))
    if action == "ignore":
        return None
    entry = catalogue.xid(event.code)
    seen = entry.short or entry.title
    if "to" in data:
        seen = RECOVERY_ACTIONS.get(data["to"], "recovery action %d" % data["to"])
    if action == "drain":
        return _Item(event, _finding("GH-XID%d" % event.code, subject, event, seen, severity), job_action)
    jobs = _jobs(facts, subject, event.code)
    if entry.user_caused != "no" and len(jobs) >= (limits.get("repeat") or {}).get("jobs", 2):
        repeat = _finding("GH-XID-REPEAT", subject, event, "Xid %d in %d jobs" % (event.code, len(jobs)), jobs=jobs)
        return _Item(event, repeat, catalogue.lookup("GH-XID-REPEAT").job_action)
    if entry.user_caused != "no":
        return _Item(event, _finding("GH-XID-USER", subject, event, "%d %s" % (event.code, seen)))
    if data.get("fatal") is False:
        severity = NOTE     # an NVLink line that says "Nonfatal" itself
    return _Item(event, _finding("GH-XID%d" % event.code, subject, event, seen, severity))


def _finding(code, subject, event, seen, severity=None, **more):
    data = {"xid": event.code} if event.kind == "xid" else {"kind": event.kind}
    data.update(count=event.count, line=event.line, **more)
    if event.pid is not None:
        data["pid"] = event.pid
    if event.process:
        data["process"] = event.process
    return finding(code, subject, seen, severity=severity, since=event.time, **data)


def _jobs(facts, subject, number):
    """Ids of the jobs under which this GPU showed this Xid lately, those of this round included."""
    if facts.baseline is None or not subject.uuid:
        return []
    return sorted(set((facts.baseline.xids or {}).get("%s/%d" % (subject.uuid, number), ())))


def _one_user_note(items):
    """All that the user's program caused on this GPU as one item."""
    users = [item for item in items if item.finding.code == "GH-XID-USER"]
    if len(users) < 2:
        return items
    first = users[0]
    texts = list(dict.fromkeys(item.finding.seen for item in users))
    first.numbers = {item.event.code for item in users}
    first.finding = first.finding._replace(seen=", ".join(texts), data=dict(
        first.finding.data, xids=sorted(first.numbers), count=sum(item.event.count for item in users)))
    return [item for item in items if item is first or item not in users]


def _rank(item):
    """Strongest first: by severity, by what it does to the job, the request of the driver (154) behind its
    cause, then by time."""
    return (-SEVERITIES.index(item.finding.severity), item.job_action != REQUEUE_NOW, 154 in item.numbers,
            item.finding.since or 0.0)


def _belongs(item, lead):
    """Whether `item` is part of the incident that `lead` stands for."""
    caused_by = (item.event.data or {}).get("caused_by")
    if caused_by is not None and caused_by in lead.numbers:
        return True
    for number in lead.numbers:
        if item.numbers & set(catalogue.xid(number).companions):
            return True
    if item.finding.code == "GH-BUS-OFF" and 79 in lead.numbers:
        return True
    return lead.finding.severity == FATAL and _near(item.event, lead.event)


def _near(one, other):
    if None in (one.time, one.last, other.time, other.last):
        return True
    return one.time <= other.last + _BURST and other.time <= one.last + _BURST


def _with_others(lead, others):
    data = dict(lead.finding.data, job_action=lead.job_action)
    if others:
        data["also"] = [{"code": item.finding.code, "xid": item.event.code, "count": item.event.count,
                         "severity": item.finding.severity, "seen": item.finding.seen} for item in others]
    return lead.finding._replace(data=data)
