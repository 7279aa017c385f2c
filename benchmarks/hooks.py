#!/usr/bin/env python3
"""How long the hooks take and how much memory they hold on a healthy node of eight simulated GPUs.

    containers/slurm-testbed/testbed up
    python benchmarks/hooks.py [--name gh] [--runs 30] [--first] [--json]

Each hook is run on a node of the test cluster as slurmd runs it: its environment and nothing else, output to a pipe,
until the pipe ends and the process is gone. Runs of all hooks and of a bare `python3 -IS -c pass` take turns, so that
the ratio to the latter holds on a machine that is busy with other things; --first gives them the highest priority of
ordinary processes there (nice -20). All default checks, the site's mounts.

Memory: the largest process at its peak (the kernel's own figure, of all processes of the hook), and at the moment where
it is highest the sum over all of them, once as resident pages (shared ones counted in each) and once with shared pages
divided up (PSS), which is what the node really gives.

Budget (docs/contributing.md, Budgets): prolog and epilog median 50 ms, 25 MB. Exit status 1 when over it.
"""
import argparse
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(HERE, "containers", "slurm-testbed"))

BUDGET_MS, BUDGET_MB = 50.0, 25.0
PYTHON, HOOKS = "/opt/gpuhealth/bin/python3", "/usr/libexec/gpuhealth"
# What slurmd gives a prolog on 24.11 for a job of one node (read from a running one); epilog has three more.
JOB = {
    "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "SLURM_CLUSTER_NAME": "testbed", "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_GPUS": "8", "SLURM_JOBID": "999999", "SLURM_JOB_COMMENT": "gpuhealth:ckpt=/shared/ckpt/run7",
    "SLURM_JOB_CONSTRAINTS": "", "SLURM_JOB_GID": "2001", "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7",
    "SLURM_JOB_ID": "999999", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_PARTITION": "main",
    "SLURM_JOB_RESTART_COUNT": "0", "SLURM_JOB_STDIN": "/dev/null", "SLURM_JOB_UID": "2001",
    "SLURM_JOB_USER": "alice", "SLURM_JOB_WORK_DIR": "/", "SLURM_UID": "2001",
}
ENDED = {"SLURM_JOB_EXIT_CODE": "0", "SLURM_JOB_EXIT_CODE2": "0:0", "SLURM_JOB_DERIVED_EC": "0"}

# Runs on the node. The processes that a hook leaves to be reaped by others come to this one (subreaper), so that their
# use of memory can be read.
MEASURE = r"""
import ctypes, json, os, sys, time
spec = json.load(sys.stdin)
if spec["first"]:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
me = os.getpid()

def start(one):
    read_end, write_end = os.pipe()
    pid = os.posix_spawn(one["argv"][0], one["argv"], one["env"], file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, write_end, 1),
        (os.POSIX_SPAWN_DUP2, write_end, 2), (os.POSIX_SPAWN_CLOSE, read_end)])
    os.close(write_end)
    return pid, read_end

def rest():
    largest = cpu = 0
    while True:
        try:
            used = os.wait4(-1, 0)[2]
        except ChildProcessError:
            return largest, cpu
        largest = max(largest, used.ru_maxrss)
        cpu += used.ru_utime + used.ru_stime

def timed(one):
    began = time.perf_counter()
    pid, pipe = start(one)
    said = b"".join(iter(lambda: os.read(pipe, 65536), b""))
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - began
    os.close(pipe)
    assert status == 0, (one, status, said)
    largest, cpu = rest()
    return took, largest, cpu + used.ru_utime + used.ru_stime

def tree():
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as file:
                    parents[int(name)] = int(file.read().rpartition(") ")[2].split()[1])
            except OSError:
                pass
    found = {me}
    for _ in range(6):
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {me}

def memory(one):
    pid, pipe = start(one)
    most = {"sum": 0, "pss": 0, "largest": 0, "processes": 0}
    while True:
        rss = []; pss = 0
        for child in tree():
            try:
                with open("/proc/%d/smaps_rollup" % child) as file:
                    fields = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
                rss.append(int(fields["Rss"].split()[0])); pss += int(fields["Pss"].split()[0])
            except (OSError, KeyError):
                pass
        if rss:
            most["sum"] = max(most["sum"], sum(rss)); most["pss"] = max(most["pss"], pss)
            most["largest"] = max(most["largest"], max(rss)); most["processes"] = max(most["processes"], len(rss))
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
    os.wait4(pid, 0)
    os.close(pipe)
    rest()
    return most

found = {one["name"]: {"seconds": [], "cpu": [], "largest": 0, "memory": []} for one in spec["what"]}
for number in range(spec["runs"] + 1):
    for one in spec["what"]:
        took, largest, cpu = timed(one)
        if number:      # the first fills caches
            found[one["name"]]["seconds"].append(took)
            found[one["name"]]["cpu"].append(cpu)
            found[one["name"]]["largest"] = max(found[one["name"]]["largest"], largest)
for _ in range(spec["memory_runs"]):
    for one in spec["what"]:
        found[one["name"]]["memory"].append(memory(one))
print(json.dumps(found))
"""


