"""Where the test cluster keeps its things on the host."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTBED_DIR = Path(__file__).resolve().parent.parent
REPO = TESTBED_DIR.parent.parent


def state_root() -> Path:
    """Folder of everything the test cluster keeps on this host: engine, base trees, wheels, clusters."""
    override = os.environ.get("GPUHEALTH_TESTBED_ROOT")
    if override:
        return Path(override)
    if os.geteuid() == 0:
        return Path("/var/lib/gpuhealth-testbed")
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "gpuhealth-testbed"


def cluster_dir(name: str) -> Path:
    return state_root() / "clusters" / name


def log_file(name: str) -> Path:
    """A log of a long command, kept for the error message that points to it."""
    folder = state_root() / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One command at a time: two clusters that come up at once must not build the same image twice."""
    state_root().mkdir(parents=True, exist_ok=True)
    with (state_root() / f".{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
