"""What slurmd tells a hook about its job through the environment. Hot path: no call to slurmctld.

Names measured on Slurm 22.05.8, 24.11.5 and 26.05.5 (2026-11-30):

| variable | Prolog | Epilog | TaskProlog |
|---|---|---|---|
| SLURM_JOB_ID, _UID, _USER, _PARTITION, _NODELIST (22.05: SLURM_NODELIST) | yes | yes | yes |
| SLURM_JOB_GPUS (gres indices) | yes | yes | yes |
| SLURM_JOB_COMMENT | yes | yes | no |
| SLURM_JOB_RESTART_COUNT | yes | yes | SLURM_RESTART_COUNT, only when above 0 |
| SLURM_JOB_WORK_DIR (26.05: also _STDOUT) | yes | yes | no |
| SLURM_JOB_EXIT_CODE, _EXIT_CODE2, _DERIVED_EC | no | yes | no |

No SLURM_ARRAY_* variable reaches a hook on the node; they are read where a release gives them all the same.
How the run ended cannot be read here: a job that completed and one that its user cancelled both show 0:0, and
once a job was requeued its restart count is one higher already. Only slurmctld knows (scontrol_text.py).

Values are cut at what Slurm itself allows, so that a hook never carries megabytes of a user's text along.
"""
from __future__ import annotations

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.model import TASKPROLOG, Job
from slurm_gpuhealth.parse import hostlist

MAX_COMMENT = 1024      # slurmctld/job_mgr.c refuses longer ones
MAX_PATH = 4096         # PATH_MAX
MAX_NAME = 1024         # names of users, partitions and jobs
MAX_GPUS = 1024         # gres indices on one node
_NO_VAL = 0xfffffffe    # slurm.h NO_VAL; above it INFINITE: "not set"


def job_from_env(env, phase, node):
    """The Job that the environment of a hook describes, or None when it names none (HealthCheckProgram).

    env: mapping of str. phase: one of model.PHASES. node: this node's name; when Slurm gives no list of nodes
    the job is taken to run here. Fields that only slurmctld knows stay at their defaults (state "", end "",
    whole_node False, array None unless given). `gpus` holds gres indices; it is empty both for a job without
    GPUs and for a list that cannot be read.
    """
    job_id = _number(env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID"))
    if not job_id:
        return None
    nodes = _nodes(env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST") or "", node)
    restart = env.get("SLURM_RESTART_COUNT" if phase == TASKPROLOG else "SLURM_JOB_RESTART_COUNT")
    return Job(
        id=job_id,
        uid=_number(env.get("SLURM_JOB_UID")),
        user=env.get("SLURM_JOB_USER", "")[:MAX_NAME],
        partition=env.get("SLURM_JOB_PARTITION", "")[:MAX_NAME],
        nodes=nodes,
        batch_host=nodes[0],
        gpus=_gpus(env.get("SLURM_JOB_GPUS", "")),
        restart=_number(restart) or 0,
        comment=env.get("SLURM_JOB_COMMENT", "")[:MAX_COMMENT],
        array_job=_number(env.get("SLURM_ARRAY_JOB_ID")) or None,
        array_task=_number(env.get("SLURM_ARRAY_TASK_ID")),
        exit_code=exit_code(env),
        start=_number(env.get("SLURM_JOB_START_TIME")) or None,
        name=env.get("SLURM_JOB_NAME", "")[:MAX_NAME],
        work_dir=env.get("SLURM_JOB_WORK_DIR", "")[:MAX_PATH],
        stdout=env.get("SLURM_JOB_STDOUT", "")[:MAX_PATH],
        het_leader=_number(env.get("SLURM_HET_JOB_ID") or env.get("SLURM_PACK_JOB_ID")) or None,
    )


def exit_code(env):
    """"exit:signal" of the job from Epilog's environment, "" where there is none.

    SLURM_JOB_EXIT_CODE2 has it in this form; SLURM_JOB_EXIT_CODE is a raw wait status (exit 3 is 768, signal
    11 is 11).
    """
    pair = env.get("SLURM_JOB_EXIT_CODE2", "")
    code, colon, number = pair.partition(":")
    if colon and _number(code) is not None and _number(number) is not None:
        return "%d:%d" % (int(code), int(number))
    status = _number(env.get("SLURM_JOB_EXIT_CODE"))
    if status is None or status > 0xffff:
        return ""
    return "%d:%d" % (status >> 8, status & 0x7f)


def _number(text):
    """A number that Slurm may have set, or None (absent, not a number, NO_VAL)."""
    if not text or not (text.isdigit() and text.isascii()) or len(text) > 12:
        return None
    value = int(text)
    return value if value < _NO_VAL else None


def _nodes(text, node):
    try:
        names = hostlist.expand(text)
    except DataError:
        # Still name the batch host: the resume point is resolved there and nowhere else.
        names = [hostlist.first(text)]
    return tuple(name for name in names if name) or (node,)


def _gpus(text):
    """Gres indices of SLURM_JOB_GPUS, sorted. A list that is not one gives none."""
    try:
        return tuple(sorted(set(hostlist.numbers(text, MAX_GPUS)))) if text else ()
    except DataError:
        return ()
