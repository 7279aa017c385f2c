"""A node below a folder, with the real hooks on it: real guard, real children, fake scontrol."""
import json
import os
import subprocess
import sys
import time

import builders
import fakes
import pytest

from slurm_gpuhealth import config_schema, event_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = ("import os, sys; sys.path.insert(0, %r); from slurm_gpuhealth import hook; "
          "os._exit(hook.main(sys.argv[1], sys.argv[2]))")


class Node:
    """One fixture node. `files` are below its root; `slurm` is the fake slurmctld."""

    def __init__(self, root, slurm):
        self.root, self.slurm = str(root), slurm
        self.sequence = 0
        self.config = {"mode": "full", "kernel_log": "/var/log/kmsg", "brake": {"jitter": 0},
                       "deadlines": {"prolog": 10, "epilog": 10, "healthcheck": 15, "nvml": 2, "kernel_log": 2,
                                     "mount": 1, "network_mount": 2, "resume": 3, "notify": 2, "lock": 2}}
        self.gpus = [{} for _ in range(8)]
        self.boot("0" * 32)
        self.write({"/etc/slurm/gres.conf": "Name=gpu Type=h100 File=/dev/nvidia[0-7]\n",
                    "/etc/slurm/slurm.conf": "NodeName=n1 Gres=gpu:h100:8\n", "/var/log/kmsg": ""})
        self.save()

    def boot(self, boot_id):
        self.write({"/proc/sys/kernel/random/boot_id": boot_id + "\n", "/proc/uptime": "86400.00 1.0\n",
                    "/proc/sys/kernel/osrelease": "6.1.0\n", "/proc/sys/kernel/hostname": "n1\n",
                    "/proc/stat": "btime %d\n" % (time.time() - 86400), "/proc/self/mountinfo": ""})

    def write(self, files):
        builders.write_node(self.root, files)

    def path(self, name):
        return self.root + name

    def save(self):
        """Write NVML's answers and the compiled configuration."""
        import json as plain
        healthy = [builders.F.to_plain(builders.healthy_gpu(n)) for n in range(8)]
        for gpu in healthy:
            gpu.pop("index")
        self.write({"/nvml.json": plain.dumps({
            "driver": "550.90.07", "cuda": "12.4", "nvml": "12.550",
            "gpus": [dict(base, **changes) for base, changes in zip(healthy, self.gpus) if changes is not None]})})
        import yaml
        self.write({"/etc/slurm/gpuhealth.yaml": yaml.safe_dump(self.config)})
        config_schema.refresh(self.root, "n1")

    def xid(self, number, gpu, text="GPU has fallen off the bus.", age=5.0):
        """A kernel line about a GPU, `age` seconds ago."""
        self.sequence += 1
        bus = builders.bdf(gpu)[:-2]
        line = builders.raw("NVRM: Xid (PCI:%s): %d, %s" % (bus, number, text), self.sequence,
                            int((86400 - age) * 1e6))
        with open(self.path("/var/log/kmsg"), "a", encoding="utf-8") as handle:
            handle.write(line)

    def lose(self, gpu):
        """NVML says that the GPU is lost."""
        self.gpus[gpu] = {"error": {"unknown": "error", "detail": "GPU_IS_LOST", "code": 15}}
        self.save()

    def env(self, job=None, **changes):
        env = {"SLURMD_NODENAME": "n1"}
        if job is not None:
            env.update(SLURM_JOB_ID=str(job), SLURM_JOB_UID="65534", SLURM_JOB_USER="nobody",
                       SLURM_JOB_PARTITION="main", SLURM_JOB_NODELIST="n1", SLURM_JOB_GPUS="2,3",
                       SLURM_JOB_RESTART_COUNT="0", SLURM_JOB_COMMENT="gpuhealth:ckpt=/ckpt/run7")
        env.update(changes)
        return env

    def hook(self, phase, job=None, **changes):
        """Run a hook as slurmd would: (exit code, stdout, seconds)."""
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-IS", "-c", SCRIPT % ROOT, phase, self.root], capture_output=True,
                              text=True, env=self.env(job, **changes), timeout=60)
        assert done.stderr == ""
        return done.returncode, done.stdout, time.monotonic() - started

    def start(self, phase, job=None, **changes):
        return subprocess.Popen([sys.executable, "-IS", "-c", SCRIPT % ROOT, phase, self.root],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env(job, **changes))

    def events(self, kind=None):
        found = list(event_files.read(self.path("/var/lib/gpuhealth/events")))
        return [event for event in found if kind is None or event["kind"] == kind]

    def incidents(self):
        with open(self.path("/var/lib/gpuhealth/incidents.json"), encoding="utf-8") as handle:
            return json.load(handle)["incidents"]

    def evidence(self):
        try:
            return sorted(os.listdir(self.path("/var/lib/gpuhealth/evidence")))
        except FileNotFoundError:
            return []

    def add_job(self, number, **changes):
        values = {"nodes": ["n1"], "gpus": {"n1": [2, 3]}, "uid": 65534, "user": "nobody",
                  "start": int(time.time()) - 600, "comment": "gpuhealth:ckpt=/ckpt/run7", "stdout": "", **changes}
        self.slurm.add_job(number, **values)


@pytest.fixture
def node(tmp_path):
    slurm = fakes.install(tmp_path / "root/usr/bin")
    slurm.add_node("n1")
    slurm.add_node("n2")
    slurm.add_node("n3")
    return Node(tmp_path / "root", slurm)
