"""The Docker engine: the one that answers, or one of our own with its own socket, pidfile, data and exec root.

Our own engine stays up between commands and is stopped by its process id alone (`testbed engine-stop`).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import docker  # type: ignore[import-untyped]
from docker.errors import DockerException  # type: ignore[import-untyped]

from . import host, stuck
from .errors import TestbedError, Unavailable
from .paths import locked, log_file, state_root
from .say import say, step

API_TIMEOUT_S = 120
START_TIMEOUT_S = 60


def _engine_dir() -> Path:
    return state_root() / "engine"


def own_socket() -> str:
    return f"unix://{_engine_dir()}/docker.sock"


def _answering(base_url: str | None) -> Any | None:
    """A client of the engine at base_url (None: what the environment says), or None where none answers."""
    client = None
    url = base_url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if url.startswith("unix://") and not _listens(url[len("unix://") :]):
        return None
    try:
        if base_url is None:
            client = docker.from_env(timeout=API_TIMEOUT_S)
        else:
            client = docker.DockerClient(base_url=base_url, timeout=API_TIMEOUT_S)
        client.ping()
        return client
    except (DockerException, OSError):
        if client is not None:
            client.close()
        return None


def _listens(path: str) -> bool:
    """Whether anybody listens at a Unix socket. Asked first: the SDK leaves its socket open when a connect fails."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def connect(start: bool = True) -> Any:
    """A docker client: of the engine that answers, else of our own, started (and installed) where needed.

    With start=False nothing is started or installed. Raises Unavailable where no engine can be had.
    """
    for url in (None, own_socket()):
        client = _answering(url)
        if client is not None:
            return client
    if not start:
        raise Unavailable("no Docker engine answers (neither the environment's nor the testbed's own)")
    if os.geteuid() != 0:
        raise Unavailable(
            "no Docker engine answers, and only root can start one: start the engine, or run this as root"
        )
    if dockerd_path() is None:
        host.apt_install(["docker.io", "iptables"])
        client = _answering(None)  # a policy of the host may have started the distribution's own
        if client is not None:
            return client
    return start_own()


def dockerd_path() -> str | None:
    return shutil.which("dockerd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def can_have_engine() -> str | None:
    """None where an engine answers or could be started here; else the reason, for a test's skip."""
    try:
        connect(start=False).close()
        return None
    except Unavailable:
        pass
    if os.geteuid() != 0:
        return "no Docker engine answers, and only root can start one"
    if dockerd_path() is None and shutil.which("apt-get") is None:
        return "no Docker engine answers, none is installed and there is no apt-get to install one"
    return None


def own_pid() -> int | None:
    """Process id of our own dockerd while it runs, else None. The command line is checked: ids are reused."""
    return _live_pid(_engine_dir() / "docker.pid", str(_engine_dir()))


def _live_pid(pidfile: Path, mark: str) -> int | None:
    try:
        pid = int(pidfile.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if any(mark.encode() in word for word in command) else None


def start_own() -> Any:
    """Start our own dockerd and wait until it answers."""
    with locked("engine"):
        # Another command may have started it while this one waited.
        return _answering(own_socket()) or _start_own()


def _start_own() -> Any:
    path = dockerd_path()
    if path is None:
        raise Unavailable("no dockerd on this machine")
    pid = own_pid()
    if pid is None:
        _clear_leftovers()
        argv = _dockerd_argv(path)
        with log_file("dockerd.log").open("ab") as log:
            # The search path of a bare root shell may lack sbin, where iptables and mkfs live.
            env = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"}
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd="/",
                start_new_session=True,
            )
        pid = process.pid
        process.returncode = 0  # left running on purpose: nobody waits for it, and Popen must not complain
    with step(f"starting a Docker engine of our own (process {pid})"):
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            client = _answering(own_socket())
            if client is not None:
                return client
            if not _running(pid):
                break
            time.sleep(0.3)
    tail = log_file("dockerd.log").read_text(errors="replace").strip().splitlines()[-5:]
    raise Unavailable(
        f"our own dockerd did not come up (log: {log_file('dockerd.log')})\n  " + "\n  ".join(tail)
    )


def _dockerd_argv(path: str) -> list[str]:
    folder = _engine_dir()
    for sub in ("data", "exec"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return [
        path,
        "--host",
        own_socket(),
        "--pidfile",
        str(folder / "docker.pid"),
        "--data-root",
        str(folder / "data"),
        "--exec-root",
        str(folder / "exec"),
        # Clusters use internal networks only: the host's packet filter and addresses stay as they are.
        "--bridge=none",
        "--iptables=false",
        "--ip-masq=false",
        "--ip-forward=false",
        # Where the host runs a containerd, dockerd would share its "moby" namespace with a system engine.
        "--containerd-namespace",
        "gpuhealth-testbed",
        "--containerd-plugins-namespace",
        "gpuhealth-testbed-plugins",
    ]


def _running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _clear_leftovers() -> None:
    """Remove what an engine that was killed hard has left: its containerd, shims, mounts, pidfile, exec root."""
    folder = _engine_dir()
    mark = str(folder / "exec")
    stale = [pid for pid in _processes_with(mark) if pid != os.getpid()]
    if stale:
        say(f"ending {len(stale)} processes that a killed engine of ours left")
        for pid in stale:
            stuck.thaw_namespace(pid)  # a process in D state would outlive the signal, and its file system with it
        for pid in stale:
            _signal(pid, signal.SIGKILL)
        time.sleep(0.5)
    _unmount_all()
    shutil.rmtree(folder / "exec", ignore_errors=True)
    (folder / "docker.pid").unlink(missing_ok=True)
    (folder / "docker.sock").unlink(missing_ok=True)


def _processes_with(mark: str) -> list[int]:
    """Ids of containerd processes whose command line names our exec root, and of what their shims hold."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"containerd" in words[0] and any(mark.encode() in word for word in words):
            found.append(int(entry))
            if b"shim" in words[0]:
                found += _children(int(entry))
    return found


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _unmount_all() -> None:
    """Unmount what an engine has mounted below its folder: layers, network namespaces."""
    folder = _engine_dir()
    with open("/proc/self/mountinfo") as file:
        targets = [line.split()[4] for line in file]
    for target in sorted((one for one in targets if one.startswith(f"{folder}/")), reverse=True):
        argv = ["umount", "-l", target]
        subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def stop_own() -> bool:
    """Stop our own engine by its process id. True where one was running."""
    pid = own_pid()
    if pid is None:
        return False
    with step(f"stopping our own Docker engine (process {pid})"):
        _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + 60
        while _running(pid):
            if time.monotonic() > deadline:
                raise TestbedError(f"our own dockerd (process {pid}) did not end within 60 s")
            time.sleep(0.2)
        _unmount_all()  # it leaves the namespace of its host network mounted
    return True
