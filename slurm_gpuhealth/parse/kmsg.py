"""Kernel-log text: raw records of /dev/kmsg, the other forms that logs are printed in, and bursts made one.

Pure. A raw record is "priority,sequence,microseconds,flags[,more];text", then lines that begin with a blank
and hold properties (Linux, Documentation/ABI/testing/dev-kmsg). The priority is facility * 8 + level: the
kernel's own records have facility 0; what a program writes into /dev/kmsg gets facility 1 or more.
"""
from __future__ import annotations

import re
from collections import namedtuple

from slurm_gpuhealth.facts import KernelEvent
from slurm_gpuhealth.parse import kernel_kinds

Line = namedtuple("Line", "text form facility seq usec", defaults=("", None, None, None))
Line.__doc__ = """One line without its stamps. form: "raw" or how it was printed. facility: syslog facility or None.
usec: microseconds since boot, or None."""

BURST_GAP = 180.0       # seconds of silence that end a burst (NVIDIA Fleet Intelligence groups the same way)
MAX_EVENTS = 5000       # distinct events kept of one pass; more than that is a flood, and is only counted
LINE_LIMIT = 600        # characters kept of a line

_NEEDLES = tuple(needle.encode() for needle in kernel_kinds.NEEDLES)
_INSIDE = tuple(needle.encode() for needle in kernel_kinds.INSIDE)
_compiled: list = []


def raw_record(line):
    """The Line of a raw record, or None for a line that is none (a property, text of another form)."""
    head, mark, text = line.partition(";")
    fields = head.split(",")
    # More header fields may come: only the first three are ours.
    if not mark or len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit() and fields[2].isdigit()):
        return None
    if len(head) > 200 or not head.isascii():
        return None
    return Line(text, "raw", int(fields[0]) >> 3, int(fields[1]), int(fields[2]))


def interesting(block, more=()):
    """The lines of `block` (bytes, whole lines, any form) that may hold an event, in order.

    Looks for each needle in the block as a whole: a Python step a line would cost ten times as much.
    more: further needles (bytes).
    """
    return _lines_at(block, _positions(block, _NEEDLES + tuple(more)))


def interesting_records(block):
    """The same for raw records; faster still, as their text begins at a known place."""
    if not _compiled:
        _compiled.append(re.compile(kernel_kinds.STARTS.encode()))
    starts = [found.start() for found in _compiled[0].finditer(block)]
    return _lines_at(block, starts + _positions(block, _INSIDE))


def _positions(block, needles):
    """Where the needles are, at most once a line and needle."""
    found = []
    for needle in needles:
        at = block.find(needle)
        while at >= 0:
            found.append(at)
            at = block.find(b"\n", at)
            if at >= 0:
                at = block.find(needle, at)
    return found


def _lines_at(block, positions):
    last = -1
    for at in sorted(positions):
        if at < last:
            continue        # a further needle in the line just given
        last = block.find(b"\n", at)
        if last < 0:
            last = len(block)
        yield block[block.rfind(b"\n", 0, at) + 1:last]


def decode(line):
    """Text of a line of bytes; what is not UTF-8 shows as \\xNN (the kernel writes its own the same way)."""
    return line.decode("utf-8", "backslashreplace").rstrip("\r\n")


class Bursts:
    """Folds lines into events: same kind, code and GPU with no more than BURST_GAP seconds between is one.

    Memory grows with the number of events, not of lines.
    """

    def __init__(self, limit=MAX_EVENTS):
        self._events = []       # lists in the order of KernelEvent's fields
        self._open = {}         # key -> list, the event that a further line would belong to
        self._limit = limit
        self.dropped = 0        # lines of events beyond the limit
        self.fresh = False

    def add(self, parsed, when, line="", seq=None):
        """Take one parsed line (kernel_kinds.parse) seen at `when` (seconds, any clock that goes forward, or
        None). Returns the event it belongs to, for `again`, or None when there are too many; `fresh` says
        whether it began a new one."""
        kind, code, where, pid, process, data = parsed
        self.fresh = False
        detail = data.pop("detail", False)
        # A changed recovery action is news each time it changes to another one.
        key = (kind, code, where, data.get("to"), data.get("fatal"), data.get("device"), data.get("class"),
               data.get("injected"))
        if detail:
            main = self._main_of(kind, code, where)
            if main is None and code is None:
                return None     # the rest of something whose beginning is not there says nothing
            key = main or key
        event = self._open.get(key)
        if event is not None and self._near(event, when):
            if not detail:
                event[5] += 1
            for name, value in data.items():
                if detail or name == "caused_by":
                    event[10].setdefault(name, value)
            if when is not None:
                event[6] = when
            return event
        if len(self._events) >= self._limit:
            self.dropped += 1
            return None
        event = [kind, code, where, when, line[:LINE_LIMIT], 1, when, pid, process, seq, data]
        self._open[key] = event
        self._events.append(event)
        self.fresh = True
        return event

    def again(self, event, when):
        """One more line of `event` at `when`; False when its burst has ended and it must be added anew."""
        if not -BURST_GAP <= when - event[6] <= BURST_GAP:
            return False
        event[5] += 1
        event[6] = when
        return True

    def _near(self, event, when):
        if when is None or event[6] is None:
            return event is self._events[-1]    # without a clock only neighbours are one burst
        return -BURST_GAP <= when - event[6] <= BURST_GAP

    def _main_of(self, kind, code, where):
        for event in reversed(self._events[-8:]):
            if event[0] == kind and (code is None or (event[1], event[2]) == (code, where)):
                for key, value in self._open.items():
                    if value is event:
                        return key
        return None

    def events(self):
        """The events so far as a tuple of KernelEvent, in the order of their first lines."""
        return tuple(KernelEvent(*event) for event in self._events)
