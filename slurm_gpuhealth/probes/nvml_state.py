"""Reads of one GPU: MIG mode, recovery action, InfoROM, firmware, processes."""
from __future__ import annotations

from slurm_gpuhealth import facts as F

_FI_GPU_RECOVERY_ACTION = 230   # field id; 226 and 227, which it replaced, are dead


def read(device):
    """Fill mig_mode, mig_pending, recovery_action; in the rounds that have time also vbios, part_number, inforom."""
    modes = device.ask("nvmlDeviceGetMigMode")
    device.take("mig_mode", modes, lambda found: found[0])
    device.take("mig_pending", modes, lambda found: found[1])
    device.values["recovery_action"] = device.fields(_FI_GPU_RECOVERY_ACTION)[_FI_GPU_RECOVERY_ACTION]
    if not device.in_rounds:
        return
    device.take("vbios", device.optional("nvmlDeviceGetVbiosVersion"))
    device.take("part_number", device.optional("nvmlDeviceGetBoardPartNumber"))
    checksum = device.optional("nvmlDeviceGetInforomConfigurationChecksum")
    if F.is_known(checksum):
        checksum = "0x%x" % checksum
    if device.values["inforom"] is F.UNASKED:       # else an earlier call has said that it is corrupt
        device.values["inforom"] = checksum


def read_use(device):
    """Fill memory_total, memory_used, processes."""
    memory = device.ask("nvmlDeviceGetMemoryInfo")
    device.take("memory_total", memory, lambda info: info.total)
    device.take("memory_used", memory, lambda info: info.used)
    device.take("processes", device.newest("nvmlDeviceGetComputeRunningProcesses_v3",
                                           "nvmlDeviceGetComputeRunningProcesses_v2"),
                lambda found: [[entry.pid, entry.usedGpuMemory] for entry in found])
