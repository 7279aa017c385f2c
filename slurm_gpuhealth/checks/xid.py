"""What the NVIDIA driver wrote into the kernel log about GPUs since the last look.

- A Xid that the table says to act on: `GH-XID<n>`, a fault of that GPU. What one incident wrote, 48, 63 and 154 say,
  is one finding under the strongest code with the others in its data; so is a burst of the same line.
- A Xid that a user's own program causes (13, 31, 43, 45, ...): `GH-XID-USER`, a note. The same GPU showing one under
  several jobs (`xid_repeat`) is a fault of the GPU: `GH-XID-REPEAT`. A job that showed it on several GPUs speaks
  against its program, and counts for none of them; where many jobs show it on all GPUs, the GPU must stand out among
  them; 43 and 45 only follow from other things and never count.
- 154 by the number at its end: from 1 on the driver asks for a reset, a reboot or the like; back at 0, what it asked
  for was done, and what stood before it on that GPU is over, except that it fell off the bus. 45 that names an
  earlier Xid belongs to that one.
- 144 to 150 (NVLink 5) by the registers on the line and the driver's branch; a line that says Nonfatal drains nothing.
- Off the bus without any Xid: `GH-BUS-OFF`; the driver could not initialise a GPU: `GH-RM-INIT`; it says itself that
  the GPU likely needs a reset: `GH-GPU-STUCK`; its memory driver stopped for good: `GH-UVM-FATAL`; a function of the
  GPU does not wake up: `GH-PCI-POWER`, a warning.
- A Xid number that nobody knows is a warning. What was logged before the driver was last loaded, or in an earlier
  boot, is over; what the driver could not take over while it was loaded is not, though its lines come first.
- A client of another driver version is a note: any user's container can be one; NVML itself tells gpu_usable.

The site's `xid:` table changes what is done about a number.
Unknown: the kernel log was not read.
"""
from __future__ import annotations

from slurm_gpuhealth import catalogue
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.catalogue.xid_table import RECOVERY_ACTIONS
from slurm_gpuhealth.checks._incident import Item, fold
from slurm_gpuhealth.checks._klog import current, driver_of, family_at, gpu_addresses, judge
from slurm_gpuhealth.checks._shared import finding, log_unread, subject_at
from slurm_gpuhealth.model import ALL_GPUS, FATAL, NOTE, WARNING

POLICY = {"overrides": "xid", "repeat": "xid_repeat"}

_EVENT_CODES = {"gpu_fell_off": "GH-BUS-OFF", "rm_init_failed": "GH-RM-INIT", "gpu_probe_failed": "GH-RM-INIT",
                "gpu_needs_reset": "GH-GPU-STUCK", "pci_power_refused": "GH-PCI-POWER"}
# An answer of the driver cannot make these over: the GPU was not there to be asked.
_NOT_CLEARED = (79, 167)
# What a reset makes over, beside the numbers.
_CLEARED = ("xid", "gpu_needs_reset")


def check(facts, limits):
    """Findings about GPUs from the kernel log. limits: overrides (`xid:` of the configuration), repeat
    (`xid_repeat:`)."""
    unread = log_unread(facts)
    if unread:
        return unread
    by_gpu: dict = {}
    found = []
    addresses = gpu_addresses(facts)
    for event in current(facts):
        if event.kind == "nvml_version_mismatch":
            found.append(finding("GH-NVML-MISM", ALL_GPUS, "a client of another version", severity=NOTE,
                                 since=event.time, process=event.process, pid=event.pid, **(event.data or {})))
        elif event.kind == "uvm_fatal":
            found.append(finding("GH-UVM-FATAL", ALL_GPUS, since=event.time, line=event.line, do="reboot",
                                 **(event.data or {})))
        elif (event.kind == "xid" and event.code is not None) or _about_gpu(event, addresses, facts):
            by_gpu.setdefault(_address(event, facts), []).append(event)
    for bdf, events in by_gpu.items():
        found += _of_gpu(facts, subject_at(facts, bdf) if bdf else ALL_GPUS, events, limits)
    return found


def _address(event, facts):
    """Address of the GPU; the sound function of a board (.1) goes with it, and some lines name a device minor only."""
    if event.kind == "pci_power_refused" and event.bdf:
        return event.bdf[:-1] + "0"
    minor = (event.data or {}).get("minor")
    if event.bdf or minor is None:
        return event.bdf
    return next((gpu.bdf for gpu in facts.gpus + facts.known_gpus
                 if F.is_known(gpu.minor) and gpu.minor == minor and F.is_known(gpu.bdf)), "")


def _about_gpu(event, addresses, facts):
    if event.kind == "pci_power_refused":
        return _address(event, facts) in addresses or str((event.data or {}).get("driver", "")) == "nvidia"
    return event.kind in _EVENT_CODES


def _of_gpu(facts, subject, events, limits):
    items = [_judge(facts, subject, event, limits) for event in _not_cleared(events)]
    return fold([item for item in items if item is not None])


