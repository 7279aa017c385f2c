"""Where a restarted job resumes, at every kind of restart, in slurmctld's own records."""
from __future__ import annotations

import time

import pytest
import siteconf
import training as tr
from harness import CTL, Cluster
from test_chain import FINAL, STEPS, fall_off, fresh, submit_stuck

pytestmark = [pytest.mark.cluster]


@pytest.fixture
def chain(cluster: Cluster) -> Cluster:
    fresh(cluster)
    cluster.slurm_conf(HealthCheckInterval=0)
    tr.prepare(cluster)
    return cluster


def only(cluster: Cluster, *names: str) -> None:
    """Keep Slurm from starting anything on the other nodes."""
    for node in cluster.nodes:
        if node not in names:
            cluster.exec(CTL, ["scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test"], check=True)


def healthcheck(cluster: Cluster, node: str) -> None:
    cluster.exec(node, ["env", "-i", f"SLURMD_NODENAME={node}", f"{tr.HOOKS}/healthcheck"], check=True)


def requeue_by_admin(cluster: Cluster, job: int) -> None:
    cluster.exec(CTL, ["scontrol", "requeue", str(job)], check=True)
    cluster.wait_for(lambda: cluster.state(job) == "PENDING", 60, "the job to be pending")
    time.sleep(2)   # back on its own node within the same second, slurmd once launched no prolog for it
    cluster.exec(CTL, ["scontrol", "update", f"JobId={job}", "StartTime=now"], check=True)


def pending_after_fault(cluster: Cluster, **options) -> int:
    """A job that our health check requeued, kept waiting: no other node is free."""
    only(cluster, "n1")
    job = submit_stuck(cluster, **options)
    tr.wait_stuck(cluster)
    fall_off(cluster, "n1", 0)
    healthcheck(cluster, "n1")
    cluster.wait_for(lambda: cluster.state(job) == "PENDING", 60, "the job to wait")
    return job


def test_newer_checkpoint_than_the_hint(chain):
    """A checkpoint that appeared after our look is the newest, and wins."""
    job = pending_after_fault(chain, cut=False)
    assert f"resume={tr.FOLDER}/step-000030" in chain.comment(job)
    chain.out(CTL, f"{tr.PYTHON} {tr.TRAIN} --save-to {tr.FOLDER} --steps 35 --every 5 "
                   f"--resume-from {tr.FOLDER}/step-000030", user="alice")
    chain.resume("n2")
    chain.wait_job(job, "COMPLETED", timeout=60)
    assert f"resumed at step 35 from {tr.FOLDER}/step-000035" in chain.job_output(job)


def test_target_of_the_hint_was_deleted(chain):
    """The hint is only a hint: the next one is taken."""
    job = pending_after_fault(chain, cut=False)
    chain.exec(CTL, ["rm", "-rf", f"{tr.FOLDER}/step-000030"], check=True)
    chain.resume("n2")
    chain.wait_job(job, "COMPLETED", timeout=60)
    assert f"resumed at step 25 from {tr.FOLDER}/step-000025" in chain.job_output(job)


def test_comment_copied_into_a_new_job(chain):
    """The hint and the counter of another job count for nothing."""
    old = pending_after_fault(chain)
    comment = chain.comment(old)
    assert f"for={old}.1" in comment and "tries=1" in comment
    chain.exec(CTL, ["scancel", str(old)])
    chain.exec(CTL, "rm -f /shared/ckpt/stuck /shared/ckpt/starts")
    chain.resume("n2")
    job = submit_stuck(chain, cut=False, steps=40, comment=comment.replace(tr.TOKEN, tr.TOKEN + ",max-restarts=1"))
    tr.wait_stuck(chain)
    requeue_by_admin(chain, job)
    chain.wait_job(job, "COMPLETED", timeout=60)
    assert f"resumed at step 40 from {tr.FOLDER}/step-000040" in chain.job_output(job)


@pytest.mark.chain
def test_restart_that_we_did_not_cause(chain):
    """An administrator's requeue resumes like ours."""
    job = submit_stuck(chain)
    tr.wait_stuck(chain)
    requeue_by_admin(chain, job)
    chain.wait_job(job, "COMPLETED", timeout=60)
    assert f"resumed at step 25 from {tr.FOLDER}/step-000025" in chain.job_output(job)
    assert tr.digest(chain, FINAL) == tr.reference(chain, STEPS)


