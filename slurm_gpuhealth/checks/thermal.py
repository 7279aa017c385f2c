"""No GPU is hotter than its own limits.

Each GPU says at which temperature it lowers its clocks and at which it shuts down, so no number is needed here. GPUs
since Hopper tell the distance to these points instead; it is turned into degrees when it is read.

- At or above the highest temperature for operation (`gpu_margin` degrees before it, 0), or its memory at or above its
  own: `GH-THERMAL`, a warning.
- At or above the temperature at which the hardware halves the clocks, in `rounds` health checks in a row, or within
  `shutdown_margin` degrees of the shutdown: `GH-OVERHEAT`.

Unknown: the temperature or the limits could not be read. A GPU that does not say a limit is not measured by it.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, streak, subject_of, unread, usable

LIMITS = {
    "gpu_margin": (0, "degrees C below the GPU's own highest operating temperature from which on it is a warning"),
    "shutdown_margin": (3, "degrees C below the GPU's shutdown temperature from which on it is a fault at once"),
    "rounds": (3, "health checks in a row above the slowdown temperature that are a fault"),
}


def check(facts, limits):
    """Findings about temperatures. limits: see LIMITS."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "temperature", "temperature_memory", "temperature_limits")
        if fields:
            found.append(unread(gpu, fields))
        if F.is_known(gpu.temperature_limits):
            found += _about(facts, gpu, limits)
    return found + gpus_unread(facts)


def _about(facts, gpu, limits):
    own, subject = gpu.temperature_limits, subject_of(gpu)
    now = gpu.temperature
    if _over(now, own, "shutdown", limits["shutdown_margin"]):
        return [finding("GH-OVERHEAT", subject, "%d C" % now, "shutdown at %d C" % own["shutdown"], temperature=now)]
    warning, data = [], {}
    if _over(now, own, "slowdown"):
        key = "slowdown temperature/%s" % gpu.uuid
        if streak(facts, key)[0] + 1 >= limits["rounds"]:
            return [finding("GH-OVERHEAT", subject, "%d C" % now, "slowdown at %d C" % own["slowdown"],
                            temperature=now, streak=key)]
        warning, data = ["%d C of %d C" % (now, own["slowdown"])], {"streak": key, "temperature": now}
    elif _over(now, own, "gpu_max", limits["gpu_margin"]):
        warning, data = ["%d C of %d C" % (now, own["gpu_max"])], {"temperature": now}
    if _over(gpu.temperature_memory, own, "memory_max"):
        warning.append("memory %d C of %d C" % (gpu.temperature_memory, own["memory_max"]))
        data["temperature_memory"] = gpu.temperature_memory
    return [finding("GH-THERMAL", subject, ", ".join(warning), **data)] if warning else []


def _over(now, own, name, margin=0):
    """Whether a temperature reached one of the GPU's own limits, or is within `margin` of it. A limit of 0 or less is
    none: some GPUs leave the field empty."""
    return F.is_known(now) and own.get(name, 0) > 0 and now >= own[name] - margin
