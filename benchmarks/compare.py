#!/usr/bin/env python3
"""What two health checks make of the same faults: `gpucm` (facebookresearch/gcm) from the Python registry, and ours.

    sudo python3 benchmarks/compare.py [--runs 15] [--only NAME,...] [--work DIR] [--output FILE]
    python3 benchmarks/compare.py --table        # docs/comparison.md anew from compare_results.json

Needs root, Linux, Python 3.10 or newer, a C compiler, make, mkfs.ext4 and the Python registry. Everything is built and
installed in a temporary folder (--work keeps it), and everything runs in a mount namespace of its own, where /etc,
/var/lib, /run, /dev and the PCI devices in sysfs are this program's: nothing of the machine is changed.

A node of eight simulated H100 (containers/slurm-testbed/nvml) is put into each situation of compare_faults.py. Both
sides ask the same library and see the same kernel log (gpucm through a `dmesg` that prints it) and the same sysfs.

- gpucm: each of its checks that applies to these GPUs, as its README calls it; a check that warns on the healthy node
  is left out (it would always warn). Exit status 2 (CRITICAL) of any of them counts as "drains the node", 1 as a word.
- ours: the real `healthcheck` hook in mode `drain`, with a stand-in for scontrol. A healthy round, then up to three
  rounds with the fault; the reason of the drain is what scontrol was given.

Times: runs of all commands take turns; the median is told, in seconds, CPU seconds and as a ratio to a bare
`python3 -c pass` beside it.
"""
from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from compare_faults import DRAIN, FAULTS, HARMLESS  # noqa: E402
from compare_node import DMESG, GPUCM, NODE, Place, call, write  # noqa: E402
from compare_page import TIME_LIMIT, renew_page, verdict  # noqa: E402

RESULTS = os.path.join(HERE, "compare_results.json")
APART = 3.2             # seconds between two health checks; ours takes two within 3 s as one look
HOST_USER = 2001
# gpucm's NVML checks that an H100 supports: retired pages were replaced by row remapping with Ampere.
NVML_CHECKS = ("gpu_num", "clock_freq", "gpu_temperature", "ecc_uncorrected_volatile_total",
               "ecc_corrected_volatile_total", "vbios_mismatch", "row_remap", "row_remap_pending", "row_remap_failed")
NO_JOB_CHECKS = ("running_procs", "gpu_mem_usage")      # for prolog and epilog: a node without a job
PR_SET_CHILD_SUBREAPER = 36


# -- running and timing

class Ended:
    """How a command ended. rc: None where it was still there after TIME_LIMIT."""

    def __init__(self, rc, out, wall, cpu):
        self.rc, self.out, self.wall, self.cpu = rc, out, wall, cpu


def run(argv, env, limit=TIME_LIMIT, keep=()):
    """Run a command to its end, at most `limit` seconds; the CPU time is that of all its processes."""
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                 start_new_session=True, cwd="/")
        status, cpu = None, 0.0
        while status is None and time.perf_counter() < began + limit:
            pid, code, used = os.wait4(child.pid, os.WNOHANG)
            if pid:
                status, cpu = code, used.ru_utime + used.ru_stime
            else:
                time.sleep(0.002)
        wall = time.perf_counter() - began
        child.returncode = 0            # it was waited for here, or is left alone
        if status is None:
            os.killpg(child.pid, signal.SIGKILL)
        cpu += _reap(keep)
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    return Ended(None if status is None else os.waitstatus_to_exitcode(status), text, wall, cpu)


def _reap(keep, seconds=1.0):
    """CPU seconds of what the command left behind (this process inherits it); what hangs is not waited for."""
    cpu, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            pid, _, used = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid:
            cpu += used.ru_utime + used.ru_stime
            continue
        with open("/proc/self/task/%d/children" % os.getpid()) as handle:
            if not set(map(int, handle.read().split())) - set(keep):
                break
        time.sleep(0.01)
    return cpu


def environment(place, old=False):
    lib = os.path.join(place.lib, "old") if old else place.lib
    return {"LD_LIBRARY_PATH": lib, "GPUSIM_STATE": place.state, "SLURMD_NODENAME": NODE, "HOME": "/root",
            "LANG": "C.UTF-8", "PATH": "%s:/usr/sbin:/usr/bin:/sbin:/bin" % place.bin}


