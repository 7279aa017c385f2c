"""install and uninstall on a fixture node: everything there, everything back."""
import io
import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from slurm_gpuhealth import __version__
from slurm_gpuhealth.cli import install as install_command
from slurm_gpuhealth.cli import main
from slurm_gpuhealth.errors import PermissionDenied, UsageError
from slurm_gpuhealth.setup import installer, render, trust, uninstaller

SLURM_CONF = "ClusterName=x\nProlog=/etc/slurm/prolog.sh\nHealthCheckProgram=/usr/sbin/nhc\nNodeName=n1"
PREFIX = "/usr/libexec/gpuhealth"


@pytest.fixture
def root(tmp_path):
    """A node with a slurm.conf, a Prolog and a health check of its own."""
    (tmp_path / "etc/slurm").mkdir(parents=True)
    (tmp_path / "etc/slurm/slurm.conf").write_text(SLURM_CONF)
    return tmp_path


def command(root, *words):
    """Run a command line; (exit code, output)."""
    out = io.StringIO()
    code = main.main(["--root", str(root)] + list(words), out)
    return code, out.getvalue()


def tree(root):
    """{path: (kind and mode, content)} of everything below."""
    found = {}
    for base, folders, names in os.walk(root):
        for name in folders + names:
            path = os.path.join(base, name)
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else (
                pathlib.Path(path).read_bytes() if os.path.isfile(path) else None)
            found[os.path.relpath(path, root)] = (status.st_mode, content)
    return found


def test_install_makes_everything(root):
    """Hooks 0755, state 0700, run state 0711, a compiled configuration in observe; slurm.conf is left alone."""
    code, text = command(root, "install", "--yes", "--node", "n1")
    assert code == 0
    for name in render.HOOKS:
        assert stat.S_IMODE(os.stat(str(root) + PREFIX + "/" + name).st_mode) == 0o755
    for path, mode in [("var/lib/gpuhealth", 0o700), ("var/lib/gpuhealth/events", 0o700), ("run/gpuhealth", 0o711),
                       ("etc/slurm/gpuhealth.yaml", 0o644), ("var/lib/gpuhealth/config.json", 0o600)]:
        assert stat.S_IMODE(os.stat(root / path).st_mode) == mode, path
    assert (root / "etc/tmpfiles.d/gpuhealth.conf").read_text() == "d /run/gpuhealth 0711 root root -\n"
    compiled = json.loads((root / "var/lib/gpuhealth/config.json").read_text())
    assert (compiled["node"], compiled["config"]["mode"]) == ("n1", "observe")
    assert (root / "etc/slurm/slurm.conf").read_text() == SLURM_CONF
    assert "take out  /etc/slurm/slurm.conf, line 2: prolog=/etc/slurm/prolog.sh" in text
    assert "add       Prolog=%s/prolog.d/*" % PREFIX in text


@pytest.mark.parametrize("apply", [[], ["--apply"]])
def test_uninstall_puts_everything_back(root, apply):
    """Byte for byte, mode for mode; only backups of slurm.conf stay."""
    before = tree(root)
    assert command(root, "install", "--yes", *apply)[0] == 0
    assert tree(root) != before
    assert command(root, "uninstall", "--yes")[0] == 0
    after = {path: what for path, what in tree(root).items() if ".gpuhealth-" not in path}
    assert after == before


def test_dry_run_changes_nothing(root):
    """Neither install nor uninstall."""
    before = tree(root)
    assert command(root, "install", "--dry-run", "--apply")[0] == 0
    assert tree(root) == before
    command(root, "install", "--yes")
    before = tree(root)
    assert command(root, "uninstall", "--dry-run")[0] == 0
    assert tree(root) == before


def test_second_install_does_nothing(root):
    """The same again: no file is touched, no second backup."""
    command(root, "install", "--yes", "--apply")
    before = {path: os.lstat(root / path).st_ino for path in tree(root) if "config.json" not in path
              and "install.json" not in path}
    code, text = command(root, "install", "--yes", "--apply", "--json")
    assert code == 0
    assert {step["what"] for step in json.loads(text)["steps"]} == {"same"}
    assert {path: os.lstat(root / path).st_ino for path in before} == before


