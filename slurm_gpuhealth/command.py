"""The only place where this package starts another program.

No shell, an absolute path, a small environment of our own, a process group of its own, /dev/null as standard
input, bounded output and a deadline. At the deadline: SIGTERM, a grace, SIGKILL; a process that survives
that is in D state and is left behind, never waited for. The standard library's subprocess costs 11 ms to
import and blocks in `communicate` on such a process, so this forks by hand.
"""
from __future__ import annotations

import os
import select
import signal
import time
from collections import namedtuple

from slurm_gpuhealth.errors import UsageError

Done = namedtuple("Done", "rc out err timed_out seconds pid", defaults=(False, 0.0, None))
Done.__doc__ = """How a program ended.

rc: exit status, minus the signal's number when a signal ended it, 127 when it could not be started, None when
it was left behind in D state (pid is then its process id). out, err: text, undecodable bytes kept as
surrogates; cut at the limit. timed_out: it was ended at the deadline. seconds: how long it took.
"""

CLEAN_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C", "LC_ALL": "C"}
_KILL_WAIT = 0.25   # how long to look whether SIGKILL worked
_LOOK = 0.05        # at the latest after this, look whether the program is gone though its pipes are open


def run(argv, deadline, input=None, max_bytes=1 << 20, env=None, cwd="/", grace=0.5):
    """Run a program and wait for it, at most `deadline` seconds plus the grace. Returns Done.

    argv: list of str, argv[0] an absolute path (UsageError otherwise). input: str or bytes for its standard
    input, or None for /dev/null. max_bytes: each of stdout and stderr is cut there, the rest is read and
    dropped, so that the program does not block. env: variables added to CLEAN_ENV; nothing of this process's
    own environment is passed on. cwd: "/" or another folder.
    """
    if not argv or not argv[0].startswith("/"):
        raise UsageError("not an absolute path: %r" % (argv[:1],))
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)   # inherited: the exit status would be lost
    started = time.monotonic()
    pipes = []
    try:
        for _ in range(3 if input is None else 4):
            pipes.append(os.pipe())
        pid = os.fork()
    except OSError as exc:
        for pair in pipes:
            _close(*pair)
        return Done(127, "", "cannot be started: %s" % exc.strerror, False, time.monotonic() - started)
    (out_read, out_write), (err_read, err_write), (said_read, said_write) = pipes[:3]
    if pid == 0:
        _in_child(argv, dict(CLEAN_ENV, **(env or {})), pipes, cwd)
    _close(out_write, err_write, said_write)
    feed = None
    if input is not None:
        _close(pipes[3][0])
        feed = (pipes[3][1], input.encode("utf-8", "surrogateescape") if isinstance(input, str) else input)
    buffers = {out_read: bytearray(), err_read: bytearray()}
    end = _End(pid, started + deadline, grace)
    said = bytearray()
    try:
        _pump(end, buffers, feed, max_bytes)
        os.set_blocking(said_read, False)
        _take(said_read, said, 16)
    finally:
        _close(out_read, err_read, said_read)
    out, err = (bytes(buffers[fd]).decode("utf-8", "surrogateescape") for fd in (out_read, err_read))
    if said and end.rc is not None:
        err = "%s: %s" % (argv[0], os.strerror(int(said)))
    return Done(end.rc, out, err, end.timed_out, time.monotonic() - started, pid if end.rc is None else None)


def _in_child(argv, env, pipes, cwd):
    """Become the program; never returns. Where that fails, the number of the error goes to the third pipe.

    A fork by hand rather than posix_spawn, which cannot change the folder, and a hook's own folder may be on
    a file system that no longer answers. The pipes are close-on-exec; dup2 makes the copies that stay open.
    """
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(pipes[3][0] if len(pipes) > 3 else os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(pipes[0][1], 1)
        os.dup2(pipes[1][1], 2)
        os.chdir(cwd)
        os.execve(argv[0], argv, env)
    except OSError as exc:
        os.write(pipes[2][1], b"%d" % (exc.errno or 0))
    finally:
        os._exit(127)


class _End:
    """Watches one process until it is gone or given up."""

    def __init__(self, pid, deadline, grace):
        self.pid, self.next_step, self.grace = pid, deadline, grace
        self.rc = None
        self.timed_out = self.over = False
        self.stage = 0

    def look(self):
        """Reap without blocking; step on when it is time."""
        done, status = os.waitpid(self.pid, os.WNOHANG)
        now = time.monotonic()
        if done:
            self.rc = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            self.over = True
            if self.timed_out:      # what it started in its group goes with it
                _signal_group(self.pid, signal.SIGKILL)
        elif now >= self.next_step:
            self.timed_out = True
            if self.stage == 2:
                self.over = True    # in D state: left behind
                return
            _signal_group(self.pid, (signal.SIGTERM, signal.SIGKILL)[self.stage])
            self.next_step = now + (self.grace, _KILL_WAIT)[self.stage]
            self.stage += 1


def _pump(end, buffers, feed, max_bytes):
    """Move bytes until the program is gone (and its pipes are empty) or was given up."""
    poller = select.poll()
    open_fds = set(buffers)
    for fd in buffers:
        os.set_blocking(fd, False)
        poller.register(fd, select.POLLIN | select.POLLHUP)
    if feed:
        os.set_blocking(feed[0], False)
        poller.register(feed[0], select.POLLOUT)
    pause = 0.001
    try:
        while True:
            end.look()
            # A program that ended may have left children that hold its pipes: read what is there, then stop.
            if end.over:
                for fd in open_fds:
                    _take(fd, buffers[fd], max_bytes)
                return
            # It may end while a child of its own still holds its pipes, or close them and go on: look again.
            pause = min(pause * 2, 0.02 if not open_fds else _LOOK)
            wait = min(end.next_step - time.monotonic(), pause)
            for fd, _ in poller.poll(max(0, int(wait * 1000)) + 1):
                if feed and fd == feed[0]:
                    feed = _give(poller, feed)
                elif not _take(fd, buffers[fd], max_bytes):
                    poller.unregister(fd)
                    open_fds.discard(fd)
                    pause = 0.001       # the end is near
    finally:
        if feed:
            _close(feed[0])


def _take(fd, buffer, max_bytes):
    """Read what is there; False at the end of file."""
    for _ in range(16):
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        buffer += data[:max(0, max_bytes - len(buffer))]
    return True


def _give(poller, feed):
    fd, data = feed
    try:
        data = data[os.write(fd, data):]
    except BlockingIOError:
        return feed
    except BrokenPipeError:
        data = b""      # it does not want its input
    if data:
        return fd, data
    poller.unregister(fd)
    os.close(fd)
    return None


def _signal_group(pid, number):
    for target in (-pid, pid):      # the second for a child that has not reached its setpgid
        try:
            os.kill(target, number)
        except (ProcessLookupError, PermissionError):
            continue


def _close(*fds):
    for fd in fds:
        os.close(fd)
