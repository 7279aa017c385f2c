"""The real program on fixture nodes, each named after its defect; its JSON is compared with golden.json."""
import io
import json
import os

import builders
import make_nodes
import pytest

from slurm_gpuhealth.cli import main

HERE = os.path.dirname(os.path.abspath(__file__))

# Node -> exit code, and the worst finding's code and the index of its GPU.
EXPECTED = {
    "healthy-8gpu": (0, None),
    "gpu-off-bus": (2, ("GH-XID79", 3)),
    "mount-gone": (2, ("GH-MNT-GONE", None)),
    "ecc-new": (2, ("GH-ECC-UNC", 2)),
    "cpu-only": (0, None),
    "nvml-mismatch": (2, ("GH-NVML-MISM", None)),
    "gpu-all-ones": (2, ("GH-PCI-GONE", 3)),
    "gpu-given-to-vfio": (2, ("GH-GPU-LOST", 7)),
    "root-read-only": (2, ("GH-FS-RO", None)),
    "ib-port-down": (2, ("GH-LINK-DOWN", None)),
    "ib-port-renamed": (0, None),
    "memory-uncorrected": (2, ("GH-HOST-UE", None)),
    "nvme-dead": (2, ("GH-NVME-DEAD", None)),
    "device-files": (1, ("GH-DEV-GONE", None)),
    "clock-free": (1, ("GH-CLOCK", None)),
    "mount-options": (2, ("GH-MNT-OPT", None)),
    "process-left-over": (1, ("GH-LEFTOVER", 3)),
    "process-stuck-in-driver": (2, ("GH-LEFT-STUCK", 2)),
    "service-failed": (2, ("GH-SERVICE", None)),
    "fabric-manager-stopped": (2, ("GH-FABRIC-MGR", None)),
    "process-noise": (0, None),
    "node-noise": (0, ("GH-STORE-LOST", None)),
}


@pytest.fixture
def node(tmp_path, request):
    """A copy of the node, so that a probe file or a mistake cannot change the fixture."""
    builders.write_node(tmp_path, make_nodes.NODES[request.param])
    return request.param, str(tmp_path)


def check(root, *more):
    out = io.StringIO()
    code = main.main(["--root", root, "check", *more], out)
    return code, out.getvalue()


@pytest.mark.parametrize("name", list(make_nodes.NODES))
def test_the_folder_is_what_the_maker_makes(name):
    """tests/nodes/<name> can be looked at and run by hand, and is the same as what the tests run on."""
    for path, text in make_nodes.NODES[name].items():
        wanted = text.encode() if type(text) is str else text
        assert builders.content_of(os.path.join(HERE, name), path) == wanted, "run python tests/nodes/make_nodes.py"


@pytest.mark.parametrize("node", list(EXPECTED), indirect=True)
def test_check_json(node, golden):
    """Exit code, worst finding, and the whole document."""
    name, root = node
    code, text = check(root, "--json")
    document = json.loads(text)
    worst = document["findings"][0] if document["findings"] else None
    assert (code, (worst["code"], worst["subject"]["index"]) if worst else None) == EXPECTED[name]
    assert document["exit_code"] == code
    golden(os.path.join(HERE, name, "golden.json"), text)


@pytest.mark.parametrize("node", list(EXPECTED), indirect=True)
def test_check_changes_nothing(node):
    """Not one file of the node is new or different afterwards."""
    name, root = node
    before = snapshot(root)
    check(root)
    assert snapshot(root) == before


def snapshot(root):
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[path] = os.readlink(path)
                continue
            with open(path, "rb") as handle:
                found[path] = handle.read()
    return found


@pytest.mark.parametrize("node,line", [
    ("healthy-8gpu", "GPUHEALTH OK: 8 GPUs | gpus=8 fatal=0 unknown=0 warning=0 note=0\n"),
    ("cpu-only", "GPUHEALTH OK: no GPUs | gpus=U fatal=0 unknown=0 warning=0 note=0\n"),
    ("mount-gone", "GPUHEALTH CRITICAL: GH-MNT-GONE /data not mounted | gpus=8 fatal=1 unknown=0 warning=0 note=0\n"),
], indirect=["node"])
def test_check_nagios(node, line):
    """One line for a monitoring system."""
    assert check(node[1], "--nagios")[1] == line


@pytest.mark.parametrize("node", ["gpu-off-bus"], indirect=True)
def test_check_table(node):
    """A row a GPU with its state; without a terminal there is no colour."""
    lines = check(node[1])[1].splitlines()
    assert lines[0].startswith("n1: 8 of 8 GPUs, driver 550.90.07")
    row = next(line for line in lines if line.startswith("gpu3"))
    assert "fatal" in row and "0000:5d:00.0" in row
    assert any(line.startswith("FATAL    GH-XID79 gpu3: fell off bus") for line in lines)
    assert "\033" not in "".join(lines)


@pytest.mark.parametrize("node", ["gpu-off-bus"], indirect=True)
def test_whole_log(node):
    """With a cursor at the end of the log only --whole-log sees its old lines."""
    _, root = node
    path = os.path.join(root, "var/lib/gpuhealth/node.json")
    with open(path) as handle:
        memory = json.load(handle)
    size = os.path.getsize(os.path.join(root, "kmsg"))
    inode = os.stat(os.path.join(root, "kmsg")).st_ino
    import zlib
    with open(os.path.join(root, "kmsg"), "rb") as handle:
        tail = handle.read()[-256:]
    memory["cursor"] = {"boot_id": builders.BOOT_ID, "offset": size, "inode": inode, "fingerprint": zlib.crc32(tail)}
    with open(path, "w") as handle:
        json.dump(memory, handle)
    assert json.loads(check(root, "--json")[1])["findings"][0]["code"] == "GH-GPU-LOST"
    assert json.loads(check(root, "--json", "--whole-log")[1])["findings"][0]["code"] == "GH-XID79"


def test_unknown_job_is_said(tmp_path, capsys):
    """--job of a job that this node knows nothing of."""
    builders.write_node(tmp_path, make_nodes.NODES["healthy-8gpu"])
    code, _ = check(str(tmp_path), "--job", "17")
    assert code == 66 and "job 17" in capsys.readouterr().err
