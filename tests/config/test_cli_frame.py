"""The frame of the command line, and the commands config and explain."""
import argparse
import importlib
import io
import json
import types

import pytest

from slurm_gpuhealth.catalogue import CODES
from slurm_gpuhealth.cli import main
from slurm_gpuhealth.errors import DataError


def command(*words):
    """Run a command line; (exit code, output)."""
    out = io.StringIO()
    return main.main(list(words), out), out.getvalue()


@pytest.fixture
def fake(monkeypatch):
    """A subcommand `check` whose module is made here; the returned namespace's `run` can be replaced."""
    def add_parser(subparsers):
        parser = subparsers.add_parser("check")
        inner = parser.add_subparsers(dest="action")
        inner.add_parser("deep")
        return parser
    module = types.SimpleNamespace(add_parser=add_parser, run=lambda args, out: 0)
    real = importlib.import_module
    monkeypatch.setattr(main.importlib, "import_module",
                        lambda name: module if name == "slurm_gpuhealth.cli.check" else real(name))
    return module


@pytest.mark.parametrize("words, root, as_json", [
    (["check"], "", False), (["--root", "/x", "check"], "/x", False), (["check", "--root", "/x"], "/x", False),
    (["--json", "check"], "", True), (["check", "deep", "--json", "--root", "/x"], "/x", True),
    (["--root", "/x", "check", "deep", "--json"], "/x", True), (["--root=/x", "check"], "/x", False),
    (["check", "--root", "/"], "", False)])
def test_root_and_json_work_everywhere(fake, words, root, as_json):
    """Before the command, behind it, and behind a nested command."""
    seen = []
    fake.run = lambda args, out: seen.append((args.root, args.json)) or 0
    assert command(*words)[0] == 0
    assert seen == [(root, as_json)]


@pytest.mark.parametrize("words, message", [
    (["chekc"], "no command 'chekc' (did you mean 'check'?)"), (["xyzzy"], "no command 'xyzzy' (see"),
    (["check", "--nope"], "unrecognized arguments: --nope"), (["--root"], "expected one argument")])
def test_wrong_usage_is_64(fake, capsys, words, message):
    """argparse's own code 2 would read as "fatal finding"."""
    assert command(*words)[0] == 64
    assert message in capsys.readouterr().err


def test_no_command_shows_help(capsys):
    """And is wrong usage."""
    assert command()[0] == 64
    assert "commands:" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    """-h is right usage; only the top level is needed to see all commands."""
    assert command("-h")[0] == 0
    text = capsys.readouterr().out
    assert all(name in text for name in main.COMMANDS) and "example:" in text


@pytest.mark.parametrize("name", sorted(main.COMMANDS))
def test_each_command_has_its_module_and_an_example(name, capsys):
    """add_parser adds the command's own parser, run is there, -h shows an example."""
    module = importlib.import_module("slurm_gpuhealth.cli." + main.COMMANDS[name][0])
    parser = argparse.ArgumentParser(prog="gpuhealth")
    subparsers = parser.add_subparsers()
    module.add_parser(subparsers)
    assert list(subparsers.choices) == [name]
    assert callable(module.run)
    assert command(name, "-h")[0] == 0
    assert "example" in capsys.readouterr().out.lower()


def test_an_error_of_ours_is_one_line(fake, capsys):
    """With its exit code, and control characters made visible."""
    def run(args, out):
        raise DataError("file \x1b[31m\nname")
    fake.run = run
    assert command("check")[0] == 65
    assert capsys.readouterr().err == "gpuhealth: file \\x1b[31m\\nname\n"


def test_a_bug_is_70_and_shows_where(fake, capsys):
    """Python's own exit code 1 would read as "warning"."""
    fake.run = lambda args, out: 1 // 0
    assert command("check")[0] == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_other_ends(fake):
    """Ctrl-C is 130."""
    def run(args, out):
        raise KeyboardInterrupt
    fake.run = run
    assert command("check")[0] == 130


def test_explain_a_code():
    """Title, cause, layer, who fixes it, runbook."""
    code, text = command("explain", "GH-MNT-HANG")
    assert code == 0
    for part in ("GH-MNT-HANG: A file system does not answer", "external", "whoever runs the storage", "Runbook:"):
        assert part in text


