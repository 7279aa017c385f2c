"""The rest of the quick evidence: what is collected straight after the drain, all at once, each in its own child.

A collector is `func(spec, emit)`: it emits ("data", {"b64": ...}) pieces and, when it has less than it should,
("why", text). It may hang or die: what came until then is kept, and the manifest says what happened. Paths are
under spec["root"]. Nothing here calls NVML, and nvidia-smi is not started while an NVML call of ours hangs.
"""
from __future__ import annotations

import binascii
import errno
import json
import os
import stat
import time
from collections import namedtuple

from slurm_gpuhealth import command, paths, supervise
from slurm_gpuhealth import facts as facts_module
from slurm_gpuhealth.errors import StateError

Collector = namedtuple("Collector", "name func deadline as_user job", defaults=(None, None))
_PIECE = 384 << 10          # bytes of one piece; a multiple of 3, so that the pieces can be joined
MAX_BYTES = 12 << 20        # of one file: base64 of it stays below what supervise takes from one child
BIN_DIRS = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/bin")
_GRACE = 0.3                # seconds between SIGTERM and SIGKILL
MAX_JOBS = 8                # whose output is kept; a node rarely has more with GPUs
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def collect(folder, cfg, spec, jobs, deadline):
    """Run all collectors side by side and put what they bring into `folder` (store.Folder).

    spec: dict; "bin_dirs" names other places to look for programs. jobs: model.Job whose output is of interest.
    deadline: seconds for all of it. What is missing stands in the manifest.
    """
    # What is late is ended by then: a grace, and a look whether that worked.
    until = time.monotonic() + deadline - _GRACE - 0.4
    spec = {"root": folder.root, "cfg": cfg, "facts": folder.facts() or facts_module.Facts(), "until": until,
            "bin_dirs": spec.get("bin_dirs") or BIN_DIRS}
    children = []
    for collector in plan(spec, jobs):
        if isinstance(collector.func, str):
            folder.lack(collector.name, collector.func)
            continue
        try:
            children.append(supervise.start(collector.name, collector.func, dict(spec, job=collector.job),
                                            collector.deadline, collector.as_user))
        except OSError as exc:
            folder.lack(collector.name, "could not be started: %s" % exc.strerror)
    for name, result in supervise.gather(children, until, _GRACE).items():
        data, why = _joined(result)
        try:
            if data or (result.status.outcome == "ok" and not why):
                folder.keep(name, data, why or ("empty" if not data else ""), result.status.seconds)
            else:
                folder.lack(name, why, result.status.seconds)
        except StateError as exc:
            folder.say("%s: %s" % (name, exc))


def _joined(result):
    """(bytes, why there is less than there should be or "")."""
    data, said = bytearray(), []
    for kind, plain in result.records:
        if kind == "data":
            data += binascii.a2b_base64(plain["b64"])
        elif kind == "why":
            said.append(str(plain)[:300])
    if result.status.outcome == "late":
        said.append("timed out: " + result.status.detail)
    elif result.status.outcome != "ok":
        said.append("%s: %s" % (result.status.outcome, result.status.detail))
    return bytes(data[:MAX_BYTES]), "; ".join(said)


def plan(spec, jobs):
    """The collectors for this fault; one whose func is a text is left out for that reason."""
    limits = spec["cfg"]["deadlines"]
    found = [
        Collector("kernel.log", kernel_log, limits["kernel_log"]),
        Collector("versions.txt", versions, 1.0),
        Collector("mountinfo.txt", mountinfo, 1.0),
        # Longer than other commands: ending nvidia-smi in the middle of a call may freeze the GPU's firmware.
        Collector("nvidia-smi-q.txt", nvml_hung(spec["facts"]) or nvidia_smi, limits["nvml"] + 1.0),
        Collector("lspci-vv.txt", lspci, limits["command"] + 1.0),
        Collector("gpu-processes.jsonl", processes, limits["command"]),
    ]
    if not jobs:
        found.append(Collector("job-log-tail.txt", "no job", 0))
    for job in jobs[:MAX_JOBS]:
        name = "job-%s-log-tail.txt" % job.id
        hangs = mount_hangs(spec["facts"], job_log_path(job))
        if not job_log_path(job):
            found.append(Collector(name, "the path of the job's output is not known", 0))
        elif hangs:
            found.append(Collector(name, hangs, 0))
        elif not job.uid and os.geteuid() == 0:
            found.append(Collector(name, "the job's user is root or not known: not read", 0))
        else:
            user = supervise.AsUser(job.uid) if os.geteuid() == 0 else None
            found.append(Collector(name, job_log, limits["command"], user, job))
    return found


def nvml_hung(facts):
    """Why nvidia-smi must not be started, or "". It would hang as our own NVML call does, and hold the GPU."""
    for status in facts.sources:
        if status.name.startswith("nvml") and status.outcome in ("hung", "late"):
            return "not started: NVML gave no answer (%s)" % status.outcome
    return ""


