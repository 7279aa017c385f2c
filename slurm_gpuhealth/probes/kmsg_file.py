"""The kernel log as a file: where reading goes on, what was rotated away, where this boot begins, which form it has.

Runs in the child of probes/kmsg.py, whose reader takes the blocks of lines.
"""
from __future__ import annotations

import os
import stat
import zlib

from slurm_gpuhealth.parse import kmsg

_BLOCK = 1 << 18
FIRST = 10_000_000          # microseconds within which the kernel says its version
_FINGERPRINT = 256          # bytes before the offset that must still be the same
_MAX_NAMES = 4000           # names looked at in the folder of a log that was rotated
_MAX_PACKED = 1 << 26       # bytes of a compressed old log
_MAX_BACK = 1 << 28         # bytes looked through for the beginning of this boot


def read_rotated(path, cursor, fd, about, reader):
    """If the file was rotated since, read the rest of the old one, under whatever name it is kept now.

    It is known by its inode, or (copied, or compressed at once) by the bytes before the offset.
    """
    offset = cursor.get("offset", 0)
    if not cursor.get("inode") or cursor["inode"] == about.st_ino and _goes_on(fd, cursor, about):
        return
    folder, name = os.path.split(path)
    others = []
    for other in sorted(os.listdir(folder))[:_MAX_NAMES]:
        if other.startswith(name) and other != name:
            try:
                old = os.stat(os.path.join(folder, other), follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(old.st_mode):
                others.append((old.st_mtime, other))
    for _, other in sorted(others, reverse=True):
        try:
            old_fd = os.open(os.path.join(folder, other), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            old = os.fstat(old_fd)
            same = (old.st_ino, old.st_dev) == (cursor["inode"], cursor.get("dev"))
            if other.endswith(".gz"):
                found = bool(offset) and _read_packed(old_fd, cursor, reader)
            else:
                found = (same or bool(offset)) and _goes_on(old_fd, cursor, old)
                if found:
                    read_file(old_fd, cursor, old, reader, track=False)
            if found:
                return
        finally:
            os.close(old_fd)


def _goes_on(fd, cursor, about):
    """Whether a file is the one that the cursor was in: long enough, and the same before the offset."""
    offset = cursor.get("offset", 0)
    return offset <= about.st_size and fingerprint(fd, offset) == cursor.get("fingerprint", 0)


def _read_packed(fd, cursor, reader):
    """Whether the compressed file is the one that the cursor was in; its rest is read then."""
    offset = cursor.get("offset", 0)
    unpack = zlib.decompressobj(31)
    data = b""
    try:
        while len(data) < _MAX_PACKED:
            chunk = os.read(fd, _BLOCK)
            if not chunk:
                break
            data += unpack.decompress(chunk, _MAX_PACKED)
    except zlib.error:
        return False
    if zlib.crc32(data[max(0, offset - _FINGERPRINT):offset]) != cursor.get("fingerprint", 0):
        return False
    rest = data[offset:data.rfind(b"\n") + 1]
    if rest and _choose_form(rest, reader):
        reader.feed(rest)
    return True


def read_file(fd, cursor, about, reader, track=True):
    """A regular file from the cursor's offset; from the start when it was cut or written anew, and when it was never
    read before from where this boot begins. track: it is the log itself, so the new cursor is in it."""
    offset = cursor.get("offset", 0)
    if not _goes_on(fd, cursor, about):
        offset = 0
    elif not cursor:
        offset = _last_boot(fd, about.st_size)
    if track:
        reader.fd = fd
    rest, form, junk = b"", False, 0
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
                reader.lost += 1
            continue
        offset += len(block) + 1
        if track:
            reader.offset = offset
        form = form or _choose_form(block, reader)
        if form:
            reader.feed(block + b"\n")
        else:
            junk += 1
        if offset + len(rest) >= about.st_size:
            break           # a last line without an end is still being written: next time
    if junk:
        # A log in which no line can be read would never show an event: that must not look healthy.
        if not form:
            raise ValueError("neither /dev/kmsg records nor a log of syslog or dmesg")
        reader.lost += junk
    if track:
        reader.offset = offset


def _last_boot(fd, size):
    """Offset of the line with which the kernel began to log in this boot, 0 when it is not in the file. What stands
    before it was written before this program first looked, and is over."""
    end = size
    while end > max(0, size - _MAX_BACK):
        start = max(0, end - _BLOCK)
        data = os.pread(fd, min(size, end + 4096) - start, start)
        at = data.rfind(b"Linux version ")
        while at >= 0:
            line = data.rfind(b"\n", 0, at) + 1
            if (line or not start) and _says_kernel(data[line:at + 13]):
                return start + line
            at = data.rfind(b"Linux version ", 0, at)
        end = start
    return 0


def _says_kernel(head):
    """Whether a line that begins with `head` is the kernel's own "Linux version "."""
    record = kmsg.raw_record(kmsg.decode(head))
    if record is not None:
        return record.facility == 0 and record.text == "Linux version" and record.usec < FIRST
    stamps = head[:-13].rstrip()
    return len(stamps) < 300 and stamps.endswith((b"]", b"kernel:"))


def _choose_form(block, reader):
    """Whether `block` is of a log that can be read: records in the form of /dev/kmsg, or what a syslog daemon or
    dmesg wrote."""
    lines = block.split(b"\n")
    for line in lines:      # of a good log the first one tells
        if kmsg.raw_record(kmsg.decode(line[:4096])) is not None:
            reader.saved = None
            return True
    from slurm_gpuhealth.parse import log_lines  # only where it is needed: hooks of most sites read the device

    for line in lines:
        found = log_lines.split(kmsg.decode(line[:4096]))
        if found.tagged or found.stamp or found.monotonic is not None:
            reader.saved = log_lines
            return True
    return False


def fingerprint(fd, offset):
    """CRC of the bytes before `offset`: not the same when the file was cut and written again past it."""
    start = max(0, offset - _FINGERPRINT)
    return zlib.crc32(os.pread(fd, offset - start, start)) if offset else 0
