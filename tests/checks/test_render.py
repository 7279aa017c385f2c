"""What people and monitoring systems see; text of others is shown, not sent to the terminal."""
import re
import time

import builders
import pytest

from slurm_gpuhealth import checks, prometheus, render, render_table
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.model import NODE, Finding, Subject, from_plain, to_plain

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


# -- the table

def shown(facts, findings=(), **more):
    results = checks.run_checks(facts, DEFAULTS)
    return render_table.lines(facts, results, list(findings), **more)


def test_table_shows_unread_and_unsupported():
    """"?" could not be read, "-" is not there; colour only when asked for."""
    facts = builders.changed(builders.healthy_node(), {
        "gpus.3.temperature": {"unknown": "error"}, "gpus.3.power": {"unknown": "unsupported"},
        "gpus.3.nvlinks": {"unknown": "unsupported"}})
    plain = shown(facts)
    head, row = (next(line for line in plain if line.startswith(start)) for start in ("gpu ", "gpu3"))
    cells = [row[head.index(name):].split()[0] for name in ("temp", "power", "nvlink")]
    assert cells == ["?", "-", "-"]
    assert "\033" not in "\n".join(plain)
    assert "\033[32mok" in "\n".join(shown(facts, colour=True))


def test_table_says_what_was_expected_since_when_and_what_to_do():
    """Each fault: seen and expected, since, the first step with this GPU's number, where more is to be read."""
    one = finding(since=builders.NOW - 7500)
    text = shown(builders.healthy_node(), [one], mode="drain",
                 advice={"GH-PCIE-WIDTH": "`nvidia-smi -i N` on NODE, N, BDF"})
    at = text.index("FATAL    GH-PCIE-WIDTH gpu3: x8, expected x16")
    assert text[at + 1:at + 4] == [
        "         since 2026-11-30 09:55 UTC (2 h 5 min)",
        "         do: `nvidia-smi -i 3` on n1, 3, 0000:5d:00.0",
        "         more: gpuhealth explain GH-PCIE-WIDTH"]
    assert text[0] == "n1: 8 of 8 GPUs, driver 550.90.07, CUDA 12.4, up 1 d 0 h, mode drain"
    assert text[-1] == "n1: FATAL: 1 fatal, 0 unknown, 0 warnings, 0 notes"


def test_table_groups_by_what_is_to_be_done():
    """Faults and warnings, then what could not be read, then notes (one line each); the verdict is the last line."""
    found = [finding("note"), finding("unknown", code="GH-LOG-FAIL", subject=NODE, seen="denied", expected=""),
             finding("warning"), finding("fatal", code="GH-GPU-LOST", seen="", expected="")]
    text = shown(builders.healthy_node(), found)
    starts = [line.split()[0] for line in text if line[:9].strip() in ("FATAL", "warning", "unknown", "note")]
    assert starts == ["FATAL", "warning", "unknown", "note"]
    assert text[-1].endswith("FATAL: 1 fatal, 1 unknown, 1 warning, 1 note")
    assert shown(builders.healthy_node(), found[:2])[-1].startswith("n1: UNKNOWN:")


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_table_fits_a_narrow_terminal(width):
    """Columns are left out, words wrapped; number and state of each GPU always stay."""
    facts = builders.healthy_node()._replace(mounts=())
    text = shown(facts, [finding(seen="x8 " * 40)], width=width, advice={"GH-PCIE-WIDTH": "look " * 40})
    rows = [line for line in text if line.startswith("gpu")]
    assert len(rows) == 9 and all("ok" in row or "fatal" in row for row in rows[1:])
    assert all(len(line) <= width for line in text if not line.startswith("n1: FATAL"))


def test_verbose_table_lists_checks_and_sources():
    """-v: how each check and each source went."""
    text = "\n".join(shown(builders.healthy_node(), verbose=True))
    assert all("\n%s" % name in text for name in checks.CHECKS)
    assert "kmsg" in text and "0.010" in text


def test_hostile_names_reach_no_terminal():
    """Names of boards, mounts, processes and ports are shown, not obeyed, and break no row."""
    evil = "a\033]0;x\007\n\u202eb"
    facts = builders.changed(builders.healthy_node(), {
        "gpus.3.name": evil, "hostname": evil, "node": evil, "mounts": [{"path": "/" + evil, "fstype": evil}],
        "links": [{"name": evil, "kind": "infiniband", "state": "down"}]})
    found = [finding(seen=evil, expected=evil), finding(subject=Subject("part", name=evil)),
             finding("unknown", subject=Subject("mount", name=evil))]
    text = shown(facts, found, mode=evil, advice={"GH-PCIE-WIDTH": "NODE UNIT"}, verbose=True)
    assert all(line.isprintable() for line in text)


@pytest.mark.parametrize("seconds,text", [
    (0, "1970-01-01 00:00 UTC"), (951782399, "2000-02-28 23:59 UTC"), (951782400, "2000-02-29 00:00 UTC"),
    (1796040000, "2026-11-30 12:00 UTC"), (4107542399, "2100-02-28 23:59 UTC"), (4107542400, "2100-03-01 00:00 UTC")])
def test_utc(seconds, text):
    """Dates without a clock or a calendar of the machine's."""
    assert render_table.utc(seconds) == text


