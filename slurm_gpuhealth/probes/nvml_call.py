"""How NVML is called: nvidia-ml-py at a third of its cost, and errors as Unknowns with their code."""
from __future__ import annotations

import gc
import sys

from slurm_gpuhealth import facts as F

# NVML return codes (nvml.h, nvmlReturn_t) that are treated apart.
INVALID_ARGUMENT = 2
NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, TIMEOUT, IRQ_ISSUE, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = (
    3, 4, 9, 10, 11, 12, 13)
CORRUPTED_INFOROM, GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, UNKNOWN = 14, 15, 16, 25, 999

_TEXTS = {
    1: "not initialised", 2: "invalid argument", 3: "not supported", 4: "no permission", 6: "not found",
    8: "external power cables not attached", 9: "driver not loaded", 10: "driver timed out",
    11: "interrupt problem", 12: "no libnvidia-ml.so.1", 13: "driver too old for this", 14: "InfoROM corrupted",
    15: "GPU is lost", 16: "GPU needs a reset", 17: "blocked by the operating system",
    18: "driver and library of different versions", 19: "in use", 20: "out of memory", 21: "no data",
    25: "structure version not known", 27: "not ready", 28: "GPU not found", 29: "invalid state", 999: "unknown error",
}

# A structure of another version means a driver older (or newer) than nvidia-ml-py for this one call, no fault.
_REASONS = {NOT_SUPPORTED: F.UNSUPPORTED, FUNCTION_NOT_FOUND: F.UNSUPPORTED, VERSION_MISMATCH: F.UNSUPPORTED,
            NO_PERMISSION: F.DENIED, LIBRARY_NOT_FOUND: F.ABSENT, DRIVER_NOT_LOADED: F.ABSENT}


def import_nvml():
    """nvidia-ml-py, at a third of the cost: 20 ms instead of 65 (Python 3.11, 2 cores, 2026-11-30)."""
    if "ctypes.util" not in sys.modules:
        # pynvml imports find_library from it and calls it nowhere on Linux (checked in 12.535 to 13.615); the real
        # module brings subprocess, tempfile, shutil and threading along, 25 to 40 ms.
        stand_in = type(sys)("ctypes.util")
        stand_in.find_library = lambda name: None   # type: ignore[attr-defined]
        sys.modules["ctypes.util"] = stand_in
    collecting = gc.isenabled()
    gc.disable()        # it defines 500 structures, and the collector would walk all of them again and again
    try:
        import pynvml
    finally:
        if collecting:
            gc.enable()
    return pynvml


def unknown(code):
    """The Unknown that an NVML return code stands for."""
    return F.Unknown(_REASONS.get(code, F.ERROR), _TEXTS.get(code, "NVML error %d" % code), code)


class Caller:
    """Calls NVML by name; an error becomes an Unknown with its code. An unknown error is tried once more."""

    def __init__(self, nvml):
        self.nvml = nvml
        # What some calls raise in place of "function not found"; no subclass of NVMLError.
        self._mismatch = getattr(nvml, "NVMLLibraryMismatchError", nvml.NVMLError)

    def __call__(self, name, *args):
        function = getattr(self.nvml, name, None)
        if function is None:
            return F.Unknown(F.UNSUPPORTED, "nvidia-ml-py too old for this")
        for last in (False, True):
            try:
                return function(*args)
            except self.nvml.NVMLError as exc:
                # By number, not by comparing: NVMLError.__eq__ fails on anything that is not one.
                if exc.value != UNKNOWN or last:
                    return unknown(exc.value)
            except self._mismatch:
                return unknown(FUNCTION_NOT_FOUND)
            except UnicodeDecodeError:
                return F.Unknown(F.ERROR, "not readable as text")
        raise AssertionError("not reached")
