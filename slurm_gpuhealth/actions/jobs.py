"""Actions on jobs: requeue with a start time and a hint, hold, send back; and what a job says of itself."""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import paths, resume, supervise
from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable
from slurm_gpuhealth.model import EPILOG, HEALTHCHECK, Declared
from slurm_gpuhealth.parse import comment as grammar
from slurm_gpuhealth.parse import slurm_env

_LINGER = 10.0          # seconds a prolog stays after it held its job, unless the kill arrives before
_START_PASSED = 2       # a start time that is this near is as good as passed


def from_environment(ctx, env):
    """The hook's job with what its comment and its own prolog tell of it, or None."""
    job = slurm_env.job_from_env(env, ctx.phase, ctx.host)
    if job is None:
        return None
    saved = ctx.state.job(job.id) if ctx.phase == EPILOG else {}
    ctx.epilog_restart = job.restart
    if saved:
        # If somebody has requeued the job already, the restart count is one higher than that of this run.
        job = job._replace(has_baseline=True, restart=saved.get("restart", job.restart),
                           start=job.start or saved.get("time"),
                           gpus=job.gpus or tuple(saved.get("gpus", ())))
    return declare(ctx, job)


def complete(ctx, asked):
    """A job as slurmctld describes it, with what only this node knows added."""
    saved = ctx.state.job(asked.id)
    same_run = bool(saved) and saved.get("restart", asked.restart) in (asked.restart, asked.restart - 1)
    changes: dict = {"has_baseline": same_run}
    if ctx.job is not None and ctx.job.id == asked.id:
        changes.update(gpus=asked.gpus or ctx.job.gpus, restart=ctx.job.restart, start=ctx.job.start or asked.start,
                       exit_code=asked.exit_code or ctx.job.exit_code, has_baseline=ctx.job.has_baseline)
        if ctx.phase == EPILOG and asked.restart > ctx.job.restart:
            changes["end"] = "requeued"
    elif same_run and not asked.gpus:
        changes["gpus"] = tuple(saved.get("gpus", ()))
    return declare(ctx, asked._replace(**changes))


def declare(ctx, job):
    """`job` with `declared` and `tries` from its comment. A bad token declares nothing, and is said once."""
    token = grammar.parse(job.comment)
    if isinstance(token, grammar.BadToken):
        from slurm_gpuhealth import memory
        if memory.is_news(ctx.memory, "token|%s" % job.id, time.time()):
            ctx.dirty.add("memory")
            ctx.event("unacted", code="GH-CKPT-TOKEN", why=token.reason, job=job)
        token = None
    pattern = ctx.cfg["resume"]["default_pattern"]
    if token is None:
        return job._replace(declared=Declared(ckpt=pattern) if pattern else None)
    said = Declared(token.ckpt or pattern, token.requeue, token.max_restarts, token.total_steps, token.when_none)
    empty = not said.ckpt and said.requeue is None and said.max_restarts is None
    return job._replace(declared=None if empty else said, tries=resume.tries(token, job.id, job.restart))


def _known(ctx, args):
    """The Job that an action names, as slurmctld described it."""
    for job in ctx.situation.jobs or ():
        if job.id == args["job"]:
            return job
    return ctx.job


def _done(ctx, job, args):
    """Remember that this run of the job was dealt with, so that no other hook does it again."""
    from slurm_gpuhealth.actions import record
    found = record.current(ctx)
    if found is not None:
        record.update(ctx, jobs=tuple(found.jobs) + (args["tag"],))


def requeue(ctx, args):
    """Requeue a job, bring its start forward, leave the hint, and say so."""
    from slurm_gpuhealth.actions import spool
    job = _known(ctx, args)
    client = ctx.slurm()
    asked = time.time()
    # Should this process be killed behind the requeue, a later hook brings the start forward and counts it.
    intent = spool.intend(ctx, job, args)
    try:
        # In a health check the job may have ended since it was asked about: a plain requeue would run it again.
        first = client.requeue(job, running_only=ctx.phase == HEALTHCHECK and not args.get("ended"))
    except (SlurmRefused, SlurmUnavailable):
        spool.settled(ctx, intent)
        raise
    _done(ctx, job, args)
    delay = ctx.cfg["resume"]["start_delay"]
    hint = bring_forward(ctx, job, delay, bool(args.get("counts")))
    spool.settled(ctx, intent)
    if not first:
        ctx.event("unacted", action="requeue", why="slurmctld had requeued it already", job=job)
    _record_requeue(ctx, job, args, hint.tries, delay, asked)
    from slurm_gpuhealth.actions import resume_point
    resume_point.leave_in_hint(ctx, job, hint)