def test_budget_spent(chain):
    """Three faults with a budget of two: held in SpecialExit, with the reason where people look."""
    comment = tr.TOKEN + ",max-restarts=2"
    script = f"echo $SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $SLURMD_NODENAME >> /shared/ckpt/starts; " \
             f"{tr.RUN} {tr.command(5)}; exec sleep 600"
    job = chain.sbatch("alice", script, gres="gpu:2", comment=comment)
    for number in range(3):
        chain.wait_for(lambda n=number: len(tr.starts(chain)) == n + 1, 60, f"start {number}")
        node = chain.wait_job(job, "RUNNING")["BatchHost"]
        fall_off(chain, node, 0)
        healthcheck(chain, node)
    held = chain.wait_for(lambda: next((one for one in [chain.job(job)] if one["JobState"] in (
        "SPECIAL_EXIT", "PENDING") and one["Priority"] == "0"), None), 60, "the hold")
    assert chain.out(CTL, ["squeue", "-h", "-j", str(job), "-o", "%t"]).strip() == "SE"
    assert "GH-CKPT-BUDGET" in held["AdminComment"]
    assert "GH-CKPT-BUDGET" in chain.job_output(job)
    assert len(tr.starts(chain)) == 3


@pytest.mark.chain
def test_all_checkpoints_corrupt(chain):
    """Files are there and none is acceptable: held, not started from zero; no node is drained for it."""
    job = submit_stuck(chain, cut=False)
    tr.wait_stuck(chain)
    chain.exec(CTL, f"for f in {tr.FOLDER}/step-*/*.safetensors; do truncate -s 100 $f; done", check=True)
    requeue_by_admin(chain, job)
    chain.wait_for(lambda: chain.out(CTL, ["squeue", "-h", "-j", str(job), "-o", "%t"]).strip() == "SE", 40, "the hold")
    assert "GH-CKPT-NONE" in chain.job(job)["AdminComment"]
    assert len(tr.starts(chain)) == 1
    assert not any(chain.drained(node) for node in chain.nodes)
    assert "GH-CKPT-NONE" in chain.job_output(job)


def test_empty_folder_starts_from_the_beginning(chain):
    """Nothing was saved yet: from step 0, and the job's output says so."""
    job = submit_stuck(chain, cut=False)
    tr.wait_stuck(chain)
    chain.exec(CTL, f"rm -rf {tr.FOLDER} && mkdir {tr.FOLDER} && chown alice: {tr.FOLDER}", check=True)
    requeue_by_admin(chain, job)
    chain.wait_job(job, "COMPLETED", timeout=60)
    output = chain.job_output(job)
    assert "starting from the beginning" in output
    assert tr.digest(chain, FINAL) == tr.reference(chain, STEPS)


def test_dead_checkpoint_mount_sends_back(chain):
    """Could not look: the job comes back later and is not restarted from zero; no node is drained for it."""
    only(chain, "n1")
    job = submit_stuck(chain, cut=False, comment="gpuhealth:ckpt=/data/ckpt/run7")
    tr.wait_stuck(chain)
    chain.exec("n1", "mkdir -p /data/ckpt/run7 && chown alice: /data/ckpt /data/ckpt/run7")
    # The dead mount is the job's own business here: no mount check finds it first.
    siteconf.configure(chain, mounts=[])
    chain.inject("n1", "mount-hang /data")
    try:
        requeue_by_admin(chain, job)
        chain.wait_for(lambda: int(chain.job(job)["Restarts"]) >= 2, 60, "the job to be sent back")
        waiting = chain.wait_job(job, "PENDING", timeout=60)
        assert waiting["Reason"] == "BeginTime"
        assert len(tr.starts(chain)) == 1
        assert not chain.drained("n1")
        assert any(event["kind"] == "send-back" and event["code"] == "GH-CKPT-AWAY" for event in chain.events("n1"))
    finally:
        chain.clear("n1")
        siteconf.configure(chain)


@pytest.mark.chain
def test_variables_of_the_taskprolog(chain):
    """A script that prefers variables: they are set at a restart only, by the optional TaskProlog."""
    chain.slurm_conf(TaskProlog=f"{tr.HOOKS}/taskprolog")
    script = (f'echo "start ${{SLURM_RESTART_COUNT:-0}}: $GPUHEALTH_RESUME_ARGS"\n'
              f'{tr.PYTHON} {tr.TRAIN} --save-to {tr.FOLDER} --steps $(( 20 + 20 * ${{SLURM_RESTART_COUNT:-0}} )) '
              '--every 5 $GPUHEALTH_RESUME_ARGS\n'
              '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] && touch /shared/ckpt/stuck && exec sleep 600\nexit 0\n')
    job = chain.sbatch("alice", script, gres="gpu:2", comment=tr.TOKEN)
    tr.wait_stuck(chain)
    requeue_by_admin(chain, job)
    chain.wait_job(job, "COMPLETED", timeout=60)
    output = chain.job_output(job)
    assert "start 0: \n" in output
    assert f"start 1: --resume-from {tr.FOLDER}/step-000020" in output
    assert "resumed at step 20" in output
