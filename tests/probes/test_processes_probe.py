"""Which processes hold a GPU, from /proc."""
import os
import signal
import time

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import supervise
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.facts_node import GpuProcess
from slurm_gpuhealth.probes import processes

OK = F.SourceStatus("processes", "ok")
STAT = "%d (%s) %s %d 1 1 0 -1 %d 0 0 0 0 10 5 0 0 20 0 1 0 %d 0 0\n"


def spec(root, phase="healthcheck", job=None):
    return {"root": str(root), "phase": phase, "job": job, "seconds": 2.5}


def read(root, phase="healthcheck", job=None, status=OK):
    records = []
    about = spec(root, phase, job)
    processes.read(about, lambda kind, plain: records.append((kind, plain)))
    return processes.assemble(records, about, status), records


def add(root, pid, name="python3", state="S", flags=4194304, ticks=360000, fds=("/dev/null",),
        cgroup="0::/init.scope\n", parent=1, stack=None, exe="/usr/bin/python3.11"):
    """A process of a user on the fixture node."""
    folder = "/proc/%d" % pid
    files = {folder + "/status": "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n",
             folder + "/stat": STAT % (pid, name, state, parent, flags, ticks), folder + "/cgroup": cgroup,
             folder + "/task/%d/stat" % pid: STAT % (pid, name, state, parent, flags, ticks),
             folder + "/task/%d/status" % pid: "Uid:\t1000\t1000\t1000\t1000\nvoluntary_ctxt_switches:\t40\n"
                                               "nonvoluntary_ctxt_switches:\t2\n"}
    if stack is not None:
        files[folder + "/task/%d/stack" % pid] = stack
    builders.write_node(root, files)
    os.makedirs("%s%s/fd" % (root, folder), exist_ok=True)
    for number, target in enumerate(fds):
        os.symlink(target, "%s%s/fd/%d" % (root, folder, number))
    os.symlink(exe, "%s%s/exe" % (root, folder))


@pytest.fixture
def node(tmp_path):
    builders.write_node(tmp_path, {"/proc/stat": "cpu 0\nbtime 1796000000\n"})
    return tmp_path


def test_a_process_with_an_open_device_file_holds_that_gpu(node):
    """By its open files; control devices, other files and kernel threads hold nothing."""
    add(node, 100, fds=("/dev/nvidiactl", "/dev/nvidia3", "/dev/nvidia-uvm", "/dev/nvidia3", "/dev/nvidia11"))
    add(node, 101, fds=("/dev/nvidiactl", "/home/a/nvidia3", "/tmp/dev/nvidia1", "/dev/nvidia3 (deleted)"))
    add(node, 102, flags=0x200000, fds=("/dev/nvidia3",))
    fields, _ = read(node)
    (one,) = fields["processes"]
    assert one == GpuProcess(100, (), "python3", one.user, 1000, "S", 1796003600.0, None, None, "/usr/bin/python3.11",
                             (3, 11), 360000, False, None, 1)


def test_hostile_names(node):
    """A name with brackets, spaces and newlines moves no field."""
    add(node, 100, name="a) S 1 (b\n", fds=("/dev/nvidia0",))
    (one,) = read(node)[0]["processes"]
    assert (one.name, one.state, one.ticks) == ("a) S 1 (b\n", "S", 360000)


@pytest.mark.parametrize("text,job", [
    ("11:devices:/slurm/uid_1000/job_77/step_0/task_0\n1:name=systemd:/system.slice/slurmd.service\n", 77),
    ("4:memory:/slurm_n1/uid_1000/job_78/step_batch\n", 78),
    ("0::/system.slice/slurmstepd.scope/job_79/step_0/user/task_0\n", 79),
    ("0::/system.slice/n1_slurmstepd.scope/job_80/step_extern/user/task_special\n", 80),
    ("0::/system.slice/n1_slurmstepd.scope/job_80\n", 80),
    ("0::/docker/abc/system.slice/slurmstepd.scope/job_81/step_0/user\n", 81),
    ("0::/system.slice/slurmstepd.scope/job_s7HQ2/step_0/user\n", processes.UNNUMBERED),
    ("0::/system.slice/slurmstepd.scope/system\n", None),
    ("0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1000/job_5/x\n", None),
    ("0::/user.slice/user-1000.slice/slurmstepd.scope/job_5/x\n", None),
    ("0::/system.slice/docker-77.scope\n", None), ("0::/\n", None), ("", None), ("garbage", None),
    ("0::/system.slice/evil/job_7/step\n", None)])