def test_apply_keeps_a_backup_and_slurms_rights(root):
    """The old slurm.conf is beside the new one, which has its owner and mode."""
    os.chmod(root / "etc/slurm/slurm.conf", 0o640)
    _, text = command(root, "install", "--yes", "--apply", "--json")
    backup = json.loads(text)["backups"][0]
    assert pathlib.Path(str(root) + backup).read_text() == SLURM_CONF
    assert stat.S_IMODE(os.stat(root / "etc/slurm/slurm.conf").st_mode) == 0o640
    new = (root / "etc/slurm/slurm.conf").read_text()
    assert "#gpuhealth-was#Prolog=/etc/slurm/prolog.sh\n" in new
    assert "\nHealthCheckProgram=%s/healthcheck-site\n" % PREFIX in new


def test_an_edited_configuration_is_never_overwritten(root):
    """The new one goes beside it; at uninstall the edited one stays."""
    yaml = root / "etc/slurm/gpuhealth.yaml"
    command(root, "install", "--yes")
    yaml.write_text("mode: full\n")
    command(root, "install", "--yes")
    assert yaml.read_text() == "mode: full\n"
    assert (root / "etc/slurm/gpuhealth.yaml.new").read_text() == render.template("gpuhealth.yaml")
    _, text = command(root, "uninstall", "--yes")
    assert "kept, as it was changed since: /etc/slurm/gpuhealth.yaml" in text
    assert yaml.read_text() == "mode: full\n"
    assert not (root / "etc/slurm/gpuhealth.yaml.new").exists()


def test_an_unedited_configuration_follows_the_version(root, monkeypatch):
    """What an older version wrote and nobody touched is renewed."""
    command(root, "install", "--yes")
    newer = render.template("gpuhealth.yaml") + "# newer\n"
    real = render.template
    monkeypatch.setattr(render, "template", lambda name: newer if name == "gpuhealth.yaml" else real(name))
    command(root, "install", "--yes")
    assert (root / "etc/slurm/gpuhealth.yaml").read_text() == newer
    assert not (root / "etc/slurm/gpuhealth.yaml.new").exists()


def test_an_upgrade_replaces_hooks_in_one_move(root):
    """A hook that is running keeps its old file; the new one appears whole."""
    command(root, "install", "--yes")
    path = pathlib.Path(str(root) + PREFIX + "/prolog")
    path.write_text(path.read_text() + "# older\n")
    with open(path) as running:
        command(root, "install", "--yes")
        assert os.stat(path).st_ino != os.fstat(running.fileno()).st_ino
        assert running.read().endswith("# older\n")
    assert "# older" not in path.read_text()


def test_a_file_of_somebody_else_comes_back(root):
    """A file that stood where ours must be is kept and put back."""
    path = root / "etc/tmpfiles.d/gpuhealth.conf"
    path.parent.mkdir()
    path.write_text("theirs\n")
    command(root, "install", "--yes")
    assert "0711" in path.read_text()
    command(root, "uninstall", "--yes")
    assert path.read_text() == "theirs\n"


def test_evidence_and_events_stay_without_purge(root):
    """What happened on the node outlives the program."""
    command(root, "install", "--yes")
    (root / "var/lib/gpuhealth/events/n1-2026-W49.jsonl").write_text("{}\n")
    command(root, "uninstall", "--yes")
    assert (root / "var/lib/gpuhealth/events/n1-2026-W49.jsonl").exists()
    assert not (root / "var/lib/gpuhealth/config.json").exists()
    assert not (root / "usr/libexec").exists()
    command(root, "install", "--yes")
    assert command(root, "uninstall", "--yes", "--purge")[0] == 0
    assert not (root / "var/lib/gpuhealth").exists()


