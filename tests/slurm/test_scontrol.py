"""What is particular to the backend that runs scontrol and squeue."""
import pytest

from slurm_gpuhealth import config_defaults, model, slurm
from slurm_gpuhealth.errors import SlurmUnavailable, UsageError
from slurm_gpuhealth.slurm.protocol import Refused, is_away, kind_of

pytestmark = pytest.mark.allow_subprocess

CORE = ("JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 "
        "ExitCode=3:0\n   DerivedExitCode=0:0\n   ")
RECORD = ("\n\nJobId=8 JobName=y\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n   Priority=1 Nice=0\n   " + CORE
          + "Partition=main AllocNode:Sid=c:1\n   NodeList=n1\n   BatchHost=n1\n   Network=(null)\n   Comment=")


@pytest.fixture
def kind():
    return "scontrol", "24.11"


@pytest.fixture
def old(cluster):
    """The cluster as one whose scontrol cannot print JSON."""
    cluster.set(release="22.05", json=False)
    return cluster


def test_arguments(client, cluster):
    """Each action is one call with these words, and nothing of a shell."""
    cluster.add_job(7, nodes=["n1"])
    job = model.Job(7, state="RUNNING")
    client.drain("n1", "GH-XID79 gpu3 fell off bus [ev=1]")
    client.set_reason("n1", "x")
    client.resume("n1")
    client.requeue(job)
    client.set_start(job, 6)
    client.set_comment(job, "a b")
    client.set_admin_comment(job, "c")
    assert cluster.calls() == [
        ["scontrol", "update", "NodeName=n1", "State=DRAIN", 'Reason="GH-XID79 gpu3 fell off bus [ev=1]"'],
        ["scontrol", "update", "NodeName=n1", 'Reason="x"'],
        ["scontrol", "update", "NodeName=n1", "State=RESUME"],
        ["scontrol", "requeue", "7"],
        ["scontrol", "update", "JobId=7", "StartTime=now+6"],
        ["scontrol", "update", "JobId=7", "Comment=a b"],
        ["scontrol", "update", "JobId=7", "AdminComment=c"],
    ]


def test_environment(client, cluster, monkeypatch, tmp_path):
    """Slurm's tools see our settings only: a site's time format or another cluster's name changes no answer."""
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    client.node("n1")
    (tmp_path / "slurm.conf").write_text("")
    client.cfg["slurm"]["conf"] = str(tmp_path / "slurm.conf")
    slurm.client(client.cfg).node("n1")
    first, second = cluster.environments()
    assert first["SLURM_TIME_FORMAT"] == "%s"
    assert "SLURM_CLUSTERS" not in first
    assert "SLURM_CONF" not in first    # configless: Slurm finds it by itself
    assert second["SLURM_CONF"] == str(tmp_path / "slurm.conf")


def test_running_job_needs_one_call(client, cluster):
    """The record of a running job is one call; JSON is asked only where the text does not do."""
    cluster.add_job(7, nodes=["n1"])
    client.job(7)
    assert cluster.calls() == [["scontrol", "-d", "show", "job", "7"]]


@pytest.mark.parametrize(("field", "text"), [
    ("name", "x\n   " + CORE), ("comment", "x\n   " + CORE), ("comment", RECORD), ("comment", "\nJobId=9 JobName=z"),
    ("name", "x" + RECORD), ("work_dir", "/\n   " + CORE)])
def test_hostile_texts(client, cluster, field, text):
    """A name or comment that holds a state, or a whole record, changes nothing: JSON tells them apart."""
    cluster.add_job(7, nodes=["n1"], gpus={"n1": [2]}, restarts=1, **{field: text})
    job = client.job(7, "n1", 1)
    assert (job.id, job.state, job.end, job.exit_code) == (7, "RUNNING", "running", "0:0")
    assert (job.gpus, job.uid) == ((2,), 1000)
    assert getattr(job, field) == text


@pytest.mark.parametrize(("field", "text"), [
    ("name", "x\n   " + CORE), ("comment", "x\n   " + CORE), ("comment", RECORD), ("name", "x" + RECORD)])
