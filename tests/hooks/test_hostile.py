"""A dying disk, a killed hook, a slurmctld that talks nonsense: nothing is lost, and no node is taken for healthy."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.allow_subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOOK = ("import os, sys; sys.path.insert(0, %r); from slurm_gpuhealth import hook; "
        "os._exit(hook.main('healthcheck', sys.argv[1]))" % ROOT)
STATE = "/var/lib/gpuhealth"
SOUND = {"id": "abc123", "key": "k", "boot_id": "0" * 32, "code": "GH-XID79", "subject": {"kind": "gpu", "index": 3},
         "opened": 1.0, "reason": "r", "evidence": "", "drained": True, "jobs": ["7.0"], "closed": None, "also": []}
# What a value of any state file may have become.
ODD = [5, -1, 10 ** 40, 1e308, "x", None, True, [], [None], [[[]]], {"a": {"b": None}}, {"a": [1]}]


def put(node, name, value):
    path = node.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(value if isinstance(value, str) else json.dumps(value))


def load(node, name):
    with open(node.path(name), encoding="utf-8") as handle:
        return json.load(handle)


def faults(node):
    """Faults of our own code that the hook met: they name a place in it."""
    return [event["detail"]["error"] for event in node.events("internal-error") if ".py:" in event["detail"]["error"]]


def works(node):
    """The node's fault is still found and acted on."""
    assert node.hook("healthcheck")[0] == 0
    assert faults(node) == []
    assert "DRAIN" in node.slurm.node("n1")["state"]


DOCUMENTS = [
    (STATE + "/node.json", [{key: odd} for key in ("said", "gpus", "rounds", "cursor", "counters", "sent_back", "xids")
                            for odd in (5, [None], {"a": {"b": None}})]),
    (STATE + "/incidents.json", [{"incidents": odd} for odd in ODD] + [{"acks": odd} for odd in ODD]
     + [{"incidents": [dict(SOUND, **{key: odd})]} for key in ("code", "subject", "jobs", "opened")
        for odd in ODD[:9]]),
    ("/run/gpuhealth/left.json", [{"boot_id": "0" * 32, "left": odd} for odd in ODD]
     + [{"boot_id": "0" * 32, "left": {"nvml": odd}} for odd in ODD]
     + [{"boot_id": "0" * 32, "left": {"nvml": [{"pid": odd, "ticks": 1}]}} for odd in (None, "x", {})]),
]


@pytest.mark.parametrize("name, odd", [(name, odd) for name, several in DOCUMENTS for odd in several[::4]])
def test_state_of_another_shape_is_set_aside(node, name, odd):
    """Valid JSON that is not ours must not end each hook of the node for ever with a fault of our own."""
    node.lose(3)
    put(node, name, odd)
    works(node)


@pytest.mark.parametrize("text", ["[" * 100000, '{"a":' * 100000, "", "\0" * 200, "[]", "1" * 5000])
@pytest.mark.parametrize("name", ["node.json", "incidents.json"])
def test_state_that_is_no_json_is_set_aside(node, name, text):
    """Nested so deeply that the parser gives up, too."""
    node.lose(3)
    put(node, STATE + "/" + name, text)
    works(node)
    assert any(".corrupt-" in entry for entry in os.listdir(node.path(STATE)))


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
@pytest.mark.parametrize("name", [STATE + "/node.json", STATE + "/incidents.json", STATE + "/config.json",
                                  STATE + "/evidence", "/run/gpuhealth/lock", "/run/gpuhealth/left.json"])
def test_something_else_in_the_place_of_a_file(node, name, kind):
    """What is no plain file is neither read nor written through, and keeps nothing from being remembered."""
    node.lose(3)
    path, victim = node.path(name), node.path("/victim")
    put(node, "/victim", "keep")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    if kind == "link":
        os.symlink(victim, path)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        os.mkdir(path)
    code, _, seconds = node.hook("healthcheck")
    assert (code, seconds < 15, faults(node)) == (0, True, [])
    with open(victim, encoding="utf-8") as handle:
        assert handle.read() == "keep"
    if "config" not in name:        # without its configuration it observes
        assert "DRAIN" in node.slurm.node("n1")["state"]
        kept = node.path("/run/gpuhealth/evidence" if kind != "folder" and name.endswith("evidence") else
                         STATE + "/evidence")
        assert len(os.listdir(kept)) == 1
        node.hook("healthcheck")
        assert len(node.incidents()) == 1


@pytest.mark.parametrize("key, odd", [("deadlines", None), ("mode", 5), ("expected_gpus", 10 ** 40), ("checks", [])])
def test_compiled_configuration_that_was_damaged(node, key, odd):
    """A wild value in the compiled copy is neither a fault of ours nor one of the GPUs: the checksum tells."""
    node.hook("healthcheck")
    document = load(node, STATE + "/config.json")
    document["config"][key] = odd
    put(node, STATE + "/config.json", document)
    node.add_job(7)
    assert node.hook("prolog", 7)[0] == 0
    assert faults(node) == []
    assert "damaged" in node.events("internal-error")[0]["detail"]["error"]


