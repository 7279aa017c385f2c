"""While all is well no hook calls Slurm, and none executes another program."""
from __future__ import annotations

import re

import pytest
from harness import CTL, Cluster
from siteconf import HOOKS, configure, hook, start_job, traced

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

TRACED = 10         # of each hook, under strace
JOBS = 100          # with a prolog and an epilog each; two at one time on a node (16 cores, 8 each)

# What slurmd and the scheduler say to slurmctld about a job of one task by themselves, no hook being there.
SLURMS_OWN = re.compile(r"REQUEST_COMPLETE_BATCH_SCRIPT|REQUEST_COMPLETE_BATCH_JOB|REQUEST_COMPLETE_PROLOG|"
                        r"MESSAGE_EPILOG_COMPLETE|MESSAGE_NODE_REGISTRATION_STATUS|REQUEST_STEP_COMPLETE|"
                        r"REQUEST_STATS_INFO|REQUEST_SUBMIT_BATCH_JOB|REQUEST_PING|REQUEST_PERSIST_INIT")


def rpcs(cluster: Cluster) -> dict[str, int]:
    """Remote procedure calls that slurmctld has counted since the last reset, by type."""
    text = cluster.out(CTL, ["sdiag"]).partition("by message type")[2].partition("by user")[0]
    return {name: int(count) for name, count in re.findall(r"^\s+(\w+)\s+\(\s*\d+\)\s+count:(\d+)", text, re.M)}


def environment(cluster: Cluster, job: int, phase: str) -> dict[str, str]:
    """What slurmd really gave this hook for a job: read from a copy that a wrapper has left."""
    text = cluster.out("n1", ["cat", f"/run/env.{phase}.{job}"])
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


@pytest.fixture
def environments(fresh: Cluster) -> dict[str, dict[str, str]]:
    """The environments of a prolog and an epilog as slurmd makes them."""
    for phase in ("prolog", "epilog"):
        fresh.write("n1", f"/usr/libexec/gpuhealth-test-{phase}", "#!/bin/sh\n"
                    f"cat /proc/self/environ > /run/env.{phase}.$SLURM_JOB_ID\nexec {HOOKS}/{phase}\n", mode="755")
        for node in fresh.nodes[1:]:
            fresh.exec(node, ["ln", "-sf", f"{HOOKS}/{phase}", f"/usr/libexec/gpuhealth-test-{phase}"], check=True)
    fresh.slurm_conf(Prolog="/usr/libexec/gpuhealth-test-prolog", Epilog="/usr/libexec/gpuhealth-test-epilog")
    job = start_job(fresh, "true")
    fresh.wait_job(job, "COMPLETED")
    fresh.wait_for(lambda: fresh.node("n1")["State"] == "IDLE", 20, "the epilog to be over")
    found = {phase: environment(fresh, job, phase) for phase in ("prolog", "epilog")}
    fresh.slurm_conf(Prolog=f"{HOOKS}/prolog", Epilog=f"{HOOKS}/epilog")
    return {"healthcheck": {}, **found}


def test_no_program_and_no_connection(fresh: Cluster, environments: dict[str, dict[str, str]]):
    """Prolog, epilog and health check with slurmd's environment: one execve (the hook itself), no connection to
    slurmctld, to munge or to anything else."""
    configure(fresh, shared_dir="", service_user="")
    assert {"SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_JOB_UID"} <= set(environments["prolog"])
    hook(fresh, "n1")
    for _ in range(TRACED):
        for phase in ("prolog", "epilog", "healthcheck"):
            trace = traced(fresh, "n1", phase, **environments[phase])
            assert trace.rc == 0
            assert trace.programs == [f"{HOOKS}/{phase}"], trace
            assert trace.connections == [], trace


def test_mirror_of_events_calls_nobody_either(fresh: Cluster):
    """With a shared folder and a service user, and with an event to write there: still no program and no Slurm."""
    hook(fresh, "n1")
    fresh.inject("n1", "remap-pending gpu1")        # a note: an event, no action
    trace = traced(fresh, "n1")
    assert trace.rc == 0 and trace.programs == [f"{HOOKS}/healthcheck"], trace
    assert trace.connections == [], trace
    assert "GH-REMAP-PEND" in fresh.out(CTL, "cat /shared/gpuhealth/events/*")


def test_a_hundred_jobs_cause_no_call(fresh: Cluster):
    """slurmctld's own count: after a hundred jobs there is no call that slurmd does not make by itself."""
    script = "#!/bin/sh\necho >> /shared/ckpt/count\n"
    fresh.write(CTL, "/shared/jobs/one", script, mode="755")
    submit = ("for i in $(seq 100); do sbatch --parsable --gres=gpu:1 -n1 -c8 --chdir=/ --output=/dev/null "
              "/shared/jobs/one; done | wc -l")
    fresh.exec(CTL, ["sdiag", "-r"], check=True)
    assert fresh.out(CTL, submit, user="alice", timeout=180).strip() == str(JOBS)
    # Not asked of slurmctld, whose calls are counted.
    fresh.wait_for(lambda: fresh.out(CTL, "cat /shared/ckpt/count 2>/dev/null | wc -l").strip() == str(JOBS), 400,
                   "all jobs to have run", every=1)
    fresh.wait_for(lambda: all(fresh.out(node, "ls /var/lib/gpuhealth/jobs 2>/dev/null | wc -l").strip() == "0"
                               for node in fresh.nodes), 60, "all epilogs to be over", every=1)
    counted = rpcs(fresh)
    assert counted.get("REQUEST_SUBMIT_BATCH_JOB") == JOBS, counted
    assert counted.get("MESSAGE_EPILOG_COMPLETE", 0) >= JOBS - 5, counted     # the last ones may still be on their way
    others = {name: count for name, count in counted.items() if not SLURMS_OWN.fullmatch(name)}
    assert not others, others
    assert not any(fresh.drained(node) for node in fresh.nodes)
    assert all(fresh.events(node) == [] for node in fresh.nodes)
