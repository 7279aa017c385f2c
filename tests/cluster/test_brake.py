"""A storage outage: every node loses the same mount at one moment, and the cluster is not drained for it."""
from __future__ import annotations

import time

import pytest
from harness import CTL, Cluster
from siteconf import DEADLINES, configure, saw

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

SCRIPT = """
mountpoint -q /data && how=with || how=without
echo $how $SLURMD_NODENAME >> /shared/ckpt/ran
"""
ALERTS = "/run/alerts"      # where the notification command of this test writes


def queue(cluster: Cluster, count: int) -> list[int]:
    """Jobs that wait for a release, each with all GPUs of a node."""
    return [cluster.sbatch("alice", SCRIPT, gres="gpu:8", hold=True, chdir="/", output="/dev/null")
            for _ in range(count)]


def drained(cluster: Cluster) -> list[str]:
    return [node for node in cluster.nodes if cluster.drained(node)]


def test_all_nodes_lose_one_mount(fresh: Cluster):
    """Drains stay within the limit (1 of 3), no script starts on a node without the mount, exactly one alert is
    given, and the jobs run once the mount is back."""
    fresh.inner.each(fresh.nodes, lambda node: fresh.exec(node, ["rm", "-f", ALERTS], check=True))
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 3, "send_back": 10}, notify={
        "command": ["/usr/bin/tee", "-a", ALERTS]})
    fresh.slurm_conf(HealthCheckInterval=4)
    time.sleep(5)       # a healthy round everywhere
    jobs = queue(fresh, 5)
    fresh.inner.each(fresh.nodes, lambda node: fresh.inject(node, "mount-gone /data"))
    fresh.exec(CTL, ["scontrol", "release", ",".join(map(str, jobs))], check=True)

    fresh.wait_for(lambda: drained(fresh), 40, "the first drain")
    fresh.wait_for(lambda: sum(len(saw(fresh, node, "brake", action="alert")) for node in fresh.nodes), 60, "an alert")
    # Long enough for jobs that were sent back to come again, and for several more rounds.
    until = time.monotonic() + 30
    counts = []
    while time.monotonic() < until:
        counts.append(len(drained(fresh)))
        time.sleep(1)
    # Two may drain at one moment; the later one takes its own back at once. What stays is the limit.
    assert counts[-10:] == [1] * 10, counts
    [out] = drained(fresh)
    assert fresh.reason(out).startswith("GH-MNT-GONE /data"), fresh.reason(out)
    alerts = {node: len(saw(fresh, node, "brake", action="alert")) for node in fresh.nodes}
    assert sum(alerts.values()) == 1, alerts
    told = "".join(fresh.out(node, f"cat {ALERTS} 2>/dev/null || true") for node in fresh.nodes)
    assert told.count('"what": "brake"') == 1, told
    assert not fresh.exists(CTL, "/shared/ckpt/ran"), fresh.read(CTL, "/shared/ckpt/ran")
    states = {job: fresh.job(job) for job in jobs}
    assert all(state["JobState"] in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING") for state in states.values())
    assert not any("Held" in state["Reason"] or state["Priority"] == "0" for state in states.values()), states

    fresh.inner.each(fresh.nodes, lambda node: fresh.inject(node, "mount-back /data"))
    for job in jobs:
        fresh.wait_job(job, "COMPLETED", timeout=120)
    ran = fresh.read(CTL, "/shared/ckpt/ran").split("\n")[:-1]
    assert len(ran) == len(jobs) and all(line.startswith("with ") for line in ran), ran


def test_one_node_loses_a_mount(fresh: Cluster):
    """Alone it is a fault of the node: drained, no alert, the others serve on."""
    configure(fresh, deadlines=DEADLINES, brake={"jitter": 1})
    fresh.slurm_conf(HealthCheckInterval=4)
    fresh.inject("n2", "mount-gone /data")
    fresh.wait_for(lambda: fresh.drained("n2"), 40, "n2 to be drained")
    assert fresh.reason("n2").startswith("GH-MNT-GONE /data")
    time.sleep(8)
    assert drained(fresh) == ["n2"]
    assert not any(saw(fresh, node, "brake") for node in fresh.nodes)
