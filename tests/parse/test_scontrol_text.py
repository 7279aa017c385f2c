"""scontrol's text and JSON, on output of real clusters and on what a user may put into a job."""
import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import scontrol_text
from slurm_gpuhealth.slurm import json_text

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "slurm", "data")
RELEASES = ("22.05", "24.11", "26.05")
WITH_JSON = ("24.11", "26.05")


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """The clusters' time zone."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(release, name):
    with open(os.path.join(DATA, release, name + ".txt"), newline="", errors="surrogateescape") as handle:
        return handle.read()


def job(release, name, node=None, restart=None):
    return scontrol_text.to_job(scontrol_text.one(text(release, name)), node, restart)


def files(release, ending):
    return sorted(name[:-len(ending)] for name in os.listdir(os.path.join(DATA, release)) if name.endswith(ending))


@pytest.mark.parametrize("release", RELEASES)
def test_running_job(release):
    """All fields of an ordinary job."""
    got = job(release, "running-admin-comment")
    assert got == got._replace(
        uid=2001, user="alice", partition="main", nodes=("n1",), batch_host="n1", gpus=(6,), restart=0,
        comment="gpuhealth:ckpt=/ckpt/run7", whole_node=False, array_job=None, array_task=None, state="RUNNING",
        end="running", exit_code="0:0", reason="None", batch=True, requeue=True, time_limit=93840, name="wrap",
        work_dir="/tmp", stdout="/tmp/o-%d.txt" % got.id, het_leader=None)
    assert 1796054000 < got.start < 1796060000


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("name", "comment"), [
    ("running-comment-with-fields", "x JobState=COMPLETED ExitCode=0:0 StdErr=/etc/passwd"),
    ("running-special-comment", "gpuhealth:ckpt=/ckpt/utf\u00e9 \"q\" 'q' \\ \t end "),
])
def test_comment_byte_for_byte(release, name, comment):
    """A comment with fields, quotes, tabs and a blank at its end comes out as it was given."""
    got = job(release, name)
    assert (got.comment, got.state, got.end, got.exit_code) == (comment, "RUNNING", "running", "0:0")
    assert got.stdout == "/tmp/o-%d.txt" % got.id


@pytest.mark.parametrize("release", RELEASES)
def test_job_name_of_two_words(release):
    """A name with a blank is one name."""
    assert job(release, "running-special-comment").name == "two words"


@pytest.mark.parametrize("release", RELEASES)
def test_array(release):
    """Each running task has a record with an id of its own; one of them keeps the array's."""
    records = [scontrol_text.to_job(record) for record in scontrol_text.jobs(text(release, "array-running"))]
    array = records[0].array_job
    assert sorted((one.array_job, one.array_task) for one in records) == [(array, 1), (array, 2), (array, 3)]
    assert len({one.gpus for one in records}) == 3
    assert array in {one.id for one in records}
    assert job(release, "array-one-task").array_task == 2


@pytest.mark.parametrize("release", RELEASES)
def test_array_that_partly_waits(release):
    """Under the array's own id the rest may still wait: then the task on the node is meant."""
    records = scontrol_text.jobs(text(release, "array-part-pending"))
    waiting = [record for record in records if record.states == ("PENDING",)]
    assert len(waiting) == 1
    array = waiting[0].fields["JobId"]
    assert scontrol_text.to_job(waiting[0]).array_task is None
    assert scontrol_text.choose(records, array) is None
    assert scontrol_text.choose(records, array, "n9") is None
    task = records[1].fields
    assert scontrol_text.choose(records, task["JobId"]).fields["ArrayTaskId"] == task["ArrayTaskId"]
    assert scontrol_text.target(records[1]) == "%s_%s" % (array, task["ArrayTaskId"])


