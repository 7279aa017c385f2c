"""The decision table of docs/design.md, row by row: what a fault does in each phase, and what it must never do."""
import pytest

from slurm_gpuhealth.config_defaults import fresh
from slurm_gpuhealth.decide import decide, taken_in
from slurm_gpuhealth.model import (
    ALL_GPUS,
    Ack,
    Declared,
    Finding,
    Incident,
    Job,
    NodeRecord,
    Situation,
    Subject,
    from_plain,
    to_plain,
)

GPU3 = Subject("gpu", 3, "GPU-3", "0000:5d:00.0")
XID79 = Finding("GH-XID79", "fatal", GPU3, "fell off bus", since=1000.0)
WIDTH = Finding("GH-PCIE-WIDTH", "fatal", GPU3, "x8", "x16")
GONE = Finding("GH-MNT-GONE", "fatal", Subject("mount", name="/data"), "absent")
USER = Finding("GH-XID-USER", "note", GPU3, "31")
LATE = Finding("GH-NVML-LATE", "warning", ALL_GPUS, "no answer in 8.0 s")
UNREAD = Finding("GH-NVML-FAIL", "unknown", ALL_GPUS, "failed")

IDLE = NodeRecord("n1", ("IDLE",), partitions=("main",))
OPEN = Incident("a1b2c3", "b1|GH-XID79|gpu3", "b1", "GH-XID79", GPU3, 900.0, "GH-XID79 gpu3 fell off bus [ev=a1b2c3]",
                drained=True)
CKPT = Declared("/ckpt/run7")


def job(**changes):
    """A running batch job of two GPUs, one of them the faulty one, that declared its checkpoints."""
    base = Job(7, 2001, "alice", "main", ("n1",), "n1", (2, 3), state="RUNNING", batch=True, requeue=True, start=500.0,
               declared=CKPT, has_baseline=True)
    return base._replace(**changes)


def situation(phase, **changes):
    base = Situation(phase, "n1", 2000.0, "b1", "full", node_record=IDLE, whole_node_gpus=8)
    return base._replace(**changes)


def policy(**changes):
    config = fresh()
    for key, value in changes.items():
        if isinstance(value, dict):
            config[key].update(value)
        else:
            config[key] = value
    return config


def kinds(plan):
    return [action.kind for action in plan.actions]


def args(plan, kind):
    return next(action.args for action in plan.actions if action.kind == kind)


# -- nothing fatal

@pytest.mark.parametrize("phase", ["prolog", "epilog", "healthcheck"])
@pytest.mark.parametrize("findings", [[], [USER], [LATE], [UNREAD]])
def test_nothing_fatal_asks_nobody(phase, findings):
    """With nothing wrong, or only something to note, no question goes to slurmctld and the hook exits 0."""
    plan = decide(findings, situation(phase, node_record=None, job=job()), policy())
    assert (plan.exit_code, plan.lookups) == (0, ())
    assert kinds(plan) == ["finding"] * len(findings)


@pytest.mark.parametrize("findings,code", [([], 0), ([USER], 0), ([LATE], 1), ([XID79], 2), ([UNREAD], 3),
                                           ([UNREAD, XID79], 2), ([UNREAD, LATE], 3)])
def test_manual_check_exits_like_nagios(findings, code):
    """`gpuhealth check` says with its exit code what it saw; a fatal finding outweighs an unread source."""
    assert decide(findings, situation("manual"), policy()).exit_code == code


# -- modes

@pytest.mark.parametrize("phase", ["prolog", "epilog", "healthcheck"])
def test_observe_only_writes_down(phase):
    """Mode observe takes no action on Slurm, not even a question."""
    plan = decide([XID79], situation(phase, mode="observe", node_record=None, job=job()), policy())
    assert (plan.exit_code, kinds(plan), plan.lookups) == (0, ["unacted"], ())


def test_drain_mode_never_touches_jobs():
    """Mode drain: prolog exits 1 after the drain, and nothing is requeued or held."""
    plan = decide([XID79], situation("prolog", mode="drain", job=job()), policy())
    assert plan.exit_code == 1
    assert kinds(plan) == ["incident", "evidence", "drain", "evidence-rest", "notify"]
    for phase, extra in (("healthcheck", {"jobs": (job(),)}), ("epilog", {"job": job(), "jobs": (job(end="failed"),)})):
        assert not {"requeue", "hold"} & set(kinds(decide([XID79], situation(phase, mode="drain", **extra), policy())))


