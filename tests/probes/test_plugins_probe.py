"""A site's own checks: whom we run, how, and what we make of the answer."""
import json
import os
import sys
import time

import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import supervise
from slurm_gpuhealth.command import Done
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.facts_node import PluginResult
from slurm_gpuhealth.probes import plugins

OK = F.SourceStatus("plugin:x", "ok")


def configured(**changes):
    return {"name": "x", "command": ["/opt/x"], "phases": ["healthcheck"], "deadline": 3, "fatal": True, **changes}


def specs(phase="healthcheck", root="", **changes):
    cfg = overlay(DEFAULTS, {"plugins": [configured(**changes), configured(name="y", phases=["prolog", "epilog"])]})
    return plugins.spec(cfg, {"root": root, "phase": phase, "job": 77})


def said(out="", rc=0, err="", timed_out=False):
    return plugins.understand("x", Done(rc, out, err, timed_out, 3.0))


def test_phases_decide_where_it_runs():
    """One child each, with the site's deadline; by hand all of them."""
    assert [one["source"] for one in specs()] == ["plugin:x"]
    assert [one["source"] for one in specs("epilog")] == ["plugin:y"]
    assert [one["source"] for one in specs("manual")] == ["plugin:x", "plugin:y"]
    assert specs()[0]["deadline"] > 3 and specs()[0]["seconds"] == 3


@pytest.mark.parametrize("rc,out,status,seen,data", [
    (0, "RAID OK: 4 disks | disks=4;;;0\nmore\n", 0, "RAID OK: 4 disks", {"perfdata": "disks=4;;;0"}),
    (1, "slow\n", 1, "slow", None), (2, "disk 3\tfailed", 2, "disk 3 failed", None), (3, "", 3, "", None),
    (0, "[OK] fine", 0, "[OK] fine", None)])
def test_nagios(rc, out, status, seen, data):
    """Exit code and first line; what is behind the bar is data."""
    assert said(out, rc) == [PluginResult("x", "ok", status, seen, "", "", data)]


def test_json():
    """One answer, or several; statuses in any case; data only as far as it is small."""
    one = {"v": 1, "status": "Critical", "message": "disk\n3 failed", "code": "R3", "subject": "gpu3", "data": {"a": 1}}
    assert said(json.dumps(one)) == [PluginResult("x", "ok", 2, "disk 3 failed", "gpu3", "R3", {"a": 1})]
    several = {"findings": [{"status": "ok"}, dict(one, data={"a": "x" * 5000})]}
    assert [(result.status, result.data) for result in said(json.dumps(several))] == [(0, None), (2, None)]
    assert said('{"v": 1, "findings": [], "message": "fine"}') == [PluginResult("x", "ok", 0, "fine")]


@pytest.mark.parametrize("out", [
    "{", '{"v": 2, "status": "ok"}', '{"status": "OKAY"}', '{"status": 2}', "{}", '{"findings": {}}',
    '{"findings": [1]}', '{"findings": [{}]}', '{"status": "ok", "message": {"a": 1}}',
    '{"status": "ok", "data": {"a": NaN}}',
    '{"a":' * 100000, json.dumps({"findings": [{"status": "ok"}] * 51}), "{" + "x" * 70000])
def test_broken_answers_are_unknown(out):
    """What is not understood is never ok and never a fault."""
    (result,) = said(out)
    assert (result.outcome, result.status) == ("failed", None) and result.seen


@pytest.mark.parametrize("rc,word", [(4, "code 4"), (127, "code 127"), (-11, "signal 11"), (None, "code None")])
def test_exit_codes_above_three(rc, word):
    """Also with a good answer: the program itself did not end well."""
    (result,) = said('{"status": "ok"}', rc, "boom\x1b[31m\n")
    assert result.outcome == "failed" and word in result.seen and "\n" not in result.seen


def test_late():
    """Late is late, whatever was said before."""
    assert said('{"status": "critical"}', -15, timed_out=True)[0].outcome == "late"
    late = F.SourceStatus("plugin:x", "late", 4.0, "no answer in 4.0 s")
    assert plugins.assemble([], specs()[0], late)["plugins"] == (PluginResult("x", "late", None, "no answer in 4.0 s"),)
    failed = F.SourceStatus("plugin:x", "failed", 0.0, "could not be started: x")
    assert plugins.assemble([], specs()[0], failed)["plugins"][0].outcome == "failed"


# -- run for real

pytestmark = pytest.mark.allow_subprocess


