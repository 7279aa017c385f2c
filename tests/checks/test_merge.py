"""One fault, one finding: what several checks saw of the same GPU is folded by checks.merge."""
import builders
import pytest

from slurm_gpuhealth import checks, render
from slurm_gpuhealth.catalogue import judge, xid_table
from slurm_gpuhealth.config_defaults import DEFAULTS

XID79 = "NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST = {"unknown": "error", "detail": "GPU is lost", "code": 15}


def merged(facts):
    return checks.merge(checks.run_checks(facts, DEFAULTS))


def brief(findings):
    return [(finding.code, render.subject(finding.subject), finding.severity) for finding in findings]


def test_79_and_lost_are_one_finding():
    """Kernel log 79 and NVML's "lost" of one GPU: GH-XID79, with the loss in what was seen."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)), {"gpus.3.error": LOST})
    found = merged(facts)
    assert brief(found) == [("GH-XID79", "gpu3", "fatal")]
    assert found[0].seen == "fell off bus; NVML: lost"
    assert [part["code"] for part in found[0].data["merged"]] == ["GH-GPU-LOST"]


def test_79_and_shrunk_list_are_one_finding():
    """79 and a GPU that NVML no longer lists, its identity known."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)), {"gpus.3": None, "gpu_count": 7})
    assert brief(merged(facts)) == [("GH-XID79", "gpu3", "fatal")]


def test_79_explains_the_missing_gpu_when_identities_are_unknown():
    """79 and 7/8 without learnt identities: the count is the other face of the same fault."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)),
                             {"gpus.3": None, "gpu_count": 7, "known_gpus": []})
    found = merged(facts)
    assert brief(found) == [("GH-XID79", "gpu3", "fatal")]
    assert found[0].seen == "fell off bus; 7/8 GPUs"


def test_79_does_not_explain_two_missing_gpus():
    """One off the bus, two missing: the count stays a finding of its own."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)),
                             {"gpus.5": None, "gpus.3": None, "gpu_count": 6, "known_gpus": []})
    assert ("GH-GPU-COUNT", "gpus", "fatal") in brief(merged(facts))


def test_a_lost_gpu_that_is_still_listed_does_not_explain_a_missing_one():
    """gpu3 is lost and listed, another one is missing: two faults."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)),
                             {"gpus.3.error": LOST, "gpus.6": None, "gpu_count": 7, "known_gpus": []})
    assert brief(merged(facts)) == [("GH-XID79", "gpu3", "fatal"), ("GH-GPU-COUNT", "gpus", "fatal")]


def test_memory_error_in_log_and_counter_are_one_finding():
    """48 in the log, the counter and the pending remap are one incident."""
    facts = builders.changed(
        builders.healthy_node(klog=builders.log("NVRM: Xid (PCI:0000:3a:00): 48, DBE")),
        {"gpus.2.ecc_uncorrected_volatile": 1, "gpus.2.ecc_uncorrected_aggregate": 1, "gpus.2.remap_pending": 1})
    found = merged(facts)
    assert brief(found) == [("GH-XID48", "gpu2", "fatal")]
    assert {part["code"] for part in found[0].data["merged"]} == {"GH-ECC-UNC", "GH-REMAP-PEND"}


def test_faults_of_different_gpus_stay_apart():
    """Folding never crosses GPUs."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)), {"gpus.4.error": LOST})
    assert brief(merged(facts)) == [("GH-XID79", "gpu3", "fatal"), ("GH-GPU-LOST", "gpu4", "fatal")]


def test_different_faults_of_one_gpu_stay_apart():
    """A narrow link is not a face of a memory error."""
    facts = builders.changed(builders.healthy_node(), {"gpus.2.ecc_uncorrected_volatile": 1, "gpus.2.pcie_width": 8})
    assert [code for code, _, _ in brief(merged(facts))] == ["GH-ECC-UNC", "GH-PCIE-WIDTH"]


def test_fields_that_could_not_be_read_are_one_finding_a_gpu():
    """Three checks miss a field each: one GH-GPU-UNREAD with all fields."""
    gone = {"unknown": "error", "detail": "unknown error", "code": 999}
    facts = builders.changed(builders.healthy_node(), {
        "gpus.1.pcie_width": gone, "gpus.1.ecc_uncorrected_volatile": gone, "gpus.1.pcie_gen": gone})
    found = merged(facts)
    assert brief(found) == [("GH-GPU-UNREAD", "gpu1", "unknown")]
    assert found[0].data["fields"] == ["ecc_uncorrected_volatile", "pcie_gen", "pcie_width"]


@pytest.mark.parametrize("outcome,rounds,expected", [
    ("late", 1, [("GH-GPU-UNREAD", "gpus", "unknown"), ("GH-NVML-LATE", "gpus", "warning")]),
    ("late", 2, [("GH-NVML-HANG", "gpus", "fatal")]),
    ("failed", 0, [("GH-NVML-FAIL", "gpus", "unknown")]),
])
def test_silent_nvml(outcome, rounds, expected):
    """Nothing was read: said once; late alone stays "could not look" beside its warning."""
    facts = builders.changed(builders.healthy_node(), {
        "gpus": [], "gpu_count": {"unknown": "timeout"}, "nvml": {"unknown": "timeout"},
        "sources": [{"name": "nvml", "outcome": outcome, "detail": "no answer", "rounds": rounds}]})
    assert brief(merged(facts)) == expected


