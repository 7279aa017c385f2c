"""Healthy things with overrides, so that a test shows only what is different."""
import json
import os

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import facts_node, paths
from slurm_gpuhealth.parse import kernel_kinds, kmsg

NOW = 1796040000.0      # 2026-11-30 12:00:00 UTC
BOOT = NOW - 86400.0
BOOT_ID = "0123456789abcdef0123456789abcdef"
DRIVER = "550.90.07"
BUSES = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")


def healthy_gpu(index=0, **changes):
    """facts.Gpu of an H100 that idles; `changes` replace fields."""
    return F.Gpu(
        index=index, nvml_index=index, minor=index, uuid=uuid(index), serial="16512340%05d" % index, bdf=bdf(index),
        name="NVIDIA H100 80GB HBM3", error=None, persistence=1, compute_mode=0, mig_mode=0, pstate=0, utilization=0,
        processes=(), ecc_mode=1, ecc_uncorrected_volatile=0, ecc_corrected_volatile=0, ecc_uncorrected_aggregate=0,
        ecc_corrected_aggregate=0, remap_corrected=0, remap_uncorrected=0, remap_pending=0, remap_failure=0,
        retired_pages=F.Unknown(F.UNSUPPORTED), retired_pending=F.Unknown(F.UNSUPPORTED), pcie_width=16,
        pcie_width_max=16, pcie_gen=5, pcie_gen_max=5, pcie_gen_gpu_max=5, pcie_replay=0, temperature=31, power=71.0,
        power_limit=700.0, clock_sm=345, clock_reasons=1, memory_total=85520809984, memory_used=0,
        recovery_action=0, sram_threshold=0,
        sram_counts={"uncorrected_parity": 0, "uncorrected_secded": 0, "corrected": 0},
        remap_histogram={"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0}, unrepairable=0,
        repair_pending={"channel": 0, "tpc": 0}, inforom="0x5a17c3e0", vbios="96.00.74.00.01",
        part_number="692-2G520-0200-000",
        nvlinks=nvlinks(), fabric={"state": 3, "status": 0, "health_mask": 0x1aa, "health_summary": 1},
        temperature_memory=42, temperature_limits={"shutdown": 92, "slowdown": 89, "memory_max": 95, "gpu_max": 87},
        violations={"power": 0, "thermal": 0, "sw_thermal": 0, "hw_thermal": 0, "hw_power_brake": 0}, clock_memory=2619,
        clock_sm_max=1980, clock_app={"sm": 1980, "memory": 2619}, clock_app_default={"sm": 1980, "memory": 2619},
        mig_devices=(), mig_pending=0, reason_samples=(1,))._replace(**changes)


def nvlinks(count=18, down=(), remote="switch", **errors):
    """Gpu.nvlinks of a GPU with `count` links, those of `down` not up; errors: counters of each."""
    return tuple({"link": number, "state": int(number not in down), "remote": remote,
                  "errors": {"replay": 0, "recovery": 0, "crc": 0, **errors}} for number in range(count))


def uuid(index):
    """UUID of GPU `index` of a healthy node."""
    return "GPU-00000000-0000-0000-0000-%012d" % index


def bdf(index):
    """PCI address of GPU `index` of a healthy node."""
    return "0000:%s:00.0" % BUSES[index]


def pci(gpus=8):
    """facts.pci of a node with so many GPUs, each below a port of its own, and one network card."""
    link = (16, 16, 32.0, 32.0, True)
    found = [facts_node.PciDevice("0000:3b:00.0", "15b3", "1021", "0207", "mlx5_core", (), *link)]
    for number in range(gpus):
        above = "0000:%02x:01.0" % (int(BUSES[number], 16) - 1)
        found += [facts_node.PciDevice(above, "8086", "352a", "0604", "pcieport", (), *link),
                  facts_node.PciDevice(bdf(number), "10de", "2330", "0302", "nvidia", (above,), *link)]
    return tuple(found)


def node_parts(gpus=8):
    """The fields of Facts that the source sysfs fills, healthy."""
    files = [("/dev/nvidiactl", None), ("/dev/nvidia-uvm", None)] + [("/dev/nvidia%d" % n, n) for n in range(gpus)]
    return {
        "pci": pci(gpus),
        "links": (facts_node.Link("mlx5_0/1", "infiniband", "up", "LinkUp", 400, 4, "0000:3b:00.0", "ib0",
                         {"link_downed": 0, "symbol_error": 0}),),
        "memory_controllers": (facts_node.MemoryController("mc0", 0, 0, ()),),
        "nvme": (facts_node.NvmeDisk("nvme0", "live", "Disk", ("nvme0n1",), "pcie"),),
        "devices": tuple(facts_node.DeviceFile(path, True, 0o666, 0, 0, minor, 0o666) for path, minor in files),
        "filesystems": (facts_node.FileSystem("sda1", "/", "ext4", "rw,relatime,errors=remount-ro", ("sda",)),
                        facts_node.FileSystem("nvme0n1p1", "/scratch", "xfs", "rw,relatime", ("nvme0n1",))),
        "clock": facts_node.Clock(True, 0.0001, 0.02)}


def known_gpus(count=8):
    """What a node has learnt about its GPUs in healthy rounds."""
    return tuple(F.KnownGpu(n, uuid(n), bdf(n), n, "16512340%05d" % n) for n in range(count))


def healthy_node(gpus=8, **changes):
    """facts.Facts of a node with `gpus` idle GPUs (number, or a tuple of Gpu); `changes` replace fields."""
    devices = tuple(healthy_gpu(n) for n in range(gpus)) if isinstance(gpus, int) else tuple(gpus)
    return F.Facts(
        node="n1", time=NOW, boot_id=BOOT_ID, uptime=86400.0, kernel="6.1.0-28-amd64", hostname="n1", driver=DRIVER,
        cuda="12.4", nvml="12." + DRIVER, libraries={"module": DRIVER, "libcuda": DRIVER},
        gpu_count=len(devices), gpus=devices,
        expected=F.Expected(len(devices), "gres.conf"), known_gpus=known_gpus(len(devices)),
        klog=F.KernelLog((), {"boot_id": BOOT_ID, "seq": 1}, 0, 10), mounts=(), baseline=healthy_baseline(len(devices)),
        sources=(F.SourceStatus("kmsg", "ok", 0.01), F.SourceStatus("nvml", "ok", 0.02)),
        processes=(), jobs=(), services=(), plugins=(), **node_parts(len(devices)))._replace(**changes)


def gpu_process(pid=4711, **changes):
    """facts_node.GpuProcess of a user's program that holds no GPU yet; `changes` replace fields."""
    return facts_node.GpuProcess(pid, name="python3", user="alice", uid=1000, state="S", started=NOW - 3600, job=None,
                                 exe="/home/alice/venv/bin/python3", ticks=8280000, driver=False,
                                 parent=1)._replace(**changes)


def healthy_baseline(count=8, **changes):
    """Counters of the last round, all zero."""
    zero = {"ecc_uncorrected_volatile": 0, "ecc_uncorrected_aggregate": 0}
    return F.Baseline(NOW - 300, BOOT_ID, DRIVER, {uuid(n): dict(zero) for n in range(count)}, {})._replace(**changes)


def events(*lines, start=NOW - 60, step=1.0):
    """KernelEvents of log texts (without stamps), `step` seconds apart."""
    bursts = kmsg.Bursts()
    for number, line in enumerate(lines):
        parsed = kernel_kinds.parse(line)
        if parsed is not None:
            bursts.add(parsed, start + number * step, line, number)
    return bursts.events()


def log(*lines, **more):
    """facts.KernelLog that holds `events` of the lines."""
    return F.KernelLog(events(*lines, **more), {"boot_id": BOOT_ID, "seq": len(lines)}, 0, len(lines))


def raw(text, seq=1, usec=1000000, prio=4):
    """A raw record of /dev/kmsg, with its newline."""
    return "%d,%d,%d,-;%s\n" % (prio, seq, usec, text)


def changed(facts, changes):
    """`facts` with values replaced by path: {"gpus.3.pcie_width": 8, "expected.gpus": ...}; values in plain form."""
    plain = json.loads(json.dumps(F.to_plain(facts)))
    for path, value in changes.items():
        target = plain
        *steps, last = path.split(".")
        for step in steps:
            target = target[int(step)] if isinstance(target, list) else target[step]
        if isinstance(target, list):
            if value is None:
                del target[int(last)]
            else:
                target[int(last)] = value
        else:
            target[last] = value
    return F.from_plain(plain)


class Symlink(str):
    """The target of a symbolic link, in the place of a file's text."""


def write_node(root, files):
    """Write {absolute path: text, bytes or Symlink} below `root`."""
    for path, content in files.items():
        full = paths.under(str(root), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if isinstance(content, Symlink):
            if not os.path.islink(full):
                os.symlink(content, full)
            continue
        with open(full, "wb") as handle:
            handle.write(content if isinstance(content, bytes) else content.encode("utf-8"))


def content_of(root, path):
    """What write_node wrote there."""
    full = paths.under(str(root), path)
    if os.path.islink(full):
        return Symlink(os.readlink(full))
    with open(full, "rb") as handle:
        return handle.read()
