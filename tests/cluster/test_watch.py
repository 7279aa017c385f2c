"""The service that runs the health check at the moment of a fault, on real Slurm; slurmd runs none meanwhile."""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from harness import Cluster
from siteconf import DEADLINES, configure, healthy_round, hook, saw

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

LOG, PID = "/run/gpuhealth-watch.log", "/run/gpuhealth-watch.pid"


@pytest.fixture
def watched(fresh: Cluster) -> Iterator[Cluster]:
    """n1 with the service running, after its first round."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 0})
    healthy_round(fresh)
    start(fresh)
    try:
        yield fresh
    finally:
        stop(fresh, "TERM")


def start(cluster: Cluster) -> None:
    cluster.exec("n1", f"/opt/gpuhealth/bin/gpuhealth watch --json > {LOG} 2>&1 & echo $! > {PID}", check=True)
    cluster.wait_for(lambda: [entry for entry in said(cluster) if entry["detail"] == "started"], 15, "the first round")
    time.sleep(1.5)     # its first round, and the gap until the next may follow


def stop(cluster: Cluster, signal: str) -> None:
    cluster.exec("n1", f"kill -{signal} $(cat {PID})")


def said(cluster: Cluster) -> list[dict[str, str]]:
    return [json.loads(line) for line in cluster.out("n1", f"cat {LOG}").splitlines() if line.startswith("{")]


def test_fault_in_the_log_to_drained_node_within_a_second(watched: Cluster):
    """Log window and Facts, then the drain: under a second from the line, and no health check of slurmd's."""
    watched.inject("n1", "off-bus gpu3")
    watched.wait_for(lambda: watched.drained("n1"), 20, "the drain")
    assert watched.reason("n1").startswith("GH-XID79 gpu3")
    drain = watched.wait_for(lambda: saw(watched, "n1", "drain"), 10, "the event")[0]
    line = next(line for line in watched.klog("n1") if "Xid (" in line and ": 79," in line)
    boot = time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)     # containers share the host's clocks
    took = drain["time"] - (boot + int(line.split(",")[2]) / 1e6)
    print(f"\nfrom the line to the drain: {took:.2f} s")
    # Other test clusters on the same two processors take their share.
    assert 0 < took < (1.0 if os.getloadavg()[0] < 2 else 4.0)
    assert len(watched.evidence("n1")) == 1


def test_event_of_nvml_alone_is_enough(watched: Cluster):
    """A GPU that is lost without a word in the log."""
    watched.wait_for(lambda: not [one for one in said(watched) if one["what"] == "nvml-events"], 5, "events")
    watched.inject("n1", "set gpu5.lost=1 gpu2.xid_event=79")
    watched.wait_for(lambda: watched.drained("n1"), 20, "the drain")
    assert watched.reason("n1").startswith("GH-GPU-LOST gpu5")
    assert [entry for entry in said(watched) if entry["detail"].startswith("NVML: ")]


def test_what_a_dead_watcher_missed_the_health_check_finds(watched: Cluster):
    """Killed before the fault: slurmd's own round is the net below it."""
    stop(watched, "KILL")
    watched.inject("n1", "xid 79 gpu1")
    time.sleep(2)
    assert not watched.drained("n1")
    hook(watched, "n1")
    assert watched.reason("n1").startswith("GH-XID79 gpu1")
    start(watched)


def test_stopped_in_the_middle_the_drain_is_finished(watched: Cluster):
    """SIGTERM ends the watcher, not the round that it has started."""
    watched.inject("n1", "off-bus gpu3")
    stop(watched, "TERM")
    time.sleep(4)
    if not watched.drained("n1"):       # it was faster than its own first look
        hook(watched, "n1")
    assert watched.reason("n1").startswith("GH-XID79 gpu3")
    assert len(saw(watched, "n1", "drain")) == 1 and len(watched.evidence("n1")) == 1
    start(watched)


def test_users_faults_do_not_keep_it_busy(watched: Cluster):
    """Twenty lines that a program caused, over some seconds: a handful of rounds, and no drain."""
    for _ in range(20):
        watched.inject("n1", "xid 31 gpu1")
    time.sleep(3)
    rounds = [entry for entry in said(watched) if entry["what"] == "round"]
    assert 2 <= len(rounds) <= 8
    assert not watched.drained("n1")
