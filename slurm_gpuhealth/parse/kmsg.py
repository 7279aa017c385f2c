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
MAX_VARIANTS = 64       # events of one kind, code and subject that differ in what they say
LINE_LIMIT = 600        # characters kept of a line

_OF_USERS = frozenset(("oom_kill", "hung_task", "nvml_version_mismatch"))

# What names the thing that an event is about, or says that it is no fault of now. Lines that differ in it are never one
# event.
_SUBJECT = ("device", "target", "server", "node", "switch", "injected", "earlier_boot", "history", "full", "shutdown",
            "evicted", "fatal", "class", "severity", "context_corrupt", "to", "caused_by")
# What else a verdict depends on, by kind: of one burst all variants are kept, up to MAX_VARIANTS.
_VARIANT = {
    "xid": ("from", "unit", "injected_error", "link", "registers"), "sxid": ("link",), "aer_corrected": ("from",),
    "aer_uncorrected": ("from", "what"), "pcie_dpc": ("from",), "pcie_link_down": ("slot",), "nvme": ("what",),
    "md_failed": ("member",), "mlx5": ("what",), "iommu_fault": ("reason",), "pci_power_refused": ("state",),
    "kernel_panic": ("what",)}
_REGISTERS = 5          # as many as verdicts look at
_NAMES_PORT = "id="     # "received: id=0010" says again which port it is
_DETAILS = ("section", "device")    # of a record of the firmware: each has its own
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


def _group(kind, code, where):
    """By what a line finds the event that it continues: those without a number follow the last one of their kind."""
    return ("mce_" if kind.startswith("mce_") else kind, code, where if code is not None else "")