def test_merge_takes_findings_as_well_as_results():
    """A replay may hand over bare findings; merging twice changes nothing."""
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)), {"gpus.3.error": LOST})
    once = merged(facts)
    assert checks.merge(once) == once


def test_merged_facts_survive_json():
    """Facts to JSON and back give the same findings (evidence is replayed)."""
    import json

    from slurm_gpuhealth import facts as F
    facts = builders.changed(builders.healthy_node(klog=builders.log(XID79)), {"gpus.3.error": LOST})
    again = F.from_plain(json.loads(json.dumps(F.to_plain(facts))))
    assert merged(again) == merged(facts)


def log_of(*numbers):
    return builders.log(*["NVRM: Xid (PCI:0000:5d:00): %d, pid=1, name=x, some message" % number for number in numbers],
                        "NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset"
                        " Required)")


DRAINING = [number for number in sorted(xid_table.XIDS) if judge.of_xid(number, {}).action == "drain"]


@pytest.mark.parametrize("nvml", [{"recovery_action": 1}, {"error": LOST}, {"error": dict(LOST, code=16)},
                                  {"error": dict(LOST, code=999)}], ids=["action", "lost", "reset", "bad"])
@pytest.mark.parametrize("number", DRAINING)
def test_a_number_and_what_nvml_says_of_that_gpu_are_one_fault(number, nvml):
    """Whatever the number: NVML shows its consequence. The number leads, as it says why."""
    facts = builders.changed(builders.healthy_node(klog=log_of(number)),
                             {"gpus.3." + name: value for name, value in nvml.items()})
    found = [one for one in merged(facts) if one.severity == "fatal"]
    assert brief(found) == [("GH-XID%d" % number, "gpu3", "fatal")]
    if nvml.get("error") == LOST:
        assert found[0].data["job_action"] == "requeue-now"     # a job on a lost GPU cannot go on


def test_a_number_that_drains_nothing_is_no_face_of_a_lost_gpu():
    """31 is the program's; the lost GPU stays a fault of its own, and the note a note."""
    klog = builders.log("NVRM: Xid (PCI:0000:5d:00): 159, CHI Non-Data Error")
    facts = builders.changed(builders.healthy_node(klog=klog), {"gpus.3.error": LOST})
    assert brief(merged(facts)) == [("GH-GPU-LOST", "gpu3", "fatal"), ("GH-XID159", "gpu3", "warning")]


def test_an_unknown_recovery_action_of_log_and_nvml_is_one_warning():
    """154 and field 230 with a number that nobody knows agree: it warns."""
    klog = builders.log("NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x9 (New)")
    facts = builders.changed(builders.healthy_node(klog=klog), {"gpus.3.recovery_action": 9})
    assert [one.severity for one in merged(facts)] == ["warning"]


HUNG = {"gpus": [], "gpu_count": {"unknown": "hung"}, "nvml": {"unknown": "hung"},
        "sources": [{"name": "nvml", "outcome": "hung", "rounds": 1}]}


@pytest.mark.parametrize("number", [79, 119, 120])
def test_nvml_hangs_for_a_gpu_that_the_log_names(number):
    """One finding, of the GPU; that NVML does not answer is in its words, and that all GPUs are hit in its data."""
    facts = builders.changed(builders.healthy_node(klog=log_of(number)), HUNG)
    found = merged(facts)
    assert brief(found) == [("GH-XID%d" % number, "gpu3", "fatal")]
    assert "NVML: no answer" in found[0].seen
    assert found[0].data["node_wide"] == "let-finish"


def test_nvml_hangs_beside_another_fault():
    """A fault that makes nobody wait explains no hang."""
    facts = builders.changed(builders.healthy_node(klog=log_of(64)), HUNG)
    assert [code for code, _, _ in brief(merged(facts))] == ["GH-XID64", "GH-NVML-HANG"]


def test_the_memory_driver_stops_for_a_gpu_that_is_gone():
    """79 and the fatal error of nvidia-uvm: one fault, of which no job on any GPU survives."""
    klog = builders.log(XID79, "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os"
                        " reboot to recover.")
    found = merged(builders.healthy_node(klog=klog))
    assert brief(found) == [("GH-XID79", "gpu3", "fatal")]
    assert found[0].seen == "fell off bus; UVM needs a reboot"
    assert found[0].data["node_wide"] == "requeue-now"


def test_a_check_that_fails_is_unknown_and_hides_nothing(monkeypatch):
    """A mistake in one check: said as our own, never ok, and the other checks still find the fault."""
    from slurm_gpuhealth.checks import ecc

    def broken(facts, limits):
        raise TypeError("not all arguments converted")
    monkeypatch.setattr(ecc, "check", broken)
    facts = builders.healthy_node()._replace(klog=builders.log(
        "NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus."))
    results = checks.run_checks(facts, DEFAULTS)
    assert next(result.outcome for result in results if result.name == "ecc") == "unknown"
    assert [finding.code for finding in checks.merge(results)] == ["GH-XID79", "GH-SELF"]


def test_thousands_of_findings_are_merged_in_time():
    """The strongest stay; how many did not is said."""
    from slurm_gpuhealth.model import FATAL, WARNING, Finding, Subject
    many = [Finding("GH-STORE-LOST", WARNING, Subject("part", name="server%d" % number)) for number in range(5000)]
    merged = checks.merge(many + [Finding("GH-GPU-LOST", FATAL, Subject("gpu", 3))])
    assert merged[0].code == "GH-GPU-LOST" and len(merged) == 300
    assert merged[-1].data["more_findings"] == 4701
