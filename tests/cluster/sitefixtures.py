"""Fixtures over the test cluster; a test module takes them with `pytest_plugins = ("sitefixtures",)`."""
from __future__ import annotations

from collections.abc import Iterator

import pytest
from harness import Cluster
from siteconf import BASE, FORGET, put, saw


@pytest.fixture
def fresh(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with nothing of an earlier test in the product's memory either; its configuration is restored."""
    put(cluster, cluster.nodes, BASE)
    # Again, as an epilog of the job that reset() cancelled may have written after it.
    cluster.inner.each(cluster.nodes, lambda node: cluster.exec(node, FORGET))
    try:
        yield cluster
        broken = {node: saw(cluster, node, "internal-error", code="GH-SELF") for node in cluster.nodes
                  if cluster.inner.running(node)}
        assert not any(broken.values()), broken     # whatever a test is about, a hook never fails by itself
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
