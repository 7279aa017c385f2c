"""Reading the kernel log: cursor, rotation, cut lines, floods, injected records; the real device where there is one."""
import gzip
import json
import os
import time

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import kmsg, kmsg_file

XID = "NVRM: Xid (PCI:0000:5d:00): 79, GPU has fallen off the bus."
DULL = "systemd[1]: Started something."


class Log:
    """A log file below a fixture root, and a reader that remembers its cursor."""

    def __init__(self, root, **spec):
        self.root, self.path = str(root), os.path.join(str(root), "kmsg")
        self.spec = dict({"root": self.root, "path": "/kmsg", "cursor": None, "boot_id": "b1", "user_facility": False},
                         **spec)
        self.number = 0
        builders.write_node(root, {"/proc/stat": "cpu 1\nbtime 1796000000\n", "/kmsg": ""})

    def write(self, *texts, prio=4, end="\n"):
        with open(self.path, "a") as handle:
            for text in texts:
                self.number += 1
                handle.write(builders.raw(text, self.number, self.number * 1000000, prio)[:-1] + end)

    def read(self, **changes):
        """The fields that assemble makes of one reading; the cursor is kept for the next."""
        self.spec.update(changes)
        records = []
        kmsg.read(self.spec, lambda kind, plain: records.append((kind, json.loads(json.dumps(plain)))))
        fields = kmsg.assemble(records, self.spec, F.SourceStatus("kmsg", "ok"))
        self.spec["cursor"] = fields["cursor"]
        return fields

    def codes(self):
        return [(event.code, event.count) for event in self.read()["klog"].events]


@pytest.fixture
def log(tmp_path):
    return Log(tmp_path)


def test_event_with_wall_time(log):
    """Time is the record's microseconds after boot plus the boot's wall time."""
    log.write(DULL, XID)
    event = log.read()["klog"].events[0]
    assert (event.kind, event.code, event.bdf, event.time, event.seq) == ("xid", 79, "0000:5d:00.0", 1796000002.0, 2)


def test_second_reading_begins_where_the_first_ended(log):
    """The cursor: nothing twice, nothing missed."""
    log.write(XID)
    assert log.codes() == [(79, 1)]
    assert log.codes() == []
    log.write(XID, DULL)
    fields = log.read()
    assert [event.count for event in fields["klog"].events] == [1]
    assert fields["klog"].lines == 2


VERSION = "Linux version 6.1.0-28-amd64 (debian-kernel@lists.debian.org)"


def boot(log, boot_id="b2", btime=1796500000, version=True):
    """The machine reboots: its clock begins anew."""
    log.spec["boot_id"] = boot_id
    builders.write_node(log.root, {"/proc/stat": "btime %d\n" % btime})
    log.number = 0
    if version:
        log.write(VERSION)


def test_nothing_is_missed_over_a_reboot(log):
    """A file goes on: what was written before the reboot and not yet looked at is read, and marked as over; its time is
    that of its own boot. What was read before is not read again."""
    log.write(DULL, DULL, XID)
    log.codes()
    log.write(XID.replace("79,", "48,"))
    boot(log)
    log.write(XID.replace("79,", "95,"))
    events = log.read()["klog"].events
    assert [(event.code, event.data.get("earlier_boot"), event.time) for event in events] == [
        (48, True, 1796000004.0), (95, None, 1796500002.0)]
    assert log.codes() == []


def test_a_boot_is_seen_without_its_first_line(log):
    """Where the kernel's first line is lost, its clock that fell back tells."""
    log.number = 1000
    log.write(XID)
    log.codes()
    log.write(XID.replace("79,", "48,"))
    boot(log, version=False)
    log.write(DULL, XID.replace("79,", "95,"))
    assert [(event.code, event.data.get("earlier_boot")) for event in log.read()["klog"].events] == [
        (48, True), (95, None)]


