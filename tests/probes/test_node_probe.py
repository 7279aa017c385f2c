"""Facts about the node, and how many GPUs it should have."""
import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.probes import gpus_expected, node

SLURM = "NodeName=n[1-3] Gres=gpu:h100:8\nNodeName=c[1-9]\n"
GRES = "NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[3,1,0,2]\n"


def expected(root, host="n1", known=(), **changes):
    return gpus_expected.expected(overlay(DEFAULTS, changes), str(root), host, known)


def test_read_node(tmp_path):
    """A fixture node has its own clock: boot time plus uptime."""
    builders.write_node(tmp_path, {
        "/proc/stat": "cpu 1 2\nbtime 1796000000\n", "/proc/uptime": "1000.50 900.00\n",
        "/proc/sys/kernel/random/boot_id": "01234567-89ab-cdef-0123-456789abcdef\n",
        "/proc/sys/kernel/osrelease": "6.1.0\n", "/proc/sys/kernel/hostname": "n1.example\n"})
    assert node.read_node(str(tmp_path)) == {
        "boot_id": "0123456789abcdef0123456789abcdef", "time": 1796001000.5, "uptime": 1000.5, "kernel": "6.1.0",
        "hostname": "n1.example"}


def test_read_node_without_proc(tmp_path):
    """What is not there is empty or unknown, never invented."""
    found = node.read_node(str(tmp_path))
    assert found["boot_id"] == "" and not F.is_known(found["uptime"])


def test_read_this_node():
    """On the machine itself."""
    found = node.read_node()
    assert found["kernel"] and found["hostname"]


@pytest.mark.parametrize("files,changes,known,wanted", [
    ({"/etc/slurm/slurm.conf": SLURM, "/etc/slurm/gres.conf": GRES}, {"expected_gpus": 6}, 8, (6, "config")),
    ({"/etc/slurm/slurm.conf": SLURM, "/etc/slurm/gres.conf": GRES}, {}, 8, (4, "gres.conf")),
    ({"/etc/slurm/slurm.conf": SLURM}, {}, 2, (8, "slurm.conf")),
    ({}, {}, 8, (8, "most seen")),
    ({"/run/slurm/conf/slurm.conf": SLURM}, {}, 2, (8, "slurm.conf")),
    ({"/etc/slurm/slurm.conf": "Include nodes.conf\n", "/etc/slurm/nodes.conf": SLURM}, {}, 2, (8, "slurm.conf")),
])
def test_expected(tmp_path, files, changes, known, wanted):
    """The configuration, else gres.conf, else slurm.conf (also configless, also included), else the most seen."""
    builders.write_node(tmp_path, files)
    found = expected(tmp_path, known=builders.known_gpus(known), **changes)
    assert (found.gpus, found.origin) == wanted


def test_expected_none_on_a_node_without_gres(tmp_path):
    """slurm.conf knows the node and gives it no GPU: zero, not unknown."""
    builders.write_node(tmp_path, {"/etc/slurm/slurm.conf": SLURM})
    assert expected(tmp_path, "c2").gpus == 0


def test_expected_unknown(tmp_path):
    """Nobody says: unknown, not zero."""
    assert not F.is_known(expected(tmp_path).gpus)


def test_order_of_device_files(tmp_path):
    """gres index -> device minor, as File= orders them."""
    builders.write_node(tmp_path, {"/etc/slurm/slurm.conf": SLURM, "/etc/slurm/gres.conf": GRES})
    assert expected(tmp_path).minors == (3, 1, 0, 2)


def test_expected_gpus_are_read_again_when_a_file_changed(tmp_path):
    """slurm.conf, gres.conf and what they include are looked at each time, and read only when one is another."""
    builders.write_node(tmp_path, {"/etc/slurm/slurm.conf": "Include more.conf\n",
                                   "/etc/slurm/more.conf": "NodeName=n1 Gres=gpu:4\n"})
    files = []
    assert gpus_expected.expected(DEFAULTS, str(tmp_path), "n1", (), files).gpus == 4
    assert [entry[0] for entry in files] == [
        "/etc/slurm/slurm.conf", "/etc/slurm/gres.conf", "/run/slurm/conf/gres.conf", "/etc/slurm/more.conf"]
    assert gpus_expected.unchanged(str(tmp_path), files)
    builders.write_node(tmp_path, {"/etc/slurm/more.conf": "NodeName=n1 Gres=gpu:8 # now\n"})
    assert not gpus_expected.unchanged(str(tmp_path), files)
    files = []
    gpus_expected.expected(DEFAULTS, str(tmp_path), "n1", (), files)
    builders.write_node(tmp_path, {"/etc/slurm/gres.conf": ""})     # a file that was not there before
    assert not gpus_expected.unchanged(str(tmp_path), files)
    assert not gpus_expected.unchanged(str(tmp_path), [])
