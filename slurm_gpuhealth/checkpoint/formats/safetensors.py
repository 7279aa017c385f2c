"""One .safetensors file: length of the header, a JSON header, the tensors side by side.

Format: safetensors README and safetensors/src/tensor.rs (0.8.0): u64 little endian N <= 100,000,000, N bytes of
JSON that begin with `{`, then the buffer; the tensors' data_offsets must tile the buffer without a hole and end
at the end of the file. There is no checksum: whole is the best that can be said of such a file alone.
"""
from __future__ import annotations

import json
from collections import namedtuple

from slurm_gpuhealth.checkpoint import content
from slurm_gpuhealth.checkpoint.safe import printable
from slurm_gpuhealth.checkpoint.verdict import STRUCTURE, UNKNOWN, WEIGHTS, Bad, Unclear, Verdict

NAME = "safetensors"
MAX_HEADER = 100000000      # the library's own limit
MAX_TENSORS = 2000000

# Bits of one element; safetensors/src/tensor.rs `Dtype::bitsize` (0.8.0).
BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32,
    "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}

Header = namedtuple("Header", "tensors metadata end")
Header.__doc__ = """tensors: tuple of names. metadata: dict of texts. end: size the file must have, in bytes."""


def matches(source, clock):
    """A header length that fits, and the brace behind it."""
    if source.size < 10:
        return False
    head = source.read(0, 9)
    return head[8:] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= MAX_HEADER


def check(source, level, clock, on_step=None):
    """Judge one file. There is no more to see at level "full"."""
    header = read_header(source)
    clock.check()
    step, step_key = content.text_step(header.metadata)
    what = content.of_names(header.tensors, step, step_key)
    if what.part:
        verdict, reason = UNKNOWN, what.why
    elif what.weights_only:
        verdict, reason = WEIGHTS, what.why
    else:
        verdict, reason = STRUCTURE, "the format has no checksum" if level == "full" else ""
    return Verdict(verdict, NAME, step, what.missing, None, reason, what.keys, level, "", source.size, step_key)


def read_header(source):
    """Header of a file whose tensors tile it exactly. Raises Bad where they do not."""
    if source.size < 8:
        raise Bad("cut off: %d bytes" % source.size)
    length = int.from_bytes(source.read(0, 8), "little")
    if length > MAX_HEADER:
        raise Bad("header of %d bytes, at most %d may be" % (length, MAX_HEADER))
    if 8 + length > source.size:
        raise Bad("cut off in its header: %d bytes of %d" % (source.size - 8, length))
    try:
        plain = json.loads(source.read(8, length).decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as exc:
        raise Bad("its header is not JSON: %s" % printable(str(exc), 100)) from None
    if not isinstance(plain, dict):
        raise Bad("its header is not an object")
    metadata = plain.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Bad("its __metadata__ does not hold texts")
    if len(plain) > MAX_TENSORS:
        raise Unclear("%d tensors: more than is looked at" % len(plain))
    end = 8 + length + _tile(plain)
    if end != source.size:
        raise Bad("%d bytes instead of %d" % (source.size, end))
    return Header(tuple(plain), metadata, end)


def _tile(tensors):
    """Bytes that the tensors take; Bad when they leave a hole, overlap, or have another size than their shape."""
    places = []
    for name, entry in tensors.items():
        shown = printable(name, 80)
        if not isinstance(entry, dict):
            raise Bad("tensor %s is not described" % shown)
        dtype, shape, offsets = entry.get("dtype"), entry.get("shape", ""), entry.get("data_offsets", "")
        if not isinstance(dtype, str) or not _numbers(shape) or not _numbers(offsets) or len(offsets) != 2:
            raise Bad("tensor %s is not described" % shown)
        begin, end = offsets
        bits = BITS.get(dtype)
        if bits is None:
            raise Unclear("tensor %s is of unknown type %s" % (shown, printable(dtype, 20)))
        for count in shape:
            bits *= count
            if bits > 1 << 66:
                raise Bad("tensor %s is larger than any file" % shown)
        if end < begin or bits != 8 * (end - begin):
            raise Bad("tensor %s has %d bytes instead of %d" % (shown, end - begin, bits // 8))
        places.append((begin, end, name))
    reached = 0
    for begin, end, name in sorted(places):
        if begin != reached:
            raise Bad("tensor %s does not begin where the one before ends" % printable(name, 80))
        reached = end
    return reached


def _numbers(value):
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _once(pairs):
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name twice")
    return made
