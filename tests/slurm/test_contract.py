"""What every Slurm backend does, whichever it is: one suite over both."""
import time

import pytest

from slurm_gpuhealth import model
from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable, UsageError
from slurm_gpuhealth.slurm.protocol import Refused

pytestmark = pytest.mark.allow_subprocess

ODD_TEXTS = ["gpuhealth:ckpt=/c,resume=/c/step_3", 'a "quoted" one, with = and \'more\'', "two\nlines", " x ",
             '"', '""', "$(id) `id` \\ ; | & %s", "caf\u00e9 \u2713"]


def test_node(client, cluster):
    """A node's record has its states, reason, who set it and when, and its partitions."""
    cluster.add_node("n1", state=["MIXED", "DRAIN"], reason="GH-XID79 gpu3 [ev=1]", reason_user="root",
                     reason_time=1796000400, partitions=["main", "gpu"])
    assert client.node("n1") == model.NodeRecord(
        name="n1", state=("MIXED", "DRAIN"), reason="GH-XID79 gpu3 [ev=1]", reason_user="root",
        reason_time=1796000400, partitions=("main", "gpu"), boot_time=1796000000)
    assert client.node("n2").reason == ""


def test_unknown_node(client):
    """A node that Slurm does not know is a refusal, for reading and for changing."""
    with pytest.raises(Refused) as caught:
        client.node("n9")
    assert caught.value.kind == "unknown-node"
    with pytest.raises(Refused) as caught:
        client.drain("n9", "GH-X")
    assert caught.value.kind == "unknown-node"


@pytest.mark.parametrize("name", ["", "-o", "n1 State=DOWN", "n1,n2", "n[1-2]", "../x", "n1\nx", "n1=x"])
def test_what_is_no_node_name(client, cluster, name):
    """Only one plain name is taken, so that no option and no list gets into a call."""
    for call in (client.node, client.resume, client.jobs_on_node, lambda n: client.drain(n, "r")):
        with pytest.raises(UsageError):
            call(name)
    assert cluster.calls() == []


def test_nodes_of_a_partition(client):
    """The nodes of a partition are those that name it."""
    assert [node.name for node in client.all_nodes()] == ["n1", "n2"]
    assert [node.name for node in client.partition_nodes("spare")] == ["n2"]
    assert client.partition_nodes("none") == ()


def test_drain_and_resume(client, cluster):
    """Drain sets state and reason; set_reason leaves the state; resume takes both away."""
    client.drain("n1", "GH-ECC-UNC gpu0 [ev=2]")
    assert (cluster.node("n1")["state"], cluster.node("n1")["reason"]) == (
        ["IDLE", "DRAIN"], "GH-ECC-UNC gpu0 [ev=2]")
    client.set_reason("n1", "GH-ECC-UNC gpu1 [ev=3]")
    assert (cluster.node("n1")["state"], cluster.node("n1")["reason"]) == (
        ["IDLE", "DRAIN"], "GH-ECC-UNC gpu1 [ev=3]")
    assert cluster.node("n2")["state"] == ["IDLE"]
    client.resume("n1")
    assert (cluster.node("n1")["state"], cluster.node("n1")["reason"]) == (["IDLE"], "")


def test_reason_byte_for_byte(client, cluster):
    """A reason arrives as it was given, whatever characters it holds."""
    for text in ODD_TEXTS:
        client.drain("n1", text)
        assert cluster.node("n1")["reason"] == text


def test_comment_byte_for_byte(client, cluster):
    """A user's comment goes back as it was, and is read as it is, also bytes that are no text."""
    cluster.add_job(7, nodes=["n1"], comment="before")
    job = client.job(7)
    for text in ODD_TEXTS + ["", "a\udce9d"]:
        client.set_comment(job, text)
        client.set_admin_comment(job, text)
        assert cluster.job(7)["comment"] == text
        assert cluster.job(7)["admin_comment"] == text
        assert client.job(7).comment == text