@pytest.mark.parametrize("release", RELEASES)
def test_gpus_on_each_node(release):
    """The gres indices are those of the node that is asked about, ranges and single numbers alike."""
    assert job(release, "two-nodes", "n1").gpus == (3, 4, 5)
    assert job(release, "two-nodes", "n2").gpus == (0, 1, 2)
    assert job(release, "two-nodes", "n3").gpus == ()
    assert job(release, "running-split-index").gpus == (0, 6, 7)


@pytest.mark.parametrize("release", RELEASES)
def test_whole_node(release):
    """--exclusive is told apart from an ordinary job, whatever OverSubscribe says."""
    assert job(release, "exclusive").whole_node
    assert not job(release, "two-nodes").whole_node


@pytest.mark.parametrize("release", RELEASES)
def test_het_job(release):
    """A component names its leader."""
    leader, component = (scontrol_text.to_job(record) for record in scontrol_text.jobs(text(release, "het")))
    assert (leader.het_leader, component.het_leader) == (leader.id, leader.id)
    assert component.id == leader.id + 1
    assert leader.name == "wrap"


@pytest.mark.parametrize("release", RELEASES)
def test_kinds_of_jobs(release):
    """Jobs that cannot be requeued say so."""
    assert job(release, "salloc").batch is False
    assert job(release, "no-requeue").requeue is False
    assert job(release, "pending").state == "PENDING"
    assert job(release, "held").reason == "JobHeldAdmin"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(("name", "end", "by_json"), [
    ("end-completed", "completed", "completed"),
    ("end-exit-3", "failed", "failed"),
    ("end-segfault", "failed", "failed"),
    ("end-killed", "failed", "failed"),
    ("end-cancelled", "cancelled", "cancelled"),
    ("end-cancelled-trap-9", "", "cancelled"),
    ("end-cancelled-trap-0", "completed", "cancelled"),
    ("end-timeout", "timeout", "timeout"),
    ("end-preempted", "preempted", "preempted"),
    ("end-requeued", "requeued", "requeued"),
    ("end-requeuehold", "requeued", "requeued"),
    ("end-failed-then-requeued", "requeued", "requeued"),
    ("end-node-down-no-requeue", "node_fail", "node_fail"),
    ("end-node-down", "requeued", "requeued"),
])
def test_ends(release, name, end, by_json):
    """How a run ended, as far as the text tells while the job is COMPLETING, and as JSON tells."""
    assert job(release, name).end == end
    if release in WITH_JSON:
        record, = json_text.jobs(text(release, name + ".json"))
        assert scontrol_text.ended(record) == by_json


@pytest.mark.parametrize("release", RELEASES)
def test_restart_count_tells_a_requeue(release):
    """A record whose restart count is higher than the hook's belongs to a later run."""
    assert job(release, "end-requeued").restart == 1
    assert job(release, "running-admin-comment", restart=0).end == "running"
    record = scontrol_text.one(text(release, "end-completed"))
    record.fields["Restarts"] = "2"
    assert scontrol_text.ended(record, 1) == "requeued"
    assert scontrol_text.ended(record, 2) == "completed"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["hostile-newlines", "hostile-name-core"])
def test_hostile_records_are_refused(release, name):
    """A name or comment that holds the beginning or the state of a record: nothing of it is believed."""
    with pytest.raises(DataError):
        scontrol_text.one(text(release, name))


@pytest.mark.parametrize("release", WITH_JSON)
def test_hostile_records_as_json(release):
    """JSON tells the same jobs apart."""
    for name in ("hostile-newlines", "hostile-name-core", "hostile-comment-core"):
        record, = json_text.jobs(text(release, name + ".json"))
        got = scontrol_text.to_job(record)
        assert (got.state, got.end, got.exit_code, got.uid) == ("RUNNING", "running", "0:0", 2001)
    record, = json_text.jobs(text(release, "hostile-newlines.json"))
    assert scontrol_text.to_job(record).comment == "line1\n   JobState=COMPLETED\n\nJobId=7 JobName=evil"


