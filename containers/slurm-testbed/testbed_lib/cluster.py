"""A running cluster: containers, their files, their daemons. Several can be up at once, told apart by name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from docker.errors import NotFound  # type: ignore[import-untyped]

from . import dock, slurmconf, stuck
from .errors import ExecTimeout, TestbedError, UsageError
from .paths import TESTBED_DIR, cluster_dir
from .say import say

LABEL = "gpuhealth-testbed.cluster"
CTL = "ctl"


class Spec(NamedTuple):
    """What a cluster was made of; kept in its folder on the host."""

    name: str
    release: str
    nodes: int
    gpus: int
    torch: bool
    product: bool
    image: str
    ready: bool
    conf: dict[str, str]  # slurm.conf keys that differ from the defaults


def _spec_path(name: str) -> Path:
    return cluster_dir(name) / "cluster.json"


def load_spec(name: str) -> Spec | None:
    try:
        return Spec(**json.loads(_spec_path(name).read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return None  # of an older testbed, or half-written: treated like a cluster that never came up


def save_spec(spec: Spec) -> None:
    path = _spec_path(spec.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".new")
    part.write_text(json.dumps(spec._asdict(), indent=1))
    part.rename(path)


class TestCluster:
    """One cluster. Use `up()` to make it or `attach()` to find it; close() lets go of the engine's connection."""

    __test__ = False

    def __init__(self, client: Any, spec: Spec) -> None:
        self.client = client
        self.spec = spec

    # -- what it is --

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def nodes(self) -> list[str]:
        return slurmconf.node_names(self.spec.nodes)

    @property
    def all(self) -> list[str]:
        return [CTL, *self.nodes]

    @property
    def network(self) -> str:
        return f"gpuhealth-{self.name}"

    @property
    def host_dir(self) -> Path:
        """Host folder behind /shared (`shared`) and /data (`data`)."""
        return cluster_dir(self.name)

    def container(self, node: str) -> str:
        if node not in self.all:
            raise UsageError(f"no node {node!r} in cluster {self.name} (there are: {', '.join(self.all)})")
        return f"gpuhealth-{self.name}-{node}"

    def close(self) -> None:
        self.client.close()

    # -- commands in it --

    def exec(
        self,
        node: str,
        argv: list[str],
        *,
        user: str = "",
        timeout: float = dock.DEFAULT_TIMEOUT_S,
        workdir: str | None = None,
        env: dict[str, str] | None = None,
        stdin: str | bytes | None = None,
    ) -> dock.ExecResult:
        """Run a command on a node. A user's command runs in that user's home unless told otherwise."""
        if workdir is None and user not in ("", "root"):
            workdir = f"/shared/home/{user}"
        return dock.run(
            self.client,
            self.container(node),
            argv,
            user=user,
            timeout=timeout,
            workdir=workdir,
            env=env,
            stdin=stdin,
            node=node,
        )

    def each(self, nodes: list[str], work: Callable[[str], Any]) -> None:
        """The same on several nodes at once; the first error is raised after all have ended."""
        with ThreadPoolExecutor(max_workers=8) as pool:
            for future in [pool.submit(work, node) for node in nodes]:
                future.result()

    def running(self, node: str) -> bool:
        try:
            return bool(self.client.api.inspect_container(self.container(node))["State"]["Running"])
        except NotFound:
            return False

    # -- files and daemons --

    def _conf_files(self) -> dict[str, tuple[bytes, int, int, int]]:
        texts = {
            "/etc/slurm/slurm.conf": slurmconf.slurm_conf(self.spec.nodes, self.spec.gpus, self.spec.conf),
            "/etc/slurm/gres.conf": slurmconf.gres_conf(self.spec.gpus),
            "/etc/slurm/cgroup.conf": slurmconf.cgroup_conf(self.spec.release),
        }
        return {path: (text.encode(), 0o644, 0, 0) for path, text in texts.items()}

    def set_conf(self, changes: dict[str, str | None], *, restart: bool = False) -> None:
        """Change slurm.conf keys on all containers and make the daemons use them.

        None goes back to the test cluster's default, an empty value drops the key. Keys that Slurm reads only at
        start (or restart=True) restart the daemons; jobs go on.
        """
        self.spec = self.spec._replace(conf=slurmconf.merged(changes, self.spec.conf))
        save_spec(self.spec)
        files = self._conf_files()
        self.each(self.all, lambda node: dock.put_files(self.client, self.container(node), files))
        up = [node for node in self.nodes if self.running(node)]
        if restart or slurmconf.NEEDS_RESTART.intersection(changes):
            self.stop_daemon(CTL)
            self.start_daemon(CTL)
            self.each(up, self.restart_slurmd)
            return
        marks = {node: self._log_size(node) for node in up}
        self.exec(CTL, ["scontrol", "reconfigure"]).check()
        for node in up:
            self._await_reread(node, marks[node])

    def _log_size(self, node: str) -> int:
        return int(self.exec(node, ["stat", "-c", "%s", "/var/log/slurm/slurmd.log"]).check().stdout)

    def _await_reread(self, node: str, since: int) -> None:
        """slurmctld tells the slurmds one after the other: wait until this one has logged that it read again."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            text = self.exec(node, ["tail", "-c", f"+{since + 1}", "/var/log/slurm/slurmd.log"]).stdout
            if "econfig" in text and ("started on" in text or self.spec.release == "22.05"):
                return
            time.sleep(0.1)
        say(f"{node}: no word of a reconfigure within 20 s, restarting its slurmd")
        self.restart_slurmd(node)

    def _daemon(self, node: str) -> tuple[str, list[str]]:
        if node == CTL:
            return "slurmctld", ["slurmctld"]
        return "slurmd", ["slurmd", "-N", node]

    def stop_daemon(self, node: str, *, hard: bool = False) -> None:
        """Stop slurmctld (on ctl) or slurmd by the id in its pidfile, and wait until it has ended."""
        name, _ = self._daemon(node)
        script = (
            'p=$(cat /run/slurm/$1.pid) && kill -$2 "$p" || exit 0; i=0; '
            'while kill -0 "$p" 2>/dev/null; do i=$((i+1)); [ $i -lt 300 ] || exit 1; sleep 0.1; done'
        )
        self.exec(node, ["sh", "-c", script, "sh", name, "KILL" if hard else "TERM"]).check()

    def start_daemon(self, node: str) -> None:
        self.exec(node, self._daemon(node)[1]).check()
        if node == CTL:
            self._await("slurmctld", 30, lambda: self.exec(CTL, ["scontrol", "ping"]).returncode == 0)

    def restart_slurmd(self, node: str) -> None:
        self.stop_daemon(node)
        self.start_daemon(node)

    def _await(self, what: str, seconds: float, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise TestbedError(f"{what} not ready after {seconds:.0f} s")
            time.sleep(0.15)

    def await_boot(self, node: str, seconds: float = 60) -> None:
        """Wait until node-init has started the node's daemons; its own output is in the error where it failed."""
        name = self.container(node)
        deadline = time.monotonic() + seconds
        while True:
            if not self.running(node):
                words = self.client.api.logs(name, tail=8).decode(errors="replace").strip()
                raise TestbedError(f"{node} stopped while it booted: {words}")
            if self.exec(node, ["test", "-e", "/run/gpusim/up"]).returncode == 0:
                return
            if time.monotonic() > deadline:
                raise TestbedError(f"{node} has not booted within {seconds:.0f} s")
            time.sleep(0.1)

    def node_states(self) -> dict[str, str]:
        """Slurm's state of each node, as `sinfo` prints it (`idle`, `drained*`, ...)."""
        lines = self.exec(CTL, ["sinfo", "-h", "-N", "-p", "main", "-o", "%N %T"]).check().stdout.splitlines()
        return dict(line.split() for line in lines)

    # -- power --

    def undo_stuck(self, node: str) -> None:
        """Thaw and abort whatever could keep a process of the node in D state; a container must not die with one."""
        try:
            self.exec(node, ["gpusim", "undo"], timeout=20)
        except (ExecTimeout, TestbedError) as exc:
            say(f"{node}: {exc}")
        stuck.thaw_from_host(self.client, self.container(node))

    def kill(self, node: str) -> None:
        """Power off without a warning. `reboot` switches on again."""
        if self.running(node):
            self.undo_stuck(node)
            self.client.api.kill(self.container(node))

    def reboot(self, node: str) -> None:
        """Power cycle: new boot id, empty /run, kernel log and volatile GPU state anew, daemons started."""
        if self.running(node):
            self.undo_stuck(node)
        self.client.api.restart(self.container(node), timeout=1)
        self.await_boot(node)

    # -- the product --

    def install_product(self, node: str) -> None:
        """Set the product up on a node, with the site's configuration."""
        text = (TESTBED_DIR / "etc" / "gpuhealth.yaml").read_text()
        dock.put_files(
            self.client, self.container(node), {"/etc/slurm/gpuhealth.yaml": (text.encode(), 0o644, 0, 0)}
        )
        self.exec(node, ["/opt/gpuhealth/bin/gpuhealth", "install", "--yes"], timeout=60).check()
