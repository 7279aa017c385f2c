"""Local file systems and disks: what the kernel log says of them, and what their mount options show.

- Made read-only or shut down by the kernel after errors: `GH-FS-RO`. A fault where the node needs the file system
  (limit `needed`, and the mounts of the configuration), else a warning. Also seen without the log: a mount that was
  asked to be writable on a file system that is read-only now, or the kernel's own emergency_ro and shutdown. Mounted
  read-only on purpose is another thing.
- Errors of a file system that goes on: `GH-FS-ERROR`, a warning; a fault from `fatal_errors` lines in one round on
  (0: never), where the node needs it.
- I/O errors of a disk: `GH-DISK-IO`, a warning where something is mounted from it, else a note: a stick, a CD, one
  path of several.

Left out: loop devices (users' image files), what the log of a file system says of its past, a full file system (that
is the users' doing), messages of an earlier boot.

Unknown: the kernel log or the table of mounts could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks import _node
from slurm_gpuhealth.checks._shared import finding, log_unread
from slurm_gpuhealth.model import FATAL, NOTE, WARNING, Subject

LIMITS = {"needed": ("/ /usr /var /tmp", "mount points that the node needs, with blanks between them, beside mounts:"),
          "fatal_errors": (0, "lines of errors about one needed file system in one round from which on it is a fault")}
POLICY = {"mounts": "mounts"}

# Devices whose errors are no disk's: users' image files, removable media, memory.
_NO_DISK = ("loop", "sr", "fd", "ram", "zram", "nbd")
# FAT at each mount after a power cut: the boot partition of many a healthy node (fs/fat/inode.c).
_NOT_CLEAN = "was not properly unmounted"
# File systems that the kernel itself turns read-only.
_OWN_READ_ONLY = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs")


def check(facts, limits):
    """Findings about local file systems. limits: needed (text), fatal_errors (lines), mounts (configuration)."""
    found = log_unread(facts)
    if not F.is_known(facts.filesystems):
        found += _node.unread("filesystems", facts.filesystems)
    read_only: dict = {}
    errors: dict = {}
    disks: dict = {}
    for event in _node.events(facts, "fs_readonly", "fs_error", "block_io", "md_failed"):
        about = event.data or {}
        device = str(about.get("device") or "")
        if device.startswith(_NO_DISK) or about.get("history") or about.get("full") or _NOT_CLEAN in event.line:
            continue
        if event.kind == "fs_readonly" or about.get("shutdown"):
            what = "shut down" if about.get("shutdown") else "read-only"
            read_only.setdefault(device, what + " after errors")
        elif event.kind == "fs_error":
            errors.setdefault(device, []).append(event)
        else:
            disks.setdefault(device, []).append(event)
    read_only = {**_by_options(facts), **read_only}
    for device, seen in sorted(read_only.items()):
        found.append(_read_only(facts, device, seen, limits))
    found += [_errors(facts, device, events, limits) for device, events in sorted(errors.items())
              if device not in read_only]
    return found + [_disk(facts, device, events) for device, events in sorted(disks.items())]


def _by_options(facts):
    """{device: what its options show}. The first option is the mount's own: "rw" there and "ro" behind it means that
    the file system below turned read-only by itself (proc(5): mount options before super options)."""
    found = {}
    for one in facts.filesystems if F.is_known(facts.filesystems) else ():
        options = one.options.split(",")
        if "emergency_ro" in options or "shutdown" in options:
            found[one.device] = "shut down after errors" if "shutdown" in options else "read-only after errors"
        elif options[0] == "rw" and "ro" in options and one.fstype in _OWN_READ_ONLY:
            found[one.device] = "turned read-only"
    return found


def _where(facts, device, limits):
    """(mount point that matters most or "", whether the node needs it) of a device."""
    mounted = _node.mounted_from(facts, device) or ()
    paths = sorted({one.path for one in mounted}, key=lambda path: (not _node.is_needed(path, limits), path))
    return (paths[0], _node.is_needed(paths[0], limits)) if paths else ("", False)


def _subject(path, device):
    return Subject("mount", name=path or "/dev/" + (device or "?")[:40])


def _read_only(facts, device, seen, limits):
    path, needed = _where(facts, device, limits)
    if not device or not F.is_known(facts.filesystems):
        # Nobody knows whose it is. A node does not go on with a disk that fails.
        return finding("GH-FS-RO", _subject(path, device), seen, device=device, severity=WARNING)
    if not path:
        return finding("GH-FS-RO", _subject(path, device), seen + ", not mounted now", device=device, severity=NOTE)
    return finding("GH-FS-RO", _subject(path, device), seen, device=device, severity=FATAL if needed else WARNING)


def _errors(facts, device, events, limits):
    path, needed = _where(facts, device, limits)
    count = sum(event.count for event in events)
    severity = FATAL if needed and 0 < limits["fatal_errors"] <= count else None
    if device and not path and F.is_known(facts.filesystems):
        severity = NOTE     # a stick, or what somebody tried to mount: nothing of the node's lies on it
    return finding("GH-FS-ERROR", _subject(path, device), "%d error%s" % (count, "s" * (count > 1)),
                   severity=severity, since=events[0].time, device=device, count=count,
                   line=events[-1].line[:200])


def _disk(facts, device, events):
    mounted = _node.mounted_from(facts, device)
    count = sum(event.count for event in events)
    failed = any(event.kind == "md_failed" for event in events)
    used = mounted is None or bool(mounted) or failed
    return finding("GH-DISK-IO", _node.part(device), "failed in its array" if failed else "%d I/O error%s" % (
        count, "s" * (count > 1)), severity=None if used else NOTE, since=events[0].time, count=count,
        mounted=sorted({one.path for one in mounted or ()}), line=events[-1].line[:200])
