"""The newest acceptable checkpoint of a run: `candidates(folder)` and `latest(folder, ...)`.

A run's folder holds checkpoints as files or folders, also one level down; it may be a checkpoint itself, or one
file. Newest is the highest step recorded in the files, then the time of change. What is recorded in a pointer
(`latest`, a link) is never believed: those are written before the parts are whole.
"""
from __future__ import annotations

import errno
import os
import re
import stat
from collections import namedtuple

from slurm_gpuhealth.checkpoint import mounted
from slurm_gpuhealth.checkpoint.formats import FOLDER_FORMATS, load
from slurm_gpuhealth.checkpoint.safe import SYSTEM_NAMES, Folder, printable, scan
from slurm_gpuhealth.checkpoint.verdict import (
    REJECTED,
    STRUCTURE,
    UNKNOWN,
    VERIFIED,
    WEIGHTS,
    Bad,
    Clock,
    Trouble,
    Unclear,
    trouble_of,
)
from slurm_gpuhealth.checkpoint.verify import verify

MAX_LOOKED = 2000       # candidates whose step is read, newest change first
MAX_PASSED = 50         # checkpoints passed over that are named
_PEEK_SHARE = 0.5       # of the time for finding the order, at most
_RESERVE = 0.2          # seconds kept for the answer

Found = namedtuple("Found", "path mtime verdict")
Found.__doc__ = """A candidate. path: of its file or folder. mtime: seconds. verdict: Verdict at level "structure"."""

Listing = namedtuple("Listing", "found leftovers files troubles unlooked")
Listing.__doc__ = """found: list of Found, newest first. leftovers: [(path, reason, mtime)] of temporary names,
pointers and unsealed folders. files: True when there is any file at all. troubles: [(path, reason)] of what could
not be looked into. unlooked: number of candidates whose turn did not come."""

Chosen = namedtuple("Chosen", "path step level format fp world_size missing mtime", defaults=(0.0,))
Chosen.__doc__ = """The checkpoint to resume from. level: its verdict. fp: fingerprint of its files at that moment.
mtime: when it was written, seconds."""

Resolution = namedtuple("Resolution", "outcome chosen passed reason", defaults=(None, (), ""))
Resolution.__doc__ = """outcome: "found", "empty" (no files at all), "none-acceptable" (files are there) or
"could-not-look". chosen: Chosen or None. passed: tuple of (path, reason), newest first. reason: one line about
the outcome, or ""."""

Known = namedtuple("Known", "path fp level step", defaults=("", "", "", None))
Known.__doc__ = """A checkpoint that was judged before; it stands while the fingerprint is the same."""

_LEFTOVER = re.compile(
    r"""\A(?:\.|tmp|temp\b|\#)          # .tmpA1B2 (safetensors), tmp-checkpoint-10 (transformers)
      | (?:\.|-|_)(?:tmp|temp|part|partial|incomplete|unfinished|writing|inprogress|lock|old|bak|swp|deleted)
        (?:[-.][A-Za-z0-9_-]*)?\Z      # 10.orbax-checkpoint-tmp-17, x.ckpt.part
      | orbax-checkpoint-tmp | ~\Z""", re.VERBOSE | re.IGNORECASE)
_POINTER = re.compile(r"(?:latest|last|latest_checkpointed_iteration\.txt|latest_universal|checkpoint|LATEST)\Z")
# Never checkpoints, whatever is in them: not opened. Compared in lower case.
_OTHER_SUFFIXES = frozenset((
    "json", "txt", "log", "out", "err", "yaml", "yml", "toml", "ini", "cfg", "md", "py", "sh", "csv", "tsv", "jsonl",
    "png", "jpg", "svg", "pdf", "html", "lock", "pid", "sum", "sha256", "model", "jinja"))
_CHECKPOINT_SUFFIXES = frozenset(("pt", "pth", "ckpt", "bin", "safetensors", "pkl", "tar", "h5", "npz"))
_STEP_NAME = re.compile(r"(?:step|iter|iteration|checkpoint|ckpt|ba)[-_=]?(\d{1,15})", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,15}")


def candidates(path, until=None):
    """The checkpoints of a run's folder, newest first: list of Found. Raises Trouble where it cannot be looked at."""
    return listing(path, Clock(until)).found


