"""`gpuhealth job ID`: for a user: why a job was requeued, where it resumes, which checkpoints were passed over."""
from __future__ import annotations

import argparse
import json
import os

from slurm_gpuhealth import job_history, paths
from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import EXIT_OK, NotFoundError, UsageError
from slurm_gpuhealth.report.text import clean, stamp

EPILOG = """\
example:
  gpuhealth job 4711
  gpuhealth job 4711 --json | jq '.entries[].passed'

What a job's own user may read is kept in the shared folder of the configuration, else on the node it ran on.
"""
# What of an event goes into a line when there is no history (root reads the events instead).
_KINDS = {"requeue": "requeued", "hold": "held", "send-back": "sent back", "resume-point": "resumes",
          "job-started-over": "starts over"}
# What a prolog calls a start in the job's history -> for its user.
_STARTS = {"resume": "started again", "start-over": "started again"}


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("job", help="what happened to a job, and where it resumes", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("id", help="job id (of an array task: its own id, or A_T)")
    parser.add_argument("--events", metavar="DIR", help="folder of event files (default: as for report)")


def run(args, out):
    """Show it; returns the exit code."""
    cfg = site.configuration(args.root)
    owners = None if os.geteuid() == 0 or args.root else (os.geteuid(), 0)
    try:
        entries, notes = job_history.read(args.root, cfg, args.id, owners)
    except ValueError as exc:
        raise UsageError(str(exc)) from exc
    answer = _answer(args.root, args.id)
    if not entries:
        entries, note = _from_events(site.events_folder(args.root, cfg, args.events), args.id)
        notes += [note] if note else []
    if not entries and not answer:
        raise NotFoundError("nothing is recorded of job %s: it was never requeued, held or resumed here%s" % (
            args.id, " (%s)" % "; ".join(notes) if notes else ""))
    if args.json:
        print(json.dumps({"v": 1, "job": args.id, "entries": entries, "answer": answer, "notes": notes}, indent=1),
              file=out)
        return EXIT_OK
    for note in notes:
        print("note: " + clean(note), file=out)
    for entry in entries:
        print("\n".join(_lines(entry)), file=out)
    if answer:
        print("now: restart %s%s" % (clean(answer.get("restart", "?")), _resume(answer)), file=out)
    return EXIT_OK


def _answer(root, job_id):
    """What prolog answered for the run that is on this node now; None where there is none for this user."""
    path = paths.under(root, "%s/job-%s.json" % (paths.RUN, job_id))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as handle:
            plain = json.loads(handle.read(1 << 20))
    except (OSError, ValueError, RecursionError):
        return None
    return plain if isinstance(plain, dict) else None


def _from_events(folder, job_id):
    found = []
    events, note = site.read_events(folder)
    for event in events:
        if str(event.get("job")) == job_id and event.get("kind") in _KINDS and event.get("action") != "beforehand":
            detail = event["detail"] if isinstance(event.get("detail"), dict) else {}
            resume = detail if event["kind"] == "resume-point" else detail.get("resume")
            found.append({"time": event.get("time"), "restart": event.get("restart"), "what": _KINDS[event["kind"]],
                          "node": event.get("node"), "code": event.get("code"),
                          "reason": detail.get("message") or detail.get("why") or "",
                          "resume": {key: resume.get(key) for key in ("path", "step", "level")}
                          if isinstance(resume, dict) else None, "passed": _named(detail.get("passed"))})
    return sorted(found, key=lambda one: one["time"] if isinstance(one["time"], (int, float)) else 0), note


def _named(passed):
    """[{path, reason}] of an event's pairs."""
    return [{"path": one[0], "reason": one[1]} if isinstance(one, list) and len(one) == 2 else one
            for one in passed or () if isinstance(one, (list, dict))] if isinstance(passed, list) else []


def _lines(entry):
    """One entry of the history, in lines for its user."""
    when = entry.get("time")
    what = clean(entry.get("what") or "?")
    text = "%s UTC  %s on %s" % (stamp(when if isinstance(when, (int, float)) else None),
                                 _STARTS.get(what, what), clean(entry.get("node") or "?"))
    if isinstance(entry.get("restart"), int):
        text += " (restart %d)" % entry["restart"]
    resumes = _resume(entry.get("resume"))
    # The reason of a start that resumes is the line in the job's output: the same again, in one piece.
    why = "" if resumes else " ".join(clean(part) for part in (entry.get("code"), entry.get("reason")) if part)
    lines = [text + (": " + why if why else "") + resumes]
    passed = entry.get("passed")
    for one in passed if isinstance(passed, list) else []:
        if isinstance(one, dict):
            lines.append("    passed over %s: %s" % (clean(one.get("path") or "?"), clean(one.get("reason") or "?")))
    return lines


def _resume(found):
    if not isinstance(found, dict) or not found.get("path"):
        return ""
    step = found.get("step")
    return "; resumes from %s%s%s" % (clean(found["path"]), "" if step is None else ", step %s" % clean(step),
                                      " (%s)" % clean(found["level"]) if found.get("level") else "")