def bring_forward(ctx, job, delay, counts):
    """Give a job that was just requeued (`job`: its run before that) its start time and its hint; returns the Hint."""
    start = _set_start(ctx, job, delay)
    hint = resume.next_hint(grammar.parse(job.comment), job.id, job.restart, None, start, counts)
    _leave_hint(ctx, job, hint)
    nudge_later(ctx, job, job.restart + 1, delay)
    return hint


def _record_requeue(ctx, job, args, tries, delay, asked):
    from slurm_gpuhealth.actions import record
    found = record.current(ctx)
    finding = record.primary(ctx)
    code = found.code if found else ""
    ctx.event("requeue", code=code, subject=found.subject if found else "", action="requeue", job=job,
              start_in=delay, tries=tries, why=args.get("why", ""), gpus=len(job.gpus),
              fault_time=(finding.since if finding and finding.since else asked), started=job.start)
    saved = ctx.state.job(job.id)
    if saved:
        # Its epilog on this node may end after the start time: then it must be set again (renew_start).
        saved["requeued"] = {"restart": job.restart + 1, "start": asked + delay}
        ctx.state.save_job(job.id, saved)
    ctx.history(job, "requeued", code=code, reason=args.get("why", ""))


def _set_start(ctx, job, delay):
    """Bring the start forward; Slurm's own is 121 s away (cred_expire + 1). The epoch time, or None."""
    try:
        ctx.slurm().set_start(job, delay)
    except (SlurmRefused, SlurmUnavailable) as exc:
        # It is requeued, and starts when Slurm's own 121 s are over.
        ctx.event("unacted", action="set start", why=str(exc), job=job)
        return None
    return int(time.time()) + delay


def _leave_hint(ctx, job, hint):
    """Write the hint into the job's own token; only a job that declared something gets one."""
    if job.declared is None:
        return
    hinted = grammar.with_hint(job.comment, hint)
    if hinted.kept == "none" or hinted.text == job.comment:
        return
    try:
        ctx.slurm().set_comment(job, hinted.text)
    except (SlurmRefused, SlurmUnavailable) as exc:
        # The job's restart resolves by itself; only this requeue is then not counted.
        ctx.event("unacted", action="hint", why=str(exc), job=job)


def hold(ctx, args):
    """Requeue into SpecialExit with the reason in AdminComment: a person must look."""
    job = _known(ctx, args)
    message = "%s %s" % (args["code"], args["message"])
    client = ctx.slurm()
    client.requeue_hold(job)
    _done(ctx, job, args)
    try:
        client.set_admin_comment(job, message)
    except SlurmRefused as exc:
        ctx.event("unacted", action="admin comment", why=str(exc), job=job)
    ctx.event("hold", code=args["code"], action="hold", job=job, message=args["message"])
    ctx.history(job, "held", code=args["code"], reason=args["message"])
    from slurm_gpuhealth.actions import job_output
    job_output.append_line(ctx, job, message)


def send_back(ctx, args):
    """The brake, or a checkpoint folder that cannot be looked at: start later, elsewhere or here."""
    job = _known(ctx, args)
    client = ctx.slurm()
    client.requeue(job)
    client.set_start(job, args["start_in"])
    _done(ctx, job, args)
    ctx.memory.setdefault("sent_back", {})[str(job.id)] = args["tries"]
    ctx.dirty.add("memory")
    ctx.event("send-back", code=args.get("code", ""), action="send back", job=job, start_in=args["start_in"],
              tries=args["tries"], message=args.get("message", ""))
    ctx.history(job, "sent back", code=args.get("code", ""), reason=args.get("message", ""))


