"""Ask the NVIDIA driver through the real nvidia-ml-py. Runs in a child: any call may hang for ever.

What is quick and tells most comes first, and everything is emitted as soon as it is known, so that a call that
hangs later leaves its trail: "system", "count", then for each GPU its identity, then for each GPU the rest, with
"reading" before each. A GPU that says it is lost is asked no further: each further call to it can wait for 45 s.

nvmlShutdown is never called: it frees nothing that the end of the process does not, and can hang.
"""
from __future__ import annotations

import gc
import json
import sys

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.parse import bdf

# NVML return codes (nvml.h, nvmlReturn_t) that are treated apart.
NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, TIMEOUT, IRQ_ISSUE, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND = (
    3, 4, 9, 10, 11, 12, 13)
GPU_IS_LOST, RESET_REQUIRED, UNKNOWN = 15, 16, 999

_TEXTS = {
    1: "not initialised", 2: "invalid argument", 3: "not supported", 4: "no permission", 6: "not found",
    8: "external power cables not attached", 9: "driver not loaded", 10: "driver timed out",
    11: "interrupt problem", 12: "no libnvidia-ml.so.1", 13: "driver too old for this", 14: "InfoROM corrupted",
    15: "GPU is lost", 16: "GPU needs a reset", 17: "blocked by the operating system",
    18: "driver and library of different versions", 19: "in use", 20: "out of memory", 21: "no data",
    25: "structure version not known", 27: "not ready", 28: "GPU not found", 29: "invalid state", 999: "unknown error",
}

# No further call to a GPU that answered so (the driver may wait many seconds before each of them).
_STOP = (GPU_IS_LOST, RESET_REQUIRED, TIMEOUT)
_BROKEN_AFTER = 4       # so many calls with an unknown error: it is the GPU, not the call

_INIT_FLAG_NO_GPUS = 1          # nvmlInitWithFlags: a node without GPUs is no error
_FI_GPU_RECOVERY_ACTION = 230   # field id; 226 and 227, which it replaced, are dead


