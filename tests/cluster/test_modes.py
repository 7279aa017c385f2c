"""Mode `observe` says and does nothing else; the kill switch makes every hook end at once."""
from __future__ import annotations

import statistics

import pytest
from harness import CTL, Cluster
from siteconf import DEADLINES, HOOKS, PYTHON, configure, hook, job_env, saw, start_job, traced

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

OFF = "/etc/slurm/gpuhealth.off"
PHASES = ("healthcheck", "prolog", "epilog")
# What is injected -> code and subject of the event.
FAULTS = {
    "xid 79 gpu3": ("GH-XID79", "gpu3"),
    "gpu-lost gpu2": ("GH-GPU-LOST", "gpu2"),
    "gpu-gone gpu6": ("GH-GPU-LOST", "gpu6"),
    "ecc gpu0 dram 2": ("GH-ECC-UNC", "gpu0"),
    "remap-failure gpu1": ("GH-REMAP-FAIL", "gpu1"),
    "pcie-width gpu5 8": ("GH-PCIE-WIDTH", "gpu5"),
    "mount-gone /data": ("GH-MNT-GONE", "/data"),
    "nvml-error nvmlInitWithFlags 9": ("GH-NVML-DRV", "gpus"),
    "nvml-error nvmlInitWithFlags 18": ("GH-NVML-MISM", "gpus"),
}


def observe(cluster: Cluster) -> int:
    """A node in mode observe, with a job on all its GPUs that could be requeued."""
    configure(cluster, mode="observe", deadlines=DEADLINES)
    job = start_job(cluster, comment="gpuhealth:ckpt=/shared/ckpt/observed")
    assert hook(cluster, "n1").rc == 0
    return job


def untouched(cluster: Cluster, job: int) -> None:
    """Slurm knows of nothing, and no evidence was kept."""
    assert cluster.job(job)["JobState"] == "RUNNING" and cluster.job(job)["Restarts"] == "0"
    assert cluster.node("n1")["State"] == "MIXED"
    assert cluster.evidence("n1") == []


def test_observe_gives_events_and_changes_nothing(fresh: Cluster):
    """Each fault is an event that says what would have been done; no program is run and nobody is called."""
    job = observe(fresh)
    for fault, (code, subject) in FAULTS.items():
        fresh.inject("n1", fault)
        trace = traced(fresh, "n1")
        assert trace.rc == 0 and trace.programs == [f"{HOOKS}/healthcheck"] and trace.connections == [], (fault, trace)
        said = saw(fresh, "n1", "unacted", code=code, subject=subject)
        assert len(said) == 1 and said[0]["detail"]["why"] == "mode is observe", (fault, fresh.events("n1"))
        fresh.clear("n1")
        assert hook(fresh, "n1").rc == 0
    untouched(fresh, job)
    assert {event["kind"] for event in fresh.events("n1")} <= {"unacted", "finding"}


def test_observe_lets_jobs_start_and_end_beside_a_fault(fresh: Cluster):
    """Prolog and epilog see the fault, say so, and the job runs as if nothing were there."""
    configure(fresh, mode="observe", deadlines=DEADLINES)
    assert hook(fresh, "n1").rc == 0
    fresh.inject("n1", "gpu-lost gpu2")
    job = fresh.sbatch("alice", "exit 3", nodelist="n1", gres="gpu:8", chdir="/", output="/dev/null")
    record = fresh.wait_job(job, "FAILED")
    assert record["Restarts"] == "0" and record["ExitCode"] == "3:0"
    fresh.wait_for(lambda: fresh.node("n1")["State"] == "IDLE", 20, "n1 to be idle")
    assert saw(fresh, "n1", "unacted", code="GH-GPU-LOST")
    assert fresh.evidence("n1") == [] and fresh.node("n1")["State"] == "IDLE"


