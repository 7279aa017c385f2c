"""The rest of the quick evidence: what is collected, in which time, and why something is not there."""
import json
import os
import stat
import time

import builders
import pytest

from slurm_gpuhealth import model
from slurm_gpuhealth.evidence import collectors, manifest, slow
from slurm_gpuhealth.facts import SourceStatus

pytestmark = pytest.mark.allow_subprocess
UID = os.geteuid() or 65534


@pytest.fixture
def node(case, tmp_path):
    """The case as a fixture node: kernel log, /proc, programs."""
    builders.write_node(case.root, {
        "/var/log/kern.log": "first\nsecond\n",
        "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
        "/proc/driver/nvidia/version": "NVRM version: 550.90.07\nGCC\n",
        "/proc/4711/status": "Name:\tpython3\nState:\tD (disk sleep)\nUid:\t1000 1000\n",
        "/proc/4711/cmdline": "python3\0train.py\0\x1b[2J\0", "/proc/4711/cgroup": "0::/slurm/job_7\n",
        "/proc/12/status": "Name:\tbash\n"})
    os.makedirs(case.root + "/proc/12/fd")
    os.symlink("/dev/null", case.root + "/proc/12/fd/0")
    case.cfg["kernel_log"] = "/var/log/kern.log"
    gpu = builders.healthy_gpu(3, processes=((4711, 1 << 30), (4712, 5)))
    case.facts = case.facts._replace(gpus=(gpu,))
    case.bin = tmp_path / "bin"
    case.bin.mkdir()
    program(case, "nvidia-smi", "echo 'GPU 00000000:5D:00.0'")
    program(case, "lspci", "echo '5d:00.0 3D controller (rev ff)'")
    os.chmod(tmp_path, 0o755)
    return case


