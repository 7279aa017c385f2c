"""What is read from sysfs and the kernel, from trees laid out as a kernel lays them out."""
import json
import os

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.config_defaults import DEFAULTS, overlay
from slurm_gpuhealth.facts_node import Clock, DeviceFile, FileSystem, Link, MemoryController, NvmeDisk
from slurm_gpuhealth.probes import sysfs, sysfs_net

OK = F.SourceStatus("sysfs", "ok")
GPU = "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0/"
PORT = "/sys/devices/pci0000:17/0000:17:01.0/"
ONES = "\udcff" * 64


def look(root, phase="manual", links=(), known=()):
    """Facts fields of the node below `root`. links: configured names; known: addresses of GPUs."""
    cfg = overlay(DEFAULTS, {"links": [{"name": name, "speed": 0, "width": 0} for name in links]})
    spec = sysfs.spec(cfg, {"root": str(root), "phase": phase, "known": [{"bdf": one} for one in known]})
    records = []
    sysfs.read(spec, lambda kind, plain: records.append((kind, json.loads(json.dumps(plain)))))
    return sysfs.assemble(records, spec, OK)


def write(root, files, links=()):
    """Files {path: text} (surrogates become bytes) and symbolic links {path: target} below `root`."""
    for path, text in files.items():
        full = str(root) + path
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", errors="surrogateescape") as handle:
            handle.write(text)
    for path, target in dict(links).items():
        os.makedirs(os.path.dirname(str(root) + path), exist_ok=True)
        os.symlink(target, str(root) + path)


def pci_device(folder, klass, ident, driver="", config="\x86\x80", **more):
    """Files of one device's folder."""
    uevent = "%sPCI_CLASS=%s\nPCI_ID=%s\nPCI_SLOT_NAME=x\n" % ("DRIVER=%s\n" % driver if driver else "", klass, ident)
    return {folder + "uevent": uevent, folder + "config": config * 32,
            **{folder + name: str(value) + "\n" for name, value in more.items()}}


@pytest.fixture
def bus(tmp_path):
    """One GPU below one port."""
    link = {"current_link_width": 16, "max_link_width": 16, "current_link_speed": "32.0 GT/s PCIe",
            "max_link_speed": "32.0 GT/s PCIe"}
    write(tmp_path, {**pci_device(PORT, "60400", "8086:352A", "pcieport", **link),
                     **pci_device(GPU, "30200", "10DE:2330", "nvidia", **link)},
          {"/sys/bus/pci/devices/0000:17:01.0": "../../../devices/pci0000:17/0000:17:01.0",
           "/sys/bus/pci/devices/0000:18:00.0": "../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0"})
    return tmp_path


def test_a_gpu_and_the_port_above_it(bus):
    """Identity, driver, link, and the way up from the real path."""
    port, gpu = look(bus)["pci"]
    assert (port.bdf, port.klass, port.parents, port.alive) == ("0000:17:01.0", "0604", (), True)
    assert gpu == ("0000:18:00.0", "10de", "2330", "0302", "nvidia", ("0000:17:01.0",), 16, 16, 32.0, 32.0, True, False)


def test_prolog_reads_the_gpus_and_their_parents_only(bus):
    """A job's start waits for no link and no port; whether the GPU answers is read."""
    (gpu,) = look(bus, "prolog")["pci"]
    assert (gpu.parents, gpu.alive, gpu.width) == (("0000:17:01.0",), True, None)


@pytest.mark.parametrize("known, found", [
    (["0000:18:00.0"], ["0000:18:00.0"]), (["0000:18:00.0", "0000:99:00.0"], ["0000:18:00.0"]),
    (["0000:99:00.0"], ["0000:18:00.0", "0000:85:00.0"]), ([], ["0000:18:00.0", "0000:85:00.0"])])
def test_prolog_looks_at_the_known_gpus(bus, known, found):
    """Of 300 devices those that matter to a job's start; all, where none is known or they have other addresses now."""
    write(bus, pci_device("/sys/bus/pci/devices/0000:85:00.0/", "68000", "10DE:22A3", "nvidia-nvswitch"))
    assert [device.bdf for device in look(bus, "prolog", known=known)["pci"]] == found
    assert len(look(bus, known=known)["pci"]) == 3


