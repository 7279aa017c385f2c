"""The story on a cluster of its own: a GPU fails under a training job, and what becomes of the node and of the job.

All output shown is that of real commands. Each step is checked in Slurm's own records (what slurmctld answers and
logs), not in our events; one that did not happen ends the demo with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple, TypeVar

from . import dock, inject, lifecycle, releases
from .cluster import CTL, TestCluster, load_spec
from .errors import ExecTimeout, TestbedError
from .paths import TESTBED_DIR
from .say import say

T = TypeVar("T")
PATH = "/opt/gpuhealth/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER, CKPT = "alice", "/shared/ckpt/run7"
GPUS, GPU, CODE = 8, "gpu3", "GH-XID79"
STEPS, EVERY, STEP_S, FAULT_AT = 150, 10, 0.1, 60
HEALTHCHECK_S = 5
# A line of slurmctld's log: `[2026-11-30T16:38:22.123] text`.
LOG_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+)\] (.*)")
BOLD, DIM, GREEN, RED = "1", "2", "32", "31"

JOB = """\
#!/bin/bash
#SBATCH --job-name={name} --output=%x-%j.out --open-mode=append
#SBATCH --gres=gpu:{gpus} --requeue
#SBATCH --comment="gpuhealth:ckpt={folder}"
gpuhealth run -- python train.py --save-to {folder} {options}
"""
NEXT = """\
Where to look next
  docs/users.md    a job that picks itself up again: what to write in a batch script
  docs/admin.md    installing it, in mode `observe` first; what happens at a fault
  docs/codes.md    every reason code with its runbook
  ./demo --keep    leaves the cluster up, to break things yourself:
                   containers/slurm-testbed/testbed shell --name {name} ctl
                   containers/slurm-testbed/testbed inject --name {name} n2 ecc gpu1 dram 1
                   containers/slurm-testbed/testbed down --name {name}
  ./test           all tests, on three Slurm releases"""


class StepFailed(TestbedError):
    """A step of the story did not happen."""


class Job(NamedTuple):
    """What `scontrol show job` says of a job."""

    state: str
    host: str
    restarts: int
    exit_code: str


class Page:
    """Where the story is printed: plain ASCII, in colour only on a terminal."""

    def __init__(self) -> None:
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self.colour = sys.stdout.isatty() and not plain
        self.began = time.monotonic()
        self.headings = 0

    def paint(self, text: str, colour: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self.colour else text

    def line(self, text: str = "") -> None:
        print(text, flush=True)

    def heading(self, text: str) -> None:
        self.headings += 1
        clock = f"({time.monotonic() - self.began:.0f} s)"
        self.line(f"\n{self.paint(f'{self.headings}. {text}', BOLD)}  {self.paint(clock, DIM)}")

    def tell(self, text: str) -> None:
        self.line(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False))

    def command(self, who: str, node: str, text: str) -> None:
        prompt = f"{who}@{node} {'#' if who == 'root' else '$'}"
        self.line(f"\n{self.paint(prompt, DIM)} {self.paint(text, BOLD)}")

    def output(self, text: str) -> None:
        for row in text.rstrip("\n").split("\n") if text.strip() else []:
            self.line(printable(row))

    def seen(self, text: str) -> None:
        self.line(f"\n{self.paint('ok', GREEN)} - {text}")


def printable(row: str) -> str:
    """A line of a command's output for a terminal: what is not plain ASCII is shown as an escape."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in row.expandtabs())


