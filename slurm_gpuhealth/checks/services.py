"""Services that must run do run: those of the configuration, and NVIDIA's own where they are needed.

- A unit under `services:` that is not active: `GH-SERVICE`. One that is just starting or stopping: a warning.
- nvidia-fabricmanager on a node with NVSwitches, installed and neither active nor masked: `GH-FABRIC-MGR`. Where the
  GPUs say that their fabric is set up all the same (it runs in a container), it is a warning.
- nvidia-imex enabled and not active: `GH-IMEX-SVC`, a warning. nvidia-persistenced failed:
  `GH-PERSIST-SVC`, a note, as check gpu_modes looks at the mode itself.

A node without systemd, and none of the configured services: nothing to say.
Unknown: systemd did not answer, or services are configured and there is no systemd.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import model
from slurm_gpuhealth.checks._shared import finding
from slurm_gpuhealth.model import WARNING, Subject

POLICY = {"services": "services"}

_UP = ("active", "reloading", "refreshing")
_ON_ITS_WAY = ("activating", "deactivating")
_MANAGER, _IMEX, _PERSISTENCE = "nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced"
_ENABLED = ("enabled", "enabled-runtime", "static", "alias", "linked")
_FABRIC_DONE = 3        # nvmlGpuFabricInfo state: set up
_FABRIC_WAITS = (1, 2)  # not started, in progress


def check(facts, limits):
    """Findings about services. limits: services (names of the configuration)."""
    wanted = {_short(name) for name in limits["services"] or ()}
    if not F.is_known(facts.services):
        if facts.services.reason == F.ABSENT and not wanted:
            return []
        return [finding("GH-SVC-UNREAD", model.NODE, facts.services.detail or facts.services.reason,
                        why=facts.services.reason)]
    found = []
    for one in facts.services:
        name = _short(one.name)
        if not F.is_known(one.active):
            found.append(finding("GH-SVC-UNREAD", Subject("part", name=name), one.active.detail or one.active.reason))
            continue
        if one.active in _UP:
            continue
        if name == _MANAGER and _judged(one) and _has_switches(facts):
            found.append(_down("GH-FABRIC-MGR", one, WARNING if _fabric_is_up(facts) else None))
        elif name in wanted:
            found.append(_down("GH-SERVICE", one))
        elif name == _IMEX and _judged(one) and one.enabled in _ENABLED:
            found.append(_down("GH-IMEX-SVC", one))
        elif name == _PERSISTENCE and one.active == "failed":
            found.append(_down("GH-PERSIST-SVC", one))
    missing = wanted - {_short(one.name) for one in facts.services}
    return found + [finding("GH-SVC-UNREAD", Subject("part", name=name), "was not looked at")
                    for name in sorted(missing)]


def _short(name):
    return name[:-len(".service")] if name.endswith(".service") else name


def _judged(one):
    return one.load == "loaded"


def _down(code, one, severity=None):
    if one.load != "loaded":
        seen = {"not-found": "not installed", "masked": "masked"}.get(one.load, "unit is " + str(one.load))
    else:
        seen = "%s (%s)" % (one.active, one.sub) if one.sub and one.sub not in (one.active, "dead") else one.active
        if one.result not in ("", "success"):
            seen += ": " + one.result
    # "auto-restart": it dies again and again, and systemd waits before the next try.
    if one.active in _ON_ITS_WAY and one.sub != "auto-restart":
        severity = WARNING
    return finding(code, Subject("part", name=_short(one.name)), seen, "active", severity=severity, load=one.load,
                   active=one.active, sub=one.sub, result=one.result)


def _states(facts):
    return [gpu.fabric.get("state") for gpu in facts.gpus if F.is_known(gpu.fabric)]


def _has_switches(facts):
    """NVSwitches on the bus (bridges of vendor NVIDIA), or GPUs that wait for a fabric."""
    on_bus = F.is_known(facts.pci) and any(
        device.vendor == "10de" and device.klass.startswith("0680") for device in facts.pci)
    return on_bus or any(state in _FABRIC_WAITS for state in _states(facts))


def _fabric_is_up(facts):
    states = _states(facts)
    return bool(states) and all(state == _FABRIC_DONE for state in states)