@pytest.mark.parametrize("release", RELEASES)
def test_a_state_inside_a_line_is_no_state(release):
    """A whole core on one line of a comment does not look like one, as Slurm begins lines with its own."""
    got = job(release, "hostile-comment-core")
    assert (got.state, got.exit_code) == ("RUNNING", "0:0")
    assert got.comment.startswith("JobState=FAILED Reason=NonZeroExitCode")


@pytest.mark.parametrize("release", RELEASES)
def test_text_and_one_line_agree(release):
    """The form with -o gives the same record."""
    for name in files(release, ".oneline.txt"):
        if not name.startswith("hostile"):
            long = [scontrol_text.to_job(record) for record in scontrol_text.jobs(text(release, name))]
            short = [scontrol_text.to_job(record)
                     for record in scontrol_text.jobs(text(release, name + ".oneline"), one_line=True)]
            assert short == long, name


@pytest.mark.parametrize("release", WITH_JSON)
def test_text_and_json_agree(release):
    """The form with --json gives the same record, but for what only it can know."""
    compared = 0
    for name in files(release, ".json.txt"):
        if name.startswith("hostile") or name == "end-cancelled-trap-0" or name == "end-cancelled-trap-9":
            continue
        records = [scontrol_text.to_job(record) for record in json_text.jobs(text(release, name + ".json"))]
        for other, record in zip(scontrol_text.jobs(text(release, name)), records):
            # JSON has the reason without its detail, and prefers another one for a held job.
            assert record == scontrol_text.to_job(other)._replace(reason=record.reason,
                                                                  end=record.end), name
            compared += 1
    assert compared > 12


@pytest.mark.parametrize("release", RELEASES)
def test_nodes(release):
    """A node's states, partitions and boot time."""
    n1, n2 = scontrol_text.nodes(text(release, "nodes"))
    assert (n1.name, n1.state[0], n1.partitions) == ("n1", "ALLOCATED", ("main", "spare"))
    assert (n2.name, n2.state, n2.reason, n2.reason_time) == ("n2", ("IDLE",), "", None)
    assert 1796050000 < n1.boot_time < 1796060000


@pytest.mark.parametrize("release", RELEASES)
def test_drained_node(release):
    """The reason comes without the user and the time that Slurm puts behind it."""
    node, = scontrol_text.nodes(text(release, "node-drain"))
    assert "DRAIN" in node.state
    assert (node.reason, node.reason_user) == ("GH-XID79 gpu3 fell off bus [ev=0a1b2c3d]", "root")
    assert 1796054000 < node.reason_time < 1796060000


@pytest.mark.parametrize("release", RELEASES)
def test_odd_reason(release):
    """A reason with quotes, brackets, `=` and a second line is one reason, and gives the node no state."""
    node, = scontrol_text.nodes(text(release, "node-drain-odd"))
    assert node.reason == "\"odd\", a=b [x@y] it's\nState=IDLE"
    assert (node.state[:2], node.reason_user) == (("ALLOCATED", "DRAIN"), "root")


def test_node_in_a_maintenance_reservation():
    """MAINT is one of the states."""
    node, = scontrol_text.nodes(text("24.11", "node-maint"))
    assert "MAINT" in node.state


@pytest.mark.parametrize(("names", "flags"), [
    (["IDLE"], ("IDLE",)), (["DOWN*"], ("DOWN", "NOT_RESPONDING")), (["mixed", "drain"], ("MIXED", "DRAIN")),
    (["DRAINED"], ("DRAIN",)), (["IDLE", "MAINTENANCE"], ("IDLE", "MAINT")), (["IDLE~"], ("IDLE",)), ([""], ()),
])
def test_node_states(names, flags):
    """Long, short and marked forms of a state are one."""
    assert scontrol_text.node_state(names) == flags


@pytest.mark.parametrize(("form", "value"), [
    ("1796055308", 1796055308.0), ("2026-11-30T16:15:08", 1796055308.0), ("Unknown", None), ("None", None),
    ("N/A", None), ("", None), ("2026-13-01T00:00:00", 1798761600.0), ("9" * 30, None)])
