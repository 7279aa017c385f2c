"""Reads of one GPU: MIG mode, recovery action, processes; what drains a node first."""
from __future__ import annotations

_FI_GPU_RECOVERY_ACTION = 230   # field id; 226 and 227, which it replaced, are dead


def read(device):
    """Fill mig_mode, mig_pending, recovery_action."""
    modes = device.ask("nvmlDeviceGetMigMode")
    device.take("mig_mode", modes, lambda found: found[0])
    device.take("mig_pending", modes, lambda found: found[1])
    device.values["recovery_action"] = device.fields(_FI_GPU_RECOVERY_ACTION)[_FI_GPU_RECOVERY_ACTION]


def read_use(device):
    """Fill memory_total, memory_used, processes."""
    memory = device.ask("nvmlDeviceGetMemoryInfo")
    device.take("memory_total", memory, lambda info: info.total)
    device.take("memory_used", memory, lambda info: info.used)
    device.take("processes", device.newest("nvmlDeviceGetComputeRunningProcesses_v3",
                                           "nvmlDeviceGetComputeRunningProcesses_v2"),
                lambda found: [[entry.pid, entry.usedGpuMemory] for entry in found])
