"""What could not be read is never a fault and never healthy: each field of the facts as an Unknown, one by one and many
at once, on a healthy node, one with MIG and one with GPUs before Ampere."""
import random

import builders
import pytest

from slurm_gpuhealth import checks
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.config_defaults import DEFAULTS
from slurm_gpuhealth.model import EPILOG, FATAL, HEALTHCHECK, PROLOG

UNSUPPORTED = F.Unknown(F.UNSUPPORTED, "not supported", 3)
FAILED = (F.Unknown(F.ERROR, "unknown error", 999), F.Unknown(F.TIMEOUT, "no answer"), F.Unknown(F.DENIED, "", 4))
ROWS = ("remap_corrected", "remap_uncorrected", "remap_pending", "remap_failure", "remap_histogram")
MIG = dict(dict.fromkeys(ROWS + ("utilization", "processes", "repair_pending", "sram_threshold"), UNSUPPORTED),
           mig_mode=1, mig_pending=1, mig_devices=("1g.10gb",) * 7, nvlinks=builders.nvlinks(18, down=range(18)),
           fabric={"state": 0, "status": 0, "health_mask": None, "health_summary": None})
OLD = dict(dict.fromkeys(ROWS + ("recovery_action", "sram_threshold", "sram_counts", "unrepairable", "repair_pending",
                                 "fabric", "mig_mode", "mig_pending", "mig_devices"), UNSUPPORTED),
           name="Tesla V100-SXM2-32GB", retired_pages=0, retired_pending=0, pcie_gen=3, pcie_gen_max=3,
           nvlinks=builders.nvlinks(6, remote=None))
NODES = {"healthy": {}, "mig": MIG, "old": OLD}
PHASES = (HEALTHCHECK, PROLOG, EPILOG)
FIELDS = [name for name in F.Gpu._fields if name != "error"]     # whose Unknown means that the GPU cannot be used
# Values, or records of their own, that a round always has (the rest of a record that could not be read is None).
ALWAYS = ("v", "node", "time", "boot_id", "kernel", "hostname", "gpus", "expected", "known_gpus", "mounts", "baseline",
          "sources", "job_gpus", "phase", "job")
# What each check says in its documentation that it needs, on any of the nodes.
NEEDS = {
    "gpu_usable": ("uuid", "bdf", "recovery_action"), "gpu_identity": ("uuid", "bdf", "serial"),
    "ecc": ("ecc_mode", "ecc_uncorrected_volatile", "ecc_uncorrected_aggregate", "ecc_corrected_volatile",
            "ecc_corrected_aggregate"),
    "row_remap": ("remap_failure", "remap_pending", "retired_pages", "retired_pending", "remap_histogram",
                  "unrepairable", "repair_pending"),
    "sram": ("sram_threshold",), "inforom": ("inforom",), "pcie_width": ("pcie_width", "pcie_width_max"),
    "pcie_gen": ("pcie_gen", "pcie_gen_max", "utilization", "pstate"), "pcie_replay": ("pcie_replay",),
    "gpu_expected": ("name",), "nvlink": ("nvlinks", "mig_mode"), "fabric": ("fabric", "mig_mode"),
    "thermal": ("temperature", "temperature_memory", "temperature_limits"),
    "slowdown": ("clock_reasons", "utilization", "reason_samples", "violations"),
    "gpu_modes": ("persistence", "compute_mode", "clock_app", "clock_app_default"),
    "mig": ("mig_mode", "mig_pending"), "devices": ("minor",), "leftover": ("processes",),
}
# With MIG there are no links and no utilisation, but instances.
NEEDS_OF_MIG = dict(NEEDS, nvlink=("mig_mode",), fabric=("mig_mode",), mig=("mig_mode", "mig_pending", "mig_devices"),
                    slowdown=NEEDS["slowdown"] + ("power", "power_limit"))
NODE_NEEDS = {
    "gpu_usable": ("nvml", "gpu_count"), "gpu_count": ("gpu_count",), "driver_fit": ("cuda", "driver", "libraries"),
    "xid": ("klog",), "sxid": ("klog",), "aer": ("klog",), "kernel_log": ("klog",), "storage_log": ("klog",),
    "pcie_bus": ("pci",), "links": ("links",), "nvme": ("nvme", "klog"), "devices": ("devices",), "clock": ("clock",),
    "host_memory": ("memory_controllers", "klog"), "fs_errors": ("filesystems", "klog"),
    "leftover": ("processes", "jobs"), "services": ("services",),
}


