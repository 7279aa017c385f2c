"""Commands on the host: apt-get, debootstrap, pip. Argument lists only, output to a log file."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .errors import TestbedError, Unavailable
from .paths import log_file
from .say import step

POLICY = Path("/usr/sbin/policy-rc.d")


def run_logged(
    what: str,
    argv: list[str],
    log_name: str,
    *,
    timeout: float,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> None:
    """Run a command with its output in a log file. A failure names the log and shows its last lines."""
    log = log_file(log_name)
    with step(what), log.open("wb") as out:
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                env=env,
                cwd=cwd,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TestbedError(f"{what}: not done after {timeout:.0f} s (log: {log})") from None
        except FileNotFoundError:
            raise TestbedError(f"{what}: no program {argv[0]}") from None
    if done.returncode != 0:
        tail = log.read_text(errors="replace").strip().splitlines()[-6:]
        raise TestbedError(f"{what}: exit code {done.returncode} (log: {log})\n  " + "\n  ".join(tail))


def apt_install(packages: list[str]) -> None:
    """Install Debian packages without starting the services they bring.

    The distribution would start its own dockerd at once; the test cluster wants one with a data root of its
    own, so for the time of the installation a policy-rc.d forbids it (left alone where the host has one).
    """
    if os.geteuid() != 0:
        raise Unavailable(
            f"{' '.join(packages)} must be installed: run this as root, or `apt-get install "
            f"{' '.join(packages)}` first"
        )
    if shutil.which("apt-get") is None:
        raise Unavailable(f"{' '.join(packages)} missing and this host has no apt-get: install them by hand")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    own_policy = not POLICY.exists()
    if own_policy:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        run_logged(
            "refreshing the package lists", ["apt-get", "update"], "apt-update.log", timeout=300, env=env
        )
        run_logged(
            "installing " + " ".join(packages),
            ["apt-get", "install", "-y", "--no-install-recommends", *packages],
            "apt-install.log",
            timeout=900,
            env=env,
        )
    finally:
        if own_policy:
            POLICY.unlink(missing_ok=True)
