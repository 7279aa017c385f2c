"""How systemd units are: those of the configuration and NVIDIA's own. Asks systemctl once, in a child.

A unit that is not up, and that matters, is looked at once more a second later: somebody may just restart it.
"""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import command, paths
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.facts_node import Service

# Judged without being configured (checks/services.py).
OWN = ("nvidia-fabricmanager.service", "nvidia-imex.service", "nvidia-persistenced.service")
_PROPERTIES = "Id,LoadState,ActiveState,SubState,Result,UnitFileState"
_PROGRAMS = ("/usr/bin/systemctl", "/bin/systemctl")
_BOOTED = "/run/systemd/system"     # sd_booted(3)
_FIXTURE = "/systemctl.txt"         # what systemctl would say on a fixture node
_PAUSE = 1.0
_PASSING = ("activating", "deactivating", "reloading", "inactive")


def spec(cfg, about):
    """What `read` needs: root, wanted (configured units), units (all to ask for), seconds."""
    wanted = [full_name(name) for name in cfg["services"]]
    return {"root": about["root"], "wanted": wanted, "units": list(dict.fromkeys(wanted + list(OWN))),
            "seconds": cfg["deadlines"]["command"]}


def full_name(name):
    """The name of a unit with its type, as systemd gives it back."""
    return name if name.rpartition(".")[2] in (
        "service", "socket", "timer", "mount", "target", "path", "device", "automount", "swap", "slice", "scope") \
        and "." in name else name + ".service"


def read(spec, emit):
    """Emit ("absent", why) where systemd does not run, ("failed", why), or ("service", plain of facts.Service) each."""
    if spec["root"]:
        try:
            with open(paths.under(spec["root"], _FIXTURE), encoding="utf-8", errors="replace") as handle:
                _tell(parse(handle.read(), spec["units"]), emit)
        except FileNotFoundError:
            emit("absent", "no systemd")
        return
    program = next((path for path in _PROGRAMS if os.access(path, os.X_OK)), None)
    if program is None or not os.path.isdir(_BOOTED):
        emit("absent", "systemd does not run here")
        return
    until = time.monotonic() + spec["seconds"]
    found = _ask(program, spec, until, emit)
    if found and any(one.active in _PASSING and (one.name in spec["wanted"] or one.name == OWN[0])
                     and one.load == "loaded" for one in found) and time.monotonic() + 2 * _PAUSE < until:
        time.sleep(_PAUSE)
        found = _ask(program, spec, until, emit) or found
    _tell(found, emit)


def assemble(records, spec, status):
    """Facts field: services."""
    found, why = [], None
    for kind, plain in records:
        if kind == "service":
            found.append(F.from_plain(plain, Service))
        elif kind in ("absent", "failed"):
            why = F.Unknown(F.ABSENT if kind == "absent" else F.ERROR, plain)
    if status.outcome != "ok":
        reason = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
        return {"services": F.Unknown(reason, status.detail)}
    return {"services": why if why is not None and not found else tuple(found)}


def parse(text, units):
    """Services of the output of `systemctl show` for `units`, in their order; [] where it is not as it should be.

    By order and not by Id: of an alias the latter is another name.
    """
    blocks = [block for block in text.strip().split("\n\n") if block.strip()]
    if len(blocks) != len(units):
        return []
    found = []
    for unit, block in zip(units, blocks):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "ActiveState" not in values:
            return []
        found.append(Service(unit, values.get("LoadState"), values["ActiveState"], values.get("SubState", ""),
                               values.get("Result", ""), values.get("UnitFileState", "")))
    return found


def _ask(program, spec, until, emit):
    left = max(0.1, until - time.monotonic() - 0.3)
    done = command.run([program, "show", "--no-pager", "--property=" + _PROPERTIES, "--"] + spec["units"], left,
                       max_bytes=1 << 16, grace=0.1)
    found = parse(done.out, spec["units"]) if done.rc == 0 else []
    if not found:
        emit("failed", "systemctl did not answer" if done.timed_out else
             "systemctl ended with %s: %s" % (done.rc, " ".join(done.err.split())[:200]))
    return found


def _tell(found, emit):
    for one in found:
        emit("service", F.to_plain(one))
