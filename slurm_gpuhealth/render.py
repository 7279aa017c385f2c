"""Findings for people and machines: in one line (also for Nagios), and as a JSON document. Pure.

Names of processes, mounts and boards come from others: control characters in them are shown, not sent.
"""
from __future__ import annotations

from slurm_gpuhealth import catalogue, model
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.parse.words import printable

# What the exit code of a check says (Nagios convention), and the words and colours for it.
EXITS = {None: 0, model.NOTE: 0, model.WARNING: 1, model.FATAL: 2, model.UNREAD: 3}
_NAGIOS = {0: "OK", 1: "WARNING", 2: "CRITICAL", 3: "UNKNOWN"}
WORDS = {0: "ok", 1: "warning", 2: "fatal", 3: "unknown"}


def exit_code(findings):
    """0 ok, 1 warning, 2 fatal finding, 3 could not look."""
    return EXITS[model.worst(findings)]


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
        "outcome": WORDS[code], "exit_code": code,
        "driver": F.to_plain(facts.driver), "cuda": F.to_plain(facts.cuda),
        "gpus": {"expected": F.to_plain(facts.expected.gpus), "origin": facts.expected.origin,
                 "found": F.to_plain(facts.gpu_count)},
        "findings": [model.to_plain(finding) for finding in findings],
        "checks": [{"name": result.name, "outcome": result.outcome,
                    "codes": [finding.code for finding in result.findings]} for result in results],
        "sources": [{"name": status.name, "outcome": status.outcome, "detail": status.detail,
                     "rounds": status.rounds} for status in facts.sources],
    }