def mount_hangs(facts, path):
    """Why nothing at `path` must be opened, or "": its mount gave no answer, a second visitor would hang as well."""
    for status in facts.sources:
        kind, _, mount = status.name.partition(":")
        if kind == "mount" and status.outcome in ("hung", "late") and path.startswith(mount.rstrip("/") + "/"):
            return "not read: %s gave no answer (%s)" % (mount, status.outcome)
    return ""


def _emit_bytes(emit, data):
    for start in range(0, len(data), _PIECE):
        piece = binascii.b2a_base64(data[start:start + _PIECE], newline=False).decode("ascii")
        emit("data", {"b64": piece})


# -- files

def kernel_log(spec, emit):
    """The whole kernel log: all records that /dev/kmsg still holds, or the end of a log file."""
    path = paths.under(spec["root"], spec["cfg"]["kernel_log"])
    try:
        fd = os.open(path, _READ)
    except OSError as exc:
        emit("why", "%s: %s" % (path, _word(exc)))
        return
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        _tail(fd, MAX_BYTES, emit)
    elif stat.S_ISCHR(mode):
        _kmsg(fd, emit)
    else:
        emit("why", "%s is neither a device nor a plain file" % path)


def _kmsg(fd, emit):
    """Records until there is no more. One read gives one record; EPIPE: some were overwritten meanwhile.
    Source: Documentation/ABI/testing/dev-kmsg."""
    piece, total = bytearray(), 0
    while total < MAX_BYTES:
        try:
            record = os.read(fd, 8192)
        except BlockingIOError:
            break
        except OSError as exc:
            if exc.errno == errno.EPIPE:
                emit("why", "some records were overwritten while it was read")
                continue
            emit("why", _word(exc))
            break
        if not record:
            break
        total += len(record)
        piece += record
        if len(piece) >= _PIECE:
            _emit_bytes(emit, bytes(piece))
            piece.clear()
    _emit_bytes(emit, bytes(piece))


def _tail(fd, limit, emit):
    """The last `limit` bytes of a plain file, from the start of a line."""
    size = os.fstat(fd).st_size
    start = max(0, size - limit)
    data = bytearray()
    while len(data) < limit:
        piece = os.pread(fd, min(1 << 20, limit - len(data)), start + len(data))
        if not piece:
            break
        data += piece
    if start:
        emit("why", "the last %d of %d bytes" % (len(data), size))
    if not data:
        emit("why", "empty")
    _emit_bytes(emit, bytes(data))


def mountinfo(spec, emit):
    """What is mounted. Reading this list touches none of the mounts."""
    _emit_bytes(emit, _read(paths.under(spec["root"], "/proc/self/mountinfo"), emit))


def versions(spec, emit):
    """Versions of what matters to a GPU job, one `key: value` a line (only the first line of each file)."""
    from slurm_gpuhealth import __version__
    root, facts = spec["root"], spec["facts"]
    kernel = os.uname()
    lines = [("slurm-gpuhealth", __version__), ("node", facts.node),
             ("kernel", "%s %s %s" % (kernel.release, kernel.version, kernel.machine))]
    for name in ("driver", "cuda", "nvml"):
        value = getattr(facts, name)
        lines.append((name, value if facts_module.is_known(value) else "not read (%s)" % value.reason))
    for name, path in (("nvidia module", "/proc/driver/nvidia/version"), ("nvidia.ko", "/sys/module/nvidia/version"),
                       ("os", "/etc/os-release"), ("boot parameters", "/proc/cmdline"),
                       ("bios", "/sys/class/dmi/id/bios_version"), ("product", "/sys/class/dmi/id/product_name")):
        text = _read(paths.under(root, path), None).decode("utf-8", "replace").strip()
        lines.append((name, text.split("\n")[0] if text else "not there"))
    _emit_bytes(emit, "".join("%s: %s\n" % pair for pair in lines).encode("utf-8", "replace"))


def _read(path, emit, limit=4 << 20):
    """A small file of /proc or /sys; b"" when it cannot be read, and `emit` says why."""
    try:
        with open(path, "rb") as handle:
            return handle.read(limit)
    except OSError as exc:
        if emit is not None:
            emit("why", "%s: %s" % (path, _word(exc)))
        return b""


def _word(exc):
    """What went wrong, in the words of the manifest."""
    words = {errno.ENOENT: "not there", errno.EACCES: "denied", errno.EPERM: "denied",
             errno.ELOOP: "is a symbolic link: not followed"}
    return words.get(exc.errno, exc.strerror or str(exc))


# -- programs

def _program(spec, emit, name, arguments, deadline):
    # It must be over before this child is, or it would be left running.
    deadline = min(deadline, spec["until"] - time.monotonic() - _GRACE - 0.4)
    for folder in spec["bin_dirs"]:
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            break
    else:
        emit("why", "%s is not installed" % name)
        return
    if deadline < 0.2:
        emit("why", "no time left for %s" % name)
        return
    done = command.run([path] + arguments, deadline, max_bytes=MAX_BYTES, grace=_GRACE)
    _emit_bytes(emit, done.out.encode("utf-8", "surrogateescape")[:MAX_BYTES])
    if done.timed_out:
        emit("why", "%s timed out after %.1f s" % (name, done.seconds))
    elif done.rc:
        said = " ".join((done.err.strip() or done.out.strip()[-200:]).split())[:200]
        emit("why", "%s ended with %s: %s" % (name, done.rc, said.encode("ascii", "replace").decode()))
    elif not done.out:
        emit("why", "%s said nothing" % name)