def test_job(client, cluster):
    """A job's record has all that a decision needs."""
    cluster.add_job(7, nodes=["n1", "n2"], gpus={"n1": [0, 1], "n2": [3, 5]}, comment="c", restarts=2,
                    time_limit=3600, uid=1234, user="eva", name="two words", work_dir="/w d", stdout="/o u t")
    assert client.job(7, "n2") == model.Job(
        id=7, uid=1234, user="eva", partition="main", nodes=("n1", "n2"), batch_host="n1", gpus=(3, 5),
        restart=2, comment="c", state="RUNNING", end="running", exit_code="0:0", reason="None", batch=True,
        requeue=True, start=1796000100, time_limit=3600, name="two words", work_dir="/w d", stdout="/o u t")
    assert client.job(7).gpus == (0, 1)


def test_unknown_job(client):
    """A job that is not there (any more) is a refusal."""
    with pytest.raises(Refused) as caught:
        client.job(99)
    assert caught.value.kind == "unknown-job"
    with pytest.raises(Refused) as caught:
        client.requeue(model.Job(99, state="RUNNING"))
    assert caught.value.kind == "unknown-job"


def array(cluster):
    """Task 3 keeps the array's own id, as the last task to start does."""
    for job_id, task, node in ((5, 3, "n1"), (7, 1, "n1"), (8, 2, "n2"), (9, 0, "n2")):
        cluster.add_job(job_id, array_job=5, array_task=task, nodes=[node], gpus={node: [task]})


@pytest.mark.parametrize(("job_id", "task"), [(5, 3), (7, 1), (8, 2), (9, 0)])
def test_array_task(client, cluster, job_id, task):
    """The id a hook was given names one task, also where it is the array's own; only that one is requeued."""
    array(cluster)
    job = client.job(job_id)
    assert (job.id, job.array_job, job.array_task, job.gpus) == (job_id, 5, task, (task,))
    assert client.requeue(job) is True
    client.set_start(job, 6)
    assert [cluster.job(other)["restarts"] for other in (5, 7, 8, 9)] == [
        int(other == job_id) for other in (5, 7, 8, 9)]
    assert [cluster.job(other)["begin"] for other in (5, 7, 8, 9)] == [
        6 if other == job_id else None for other in (5, 7, 8, 9)]


def test_array_task_known_from_the_environment_only(client, cluster):
    """A hook's environment does not tell that its job is a task: that is asked before anything is changed."""
    array(cluster)
    client.requeue(model.Job(5, gpus=(3,), nodes=("n1",)))
    assert [cluster.job(other)["restarts"] for other in (5, 7, 8, 9)] == [1, 0, 0, 0]


def test_waiting_rest_of_an_array(client, cluster):
    """Where the rest of the array waits under its id, the task on this node is meant."""
    cluster.add_job(5, array_job=5, waiting="4-9%2", states=["PENDING"], start=None)
    cluster.add_job(7, array_job=5, array_task=1, nodes=["n1"])
    assert client.job(5, "n1").id == 7
    assert client.job(7).array_task == 1
    with pytest.raises(Refused):
        client.job(5, "n2")
    with pytest.raises(Refused):
        client.requeue(model.Job(5, array_job=5, state="PENDING"))


def test_no_sibling_for_a_task_that_is_gone(client, cluster):
    """Once a task is purged its id finds nothing, though it was the array's own and a sibling runs on the node."""
    cluster.add_job(7, array_job=5, array_task=1, nodes=["n1"])
    with pytest.raises(Refused) as caught:
        client.job(5, "n1")
    assert caught.value.kind == "unknown-job"


def test_het_job(client, cluster):
    """A component of a heterogeneous job is requeued through its leader."""
    cluster.add_job(27, het_leader=27, het_offset=0, nodes=["n1"], gpus={"n1": [0]})
    cluster.add_job(28, het_leader=27, het_offset=1, nodes=["n2"], gpus={"n2": [1, 2]})
    job = client.job(28)
    assert (job.id, job.het_leader, job.gpus) == (28, 27, (1, 2))
    assert client.job(27).id == 27
    client.requeue(job)
    assert cluster.job(27)["restarts"] == 1


