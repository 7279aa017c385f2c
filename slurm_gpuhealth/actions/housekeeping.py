"""What is done at the end of a hook when everything that matters is over: mirror, prune, forget."""
from __future__ import annotations

from slurm_gpuhealth import events, supervise
from slurm_gpuhealth.model import HEALTHCHECK


def after_healthcheck(ctx):
    """Events to the shared folder, old evidence away, baselines of jobs of an earlier boot forgotten."""
    for number, saved in ctx.state.jobs().items():
        if saved.get("boot_id") != ctx.facts.boot_id:
            ctx.state.forget_job(number)
    _mirror(ctx)
    if ctx.time_left(10.0) > 0 and not 0 <= ctx.facts.time - ctx.memory.get("pruned", 0) <= 3600:
        ctx.memory["pruned"] = ctx.facts.time
        ctx.dirty.add("memory")

        def prune(spec, emit):
            from slurm_gpuhealth import event_files, evidence, job_history, paths
            evidence.prune(ctx.root, ctx.cfg, {item.id for item in ctx.incidents if not item.closed})
            event_files.prune(paths.under(ctx.root, paths.EVENTS), ctx.cfg["events"]["keep_weeks"], ctx.facts.time)
            job_history.prune(ctx.root, ctx.facts.time)
        supervise.call(prune, None, 5.0, name="prune")


def after_fault(ctx):
    """Events to the shared folder, and the slow part of the evidence under way."""
    if ctx.phase != HEALTHCHECK:    # which does it anyway
        _mirror(ctx)
    if ctx.folder is not None and ctx.cfg["evidence"]["bug_report"] and ctx.time_left(2.0) > 0:

        def slow(spec, emit):
            from slurm_gpuhealth.evidence import slow as slow_part
            emit("outcome", slow_part.start(ctx.root, ctx.cfg, ctx.incident.id))
        supervise.call(slow, None, min(3.0, ctx.time_left(1.0)), name="slow evidence")


def _mirror(ctx):
    """Copy new events to the shared folder, in a child: it may be the very folder that is dead."""
    if not ctx.cfg["shared_dir"] or ctx.time_left(3.0) <= 0 or ctx.shared_hangs():
        return
    seconds = min(3.0, ctx.time_left(1.0))

    def copy(spec, emit):
        # Sooner than this child's own end, so that it can still tell of a writer that it had to leave behind.
        emit("notes", events.mirror(ctx.root, ctx.cfg, ctx.host, seconds - 1.0))
    result = supervise.call(copy, None, seconds, name="mirror")
    ctx.remember_left("shared", result.status.pid)
