"""Reads of one GPU: ECC counters, remapped rows, retired pages, repairs.

A healthy GPU costs six calls in a hook. The rest is asked for when these show that something was ever hit, and in
the rounds that have time. What an old driver or GPU lacks is unsupported, one by one.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F

_KINDS = ("uncorrected", "corrected")
_WHEN = ("volatile", "aggregate")
# nvmlMemoryLocation_t. Since Ampere the GPU tells device memory and SRAM apart; before it, the parts of the SRAM.
_DRAM, _SRAM = (2, "dram"), (7, "sram")
_PARTS = ((0, "l1"), (1, "l2"), (3, "regfile"), (4, "texture"), (5, "texshm"), (6, "cbu"))

# name in facts.Gpu.sram_counts -> member of nvmlEccSramErrorStatus_v1_t
_SRAM_COUNTS = (
    ("uncorrected_parity", "aggregateUncParity"), ("uncorrected_secded", "aggregateUncSecDed"),
    ("corrected", "aggregateCor"), ("l2", "aggregateUncBucketL2"), ("sm", "aggregateUncBucketSm"),
    ("pcie", "aggregateUncBucketPcie"), ("mcu", "aggregateUncBucketMcu"), ("other", "aggregateUncBucketOther"),
)
_NO_ECC = F.Unknown(F.UNSUPPORTED, "ECC is off")
_ROWS_INSTEAD = F.Unknown(F.UNSUPPORTED, "remaps rows instead")


def read(device):
    """Fill ecc_*, sram_*, remap_*, retired_*, unrepairable, repair_pending."""
    _totals(device)
    _rows(device)
    hit = _positive(device, *("ecc_uncorrected_" + when for when in _WHEN))
    _locations(device)
    if device.values["ecc_mode"] != 0 and (hit or device.in_rounds):
        _sram(device)
    if hit or device.in_rounds or _positive(device, "remap_uncorrected", "remap_pending", "remap_failure"):
        device.take("unrepairable", device.optional("nvmlDeviceGetUnrepairableMemoryFlag_v1"))
    if F.is_known(device.values["remap_failure"]) and (
            device.in_rounds or _positive(device, "remap_uncorrected", "remap_corrected")):
        device.take("remap_histogram", device.optional("nvmlDeviceGetRowRemapperHistogram"), lambda banks: {
            name: getattr(banks, name) for name in ("max", "high", "partial", "low", "none")})
    if device.in_rounds:
        device.take("repair_pending", device.optional("nvmlDeviceGetRepairStatus"),
                    lambda found: {"channel": found[0], "tpc": found[1]})


def _totals(device):
    device.take("ecc_mode", device.ask("nvmlDeviceGetEccMode"), lambda modes: modes[0])
    for kind in _KINDS:
        for when in _WHEN:
            device.values["ecc_%s_%s" % (kind, when)] = (
                _NO_ECC if device.values["ecc_mode"] == 0 else
                device.ask("nvmlDeviceGetTotalEccErrors", *_constants(device, kind, when)))


def _constants(device, kind, when):
    nvml = device.nvml
    return (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED if kind == "uncorrected" else nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
            nvml.NVML_VOLATILE_ECC if when == "volatile" else nvml.NVML_AGGREGATE_ECC)


def _positive(device, *names):
    """Whether one of these counters or flags is known and above zero."""
    values = (device.values[name] for name in names)
    return any(F.is_known(value) and value > 0 for value in values)


def _locations(device):
    """Where the errors were, of those totals that are above zero; the corrected ones only where there is time."""
    found = {}
    for kind in _KINDS if device.in_rounds else _KINDS[:1]:
        for when in _WHEN:
            if _positive(device, "ecc_%s_%s" % (kind, when)):
                found["%s_%s" % (when, kind)] = _by_location(device, *_constants(device, kind, when))
    if found:
        device.values["ecc_locations"] = found


def _by_location(device, kind, when):
    counts = {}
    for places in ((_DRAM, _SRAM), _PARTS):
        for number, name in places:
            count = device.optional("nvmlDeviceGetMemoryErrorCounter", kind, when, number)
            if F.is_known(count):
                counts[name] = count
            elif device.error is not None:
                return counts
        if "sram" in counts:
            break
    return counts


def _sram(device):
    """The status that holds NVIDIA's own limit (root only; Ampere and later). It must come with its version."""
    kind = getattr(device.nvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    if kind is None:
        device.values["sram_threshold"] = F.Unknown(F.UNSUPPORTED, "nvidia-ml-py too old for this")
        return
    status = kind()
    answer = device.optional("nvmlDeviceGetSramEccErrorStatus", device.nvml.byref(status))
    if answer is not None and not F.is_known(answer):
        device.values["sram_threshold"] = device.values["sram_counts"] = answer
        return
    device.values["sram_threshold"] = status.bThresholdExceeded
    device.values["sram_counts"] = {name: getattr(status, member) for name, member in _SRAM_COUNTS}


def _rows(device):
    rows = device.ask("nvmlDeviceGetRemappedRows")
    for place, name in enumerate(("corrected", "uncorrected", "pending", "failure")):
        device.take("remap_" + name, rows, lambda found, place=place: found[place])
    if F.is_known(rows) or device.error is not None:
        # Rows are remapped since Ampere; pages were retired before it. No GPU has both.
        device.values["retired_pages"] = device.values["retired_pending"] = _ROWS_INSTEAD
        return
    _pages(device)


def _pages(device):
    nvml, counts = device.nvml, {}
    for name, cause in (("sbe", nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS),
                        ("dbe", nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)):
        found = device.ask("nvmlDeviceGetRetiredPages", cause)
        if not F.is_known(found):
            for field in ("retired_pages", "retired_counts", "retired_pending"):
                device.values[field] = found
            return
        counts[name] = len(found)
    device.values["retired_pages"] = sum(counts.values())
    device.values["retired_counts"] = counts
    device.values["retired_pending"] = device.ask("nvmlDeviceGetRetiredPagesPendingStatus")
