"""A folder with safetensors files: one model.safetensors, or shards with model.safetensors.index.json.

The index is {"metadata": {"total_size": N}, "weight_map": {tensor: shard}} (huggingface_hub, save_torch_model).
Every shard must lie in the folder itself: names that lead out of it have been used against other tools.
"""
from __future__ import annotations

import json

from slurm_gpuhealth.checkpoint import content
from slurm_gpuhealth.checkpoint.formats import safetensors
from slurm_gpuhealth.checkpoint.safe import printable
from slurm_gpuhealth.checkpoint.verdict import STRUCTURE, UNKNOWN, WEIGHTS, Bad, Verdict

NAME = "safetensors-sharded"
INDEX = ".safetensors.index.json"
MAX_INDEX = 64 << 20


def matches(folder, clock):
    """By an index file in it."""
    return any(name.endswith(INDEX) for name in folder.names(clock))


def check(folder, level, clock, on_step=None):
    """Judge the shards of every index in the folder together."""
    names = folder.names(clock)
    tensors, metadata, size = [], {}, 0
    for index in sorted(name for name in names if name.endswith(INDEX)):
        found, meta, count = _check_index(folder, index, names, clock)
        tensors += found
        metadata.update(meta)
        size += count
    step, step_key = content.text_step(metadata)
    what = content.of_names(tensors, step, step_key)
    verdict = UNKNOWN if what.part else WEIGHTS if what.weights_only else STRUCTURE
    reason = what.why or ("the format has no checksum" if level == "full" else "")
    return Verdict(verdict, NAME, step, what.missing, None, reason, what.keys, level, "", size, step_key)


def _check_index(folder, index, names, clock):
    """(tensor names, metadata of the shards, bytes) of one index whose shards are all there."""
    with folder.open(index) as source:
        if source.size > MAX_INDEX:
            raise Bad("%s has %d bytes" % (printable(index, 80), source.size))
        try:
            plain = json.loads(source.read(0, source.size).decode("utf-8"))
        except (ValueError, RecursionError):
            raise Bad("%s is not JSON" % printable(index, 80)) from None
        size = source.size
    shards = _by_shard(plain, index)
    metadata, tensors = {}, []
    for shard in sorted(shards):
        clock.check()
        if names.get(shard) is None:
            raise Bad("shard %s is not there" % printable(shard, 100))
        with folder.open(shard) as source:
            try:
                header = safetensors.read_header(source)
            except Bad as exc:
                raise Bad("%s: %s" % (printable(shard, 100), exc)) from None
            size += source.size
        lost = shards[shard].difference(header.tensors)
        if lost:
            raise Bad("tensor %s is not in shard %s" % (printable(min(lost), 80), printable(shard, 100)))
        metadata.update(header.metadata)
        tensors += header.tensors
    return tensors, metadata, size


def _by_shard(plain, index):
    mapped = plain.get("weight_map") if isinstance(plain, dict) else None
    if not isinstance(mapped, dict) or not mapped:
        raise Bad("%s names no tensors" % printable(index, 80))
    shards: dict = {}
    for tensor, shard in mapped.items():
        if not isinstance(shard, str) or not shard or "/" in shard or "\0" in shard or shard in (".", ".."):
            raise Bad("%s names a shard outside the folder" % printable(index, 80))
        shards.setdefault(shard, set()).add(tensor)
    return shards
