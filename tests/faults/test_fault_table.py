"""The fault table (table.yaml, docs/faults.md): every row is run through parser, checks, merge and decision.

A row: the fault, the code and severity that it must give ("nothing" where it must give none), what becomes of a job
that uses it, what `gpuhealth log parse` says is to be done at once, and what a reboot does:
cleared: the evidence is gone with the boot, and nothing is found after it;
again: a state of the node; found again for as long as it holds;
stands: kept in the board itself; no reboot clears it.
"""
import glob
import json
import os

import builders
import faults
import make_docs
import pytest

from slurm_gpuhealth import checks
from slurm_gpuhealth.catalogue import kinds_table

TABLE = faults.load()
ROWS = [(section, number, row) for section in faults.SECTIONS for number, row in enumerate(TABLE[section])]


def name(value):
    if isinstance(value, dict):
        return str(value.get("xid") or value.get("sxid") or value.get("kind") or value.get("case")
                   or value.get("fault", ""))[:40].replace(" ", "-")
    return str(value)


@pytest.mark.parametrize("section,number,row", ROWS, ids=name)
def test_row(section, number, row):
    """The fault gives exactly its code, drains or does not, and a reboot clears what the row says."""
    facts, policy = faults.given(row)
    findings = faults.found(facts, policy)
    serious = [finding.code for finding in findings if finding.severity == "fatal"]
    if row["code"] == "nothing":
        assert findings == []
    else:
        lead = next(finding for finding in findings if finding.code == row["code"])
        assert lead.severity == row["severity"], findings
        assert serious == ([row["code"]] if row["severity"] == "fatal" else []) or section == "states", findings
    actions = faults.planned(findings, policy)
    assert ("drain" in actions) == bool(serious), actions
    if section != "states" and row["code"] != "nothing":
        assert ("requeue" in actions) == (row["job"] == "requeue-now"), actions
        assert ("job-left" in actions) == (row["job"] == "let-finish"), actions
        assert "subjects" not in row or row["subjects"] == len(
            [finding for finding in findings if finding.severity == row["severity"]])
    if "do" in row:
        assert faults.at_once(row) == row["do"]
    reboot(row, facts, policy, findings)


def reboot(row, facts, policy, findings):
    """What is found after a reboot, and that nothing of the last boot drains the node again."""
    if row.get("reboot", "cleared") == "cleared":
        after = faults.rebooted(facts)
        left = [finding for finding in faults.found(after, policy) if finding.code == row["code"]]
        assert left == []
    else:
        after = facts._replace(boot_id=faults.NEW_BOOT)
        assert row["code"] in [finding.code for finding in faults.found(after, policy)]
        return
    incidents = tuple(faults.old_incident(finding) for finding in findings if finding.severity == "fatal")
    seen = faults.found(after, policy)
    assert not any(finding.severity == "fatal" for finding in seen)
    assert not {"drain", "requeue"} & set(faults.planned(seen, policy, faults.NEW_BOOT, incidents))


# Cases that show a check leaving to another one what is that one's: the node is not healthy.
OF_ANOTHER_CHECK = ("devices/lost-gpu", "pcie_bus/driver-not-loaded",
                    "pcie_width/lost-gpu")


def harmless_cases():
    """Cases of tests/cases in which the check they belong to finds nothing, or only something to note."""
    for path in sorted(glob.glob(os.path.join(faults.CASES, "*", "*.json"))):
        with open(path, encoding="utf-8") as handle:
            outcome = json.load(handle)["outcome"]
        name = "/".join(path.split(os.sep)[-2:])[:-5]
        if outcome == "ok" and name not in OF_ANOTHER_CHECK:
            yield name


@pytest.mark.parametrize("case", list(harmless_cases()))
def test_a_false_friend_drains_nothing(case):
    """What looks like a fault and is none: no check of all drains the node for it."""
    facts, policy = faults.given({"case": case})
    findings = faults.found(facts, policy)
    assert [finding for finding in findings if finding.severity == "fatal"] == []
    assert "drain" not in faults.planned(findings, policy)


def test_every_number_and_kind_of_the_catalogue_has_a_row():
    """A code without a row would promise something that nobody tried."""
    assert faults.missing(TABLE) == {"xids": [], "sxids": [], "kinds": []}


@pytest.mark.parametrize("check", list(checks.CHECKS))
def test_every_check_has_a_row(check):
    """Each check that can find a fault is in the table with at least one."""
    of_log = {"xid": "xids", "sxid": "sxids", "aer": "kinds", "fs_errors": "kinds", "storage_log": "kinds"}
    if check in of_log or check == "kernel_log":
        return
    assert [row for row in TABLE["states"] if row["case"].split("/")[0] == check], check


def test_kinds_name_the_code_that_their_check_reports():
    """The code that kinds.yaml names is the one that a row of that kind gives."""
    codes: dict = {}
    for row in TABLE["kinds"]:
        codes.setdefault(row["kind"], set()).add(row["code"])
    wrong = {kind: (row[3], codes[kind]) for kind, row in kinds_table.KINDS.items()
             if row[3] and row[3] not in codes[kind]}
    assert wrong == {}


def test_the_page_is_fresh():
    """Whoever edits table.yaml runs tests/faults/make_docs.py."""
    with open(make_docs.PAGE, encoding="utf-8") as handle:
        assert handle.read() == make_docs.text()


def test_a_healthy_node_after_a_reboot_has_no_findings():
    """What the rows compare with: a reboot alone gives nothing."""
    from slurm_gpuhealth.config_defaults import DEFAULTS
    assert faults.found(faults.rebooted(builders.healthy_node()), DEFAULTS) == []
