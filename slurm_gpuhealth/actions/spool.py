"""Actions that slurmctld could not hear of, kept for the next hook that gets through.

A drain needs no spool: its incident stays open and undrained, and the next round decides it again, or sees that
the node was repaired. What is kept here are the things that no later hook would decide by itself: the requeue of
a job whose epilog is over. Each is confirmed before it is done: the job is still in that restart, did not end well or
by its user's will, and the mode still allows it.
"""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import config, decide, model
from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable, StateError
from slurm_gpuhealth.parse import comment as grammar

_KINDS = ("requeue", "hold")
_INTENT = "requeued"    # a requeue that was begun; what belongs to it may not have been done
_AT_WORK = 20.0         # seconds for which the one that began it may still be at it
_MAX_AGE = 86400        # slurmctld forgets an ended job after MinJobAge anyway
_MAX_FILES = 100
_CLAIMED = ".claimed"
_CLAIM_HOLDS = 120.0    # seconds; no hook runs longer


def keep(ctx, action, why):
    """Remember `action` if a later hook can do it; say so in any case."""
    args = dict(action.args or {})
    if action.kind in _KINDS and len(ctx.state.names("spool")) < _MAX_FILES:
        job = next((job for job in ctx.situation.jobs or () if job.id == args["job"]), ctx.job)
        plain = {"v": 1, "kind": action.kind, "args": args, "time": time.time(), "boot_id": ctx.facts.boot_id,
                 "incident": ctx.incident.id if ctx.incident else "", "job": model.to_plain(job)}
        try:
            ctx.state.write("%d-%s.json" % (int(time.time() * 1000), os.urandom(3).hex()), plain,
                            ctx.state.folder + "/spool")
        except StateError as exc:
            ctx.say_once("state", str(exc), code="GH-SELF")
    ctx.event("spool", code=ctx.plan.code if ctx.plan else "", action=action.kind, what=action.kind, args=args,
              why=why)


def intend(ctx, job, args):
    """Write down that a job is about to be requeued: the name of the entry, or None where it could not be written."""
    plain = {"v": 1, "kind": _INTENT, "args": args, "time": time.time(), "boot_id": ctx.facts.boot_id,
             "incident": ctx.incident.id if ctx.incident else "", "job": model.to_plain(job)}
    name = "%d-%s.json" % (int(time.time() * 1000), os.urandom(3).hex())
    try:
        ctx.state.write(name, plain, ctx.state.folder + "/spool")
    except StateError:
        return None     # a full disk must not keep the job from being requeued
    return name


def settled(ctx, name):
    """The requeue was refused, or all that belongs to it is done."""
    if name is not None:
        ctx.state.remove(name, "spool")


def keep_epilog(ctx):
    """slurmctld could not say how the job of this epilog ended, and no later hook would ask: keep what is to be done
    if it failed. Whether it did is asked before it is done (`_try`)."""
    assumed = ctx.situation._replace(jobs=(ctx.job._replace(end=decide.FAILED[0]),))
    for action in decide.decide(ctx.findings, assumed, ctx.cfg).actions:
        if action.kind in _KINDS:
            keep(ctx, action._replace(args=dict(action.args, if_failed=True)), "how the job ended is not known")


def flush(ctx):
    """Do, or drop, what is kept. Called at the end of any hook; stops when slurmctld is still away."""
    folder = ctx.state.folder + "/spool"
    for name in ctx.state.names("spool"):
        if ctx.unreachable or ctx.time_left(4.0) <= 0:
            return
        if name.endswith(_CLAIMED):
            _give_back(ctx, folder, name)
            continue
        entry = ctx.state.read(name, folder)
        if entry and entry["kind"] == _INTENT and 0 <= time.time() - entry["time"] < _AT_WORK:
            continue
        if entry and not _claim(ctx, folder, name):
            continue        # another hook of this node is at it
        try:
            handle = _finish if entry and entry["kind"] == _INTENT else _try
            outcome = handle(ctx, entry) if entry else "unreadable"
        except SlurmUnavailable:
            ctx.unreachable = True
            _rename(ctx, folder, name + _CLAIMED, name)
            return
        except SlurmRefused as exc:
            outcome = "dropped: %s" % exc
        except (KeyError, TypeError, AttributeError, ValueError) as exc:
            outcome = "dropped: not as it should be (%s)" % exc      # or it would stop each hook from now on
        ctx.state.remove(name + _CLAIMED if entry else name, "spool")
        ctx.event("spool", action=entry.get("kind", ""), what=entry.get("kind", ""), why=outcome,
                  waited=round(time.time() - entry.get("time", time.time()), 1))


def _claim(ctx, folder, name):
    """Take an entry, so that of two hooks at one moment one acts on it."""
    if not _rename(ctx, folder, name, name + _CLAIMED):
        return False
    try:
        os.utime("%s/%s" % (folder, name + _CLAIMED))
    except OSError:
        pass    # its age then counts from when it was written
    return True


def _give_back(ctx, folder, name):
    """An entry whose hook was killed while it acted on it is anybody's again."""
    try:
        age = time.time() - os.stat("%s/%s" % (folder, name)).st_mtime
    except OSError:
        return
    if not 0 <= age < _CLAIM_HOLDS:
        _rename(ctx, folder, name, name[:-len(_CLAIMED)])


def _rename(ctx, folder, name, new):
    try:
        os.rename("%s/%s" % (folder, name), "%s/%s" % (folder, new))
    except OSError:
        return False
    return True


def _finish(ctx, entry):
    """What belongs to a requeue whose hook was killed behind it: start time and hint. The outcome in words."""
    job = model.from_plain(model.Job, entry["job"])
    asked = ctx.slurm().job(job.id, ctx.host)
    if asked.restart != job.restart + 1 or asked.state not in ("PENDING", "COMPLETING"):
        return "dropped: the job is %s in restart %d" % (asked.state or "gone", asked.restart)
    token = grammar.parse(asked.comment)
    hint = token.hint if isinstance(token, grammar.Token) else None
    if hint is not None and hint.job == str(job.id) and hint.restart == asked.restart:
        return "dropped: it was done"
    from slurm_gpuhealth.actions import jobs
    jobs.bring_forward(ctx, job._replace(comment=asked.comment), ctx.cfg["resume"]["start_delay"],
                       bool(entry["args"].get("counts")))
    return "done"


def _try(ctx, entry):
    """Confirm and do one entry; the outcome in words."""
    if time.time() - entry["time"] > _MAX_AGE:
        return "dropped: too old"
    job = model.from_plain(model.Job, entry["job"])
    mode = config.mode_for(ctx.cfg, [job.partition])
    if mode != model.FULL:
        return "dropped: the mode is %s now" % mode
    asked = ctx.slurm().job(job.id, ctx.host)
    if asked.restart != job.restart:
        return "dropped: the job was restarted meanwhile"
    failed = asked.end in decide.FAILED
    if asked.end in ("completed", "cancelled", "timeout") or (entry["args"].get("if_failed") and not failed):
        return "dropped: the job ended as %s" % asked.end
    from slurm_gpuhealth.actions import jobs
    asked = jobs.declare(ctx, asked._replace(gpus=asked.gpus or job.gpus))
    refusal = decide.may_requeue(asked)
    if refusal:
        return "dropped: " + refusal
    ctx.situation = ctx.situation._replace(jobs=(asked,))
    ctx.incident = next((item for item in ctx.incidents if item.id == entry["incident"]), None)
    # From a health check too: a job that failed meanwhile is to run again.
    getattr(jobs, entry["kind"])(ctx, dict(entry["args"], ended=failed))
    return "done"
