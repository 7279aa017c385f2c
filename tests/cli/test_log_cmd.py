"""`gpuhealth log parse`: one JSON line an event."""
import argparse
import codecs
import gzip
import io
import json
import sys

import pytest

from slurm_gpuhealth import errors
from slurm_gpuhealth.cli import log_cmd

LOG = b"""\
[    1.000000] systemd[1]: Started something.
[74785.660366] pcieport 0000:00:02.0: AER: Corrected error received: id=0010
[74889.542031] pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010
[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.
[74889.644200] NVRM: Xid (PCI:0000:02:00): 31, pid=7, name=evil\x1b[31m, Ch 00000008
[74890.000000] NVRM: Xid (PCI:0000:02:00): 31, pid=7, name=x, Ch 00000009
[74891.000000] NVRM: Xid (PCI:0000:02:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)
[74892.000000] EXT4-fs (md0): Remounting filesystem read-only"""


class Args:
    log_command = "parse"
    boot_time = None

    def __init__(self, file):
        self.file = file


def parse(data):
    return log_cmd.read(io.BytesIO(data))


def test_events_in_order():
    """Kinds, codes, severities and actions; a last line without newline counts."""
    assert [(event["kind"], event["code"], event["severity"], event["action"], event["count"])
            for event in parse(LOG)] == [
        ("aer_corrected", None, "note", "none", 1), ("aer_uncorrected", None, "fatal", "reboot", 1),
        ("xid", 79, "fatal", "reboot", 1), ("xid", 31, "note", "restart-app", 2), ("xid", 154, "fatal", "reboot", 1),
        ("fs_readonly", None, "fatal", "repair", 1)]


def test_every_key_is_there():
    """Version 1 of the line: the same keys each time, time null where date and zone are unknown."""
    event = parse(LOG)[2]
    assert set(event) == {"v", "kind", "code", "bdf", "severity", "action", "time", "last", "count", "pid", "process",
                          "line", "data", "stamp", "monotonic", "title"}
    assert (event["v"], event["bdf"], event["time"], event["monotonic"]) == (1, "0000:02:00.0", None, 74889.644138)


def test_escape_sequences_are_made_visible():
    """A process name cannot colour the reader's terminal."""
    event = parse(LOG)[3]
    assert event["process"] == "evil\\x1b[31m" and "\x1b" not in event["line"]


def test_records_of_programs_are_marked():
    """A line that a program wrote into the log is shown and marked, and does not join the kernel's own."""
    events = parse(b"4,1,1,-;NVRM: Xid (PCI:0000:02:00): 79, x\n12,2,2,-;NVRM: Xid (PCI:0000:02:00): 79, x\n")
    assert [event["data"].get("injected") for event in events] == [None, True]


def test_lines_across_blocks(monkeypatch):
    """A line that lies across two reads is one line."""
    whole = parse(LOG)
    monkeypatch.setattr(log_cmd, "_BLOCK", 7)
    assert parse(LOG) == whole


def test_file_and_errors(tmp_path):
    """A file that is not there is said, and an empty one is no error."""
    (tmp_path / "log").write_bytes(LOG)
    out = io.StringIO()
    assert log_cmd.run(Args(str(tmp_path / "log")), out) == 0
    assert [json.loads(line)["kind"] for line in out.getvalue().splitlines()][2] == "xid"
    (tmp_path / "empty").write_bytes(b"")
    assert log_cmd.run(Args(str(tmp_path / "empty")), io.StringIO()) == 0
    with pytest.raises(errors.NotFoundError):
        log_cmd.run(Args(str(tmp_path / "none")), io.StringIO())
    with pytest.raises(errors.DataError):
        log_cmd.run(Args(str(tmp_path)), io.StringIO())


def test_time_from_the_boot():
    """Seconds since boot become a time when it is said when the boot was; without that time stays null."""
    events = log_cmd.read(io.BytesIO(LOG), boot_time=1796000000.0)
    assert (events[2]["time"], events[2]["last"]) == (1796074889.644138, 1796074889.644138)
    assert events[3]["last"] == 1796074890.0
    assert log_cmd._boot_time("1796000000") == 1796000000.0 and log_cmd._boot_time("now") > 1e9
    for wrong in ("yesterday", "-1", "nan", "1e300"):
        with pytest.raises(argparse.ArgumentTypeError):
            log_cmd._boot_time(wrong)


