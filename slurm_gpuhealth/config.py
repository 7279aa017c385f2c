"""Hot side of the configuration: reads the compiled copy, never YAML, never the site's own file.

The site's file may lie on a network file system that is dead just now, so the hooks read only
/var/lib/gpuhealth/config.json (written by config_schema.refresh). Whether that is fresh is judged by
is_stale() from a stat that the caller takes in a supervised child.
"""
from __future__ import annotations

import json
import os
import stat
import zlib

from slurm_gpuhealth import __version__, paths
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh, overlay
from slurm_gpuhealth.errors import ConfigError

COMPILED_VERSION = 1
# Compiled copies are a few KB; anything near this is not ours.
MAX_BYTES = 4 * 1024 * 1024

MODES = ("observe", "drain", "full")


def load(root="", node=""):
    """The configuration of `node` and what is to be said about it: (dict, list of notes).

    Complete in every case: without a usable compiled copy the built-in defaults (mode observe) are returned
    with a note. Raises ConfigError only where the copy could have been written by somebody else than root.
    """
    compiled, notes = read(root)
    config, more = from_compiled(compiled, node)
    return config, notes + more


def read(root=""):
    """The compiled document as it stands on disk, or None: (dict or None, list of notes)."""
    path = paths.under(root, paths.COMPILED)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None, ["no compiled configuration: built-in defaults are used"]
    except OSError as error:
        return None, ["compiled configuration cannot be read (%s): built-in defaults are used"
                      % error.strerror]
    try:
        check_trusted(os.fstat(descriptor), path, root)     # first: Python opens no folder as a file
        with os.fdopen(descriptor, "rb", closefd=False) as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        return None, ["compiled configuration cannot be read (%s): built-in defaults are used"
                      % error.strerror]
    finally:
        os.close(descriptor)
    compiled = None
    if len(raw) <= MAX_BYTES:
        try:
            compiled = json.loads(raw)
        except (ValueError, RecursionError):
            compiled = None
    if not isinstance(compiled, dict) or compiled.get("v") != COMPILED_VERSION or not isinstance(
            compiled.get("config"), dict) or not _is_whole(raw, compiled):
        return None, ["compiled configuration is damaged or of another version: built-in defaults are used"]
    return compiled, []


_SUM = b',"sum":"'


def sealed(text):
    """`text`, one JSON object, with a checksum of itself as its last key, as bytes.

    Root alone writes the copy, so this is not against forgery: a value of a wrong type or a wild number, left by a
    dying disk, would make a fault of every run, or a fault of every GPU.
    """
    data = text.encode()
    return b'%s%s%08x"}' % (data[:-1], _SUM, zlib.crc32(data))


def _is_whole(raw, compiled):
    head, mark, rest = raw.rpartition(_SUM)
    if not mark:    # a version before this one wrote none
        return compiled.get("version") != __version__
    return rest == b'%08x"}' % zlib.crc32(head + b"}")


def from_compiled(compiled, node=""):
    """Configuration of `node` ("" accepts any) out of a compiled document or None: (dict, list of notes)."""
    if compiled is None:
        return fresh(DEFAULTS), []
    owner = compiled.get("node", "")
    if node and owner and owner != node:
        # An image may carry the copy of the machine it was made on; its overlays are not this node's.
        return fresh(DEFAULTS), ["compiled configuration is for another node: built-in defaults are used"]
    # A copy of an older version lacks the keys that came later.
    return overlay(DEFAULTS, compiled["config"]), []


def is_stale(compiled, stat_result, node=""):
    """True when the compiled document no longer fits the site's file.

    stat_result: os.stat() of the site's file, or None where there is none. A copy that another version of
    this package wrote, or that was made for another node than `node` ("" accepts any), is stale as well.
    """
    if compiled is None or compiled.get("version") != __version__ or node not in ("", compiled.get("node")):
        return True
    return compiled.get("source") != source_of(stat_result)


def source_of(stat_result):
    """What identifies one version of the site's file: dict of mtime_ns, size and ino, or None for no file."""
    if stat_result is None:
        return None
    return {"mtime_ns": stat_result.st_mtime_ns, "size": stat_result.st_size, "ino": stat_result.st_ino}


def check_trusted(stat_result, path, root=""):
    """Raise ConfigError unless the file is a regular one of root that nobody else can write.

    Below another root (fixture nodes) the owner is whoever made the fixture, and only the kind is checked.
    """
    if not stat.S_ISREG(stat_result.st_mode):
        raise ConfigError("%s: not a regular file" % path)
    if root:
        return
    if stat_result.st_uid != 0:
        raise ConfigError("%s: must be owned by root (is owned by uid %d)" % (path, stat_result.st_uid))
    if stat_result.st_mode & 0o022:
        raise ConfigError("%s: must not be writable by group or others (mode %04o)"
                          % (path, stat_result.st_mode & 0o7777))


def mode_for(config, partitions=()):
    """The mode that holds on this node: "observe", "drain" or "full".

    config: already compiled for this node, so that entries of `modes:` for other nodes are gone. partitions:
    names of the job's partition, or of all partitions of the node; () where they are not known, and then only
    entries that name no partition count. The last entry that fits wins; where the partitions of one node
    disagree, the mildest mode does.
    """
    chosen = [_mode_in(config, name) for name in partitions] or [_mode_in(config, None)]
    return min(chosen, key=MODES.index)


def _mode_in(config, partition):
    mode = config["mode"]
    for entry in config["modes"]:
        wanted = entry.get("partitions")
        if not wanted or partition in wanted:
            mode = entry["mode"]
    return mode
