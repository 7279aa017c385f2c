"""Where a restarted job resumes: looked up as the job's user, left for its scripts, or the job is held or sent back.

Done in the Prolog of the batch host at every start that is a restart, also one that we did not cause. The same look,
taken beforehand at a requeue of our own, is only a hint: it saves the second verification while nothing changed.
"""
from __future__ import annotations

import json

from slurm_gpuhealth import paths, resume
from slurm_gpuhealth.actions import jobs
from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable
from slurm_gpuhealth.parse import comment as grammar
from slurm_gpuhealth.state import make_folder, write_atomic

_MIN_LOOK = 1.0         # seconds without which no look is begun


def at_restart(ctx):
    """Resolve and act; 0, the prolog's exit code. Only the batch host does anything: only it runs the script."""
    job = ctx.job
    if job.batch_host != ctx.host:
        return 0
    token = grammar.parse(job.comment)
    if token is None and not ctx.cfg["resume"]["default_pattern"]:
        return 0
    if job.uid == 0:
        # Root does not look at files on a job's word; `gpuhealth run` in the job itself does.
        ctx.event("unacted", action="resume", why="a job of root: its checkpoints are not looked at by the hook")
        return 0
    try:
        wanted = _request(ctx, job, token, job.restart)
    except (SlurmUnavailable, SlurmRefused) as exc:     # a placeholder that only slurmctld can fill in
        wanted, resolution = None, _could_not_look(str(exc))
    else:
        resolution = _look(ctx, job, wanted)
    answer = resume.plan_resume(resolution, token, job.id, job.restart, ctx.cfg["resume"], ctx.mode, wanted)
    return _act(ctx, job, answer, resolution)


def leave_in_hint(ctx, job, hint):
    """After a requeue of ours: look now, and put what was found into the comment, where time allows.

    The job's own start looks again and needs none of this; it is faster when this has been done.
    """
    if job.declared is None or not job.declared.ckpt or ctx.time_left(4.0) < _MIN_LOOK:
        return
    token = grammar.parse(job.comment)
    try:
        wanted = _request(ctx, job, token, job.restart + 1)
        resolution = _look(ctx, job, wanted)
        chosen = resolution.chosen if resolution is not None else None
        if chosen is None:
            return
        found = hint._replace(path=chosen.path, step=chosen.step, level=chosen.level, fp=chosen.fp)
        hinted = grammar.with_hint(job.comment, found)
        if hinted.kept == "all":
            ctx.slurm().set_comment(job, hinted.text)
    except (SlurmUnavailable, SlurmRefused) as exc:
        ctx.event("unacted", action="hint", why=str(exc), job=job)
        return
    ctx.event("resume-point", action="beforehand", job=job, path=chosen.path, step=chosen.step, level=chosen.level,
              mtime=chosen.mtime, passed=[list(item) for item in resolution.passed])


def _request(ctx, job, token, restart):
    """What to look for. Array ids and the job's name are known to slurmctld only; asked when the path needs them."""
    pattern = (token.ckpt if isinstance(token, grammar.Token) else "") or ctx.cfg["resume"]["default_pattern"]
    if job.array_job is None and any(hole in pattern for hole in ("{array_", "{job_name}")):
        asked = ctx.slurm().job(job.id, ctx.host)
        job = job._replace(array_job=asked.array_job, array_task=asked.array_task, name=asked.name)
    values = {"job_id": job.id, "array_job_id": job.array_job, "array_task_id": job.array_task,
              "job_name": job.name, "user": job.user}
    return resume.request(token, values, ctx.cfg["resume"], job.id, restart)


def _look(ctx, job, wanted):
    """find.Resolution of a request, or None when there is nothing to look for."""
    if wanted is None or isinstance(wanted, grammar.BadToken):
        return None
    from slurm_gpuhealth.checkpoint import as_user
    seconds = min(float(ctx.cfg["deadlines"]["resume"]), ctx.time_left(4.0))
    if seconds < _MIN_LOOK:
        return _could_not_look("no time left in this hook")
    name = "checkpoints:" + wanted.path
    if ctx.hangs(wanted.path) or ctx.still_left(name):
        return _could_not_look("%s does not answer" % grammar.shown(wanted.path))
    return as_user.resolve_as(job.uid, None, {"path": wanted.path, "accepts": list(wanted.accepts),
                                              "level": wanted.level, "known": wanted.known}, seconds,
                              lambda pid: ctx.remember_left(name, pid))


def _could_not_look(why):
    from slurm_gpuhealth.checkpoint import find
    return find.Resolution("could-not-look", reason=why)


def _act(ctx, job, answer, resolution):
    """Do what the answer says; the prolog's exit code (0 in any case: nothing is wrong with the node)."""
    chosen = resolution.chosen if resolution is not None else None
    passed = [list(item) for item in answer.passed]
    if answer.kind in (resume.RESUME, resume.START_OVER):
        if not leave_answer(ctx, job, answer):
            answer = answer._replace(message=answer.message + " (and could not be left for the job)")
        kind = "resume-point" if answer.kind == resume.RESUME else "job-started-over"
        ctx.event(kind, action=answer.kind, path=answer.path, step=answer.step, level=answer.level, passed=passed,
                  message=answer.message, mtime=chosen.mtime if chosen is not None else None)
        ctx.history(job, answer.kind, reason=answer.message, passed=[
            {"path": path, "reason": reason} for path, reason in answer.passed],
            resume={"path": answer.path, "step": answer.step, "level": answer.level})
        return 0
    if answer.kind == resume.HOLD:
        return _keep_from_starting(ctx, job, "hold", {"code": answer.code, "message": _bare(answer.message)})
    if answer.kind == resume.SEND_BACK:
        tries = ctx.memory.get("sent_back", {}).get(str(job.id), 0) + 1
        return _keep_from_starting(ctx, job, "send-back", {
            "code": answer.code, "message": _bare(answer.message), "tries": tries,
            "start_in": ctx.cfg["brake"]["send_back"] * tries})
    if answer.message:
        ctx.event("unacted", code=answer.code, action="resume", why=_bare(answer.message))
    return 0


def _bare(message):
    return message[len("gpuhealth: "):] if message.startswith("gpuhealth: ") else message


def _keep_from_starting(ctx, job, what, args):
    """Hold the job or send it back, and stay until it is no longer to be started."""
    args = dict(args, job=job.id, restart=job.restart, tag="%s.%s" % (job.id, job.restart))
    try:
        asked = jobs.complete(ctx, ctx.slurm().job(job.id, ctx.host))
        ctx.situation = ctx.situation._replace(jobs=(asked,))
        getattr(jobs, what.replace("-", "_"))(ctx, args)
        jobs.linger(ctx, args)
    except (SlurmUnavailable, SlurmRefused) as exc:
        # It starts without a resume point; its `gpuhealth run` looks for itself and refuses in the same cases.
        ctx.event("unacted", code=args.get("code", ""), action=what, why=str(exc))
    return 0


def leave_answer(ctx, job, answer):
    """Write /run/gpuhealth/job-ID.json, 0400 and the user's. False (and an event) when that fails."""
    folder = paths.under(ctx.root, paths.RUN)
    data = json.dumps(resume.record(answer)).encode("ascii")
    try:
        make_folder(folder, 0o711)
        import pwd
        owner = (job.uid, pwd.getpwuid(job.uid).pw_gid)
        write_atomic("%s/job-%d.json" % (folder, job.id), data, 0o400, owner=owner)
    except (OSError, KeyError) as exc:
        ctx.event("internal-error", code="GH-SELF", error="answer for the job: %s" % exc)
        return False
    return True
