"""Faults of memory, link and identity, and what looks like them, set in the simulated NVML and seen through the real
nvidia-ml-py by whole health-check rounds."""
import pytest
from simulated_node import library, rounds  # noqa: F401

pytestmark = [pytest.mark.allow_subprocess]

# (state lines of the round after a healthy one, {(code, subject): severity} of what is found; nothing else is fatal)
FAULTS = {
    "dram-error": (["gpu3.ecc.uncorrected.volatile.dram=2", "gpu3.ecc.uncorrected.aggregate.dram=2"],
                   {("GH-ECC-UNC", "gpu3"): ("fatal", "2 new uncorrectable (dram)")}),
    "sram-error": (["gpu3.ecc.uncorrected.volatile.sram=1", "gpu3.ecc.uncorrected.aggregate.sram=1"],
                   {("GH-ECC-UNC", "gpu3"): ("fatal", "1 new uncorrectable (sram)")}),
    "corrected-rate": (["gpu3.ecc.corrected.volatile.dram=4000", "gpu3.ecc.corrected.aggregate.dram=4000"],
                       {("GH-ECC-COR", "gpu3"): ("warning", "4000 corrected in 5 min")}),
    "corrected-turns-uncorrectable": (
        ["gpu3.ecc.corrected.volatile.dram=4000", "gpu3.ecc.uncorrected.volatile.dram=1"],
        {("GH-ECC-UNC", "gpu3"): ("fatal", "1 new uncorrectable (dram), 4000 corrected")}),
    "sram-limit": (["gpu3.sram.threshold_exceeded=1", "gpu3.sram.unc_secded.aggregate=7"],
                   {("GH-SRAM-LIMIT", "gpu3"): ("fatal", "7 SRAM errors")}),
    "remap-failed": (["gpu3.remap.failure=1"], {("GH-REMAP-FAIL", "gpu3"): ("fatal", "")}),
    "no-spare-rows": (["gpu3.remap.hist.none=2"],
                      {("GH-REMAP-LOW", "gpu3"): ("warning", "2 banks without spare rows")}),
    "unrepairable": (["gpu3.unrepairable=1"], {("GH-MEM-BAD", "gpu3"): ("fatal", "")}),
    "inforom": (["gpu3.inforom_corrupt=1"], {("GH-INFOROM", "gpu3"): ("warning", "")}),
    "recovery-p2p": (["gpu3.recovery_action=3"],
                     {("GH-GPU-RESET", "gpu3"): ("fatal", "stop peer-to-peer jobs and look again")}),
    "recovery-newest": (["gpu3.recovery_action=7"], {("GH-GPU-RESET", "gpu3"): ("fatal", "reboot the whole system")}),
    "recovery-unread": (["gpu3.field.230=!999"],
                        {("GH-GPU-UNREAD", "gpu3"): ("unknown", "recovery_action: unknown error")}),
    "lost": (["gpu3.lost=1"], {("GH-GPU-LOST", "gpu3"): ("fatal", "")}),
    "lost-by-field": (["gpu3.field.230=!15"], {("GH-GPU-LOST", "gpu3"): ("fatal", "")}),
    "reset-required": (["error.gpu3.nvmlDeviceGetTotalEccErrors=16"], {("GH-GPU-RESET", "gpu3"): ("fatal", "")}),
    "driver-timeout": (["error.gpu3.nvmlDeviceGetEccMode=10"],
                       {("GH-GPU-BAD", "gpu3"): ("fatal", "driver timed out (10)")}),
    "narrow": (["gpu3.pcie.width=8"], {("GH-PCIE-WIDTH", "gpu3"): ("fatal", "x8")}),
    "slow-under-load": (["gpu3.pcie.gen=1", "gpu3.util=90"], {("GH-PCIE-GEN", "gpu3"): ("warning", "gen1")}),
    "replays": (["gpu3.pcie.replay=500"], {("GH-PCIE-REPLAY", "gpu3"): ("warning", "500 replays in 5 min")}),
    "board-swapped": (["gpu3.uuid=GPU-aaaaaaaa-0000-0000-0000-000000000000", "gpu3.serial=1"],
                      {("GH-GPU-SWAP", "gpu3"): ("warning", "GPU-aaaaaaaa-0000-0000-0000-000000000000")}),
    "other-model": (["gpu3.name=NVIDIA L40S"],
                    {("GH-GPU-MIX", "gpus"): ("warning", "models: 7 x NVIDIA H100 80GB HBM3, 1 x NVIDIA L40S")}),
    "no-libcuda": (["error.nvmlSystemGetCudaDriverVersion_v2=12"], {("GH-CUDA-NONE", "gpus"): ("warning", "")}),
    "mismatch": (["error.nvmlInitWithFlags=18"],
                 {("GH-NVML-MISM", "gpus"): ("fatal", "driver and library of different versions")}),
}

