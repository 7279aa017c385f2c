"""What is read of one GPU, in order: each entry fills its part of device.values; what drains a node first comes first.

Loaded by the child that reads only, as is all that it needs: the hook itself has no use for it.
"""
from __future__ import annotations

from slurm_gpuhealth.probes import nvml_links, nvml_memory, nvml_mig, nvml_pcie, nvml_state, nvml_thermal

READERS = (nvml_state.read, nvml_memory.read, nvml_pcie.read, nvml_links.read, nvml_thermal.read, nvml_mig.read,
           nvml_state.read_use)
