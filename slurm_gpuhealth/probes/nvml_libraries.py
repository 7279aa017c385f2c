"""Which versions of the driver's parts lie on the disk: the loaded kernel module, and the libcuda.so.1 of programs."""
from __future__ import annotations

import os

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths

# Where distributions and NVIDIA's own installer put 64-bit libraries; the first that has it counts. /usr/lib comes
# last, as on Red Hat it is the place of 32-bit ones.
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def read(root=""):
    """{"module": version, "libcuda": version}, each an Unknown where it is not there or does not say."""
    return {"module": module_version(root), "libcuda": libcuda_version(root)}


def module_version(root=""):
    """Version of the loaded kernel module; all that is left to say when NVML does not start."""
    try:
        with open(paths.under(root, "/proc/driver/nvidia/version"), encoding="utf-8", errors="replace") as handle:
            words = handle.readline().split()
    except OSError:
        return F.Unknown(F.ABSENT, "no driver loaded")
    return next((word for word in words if word[:1].isdigit() and "." in word), F.Unknown(F.ERROR, "not readable"))


def libcuda_version(root=""):
    """Version of the installed libcuda.so.1, from the name of the file that it leads to (libcuda.so.550.90.07)."""
    for folder in _FOLDERS:
        path = paths.under(root, folder + "/libcuda.so.1")
        if not os.path.exists(path):
            continue
        version = os.path.basename(os.path.realpath(path)).partition(".so.")[2]
        if "." in version and version.replace(".", "").isdigit():
            return version
        return F.Unknown(F.UNSUPPORTED, "its file's name has no version")
    return F.Unknown(F.ABSENT, "no libcuda.so.1")
