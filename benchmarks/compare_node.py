"""The node that compare.py puts into each situation: where everything is installed, and the file systems it sees."""
from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.append(os.path.join(ROOT, "tests"))

GPUCM = "0.0.2"
NODE = "n1"
BDFS = ["0000:%s:00.0" % bus for bus in ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")]
KERNEL_LOG, DMESG = "/run/compare/kmsg", "/run/compare/dmesg"


class Place:
    """The folder in which all is built, and the node that both sides see."""

    def __init__(self, work):
        self.work = work
        self.lib, self.bin = os.path.join(work, "lib"), os.path.join(work, "bin")
        self.state = os.path.join(work, "state")
        self.frozen = os.path.join(work, "frozen")
        self.slurm = None

    def build(self):
        """Library, both installations (once a folder) and the stand-ins."""
        os.makedirs(self.bin, exist_ok=True)
        for name, what in (("gpucm", ["gpucm==" + GPUCM]), ("ours", ["nvidia-ml-py", "PyYAML"])):
            if not os.path.exists(os.path.join(self.work, name, "done")):
                call([sys.executable, "-m", "venv", os.path.join(self.work, name)])
                call([os.path.join(self.work, name, "bin", "pip"), "install", "-q"] + what)
                open(os.path.join(self.work, name, "done"), "w").close()
        source = os.path.join(ROOT, "containers", "slurm-testbed", "nvml")
        call(["make", "-s", "-C", source, "OUT=" + self.lib, "CC=cc", "CFLAGS=-O2"])
        os.makedirs(os.path.join(self.lib, "old"), exist_ok=True)
        link = os.path.join(self.lib, "old", "libnvidia-ml.so.1")
        if not os.path.lexists(link):
            os.symlink(os.path.join(self.lib, "libnvidia-ml-old.so.1"), link)
        self._install_ours()
        for name, text in (("dmesg", "exec cat %s" % DMESG), ("sudo", 'exec "$@"')):
            self._program(name, "#!/bin/sh\n%s\n" % text)
        with open(os.path.join(source, "nvidia-smi")) as handle:
            body = handle.read().split("\n", 1)[1]
        self._program("nvidia-smi", "#!%s/ours/bin/python\n%s" % (self.work, body))

    def _program(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as handle:
            handle.write(text)
        os.chmod(path, 0o755)

    def _install_ours(self):
        """A copy of the package with its bytecode, and the hooks as `gpuhealth install` renders them."""
        target = os.path.join(self.work, "package")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(os.path.join(ROOT, "slurm_gpuhealth"), os.path.join(target, "slurm_gpuhealth"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        python = os.path.join(self.work, "ours", "bin", "python")
        call([python, "-m", "compileall", "-q", target])
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = subprocess.check_output([python, "-c", code], text=True)
        for name in ("healthcheck", "prolog", "epilog"):
            with open(os.path.join(ROOT, "hooks", name)) as handle:
                text = handle.read().replace("@PYTHON@", python).replace("@PATHS@", repr([target, site.strip()]))
            self._program(name, text)

    def versions(self):
        """What is compared with: this package, and the nvidia-ml-py that it uses here."""
        code = ("import importlib.metadata as m, slurm_gpuhealth as s; "
                "print(s.__version__, 'with nvidia-ml-py', m.version('nvidia-ml-py'))")
        return subprocess.check_output([os.path.join(self.work, "ours", "bin", "python"), "-c", code], text=True,
                                       env={"PYTHONPATH": os.path.join(self.work, "package")}).strip()

    def enclose(self):
        """Give this process file systems of its own (it runs in a new mount namespace already)."""
        image = os.path.join(self.work, "image")
        os.makedirs(self.frozen, exist_ok=True)
        if not os.path.exists(image):
            with open(image, "wb") as handle:
                handle.truncate(32 << 20)
            call(["mkfs.ext4", "-q", image])
        call(["mount", "-o", "loop", image, self.frozen])
        private = os.path.join(self.work, "private")
        os.makedirs(private, exist_ok=True)
        call(["mount", "-t", "tmpfs", "compare", private])
        for number, path in enumerate(("/etc", "/var/lib", "/run", "/dev")):
            layers = [os.path.join(private, "%s%d" % (kind, number)) for kind in ("upper", "work")]
            for layer in layers:
                os.mkdir(layer)
            options = "lowerdir=%s,upperdir=%s,workdir=%s" % (path, *layers)
            call(["mount", "-t", "overlay", "overlay", "-o", options, path])
        self.pci, self.buses = os.path.join(private, "pci"), os.path.join(private, "buses")
        for folder, over in ((self.pci, "/sys/bus/pci/devices"), (self.buses, "/sys/class/pci_bus")):
            os.mkdir(folder)
            call(["mount", "--bind", folder, over])
        # gpucm's shell lines need bash (process substitution), as on distributions where sh is bash.
        call(["mount", "--bind", os.path.realpath(shutil.which("bash") or "/bin/bash"), os.path.realpath("/bin/sh")])
        devices = {"nvidia%d" % number: (195, number) for number in range(8)}
        devices.update({"nvidiactl": (195, 255), "nvidia-uvm": (510, 0)})
        for name, (major, minor) in devices.items():
            os.mknod("/dev/" + name, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
            os.chmod("/dev/" + name, 0o666)
        os.makedirs("/run/compare", exist_ok=True)
        self._configure()

    def _configure(self):
        os.makedirs("/etc/slurm", exist_ok=True)
        bin_dir = os.path.join(self.work, "slurm")
        # This machine's clock says nothing of the GPUs.
        write("/etc/slurm/gpuhealth.yaml", "mode: drain\nexpected_gpus: 8\nkernel_log: %s\n"
              "checks:\n  disabled: [clock]\nslurm:\n  bin_dir: %s\n" % (KERNEL_LOG, bin_dir))
        write("/etc/slurm/slurm.conf", "ClusterName=compare\nNodeName=%s Gres=gpu:8\n" % NODE)
        write("/etc/manifest.json", json.dumps({"pci": {bdf: {
            "dev": "gpu%d" % number, "zone": "gpu", "slot": "GPU%d" % number, "link_width": 16,
            # An idle link runs at a lower generation: all three are right.
            "link_speed": ["2.5 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe"]} for number, bdf in enumerate(BDFS)}}))

    def reset(self):
        """A node that nobody has looked at yet, with all in order."""
        from fakes import install
        for path in ("/var/lib/gpuhealth", "/run/gpuhealth"):
            shutil.rmtree(path, ignore_errors=True)
        if os.path.exists(self.state + ".hangs"):
            os.unlink(self.state + ".hangs")        # how often the simulation has hung
        self.slurm = install(os.path.join(self.work, "slurm"))
        try:
            os.unlink(os.path.join(self.slurm.bin_dir, "calls.jsonl"))
        except FileNotFoundError:
            pass
        self.slurm.add_node(NODE)
        self.numbers = [0, 0]
        for path in (KERNEL_LOG, DMESG):
            write(path, "")
        self.log(["Linux version 6.8.0-45-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13) #45-Ubuntu SMP",
                  "nvidia-nvlink: Nvlink Core is being initialized, major device number 510",
                  "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024"],
                 uptime=12.0)
        self.nvml([])
        self.devices({})

    def nvml(self, lines):
        """Make these lines the simulation's state."""
        write(self.state + ".new", "".join(line.replace("@frozen@", self.frozen) + "\n" for line in lines))
        os.rename(self.state + ".new", self.state)

    def devices(self, changes):
        """The GPUs in sysfs, gpu3 with `changes`."""
        for folder in (self.pci, self.buses):
            for name in os.listdir(folder):
                shutil.rmtree(os.path.join(folder, name))
        for bdf in BDFS:
            mine = changes if bdf == BDFS[3] else {}
            if mine.get("gone"):
                continue
            files = {"uevent": "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=%s\n" % bdf,
                     "config": bytes.fromhex("de103023") + bytes(60),
                     "current_link_width": "16", "max_link_width": "16",
                     "current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", **mine}
            folder = os.path.join(self.pci, bdf)
            os.makedirs(folder)
            for name, value in files.items():
                write(os.path.join(folder, name), value)
            bus = os.path.join(self.buses, bdf[:7])
            os.makedirs(os.path.join(bus, "device"))
            os.symlink(os.path.join("/sys/bus/pci/devices", bdf), os.path.join(bus, "device", bdf))

    def log(self, lines, repeat=1, uptime=None):
        """Append kernel-log lines: as records of /dev/kmsg for ours, as dmesg prints them for gpucm."""
        now = time.clock_gettime(time.CLOCK_MONOTONIC) - 1 if uptime is None else uptime
        with open(KERNEL_LOG, "a") as records, open(DMESG, "a") as text:
            for number in range(repeat):
                for line in lines:
                    line, facility = (line, 0) if isinstance(line, str) else line
                    self.numbers[0] += 1
                    stamp = now + 1e-6 * number
                    records.write("%d,%d,%d,-;%s\n" % (8 * facility + 4, self.numbers[0], stamp * 1e6, line))
                    text.write("[%12.6f] %s\n" % (stamp, line))


def write(path, text):
    with open(path, "wb" if isinstance(text, bytes) else "w") as handle:
        handle.write(text)


def call(argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(argv), (done.stderr or done.stdout).strip()))
