"""NVMe disks answer.

- A controller in state "dead", or one that the kernel log complains of and that sysfs no longer has:
  `GH-NVME-DEAD`, a fault where something is mounted from it, else a warning. Behind a network always a warning.
- Time-outs, a controller that was down, media errors in the kernel log: `GH-NVME-ERR`, a warning. A reset alone (an
  admin may ask for one), one path of several that failed, and a disk behind a network that is being reached again are
  notes.

Unknown: the disks, or the kernel log, could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import events, mounted_from, part, unread
from slurm_gpuhealth.checks._shared import finding, log_unread
from slurm_gpuhealth.model import FATAL, NOTE, WARNING

_HARMLESS = ("path", "fabric", "reset")


def check(facts, limits):
    """Findings about NVMe disks."""
    disks = {disk.name: disk for disk in facts.nvme} if F.is_known(facts.nvme) else {}
    found = [] if F.is_known(facts.nvme) else unread("nvme", facts.nvme)
    dead = {name: "dead" for name, disk in disks.items() if disk.state == "dead"}
    troubled: dict = {}
    for event in events(facts, "nvme"):
        about = event.data or {}
        name, what = _controller(str(about.get("device") or "")), about.get("what", "")
        if what not in _HARMLESS and name and F.is_known(facts.nvme) and name not in disks:
            dead.setdefault(name, "given up by the kernel")
        else:
            troubled.setdefault(name or event.bdf or "nvme", []).append((what, event))
    for name, seen in sorted(dead.items()):
        paths = _paths(facts, name, disks.get(name))
        lost = disks.get(name) is None or disks[name].transport in ("", "pcie")
        found.append(finding("GH-NVME-DEAD", part(name), seen, severity=FATAL if paths and lost else WARNING,
                             mounted=paths, model=disks[name].model if name in disks else ""))
    for name, seen in sorted(troubled.items()):
        if name not in dead:
            found.append(_trouble(name, seen))
    return found + log_unread(facts)


def _controller(name):
    """"nvme0" of nvme0, nvme0n1, nvme0c1n1 and nvme0n1p2."""
    digits = name[4:] if name.startswith("nvme") else ""
    end = next((at for at, char in enumerate(digits) if not char.isdigit()), len(digits))
    return name[:4 + end] if end else ""


def _paths(facts, name, disk):
    """Where something of the controller is mounted."""
    found = list(mounted_from(facts, name) or ())
    for space in disk.namespaces if disk is not None else ():
        found += mounted_from(facts, space) or ()
    return sorted({one.path for one in found})


def _trouble(name, seen):
    kinds = sorted({what for what, _ in seen if what})
    harmless = bool(kinds) and all(what in _HARMLESS for what in kinds)
    return finding("GH-NVME-ERR", part(name), ", ".join(kinds) or "errors", severity=NOTE if harmless else None,
                   since=seen[0][1].time, count=sum(event.count for _, event in seen), line=seen[-1][1].line[:200])
