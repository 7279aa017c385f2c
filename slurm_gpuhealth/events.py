"""Events: one JSON line for each thing that happened, appended by the hooks, read by the reports.

Layout and meaning are documented in docs/events.md. A line is written with one write(2) on an O_APPEND file,
so that two hooks of a node never mix their lines. Reading forgives what a crash, a full disk or a stepped
clock leaves behind. Everything in an event may be hostile text; here it only ever is a JSON string.
"""
from __future__ import annotations

import json
import os
import stat
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.state import make_folder

VERSION = 1
MAX_LINE = 16384            # bytes of one event; a longer detail is cut (bound), and says so
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

# kind: (meaning, keys that detail may have). A test compares this table with docs/events.md.
_KINDS = {
    "finding": ("a check saw something",
                "severity seen expected since confidence phase uuid bdf data"),
    "incident": ("a fault was opened; its evidence is kept",
                 "findings reason evidence evidence_notes phase layer since"),
    "drain": ("the node was drained", "reason seconds by tries"),
    "resume-node": ("a node that we drained was resumed", "reason why by incidents clean_rounds"),
    "requeue": ("a job was requeued", "start_in tries resume gpus why fault_time started"),
    "hold": ("a job was held", "code message passed"),
    "send-back": ("a job was sent back to wait", "code message start_in tries"),
    "resume-point": ("a restarted job got its checkpoint",
                     "path step level mtime passed message seconds"),
    "job-started-over": ("a restarted job begins from the start", "message why passed path step level mtime"),
    "spool": ("an action waited for slurmctld, was done later, or was dropped", "what args why waited"),
    "internal-error": ("a fault of this tool", "where error policy phase"),
    "brake": ("too many nodes at once: not drained", "partition drained limit size taken_back why"),
    "restore-reason": ("our drain reason was put back", "reason replaced"),
    "ack": ("an admin acknowledged a known fault, or took that back", "until by cleared"),
    "notify": ("somebody was told, or could not be", "how outcome message seconds about"),
    "unacted": ("what would have been done, and why it was not", "why would reason"),
}
KINDS = {kind: (meaning, tuple(keys.split())) for kind, (meaning, keys) in _KINDS.items()}


def subject_text(subject):
    """Short text of a model.Subject (or its dict): "gpu3", "gpus", "node", or the path of a mount."""
    if subject is None or isinstance(subject, str):
        return subject or ""
    get = subject.get if isinstance(subject, dict) else lambda name: getattr(subject, name)
    kind = get("kind")
    if kind == "gpu":
        index = get("index")
        return "gpu%s" % ("?" if index is None else index)
    return get("name") if kind in ("mount", "part") else kind


def new_id(now=None):
    """A unique id that sorts by time: milliseconds and 40 random bits, in hex."""
    return "%011x%s" % (int((time.time() if now is None else now) * 1000), os.urandom(5).hex())


def event(kind, node, boot_id="", when=None, incident="", code="", subject="", job=None, restart=None,
          action="", detail=None):
    """Build one event. `when`: seconds since the epoch (default now). `subject`: model.Subject or text.

    `restart`: Slurm's restart count of the run that the event belongs to. `action`: what was done, one word.
    """
    when = time.time() if when is None else when
    return {"v": VERSION, "id": new_id(when), "time": round(when, 3), "boot_id": boot_id, "node": node,
            "kind": kind, "incident": incident, "code": code, "subject": subject_text(subject), "job": job,
            "restart": restart, "action": action, "detail": detail or {}}


def bound(value, text=1000, items=64, depth=6):
    """`value` as plain JSON data of bounded size: long texts, lists and deep trees are cut, and say so."""
    if value is None or isinstance(value, (bool, int)):
        return value if not isinstance(value, int) or abs(value) < 1 << 63 else str(value)[:text]
    if isinstance(value, float):
        return value if value - value == 0 else str(value)      # NaN and infinity are not JSON
    if isinstance(value, str):
        return value if len(value) <= text else value[:text] + "...(%d more)" % (len(value) - text)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if depth <= 0:
        return "...(cut)"
    if isinstance(value, dict):
        kept = {str(key)[:100]: bound(value[key], text, items, depth - 1) for key in list(value)[:items]}
        if len(value) > items:
            kept["..."] = "%d more" % (len(value) - items)
        return kept
    if isinstance(value, (list, tuple, set, frozenset)):
        found = list(value)
        kept_list = [bound(one, text, items, depth - 1) for one in found[:items]]
        return kept_list + (["...(%d more)" % (len(found) - items)] if len(found) > items else [])
    return bound(str(value), text)


