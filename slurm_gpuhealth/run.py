"""One run of a hook: look, gather, check, decide, act. The only module that sees the core and the shell.

The healthy path reads the node, writes the job's baseline (prolog) or the node's memory (healthcheck), and calls
nothing: no program, no slurmctld. Everything else happens under the node's lock, in the order of the plan.
"""
from __future__ import annotations

import os

from slurm_gpuhealth import config, decide, events, memory, paths, supervise
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.context import Context
from slurm_gpuhealth.errors import ConfigError, SlurmRefused, SlurmUnavailable, StateError
from slurm_gpuhealth.gather import gather_facts
from slurm_gpuhealth.model import (
    DRAIN,
    EPILOG,
    FATAL,
    FULL,
    HEALTHCHECK,
    OBSERVE,
    PROLOG,
    UNREAD,
    NodeRecord,
    Situation,
    worst,
)
from slurm_gpuhealth.probes import gpus_expected
from slurm_gpuhealth.state import State

_EVIDENCE = ("incident", "evidence")
_ISOLATE = ("drain", "already-drained", "restore-reason", "brake")
# Seconds of a hook's deadline that are kept for acting on what was found.
_FOR_ACTING = {PROLOG: 5.0, EPILOG: 5.0, HEALTHCHECK: 10.0}
# slurmd ends a HealthCheckProgram after 60 s (built in before 26.05); a longer deadline would lose the drain.
_SLURMD_ENDS = 58.0


def run(phase, env, root, started, tell, last_words=0.3, warm=None):
    """Run the hook and return its exit status. Called by hook.py in the worker process.

    env: the hook's environment. started: monotonic time at which the hook began. tell(kind, value): to the
    guard. last_words: seconds before the deadline at which this must be over. warm: probes.warm.Warm, or None.
    """
    host = node_name(env)
    try:
        compiled, notes = config.read(root)
        cfg, more = config.from_compiled(compiled, host)
        notes += more
    except ConfigError as exc:      # somebody else could have written it: not to be believed
        compiled, cfg, notes = None, config.from_compiled(None)[0], [str(exc)]
    until = started + cfg["deadlines"][phase] - last_words
    tell("deadline", cfg["deadlines"][phase])
    tell("policy", 1 if cfg["on_internal_error"][phase] == "drain" and cfg["mode"] != OBSERVE else 0)
    ctx = Context(phase, root, host, cfg, State(root), until, tell)
    ctx.warm = warm
    ctx.woken = phase == HEALTHCHECK and bool(env.get("GPUHEALTH_WOKEN"))
    seen = _look(ctx)
    if seen.get("off"):
        return 0
    ctx.expected = F.from_plain(seen["expected"], F.Expected) if "expected" in seen else None
    remember_expected(ctx, seen)
    ctx.etc_answers = "yaml" in seen
    stale = config_is_stale(compiled, seen, host)
    if phase == HEALTHCHECK and stale:
        ctx.cfg = renew_config(ctx, notes)
    elif stale or notes:
        ctx.say_once("config", "configuration: " + "; ".join(notes or ["the compiled copy is older than the file"]))
    return _Run(ctx, env).go()


def _look(ctx):
    """What lies in /etc: {kind: plain} of as much as could be seen within `deadlines.config`."""
    from slurm_gpuhealth.probes import node
    ctx.early_boot_id = node.read_node(ctx.root)["boot_id"]
    if ctx.still_left("config"):
        return {}           # the one before still hangs there
    try:
        looking = supervise.start("config", look, _about(ctx), ctx.cfg["deadlines"]["config"])
    except OSError:
        return {}           # no pids, no memory: as if /etc did not answer
    preload(ctx.phase)      # on the other core
    result = supervise.gather([looking], grace=0.2)["config"]
    ctx.remember_left("config", result.status.pid)
    return dict(result.records)


def _about(ctx):
    asked = {"host": ctx.host, "known": ctx.memory.get("gpus", []),
             "cfg": {"expected_gpus": ctx.cfg["expected_gpus"], "slurm": ctx.cfg["slurm"]}}
    remembered = ctx.memory.get("expected")
    return dict(asked, root=ctx.root,
                remembered=remembered if remembered is not None and remembered["asked"] == asked else None)


