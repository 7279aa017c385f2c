"""Makes codes_table.py, xid_table.py and docs/codes.md from codes/*.yaml and xid.yaml.

    python -m slurm_gpuhealth.catalogue.generate            write them
    python -m slurm_gpuhealth.catalogue.generate --check    exit 1 when one is not up to date

The tables are plain Python so that the hooks need no YAML (loading it costs more than the whole hook may).
"""
from __future__ import annotations

import os
import sys

import yaml

from slurm_gpuhealth.errors import DataError

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")

LAYERS = ("hardware", "driver", "framework", "data", "scheduling", "external")
SEVERITIES = ("fatal", "unknown", "warning", "note")
JOB_ACTIONS = ("requeue-now", "let-finish", "none")
SUBJECTS = ("gpu", "gpus", "mount", "part", "node", "job")
# When the facts about the reason codes were last gone through.
CODES_AS_OF = "2026-11-30"
FIXERS = {
    "hardware": "hardware service", "admin": "the cluster's admins", "storage": "whoever runs the storage",
    "user": "the job's user", "developer": "the developers of this program",
}
ACTIONS = ("drain", "note", "ignore")

CODES_HEAD = '''\
"""Reason codes. Generated from codes/*.yaml (%(as_of)s) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Code = namedtuple(
    "Code", "code title layer severity job_action recoverable subject fixer seen_once detail short rank")
Code.__doc__ = """One reason code; for the fields see codes/README.md. rank 0 leads a reason."""

CODES = {
'''

XID_HEAD = '''\
"""Xid numbers. Generated from xid.yaml (%(as_of)s) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Xid = namedtuple(
    "Xid", "code title short layer action severity job_action user_caused companions by_value source")
Xid.__doc__ = """One Xid number; for the fields see the head of xid.yaml.

action: drain, note or ignore. severity: of the finding. user_caused: yes, sometimes or no.
companions: numbers of the same event. by_value: {value: action} or None."""

# What Xid 154 and NVML's recovery-action field ask for.
RECOVERY_ACTIONS = %(recovery)s

XIDS = {
'''


def load_source(name):
    """The parsed YAML source `name` (xid.yaml) beside this file."""
    with open(os.path.join(HERE, name), encoding="utf-8") as handle:
        return yaml.safe_load(handle)


def load_codes():
    """All of codes/*.yaml as one: {"as_of": date, "codes": {code: entry}}, in the order of the files' names, which
    is the order in which codes lead a reason. A code that is there twice is a DataError."""
    folder, codes = os.path.join(HERE, "codes"), {}
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".yaml")):
        for code, entry in load_source(os.path.join("codes", name))["codes"].items():
            _must(code not in codes, "%s in %s" % (code, name), "is there twice")
            codes[code] = entry
    return {"as_of": CODES_AS_OF, "codes": codes}


def _must(condition, where, what):
    if not condition:
        raise DataError("catalogue: %s: %s" % (where, what))


def check_code(name, entry):
    """Raise DataError when an entry of codes/*.yaml is not well formed."""
    keys = {"title", "layer", "severity", "job", "recoverable", "subject", "fixer", "seen_once", "detail",
            "short", "cause", "runbook"}
    _must(not set(entry) - keys, name, "unknown key %s" % sorted(set(entry) - keys))
    for key, allowed in (("layer", LAYERS), ("severity", SEVERITIES), ("job", JOB_ACTIONS),
                         ("subject", SUBJECTS), ("fixer", FIXERS)):
        _must(entry.get(key) in allowed, name, "%s must be one of %s" % (key, ", ".join(allowed)))
    _must(entry["severity"] == "fatal" or entry["job"] == "none", name, "only a fatal code acts on jobs")
    _must(entry["subject"] != "gpu" or len(name) <= 14, name, "code and gpu10 must fit 20 characters")
    _must(entry.get("title") and entry.get("cause") and entry.get("runbook"), name, "title, cause, runbook")


def check_xid(number, entry, sources, codes=None):
    """Raise DataError when an entry of xid.yaml is not well formed."""
    where = "xid %s" % number
    keys = {"title", "short", "layer", "action", "by_value", "job", "severity", "user", "like", "with",
            "src"}
    _must(not set(entry) - keys, where, "unknown key %s" % sorted(set(entry) - keys))
    _must(entry.get("layer") in LAYERS and entry.get("action") in ACTIONS, where, "layer or action")
    _must(entry.get("user", "no") in ("yes", "sometimes", "no"), where, "user")
    _must(entry.get("user", "no") == "no" or entry["action"] != "drain", where, "user-caused must not drain")
    _must(entry["action"] == "drain" or "job" not in entry, where, "only a drain acts on jobs")
    _must(len(entry.get("short", "")) <= 20, where, "short has more than 20 characters")
    _must(codes is None or entry.get("like", "GH-XID") in codes, where, "like: no such code")
    _must(entry.get("src") and not set(entry["src"]) - set(sources), where, "src")


def code_rows(source):
    """Tuples in the order of Code's fields."""
    rows = []
    for rank, (name, entry) in enumerate(source["codes"].items()):
        check_code(name, entry)
        rows.append((name, entry["title"], entry["layer"], entry["severity"], entry["job"],
                     entry.get("recoverable", False), entry["subject"], entry["fixer"],
                     entry.get("seen_once", False), entry.get("detail", ""), entry.get("short", ""), rank))
    return rows


