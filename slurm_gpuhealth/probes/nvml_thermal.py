"""Reads of one GPU: temperature, power, clocks and why they are held down, modes.

In rounds that have time also the GPU's own limits, how long its clocks were held down, and its application clocks.
Numbers of fields: NVML_FI_DEV_* of nvml.h, as in nvidia-ml-py 13.615; taken down 2026-11-30.
"""
from __future__ import annotations

import time

from slurm_gpuhealth import facts as F

_MEMORY_TEMPERATURE = 82
# Distance from the GPU's own limit at which each thing happens (T.Limit, since Hopper); negative: above the limit.
_DISTANCES = {"shutdown": 193, "slowdown": 194, "gpu_max": 196}
# Time for which clocks were held down, in nanoseconds since the driver was loaded.
_HELD_DOWN = {"power": 74, "thermal": 75, "sw_thermal": 269, "hw_thermal": 270, "hw_power_brake": 271}
# nvmlTemperatureThresholds_t.
_THRESHOLDS = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "gpu_max": 3}

# The hardware holds the clocks down: slowdown, thermal, power brake (nvml.h). The first is also set for a moment when
# the performance state changes, so one look is not enough.
_HARDWARE = 0x8 | 0x40 | 0x80
_LOOKS, _PAUSE = 3, 0.1


def read(device):
    """Fill compute_mode, temperature*, power*, clock_*, violations, reason_samples."""
    nvml, ask, values = device.nvml, device.ask, device.values
    values["compute_mode"] = ask("nvmlDeviceGetComputeMode")
    values["temperature"] = ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)
    device.take("power", ask("nvmlDeviceGetPowerUsage"), lambda milliwatts: milliwatts / 1000)
    device.take("power_limit", ask("nvmlDeviceGetEnforcedPowerLimit"), lambda milliwatts: milliwatts / 1000)
    values["clock_sm"] = ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)
    values["clock_reasons"] = _reasons(device)
    if device.in_rounds:
        _more(device)


def _reasons(device):
    # The second is its name before the 535 driver.
    return device.newest("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")


def _more(device):
    nvml, ask, values = device.nvml, device.ask, device.values
    fields = device.fields(_MEMORY_TEMPERATURE, *_DISTANCES.values(), *_HELD_DOWN.values())
    values["temperature_memory"] = fields[_MEMORY_TEMPERATURE]
    values["violations"] = _known({name: fields[field] for name, field in _HELD_DOWN.items()})
    values["temperature_limits"] = _limits(device, {name: fields[field] for name, field in _DISTANCES.items()})
    values["clock_memory"] = ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM)
    values["clock_sm_max"] = ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM)
    for name, function in (("clock_app", "nvmlDeviceGetApplicationsClock"),
                           ("clock_app_default", "nvmlDeviceGetDefaultApplicationsClock")):
        values[name] = _known({kind: device.optional(function, clock) for kind, clock in (
            ("sm", nvml.NVML_CLOCK_GRAPHICS), ("memory", nvml.NVML_CLOCK_MEM))})
    samples = [values["clock_reasons"]]
    while F.is_known(samples[-1]) and samples[-1] & _HARDWARE and len(samples) < _LOOKS:
        time.sleep(_PAUSE)
        samples.append(_reasons(device))
    values["reason_samples"] = [mask for mask in samples if F.is_known(mask)]


def _limits(device, distances):
    """{name: degrees}. Where the GPU tells distances only, they are laid on today's temperature: what counts is the
    hottest place of the GPU, and its distance from the limit goes through zero when it gets there."""
    if any(F.is_known(distance) for distance in distances.values()):
        margin, temperature = device.optional("nvmlDeviceGetMarginTemperature"), device.values["temperature"]
        if F.is_known(margin) and F.is_known(temperature):
            return {name: temperature + margin - _signed(distance) for name, distance in distances.items()
                    if F.is_known(distance)}
    return _known({name: device.optional("nvmlDeviceGetTemperatureThreshold", number)
                   for name, number in _THRESHOLDS.items()})


def _signed(number):
    """A degree below zero that came as an unsigned number."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _known(values):
    """What of `values` could be read; where nothing could, why (an error rather than "not supported")."""
    found = {name: value for name, value in values.items() if F.is_known(value)}
    if found:
        return found
    return next((value for value in values.values() if value.reason != F.UNSUPPORTED), next(iter(values.values())))
