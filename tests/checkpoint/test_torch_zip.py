"""Files of torch.save: judged from their bytes, never loaded."""
import io
import pickle
import random
import struct
import zipfile

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint.verify import verify

WHOLE = build.golden("whole.pt")
PARTS_MISSING = ("grad_scaler",)


def judge(tmp_path, data, level="full", name="x.pt"):
    return verify(build.write(tmp_path / name, data), level)


def test_a_whole_file_is_verified(tmp_path):
    """A real torch file is whole at structure and verified at full, with step, keys and what is missing."""
    assert judge(tmp_path, WHOLE, "structure").verdict == "structure-only"
    full = judge(tmp_path, WHOLE)
    assert (full.verdict, full.format, full.step, full.step_key) == ("verified", "torch-zip", 120, "global_step")
    assert full.keys == ("model", "optimizer", "lr_scheduler", "global_step", "rng_state")
    assert full.missing == PARTS_MISSING
    assert full.bytes == len(WHOLE)


def test_the_name_does_not_matter(tmp_path):
    """The format is known by content: also saved under the name of a picture."""
    assert judge(tmp_path, WHOLE, name="x.jpg").verdict == "verified"


@pytest.mark.parametrize("name,verdict,step,why", [
    ("nocrc.pt", "structure-only", 120, "without a checksum"),
    ("weights.pt", "weights-only", None, "no optimizer state"),
    ("module.pt", "weights-only", None, "a whole object of class torch.nn.modules.linear.Linear"),
    ("tensorstep.pt", "verified", 77, ""),
    ("optimizer.pt", "unknown", None, "one part of a checkpoint"),
    ("legacy.pt", "unknown", None, "before 1.6"),
])
def test_real_files_of_other_kinds(tmp_path, name, verdict, step, why):
    """Checksums switched off are not corruption; weights alone are said; a part or an old format is no checkpoint."""
    found = judge(tmp_path, build.golden(name))
    assert (found.verdict, found.step) == (verdict, step)
    assert why in found.reason


@pytest.mark.parametrize("name", ["whole.pt", "nocrc.pt", "weights.pt", "tensorstep.pt"])
def test_cut_anywhere_is_never_accepted(tmp_path, name):
    """Truncated at every hundredth of its length, and by a byte: never whole at any level."""
    data = build.golden(name)
    cuts = {len(data) * part // 100 for part in range(100)} | {len(data) - count for count in (1, 22, 98)}
    for cut in sorted(cuts):
        for level in ("structure", "full"):
            assert judge(tmp_path, data[:cut], level).verdict in ("rejected", "unknown"), cut


def test_zeros_at_the_end_are_rejected(tmp_path):
    """A tail that was reserved and never written, of any length, and a byte too many."""
    for count in (8, 22, 98, 500, len(WHOLE)):     # the last four bytes are zeros anyway
        assert judge(tmp_path, WHOLE[:-count] + bytes(count), "structure").verdict == "rejected"
    assert judge(tmp_path, WHOLE + bytes(4096), "structure").verdict == "rejected"
    assert judge(tmp_path, WHOLE + b"x", "structure").verdict == "rejected"


@pytest.mark.parametrize("name", ["whole.pt", "tensorstep.pt"])
def test_no_flipped_bit_is_verified(tmp_path, name):
    """One flipped bit anywhere: never verified in full, whatever field it hits."""
    data = build.golden(name)
    bits = random.Random(11)
    for at in range(0, len(data), 1 if name == "whole.pt" else 3):
        changed = bytearray(data)
        changed[at] ^= 1 << bits.randrange(8)
        assert judge(tmp_path, bytes(changed)).verdict != "verified", at


def test_a_hole_in_real_tensor_data(tmp_path):
    """The bytes of the first tensor replaced: whole at structure, rejected at full with the record's name."""
    names = zipfile.ZipFile(io.BytesIO(WHOLE))
    info = names.getinfo("whole/data/0")
    start = info.header_offset + 30 + struct.unpack("<H", WHOLE[info.header_offset + 26:info.header_offset + 28])[0]
    start += struct.unpack("<H", WHOLE[info.header_offset + 28:info.header_offset + 30])[0]
    holed = WHOLE[:start] + bytes(info.file_size) + WHOLE[start + info.file_size:]
    assert judge(tmp_path, holed, "structure").verdict == "structure-only"
    found = judge(tmp_path, holed)
    assert found.verdict == "rejected"
    assert "checksum of record whole/data/0" in found.reason


def test_the_builder_lays_out_as_torch_does(tmp_path):
    """The archives that these tests build are byte for byte what torch wrote for the same records."""
    with zipfile.ZipFile(io.BytesIO(WHOLE)) as archive:
        records = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    assert build.torch_like(records) == WHOLE


def storage(key, numel):
    return b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00" + key + b"X\x03\x00\x00\x00cpuK" \
        + bytes([numel]) + b"tQ"


def test_a_storage_of_the_wrong_size_is_rejected(tmp_path):
    """Every storage that data.pkl names has its record, of the size that its type and number give."""
    raw = b"\x80\x02}U\x05modelctorch._utils\n_rebuild_tensor_v2\n(" + storage(b"0", 3) + b"K\x00K\x03\x85K\x01\x85tRs."
    whole = build.torch_state(raw, _0=bytes(12))
    assert judge(tmp_path, whole).verdict == "weights-only"
    assert "has 8 bytes instead of 12" in judge(tmp_path, build.torch_state(raw, _0=bytes(8)), "structure").reason
    assert "data/0 is not there" in judge(tmp_path, build.torch_state(raw, _1=bytes(12)), "structure").reason


def test_compressed_records_are_refused(tmp_path):
    """torch stores; a compressed record is a bomb or not from torch, and is not unpacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(50 << 20))
        archive.writestr("x/version", b"3\n")
    found = judge(tmp_path, packed.getvalue())
    assert (found.verdict, found.reason) == ("rejected", "a compressed record: torch writes none, so it is not read")


def test_an_ordinary_zip_is_not_a_checkpoint(tmp_path):
    """A zip of something else, also stored: unknown, not rejected as corrupt."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes/readme.txt", b"hello")
    assert judge(tmp_path, packed.getvalue()).verdict == "unknown"


