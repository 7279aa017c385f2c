"""systemd units, as `systemctl show` tells them."""
import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.command import Done
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.facts_node import Service
from slurm_gpuhealth.probes import services

OK = F.SourceStatus("services", "ok")
# In the form that systemctl(1) documents, written by hand, of: sssd (an alias's answer has another Id),
# nothere, and the three of NVIDIA.
SHOWN = """\
Id=sssd-real.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
Result=success

Id=nothere.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
Result=success

Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=failed
SubState=failed
UnitFileState=enabled
Result=exit-code

Id=nvidia-imex.service
LoadState=loaded
ActiveState=inactive
SubState=dead
UnitFileState=disabled
Result=success

Id=nvidia-persistenced.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=static
Result=success
"""
CFG = overlay(DEFAULTS, {"services": ["sssd", "nothere.service"]})


def spec(root=""):
    return services.spec(CFG, {"root": str(root), "phase": "healthcheck"})


def read(about):
    records = []
    services.read(about, lambda kind, plain: records.append((kind, plain)))
    return services.assemble(records, about, OK)["services"]


def test_fixture_node(tmp_path):
    """Each unit in the order in which it was asked for, an alias under the name that the site uses."""
    builders.write_node(tmp_path, {"/systemctl.txt": SHOWN})
    found = read(spec(tmp_path))
    assert found[:2] == (Service("sssd.service", "loaded", "active", "running", "success", "enabled"),
                         Service("nothere.service", "not-found", "inactive", "dead", "success", ""))
    assert [one.name for one in found[2:]] == list(services.OWN)


def test_without_systemd(tmp_path):
    """Absent is a reason of its own: containers have none."""
    assert read(spec(tmp_path)) == F.Unknown(F.ABSENT, "no systemd")


@pytest.mark.parametrize("text", ["", "Failed to connect to bus", SHOWN.replace("ActiveState=failed\n", ""),
                                  SHOWN.split("\n\n", 1)[1]])
def test_output_that_is_not_as_it_should_be(text):
    """A block too few or one without its state: nothing is guessed."""
    assert services.parse(text, spec()["units"]) == []


def test_names_of_units():
    """What has no type is a service; nothing is asked for twice."""
    assert [services.full_name(name) for name in ("sssd", "a.b", "data.mount", "x@1.service")] == [
        "sssd.service", "a.b.service", "data.mount", "x@1.service"]
    about = services.spec(overlay(DEFAULTS, {"services": ["nvidia-imex"]}), {"root": "", "phase": "manual"})
    assert sorted(about["units"]) == sorted(services.OWN)


@pytest.fixture
def systemctl(monkeypatch):
    """Answers of systemctl, one a call; gives the list of calls."""
    calls, answers = [], []

    def run(argv, deadline, **more):
        calls.append((argv, deadline))
        return answers.pop(0)
    monkeypatch.setattr(services.os, "access", lambda path, mode: True)
    monkeypatch.setattr(services.os.path, "isdir", lambda path: True)
    monkeypatch.setattr(services.command, "run", run)
    monkeypatch.setattr(services.time, "sleep", lambda seconds: None)
    run.calls, run.answers = calls, answers
    return run


def test_one_call_that_cannot_be_misled(systemctl):
    """A unit's name is never taken for an option."""
    systemctl.answers.append(Done(0, SHOWN.replace("ActiveState=failed", "ActiveState=active"), ""))
    assert len(read(spec())) == 5
    (argv, deadline), = systemctl.calls
    assert argv[:2] == ["/usr/bin/systemctl", "show"] and argv[argv.index("--") + 1:] == spec()["units"]
    assert deadline < 3


def test_a_restart_is_waited_for(systemctl):
    """Somebody restarts a unit at this very moment: looked at once more."""
    passing = SHOWN.replace("ActiveState=active\nSubState=running\nUnitFileState=enabled",
                            "ActiveState=deactivating\nSubState=stop-sigterm\nUnitFileState=enabled")
    assert passing != SHOWN
    systemctl.answers += [Done(0, passing, ""), Done(0, SHOWN, "")]
    assert read(spec())[0].active == "active"
    assert len(systemctl.calls) == 2


@pytest.mark.parametrize("done", [Done(1, "", "Failed to connect to bus: No such file"), Done(-15, "", "", True),
                                  Done(0, "?", "")])
def test_no_answer_is_unknown(systemctl, done):
    """An error, a time-out, something else: said, and not "none"."""
    systemctl.answers.append(done)
    found = read(spec())
    assert found.reason == F.ERROR and "systemctl" in found.detail


@pytest.mark.parametrize("outcome,reason", [("late", F.TIMEOUT), ("hung", F.HUNG), ("failed", F.ERROR)])
def test_late(outcome, reason):
    """Late is unknown."""
    status = F.SourceStatus("services", outcome, 3.0, "why")
    assert services.assemble([], spec(), status)["services"] == F.Unknown(reason, "why")
