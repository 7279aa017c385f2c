"""`gpuhealth watch` on a node below a folder, with the real health check and a fake slurmctld."""
import os
import signal
import subprocess
import sys
import time

import pytest

from slurm_gpuhealth import watch

pytestmark = pytest.mark.allow_subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def watching(node):
    """A started watcher (after its first round); `node` as for the hooks."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.path.insert(0, %r); from slurm_gpuhealth.cli.main import main;"
         " sys.exit(main(sys.argv[1:]))" % ROOT, "--root", node.root, "watch"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, SLURMD_NODENAME="n1"))
    assert process.stdout.readline().startswith("round: started")
    wait_for(lambda: os.path.exists(node.path("/var/lib/gpuhealth/node.json")), 10)
    time.sleep(0.6)     # over the gap between two rounds
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    process.stdout.close()


def wait_for(condition, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


def drains(node):
    return [call for call in node.slurm.calls() if "State=DRAIN" in call]


def test_fault_is_drained_within_a_second(node, watching):
    """A line in the kernel log is enough; nobody waits for the next health check."""
    began = time.monotonic()
    node.xid(79, 3, age=0.1)
    assert wait_for(lambda: drains(node), 5)
    took = time.monotonic() - began
    assert any("GH-XID79 gpu3" in part for part in drains(node)[0])
    assert took < (1.0 if os.getloadavg()[0] < 2 else 4.0)


def test_many_lines_are_few_rounds(node, watching):
    """A flood of one line costs a few rounds and not one each."""
    for _ in range(40):
        for _ in range(25):
            node.xid(31, 2, "pid=7, name=a, MMU Fault", age=0.1)
        time.sleep(0.05)
    time.sleep(1.0)
    watching.send_signal(signal.SIGTERM)
    rounds = [line for line in watching.stdout.read().splitlines() if line.startswith("round: kernel log: xid 31")]
    assert 1 <= len(rounds) <= 4
    assert not drains(node)


def test_what_was_said_while_it_was_dead_is_found(node, watching):
    """It keeps nothing itself: the next round, its own or slurmd's, reads on from the node's cursor."""
    watching.kill()
    watching.wait(10)
    node.xid(79, 5)
    assert not drains(node)
    node.hook("healthcheck")
    assert len(drains(node)) == 1


def test_it_follows_a_log_that_is_rotated(node, watching):
    """The new file is read from its start."""
    log = node.path("/var/log/kmsg")
    os.rename(log, log + ".1")
    time.sleep(0.3)
    node.xid(79, 1, age=0.1)
    assert wait_for(lambda: drains(node), 5)


def test_it_ends_when_told(watching):
    """SIGTERM ends it at once and with success."""
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(5) == 0


@pytest.mark.parametrize("line, kind", [
    (b"4,1,1,-;NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", "xid 79 0000:06:00.0"),
    (b"4,1,1,-;NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "gpu_fell_off 0000:01:00.0"),
    (b"12,1,1,-;NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", ""),      # a program's
    (b"6,1,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07", ""),
    (b"6,1,1,-;systemd[1]: Started Session 1 of User root.", ""),
    (b"no record at all", ""), (b"", "")])
def test_what_matters(line, kind):
    """Faults do; what programs write, and what is said on healthy nodes, does not."""
    assert watch.matters(line) == kind


def test_systemd_is_told(tmp_path, monkeypatch):
    """Type=notify: ready, and alive."""
    import socket
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        watch.notify("READY=1")
        assert server.recv(64) == b"READY=1"


def test_an_upgrade_ends_it_and_a_new_configuration_is_taken_over(node, monkeypatch, tmp_path):
    """systemd starts the new version; half old and half new modules would decide otherwise."""
    package = tmp_path / "__init__.py"
    package.write_text("1")
    monkeypatch.setattr(watch, "_OURS", str(package))
    monkeypatch.setattr(watch, "_LOOK_AGAIN", 0.0)
    said = []
    watcher = watch.Watcher(node.root, lambda what, detail: said.append(what))
    watcher.look_next = 0.0
    watcher.look_at_ourselves()
    assert not watcher.stopping
    node.config["kernel_log"] = "/var/log/other"
    node.write({"/var/log/other": ""})
    node.save()
    watcher.look_at_ourselves()
    assert watcher.log.path == node.path("/var/log/other") and watcher.wanted is not None
    package.write_text("22")
    watcher.look_at_ourselves()
    assert watcher.stopping and said == ["ended"]
    watcher.log.close()


def test_a_users_flood_does_not_hide_a_fault(node, watching):
    """One Xid 31 line after the other, then 79: something new is looked at at once."""
    for _ in range(60):
        node.xid(31, 2, "pid=7, name=a, MMU Fault", age=0.1)
        time.sleep(0.05)
    began = time.monotonic()
    node.xid(79, 3, age=0.1)
    assert wait_for(lambda: drains(node), 10)
    assert time.monotonic() - began < (2.0 if os.getloadavg()[0] < 2 else 6.0)


@pytest.mark.parametrize("what", ["folder", "pipe", "missing", "null"])
def test_a_log_that_is_none_neither_ends_it_nor_keeps_it_busy(node, what):
    """It waits until there is one; the health check says what is wrong."""
    path = node.path("/var/log/kmsg")
    os.unlink(path)
    if what == "folder":
        os.mkdir(path)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "null":
        os.symlink("/dev/null", path)
    log = watch.Log(path)
    for _ in range(3):
        assert log.new() == ([], False)
    assert not log.device
    log.close()
    if what != "null":
        os.rename(path, path + ".old") if what != "missing" else None
        node.write({"/var/log/kmsg": ""})
        assert log.new() == ([], True)
        log.close()


def test_rounds_out_of_turn_are_no_samples(node, watching):
    """NVML that is late in rounds that the log woke is not "late in two rounds": seconds are not minutes."""
    os.unlink(node.path("/nvml.json"))
    os.mkfifo(node.path("/nvml.json"))
    for number in (31, 13, 43):
        node.xid(number, 2, "pid=7, name=a, something", age=0.1)
        time.sleep(3.2)
    assert not drains(node)