# -- prolog

def test_prolog_order_is_evidence_isolate_recover():
    """Evidence before the drain, the rest straight after it, then the requeue; exit 1."""
    plan = decide([XID79], situation("prolog", job=job(), jobs=(job(),)), policy())
    assert kinds(plan) == ["incident", "evidence", "drain", "evidence-rest", "requeue", "notify"]
    assert plan.exit_code == 1
    assert plan.reason == "GH-XID79 gpu3 fell off bus"


def test_prolog_asks_before_it_acts():
    """The node and the job are asked for first: a reason of somebody else must never be overwritten."""
    plan = decide([XID79], situation("prolog", job=job(), node_record=None), policy())
    assert plan.lookups == ("node", "job")


def test_prolog_elsewhere_lets_the_job_run():
    """A fault of a GPU that the job does not use drains the node, and the job runs on its healthy GPUs."""
    plan = decide([XID79], situation("prolog", job=job(gpus=(0, 1))), policy())
    assert plan.exit_code == 0
    assert "drain" in kinds(plan) and "requeue" not in kinds(plan)


def test_prolog_elsewhere_may_be_refused_by_the_site():
    plan = decide([XID79], situation("prolog", job=job(gpus=(0,)), jobs=(job(gpus=(0,)),)),
                  policy(job_elsewhere="refuse"))
    assert plan.exit_code == 1


def test_prolog_of_a_whole_node_job():
    """A job that holds all GPUs of the node cannot run on the healthy ones."""
    whole = job(gpus=tuple(range(8)))
    plan = decide([Finding("GH-PCIE-WIDTH", "fatal", Subject("gpu", 9), "x8", "x16")],
                  situation("prolog", job=whole, jobs=(whole,)), policy())
    assert plan.exit_code == 1


def test_job_without_gpus_runs_despite_gpu_faults():
    """Jobs without GPUs get the node checks only."""
    for finding in (XID79, Finding("GH-NVML-HANG", "fatal", ALL_GPUS)):
        plan = decide([finding], situation("prolog", job=job(gpus=())), policy())
        assert plan.exit_code == 0 and "drain" in kinds(plan)


def test_missing_mount_stops_any_job():
    """A mount is everybody's."""
    small = job(gpus=())
    plan = decide([GONE], situation("prolog", job=small, jobs=(small,), shared_drains=0, partition_size=3), policy())
    assert plan.exit_code == 1 and "requeue" in kinds(plan)


@pytest.mark.parametrize("changes", [{"batch": False}, {"requeue": False},
                                     {"declared": Declared("/c", requeue=False)}])
def test_prolog_job_that_cannot_be_requeued(changes):
    """Only the exit code speaks for an interactive job; a user's no is a no."""
    stays = job(**changes)
    plan = decide([XID79], situation("prolog", job=stays, jobs=(stays,)), policy())
    assert plan.exit_code == 1 and "requeue" not in kinds(plan)


def test_prolog_requeue_does_not_use_up_the_budget():
    """The job never started, so a row of bad nodes must not get it held."""
    spent = job(tries=3)
    plan = decide([XID79], situation("prolog", job=spent, jobs=(spent,)), policy())
    assert args(plan, "requeue")["counts"] is False


# -- healthcheck

def test_healthcheck_requeues_what_cannot_go_on():
    """79 is requeue-now: the job on that GPU is requeued, the others go on."""
    other = job(id=8, gpus=(0, 1))
    plan = decide([XID79], situation("healthcheck", jobs=(job(), other)), policy())
    assert [action.args["job"] for action in plan.actions if action.kind == "requeue"] == [7]
    assert plan.exit_code == 0


def test_healthcheck_lets_finish_by_default():
    """A narrow link drains, the job runs on."""
    plan = decide([WIDTH], situation("healthcheck", jobs=(job(),)), policy())
    assert "drain" in kinds(plan) and "requeue" not in kinds(plan)


