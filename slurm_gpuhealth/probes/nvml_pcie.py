"""Reads of one GPU: its PCIe link, and whether it works, without which the link's speed says nothing."""
from __future__ import annotations

import os

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths


def read(device):
    """Fill pcie_*, pstate, utilization."""
    values = device.values
    for name, function in (
            ("pcie_width", "CurrPcieLinkWidth"), ("pcie_width_max", "MaxPcieLinkWidth"),
            ("pcie_gen", "CurrPcieLinkGeneration"), ("pcie_gen_max", "MaxPcieLinkGeneration"),
            ("pstate", "PerformanceState")):
        values[name] = device.ask("nvmlDeviceGet" + function)
    device.take("utilization", device.ask("nvmlDeviceGetUtilizationRates"), lambda rates: rates.gpu)
    for name, function in (("pcie_gen_gpu_max", "GpuMaxPcieLinkGeneration"), ("pcie_replay", "PcieReplayCounter")):
        values[name] = device.ask("nvmlDeviceGet" + function)
    width, most = values["pcie_width"], values["pcie_width_max"]
    if F.is_known(width) and F.is_known(most) and width < most and F.is_known(values["bdf"]):
        values["pcie_width_slot"] = slot_width(values["bdf"])


def slot_width(bdf, root=""):
    """Lanes of the port that the device at `bdf` hangs below, as sysfs says; Unknown where it does not."""
    try:
        port = os.path.dirname(os.path.realpath(paths.under(root, "/sys/bus/pci/devices/" + bdf)))
        with open(port + "/max_link_width", encoding="ascii", errors="replace") as handle:
            text = handle.read().strip()
    except OSError as exc:
        return F.Unknown(F.ABSENT, exc.strerror or "", exc.errno)
    # The kernel has "Unknown", 0 or 255 for a port that does not say.
    return int(text) if text.isdigit() and 0 < int(text) <= 32 else F.Unknown(F.UNSUPPORTED, "port says %r" % text[:16])
