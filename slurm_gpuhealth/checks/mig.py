"""The GPUs are divided with MIG as the site says.

`expected: mig:` of the configuration lists the profiles that each GPU must show, as often as named, or `"off"`. Another
layout, MIG on without instances where some are expected, or MIG on where it should be off: `GH-MIG-LAYOUT`, a warning.
Where the site says nothing, any layout is right, also an empty one. A MIG mode that waits for a reset: `GH-MIG-PEND`, a
note.

What a GPU with MIG does not answer (row remapping, utilisation, NVLink) is "not available" for the other checks, never
a fault; MIG devices are not counted as GPUs. Unknown: mode or devices could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import asked, finding, gpus_unread, known, missing, subject_of, unread, usable
from slurm_gpuhealth.model import NOTE

POLICY = {"expected": "expected"}


def check(facts, limits):
    """Findings about MIG. limits: expected (of the configuration)."""
    wanted = sorted(name.strip().lower() for name in limits["expected"].get("mig") or ())
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "mig_mode", *asked(gpu, "mig_pending"),
                         *(("mig_devices",) if known(gpu.mig_mode, 1) else ()))
        if fields:
            found.append(unread(gpu, fields))
        if F.is_known(gpu.mig_mode) and F.is_known(gpu.mig_pending) and gpu.mig_pending != gpu.mig_mode:
            found.append(finding("GH-MIG-PEND", subject_of(gpu), _word(gpu.mig_mode), _word(gpu.mig_pending),
                                 severity=NOTE))
        if wanted and "mig_mode" not in fields:
            found += _layout(gpu, wanted)
    return found + gpus_unread(facts)


def _word(mode):
    return "on" if mode else "off"


def _layout(gpu, wanted):
    on = known(gpu.mig_mode, 1)     # "not supported": this GPU has no MIG
    if wanted == ["off"]:
        return [_differs(gpu, "on", "off")] if on else []
    if not on:
        return [_differs(gpu, "off", _list(wanted))]
    if not F.is_known(gpu.mig_devices):
        return []
    devices = sorted(name.lower() for name in gpu.mig_devices)
    return [] if devices == wanted else [_differs(gpu, _list(devices) or "no instances", _list(wanted))]


def _differs(gpu, seen, expected):
    return finding("GH-MIG-LAYOUT", subject_of(gpu), seen, expected)


def _list(names):
    """"7x1g.10gb" of seven of them."""
    return "+".join(("%dx%s" % (names.count(name), name) if names.count(name) > 1 else name)
                    for name in sorted(set(names)))