def test_job_without_checkpoint_is_not_killed():
    """A running job that declared no checkpoint is never requeued unless the site says so."""
    bare = job(declared=None)
    assert "requeue" not in kinds(decide([XID79], situation("healthcheck", jobs=(bare,)), policy()))
    plan = decide([XID79], situation("healthcheck", jobs=(bare,)), policy(resume={"requeue_undeclared": True}))
    assert "requeue" in kinds(plan)


def test_budget_spent_is_held():
    """After the budget of requeues a person must look: SpecialExit with a reason."""
    plan = decide([XID79], situation("healthcheck", jobs=(job(tries=2),)), policy(resume={"max_restarts": 2}))
    assert args(plan, "hold")["code"] == "GH-CKPT-BUDGET"
    own = job(tries=1, declared=Declared("/c", max_restarts=1))
    assert "hold" in kinds(decide([XID79], situation("healthcheck", jobs=(own,)), policy()))


def test_a_job_is_requeued_once():
    """A run that was already dealt with in an open incident is left alone."""
    again = situation("healthcheck", jobs=(job(),), incidents=(OPEN._replace(jobs=("7.0",)),),
                      node_record=IDLE._replace(state=("DRAIN",), reason=OPEN.reason))
    assert "requeue" not in kinds(decide([XID79], again, policy()))


@pytest.mark.parametrize("state", ["COMPLETING", "PENDING", "SUSPENDED"])
def test_only_running_jobs_are_requeued(state):
    assert "requeue" not in kinds(decide([XID79], situation("healthcheck", jobs=(job(state=state),)), policy()))


# -- epilog

@pytest.mark.parametrize("end,requeued", [
    ("failed", True), ("node_fail", True), ("out_of_memory", True), ("completed", False), ("cancelled", False),
    ("timeout", False), ("requeued", False), ("preempted", False), ("", False)])
def test_epilog_requeues_only_failed_jobs(end, requeued):
    """Slurm would rerun a completed job and resurrect a cancelled one: only a failed one is brought back."""
    plan = decide([XID79], situation("epilog", job=job(), jobs=(job(end=end),)), policy())
    assert ("requeue" in kinds(plan)) is requeued
    assert "drain" in kinds(plan) and plan.exit_code == 0


def test_epilog_old_fault_is_not_the_jobs():
    """A fault from before the job's start did not make it fail."""
    old = XID79._replace(since=400.0)
    plan = decide([old], situation("epilog", job=job(), jobs=(job(end="failed"),)), policy())
    assert "requeue" not in kinds(plan)


def test_epilog_undated_fault_needs_a_baseline():
    """A state without a time is new only if our prolog saw the GPU healthy."""
    lost = Finding("GH-GPU-LOST", "fatal", GPU3, "lost")
    for seen, requeued in ((True, True), (False, False)):
        ended = job(end="failed", has_baseline=seen)
        plan = decide([lost], situation("epilog", job=ended, jobs=(ended,)), policy())
        assert ("requeue" in kinds(plan)) is requeued


def test_exit_code_93_means_no():
    """NVIDIA's resiliency extension says "do not requeue" with 93."""
    ended = job(end="failed", exit_code="93:0")
    assert "requeue" not in kinds(decide([XID79], situation("epilog", job=ended, jobs=(ended,)), policy()))


def test_epilog_elsewhere_only_drains():
    ended = job(gpus=(0,), end="failed")
    plan = decide([XID79], situation("epilog", job=ended, jobs=(ended,)), policy())
    assert "drain" in kinds(plan) and "requeue" not in kinds(plan)


# -- the node in slurmctld

@pytest.mark.parametrize("record,why", [
    (NodeRecord("n1", ("IDLE", "DRAIN"), "disk swap, Ann"), "drained by somebody else"),
    (NodeRecord("n1", ("DOWN",), "Not responding"), "not ours"),
    (NodeRecord("n1", ("IDLE", "MAINT", "RESERVED")), "MAINT"),
])
def test_what_is_not_ours_is_left_alone(record, why):
    """An admin's reason, Slurm's own, and a maintenance reservation are never touched."""
    plan = decide([XID79], situation("healthcheck", node_record=record, jobs=()), policy())
    assert not {"drain", "restore-reason", "resume-node"} & set(kinds(plan))
    assert any(why in note for note in plan.notes)