def line(one):
    """One event as bytes with a newline, at most MAX_LINE; control characters only ever as JSON escapes."""
    short = {key: bound(one[key], 300, 8, 2) for key in one if key != "detail"}
    for text, items in ((1000, 64), (200, 16), (60, 4)):
        short["detail"] = bound(one.get("detail") or {}, text, items)
        data = json.dumps(short, separators=(",", ":")).encode("ascii") + b"\n"
        if len(data) <= MAX_LINE:
            return data
    short["detail"] = {"cut": "the event took %d bytes" % len(data)}
    return json.dumps(short, separators=(",", ":")).encode("ascii") + b"\n"


def week_of(when):
    """ISO year and week of a time, in UTC: "2026-W49". As text it sorts like time."""
    return time.strftime("%G-W%V", time.gmtime(when))


def file_name(node, when):
    """Name of the event file of a node and the week of `when`."""
    safe = "".join(char if char.isalnum() and char.isascii() or char in "._-" else "_" for char in node)[:200]
    return "%s-%s.jsonl" % (safe.lstrip(".") or "_", week_of(when))


def append(root, one, cfg=None):
    """Append one event to this node's file of the week. True when the whole line was written.

    Never raises for a disk that is full, read-only, broken or not there: returns False, and the caller says
    the line to syslog. `cfg` is not needed and may be left out.
    """
    folder = paths.under(root, paths.EVENTS)
    name = os.path.join(folder, file_name(one.get("node") or "", one.get("time") or time.time()))
    data = line(one)
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _OPEN
    try:
        try:
            fd = os.open(name, flags, 0o600)
        except FileNotFoundError:
            make_folder(folder)
            fd = os.open(name, flags, 0o600)
        try:
            seen = os.fstat(fd)
            if not stat.S_ISREG(seen.st_mode):
                return False
            if seen.st_size and os.pread(fd, 1, seen.st_size - 1) != b"\n":
                # A crash or a full disk cut the last line: do not glue this one to it.
                data = b"\n" + data
            return os.write(fd, data) == len(data)
        finally:
            os.close(fd)
    except OSError:
        return False


def syslog(text, path="/dev/log"):
    """Say one line (or an event) to the local syslog socket; never waits. True when it was taken.

    The syslog module of Python may block on a full socket; a datagram with O_NONBLOCK does not.
    """
    import socket
    if isinstance(text, dict):
        text = line(text).decode("ascii").rstrip()
    clean = "".join(char if char.isprintable() else "?" for char in str(text))[:900]
    daemon_err = 3 * 8 + 3      # facility and severity, RFC 5424 section 6.2.1
    data = ("<%d>gpuhealth[%d]: %s" % (daemon_err, os.getpid(), clean)).encode("utf-8", "replace")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.connect(path)
            return sock.send(data) == len(data)
    except OSError:
        return False


def record(root, one, cfg=None):
    """Append the event; where that fails, say it to syslog. Returns "file", "syslog" or "" (neither)."""
    if append(root, one, cfg):
        return "file"
    return "syslog" if syslog(one) else ""


def read(path, since=None, stats=None):
    """Iterate over stored events: event_files.read, which is cold."""
    from slurm_gpuhealth import event_files
    return event_files.read(path, since, stats)


def mirror(root, cfg, node, deadline=5.0):
    """Copy this node's new lines to the shared folder: event_files.mirror, which is cold."""
    from slurm_gpuhealth import event_files
    return event_files.mirror(root, cfg, node, deadline)


def append_history(root, cfg, uid, gid, job_id, entry):
    """Add to what the job's own user may read about its restarts: job_history.append_history (cold)."""
    from slurm_gpuhealth import job_history
    return job_history.append_history(root, cfg, uid, gid, job_id, entry)
