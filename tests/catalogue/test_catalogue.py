"""The catalogue: generated files are fresh, codes in the program and in the catalogue are the same."""
import os
import re

import pytest

from slurm_gpuhealth import catalogue, config_docs
from slurm_gpuhealth.catalogue import generate
from slurm_gpuhealth.errors import DataError

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(generate.__file__)))
TREE = os.path.dirname(PACKAGE)


def test_generated_files_are_fresh():
    """Whoever edits codes/*.yaml, xid.yaml or the keys of the configuration runs the generators."""
    assert generate.stale({**generate.outputs(), **config_docs.outputs()}) == []


def test_check_names_a_stale_file_and_exits_1(tmp_path, capsys):
    """--check changes nothing and says what is old."""
    old = tmp_path / "table.py"
    old.write_text("old")
    assert generate.main(["--check"], {str(old): "new", str(tmp_path / "none"): "x"}) == 1
    assert capsys.readouterr().out.count("not up to date: ") == 2
    assert old.read_text() == "old"
    assert generate.main([], {str(old): "new"}) == 0
    assert old.read_text() == "new"


def codes_in_the_program():
    found = {}
    for base, _, names in os.walk(PACKAGE):
        for name in names:
            path = os.path.join(base, name)
            if not name.endswith(".py") or "catalogue" in base or "config_docs" in name:
                continue
            with open(path, encoding="utf-8") as handle:
                for code in re.findall(r"""["'](GH(?:-[A-Z]+)+)(?:%d)?["']""", handle.read()):
                    found.setdefault(code, os.path.relpath(path, TREE))
    return found


def test_every_code_of_the_program_is_in_the_catalogue():
    """A reason that explain cannot explain must not exist."""
    missing = {code: where for code, where in codes_in_the_program().items() if code not in catalogue.CODES}
    assert missing == {}


def test_every_code_of_the_catalogue_is_used():
    """A code that nothing reports would promise a check that does not exist."""
    unused = [code for code in catalogue.CODES if code not in codes_in_the_program()]
    assert unused == []


@pytest.mark.parametrize("name, entry", generate.load_codes()["codes"].items())
def test_entry_is_well_formed(name, entry):
    """Known layer, severity, job action, subject and fixer; texts are there; runbook lines fit a terminal."""
    generate.check_code(name, entry)
    assert re.fullmatch(r"GH(-[A-Z]+)+", name)
    assert len(entry["short"]) <= 30
    assert all(len(step) < 260 for step in entry["runbook"])
    if entry["subject"] == "job":
        assert entry["severity"] != "fatal"


def test_a_bad_entry_is_refused():
    """The generator stops at an entry whose reason would not fit, or that acts on jobs without draining."""
    good = generate.load_codes()["codes"]["GH-GPU-LOST"]
    generate.check_code("GH-GPU-LOST", good)
    for change in ({"layer": "magic"}, {"severity": "note"}, {"runbook": []}, {"colour": "red"}):
        with pytest.raises(DataError):
            generate.check_code("GH-GPU-LOST", {**good, **change})
    with pytest.raises(DataError, match="20 characters"):
        generate.check_code("GH-GPU-MUCH-TOO-LONG", good)


def test_what_users_cause_never_drains():
    """13, 31, 43, 45 and their like drain nothing by themselves."""
    for number in (8, 11, 13, 25, 31, 43, 45, 68, 69, 108, 109, 137):
        entry = catalogue.xid(number)
        assert (entry.action, entry.job_action, entry.severity) == ("note", "none", "note"), number
        assert entry.user_caused in ("yes", "sometimes"), number
    assert all(entry.user_caused == "no" for entry in catalogue.XIDS.values() if entry.action == "drain")


def test_what_makes_a_gpu_unusable_drains():
    """The numbers that peers and vendor agree on; 79 and 95 also stop the job."""
    for number in (46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143):
        assert catalogue.xid_policy(number)[:2] == ("drain", "fatal"), number
    assert {number for number, entry in catalogue.XIDS.items() if entry.job_action == "requeue-now"} == {
        79, 95, 167, 173}


def test_harmless_memory_events_only_note():
    """63 is recorded for the next reset, 94 kills only its program: running work is safe (facts 2)."""
    assert catalogue.xid_policy(63) == ("note", "note", "none")
    assert catalogue.xid_policy(94) == ("note", "warning", "none")


@pytest.mark.parametrize("value, expected", [
    (0, ("ignore", "note", "none")), (1, ("drain", "fatal", "let-finish")), (2, ("drain", "fatal", "let-finish")),
    (3, ("drain", "fatal", "let-finish")), (4, ("drain", "fatal", "let-finish")),
    (5, ("drain", "fatal", "let-finish")), (6, ("drain", "fatal", "let-finish")),
    (7, ("drain", "fatal", "let-finish")), (8, ("note", "warning", "none")), (None, ("note", "warning", "none"))])
def test_xid_154_goes_by_its_value(value, expected):
    """The texts changed with R610, so the hex counts; a value nobody knows warns."""
    assert catalogue.xid_policy(154, value) == expected


def test_unknown_number_is_kept_and_warns():
    """177 to 184 are not documented: unknown, never dropped, never a drain."""
    assert catalogue.xid_policy(180) == ("note", "warning", "none")
    assert catalogue.lookup("GH-XID180").severity == "warning"


def test_site_changes_a_number():
    """xid: in the configuration wins, keys are text as in JSON."""
    assert catalogue.xid_policy(109, None, {"109": {"action": "drain"}}) == ("drain", "fatal", "let-finish")
    assert catalogue.xid_policy(79, None, {"79": {"action": "ignore"}}) == ("ignore", "note", "none")
    assert catalogue.xid_policy(119, None, {"119": {"job_action": "requeue-now"}}) == (
        "drain", "fatal", "requeue-now")
    assert catalogue.xid_policy(79, None, {"109": {"action": "drain"}})[0] == "drain"


def test_family_takes_the_table():
    """GH-XID79 is the family GH-XID with title, layer and job action of number 79."""
    entry = catalogue.lookup("GH-XID79")
    assert (entry.code, entry.layer, entry.job_action, entry.short, entry.seen_once) == (
        "GH-XID79", "hardware", "requeue-now", "fell off bus", True)
    assert catalogue.lookup("GH-XID13").fixer == "user"


@pytest.mark.parametrize("code, number", [
    ("GH-XID79", 79), ("GH-XID", None), ("GH-XID-USER", None), ("GH-XID\u00b2", None), ("GH-XID123456", None),
    ("GH-ECC-UNC", None), ("", None)])
def test_number_of_a_code(code, number):
    """Only digits behind GH-XID make a number."""
    assert catalogue.xid_number(code) == number


def test_code_of_another_version_acts_on_nothing():
    """After a downgrade an incident may carry a code that we do not know."""
    entry = catalogue.lookup("GH-NEW-THING")
    assert (entry.severity, entry.job_action, entry.recoverable) == ("warning", "none", False)
    assert not catalogue.known("GH-NEW-THING")
