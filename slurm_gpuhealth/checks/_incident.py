"""Folds what one fault of one GPU wrote into the kernel log into one finding, led by its cause. Pure.

48, 171, 48, 63 and 154 are one memory error; off the bus, 154, 119 and 45 are one lost GPU. The order of the lines does
not matter: the strongest leads, and of equally strong ones the cause before what only follows from it.
"""
from __future__ import annotations

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.checks._klog import near
from slurm_gpuhealth.model import FATAL, REQUEUE_NOW, SEVERITIES

# What needs doing at once, least first.
DO_ORDER = ("none", "restart-app", "drain", "reset", "reboot", "repair")

# So many findings of one GPU (or switch) are enough; the last one takes in what else there is.
MANY = 30

# Kinds without a number that only show an already dead GPU, and the numbers and codes they follow from.
_AFTERMATH = ("gpu_fell_off", "gpu_needs_reset", "pci_power_refused", "gpu_probe_failed", "rm_init_failed")
_DEAD = frozenset((79, 119, 120, 143, 167))
_DEAD_CODES = ("GH-BUS-OFF", "GH-RM-INIT", "GH-GPU-STUCK")


class Item:
    """An event, the finding it would be alone, and what is to be done about it (a judge.Verdict)."""

    def __init__(self, event, finding, verdict):
        self.event, self.finding, self.verdict = event, finding, verdict
        self.numbers = {event.code} if event.kind == "xid" else set()


def fold(items):
    """Findings of one GPU: the strongest item takes in those that belong to it, then the next."""
    items = sorted(_one_user_note(items), key=_rank)
    findings: list = []
    while items:
        lead, items = items[0], items[1:]
        own: list = []
        rest: list = []
        for item in items:
            (own if len(findings) >= MANY or _belongs(item, lead) else rest).append(item)
        items = rest
        findings.append(_with_others(lead, own))
    return findings


def _one_user_note(items):
    """All that the user's program caused on this GPU as one item."""
    users = [item for item in items if item.finding.code == "GH-XID-USER"]
    if len(users) < 2:
        return items
    first = min(users, key=lambda item: item.event.time or 0.0)
    texts = list(dict.fromkeys(item.finding.seen for item in sorted(users, key=lambda item: item.event.time or 0.0)))
    first.numbers = {item.event.code for item in users}
    first.finding = first.finding._replace(seen=", ".join(texts), data=dict(
        first.finding.data, xids=sorted(first.numbers), count=sum(item.event.count for item in users)))
    return [item for item in items if item is first or item.finding.code != "GH-XID-USER"]


def _rank(item):
    """Strongest first: by severity, by what it does to the job, then cause before echo (the driver's own request, 154,
    last), then by time."""
    echo = any(catalogue.xid(number).echo for number in item.numbers)
    aftermath = item.event.kind in _AFTERMATH and item.finding.code != "GH-BUS-OFF"
    return (-SEVERITIES.index(item.finding.severity), item.verdict.job_action != REQUEUE_NOW, 154 in item.numbers,
            echo or aftermath, item.event.kind != "xid", item.finding.since or 0.0, min(item.numbers, default=0))


def _belongs(item, lead):
    """Whether `item` is part of the incident that `lead` stands for."""
    if item.finding.code == lead.finding.code:
        return True     # the same again
    caused_by = (item.event.data or {}).get("caused_by")
    if caused_by is not None and caused_by in lead.numbers:
        return True
    for number in lead.numbers:
        if item.numbers & set(catalogue.xid(number).companions):
            return True
    dead = bool(lead.numbers & _DEAD) or lead.finding.code in _DEAD_CODES
    if dead and (item.event.kind in _AFTERMATH or item.numbers & _DEAD):
        return True
    return lead.finding.severity == FATAL and near(item.event, lead.event)


def _with_others(lead, others):
    do = max([item.verdict.do for item in [lead] + others], key=DO_ORDER.index)
    data = dict(lead.finding.data, job_action=lead.verdict.job_action, do=do)
    if lead.verdict.why:
        data["why"] = lead.verdict.why
    again = [item.event for item in others if item.finding.code == lead.finding.code]
    if again:
        data["count"] = lead.event.count + sum(event.count for event in again)
    others = [item for item in others if item.finding.code != lead.finding.code]
    if others:
        data["also"] = [{"code": item.finding.code, "xid": item.event.code, "count": item.event.count,
                         "severity": item.finding.severity, "seen": item.finding.seen} for item in others]
    return lead.finding._replace(data=data)
