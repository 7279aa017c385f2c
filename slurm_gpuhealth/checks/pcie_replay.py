"""The PCIe link does not have to send again and again.

Each packet that arrives damaged is sent once more, and counted. A few are nothing; many mean a bad contact, riser or
slot, and slow the GPU down before they break the link. Counted since the baseline (the job's start in epilog, else the
last health check): more than the limit `per_minute` is a warning, `GH-PCIE-REPLAY`. Less than a minute counts as one,
so that a burst of a few within seconds is no rate. The counter starts from zero when the driver is loaded.

Unknown: the counter could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, growth, missing, subject_of, unread, usable

# NVIDIA's DCGM warns from the same rate on (its health check of the PCIe subsystem).
LIMITS = {"per_minute": (8, "replays a minute that are no warning yet")}


def check(facts, limits):
    """Findings about replays on the link. limits: per_minute."""
    found = []
    for gpu in usable(facts):
        fields = missing(gpu, "pcie_replay")
        if fields:
            found.append(unread(gpu, fields))
        new = growth(facts, gpu.uuid, "pcie_replay", gpu.pcie_replay) if F.is_known(gpu.uuid) else None
        if not new or facts.baseline.time is None:
            continue
        minutes = max((facts.time - facts.baseline.time) / 60, 1)
        if new / minutes > limits["per_minute"]:
            found.append(finding("GH-PCIE-REPLAY", subject_of(gpu), "%d replays in %d min" % (new, round(minutes)),
                                 new=new, minutes=round(minutes, 1)))
    return found + gpus_unread(facts)
