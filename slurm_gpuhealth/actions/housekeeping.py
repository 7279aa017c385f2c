"""What is done at the end of a hook when everything that matters is over: mirror, prune, forget."""
from __future__ import annotations

from slurm_gpuhealth import events, supervise


def after_healthcheck(ctx):
    """Events to the shared folder, old evidence away, baselines of jobs of an earlier boot forgotten."""
    for number, saved in ctx.state.jobs().items():
        if saved.get("boot_id") != ctx.facts.boot_id:
            ctx.state.forget_job(number)
    _mirror(ctx)
    if ctx.time_left(10.0) > 0 and ctx.facts.time - ctx.memory.get("pruned", 0) > 3600:
        ctx.memory["pruned"] = ctx.facts.time
        ctx.dirty.add("memory")

        def prune(spec, emit):
            from slurm_gpuhealth import evidence
            evidence.prune(ctx.root, ctx.cfg, {item.id for item in ctx.incidents if not item.closed})
        supervise.call(prune, None, 5.0, name="prune")


def after_fault(ctx):
    _mirror(ctx)


def _mirror(ctx):
    """Copy new events to the shared folder, in a child: it may be the very folder that is dead."""
    if not ctx.cfg["shared_dir"] or ctx.time_left(2.0) <= 0:
        return

    def copy(spec, emit):
        emit("notes", events.mirror(ctx.root, ctx.cfg, ctx.host))
    supervise.call(copy, None, min(3.0, ctx.time_left(1.0)), name="mirror")
