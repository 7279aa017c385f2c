"""slurmctld does not answer while a fault is found: the hook ends on time, and the drain follows if it still holds."""
from __future__ import annotations

import pytest
from harness import CTL, Cluster
from siteconf import DEADLINES, configure, faulty_round, healthy_round, hook, saw

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]


def test_slurmctld_away_the_drain_follows(fresh: Cluster):
    """slurmctld stopped when the fault is found: the hook ends on time; the node drains when it is back, also for a
    line that is read from the kernel log only once."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    fresh.stop_ctld()
    try:
        fresh.inject("n1", "xid 79 gpu3")
        for _ in range(2):
            ran = hook(fresh, "n1")
            assert ran.rc == 0 and ran.seconds < DEADLINES["healthcheck"], ran
    finally:
        fresh.start_ctld()
    assert not fresh.drained("n1")
    assert len(fresh.evidence("n1")) == 1
    faulty_round(fresh, "GH-XID79 gpu3")
    assert len(fresh.evidence("n1")) == 1 and len(saw(fresh, "n1", "drain")) == 1


def test_slurmctld_hangs_during_the_drain(fresh: Cluster):
    """slurmctld takes the connection and never answers: the hook ends on time all the same."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    fresh.exec(CTL, "kill -STOP $(cat /run/slurm/slurmctld.pid)", check=True)
    try:
        fresh.inject("n1", "off-bus gpu3")
        ran = hook(fresh, "n1")
        assert ran.rc == 0 and ran.seconds < DEADLINES["healthcheck"], ran
    finally:
        fresh.exec(CTL, "kill -CONT $(cat /run/slurm/slurmctld.pid)", check=True)
    faulty_round(fresh, "GH-XID79 gpu3")
    assert len(fresh.evidence("n1")) == 1


@pytest.mark.parametrize("repair", ["clear", "reboot"])
def test_slurmctld_away_and_repaired_meanwhile(fresh: Cluster, repair: str):
    """What was repaired while slurmctld was away is not drained for afterwards."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    fresh.stop_ctld()
    try:
        fresh.inject("n1", "gpu-lost gpu3" if repair == "clear" else "off-bus gpu3")
        hook(fresh, "n1")
        fresh.clear("n1")
        if repair == "reboot":
            fresh.reboot("n1")
    finally:
        fresh.start_ctld()
    fresh.wait_for(lambda: fresh.node("n1")["State"] == "IDLE", 40, "n1 to be idle")
    for _ in range(2):
        healthy_round(fresh)
    assert not saw(fresh, "n1", "drain")
    assert saw(fresh, "n1", "finding", action="closed")
