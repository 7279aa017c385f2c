"""gpuN in a reason is Slurm's own index of the GPU, however NVML counts, before the loss and after it."""
from __future__ import annotations

import pytest
from harness import Cluster
from siteconf import DEADLINES, configure, healthy_round, hook, start_job

pytest_plugins = ("sitefixtures",)
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("by_hand")]

# The board's slot -> device minor. Slurm's File=/dev/nvidia[0-7] makes the minor the gres index; NVML lists in `ORDER`.
MINORS = {0: 4, 1: 5, 2: 6, 3: 7, 4: 1, 5: 2, 6: 3, 7: 0}
ORDER = "3,7,1,5,0,4,2,6"
BUS = "0000:ab:00"      # of slot 5, whose index in Slurm is 2


def shuffle(cluster: Cluster) -> None:
    configure(cluster, deadlines=DEADLINES)
    cluster.inject("n1", "set", f"order={ORDER}", *(f"gpu{slot}.minor={minor}" for slot, minor in MINORS.items()))
    healthy_round(cluster)


def renumber(cluster: Cluster) -> None:
    """The driver lists what is left in another order than before."""
    cluster.inject("n1", "set", "order=6,4,2,0,7,3,1,5")


@pytest.mark.parametrize("words, reason", [
    (["xid 79 gpu5", "set gpu5.present=0"], "GH-XID79 gpu2"),
    (["xid 79 gpu5", "set gpu5.lost=1 gpu5.lost_at=handle"], "GH-XID79 gpu2"),
    (["set gpu5.lost=1"], "GH-GPU-LOST gpu2"),
    (["set gpu5.lost=1 gpu5.lost_at=handle"], "GH-GPU-LOST gpu2"),
    (["set gpu5.pcie.width=8"], "GH-PCIE-WIDTH gpu2"),
    (["ecc gpu5 dram 3"], "GH-ECC-UNC gpu2"),
    (["set gpu5.present=0"], "GH-GPU-LOST gpu2 not listed, 7/8"),
])  # fmt: skip
def test_index_after_a_loss(fresh: Cluster, words: list[str], reason: str):
    """Slot 5 has the minor 2, so it is Slurm's gpu2: also when NVML renumbers because of the loss."""
    shuffle(fresh)
    for word in words:
        fresh.inject("n1", word)
    renumber(fresh)
    hook(fresh, "n1")
    assert fresh.drained("n1") and fresh.reason("n1").startswith(reason), fresh.reason("n1")


def test_only_the_job_with_that_gpu_is_touched(fresh: Cluster):
    """Two jobs share the node; the GPU that is lost has another number in NVML. The job that Slurm gave it is
    requeued, the other one runs on."""
    shuffle(fresh)
    jobs = {}
    for name in ("a", "b"):
        job = start_job(fresh, gres="gpu:4", comment=f"gpuhealth:ckpt=/shared/ckpt/{name}")
        jobs[job] = fresh.out("ctl", ["scontrol", "-d", "-o", "show", "job", str(job)])
    with_it = next(job for job, text in jobs.items() if "IDX:0-3" in text)
    [without] = [job for job in jobs if job != with_it]
    assert "IDX:4-7" in jobs[without]
    fresh.inject("n1", "xid 79 gpu5")
    fresh.inject("n1", "set gpu5.present=0")
    renumber(fresh)
    hook(fresh, "n1")
    assert fresh.reason("n1").startswith("GH-XID79 gpu2"), fresh.reason("n1")
    fresh.wait_for(lambda: fresh.job(with_it)["Restarts"] == "1", 20, "the requeue")
    hook(fresh, "n1")
    record = fresh.job(without)
    assert record["JobState"] == "RUNNING" and record["Restarts"] == "0"
    assert fresh.job(with_it)["Restarts"] == "1"
