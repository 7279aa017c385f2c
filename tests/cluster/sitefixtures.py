"""Fixtures over the test cluster; a test module takes them with `pytest_plugins = ("sitefixtures",)`."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Cluster
from siteconf import BASE, FORGET, hooks_at_work, put, saw

# A hook that waits for slurmctld or lingers holds the lock; the next one goes on without it, and says so.
WAITED = "the node's lock was not to be had"


@pytest.fixture
def fresh(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with nothing of an earlier test in the product's memory either; its configuration is restored."""
    # A hook that began before the reset may still drain and write after it.
    cluster.wait_for(lambda: not any(hooks_at_work(cluster, node) for node in cluster.nodes), 60, "hooks to end")
    put(cluster, cluster.nodes, BASE)
    cluster.inner.each(cluster.nodes, lambda node: cluster.exec(node, FORGET))
    for node in cluster.nodes:
        if cluster.drained(node):
            cluster.resume(node)
    cluster.wait_for(lambda: not any(cluster.drained(node) for node in cluster.nodes), 20, "nodes in service")
    try:
        yield cluster
        broken = [event for node in cluster.nodes if cluster.inner.running(node)
                  for event in saw(cluster, node, "internal-error", code="GH-SELF")
                  if not event["detail"].get("error", "").startswith(WAITED)]
        assert not broken, broken       # whatever a test is about, a hook never fails by itself
    finally:
        for node in cluster.nodes:
            if cluster.inner.running(node):
                cluster.inner.undo_stuck(node)
                put(cluster, [node], BASE)


@pytest.fixture(scope="module")
def by_hand(testbed: Cluster) -> Iterator[None]:
    """For the tests of one module slurmd runs no health check by itself: each round is one that the test runs."""
    before = dict(testbed.baseline)
    testbed.slurm_conf(HealthCheckInterval=0)
    testbed.baseline = dict(testbed.inner.spec.conf)
    try:
        yield
    finally:
        testbed.baseline = before
        testbed.slurm_conf(HealthCheckInterval=before.get("HealthCheckInterval"))
