"""The driver's parts fit each other: kernel module, NVML and libcuda.

That NVML and the kernel module are of different versions is said by NVML itself (`GH-NVML-MISM`, check gpu_usable).
This check looks at what programs need besides: `GH-CUDA-NONE`, there is no libcuda.so.1; `GH-CUDA-MISM`, the installed
one is of another version than the driver, so that CUDA does not start. Both are warnings: containers may bring
another libcuda with them, and a compatibility package of CUDA may lie in front of it.

Not seen by it: a driver that lists its GPUs and cannot start CUDA on them (cuInit fails) for another reason. To see
that, a program would have to start CUDA, which takes seconds and memory of each GPU.

Unknown: the version of CUDA that the driver supports, the driver's own or that of libcuda could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding, gpus_unread, usable
from slurm_gpuhealth.model import ALL_GPUS

_LIBRARY_NOT_FOUND = 12     # nvmlReturn_t; NVML asks libcuda.so.1 for the version


def check(facts, limits):
    """Findings about versions that do not fit."""
    if not usable(facts):
        return gpus_unread(facts)
    found = _cuda(facts) + _not_told(facts)
    cuda = facts.libraries.get("libcuda") if F.is_known(facts.libraries) else None
    if isinstance(cuda, str) and F.is_known(facts.driver) and cuda != facts.driver:
        found.append(finding("GH-CUDA-MISM", ALL_GPUS, "libcuda %s" % cuda, "driver %s" % facts.driver,
                             libcuda=cuda, driver=facts.driver))
    return found + gpus_unread(facts)


def _cuda(facts):
    if F.is_known(facts.cuda) or facts.cuda.reason == F.UNSUPPORTED:
        return []
    if facts.cuda.code == _LIBRARY_NOT_FOUND:
        return [finding("GH-CUDA-NONE", ALL_GPUS, nvml_code=_LIBRARY_NOT_FOUND)]
    return [_unread("cuda", "CUDA version", facts.cuda)]


def _not_told(facts):
    """What could not be read of the versions to compare. A file that is not there, or has no version in its name, has
    none to compare."""
    versions = facts.libraries if F.is_known(facts.libraries) else {"libcuda": facts.libraries}
    values = {"driver": facts.driver, "libcuda": versions.get("libcuda")}
    return [_unread(name, name + " version", value) for name, value in values.items()
            if isinstance(value, F.Unknown) and value.reason not in (F.ABSENT, F.UNSUPPORTED, F.NOT_READ)]


def _unread(field, what, value):
    return finding("GH-GPU-UNREAD", ALL_GPUS, "%s: %s" % (what, value.detail or value.reason), fields=[field],
                   why=value.reason, nvml_code=value.code)
