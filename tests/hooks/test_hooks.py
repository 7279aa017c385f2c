"""The hooks as slurmd runs them, on a fixture node: what they call, what they leave, what they exit with."""
import json
import os
import stat
import sys
import time

import pytest

pytestmark = pytest.mark.allow_subprocess


def kinds(node):
    return [event["kind"] for event in node.events()]


def test_healthy_hooks_call_nobody(node):
    """With nothing wrong: exit 0, no event, no program, no slurmctld."""
    for phase, job in (("healthcheck", None), ("prolog", 7), ("epilog", 7)):
        code, out, _ = node.hook(phase, job)
        assert (code, out) == (0, "")
    assert node.slurm.calls() == []
    assert node.events() == []


def test_prolog_keeps_the_jobs_baseline_and_epilog_forgets_it(node):
    """Epilog charges to the job what is new since its prolog; after that the baseline is of no more use."""
    node.hook("prolog", 7)
    path = node.path("/var/lib/gpuhealth/jobs/7.json")
    with open(path, encoding="utf-8") as handle:
        saved = json.load(handle)
    gpus = [key for key in saved["counters"] if key.startswith("GPU-") and "/" not in key]
    assert (saved["gpus"], saved["restart"], len(gpus)) == ([2, 3], 0, 8)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    node.hook("epilog", 7)
    assert not os.path.exists(path)


def test_fault_in_prolog(node):
    """Drained with a readable reason, requeued with an early start, exit 1: the job never starts here."""
    node.xid(79, 3)
    node.lose(3)
    node.add_job(7)
    code, _, _ = node.hook("prolog", 7)
    assert code == 1
    record = node.slurm.node("n1")
    assert "DRAIN" in record["state"] and record["reason"].startswith("GH-XID79 gpu3")
    changes = [" ".join(argv) for argv in node.slurm.changes()]
    assert "requeue 7" in changes[1] and "StartTime" in changes[2]
    assert node.slurm.job(7)["restarts"] == 1
    assert len(node.evidence()) == 1
    steps = ["incident", "drain", "requeue"]
    assert [kind for kind in kinds(node) if kind in steps] == steps


def test_evidence_is_there_before_the_drain(node):
    """Evidence first: when slurmctld is asked for the drain, facts.json lies on the disk already."""
    node.lose(3)
    node.slurm.set(away=-1)
    node.hook("healthcheck")
    folder = node.path("/var/lib/gpuhealth/evidence/" + node.evidence()[0])
    assert os.path.exists(folder + "/facts.json")
    assert node.slurm.changes() == [] or "update" in node.slurm.changes()[0]


def test_fault_elsewhere_lets_the_job_run(node):
    node.xid(79, 6)
    node.add_job(7)
    assert node.hook("prolog", 7)[0] == 0
    assert node.slurm.node("n1")["reason"].startswith("GH-XID79 gpu6")
    assert node.slurm.job(7)["restarts"] == 0
    assert os.path.exists(node.path("/var/lib/gpuhealth/jobs/7.json"))


def test_healthcheck_requeues_the_job_on_the_lost_gpu(node):
    node.add_job(7)
    node.add_job(8, gpus={"n1": [0, 1]})
    node.hook("prolog", 7)
    node.xid(79, 3)
    assert node.hook("healthcheck")[0] == 0
    assert (node.slurm.job(7)["restarts"], node.slurm.job(8)["restarts"]) == (1, 0)
    comment = node.slurm.job(7)["comment"]
    assert "for=7.1" in comment and "tries=1" in comment and "ckpt=/ckpt/run7" in comment


def test_same_fault_again_is_the_same_incident(node):
    """The next rounds see the lost GPU: no second evidence, drain, requeue or incident."""
    node.add_job(7)
    node.xid(79, 3)
    node.hook("healthcheck")
    node.lose(3)
    before = len(node.slurm.changes())
    for _ in range(3):
        node.hook("healthcheck")
    assert len(node.slurm.changes()) == before
    assert len(node.evidence()) == 1 and len(node.incidents()) == 1
    assert kinds(node).count("requeue") == 1


def test_two_hooks_at_the_same_moment(node):
    """One evidence folder, one drain, one requeue."""
    node.add_job(7)
    node.xid(79, 3)
    node.lose(3)
    running = [node.start("healthcheck"), node.start("healthcheck"), node.start("prolog", 7)]
    for process in running:
        process.communicate(timeout=30)
    changes = [" ".join(argv) for argv in node.slurm.changes()]
    assert sum("State=DRAIN" in line for line in changes) == 1
    assert len(node.evidence()) == 1
    assert node.slurm.job(7)["restarts"] == 1


