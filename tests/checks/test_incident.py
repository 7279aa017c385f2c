"""One fault of one GPU is one finding, whatever the order of its lines (checks/_incident.py, checks.merge)."""
import itertools
import random

import builders
import pytest

from slurm_gpuhealth import checks, reason, render
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.config_defaults import DEFAULTS

DBE = "48, An uncorrectable double bit error"
XID = "NVRM: Xid (PCI:0000:5d:00): "
SXID = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up"
ASKS = XID + "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"


def merged(*lines, **more):
    facts = builders.healthy_node(klog=builders.log(*lines, **more))
    return reason.worst_first(checks.merge(checks.run_checks(facts, DEFAULTS)))


def brief(findings):
    return [(finding.code, render.subject(finding.subject)) for finding in findings if finding.severity == "fatal"]


@pytest.mark.parametrize("lead,lines", [
    ("GH-XID79", [XID + "79, GPU has fallen off the bus.", ASKS, XID + "119, pid=1, name=a, Timeout after 6s",
                  XID + "45, pid=1, name=a, Ch 1"]),
    ("GH-XID48", [XID + DBE, XID + "171, DRAM", XID + "63, Row Remapper: New row",
                  XID + "154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"]),
    ("GH-XID62", [XID + "31, pid=1, name=a, MMU Fault", XID + "62, 2023b230 20238a3a", XID + "45, pid=1, name=a, Ch"]),
    ("GH-XID95", [XID + DBE, XID + "95, pid=1, Uncontained: FBHUB", XID + "45, Ch 1"]),
])
def test_the_cause_leads_in_any_order(lead, lines):
    """All orders of the lines give the same one finding."""
    for order in itertools.permutations(lines):
        assert brief(merged(*order)) == [(lead, "gpu3")], order


def test_two_gpus_at_one_moment_are_two():
    """A moment does not make one fault of two GPUs'."""
    off = "79, GPU has fallen off the bus."
    found = merged(XID + off, "NVRM: Xid (PCI:0000:18:00): " + off)
    assert sorted(brief(found)) == [("GH-XID79", "gpu0"), ("GH-XID79", "gpu3")]


def test_what_came_along_is_in_the_data():
    """The finding tells which lines it stands for, and the strongest of what they ask for."""
    found = merged(XID + DBE, XID + "63, Row Remapper: New row", ASKS)
    assert [part["xid"] for part in found[0].data["also"]] == [154, 63]
    assert found[0].data["do"] == "reboot"


def test_xid_74_belongs_to_the_switch():
    """SXid and 74 at one moment: the switch is the cause, the GPU is named in what was merged."""
    found = merged(XID + "74, NVLink: fatal error detected on link 1", SXID)
    assert brief(found) == [("GH-SXID", "nvswitch1")]
    part = found[0].data["merged"][0]
    assert (part["code"], part["subject"]["index"]) == ("GH-XID74", 3)


def test_xid_74_of_another_hour_is_its_own():
    """Ten minutes apart they are two faults."""
    found = merged(SXID, XID + "74, NVLink: fatal error detected on link 1", step=600)
    assert sorted(brief(found)) == [("GH-SXID", "nvswitch1"), ("GH-XID74", "gpu3")]


def test_a_harmless_sxid_does_not_take_74():
    """Receive errors of the switch are no cause."""
    found = merged(XID + "74, NVLink: fatal error detected on link 1",
                   "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20009, Non-fatal, Link 04 RX Short Error Rate")
    assert brief(found) == [("GH-XID74", "gpu3")]


def test_the_reason_of_an_incident_is_short():
    """Code and subject stand in the 20 characters that sinfo -R shows."""
    text = reason.write(merged(SXID, XID + "74, NVLink: fatal error detected on link 1"), "3f2a91")
    assert text.startswith("GH-SXID nvswitch1 20034 ") and len("GH-SXID nvswitch1") <= reason.SHOWN


KINDS = ["xid", "sxid", "gpu_fell_off", "rm_init_failed", "gpu_probe_failed", "gpu_needs_reset", "uvm_fatal",
         "nvml_version_mismatch", "driver_load", "nvswitch_error", "pci_power_refused", "aer_corrected",
         "aer_uncorrected", "pcie_dpc", "pcie_link_down", "iommu_fault", "something_new"]
CODES = [None, 5, 13, 31, 45, 48, 63, 74, 79, 94, 119, 145, 149, 154, 171, 20009, 20034]
PLACES = ["", "0000:5d:00.0", "0000:18:00.0", "0000:5c:01.0", "0000:5d:00.1", "0000:3b:00.0", "ffff:ff:1f.7"]


def random_event(pick, number):
    """An event of any kind, with or without what such an event may have."""
    data = {name: value for name, value in (
        ("to", pick.choice([0, 1, 2, 4, 9])), ("from", pick.choice([0, 1, "id=0010", "0000:5d:00.0"])),
        ("fatal", pick.choice([True, False])),
        ("registers", [pick.randrange(2 ** 32) for _ in range(pick.randrange(7))]),
        ("unit", pick.choice(["NETIR_LINK_EVT", "RLW_REMAP", "x"])), ("link", pick.choice([-1, 0, 48])),
        ("class", pick.choice(["Fatal", "Non-Fatal"])), ("caused_by", pick.choice([79, 48, 999])),
        ("switch", pick.randrange(4)), ("minor", pick.randrange(9)), ("earlier_boot", True)) if pick.random() < 0.2}
    time = None if pick.random() < 0.1 else builders.NOW - pick.randrange(4000)
    return F.KernelEvent(pick.choice(KINDS), pick.choice(CODES), pick.choice(PLACES), time, "line %d" % number,
                         pick.randrange(1, 9), time, pick.choice([None, 1]), "", number, data)


def test_any_events_are_judged():
    """Whatever the log holds, and whatever could not be read of the node: findings, never a crash, and each GPU's code
    once."""
    pick = random.Random(7)
    for _ in range(400):
        events = tuple(random_event(pick, number) for number in range(pick.randrange(12)))
        facts = builders.healthy_node()._replace(klog=F.KernelLog(events, None, 0, 10))
        if pick.random() < 0.3:
            facts = facts._replace(pci=F.UNASKED, gpus=(), known_gpus=(), driver=F.UNASKED, baseline=None)
        for name in ("xid", "sxid", "aer"):
            module = checks._module(checks.CHECKS[name])
            found = module.check(facts, checks.limits_of(module, name, DEFAULTS))
            assert all(finding.severity in ("fatal", "warning", "note") for finding in found)
        merged_once = checks.merge(checks.run_checks(facts, DEFAULTS))
        keys = [(finding.code, finding.subject) for finding in merged_once]
        assert len(keys) == len(set(keys))
