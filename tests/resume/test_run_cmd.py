"""`gpuhealth run`: what is done before the command, and that the command is then all there is."""
import ast
import json
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from slurm_gpuhealth import resume
from slurm_gpuhealth.checkpoint.seal import seal

pytestmark = pytest.mark.allow_subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MAIN = ("import sys; sys.path.insert(0, %r); from slurm_gpuhealth.cli.run_cmd import fast_main;"
        "sys.exit(fast_main(sys.argv[1:]))" % ROOT)

# A squeue and a scontrol that keep the job's comment in a file and log how they were called.
FAKE = """#!%s
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/calls", "a") as log:
    log.write(repr([os.path.basename(__file__)] + sys.argv[1:]) + "\\n")
if os.path.exists(here + "/away"):
    sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
if __file__.endswith("squeue"):
    print(open(here + "/comment", errors="surrogateescape").read() or "(null)")
else:
    open(here + "/comment", "w", errors="surrogateescape").write(sys.argv[-1].partition("=")[2])
""" % sys.executable


class Place:
    """A folder with the fake programs, a root for /run, and a way to run things."""

    def __init__(self, tmp_path):
        self.path = str(tmp_path)
        self.bin = self.path + "/bin"
        os.mkdir(self.bin)
        self.comment = ""
        for name in ("squeue", "scontrol"):
            with open(self.bin + "/" + name, "w") as handle:
                handle.write(FAKE)
            os.chmod(self.bin + "/" + name, 0o755)

    @property
    def comment(self):
        with open(self.bin + "/comment", errors="surrogateescape") as handle:
            return handle.read()

    @comment.setter
    def comment(self, text):
        with open(self.bin + "/comment", "w", errors="surrogateescape") as handle:
            handle.write(text)

    def calls(self):
        if not os.path.exists(self.bin + "/calls"):
            return []
        with open(self.bin + "/calls") as handle:
            return [ast.literal_eval(line) for line in handle]

    def env(self, **more):
        return dict({"PATH": self.bin + ":/usr/bin:/bin", "SLURM_JOB_ID": "12"}, **more)

    def run(self, *arguments, **more):
        return subprocess.run([sys.executable, "-IS", "-c", MAIN, "--root", self.path] + list(arguments),
                              env=self.env(**more), capture_output=True, text=True, timeout=60)

    def answer(self, path="/c/step-400", restart=1, mode=0o400, **more):
        os.makedirs(self.path + "/run/gpuhealth", exist_ok=True)
        record = {"v": 1, "job": "12", "restart": restart, "path": path, "step": 400, "level": "verified",
                  "passed": [{"path": "/c/step-450", "reason": "cut off"}]}
        file = self.path + "/run/gpuhealth/job-12.json"
        with open(file, "w") as handle:
            json.dump(dict(record, **more), handle)
        os.chmod(file, mode)
        return file

    def checkpoint(self, step):
        folder = "%s/ckpt/step-%d" % (self.path, step)
        os.makedirs(folder)
        with open(folder + "/state.bin", "wb") as handle:
            handle.write(b"%d" % step)
        seal(folder, step=step)
        return folder


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


# -- the first start

def test_a_first_start_declares_the_folder(place):
    """The token goes into the job's comment, whose other text stays; the command is not changed."""
    place.comment = "mine, \udcff"
    done = place.run("--checkpoint-dir", "/c/run 7", "--", "echo", "a", "--resume-from")
    assert (done.returncode, done.stdout) == (0, "a --resume-from\n")
    assert place.comment == "mine, \udcff gpuhealth:ckpt=/c/run%207"
    assert done.stderr == "gpuhealth: declared /c/run 7 in the comment of job 12\n"
    assert place.calls()[0] == ["squeue", "--noheader", "--jobs=12", "--format=%k"]


def test_a_declared_folder_is_left_alone(place):
    """What the user declared himself stands; nothing is written or said."""
    place.comment = "gpuhealth:ckpt=/mine"
    done = place.run("--checkpoint-dir", "/c", "--", "echo", "a")
    assert (done.stdout, done.stderr, place.comment) == ("a\n", "", "gpuhealth:ckpt=/mine")
    assert [call[0] for call in place.calls()] == ["squeue"]


def test_a_task_of_an_array_is_named_in_full(place):
    """A bare id may mean the whole array."""
    place.run("--checkpoint-dir", "/c", "--", "true", SLURM_ARRAY_JOB_ID="10", SLURM_ARRAY_TASK_ID="2")
    assert [call[-1] if call[0] == "scontrol" else call[2] for call in place.calls()] == [
        "--jobs=10_2", "Comment=gpuhealth:ckpt=/c"]
    assert place.calls()[1][1:3] == ["update", "JobId=10_2"]


def test_only_the_first_task_asks_slurm(place):
    """A thousand tasks of a step do not ask slurmctld a thousand times, nor say the same line."""
    done = place.run("--checkpoint-dir", "/c", "--", "echo", "a", SLURM_PROCID="3")
    assert (done.stdout, done.stderr, place.calls()) == ("a\n", "", [])