def test_a_burst_does_not_go_over_a_reboot(log):
    """The same Xid after the reboot is another event."""
    log.write(DULL)
    log.codes()
    log.write(XID, XID)
    boot(log, btime=1796000010)
    log.write(XID)
    assert [(event.count, event.data.get("earlier_boot")) for event in log.read()["klog"].events] == [
        (2, True), (1, None)]


def test_a_program_cannot_make_a_reboot(log):
    """Text of a program that looks like the kernel's first line changes nothing."""
    log.write(DULL)
    log.codes()
    log.write(XID)
    log.write(VERSION, prio=12)
    log.write(DULL)
    assert [event.data.get("earlier_boot") for event in log.read()["klog"].events] == [None]


def test_first_look_begins_with_this_boot(log):
    """What an old log says of earlier boots is over before this program first looks."""
    log.write(XID, *[DULL] * 10000)
    boot(log)
    log.write(XID.replace("79,", "48,"))
    assert log.codes() == [(48, 1)]


def test_file_that_was_cut_is_read_from_its_start(log):
    """Truncation in place (copytruncate), also when the new content is already longer."""
    log.write(DULL, DULL)
    log.codes()
    os.truncate(log.path, 0)
    log.write(XID)
    assert log.codes() == [(79, 1)]
    os.truncate(log.path, 0)
    log.write(*[DULL] * 20)
    log.write(XID.replace("79,", "48,"))
    assert log.codes() == [(48, 1)]


def test_rotation_loses_nothing(log):
    """The rest of the old file is read under its new name, then the new one."""
    log.write(DULL)
    log.codes()
    log.write(XID)
    os.rename(log.path, log.path + ".1")
    log.write(XID.replace("79,", "48,"))
    assert log.codes() == [(79, 1), (48, 1)]
    assert log.codes() == []


def test_last_line_that_is_still_being_written(log):
    """A record without its newline is left for the next reading, then taken whole."""
    log.write(DULL)
    log.write(XID[:30], end="")
    assert log.codes() == []
    with open(log.path, "a") as handle:
        handle.write(XID[30:] + "\n")
    assert log.codes() == [(79, 1)]


def test_property_lines_are_no_records(log):
    """Lines that begin with a blank belong to the record before them, whatever they hold."""
    with open(log.path, "a") as handle:
        handle.write(builders.raw(DULL) + " SUBSYSTEM=pci\n X=;NVRM: Xid (PCI:0000:5d:00): 79,\n")
    fields = log.read()
    assert fields["klog"].events == () and fields["klog"].lines == 1


def test_records_of_programs_are_left_out(log):
    """Facility 1 and more is written by programs: not believed, unless the site asks for it."""
    log.write(XID, prio=12)
    assert log.codes() == []
    assert [event.code for event in log.read(cursor=None, user_facility=True)["klog"].events] == [79]


def test_programs_cannot_swell_a_real_burst(log):
    """A known line repeated by a program does not count."""
    log.write(XID)
    log.write(XID, XID, prio=12)
    log.write(XID)
    assert log.codes() == [(79, 2)]


SYSLOG = "2026-12-0%d 10:00:%02d+00:00 node001 kernel: %s\n"


def test_a_log_of_syslog(log):
    """kern.log as rsyslog writes it, with the wall time of its stamps; only lines of the kernel are believed."""
    builders.write_node(log.root, {"/proc/stat": "btime 1796033000\n"})
    with open(log.path, "w") as handle:
        handle.write("".join(SYSLOG % (1, n, text) for n, text in enumerate((DULL, XID, DULL))))
        handle.write("2026-12-01 10:00:09+00:00 node001 evil[7]: %s\n" % XID.replace("79,", "48,"))
        handle.write("2026-12-01 10:00:09+00:00 node001 evil: %s\n" % XID.replace("79,", "48,"))
    fields = log.read()
    assert [(event.code, event.time) for event in fields["klog"].events] == [(79, 1796119201.0)]
    assert log.codes() == []
    with open(log.path, "a") as handle:
        handle.write(SYSLOG % (1, 30, XID.replace("79,", "62,")))
    assert log.codes() == [(62, 1)]
    assert any(XID in line for line in fields["lines"])


