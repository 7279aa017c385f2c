"""Each configured mount has the free space and the inodes that the configuration asks for.

Below `min_free_gb`, `min_free_percent` or `min_free_inodes` of its entry in `mounts:` (0, the default, asks for
nothing): `GH-MNT-FULL`, a warning. Users fill file systems, and draining a node frees nothing. Free is what is left
for users, not what is kept back for root. File systems that make inodes as they need them have no number of them.

Unknown: a mount with such a limit did not tell.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import finding
from slurm_gpuhealth.model import UNREAD, Subject

POLICY = {"mounts": "mounts"}
_GB = 1000 ** 3


def check(facts, limits):
    """Findings about free space. limits: mounts (of the configuration)."""
    seen = {mount.path: mount for mount in facts.mounts}
    found = []
    for wanted in limits["mounts"] or ():
        if any(wanted.get(name) for name in ("min_free_gb", "min_free_percent", "min_free_inodes")):
            subject = Subject("mount", name=wanted["path"])
            found += _space(subject, seen.get(wanted["path"], F.Mount(path=wanted["path"])), wanted)
    return found


def _space(subject, mount, wanted):
    free, total, inodes = mount.free_bytes, mount.total_bytes, mount.free_inodes
    if not F.is_known(free) or (wanted.get("min_free_percent") and not F.is_known(total)):
        return [finding("GH-MNT-FULL", subject, "free space not known", severity=UNREAD)]
    least = wanted.get("min_free_gb") or 0
    if free < least * _GB:
        return [finding("GH-MNT-FULL", subject, "%.1f GB free" % (free / _GB), "%g GB" % least, free_bytes=free)]
    least = wanted.get("min_free_percent") or 0
    if least and total and 100 * free / total < least:
        return [finding("GH-MNT-FULL", subject, "%.1f %% free" % (100 * free / total), "%g %%" % least, free_bytes=free,
                        total_bytes=total)]
    least = wanted.get("min_free_inodes") or 0
    countable = F.is_known(inodes) and F.is_known(mount.total_inodes) and mount.total_inodes > 0
    if least and countable and inodes < least:
        return [finding("GH-MNT-FULL", subject, "%d inodes free" % inodes, "%d" % least, free_inodes=inodes)]
    return []
