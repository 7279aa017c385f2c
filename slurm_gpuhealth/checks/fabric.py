"""Each GPU of an NVSwitch system has joined the fabric, and the fabric is healthy for it.

Where there is no NVSwitch (PCIe cards, NVLink bridges, older GPUs) the driver says "not supported" or state 0: fine.

- Registration not started: nvidia-fabricmanager is not running, and every CUDA program fails at its start. In progress
  is normal for a minute after a boot (`boot_seconds`, a note); when it stands for `rounds` health checks, or a job is
  to start on it, it is the same fault. `GH-FABRIC-DN` when no GPU has joined, `GH-FABRIC-BAD` when some have.
- Registered with an error, unhealthy, its routes unhealthy, or not configured right: `GH-FABRIC-BAD`.
- Works with less than all links, or its recovery stands for `rounds` rounds: `GH-FABRIC-LIM`, a warning.

With MIG a GPU takes no part in the fabric. Unknown: the state could not be read, or whether MIG is on.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import (
    early,
    finding,
    gpus_unread,
    missing,
    streak,
    subject_of,
    unread,
    usable,
    without_mig,
)
from slurm_gpuhealth.model import ALL_GPUS, NOTE, PROLOG

LIMITS = {
    "rounds": (3, "health checks in a row before something in progress counts as stuck"),
    "boot_seconds": (300, "time after a boot in which the fabric may still be starting"),
}
# nvmlGpuFabricState_t.
_NOT_STARTED, _IN_PROGRESS, _COMPLETED = 1, 2, 3
_HEALTHY, _UNHEALTHY, _LIMITED = 1, 2, 3        # health summary; 0: the driver does not say
_STATUS = {3: "not supported", 4: "no permission", 10: "timed out", 23: "insufficient resources", 27: "not ready",
           29: "invalid state", 999: "unknown error"}
# Groups of the health mask (nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_*; taken down 2026-11-30): place, width in bits, values
# that are a fault, what it is, and how bad: "bad", "limited", "busy" (a recovery, bad only when it does not end).
_GROUPS = (
    (4, 2, (1,), "routes unhealthy", "bad"),
    (8, 4, (2, 3, 4, 5, 6, 7, 8), "wrong configuration", "bad"),
    (0, 2, (1,), "bandwidth degraded", "limited"),
    (14, 2, (2,), "global fabric manager not connected", "limited"),
    (2, 2, (1,), "route recovery", "busy"),
    (6, 2, (1,), "recovery from a time-out", "busy"),
)
_CONFIGURATION = {2: "wrong system GUID", 3: "wrong chassis serial number", 4: "no partition", 5: "too few NVLinks",
                  6: "GPU firmware does not fit", 7: "wrong location", 8: "GPU in a wrong state"}
_SERVICES = ("nvidia-fabricmanager", "nv-fabricmanager", "nvidia-imex")


def check(facts, limits):
    """Findings about the fabric. limits: rounds, boot_seconds."""
    gpus, unsure = without_mig(usable(facts), "fabric")
    found = _outside(facts, [gpu for gpu in gpus if F.is_known(gpu.fabric)], limits)
    for gpu in gpus:
        fields = missing(gpu, "fabric")
        if fields:
            found.append(unread(gpu, fields))
        elif F.is_known(gpu.fabric) and gpu.fabric["state"] == _COMPLETED:
            found += _joined(facts, gpu, limits["rounds"])
    return found + unsure + gpus_unread(facts)


def _outside(facts, gpus, limits):
    """GPUs that have not joined."""
    outside = [gpu for gpu in gpus if gpu.fabric["state"] in (_NOT_STARTED, _IN_PROGRESS)]
    if not outside:
        return []
    everywhere = not any(gpu.fabric["state"] == _COMPLETED for gpu in gpus)
    if everywhere and len(outside) > 1:
        worst = min(gpu.fabric["state"] for gpu in outside)
        return [_not_joined(facts, "GH-FABRIC-DN", ALL_GPUS, worst, limits, " on %d GPUs" % len(outside))]
    return [_not_joined(facts, "GH-FABRIC-BAD", subject_of(gpu), gpu.fabric["state"], limits) for gpu in outside]


def _not_joined(facts, code, subject, state, limits, where=""):
    key = "fabric/%s" % (subject.uuid or subject.bdf or subject.kind)
    stuck = state == _NOT_STARTED or facts.phase == PROLOG or streak(facts, key)[0] + 1 >= limits["rounds"]
    quiet = early(facts, limits["boot_seconds"]) or not stuck
    seen = ("registration not started" if state == _NOT_STARTED else "registration in progress") + where
    return finding(code, subject, seen + _about_services(facts), severity=NOTE if quiet else None, streak=key,
                   state=state)


def _about_services(facts):
    """What systemd says of the services that make the fabric, where it says that one does not run."""
    texts = ["%s is %s" % (service.name, service.active) for service in
             (facts.services if F.is_known(facts.services) else ())
             if service.name.startswith(_SERVICES) and service.load != "not-found"
             and F.is_known(service.active) and service.active not in ("active", None)]
    return "; " + ", ".join(texts) if texts else ""


def _joined(facts, gpu, rounds):
    """Faults of a GPU that has joined: the worst one, with the names of the others."""
    fabric, subject = gpu.fabric, subject_of(gpu)
    if fabric["status"]:
        about = _STATUS.get(fabric["status"], "")
        return [finding("GH-FABRIC-BAD", subject, "registered with error %d%s" % (
            fabric["status"], " (%s)" % about if about else ""), status=fabric["status"])]
    summary, groups = fabric.get("health_summary"), _groups(fabric.get("health_mask"))
    texts = {level: [text for text, how in groups if how == level] for level in ("bad", "limited", "busy")}
    data = {"health_mask": fabric.get("health_mask"), "health_summary": summary}
    if summary == _UNHEALTHY or (texts["bad"] and summary not in (_HEALTHY, _LIMITED)):
        words = texts["bad"] + texts["limited"] + texts["busy"]
        return [finding("GH-FABRIC-BAD", subject, ", ".join(words) or "unhealthy", **data)]
    if summary == _LIMITED or texts["bad"] or texts["limited"]:
        return [finding("GH-FABRIC-LIM", subject, ", ".join(texts["bad"] + texts["limited"]) or "limited capacity",
                        **data)]
    if not texts["busy"]:
        return []
    key = "fabric recovery/%s" % gpu.uuid
    stuck = streak(facts, key)[0] + 1 >= rounds
    return [finding("GH-FABRIC-LIM", subject, ", ".join(texts["busy"]), severity=None if stuck else NOTE, streak=key,
                    **data)]


def _groups(mask):
    """[(text, how bad)] of the groups of a health mask that say something bad."""
    found = []
    for place, width, faults, text, how in _GROUPS if mask is not None else ():
        value = mask >> place & ((1 << width) - 1)
        if value in faults:
            found.append((_CONFIGURATION[value] if place == 8 else text, how))
    return found
