"""One file a format. Each module has `NAME`, `matches(thing, clock)` and `check(thing, level, clock, on_step)`.

`thing` is a Source (formats of one file) or a Folder. `matches` looks at content, never at the name of the
checkpoint; `check` returns a Verdict and raises Bad, Unclear, Trouble or OSError. The order matters: the first that
matches judges.
"""
from __future__ import annotations

FILE_FORMATS = ("torch_zip", "safetensors", "other_files")
FOLDER_FORMATS = ("sealed", "other_folders", "safetensors_sharded")


def load(name):
    """The module of a format, imported when it is needed."""
    import importlib
    return importlib.import_module("slurm_gpuhealth.checkpoint.formats." + name)
