"""What a reader of the NVIDIA driver's lines must accept, and what it must not be fooled by."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth.parse import kernel_kinds, xid


@pytest.mark.parametrize("text,code,address", [
    ("NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus.", 79, "0000:06:00.0"),
    ("NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000", 31, "0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:00:08.0): 13, pid=1234, name=python3, Graphics Exception", 13, "0000:00:08.0"),
    ("NVRM: Xid (PCI:0000:D8:00): 48, pid='<unknown>', name=<unknown>, DBE", 48, "0000:d8:00.0"),
    ("NVRM: Xid (PCI:00000000:D8:00): 48, DBE", 48, "0000:d8:00.0"),
    ("NVRM: Xid (PCI:18:00): 48, DBE", 48, "0000:18:00.0"),
    ("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained", 94, "0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 94, pid=7194, Contained", 94, "0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:01:00): 62", 62, "0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:01:00): 62,", 62, "0000:01:00.0"),
    ("NVRM: Xid (PCI:0000:01:00): 9999, from the future", 9999, "0000:01:00.0"),
    ("NVRM: Xid (): 62, no address", 62, ""),
])
def test_code_and_address(text, code, address):
    """Every form of address is understood, a bare code too, an unknown code is kept."""
    found = xid.parse(text)
    assert found[:3] == ("xid", code, address)


@pytest.mark.parametrize("text", [
    "NVRM: Xid PCI:0000:01:00: 43, pid=1, name=a, Ch 00000018",         # no parentheses
    "NVRM: Xid (PCI:0000:01:00", "NVRM: Xid (PCI:0000:01:00):", "NVRM: Xid (PCI:0000:01:00): ", "NVRM: Xid (",
    "NVRM: GPU0 GSP RPC buffer contains function 103", "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed",
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned",
    "NVRM: GPU 0000:91:00.0: GPU serial number is 0000000000000.",
    "Killed process 12 (NVRM: Xid (): 8) total-vm:1kB",                 # a process may have any name
    "x NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
    "audit: comm=\"NVRM: Xid (PCI:0000:01:00): 79, \"",
])
def test_what_is_no_xid(text):
    """A line that says Xid without being one, or is cut before its code, is not read as one."""
    found = kernel_kinds.parse(text)
    assert found is None or found[0] != "xid"


@pytest.mark.parametrize("rest,pid,process,message", [
    ("pid=2391, name=nvc:[driver], Timeout after 6s", 2391, "nvc:[driver]", "Timeout after 6s"),
    ("pid=1, name=a, b c, Ch 00000008", 1, "a, b c", "Ch 00000008"),
    ("pid=1, name=Ch x, Ch 00000008", 1, "Ch x", "Ch 00000008"),
    ("pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", None, "", "GPU has fallen off the bus."),
    ("pid=<unknown>, name=<unknown>, x", None, "", "x"),
    ("pid=7194, Contained: CE", 7194, "", "Contained: CE"),
    ("name=plasmashell, MMU Fault", None, "plasmashell", "MMU Fault"),
    ("pid=1, name=train", 1, "train", ""),
    ("pid=1, na", 1, "", "na"),
    ("Ch 00000020, engmask 00000101", None, "", "Ch 00000020, engmask 00000101"),
])
def test_process(rest, pid, process, message):
    """Names of processes hold what their users like; pid may be missing or unknown."""
    found = xid.parse("NVRM: Xid (PCI:0000:01:00): 119, " + rest)
    assert found[3:5] == (pid, process)
    assert found[5].get("message", "") == message


def test_recovery_action_by_number():
    """The 610 driver renamed the actions; the numbers stayed."""
    old = xid.parse("NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)")
    new = xid.parse("NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)")
    cut = xid.parse("NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x0 (")
    assert (old[5]["to"], new[5]["to"]) == (2, 2)
    assert "to" not in cut[5]


def test_caused_by_is_not_the_code():
    """A line may name the Xid that caused it."""
    found = xid.parse("NVRM: Xid (PCI:0000:01:00): 45, pid=1, name=a, Ch 00000008, caused by previous Xid 31")
    assert (found[1], found[5]["caused_by"]) == (45, 31)


def test_sxid():
    """Switch lines: severity word, link where there is one, detail lines marked."""
    main = xid.parse("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up")
    assert main[:3] == ("sxid", 20034, "0000:06:00.0")
    assert (main[5]["switch"], main[5]["fatal"], main[5]["link"]) == (1, True, 48)
    bare = xid.parse("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 26006, SOE HALTED")
    assert "fatal" not in bare[5] and "link" not in bare[5]
    assert xid.parse("nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Data {0x50610002}")[5]["detail"]


@pytest.mark.parametrize("text,address", [
    ("NVRM: GPU at 0000:01:00.0 has fallen off the bus.", "0000:01:00.0"),
    ("NVRM: GPU 18:00.0: GPU has fallen off the bus.", "0000:18:00.0"),
    ("NVRM: GPU 0000:29:00.0: GPU has fallen off the bus.", "0000:29:00.0"),
])
def test_off_the_bus_without_xid(text, address):
    """The driver can lose a GPU without a Xid line."""
    assert xid.parse(text)[:3] == ("gpu_fell_off", None, address)


def test_version_mismatch_in_one_record_or_five():
    """The block comes as one record with escaped newlines, or as lines."""
    found = xid.parse("NVRM: API mismatch: the client 'nvidia-smi' (pid 1234)\\x0aNVRM: has the version 595.45.04, but "
                      "this kernel module has\\x0aNVRM: the version 590.48.01.  Please make sure")
    assert found[0] == "nvml_version_mismatch" and found[3:5] == (1234, "nvidia-smi")
    assert found[5] == {"client_version": "595.45.04", "module_version": "590.48.01"}
    assert xid.parse("NVRM: the version 590.48.01.  Please make sure that this")[5]["detail"]


LINES = [
    "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 154, pid=1, GPU recovery action changed from 0x0 (x) to 0x2",
    "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
    "NVRM: API mismatch: the client 'nvidia-smi' (pid 1234) has the version 595.45.04, the version 590.48.01.",
    "NVRM: GPU 0000:09:00.0: RmInitAdapter failed! (0x22:0x56:894)",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024",
    "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010",
    "mlx5_core 0000:0c:00.0 rdma0: Link down", "INFO: task a:b:1 blocked for more than 120 seconds.",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_cut_anywhere_is_survived(line):
    """The ring can lose the end of any line."""
    for end in range(len(line)):
        kernel_kinds.parse(line[:end])


@given(st.text(max_size=120), st.sampled_from(LINES), st.integers(0, 100), st.integers(0, 30))
def test_any_damage_is_survived(noise, line, at, length):
    """No text in any place raises, whatever it replaces."""
    kernel_kinds.parse(noise)
    kernel_kinds.parse(line[:at] + noise + line[at + length:])
    kernel_kinds.parse("NVRM: Xid (" + noise)
    kernel_kinds.parse("NVRM: Xid (PCI:0000:01:00): 1, " + noise)
