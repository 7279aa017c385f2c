"""Sources -> Facts: start every probe in a child of its own, all at once, and put together what they said.

What an earlier round left behind in D state is not started again while it lives. A source that was late is tried
once more where there is time (prolog, epilog); late twice in a row is as good as hung (docs/design.md).
"""
from __future__ import annotations

import time
from collections import namedtuple

from slurm_gpuhealth import checks, supervise
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.model import HEALTHCHECK
from slurm_gpuhealth.parse import mountinfo
from slurm_gpuhealth.probes import SOURCES, node

Gathered = namedtuple("Gathered", "facts cursor left lines asked", defaults=(None,))
Gathered.__doc__ = """facts: Facts. cursor: new log cursor or None. left: children left behind, as State keeps them.
lines: the kernel-log lines around the events (for the evidence's window). asked: what the child `asking` said."""

_MANY = ("mounts", "plugins")
_ROUNDS_TOGETHER = 7200.0    # seconds between two health checks that still follow one another
_RESERVE = 1.0      # seconds of the hook kept for deciding and for ending children


def gather_facts(cfg, phase, job, root, until, state, memory, host, expected=None, asking=None, meanwhile=None,
                 warm=None, counts=True):
    """Read the node. until: monotonic time by which reading must end. memory: the dict of node.json.
    expected: facts.Expected, or None when Slurm's files could not be looked at in time. asking: instead of it, the
    child that is looking at them (it emits "expected"). meanwhile(): called while the probes read. warm: the
    child that waits to ask NVML (probes.warm.Warm), or None. counts: whether a source that is late now counts as late
    in one more round; not in a round out of turn, seconds after the last one.

    Returns Gathered. Never raises for what a source does; a source that could not even be started (fork failed)
    is "failed".
    """
    about = node.read_node(root)
    boot_id = about["boot_id"]
    left = state.left_behind(boot_id)
    known = tuple(F.KnownGpu(**entry) for entry in memory.get("gpus", ()))
    since_job = state.job(job.id) if job is not None and phase == "epilog" else {}
    if expected is None:
        expected = _without_slurm(cfg, known)
    plans = _plans(cfg, root, memory, since_job, about, known, expected, phase)
    plans.update(_wanted(cfg, phase, root, memory, job))
    results = _run(plans, left, until - _RESERVE, cfg["deadlines"]["grace"], phase != HEALTHCHECK, asking, meanwhile,
                   warm)
    answer = {}
    if asking is not None:
        answer = dict(results.pop(asking.name).records)
        said = answer.get("expected")
        if said is not None:
            expected = F.from_plain(said, F.Expected)
            plans.update(_plans(cfg, root, memory, since_job, about, known, expected, phase))
            plans = {name: plan for name, plan in plans.items() if name in results}
            results = {name: results[name] for name in plans}
    # Late in the boot before says nothing: a reboot is the cure, and a cold driver is slowest.
    rounds = memory.get("rounds", {}) if memory.get("rounds_boot", boot_id) == boot_id else {}
    results = {name: _count_rounds(result, rounds.get(name, 0), counts) for name, result in results.items()}
    parts = _assemble(plans, results)
    window = parts.pop("lines", ())
    cursor = parts.pop("cursor", None)
    baseline = _baseline(memory, since_job, boot_id, about["time"])
    gathered = F.Facts(
        node=host, time=about["time"], boot_id=boot_id, uptime=about["uptime"], kernel=about["kernel"],
        hostname=about["hostname"], expected=expected, known_gpus=known, baseline=baseline,
        sources=tuple(results[name].status for name in sorted(results)),
        job_gpus=job.gpus if job is not None else (), phase=phase, **parts)
    return Gathered(gathered, cursor, _left(left, results), window, answer)


def _without_slurm(cfg, known):
    """The expected number of GPUs when /etc/slurm does not answer."""
    if cfg["expected_gpus"] != "auto":
        return F.Expected(cfg["expected_gpus"], "config", ())
    if known:
        return F.Expected(len(known), "most seen", ())
    return F.Expected(F.Unknown(F.TIMEOUT, "Slurm's files did not answer"), "", ())


def _plans(cfg, root, memory, since_job, about, known, expected, phase):
    """{source name: (probe module name, spec, deadline, per-GPU extra)}. One entry a mount."""
    limits = cfg["deadlines"]
    known_plain = [F.to_plain(item) for item in known]
    count = expected.gpus if F.is_known(expected.gpus) else len(known)
    cursor = since_job.get("cursor") or memory.get("cursor")
    plans = {
        "kmsg": ("kmsg", {"root": root, "path": cfg["kernel_log"], "cursor": cursor, "boot_id": about["boot_id"],
                          "user_facility": cfg["kernel_log_user_facility"]}, limits["kernel_log"], 0),
    }
    if count or expected.origin not in ("config", "gres.conf", "slurm.conf"):
        # Without persistence mode the first call costs 1 to 3 s a GPU (NVIDIA, driver persistence).
        slow = limits["nvml_per_gpu"] * (count or 8)
        plans["nvml"] = ("nvml", {"root": root, "known": known_plain, "minors": list(expected.minors),
                                  "expected": count or None, "phase": phase},
                         limits["nvml"] + (slow if memory.get("persistence") == 0 else 0), slow)
    for mount in cfg["mounts"]:
        network = mount["network"] in (True, "true") or (
            mount["network"] == "auto" and any(map(mountinfo.is_network, mount["type"])))
        plans["mount:" + mount["path"]] = (
            "mounts", {"root": root, "path": mount["path"], "writable": mount["writable"], "types": mount["type"]},
            mount.get("deadline") or limits["network_mount" if network else "mount"], 0)
    return plans