@pytest.mark.parametrize("live", [None, {"prolog": PREFIX + "/prolog"}])
def test_a_hook_that_slurmd_may_start_becomes_a_no_op(root, live):
    """A Prolog that is gone drains the node: it stays, does nothing, and goes at the next uninstall."""
    command(root, "install", "--yes")
    said = uninstaller.uninstall(str(root), live)
    assert "scontrol reconfigure" in said[-1]
    path = pathlib.Path(str(root) + PREFIX + "/prolog")
    assert path.read_bytes() == uninstaller.NOTHING
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o755
    uninstaller.uninstall(str(root), {})
    assert not os.path.exists(path)


def test_lines_put_in_by_hand_keep_the_hooks(root):
    """slurm.conf still names them: no file may go."""
    command(root, "install", "--yes")
    (root / "etc/slurm/slurm.conf").write_text("Prolog=%s/prolog\n" % PREFIX)
    command(root, "uninstall", "--yes")
    assert (root / "usr/libexec/gpuhealth/prolog").exists()


def test_uninstall_without_an_installation(root, capsys):
    """Says so, exit 66."""
    assert command(root, "uninstall", "--yes")[0] == 66
    assert "nothing is installed here" in capsys.readouterr().err


def test_configless_is_not_edited(tmp_path, capsys):
    """The copy under /run/slurm comes from the controller and is overwritten."""
    (tmp_path / "run/slurm/conf").mkdir(parents=True)
    (tmp_path / "run/slurm/conf/slurm.conf").write_text("ClusterName=x\n")
    assert command(tmp_path, "install", "--yes", "--apply")[0] == 65
    assert "configless" in capsys.readouterr().err
    code, text = command(tmp_path, "install", "--yes")
    assert code == 0 and "add       Prolog=" in text


def test_without_slurm_conf(tmp_path):
    """On an image that has none yet, everything else is set up, and the lines are in a file."""
    code, text = command(tmp_path, "install", "--yes")
    assert code == 0 and "no slurm.conf here" in text
    assert "Prolog=%s/prolog" % PREFIX in (tmp_path / "etc/slurm/gpuhealth.slurm.conf").read_text()


def test_without_a_terminal_yes_is_needed(root, monkeypatch, capsys):
    """A script that forgot --yes gets an error, not a question."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert command(root, "install")[0] == 64
    assert "give --yes" in capsys.readouterr().err
    assert not (root / "usr").exists()


def test_a_bad_interpreter_path_is_refused():
    """The kernel splits a first line at spaces and cuts it at 127 characters."""
    for path in ("/opt/my python/bin/python", "python3", "/" + "x" * 130):
        with pytest.raises(UsageError):
            render.hook("prolog", path, ["/lib"])


def test_only_root_installs(monkeypatch):
    """Before anything is looked at."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionDenied, match="by root"):
        install_command.must_be_trusted(sys.executable)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make files of others")
def test_what_others_can_change_is_found(tmp_path):
    """Owner, mode and the folders above count; a sticky /tmp does not."""
    good = tmp_path / "good"
    good.mkdir()
    (good / "python").write_text("")
    assert trust.weak_points(str(good / "python")) == []
    os.chmod(good, 0o777)
    assert trust.weak_points(str(good / "python")) == ["%s is writable by others (mode 0777)" % good]
    os.chmod(good, 0o755)
    os.chown(good / "python", 1000, 0)
    assert trust.weak_points(str(good / "python")) == ["%s belongs to uid 1000" % (good / "python")]
    (good / "link").symlink_to(good / "python")
    assert any("uid 1000" in text for text in trust.weak_points(str(good / "link")))
    assert any("uid 1000" in text for text in trust.weak_tree(str(good)))


def test_healthcheck_site_quotes_what_it_calls():
    """A path with a quote or a space is still one word."""
    text = render.healthcheck_site("/opt/it's here/nhc", PREFIX + "/healthcheck")
    assert "'/opt/it'\"'\"'s here/nhc' \"$@\"" in text