def test_without_a_folder_slurm_is_not_asked(place):
    """Nothing to declare: nothing is asked, and the command starts at once."""
    assert place.run("--", "echo", "a").stdout == "a\n"
    assert place.calls() == []


@pytest.mark.parametrize("why", ["no programs", "slurmctld away", "bad token", "no room"])
def test_what_cannot_be_declared_is_said_and_no_matter(place, why):
    """In a container without scontrol, or with a comment that is full or bad: said, and the command runs."""
    if why == "no programs":
        os.rename(place.bin, place.path + "/elsewhere")
    elif why == "slurmctld away":
        open(place.bin + "/away", "w").close()
    else:
        place.comment = "gpuhealth:zzz=1" if why == "bad token" else "x" * 1020
    done = place.run("--checkpoint-dir", "/c", "--", "echo", "a")
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert "the node's hooks see no declaration" in done.stderr
    assert done.stderr.count("\n") == 1


def test_variables_of_another_job_are_taken_away(place):
    """sbatch from within a job brings that job's variables along: a first start must not see them."""
    done = place.run("--", "env", GPUHEALTH_RESUME_FROM="/other", GPUHEALTH_RESUME_FOR="5.1")
    assert "GPUHEALTH" not in done.stdout


# -- a restart

def test_the_answer_of_prolog_is_used(place):
    """--resume-from is added, the variables are set, and one line says from where and what was passed over."""
    place.answer()
    done = place.run("--", "sh", "-c", 'echo "$@" $GPUHEALTH_RESUME_FOR $GPUHEALTH_RESUME_STEP', "x",
                     SLURM_RESTART_COUNT="1")
    assert done.stdout == "--resume-from /c/step-400 12.1 400\n"
    assert done.stderr == ("gpuhealth: resuming from /c/step-400 (step 400, verified);"
                           " passed over: step-450 (cut off)\n")
    assert place.calls() == []


def test_an_answer_for_the_beginning(place):
    """An answer without a path: nothing is added."""
    place.answer(path="", passed=[])
    done = place.run("--checkpoint-dir", "/c", "--", "echo", "a", SLURM_RESTART_COUNT="1")
    assert (done.stdout, done.stderr) == ("a\n", "gpuhealth: no checkpoint yet: starting from the beginning\n")


@pytest.mark.parametrize("change", [{"restart": 2}, {"mode": 0o666}, {"v": 9}, {"path": "/a\nb"}, {"job": "13"}])
def test_an_answer_that_is_not_for_this_start_is_ignored(place, change):
    """Another restart's, another job's, one that anybody could have written: the command looks for itself."""
    place.answer(**change)
    done = place.run("--checkpoint-dir", place.path + "/ckpt", "--", "echo", "a", SLURM_RESTART_COUNT="1")
    assert done.stdout == "a\n"
    assert "this node's hooks left no answer for this start" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_answer_of_somebody_else_is_ignored(place):
    """The file must be root's or the user's own."""
    os.chown(place.answer(), 65534, 65534)
    assert "left no answer" in place.run("--", "true", SLURM_RESTART_COUNT="1").stderr


def test_an_answer_that_is_no_file_is_ignored(place):
    """A link or a FIFO in its place does not block and is not read."""
    file = place.answer()
    os.rename(file, file + ".real")
    os.symlink(file + ".real", file)
    assert "left no answer" in place.run("--", "true", SLURM_RESTART_COUNT="1").stderr
    os.unlink(file)
    os.mkfifo(file)
    assert "left no answer" in place.run("--", "true", SLURM_RESTART_COUNT="1").stderr


def test_without_an_answer_it_looks_itself(place):
    """The newest acceptable one, verified; damage is passed over and said, with the missing declaration."""
    place.checkpoint(10)
    os.truncate(place.checkpoint(20) + "/state.bin", 1)
    done = place.run("--checkpoint-dir", place.path + "/ckpt", "--", "echo", "a", SLURM_RESTART_COUNT="1")
    assert done.stdout == "a --resume-from %s/ckpt/step-10\n" % place.path
    assert "step 10, verified" in done.stderr
    assert "passed over: step-20 (state.bin has 1 bytes instead of 2)" in done.stderr
    assert "this node's hooks left no answer" in done.stderr


def test_the_comment_names_the_folder_where_the_command_does_not(place):
    """`gpuhealth run -- CMD` finds the declared folder, placeholders filled in."""
    place.checkpoint(10)
    place.comment = "gpuhealth:ckpt=%s/{job_name}" % place.path
    done = place.run("--", "echo", "a", SLURM_RESTART_COUNT="1", SLURM_JOB_NAME="ckpt")
    assert done.stdout == "a --resume-from %s/ckpt/step-10\n" % place.path


