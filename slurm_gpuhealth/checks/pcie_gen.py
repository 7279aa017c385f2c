"""The PCIe link of a busy GPU runs at full speed.

An idle GPU lowers its link to generation 1, so only a GPU that works counts: utilisation at or above the limit
`busy_utilization` (percent, 20), or performance state P0. Compared with the highest that GPU, slot and system
allow together, not with the GPU's own.

Unknown: GPU is busy and a generation could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, missing, subject_of, unread, usable

LIMITS = {"busy_utilization": (20, "percent of utilisation from which on a GPU counts as busy")}


def check(facts, limits):
    """Findings about link speed. limits: busy_utilization (percent)."""
    found = []
    for gpu in usable(facts):
        if not _busy(gpu, limits["busy_utilization"]):
            continue
        fields = missing(gpu, "pcie_gen", "pcie_gen_max")
        if fields:
            found.append(unread(gpu, fields))
        elif F.is_known(gpu.pcie_gen) and F.is_known(gpu.pcie_gen_max) and gpu.pcie_gen < gpu.pcie_gen_max:
            found.append(finding("GH-PCIE-GEN", subject_of(gpu), "gen%d" % gpu.pcie_gen, "gen%d" % gpu.pcie_gen_max,
                                 gen=gpu.pcie_gen, gen_max=gpu.pcie_gen_max))
    return found + gpus_unread(facts)


def _busy(gpu, limit):
    return (F.is_known(gpu.utilization) and gpu.utilization >= limit) or gpu.pstate == 0