def preload(phase):
    """Import what the next steps need; called while a child works, so that it costs no time of its own."""
    if phase in (PROLOG, EPILOG):
        import slurm_gpuhealth.actions.jobs  # noqa: F401


def preload_checks(cfg, phase):
    """The same for the checks, while the probes read."""
    from slurm_gpuhealth import checks
    for name in checks.names(cfg, phase):
        __import__("slurm_gpuhealth.checks." + checks.CHECKS[name].module)


def node_name(env):
    """Slurm's name of this node. Prolog and Epilog have it as SLURMD_NODENAME too (22.05: host name's first part)."""
    return env.get("SLURMD_NODENAME") or os.uname().nodename.split(".")[0]


def look(spec, emit):
    """In a child, as /etc may lie on a file system that is dead just now: kill switch, configuration, and on a node
    whose GPUs were never seen also Slurm's files. Elsewhere those are read beside the probes."""
    root = spec["root"]
    off = os.path.lexists(paths.under(root, paths.KILL_SWITCH))
    emit("off", off)
    if off:
        return
    try:
        found = os.stat(paths.under(root, paths.CONFIG))
        emit("yaml", [found.st_mtime_ns, found.st_size, found.st_ino])
    except FileNotFoundError:
        emit("yaml", None)
    if spec["remembered"] is not None and gpus_expected.unchanged(root, spec["remembered"]["files"]):
        emit("expected", spec["remembered"]["expected"])
    elif not spec["known"]:
        ask_expected(spec, emit)


def ask_expected(spec, emit):
    """In a child: how many GPUs the configuration or Slurm's files say there are."""
    known = [F.KnownGpu(**entry) for entry in spec["known"]]
    files: list = []
    emit("expected", F.to_plain(gpus_expected.expected(spec["cfg"], spec["root"], spec["host"], known, files)))
    emit("files", files)


def remember_expected(ctx, seen):
    """Keep the number of GPUs that Slurm's files gave with what those files looked like: next time a look suffices."""
    if "files" in seen:
        about = _about(ctx)
        ctx.memory["expected"] = {"asked": {name: about[name] for name in ("host", "known", "cfg")},
                                  "files": seen["files"], "expected": seen["expected"]}
        ctx.dirty.add("memory")


def config_is_stale(compiled, seen, host):
    """Whether the compiled copy no longer fits the file; False when nobody could look."""
    if "yaml" not in seen:
        return False
    plain = seen["yaml"]
    fake = None if plain is None else os.stat_result(
        (0, plain[2], 0, 0, 0, 0, plain[1], 0, 0, 0), {"st_mtime_ns": plain[0]})
    return config.is_stale(compiled, fake, host)


def renew_config(ctx, notes):
    """Healthcheck makes a new compiled copy (YAML is read in a child, which may hang or fail)."""
    def compile_it(spec, emit):
        from slurm_gpuhealth import config_schema
        config_schema.refresh(spec["root"], spec["host"])
    result = supervise.call(compile_it, {"root": ctx.root, "host": ctx.host}, ctx.cfg["deadlines"]["command"],
                            name="config")
    if result.status.outcome != "ok":
        ctx.say_once("config", "configuration not renewed: " + result.status.detail, code="GH-CONFIG")
        return ctx.cfg
    return config.load(ctx.root, ctx.host)[0]


def report_internal_error(phase, root, text):
    """Write an event about a fault of our own; called by hook.py as the last thing it does."""
    one = events.event("internal-error", node_name(os.environ), code="GH-SELF", action=phase,
                       detail={"error": text, "phase": phase})
    events.record(root, one)


