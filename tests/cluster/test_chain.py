"""From a fault to a resumed job, in slurmctld's own records: the lines of the chain, one test each."""
from __future__ import annotations

import json
import time

import pytest
import training as tr
from harness import CTL, Cluster

pytestmark = [pytest.mark.cluster]

STEPS = 60
FINAL = "/shared/ckpt/final.safetensors"


@pytest.fixture
def chain(cluster: Cluster) -> Cluster:
    """A clean cluster with the training script on it, and no health check unless the test wants one."""
    fresh(cluster)
    cluster.slurm_conf(HealthCheckInterval=0)
    tr.prepare(cluster)
    return cluster


def fresh(cluster: Cluster) -> None:
    for node in cluster.nodes:
        cluster.exec(node, "cd /var/lib/gpuhealth && rm -rf node.json incidents.json jobs spool events/* evidence/*; "
                           "rm -rf /run/gpuhealth/*")


def submit_stuck(cluster: Cluster, cut: bool = True, steps: int = 30, **options) -> int:
    """A job that hangs after `steps`, its newest checkpoint cut in half."""
    options.setdefault("comment", tr.TOKEN)
    options.setdefault("gres", "gpu:2")
    return cluster.sbatch("alice", tr.stuck_after(steps, f"{tr.RUN} {tr.command(STEPS, FINAL)}", cut), **options)


def fall_off(cluster: Cluster, node: str, gpu: int) -> None:
    """The line in the kernel log, then NVML losing the GPU: the order in which a real one is seen."""
    cluster.inject(node, f"xid 79 gpu{gpu}")
    cluster.inject(node, f"gpu-lost gpu{gpu}")


@pytest.mark.chain
@pytest.mark.parametrize("ignore_term", [False, True], ids=["ends-on-term", "ignores-term"])
def test_fault_while_a_job_trains(chain, ignore_term):
    """Drained with its code, evidence kept, one requeue, elsewhere within 15 s, from the newest whole checkpoint,
    and the same weights as a run that nobody interrupted."""
    chain.slurm_conf(HealthCheckInterval=3, KillWait=10)
    script = tr.stuck_after(30, f"{tr.RUN} {tr.command(STEPS, FINAL)}")
    if ignore_term:
        script = script.replace("exec sleep 600", "trap '' TERM; while :; do sleep 1; done")
    job = chain.sbatch("alice", script, gres="gpu:2", comment=tr.TOKEN)
    tr.wait_stuck(chain)
    node = chain.job(job)["BatchHost"]
    fall_off(chain, node, 1)
    tr.wait_drained(chain, node, "GH-XID79 gpu1")
    done = chain.wait_job(job, "COMPLETED", timeout=90)
    assert done["BatchHost"] != node and done["Restarts"] == "1"
    assert tr.pending_to_running(chain, job) < tr.LIMIT_S
    assert len(tr.requeues(chain, job)) == 1
    output = chain.job_output(job)
    assert f"resuming from {tr.FOLDER}/step-000025" in output
    assert "passed over: step-000030 (" in output
    assert f"resumed at step 25 from {tr.FOLDER}/step-000025" in output
    assert tr.digest(chain, FINAL) == tr.reference(chain, STEPS)
    point = [event for event in chain.events(done["BatchHost"]) if event["kind"] == "resume-point"]
    assert point[-1]["detail"]["path"] == f"{tr.FOLDER}/step-000025"
    assert point[-1]["detail"]["passed"][0][0].endswith("step-000030")
    (folder,) = tr.check_evidence(chain, node)
    number = [event["code"] for event in json.loads(chain.read(node, f"{folder}/facts.json"))["klog"]["events"]]
    other = tr.replayed(chain, node, folder, f"klog.events.{number.index(79)}.code=31")
    taken = json.loads(chain.read(node, f"{folder}/decision.json"))["plan"]
    assert taken["code"] == "GH-XID79" and other["plan"]["code"] != "GH-XID79"
    assert other["plan"] != taken


