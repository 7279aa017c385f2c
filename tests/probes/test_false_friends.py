"""What looks like a fault and is none drains nothing, and what it looks like does: whole rounds through the real
nvidia-ml-py on the simulated library, with every check that needs nothing but NVML.
"""
import pytest
import simulated_node

pytestmark = pytest.mark.allow_subprocess

library, rounds = simulated_node.library, simulated_node.rounds

BUSY = ["gpu2.util=98", "gpu2.clock.sm=1700", "gpu2.pstate=0"]
MIG = ["model=A100-MIG"]
ERRORS = ["gpu3.ecc.uncorrected.%s.dram=2" % when for when in ("volatile", "aggregate")]


def test_idle_pcie_generation(rounds):
    """An idle GPU lowers its link's speed, never its width."""
    slow = ["gpu*.pcie.gen=1", "gpu*.pstate=8"]
    idle, narrow = rounds(slow, [*slow, "gpu3.pcie.width=8"])
    assert idle.findings == {}
    assert narrow.fatal == ["GH-PCIE-WIDTH"]


def test_pending_remap(rounds):
    """A remap that waits for a reset endangers nobody; one that failed never gets better."""
    waits, failed = rounds(["gpu3.remap.pending=1", "gpu3.remap.uncorrected=1"], ["gpu3.remap.failure=1"])
    assert waits.fatal == [] and ("GH-REMAP-PEND", "gpu3") in waits.findings
    assert failed.fatal == ["GH-REMAP-FAIL"]


def test_software_power_cap(rounds):
    """At its power limit a GPU works as it should; hardware slowdown round after round is a fault."""
    capped = [*BUSY, "gpu2.clock_reasons=4", "gpu2.power=700000", "gpu2.violation.power=900000000000"]
    slowed = [*BUSY, "gpu2.clock_reasons=0x48"]
    found = rounds(*[capped] * 3, *[slowed] * 3)
    assert [one.findings for one in found[:3]] == [{}] * 3
    assert [one.fatal for one in found[3:]] == [[], [], ["GH-OVERHEAT"]]


def test_card_without_nvlink(rounds):
    """A PCIe card has no NVLink and no fabric; an H100 without a bridge has links that were never up."""
    card, bare = rounds(["model=L40S"], ["gpu*.nvlink_switches=0", "gpu*.fabric.state=0"] + [
        "gpu*.nvlink.%d.state=0" % number for number in range(18)])
    assert (card.findings, bare.findings) == ({}, {})
    assert card.outcomes["nvlink"] == card.outcomes["fabric"] == bare.outcomes["nvlink"] == "ok"
    assert rounds(["gpu3.nvlink.5.state=0"])[0].fatal == ["GH-NVLINK-DN"]


def test_mig_refuses(rounds):
    """With MIG remapping, utilisation, NVLink and more are not available, and that is no fault, in any phase; nor are
    56 MIG devices too many GPUs. A lost GPU is one with MIG too."""
    found = rounds(MIG, {"lines": MIG, "phase": "prolog"}, {"lines": MIG, "phase": "epilog"},
                   {"lines": MIG, "phase": "manual"}, [*MIG, "gpu3.mig_instances=0"], [*MIG, "gpu3.lost=1"])
    assert [one.findings for one in found[:5]] == [{}] * 5
    assert all(outcome in ("ok", "skipped") for one in found[:5] for outcome in one.outcomes.values())
    assert found[0].gpus[0]["mig_devices"] == ["1g.10gb"] * 7
    assert found[5].fatal == ["GH-GPU-LOST"]


def test_old_driver(rounds):
    """A driver of 2021 lacks two dozen calls: unsupported, no fault, nothing unknown. What it can say still counts."""
    for model in ("A100", "V100", "H100"):
        found = rounds(["model=" + model], ["model=" + model, "gpu3.pcie.width=4"], old=True)
        assert found[0].findings == {}
        assert all(outcome in ("ok", "skipped") for outcome in found[0].outcomes.values())
        assert found[1].fatal == ["GH-PCIE-WIDTH"]


def test_driver_reload(rounds):
    """Volatile counters, violation times and NVLink counters start from zero with the driver; the board's own total
    stays. A new error is one."""
    total = "gpu3.ecc.uncorrected.aggregate.dram=%d"
    many = ["gpu3.ecc.uncorrected.volatile.dram=5", total % 9, "gpu3.nvlink.5.err.recovery=7",
            "gpu3.violation.hw_thermal=900000000000", "gpu3.pcie.replay=500"]
    found = rounds(many, many, [total % 9], {"lines": [total % 9], "boot": 1},
                   {"lines": ["gpu3.ecc.uncorrected.volatile.dram=1", total % 10], "boot": 1})
    assert [one.fatal for one in found] == [[], [], [], [], ["GH-ECC-UNC"]]
    assert not any(code.startswith(("GH-NVLINK", "GH-OVERHEAT", "GH-GPU-SWAP"))
                   for one in found[2:4] for code, _ in one.findings)


def test_order_changed_after_reboot(rounds):
    """NVML counts in another order after a reboot: the same boards with the same counters, and a link that goes down is
    the right GPU's."""
    counted = ["gpu2.nvlink.1.err.recovery=9", *(line.replace("gpu3", "gpu2") for line in ERRORS)]
    moved = [*counted, "order=7,3,1,5,0,2,4,6"]
    found = rounds(counted, counted, {"lines": moved, "boot": 1},
                   {"lines": [*moved, "gpu2.nvlink.4.state=0"], "boot": 1})
    assert [one.findings for one in found[1:3]] == [{}, {}]
    assert [gpu["index"] for gpu in found[2].gpus] == [7, 3, 1, 5, 0, 2, 4, 6]
    assert list(found[3].findings) == [("GH-NVLINK-DN", "gpu2")]


def test_idle_l40s(rounds):
    """Idle: P8, generation 1, lowest clock, no memory temperature, no NVLink, no fabric, no MIG: all well."""
    idle, hot = rounds(["model=L40S"], ["model=L40S", "gpu1.temp=92"])
    assert idle.findings == {} and all(outcome in ("ok", "skipped") for outcome in idle.outcomes.values())
    assert idle.gpus[0]["pcie_gen"] == 1 and idle.gpus[0]["temperature_memory"]["unknown"] == "unsupported"
    assert hot.fatal == ["GH-OVERHEAT"]


@pytest.mark.parametrize("model", ["H100", "H200", "A100", "A100-MIG", "L40S", "V100"])
@pytest.mark.parametrize("phase", ["prolog", "healthcheck"])
def test_every_model_is_healthy(rounds, model, phase):
    """Idle and healthy, each model in each phase: nothing found, nothing unknown."""
    found = rounds(*[{"lines": ["model=" + model], "phase": phase}] * 2)
    assert [one.findings for one in found] == [{}, {}]
    assert all(outcome in ("ok", "skipped") for one in found for outcome in one.outcomes.values())


def test_slowdown_now_and_then(rounds):
    """Two rounds in a row, a good one between: no fault, however often."""
    slow = [*BUSY, "gpu2.clock_reasons=8"]
    found = rounds(*[slow if number % 3 else BUSY for number in range(7)])
    assert [one.fatal for one in found] == [[]] * 7


def test_links_counted_from_zero_after_a_new_board(rounds):
    """A board that was replaced has another UUID: its counters are its own, and its links were never seen."""
    found = rounds(["gpu3.nvlink.5.err.recovery=4"], ["gpu3.uuid=GPU-new", "gpu3.nvlink.5.err.recovery=9"])
    assert found[1].fatal == [] and ("GH-NVLINK-ERR", "gpu3") not in found[1].findings