def test_all_ones_is_off_the_bus(bus):
    """`lspci` shows (rev ff) then."""
    write(bus, {GPU + "config": ONES})
    assert look(bus)["pci"][1].alive is False


@pytest.mark.parametrize("config, alive", [("\udcff" * 4 + "\0" * 60, True), ("", None), ("\udcff" * 64, False)])
def test_the_whole_header_counts(bus, config, alive):
    """A virtual function's vendor reads as all ones while it is well; an empty answer is none."""
    write(bus, {GPU + "config": config})
    assert look(bus)["pci"][1].alive is alive


def test_unknown_link_values(bus):
    """255 lanes and "Unknown" are what the kernel prints for a device that does not answer."""
    write(bus, {GPU + "current_link_width": "255\n", GPU + "current_link_speed": "Unknown\n"})
    gpu = look(bus)["pci"][1]
    assert (gpu.width, gpu.speed) == (None, None)


def test_what_is_not_of_interest_is_left_out(bus):
    """A disk controller, the GPU's sound function, another vendor's display."""
    for number, (klass, ident) in enumerate((("10802", "144D:A80A"), ("40300", "10DE:22BA"), ("30000", "1A03:2000"))):
        write(bus, pci_device("/sys/bus/pci/devices/0000:0%d:00.0/" % number, klass, ident))
    write(bus, pci_device("/sys/bus/pci/devices/0000:85:00.0/", "68000", "10DE:22A3", "nvidia-nvswitch"))
    assert [device.klass for device in look(bus)["pci"]] == ["0604", "0302", "0680"]


def test_virtual_function(bus):
    """Marked, so that nobody takes it for a GPU that should have a driver."""
    write(bus, {}, {GPU + "physfn": "../0000:17:00.0"})
    assert look(bus)["pci"][1].virtual is True


def test_no_sysfs(tmp_path):
    """Absent is not the same as empty."""
    found = look(tmp_path)
    assert (found["pci"].reason, found["nvme"].reason, found["memory_controllers"].reason) == (F.ABSENT,) * 3


def ib_port(device="mlx5_0", port=1, state="4: ACTIVE", physical="5: LinkUp", rate="400 Gb/sec (4X NDR)",
            layer="InfiniBand", **counters):
    folder = "/sys/class/infiniband/%s/ports/%d/" % (device, port)
    return {folder + "state": state + "\n", folder + "phys_state": physical + "\n", folder + "rate": rate + "\n",
            folder + "link_layer": layer + "\n",
            **{folder + "counters/" + name: "%d\n" % value for name, value in counters.items()}}


def test_infiniband_port(tmp_path):
    """State, speed, lanes, card, interface, counters that only grow (not traffic)."""
    write(tmp_path, {**ib_port(link_downed=2, symbol_error=0, port_rcv_data=12345),
                     "/sys/devices/x/0000:3b:00.0/net/ib0/dev_port": "0\n",
                     "/sys/devices/x/0000:3b:00.0/net/ib0/dev_id": "0x0\n"},
          {"/sys/class/infiniband/mlx5_0/device": "../../../devices/x/0000:3b:00.0"})
    assert look(tmp_path)["links"] == (Link("mlx5_0/1", "infiniband", "up", "LinkUp", 400, 4, "0000:3b:00.0", "ib0",
                                            {"link_downed": 2, "symbol_error": 0}),)
    assert look(tmp_path, "prolog")["links"][0].counters is None


@pytest.mark.parametrize("state, physical, expected", [
    ("1: DOWN", "2: Polling", ("down", "Polling")), ("1: DOWN", "3: Disabled", ("down", "Disabled")),
    ("2: INIT", "5: LinkUp", ("down", "INIT")), ("3: ARMED", "5: LinkUp", ("down", "ARMED")),
    ("4: ACTIVE", "5: LinkUp", ("up", "LinkUp")), ("", "", (None, None))])