def node(kind, phase=HEALTHCHECK, **changes):
    """The node `kind`, its GPU 3 with `changes`."""
    facts = builders.healthy_node()
    gpus = [gpu._replace(**NODES[kind]) for gpu in facts.gpus]
    gpus[3] = gpus[3]._replace(**changes)
    return facts._replace(gpus=tuple(gpus), phase=phase)


def results(facts):
    """{check: Result}, nothing of it a fault."""
    found = checks.run_checks(facts, DEFAULTS, facts.phase)
    assert not [one.seen for result in found for one in result.findings if one.code == "GH-SELF"]
    merged = checks.merge(found)
    assert [one for one in merged if one.severity == FATAL] == []
    return {one.name: one for one in found}, merged


@pytest.mark.parametrize("kind", NODES)
def test_the_nodes_are_healthy(kind):
    """What is changed below starts from nothing."""
    for phase in PHASES:
        assert results(node(kind, phase))[1] == []


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", NODES)
def test_one_field_of_a_gpu(kind, field):
    """It never drains; a check that needs it is not ok; what the GPU does not have is nobody's business."""
    needs = NEEDS_OF_MIG if kind == "mig" else NEEDS
    for phase in PHASES:
        for value in FAILED:
            of, merged = results(node(kind, phase, **{field: value}))
            needing = [name for name, fields in needs.items() if field in fields and of[name].outcome != "skipped"]
            assert [of[name].outcome for name in needing] == ["unknown"] * len(needing), (needing, value)
            assert len(merged) == 1 if needing else merged == []
        if field not in ("uuid", "bdf"):
            assert results(node(kind, phase, **{field: UNSUPPORTED}))[1] == []


@pytest.mark.parametrize("kind", NODES)
def test_many_fields_at_once(kind):
    """Whatever is missing together: no crash, no fault, and one finding a GPU."""
    chance = random.Random(20261130)
    for _ in range(120):
        some = chance.sample(FIELDS, chance.randint(2, len(FIELDS)))
        values = {name: chance.choice(FAILED + (UNSUPPORTED,)) for name in some}
        merged = results(node(kind, chance.choice(PHASES), **values))[1]
        assert len([one for one in merged if one.code == "GH-GPU-UNREAD"]) <= 1, values
    for value in FAILED:
        facts = node(kind)
        blank = tuple(gpu._replace(**dict.fromkeys(FIELDS, value)) for gpu in facts.gpus)
        assert {one.severity for one in results(facts._replace(gpus=blank))[1]} == {"unknown"}


@pytest.mark.parametrize("field", [name for name in F.Facts._fields if name not in ALWAYS])
@pytest.mark.parametrize("kind", NODES)
def test_one_field_of_the_node(kind, field):
    """The same for what is read of the node."""
    for value in FAILED + (F.Unknown(F.HUNG, "D state"),):
        of, _ = results(node(kind)._replace(**{field: value}))
        needing = [name for name, fields in NODE_NEEDS.items() if field in fields]
        assert [of[name].outcome for name in needing] == ["unknown"] * len(needing), (needing, value)
    results(node(kind)._replace(**{field: UNSUPPORTED}))


def test_many_fields_of_the_node_at_once():
    """Nothing of the node could be read, in all mixtures."""
    chance = random.Random(20261130)
    names = [name for name in F.Facts._fields if name not in ALWAYS]
    for _ in range(200):
        values = {name: chance.choice(FAILED + (UNSUPPORTED,)) for name in chance.sample(names, chance.randint(2, 12))}
        results(node(chance.choice(list(NODES)))._replace(**values))


@pytest.mark.parametrize("value", FAILED)
def test_expected_number_unread(value):
    """How many GPUs there should be is not known: then there are as many as there are."""
    facts = node("healthy")
    results(facts._replace(expected=facts.expected._replace(gpus=value)))


def test_a_service_that_does_not_say_how_it_is():
    """systemd answered, and nothing of one unit: no fault of that unit."""
    unit = F.RECORDS["services"]("nvidia-imex.service", "loaded", FAILED[0], "", "", "enabled")
    of, _ = results(node("healthy")._replace(services=(unit,)))
    assert of["services"].outcome == "unknown"
