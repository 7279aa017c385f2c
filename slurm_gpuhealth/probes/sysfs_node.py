"""Memory controllers, NVMe disks, local file systems, device files and the clock: small readers of one list each.

Layouts: Documentation/admin-guide/RAS, drivers/nvme/host/sysfs.c, proc(5), adjtimex(2); NVIDIA driver README, "device
node permissions". Looked up 2026-11-30.
"""
from __future__ import annotations

import os
import re
import stat

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.facts_node import Clock, DeviceFile, FileSystem, MemoryController, NvmeDisk
from slurm_gpuhealth.parse import mountinfo
from slurm_gpuhealth.probes.sysfs_pci import text_of

EDAC, NVME, SUBSYSTEMS = "/sys/devices/system/edac/mc", "/sys/class/nvme", "/sys/class/nvme-subsystem"
_CONTROLLER, _NVME = re.compile(r"mc[0-9]+\Z"), re.compile(r"nvme[0-9]+\Z")
_NAMESPACE = re.compile(r"nvme[0-9]+n[0-9]+\Z")
_GPU_FILE = re.compile(r"nvidia([0-9]+)\Z")
_ALWAYS = ("nvidiactl", "nvidia-uvm")
_MOST_OF_ONE = 16       # mount points kept of one block device, in the order in which they were mounted
_STA_UNSYNC, _STA_NANO = 0x0040, 0x2000     # include/uapi/linux/timex.h


def memory_controllers(spec):
    """List of MemoryController. FileNotFoundError where no EDAC driver is loaded."""
    found = []
    for name in sorted(os.listdir(paths.under(spec["root"], EDAC))):
        if not _CONTROLLER.match(name):
            continue
        folder = "%s/%s" % (EDAC, name)
        corrected, uncorrected = (_number(spec, "%s/%s" % (folder, item)) for item in ("ce_count", "ue_count"))
        found.append(MemoryController(name, corrected, uncorrected,
                                      _dimms(spec, folder) if corrected or uncorrected else ()))
    if not found:
        raise FileNotFoundError(2, "no memory controller driver (EDAC)")
    return found


def _dimms(spec, folder):
    """(label, corrected, uncorrected) of the memory modules with errors; some drivers call them rank3, not dimm3."""
    found = []
    for name in sorted(os.listdir(paths.under(spec["root"], folder))):
        if name.startswith(("dimm", "rank")):
            inner = "%s/%s/" % (folder, name)
            corrected, uncorrected = (_number(spec, inner + item) or 0
                                      for item in ("dimm_ce_count", "dimm_ue_count"))
            if corrected or uncorrected:
                label = text_of(spec["root"], inner + "dimm_label") or text_of(spec["root"], inner + "dimm_location")
                found.append((label or name, corrected, uncorrected))
    return found


def nvme(spec):
    """List of NvmeDisk. FileNotFoundError where there is no NVMe driver."""
    root = spec["root"]
    shared = _by_subsystem(root)
    found = []
    for name in sorted(os.listdir(paths.under(root, NVME))):
        if _NVME.match(name):
            folder = "%s/%s" % (NVME, name)
            own = [item for item in os.listdir(paths.under(root, folder)) if _NAMESPACE.match(item)]
            found.append(NvmeDisk(name, text_of(root, folder + "/state"), text_of(root, folder + "/model") or "",
                                  tuple(sorted({*own, *shared.get(name, ())})),
                                  text_of(root, folder + "/transport") or ""))
    return found


def _by_subsystem(root):
    """{controller: namespaces}. With multipath (the kernel's default) a disk belongs to the subsystem, and its
    number need not be its controller's."""
    found: dict = {}
    try:
        subsystems = os.listdir(paths.under(root, SUBSYSTEMS))
    except OSError:
        return found
    for name in subsystems:
        items = os.listdir(paths.under(root, "%s/%s" % (SUBSYSTEMS, name)))
        spaces = [item for item in items if _NAMESPACE.match(item)]
        found.update((item, spaces) for item in items if _NVME.match(item))
    return found


