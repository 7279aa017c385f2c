"""The tables of kernel-log events, made of xid.yaml, sxid.yaml, nvlink5.yaml and kinds.yaml (see generate.py)."""
from __future__ import annotations

import pprint

from slurm_gpuhealth.errors import DataError

LAYERS = ("hardware", "driver", "framework", "data", "scheduling", "external")
ACTIONS = ("drain", "note", "ignore")
DO = ("none", "restart-app", "reset", "reboot", "repair", "drain")
CAUSES = ("hardware", "driver", "program", "host memory", "bus", "heat", "GPU memory")
FAMILIES = ("pre-ampere", "ampere", "ada", "hopper", "blackwell", "grace-blackwell")
# What of an entry may differ from one family to another.
DIFFERS = {"severity": ("fatal", "warning", "note"), "do": DO}

XID_HEAD = '''\
"""Xid numbers. Generated from xid.yaml (%(as_of)s) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Xid = namedtuple(
    "Xid", "code title short layer action severity job_action user_caused companions by_value source do echo can_be"
    " gpus asks differs", defaults=("none", False, (), (), None, None))
Xid.__doc__ = """One Xid number; for the fields see the head of xid.yaml.

action: drain, note or ignore. severity: of the finding. user_caused: yes, sometimes or no.
companions: numbers of the same event. by_value: {value: action} or None. do: what is to be done at once.
echo: it only follows another one. gpus: families, () for all from Ampere on. asks: driver branch or None.
differs: {family: {"severity" or "do": other value}} or None."""

# What Xid 154 and NVML's recovery-action field ask for.
RECOVERY_ACTIONS = %(recovery)s

XIDS = {
'''

SXID_HEAD = '''\
"""SXid numbers. Generated from sxid.yaml (%s) by catalogue/generate.py: do not edit."""

# class: (what it is, action, severity where it does not drain, job action where it does, what to do)
CLASSES = {
'''

NVLINK5_HEAD = '''\
"""NVLink 5 errors. Generated from nvlink5.yaml (%s) by catalogue/generate.py: do not edit."""

# Driver branch from which on intrInfo is laid out the new way.
LAYOUT_CHANGED = %d

# (Xid, units, old mask, old value, new mask, new value, {errorStatus: (what to do, who looks)})
RULES = (
'''

KINDS_HEAD = '''\
"""Kinds of kernel-log events. Generated from kinds.yaml (%s) by catalogue/generate.py: do not edit."""

# kind: (title, severity, what to do, reason code or "", ((key of data, value, severity, what to do), ...))
KINDS = {
'''


def _must(condition, where, what):
    if not condition:
        raise DataError("catalogue: %s: %s" % (where, what))


def check_xid(number, entry, sources, codes=None):
    """Raise DataError when an entry of xid.yaml is not well formed."""
    where = "xid %s" % number
    keys = {"title", "short", "layer", "action", "by_value", "job", "severity", "do", "user", "echo", "can_be",
            "gpus", "asks", "differs", "like", "with", "src"}
    _must(not set(entry) - keys, where, "unknown key %s" % sorted(set(entry) - keys))
    _must(entry.get("layer") in LAYERS and entry.get("action") in ACTIONS, where, "layer or action")
    _must(entry.get("do") in DO, where, "do")
    _must(entry.get("user", "no") in ("yes", "sometimes", "no"), where, "user")
    _must(entry.get("user", "no") == "no" or entry["action"] != "drain", where, "user-caused must not drain")
    _must(entry["action"] == "drain" or "job" not in entry, where, "only a drain acts on jobs")
    _must(len(entry.get("short", "")) <= 20, where, "short has more than 20 characters")
    _must(codes is None or entry.get("like", "GH-XID") in codes, where, "like: no such code")
    _must(entry.get("src") and not set(entry["src"]) - set(sources), where, "src")
    _must(not set(entry.get("can_be", ())) - set(CAUSES), where, "can_be")
    _must(not (set(entry.get("gpus", ())) | set(entry.get("differs", ()))) - set(FAMILIES), where, "family")
    for other in entry.get("differs", {}).values():
        _must(all(key in DIFFERS and value in DIFFERS[key] for key, value in other.items()), where, "differs")


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
                     tuple(entry.get("with", ())), entry.get("by_value"), tuple(entry["src"]), entry["do"],
                     entry.get("echo", False), tuple(entry.get("can_be", ())), tuple(entry.get("gpus", ())),
                     entry.get("asks"), entry.get("differs")))
    return rows


def literal(values):
    """Python source of one row, wrapped to the repository's line length."""
    lines, line = [], "        "
    for value in values:
        piece = repr(value) + ", "
        if len(line) + len(piece) > 108 and line.strip():
            lines.append(line.rstrip())
            line = "        "
        if len(piece) > 108 and not isinstance(value, str):
            folded = pprint.pformat(value, width=106, compact=True, sort_dicts=False).split("\n")
            lines += ["        " + part for part in folded[:-1]]
            piece = folded[-1] + ", "
        line += piece
    lines.append(line.rstrip().rstrip(","))
    return "\n".join(lines)


