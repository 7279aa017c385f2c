"""Seal a folder: write down what is in it, once all of it is on disk.

Order: every file and folder is flushed, then SHA256SUMS is renamed into place, the manifest last. A folder is
sealed from the moment that the manifest is there, and a crash at any point before leaves it unsealed, never
wrongly sealed.
"""
from __future__ import annotations

import os
import time
from functools import partial

from slurm_gpuhealth.checkpoint import content, manifest, parallel
from slurm_gpuhealth.checkpoint.safe import Folder
from slurm_gpuhealth.checkpoint.verdict import Bad, Clock, Trouble, Unclear
from slurm_gpuhealth.errors import DataError, NotFoundError

_TEMPORARY = ".gpuhealth-seal-"


def seal(path, step=None, world_size=None, format="", holds=(), free=None, on_step=None):
    """Seal the checkpoint folder `path` and return its manifest.Manifest.

    step: training step (looked for in the files when None). world_size: number of ranks that saved it. format:
    what it is, free text. holds: parts in it, of content.PARTS, so that nobody has to guess from names. free:
    dict for the user's own facts (code, configuration, data, environment). For a checkpoint of several ranks:
    call it once, after all have saved. Raises DataError for a folder that cannot be sealed, NotFoundError when
    there is none, OSError when the disk says no.
    """
    bad = [part for part in holds if part not in content.PARTS]
    if bad:
        raise DataError("holds: '%s' is none of %s" % (bad[0], ", ".join(content.PARTS)))
    try:
        with Folder(path) as folder:
            return _seal(folder, step, world_size, format, holds, free, on_step)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError("%s is not a folder" % path) from None
    except (Bad, Unclear, Trouble) as exc:
        raise DataError("%s cannot be sealed: %s" % (path, exc)) from None


def _seal(folder, step, world_size, fmt, holds, free, on_step):
    clock = Clock()
    _unseal(folder)
    found = {name: stat for name, stat in folder.tree(clock).items()
             if name not in manifest.SEAL_FILES and not name.startswith(_TEMPORARY)}
    if not found:
        raise DataError("%s cannot be sealed: there are no files in it" % folder.path)
    for name in found:
        # sha256sum writes such names in another way; and they would break every list.
        if not name.isprintable() or "\\" in name:
            raise DataError("%s cannot be sealed: file name %s" % (folder.path, ascii(name)))
    names = sorted(found)
    _flush(folder, names)
    pieces = [parallel.Piece(partial(folder.open, name), 0, found[name].st_size, "sha256") for name in names]
    sums = parallel.sums(pieces, clock, on_step)
    entries = tuple(manifest.Entry(name, found[name].st_size, digest) for name, digest in zip(names, sums))
    made = manifest.Manifest(entries, step, world_size, fmt, tuple(holds), _now(), free)
    if step is None:
        made = made._replace(step=_step_inside(folder, made, clock))
    raw = manifest.render(made)
    _write(folder, manifest.SUMS, manifest.render_sums(made, raw))
    _write(folder, manifest.MANIFEST, raw)
    return manifest.parse(raw)


def _unseal(folder):
    """Take away an older seal first, the manifest before the sums: a sealed folder is never half of each."""
    for name in (manifest.MANIFEST, manifest.SUMS):
        try:
            os.unlink(name, dir_fd=folder.fd)
        except FileNotFoundError:
            continue
        os.fsync(folder.fd)


def _flush(folder, names):
    """fsync of every file and every folder on the way."""
    folders = set()
    for name in names:
        with folder.open(name) as source:
            os.fsync(source.fd)
        while "/" in name:
            name = name.rpartition("/")[0]
            folders.add(name)
    for name in sorted(folders, reverse=True):
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    os.fsync(folder.fd)


def _step_inside(folder, made, clock):
    from slurm_gpuhealth.checkpoint.formats import sealed
    return sealed.step_of(sealed.look_inside(folder, made, clock))[0]


def _write(folder, name, data):
    temporary = "%s%d.tmp" % (_TEMPORARY, os.getpid())
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=folder.fd)
    try:
        at = 0
        while at < len(data):
            at += os.write(fd, data[at:])
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
    os.fsync(folder.fd)


def _now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