def test_utc_as_the_library_says():
    """The same as time.gmtime, over 150 years."""
    for seconds in range(0, 4733510400, 12345678):
        assert render_table.utc(seconds) == time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


@pytest.mark.parametrize("seconds,text", [(-5, "0 s"), (59.9, "59 s"), (61, "1 min"), (12000, "3 h 20 min"),
                                          (187300, "2 d 4 h")])
def test_age(seconds, text):
    """Two units are enough."""
    assert render_table.age(seconds) == text


# -- metrics

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')


def parse_metrics(text):
    """{(name, labels): value} by the rules of the text format (version 0.0.4), strictly."""
    assert text.endswith("\n") and text.encode("utf-8").decode("utf-8") == text
    samples, types, current = {}, {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in types, "a metric in two places: " + current
            assert _NAME.fullmatch(current) and len(line.split(" ", 3)) == 4
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == current and kind in ("gauge", "counter")
            assert kind != "counter" or name.endswith("_total")
            types[name] = kind
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        name, inner, value = match.groups()
        assert name == current and name in types, "samples stand below their TYPE"
        labels, rest = [], inner or ""
        while rest:
            label = _LABEL.match(rest)
            assert label, line
            labels.append((label.group(1), re.sub(
                r"\\(.)", lambda escape: {"n": "\n"}.get(escape.group(1), escape.group(1)), label.group(2))))
            rest = rest[label.end():]
        assert len({key for key, _ in labels}) == len(labels)
        assert (name, tuple(labels)) not in samples, "the same sample twice: " + line
        samples[name, tuple(labels)] = float(value)
    return samples


def metrics(facts, **more):
    results = checks.run_checks(facts, DEFAULTS)
    return prometheus.text(facts, results, checks.merge(results), **more)


def test_metrics_of_a_healthy_node():
    """All is there, by the rules of the format; each metric says what it is."""
    samples = parse_metrics(metrics(builders.healthy_node(), duration=0.25))
    names = {name for name, _ in samples}
    assert names >= set(prometheus.METRICS) - {
        "gpuhealth_finding", "gpuhealth_gpu_retired_pages", "gpuhealth_gpu_nvlink_bit_error_rate"}
    assert samples["gpuhealth_outcome", ()] == 0 and samples["gpuhealth_round_duration_seconds", ()] == 0.25
    assert samples["gpuhealth_last_round_timestamp_seconds", ()] == builders.NOW
    gpu = (("gpu", "3"), ("uuid", builders.uuid(3)), ("bdf", builders.bdf(3)))
    assert samples["gpuhealth_gpu_pcie_width_lanes", gpu] == 16
    assert samples["gpuhealth_gpu_ecc_errors_total", gpu + (("type", "uncorrected"), ("span", "volatile"))] == 0
    assert samples["gpuhealth_gpu_nvlinks_up", gpu] == 18


def test_metrics_of_a_lost_gpu():
    """What cannot be read has no sample; the fault has one."""
    facts = builders.changed(builders.healthy_node(), {
        "gpus.3": to_plain(builders.F.Gpu(nvml_index=3)), "gpus.3.error": LOST})
    for name in builders.F.Gpu._fields:
        if name not in ("nvml_index", "error"):
            facts = builders.changed(facts, {"gpus.3.%s" % name: {"unknown": "error"}})
    samples = parse_metrics(metrics(facts))
    assert samples["gpuhealth_gpu_usable", (("gpu", "nvml3"), ("uuid", ""), ("bdf", ""))] == 0
    assert not [key for key in samples if key[0] == "gpuhealth_gpu_temperature_celsius" and key[1][0][1] == "nvml3"]
    assert [dict(labels)["code"] for name, labels in samples if name == "gpuhealth_finding"][:1] == ["GH-GPU-LOST"]
    assert samples["gpuhealth_outcome", ()] == 2


def test_metrics_of_a_node_where_nothing_was_read():
    """No GPUs, nothing known: still a file that says so."""
    facts = builders.F.Facts(node="n1")
    samples = parse_metrics(metrics(facts))
    assert samples["gpuhealth_outcome", ()] == 3 and ("gpuhealth_gpus_found", ()) not in samples


def test_hostile_labels_and_numbers():
    """Quotes, backslashes, newlines, broken text, numbers that are none: escaped, or left out."""
    evil = 'a"b\\c\nd{}, \udc80\x1b'
    facts = builders.changed(builders.healthy_node(), {"driver": evil, "gpus.3.uuid": evil})
    facts = facts._replace(gpus=facts.gpus[:4] + (facts.gpus[4]._replace(
        temperature=float("nan"), power=float("inf"), utilization="50"),) + facts.gpus[5:])
    found = [finding(subject=Subject("mount", name="/" + evil)), finding(subject=Subject("mount", name="/" + evil))]
    samples = parse_metrics(prometheus.text(facts, [], found))
    said = [dict(labels)["subject"] for name, labels in samples if name == "gpuhealth_finding"]
    assert said == ["/" + evil.replace("\udc80", "?")]
    assert not [key for key in samples if "nan" in str(samples[key])]


def test_metrics_for_the_reference_parser():
    """The library that most exporters use reads the same samples."""
    parser = pytest.importorskip("prometheus_client.parser")
    text = metrics(builders.healthy_node())
    families = list(parser.text_string_to_metric_families(text))
    assert sum(len(family.samples) for family in families) == len(parse_metrics(text))


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