def test_when(form, value):
    """Times as numbers or in the standard form; anything else is no time."""
    assert scontrol_text.when(form) == value


@pytest.mark.parametrize(("form", "value"), [
    ("01:00", 60), ("01:00:00", 3600), ("1-00:00:00", 86400), ("UNLIMITED", None), ("Partition_Limit", None)])
def test_seconds(form, value):
    """Durations in Slurm's forms."""
    assert scontrol_text.seconds(form) == value


@pytest.mark.parametrize(("gres", "gpus"), [
    ("gpu:h100:3(IDX:0-1,5)", (0, 1, 5)), ("gpu:2(IDX:2-3)", (2, 3)), ("gpu:a:1(IDX:4),gpu:b:1(IDX:0)", (0, 4)),
    ("shard:4(IDX:1),gpu:h100:1(IDX:7)", (7,)), ("gpu:h100:0(IDX:)", ()), ("gpu:1(IDX:N/A)", ()), ("", ()),
    ("gpu:1(IDX:0-99999999)", ())])
def test_gres_indices(gres, gpus):
    """Only gpu counts, of each type; an absurd list is none."""
    assert scontrol_text.gpus_on((("n[1-2]", gres),), "n2") == gpus


@pytest.mark.parametrize("broken", ["", "{", "[]", "{}", '{"jobs": 3}', '{"jobs": [3]}', '{"jobs": [{}]}', "[" * 9999])
def test_what_is_no_json(broken):
    """Anything that is not Slurm's JSON is refused with one error."""
    with pytest.raises(DataError):
        json_text.jobs(broken)


def test_json_of_older_releases():
    """Before 23.11 states were one word and numbers plain."""
    record, = json_text.jobs('{"jobs": [{"job_id": 7, "job_state": "RUNNING", "restart_cnt": 1, "array_job_id": 0,'
                             ' "array_task_id": null, "time_limit": 60, "nodes": "n1", "exit_code": 768,'
                             ' "gres_detail": ["gpu:2(IDX:0-1)"], "start_time": 1796055308, "batch_flag": true}]}')
    got = scontrol_text.to_job(record)
    assert (got.id, got.state, got.restart, got.time_limit, got.exit_code, got.gpus) == (
        7, "RUNNING", 1, 3600, "3:0", (0, 1))


HOSTILE = st.lists(st.sampled_from([
    "\n", "   ", " ", "JobId=7 JobName=x", "JobState=FAILED Reason=None Dependency=(null)",
    "Requeue=1 Restarts=5 BatchFlag=1 Reboot=0 ExitCode=9:9", "UserId=root(0) GroupId=root(0) MCS_label=N/A",
    "Network=(null)", "StdOut=/x", "Comment=y", "NodeList=n9", "Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:8(IDX:0-7)",
    "Partition=other", "DerivedExitCode=0:0", "z"]), max_size=14).map("".join)


@settings(max_examples=300, deadline=None)
@given(name=HOSTILE, comment=HOSTILE, work_dir=HOSTILE)
def test_no_text_of_a_user_can_change_slurms_fields(name, comment, work_dir):
    """Whatever a user writes into name, comment and path: the real record is read, or it is refused."""
    real = text("24.11", "end-exit-3")
    real = real.replace("JobName=wrap", "JobName=" + name, 1).replace(
        "WorkDir=/tmp", "WorkDir=%s\n   Comment=%s " % (work_dir, comment), 1)
    try:
        record = scontrol_text.one(real)
    except DataError:
        return
    got = scontrol_text.to_job(record, "n1")
    assert (got.state, got.end, got.exit_code, got.restart, got.nodes, got.gpus, got.partition) == (
        "COMPLETING", "failed", "3:0", 0, ("n1",), job("24.11", "end-exit-3", "n1").gpus, "main")
    assert got.uid in (2001, None)
