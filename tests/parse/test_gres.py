"""Expected GPUs and device order from gres.conf and slurm.conf."""
import pytest

from slurm_gpuhealth.parse import gres

NODES = "NodeName=n[1-3] CPUs=64 Gres=gpu:h100:8 State=UNKNOWN\n"


@pytest.mark.parametrize(("gres_conf", "slurm_conf", "answer"), [
    ("Name=gpu Type=h100 File=/dev/nvidia[0-7]", "", (8, "gres.conf")),
    ("Name=gpu File=/dev/nvidia0,/dev/nvidia3", "", (2, "gres.conf")),
    ("Name=gpu Count=4", "", (4, "gres.conf")),
    ("NAME=GPU file=/dev/nvidia[0-1]", "", (2, "gres.conf")),
    ("Name=gpu Type=a File=/dev/nvidia[0-3]\nName=gpu Type=b File=/dev/nvidia[4-7]", "", (8, "gres.conf")),
    ("NodeName=n[1-2] Name=gpu File=/dev/nvidia[0-7]\nNodeName=n3 Name=gpu File=/dev/nvidia0", "",
     (8, "gres.conf")),
    ("NodeName=n9 Name=gpu File=/dev/nvidia[0-7]", "", None),
    ("NodeName=n9 Name=gpu File=/dev/nvidia[0-7]", NODES, (8, "slurm.conf")),
    ("AutoDetect=nvml", NODES, (8, "slurm.conf")),
    ("AutoDetect=nvml", "", None),
    ("", "", None),
    ("Name=mps Count=100\nName=shard Count=8", NODES, (8, "slurm.conf")),
    ("# Name=gpu File=/dev/nvidia[0-7]", "", None),
    ("Name=gpu Type=h100 \\\n   File=/dev/nvidia[0-3]", "", (4, "gres.conf")),
    ('Name="gpu" File="/dev/nvidia[0-3]" # all', "", (4, "gres.conf")),
    # One type in two lines: MIG instances lie on the GPUs whose device files they name.
    ("Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21\n"
     "Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30", "", (1, "gres.conf")),
    ("Name=gpu Type=1g.5gb Count=7", "", None),
    # slurmd ignores devices beyond slurm.conf's number.
    ("Name=gpu File=/dev/nvidia[0-7]", "NodeName=n1 Gres=gpu:4", (4, "slurm.conf")),
    ("Name=gpu File=/dev/nvidia[0-3]", "NodeName=n1 Gres=gpu:8", (4, "gres.conf")),
    # A shared gres.conf on a node that slurm.conf knows without GPUs.
    ("Name=gpu File=/dev/nvidia[0-7]", "NodeName=n1 CPUs=4", (0, "slurm.conf")),
])
def test_expected(gres_conf, slurm_conf, answer):
    """gres.conf speaks first, slurm.conf where it is silent or smaller; neither: None."""
    assert gres.expected(gres_conf, slurm_conf, "n1") == answer


@pytest.mark.parametrize(("slurm_conf", "answer"), [
    ("NodeName=n1 Gres=gpu:8", (8, "slurm.conf")),
    ("nodename=n1 gres=GPU:h100:4,gpu:a100:2", (6, "slurm.conf")),
    ("NodeName=n1 Gres=gpu", (1, "slurm.conf")),
    ("NodeName=n1 Gres=gpu:h100", (1, "slurm.conf")),
    ("NodeName=n1 Gres=gpu:h100:8(S:0-1),shard:64", (8, "slurm.conf")),
    ("NodeName=n1 Gres=gpu:no_consume:2", (2, "slurm.conf")),
    ("NodeName=DEFAULT Gres=gpu:4\nNodeName=n[1-2] CPUs=8\nNodeName=n3 Gres=gpu:1", (4, "slurm.conf")),
    ("NodeName=DEFAULT Gres=gpu:4\nNodeName=DEFAULT CPUs=8\nNodeName=n1", (4, "slurm.conf")),
    ("NodeName=n1\nNodeName=DEFAULT Gres=gpu:4", (0, "slurm.conf")),
    ("NodeName=n2 Gres=gpu:8", None),
    ("NodeName=n1 Gres=gpu:1g.5gb:7", None),
    ("NodeName=n1 Gres=craynetwork:4", (0, "slurm.conf")),
    ("NodeName=n1[ Gres=gpu:8", None),
    ("PartitionName=gpu Nodes=ALL", None),
])
def test_slurm_conf(slurm_conf, answer):
    """slurm.conf alone: several types are added up, DEFAULT holds for the lines below it."""
    assert gres.expected("", slurm_conf, "n1") == answer


def test_includes():
    """Included files are read in their place; what was not handed over is passed by."""
    text = "ClusterName=c\nInclude nodes.conf\ninclude /etc/slurm/more.conf\n"
    assert gres.includes_of(text) == ["nodes.conf", "/etc/slurm/more.conf"]
    assert gres.expected("", text, "n1", {"nodes.conf": NODES}) == (8, "slurm.conf")
    assert gres.expected("", text, "n1") is None


def test_include_of_itself_ends():
    """A file that includes itself does not keep the hook."""
    assert gres.expected("", "include a", "n1", {"a": "include a\n" + NODES}) == (8, "slurm.conf")


def test_device_order():
    """The gres index is the place in File=, whatever the minors."""
    text = "Name=gpu File=/dev/nvidia[3,1]\nName=gpu Type=x File=/dev/nvidia0\nNodeName=n2 Name=gpu Count=1"
    assert gres.device_order(text, "n1") == (3, 1, 0)
    assert gres.device_order("Name=gpu Count=8", "n1") is None


def test_autodetect_makes_its_own_order():
    """With AutoDetect slurmd sorts the devices itself, so File= says nothing about the order."""
    text = "AutoDetect=nvml\nNodeName=n2 AutoDetect=off Name=gpu File=/dev/nvidia[1,0]\n" \
           "Name=gpu File=/dev/nvidia[1,0]"
    assert gres.autodetect(text, "n1") == "nvml"
    assert gres.autodetect(text, "n2") == "off"
    assert gres.autodetect("", "n1") == ""
    assert gres.device_order(text, "n1") is None
    assert gres.device_order(text, "n2") == (1, 0)


def test_absurd_numbers():
    """A number that no node has is not believed, and nothing is built from it."""
    assert gres.expected("Name=gpu File=/dev/nvidia[0-999999999]", "", "n1") is None
    assert gres.expected("Name=gpu Count=99999999999999999", "", "n1") is None