# What looks like a fault and is none: state lines -> {(code, subject): severity} of notes, mostly nothing.
FRIENDS = {
    "pending-remap": (["gpu3.remap.pending=1", "gpu3.remap.uncorrected=1"], {("GH-REMAP-PEND", "gpu3"): "note"}),
    "pending-repair": (["gpu3.repair.channel=1"], {("GH-REPAIR-PEND", "gpu3"): "note"}),
    "few-spare-rows": (["gpu3.remap.hist.low=1"], {("GH-REMAP-LOW", "gpu3"): "note"}),
    "few-corrected": (["gpu3.ecc.corrected.volatile.dram=20", "gpu3.ecc.corrected.aggregate.dram=20"], {}),
    "sram-errors-below-limit": (["gpu3.sram.cor.aggregate=90000"], {}),
    "ecc-off": (["gpu*.ecc_mode=0"], {}),
    "ecc-unsupported": (["gpu*.ecc_mode=!3", "gpu*.remap.pending=!3"], {}),
    "not-root": (["gpu3.sram.threshold_exceeded=!4"], {("GH-GPU-UNREAD", "gpu3"): "unknown"}),
    "idle-gen1": (["gpu3.pcie.gen=1", "gpu3.pstate=8"], {}),
    "p0-gen1-once": (["gpu3.pcie.gen=1"], {("GH-PCIE-GEN", "gpu3"): "note"}),
    "x8-slot": (["gpu3.pcie.width=8", "gpu3.pcie.max_width=8"], {}),
    "few-replays": (["gpu3.pcie.replay=12"], {}),
    "mig": (["gpu*.mig=1", "gpu*.mig_instances=7"], None),
    "other-vbios": (["gpu3.vbios=96.00.61.00.01"], {("GH-GPU-MIX", "gpus"): "note"}),
    "no-recovery-field": (["gpu*.field.230=!3"], {}),
    "recovery-field-unheard-of": (["gpu*.field.230=!2"], {}),
    "structure-of-another-version": (
        ["error.nvmlDeviceGetSramEccErrorStatus=25", "error.nvmlDeviceGetRepairStatus=25"], {}),
    "unknown-errors-of-rare-calls": (
        ["error.gpu3.%s=999" % call for call in (
            "nvmlDeviceGetSramEccErrorStatus", "nvmlDeviceGetRepairStatus", "nvmlDeviceGetUnrepairableMemoryFlag_v1",
            "nvmlDeviceGetRowRemapperHistogram", "nvmlDeviceGetVbiosVersion")], {("GH-GPU-UNREAD", "gpu3"): "unknown"}),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_fault(rounds, name):  # noqa: F811
    """Each fault is found with its code, severity and wording, and nothing else drains."""
    lines, expected = FAULTS[name]
    _, found = rounds([], lines)
    for (code, subject), (severity, seen) in expected.items():
        assert found.findings[code, subject] == (severity, seen)
    assert found.fatal == sorted(code for (code, _), (severity, _) in expected.items() if severity == "fatal")


@pytest.mark.parametrize("name", list(FRIENDS))
def test_false_friend(rounds, name):  # noqa: F811
    """What looks like a fault is at most a note, or says that it could not be read."""
    lines, expected = FRIENDS[name]
    _, found = rounds([], lines)
    assert found.fatal == []
    if expected is not None:
        assert {key: severity for key, (severity, _) in found.findings.items()} == expected


def test_healthy(rounds):  # noqa: F811
    """Two rounds of a healthy node: no finding at all."""
    for found in rounds([], []):
        assert found.findings == {}


def test_old_driver_is_healthy(rounds):  # noqa: F811
    """A driver that lacks half of the calls: those fields are unsupported, and nothing is found."""
    for found in rounds([], [], old=True):
        assert found.findings == {}
        assert found.gpus[0]["sram_threshold"]["code"] == 13


@pytest.mark.parametrize("model", ["H200", "A100", "A100-MIG", "L40S", "V100"])
def test_other_models_are_healthy(rounds, model):  # noqa: F811
    """What a GPU family does not have is skipped."""
    for found in rounds(["model=" + model], ["model=" + model]):
        assert (found.fatal, set(found.outcomes.values()) & {"bad", "unknown"}) == ([], set()), found.findings


def test_retired_pages(rounds):  # noqa: F811
    """Before Ampere: a pending page is a note, sixty are a warning, sixty-four a fault."""
    def pages(count):
        return "gpu0.retired.dbe=" + ",".join("%#x" % (0x1000 * number) for number in range(1, count + 1))
    v100 = ["model=V100"]
    pending, many, full = rounds(v100 + [pages(2), "gpu0.retired.pending=1"], v100 + [pages(60)], v100 + [pages(64)])
    assert pending.findings == {("GH-PAGE-PEND", "gpu0"): ("note", "")}
    assert many.findings["GH-PAGE-LIMIT", "gpu0"] == ("warning", "60 pages retired")
    assert full.fatal == ["GH-PAGE-LIMIT"]


def test_volatile_counters_reset_by_a_reload(rounds):  # noqa: F811
    """The driver was loaded anew: volatile counters and replays begin at zero, aggregate ones stay. No finding."""
    before = ["gpu3.ecc.uncorrected.volatile.dram=5", "gpu3.ecc.uncorrected.aggregate.dram=9", "gpu3.pcie.replay=900"]
    after = ["gpu3.ecc.uncorrected.aggregate.dram=9"]
    assert rounds(before, after)[1].findings == {}


def test_index_order_changed_by_a_reboot(rounds):  # noqa: F811
    """The same boards in another order and at other addresses after a reboot: no finding."""
    moved = ["gpu%d.minor=%d" % (slot, minor) for slot, minor in enumerate((4, 7, 0, 2, 1, 3, 6, 5))]
    moved += ["gpu%d.bdf=0001:%02x:00.0" % (slot, 0x10 + slot) for slot in range(8)]
    found = rounds([], {"lines": moved + ["order=3,1,0,2"], "boot": 1})[1]
    assert found.findings == {}


def test_p0_and_slow_for_three_rounds(rounds):  # noqa: F811
    """A link that stays at generation 1 in P0 for three health checks is one that does not come up."""
    slow = ["gpu3.pcie.gen=1"]
    severities = [found.findings["GH-PCIE-GEN", "gpu3"][0] for found in rounds(slow, slow, slow)]
    assert severities == ["note", "note", "warning"]


def test_old_errors_on_the_day_of_the_installation(rounds):  # noqa: F811
    """Uncorrectable errors of before are a warning once, and drain nothing."""
    old = ["gpu3.ecc.uncorrected.volatile.dram=5", "gpu3.ecc.uncorrected.aggregate.dram=9"]
    first, second = rounds(old, old)
    assert first.findings == {("GH-ECC-UNC", "gpu3"): ("warning", "5 since driver load (dram)")}
    assert second.findings == {}


def test_one_incident_of_memory(rounds):  # noqa: F811
    """Counter, failed remap and recovery action of one GPU are one finding, named after what no reset cures."""
    found = rounds([], ["gpu3.ecc.uncorrected.volatile.dram=1", "gpu3.remap.failure=1", "gpu3.recovery_action=1"])[1]
    assert [code for code, _ in found.findings] == ["GH-REMAP-FAIL"]


def test_expectations(rounds):  # noqa: F811
    """Model, driver and VBIOS against the site's lists."""
    cfg = {"expected": {"model": ["H200"], "driver": ["550.90"], "vbios": ["96.00.74.00.01"]}}
    found = rounds(["gpu0.vbios=96.00.61.00.01", "driver=535.183.01"], gpus=8, cfg=cfg)[0]
    assert found.fatal == ["GH-EXP-MODEL"] * 8
    assert found.findings["GH-EXP-VBIOS", "gpu0"][0] == "warning"
    assert found.findings["GH-EXP-DRIVER", "gpus"] == ("warning", "535.183.01")


def test_a_job_start_asks_for_less(rounds):  # noqa: F811
    """In prolog a healthy GPU is not asked for VBIOS, InfoROM, spare rows and SRAM; one that was ever hit is."""
    found = rounds({"lines": ["gpu3.ecc.uncorrected.aggregate.sram=9", "gpu3.sram.threshold_exceeded=1"],
                    "phase": "prolog"})[0]
    assert {found.gpus[0][name]["unknown"] for name in ("vbios", "inforom", "sram_threshold", "remap_histogram")} == {
        "not-read"}
    assert found.gpus[3]["sram_threshold"] == 1 and found.fatal == ["GH-SRAM-LIMIT"]