def test_a_log_of_syslog_over_a_reboot(log):
    """Stamps tell which lines are older than this boot."""
    with open(log.path, "w") as handle:
        handle.write(SYSLOG % (1, 1, DULL))
    log.read()
    with open(log.path, "a") as handle:
        handle.write(SYSLOG % (1, 2, XID) + SYSLOG % (2, 3, XID.replace("79,", "48,")))
    builders.write_node(log.root, {"/proc/stat": "btime 1796200000\n"})
    events = log.read(boot_id="b2")["klog"].events
    assert [(event.code, event.data.get("earlier_boot")) for event in events] == [(79, True), (48, None)]


def test_stamps_without_year_and_zone_are_the_nodes_own(log, monkeypatch):
    """RFC 3164: local time, of the last twelve months."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    stamp = time.strftime("%b %e %H:%M:%S", time.gmtime(time.time() - 3600))
    builders.write_node(log.root, {"/proc/stat": "btime %d\n" % (time.time() - 86400)})
    with open(log.path, "w") as handle:
        handle.write("%s node001 kernel: [  100.5] %s\n" % (stamp, XID))
    event, = log.read()["klog"].events
    assert abs(event.time - (time.time() - 3600)) < 5 and "earlier_boot" not in event.data


def test_a_log_that_is_none_is_an_error(log):
    """A file that could never show an event must not look healthy."""
    with open(log.path, "w") as handle:
        handle.write("hello\nworld\n")
    with pytest.raises(ValueError, match="neither"):
        log.read()


@pytest.mark.parametrize("name", ["kmsg.1", "kmsg-20261130", "kmsg.old"])
def test_rotation_under_any_name(log, name):
    """logrotate names old logs by number or by date."""
    log.write(DULL)
    log.codes()
    log.write(XID)
    os.rename(log.path, os.path.join(log.root, name))
    log.write(XID.replace("79,", "48,"))
    assert log.codes() == [(79, 1), (48, 1)]
    assert log.codes() == []


def test_rotation_that_compresses_at_once(log):
    """The rest of the old log is read out of the compressed one, which is known by what stands before the offset."""
    log.write(*[DULL] * 50)
    log.codes()
    log.write(XID)
    with open(log.path, "rb") as handle, gzip.open(os.path.join(log.root, "kmsg-20261130.gz"), "wb") as packed:
        packed.write(handle.read())
    with gzip.open(os.path.join(log.root, "kmsg-20261001.gz"), "wb") as packed:
        packed.write(b"something else")
    os.utime(os.path.join(log.root, "kmsg-20261001.gz"), (1, 1))
    os.remove(log.path)
    log.write(XID.replace("79,", "48,"))
    assert log.codes() == [(79, 1), (48, 1)]


def test_a_reader_that_was_stopped_goes_on(log, monkeypatch):
    """A first look at a long file that takes longer than it may: the next one begins where it was stopped."""
    monkeypatch.setattr(kmsg, "_SNAPSHOT", 0.0)
    monkeypatch.setattr(kmsg_file, "_BLOCK", 4096)
    log.write(*[DULL] * 500)
    log.write(XID)
    records = []
    kmsg.read(log.spec, lambda kind, plain: records.append((kind, json.loads(json.dumps(plain)))))
    fields = kmsg.assemble(records[:2], log.spec, F.SourceStatus("kmsg", "late"))
    assert 0 < fields["cursor"]["offset"] < os.path.getsize(log.path) / 2
    log.spec["cursor"] = fields["cursor"]
    fields = log.read()
    assert 100 < fields["klog"].lines < 480 and [event.code for event in fields["klog"].events] == [79]


@pytest.mark.parametrize("junk", ["x" * 3000000 + "\n", "junk\n" * 4000], ids=["a-line-without-end", "many-lines"])
def test_junk_in_the_log_is_passed_over(log, junk):
    """What a dying disk or a hostile writer leaves in the file must not hide what the kernel says after it."""
    log.write(DULL)
    log.read()
    with open(log.path, "a") as handle:
        handle.write(junk)
    log.write(XID)
    assert log.codes() == [(79, 1)]
    assert log.codes() == []


def test_missing_log_is_an_error(tmp_path):
    """No log: the source fails, and that is said."""
    with pytest.raises(FileNotFoundError):
        Log(tmp_path).read(path="/nowhere")


def test_flood_is_a_few_events(log):
    """Many thousand lines of eight GPUs: eight events with right counts, few reports."""
    lines = [builders.raw("NVRM: Xid (PCI:0000:%02x:00): 95, pid=%d, name=a, Uncontained" % (n % 8, n), n, n * 100)
             for n in range(40000)]
    with open(log.path, "w") as handle:
        handle.writelines(lines)
    fields = log.read()
    assert [(event.code, event.count) for event in fields["klog"].events] == [(95, 5000)] * 8
    assert fields["klog"].lines == 40000


def test_bursts_end_with_silence_also_in_the_quick_way(log):
    """Ten minutes later it is another event."""
    with open(log.path, "w") as handle:
        handle.writelines(builders.raw("NVRM: Xid (PCI:0000:5d:00): 95, x", n, when * 1000000)
                          for n, when in enumerate((1, 2, 700, 701)))
    assert log.codes() == [(95, 2), (95, 2)]


def test_window_holds_the_lines_around(log):
    """For the evidence: twenty lines before and after, in order, once."""
    log.write(*["before %d" % n for n in range(50)])
    log.write(XID)
    log.write(*["after %d" % n for n in range(50)])
    window = [line.partition(";")[2] for line in log.read()["lines"]]
    assert XID in window and "before 49" in window and "after 0" in window
    assert "before 10" not in window and "after 40" not in window
    assert len(window) == len(set(window))


def test_late_reading_keeps_what_it_had(log):
    """A reader that was stopped has reported on its way: events and cursor up to there count."""
    log.write(XID)
    records = []
    kmsg.read(log.spec, lambda kind, plain: records.append((kind, plain)))
    fields = kmsg.assemble(records, log.spec, F.SourceStatus("kmsg", "late", detail="no answer in 3.0 s"))
    assert fields["klog"].events and fields["cursor"]["offset"] > 0


def test_nothing_said_is_unknown(log):
    """No report at all: the log is unknown, with why."""
    fields = kmsg.assemble([], log.spec, F.SourceStatus("kmsg", "hung", detail="D"))
    assert fields["klog"] == F.Unknown(F.HUNG, "D") and fields["cursor"] is None


class Ring:
    """/dev/kmsg for a test: gives its records one a read, or the error that it holds instead."""

    def __init__(self, monkeypatch, records):
        self.records, self.at = list(records), 0
        monkeypatch.setattr(kmsg.os, "read", self.read)
        monkeypatch.setattr(kmsg.os, "lseek", self.seek)

    def read(self, fd, size):
        if self.at >= len(self.records):
            raise BlockingIOError
        self.at += 1
        one = self.records[self.at - 1]
        if isinstance(one, OSError):
            raise one
        return one.encode()

    def seek(self, fd, where, how):
        self.at = 0


def ring(monkeypatch, records, cursor=None, **spec):
    """What reading those records from the device gives: (codes, reader)."""
    Ring(monkeypatch, records)
    spec = dict({"root": "", "path": "/dev/kmsg", "boot_id": "b1"}, **spec)
    reader = kmsg._Reader(spec, lambda kind, plain: None, os.stat("/dev/null"))
    kmsg._read_device(-1, cursor or {}, reader)
    return [(event.code, event.count) for event in reader.bursts.events()], reader


def test_device_overwritten_before_it_was_read(monkeypatch):
    """EPIPE, then the oldest that is left: how many are missing is counted, and reading goes on."""
    codes, reader = ring(monkeypatch, [builders.raw(DULL, 5), BrokenPipeError(), builders.raw(XID, 105)], {"seq": 4})
    assert codes == [(79, 1)] and reader.lost == 99 and reader.cursor["seq"] == 105


def test_device_with_a_cursor_ahead_of_it(monkeypatch):
    """A cursor with a number that the log has not reached is not of this log: all is read."""
    codes, reader = ring(monkeypatch, [builders.raw(XID, 1), builders.raw(DULL, 2)], {"seq": 9000})
    assert codes == [(79, 1)] and reader.cursor["seq"] == 2 and reader.lost == 0


def test_device_with_more_fields_properties_and_fragments(monkeypatch):
    """Further fields of the head are passed over, lines of properties belong to their record, a number may repeat."""
    records = ["4,7,1000000,-,caller=T1,more=;%s\n SUBSYSTEM=pci\n DEVICE=+pci:0000:5d:00.0\n" % XID,
               "4,8,1000001,c;%s\n" % XID.replace("79,", "48,"), "4,8,1000001,+;%s\n" % DULL, "junk\n",
               "4,x,y,-;a\n"]
    codes, reader = ring(monkeypatch, records)
    assert codes == [(79, 1), (48, 1)] and reader.lost == 0


def test_device_with_lines_that_a_process_is_named_in(monkeypatch):
    """Names of processes are what users chose: no Xid, whatever they are called, and printed so that a terminal is
    safe."""
    comm = "NVRM: Xid (): 8"
    texts = ["%s[55]: segfault at 0 ip 0 sp 0 error 4 in x" % comm, "%s invoked oom-killer: gfp_mask=0xcc0" % comm,
             "Killed process 5 (%s) total-vm:1kB" % comm, "INFO: task %s:5 blocked for more than 120 seconds." % comm,
             "traps: %s[55] general protection fault ip:1" % comm]
    Ring(monkeypatch, [builders.raw(text, n) for n, text in enumerate(texts)])
    reader = kmsg._Reader({"root": "", "path": "/dev/kmsg", "boot_id": "b1"}, lambda *x: None, os.stat("/dev/null"))
    kmsg._read_device(-1, {}, reader)
    assert {event.kind for event in reader.bursts.events()} == {"oom_kill", "hung_task"}


def test_a_user_cannot_push_out_what_else_is_said(log):
    """Ten thousand processes that die of hunger are a few hundred events, and the GPU's is kept."""
    with open(log.path, "w") as handle:
        text = "Memory cgroup out of memory: Killed process %d (p%d) total-vm:1kB"
        handle.writelines(builders.raw(text % (n, n), n, n)
                          for n in range(10000))
        handle.write(builders.raw(XID, 10001, 10001))
    klog = log.read()["klog"]
    assert len(klog.events) < 300 and klog.lost == 0 and klog.events[-1].code == 79
    assert sum(event.count for event in klog.events) == 10001


