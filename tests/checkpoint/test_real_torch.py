"""With a real torch: what it writes now is accepted, and what it loads is what was judged whole."""
import os
import subprocess
import sys

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint import find
from slurm_gpuhealth.checkpoint.verify import verify

torch = pytest.importorskip("torch", reason="needs a CPU build of torch (pip install torch==2.13.0)")
pytestmark = pytest.mark.torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAIN = os.path.join(ROOT, "containers", "slurm-testbed", "jobs", "train.py")


def state():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "global_step": 9,
            "rng_state": torch.get_rng_state(), "scaler": torch.amp.GradScaler("cpu").state_dict(),
            "scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3).state_dict()}


def test_what_torch_writes_is_verified(tmp_path):
    """A whole state saved by this torch: verified, nothing missing."""
    torch.save(state(), str(tmp_path / "a.pt"))
    found = verify(str(tmp_path / "a.pt"))
    assert (found.verdict, found.step, found.missing) == ("verified", 9, ())


def test_saved_to_a_buffer(tmp_path):
    """Another inner name (archive/), the same layout."""
    import io
    buffer = io.BytesIO()
    torch.save(state(), buffer)
    assert verify(build.write(tmp_path / "a.pt", buffer.getvalue())).verdict == "verified"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint8", "int16", "int64", "bool",
                                   "complex64", "float8_e4m3fn", "float8_e5m2"])
def test_every_type_of_element(tmp_path, dtype):
    """Sizes of storages are known for all types; views and shared storages are fine."""
    kind = getattr(torch, dtype)
    base = torch.zeros(24).to(kind)
    saved = dict(state(), extra={"whole": base, "view": base[3:9], "shaped": base.reshape(4, 6).t()})
    torch.save(saved, str(tmp_path / "a.pt"))
    assert verify(str(tmp_path / "a.pt")).verdict == "verified"


def test_torch_loads_what_the_checksum_rejects(tmp_path):
    """A hole in a tensor: torch loads it without a word, which is why loading proves nothing."""
    path = str(tmp_path / "a.pt")
    torch.save(dict(state(), big=torch.ones(4096)), path)
    with open(path, "r+b") as handle:
        data = handle.read()
        at = data.index(torch.ones(4096).numpy().tobytes())
        handle.seek(at)
        handle.write(bytes(4096))
    assert torch.load(path, weights_only=True)["big"][0] == 0
    assert verify(path, "structure").verdict == "structure-only"
    assert verify(path).verdict == "rejected"


def test_a_script_module_is_not_a_checkpoint(tmp_path):
    """An archive for inference has code in it."""
    with pytest.warns():
        torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "a.pt"))
    assert verify(str(tmp_path / "a.pt")).verdict == "unknown"


@pytest.mark.allow_subprocess
def test_the_training_job_in_torch_format(tmp_path):
    """--format torch: verified files, and a resumed run that is bit-equal."""
    def train(*arguments):
        subprocess.run([sys.executable, TRAIN, "--format", "torch"] + [str(word) for word in arguments], check=True,
                       stdout=subprocess.DEVNULL, env=dict(os.environ, PYTHONPATH=ROOT))
    train("--steps", 40, "--out", tmp_path / "whole")
    train("--steps", 25, "--save-to", tmp_path / "run")
    chosen = find.latest(str(tmp_path / "run")).chosen
    assert (chosen.step, chosen.level, chosen.format) == (20, "verified", "torch-zip")
    train("--steps", 40, "--save-to", tmp_path / "run", "--resume-from", chosen.path, "--out", tmp_path / "resumed")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "resumed").read_bytes()
