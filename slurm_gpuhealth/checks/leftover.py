"""No process holds a GPU that it has no job for.

- Epilog: a process of the ended job, or of a user without a job here, still holds one of the job's GPUs:
  `GH-LEFTOVER`, a warning with whose it is and since when. With `leftover: kill: true` epilog ends it: SIGTERM, after
  `term_seconds` SIGKILL; what is in D state even then is `GH-LEFT-STUCK`, and drains the node.
- Prolog: somebody without a job here uses more than `prolog_mib` of a GPU that the job was given: `GH-LEFTOVER`.
- Health check: a user's process that holds a GPU while that user has no job on the node: `GH-LEFTOVER`.
- In D state in the NVIDIA driver, not having run once in `stuck_rounds` health checks in a row: `GH-LEFT-STUCK`,
  whoever it belongs to. A process that waits for a file system is in D state too: not this check's business.
- A zombie that still holds a GPU: `GH-LEFT-ZOMB`, a warning; its parent should collect it.

Processes of another job never count, nor daemons that normally hold GPUs (`ignore`), nor system users' processes.
Unknown: the processes could not be looked at (no right to, too many for the time), nor those that NVML names, nor the
node's jobs.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import model
from slurm_gpuhealth.checks._shared import asked, finding, missing, streak, subject_of, unread, usable
from slurm_gpuhealth.model import ALL_GPUS, EPILOG, NOTE, PROLOG

LIMITS = {
    "ignore": ("nvidia-persistenced,nv-hostengine,dcgm-exporter,dcgmproftester,nvidia-smi,nvsm_core,nvsm-core,nvitop,"
               "Xorg,Xwayland,gnome-shell,gdm-x-session,nvidia-cuda-mps-server,nvidia-cuda-mps-control,"
               "nvidia-fabricmanager,nv-fabricmanager",
               "programs that normally hold GPUs, separated by commas: names of files that root installed"),
    "prolog_mib": (256, "MiB of a GPU that a stranger may use when a job starts on it"),
    "stuck_rounds": (3, "health checks in a row in which a process hung in the driver without having run once"),
}

_ROOTS_OWN = ("/usr/", "/opt/", "/bin/", "/sbin/", "/lib/", "/lib64/")
_FIELDS = ("pid", "ticks", "uid", "user", "name", "exe", "job", "started", "state", "memory")
_TOLD = 256    # processes that one finding names


def check(facts, limits):
    """Findings about processes that hold GPUs. limits: LIMITS."""
    if not F.is_known(facts.processes):
        if F.is_known(facts.expected.gpus) and facts.expected.gpus == 0:
            return []
        return [finding("GH-PROC-UNREAD", model.NODE, facts.processes.detail or facts.processes.reason,
                        why=facts.processes.reason)]
    found = _not_told(facts)
    ignored = {name.strip() for name in str(limits["ignore"]).split(",") if name.strip()}
    memory = _memory(facts)
    groups: dict = {}
    for process in facts.processes:
        gpus = _gpus(facts, process, memory)
        code, severity, key = _judge(facts, limits, ignored, memory, process, gpus)
        if code is None:
            continue
        for index in _named(facts, gpus, code) or (None,):
            groups.setdefault((code, severity, index, key), []).append(process._replace(
                gpus=tuple(sorted(gpus)), memory=sum(memory.get((process.pid, gpu), 0) for gpu in gpus) or None))
    return found + [_finding(facts, code, severity, index, key, those)
                    for (code, severity, index, key), those in groups.items()]


def _not_told(facts):
    """What could not be read of the rest that it takes: the node's jobs, and what NVML says of each GPU's processes."""
    found = [unread(gpu, missing(gpu, *asked(gpu, "processes"))) for gpu in usable(facts)
             if missing(gpu, *asked(gpu, "processes"))]
    if not F.is_known(facts.jobs) and facts.jobs.reason not in (F.NOT_READ, F.ABSENT, F.UNSUPPORTED):
        found.append(finding("GH-PROC-UNREAD", model.NODE, "the node's jobs: %s" % (
            facts.jobs.detail or facts.jobs.reason), why=facts.jobs.reason))
    return found


def _judge(facts, limits, ignored, memory, process, gpus):
    """(code, severity or None for the catalogue's, key of the streak or None) of one process; code None: it is fine."""
    fine = (None, None, None)
    if process.killed and process.state == "D" and process.driver is not False:
        return "GH-LEFT-STUCK", None, None
    if process.state == "D" and process.driver is not False and (gpus or process.driver) \
            and (process.driver or not _at_home(facts, process)):
        key = "stuck/%s/%s/%s" % (process.pid, process.ticks, process.switches)
        if streak(facts, key)[0] + 1 >= limits["stuck_rounds"]:
            return "GH-LEFT-STUCK", None, key
        if facts.phase != EPILOG:
            return "GH-LEFT-STUCK", NOTE, key
    if not gpus or not process.uid or _is_daemon(process, ignored):
        return fine
    if _at_home(facts, process):
        return fine
    ours = gpus & set(facts.job_gpus)
    if facts.phase in (PROLOG, EPILOG) and not ours:
        return fine
    if process.state == "Z":
        return "GH-LEFT-ZOMB", None, None
    if facts.phase == PROLOG and max(memory.get((process.pid, index), 0) for index in ours) \
            <= limits["prolog_mib"] << 20:
        return fine
    return "GH-LEFTOVER", None, None


def _at_home(facts, process):
    """True where the process belongs to a job, or its user has a job on this node other than the one that ends.

    Without cgroups nobody can tell to which of a user's jobs a process belongs.
    """
    if process.job is not None:
        return not (facts.phase == EPILOG and process.job == facts.job)
    if not F.is_known(facts.jobs):
        return True
    # A job that starts has nothing running yet, one that ends should have nothing left.
    this = facts.job if facts.phase in (PROLOG, EPILOG) else None
    return any(job.get("uid") == process.uid and job.get("id") != this for job in facts.jobs) or any(
        other.uid == process.uid and other.job is not None and other.job != this for other in facts.processes)


def _is_daemon(process, ignored):
    """By the file that it runs, where root put that; a name alone is anybody's to choose."""
    if process.job is not None:
        return False
    if process.exe:
        return process.exe.startswith(_ROOTS_OWN) and process.exe.rpartition("/")[2] in ignored
    return process.state != "Z" and any(name[:15] == process.name for name in ignored)   # comm holds 15 characters


def _memory(facts):
    """{(pid, gres index): bytes} as NVML says."""
    found = {}
    for gpu in facts.gpus:
        if F.is_known(gpu.processes) and F.is_known(gpu.index):
            for pid, used in gpu.processes:
                found[pid, gpu.index] = used if isinstance(used, int) else 0
    return found


def _gpus(facts, process, memory):
    """Gres indices of the GPUs that a process holds: by its open device files, and as NVML says."""
    found = set(process.gpus) | {index for pid, index in memory if pid == process.pid}
    places = {known.minor: known.index for known in facts.known_gpus}
    places.update({gpu.minor: gpu.index for gpu in facts.gpus if F.is_known(gpu.minor) and F.is_known(gpu.index)})
    for minor in process.minors:
        place = places.get(minor)
        if place is None and minor in facts.expected.minors:
            place = list(facts.expected.minors).index(minor)
        if place is not None:
            found.add(place)
    return found


def _named(facts, gpus, code):
    """The GPUs that a finding is about: where a job starts or ends, its own."""
    own = gpus & set(facts.job_gpus) if facts.phase in (PROLOG, EPILOG) else gpus
    return sorted(own if own or code == "GH-LEFTOVER" else gpus)


def _subject(facts, index):
    if index is None:
        return ALL_GPUS
    for gpu in facts.gpus + facts.known_gpus:
        if gpu.index == index:
            return subject_of(gpu)
    return model.Subject("gpu", index)


def _finding(facts, code, severity, index, key, found):
    first = min(found, key=lambda process: (process.started or 0.0, process.pid))
    whose = first.user or "uid %s" % first.uid
    seen = "pid %s (%s) of %s" % (first.pid, first.name, whose)
    if first.job:
        seen += ", job %d" % first.job
    if code == "GH-LEFT-ZOMB":
        seen += ", parent %s" % first.parent
    if len(found) > 1:
        seen += ", %d more" % (len(found) - 1)
    data = {"processes": [{name: getattr(process, name) for name in _FIELDS} for process in found[:_TOLD]]}
    if key is not None:
        data["streak"] = key
    return finding(code, _subject(facts, index), seen, severity=severity, since=first.started, **data)