# -- gpucm

def gpucm_commands(place, no_job=False):
    """{name: argv} of its checks, each as its README calls it."""
    program = [os.path.join(place.work, "gpucm", "bin", "health_checks")]
    kind = "epilog" if no_job else "nagios"
    common = ["compare", kind, "--log-folder", "/run/compare/log", "--sink", "stdout"]
    checks = NVML_CHECKS + (NO_JOB_CHECKS if no_job else ())
    nvml = program + ["check-nvidia-smi"] + common + [word for name in checks for word in ("-c", name)] + [
        "--gpu_num=8", "--gpu_temperature_threshold=84"]
    return {
        "nvidia-smi": nvml,
        "xid": program + ["check-syslogs", "xid"] + common,
        "io-errors": program + ["check-syslogs", "io-errors"] + common,
        "link-flaps": program + ["check-syslogs", "link-flaps"] + common + ["--syslog_file", DMESG],
        "pci": program + ["check-pci"] + common + ["--manifest_file", "/etc/manifest.json"],
        "zombie": program + ["check-process", "check-zombie"] + common,
        # The time a process must be that old is 300 s by default; nobody waits here that long.
        "dstate": program + ["check-process", "check-dstate"] + common + [
            "--elapsed", "1", "--process-name", "health_checks", "--timeout", "20"],
    }


def gpucm(place, fault, keep=()):
    """{check: [exit status, message]} of all that is not 0, whether it ended, and the time of each command."""
    env = environment(place, fault.extra.get("old"))
    no_job = bool(fault.extra.get("holder"))
    if no_job:
        env.update(SLURM_JOB_ID="7", SLURM_JOB_GPUS="3")
    said, times = {}, {}
    for name, argv in gpucm_commands(place, no_job).items():
        if name not in ("nvidia-smi", "xid", "pci") and not _concerns(name, fault):
            continue
        ended = run(argv, env, keep=keep)
        times[name] = round(ended.wall, 2)
        if ended.rc is None:
            said[name] = [None, "did not end within %d s" % TIME_LIMIT]
            continue
        parts = _records(ended.out)
        for part, code, text in parts:
            if code:
                said[part] = [code, text]
        if ended.rc and not parts:
            said[name] = [ended.rc, ended.out.strip().splitlines()[-1][:200] if ended.out.strip() else ""]
    return said, times


def _concerns(name, fault):
    """Whether a check beside the three main ones could see anything of this fault: those of the log where there are
    lines, those of processes (of the whole machine) where a process is stuck or left over."""
    if name in ("io-errors", "link-flaps"):
        return bool(fault.log)
    return bool(fault.extra.get("hang") or fault.extra.get("holder"))


def _records(out):
    """(check, result, message) of what its stdout sink printed."""
    found = []
    for line in out.splitlines():
        if line.startswith("[{"):
            try:
                records = json.loads(line)
            except ValueError:
                continue
            found += [(one["health_check"], one["result"], " ".join(one.get("_msg", "").split())[:140])
                      for one in records]
    return found


# -- ours

def ours(place, fault, keep=()):
    """{round, reason, findings, wall}: in which round with the fault the node was drained, and what else was said."""
    env = environment(place, fault.extra.get("old"))
    hook = [os.path.join(place.bin, "healthcheck")]
    if fault.extra.get("holder"):
        return _ours_epilog(place, fault, env, keep)
    result: dict = {"round": None, "reason": "", "findings": [], "wall": []}
    for number in range(1, fault.rounds + 1):
        if number == 1:
            result["findings"] = _look(place, env, keep)
        else:
            time.sleep(APART)
            if fault.extra.get("once"):
                place.nvml(fault.before)
        ended = run(hook, env, keep=keep)
        result["wall"].append(round(ended.wall, 2))
        node = place.slurm.node(NODE)
        if "DRAIN" in node["state"]:
            if number == 1 and fault.extra.get("repaired"):
                place.slurm.add_node(NODE)      # the GPU was reset, the admin resumes the node
                result["resumed"] = True
                continue
            result.update(round=number, reason=node["reason"])
            break
    return result


