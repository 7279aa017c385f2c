"""`gpuhealth check`: forms of output, exit codes, files that it writes."""
import io
import json
import os
import stat
import sys

import builders
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "nodes"))
import make_nodes  # noqa: E402

from slurm_gpuhealth.cli import main  # noqa: E402

pytestmark = pytest.mark.allow_subprocess


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def node(tmp_path):
    """A node by the name of its defect: its root."""
    def make(name, **files):
        root = tmp_path / name
        builders.write_node(root, dict(make_nodes.NODES[name], **files))
        return str(root)
    return make


def check(root, *more, out=None):
    out = out or io.StringIO()
    code = main.main(["--root", root, "check", *more], out)
    return code, out.getvalue()


def test_what_an_admin_reads(node):
    """Worst first, with the first step for this GPU, and the verdict last."""
    code, text = check(node("ecc-new"))
    assert code == 2 and "\033" not in text
    assert "\nFATAL    GH-ECC-UNC gpu2: 2 new uncorrectable\n" in text
    assert "do: Which memory: `nvidia-smi -q -i 0000:3a:00.0 -d" in text
    assert text.endswith("n1: FATAL: 1 fatal, 0 unknown, 0 warnings, 0 notes\n")
    assert "mode observe" in text.splitlines()[0]


@pytest.mark.parametrize("arguments,no_color,terminal,coloured", [
    ((), None, True, True), ((), "1", True, False), ((), "", True, True), ((), None, False, False),
    (("--color", "always"), "1", False, True), (("--color", "never"), None, True, False)])
def test_colour(node, monkeypatch, arguments, no_color, terminal, coloured):
    """On a terminal, unless NO_COLOR says otherwise (no-color.org: set and not empty), or as asked for."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    _, text = check(node("healthy-8gpu"), *arguments, out=Terminal() if terminal else io.StringIO())
    assert ("\033[" in text) == coloured


def test_narrow_terminal(node, monkeypatch):
    """COLUMNS counts where the output is a terminal only."""
    monkeypatch.setenv("COLUMNS", "60")
    root = node("healthy-8gpu")
    assert max(map(len, check(root, "--color", "never", out=Terminal())[1].splitlines())) <= 60
    assert "address" in check(root)[1]


def test_verbose(node):
    """-v: each check and each source."""
    text = check(node("gpu-off-bus"), "-v")[1]
    assert any(line.split()[:2] == ["xid", "bad"] for line in text.splitlines())
    assert any(line.split()[:2] == ["nvml", "ok"] for line in text.splitlines())


def test_nagios(node):
    """One line, the worst first, exit code 2."""
    code, text = check(node("gpu-off-bus"), "--nagios")
    assert code == 2 and text.count("\n") == 1 and text.startswith("GPUHEALTH CRITICAL: GH-XID79 gpu3 ")


def test_json_keeps_its_keys(node):
    """Version 1: keys may come, none may go."""
    document = json.loads(check(node("ecc-new"), "--json")[1])
    assert set(document) >= {"v", "node", "time", "boot_id", "phase", "outcome", "exit_code", "gpus", "findings",
                             "checks", "sources", "driver", "cuda"}
    assert document["v"] == 1 and document["driver"] == builders.DRIVER


def test_metrics_to_a_file(node, tmp_path):
    """In one step, readable by all, nothing else in the folder; nothing printed."""
    folder = tmp_path / "collector"
    folder.mkdir()
    path = folder / "gpuhealth.prom"
    path.write_text("old")
    code, text = check(node("ecc-new"), "--prometheus", str(path))
    assert (code, text) == (2, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert 'gpuhealth_finding{code="GH-ECC-UNC",severity="fatal",subject="gpu2"} 1\n' in path.read_text()
    assert os.listdir(folder) == ["gpuhealth.prom"]
    assert check(node("ecc-new"), "--prometheus", "-")[1].startswith("# HELP gpuhealth_up ")


def test_metrics_that_cannot_be_written(node, capsys):
    """One line, and not the exit code of a finding."""
    assert check(node("ecc-new"), "--prometheus", "/nowhere/x.prom")[0] == 71
    assert "cannot write /nowhere/x.prom" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [
    ("--json", "--nagios"), ("--nagios", "--prometheus", "-"), ("--json", "--prometheus", "-")])
def test_one_form_at_a_time(node, arguments):
    """Two forms of output at once are a mistake."""
    assert check(node("healthy-8gpu"), *arguments)[0] == 64


def test_severities_are_the_sites(node):
    """`codes:` and acknowledged faults count here as they do in the hooks."""
    config = make_nodes.CONFIG + "codes: {GH-ECC-UNC: {severity: warning}}\n"
    assert check(node("ecc-new", **{"/etc/slurm/gpuhealth.yaml": config}), "--nagios")[0] == 1
    acks = json.dumps({"v": 1, "incidents": [],
                       "acks": [{"code": "GH-ECC-UNC", "subject": "gpu2", "until": None, "by": "a"}]})
    assert check(node("ecc-new", **{"/var/lib/gpuhealth/incidents.json": acks}), "--nagios")[0] == 0


def test_plugins_and_services_on_a_fixture_node(node, tmp_path):
    """The whole way from the configuration to the finding, programs and systemctl's answer included."""
    config = make_nodes.CONFIG + ("services: [munge]\nplugins:\n  - {name: raid, command: [/opt/raid, -q]}\n"
                                  "  - {name: slow, command: [/opt/slow], deadline: 0.3}\n")
    unit = "Id=%s.service\nLoadState=loaded\nActiveState=%s\nSubState=%s\nUnitFileState=enabled\nResult=%s\n"
    root = node("healthy-8gpu", **{
        "/etc/slurm/gpuhealth.yaml": config,
        "/opt/raid": '#!/bin/sh\necho \'{"status": "critical", "message": "disk 3 failed", "subject": "gpu3"}\'\n',
        "/opt/slow": "#!/bin/sh\nsleep 20\n",
        "/systemctl.txt": "\n".join([unit % ("munge", "failed", "failed", "exit-code")] + [
            unit % (name, "active", "running", "success") for name in
            ("nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced")])})
    for name in ("raid", "slow"):
        os.chmod(root + "/opt/" + name, 0o755)
    code, text = check(root, "--json")
    found = {(one["code"], one["severity"]): one for one in json.loads(text)["findings"]}
    assert code == 2
    assert found["GH-PLUGIN", "fatal"]["seen"] == "raid: disk 3 failed"
    assert found["GH-PLUGIN", "fatal"]["subject"]["index"] == 3
    assert found["GH-SERVICE", "fatal"]["subject"]["name"] == "munge"
    assert found["GH-PLUGIN-LATE", "warning"]["subject"]["name"] == "slow"
