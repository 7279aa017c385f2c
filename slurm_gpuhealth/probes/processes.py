"""Which processes hold a GPU: their open device files, and who they are. A child, as /proc has thousands of entries.

A process holds GPU N while it has /dev/nvidiaN open. One that is ending has given its files back already and may still
hang in the driver: its kernel stack says so. Only links are read, never what they lead to, as that may be a file on a
dead file system. Kernel threads and, where a job waits for its start or end, system users' processes are not looked at.
"""
from __future__ import annotations

import json
import os
import re
import stat
import time

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.facts_node import GpuProcess
from slurm_gpuhealth.model import EPILOG, PROLOG

# Patterns are compiled where they are first needed: in prolog of a healthy node that is nowhere.
_DEVICE = "/dev/nvidia"
_MAJOR = 195                # of /dev/nvidiaN (Linux, Documentation/admin-guide/devices.txt)
_IN_DRIVER = r"(?am)\[nvidia(?:_\w+)?\]\s*$"
# cgroup v1: /slurm/uid_1000/job_7/step_0; v2: /system.slice/HOST_slurmstepd.scope/job_7/step_0/user (Slurm, cgroups
# and cgroup_v2 pages). A user's own slice is the user's to name, so nothing below it counts.
_JOB = r"(?a)(?:/slurm(?:_[^/]+)?/uid_[0-9]+|/(?:[^/]+_)?slurmstepd\.scope)/job_([^/]+)(?=/|$)"
_STEP = r"(?a)slurmstepd: \[([0-9]{1,11})[.+_]"      # its title: [77.batch], [77.0], [77+1.0]
_KERNEL_THREAD = 0x200000   # PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)
# Accounts of the system: below 1000, systemd's dynamic users, nobody and its like (systemd, UIDS-GIDS).
_FIRST_USER, _DYNAMIC, _NOBODY = 1000, (61184, 65519), (65534, 65535)
_MOST = 1000                # processes that are told of
_MOST_PARENTS = 64
_MOST_THREADS = 5000        # looked at in one round
_STUCK_LOOK = 0.4           # between two looks at a process in D state: a short wait in the kernel is over by then
_SETTLE = 1.5               # how long what a job left may take to be gone by itself
UNNUMBERED = 0              # a job whose number its cgroup does not tell


def spec(cfg, about):
    """What `read` needs: root, phase, job, seconds (for all of it); None on a node that should have no GPUs.

    about: root, phase, job (id of the hook's job; where it is not given, Slurm's variable).
    """
    if cfg["expected_gpus"] == 0:
        return None
    job = about.get("job")
    if job is None and about["phase"] in (PROLOG, EPILOG):
        number = os.environ.get("SLURM_JOB_ID", "")
        job = int(number) if number.isascii() and number.isdigit() else None
    return {"root": about["root"], "phase": about["phase"], "job": job,
            "seconds": max(0.5, cfg["deadlines"]["command"] - 0.5)}


def read(spec, emit):
    """Emit ("jobs", ..) once, ("process", plain of facts.GpuProcess) each, ("names", {uid: name}), ("seen", counts)."""
    root, phase = spec["root"], spec["phase"]
    until = time.monotonic() + spec["seconds"]
    jobs = _jobs(root)
    emit("jobs", {"jobs": jobs})
    look = _Look(root, phase, until)
    found = look.everywhere()
    if phase == EPILOG and not root:
        found = look.settled(found, spec["job"], next((job["uid"] for job in jobs if job["id"] == spec["job"]), None))
    found = look.really_stuck(found)
    for process in found[:_MOST]:
        emit("process", F.to_plain(process))
    emit("seen", {"processes": len(found), "denied": look.denied, "unfinished": look.unfinished})
    # Last, as a directory service that does not answer must not keep the rest.
    uids = sorted({process.uid for process in found[:_MOST]})
    emit("names", {} if root else {str(uid): _user(uid) for uid in uids})


