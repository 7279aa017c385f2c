"""The decision again from what was kept."""
import json
import os
import shutil

import builders
import pytest

from slurm_gpuhealth import decide, model
from slurm_gpuhealth.errors import DataError, UsageError
from slurm_gpuhealth.evidence import replay


def test_the_same_facts_give_the_same_decision(case):
    """A finished folder replays to exactly the plan that is stored in it."""
    result = replay.replay(case.whole().path)
    assert result.same is True and result.notes == [] and result.differs == []
    assert result.plan.code == "GH-XID79" and result.plan.actions


def test_a_copy_without_the_decision(case, tmp_path):
    """It gives the decision that was taken, with nothing to compare with."""
    path = case.whole().path
    copy = str(tmp_path / "copy")
    shutil.copytree(path, copy)
    os.unlink(copy + "/decision.json")
    result = replay.replay(copy)
    assert result.same is None and result.notes == []
    with open(path + "/decision.json") as handle:
        assert json.load(handle)["plan"] == json.loads(json.dumps(model.to_plain(result.plan)))


def test_another_xid_gives_another_decision(case):
    """79 made 31 by --set: a user's own fault drains nothing."""
    result = replay.replay(case.whole().path, ["klog.events.0.code=31"])
    assert result.same is False and "code" in result.differs
    assert not any(action.kind == "drain" for action in result.plan.actions)


def test_situation_and_policy_can_be_changed(case):
    """The mode is in the situation, a site's own Xid policy in the policy."""
    path = case.whole().path
    observed = replay.replay(path, ["situation.mode=observe"])
    assert not any(action.kind == "drain" for action in observed.plan.actions)
    ignored = replay.replay(path, ['policy.xid={"79": {"action": "ignore"}}'])
    assert not any(action.kind == "drain" for action in ignored.plan.actions)


@pytest.mark.parametrize("change", ["klog.events.9.code=1", "nonsense=1", "klog", "=1", "gpus.0.nothing.x=1", "a..b=2"])
def test_a_change_that_names_nothing_is_wrong_usage(case, change):
    """A typo must not look like "the same decision"."""
    with pytest.raises(UsageError):
        replay.replay(case.whole().path, [change])


def test_a_changed_file_is_a_warning(case):
    """It is replayed, and said that the evidence is not what was collected."""
    path = case.whole().path
    with open(path + "/kernel-window.log", "a") as handle:
        handle.write("added\n")
    result = replay.replay(path)
    assert result.same is True and any("kernel-window.log was changed" in note for note in result.notes)


def test_an_incomplete_folder_is_a_warning(case):
    """Its collection did not end: said, and replayed all the same."""
    result = replay.replay(case.open().path)
    assert result.same is None and any("incomplete" in note for note in result.notes)


@pytest.mark.parametrize("damage", ["gone", "cut", "list"])
def test_without_facts_there_is_nothing_to_replay(case, damage):
    """One clear error."""
    path = case.whole().path
    if damage == "gone":
        os.unlink(path + "/facts.json")
    else:
        with open(path + "/facts.json", "w") as handle:
            handle.write("[]" if damage == "list" else '{"v": 1, "gp')
    with pytest.raises(DataError):
        replay.replay(path)


@pytest.mark.parametrize("phase", ["prolog", "epilog", "healthcheck"])
@pytest.mark.parametrize("log", [
    (), ("NVRM: Xid (PCI:0000:5d:00): 31, pid=1, name=x, Ch 1",),
    ("NVRM: Xid (PCI:0000:5d:00): 79, pid=1, name=x, GPU has fallen off the bus.",)])
def test_everything_survives_the_way_through_json(case, phase, log):
    """Job, node and findings of all phases replay to the same plan."""
    job = model.Job(7, uid=1000, user="u", partition="main", nodes=("n1", "n2"), gpus=(3,), state="RUNNING",
                    end="failed", batch=True, requeue=True, start=builders.NOW - 3600, exit_code="1:0",
                    declared=model.Declared(ckpt="/c"))
    case.facts = builders.healthy_node(klog=builders.log(*log))
    case.situation = case.situation._replace(phase=phase, job=job, jobs=(job,))
    folder = case.whole()
    result = replay.replay(folder.path)
    assert result.same is True, result.differs
    assert result.findings == case.findings()
    assert result.plan == decide.decide(case.findings(), case.situation, case.cfg) or result.differs == []
