"""The PCIe link has all its lanes.

An idle GPU lowers the speed of its link, never the width, so a narrow link counts at any time. Compared with the
widest that GPU and slot allow together: an x16 card in an x8 slot is no fault. Where a riser hides the slot's
width from NVML, the limit `minimum` (lanes) of the configuration counts as well.

Unknown: a width could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable


def check(facts, limits):
    """Findings about link width. limits: minimum (lanes)."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "pcie_width", "pcie_width_max")
        if fields:
            found.append(unread(gpu, fields))
        if not F.is_known(gpu.pcie_width):
            continue
        wanted = max(gpu.pcie_width_max if F.is_known(gpu.pcie_width_max) else 0, limits.get("minimum", 0))
        if gpu.pcie_width < wanted:
            found.append(finding("GH-PCIE-WIDTH", subject_of(gpu), "x%d" % gpu.pcie_width, "x%d" % wanted,
                                 width=gpu.pcie_width, width_max=wanted))
    return found + gpus_unread(facts)
