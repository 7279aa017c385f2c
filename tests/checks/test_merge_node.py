"""One fault, one finding: what the bus, the mounts and the disks say of the same thing."""
import builders
import pytest

from slurm_gpuhealth import checks, model
from slurm_gpuhealth.checks._shared import finding

GPU3 = model.Subject("gpu", 3, builders.uuid(3), builders.bdf(3))
DATA = model.Subject("mount", name="/data")


def merged(*findings):
    return [(one.code, [part["code"] for part in (one.data or {}).get("merged", ())])
            for one in checks.merge(findings)]


@pytest.mark.parametrize("codes, expected", [
    (("GH-PCI-GONE", "GH-XID79"), ("GH-XID79", ["GH-PCI-GONE"])),
    (("GH-PCI-GONE", "GH-GPU-LOST"), ("GH-GPU-LOST", ["GH-PCI-GONE"])),
    (("GH-PCI-DRV", "GH-GPU-LOST"), ("GH-GPU-LOST", ["GH-PCI-DRV"]))])
def test_the_bus_is_one_face_of_a_lost_gpu(codes, expected):
    """Kernel log, NVML and sysfs: one GPU, one finding."""
    assert merged(*(finding(code, GPU3, "x") for code in codes)) == [expected]


def test_another_gpu_is_another_fault():
    """Gone from the bus is not explained by another GPU's Xid."""
    other = model.Subject("gpu", 4, builders.uuid(4), builders.bdf(4))
    assert len(merged(finding("GH-PCI-GONE", GPU3), finding("GH-XID79", other))) == 2


def test_the_count_is_explained_by_the_gpu_that_is_gone():
    """7/8 says no more than that gpu3 is off the bus."""
    count = finding("GH-GPU-COUNT", model.ALL_GPUS, "7", "8", count=7, expected_count=8)
    assert merged(finding("GH-PCI-GONE", GPU3, "not on the bus"), count) == [("GH-PCI-GONE", ["GH-GPU-COUNT"])]


def test_the_other_driver_is_said_in_the_reason():
    """Why a GPU is not listed belongs into the one line that an admin reads."""
    (one,) = checks.merge([finding("GH-GPU-LOST", GPU3, "not listed"),
                           finding("GH-PCI-DRV", GPU3, "bound to vfio-pci")])
    assert one.seen == "not listed; bound to vfio-pci"


def test_one_mount_one_finding():
    """Read-only in the log and at the look are one fault; another mount is another."""
    assert merged(finding("GH-FS-RO", DATA), finding("GH-MNT-RO", DATA)) == [("GH-MNT-RO", ["GH-FS-RO"])]
    assert len(merged(finding("GH-FS-RO", model.Subject("mount", name="/")), finding("GH-MNT-RO", DATA))) == 2
    assert len(merged(finding("GH-MNT-FULL", DATA), finding("GH-MNT-OPT", DATA))) == 2


def test_free_space_of_a_mount_that_is_gone():
    """That it is not known is no second finding."""
    unknown = finding("GH-MNT-FULL", DATA, "free space not known", severity=model.UNREAD)
    assert merged(finding("GH-MNT-GONE", DATA), unknown) == [("GH-MNT-GONE", ["GH-MNT-FULL"])]
