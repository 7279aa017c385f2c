"""What a restarted job is told: resume from there, start over, wait, or come back later. Pure.

The order of things: `request` says what to look for, somebody looks as the job's user (checkpoint/as_user.py),
`plan_resume` turns what was found into an Answer, which Prolog keeps for the job (`record`) and TaskProlog prints
(`export_lines`). At a requeue of our own `next_hint` is what goes into the job's comment.
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth.model import FULL, OBSERVE
from slurm_gpuhealth.parse.comment import BadToken, Hint, expand, shown
from slurm_gpuhealth.parse.lazy import Lazy

RESUME, START_OVER, HOLD, SEND_BACK, NONE = "resume", "start-over", "hold", "send-back", "none"

VERSION = 1         # of the answer file
MAX_MESSAGE = 900   # characters of the line in the job's output
_MAX_NAMED = 3      # checkpoints passed over that the line names
VARIABLES = ("GPUHEALTH_RESUME_FROM", "GPUHEALTH_RESUME_STEP", "GPUHEALTH_RESUME_ARGS", "GPUHEALTH_RESUME_FOR")

_CONTROL = Lazy("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SAFE_PATH = Lazy(r"[A-Za-z0-9/._+=@:,-]+\Z")

Answer = namedtuple("Answer", "kind path step level passed code message job restart",
                    defaults=("", None, "", (), "", "", "", 0))
Answer.__doc__ = """What a restarted job is told.

