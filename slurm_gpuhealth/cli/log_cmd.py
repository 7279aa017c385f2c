"""`gpuhealth log parse`: what a kernel log says about GPUs, PCIe, storage, memory and network."""
from __future__ import annotations

import argparse
import codecs
import gzip
import io
import itertools
import json
import sys
import time
import zlib

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.catalogue import judge as catalogue_judge
from slurm_gpuhealth.errors import EXIT_UNKNOWN, DataError, NotFoundError
from slurm_gpuhealth.parse import journal_text, kmsg, log_lines, xid

EPILOG = """\
example:
  dmesg | gpuhealth log parse
  gpuhealth log parse /var/log/kern.log
  journalctl -k -o json | gpuhealth log parse -
  dmesg | gpuhealth log parse --boot-time now

one JSON object a line: v, kind, code, bdf, severity, action, line, time, last, count, pid, process, data.
time is null where the log does not say date and zone; then "stamp" (as printed) and "monotonic" (seconds since
boot) are what there is. Lines of one burst (same kind, code and GPU, at most 3 minutes apart) are one event.
Text that a program wrote, not the kernel, has "injected": true in its data, and is a note whatever it says.
A line of the driver behind a stamp that is not known has "stamp_unread": true.
Compressed with gzip, UTF-8 or UTF-16: all are read. What is no log: one line on standard error, exit status 3.
"""

_BLOCK = 1 << 18
_MAGIC = ((b"\xfd7zXZ", "compressed with xz"), (b"BZh", "compressed with bzip2"), (b"\x28\xb5\x2f\xfd",
          "compressed with zstd"), (b"PK\x03\x04", "a zip archive"), (b"\x7fELF", "a program"),
          (b"LPKSHHRH", "a journal file (journalctl --file prints it)"))
_BINARY = bytes(code for code in range(32) if code not in b"\t\n\r\x0b\x0c\x1b\x1e") + b"\x7f"


