"""`gpuhealth watch`: runs the health check at the moment when the kernel log or NVML says something that matters.

It only wakes the health check, the same that slurmd runs every few minutes, in a process of its own with its own
deadline. It decides nothing and remembers nothing: where the log was read up to is the node's own cursor, so nothing is
lost when this dies, and slurmd's health check stays the net below it.
"""
from __future__ import annotations

import os
import select
import signal
import stat
import time
from collections import deque

from slurm_gpuhealth import config, hook, paths, run, supervise
from slurm_gpuhealth.parse import kernel_kinds, kmsg
from slurm_gpuhealth.probes import nvml_events

# Seconds from the first line of something to the look: what belongs to it (154 after 79) comes within milliseconds.
SETTLE = 0.05
# Least seconds between the starts of two rounds, by how many were started in the last minute: a flood of lines costs a
# round every half minute, the first line of something new is looked at at once.
GAPS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_MINUTE = 60.0
# What the kernel says all the time on healthy nodes: time enough for slurmd's round.
QUIET = frozenset(("driver_load", "oom_kill", "aer_corrected", "edac_corrected", "mce_corrected", "mce_logged"))
_FILE_EVERY = 0.1           # seconds between looks at a log that is a file; a device wakes us itself
_LOOK_AGAIN = 10.0          # at the latest: for systemd's watchdog
_EVENTS_AGAIN = (5.0, 30.0, 300.0)      # before NVML is asked for events once more after it failed
_EVENTS_LIVE = 7 * 86400.0  # the child that waits for them is renewed after so long
_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__init__.py")
_MOST_FRESH = 20        # rounds in a minute that did not wait for the gap
_MOST_KINDS = 1000
_LINES = 4096               # of the log that are taken at one time