def test_job_of_a_cgroup(text, job):
    """cgroup v1 and v2, one or several slurmd; what a user may name is not believed."""
    assert processes.job_of(text) == job


def test_job_without_cgroups(node):
    """Where Slurm tracks processes without cgroups, the slurmstepd above them tells; a user's own of that name does not
    outlive the title's grammar."""
    add(node, 90, name="slurmstepd")
    add(node, 91, name="slurmstepd")
    builders.write_node(node, {"/proc/90/cmdline": "slurmstepd: [77.batch]\0", "/proc/91/cmdline": "slurmstepd: x\0"})
    add(node, 100, name="bash", parent=90)
    add(node, 101, parent=100, fds=("/dev/nvidia0",))
    add(node, 102, parent=91, fds=("/dev/nvidia0",))
    add(node, 103, parent=1, fds=("/dev/nvidia0",))
    add(node, 104, parent=104, fds=("/dev/nvidia0",))       # nonsense that must not loop
    found = {one.pid: one.job for one in read(node)[0]["processes"]}
    assert found == {101: 77, 102: processes.UNNUMBERED, 103: None, 104: None}


@pytest.mark.parametrize("uid,person", [(0, False), (999, False), (1000, True), (5012345, True), (61184, False),
                                        (65519, False), (65534, False), (0xFFFFFFFF, False)])
def test_system_accounts_are_nobody(uid, person):
    """Neither root, nor daemons, nor systemd's dynamic users, nor nobody."""
    assert processes.is_person(uid) is person


def test_d_state_in_the_driver_and_elsewhere(node):
    """The kernel stack tells a hang in the driver from a wait for a disk; closed files do not hide it."""
    driver = "[<0>] os_acquire_mutex+0x1/0x2 [nvidia]\n[<0>] nvidia_close+0x1 [nvidia]\n"
    add(node, 100, state="D", stack=driver)
    add(node, 101, state="D", fds=("/dev/nvidia1",), stack="[<0>] nfs_wait_bit+0x1 [nfs]\n[<0>] do_exit\n")
    add(node, 102, state="D", stack="[<0>] nfs_wait_bit+0x1 [nfs]\n")
    add(node, 103, state="D", fds=("/dev/nvidia1",))
    add(node, 104, state="Z", fds=())
    found = {one.pid: one for one in read(node)[0]["processes"]}
    assert sorted(found) == [100, 101, 103, 104]
    assert [found[pid].driver for pid in (100, 101, 103)] == [True, False, None]
    assert found[100].switches == 42 and found[104].state == "Z"


def test_a_thread_that_hangs_counts(node):
    """The main thread waits for the one that hangs."""
    add(node, 100, fds=("/dev/nvidia1",))
    builders.write_node(node, {
        "/proc/100/task/107/stat": STAT % (107, "python3", "D", 1, 0, 1), "/proc/100/task/107/status": "",
        "/proc/100/task/107/stack": "[<0>] x [nvidia_uvm]\n"})
    (one,) = read(node)[0]["processes"]
    assert (one.state, one.driver, one.switches) == ("D", True, 0)


def test_jobs_of_the_state(node):
    """Whose jobs run here, from the prologs' baselines; a broken one is left out."""
    builders.write_node(node, {"/var/lib/gpuhealth/jobs/77.json": '{"uid": 1000, "gpus": [3], "counters": {}}',
                               "/var/lib/gpuhealth/jobs/78.json": "{", "/var/lib/gpuhealth/jobs/x.json": "{}"})
    assert read(node, job=77)[0]["jobs"] == ({"id": 77, "uid": 1000, "gpus": (3,)},)
    assert read(node, job=77)[0]["job"] == 77


def test_our_own_child_that_hangs_is_said_elsewhere(node):
    """NVML's own check reports it."""
    add(node, 100, fds=("/dev/nvidia0",))
    builders.write_node(node, {"/run/gpuhealth/left.json": '{"left": {"nvml": [{"pid": 100, "ticks": 360000}]}}'})
    assert read(node)[0]["processes"] == ()


def test_late_denied_and_unfinished_are_unknown(node):
    """What was not looked at to the end is not "none"."""
    fields, records = read(node)
    late = F.SourceStatus("processes", "late", 3.0, "no answer in 3.0 s")
    assert processes.assemble(records[:1], spec(node), late)["processes"] == F.Unknown(F.TIMEOUT, "no answer in 3.0 s")
    assert processes.assemble([], spec(node), late)["jobs"].reason == F.TIMEOUT
    for change, why in (({"denied": 3}, F.DENIED), ({"unfinished": True}, F.TIMEOUT)):
        told = [(kind, dict(plain, **change) if kind == "seen" else plain) for kind, plain in records]
        assert processes.assemble(told, spec(node), OK)["processes"].reason == why
    about = dict(spec(node), seconds=-1)
    add(node, 100)
    told = []
    processes.read(about, lambda kind, plain: told.append((kind, plain)))
    assert processes.assemble(told, about, OK)["processes"].reason == F.TIMEOUT


