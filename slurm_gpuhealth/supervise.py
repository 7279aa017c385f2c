"""Run anything that may hang in a forked child with a deadline, and never wait for it longer.

Why fork and not threads: a thread in an uninterruptible call cannot be left behind, a child can. A fork costs
1.3 ms, a second interpreter 11. A child that is late gets SIGTERM, a grace, then SIGKILL (a monitor killed in
the middle of a call can freeze the GPU's firmware: dcgm-exporter issue 84). A child that survives SIGKILL is in
D state: it is left behind, never waited for, and remembered by the caller (`Result.status.pid`), so that no
second one is started while it lives.

Children get /dev/null on their standard streams, because slurmd reads a hook's pipe until end of file
(Slurm, src/common/run_command.c) and a child left behind would hold it open.
"""
from __future__ import annotations

import json
import os
import select
import signal
import time
from collections import namedtuple

from slurm_gpuhealth.facts import SourceStatus

Result = namedtuple("Result", "status records")
Result.__doc__ = """status: SourceStatus. records: list of (kind, plain) in the order they came; on "late" and "hung"
what came until then."""

AsUser = namedtuple("AsUser", "uid gid memory cpu_seconds", defaults=(None, 2 << 30, 60))
AsUser.__doc__ = """Whom a child becomes. gid None: the user's own, looked up in the child. memory: bytes of address
space; cpu_seconds: processor time."""

MAX_RECORDS_BYTES = 32 << 20   # more than this from one child is a fault of the child
_MAX_LOOKS = 6                 # at a killed process that is not in D
_KILL_WAIT = 0.25              # how long to look whether SIGKILL worked; a killed process is gone within that
_ORPHAN = 120                  # seconds after which a child that nobody watches any more ends by itself
_LOOK_AGAIN = 0.0005           # between two looks whether a child that has said all is gone
_open_fds: set[int] = set()    # read ends held by this process: a new child closes them
_left_here: list[int] = []     # processes that this one left behind: a child tells its parent of them at its end


class Child:
    """One running source: its pid, its pipe, its deadline and what it said so far."""

    def __init__(self, name, pid, fd, deadline, on_record=None):
        self.name, self.pid, self.fd = name, pid, fd
        self.started = time.monotonic()
        self.deadline = deadline            # absolute, monotonic
        self.on_record = on_record          # may return a later deadline (absolute) for this child
        self.records = []
        self.outcome = None
        self.detail = ""
        self.stage = "running"              # running -> (ending ->) terminated -> killed -> gone
        self.eof = self.starved = False
        self.looks = 0                      # at a process that SIGKILL has not ended yet
        self.left_behind = None             # pid of what no signal ends: this child, or one that it started
        self.next_step = deadline
        self._buffer = b""
        self._bytes = 0

    def feed(self, data):
        """Take bytes from the pipe apart into records."""
        self._bytes += len(data)
        if self._bytes > MAX_RECORDS_BYTES:
            self.detail = "said more than %d bytes" % MAX_RECORDS_BYTES
            self._finish("failed")
            return
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            try:
                kind, plain = json.loads(line)
            except ValueError:
                continue    # a child killed in the middle of a line
            if kind == "_end":
                self._finish("ok")
            elif kind == "_left":
                self.left_behind = plain
            elif kind == "_error":
                self.detail = plain
                self._finish("failed")
            else:
                self.records.append((kind, plain))
                later = self.on_record(kind, plain) if self.on_record else None
                if later and self.stage == "running":
                    self.deadline = self.next_step = max(self.deadline, later)

    def _finish(self, outcome):
        """The child has said its last word: its answer stands, whatever its exit does now."""
        if self.outcome is None:
            self.outcome = outcome
            self.stage, self.next_step = "ending", time.monotonic() + _KILL_WAIT

    def closed(self):
        """The pipe ended. Without a last word the child died of something."""
        self.eof = True
        if self.outcome is None:
            self.detail = "ended without an answer"
            self._finish("failed")

    def step(self, now, grace):
        """Move on when a deadline passed: terminate, then kill, then leave behind."""
        if self.stage in ("running", "ending"):
            if self.stage == "running":
                self.outcome = "late"
                self.detail = "no answer in %.1f s" % (now - self.started)
                self.starved = _is_starved(self.pid, now - self.started)
                if self.starved:
                    self.detail += ", the processors were busy with other things"
            _kill(self.pid, signal.SIGTERM)
            self.stage, self.next_step = "terminated", now + grace
        elif self.stage == "terminated":
            _kill(self.pid, signal.SIGKILL)
            self.stage, self.next_step = "killed", now + _KILL_WAIT
        else:
            # Alive after SIGKILL: in D, whatever it was before (a FUSE waiter turns D only when killed), or a busy
            # machine has not let it end yet. D must be seen twice: ending takes a moment of it too.
            found = process_start(self.pid)
            state = found[0] if found else "X"
            self.looks += 1
            if self.looks < (2 if state == "D" else _MAX_LOOKS):
                self.next_step = now + _KILL_WAIT
                return
            if state == "D":
                if self.outcome == "late":
                    self.outcome = "hung"
                self.detail += (", " if self.detail else "") + "no signal ends its process (D state)"
            self.left_behind = self.pid
            _left_here.append(self.pid)
            self.stage = "gone"