def nvidia_smi(spec, emit):
    """`nvidia-smi -q`: all that the driver says of all GPUs."""
    _program(spec, emit, "nvidia-smi", ["-q"], spec["cfg"]["deadlines"]["nvml"])


def lspci(spec, emit):
    """`lspci -vv`: link states and error registers of the GPUs and the ports above them."""
    _program(spec, emit, "lspci", ["-vv", "-nn"], spec["cfg"]["deadlines"]["command"])


# -- processes

def processes(spec, emit):
    """Processes that use a GPU, one JSON line each. Their environment is not read.

    NVML's list comes first; then all that hold a /dev/nvidia* open, which also works when NVML does not answer.
    The command line is read last: it may block on a process that is stuck.
    """
    root = spec["root"]
    memory: dict = {}
    for gpu in spec["facts"].gpus:
        if facts_module.is_known(gpu.processes):
            for pid, used in gpu.processes:
                memory.setdefault(pid, []).append(
                    [gpu.index if facts_module.is_known(gpu.index) else None,
                     used if facts_module.is_known(used) else None])
    proc = paths.under(root, "/proc")
    try:
        running = sorted(int(name) for name in os.listdir(proc) if name.isdigit())
    except OSError as exc:
        emit("why", "%s: %s" % (proc, _word(exc)))
        return
    pids = [pid for pid in running if pid in memory]
    pids += [pid for pid in running if pid not in memory and _holds_gpu(proc, pid)]
    gone = sorted(set(memory) - set(running))
    for pid in pids:
        _emit_bytes(emit, json.dumps(_process(proc, pid, memory.get(pid))).encode("ascii") + b"\n")
    for pid in gone:
        _emit_bytes(emit, json.dumps({"pid": pid, "gpus": memory[pid], "state": "not in /proc"}).encode() + b"\n")
    if not pids and not gone:
        emit("why", "no process uses a GPU")


def _holds_gpu(proc, pid):
    folder = "%s/%d/fd" % (proc, pid)
    try:
        return any(os.readlink(folder + "/" + name).startswith("/dev/nvidia") for name in os.listdir(folder))
    except OSError:
        return False    # ended meanwhile, or not ours to look at


def _process(proc, pid, gpus):
    base = "%s/%d/" % (proc, pid)
    entry = {"pid": pid, "gpus": gpus}
    wanted = {"Name": "name", "State": "state", "PPid": "ppid", "Uid": "uid", "VmRSS": "rss", "Threads": "threads"}
    for line in _read(base + "status", None, 8192).decode("utf-8", "replace").split("\n"):
        key, _, value = line.partition(":")
        if key in wanted:
            entry[wanted[key]] = value.strip()
    entry["cgroup"] = _read(base + "cgroup", None, 4096).decode("utf-8", "replace").strip()
    entry["wchan"] = _read(base + "wchan", None, 200).decode("utf-8", "replace")
    entry["cmdline"] = _read(base + "cmdline", None, 2000).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return entry


# -- the job's log

def job_log_path(job):
    """Where the job's output goes, or "" when that is not known. Patterns that Slurm left in are filled in.
    Source: sbatch(1), "filename pattern"."""
    path = job.stdout or ""
    values = {"j": job.id, "A": job.array_job or job.id, "a": job.array_task, "x": job.name, "u": job.user,
              "N": job.batch_host or (job.nodes[0] if job.nodes else ""), "J": job.id, "%": "%"}
    out, at = [], 0
    while at < len(path):
        if path[at] == "%" and at + 1 < len(path):
            end = at + 1
            while end < len(path) - 1 and path[end].isdigit():
                end += 1
            value = values.get(path[end])
            width = path[at + 1:end]
            out.append(path[at:end + 1] if value is None
                       else str(value).zfill(min(int(width), 10)) if width else str(value))
            at = end + 1
        else:
            out.append(path[at])
            at += 1
    path = "".join(out)
    if path and not path.startswith("/"):
        path = os.path.join(job.work_dir, path) if job.work_dir else ""
    return path


def job_log(spec, emit):
    """The end of the job's output. Runs as the job's user: root reads nobody's file."""
    path = paths.under(spec["root"], job_log_path(spec["job"]))
    try:
        fd = os.open(path, _READ | os.O_NOFOLLOW)
    except OSError as exc:
        emit("why", "the job's output: %s" % _word(exc))
        return
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        emit("why", "the job's output is not a plain file")
        return
    _tail(fd, min(spec["cfg"]["evidence"]["log_tail_kb"] << 10, MAX_BYTES), emit)
