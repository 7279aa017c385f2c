"""Read the kernel log since the last time: /dev/kmsg, a file of records in the same form, or a saved log (kern.log).

Runs in a child. The cursor says where the last round ended: by sequence number for the device (each read gives
one record, from the oldest kept), by byte offset for a file. For the device a cursor of another boot is void, as the
log began anew: everything it still holds is read. A file goes on over a reboot: what the boot before wrote after the
last look is read too, and marked (data["earlier_boot"]). The device drops its oldest records when nobody reads; what
was dropped unread is counted.

Records of programs (facility 1 and more; in a saved log, lines that do not say `kernel:`) are left out unless the
site asks for them: any user who can write into the log could drain a node otherwise. A saved log must be one that
takes the kernel's facility only (kern.* of syslog): elsewhere a program may call itself kernel.
"""
from __future__ import annotations

import os
import stat
import time

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.parse import kernel_kinds, kmsg, xid
from slurm_gpuhealth.probes import kmsg_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLOCK = 1 << 18
_RECORD_SIZE = 1 << 14      # printk never makes a longer one (kernel/printk, CONSOLE_EXT_LOG_MAX 8192)
_SNAPSHOT = 1.0             # seconds between reports of a long read: what was read until a deadline counts
_WINDOW_LINES = 400         # lines kept around events, for the evidence
_AROUND = 20                # lines before and after an event
_CLOCKS = 5.0               # seconds that boot's wall time may be off, as the clock was set since
_FELL_BACK = 5_000_000      # microseconds: records of several processors may be out of order by less


def read(spec, emit):
    """Read what is new and emit ("klog", {...}) at least once; raises OSError, ValueError with what is wrong.

    spec: root, path, cursor (dict or None), boot_id, user_facility.
    """
    path = paths.under(spec["root"], spec["path"])
    cursor = spec.get("cursor") or {}
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(fd)
        reader = _Reader(spec, emit, about)
        if stat.S_ISCHR(about.st_mode):
            _read_device(fd, cursor if cursor.get("boot_id") == spec["boot_id"] else {}, reader)
        elif stat.S_ISREG(about.st_mode):
            reader.goes_on(cursor)
            kmsg_file.read_rotated(path, cursor, fd, about, reader)
            kmsg_file.read_file(fd, cursor if cursor.get("inode") == about.st_ino else {}, about, reader)
        else:
            raise ValueError("%s is neither a device nor a file" % spec["path"])
        reader.report(final=True)
    finally:
        os.close(fd)


def assemble(records, spec, status):
    """Facts fields of what `read` emitted: klog, and for the caller cursor and lines (the window)."""
    last = None
    for kind, plain in records:
        if kind == "klog":
            last = plain        # each report holds all that was read so far
    if last is None:
        why = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
        return {"klog": F.Unknown(why, status.detail), "cursor": None, "lines": ()}
    klog = F.from_plain({key: last[key] for key in ("events", "cursor", "lost", "lines")}, F.KernelLog)
    return {"klog": klog, "cursor": last["cursor"], "lines": tuple(last["window"])}


