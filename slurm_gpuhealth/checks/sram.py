"""The GPU's own memories (caches, registers, shared memory) have not passed NVIDIA's limit of errors.

Bad SRAM cannot be remapped. The driver keeps a flag that stands once the board has had more uncorrectable SRAM errors
than NVIDIA's field diagnosis allows: `GH-SRAM-LIMIT`, the GPU is to be replaced. Where the driver is too old for the
flag, or does not tell it, the number of such errors over the board's life is compared with the limit `uncorrectable`
(4, above which sites hand boards back), as a warning.

Asked for in health checks, and in prolog and epilog where the GPU ever had an uncorrectable error. GPUs before Ampere,
and those with ECC off, have no such flag.

Unknown: the flag could not be read. Only root may read it.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import asked, finding, gpus_unread, missing, subject_of, unread, usable
from slurm_gpuhealth.model import WARNING

LIMITS = {"uncorrectable": (4, "uncorrectable SRAM errors over the board's life that are no warning yet")}


def check(facts, limits):
    """Findings about errors of the SRAM. limits: uncorrectable."""
    found = []
    for gpu in usable(facts):
        if F.is_known(gpu.sram_threshold):
            if gpu.sram_threshold:
                counts = gpu.sram_counts if F.is_known(gpu.sram_counts) else {}
                total = sum(counts.get(name, 0) for name in ("uncorrected_parity", "uncorrected_secded"))
                seen = "%d SRAM errors" % total if total else ""
                found.append(finding("GH-SRAM-LIMIT", subject_of(gpu), seen, **counts))
            continue
        total = _lifetime(gpu)
        if total > limits["uncorrectable"]:
            found.append(finding("GH-SRAM-LIMIT", subject_of(gpu), "%d SRAM errors" % total, severity=WARNING,
                                 sram_uncorrected_aggregate=total))
        fields = missing(gpu, *asked(gpu, "sram_threshold"))
        if fields:
            found.append(unread(gpu, fields))
    return found + gpus_unread(facts)


def _lifetime(gpu):
    """Uncorrectable SRAM errors over the board's life, 0 where it does not tell them apart."""
    places = gpu.ecc_locations.get("aggregate_uncorrected", {}) if F.is_known(gpu.ecc_locations) else {}
    return places.get("sram", 0)
