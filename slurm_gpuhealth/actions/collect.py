"""Evidence: the Facts and the log window before the drain, the rest of the quick part straight after it.

Both run in a supervised child: the evidence folder may lie on the disk that is dying.
"""
from __future__ import annotations

from slurm_gpuhealth import model, supervise
from slurm_gpuhealth.actions import record


def first(ctx, args):
    """facts.json, situation.json, policy.json and the log window, within `deadlines.evidence`."""
    incident = record.current(ctx)

    def write(spec, emit):
        from slurm_gpuhealth import evidence
        folder = evidence.open_incident(ctx.root, ctx.cfg, incident, ctx.facts, ctx.situation, ctx.cfg,
                                        ctx.findings, ctx.gathered.lines)
        emit("folder", {"path": folder.path, "notes": list(folder.notes)})
    result = supervise.call(write, None, min(ctx.cfg["deadlines"]["evidence"], ctx.time_left(3.0)), name="evidence")
    said = dict(result.records).get("folder")
    if said is None:
        ctx.event("unacted", code=incident.code, action="evidence", why=result.status.detail or "no answer")
        return
    ctx.folder = said["path"]
    record.update(ctx, evidence=said["path"])
    for note in said["notes"]:
        ctx.event("finding", code="GH-SELF", action="evidence", severity="warning", seen=note)


def rest(ctx, args):
    """Kernel log, nvidia-smi -q, job log tail, versions; then the decision and the manifest."""
    if ctx.folder is None:
        return
    incident = record.current(ctx)
    plain = {"nvml_hung": any(status.name == "nvml" and status.outcome != "ok" for status in ctx.facts.sources),
             "job": model.to_plain(ctx.job) if ctx.job else None}
    plan, situation, findings = ctx.plan, ctx.situation, ctx.findings
    jobs = list(situation.jobs or ()) or ([ctx.job] if ctx.job else [])
    # Several programs, side by side: nvidia-smi -q alone may take seconds with eight GPUs.
    until = min(2 * ctx.cfg["deadlines"]["command"] + 1.0, ctx.time_left(4.0))

    def write(spec, emit):
        from slurm_gpuhealth import evidence
        folder = evidence.reopen(ctx.root, ctx.folder)
        folder.decide(situation, plan, findings)
        folder.collect_quick(ctx.cfg, spec, jobs, until - 0.5)
        folder.finish()
        emit("done", {"missing": folder.missing()})
    if until <= 0.5:
        ctx.event("unacted", code=incident.code, action="evidence", why="no time left for the rest of it")
        return
    result = supervise.call(write, plain, until, name="evidence")
    if result.status.outcome != "ok":
        ctx.event("unacted", code=incident.code, action="evidence", why=result.status.detail)
