"""Every check against its cases: tests/cases/<check>/<case>.json.

A case: why (the rule it pins), facts ({path: value} over a healthy node), log (lines of the kernel log), baseline
("none", or {path: value}), policy (over the built-in configuration), outcome, findings (each a dict of fields that must
be there; "subject" is its short text; "data" must hold at least these).
"""
import glob
import json
import os

import builders
import pytest

from slurm_gpuhealth import checks, render
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(os.path.dirname(HERE), "cases")



def cases():
    for path in sorted(glob.glob(os.path.join(CASES, "*", "*.json"))):
        folder, name = path.split(os.sep)[-2:]
        yield pytest.param(folder, path, id="%s/%s" % (folder, name[:-5]))


def load(path):
    with open(path, encoding="utf-8") as handle:
        return json.load(handle)


def facts_of(case):
    """The facts that a case describes."""
    facts = builders.healthy_node(**({"gpus": case["gpus"]} if "gpus" in case else {}))
    if case.get("baseline") == "none":
        facts = facts._replace(baseline=None)
    if "log" in case:
        facts = facts._replace(klog=builders.log(*case["log"], step=case.get("log_step", 1.0)))
    return builders.changed(facts, case.get("facts", {}))


def brief(finding):
    return dict(finding._asdict(), subject=render.subject(finding.subject), data=finding.data or {})


@pytest.mark.parametrize("check,path", list(cases()))
def test_case(check, path):
    """The check gives exactly the findings of the case, with the fields it names."""
    case = load(path)
    results = checks.run_checks(facts_of(case), overlay(DEFAULTS, case.get("policy", {})))
    result = next(one for one in results if one.name == check)
    found = [brief(finding) for finding in result.findings]
    assert [one["code"] for one in found] == [one["code"] for one in case["findings"]], found
    for one, wanted in zip(found, case["findings"]):
        for key, value in wanted.items():
            if key == "data":
                assert {name: one["data"].get(name) for name in value} == value
            else:
                assert one[key] == value, one
    assert result.outcome == case["outcome"]


@pytest.mark.parametrize("check", list(checks.CHECKS))
def test_every_check_has_a_healthy_a_bad_and_an_unknown_case(check):
    """Each outcome that a check can have is pinned by a case (kernel_log knows no bad one)."""
    outcomes = [load(path)["outcome"] for path in glob.glob(os.path.join(CASES, check, "*.json"))]
    wanted = {"ok", "unknown"} if check == "kernel_log" else {"ok", "bad", "unknown"}
    assert set(outcomes) == wanted
    assert all(load(path)["why"] for path in glob.glob(os.path.join(CASES, check, "*.json")))


def test_every_case_belongs_to_a_check():
    """A case in a folder of no check would never run."""
    assert {os.path.basename(folder) for folder in glob.glob(os.path.join(CASES, "*"))} == set(checks.CHECKS)


@pytest.mark.parametrize("check", list(checks.CHECKS))
def test_a_healthy_node_has_no_findings(check):
    """A healthy node is healthy for every check."""
    results = checks.run_checks(builders.healthy_node(), DEFAULTS)
    assert next(result for result in results if result.name == check) == checks.Result(check, "ok", ())


def test_a_node_that_should_have_no_gpus_is_healthy_without_driver():
    """CPU-only node, no NVML library: every check is ok, none is unknown."""
    facts = builders.changed(builders.healthy_node(gpus=0), {
        "nvml": {"unknown": "absent", "code": 12}, "gpu_count": {"unknown": "absent", "code": 12},
        "driver": {"unknown": "absent"}, "expected.gpus": 0})
    assert {result.outcome for result in checks.run_checks(facts, DEFAULTS)} == {"ok"}


def test_a_disabled_check_is_skipped_and_not_ok():
    """Switched off is not the same as healthy."""
    results = checks.run_checks(builders.healthy_node(), overlay(DEFAULTS, {"checks": {"disabled": ["ecc"]}}))
    assert next(result.outcome for result in results if result.name == "ecc") == "skipped"


def test_facts_where_nothing_was_read_are_healthy_for_no_gpu_check():
    """All fields unknown: each check that reads the node says unknown or bad, never ok."""
    from slurm_gpuhealth import facts as F
    facts = F.Facts(node="n1", expected=F.Expected(8, "config"))
    outcomes = {result.name: result.outcome for result in checks.run_checks(facts, DEFAULTS)}
    assert outcomes.pop("mounts") == outcomes.pop("mount_space") == "ok"    # none configured
    assert outcomes.pop("plugins") == "ok"      # likewise
    assert "ok" not in outcomes.values()
