"""/proc/self/mountinfo (and, for old fixtures, /proc/mounts): which file systems are mounted where.

Pure. Format: proc(5), "mountinfo": blanks and the like in paths are octal escapes, a varying number of
optional fields ends at a lone "-".
"""
from __future__ import annotations

from collections import namedtuple

Entry = namedtuple("Entry", "path fstype source options super_options number", defaults=("0:0",))
Entry.__doc__ = """One mounted file system. path: mount point. options: those of the mount ("rw,noatime");
super_options: those of the file system, which may be "ro" while the mount says "rw". number: "8:1", device number of
the block device below; "0:33" for what has none."""

# File systems that need the network: they get the longer deadline, and EACCES for root means root_squash.
# Names as in /proc/filesystems and in mountinfo, looked up 2026-11-30 in the kernel tree and vendors' manuals.
NETWORK_TYPES = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "lustre_tgt", "gpfs", "beegfs",
    "beegfs_nodev", "fhgfs", "wekafs", "pvfs2", "orangefs", "ocfs2", "gfs2", "panfs", "glusterfs", "fuse.glusterfs",
    "fuse.ceph", "fuse.ceph-fuse", "fuse.sshfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.juicefs", "fuse.cvmfs2",
    "fuse.mountpoint-s3", "vast", "hammerspace", "quobyte", "fuse.quobyte", "fuse.rclone", "fuse.goofys", "virtiofs",
    "coda",
))


def is_network(fstype):
    """True for a file system type that needs the network. Any fuse type may block on a daemon, so it counts."""
    return fstype in NETWORK_TYPES or fstype.startswith("fuse.") or fstype == "fuse"


def unescape(text):
    """Undo the kernel's octal escapes (\\040 blank, \\011 tab, \\012 newline, \\134 backslash, \\043 hash)."""
    if "\\" not in text:
        return text
    out, at = [], 0
    while at < len(text):
        digits = text[at + 1:at + 4]
        if text[at] == "\\" and len(digits) == 3 and not digits.strip("01234567"):
            out.append(chr(int(digits, 8) & 0xff))
            at += 4
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def parse(text):
    """Entries in the order of the file: mounted later comes later. Lines that are neither form are left out."""
    entries = []
    for line in text.split("\n"):
        fields = line.split(" ")
        if "-" in fields[6:]:
            dash = fields.index("-", 6)
            if len(fields) >= dash + 3:
                more = fields[dash + 3] if len(fields) > dash + 3 else ""
                entries.append(Entry(unescape(fields[4]), fields[dash + 1], unescape(fields[dash + 2]),
                                     fields[5], more, fields[2]))
        elif len(fields) == 6 and fields[4].isdigit() and fields[5].isdigit():
            # /proc/mounts: source path type options 0 0
            entries.append(Entry(unescape(fields[1]), fields[2], unescape(fields[0]), fields[3], fields[3]))
    return entries


def find(entries, path):
    """The entry that is visible at mount point `path`: the last one mounted there, or None."""
    wanted = path.rstrip("/") or "/"
    found = None
    for entry in entries:
        if entry.path == wanted:
            found = entry
    return found


def options_of(entry):
    """All options in one text, the mount's first, each once."""
    seen = []
    for option in (entry.options + "," + entry.super_options).split(","):
        if option and option not in seen:
            seen.append(option)
    return ",".join(seen)


def is_read_only(entry):
    """True when mount or file system is read-only."""
    return "ro" in entry.options.split(",") or "ro" in entry.super_options.split(",")
