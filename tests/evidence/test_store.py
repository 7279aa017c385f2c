"""Evidence folders: what is in them, where they go when the disk is bad, and that they are never half."""
import errno
import json
import os
import signal
import stat
import time

import builders
import pytest

from slurm_gpuhealth import supervise
from slurm_gpuhealth.errors import DataError, NotFoundError, StateError
from slurm_gpuhealth.evidence import manifest, shelf, store, trouble
from slurm_gpuhealth.facts import KernelEvent, KernelLog
from slurm_gpuhealth.parse import mountinfo


def names(folder):
    return {item["name"]: item["status"] for item in manifest.load(folder.path)["items"]}


def test_what_must_be_kept_first_is_there(case):
    """Facts, situation, policy, findings and the log window, each with size and sha256, before anything else."""
    folder = case.open()
    assert os.path.basename(folder.path) == "20261130T120000Z-GH-XID79-3fa9c1"
    assert names(folder) == dict.fromkeys(
        ("facts.json", "situation.json", "policy.json", "findings.json", "kernel-window.log"), "ok")
    assert manifest.verify(folder.path) == {"changed": [], "missing": [], "extra": [], "complete": False}
    assert folder.facts() == case.facts
    with open(folder.path + "/kernel-window.log") as handle:
        assert "Xid" in handle.read()


def test_only_root_may_look(case):
    """0700 folders, 0600 files, whatever the umask of the hook is."""
    old = os.umask(0)
    try:
        folder = case.whole()
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == stat.S_IMODE(os.stat(os.path.dirname(folder.path)).st_mode) \
        == 0o700
    assert {stat.S_IMODE(os.stat(os.path.join(folder.path, name)).st_mode) for name in os.listdir(folder.path)} \
        == {0o600}


def test_a_folder_is_final_only_when_it_was_finished(case):
    """Between opening and finishing it says that it is incomplete."""
    folder = case.open()
    assert manifest.load(folder.path)["state"] == "open"
    folder.decide(case.situation, builders.F.Expected())
    folder.finish()
    assert manifest.load(folder.path)["state"] == "final"
    assert manifest.verify(folder.path)["complete"]


def test_the_second_hook_gets_the_same_folder_and_writes_nothing(case):
    """One incident, one folder; who comes second may only name it."""
    first = case.open()
    before = sorted(os.listdir(first.path))
    second = case.open(lines=("other",))
    second.keep("more.txt", b"x")
    second.finish()
    assert (second.path, second.created, first.created) == (first.path, False, True)
    assert sorted(os.listdir(first.path)) == before
    assert manifest.load(first.path)["state"] == "open"


def test_two_hooks_at_the_very_same_moment(case):
    """Of two processes that open at once exactly one makes the folder."""
    def opener(spec, emit):
        while time.time() < spec["at"]:
            pass
        emit("folder", [case.open().created])
    at = time.time() + 0.3
    children = [supervise.start("c%d" % n, opener, {"at": at}, 10.0) for n in range(6)]
    results = supervise.gather(children).values()
    assert sorted(plain[0] for result in results for _, plain in result.records) == [False] * 5 + [True]
    assert len(shelf.all_folders(case.root)) == 1


def test_going_on_in_another_process(case):
    """What the first child began, a second one finishes; a final folder is not written to any more."""
    path = case.open().path
    again = store.reopen(case.root, path)
    again.keep("more.txt", b"x")
    again.lack("other.txt", "not installed")
    again.finish()
    assert names(again)["more.txt"] == "ok" and again.missing() == ["other.txt"]
    closed = store.reopen(case.root, path)
    closed.keep("late.txt", b"x")
    assert "late.txt" not in names(closed)


@pytest.mark.parametrize("after", range(0, 14, 2))
def test_killed_at_any_moment_it_stays_consistent(case, after):
    """Whatever write it is killed at: the manifest is one, and each file that it lists is whole."""
    def write(spec, emit):
        real, count = os.rename, [0]

        def rename(*args):
            if count[0] == after:
                os.kill(os.getpid(), signal.SIGKILL)
            count[0] += 1
            real(*args)
        os.rename = rename
        case.whole()
    supervise.call(write, {}, 10.0)
    folders = shelf.all_folders(case.root)
    assert len(folders) == 1
    if not os.path.exists(folders[0] + "/manifest.json"):
        assert after == 0
        return
    result = manifest.verify(folders[0])
    assert (result["changed"], result["missing"], result["complete"]) == ([], [], False)
    assert len(result["extra"]) <= 1    # written, and killed before the manifest could say so


def test_secrets_of_the_configuration_are_not_kept(case):
    """The address of a webhook often holds its password."""
    case.cfg["notify"] = {"command": ["/x", "token"], "webhook": "https://h/secret"}
    folder = case.open()
    with open(folder.path + "/policy.json") as handle:
        text = handle.read()
    assert "secret" not in text and "token" not in text
    assert json.loads(text)["notify"]["webhook"] == "(set)"


