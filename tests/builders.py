"""Healthy things with overrides, so that a test shows only what is different."""
import json
import os

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
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
        recovery_action=0)._replace(**changes)


def uuid(index):
    """UUID of GPU `index` of a healthy node."""
    return "GPU-00000000-0000-0000-0000-%012d" % index


def bdf(index):
    """PCI address of GPU `index` of a healthy node."""
    return "0000:%s:00.0" % BUSES[index]


def known_gpus(count=8):
    """What a node has learnt about its GPUs in healthy rounds."""
    return tuple(F.KnownGpu(n, uuid(n), bdf(n), n, "16512340%05d" % n) for n in range(count))


def healthy_node(gpus=8, **changes):
    """facts.Facts of a node with `gpus` idle GPUs (number, or a tuple of Gpu); `changes` replace fields."""
    devices = tuple(healthy_gpu(n) for n in range(gpus)) if isinstance(gpus, int) else tuple(gpus)
    return F.Facts(
        node="n1", time=NOW, boot_id=BOOT_ID, uptime=86400.0, kernel="6.1.0-28-amd64", hostname="n1", driver=DRIVER,
        cuda="12.4", nvml="12." + DRIVER, gpu_count=len(devices), gpus=devices,
        expected=F.Expected(len(devices), "gres.conf"), known_gpus=known_gpus(len(devices)),
        klog=F.KernelLog((), {"boot_id": BOOT_ID, "seq": 1}, 0, 10), mounts=(), baseline=healthy_baseline(len(devices)),
        sources=(F.SourceStatus("kmsg", "ok", 0.01), F.SourceStatus("nvml", "ok", 0.02)))._replace(**changes)


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


def write_node(root, files):
    """Write {absolute path: text} below `root`."""
    for path, text in files.items():
        full = paths.under(str(root), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as handle:
            handle.write(text)
