"""Epilog and what a job left on its GPUs: whom it ends, whom never, and what it does about what cannot be ended."""
import os
import signal
import subprocess
import time

import builders
import pytest

from slurm_gpuhealth import decide, model, supervise
from slurm_gpuhealth.actions import leftover
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.context import Context
from slurm_gpuhealth.probes import processes
from slurm_gpuhealth.state import State

pytestmark = [pytest.mark.allow_subprocess,
              pytest.mark.skipif(os.getuid() != 0, reason="only root can start and end other users' processes")]

USER = 54321
OBSTINATE = "trap '' TERM; echo 1; exec sleep 60"
WILLING = "echo 1; exec sleep 60"


@pytest.fixture
def start():
    """Start a program as a user: its Popen."""
    started = []

    def run(code, uid=USER):
        one = subprocess.Popen(["/bin/sh", "-c", code], stdout=subprocess.PIPE, user=uid, cwd="/")
        one.stdout.readline()
        started.append(one)
        return one
    yield run
    for one in started:
        one.kill()
        one.wait()
        one.stdout.close()


def about(one, **changes):
    return {"pid": one.pid, "ticks": supervise.process_start(one.pid)[1], "uid": USER, **changes}


def end(*wanted, job=77, term=0.5, seconds=3.0):
    spec = {"processes": list(wanted), "job": job, "until": time.monotonic() + seconds, "term": term}
    result = supervise.call(leftover.end, spec, seconds + 3.0)
    assert result.status.outcome == "ok", result.status.detail
    return [plain["outcome"] for _, plain in result.records]


def test_term_first_then_kill(start):
    """Who ends on SIGTERM is given the time to; who does not gets SIGKILL."""
    willing, obstinate = start(WILLING), start(OBSTINATE)
    assert end(about(willing), about(obstinate)) == ["ended", "ended"]
    assert willing.wait(5) == -signal.SIGTERM
    assert obstinate.wait(5) == -signal.SIGKILL


def test_pid_of_somebody_else_meanwhile(start):
    """Another start time under the same pid is another process: it is left alone."""
    one = start(WILLING)
    wanted = about(one)
    assert end(dict(wanted, ticks=wanted["ticks"] - 1)) == ["ended"]
    assert end(dict(wanted, uid=USER + 1)) == ["spared"]
    assert one.poll() is None


def test_root_and_the_first_pids_are_never_hit(start):
    """Neither pid 1 nor a process of root's, whatever the plan says."""
    one = start(WILLING, uid=0)
    assert end(about(one, uid=0), about(one, pid=1), about(one, pid=0), about(one, pid=-1), about(one, pid="7"),
               about(one, ticks=None)) == ["spared"] * 6
    assert one.poll() is None


@pytest.mark.parametrize("job,outcome", [
    (78, "spared"), (processes.UNNUMBERED, "spared"), (77, "ended"), (None, "ended")])
def test_process_of_another_job(start, monkeypatch, job, outcome):
    """The cgroup is looked at again right before each signal."""
    monkeypatch.setattr(processes, "job_at", lambda root, pid, parent: job)
    assert end(about(start(WILLING))) == [outcome]


def test_without_pidfd(start, monkeypatch):
    """A kernel before 5.3 and Python without it: by pid, looked at just before."""
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert end(about(start(WILLING))) == ["ended"]


@pytest.mark.parametrize("switches,outcome", [(lambda: 7, "stuck"), (iter(range(99)).__next__, "alive")])
def test_what_no_signal_ends(start, monkeypatch, switches, outcome):
    """In D state without having run once: stuck. In D state and still at work: it is ending."""
    one = start(WILLING)
    monkeypatch.setattr(leftover.signal, "pidfd_send_signal", lambda fd, number: None, raising=False)
    monkeypatch.setattr(leftover.os, "kill", lambda pid, number: None)
    monkeypatch.setattr(processes, "threads_of", lambda pid: [(pid, "D")])
    monkeypatch.setattr(processes, "switches_of", lambda pid, thread: switches())
    spec = {"processes": [about(one)], "job": 77, "until": time.monotonic() + 0.3, "term": 0.1}
    said = []
    leftover.end(spec, lambda kind, plain: said.append(plain))
    monkeypatch.undo()
    assert said == [{"pid": one.pid, "outcome": outcome}]


def place(node, one, job=None):
    """The process as the fixture node shows it: it holds GPU 3."""
    folder = node.path("/proc/%d" % one.pid)
    with open("/proc/%d/stat" % one.pid) as handle:
        text = handle.read()
    node.write({"/proc/%d/stat" % one.pid: text,
                "/proc/%d/status" % one.pid: "Uid:\t%d\t%d\t%d\t%d\n" % ((USER,) * 4),
                "/proc/%d/cgroup" % one.pid: "0::/x/slurmstepd.scope/job_%d/step_0\n" % job if job else "0::/\n"})
    os.mkdir(folder + "/fd")
    os.symlink("/dev/nvidia3", folder + "/fd/7")
    os.symlink("/home/alice/python3", folder + "/exe")


