"""One checkpoint, judged: `verify(path, level)`.

Run by whoever may read the files: a person, or a child that has become the job's user. Nothing is executed or
imported from what is read, and everything read is bounded.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.checkpoint.formats import FILE_FORMATS, FOLDER_FORMATS, load, other_files
from slurm_gpuhealth.checkpoint.safe import Folder, Source, kind_of
from slurm_gpuhealth.checkpoint.verdict import (
    LEVELS,
    REJECTED,
    UNKNOWN,
    Bad,
    Clock,
    Trouble,
    Unclear,
    Verdict,
    trouble_of,
)

# A file whose name says that it is one of several: model-00001-of-00003.safetensors, ckpt_rank0.pt.
_ONE_OF_SEVERAL = re.compile(r"\d+[-_]of[-_]\d+|(?:^|[^a-z])rank[-_]?\d+", re.IGNORECASE)


def verify(path, level="full", until=None, on_step=None):
    """Judge the checkpoint at `path` (a file, or a folder): a Verdict.

    level: "structure" (milliseconds, any size) or "full" (checksums too). until: monotonic time to stop at, or None.
    on_step: called with a parallel.Progress while checksums run. Raises nothing that a file can cause.
    """
    if level not in LEVELS:
        raise ValueError("level is one of %s" % (LEVELS,))
    clock = Clock(until)
    seen = {"format": "", "bytes": 0}
    try:
        kind = kind_of(path)
        if kind == "file":
            return _file(path, level, clock, on_step, seen)
        if kind == "folder":
            return _folder(path, level, clock, on_step, seen)
        if kind == "link":
            raise Unclear("a symbolic link: name what it points to")
        raise Bad("not a plain file")
    except Bad as exc:
        return Verdict(REJECTED, seen["format"], reason=str(exc), level=level, bytes=seen["bytes"])
    except Unclear as exc:
        return Verdict(UNKNOWN, seen["format"], reason=str(exc), level=level, bytes=seen["bytes"])
    except OSError as exc:
        return _troubled(trouble_of(exc), level, seen)
    except Trouble as exc:
        return _troubled(exc, level, seen)
    except MemoryError:
        return _troubled(Trouble("memory", "needs more memory to read than is allowed"), level, seen)


def _troubled(trouble, level, seen):
    return Verdict(UNKNOWN, seen["format"], reason=str(trouble), level=level, trouble=trouble.kind,
                   bytes=seen["bytes"])


def _file(path, level, clock, on_step, seen):
    with Source(path) as source:
        seen["bytes"] = source.size
        clock.check()
        for name in FILE_FORMATS:
            module = load(name)
            if module.matches(source, clock):
                seen["format"] = other_files.kind(source)[0] if module is other_files else module.NAME
                verdict = module.check(source, level, clock, on_step)
                break
    if _ONE_OF_SEVERAL.search(source.shown) and verdict.verdict != REJECTED:
        return verdict._replace(verdict=UNKNOWN, reason="named as one of several parts: the folder is the checkpoint")
    return verdict


def _folder(path, level, clock, on_step, seen):
    with Folder(path) as folder:
        for name in FOLDER_FORMATS:
            module = load(name)
            if module.matches(folder, clock):
                seen["format"] = module.NAME
                return module.check(folder, level, clock, on_step)
    raise Unclear("no checkpoint format is recognised in this folder: seal it, or name the file in it")
