"""Kernel-log lines in whatever form somebody saved them: dmesg, journalctl, rsyslog, JSON, a BMC's event log.

Pure, and not for /dev/kmsg, whose records parse/kmsg.py reads. Forms as in public bug reports and in the manual pages
of dmesg(1), journalctl(1), rsyslog.conf(5), RFC 3164 and RFC 5424; looked up 2026-11-30.
"""
from __future__ import annotations

import json
import re
from collections import namedtuple

from slurm_gpuhealth.parse import kernel_kinds
from slurm_gpuhealth.parse.kmsg import raw_record

LogLine = namedtuple("LogLine", "text form facility seq monotonic time stamp tagged",
                     defaults=("", "bare", None, None, None, None, "", False))
LogLine.__doc__ = """text: the line without stamps. form: of the last stamp. facility: of syslog where it is known,
1 for text of a program. monotonic: seconds since boot or None. time: seconds since the epoch, None unless the stamp has
date and zone. stamp: the date as printed, "" for none. tagged: the line said that the kernel wrote it."""

_FACILITIES = ("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp")
_FACILITY = "(?:%s|local[0-7])" % "|".join(_FACILITIES)
_ANY_STAMP = (r"(?=\[ *\d{1,12}\.\d|\[[A-Z][a-z]{2} |<\d|"
              r"[A-Z][a-z]{2} [ \d]\d \d\d:|\d{4}-\d\d-\d\d|\d{1,4},\d{1,20},\d{1,20},|kernel: )")

# How lines begin, each with what follows it. In this order; a line may have several.
_STAMPS = (
    ("dmesg", r"\[ *\d{1,12}\.\d{1,9}(?: < *\d{1,12}\.\d{1,9}>)? ?\] *"),
    ("caller", r"\[ *[TC]\d{1,10}\] *"),
    ("delta", r"\[ *(?:< *)?\+? *\d{1,12}\.\d{1,9}>?\] *"),
    ("ctime", r"\[\w{2,5}\.? \w{3,6}\.? [ \d]?\d \d\d:\d\d:\d\d (?:[A-Z]{2,5} )?\d{4}(?: < *\d{1,12}\.\d{1,9}>)?\] *"),
    ("ctime2", r"\[\w{2,5}\.? \d{1,2}\.? \w{3,6}\.? \d\d:\d\d:\d\d \d{4}\] *"),
    ("slashes", r"(?:\d{4}/\d\d/\d\d|\d\d/\d\d/\d{2,4}) \d\d:\d\d:\d\d(?:[.,]\d{1,9})? "),
    ("reltime", r"\[[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d\] *"),
    ("iso", r"\[?(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
            r"(?:Z| ?[+-]\d\d:?\d\d| [A-Z]{3,4})?(?:\] *| +|: )"),
    ("journal", r"[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?(?: \d{4})? "),
    ("prio", r"<\d{1,3}>(?:1 )?"),
    ("unix", r"\d{10}\.\d{1,6} "),
    ("elided", r"\[\.\.\.\] *"),
    ("blank", r"[ \t\x1e]+"),
)
# These begin with a word, so they are looked for only where they can be.
_TAGS = (
    ("kernel", r"(?:[\w.:-]{1,64} )?kernel(?:\[\d{1,9}\])?: "),
    ("rfc5424", r"[\w.:-]{1,64} kernel \S{1,20} \S{1,32} (?:-|\[[^\]]{0,300}\]) (?:\ufeff)?"),
    ("decode", _FACILITY + r" *: ?\w{2,7} *: ?"),
    ("facility", r"(?:[\w.-]{1,64} )?" + _FACILITY + r"\.[a-z]{2,7}:? "),
    ("cri", r"(?:stdout|stderr) [FP] "),
    ("repeated", r"message repeated \d{1,9} times: \[ ?"),
)
# Names of files and nodes that grep, pdsh and the like put in front.
_NAMES = r"[\w./+-]{1,200}:(?:\d{1,9}:)? ?" + _ANY_STAMP
_PREFIX = re.compile("|".join("(?P<%s>%s)" % stamp for stamp in _STAMPS), re.ASCII)
_TAG = re.compile("|".join("(?P<%s>%s)" % stamp for stamp in _TAGS), re.ASCII)
_FRONT = re.compile(_NAMES, re.ASCII)
# The same for the quick look, in bytes.
_QUICK = re.compile((r"(?:%s)?(?:\d{1,4},\d{1,20},\d{1,20},[^;\n]{0,150};|(?:%s){0,8})" % (
    _NAMES, "|".join(pattern for _, pattern in _STAMPS + _TAGS))).replace(
    r"(?:\ufeff)?", r"(?:\xef\xbb\xbf)?").encode("latin-1"))
