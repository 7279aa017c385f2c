"""The result of one round as Prometheus metrics, for node_exporter's textfile collector. Pure.

Text format 0.0.4 (prometheus.io, exposition formats): each metric has HELP and TYPE once, its samples stand together,
no sample twice, no time stamps (the textfile collector refuses them). What could not be read has no sample.
"""
from __future__ import annotations

from slurm_gpuhealth import __version__, model
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.render import exit_code, subject

_HUGE = 1e300
OUTCOMES = {model.OK: 0, model.BAD: 1, model.UNKNOWN: 2, model.SKIPPED: 3}

# name -> (type, help). In the order in which they are written. docs/checks.md has this table too.
METRICS = {
    "gpuhealth_up": ("gauge", "1: the last round ended and wrote this file."),
    "gpuhealth_info": ("gauge", "1, with versions as labels."),
    "gpuhealth_outcome": ("gauge", "Outcome of the last round: 0 ok, 1 warning, 2 fatal, 3 unknown."),
    "gpuhealth_last_round_timestamp_seconds": ("gauge", "When the node was looked at, seconds since the epoch."),
    "gpuhealth_round_duration_seconds": ("gauge", "How long the last round took."),
    "gpuhealth_check_outcome": ("gauge", "Outcome of each check: 0 ok, 1 bad, 2 unknown, 3 skipped."),
    "gpuhealth_findings": ("gauge", "Number of findings by severity."),
    "gpuhealth_finding": ("gauge", "1 for each finding that stands."),
    "gpuhealth_source_up": ("gauge", "1: the source was read, 0: late, hung or failed."),
    "gpuhealth_source_duration_seconds": ("gauge", "How long reading the source took."),
    "gpuhealth_gpus_expected": ("gauge", "GPUs that the node should have."),
    "gpuhealth_gpus_found": ("gauge", "GPUs that NVML counts."),
    "gpuhealth_gpu_usable": ("gauge", "1: the GPU answers, 0: it does not."),
    "gpuhealth_gpu_temperature_celsius": ("gauge", "Temperature of the GPU."),
    "gpuhealth_gpu_memory_temperature_celsius": ("gauge", "Temperature of its memory."),
    "gpuhealth_gpu_power_watts": ("gauge", "Power drawn."),
    "gpuhealth_gpu_power_limit_watts": ("gauge", "Power limit in force."),
    "gpuhealth_gpu_utilization_ratio": ("gauge", "Share of the time in which a kernel ran, 0 to 1."),
    "gpuhealth_gpu_memory_used_bytes": ("gauge", "Memory in use."),
    "gpuhealth_gpu_memory_total_bytes": ("gauge", "Memory of the GPU."),
    "gpuhealth_gpu_sm_clock_hertz": ("gauge", "Clock of the multiprocessors."),
    "gpuhealth_gpu_ecc_errors_total": ("counter", "ECC errors; span volatile: since the driver was loaded, aggregate:"
                                       " of the board's life."),
    "gpuhealth_gpu_remapped_rows": ("gauge", "Memory rows that were remapped, by what made it necessary."),
    "gpuhealth_gpu_remap_pending": ("gauge", "1: a remap waits for the next reset."),
    "gpuhealth_gpu_remap_failed": ("gauge", "1: a row could not be remapped."),
    "gpuhealth_gpu_retired_pages": ("gauge", "Memory pages that were retired (older GPUs)."),
    "gpuhealth_gpu_pcie_width_lanes": ("gauge", "Lanes of the PCIe link now."),
    "gpuhealth_gpu_pcie_width_max_lanes": ("gauge", "Lanes that GPU and slot allow."),
    "gpuhealth_gpu_pcie_generation": ("gauge", "Generation of the PCIe link now; lower while idle."),
    "gpuhealth_gpu_pcie_generation_max": ("gauge", "Generation that GPU and slot allow."),
    "gpuhealth_gpu_pcie_replays_total": ("counter", "PCIe replays since the driver was loaded."),
    "gpuhealth_gpu_nvlinks": ("gauge", "NVLinks of the GPU."),
    "gpuhealth_gpu_nvlinks_up": ("gauge", "NVLinks that are up."),
    "gpuhealth_gpu_nvlink_bit_error_rate": ("gauge", "Bit error rate of an NVLink, by link and kind."),
    "gpuhealth_gpu_nvlink_errors_total": ("counter", "NVLink errors by link and kind."),
    "gpuhealth_gpu_recovery_action": ("gauge", "What the driver wants: 0 nothing, 1 reset, 2 reboot, 3 drain of P2P,"
                                      " 4 drain and reset, 5 recover the IMEX domain, 6 bus reset, 7 system reboot."),
}

_ECC = "gpuhealth_gpu_ecc_errors_total"

