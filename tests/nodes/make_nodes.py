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
import parts  # noqa: E402
import running  # noqa: E402

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


def files(gpus=8, log=(), nvml=None, config=CONFIG, mounts=MOUNTS, memory=None, more=None):
    """{path: text} of a node; what is not given is healthy. more: further files."""
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
    found.update(more or {})
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


def healthy_memory(**more):
    """node.json after a healthy round in the same boot."""
    return {"gpus": [F.to_plain(known) for known in builders.known_gpus()], "time": builders.NOW - 300,
            "boot_id": builders.BOOT_ID, "driver": builders.DRIVER, "persistence": 1,
            "counters": {**builders.healthy_baseline().counters, **more.pop("counters", {})}, **more}


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

PORTS = {"links": {"mlx5_0/1": {"speed": 400, "width": 4}}}
# Nodes whose fault is not the GPUs' driver's to tell (parts.py).
NODES.update({
    "gpu-all-ones": files(more={**parts.gpus(ones=(3,)), **parts.devices()}),
    "gpu-given-to-vfio": files(nvml={**healthy_nvml(), "gpus": healthy_nvml()["gpus"][:7]},
                               more=parts.gpus(drivers={7: "vfio-pci"})),
    "root-read-only": files(mounts=parts.MOUNTINFO.replace("/dev/sda1 rw", "/dev/sda1 ro"), log=(
        "EXT4-fs error (device sda1): ext4_journal_check_start:84: comm slurmd: Detected aborted journal",
        "EXT4-fs (sda1): Remounting filesystem read-only")),
    "ib-port-down": files(memory=healthy_memory(**PORTS), more={
        **parts.port(state="1: DOWN", physical="2: Polling", rate="10 Gb/sec (4X SDR)"), **parts.never_cabled()}),
    "ib-port-renamed": files(memory=healthy_memory(**PORTS), more={**parts.port("ibp59s0"), **parts.never_cabled()}),
    "memory-uncorrected": files(memory=healthy_memory(counters={"mc0": {"corrected": 0, "uncorrected": 0}}),
                                more=parts.memory(2, 1)),
    "nvme-dead": files(mounts=parts.MOUNTINFO, more=parts.nvme("dead"), log=(
        "nvme nvme0: I/O 17 QID 3 timeout, aborting", "nvme nvme0: Device not ready; aborting reset, CSTS=0x1",
        "nvme nvme0: Disabling device after reset failure: -19")),
    "device-files": files(more=parts.devices(missing=(3,))),
    "clock-free": files(more=parts.clock(False, 0.0, 16.0)),
    "mount-options": files(config=CONFIG + "    options: [rw, vers=4*, nconnect=16]\n"),
    # Everything that looks like a fault and is none.
    "node-noise": files(
        mounts=parts.MOUNTINFO + "41 22 7:0 / /mnt/image ro,nosuid - squashfs /dev/loop0 ro\n",
        memory=healthy_memory(counters={"mc0": {"corrected": 1, "uncorrected": 1}}, **PORTS),
        more={**parts.healthy(), **parts.memory(4, 1)}, log=(
            "nfs: server store not responding, still trying", "nfs: server store OK",
            "blk_update_request: I/O error, dev loop0, sector 0 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
            "mce: [Hardware Error]: Machine check events logged")),
})

NO_FABRIC = {"gpu%d" % number: {"fabric": {"unknown": "unsupported"}} for number in range(8)}
# What runs there, or does not (running.py).
NODES.update({
    "process-left-over": files(more={**running.process(4711, gpus=(3, 4)), **running.job(4800, 77)}),
    "process-stuck-in-driver": files(
        more=running.process(4711, 0, "nvidia-smi", "D", (2,), "/usr/bin/nvidia-smi",
                             stack="[<0>] os_acquire_mutex+0x31/0x50 [nvidia]\n[<0>] do_syscall_64+0x5b/0x80\n"),
        memory=healthy_memory(streaks={"stuck/4711/8280000/42": [2, builders.NOW - 600]},
                              streaks_time=builders.NOW - 300, streaks_boot=builders.BOOT_ID)),
    "service-failed": files(config=CONFIG + "services: [munge, sssd]\n", more=running.units(
        "munge", "sssd", munge=("failed", "failed", "exit-code", "enabled"))),
    "fabric-manager-stopped": files(nvml=healthy_nvml(**NO_FABRIC), more={
        **parts.gpus(), **running.switch(),
        **running.units(nvidia_fabricmanager=("inactive", "dead", "success", "disabled"))}),
    # Daemons, jobs, waits for a disk, zombies without a GPU; a Fabric Manager without switches, IMEX that nobody uses.
    "process-noise": files(more={
        **running.job(4800, 77), **running.process(4801, 1001, "nvtop", gpus=range(8), exe="/usr/bin/nvtop"),
        **running.process(900, 0, "nv-hostengine", gpus=range(8), exe="/usr/bin/nv-hostengine"),
        **running.process(901, 1002, "nvidia-cuda-mps", gpus=(5,), exe="/usr/bin/nvidia-cuda-mps-server"),
        **running.process(902, 1003, "rsync", "D", stack="[<0>] rpc_wait_bit_killable+0x11 [sunrpc]\n"),
        **running.process(903, 1003, "sh", "Z"), **running.process(904, 0, "kworker", "D"),
        **running.units(nvidia_fabricmanager=("failed", "failed", "exit-code", "enabled"),
                        nvidia_imex=("inactive", "dead", "success", "disabled"))}),
})


def main():
    """Write every node below this folder."""
    for name, content in NODES.items():
        builders.write_node(os.path.join(HERE, name), content)


if __name__ == "__main__":
    main()
