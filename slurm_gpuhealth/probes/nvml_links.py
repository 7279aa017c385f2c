"""Reads of one GPU: its NVLinks and its place in the NVSwitch fabric, where it has them.

Two calls in every round (how many links, the state of all), one more in rounds that have time (error counters), one for
the fabric. Numbers of fields: NVML_FI_DEV_NVLINK_* of nvml.h, as in nvidia-ml-py 13.615; taken down 2026-11-30.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import nvml_call as N

_LINK_COUNT, _SWITCH_LINKS, _STATE = 91, 147, 165
_MOST_LINKS = 64        # no GPU has more; a count above it is nonsense

# Error counters of one link, by its number in the field's scope: up to Hopper the first group, from Blackwell on the
# second (nvml.h: "unsupported for Blackwell+"). What a GPU has not is left out.
_ERRORS = {161: "replay", 162: "recovery", 163: "crc"}
_ERRORS_NEW = {206: "malformed", 207: "overrun", 211: "integrity", 214: "recovery_failed", 215: "recovery_events"}
# Bit error rates, of Blackwell on: mantissa in bits 8 to 11, negative exponent of ten in bits 0 to 7.
_RATES = {220: "effective_ber", 222: "symbol_ber"}
# Drivers before 525 count by link in the field's own number: the first of links 0 to 5, and of 6 to 11.
_ERRORS_OLD = {"crc_flit": (32, 96), "crc_data": (39, 102), "replay": (46, 108), "recovery": (53, 114)}


def read(device):
    """Fill nvlinks and fabric."""
    device.values["nvlinks"] = _links(device)
    device.values["fabric"] = _fabric(device)


def _links(device):
    """[{"link", "state", "remote", ...}], or an Unknown. remote: "switch" where all links lead to NVSwitches."""
    if device.values["mig_mode"] == 1:
        return F.Unknown(F.UNSUPPORTED, "MIG is on, which takes the NVLinks away")
    counts = device.fields(_LINK_COUNT, _SWITCH_LINKS)
    count = counts[_LINK_COUNT]
    if not F.is_known(count):
        if count.code in (N.NOT_SUPPORTED, None) or count.reason != F.UNSUPPORTED:
            return count
        count = _MOST_LINKS     # a driver that does not know the field: ask until it says that there is no such link
    if not 0 < count <= _MOST_LINKS:
        return F.Unknown(F.UNSUPPORTED, "no NVLink")
    links = [{"link": number, "state": state} for number, state in enumerate(_states(device, count))
             if F.is_known(state) or state.reason != F.UNSUPPORTED]
    if not links:
        return F.Unknown(F.UNSUPPORTED, "no NVLink")
    if F.is_known(counts[_SWITCH_LINKS]) and counts[_SWITCH_LINKS] > 0:
        for link in links:
            link["remote"] = "switch"
    if device.in_rounds and device.error is None:
        _errors(device, links)
    return links


def _states(device, count):
    """State of each link: 0 down, 1 up, 2 asleep (up), or an Unknown."""
    answers = []
    if count < _MOST_LINKS:
        found = device.fields(*((_STATE, number) for number in range(count)))
        answers = [found[_STATE, number] for number in range(count)]
    if not answers or all(not F.is_known(state) and state.reason == F.UNSUPPORTED for state in answers):
        answers = []        # GPUs before Hopper, drivers before 515: one call a link
        for number in range(count):
            answers.append(device.ask("nvmlDeviceGetNvLinkState", number))
            if not F.is_known(answers[-1]) and answers[-1].code in (N.NOT_SUPPORTED, N.INVALID_ARGUMENT,
                                                                    N.FUNCTION_NOT_FOUND):
                return answers[:-1]
    return answers


def _errors(device, links):
    """Put "errors" into each link that is up: {counter: number}; rates as floats."""
    up = [link for link in links if F.is_known(link["state"]) and link["state"]]
    if not up:
        return
    wanted = {**_ERRORS, **_ERRORS_NEW, **_RATES}
    values = device.fields(*((field, link["link"]) for link in up for field in wanted))
    for link in up:
        own = {name: values[field, link["link"]] for field, name in wanted.items()}
        found = {name: value for name, value in own.items() if F.is_known(value)}
        if any(name in found for name in _ERRORS.values()):
            found = {name: value for name, value in found.items() if name not in _ERRORS_NEW.values()}
        for name in _RATES.values():
            if name in found:
                found[name] = ((found[name] >> 8) & 0xf) * 10.0 ** -(found[name] & 0xff)
        link["errors"] = found or next((value for value in own.values() if value.reason != F.UNSUPPORTED),
                                       own["replay"])
    if all(isinstance(link["errors"], F.Unknown) and link["errors"].reason == F.UNSUPPORTED for link in up):
        _errors_old(device, up)


def _errors_old(device, up):
    places = {link["link"]: {name: (first + link["link"] if link["link"] < 6 else later + link["link"] - 6)
                             for name, (first, later) in _ERRORS_OLD.items()}
              for link in up if link["link"] < 12}
    ids = [field for fields in places.values() for field in fields.values()]
    values = device.fields(*ids) if ids else {}
    for link in up:
        fields = places.get(link["link"], {})
        found = {name: values[field] for name, field in fields.items() if F.is_known(values[field])}
        if found:
            link["errors"] = found


def _fabric(device):
    """{"state", "status", "health_mask", "health_summary"}, or an Unknown. The newest structure that driver and
    nvidia-ml-py both know: the health mask came with version 2, its summary with 3."""
    from ctypes import byref
    answer = F.Unknown(F.UNSUPPORTED, "nvidia-ml-py too old for this")
    for function, struct in (("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
                             ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
                             ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t")):
        kind = getattr(device.nvml, struct, None)
        if kind is None:
            continue
        info = kind()
        answer = device.optional(function, byref(info))
        if F.is_known(answer):
            return {"state": info.state, "status": info.status, "health_mask": getattr(info, "healthMask", None),
                    "health_summary": getattr(info, "healthSummary", None)}
        if answer.code not in (N.VERSION_MISMATCH, N.INVALID_ARGUMENT, N.FUNCTION_NOT_FOUND):
            return answer
    if answer.code == N.INVALID_ARGUMENT:       # no version of the structure is known to this driver
        return F.Unknown(F.UNSUPPORTED, "driver too old for this", answer.code)
    return answer
