"""What a job's own user may read about its restarts: why it was requeued, which checkpoints were passed over.

One file a job, `jobs/job-ID.history.json`, 0400 and the user's, in /run/gpuhealth of the node and in
`shared_dir`:  {v, job, entries: [{time, restart, what, node, code, reason, resume: {path, step, level},
passed: [{path, reason}]}]}.  Format: docs/events.md.
"""
from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.events import bound
from slurm_gpuhealth.state import make_folder, write_atomic

VERSION = 1
MAX_ENTRIES = 50            # the newest are kept
_MAX_BYTES = 1 << 20
_LOCK_SECONDS = 1.0
KEYS = ("time", "restart", "what", "node", "code", "reason", "resume", "passed")


def file_name(job_id):
    """Name of a job's history file; array tasks are written A_T. Raises ValueError for anything else."""
    text = str(job_id)
    if not text.isascii() or not text[:1].isdigit() or not text.replace("_", "", 1).isdigit():
        raise ValueError("not a job id: %r" % text[:40])
    return "job-%s.history.json" % text


def folders(root, cfg):
    """Where histories are kept: on this node, and in the shared folder if there is one."""
    found = [paths.under(root, paths.RUN) + "/jobs"]
    if cfg.get("shared_dir"):
        found.append(os.path.join(cfg["shared_dir"], "jobs"))
    return found


def append_history(root, cfg, uid, gid, job_id, entry, deadline=2.0):
    """Add one entry for the job's user. Returns a list of notes: what could not be written, and why.

    gid None: the user's own group. The node's copy comes first; the shared folder may hang or squash root, so it
    is written in a child, and once more as the job's user when root was refused. For that the site makes the
    folder `shared_dir`/jobs writable for all, with the sticky bit (mode 1733).
    """
    entry = {key: bound(entry[key], 500, 20, 4) for key in KEYS if key in entry}
    as_root = os.geteuid() == 0
    if gid is None:
        gid = _group_of(uid)
    local, *shared = folders(root, cfg)
    notes = []
    try:
        make_folder(local, 0o711)
        _append_one(local, job_id, uid, (uid, gid) if as_root else None, entry)
    except OSError as exc:
        notes.append("%s: %s" % (local, exc.strerror))
    for folder in shared:
        why = _append_shared(folder, uid, gid, job_id, entry, as_root, deadline)
        if why:
            notes.append("%s: %s" % (folder, why))
    return notes


def _group_of(uid):
    import pwd
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return -1       # fchown leaves the group as it is


def _append_shared(folder, uid, gid, job_id, entry, as_root, deadline):
    """Write the shared copy in a child. Returns "" or why not."""
    from slurm_gpuhealth import supervise

    def write(spec, emit):
        if spec["owner"]:
            make_folder(folder, 0o711)
        _append_one(folder, job_id, uid, spec["owner"], entry)

    first = supervise.call(write, {"owner": (uid, gid) if as_root else None}, deadline, name="history").status
    if first.outcome != "failed" or not as_root or not uid:
        return "" if first.outcome == "ok" else first.detail or first.outcome
    user = supervise.AsUser(uid, gid if gid >= 0 else None)
    second = supervise.call(write, {"owner": None}, deadline, user, "history").status
    return "" if second.outcome == "ok" else "%s; as the job's user: %s" % (first.detail, second.detail)


def _append_one(folder, job_id, uid, owner, entry):
    name = file_name(job_id)
    seen = os.stat(folder)
    if seen.st_mode & 0o022 and not seen.st_mode & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, "others may write there, and it has no sticky bit")
    lock = _lock(folder)
    try:
        entries = read_file(os.path.join(folder, name), (uid, 0))
        entries = [one for one in entries if _key(one) != _key(entry)][-(MAX_ENTRIES - 1):] + [entry]
        data = json.dumps({"v": VERSION, "job": str(job_id), "entries": entries}).encode("ascii")
        write_atomic(os.path.join(folder, name), data, 0o400, owner=owner)
    finally:
        if lock is not None:
            os.close(lock)


def _lock(folder):
    """Two nodes of one job may write at once. A lock that cannot be had in time is done without."""
    try:
        fd = os.open(folder + "/.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    until = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < until:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            time.sleep(0.05)
    os.close(fd)
    return None


def _key(entry):
    return entry.get("time"), entry.get("restart"), entry.get("what"), entry.get("node")


def read_file(path, owners=None):
    """Entries of one history file; [] when there is none, it is not a plain file or not what it should be, or
    it belongs to none of `owners` (in a folder where everybody may create files it could be anybody's)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    try:
        seen = os.fstat(fd)
        if not stat.S_ISREG(seen.st_mode) or (owners is not None and seen.st_uid not in owners):
            return []
        data = os.read(fd, _MAX_BYTES)
    finally:
        os.close(fd)
    try:
        plain = json.loads(data)
        return [one for one in plain["entries"] if isinstance(one, dict)][-MAX_ENTRIES:]
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def read(root, cfg, job_id, owners=None):
    """(entries of all copies, oldest first, notes about what could not be read)."""
    found: dict = {}
    notes = []
    for folder in folders(root, cfg):
        try:
            for one in read_file(os.path.join(folder, file_name(job_id)), owners):
                found[_key(one)] = one
        except OSError as exc:
            notes.append("%s: %s" % (folder, exc.strerror))
    def when(entry):
        return entry["time"] if isinstance(entry.get("time"), (int, float)) else 0
    return sorted(found.values(), key=when), notes


def prune(root, now, max_age=30 * 86400):
    """Remove this node's own copies that nobody added to for `max_age` seconds. Returns how many."""
    folder = folders(root, {})[0]
    count = 0
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith(".history.json") and now - os.lstat(path).st_mtime > max_age:
            os.unlink(path)
            count += 1
    return count