def test_spool_entry_that_cannot_be_read_is_dropped_once(node):
    """It is set aside and not found again by each hook."""
    put(node, STATE + "/spool/1.json", {"kind": "__class__", "args": {}, "time": 1, "job": {"id": 7}})
    for _ in range(2):
        node.hook("healthcheck")
    assert faults(node) == []
    assert len(node.events("spool")) == 1
    assert len(os.listdir(node.path(STATE + "/spool"))) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_read_only_disk_is_one_incident(node):
    """Nothing can be remembered on the disk: drained once, requeued once, one evidence folder (in the tmpfs)."""
    node.add_job(7)
    node.hook("healthcheck")
    node.xid(79, 3)
    node.lose(3)
    folder = node.path(STATE)
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        for _ in range(3):
            assert node.hook("healthcheck")[0] == 0
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
    assert len(os.listdir(node.path("/run/gpuhealth/evidence"))) == 1
    assert len([argv for argv in node.slurm.changes() if "State=DRAIN" in argv]) == 1
    assert node.slurm.job(7)["restarts"] == 1
    node.hook("healthcheck")        # the disk takes it again: the copy in /run has done its work
    assert len(node.incidents()) == 1
    assert not os.path.exists(node.path("/run/gpuhealth/incidents.json"))


def test_guard_that_is_killed_does_not_stop_the_worker(node):
    """slurmd kills the hook at its own limit: what has begun is finished, the job is not left on the dead GPU."""
    node.add_job(7)
    node.hook("healthcheck")
    node.xid(79, 3)
    node.lose(3)
    until = time.monotonic() + 10
    with node.start("healthcheck") as hook:
        while not node.slurm.calls() and time.monotonic() < until:
            time.sleep(0.01)
        hook.kill()
    while node.slurm.job(7)["restarts"] == 0 and time.monotonic() < until:
        time.sleep(0.1)
    assert node.slurm.job(7)["restarts"] == 1
    assert "DRAIN" in node.slurm.node("n1")["state"]
    assert faults(node) == []


@pytest.mark.parametrize("delay", [0.15, 0.3, 0.45, 0.6, 0.75, 0.9])
def test_worker_that_is_killed_is_made_good(node, delay):
    """Whatever moment it dies at: the next health check drains and requeues, each once, with one evidence folder."""
    node.add_job(7)
    node.hook("healthcheck")
    node.xid(79, 3)
    node.lose(3)
    with node.start("healthcheck") as hook:
        time.sleep(delay)
        with open("/proc/%d/task/%d/children" % (hook.pid, hook.pid), encoding="ascii") as handle:
            for pid in handle.read().split():
                os.kill(int(pid), signal.SIGKILL)
    assert hook.returncode == 0
    node.hook("healthcheck")
    changes = node.slurm.changes()
    assert len([argv for argv in changes if "State=DRAIN" in argv]) == 1
    assert len([argv for argv in changes if argv[1] == "requeue"]) == 1
    assert node.slurm.job(7)["restarts"] == 1
    assert (len(node.evidence()), len(node.incidents())) == (1, 1)


NONSENSE = {"silent": "exit 0", "garbage": "head -c 100000 /dev/urandom", "away": "echo 'Unable to contact slurm "
            "controller' >&2; exit 1", "denied": "echo 'slurm_load_jobs error: Access/permission denied' >&2; exit 1"}


@pytest.mark.parametrize("how", sorted(NONSENSE))
def test_epilog_that_gets_no_answer_requeues_later(node, how):
    """How the job ended is asked by the next hook that gets through: it comes back once if it failed."""
    node.add_job(7, gpus={"n1": [3]})
    node.hook("prolog", 7, SLURM_JOB_GPUS="3")
    node.xid(79, 3, age=0.5)
    node.lose(3)
    node.add_job(7, gpus={"n1": [3]}, states=["FAILED", "COMPLETING"], exit_code="1:0", reason="NonZeroExitCode")
    kept = {}
    for tool in ("scontrol", "squeue"):
        with open(node.path("/usr/bin/" + tool), encoding="utf-8") as handle:
            kept[tool] = handle.read()
        put(node, "/usr/bin/" + tool, "#!/bin/sh\n%s\n" % NONSENSE[how])
    assert node.hook("epilog", 7, SLURM_JOB_GPUS="3", SLURM_JOB_EXIT_CODE2="1:0")[0] == 0
    assert node.slurm.job(7)["restarts"] == 0
    for tool, text in kept.items():
        put(node, "/usr/bin/" + tool, text)
    for _ in range(2):
        node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 1
    assert "DRAIN" in node.slurm.node("n1")["state"]
    assert faults(node) == []


