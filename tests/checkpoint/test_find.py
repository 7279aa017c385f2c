"""The newest acceptable checkpoint of a run, and what is said when there is none."""
import os
import time

import ckpt_builders as build
import pytest

from slurm_gpuhealth.checkpoint import find, mounted
from slurm_gpuhealth.checkpoint.verdict import Trouble

WHOLE = build.golden("whole.pt")


def names(items):
    return [os.path.basename(getattr(item, "path", item[0])) for item in items]


def run_of(tmp_path, *steps):
    """A run's folder with a sealed checkpoint a step."""
    for step in steps:
        build.at_time(build.sealed(tmp_path / "run" / ("step-%06d" % step), step), 1000 + step)
    return str(tmp_path / "run")


def test_the_highest_step_wins(tmp_path):
    """Newest is the highest recorded step, whatever the times and names say."""
    run = run_of(tmp_path, 100, 300, 200)
    os.rename(run + "/step-000300", run + "/a")
    build.at_time(run + "/step-000100", 9999)
    found = find.latest(run)
    assert (found.outcome, found.chosen.path, found.chosen.step, found.chosen.level) == (
        "found", run + "/a", 300, "verified")
    assert names(find.candidates(run)) == ["a", "step-000200", "step-000100"]


def test_a_cut_checkpoint_is_passed_over_with_its_reason(tmp_path):
    """The newest is cut: the one before is chosen, and the reason is kept."""
    run = run_of(tmp_path, 100, 200, 300)
    os.truncate(run + "/step-000300/model.safetensors", 50)
    os.unlink(run + "/step-000200/optimizer.safetensors")
    found = find.latest(run)
    assert found.chosen.step == 100
    assert [reason for _, reason in found.passed] == [
        "model.safetensors has 50 bytes instead of 94", "optimizer.safetensors is not there"]


def test_a_cut_torch_file_stands_where_its_name_puts_it(tmp_path):
    """A file too broken to tell its step is still named as passed over, by the number in its name."""
    run = str(tmp_path)
    build.write(run + "/epoch=1-step=120.ckpt", WHOLE)
    build.write(run + "/epoch=2-step=240.ckpt", WHOLE[:2000])
    build.write(run + "/epoch=0-step=60.ckpt", WHOLE[:2000])
    found = find.latest(run)
    assert os.path.basename(found.chosen.path) == "epoch=1-step=120.ckpt"
    assert names(found.passed) == ["epoch=2-step=240.ckpt"]
    assert found.chosen.mtime == os.stat(found.chosen.path).st_mtime


def test_without_steps_the_change_decides(tmp_path):
    """Checkpoints that record no step: the latest change is the newest, numbers in names are not believed."""
    folder = str(tmp_path)
    data = build.safetensors_bytes(build.TRAINING)
    build.at_time(build.write(folder + "/ckpt_2.safetensors", data), 2000)
    build.at_time(build.write(folder + "/ckpt_1.safetensors", data), 3000)
    assert names(find.candidates(folder)) == ["ckpt_1.safetensors", "ckpt_2.safetensors"]


def test_one_level_down(tmp_path):
    """Checkpoints in a subfolder of the run's are found, as folders and as files."""
    build.sealed(tmp_path / "run" / "checkpoints" / "step-5", 5)
    build.write(tmp_path / "run" / "files" / "last.pt", WHOLE)
    found = find.latest(str(tmp_path / "run"))
    assert found.chosen.step == 120
    assert names(find.candidates(str(tmp_path / "run"))) == ["last.pt", "step-5"]


def test_a_folder_that_is_a_checkpoint_itself(tmp_path):
    """The declared path may be one checkpoint: a sealed folder, or one file."""
    folder = build.sealed(tmp_path / "c", 7)
    assert find.latest(folder).chosen.path == folder
    path = build.write(tmp_path / "one.pt", WHOLE)
    assert find.latest(path).chosen.path == path


