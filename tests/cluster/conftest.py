"""Cluster tests run when asked for: `pytest tests/cluster --cluster [--slurm-release 22.05]`.

The options are defined in tests/conftest.py. GPUHEALTH_TESTBED=NAME uses a cluster that is up already (and leaves it
up); otherwise one is made for the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from harness import Cluster
from testbed_lib import engine

SESSION_TIMEOUT_S = 1800  # the first test's clock also runs while images are built


def unavailable(config: pytest.Config) -> str | None:
    """Why no cluster test can run here, asked of the machine; None where they can."""
    if not config.getoption("--cluster", default=False):
        return "cluster tests run with --cluster"
    return engine.can_have_engine()


def pytest_report_header(config: pytest.Config) -> str:
    why = unavailable(config)
    if why is not None:
        return f"test cluster: not used ({why})"
    named = os.environ.get("GPUHEALTH_TESTBED")
    which = f"the running one named {named}" if named else f"Slurm {config.getoption('--slurm-release')}"
    return f"test cluster: {which}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    why = unavailable(config)
    for item in items:
        if item.get_closest_marker("cluster") is None:
            continue
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))
        elif item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SESSION_TIMEOUT_S))


@pytest.fixture(scope="session")
def testbed(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """The session's cluster."""
    named = os.environ.get("GPUHEALTH_TESTBED")
    if named:
        cluster = Cluster.attach(named)
        yield cluster
        cluster.close()
        return
    release = pytestconfig.getoption("--slurm-release")
    cluster = Cluster.up(f"test-{release.replace('.', '')}", slurm=release)
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def cluster(testbed: Cluster) -> Iterator[Cluster]:
    """The cluster as after `up`: what an earlier test did to it is undone first, what could hang afterwards too."""
    testbed.reset()
    try:
        yield testbed
    finally:
        for node in testbed.nodes:
            if testbed.inner.running(node):
                testbed.inner.undo_stuck(node)
