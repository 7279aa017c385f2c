"""What `gpuhealth check` shows on a terminal. Pure, and only for people: its form may change in any version.

    n1: 8 of 8 GPUs, driver 550.90.07, CUDA 12.4, up 1 d 0 h, mode observe

    gpu   address       model           state  util  temp  power  memory  ecc u/c  remap  pcie      nvlink
    gpu0  0000:18:00.0  H100 80GB HBM3  ok     0%    31 C  71 W   0 MiB   0/0      ok     gen5 x16  18/18
    ...
    FATAL    GH-PCIE-WIDTH gpu5: x8, expected x16
             since 2026-11-30 09:00 UTC (3 h)
             do: `nvidia-smi -q -i 5 -d PCIE`; ...
             more: gpuhealth explain GH-PCIE-WIDTH

    checks: 34 ok, 1 bad, 0 unknown, 0 skipped (pcie_width bad)

    n1: FATAL: 1 fatal, 0 unknown, 0 warnings, 0 notes

"?" stands for what could not be read, "-" for what this GPU does not have; ecc u/c: uncorrected and corrected errors
since the driver was loaded. On a narrow terminal columns are left out.
"""
from __future__ import annotations

import re
import textwrap

from slurm_gpuhealth import catalogue, model
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.render import WORDS, exit_code, printable, subject, worst_first

_COLOURS = {"ok": "32", "note": "36", "warning": "33", "fatal": "1;31", "bad": "1;31", "unknown": "35", "skipped": "2",
            "up": "32", "down": "33"}
_INDENT = " " * 9
_PLACE = re.compile(r"(?:(?<=nvidia)|\b)(N|NODE|BDF|PATH|UNIT|PID|MINOR)\b")    # in the steps of a runbook
_LEAST = 40             # columns of a terminal that are not gone below
# Left out first to last where the terminal is narrow.
_SPARE = ("address", "util", "memory", "model", "nvlink", "power", "remap", "temp", "pcie", "port", "kind", "free",
          "type")


def lines(facts, results, findings, mode="", advice=None, colour=False, width=120, verbose=False):
    """The result as a list of lines.

    mode: of this node. advice: {code: first step of its runbook}. width: columns of the terminal. verbose: also the
    outcome of each check and source.
    """
    paint = _painter(colour)
    width = max(_LEAST, width)
    findings = worst_first(findings)
    text = _header(facts, mode, width) + [""]
    text += _gpu_rows(facts, findings, paint, width)
    text += _link_rows(facts, findings, paint, width)
    text += _mount_rows(facts, findings, paint, width)
    for severities in ((model.FATAL, model.WARNING), (model.UNREAD,), (model.NOTE,)):
        found = [finding for finding in findings if finding.severity in severities]
        for finding in found:
            text += _finding(facts, finding, advice or {}, paint, width)
        text += [""] if found else []
    text += _checks(facts, results, paint, verbose, width)
    return text + ["", _verdict(facts, findings, paint)]


def _painter(colour):
    def paint(text, kind):
        return "\033[%sm%s\033[0m" % (_COLOURS[kind], text) if colour and kind in _COLOURS else text
    return paint


def _header(facts, mode, width):
    found = facts.gpu_count if F.is_known(facts.gpu_count) else "?"
    wanted = facts.expected.gpus if F.is_known(facts.expected.gpus) else "?"
    parts = ["%s: %s of %s GPUs" % (facts.node or facts.hostname, found, wanted),
             "driver %s" % (facts.driver if F.is_known(facts.driver) else "not read")]
    if F.is_known(facts.cuda):
        parts.append("CUDA %s" % facts.cuda)
    if F.is_known(facts.uptime):
        parts.append("up " + age(facts.uptime))
    if mode:
        parts.append("mode " + mode)
    return textwrap.wrap(printable(", ".join(parts)), width)


def _verdict(facts, findings, paint):
    counts = [sum(finding.severity == severity for finding in findings)
              for severity in (model.FATAL, model.UNREAD, model.WARNING, model.NOTE)]
    word = WORDS[exit_code(findings)]
    return "%s: %s: %d fatal, %d unknown, %d %s, %d %s" % (
        printable(facts.node or facts.hostname), paint(word.upper(), word), counts[0], counts[1],
        counts[2], "warning" if counts[2] == 1 else "warnings", counts[3], "note" if counts[3] == 1 else "notes")