def test_leftovers_and_pointers_are_passed_over(tmp_path):
    """Temporary names, hidden names, markers of a running save, links and pointer files are never chosen."""
    run = run_of(tmp_path, 100)
    for name in (".tmp-step-000200", "step-000200.tmp", "tmp-checkpoint-200", "200.orbax-checkpoint-tmp-17",
                 "x.partial"):
        build.sealed(os.path.join(run, name), 200)
    build.sealed(run + "/m-last", 300)
    build.write(run + "/m-last-unfinished", b"")
    os.symlink("step-000100", run + "/latest")
    build.write(run + "/.tmpA1B2", WHOLE)
    build.write(run + "/latest_checkpointed_iteration.txt", b"200")
    found = find.latest(run)
    assert found.chosen.path == run + "/step-000100"
    reasons = {os.path.basename(path): reason for path, reason in found.passed}
    assert reasons["step-000200.tmp"] == "a temporary name"
    assert reasons["m-last"] == "marked as unfinished"
    assert reasons["latest"] == "a pointer"


def test_a_stale_pointer_is_not_believed(tmp_path):
    """DeepSpeed and others write `latest` before the parts are whole: its target is judged like any other."""
    run = run_of(tmp_path, 100, 200)
    build.write(run + "/latest", b"step-000200")
    os.unlink(run + "/step-000200/model.safetensors")
    assert find.latest(run).chosen.step == 100


def test_an_unsealed_folder_among_sealed_ones_is_unfinished(tmp_path):
    """A save that was killed before its seal leaves whole files: they are not taken for a checkpoint."""
    run = run_of(tmp_path, 100)
    build.write(run + "/step-000200/state.safetensors", build.safetensors_bytes(build.TRAINING, {"step": "200"}))
    found = find.latest(run)
    assert found.chosen.step == 100
    assert found.passed == ((run + "/step-000200", "not sealed, and others here are"),)


@pytest.mark.parametrize("mark", ["trainer_state.json", ".metadata", "mp_rank_00_model_states.pt", "commit_success.txt",
                                  "model_optim_rng.pt", "random_states_0.pkl"])
def test_parts_of_other_formats_are_not_taken_for_whole(tmp_path, mark):
    """A folder of a framework that is not judged: none of its files is offered as a checkpoint of its own."""
    build.write(tmp_path / "run" / "checkpoint-9" / mark, WHOLE)
    build.write(tmp_path / "run" / "checkpoint-9" / "other.pt", WHOLE)
    found = find.latest(str(tmp_path / "run"))
    assert found.outcome == "none-acceptable"
    assert "seal it" in found.passed[0][1]


def test_weights_only_is_accepted_only_when_asked(tmp_path):
    """The default needs a state to go on with; the site or user may say otherwise."""
    build.write(tmp_path / "w.pt", build.golden("weights.pt"))
    found = find.latest(str(tmp_path))
    assert (found.outcome, found.passed[0][1]) == ("none-acceptable",
                                                   "weights-only: no optimizer state, which is not accepted")
    assert find.latest(str(tmp_path), ("weights-only",)).chosen.level == "weights-only"


def test_structure_only_may_be_refused(tmp_path):
    """Where only verified is accepted, a file without checksums is passed over."""
    build.write(tmp_path / "a.pt", build.golden("nocrc.pt"))
    assert find.latest(str(tmp_path)).chosen.level == "structure-only"
    assert find.latest(str(tmp_path), ("verified",)).outcome == "none-acceptable"


# -- nothing there, and not being able to look

def test_empty_means_no_files_at_all(tmp_path):
    """An empty folder, one with empty folders, and one that was never made: empty. Any file: not empty."""
    run = str(tmp_path / "run")
    assert find.latest(run).outcome == "empty"
    os.makedirs(run + "/checkpoints")
    assert find.latest(run).outcome == "empty"
    build.write(run + "/checkpoints/.nfs0001", b"x")
    assert find.latest(run).outcome == "empty"
    build.write(run + "/config.json", b"{}")
    assert find.latest(run).outcome == "none-acceptable"


def test_an_empty_newest_file_is_named(tmp_path):
    """A save that got no further than its name: passed over, with why."""
    build.at_time(build.write(tmp_path / "a.pt", WHOLE), 1000)
    build.write(tmp_path / "b.pt", b"")
    found = find.latest(str(tmp_path))
    assert (found.chosen.step, found.passed) == (120, ((str(tmp_path / "b.pt"), "an empty file"),))


@pytest.mark.parametrize("where", ["a", ".tmpX", "log.txt", "checkpoints/x", "checkpoints/deep/x", "step-1.tmp/x",
                                   "latest"])
