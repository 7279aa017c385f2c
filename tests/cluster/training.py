"""Training jobs for the cluster tests, and what Slurm's records say about their restarts."""
from __future__ import annotations

import hashlib
import json
import re
import shlex
import time
from pathlib import Path

from harness import CTL, Cluster, parse_show
from testbed_lib.paths import TESTBED_DIR

TRAIN = "/shared/jobs/train.py"
PYTHON = "/opt/gpuhealth/bin/python3"
RUN = "/opt/gpuhealth/bin/gpuhealth run --"
FOLDER = "/shared/ckpt/run7"
TOKEN = f"gpuhealth:ckpt={FOLDER}"
HOOKS = "/usr/libexec/gpuhealth"
LIMIT_S = 15    # end of COMPLETING to running again, a free node being there


def prepare(cluster: Cluster) -> None:
    """The training script where all nodes see it."""
    cluster.write(CTL, TRAIN, (Path(TESTBED_DIR) / "jobs" / "train.py").read_text())


def command(steps: int, out: str = "", every: int = 5, step_seconds: float = 0.05, more: str = "") -> str:
    """The training command; `out` is where the final weights go."""
    end = f" --out {out}" if out else ""
    return (f"{PYTHON} {TRAIN} --save-to {FOLDER} --steps {steps} --every {every} "
            f"--step-seconds {step_seconds}{end} {more}").strip()


def stuck_after(steps: int, then: str, cut: bool = True) -> str:
    """A script whose first start trains to `steps`, loses half of its newest checkpoint and then hangs, as a job on a
    dead GPU does; every restart runs `then`. Each start writes its node and restart count to /shared/ckpt/starts."""
    half = (f'f=$(ls {FOLDER}/step-{steps:06d}/*.safetensors | head -1); '
            'truncate -s $(( $(stat -c %s "$f") / 2 )) "$f"') if cut else "true"
    return f"""
echo "$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}} $SLURMD_NODENAME" >> /shared/ckpt/starts
if [ "${{SLURM_RESTART_COUNT:-0}}" = 0 ]; then
    {RUN} {command(steps)} || exit 1
    {half}
    touch /shared/ckpt/stuck
    exec sleep 600
fi
exec {then}
"""


def starts(cluster: Cluster) -> list[list[str]]:
    """[job, restart, node] of every batch script that ran."""
    return [line.split() for line in cluster.out(CTL, "cat /shared/ckpt/starts 2>/dev/null || true").splitlines()]


def wait_stuck(cluster: Cluster, timeout: float = 60) -> None:
    cluster.wait_for(lambda: cluster.exists(CTL, "/shared/ckpt/stuck"), timeout, "the job to be stuck")


def digest(cluster: Cluster, path: str) -> str:
    return hashlib.sha256(cluster.out(CTL, ["base64", path]).encode()).hexdigest()


def reference(cluster: Cluster, steps: int) -> str:
    """Digest of the final weights of a run that nobody interrupted."""
    out = "/tmp/reference"
    cluster.out(CTL, f"rm -rf {out} && mkdir {out} && {PYTHON} {TRAIN} --save-to {out}/c --steps {steps} --every 5 "
                     f"--out {out}/final.safetensors >/dev/null", timeout=120)
    return digest(cluster, f"{out}/final.safetensors")


def requeues(cluster: Cluster, job: int | str) -> list[str]:
    """slurmctld's own lines about requeues of this job."""
    return cluster.ctld_log(rf"Requeuing JobId={job}\b")


def stamp(line: str) -> float:
    """Time of a line of slurmctld.log, in seconds."""
    match = re.match(r"\[(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)\]", line)
    assert match, line
    numbers = [int(part) for part in match.groups()]
    year, month, day, hour, minute, second, milli = numbers
    return time.mktime((year, month, day, hour, minute, second, 0, 0, 0)) + milli / 1000


def pending_to_running(cluster: Cluster, job: int) -> float:
    """Seconds from the end of COMPLETING (slurmctld requeues it then) to the next start, by slurmctld's log."""
    ended = stamp(requeues(cluster, job)[-1])
    started = [stamp(line) for line in cluster.ctld_log(rf"(Allocate|_start_job: Started) JobId={job}\b")]
    return min(moment for moment in started if moment > ended) - ended


def showed(cluster: Cluster, node: str, code_and_subject: str) -> None:
    """The node is drained with this code, and an admin sees it in plain `sinfo -R` (20 characters)."""
    assert cluster.drained(node), cluster.picture()
    assert cluster.reason(node).startswith(code_and_subject), cluster.reason(node)
    lines = [line for line in cluster.sinfo_R().splitlines() if re.search(rf"\b{node}\b", line)]
    assert any(code_and_subject in line[:20] for line in lines), cluster.sinfo_R()


def wait_drained(cluster: Cluster, node: str, code_and_subject: str, timeout: float = 30) -> None:
    cluster.wait_for(lambda: cluster.drained(node), timeout, f"{node} to be drained")
    showed(cluster, node, code_and_subject)


def check_evidence(cluster: Cluster, node: str, count: int = 1) -> list[str]:
    """Each evidence folder of the node verifies, and a copy without the stored decision replays to that decision."""
    found = cluster.evidence(node)
    assert len(found) == count, found
    for folder in found:
        assert cluster.gpuhealth(node, "evidence", "verify", folder).returncode == 0
        taken = json.loads(cluster.read(node, f"{folder}/decision.json"))["plan"]
        assert replayed(cluster, node, folder)["plan"] == taken
    return found


def replayed(cluster: Cluster, node: str, folder: str, *changes: str) -> dict:
    """The decision made again from a copy of an evidence folder without its stored decision."""
    sets = " ".join(f"--set {shlex.quote(change)}" for change in changes)
    text = cluster.out(node, f"d=$(mktemp -d) && cp -r {folder}/. $d && rm $d/decision.json && "
                             f"/opt/gpuhealth/bin/gpuhealth replay $d --json {sets}")
    answer = json.loads(text)
    assert answer["stored"] is None
    return answer


def arrays(cluster: Cluster, job: int) -> list[dict[str, str]]:
    done = cluster.out(CTL, ["scontrol", "-o", "show", "job", str(job)])
    return [parse_show(line) for line in done.splitlines() if line.strip()]
