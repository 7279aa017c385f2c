"""The test cluster itself: what a test relies on when it injects a fault. No product is involved."""

from __future__ import annotations

import time

import pytest
from harness import Cluster, ExecTimeout

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def without_product(cluster: Cluster) -> None:
    """The product's kill switch is on: where it is installed it would answer the faults of these tests by draining."""
    for node in cluster.nodes:
        cluster.write(node, "/etc/slurm/gpuhealth.off", "")


@pytest.mark.chain
def test_a_users_job_runs_on_its_gpus(cluster: Cluster):
    """A batch job of an ordinary user gets eight GPUs, and writes to the shared folder."""
    job = cluster.sbatch("alice", 'echo "$SLURM_JOB_GPUS on $(hostname) as $(id -un)"', gres="gpu:8")
    record = cluster.wait_job(job, "COMPLETED", "FAILED")
    assert record["JobState"] == "COMPLETED"
    assert cluster.job_output(job) == f"0,1,2,3,4,5,6,7 on {record['BatchHost']} as alice\n"


def test_gpu_faults_show_in_nvml_and_clear(cluster: Cluster):
    """A lost GPU, one that is gone and an ECC count are what nvidia-smi says, until the node is cleared."""
    cluster.inject("n1", "gpu-gone gpu2")
    assert len(cluster.out("n1", ["nvidia-smi", "-L"]).splitlines()) == 7
    assert len(cluster.out("n2", ["nvidia-smi", "-L"]).splitlines()) == 8
    cluster.clear("n1")
    assert len(cluster.out("n1", ["nvidia-smi", "-L"]).splitlines()) == 8


def test_kernel_log_is_per_node_and_in_kmsg_format(cluster: Cluster):
    """An injected Xid is a record with a rising sequence number on its node alone."""
    cluster.inject("n1", "xid 79 gpu3")
    cluster.inject("n1", "klog", "odd \\ text\x07")
    records = [line.split(";", 1) for line in cluster.klog("n1")]
    expected = "NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    assert records[0][1] == expected
    assert records[-1][1] == "odd \\x5c text\\x07"
    heads = [head.split(",") for head, _ in records]
    assert [int(head[1]) for head in heads] == list(range(int(heads[0][1]), int(heads[0][1]) + len(heads)))
    assert cluster.klog("n2") == []


def test_missing_symbol_is_missing(cluster: Cluster):
    """A driver without a symbol answers FunctionNotFound for that call only."""
    cluster.inject("n1", "no-symbol nvmlDeviceGetGpuFabricInfoV")
    code = ("import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0); n.nvmlDeviceGetName(h)\n"
            "try: n.nvmlDeviceGetGpuFabricInfoV(h, n.c_nvmlGpuFabricInfoV_t())\n"
            "except n.NVMLError as e: print(e.value)")  # fmt: skip
    assert cluster.out("n1", ["/opt/gpuhealth/bin/python", "-c", code]).strip() == "13"


def test_dstate_is_real_and_is_undone(cluster: Cluster):
    """An NVML call on the frozen file system ignores SIGKILL; clear lets it end."""
    cluster.inject("n1", "nvml-hang dstate")
    cluster.exec("n1", "nvidia-smi -L > /dev/null 2>&1 &")
    stuck = cluster.wait_for(lambda: cluster.stuck("n1"), 10, "a process in D state")
    cluster.exec("n1", ["kill", "-KILL", str(stuck[0][0])])
    time.sleep(0.5)
    assert cluster.stuck("n1") == stuck
    cluster.clear("n1")
    assert cluster.stuck("n1") == []
    assert len(cluster.out("n1", ["nvidia-smi", "-L"]).splitlines()) == 8