def test_hostile_texts_without_json(client, old, field, text):
    """Where the release has no JSON such a job is refused as ambiguous: it is never believed, and never acted on."""
    old.add_job(7, nodes=["n1"], gpus={"n1": [2]}, **{field: text})
    with pytest.raises(Refused) as caught:
        client.job(7, "n1")
    assert caught.value.kind == "ambiguous"
    with pytest.raises(Refused):
        client.requeue(model.Job(7))
    assert old.changes() == []


def test_comment_without_json(client, old):
    """A comment that looks like further fields is read by a call that prints nothing else."""
    text = "x\n   StdErr=/etc/passwd\n   Foo=bar\ny "
    old.add_job(7, nodes=["n1"], gpus={"n1": [2]}, comment=text)
    job = client.job(7)
    assert (job.comment, job.gpus, job.state) == (text, (2,), "RUNNING")


def test_json_that_is_not_there_is_asked_once(client, old):
    """A Slurm without its JSON serializer is not asked again in the same hook."""
    old.add_job(7, nodes=["n1"], states=["FAILED", "COMPLETING"], end=1, reason="NonZeroExitCode", exit_code="3:0")
    assert [client.job(7).end for _ in range(2)] == ["failed", "failed"]
    assert sum("--json" in argv for argv in old.calls()) == 1


def test_jobs_on_node_with_a_hostile_one(client, old):
    """One job that cannot be read for sure does not hide the others, and its own id and owner are known."""
    old.add_job(6, nodes=["n1"], gpus={"n1": [1]})
    old.add_job(7, nodes=["n1"], gpus={"n1": [2]}, comment=RECORD, uid=4321)
    jobs = client.jobs_on_node("n1")
    assert [(job.id, job.gpus, job.uid) for job in jobs] == [(6, (1,), 1000), (7, (), 4321)]


def test_hint_keeps_the_users_text(client, cluster):
    """Reading a comment and writing it back with something added changes no byte of the user's."""
    text = "my run, 'lr=3e-4' \"x\" gpuhealth:ckpt=/c\ttail "
    cluster.add_job(7, nodes=["n1"], comment=text)
    job = client.job(7)
    client.set_comment(job, job.comment.replace("ckpt=/c", "ckpt=/c,tries=1"))
    assert cluster.job(7)["comment"] == text.replace("ckpt=/c", "ckpt=/c,tries=1")


def test_nul_is_refused(client, cluster):
    """No argument can hold a NUL byte."""
    with pytest.raises(UsageError):
        client.drain("n1", "a\0b")
    assert cluster.calls() == []


def test_no_scontrol():
    """Where the tool is missing Slurm cannot be reached, which is no refusal."""
    cfg = config_defaults.fresh()
    cfg["slurm"].update(bin_dir="/no/such/folder", backend="scontrol")
    cfg["deadlines"]["slurm"] = 0.3
    with pytest.raises(SlurmUnavailable, match="/no/such/folder/scontrol"):
        slurm.client(cfg).node("n1")


def test_fixture_node(cluster, tmp_path):
    """With a root the tools and the configuration are those of the fixture node."""
    cfg = config_defaults.fresh()
    cfg["slurm"]["bin_dir"] = "/bin"
    assert slurm.client(cfg, root=str(tmp_path)).node("n1").name == "n1"


@pytest.mark.parametrize(("text", "kind"), [
    ("Requested operation is presently disabled for job 30", "no-requeue"),
    ("Only batch jobs are accepted or processed for job 29", "not-batch"),
    ("Access/permission denied for job 46", "permission"),
    ("Job is pending execution for job 46", "pending"),
    ("Job is no longer pending execution for job 46", "not-pending"),
    ("Invalid job id specified for job 99999", "unknown-job"),
    ("Job 4_9 not found", "unknown-job"),
    ("slurm_update error: Invalid node name specified", "unknown-node"),
    ("Node nope not found", "unknown-node"),
    ("anything else", "other"),
])
def test_kinds(text, kind):
    """Slurm's refusals in its own words."""
    assert kind_of(text) == kind
    assert not is_away(text)


@pytest.mark.parametrize("text", [
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    "slurm_update error: Socket timed out on send/recv operation",
    "Zero Bytes were transmitted or received for job 7",
    "scontrol: fatal: Could not establish a configuration source",
])
def test_no_answer(text):
    """Texts that mean that slurmctld was not reached: tried again, then spooled."""
    assert is_away(text)