# Field of facts.Gpu -> (metric, factor, further labels).
_FIELDS = (
    ("temperature", "gpuhealth_gpu_temperature_celsius", 1, ()),
    ("temperature_memory", "gpuhealth_gpu_memory_temperature_celsius", 1, ()),
    ("power", "gpuhealth_gpu_power_watts", 1, ()),
    ("power_limit", "gpuhealth_gpu_power_limit_watts", 1, ()),
    ("utilization", "gpuhealth_gpu_utilization_ratio", 0.01, ()),
    ("memory_used", "gpuhealth_gpu_memory_used_bytes", 1, ()),
    ("memory_total", "gpuhealth_gpu_memory_total_bytes", 1, ()),
    ("clock_sm", "gpuhealth_gpu_sm_clock_hertz", 1000000, ()),
    ("ecc_uncorrected_volatile", _ECC, 1, (("type", "uncorrected"), ("span", "volatile"))),
    ("ecc_corrected_volatile", _ECC, 1, (("type", "corrected"), ("span", "volatile"))),
    ("ecc_uncorrected_aggregate", _ECC, 1, (("type", "uncorrected"), ("span", "aggregate"))),
    ("ecc_corrected_aggregate", _ECC, 1, (("type", "corrected"), ("span", "aggregate"))),
    ("remap_corrected", "gpuhealth_gpu_remapped_rows", 1, (("cause", "corrected"),)),
    ("remap_uncorrected", "gpuhealth_gpu_remapped_rows", 1, (("cause", "uncorrected"),)),
    ("remap_pending", "gpuhealth_gpu_remap_pending", 1, ()),
    ("remap_failure", "gpuhealth_gpu_remap_failed", 1, ()),
    ("retired_pages", "gpuhealth_gpu_retired_pages", 1, ()),
    ("pcie_width", "gpuhealth_gpu_pcie_width_lanes", 1, ()),
    ("pcie_width_max", "gpuhealth_gpu_pcie_width_max_lanes", 1, ()),
    ("pcie_gen", "gpuhealth_gpu_pcie_generation", 1, ()),
    ("pcie_gen_max", "gpuhealth_gpu_pcie_generation_max", 1, ()),
    ("pcie_replay", "gpuhealth_gpu_pcie_replays_total", 1, ()),
    ("recovery_action", "gpuhealth_gpu_recovery_action", 1, ()),
)


def text(facts, results, findings, duration=None):
    """The metrics as text, UTF-8 encodable. duration: seconds that the round took, or None."""
    samples = _Samples()
    samples.add("gpuhealth_up", 1)
    samples.add("gpuhealth_info", 1, version=__version__, driver=_or_empty(facts.driver), cuda=_or_empty(facts.cuda))
    samples.add("gpuhealth_outcome", exit_code(findings))
    samples.add("gpuhealth_last_round_timestamp_seconds", facts.time)
    samples.add("gpuhealth_round_duration_seconds", duration)
    for result in results:
        samples.add("gpuhealth_check_outcome", OUTCOMES[result.outcome], check=result.name)
    for severity in model.SEVERITIES:
        samples.add("gpuhealth_findings", sum(one.severity == severity for one in findings), severity=severity)
    for one in findings:
        samples.add("gpuhealth_finding", 1, code=one.code, severity=one.severity, subject=subject(one.subject))
    for status in facts.sources:
        samples.add("gpuhealth_source_up", int(status.outcome == "ok"), source=status.name)
        samples.add("gpuhealth_source_duration_seconds", status.seconds, source=status.name)
    samples.add("gpuhealth_gpus_expected", facts.expected.gpus)
    samples.add("gpuhealth_gpus_found", facts.gpu_count)
    for gpu in facts.gpus:
        _gpu(samples, gpu)
    return samples.text()


def _gpu(samples, gpu):
    labels = {"gpu": str(gpu.index) if F.is_known(gpu.index) else "", "uuid": _or_empty(gpu.uuid),
              "bdf": _or_empty(gpu.bdf)}
    if not any(labels.values()):
        labels["gpu"] = "nvml%s" % gpu.nvml_index       # it does not even say who it is
    samples.add("gpuhealth_gpu_usable", int(gpu.error is None), **labels)
    for field, name, factor, more in _FIELDS:
        value = getattr(gpu, field)
        if _is_number(value):
            samples.add(name, value if factor == 1 else value * factor, **labels, **dict(more))
    if F.is_known(gpu.nvlinks):
        samples.add("gpuhealth_gpu_nvlinks", len(gpu.nvlinks), **labels)
        samples.add("gpuhealth_gpu_nvlinks_up", sum(link.get("state") in (1, 2) for link in gpu.nvlinks), **labels)
        for link in gpu.nvlinks:
            errors = link.get("errors")
            for kind, number in sorted(errors.items()) if isinstance(errors, dict) else ():
                samples.add("gpuhealth_gpu_nvlink_bit_error_rate" if kind.endswith("_ber")
                            else "gpuhealth_gpu_nvlink_errors_total", number, **labels, link=str(link.get("link")),
                            error=kind)


class _Samples:
    """The samples by metric, each set of labels once."""

    def __init__(self):
        self._found: dict = {name: {} for name in METRICS}

    def add(self, name, value, **labels):
        """One sample; none for what is not a number (it could not be read)."""
        if not _is_number(value):
            return
        inner = ",".join('%s="%s"' % (key, _label(item)) for key, item in labels.items())
        self._found[name].setdefault("{%s}" % inner if inner else "", _number(value))

    def text(self):
        lines = []
        for name, samples in self._found.items():
            if samples:
                kind, about = METRICS[name]
                lines += ["# HELP %s %s" % (name, about), "# TYPE %s %s" % (name, kind)]
                lines += ["%s%s %s" % (name, labels, value) for labels, value in samples.items()]
        return "\n".join(lines) + "\n"


def _is_number(value):
    return isinstance(value, (int, float)) and -_HUGE < value < _HUGE       # neither "not a number" nor infinite


def _number(value):
    return str(int(value)) if isinstance(value, (bool, int)) or value == int(value) else repr(float(value))


def _label(text):
    """A label's value escaped; what is not UTF-8 would make the whole file unreadable."""
    clean = str(text).encode("utf-8", "replace").decode("utf-8")
    return clean.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _or_empty(value):
    return str(value) if F.is_known(value) and value is not None else ""
