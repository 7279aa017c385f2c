"""NVML answers, and each GPU it lists can be used.

- The driver is not loaded, the library is missing or of another version than the kernel module: `GH-NVML-DRV`,
  `GH-NVML-MISM`. Not on a node that should have no GPUs.
- NVML gave no answer: late once is a warning (`GH-NVML-LATE`); late in two rounds, or its process cannot be
  ended, is a fault (`GH-NVML-HANG`).
- A GPU answers "lost" (15): `GH-GPU-LOST`; "reset required" (16), or its recovery action (field 230) stands above
  none: `GH-GPU-RESET` (a warning when it is a number that nobody knows, as for Xid 154); any other error of its
  handle: `GH-GPU-BAD`.

- NVML does not start and does not say why, in two health checks in a row: `GH-NVML-FAIL` is a fault then.

Unknown: NVML failed once without saying why (`GH-NVML-FAIL`), or access to a GPU was denied (`GH-GPU-UNREAD`).
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.catalogue.xid_table import RECOVERY_ACTIONS
from slurm_gpuhealth.checks._shared import (
    FAILED,
    HUNG,
    LATE,
    finding,
    gpus_unread,
    missing,
    not_a_gpu_node,
    source,
    streak,
    subject_of,
    unread,
)
from slurm_gpuhealth.model import ALL_GPUS, FATAL, WARNING

# NVML return codes (nvml.h): of the start, and of one GPU.
_START = {9: "GH-NVML-DRV", 12: "GH-NVML-DRV", 18: "GH-NVML-MISM"}
_NODE_FAULTS = (10, 11)         # the driver times out, interrupts do not arrive
_ONE_GPU = {15: "GH-GPU-LOST", 16: "GH-GPU-RESET"}
_FAILS_ROUNDS = 2               # health checks in a row in which NVML does not start, and nobody knows why
_NOT_OURS_TO_JUDGE = (4, 17)    # hidden by a device cgroup: says nothing about the GPU


def check(facts, limits):
    """Findings about NVML and about each GPU's handle."""
    if F.is_known(facts.expected.gpus) and facts.expected.gpus == 0 and not facts.gpus:
        return []
    found = _about_nvml(facts)
    said = bool(found) and found[0].code != "GH-NVML-LATE"     # why no GPU could be read
    for gpu in facts.gpus:
        found += _about_gpu(gpu)
    return found if said else found + gpus_unread(facts)


def _about_nvml(facts):
    status = source(facts, "nvml")
    if status is not None and status.outcome in (LATE, HUNG, FAILED):
        seen = status.detail or status.outcome
        if any(gpu.persistence == 0 for gpu in facts.gpus if F.is_known(gpu.persistence)):
            seen += "; persistence mode is off, each GPU is initialised anew"
        if status.outcome == FAILED:
            return [finding("GH-NVML-FAIL", ALL_GPUS, seen)]
        if status.outcome == HUNG or status.rounds >= 2:
            return [finding("GH-NVML-HANG", ALL_GPUS, "no answer", pid=status.pid, rounds=status.rounds, detail=seen)]
        return [finding("GH-NVML-LATE", ALL_GPUS, seen, rounds=status.rounds)]
    if F.is_known(facts.nvml):
        return []
    code = facts.nvml.code
    if code is None:
        # Nothing was asked for, or it is said once that no GPU could be read.
        if facts.nvml.reason in (F.NOT_READ, F.ABSENT, F.UNSUPPORTED) or not F.is_known(facts.gpu_count):
            return []
        return [finding("GH-NVML-FAIL", ALL_GPUS, facts.nvml.detail or facts.nvml.reason)]
    if not_a_gpu_node(facts):
        return []
    if code in _START:
        return [finding(_START[code], ALL_GPUS, facts.nvml.detail, nvml_code=code)]
    if code in _NODE_FAULTS or streak(facts, "nvml-fails")[0] + 1 >= _FAILS_ROUNDS:
        return [finding("GH-NVML-FAIL", ALL_GPUS, facts.nvml.detail, severity=FATAL, nvml_code=code,
                        streak="nvml-fails")]
    return [finding("GH-NVML-FAIL", ALL_GPUS, facts.nvml.detail, nvml_code=code, streak="nvml-fails")]


def _about_gpu(gpu):
    if gpu.error is not None:
        code = gpu.error.code
        if code is None or code in _NOT_OURS_TO_JUDGE:
            return [unread(gpu, {"handle": gpu.error})]
        return [finding(_ONE_GPU.get(code, "GH-GPU-BAD"), subject_of(gpu),
                        "" if code in _ONE_GPU else "%s (%d)" % (gpu.error.detail, code), nvml_code=code)]
    action = gpu.recovery_action
    if F.is_known(action) and action != 0:
        # A number that nobody knows asks for nothing that could be done; the log's 154 with it warns as well.
        listed = action in RECOVERY_ACTIONS
        return [finding("GH-GPU-RESET", subject_of(gpu), RECOVERY_ACTIONS.get(action, "recovery action %d" % action),
                        severity=None if listed else WARNING, recovery_action=action)]
    fields = missing(gpu, "uuid", "bdf", "recovery_action")
    return [unread(gpu, fields)] if fields else []
