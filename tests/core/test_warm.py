"""The child that is started before its task is known."""
import json
import os
import time

import builders
import pytest

from slurm_gpuhealth import supervise
from slurm_gpuhealth.probes import warm


@pytest.fixture
def early(monkeypatch, tmp_path):
    monkeypatch.setattr(warm, "_SIGNS", (str(tmp_path),))
    started = warm.start()
    assert started is not None
    yield started
    started.forget()


def gone(pid):
    for _ in range(200):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return True
        time.sleep(0.02)
    return False


def test_it_does_its_task(early, tmp_path):
    """What it is told to read is read, as by a child that is started then."""
    builders.write_node(tmp_path, {"/nvml.json": json.dumps({"driver": "550.1", "gpus": []})})
    child = early.go({"root": str(tmp_path)}, 5)
    result = supervise.gather([child])["nvml"]
    assert result.status.outcome == "ok"
    assert dict(result.records)["count"] == {"count": 0}


def test_without_a_task_it_ends_by_itself(early):
    """Kill switch, a node without GPUs: nothing is asked, nothing is left behind."""
    early.forget()
    assert gone(early._child.pid)


def test_another_child_does_not_keep_it_waiting(early):
    """The end of its pipe is seen also while a later child, which may hang for ever, lives."""
    other = supervise.start("other", lambda spec, emit: time.sleep(30), None, 30)
    try:
        early.forget()
        assert gone(early._child.pid)
    finally:
        os.kill(other.pid, 9)
        os.waitpid(other.pid, 0)
        os.close(other.fd)
        supervise._open_fds.discard(other.fd)


def test_its_deadline_runs_from_the_task_on(early, tmp_path):
    """It may have waited; a source that hangs is late as if it had been started with its task."""
    os.mkfifo(tmp_path / "nvml.json")       # open() waits for a writer that never comes
    time.sleep(0.3)
    before = time.monotonic()
    result = supervise.gather([early.go({"root": str(tmp_path)}, 0.5)], grace=0.1)["nvml"]
    assert result.status.outcome == "late"
    assert 0.4 < time.monotonic() - before < 3


def test_no_sign_of_a_gpu_no_child(monkeypatch, tmp_path):
    """A node without GPUs pays nothing."""
    monkeypatch.setattr(warm, "_SIGNS", (str(tmp_path / "none"),))
    assert warm.start() is None