def test_drained_by_us_is_not_drained_again():
    record = NodeRecord("n1", ("DRAIN",), OPEN.reason + " : more")
    plan = decide([XID79], situation("healthcheck", node_record=record, jobs=(), incidents=(OPEN,)), policy())
    assert "drain" not in kinds(plan) and "evidence" not in kinds(plan)


def test_kill_task_failed_is_put_right():
    """slurmstepd's own reason may replace ours: then, and only then, a reason that is not ours is replaced."""
    record = NodeRecord("n1", ("DRAIN",), "Kill task failed")
    plan = decide([XID79], situation("healthcheck", node_record=record, jobs=(), incidents=(OPEN,)), policy())
    assert args(plan, "restore-reason")["reason"] == OPEN.reason
    quiet = decide([], situation("healthcheck", node_record=record, incidents=(OPEN,)), policy())
    assert args(quiet, "restore-reason")["reason"] == OPEN.reason
    later = OPEN._replace(id="f", code="GH-GPU-BAD", reason="GH-GPU-BAD gpu5 unusable", drained=False)
    quiet = decide([], situation("healthcheck", node_record=record, incidents=(OPEN, later)), policy())
    assert args(quiet, "restore-reason")["reason"] == OPEN.reason
    alone = decide([XID79], situation("healthcheck", node_record=record, jobs=()), policy())
    assert "restore-reason" not in kinds(alone)


def test_ack_keeps_a_known_fault_from_draining():
    """An acknowledged fault is a note until its time is over, for its own subject only."""
    ack = Ack("GH-PCIE-WIDTH", "gpu3", 3000.0)
    assert kinds(decide([WIDTH], situation("healthcheck", acks=(ack,)), policy())) == ["finding"]
    for stale in (ack._replace(until=1500.0), ack._replace(subject="gpu4")):
        assert "drain" in kinds(decide([WIDTH], situation("healthcheck", acks=(stale,), jobs=()), policy()))


def test_site_severity_wins():
    plan = decide([WIDTH], situation("healthcheck"), policy(codes={"GH-PCIE-WIDTH": {"severity": "warning"}}))
    assert kinds(plan) == ["finding"]


# -- incidents

def test_same_gpu_is_the_same_incident():
    """79 in the log, then the GPU lost in NVML and one missing in the count: one incident, one evidence folder."""
    record = NodeRecord("n1", ("DRAIN",), OPEN.reason)
    for finding in (Finding("GH-GPU-LOST", "fatal", GPU3), Finding("GH-GPU-COUNT", "fatal", ALL_GPUS, "7", "8")):
        plan = decide([finding], situation("healthcheck", node_record=record, jobs=(), incidents=(OPEN,)), policy())
        assert "evidence" not in kinds(plan)


def test_what_came_together_is_one_incident():
    """An incident stands for all faults it was opened for: the second of two lost GPUs does not open one each round."""
    record = NodeRecord("n1", ("DRAIN",), OPEN.reason)
    lost = [Finding("GH-GPU-LOST", "fatal", GPU3), Finding("GH-GPU-LOST", "fatal", Subject("gpu", 5, "GPU-5")), GONE]
    both = OPEN._replace(also=("GH-XID79|gpu5", "GH-MNT-GONE|/data"))
    for known, new in ((OPEN, True), (both, False)):
        plan = decide(lost, situation("healthcheck", node_record=record, jobs=(), incidents=(known,)), policy())
        assert ("incident" in kinds(plan), "evidence" in kinds(plan)) == (new, new)
    plan = decide(lost, situation("healthcheck", node_record=record, jobs=(), incidents=(OPEN,)), policy())
    assert args(plan, "incident")["subject"] == "gpu5"      # what is new, not what is worst


def test_another_boot_is_another_incident():
    plan = decide([XID79], situation("healthcheck", boot_id="b2", jobs=(), incidents=(OPEN,)), policy())
    assert "evidence" in kinds(plan)


def test_undrained_incident_is_tried_again():
    """slurmctld was away: the log does not say 79 twice, so the open incident itself asks for the drain."""
    waiting = OPEN._replace(drained=False)
    plan = decide([], situation("healthcheck", jobs=(), incidents=(waiting,)), policy())
    assert "drain" in kinds(plan) and "evidence" not in kinds(plan)