@pytest.mark.parametrize("changes,requeued", [
    ({"states": ["FAILED", "COMPLETING"], "exit_code": "1:0", "reason": "NonZeroExitCode"}, True),
    ({"states": ["COMPLETED", "COMPLETING"]}, False),
    ({"states": ["CANCELLED", "COMPLETING"], "exit_code": "0:15"}, False),
    ({"states": ["TIMEOUT", "COMPLETING"], "exit_code": "0:15", "reason": "TimeLimit"}, False),
    ({"states": ["FAILED", "COMPLETING"], "exit_code": "93:0", "reason": "NonZeroExitCode"}, False),
    ({"states": ["FAILED", "COMPLETING"], "exit_code": "1:0", "reason": "NonZeroExitCode", "requeue": False}, False),
])
def test_epilog_after_the_job(node, changes, requeued):
    """Only a job that failed, on a fault that is new since its start, is brought back."""
    node.add_job(7, start=int(__import__("time").time()) - 60)
    node.hook("prolog", 7)
    node.xid(79, 3, age=1)
    node.add_job(7, start=int(__import__("time").time()) - 60, **changes)
    assert node.hook("epilog", 7)[0] == 0
    assert (node.slurm.job(7)["restarts"] == 1) is requeued
    assert node.slurm.node("n1")["reason"].startswith("GH-XID79 gpu3")


def test_user_caused_xid_drains_nothing(node):
    """31 is a note; the event is there once, not once a round."""
    node.xid(31, 3, "pid=77, name=python, MMU Fault")
    node.hook("prolog", 7)
    node.hook("healthcheck")
    assert node.slurm.calls() == []
    assert [(event["kind"], event["code"]) for event in node.events()] == [("finding", "GH-XID-USER")]


def test_user_caused_xid_on_one_gpu_across_jobs(node):
    """The same GPU under two different jobs: not the job, the GPU."""
    for job in (7, 8):
        node.add_job(job, states=["FAILED", "COMPLETING"], exit_code="1:0", reason="NonZeroExitCode")
        node.hook("prolog", job)
        node.xid(31, 3, "pid=77, name=python, MMU Fault", age=1)
        node.hook("epilog", job)
    assert node.slurm.node("n1")["reason"].startswith("GH-XID-REPEAT gpu3")


def test_observe_changes_nothing(node):
    node.config["mode"] = "observe"
    node.save()
    node.xid(79, 3)
    node.add_job(7)
    for phase, job in (("healthcheck", None), ("prolog", 7), ("epilog", 7)):
        assert node.hook(phase, job)[0] == 0
    assert node.slurm.calls() == []
    assert "unacted" in kinds(node)
    assert node.evidence() == []


def test_kill_switch(node):
    """One file and every hook exits 0, whatever is wrong."""
    node.xid(79, 3)
    node.write({"/etc/slurm/gpuhealth.off": ""})
    for phase, job in (("healthcheck", None), ("prolog", 7), ("epilog", 7)):
        assert node.hook(phase, job)[0] == 0
    assert node.events() == [] and node.slurm.calls() == []


def test_slurmctld_away_then_back(node):
    """The hook ends on time; the drain happens once slurmctld answers."""
    node.xid(79, 3)
    node.slurm.set(away=-1)
    code, _, seconds = node.hook("healthcheck")
    assert (code, seconds < 12) == (0, True)
    assert "spool" in kinds(node)
    node.slurm.set(away=0)
    node.hook("healthcheck")
    assert node.slurm.node("n1")["reason"].startswith("GH-XID79 gpu3")
    assert len(node.evidence()) == 1


def test_slurmctld_away_and_repaired_meanwhile(node):
    """What no check sees any more is not drained later."""
    node.lose(3)
    node.slurm.set(away=-1)
    node.hook("healthcheck")
    node.slurm.set(away=0)
    node.gpus[3] = {}
    node.save()
    node.hook("healthcheck")
    assert "DRAIN" not in node.slurm.node("n1")["state"]
    assert node.incidents()[0]["closed"]


def test_requeue_of_an_epilog_is_spooled(node):
    """slurmctld away in an epilog: the next hook that gets through requeues the job, once, if it still holds."""
    failed = {"states": ["FAILED", "COMPLETING"], "exit_code": "1:0", "reason": "NonZeroExitCode"}
    node.add_job(7)
    node.hook("prolog", 7)
    node.xid(79, 3, age=1)
    node.add_job(7, **failed)
    node.slurm.set(away=-1)
    node.hook("epilog", 7)
    assert node.slurm.job(7)["restarts"] == 0
    node.slurm.set(away=0)
    node.hook("healthcheck")
    node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 1


