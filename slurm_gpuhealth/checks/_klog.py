"""What the checks of the kernel log share: which of its events still count, how near two are, what they mean. Pure."""
from __future__ import annotations

from slurm_gpuhealth import facts as F


class _Late:
    """A module that is loaded when something of it is first used. Most rounds find nothing in the kernel log, and
    catalogue.judge with its tables costs 2 ms."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        return getattr(__import__(self._name, fromlist=(name,)), name)


judge = _Late("slurm_gpuhealth.catalogue.judge")

BURST = 180.0       # seconds between lines that still belong together (NVIDIA Fleet Intelligence ends a burst there)

# What a newly loaded driver makes history.
_OF_DRIVER = ("xid", "sxid", "gpu_fell_off", "rm_init_failed", "gpu_probe_failed", "gpu_needs_reset", "uvm_fatal",
              "nvml_version_mismatch", "nvswitch_error", "no_gpu_found")


# The driver prints what became of each GPU (its probe) before the line that says that it was loaded: 0.13 s before it
# in NVIDIA/NVSentinel issue 155, some seconds on a node with many GPUs.
_PROBE = 60.0


def current(facts):
    """The events that are about now: none of an earlier boot, none of the driver's from before it was last loaded,
    except what it found while it was being loaded."""
    events = [event for event in facts.klog.events if not (event.data or {}).get("earlier_boot")]
    loads = [number for number, event in enumerate(events) if event.kind == "driver_load"]
    if not loads:
        return events
    last = loads[-1]
    return [event for number, event in enumerate(events)
            if event.kind not in _OF_DRIVER or not _before(event, number, events[last], last)
            or _of_its_probe(event, number, events, loads)]


def _before(event, number, load, at):
    if event.last is None or load.time is None:
        return number < at
    return event.last < _end(load)


def _end(load):
    """When the driver was last loaded: two loads that follow each other are one event."""
    return load.time if load.last is None else load.last


def _of_its_probe(event, number, events, loads):
    """Whether the event tells what the last load of the driver found when it took over the GPUs."""
    data = event.data or {}
    if event.kind == "gpu_fell_off":
        its = bool(data.get("at_probe"))
    elif event.kind == "rm_init_failed":
        its = str(data.get("reason", "")).startswith("BAR")
    else:
        its = event.kind in ("gpu_probe_failed", "no_gpu_found")
    if not its:
        return False
    load = events[loads[-1]]
    if event.last is not None and load.time is not None:
        if _end(load) - event.last >= _PROBE or event.last < load.time < _end(load):
            return False
    return len(loads) < 2 or not _before(event, number, events[loads[-2]], loads[-2])


def near(one, other, gap=BURST):
    """Whether two events are of one moment; yes where nobody knows when one of them was."""
    if None in (one.time, one.last, other.time, other.last):
        return True
    return one.time <= other.last + gap and other.time <= one.last + gap


def driver_of(facts):
    """Version of the driver: as NVML says, else as the kernel log does; "" where neither."""
    if F.is_known(facts.driver):
        return facts.driver
    loads = [event for event in facts.klog.events if event.kind == "driver_load"]
    return (loads[-1].data or {}).get("version", "") if loads else ""


def family_at(facts, bdf):
    """Family of the GPU at an address; of a lost one that of its neighbours, where they are all one. "" unknown."""
    families = {}
    for gpu in facts.gpus:
        if F.is_known(gpu.name) and gpu.name:
            families[gpu.bdf if F.is_known(gpu.bdf) else ""] = judge.family_of(gpu.name)
    if bdf in families:
        return families[bdf]
    return families.popitem()[1] if len(set(families.values())) == 1 else ""


def gpu_addresses(facts):
    """PCI addresses of all GPUs that the node is known to have."""
    found = {gpu.bdf for gpu in facts.gpus if F.is_known(gpu.bdf) and gpu.bdf}
    return found | {known.bdf for known in facts.known_gpus if known.bdf}