def test_undrained_incident_stops_the_next_job_too():
    """The drain has not got through yet and a job comes: what the log said once holds for its prolog as well."""
    waiting = OPEN._replace(drained=False)
    plan = decide([], situation("prolog", job=job(), jobs=(job(),), incidents=(waiting,)), policy())
    assert plan.exit_code == 1 and {"drain", "requeue"} <= set(kinds(plan))
    assert decide([], situation("epilog", job=job(), incidents=(waiting,)), policy()).actions == ()


def test_undrained_incident_can_be_acknowledged():
    """An ack, or a severity of the site, holds for a fault that waits for its drain as for one that is seen."""
    waiting = OPEN._replace(drained=False)
    ack = Ack("GH-XID79", "gpu3", 3000.0)
    plan = decide([], situation("healthcheck", jobs=(), incidents=(waiting,), acks=(ack,)), policy())
    assert "drain" not in kinds(plan)


def test_counter_that_rose_is_tried_again():
    """A counter is compared with the last round's: the round after the one that could not drain sees no rise."""
    ecc = Incident("e", "b1|GH-ECC-UNC|gpu3", "b1", "GH-ECC-UNC", GPU3, 900.0)
    assert "drain" in kinds(decide([], situation("healthcheck", jobs=(), incidents=(ecc,)), policy()))


def test_repaired_meanwhile_is_not_drained():
    """A state that no check sees any more is over: the drain that could not be made is not made later."""
    lost = Incident("b", "b1|GH-GPU-LOST|gpu3", "b1", "GH-GPU-LOST", GPU3, 900.0)
    plan = decide([], situation("healthcheck", jobs=(), incidents=(lost,)), policy())
    assert "drain" not in kinds(plan)
    assert args(plan, "close")["ids"] == ["b"]


# -- giving a node back

MOUNT = Incident("c", "b1|GH-MNT-GONE|/data", "b1", "GH-MNT-GONE", GONE.subject, 900.0, "GH-MNT-GONE /data absent",
                 drained=True)
HELD = NodeRecord("n1", ("DRAIN",), MOUNT.reason)


def test_recoverable_drain_is_given_back_after_clean_rounds():
    """Only our own drain, only for a recoverable code, only after the configured number of clean rounds."""
    good = {"incidents": (MOUNT,), "node_record": HELD, "clean_rounds": 3}
    on = policy(recover={"clean_rounds": 3})
    assert "resume-node" in kinds(decide([], situation("healthcheck", **good), on))
    for worse in ({"clean_rounds": 2}, {"node_record": HELD._replace(reason="Ann: cabling")},
                  {"incidents": (OPEN,)}, {"incidents": (MOUNT, OPEN)}, {"incidents": (MOUNT._replace(drained=False),)},
                  {"node_record": HELD._replace(state=("DRAIN", "MAINT"))}, {"mode": "observe"}):
        assert "resume-node" not in kinds(decide([], situation("healthcheck", **{**good, **worse}), on))
    assert "resume-node" not in kinds(decide([], situation("healthcheck", **good), policy()))
    assert "resume-node" not in kinds(decide([UNREAD], situation("healthcheck", **good), on))


def test_resumed_by_somebody_closes_the_incident():
    plan = decide([], situation("healthcheck", incidents=(OPEN,)), policy())
    assert args(plan, "close")["ids"] == [OPEN.id]


# -- the brake

def test_external_fault_counts_first():
    plan = decide([GONE], situation("healthcheck", jobs=()), policy())
    assert "brake" in plan.lookups


@pytest.mark.parametrize("drained,size,acts", [(0, 3, "drain"), (1, 3, "brake"), (9, 100, "drain"), (10, 100, "brake")])
def test_brake_limit(drained, size, acts):
    """At most 10 % of the partition, at least one node."""
    plan = decide([GONE], situation("healthcheck", jobs=(), shared_drains=drained, partition_size=size), policy())
    assert acts in kinds(plan) and not {"drain", "brake"} - {acts} & set(kinds(plan))


