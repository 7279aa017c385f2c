"""One mount a child: what is seen, and that nothing of anybody else is touched."""
import errno
import os

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import mounts

INFO = "36 22 0:32 / /data rw,noatime - nfs4 store:/data rw,vers=4.2\n"


def look(root, path="/data", writable=True, status="ok"):
    records = []
    spec = {"root": str(root), "path": path, "writable": writable}
    mounts.read(spec, lambda kind, plain: records.append((kind, plain)))
    return mounts.assemble(records, spec, F.SourceStatus("mount:" + path, status))["mounts"][0]


@pytest.fixture
def node(tmp_path):
    builders.write_node(tmp_path, {"/proc/self/mountinfo": INFO})
    (tmp_path / "data").mkdir()
    return tmp_path


def test_healthy_mount(node):
    """There, typed, with free space, written to; the probe file is gone afterwards."""
    mount = look(node)
    assert (mount.present, mount.fstype, mount.source, mount.writable, mount.error) == (
        True, "nfs4", "store:/data", True, None)
    assert mount.free_bytes > 0
    assert os.listdir(node / "data") == []


def test_not_asked_to_write(node):
    """A mount that need not be writable is not written to."""
    assert look(node, writable=False).writable == F.UNASKED


def test_gone(node):
    """Not in the mount table: nothing is written into the folder below."""
    builders.write_node(node, {"/proc/self/mountinfo": "22 1 0:21 / / rw - ext4 /dev/sda1 rw\n"})
    mount = look(node)
    assert mount.present is False and mount.writable == F.UNASKED
    assert os.listdir(node / "data") == []


def test_in_the_table_and_no_folder(node):
    """A mount whose path cannot be opened says why."""
    os.rmdir(node / "data")
    assert look(node).error.code == errno.ENOENT


def test_proc_mounts_will_do(tmp_path):
    """A fixture node may have /proc/mounts only."""
    builders.write_node(tmp_path, {"/proc/mounts": "store:/data /data nfs4 rw 0 0\n"})
    (tmp_path / "data").mkdir()
    assert look(tmp_path).present is True


def test_symbolic_link_is_not_followed(node):
    """A link in the mount's place could lead root anywhere."""
    os.rmdir(node / "data")
    (node / "elsewhere").mkdir()
    os.symlink(node / "elsewhere", node / "data")
    mount = look(node)
    assert mount.error.code in (errno.ELOOP, errno.ENOTDIR)
    assert os.listdir(node / "elsewhere") == []


@pytest.mark.parametrize("step,code,reason", [
    ("open", errno.EROFS, F.ERROR), ("open", errno.EACCES, F.DENIED), ("open", errno.ESTALE, F.ERROR),
    ("write", errno.ENOSPC, F.ERROR), ("fsync", errno.EDQUOT, F.ERROR), ("fsync", errno.EIO, F.ERROR),
])
def test_write_errors_are_told_apart(node, monkeypatch, step, code, reason):
    """Wherever writing fails the number says why, and no file stays."""
    real = os.open

    def failing(*args, **kwargs):
        if step != "open" or "dir_fd" in kwargs:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)
    monkeypatch.setattr(mounts.os, step, failing)
    mount = look(node)
    assert (mount.writable.code, mount.writable.reason) == (code, reason)
    assert os.listdir(node / "data") == []


def test_stale_handle_while_asking_for_space(node, monkeypatch):
    """statvfs of a mount whose server forgot it."""
    def stale(fd):
        raise OSError(errno.ESTALE, "Stale file handle")
    monkeypatch.setattr(mounts.os, "fstatvfs", stale)
    mount = look(node)
    assert (mount.error.code, mount.error.detail) == (errno.ESTALE, "stale file handle")
    assert mount.writable == F.UNASKED


def test_what_was_seen_before_it_hung_is_kept(node):
    """The steps are told one by one; the rest is unknown, with why."""
    records = []
    spec = {"root": str(node), "path": "/data", "writable": True}
    mounts.read(spec, lambda kind, plain: records.append((kind, plain)))
    status = F.SourceStatus("mount:/data", "late", detail="no answer in 8.0 s")
    mount = mounts.assemble(records[:1], spec, status)["mounts"][0]
    assert mount.present is True and mount.error == F.Unknown(F.TIMEOUT, "no answer in 8.0 s")
    assert mounts.assemble([], spec, status)["mounts"][0].present == F.UNASKED


def test_real_root():
    """The root file system of this machine is there."""
    if not os.path.exists("/proc/self/mountinfo"):
        pytest.skip("no /proc/self/mountinfo here")
    mount = look("", "/", writable=False)
    assert mount.present is True and mount.error is None


def test_size_and_inodes_are_told(node):
    """Limits in percent need the whole."""
    mount = look(node)
    assert mount.total_bytes >= mount.free_bytes > 0 and mount.total_inodes >= 0


def test_an_automounter_that_mounts_when_the_path_is_opened(node, monkeypatch):
    """The table is read again after the path was opened."""
    builders.write_node(node, {"/proc/self/mountinfo": "35 22 0:30 / /data rw - autofs auto.data rw\n"})
    real = os.open

    def mounting(path, *args, **kwargs):
        if str(path).endswith("/data"):
            builders.write_node(node, {"/proc/self/mountinfo": "35 22 0:30 / /data rw - autofs auto.data rw\n" + INFO})
        return real(path, *args, **kwargs)
    monkeypatch.setattr(mounts.os, "open", mounting)
    assert look(node).fstype == "nfs4"


def test_an_automounter_that_does_not_mount(node):
    """Only the automounter is seen: the check says that nothing is mounted."""
    builders.write_node(node, {"/proc/self/mountinfo": "35 22 0:30 / /data rw - autofs auto.data rw\n"})
    assert look(node, writable=False).fstype == "autofs"
