"""The commands evidence, replay, report, status, job, events and node, on fixture nodes."""
import io
import json
import os
import sys
import time

import builders
import fakes
import pytest

from slurm_gpuhealth import decide, event_files, events, job_history, model, paths
from slurm_gpuhealth.cli import main
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh
from slurm_gpuhealth.evidence import replay, store
from slurm_gpuhealth.state import State

XID = "NVRM: Xid (PCI:0000:5d:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
REASON = "GH-XID79 gpu3 fell off bus [ev=3fa9c1]"


class Site:
    """A fixture node n1 with a fake Slurm behind it."""

    def __init__(self, folder):
        self.root = str(folder / "root")
        self.slurm = fakes.install(self.root + "/usr/bin")
        builders.write_node(self.root, {"/proc/sys/kernel/hostname": "n1.example\n"})

    def run(self, *words):
        """(exit code, what was printed)."""
        out = io.StringIO()
        code = main.main(["--root", self.root, *words], out)
        return code, out.getvalue()

    def json(self, *words):
        code, text = self.run(*words, "--json")
        return code, json.loads(text)

    def event(self, kind, node="n1", **more):
        more.setdefault("when", time.time() - 60)
        assert events.append(self.root, events.event(kind, node, "b", **more))

    def evidence(self, ident="3fa9c1"):
        facts = builders.healthy_node(klog=builders.log(XID))
        cfg = dict(fresh(DEFAULTS), mode="full")
        situation = model.Situation(phase="healthcheck", node="n1", now=builders.NOW, boot_id=builders.BOOT_ID,
                                    mode="full", jobs=(), node_record=model.NodeRecord("n1", ("IDLE",)))
        findings = replay.findings_of(facts, cfg, "healthcheck")
        incident = model.Incident(ident, "k", builders.BOOT_ID, "GH-XID79", model.Subject("gpu", 3), builders.NOW)
        folder = store.open_incident(self.root, cfg, incident, facts, situation, cfg, findings, [XID], os.devnull)
        folder.decide(situation, decide.decide(findings, situation, cfg), findings)
        folder.lack("lspci-vv.txt", "lspci is not \x1b[31minstalled")
        folder.finish()
        return folder.path


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


# -- evidence, replay

def test_evidence_of_a_node_without_incidents(site):
    """Nothing kept is said kindly."""
    assert site.run("evidence", "list")[0] == 0 and "No evidence" in site.run("evidence", "list")[1]
    assert site.json("evidence", "list")[1] == {"v": 1, "evidence": []}


def test_evidence_list_and_show(site):
    """Where it is, whether it is complete, what is missing and why; a hostile text stays harmless."""
    path = site.evidence()
    code, found = site.json("evidence", "list")
    assert (code, found["evidence"][0]["path"], found["evidence"][0]["state"]) == (0, path, "complete")
    assert found["evidence"][0]["missing"] == 1
    code, text = site.run("evidence", "show", "3fa")
    assert code == 0 and "lspci is not \\x1b[31minstalled" in text and "facts.json" in text
    assert site.json("evidence", "show", path)[1]["manifest"]["id"] == "3fa9c1"


def test_evidence_verify_and_its_exit_codes(site):
    """0 as collected, 1 incomplete, 2 changed."""
    path = site.evidence()
    assert site.run("evidence", "verify", "3fa9c1")[0] == 0
    store_manifest = os.path.join(path, "manifest.json")
    with open(store_manifest) as handle:
        plain = json.load(handle)
    with open(store_manifest, "w") as handle:
        json.dump(dict(plain, state="open"), handle)
    code, text = site.run("evidence", "verify", "3fa9c1")
    assert code == 1 and "incomplete" in text
    with open(os.path.join(path, "facts.json"), "a") as handle:
        handle.write(" ")
    code, found = site.json("evidence", "verify", "3fa9c1")
    assert (code, found["changed"], found["ok"]) == (2, ["facts.json"], False)


def test_evidence_that_is_not_there(site, capsys):
    """One line and exit 66."""
    assert site.run("evidence", "verify", "nope")[0] == 66
    assert "evidence list" in capsys.readouterr().err


def test_evidence_prune(site):
    """By the configured limits."""
    site.evidence()
    code, found = site.json("evidence", "prune")
    assert code == 0 and (len(found["removed"]) == 1) is (time.time() - builders.NOW > 90 * 86400)


