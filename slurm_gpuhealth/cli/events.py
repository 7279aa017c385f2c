"""`gpuhealth events tail|export`: the event log, for people and for other programs."""
from __future__ import annotations

import argparse
import collections
import json
import time

from slurm_gpuhealth import event_files
from slurm_gpuhealth import events as events_module
from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import EXIT_OK, PermissionDenied
from slurm_gpuhealth.report.text import clean, stamp

EPILOG = """\
example:
  gpuhealth events tail -n 50 --kind drain
  gpuhealth events export --since 30d > events.jsonl
"""


def add_parser(subparsers):
    """The parser of this command and its own."""
    parser = subparsers.add_parser("events", help="the event log", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    inner = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    tail = inner.add_parser("tail", help="the last events, one line each")
    tail.add_argument("-n", type=int, default=20, metavar="N", help="how many (default: 20)")
    export = inner.add_parser("export", help="events as JSON lines, in the order of time")
    for one, since in ((tail, "8w"), (export, "all")):
        one.add_argument("--since", default=since, metavar="WHEN", help="12h, 7d, a date, all (default: %s)" % since)
        one.add_argument("--events", metavar="DIR", help="folder of event files (default: as for report)")
        one.add_argument("--kind", action="append", choices=sorted(events_module.KINDS), help="only this kind")
        one.add_argument("--node", action="append", help="only of this node")


def run(args, out):
    """Print them; returns the exit code."""
    since = site.since(args.since, time.time())
    folder = site.events_folder(args.root, site.configuration(args.root), args.events)
    found = (event for event in _read(folder, since)
             if (not args.kind or event.get("kind") in args.kind) and (not args.node or event.get("node") in args.node))
    if args.action == "tail":
        # Files are read in the order of weeks, not of time: all of the time asked for must be seen.
        last = collections.deque(sorted(found, key=_when), maxlen=max(1, args.n))
        if args.json:
            print(json.dumps({"v": 1, "events": list(last)}, indent=1), file=out)
        else:
            print("\n".join(map(_line, last)) or "No events.", file=out)
        return EXIT_OK
    for event in sorted(found, key=_when):
        out.write(json.dumps(event, separators=(",", ":")) + "\n")
    return EXIT_OK


def _read(folder, since):
    try:
        yield from event_files.read(folder, since)
    except FileNotFoundError:
        return
    except PermissionError as exc:
        raise PermissionDenied("%s is not readable for this user" % folder) from exc


def _when(event):
    when = event.get("time")
    return when if isinstance(when, (int, float)) else 0


def _line(event):
    """One event for a terminal."""
    detail = event.get("detail") if isinstance(event.get("detail"), dict) else {}
    words = [stamp(_when(event) or None), clean(event.get("node") or "?"), clean(event.get("kind") or "?")]
    words += [clean(event[key]) for key in ("code", "subject", "action") if event.get(key)]
    if event.get("job") is not None:
        words.append("job %s.%s" % (clean(event["job"]), clean(event.get("restart"))))
    text = next((detail[key] for key in ("reason", "message", "why", "error", "seen", "path") if detail.get(key)), "")
    return "  ".join(words) + ("  " + clean(text, 120) if text else "")