def listing(path, clock):
    """Listing of a run's folder (or of one file). Trouble("missing") when it is not there and its parent is."""
    walk = _Walk(clock)
    walk.start(path)
    found, files, unlooked = walk.judge()
    walk.leftovers.sort(key=lambda one: -one[2])
    return Listing(_ordered(found), walk.leftovers, files, walk.troubles, unlooked)


def latest(path, accepts=(VERIFIED, STRUCTURE), level="full", until=None, known=None):
    """The newest checkpoint whose verdict is in `accepts`: a Resolution. Never raises for what is on disk.

    level "full": checksums of the newest where the time allows, else its structure, which is then said. until:
    monotonic time by which to answer. known: Known, a checkpoint judged before. "empty" means what it says:
    nothing is there.
    """
    path = os.path.abspath(path)
    clock = Clock(None if until is None else until - _RESERVE)
    left = clock.left()
    try:
        looked = listing(path, clock if left is None else clock.shorter(max(left, 0) * _PEEK_SHARE))
    except Trouble as exc:
        if exc.kind != "missing":
            return Resolution("could-not-look", reason=str(exc))
        return Resolution("empty", reason="%s is not there" % printable(path))
    chosen, passed, trouble = _choose(looked, accepts, level, clock, known or Known())
    passed += [(old, reason) for old, reason, mtime in looked.leftovers
               if chosen is None or mtime >= chosen.mtime]
    passed += looked.troubles
    named = tuple(passed[:MAX_PASSED])
    if chosen is not None:
        return Resolution("found", chosen, named)
    if trouble or looked.troubles:
        return Resolution("could-not-look", None, named, trouble or looked.troubles[0][1])
    if looked.files:
        return Resolution("none-acceptable", None, named, "files are in %s, no checkpoint among them is accepted"
                          % printable(path))
    away = mounted.missing_mount(path)
    if away:
        return Resolution("could-not-look", reason="%s is not mounted" % printable(away))
    return Resolution("empty", reason="%s is empty" % printable(path))


def _choose(looked, accepts, level, clock, known):
    """(Chosen or None, [(path, reason)], why it could not be looked at or "")."""
    passed: list = []
    trouble = ""
    for found in looked.found:
        verdict, late = _look_closer(found, accepts, level, clock, known)
        if verdict.verdict in accepts:
            fp = _fingerprint(found.path, clock)
            return Chosen(found.path, verdict.step, verdict.verdict, verdict.format, fp, verdict.world_size,
                          tuple(verdict.missing), found.mtime), passed, ""
        passed.append((found.path, late or _why(verdict)))
        if late or verdict.trouble in ("io", "time"):
            trouble = trouble or late or verdict.reason
    if looked.unlooked:
        trouble = trouble or "%d checkpoints were not looked at in time" % looked.unlooked
    return None, passed, trouble


def _look_closer(found, accepts, level, clock, known):
    """(Verdict, why its checksums could not be had or "") of a candidate, at the level asked for."""
    verdict = found.verdict
    if verdict.verdict in (REJECTED, UNKNOWN) or (verdict.verdict == WEIGHTS and WEIGHTS not in accepts):
        return verdict, ""
    remembered = found.path == known.path and known.fp and known.level in accepts
    if remembered and _fingerprint(found.path, clock) == known.fp:
        return verdict._replace(verdict=known.level), ""
    if level == "full":
        full = verify(found.path, "full", clock.until)
        if full.trouble != "time":
            return full, ""
        return verdict, full.reason
    return verdict, ""


def _why(verdict):
    if verdict.verdict in (REJECTED, UNKNOWN):
        return verdict.reason
    return verdict.verdict + (": " + verdict.reason if verdict.reason else "") + ", which is not accepted"


def fingerprint(path, until=None):
    """Short text that changes when any file of the checkpoint does: names, sizes, times, inodes. "" if unreadable."""
    return _fingerprint(path, Clock(until))


def _fingerprint(path, clock):
    import hashlib
    lines = []
    try:
        about = os.stat(path, follow_symlinks=False)
        if stat.S_ISDIR(about.st_mode):
            with Folder(path) as folder:
                files = folder.tree(clock)
        else:
            files = {"": about}
    except (OSError, Bad, Unclear, Trouble):
        return ""
    for name, one in sorted(files.items()):
        lines.append("%s %d %d %d" % (name, one.st_size, one.st_mtime_ns, one.st_ino))
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:16]


