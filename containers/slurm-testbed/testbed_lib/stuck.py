"""The last resort against processes in D state: thaw and abort from the host, when the container's own undo failed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

from docker.errors import APIError  # type: ignore[import-untyped]

from .say import say

FROZEN = "/var/lib/gpusim/frozen"


def _processes(client: Any, container: str) -> list[int]:
    """Host ids of a container's processes; none where the engine is not on this host."""
    try:
        top = client.api.top(container, ps_args="-eo pid")
    except APIError:
        return []
    return [int(row[0]) for row in top.get("Processes") or [] if os.path.exists(f"/proc/{row[0]}")]


def in_d_state(pid: int) -> bool:
    """Whether a process of this host waits in uninterruptible sleep."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "D"
    except OSError:
        return False


def _thaw(pids: list[int]) -> bool:
    """Unfreeze the node's file system through the mount namespace of a process that is stuck there.

    Harmless where nothing is: fsfreeze -u of a path that is no frozen mount only fails.
    """
    for pid in pids:
        if not in_d_state(pid):
            continue
        done = subprocess.run(
            ["nsenter", "-t", str(pid), "-m", "fsfreeze", "-u", FROZEN],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        if done.returncode == 0:
            return True
    return False


def thaw_from_host(client: Any, container: str) -> None:
    """Thaw a container's frozen file system from outside, where its own undo could not."""
    if os.geteuid() == 0 and shutil.which("nsenter") and _thaw(_processes(client, container)):
        say(f"{container}: thawed from outside")


def thaw_namespace(pid: int) -> None:
    """The same for all that shares a process's pid namespace: what an engine that was killed has left."""
    if not shutil.which("nsenter"):
        return
    try:
        space = os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return
    if space != os.readlink("/proc/self/ns/pid"):
        _thaw([int(name) for name in os.listdir("/proc") if name.isdigit() and _space(name) == space])


def _space(pid: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""
