"""What the NVSwitch driver wrote into the kernel log since the last look: `GH-SXID`, about the switch ("nvswitch1").

The number decides (list in docs/codes.md), the word on the line only where the number leaves it open: 12028 prints
"Non-fatal" and stalls traffic, receive errors and corrected single-bit errors need nothing. All GPUs of the node share
the fabric, so all of its jobs are hit. Xid 74 of a GPU at the same moment is the same fault seen from the other end,
and belongs to it. What one switch wrote at one moment is one finding, led by the strongest number.

A line of the switch's driver that speaks of an error and has no number is `GH-NVSWITCH`, a warning. A number that
nobody knows is a warning, and a fault where its line says Fatal. The site's `sxid:` table changes what is done about a
number.
Unknown: the kernel log was not read.
"""
from __future__ import annotations

from slurm_gpuhealth.checks._incident import DO_ORDER, MANY
from slurm_gpuhealth.checks._klog import current, judge, near
from slurm_gpuhealth.checks._shared import finding, log_unread
from slurm_gpuhealth.model import REQUEUE_NOW, SEVERITIES, Subject

POLICY = {"overrides": "sxid"}


def check(facts, limits):
    """Findings about NVSwitches. limits: overrides (`sxid:` of the configuration)."""
    unread = log_unread(facts)
    if unread:
        return unread
    by_switch: dict = {}
    for event in current(facts):
        if event.kind == "sxid" and event.code is not None:
            verdict = judge.of_sxid(event.code, event.data, limits.get("overrides"))
            if verdict.action != "ignore":
                by_switch.setdefault(_switch(event), []).append((event, verdict))
        elif event.kind == "nvswitch_error":
            by_switch.setdefault(_switch(event), []).append((event, judge.Verdict(
                "note", judge.of_kind(event.kind)[0], "none", "none")))
    found = []
    for subject, pairs in by_switch.items():
        found += _of_switch(subject, sorted(pairs, key=_rank))
    return found


def _switch(event):
    number = (event.data or {}).get("switch")
    return Subject("part", name="nvswitch%s" % ("?" if number is None else number), bdf=event.bdf)


def _rank(pair):
    event, verdict = pair
    return (-SEVERITIES.index(verdict.severity), verdict.job_action != REQUEUE_NOW, event.kind != "sxid",
            event.time or 0.0, event.code or 0)


def _of_switch(subject, pairs):
    """The strongest takes in what came at its moment, and the same number at any time."""
    found: list = []
    while pairs:
        (event, verdict), pairs = pairs[0], pairs[1:]
        own: list = []
        rest: list = []
        for pair in pairs:
            belongs = len(found) >= MANY or pair[0].code == event.code or near(pair[0], event)
            (own if belongs else rest).append(pair)
        pairs = rest
        found.append(_finding(subject, event, verdict, own))
    return found


def _finding(subject, event, verdict, others):
    same = [one for one, _ in others if one.code == event.code]
    others = [pair for pair in others if pair[0].code != event.code]
    data: dict = {"count": event.count + sum(one.count for one in same), "line": event.line,
                  "job_action": verdict.job_action,
                  "do": max([verdict.do] + [one.do for _, one in others], key=DO_ORDER.index)}
    if others:
        data["also"] = [{"sxid": one.code, "count": one.count, "severity": its.severity} for one, its in others]
    if event.kind != "sxid":
        return finding("GH-NVSWITCH", subject, "", severity=verdict.severity, since=event.time, **data)
    data.update(sxid=event.code, why=verdict.why)
    link = (event.data or {}).get("link")
    if link is not None:
        data["link"] = link
    seen = "%d %s%s" % (event.code, judge.sxid_title(event.code), "" if link is None else ", link %d" % link)
    return finding("GH-SXID", subject, seen, severity=verdict.severity, since=event.time, **data)