class _Reader:
    """Takes blocks of whole lines, folds what matters into events, and knows where reading stands."""

    def __init__(self, spec, emit, about):
        self.emit = emit
        self.any_facility = bool(spec.get("user_facility"))
        self.live = not spec["root"]
        self.boot_time = self.boot_now = _boot_time(spec["root"])
        self.bursts = kmsg.Bursts()
        self.lines = self.lost = 0
        self.window = []
        self.known = {}         # how a Xid line begins -> its event
        self.is_file = stat.S_ISREG(about.st_mode)
        self.fd, self.offset = -1, 0    # of the file, where reading stands
        self.saved: Any = None  # parse.log_lines, for a file that holds no raw records
        self.usec = -1          # of the last record looked at
        self.cursor = {"boot_id": spec["boot_id"], "inode": about.st_ino, "dev": about.st_dev}
        self.next_report = time.monotonic() + _SNAPSHOT

    def goes_on(self, cursor):
        """A file is read on from `cursor`, maybe one of an earlier boot."""
        self.usec = cursor.get("usec", -1)
        if cursor.get("boot_id") not in (None, self.cursor["boot_id"]):
            # Until a boot is seen in it, what follows was written before this one.
            self.boot_time = cursor.get("booted", self.boot_now)

    def feed(self, block):
        """`block`: bytes that end with a newline."""
        self.lines += block.count(b"\n") - block.count(b"\n ") - (block[:1] == b" ")
        if self.saved is not None:
            self._feed_saved(block)
        else:
            self._feed_records(block)
        if time.monotonic() >= self.next_report:
            self.report()

    def _feed_records(self, block):
        parts = self._by_boot(block) if self.is_file else (block,)
        for part in parts:
            for line in kmsg.interesting_records(part):
                self._take_record(part, line)

    def _take_record(self, block, line):
        head, _, text = line.partition(b";")
        key = text[:text.find(b", ")] if text.startswith(b"NVRM: Xid (") else b""
        if key in self.known and self._once_more(head, self.known[key]):
            return
        record = kmsg.raw_record(kmsg.decode(line))
        if record is None or (record.facility and not self.any_facility):
            return
        parsed = kernel_kinds.parse(record.text)
        if parsed is None:
            return
        when = self.boot_time + record.usec / 1e6
        if self.is_file and self.live and when > time.time() + _CLOCKS:
            parsed[5]["earlier_boot"] = True    # written after more seconds of running than this boot has
        event = self.bursts.add(parsed, round(when, 3), record.text, record.seq)
        if event is not None and key and parsed[1] not in xid.TELLING and len(self.known) < kmsg.MAX_EVENTS:
            self.known[key] = event
        if self.bursts.fresh:
            self._keep_window(block, line)

    def _by_boot(self, block):
        """Parts of a block of records, cut where another boot begins; what came before is history then."""
        while True:
            at = self._boot_in(block)
            if at < 0:
                break
            if at:
                yield block[:at]
            self._booted()
            block = block[at:]
            yield block[:block.find(b"\n") + 1]
            block = block[block.find(b"\n") + 1:]
        if block:
            yield block

    def _boot_in(self, block):
        """Where in `block` the first record of another boot is, or -1. The kernel says its version first; where that
        line is lost, the clock fell back."""
        at = block.find(b";Linux version ")
        while at >= 0:
            start = block.rfind(b"\n", 0, at) + 1
            usec = _usec(block[start:at + 1])
            kernels = block[start:start + 1] in b"01234567" and block[start + 1:start + 2] == b","
            if kernels and 0 <= usec < kmsg_file.FIRST:
                return start
            at = block.find(b";Linux version ", at + 1)
        for start in (0, block.rfind(b"\n", 0, len(block) - 1) + 1):
            usec = _usec(block[start:start + 200])
            if 0 <= usec < self.usec - _FELL_BACK:
                at = start if start == 0 else self._fell_back_at(block)
                self.usec = usec
                return at
            self.usec = max(usec, self.usec)
        return -1

    def _fell_back_at(self, block):
        start = last = 0
        while start < len(block):
            usec = _usec(block[start:start + 200])
            if 0 <= usec < last - _FELL_BACK:
                return start
            last = max(usec, last)
            start = block.find(b"\n", start) + 1 or len(block)
        return 0

    def _booted(self):
        """A boot begins here: all events so far are of earlier ones."""
        self.bursts.earlier()
        self.known.clear()
        self.boot_time = self.boot_now
        self.usec = 0

    def _feed_saved(self, block):
        for raw in self.saved.interesting(block):
            text = kmsg.decode(raw)
            found = self.saved.split(text)
            if not self.any_facility and (found.facility or not (found.tagged or not found.stamp)):
                continue
            if found.text.startswith("Linux version "):
                self._booted()
                continue
            parsed = kernel_kinds.parse(found.text)
            if parsed is None:
                continue
            when = found.time if found.time is not None else _local_time(self.saved.local_parts(found.stamp))
            if when is not None and when < self.boot_now - _CLOCKS:
                parsed[5]["earlier_boot"] = True
            elif when is None and found.monotonic is not None:
                when = self.boot_time + found.monotonic
            self.bursts.add(parsed, None if when is None else round(when, 3), found.text, found.seq)
            if self.bursts.fresh:
                self._keep_window(block, raw)

    def _once_more(self, head, event):
        """Count a further line of a known event. A flood repeats GPU and code 100,000 times and more: this
        is one look-up a line instead of parsing it."""
        fields = head.split(b",", 3)
        if len(fields) < 3 or not fields[0].isdigit() or not fields[2].isdigit():
            return False
        if int(fields[0]) > 7 and not self.any_facility:
            return True
        return self.bursts.again(event, self.boot_time + int(fields[2]) / 1e6)

    def _keep_window(self, block, line):
        if len(self.window) >= _WINDOW_LINES:
            return
        at = block.find(line)
        start, end = at, at
        for _ in range(_AROUND):
            start = block.rfind(b"\n", 0, max(0, start - 1)) + 1
        for _ in range(_AROUND):
            end = block.find(b"\n", end) + 1 or len(block)
        for near in kmsg.decode(block[start:end]).split("\n"):
            if near and near not in self.window[-2 * _AROUND:]:
                self.window.append(near[:kmsg.LINE_LIMIT])

    def report(self, final=False):
        self.next_report = time.monotonic() + _SNAPSHOT
        if self.is_file:
            self.cursor.update(usec=max(0, self.usec), booted=round(self.boot_now, 3))
            if self.fd >= 0:
                self.cursor.update(offset=self.offset, fingerprint=kmsg_file.fingerprint(self.fd, self.offset))
        self.emit("klog", {"events": F.to_plain(self.bursts.events()), "cursor": dict(self.cursor),
                           "lost": self.lost + self.bursts.dropped, "lines": self.lines,
                           "window": self.window[:_WINDOW_LINES], "final": final})


