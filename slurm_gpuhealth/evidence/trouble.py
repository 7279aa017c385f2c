"""Does the file system that evidence would go to show I/O errors? Then nothing is written to it.

`of_path` reads; `find` is pure. How the kernel names a device: "sda1" and "dm-0" in messages of file systems,
"sda1-8" in those of their journal (fs/jbd2), "sda" in those of the block layer, "nvme0" (the controller) in those
of drivers/nvme.
"""
from __future__ import annotations

import os

from slurm_gpuhealth import paths
from slurm_gpuhealth.facts import is_known
from slurm_gpuhealth.parse import mountinfo as parser

# Kinds of kernel events (parse/kmsg.py) that make the file system on that device one to leave alone.
KINDS = ("fs_error", "fs_readonly", "block_io", "nvme")
MIN_FREE = 32 << 20         # bytes that evidence leaves free for everybody else on its file system


def find(events, mount, devices):
    """Why the file system of `mount` must not be written to, or "".

    events: facts.KernelEvent. mount: parse.mountinfo.Entry, or None. devices: kernel names of the device below it
    and of the disk that it is a part of ("sda1", "sda", "dm-0").
    """
    if mount is not None and parser.is_read_only(mount):
        return "%s is mounted read-only" % mount.path
    for event in events:
        if event.kind not in KINDS:
            continue
        name = (event.data or {}).get("device")
        if isinstance(name, str) and _is_ours(os.path.basename(name), event.kind, devices):
            return "the kernel reports %s on %s, which holds %s" % (
                event.kind, os.path.basename(name)[:40], mount.path if mount is not None else "the evidence")
    return ""


def _is_ours(name, kind, devices):
    stem, _, inode = name.rpartition("-")
    return (name in devices or (inode.isdigit() and stem in devices)
            or (kind == "nvme" and any(device.startswith(name + "n") for device in devices)))


def mount_of(entries, path):
    """The entry (parse.mountinfo) that holds `path`, or None. Of several mounts on one place the last counts."""
    best = None
    for entry in entries:
        inside = entry.path in (path, "/") or path.startswith(entry.path.rstrip("/") + "/")
        if inside and (best is None or len(entry.path) >= len(best.path)):
            best = entry
    return best


def device_names(root, source, device):
    """Kernel names of a device, of the disk it is a part of, and of the disks below a dm or md.

    source: as in mountinfo ("/dev/sda1"). device: "major:minor".
    """
    names = set()
    if source.startswith("/dev/"):
        names.add(os.path.basename(source))
    block = paths.under(root, "/sys/dev/block/" + device)
    links = [block]
    if os.path.isdir(block + "/slaves"):
        links += [block + "/slaves/" + name for name in os.listdir(block + "/slaves")]
    for link in links:
        try:
            above, name = os.readlink(link).split("/")[-2:]
        except (OSError, ValueError):
            continue    # no device of its own: tmpfs, NFS, overlay
        names.add(name)
        if name.startswith(above):
            names.add(above)
    return names


def of_path(root, path, klog, mountinfo="/proc/self/mountinfo"):
    """Why nothing should be written below `path`, or "". klog: facts.KernelLog or Unknown."""
    path = existing(os.path.abspath(path))
    try:
        with open(mountinfo, encoding="utf-8", errors="surrogateescape") as handle:
            mount = mount_of(parser.parse(handle.read()), path)
        number = os.stat(path).st_dev
    except OSError:
        return ""       # not known to be bad; a failing write is found out when it is made
    device = "%d:%d" % (os.major(number), os.minor(number))
    names = device_names(root, mount.source if mount is not None else "", device)
    return find(klog.events if klog is not None and is_known(klog) else (), mount, names)


def existing(path):
    """`path`, or the nearest folder above it that exists."""
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(path)
    return path


def room(path):
    """Bytes that may still be written below `path`: what is free, less MIN_FREE."""
    seen = os.statvfs(existing(path))
    return seen.f_bavail * seen.f_frsize - MIN_FREE