@pytest.mark.chain
@pytest.mark.parametrize("parameters", ["", "nohold_on_prolog_fail"], ids=["default", "nohold"])
def test_fault_found_by_prolog(chain, parameters):
    """The job never starts there, is not held, and starts elsewhere within 15 s."""
    chain.slurm_conf(SchedulerParameters=parameters or None)
    fall_off(chain, "n1", 1)
    job = chain.sbatch("alice", f"echo $SLURM_JOB_ID 0 $SLURMD_NODENAME >> /shared/ckpt/starts; {tr.command(10)}",
                       gres="gpu:8", comment=tr.TOKEN)
    done = chain.wait_job(job, "COMPLETED", timeout=60)
    tr.showed(chain, "n1", "GH-XID79 gpu1")
    assert [node for _, _, node in tr.starts(chain)] == [done["BatchHost"]]
    assert done["BatchHost"] != "n1" and done["Restarts"] == "1"
    assert tr.pending_to_running(chain, job) < tr.LIMIT_S
    assert not chain.ctld_log(rf"(?i)hold.*JobId={job}\b|JobId={job}\b.*held")
    tr.check_evidence(chain, "n1")


def wait_until_told(then: str, shared: str = "/shared/ckpt") -> str:
    """A script whose first start waits for a file and then does `then`; a restart ends well."""
    return f"""
echo "$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $SLURMD_NODENAME" >> {shared}/starts
if [ "${{SLURM_RESTART_COUNT:-0}}" = 0 ]; then
    while [ ! -e {shared}/go ]; do sleep 0.2; done
    {then}
fi
"""


def go(cluster: Cluster) -> None:
    cluster.exec(CTL, "touch /shared/ckpt/go", check=True)


@pytest.mark.chain
def test_fault_found_by_epilog_after_the_job_failed(chain):
    """Requeued once; the restart ends well elsewhere."""
    job = chain.sbatch("alice", wait_until_told("exit 3"), gres="gpu:2", comment=tr.TOKEN)
    node = chain.wait_job(job, "RUNNING")["BatchHost"]
    fall_off(chain, node, 0)
    go(chain)
    done = chain.wait_job(job, "COMPLETED", timeout=60)
    assert done["Restarts"] == "1" and done["BatchHost"] != node
    assert len(tr.requeues(chain, job)) == 1
    assert tr.pending_to_running(chain, job) < tr.LIMIT_S
    tr.showed(chain, node, "GH-XID79 gpu0")
    tr.check_evidence(chain, node)


def test_epilog_of_a_job_on_two_nodes(chain):
    """Both nodes run an epilog, the job is requeued once."""
    job = chain.sbatch("alice", wait_until_told("exit 3"), gres="gpu:2", nodes=2, comment=tr.TOKEN)
    chain.wait_job(job, "RUNNING")
    fall_off(chain, "n2", 0)
    go(chain)
    chain.wait_for(lambda: chain.job(job)["Restarts"] == "1", 40, "the requeue")
    tr.wait_drained(chain, "n2", "GH-XID79 gpu0")
    done = chain.wait_job(job, "COMPLETED", timeout=60)
    assert done["Restarts"] == "1" and "n2" not in done["NodeList"]
    assert len(tr.requeues(chain, job)) == 1


def test_epilog_of_one_task_of_an_array(chain):
    """Its siblings are not touched."""
    script = wait_until_told('[ "$SLURMD_NODENAME" = n1 ] && exit 3; exit 0')
    job = chain.sbatch("alice", script, gres="gpu:8", array="1-3", comment=tr.TOKEN)
    chain.wait_for(lambda: len(tr.starts(chain)) == 3, 30, "three tasks")
    fall_off(chain, "n1", 0)
    go(chain)
    tr.wait_drained(chain, "n1", "GH-XID79 gpu0")
    chain.wait_for(lambda: all(one["JobState"] == "COMPLETED" for one in tr.arrays(chain, job)), 60, "all tasks")
    restarts = sorted(one["Restarts"] for one in tr.arrays(chain, job))
    assert restarts == ["0", "0", "1"]