def test_replay_says_same_or_different(site):
    """Exit 0 for the same decision, 2 for another one, 64 for a change that names nothing."""
    site.evidence()
    code, text = site.run("replay", "3fa9")
    assert code == 0 and "the same as the one that was taken" in text and "drain" in text
    code, found = site.json("replay", "3fa9", "--set", "klog.events.0.code=31")
    assert (code, found["same"]) == (2, False) and found["stored"]["code"] == "GH-XID79"
    assert "they differ in" in site.run("replay", "3fa9", "--set", "klog.events.0.code=31")[1]
    assert site.run("replay", "3fa9", "--set", "klog.nothing=31")[0] == 64


# -- report, events

def test_report_without_events(site):
    """Says so, exit 0."""
    code, text = site.run("report")
    assert code == 0 and "No events" in text
    assert site.json("report")[1]["events"] == 0


def test_report_of_the_last_week(site, tmp_path):
    """Old events are left out; -o writes the file; --format json is --json."""
    site.event("incident", code="GH-XID79", incident="a", detail={"since": 1})
    site.event("incident", code="GH-XID79", incident="b", when=time.time() - 30 * 86400)
    assert site.json("report")[1]["incidents"]["total"] == 1
    assert site.json("report", "--since", "8w")[1]["incidents"]["total"] == 2
    code, text = site.run("report", "--since", "all", "--format", "json", "-o", str(tmp_path / "out.json"))
    assert (code, text) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["incidents"]["total"] == 2
    assert "GH-XID79" in site.run("report")[1]


@pytest.mark.parametrize("words,code", [
    (("--since", "yesterday"), 64), (("--events", "/no/such/folder"), 66), (("--format", "pdf"), 64),
    (("-o", "/no/such/folder/x"), 64)])
def test_report_with_wrong_arguments(site, words, code, capsys):
    """One line each."""
    assert site.run("report", *words)[0] == code
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_report_prefers_the_shared_folder(site, tmp_path):
    """Where all nodes' events are together."""
    shared = tmp_path / "shared"
    (shared / "events").mkdir(parents=True)
    builders.write_node(site.root, {paths.CONFIG: "shared_dir: %s\n" % shared})
    with open(shared / "events" / events.file_name("n9", time.time()), "wb") as handle:
        handle.write(events.line(events.event("incident", "n9", code="GH-XID79")))
    assert site.json("report")[1]["incidents"]["by_node"] == {"n9": 1}


def test_events_tail_and_export(site):
    """The last ones for people, all of them in the order of time for programs."""
    for number in range(5):
        site.event("drain" if number % 2 else "incident", code="GH-XID%d" % number, subject="gpu3\x1b[1m", job=7,
                   restart=0, when=time.time() - 100 * (5 - number), detail={"reason": "r%d" % number})
    code, text = site.run("events", "tail", "-n", "2", "--kind", "drain")
    assert code == 0 and len(text.splitlines()) == 2 and "GH-XID3" in text and "\x1b" not in text
    lines = site.run("events", "export")[1].splitlines()
    assert [json.loads(line)["code"] for line in lines] == ["GH-XID%d" % number for number in range(5)]
    assert len(site.json("events", "tail", "--node", "n1")[1]["events"]) == 5
    assert site.run("events", "tail", "--node", "n2") == (0, "No events.\n")


# -- status

@pytest.mark.allow_subprocess
def test_status_shows_what_is_out(site):
    """Node, code, age, reason and evidence of what we drained; an admin's drain is shown as such."""
    site.slurm.add_node("n1", state=["IDLE", "DRAIN"], reason=REASON, reason_user="root",
                        reason_time=int(time.time()) - 300)
    site.slurm.add_node("n2", state=["IDLE", "DRAIN"], reason="fan \x1b[1mbroken", reason_user="ana",
                        reason_time=int(time.time()) - 7200)
    site.slurm.add_node("n3")
    code, found = site.json("status")
    rows = {row["node"]: row for row in found["nodes"]}
    assert code == 0 and set(rows) == {"n1", "n2"} and found["total"] == 3
    assert (rows["n1"]["code"], rows["n1"]["subject"], rows["n1"]["evidence"], rows["n1"]["ours"]) == (
        "GH-XID79", "gpu3", "3fa9c1", True)
    assert 290 <= rows["n1"]["age"] <= 400 and not rows["n2"]["ours"]
    text = site.run("status")[1]
    assert "2 of 3 nodes out, 1 by gpuhealth" in text and "\x1b" not in text
    assert len(site.json("status", "--all")[1]["nodes"]) == 3


