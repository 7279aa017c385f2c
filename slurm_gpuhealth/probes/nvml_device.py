"""One GPU while it is read through NVML: who it is, and what its readers (probes/nvml_*.py) share."""
from __future__ import annotations

import struct

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.model import HEALTHCHECK, MANUAL
from slurm_gpuhealth.parse import bdf
from slurm_gpuhealth.probes import nvml_call as N

# No further call to a GPU that answered so (the driver may wait many seconds before each of them).
_STOP = (N.GPU_IS_LOST, N.RESET_REQUIRED, N.TIMEOUT)
_BROKEN_AFTER = 4       # so many calls with an unknown error: it is the GPU, not the call

# nvmlFieldValue_t (field, scope, two times; then type, return code, value), taken as bytes: reading the members of
# ctypes structures one by one made 18 fields cost 207 us in place of 97 (Python 3.11, 2026-11-30).
_FIELD = struct.Struct("=24xII8s")
# A field value's union, by its type (nvml.h, nvmlValueType_t).
_VALUE = tuple(struct.Struct("=" + kind) for kind in "dIQQqiH")


class Device:
    """One GPU while it is read.

    nvml: the module pynvml. handle: of the GPU. number: NVML's index. phase: of the round ("" where nobody said).
    values: by the names of facts.Gpu. error: None, or the Unknown for which it is asked no further.
    """

    def __init__(self, nvml, number, phase=""):
        self.nvml, self.number, self.phase = nvml, number, phase
        self.values: dict = dict.fromkeys(F.Gpu._fields, F.UNASKED)
        self.values.update(nvml_index=number, error=None)
        self.error = self.handle = None
        # Whether this round has time for what no starting job waits for; so has a reader that names no phase.
        self.in_rounds = phase in (HEALTHCHECK, MANUAL, "")
        self._call = N.Caller(nvml)
        self._bad_calls = 0

    def plain(self):
        """What is known by now, as facts.Gpu in plain form. What was not asked for is left out: it is most of it."""
        return {name: F.to_plain(value) for name, value in self.values.items() if value is not F.UNASKED}

    def identity(self):
        """Handle, addresses, names, persistence mode. The handle call attaches the GPU (1 to 3 s each without
        persistence mode)."""
        handle = self._call("nvmlDeviceGetHandleByIndex", self.number)
        if not F.is_known(handle):
            self._fail(handle)
            return
        self.handle = handle
        # The address first: it may be all that a lost GPU still says.
        pci = self.ask("nvmlDeviceGetPciInfo")
        self.values["bdf"] = _bdf(pci) if F.is_known(pci) else pci
        for name, function in (("uuid", "UUID"), ("minor", "MinorNumber"), ("persistence", "PersistenceMode"),
                               ("name", "Name"), ("serial", "Serial")):
            self.values[name] = self.ask("nvmlDeviceGet" + function)

    def ask(self, function, *args):
        """One call on this GPU: its answer, or an Unknown. Once the GPU is lost, no call but the same answer."""
        answer = self.optional(function, *args)
        if not F.is_known(answer) and self.error is None and answer.code in (N.UNKNOWN, N.IRQ_ISSUE):
            self._bad_calls += 1
            if self._bad_calls >= _BROKEN_AFTER:
                self._fail(F.Unknown(F.ERROR, "%s from %d calls" % (answer.detail, self._bad_calls), answer.code))
        return answer

    def optional(self, function, *args):
        """As `ask`, for what only some GPUs and drivers have: an unknown error says nothing about the GPU."""
        if self.error is not None:
            return self.error
        answer = self._call(function, self.handle, *args)
        if not F.is_known(answer):
            if answer.code in _STOP:
                self._fail(answer)
            elif answer.code == N.CORRUPTED_INFOROM:    # whichever call it was that stumbled over it
                self.values["inforom"] = answer
        return answer

    def newest(self, function, older):
        """As `ask`, for a call that old drivers have under another name or in another version."""
        found = self.ask(function)
        if F.is_known(found) or found.code not in (N.FUNCTION_NOT_FOUND, N.VERSION_MISMATCH):
            return found
        return self.ask(older)

    def take(self, name, answer, part=None):
        """values[name] = part(answer), or the answer itself where it is an Unknown or there is no `part`."""
        self.values[name] = part(answer) if part is not None and F.is_known(answer) else answer

    def fields(self, *ids):
        """Field values in one call: {id: number or Unknown}. ids: field ids, or (id, scope).

        A field that was not read holds 0, which mostly means "well": each field's own return code counts.
        """
        answer = self.ask("nvmlDeviceGetFieldValues", list(ids))
        if not F.is_known(answer):
            return dict.fromkeys(ids, answer)
        found = {}
        for one, (kind, code, value) in zip(ids, _FIELD.iter_unpack(bytes(answer))):
            if code in _STOP:
                self._fail(N.unknown(code))
            found[one] = _field(kind, code, value)
        return found

    def _fail(self, error):
        self.error = self.values["error"] = error


def _field(kind, code, value):
    if code == N.INVALID_ARGUMENT:      # a field id of which this driver has not heard
        return F.Unknown(F.UNSUPPORTED, "driver too old for this", N.INVALID_ARGUMENT)
    if code:
        return N.unknown(code)
    if kind >= len(_VALUE):
        return F.Unknown(F.ERROR, "a value of type %d" % kind)
    return _VALUE[kind].unpack_from(value)[0]


def _bdf(pci):
    text = pci.busId.decode("ascii", "replace") if isinstance(pci.busId, bytes) else pci.busId
    return bdf.normalise(text) or F.Unknown(F.ERROR, "not a PCI address: %r" % text[:32])
