"""The Slurm releases of the test cluster: each is what one Debian suite packages (looked up 2026-11-30)."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from .errors import UsageError


class Release(NamedTuple):
    slurm: str  # as the user names it
    suite: str  # Debian suite
    debian: str  # for people
    python: str  # the suite's Python, for which wheels are fetched
    glibc: int  # minor version of the suite's glibc: newest manylinux tag its wheels may have


RELEASES = {
    "22.05": Release("22.05", "bookworm", "Debian 12", "3.11", 36),  # slurm-wlm 22.05.8
    "24.11": Release("24.11", "trixie", "Debian 13", "3.13", 41),  # slurm-wlm 24.11.5
    "26.05": Release("26.05", "forky", "Debian testing", "3.14", 42),  # slurm-wlm 26.05.5
}
DEFAULT = "24.11"
TORCH_RELEASE = "22.05"  # the only one for whose Python a CPU build of torch is commonly at hand
TORCH_VERSION = "2.13.0"


def release(name: str) -> Release:
    try:
        return RELEASES[name]
    except KeyError:
        near = difflib.get_close_matches(name, RELEASES, 1, 0.3)
        hint = f", did you mean {near[0]}?" if near else ""
        raise UsageError(f"no Slurm release {name!r} here{hint} (there are: {', '.join(RELEASES)})") from None
