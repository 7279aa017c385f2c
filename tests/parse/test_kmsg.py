"""Raw records, bursts, the quick search for lines of interest, and the other forms of log."""
import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_gpuhealth.parse import kernel_kinds, kmsg, log_lines

XID = "NVRM: Xid (PCI:0000:06:00): 79, GPU has fallen off the bus."


def test_raw_record():
    """Priority is facility * 8 + level; text begins behind the first semicolon, further header fields are skipped."""
    assert kmsg.raw_record("12,4242,99887766,-,caller=T1;a;b") == kmsg.Line("a;b", "raw", 1, 4242, 99887766)
    assert kmsg.raw_record("4,1227,437812449,c;x").facility == 0


@pytest.mark.parametrize("line", ["", ";", " SUBSYSTEM=pci", "4,1,2", "a,1,2,-;x", "4,-1,2,-;x", "4;x",
"\u0664,1,2,-;x"])
def test_what_is_no_raw_record(line):
    """Property lines and other forms are none."""
    assert kmsg.raw_record(line) is None


def fold(*lines):
    bursts = kmsg.Bursts()
    for when, text in lines:
        parsed = kernel_kinds.parse(text)
        if parsed:
            bursts.add(parsed, when, text)
    return bursts.events()


def test_a_burst_is_one_event():
    """Same GPU and code with no more than three minutes between lines: one event with a count."""
    events = fold(*[(float(n * 179), XID) for n in range(5)])
    assert [(event.count, event.time, event.last) for event in events] == [(5, 0.0, 716.0)]


def test_silence_ends_a_burst():
    """After more than three minutes it is another event."""
    assert [event.count for event in fold((0.0, XID), (180.0, XID), (360.1, XID))] == [2, 1]


def test_gpus_and_codes_are_apart():
    """Another GPU or another code is another event."""
    events = fold((0.0, XID), (1.0, XID.replace("06", "07")), (2.0, XID.replace("79,", "48,")), (3.0, XID))
    assert [event.count for event in events] == [2, 1, 1]


def test_each_change_of_the_recovery_action_is_an_event():
    """154 to another action is news."""
    line = "NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from 0x%d (a) to 0x%d (b)"
    events = fold((0.0, line % (0, 4)), (1.0, line % (4, 1)), (2.0, line % (0, 4)))
    assert [event.data["to"] for event in events] == [4, 1]


def test_detail_lines_do_not_count():
    """A switch error of three lines is one event with count 1."""
    start = "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, "
    events = fold((0.0, start + "Fatal, Link 48 LTSSM Fault Up"), (0.1, start + "Severity 1 Engine instance 48"),
                  (0.2, start + "Data {0x1}"))
    assert [(event.kind, event.count, event.data["link"]) for event in events] == [("sxid", 1, 48)]


def test_versions_of_a_mismatch_are_put_together():
    """The lines behind "API mismatch" complete it; alone they say nothing."""
    lines = ["NVRM: API mismatch: the client 'nvidia-smi' (pid 1234)", "NVRM: has the version 595.45.04, but this",
             "NVRM: the version 590.48.01.  Please make sure"]
    events = fold(*enumerate(lines))
    assert [event.data for event in events] == [{"client_version": "595.45.04", "module_version": "590.48.01"}]
    assert fold(*enumerate(lines[1:])) == ()


def test_without_a_clock_only_neighbours_are_one_burst():
    """No times, no gap: an event between ends the burst."""
    other = XID.replace("06", "07")
    assert [event.count for event in fold((None, XID), (None, XID), (None, other), (None, XID))] == [2, 1, 1]


def test_a_flood_of_events_is_counted_not_kept():
    """Memory has a limit."""
    bursts = kmsg.Bursts(limit=3)
    for code in range(10):
        bursts.add(kernel_kinds.parse(XID.replace("79,", "%d," % (code + 200))), 0.0)
    assert (len(bursts.events()), bursts.dropped) == (3, 7)


SAMPLES = [
    "pcieport 0000:00:02.0: AER: Corrected error received: id=0010",
    "pcieport 0000:00:02.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, id=0010(Receiver ID)",
    "nvidia 0000:63:00.0: AER: can't recover (no error_detected callback)",
    "EXT4-fs (md0): Remounting filesystem read-only",
    "EXT4-fs error (device vda): ext4_lookup:1: x", "JBD2: I/O error detected when updating journal",
    "XFS (md127): log I/O "
    "error -5", "BTRFS error (device sda1): bdev errs corrupt", "BTRFS info (device sda1): forced readonly",
    "nfs: server store not responding, still trying",
    "LustreError: 167-0: x: This client was evicted by fs-OST0000; in",
    "LNet: 1:0:(x.c:1:y()) Timed out tx for z", "nvme nvme4: Disabling device after reset failure: -19",
    "block nvme0n1: no available path - failing I/O", "Buffer I/O error on device dm-0, logical block 2477053",
    "blk_update_request: I/O error, dev sda, sector 28751848", "critical medium error, dev sdb, sector 1 op 0x0",
    "mce: [Hardware Error]: Machine check events logged", "{1}[Hardware Error]: event severity: recoverable",
    "{1}[Hardware Error]: event severity: fatal", "mce: [Hardware Error]: CPU 1: Corrected error, no action required",
    "EDAC MC1: 1 CE memory scrubbing error on CPU", "EDAC MC1: 1 UE memory read error on CPU",
    "Out of memory: Kill process 12 (a) score 9 or sacrifice child", "Killed process 63214 (uwsgi) total-vm:3149468kB",
    "Memory cgroup out of memory: Killed process 63214 (uwsgi) total-vm:1kB",
    "CPU 2/KVM invoked oom-killer: gfp_mask=0xcc0",
    "INFO: task a:1 blocked for more than 120 seconds.", "mlx5_core 0000:0c:00.0 rdma0: Link down",
    "eth0: Link is Down",
    "mlx5_cmd_out_err:838:(pid 1): ACCESS_REG(0x805) op_mod(0x1) failed",
    "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48", XID,
]


