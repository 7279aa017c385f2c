"""The demo's training loop: real checkpoints, and a resumed run that ends with the very same bytes."""
import os
import signal
import subprocess
import sys
import time

import pytest

from slurm_gpuhealth.checkpoint import find
from slurm_gpuhealth.checkpoint.verify import verify

pytest.importorskip("numpy")
pytest.importorskip("safetensors")
pytestmark = pytest.mark.allow_subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAIN = os.path.join(ROOT, "containers", "slurm-testbed", "jobs", "train.py")


def start(*arguments):
    return subprocess.Popen([sys.executable, TRAIN] + [str(word) for word in arguments], stdout=subprocess.PIPE,
                            text=True, env=dict(os.environ, PYTHONPATH=ROOT))


def train(*arguments):
    child = start(*arguments)
    out = child.communicate(timeout=60)[0]
    assert child.returncode == 0
    return out


def content(path):
    with open(str(path), "rb") as handle:
        return handle.read()


def test_a_resumed_run_is_bit_equal(tmp_path):
    """From the second newest, as the newest was cut: the same weights as those of a run that nothing happened to."""
    whole = train("--steps", 60, "--out", tmp_path / "whole")
    train("--save-to", tmp_path / "run", "--steps", 35)
    os.truncate(str(tmp_path / "run" / "step-000030" / "optimizer.safetensors"), 100)
    chosen = find.latest(str(tmp_path / "run")).chosen
    assert (chosen.step, chosen.level) == (20, "verified")
    resumed = train("--save-to", tmp_path / "run", "--steps", 60, "--resume-from", chosen.path, "--out", tmp_path / "r")
    assert content(tmp_path / "r") == content(tmp_path / "whole")
    losses = [line for line in whole.splitlines() if line.startswith("step")]
    again = [line for line in resumed.splitlines() if line.startswith("step")]
    assert again == losses[20:]
    # The cut one was saved anew on the way.
    assert verify(str(tmp_path / "run" / "step-000030")).verdict == "verified"
    assert sorted(os.listdir(str(tmp_path / "run"))) == ["step-%06d" % step for step in range(10, 61, 10)]


def test_it_learns(tmp_path):
    """The loss of the last steps is clearly below that of the first."""
    losses = [float(line.split()[3]) for line in train("--steps", 150).splitlines() if line.startswith("step")]
    assert sum(losses[-20:]) < 0.7 * sum(losses[:20])


def test_sigterm(tmp_path):
    """Ended by SIGTERM as any program; with --ignore-term it goes on."""
    for ignore in (False, True):
        child = start("--steps", 100000, "--step-seconds", 0.02, *(["--ignore-term"] if ignore else []))
        while not child.stdout.readline().startswith("step 2 "):
            pass
        child.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert child.poll() == (None if ignore else -signal.SIGTERM)
        child.kill()
        child.communicate()
