"""`gpuhealth status`: which nodes are out, why, since when. Works for every user, as `sinfo` does."""
from __future__ import annotations

import argparse
import json
import time

from slurm_gpuhealth import reason, slurm
from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import EXIT_OK, EXIT_UNKNOWN, SlurmRefused, SlurmUnavailable
from slurm_gpuhealth.report.text import clean, seconds

EPILOG = """\
example:
  gpuhealth status              the nodes that are out or have a reason
  gpuhealth status --all --json

exit codes: 0 it could be looked, 3 slurmctld does not answer (what the events say is shown)
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("status", help="which nodes are out, why, since when", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also the nodes with nothing to say of")
    parser.add_argument("--events", metavar="DIR", help="folder of event files (default: as for report)")


def run(args, out):
    """Show it; returns the exit code."""
    now = time.time()
    cfg = site.configuration(args.root)
    incidents, note = last_incidents(site.events_folder(args.root, cfg, args.events), now)
    try:
        rows = [row_of(record, incidents, now) for record in slurm.client(cfg, args.root).all_nodes()]
        notes = [note] if note else []
        code = EXIT_OK
    except (SlurmUnavailable, SlurmRefused) as exc:
        rows = [_from_event(node, event, now) for node, event in sorted(incidents.items())
                if event["kind"] == "drain"]
        notes = ["slurmctld does not answer (%s): this is what the events say" % exc] + ([note] if note else [])
        code = EXIT_UNKNOWN
    shown = [row for row in rows if args.all or row["out"] or row["reason"]]
    if args.json:
        print(json.dumps({"v": 1, "nodes": shown, "total": len(rows), "notes": notes}, indent=1), file=out)
        return code
    for text in notes:
        print("note: " + clean(text), file=out)
    if not shown:
        print("All %d nodes are in service." % len(rows) if rows else "No node is known to be out.", file=out)
        return code
    print("\n".join(site.table(
        [(row["node"], row["state"], row["code"] or "-", seconds(row["age"]) if row["age"] is not None else "?",
          row["evidence"] or "-", row["reason"]) for row in shown],
        ("NODE", "STATE", "CODE", "AGE", "EVIDENCE", "REASON"))), file=out)
    print("%d of %d nodes out, %d by gpuhealth" % (
        sum(row["out"] for row in rows), len(rows), sum(row["out"] and row["ours"] for row in rows)), file=out)
    return code


def last_incidents(folder, now, weeks=8):
    """({node: the last event that took it out or brought it back}, note or "")."""
    found: dict = {}
    events, note = site.read_events(folder, now - weeks * 7 * 86400)
    for event in events:
        node, when = event.get("node"), event.get("time")
        if _about_service(event) and isinstance(node, str) and isinstance(when, (int, float)):
            if node not in found or found[node]["time"] <= when:
                found[node] = event
    return found, note


def _about_service(event):
    """Whether an event took its node out of service, or says that it is back."""
    detail = event.get("detail")
    return event.get("kind") in ("drain", "resume-node") or event.get("action") == "closed" \
        or (event.get("kind") == "brake" and isinstance(detail, dict) and detail.get("taken_back") is True)


def row_of(record, incidents, now):
    """One node of Slurm's list, with what is known of it. `age`: seconds since its reason was set."""
    parsed = reason.parse(record.reason) if record.reason else None
    event = incidents.get(record.name, {})
    detail = event.get("detail")
    since = record.reason_time
    if since is None and parsed and isinstance(detail, dict) and detail.get("reason") == record.reason:
        since = event.get("time")
    return {"node": record.name, "state": "+".join(record.state), "out": _is_out(record), "ours": parsed is not None,
            "code": parsed[0] if parsed else "", "subject": parsed[1] if parsed else "", "reason": record.reason,
            "evidence": parsed[3] if parsed else "", "since": since, "by": record.reason_user,
            "age": max(0.0, now - since) if since is not None else None}


def _is_out(record):
    return any(flag.startswith(("DRAIN", "DOWN", "FAIL")) for flag in record.state)


def _from_event(node, event, now):
    detail = event["detail"] if isinstance(event.get("detail"), dict) else {}
    text = str(detail.get("reason") or "")
    return {"node": node, "state": "drained by us", "out": True, "ours": True, "code": str(event.get("code") or ""),
            "subject": str(event.get("subject") or ""), "reason": text, "evidence": str(event.get("incident") or ""),
            "since": event["time"], "by": "", "age": max(0.0, now - event["time"])}