@pytest.mark.chain
@pytest.mark.parametrize("how", ["completed", "cancelled"])
def test_job_that_needs_no_second_run(chain, how):
    """After a job that completed or was cancelled by its user: drained, not requeued."""
    job = chain.sbatch("alice", wait_until_told("exit 0"), gres="gpu:2", comment=tr.TOKEN)
    node = chain.wait_job(job, "RUNNING")["BatchHost"]
    fall_off(chain, node, 0)
    if how == "completed":
        go(chain)
    else:
        chain.exec(CTL, ["scancel", str(job)], user="alice", check=True)
    tr.wait_drained(chain, node, "GH-XID79 gpu0")
    done = chain.wait_job(job, how.upper(), timeout=30)
    assert done["Restarts"] == "0"
    assert tr.requeues(chain, job) == []


@pytest.mark.chain
def test_node_that_dies_without_a_hook(chain):
    """The node's container is killed hard: Slurm requeues, and the restart resumes all the same."""
    chain.slurm_conf(SlurmdTimeout=10)
    job = submit_stuck(chain)
    tr.wait_stuck(chain)
    node = chain.job(job)["BatchHost"]
    chain.kill(node)
    try:
        chain.wait_for(lambda: chain.job(job)["Restarts"] == "1", 90, "Slurm to requeue the job", every=1)
        chain.exec(CTL, ["scontrol", "update", f"JobId={job}", "StartTime=now"])
        done = chain.wait_job(job, "COMPLETED", timeout=60)
        assert done["BatchHost"] != node
        assert f"resumed at step 25 from {tr.FOLDER}/step-000025" in chain.job_output(job)
        assert tr.digest(chain, FINAL) == tr.reference(chain, STEPS)
    finally:
        chain.reboot(node)


def test_user_caused_xid_drains_nothing(chain):
    """31 is an event; no node is drained and the job goes on."""
    chain.slurm_conf(HealthCheckInterval=2)
    job = chain.sbatch("alice", wait_until_told("exit 0"), gres="gpu:2", comment=tr.TOKEN)
    node = chain.wait_job(job, "RUNNING")["BatchHost"]
    chain.inject(node, "xid 31 gpu0")
    chain.wait_for(lambda: any(event["code"] == "GH-XID-USER" for event in chain.events(node)), 20, "the event")
    time.sleep(5)
    assert not chain.drained(node)
    go(chain)
    assert chain.wait_job(job, "COMPLETED")["Restarts"] == "0"
    assert not chain.drained(node)


def test_job_on_other_gpus_is_not_touched(chain):
    """A GPU that the job does not hold: drained with the right index, the job goes on to its end."""
    chain.slurm_conf(HealthCheckInterval=2)
    job = chain.sbatch("alice", wait_until_told("exit 0"), gres="gpu:2", comment=tr.TOKEN)
    node = chain.wait_job(job, "RUNNING")["BatchHost"]
    fall_off(chain, node, 6)
    tr.wait_drained(chain, node, "GH-XID79 gpu6")
    time.sleep(3)
    go(chain)
    done = chain.wait_job(job, "COMPLETED")
    assert (done["Restarts"], done["BatchHost"]) == ("0", node)


def test_job_without_a_checkpoint_is_not_killed(chain):
    """Drained, and the job that declared nothing runs on."""
    chain.slurm_conf(HealthCheckInterval=2)
    job = chain.sbatch("alice", wait_until_told("exit 0"), gres="gpu:2")
    node = chain.wait_job(job, "RUNNING")["BatchHost"]
    fall_off(chain, node, 0)
    tr.wait_drained(chain, node, "GH-XID79 gpu0")
    time.sleep(4)
    assert chain.state(job) == "RUNNING"
    go(chain)
    # It ends well on its dead GPU (it never used it), so its epilog does not bring it back either.
    assert chain.wait_job(job, "COMPLETED")["Restarts"] == "0"
