"""safetensors files and sharded folders."""
import json
import os
import struct

import ckpt_builders as build
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.checkpoint.verify import verify

WHOLE = build.safetensors_bytes(build.TRAINING, {"global_step": "40"})


def judge(tmp_path, data, level="full", name="x.safetensors"):
    return verify(build.write(tmp_path / name, data), level)


def header(tmp_path, plain, buffer=b"", level="full"):
    raw = plain if isinstance(plain, bytes) else json.dumps(plain).encode()
    return judge(tmp_path, struct.pack("<Q", len(raw)) + raw + buffer, level)


def test_a_lone_file_is_structure_only(tmp_path):
    """The format has no checksum: even at full, whole is all that can be said."""
    found = judge(tmp_path, WHOLE)
    assert (found.verdict, found.step, found.reason) == ("structure-only", 40, "the format has no checksum")
    assert found.missing == ("lr_scheduler", "grad_scaler", "rng_state")


def test_the_real_library_writes_what_is_accepted(tmp_path):
    """A file of the safetensors library, with all its types that NumPy has, tiles exactly."""
    np = pytest.importorskip("numpy")
    from safetensors.numpy import save_file
    arrays = {"model.%s" % kind: np.zeros((2, 3), kind) for kind in
              ("bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "float64", "int64",
               "uint64", "complex64")}
    arrays["model.empty"] = np.zeros((0, 3), "float32")
    path = str(tmp_path / "real.safetensors")
    save_file(arrays, path, {"step": "7"})
    found = verify(path)
    assert (found.verdict, found.step, found.reason) == ("weights-only", 7, "no optimizer state")


def test_weights_alone_are_said(tmp_path):
    """Tensors of a model only: nothing to go on training with."""
    data = build.safetensors_bytes({"model.layer.0.weight": 4, "lm_head.weight": 2})
    assert judge(tmp_path, data).verdict == "weights-only"


def test_optimizer_alone_is_a_part(tmp_path):
    """Tensors of an optimizer only: part of a checkpoint."""
    found = judge(tmp_path, build.safetensors_bytes({"exp_avg.w": 4, "exp_avg_sq.w": 4}))
    assert (found.verdict, found.reason) == ("unknown", "no model weights in it: one part of a checkpoint")


def test_cut_anywhere_is_never_accepted(tmp_path):
    """Truncated at every hundredth and by a byte, or a byte too long: never whole."""
    for cut in sorted({len(WHOLE) * part // 100 for part in range(100)} | {len(WHOLE) - 1}):
        assert judge(tmp_path, WHOLE[:cut]).verdict in ("rejected", "unknown"), cut
    assert judge(tmp_path, WHOLE + b"\0").reason == "%d bytes instead of %d" % (len(WHOLE) + 1, len(WHOLE))


@pytest.mark.parametrize("size", [0, 4, 8, 100, 5000])
def test_zeros_are_rejected(tmp_path, size):
    """A file that was given its size and never written (older writers do that first)."""
    assert judge(tmp_path, bytes(size)).verdict == "rejected"


def test_bad_headers_are_rejected(tmp_path):
    """Holes, overlaps, wrong sizes, doubled names, no JSON: each with its reason."""
    def one(begin, end, shape=(1,), dtype="F32"):
        return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    cases = [
        ({"a": one(4, 8)}, 8, "does not begin where"), ({"a": one(0, 4), "b": one(2, 6)}, 6, "does not begin where"),
        ({"a": one(0, 8)}, 8, "has 8 bytes instead of 4"), ({"a": one(0, 4, (1 << 40, 1 << 40))}, 4, "larger than any"),
        ({"a": {"dtype": "F32"}}, 0, "not described"), ({"a": one(0, 4, (-1,))}, 4, "not described"),
        ({"a": 1}, 0, "not described"), ({"__metadata__": {"step": 1}, "a": one(0, 4)}, 4, "does not hold texts"),
        (b'{"a": 1, "a": 2}', 0, "a name twice"), (b"{]", 0, "not JSON"), (b"{\xff}", 0, "not JSON"),
        (b'{"a":' + b"[" * 200000 + b"}", 0, "not JSON"),
    ]
    for plain, size, why in cases:
        found = header(tmp_path, plain, bytes(size))
        assert found.verdict == "rejected", plain
        assert why in found.reason
    assert header(tmp_path, {"a": one(0, 4, dtype="F5")}, bytes(4)).verdict == "unknown"


def test_a_huge_header_is_refused(tmp_path):
    """A length that no header may have is not believed and not read."""
    data = struct.pack("<Q", 1 << 62) + b"{" + bytes(100)
    assert judge(tmp_path, data).verdict == "unknown"
    path = str(tmp_path / "sparse.safetensors")
    with open(path, "wb") as handle:
        handle.write(struct.pack("<Q", 99000000) + b"{")
        handle.truncate(1 << 34)
    assert verify(path).verdict == "rejected"


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200), length=st.integers(0, 300))
def test_no_bytes_make_it_raise(tmp_path_factory, data, length):
    """Whatever stands in a file, the answer is a verdict, and never a good one for noise."""
    path = build.write(tmp_path_factory.getbasetemp() / "noise.safetensors", struct.pack("<Q", length) + b"{" + data)
    assert verify(path).verdict in ("rejected", "unknown")