def test_a_folder_has_a_limit_and_says_what_was_cut(case):
    """The end of a too long file is kept, and the manifest says so."""
    case.cfg["evidence"]["max_folder_mb"] = 1
    folder = case.open()
    folder.keep("big.log", b"a" * (2 << 20) + b"end")
    folder.keep("more.log", b"more")
    items = {item["name"]: item for item in manifest.load(folder.path)["items"]}
    assert folder.used == 1 << 20 and "limit" in items["big.log"]["why"] and items["more.log"]["bytes"] == 0
    with open(folder.path + "/big.log", "rb") as handle:
        assert handle.read().endswith(b"end")
    assert manifest.verify(folder.path)["changed"] == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("at", [0, 1, 3, 8])
def test_a_disk_that_fails_while_writing(case, monkeypatch, number, at):
    """All of it goes to the tmpfs, nothing that was kept is lost, and it is said where and why."""
    real, count = os.open, [0]

    def fail(path, flags, *more, **named):
        if flags & os.O_CREAT and "/var/lib/gpuhealth/evidence/" in str(path):
            count[0] += 1
            if count[0] > at:
                raise OSError(number, os.strerror(number))
        return real(path, flags, *more, **named)
    monkeypatch.setattr(os, "open", fail)
    folder = case.open()
    folder.keep("kernel.log", b"line\n")
    folder.finish()
    monkeypatch.undo()
    assert "/run/gpuhealth/evidence/" in folder.path
    assert os.strerror(number) in folder.manifest["fallback"] and any(folder.path in note for note in folder.notes)
    assert set(names(folder).values()) == {"ok"} and len(names(folder)) == 6
    assert manifest.verify(folder.path) == {"changed": [], "missing": [], "extra": [], "complete": True}
    assert shelf.find(case.root, "3fa9") == folder.path
    left = [path for path in shelf.all_folders(case.root) if path != folder.path]
    assert len(left) == (0 if number in (errno.ENOSPC, errno.EDQUOT) else 1)


def test_nowhere_to_write_is_an_error(case, monkeypatch):
    """Both places refuse: a StateError for the caller to say."""
    def fail(path, *more, **named):
        raise OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(StateError):
        case.open()


def test_a_read_only_state_is_not_touched(case):
    """mountinfo says ro: straight to the tmpfs."""
    case.mounts("ro")
    folder = case.open()
    assert "read-only" in folder.manifest["fallback"] and "/run/gpuhealth/" in folder.path
    assert not os.path.exists(case.root + "/var/lib/gpuhealth/evidence")


@pytest.mark.parametrize("line", [
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm systemd: reading directory lblock 0",
    "blk_update_request: I/O error, dev sda1, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
    "Buffer I/O error on dev sda1, logical block 0, async page read"])
def test_a_disk_with_errors_is_not_written_to(case, line):
    """The kernel log names the device below the state folder: nothing is written there, and that is said."""
    case.facts = builders.healthy_node(klog=builders.log(line))
    assert case.facts.klog.events, "the parser knows this line"
    folder = case.open()
    assert "sda1" in folder.manifest["fallback"] and "/run/gpuhealth/" in folder.path
    assert not os.path.exists(case.root + "/var/lib/gpuhealth/evidence")


def test_errors_of_another_disk_do_not_matter(case):
    """Only the device that holds the evidence counts."""
    case.facts = builders.healthy_node(klog=builders.log("EXT4-fs error (device sdb1): ext4_find_entry: x"))
    assert case.open().manifest["fallback"] == ""


def test_a_full_disk_is_left_alone(case, monkeypatch):
    """Where less is free than evidence must leave, it goes to the tmpfs without trying."""
    monkeypatch.setattr(trouble, "room", lambda path: 0)
    assert "full" in case.open().manifest["fallback"]


def test_the_tmpfs_has_limits_of_its_own(case):
    """Few and small folders there, the newest stay."""
    case.mounts("ro")
    for number in range(store.FALLBACK_FOLDERS + 3):
        folder = case.open(case.incident("%06x" % number, opened=builders.NOW + number))
    assert folder.manifest["limit"] == store.FALLBACK_MB << 20
    kept = shelf.all_folders(case.root)
    assert len(kept) == store.FALLBACK_FOLDERS and folder.path in kept


def klog(kind, device):
    return KernelLog((KernelEvent(kind, data={"device": device}),))


@pytest.mark.parametrize("event,devices,bad", [
    (("fs_error", "sda1"), {"sda1", "sda"}, True), (("block_io", "sda"), {"sda1", "sda"}, True),
    (("fs_error", "sda1-8"), {"sda1"}, True), (("fs_error", "dm-0"), {"dm-0"}, True),
    (("fs_error", "dm-0-8"), {"dm-0"}, True), (("nvme", "nvme0"), {"nvme0n1p2", "nvme0n1"}, True),
    (("nvme", "nvme1"), {"nvme0n1"}, False), (("fs_error", "sdb1"), {"sda1"}, False),
    (("xid", "sda1"), {"sda1"}, False), (("fs_error", None), {"sda1"}, False)])
