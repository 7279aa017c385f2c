"""The node's memory is never half written, and a corrupt file never keeps a node from working."""
import json
import os
import time

import pytest

from slurm_gpuhealth import supervise
from slurm_gpuhealth.errors import StateError
from slurm_gpuhealth.model import Ack, Incident, Subject
from slurm_gpuhealth.state import State, write_atomic


@pytest.fixture
def state(tmp_path):
    return State(str(tmp_path))


def test_read_of_nothing_is_empty(state):
    """A new node has no memory and says nothing about it."""
    assert state.read("node.json") == {}
    assert state.notes == []


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"null", b'{"a":1}trailing'])
def test_corrupt_file_is_set_aside(state, tmp_path, content):
    """What cannot be understood is kept for a look, said, and started anew."""
    state.write("node.json", {"a": 1})
    path = tmp_path / "var/lib/gpuhealth/node.json"
    path.write_bytes(content)
    assert state.read("node.json") == {}
    assert "set aside" in state.notes[0]
    aside = [name for name in os.listdir(path.parent) if ".corrupt-" in name]
    assert (path.parent / aside[0]).read_bytes() == content
    assert not path.exists()


def test_link_is_not_followed(state, tmp_path):
    """A link in the place of a state file is not read: it could point anywhere."""
    secret = tmp_path / "secret"
    secret.write_text('{"a": 1}')
    folder = tmp_path / "var/lib/gpuhealth"
    folder.mkdir(parents=True)
    (folder / "node.json").symlink_to(secret)
    assert state.read("node.json") == {}
    assert state.notes


def test_rights(state, tmp_path):
    """Files are root's alone; the folder too."""
    state.write("node.json", {"a": 1})
    folder = tmp_path / "var/lib/gpuhealth"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "node.json").stat().st_mode & 0o777 == 0o600


def test_failed_write_leaves_the_old_one(tmp_path):
    """A write that fails half way (here: the target is a folder) leaves no temporary file and raises."""
    target = tmp_path / "x"
    target.mkdir()
    (target / "inside").write_text("")
    with pytest.raises(OSError):
        write_atomic(str(target), b"new")
    assert os.listdir(tmp_path) == ["x"]


def test_disk_error_is_a_state_error(state, tmp_path):
    """The hook gets one kind of error for a disk that refuses."""
    (tmp_path / "var").write_text("a file where a folder should be")
    with pytest.raises(StateError, match="cannot write"):
        state.write("node.json", {})


def test_incidents_round_trip(state):
    """Incidents and acks come back as they were."""
    incident = Incident("a1b2c3", "boot|GH-XID79|gpu3", "boot", "GH-XID79", Subject("gpu", 3, "GPU-1", "0000:18:00.0"),
                        5.0, "GH-XID79 gpu3", "/e", True, ("7.0",))
    state.save_incidents([incident], [Ack("GH-PCIE-WIDTH", "gpu5", 9.0, "root")])
    assert state.incidents() == ([incident], [Ack("GH-PCIE-WIDTH", "gpu5", 9.0, "root")])


def test_open_incidents_are_never_dropped(state):
    """The list is bounded, but only closed incidents are forgotten."""
    many = [Incident("%06x" % n, closed=None if n % 2 else 1.0) for n in range(20)]
    state.save_incidents(many, [], keep=5)
    assert [item.id for item in state.incidents()[0]] == ["%06x" % n for n in range(1, 20, 2)]


def test_lock_is_exclusive_and_has_a_deadline(tmp_path):
    """Two hooks of one node take turns; the second gives up on time."""
    first, second = State(str(tmp_path)), State(str(tmp_path))
    assert first.lock(1)
    started = time.monotonic()
    assert not second.lock(0.2)
    assert 0.15 < time.monotonic() - started < 1
    first.unlock()
    assert second.lock(0.2)


def test_left_behind_is_of_this_boot_only(state):
    """A pid of before the reboot means nothing."""
    state.save_left_behind("boot-1", {"nvml": [{"pid": 5, "ticks": 7, "since": 1}]})
    assert state.left_behind("boot-1")["nvml"][0]["pid"] == 5
    assert state.left_behind("boot-2") == {}


def test_names_skips_temporaries(state, tmp_path):
    """A file that is still being written is not an entry of the spool."""
    state.write("1.json", {"a": 1}, state.folder + "/spool")
    (tmp_path / "var/lib/gpuhealth/spool/.2.json.99.tmp").write_text(json.dumps({}))
    assert state.names("spool") == ["1.json"]
    assert state.names("no-such") == []


def test_child_left_behind_does_not_hold_the_lock(tmp_path):
    """One that no signal ends would keep the node's lock as long as it lives."""
    first, second = State(str(tmp_path)), State(str(tmp_path))
    assert first.lock(1)
    child = supervise.start("sleeper", lambda spec, emit: time.sleep(2), None, 5)
    time.sleep(0.2)
    first.unlock()
    assert second.lock(0.2)
    second.unlock()
    supervise.gather([child], until=time.monotonic(), grace=0.1)


def test_incidents_are_kept_in_run_while_the_disk_refuses(state, tmp_path):
    """Each round would open the same incident anew otherwise; the disk's own file counts again once it was written."""
    state.save_incidents([Incident("a")], [])
    folder = tmp_path / "var/lib/gpuhealth/incidents.json"
    folder.unlink()
    folder.mkdir()      # a rename onto it fails
    with pytest.raises(StateError):
        state.save_incidents([Incident("b")], [])
    assert [item.id for item in State(str(tmp_path)).incidents()[0]] == ["b"]
    folder.rmdir()
    state.save_incidents([Incident("b"), Incident("c")], [])
    assert [item.id for item in State(str(tmp_path)).incidents()[0]] == ["b", "c"]
    assert not (tmp_path / "run/gpuhealth/incidents.json").exists()


def test_what_was_set_aside_is_no_entry(state, tmp_path):
    """A spool entry that cannot be read is met once, not by each hook for ever."""
    (tmp_path / "var/lib/gpuhealth/spool").mkdir(parents=True)
    (tmp_path / "var/lib/gpuhealth/spool/1.json").write_text("{")
    assert state.read("1.json", state.folder + "/spool") == {}
    assert state.names("spool") == []