def render_xid_table(source):
    """Text of xid_table.py."""
    rows = ["    %d: Xid(\n%s),\n" % (row[0], literal(row)) for row in xid_rows(source)]
    actions = sorted(source["recovery_actions"].items())
    recovery = "{\n%s}" % "".join("    %d: %r,\n" % item for item in actions)
    return XID_HEAD % {"as_of": source["as_of"], "recovery": recovery} + "".join(rows) + "}\n"


def sxid_rows(source):
    """(number, class, title) of each SXid, by number. DataError where a class is not well formed or a number is there
    twice."""
    for name, entry in source["classes"].items():
        where = "sxid class %s" % name
        _must(entry.get("action") in ("drain", "note", "word") and entry.get("do") in DO, where, "action or do")
        _must(entry["action"] == "drain" or entry.get("severity") in ("warning", "note"), where, "severity")
        _must(name in source["sxids"], where, "no number has it")
    rows: dict = {}
    for name, numbers in source["sxids"].items():
        _must(name in source["classes"], "sxids", "no class %s" % name)
        for number, title in numbers.items():
            _must(number not in rows, "sxid %s" % number, "is there twice")
            rows[number] = (number, name, title)
    return [row for _, row in sorted(rows.items())]


def render_sxid_table(source):
    """Text of sxid_table.py."""
    out = [SXID_HEAD % source["as_of"]]
    for name, entry in source["classes"].items():
        out.append("    %r: (\n%s),\n" % (name, literal((
            entry["what"], entry["action"], entry.get("severity", "warning"), entry.get("job", "let-finish"),
            entry["do"]))))
    out.append("}\n\n# number: (class, title)\nSXIDS = {\n")
    out += ["    %d: (%r, %r),\n" % row for row in sxid_rows(source)]
    return "".join(out) + "}\n"


def render_nvlink5_table(source):
    """Text of nvlink5_table.py."""
    out = [NVLINK5_HEAD % (source["as_of"], source["layout_changed"])]
    for rule in source["rules"]:
        for what, *_ in rule["status"].values():
            _must(what in ("none", "reset", "ask-154"), "nvlink5 %s" % rule["unit"], what)
        status = {number: (what[0], what[1] if len(what) > 1 else "") for number, what in rule["status"].items()}
        out.append("    (\n%s),\n" % literal((rule["xid"], tuple(rule["unit"].split("/")), *rule["before"],
                                              *rule["since"], status)))
    return "".join(out) + ")\n"


def kind_rows(source, codes=None):
    """Tuples of KINDS, with the kind first."""
    rows = []
    for kind, entry in source["kinds"].items():
        _must(entry["severity"] in ("fatal", "warning", "note") and entry["do"] in DO, kind, "severity or do")
        _must(codes is None or not entry.get("code") or entry["code"] in codes, kind, "no such code")
        when = tuple((key, value, other["severity"], other["do"]) for key, value, other in entry.get("when", ()))
        rows.append((kind, entry["title"], entry["severity"], entry["do"], entry.get("code", ""), when))
    return rows


def render_kinds_table(source, codes=None):
    """Text of kinds_table.py."""
    rows = ["    %r: (\n%s),\n" % (row[0], literal(row[1:])) for row in kind_rows(source, codes)]
    return KINDS_HEAD % source["as_of"] + "".join(rows) + "}\n"


def xid_docs(xids):
    """Lines of docs/codes.md about Xid numbers."""
    out = ["", "## Xid numbers", "",
           "As of %s. *user*: a user's own program can cause it, so it drains nothing by itself. *at once*: what is to "
           "be done. The action can be changed per number (`xid:` in the configuration)." % xids["as_of"], "",
           "| Xid | what | layer | action | job | at once | user | GPUs | with | sources |",
           "|---|---|---|---|---|---|---|---|---|---|"]
    for row in xid_rows(xids):
        by_line = row[9] or row[0] in range(144, 151)
        out.append("| %d | %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            row[0], row[1], row[3], "by value" if row[9] else row[4], row[6], "by the line" if by_line else row[11],
            row[7], ", ".join(row[14]), ", ".join(map(str, row[8])), ", ".join(row[10])))
    out += ["", "Xid 154 says what the driver wants: " + ", ".join(
        "%d %s" % item for item in sorted(xids["recovery_actions"].items())) + ".", "",
        "144 to 150 (NVLink 5): a line that says Fatal drains, unless the registers on it are known to need nothing; a "
        "Nonfatal one is recorded, and what Xid 154 says beside it is done.", "", "Sources:", ""]
    return out + ["- %s: %s" % item for item in xids["sources"].items()]


def sxid_docs(sxids):
    """Lines of docs/codes.md about SXid numbers."""
    out = ["", "## SXid numbers", "",
           "Of NVSwitches, as of %s. *word*: drains where the line itself says Fatal. All are reported as `GH-SXID`; "
           "the number stands in the reason." % sxids["as_of"], "", "| class | what | action | job | at once |",
           "|---|---|---|---|---|"]
    for name, entry in sxids["classes"].items():
        out.append("| %s | %s | %s | %s | %s |" % (name, entry["what"], entry["action"], entry.get("job", "let-finish")
                                                   if entry["action"] != "note" else "none", entry["do"]))
    out += ["", "| SXid | class | what |", "|---|---|---|"]
    out += ["| %d | %s | %s |" % row for row in sxid_rows(sxids)]
    return out
