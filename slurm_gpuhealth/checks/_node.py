"""What checks of the node beside its GPUs share: parts that were not read, events of now, whose disk it is. Pure."""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import model
from slurm_gpuhealth.checks._shared import finding


def part(name):
    """Subject of a named part of the node. The name may come from others' text: one word, not too long."""
    return model.Subject("part", name="_".join(str(name).split())[:60] or "?")


def unread(field, value):
    """[Finding] that the field of Facts could not be read; [] where this node does not have such a thing.

    In prolog and epilog some parts are not asked for (probes/sysfs.py), which is no fault either.
    """
    if value.reason in (F.ABSENT, F.UNSUPPORTED):
        return []
    return [finding("GH-SYS-UNREAD", part(field), value.detail or value.reason, why=value.reason)]


def not_asked(facts, value):
    """True for what a job's start or end does not wait for."""
    return not F.is_known(value) and value.reason == F.NOT_READ and facts.phase in (model.PROLOG, model.EPILOG)


def events(facts, *kinds):
    """The kernel log's events of these kinds that are of now: not of an earlier boot, nor what a program wrote."""
    if not F.is_known(facts.klog):
        return []
    return [event for event in facts.klog.events if event.kind in kinds
            and not (event.data or {}).get("earlier_boot")]


def mounted_from(facts, device):
    """The file systems that lie on a block device ("sda", "sda1", "nvme0n1", or a whole controller "nvme0"), or None
    where nobody knows."""
    if not F.is_known(facts.filesystems):
        return None
    names = (device, device + "n") if device.startswith("nvme") and "n" not in device[4:] else (device,)
    return [one for one in facts.filesystems
            if any(name == device or (len(names) > 1 and name.startswith(names[1])) or _is_partition(name, device)
                   for name in (one.device,) + tuple(one.disks))]


def _is_partition(name, disk):
    """sda1 of sda, nvme0n1p2 of nvme0n1. For disks that went away, whose tree is gone from sysfs."""
    rest = name[len(disk):] if name.startswith(disk) else ""
    return bool(rest) and (rest[1:].isdigit() if disk[-1:].isdigit() and rest[0] == "p" else
                           rest.isdigit() and not disk[-1:].isdigit())


def is_needed(path, limits):
    """Whether the node cannot do without what is mounted at `path`: limits `needed` and the mounts of the
    configuration (`mounts`). What lies below /var counts as /var."""
    needed = str(limits["needed"]).split() + [mount["path"] for mount in limits.get("mounts") or ()]
    return any(path == one or (one not in ("/", "/tmp") and path.startswith(one.rstrip("/") + "/")) for one in needed)
