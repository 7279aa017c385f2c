"""Two hooks of one node at the same moment with the same fault: one evidence folder, one drain, one requeue."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from harness import CTL, Cluster
from siteconf import DEADLINES, HOOKS, configure, drains, healthy_round, saw, start_job

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

COMMENT = "gpuhealth:ckpt=/shared/ckpt/together"
TWO_ROUNDS = f"env -i SLURMD_NODENAME=n1 {HOOKS}/healthcheck & env -i SLURMD_NODENAME=n1 {HOOKS}/healthcheck; wait"


def one_of_each(cluster: Cluster, job: int) -> None:
    """One drain and one requeue in slurmctld's log, one evidence folder and one incident on the node."""
    assert cluster.reason("n1").startswith("GH-XID79 gpu3"), cluster.reason("n1")
    assert len(cluster.ctld_log(r"update_node: node n1 reason set to: GH-XID79")) == 1, drains(cluster, "n1")
    assert len(cluster.ctld_log(rf"Requeuing JobId={job}\b")) == 1, cluster.ctld_log(rf"JobId={job}\b")
    assert len(cluster.evidence("n1")) == 1
    assert len(saw(cluster, "n1", "incident")) == len(saw(cluster, "n1", "drain")) == 1
    assert len(saw(cluster, "n1", "requeue")) == 1


def clear_log(cluster: Cluster) -> None:
    """What slurmctld wrote in earlier tests is not to be counted."""
    cluster.exec(CTL, ": > /var/log/slurm/slurmctld.log", check=True)


@pytest.mark.parametrize("attempt", range(3))
def test_two_health_checks(fresh: Cluster, attempt: int):
    """Two health checks (slurmd's and a person's) find the lost GPU of a running job together."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    job = start_job(fresh, comment=COMMENT)
    clear_log(fresh)
    fresh.inject("n1", "off-bus gpu3")
    fresh.exec("n1", TWO_ROUNDS, timeout=90, check=True)
    fresh.wait_for(lambda: fresh.job(job)["Restarts"] == "1", 40, "the requeue")
    fresh.wait_for(lambda: "COMPLETING" not in fresh.state(job), 40, "the epilog to be over")
    one_of_each(fresh, job)


@pytest.mark.parametrize("attempt", range(2))
def test_health_check_beside_an_epilog(fresh: Cluster, attempt: int):
    """The job dies of the fault, so that its epilog and a health check find it together."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    job = start_job(fresh, "rm -f /shared/ckpt/die; while [ ! -e /shared/ckpt/die ]; do sleep 0.1; done; exit 3",
                    comment=COMMENT)
    clear_log(fresh)
    fresh.inject("n1", "off-bus gpu3")
    fresh.exec("n1", f"touch /shared/ckpt/die; sleep 0.1; {TWO_ROUNDS}", timeout=90, check=True)
    fresh.wait_for(lambda: fresh.job(job)["Restarts"] == "1", 40, "the requeue")
    fresh.wait_for(lambda: "COMPLETING" not in fresh.state(job), 40, "the epilog to be over")
    one_of_each(fresh, job)


def test_health_check_beside_a_prolog(fresh: Cluster):
    """A job is about to start while a health check finds the fault: it goes away once, the node is drained once."""
    configure(fresh, deadlines=DEADLINES)
    healthy_round(fresh)
    clear_log(fresh)
    fresh.inject("n1", "off-bus gpu3")
    began = "i=0; until pgrep -f '[l]ibexec/gpuhealth/prolog' || [ $i -ge 500 ]; do i=$((i+1)); sleep 0.02; done"
    with ThreadPoolExecutor(1) as beside:
        rounds = beside.submit(fresh.exec, "n1", f"{began}; {TWO_ROUNDS}", timeout=90, check=True)
        job = fresh.sbatch("alice", "echo $SLURMD_NODENAME >> /shared/ckpt/ran", nodelist="n1", gres="gpu:8",
                           chdir="/", output="/dev/null", comment=COMMENT)
        rounds.result()
    fresh.wait_for(lambda: fresh.job(job)["Restarts"] == "1", 40, "the requeue")
    fresh.wait_for(lambda: "COMPLETING" not in fresh.state(job), 40, "the prolog to be over")
    one_of_each(fresh, job)
    assert not fresh.exists(CTL, "/shared/ckpt/ran")