def test_jobs_on_node(client, cluster):
    """All jobs that hold something on the node, with their GPUs there; those elsewhere or gone are not among them."""
    cluster.add_job(1, nodes=["n1"], gpus={"n1": [0]})
    cluster.add_job(2, nodes=["n1", "n2"], gpus={"n1": [1, 2], "n2": [0]}, states=["COMPLETED", "COMPLETING"])
    cluster.add_job(3, nodes=["n2"], gpus={"n2": [4]})
    cluster.add_job(4, nodes=["n1"], states=["COMPLETED"])
    cluster.add_job(5, states=["PENDING"])
    array_task = {"array_job": 6, "array_task": 0, "nodes": ["n1"], "gpus": {"n1": [7]}}
    cluster.add_job(6, **array_task)
    jobs = client.jobs_on_node("n1")
    assert [(job.id, job.gpus, job.state) for job in jobs] == [
        (1, (0,), "RUNNING"), (2, (1, 2), "COMPLETING"), (6, (7,), "RUNNING")]
    assert jobs[2].array_task == 0


def test_requeue_is_done_once(client, cluster):
    """The first call requeues, the second finds it done; then the start time can be set."""
    cluster.add_job(7, nodes=["n1"])
    job = client.job(7)
    with pytest.raises(Refused) as caught:
        client.set_start(job, 6)
    assert caught.value.kind == "not-pending"
    assert client.requeue(job) is True
    assert client.requeue(job) is False
    client.set_start(job, 6.7)
    assert (cluster.job(7)["restarts"], cluster.job(7)["begin"], cluster.job(7)["held"]) == (1, 6, False)


def test_requeue_and_hold(client, cluster):
    """A job can be requeued into a held state; one that waits already is held as it is."""
    cluster.add_job(7, nodes=["n1"])
    job = client.job(7)
    assert client.requeue_hold(job) is True
    assert cluster.job(7)["held"] is True
    assert "SPECIAL_EXIT" in cluster.job(7)["states"]
    cluster.add_job(8, nodes=["n1"])
    job = client.job(8)
    assert client.requeue_hold(job, special_exit=False) is True
    assert "SPECIAL_EXIT" not in cluster.job(8)["states"]
    cluster.add_job(9, states=["PENDING"])
    assert client.requeue_hold(client.job(9)) is False
    assert cluster.job(9)["held"] is True


def test_requeue_of_running_jobs_only(client, cluster):
    """With running_only a job that ended meanwhile is left alone."""
    cluster.add_job(7, nodes=["n1"], states=["COMPLETED", "COMPLETING"])
    cluster.add_job(8, nodes=["n1"])
    client.requeue(model.Job(7, state="RUNNING"), running_only=True)
    client.requeue(model.Job(8, state="RUNNING"), running_only=True)
    assert (cluster.job(7)["restarts"], cluster.job(8)["restarts"]) == (0, 1)


@pytest.mark.parametrize(("changes", "why"), [
    ({"batch": False}, "not-batch"), ({"requeue": False}, "no-requeue")])
def test_refused_requeue(client, cluster, changes, why):
    """Slurm's own words are kept, and the kind says what they mean."""
    cluster.add_job(7, nodes=["n1"], **changes)
    job = client.job(7)
    with pytest.raises(SlurmRefused) as caught:
        client.requeue(job)
    assert caught.value.kind == why
    assert str(caught.value).startswith(("Only batch jobs", "Requested operation"))


def test_comment_too_long(client, cluster):
    """Slurm takes 1024 bytes."""
    cluster.add_job(7, nodes=["n1"])
    with pytest.raises(Refused) as caught:
        client.set_comment(client.job(7), "x" * 1025)
    assert caught.value.kind == "too-long"


