"""The event log: what is written, and what reading forgives."""
import errno
import json
import os
import socket
import stat

import pytest

from slurm_gpuhealth import event_files, events, paths
from slurm_gpuhealth.facts import Unknown
from slurm_gpuhealth.model import NODE, Subject, to_plain

NOW = 1796040000.0      # 2026-11-30 12:00:00 UTC, week 49


def one(kind="drain", **more):
    more.setdefault("when", NOW)
    return events.event(kind, "n1", "boot", code="GH-XID79", **more)


def path_of(root):
    return paths.under(str(root), paths.EVENTS) + "/n1-2026-W49.jsonl"


def content(root):
    with open(path_of(root), "rb") as handle:
        return handle.read()


def test_an_event_comes_back_as_it_was_written(tmp_path):
    """What was appended is what is read, in a 0600 file of a 0700 folder named by node and ISO week."""
    event = one(subject=Subject("gpu", 3), job=7, restart=1, detail={"reason": "r"})
    assert events.append(str(tmp_path), event)
    assert list(events.read(path_of(tmp_path))) == [event]
    assert stat.S_IMODE(os.stat(path_of(tmp_path)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path_of(tmp_path))).st_mode) == 0o700
    assert set(event) == {"v", "id", "time", "boot_id", "node", "kind", "incident", "code", "subject", "job",
                          "restart", "action", "detail"}
    assert event["subject"] == "gpu3"


def test_two_events_go_to_one_file_and_ids_differ(tmp_path):
    """Ids are unique also within one millisecond, and sort by time."""
    made = [one() for _ in range(200)] + [one(when=NOW + 1)]
    assert len({event["id"] for event in made}) == 201
    assert max(event["id"] for event in made) == made[-1]["id"]
    for event in made[:2]:
        assert events.append(str(tmp_path), event)
    assert [event["id"] for event in events.read(path_of(tmp_path))] == [event["id"] for event in made[:2]]


@pytest.mark.parametrize("subject,text", [
    (Subject("gpu", 3), "gpu3"), (Subject("gpu", None), "gpu?"), (NODE, "node"), (Subject("gpus"), "gpus"),
    (Subject("mount", name="/data"), "/data"), (to_plain(Subject("gpu", 1)), "gpu1"), ("x", "x"), (None, "")])
def test_subject_is_a_short_text(subject, text):
    """A subject is written as people write it, whether it comes as tuple, dict or text."""
    assert events.subject_text(subject) == text


def test_hostile_text_stays_a_json_string(tmp_path):
    """Line ends, escapes and broken Unicode in a name never make a second line or another key."""
    nasty = 'a\n{"v":1,"id":"x"}\x1b[2J\u2028"}\ud800'
    events.append(str(tmp_path), one(detail={"reason": nasty, nasty: nasty}, incident=nasty))
    with open(path_of(tmp_path), "rb") as handle:
        raw = handle.read()
    assert raw.count(b"\n") == 1 and raw.isascii() and b"\x1b" not in raw
    [event] = events.read(path_of(tmp_path))
    assert event["detail"]["reason"] == nasty and event["incident"] == nasty


def test_the_file_of_a_hostile_node_name_stays_in_the_folder():
    """A node's name becomes one harmless file name."""
    assert events.file_name("../../etc/x\n", NOW) == "_.._etc_x_-2026-W49.jsonl"
    assert events.file_name("", NOW) == "_-2026-W49.jsonl"


def test_a_huge_detail_is_cut_and_says_so():
    """No event is longer than MAX_LINE, whatever a caller puts into it."""
    deep: dict = {}
    place = deep
    for _ in range(500):
        place["x"] = {}
        place = place["x"]
    for detail in ({"passed": [{"path": "p" * 5000, "reason": "r" * 5000}] * 500}, {"deep": deep},
                   {str(number): "x" * 900 for number in range(1000)}, {"n": 10 ** 400, "f": float("nan")},
                   {"u": Unknown("timeout", "t")}, {"b": b"\xff", "s": {1, 2}}):
        line = events.line(one(detail=detail))
        assert len(line) <= events.MAX_LINE
        assert json.loads(line)["kind"] == "drain"
    assert "more)" in events.line(one(detail={"x": "y" * 2000})).decode()


