"""The report: its numbers, and that names in it stay harmless."""
import itertools
import json
import random

import pytest

from slurm_gpuhealth import events
from slurm_gpuhealth.report import aggregate, build, text

NOW = 1796040000.0


def event(kind, node="n1", when=0.0, code="GH-XID79", **more):
    return events.event(kind, node, "b", when=NOW + when, code=code, **more)


def story():
    """One fault as the hooks tell it, on two nodes: incident, drain, requeue, and the restart elsewhere."""
    resume = {"path": "/c/step-400", "step": 400, "level": "verified", "mtime": NOW - 3600}
    return [
        event("incident", incident="a1", subject="gpu3", detail={"since": NOW - 2}),
        event("drain", when=1, incident="a1", subject="gpu3", detail={"reason": "GH-XID79 gpu3 fell off bus [ev=a1]"}),
        event("requeue", when=2, incident="a1", job=7, restart=0,
              detail={"fault_time": NOW, "gpus": 8, "why": "cannot go on", "start_in": 6, "started": NOW - 7200}),
        event("resume-point", "n2", when=12, code="", job=7, restart=1,
              detail=dict(resume, passed=[{"path": "/c/step-500", "reason": "cut off"}])),
        event("notify", when=1, detail={"outcome": "failed: webhook timed out"}),
    ]


def test_one_fault_from_end_to_end():
    """Drain after 3 s, restart after 12 s, one hour on eight GPUs lost, one checkpoint passed over."""
    found = aggregate.aggregate(story())
    assert found["incidents"]["by_code"] == [
        {"code": "GH-XID79", "count": 1, "nodes": 1, "title": found["incidents"]["by_code"][0]["title"]}]
    assert found["incidents"]["by_layer"] == {"hardware": 1} and found["incidents"]["by_node"] == {"n1": 1}
    assert found["drains"]["seconds_from_fault"] == {"count": 1, "median": 3.0, "longest": 3.0}
    assert found["restarts"]["seconds_from_fault"] == {"count": 1, "median": 12.0, "longest": 12.0}
    assert found["gpu_hours_lost"] == {"total": 8.0, "known": 1, "unknown": 0, "worst": 8.0}
    assert found["restarts"]["by_level"] == {"verified": 1} and found["restarts"]["passed_over"] == 1
    [row] = found["restarts"]["jobs"]
    assert (row["job"], row["node"], row["again_on"], row["resume"]["step"]) == ("7", "n1", "n2", 400)
    assert row["passed"] == [{"path": "/c/step-500", "reason": "cut off"}]
    assert found["out"] == [{"node": "n1", "since": NOW + 1, "code": "GH-XID79", "subject": "gpu3",
                             "reason": "GH-XID79 gpu3 fell off bus [ev=a1]"}]
    assert found["notify_failed"] == 1 and (found["events"], found["nodes"]) == (5, 2)


def test_the_order_of_events_does_not_matter():
    """Nodes' files are read one after the other, so a restart may be seen before its requeue."""
    wanted = aggregate.aggregate(story())
    for order in itertools.permutations(story()[:4]):
        assert aggregate.aggregate(list(order) + story()[4:]) == wanted


def test_two_tallies_add_up_to_one():
    """What two processes counted is what one would have."""
    events_ = story() + [
        event("incident", "n2", code="GH-MNT-GONE"), event("hold", "n2", job=9, detail={"message": "m"}),
        event("unacted", "n2", detail={"why": "w"}), event("internal-error", "n2")]
    first, second = aggregate.Tally(), aggregate.Tally()
    first.see([one for one in events_ if one["node"] == "n1"])
    second.see([one for one in events_ if one["node"] == "n2"])
    first.add(second)
    assert first.report(None, None) == aggregate.aggregate(events_)


def test_a_node_that_was_resumed_is_not_out():
    """Only the last word about a node counts, whatever order it is read in."""
    back = event("resume-node", when=60)
    for order in (story() + [back], [back] + story()):
        found = aggregate.aggregate(order)
        assert found["out"] == [] and found["drains"]["resumed"] == 1