kind: RESUME, START_OVER, HOLD (no start before a person looked), SEND_BACK (a start later) or NONE (nothing was
declared, or we are not to act). path, step, level: of the checkpoint, "", None, "" without one. passed: tuple of
(path, reason). code: GH-CKPT-* for a hold, a send-back or a bad token, else "". message: one printable line for
the job's output, "" when there is nothing to say. job, restart: the start that it is for (job id as text).
"""

Request = namedtuple("Request", "path accepts level known")
Request.__doc__ = """What to look for. path: folder. accepts: tuple of verdicts. level: "full" or "structure".
known: {"path", "fp", "level", "step"} that our hint vouches for, or None."""


def request(token, values, policy, job, restart):
    """What to look for at a start: Request, BadToken (the path cannot be made), or None (nothing was declared).

    token: what comment.parse said. values: comment.PLACEHOLDERS of the job. policy: the configuration's `resume`.
    job: id as text or int; restart: restart count of the start that it is for.
    """
    if isinstance(token, BadToken):
        return token
    pattern = token.ckpt if token is not None and token.ckpt else policy["default_pattern"]
    if not pattern:
        return None
    path = expand(pattern, values)
    if isinstance(path, BadToken):
        return path
    hint = usable_hint(token, job, restart)
    known = None
    if hint is not None and hint.path and hint.fp:
        known = {"path": hint.path, "fp": hint.fp, "level": hint.level, "step": hint.step}
    return Request(path, tuple(policy["accepts"]), policy["level"], known)


def usable_hint(token, job, restart):
    """The hint in a token when it was left for this very start, else None (a copied comment, a restart we did not
    cause). Whether its files are unchanged is for who looks."""
    hint = _own_hint(token, job, restart)
    return hint if hint is not None and hint.restart == int(restart) else None


def tries(token, job, restart):
    """Requeues of our own that this job has had. A comment copied from another job counts for nothing."""
    hint = _own_hint(token, job, restart)
    return hint.tries if hint is not None else 0


def budget(token, policy):
    """How many requeues of our own the job may have."""
    if token is not None and not isinstance(token, BadToken) and token.max_restarts is not None:
        return token.max_restarts
    return policy["max_restarts"]


def next_hint(token, job, restart, resolution=None, start=None, counts=True):
    """The Hint for a requeue of ours of a run that is restart number `restart`: it is for the start after it.

    resolution: what was found beforehand, or None. start: StartTime that is set, epoch seconds. counts: False when
    the requeue does not count against the budget.
    """
    chosen = resolution.chosen if resolution is not None else None
    used = tries(token, job, restart) + (1 if counts else 0)
    if chosen is None:
        return Hint(job=str(job), restart=int(restart) + 1, tries=used, start=start)
    return Hint(chosen.path, str(job), int(restart) + 1, used, start, chosen.step, chosen.level, chosen.fp)


def _own_hint(token, job, restart):
    if token is None or isinstance(token, BadToken) or token.hint is None:
        return None
    hint = token.hint
    return hint if hint.job == str(job) and hint.restart <= int(restart) else None


def plan_resume(resolution, token, job, restart, policy, mode=FULL, wanted=None):
    """The Answer for a start. resolution: find.Resolution, or None when nobody looked. wanted: what `request` said.

    In mode "drain" nothing is held or sent back: the answer says why it would have been. In "observe" nothing is
    said.
    """
    answer = Answer(NONE, job=str(job), restart=int(restart))
    if int(restart) < 1 or mode == OBSERVE:
        return answer
    if isinstance(wanted, BadToken) or isinstance(token, BadToken):
        bad = wanted if isinstance(wanted, BadToken) else token
        return answer._replace(code="GH-CKPT-TOKEN", message=line(
            "the job's comment is not understood, so nothing is resumed: " + bad.reason))
    used, allowed = tries(token, job, restart), budget(token, policy)
    if used > allowed:
        return _hold(answer, mode, "GH-CKPT-BUDGET", "restarted %d times, its budget is %d" % (used, allowed))
    if resolution is None:
        return answer
    answer = answer._replace(passed=tuple(resolution.passed))
    if resolution.outcome == "found":
        return _resume(answer, resolution.chosen)
    if resolution.outcome == "empty":
        return _empty(answer, resolution, token, mode)
    if resolution.outcome == "none-acceptable":
        return _none_acceptable(answer, resolution, token, policy, mode)
    return _send_back(answer, mode, "could not look for checkpoints: " + (resolution.reason or "no reason given"))


def _resume(answer, chosen):
    step = "" if chosen.step is None else "step %d, " % chosen.step
    text = "resuming from %s (%s%s)%s" % (chosen.path, step, chosen.level, passed_text(answer.passed))
    return answer._replace(kind=RESUME, path=chosen.path, step=chosen.step, level=chosen.level, message=line(text))


def _empty(answer, resolution, token, mode):
    hint = _own_hint(token, answer.job, answer.restart)
    if hint is not None and hint.path:
        # There was a checkpoint when we requeued it. A folder that is empty now is more likely a missing mount.
        return _send_back(answer, mode, "%s was there and is gone; %s" % (hint.path, resolution.reason))
    return answer._replace(kind=START_OVER, message=line("no checkpoint yet (%s): starting from the beginning"
                                                          % resolution.reason))


def _none_acceptable(answer, resolution, token, policy, mode):
    choice = token.when_none if token is not None and token.when_none else policy["when_none_acceptable"]
    why = resolution.reason + passed_text(answer.passed)
    if choice == START_OVER:
        return answer._replace(kind=START_OVER, message=line("starting from the beginning as chosen: " + why))
    return _hold(answer, mode, "GH-CKPT-NONE", why)


def _hold(answer, mode, code, why):
    if mode != FULL:
        return answer._replace(code=code, message=line("would be held, but only drains are allowed here: " + why))
    return answer._replace(kind=HOLD, code=code, message=line("held, for a person to look at: " + why))


def _send_back(answer, mode, why):
    if mode != FULL:
        return answer._replace(code="GH-CKPT-AWAY", message=line(
            "would be sent back, but only drains are allowed here: " + why))
    return answer._replace(kind=SEND_BACK, code="GH-CKPT-AWAY", message=line("sent back to start later: " + why))


def passed_text(passed):
    """What a line says of the checkpoints passed over: the first few with why; "" for none."""
    if not passed:
        return ""
    named = ["%s (%s)" % (path.rstrip("/").rpartition("/")[2], reason) for path, reason in passed[:_MAX_NAMED]]
    more = len(passed) - len(named)
    return "; passed over: " + ", ".join(named) + (" and %d more" % more if more else "")


def line(text):
    """`text` as one printable line of ours."""
    return "gpuhealth: " + shown(text, MAX_MESSAGE)


# -- the answer, kept for the job

def record(answer):
    """The answer file's content (docs/design.md), plain. path "" means: from the beginning."""
    return {"v": VERSION, "job": answer.job, "restart": answer.restart, "path": answer.path, "step": answer.step,
            "level": answer.level, "passed": [{"path": path, "reason": reason} for path, reason in answer.passed]}


