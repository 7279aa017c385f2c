"""Run a site's own check: one child each, no shell, a deadline, an answer of bounded size (docs/plugins.md).

What a hook runs as root must be root's alone: the program and every folder above it belong to root, and nobody else
may write to them.
"""
from __future__ import annotations

import json
import os
import signal
import stat
import time

from slurm_gpuhealth import facts as F
from slurm_gpuhealth import paths
from slurm_gpuhealth.facts_node import PluginResult
from slurm_gpuhealth.model import EPILOG, MANUAL, PROLOG

_MAX_BYTES = 65536
_MAX_FINDINGS = 50
_MAX_TEXT, _MAX_NAME, _MAX_DATA = 500, 128, 4096
_MARGIN = 1.5       # seconds that this child lives longer than the program, to tell how it went
_GRACE = 0.5
_MAX_STEPS = 200    # folders and links on the way to a program
STATUSES = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}


def spec(cfg, about):
    """One spec for each plug-in of the phase (all of them by hand): source, deadline, and what `read` needs."""
    phase, job = about["phase"], about.get("job")
    if job is None and phase in (PROLOG, EPILOG):
        job = os.environ.get("SLURM_JOB_ID", "")
    return [{"root": about["root"], "source": "plugin:" + one["name"], "deadline": one["deadline"] + _MARGIN,
             "name": one["name"], "command": list(one["command"]), "seconds": one["deadline"], "phase": phase,
             "job": str(job or "")}
            for one in cfg["plugins"] if phase in one["phases"] or phase == MANUAL]


def read(spec, emit):
    """Emit ("plugin", plain of facts.PluginResult), one for each thing that the program says."""
    from slurm_gpuhealth import command  # not where there are no plug-ins
    name, argv = spec["name"], list(spec["command"])
    program = paths.under(spec["root"], argv[0])
    # The program as it will be run: a link is followed once, by us.
    real = os.path.realpath(program)
    bad = (untrusted_way(program) or untrusted(real)) if not spec["root"] else ""
    if bad:
        emit("plugin", F.to_plain(PluginResult(name, "failed", None, bad)))
        return
    _end_it_with_us()
    env = {"GPUHEALTH_PHASE": spec["phase"]}
    if spec["job"]:
        env["GPUHEALTH_JOB"] = spec["job"]
    started = time.monotonic()
    done = command.run([real] + argv[1:], spec["seconds"], max_bytes=_MAX_BYTES + 1, env=env, grace=_GRACE)
    seconds = round(time.monotonic() - started, 3)
    for result in understand(name, done):
        emit("plugin", F.to_plain(result._replace(seconds=seconds)))
    if done.pid is not None:
        emit("_left", done.pid)       # in D state: no second one while it lives


def assemble(records, spec, status):
    """Facts field: plugins, a tuple (several children fill it)."""
    found = tuple(F.from_plain(plain, PluginResult) for kind, plain in records if kind == "plugin")
    if not found:
        outcome = "late" if status.outcome in ("late", "hung") else "failed"
        found = (PluginResult(spec["name"], outcome, None, status.detail or "no answer"),)
    return {"plugins": found}


def untrusted_way(path):
    """"" when each folder and link on the way to `path` is root's alone, else why not: who may change a link chooses
    what root runs."""
    at = ""
    waiting = [part for part in path.split("/") if part]
    for _ in range(_MAX_STEPS):
        if not waiting:
            return ""
        step = waiting.pop(0)
        if step == "..":
            at = os.path.dirname(at)
            continue
        at += "/" + step
        try:
            seen = os.lstat(at)
            if stat.S_ISLNK(seen.st_mode):
                if seen.st_uid != 0:
                    return at + " is a link that does not belong to root"
                target = os.readlink(at)
                waiting = [part for part in target.split("/") if part and part != "."] + waiting
                at = "" if target.startswith("/") else os.path.dirname(at)
                continue
        except OSError as exc:
            return "%s: %s" % (at, os.strerror(exc.errno or 0))
        if stat.S_ISDIR(seen.st_mode) and (seen.st_uid != 0 or seen.st_mode & 0o022):
            return at + " can be changed by others than root"
    return path + " has too many links"


