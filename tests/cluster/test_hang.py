"""What never returns: NVML in D state, a mount whose stat hangs. The hook ends on time, the node drains."""
from __future__ import annotations

import pytest
from harness import Cluster
from siteconf import DEADLINES, configure, drains, healthy_round, hook, saw, start_job

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]


def hung_once(cluster: Cluster, fault: str, reason: str, output: str = "/dev/null") -> None:
    """A health check of a node with a job finds `fault`; three more hooks, the job's own epilog among them, leave it at
    one process in D state. output: where the job's output goes."""
    configure(cluster, deadlines=DEADLINES, brake={"jitter": 0})
    healthy_round(cluster)
    job = start_job(cluster, gres="gpu:1", output=output)
    cluster.inject("n1", fault)
    first = hook(cluster, "n1")
    assert first.rc == 0 and first.seconds < DEADLINES["healthcheck"], first
    assert cluster.node("n1")["State"].startswith("MIXED+DRAIN")
    assert cluster.reason("n1").startswith(reason), cluster.reason("n1")
    stuck = cluster.stuck("n1")
    assert len(stuck) == 1, stuck

    assert hook(cluster, "n1").seconds < DEADLINES["healthcheck"]
    cluster.exec("ctl", ["scancel", str(job)], check=True)
    cluster.wait_for(lambda: cluster.state(job) == "CANCELLED", DEADLINES["epilog"] + 10, "the epilog to be over")
    cluster.wait_for(lambda: cluster.node("n1")["State"].startswith("IDLE+DRAIN"), 10, "n1 to be empty")
    assert hook(cluster, "n1").seconds < DEADLINES["healthcheck"]
    assert cluster.stuck("n1") == stuck
    assert cluster.reason("n1").startswith(reason)
    assert len(drains(cluster, "n1")) == len(set(drains(cluster, "n1"))) > 0
    assert len(cluster.evidence("n1")) == 1
    assert len(saw(cluster, "n1", "drain")) == 1


def test_nvml_in_d_state(fresh: Cluster):
    """NVML that hangs for ever drains the node, and is asked by no second process while the first one hangs."""
    hung_once(fresh, "nvml-hang dstate", "GH-NVML-HANG")


def test_mount_whose_stat_never_returns(fresh: Cluster):
    """A mount that hangs drains the node with its path, and gets no second visitor, not even for the
    tail of a job's output that lies on it."""
    hung_once(fresh, "mount-hang /data", "GH-MNT-HANG /data", "/data/ckpt/out")


def test_shared_folder_that_never_returns(fresh: Cluster):
    """The same for the folder that our own events are mirrored to: the mirror is no second way to hang."""
    hung_once(fresh, "mount-hang /shared", "GH-MNT-HANG /shared", "/shared/ckpt/out")


@pytest.mark.parametrize("fault, reason", [("nvml-hang dstate", "GH-NVML-HANG"),
                                           ("mount-hang /data", "GH-MNT-HANG /data")])
def test_prolog_in_front_of_what_hangs(fresh: Cluster, fault: str, reason: str):
    """The prolog ends before its deadline, the job never starts there and runs elsewhere, the node is drained."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0})
    healthy_round(fresh)
    fresh.inject("n1", fault)
    job = fresh.sbatch("alice", "echo $SLURMD_NODENAME >> /shared/ckpt/ran", chdir="/", output="/dev/null",
                       gres="gpu:8", nodelist="n1")
    fresh.wait_for(lambda: fresh.job(job)["Restarts"] == "1", DEADLINES["prolog"] + 15, "the job to be sent away")
    fresh.wait_for(lambda: fresh.drained("n1") and "COMPLETING" not in fresh.node("n1")["State"],
                   DEADLINES["prolog"] + 10, "the prolog to be over")
    assert fresh.reason("n1").startswith(reason), fresh.reason("n1")
    fresh.exec("ctl", ["scontrol", "update", f"JobId={job}", "ReqNodeList=n2"], check=True)
    record = fresh.wait_job(job, "COMPLETED", timeout=60)
    assert record["BatchHost"] == "n2" and record["Restarts"] == "1"
    assert fresh.read("ctl", "/shared/ckpt/ran") == "n2\n"


def test_late_once_drains_nothing_late_twice_does(fresh: Cluster):
    """One late round is a warning; an answer in time forgets it; two late rounds in a row are a fault."""
    configure(fresh, deadlines=dict(DEADLINES, nvml=2))
    healthy_round(fresh)
    fresh.inject("n1", "nvml-hang nvmlDeviceGetCount_v2 times=1")
    healthy_round(fresh)
    assert saw(fresh, "n1", "finding", code="GH-NVML-LATE")
    healthy_round(fresh)
    for _ in range(2):
        assert not fresh.drained("n1")
        fresh.exec("n1", "rm -f /var/lib/gpusim/state.hangs")     # the next one hangs once more
        hook(fresh, "n1")
    assert fresh.drained("n1")
    assert fresh.reason("n1").startswith("GH-NVML-HANG"), fresh.reason("n1")
    assert fresh.stuck("n1") == []


def test_prolog_asks_a_late_source_again(fresh: Cluster):
    """A source that is late once in a prolog does not cost the job its node: the prolog looks twice."""
    configure(fresh, deadlines=dict(DEADLINES, nvml=2))
    healthy_round(fresh)
    fresh.inject("n1", "nvml-hang nvmlDeviceGetCount_v2 times=1")
    job = fresh.sbatch("alice", "true", nodelist="n1", gres="gpu:1", chdir="/", output="/dev/null")
    record = fresh.wait_job(job, "COMPLETED", timeout=40)
    assert record["Restarts"] == "0" and record["BatchHost"] == "n1"
    assert not fresh.drained("n1")
