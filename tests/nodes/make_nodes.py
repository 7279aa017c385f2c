"""Write the fixture nodes anew: `python tests/nodes/make_nodes.py`. Each is a healthy node with one defect.

A node is a small root: proc/, etc/slurm/, nvml.json (what NVML would say), kmsg (records of the kernel log), and
var/lib/gpuhealth/node.json (what the node remembers). `gpuhealth --root DIR check` runs on it as on a real node.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import builders  # noqa: E402

from slurm_gpuhealth import facts as F  # noqa: E402

LOST = {"unknown": "error", "detail": "GPU is lost", "code": 15}
MOUNTS = """\
22 1 0:21 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
36 22 0:32 / /data rw,noatime shared:2 - nfs4 store:/data rw,vers=4.2
"""
CONFIG = """\
mode: observe
kernel_log: /kmsg
mounts:
  - path: /data
    type: [nfs4]
    writable: true
"""
FELL_OFF = (
    "pcieport 0000:5c:01.0: AER: Uncorrected (Fatal) error received: 0000:5d:00.0",
    "NVRM: GPU at PCI:0000:5d:00: GPU-00000000-0000-0000-0000-000000000003",
    "NVRM: Xid (PCI:0000:5d:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.",
    "NVRM: Xid (PCI:0000:5d:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
)


def files(gpus=8, log=(), nvml=None, config=CONFIG, mounts=MOUNTS, memory=None):
    """{path: text} of a node; what is not given is healthy."""
    lines = ["systemd[1]: Started Session 1 of User root."] + list(log)
    found = {
        "/proc/stat": "cpu 0 0 0 0\nbtime %d\n" % builders.BOOT, "/proc/uptime": "86400.00 80000.00\n",
        "/proc/sys/kernel/random/boot_id": "01234567-89ab-cdef-0123-456789abcdef\n",
        "/proc/sys/kernel/osrelease": "6.1.0-28-amd64\n", "/proc/sys/kernel/hostname": "n1\n",
        "/proc/self/mountinfo": mounts, "/data/.keep": "",
        "/etc/slurm/gpuhealth.yaml": config,
        "/etc/slurm/slurm.conf": "NodeName=n[1-3] Gres=gpu:h100:%d\n" % gpus if gpus else "NodeName=n1\n",
        "/etc/slurm/gres.conf": "Name=gpu Type=h100 File=/dev/nvidia[0-7]\n" if gpus else "",
        "/kmsg": "".join(builders.raw(text, 900 + n, 86000000000 + n * 1000000) for n, text in enumerate(lines)),
    }
    if gpus:
        found["/nvml.json"] = json.dumps(nvml or healthy_nvml(), indent=1) + "\n"
        found["/var/lib/gpuhealth/node.json"] = json.dumps(memory or healthy_memory(), indent=1) + "\n"
    return found


def healthy_nvml(**changes):
    """nvml.json of eight GPUs; changes: {"3": {field: value}} by GPU."""
    unasked = F.to_plain(F.UNASKED)
    defaults = {name: value for name, value in F.to_plain(builders.healthy_gpu(0)).items() if value != unasked}
    own = ("index", "nvml_index", "minor", "uuid", "serial", "bdf")
    for name in own:
        del defaults[name]
    gpus = []
    for number in range(8):
        plain = F.to_plain(builders.healthy_gpu(number))
        gpus.append({**{name: plain[name] for name in own if name not in ("index", "nvml_index")},
                     **changes.get("gpu%d" % number, {})})
    return {"driver": builders.DRIVER, "cuda": "12.4", "nvml": "12." + builders.DRIVER, "defaults": defaults,
            "gpus": gpus}


def healthy_memory():
    """node.json after a healthy round in the same boot."""
    return {"gpus": [F.to_plain(known) for known in builders.known_gpus()], "time": builders.NOW - 300,
            "boot_id": builders.BOOT_ID, "driver": builders.DRIVER, "persistence": 1,
            "counters": builders.healthy_baseline().counters}


NODES = {
    "healthy-8gpu": files(),
    "gpu-off-bus": files(log=FELL_OFF, nvml=healthy_nvml(gpu3={
        "error": LOST, **dict.fromkeys(("uuid", "minor", "serial"), LOST)})),
    "mount-gone": files(mounts=MOUNTS.splitlines(keepends=True)[0]),
    "ecc-new": files(nvml=healthy_nvml(gpu2={"ecc_uncorrected_volatile": 2, "ecc_uncorrected_aggregate": 2,
                                             "remap_pending": 1})),
    "cpu-only": files(gpus=0),
    "nvml-mismatch": files(nvml={
        "driver": builders.DRIVER, "nvml": {"unknown": "error", "detail": "driver and library of different versions",
                                            "code": 18}},
        log=("NVRM: API mismatch: the client 'nvidia-smi' (pid 1234)",
             "NVRM: has the version 595.45.04, but this kernel module has",
             "NVRM: the version 550.90.07.  Please make sure that this")),
}


def main():
    """Write every node below this folder."""
    for name, content in NODES.items():
        builders.write_node(os.path.join(HERE, name), content)


if __name__ == "__main__":
    main()
