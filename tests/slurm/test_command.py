"""The one gate through which programs are started."""
import os
import signal
import time

import pytest

from slurm_gpuhealth import command
from slurm_gpuhealth.errors import UsageError

pytestmark = pytest.mark.allow_subprocess


def sh(script, deadline=5, **more):
    return command.run(["/bin/sh", "-c", script], deadline, **more)


def test_output_and_status():
    """Both outputs and the exit status come back."""
    done = sh("echo out; echo err >&2; exit 3")
    assert (done.rc, done.out, done.err, done.timed_out) == (3, "out\n", "err\n", False)


def test_a_signal_is_a_negative_status():
    """A program that a signal ended has minus its number."""
    assert sh("kill -11 $$").rc == -11


@pytest.mark.parametrize("argv", [[], ["ls"], ["./ls"], ["bin/ls"]])
def test_only_absolute_paths(argv):
    """Hooks have no PATH, and root must not find a program by name."""
    with pytest.raises(UsageError):
        command.run(argv, 1)


def test_arguments_reach_the_program_unchanged(tmp_path):
    """No shell: quotes, blanks, newlines and dollars stay what they are."""
    hostile = "a b\t'\"$(touch %s/x)`id`\n;&|\\" % tmp_path
    assert command.run(["/usr/bin/printf", "%s", hostile], 5).out == hostile
    assert not os.listdir(tmp_path)


def test_bytes_that_are_no_text_survive():
    """Undecodable bytes come back as surrogates and can be written again."""
    done = sh("printf '\\377x'")
    assert done.out.encode("utf-8", "surrogateescape") == b"\xffx"


def test_environment_is_ours(monkeypatch):
    """Nothing of the caller's environment is passed on; what is asked for is."""
    monkeypatch.setenv("LD_PRELOAD_FOR_TEST", "1")
    lines = command.run(["/usr/bin/env"], 5, env={"SLURM_CONF": "/x"}).out.split("\n")
    assert "LD_PRELOAD_FOR_TEST=1" not in lines
    assert {"SLURM_CONF=/x", "LC_ALL=C"} <= set(lines)


def test_input():
    """Input is handed over whole, also more than a pipe holds; without one it is empty."""
    assert command.run(["/bin/cat"], 5, input="ab" * 100000).out == "ab" * 100000
    assert command.run(["/bin/cat"], 5).out == ""
    assert command.run(["/bin/true"], 5, input="x" * 500000).rc == 0


def test_output_is_bounded():
    """More output than allowed is read and dropped, so that the program can end."""
    done = command.run(["/usr/bin/head", "-c", "3000000", "/dev/zero"], 5, max_bytes=1000)
    assert (done.rc, len(done.out)) == (0, 1000)


def test_missing_program_and_folder():
    """What cannot be started is status 127 with the reason."""
    assert command.run(["/no/such/program"], 5)[:3] == (
        127, "", "/no/such/program: No such file or directory")
    assert command.run(["/bin/true"], 5, cwd="/no/such/folder").rc == 127


def test_deadline_ends_it():
    """At the deadline the program gets SIGTERM, and its output until then is kept."""
    start = time.monotonic()
    done = sh("echo early; exec sleep 30", deadline=0.2)
    assert (done.rc, done.out, done.timed_out) == (-signal.SIGTERM, "early\n", True)
    assert time.monotonic() - start < 2


def test_deadline_kills_what_ignores_sigterm():
    """After the grace comes SIGKILL, for the whole process group."""
    start = time.monotonic()
    done = sh("trap '' TERM; sleep 31 & echo $!; while :; do sleep 1; done", deadline=0.3, grace=0.1)
    assert done.rc == -signal.SIGKILL
    assert done.timed_out
    assert time.monotonic() - start < 2
    child = int(done.out)
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        time.sleep(0.02)
        with open("/proc/%d/stat" % child) as stat:     # a zombie of a container's init is gone too
            if ") Z " in stat.read():
                break
    else:
        pytest.fail("the program's own child lives on")


def test_a_child_that_holds_the_pipe_does_not_keep_us():
    """A program that ended is done, whoever still holds its output."""
    start = time.monotonic()
    done = sh("sleep 3 & echo left", deadline=10)
    assert (done.rc, done.out) == (0, "left\n")
    assert time.monotonic() - start < 1


def test_closed_output_is_not_the_end():
    """A program may close its output and go on; its status is waited for."""
    assert sh("exec >&- 2>&-; sleep 0.1; exit 5").rc == 5


def test_no_descriptor_is_left_open():
    """Each call closes what it opened, also when the program cannot be started."""
    before = len(os.listdir("/proc/self/fd"))
    sh("echo x")
    command.run(["/bin/cat"], 5, input="x")
    command.run(["/no/such/program"], 5)
    assert len(os.listdir("/proc/self/fd")) == before


def test_ignored_sigchld_does_not_lose_the_status():
    """A parent that ignores SIGCHLD hands that on; the exit status must be seen all the same."""
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert sh("exit 4").rc == 4
    finally:
        signal.signal(signal.SIGCHLD, old)


def test_survivor_of_sigkill_is_left_behind(monkeypatch):
    """A process that no signal ends (D state) is given up with its pid, and not waited for."""
    monkeypatch.setattr(command, "_signal_group", lambda pid, number: None)
    start = time.monotonic()
    done = sh("exec sleep 2", deadline=0.1, grace=0.1)
    assert done.rc is None
    assert done.timed_out
    assert done.pid > 0
    assert time.monotonic() - start < 1
    os.kill(done.pid, signal.SIGKILL)
    os.waitpid(done.pid, 0)
