"""The PCIe link of a busy GPU runs at full speed.

An idle GPU lowers its link to generation 1, so only a GPU that works counts: utilisation at or above the limit
`busy_utilization` (percent). Some GPUs stay in performance state P0 without work, and their link may be on its way up
or down at the moment of the look: there it takes the limit `rounds` of health checks in a row; until then it is a note.
Compared with the highest that GPU, slot and system allow together, not with the GPU's own.

Unknown: a generation of a GPU that is busy or in P0 could not be read, or whether it is. With MIG there is no
utilisation: then only P0 counts.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, known, missing, streak, subject_of, unread, usable
from slurm_gpuhealth.model import NOTE

LIMITS = {
    "busy_utilization": (20, "percent of utilisation from which on a GPU counts as busy"),
    "rounds": (3, "health checks in a row that it takes for a GPU in P0 that is not busy"),
}


def check(facts, limits):
    """Findings about link speed. limits: busy_utilization (percent), rounds."""
    found = []
    for gpu in usable(facts):
        busy = F.is_known(gpu.utilization) and gpu.utilization >= limits["busy_utilization"]
        fields = {} if busy else missing(gpu, "utilization", "pstate")
        fast = busy or known(gpu.pstate, 0)
        if fast:
            fields.update(missing(gpu, "pcie_gen", "pcie_gen_max"))
        if fields:
            found.append(unread(gpu, fields))
        if fast and F.is_known(gpu.pcie_gen) and F.is_known(gpu.pcie_gen_max) and gpu.pcie_gen < gpu.pcie_gen_max:
            found.append(_slow(facts, gpu, busy, limits))
    return found + gpus_unread(facts)


def _slow(facts, gpu, busy, limits):
    subject = subject_of(gpu)
    key = "pcie_gen|%s" % (subject.uuid or subject.bdf or subject.index)
    seen_before = streak(facts, key)[0]
    sure = busy or seen_before + 1 >= limits["rounds"]
    return finding("GH-PCIE-GEN", subject, "gen%d" % gpu.pcie_gen, "gen%d" % gpu.pcie_gen_max,
                   severity=None if sure else NOTE, gen=gpu.pcie_gen, gen_max=gpu.pcie_gen_max, busy=busy, streak=key)