def program(case, name, text):
    path = case.bin / name
    path.write_text("#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o755)


def collect(case, jobs=(), deadline=4.0):
    folder = case.open()
    began = time.monotonic()
    folder.collect_quick(case.cfg, {"bin_dirs": (str(case.bin),)}, list(jobs), deadline)
    took = time.monotonic() - began
    folder.finish()
    assert manifest.verify(folder.path)["complete"]
    return folder, {item["name"]: item for item in manifest.load(folder.path)["items"]}, took


def text(folder, name):
    with open(os.path.join(folder.path, name), encoding="utf-8") as handle:
        return handle.read()


def test_all_of_it(node):
    """Kernel log, versions, mounts, nvidia-smi, lspci and processes, each recorded."""
    folder, items, _ = collect(node)
    assert text(folder, "kernel.log") == "first\nsecond\n"
    assert "GPU 00000000:5D" in text(folder, "nvidia-smi-q.txt") and "rev ff" in text(folder, "lspci-vv.txt")
    assert "nvidia module: NVRM version: 550.90.07\n" in text(folder, "versions.txt")
    assert text(folder, "mountinfo.txt").startswith("1 0 8:1")
    assert items["job-log-tail.txt"]["why"] == "no job"
    assert {name for name, item in items.items() if item["status"] == "missing"} == {"job-log-tail.txt"}


def test_processes_on_the_gpus(node):
    """What NVML names, with state, command and cgroup, as JSON: hostile names stay text."""
    folder, _, _ = collect(node)
    raw = text(folder, "gpu-processes.jsonl")
    first, second = map(json.loads, raw.splitlines())
    assert (first["pid"], first["state"], first["gpus"]) == (4711, "D (disk sleep)", [[3, 1 << 30]])
    assert first["cmdline"].startswith("python3 train.py") and first["cgroup"] == "0::/slurm/job_7"
    assert "\x1b" not in raw
    assert (second["pid"], second["state"]) == (4712, "not in /proc")


def test_processes_are_found_without_nvml(node):
    """When NVML does not answer, whoever holds a /dev/nvidia* open is on the list."""
    node.facts = node.facts._replace(gpus=())
    os.makedirs(node.root + "/proc/4711/fd")
    os.symlink("/dev/nvidia3", node.root + "/proc/4711/fd/9")
    folder, _, _ = collect(node)
    assert [json.loads(line)["pid"] for line in text(folder, "gpu-processes.jsonl").splitlines()] == [4711]


@pytest.mark.parametrize("outcome", ["hung", "late"])
def test_nvidia_smi_is_not_started_while_nvml_hangs(node, outcome):
    """It would hang too, and hold the GPU."""
    program(node, "nvidia-smi", "touch %s/started" % node.bin)
    node.facts = node.facts._replace(sources=(SourceStatus("nvml", outcome),))
    _, items, _ = collect(node)
    assert items["nvidia-smi-q.txt"]["status"] == "missing" and "NVML" in items["nvidia-smi-q.txt"]["why"]
    assert not (node.bin / "started").exists()


@pytest.mark.parametrize("script,status,why", [
    ("exit 9", "missing", "ended with 9"), ("echo half; sleep 60", "ok", "timed out"),
    ("echo broken >&2; exit 3", "missing", "broken"), ("echo part; exit 1", "ok", "ended with 1"),
    ("true", "missing", "said nothing"), (None, "missing", "not installed"),
    ("trap '' TERM; echo x; sleep 60", "ok", "timed out")])
def test_a_program_that_fails_says_why(node, script, status, why):
    """Nothing, half or all of its output: the manifest says which, and the others are not kept waiting."""
    if script is None:
        os.unlink(node.bin / "nvidia-smi")
    else:
        program(node, "nvidia-smi", script)
    _, items, took = collect(node, deadline=2.5)
    assert items["nvidia-smi-q.txt"]["status"] == status and why in items["nvidia-smi-q.txt"]["why"]
    assert items["kernel.log"]["status"] == "ok"
    assert took < 3.5


def test_all_of_it_ends_in_time(node):
    """Everything hangs: the whole of it still ends within its deadline, and says so."""
    program(node, "nvidia-smi", "sleep 60")
    program(node, "lspci", "sleep 60")
    os.unlink(node.root + "/var/log/kern.log")
    os.mkfifo(node.root + "/var/log/kern.log")
    os.unlink(node.root + "/proc/4711/cmdline")
    os.mkfifo(node.root + "/proc/4711/cmdline")
    _, items, took = collect(node, deadline=2.0)
    assert took < 3.0
    assert "timed out" in items["lspci-vv.txt"]["why"] and "neither" in items["kernel.log"]["why"]
    assert "timed out" in items["gpu-processes.jsonl"]["why"]
    assert items["versions.txt"]["status"] == "ok"


@pytest.mark.parametrize("prepare,why", [
    (lambda path: os.unlink(path), "not there"), (lambda path: os.truncate(path, 0), "empty")])
def test_a_kernel_log_that_says_nothing(node, prepare, why):
    """Not there, or empty, is a reason in the manifest."""
    prepare(node.root + "/var/log/kern.log")
    _, items, _ = collect(node)
    assert items["kernel.log"]["status"] == "missing" and why in items["kernel.log"]["why"]


def test_of_a_huge_kernel_log_the_end_is_kept(node, monkeypatch):
    """What happened last counts."""
    monkeypatch.setattr(collectors, "MAX_BYTES", 3000)
    with open(node.root + "/var/log/kern.log", "w") as handle:
        handle.writelines("line %d\n" % number for number in range(1000))
    folder, items, _ = collect(node)
    assert text(folder, "kernel.log").endswith("line 999\n") and "of 8890 bytes" in items["kernel.log"]["why"]


def test_the_real_kernel_log(tmp_path):
    """All records of /dev/kmsg that the kernel still holds, as they are."""
    pieces = []
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError as exc:
        pytest.skip("/dev/kmsg: %s" % exc.strerror)
    collectors.kernel_log({"root": "", "cfg": {"kernel_log": "/dev/kmsg"}}, lambda *record: pieces.append(record))
    data = b"".join(collectors.binascii.a2b_base64(plain["b64"]) for kind, plain in pieces if kind == "data")
    assert all(b";" in line for line in data.split(b"\n")[:5] if line)


def job(node, path="/home/out.txt", content="hello\n", **more):
    full = node.root + "/home/out.txt"
    os.makedirs(node.root + "/home", exist_ok=True)
    with open(full, "w") as handle:
        handle.write(content)
    os.chmod(full, 0o600)
    if os.geteuid() == 0:
        os.chown(full, UID, UID)
        for parent in (node.root + "/home",) + tuple(str(one) for one in node.bin.parents if len(one.parts) > 2):
            os.chmod(parent, os.stat(parent).st_mode | 0o055)
    return model.Job(7, uid=UID, stdout=path, user="u", name="train", **more)


def test_the_end_of_the_jobs_output(node):
    """The configured number of KiB, read as the job's user."""
    node.cfg["evidence"]["log_tail_kb"] = 1
    folder, items, _ = collect(node, [job(node, content="x" * 5000 + "\nlast line\n")])
    assert text(folder, "job-7-log-tail.txt").endswith("last line\n")
    assert items["job-7-log-tail.txt"]["bytes"] == 1024 and "of 5011" in items["job-7-log-tail.txt"]["why"]


@pytest.mark.parametrize("make,why", [
    (lambda path: os.symlink("/etc/shadow", path), "symbolic link"), (os.mkfifo, "not a plain file"),
    (os.mkdir, "not a plain file"), (lambda path: None, "not there")])
def test_a_jobs_output_that_is_a_trap(node, make, why):
    """Root reads nothing through a link, blocks on no FIFO, and follows nobody."""
    one = job(node)
    os.unlink(node.root + "/home/out.txt")
    make(node.root + "/home/out.txt")
    _, items, _ = collect(node, [one])
    assert items["job-7-log-tail.txt"]["status"] == "missing" and why in items["job-7-log-tail.txt"]["why"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_root_reads_only_what_the_user_may(node):
    """A job that names another one's file as its output gets nothing of it."""
    one = job(node)
    os.chown(node.root + "/home/out.txt", 0, 0)
    _, items, _ = collect(node, [one])
    assert "denied" in items["job-7-log-tail.txt"]["why"]


@pytest.mark.parametrize("stdout,expected", [
    ("/o/%j.out", "/o/7.out"), ("/o/%A_%a", "/o/5_2"), ("/o/%x-%u-%N", "/o/train-u-n1"), ("/o/100%%", "/o/100%"),
    ("rel.out", "/w/rel.out"), ("/o/%5j", "/o/00007"), ("/o/%q%", "/o/%q%"), ("", ""), ("/o/%999999999999j", None)])
def test_patterns_in_the_path_of_the_output(stdout, expected):
    """What Slurm left in the path is filled in as sbatch documents it; the length stays bounded."""
    one = model.Job(7, user="u", name="train", array_job=5, array_task=2, nodes=("n1",), work_dir="/w", stdout=stdout)
    found = collectors.job_log_path(one)
    assert len(found) < 100 and expected in (None, found)


def test_the_slow_part_is_added_later(node):
    """nvidia-bug-report goes into the finished folder, and the manifest knows it."""
    program(node, "nvidia-bug-report.sh", 'echo "$1" > "$3.gz"')
    folder, _, _ = collect(node)
    assert slow.collect(node.root, node.cfg, folder.id, (str(node.bin),), 5.0) == ""
    assert text(folder, slow.NAME) == "--safe-mode\n"
    assert manifest.verify(folder.path) == {"changed": [], "missing": [], "extra": [], "complete": True}
    assert os.listdir(node.root + "/var/lib/gpuhealth/slow") == []


def test_the_slow_part_is_off_or_queued(node):
    """Off by configuration; without systemd word is left for the next one who can."""
    folder, _, _ = collect(node)
    assert slow.start(node.root, node.cfg, folder.id) == "off"
    node.cfg["evidence"]["bug_report"] = True
    assert slow.start(node.root, node.cfg, folder.id) == "queued"
    assert slow.shelf.queued_slow(node.root) == [folder.id]
    assert list(slow.collect_queued(node.root, node.cfg)) == [folder.id]
    assert slow.shelf.queued_slow(node.root) == []
    assert stat.S_ISDIR(os.stat(folder.path).st_mode)
