"""The NVLinks of each GPU are up, and their errors do not grow.

Only where there is NVLink. How many links should be up nobody can read: a PCIe card shows all its links as inactive
until a bridge is plugged in, and with bridges some stay inactive for good. So a link is down when

- it was up in an earlier healthy round on this GPU, or
- at least two other GPUs of the same model have all the same number of links up, and this one some of them, or none
  where the others' links lead to NVSwitches, or
- fewer are up than the limit `expected` says.

`GH-NVLINK-DN` names the links. When all links of all GPUs are down, it is the fabric and not the GPUs: `GH-NVLINK-ALL`,
once (in the first minutes after a boot, `boot_seconds`, only a note, except in prolog).

Error counters that grew since the last health check are a warning, `GH-NVLINK-ERR`: recoveries (limit `recovery`),
replays and the like (limit `errors`), CRC errors from `crc_per_second` on (below that they are repaired unnoticed), and
on Blackwell and later a bit error rate above `error_rate`. A counter that went back counts from zero again.

With MIG the links are off, which is no fault. Unknown: a link's state or its counters could not be read, or nobody
knows whether MIG is on.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import (
    early,
    finding,
    gpus_unread,
    growth,
    missing,
    seconds_since_baseline,
    subject_of,
    unread,
    usable,
    without_mig,
)
from slurm_gpuhealth.model import ALL_GPUS, NOTE

LIMITS = {
    "expected": (0, "links that must be up on each GPU that has NVLink; 0: as before, or as on the other GPUs"),
    "recovery": (1, "link recoveries between two health checks that are a warning"),
    "errors": (10, "replays, or malformed packets, overruns or integrity errors, between two health checks"),
    "crc_per_second": (100, "CRC errors a second that are a warning"),
    "error_rate": (1e-12, "bit error rate that is a warning"),
    "boot_seconds": (300, "time after a boot in which the fabric may still be starting"),
}
_RECOVERY = ("recovery", "recovery_events", "recovery_failed")
_CRC = ("crc", "crc_flit", "crc_data")
_RATES = ("effective_ber", "symbol_ber")


def check(facts, limits):
    """Findings about NVLinks. limits: see LIMITS."""
    gpus, unsure = without_mig(usable(facts), "nvlinks")
    linked = [gpu for gpu in gpus if F.is_known(gpu.nvlinks)]
    found = _down(facts, linked, limits)
    for gpu in gpus:
        fields = missing(gpu, "nvlinks")
        if F.is_known(gpu.nvlinks):
            found += _errors(facts, gpu, limits)
            fields = _unread(gpu)
        if fields:
            found.append(unread(gpu, fields))
    return found + unsure + gpus_unread(facts)


def links_up(gpu):
    """Numbers of the links that are up (a sleeping link is)."""
    return {link["link"] for link in gpu.nvlinks if F.is_known(link["state"]) and link["state"]}


def _down(facts, gpus, limits):
    found, dark = [], []
    for gpu in gpus:
        links, expected = _missing(facts, gpu, gpus, limits["expected"])
        if not links:
            continue
        if not links_up(gpu):
            dark.append(gpu)
        found.append(finding("GH-NVLINK-DN", subject_of(gpu), _named(links), "%d up" % expected, links=sorted(links),
                             up=len(links_up(gpu)), expected_links=expected))
    if len(dark) > 1 and len(dark) == len(gpus):
        return [finding("GH-NVLINK-ALL", ALL_GPUS, "no link up on %d GPUs" % len(dark),
                        severity=NOTE if early(facts, limits["boot_seconds"]) else None, gpus=len(dark))]
    return found


def _missing(facts, gpu, gpus, expected):
    """(links of this GPU that should be up and are not, how many should be up)"""
    up = links_up(gpu)
    # Of a link whose state could not be read nothing is known: it is said as unread.
    down = {link["link"] for link in gpu.nvlinks if F.is_known(link["state"])} - up
    if expected:
        return (down if len(up) < expected else set()), expected
    before = _before(facts, gpu) & (down | up)
    if before - up:
        return before - up, len(before)
    others = [other for other in gpus if other is not gpu and other.name == gpu.name]
    sets = [links_up(other) for other in others]
    if len(sets) >= 2 and len({len(links) for links in sets}) == 1 and len(sets[0]) > len(up):
        switched = any(link.get("remote") == "switch" for other in others for link in other.nvlinks)
        if up or switched:
            same = sets[0] if all(links == sets[0] for links in sets) else down
            return same & down, len(sets[0])
    return set(), 0


def _before(facts, gpu):
    """Links of this GPU that were up in a healthy round."""
    if facts.baseline is None or not F.is_known(gpu.uuid):
        return set()
    mask = int(((facts.baseline.links or {}).get("%s/nvlink" % gpu.uuid) or {}).get("up", 0))
    return {number for number in range(mask.bit_length()) if mask >> number & 1}


def _named(links):
    names = ", ".join(str(number) for number in sorted(links)[:4])
    more = " and %d more" % (len(links) - 4) if len(links) > 4 else ""
    return "link%s %s%s down" % ("s" if len(links) > 1 else "", names, more)


def _errors(facts, gpu, limits):
    """One finding with all that grew too much on this GPU's links."""
    seconds, texts, data = seconds_since_baseline(facts), [], {}
    for link in gpu.nvlinks:
        counters = link.get("errors")
        if counters is None or not F.is_known(counters):
            continue
        key = "%s/nvlink%s" % (gpu.uuid, link["link"])
        for name, value in counters.items():
            if name in _RATES:
                if value >= limits["error_rate"]:
                    texts.append("link %d %s %.0e" % (link["link"], name.replace("_", " "), value))
                continue
            new = growth(facts, key, name, value)
            if new and new >= _limit(name, limits, seconds):
                texts.append("link %d +%d %s" % (link["link"], new, name.replace("_", " ")))
                data["%d.%s" % (link["link"], name)] = new
    if not texts:
        return []
    more = " and %d more" % (len(texts) - 3) if len(texts) > 3 else ""
    return [finding("GH-NVLINK-ERR", subject_of(gpu), ", ".join(texts[:3]) + more, since=facts.time, new=data)]


def _limit(name, limits, seconds):
    if name in _RECOVERY:
        return limits["recovery"]
    if name in _CRC:
        # Without the time between the two nobody can say how many a second they were.
        return limits["crc_per_second"] * seconds if seconds else float("inf")
    return limits["errors"]


def _unread(gpu):
    """{field: Unknown} of single links that should have been readable."""
    found: dict = {}
    for link in gpu.nvlinks:
        for name in ("state", "errors"):
            value = link.get(name)
            if value is not None and not F.is_known(value) and value.reason not in (F.UNSUPPORTED, F.NOT_READ):
                found.setdefault("nvlink " + name, value)
    return found