def what(node):
    """The things that are run, in the order in which they take turns."""
    base = {"SLURMD_NODENAME": node}
    environments = {"prolog": {**base, **JOB}, "epilog": {**base, **JOB, **ENDED}, "healthcheck": base}
    bare = [{"name": "bare python3 -IS", "argv": [PYTHON, "-IS", "-c", "pass"], "env": base}]
    return bare + [{"name": phase, "argv": ["%s/%s" % (HOOKS, phase)], "env": env}
                   for phase, env in environments.items()]


def measure(cluster, node, runs, memory_runs, first=False):
    """{name: {ms, min, p95, ratio, cpu_ms, largest_mb, sum_mb, pss_mb, processes, runs}}, medians but for the peaks."""
    spec = json.dumps({"what": what(node), "runs": runs, "memory_runs": memory_runs, "first": first})
    done = cluster.exec(node, [PYTHON, "-c", MEASURE], stdin=spec, timeout=600).check()
    found, results = json.loads(done.stdout), {}
    bare = statistics.median(found["bare python3 -IS"]["seconds"])
    for name, one in found.items():
        seconds = sorted(one["seconds"])
        peaks = {key: statistics.median(run[key] for run in one["memory"]) for key in one["memory"][0]}
        results[name] = {
            "ms": 1000 * statistics.median(seconds), "p95": 1000 * seconds[int(0.95 * (len(seconds) - 1))],
            "min": 1000 * seconds[0], "ratio": statistics.median(seconds) / bare,
            "cpu_ms": 1000 * statistics.median(one["cpu"]),
            "largest_mb": max(one["largest"], peaks["largest"]) / 1024, "sum_mb": peaks["sum"] / 1024,
            "pss_mb": peaks["pss"] / 1024, "processes": int(peaks["processes"]), "runs": len(seconds)}
    return results


def show(results):
    print("%-18s %9s %8s %8s %7s %8s %11s %8s %8s %6s" % (
        "", "median ms", "min ms", "p95 ms", "x bare", "CPU ms", "largest MB", "sum MB", "PSS MB", "procs"))
    for name, one in results.items():
        print("%-18s %9.1f %8.1f %8.1f %7.1f %8.1f %11.1f %8.1f %8.1f %6d" % (
            name, one["ms"], one["min"], one["p95"], one["ratio"], one["cpu_ms"], one["largest_mb"], one["sum_mb"],
            one["pss_mb"], one["processes"]))


def over_budget(results):
    """What is over the budget, in words."""
    return ["%s: %.0f ms, %.1f MB (budget %.0f ms, %.0f MB)" % (
        name, results[name]["ms"], results[name]["largest_mb"], BUDGET_MS, BUDGET_MB)
        for name in ("prolog", "epilog")
        if results[name]["ms"] > BUDGET_MS or results[name]["largest_mb"] > BUDGET_MB]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--name", default="gh", help="the running test cluster (testbed up --name NAME)")
    parser.add_argument("--node", default="n1")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first", action="store_true", help="with the highest ordinary priority (a busy machine)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from testbed_lib import lifecycle
    from testbed_lib.errors import TestbedError
    try:
        cluster = lifecycle.attach(args.name)
    except TestbedError as exc:
        parser.exit(2, "%s\n" % exc)
    try:
        results = measure(cluster, args.node, args.runs, max(3, args.runs // 5), args.first)
    finally:
        cluster.close()
    if args.json:
        print(json.dumps({"v": 1, "hooks": results}, indent=1))
    else:
        show(results)
    over = over_budget(results)
    for line in over:
        print("over budget: " + line, file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
