"""What people and monitoring systems see; text of others is shown, not sent to the terminal."""
import builders
import pytest

from slurm_gpuhealth import checks, render
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.model import Finding, Subject, from_plain, to_plain

LOST = {"unknown": "error", "detail": "GPU is lost", "code": 15}
GPU3 = Subject("gpu", 3, "GPU-3", "0000:5d:00.0")


def finding(severity="fatal", **changes):
    return Finding("GH-PCIE-WIDTH", severity, GPU3, "x8", "x16")._replace(**changes)


@pytest.mark.parametrize("severities,code", [
    ((), 0), (("note",), 0), (("warning", "note"), 1), (("unknown", "warning"), 3), (("fatal", "unknown"), 2)])
def test_exit_code(severities, code):
    """0 ok, 1 warning, 2 fatal, 3 could not look; fatal goes before unknown, unknown before warning."""
    assert render.exit_code([finding(severity) for severity in severities]) == code


def test_line():
    """Code, subject, what was seen against what was expected."""
    assert render.line(finding()) == "GH-PCIE-WIDTH gpu3 x8<x16"
    assert render.line(finding(code="GH-GPU-LOST", seen="", expected="")) == "GH-GPU-LOST gpu3 lost"
    assert render.line(finding(subject=Subject("gpu", None, "", "0000:5d:00.0"))).startswith(
        "GH-PCIE-WIDTH gpu? (0000:5d:00.0)")


def test_hostile_text_is_made_visible():
    """Escape sequences and newlines in a name do not reach the terminal."""
    text = render.line(finding(code="GH-MNT-GONE", subject=Subject("mount", name="/a\033[31m\nb"), seen="\x07"))
    assert text == "GH-MNT-GONE /a\\x1b[31m\\nb \\x07<x16".replace("<x16", " instead of x16")


def test_nagios_keeps_its_separator():
    """A bar in a name would begin the performance data."""
    text = render.nagios(builders.healthy_node(), [finding(seen="a|b", expected="")])
    assert text.count("|") == 1 and "a/b" in text
    assert text.startswith("GPUHEALTH CRITICAL: ") and text.endswith("gpus=8 fatal=1 unknown=0 warning=0 note=0")


def test_document_goes_through_json():
    """Findings come back whole from the document."""
    import json
    facts = builders.changed(builders.healthy_node(), {"gpus.3.error": LOST})
    results = checks.run_checks(facts, DEFAULTS)
    found = checks.merge(results)
    document = json.loads(json.dumps(render.document(facts, results, found, "manual")))
    assert [from_plain(Finding, one) for one in document["findings"]] == found
    assert document["findings"] == json.loads(json.dumps([to_plain(one) for one in found]))
    assert (document["v"], document["outcome"], document["exit_code"]) == (1, "fatal", 2)


def test_table_shows_unread_and_unsupported():
    """"?" could not be read, "-" is not there; colour only when asked for."""
    facts = builders.changed(builders.healthy_node(), {
        "gpus.3.temperature": {"unknown": "error"}, "gpus.3.power": {"unknown": "unsupported"}})
    results = checks.run_checks(facts, DEFAULTS)
    plain = "\n".join(render.table(facts, results, []))
    row = next(line for line in plain.splitlines() if line.startswith("gpu3")).split()
    assert row[-6:-4] == ["?", "-"] or "?" in row and "-" in row
    assert "\033" not in plain
    assert "\033[32m" in "\n".join(render.table(facts, results, [], colour=True))


def test_generated_page_is_fresh():
    """docs/checks.md is made from the checks' docstrings."""
    from slurm_gpuhealth.checks import generate
    with open(generate.page(), encoding="utf-8") as handle:
        assert handle.read() == generate.text()


@pytest.mark.parametrize("name", list(checks.CHECKS))
def test_every_check_says_what_unknown_means(name):
    """The docstring is the documentation: it names the codes, or at least when the check could not look."""
    from slurm_gpuhealth.checks import generate
    assert "Unknown: " in generate.docstring(checks.CHECKS[name].module)
