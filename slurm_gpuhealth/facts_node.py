"""Facts about the node beside its GPUs: PCIe devices, network ports, memory controllers, disks, processes, services.

The same rules as in facts.py: a field that was looked for and not read holds an Unknown. Units as there.
"""
from __future__ import annotations

from collections import namedtuple

PciDevice = namedtuple(
    "PciDevice", "bdf vendor device klass driver parents width width_max speed speed_max alive virtual",
    defaults=("", "", "", "", (), None, None, None, None, None, False))
PciDevice.__doc__ = """One PCIe device as sysfs shows it: GPUs and NVSwitches, network cards, and the ports above them.

vendor, device, klass: hex without 0x ("10de", "2330", "0302"). driver: bound kernel driver, "" for none.
parents: addresses of the ports above, the nearest first, the root port last. width: lanes; speed: GT/s; *_max: what
device and port allow. alive: False where the device's configuration space reads as all ones (it is off the bus).
virtual: a virtual function (SR-IOV) of another device.
"""

Link = namedtuple("Link", "name kind state physical speed width device netdev counters",
                  defaults=("", "", None, None, None, None, "", "", None))
Link.__doc__ = """One network port.

name: "mlx5_0/1" for an InfiniBand or RoCE port, else the interface ("eth0", "bond0"). kind: "infiniband", "roce",
"ethernet". state: "up" or "down" (of InfiniBand: ACTIVE is up). physical: the kernel's word ("LinkUp", "Polling").
speed: Gb/s. width: lanes of InfiniBand. device: PCI address. netdev: interface of a RoCE port. counters: {name: number}
that only grow (link_downed, symbol_error, carrier_changes).
"""

MemoryController = namedtuple("MemoryController", "name corrected uncorrected dimms", defaults=("", None, None, ()))
MemoryController.__doc__ = """One EDAC memory controller ("mc0"). corrected, uncorrected: errors since boot. dimms:
tuple of (label, corrected, uncorrected) of those with errors."""

NvmeDisk = namedtuple("NvmeDisk", "name state model namespaces transport", defaults=("", None, "", (), ""))
NvmeDisk.__doc__ = """One NVMe controller ("nvme0"). state: the kernel's word ("live", "dead", "resetting").
namespaces: its disks ("nvme0n1"). transport: "pcie", "tcp", "rdma", ..."""

FileSystem = namedtuple("FileSystem", "device path fstype options disks", defaults=("", "", "", "", ()))
FileSystem.__doc__ = """What is mounted at `path` from a block device of this node, named as the kernel's messages do
("sda1", "dm-0"). disks: the devices that it lies on ("sda")."""

DeviceFile = namedtuple("DeviceFile", "path present mode uid gid minor mode_wanted",
                        defaults=("", None, None, None, None, None, None))
DeviceFile.__doc__ = """One device file that jobs open (/dev/nvidia0, /dev/nvidiactl, ...). present: there, and a
device. mode: permission bits. mode_wanted: those the driver was told to give, 0 where it leaves them to the site."""

Clock = namedtuple("Clock", "synchronised offset max_error", defaults=(None, None, None))
Clock.__doc__ = """The kernel's view of its own clock (adjtimex(2)). synchronised: somebody disciplines it. offset:
seconds that are still to be corrected. max_error: seconds."""

GpuProcess = namedtuple(
    "GpuProcess", "pid gpus name user uid state started job memory exe minors ticks driver switches parent killed",
    defaults=(None, (), "", "", None, "", None, None, None, "", (), None, None, None, None, False))
GpuProcess.__doc__ = """A process that holds a GPU, or a zombie, or one in D state that may. gpus: gres indices, where
they are known already. minors: of the GPU device files that it has open. name, user, exe: hostile text. uid: effective.
state: letter of proc(5), "D" where one of its threads is. started: seconds since the epoch; ticks: the same in the
kernel's clock ticks since boot. job: Slurm job id of its cgroup, 0 for one without a number, None for none. memory:
bytes on the GPU, or None. Of a process in D state: driver: its kernel stack lies in the NVIDIA driver (None: nobody may
look); switches: how often that thread was switched. parent: pid. killed: SIGKILL did not end it."""

Service = namedtuple("Service", "name load active sub result enabled", defaults=("", None, None, "", "", ""))
Service.__doc__ = """One systemd unit, in systemd's words (load: "loaded", "not-found"; active: "active", "failed")."""

PluginResult = namedtuple("PluginResult", "name outcome status seen subject code data seconds",
                          defaults=("", "", None, "", "", "", None, 0.0))
PluginResult.__doc__ = """What a site's own check said. outcome: "ok", "late", "failed" (could not be run, or not
understood). status: 0 ok, 1 warning, 2 critical, 3 unknown (Nagios). seen: its text (hostile). subject: "gpu3", a
mount's path or the name of a part, as it says, "" for the node. code: its own word for the fault, "". data: more of its
answer, or None."""

RECORDS = {"pci": PciDevice, "links": Link, "memory_controllers": MemoryController, "nvme": NvmeDisk,
           "filesystems": FileSystem, "devices": DeviceFile, "processes": GpuProcess, "services": Service,
           "plugins": PluginResult}
