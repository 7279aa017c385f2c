"""Whose drain it is: an admin's stays as it is, ours is put back, and resumed by rule."""
from __future__ import annotations

import pytest
from harness import CTL, Cluster
from siteconf import DEADLINES, configure, faulty_round, healthy_round, hook, saw

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

ADMIN = "PSU swap, ticket 4711"
KILL = "Kill task failed"


def update(cluster: Cluster, **keys: str) -> None:
    cluster.exec(CTL, ["scontrol", "update", "NodeName=n1", *(f"{key}={value}" for key, value in keys.items())],
                 check=True)


# -- somebody else's drain

@pytest.mark.parametrize("reason", [ADMIN, "GH-RACK 7 moved", KILL])
def test_an_admins_drain_stays_as_it_is(fresh: Cluster, reason: str):
    """Faults under somebody else's drain: its reason, user and time stay, and nobody resumes the node."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0}, recover={"clean_rounds": 1})
    healthy_round(fresh)
    update(fresh, State="DRAIN", Reason=reason)
    before = fresh.node("n1")["Reason"]
    fresh.inject("n1", "off-bus gpu3")
    fresh.inject("n1", "mount-gone /data")
    hook(fresh, "n1")
    assert fresh.node("n1")["Reason"] == before
    assert saw(fresh, "n1", "unacted", code="GH-XID79")
    fresh.clear("n1")
    for _ in range(3):
        hook(fresh, "n1")
    assert fresh.drained("n1") and fresh.node("n1")["Reason"] == before
    assert not saw(fresh, "n1", "drain") and not saw(fresh, "n1", "resume-node")


def test_kill_task_failed_over_our_reason(fresh: Cluster):
    """slurmstepd's word over our open incident: the next round puts ours back, whether the fault still shows or not."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    fresh.inject("n1", "off-bus gpu3")
    faulty_round(fresh, "GH-XID79 gpu3")
    ours = fresh.reason("n1")
    for again in ("still there", "gone"):
        update(fresh, State="DRAIN", Reason=KILL)
        assert fresh.reason("n1") == KILL
        if again == "gone":
            fresh.clear("n1")
        hook(fresh, "n1")
        assert fresh.reason("n1") == ours, again
    assert len(saw(fresh, "n1", "restore-reason")) == 2
    assert len(fresh.evidence("n1")) == 1


def test_an_admin_who_takes_over_our_drain_keeps_it(fresh: Cluster):
    """Our reason replaced by an admin's: it is the admin's node from then on."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0}, recover={"clean_rounds": 1})
    healthy_round(fresh)
    fresh.inject("n1", "mount-gone /data")
    faulty_round(fresh, "GH-MNT-GONE /data")
    update(fresh, Reason=ADMIN)
    hook(fresh, "n1")
    fresh.clear("n1")
    for _ in range(2):
        hook(fresh, "n1")
    assert fresh.drained("n1") and fresh.reason("n1") == ADMIN


# -- our own drain, given back

def test_recoverable_fault_is_resumed_after_clean_rounds(fresh: Cluster):
    """The mount is back: after the second clean round in a row, and not before, the node serves again."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0}, recover={"clean_rounds": 2})
    healthy_round(fresh)
    fresh.inject("n1", "mount-gone /data")
    faulty_round(fresh, "GH-MNT-GONE /data")
    fresh.clear("n1")
    hook(fresh, "n1")
    fresh.inject("n1", "mount-gone /data")
    hook(fresh, "n1")
    fresh.clear("n1")
    hook(fresh, "n1")
    assert fresh.drained("n1")
    hook(fresh, "n1")
    assert not fresh.drained("n1")
    assert len(saw(fresh, "n1", "resume-node")) == 1
    fresh.inject("n1", "mount-gone /data")      # it is a new incident now
    faulty_round(fresh, "GH-MNT-GONE /data")
    assert len(fresh.evidence("n1")) == 2