def test_port_states(tmp_path, state, physical, expected):
    """Only ACTIVE carries traffic; INIT lacks a subnet manager; an empty answer is unknown."""
    write(tmp_path, ib_port(state=state, physical=physical))
    link = look(tmp_path)["links"][0]
    assert (link.state, link.physical or None) == expected


def test_a_port_that_trains_is_looked_at_again(tmp_path, monkeypatch):
    """A link that comes up within the moment is up."""
    write(tmp_path, ib_port(state="1: DOWN", physical="6: LinkErrorRecovery"))
    monkeypatch.setattr(sysfs_net.time, "sleep", lambda seconds: write(tmp_path, ib_port()))
    assert look(tmp_path)["links"][0].state == "up"


@pytest.mark.parametrize("rate, expected", [
    ("200 Gb/sec (4X HDR)", (200, 4)), ("100 Gb/sec (2X HDR)", (100, 2)), ("2.5 Gb/sec (1X SDR)", (2.5, 1)),
    ("800 Gb/sec (8X NDR)", (800, 8)), ("100 Gb/sec", (100, None)), ("", (None, None)), ("x", (None, None))])
def test_rates(tmp_path, rate, expected):
    """Speed in Gb/s and lanes."""
    write(tmp_path, ib_port(rate=rate))
    link = look(tmp_path)["links"][0]
    assert (link.speed, link.width) == expected


def test_roce_port_whose_interface_is_switched_off(tmp_path):
    """`ip link set down` is somebody's will, not a broken cable."""
    write(tmp_path, {**ib_port(state="1: DOWN", physical="3: Disabled", layer="Ethernet"),
                     "/sys/class/infiniband/mlx5_0/device/net/eth4/dev_port": "0\n",
                     "/sys/class/net/eth4/flags": "0x1002\n"})
    link = look(tmp_path)["links"][0]
    assert (link.kind, link.physical, link.netdev) == ("roce", "Disabled", "eth4")


def test_virtual_functions_and_software_devices_only_where_configured(tmp_path):
    """They go into containers and come back: nobody's fault. In a virtual machine the function has no parent to see."""
    write(tmp_path, {**ib_port(), **ib_port("mlx5_8")},
          {"/sys/class/infiniband/mlx5_8/device/physfn": "../0000:3b:00.0",
           "/sys/class/infiniband/rxe0": "../../devices/virtual/infiniband/rxe0"})
    write(tmp_path, {path.replace("/class/", "/devices/virtual/"): text for path, text in ib_port("rxe0").items()})
    assert [link.name for link in look(tmp_path)["links"]] == ["mlx5_0/1"]
    assert [link.name for link in look(tmp_path, links=["mlx5_8/1"])["links"]] == ["mlx5_0/1", "mlx5_8/1"]
    assert [link.name for link in look(tmp_path, links=["rxe*"])["links"]] == ["mlx5_0/1", "rxe0/1"]


def interface(name, operstate="up", speed="100000", flags="0x1003", **more):
    folder = "/sys/class/net/%s/" % name
    return {folder + "operstate": operstate + "\n", folder + "speed": speed + "\n", folder + "flags": flags + "\n",
            folder + "carrier_changes": "2\n", **{folder + key: value + "\n" for key, value in more.items()}}


def test_ethernet_only_where_configured(tmp_path):
    """A star means hardware and bonds, not docker0; an exact name means any."""
    write(tmp_path, {**interface("eth0", device="x"), **interface("docker0"),
                     **interface("bond0", **{"bonding/mode": "x"}),
                     **interface("lo", "unknown", carrier="1", speed="")})
    assert look(tmp_path)["links"] == ()
    assert [link.name for link in look(tmp_path, links=["*"])["links"]] == ["bond0", "eth0"]
    assert [link.name for link in look(tmp_path, links=["docker0", "lo"])["links"]] == ["docker0", "lo"]


