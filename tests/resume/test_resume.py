"""What a restarted job is told."""
import shlex

import pytest

from slurm_gpuhealth import resume
from slurm_gpuhealth.checkpoint.find import Chosen, Resolution
from slurm_gpuhealth.parse.comment import BadToken, Hint, parse, with_hint

POLICY = {"default_pattern": "", "accepts": ["verified", "structure-only"], "max_restarts": 3, "start_delay": 6,
          "requeue_undeclared": False, "level": "full", "when_none_acceptable": "hold"}
CHOSEN = Chosen("/c/step-400", 400, "verified", "sealed", "abcd", 1, ())
FOUND = Resolution("found", CHOSEN, (("/c/step-450", "cut off"),))
EMPTY = Resolution("empty", reason="/c is empty")
NONE_OK = Resolution("none-acceptable", None, (("/c/step-450", "cut off"), ("/c/step-400", "sha256 of x does not fit")),
                     "files are in /c, no checkpoint among them is accepted")
AWAY = Resolution("could-not-look", reason="/c: Stale file handle")
TOKEN = parse("gpuhealth:ckpt=/c")


def token(tries, job="12", restart=1, more="", path="/c/step-400"):
    hint = Hint(path, job, restart, tries, None, 400, "verified", "abcd")
    return parse(with_hint("gpuhealth:ckpt=/c" + more, hint).text)


def plan(resolution, tok=TOKEN, restart=1, mode="full", **policy):
    return resume.plan_resume(resolution, tok, "12", restart, dict(POLICY, **policy), mode)


def test_resuming():
    """The newest acceptable one: its path, step and level, what was passed over, one line that says it all."""
    answer = plan(FOUND)
    assert (answer.kind, answer.path, answer.step, answer.level, answer.code) == (
        "resume", "/c/step-400", 400, "verified", "")
    assert answer.passed == (("/c/step-450", "cut off"),)
    assert answer.message == ("gpuhealth: resuming from /c/step-400 (step 400, verified);"
                              " passed over: step-450 (cut off)")


def test_a_first_start_is_left_alone():
    """Nothing is resolved for a job's first start, nor in mode observe."""
    assert plan(FOUND, restart=0).kind == "none"
    assert plan(FOUND, mode="observe").kind == "none"


def test_starting_over_only_when_empty():
    """An empty folder starts from the beginning; files without an acceptable checkpoint hold the job."""
    assert (plan(EMPTY).kind, plan(EMPTY).message) == (
        "start-over", "gpuhealth: no checkpoint yet (/c is empty): starting from the beginning")
    held = plan(NONE_OK)
    assert (held.kind, held.code) == ("hold", "GH-CKPT-NONE")
    assert "step-450 (cut off), step-400 (sha256 of x does not fit)" in held.message


def test_the_job_chooses_what_happens_without_one():
    """when-none of the job goes before the site's; the site's stands otherwise."""
    assert plan(NONE_OK, parse("gpuhealth:ckpt=/c,when-none=start-over")).kind == "start-over"
    assert plan(NONE_OK, when_none_acceptable="start-over").kind == "start-over"
    assert plan(NONE_OK, parse("gpuhealth:ckpt=/c,when-none=hold"), when_none_acceptable="start-over").kind == "hold"


def test_what_could_not_be_looked_at_is_sent_back():
    """A dead mount is no reason to start from zero."""
    assert (plan(AWAY).kind, plan(AWAY).code) == ("send-back", "GH-CKPT-AWAY")


def test_an_empty_folder_that_held_a_checkpoint_is_sent_back():
    """Our own hint says that there was one: the folder is more likely away than empty."""
    answer = plan(EMPTY, token(1))
    assert (answer.kind, answer.code) == ("send-back", "GH-CKPT-AWAY")
    assert "/c/step-400 was there and is gone" in answer.message
    assert plan(EMPTY, token(1, job="99")).kind == "start-over"      # another job's comment


def test_the_retry_budget():
    """Requeues of ours are counted, in the job that they were made for: three with a budget of two are held."""
    assert plan(FOUND, token(2, more=",max-restarts=2")).kind == "resume"
    held = plan(FOUND, token(3, more=",max-restarts=2"))
    assert (held.kind, held.code) == ("hold", "GH-CKPT-BUDGET")
    assert "restarted 3 times, its budget is 2" in held.message
    assert plan(FOUND, token(3)).kind == "resume"
    assert plan(FOUND, token(4)).kind == "hold"
    assert plan(FOUND, token(99, job="13")).kind == "resume"        # copied into this job


def test_tries_survive_restarts_of_others():
    """A crash after our requeue raises the restart count; our count stays."""
    assert resume.tries(token(2, restart=1), 12, 3) == 2
    assert resume.tries(token(2, restart=4), 12, 3) == 0
    assert resume.tries(None, 12, 3) == 0
    assert resume.tries(BadToken("x"), 12, 3) == 0


def test_a_hint_is_for_one_start():
    """Usable only for the start it was left for, in the job it was left in."""
    assert resume.usable_hint(token(1), 12, 1).path == "/c/step-400"
    assert resume.usable_hint(token(1), 12, 2) is None
    assert resume.usable_hint(token(1), 13, 1) is None
    wanted = resume.request(token(1), {}, POLICY, 12, 1)
    assert wanted == resume.Request("/c", ("verified", "structure-only"), "full", {
        "path": "/c/step-400", "fp": "abcd", "level": "verified", "step": 400})
    assert resume.request(token(1), {}, POLICY, 12, 2).known is None