def test_a_file_anywhere_is_not_empty(tmp_path, where):
    """Whatever its name and place: a run that has files does not start over by itself."""
    build.write(tmp_path / "run" / where, b"x")
    assert find.latest(str(tmp_path / "run")).outcome == "none-acceptable"


def test_a_missing_parent_is_not_empty(tmp_path):
    """Where the folder above is gone too, a mount may be: nobody can say that there is no checkpoint."""
    found = find.latest(str(tmp_path / "gone" / "run"))
    assert found.outcome == "could-not-look"
    assert "No such file" in found.reason


def test_a_dangling_link_is_not_empty(tmp_path):
    """The user's folder is a link and its target is away."""
    os.symlink(str(tmp_path / "away"), str(tmp_path / "run"))
    assert find.latest(str(tmp_path / "run")).outcome == "could-not-look"


def test_a_link_to_the_run_is_followed(tmp_path):
    """The declared path itself may be a link, as home folders have them."""
    run = run_of(tmp_path, 100)
    os.symlink(run, str(tmp_path / "link"))
    assert find.latest(str(tmp_path / "link")).chosen.step == 100


def test_link_loops_end(tmp_path):
    """Links that go round, as the path and inside the folder: an answer."""
    os.symlink("b", str(tmp_path / "a"))
    os.symlink("a", str(tmp_path / "b"))
    assert find.latest(str(tmp_path / "a")).outcome == "could-not-look"
    run = run_of(tmp_path, 100)
    os.symlink(".", run + "/loop")
    os.symlink("..", run + "/step-000100/loop")
    assert find.latest(run).outcome == "none-acceptable"


def test_an_input_output_error_is_not_empty(tmp_path, monkeypatch):
    """EIO and ESTALE while reading the folder: could not look."""
    real = os.scandir
    run = run_of(tmp_path, 100)

    def broken(path):
        if path == run:
            raise OSError(116, "Stale file handle")
        return real(path)
    monkeypatch.setattr(os, "scandir", broken)
    found = find.latest(run)
    assert (found.outcome, "Stale file handle" in found.reason) == ("could-not-look", True)


def test_an_unreadable_folder_below_is_could_not_look(tmp_path, monkeypatch):
    """Nothing acceptable is left and some of it could not be read: that is said, and the job does not start over."""
    run = run_of(tmp_path, 100)
    real = os.scandir

    def broken(path):
        if path == run + "/step-000100":
            raise OSError(5, "Input/output error")
        return real(path)
    monkeypatch.setattr(os, "scandir", broken)
    found = find.latest(run)
    assert found.outcome == "could-not-look"
    assert found.passed == ((run + "/step-000100", "Input/output error"),)


def test_no_time_is_could_not_look(tmp_path):
    """A deadline that has passed never means that nothing is there."""
    run = run_of(tmp_path, 100)
    assert find.latest(run, until=time.monotonic()).outcome == "could-not-look"


def test_no_time_for_checksums_says_structure_only(tmp_path, monkeypatch):
    """Time for the structure only: chosen at that level. Where only verified will do: could not look."""
    from slurm_gpuhealth.checkpoint import parallel
    run = run_of(tmp_path, 100)

    def slow(*args):
        raise Trouble("time", "not enough time for its checksums")
    monkeypatch.setattr(parallel, "sums", slow)
    found = find.latest(run, until=time.monotonic() + 60)
    assert (found.chosen.step, found.chosen.level) == (100, "structure-only")
    assert find.latest(run, ("verified",), until=time.monotonic() + 60).outcome == "could-not-look"


def test_a_missing_mount_of_fstab_is_seen(tmp_path):
    """An empty folder that /etc/fstab mounts something on is a mount that is away, not a run without checkpoints."""
    root = str(tmp_path)
    build.write(root + "/etc/fstab", b"# comment\nsrv:/x /ckpt nfs rw 0 0\nsrv:/y /a\\040b nfs rw,noauto 0 0\n"
                b"UUID=1 / ext4 rw 0 1\nUUID=2 none swap sw 0 0\n")
    build.write(root + "/proc/self/mountinfo", b"22 1 0:20 / / rw - ext4 /dev/sda rw\n")
    assert mounted.missing_mount("/ckpt/run7", root) == "/ckpt"
    assert mounted.missing_mount("/ckpt", root) == "/ckpt"
    assert mounted.missing_mount("/ckptx/run7", root) == ""
    assert mounted.missing_mount("/a b/x", root) == ""
    build.write(root + "/proc/self/mountinfo", b"23 1 0:21 / /ckpt rw shared:1 - nfs4 srv:/x rw\n")
    assert mounted.missing_mount("/ckpt/run7", root) == ""
    assert mounted.missing_mount("/ckpt/run7", root + "/none") == ""


