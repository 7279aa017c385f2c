"""Facts about the node itself: a few short reads of /proc, which cannot hang, so the hook does them itself."""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths


def read_node(root=""):
    """{boot_id, time, uptime, kernel, hostname}. boot_id: the kernel's, without dashes, "" where there is none.

    time: now, seconds since the epoch. On a fixture node that has /proc/stat and /proc/uptime it is what its clock
    showed (boot time plus uptime), so that the same node always gives the same facts.
    """
    uptime = _first_word(root, "/proc/uptime", float)
    now = time.time()
    if root and F.is_known(uptime):
        for line in _text(root, "/proc/stat").splitlines():
            if line.startswith("btime "):
                now = float(line.split()[1]) + uptime
    return {
        "boot_id": _text(root, "/proc/sys/kernel/random/boot_id").strip().replace("-", ""),
        "time": now, "uptime": uptime,
        "kernel": _text(root, "/proc/sys/kernel/osrelease").strip() or (os.uname().release if not root else ""),
        "hostname": _text(root, "/proc/sys/kernel/hostname").strip() or (os.uname().nodename if not root else ""),
    }


def _text(root, path):
    """Content of a small file, "" where it cannot be read."""
    try:
        with open(paths.under(root, path), encoding="utf-8", errors="replace") as handle:
            return handle.read(1 << 16)
    except OSError:
        return ""


def _first_word(root, path, kind):
    words = _text(root, path).split()
    try:
        return kind(words[0])
    except (IndexError, ValueError):
        return F.Unknown(F.ABSENT, "no %s" % path)
