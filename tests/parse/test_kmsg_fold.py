"""Folding loses no line that decides, and no name of a process makes an event: over all lines of the samples."""
import itertools
import os
import sys

import builders
import pytest

from slurm_gpuhealth.catalogue import judge
from slurm_gpuhealth.cli import log_cmd
from slurm_gpuhealth.parse import kernel_kinds, kmsg, log_lines

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "corpus"))
import faults
import fuzz

from slurm_gpuhealth.config_defaults import DEFAULTS

X = "NVRM: Xid (PCI:0000:18:00): "
LINES = [
    "XFS (sda1): log I/O error -5", "XFS (sda1): Filesystem has been shut down due to log error (0x2).",
    "XFS (sda1): page discard error -28 on inode 0x1", "XFS (sda1): Log I/O Error (0x2) detected at x.  Shutting down",
    "EXT4-fs (sda1): error count since last fsck: 4",
    "EXT4-fs (sda1): warning: mounting fs with errors, running e2fsck is recommended",
    "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #5: comm x: reading directory lblock 0",
    "EXT4-fs error (device sda1) in ext4_da_write: error -28",
    "nvme nvme0: resetting controller", "nvme nvme0: Disabling device after reset failure: -19",
    "nvme nvme0: I/O 12 QID 3 timeout, aborting", "block nvme0n1: no usable path - requeuing I/O",
    X + "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 5(0x1, 0x0, 0x0, 0x0, 0x0)",
    X + "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 5(0x10000, 0x0, 0x0, 0x0, 0x0)",
    X + "149, NETIR_LINK_EVT Fatal XC0 i1 Link 00 (0x004505c6 0x00000000 0x0)",
    X + "149, NETIR_LINK_EVT Fatal XC0 i0 Link 01 (0x004505c6 0x00000000 0x0)",
    X + "149, NETIR_BER_EVENT Fatal XC0 i0 Link 03 (0x00000226 0x00000000 0x00000000)",
    X + "144, SAW_MVB Fatal XC0 i0 Link 03 (0x00000021 0x00000001 0x00000000)",
    X + "144, SAW_MVB Fatal XC0 i0 Link 03 (0x00000021 0x00000002 0x00000000)",
    X + "145, RLW_CTRL Fatal XC0 i0 Link 03 (0x00000062 0x80000000 0x00000000)",
    X + "145, RLW_REMAP Fatal XC0 i0 Link 03 (0x00000082 0x00000040 0x00000000)",
    X + "145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x04084507 0x00000004)",
    X + "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    X + "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    X + "154, GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)",
    "nvidia-nvswitch3: SXid (PCI:0000:1f:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
    "nvidia-nvswitch3: SXid (PCI:0000:1f:00.0): 20034, Non-fatal, Link 31 LTSSM Fault Up",
    "nvidia-nvswitch3: SXid (PCI:0000:1f:00.0): 99999, Non-fatal, Link 31",
    "nvidia-nvswitch3: SXid (PCI:0000:1f:00.0): 99999, Fatal, Link 30",
    "nvidia 0000:18:00.0: AER: can't recover (no error_detected callback)",
    "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
    "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Receiver ID)",
    "pcieport 0000:5c:01.0: AER: Uncorrectable (Fatal) error message received from 0000:5d:00.0",
    "pcieport 0000:5c:01.0: AER: Uncorrectable (Fatal) error message received from 0000:9a:00.0",
    "{1}[Hardware Error]: event severity: recoverable", "{2}[Hardware Error]: event severity: fatal",
    "{3}[Hardware Error]: event severity: info", "mlx5_core 0000:3b:00.0: Detected insufficient power on the PCIe slot",
    "mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Bus stuck",
    "Kernel panic - not syncing: Fatal machine check", "Kernel panic - not syncing: sysrq triggered crash",
]


def _texts():
    """{(kind, code): distinct texts that say it alone}, of the samples and the lines above."""
    found: dict = {}
    for text in dict.fromkeys(LINES + [log_lines.split(line).text for line in fuzz.samples()]):
        parsed = kernel_kinds.parse(text)
        if parsed is not None and builders.events(text):
            found.setdefault(parsed[:2], []).append(text)
    return found


TEXTS = _texts()


def test_all_lines_are_read():
    """None of the lines that are folded here is passed over."""
    assert [line for line in LINES if not builders.events(line)] == []


