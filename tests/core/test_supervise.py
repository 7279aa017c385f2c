"""A child is never waited for past its deadline, and what it said is never lost."""
import errno
import os
import signal
import time

import pytest

from slurm_gpuhealth import supervise


def say_and_sleep(spec, emit):
    emit("said", {"n": 1})
    time.sleep(60)


def ignore_term(spec, emit):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    emit("ready", None)
    time.sleep(60)


def test_records_come_in_order():
    """What a source emits arrives whole and in order."""
    def read(spec, emit):
        for number in range(1000):
            emit("n", number)
    result = supervise.call(read, None, 5)
    assert result.status.outcome == "ok"
    assert [plain for _, plain in result.records] == list(range(1000))


def test_late_keeps_what_came():
    """Late is unknown, but what was read before the deadline counts."""
    started = time.monotonic()
    result = supervise.call(say_and_sleep, None, 0.3)
    assert result.status.outcome == "late"
    assert result.records == [("said", {"n": 1})]
    assert time.monotonic() - started < 1.5
    assert result.status.pid is None


def test_term_before_kill():
    """A child that handles SIGTERM gets the chance to (a killed NVML client can freeze the GPU's firmware)."""
    read_end, write_end = os.pipe()

    def polite(spec, emit):
        def leave(number, frame):
            os.write(write_end, b"term")
            os._exit(0)
        signal.signal(signal.SIGTERM, leave)
        emit("ready", None)
        time.sleep(60)
    try:
        assert supervise.call(polite, None, 0.3).status.outcome == "late"
        assert os.read(read_end, 10) == b"term"
    finally:
        os.close(read_end)
        os.close(write_end)


def test_child_that_ignores_term_is_killed():
    """SIGTERM may be ignored, the deadline may not."""
    child = supervise.start("x", ignore_term, None, 0.3)
    result = supervise.gather([child], grace=0.2)["x"]
    assert result.status.outcome == "late"
    assert supervise.process_start(child.pid) is None


@pytest.mark.parametrize("how,why", [
    (lambda spec, emit: 1 / 0, "ZeroDivisionError: division by zero"),
    (lambda spec, emit: os._exit(3), "ended without an answer"),
    (lambda spec, emit: os.kill(os.getpid(), signal.SIGSEGV), "ended without an answer"),
])
def test_failure_says_why(how, why):
    """A source that crashes is failed, with its reason, and is not mistaken for late or ok."""
    result = supervise.call(how, None, 5)
    assert (result.status.outcome, result.status.detail) == ("failed", why)


def test_unreaped_process_counts_as_gone():
    """A process that has ended (a zombie) is not one that hangs."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    ticks = supervise.process_start(pid)[1]
    while supervise.process_start(pid)[0] != "Z":
        time.sleep(0.01)
    assert not supervise.still_there(pid, ticks)
    os.waitpid(pid, 0)


def test_pid_of_another_process_is_not_ours():
    """A pid that was given to another process since does not stop the source for ever."""
    state, ticks = supervise.process_start(os.getpid())
    assert supervise.still_there(os.getpid(), ticks)
    assert not supervise.still_there(os.getpid(), ticks + 1)


def test_starved_child_is_told_from_a_silent_source():
    """A child that would run and gets no processor says nothing about its source: it counts no round."""
    def spin(spec, emit):
        while True:
            pass

    def start_stopped(spec, emit):
        os.kill(os.getppid(), 0)
        time.sleep(60)
    assert supervise.call(start_stopped, None, 0.3).status.starved is False     # it sleeps: the source is silent
    many = [supervise.start("spin%d" % n, spin, None, 1.0) for n in range(8 * (os.cpu_count() or 1))]
    statuses = [result.status for result in supervise.gather(many).values()]
    assert {status.outcome for status in statuses} == {"late"}      # none is called hung for being slow to die
    assert sum(status.starved for status in statuses) > len(many) / 2


def test_all_run_side_by_side():
    """Three sources that are late together cost one deadline, not three."""
    started = time.monotonic()
    children = [supervise.start(name, say_and_sleep, None, 0.4) for name in "abc"]
    results = supervise.gather(children)
    assert {result.status.outcome for result in results.values()} == {"late"}
    assert time.monotonic() - started < 1.2


def test_grandchild_with_the_pipe_does_not_delay():
    """Something that a source started and left behind must not keep the hook."""
    def leave_one(spec, emit):
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        emit("n", 1)
    started = time.monotonic()
    result = supervise.call(leave_one, None, 5)
    assert (result.status.outcome, result.records) == ("ok", [("n", 1)])
    assert time.monotonic() - started < 1


def test_later_deadline_when_asked():
    """A source that says that it will take longer (no persistence mode) gets the time."""
    def slow(spec, emit):
        emit("persistence", {"mode": 0})
        time.sleep(0.6)
        emit("done", None)
    started = time.monotonic()
    child = supervise.start("nvml", slow, None, 0.3,
                            on_record=lambda kind, plain: started + 5 if kind == "persistence" else None)
    assert supervise.gather([child])["nvml"].status.outcome == "ok"


def test_no_source_passes_the_end_of_the_hook():
    """`until` bounds every deadline, also a later one."""
    child = supervise.start("x", say_and_sleep, None, 30, on_record=lambda kind, plain: time.monotonic() + 60)
    started = time.monotonic()
    assert supervise.gather([child], until=started + 0.3)["x"].status.outcome == "late"
    assert time.monotonic() - started < 1.5


def test_children_have_no_standard_streams():
    """slurmd reads the hook's pipe until its end: a child left behind must not hold it."""
    result = supervise.call(lambda spec, emit: emit("fds", [os.readlink("/proc/self/fd/%d" % n) for n in (0, 1, 2)]),
                            None, 5)
    assert result.records == [("fds", ["/dev/null"] * 3)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_becomes_the_user_for_good():
    """A child for a user's files has the user's ids, no root left to go back to, and no new privileges."""
    def look(spec, emit):
        with open("/proc/self/status", "rb") as handle:     # text mode would import a codec the user cannot read
            status = dict(line.split(":\t", 1) for line in handle.read().decode().splitlines() if ":\t" in line)
        emit("ids", [os.getresuid(), os.getresgid(), status["NoNewPrivs"], int(status["CapEff"], 16)])
    result = supervise.call(look, None, 5, as_user=supervise.AsUser(65534))
    assert result.records[0][1] == [[65534] * 3, [65534] * 3, "1", 0]


def test_never_acts_as_root_for_a_user():
    """A job of root gets no child with root's rights on a user's word."""
    result = supervise.call(lambda spec, emit: emit("ran", None), None, 5, as_user=supervise.AsUser(0))
    assert result.status.outcome == "failed"
    assert result.records == []


def test_child_that_cannot_be_started_has_failed(monkeypatch):
    """No pids left (a user's fork bomb): what children do must not keep the drain behind it from being tried."""
    open_before = len(os.listdir("/proc/self/fd"))

    def no_fork():
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
    monkeypatch.setattr(os, "fork", no_fork)
    result = supervise.call(lambda spec, emit: None, None, 1, name="x")
    assert (result.status.outcome, result.records) == ("failed", [])
    assert "could not be started" in result.status.detail
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_child_without_a_parent_ends_by_itself():
    """When the worker is killed, nobody watches its children any more."""
    child = supervise.start("x", lambda spec, emit: emit("left", signal.alarm(0)), None, 2)
    result = supervise.gather([child])["x"]
    assert 100 < dict(result.records)["left"] < 600