def from_record(plain, job, restart):
    """The Answer in an answer file's content, or None when it is not for this start or not one of ours."""
    if not isinstance(plain, dict) or plain.get("v") != VERSION:
        return None
    if str(plain.get("job")) != str(job) or plain.get("restart") != int(restart):
        return None
    path, step, level = plain.get("path"), plain.get("step"), plain.get("level")
    if not isinstance(path, str) or (path and (not path.startswith("/") or _CONTROL.search(path))):
        return None
    passed = plain.get("passed")
    if not isinstance(passed, list) or not all(isinstance(item, dict) for item in passed):
        return None
    passed = tuple((str(item.get("path", "")), str(item.get("reason", ""))) for item in passed)
    answer = Answer(START_OVER, "", None, "", passed, "", "", str(job), int(restart))
    if not path:
        return answer._replace(message=line("no checkpoint yet: starting from the beginning" + passed_text(passed)))
    step = step if type(step) is int else None
    text = "resuming from %s (%s%s)%s" % (path, "" if step is None else "step %d, " % step, level,
                                          passed_text(passed))
    return answer._replace(kind=RESUME, path=path, step=step, level=str(level), message=line(text))


def variables(answer):
    """{name: value} of what a job may read from its environment; None for one to be unset.

    GPUHEALTH_RESUME_ARGS is quoted for a shell only where the path needs it; such a path works with `eval`, or better
    through GPUHEALTH_RESUME_FROM in quotes. GPUHEALTH_RESUME_FOR says which start it is all for.
    """
    found = dict.fromkeys(VARIABLES)
    if answer is None or answer.kind != RESUME or not answer.path.startswith("/") or _CONTROL.search(answer.path):
        return found
    found["GPUHEALTH_RESUME_FROM"] = answer.path
    found["GPUHEALTH_RESUME_STEP"] = None if answer.step is None else "%d" % answer.step
    found["GPUHEALTH_RESUME_ARGS"] = "--resume-from " + quoted(answer.path)
    found["GPUHEALTH_RESUME_FOR"] = "%s.%d" % (answer.job, answer.restart)
    return found


def export_lines(answer):
    """Lines for TaskProlog's output (slurm.conf, TaskProlog: export, unset, print): what a script may read.

    A newline in a value would be a line of its own, so a path with any control character is not exported at all.
    Variables without a value are unset: they may have come with the environment of sbatch.
    """
    lines = []
    for name, value in variables(answer).items():
        lines.append("unset %s" % name if value is None else "export %s=%s" % (name, value))
    if answer is not None and answer.message:
        lines.append("print " + answer.message)
    if answer is not None and answer.kind == RESUME:
        if lines[0].startswith("unset"):
            lines.append("print gpuhealth: the checkpoint's path cannot be exported: " + shown(answer.path))
        elif not _SAFE_PATH.match(answer.path):
            lines.append("print gpuhealth: this path needs quotes: use \"$GPUHEALTH_RESUME_FROM\"")
    return lines


def quoted(path):
    """`path` as one word for a POSIX shell."""
    if _SAFE_PATH.match(path):
        return path
    return "'" + path.replace("'", "'\"'\"'") + "'"
