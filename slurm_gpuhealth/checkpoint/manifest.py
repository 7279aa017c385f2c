"""The seal of a checkpoint folder: gpuhealth-manifest.json and SHA256SUMS, as data.

SHA256SUMS is what `sha256sum -c` reads: every file of the checkpoint and the manifest itself. The manifest lists
the same files with their sizes, so each of the two is checked by the other, and no bit of either can change unseen.
"""
from __future__ import annotations

import hashlib
import json
from collections import namedtuple

from slurm_gpuhealth.checkpoint.safe import is_inside
from slurm_gpuhealth.checkpoint.verdict import Bad, Unclear

MANIFEST = "gpuhealth-manifest.json"
SUMS = "SHA256SUMS"
VERSION = 1
MAX_MANIFEST = 64 << 20
SEAL_FILES = (MANIFEST, SUMS)

Manifest = namedtuple("Manifest", "files step world_size format holds created free",
                      defaults=((), None, None, "", (), "", None))
Manifest.__doc__ = """files: tuple of Entry. step, world_size: ints or None. format: what the writer calls it,
free text. holds: tuple of the parts in it (as in content.PARTS), () when nobody said. created: UTC text. free:
dict of the user's own fields (code, configuration, data, environment)."""

Entry = namedtuple("Entry", "name bytes sha256")


def render(manifest):
    """Bytes of the manifest file."""
    plain = {
        "v": VERSION, "kind": "gpuhealth-checkpoint", "created": manifest.created, "format": manifest.format,
        "step": manifest.step, "world_size": manifest.world_size, "holds": list(manifest.holds),
        "free": manifest.free or {}, "files": [entry._asdict() for entry in manifest.files],
    }
    return json.dumps(plain, indent=1, sort_keys=True).encode("ascii") + b"\n"


def render_sums(manifest, raw):
    """Bytes of SHA256SUMS for a manifest whose file is `raw`."""
    lines = ["%s  %s\n" % (entry.sha256, entry.name) for entry in manifest.files]
    lines.append("%s  %s\n" % (hashlib.sha256(raw).hexdigest(), MANIFEST))
    return "".join(lines).encode("utf-8", "surrogateescape")


def parse(raw):
    """Manifest from the bytes of its file; Bad when it is not one."""
    try:
        plain = json.loads(raw.decode("ascii"))
    except (ValueError, RecursionError):
        raise Bad("the manifest is not JSON") from None
    if not isinstance(plain, dict) or plain.get("kind") != "gpuhealth-checkpoint":
        raise Bad("the manifest is not one of ours")
    if plain.get("v") != VERSION:
        raise Unclear("the manifest is of version %s, known is %d" % (ascii(plain.get("v"))[:20], VERSION))
    step, world = plain.get("step"), plain.get("world_size")
    holds, free = plain.get("holds"), plain.get("free")
    if not _count(step) or not _count(world) or not isinstance(holds, list) or not isinstance(free, dict) \
            or not all(isinstance(part, str) for part in holds) or not isinstance(plain.get("files"), list):
        raise Bad("the manifest has fields of the wrong kind")
    files = tuple(_entry(item) for item in plain["files"])
    if len({entry.name for entry in files}) != len(files):
        raise Bad("the manifest names a file twice")
    return Manifest(files, step, world, str(plain.get("format", "")), tuple(holds), str(plain.get("created", "")), free)


def _entry(item):
    if not isinstance(item, dict):
        raise Bad("the manifest has fields of the wrong kind")
    name, size, digest = item.get("name"), item.get("bytes"), item.get("sha256")
    if not isinstance(name, str) or type(size) is not int or size < 0 or not isinstance(digest, str) \
            or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise Bad("the manifest has a file without a name, size or sha256")
    if not is_inside(name) or name in SEAL_FILES:
        raise Bad("the manifest names a file outside the folder")
    return Entry(name, size, digest)


def _count(value):
    return value is None or (type(value) is int and value >= 0)