def start(name, func, spec, deadline, as_user=None, on_record=None, prepare=None):
    """Start `func(spec, emit)` in a child. `deadline`: seconds from now. Returns a Child for `gather`.

    prepare: called in the child before it becomes the user; to import what the user may not be able to read.
    `emit(kind, plain)` in the child streams one JSON record. An exception in the child becomes outcome
    "failed" with its text. OSError of fork (no memory, no pids) is raised here.
    """
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        _in_child(func, spec, write_end, as_user, prepare, deadline)
    os.close(write_end)
    os.set_blocking(read_end, False)
    _open_fds.add(read_end)
    return Child(name, pid, read_end, time.monotonic() + deadline, on_record)


def _in_child(func, spec, write_end, as_user, prepare, deadline):
    """Never returns."""
    code = 1
    try:
        os.setsid()
        signal.alarm(int(2 * deadline) + _ORPHAN)   # should the parent be killed, nobody else ends this process
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for fd in _open_fds:
            os.close(fd)
        _open_fds.clear()
        _left_here.clear()

        def emit(kind, plain):
            data = json.dumps([kind, plain]).encode() + b"\n"
            while data:
                data = data[os.write(write_end, data):]

        try:
            if prepare is not None:
                prepare()
            if as_user is not None:
                _become(as_user)
            func(spec, emit)
            if _left_here:
                emit("_left", _left_here[-1])
            emit("_end", None)
            code = 0
        except Exception as exc:  # the child's last word; the parent turns it into outcome "failed"
            if _left_here:
                emit("_left", _left_here[-1])
            emit("_error", ("%s: %s" % (type(exc).__name__, exc))[:500])
    finally:
        os._exit(code)


def _become(user):
    """Drop to an ordinary user for good: groups, ids, no new privileges, limits. Raises OSError, KeyError."""
    import ctypes
    import pwd
    import resource
    if user.uid == 0:
        raise PermissionError("will not act as root in a user's name")
    entry = pwd.getpwuid(user.uid)
    gid = entry.pw_gid if user.gid is None else user.gid
    os.setgroups(os.getgrouplist(entry.pw_name, gid))
    os.setresgid(gid, gid, gid)
    os.setresuid(user.uid, user.uid, user.uid)
    pr_set_no_new_privs = 38    # linux/prctl.h
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_no_new_privs, 1, 0, 0, 0)
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, user.memory),
                       (resource.RLIMIT_CPU, user.cpu_seconds)):
        hard = resource.getrlimit(what)[1]      # slurmd may have been given less, and less cannot be made more
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    os.umask(0o077)


def _kill(pid, number):
    """Signal the child's whole session (what it started too). Gone already: nothing to do."""
    for target in (-pid, pid):
        try:
            os.kill(target, number)
        except (ProcessLookupError, PermissionError):
            pass


def gather(children, until=None, grace=0.5):
    """Wait for all children, each no longer than its deadline, and none past `until` (monotonic).

    Returns {name: Result}. Takes at most the longest deadline plus `grace` plus a quarter second; never blocks
    on a process that cannot be ended. Children that ended are reaped.
    """
    poller = select.poll()
    waiting = {}
    for child in children:
        poller.register(child.fd, select.POLLIN | select.POLLHUP)
        waiting[child.fd] = child
        if until is not None:
            child.deadline = child.next_step = min(child.deadline, until)
    while waiting:
        now = time.monotonic()
        wake = min(child.next_step for child in waiting.values()) - now
        timeout = max(0, int(wake * 1000) + 1)
        if any(child.eof or child.stage == "ending" for child in waiting.values()):
            timeout = 0                 # it has said all: only looking again tells when it is gone
            time.sleep(_LOOK_AGAIN)
        for fd, _ in poller.poll(timeout):
            _read(waiting[fd])
            if waiting[fd].eof:
                poller.unregister(fd)
        now = time.monotonic()
        for fd, child in list(waiting.items()):
            if _reap(child.pid):
                if not child.eof:
                    _read(child)
                    poller.unregister(fd)
                    if not child.eof:   # something it started still holds the pipe
                        child.closed()
                child.stage = "gone"
            elif now >= child.next_step:
                child.step(now, grace)
            elif until is not None and child.stage == "running":
                child.next_step = min(child.next_step, until)
            if child.stage == "gone":
                if not child.eof:
                    poller.unregister(fd)
                _close(child)
                del waiting[fd]
    return {child.name: _result(child) for child in children}