def test_hardware_fault_beside_an_outage_still_drains():
    """The brake is for the outage; a broken GPU is not part of it."""
    plan = decide([GONE, XID79], situation("healthcheck", jobs=(), shared_drains=9, partition_size=3), policy())
    assert "drain" in kinds(plan)


def test_braked_prolog_sends_the_job_back():
    """Above the limit the job waits, longer with each try, and the prolog exits 0: exit 1 would drain."""
    plan = decide([GONE], situation("prolog", job=job(), jobs=(job(),), shared_drains=1, partition_size=3, tries=2),
                  policy())
    assert plan.exit_code == 0
    assert args(plan, "send-back")["start_in"] == 360
    assert kinds(plan).index("linger") == kinds(plan).index("send-back") + 1


def test_braked_prolog_of_an_interactive_job_lets_it_run():
    stays = job(batch=False)
    plan = decide([GONE], situation("prolog", job=stays, jobs=(stays,), shared_drains=1, partition_size=3), policy())
    assert plan.exit_code == 0 and "send-back" not in kinds(plan)


# -- replay

@pytest.mark.parametrize("phase", ["prolog", "epilog", "healthcheck"])
def test_decision_survives_json(phase):
    """The situation goes to JSON and back without changing the decision: that is what replay stands on."""
    import json
    before = situation(phase, job=job(), jobs=(job(end="failed"),), incidents=(MOUNT,), acks=(Ack("GH-X"),))
    after = from_plain(Situation, json.loads(json.dumps(to_plain(before))))
    assert after == before
    assert decide([XID79], after, policy()) == decide([XID79], before, policy())


# -- a fault of one GPU that hits all of the node

def wide(code, of, word):
    part = {"code": of, "severity": "fatal", "seen": "", "all_gpus": True}
    return Finding(code, "fatal", GPU3, "GSP no answer", since=1000.0, data={"merged": [part], "node_wide": word})


HANG = wide("GH-XID119", "GH-NVML-HANG", "let-finish")
UVM = wide("GH-XID79", "GH-UVM-FATAL", "requeue-now")


def test_no_job_starts_on_another_gpu_while_nvml_hangs():
    """The Xid names one GPU, the hang that came of it hits all: prolog sends the job away."""
    plan = decide([HANG], situation("prolog", job=job(gpus=(0, 1)), jobs=(job(gpus=(0, 1)),)), policy())
    assert plan.exit_code == 1 and "requeue" in kinds(plan)


@pytest.mark.parametrize("finding,requeued", [(HANG, []), (UVM, [7, 8])])
def test_jobs_on_other_gpus_are_treated_as_the_fault_of_all_asks(finding, requeued):
    """NVML that hangs lets jobs finish; a memory driver that stopped lets none go on."""
    jobs = (job(), job(id=8, gpus=(0, 1)), job(id=9, gpus=()))
    plan = decide([finding], situation("healthcheck", jobs=jobs), policy())
    assert [action.args["job"] for action in plan.actions if action.kind == "requeue"] == requeued
    left = [action.args["job"] for action in plan.actions if action.kind == "job-left"]
    assert left == ([] if requeued else [7, 8])


def test_a_job_on_the_gpu_itself_follows_the_gpu():
    """79 is requeue-now there, whatever NVML's hang asks on the other GPUs."""
    finding = wide("GH-XID79", "GH-NVML-HANG", "let-finish")
    plan = decide([finding], situation("healthcheck", jobs=(job(), job(id=8, gpus=(0, 1)))), policy())
    assert [action.args["job"] for action in plan.actions if action.kind == "requeue"] == [7]


def test_what_was_taken_in_is_part_of_the_incident():
    """The next round sees the hang alone: the log is read once. It is no new incident."""
    assert taken_in([HANG]) == ("GH-NVML-HANG|gpus",)
    record = NodeRecord("n1", ("DRAIN",), OPEN.reason)
    alone = Finding("GH-NVML-HANG", "fatal", ALL_GPUS, "no answer")
    for also, new in (((), True), (taken_in([HANG]), False)):
        incidents = (OPEN._replace(also=also),)
        plan = decide([alone], situation("healthcheck", node_record=record, jobs=(), incidents=incidents), policy())
        assert ("incident" in kinds(plan)) == new
