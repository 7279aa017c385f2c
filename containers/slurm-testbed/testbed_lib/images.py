"""The image of a release, with or without torch, and the product's layer on top: each cached by its inputs."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from docker.errors import APIError, BuildError, ImageNotFound  # type: ignore[import-untyped]

from . import bases, wheels
from .errors import TestbedError
from .paths import TESTBED_DIR, locked, log_file
from .releases import TORCH_VERSION, Release
from .say import step

REPOSITORY = "gpuhealth-testbed"
LABEL = "gpuhealth-testbed.image"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
NVML_SOURCES = re.compile(r".*\.[ch]|Makefile|nvidia-smi")


def _context_files() -> dict[str, bytes]:
    """What the image is made of besides wheels and base: name in the build context -> content."""
    files = {}
    for path in sorted((TESTBED_DIR / "image").iterdir()):
        files[f"image/{path.name}"] = path.read_bytes()
    for path in sorted((TESTBED_DIR / "nvml").iterdir()):
        if NVML_SOURCES.fullmatch(path.name):
            files[f"nvml/{path.name}"] = path.read_bytes()
    return files


def _digest(parts: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(name.encode() + b"\0" + hashlib.sha256(parts[name]).digest())
    return digest.hexdigest()[:12]


def _exists(client: Any, tag: str) -> bool:
    try:
        client.images.get(tag)
        return True
    except ImageNotFound:
        return False


def ensure_image(
    client: Any,
    release: Release,
    *,
    torch: bool = False,
    product: Path | None = None,
    mirror: str | None = None,
) -> str:
    """Name of a ready image of the release; what is missing is built first.

    torch: with a CPU build of torch. product: a wheel to install in /opt/gpuhealth on top.
    """
    files = _context_files()
    requirements = [*wheels.REQUIREMENTS, f"torch=={TORCH_VERSION}"] if torch else [*wheels.REQUIREMENTS]
    inputs = {**files, "requirements": " ".join(requirements).encode(), "suite": release.suite.encode()}
    family = f"{REPOSITORY}:{release.slurm}{'torch' if torch else ''}-"
    tag = family + _digest(inputs)
    with locked("images"):
        if not _exists(client, tag):
            base = bases.ensure_base(client, release, mirror)
            folders = [wheels.fetch(release), *([wheels.fetch_torch(release)] if torch else [])]
            context = dict(files)
            context["Dockerfile"] = context.pop("image/Dockerfile")
            context["wheels/requirements.txt"] = "\n".join(requirements).encode()
            what = f"building the image of Slurm {release.slurm} ({release.debian}{', torch' if torch else ''})"
            _build(client, tag, context, {"BASE": base}, what, f"build-{release.slurm}.log", folders)
            _forget_older(client, family, tag)
        if product is not None:
            tag = _ensure_product(client, tag, product)
    return tag


def _ensure_product(client: Any, base: str, wheel: Path) -> str:
    content = wheel.read_bytes()
    tag = f"{base}-{hashlib.sha256(content).hexdigest()[:12]}"
    if not _exists(client, tag):
        recipe = (
            f"FROM {base}\nCOPY {wheel.name} /opt/\n"
            f"RUN /opt/gpuhealth/bin/pip install -q --no-deps --no-index --disable-pip-version-check /opt/{wheel.name}"
            f" && rm /opt/{wheel.name}\n"
        )
        _build(
            client,
            tag,
            {"Dockerfile": recipe.encode(), wheel.name: content},
            {},
            "installing the product in the image",
            "build-product.log",
            [],
        )
        _forget_older(client, f"{base}-", tag)
    return tag


def _forget_older(client: Any, prefix: str, keep: str) -> None:
    """Each change of the inputs leaves an image behind; those of before that nothing uses go."""
    for image in client.images.list(name=REPOSITORY):
        for tag in image.tags:
            if tag.startswith(prefix) and not tag.startswith(keep):
                with contextlib.suppress(APIError):  # a cluster uses it
                    client.images.remove(tag)


def _build(
    client: Any,
    tag: str,
    context: dict[str, bytes],
    args: dict[str, str],
    what: str,
    log_name: str,
    wheel_folders: list[Path],
) -> None:
    """Build an image from an in-memory context; the build's own output goes to a log file."""
    buildargs = {**args, **{name: os.environ[name] for name in PROXY_VARIABLES if name in os.environ}}
    log = log_file(log_name)
    with step(what), _context_tar(context, wheel_folders) as archive, log.open("w") as out:
        try:
            stream = client.api.build(
                fileobj=archive,
                custom_context=True,
                tag=tag,
                rm=True,
                forcerm=True,
                decode=True,
                buildargs=buildargs,
                network_mode="host",
                labels={LABEL: "1"},
            )
            for message in stream:
                out.write(message.get("stream", ""))
                if "error" in message:
                    raise TestbedError(f"{what}: {str(message['error']).strip()[:300]} (log: {log})")
        except (BuildError, APIError) as exc:
            raise TestbedError(f"{what}: {str(exc)[:300]} (log: {log})") from exc
    if not _exists(client, tag):
        raise TestbedError(f"{what}: the build ended without an image (log: {log})")


def _context_tar(context: dict[str, bytes], wheel_folders: list[Path]) -> io.BufferedRandom:
    # No owner, no time: the engine's layer cache compares contents, and equal contexts should be equal bytes.
    archive = tempfile.TemporaryFile(prefix="gpuhealth-context-")
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in sorted(context):
            info = tarfile.TarInfo(name)
            info.size = len(context[name])
            info.mode = 0o755 if context[name].startswith(b"#!") else 0o644
            tar.addfile(info, io.BytesIO(context[name]))
        found = {path.name: path for folder in wheel_folders for path in folder.glob("*.whl")}
        for path in (found[name] for name in sorted(found)):
            info = tarfile.TarInfo(f"wheels/{path.name}")
            info.size = path.stat().st_size
            info.mode = 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)
    archive.seek(0)
    return archive
