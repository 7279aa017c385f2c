"""Evidence folders: one an incident, root only, whole or visibly not.

Everything here may block (a dead disk), so hooks call it in a supervised child; whatever moment that child is
killed at, the folder says what it has: files come under a temporary name and are renamed, and the manifest is
there from the start and renewed after each file. Two hooks with the same incident get the same folder; only
the one that made it writes.

Where the file system of the state shows I/O errors, is read-only or is full, the folder goes to the tmpfs
/run/gpuhealth/evidence, and manifest and notes say so.
"""
from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time

from slurm_gpuhealth import facts as facts_module
from slurm_gpuhealth import model, paths
from slurm_gpuhealth.errors import StateError
from slurm_gpuhealth.events import subject_text
from slurm_gpuhealth.evidence import manifest as manifests
from slurm_gpuhealth.evidence import shelf, trouble
from slurm_gpuhealth.state import make_folder

FALLBACK_MB = 16            # the most one folder may take of the tmpfs
FALLBACK_FOLDERS = 20
DECISION = "decision.json"
_BAD_DISK = (errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENODEV, errno.ENXIO, errno.ESTALE)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def folder_name(incident):
    """`<UTC time>-<code>-<id>`; the same for every hook that sees this incident."""
    opened = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(incident.opened))
    return "%s-%s-%s" % (opened, shelf.safe(incident.code), shelf.safe(incident.id))


class Folder:
    """One evidence folder. `created`: this process may write to it; any other opener may only name it.

    `notes`: what had to be said (fallback, things cut), for events. `path`: where it is now.
    """

    def __init__(self, root, base, manifest, created):
        self.root, self.id = root, manifest["id"]
        self.manifest, self.created = manifest, created
        self.path = os.path.join(base, manifest["name"])
        self.notes = list(manifest["notes"])
        self._early = {}            # name -> bytes of the small parts, in case the disk fails later

    @property
    def used(self):
        """Bytes kept so far."""
        return sum(entry["bytes"] for entry in self.manifest["items"])

    def keep(self, name, data, why="", seconds=None):
        """Keep `data` (bytes) under `name`; what is over the folder's limit is cut at the front, and said."""
        if not self.created:
            return
        room = max(0, self.manifest["limit"] - self.used)
        if len(data) > room:
            why = "cut to the last %d of %d bytes (limit of the folder)%s" % (
                room, len(data), why and "; " + why)
            data = data[len(data) - room:]
        self._store(name, data)
        self._record(manifests.item(name, data, why, seconds))

    def keep_json(self, name, plain):
        """Keep a plain value as JSON."""
        data = json.dumps(plain, separators=(",", ":")).encode("ascii")
        self._early[name] = data
        self.keep(name, data)

    def lack(self, name, why, seconds=None):
        """Note that `name` could not be collected, and why."""
        if self.created:
            self._record(manifests.item(name, None, why, seconds))

    def missing(self):
        """Names of what could not be collected."""
        return [entry["name"] for entry in self.manifest["items"] if entry["status"] == manifests.ITEM_MISSING]

    def say(self, note):
        """Put a note into the manifest and into `notes`."""
        self.notes.append(note)
        self.manifest["notes"].append(note)

    def _record(self, entry):
        manifests.put(self.manifest, entry)
        self.save()

    def save(self):
        """Write the manifest as it stands."""
        self.manifest["updated"] = round(time.time(), 3)
        self._store(manifests.NAME, manifests.encode(self.manifest))

    def _store(self, name, data):
        try:
            _write(self.path, name, data)
            return
        except OSError as exc:
            if exc.errno not in _BAD_DISK or self.manifest["fallback"]:
                raise StateError("cannot keep evidence in %s: %s" % (self.path, exc.strerror)) from exc
            why, number = "writing to %s failed: %s" % (self.path, exc.strerror), exc.errno
        try:
            self._move(why, number)
            _write(self.path, name, manifests.encode(self.manifest) if name == manifests.NAME else data)
        except OSError as exc:
            raise StateError("%s; and in %s: %s" % (why, self.path, exc.strerror)) from exc

    def _move(self, why, number):
        """Go on in the tmpfs, and take along what can still be read."""
        old, base = self.path, shelf.bases(self.root)[1]
        _prepare(base)
        shelf.remove_oldest(base, FALLBACK_FOLDERS, {self.id})
        self.path = os.path.join(base, self.manifest["name"])
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        self.manifest["limit"] = min(self.manifest["limit"], FALLBACK_MB << 20)
        self.manifest["fallback"] = why
        self.say("evidence is in %s: %s" % (self.path, why))
        for entry in list(self.manifest["items"]):
            if entry["status"] != manifests.ITEM_OK:
                continue
            data = self._early.get(entry["name"])
            if data is None:
                data = _read_small(os.path.join(old, entry["name"]), self.manifest["limit"])
            if data is None:
                manifests.put(self.manifest, manifests.item(entry["name"], None, "was lost: " + why))
            else:
                _write(self.path, entry["name"], data)
        if number in (errno.ENOSPC, errno.EDQUOT):
            shelf.remove(old)       # it is all here now, and the space is wanted

    def facts(self):
        """The Facts that were kept, or None."""
        plain = _read_json(os.path.join(self.path, "facts.json"))
        return None if plain is None else facts_module.from_plain(plain)

    def collect_quick(self, cfg, spec, jobs, deadline):
        """The rest of the quick evidence, within `deadline` seconds; see collectors.collect."""
        from slurm_gpuhealth.evidence import collectors
        if self.created:
            collectors.collect(self, cfg, spec, jobs, deadline)

    def decide(self, situation, plan, findings=None):
        """Keep the decision, and the situation as it was when that was made (slurmctld asked meanwhile)."""
        if not self.created:
            return
        self.keep_json("situation.json", model.to_plain(situation))
        decision = {"v": 1, "plan": model.to_plain(plan)}
        if findings is not None:
            decision["findings"] = model.to_plain(tuple(findings))
        self.keep_json(DECISION, decision)

    def finish(self):
        """Close the manifest: the folder is complete."""
        if self.created:
            self.manifest["state"] = manifests.FINAL
            self.save()
            sync(self.path)