class _Walk:
    """What lies in a run's folder: collected first, judged after."""

    def __init__(self, clock):
        self.clock = clock
        self.places = []        # (mtime, path) of what may be a checkpoint
        self.unsealed = []      # (mtime, path, [places in it]) of folders without a format of their own
        self.leftovers, self.troubles = [], []
        self.any_file = self.any_seal = False
        self.count = [0]

    def start(self, path):
        try:
            about = os.stat(path)
        except OSError as exc:
            raise _missing_or_trouble(path, exc) from None
        if os.path.islink(path):
            path = os.path.realpath(path)       # the user's own way to it; nothing below is followed
        if not stat.S_ISDIR(about.st_mode):
            self.any_file = True
            self.places.append((about.st_mtime, path))
            return
        try:
            names = scan(path, self.clock, self.count)
            own = self._format(path)
        except OSError as exc:
            raise Trouble("io", "%s: %s" % (printable(path), exc.strerror)) from None
        if own:
            self.places.append((about.st_mtime, path))
        self._entries(path, names, own)

    def _entries(self, path, names, own):
        for name, kind in sorted(names.items()):
            full = os.path.join(path, name)
            if name in SYSTEM_NAMES or name.startswith(".nfs"):
                continue
            if kind != "folder":
                self._file(full, name, kind, own)
            elif self._is_leftover(full, name, names):
                self.any_file = self.any_file or self._has_entries(full)
            else:
                self._inside(full)

    def _inside(self, path):
        """A folder right inside the run's: a checkpoint, or one that holds some."""
        try:
            names = scan(path, self.clock, self.count)
            mtime = os.stat(path, follow_symlinks=False).st_mtime
            own = self._format(path)
            if own:
                self.any_file = True
                self.any_seal = self.any_seal or own == "sealed"
                self.places.append((mtime, path))
                return
        except OSError as exc:
            if exc.errno in (errno.ENOENT, errno.ENOTDIR):     # it went away meanwhile
                return
            self.troubles.append((path, trouble_of(exc).args[0]))
            return
        before = len(self.places)
        for name, kind in sorted(names.items()):
            full = os.path.join(path, name)
            if name in SYSTEM_NAMES or name.startswith(".nfs"):
                continue
            if kind != "folder":
                self._file(full, name, kind, "")
            elif self._has_entries(full):
                self.any_file = True
                self._deeper(full, name, names)
        inner = self.places[before:]
        if inner and all(os.path.dirname(one) == path and not os.path.isdir(one) for _, one in inner):
            del self.places[before:]
            self.unsealed.append((mtime, path, inner))

    def _deeper(self, full, name, names):
        """A folder two levels down: only one that a format claims counts. One that cannot be opened (somebody
        else's) hides nothing of what can."""
        try:
            if not self._is_leftover(full, name, names) and self._format(full):
                self.places.append((self._mtime(full), full))
        except OSError as exc:
            if exc.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.troubles.append((full, trouble_of(exc).args[0]))

    def _file(self, full, name, kind, own):
        if kind == "link":
            self.any_file = True
            self.leftovers.append((full, "a pointer", self._mtime(full)))
            return
        self.any_file = True
        suffix = name.rpartition(".")[2].lower() if "." in name else ""
        if own or suffix in _OTHER_SUFFIXES or name.startswith("events.out.tfevents") or _POINTER.match(name):
            return
        if _LEFTOVER.search(name):
            self.leftovers.append((full, "a temporary name", self._mtime(full)))
            return
        about = self._stat(full)
        if about is not None and stat.S_ISREG(about.st_mode) and about.st_size == 0:
            self.leftovers.append((full, "an empty file", about.st_mtime))
            return
        self.places.append((about.st_mtime if about is not None else 0.0, full))

    def _is_leftover(self, full, name, names):
        if _LEFTOVER.search(name):
            self.leftovers.append((full, "a temporary name", self._mtime(full)))
            return True
        if name + "-unfinished" in names:       # NeMo marks a running save by a sibling
            self.leftovers.append((full, "marked as unfinished", self._mtime(full)))
            return True
        return False

    def _format(self, path):
        """Name of the folder format that claims `path`, "" for none. OSError passes."""
        try:
            with Folder(path) as folder:
                for name in FOLDER_FORMATS:
                    if load(name).matches(folder, self.clock):
                        return name
        except (Bad, Unclear):
            return "unknown"
        return ""

    def _has_entries(self, path):
        try:
            with os.scandir(path) as entries:
                return any(True for _ in entries)
        except OSError:
            return True     # what cannot be looked into is not empty

    def _stat(self, path):
        try:
            return os.stat(path, follow_symlinks=False)
        except OSError:
            return None     # verify says why, where it matters

    def _mtime(self, path):
        about = self._stat(path)
        return about.st_mtime if about is not None else 0.0

    def judge(self):
        """([Found], any files?, number of candidates not looked at): each candidate at level "structure"."""
        for mtime, path, inner in self.unsealed:
            if self.any_seal:
                self.leftovers.append((path, "not sealed, and others here are", mtime))
            else:
                self.places += inner
        self.places.sort(reverse=True)
        found, unlooked = [], max(0, len(self.places) - MAX_LOOKED)
        for number, (mtime, path) in enumerate(self.places[:MAX_LOOKED]):
            try:
                self.clock.check()
            except Trouble:
                unlooked += min(len(self.places), MAX_LOOKED) - number
                break
            verdict = verify(path, "structure", self.clock.until)
            suffix = path.rpartition(".")[2].lower()
            if verdict.format == "" and not verdict.trouble and suffix not in _CHECKPOINT_SUFFIXES \
                    and not os.path.isdir(path):
                continue        # just some file
            found.append(Found(path, mtime, verdict))
        return found, self.any_file, unlooked


