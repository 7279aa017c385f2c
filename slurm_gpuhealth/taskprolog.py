"""TaskProlog: tell the job's scripts where they resume, in Slurm's own lines. Runs as the job's user.

What is printed becomes the environment of the batch script, so only checked, single-line values are printed, and
nothing at all where anything is in doubt: the script then simply sees no variable.
"""
from __future__ import annotations

from slurm_gpuhealth import resume
from slurm_gpuhealth.checkpoint import answer as answers


def lines(env, root=""):
    """Lines for slurmd: `export NAME=value`, `unset NAME`, `print text`; [] at a first start.

    env: TaskProlog's environment (SLURM_RESTART_COUNT is there only above 0).
    """
    job, restart = env.get("SLURM_JOB_ID", ""), env.get("SLURM_RESTART_COUNT", "")
    if not (job.isdigit() and restart.isdigit()) or int(restart) < 1:
        return []
    answer = answers.read(root, job, int(restart))
    if answer is None:
        return []
    return resume.export_lines(answer)
