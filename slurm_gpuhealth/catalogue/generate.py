"""Makes the tables (*_table.py) and docs/codes.md from codes/*.yaml, xid.yaml, sxid.yaml, nvlink5.yaml and kinds.yaml.

    python -m slurm_gpuhealth.catalogue.generate            write them
    python -m slurm_gpuhealth.catalogue.generate --check    exit 1 when one is not up to date

The tables are plain Python so that the hooks need no YAML (loading it costs more than the whole hook may).
"""
from __future__ import annotations

import os
import sys

import yaml

from slurm_gpuhealth.catalogue import generate_log
from slurm_gpuhealth.errors import DataError

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs")

LAYERS = generate_log.LAYERS
SEVERITIES = ("fatal", "unknown", "warning", "note")
JOB_ACTIONS = ("requeue-now", "let-finish", "none")
SUBJECTS = ("gpu", "gpus", "mount", "part", "node", "job")
# When the facts about the reason codes were last gone through.
CODES_AS_OF = "2026-11-30"
FIXERS = {
    "hardware": "hardware service", "admin": "the cluster's admins", "storage": "whoever runs the storage",
    "user": "the job's user", "developer": "the developers of this program",
}

CODES_HEAD = '''\
"""Reason codes. Generated from codes/*.yaml (%(as_of)s) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Code = namedtuple(
    "Code", "code title layer severity job_action recoverable subject fixer seen_once detail short rank")
Code.__doc__ = """One reason code; for the fields see codes/README.md. rank 0 leads a reason."""

CODES = {
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


def code_rows(source):
    """Tuples in the order of Code's fields."""
    rows = []
    for rank, (name, entry) in enumerate(source["codes"].items()):
        check_code(name, entry)
        rows.append((name, entry["title"], entry["layer"], entry["severity"], entry["job"],
                     entry.get("recoverable", False), entry["subject"], entry["fixer"],
                     entry.get("seen_once", False), entry.get("detail", ""), entry.get("short", ""), rank))
    return rows


def render_codes_table(source):
    """Text of codes_table.py."""
    rows = ["    %r: Code(\n%s),\n" % (row[0], generate_log.literal(row)) for row in code_rows(source)]
    return CODES_HEAD % source + "".join(rows) + "}\n"


def render_docs(codes, xids, sxids):
    """Text of docs/codes.md."""
    out = ["# Reason codes", "",
           "Made from `slurm_gpuhealth/catalogue/codes/*.yaml`, `xid.yaml` and `sxid.yaml` by",
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
    out += generate_log.xid_docs(xids) + generate_log.sxid_docs(sxids)
    return "\n".join(out) + "\n"


def outputs():
    """{path: text} of every generated file; docs only where the source tree is there."""
    codes, xids, sxids = load_codes(), load_source("xid.yaml"), load_source("sxid.yaml")
    texts = {
        "codes_table.py": render_codes_table(codes), "xid_table.py": generate_log.render_xid_table(xids),
        "sxid_table.py": generate_log.render_sxid_table(sxids),
        "nvlink5_table.py": generate_log.render_nvlink5_table(load_source("nvlink5.yaml")),
        "kinds_table.py": generate_log.render_kinds_table(load_source("kinds.yaml"), codes["codes"])}
    files = {os.path.join(HERE, name): text for name, text in texts.items()}
    if os.path.isdir(DOCS):
        files[os.path.join(DOCS, "codes.md")] = render_docs(codes, xids, sxids)
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
