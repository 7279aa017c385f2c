"""Reading the kernel log: cursor, rotation, cut lines, floods, injected records; the real device where there is one."""
import json
import os

import builders
import pytest

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.probes import kmsg

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


def test_cursor_of_another_boot_is_void(log):
    """After a reboot all that the log still holds is read."""
    log.write(XID)
    log.codes()
    log.spec["boot_id"] = "b2"
    assert log.codes() == [(79, 1)]


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


def test_a_log_in_another_form_is_an_error(log):
    """A file that could never show an event must not look healthy."""
    with open(log.path, "w") as handle:
        handle.write("May 27 16:50:10 node001 kernel: " + XID + "\n")
    with pytest.raises(ValueError, match="form of /dev/kmsg"):
        log.read()


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