def assemble(records, spec, status):
    """Facts fields: processes, jobs, job."""
    jobs = seen = None
    processes, names = [], {}
    for kind, plain in records:
        if kind == "jobs":
            jobs = F.from_plain(plain).jobs
        elif kind == "process":
            processes.append(F.from_plain(plain, GpuProcess))
        elif kind == "seen":
            seen = plain
        elif kind == "names":
            names = plain
    fields = {"job": spec["job"]}
    why = {"late": F.TIMEOUT, "hung": F.HUNG, "skipped": F.NOT_READ}.get(status.outcome, F.ERROR)
    if seen is None:
        missing = F.Unknown(why, status.detail or "not read to the end")
        return dict(fields, jobs=missing if jobs is None else jobs, processes=missing)
    if seen["unfinished"]:
        fields["processes"] = F.Unknown(F.TIMEOUT, "too many processes to look at in time")
    elif seen["denied"]:
        fields["processes"] = F.Unknown(F.DENIED, "%d processes may not be looked at" % seen["denied"])
    else:
        fields["processes"] = tuple(process._replace(user=names.get(str(process.uid), "")) for process in processes)
    return dict(fields, jobs=jobs)


def is_person(uid):
    """True for the uid of somebody who may run jobs, False for the system's accounts."""
    return uid >= _FIRST_USER and not _DYNAMIC[0] <= uid <= _DYNAMIC[1] and uid not in _NOBODY and uid != 0xFFFFFFFF


def job_of(text):
    """The Slurm job id in the text of /proc/PID/cgroup; None for no job, UNNUMBERED for one without a number.

    Reads cgroup v1 and v2, also with several slurmd on one host. Hostile text: whoever may name cgroups of their own
    does so below their own slice.
    """
    for line in text.splitlines():
        path = line.split(":", 2)[-1]
        found = None if path.startswith("/user.slice") else re.search(_JOB, path)
        if found:
            number = found.group(1)
            return int(number) if number.isascii() and number.isdigit() and len(number) < 12 else UNNUMBERED
    return None


def job_at(root, pid, parent):
    """The Slurm job of a process: by its cgroup, else by a slurmstepd among its parents (sites without cgroups)."""
    proc = paths.under(root, "/proc")
    job = job_of(_text("%s/%d/cgroup" % (proc, pid)))
    for _ in range(_MOST_PARENTS):
        if job is not None or parent <= 1:
            break
        pid, folder = parent, "%s/%d" % (proc, parent)
        fields = stat_fields(_text(folder + "/stat"))
        if fields is None:
            break
        parent = fields["parent"]
        if fields["name"] == "slurmstepd" and (root or _owner(folder) == 0):
            title = re.match(_STEP, _text(folder + "/cmdline"))
            job = int(title.group(1)) if title else UNNUMBERED
    return job


def _owner(folder):
    try:
        return os.stat(folder).st_uid
    except OSError:
        return None