def xid_rows(source):
    """Tuples in the order of Xid's fields, by number."""
    rows = []
    for number, entry in sorted(source["xids"].items()):
        check_xid(number, entry, source["sources"])
        action, user = entry["action"], entry.get("user", "no")
        usual = {"drain": "fatal", "ignore": "note"}.get(action) or ("warning" if user == "no" else "note")
        rows.append((number, entry["title"], entry.get("short", ""), entry["layer"], action,
                     entry.get("severity", usual),
                     entry.get("job", "let-finish" if action == "drain" else "none"), user,
                     tuple(entry.get("with", ())), entry.get("by_value"), tuple(entry["src"])))
    return rows


def _literal(values):
    """Python source of one row, wrapped to the repository's line length."""
    lines, line = [], "        "
    for value in values:
        piece = repr(value) + ", "
        if len(line) + len(piece) > 108 and line.strip():
            lines.append(line.rstrip())
            line = "        "
        line += piece
    lines.append(line.rstrip().rstrip(","))
    return "\n".join(lines)


def render_codes_table(source):
    """Text of codes_table.py."""
    rows = ["    %r: Code(\n%s),\n" % (row[0], _literal(row)) for row in code_rows(source)]
    return CODES_HEAD % source + "".join(rows) + "}\n"


def render_xid_table(source):
    """Text of xid_table.py."""
    rows = ["    %d: Xid(\n%s),\n" % (row[0], _literal(row)) for row in xid_rows(source)]
    actions = sorted(source["recovery_actions"].items())
    recovery = "{\n%s}" % "".join("    %d: %r,\n" % item for item in actions)
    return XID_HEAD % {"as_of": source["as_of"], "recovery": recovery} + "".join(rows) + "}\n"


def render_docs(codes, xids):
    """Text of docs/codes.md."""
    out = ["# Reason codes", "",
           "Made from `slurm_gpuhealth/catalogue/codes/*.yaml` and `xid.yaml` by",
           "`python -m slurm_gpuhealth.catalogue.generate`; `gpuhealth explain CODE` prints one of them.", "",
           "A drain reason reads `CODE SUBJECT DETAIL [ev=ID]`: `GH-XID79 gpu3 fell off bus [ev=3f2a91]`.",
           "`sinfo -R` shows the first 20 characters, which hold code and subject. `+2` behind the subject",
           "means two more findings of that severity; `gpuhealth evidence show ID` shows all of them.",
           "",
           "| code | severity | layer | job | title |", "|---|---|---|---|---|"]
    for row in code_rows(codes):
        name = row[0] + "*n*" if row[0] == "GH-XID" else row[0]
        out.append("| [%s](#%s) | %s | %s | %s | %s |"
                   % (name, row[0].lower(), row[3], row[2], row[4], row[1]))
    for name, entry in codes["codes"].items():
        out += ["", "## %s" % name, "", "**%s.** %s" % (entry["title"], entry["cause"].strip()), "",
                "Who fixes it: %s. Subject: %s. Layer: %s. Severity: %s. Job that uses it: %s.%s"
                % (FIXERS[entry["fixer"]], entry["subject"], entry["layer"], entry["severity"], entry["job"],
                   " May be resumed by itself (`recover:`)." if entry.get("recoverable") else ""), ""]
        out += ["%d. %s" % item for item in enumerate(entry["runbook"], 1)]
    out += ["", "## Xid numbers", "",
            "As of %s. *user*: a user's own program can cause it, so it drains nothing by itself. "
            "The action can be changed per number (`xid:` in the configuration)." % xids["as_of"], "",
            "| Xid | what | layer | action | job | user | with | sources |",
            "|---|---|---|---|---|---|---|---|"]
    for row in xid_rows(xids):
        out.append("| %d | %s | %s | %s | %s | %s | %s | %s |" % (
            row[0], row[1], row[3], "by value" if row[9] else row[4], row[6], row[7],
            ", ".join(map(str, row[8])), ", ".join(row[10])))
    out += ["", "Xid 154 says what the driver wants: " + ", ".join(
        "%d %s" % item for item in sorted(xids["recovery_actions"].items())) + ".", "", "Sources:", ""]
    out += ["- %s: %s" % item for item in xids["sources"].items()]
    return "\n".join(out) + "\n"


def outputs():
    """{path: text} of every generated file; docs only where the source tree is there."""
    codes, xids = load_codes(), load_source("xid.yaml")
    files = {os.path.join(HERE, "codes_table.py"): render_codes_table(codes),
             os.path.join(HERE, "xid_table.py"): render_xid_table(xids)}
    if os.path.isdir(DOCS):
        files[os.path.join(DOCS, "codes.md")] = render_docs(codes, xids)
    return files


def stale(files):
    """Those of `files` ({path: text}) whose text on disk is another or missing."""
    wrong = []
    for path, text in files.items():
        try:
            with open(path, encoding="utf-8") as handle:
                same = handle.read() == text
        except FileNotFoundError:
            same = False
        if not same:
            wrong.append(path)
    return wrong


def main(argv=None, files=None):
    """Write the generated files that differ, or with --check only name them (exit 1)."""
    argv = sys.argv[1:] if argv is None else argv
    files = outputs() if files is None else files
    wrong = stale(files)
    for path in wrong:
        print(("not up to date: " if "--check" in argv else "written: ") + os.path.relpath(path))
        if "--check" not in argv:
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(files[path])
    return 1 if wrong and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main())
