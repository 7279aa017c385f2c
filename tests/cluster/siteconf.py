"""The site's configuration on the test cluster's nodes, and hooks run by hand.

Not named `site`: Python has loaded a module of that name before pytest starts, and an import would find that one. The
fixtures that go with it are in sitefixtures.py.
"""
from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from harness import GPUHEALTH, RUN_DIR, STATE_DIR, Cluster
from testbed_lib.paths import TESTBED_DIR

CONFIG = "/etc/slurm/gpuhealth.yaml"
HOOKS = "/usr/libexec/gpuhealth"
PYTHON = "/opt/gpuhealth/bin/python3"
BASE = (Path(TESTBED_DIR) / "etc" / "gpuhealth.yaml").read_text()

# Short enough for a test, long enough for a machine with two cores that does other things too.
DEADLINES = {"prolog": 20, "epilog": 20, "healthcheck": 25, "nvml": 4, "kernel_log": 4, "mount": 2}

# What only the run of one test left behind. The installation's own files (compiled configuration, install record) stay.
FORGET = (f"rm -rf {RUN_DIR}/* {STATE_DIR}/node.json {STATE_DIR}/incidents.json "
          f"{STATE_DIR}/jobs/* {STATE_DIR}/spool/* {STATE_DIR}/events/* {STATE_DIR}/evidence/*")


def merged(base: Any, change: Any) -> Any:
    """`change` laid over `base`: mappings key by key, all else replaced."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    return {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}


def configure(cluster: Cluster, *, on: list[str] | None = None, **overrides: Any) -> None:
    """The test cluster's gpuhealth.yaml with these keys changed, on all nodes (or on those of `on`), and in force.

    Starts from the shipped file each time: a second call takes the first one back. `configure(cluster)` restores.
    """
    text = yaml.safe_dump(merged(yaml.safe_load(BASE), overrides)) if overrides else BASE
    put(cluster, on or cluster.nodes, text)


def put(cluster: Cluster, nodes: list[str], text: str) -> None:
    """Write gpuhealth.yaml on these nodes and renew their compiled copies; ConfigError's text where it is wrong."""
    # In one step, as another hook may read it now. Nothing is done where the file is the same already.
    script = (f"cat > {CONFIG}.test && chmod 644 {CONFIG}.test && if cmp -s {CONFIG}.test {CONFIG}; "
              f"then rm {CONFIG}.test; else mv {CONFIG}.test {CONFIG} && {GPUHEALTH} config check; fi")
    cluster.inner.each(nodes, lambda node: cluster.exec(node, script, stdin=text, check=True))


def start_job(cluster: Cluster, script: str = "exec sleep 600 >/dev/null 2>&1", node: str = "n1",
              **options: Any) -> int:
    """A job of alice on this node whose script has begun (Slurm says RUNNING while the prolog still looks)."""
    wanted = {"nodelist": node, "gres": "gpu:8", "chdir": "/", "output": "/dev/null", **options}
    job = cluster.sbatch("alice", script, **wanted)
    cluster.wait_for(lambda: cluster.slurmd_log(node, rf"\[{job}\.batch\] task 0 .*started"), 60,
                     f"the script of job {job} to begin")
    return job


def hooks_at_work(cluster: Cluster, node: str) -> bool:
    """Whether a hook runs on the node now; what hangs in D state is not counted."""
    lines = cluster.out(node, ["ps", "-eo", "stat=,args="]).splitlines()
    return any(f" {HOOKS}/" in line and not line.startswith("D") for line in lines)


class Ran(NamedTuple):
    """One run of a hook: exit status, what it printed, seconds from start to exit (measured on the node)."""

    rc: int
    out: str
    seconds: float


def job_env(cluster: Cluster, job: int, node: str) -> dict[str, str]:
    """What slurmd puts into a hook's environment for this job, as far as the hooks read it."""
    record = cluster.jobs(job)[0]
    return {"SLURM_JOB_ID": str(job), "SLURM_JOB_UID": "2001", "SLURM_JOB_USER": "alice",
            "SLURM_JOB_PARTITION": record["Partition"], "SLURM_JOB_NODELIST": node, "SLURM_JOB_GPUS": "0",
            "SLURM_JOB_RESTART_COUNT": record["Restarts"], "SLURM_JOB_COMMENT": cluster.comment(job)}


def hook(cluster: Cluster, node: str, phase: str = "healthcheck", *, timeout: float = 90, **env: str) -> Ran:
    """Run a hook as slurmd would: its environment and nothing else, no terminal."""
    words = " ".join(shlex.quote(f"{key}={value}") for key, value in {"SLURMD_NODENAME": node, **env}.items())
    script = (f"s=$(date +%s%N); env -i {words} {HOOKS}/{phase} </dev/null; rc=$?; e=$(date +%s%N); "
              "echo; echo $rc $((e-s))")
    done = cluster.exec(node, script, timeout=timeout, check=True)
    *said, last = done.stdout.splitlines()
    rc, nanoseconds = last.split()
    return Ran(int(rc), "\n".join(said).strip(), int(nanoseconds) / 1e9)


def healthy_round(cluster: Cluster, *nodes: str) -> None:
    """One health check without a finding, so that the node knows its GPUs."""
    for node in nodes or ("n1",):
        assert hook(cluster, node).rc == 0
        assert not cluster.drained(node), cluster.reason(node)


def faulty_round(cluster: Cluster, reason: str) -> None:
    """One health check of n1 that leaves it drained for this."""
    hook(cluster, "n1")
    assert cluster.drained("n1") and cluster.reason("n1").startswith(reason), cluster.node("n1")


def drains(cluster: Cluster, node: str) -> list[str]:
    """slurmctld's own lines about a drain reason set on this node."""
    return cluster.ctld_log(rf"update_node: node {node} (reason set to|state set to DRAIN)")


def saw(cluster: Cluster, node: str, kind: str, **wanted: Any) -> list[dict[str, Any]]:
    """The node's events of one kind whose fields have these values."""
    return [event for event in cluster.events(node)
            if event["kind"] == kind and all(event.get(key) == value for key, value in wanted.items())]


class Trace(NamedTuple):
    """What strace saw of one run of a hook and all its children. A hook that finds nothing should show one program (its
    own interpreter) and no connection.

    programs: paths given to execve. connections: addresses given to connect, but for the name service's socket.
    """

    rc: int
    programs: list[str]
    connections: list[str]


# The C library asks nscd who a user is, where one runs; that is no call to Slurm.
NAME_SERVICE = "/var/run/nscd/socket"


def traced(cluster: Cluster, node: str, phase: str = "healthcheck", **env: str) -> Trace:
    """Run a hook under strace. The kernel's own look-up of the interpreter is no execve of its own."""
    words = " ".join(shlex.quote(f"{key}={value}") for key, value in {"SLURMD_NODENAME": node, **env}.items())
    script = (f"f=$(mktemp); env -i {words} /usr/bin/strace -f -qq -e trace=execve,execveat,connect -e signal=none "
              f"-o $f {HOOKS}/{phase} </dev/null; rc=$?; cat $f; rm -f $f; echo rc $rc")
    lines = cluster.out(node, script, timeout=120).splitlines()
    programs = [line.split('"')[1] for line in lines if " execve" in line and '"' in line]
    connections = [line.split("connect(", 1)[1] for line in lines if "connect(" in line and NAME_SERVICE not in line]
    return Trace(int(lines[-1].split()[1]), programs, connections)
