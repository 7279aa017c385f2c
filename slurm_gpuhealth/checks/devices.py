"""The device files that jobs open are there and may be opened: /dev/nvidiaN of each GPU, nvidiactl, nvidia-uvm.

- Missing, or in its place something that is no device: `GH-DEV-GONE`. nvidia-uvm that is missing is a note: the first
  CUDA program makes it (nvidia-modprobe).
- Narrower permissions than the driver was told to give (its module options, /proc/driver/nvidia/params; 0666 where it
  does not say): `GH-DEV-PERM`. The limit `mode` names what the site wants instead ("0660"). Where the driver leaves
  the files to the site (NVreg_ModifyDeviceFiles=0) and `mode` is not set, any permissions are right.

Only GPUs that NVML lists and that answer count: others are found by the checks of GPUs.
Unknown: the device files could not be looked at, or a GPU does not say which is its own.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import part, unread
from slurm_gpuhealth.checks._shared import finding, missing, usable
from slurm_gpuhealth.checks._shared import unread as gpu_unread
from slurm_gpuhealth.model import NOTE

LIMITS = {"mode": ("", "permissions that the device files must have at least, in octal (\"0660\"); empty: what the"
                       " driver was told")}
_ON_DEMAND = "/dev/nvidia-uvm"


def check(facts, limits):
    """Findings about device files. limits: mode (octal text)."""
    gpus = [gpu for gpu in usable(facts) if F.is_known(gpu.minor)]
    found = [gpu_unread(gpu, missing(gpu, "minor")) for gpu in usable(facts) if missing(gpu, "minor")]
    if not F.is_known(facts.devices):
        return found + unread("devices", facts.devices)
    if not gpus:
        return found
    files = {one.path: one for one in facts.devices}
    for path in ["/dev/nvidia%d" % gpu.minor for gpu in gpus] + ["/dev/nvidiactl", _ON_DEMAND]:
        one = files.get(path)
        if one is None or not one.present:
            seen = "missing" if one is None or one.mode is None else "is not a device"
            found.append(finding("GH-DEV-GONE", part(path), seen,
                                 severity=NOTE if path == _ON_DEMAND and seen == "missing" else None))
            continue
        wanted = _wanted(limits["mode"], one)
        if one.mode is not None and wanted & ~one.mode:
            found.append(finding("GH-DEV-PERM", part(path), "%04o" % one.mode, "%04o" % wanted, uid=one.uid,
                                 gid=one.gid))
    return found


def _wanted(limit, one):
    text = str(limit)
    if text and not text.strip("01234567"):
        return int(text, 8)
    return 0o666 if one.mode_wanted is None else one.mode_wanted
