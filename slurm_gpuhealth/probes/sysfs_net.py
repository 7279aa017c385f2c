"""Network ports: all of InfiniBand's kind, and those Ethernet interfaces that the configuration names.

Layout: Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net of the kernel, 2026-11-30.
Reading a state asks the card's firmware, which a broken card answers after a minute or never: hence the child.
"""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.facts_node import Link
from slurm_gpuhealth.parse import bdf, wildcard
from slurm_gpuhealth.probes.sysfs_pci import text_of

INFINIBAND, NET = "/sys/class/infiniband", "/sys/class/net"
_IFF_UP = 0x1           # include/uapi/linux/if.h
# Physical states that a port passes through while its link comes up: worth a second look.
_PASSING = ("PortConfigurationTraining", "LinkErrorRecovery")
_LOOK_AGAIN = 0.3       # seconds
# Counters of a port that only grow. Errors of the link itself; congestion and traffic are left out.
_PORT_COUNTERS = ("link_downed", "link_error_recovery", "symbol_error", "local_link_integrity_errors")


def read(spec):
    """List of Link. spec: root, links (configured names), thorough (also the counters)."""
    found = []
    netdevs = set()
    for device in _names(spec["root"], INFINIBAND):
        above = _above(spec["root"], "%s/%s/device" % (INFINIBAND, device))
        interfaces = _interfaces(spec["root"], device)
        netdevs.update(interfaces.values())
        if _is_virtual(spec["root"], device) and not _asked_for(spec, device, *interfaces.values()):
            continue
        for port in _names(spec["root"], "%s/%s/ports" % (INFINIBAND, device)):
            found.append(_port(spec, device, port, above, interfaces.get(port, "")))
    for name in _names(spec["root"], NET) if spec["links"] else ():
        if name not in netdevs and _is_wanted(spec, name):
            found.append(_interface(spec, name))
    return found


def _names(root, folder):
    try:
        return sorted(os.listdir(paths.under(root, folder)))
    except FileNotFoundError:
        return []


def _above(root, link):
    """PCI address of the device that the link `link` leads to, "" for none."""
    try:
        return bdf.normalise(os.readlink(paths.under(root, link)).rpartition("/")[2])
    except OSError:
        return ""


def _is_virtual(root, device):
    """Virtual functions come and go with containers and virtual machines; software devices (rxe, siw) have no port."""
    path = "%s/%s" % (INFINIBAND, device)
    if os.path.lexists(paths.under(root, path + "/device/physfn")):
        return True
    try:
        return "/virtual/" in os.readlink(paths.under(root, path))
    except OSError:
        return False


def _asked_for(spec, *names):
    return any(wildcard.matches(name, pattern.partition("/")[0]) for name in names for pattern in spec["links"])


def _interfaces(root, device):
    """{port: interface} of an InfiniBand device: dev_port counts from 0 (older drivers only tell dev_id)."""
    folder = "%s/%s/device/net" % (INFINIBAND, device)
    found: dict = {}
    for name in _names(root, folder):
        number = text_of(root, "%s/%s/dev_port" % (folder, name)) or "0"
        if number == "0":
            number = str(_hex(text_of(root, "%s/%s/dev_id" % (folder, name))))
        if number.isdigit():
            found.setdefault(str(int(number) + 1), name)
    return found


def _hex(text):
    try:
        return int(text or "0", 16)
    except ValueError:
        return 0


def _port(spec, device, port, above, interface):
    root, folder = spec["root"], "%s/%s/ports/%s" % (INFINIBAND, device, port)
    state, physical = _states(root, folder)
    if state == "down" and physical in _PASSING:
        time.sleep(_LOOK_AGAIN)
        state, physical = _states(root, folder)
    kind = "infiniband" if text_of(root, folder + "/link_layer") != "Ethernet" else "roce"
    speed, width = _rate(text_of(root, folder + "/rate")) if state == "up" else (None, None)
    if interface and not _is_enabled(root, interface) and state == "down" and kind == "roce":
        physical = "Disabled"
    return Link("%s/%s" % (device, port), kind, state, physical, speed, width, above, interface,
                _counters(root, folder + "/counters", _PORT_COUNTERS) if spec["thorough"] else None)


def _states(root, folder):
    """("up" or "down" or None, the kernel's word for the physical state) of "4: ACTIVE" and "5: LinkUp"."""
    state, physical = (text_of(root, folder + "/" + name) for name in ("state", "phys_state"))
    word = (physical or "").partition(":")[2].strip() or physical
    if not state:
        return None, word
    logical = state.partition(":")[2].strip()
    if logical == "ACTIVE":
        return "up", word
    # INIT and ARMED: the link is there, and no subnet manager has brought it up.
    return "down", logical if word == "LinkUp" and logical else word


def _rate(text):
    """(Gb/s, lanes) of "400 Gb/sec (4X NDR)"; (None, None) where it is not of that form."""
    words = (text or "").replace("(", " ").split()
    try:
        speed = float(words[0])
    except (IndexError, ValueError):
        return None, None
    lanes = next((word[:-1] for word in words if word[-1:] == "X" and word[:-1].isdigit()), None)
    return int(speed) if speed == int(speed) else speed, int(lanes) if lanes else None


def _is_wanted(spec, name):
    """Configured; by a pattern only what has hardware below it, or is a bond: `*` does not mean docker0."""
    for pattern in spec["links"]:
        if pattern == name:
            return True
        if "*" in pattern and wildcard.matches(name, pattern):
            folder = paths.under(spec["root"], "%s/%s/" % (NET, name))
            return os.path.exists(folder + "device") or os.path.exists(folder + "bonding")
    return False


def _is_enabled(root, name):
    flags = text_of(root, "%s/%s/flags" % (NET, name))
    return flags is None or bool(_hex(flags) & _IFF_UP)


def _interface(spec, name):
    root, folder = spec["root"], "%s/%s" % (NET, name)
    state = text_of(root, folder + "/operstate")
    if state == "unknown":      # some drivers never say; then the carrier does
        state = "up" if text_of(root, folder + "/carrier") == "1" else "down"
    physical = state if state is None or _is_enabled(root, name) else "Disabled"
    speed = text_of(root, folder + "/speed") or ""      # Mb/s; -1 or an error while there is no link
    return Link(name, "ethernet", state if state in (None, "up") else "down", physical,
                _gigabits(int(speed)) if speed.isdigit() and int(speed) else None, None,
                _above(root, folder + "/device"), name,
                _counters(root, folder, ("carrier_changes",)) if spec["thorough"] else None)


def _gigabits(megabits):
    return megabits // 1000 if megabits % 1000 == 0 else megabits / 1000


def _counters(root, folder, names):
    """{name: number} of the counters that are there, None where there are none."""
    values = {name: text_of(root, "%s/%s" % (folder, name)) for name in names}
    found = {name: int(text) for name, text in values.items() if text and text.isdigit()}
    return found or None
