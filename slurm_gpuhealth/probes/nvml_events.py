"""Wait for NVML's own events, in a child that lives as long as they are wanted.

The kernel log is the first source: events never told of Xid 79, 119 and 120 (DCGM issue 162) and were seen to miss 62
(DCGM issue 235). They see what never comes to a log, and come where no kernel log can be read.

The child holds the GPUs open. A GPU reset or a change of the MIG mode needs it stopped before.
"""
from __future__ import annotations

from slurm_gpuhealth.probes import nvml_call

# nvml.h, nvmlEventType*: what is about the GPU's health. Clock and performance-state changes are not asked for.
_TYPES = {
    0x2: "double-bit ECC error", 0x8: "Xid", 0x200: "storm of single-bit ECC errors", 0x400: "memory retired",
    0x800: "memory could not be retired", 0x1000: "poison error", 0x2000: "fatal poison error",
    0x4000: "GPU unavailable", 0x8000: "GPU recovery action",
}
_WAIT_MS = 1000         # each wait; then it looks whether somebody still listens
_TIMEOUT = 10           # NVML_ERROR_TIMEOUT: nothing happened


def follow(spec, emit):
    """Emit ("ready", {}), then ("event", {"what"}) for each event and ("trouble", {"what"}) once NVML refuses.

    Returns when NVML has nothing to wait for; raises the NVML error it could not be started with.
    """
    nvml = nvml_call.import_nvml()
    try:
        nvml.nvmlInit()
        events = nvml.nvmlEventSetCreate()
        if not _register(nvml, events):
            emit("trouble", {"what": "no GPU gives events"})
            return
    except nvml.NVMLError as exc:
        raise OSError("NVML: %s" % nvml_call.unknown(exc.value).detail) from None
    emit("ready", {})
    quiet = 0
    while True:
        try:
            event = nvml.nvmlEventSetWait_v2(events, _WAIT_MS)
        except nvml.NVMLError as exc:
            if exc.value == _TIMEOUT:
                quiet += 1
                if quiet % 60 == 0:
                    emit("alive", {})       # a parent that is gone breaks the pipe here
                continue
            emit("trouble", {"what": nvml_call.unknown(exc.value).detail})
            return
        what = _TYPES.get(event.eventType, "event 0x%x" % event.eventType)
        emit("event", {"what": "%s %d" % (what, event.eventData) if event.eventType == 0x8 else what})


def _register(nvml, events):
    """How many GPUs will give events. One that refuses (lost, MIG, an old board) is left out."""
    count = 0
    for number in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            wanted = nvml.nvmlDeviceGetSupportedEventTypes(handle) & sum(_TYPES)
            if wanted:
                nvml.nvmlDeviceRegisterEvents(handle, wanted, events)
                count += 1
        except nvml.NVMLError:
            continue
    return count
