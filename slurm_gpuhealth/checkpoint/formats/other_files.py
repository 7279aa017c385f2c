"""Files that no other format claims: empty, never written, or of a kind that is not judged."""
from __future__ import annotations

from slurm_gpuhealth.checkpoint.verdict import Bad, Unclear

NAME = "unknown"

# Beginnings of files that hold checkpoints and are not judged here, and what to say. The first is the pickled magic
# number of torch/serialization.py, MAGIC_NUMBER = 0x1950a86a20f9469cfc6c.
KINDS = (
    (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "torch-legacy",
     "the torch format from before 1.6: no checksum, and not judged yet"),
    (b"\x89HDF\r\n\x1a\n", "hdf5", "an HDF5 file: not judged"),
    (b"\x93NUMPY", "npy", "a NumPy file: not judged"),
    (b"GGUF", "gguf", "a GGUF file: weights for inference"),
    (b"\x1f\x8b", "gzip", "a compressed file: not judged"),
    (b"\x80", "pickle", "a plain pickle: not judged, and never executed"),
)


def kind(source):
    """(format name, what to say) by the first bytes, or ("", "")."""
    head = source.read(0, min(16, source.size))
    for magic, name, text in KINDS:
        if head.startswith(magic):
            return name, text
    return "", ""


def matches(source, clock):
    """Always: this is the last one asked."""
    return True


def check(source, level, clock, on_step=None):
    """Raises Bad for a file that was never written, Unclear for everything else."""
    if source.size == 0:
        raise Bad("an empty file")
    if not source.read(0, min(4096, source.size)).strip(b"\0"):
        raise Bad("begins with zeros: space was reserved and nothing written")
    raise Unclear(kind(source)[1] or "not a format that is known here")