def test_a_cut_last_line_is_not_glued_to_the_next(tmp_path):
    """After a crash in the middle of a line the next event starts a line of its own."""
    events.append(str(tmp_path), one(detail={"number": 1}))
    with open(path_of(tmp_path), "ab") as handle:
        handle.write(b'{"v":1,"id":"cut","ti')
    events.append(str(tmp_path), one(detail={"number": 2}))
    stats: dict = {}
    assert [event["detail"]["number"] for event in events.read(path_of(tmp_path), stats=stats)] == [1, 2]
    assert stats["bad"] == 1


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT])
def test_a_failing_disk_gives_false_and_no_exception(tmp_path, monkeypatch, number):
    """A full, read-only or broken disk is for the caller to say, not a reason to die."""
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))
    monkeypatch.setattr(os, "write", fail)
    assert events.append(str(tmp_path), one()) is False


def test_a_short_write_counts_as_failed(tmp_path, monkeypatch):
    """Half a line on a disk that filled up is not an event that was kept."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    assert events.append(str(tmp_path), one()) is False


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/null", path), os.mkdir])
def test_only_a_plain_file_is_written_to(tmp_path, make):
    """A FIFO, a link or a folder in the place of the file neither blocks nor is followed."""
    os.makedirs(os.path.dirname(path_of(tmp_path)))
    make(path_of(tmp_path))
    assert events.append(str(tmp_path), one()) is False


def test_syslog_takes_one_printable_datagram(tmp_path):
    """The fallback is one datagram without control characters; nobody listening is no error."""
    address = str(tmp_path / "log")
    assert events.syslog("x", address) is False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sink:
        sink.bind(address)
        assert events.syslog("a\nb\x1b[1m", address)
        assert events.syslog(one(), address)
        assert sink.recv(4096) == b"<27>gpuhealth[%d]: a?b?[1m" % os.getpid()
        assert b'"kind":"drain"' in sink.recv(4096)


def test_syslog_never_waits(tmp_path):
    """A full socket buffer makes it give up, not block."""
    address = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sink:
        sink.bind(address)
        assert any(events.syslog("x" * 900, address) is False for _ in range(10000))


def write_lines(path, *lines):
    path.write_bytes(b"\n".join(lines) + b"\n")


def test_reading_forgives_what_crashes_leave(tmp_path):
    """Zero bytes, glued and garbled lines, other types: skipped or saved, never the end of reading."""
    good = [events.line(one(detail={"n": number}))[:-1] for number in range(4)]
    write_lines(tmp_path / "a.jsonl", good[0], b"\0" * 50 + good[1], b"garbage", b"[1, 2]", b"7", b"",
                good[2][:40] + good[3], b"\xff\xfe", b'{"v":1,"id":"y","kind"')
    stats: dict = {}
    assert [event["detail"]["n"] for event in events.read(str(tmp_path / "a.jsonl"), stats=stats)] == [0, 1, 3]
    assert stats["bad"] == 5


def test_deeply_nested_json_is_a_bad_line(tmp_path):
    """A line made to exhaust the parser is skipped."""
    write_lines(tmp_path / "a.jsonl", b'{"v":' * 100000, events.line(one())[:-1])
    assert len(list(events.read(str(tmp_path)))) == 1


def test_unknown_versions_and_kinds_are_kept(tmp_path):
    """A newer writer's events are handed on as they are."""
    write_lines(tmp_path / "a.jsonl", b'{"v":9,"id":"z","kind":"new","more":[1]}', b'{"kind":"no id"}')
    assert list(events.read(str(tmp_path))) == [{"v": 9, "id": "z", "kind": "new", "more": [1]}, {"kind": "no id"}]


def test_duplicates_are_dropped_over_all_files(tmp_path):
    """The local file and its copy in one folder count once."""
    line = events.line(one())[:-1]
    write_lines(tmp_path / "n1-2026-W49.jsonl", line, line)
    write_lines(tmp_path / "copy.jsonl", line)
    stats: dict = {}
    assert len(list(events.read(str(tmp_path), stats=stats))) == 1
    assert stats["duplicates"] == 2


def test_since_leaves_out_old_weeks_and_old_events(tmp_path):
    """Files that ended long before are not even opened; a week of slack for clocks that stepped."""
    for when in (NOW - 60 * 86400, NOW - 9 * 86400, NOW - 3600):
        event = one(when=when)
        with open(tmp_path / events.file_name("n1", when), "ab") as handle:
            handle.write(events.line(event))
    stats: dict = {}
    found = list(events.read(str(tmp_path), since=NOW - 86400, stats=stats))
    assert [event["time"] for event in found] == [NOW - 3600]
    assert stats["files"] == 2


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path):
    """Only blocks are held; what is longer than any event is dropped."""
    with open(tmp_path / "a.jsonl", "wb") as handle:
        handle.truncate(200 << 20)
    with open(tmp_path / "a.jsonl", "ab") as handle:
        handle.write(b"\n" + events.line(one()))
    assert len(list(events.read(str(tmp_path)))) == 1


