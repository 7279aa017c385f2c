"""Logs in which an entry takes several lines: journalctl -o verbose, export and json-pretty, dmesg --json.

Pure. Source: systemd, "Journal Export Formats" and journalctl(1); util-linux, dmesg(1); looked up 2026-11-30.
"""
from __future__ import annotations

import json
import re

from slurm_gpuhealth.parse import log_lines

_VERBOSE = re.compile(rb"\S[^\n]{0,120}\[s=[0-9a-f]{1,40};")
_FIELD = re.compile(r" *([A-Z_][A-Z0-9_]{0,63})=(.*)", re.ASCII | re.DOTALL)
_LIMIT = 1 << 20        # bytes of one entry


def form_of(beginning):
    """"verbose", "export" or "pretty" for a log that begins with `beginning` (bytes) in such a form, else ""."""
    text = beginning.lstrip(b"\r\n")
    if text.startswith((b"__CURSOR=", b"__REALTIME_TIMESTAMP=", b"_BOOT_ID=")):
        return "export"
    if text.startswith(b"-- "):     # "-- Logs begin at ...", "-- Boot ..."
        text = text.partition(b"\n")[2]
    if _VERBOSE.match(text):
        return "verbose"
    first, _, rest = text.partition(b"\n")
    begins = first.strip() in (b"{", b"[") or first[:1] == b"{" and first.rstrip().endswith((b"[", b"{"))
    if begins or first.strip() == b"" and rest[:1] == b"{":
        return "pretty"
    return ""


def entries(lines, form):
    """The LogLine of each entry that has text. lines: an iterable of lines of bytes, each with its end."""
    reader = {"verbose": _verbose, "export": _export, "pretty": _pretty}[form]
    for fields in reader(lines):
        found = log_lines.of_fields(fields)
        if found is not None:
            yield found


def _verbose(lines):
    """A header line, then lines of "    FIELD=value"; what is indented further continues a value."""
    fields: dict = {}
    name = ""
    for raw in lines:
        line = raw.decode("utf-8", "backslashreplace").rstrip("\r\n")
        if not line.startswith(" "):
            yield fields
            fields, name = {}, ""
            continue
        found = _FIELD.match(line) if line[:5].strip() else None
        if found is not None:
            name = found[1]
            fields[name] = found[2]
        elif name and len(fields[name]) < _LIMIT:
            fields[name] += "\n" + line.strip()
    yield fields


def _export(lines):
    """Lines of FIELD=value; a value with control characters follows its name as eight bytes of length and itself."""
    fields: dict = {}
    lines = iter(lines)
    for raw in lines:
        line = raw.rstrip(b"\n")
        if not line:
            yield fields
            fields = {}
            continue
        name, mark, value = line.partition(b"=")
        if not mark:
            value = _sized(lines)
        fields[name.decode("ascii", "replace")] = value.decode("utf-8", "backslashreplace")
    yield fields


def _sized(lines):
    data = b""
    wanted = 9
    while len(data) < wanted:
        more = next(lines, b"")
        if not more or len(data) > _LIMIT:
            break
        data += more
        if len(data) >= 9 and wanted == 9:
            wanted = 8 + min(int.from_bytes(data[:8], "little"), _LIMIT) + 1
    return data[8:wanted - 1]


def _pretty(lines):
    """Objects over several lines, also those within the list of dmesg --json."""
    gathered: list = []
    size = 0
    for raw in lines:
        line = raw.decode("utf-8", "backslashreplace").strip()
        if line.endswith(("[", ": {")) and not line.startswith('"MESSAGE"') or line in ("[", "]", "],"):
            gathered, size = [], 0      # the frame around the entries
            continue
        if line.lstrip("},").startswith("{") or line == "{":
            yield from _object(gathered)
            gathered, size = [], 0
            line = line[line.index("{"):]
        if size < _LIMIT:
            gathered.append("}" if line.startswith("}") else line)     # behind it the frame may end too
            size += len(line)
        if line.startswith("}"):
            yield from _object(gathered)
            gathered, size = [], 0


def _object(lines):
    text = " ".join(lines).strip().rstrip(",")
    if not text.startswith("{"):
        return
    if not text.endswith("}"):
        text = text.rstrip("}, ") + "}"
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(plain, dict):
        yield plain
