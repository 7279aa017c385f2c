"""Findings for people and machines: one line (Nagios), a table, a JSON document. Pure.

Names of processes, mounts and boards come from others: control characters in them are shown, not sent.
"""
from __future__ import annotations

from slurm_gpuhealth import catalogue, model
from slurm_gpuhealth import facts as F

# What the exit code of a check says (Nagios convention), and the words and colours for it.
EXITS = {None: 0, model.NOTE: 0, model.WARNING: 1, model.FATAL: 2, model.UNREAD: 3}
_NAGIOS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
_WORDS = {0: "ok", 1: "warning", 2: "fatal", 3: "unknown"}
_COLOURS = {"ok": "32", "note": "36", "warning": "33", "fatal": "1;31", "bad": "1;31", "unknown": "35", "skipped": "2"}


def exit_code(findings):
    """0 ok, 1 warning, 2 fatal finding, 3 could not look."""
    return EXITS[model.worst(findings)]


def printable(text):
    """`text` with control characters and what a terminal would obey made visible."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
                   for char in str(text))


def subject(one):
    """A subject in one word: gpu3, gpus, /data, mlx5_0/1, node."""
    if one.kind == "gpu":
        return "gpu%s" % ("?" if one.index is None else one.index) + (
            " (%s)" % one.bdf if one.index is None and one.bdf else "")
    return one.name if one.kind in model.NAMED else one.kind


def detail(finding):
    """What was seen, against what was expected."""
    about = catalogue.lookup(finding.code)
    seen = finding.seen or about.short
    if finding.expected:
        return "%s%s%s" % (seen, about.detail or " instead of ", finding.expected)
    return seen


def line(finding):
    """One finding in one line: code, subject, what was seen."""
    return printable("%s %s %s" % (finding.code, subject(finding.subject), detail(finding))).rstrip()


def nagios(facts, findings):
    """One line as monitoring systems read it, with performance data. `|` would begin the latter: replaced."""
    findings = worst_first(findings)
    code = exit_code(findings)
    if code:
        text = line(findings[0]) + (" (+%d more)" % (len(findings) - 1) if len(findings) > 1 else "")
    elif F.is_known(facts.gpu_count):
        text = "%d GPUs" % facts.gpu_count
    else:
        text = "no GPUs"
    counts = [sum(finding.severity == severity for finding in findings)
              for severity in (model.FATAL, model.UNREAD, model.WARNING, model.NOTE)]
    gpus = facts.gpu_count if F.is_known(facts.gpu_count) else "U"
    return "GPUHEALTH %s: %s | gpus=%s fatal=%d unknown=%d warning=%d note=%d" % (
        (_NAGIOS[code], text.replace("|", "/"), gpus, *counts))


def worst_first(findings):
    """Findings by severity, the worst first; the order among equals stays."""
    return sorted(findings, key=lambda finding: -model.SEVERITIES.index(finding.severity))


def document(facts, results, findings, phase):
    """The result as one JSON-able dict, version 1 (docs/checks.md describes it)."""
    findings = worst_first(findings)
    code = exit_code(findings)
    return {
        "v": 1, "node": facts.node, "time": facts.time, "boot_id": facts.boot_id, "phase": phase,
        "outcome": _WORDS[code], "exit_code": code,
        "gpus": {"expected": F.to_plain(facts.expected.gpus), "origin": facts.expected.origin,
                 "found": F.to_plain(facts.gpu_count)},
        "findings": [model.to_plain(finding) for finding in findings],
        "checks": [{"name": result.name, "outcome": result.outcome,
                    "codes": [finding.code for finding in result.findings]} for result in results],
        "sources": [{"name": status.name, "outcome": status.outcome, "detail": status.detail,
                     "rounds": status.rounds} for status in facts.sources],
    }


def table(facts, results, findings, colour=False):
    """The result as lines for a terminal: node, a row a GPU, a row a mount, the findings, how the checks went."""
    paint = _painter(colour)
    found = facts.gpu_count if F.is_known(facts.gpu_count) else "?"
    wanted = facts.expected.gpus if F.is_known(facts.expected.gpus) else "?"
    lines = [printable("%s: %s of %s GPUs, driver %s" % (
        facts.node or facts.hostname, found, wanted, facts.driver if F.is_known(facts.driver) else "not read")), ""]
    lines += _gpu_rows(facts, findings, paint)
    if facts.mounts:
        lines += _mount_rows(facts, findings, paint)
    for finding in worst_first(findings):
        lines.append("%s %s" % (paint("%-8s" % finding.severity, finding.severity), line(finding)))
    if findings:
        lines.append("")
    lines.append("checks: " + "  ".join("%s %s" % (result.name, paint(result.outcome, result.outcome))
                                        for result in results))
    return lines


def _painter(colour):
    def paint(text, kind):
        return "\033[%sm%s\033[0m" % (_COLOURS.get(kind, "0"), text) if colour else text
    return paint


_GPU_COLUMNS = ("gpu", "address", "model", "state", "util", "temp", "power", "memory", "ecc", "pcie")


def _gpu_rows(facts, findings, paint):
    if not facts.gpus:
        return []
    rows = [(_GPU_COLUMNS, "")]
    for gpu in sorted(facts.gpus, key=lambda one: one.index if F.is_known(one.index) else 999):
        own = [finding for finding in findings if finding.subject.kind == "gpu"
               and (finding.subject.index == gpu.index or (finding.subject.bdf and finding.subject.bdf == gpu.bdf))]
        state = model.worst(own) or "ok"
        rows.append(((
            "gpu%s" % _cell(gpu.index), _cell(gpu.bdf), _cell(gpu.name)[:24], state, _cell(gpu.utilization, "%d%%"),
            _cell(gpu.temperature, "%d C"), _cell(gpu.power, "%.0f W"),
            _cell(gpu.memory_used, "%s", lambda used: "%d MiB" % (used >> 20)),
            _cell(gpu.ecc_uncorrected_volatile), _link(gpu)), state))
    return _aligned(rows, 3, paint)


def _link(gpu):
    if not F.is_known(gpu.pcie_width) or not F.is_known(gpu.pcie_gen):
        return "?"
    return "gen%d x%d" % (gpu.pcie_gen, gpu.pcie_width)


def _mount_rows(facts, findings, paint):
    rows = [(("mount", "type", "state", "free"), "")]
    for mount in facts.mounts:
        state = model.worst([finding for finding in findings if finding.subject.name == mount.path]) or "ok"
        rows.append(((mount.path, _cell(mount.fstype), state,
                      _cell(mount.free_bytes, "%s", lambda free: "%.1f GiB" % (free / (1 << 30)))), state))
    return _aligned(rows, 2, paint)


def _cell(value, pattern="%s", change=lambda value: value):
    """A value for a table: "?" for what could not be read, "-" for what this GPU does not have."""
    if F.is_known(value):
        return pattern % change(value)
    return "-" if value.reason == F.UNSUPPORTED else "?"


def _aligned(rows, coloured, paint):
    cells = [[printable(cell) for cell in row] for row, _ in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for row, (_, state) in zip(cells, rows):
        padded = [cell.ljust(width) for cell, width in zip(row, widths)]
        if state:
            padded[coloured] = paint(padded[coloured], state)
        lines.append("  ".join(padded).rstrip())
    return lines + [""]