def _not_cleared(events):
    """Without what was over when the driver took its request back (154 to 0): the GPU was reset since."""
    marks = [event.time for event in events if event.kind == "xid" and event.code == 154 and event.time is not None
             and (event.data or {}).get("to") == 0 and (event.data or {}).get("from")]
    if not marks:
        return events
    return [event for event in events
            if event.last is None or event.last > max(marks) or event.kind not in _CLEARED
            or event.code in _NOT_CLEARED]


def _judge(facts, subject, event, limits):
    """The Item of one event, or None when the site ignores it."""
    if event.kind != "xid":
        return _driver_line(facts, subject, event)
    data = event.data or {}
    verdict = judge.of_xid(event.code, data, family_at(facts, event.bdf), driver_of(facts), limits.get("overrides"))
    if verdict.action == "ignore":
        return None
    entry = catalogue.xid(event.code)
    seen = entry.short or entry.title
    if "to" in data:
        seen = RECOVERY_ACTIONS.get(data["to"], "recovery action %d" % data["to"])
    if verdict.action == "drain" or entry.user_caused == "no":
        return Item(event, _finding("GH-XID%d" % event.code, subject, event, seen, verdict.severity), verdict)
    return _user_caused(facts, subject, event, limits, seen, verdict)


def _user_caused(facts, subject, event, limits, seen, verdict):
    """What a program can cause: a note, or a fault where one GPU shows it under several jobs."""
    jobs, spread, usual = _jobs(facts, subject, event.code)
    if len(jobs) - usual >= (limits.get("repeat") or {}).get("jobs", 2) and not catalogue.xid(event.code).echo:
        about = catalogue.lookup("GH-XID-REPEAT")
        repeat = _finding("GH-XID-REPEAT", subject, event, "Xid %d in %d jobs" % (event.code, len(jobs)), jobs=jobs)
        return Item(event, repeat, verdict._replace(action="drain", severity=FATAL, job_action=about.job_action,
                                                    do="repair", why="same GPU, several jobs"))
    more = {"spread": spread} if spread else {}
    cause = (event.data or {}).get("caused_by")
    text = "%d %s" % (event.code, seen) + ("" if cause is None else " after Xid %d" % cause) + (
        " (on several GPUs of the job)" if spread else "")
    return Item(event, _finding("GH-XID-USER", subject, event, text, **more), verdict)


def _driver_line(facts, subject, event):
    """Item of a line without a number."""
    code = _EVENT_CODES[event.kind]
    severity, do = judge.of_kind(event.kind, event.data)
    if event.kind == "gpu_probe_failed":
        severity = _of_probe(facts, event)
        do = "reboot" if severity == FATAL else "none"
    data = event.data or {}
    seen = data["reason"] if code == "GH-RM-INIT" and isinstance(data.get("reason"), str) else ""
    job = catalogue.lookup(code).job_action if severity == FATAL else "none"
    return Item(event, _finding(code, subject, event, seen, severity),
                judge.Verdict("drain" if severity == FATAL else "note", severity, job, do))


def _of_probe(facts, event):
    """Severity of "probe failed": a GPU of this node that NVML does not show now is broken; one that it shows came
    back; what was never a GPU of this node may be a display card that the driver does not know."""
    if any(F.is_known(gpu.bdf) and gpu.bdf == event.bdf and gpu.error is None and gpu.nvml_index is not None
           for gpu in facts.gpus):
        return NOTE
    return FATAL if event.bdf in gpu_addresses(facts) else WARNING


def _finding(code, subject, event, seen, severity=None, **more):
    data = {"xid": event.code} if event.kind == "xid" else {"kind": event.kind}
    data.update(count=event.count, line=event.line, **more)
    for name in ("link", "unit", "gpu_name", "caused_by"):
        if name in (event.data or {}):
            data[name] = event.data[name]
    if event.pid is not None:
        data["pid"] = event.pid
    if event.process:
        data["process"] = event.process
    return finding(code, subject, seen, severity=severity, since=event.time, **data)


def _jobs(facts, subject, number):
    """(jobs that showed this Xid on this GPU alone, jobs that showed it on others too, how many such jobs are usual on
    the node's other GPUs) lately, this round included.

    What one job shows on several GPUs is its program's: a GPU does not break in the moment in which its neighbour does.
    Where many small jobs show it on all GPUs, one of these must stand out: the median of the others is what is usual.
    """
    if facts.baseline is None or not subject.uuid:
        return [], [], 0
    by_gpu = {}
    for key, jobs in (facts.baseline.xids or {}).items():
        uuid, _, code = key.rpartition("/")
        if code == str(number):
            by_gpu[uuid] = set(jobs)
    mine = by_gpu.pop(subject.uuid, set())
    others = set().union(*by_gpu.values())
    several = {job for job in others if sum(job in jobs for jobs in by_gpu.values()) > 1} | (mine & others)
    counts = [len(jobs - several) for jobs in by_gpu.values()]
    counts += [0] * (max(len(facts.gpus), len(facts.known_gpus)) - 1 - len(counts))
    usual = sorted(counts)[(len(counts) - 1) // 2] if counts else 0
    return sorted(mine - others), sorted(mine & others), usual