def test_no_rights(client, cluster):
    """Who may not is told so."""
    cluster.add_job(7, nodes=["n1"])
    job = client.job(7)
    cluster.set(deny=True)
    for call in (lambda: client.drain("n1", "r"), lambda: client.requeue(job)):
        with pytest.raises(Refused) as caught:
            call()
        assert caught.value.kind == "permission"


ENDS = [
    # states, fields, restart count of the hook, end
    (["COMPLETED", "COMPLETING"], {"end": 1796000200}, 0, "completed"),
    (["FAILED", "COMPLETING"], {"end": 1796000200, "exit_code": "3:0", "reason": "NonZeroExitCode"}, 0, "failed"),
    (["FAILED", "COMPLETING"],
     {"end": 1796000200, "exit_code": "0:11", "reason": "RaisedSignal:11(Segmentation_fault)"}, 0, "failed"),
    (["CANCELLED", "COMPLETING"], {"end": 1796000200, "exit_code": "0:15"}, 0, "cancelled"),
    (["TIMEOUT", "COMPLETING"], {"end": 1796000200, "exit_code": "0:15", "reason": "TimeLimit"}, 0, "timeout"),
    (["PENDING", "COMPLETING"], {"restarts": 1}, 0, "requeued"),
    (["PENDING", "COMPLETING"], {"restarts": 1}, 1, "requeued"),
    (["PENDING", "COMPLETING"], {"restarts": 1, "exit_code": "3:0", "reason": "NonZeroExitCode"}, 1, "requeued"),
    (["RUNNING"], {"restarts": 1}, 0, "requeued"),
    (["RUNNING"], {}, 0, "running"),
    (["NODE_FAIL"], {"end": 1796000200, "exit_code": "0:1", "reason": "NodeDown"}, 0, "node_fail"),
    (["OUT_OF_MEMORY", "COMPLETING"], {"end": 1796000200, "exit_code": "0:9", "reason": "OutOfMemory"}, 0,
     "out_of_memory"),
    (["COMPLETED"], {"end": 1796000200}, 0, "completed"),
]


@pytest.mark.parametrize(("states", "fields", "restart", "end"), ENDS)
def test_how_it_ended(client, cluster, states, fields, restart, end):
    """Each end is told apart as far as the release allows; a job that was requeued is never taken for one that ran."""
    cluster.add_job(7, nodes=["n1"], states=states, **fields)
    assert client.job(7, "n1", restart).end == end


def test_unsure_end(client, cluster, release):
    """A script that answers its cancellation with a status of its own: JSON knows, the text does not say."""
    cluster.add_job(7, nodes=["n1"], states=["CANCELLED", "COMPLETING"], end=1796000200, exit_code="9:0")
    sure = client.backend == "scontrol" and release != "22.05"
    assert client.job(7).end == ("cancelled" if sure else "")


def test_controller_comes_back(client, cluster):
    """Within the deadline a call is tried again until slurmctld answers."""
    cluster.set(away=2)
    client.drain("n1", "GH-X")
    assert cluster.node("n1")["state"] == ["IDLE", "DRAIN"]


def test_controller_away(client, cluster):
    """Without an answer in time: SlurmUnavailable, at the deadline and not later."""
    client.cfg["deadlines"]["slurm"] = 0.6
    cluster.set(away=-1)
    start = time.monotonic()
    with pytest.raises(SlurmUnavailable):
        client.drain("n1", "GH-X")
    assert time.monotonic() - start < 2
    assert client.ping() is False


def test_controller_hangs(client, cluster):
    """A call that does not come back is ended at its deadline."""
    client.cfg["deadlines"]["slurm"] = 0.4
    cluster.set(hang=30)
    start = time.monotonic()
    with pytest.raises(SlurmUnavailable):
        client.node("n1")
    assert time.monotonic() - start < 2


def test_end_of_the_hook(client, cluster):
    """No call goes on past the end of the hook, whatever its own deadline."""
    client.until = time.monotonic() - 1
    with pytest.raises(SlurmUnavailable):
        client.node("n1")
    assert cluster.calls() == []


def test_ping(client):
    """An answering controller."""
    assert client.ping() is True
