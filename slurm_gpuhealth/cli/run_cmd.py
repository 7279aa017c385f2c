"""`gpuhealth run [--checkpoint-dir D] -- CMD`: start a job's command, after a restart with --resume-from its
checkpoint.

The command is exec'd, not started as a child: same process id, so every signal of Slurm reaches it, its exit
status is the job's, and nothing of ours stays behind to be wrong. All that this does, it does before.

Runs as the job's user, perhaps in a container without Slurm's programs, perhaps in every task of a step: it
imports little, asks slurmctld only at a job's first start, once, and only when it has something to declare.
"""
from __future__ import annotations

import os
import signal
import sys

from slurm_gpuhealth import resume
from slurm_gpuhealth.errors import UsageError
from slurm_gpuhealth.parse import comment

EXIT_NOT_STARTED = 75       # sysexits.h EX_TEMPFAIL: nothing is lost, a person or a later start may help
EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 126, 127      # as a shell says it

ACCEPTS = ("verified", "structure-only")
RESOLVE_SECONDS = 120       # for looking by ourselves: the job's own time, and better than a start from zero
SLURM_SECONDS = 10
_FLAG = "--resume-from"

EPILOG = """\
example (in a batch script; the folder is declared in the job's comment at its first start):
  gpuhealth run --checkpoint-dir /ckpt/run7 -- srun python train.py --save-to /ckpt/run7

At a restart the command gets --resume-from PATH, with the newest checkpoint that verifies. Without one, it starts
from the beginning only when the folder is empty; exit code 75 says that it was not started.
"""


class Options:
    """What the command line says. checkpoint_dir: folder or "". when_none: as in a job's comment. command: list."""

    def __init__(self, checkpoint_dir="", when_none="hold", command=()):
        self.checkpoint_dir = os.path.abspath(checkpoint_dir) if checkpoint_dir else ""
        self.when_none = when_none
        self.command = list(command)
        if not self.command:
            raise UsageError("no command to run (see `gpuhealth run -h`)")
        if when_none not in comment.WHEN_NONE:
            raise UsageError("--when-none is %s" % " or ".join(comment.WHEN_NONE))


def add_parser(subparsers):
    """The arguments, for `gpuhealth -h`; `fast_main` reads the same ones without argparse."""
    import argparse
    parser = subparsers.add_parser(
        "run", help="run a job's command with its resume point", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint-dir", metavar="D", default="",
                        help="where the command saves; declared in the job's comment at its first start")
    parser.add_argument("--when-none", choices=comment.WHEN_NONE, default="hold",
                        help="what to do when there are files and none is an acceptable checkpoint (default: hold)")
    parser.add_argument("job_command", metavar="CMD", nargs=argparse.REMAINDER, help="the command and its arguments")
    return parser


def run(args, out):
    """Run the command; returns only when it was not started."""
    command = args.job_command[1:] if args.job_command[:1] == ["--"] else args.job_command
    return start(Options(args.checkpoint_dir, args.when_none, command), args.root)


def fast_main(arguments):
    """`gpuhealth run` without argparse. arguments: what follows "run". None when it asks for help.

    Raises UsageError; otherwise returns only when the command was not started.
    """
    values, at, root = {}, 0, ""
    while at < len(arguments):
        word, equals, value = arguments[at].partition("=")
        if word == "--":
            at += 1
            break
        if word in ("-h", "--help"):
            return None
        if word not in ("--checkpoint-dir", "--when-none", "--root"):
            if word.startswith("-"):
                raise UsageError("unknown option %s (see `gpuhealth run -h`)" % comment.shown(word))
            break
        if not equals:
            at += 1
            if at == len(arguments):
                raise UsageError("%s needs a value" % word)
            value = arguments[at]
        if word == "--root":
            root = value
        else:
            values[word[2:].replace("-", "_")] = value
        at += 1
    return start(Options(command=arguments[at:], **values), root)