def test_hardware_is_not_resumed_and_zero_means_never(fresh: Cluster):
    """A GPU that came back by itself stays out; with clean_rounds 0 so does a mount."""
    configure(fresh, deadlines=DEADLINES, recover={"clean_rounds": 1})
    healthy_round(fresh)
    fresh.inject("n1", "gpu-lost gpu3")
    faulty_round(fresh, "GH-GPU-LOST gpu3")
    fresh.clear("n1")
    for _ in range(3):
        hook(fresh, "n1")
    assert fresh.drained("n1") and fresh.reason("n1").startswith("GH-GPU-LOST gpu3")
    fresh.resume("n1")
    healthy_round(fresh)
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0})
    fresh.inject("n1", "mount-gone /data")
    faulty_round(fresh, "GH-MNT-GONE /data")
    fresh.clear("n1")
    for _ in range(2):
        hook(fresh, "n1")
    assert fresh.drained("n1")


def test_nothing_inside_a_maintenance_reservation(fresh: Cluster):
    """MAINT: no drain and no resume; both follow when it ends."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0}, recover={"clean_rounds": 1})
    healthy_round(fresh)
    reserve = ["scontrol", "create", "reservation", "ReservationName=work", "Flags=MAINT,IGNORE_JOBS", "Nodes=n1",
               "StartTime=now", "Duration=60", "Users=root"]
    remove = ["scontrol", "delete", "ReservationName=work"]
    try:
        fresh.exec(CTL, reserve, check=True)
        fresh.wait_for(lambda: "MAINT" in fresh.node("n1")["State"], 20, "the reservation to begin")
        fresh.inject("n1", "mount-gone /data")
        hook(fresh, "n1")
        assert not fresh.drained("n1") and not saw(fresh, "n1", "drain")
        fresh.exec(CTL, remove, check=True)
        fresh.wait_for(lambda: "MAINT" not in fresh.node("n1")["State"], 20, "the reservation to end")
        faulty_round(fresh, "GH-MNT-GONE /data")
        fresh.exec(CTL, reserve, check=True)
        fresh.wait_for(lambda: "MAINT" in fresh.node("n1")["State"], 20, "the reservation to begin")
        fresh.clear("n1")
        for _ in range(2):
            hook(fresh, "n1")
        assert fresh.drained("n1") and fresh.reason("n1").startswith("GH-MNT-GONE")
        fresh.exec(CTL, remove, check=True)
        fresh.wait_for(lambda: "MAINT" not in fresh.node("n1")["State"], 20, "the reservation to end")
        hook(fresh, "n1")
        assert not fresh.drained("n1")
    finally:
        fresh.exec(CTL, remove)


def test_an_acknowledged_fault_drains_nothing(fresh: Cluster):
    """`gpuhealth node ack` for one GPU: that one no more, another one still; taken back it drains."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    done = fresh.gpuhealth("n1", "node", "ack", "GH-PCIE-WIDTH", "--subject", "gpu5", "--until", "1d")
    assert done.returncode == 0, done.stderr
    fresh.inject("n1", "pcie-width gpu5 8")
    healthy_round(fresh)
    job = fresh.sbatch("alice", "true", nodelist="n1", gres="gpu:8", chdir="/", output="/dev/null")
    assert fresh.wait_job(job, "COMPLETED")["Restarts"] == "0"
    fresh.inject("n1", "pcie-width gpu6 8")
    faulty_round(fresh, "GH-PCIE-WIDTH gpu6")
    fresh.clear("n1")
    assert fresh.gpuhealth("n1", "node", "resume").returncode == 0
    fresh.inject("n1", "pcie-width gpu5 8")
    healthy_round(fresh)
    assert fresh.gpuhealth("n1", "node", "ack", "GH-PCIE-WIDTH", "--subject", "gpu5", "--clear").returncode == 0
    faulty_round(fresh, "GH-PCIE-WIDTH gpu5")