# -- sharded folders

def sharded(folder, shards=("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"), mapped=None):
    folder = str(folder)
    build.write(folder + "/model-00001-of-00002.safetensors", build.safetensors_bytes({"model.a": 4}))
    second = build.safetensors_bytes({"optimizer.a": 4}, {"step": "9"})
    build.write(folder + "/model-00002-of-00002.safetensors", second)
    mapped = mapped or {"model.a": shards[0], "optimizer.a": shards[1]}
    build.write(folder + "/model.safetensors.index.json",
                json.dumps({"metadata": {"total_size": 32}, "weight_map": mapped}).encode())
    return folder


def test_a_sharded_folder_is_whole(tmp_path):
    """All shards there, each with its tensors."""
    found = verify(sharded(tmp_path / "c"))
    assert (found.verdict, found.format, found.step) == ("structure-only", "safetensors-sharded", 9)


def test_a_lost_or_cut_shard_is_rejected(tmp_path):
    """Each file of the folder removed, emptied or cut: never accepted."""
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                 "model.safetensors.index.json"):
        for keep in (None, 0, 20):
            folder = sharded(tmp_path / ("c%s%s" % (name[6:11], keep)))
            if keep is None:
                os.unlink(folder + "/" + name)
            else:
                os.truncate(folder + "/" + name, keep)
            assert verify(folder).verdict in ("rejected", "unknown"), (name, keep)


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "..", "", "a/b.safetensors", "a\0b", 5])
def test_shards_outside_of_the_folder_are_refused(tmp_path, shard):
    """A shard's name may not lead out of the folder."""
    build.write(tmp_path / "x.safetensors", build.safetensors_bytes({"model.a": 4}))
    found = verify(sharded(tmp_path / "c", mapped={"model.a": shard}))
    assert (found.verdict, "outside the folder" in found.reason) == ("rejected", True)


def test_a_link_as_a_shard_is_not_followed(tmp_path):
    """A shard that is a link out of the folder is not read."""
    folder = sharded(tmp_path / "c")
    os.rename(folder + "/model-00001-of-00002.safetensors", str(tmp_path / "away"))
    os.symlink(str(tmp_path / "away"), folder + "/model-00001-of-00002.safetensors")
    found = verify(folder)
    assert found.verdict == "unknown"
    assert "symbolic link" in found.reason


def test_a_tensor_in_no_shard_is_rejected(tmp_path):
    """The index promises what the shards must hold."""
    mapped = {"model.b": "model-00001-of-00002.safetensors"}
    assert "tensor model.b is not in shard" in verify(sharded(tmp_path / "c", mapped=mapped)).reason


def test_one_shard_is_not_a_checkpoint(tmp_path):
    """A file that is named as one of several is a part, however whole."""
    data = build.safetensors_bytes(build.TRAINING)
    for name in ("model-00001-of-00002.safetensors", "ckpt_rank3.safetensors"):
        assert "one of several parts" in judge(tmp_path, data, name=name).reason