def verdicts(*texts):
    return {log_cmd.judge(event) for event in builders.events(*texts)}


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_two_lines_say_what_each_says(kind):
    """What `log parse` says of two lines of one kind and number within a burst holds what it says of each alone."""
    alone = {text: verdicts(text) for text in TEXTS[kind]}
    for one, other in itertools.permutations(TEXTS[kind], 2):
        assert verdicts(one, other) >= alone[one] | alone[other], (one, other)


def drains(*texts):
    facts = builders.healthy_node(klog=builders.log(*texts))
    return "drain" in faults.planned(faults.found(facts, DEFAULTS), DEFAULTS)


PAIRS = [(one, other) for kind, texts in TEXTS.items() for one, other in itertools.permutations(texts, 2)
         if verdicts(one) != verdicts(other) and " to 0x0 (" not in one + other]


def test_a_harmless_line_hides_no_fault():
    """A node is drained for two lines of one kind exactly when it is for one of them (154 back to 0 alone takes back
    what was asked before)."""
    alone = {text: drains(text) for text in {text for pair in PAIRS for text in pair}}
    assert any(alone.values()) and not all(alone.values())
    wrong = [pair for pair in PAIRS if drains(*pair) != (alone[pair[0]] or alone[pair[1]])]
    assert wrong == []


@pytest.mark.parametrize("make", [
    lambda n: X + "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link %d(0x%x, 0x0, 0x0, 0x0, "
    "0x0, 0x0, 0x0)" % (n % 18, 1 if n != 150000 else 0x10000),
    lambda n: X + "144, SAW_MVB Fatal XC0 i%d Link %02d (0x00000021 0x%08x 0x%08x)" % (
        n != 150000, n % 18, 2 if n == 150000 else 1, n),
    lambda n: X + "74, NVLink: fatal error detected on link %d%s" % (
        n % 9999, "(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x%x)" % n if n != 150000 else ""),
    lambda n: "pcieport 0000:5c:01.0: AER: Corrected error message received from %04x:5d:00.0" % (n % 50000)])
def test_a_flood_stays_small_and_loses_no_fault(make):
    """200,000 lines that all differ are at most some hundred events, which count each line; the only one that decides
    is not lost among them, nor where there is no place for it any more."""
    bursts = kmsg.Bursts()
    for number in range(200000):
        text = make(number)
        bursts.add(kernel_kinds.parse(text), number * 0.001, text)
    events = bursts.events()
    assert len(events) <= 2 * kmsg.MAX_VARIANTS and bursts.dropped == 0
    assert sum(event.count for event in events) == 200000
    assert {log_cmd.judge(event)[0] for event in events} >= verdicts_of(make(150000))


def verdicts_of(text):
    return {severity for severity, _ in verdicts(text)}


def test_a_kind_that_was_not_there_has_a_place():
    """A flood up to the limit does not push out the first event of another kind; more of its own is counted."""
    bursts = kmsg.Bursts(limit=3)
    for number in range(5):
        bursts.add(kernel_kinds.parse("XFS (sda%d): log I/O error -5" % number), 0.0)
    bursts.add(kernel_kinds.parse(X + "79, GPU has fallen off the bus."), 1.0)
    assert ([event.kind for event in bursts.events()], bursts.dropped) == (["fs_error"] * 3 + ["xid"], 2)


def test_the_reason_is_of_the_same_gpu_and_moment():
    """Without MSI a GPU works; where it then fails to start, that is kept as what the driver said before."""
    said = "NVRM: GPU 0000:18:00.0: Failed to enable MSI-X."
    failed = "NVRM: GPU 0000:%s:00.0: RmInitAdapter failed! (0x22:0x38:859)"
    assert builders.events(said) == () and judge.of_kind("rm_init_failed", {"reason": "no MSI-X"})[0] == "fatal"
    assert [event.data.get("reason") for event in builders.events(said, failed % "18", failed % "2a")] == [
        "no MSI-X", None]
    assert builders.events(said, failed % "18", step=kmsg.BURST_GAP + 1)[0].data.get("reason") is None


