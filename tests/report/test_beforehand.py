"""Checkpoints found beforehand, at a requeue, are hints: the start that follows looks again."""
import pytest

from slurm_gpuhealth.report import aggregate

NOW = 1796040000.0


def event(kind, node, when, restart, action="", **detail):
    """An event of job 7."""
    return {"v": 1, "id": "%s-%s" % (kind, when), "time": NOW + when, "boot_id": "b", "node": node, "kind": kind,
            "incident": "", "code": "GH-XID79", "subject": "gpu3", "job": 7, "restart": restart, "action": action,
            "detail": detail}


POINT = {"path": "/c/step-400", "step": 400, "level": "verified", "mtime": NOW - 450,
         "passed": [["/c/step-500", "cut off"]]}
REQUEUE = event("requeue", "n1", 5, 0, gpus=8, fault_time=NOW)
HINT = event("resume-point", "n1", 6, 0, "beforehand", **POINT)
START = event("resume-point", "n2", 12, 1, "resume", **POINT)


@pytest.mark.parametrize("events", [[REQUEUE, HINT, START], [START, HINT, REQUEUE]])
def test_a_hint_is_not_a_restart(events):
    """One requeue, one restart, one checkpoint passed over, named with its reason; in any order of the files."""
    found = aggregate.aggregate(events)["restarts"]
    assert (found["total"], found["resumed"], found["passed_over"]) == (1, 1, 1)
    assert found["jobs"][0]["again_on"] == "n2"
    assert found["jobs"][0]["passed"] == [{"path": "/c/step-500", "reason": "cut off"}]


@pytest.mark.parametrize("events", [[REQUEUE, HINT], [HINT, REQUEUE]])
def test_a_hint_tells_what_was_lost_before_the_job_has_started_again(events):
    """450 s on eight GPUs: one GPU-hour. Nothing has resumed yet."""
    found = aggregate.aggregate(events)
    assert found["gpu_hours_lost"]["total"] == 1.0 and found["gpu_hours_lost"]["unknown"] == 0
    assert (found["requeues"]["total"], found["restarts"]["resumed"]) == (1, 0)
    assert found["restarts"]["jobs"][0]["resume"]["step"] == 400
