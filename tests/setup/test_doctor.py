"""The doctor: each thing that can be wrong with an installation has its line."""
import io
import json
import os
import time

import pytest

from slurm_gpuhealth.cli import main
from slurm_gpuhealth.setup import diagnose
from slurm_gpuhealth.setup.patient import Patient

PREFIX = "/usr/libexec/gpuhealth"


@pytest.fixture
def root(tmp_path):
    """An installation in which everything is right."""
    (tmp_path / "etc/slurm").mkdir(parents=True)
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("")
    (tmp_path / "etc/slurm/slurm.conf").write_text("ClusterName=x\nJobFileAppend=1\nMessageTimeout=40\n")
    assert main.main(["--root", str(tmp_path), "install", "--yes", "--apply", "--node", "n1"], io.StringIO()) == 0
    (tmp_path / "var/lib/gpuhealth/node.json").write_text(json.dumps({"time": time.time() - 5}))
    return tmp_path


def look(root, **options):
    """{name: Line} of an examination; the worst of lines with one name."""
    found = {}
    for line in diagnose.examine(Patient(str(root), node="n1", **options)):
        old = found.get(line.name)
        if old is None or diagnose.ORDER.index(line.level) > diagnose.ORDER.index(old.level):
            found[line.name] = line
    return found


def slurm_conf(root, **values):
    """Add settings to slurm.conf."""
    with open(root / "etc/slurm/slurm.conf", "a") as handle:
        for key, value in values.items():
            handle.write("%s=%s\n" % (key, value))


def test_a_good_installation_is_ok(root):
    """Nothing to complain about, exit 0; observe is worth a note."""
    lines = look(root)
    assert {line.level for line in lines.values()} == {"ok", "note"}
    assert [name for name, line in lines.items() if line.level == "note"] == ["mode"]
    out = io.StringIO()
    assert main.main(["doctor", "--root", str(root), "--node", "n1"], out) == 0
    out = io.StringIO()
    assert main.main(["doctor", "--root", str(root), "--node", "n1", "--json"], out) == 0
    document = json.loads(out.getvalue())
    assert document["v"] == 1 and document["worst"] == "note"
    assert set(document["lines"][0]) == {"level", "name", "text", "fix"}


def test_nothing_installed(tmp_path):
    """A bare machine: bad, exit 2, and what to do."""
    out = io.StringIO()
    assert main.main(["doctor", "--root", str(tmp_path), "--quiet"], out) == 2
    assert "no record of an installation" in out.getvalue() and "-> gpuhealth install" in out.getvalue()


@pytest.mark.parametrize("settings, name, level", [
    ({"PrologFlags": "Serial"}, "PrologFlags", "bad"),
    ({"HealthCheckInterval": 0}, "HealthCheckInterval", "bad"),
    ({"HealthCheckInterval": 3600}, "HealthCheckInterval", "warn"),
    ({"HealthCheckNodeState": "START_ONLY"}, "HealthCheckNodeState", "bad"),
    ({"HealthCheckNodeState": "IDLE,CYCLE"}, "HealthCheckNodeState", "warn"),
    ({"HealthCheckNodeState": "ANY"}, "HealthCheckNodeState", "note"),
    ({"PrologEpilogTimeout": 20}, "PrologEpilogTimeout", "bad"),
    ({"PrologTimeout": 15}, "PrologTimeout", "bad"),
    ({"EpilogTimeout": 15}, "EpilogTimeout", "bad"),
    ({"HealthCheckTimeout": 30}, "health check time", "bad"),
    ({"HealthCheckProgram": "/usr/libexec/gpuhealth/healthcheck-site"}, "health check time", "warn"),
    ({"HealthCheckProgram": "/usr/sbin/nhc"}, "healthcheckprogram", "bad"),
    ({"MessageTimeout": 10}, "MessageTimeout", "note"),
    ({"JobFileAppend": 0}, "JobFileAppend", "warn"),
    ({"JobRequeue": 0}, "JobRequeue", "warn"),
    ({"KillWait": 600}, "KillWait", "warn"),
    ({"TaskProlog": "/site/tp"}, "TaskProlog", None),
])
def test_settings_of_slurm(root, settings, name, level):
    """One setting wrong, one line that names it."""
    slurm_conf(root, **settings)
    line = look(root).get(name)
    assert (line.level if line else None) == level
    if level in ("bad", "warn"):
        assert line.fix


def test_pyxis_with_task_prolog_warns(root):
    """Tasks have failed with status 127 (pyxis issue 163); a comment about pyxis is not pyxis."""
    slurm_conf(root, TaskProlog=PREFIX + "/taskprolog")
    assert look(root)["TaskProlog"].level == "ok"
    (root / "etc/slurm/plugstack.conf").write_text("# pyxis some day\n")
    assert look(root)["TaskProlog"].level == "ok"
    (root / "etc/slurm/plugstack.conf.d").mkdir()
    (root / "etc/slurm/plugstack.conf.d/p.conf").write_text("required /usr/lib/slurm/spank_pyxis.so\n")
    assert look(root)["TaskProlog"].level == "warn"