@pytest.mark.parametrize("text", SAMPLES)
def test_the_quick_search_misses_nothing(text):
    """Every line that the parser understands is found by the quick look at a block, in both forms."""
    assert kernel_kinds.parse(text) is not None
    dull = "6,1,1,-;systemd[1]: Started something.\n"
    block = (dull + builders.raw(text, 7) + dull).encode()
    assert kmsg.interesting_records(block) == [builders.raw(text, 7).encode()[:-1]]
    assert list(log_lines.interesting(("[ 1.0] x\n[    5.123456] %s\nlast" % text).encode())) == [
        ("[    5.123456] " + text).encode()]


@given(st.lists(st.sampled_from(SAMPLES + ["dull", "", " SUBSYSTEM=pci"]), max_size=12))
def test_lines_come_once_and_in_order(texts):
    """Several needles in a line, several lines in a block: each line once."""
    block = "".join(builders.raw(text, n) for n, text in enumerate(texts)).encode()
    numbers = [kmsg.raw_record(kmsg.decode(line)).seq for line in kmsg.interesting_records(block)]
    assert numbers == [n for n, text in enumerate(texts) if text in SAMPLES]


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data):
    """Whatever a log holds, nothing raises."""
    for line in list(log_lines.interesting(data)) + kmsg.interesting_records(data):
        log_lines.parse_line(kmsg.decode(line))
    log_lines.clock(log_lines.parse_line(kmsg.decode(data))[0])


@pytest.mark.parametrize("line,form,monotonic,time,stamp", [
    (XID, "bare", None, None, ""),
    ("[155044.078590] " + XID, "dmesg", 155044.07859, None, ""),
    ("[  130.456250] [  T1946] " + XID, "caller", 130.45625, None, ""),
    ("[  130.456250 <    0.000012>] " + XID, "dmesg", 130.45625, None, ""),
    ("[Mon Aug  5 03:54:13 2024] " + XID, "ctime", None, None, "Mon Aug  5 03:54:13 2024"),
    ("[Sun Dec  1 14:54:40 2024] node001 kernel: " + XID, "kernel", None, None, "Sun Dec  1 14:54:40 2024"),
    ("2024-05-01T10:00:00,250000+02:00 node1 kernel: " + XID, "kernel", None, 1714550400.25,
     "2024-05-01T10:00:00,250000+02:00"),
    ("kern  :err   : 2024-05-01T08:00:00,000000Z " + XID, "iso", None, 1714550400.0, "2024-05-01T08:00:00,000000Z"),
    ("May 27 16:50:10 node001 kernel: " + XID, "kernel", None, None, "May 27 16:50:10"),
    ("Sep 19 16:18:02 node001 kernel: [68183.615790] " + XID, "dmesg", 68183.61579, None, "Sep 19 16:18:02"),
    ("kernel: [16450076.435595] " + XID, "dmesg", 16450076.435595, None, ""),
    ("[...] " + XID, "elided", None, None, ""),
    ("<4>[   12.000000] " + XID, "dmesg", 12.0, None, ""),
    ("4,1227,437812449,c;" + XID, "raw", 437.812449, None, ""),
    ('{"__REALTIME_TIMESTAMP":"1754841365123456","_SOURCE_MONOTONIC_TIMESTAMP":"43000000","MESSAGE":"%s"}' % XID,
     "json", 43.0, 1754841365.123456, ""),
    ('{"MESSAGE":%s}' % list(XID.encode()), "json", None, None, ""),
])
def test_forms(line, form, monotonic, time, stamp):
    """The line comes out the same whatever stamps were put before it; time only where date and zone are known."""
    found, parsed = log_lines.parse_line(line)
    assert parsed[:3] == ("xid", 79, "0000:06:00.0")
    assert (found.text, found.form, found.monotonic, found.time, found.stamp) == (XID, form, monotonic, time, stamp)


def test_bmc_event_log():
    """A BMC writes XID in capitals and names no GPU."""
    found, parsed = log_lines.parse_line("[Tue Apr 22 23:22:23 UTC 2025][7][00] XID 95 Uncontained: FBHUB. RST: Yes")
    assert parsed[:3] == ("xid", 95, "") and found.time == 1745364143.0
    assert log_lines.parse_line("XID 95 in somebody's text")[1] is None