def _missing_or_trouble(path, exc):
    """Trouble for a run's folder that cannot be looked at; kind "missing" only where it is truly not there."""
    kind = trouble_of(exc).kind
    text = "%s: %s" % (printable(path), exc.strerror)
    if kind != "gone" or exc.errno != errno.ENOENT or os.path.islink(path):
        return Trouble("io", text)
    parent, name = os.path.split(path.rstrip("/"))
    try:
        # Opening a folder makes an NFS client ask the server again: its "not there" may be a minute old.
        with Folder(os.path.realpath(parent or ".")) as folder:
            if name in folder.names(Clock()):
                os.stat(path)
                return Trouble("io", text + ", then it was there")
    except OSError as second:
        return Trouble("io", "%s: %s" % (printable(parent), second.strerror))
    away = mounted.missing_mount(path)
    if away:
        return Trouble("io", "%s is not mounted" % printable(away))
    return Trouble("missing", text)


def _ordered(found):
    """Newest first: by recorded step, then change. One without a step stands where its change puts it; one that
    is not whole, where the number in its name does."""
    with_step: list = []
    without: list = []
    for one in found:
        step = one.verdict.step
        if step is None and one.verdict.verdict in (REJECTED, UNKNOWN):
            step = _number_in(os.path.basename(one.path))
        (without if step is None else with_step).append((step, one.mtime, one))
    with_step.sort(key=lambda item: item[:2], reverse=True)
    without.sort(key=lambda item: item[1])
    ordered = [item[2] for item in with_step]
    for _, mtime, one in without:
        at = next((at for at, other in enumerate(ordered) if other.mtime <= mtime), len(ordered))
        ordered.insert(at, one)
    return ordered


def _number_in(name):
    named = _STEP_NAME.findall(name)
    numbers = named or _NUMBER.findall(name.partition(".")[0])
    return int(numbers[-1]) if numbers else None


def to_plain(resolution):
    """A Resolution as dicts and lists."""
    chosen = resolution.chosen
    return {"outcome": resolution.outcome, "chosen": dict(chosen._asdict()) if chosen else None,
            "passed": [list(item) for item in resolution.passed], "reason": resolution.reason}


def from_plain(plain):
    """A Resolution from what `to_plain` made."""
    chosen = plain["chosen"]
    if chosen is not None:
        chosen = Chosen(**chosen)._replace(missing=tuple(chosen["missing"]))
    return Resolution(plain["outcome"], chosen, tuple(tuple(item) for item in plain["passed"]), plain["reason"])
