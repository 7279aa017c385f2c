"""`gpuhealth node status|resume|drain|ack`: the state of a node, and what an admin does about it."""
from __future__ import annotations

import argparse
import json
import os
import pwd
import time

from slurm_gpuhealth import catalogue, decide, events, memory, paths, reason, slurm
from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import (
    EXIT_FATAL,
    EXIT_OK,
    EXIT_UNKNOWN,
    SlurmRefused,
    SlurmUnavailable,
    StateError,
    UsageError,
)
from slurm_gpuhealth.model import FATAL, NODE, Ack, Finding, Subject
from slurm_gpuhealth.report.text import clean, seconds, stamp
from slurm_gpuhealth.state import State

EPILOG = """\
example:
  gpuhealth node status
  gpuhealth node resume                                     only of a node that gpuhealth drained
  gpuhealth node drain GH-PCIE-WIDTH --subject gpu5 --reason "x8 since the repair"
  gpuhealth node ack GH-PCIE-WIDTH --subject gpu5 --until 14d   known: do not drain for it until then
  gpuhealth node ack GH-PCIE-WIDTH --subject gpu5 --clear

exit codes of status: 0 in service, 2 out, 3 slurmctld does not answer
"""


def add_parser(subparsers):
    """The parser of this command and its own."""
    parser = subparsers.add_parser("node", help="state of a node; resume, drain, acknowledge a fault", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    inner = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    status = inner.add_parser("status", help="Slurm's view, open incidents, acknowledged faults")
    resume = inner.add_parser("resume", help="put a node back that gpuhealth drained, and close its incidents")
    drain = inner.add_parser("drain", help="drain by hand, with a coded reason")
    drain.add_argument("code", help="a reason code (gpuhealth explain lists them)")
    drain.add_argument("--reason", default="by hand", metavar="TEXT", help="what is wrong")
    drain.add_argument("--subject", default="", help="gpu3, or the path of a mount")
    for one in (status, resume, drain):
        one.add_argument("--node", metavar="NAME", help="another node than this one")
    ack = inner.add_parser("ack", help="acknowledge a known fault of this node, so that it does not drain")
    ack.add_argument("code", help="a reason code")
    ack.add_argument("--subject", default="", help="gpu3, or the path of a mount (default: any)")
    ack.add_argument("--until", metavar="WHEN", help="14d, or a date (UTC)")
    ack.add_argument("--clear", action="store_true", help="take it back")


def run(args, out):
    """Do it; returns the exit code."""
    return {"status": _status, "resume": _resume, "drain": _drain, "ack": _ack}[args.action](args, out)


def _who():
    """Name of the person, also behind sudo."""
    name = os.environ.get("SUDO_USER")
    if name:
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _say(args, out, plain, text):
    print(json.dumps(dict(plain, v=1), indent=1) if args.json else clean(text), file=out)


# -- looking

def _status(args, out):
    here = site.node_name(args.root)
    node = args.node or here
    cfg = site.configuration(args.root)
    record = why = None
    try:
        record = slurm.client(cfg, args.root).node(node)
    except (SlurmUnavailable, SlurmRefused) as exc:
        why = str(exc)
    state = State(args.root)
    incidents, acks = state.incidents() if node == here else ([], [])
    now = time.time()
    plain = {
        "v": 1, "node": node, "mode": cfg["mode"], "slurm": None if record is None else {
            "state": list(record.state), "reason": record.reason, "ours": reason.is_ours(record.reason)}, "why": why,
        "off": os.path.lexists(paths.under(args.root, paths.KILL_SWITCH)),
        "incidents": [{"id": item.id, "code": item.code, "subject": events.subject_text(item.subject),
                       "opened": item.opened, "evidence": item.evidence, "drained": item.drained}
                      for item in incidents if not item.closed],
        "acks": [{"code": item.code, "subject": item.subject, "until": item.until, "by": item.by} for item in acks
                 if item.until is None or item.until > now], "notes": list(state.notes)}
    if args.json:
        print(json.dumps(plain, indent=1), file=out)
    else:
        _print_status(plain, now, out)
    if record is None:
        return EXIT_UNKNOWN
    return EXIT_FATAL if _drained(record) else EXIT_OK


def _print_status(plain, now, out):
    found = plain["slurm"]
    print("%s: %s%s" % (clean(plain["node"]), "+".join(map(clean, found["state"])) if found else
                        "not known to Slurm: %s" % clean(plain["why"]), "; mode %s" % plain["mode"]), file=out)
    if found and found["reason"]:
        print("reason (%s): %s" % ("ours" if found["ours"] else "not ours", clean(found["reason"])), file=out)
    if plain["off"]:
        print("switched off here: %s exists" % paths.KILL_SWITCH, file=out)
    for item in plain["incidents"]:
        print("open: %s %s, %s ago, id %s%s" % (
            item["code"], clean(item["subject"]), seconds(max(0.0, now - item["opened"])), item["id"],
            "" if item["drained"] else ", not drained yet"), file=out)
    for item in plain["acks"]:
        print("acknowledged: %s %s until %s UTC by %s" % (
            clean(item["code"]), clean(item["subject"] or "(any)"), stamp(item["until"]), clean(item["by"])), file=out)
    for note in plain["notes"]:
        print("note: " + clean(note), file=out)


def _drained(record):
    return any(flag.startswith("DRAIN") for flag in record.state)


# -- changing

def _open_state(args):
    """The node's state, locked; the caller's process ends soon, which unlocks it."""
    state = State(args.root)
    if not state.lock(5.0):
        raise StateError("a hook holds this node's lock: try again in a moment")
    return state


def _resume(args, out):
    here = site.node_name(args.root)
    node = args.node or here
    site.need_root("resuming a node", args.root)
    client = slurm.client(site.configuration(args.root), args.root)
    record = client.node(node)
    if not _drained(record):
        raise UsageError("%s is not drained (%s)" % (node, "+".join(record.state)))
    if not reason.is_ours(record.reason):
        raise UsageError("%s was not drained by gpuhealth: %s" % (node, record.reason or "no reason given"))
    if "MAINT" in record.state:
        raise UsageError("%s is in a MAINT reservation: left alone" % node)
    client.resume(node)
    closed = _close_incidents(args) if node == here else []
    by = _who()
    events.record(args.root, events.event("resume-node", node, action="by hand", code=reason.parse(record.reason)[0],
                                          detail={"why": "by hand", "by": by, "incidents": closed,
                                                  "reason": record.reason}))
    text = "%s is back in service; it was out for: %s" % (node, record.reason)
    if node != here:
        text += " (its incidents are closed by its next health check)"
    _say(args, out, {"node": node, "reason": record.reason, "closed": closed}, text)
    return EXIT_OK


def _close_incidents(args):
    state = _open_state(args)
    try:
        incidents, acks = state.incidents()
        closed = [item.id for item in incidents if not item.closed]
        state.save_incidents([item if item.closed else item._replace(closed=time.time()) for item in incidents], acks)
        saved = state.read("node.json")
        memory.rebase_jobs(state, saved.get("cursor"), saved.get("counters"))
    finally:
        state.unlock()
    return closed


def _drain(args, out):
    here = site.node_name(args.root)
    node = args.node or here
    site.need_root("draining a node", args.root)
    _check_code(args.code)
    client = slurm.client(site.configuration(args.root), args.root)
    record = client.node(node)
    if _drained(record):
        raise UsageError("%s is drained already: %s" % (node, record.reason or "no reason given"))
    if record.reason and not reason.is_ours(record.reason) and decide.is_down(record):
        raise UsageError("%s has a reason that is not ours, which is not overwritten: %s" % (node, record.reason))
    finding = Finding(args.code, FATAL, _subject(args.subject), args.reason)
    text = reason.write([finding])
    client.drain(node, text)
    events.record(args.root, events.event("drain", node, action="by hand", code=args.code, subject=finding.subject,
                                          detail={"reason": text, "by": _who()}))
    _say(args, out, {"node": node, "reason": text}, "%s is drained: %s" % (node, text))
    return EXIT_OK


def _subject(text):
    if text.startswith("gpu") and text[3:].isascii() and text[3:].isdigit():
        return Subject("gpu", int(text[3:]))
    if text.startswith("/"):
        return Subject("mount", name=text)
    if not text:
        return NODE
    if not text.isprintable() or " " in text:
        raise UsageError("not a subject: %s (gpu3, the path of a mount, or a name like mlx5_0/1)" % ascii(text[:80]))
    return Subject("part", name=text)


def _check_code(code):
    if not catalogue.known(code):
        raise UsageError("there is no code %s (`gpuhealth explain` lists them)" % code[:40])


def _ack(args, out):
    site.need_root("acknowledging a fault", args.root)
    _check_code(args.code)
    subject = events.subject_text(_subject(args.subject)) if args.subject else ""
    if args.clear == bool(args.until):
        raise UsageError("give either --until WHEN or --clear")
    now = time.time()
    until = None if args.clear else site.until(args.until, now)
    if until is not None and until <= now:
        raise UsageError("%s is past" % args.until)
    state = _open_state(args)
    try:
        incidents, acks = state.incidents()
        kept = [item for item in acks if (item.code, item.subject) != (args.code, subject)
                and (item.until is None or item.until > now)]
        was_there = any((item.code, item.subject) == (args.code, subject) for item in acks)
        if args.clear and not was_there:
            raise UsageError("%s %s is not acknowledged" % (args.code, subject or "(any)"))
        if until is not None:
            kept.append(Ack(args.code, subject, until, _who()))
        state.save_incidents(incidents, kept)
    finally:
        state.unlock()
    events.record(args.root, events.event("ack", site.node_name(args.root), code=args.code, subject=subject,
                                          action="clear" if args.clear else "ack",
                                          detail={"until": until, "by": _who(), "cleared": args.clear}))
    _say(args, out, {"code": args.code, "subject": subject, "until": until, "cleared": args.clear},
         "%s %s %s" % (args.code, subject or "(any)", "is no longer acknowledged" if args.clear
                       else "does not drain this node until %s UTC" % stamp(until)))
    return EXIT_OK