def script(folder, text, name="check", mode=0o755):
    path = os.path.join(str(folder), name)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("#!/bin/sh\n" + text)
    os.chmod(path, mode)
    return path


def run(path, root="/", deadline=3.0, **changes):
    """Run a plug-in as on a fixture node (whose programs need not be root's)."""
    about = dict(specs(command=[path, "one two", "$(id)"], deadline=deadline)[0], root=root, **changes)
    result = supervise.call(plugins.read, about, about["deadline"])
    return plugins.assemble(result.records, about, result.status)["plugins"], result


def test_environment_and_arguments(tmp_path):
    """No shell, a clean environment, nothing to read, the phase and the job in variables."""
    path = script(tmp_path, 'read line && exit 9\necho "$2|$GPUHEALTH_PHASE|$GPUHEALTH_JOB|$SECRET|$PATH"\nexit 1\n')
    os.environ["SECRET"] = "s"
    try:
        (found,), _ = run(path)
    finally:
        del os.environ["SECRET"]
    assert (found.status, found.seen) == (1, "$(id)")
    assert found.data["perfdata"].startswith("healthcheck|77||/usr/sbin")


def test_deadline(tmp_path):
    """Ended at its deadline, with what it has started."""
    path = script(tmp_path, "sleep 60\n")
    started = time.monotonic()
    (found,), _ = run(path, deadline=0.5)
    assert found.outcome == "late" and time.monotonic() - started < 2.5


def test_program_ends_with_its_child(tmp_path):
    """The hook has no more time: the program is not left behind alone."""
    path = script(tmp_path, 'echo $$ > "%s/pid"; sleep 60\n' % tmp_path)
    about = dict(specs(command=[path])[0], root="/")
    child = supervise.start("plugin:x", plugins.read, about, 0.7)
    supervise.gather([child], grace=1.0)
    with open(tmp_path / "pid") as handle:
        pid = int(handle.read())
    time.sleep(0.3)
    assert supervise.process_start(pid) is None or supervise.process_start(pid)[0] in "ZX"


@pytest.mark.skipif(os.getuid() != 0, reason="files of root's")
def test_only_what_is_roots_own_is_run(tmp_path):
    """Program and folders above it: root's, and writable by nobody else."""
    assert "can be written by others" in plugins.untrusted(script("/dev/shm", "", "gpuhealth-test-%d" % os.getpid()))
    os.unlink("/dev/shm/gpuhealth-test-%d" % os.getpid())
    folder = "/opt/gpuhealth-test-%d" % os.getpid()
    os.mkdir(folder, 0o755)
    try:
        good = script(folder, "exit 0\n")
        assert plugins.untrusted(good) == ""
        assert "not executable" in plugins.untrusted(script(folder, "", "b", 0o644))
        assert "written by others" in plugins.untrusted(script(folder, "", "c", 0o775))
        os.chown(script(folder, "", "d"), 1000, 0)
        assert "does not belong to root" in plugins.untrusted(folder + "/d")
        assert "is not a file" in plugins.untrusted(folder)
        assert "No such file" in plugins.untrusted(folder + "/none")
        os.chmod(folder, 0o777)
        assert "can be written" in plugins.untrusted(good)
        (found,), _ = run(good, root="")
        assert found.outcome == "failed" and "can be changed by others" in found.seen
        os.chmod(folder, 0o755)
        (found,), _ = run(good, root="")
        assert (found.outcome, found.status) == ("ok", 0)
        os.symlink(good, folder + "/link")
        os.lchown(folder + "/link", 65534, 65534)       # who owns the link chooses what root runs
        (found,), _ = run(folder + "/link", root="")
        assert found.outcome == "failed" and "link that does not belong to root" in found.seen
    finally:
        for name in os.listdir(folder):
            os.unlink(folder + "/" + name)
        os.rmdir(folder)


def test_examples_of_the_documentation(tmp_path):
    """What docs/plugins.md shows runs, and is understood."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "docs", "plugins.md"), encoding="utf-8") as handle:
        page = handle.read()
    shell = page.split("```sh\n")[1].split("```")[0].replace("/scratch", "/")
    python = page.split("```python\n")[1].split("```")[0].replace("/usr/bin/python3", os.path.realpath(sys.executable))
    python = python.replace("/usr/sbin/mdadm", "/bin/false")
    for name, text, statuses in (("sh", shell, (0, 1, 2)), ("py", python, (2,))):
        path = os.path.join(str(tmp_path), name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        os.chmod(path, 0o755)
        (found,), _ = run(path, deadline=10.0)
        assert found.outcome == "ok" and found.status in statuses and found.seen, found