class _Run:
    """The steps of one run, in the order in which they are written."""

    def __init__(self, ctx, env):
        self.ctx, self.env = ctx, env

    def go(self):
        ctx = self.ctx
        if ctx.phase in (PROLOG, EPILOG):
            from slurm_gpuhealth.actions import jobs
            ctx.job = jobs.from_environment(ctx, self.env)
        ctx.mode = self.strongest_mode()
        self.gather()
        plan = self.decide_quietly()
        if self.is_quiet(plan):
            return self.healthy(plan)
        # Should the guard have to end this before the brake has been counted: an outage must not drain by exit code.
        uncounted = any(action.kind == "drain" and action.args["brake"] and "limit" not in action.args
                        for action in plan.actions)
        ctx.tell("verdict", 0 if uncounted else plan.exit_code)
        return self.faulty()

    # -- what is there

    def strongest_mode(self):
        """The mode, by the job's partition where there is one. Without, the strongest that may apply: the node's
        partitions are asked for before anything is done (see settle)."""
        ctx = self.ctx
        if ctx.job is not None:
            return config.mode_for(ctx.cfg, [ctx.job.partition])
        names = {name for entry in ctx.cfg["modes"] for name in entry.get("partitions") or ()}
        found = {config.mode_for(ctx.cfg)} | {config.mode_for(ctx.cfg, [name]) for name in names}
        return next(mode for mode in (FULL, DRAIN, OBSERVE) if mode in found)

    def gather(self):
        ctx = self.ctx
        extra = ctx.cfg["deadlines"]["nvml_per_gpu"] * len(ctx.memory.get("gpus", ())) \
            if ctx.memory.get("persistence") == 0 else 0
        if ctx.phase == HEALTHCHECK:
            extra = max(0, min(extra, _SLURMD_ENDS - ctx.cfg["deadlines"][HEALTHCHECK]))
        if extra:
            ctx.until += extra
            ctx.tell("deadline", ctx.cfg["deadlines"][ctx.phase] + extra)
        asking = None
        if ctx.expected is None and ctx.etc_answers:
            try:
                asking = supervise.start("expected", ask_expected, _about(ctx), ctx.cfg["deadlines"]["config"])
            except OSError:
                asking = None
        ctx.gathered = gather_facts(ctx.cfg, ctx.phase, ctx.job, ctx.root, ctx.until - _FOR_ACTING[ctx.phase],
                                    ctx.state, ctx.memory, ctx.host, ctx.expected, asking,
                                    lambda: preload_checks(ctx.cfg, ctx.phase), ctx.warm, not ctx.woken)
        if asking is not None:
            remember_expected(ctx, ctx.gathered.asked)
        ctx.facts = ctx.gathered.facts
        if ctx.gathered.left or ctx.state.left_behind(ctx.facts.boot_id):
            self.keep(lambda: ctx.state.save_left_behind(ctx.facts.boot_id, ctx.gathered.left))
        if memory.rounds(ctx.facts) != ctx.memory.get("rounds", {}):
            ctx.dirty.add("memory")     # also back to none: late now and late next week are not two in a row
        ctx.facts = memory.with_xid_jobs(ctx)
        from slurm_gpuhealth import checks
        results = checks.run_checks(ctx.facts, ctx.cfg, ctx.phase)
        ctx.seen = [finding for result in results for finding in result.findings]
        ctx.findings = checks.merge(results)    # as evidence.replay.findings_of does
        for note in ctx.state.notes:
            ctx.say_once("state", note, code="GH-SELF")

    def keep(self, write):
        """Write to the node's memory; a disk that refuses is said and does not stop the hook."""
        try:
            write()
        except StateError as exc:
            self.ctx.say_once("state", str(exc), code="GH-SELF")

    def situation(self):
        ctx = self.ctx
        return Situation(
            phase=ctx.phase, node=ctx.host, now=ctx.facts.time, boot_id=ctx.facts.boot_id, mode=ctx.mode,
            job=ctx.job, incidents=tuple(item for item in ctx.incidents if not item.closed), acks=tuple(ctx.acks),
            clean_rounds=ctx.memory.get("clean_rounds", 0), tries=ctx.memory.get("sent_back", {}).get(
                str(ctx.job.id), 0) if ctx.job else 0,
            whole_node_gpus=ctx.facts.expected.gpus if F.is_known(ctx.facts.expected.gpus) else 0)

    def decide_quietly(self):
        ctx = self.ctx
        ctx.situation = self.situation()
        if ctx.phase == HEALTHCHECK:
            fine = worst(decide.weigh(ctx.findings, ctx.situation, ctx.cfg)) not in (FATAL, UNREAD)
            ctx.memory["clean_rounds"] = ctx.memory.get("clean_rounds", 0) + (not ctx.woken) if fine else 0
            ctx.situation = ctx.situation._replace(clean_rounds=ctx.memory["clean_rounds"])
        return decide.decide(ctx.findings, ctx.situation, ctx.cfg)

    def is_quiet(self, plan):
        """Nothing to do but to write down: no slurmctld, no lock needed before."""
        return not plan.lookups and all(action.kind == "finding" for action in plan.actions)

    # -- nothing wrong

    def healthy(self, plan):
        ctx = self.ctx
        for action in plan.actions:
            ctx.finding_once(action.args)
        if ctx.phase == HEALTHCHECK:
            self.remember()
            from slurm_gpuhealth.actions import housekeeping
            housekeeping.after_healthcheck(ctx)
        elif ctx.phase == PROLOG and ctx.job is not None:
            if memory.learnt_gpus(ctx):
                ctx.dirty.add("memory")     # once: the epilog must know the GPUs by name even when one is gone
            self.close_resumed()
            self.starts_here()
        elif ctx.phase == EPILOG and ctx.job is not None:
            self.after_job()
        self.flush_spool()
        if ctx.dirty:
            self.remember()
        return plan.exit_code

    def close_resumed(self):
        """A job starts here, so the node is not drained: what we drained for was resumed by somebody."""
        ctx = self.ctx
        before = ctx.facts.time - decide.ON_ITS_WAY
        drained = [item.id for item in ctx.incidents if item.drained and not item.closed and item.opened < before]
        if drained:
            from slurm_gpuhealth.actions import record
            ctx.state.lock(ctx.cfg["deadlines"]["lock"])
            try:
                ctx.incidents, ctx.acks = ctx.state.incidents()
                record.close(ctx, {"ids": drained, "why": "node was resumed"})
            finally:
                ctx.state.unlock()

    def starts_here(self):
        """The job is going to run on this node: keep its baseline; where it restarts, find its resume point."""
        ctx = self.ctx
        self.keep(lambda: ctx.state.save_job(ctx.job.id, memory.job_baseline(ctx)))
        if ctx.job.restart > 0 and ctx.mode != OBSERVE:
            from slurm_gpuhealth.actions import resume_point
            resume_point.at_restart(ctx)

    def after_job(self):
        """Epilog of a healthy node: remember what the job's own errors were, renew its start time, forget it."""
        ctx = self.ctx
        from slurm_gpuhealth.actions import jobs
        jobs.renew_start(ctx)
        if memory.saw_user_xids(ctx):
            self.remember()
        jobs.forget(ctx)

    def remember(self):
        """Write node.json under the lock, with what others wrote meanwhile kept."""
        ctx = self.ctx
        ctx.state.lock(ctx.cfg["deadlines"]["lock"])
        try:
            self.keep(lambda: ctx.state.write("node.json", memory.merged(ctx)))
            ctx.dirty.clear()
        finally:
            ctx.state.unlock()

    def flush_spool(self):
        if self.ctx.state.names("spool"):
            from slurm_gpuhealth.actions import spool
            spool.flush(self.ctx)

    # -- something wrong

    def faulty(self):
        ctx = self.ctx
        from slurm_gpuhealth import actions
        if not ctx.state.lock(min(ctx.cfg["deadlines"]["lock"], ctx.time_left(3))):
            ctx.event("internal-error", code="GH-SELF", error="the node's lock was not to be had; going on without")
        try:
            ctx.incidents, ctx.acks = ctx.state.incidents()     # as another hook may just have left them
            ctx.situation = self.situation()
            plan = ctx.plan = decide.decide(ctx.findings, ctx.situation, ctx.cfg)
            # Evidence before anything is asked; the drain before the jobs are asked about: each may take seconds.
            actions.perform(ctx, plan, only=_EVIDENCE)
            plan = ctx.plan = self.settle(plan, ("node", "brake"))
            actions.perform(ctx, plan, only=_ISOLATE)
            # Made again, as the brake may have taken the drain back.
            plan = decide.decide(ctx.findings, ctx.situation, ctx.cfg)
            plan = ctx.plan = self.settle(plan, decide.LOOKUPS)
            ctx.tell("verdict", plan.exit_code)
            self.mark_pending(plan)
            if ctx.phase == EPILOG and "job" in plan.lookups:
                from slurm_gpuhealth.actions import spool
                spool.keep_epilog(ctx)
            actions.perform(ctx, plan, skip=_EVIDENCE + _ISOLATE)
            self.keep(lambda: ctx.state.write("node.json", memory.merged(ctx)))
            ctx.dirty.clear()
            self.keep(lambda: ctx.state.save_incidents(ctx.incidents, ctx.acks))
        finally:
            ctx.state.unlock()
        self.after_fault(plan)
        return plan.exit_code

    def mark_pending(self, plan):
        """Health check: whether slurmctld still has to say which jobs run here. A fault that is shown once only would
        else never reach them."""
        ctx = self.ctx
        if ctx.phase != HEALTHCHECK:
            return
        waiting = "jobs" in plan.lookups
        ctx.incidents = [item if item.closed or item.boot_id != ctx.facts.boot_id or item.pending == waiting
                         or (waiting and not self.is_of_this_round(item)) else item._replace(pending=waiting)
                         for item in ctx.incidents]

    def is_of_this_round(self, incident):
        """Whether one of this round's faults belongs to this incident."""
        from slurm_gpuhealth.actions import record
        situation = self.ctx.situation._replace(incidents=tuple(self.ctx.incidents))
        return any(decide.incident_of(finding, situation) == incident for finding in record.fatal_findings(self.ctx))

    def settle(self, plan, names):
        """Ask slurmctld for those of `names` that the plan still needs, until it has them or gets no answer."""
        from slurm_gpuhealth.actions import lookups
        ctx = self.ctx
        for _ in range(5):
            asked = [name for name in plan.lookups if name in names]
            if not asked or ctx.unreachable:
                break
            for name in asked:
                try:
                    ctx.situation = lookups.ask(ctx, name)
                except SlurmUnavailable as exc:
                    ctx.unreachable = True
                    ctx.event("spool", what="lookup " + name, why=str(exc))
                    break
                except SlurmRefused as exc:
                    ctx.event("unacted", why="slurmctld refused %s: %s" % (name, exc))
                    if not lookups.is_gone(exc):
                        ctx.unreachable = True      # as good as no answer: a later hook asks again
                        break
                    ctx.situation = lookups.refused(ctx, name)
            if isinstance(ctx.situation.node_record, NodeRecord) and ctx.job is None:
                ctx.mode = config.mode_for(ctx.cfg, ctx.situation.node_record.partitions)
                ctx.situation = ctx.situation._replace(mode=ctx.mode)
            plan = decide.decide(ctx.findings, ctx.situation, ctx.cfg)
        return plan

    def after_fault(self, plan):
        """What also follows when the fault did not touch this hook's job."""
        ctx = self.ctx
        if ctx.phase == EPILOG and ctx.job is not None:
            from slurm_gpuhealth.actions import jobs
            jobs.renew_start(ctx)
            jobs.forget(ctx)
        touched = any(action.kind in ("requeue", "send-back", "hold") for action in plan.actions)
        if ctx.phase == PROLOG and ctx.job is not None and plan.exit_code == 0 and not touched:
            self.starts_here()      # on its healthy GPUs
        from slurm_gpuhealth.actions import housekeeping
        housekeeping.after_fault(ctx)
        if ctx.phase == HEALTHCHECK:
            housekeeping.after_healthcheck(ctx)     # an incident may stand for weeks
        self.flush_spool()
        if ctx.dirty:
            self.remember()