@pytest.mark.allow_subprocess
@pytest.mark.parametrize("site_exit", [0, 7])
def test_healthcheck_site_runs_both_and_keeps_the_sites_status(tmp_path, site_exit):
    """The site's check first, ours always, and slurmd sees the status it saw before."""
    log = tmp_path / "log"
    for name, status in (("site", site_exit), ("ours", 1)):
        (tmp_path / name).write_text("#!/bin/sh\necho %s >> %s\nexit %d\n" % (name, log, status))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "both").write_text(render.healthcheck_site(str(tmp_path / "site"), str(tmp_path / "ours")))
    assert subprocess.run(["/bin/sh", str(tmp_path / "both")]).returncode == site_exit
    assert log.read_text() == "site\nours\n"


def run_hook(tmp_path, name, hook_module):
    """Run a rendered hook against a package whose hook.py is `hook_module` (None: no package); exit status."""
    if hook_module is not None:
        (tmp_path / "lib/slurm_gpuhealth").mkdir(parents=True)
        (tmp_path / "lib/slurm_gpuhealth/__init__.py").write_text("")
        (tmp_path / "lib/slurm_gpuhealth/hook.py").write_text(hook_module)
    path = tmp_path / name
    path.write_text(render.hook(name, sys.executable, [str(tmp_path / "lib")]))
    path.chmod(0o755)
    return subprocess.run([str(path)], capture_output=True, text=True, env={})


@pytest.mark.allow_subprocess
@pytest.mark.parametrize("name", render.HOOKS)
def test_hook_hands_on_phase_and_status(tmp_path, name):
    """The template calls main with its own phase, ends with its status, and leaves no byte code behind."""
    done = run_hook(tmp_path, name, "import os\ndef main(phase):\n    os.write(1, phase.encode())\n    return 1\n")
    assert (done.returncode, done.stdout) == (1, name)
    assert not (tmp_path / "lib/slurm_gpuhealth/__pycache__").exists()


@pytest.mark.allow_subprocess
@pytest.mark.parametrize("module", [
    None, "def main(:\n", "raise ValueError('x')\n", "import nothing_like_this\n", "def other(): pass\n",
    "def main(phase):\n    raise SystemExit(3)\n", "def main(phase):\n    return 1 / 0\n"])
def test_our_own_failure_never_drains(tmp_path, module):
    """No package, a syntax error, an exception: exit 0, as slurmd drains the node for anything else."""
    done = run_hook(tmp_path, "prolog", module)
    assert done.returncode == 0, done.stderr


@pytest.mark.allow_subprocess
def test_hook_ignores_the_environment(tmp_path):
    """-I and -S: no PYTHONPATH, no user site, no .pth file reaches a hook that runs as root."""
    evil = tmp_path / "evil/slurm_gpuhealth"
    evil.mkdir(parents=True)
    (evil / "__init__.py").write_text("")
    (evil / "hook.py").write_text("def main(phase): return 9\n")
    path = tmp_path / "prolog"
    path.write_text(render.hook("prolog", sys.executable, [str(tmp_path / "nothing")]))
    path.chmod(0o755)
    done = subprocess.run([str(path)], env={"PYTHONPATH": str(tmp_path / "evil")}, cwd=tmp_path / "evil")
    assert done.returncode == 0


def test_python_paths_name_where_the_modules_are():
    """The folder of this package and those of pynvml and yaml, each once."""
    folders = render.python_paths()
    assert os.path.exists(os.path.join(folders[0], "slurm_gpuhealth", "hook.py"))
    assert len(set(folders)) == len(folders)
    assert all(any(os.path.exists(os.path.join(folder, name)) for folder in folders)
               for name in ("pynvml.py", "yaml/__init__.py"))


def test_record_names_version_and_interpreter(root):
    """The doctor and the next install read it."""
    command(root, "install", "--yes", "--node", "n1")
    record = installer.read_record(str(root))
    assert (record["version"], record["node"], record["prefix"], record["python"]) == (
        __version__, "n1", PREFIX, sys.executable)