def start(options, root="", env=None):
    """Do what is to be done before the command, then become it."""
    env = dict(os.environ) if env is None else env
    # A job that is ended while we look must not show a traceback of ours.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    job, restart = env.get("SLURM_JOB_ID", ""), _restart_count(env)
    command = options.command
    if not job:
        say("not in a Slurm job: the command runs as it is", env)
    elif restart == 0:
        for name in resume.VARIABLES:   # they came along with the environment of sbatch
            env.pop(name, None)
        if options.checkpoint_dir and _is_first_task(env):
            say(declare(options.checkpoint_dir, env), env)
    else:
        answer, note = find_answer(options, root, env, job, restart)
        say(answer.message[len("gpuhealth: "):] + (" (%s)" % note if note else ""), env,
            always=answer.kind == resume.HOLD)
        if answer.kind == resume.HOLD:
            return EXIT_NOT_STARTED
        command = apply(answer, command, env)
    return become(command, env)


def apply(answer, command, env):
    """The command for an answer, with --resume-from where it has none yet; the variables in `env` are set too."""
    for name, value in resume.variables(answer).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    if answer.kind != resume.RESUME:
        return command
    if any(word == _FLAG or word.startswith(_FLAG + "=") for word in command):
        return command      # its own, or that of a `gpuhealth run` around this one
    return command + [_FLAG, answer.path]


def become(command, env):
    """exec. Returns a shell's exit code when that fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these two; an ignored signal would stay ignored in the command.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvpe(command[0], command, env)
    except FileNotFoundError:
        code = EXIT_NOT_FOUND
    except OSError:
        code = EXIT_NOT_EXECUTABLE
    say("cannot run %s" % comment.shown(command[0]), env, always=True)
    return code


# -- the answer at a restart

def find_answer(options, root, env, job, restart):
    """(Answer, note) for this start: from the environment, from this node's hooks, or by looking ourselves.

    The answer's kind is RESUME, START_OVER, NONE, or HOLD where the command should not start.
    """
    answer = from_environment(env, job, restart)
    if answer is None:
        answer = read_answer(root, job, restart)
    if answer is not None:
        return answer, ""
    folder = options.checkpoint_dir
    why = "this node's hooks left no answer for this start"
    if not folder:
        folder = _declared_folder(env)
        if not folder:
            return resume.Answer(resume.NONE, message=resume.line("no checkpoint folder is known"), job=job,
                                 restart=restart), why
    if env.get("SLURM_NTASKS", "1") != "1" and env.get("SLURM_STEP_ID", "").isdigit():
        why += "; every task looks for itself: better put `gpuhealth run` in front of srun"
    return _look(folder, options, job, restart), why


def from_environment(env, job, restart):
    """The answer that TaskProlog, or a `gpuhealth run` around this one, has put into the environment; or None."""
    path = env.get("GPUHEALTH_RESUME_FROM", "")
    if env.get("GPUHEALTH_RESUME_FOR") != "%s.%d" % (job, restart) or not path:
        return None
    step = env.get("GPUHEALTH_RESUME_STEP", "")
    plain = {"v": resume.VERSION, "job": job, "restart": restart, "path": path, "level": "from the environment",
             "step": int(step) if step.isdigit() and len(step) < 16 else None, "passed": []}
    return resume.from_record(plain, job, restart)


def read_answer(root, job, restart):
    """The answer that Prolog left for this start, or None (checkpoint/answer.py)."""
    from slurm_gpuhealth.checkpoint import answer
    return answer.read(root, job, restart)


def _look(folder, options, job, restart):
    """Look for the newest acceptable checkpoint in our own name: an Answer."""
    import time

    from slurm_gpuhealth.checkpoint import find
    found = find.latest(folder, ACCEPTS, "full", time.monotonic() + RESOLVE_SECONDS)
    answer = resume.Answer(resume.HOLD, passed=found.passed, job=job, restart=restart)
    if found.outcome in ("found", "empty"):
        policy = {"max_restarts": 1 << 30, "when_none_acceptable": options.when_none}
        return resume.plan_resume(found, None, job, restart, policy)
    text = found.reason + resume.passed_text(found.passed)
    if found.outcome == "none-acceptable" and options.when_none == "start-over":
        return answer._replace(kind=resume.START_OVER,
                               message=resume.line("starting from the beginning as chosen: " + text))
    return answer._replace(message=resume.line("not started: " + text))


# -- the declaration

def declare(folder, env):
    """Put the folder into the job's comment, unless one is declared already. Returns the line to say, "" for none."""
    why_not = ("%s; at a restart this command looks for checkpoints itself, but the node's hooks see no declaration")
    before = _comment(env)
    if before is None:
        return why_not % "the job's comment cannot be read here (no squeue, or no answer)"
    after = comment.with_declaration(before, folder)
    if isinstance(after, comment.BadToken):
        return why_not % after.reason
    if after == before:
        return ""
    done = _slurm("scontrol", ["update", "JobId=" + _job_name(env), "Comment=" + after], env)
    if done is None or done.rc != 0:
        said = "no scontrol here" if done is None else comment.shown((done.err or done.out).strip() or "no answer", 120)
        return why_not % ("the job's comment cannot be set: " + said)
    return "declared %s in the comment of job %s" % (folder, _job_name(env))


