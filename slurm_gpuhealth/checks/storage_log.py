"""Network file systems: what the kernel log says of their servers.

- A server that does not answer, or a connection that was lost, with no later line that it is back: `GH-STORE-LOST`, a
  warning. Whether the mount still answers is asked by the check `mounts`, which drains.
- Back again within the same look: a note. An eviction by a Lustre server stays a warning: files that were open are
  lost to their programs.
- A bug check of Lustre (LBUG): its thread is stuck until the next boot: `GH-STORE-BUG`, a fault.

Unknown: the kernel log could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth.checks._node import events, part
from slurm_gpuhealth.checks._shared import finding, log_unread
from slurm_gpuhealth.model import NODE, NOTE

# kind that says "lost" -> kind that says "back", where there is one.
_BACK = {"nfs_not_responding": "nfs_ok", "lustre_lost": "lustre_restored", "beegfs_lost": "beegfs_ok",
         "ceph_lost": "ceph_ok", "cifs_not_responding": "", "gpfs_lost": "", "nfs_error": ""}
_NAMES = ("target", "server", "node")


def check(facts, limits):
    """Findings about servers of network file systems."""
    found = [finding("GH-STORE-BUG", NODE, "", since=event.time, line=event.line[:200])
             for event in events(facts, "lustre_bug")[:1]]
    back = events(facts, *filter(None, _BACK.values()))
    lost: dict = {}
    for event in events(facts, *_BACK):
        lost.setdefault((event.kind, _family(event)), []).append(event)
    for (kind, family), seen in sorted(lost.items()):
        evicted = any((event.data or {}).get("evicted") for event in seen)
        standing = [event for event in seen if not _is_back(event, back)]
        text = "evicted" if evicted else "not answering" if standing else "was away, is back"
        found.append(finding("GH-STORE-LOST", part(family), text, severity=None if evicted or standing else NOTE,
                             since=seen[0].time, kind=kind, count=sum(event.count for event in seen),
                             servers=sorted({_name(event) for event in seen})[:20], line=seen[-1].line[:200]))
    return found + log_unread(facts)


def _name(event):
    about = event.data or {}
    return next((str(about[name]) for name in _NAMES if about.get(name)), "")


def _family(event):
    """Name of the file system that a target belongs to: "scratch" of scratch-OST0004-osc-ffff, else the server's."""
    name = _name(event)
    for mark in ("-OST", "-MDT"):
        if mark in name:
            return name.partition(mark)[0]
    return name or event.kind.partition("_")[0]


def _is_back(event, back):
    """Whether a later line says that this server is there again. Lustre's lines name the target, its address, or both;
    some lines name nothing, and then any that is back counts."""
    kind, names = _BACK[event.kind], _all_names(event)
    for later in back:
        if later.kind == kind and _after(later, event):
            others = _all_names(later)
            if not names or not others or any(one.startswith(other) or other.startswith(one)
                                              for one in names for other in others):
                return True
    return False


def _all_names(event):
    about = event.data or {}
    return [str(about[name]) for name in _NAMES if about.get(name)]


def _after(one, event):
    if one.last is None or event.last is None:
        return (one.seq or 0) >= (event.seq or 0)
    return one.last >= event.last
