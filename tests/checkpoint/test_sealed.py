"""Sealed folders: what was sealed is what is there, or it is not verified."""
import json
import os
import random
import subprocess

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint import manifest
from slurm_gpuhealth.checkpoint.seal import seal
from slurm_gpuhealth.checkpoint.verify import verify
from slurm_gpuhealth.errors import DataError, NotFoundError

FILES = ("model.safetensors", "optimizer.safetensors", "parts/progress.json", manifest.MANIFEST, manifest.SUMS)


def test_a_sealed_folder_is_verified_in_full_only(tmp_path):
    """Sizes alone are structure-only; every sha256 makes it verified."""
    folder = build.sealed(tmp_path / "c")
    assert verify(folder, "structure").verdict == "structure-only"
    full = verify(folder)
    assert (full.verdict, full.format, full.step, full.world_size, full.step_key) == (
        "verified", "sealed", 10, 2, "manifest")
    assert "optimizer" not in full.missing
    assert "model" not in full.missing


@pytest.mark.allow_subprocess
def test_sha256sum_can_check_it(tmp_path):
    """SHA256SUMS is for `sha256sum -c`, and covers the manifest too."""
    done = subprocess.run(["sha256sum", "-c", "--strict", manifest.SUMS], cwd=build.sealed(tmp_path / "c"),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == 4


@pytest.mark.parametrize("name", FILES)
def test_a_file_lost_emptied_or_cut_is_rejected(tmp_path, name):
    """Each file in turn: removed, emptied, cut, longer, zero-filled, another step's."""
    other = build.sealed(tmp_path / "other", step=20)
    build.write(other + "/model.safetensors", build.safetensors_bytes({"w": 6}).replace(b"\1", b"\7"))
    seal(other, step=20, world_size=2)
    for number, change in enumerate((
            os.unlink, lambda path: os.truncate(path, 0), lambda path: os.truncate(path, os.path.getsize(path) // 2),
            lambda path: os.truncate(path, os.path.getsize(path) + 1),
            lambda path: build.write(path, bytes(os.path.getsize(path))))):
        folder = build.sealed(tmp_path / str(number))
        change(os.path.join(folder, name))
        for level in ("structure", "full"):
            found = verify(folder, level)
            zeroed_data = number == 4 and level == "structure" and name == "parts/progress.json"
            assert found.verdict in (("structure-only",) if zeroed_data else ("rejected", "unknown")), number
    folder = build.sealed(tmp_path / "swapped")
    with open(os.path.join(other, name), "rb") as handle:
        data = handle.read()
    with open(os.path.join(folder, name), "rb") as handle:
        same = handle.read() == data
    build.write(os.path.join(folder, name), data)
    assert verify(folder).verdict == ("verified" if same else "rejected")


def test_no_flipped_bit_is_verified(tmp_path):
    """One flipped bit in any byte of any file, the manifest and the sums too."""
    folder = build.sealed(tmp_path / "c")
    bits = random.Random(3)
    for name in FILES:
        path = os.path.join(folder, name)
        with open(path, "rb") as handle:
            data = handle.read()
        for at in range(0, len(data), 1 if len(data) < 300 else 7):
            changed = bytearray(data)
            changed[at] ^= 1 << bits.randrange(8)
            build.write(path, bytes(changed))
            assert verify(folder).verdict not in ("verified", "weights-only"), (name, at)
        build.write(path, data)
    assert verify(folder).verdict == "verified"


def test_a_file_that_was_not_sealed_is_said(tmp_path):
    """A file more than the manifest knows: still usable, but no longer what was sealed."""
    folder = build.sealed(tmp_path / "c")
    build.write(folder + "/parts/rank7.bin", b"x")
    found = verify(folder)
    assert (found.verdict, found.reason) == ("structure-only", "1 file not in its manifest: parts/rank7.bin")


def test_links_and_special_files_are_rejected(tmp_path):
    """A link or a FIFO in the folder is refused, and nothing blocks."""
    for make in (lambda path: os.symlink("/etc/passwd", path), os.mkfifo):
        folder = build.sealed(tmp_path / make.__name__.strip("<>"))
        make(folder + "/extra")
        assert verify(folder).verdict == "rejected"
        os.unlink(folder + "/model.safetensors")
        os.rename(folder + "/extra", folder + "/model.safetensors")
        assert verify(folder).verdict == "rejected"


def test_unfamiliar_content_is_not_weights_only(tmp_path):
    """A sealed folder of files that nobody knows is verified: its writer knows them."""
    for name in ("state.npz", "everything.bin", "rank0.pkl"):
        folder = str(tmp_path / name)
        build.write(folder + "/" + name, os.urandom(100))
        build.write(folder + "/config.json", b"{}")
        seal(folder, step=1)
        assert verify(folder).verdict == "verified"


def test_a_sealed_model_is_weights_only(tmp_path):
    """Weights and texts only, or a manifest that says so."""
    folder = str(tmp_path / "plain")
    build.write(folder + "/model.safetensors", build.safetensors_bytes({"model.w": 6}))
    build.write(folder + "/config.json", b"{}")
    seal(folder)
    assert verify(folder).verdict == "weights-only"
    assert verify(build.sealed(tmp_path / "said", holds=("model",))).verdict == "weights-only"


def test_the_step_is_found_in_the_files(tmp_path):
    """Without a step given, seal takes the one recorded inside."""
    folder = str(tmp_path / "c")
    build.write(folder + "/whole.pt", build.golden("whole.pt"))
    assert seal(folder).step == 120
    assert verify(folder).verdict == "verified"


def test_sealing_again_replaces_the_seal(tmp_path):
    """A second seal covers what is there now; no temporary file stays."""
    folder = build.sealed(tmp_path / "c")
    build.write(folder + "/more.bin", b"x")
    seal(folder, step=11)
    found = verify(folder)
    assert (found.verdict, found.step) == ("verified", 11)
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


def test_a_whole_seal_around_a_cut_file_is_rejected(tmp_path):
    """Sealed after the damage: the sums fit, the file is still not whole."""
    folder = str(tmp_path / "c")
    build.write(folder + "/whole.pt", build.golden("whole.pt")[:2000])
    seal(folder, step=1)
    assert "whole.pt was sealed, but is not whole" in verify(folder).reason


def test_what_cannot_be_sealed_is_said(tmp_path):
    """No folder, an empty one, a link or a strange name in it, an unknown part: one clear error, and no seal."""
    os.mkdir(str(tmp_path / "empty"))
    with pytest.raises(NotFoundError):
        seal(str(tmp_path / "none"))
    with pytest.raises(DataError, match="no files"):
        seal(str(tmp_path / "empty"))
    build.write(tmp_path / "odd" / "a\nb", b"x")
    with pytest.raises(DataError, match="file name"):
        seal(str(tmp_path / "odd"))
    build.write(tmp_path / "link" / "a", b"x")
    os.symlink("a", str(tmp_path / "link" / "b"))
    with pytest.raises(DataError, match="b is a link"):
        seal(str(tmp_path / "link"))
    with pytest.raises(DataError, match="holds: 'soul'"):
        seal(str(tmp_path / "link"), holds=("soul",))
    assert not os.path.exists(str(tmp_path / "odd" / manifest.MANIFEST))


def test_hostile_manifests_are_rejected(tmp_path):
    """Names that lead out, wrong kinds, another version: never verified, never raised."""
    def forge(**changes):
        folder = build.sealed(tmp_path / ("f%d" % len(os.listdir(str(tmp_path)))))
        with open(folder + "/" + manifest.MANIFEST, "rb") as handle:
            plain = json.load(handle)
        plain.update(changes)
        build.write(folder + "/" + manifest.MANIFEST, json.dumps(plain).encode())
        return verify(folder)
    entry = {"name": "../../x", "bytes": 1, "sha256": "0" * 64}
    for changes in ({"files": [entry]}, {"files": [dict(entry, name="/etc/passwd")]}, {"files": {}}, {"files": [1]},
                    {"step": -1}, {"step": "3"}, {"holds": 1}, {"free": []}, {"kind": "x"},
                    {"files": [dict(entry, name="a"), dict(entry, name="a")]}):
        assert forge(**changes).verdict == "rejected", changes
    assert forge(v=2).verdict == "unknown"


def test_many_files_are_within_the_limits_of_open_files(tmp_path):
    """More files than a process may hold open."""
    folder = str(tmp_path / "c")
    for number in range(1500):
        build.write("%s/part-%d.bin" % (folder, number), b"%d" % number)
    seal(folder, step=2)
    assert verify(folder).verdict == "verified"