def test_observe_survives_what_hangs(fresh: Cluster):
    """A hang is an event too; the health check ends on time and leaves one process."""
    job = observe(fresh)
    fresh.inject("n1", "nvml-hang dstate")
    for _ in range(2):
        assert hook(fresh, "n1").seconds < DEADLINES["healthcheck"]
    assert saw(fresh, "n1", "unacted", code="GH-NVML-HANG")
    assert len(fresh.stuck("n1")) == 1
    untouched(fresh, job)


def test_mode_by_partition(fresh: Cluster):
    """`observe` for one partition's jobs: the same fault sends away a job of the other one only."""
    configure(fresh, deadlines=DEADLINES, modes=[{"partitions": ["spare"], "mode": "observe"}])
    fresh.inject("n1", "gpu-lost gpu2")
    spare = fresh.sbatch("alice", "true", partition="spare", nodelist="n1", gres="gpu:8", chdir="/",
                         output="/dev/null")
    assert fresh.wait_job(spare, "COMPLETED")["Restarts"] == "0"
    fresh.wait_for(lambda: fresh.node("n1")["State"] == "IDLE", 20, "n1 to be idle")
    main = fresh.sbatch("alice", "true", nodelist="n1", gres="gpu:8", chdir="/", output="/dev/null")
    fresh.wait_for(lambda: fresh.job(main)["Restarts"] == "1", 40, "the requeue")
    assert fresh.reason("n1").startswith("GH-GPU-LOST gpu2")


def test_drain_mode_requeues_nothing(fresh: Cluster):
    """`drain`: the node goes, the job on the lost GPU stays; Slurm itself sends away what a prolog refuses."""
    configure(fresh, mode="drain", deadlines=DEADLINES)
    job = start_job(fresh, comment="gpuhealth:ckpt=/shared/ckpt/observed")
    assert hook(fresh, "n1").rc == 0
    fresh.inject("n1", "off-bus gpu3")
    hook(fresh, "n1")
    assert fresh.reason("n1").startswith("GH-XID79 gpu3")
    assert fresh.job(job)["JobState"] == "RUNNING" and fresh.job(job)["Restarts"] == "0"


def test_kill_switch_ends_every_hook_at_once(fresh: Cluster):
    """With the file there each hook exits 0 in a few times what a bare interpreter takes, whatever hangs."""
    configure(fresh, deadlines=DEADLINES)
    job = start_job(fresh)
    env = job_env(fresh, job, "n1")
    fresh.write("n1", OFF, "")
    fresh.inject("n1", "off-bus gpu3")
    fresh.inject("n1", "nvml-hang dstate")
    fresh.inject("n1", "mount-hang /data")
    words = " ".join(f"'{key}={value}'" for key, value in {"SLURMD_NODENAME": "n1", **env}.items())
    # Taking turns, so that what else the machine does falls on all of them.
    timed = "s=$(date +%s%N); {}; rc=$?; e=$(date +%s%N); echo {} $rc $((e-s)); "
    turns = timed.format(f"{PYTHON} -IS -c pass", "bare") + "".join(
        timed.format(f"env -i {words} {HOOKS}/{phase} </dev/null", phase) for phase in PHASES)
    lines = fresh.out("n1", f"for i in 1 2 3 4 5 6 7 8 9 10 11; do {turns} done", timeout=120).splitlines()
    seconds: dict[str, list[float]] = {}
    for line in lines:
        phase, rc, nanoseconds = line.split()
        assert rc == "0", line
        seconds.setdefault(phase, []).append(int(nanoseconds) / 1e9)
    bare = statistics.median(seconds.pop("bare"))
    ratios = {phase: statistics.median(found) / bare for phase, found in seconds.items()}
    print("times a bare interpreter:", {phase: round(ratio, 1) for phase, ratio in ratios.items()})
    assert set(ratios) == set(PHASES) and all(ratio < 8 for ratio in ratios.values()), (bare, seconds)
    assert fresh.events("n1") == [] and fresh.evidence("n1") == [] and fresh.stuck("n1") == []
    assert not fresh.drained("n1") and fresh.state(job) == "RUNNING"
    fresh.exec(CTL, ["scancel", str(job)])
