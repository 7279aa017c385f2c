"""What a job's own user may read about its restarts."""
import json
import os
import stat

import pytest

from slurm_gpuhealth import job_history

AS_ROOT = os.geteuid() == 0
UID = 65534 if AS_ROOT else os.geteuid()


def entry(number=1, **more):
    return dict({"time": 1000.0 + number, "restart": number, "what": "requeued", "node": "n1", "code": "GH-XID79",
                 "reason": "cannot go on", "resume": {"path": "/c/1", "step": 4, "level": "verified"},
                 "passed": [{"path": "/c/2", "reason": "cut off"}]}, **more)


def add(tmp_path, number=1, cfg=None, **more):
    return job_history.append_history(str(tmp_path), cfg or {}, UID, None, 12, entry(number, **more))


def local(tmp_path):
    return tmp_path / "run/gpuhealth/jobs/job-12.history.json"


def test_entries_come_back_in_order(tmp_path):
    """Each entry once, oldest first, in the documented form."""
    assert add(tmp_path, 2) == [] and add(tmp_path, 1) == [] and add(tmp_path, 1) == []
    entries, notes = job_history.read(str(tmp_path), {}, 12)
    assert entries == [entry(1), entry(2)] and notes == []
    plain = json.loads(local(tmp_path).read_text())
    assert (plain["v"], plain["job"]) == (1, "12")


def test_the_file_is_its_users_and_nobody_elses(tmp_path):
    """0400 and the user's own, in a folder that can be passed through but not listed."""
    add(tmp_path)
    seen = os.stat(local(tmp_path))
    assert (stat.S_IMODE(seen.st_mode), seen.st_uid) == (0o400, UID)
    assert stat.S_IMODE(os.stat(local(tmp_path).parent).st_mode) == 0o711


def test_it_does_not_grow_for_ever(tmp_path):
    """The newest entries are kept."""
    for number in range(job_history.MAX_ENTRIES + 5):
        add(tmp_path, number)
    entries, _ = job_history.read(str(tmp_path), {}, 12)
    assert len(entries) == job_history.MAX_ENTRIES and entries[-1]["restart"] == job_history.MAX_ENTRIES + 4


def test_hostile_texts_and_keys_are_bounded(tmp_path):
    """Long texts are cut and unknown keys left out."""
    add(tmp_path, reason="x" * 10000, extra="no")
    [found], _ = job_history.read(str(tmp_path), {}, 12)
    assert len(found["reason"]) < 600 and "extra" not in found


@pytest.mark.parametrize("bad", ["../x", "1;2", "", "a", "1_2_3", "_1"])
def test_only_job_ids_name_a_file(bad):
    """Whatever else is asked for is refused."""
    with pytest.raises((ValueError, IndexError)):
        job_history.file_name(bad)
    assert job_history.file_name("4_2") == "job-4_2.history.json"


def test_the_shared_copy_is_read_too(tmp_path):
    """Entries of two nodes come together through the shared folder."""
    shared = {"shared_dir": str(tmp_path / "shared")}
    os.mkdir(tmp_path / "shared")
    assert job_history.append_history(str(tmp_path / "n1"), shared, UID, None, 12, entry(1)) == []
    assert job_history.append_history(str(tmp_path / "n2"), shared, UID, None, 12, entry(2, node="n2")) == []
    entries, _ = job_history.read(str(tmp_path / "n3"), shared, 12)
    assert [one["node"] for one in entries] == ["n1", "n2"]


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    """Without the sticky bit somebody could put a file of his in the place of another's."""
    os.makedirs(tmp_path / "shared/jobs")
    os.chmod(tmp_path / "shared/jobs", 0o777)
    [note] = add(tmp_path, cfg={"shared_dir": str(tmp_path / "shared")})
    assert "sticky" in note
    assert job_history.read(str(tmp_path), {}, 12)[0] == [entry(1)]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"entries": 7}', '{"entries": [1, "x"]}', "[" * 100000])
def test_a_broken_file_is_as_good_as_none(tmp_path, content):
    """It is read as empty, and written anew."""
    local(tmp_path).parent.mkdir(parents=True)
    local(tmp_path).write_text(content)
    os.chmod(local(tmp_path).parent, 0o711)
    assert job_history.read(str(tmp_path), {}, 12)[0] == []
    assert add(tmp_path) == []
    assert job_history.read(str(tmp_path), {}, 12)[0] == [entry(1)]


def test_another_ones_file_is_not_believed(tmp_path):
    """In a folder where everybody may create files, only those of the right owner count."""
    add(tmp_path)
    assert job_history.read(str(tmp_path), {}, 12, owners=(UID + 1,))[0] == []
    assert job_history.read(str(tmp_path), {}, 12, owners=(UID,))[0] == [entry(1)]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/etc/passwd", path)])
def test_only_plain_files_are_read(tmp_path, make):
    """A FIFO or a link under the name neither blocks nor leads anywhere."""
    local(tmp_path).parent.mkdir(parents=True)
    make(local(tmp_path))
    entries, _ = job_history.read(str(tmp_path), {}, 12)
    assert entries == []


def test_old_histories_go(tmp_path):
    """The node's own copies are removed a month after the last entry."""
    add(tmp_path)
    now = os.stat(local(tmp_path)).st_mtime
    assert job_history.prune(str(tmp_path), now) == 0
    assert job_history.prune(str(tmp_path), now + 31 * 86400) == 1
    assert job_history.prune(str(tmp_path / "none"), now) == 0
