"""What sysfs and the kernel say of the node beside its GPUs' driver: PCI devices, device files, file systems, network
ports, disks, memory controllers, clock. One child reads all of it.

Before each part "at" is emitted, so that a file that never answers (a network card's firmware may take a minute to
time out) is named. A part that fails to be read is unknown, and the others are read all the same.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.model import HEALTHCHECK, MANUAL

# (field of Facts, module, function, whether it is read in every phase). What may hang comes late. A job's start does
# not wait for what cannot break it.
_PARTS = (
    ("pci", "sysfs_pci", "read", True),
    ("devices", "sysfs_node", "devices", False),
    ("filesystems", "sysfs_node", "filesystems", True),
    ("clock", "sysfs_node", "clock", False),
    ("memory_controllers", "sysfs_node", "memory_controllers", False),
    ("nvme", "sysfs_node", "nvme", True),
    ("links", "sysfs_net", "read", True),
)
FIELDS = tuple(part[0] for part in _PARTS)


def spec(cfg, about):
    """What to read: root, parts (fields of Facts), thorough (also what costs time), links (configured names), gpus
    (PCI addresses of healthy rounds)."""
    thorough = about["phase"] in (HEALTHCHECK, MANUAL)
    return {"root": about["root"], "thorough": thorough, "links": [entry["name"] for entry in cfg["links"]],
            "gpus": [entry["bdf"] for entry in about["known"] if entry.get("bdf")],
            "parts": [field for field, _, _, always in _PARTS if always or thorough]}


def read(spec, emit):
    """Emit ("at", {"part"}) and (field, {field: plain}) for each part of the spec."""
    for field, module, function, _ in _PARTS:
        if field not in spec["parts"]:
            continue
        emit("at", {"part": field})
        reader = __import__("slurm_gpuhealth.probes." + module, fromlist=(function,))
        try:
            value = getattr(reader, function)(spec)
        except FileNotFoundError as exc:
            value = F.Unknown(F.ABSENT, exc.strerror or "", exc.errno)
        except PermissionError as exc:
            value = F.Unknown(F.DENIED, exc.strerror or "", exc.errno)
        except OSError as exc:
            value = F.Unknown(F.ERROR, exc.strerror or "", exc.errno)
        emit(field, {field: F.to_plain(value)})


def assemble(records, spec, status):
    """Facts fields of what came; the rest of what was asked for is Unknown, with why and at what it stood."""
    found, at = {}, ""
    for kind, plain in records:
        if kind == "at":
            at = plain["part"]
        else:
            found[kind] = getattr(F.from_plain(plain), kind)
    why = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
    detail = "%s (at %s)" % (status.detail, at) if at and status.detail else status.detail
    return {field: found.get(field, F.Unknown(why, detail)) for field in spec["parts"]}