def _look(place, env, keep):
    """[code, severity, what] of `gpuhealth check --json`, which changes nothing."""
    text = "import sys; sys.path[:0] = %r; from slurm_gpuhealth.cli.main import main; sys.exit(main(sys.argv[1:]))" % (
        [os.path.join(place.work, "package")],)
    ended = run([os.path.join(place.work, "ours", "bin", "python"), "-c", text, "--json", "check", "--phase",
                 "healthcheck"], env, keep=keep)
    try:
        document = json.loads(ended.out)
    except ValueError:
        return [["", "error", ended.out[-300:]]]
    return [[one["code"], one["severity"], (one.get("seen") or "")[:120]] for one in document["findings"]]


def _ours_epilog(place, fault, env, keep):
    """Prolog of a job on gpu3, then its epilog while a process still holds the GPU."""
    job = dict(env, SLURM_JOB_ID="7", SLURM_JOBID="7", SLURM_JOB_UID=str(HOST_USER), SLURM_JOB_GPUS="3",
               SLURM_JOB_USER="ana", SLURM_JOB_PARTITION="main", SLURM_JOB_NODELIST=NODE, SLURM_JOB_RESTART_COUNT="0")
    ended = run([os.path.join(place.bin, "epilog")],
                dict(job, SLURM_JOB_EXIT_CODE="0", SLURM_JOB_EXIT_CODE2="0:0", SLURM_JOB_DERIVED_EC="0"), keep=keep)
    node = place.slurm.node(NODE)
    found = []
    for folder, _, names in os.walk("/var/lib/gpuhealth/events"):
        for name in names:
            with open(os.path.join(folder, name)) as handle:
                found += [json.loads(line) for line in handle if line.startswith("{")]
    findings = [[one.get("code"), (one.get("detail") or {}).get("severity", one.get("kind")),
                 str((one.get("detail") or {}).get("seen", ""))[:120]] for one in found if one.get("code")]
    return {"round": 1 if "DRAIN" in node["state"] else None, "reason": node["reason"], "findings": findings,
            "wall": [round(ended.wall, 2)]}


# -- one situation

def situation(place, fault, before=None):
    """Put the node into `fault` and let both sides look: a dict for the results. before: an earlier such dict, whose
    answers of gpucm are kept."""
    holder = None
    sides = {"gpucm": (before["gpucm"], before["gpucm_seconds"])} if before else {}
    for side in ("ours",) if before else ("gpucm", "ours"):
        place.reset()
        place.nvml(fault.before)
        env = environment(place, fault.extra.get("old"))
        if side == "ours" and not fault.extra.get("fresh"):
            run([os.path.join(place.bin, "healthcheck")], env)
            if fault.extra.get("holder"):
                run([os.path.join(place.bin, "prolog")], dict(
                    env, SLURM_JOB_ID="7", SLURM_JOBID="7", SLURM_JOB_UID=str(HOST_USER), SLURM_JOB_GPUS="3",
                    SLURM_JOB_USER="ana", SLURM_JOB_PARTITION="main", SLURM_JOB_NODELIST=NODE))
        place.log(fault.log, fault.extra.get("repeat", 1))
        lines = list(fault.before) + list(fault.nvml)
        if fault.extra.get("holder"):
            holder = _holder()
            lines.append("gpu3.proc=%d:%d" % (holder.pid, 9 << 30))
        place.devices(fault.pci)
        place.nvml(lines)
        keep = [holder.pid] if holder else []
        if fault.extra.get("hang"):
            call(["fsfreeze", "-f", place.frozen])
        try:
            sides[side] = (gpucm if side == "gpucm" else ours)(place, fault, keep)
        finally:
            if fault.extra.get("hang"):
                call(["fsfreeze", "-u", place.frozen])
            place.nvml([])
            if holder:
                holder.kill()
                holder.wait()
                holder = None
            _reap((), 2.0)
    said, times = sides["gpucm"]
    return {"title": fault.title, "want": fault.want, "gpucm": said, "gpucm_seconds": times, "ours": sides["ours"]}


