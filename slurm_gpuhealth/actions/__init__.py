"""Do a Plan: one function for each kind of action, in the order of the plan, each safe to repeat.

A step that slurmctld does not answer is left for a later hook (spool, or the incident that stays undrained); a
step that it refuses is an event. Neither keeps the steps after it from being done.
"""
from __future__ import annotations

from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable

# kind of action -> (module, function). Modules are imported when the first of their actions is done.
HANDLERS = {
    "incident": ("record", "incident"),
    "finding": ("record", "finding"),
    "unacted": ("record", "unacted"),
    "close": ("record", "close"),
    "job-left": ("record", "job_left"),
    "evidence": ("collect", "first"),
    "evidence-rest": ("collect", "rest"),
    "drain": ("node", "drain"),
    "already-drained": ("node", "already_drained"),
    "restore-reason": ("node", "restore_reason"),
    "resume-node": ("node", "resume"),
    "brake": ("node", "brake"),
    "notify": ("notify", "drained"),
    "requeue": ("jobs", "requeue"),
    "hold": ("jobs", "hold"),
    "send-back": ("jobs", "send_back"),
    "linger": ("jobs", "linger"),
    "end-processes": ("leftover", "end_processes"),
}


def perform(ctx, plan, only=None, skip=()):
    """Do the actions of `plan` in order; `only` or `skip` choose by kind."""
    for action in plan.actions:
        if action.kind in skip or (only is not None and action.kind not in only):
            continue
        module, name = HANDLERS[action.kind]
        handler = getattr(__import__("slurm_gpuhealth.actions." + module, fromlist=(name,)), name)
        try:
            handler(ctx, action.args or {})
        except SlurmUnavailable as exc:
            ctx.unreachable = True
            from slurm_gpuhealth.actions import spool
            spool.keep(ctx, action, str(exc))
        except SlurmRefused as exc:
            ctx.event("unacted", code=plan.code, action=action.kind, why="slurmctld refused: %s" % exc)
