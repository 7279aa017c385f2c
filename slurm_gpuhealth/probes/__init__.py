"""Sources: each module reads one part of the world in a forked child. This table says which there are.

A module has `read(spec, emit)`, which runs in the child and streams records, and the pure `assemble(records, spec,
status)`, which makes fields of Facts of them (also of a part, when time ran out). Those of SOURCES also have
`spec(cfg, about)`: what `read` needs, or None where there is nothing to read on this node. NVML, kernel log and mounts
are always read and planned in gather.py.
"""
from __future__ import annotations

from collections import namedtuple

Source = namedtuple("Source", "module deadline fields", defaults=("command", ()))
Source.__doc__ = """module: here. deadline: key of `deadlines:` in the configuration. fields: of Facts that it fills."""

# name -> Source. A source is read when a check of the phase needs it (checks.CHECKS, column needs).
SOURCES: dict = {
    "processes": Source("processes", "command", ("processes", "jobs", "job")),
    "services": Source("services", "command", ("services",)),
    "plugins": Source("plugins", "command", ("plugins",)),
    "sysfs": Source("sysfs", "command", ("pci", "links", "memory_controllers", "nvme", "devices", "filesystems",
                                            "clock")),
}