@pytest.mark.parametrize("name", ["../x", "/x", "whole2/x", "whole\\x"])
def test_names_that_lead_out_are_refused(tmp_path, name):
    """A record outside of the archive's one folder: not torch's."""
    data = build.torch_like({"data.pkl": b"\x80\x02}.", "version": b"3\n"})
    bad = data.replace(b"whole/version", name.encode().ljust(13, b"y")[:13])
    assert judge(tmp_path, bad).verdict in ("unknown", "rejected")


def test_a_hundred_thousand_records_are_walked_in_seconds(tmp_path):
    """Many records are no attack: walked within the time that the test gives."""
    records = {"data.pkl": b"\x80\x02}q\x00X\x01\x00\x00\x00aK\x01s.", "version": b"3\n"}
    records.update({"data/%d" % number: b"" for number in range(100000)})
    found = judge(tmp_path, build.torch_like(records), "structure")
    assert found.verdict == "unknown"
    assert "no model weights" in found.reason


class Fires:
    """Unpickled, this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_pickle_that_acts_is_never_executed(tmp_path, protocol):
    """A call in the pickle stays undone at every level and protocol; its keys and step are read all the same."""
    mark = tmp_path / "fired"
    raw = pickle.dumps({"model": Fires(str(mark)), "step": 5, "optimizer": {"param_groups": [], "state": {}}}, protocol)
    for level in ("structure", "full"):
        found = judge(tmp_path, build.torch_state(raw), level)
        assert found.step == 5
        assert "model" in found.keys
    judge(tmp_path, raw)    # and as a plain pickle
    judge(tmp_path, build.torch_state(b"cposix\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR."))
    assert not mark.exists()


def test_a_deep_pickle_does_not_crash(tmp_path):
    """Half a million nested lists and tuples: an answer, not a stack overflow."""
    for opener, closer in ((b"]" * 500000, b"a" * 499999), (b"(" * 500000 + b"K\x01", b"t" * 500000)):
        found = judge(tmp_path, build.torch_state(b"\x80\x02" + opener + closer + b"."), "structure")
        assert found.verdict in ("unknown", "rejected", "structure-only")
    raw = b"\x80\x02}" + b")" + b"\x85" * 500000 + b"K\x01s."     # a tuple half a million deep as a key
    assert judge(tmp_path, build.torch_state(raw), "structure").verdict == "unknown"


def test_a_pickle_that_goes_on_behind_its_end(tmp_path):
    """data.pkl ends where its pickle ends."""
    assert "goes on behind its end" in judge(tmp_path, build.torch_state(b"\x80\x02}.xx")).reason


def test_the_deadline_is_kept(tmp_path):
    """With no time left nothing is judged, and the reason is the time."""
    found = verify(build.write(tmp_path / "x.pt", WHOLE), "full", until=0.0)
    assert (found.verdict, found.trouble) == ("unknown", "time")
