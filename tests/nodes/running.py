"""What runs on the fixture nodes: processes of /proc, and systemd's answer."""
import builders

_STAT = "%d (%s) %s %d 1 1 0 -1 4194304 0 0 0 0 10 5 0 0 20 0 1 0 %d 0 0\n"
_UNITS = ("nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced")


def process(pid, uid=1000, name="python3", state="S", gpus=(), exe="/home/alice/venv/bin/python3", parent=1, cgroup="/",
            stack=""):
    """A process that has the GPU device files `gpus` (minors) open. stack: of the kernel."""
    folder = "/proc/%d" % pid
    stat = _STAT % (pid, name, state, parent, 8280000)
    found = {
        folder + "/stat": stat, folder + "/cgroup": "0::%s\n" % cgroup,
        folder + "/status": "Name:\t%s\nUid:\t%d\t%d\t%d\t%d\n" % ((name,) + (uid,) * 4),
        "%s/task/%d/stat" % (folder, pid): stat, "%s/task/%d/stack" % (folder, pid): stack,
        "%s/task/%d/status" % (folder, pid): "voluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n",
        folder + "/exe": builders.Symlink(exe), folder + "/fd/0": builders.Symlink("/dev/null"),
        folder + "/fd/3": builders.Symlink("/dev/nvidiactl"),
    }
    found.update({"%s/fd/%d" % (folder, 4 + number): builders.Symlink("/dev/nvidia%d" % minor)
                  for number, minor in enumerate(gpus)})
    return found


def job(pid, number, uid=1001, gpus=(0,)):
    """A process of a running job, with the job's baseline."""
    scope = "/system.slice/n1_slurmstepd.scope/job_%d/step_0/user/task_0" % number
    return {**process(pid, uid, gpus=gpus, exe="/usr/bin/python3.11", cgroup=scope),
            "/var/lib/gpuhealth/jobs/%d.json" % number: '{"v": 1, "id": %d, "uid": %d, "gpus": [0]}\n' % (number, uid)}


def units(*names, **states):
    """What systemctl says of `names` and of NVIDIA's units: active, or (active, sub, result, unit file state)."""
    blocks = []
    for name in names + _UNITS:
        active, sub, result, enabled = states.get(name.replace("-", "_"), ("active", "running", "success", "enabled"))
        blocks.append("Id=%s.service\nLoadState=loaded\nActiveState=%s\nSubState=%s\nResult=%s\nUnitFileState=%s\n" % (
            name, active, sub, result, enabled))
    return {"/systemctl.txt": "\n".join(blocks)}


def switch():
    """One NVSwitch on the bus."""
    return {"/sys/bus/pci/devices/0000:07:00.0/uevent":
            "DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\nPCI_SLOT_NAME=0000:07:00.0\n"}