def test_eight_hundred_thousand_lines_of_29_events(log):
    """A site had that many lines of uncontained errors; here 100,000 of them."""
    with open(log.path, "w") as handle:
        for event in range(29):
            handle.writelines(builders.raw("NVRM: Xid (PCI:0000:%02x:00): 95, pid=%d, name=a, Uncontained: x" % (
                event % 8, n), n, event * 200000000 + n) for n in range(3450))
    assert log.codes() == [(95, 3450)] * 29


def _device_readable():
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _device_readable(), reason="/dev/kmsg cannot be read here")
def test_real_device():
    """The device gives records from its oldest; a second reading gives only what is new."""
    spec = {"root": "", "path": "/dev/kmsg", "cursor": None, "boot_id": "b1", "user_facility": False}
    records = []
    kmsg.read(spec, lambda kind, plain: records.append((kind, plain)))
    first = kmsg.assemble(records, spec, F.SourceStatus("kmsg", "ok"))
    assert first["klog"].lost == 0
    records.clear()
    kmsg.read(dict(spec, cursor=first["cursor"]), lambda kind, plain: records.append((kind, plain)))
    second = kmsg.assemble(records, spec, F.SourceStatus("kmsg", "ok"))
    assert second["klog"].lines <= first["klog"].lines
    assert second["cursor"]["seq"] >= first["cursor"].get("seq", 0)
