"""One fault, one finding: what several checks saw of the same GPU is folded by checks.merge."""
import builders
import pytest

from slurm_gpuhealth import checks, render
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
