"""The node's own memory, in small JSON files that are replaced whole: nothing is ever half written.

/var/lib/gpuhealth (root only, survives a reboot): node.json (log cursor, GPU identities, counters, which jobs
saw which Xid, clean rounds), incidents.json (incidents and acks), jobs/ (a baseline for each running job),
spool/ (actions that slurmctld has yet to hear of). /run/gpuhealth (gone after a reboot): children left behind.

A file that cannot be understood is set aside as NAME.corrupt-TIME, said, and started anew: the tool's own
memory must never keep a node from working. These functions may block on a dead disk; hooks call them within
the time of the guard (hook.py).
"""
from __future__ import annotations

import errno
import json
import os
import stat
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.errors import StateError
from slurm_gpuhealth.model import Ack, Incident, from_plain, to_plain
from slurm_gpuhealth.parse import state_shape

NODE, INCIDENTS, LEFT = "node.json", "incidents.json", "left.json"
_MAX_BYTES = 8 << 20


def write_atomic(path, data, mode=0o600, durable=False, owner=None):
    """Replace `path` by `data` (bytes) in one step. durable: also after a power cut. owner: (uid, gid) to give
    the file to. Raises OSError; the temporary file does not stay."""
    folder, name = os.path.split(path)
    temporary = "%s/.%s.%d.tmp" % (folder, name, os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, mode)
    except FileExistsError:     # of a process with our pid that was killed before
        os.unlink(temporary)
        fd = os.open(temporary, flags, mode)
    try:
        try:
            os.fchmod(fd, mode)
            if owner is not None:
                os.fchown(fd, *owner)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    if durable:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_folder(path, mode=0o700):
    """Make a folder with exactly this mode, parents too; an existing one that is ours is left as it is."""
    try:
        os.mkdir(path, mode)
        os.chmod(path, mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(os.path.dirname(path), 0o755)
        make_folder(path, mode)


class State:
    """All of the node's memory. Loads a file when it is first asked for; writes only what changed.

    `notes` collects what had to be said (a corrupt file set aside); the caller makes events of it.
    """

    def __init__(self, root=""):
        self.folder = paths.under(root, paths.STATE)
        self.run = paths.under(root, paths.RUN)
        self.notes = []
        self._lock = None

    # -- plain files

    def read(self, name, folder=None):
        """The dict in a state file; {} when there is none, or when it was corrupt (and was set aside)."""
        path = "%s/%s" % (folder or self.folder, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as exc:
            if exc.errno in (errno.ELOOP, errno.ENXIO):     # a link, a socket: out of the way, or nothing is kept
                self.set_aside(path, "not a plain file")
            else:
                self.notes.append("cannot read %s: %s" % (path, exc.strerror))
            return {}
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode):
                self.set_aside(path, "not a plain file")
                return {}
            data = os.read(fd, min(seen.st_size, _MAX_BYTES) + 1)
        except OSError as exc:
            self.notes.append("cannot read %s: %s" % (path, exc.strerror))
            return {}
        finally:
            os.close(fd)
        try:
            if len(data) > _MAX_BYTES:
                raise ValueError("larger than %d bytes" % _MAX_BYTES)
            value = json.loads(data)
            bad = state_shape.wrong(name, os.path.basename(folder or ""), value)
            if bad or not isinstance(value, dict):
                raise ValueError("%s is not what it should be" % ascii(bad or "the whole")[:60])
        except (ValueError, RecursionError) as exc:
            self.set_aside(path, exc)
            return {}
        return value

    def set_aside(self, path, why):
        """Move a file that cannot be used out of the way; the evidence of what was wrong with it stays."""
        aside = "%s.corrupt-%d" % (path, time.time())
        try:
            os.rename(path, aside)
            self.notes.append("%s was not readable (%s): set aside as %s" % (path, why, os.path.basename(aside)))
        except OSError as exc:
            self.notes.append("%s was not readable (%s) and cannot be set aside: %s" % (path, why, exc.strerror))

    def write(self, name, value, folder=None, durable=False):
        """Replace a state file. Raises StateError (disk full, read-only)."""
        folder = folder or self.folder
        data = json.dumps(value, separators=(",", ":")).encode()
        try:
            try:
                write_atomic("%s/%s" % (folder, name), data, durable=durable)
            except FileNotFoundError:
                make_folder(folder, 0o711 if folder == self.run else 0o700)
                write_atomic("%s/%s" % (folder, name), data, durable=durable)
        except OSError as exc:
            raise StateError("cannot write %s/%s: %s" % (folder, name, exc.strerror)) from exc

    # -- one hook at a time

    def lock(self, deadline):
        """Take the node's lock, trying for `deadline` seconds. False when another hook holds it that long."""
        import fcntl

        from slurm_gpuhealth import supervise
        if self._lock is not None:
            return True
        path = self.run + "/lock"
        try:
            make_folder(self.run, 0o711)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as exc:
            self.notes.append("cannot open %s: %s" % (path, exc.strerror))
            return False
        until = time.monotonic() + deadline
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = fd
                supervise.keep_from_children(fd)
                return True
            except OSError as exc:
                if exc.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() >= until:
                    os.close(fd)
                    return False
            time.sleep(0.02)

    def unlock(self):
        if self._lock is not None:
            from slurm_gpuhealth import supervise
            supervise.may_be_kept(self._lock)
            os.close(self._lock)
            self._lock = None

    # -- incidents and acks

    def incidents(self):
        """(list of Incident, list of Ack), the closed ones of the last weeks too."""
        # A copy in /run is there only while the disk refuses; it is then the newer one.
        plain = self.read(INCIDENTS, self.run) or self.read(INCIDENTS)
        return ([from_plain(Incident, item) for item in plain.get("incidents", [])],
                [from_plain(Ack, item) for item in plain.get("acks", [])])

    def save_incidents(self, incidents, acks, keep=500):
        """Write incidents (oldest closed ones dropped beyond `keep`) and acks, durably: a drain depends on it.

        A disk that refuses (StateError) must not make each round a new incident with evidence of its own: they are
        kept in /run until it takes them again.
        """
        kept = list(incidents)
        while len(kept) > keep and any(item.closed for item in kept):
            kept.remove(next(item for item in kept if item.closed))
        plain = {"v": 1, "incidents": to_plain(kept), "acks": to_plain(acks)}
        try:
            self.write(INCIDENTS, plain, durable=True)
        except StateError:
            self.write(INCIDENTS, plain, self.run)
            raise
        if os.path.lexists("%s/%s" % (self.run, INCIDENTS)):
            os.unlink("%s/%s" % (self.run, INCIDENTS))

    # -- a job's baseline

    @staticmethod
    def job_name(job_id):
        return "%d.json" % job_id

    def job(self, job_id):
        return self.read(self.job_name(job_id), self.folder + "/jobs")

    def save_job(self, job_id, value):
        self.write(self.job_name(job_id), value, self.folder + "/jobs")

    def jobs(self):
        """{job id: baseline} of all jobs that a prolog saw start here and no epilog saw end."""
        found = {}
        for name in self.names("jobs"):
            if name.endswith(".json") and name[:-5].isdigit():
                found[int(name[:-5])] = self.read(name, self.folder + "/jobs")
        return found

    def forget_job(self, job_id):
        self.remove(self.job_name(job_id), "jobs")

    # -- small folders

    def names(self, folder):
        try:
            return sorted(name for name in os.listdir("%s/%s" % (self.folder, folder))
                          if not name.startswith(".") and ".corrupt-" not in name)
        except FileNotFoundError:
            return []
        except OSError as exc:
            self.notes.append("cannot list %s/%s: %s" % (self.folder, folder, exc.strerror))
            return []

    def remove(self, name, folder):
        try:
            os.unlink("%s/%s/%s" % (self.folder, folder, name))
        except FileNotFoundError:
            pass
        except OSError as exc:
            self.notes.append("cannot remove %s/%s/%s: %s" % (self.folder, folder, name, exc.strerror))

    # -- children that no signal ends

    def left_behind(self, boot_id):
        """{source: [{"pid", "ticks", "since"}]} of this boot."""
        plain = self.read(LEFT, self.run)
        return plain.get("left", {}) if plain.get("boot_id") == boot_id else {}

    def save_left_behind(self, boot_id, left):
        self.write(LEFT, {"boot_id": boot_id, "left": left}, self.run)