def _wanted(cfg, phase, root, memory, job):
    """The further sources that a check of this phase needs: as _plans."""
    plans = {}
    for name in sorted(checks.sources(cfg, phase)):
        source = SOURCES[name]
        probe = __import__("slurm_gpuhealth.probes." + source.module, fromlist=("spec",))
        spec = probe.spec(cfg, {"root": root, "phase": phase, "known": memory.get("gpus", []),
                                "job": job.id if job is not None else None})
        for part in spec if isinstance(spec, list) else [spec]:     # a list: one child each
            if part is not None:
                plans[part.get("source", name)] = (
                    source.module, part, part.get("deadline", cfg["deadlines"][source.deadline]), 0)
    return plans


def _run(plans, left, until, grace, retry, asking=None, meanwhile=None, warm=None):
    """Run all sources; the late ones once more if `retry` and there is room for their whole deadline."""
    results, children = {}, [asking] if asking is not None else []
    # NVML takes longest, so it is started first.
    for name, plan in sorted(plans.items(), key=lambda item: item[0] != "nvml"):
        alive = [entry for entry in left.get(name, ()) if supervise.still_there(entry["pid"], entry["ticks"])]
        if alive:
            results[name] = supervise.Result(F.SourceStatus(
                name, "hung", 0.0, "its process %d of an earlier round still hangs" % alive[0]["pid"],
                alive[0]["pid"]), [])
        else:
            try:
                children.append(_start(name, plan, warm if name == "nvml" else None))
            except OSError as exc:
                results[name] = supervise.not_started(name, exc)
    if warm is not None:
        warm.forget()       # where NVML was not asked
    if meanwhile is not None:
        meanwhile()
    results.update(supervise.gather(children, until, grace))
    late = [name for name, result in results.items() if result.status.outcome == "late" and name in plans]
    again = [name for name in late if retry and time.monotonic() + plans[name][2] + grace < until]
    if again:
        second = {}
        try:
            second = supervise.gather([_start(name, plans[name]) for name in again], until, grace)
        except OSError:
            pass    # no pids left meanwhile: what the first look said stands
        for name, result in second.items():
            if result.status.outcome == "late":
                result = result._replace(status=result.status._replace(rounds=1))   # this one and the one before
            results[name] = result
    return results


def _start(name, plan, warm=None):
    module, spec, deadline, slow = plan
    if module != "nvml":
        # While the child for NVML works already; what is loaded here need not be loaded by each child again.
        __import__("slurm_gpuhealth.probes." + module)

    def read(spec, emit):
        probe = __import__("slurm_gpuhealth.probes." + module, fromlist=("read",))
        probe.read(spec, emit)

    def more_time(kind, plain):
        # The first GPU says that persistence is off: the others will each cost seconds too.
        if slow and kind == "persistence" and plain.get("mode") == 0:
            return child_started + deadline + slow
        return None
    child_started = time.monotonic()
    if warm is not None:
        return warm.go(spec, deadline, more_time if slow else None)
    return supervise.start(name, read, spec, deadline, on_record=more_time if slow else None)


def _count_rounds(result, before, counts=True):
    """rounds: how many rounds in a row, with this one, this source did not answer in time."""
    status = result.status
    if status.outcome not in ("late", "hung"):
        return result._replace(status=status._replace(rounds=0))
    if not counts and status.outcome == "late":
        return result._replace(status=status._replace(rounds=min(before, 1)))
    if status.starved:
        return result._replace(status=status._replace(rounds=min(before, 1)))
    return result._replace(status=status._replace(rounds=before + 1 + status.rounds))


def _assemble(plans, results):
    """Facts fields from what the probes said. Each probe module knows how to read its own records."""
    parts: dict = {"mounts": ()}
    for name, (module, spec, _, _) in plans.items():
        probe = __import__("slurm_gpuhealth.probes." + module, fromlist=("assemble",))
        for field, value in probe.assemble(results[name].records, spec, results[name].status).items():
            # Several children may fill one field (a child a mount, a child a plug-in).
            parts[field] = parts[field] + tuple(value) if field in _MANY and field in parts else value
    return parts


def _baseline(memory, since_job, boot_id, now):
    """What stood before: at the job's start (epilog), else at the node's last round; xids always the node's."""
    source = since_job if since_job.get("counters") is not None else memory
    if source.get("counters") is None and not memory.get("xids"):
        return None
    return F.Baseline(source.get("time"), source.get("boot_id", boot_id), source.get("driver", ""),
                      source.get("counters") or {}, memory.get("xids", {}), _streaks(memory, boot_id, now),
                      memory.get("first_seen", {}), memory.get("links", {}))


def _streaks(memory, boot_id, now):
    """What was seen in rounds that follow one another: not across a reboot, nor after hours in which nobody looked."""
    last = memory.get("streaks_time")
    if memory.get("streaks_boot") != boot_id or last is None or not 0 <= now - last < _ROUNDS_TOGETHER:
        return {}
    return memory.get("streaks", {})


def _left(left, results):
    """The children left behind: those of before that still live, and the new ones."""
    kept = {}
    for name, entries in left.items():
        alive = [entry for entry in entries if supervise.still_there(entry["pid"], entry["ticks"])]
        if alive:
            kept[name] = alive
    for name, result in results.items():
        pid = result.status.pid
        if pid is None or any(entry["pid"] == pid for entry in kept.get(name, ())):
            continue
        found = supervise.process_start(pid)
        if found:
            kept.setdefault(name, []).append({"pid": pid, "ticks": found[1], "since": int(time.time())})
    return kept
