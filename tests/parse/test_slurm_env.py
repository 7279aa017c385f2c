"""A hook's job from its environment, per release and phase."""
import pytest

from slurm_gpuhealth import model
from slurm_gpuhealth.parse.slurm_env import exit_code, job_from_env

BASE = {
    "SLURM_JOB_ID": "42", "SLURM_JOB_UID": "1000", "SLURM_JOB_USER": "ana", "SLURM_JOB_PARTITION": "gpu",
    "SLURM_JOB_NODELIST": "n[3-4,7]", "SLURM_JOB_GPUS": "0,1,3-5", "SLURM_JOB_RESTART_COUNT": "2",
    "SLURM_JOB_COMMENT": "gpuhealth:ckpt=/ckpt/run7", "SLURM_JOB_WORK_DIR": "/home/ana",
}


def test_prolog():
    """All that Prolog is told ends up in the job; what only slurmctld knows stays unknown."""
    job = job_from_env(BASE, model.PROLOG, "n4")
    assert job == model.Job(
        id=42, uid=1000, user="ana", partition="gpu", nodes=("n3", "n4", "n7"), batch_host="n3",
        gpus=(0, 1, 3, 4, 5), restart=2, comment="gpuhealth:ckpt=/ckpt/run7", work_dir="/home/ana")
    assert (job.state, job.end, job.batch, job.requeue, job.whole_node) == ("", "", None, None, False)


def test_nodelist_of_22_05():
    """22.05 calls the list SLURM_NODELIST."""
    env = dict(BASE, SLURM_NODELIST="n9")
    del env["SLURM_JOB_NODELIST"]
    assert job_from_env(env, model.PROLOG, "n9").nodes == ("n9",)


def test_no_nodelist():
    """Without a list of nodes the job is taken to run here."""
    env = {"SLURM_JOB_ID": "1"}
    job = job_from_env(env, model.PROLOG, "n9")
    assert (job.nodes, job.batch_host, job.gpus, job.restart) == (("n9",), "n9", (), 0)


def test_taskprolog_counts_restarts_under_another_name():
    """TaskProlog has SLURM_RESTART_COUNT, and only above 0."""
    env = {"SLURM_JOB_ID": "1", "SLURM_RESTART_COUNT": "3"}
    assert job_from_env(env, model.TASKPROLOG, "n1").restart == 3
    assert job_from_env({"SLURM_JOB_ID": "1"}, model.TASKPROLOG, "n1").restart == 0


def test_healthcheck_has_no_job():
    """HealthCheckProgram is told nothing of jobs."""
    assert job_from_env({"SLURMD_NODENAME": "n1"}, model.HEALTHCHECK, "n1") is None


@pytest.mark.parametrize(("env", "pair"), [
    ({"SLURM_JOB_EXIT_CODE": "768", "SLURM_JOB_EXIT_CODE2": "3:0"}, "3:0"),
    ({"SLURM_JOB_EXIT_CODE": "768"}, "3:0"),
    ({"SLURM_JOB_EXIT_CODE": "11"}, "0:11"),
    ({"SLURM_JOB_EXIT_CODE": "139"}, "0:11"),
    ({"SLURM_JOB_EXIT_CODE": "0", "SLURM_JOB_EXIT_CODE2": "0:0"}, "0:0"),
    ({"SLURM_JOB_EXIT_CODE": "x"}, ""),
    ({}, ""),
])
def test_exit_code(env, pair):
    """EXIT_CODE is a raw wait status (exit 3 is 768, signal 11 is 11, with a core dump 139)."""
    assert exit_code(env) == pair


def test_array_and_het_where_given():
    """Array and het ids are taken where a release gives them; Slurm's NO_VAL means that there is none."""
    env = dict(BASE, SLURM_ARRAY_JOB_ID="40", SLURM_ARRAY_TASK_ID="0", SLURM_HET_JOB_ID="41")
    job = job_from_env(env, model.PROLOG, "n3")
    assert (job.array_job, job.array_task, job.het_leader) == (40, 0, 41)
    env = dict(BASE, SLURM_ARRAY_JOB_ID="0", SLURM_ARRAY_TASK_ID="4294967294", SLURM_HET_JOB_ID="0")
    job = job_from_env(env, model.PROLOG, "n3")
    assert (job.array_job, job.array_task, job.het_leader) == (None, None, None)


@pytest.mark.parametrize(("name", "value"), [
    ("SLURM_JOB_ID", "-1"), ("SLURM_JOB_ID", "12; rm"), ("SLURM_JOB_ID", "0"), ("SLURM_JOB_ID", "9" * 40),
    ("SLURM_JOB_ID", "\u0663"),
])
def test_hostile_job_id(name, value):
    """What is not a job id gives no job."""
    assert job_from_env(dict(BASE, **{name: value}), model.PROLOG, "n3") is None


def test_hostile_values_are_bounded():
    """Nothing a user can set makes the hook carry more than Slurm itself allows, or fail."""
    env = dict(BASE, SLURM_JOB_COMMENT="x" * 9999, SLURM_JOB_WORK_DIR="/" + "y" * 9999,
               SLURM_JOB_GPUS="0-99999999", SLURM_JOB_NODELIST="n[1-99999999]", SLURM_JOB_UID="root",
               SLURM_JOB_RESTART_COUNT="many")
    job = job_from_env(env, model.PROLOG, "n3")
    assert (len(job.comment), len(job.work_dir)) == (1024, 4096)
    assert (job.gpus, job.nodes, job.uid, job.restart) == ((), ("n1",), None, 0)


def test_comment_is_kept_as_it_is():
    """A comment may hold anything; it is handed on byte for byte."""
    text = "a=b JobState=COMPLETED\n  \"quoted\" \x1b[31m"
    assert job_from_env(dict(BASE, SLURM_JOB_COMMENT=text), model.PROLOG, "n3").comment == text