@pytest.mark.parametrize("changes,ended", [
    ({"leftover": {"kill": True, "term_seconds": 1}}, True), ({}, False),
    ({"mode": "observe", "leftover": {"kill": True, "term_seconds": 1}}, False)])
def test_epilog(node, start, changes, ended):
    """With `leftover: kill:` the process is ended; without, and in observe mode, a warning. Nothing is drained."""
    one = start(WILLING)
    place(node, one)
    node.config.update(changes)
    node.save()
    assert node.hook("epilog", 7)[0] == 0
    said = [event for event in node.events("finding") if event["code"] == "GH-LEFTOVER"]
    assert str(one.pid) in said[0]["detail"]["seen"] and said[0]["subject"].startswith("gpu3")
    assert [event["detail"]["seen"] for event in said if event["action"] == "ended"] == (
        ["1 of 1 processes ended"] if ended else [])
    assert (one.poll() is not None) == ended
    assert node.slurm.changes() == []


def test_epilog_leaves_other_jobs_alone(node, start):
    """The process of another job on the same GPU is no finding at all."""
    one = start(WILLING)
    place(node, one, job=8)
    node.config["leftover"] = {"kill": True, "term_seconds": 1}
    node.save()
    assert node.hook("epilog", 7)[0] == 0
    assert node.events() == [] and one.poll() is None


def context(node, process):
    """An epilog of job 77 that has just looked."""
    cfg = overlay(DEFAULTS, {"mode": "full", "leftover": {"kill": True}})
    ctx = Context("epilog", node.root, "n1", cfg, State(node.root), time.monotonic() + 20, lambda kind, value: None)
    ctx.mode = "full"
    ctx.job = model.Job(77, uid=USER, gpus=(3,), has_baseline=True, partition="main")
    ctx.facts = builders.healthy_node(phase="epilog", job=77, job_gpus=(3,), processes=(process,))
    ctx.gathered = type("Gathered", (), {"lines": (), "cursor": None})
    ctx.situation = model.Situation("epilog", "n1", ctx.facts.time, ctx.facts.boot_id, "full", ctx.job)
    from slurm_gpuhealth.evidence import replay
    ctx.findings = replay.findings_of(ctx.facts, cfg, "epilog")
    ctx.plan = decide.decide(ctx.findings, ctx.situation, cfg)
    return ctx


@pytest.mark.parametrize("away", [False, True])
def test_what_cannot_be_ended_drains_the_node(node, away, monkeypatch):
    """Evidence, drain with GH-LEFT-STUCK; with slurmctld away the incident stays for the next hook."""
    from slurm_gpuhealth.evidence import replay
    process = builders.gpu_process(minors=(3,), job=77)
    ctx = context(node, process)
    assert [action.kind for action in ctx.plan.actions] == ["finding", "end-processes"]
    node.add_job(77)
    if away:
        node.slurm.set(away=-1)
    monkeypatch.setattr(leftover.processes, "waits_in_driver", lambda pid: True)
    leftover._judge_again(ctx, {4711: leftover.STUCK})
    assert [finding.code for finding in ctx.findings] == ["GH-LEFT-STUCK"]
    (incident,) = ctx.incidents
    assert (incident.code, incident.drained) == ("GH-LEFT-STUCK", not away)
    record = node.slurm.node("n1")
    assert record["reason"].startswith("GH-LEFT-STUCK gpu3") != away
    (folder,) = node.evidence()
    again = replay.findings_of(ctx.facts, ctx.cfg, "epilog")
    assert again == ctx.findings and folder


def test_what_waits_for_a_dead_file_system_drains_nothing(node, monkeypatch):
    """An outage of the storage must not drain each node whose job ends, and blame the GPU."""
    ctx = context(node, builders.gpu_process(minors=(3,), job=77))
    monkeypatch.setattr(leftover.processes, "waits_in_driver", lambda pid: False)
    leftover._judge_again(ctx, {4711: leftover.STUCK})
    assert [(finding.code, finding.severity) for finding in ctx.findings] == [("GH-LEFTOVER", "warning")]
    assert ctx.incidents == [] and node.slurm.calls() == []


def test_what_has_ended_is_no_fault(node):
    """All ended: the facts say so, and nothing is drained."""
    ctx = context(node, builders.gpu_process(minors=(3,), job=77))
    leftover._judge_again(ctx, {4711: leftover.ENDED})
    assert ctx.facts.processes == () and ctx.incidents == [] and node.slurm.calls() == []
