"""Tell people: a command of the site (the message as JSON on its standard input) or a webhook (JSON, POST).

Called in a supervised child: whatever hangs here ends with it, and never keeps a hook. Redirects are not
followed and proxies of the environment not used: a hook has no environment worth trusting.
"""
from __future__ import annotations

import json

VERSION = 1
_MARGIN = 0.5       # seconds of the deadline that are kept for saying how it went


def send(cfg, message):
    """Send `message` (a dict; keys: docs/events.md, "Notifications") to all that is configured.

    Returns how it went in words, "ok" or "ok ..." only when all of them took it. Each has its share of
    `deadlines.notify`. Never raises for what a receiver does.
    """
    wanted = cfg["notify"]
    told = [(name, tell, wanted[name]) for name, tell in (("webhook", post), ("command", run)) if wanted[name]]
    if not told:
        return "ok: nothing is configured"
    share = max(0.5, (cfg["deadlines"]["notify"] - _MARGIN) / len(told))
    body = json.dumps(dict({"v": VERSION, "text": text(message)}, **message)).encode("ascii")
    outcomes = ["%s %s" % (name, tell(target, body, share) or "ok") for name, tell, target in told]
    failed = any(not one.endswith(" ok") for one in outcomes)
    return ("failed: " if failed else "ok: ") + ", ".join(outcomes)


def text(message):
    """One line for people, of what the hooks know; printable characters only."""
    if message.get("what") == "brake":
        line = "gpuhealth: %s sees %s; %s nodes are drained for it already (limit %s), no more will be" % (
            message.get("node"), message.get("code") or "a fault", message.get("drained"), message.get("limit"))
    else:
        line = "gpuhealth: node %s drained: %s" % (message.get("node"), message.get("reason") or message.get("code"))
    return "".join(char if char.isprintable() else "?" for char in line)[:500]


def run(argv, body, deadline):
    """Give `body` to a program on its standard input. Returns "" or what went wrong."""
    from slurm_gpuhealth import command
    from slurm_gpuhealth.errors import UsageError
    try:
        done = command.run(list(argv), deadline, input=body, max_bytes=4096, grace=0.2)
    except UsageError as exc:
        return str(exc)
    if done.timed_out:
        return "timed out after %.1f s" % done.seconds
    if done.rc:
        return "ended with %s: %s" % (done.rc, ascii(" ".join(done.err.split())[:200]))
    return ""


def post(url, body, deadline):
    """POST `body` as JSON. Returns "" or what went wrong (without the address, which may hold a secret)."""
    import http.client
    from urllib import error, request

    class NoRedirect(request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):
            return None

    if not url.startswith(("http://", "https://")):
        return "not an http address"
    opener = request.build_opener(request.ProxyHandler({}), NoRedirect())
    headers = {"Content-Type": "application/json", "User-Agent": "gpuhealth"}
    try:
        asked = request.Request(url, body, headers, method="POST")
        with opener.open(asked, timeout=deadline) as answer:
            return "" if 200 <= answer.status < 300 else "answered %d" % answer.status
    except error.HTTPError as exc:
        exc.close()
        return "answered %d" % exc.code
    except error.URLError as exc:
        return "timed out" if isinstance(exc.reason, TimeoutError) else "failed: %s" % ascii(str(exc.reason)[:200])
    except TimeoutError:
        return "timed out"
    except (OSError, http.client.HTTPException, ValueError) as exc:
        return "failed: %s" % ascii(str(exc)[:200])