@pytest.mark.parametrize("words, expected", [
    (["GH-XID79"], "GH-XID79"), (["79"], "GH-XID79"), (["xid79"], "GH-XID79"), (["gh-ecc-unc"], "GH-ECC-UNC"),
    (["mnt-ro"], "GH-MNT-RO"), (["GH-XID79 gpu3+1 fell off bus [ev=3f2a]"], "GH-XID79"),
    (["GH-GPU-COUNT+1", "7/8"], "GH-GPU-COUNT"), (["200"], "GH-XID200")])
def test_explain_finds_what_is_meant(words, expected):
    """A code in any case, an Xid number, or a whole reason as sinfo shows it."""
    code, text = command("explain", "--json", *words)
    document = json.loads(text)
    assert (code, document["v"], document["code"]) == (0, 1, expected)


def test_explain_xid():
    """An Xid has its own title and action, and the runbook that fits: no reset of a GPU that is off the bus."""
    document = json.loads(command("explain", "79", "--json")[1])
    assert document["job_action"] == "requeue-now"
    assert document["xid"] == {"number": 79, "known": True, "action": "drain", "user_caused": "no",
                               "companions": [45, 119, 120, 154], "sources": document["xid"]["sources"],
                               "at_once": "reboot", "asks_since": 565, "gpus": [], "differs": {},
                               "can_be": ["hardware", "driver", "host memory", "bus", "heat"]}
    assert not any("gpu-reset" in step for step in document["runbook"])
    assert "2 reboot the node" in json.loads(command("explain", "154", "--json")[1])["cause"]
    assert "the job's user" == json.loads(command("explain", "31", "--json")[1])["fixer"]
    assert json.loads(command("explain", "180", "--json")[1])["xid"]["known"] is False


@pytest.mark.parametrize("code", sorted(CODES))
def test_explain_knows_every_code(code):
    """Text and JSON for each."""
    assert command("explain", code)[0] == 0
    assert json.loads(command("explain", code, "--json")[1])["runbook"]


def test_explain_unknown(capsys):
    """Nearest name, exit 66; nothing given lists all."""
    assert command("explain", "GH-MNT-HNAG")[0] == 66
    assert "did you mean 'GH-MNT-HANG'" in capsys.readouterr().err
    assert len(command("explain")[1].splitlines()) == len(CODES)
    assert len(json.loads(command("explain", "--json")[1])["codes"]) == len(CODES)


def test_config_check(tmp_path):
    """Each mistake a line, exit 78; a right file is exit 0; JSON has the same."""
    path = tmp_path / "new.yaml"
    path.write_text("mod: 1\nchecks: {disabled: [nope]}\n")
    code, text = command("config", "check", "--file", str(path))
    assert code == 78 and text.startswith("%s:1: unknown key 'mod'" % path)
    path.write_text("checks: {disabled: [nope]}\n")
    code, text = command("config", "check", "--file", str(path), "--json")
    assert code == 78 and json.loads(text)["problems"] == ["%s: checks.disabled: no check 'nope'" % path]
    path.write_text("mode: full\n")
    assert command("config", "check", "--file", str(path)) == (0, "%s: right\n" % path)
    assert command("config", "check", "--file", str(tmp_path / "none"))[0] == 78
    assert command("--root", str(tmp_path), "config", "check")[0] == 0


def test_config_show(tmp_path):
    """Complete, with overlays for a named node."""
    path = tmp_path / "etc/slurm/gpuhealth.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("nodes: [{match: 'n[1-2]', set: {expected_gpus: 3}}]\n")
    document = json.loads(command("config", "show", "--root", str(tmp_path), "--node", "n2", "--json")[1])
    assert document["config"]["expected_gpus"] == 3 and document["config"]["deadlines"]["nvml"] == 8
    code, text = command("--root", str(tmp_path), "config", "show")
    assert code == 0 and "expected_gpus: auto" in text and "match: n[1-2]" in text


def test_config_check_renews_the_compiled_copy(tmp_path):
    """After a change it need not wait for the next health check."""
    from slurm_gpuhealth import config, config_schema
    path = tmp_path / "etc/slurm/gpuhealth.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("mode: drain\n")
    config_schema.refresh(str(tmp_path), "n1")
    path.write_text("mode: full  # now\n")
    assert "compiled copy renewed" in command("config", "check", "--root", str(tmp_path))[1]
    assert config.load(str(tmp_path), "n1")[0]["mode"] == "full"
