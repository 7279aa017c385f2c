"""Find a job's checkpoint as its user: root never opens a user's file.

A child becomes the user for good (groups, ids, no new privileges, limits: supervise.AsUser) and looks; root sees
only its answer, as plain data. A child that hangs on a dead mount is left behind, and the answer is "could not look".
"""
from __future__ import annotations

import time

from slurm_gpuhealth import supervise
from slurm_gpuhealth.checkpoint import find

_RESERVE = 0.4      # seconds of the deadline for starting the child and reading its answer


def resolve_as(uid, gid, spec, deadline, on_left=None):
    """The newest acceptable checkpoint for the user `uid`: find.Resolution. Takes `deadline` seconds at most.

    gid: the job's group, or None for the user's own. spec: {"path": folder, "accepts": [verdicts], "level": "full" or
    "structure", "known": {"path", "fp", "level", "step"} or None}. on_left(pid): called when the child hangs for
    good. uid 0 is refused: "could-not-look".
    """
    if uid == 0:
        return find.Resolution("could-not-look", reason="a job of root: its files are not looked at")
    spec = dict(spec, seconds=max(deadline - _RESERVE, 0.2))
    # Imported here, once, so that the child finds all of it in memory: its user may not read our folder.
    _import_all()
    try:
        result = supervise.call(resolve, spec, deadline, supervise.AsUser(uid, gid), name="resume")
    except OSError as exc:
        return find.Resolution("could-not-look", reason="no child to look with: %s" % exc.strerror)
    if result.status.pid is not None and on_left is not None:
        on_left(result.status.pid)
    for kind, plain in result.records:
        if kind == "resolution":
            return find.from_plain(plain)
    why = result.status.detail or "no answer"
    return find.Resolution("could-not-look", reason="looking for checkpoints: %s" % why)


def resolve(spec, emit):
    """In the child: look, and say what was found."""
    known = find.Known(**spec["known"]) if spec.get("known") else None
    answer = find.latest(spec["path"], tuple(spec["accepts"]), spec["level"], time.monotonic() + spec["seconds"], known)
    emit("resolution", find.to_plain(answer))


def _import_all():
    import hashlib  # noqa: F401
    import threading  # noqa: F401
    import zlib  # noqa: F401

    from slurm_gpuhealth.checkpoint.formats import FILE_FORMATS, FOLDER_FORMATS, load
    for name in FILE_FORMATS + FOLDER_FORMATS:
        load(name)