def test_what_is_looked_for():
    """The job's own pattern, else the site's, else nothing; a bad one is said."""
    assert resume.request(None, {}, POLICY, 12, 1) is None
    assert resume.request(None, {"user": "ada"}, dict(POLICY, default_pattern="/s/{user}"), 12, 1).path == "/s/ada"
    assert isinstance(resume.request(parse("gpuhealth:ckpt=/c/{array_task_id}"), {}, POLICY, 12, 1), BadToken)
    bad = BadToken("2 gpuhealth tokens in the comment, there may be one")
    assert resume.request(bad, {}, POLICY, 12, 1) == bad


def test_a_bad_token_is_said_and_nothing_is_done():
    """The job starts as it would without us, with a line that says why."""
    answer = resume.plan_resume(None, BadToken("key 'ckpt' twice"), "12", 1, POLICY)
    assert (answer.kind, answer.code) == ("none", "GH-CKPT-TOKEN")
    assert "key 'ckpt' twice" in answer.message
    other = resume.plan_resume(None, TOKEN, "12", 1, POLICY, wanted=BadToken("{array_task_id} in ckpt="))
    assert other.code == "GH-CKPT-TOKEN"


@pytest.mark.parametrize("resolution,tok,code", [(NONE_OK, TOKEN, "GH-CKPT-NONE"), (AWAY, TOKEN, "GH-CKPT-AWAY"),
                                                 (FOUND, token(9), "GH-CKPT-BUDGET")])
def test_mode_drain_holds_nothing(resolution, tok, code):
    """Where only drains are allowed the job is not held or sent back; the line says that it would have been."""
    answer = plan(resolution, tok, mode="drain")
    assert (answer.kind, answer.code) == ("none", code)
    assert "only drains are allowed" in answer.message
    assert plan(FOUND, mode="drain").kind == "resume"


def test_the_hint_for_the_next_start():
    """For the start after this run, with what was found beforehand; counted only where it is to count."""
    assert resume.next_hint(TOKEN, 12, 0, FOUND, 1000) == Hint(
        "/c/step-400", "12", 1, 1, 1000, 400, "verified", "abcd")
    assert resume.next_hint(token(2), 12, 1, None, 1000, counts=False) == Hint("", "12", 2, 2, 1000)


def test_lines_are_printable():
    """Names and reasons come from users: escapes and newlines do not reach the job's output."""
    nasty = Resolution("found", CHOSEN._replace(path="/c/\x1b[31m\nx"), (("/c/a\nb", "why\x07"),))
    message = plan(nasty).message
    assert message.isprintable()
    assert "\\x1b[31m\\nx" in message
    assert len(plan(Resolution("found", CHOSEN._replace(path="/" + "x" * 5000))).message) < 1000


# -- the answer file

def test_the_answer_goes_through_its_file():
    """What Prolog writes is what the job reads, for the same start only."""
    answer = plan(FOUND)
    record = resume.record(answer)
    assert record == {"v": 1, "job": "12", "restart": 1, "path": "/c/step-400", "step": 400, "level": "verified",
                      "passed": [{"path": "/c/step-450", "reason": "cut off"}]}
    assert resume.from_record(record, 12, 1) == answer
    assert resume.from_record(record, 12, 2) is None
    assert resume.from_record(record, 13, 1) is None
    over = resume.from_record(resume.record(plan(EMPTY)), 12, 1)
    assert (over.kind, over.path) == ("start-over", "")


@pytest.mark.parametrize("change", [{"v": 2}, {"path": "rel"}, {"path": 5}, {"path": "/a\nb"}, {"passed": "x"},
                                    {"passed": [1]}, {"restart": "1"}])
def test_a_strange_answer_is_ignored(change):
    """Anything but what we write is no answer."""
    assert resume.from_record(dict(resume.record(plan(FOUND)), **change), 12, 1) is None
    assert resume.from_record([], 12, 1) is None


# -- TaskProlog

def test_export_lines():
    """Slurm's own protocol: one export a variable, one print."""
    assert resume.export_lines(plan(FOUND)) == [
        "export GPUHEALTH_RESUME_FROM=/c/step-400", "export GPUHEALTH_RESUME_STEP=400",
        "export GPUHEALTH_RESUME_ARGS=--resume-from /c/step-400", "export GPUHEALTH_RESUME_FOR=12.1",
        "print gpuhealth: resuming from /c/step-400 (step 400, verified); passed over: step-450 (cut off)"]


def test_without_a_checkpoint_the_variables_are_unset():
    """What came along with the environment of sbatch must not mislead the script."""
    assert resume.export_lines(plan(EMPTY))[:4] == [
        "unset GPUHEALTH_RESUME_FROM", "unset GPUHEALTH_RESUME_STEP", "unset GPUHEALTH_RESUME_ARGS",
        "unset GPUHEALTH_RESUME_FOR"]
    assert all(line.startswith("unset ") for line in resume.export_lines(None))


@pytest.mark.parametrize("path", ["/a b", "/a'b", "/a$(x)", "/a;b", "/a*", "/\u00e9"])
def test_paths_that_need_quotes(path):
    """Quoted for a shell in ARGS, as they are in FROM, and the job is told."""
    lines = resume.export_lines(plan(Resolution("found", CHOSEN._replace(path=path))))
    assert lines[0] == "export GPUHEALTH_RESUME_FROM=" + path
    assert shlex.split(lines[2].partition("=")[2]) == ["--resume-from", path]
    assert "needs quotes" in lines[-1]


@pytest.mark.parametrize("path", ["/a\nexport LD_PRELOAD=/x", "/a\rb", "/a\x00b", "/a\x1bb", "/a\u2028b"])
def test_a_control_character_is_never_exported(path):
    """A newline in a value would be an export line of its own."""
    lines = resume.export_lines(plan(Resolution("found", CHOSEN._replace(path=path))))
    assert not [line for line in lines if line.startswith("export")]
    assert all("\n" not in line and line.isprintable() for line in lines)
