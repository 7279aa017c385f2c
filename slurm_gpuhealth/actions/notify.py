"""Tell people: at a drain, and once for an outage that the brake holds back."""
from __future__ import annotations

from slurm_gpuhealth import events, supervise
from slurm_gpuhealth.actions import record


def drained(ctx, args):
    """After a drain of ours; not when slurmctld did not take it."""
    found = record.current(ctx)
    if found is None or not found.drained:
        return
    _tell(ctx, {"what": "drain", "node": ctx.host, "code": found.code,
                "subject": events.subject_text(found.subject), "reason": found.reason, "incident": found.id,
                "evidence": found.evidence, "time": ctx.facts.time})


def braked(ctx, count, limit):
    """That the brake holds an outage back; told by one node of all."""
    found = record.current(ctx)
    _tell(ctx, {"what": "brake", "node": ctx.host, "code": found.code if found else "", "drained": count,
                "limit": limit, "time": ctx.facts.time})


def _tell(ctx, message):
    wanted = ctx.cfg["notify"]
    if not wanted["command"] and not wanted["webhook"]:
        return

    def send(spec, emit):
        from slurm_gpuhealth import notify
        emit("outcome", notify.send(ctx.cfg, spec))
    deadline = min(ctx.cfg["deadlines"]["notify"], ctx.time_left(2.0))
    result = supervise.call(send, message, deadline, name="notify")
    said = dict(result.records).get("outcome")
    ctx.event("notify", code=message["code"], action=message["what"],
              outcome=said if said is not None else result.status.outcome, message=result.status.detail)