@pytest.mark.parametrize("changes, expected", [
    ({}, ("up", "up", 100)), ({"speed": "25000"}, ("up", "up", 25)), ({"speed": "2500"}, ("up", "up", 2.5)),
    ({"operstate": "down", "speed": "-1"}, ("down", "down", None)),
    ({"operstate": "lowerlayerdown", "speed": ""}, ("down", "lowerlayerdown", None)),
    ({"operstate": "down", "flags": "0x1002"}, ("down", "Disabled", None)),
    ({"operstate": "unknown", "carrier": "1"}, ("up", "up", 100)),
    ({"operstate": "unknown", "carrier": "0"}, ("down", "down", None))])
def test_interface_states(tmp_path, changes, expected):
    """The kernel's words for an interface; drivers that never say are asked for the carrier."""
    write(tmp_path, interface("eth0", **changes))
    (link,) = look(tmp_path, links=["eth0"])["links"]
    assert (link.state, link.physical) == expected[:2]
    assert link.state == "down" or link.speed == expected[2]


def test_memory_controllers(tmp_path):
    """Counts of the controller, and the labels of those modules that have errors."""
    folder = "/sys/devices/system/edac/mc/mc0/"
    write(tmp_path, {folder + "ce_count": "3\n", folder + "ue_count": "1\n", folder + "dimm0/dimm_label": "CPU0_A1\n",
                     folder + "dimm0/dimm_ce_count": "3\n", folder + "dimm0/dimm_ue_count": "1\n",
                     folder + "rank1/dimm_label": "CPU0_A2\n", folder + "rank1/dimm_ce_count": "0\n",
                     "/sys/devices/system/edac/mc/power/control": "auto\n"})
    assert look(tmp_path)["memory_controllers"] == (MemoryController("mc0", 3, 1, (("CPU0_A1", 3, 1),)),)


def test_edac_without_a_controller(tmp_path):
    """The core is loaded and no driver: nothing is counted, which is not the same as zero errors."""
    os.makedirs(str(tmp_path) + "/sys/devices/system/edac/mc")
    assert look(tmp_path)["memory_controllers"].reason == F.ABSENT


def test_nvme_with_multipath(tmp_path):
    """The disk's number need not be its controller's: the subsystem tells."""
    write(tmp_path, {"/sys/class/nvme/nvme1/state": "live\n", "/sys/class/nvme/nvme1/model": "Disk   \n",
                     "/sys/class/nvme/nvme1/transport": "pcie\n", "/sys/class/nvme/nvme1/nvme1c1n1/size": "1\n",
                     "/sys/class/nvme-subsystem/nvme-subsys0/nvme0n1/size": "1\n"},
          {"/sys/class/nvme-subsystem/nvme-subsys0/nvme1": "../../nvme/nvme1"})
    assert look(tmp_path)["nvme"] == (NvmeDisk("nvme1", "live", "Disk", ("nvme0n1",), "pcie"),)


def test_file_systems_and_the_disks_below(tmp_path):
    """A partition, a logical volume of two disks, btrfs (which has no block device number), and no network mount."""
    write(tmp_path, {"/proc/self/mountinfo": (
        "22 1 8:1 / / rw,relatime - ext4 /dev/root rw,errors=remount-ro\n"
        "23 22 253:0 / /scratch rw - xfs /dev/mapper/vg-scratch rw\n"
        "24 22 0:40 / /home rw - btrfs /dev/nvme0n1p2 rw\n"
        "25 22 0:32 / /data rw - nfs4 store:/data rw\n"
        "26 22 0:5 / /proc rw - proc proc rw\n"),
        "/sys/class/block/dm-0/slaves/sdb1/x": "", "/sys/class/block/dm-0/slaves/sdc/x": ""},
        {"/sys/dev/block/8:1": "../../devices/pci0000:00/ata1/block/sda/sda1",
         "/sys/dev/block/253:0": "../../devices/virtual/block/dm-0",
         "/sys/class/block/sda1": "../../devices/pci0000:00/ata1/block/sda/sda1",
         "/sys/class/block/sdb1": "../../devices/pci0000:00/ata1/block/sdb/sdb1",
         "/sys/class/block/nvme0n1p2": "../../devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p2"})
    assert look(tmp_path)["filesystems"] == (
        FileSystem("sda1", "/", "ext4", "rw,relatime,errors=remount-ro", ("sda",)),
        FileSystem("dm-0", "/scratch", "xfs", "rw", ("sdb", "sdb1", "sdc")),
        FileSystem("nvme0n1p2", "/home", "btrfs", "rw", ("nvme0n1",)))


