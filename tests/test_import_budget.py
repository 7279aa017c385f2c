"""The hot path imports the standard library's small modules and nothing else (docs/contributing.md, Budgets)."""
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.allow_subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# What a hook may load of the standard library. Each costs milliseconds of every job's start (docs/contributing.md).
ALLOWED = {
    "collections", "json", "re", "errno", "stat", "fcntl", "select", "signal", "time", "os", "sys", "keyword",
    "operator", "reprlib", "functools", "types", "enum", "copyreg", "sre_parse", "sre_compile", "sre_constants",
    "abc", "io", "codecs", "encodings", "posix", "posixpath", "genericpath", "itertools", "zipimport", "marshal",
    "warnings", "builtins", "site", "_collections_abc", "__future__", "linecache", "ast", "copy", "math",
    "heapq", "locale", "weakref", "contextlib", "zlib",
}
FORBIDDEN = {"yaml", "jinja2", "click", "rich", "pyslurm", "pynvml", "docker", "numpy", "subprocess", "logging",
             "pathlib", "argparse", "dataclasses", "typing", "asyncio", "threading", "ctypes", "inspect",
             "importlib.metadata", "tempfile", "urllib", "socket", "datetime"}

SCRIPT = """
import sys
sys.path.insert(0, %r)
import slurm_gpuhealth.hook, slurm_gpuhealth.run, slurm_gpuhealth.gather
import slurm_gpuhealth.actions.jobs
from slurm_gpuhealth import checks
from slurm_gpuhealth.evidence import replay
for name in checks.CHECKS:
    __import__("slurm_gpuhealth.checks." + checks.CHECKS[name].module, fromlist=("check",))
print("\\n".join(sorted(sys.modules)))
"""


@pytest.fixture(scope="module")
def loaded():
    done = subprocess.run([sys.executable, "-IS", "-c", SCRIPT % ROOT], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_nothing_heavy_is_loaded(loaded):
    """No YAML, no NVML, no subprocess, no typing on the way of a healthy job."""
    heavy = {name for name in loaded if name in FORBIDDEN or name.split(".")[0] in FORBIDDEN}
    assert heavy == set()


def test_only_known_modules_are_loaded(loaded):
    """A new standard-library import on the hot path is a decision, not an accident."""
    strange = {name.split(".")[0] for name in loaded if not name.startswith(("_", "slurm_gpuhealth"))} - ALLOWED
    assert strange == set()


def test_the_guard_alone_is_light():
    """hook.py imports nothing of ours, so that it still works when the rest of the package does not."""
    done = subprocess.run(
        [sys.executable, "-IS", "-c", "import sys; sys.path.insert(0, %r); import slurm_gpuhealth.hook;"
         "print(' '.join(name for name in sys.modules if name.startswith('slurm_gpuhealth')))" % ROOT],
        capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["slurm_gpuhealth", "slurm_gpuhealth.hook"]