def untrusted(path):
    """"" when only root can have written the program at `path` (absolute, links resolved), else why not."""
    try:
        seen = os.lstat(path)
    except OSError as exc:
        return "%s: %s" % (path, os.strerror(exc.errno or 0))
    if not stat.S_ISREG(seen.st_mode):
        return path + " is not a file"
    if not seen.st_mode & 0o111:
        return path + " is not executable"
    part = path
    while True:
        seen = os.lstat(part)
        if seen.st_uid != 0:
            return "%s does not belong to root" % part
        if seen.st_mode & 0o022:
            return "%s can be written by others than root" % part
        if part in ("/", ""):
            return ""
        part = os.path.dirname(part)


def understand(name, done):
    """What a program said as a list of PluginResult, not empty. done: command.Done."""
    text = done.out[:_MAX_BYTES].strip()
    if done.timed_out:
        return [PluginResult(name, "late", None, "no answer in %.0f s" % done.seconds)]
    if len(done.out) > _MAX_BYTES:
        return [PluginResult(name, "failed", None, "said more than %d bytes" % _MAX_BYTES)]
    if done.rc is None or not 0 <= done.rc <= 3:
        how = "signal %d" % -done.rc if done.rc is not None and done.rc < 0 else "code %s" % done.rc
        return [PluginResult(name, "failed", None, _short("ended with %s: %s" % (how, done.err or text)))]
    if text.startswith("{"):
        return _from_json(name, text)
    message, _, numbers = (text.splitlines() or [""])[0].partition("|")
    data = {"perfdata": _short(numbers)} if numbers.strip() else None
    return [PluginResult(name, "ok", done.rc, _short(message), "", "", data)]


def _from_json(name, text):
    try:
        plain = json.loads(text, parse_constant=_no_number)
        if not isinstance(plain, dict):
            raise ValueError("not an object")
        if plain.get("v", 1) != 1:
            raise ValueError("version %s is not known" % ascii(plain["v"])[:20])
        items = plain.get("findings", None)
        if items is None:
            items = [plain]
        elif not isinstance(items, list) or len(items) > _MAX_FINDINGS:
            raise ValueError("findings is no list, or longer than %d" % _MAX_FINDINGS)
        # A list of findings and nothing in it: all is well.
        return [_one(name, item) for item in items] or [PluginResult(name, "ok", 0, _text(plain, "message"))]
    except (ValueError, RecursionError) as exc:
        return [PluginResult(name, "failed", None, _short("answer not understood: %s" % exc))]


def _one(name, item):
    if not isinstance(item, dict):
        raise ValueError("a finding is no object")
    status = item.get("status")
    if not isinstance(status, str) or status.lower() not in STATUSES:
        raise ValueError("status %s is none of %s" % (ascii(status)[:40], ", ".join(STATUSES)))
    data = item.get("data")
    if not isinstance(data, dict) or len(json.dumps(data)) > _MAX_DATA:
        data = None
    return PluginResult(name, "ok", STATUSES[status.lower()], _text(item, "message"),
                        _text(item, "subject")[:_MAX_NAME], _text(item, "code")[:_MAX_NAME], data)


def _text(item, key):
    value = item.get(key, "")
    if not isinstance(value, (str, int, float)):
        raise ValueError("%s is not a text" % key)
    return _short(str(value))


def _short(text):
    return " ".join(text.split())[:_MAX_TEXT]


def _no_number(text):
    raise ValueError("%s is not a number" % text)


def _end_it_with_us():
    """When this child is ended (the hook has no more time), the program that it started must not go on alone."""
    def end(number, frame):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for pid in _children():
                try:
                    os.kill(-pid, sign)     # command.run gives it a group of its own
                except OSError:
                    continue
            time.sleep(0.2)
        os._exit(1)
    signal.signal(signal.SIGTERM, end)


def _children():
    try:
        with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as handle:
            return [int(word) for word in handle.read().split()]
    except (OSError, ValueError):
        return []
