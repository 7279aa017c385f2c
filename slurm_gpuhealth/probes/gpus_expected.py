"""How many GPUs the node should have: the configuration's word, else Slurm's files, else the most ever seen.

The files lie on the local disk (/etc/slurm, or slurmd's cache where slurmd runs configless).
"""
from __future__ import annotations

import os

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths

# Where slurmd keeps what slurmctld sent it (configless; slurm.conf(5), SLURM_CONF search order).
_CONFIGLESS = "/run/slurm/conf"
_LIMIT = 4 << 20        # a slurm.conf is some kilobytes; more than this is something else


def expected(cfg, root, node, known, files=None):
    """facts.Expected: number of GPUs, where it comes from, and the device minors in gres order (may be empty).

    cfg: the configuration. node: Slurm's name of this node. known: KnownGpu of healthy rounds.
    files: a list that gets [path, mtime_ns, size, inode] of each file that was looked for, with zeros where there is
    none: while they are all the same, so is the answer (`unchanged`).
    """
    files = [] if files is None else files
    texts = {name: _conf(root, cfg["slurm"][key], name, files) for name, key in
             (("slurm.conf", "conf"), ("gres.conf", "gres_conf"))}
    includes: dict = {}
    for text, folder in list(texts.values()):
        _add_includes(root, text, folder, includes, files)
    from slurm_gpuhealth.parse import gres  # not needed while the files are unchanged
    gres_text, slurm_text = texts["gres.conf"][0], texts["slurm.conf"][0]
    minors = gres.device_order(gres_text, node, includes) or ()
    if cfg["expected_gpus"] != "auto":
        return F.Expected(cfg["expected_gpus"], "config", minors)
    found = gres.expected(gres_text, slurm_text, node, includes)
    if found is not None:
        return F.Expected(found[0], found[1], minors)
    if known:
        return F.Expected(len(known), "most seen", minors)
    return F.Expected(F.Unknown(F.ABSENT, "neither configuration nor Slurm's files say"), "", minors)


def unchanged(root, files):
    """Whether the files that an earlier `expected` read are still the same."""
    return bool(files) and all(_looks(root, entry[0]) == list(entry) for entry in files)


def _looks(root, path):
    try:
        found = os.stat(paths.under(root, path))
    except OSError:
        return [path, 0, 0, 0]
    return [path, found.st_mtime_ns, found.st_size, found.st_ino]


def _conf(root, path, name, files):
    """(text, folder) of a file of Slurm, ("", "") where it is not there."""
    for where in (path, os.path.join(_CONFIGLESS, name)):
        files.append(_looks(root, where))
        text = _read(paths.under(root, where))
        if text is not None:
            return text, os.path.dirname(where)
    return "", ""


def _add_includes(root, text, folder, includes, files):
    """Files that `text` includes, and those that they include, under their names as written there."""
    from slurm_gpuhealth.parse import gres
    waiting = gres.includes_of(text)
    while waiting and len(includes) < 64:
        name = waiting.pop(0)
        if name in includes:
            continue
        files.append(_looks(root, os.path.join(folder, name)))
        found = _read(paths.under(root, os.path.join(folder, name)))
        if found is not None:
            includes[name] = found
            waiting += gres.includes_of(found)


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(_LIMIT)
    except OSError:
        return None
