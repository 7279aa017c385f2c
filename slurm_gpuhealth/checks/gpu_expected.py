"""The GPUs are what the site says they are: model, VBIOS and driver (`expected:` of the configuration).

- A model that is not among `expected: model:` is a fault, `GH-EXP-MODEL`: Slurm gives jobs this GPU for another one. A
  part of the name is enough ("H100"), capitals do not matter.
- A driver that is not among `expected: driver:` (a version or its beginning, "550.90") is a warning,
  `GH-EXP-DRIVER`, and so is a VBIOS that is not among `expected: vbios:`, `GH-EXP-VBIOS`. They are no fault, as the
  list is forgotten at most updates, and all nodes would drain at once; who wants that sets `severity: fatal` under
  `codes:`.
- Where the site says nothing about models, GPUs of different models in one node are a warning, `GH-GPU-MIX`; name
  both to say that they belong there. Different VBIOS versions among GPUs of one model are a note of the same code.

The VBIOS is read in health checks only. The list `expected: mig:` is another check's.

Unknown: something that is expected could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import (
    asked,
    finding,
    gpus_unread,
    missing,
    not_a_gpu_node,
    subject_of,
    unread,
    usable,
)
from slurm_gpuhealth.model import ALL_GPUS, NOTE

POLICY = {"expected": "expected"}


def check(facts, limits):
    """Findings about what the GPUs are. limits: expected ({"model": [...], "vbios": [...], "driver": [...]})."""
    wanted = limits.get("expected") or {}
    models, versions = wanted.get("model") or [], wanted.get("vbios") or []
    found = []
    for gpu in usable(facts):
        found += _gpu(gpu, models, versions)
    gpus = [gpu for gpu in usable(facts) if F.is_known(gpu.name)]
    if not models:
        found += _mixed(gpus, "name", "models", None)
    if not versions:
        for model in sorted({gpu.name for gpu in gpus}):
            same = [gpu for gpu in gpus if gpu.name == model and F.is_known(gpu.vbios)]
            found += _mixed(same, "vbios", "VBIOS versions", NOTE)
    if usable(facts):
        found += _driver(facts, wanted.get("driver") or [])
    return found + gpus_unread(facts)


def _gpu(gpu, models, versions):
    found, fields = [], missing(gpu, "name")
    if models and F.is_known(gpu.name) and not any(model.lower() in gpu.name.lower() for model in models):
        found.append(finding("GH-EXP-MODEL", subject_of(gpu), gpu.name, " or ".join(models), model=gpu.name))
    if versions:
        fields.update(missing(gpu, *asked(gpu, "vbios")))
        if F.is_known(gpu.vbios) and gpu.vbios.lower() not in [version.lower() for version in versions]:
            found.append(finding("GH-EXP-VBIOS", subject_of(gpu), gpu.vbios, " or ".join(versions), vbios=gpu.vbios))
    if fields:
        found.append(unread(gpu, fields))
    return found


def _mixed(gpus, field, what, severity):
    """One finding about the node where its GPUs differ in `field`."""
    counts: dict = {}
    for gpu in gpus:
        value = getattr(gpu, field)
        counts[value] = counts.get(value, 0) + 1
    if len(counts) < 2:
        return []
    most_first = sorted(counts, key=lambda one: (-counts[one], one))
    text = ", ".join("%d x %s" % (counts[value], value) for value in most_first)
    return [finding("GH-GPU-MIX", ALL_GPUS, "%s: %s" % (what, text), severity=severity, counts=counts)]


def _driver(facts, versions):
    if not versions or not_a_gpu_node(facts):
        return []
    if not F.is_known(facts.driver):
        return [finding("GH-GPU-UNREAD", ALL_GPUS, "driver version: %s" % (facts.driver.detail or facts.driver.reason),
                        fields=["driver"], why=facts.driver.reason, nvml_code=facts.driver.code)]
    if any(facts.driver == version or facts.driver.startswith(version.rstrip(".") + ".") for version in versions):
        return []
    return [finding("GH-EXP-DRIVER", ALL_GPUS, facts.driver, " or ".join(versions), driver=facts.driver)]
