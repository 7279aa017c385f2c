"""What the cluster tests drive: a `Cluster` over the test cluster (containers/slurm-testbed), in Slurm's own words.

Everything a test asserts comes from slurmctld, from files on the nodes or from processes; nothing is cached.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

TESTBED = Path(__file__).resolve().parents[2] / "containers" / "slurm-testbed"
if str(TESTBED) not in sys.path:
    sys.path.insert(0, str(TESTBED))

from testbed_lib import inject as injection  # noqa: E402
from testbed_lib import lifecycle  # noqa: E402
from testbed_lib.cluster import CTL, TestCluster  # noqa: E402
from testbed_lib.dock import ExecResult  # noqa: E402
from testbed_lib.errors import ExecTimeout, TestbedError  # noqa: E402

T = TypeVar("T")
GPUHEALTH = "/opt/gpuhealth/bin/gpuhealth"
STATE_DIR, RUN_DIR = "/var/lib/gpuhealth", "/run/gpuhealth"
KMSG = "/var/lib/gpusim/kmsg"
__all__ = ["CTL", "Cluster", "ExecResult", "ExecTimeout", "TestbedError", "parse_show"]

# `Key=Value Key=Value`, where a value may hold blanks: a new key is a word with a capital and an equals sign.
KEY = re.compile(r"(?:^| )([A-Z][A-Za-z0-9/:_]*)=")


def parse_show(line: str) -> dict[str, str]:
    """One line of `scontrol -o show`. Free text (Comment) that looks like ` Key=` would cut it: see comment()."""
    marks = list(KEY.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    return {mark[1]: line[mark.end() : end].strip() for mark, end in zip(marks, ends)}


class Cluster:
    """A running test cluster. Node names are `ctl`, `n1`, `n2`, ...; users are `alice` and `bob`."""

    def __init__(self, inner: TestCluster) -> None:
        self.inner = inner
        self.baseline = dict(inner.spec.conf)  # what reset() goes back to

    @classmethod
    def up(cls, name: str = "gh", **options: Any) -> Cluster:
        """Make a cluster; options are those of testbed_lib.lifecycle.up (slurm, nodes, gpus, torch, product, conf)."""
        return cls(lifecycle.up(name, **options))

    @classmethod
    def attach(cls, name: str = "gh") -> Cluster:
        """The cluster of this name that is up already."""
        return cls(lifecycle.attach(name))

    def down(self) -> None:
        lifecycle.down(self.inner.name, self.inner.client)
        self.inner.close()

    def close(self) -> None:
        """Let go of the engine's connection; the cluster stays up."""
        self.inner.close()

    @property
    def nodes(self) -> list[str]:
        return self.inner.nodes

    @property
    def release(self) -> str:
        """Slurm release: `22.05`, `24.11` or `26.05`."""
        return self.inner.spec.release

    @property
    def host_dir(self) -> Path:
        """Host folder behind /shared (`shared`) and /data (`data`)."""
        return self.inner.host_dir

    # -- commands and files --

    def exec(self, node: str, argv: list[str] | str, *, user: str | None = None, timeout: float = 60,
             stdin: str | bytes | None = None, env: dict[str, str] | None = None,
             check: bool = False) -> ExecResult:  # fmt: skip
        """Run a command on a node (a string goes to sh -c). Raises ExecTimeout when it does not end in time."""
        words = ["sh", "-c", argv] if isinstance(argv, str) else argv
        done = self.inner.exec(node, words, user=user or "", timeout=timeout, stdin=stdin, env=env)
        return done.check() if check else done

    def out(self, node: str, argv: list[str] | str, **options: Any) -> str:
        """Standard output of a command that must succeed."""
        return self.exec(node, argv, check=True, **options).stdout

    def read(self, node: str, path: str) -> str:
        return self.out(node, ["cat", path])

    def write(self, node: str, path: str, text: str, *, user: str | None = None, mode: str = "644") -> None:
        """Write a file on a node, as this user, with its folder made."""
        quoted = shlex.quote(path)
        self.exec(node, f"mkdir -p $(dirname {quoted}) && cat > {quoted} && chmod {mode} {quoted}",
                  user=user, stdin=text, check=True)  # fmt: skip

    def exists(self, node: str, path: str) -> bool:
        return self.exec(node, ["test", "-e", path]).returncode == 0

    def gpuhealth(self, node: str, *words: str, **options: Any) -> ExecResult:
        """Run the product's command on a node."""
        return self.exec(node, [GPUHEALTH, *words], **options)

    # -- jobs --

    def sbatch(self, user: str, script: str, **opts: Any) -> int:
        """Submit a batch script (`#!/bin/sh` is put before one without) and return the job id.

        Options are sbatch's: `gres="gpu:8"`, `nodes=2`, `array="1-2"`, `N=1`; True for a switch (`no_requeue=True`).
        """
        argv = ["sbatch", "--parsable"]
        for key, value in opts.items():
            flag = f"-{key}" if len(key) == 1 else f"--{key.replace('_', '-')}"
            if value is True:
                argv.append(flag)
            elif value is not None and value is not False:
                argv += [flag, str(value)] if len(key) == 1 else [f"{flag}={value}"]
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        return int(self.out(CTL, argv, user=user, stdin=text).split(";")[0])

    def jobs(self, job: int | str) -> list[dict[str, str]]:
        """What `scontrol -o show job` says: one dict a line (an array's own id shows every task)."""
        done = self.exec(CTL, ["scontrol", "-o", "show", "job", str(job)], check=True)
        return [parse_show(line) for line in done.stdout.splitlines() if line.strip()]

    def job(self, job: int | str) -> dict[str, str]:
        """The first of jobs(): keys as Slurm writes them (JobState, Restarts, BatchHost, Reason, StdOut, ...)."""
        return self.jobs(job)[0]

    def comment(self, job: int | str) -> str:
        """The job's comment, byte for byte."""
        return self.out(CTL, ["squeue", "-h", "-t", "all", "-j", str(job), "-o", "%k"]).rstrip("\n")

    def state(self, job: int | str) -> str:
        return self.job(job)["JobState"]

    def wait_job(self, job: int | str, *states: str, timeout: float = 60) -> dict[str, str]:
        """Wait until the job is in one of these states (RUNNING, COMPLETED, ...); its record then."""
        return self.wait_for(
            lambda: next((one for one in [self.job(job)] if one["JobState"] in states), None),
            timeout, f"job {job} to be {' or '.join(states)}")  # fmt: skip

    def job_output(self, job: int | str) -> str:
        """What the job has written to its StdOut so far (on the shared folder)."""
        done = self.exec(CTL, ["cat", self.job(job)["StdOut"]])
        return done.stdout

    # -- nodes --

    def node(self, name: str) -> dict[str, str]:
        """What `scontrol -o show node` says: State (`IDLE+DRAIN`), Reason (`text [root@time]`), BootTime, ..."""
        return parse_show(self.out(CTL, ["scontrol", "-o", "show", "node", name]).strip())

    def reason(self, name: str) -> str:
        """The node's reason without who set it when; empty where there is none."""
        return re.sub(r" \[[^][]*@[^][]*\]$", "", self.node(name).get("Reason", ""))

    def drained(self, name: str) -> bool:
        return "DRAIN" in self.node(name)["State"]

    def sinfo_R(self) -> str:
        """Plain `sinfo -R`, as an admin sees it: 20 characters of each reason."""
        return self.out(CTL, ["sinfo", "-R"])

    def resume(self, *names: str) -> None:
        for name in names or self.nodes:
            self.exec(CTL, ["scontrol", "update", f"NodeName={name}", "State=RESUME"])

    # -- faults, power, daemons --

    def inject(self, node: str, *words: str) -> None:
        """A fault in the words of `testbed inject`: inject("n1", "xid 79 gpu3"), or the words one by one."""
        injection.inject(self.inner, node, shlex.split(words[0]) if len(words) == 1 else list(words))

    def clear(self, *names: str) -> None:
        """Nodes (all by default) healthy again; Slurm's opinion of them and the kernel log stay."""
        self.inner.each(list(names) or self.nodes, lambda node: injection.clear(self.inner, node))

    def kill(self, node: str) -> None:
        self.inner.kill(node)

    def reboot(self, node: str) -> None:
        self.inner.reboot(node)

    def slurm_conf(self, *, restart: bool = False, **keys: str | int | None) -> None:
        """Change slurm.conf keys everywhere and have them read. None: back to the test cluster's default."""
        changes = {key: None if value is None else str(value) for key, value in keys.items()}
        self.inner.set_conf(changes, restart=restart)

    def restart_slurmd(self, node: str) -> None:
        self.inner.restart_slurmd(node)

    def stop_slurmd(self, node: str) -> None:
        self.inner.stop_daemon(node)

    def start_slurmd(self, node: str) -> None:
        self.inner.start_daemon(node)

    def stop_ctld(self) -> None:
        self.inner.stop_daemon(CTL)

    def start_ctld(self) -> None:
        self.inner.start_daemon(CTL)

    # -- what is on the nodes --

    def ctld_log(self, pattern: str = "") -> list[str]:
        """Lines of slurmctld.log that match a regular expression."""
        lines = self.read(CTL, "/var/log/slurm/slurmctld.log").splitlines()
        return [line for line in lines if re.search(pattern, line)]

    def slurmd_log(self, node: str, pattern: str = "") -> list[str]:
        lines = self.read(node, "/var/log/slurm/slurmd.log").splitlines()
        return [line for line in lines if re.search(pattern, line)]

    def klog(self, node: str) -> list[str]:
        return self.read(node, KMSG).splitlines()

    def boot_id(self, node: str) -> str:
        return self.read(node, "/proc/sys/kernel/random/boot_id").strip()

    def events(self, node: str) -> list[dict[str, Any]]:
        """The product's events of a node, oldest first."""
        text = self.out(node, f"cat {STATE_DIR}/events/* 2>/dev/null || true")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def evidence(self, node: str) -> list[str]:
        """Evidence folders of a node (absolute paths), oldest first."""
        return self.out(node, f"ls -1dtr {STATE_DIR}/evidence/*/ 2>/dev/null || true").split()

    def stuck(self, node: str) -> list[tuple[int, str]]:
        """Processes of a node in D state: (pid, command line)."""
        rows = [line.split(None, 2) for line in self.out(node, ["ps", "-eo", "pid=,stat=,args="]).splitlines()]
        return [(int(row[0]), row[2]) for row in rows if row[1].startswith("D")]

    # -- time --

    def wait_for(self, condition: Callable[[], T | None], timeout: float, what: str, every: float = 0.2) -> T:
        """Poll until the condition holds and return its value; else fail, with what the cluster looks like."""
        deadline = time.monotonic() + timeout
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout:g} s for {what}; last: {value!r}\n{self.picture()}")
            time.sleep(every)

    def picture(self) -> str:
        """Queue and nodes, for a failure's message."""
        try:
            return self.exec(CTL, 'squeue -t all -o "%i %T %r %N %k" | head -20; sinfo -N -o "%N %T %E"').stdout
        except TestbedError as exc:
            return str(exc)

    # -- between tests --

    def reset(self) -> None:
        """As after `up`: no jobs, healthy and idle nodes, slurm.conf as it was, no state of the product."""
        if self.exec(CTL, ["scontrol", "ping"]).returncode != 0:
            self.start_ctld()
        self.exec(CTL, "squeue -h -o %A | xargs -r scancel")
        self.inner.each(self.nodes, self._reset_node)
        self.exec(CTL, f"rm -rf {RUN_DIR}/* /shared/home/*/* /shared/ckpt/* /shared/gpuhealth/* /data/ckpt/*")
        if self.inner.spec.conf != self.baseline:
            back: dict[str, str | None] = dict.fromkeys(self.inner.spec.conf, None)
            self.inner.set_conf({**back, **self.baseline})
        self.wait_for(lambda: not self.out(CTL, ["squeue", "-h"]).strip(), 90, "the queue to be empty")
        self.wait_for(self._all_idle, 60, "all nodes to be idle", every=0.3)

    def _reset_node(self, node: str) -> None:
        injection.clear(self.inner, node)
        # Folders, compiled configuration and install record stay: they belong to the installation, not to a test.
        forget = (
            f"[ ! -d {STATE_DIR} ] || {{ find {STATE_DIR} -mindepth 2 -delete; find {STATE_DIR} -mindepth 1 "
            f"-maxdepth 1 -type f ! -name config.json ! -name install.json -delete; }}"
        )
        self.exec(node, f"rm -rf /etc/slurm/gpuhealth.off {RUN_DIR}/*; {forget}; : > {KMSG}", check=True)
        if self.exec(node, ["pidof", "slurmd"]).returncode != 0:
            self.start_slurmd(node)

    def _all_idle(self) -> bool:
        states = self.inner.node_states()
        self.resume(*(name for name, state in states.items() if "drain" in state or "down" in state))
        return set(states.values()) == {"idle"}