@pytest.mark.parametrize("back", [
    event("finding", when=60, action="closed", detail={"seen": "node was resumed"}),
    event("brake", when=2, detail={"taken_back": True})])
def test_a_node_that_came_back_otherwise_is_not_out(back):
    """Resumed by hand with scontrol (its incident is closed then), or given back by the brake."""
    found = aggregate.aggregate(story() + [back])
    assert found["out"] == [] and found["drains"]["resumed"] == 0


def test_a_requeue_that_two_nodes_saw_counts_once():
    """The hooks of two nodes of one job tell of one requeue."""
    twice = story() + [event("requeue", "n3", when=3, job=7, restart=0, detail={"gpus": 4, "fault_time": NOW + 3})]
    assert aggregate.aggregate(twice)["requeues"]["total"] == 1
    assert aggregate.aggregate(twice)["gpu_hours_lost"]["total"] == 8.0


@pytest.mark.parametrize("detail,expected", [
    ({"gpus": 2, "resume": {"path": "/c", "mtime": NOW - 1800}}, 1.0),      # known beforehand
    ({"gpus": 2, "resume": {"path": "/c", "mtime": NOW + 50}}, 0.0),        # saved after the fault: nothing lost
    ({"gpus": 2}, None), ({"resume": {"path": "/c", "mtime": NOW}}, None), ({"gpus": "x", "resume": 7}, None)])
def test_gpu_hours_of_one_requeue(detail, expected):
    """GPUs times the time from the checkpoint to the fault; unknown stays unknown, and is counted."""
    found = aggregate.aggregate([event("requeue", job=1, restart=0, detail=dict(detail, fault_time=NOW))])
    lost = found["gpu_hours_lost"]
    assert (lost["total"], lost["unknown"]) == (expected or 0.0, 1 if expected is None else 0)


def test_from_the_beginning_all_since_the_start_is_lost():
    """No checkpoint: the whole run up to the fault."""
    found = aggregate.aggregate([
        event("requeue", job=1, restart=0, detail={"gpus": 4, "fault_time": NOW, "started": NOW - 3600}),
        event("job-started-over", "n2", when=9, job=1, restart=1, detail={"message": "empty folder"})])
    assert found["gpu_hours_lost"]["total"] == 4.0 and found["restarts"]["started_over"] == 1


def test_a_restart_that_was_not_ours_is_counted_as_a_restart():
    """A crashed node's job resumes too; without a requeue of ours nothing is said of hours lost."""
    found = aggregate.aggregate([event("resume-point", job=3, restart=1, detail={"path": "/c", "level": "verified"})])
    assert found["restarts"]["resumed"] == 1 and found["requeues"]["total"] == 0
    assert found["gpu_hours_lost"] == {"total": 0, "known": 0, "unknown": 0, "worst": 0.0}


NASTY: list = [None, 7, "x", [], {}, True, float("nan"), {"detail": 3}]


@pytest.mark.parametrize("seed", range(20))
def test_any_json_is_survived(seed):
    """Events of any shape, as a newer or a broken writer might leave them, never end the report."""
    rnd = random.Random(seed)

    def value(depth=2):
        if depth and rnd.random() < 0.3:
            return {rnd.choice(("path", "passed", "resume", "gpus", "since", "fault_time", "x")): value(depth - 1)
                    for _ in range(3)}
        return rnd.choice(NASTY + [NOW, "n1", ["a", {"path": 1}]])

    found = []
    for _ in range(200):
        one = event(rnd.choice(sorted(events.KINDS)), detail=value())
        for key in rnd.sample(sorted(one), 3):
            one[key] = value() if key != "kind" or rnd.random() < 0.2 else one[key]
        found.append(one)
    report = aggregate.aggregate(found)
    assert text.render(report)
    json.dumps(report)


def test_nothing_at_all_says_so_kindly():
    """No events is not an error."""
    found = aggregate.aggregate((), NOW - 86400, None, NOW)
    assert "No events in this time" in text.render(found) and found["events"] == 0


