"""End what a job left on its GPUs (`leftover: kill:`, epilog only): SIGTERM, SIGKILL, and what is left then.

Whom it is about was decided from what was read a moment ago. Right before each signal it is looked at again, through a
pidfd where the kernel has them, so that a pid that was given to somebody else meanwhile, a process of root's and one of
another job are never hit. What even SIGKILL does not end is put into the facts, and all is judged anew: it is a fault
of the node like any other.
"""
from __future__ import annotations

import os
import signal
import time

from slurm_gpuhealth import decide, supervise
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable
from slurm_gpuhealth.probes import processes

_AFTER_KILL = 4.0       # how long the driver may take to give back what a killed process held
_RESERVE = 4.0          # seconds of the hook that are kept for a drain afterwards
_SURE = 0.7             # between two looks at what is in D state after SIGKILL: who ran meanwhile is ending
_LOOK = 0.05
_LIMIT = 1000           # processes in one go
ENDED, STUCK, ALIVE, SPARED = "ended", "stuck", "alive", "spared"


def end_processes(ctx, args):
    """End the processes of the action, write down how it went, and act on what is stuck."""
    wanted = args["processes"][:_LIMIT]
    seconds = min(ctx.cfg["leftover"]["term_seconds"] + _AFTER_KILL, ctx.time_left(_RESERVE))
    if seconds < 2.0:
        ctx.event("unacted", code="GH-LEFTOVER", why="no time left to end processes")
        return
    spec = {"processes": wanted, "job": ctx.job.id if ctx.job else None, "until": time.monotonic() + seconds - _SURE,
            "term": min(ctx.cfg["leftover"]["term_seconds"], seconds / 2)}
    result = supervise.call(end, spec, seconds + 1.0, name="leftover")
    outcomes = {plain["pid"]: plain["outcome"] for kind, plain in result.records if kind == "process"}
    ctx.event("finding", code="GH-LEFTOVER", action="ended", severity="note",
              seen="%d of %d processes ended" % (sum(outcome == ENDED for outcome in outcomes.values()), len(wanted)),
              data={"processes": [dict(process, outcome=outcomes.get(process["pid"], "not looked at"))
                                  for process in wanted[:50]], "detail": result.status.detail})
    _judge_again(ctx, outcomes)


def _judge_again(ctx, outcomes):
    """The facts without what has ended; a node on which something is stuck is drained like for any other fault."""
    left = []
    for process in ctx.facts.processes if F.is_known(ctx.facts.processes) else ():
        outcome = outcomes.get(process.pid)
        if outcome == STUCK:
            # Where it waits now, after the kill: in the driver, or for a file system that is dead.
            process = process._replace(state="D", killed=True, driver=processes.waits_in_driver(process.pid))
        if outcome != ENDED:
            left.append(process)
    ctx.facts = ctx.facts._replace(processes=tuple(left))
    if STUCK not in outcomes.values():
        return
    from slurm_gpuhealth import actions
    from slurm_gpuhealth.evidence import replay
    ctx.findings = replay.findings_of(ctx.facts, ctx.cfg, ctx.phase)
    ctx.situation = ctx.situation._replace(incidents=tuple(item for item in ctx.incidents if not item.closed))
    ctx.plan = decide.decide(ctx.findings, ctx.situation, ctx.cfg)
    actions.perform(ctx, ctx.plan, only=("incident", "evidence"))
    ctx.plan = _settled(ctx)
    actions.perform(ctx, ctx.plan, skip=("incident", "evidence", "finding", "end-processes"))


def _settled(ctx):
    """The plan with what it needs of slurmctld asked; as far as that answers."""
    from slurm_gpuhealth.actions import lookups
    plan = ctx.plan
    for _ in range(len(decide.LOOKUPS)):
        if not plan.lookups or ctx.unreachable:
            break
        try:
            ctx.situation = lookups.ask(ctx, plan.lookups[0])
        except SlurmUnavailable as exc:
            ctx.unreachable = True
            ctx.event("spool", what="lookup " + plan.lookups[0], why=str(exc))
        except SlurmRefused as exc:
            ctx.event("unacted", why="slurmctld refused %s: %s" % (plan.lookups[0], exc))
            ctx.situation = lookups.refused(ctx, plan.lookups[0])
        plan = decide.decide(ctx.findings, ctx.situation, ctx.cfg)
    return plan


# -- in a child

def end(spec, emit):
    """Emit ("process", {"pid", "outcome"}) of each of spec["processes"] (dicts of pid, ticks, uid).

    spec: job: the one whose processes these may be; term: seconds between the two signals; until: monotonic.
    """
    targets = [_Target(process, spec["job"]) for process in spec["processes"]]
    started = time.monotonic()
    for number, until in ((signal.SIGTERM, started + spec["term"]), (signal.SIGKILL, spec["until"])):
        for target in targets:
            target.signal(number)
        while any(target.outcome is None for target in targets) and time.monotonic() < until:
            time.sleep(_LOOK)
            for target in targets:
                target.look()
    hanging = {target.pid: target.hanging() for target in targets if target.outcome is None}
    if any(hanging.values()):
        time.sleep(_SURE)
    for target in targets:
        target.look()
        if target.outcome is None:
            target.outcome = STUCK if hanging[target.pid] & target.hanging() else ALIVE
        emit("process", {"pid": target.pid, "outcome": target.outcome})
        target.close()


class _Target:
    """One process that is to end. outcome: None as long as it is to be seen."""

    def __init__(self, process, job):
        self.pid, self.ticks, self.uid, self.job = process["pid"], process["ticks"], process["uid"], job
        self.outcome, self._fd = None, -1
        if not isinstance(self.pid, int) or self.pid <= 1 or self.pid == os.getpid() or self.ticks is None:
            self.outcome = SPARED
            return
        if hasattr(os, "pidfd_open"):
            try:
                self._fd = os.pidfd_open(self.pid)
            except ProcessLookupError:
                self.outcome = ENDED
            except OSError:
                self._fd = -1       # a kernel before 5.3

    def look(self):
        """Note when it is gone. A zombie has ended: what is left of it is its parent's to collect."""
        if self.outcome is None and not supervise.still_there(self.pid, self.ticks) and not self._threads():
            self.outcome = ENDED

    def signal(self, number):
        """Send a signal, if this is still the process that is meant and it is still nobody else's business."""
        self.look()
        if self.outcome is not None:
            return
        if not self._may_be_ended():
            self.outcome = SPARED
            return
        try:
            if self._fd >= 0:
                signal.pidfd_send_signal(self._fd, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            self.outcome = ENDED
        except OSError:
            self.outcome = ALIVE

    def _may_be_ended(self):
        # The pidfd was opened before this: where all of this holds now, it is this process that the pidfd stands for.
        try:
            effective = os.stat("/proc/%d" % self.pid).st_uid
        except OSError:
            return False
        job = processes.job_at("", self.pid, processes.parent_of(self.pid))
        return (effective == self.uid and processes.is_person(effective)
                and processes.is_person(processes.real_uid("", self.pid) or 0)
                and (job is None or (job == self.job and job != processes.UNNUMBERED))
                and bool(self._threads()))

    def hanging(self):
        """{(thread, how often it was switched)} of the threads in D state."""
        return {(thread, processes.switches_of(self.pid, thread)) for thread, state in self._threads() if state == "D"}

    def _threads(self):
        """[(thread, state)] of this very process that are not over; [] when it is gone."""
        main = supervise.process_start(self.pid)
        if main is None or main[1] != self.ticks:
            return []
        return [item for item in processes.threads_of(self.pid) if item[1] not in "ZX"]

    def close(self):
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