def read(spec, emit):
    """Emit what NVML says. spec: root ("" for this machine; else DIR/nvml.json is read instead)."""
    if spec["root"]:
        _read_fixture(spec["root"], emit)
        return
    nvml = _import_nvml()
    try:
        nvml.nvmlInitWithFlags(_INIT_FLAG_NO_GPUS)
    except nvml.NVMLError as exc:
        emit("system", F.to_plain({"nvml": _unknown(exc.value), "driver": _module_version()}))
        emit("done", {})
        return
    call = _Caller(nvml)
    cuda = call("nvmlSystemGetCudaDriverVersion_v2")
    if F.is_known(cuda):
        cuda = "%d.%d" % (cuda // 1000, cuda % 1000 // 10)
    emit("system", F.to_plain({"driver": call("nvmlSystemGetDriverVersion"), "cuda": cuda,
                               "nvml": call("nvmlSystemGetNVMLVersion")}))
    count = call("nvmlDeviceGetCount")
    emit("count", F.to_plain({"count": count}))
    found = []
    for number in range(count if F.is_known(count) else 0):
        emit("reading", {"nvml_index": number})
        device = _Device(nvml, number)
        device.identity()
        if F.is_known(device.values["persistence"]):
            emit("persistence", {"nvml_index": number, "mode": device.values["persistence"]})
        emit("gpu", device.plain())
        found.append(device)
    for device in found:
        if device.error is None:
            emit("reading", {"nvml_index": device.number})
            device.details()
            emit("gpu", device.plain())
    emit("done", {})


def assemble(records, spec, status):
    """Facts fields of what `read` emitted, also of a part of it: driver, cuda, nvml, gpu_count, gpus.

    spec: known (KnownGpu as dicts), minors (gres index -> device minor, may be empty), expected (number or
    None). Of a GPU that was being read when time ran out, what is missing is Unknown(timeout).
    """
    why = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
    missing = F.Unknown(F.NOT_READ, "") if status.outcome == "ok" else F.Unknown(why, status.detail)
    fields = {"driver": missing, "cuda": missing, "nvml": missing, "gpu_count": missing}
    gpus, reading = {}, None
    for kind, plain in records:
        if kind == "system":
            system = F.from_plain({name: plain[name] for name in ("driver", "cuda", "nvml") if name in plain})
            fields.update({name: getattr(system, name) for name in ("driver", "cuda", "nvml") if name in plain})
        elif kind == "count":
            fields["gpu_count"] = F.from_plain({"gpu_count": plain["count"]}).gpu_count
        elif kind == "reading":
            reading = plain["nvml_index"]
        elif kind == "gpu":
            gpu = F.from_plain(plain, F.Gpu)
            gpus[gpu.nvml_index] = gpu
            reading = None
    if reading is not None:
        gpus[reading] = _unanswered(gpus.get(reading) or F.Gpu(**{"nvml_index": reading}), missing)
    if not F.is_known(fields["nvml"]) and fields["nvml"].code is not None:
        fields["gpu_count"] = fields["nvml"]
    in_order = [gpus[number] for number in sorted(gpus)]
    known = [F.KnownGpu(**entry) for entry in spec.get("known") or ()]
    fields["gpus"] = with_indices(in_order, known, spec.get("minors") or (), spec.get("expected"))
    return fields


def with_indices(gpus, known, minors, expected=None):
    """`gpus` with the index that Slurm gives them (gres index), as a tuple in order of NVML.

    By the device minor: its place in gres.conf's File= order (`minors`), else its rank when all GPUs are there
    (slurmd sorts device files). When some are gone, ranks and NVML's own order have moved: then by what was
    learnt in healthy rounds (`known`). A GPU that does not even say who it is gets the place that is left over.
    """
    whole = len(gpus) == (expected or len(known) or len(gpus)) and all(F.is_known(gpu.minor) for gpu in gpus)
    ranks = sorted(gpu.minor for gpu in gpus) if whole else []
    placed = []
    for gpu in gpus:
        index = None
        if F.is_known(gpu.minor) and gpu.minor in minors:
            index = list(minors).index(gpu.minor)
        elif whole and not minors:
            index = ranks.index(gpu.minor)
        else:
            match = _known_as(gpu, known)
            if match is not None:
                index = match.index
            elif F.is_known(gpu.minor) and not minors:
                index = gpu.minor
        placed.append(gpu._replace(index=F.UNASKED if index is None else index))
    return tuple(_place_the_rest(placed, known, expected or len(minors)))


def _known_as(gpu, known):
    for name in ("uuid", "bdf"):
        value = getattr(gpu, name)
        if F.is_known(value) and value:
            for entry in known:
                if getattr(entry, name) == value:
                    return entry
    return None


def _place_the_rest(gpus, known, expected):
    """Give the GPUs without any identity the known ones that nobody else is, where that is certain."""
    silent = [number for number, gpu in enumerate(gpus) if not F.is_known(gpu.index)
              and not F.is_known(gpu.uuid) and not F.is_known(gpu.bdf)]
    taken = {gpu.index for gpu in gpus if F.is_known(gpu.index)}
    if len(silent) == 1 and not known and len(gpus) == expected:
        left = set(range(expected)) - taken
        if len(left) == 1:
            gpus[silent[0]] = gpus[silent[0]]._replace(index=left.pop())
    free = sorted((entry for entry in known if entry.index not in taken), key=lambda entry: entry.bdf)
    if silent and len(silent) == len(free) and (len(silent) == 1 or _in_bus_order(gpus)):
        for number, entry in zip(silent, free):
            gpus[number] = gpus[number]._replace(index=entry.index, uuid=entry.uuid, bdf=entry.bdf)
    # The known GPU that a lost one is may also tell what the lost one did not say.
    for number, gpu in enumerate(gpus):
        entry = _known_as(gpu, known)
        if gpu.error is not None and entry is not None:
            gpus[number] = gpu._replace(uuid=gpu.uuid if F.is_known(gpu.uuid) else entry.uuid,
                                        bdf=gpu.bdf if F.is_known(gpu.bdf) else entry.bdf)
    return gpus


def _in_bus_order(gpus):
    """Whether NVML counts the GPUs that it can name in the order of their PCI addresses (it usually does)."""
    addresses = [gpu.bdf for gpu in gpus if F.is_known(gpu.bdf)]
    return addresses == sorted(addresses)


def _unanswered(gpu, missing):
    fields = {name: missing for name in F.Gpu._fields[1:]
              if getattr(gpu, name) == F.UNASKED and name not in ("index", "error")}
    return gpu._replace(**fields)._replace(nvml_index=gpu.nvml_index)


def _import_nvml():
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


def _unknown(code):
    reason = {NOT_SUPPORTED: F.UNSUPPORTED, FUNCTION_NOT_FOUND: F.UNSUPPORTED, NO_PERMISSION: F.DENIED,
              LIBRARY_NOT_FOUND: F.ABSENT, DRIVER_NOT_LOADED: F.ABSENT}.get(code, F.ERROR)
    return F.Unknown(reason, _TEXTS.get(code, "NVML error %d" % code), code)


def _module_version():
    """Version of the loaded kernel module: the only thing left to say when NVML does not start."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as handle:
            words = handle.readline().split()
    except OSError:
        return F.Unknown(F.ABSENT, "no driver loaded")
    return next((word for word in words if word[:1].isdigit() and "." in word), F.Unknown(F.ERROR, "not readable"))


class _Caller:
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
                    return _unknown(exc.value)
            except self._mismatch:
                return _unknown(FUNCTION_NOT_FOUND)
            except UnicodeDecodeError:
                return F.Unknown(F.ERROR, "not readable as text")
        raise AssertionError("not reached")


class _Device:
    """One GPU while it is read: its values by the names of facts.Gpu."""

    def __init__(self, nvml, number):
        self.nvml, self.number = nvml, number
        self.values: dict = dict.fromkeys(F.Gpu._fields, F.UNASKED)
        self.values.update(nvml_index=number, error=None)
        self.error = None
        self._call = _Caller(nvml)
        self._handle = None
        self._bad_calls = 0

    def plain(self):
        return F.to_plain(F.Gpu(**self.values))

    def identity(self):
        """Handle, addresses, names, persistence mode. The handle call attaches the GPU (1 to 3 s each without
        persistence mode)."""
        handle = self._call("nvmlDeviceGetHandleByIndex", self.number)
        if not F.is_known(handle):
            self._fail(handle)
            return
        self._handle = handle
        # The address first: it may be all that a lost GPU still says.
        pci = self._ask("nvmlDeviceGetPciInfo")
        self.values["bdf"] = self._bdf(pci) if F.is_known(pci) else pci
        for name, function in (("uuid", "UUID"), ("minor", "MinorNumber"), ("persistence", "PersistenceMode"),
                               ("name", "Name"), ("serial", "Serial")):
            self.values[name] = self._ask("nvmlDeviceGet" + function)

    def details(self):
        """The rest, what drains a node first."""
        nvml, ask, values = self.nvml, self._ask, self.values
        self._take("mig_mode", ask("nvmlDeviceGetMigMode"), lambda modes: modes[0])
        values["recovery_action"] = self._recovery_action()
        self._memory_errors()
        for name, function in (
                ("pcie_width", "CurrPcieLinkWidth"), ("pcie_width_max", "MaxPcieLinkWidth"),
                ("pcie_gen", "CurrPcieLinkGeneration"), ("pcie_gen_max", "MaxPcieLinkGeneration"),
                ("pstate", "PerformanceState")):
            values[name] = ask("nvmlDeviceGet" + function)
        self._take("utilization", ask("nvmlDeviceGetUtilizationRates"), lambda rates: rates.gpu)
        for name, function in (
                ("pcie_gen_gpu_max", "GpuMaxPcieLinkGeneration"), ("pcie_replay", "PcieReplayCounter"),
                ("compute_mode", "ComputeMode")):
            values[name] = ask("nvmlDeviceGet" + function)
        values["temperature"] = ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)
        self._take("power", ask("nvmlDeviceGetPowerUsage"), lambda milliwatts: milliwatts / 1000)
        self._take("power_limit", ask("nvmlDeviceGetEnforcedPowerLimit"), lambda milliwatts: milliwatts / 1000)
        values["clock_sm"] = ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)
        # The second is its name before the 535 driver.
        values["clock_reasons"] = self._newest("CurrentClocksEventReasons", "CurrentClocksThrottleReasons")
        memory = ask("nvmlDeviceGetMemoryInfo")
        self._take("memory_total", memory, lambda info: info.total)
        self._take("memory_used", memory, lambda info: info.used)
        self._take("processes", self._newest("ComputeRunningProcesses_v3", "ComputeRunningProcesses_v2"),
                   lambda found: [[entry.pid, entry.usedGpuMemory] for entry in found])

    def _memory_errors(self):
        nvml, ask, values = self.nvml, self._ask, self.values
        self._take("ecc_mode", ask("nvmlDeviceGetEccMode"), lambda modes: modes[0])
        for kind, error in (("uncorrected", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
                            ("corrected", nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED)):
            for when, counter in (("volatile", nvml.NVML_VOLATILE_ECC), ("aggregate", nvml.NVML_AGGREGATE_ECC)):
                values["ecc_%s_%s" % (kind, when)] = (
                    F.Unknown(F.UNSUPPORTED, "ECC is off") if values["ecc_mode"] == 0
                    else ask("nvmlDeviceGetTotalEccErrors", error, counter))
        rows = ask("nvmlDeviceGetRemappedRows")
        for place, name in enumerate(("corrected", "uncorrected", "pending", "failure")):
            self._take("remap_" + name, rows, lambda found, place=place: found[place])
        if F.is_known(rows) or self.error is not None:
            # Rows are remapped since Ampere; pages were retired before it. No GPU has both.
            values["retired_pages"] = values["retired_pending"] = F.Unknown(F.UNSUPPORTED, "remaps rows instead")
            return
        pages = [ask("nvmlDeviceGetRetiredPages", cause) for cause in (
            nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
            nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)]
        unread = [found for found in pages if not F.is_known(found)]
        values["retired_pages"] = unread[0] if unread else sum(len(found) for found in pages)
        values["retired_pending"] = ask("nvmlDeviceGetRetiredPagesPendingStatus")

    def _recovery_action(self):
        fields = self._ask("nvmlDeviceGetFieldValues", [_FI_GPU_RECOVERY_ACTION])
        if not F.is_known(fields):
            return fields
        # A field that was not read holds 0, which would mean "nothing to recover": its own return code counts.
        if fields[0].nvmlReturn:
            return _unknown(fields[0].nvmlReturn)
        return int(fields[0].value.uiVal)

    def _newest(self, name, older):
        """A call that old drivers have under another name or in another version."""
        found = self._ask("nvmlDeviceGet" + name)
        if F.is_known(found) or found.code != FUNCTION_NOT_FOUND:
            return found
        return self._ask("nvmlDeviceGet" + older)

    def _ask(self, function, *args):
        """One call on this GPU; once it is lost, no call but the same answer."""
        if self.error is not None:
            return self.error
        answer = self._call(function, self._handle, *args)
        if not F.is_known(answer):
            self._bad_calls += answer.code in (UNKNOWN, IRQ_ISSUE)
            if answer.code in _STOP:
                self._fail(answer)
            elif self._bad_calls >= _BROKEN_AFTER:
                self._fail(F.Unknown(F.ERROR, "%s from %d calls" % (answer.detail, self._bad_calls), answer.code))
        return answer

    def _fail(self, error):
        self.error = self.values["error"] = error

    def _take(self, name, answer, part):
        self.values[name] = part(answer) if F.is_known(answer) else answer

    def _bdf(self, pci):
        text = pci.busId.decode("ascii", "replace") if isinstance(pci.busId, bytes) else pci.busId
        return bdf.normalise(text) or F.Unknown(F.ERROR, "not a PCI address: %r" % text[:32])


def _read_fixture(root, emit):
    """DIR/nvml.json of a fixture node: {driver, cuda, nvml, count, defaults: {...}, gpus: [{...}]}, GPUs in the plain
    form of facts.Gpu over `defaults`. `nvml` may be {"unknown": ..., "code": 18}. No file: no library."""
    try:
        with open(paths.under(root, "/nvml.json"), encoding="utf-8") as handle:
            node = json.load(handle)
    except FileNotFoundError:
        emit("system", F.to_plain({"nvml": _unknown(LIBRARY_NOT_FOUND)}))
        emit("done", {})
        return
    emit("system", {name: node[name] for name in ("driver", "cuda", "nvml") if name in node})
    gpus = node.get("gpus", ())
    if "count" in node or "gpus" in node:
        emit("count", {"count": node.get("count", len(gpus))})
    for number, changes in enumerate(gpus):
        plain = dict({"nvml_index": number, "error": None}, **node.get("defaults", {}))
        plain.update(changes)
        emit("gpu", plain)
    emit("done", {})
