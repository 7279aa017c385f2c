"""Kernel-log text: raw records of /dev/kmsg, the other forms that logs are printed in, and bursts made one.

Pure. A raw record is "priority,sequence,microseconds,flags[,more];text", then lines that begin with a blank
and hold properties (Linux, Documentation/ABI/testing/dev-kmsg). The priority is facility * 8 + level: the
kernel's own records have facility 0; what a program writes into /dev/kmsg gets facility 1 or more.
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth.facts import KernelEvent
from slurm_gpuhealth.parse import kernel_kinds

Line = namedtuple("Line", "text form facility seq usec", defaults=("", None, None, None))
Line.__doc__ = """One line without its stamps. form: "raw" or how it was printed. facility: syslog facility or None.
usec: microseconds since boot, or None."""

BURST_GAP = 180.0       # seconds of silence that end a burst (NVIDIA Fleet Intelligence groups the same way)
MAX_EVENTS = 5000       # distinct events kept of one pass; more than that is a flood, and is only counted
MAX_OF_USERS = 200      # of a kind that users can write as often as they like
LINE_LIMIT = 600        # characters kept of a line

_OF_USERS = frozenset(("oom_kill", "hung_task", "nvml_version_mismatch"))
_filter: list = []


def raw_record(line):
    """The Line of a raw record, or None for a line that is none (a property, text of another form)."""
    head, mark, text = line.partition(";")
    fields = head.split(",", 3)
    # More header fields may come: only the first three are ours.
    if not mark or len(fields) < 3 or not (fields[0].isdigit() and fields[1].isdigit() and fields[2].isdigit()):
        return None
    if len(head) > 200 or not head.isascii():
        return None
    return Line(text, "raw", int(fields[0]) >> 3, int(fields[1]), int(fields[2]))


def interesting_records(block):
    """The raw records of `block` (bytes, whole lines) that may hold an event, in order.

    By the first four bytes of their text; for lines that begin with the name of a driver or a process, what makes
    them one of interest is looked for in the block as a whole first.
    """
    if not _filter:
        _filter.append(kernel_kinds.Filter())
    quick = _filter[0]
    keys, narrow, worth, marked = quick.keys, quick.narrow, quick.worth, quick.marked(block)
    return [line for line in block.split(b"\n") if (key := line.partition(b";")[2][:4]) in keys
            and (key not in narrow or worth(key, line)) or line in marked]


def decode(line):
    """Text of a line of bytes; what is not UTF-8 shows as \\xNN (the kernel writes its own the same way)."""
    return line.decode("utf-8", "backslashreplace").rstrip("\r\n")


def clean(text):
    """`text` with what a terminal would obey written as \\xNN."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


class Bursts:
    """Folds lines into events: same kind, code and GPU with no more than BURST_GAP seconds between is one.

    Memory grows with the number of events, not of lines.
    """

    def __init__(self, limit=MAX_EVENTS):
        self._events = []       # lists in the order of KernelEvent's fields
        self._open: dict = {}   # key -> list, the event that a further line would belong to
        self._limit = limit
        self._of_users = {}     # kind -> how many events of it
        self._probe = ("", None)    # GPU that the block of the driver's probe is about, and when it began
        self.dropped = 0        # lines of events beyond the limit
        self.fresh = False

    def add(self, parsed, when, line="", seq=None):
        """Take one parsed line (kernel_kinds.parse) seen at `when` (seconds, any clock that goes forward, or
        None). Returns the event it belongs to, for `again`, or None when there are too many; `fresh` says
        whether it began a new one."""
        kind, code, where, pid, process, data = parsed
        self.fresh = False
        if kind == "gpu_probe":
            self._probe = (where, when)
            return None
        detail = data.pop("detail", False)
        if data.pop("pending", False) and not where:
            where = self._probe[0]
            self._probe = ("", None)
        # A changed recovery action is news each time it changes to another one.
        key: tuple = (kind, code, where, data.get("to"), data.get("fatal"), data.get("device"), data.get("class"),
                      data.get("target") or data.get("server") or data.get("node"), data.get("injected"),
                      data.get("earlier_boot"), process if kind in _OF_USERS else None)
        if detail:
            main = self._main_of(kind, code, where)
            if main is None and code is None:
                return None     # the rest of something whose beginning is not there says nothing
            key = main or key
        elif kind == "oom_kill":
            key = self._oom(key, pid, process, data, when)
        event = self._open.get(key)
        if event is not None and self._near(event, when):
            self._join(event, detail, pid, process, data)
            if when is not None:
                event[6] = when
            return event
        if kind in _OF_USERS:
            number = self._of_users[kind] = self._of_users.get(kind, 0) + 1
            if number > MAX_OF_USERS:
                # Processes that one user starts and lets die must not push out what else the log says.
                rest: tuple = (kind, "more")
                last = self._open.get(rest)
                if last is not None:
                    last[5] += 1
                    last[6] = when if when is not None else last[6]
                    return last
                key = rest
        if len(self._events) >= self._limit:
            self.dropped += 1
            return None
        for name, value in data.items():
            if isinstance(value, str):
                data[name] = clean(value)
        event = [kind, code, where, when, clean(line[:LINE_LIMIT]), 1, when, pid, clean(process), seq, data]
        self._open[key] = event
        self._events.append(event)
        self.fresh = True
        return event

    def _join(self, event, detail, pid, process, data):
        """One more line of `event`."""
        known = event[10]
        more = detail or event[0] == "rm_init_failed"
        if event[0] == "oom_kill":
            more = True
            if pid is not None and known.pop("invoked", False):
                event[7], event[8] = pid, clean(process)        # now the victim is known
            elif pid is not None and pid != event[7]:
                event[5] += 1
        elif not detail:
            event[5] += 1
        if event[0] == "link_flap":
            known["now"] = data.get("now", "")
            known["downs"] = known.get("downs", 0) + data.get("downs", 0)
        for name, value in data.items():
            if (more or name == "caused_by") and name != "invoked":
                known.setdefault(name, clean(value) if isinstance(value, str) else value)

    def _oom(self, key, pid, process, data, when):
        """The key of the event that a line about memory belongs to: a kill is told in up to four lines, of which the
        first names who asked for memory, the others the victim."""
        for event in reversed(self._events[-8:]):
            same = event[0] == "oom_kill" and event[10].get("injected") == data.get("injected")
            if not same or not self._soon(event, when):
                continue
            begun = event[10].get("invoked") and "invoker" not in data
            if begun or pid is not None and event[7] == pid:
                for known, value in self._open.items():
                    if value is event:
                        return known
        return key

    @staticmethod
    def _soon(event, when):
        return when is None or event[6] is None or 0 <= when - event[6] <= 60.0

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
            same = event[0] == kind or kind == "mce_apei" and event[0].startswith("mce_")
            if same and (code is None or (event[1], event[2]) == (code, where)):
                for key, value in self._open.items():
                    if value is event:
                        return key
        return None

    def earlier(self):
        """All events so far are of a boot before this one."""
        for event in self._events:
            event[10]["earlier_boot"] = True
        self._open.clear()

    def events(self):
        """The events so far as a tuple of KernelEvent, in the order of their first lines."""
        return tuple(KernelEvent(*event) for event in self._events)
