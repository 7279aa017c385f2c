"""The tables of docs/comparison.md, made from compare_results.json."""
from __future__ import annotations

import os
import re
import sys

from compare_faults import DRAIN, HARMLESS, WARN
from compare_node import ROOT, write

PAGE = os.path.join(ROOT, "docs", "comparison.md")
TIME_LIMIT = 60         # seconds after which slurmd ends a HealthCheckProgram (built in before Slurm 26.05)
MARK = "<!-- %s: made by benchmarks/compare.py -->"


def verdict(one):
    """What became of the node by gpucm and by ours: drain, warn or no; "hang" where a check of gpucm did not end."""
    codes = [code for code, _ in one["gpucm"].values()]
    theirs = DRAIN if 2 in codes else "hang" if None in codes else WARN if any(codes) else HARMLESS
    if one["ours"]["round"]:
        mine = DRAIN
    else:
        said = {severity for _, severity, _ in one["ours"]["findings"]}
        mine = WARN if said & {"warning", "unknown"} else HARMLESS
    return theirs, mine


def tables(results):
    """{name of the part: markdown} for the page."""
    rows, score = [], {"gpucm": [0, 0, 0, 0], "ours": [0, 0, 0, 0]}
    for one in results["faults"].values():
        theirs, mine = verdict(one)
        for side, got in (("gpucm", theirs), ("ours", mine)):
            score[side][0] += one["want"] == DRAIN and got == DRAIN
            score[side][1] += one["want"] == HARMLESS and got == DRAIN
            score[side][2] += one["want"] == DRAIN and got == "hang"
            score[side][3] += one["want"] == DRAIN and got == WARN
        rows.append("| %s | %s | %s | %s |" % (
            one["title"], one["want"], _ours_cell(one, mine), _gpucm_cell(one, theirs)))
    wanted = [one["want"] for one in results["faults"].values()]
    drains, harmless = wanted.count(DRAIN), wanted.count(HARMLESS)
    total = ["| | ours | gpucm |", "|---|---|---|"]
    for text, at, of in (("faults that drain the node", 0, drains), ("faults that are only warned of", 3, drains),
                         ("faults at which a check does not end within %d s" % TIME_LIMIT, 2, drains),
                         ("harmless situations that drain the node", 1, harmless)):
        total.append("| %s | %d of %d | %d of %d |" % (text, score["ours"][at], of, score["gpucm"][at], of))
    head = ["| situation | should drain? | ours | gpucm |", "|---|---|---|---|"]
    timed = ["| command, healthy node | wall ms | CPU ms | x bare python3 |", "|---|---|---|---|"]
    timed += ["| %s | %.0f | %.0f | %.1f |" % (name, 1000 * one["seconds"], 1000 * one["cpu"], one["ratio"])
              for name, one in results["times"].items()]
    return {"total": "\n".join(total), "faults": "\n".join(head + rows), "times": "\n".join(timed)}


def _ours_cell(one, mine):
    about = one["ours"]
    if mine == DRAIN:
        late = "" if about["round"] == 1 else ", round %d" % about["round"]
        return "**drains**%s: `%s`" % (late, re.sub(r" \[ev=.*", "", about["reason"]).replace("|", "/")[:60])
    if one["ours"].get("resumed"):
        return "drains at the Xid, not again once resumed"
    said = ["%s (%s)" % (code, severity) for code, severity, _ in about["findings"]]
    return ("word: " if mine == WARN else "passes" + (": " if said else "")) + ", ".join(dict.fromkeys(said))


def _gpucm_cell(one, theirs):
    names = {DRAIN: "**CRITICAL**", WARN: "WARN", HARMLESS: "passes", "hang": "does not end"}
    parts = []
    for code in (None, 2, 1):
        checks = [name for name, (status, _) in one["gpucm"].items() if status == code]
        if checks:
            text = {None: "no end after %d s" % TIME_LIMIT, 2: "2", 1: "1"}[code]
            more = " and %d more" % (len(checks) - 3) if len(checks) > 3 else ""
            parts.append("%s: %s%s" % (text, ", ".join(name.replace("nvidia smi ", "") for name in checks[:3]), more))
    return names[theirs] + (" (%s)" % "; ".join(parts) if parts else "")


def renew_page(results):
    """Put the tables between their marks in docs/comparison.md."""
    with open(PAGE) as handle:
        text = handle.read()
    for name, table in tables(results).items():
        start, end = MARK % name, MARK % ("end of " + name)
        before, found, rest = text.partition(start)
        if not found or end not in rest:
            sys.exit("docs/comparison.md has no part %r" % name)
        text = before + start + "\n" + table + "\n" + end + rest.partition(end)[2]
    write(PAGE, text)
