"""The outermost layer of a hook: a guard that ends on time whatever happens below it.

The guard forks the worker (run.py) and does nothing that can block: no file is opened, no lock taken, no process
waited for. It reads short messages from the worker's pipe until the worker has finished or the deadline has
come, prints what it was told to, and exits. A worker that crashes, hangs in a dead file system or cannot even
import its modules becomes the site's `on_internal_error` policy, which by default lets the job run: the tool's
own fault must never drain a cluster.

Messages, one a line, KIND and value: "deadline SECONDS", "policy EXIT", "verdict EXIT", "say TEXT" (to stdout),
"exit EXIT" (the last).
"""
from __future__ import annotations

import os
import select
import signal
import sys
import time

# Until the configuration is known. Slurm's own limits are higher (60 s for the health check).
DEADLINES = {"prolog": 20.0, "epilog": 20.0, "healthcheck": 40.0}
_LAST_WORDS = 0.3       # seconds between the worker's own deadline and the guard's


def main(phase, root=""):
    """Run the hook `phase` ("prolog", "epilog", "healthcheck", "taskprolog") and return its exit status."""
    if phase == "taskprolog":
        return _taskprolog(root)
    started = time.monotonic()
    read_end, write_end = os.pipe()
    try:
        pid = os.fork()
    except OSError as exc:      # out of pids or memory: the node has other worries, ours must not add to them
        _syslog("cannot fork: %s" % exc)
        return 0
    if pid == 0:
        os.close(read_end)
        os._exit(_worker(phase, root, write_end, started))
    os.close(write_end)
    return _guard(phase, pid, read_end, started)


def _guard(phase, pid, fd, started):
    until = started + DEADLINES[phase]
    policy = verdict = final = None
    buffer = b""
    poller = select.poll()
    poller.register(fd, select.POLLIN | select.POLLHUP)
    while final is None:
        left = until - time.monotonic()
        if left <= 0:
            break
        if not poller.poll(int(left * 1000) + 1):
            continue
        data = os.read(fd, 65536)
        if not data:
            break
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            kind, value = _message(line)
            if kind == "deadline":
                until = started + float(value)
            elif kind == "policy":
                policy = int(value)
            elif kind == "verdict":
                verdict = int(value)
            elif kind == "say":
                _say(value)
            elif kind == "exit":
                final = int(value)
    if final is not None:
        return final
    late = time.monotonic() >= until
    for target in (-pid, pid):
        try:
            os.kill(target, signal.SIGKILL)     # the worker only; sources have sessions of their own
        except (ProcessLookupError, PermissionError):
            pass
    code = verdict if verdict is not None else (policy or 0)
    _syslog("%s: the worker %s; exit %d" % (phase, "was late" if late else "ended without a word", code))
    return code


def _message(line):
    """(kind, value) of one line; the guard imports no json for that."""
    kind, _, value = line.partition(b" ")
    return kind.decode("ascii", "replace"), value.decode("utf-8", "replace")


def _say(text):
    try:
        os.write(1, text.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass    # nobody reads it


def _worker(phase, root, fd, started):
    """In the child: everything else. Returns the exit status of the worker (only for a look at `ps`)."""
    def tell(kind, value):
        line = ("%s %s" % (kind, value)).replace("\n", " ") + "\n"
        data = line.encode("utf-8", "replace")
        try:
            while data:
                data = data[os.write(fd, data):]
        except BrokenPipeError:
            pass    # the guard was killed (slurmd's own time limit, an admin): what has begun is still finished
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        import gc
        gc.disable()        # a process of a tenth of a second: looking for garbage costs more than it gives
        from slurm_gpuhealth.probes import warm
        early = warm.start() if not root else None      # works on the other core while this one imports the rest
        from slurm_gpuhealth import run
        tell("exit", run.run(phase, dict(os.environ), root, started, tell, _LAST_WORDS, early))
        return 0
    except Exception as exc:    # the last resort: said, and turned into the site's policy by the guard
        _syslog("%s: internal error: %s: %s at %s" % (phase, type(exc).__name__, exc, _where(exc)))
        _report(phase, root, exc)
        return 70


def _where(exc):
    """file:line of the innermost frame, without importing traceback."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "?"
    return "%s:%d" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)


def _report(phase, root, exc):
    """An event about our own fault, if at all possible."""
    try:
        from slurm_gpuhealth import run
        run.report_internal_error(phase, root, "%s: %s at %s" % (type(exc).__name__, exc, _where(exc)))
    except Exception as second:     # no way to write it: syslog has the first one already
        _syslog("%s: and no event could be written: %s" % (phase, second))


def _syslog(text):
    """One datagram to the system log; never blocks, never raises. Facility daemon, severity error."""
    import socket
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect("/dev/log")
            sock.send(("<27>gpuhealth[%d]: %s" % (os.getpid(), text[:900])).encode("utf-8", "replace"))
    except OSError:
        pass    # no system log in this container


def _taskprolog(root):
    """Print the job's resume point for its scripts. Runs as the user; always exits 0 (a task would die)."""
    try:
        from slurm_gpuhealth import taskprolog
        for line in taskprolog.lines(dict(os.environ), root):
            _say(line)
    except Exception as exc:
        _syslog("taskprolog: %s: %s" % (type(exc).__name__, exc))
    return 0


if __name__ == "__main__":      # for a look from the shell: python -m slurm_gpuhealth.hook healthcheck
    sys.exit(main(sys.argv[1]))