class _NoLog(Exception):
    """What was given is no log; says what it is."""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("log", help="what a kernel log says", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="log_command", metavar="COMMAND", required=True)
    parse = commands.add_parser("parse", help="read a kernel log, print its events", epilog=EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("file", nargs="?", default="-",
                       help="a saved kernel log in any common form; - for standard input")
    parse.add_argument("--boot-time", type=_boot_time, metavar="SECONDS",
                       help="when the machine was booted: seconds since 1970 (btime in /proc/stat), or `now` for this "
                       "machine; gives lines that have only seconds since boot their time")
    return parser


def _boot_time(text):
    if text == "now":
        return time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e11:
        raise argparse.ArgumentTypeError("seconds since 1970, or now")
    return value


def run(args, out):
    """Print the events of a log; 0 also when there are none, 3 when it is no text."""
    try:
        if args.file == "-":
            events = read(sys.stdin.buffer, args.boot_time, _say)
        else:
            try:
                with open(args.file, "rb") as stream:
                    events = read(stream, args.boot_time, _say)
            except FileNotFoundError:
                raise NotFoundError("no such file: %s" % args.file) from None
            except OSError as exc:
                raise DataError("cannot read %s: %s" % (args.file, exc.strerror or exc)) from exc
    except _NoLog as exc:
        _say("%s is no log: %s" % ("standard input" if args.file == "-" else kmsg.clean(args.file), exc))
        return EXIT_UNKNOWN
    for event in events:
        print(json.dumps(event), file=out)
    return 0


def _say(text):
    print("gpuhealth log parse: " + text, file=sys.stderr)


def read(stream, boot_time=None, say=None):
    """The events of a binary stream, as the dicts that are printed.

    boot_time: wall time of the machine's boot. say: called with what a person should know beside them; without it
    anything is taken for text.
    """
    log = _Log(boot_time)
    try:
        _take(_text(stream), log, say is not None)
    except (EOFError, gzip.BadGzipFile, zlib.error) as exc:
        if say is None:
            raise DataError("compressed data: %s" % exc) from exc
        say("the compressed log is damaged, its rest was not read: %s" % exc)
    if log.dropped and say is not None:
        say("%d more lines belong to events that are not shown: there are too many" % log.dropped)
    return log.described()


def _text(stream):
    """`stream` as bytes in UTF-8: unpacked, and without the mark that some editors put in front."""
    if not hasattr(stream, "peek"):
        stream = io.BufferedReader(stream)
    if stream.peek(4)[:3] == b"\x1f\x8b\x08":
        stream = io.BufferedReader(gzip.GzipFile(fileobj=stream))
    head = stream.peek(4)[:3]
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return codecs.EncodedFile(stream, "utf-8", "utf-16", "replace")
    if head == codecs.BOM_UTF8:
        stream.read(3)
    return stream


def _refuse(first):
    """Raise _NoLog for what is no text. A log may hold some zeros, where a machine lost its power."""
    for magic, what in _MAGIC:
        if first.startswith(magic):
            raise _NoLog(what)
    if len(first) - len(first.translate(None, _BINARY)) > len(first) * 0.3:
        raise _NoLog("binary data")


def _take(stream, log, only_text):
    """Put the events of a stream into `log`."""
    first = stream.read(_BLOCK)
    if only_text:
        _refuse(first)
    form = journal_text.form_of(first)
    if form:
        lines = itertools.chain(_lines_of(first, stream), stream)
        for found in journal_text.entries(lines, form):
            log.take(*log_lines.read(found))
        return
    rest = b""
    data = first
    while True:
        block, mark, rest = (rest + data).rpartition(b"\n")
        if not data:
            block, mark, rest = rest, b"\n", b""
        if mark:
            for raw in log_lines.interesting(block):
                line = kmsg.decode(raw)
                if not log.once_more(line):
                    log.take(*log_lines.parse_line(line))
        if not data:
            return
        data = stream.read(_BLOCK)


def _lines_of(first, stream):
    """Lines of what was read already; the last is completed from the stream."""
    lines = first.splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += stream.readline()
    return lines


class _Log:
    """Gathers the events of a log with what their first lines said about time."""

    def __init__(self, boot_time):
        self._bursts = kmsg.Bursts()
        self._about: list = []
        self._known: dict = {}      # text of a Xid line up to its message -> event
        self._boot_time = boot_time
        self._driver = ""

    def take(self, found, parsed):
        """One line, with its stamps taken off."""
        if parsed is None:
            return
        event = self._bursts.add(parsed, log_lines.clock(found), found.text, found.seq)
        if self._bursts.fresh:
            self._about.append(found)
        if event is not None and parsed[0] == "xid" and parsed[1] not in xid.TELLING and not found.facility:
            self._known[found.text.partition(", ")[0]] = event
        if parsed[0] == "driver_load":
            self._driver = parsed[5].get("version", self._driver)

    def once_more(self, line):
        """Count a further line of a known Xid; False when it must be looked at. A flood repeats them 100,000 times."""
        if not self._known or line[:1] != "[":
            return False
        stamp, _, text = line.partition("] ")
        event = self._known.get(text.partition(", ")[0])
        if event is None or event[6] is None:
            return False
        try:
            when = float(stamp[1:])
        except ValueError:
            return False
        return self._bursts.again(event, when)

    @property
    def dropped(self):
        """Lines of events that there was no place for."""
        return self._bursts.dropped

    def described(self):
        """The events as they are printed."""
        return [self._describe(event, found) for event, found in zip(self._bursts.events(), self._about)]

    def _describe(self, event, found):
        data = dict(event.data or {})
        severity, action = judge(event, self._driver)
        first, last = found.time, event.last if found.time is not None else None
        if first is None and self._boot_time is not None and found.monotonic is not None:
            first = round(self._boot_time + found.monotonic, 6)
            if not found.stamp and event.last is not None:
                last = round(self._boot_time + event.last, 6)
        plain = {"v": 1, "kind": event.kind, "code": event.code, "bdf": event.bdf, "severity": severity,
                 "action": action, "time": first, "last": last, "count": event.count, "pid": event.pid,
                 "process": event.process, "line": event.line, "data": data}
        if found.time is None:
            plain["stamp"], plain["monotonic"] = found.stamp or None, found.monotonic
        if event.kind == "xid" and event.code is not None:
            plain["title"] = catalogue.xid(event.code).title
        return plain


def judge(event, driver=""):
    """(severity, action) of an event. action: none, restart-app, reset, reboot, repair, drain. driver: version that
    the log named."""
    data = event.data or {}
    if data.get("injected") or data.get("earlier_boot"):
        return "note", "none"       # anybody may write what he likes; and what was is over
    return catalogue_judge.action_of(event.kind, event.code, data, driver=driver)