@pytest.mark.allow_subprocess
def test_status_when_all_is_well(site):
    """One line."""
    site.slurm.add_node("n1")
    assert site.run("status") == (0, "All 1 nodes are in service.\n")


@pytest.mark.allow_subprocess
def test_status_without_slurmctld_shows_the_events(site):
    """Exit 3, a note, and what we know ourselves: the last word about each node."""
    site.slurm.set(away=-1)
    site.event("drain", code="GH-XID79", subject="gpu3", incident="3fa9c1", detail={"reason": REASON})
    site.event("drain", "n2", code="GH-XID79", when=time.time() - 500)
    site.event("resume-node", "n2", when=time.time() - 400)
    code, found = site.json("status")
    assert code == 3 and [row["node"] for row in found["nodes"]] == ["n1"] and "slurmctld" in found["notes"][0]
    assert found["nodes"][0]["reason"] == REASON


# -- job

def test_job_shows_its_history(site):
    """Why it was requeued, where it resumes, and what was passed over and why."""
    job_history.append_history(site.root, {}, os.geteuid(), None, 7, {
        "time": 1796040000.0, "restart": 0, "what": "requeued", "node": "n1", "code": "GH-XID79", "reason": "lost"})
    job_history.append_history(site.root, {}, os.geteuid(), None, 7, {
        "time": 1796040010.0, "restart": 1, "what": "resumes", "node": "n2", "reason": "ok",
        "resume": {"path": "/c/\x1b400", "step": 400, "level": "verified"},
        "passed": [{"path": "/c/500", "reason": "cut off"}, "x"]})
    code, text = site.run("job", "7")
    assert code == 0 and "\x1b" not in text
    for words in ("requeued on n1 (restart 0): GH-XID79 lost", "resumes from /c/\\x1b400, step 400 (verified)",
                  "passed over /c/500: cut off"):
        assert words in text
    assert len(site.json("job", "7")[1]["entries"]) == 2


def test_job_from_the_events(site):
    """Without a history root reads the events."""
    site.event("requeue", job=7, restart=0, code="GH-XID79", detail={"why": "cannot go on"})
    site.event("resume-point", "n2", job=7, restart=1,
               detail={"path": "/c/4", "step": 4, "level": "verified", "passed": [["/c/5", "cut off"]]})
    text = site.run("job", "7")[1]
    assert "cannot go on" in text and "resumes from /c/4, step 4" in text and "passed over /c/5: cut off" in text


def test_job_shows_the_answer_of_the_run_that_is_here(site):
    """What prolog left for the run on this node."""
    builders.write_node(site.root, {"/run/gpuhealth/job-7.json": json.dumps(
        {"v": 1, "job": 7, "restart": 2, "path": "/c/9", "step": 9, "level": "verified"})})
    assert "now: restart 2; resumes from /c/9, step 9 (verified)" in site.run("job", "7")[1]


@pytest.mark.parametrize("word,code", [("8", 66), ("../../etc/passwd", 64), ("7;x", 64)])
def test_job_that_is_unknown_or_none(site, word, code):
    """Nothing recorded is 66, no job id is 64."""
    assert site.run("job", word)[0] == code


# -- node

def drained(site, reason=REASON, **more):
    site.slurm.add_node("n1", state=["IDLE", "DRAIN"] + more.pop("flags", []), reason=reason, reason_user="root")
    state = State(site.root)
    state.save_incidents([model.Incident("3fa9c1", "k", "b", "GH-XID79", model.Subject("gpu", 3), 1.0, REASON, "/e",
                                         True)], [])


def shared_events(site):
    return list(event_files.read(paths.under(site.root, paths.EVENTS)))


@pytest.mark.allow_subprocess
def test_node_status(site):
    """Slurm's view, what is open here, what is acknowledged; exit 2 while it is out."""
    drained(site)
    code, found = site.json("node", "status")
    assert code == 2 and found["slurm"]["ours"] and found["incidents"][0]["id"] == "3fa9c1"
    assert "open: GH-XID79 gpu3" in site.run("node", "status")[1]
    builders.write_node(site.root, {paths.KILL_SWITCH: ""})
    assert "switched off" in site.run("node", "status")[1]
    site.slurm.set(away=-1)
    assert site.run("node", "status")[0] == 3


@pytest.mark.allow_subprocess
def test_node_resume_closes_its_incidents(site):
    """A node that we drained comes back, its incidents end, and the event says who."""
    drained(site)
    code, text = site.run("node", "resume")
    assert code == 0 and "back in service" in text
    assert "DRAIN" not in site.slurm.node("n1")["state"]
    [incident], _ = State(site.root).incidents()
    assert incident.closed
    [event] = shared_events(site)
    assert (event["kind"], event["detail"]["incidents"]) == ("resume-node", ["3fa9c1"])