def linger(ctx, args):
    """Stay in the prolog until the kill of the requeue has arrived: with exit 0 before that the job would start.

    With PrologFlags=Alloc it is slurmctld that launches the batch script, after the prolog; measured on 24.11, the
    job is COMPLETING from the moment of the requeue, and no script is launched any more.
    """
    ctx.state.unlock()      # the other hooks of this node have better things to do than to wait for this
    until = time.monotonic() + min(_LINGER, ctx.time_left(1.0))
    while time.monotonic() < until:
        time.sleep(0.5)
        try:
            if ctx.slurm().job(args["job"], ctx.host).state != "RUNNING":
                break
        except SlurmRefused:
            break           # it is gone altogether
        except SlurmUnavailable:
            continue
    ctx.state.lock(min(1.0, ctx.time_left(1.0)))


def renew_start(ctx):
    """In an epilog: the start time of our own requeue may have passed while the job was COMPLETING.

    Slurm waits KillWait (30 s) for processes that ignore SIGTERM; a begin time that has passed by then is replaced
    by 121 s. Only a job that we requeued is looked at: by the mark that the requeue left in its baseline, or
    (other nodes of the job) by a restart count that rose while it ran here.
    """
    job = ctx.job
    if ctx.mode != "full" or job is None or not job.has_baseline or ctx.unreachable:
        return
    saved = ctx.state.job(job.id)
    mark = saved.get("requeued")
    if mark and mark["start"] > time.time() + _START_PASSED:
        return
    if not mark and not _restart_rose(ctx, saved):
        return
    try:
        asked = ctx.slurm().job(job.id, ctx.host)
        token = grammar.parse(asked.comment)
        hint = token.hint if isinstance(token, grammar.Token) else None
        ours = mark or (hint is not None and hint.job == str(job.id) and hint.restart == asked.restart)
        if ours and asked.restart == saved.get("restart", 0) + 1 and asked.state in ("PENDING", "COMPLETING"):
            _set_start(ctx, asked, ctx.cfg["resume"]["start_delay"])
            nudge_later(ctx, asked, asked.restart, ctx.cfg["resume"]["start_delay"])
    except (SlurmRefused, SlurmUnavailable) as exc:
        ctx.event("unacted", action="renew start", why=str(exc), job=job)


def forget(ctx):
    """At the end of an epilog: the job's baseline and the answer that its prolog left for it are of no more use."""
    ctx.state.forget_job(ctx.job.id)
    try:
        os.unlink(paths.under(ctx.root, paths.RUN) + "/job-%d.json" % ctx.job.id)
    except OSError:
        pass    # there was none, or /run is broken: the next boot clears it


_NUDGE_SECONDS = 90     # KillWait (30 s) and an epilog's time


def nudge_later(ctx, job, restart, delay):
    """Leave a process behind that wakes the scheduler at the job's start time, once it is really pending.

    A begin time that passes wakes nobody in slurmctld: the job then waits for the next look of the scheduler
    (bf_interval 30 s, sched_interval 60 s; measured: 16 s after its begin time). An update of the job makes slurmctld
    schedule at once. Not before the start time: a node that the job had a moment ago may still hold the old run's
    credential, and clocks differ. Should this process be lost, the job starts at that next look, no worse.
    """
    supervise.detach(_nudge, {"cfg": ctx.cfg, "root": ctx.root, "host": ctx.host, "job": job, "restart": restart,
                              "start": time.monotonic() + delay}, _NUDGE_SECONDS)


def _nudge(spec):
    """In the process left behind. Ends as soon as there is nothing more to do, in any case after _NUDGE_SECONDS."""
    from slurm_gpuhealth import slurm
    until = time.monotonic() + _NUDGE_SECONDS
    client = slurm.client(spec["cfg"], spec["root"], until)
    time.sleep(max(0.0, spec["start"] - time.monotonic()))
    while time.monotonic() < until - 5:
        try:
            job = client.job(spec["job"].id, None, spec["restart"])
            if job.restart != spec["restart"] or job.state in ("RUNNING", "COMPLETED", "CANCELLED", "SPECIAL_EXIT"):
                return
            if job.state == "PENDING":
                client.set_start(job, 0)
                return
        except SlurmUnavailable:
            pass
        except SlurmRefused:
            return
        time.sleep(1.0)


def _restart_rose(ctx, saved):
    """True when slurmd says that the job has been requeued since its prolog ran here."""
    return ctx.epilog_restart is not None and ctx.epilog_restart > saved.get("restart", 0)
