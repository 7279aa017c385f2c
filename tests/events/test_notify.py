"""Telling people: against a real HTTP sink, one that hangs, and real commands."""
import json
import os
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from slurm_gpuhealth import notify, supervise
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh

MESSAGE = {"what": "drain", "node": "n1", "code": "GH-XID79", "subject": "gpu3", "reason": "GH-XID79 gpu3 x\x1b[2J",
           "incident": "3fa9c1", "evidence": "/e", "time": 1.0}


@pytest.fixture
def sink():
    """A web server that keeps what it is sent; `status` and `headers` say how it answers."""
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.seen.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(server.status)
            for pair in server.more:
                self.send_header(*pair)
            self.end_headers()

        def do_GET(self):
            server.seen.append(("GET", "", None))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.status, server.more = [], 200, []
    server.url = "http://127.0.0.1:%d/hook" % server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def config(**notify_part):
    cfg = fresh(DEFAULTS)
    cfg["notify"].update(notify_part)
    cfg["deadlines"]["notify"] = 2
    return cfg


def test_a_webhook_gets_the_message_as_json(sink):
    """One POST with all keys, a version and one printable line for people."""
    assert notify.send(config(webhook=sink.url), MESSAGE) == "ok: webhook ok"
    [(path, kind, body)] = sink.seen
    assert (path, kind) == ("/hook", "application/json")
    assert body == dict(MESSAGE, v=1, text="gpuhealth: node n1 drained: GH-XID79 gpu3 x?[2J")


@pytest.mark.parametrize("status,outcome", [(204, "ok: webhook ok"), (500, "failed: webhook answered 500"),
                                            (404, "failed: webhook answered 404")])
def test_what_the_server_answers_counts(sink, status, outcome):
    """Only 2xx is success."""
    sink.status = status
    assert notify.send(config(webhook=sink.url), MESSAGE) == outcome


def test_redirects_are_not_followed(sink):
    """A receiver cannot send the message, or us, elsewhere."""
    sink.status, sink.more = 302, [("Location", sink.url + "2")]
    assert notify.send(config(webhook=sink.url), MESSAGE) == "failed: webhook answered 302"
    assert len(sink.seen) == 1


def test_a_server_that_hangs_costs_its_deadline_only():
    """It takes the connection and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        began = time.monotonic()
        said = notify.send(config(webhook="http://127.0.0.1:%d/" % listener.getsockname()[1]), MESSAGE)
    assert said == "failed: webhook timed out" and time.monotonic() - began < 3


def test_a_server_that_drips_is_ended_from_outside():
    """One byte a time keeps urllib's own limit from ever coming: the supervised child is what ends it."""
    def drip(listener):
        connection, _ = listener.accept()
        with connection:
            try:
                for char in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100:
                    connection.sendall(bytes([char]))
                    time.sleep(0.1)
            except OSError:
                pass
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        cfg = config(webhook="http://127.0.0.1:%d/" % listener.getsockname()[1])
        result = supervise.call(lambda spec, emit: emit("outcome", notify.send(cfg, MESSAGE)), {}, 1.0)
        thread.join()
    assert result.status.outcome == "late"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "http://127.0.0.1:1/", "http://[", "nonsense"])
def test_a_bad_address_fails_without_an_exception(url):
    """And without showing the address, which may hold a password."""
    said = notify.send(config(webhook=url), MESSAGE)
    assert said.startswith("failed: webhook") and url not in said


@pytest.mark.allow_subprocess
def test_a_command_gets_the_message_on_its_input(tmp_path):
    """As JSON, without a shell: the node's name cannot become code."""
    program = tmp_path / "tell"
    program.write_text("#!/bin/sh\ncat > %s/got\necho \"$1\" > %s/argument\n" % (tmp_path, tmp_path))
    os.chmod(program, 0o755)
    message = dict(MESSAGE, node="$(reboot)")
    assert notify.send(config(command=[str(program), "$(id)"]), message) == "ok: command ok"
    assert json.loads((tmp_path / "got").read_text())["node"] == "$(reboot)"
    assert (tmp_path / "argument").read_text() == "$(id)\n"


@pytest.mark.allow_subprocess
@pytest.mark.parametrize("argv,why", [
    (["/bin/sh", "-c", "echo no >&2; exit 3"], "ended with 3"), (["/bin/sleep", "60"], "timed out"),
    (["/no/such/program"], "ended with 127"), (["relative"], "absolute")])
def test_a_command_that_fails_is_said(argv, why):
    """Nothing of it is raised, and a hanging one costs its share only."""
    began = time.monotonic()
    said = notify.send(config(command=argv), MESSAGE)
    assert said.startswith("failed: command") and why in said and time.monotonic() - began < 4


@pytest.mark.allow_subprocess
def test_one_that_hangs_does_not_keep_the_other(sink):
    """Each has its share of the deadline."""
    said = notify.send(config(webhook=sink.url, command=["/bin/sleep", "60"]), MESSAGE)
    assert said.startswith("failed: webhook ok, command timed out") and len(sink.seen) == 1


def test_the_brake_has_its_own_words():
    """The alert of the brake says how many nodes are out already."""
    line = notify.text({"what": "brake", "node": "n1", "code": "GH-MNT-HANG", "drained": 3, "limit": 3})
    assert "3 nodes" in line and "GH-MNT-HANG" in line