# -- what was judged before

def test_a_known_checkpoint_is_not_verified_again(tmp_path, monkeypatch):
    """A hint with an unchanged fingerprint saves the checksums, for that checkpoint only while it is the newest."""
    run = run_of(tmp_path, 100)
    first = find.latest(run).chosen
    known = find.Known(first.path, first.fp, "verified", 100)
    from slurm_gpuhealth.checkpoint import parallel
    counted = []
    real = parallel.sums
    monkeypatch.setattr(parallel, "sums", lambda *args: counted.append(1) or real(*args))
    assert find.latest(run, known=known).chosen.level == "verified"
    assert counted == []
    run_of(tmp_path, 200)
    counted.clear()
    assert find.latest(run, known=known).chosen.step == 200
    assert counted == [1]


def test_a_changed_known_checkpoint_is_mistrusted(tmp_path):
    """Any change of size, time or inode, or another fingerprint: it is verified anew."""
    run = run_of(tmp_path, 100)
    first = find.latest(run).chosen
    path = first.path + "/optimizer.safetensors"
    with open(path, "r+b") as handle:
        handle.seek(-1, 2)
        handle.write(b"X")
    found = find.latest(run, known=find.Known(first.path, first.fp, "verified", 100))
    assert found.outcome == "none-acceptable"
    assert found.passed[0][1] == "sha256 of optimizer.safetensors does not fit"


def test_a_deleted_known_checkpoint_is_no_matter(tmp_path):
    """The hint's target is gone: the newest of the others."""
    run = run_of(tmp_path, 100)
    assert find.latest(run, known=find.Known(run + "/step-000300", "ab", "verified", 300)).chosen.step == 100


# -- hostile folders

def test_special_files_do_not_block(tmp_path):
    """A FIFO among the checkpoints: passed over."""
    run = run_of(tmp_path, 100)
    os.mkfifo(run + "/step-000300.pt")
    started = time.monotonic()
    found = find.latest(run)
    assert time.monotonic() - started < 5
    assert found.chosen.step == 100
    assert found.passed == ((run + "/step-000300.pt", "not a plain file"),)


@pytest.mark.slow
def test_a_hundred_thousand_entries_are_answered_in_seconds(tmp_path):
    """A folder full of files: bounded, and what was not looked at is not called empty."""
    run = run_of(tmp_path, 100)
    for number in range(100000):
        os.close(os.open("%s/junk-%d.pt" % (run, number), os.O_CREAT | os.O_WRONLY))
    started = time.monotonic()
    found = find.latest(run, until=time.monotonic() + 8)
    assert time.monotonic() - started < 9
    assert found.chosen.step == 100


def test_it_survives_a_round_trip():
    """A Resolution crosses the pipe as plain data."""
    chosen = find.Chosen("/c", 3, "verified", "sealed", "ab", None, ("model",), 5.0)
    found = find.Resolution("found", chosen, (("/d", "cut"),))
    assert find.from_plain(find.to_plain(found)) == found
    assert find.from_plain(find.to_plain(find.Resolution("empty"))) == find.Resolution("empty")


def test_somebody_elses_folder_inside_hides_nothing(tmp_path, monkeypatch):
    """A folder two levels down that the job's user may not open is named; what can be read is still found."""
    run = run_of(tmp_path, 100)
    os.makedirs(run + "/other/private/x")
    may_open = find.Folder.__init__

    def refuse(self, path):
        if str(path).endswith("/other/private"):
            raise PermissionError(13, "Permission denied")
        may_open(self, path)
    monkeypatch.setattr(find.Folder, "__init__", refuse)
    found = find.latest(run)
    assert (found.outcome, found.chosen.path) == ("found", run + "/step-000100")
    assert "private" in names(found.passed)