class _Look:
    """One look at all processes of the node."""

    def __init__(self, root, phase, until):
        self.root, self.phase, self.until = root, phase, until
        self.denied, self.unfinished, self._threads = 0, False, 0
        self._proc = paths.under(root, "/proc")
        self._boot = _boot_time(_text(self._proc + "/stat"))
        self._tick = os.sysconf("SC_CLK_TCK")
        self._own = {os.getpid(), os.getppid()}
        self._left = _left_behind(root)

    def everywhere(self):
        """GpuProcess of each process that holds a GPU, is a zombie or is in D state."""
        found = []
        for name in os.listdir(self._proc):
            if not name.isdigit():
                continue
            if time.monotonic() > self.until:
                self.unfinished = True
                break
            one = self.one(int(name))
            if one is not None:
                found.append(one)
        return sorted(found, key=lambda process: process.pid)

    def one(self, pid):
        """GpuProcess of `pid`; None where it is gone, is no business of ours, or holds nothing and is well."""
        folder = "%s/%d" % (self._proc, pid)
        # The owner of the folder is the effective uid, always; its files may belong to root.
        uid = real_uid(self.root, pid) if self.root else _owner(folder)
        if uid is None or (not is_person(uid) and self.phase in (PROLOG, EPILOG)):
            return None
        fields = stat_fields(_text(folder + "/stat"))
        if fields is None or fields["flags"] & _KERNEL_THREAD or pid in self._own or fields["parent"] in self._own \
                or (pid, fields["ticks"]) in self._left:
            return None
        if not is_person(uid) and fields["state"] not in "DZ":
            return None                         # daemons hold GPUs for good
        minors = self._minors(folder)
        if not minors and fields["state"] not in "DZ":
            return None
        return self._described(pid, folder, uid, fields, minors)

    def _described(self, pid, folder, uid, fields, minors):
        state, switches = fields["state"], None
        thread = self._waiting_thread(folder, pid, state, bool(minors))
        driver = False
        if thread is not None:
            state, driver, switches = "D", _in_driver(folder, thread), _switches(folder, thread)
        elif state == "D":
            state = "S"                         # it was, a moment ago
        if not minors and (state not in "DZ" or (state == "D" and driver is False)):
            return None
        try:
            exe = os.readlink(folder + "/exe")
        except OSError:
            exe = ""
        started = None if self._boot is None else self._boot + fields["ticks"] / self._tick
        return GpuProcess(pid, (), fields["name"], "", uid, state, started, job_at(self.root, pid, fields["parent"]),
                            None, exe, tuple(sorted(minors)), fields["ticks"], driver, switches, fields["parent"])

    def _minors(self, folder):
        """Device minors of the GPUs that the process has open."""
        found: set = set()
        try:
            names = os.listdir(folder + "/fd")
        except PermissionError:
            self.denied += 1
            return found
        except OSError:
            return found
        for name in names:
            path = folder + "/fd/" + name
            try:
                target = os.readlink(path)
                digits = target[len(_DEVICE):] if target.startswith(_DEVICE) else ""
                if digits.isascii() and digits.isdigit() and len(digits) < 5 and (self.root or _is_gpu(path)):
                    found.add(int(digits))
            except OSError:
                continue
        return found

    def _waiting_thread(self, folder, pid, state, holds):
        """A thread in D state, one in the driver first, or None. Of a process that holds no GPU only the main one."""
        threads = _names(folder + "/task") if holds and self.phase != PROLOG else []
        if not threads:
            return pid if state == "D" else None
        waiting = []
        for name in threads:
            if self._threads >= _MOST_THREADS or time.monotonic() > self.until:
                break
            self._threads += 1
            fields = stat_fields(_text("%s/task/%s/stat" % (folder, name)))
            if fields is not None and fields["state"] == "D":
                waiting.append(int(name))
        return next((thread for thread in sorted(waiting) if _in_driver(folder, thread)), min(waiting, default=None))

    # -- looking again

    def settled(self, found, job, uid):
        """`found` without what is gone after a short while: a job's processes end just before its epilog."""
        until = min(self.until, time.monotonic() + _SETTLE)
        while time.monotonic() < until and any(_may_end(process, job, uid) for process in found):
            time.sleep(0.1)
            found = [one for one in (self._again(process) for process in found) if one is not None]
        return found

    def really_stuck(self, found):
        """`found`, those in D state looked at a second time: who has run meanwhile was not stuck."""
        if self.root or not any(process.state == "D" for process in found):
            return found
        time.sleep(max(0.0, min(_STUCK_LOOK, self.until - time.monotonic())))
        again = []
        for process in found:
            new = self._again(process) if process.state == "D" else process
            if new is not None and new.state == "D" and process.state == "D" and new.switches != process.switches:
                new = new._replace(state="S", driver=False)
            if new is not None and (new.minors or new.state in "DZ"):
                again.append(new)
        return again

    def _again(self, process):
        new = self.one(process.pid)
        return new if new is not None and new.ticks == process.ticks else None


def _may_end(process, job, uid):
    """True for a process that may belong to the job that ends: not for the MPS server, which stays on purpose."""
    if not process.minors or process.name.startswith("nvidia-cuda-mps"):
        return False
    return job is not None and (process.job == job or (process.job is None and process.uid == uid))