def test_which_kernel_messages_name_our_disk(event, devices, bad):
    """Partition, whole disk, journal and NVMe controller are all names of the same disk."""
    mount = mountinfo.Entry("/", "ext4", "/dev/sda1", "rw", "rw")
    assert bool(trouble.find(klog(*event).events, mount, devices)) is bad


def test_the_mount_that_holds_a_path():
    """The longest mount point wins, of equal ones the last."""
    entries = mountinfo.parse("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /var rw - xfs /dev/sda2 rw\n"
                              "3 1 8:3 / /var rw - xfs /dev/sda3 rw\n4 1 8:4 / /va rw - xfs /dev/sda4 rw\n")
    assert trouble.mount_of(entries, "/var/lib/x").source == "/dev/sda3"
    assert trouble.mount_of(entries, "/var").source == "/dev/sda3"
    assert trouble.mount_of(entries, "/etc").source == "/dev/sda1"


def test_names_of_a_device(tmp_path):
    """sysfs tells the disk of a partition and the disks below a device mapper."""
    block = tmp_path / "sys/dev/block"
    (block / "x").mkdir(parents=True)
    os.symlink("../../devices/pci0/ata1/block/sda/sda1", block / "8:1")
    assert trouble.device_names(str(tmp_path), "/dev/root", "8:1") == {"root", "sda", "sda1"}
    assert trouble.device_names(str(tmp_path), "tmpfs", "0:30") == set()


def folders(case, count, size=10):
    for number in range(count):
        folder = case.open(case.incident("%06x" % number, opened=builders.NOW + number * 86400))
        folder.keep("x", b"x" * size)
        folder.finish()


def test_pruning_by_age_keeps_open_incidents(case):
    """Older than the limit goes, but never the folder of an incident that is still open."""
    folders(case, 5)
    case.cfg["evidence"]["max_age_days"] = 3
    removed = shelf.prune(case.root, case.cfg, {"000000"}, builders.NOW + 5 * 86400)
    assert [shelf.split_name(name)[2] for name in removed] == ["000001"]
    assert len(shelf.all_folders(case.root)) == 4


def test_pruning_by_number_and_size(case):
    """The oldest go first; what is open counts but stays."""
    folders(case, 5, 400000)
    case.cfg["evidence"]["max_folders"] = 3
    assert len(shelf.prune(case.root, case.cfg, set(), builders.NOW)) == 2
    case.cfg["evidence"]["max_total_mb"] = 1
    assert [shelf.split_name(name)[2] for name in shelf.prune(case.root, case.cfg, set(), builders.NOW)] == ["000002"]
    assert len(shelf.all_folders(case.root)) == 2


def test_pruning_follows_no_link(case, tmp_path):
    """A link that somebody put into a folder is removed, not what it points to."""
    (tmp_path / "precious").write_text("x")
    folder = case.whole()
    os.symlink(tmp_path / "precious", folder.path + "/link")
    assert shelf.remove(folder.path) and (tmp_path / "precious").exists()


def test_a_store_that_others_can_write_to_is_not_used(case):
    """Evidence that anybody could have put there is none: it goes to the tmpfs, and that is said."""
    base = case.root + "/var/lib/gpuhealth/evidence"
    os.makedirs(base)
    os.chmod(base, 0o777)
    folder = case.open()
    assert folder.path.startswith(case.root + "/run/gpuhealth/evidence/") and os.listdir(base) == []
    assert "only its owner can write to" in folder.manifest["fallback"]


def test_finding_a_folder_by_the_start_of_its_id(case):
    """One that fits is found; none and several are said."""
    paths = [case.open(case.incident(ident)).path for ident in ("abc123", "abd456")]
    assert shelf.find(case.root, "abc") == paths[0] == shelf.find(case.root, paths[0])
    assert shelf.find(case.root, os.path.basename(paths[1])) == paths[1]
    for text in ("ab", "zz", "/no/such/folder"):
        with pytest.raises(NotFoundError):
            shelf.find(case.root, text)


@pytest.mark.parametrize("change,key", [
    (lambda path: open(path + "/facts.json", "a").close() or os.truncate(path + "/facts.json", 5), "changed"),
    (lambda path: os.unlink(path + "/facts.json"), "missing"),
    (lambda path: os.mkfifo(path + "/added"), "extra"),
    (lambda path: (os.unlink(path + "/facts.json"), os.symlink("/etc/passwd", path + "/facts.json")), "changed")])
def test_verify_sees_what_was_changed(case, change, key):
    """Changed, gone and added files are told apart; a link in the place of a file is a change."""
    path = case.whole().path
    change(path)
    result = manifest.verify(path)
    assert [name for name in ("changed", "missing", "extra") if result[name]] == [key]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"items": 5}', "[" * 100000,
                                  '{"state":"final","notes":[],"id":"x","limit":1,"fallback":"",'
                                  '"items":[{"name":"../x","status":"ok"}]}'])
def test_a_broken_manifest_is_one_clear_error(case, text):
    """Not a traceback, and no path that leads out of the folder."""
    path = case.open().path
    with open(path + "/manifest.json", "w") as handle:
        handle.write(text)
    with pytest.raises(DataError):
        manifest.load(path)