def test_job_with_two_tokens_declares_nothing(node):
    """A comment that is not understood is refused with an event, and the job is not killed for it."""
    node.add_job(7, comment="gpuhealth:ckpt=/a gpuhealth:ckpt=/b")
    node.hook("prolog", 7, SLURM_JOB_COMMENT="gpuhealth:ckpt=/a gpuhealth:ckpt=/b")
    node.xid(79, 3)
    node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 0
    assert any(event["code"] == "GH-CKPT-TOKEN" for event in node.events())


def test_mount_that_is_gone(node):
    node.config["mounts"] = [{"path": "/data", "type": ["nfs4"]}]
    node.save()
    node.add_job(7)
    assert node.hook("prolog", 7)[0] == 1
    assert node.slurm.node("n1")["reason"].startswith("GH-MNT-GONE /data")


def test_brake_holds_back_the_second_node(node):
    """One node of three is drained for the outage already: this one is not, and its job is sent back."""
    node.config["mounts"] = [{"path": "/data", "type": ["nfs4"]}]
    node.save()
    node.add_job(7)
    import time
    node.slurm.add_node("n2", state=["IDLE", "DRAIN"], reason="GH-MNT-GONE /data absent [ev=abc123]",
                        reason_user="root", reason_time=int(time.time()) - 5)
    assert node.hook("prolog", 7)[0] == 0
    assert "DRAIN" not in node.slurm.node("n1")["state"]
    assert node.slurm.job(7)["restarts"] == 1
    assert "send-back" in kinds(node)
    alerts = [event for event in node.events("brake") if event["action"] == "alert"]
    assert len(alerts) == 1
    node.hook("healthcheck")
    assert len([event for event in node.events("brake") if event["action"] == "alert"]) == 1


def test_two_lost_gpus_are_one_incident(node):
    """Faults that are found together have one incident and one evidence folder, however many rounds see them."""
    node.lose(3)
    node.lose(5)
    for _ in range(3):
        node.hook("healthcheck")
    assert len(node.incidents()) == len(node.evidence()) == 1
    assert node.slurm.node("n1")["reason"].startswith("GH-GPU-LOST gpu3+1")


def test_fault_that_comes_later_has_its_own_incident(node):
    """A second GPU that is lost while the node is drained for the first opens one incident more, and only one."""
    node.lose(3)
    node.hook("healthcheck")
    node.lose(5)
    for _ in range(3):
        node.hook("healthcheck")
    assert [item["subject"]["index"] for item in node.incidents()] == [3, 5]
    assert len(node.evidence()) == 2


def test_fault_that_is_over_is_not_found_again_by_an_epilog(node):
    """A GPU elsewhere was reset and the node resumed while a job ran: its epilog reads the old line and drains not."""
    node.add_job(7)
    node.hook("prolog", 7)
    node.xid(95, 5, text="Uncontained: SBE LRF")
    node.hook("healthcheck")
    assert node.slurm.node("n1")["reason"].startswith("GH-XID95 gpu5")
    node.slurm.add_node("n1")       # as an administrator left it
    node.hook("healthcheck")
    assert node.incidents()[0]["closed"]
    node.add_job(7, states=["COMPLETED"])
    node.hook("epilog", 7)
    assert "DRAIN" not in node.slurm.node("n1")["state"] and len(node.incidents()) == 1


def test_prolog_that_takes_its_drain_back_does_not_fail(node):
    """Two nodes drain for the outage at one moment and the other one was first: exit 1 would drain this one again."""
    node.config["mounts"] = [{"path": "/data", "type": ["nfs4"]}]
    node.save()
    node.add_job(7)
    scontrol = node.path("/usr/bin/scontrol")
    os.rename(scontrol, scontrol + ".real")
    # The other node's drain arrives just before ours does.
    node.write({"/usr/bin/scontrol": """#!%s -IS
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
if "State=DRAIN" in sys.argv:
    with open(here + "/cluster.json") as handle:
        cluster = json.load(handle)
    cluster["nodes"]["n2"].update(state=["IDLE", "DRAIN"], reason="GH-MNT-GONE /data absent [ev=abc123]",
                                  reason_user="root", reason_time=int(time.time()) - 5)
    with open(here + "/cluster.json", "w") as handle:
        json.dump(cluster, handle)
os.execv(here + "/scontrol.real", [here + "/scontrol"] + sys.argv[1:])
""" % sys.executable})
    os.chmod(scontrol, 0o755)
    assert node.hook("prolog", 7)[0] == 0
    assert "DRAIN" not in node.slurm.node("n1")["state"]
    assert {"brake", "send-back"} <= set(kinds(node)) and "requeue" not in kinds(node)