def stat_fields(text):
    """name, state, parent, flags, ticks (start) of the text of /proc/PID/stat, or None. Source: proc(5)."""
    head, bracket, tail = text.rpartition(")")
    fields = tail.split()
    try:
        return {"name": head.partition("(")[2], "state": fields[0], "parent": int(fields[1]), "flags": int(fields[6]),
                "ticks": int(fields[19])} if bracket else None
    except (IndexError, ValueError):
        return None


def real_uid(root, pid):
    """Real uid of a process, or None when it is gone."""
    for line in _text("%s/%d/status" % (paths.under(root, "/proc"), pid)).splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    return None


def parent_of(pid):
    """Pid of the parent of a process of this machine, 0 when it is gone."""
    fields = stat_fields(_text("/proc/%d/stat" % pid))
    return fields["parent"] if fields is not None else 0


def threads_of(pid):
    """[(thread, state letter)] of a process of this machine."""
    found = []
    for name in _names("/proc/%d/task" % pid):
        fields = stat_fields(_text("/proc/%d/task/%s/stat" % (pid, name)))
        if fields is not None:
            found.append((int(name), fields["state"]))
    return found


def switches_of(pid, thread):
    """How often a thread of a process of this machine was switched to and from."""
    return _switches("/proc/%d" % pid, thread)


def _is_gpu(path):
    seen = os.stat(path)        # an open device file: asks nobody
    return stat.S_ISCHR(seen.st_mode) and os.major(seen.st_rdev) == _MAJOR


def waits_in_driver(pid):
    """Where a process waits that no signal ends: True in the NVIDIA driver, False when each of its threads in D state
    waits elsewhere, None when nobody can tell."""
    folder, found = "/proc/%d" % pid, []
    try:
        threads = [int(name) for name in os.listdir(folder + "/task") if name.isdigit()]
    except OSError:
        return None
    for thread in threads[:_MOST_THREADS]:
        try:
            with open("%s/task/%d/stat" % (folder, thread), "rb") as handle:
                state = handle.read().rpartition(b") ")[2][:1]
        except OSError:
            continue
        if state == b"D":
            found.append(_in_driver(folder, thread))
    if True in found:
        return True
    return False if found and None not in found else None


def _in_driver(folder, thread):
    """True when the kernel stack of a thread lies in the NVIDIA driver, False when not, None when nobody may look."""
    try:
        with open("%s/task/%d/stack" % (folder, thread), encoding="ascii", errors="replace") as handle:
            text = handle.read(1 << 14)
    except OSError:
        return None
    return bool(re.search(_IN_DRIVER, text)) if text else None


def _switches(folder, thread):
    """How often a thread was switched to and from: it has not run while this stands still."""
    total = 0
    for line in _text("%s/task/%d/status" % (folder, thread)).splitlines():
        if "ctxt_switches:" in line:
            total += int(line.split()[1])
    return total


def _jobs(root):
    """[{"id", "uid", "gpus"}] of the jobs whose prolog ran here and whose epilog has not ended yet."""
    folder, found = paths.under(root, paths.STATE) + "/jobs", []
    for name in _names(folder):
        if not name.endswith(".json") or not name[:-5].isdigit():
            continue
        try:
            plain = json.loads(_text(folder + "/" + name, 1 << 20))
            found.append({"id": int(name[:-5]), "uid": plain.get("uid"), "gpus": plain.get("gpus") or []})
        except (ValueError, AttributeError, RecursionError):
            continue
    return found


def _left_behind(root):
    """{(pid, start in ticks)} of our own children that hang from an earlier round: said elsewhere."""
    try:
        left = json.loads(_text(paths.under(root, paths.RUN) + "/left.json", 1 << 20))["left"]
        return {(entry["pid"], entry["ticks"]) for entries in left.values() for entry in entries}
    except (ValueError, KeyError, TypeError, AttributeError):
        return set()


def _boot_time(text):
    for line in text.splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return None


def _user(uid):
    import pwd
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text(path, most=1 << 16):
    """Content of a small file, "" where it cannot be read: processes vanish while one looks."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(most)
    except OSError:
        return ""