@pytest.mark.allow_subprocess
@pytest.mark.parametrize("reason,flags,word", [
    ("fan broken", [], "not drained by gpuhealth"), ("Kill task failed", [], "not drained by gpuhealth"),
    ("", [], "no reason"), (REASON, ["MAINT"], "MAINT")])
def test_node_resume_leaves_what_is_not_ours(site, reason, flags, word, capsys):
    """An admin's drain and a maintenance are not touched."""
    drained(site, reason, flags=flags)
    assert site.run("node", "resume")[0] == 64
    assert word in capsys.readouterr().err and "DRAIN" in site.slurm.node("n1")["state"]
    assert shared_events(site) == []


@pytest.mark.allow_subprocess
def test_node_drain_by_hand(site, capsys):
    """With a reason of our grammar; not over somebody's, not twice, not with a code that does not exist."""
    site.slurm.add_node("n1")
    assert site.run("node", "drain", "GH-PCIE-WIDTH", "--subject", "gpu5", "--reason", "x8; since\nthe repair")[0] == 0
    reason = site.slurm.node("n1")["reason"]
    assert reason.startswith("GH-PCIE-WIDTH gpu5 x8; since") and "\n" not in reason
    assert site.run("node", "drain", "GH-PCIE-WIDTH")[0] == 64 and "already" in capsys.readouterr().err
    site.slurm.add_node("n2", state=["DOWN"], reason="look at this", reason_user="ana")
    assert site.run("node", "drain", "GH-PCIE-WIDTH", "--node", "n2")[0] == 64
    assert site.run("node", "drain", "GH-NO-SUCH", "--node", "n2")[0] == 64
    assert site.run("node", "drain", "GH-XID79", "--subject", "the third", "--node", "n2")[0] == 64
    assert [event["kind"] for event in shared_events(site)] == ["drain"]


def test_node_ack_and_clear(site, capsys):
    """Kept until its time, replaced when given again, taken back by --clear."""
    assert site.run("node", "ack", "GH-PCIE-WIDTH", "--subject", "gpu5", "--until", "14d")[0] == 0
    assert site.run("node", "ack", "GH-PCIE-WIDTH", "--subject", "gpu5", "--until", "2d")[0] == 0
    _, [ack] = State(site.root).incidents()
    assert (ack.code, ack.subject) == ("GH-PCIE-WIDTH", "gpu5") and 1.9 < (ack.until - time.time()) / 86400 < 2.1
    assert site.run("node", "ack", "GH-PCIE-WIDTH", "--subject", "gpu5", "--clear")[0] == 0
    assert State(site.root).incidents()[1] == []
    for words in (("GH-PCIE-WIDTH", "--clear"), ("GH-PCIE-WIDTH",), ("GH-PCIE-WIDTH", "--until", "2020-01-01"),
                  ("GH-PCIE-WIDTH", "--until", "1d", "--clear"), ("NONSENSE", "--until", "1d")):
        assert site.run("node", "ack", *words)[0] == 64, words
    assert [event["action"] for event in shared_events(site)] == ["ack", "ack", "clear"]


def test_an_ack_really_keeps_a_fault_from_draining(site):
    """The subject that the command writes is the one that the decision compares with."""
    site.run("node", "ack", "GH-XID79", "--subject", "gpu3", "--until", "14d")
    _, acks = State(site.root).incidents()
    facts = builders.healthy_node(klog=builders.log(XID))
    cfg = dict(fresh(DEFAULTS), mode="full")
    situation = model.Situation(phase="healthcheck", now=time.time(), mode="full", jobs=(),
                                node_record=model.NodeRecord("n1", ("IDLE",)))
    findings = replay.findings_of(facts, cfg, "healthcheck")
    assert decide.decide(findings, situation, cfg).reason
    known = decide.decide(findings, situation._replace(acks=tuple(acks)), cfg)
    assert not any(action.kind == "drain" for action in known.actions)


def test_every_command_has_help_with_an_example(capsys):
    """-h ends with 0 and shows how it is used."""
    for command in ("evidence", "replay", "report", "status", "job", "events", "node"):
        assert main.main([command, "-h"]) == 0
        assert "example:" in capsys.readouterr().out, command
    assert sys.stdout is not None
