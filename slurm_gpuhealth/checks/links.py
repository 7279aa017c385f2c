"""The network ports that should be up are up, and as fast as they were.

A port should be up when `links:` of the configuration names it, or when it was up in an earlier healthy round (limit
`remembered`). InfiniBand and RoCE ports are known by themselves, Ethernet interfaces only by the configuration.

- Down, not there any more, or without a subnet manager (state INIT): `GH-LINK-DOWN`. A port that somebody switched
  off on this node, and that no configuration asks for, is a warning. A port under another name, as after an upgrade
  of drivers, is the same port. In the first minutes after a boot (limit `settle`) a port may still be coming up: a
  warning.
- Slower or narrower than configured, or than it was: `GH-LINK-SLOW`.
- Went down `flaps` times since the last round: `GH-LINK-FLAP`; once is a note.
- The card's own complaints in the kernel log (power, health, temperature; transmit queue stuck): `GH-NIC-ERR`, a
  warning. Errors of single requests are users' doing mostly: a note. A card that does not tell the state of its ports
  in two rounds in a row is a warning too.

Ports that were never cabled, and interfaces of containers and virtual machines, are nobody's fault.
Unknown: the ports could not be read, or one of those that should be up did not tell its state.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import events, part, unread
from slurm_gpuhealth.checks._shared import HUNG, finding, growth, source
from slurm_gpuhealth.model import NOTE, WARNING
from slurm_gpuhealth.parse.wildcard import matches

LIMITS = {"remembered": (True, "ports that were up in an earlier healthy round must stay up"),
          "flaps": (2, "times that a link went down since the last round that warn"),
          "settle": (180, "seconds after a boot in which a port may still be coming up: only a warning")}
POLICY = {"links": "links"}
_DOWN_COUNTERS = ("link_downed", "carrier_changes")
_LOUD = ("power", "health", "temperature")


def check(facts, limits):
    """Findings about network ports. limits: remembered, flaps, links (of the configuration)."""
    wanted = limits["links"] or ()
    known = _remembered(facts) if limits["remembered"] else {}
    # In the first minutes after a boot a port, or its driver, may still be coming up.
    mild = WARNING if F.is_known(facts.uptime) and facts.uptime < limits["settle"] else None
    if not F.is_known(facts.links):
        found = _silent_card(facts) + unread("links", facts.links)
        return (found or _all_missing(wanted, mild)) + _complaints(facts, ())
    found, unmatched = [], list(wanted)
    for link in facts.links:
        entries = [entry for entry in wanted if _names(link, entry["name"])]
        unmatched = [entry for entry in unmatched if entry not in entries]
        if entries or link.name in known:
            found += _state(link, entries, known.get(link.name, {}), mild)
            found += _flaps(facts, link, limits["flaps"])
    found += _all_missing(unmatched, mild)
    return found + _gone(facts, known, wanted, mild) + _complaints(facts, facts.links)


def _silent_card(facts):
    """A card whose firmware does not answer, in two rounds in a row: reading a port's state asks it."""
    status = source(facts, "sysfs")
    if facts.links.reason not in (F.TIMEOUT, F.HUNG) or "(at links)" not in facts.links.detail:
        return []
    if status is None or (status.outcome != HUNG and status.rounds < 2):
        return []
    return [finding("GH-NIC-ERR", part("network card"), "does not answer", rounds=status.rounds, pid=status.pid)]


def _remembered(facts):
    """Ports of earlier rounds; the NVLinks of GPUs, which are kept beside them, are another check's."""
    links = (facts.baseline.links or {}) if facts.baseline is not None else {}
    return {name: value for name, value in links.items() if not name.endswith("/nvlink")}


def _names(link, pattern):
    """Whether `pattern` of the configuration means this port: by port, device ("mlx5_0") or interface."""
    return any(name and matches(name, pattern) for name in (link.name, link.name.partition("/")[0], link.netdev))


def _all_missing(entries, severity):
    return [finding("GH-LINK-DOWN", part(entry["name"]), "not there", severity=severity, configured=True)
            for entry in entries]


def _gone(facts, known, wanted, severity):
    """Ports of earlier rounds that are not there. As many new ones that are up are they under other names."""
    names = {link.name for link in facts.links}
    gone = [name for name in sorted(known) if name not in names and not any(
        matches(name, entry["name"]) or matches(name.partition("/")[0], entry["name"]) for entry in wanted)]
    fresh = [link for link in facts.links if link.state == "up" and link.name not in known]
    return [finding("GH-LINK-DOWN", part(name), "not there", severity=severity, configured=False)
            for name in gone[len(fresh):]]


def _state(link, entries, before, mild):
    subject = part(link.name)
    if link.state is None:
        return [finding("GH-SYS-UNREAD", subject, "its state could not be read", why=F.ERROR)]
    if link.state != "up":
        seen = {"INIT": "no subnet manager", "ARMED": "no subnet manager", "Disabled": "switched off"}.get(
            link.physical, link.physical or "down")
        by_hand = link.physical == "Disabled" and not entries
        return [finding("GH-LINK-DOWN", subject, seen, severity=WARNING if by_hand else mild, configured=bool(entries),
                        kind=link.kind, device=link.device, netdev=link.netdev)]
    least = {name: max([entry.get(name) or 0 for entry in entries] or [0]) or before.get(name) or 0
             for name in ("speed", "width")}
    for name, unit in (("speed", "%g Gb/s"), ("width", "%dX")):
        value = getattr(link, name)
        if value is not None and value < least[name]:
            return [finding("GH-LINK-SLOW", subject, unit % value, unit % least[name], kind=link.kind,
                            speed=link.speed, width=link.width)]
    return []


def _flaps(facts, link, limit):
    downs = 0
    for name in _DOWN_COUNTERS:
        grown = growth(facts, link.name, name, (link.counters or {}).get(name))
        # A carrier that goes away and comes back counts two changes.
        downs = max(downs, (grown or 0) // (2 if name == "carrier_changes" else 1))
    for event in events(facts, "link_flap"):
        about = event.data or {}
        if about.get("device") in (link.netdev, link.name) or (event.bdf and event.bdf == link.device):
            downs = max(downs, about.get("downs") or 0)
    if not downs:
        return []
    return [finding("GH-LINK-FLAP", part(link.name), "down %d time%s" % (downs, "s" * (downs > 1)),
                    severity=None if downs >= limit else NOTE, downs=downs)]


def _complaints(facts, links):
    """What a network card's driver complains of, one finding a card."""
    cards: dict = {}
    for event in events(facts, "mlx5", "nic_error"):
        about = event.data or {}
        name = next((link.name for link in links if (event.bdf and link.device == event.bdf)
                     or (link.netdev and link.netdev == about.get("device"))), "")
        name = name or event.bdf or str(about.get("device") or "") or "network card"
        cards.setdefault(name, []).append(event)
    found = []
    for name, seen in sorted(cards.items()):
        loud = [event for event in seen if event.kind == "nic_error" or (event.data or {}).get("what") in _LOUD]
        worst = (loud or seen)[-1]
        what = (worst.data or {}).get("what") or ("transmit stuck" if worst.kind == "nic_error" else "errors")
        found.append(finding("GH-NIC-ERR", part(name), what, severity=None if loud else NOTE, since=seen[0].time,
                             count=sum(event.count for event in loud or seen), line=worst.line[:200]))
    return found
