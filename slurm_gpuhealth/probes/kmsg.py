"""Read the kernel log since the last time: /dev/kmsg, or a file of records in the same form.

Runs in a child. The cursor says where the last round ended: by sequence number for the device (each read gives
one record, from the oldest kept), by byte offset for a file. A cursor of another boot is void: everything the log
still holds is read. The device drops its oldest records when nobody reads; what was dropped unread is counted.

Records of programs (facility 1 and more) are left out unless the site asks for them: any user who can write
to /dev/kmsg could drain a node otherwise.
"""
from __future__ import annotations

import os
import stat
import time
import zlib

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.parse import kernel_kinds, kmsg, xid

_BLOCK = 1 << 18
_RECORD_SIZE = 1 << 14      # printk never makes a longer one (kernel/printk, CONSOLE_EXT_LOG_MAX 8192)
_SNAPSHOT = 1.0             # seconds between reports of a long read: what was read until a deadline counts
_FINGERPRINT = 256          # bytes before the offset that must still be the same
_WINDOW_LINES = 400         # lines kept around events, for the evidence
_AROUND = 20                # lines before and after an event


def read(spec, emit):
    """Read what is new and emit ("klog", {...}) at least once; raises OSError, ValueError with what is wrong.

    spec: root, path, cursor (dict or None), boot_id, user_facility.
    """
    path = paths.under(spec["root"], spec["path"])
    cursor = spec.get("cursor") or {}
    if cursor.get("boot_id") != spec["boot_id"]:
        cursor = {}
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(fd)
        reader = _Reader(spec, emit, about)
        if stat.S_ISCHR(about.st_mode):
            _read_device(fd, cursor, reader)
        elif stat.S_ISREG(about.st_mode):
            _read_rotated(path, cursor, about, reader)
            _read_file(fd, cursor if cursor.get("inode") == about.st_ino else {}, about, reader)
        else:
            raise ValueError("%s is neither a device nor a file" % spec["path"])
    finally:
        os.close(fd)
    reader.report(final=True)


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
        self.boot_time = _boot_time(spec["root"])
        self.bursts = kmsg.Bursts()
        self.lines = self.lost = 0
        self.window = []
        self.known = {}         # how a Xid line begins -> its event
        self.cursor = {"boot_id": spec["boot_id"], "inode": about.st_ino, "dev": about.st_dev}
        self.next_report = time.monotonic() + _SNAPSHOT

    def feed(self, block):
        """`block`: bytes that end with a newline."""
        self.lines += block.count(b"\n") - block.count(b"\n ") - (block[:1] == b" ")
        for line in kmsg.interesting_records(block):
            head, _, text = line.partition(b";")
            key = text[:text.find(b", ")] if text.startswith(b"NVRM: Xid (") else b""
            if key in self.known and self._once_more(head, self.known[key]):
                continue
            record = kmsg.raw_record(kmsg.decode(line))
            if record is None or (record.facility and not self.any_facility):
                continue
            parsed = kernel_kinds.parse(record.text)
            if parsed is None:
                continue
            event = self.bursts.add(parsed, round(self.boot_time + record.usec / 1e6, 3), record.text, record.seq)
            if event is not None and key and parsed[1] not in xid.TELLING and len(self.known) < kmsg.MAX_EVENTS:
                self.known[key] = event
            if self.bursts.fresh:
                self._keep_window(block, line)
        if time.monotonic() >= self.next_report:
            self.report()

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
        self.emit("klog", {"events": F.to_plain(self.bursts.events()), "cursor": dict(self.cursor),
                           "lost": self.lost + self.bursts.dropped, "lines": self.lines,
                           "window": self.window[:_WINDOW_LINES], "final": final})


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
    before = last       # the record that the next one should follow; -1: nothing was read before
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
        seq, usec = int(fields[1]), int(fields[2])
        if before >= 0 and seq > before + 1:
            reader.lost += seq - before - 1
        before = seq
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
    if last >= 0 and "seq" not in reader.cursor:
        reader.cursor.update(seq=last, usec=cursor.get("usec", 0))
    if batch:
        reader.feed(b"".join(batch))


def _read_rotated(path, cursor, about, reader):
    """If the file was rotated since, the rest of the old one is under PATH.1."""
    if not cursor.get("inode") or cursor["inode"] == about.st_ino:
        return
    try:
        fd = os.open(path + ".1", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return      # not kept, or compressed: nothing to go back to
    try:
        old = os.fstat(fd)
        if stat.S_ISREG(old.st_mode) and (old.st_ino, old.st_dev) == (cursor["inode"], cursor.get("dev")):
            _read_file(fd, cursor, old, reader)
    finally:
        os.close(fd)


def _read_file(fd, cursor, about, reader):
    """A regular file from the cursor's offset; from the start when it was cut or written anew."""
    offset = cursor.get("offset", 0)
    if offset > about.st_size or _fingerprint(fd, offset) != cursor.get("fingerprint", 0):
        offset = 0
    rest, checked = b"", False
    while offset < about.st_size:
        data = os.pread(fd, min(_BLOCK, about.st_size - offset - len(rest)), offset + len(rest))
        if not data:
            break
        block, mark, rest = (rest + data).rpartition(b"\n")
        if not mark:
            if len(rest) > 1 << 20:
                # No record is that long: what was written there is not a log. Go on behind it, and say that it is lost.
                offset += len(rest)
                rest = b""
                reader.cursor["offset"] = offset
                reader.lost += 1
            continue
        if not checked:
            _check_form(block)
            checked = True
        offset += len(block) + 1
        reader.cursor["offset"] = offset
        reader.feed(block + b"\n")
        if offset + len(rest) >= about.st_size:
            break           # a last line without an end is still being written: next time
    reader.cursor.update(offset=offset, fingerprint=_fingerprint(fd, offset))


def _check_form(block):
    """A log in another form (rsyslog's, say) would never show an event: that must not look healthy."""
    for line in block.split(b"\n"):     # of a good log the first one tells
        if kmsg.raw_record(kmsg.decode(line)) is not None:
            return
    raise ValueError("not in the form of /dev/kmsg records")


def _fingerprint(fd, offset):
    """CRC of the bytes before `offset`: not the same when the file was cut and written again past it."""
    start = max(0, offset - _FINGERPRINT)
    return zlib.crc32(os.pread(fd, offset - start, start)) if offset else 0