class Log:
    """The end of the kernel log: a device, or a file that may be rotated."""

    def __init__(self, path, at_start=False):
        self.path, self.device = path, False
        self.fd = -1            # -1: not open
        self._rest, self._inode = b"", 0
        self._open(at_start)

    def _open(self, at_start):
        try:
            self.fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            self.fd = -1        # not there yet, or between two names: looked for again
            return
        about = os.fstat(self.fd)
        if not (stat.S_ISCHR(about.st_mode) or stat.S_ISREG(about.st_mode)):
            self.close()        # a folder, a pipe: the health check says so
            return
        self.device, self._inode, self._rest = stat.S_ISCHR(about.st_mode), about.st_ino, b""
        if not at_start:
            os.lseek(self.fd, 0, os.SEEK_END)

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def new(self):
        """(lines since the last call, whether some were lost)."""
        if self.fd < 0:
            self._open(at_start=True)
            return [], self.fd >= 0
        try:
            return self._from_device() if self.device else self._from_file()
        except OSError:
            self.close()        # looked for again
            return [], False

    def _from_device(self):
        lines: list = []
        lost = False
        while len(lines) < _LINES:
            try:
                record = os.read(self.fd, 1 << 14)
            except BlockingIOError:
                break
            except BrokenPipeError:
                lost = True     # overwritten unread: the health check counts them
                continue
            if not record:
                self.device = False     # no log device (/dev/null): it would wake us for ever
                break
            lines.append(record.partition(b"\n")[0])
        return lines, lost

    def _from_file(self):
        data = os.read(self.fd, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > 1 << 16:
            self._rest = b""    # no record is that long
        lost = False
        if not data:
            try:
                now = os.stat(self.path)
                lost = now.st_ino != self._inode or now.st_size < os.lseek(self.fd, 0, os.SEEK_CUR)
            except FileNotFoundError:
                lost = True
            if lost:
                self.close()
                self._open(at_start=True)
        return lines, lost


def matters(line, any_facility=False):
    """What a record of the log tells that is worth a look at once ("xid 79 0000:06:00.0"), else ""."""
    record = kmsg.raw_record(kmsg.decode(line))
    if record is None or (record.facility and not any_facility):
        return ""
    parsed = kernel_kinds.parse(record.text)
    if parsed is None or parsed[0] in QUIET or parsed[0].endswith("_ok"):
        return ""
    return " ".join(str(part) for part in parsed[:3] if part not in (None, ""))


class Watcher:
    """The loop. say(what, detail): called with what happens. Ends at SIGTERM or SIGINT."""

    def __init__(self, root, say):
        self.root, self.say = root, say
        compiled, notes = config.read(root)
        self.cfg = config.from_compiled(compiled, run.node_name(os.environ))[0]
        for note in notes:
            say("configuration", note)
        self.node = (compiled or {}).get("node") or run.node_name(os.environ)
        self.log = Log(paths.under(root, self.cfg["kernel_log"]))
        self.seen = (_looks(_OURS), _looks(paths.under(root, paths.COMPILED)))
        self.look_next = time.monotonic() + _LOOK_AGAIN
        self.wanted = None          # monotonic time from which a round is due, and why
        self.why = ""
        self.fresh = False          # something that was not said in the last minute: it does not wait for the gap
        self.lately: dict = {}      # what was said -> monotonic time
        self.round = None           # pid of the round that runs
        self.starts: deque = deque()
        self.events = None          # the child that waits for NVML's events
        self.events_next, self.events_failed = 0.0, 0
        self.stopping = False

    def loop(self):
        """Until it is told to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write)
        preload()
        notify("READY=1")
        self.want("started")        # what happened while nobody watched
        try:
            while not self.stopping:
                self.step(wake_read)
                notify("WATCHDOG=1")
        finally:
            signal.set_wakeup_fd(-1)
            notify("STOPPING=1")
            if self.events is not None:
                supervise.end(self.events)

    def _stop(self, number, frame):
        self.stopping = True

    def step(self, wake_fd):
        """Wait for something, then do what is due."""
        poller = select.poll()
        poller.register(wake_fd, select.POLLIN)
        if self.log.fd >= 0 and self.log.device:
            poller.register(self.log.fd, select.POLLIN)
        if self.events is not None and not self.events.eof:
            poller.register(self.events.fd, select.POLLIN)
        if wake_fd in (fd for fd, _ in poller.poll(int(1000 * self.patience()))):
            os.read(wake_fd, 512)
        lines, lost = self.log.new()
        for what in dict.fromkeys(matters(line, self.cfg["kernel_log_user_facility"]) for line in lines):
            if what:
                self.want("kernel log: " + what)
        if lost:
            self.want("kernel log: records were lost, or it is another file")
        self.follow_events()
        self.reap()
        self.look_at_ourselves()
        self.start_round()

    def look_at_ourselves(self):
        """An upgraded package ends this process, so that systemd starts the new one: a round must not be half old, half
        new. A new configuration is taken over."""
        if time.monotonic() < self.look_next or self.round is not None:
            return
        self.look_next = time.monotonic() + _LOOK_AGAIN
        package, compiled = _looks(_OURS), _looks(paths.under(self.root, paths.COMPILED))
        if package != self.seen[0]:
            self.say("ended", "the package was replaced")
            self.stopping = True
        elif compiled != self.seen[1]:
            document, _ = config.read(self.root)
            self.cfg = config.from_compiled(document, self.node)[0]
            path = paths.under(self.root, self.cfg["kernel_log"])
            if path != self.log.path:
                self.log.close()
                self.log = Log(path)
                self.want("another kernel log")
        self.seen = (package, compiled)

    def patience(self):
        """Seconds that may be waited."""
        now = time.monotonic()
        longest = _LOOK_AGAIN if self.log.device else _FILE_EVERY
        if self.round is not None:
            longest = min(longest, 0.05)
        if self.wanted is not None:
            longest = min(longest, max(0.0, max(self.wanted, self.allowed()) - now))
        return longest

    def want(self, why):
        """A round is wanted; further reasons until it starts are the same round's."""
        now = time.monotonic()
        if why not in self.lately or now - self.lately[why] > _MINUTE:
            self.fresh = True
            if len(self.lately) >= _MOST_KINDS:
                self.lately.clear()
        self.lately[why] = now
        if self.wanted is None:
            self.wanted, self.why = now + SETTLE, why

    def allowed(self):
        """Monotonic time from which the next round may start."""
        now = time.monotonic()
        while self.starts and now - self.starts[0] > _MINUTE:
            self.starts.popleft()
        if not self.starts:
            return 0.0
        gap = GAPS[min(len(self.starts), len(GAPS) - 1)]
        return self.starts[-1] + (min(gap, GAPS[1]) if self.fresh and len(self.starts) < _MOST_FRESH else gap)

    def start_round(self):
        """Start the health check if it is due and none of ours runs."""
        now = time.monotonic()
        if self.wanted is None or self.round is not None or now < max(self.wanted, self.allowed()):
            return
        try:
            pid = os.fork()
        except OSError as exc:
            self.say("round", "could not be started: %s" % exc.strerror)
            self.wanted = now + 5.0
            return
        if pid == 0:
            self._in_round()
        self.say("round", self.why)
        self.starts.append(now)
        self.round, self.wanted, self.why, self.fresh = pid, None, "", False

    def _in_round(self):
        """In the child: the health check as slurmd would start it. Never returns."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()     # a drain that has begun is finished also when the watcher is stopped
            supervise.start_afresh()
            os.closerange(3, 256)
            os.environ["SLURMD_NODENAME"] = self.node
            os.environ["GPUHEALTH_WOKEN"] = "1"     # no sample of what has to stand for several rounds
            code = hook.main("healthcheck", self.root)
        finally:
            os._exit(code)

    def reap(self):
        """Take note of a round that has ended."""
        if self.round is None:
            return
        try:
            done, status = os.waitpid(self.round, os.WNOHANG)
        except ChildProcessError:
            done, status = self.round, 0
        if done == self.round:
            self.round = None
            if status:
                self.say("round", "ended with status %d" % status)

    # -- NVML's events

    def follow_events(self):
        """Start, read, and renew the child that waits for them. One that hangs is never followed by a second one."""
        now = time.monotonic()
        if self.events is None:
            if self.cfg["watch"]["nvml_events"] and not self.root and now >= self.events_next:
                try:
                    self.events = supervise.start("nvml-events", nvml_events.follow, {}, _EVENTS_LIVE)
                except OSError:
                    self.events_next = now + _EVENTS_AGAIN[-1]
            return
        for kind, plain in supervise.heard(self.events):
            if kind == "ready":
                self.events_failed = 0
            elif kind == "event":
                self.want("NVML: " + plain["what"])
            elif kind == "trouble":
                self.want("NVML: " + plain["what"])
        if self.events.outcome is not None or now > self.events.deadline:
            supervise.end(self.events)      # it has failed, or is old; one that hangs stays, and no second one follows
        if supervise.gone(self.events):
            self.say("nvml-events", self.events.detail or "ended")
            self.events = None
            self.events_next = now + _EVENTS_AGAIN[min(self.events_failed, len(_EVENTS_AGAIN) - 1)]
            self.events_failed += 1


def _looks(path):
    """What a file looks like, None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def preload():
    """Import all that a round needs, once: each round is a fork of this process."""
    from slurm_gpuhealth import actions, checks  # noqa: F401
    from slurm_gpuhealth.actions import housekeeping, jobs, lookups, node, record  # noqa: F401
    from slurm_gpuhealth.evidence import store  # noqa: F401
    from slurm_gpuhealth.probes import kmsg as _kmsg  # noqa: F401
    from slurm_gpuhealth.probes import mounts, nvml, nvml_call, nvml_device, nvml_readers  # noqa: F401
    for row in checks.CHECKS.values():
        __import__("slurm_gpuhealth.checks." + row.module)
    try:
        nvml_call.import_nvml()
    except ImportError:
        pass    # the rounds say so


def notify(text):
    """Tell systemd (sd_notify(3)); nothing where it did not start us."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    import socket
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
            sock.connect(address)
            sock.send(text.encode())
    except OSError:
        pass    # a busy manager: the next one counts
