"""`gpuhealth ckpt`: its output and its exit codes."""
import io
import json
import os

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint.content import PARTS
from slurm_gpuhealth.cli import ckpt, main
from slurm_gpuhealth.errors import EXIT_FATAL, EXIT_OK, EXIT_UNKNOWN, EXIT_WARNING


def call(*arguments):
    out = io.StringIO()
    return main.main(["ckpt"] + [str(word) for word in arguments], out), out.getvalue()


@pytest.mark.parametrize("name,code", [("whole.pt", EXIT_OK), ("nocrc.pt", EXIT_OK), ("weights.pt", EXIT_WARNING),
                                       ("legacy.pt", EXIT_UNKNOWN)])
def test_exit_codes_of_verify(name, code):
    """0 whole, 1 weights only, 3 cannot be judged."""
    assert call("verify", os.path.join(build.DATA, name))[0] == code


def test_a_rejected_one_exits_2(tmp_path):
    """2 rejected, with the reason."""
    code, text = call("verify", build.write(tmp_path / "x.pt", build.golden("whole.pt")[:999]))
    assert (code, "rejected" in text, "cut off" in text) == (EXIT_FATAL, True, True)


def test_verify_says_what_missing_parts_do():
    """Each missing part with its effect on the run."""
    code, text = call("verify", os.path.join(build.DATA, "weights.pt"))
    assert "optimizer: the optimizer starts cold" in text
    assert set(ckpt.EFFECTS) == set(PARTS)


def test_json_of_verify():
    """The documented fields, versioned."""
    path = os.path.join(build.DATA, "whole.pt")
    code, text = call("verify", path, "--level", "structure", "--json")
    plain = json.loads(text)
    assert set(plain) == {"v", "path", "verdict", "format", "step", "missing", "world_size", "reason", "keys", "level",
                          "trouble", "bytes", "step_key", "effects"}
    assert (plain["v"], plain["path"], plain["verdict"], plain["step"], plain["missing"]) == (
        1, path, "structure-only", 120, ["grad_scaler"])


def test_latest(tmp_path):
    """The chosen one with step and level, those passed over with why; exit codes for the other outcomes."""
    run = tmp_path / "run"
    assert call("latest", run)[0] == EXIT_WARNING
    folder = build.sealed(run / "step-10", 10)
    os.truncate(build.sealed(run / "step-20", 20) + "/model.safetensors", 3)
    code, text = call("latest", run)
    assert code == EXIT_OK
    assert text == ("passed over  %s/step-20: model.safetensors has 3 bytes instead of 94\n%s  (step 10, verified)\n"
                    % (run, folder))
    plain = json.loads(call("latest", run, "--json")[1])
    assert (plain["outcome"], plain["chosen"]["path"], plain["passed"][0]["path"]) == (
        "found", folder, "%s/step-20" % run)
    os.truncate(folder + "/model.safetensors", 3)
    assert call("latest", run)[0] == EXIT_FATAL
    assert call("latest", tmp_path / "no" / "run")[0] == EXIT_UNKNOWN


def test_list(tmp_path):
    """Newest first, with leftovers."""
    for step in (10, 20):
        build.sealed(tmp_path / ("step-%d" % step), step)
    build.write(tmp_path / "x.tmp", b"x")
    code, text = call("list", tmp_path)
    assert [line.split()[-1].rpartition("/")[2] for line in text.splitlines()[:2]] == ["step-20", "step-10"]
    assert "x.tmp  (a temporary name)" in text
    plain = json.loads(call("list", tmp_path, "--json")[1])
    assert [one["step"] for one in plain["checkpoints"]] == [20, 10]
    assert call("list", tmp_path / "none")[0] == 66


def test_seal(tmp_path):
    """Seals, keeps the notes, says what it did; what cannot be sealed is an error of the data."""
    build.write(tmp_path / "c" / "a.bin", b"abc")
    code, text = call("seal", tmp_path / "c", "--step", "5", "--world-size", "8", "--note", "image=x", "--holds",
                      "model, optimizer")
    assert (code, text) == (EXIT_OK, "sealed %s/c: 1 files, 3 bytes, step 5\n" % tmp_path)
    with open(str(tmp_path / "c" / "gpuhealth-manifest.json")) as handle:
        plain = json.load(handle)
    assert (plain["step"], plain["world_size"], plain["free"], plain["holds"]) == (
        5, 8, {"image": "x"}, ["model", "optimizer"])
    os.mkdir(str(tmp_path / "empty"))
    assert call("seal", tmp_path / "empty")[0] == 65
    assert call("seal", tmp_path / "none")[0] == 66
    assert call("seal", tmp_path / "c", "--note", "x")[0] == 64
    assert call("seal", tmp_path / "c", "--step", "-1")[0] == 64


def test_names_do_not_reach_the_terminal_as_they_are(tmp_path):
    """Escape sequences in file names are shown, not sent."""
    build.sealed(tmp_path / "run" / "a\x1b[31m", 10)
    for action in ("latest", "list"):
        assert "\x1b" not in call(action, tmp_path / "run")[1]


def test_root_is_put_before_the_path(tmp_path):
    """--root works as for every command."""
    build.sealed(tmp_path / "ckpt" / "step-1", 1)
    assert call("latest", "/ckpt", "--root", tmp_path)[0] == EXIT_OK