def _declared_folder(env):
    """Folder that the job's comment names, "" without."""
    token = comment.parse(_comment(env) or "")
    if not isinstance(token, comment.Token) or not token.ckpt:
        return ""
    values = {"job_id": env.get("SLURM_JOB_ID"), "array_job_id": env.get("SLURM_ARRAY_JOB_ID"),
              "array_task_id": env.get("SLURM_ARRAY_TASK_ID"), "job_name": env.get("SLURM_JOB_NAME"),
              "user": env.get("SLURM_JOB_USER") or env.get("USER")}
    path = comment.expand(token.ckpt, values)
    return "" if isinstance(path, comment.BadToken) else path


def _comment(env):
    """The job's comment, "" for none, None when it cannot be read. squeue prints it alone and as it is."""
    done = _slurm("squeue", ["--noheader", "--jobs=" + _job_name(env), "--format=%k"], env)
    if done is None or done.rc != 0:
        return None
    text = done.out[:-1] if done.out.endswith("\n") else done.out
    return "" if text in ("(null)", "N/A") else text


def _job_name(env):
    """Slurm's name of this job; A_T for a task of an array, whose bare id may mean the whole array."""
    if env.get("SLURM_ARRAY_JOB_ID") and env.get("SLURM_ARRAY_TASK_ID"):
        return "%s_%s" % (env["SLURM_ARRAY_JOB_ID"], env["SLURM_ARRAY_TASK_ID"])
    return env["SLURM_JOB_ID"]


def _slurm(program, arguments, env):
    """Run one of Slurm's programs: command.Done, or None when it is not here."""
    from slurm_gpuhealth import command
    for folder in env.get("PATH", "").split(":") + ["/usr/bin"]:
        full = os.path.join(folder, program)
        if folder.startswith("/") and os.access(full, os.X_OK):
            passed_on = {name: env[name] for name in ("SLURM_CONF",) if name in env}
            return command.run([full] + arguments, SLURM_SECONDS, env=passed_on)
    return None


def _restart_count(env):
    text = env.get("SLURM_RESTART_COUNT", "")
    return int(text) if text.isdigit() and len(text) < 10 else 0


def _is_first_task(env):
    return env.get("SLURM_PROCID", "0") == "0"


def say(text, env, always=False):
    """One line in the job's output, from the first task only."""
    if text and (always or _is_first_task(env)):
        sys.stderr.write("gpuhealth: %s\n" % comment.shown(text, 1200))
        sys.stderr.flush()
