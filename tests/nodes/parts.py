"""Pieces of sysfs and of the kernel's other files for the fixture nodes, laid out as a kernel lays them out."""
import json

import builders

BUS = "/sys/bus/pci/devices/"
MOUNTINFO = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
36 22 0:32 / /data rw,noatime shared:2 - nfs4 store:/data rw,vers=4.2
40 22 259:2 / /scratch rw,relatime shared:3 - xfs /dev/nvme0n1p1 rw
"""
_CONFIG = bytes.fromhex("de1030230604100000a20203000000000c0000000000000000000000000000000000000000000000000000de10c116"
                        "00000000600000000000000000010000")


def gpus(drivers=None, ones=(), missing=()):
    """Eight GPUs, each below a port of its own. drivers: {index: driver}; ones: those that read as all ones."""
    found = {}
    for number in range(8):
        if number in missing:
            continue
        bus = builders.BUSES[number]
        port = "0000:%02x:01.0" % (int(bus, 16) - 1)
        top = "/sys/devices/pci0000:%s/%s" % (port[5:7], port)
        driver = (drivers or {}).get(number, "nvidia")
        found.update({
            top + "/uevent": "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=8086:352A\nPCI_SLOT_NAME=%s\n" % port,
            "%s/0000:%s:00.0/uevent" % (top, bus): (
                "DRIVER=%s\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SLOT_NAME=0000:%s:00.0\n" % (driver, bus)),
            "%s/0000:%s:00.0/config" % (top, bus): b"\xff" * 64 if number in ones else _CONFIG,
            BUS + port: builders.Symlink("../../..%s" % top[4:]),
            BUS + "0000:%s:00.0" % bus: builders.Symlink("../../..%s/0000:%s:00.0" % (top[4:], bus)),
        })
    return found


def port(device="mlx5_0", state="4: ACTIVE", physical="5: LinkUp", rate="400 Gb/sec (4X NDR)"):
    """One InfiniBand port."""
    folder = "/sys/class/infiniband/%s/ports/1/" % device
    return {folder + "state": state + "\n", folder + "phys_state": physical + "\n", folder + "rate": rate + "\n",
            folder + "link_layer": "InfiniBand\n", folder + "counters/link_downed": "0\n"}


def never_cabled(device="mlx5_9"):
    """A port without a cable."""
    return port(device, "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)")


def memory(corrected=0, uncorrected=0):
    """One memory controller with one module."""
    folder = "/sys/devices/system/edac/mc/mc0/"
    return {folder + "ce_count": "%d\n" % corrected, folder + "ue_count": "%d\n" % uncorrected,
            folder + "dimm0/dimm_label": "CPU0_DIMM_A1\n", folder + "dimm0/dimm_ce_count": "%d\n" % corrected,
            folder + "dimm0/dimm_ue_count": "%d\n" % uncorrected}


def nvme(state="live"):
    """One disk."""
    folder = "/sys/class/nvme/nvme0/"
    return {folder + "state": state + "\n", folder + "model": "Disk 3.84TB\n", folder + "transport": "pcie\n",
            "/sys/class/nvme-subsystem/nvme-subsys0/nvme0n1/size": "1\n",
            "/sys/class/nvme-subsystem/nvme-subsys0/nvme0": builders.Symlink("../../nvme/nvme0")}


def devices(missing=()):
    """Device files (plain files, which count below another root); the driver leaves their permissions to the site."""
    names = ["nvidiactl", "nvidia-uvm"] + ["nvidia%d" % number for number in range(8) if number not in missing]
    return {"/proc/driver/nvidia/params": "DeviceFileMode: 438\nModifyDeviceFiles: 0\n",
            **{"/dev/" + name: "" for name in names}}


def clock(synchronised=True, offset=0.0001, max_error=0.02):
    """What adjtimex(2) would say."""
    return {"/clock.json": json.dumps({"synchronised": synchronised, "offset": offset, "max_error": max_error}) + "\n"}


def healthy():
    """All of it, healthy, with what looks like a fault and is none: a port that was never cabled."""
    return {**gpus(), **port(), **never_cabled(), **memory(3), **nvme(), **devices(), **clock()}