# -- rows

def _gpu_rows(facts, findings, paint, width):
    if not facts.gpus:
        return []
    rows = []
    for gpu in sorted(facts.gpus, key=lambda one: one.index if F.is_known(one.index) else 999):
        own = [finding for finding in findings if finding.subject.kind == "gpu"
               and (finding.subject.index == gpu.index or (finding.subject.bdf and finding.subject.bdf == gpu.bdf))]
        rows.append({
            "gpu": "gpu" + _cell(gpu.index), "address": _cell(gpu.bdf), "model": _model(gpu),
            "state": model.worst(own) or "ok", "util": _cell(gpu.utilization, "%d%%"),
            "temp": _cell(gpu.temperature, "%d C"), "power": _cell(gpu.power, "%.0f W"),
            "memory": _cell(gpu.memory_used, "%d MiB", lambda used: used >> 20),
            "ecc u/c": "%s/%s" % (_cell(gpu.ecc_uncorrected_volatile), _cell(gpu.ecc_corrected_volatile)),
            "remap": _remap(gpu), "pcie": _pcie(gpu), "nvlink": _nvlink(gpu)})
    return _table(rows, paint, width) + [""]


def _model(gpu):
    name = _cell(gpu.name)
    return (name[7:] if name.startswith("NVIDIA ") else name)[:24]


def _remap(gpu):
    """Row remapping of newer GPUs, page retirement of older ones."""
    if F.is_known(gpu.remap_failure) and gpu.remap_failure:
        return "failed"
    pending = gpu.remap_pending if F.is_known(gpu.remap_pending) else gpu.retired_pending
    return _cell(pending, "%s", lambda value: "pending" if value else "ok")


def _pcie(gpu):
    if not F.is_known(gpu.pcie_width) or not F.is_known(gpu.pcie_gen):
        return "?"
    text = "gen%s x%s" % (gpu.pcie_gen, gpu.pcie_width)
    if F.is_known(gpu.pcie_width_max) and gpu.pcie_width < gpu.pcie_width_max:
        text += "<x%s" % gpu.pcie_width_max
    return text


def _nvlink(gpu):
    if not F.is_known(gpu.nvlinks):
        return _cell(gpu.nvlinks)
    if not gpu.nvlinks:
        return "-"
    # 2 is asleep: it wakes when it is used.
    return "%d/%d" % (sum(link.get("state") in (1, 2) for link in gpu.nvlinks), len(gpu.nvlinks))


def _link_rows(facts, findings, paint, width):
    """InfiniBand and RoCE ports, and what else something was found about."""
    rows = []
    for link in facts.links if F.is_known(facts.links) else ():
        own = model.worst([finding for finding in findings if finding.subject.name == link.name])
        if link.kind == "ethernet" and not own:
            continue
        rows.append({"link": link.name, "kind": link.kind, "state": own or _cell(link.state),
                     "port": _cell(link.physical), "speed": _cell(link.speed, "%g Gb/s"),
                     "width": _cell(link.width, "x%s")})
    return _table(rows, paint, width) + [""] if rows else []


def _mount_rows(facts, findings, paint, width):
    rows = [{"mount": mount.path, "type": _cell(mount.fstype),
             "state": model.worst([one for one in findings if one.subject.name == mount.path]) or "ok",
             "free": _cell(mount.free_bytes, "%.1f GiB", lambda free: free / (1 << 30))} for mount in facts.mounts]
    return _table(rows, paint, width) + [""] if rows else []


def _cell(value, pattern="%s", change=lambda value: value):
    """A value for a table: "?" for what could not be read, "-" for what is not there."""
    if value is None:
        return "-"
    if F.is_known(value):
        return pattern % change(value)
    return "-" if value.reason == F.UNSUPPORTED else "?"


def _table(rows, paint, width=0):
    """Aligned lines of rows (dicts of the same keys); the column state is coloured."""
    names = list(rows[0])
    cells = [{name: printable(row[name]) for name in names} for row in [dict(zip(names, names))] + rows]
    sizes = {name: max(len(row[name]) for row in cells) for name in names}
    for spare in _SPARE if width else ():
        if sum(sizes[name] + 2 for name in names) - 2 <= width:
            break
        names = [name for name in names if name != spare]
    found = []
    for row in cells:
        padded = [paint(row[name].ljust(sizes[name]), row[name] if name == "state" else "") for name in names]
        found.append("  ".join(padded).rstrip())
    return found


