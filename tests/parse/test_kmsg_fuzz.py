"""Whatever a log holds: no crash, no field of a wrong type or that cannot be printed, no line that takes long."""
import io
import os
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.cli import log_cmd
from slurm_gpuhealth.parse import kernel_kinds, kmsg, log_lines

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "corpus"))
import fuzz

SAMPLES = fuzz.samples()


def hook_events(lines):
    """The same lines as records of /dev/kmsg, as the hooks' reader folds them."""
    bursts = kmsg.Bursts()
    block = b"".join(b"4,%d,%d,-;%s\n" % (number, number * 1000, line) for number, line in enumerate(lines))
    for raw in kmsg.interesting_records(block):
        record = kmsg.raw_record(kmsg.decode(raw))
        parsed = record and kernel_kinds.parse(record.text)
        if parsed:
            bursts.add(parsed, record.usec / 1e6, record.text, record.seq)
    return bursts.events()


def check(lines):
    for event in log_cmd.read(io.BytesIO(b"\n".join(lines))):
        assert fuzz.wrong(event) == ""
    for event in hook_events(lines):
        assert fuzz.wrong(dict(event._asdict(), v=1, severity="note", action="none")) == ""


def test_thirty_thousand_damaged_lines():
    """A fixed lot of damaged samples; benchmarks/kmsg.py --fuzz takes more of them."""
    for lines in fuzz.batches(30000, seed=20261130):
        check(lines)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from([line.encode() for line in SAMPLES])), max_size=30),
       st.binary(max_size=40), st.integers(0, 300))
def test_any_lines_and_any_damage(lines, noise, at):
    """Samples and noise in any order, noise in any place."""
    check([line[:at] + noise.replace(b"\n", b"") + line[at:] for line in lines])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_survived(text):
    """The single steps take any text."""
    log_lines.parse_line(text)
    kernel_kinds.parse(text)
    for start in ("NVRM: ", "NVRM: Xid (PCI:0000:01:00): 149, ", "nvidia-nvswitch1: SXid (PCI:0000:01:00.0): 1, ",
                  "EXT4-fs ", "XFS (a): ", "Lustre: ", "mlx5_core ", "EDAC MC0: ", "nvme nvme0: ",
                  "oom-kill:constraint="):
        kernel_kinds.parse(start + text)


LONG = 1 << 20
HOSTILE = [start + middle * (LONG // len(middle)) + end for start, middle, end in (
    ("NVRM: Xid (PCI:0000:01:00): 149, ", "NETIR ", ""), ("NVRM: Xid (PCI:0000:01:00): 31, name=", ", ", ""),
    ("NVRM: Xid (", "(", ""), ("NVRM: API mismatch: the client '", "' (pid 1", ""), ("NVRM: GPU ", "0:", ""),
    ("NVRM: loading NVIDIA ", "1.", ""), ("nvidia-nvswitch1: ", "Failed", ""), ("EXT4-fs error (device ", "a", ""),
    ("EXT4-fs (sda): ", "error ", ""), ("XFS (a): ", "Error", ""), ("BTRFS ", "(device a)", ""),
    ("Lustre: ", "Connection to ", ""), ("LNet: ", "Timed out ", ""), ("Lustre: ", "@@@ Request sent has ", ""),
    ("mlx5_core ", "fail", ""), ("nvme nvme0: ", "fai", ""), ("oom-kill:constraint=CONSTRAINT_NONE,", "task=", ""),
    ("INFO: task ", "a:1 ", ""), ("Killed process 1 (", ")", ""), ("", "x", " invoked oom-killer: "),
    ("EDAC MC0: 1 CE ", "on ", ""), ("", "[", ""), ("", "[ 1.0] ", ""), ("", "<4>", ""), ("", "kernel: ", ""),
    ("4,1,2", ",a", ";x"), ("", "May 27 16:50:10 ", ""), ("", "{", ""), ("", '{"MESSAGE":', ""),
    ('{"log":"', "[1.0] ", '"}'), ("", "/a", ":1:[1.0] x"), ("", "GPU ", "XID 1"), ("", "[x][1][0] XID ", ""),
    ("pcieport 0000:00:02.0: ", "AER: ", ""), ("aaaaaaaaaaaaaaa ", "0000:00:02.0: ", "Link is Down"),
    ("", "eth0: ", "Link is Down"), ("", "{1}[Hardware Error]: ", ""), ("", " ", "NVRM: Xid"), ("", "\x1b[31m", ""),
    ("beegfs: ", "Communication ", ""), ("", "journal commit I/O error", ""), ("", "__CURSOR=", ""),
    ("", "-- \n", ""), ("", "node1: ", ""), ("<4>1 ", "2026-05-01T10:00:00Z ", ""))]


@pytest.mark.parametrize("line", HOSTILE, ids=[repr(line[:20] + line[-6:]) for line in HOSTILE])
def test_long_hostile_lines_take_no_time(line):
    """A megabyte that is made to keep a pattern busy is done in a moment, alone and after a stamp."""
    begun = time.process_time()
    check([line.encode(), b"[    1.000000] " + line.encode(), b"x"])
    assert time.process_time() - begun < 2.0
