"""The Debian base image: pulled where a registry answers, else made with debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from docker.errors import APIError, ImageNotFound, NotFound  # type: ignore[import-untyped]

from . import apt, host
from .errors import TestbedError, Unavailable
from .paths import state_root
from .releases import Release
from .say import say, step

PULL_FIRST_ANSWER_S = 15  # a registry that can be reached has named the image by then
PULL_TOTAL_S = 600
BASE_LABEL = "gpuhealth-testbed.base"


def ensure_base(client: Any, release: Release, mirror: str | None = None) -> str:
    """Name of the base image of a release, made available first. Raises Unavailable where it cannot be had."""
    tag = f"debian:{release.suite}-slim"
    try:
        client.images.get(tag)
        return tag
    except ImageNotFound:
        pass
    why = _pull(client, tag)
    if why is None:
        return tag
    say(f"{tag} cannot be pulled ({why}): making it with debootstrap")
    _debootstrap(client, release, tag, mirror)
    return tag


def _pull(client: Any, tag: str) -> str | None:
    """Pull an image; None on success, else why not. Gives up early where no registry answers."""
    repository, _, suite = tag.partition(":")
    answered, ended = threading.Event(), threading.Event()
    error: list[str] = []

    def pull() -> None:
        try:
            for message in client.api.pull(repository, tag=suite, stream=True, decode=True):
                if "error" in message:
                    error.append(str(message["error"])[:160])
                    return
                answered.set()
        except (APIError, NotFound, OSError) as exc:
            error.append(str(getattr(exc, "explanation", None) or exc)[:80])
        finally:
            ended.set()
            answered.set()

    with step(f"pulling {tag}"):
        threading.Thread(target=pull, daemon=True).start()
        if not answered.wait(PULL_FIRST_ANSWER_S):
            return f"no answer within {PULL_FIRST_ANSWER_S} s"
        if not ended.wait(PULL_TOTAL_S):
            return f"not complete after {PULL_TOTAL_S} s"
    if error:
        return error[0].splitlines()[0]
    try:
        client.images.get(tag)
    except ImageNotFound:
        return "the pull ended without an image"
    return None


def _debootstrap(client: Any, release: Release, tag: str, mirror: str | None) -> None:
    if os.geteuid() != 0:
        raise Unavailable(f"{tag} can be neither pulled nor (as this is not root) made with debootstrap")
    if shutil.which("debootstrap") is None:
        host.apt_install(["debootstrap"])
    mirrors = [mirror] if mirror else apt.debian_mirrors()
    if not mirrors:
        raise Unavailable("no Debian mirror in this machine's apt sources: name one with --mirror URL")
    root = state_root()
    root.mkdir(parents=True, exist_ok=True)
    tree = Path(tempfile.mkdtemp(prefix=f"base-{release.suite}-", dir=root))
    try:
        failures = []
        for candidate in mirrors:
            try:
                _make_tree(release, tree, candidate)
                break
            except TestbedError as exc:
                failures.append(str(exc))
                _remove_tree(tree)
                tree.mkdir()
        else:
            raise Unavailable(f"no mirror of this machine gives {release.suite}: {failures[-1]}")
        _import(client, tree, tag)
    finally:
        _remove_tree(tree)


def _make_tree(release: Release, tree: Path, mirror: str) -> None:
    # An older debootstrap has no script of the newest suites; they are all links to the same one.
    script = "/usr/share/debootstrap/scripts/sid"
    argv = ["debootstrap", "--variant=minbase", "--include=ca-certificates", release.suite, str(tree), mirror]
    if os.path.exists(script):
        argv.append(script)
    host.run_logged(f"debootstrap {release.suite}", argv, f"debootstrap-{release.suite}.log", timeout=900)
    for archive in (tree / "var/cache/apt/archives").glob("*.deb"):
        archive.unlink()
    for index in (tree / "var/lib/apt/lists").glob("*_*"):
        index.unlink()


def _import(client: Any, tree: Path, tag: str) -> None:
    repository, _, suite = tag.partition(":")
    with (
        step(f"importing {tag}"),
        subprocess.Popen(
            ["tar", "-C", str(tree), "--numeric-owner", "-c", "."], stdout=subprocess.PIPE
        ) as tar,
    ):
        client.api.import_image_from_stream(
            tar.stdout, repository=repository, tag=suite, changes=[f"LABEL {BASE_LABEL}=debootstrap"]
        )
    if tar.returncode != 0:
        raise TestbedError(f"tar of the base tree ended with {tar.returncode}")


def _remove_tree(tree: Path) -> None:
    """Remove a debootstrap tree. One that was stopped half-way may have /proc and /sys mounted in it."""
    with open("/proc/self/mountinfo") as file:
        inside = [line.split()[4] for line in file if line.split()[4].startswith(f"{tree}/")]
    for target in sorted(inside, reverse=True):
        subprocess.run(["umount", target], stdin=subprocess.DEVNULL, check=True)
    shutil.rmtree(tree, ignore_errors=True)
