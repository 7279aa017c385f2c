"""The GPUs are set as jobs need them: persistence mode, compute mode, application clocks.

- Persistence mode off: `GH-PERSIST-OFF`, a warning. Each first program then waits 1 to 3 seconds a GPU, as do these
  checks, and the volatile error counters are lost each time.
- Compute mode "prohibited": no program can use the GPU: `GH-COMP-PROH`. An exclusive mode lets one process only onto
  it: `GH-COMP-EXCL`, a warning, unless the limit `exclusive` says that the site wants it so.
- Application clocks below their default, left behind by somebody: `GH-APP-CLOCK`, a warning.

Unknown: a mode could not be read. What this GPU or driver does not have is not judged.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import asked, finding, gpus_unread, known, missing, subject_of, unread, usable
from slurm_gpuhealth.model import ALL_GPUS

LIMITS = {"exclusive": (False, "the site sets an exclusive compute mode on purpose")}

# nvmlComputeMode_t.
_PROHIBITED, _EXCLUSIVE = 2, {1: "exclusive thread", 3: "exclusive process"}


def check(facts, limits):
    """Findings about modes. limits: exclusive."""
    gpus = usable(facts)
    found = _persistence(gpus)
    for gpu in gpus:
        if known(gpu.compute_mode, _PROHIBITED):
            found.append(finding("GH-COMP-PROH", subject_of(gpu)))
        elif known(gpu.compute_mode, *_EXCLUSIVE) and not limits["exclusive"]:
            found.append(finding("GH-COMP-EXCL", subject_of(gpu), _EXCLUSIVE[gpu.compute_mode]))
        found += _clocks(gpu)
        fields = missing(gpu, "persistence", "compute_mode", *asked(gpu, "clock_app", "clock_app_default"))
        if fields:
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)


def _persistence(gpus):
    off = [gpu for gpu in gpus if known(gpu.persistence, 0)]
    if not off:
        return []
    seen = "off on %d of %d GPUs" % (len(off), len(gpus))
    return [finding("GH-PERSIST-OFF", ALL_GPUS, seen, gpus=[gpu.index for gpu in off if F.is_known(gpu.index)])]


def _clocks(gpu):
    # In rounds only; and drivers of today have no application clocks any more.
    if not F.is_known(gpu.clock_app) or not F.is_known(gpu.clock_app_default):
        return []
    low = [(name, gpu.clock_app[name], gpu.clock_app_default[name]) for name in ("sm", "memory")
           if gpu.clock_app.get(name) and gpu.clock_app_default.get(name)
           and gpu.clock_app[name] < gpu.clock_app_default[name]]
    if not low:
        return []
    return [finding("GH-APP-CLOCK", subject_of(gpu), ", ".join("%s %d MHz" % (name, now) for name, now, _ in low),
                    ", ".join("%s %d MHz" % (name, default) for name, _, default in low))]