# How the kernel goes on behind the name of a process at the beginning of a line (Linux 3.10 to 6.x: arch/x86/entry,
# arch/*/mm and traps, kernel/signal.c, fs/locks.c, mm/mremap.c, mm/page_alloc.c, kernel/trace/bpf_trace.c).
AFTER_NAME = (
    "[4411] vsyscall attempted with vsyscall=none ip:ffffffffff600000 cs:33 sp:7ffd1 ax:ffffffffff600000 si:0 di:0",
    "[4411] misaligned vsyscall (exploit attempt or buggy program) -- look up the vsyscall kernel parameter ip:1",
    "[4411] vsyscall fault (exploit attempt?) ip:ffffffffff600001 cs:33 sp:7ffd ax:0 si:0 di:0",
    "[4411] is installing a program with bpf_probe_write_user helper that may corrupt user memory!",
    " (4411): attempted to duplicate a private mapping with mremap.  This is not supported.",
    "(4411): Attempt to set a LOCK_MAND lock via flock(2). This support has been removed and the request ignored.",
    ": potentially unexpected fatal signal 11.", "[4411]: undefined instruction: pc=00000000b7f0c123",
    " uses obsolete (PF_INET,SOCK_PACKET)", "[4411]: unhandled exception: DABT (lower EL), ESR 0x92000005 in a.out",
    "[4411] bad frame in rt_sigreturn frame:00007 ip:7f sp:7f orax:0 in a.out", "(4411): Unaligned access at 0x10",
    "[4411]: segfault at 0 ip 0000000000400f00 sp 00007ffc error 4 in a.out[400000+1000]",
    "[4411] trap divide error ip:400f00 sp:7ffc error:0 in a.out[400000+1000]",
    "[4411] general protection fault ip:400f00 sp:7ffc error:0 in a.out[400000+1000]",
    ": page allocation failure: order:0, mode:0x400dc0, nodemask=(null)",
    "/4411: potentially unexpected fatal signal 7.",
    " (4411) used greatest stack depth: 11000 bytes left", "[4411]: fatal error, read only")


def test_no_name_of_a_process_is_an_event():
    """15 bytes are what a user may choose: the first so many of any line of the samples, followed by what the kernel
    prints behind the name of a process, say nothing."""
    starts = {line[:size] for texts in TEXTS.values() for line in texts for size in range(1, 16)}
    starts |= {"Lustre: LBUG", "EDAC MC0: UE -", "kernel BUG at", "NMI: IOCK error", "mmfs: panic", "GPFS: expelled",
               "ceph: mds0 hung", "EXT4-fs error (", "Oops: 0002 [#1]", "Oops: ", "em1: Link is Up", "a: Link is Down",
               "NVRM: Xid (1):9", "LNet:UNREACHABL", "nvme nvme0: rst", "XFS (a): error", "md/raid1:a: not"}
    wrong = [start + rest for start in sorted(starts) for rest in AFTER_NAME if kernel_kinds.parse(start + rest)]
    assert wrong == []


def test_bytes_that_are_no_letters_count_as_one():
    """The kernel prints such a byte as \\xNN: a name of 15 bytes may take 60 characters."""
    name = "Lustre: \\xff\\xfe\\xfd\\xfc LBUG"
    assert kernel_kinds.parse(name + "[4411] vsyscall attempted with vsyscall=none ip:1") is None
    full = "EXT4-fs error (device sda1): f:1: inode #1: comm \\xff\\xff\\xff\\xff\\xff error -28: reading directory"
    assert "full" not in kernel_kinds.parse(full)[5]


def test_the_last_words_of_a_line_count():
    """Name, word, link and registers of a line are those next to each other at its end; a name holds 15 bytes."""
    for name, rest, wanted in (
            ("x, Fatal XC0 i0", "RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x04084507 0x00000004)", (False, 17, 2)),
            ("Nonfatal XC1 i0", "RLW_CTRL Fatal XC0 i0 Link 3 (0x62 0x1 0x2)", (True, 3, 3)),
            ("a, Link 5 (0x1)", "RLW_CTRL Fatal XC0 i0 Link 3 (0x62 0x1 0x2)", (True, 3, 3)),
            ("a, Link 5 (0x1)", "RLW_", (None, None, 0)), ("x, Fatal XC0 i0", "RLW_SRC", (None, None, 0))):
        data = kernel_kinds.parse(X + "145, pid=9, name=%s, %s" % (name, rest))[5]
        assert (data.get("fatal"), data.get("link"), len(data.get("registers", ()))) == wanted
    text = "154, pid=9, name=a, from 0x1 to , GPU recovery action changed from 0x0 (x) to 0x1 (y)"
    asked = kernel_kinds.parse(X + text)
    assert (asked[5]["from"], asked[5]["to"]) == (0, 1)
