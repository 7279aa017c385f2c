"""PCI devices as sysfs shows them: GPUs, NVSwitches, network cards and the ports above them.

Layout: Documentation/ABI/testing/sysfs-bus-pci and drivers/pci/pci-sysfs.c of the kernel, looked up 2026-11-30.
"""
from __future__ import annotations

import os

from slurm_gpuhealth import paths
from slurm_gpuhealth.facts_node import PciDevice
from slurm_gpuhealth.parse import bdf

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "10de"
_GPU, _NETWORK, _BRIDGE = "03", "02", "06"
_HEADER = 64        # bytes of the configuration space's header: what may be read without special rights


def read(spec):
    """List of PciDevice, by address. spec: root; thorough: also width and speed, and the ports above (more files a
    device); else only the GPUs at the addresses `gpus` are looked at, where the node has learnt any: a large node has
    300 devices. Raises OSError where there is no sysfs.
    """
    root, links, found = spec["root"], spec["thorough"], {}
    names = os.listdir(paths.under(root, DEVICES))
    if spec["gpus"] and not links:
        names = [name for name in names if name in spec["gpus"]] or names
    for name in sorted(names):
        about = _about(root, name)
        if about is None or not _of_interest(*about[:3]):
            continue
        device = _device(root, name, about, links)
        found[device.bdf] = device
    if links:
        for address in sorted({parent for device in found.values() for parent in device.parents} - set(found)):
            about = _about(root, address)
            if about is not None:
                found[address] = _device(root, address, about, links)
    return [found[address] for address in sorted(found)]


def _about(root, name):
    """(vendor, device, class, driver) from the device's uevent: one file instead of four. None: it went away."""
    text = text_of(root, "%s/%s/uevent" % (DEVICES, name))
    if text is None:
        return None
    values = dict(line.partition("=")[::2] for line in text.split("\n"))
    vendor, _, device = values.get("PCI_ID", "").lower().partition(":")
    # PCI_CLASS is printed without leading zeros: 30200 is class 03, subclass 02, interface 00.
    return vendor, device, values.get("PCI_CLASS", "").lower().rjust(6, "0")[:4], values.get("DRIVER", "")


def _of_interest(vendor, device, klass):
    """GPUs and NVSwitches (bridges of class 0680), and network controllers of any vendor."""
    return klass[:2] == _NETWORK or (vendor == NVIDIA and (klass[:2] == _GPU or klass == _BRIDGE + "80"))


def _device(root, name, about, links):
    vendor, device, klass, driver = about
    folder = "%s/%s" % (DEVICES, name)
    width = width_max = speed = speed_max = None
    if links:
        width, width_max = (_number(text_of(root, folder + "/" + item))
                            for item in ("current_link_width", "max_link_width"))
        speed, speed_max = (_transfers(text_of(root, folder + "/" + item))
                            for item in ("current_link_speed", "max_link_speed"))
    return PciDevice(bdf.normalise(name) or name, vendor, device, klass, driver, _parents(root, folder, name),
                     width, width_max, speed, speed_max, _alive(root, folder), _is_virtual(root, folder))


def _parents(root, folder, name):
    """Addresses above, nearest first: the folders that the link in /sys/bus/pci/devices leads through."""
    try:
        steps = os.readlink(paths.under(root, folder)).split("/")
    except OSError:
        return ()
    above = [bdf.normalise(step) for step in steps if step != name and step.count(":") == 2]
    return tuple(address for address in reversed(above) if address)


def _alive(root, folder):
    """False where the configuration space reads as all ones, None where it cannot be read.

    The whole header counts: of a virtual function the first four bytes are all ones by the standard (SR-IOV 3.4.1.1).
    """
    try:
        with open(paths.under(root, folder + "/config"), "rb", buffering=0) as handle:
            header = handle.read(_HEADER)
    except OSError:
        return None
    return header.strip(b"\xff") != b"" if len(header) >= 4 else None


def _is_virtual(root, folder):
    return os.path.lexists(paths.under(root, folder + "/physfn"))


def text_of(root, path):
    """Text of a small sysfs file without blanks around it, None where it is not there or cannot be read."""
    try:
        with open(paths.under(root, path), "rb", buffering=0) as handle:
            return handle.read(4096).decode("utf-8", "replace").strip()
    except OSError:
        return None


def _number(text):
    """Lanes; 0 and 255 stand for "no link" and "not known" (drivers/pci, PCI_LNK_WIDTH_UNKNOWN)."""
    return int(text) if text and text.isdigit() and 0 < int(text) < 255 else None


def _transfers(text):
    """GT/s of "16.0 GT/s PCIe" (older kernels: "8 GT/s"); None for "Unknown" and the like."""
    word = (text or "").split(" ")[0]
    try:
        return float(word)
    except ValueError:
        return None
