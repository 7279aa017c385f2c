"""Python wheels, fetched or built on the host: a container may not reach (or trust) what the host can."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import host
from .errors import Unavailable
from .paths import REPO, state_root
from .releases import TORCH_VERSION, Release

REQUIREMENTS = ("nvidia-ml-py>=12.535", "PyYAML>=6.0", "Jinja2>=3.1", "numpy", "safetensors")
# PyTorch publishes its CPU builds in an index of its own (pytorch.org, "Start locally").
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
PRODUCT_SOURCES = (
    "slurm_gpuhealth",
    "hooks",
    "etc",
    "setup.cfg",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "setup.py",
)


def _platform_args(release: Release) -> list[str]:
    """pip's options for another Python than the one that runs: newest tag first, as the suite's glibc allows."""
    digits = release.python.replace(".", "")
    machine = os.uname().machine
    args = [
        "--only-binary=:all:",
        "--implementation",
        "cp",
        "--python-version",
        release.python,
        "--abi",
        f"cp{digits}",
        "--abi",
        "abi3",
        "--abi",
        "none",
    ]
    for minor in range(release.glibc, 16, -1):
        args += ["--platform", f"manylinux_2_{minor}_{machine}"]
    return [*args, "--platform", f"manylinux2014_{machine}", "--platform", f"linux_{machine}"]


def fetch(release: Release, requirements: tuple[str, ...] = REQUIREMENTS, options: tuple[str, ...] = ()) -> Path:
    """Folder of wheels of these requirements for the release's Python; from the cache where it is whole.

    options: further ones for pip (an index).
    """
    key = hashlib.sha256(json.dumps([release.python, release.glibc, sorted(requirements)]).encode()).hexdigest()
    folder = state_root() / "wheels" / f"py{release.python}-{key[:12]}"
    if (folder / ".complete").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    host.run_logged(
        f"fetching wheels for Python {release.python}",
        [*argv, *_platform_args(release), *options, *requirements],
        f"pip-{release.suite}.log",
        timeout=1200,
    )
    (folder / ".complete").touch()
    return folder


def fetch_torch(release: Release) -> Path:
    """Folder of a CPU build of torch and what it needs; raises Unavailable where only a CUDA build can be had."""
    requirement = f"torch=={TORCH_VERSION}"
    version = _offered_version(release, requirement, ())
    if version is not None and version.endswith("+cpu"):
        return fetch(release, (f"torch=={version}",))
    version = _offered_version(release, requirement, ("--index-url", TORCH_CPU_INDEX, "--retries=0", "--timeout=15"))
    if version is not None:
        # What torch needs comes from the configured index, torch itself (its local version) only from there.
        return fetch(release, (f"torch=={version}",), ("--extra-index-url", TORCH_CPU_INDEX))
    raise Unavailable(
        f"no CPU build of torch {TORCH_VERSION} for Python {release.python} can be had here: the configured index "
        "offers none and PyTorch's CPU index does not answer"
    )


def _offered_version(release: Release, requirement: str, options: tuple[str, ...]) -> str | None:
    """Version pip would take, from its dry run (metadata only: a CUDA build is gigabytes), or None."""
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps"]
    argv += ["--disable-pip-version-check", "--report", "-", "--target", "/nonexistent"]
    argv += [*_platform_args(release), *options, requirement]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
        return str(json.loads(done.stdout)["install"][0]["metadata"]["version"])
    except (subprocess.TimeoutExpired, ValueError, LookupError):
        return None


def product_digest(repo: Path = REPO) -> str:
    """Hash of every source file the product's wheel is made of."""
    digest = hashlib.sha256()
    for name in PRODUCT_SOURCES:
        top = repo / name
        files = [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file())
        for path in files:
            if path.suffix == ".pyc" or "__pycache__" in path.parts:
                continue
            digest.update(str(path.relative_to(repo)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def product_wheel(repo: Path = REPO) -> Path:
    """The repository's wheel, built from a copy (a build inside the tree would ship files deleted since)."""
    folder = state_root() / "wheels" / f"product-{product_digest(repo)[:16]}"
    built = sorted(folder.glob("*.whl"))
    if built:
        return built[0]
    with tempfile.TemporaryDirectory(prefix="gpuhealth-wheel-") as scratch:
        source, out = Path(scratch) / "src", Path(scratch) / "out"
        source.mkdir()
        for name in PRODUCT_SOURCES:
            top = repo / name
            if top.is_dir():
                shutil.copytree(top, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            elif top.is_file():
                shutil.copy2(top, source / name)
        argv = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--wheel-dir",
            str(out),
            str(source),
        ]
        if _has_build_backend():
            argv.insert(-1, "--no-build-isolation")
        host.run_logged("building the product's wheel", argv, "pip-wheel.log", timeout=300)
        folder.mkdir(parents=True, exist_ok=True)
        wheel = next(out.glob("*.whl"))
        # Renamed into place: a second `up` at the same moment never sees half a file.
        part = folder / f".{os.getpid()}.part"
        shutil.copy2(wheel, part)
        part.rename(folder / wheel.name)
    return folder / wheel.name


def _has_build_backend() -> bool:
    """Whether this Python can build the wheel without fetching setuptools first."""
    try:
        importlib.metadata.version("wheel")
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= 64
    except importlib.metadata.PackageNotFoundError:
        return False
