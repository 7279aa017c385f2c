"""Files and folders of users, opened so that nothing but a plain file is ever read.

No link is followed below the folder that was named, FIFOs and devices are never opened for long enough to block,
and what is read is checked to be the same file, unchanged, at the end.
"""
from __future__ import annotations

import errno
import os
import stat

from slurm_gpuhealth.checkpoint.verdict import Bad, Trouble, Unclear, trouble_of

# Entries of one folder tree that are looked at. A real checkpoint of 10,000 ranks has about 20,000 files.
MAX_ENTRIES = 200000
MAX_DEPTH = 12
# Not a user's: snapshots of storage systems, and what mkfs leaves.
SYSTEM_NAMES = frozenset(("lost+found", ".snapshot", ".snapshots", ".zfs"))


class Source:
    """One regular file. Use as a context manager: leaving it checks that the file did not change meanwhile."""

    def __init__(self, name, dir_fd=None, shown=None):
        self.name, self.shown = name, shown or os.path.basename(name)
        # O_NONBLOCK: opening a FIFO must not wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        before = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        _must_be_plain(before, self.shown)
        try:
            self.fd = os.open(name, flags, dir_fd=dir_fd)
        except OSError as exc:
            if exc.errno in (errno.ELOOP, errno.ENXIO):
                raise Unclear("%s became something else while it was opened" % self.shown) from None
            raise
        self.stat = os.fstat(self.fd)
        self.size = self.stat.st_size
        if not stat.S_ISREG(self.stat.st_mode) or _identity(before) != _identity(self.stat):
            os.close(self.fd)
            raise Unclear("%s changed while it was opened" % self.shown)

    def read(self, offset, count):
        """Exactly `count` bytes at `offset`; Bad when the file has fewer."""
        if offset < 0 or count < 0 or offset + count > self.size:
            raise Bad("%s: %d bytes at %d asked for, it has %d" % (self.shown, count, offset, self.size))
        parts = []
        while count:
            data = os.pread(self.fd, count, offset)
            if not data:
                raise Bad("%s got shorter while it was read" % self.shown)
            parts.append(data)
            offset += len(data)
            count -= len(data)
        return b"".join(parts)

    def check_unchanged(self):
        if _identity(os.fstat(self.fd)) != _identity(self.stat):
            raise Bad("%s changed while it was read" % self.shown)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, kind, exc, tb):
        try:
            if kind is None:
                self.check_unchanged()
        finally:
            self.close()


class Folder:
    """One folder, held open, so that all its files are found through the same inode."""

    def __init__(self, path):
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._names = None

    def names(self, clock):
        """{name: "file", "folder", "link" or "other"} of the entries right inside."""
        if self._names is None:
            self._names = scan(self.fd, clock)
        return self._names

    def open(self, name):
        """Source of a file inside, `name` relative; every folder on the way must be a real one."""
        if not is_inside(name):
            raise Bad("name leads out of the folder: %s" % ascii(name)[:100])
        *folders, last = name.split("/")
        fds, at = [], self.fd
        try:
            for part in folders:
                at = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
                fds.append(at)
            return Source(last, dir_fd=at, shown=name)
        finally:
            for fd in fds:
                os.close(fd)

    def tree(self, clock):
        """{relative name: stat} of every regular file below. Bad for a link or a special file."""
        found: dict = {}
        self._walk(self.fd, "", found, [0], 0, clock)
        return found

    def _walk(self, fd, prefix, found, count, depth, clock):
        if depth > MAX_DEPTH:
            raise Bad("folders more than %d deep" % MAX_DEPTH)
        for name, kind in sorted(scan(fd, clock, count).items()):
            full = prefix + name
            if kind == "folder":
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                try:
                    self._walk(inner, full + "/", found, count, depth + 1, clock)
                finally:
                    os.close(inner)
            elif kind == "file":
                found[full] = os.stat(name, dir_fd=fd, follow_symlinks=False)
            else:
                raise Bad("%s is a %s, not a plain file" % (full, "link" if kind == "link" else "special file"))

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def scan(fd_or_path, clock, count=None):
    """{name: kind} of one folder; Trouble when there are more entries than anybody should look at."""
    found = {}
    count = [0] if count is None else count
    with os.scandir(fd_or_path) as entries:
        for entry in entries:
            count[0] += 1
            if count[0] > MAX_ENTRIES:
                raise Trouble("io", "more than %d entries in the folder" % MAX_ENTRIES)
            if count[0] % 1024 == 0:
                clock.check()
            if entry.is_symlink():
                found[entry.name] = "link"
            elif entry.is_dir(follow_symlinks=False):
                found[entry.name] = "folder"
            else:
                found[entry.name] = "file" if entry.is_file(follow_symlinks=False) else "other"
    return found


def is_inside(name):
    """True for a relative name that cannot lead out of its folder."""
    parts = name.split("/")
    return bool(name) and "\0" not in name and all(part not in ("", ".", "..") for part in parts)


def kind_of(path):
    """"file", "folder", "link", "other" of a path itself; Trouble when it cannot be looked at."""
    try:
        mode = os.lstat(path).st_mode
    except OSError as exc:
        raise trouble_of(exc) from exc
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISDIR(mode):
        return "folder"
    return "file" if stat.S_ISREG(mode) else "other"


def printable(text, limit=300):
    """`text` on one line, ASCII, for reasons and output: names inside checkpoints come from users."""
    out = "".join(char if " " <= char <= "~" else ascii(char)[1:-1] for char in text[:limit + 1])
    return out if len(out) <= limit else out[:limit - 3] + "..."


def _must_be_plain(found, shown):
    if stat.S_ISLNK(found.st_mode):
        raise Unclear("%s is a symbolic link: name what it points to" % shown)
    if not stat.S_ISREG(found.st_mode):
        raise Bad("%s is not a plain file" % shown)


def _identity(found):
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