def test_hanging_mount_is_real_and_is_undone(cluster: Cluster):
    """A stat of the mount never returns, waits in D after SIGKILL, and ends with clear; other nodes see the mount."""
    cluster.inject("n1", "mount-hang /data")
    with pytest.raises(ExecTimeout):
        cluster.exec("n1", ["stat", "/data"], timeout=2)
    pid = cluster.out("n1", ["pidof", "stat"]).strip()
    cluster.exec("n1", ["kill", "-KILL", pid])
    cluster.wait_for(lambda: cluster.stuck("n1") == [(int(pid), "stat /data")], 5, "the stat to be in D state")
    assert cluster.out("n2", ["stat", "-c", "%F", "/data"]) == "directory\n"
    cluster.clear("n1")
    assert cluster.stuck("n1") == []
    assert cluster.out("n1", ["ls", "/data"]) == "ckpt\n"


def test_mount_gone_and_read_only(cluster: Cluster):
    """A mount that is gone is no mount point any more, one that is read-only refuses writes; both come back."""
    cluster.inject("n1", "mount-gone /shared")
    assert cluster.exec("n1", ["mountpoint", "-q", "/shared"]).returncode != 0
    cluster.inject("n1", "mount-ro /data")
    assert "Read-only" in cluster.exec("n1", ["touch", "/data/ckpt/x"]).stderr
    cluster.clear("n1")
    cluster.out("n1", "touch /shared/x /data/ckpt/x && rm /shared/x /data/ckpt/x")


def test_reboot_is_a_new_boot(cluster: Cluster):
    """Boot id and kernel log are new, volatile GPU state is gone, lasting state stays, Slurm has the node back."""
    before = cluster.boot_id("n1")
    cluster.inject("n1", "off-bus gpu3")
    cluster.inject("n1", "remap-failure gpu1")
    cluster.reboot("n1")
    assert cluster.boot_id("n1") != before
    assert not any("Xid" in line for line in cluster.klog("n1"))
    assert cluster.out("n1", ["gpusim", "state"]) == "gpu1.remap.failure=1\ngpus=8\n"
    cluster.wait_for(lambda: cluster.node("n1")["State"] == "IDLE", 30, "n1 to be idle")


def test_killed_node_is_noticed_and_comes_back(cluster: Cluster):
    """A node that is killed under a job makes Slurm requeue the job; after the reboot the node serves again."""
    cluster.slurm_conf(SlurmdTimeout=10)
    job = cluster.sbatch("alice", "sleep 300", gres="gpu:8")
    host = cluster.wait_job(job, "RUNNING")["BatchHost"]
    cluster.kill(host)
    cluster.wait_for(lambda: cluster.job(job)["Restarts"] == "1", 90, "the job to be requeued")
    cluster.exec("ctl", ["scancel", str(job)])
    cluster.reboot(host)
    cluster.resume(host)
    cluster.wait_for(lambda: cluster.node(host)["State"] == "IDLE", 60, f"{host} to be idle")


@pytest.mark.chain
def test_slurm_conf_reaches_the_nodes(cluster: Cluster):
    """A Prolog set by slurm_conf runs on the next job, and is gone after reset."""
    cluster.write("n1", "/etc/slurm/mark", "#!/bin/sh\necho ran >> /run/mark\n", mode="755")
    cluster.out("n1", ["rm", "-f", "/run/mark"])
    cluster.slurm_conf(Prolog="/etc/slurm/mark")
    job = cluster.sbatch("bob", "true", nodelist="n1", gres="gpu:1")
    cluster.wait_job(job, "COMPLETED")
    assert cluster.read("n1", "/run/mark") == "ran\n"
    cluster.reset()
    assert cluster.inner.spec.conf == cluster.baseline
    assert "/etc/slurm/mark" not in cluster.out("ctl", ["scontrol", "show", "config"])


def test_controller_can_be_away(cluster: Cluster):
    """slurmctld stopped: no answer; started again: the queue is as before."""
    job = cluster.sbatch("alice", "sleep 60", gres="gpu:1")
    cluster.wait_job(job, "RUNNING")
    cluster.stop_ctld()
    assert cluster.exec("ctl", ["scontrol", "ping"]).returncode != 0
    cluster.start_ctld()
    assert cluster.state(job) == "RUNNING"
