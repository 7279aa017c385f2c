"""The PCIe link has all its lanes.

An idle GPU lowers the speed of its link, never the width, so a narrow link counts at any time. Compared with the
widest that GPU and slot allow together: an x16 card in an x8 slot is no fault. Where NVML takes the slot for wider than
the port above the GPU says it is (sysfs, `max_link_width`), the port is believed. Where a riser hides the slot's
width from both, the limit `minimum` (lanes) of the configuration counts as well.

Unknown: a width could not be read. A GPU without a PCIe link of its own (or a virtual one) has no width to compare;
neither has one that tells 0, a negative number, or more lanes than there are.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable

_WIDEST = 32     # lanes, by the standard
LIMITS = {"minimum": (0, "lanes that a link must have, whatever GPU and slot say")}


def check(facts, limits):
    """Findings about link width. limits: minimum (lanes)."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "pcie_width", "pcie_width_max")
        if fields:
            found.append(unread(gpu, fields))
        if not _is_width(gpu.pcie_width):
            continue
        wanted = max(_possible(gpu), limits["minimum"])
        if gpu.pcie_width < wanted:
            found.append(finding("GH-PCIE-WIDTH", subject_of(gpu), "x%d" % gpu.pcie_width, "x%d" % wanted,
                                 width=gpu.pcie_width, width_max=wanted))
    return found + gpus_unread(facts)


def _is_width(value):
    return F.is_known(value) and 0 < value <= _WIDEST


def _possible(gpu):
    """The most lanes that GPU and slot allow, 0 where nobody says."""
    most = gpu.pcie_width_max if _is_width(gpu.pcie_width_max) else 0
    slot = gpu.pcie_width_slot
    # A port that claims less than what the link has is made up (virtual machines): it says nothing.
    return min(most, slot) if _is_width(slot) and slot >= gpu.pcie_width else most