_JSON_TEXT = re.compile(rb'"(?:MESSAGE|message|msg|log)" ?: ?(?:"(?:' + _QUICK.pattern + rb')|(?=\[))')
_TAGGED = ("mess", "kern", "user", "daem", "sysl", "stdo", "stde", "mail", "auth", "loca", "cron")
_STREAMS = (b"stdout", b"stderr")
_PLAIN = frozenset(bytes([code]) for code in b"[0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_TAGGED_BYTES = frozenset(word.encode() for word in _TAGGED)
_SIMPLE = re.compile(r"(?:([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) [\w.-]{1,64} kernel: (?:\[ *(\d{1,12}\.\d{1,9})\] )?|"
                     r"\[ *(\d{1,12}\.\d{1,9})\] )", re.ASCII)
_COLOUR = re.compile("\x1b\\[[0-9;]{0,12}m")
_PROGRAM = re.compile(r"(?:[\w.-]{1,64} )?[\w./@-]{1,64}(?:\[\d{1,9}\])?: ", re.ASCII)
_BMC = re.compile(r"(?:(?:.{0,200}\b)?(?P<gpu>GPU[\w-]{1,20})\b.{0,200})?\[(?P<stamp>[^\[\]]{8,40})\]\[\d{1,9}\]"
                  r"\[[0-9A-Fa-f]{1,8}\] XID:? ?(?P<code>\d{1,6})\b[ ,:]*(?P<message>[^\"\n]{0,200})")

# What a program may have written, and a BMC.
_FILTER = kernel_kinds.Filter((b"NVRM: Xid (", b"fallen off the bus", b"SXid", b"XID "))
_KEYS = _FILTER.keys | {b"mess"}


def interesting(block):
    """The lines of `block` (bytes, whole lines, any form) that may hold an event, in order.

    One look at where the text of each line must begin; what stands elsewhere is looked for in the block as a whole
    first, as a Python step for each line and each thing to look for would cost ten times as much.
    """
    marked, worth = _FILTER.marked(block), _FILTER.worth
    for line in _likely(block, marked):
        first = line[:1]
        if line[:4] in _KEYS:
            key = line[:4]
        elif first in _PLAIN:
            key = line.partition(b"] ")[2][:4]
            if key[:1] == b"[" and key not in _KEYS:
                key = line.partition(b"] ")[2].partition(b"] ")[2][:4]
            if key not in _KEYS:
                key = line.partition(b"kernel: ")[2][:4]
                if key not in _KEYS:
                    key = b"?" if first != b"[" and _begins(line, first) else b""
        else:
            key = b"?" if line and _quick(line) else b""
        if key and worth(key, line) or line in marked:
            yield line


def _likely(block, marked):
    """The lines of a block but for most of those that say nothing, in the forms that most logs have: one expression a
    line, so that a million of them take a second."""
    keys, narrow, worth, lines = _KEYS, _FILTER.narrow, _FILTER.worth, block.split(b"\n")
    if b"kernel: " in block:
        return [line for line in lines
                if not (text := line.partition(b"kernel: ")[2])
                or (key := text[:4] if text[:1] != b"[" or text[:4] in keys else text.partition(b"] ")[2][:4]) in keys
                and (key not in narrow or worth(key, line)) or key[:1] == b"[" or line in marked]
    if (block[:1] == b"[" or b"\n[" in block[:400]) and b"\n[Har" not in block and block[:4] != b"[Har":
        return [line for line in lines
                if line[:1] != b"[" or (key := line.partition(b"] ")[2][:4]) in keys
                and (key not in narrow or worth(key, line)) or key[:1] == b"[" or line in marked]
    return lines


def _begins(line, first):
    """Whether the text may begin as one of interest, for lines that begin with a letter or a digit."""
    if first.isdigit():
        if b"," in line[:5]:        # a raw record
            return line.partition(b";")[2][:4] in _KEYS
        words = line.split(b" ", 3)
        if len(words) < 2:
            return False
        if words[1] in _STREAMS:
            return _quick(line)
        at = len(words[0]) + 1          # behind the stamp, or behind a date and a time
        return any(line[start:start + 4] in _KEYS and line[start:start + 8] != b"kernel: "
                   for start in (at, at + len(words[1]) + 1))
    return line[:4] in _TAGGED_BYTES and _quick(line)


def _quick(line):
    """Whether the text behind all stamps of a line begins as one of interest."""
    found = _QUICK.match(line)
    at = found.end() if found is not None else 0
    text = line[at:at + 4]
    return text in _KEYS or text[:1] in (b"{", b"\x1b") and _json_key(line, text) or text == b"data"


def _json_key(line, text):
    if text[:1] == b"\x1b":
        return True
    found = _JSON_TEXT.search(line[:65536])
    if found is None:
        return False
    text = line[found.end():found.end() + 4]
    return text[:1] in b"[{" or text in _KEYS


def parse_line(line):
    """(LogLine, parsed) of one line; parsed as of kernel_kinds.parse, or None when it is of no interest.

    For people who look at a log: a line of the driver about a GPU that stands behind something that is no known stamp
    is given too, with form "unknown" and data["stamp_unread"]. The hooks' reader uses split and kernel_kinds.parse.
    """
    if "XID" in line[:1000]:
        found, parsed = _from_bmc(line[:1000])
        if parsed is not None:
            return found, parsed
    found = split(line)
    parsed = read(found)[1]
    if parsed is None and ("Xid (" in found.text or "SXid" in found.text or "fallen off the bus" in found.text):
        return _behind_unknown(found)
    return found, parsed


# Lines about GPUs, wherever they stand; some tools print the module's name instead of NVRM.
_ANYWHERE = re.compile(r"(?:NVRM: {1,3}|nvidia: )(?=Xid \((?:PCI:)?[0-9a-fA-F]{1,8}:|"
                       r"GPU [^\n]{0,60}fallen off the bus)|"
                       r"(?=nvidia-nvswitch\d{1,4}: SXid)", re.ASCII)
# What may stand before them and is no text of a program: stamps of all kinds, marks of quoting, a console's login.
_NO_TEXT = re.compile(r"(?:(?:[^'\"=/\[\]]|\d/\d|\[[^'\"=/\[\]]{0,40}\]){0,120}\bkernel(?:\[\d{1,9}\])?: ?)?"
                      r"(?:[>#|*\s]|\(XEN\)|\[[\d.,:;+ TCZ-]{1,40}\]|[\d.,:/+TZ-]{4,40} |[\w.-]{1,64} login: |"
                      r"MESSAGE=)*|(?=[^'/]{0,200}=kernel\b)(?:[\w.@-]{1,40}=(?:[^\s'\"]{0,80}|\"[^'\"]{0,80}\") )*"
                      r"(?:msg|message|MESSAGE)=\"?", re.ASCII)


def _behind_unknown(found):
    """(LogLine, parsed) of the driver's text within `found`; injected where it stands behind a program's text."""
    text = found.text[:kernel_kinds.TEXT_LIMIT]
    start = _ANYWHERE.search(text)
    if start is None:
        return found, None
    about = ("" if start[0] == "" else "NVRM: ") + text[start.end():]
    before = text[:start.start()]
    if before.endswith(('="', "=\\\"")):
        about = about.rstrip().rstrip('"\\}')
    parsed = kernel_kinds.parse(about)
    if parsed is None:
        return found, None
    parsed[5]["stamp_unread"] = True
    trusted = _NO_TEXT.fullmatch(before) is not None and not (found.stamp and not found.tagged and before.strip())
    if not trusted and (found.tagged or found.monotonic is not None):
        return found, None      # nothing is unknown: the kernel's own text, in which a user's words stand
    if found.facility or not trusted:
        parsed[5]["injected"] = True
        found = found._replace(facility=found.facility or 1)
    return found._replace(text=about, form="unknown"), parsed


def read(found):
    """(LogLine, parsed) of a line without stamps. Text of a program comes with data["injected"]."""
    parsed = kernel_kinds.parse(found.text)
    if parsed is None and not found.tagged and ("NVRM: " in found.text[:200] or "SXid" in found.text[:200]):
        # "HOST PROGRAM[PID]: TEXT": what a program wrote is shown, and said to be no line of the kernel.
        program = _PROGRAM.match(found.text)
        if program is not None:
            parsed = kernel_kinds.parse(found.text[program.end():])
            found = found._replace(facility=found.facility or 1)
    if parsed is not None and found.facility:
        parsed[5]["injected"] = True
    return found, parsed


def split(line):
    """Take the stamps off a line."""
    simple = _SIMPLE.match(line)
    if simple is not None and line[simple.end():simple.end() + 4] in kernel_kinds.KEYS:
        # What nearly all lines look like: no need to try everything.
        seconds = simple[2] or simple[3]
        return LogLine(line[simple.end():], "dmesg" if seconds else "kernel", None, None,
                       float(seconds) if seconds else None, None, simple[1] or "", bool(simple[1]))
    record = raw_record(line)
    if record is not None:
        return LogLine(record.text, "raw", record.facility, record.seq, record.usec / 1e6, None, "", True)
    if line[:1] == "\x1b":
        line = _COLOUR.sub("", line[:kernel_kinds.TEXT_LIMIT])     # dmesg --color=always
    front = _FRONT.match(line)
    if front is not None:
        line = line[front.end():]
        record = raw_record(line)
        if record is not None:
            return LogLine(record.text, "raw", record.facility, record.seq, record.usec / 1e6, None, "", True)
    form, stamp, monotonic, facility, tagged = "bare", "", None, None, False
    for _ in range(8):      # rsyslog stamps a line that has a stamp; a tag may follow
        found = _PREFIX.match(line)
        if found is None and ("kernel" in line[:160] or line[:4] in _TAGGED or " kern." in line[:80]):
            found = _TAG.match(line)
        if found is None:
            break
        name, printed = found.lastgroup or "", found[0]
        line = line[found.end():]
        if name != "blank":
            form = name
        if name == "dmesg":
            monotonic = float(printed[1:-1].strip(" ]").partition(" ")[0])
        elif name in ("ctime", "ctime2", "slashes", "iso", "journal", "unix"):
            stamp = printed.strip("[]: ").partition(" <")[0]
        elif name in ("kernel", "rfc5424"):
            tagged = True
        elif name == "cri":
            facility = 1
        elif name == "repeated" and line.endswith("]"):
            line = line[:-1]
        elif name == "prio":
            facility = int(printed[1:printed.index(">")]) >> 3
        elif name in ("decode", "facility"):
            facility = _facility(printed)
    if line[:1] in "{d" and '"' in line[:8]:
        inner = _from_json(line)
        if inner is not None:
            return inner
    return LogLine(line, form, facility, None, monotonic, _time_of(stamp) if stamp else None, stamp, tagged)


def _facility(printed):
    for word in re.split(r"[ :.]+", printed):
        if word in _FACILITIES:
            return _FACILITIES.index(word)
        if word.startswith("local"):
            return 16
    return None


def _from_bmc(line):
    """A BMC names the code and maybe the GPU's place in the box: "[time][sequence][flags] XID 95 text"."""
    found = _BMC.search(line)
    if found is None:
        return None, None
    data = {}
    if found["message"].strip():
        data["message"] = found["message"].strip()
    if found["gpu"]:
        data["gpu_name"] = found["gpu"]
    stamp = found["stamp"]
    about = LogLine(line, "redfish", None, None, None, _time_of(stamp), stamp, True)
    return about, ("xid", int(found["code"]), "", None, "", data)


def clock(found):
    """A number that grows with the line's time, for burst folding only, or None."""
    if found.time is not None:
        return found.time
    # The printed date first: of two lines with the same date only one may also have seconds since boot.
    printed = _read_stamp(found.stamp)[0] if found.stamp else None
    return found.monotonic if printed is None else printed


def _from_json(line):
    """One JSON object: journalctl -o json, a container's log, a collector's."""
    try:
        plain = json.loads(line[line.index("{"):])
    except (ValueError, RecursionError):
        return None
    return of_fields(plain)


def of_fields(plain):
    """The LogLine of an entry's fields (journald's names, or those of common collectors), None when it has no text.

    MESSAGE is text, or a list of byte values when it holds control characters.
    """
    if not isinstance(plain, dict):
        return None
    text = next((plain[name] for name in ("MESSAGE", "message", "msg", "log") if name in plain), None)
    if isinstance(text, list):
        if text and isinstance(text[0], str):
            text = text[0]      # the field more than once
        else:
            try:
                text = bytes(text[:1 << 16]).decode("utf-8", "backslashreplace")
            except (TypeError, ValueError):
                return None
    if not isinstance(text, str):
        return None
    facility = _number(plain.get("SYSLOG_FACILITY"))
    if plain.get("fac") in _FACILITIES:
        facility = _FACILITIES.index(plain["fac"])
    if plain.get("_TRANSPORT", "kernel") != "kernel" or plain.get("SYSLOG_IDENTIFIER", "kernel") != "kernel" \
            or "stream" in plain:
        facility = facility or 1        # a program's text, through syslog, standard output or the journal
    found = LogLine(text.rstrip("\r\n"), "json", facility, None, _micro(plain.get("_SOURCE_MONOTONIC_TIMESTAMP")),
                    _micro(plain.get("_SOURCE_REALTIME_TIMESTAMP", plain.get("__REALTIME_TIMESTAMP"))), "", True)
    if "MESSAGE" not in plain:
        inner = split(found.text) if "{" not in found.text[:80] else found      # no JSON within JSON within JSON
        when = plain.get("time")
        if isinstance(when, float) and inner.monotonic is None:
            inner = inner._replace(monotonic=when)
        found = inner._replace(form="json", facility=inner.facility or facility, time=inner.time or found.time)
    return found


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
_ISO = re.compile(r"(?:[A-Z][a-z]{2} )?(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
                  r"(?: ?(Z|UTC|GMT|[+-]\d\d:?\d\d))?(?: [A-Z]{3,4})?$", re.ASCII)
_WORDS = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (?:(\d{4}) )?(\d\d):(\d\d):(\d\d)(?:\.\d+)?"
                    r"(?: ([A-Z]{3,4}))?(?: (\d{4}))?$", re.ASCII)
