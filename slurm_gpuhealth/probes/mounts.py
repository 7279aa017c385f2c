"""Look at one configured mount: is it there, does it answer, can it be written. One child a mount.

Each step is emitted before the next is tried, so that a step that never returns leaves what came before it.
Nothing here follows a symbolic link: root would be led to wherever a user points.
"""
from __future__ import annotations

import errno
import os
import time

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.parse import mountinfo

_TEXTS = {errno.EROFS: "read-only", errno.ESTALE: "stale file handle", errno.EIO: "input/output error",
          errno.ENOSPC: "no space left", errno.EDQUOT: "over quota", errno.EACCES: "permission denied",
          errno.EPERM: "not permitted", errno.ENOTCONN: "not connected", errno.EHOSTDOWN: "server down",
          errno.ESHUTDOWN: "file system shut down", errno.ETIMEDOUT: "timed out", errno.ELOOP: "is a symbolic link",
          errno.ENOENT: "no such directory", errno.ENOTDIR: "is not a directory", errno.EREMOTEIO: "remote error"}

_DENIED = (errno.EACCES, errno.EPERM)


def read(spec, emit):
    """Emit ("mount", plain of facts.Mount) after each step. spec: root, path, writable (bool)."""
    root, path = spec["root"], spec["path"]
    started = time.monotonic()
    mount = F.Mount(path=path)

    def say(**changes):
        nonlocal mount
        mount = mount._replace(seconds=round(time.monotonic() - started, 3), **changes)
        emit("mount", F.to_plain(mount))

    entry = _entry(root, path)
    say(**_described(entry))
    real = paths.under(root, path)
    try:
        # O_PATH needs no right to read the folder (root_squash); with O_DIRECTORY it still wakes an automounter.
        fd = os.open(real, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as exc:
        if entry is not None or exc.errno not in (errno.ENOENT, errno.ENOTDIR):
            say(error=_error(exc))
        return
    try:
        if entry is None or entry.fstype == "autofs":
            # Opening it made the automounter mount it, if it is one's business.
            entry = _entry(root, path)
            say(**_described(entry))
            if entry is None:
                return
        try:
            numbers = os.fstatvfs(fd)
        except OSError as exc:
            say(error=_error(exc))
            return
        say(free_bytes=numbers.f_bavail * numbers.f_frsize, free_inodes=numbers.f_favail,
            total_bytes=numbers.f_blocks * numbers.f_frsize, total_inodes=numbers.f_files)
        if spec.get("writable"):
            say(writable=_try_to_write(fd))
    finally:
        os.close(fd)


def assemble(records, spec, status):
    """Facts fields: mounts, a list with the one Mount. What was not reached stays Unknown, with why."""
    mount = F.Mount(path=spec["path"])
    for kind, plain in records:
        if kind == "mount":
            mount = F.from_plain(plain, F.Mount)
    if status.outcome not in ("ok", "skipped") and mount.error is None:
        why = {"late": F.TIMEOUT, "hung": F.HUNG}.get(status.outcome, F.ERROR)
        mount = mount._replace(error=F.Unknown(why, status.detail))
    return {"mounts": [mount]}


def _entry(root, path):
    """The mountinfo entry of `path`; a fixture node may have /proc/mounts instead."""
    for name in ("/proc/self/mountinfo", "/proc/mounts"):
        try:
            with open(paths.under(root, name), encoding="utf-8", errors="surrogateescape") as handle:
                return mountinfo.find(mountinfo.parse(handle.read()), path)
        except FileNotFoundError:
            continue
    raise FileNotFoundError("no /proc/self/mountinfo")


def _described(entry):
    if entry is None:
        return {"present": False}
    return {"present": True, "fstype": entry.fstype, "options": mountinfo.options_of(entry), "source": entry.source}


def _error(exc):
    reason = F.DENIED if exc.errno in _DENIED else F.ERROR
    return F.Unknown(reason, _TEXTS.get(exc.errno, os.strerror(exc.errno or 0)), exc.errno)


def _try_to_write(folder):
    """True when a small file can be made, written to the disk and removed; else an Unknown with the errno.

    The name is new each time and the file must not exist: somebody else's file or link is never touched.
    """
    name = ".gpuhealth-%s-%d-%s" % (os.uname().nodename[:64], os.getpid(), os.urandom(6).hex())
    try:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    except OSError as exc:
        return _error(exc)
    problem = None
    try:
        try:
            os.write(fd, b"gpuhealth\n")
            os.fsync(fd)        # a full or dead server may say so only now
        finally:
            os.close(fd)        # and NFS and quota only at close
    except OSError as exc:
        problem = _error(exc)
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as exc:
        problem = problem or _error(exc)
    return True if problem is None else problem