def test_late_once_and_late_much_later_is_not_late_twice(node):
    """A round that answered in between ends the count, also where only prologs run."""
    state = node.path("/var/lib/gpuhealth/node.json")
    node.write({"/var/lib/gpuhealth/node.json": json.dumps({"rounds": {"nvml": 1}})})
    node.add_job(7)
    assert node.hook("prolog", 7)[0] == 0
    with open(state) as handle:
        assert json.load(handle)["rounds"] == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become the job's user")
def test_each_look_that_fails_sends_the_job_further_back(node, tmp_path):
    """A checkpoint folder that cannot be looked at sends a restarted job back, later with each try."""
    folder = tmp_path / "ckpt"
    folder.mkdir(0o700)
    comment = "gpuhealth:ckpt=%s" % folder
    for _ in range(2):
        node.add_job(7, comment=comment, restarts=1)
        assert node.hook("prolog", 7, SLURM_JOB_RESTART_COUNT="1", SLURM_JOB_COMMENT=comment)[0] == 0
    assert [event["detail"]["start_in"] for event in node.events("send-back")] == [120, 240]


def test_spooled_requeue_is_dropped_in_a_milder_mode(node):
    """A site that went back to observe does not get a requeue that was decided before."""
    node.add_job(7, states=["FAILED"], exit_code="1:0", reason="NonZeroExitCode")
    entry = {"v": 1, "kind": "requeue", "args": {"job": 7, "restart": 0, "tag": "7.0"}, "time": time.time(),
             "boot_id": "0" * 32, "incident": "", "job": {"id": 7, "partition": "main", "restart": 0}}
    node.write({"/var/lib/gpuhealth/spool/1-a.json": json.dumps(entry)})
    node.config["mode"] = "drain"
    node.save()
    node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 0
    assert "dropped: the mode is drain" in node.events("spool")[0]["detail"]["why"]


def test_answer_goes_with_the_job(node):
    """What prolog left for a restarted job does not stay in /run after its end."""
    node.add_job(7)
    node.hook("prolog", 7)
    node.write({"/run/gpuhealth/job-7.json": "{}"})
    node.hook("epilog", 7)
    assert not os.path.exists(node.path("/run/gpuhealth/job-7.json"))


def broken(node, tmp_path, text):
    """Run prolog with a package whose decide.py is `text`: (exit code, seconds)."""
    import shutil
    import subprocess
    import sys
    import time

    import slurm_gpuhealth
    copy = tmp_path / "copy"
    shutil.copytree(os.path.dirname(slurm_gpuhealth.__file__), copy / "slurm_gpuhealth")
    (copy / "slurm_gpuhealth" / "decide.py").write_text(text)
    script = ("import os, sys; sys.path.insert(0, %r); from slurm_gpuhealth import hook; "
              "os._exit(hook.main('prolog', %r))" % (str(copy), node.root))
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-IS", "-c", script], env=node.env(7), timeout=60)
    return done.returncode, time.monotonic() - started


def test_broken_package_never_drains(node, tmp_path):
    """The guard turns a worker that cannot even import into the policy, by default exit 0."""
    assert broken(node, tmp_path, "this is not Python")[0] == 0


def test_worker_that_hangs_is_left(node, tmp_path):
    """A worker that is stuck for ever does not keep the hook past its deadline."""
    node.config["deadlines"]["prolog"] = 4
    node.save()
    stuck = ("LOOKUPS = ()\ndef decide(findings, situation, policy):\n    import time\n    time.sleep(100)\n")
    code, seconds = broken(node, tmp_path, stuck)
    assert code == 0 and 3 < seconds < 5.5


def test_own_fault_follows_the_policy(node, tmp_path):
    """A site that prefers it lets our own fault fail the prolog; the event says what it was."""
    node.config["on_internal_error"] = {"prolog": "drain"}
    node.save()
    crash = "LOOKUPS = ()\ndef decide(findings, situation, policy):\n    raise RuntimeError('a bug')\n"
    assert broken(node, tmp_path, crash)[0] == 1
    assert "a bug" in node.events("internal-error")[0]["detail"]["error"]