def test_hostile_names_are_made_visible():
    """No escape sequence and no line end of a user's path reaches the terminal."""
    nasty = "/c/\x1b]0;owned\x07\n\u202e\ud800x"
    found = aggregate.aggregate([
        event("requeue", nasty, code=nasty, job=nasty, restart=0, detail={"why": nasty, "gpus": 1}),
        event("resume-point", nasty, job=nasty, restart=1, detail={
            "path": nasty, "level": nasty, "step": nasty, "passed": [{"path": nasty, "reason": nasty}]}),
        event("hold", nasty, code=nasty, job=nasty, detail={"message": nasty}),
        event("drain", nasty, code=nasty, incident=nasty, detail={"reason": nasty}),
        event("incident", nasty, code=nasty, incident=nasty), event("unacted", detail={"why": nasty}),
        event("internal-error", detail={"error": nasty}), event("spool", detail={"what": nasty})])
    shown = text.render(found)
    assert all(char.isprintable() for char in shown.replace("\n", "")) and "\\x1b" in shown
    shown.encode("ascii", "strict") if shown.isascii() else shown.encode("utf-8")


def test_the_text_names_what_counts():
    """Codes, nodes, jobs, where they resume and what was passed over."""
    shown = text.render(aggregate.aggregate(story(), NOW - 7 * 86400, None, NOW + 100))
    for words in ("Incidents: 1 (hardware 1)", "GH-XID79", "job 7 requeued on n1", "resumes at step 400 (verified)",
                  "/c/step-400 on n2", "passed over /c/step-500: cut off", "fault: 8.0", "median 12 s", "median 3.0 s",
                  "notifications that failed: 1", "Out at the end of this time: 1"):
        assert words in shown, words


def write_folder(folder, count=3000, nodes=7):
    rnd = random.Random(3)
    kinds = ["finding"] * 5 + ["incident", "drain", "requeue", "resume-point", "resume-node", "hold", "unacted"]
    for _ in range(count):
        kind = rnd.choice(kinds)
        one = event(kind, "node%d" % rnd.randrange(nodes), rnd.random() * 86400, incident="%x" % rnd.randrange(500),
                    job=rnd.randrange(300), restart=int(kind == "resume-point"),
                    detail={"gpus": 8, "mtime": NOW - 100, "path": "/c", "level": "verified", "since": NOW})
        with open(folder / events.file_name(one["node"], one["time"]), "ab") as handle:
            handle.write(events.line(one))


def test_one_and_several_processes_give_the_same_report(tmp_path, monkeypatch):
    """The numbers do not depend on how the work was shared."""
    write_folder(tmp_path)
    monkeypatch.setattr(build, "_WORTH_IT", 0)
    alone, alone_stats = build.build(str(tmp_path), now=NOW, workers=1)
    shared, shared_stats = build.build(str(tmp_path), now=NOW, workers=3)
    assert alone == shared and alone_stats == shared_stats
    assert alone["events"] == 3000


def test_a_nodes_events_in_two_files_are_counted_once(tmp_path, monkeypatch):
    """Copies under another name would go to another process: then one process counts all."""
    write_folder(tmp_path, 300, 3)
    monkeypatch.setattr(build, "_WORTH_IT", 0)
    for name in list(tmp_path.iterdir()):
        (tmp_path / ("copy-" + name.name)).write_bytes(name.read_bytes())
    found, stats = build.build(str(tmp_path), now=NOW, workers=3)
    assert found["events"] == 300 and stats["duplicates"] == 300


def test_the_numbers_equal_an_independent_count(tmp_path):
    """Counted again the plain way, from the files."""
    write_folder(tmp_path)
    found, _ = build.build(str(tmp_path), now=NOW)
    lines = [json.loads(line) for name in tmp_path.iterdir() for line in name.read_text().splitlines()]
    kinds = {kind: [one for one in lines if one["kind"] == kind] for kind in {one["kind"] for one in lines}}
    assert found["kinds"] == {kind: len(kinds[kind]) for kind in sorted(kinds)}
    assert found["incidents"]["total"] == len(kinds["incident"])
    assert found["drains"]["total"] == len(kinds["drain"])
    assert found["holds"]["total"] == len(kinds["hold"])
    assert found["requeues"]["total"] == len({(one["job"], one["restart"]) for one in kinds["requeue"]})
