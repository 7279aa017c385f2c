"""Faults on a running cluster: check the words, then do the steps on the node."""

from __future__ import annotations

import re
from functools import lru_cache

from . import faults
from .cluster import TestCluster
from .errors import UsageError
from .faults import Node, Step
from .paths import TESTBED_DIR


@lru_cache(maxsize=1)
def nvml_calls() -> frozenset[str]:
    """Symbols of the simulated NVML, read from its sources: a fault that names none of them could never show."""
    text = "".join(path.read_text() for path in (TESTBED_DIR / "nvml").glob("*.c"))
    return frozenset(re.findall(r"\b(nvml[A-Z]\w+(?<!_t))\s*[(,]", text))


def read_state(cluster: TestCluster, node: str) -> dict[str, str]:
    """The GPU state file of a node."""
    lines = cluster.exec(node, ["gpusim", "state"]).check().stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def inject(cluster: TestCluster, node: str, words: list[str]) -> None:
    """Do one fault. Raises UsageError before anything is changed where the words are wrong."""
    if node not in cluster.nodes:
        raise UsageError(f"faults go to a GPU node ({', '.join(cluster.nodes)}), not to {node!r}")
    # The state is read only where a line of the kernel log needs the GPU's PCI address: a node may be down.
    state = read_state(cluster, node) if words and words[0] in ("xid", "aer", "off-bus") else {}
    steps = faults.parse(Node(cluster.spec.gpus, state, nvml_calls()), words)
    for step in steps:
        apply(cluster, node, step)


def apply(cluster: TestCluster, node: str, step: Step) -> None:
    if step.verb == "power":
        {
            "kill": cluster.kill,
            "reboot": cluster.reboot,
            "slurmd-stop": cluster.stop_daemon,
            "slurmd-start": cluster.start_daemon,
        }[step.args[0]](node)
    else:
        cluster.exec(node, ["gpusim", step.verb, *step.args], stdin=step.stdin).check()


def clear(cluster: TestCluster, node: str) -> None:
    """Healthy again: GPU state, NVML library, mounts, nothing frozen; switched on where it was off.

    The kernel log stays as it is, and so does what Slurm thinks of the node.
    """
    if node not in cluster.nodes:
        raise UsageError(f"no GPU node {node!r} (there are: {', '.join(cluster.nodes)})")
    if not cluster.running(node):
        cluster.reboot(node)
    cluster.undo_stuck(node)
    cluster.exec(node, ["gpusim", "clear"]).check()
