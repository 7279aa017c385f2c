"""The board's own small memory (InfoROM) can be read.

It keeps serial number, configuration and the error history over reboots: without it, aggregate counters, retired
pages and remapped rows are not to be trusted. NVML answers 14 to the request for its checksum, or to any other:
`GH-INFOROM`, a warning. The GPU itself computes as before.

The checksum is asked for in health checks only.

Unknown: the checksum could not be read, for another reason.
"""
from __future__ import annotations

from slurm_gpuhealth.checks._shared import asked, finding, gpus_unread, missing, subject_of, unread, usable

_CORRUPTED_INFOROM = 14     # nvmlReturn_t


def check(facts, limits):
    """Findings about the InfoROM."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, *asked(gpu, "inforom"))
        if not fields:
            continue
        if gpu.inforom.code == _CORRUPTED_INFOROM:
            found.append(finding("GH-INFOROM", subject_of(gpu), nvml_code=_CORRUPTED_INFOROM))
        else:
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)