class Story:
    """The steps, on a cluster that is up. Each raises StepFailed where something did not happen."""

    def __init__(self, cluster: TestCluster, page: Page) -> None:
        self.cluster, self.page, self.torch = cluster, page, cluster.spec.torch
        self.job = 0
        self.first = self.second = ""  # nodes that the job ran on
        self.incident = ""
        self.whole = self.spoilt = ""  # the two newest checkpoints; the last one is cut in half
        self.fault_time = self.to_drain = self.to_restart = 0.0

    def tell(self) -> None:
        for step in (self.train, self.spoil_newest, self.break_gpu, self.look_at_drain,
                     self.restart, self.compare, self.look_at_evidence, self.report):  # fmt: skip
            step()

    # -- commands --

    def shell(self, text: str, node: str = CTL, user: str = "root") -> dock.ExecResult:
        return self.cluster.exec(node, ["sh", "-c", text], user=user, timeout=180, env={"PATH": PATH})

    def quiet(self, text: str, node: str = CTL, user: str = "root") -> str:
        """Output of a command that is not part of the story and must succeed."""
        return self.shell(text, node, user).check().stdout

    def show(self, text: str, node: str = CTL, user: str = "root", must: bool = True) -> str:
        """Run a command, print it and all that it prints; it must succeed unless told otherwise."""
        self.page.command(user, node, text)
        done = self.shell(f"exec 2>&1; {text}", node, user)
        self.page.output(done.stdout)
        expect(done.returncode == 0 or not must, f"`{text}` ended with {done.returncode}")
        return done.stdout

    def wait(self, condition: Callable[[], T | None], seconds: float, what: str) -> T:
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            expect(time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}")
            time.sleep(0.1)
        return value

    # -- Slurm's records --

    def record(self) -> Job:
        text = self.quiet(f"scontrol -o show job {self.job}")

        def value(key: str) -> str:
            found = re.search(rf"(?:^| ){key}=(\S*)", text)
            return found[1] if found else ""

        return Job(value("JobState"), value("BatchHost"), int(value("Restarts") or 0), value("ExitCode"))

    def wait_job(self, seconds: float, what: str, condition: Callable[[Job], bool]) -> Job:
        return self.wait(
            lambda: next(filter(condition, [self.record()]), None), seconds, f"job {self.job} to {what}"
        )

    def logged(self, pattern: str) -> list[float]:
        """When slurmctld logged lines that match, oldest first, in seconds since the epoch."""
        rows = [LOG_LINE.match(row) for row in self.quiet("cat /var/log/slurm/slurmctld.log").splitlines()]
        stamps = [row[1] for row in rows if row and re.search(pattern, row[2])]
        return [datetime.fromisoformat(f"{stamp}+00:00").timestamp() for stamp in stamps]  # nodes keep UTC

    def checkpoints(self) -> list[str]:
        """Names of the finished checkpoints, oldest first."""
        names = self.quiet(f"ls {CKPT} 2>/dev/null || true", user=USER).split()
        return sorted(name for name in names if name.startswith("step-"))

    # -- the steps --

    def prepare(self) -> None:
        self.cluster.set_conf({"HealthCheckInterval": str(HEALTHCHECK_S)})
        files = {
            "train.py": (TESTBED_DIR / "jobs" / "train.py").read_text(),
            "job.sh": self.batch_script("train", CKPT, "final.safetensors", STEP_S),
            "reference.sh": self.batch_script("reference", "/shared/ckpt/reference", "reference.safetensors", 0),
        }
        for name, text in files.items():
            self.cluster.exec(CTL, ["sh", "-c", f"cat > {name}"], user=USER, stdin=text).check()

    def batch_script(self, name: str, folder: str, out: str, step_seconds: float) -> str:
        options = f"--steps {STEPS} --every {EVERY} --out {out}"
        options += f" --step-seconds {step_seconds:g}" if step_seconds else ""
        options += " --format torch" if self.torch else ""
        return JOB.format(name=name, gpus=GPUS, folder=folder, options=options)

    def train(self) -> None:
        page = self.page
        page.heading(f"A user trains on {GPUS} GPUs and saves checkpoints")
        page.tell("The comment says where the checkpoints are; `gpuhealth run` starts the training.")
        self.show("cat job.sh", user=USER)
        submitted = re.search(r"Submitted batch job (\d+)", self.show("sbatch job.sh", user=USER))
        self.job = int(expect(submitted, "sbatch gave no job id")[1])
        self.first = self.wait_job(30, "run", lambda job: job.state == "RUNNING").host
        self.wait(lambda: len(self.checkpoints()) >= FAULT_AT // EVERY, 60, f"step {FAULT_AT}")
        self.wait(self.stand_still, 30, "a moment between two checkpoints")
        self.show("squeue", user=USER)
        self.show(f"tail -n 5 train-{self.job}.out", user=USER)
        page.seen(f"job {self.job} runs on {self.first}; it has saved {len(self.checkpoints())} checkpoints")

    def stand_still(self) -> bool:
        """Stop the training as if it waited for a dead GPU, well before its next checkpoint; False: not now.

        Slurm sends SIGCONT before it ends a job: a save that is near would then still be made.
        """
        to_training = f"pkill -{{}} -u {USER} -f '^[^ ]*python train.py'"
        self.quiet(to_training.format("STOP"), node=self.first)
        step = int(self.quiet(f"grep -c '^step' train-{self.job}.out", user=USER))
        if step % EVERY <= EVERY // 2 and self.checkpoints()[-1].startswith(f"step-{step - step % EVERY:06d}"):
            return True
        self.quiet(to_training.format("CONT"), node=self.first)
        return False

    def spoil_newest(self) -> None:
        *_, self.whole, self.spoilt = self.checkpoints()
        page = self.page
        page.heading(f"The demo spoils the newest checkpoint, {self.spoilt}")
        page.tell("It is cut in half, as a save is that did not reach the storage whole. A restart from it would fail.")
        path = f"{CKPT}/{self.spoilt}" + ("" if self.torch else "/model.safetensors")
        half = int(self.quiet(f"stat -c %s {path}")) // 2
        self.show(f"truncate -s {half} {path}")
        page.seen(f"{self.spoilt} is cut off; the one before it, {self.whole}, is whole")

    def break_gpu(self) -> None:
        page = self.page
        page.heading(f"{GPU} of {self.first} falls off the bus")
        page.tell(
            "Xid 79 in the kernel log, and NVML calls the GPU lost. A training hangs on such a GPU; as this one "
            "computes on the CPU, the demo has stopped its process."
        )
        self.fault_time = time.time()
        inject.inject(self.cluster, self.first, ["off-bus", GPU])
        self.show("tail -n 2 /var/lib/gpusim/kmsg", node=self.first)
        self.show(f"nvidia-smi -i {GPU[3:]}", node=self.first, must=False)
        self.wait(lambda: "drain" in self.node_state(), 40, f"{self.first} to be drained")
        reason = self.quiet(f"sinfo -h -n {self.first} -p main -o %E").strip()
        expect(reason.startswith(f"{CODE} {GPU} "), f"the reason of {self.first} is {reason!r}")
        incident = re.search(r"\[ev=(\w+)\]", reason)
        self.incident = expect(incident, f"the reason names no evidence: {reason!r}")[1]
        times = self.logged(rf"update_node: node {self.first} reason set to: {CODE}")
        expect(times, f"slurmctld logged no {CODE} for {self.first}")
        self.to_drain = times[0] - self.fault_time

    def node_state(self) -> str:
        return self.quiet(f"sinfo -h -n {self.first} -p main -o %T").strip()

    def look_at_drain(self) -> None:
        page = self.page
        page.heading("The node is out, with a code")
        self.show("sinfo -R")
        self.show("gpuhealth status")
        self.show(f"gpuhealth explain {CODE} | sed -n '1,4p; /^Runbook/,$p'")
        page.seen(f"drained {self.to_drain:.1f} s after the fault (health checks run every {HEALTHCHECK_S} s)")

    def restart(self) -> None:
        page = self.page
        page.heading("The job starts again elsewhere, by itself")
        page.tell("The hook has requeued it. Slurm would wait two minutes; its start was set some seconds ahead.")
        self.second = self.wait_job(
            150, "run again", lambda job: job.restarts > 0 and job.state in ("RUNNING", "COMPLETED")
        ).host
        self.show("squeue", user=USER)
        expect(self.second != self.first, f"the job runs on the broken node {self.first} again")
        end = self.wait_job(120, "end", lambda job: job.state not in ("PENDING", "RUNNING", "COMPLETING"))
        expect(end.state == "COMPLETED", f"the job ended as {end.state} ({end.exit_code})")
        output = self.show(f"grep -v -e ^step -e ^saved train-{self.job}.out", user=USER)
        requeued = self.logged(rf"^Requeuing JobId={self.job}\b")
        started = self.logged(rf"(Allocate|Started) JobId={self.job}\b")
        expect(len(requeued) == 1 and end.restarts == 1, f"requeued {len(requeued)} times, {end.restarts} restarts")
        expect(len(started) == 2, f"slurmctld logged {len(started)} starts of the job")
        self.to_restart = started[1] - requeued[0]
        expect(f"from {CKPT}/{self.whole}\n" in output, f"the training did not go on from {self.whole}")
        expect(f"finished at step {STEPS}" in output, "the training did not finish")
        page.seen(
            f"{self.spoilt} was passed over; from {self.whole} it went on to the end, on {self.second}, "
            f"{self.to_restart:.1f} s after it had ended on {self.first}"
        )

    def compare(self) -> None:
        page = self.page
        page.heading("Is it the same result? The same training, uninterrupted")
        self.show("sbatch --wait reference.sh", user=USER)
        self.show("sha256sum final.safetensors reference.safetensors", user=USER)
        same = self.shell("cmp final.safetensors reference.safetensors", user=USER)
        expect(same.returncode == 0, "the weights differ")
        page.seen("the weights are equal, bit for bit")

    def look_at_evidence(self) -> None:
        page = self.page
        page.heading("What was kept")
        page.tell("Facts and the kernel log before the node was drained, the rest before the job was requeued.")
        self.show(f"gpuhealth evidence show {self.incident}", node=self.first)
        self.show(f"gpuhealth evidence verify {self.incident}", node=self.first)
        page.line()
        page.tell("The decision was made from these files alone, so it can be made again from them:")
        self.show(f"gpuhealth replay {self.incident}", node=self.first)
        page.seen("the evidence is as it was collected, and leads to the same decision")

    def report(self) -> None:
        page = self.page
        page.heading("What the user sees, and what the week's report says")
        told = self.show(f"gpuhealth job {self.job}", user=USER)
        expect(self.whole in told and self.spoilt in told, "the user is not told which checkpoints were looked at")
        self.show("gpuhealth report")
        plain = json.loads(self.quiet("gpuhealth report --format json"))
        counts = plain["incidents"]["total"], plain["requeues"]["total"], plain["restarts"]["resumed"]
        expect(counts == (1, 1, 1), f"the report counts {counts}: incidents, requeues, resumed restarts")
        steps = int(re.sub(r"\D", "", self.whole))
        page.line(f"\n{page.paint('In short', BOLD)} (times from slurmctld's log)")
        page.line(f"  fault to drained node                      {self.to_drain:5.1f} s")
        page.line(f"  end of COMPLETING to running elsewhere     {self.to_restart:5.1f} s")
        page.line(f"  training went on from                step {steps:5d} of {STEPS}")
        page.line("  hands on a keyboard                         none")

    def picture(self) -> None:
        """For a step that failed: queue, nodes, the job's output and the end of slurmctld's log."""
        words = (
            "squeue -t all; sinfo -N -o '%N %T %E'; tail -n 15 /var/log/slurm/slurmctld.log; "
            f"tail -n 15 /shared/home/{USER}/train-{self.job}.out"
        )
        try:
            self.page.output(self.shell(f"exec 2>&1; {words}").stdout)
        except (TestbedError, ExecTimeout) as exc:
            self.page.output(str(exc))


def expect(value: T | None, what: str) -> T:
    """The value, where there is one; else the step has failed."""
    if not value:
        raise StepFailed(what)
    return value


@contextmanager
def ends_cleanly(name: str, keep: bool) -> Iterator[None]:
    """SIGTERM and a closed terminal end the demo like Ctrl-C does; the cluster goes away whatever happened."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        # A second Ctrl-C must not leave half of it behind.
        for number in (signal.SIGINT, *before):
            signal.signal(number, signal.SIG_IGN)
        if keep:
            say(f"cluster {name} stays up: `containers/slurm-testbed/testbed down --name {name}` removes it")
        else:
            lifecycle.down(name)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, handler in before.items():
            signal.signal(number, handler)


def run(args: argparse.Namespace) -> int:
    """Make a cluster, tell the story on it, remove it (unless args.keep); 1 when a step did not happen.

    args: name, release (None: what goes with args.torch), torch, mirror, keep.
    """
    spec = load_spec(args.name)
    if spec is not None and spec.ready:
        raise TestbedError(
            f"there is a cluster {args.name} already: `testbed down --name {args.name}` first, or another --name"
        )
    release = args.release or (releases.TORCH_RELEASE if args.torch else releases.DEFAULT)
    page = Page()
    page.line(page.paint(f"slurm-gpuhealth on a real Slurm {release} cluster with simulated GPUs", BOLD))
    page.line("A training job loses a GPU. Nobody is called, nothing is edited, nothing is submitted again.")
    with ends_cleanly(args.name, args.keep):
        cluster = lifecycle.up(args.name, slurm=release, torch=args.torch, mirror=args.mirror)
        try:
            return tell(Story(cluster, page))
        finally:
            cluster.close()


def tell(story: Story) -> int:
    page = story.page
    page.began = time.monotonic()
    try:
        story.prepare()
        story.tell()
    except TestbedError as exc:
        page.line(f"\n{page.paint('FAILED', RED)}: {printable(str(exc))}")
        story.picture()
        return 1
    page.line("\n" + NEXT.format(name=story.cluster.name))
    return 0
