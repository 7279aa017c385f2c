"""Names with stars."""
import pytest

from slurm_gpuhealth.parse import mountinfo, wildcard


@pytest.mark.parametrize("name, pattern, expected", [
    ("mlx5_0", "mlx5_0", True), ("mlx5_10", "mlx5_1", False), ("mlx5_0/1", "mlx5_*", True), ("x", "*", True),
    ("", "*", True), ("ab", "a*b*", True), ("a", "a*a", False), ("aa", "a*a", True), ("abcbd", "a*cb*d", True),
    ("abd", "a*c*d", False), ("eth[0]", "eth[0]", True), ("eth0", "eth[0]", False), ("eth0", "eth?", False),
    ("vers=4.2", "vers=4*", True), ("nconnect=16", "vers=4*", False), ("aXbXc", "a*b*c", True), ("abc", "*b*", True)])
def test_matches(name, pattern, expected):
    """A star stands for any text; nothing else is special."""
    assert wildcard.matches(name, pattern) is expected


@pytest.mark.parametrize("fstype, expected", [
    *((name, True) for name in ("nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "wekafs", "panfs",
                                "glusterfs", "fuse.glusterfs", "fuse.juicefs", "fuse", "cifs", "virtiofs")),
    *((name, False) for name in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fusectl", "nfsd",
                                 "autofs", "squashfs", "rpc_pipefs"))])
def test_network_file_systems(fstype, expected):
    """What needs the network, or a daemon that may block; the kernel's own nfsd and fusectl do not."""
    assert mountinfo.is_network(fstype) is expected
