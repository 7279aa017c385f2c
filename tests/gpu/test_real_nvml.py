"""On a machine with a real NVIDIA GPU: `./test --gpu`. Everything else is tested without one."""
import json
import subprocess
import sys

import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import supervise
from slurm_gpuhealth.probes import nvml

pytestmark = [pytest.mark.gpu, pytest.mark.allow_subprocess]


@pytest.fixture(scope="module")
def fields():
    result = supervise.call(nvml.read, {"root": "", "known": [], "minors": [], "expected": None}, 60)
    assert result.status.outcome == "ok", result.status
    return nvml.assemble(result.records, {"known": [], "minors": []}, result.status)


def test_every_gpu_is_read(fields):
    """As many GPUs as NVML counts, each with its identity, and no error on any."""
    assert fields["gpu_count"] == len(fields["gpus"]) > 0
    for gpu in fields["gpus"]:
        assert gpu.error is None
        assert all(F.is_known(getattr(gpu, name)) for name in ("index", "uuid", "bdf", "minor", "name")), gpu


def test_what_is_not_known_is_not_supported(fields):
    """A field that a healthy GPU does not tell is one that it does not have, never one that failed."""
    for gpu in fields["gpus"]:
        odd = {name: value for name, value in gpu._asdict().items()
               if not F.is_known(value) and value.reason not in (F.UNSUPPORTED, F.NOT_READ)}
        assert odd == {}


def test_check_finds_nothing_fatal():
    """`gpuhealth check` on a machine whose GPUs work."""
    done = subprocess.run([sys.executable, "-m", "slurm_gpuhealth.cli.main", "check", "--json"], capture_output=True,
                          text=True, timeout=120)
    document = json.loads(done.stdout)
    fatal = [finding for finding in document["findings"] if finding["severity"] == "fatal"]
    assert done.returncode != 2 and fatal == []