def test_hooks_are_found_through_a_folder_or_a_script(root):
    """prolog.d with a link, or a script of the site that calls ours."""
    folder = root / "etc/prolog.d"
    folder.mkdir()
    slurm_conf(root, Prolog="/etc/prolog.d/*", Epilog="/etc/slurm/epilog.sh")
    text = (root / "etc/slurm/slurm.conf").read_text()
    text = text.replace("Prolog=%s/prolog\n" % PREFIX, "").replace("Epilog=%s/epilog\n" % PREFIX, "")
    (root / "etc/slurm/slurm.conf").write_text(text)
    assert look(root)["prolog"].level == look(root)["epilog"].level == "bad"
    (folder / "zz-gpuhealth").symlink_to(PREFIX + "/prolog")
    (root / "etc/slurm/epilog.sh").write_text("#!/bin/sh\nexec %s/epilog\n" % PREFIX)
    assert look(root)["prolog"].level == look(root)["epilog"].level == "ok"


@pytest.mark.parametrize("damage, name, level", [
    (lambda root: os.unlink(root / "usr/libexec/gpuhealth/prolog"), "hook prolog", "bad"),
    (lambda root: os.chmod(root / "usr/libexec/gpuhealth/epilog", 0o644), "hook epilog", "bad"),
    (lambda root: (root / "usr/libexec/gpuhealth/prolog").write_text("#!/bin/sh\n"), "hook prolog", "bad"),
    (lambda root: (root / "etc/slurm/gpuhealth.off").write_text(""), "kill switch", "warn"),
    (lambda root: (root / "etc/slurm/gpuhealth.yaml").write_text("mod: x\n"), "configuration", "bad"),
    (lambda root: (root / "etc/slurm/gpuhealth.yaml").write_text("mode: drain\n"), "compiled configuration", "warn"),
    (lambda root: os.unlink(root / "etc/slurm/gpuhealth.yaml"), "configuration", "note"),
    (lambda root: os.unlink(root / "var/lib/gpuhealth/config.json"), "compiled configuration", "warn"),
    (lambda root: os.chmod(root / "var/lib/gpuhealth", 0o755), "/var/lib/gpuhealth", "bad"),
    (lambda root: os.rmdir(root / "run/gpuhealth"), "/run/gpuhealth", "bad"),
    (lambda root: os.unlink(root / "dev/kmsg"), "kernel log", "bad"),
    (lambda root: os.unlink(root / "var/lib/gpuhealth/node.json"), "last health check", "warn"),
    (lambda root: (root / "var/lib/gpuhealth/node.json").write_text("{"), "last health check", "warn"),
    (lambda root: (root / "var/lib/gpuhealth/node.json").write_text('{"time": 5}'), "last health check", "bad"),
    (lambda root: os.unlink(root / "etc/slurm/slurm.conf"), "slurm.conf", "bad"),
    (lambda root: (root / "var/lib/gpuhealth/install.json").write_text("{"), "installed", "bad"),
])
def test_damage_is_found(root, damage, name, level):
    """One thing broken, one line that names it."""
    damage(root)
    assert look(root)[name].level == level


def test_an_older_installation_is_said(root):
    """Hooks of another version than the package: install again."""
    path = root / "var/lib/gpuhealth/install.json"
    path.write_text(path.read_text().replace('"version": "', '"version": "0.0.'))
    assert look(root)["installed"] == ("bad", "installed", look(root)["installed"].text, "gpuhealth install")


def test_shared_folder(root):
    """There and writable, or not."""
    (root / "etc/slurm/gpuhealth.yaml").write_text("shared_dir: /shared\n")
    assert look(root)["shared_dir"].level == "bad"
    (root / "shared").mkdir()
    assert look(root)["shared_dir"].level == "ok"


def test_configless_copy_is_read(root):
    """Without /etc/slurm/slurm.conf the copy of slurmd is looked at."""
    (root / "run/slurm/conf").mkdir(parents=True)
    os.rename(root / "etc/slurm/slurm.conf", root / "run/slurm/conf/slurm.conf")
    lines = look(root)
    assert "configless" in lines["slurm settings"].text
    assert lines["prolog"].level == "ok"


@pytest.mark.parametrize("text, level", [
    ("24.11.5", "ok"), ("22.05.8", "ok"), ("26.05.1", "ok"), ("21.08.8", "warn"), ("27.05.0", "warn")])
def test_release_of_slurm(root, text, level):
    """Tried are 22.05 to 26.05."""
    patient = Patient(str(root), node="n1")
    patient.settings["slurm_version"] = text
    assert {line.name: line.level for line in diagnose.examine(patient)}["Slurm"] == level


def test_worst_line_gives_the_exit_code():
    """Nagios: 0 ok, 1 warning, 2 bad, 3 could not look; bad outranks not looked."""
    assert [diagnose.EXITS[level] for level in diagnose.ORDER] == [0, 0, 1, 3, 2]
