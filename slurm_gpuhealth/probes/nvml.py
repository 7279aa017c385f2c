"""Ask the NVIDIA driver through the real nvidia-ml-py. Runs in a child: any call may hang for ever.

What is quick and tells most comes first, and everything is emitted as soon as it is known, so that a call that
hangs later leaves its trail: "system", "count", then for each GPU its identity, then for each GPU the rest, with
"reading" before each. A GPU that says it is lost is asked no further: each further call to it can wait for 45 s.

nvmlShutdown is never called: it frees nothing that the end of the process does not, and can hang.
"""
from __future__ import annotations

import json

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.model import HEALTHCHECK, MANUAL
from slurm_gpuhealth.probes import nvml_call

_INIT_FLAG_NO_GPUS = 1          # nvmlInitWithFlags: a node without GPUs is no error


def read(spec, emit):
    """Emit what NVML says. spec: root ("" for this machine; else DIR/nvml.json is read instead), phase (the rounds
    that have time read more)."""
    if spec["root"]:
        _read_fixture(spec["root"], emit)
        return
    # Here and not above: only the child needs them, not the hook that puts together what it said.
    from slurm_gpuhealth.probes.nvml_device import Device
    from slurm_gpuhealth.probes.nvml_readers import READERS
    phase, nvml = spec.get("phase", ""), nvml_call.import_nvml()
    try:
        nvml.nvmlInitWithFlags(_INIT_FLAG_NO_GPUS)
    except nvml.NVMLError as exc:
        emit("system", F.to_plain({"nvml": nvml_call.unknown(exc.value), "driver": _libraries()["module"]}))
        emit("done", {})
        return
    call = nvml_call.Caller(nvml)
    cuda = call("nvmlSystemGetCudaDriverVersion_v2")
    if F.is_known(cuda):
        cuda = "%d.%d" % (cuda // 1000, cuda % 1000 // 10)
    emit("system", F.to_plain({"driver": call("nvmlSystemGetDriverVersion"), "cuda": cuda,
                               "nvml": call("nvmlSystemGetNVMLVersion")}))
    if phase in (HEALTHCHECK, MANUAL, ""):
        emit("libraries", F.to_plain(_libraries()))
    count = call("nvmlDeviceGetCount")
    emit("count", F.to_plain({"count": count}))
    found = []
    for number in range(count if F.is_known(count) else 0):
        emit("reading", {"nvml_index": number})
        device = Device(nvml, number, phase)
        device.identity()
        if F.is_known(device.values["persistence"]):
            emit("persistence", {"nvml_index": number, "mode": device.values["persistence"]})
        emit("gpu", device.plain())
        found.append(device)
    for device in found:
        if device.error is None:
            emit("reading", {"nvml_index": device.number})
            for reader in READERS:
                reader(device)
            emit("gpu", device.plain())
    emit("done", {})


def _libraries():
    from slurm_gpuhealth.probes import nvml_libraries
    return nvml_libraries.read()


def assemble(records, spec, status):
    """Facts fields of what `read` emitted, also of a part of it: driver, cuda, nvml, libraries, gpu_count, gpus.

    spec: known (KnownGpu as dicts), minors (gres index -> device minor, may be empty), expected (number or
    None). Of a GPU that was being read when time ran out, what is missing is Unknown(timeout).
    """
    why = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
    missing = F.Unknown(F.NOT_READ, "") if status.outcome == "ok" else F.Unknown(why, status.detail)
    fields = {"driver": missing, "cuda": missing, "nvml": missing, "gpu_count": missing}
    gpus, reading = {}, None
    for kind, plain in records:
        if kind == "system":
            system = F.from_plain({name: plain[name] for name in ("driver", "cuda", "nvml") if name in plain})
            fields.update({name: getattr(system, name) for name in ("driver", "cuda", "nvml") if name in plain})
        elif kind == "libraries":
            fields["libraries"] = F.from_plain({"libraries": plain}).libraries
        elif kind == "count":
            fields["gpu_count"] = F.from_plain({"gpu_count": plain["count"]}).gpu_count
        elif kind == "reading":
            reading = plain["nvml_index"]
        elif kind == "gpu":
            gpu = F.from_plain(plain, F.Gpu)
            gpus[gpu.nvml_index] = gpu
            reading = None
    if reading is not None:
        gpus[reading] = _unanswered(gpus.get(reading) or F.Gpu(**{"nvml_index": reading}), missing)
    if not F.is_known(fields["nvml"]) and fields["nvml"].code is not None:
        fields["gpu_count"] = fields["nvml"]
    in_order = [gpus[number] for number in sorted(gpus)]
    known = [F.KnownGpu(**entry) for entry in spec.get("known") or ()]
    fields["gpus"] = with_indices(in_order, known, spec.get("minors") or (), spec.get("expected"))
    return fields


def with_indices(gpus, known, minors, expected=None):
    """`gpus` with the index that Slurm gives them (gres index), as a tuple in order of NVML.

    By the device minor: its place in gres.conf's File= order (`minors`), else its rank when all GPUs are there
    (slurmd sorts device files). When some are gone, ranks and NVML's own order have moved: then by what was
    learnt in healthy rounds (`known`). A GPU that does not even say who it is gets the place that is left over.
    """
    whole = len(gpus) == (expected or len(known) or len(gpus)) and all(F.is_known(gpu.minor) for gpu in gpus)
    ranks = sorted(gpu.minor for gpu in gpus) if whole else []
    placed = []
    for gpu in gpus:
        index = None
        if F.is_known(gpu.minor) and gpu.minor in minors:
            index = list(minors).index(gpu.minor)
        elif whole and not minors:
            index = ranks.index(gpu.minor)
        else:
            match = _known_as(gpu, known)
            if match is not None:
                index = match.index
            elif F.is_known(gpu.minor) and not minors:
                index = gpu.minor
        placed.append(gpu._replace(index=F.UNASKED if index is None else index))
    return tuple(_place_the_rest(placed, known, expected or len(minors)))


def _known_as(gpu, known):
    for name in ("uuid", "bdf"):
        value = getattr(gpu, name)
        if F.is_known(value) and value:
            for entry in known:
                if getattr(entry, name) == value:
                    return entry
    return None


def _place_the_rest(gpus, known, expected):
    """Give the GPUs without any identity the known ones that nobody else is, where that is certain."""
    silent = [number for number, gpu in enumerate(gpus) if not F.is_known(gpu.index)
              and not F.is_known(gpu.uuid) and not F.is_known(gpu.bdf)]
    taken = {gpu.index for gpu in gpus if F.is_known(gpu.index)}
    if len(silent) == 1 and not known and len(gpus) == expected:
        left = set(range(expected)) - taken
        if len(left) == 1:
            gpus[silent[0]] = gpus[silent[0]]._replace(index=left.pop())
    free = sorted((entry for entry in known if entry.index not in taken), key=lambda entry: entry.bdf)
    if silent and len(silent) == len(free) and (len(silent) == 1 or _in_bus_order(gpus)):
        for number, entry in zip(silent, free):
            gpus[number] = gpus[number]._replace(index=entry.index, uuid=entry.uuid, bdf=entry.bdf)
    # The known GPU that a lost one is may also tell what the lost one did not say.
    for number, gpu in enumerate(gpus):
        entry = _known_as(gpu, known)
        if gpu.error is not None and entry is not None:
            gpus[number] = gpu._replace(uuid=gpu.uuid if F.is_known(gpu.uuid) else entry.uuid,
                                        bdf=gpu.bdf if F.is_known(gpu.bdf) else entry.bdf)
    return gpus


def _in_bus_order(gpus):
    """Whether NVML counts the GPUs that it can name in the order of their PCI addresses (it usually does)."""
    addresses = [gpu.bdf for gpu in gpus if F.is_known(gpu.bdf)]
    return addresses == sorted(addresses)


def _unanswered(gpu, missing):
    fields = {name: missing for name in F.Gpu._fields[1:]
              if getattr(gpu, name) == F.UNASKED and name not in ("index", "error")}
    return gpu._replace(**fields)._replace(nvml_index=gpu.nvml_index)


def _read_fixture(root, emit):
    """DIR/nvml.json of a fixture node: {driver, cuda, nvml, libraries, count, defaults: {...}, gpus: [{...}]}, GPUs in
    the plain form of facts.Gpu over `defaults`. `nvml` may be {"unknown": ..., "code": 18}. No file: no library."""
    try:
        with open(paths.under(root, "/nvml.json"), encoding="utf-8") as handle:
            node = json.load(handle)
    except FileNotFoundError:
        emit("system", F.to_plain({"nvml": nvml_call.unknown(nvml_call.LIBRARY_NOT_FOUND)}))
        emit("done", {})
        return
    emit("system", {name: node[name] for name in ("driver", "cuda", "nvml") if name in node})
    if "libraries" in node:
        emit("libraries", node["libraries"])
    gpus = node.get("gpus", ())
    if "count" in node or "gpus" in node:
        emit("count", {"count": node.get("count", len(gpus))})
    for number, changes in enumerate(gpus):
        plain = dict({"nvml_index": number, "error": None}, **node.get("defaults", {}))
        plain.update(changes)
        emit("gpu", plain)
    emit("done", {})