def test_nothing_acceptable_is_not_started(place):
    """Files and no checkpoint among them: exit 75 and why; --when-none=start-over starts it."""
    os.truncate(place.checkpoint(20) + "/state.bin", 0)
    arguments = ["--checkpoint-dir", place.path + "/ckpt"]
    done = place.run(*arguments, "--", "echo", "a", SLURM_RESTART_COUNT="1")
    assert (done.returncode, done.stdout) == (75, "")
    assert "not started: files are in" in done.stderr
    done = place.run(*arguments, "--when-none=start-over", "--", "echo", "a", SLURM_RESTART_COUNT="1")
    assert (done.returncode, done.stdout) == (0, "a\n")
    assert "starting from the beginning as chosen" in done.stderr


def test_a_folder_that_cannot_be_looked_at_is_not_started(place):
    """A mount that is away: not started from zero."""
    done = place.run("--checkpoint-dir", place.path + "/gone/ckpt", "--when-none", "start-over", "--", "echo", "a",
                     SLURM_RESTART_COUNT="2")
    assert (done.returncode, done.stdout) == (75, "")


def test_an_outer_run_decides(place):
    """The environment of a `gpuhealth run` around this one (or of TaskProlog) is believed for this start only."""
    place.checkpoint(10)
    inner = ["--checkpoint-dir", place.path + "/ckpt", "--", "echo", "a"]
    outer = {"GPUHEALTH_RESUME_FROM": "/c/step-9", "GPUHEALTH_RESUME_FOR": "12.1", "SLURM_RESTART_COUNT": "1"}
    assert place.run(*inner, **outer).stdout == "a --resume-from /c/step-9\n"
    assert place.run(*inner, "--resume-from", "/c/step-9", **outer).stdout == "a --resume-from /c/step-9\n"
    stale = dict(outer, GPUHEALTH_RESUME_FOR="12.0")
    assert place.run(*inner, **stale).stdout == "a --resume-from %s/ckpt/step-10\n" % place.path


# -- the command itself

def test_exit_codes_are_those_of_the_command(place):
    """The command's own; 127 and 126 as a shell has them."""
    assert place.run("--", "sh", "-c", "exit 93").returncode == 93
    assert place.run("--", "/no/such/program").returncode == 127
    assert place.run("--", place.path).returncode == 126


@pytest.mark.parametrize("name", ["TERM", "INT", "USR1", "USR2", "HUP", "CONT", "PIPE"])
def test_signals_reach_the_command(place, name):
    """It is the same process: what Slurm sends arrives there, and no signal is left ignored."""
    number = getattr(signal, "SIG" + name)
    script = "trap 'echo got; exit 5' %s; echo ready; while :; do sleep 0.05; done" % name
    # These tests may themselves run with a signal ignored (nohup), and a shell cannot trap one that it inherited so.
    with subprocess.Popen([sys.executable, "-IS", "-c", MAIN, "--", "bash", "-c", script], env=place.env(), text=True,
                          stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(number)
            assert child.communicate(timeout=20)[0] == "got\n"
            assert child.returncode == 5
        finally:
            child.kill()


def test_outside_of_a_job_the_command_runs(place):
    """On a login node: said, and run as it is."""
    done = subprocess.run([sys.executable, "-IS", "-c", MAIN, "--checkpoint-dir", "/c", "--", "echo", "a"],
                          env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("a\n", "gpuhealth: not in a Slurm job: the command runs as it is\n")


def test_it_imports_little(place):
    """A start costs no YAML, no argparse, no subprocess: it happens in every task of every step."""
    script = MAIN.replace("sys.exit(fast_main(sys.argv[1:]))",
                          "print(' '.join(sys.modules)); fast_main(sys.argv[1:])")
    done = subprocess.run([sys.executable, "-IS", "-c", script, "--", "true"], env=place.env(), capture_output=True,
                          text=True)
    loaded = set(done.stdout.split())
    assert loaded & {"yaml", "argparse", "subprocess", "typing", "hashlib", "json", "threading", "pathlib"} == set()
    assert {name for name in loaded if name.startswith("slurm_gpuhealth.checkpoint")} == set()


def test_arguments(place):
    """Options end at the command; unknown ones and missing values are usage errors."""
    from slurm_gpuhealth.cli import run_cmd
    from slurm_gpuhealth.errors import UsageError
    assert run_cmd.fast_main(["-h"]) is None
    for arguments in (["--nope", "x"], ["--checkpoint-dir"], [], ["--"], ["--when-none", "maybe", "--", "x"]):
        with pytest.raises(UsageError):
            run_cmd.fast_main(arguments)


def test_the_answer_file_is_as_prolog_writes_it(place):
    """resume.record is what is read here."""
    answer = resume.Answer("resume", "/c/x", 7, "verified", (("/c/y", "cut"),), "", "", "12", 1)
    file = place.answer()
    os.chmod(file, 0o600)
    with open(file, "w") as handle:
        json.dump(resume.record(answer), handle)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert place.run("--", "echo", SLURM_RESTART_COUNT="1").stdout == "--resume-from /c/x\n"


def test_it_starts_quickly(place):
    """Far less than a second, also here where a bare Python takes a tenth of it."""
    started = time.monotonic()
    place.run("--", "true")
    assert time.monotonic() - started < 2