_UNIX = re.compile(r"\d{10}\.\d{1,6}$", re.ASCII)


_stamps: dict = {}      # the stamps just read: lines come in bundles


def _read_stamp(stamp):
    """As _parse_stamp, remembered."""
    found = _stamps.get(stamp)
    if found is None:
        if len(_stamps) > 1000:
            _stamps.clear()
        found = _stamps[stamp] = _parse_stamp(stamp)
    return found


def _parse_stamp(stamp):
    """(seconds as if the stamp were in UTC, offset of its zone in seconds), None for what it does not say."""
    found = _ISO.match(stamp)
    if found:
        year, month, day, hour, minute, second = (int(found[number]) for number in range(1, 7))
        zone = None
        if found[8] in ("Z", "UTC", "GMT"):
            zone = 0
        elif found[8]:
            digits = found[8][1:].replace(":", "")
            zone = (int(digits[:2]) * 60 + int(digits[2:])) * 60 * (-1 if found[8][0] == "-" else 1)
        return _seconds(year, month, day, hour, minute, second + float("0." + (found[7] or "0"))), zone
    found = _WORDS.match(stamp)
    if found and found[1] in _MONTHS:
        # A journal stamp has no year: a leap year will do, as only differences count then.
        named = found[8] or found[3]
        seconds = _seconds(int(named or 2024), _MONTHS.index(found[1]) + 1, *(int(found[n]) for n in (2, 4, 5, 6)))
        return seconds, 0 if named and found[7] in ("UTC", "GMT") else None
    if _UNIX.match(stamp):
        return float(stamp), 0
    return None, None


def local_parts(stamp):
    """(year or None, month, day, hour, minute, second) of a stamp without a zone, or None: for who knows the zone."""
    found = _WORDS.match(stamp)
    if found and found[1] in _MONTHS:
        year = found[8] or found[3]
        return (int(year) if year else None, _MONTHS.index(found[1]) + 1) + tuple(int(found[n]) for n in (2, 4, 5, 6))
    found = _ISO.match(stamp)
    if found and not found[8]:
        return tuple(int(found[number]) for number in range(1, 7))
    return None


def _seconds(year, month, day, hour, minute, second):
    """Seconds since the epoch of a date in UTC (days by the civil calendar, March as first month)."""
    shifted = year - (month <= 2)
    days = (shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400
            + (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 719468)
    return ((days * 24 + hour) * 60 + minute) * 60.0 + second
