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
    _metrics(ctx)
    if ctx.time_left(10.0) > 0 and not 0 <= ctx.facts.time - ctx.memory.get("pruned", 0) <= 3600:
        ctx.memory["pruned"] = ctx.facts.time
        ctx.dirty.add("memory")

        def prune(spec, emit):
            from slurm_gpuhealth import event_files, evidence, job_history, paths
            evidence.prune(ctx.root, ctx.cfg, {item.id for item in ctx.incidents if not item.closed})
            event_files.prune(paths.under(ctx.root, paths.EVENTS), ctx.cfg["events"]["keep_weeks"], ctx.facts.time)
            job_history.prune(ctx.root, ctx.facts.time)
        supervise.call(prune, None, 5.0, name="prune")


def _metrics(ctx):
    """The round as metrics for node_exporter, in a child: the folder may be dead. A failure is said once a day."""
    path = ctx.cfg["prometheus"]
    if not path or ctx.time_left(2.0) <= 0 or ctx.hangs(path) or ctx.still_left("prometheus"):
        return

    def write(spec, emit):
        import time

        from slurm_gpuhealth import checks, decide, paths, prometheus
        from slurm_gpuhealth.state import write_atomic
        results = checks.run_checks(ctx.facts, ctx.cfg, ctx.phase)
        text = prometheus.text(ctx.facts, results, decide.weigh(ctx.findings, ctx.situation, ctx.cfg),
                               max(0.0, time.time() - ctx.facts.time) if not ctx.root else None)
        write_atomic(paths.under(ctx.root, path), text.encode(), mode=0o644)
    result = supervise.call(write, None, min(2.0, ctx.time_left(1.0)), name="prometheus")
    ctx.remember_left("prometheus", result.status.pid)
    if result.status.outcome != "ok":
        ctx.say_once("prometheus", "metrics not written to %s" % path, code="GH-SELF")


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
