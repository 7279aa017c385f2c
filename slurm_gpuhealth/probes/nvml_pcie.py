"""Reads of one GPU: its PCIe link, and whether it works, without which the link's speed says nothing."""
from __future__ import annotations


def read(device):
    """Fill pcie_*, pstate, utilization."""
    for name, function in (
            ("pcie_width", "CurrPcieLinkWidth"), ("pcie_width_max", "MaxPcieLinkWidth"),
            ("pcie_gen", "CurrPcieLinkGeneration"), ("pcie_gen_max", "MaxPcieLinkGeneration"),
            ("pstate", "PerformanceState")):
        device.values[name] = device.ask("nvmlDeviceGet" + function)
    device.take("utilization", device.ask("nvmlDeviceGetUtilizationRates"), lambda rates: rates.gpu)
    for name, function in (("pcie_gen_gpu_max", "GpuMaxPcieLinkGeneration"), ("pcie_replay", "PcieReplayCounter")):
        device.values[name] = device.ask("nvmlDeviceGet" + function)