def heard(child):
    """What a child that lives on has said since the last call: [(kind, plain)]. Never blocks."""
    if not child.eof:
        _read(child)
    said, child.records, child._bytes = child.records, [], 0
    return said


def gone(child):
    """True once a child that was read by `heard` has ended; it is reaped and its pipe closed then."""
    if child.stage != "gone" and _reap(child.pid):
        child.stage = "gone"
        _close(child)
    return child.stage == "gone"


def end(child):
    """Ask a child to end; nobody waits for it."""
    _kill(child.pid, signal.SIGTERM)


def start_afresh():
    """In a process that was forked off one with children of its own: they are not this one's."""
    _open_fds.clear()
    _left_here.clear()


def _read(child):
    for _ in range(64):     # bounded, so that one busy child cannot starve the deadlines of the others
        try:
            data = os.read(child.fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            child.closed()
            return
        child.feed(data)


def _reap(pid):
    """True when the child is gone. Never blocks."""
    try:
        done, _ = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return done == pid


def _close(child):
    _open_fds.discard(child.fd)
    os.close(child.fd)


def _result(child):
    seconds = round(time.monotonic() - child.started, 3)
    return Result(SourceStatus(child.name, child.outcome, seconds, child.detail, child.left_behind, 0, child.starved),
                  child.records)


def call(func, spec, deadline, as_user=None, name="call", grace=0.2, prepare=None):
    """Run one function in a child and wait for it: a Result. The function is called as func(spec, emit).

    Never raises: a child that could not be started (no pids, no memory, no descriptors left) has "failed". What is
    done in a child is never worth more than the drain that comes after it.
    """
    try:
        child = start(name, func, spec, deadline, as_user, prepare=prepare)
    except OSError as exc:
        return not_started(name, exc)
    return gather([child], grace=grace)[name]


def not_started(name, exc):
    """The Result of a child that `start` could not make."""
    return Result(SourceStatus(name, "failed", 0.0, "could not be started: %s" % exc.strerror), [])


def keep_from_children(fd):
    """Have each new child close `fd`: one that is left behind must not hold the node's lock."""
    _open_fds.add(fd)


def may_be_kept(fd):
    """Take that back, before `fd` is closed."""
    _open_fds.discard(fd)


def detach(func, spec, seconds):
    """Leave a process behind that runs `func(spec)` for at most `seconds` and belongs to nobody.

    For what must follow after the hook's own end and is not needed for safety: it may be lost. Measured: such a process
    outlives prolog, epilog and health check (Slurm 24.11). False when it could not be started.
    """
    try:
        pid = os.fork()
    except OSError:
        return False
    if pid:
        os.waitpid(pid, 0)      # the child in between; it ends at once
        return True
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 256)   # the guard's pipe, the lock and all else
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds))      # the last word, whatever it hangs in
        func(spec)
    finally:
        os._exit(0)


def _is_starved(pid, elapsed):
    """True for a process that would run and was given less than half of a processor: the machine is late, not it."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as handle:
            fields = handle.read().rpartition(b") ")[2].split()
    except OSError:
        return False
    ticks = int(fields[11]) + int(fields[12])       # utime, stime; proc(5)
    return fields[0] == b"R" and ticks / os.sysconf("SC_CLK_TCK") < elapsed / 2


def process_start(pid):
    """(state letter, start time in clock ticks) of a process, or None when it is gone. Source: proc(5)."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as handle:
            fields = handle.read().rpartition(b") ")[2].split()
    except (OSError, ValueError):
        return None
    return fields[0].decode(), int(fields[19])


def still_there(pid, ticks):
    """True while the very process that was left behind lives; its pid may have been given to another one."""
    found = process_start(pid)
    return found is not None and found[1] == ticks and found[0] not in "ZX"
