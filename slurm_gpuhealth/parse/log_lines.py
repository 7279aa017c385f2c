"""Kernel-log lines in whatever form somebody saved them: dmesg, journalctl, rsyslog, JSON, a BMC's event log.

Pure, and cold: hooks read raw records only (parse/kmsg.py). Forms as in public bug reports, looked up
2026-11-30.
"""
from __future__ import annotations

import json
import re
from collections import namedtuple

from slurm_gpuhealth.parse import kernel_kinds
from slurm_gpuhealth.parse.kmsg import raw_record

LogLine = namedtuple("LogLine", "text form facility seq monotonic time stamp",
                     defaults=("", "bare", None, None, None, None, ""))
LogLine.__doc__ = """text: the line without stamps. monotonic: seconds since boot or None. time: seconds since the
epoch, None unless the stamp has date and zone. stamp: the date as printed, "" for none."""

# Beyond parse.kmsg's: what only these forms have.
NEEDLES = (b"XID ", b'"MESSAGE":[', b'"MESSAGE" : [')

_PREFIXES = tuple((form, re.compile(pattern)) for form, pattern in (
    ("syslog", r"<\d{1,3}>"),
    ("dmesg", r"\[\s*(?P<monotonic>\d+\.\d+)(?: <\s*\d+\.\d+>)?\]\s*"),
    ("delta", r"\[\s*(?:<\s*)?\+?\d+\.\d+>?\]\s*"),
    ("caller", r"\[\s*[TC]\d+\]\s*"),
    ("dmesg-T", r"\[(?P<stamp>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[A-Z]{3,4} )?\d{4})\]\s*"),
    ("iso", r"(?P<stamp>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+"),
    ("journal", r"(?P<stamp>[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d+)?) "),
    ("decode", r"(?:kern|user|daemon|syslog)\s*:\w+\s*:\s*"),
    ("kernel", r"(?:[\w.-]{1,64} )?kernel: "),
    ("elided", r"\[\.\.\.\]\s*"),
    ("redfish", r"\[\d+\]\[\d+\]\s*"),
))


def parse_line(line):
    """(LogLine, parsed) of one line; parsed as of kernel_kinds.parse, or None when it is of no interest."""
    found = split(line)
    if found.form == "redfish" and found.text.startswith("XID "):
        # A BMC names the code only: no GPU, no process.
        words = found.text.split(" ", 2)
        if words[1][:6].isdigit() and words[1].isascii():
            message = words[2][:200] if len(words) > 2 else ""
            return found, ("xid", int(words[1][:6]), "", None, "", {"message": message} if message else {})
    return found, kernel_kinds.parse(found.text)


def split(line):
    """Take the stamps off a line."""
    record = raw_record(line)
    if record is not None:
        return LogLine(record.text, "raw", record.facility, record.seq, record.usec / 1e6)
    if line.startswith("{") and line.endswith("}"):
        found = _from_json(line)
        if found is not None:
            return found
    form, fields = "bare", {}
    for _ in range(6):      # rsyslog stamps a line that has a stamp; a tag may follow
        for name, pattern in _PREFIXES:
            match = pattern.match(line)
            if match is not None:
                form = name
                fields.update({key: value for key, value in match.groupdict().items() if value})
                line = line[match.end():]
                break
        else:
            break
    stamp = fields.get("stamp", "")
    monotonic = float(fields["monotonic"][:30]) if "monotonic" in fields else None
    return LogLine(line, form, None, None, monotonic, _time_of(stamp), stamp)


def clock(found):
    """A number that grows with the line's time, for burst folding only, or None."""
    for value in (found.time, found.monotonic):
        if value is not None:
            return value
    return _read_stamp(found.stamp)[0] if found.stamp else None


def _from_json(line):
    """journalctl -o json: MESSAGE is text, or a list of byte values when it holds control characters."""
    try:
        plain = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict):
        return None
    text = plain.get("MESSAGE")
    if isinstance(text, list):
        try:
            text = bytes(text).decode("utf-8", "backslashreplace")
        except (TypeError, ValueError):
            return None
    if not isinstance(text, str):
        return None
    return LogLine(text, "json", _number(plain.get("SYSLOG_FACILITY")), None,
                   _micro(plain.get("_SOURCE_MONOTONIC_TIMESTAMP")), _micro(plain.get("__REALTIME_TIMESTAMP")))


def _number(value):
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _micro(value):
    number = _number(value)
    return None if number is None else number / 1e6


def _time_of(stamp):
    seconds, zone = _read_stamp(stamp)
    # Without a zone it could be hours off: the printed stamp is given instead.
    return None if seconds is None or zone is None else seconds - zone


_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?(Z|[+-]\d\d:?\d\d)?$")
_WORDS = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.\d+)?"
                    r"(?: ([A-Z]{3,4}))?(?: (\d{4}))?$")


def _read_stamp(stamp):
    """(seconds as if the stamp were in UTC, offset of its zone in seconds), None for what it does not say."""
    found = _ISO.match(stamp)
    if found:
        year, month, day, hour, minute, second = (int(found[number]) for number in range(1, 7))
        zone = None
        if found[8] == "Z":
            zone = 0
        elif found[8]:
            digits = found[8][1:].replace(":", "")
            zone = (int(digits[:2]) * 60 + int(digits[2:])) * 60 * (-1 if found[8][0] == "-" else 1)
        return _seconds(year, month, day, hour, minute, second + float("0." + (found[7] or "0"))), zone
    found = _WORDS.match(stamp)
    if found and found[1] in _MONTHS:
        # A journal stamp has no year: a leap year will do, as only differences count then.
        seconds = _seconds(int(found[7] or 2024), _MONTHS.index(found[1]) + 1, *(int(found[n]) for n in (2, 3, 4, 5)))
        return seconds, 0 if found[7] and found[6] in ("UTC", "GMT") else None
    return None, None


def _seconds(year, month, day, hour, minute, second):
    """Seconds since the epoch of a date in UTC (days by the civil calendar, March as first month)."""
    shifted = year - (month <= 2)
    days = (shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400
            + (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 719468)
    return ((days * 24 + hour) * 60 + minute) * 60.0 + second
