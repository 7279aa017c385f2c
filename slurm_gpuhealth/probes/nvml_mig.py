"""Reads of one GPU: the MIG devices it is divided into."""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import nvml_call as N

_NOT_FOUND = 6      # there is no instance of this number


def read(device):
    """Fill mig_devices: profile names ("1g.10gb"), in rounds that have time and where MIG is on."""
    if device.values["mig_mode"] != 1:
        device.values["mig_devices"] = device.values["mig_mode"] if not F.is_known(device.values["mig_mode"]) else ()
        return
    if not device.in_rounds:
        return
    most = device.optional("nvmlDeviceGetMaxMigDeviceCount")
    call = N.Caller(device.nvml)
    found, total = [], None
    for number in range(most if F.is_known(most) else 0):
        handle = device.optional("nvmlDeviceGetMigDeviceHandleByIndex", number)
        if not F.is_known(handle):
            if handle.code not in (_NOT_FOUND, N.INVALID_ARGUMENT):
                device.values["mig_devices"] = handle
                return
            continue
        text = call("nvmlDeviceGetName", handle)
        if isinstance(text, bytes):     # nvidia-ml-py before 11.5
            text = text.decode("ascii", "replace")
        name = _profile(text) if F.is_known(text) else ""
        if not name:
            total = device.optional("nvmlDeviceGetMemoryInfo") if total is None else total
            name = _from_size(call("nvmlDeviceGetAttributes_v2", handle), total)
        found.append(name)
    device.values["mig_devices"] = found if F.is_known(most) else most


def _profile(name):
    """"1g.10gb" of "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "" where the name does not tell."""
    words = name.split(" MIG ")
    return words[1].split()[0].lower() if len(words) == 2 and words[1].strip() else ""


def _from_size(attributes, total):
    """The profile's name by its parts: slices of the GPU, and memory in eighths of the whole, in whole GiB."""
    if not F.is_known(attributes) or not F.is_known(total) or not total.total:
        return "unknown"
    eighths = -(-attributes.memorySizeMB * (1 << 20) * 8 // total.total)
    whole = -(-total.total // (1 << 30))
    name = "%dg.%dgb" % (attributes.gpuInstanceSliceCount, round(eighths * whole / 8))
    if attributes.computeInstanceSliceCount != attributes.gpuInstanceSliceCount:
        name = "%dc.%s" % (attributes.computeInstanceSliceCount, name)
    return name