def open_incident(root, cfg, incident, facts, situation, policy, findings, klog_lines, mountinfo=None):
    """Make the folder of an incident and keep what must be kept before anything changes: a Folder.

    Facts, situation, policy and the kernel-log window go in first. If the folder is there already, it is
    returned as it is (`created` False). `policy`: the configuration; what is secret in it is not kept.
    `klog_lines`: raw lines around the fault. Raises StateError when nothing can be written anywhere.
    """
    known = shelf.find_all(root, incident.id)
    name = os.path.basename(known[0]) if known else folder_name(incident)
    manifest = manifests.new(incident, name, facts.node, subject_text(incident.subject))
    if known:
        return Folder(root, os.path.dirname(known[0]), manifest, False)
    base, manifest["limit"], why = _choose(root, cfg, facts, mountinfo or "/proc/self/mountinfo")
    folder = _make(root, base, manifest, why)
    if not folder.created:
        return folder
    folder.save()
    folder.keep_json("facts.json", facts_module.to_plain(facts))
    folder.keep_json("situation.json", model.to_plain(situation))
    folder.keep_json("policy.json", without_secrets(policy))
    folder.keep_json("findings.json", model.to_plain(tuple(findings)))
    window = "".join(line.rstrip("\n") + "\n" for line in klog_lines).encode("utf-8", "surrogateescape")
    folder.keep("kernel-window.log", window, "" if klog_lines else "no lines")
    sync(folder.path)
    return folder


def without_secrets(policy):
    """The policy without what tells outsiders how to reach the site's notification service."""
    kept = dict(policy)
    if "notify" in kept:
        kept["notify"] = {"command": ["(set)"] if kept["notify"].get("command") else [],
                          "webhook": "(set)" if kept["notify"].get("webhook") else ""}
    return kept


def _choose(root, cfg, facts, mountinfo):
    """(base, limit in bytes, why the fallback or "")."""
    base, fallback = shelf.bases(root)
    limit = cfg["evidence"]["max_folder_mb"] << 20
    why = trouble.of_path(root, base, facts.klog, mountinfo)
    if not why:
        try:
            room = trouble.room(base)
        except OSError as exc:
            room, why = 0, "%s: %s" % (base, exc.strerror)
        if not why and room <= 1 << 20:
            why = "the file system of %s is full" % base
        limit = min(limit, room)
    if why:
        return fallback, min(cfg["evidence"]["max_folder_mb"], FALLBACK_MB) << 20, why
    return base, limit, ""


def _make(root, base, manifest, why):
    """Make the folder in `base`, or in the tmpfs where that fails. why: of the fallback, "" for none yet."""
    try:
        _prepare(base)
        os.mkdir(os.path.join(base, manifest["name"]), 0o700)
    except FileExistsError:
        return Folder(root, base, manifest, False)      # another hook was faster
    except OSError as exc:
        if why:
            raise StateError("cannot keep evidence in %s: %s" % (base, exc.strerror)) from exc
        manifest["limit"] = min(manifest["limit"], FALLBACK_MB << 20)
        return _make(root, shelf.bases(root)[1], manifest,
                     "making a folder in %s failed: %s" % (base, exc.strerror))
    folder = Folder(root, base, manifest, True)
    if why:
        folder.manifest["fallback"] = why
        folder.say("evidence is in %s: %s" % (folder.path, why))
        shelf.remove_oldest(base, FALLBACK_FOLDERS, {folder.id})
    return folder


def _prepare(base):
    """Make the store's folder; refuse one that others could write to."""
    parent = os.path.dirname(base)
    if not os.path.isdir(parent):
        make_folder(parent, 0o711 if parent.endswith(paths.RUN) else 0o700)
    make_folder(base, 0o700)
    seen = os.lstat(base)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o022:
        raise PermissionError(errno.EPERM, "not a folder that only its owner can write to")


def _write(folder, name, data):
    """Put a file into a folder in one step. Raises OSError."""
    temporary = os.path.join(folder, "%s%s.%d" % (manifests.TEMPORARY, name, os.getpid()))
    try:
        fd = os.open(temporary, _NEW, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
        finally:
            os.close(fd)
        os.rename(temporary, os.path.join(folder, name))
    except OSError:
        # What is left under a temporary name is no evidence.
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _read_small(path, limit):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as handle:
            return handle.read(limit)
    except OSError:
        return None


def _read_json(path):
    data = _read_small(path, 64 << 20)
    try:
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


def sync(folder):
    """Get a folder onto the disk, so that it survives the node. An error here is no reason to lose the rest."""
    for name in os.listdir(folder) + ["."]:
        try:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        with contextlib.suppress(OSError):      # the next write says more
            os.fsync(fd)
        os.close(fd)


def reopen(root, path, again=False):
    """The Folder at `path`, to go on with it in another process. A final one can only be named, unless `again`
    (the slow part adds to it)."""
    manifest = manifests.load(path)
    manifest["name"] = os.path.basename(path.rstrip("/"))
    return Folder(root, os.path.dirname(path.rstrip("/")), manifest,
                  again or manifest["state"] != manifests.FINAL)
