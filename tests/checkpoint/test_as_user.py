"""Looking as the job's user, in a child, with a deadline."""
import os
import time

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint import as_user, find

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def spec(path, **more):
    return dict({"path": str(path), "accepts": ["verified", "structure-only"], "level": "full", "known": None}, **more)


@pytest.fixture
def run_of_nobody():
    """A run that belongs to nobody, where nobody can get to (pytest's own folders are root's alone)."""
    import shutil
    import tempfile
    top = tempfile.mkdtemp()
    run = build.sealed(top + "/run/step-5", 5)
    for folder, _, files in os.walk(top):
        os.chown(folder, NOBODY, NOBODY)
        for name in files:
            os.chown(os.path.join(folder, name), NOBODY, NOBODY)
            os.chmod(os.path.join(folder, name), 0o600)
    os.chmod(top, 0o700)
    yield os.path.dirname(run)
    shutil.rmtree(top)


@needs_root
def test_private_files_are_verified_as_their_user(run_of_nobody):
    """0600 files in a 0700 folder: the user sees them, and root gets plain data."""
    found = as_user.resolve_as(NOBODY, NOBODY, spec(run_of_nobody), 10)
    assert (found.outcome, found.chosen.step, found.chosen.level) == ("found", 5, "verified")
    assert found.chosen.path == run_of_nobody + "/step-5"


@needs_root
def test_what_the_user_may_not_read_is_not_read_for_him(tmp_path):
    """Root's files are not opened in a user's name: could not look."""
    build.sealed(tmp_path / "run" / "step-5", 5)
    os.chmod(str(tmp_path), 0o700)
    found = as_user.resolve_as(NOBODY, NOBODY, spec(tmp_path / "run"), 10)
    assert found.outcome == "could-not-look"
    assert "Permission denied" in found.reason


def test_root_is_refused(tmp_path):
    """A job of root's gets no child that opens files as root."""
    assert as_user.resolve_as(0, 0, spec(tmp_path), 5).outcome == "could-not-look"


@needs_root
def test_a_child_that_hangs_is_could_not_look(run_of_nobody, monkeypatch):
    """No answer within the deadline: said so, in time."""
    monkeypatch.setattr(find, "latest", lambda *args: time.sleep(60))
    started = time.monotonic()
    found = as_user.resolve_as(NOBODY, NOBODY, spec(run_of_nobody), 1)
    assert time.monotonic() - started < 3
    assert found.outcome == "could-not-look"
    assert "no answer" in found.reason


@needs_root
def test_a_child_that_breaks_is_could_not_look(run_of_nobody, monkeypatch):
    """A fault of ours in the child is no verdict about the checkpoints."""
    def broken(*args):
        raise RuntimeError("a fault")
    monkeypatch.setattr(find, "latest", broken)
    found = as_user.resolve_as(NOBODY, NOBODY, spec(run_of_nobody), 5)
    assert (found.outcome, "a fault" in found.reason) == ("could-not-look", True)


@needs_root
def test_memory_is_limited(run_of_nobody, monkeypatch):
    """A pickle that needs more memory than the child may have is passed over; the node is not put at risk."""
    path = run_of_nobody + "/step-9.pt"
    build.write(path, build.torch_state(b"\x80\x02" + b"]" * (6 << 20) + b"."))
    os.chown(path, NOBODY, NOBODY)
    with open("/proc/self/statm") as handle:
        now = int(handle.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    real = as_user.supervise.AsUser
    monkeypatch.setattr(as_user.supervise, "AsUser", lambda uid, gid: real(uid, gid, now + (200 << 20), 60))
    found = as_user.resolve_as(NOBODY, NOBODY, spec(run_of_nobody), 20)
    assert (found.outcome, found.chosen.step) == ("found", 5)
    assert found.passed == ((path, "needs more memory to read than is allowed"),)