def _usec(head):
    """Microseconds since boot of a raw record that begins with `head`, or -1."""
    fields = head.partition(b";")[0].split(b",", 3)
    return int(fields[2]) if len(fields) > 2 and fields[2].isdigit() and len(fields[2]) < 20 else -1


def _local_time(parts):
    """Seconds since the epoch of a date in the node's own zone; a date without a year is the last such."""
    if parts is None:
        return None
    now = time.time()
    try:
        year, month, day, hour, minute, second = parts
        when = time.mktime((year or time.localtime(now).tm_year, month, day, hour, minute, second, 0, 0, -1))
        if year is None and when > now + 86400:
            when = time.mktime((time.localtime(now).tm_year - 1, month, day, hour, minute, second, 0, 0, -1))
    except (OverflowError, ValueError):
        return None
    return when


def _boot_time(root):
    """Wall time of boot, seconds. The log's clock drifts against the wall's, so it is worked out at each read.

    On a fixture node (root given) its own /proc/stat says it, so that results do not depend on the day.
    """
    if root:
        try:
            with open(paths.under(root, "/proc/stat"), encoding="ascii") as handle:
                for line in handle:
                    if line.startswith("btime "):
                        return float(line.split()[1])
        except OSError:
            pass    # a fixture without one: as on a live node
    return time.time() - time.clock_gettime(time.CLOCK_MONOTONIC)


def _read_device(fd, cursor, reader):
    """/dev/kmsg: one record a read; EPIPE says that records were overwritten before we came to them."""
    last = cursor.get("seq", -1)
    seen = _read_records(fd, last, reader)
    if last >= 0 and 0 <= seen < last:
        # The cursor is ahead of all there is: it is not of this log. Nothing was missed, nothing is skipped.
        os.lseek(fd, 0, os.SEEK_SET)
        last = -1
        _read_records(fd, last, reader)
    if last >= 0 and "seq" not in reader.cursor:
        reader.cursor.update(seq=last, usec=cursor.get("usec", 0))


def _read_records(fd, last, reader):
    """Feed the records after number `last`; returns the highest number that the device gave, -1 for none."""
    before = last       # the record that the next one should follow; -1: nothing was read before
    seen = -1
    until = time.clock_gettime(time.CLOCK_MONOTONIC) * 1e6 + 1e6
    batch, size = [], 0
    while True:
        try:
            record = os.read(fd, _RECORD_SIZE)
        except BlockingIOError:
            break
        except BrokenPipeError:
            continue        # the gap in the numbers tells how many
        if not record:
            break
        fields = record.split(b",", 3)
        if len(fields) < 3 or not fields[1].isdigit() or not fields[2].isdigit():
            continue
        seq, usec = int(fields[1]), int(fields[2])
        if before >= 0 and seq > before + 1:
            reader.lost += seq - before - 1
        before = seen = seq
        if seq <= last:
            continue
        batch.append(record)
        size += len(record)
        reader.cursor.update(seq=seq, usec=usec)
        if size >= _BLOCK:
            reader.feed(b"".join(batch))
            batch, size = [], 0
            if usec > until:
                break       # written while we read: a flood must not hold us here; the next round goes on
    if batch:
        reader.feed(b"".join(batch))
    return seen