@pytest.mark.parametrize("states, code", [(["COMPLETED"], "0:0"), (["CANCELLED"], "0:15"), (["TIMEOUT"], "0:1")])
def test_epilog_that_got_no_answer_resurrects_nobody(node, states, code):
    """A job that ended otherwise than by failing stays ended."""
    node.add_job(7, gpus={"n1": [3]})
    node.hook("prolog", 7, SLURM_JOB_GPUS="3")
    node.xid(79, 3, age=0.5)
    node.add_job(7, gpus={"n1": [3]}, states=states, exit_code=code)
    node.slurm.set(away=-1)
    node.hook("epilog", 7, SLURM_JOB_GPUS="3")
    node.slurm.set(away=0)
    node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 0
    assert node.events("spool")[-1]["detail"]["why"].startswith("dropped")


@pytest.mark.parametrize("files", [4, 6, 8, 9, 10, 12])
def test_no_descriptors_left(node, files):
    """Children that cannot be started have failed, and say so; nobody is drained for it."""
    import resource
    node.hook("healthcheck")
    done = subprocess.run(
        [sys.executable, "-IS", "-c", HOOK, node.root], capture_output=True, env=node.env(),
        timeout=60, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))
    assert done.returncode == 0 or files == 4       # there the script around it (hooks/healthcheck) ends with 0
    assert node.slurm.changes() == []


def test_clock_that_was_far_ahead(node):
    """What was said in the future is said again, once the clock is right."""
    node.hook("healthcheck")
    memory = load(node, STATE + "/node.json")
    ahead = time.time() + 9 * 365 * 86400
    memory["said"] = {"GH-LOG-FAIL|node|unknown": ahead}
    memory["pruned"] = ahead
    put(node, STATE + "/node.json", memory)
    os.unlink(node.path("/var/log/kmsg"))
    os.mkfifo(node.path("/var/log/kmsg"))
    node.hook("healthcheck")
    assert "GH-LOG-FAIL" in [event["code"] for event in node.events("finding")]
    assert load(node, STATE + "/node.json")["pruned"] < time.time() + 86400


def test_hook_killed_behind_its_requeue_is_completed_by_the_next_one(node):
    """Requeued, then SIGKILL (slurmd's own time limit): start time and hint follow, and the requeue is counted."""
    node.add_job(7, gpus={"n1": [3]})
    node.hook("healthcheck")
    node.xid(79, 3, age=0.5)
    node.lose(3)
    for tool in ("scontrol", "squeue"):
        put(node, "/deadly/" + tool, '#!/bin/sh\n%s "$@"\nrc=$?\ncase "$*" in *requeue*) kill -9 $PPID ;; esac\n'
            'exit $rc\n' % node.path("/usr/bin/" + tool))
        os.chmod(node.path("/deadly/" + tool), 0o755)
    node.config["slurm"] = {"bin_dir": "/deadly"}
    node.save()
    node.hook("healthcheck")
    node.config["slurm"] = {"bin_dir": "/usr/bin"}
    node.save()
    job = node.slurm.job(7)
    assert job["restarts"] == 1 and "tries=1" not in job["comment"]
    spool = node.path(STATE + "/spool/")
    (name,) = os.listdir(spool)
    node.hook("healthcheck")
    assert os.listdir(spool) == [name]      # the one that began it may still be at it
    with open(spool + name, encoding="utf-8") as handle:
        entry = json.load(handle)
    put(node, STATE + "/spool/" + name, dict(entry, time=entry["time"] - 60))
    node.hook("healthcheck")
    job = node.slurm.job(7)
    assert job["restarts"] == 1 and "for=7.1" in job["comment"] and "tries=1" in job["comment"]
    assert any("StartTime" in part for call in node.slurm.changes() for part in call)
    assert os.listdir(spool) == []
    assert [event["detail"]["why"] for event in node.events("spool")] == ["done"]


def test_late_before_a_reboot_and_late_after_it_are_not_twice_in_a_row(node):
    """The reboot was the cure, and a cold driver is slowest: the first slow look of a new boot warns only."""
    node.hook("healthcheck")
    os.unlink(node.path("/nvml.json"))
    os.mkfifo(node.path("/nvml.json"))      # open() waits for a writer that never comes
    node.hook("healthcheck")
    assert load(node, STATE + "/node.json")["rounds"] == {"nvml": 1}
    node.boot("1" * 32)
    node.hook("healthcheck")
    assert "DRAIN" not in node.slurm.node("n1")["state"]
    node.hook("healthcheck")
    assert "GH-NVML-HANG" in node.slurm.node("n1")["reason"]


