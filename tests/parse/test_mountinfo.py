"""/proc/self/mountinfo as the kernel writes it, octal escapes and optional fields included."""
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth.parse import mountinfo

TEXT = """\
22 1 0:21 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/l
36 22 0:32 / /data rw,noatime shared:2 master:1 - nfs4 store:/data rw,vers=4.2,addr=192.0.2.1
40 22 8:1 / /local rw,relatime - ext4 /dev/sda1 ro,errors=remount-ro
41 22 0:40 / /with\\040blank rw - tmpfs tmpfs rw
42 36 0:41 / /data rw - fuse.sshfs user@host:/x rw
43 22 0:42 / /no/super rw - proc proc
broken line
"""


def test_fields():
    """Path, type, source and both kinds of option, however many optional fields there are."""
    entries = mountinfo.parse(TEXT)
    assert [entry.path for entry in entries] == ["/", "/data", "/local", "/with blank", "/data", "/no/super"]
    assert entries[1] == mountinfo.Entry("/data", "nfs4", "store:/data", "rw,noatime", "rw,vers=4.2,addr=192.0.2.1",
                                           "0:32")
    assert mountinfo.options_of(entries[1]) == "rw,noatime,vers=4.2,addr=192.0.2.1"


def test_the_last_mount_on_a_point_is_the_visible_one():
    """Mounting over a mount hides it."""
    entries = mountinfo.parse(TEXT)
    assert mountinfo.find(entries, "/data").fstype == "fuse.sshfs"
    assert mountinfo.find(entries, "/data/") == mountinfo.find(entries, "/data")
    assert mountinfo.find(entries, "/") == entries[0]
    assert mountinfo.find(entries, "/dat") is None


def test_read_only_by_mount_or_by_file_system():
    """A file system that went read-only shows it in its own options only."""
    entries = mountinfo.parse(TEXT)
    assert mountinfo.is_read_only(entries[2])
    assert not mountinfo.is_read_only(entries[1])
    assert mountinfo.is_read_only(mountinfo.Entry("/x", "nfs", "s", "ro,noatime", "rw"))


def test_proc_mounts():
    """/proc/mounts of a fixture node is read too."""
    assert mountinfo.parse("store:/d /my\\040data nfs rw,hard 0 0\n") == [
        mountinfo.Entry("/my data", "nfs", "store:/d", "rw,hard", "rw,hard")]


def test_escapes():
    """Only three octal digits after a backslash are an escape."""
    assert mountinfo.unescape("a\\040b\\134c\\9\\04") == "a b\\c\\9\\04"


def test_network_types():
    """Types that need the network; any fuse file system may block on its daemon."""
    assert all(mountinfo.is_network(name) for name in ("nfs", "nfs4", "lustre", "fuse.sshfs", "beegfs", "ceph", "fuse"))
    assert not any(mountinfo.is_network(name) for name in ("ext4", "xfs", "tmpfs", "overlay", "fuseblk"))


@given(st.text(max_size=200))
def test_any_text_is_survived(text):
    """No text raises."""
    mountinfo.find(mountinfo.parse(text), "/data")
