"""Every kind of GPU fault, and what only looks like one, on a real node with real Slurm.

The whole table is tests/faults; here each kind goes the whole way once. Each round is one that the test runs.
"""
from __future__ import annotations

import pytest
from harness import Cluster
from siteconf import DEADLINES, configure, healthy_round, hook, saw

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

# What is injected, how often the health check must see it, and how slurmctld's reason begins then.
BROKEN = [
    (["xid 95 gpu2"], 1, "GH-XID95 gpu2"),
    (["xid 119 gpu1"], 1, "GH-XID119 gpu1"),
    (["sxid 20034 1 fatal"], 1, "GH-SXID nvswitch1"),
    (["sxid 20034 1 fatal", "xid 74 gpu3"], 1, "GH-SXID nvswitch1"),
    (["aer gpu4 fatal", "xid 79 gpu4", "set gpu4.lost=1"], 1, "GH-XID79 gpu4"),
    (["klog NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus."], 1, "GH-BUS-OFF gpu3"),
    (["klog NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x22:0x56:894)"], 1, "GH-RM-INIT gpu3"),
    (["ecc gpu0 dram 2"], 1, "GH-ECC-UNC gpu0"),
    (["remap-failure gpu1"], 1, "GH-REMAP-FAIL gpu1"),
    (["sram-limit gpu1"], 1, "GH-SRAM-LIMIT gpu1"),
    (["unrepairable gpu1"], 1, "GH-MEM-BAD gpu1"),
    (["recovery-action gpu3 2"], 1, "GH-GPU-RESET gpu3"),
    (["nvlink-down gpu2 4"], 1, "GH-NVLINK-DN gpu2"),
    (["fabric-health gpu1 2"], 1, "GH-FABRIC-BAD gpu1"),
    (["compute-mode gpu1 2"], 1, "GH-COMP-PROH gpu1"),
    (["slowdown gpu2 0x48"], 3, "GH-OVERHEAT gpu2"),
    (["slowdown gpu2 0x88"], 3, "GH-POWER-BRAKE gpu2"),
]
# What is injected and drains nothing, however often it is seen; the codes that may be noted.
HARMLESS = [
    (["xid 31 gpu1", "xid 13 gpu1", "xid 43 gpu1", "xid 45 gpu1"], {"GH-XID-USER"}),
    (["xid 63 gpu1", "remap-pending gpu1"], {"GH-REMAP-PEND", "GH-XID63"}),
    (["pcie-gen all 1"], {"GH-PCIE-GEN"}),
    (["clock-reasons gpu0 0x4"], set()),
    (["aer gpu0 corrected"], {"GH-PCIE-CORR"}),
    (["repair-pending gpu1"], {"GH-REPAIR-PEND"}),
    (["inforom gpu1"], {"GH-INFOROM"}),
    (["persistence all 0"], {"GH-PERSIST-OFF"}),
    (["mig all 7"], None),
    (["model L40S"], None),
    (["no-symbol nvmlDeviceGetGpuFabricInfoV nvmlDeviceGetSramEccErrorStatus nvmlDeviceGetMarginTemperature"], set()),
]


def rounds(cluster: Cluster, words: list[str], count: int) -> None:
    configure(cluster, deadlines=DEADLINES, brake={"jitter": 0})
    healthy_round(cluster)
    for word in words:
        cluster.inject("n1", word)
    for number in range(count):
        if number:
            cluster.exec("n1", "sleep 3.1")     # rounds that follow at once are one sample
        hook(cluster, "n1")


@pytest.mark.parametrize("words, count, reason", BROKEN, ids=[" + ".join(row[0])[:50] for row in BROKEN])
def test_broken_gpu_drains(fresh: Cluster, words: list[str], count: int, reason: str):
    """One drain with the code and Slurm's own index, one evidence folder, and the replay decides the same."""
    rounds(fresh, words, count)
    assert fresh.drained("n1") and fresh.reason("n1").startswith(reason), fresh.reason("n1")
    assert len(saw(fresh, "n1", "drain")) == 1
    [folder] = fresh.evidence("n1")
    assert fresh.gpuhealth("n1", "evidence", "verify", folder.rstrip("/")).returncode == 0
    assert fresh.gpuhealth("n1", "replay", folder.rstrip("/")).returncode == 0


@pytest.mark.parametrize("words, codes", HARMLESS, ids=[" + ".join(row[0])[:50] for row in HARMLESS])
def test_what_only_looks_broken_drains_nothing(fresh: Cluster, words: list[str], codes: set[str] | None):
    """Users' faults, noise, another model, an old driver: at most a note or a warning, in three rounds."""
    rounds(fresh, words, 3)
    assert not fresh.drained("n1"), fresh.reason("n1")
    assert not fresh.evidence("n1")
    if codes is not None:
        # The simulated nodes have no /dev/nvidia-uvm, which is a note.
        assert {event["code"] for event in saw(fresh, "n1", "finding")} <= codes | {"GH-DEV-GONE"}


@pytest.mark.parametrize("words, reason, again", [
    (["xid 119 gpu1"], "GH-XID119 gpu1", False),            # a line of the boot before is over
    (["remap-failure gpu1"], "GH-REMAP-FAIL gpu1", True),   # is written on the board
])
def test_what_a_reboot_clears(fresh: Cluster, words: list[str], reason: str, again: bool):
    """Drained, rebooted, resumed by an administrator: what was of the old boot is not found again, what stays is."""
    rounds(fresh, words, 1)
    assert fresh.reason("n1").startswith(reason)
    fresh.reboot("n1")
    for word in words if again else []:
        fresh.inject("n1", word)        # the power cycle of the test cluster clears more than a real one
    fresh.wait_for(lambda: "DOWN" not in fresh.node("n1")["State"], 60, "n1 back")
    assert fresh.gpuhealth("n1", "node", "resume").returncode == 0
    hook(fresh, "n1")
    assert fresh.drained("n1") is again, fresh.reason("n1")
