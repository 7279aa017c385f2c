"""Commands and files in a container, with deadlines (the SDK's own exec has none)."""

from __future__ import annotations

import io
import os
import select
import struct
import sys
import tarfile
import termios
import time
import tty
from typing import Any, NamedTuple

from docker.errors import APIError, NotFound  # type: ignore[import-untyped]

from .errors import ExecTimeout, TestbedError

FRAME = struct.Struct(">BxxxL")  # stream (1 stdout, 2 stderr), length: Docker API, "attach"
DEFAULT_TIMEOUT_S = 60.0


class ExecResult(NamedTuple):
    """What a command in a container did; reads like subprocess.CompletedProcess."""

    args: list[str]
    returncode: int
    stdout: str
    stderr: str

    def check(self) -> ExecResult:
        """Itself, or TestbedError with the command's own words where it failed."""
        if self.returncode != 0:
            words = (self.stderr or self.stdout).strip()
            raise TestbedError(f"{' '.join(self.args)[:200]!r} ended with {self.returncode}: {words[-600:]}")
        return self


def _start(client: Any, exec_id: str, is_tty: bool) -> tuple[Any, Any]:
    """Start an exec; (response, raw socket) of its hijacked connection; read from response.raw._fp.fp.

    The SDK's socket=True hands out the raw socket below http.client's buffer: bytes that arrived together with
    the response's header would be lost. Reading goes through the buffer here, so they are not.
    """
    api = client.api
    response = api._post_json(
        api._url("/exec/{0}/start", exec_id),
        data={"Tty": is_tty, "Detach": False},
        headers={"Connection": "Upgrade", "Upgrade": "tcp"},
        stream=True,
    )
    api._raise_for_status(response)
    return response, response.raw._fp.fp.raw._sock


def run(
    client: Any,
    container: str,
    argv: list[str],
    *,
    user: str = "",
    workdir: str | None = None,
    env: dict[str, str] | None = None,
    stdin: str | bytes | None = None,
    timeout: float = DEFAULT_TIMEOUT_S,
    node: str = "",
) -> ExecResult:
    """Run a command in a container and collect its output. Raises ExecTimeout after `timeout` seconds.

    The command is then left behind: it may be one that cannot be ended.
    """
    deadline = time.monotonic() + timeout
    api = client.api
    try:
        exec_id = api.exec_create(
            container, argv, user=user, workdir=workdir, environment=env, stdin=stdin is not None
        )["Id"]
        response, sock = _start(client, exec_id, False)
    except (APIError, NotFound) as exc:
        raise TestbedError(f"{node or container}: {exc.explanation or exc}") from exc
    output: dict[int, list[bytes]] = {1: [], 2: []}
    try:
        if stdin is not None:
            sock.settimeout(timeout)
            sock.sendall(stdin.encode() if isinstance(stdin, str) else stdin)
            sock.shutdown(1)
        reader = response.raw._fp.fp
        while True:
            header = _read(reader, sock, FRAME.size, deadline)
            if len(header) < FRAME.size:
                break
            stream, length = FRAME.unpack(header)
            output.setdefault(stream, []).append(_read(reader, sock, length, deadline))
        code = _exit_code(api, exec_id, deadline)
    except TimeoutError:
        text = b"".join(output[1] + output[2]).decode(errors="replace")
        raise ExecTimeout(node or container, argv, timeout, text) from None
    finally:
        response.close()
        sock.close()
    return ExecResult(
        argv, code, b"".join(output[1]).decode(errors="replace"), b"".join(output[2]).decode(errors="replace")
    )


def _read(reader: Any, sock: Any, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)
        block = reader.read1(size - len(data))
        if not block:
            break
        data += block
    return data


def _exit_code(api: Any, exec_id: str, deadline: float) -> int:
    """The engine may close the stream a moment before it knows the exit code."""
    while True:
        state = api.exec_inspect(exec_id)
        if not state["Running"]:
            return int(state["ExitCode"])
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


def put_files(client: Any, container: str, files: dict[str, tuple[bytes, int, int, int]]) -> None:
    """Write files into a container that need not run: absolute path -> (content, mode, uid, gid)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, (content, mode, uid, gid) in files.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size, info.mode, info.uid, info.gid = len(content), mode, uid, gid
            info.mtime = int(time.time())
            tar.addfile(info, io.BytesIO(content))
    try:
        client.api.put_archive(container, "/", buffer.getvalue())
    except (APIError, NotFound) as exc:
        raise TestbedError(f"{container}: {exc.explanation or exc}") from exc


def shell(client: Any, container: str, argv: list[str], user: str = "") -> int:
    """An interactive command in a container on this terminal; its exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise TestbedError("a shell needs a terminal; use `testbed exec NODE -- COMMAND` in scripts")
    api = client.api
    size = os.get_terminal_size()
    exec_id = api.exec_create(
        container,
        argv,
        user=user,
        stdin=True,
        tty=True,
        environment={"TERM": os.environ.get("TERM", "xterm")},
    )["Id"]
    response, sock = _start(client, exec_id, True)
    sock.setblocking(True)
    reader = response.raw._fp.fp
    saved = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        api.exec_resize(exec_id, height=size.lines, width=size.columns)
        # Whatever came with the header sits in the buffer, which select does not see.
        os.write(1, reader.peek(1) and reader.read1(65536) if select.select([sock], [], [], 0.5)[0] else b"")
        while True:
            ready, _, _ = select.select([0, sock], [], [])
            if sock in ready:
                data = sock.recv(65536)
                if not data:
                    break
                os.write(1, data)
            if 0 in ready:
                sock.sendall(os.read(0, 65536))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)
        response.close()
        sock.close()
    return int(api.exec_inspect(exec_id)["ExitCode"] or 0)
