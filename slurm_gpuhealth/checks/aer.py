"""What the kernel's PCIe code wrote into the kernel log since the last look, for the GPU that it is about.

The lines name a port; the GPUs below it are found in sysfs (its address itself may be a GPU's, and so may the one
behind "received from"). Where sysfs knows nothing below, and one GPU fell off the bus at that moment, it is that one.

- Not corrected and fatal, or the port switched its link off to contain an error (DPC): `GH-PCIE-AER`, a fault of each
  GPU below. The NVIDIA driver cannot recover from it; Xid 79 at that moment is the same fault and leads.
- Not corrected and not fatal, or a link that went down under a GPU that answers: `GH-PCIE-AER`, a warning.
- Corrected: a note; above the limit `corrected_per_hour` a warning, `GH-PCIE-CORR`. Many good slots correct errors for
  years.
- A request of a GPU that the IOMMU refused: `GH-PCIE-IOMMU`, a warning.

A port without a GPU below, and other devices, never drain: a fatal error there is a warning, the rest notes.
Unknown: the kernel log was not read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._klog import current, gpu_addresses, judge, near
from slurm_gpuhealth.checks._shared import finding, log_unread, subject_at
from slurm_gpuhealth.model import FATAL, NOTE, SEVERITIES, WARNING, Subject

LIMITS = {"corrected_per_hour": (1000, "Corrected errors of one GPU's link in an hour that are worth a warning")}

_KINDS = ("aer_uncorrected", "pcie_dpc", "pcie_link_down", "aer_corrected", "iommu_fault")


def check(facts, limits):
    """Findings about the PCIe links of GPUs from the kernel log."""
    unread = log_unread(facts)
    if unread:
        return unread
    events = current(facts)
    where = _Where(facts, [event for event in events if _lost(event)])
    groups: dict = {}       # (subject, code) -> [(severity, event)]
    for event in events:
        if event.kind not in _KINDS:
            continue
        subjects = where.gpus(event)
        for subject in subjects or [where.part(event)]:
            severity = _of_gpu(facts, event, subject) if subjects else _of_other(event)
            groups.setdefault((subject, _code(event)), []).append((severity, event))
    found = []
    for (subject, code), pairs in groups.items():
        one = _corrected(subject, pairs, limits) if code == "GH-PCIE-CORR" else _finding(code, subject, pairs)
        if one is not None:
            found.append(one)
    return found


def _code(event):
    return {"aer_corrected": "GH-PCIE-CORR", "iommu_fault": "GH-PCIE-IOMMU"}.get(event.kind, "GH-PCIE-AER")


def _lost(event):
    return event.kind == "gpu_fell_off" or (event.kind == "xid" and event.code == 79)


class _Where:
    """Which GPUs an event is about."""

    def __init__(self, facts, lost):
        self.facts, self.lost = facts, lost
        self.addresses = gpu_addresses(facts)
        self.below: dict = {}       # port -> addresses of GPUs under it
        self.others = set()         # devices that are no GPU
        self.ports = set()          # ports that something is known to be under
        for device in facts.pci if F.is_known(facts.pci) else ():
            if not F.is_known(device.parents):
                continue
            self.ports.update(device.parents)
            if device.bdf in self.addresses or (device.vendor == "10de" and device.klass[:2] == "03"):
                for port in device.parents:
                    self.below.setdefault(port, set()).add(device.bdf)
            elif device.klass[:4] != "0604":
                self.others.add(device.bdf)

    def gpus(self, event):
        """Subjects of the GPUs that the event is about, [] for none."""
        source = str((event.data or {}).get("from", "")).lower()
        if source in self.others or event.bdf in self.others:
            return []
        for address in (source, event.bdf):
            gpu = address[:-1] + "0" if address else ""
            if gpu in self.addresses:       # also for the sound function of a board, .1
                return [subject_at(self.facts, gpu)]
        found = self.below.get(source) or self.below.get(event.bdf)
        if not found and event.bdf not in self.ports:
            found = {one.bdf for one in self.lost if near(one, event)}
            found = found if len(found) == 1 else set()
        return [subject_at(self.facts, bdf) for bdf in sorted(found or ())]

    def part(self, event):
        """The port or device that an event names which is about no GPU."""
        source = str((event.data or {}).get("from", "")).lower()
        return Subject("part", name=source if source in self.others else event.bdf or "pcie", bdf=event.bdf)


def _of_gpu(facts, event, subject):
    """Severity of an event about a GPU."""
    if event.kind == "pcie_link_down":
        answers = any(gpu.error is None and F.is_known(gpu.bdf) and gpu.bdf == subject.bdf for gpu in facts.gpus)
        return WARNING if answers else FATAL        # it was reset, or plugged in anew
    return judge.of_kind(event.kind, event.data)[0]


def _of_other(event):
    severity = judge.of_kind(event.kind, event.data)[0]
    return WARNING if severity == FATAL else NOTE


def _finding(code, subject, pairs):
    """One finding of all that one GPU's link, or one port, showed; the strongest leads."""
    pairs = sorted(pairs, key=lambda pair: (-SEVERITIES.index(pair[0]), pair[1].time or 0.0))
    severity, lead = pairs[0]
    if severity == NOTE and code == "GH-PCIE-IOMMU":
        return None
    data = {"kind": lead.kind, "count": sum(event.count for _, event in pairs), "line": lead.line,
            "do": judge.of_kind(lead.kind, lead.data)[1]}
    if lead.bdf and lead.bdf != subject.bdf:
        data["port"] = lead.bdf
    if len(pairs) > 1:
        data["also"] = [{"kind": event.kind, "count": event.count, "severity": its} for its, event in pairs[1:]]
    return finding(code, subject, _words(lead), severity=severity, since=lead.time, **data)


def _words(event):
    data = event.data or {}
    if event.kind == "aer_uncorrected":
        text = {"Fatal": "fatal PCIe error", "Non-Fatal": "non-fatal PCIe error"}.get(
            data.get("class", ""), "PCIe error")
        return text + ", no recovery" if data.get("what") == "no recovery" else text
    return {"pcie_dpc": "PCIe link contained", "pcie_link_down": "PCIe link down"}.get(event.kind, "IOMMU fault")


def _corrected(subject, pairs, limits):
    """A note, or a warning above the limit; of what is no GPU a note above it."""
    events = [event for _, event in pairs]
    count = sum(event.count for event in events)
    times = [moment for event in events for moment in (event.time, event.last) if moment is not None]
    rate = count * 3600.0 / max(3600.0, (max(times) - min(times)) if times else 0.0)
    many = rate >= limits["corrected_per_hour"]
    if not many and subject.kind != "gpu":
        return None
    return finding("GH-PCIE-CORR", subject, "%d corrected, %d an hour" % (count, rate),
                   severity=WARNING if many and subject.kind == "gpu" else NOTE,
                   since=min(times) if times else None, count=count, line=events[0].line)