def test_three_thousand_processes(node):
    """Bounded: a node with very many processes is looked at in a fraction of the deadline."""
    for pid in range(1000, 4000):
        folder = "%s/proc/%d" % (node, pid)
        os.makedirs(folder + "/fd")
        for name, text in (("stat", STAT % (pid, "bash", "S", 1, 0, 1)), ("status", "Uid:\t1000\t1000\n")):
            with open(folder + "/" + name, "w") as handle:
                handle.write(text)
    started = time.monotonic()
    assert read(node)[0]["processes"] == ()
    assert time.monotonic() - started < 1.5


def test_spec_takes_the_job_of_the_hook(monkeypatch):
    """Of a hook it is Slurm's; by hand there is none."""
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    assert processes.spec(DEFAULTS, {"root": "", "phase": "epilog"})["job"] == 77
    assert processes.spec(DEFAULTS, {"root": "", "phase": "healthcheck"})["job"] is None
    assert processes.spec(DEFAULTS, {"root": "", "phase": "epilog", "job": 5})["job"] == 5
    longer = overlay(DEFAULTS, {"deadlines": {"command": 9}})
    assert processes.spec(longer, {"root": "", "phase": "manual"})["seconds"] == 8.5


def test_this_machine_in_a_child():
    """The real /proc, as the hook reads it; a process that ends meanwhile disturbs nobody."""
    pid = os.fork()
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    try:
        about = processes.spec(DEFAULTS, {"root": "", "phase": "epilog", "job": 1})
        result = supervise.call(processes.read, about, 5.0)
        fields = processes.assemble(result.records, about, result.status)
        assert result.status.outcome == "ok"
        assert isinstance(fields["jobs"], tuple)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("changes,waits", [
    ({"job": 77}, True), ({"job": None}, True), ({"job": 78}, False), ({"job": None, "uid": 1001}, False),
    ({"job": 77, "minors": ()}, False), ({"job": None, "name": "nvidia-cuda-mps"}, False)])
def test_whom_an_epilog_waits_for(changes, waits):
    """Only what may be the ending job's, so that others and the MPS server delay no epilog."""
    process = builders.gpu_process(minors=(3,))._replace(**changes)
    assert processes._may_end(process, 77, 1000) is waits
    assert processes._may_end(process, None, 1000) is False


def test_settled(monkeypatch):
    """A process that ends while one waits is no finding; one that stays is."""
    look = processes._Look("", "epilog", time.monotonic() + 5)
    stays, ends = builders.gpu_process(1, minors=(0,), job=77), builders.gpu_process(2, minors=(0,), job=77)
    monkeypatch.setattr(processes, "_SETTLE", 0.3)
    monkeypatch.setattr(look, "one", lambda pid: stays if pid == 1 else None)
    assert look.settled([stays, ends], 77, 1000) == [stays]
    monkeypatch.setattr(look, "one", lambda pid: stays._replace(ticks=1))       # its pid is somebody else's now
    assert look.settled([stays], 77, 1000) == []


def test_really_stuck(monkeypatch):
    """D state twice with a thread that has run meanwhile is a busy disk."""
    look = processes._Look("", "healthcheck", time.monotonic() + 5)
    hangs = builders.gpu_process(1, minors=(0,), state="D", driver=True, switches=7)
    monkeypatch.setattr(processes, "_STUCK_LOOK", 0.01)
    ran = hangs._replace(switches=8)
    for now, expected in ((hangs, hangs), (ran, ran._replace(state="S", driver=False)),
                          (hangs._replace(state="S"), hangs._replace(state="S"))):
        monkeypatch.setattr(look, "one", lambda pid, now=now: now)
        assert look.really_stuck([hangs]) == [expected]
    monkeypatch.setattr(look, "one", lambda pid: None)
    assert look.really_stuck([hangs]) == []


def test_node_without_gpus_is_not_looked_at():
    """Configured as a CPU node: no child at all."""
    assert processes.spec(overlay(DEFAULTS, {"expected_gpus": 0}), {"root": "", "phase": "prolog"}) is None
