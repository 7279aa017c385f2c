"""Ask slurmctld what a plan still needs, and put the answer into the situation. Fault path only."""
from __future__ import annotations

from slurm_gpuhealth.actions import jobs, node
from slurm_gpuhealth.model import HEALTHCHECK, NodeRecord


def ask(ctx, name):
    """The situation with the answer to `name` in it. Raises SlurmUnavailable, SlurmRefused."""
    situation = ctx.situation
    if name == "node":
        return situation._replace(node_record=ctx.slurm().node(ctx.host))
    if name == "job":
        return situation._replace(jobs=(jobs.complete(ctx, ctx.slurm().job(ctx.job.id, ctx.host)),))
    if name == "jobs":
        found = ctx.slurm().jobs_on_node(ctx.host)
        return situation._replace(jobs=tuple(jobs.complete(ctx, job) for job in found))
    if name == "brake":
        if ctx.phase == HEALTHCHECK:
            # Not under the lock: the prologs that meet the outage meanwhile must not wait for it.
            ctx.state.unlock()
            node.wait_a_little(ctx)
            ctx.state.lock(min(ctx.cfg["deadlines"]["lock"], ctx.time_left(3)))
            situation = situation._replace(node_record=ctx.slurm().node(ctx.host))
        drained, size = node.count(ctx)
        others = [item for item in drained if item.name != ctx.host]
        return situation._replace(shared_drains=len(others), partition_size=size)
    raise ValueError("no such lookup: %s" % name)


def is_gone(exc):
    """True when slurmctld's no means that there is no such job or node, False when it may not or will not say."""
    return getattr(exc, "kind", None) in ("unknown-job", "unknown-node", "ambiguous")


def refused(ctx, name):
    """What stands when slurmctld said no (a job that is gone, a node it does not know)."""
    situation = ctx.situation
    if name == "node":
        return situation._replace(node_record=NodeRecord(ctx.host, ("UNKNOWN",), "not known to slurmctld"))
    if name in ("job", "jobs"):
        return situation._replace(jobs=())
    return situation._replace(shared_drains=0, partition_size=1)