class Bursts:
    """Folds lines into events: those that say the same of the same thing, no more than BURST_GAP seconds apart.

    The same: all that a verdict depends on is equal (_SUBJECT, _VARIANT), so that no line is lost in one that says
    less. Memory grows with the number of events, not of lines.
    """

    def __init__(self, limit=MAX_EVENTS):
        self._events = []       # lists in the order of KernelEvent's fields
        self._open: dict = {}   # key -> list, the event that a further line would belong to
        self._limit = limit
        self._of_users = {}     # kind -> how many events of it
        self._probe = ("", None)    # GPU that the block of the driver's probe is about, and when it began
        self._reasons = {}          # GPU -> (what the driver complained of that may be why it then fails, when)
        self._variants = {}         # key without _VARIANT -> how many events differ in it only
        self._recent = {}           # kind -> the event that the last line of it belongs to, and its key
        self._kinds = set()
        self.dropped = 0        # lines of events beyond the limit
        self.fresh = False

    def add(self, parsed, when, line="", seq=None):
        """Take one parsed line (kernel_kinds.parse) seen at `when` (seconds, any clock that goes forward, or
        None). Returns the event it belongs to, for `again`, or None when there are too many; `fresh` says
        whether it began a new one."""
        kind, code, where, pid, process, data = parsed
        self.fresh = False
        if kind == "gpu_probe":
            if "reason" not in data:
                self._probe = (where, when)
            elif len(self._reasons) < MAX_VARIANTS:
                self._reasons[where] = (data["reason"], when)
            return None
        detail = data.pop("detail", False)
        if data.pop("pending", False) and not where:
            where = self._probe[0]
            self._probe = ("", None)
        if detail:
            main = self._main_of(kind, code, where)
            if main is None and code is None:
                return None     # the rest of something whose beginning is not there says nothing
            key = self._of_detail(main, data, when) if main else self._key(kind, code, where, process, data)
        else:
            key = self._key(kind, code, where, process, data)
            if kind == "oom_kill":
                key = self._oom(key, pid, process, data, when)
            elif kind == "rm_init_failed":
                self._add_reason(where, data, when)
        event = self._open.get(key)
        if event is not None and self._near(event, when):
            self._join(event, detail, pid, process, data)
            if when is not None:
                event[6] = when
            return self._touch(event, key)
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
        if len(self._events) >= self._limit and kind in self._kinds:
            self.dropped += 1       # of what is not there at all yet, the first one has a place
            return None
        self._kinds.add(kind)
        for name, value in data.items():
            if isinstance(value, str):
                data[name] = clean(value)
        event = [kind, code, where, when, clean(line[:LINE_LIMIT]), 1, when, pid, clean(process), seq, data]
        self._open[key] = event
        self._events.append(event)
        self.fresh = True
        return self._touch(event, key)

    def _touch(self, event, key):
        self._recent[_group(event[0], event[1], event[2])] = (event, key)
        return event

    def _key(self, kind, code, where, process, data):
        """What lines must have in common to be one event: all that the verdict on them depends on."""
        base = [kind, code, where, process if kind in _OF_USERS else None]
        base += [data.get(name) for name in _SUBJECT]
        subject = tuple(base)
        if kind == "rm_init_failed" and not where:
            return self._without_address(subject, data.get("minor"))
        names = _VARIANT.get(kind)
        if names is None:
            return subject
        said = []
        for name in names:
            value = data.get(name)
            if name == "registers" and value:
                value = tuple(value[:_REGISTERS])
            elif name == "from" and isinstance(value, str) and value.startswith(_NAMES_PORT):
                value = None
            said.append(value)
        if said.count(None) == len(said):
            # The port's own lines about an error follow the one that says which device it came from.
            _, key = self._recent.get(_group(kind, None, ""), (None, subject)) if "from" in names else (None, subject)
            return key if code is None and key[:len(subject)] == subject else subject
        key = subject + tuple(said)
        if key not in self._open:
            known = self._variants.get(subject, 0)
            if known >= MAX_VARIANTS:
                return self._rest(subject, kind, code, data)
            self._variants[subject] = known + 1
        return key

    def _without_address(self, base, minor):
        """Old drivers tell of a failed start in two lines, of which the second has the number of the device: the event
        of the first becomes that of this device."""
        if minor is None:
            _, key = self._recent.get(_group(base[0], None, ""), (None, base))
            return key if key[:len(base)] == base else base
        key = base + (minor,)
        if key not in self._open and base in self._open:
            self._open[key] = self._open.pop(base)
        return key

    def _rest(self, subject, kind, code, data):
        """The key of the event that takes what is more than MAX_VARIANTS. It must not say less than any of its lines:
        registers of Xid 74 are put together bit by bit; of other lines the word on them and no register counts, and
        an error that is not injected counts more than one that is."""
        key: tuple = subject + ("more",)
        if kind != "xid":
            for name in _VARIANT[kind]:
                data.pop(name, None)
            return key
        if data.get("injected_error"):
            key += ("injected_error",)
        if code != 74 or not data.get("registers"):
            data.pop("registers", None)
            data.pop("unit", None)
            return key + ("no registers",)
        event = self._open.get(key)
        if event is not None:
            known, new = event[10].get("registers") or [], data.get("registers") or []
            event[10]["registers"] = [
                (known[at] if at < len(known) else 0) | (new[at] if at < len(new) else 0)
                for at in range(max(len(known), len(new)))]
        return key

    def _of_detail(self, main, data, when):
        """The key of the event that a further line of a record belongs to. A record of the firmware about another part
        than the one before it in the same burst becomes an event of its own."""
        event, key = main
        told = [(name, data[name]) for name in _DETAILS if name in data]
        if not event[0].startswith("mce_") or all(event[10].get(name) in (None, value) for name, value in told):
            return key
        for name, value in told:
            key = key + ((name, value),)
        other = self._open.get(key)
        if event[5] > 1:
            event[5] -= 1
        if other is not None and self._near(other, when):
            other[5] += 1
        elif len(self._events) < self._limit:
            gone = _DETAILS[_DETAILS.index(told[0][0]):]
            about = {name: value for name, value in event[10].items() if name not in gone}
            other = event[:5] + [1] + event[6:10] + [about]
            other[3] = other[6] = when
            self._open[key] = other
            self._events.append(other)
            self.fresh = True
        return key

    def _add_reason(self, where, data, when):
        """What the driver said about a GPU right before it could not initialise it."""
        reason, told = self._reasons.get(where, ("", None))
        if reason and (when is None or told is None or abs(when - told) <= BURST_GAP):
            data.setdefault("reason", reason)

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
            return event[:3] == self._events[-1][:3]    # without a clock only neighbours are one burst
        return -BURST_GAP <= when - event[6] <= BURST_GAP

    def _main_of(self, kind, code, where):
        """(event, key) that a line continues, or None."""
        return self._recent.get(_group(kind, code, where))

    def earlier(self):
        """All events so far are of a boot before this one."""
        for event in self._events:
            event[10]["earlier_boot"] = True
        for kept in (self._open, self._variants, self._recent, self._reasons):
            kept.clear()

    def events(self):
        """The events so far as a tuple of KernelEvent, in the order of their first lines."""
        return tuple(KernelEvent(*event) for event in self._events)