# -- findings and checks

def _finding(facts, finding, advice, paint, width):
    about = catalogue.lookup(finding.code)
    text = finding.seen or about.short
    if finding.expected:
        text += ", expected " + finding.expected
    word = "%-8s" % (finding.severity.upper() if finding.severity == model.FATAL else finding.severity)
    first = _wrapped("%s %s: %s" % (finding.code, subject(finding.subject), text), width)
    found = [paint(word, finding.severity) + " " + first[0][len(_INDENT):]] + first[1:]
    if finding.severity == model.NOTE:
        return found
    if finding.since is not None:
        found += _wrapped("since %s (%s)" % (utc(finding.since), age(facts.time - finding.since)), width)
    if finding.code in advice:
        step = _for_here(advice[finding.code], facts, finding)
        found += _wrapped("do: " + step, width, "    ")
    return found + _wrapped("more: gpuhealth explain " + finding.code, width)


def _wrapped(text, width, more=""):
    """Lines below the finding's first word. more: further indentation of the second line and those after it."""
    return textwrap.wrap(printable(text), width, initial_indent=_INDENT, subsequent_indent=_INDENT + more,
                         break_on_hyphens=False)


def _for_here(step, facts, finding):
    """A step of a runbook with this GPU's number, this address and this node's name in it."""
    named = {"NODE": facts.node or facts.hostname, "BDF": finding.subject.bdf}
    if finding.subject.kind == "gpu" and finding.subject.index is not None:
        named["N"] = str(finding.subject.index)
        named["MINOR"] = _minor_of(facts, finding.subject)
    if finding.subject.kind in model.NAMED:
        named["PATH" if finding.subject.kind == "mount" else "UNIT"] = finding.subject.name
    data = finding.data or {}
    pid = data.get("pid") or (data.get("processes") or [{}])[0].get("pid")
    if isinstance(pid, int):
        named["PID"] = str(pid)
    return _PLACE.sub(lambda match: named.get(match.group(1)) or match.group(1), step)


def _minor_of(facts, subject):
    """Number of the GPU's device file, "" where it is not known."""
    for gpu in list(facts.gpus) + list(facts.known_gpus):
        if gpu.index == subject.index and F.is_known(gpu.minor) and gpu.minor is not None:
            return str(gpu.minor)
    return ""


def _checks(facts, results, paint, verbose, width):
    if verbose:
        rows = [{"check": result.name, "state": result.outcome,
                 "codes": ", ".join(finding.code for finding in result.findings) or "-"} for result in results]
        sources = [{"source": status.name, "state": status.outcome, "seconds": "%.3f" % status.seconds,
                    "detail": status.detail or "-"} for status in facts.sources]
        return _table(rows, paint) + ([""] + _table(sources, paint) if sources else [])
    counts = ["%d %s" % (sum(result.outcome == outcome for result in results), outcome)
              for outcome in (model.OK, model.BAD, model.UNKNOWN, model.SKIPPED)]
    text = "checks: " + ", ".join(counts)
    others = ["%s %s" % (result.name, result.outcome) for result in results
              if result.outcome in (model.BAD, model.UNKNOWN)]
    return textwrap.wrap(text + (" (%s)" % ", ".join(others) if others else ""), width)


# -- times

def utc(seconds):
    """Seconds since the epoch as "2026-11-30 12:00 UTC"."""
    days, rest = divmod(int(seconds), 86400)
    # Days to a date of the civil calendar, counted from 1 March of year 0, so that the leap day comes last.
    era, day = divmod(days + 719468, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    return "%04d-%02d-%02d %02d:%02d UTC" % (era * 400 + year + (month <= 2), month, day + 1, rest // 3600,
                                             rest % 3600 // 60)


def age(seconds):
    """A span of time in its two largest units: "40 s", "5 min", "3 h 20 min", "2 d 4 h"."""
    seconds = max(0, int(seconds))
    if seconds < 60:
        return "%d s" % seconds
    if seconds < 3600:
        return "%d min" % (seconds // 60)
    if seconds < 86400:
        return "%d h %d min" % (seconds // 3600, seconds % 3600 // 60)
    return "%d d %d h" % (seconds // 86400, seconds % 86400 // 3600)