def _holder():
    """A process of a user that holds gpu3's device file (O_PATH: there is no driver here that could open it)."""
    code = ("import os, time; fd = os.open('/dev/nvidia3', os.O_PATH); os.setgid(%d); os.setuid(%d); "
            "print(flush=True); time.sleep(300)" % (HOST_USER, HOST_USER))
    child = subprocess.Popen([sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


def timings(place, runs):
    """{command: {seconds, cpu, ratio}} on the healthy node, medians of runs that take turns."""
    place.reset()
    env = environment(place)
    commands = {"bare python3": ([os.path.join(place.work, "ours", "bin", "python"), "-IS", "-c", "pass"], env)}
    job = dict(env, SLURM_JOB_ID="7", SLURM_JOBID="7", SLURM_JOB_UID=str(HOST_USER), SLURM_JOB_GPUS="0,1,2,3,4,5,6,7",
               SLURM_JOB_USER="ana", SLURM_JOB_PARTITION="main", SLURM_JOB_NODELIST=NODE)
    commands["ours: healthcheck hook, all checks"] = ([os.path.join(place.bin, "healthcheck")], env)
    commands["ours: prolog hook"] = ([os.path.join(place.bin, "prolog")], job)
    for name, argv in gpucm_commands(place).items():
        if name in ("nvidia-smi", "xid", "pci"):
            commands["gpucm: check-" + {"xid": "syslogs xid"}.get(name, name)] = (argv, env)
    found: dict = {name: ([], []) for name in commands}
    for number in range(runs + 1):
        for name, (argv, environ) in commands.items():
            ended = run(argv, environ)
            if ended.rc != 0:
                sys.exit("%s on the healthy node: exit %s: %s" % (name, ended.rc, ended.out[-500:]))
            if number:      # the first fills caches
                found[name][0].append(ended.wall)
                found[name][1].append(ended.cpu)
    three = [name for name in commands if name.startswith("gpucm")]
    found["gpucm: these three"] = tuple([sum(values) for values in zip(*(found[name][kind] for name in three))]
                                        for kind in (0, 1))
    bare = statistics.median(found["bare python3"][0])
    return {name: {"seconds": round(statistics.median(wall), 3), "cpu": round(statistics.median(cpu), 3),
                   "ratio": round(statistics.median(wall) / bare, 1)} for name, (wall, cpu) in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15, help="timed runs of each command (0: no timing)")
    parser.add_argument("--only", default="", help="names of situations, with commas")
    parser.add_argument("--ours-only", action="store_true", help="ask only ours again, keep what gpucm said")
    parser.add_argument("--work", default="", help="folder that is kept for the next time")
    parser.add_argument("--output", default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only write docs/comparison.md from the results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.table:
        with open(args.output) as handle:
            renew_page(json.load(handle))
        return 0
    if os.geteuid() != 0:
        parser.error("needs root: it gives itself file systems of its own")
    if not args.inside:
        work = args.work or tempfile.mkdtemp(prefix="compare-")
        os.makedirs(work, exist_ok=True)
        Place(work).build()
        code = subprocess.call(["unshare", "-m", sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--inside",
                                "--work", work])
        if not args.work:
            shutil.rmtree(work, ignore_errors=True)
        return code
    return inside(args)


def inside(args):
    """In the namespace: all situations, then the times."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    place = Place(args.work)
    place.enclose()
    only = [name for name in args.only.split(",") if name]
    results = {"gpucm": GPUCM, "date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(),
               "python": sys.version.split()[0], "ours": place.versions(), "faults": {}, "times": {}}
    if (only or args.ours_only or not args.runs) and os.path.exists(args.output):
        with open(args.output) as handle:
            results = dict(json.load(handle), ours=place.versions())
    for fault in FAULTS:
        if only and fault.name not in only:
            continue
        before = results["faults"].get(fault.name) if args.ours_only else None
        results["faults"][fault.name] = one = situation(place, fault, before)
        theirs, mine = verdict(one)
        right = one["want"] == mine or (one["want"] == HARMLESS and mine != DRAIN)
        print("%-18s want %-6s ours %-6s gpucm %-6s %s %s" % (
            fault.name, fault.want, mine, theirs, "" if right else "<<<", one["ours"]["reason"][:70]), flush=True)
    if only or args.ours_only:      # in the order of the list
        results["faults"] = {fault.name: results["faults"][fault.name] for fault in FAULTS
                             if fault.name in results["faults"]}
    if args.runs:
        results["times"] = timings(place, args.runs)
    write(args.output, json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
