"""The grammar of drain reasons: writing ours and knowing them again.

    CODE SUBJECT[+N] DETAIL [ev=ID]        GH-XID79 gpu3+1 fell off bus [ev=3f2a91c04b]
    CODE[+N] DETAIL [ev=ID]                GH-GPU-COUNT 7/8 [ev=...]

At most 200 printable ASCII characters; code and subject stand in the first 20, which is all that `sinfo -R`
shows. +N: that many more findings as severe as this one. Slurm may append " : text" to a reason later, so
ours are recognised by their beginning. What a finding quotes (mount paths, names) is hostile: it is reduced
to harmless characters.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.catalogue import known, lookup, xid_number
from slurm_gpuhealth.model import NAMED, REQUEUE_NOW, SEVERITIES
from slurm_gpuhealth.parse.lazy import Lazy

MAX_LENGTH = 200
# Width of the REASON column of `sinfo -R`.
SHOWN = 20

_CODE = Lazy(r"(GH(?:-[A-Z][A-Z0-9]*)+)(\+[0-9]+)?(?=\s|\Z)", re.ASCII)
_EVIDENCE = Lazy(r"\[ev=([0-9a-f]{1,40})\]", re.ASCII)
# Of a code that is about a named part the first word is its name.
_PART = Lazy(r"(\S+?)(\+[0-9]+)?(?=\s|\Z)", re.ASCII)
_SUBJECT = Lazy(r"(gpu[0-9]+|[/~]\S*?)(\+[0-9]+)?(?=\s|\Z)", re.ASCII)
# Quotes, backslash, "|" and "`" upset tools that print or split reasons; brackets belong to [ev=...].
_FORBIDDEN = Lazy(r"[^\x20-\x7e]|[\"'`|\\]")


def write(findings, ev=""):
    """The drain reason for `findings` (a sequence, not empty), worst first.

    ev: id of the evidence, hexadecimal; "" leaves the [ev=...] part out.
    """
    ordered = worst_first(findings)
    lead = ordered[0]
    others = len({(item.code, subject_text(item.subject)) for item in ordered
                  if item.severity == lead.severity}) - 1
    more = "+%d" % others if others else ""
    subject = subject_text(lead.subject, SHOWN - len(lead.code) - 1 - len(more))
    head = lead.code + (" " + subject if subject else "") + more
    tail = " [ev=%s]" % ev if ev else ""
    detail = detail_text(lead)
    if subject.startswith("~"):
        whole = lead.subject.name or lead.subject.bdf or lead.subject.uuid
        detail = "%s %s" % (_clean(whole).replace(" ", "_"), detail)
    room = MAX_LENGTH - len(head) - len(tail) - 1
    if len(detail) > room:
        detail = detail[:max(room - 1, 0)].rstrip() + "~"
    return head + (" " + detail if detail else "") + tail


def worst_first(findings):
    """The findings in the order in which they lead a reason.

    By severity, then what stops a job at once, then the order of the catalogue, time and subject.
    """
    return sorted(findings, key=_rank)


def _rank(finding):
    entry = lookup(finding.code)
    index = finding.subject.index
    return (
        -SEVERITIES.index(finding.severity),
        entry.job_action != REQUEUE_NOW,
        entry.rank,
        # 154 only repeats what another number of the same burst made necessary.
        xid_number(finding.code) == 154,
        finding.since if finding.since is not None else float("inf"),
        index if index is not None else -1,
        finding.subject.name,
        finding.code,
    )


def subject_text(subject, room=MAX_LENGTH):
    """How a subject is written in a reason: gpu3, a path, the name of a part, or "" for the node and for all GPUs.

    A GPU of which nobody knows the index has its PCI address for a name, as short as it takes to be one: "~dc:00.0",
    "~dc:00" or "~dc" in the domain 0000, "~8:01:00.0" in another. Of a path longer than `room` characters the tail is
    kept, behind "~".
    """
    if subject.kind == "gpu":
        if subject.index is not None:
            return "gpu%d" % subject.index
        return "~" + _address(_clean(subject.bdf or subject.uuid).replace(" ", "_"), room - 1)
    if subject.kind not in NAMED:
        return ""
    path = _clean(subject.name).replace(" ", "_")
    if len(path) <= room:
        return path
    return "~" + path[-max(room - 1, 1):]


def _address(text, room):
    """The longest form of a PCI address (or the tail of another name) that fits into `room` characters."""
    domain, _, rest = text.partition(":")
    bus, _, place = rest.partition(":")
    if not place or not bus or domain.strip("0123456789abcdef"):
        return text[-min(10, max(room, 1)):]
    before = domain.lstrip("0") + ":" if domain.strip("0") else ""
    forms = [before + rest, before + rest.partition(".")[0], before + bus]
    return next((form for form in forms if len(form) <= room), forms[-1][-max(room, 1):])


def detail_text(finding):
    """What was seen, in the words of the catalogue: "x8<x16", "7/8", "fell off bus"."""
    entry = lookup(finding.code)
    seen, expected = _clean(finding.seen), _clean(finding.expected)
    if not seen:
        return _clean(entry.short)
    if entry.detail and expected:
        return seen + entry.detail + expected
    return seen


def _clean(text):
    """`text` reduced to one line of printable ASCII without quotes and brackets."""
    text = _FORBIDDEN.sub("?", str(text)).replace("[", "(").replace("]", ")")
    return " ".join(text.split())


def is_ours(reason):
    """True when this program (any version) wrote the reason, or it begins with a reason that it wrote.

    The form alone is not enough, as an admin may write "GH-RACK 7 moved": the code must be in our catalogue,
    or our evidence mark must follow.
    """
    match = _CODE.match(reason or "")
    return bool(match and (known(match.group(1)) or _EVIDENCE.search(reason)))


def parse(reason):
    """(code, subject text, detail, evidence id) of a reason, "" for a missing part; None if not ours."""
    code = _CODE.match(reason or "")
    if code is None or not is_ours(reason):
        return None
    rest = reason[code.end():].lstrip()
    mark = _EVIDENCE.search(rest)
    if mark:
        rest = rest[:mark.start()]
    else:
        rest = rest.partition(" : ")[0]
    subject = (_PART if lookup(code.group(1)).subject == "part" else _SUBJECT).match(rest)
    name = subject.group(1) if subject else ""
    detail = rest[subject.end():] if subject else rest
    return code.group(1), name, detail.strip(), mark.group(1) if mark else ""
