"""Each configured mount is there, of the right type, answers, and can be written where it should be.

- Not in the mount table: `GH-MNT-GONE`. Another type than `type` of the configuration: `GH-MNT-TYPE`.
- An automounter's path that nothing was mounted at although it was opened is not mounted either.
- Should be writable and is read-only: `GH-MNT-RO`. Stale handle, I/O error, dead daemon: `GH-MNT-ERR`. Without one of
  the `options` that its entry asks for (`*` stands for any text: `vers=4*`): `GH-MNT-OPT`.
- No answer: late once is a warning (`GH-MNT-LATE`); late in two rounds, or its process cannot be ended, is a fault
  (`GH-MNT-HANG`).
- Full, or over quota: `GH-MNT-FULL`, a warning, as users fill disks and draining a node frees nothing.
- Root may not write (root_squash): no fault on a network mount; the mount's options speak then.

Unknown: the mount table could not be read, or access was denied on a local file system.
"""
from __future__ import annotations

from errno import EDQUOT, ENOSPC, EROFS

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import FAILED, HUNG, LATE, finding, source
from slurm_gpuhealth.model import UNREAD, Subject
from slurm_gpuhealth.parse.mountinfo import is_network
from slurm_gpuhealth.parse.wildcard import matches

POLICY = {"mounts": "mounts"}
# ext4 names the last two when it gave up after errors (fs/ext4/super.c, Linux 6.15).
_READ_ONLY = {"ro", "emergency_ro", "shutdown"}


def check(facts, limits):
    """Findings about the mounts of the configuration. limits: mounts (its list `mounts`)."""
    seen = {mount.path: mount for mount in facts.mounts}
    found = []
    for wanted in limits["mounts"] or ():
        subject = Subject("mount", name=wanted["path"])
        status = source(facts, "mount:" + wanted["path"])
        mount = seen.get(wanted["path"], F.Mount(path=wanted["path"]))
        found += _no_answer(subject, status) or _state(subject, mount, wanted)
    return found


def _no_answer(subject, status):
    if status is None or status.outcome not in (LATE, HUNG, FAILED):
        return []
    if status.outcome == FAILED:
        return [finding("GH-MNT-ERR", subject, status.detail, severity=UNREAD)]
    if status.outcome == HUNG or status.rounds >= 2:
        return [finding("GH-MNT-HANG", subject, "no answer", pid=status.pid, rounds=status.rounds,
                        detail=status.detail)]
    return [finding("GH-MNT-LATE", subject, status.detail or "late", rounds=status.rounds)]


def _state(subject, mount, wanted):
    if not F.is_known(mount.present):
        return [finding("GH-MNT-ERR", subject, "was not looked at", severity=UNREAD)]
    if not mount.present:
        return [finding("GH-MNT-GONE", subject, "" if mount.error is None else mount.error.detail)]
    if mount.fstype == "autofs" and "autofs" not in (wanted.get("type") or ()):
        return [finding("GH-MNT-GONE", subject, "automounter did not mount it")]
    types = wanted.get("type") or ()
    if types and mount.fstype not in types:
        return [finding("GH-MNT-TYPE", subject, mount.fstype, " or ".join(types))]
    over_network = wanted.get("network") in (True, "true") or (
        wanted.get("network", "auto") == "auto" and is_network(mount.fstype))
    if mount.error is not None:
        return _trouble(subject, mount.error, over_network)
    options, asked = mount.options.split(","), wanted.get("options") or ()
    if (wanted.get("writable") or "rw" in asked) and _READ_ONLY & set(options):
        return [finding("GH-MNT-RO", subject, source=mount.source)]
    if wanted.get("writable") and not F.is_known(mount.writable):
        trouble = _trouble(subject, mount.writable, over_network)
        if trouble:
            return trouble
    absent = [one for one in asked if not any(matches(option, one) for option in options)]
    return [finding("GH-MNT-OPT", subject, "without " + ",".join(absent), options=mount.options)] if absent else []


def _trouble(subject, problem, over_network):
    code = problem.code
    if code == EROFS:
        return [finding("GH-MNT-RO", subject, errno=code)]
    if code in (ENOSPC, EDQUOT):
        return [finding("GH-MNT-FULL", subject, problem.detail, errno=code)]
    if problem.reason == F.DENIED:
        # The server answered, and root is nobody there: that is how such mounts are set up.
        return [] if over_network else [finding("GH-MNT-ERR", subject, problem.detail, severity=UNREAD, errno=code)]
    if code is None:
        return [finding("GH-MNT-ERR", subject, problem.detail or problem.reason, severity=UNREAD)]
    return [finding("GH-MNT-ERR", subject, problem.detail, errno=code)]