def filesystems(spec):
    """List of FileSystem: what is mounted from a block device of this node."""
    root = spec["root"]
    found: list = []
    disks: dict = {}
    count: dict = {}
    try:
        with open(paths.under(root, "/proc/self/mountinfo"), encoding="utf-8", errors="surrogateescape") as handle:
            entries = mountinfo.parse(handle.read())
    except FileNotFoundError:
        return []
    for entry in entries:
        if not entry.source.startswith("/dev/") or mountinfo.is_network(entry.fstype):
            continue
        name = _kernel_name(root, entry)
        if name not in disks:
            disks[name] = tuple(sorted(_below(root, name, 0)))
            count[name] = 0
        count[name] += 1
        if count[name] > _MOST_OF_ONE:
            continue        # bind mounts of containers, by the thousand
        found.append(FileSystem(name, _printable(entry.path), entry.fstype, mountinfo.options_of(entry), disks[name]))
    return found


def _printable(path):
    """Names that are not UTF-8 would not survive JSON."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _kernel_name(root, entry):
    """"dm-0" for /dev/mapper/vg-root: what the kernel's messages call it. By number; btrfs has one of its own."""
    if not entry.number.startswith("0:"):
        target = _link(root, "/sys/dev/block/" + entry.number)
        if target:
            return target.rpartition("/")[2]
    return (_link(root, entry.source) or entry.source).rpartition("/")[2]


def _link(root, path):
    try:
        return os.readlink(paths.under(root, path))
    except OSError:
        return ""


def _below(root, name, depth):
    """Names of the disks that the block device `name` lies on: its disk, those of each part of a dm or md device."""
    target = _link(root, "/sys/class/block/" + name)
    above = target.rpartition("/")[0].rpartition("/")[2] if target else ""
    # Of a partition the folder above is its disk; of a disk it is "block", or the NVMe controller or its subsystem.
    found = {above} if above and name.startswith(above) and not _NVME.match(above) else set()
    try:
        parts = os.listdir(paths.under(root, "/sys/class/block/%s/slaves" % name))
    except OSError:
        parts = []
    for part in parts if depth < 4 else ():
        found |= {part} | _below(root, part, depth + 1)
    return found


def devices(spec):
    """List of DeviceFile: nvidiactl, nvidia-uvm, and each nvidiaN there is. On a fixture node plain files count."""
    root = spec["root"]
    wanted = _wanted_mode(root)
    numbers = sorted(int(found.group(1)) for found in map(_GPU_FILE.match, os.listdir(paths.under(root, "/dev")))
                     if found)
    return [_device(root, "/dev/" + name, wanted, minor)
            for name, minor in [(name, None) for name in _ALWAYS] + [("nvidia%d" % number, number)
                                                                    for number in numbers]]


def _device(root, path, wanted, minor):
    try:
        about = os.stat(paths.under(root, path))
    except FileNotFoundError:
        return DeviceFile(path, False, minor=minor)
    is_device = stat.S_ISCHR(about.st_mode) or (root != "" and stat.S_ISREG(about.st_mode))
    return DeviceFile(path, is_device, stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid, minor, wanted)


def _wanted_mode(root):
    """The mode that the driver was told to give its device files; 0 where it leaves them to the site, None where it
    does not say (/proc/driver/nvidia/params)."""
    text = text_of(root, "/proc/driver/nvidia/params")
    values = dict(line.partition(": ")[::2] for line in (text or "").split("\n"))
    if values.get("ModifyDeviceFiles", "").strip() == "0":
        return 0
    mode = values.get("DeviceFileMode", "").strip()
    return int(mode) if mode.isdigit() else None


def clock(spec):
    """Clock, from adjtimex(2) with no change asked for, which needs no right."""
    if spec["root"]:
        import json
        with open(paths.under(spec["root"], "/clock.json"), encoding="utf-8") as handle:
            return F.from_plain(json.load(handle), Clock)
    import ctypes
    library = ctypes.CDLL(None, use_errno=True)
    # struct timex, 64 bit: modes, offset, freq, maxerror, esterror, status, ...; all in words of 8 bytes. 26 of them.
    buffer = (ctypes.c_long * 32)()
    if library.adjtimex(buffer) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    status = buffer[5] & 0xffffffff
    unit = 1e-9 if status & _STA_NANO else 1e-6
    return Clock(not status & _STA_UNSYNC, buffer[1] * unit, buffer[3] * 1e-6)


def _number(spec, path):
    text = text_of(spec["root"], path)
    return int(text) if text and text.isdigit() else None
