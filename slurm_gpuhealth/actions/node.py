"""Actions on the node in slurmctld: drain, put our reason back, resume what we drained, and the brake."""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import decide
from slurm_gpuhealth import reason as grammar
from slurm_gpuhealth.actions import record
from slurm_gpuhealth.errors import SlurmUnavailable
from slurm_gpuhealth.model import FATAL, Finding

_MARK = " brake="       # appended to the reason of the earliest drained node by the one node that alerts


def drain(ctx, args):
    """Drain this node with our reason. Nothing is drained unseen: slurmctld must have said how it stands."""
    if ctx.situation.node_record is None:
        raise SlurmUnavailable("node record unknown")
    found = record.fatal_findings(ctx)
    incident = record.current(ctx)
    reason = _reason(found, incident)
    started = time.monotonic()
    ctx.slurm().drain(ctx.host, reason)
    record.update(ctx, drained=True, reason=reason)
    ctx.event("drain", code=incident.code, subject=incident.subject, reason=reason,
              seconds=round(time.monotonic() - started, 3))
    if args.get("brake") and "limit" in args:
        _second_count(ctx, args["limit"], reason)


def _reason(found, incident):
    """The reason for what was found now, or the incident's own where that is worse: it may have been opened, while
    slurmctld was away, for a line of the kernel log that is read only once."""
    if not found:
        return incident.reason
    first = Finding(incident.code, FATAL, incident.subject, since=incident.opened)
    if incident.reason and grammar.worst_first([found[0], first])[0] is first:
        return incident.reason
    return grammar.write(found, incident.id)


def already_drained(ctx, args):
    """Another hook, or an earlier one, has drained the node with our reason."""
    found = record.current(ctx)
    if found is not None and not found.drained:
        record.update(ctx, drained=True, reason=args["reason"])


def restore_reason(ctx, args):
    """slurmstepd's "Kill task failed" replaced the reason of our own open incident: put ours back."""
    ctx.slurm().set_reason(ctx.host, args["reason"])
    ctx.event("restore-reason", reason=args["reason"], replaced=decide.KILL_TASK_FAILED)


def resume(ctx, args):
    """Give back a node that we drained for a recoverable fault, after enough clean rounds."""
    ctx.slurm().resume(ctx.host)
    ctx.event("resume-node", action="resume", why=args["why"], incidents=args["ids"])
    record.close(ctx, args)


# -- the brake: an external fault may be everywhere at once

def drained_for_external(nodes, layer_of, now, window):
    """The NodeRecords that we drained lately for an external fault, earliest first."""
    ours = []
    for node in nodes:
        parsed = grammar.parse(node.reason) if node.reason and grammar.is_ours(node.reason) else None
        if parsed and layer_of(parsed[0]) == decide.EXTERNAL and any(f.startswith("DRAIN") for f in node.state) \
                and (node.reason_time is None or node.reason_time > now - window):
            ours.append(node)
    # The mark of the alert is set on the earliest one and renews the time of its reason: it stays the earliest.
    return sorted(ours, key=lambda node: (_MARK not in node.reason, node.reason_time or 0, node.name))


def count(ctx):
    """(drained nodes of the partition, earliest first; size of the partition). The job's partition, else the
    largest of the node's."""
    from slurm_gpuhealth.catalogue import lookup
    client = ctx.slurm()
    names = [ctx.job.partition] if ctx.job is not None else list(ctx.situation.node_record.partitions)
    best = ()
    for name in names:
        nodes = client.partition_nodes(name)
        best = nodes if len(nodes) > len(best) else best
    window = ctx.cfg["brake"]["window"]
    return drained_for_external(best, lambda code: lookup(code).layer, time.time(), window), len(best)


def wait_a_little(ctx):
    """All nodes see a storage outage at the same moment: spread their counts over some seconds."""
    jitter = min(float(ctx.cfg["brake"]["jitter"]), ctx.time_left(8.0))
    if jitter > 0:
        time.sleep(jitter * int.from_bytes(os.urandom(2), "big") / 65536)


def _second_count(ctx, limit, reason):
    """Count again after our own drain. Of those that drained at one moment the earliest `limit` stay drained."""
    drained, size = count(ctx)
    place = [node.name for node in drained].index(ctx.host) if ctx.host in [n.name for n in drained] else 0
    if place < limit:
        return
    ctx.slurm().resume(ctx.host)
    record.update(ctx, drained=False)
    # What follows is decided on this count: a prolog that exits 1 now would have slurmd drain the node all the same.
    ctx.situation = ctx.situation._replace(shared_drains=place, partition_size=size)
    ctx.event("brake", reason=reason, drained=len(drained), limit=limit, size=size, taken_back=True)
    _alert(ctx, drained, limit)


def brake(ctx, args):
    """Too many nodes already: this one stays as it is, and one node of all tells people."""
    found = record.current(ctx)
    drained, size = count(ctx)
    ctx.event("brake", code=found.code if found else "", drained=args["drained"], limit=args["limit"], size=size,
              taken_back=False)
    _alert(ctx, drained, args["limit"])


def _alert(ctx, drained, limit):
    """One alert for the whole outage: the node whose name stands in the earliest drained node's reason sends it.

    Nodes share nothing but slurmctld (the shared folder may be what is down), and it has no compare-and-set: the
    last writer of the mark wins, and each writer looks again before it speaks.
    """
    others = [node for node in drained if node.name != ctx.host] or list(drained)
    if not others or _MARK in others[0].reason:
        return
    client = ctx.slurm()
    client.set_reason(others[0].name, others[0].reason + _MARK + ctx.host)
    time.sleep(min(1.0, ctx.time_left(2.0)))
    if client.node(others[0].name).reason.rpartition(_MARK)[2] != ctx.host:
        return
    ctx.event("brake", action="alert", drained=len(drained), limit=limit,
              why="an external fault on more nodes than the brake lets drain")
    from slurm_gpuhealth.actions import notify
    notify.braked(ctx, len(drained), limit)