def test_streaks_end_with_a_boot_and_with_a_long_pause(node):
    """A sample of the boot before, or of yesterday, is not the round before this one."""
    from slurm_gpuhealth import gather
    memory = {"streaks": {"a": [2, 50.0]}, "streaks_boot": "x", "streaks_time": 100.0}
    assert gather._streaks(memory, "x", 400.0) == {"a": [2, 50.0]}
    assert gather._streaks(memory, "y", 400.0) == {}
    assert gather._streaks(memory, "x", 100.0 + 86400) == {}
    assert gather._streaks({}, "x", 400.0) == {}


def test_job_that_was_on_its_way_does_not_start_on_a_node_drained_a_moment_ago(node):
    """The line of the log was read, NVML looks well, but the drain is seconds old: sent away, not launched."""
    node.hook("healthcheck")
    node.xid(95, 3, "Uncontained: FBHUB. RST: Yes, D-RST: No", age=0.5)
    node.hook("healthcheck")
    node.add_job(9, gpus={"n1": [2, 3]})
    assert "DRAIN" in node.slurm.node("n1")["state"]
    assert node.hook("prolog", 9, SLURM_JOB_GPUS="2,3")[0] == 1
    assert node.slurm.job(9)["restarts"] == 1
    assert len(node.events("drain")) == 1


def test_node_resumed_a_moment_ago_takes_jobs_again(node):
    """An administrator's resume counts: what it was drained for minutes ago does not drain it again."""
    node.hook("healthcheck")
    node.xid(95, 3, "Uncontained: FBHUB. RST: Yes, D-RST: No", age=0.5)
    node.hook("healthcheck")
    node.add_job(9, gpus={"n1": [2, 3]})
    node.slurm.add_node("n1")
    assert node.hook("prolog", 9, SLURM_JOB_GPUS="2,3")[0] == 0
    assert node.slurm.job(9)["restarts"] == 0 and "DRAIN" not in node.slurm.node("n1")["state"]


def test_running_job_is_brought_back_also_when_slurmctld_was_slow_once(node):
    """The line of the log is seen once; who runs on the GPU is asked again by the next round."""
    node.add_job(7, gpus={"n1": [3]})
    node.hook("healthcheck")
    node.xid(79, 3, age=0.5)
    tool = node.path("/usr/bin/squeue")
    with open(tool, encoding="utf-8") as handle:
        text = handle.read()
    put(node, "/usr/bin/squeue", "#!/bin/sh\nsleep 60\n")
    node.config["deadlines"]["slurm"] = 1
    node.save()
    node.hook("healthcheck")
    assert "DRAIN" in node.slurm.node("n1")["state"]
    if node.slurm.job(7)["restarts"] == 0:
        assert node.incidents()[0]["pending"]
        put(node, "/usr/bin/squeue", text)
        node.hook("healthcheck")
    assert node.slurm.job(7)["restarts"] == 1
    assert not node.incidents()[0]["pending"]


@pytest.mark.parametrize("change", [
    {"links": {"GPU-1/nvlink": {"up": [1, 2]}}}, {"counters": {"GPU-1": {"ecc_uncorrected_volatile": [1, 2]}}},
    {"counters": {"mc0": {"corrected": [1]}}}, {"cursor": {"boot_id": "x", "booted": "abc"}},
    {"expected": {"asked": {}, "files": [], "expected": {"gpus": 9.5, "origin": "x", "minors": []}}},
    {"expected": {"asked": {}, "files": [], "expected": {"gpus": "8", "origin": "x", "minors": []}}},
    {"streaks": {"a": [1]}}, {"first_seen": {"a": "b"}}, {"links": []}])
def test_memory_of_a_wrong_shape_is_set_aside_and_stops_no_hook(node, change):
    """Whatever stands in node.json: said, begun anew, and a healthy node stays in service."""
    node.hook("healthcheck")
    put(node, STATE + "/node.json", dict(load(node, STATE + "/node.json"), **change))
    node.hook("healthcheck")
    assert "DRAIN" not in node.slurm.node("n1")["state"]
    assert not [text for text in faults(node) if "TypeError" in text or "KeyError" in text]
    assert any("corrupt" in name for name in os.listdir(node.path(STATE)))


def test_entry_of_the_spool_that_cannot_be_done_is_dropped(node):
    """It must not stop each hook from now on."""
    put(node, STATE + "/spool/1.json", {"v": 1, "kind": "hold", "args": {"job": 7, "tag": "7.0"}, "time": time.time(),
                                        "boot_id": "", "incident": "", "job": {"id": 7}})
    node.add_job(7, gpus={"n1": [3]})
    for _ in range(2):
        assert node.hook("healthcheck")[0] == 0
    assert os.listdir(node.path(STATE + "/spool")) == []