def test_pruning_keeps_the_weeks_that_were_asked_for(tmp_path):
    """Only event files of weeks before the limit go."""
    for when in (NOW - 200 * 86400, NOW - 20 * 86400, NOW):
        (tmp_path / events.file_name("n1", when)).write_text("")
    (tmp_path / "notes.txt").write_text("")
    assert event_files.prune(str(tmp_path), 10, NOW) == ["n1-2026-W20.jsonl"]
    assert len(os.listdir(tmp_path)) == 3
    assert event_files.prune(str(tmp_path / "none"), 10, NOW) == []


def mirrored(tmp_path, **more):
    cfg = dict({"shared_dir": str(tmp_path / "shared"), "service_user": ""}, **more)
    return events.mirror(str(tmp_path), cfg, "n1"), tmp_path / "shared" / "events" / "n1-2026-W49.jsonl"


def test_mirror_copies_new_lines_once(tmp_path):
    """The copy is the same bytes; doing it again, or with its memory lost, changes nothing."""
    os.mkdir(tmp_path / "shared")
    for _ in range(3):
        events.append(str(tmp_path), one())
    why, copy = mirrored(tmp_path)
    original = content(tmp_path)
    assert why == "" and copy.read_bytes() == original
    events.append(str(tmp_path), one())
    os.unlink(os.path.dirname(path_of(tmp_path)) + "/.mirror.json")
    assert mirrored(tmp_path)[0] == "" and mirrored(tmp_path)[0] == ""
    assert copy.read_bytes() == content(tmp_path)


def test_mirror_leaves_a_half_line_for_later(tmp_path):
    """Only whole lines are copied."""
    os.mkdir(tmp_path / "shared")
    events.append(str(tmp_path), one())
    whole = content(tmp_path)
    with open(path_of(tmp_path), "ab") as handle:
        handle.write(b'{"half')
    _, copy = mirrored(tmp_path)
    assert copy.read_bytes() == whole


def test_mirror_heals_a_copy_that_was_deleted(tmp_path):
    """Somebody removed the copy: it is whole again two rounds later."""
    os.mkdir(tmp_path / "shared")
    events.append(str(tmp_path), one())
    _, copy = mirrored(tmp_path)
    os.unlink(copy)
    events.append(str(tmp_path), one())
    mirrored(tmp_path)
    mirrored(tmp_path)
    assert copy.read_bytes() == content(tmp_path)


def test_mirror_says_why_not(tmp_path):
    """No shared folder there, or an unknown service user, is a text and no exception."""
    events.append(str(tmp_path), one())
    assert "FileNotFoundError" in mirrored(tmp_path)[0]
    assert mirrored(tmp_path, shared_dir="")[0] == ""
    if os.geteuid() == 0:
        assert "no user" in mirrored(tmp_path, service_user="no-such-user-here")[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_mirror_writes_as_the_service_user(tmp_path):
    """The copy belongs to the service user, who cannot read the original."""
    os.chmod(tmp_path, 0o755)
    for parent in list(tmp_path.parents)[:3]:
        if parent != parent.parent and str(parent) != "/tmp":
            os.chmod(parent, 0o755)
    os.mkdir(tmp_path / "shared")
    os.chown(tmp_path / "shared", 65534, 65534)
    os.chmod(tmp_path / "shared", 0o700)
    events.append(str(tmp_path), one())
    why, copy = mirrored(tmp_path, service_user="nobody")
    assert why == ""
    assert os.stat(copy).st_uid == 65534 and len(list(events.read(str(copy)))) == 1


def test_every_kind_is_documented_with_an_example_that_parses():
    """docs/events.md has each kind of KINDS, with an example that uses only the keys of the table."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "docs", "events.md"), encoding="utf-8") as handle:
        lines = [line.strip() for line in handle if line.startswith('{"v":1,')]
    examples = [json.loads(line) for line in lines]
    assert {event["kind"] for event in examples} == set(events.KINDS)
    for event in examples:
        assert set(event) == set(one()), event["kind"]
        assert set(event["detail"]) <= set(events.KINDS[event["kind"]][1]), event["kind"]