def test_a_flood_is_counted_line_by_line():
    """The quick way of counting gives what the slow way gives."""
    lines = ["[%d.000000] NVRM: Xid (PCI:0000:02:00): 95, pid=%d, name=a, Uncontained" % (n, n) for n in range(1000)]
    event, = parse("\n".join(lines).encode())
    assert (event["count"], event["code"]) == (1000, 95)
    gap = parse("\n".join(lines[:3] + ["[9000.0] NVRM: Xid (PCI:0000:02:00): 95, pid=1, name=a, x"]).encode())
    assert [one["count"] for one in gap] == [3, 1]


def test_what_programs_wrote_is_a_note():
    """An injected line never looks like a fault, whatever it says."""
    event, = parse(b"12,2,2,-;NVRM: Xid (PCI:0000:02:00): 79, x\n")
    assert (event["severity"], event["action"], event["data"]["injected"]) == ("note", "none", True)


def run(tmp_path, data, capsys):
    """(exit status, kinds, what was said on standard error) of a file of `data`."""
    (tmp_path / "some.log").write_bytes(data)
    out = io.StringIO()
    code = log_cmd.run(Args(str(tmp_path / "some.log")), out)
    return code, [json.loads(line)["kind"] for line in out.getvalue().splitlines()], capsys.readouterr().err


@pytest.mark.parametrize("packed", [
    gzip.compress(LOG), gzip.compress(LOG[:300]) + gzip.compress(LOG[300:]), LOG.decode().encode("utf-16"),
    codecs.BOM_UTF16_BE + LOG.decode().encode("utf-16-be"), codecs.BOM_UTF8 + LOG,
    gzip.compress(codecs.BOM_UTF8 + LOG), b"\0" * 100 + b"\n" + LOG], ids=str)
def test_logs_as_they_are_kept(packed, tmp_path, capsys, monkeypatch):
    """A rotated log is packed with gzip, one saved on Windows is UTF-16, some editors put a mark in front, and a lost
    machine leaves zeros: the same events, from a file and from standard input."""
    kinds = [event["kind"] for event in parse(LOG)]
    assert len(kinds) == 6 and run(tmp_path, packed, capsys) == (0, kinds, "")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    out = io.StringIO()
    assert log_cmd.run(Args("-"), out) == 0 and len(out.getvalue().splitlines()) == 6


def test_utf16_over_many_blocks(monkeypatch):
    """Blocks end anywhere within UTF-16 and within a packed log."""
    whole = [dict(event) for event in parse(LOG)]
    monkeypatch.setattr(log_cmd, "_BLOCK", 7)
    assert parse(LOG.decode().encode("utf-16")) == whole and parse(gzip.compress(LOG)) == whole


@pytest.mark.parametrize("data,says", [
    (b"\xfd7zXZ\0" + LOG, "xz"), (b"BZh91AY&SY" + LOG, "bzip2"), (b"\x28\xb5\x2f\xfd" + LOG, "zstd"),
    (b"LPKSHHRH" + bytes(500), "journalctl"), (bytes(range(32)) * 50, "binary data"), (b"\0" * 4096, "binary data")])
def test_what_is_no_log_is_said(data, says, tmp_path, capsys):
    """Nothing printed and status 0 would look like a healthy node: one line on standard error, status 3."""
    code, kinds, said = run(tmp_path, data, capsys)
    assert (code, kinds, said.count("\n")) == (3, [], 1) and says in said and "some.log" in said


def test_a_damaged_packed_log_gives_what_it_holds(tmp_path, capsys):
    """A log that was cut while it was copied: the events up to there, and a line that the rest was not read."""
    many = b"".join(b"[%d.0] systemd[1]: Started %d.\n" % (n, n * 7919 % 100003) for n in range(100000))
    code, kinds, said = run(tmp_path, gzip.compress(LOG + b"\n" + many)[:-20], capsys)
    assert (code, kinds[:3], "damaged" in said) == (0, ["aer_corrected", "aer_uncorrected", "xid"], True)
    with pytest.raises(errors.DataError):
        parse(gzip.compress(LOG)[:-9])


def test_events_without_a_place_are_said(tmp_path, capsys):
    """More events than are kept: how many lines are not shown."""
    lines = b"".join(b"[%d.0] XFS (sda%d): log I/O error -5\n" % (n, n) for n in range(5100))
    code, kinds, said = run(tmp_path, lines, capsys)
    assert (code, len(kinds)) == (0, 5000) and "100 more lines" in said


def test_lines_behind_a_bom_and_a_form_of_many_lines():
    """The mark stands also before the journal's forms, and dmesg --json begins with its frame in one line."""
    entry = b"__CURSOR=s=ab\n_TRANSPORT=kernel\nMESSAGE=NVRM: Xid (PCI:0000:02:00): 79, x\n"
    event, = parse(codecs.BOM_UTF8 + entry)
    assert event["code"] == 79