def test_bind_mounts_by_the_thousand(tmp_path):
    """Of one device the first mount points are kept: those of the node, not those of its containers."""
    lines = ["%d 1 8:1 / /%d rw - ext4 /dev/sda1 rw\n" % (number, number) for number in range(2000)]
    write(tmp_path, {"/proc/self/mountinfo": "".join(["1 0 8:1 / / rw - ext4 /dev/sda1 rw\n", *lines])})
    found = look(tmp_path)["filesystems"]
    assert found[0].path == "/" and len(found) == 16


def test_device_files(tmp_path):
    """In order of their minors, with what the driver was told to give; nvidia-caps and the like are no GPUs."""
    write(tmp_path, {"/dev/nvidiactl": "", "/dev/nvidia10": "", "/dev/nvidia2": "", "/dev/nvidia-modeset": "",
                     "/proc/driver/nvidia/params": "ResmanDebugLevel: 4294967295\nDeviceFileUID: 0\n"
                                                   "DeviceFileMode: 432\nModifyDeviceFiles: 1\n"})
    os.chmod(str(tmp_path) + "/dev/nvidia2", 0o640)
    found = look(tmp_path)["devices"]
    assert [one.path for one in found] == ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia2", "/dev/nvidia10"]
    assert found[1] == DeviceFile("/dev/nvidia-uvm", False)
    assert (found[2].present, found[2].mode, found[2].minor, found[2].mode_wanted) == (True, 0o640, 2, 0o660)


def test_device_files_left_to_the_site(tmp_path):
    """NVreg_ModifyDeviceFiles=0: the driver's mode means nothing."""
    write(tmp_path, {"/dev/nvidiactl": "", "/proc/driver/nvidia/params": "DeviceFileMode: 438\nModifyDeviceFiles: 0\n"})
    assert look(tmp_path)["devices"][0].mode_wanted == 0


def test_clock_of_this_machine():
    """The kernel answers everybody; the error bound is what it says of itself."""
    clock = look("")["clock"]
    if not F.is_known(clock):
        pytest.skip("adjtimex: %s" % clock.detail)
    assert isinstance(clock, Clock) and clock.synchronised in (True, False)
    assert 0 <= clock.max_error <= 3600 and abs(clock.offset) < 3600


def test_what_was_read_before_it_hung_is_kept(bus):
    """The part it stood at is named; the parts after it are unknown, with why."""
    spec = sysfs.spec(DEFAULTS, {"root": str(bus), "phase": "manual", "known": []})
    records = []
    sysfs.read(spec, lambda kind, plain: records.append((kind, plain)))
    stop = next(number for number, record in enumerate(records) if record == ("at", {"part": "links"}))
    found = sysfs.assemble(records[:stop + 1], spec, F.SourceStatus("sysfs", "late", detail="no answer in 3.0 s"))
    assert found["links"] == F.Unknown(F.TIMEOUT, "no answer in 3.0 s (at links)")
    assert (len(found["pci"]), found["nvme"].reason) == (2, F.ABSENT)


def test_a_part_that_cannot_be_read_leaves_the_others(bus, monkeypatch):
    """One refusal is that part's own."""
    from slurm_gpuhealth.probes import sysfs_node

    def refused(spec):
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr(sysfs_node, "nvme", refused)
    found = look(bus)
    assert (found["nvme"].reason, len(found["pci"])) == (F.DENIED, 2)


def test_real_root():
    """This machine's own sysfs is read without a surprise."""
    found = look("")
    assert set(found) == set(sysfs.FIELDS)
    assert all(F.is_known(value) or value.reason in (F.ABSENT, F.DENIED, F.ERROR) for value in found.values())
    assert builders.node_parts().keys() == found.keys()
