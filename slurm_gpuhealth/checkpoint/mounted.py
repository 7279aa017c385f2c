"""Is a file system that should be there missing? An empty mount point looks just like a run that saved nothing."""
from __future__ import annotations

from slurm_gpuhealth import paths
from slurm_gpuhealth.parse.mountinfo import unescape


def missing_mount(path, root=""):
    """Mount point above (or at) `path` that /etc/fstab names and that is not mounted, or "".

    Lines with noauto are not missed. Where either file cannot be read nobody can tell: "".
    """
    try:
        with open(paths.under(root, "/etc/fstab"), encoding="utf-8", errors="surrogateescape") as handle:
            wanted = _points(handle)
        with open(paths.under(root, "/proc/self/mountinfo"), encoding="utf-8", errors="surrogateescape") as handle:
            there = {unescape(line.split()[4]) for line in handle if len(line.split()) > 4}
    except OSError:
        return ""
    for point in sorted(wanted, key=len, reverse=True):
        if (path == point or path.startswith(point.rstrip("/") + "/")) and point not in there:
            return point
    return ""


def _points(lines):
    points = []
    for line in lines:
        fields = line.split()
        if len(fields) < 4 or fields[0].startswith("#") or fields[2] == "swap" or "noauto" in fields[3].split(","):
            continue
        point = unescape(fields[1])     # fstab(5) escapes as the kernel does
        if point.startswith("/") and point != "/":
            points.append(point.rstrip("/"))
    return points
