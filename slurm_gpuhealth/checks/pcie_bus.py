"""Each GPU is on the PCIe bus and in the hands of the NVIDIA driver, as sysfs shows it without asking that driver.

- A GPU whose configuration space reads as all ones, or that was there in healthy rounds and is not in sysfs any more:
  `GH-PCI-GONE`. It is what Xid 79 looks like from the bus, and is merged with it.
- NVML counts fewer GPUs than expected, and a GPU in sysfs has no driver or another one (vfio-pci, nouveau):
  `GH-PCI-DRV` says which one, and why. A GPU that is given to a virtual machine on purpose is in nobody's count, and
  no fault.
- An NVSwitch that reads as all ones: `GH-PCI-DEAD`; of a network card a warning, as it may be one that nobody uses, and
  `links` tells of a port that is missed. Prolog and epilog look at the GPUs only.

Virtual functions are left out: their first bytes are all ones by the standard. Where sysfs shows none of the node's
GPUs at all (a container, some virtual machines) it says nothing about them.
Unknown: the PCI devices could not be read.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import part, unread
from slurm_gpuhealth.checks._shared import finding, subject_at
from slurm_gpuhealth.model import WARNING

_NVIDIA = "10de"


def check(facts, limits):
    """Findings about the PCI devices."""
    if not F.is_known(facts.pci):
        return unread("pci", facts.pci)
    gpus = {device.bdf: device for device in facts.pci
            if device.vendor == _NVIDIA and device.klass[:2] == "03" and not device.virtual}
    found = [finding("GH-PCI-GONE", subject_at(facts, bdf), "configuration space reads as all ones", bdf=bdf)
             for bdf, device in gpus.items() if device.alive is False]
    found += _missing(facts, gpus)
    found += _without_driver(facts, gpus)
    for device in facts.pci:
        if device.alive is False and device.bdf not in gpus and not device.virtual and device.klass[:4] != "0604":
            found.append(finding("GH-PCI-DEAD", part(device.bdf), "%s reads as all ones" % _kind(device),
                                 severity=None if device.vendor == _NVIDIA else WARNING,
                                 vendor=device.vendor, device=device.device, driver=device.driver))
    return found


def _kind(device):
    return "NVSwitch" if device.vendor == _NVIDIA else "network card" if device.klass[:2] == "02" else "device"


def _missing(facts, gpus):
    """GPUs of healthy rounds that sysfs no longer has."""
    known = {gpu.bdf for gpu in facts.known_gpus if gpu.bdf}
    listed = {gpu.bdf for gpu in facts.gpus if F.is_known(gpu.bdf) and gpu.error is None}
    if not (known | listed) & set(gpus):
        return []
    # A GPU that moved to another slot, or a node whose buses are numbered anew, is there: its board answers.
    answering = {gpu.uuid for gpu in facts.gpus if F.is_known(gpu.uuid) and gpu.error is None}
    moved = {gpu.bdf for gpu in facts.known_gpus if gpu.uuid and gpu.uuid in answering} - listed
    # What NVML lists counts only on a node that has learnt nothing yet: prolog reads the learnt addresses alone.
    gone = sorted((known or listed) - set(gpus) - moved)
    return [finding("GH-PCI-GONE", subject_at(facts, bdf), "not on the bus", bdf=bdf) for bdf in gone]


def _without_driver(facts, gpus):
    expected, count = facts.expected.gpus, facts.gpu_count
    if not F.is_known(expected) or not F.is_known(count) or count >= expected:
        return []
    drivers = {device.driver for device in gpus.values()}
    found = []
    for bdf, device in gpus.items():
        if device.driver != "nvidia" and device.alive is not False and (device.driver or "nvidia" in drivers):
            seen = "bound to %s" % (device.driver or "no driver")
            found.append(finding("GH-PCI-DRV", subject_at(facts, bdf), seen, bdf=bdf, driver=device.driver))
    return found
