"""`gpuhealth replay`: make a decision again from its evidence."""
from __future__ import annotations

import argparse
import json

from slurm_gpuhealth import decide, model
from slurm_gpuhealth.errors import EXIT_FATAL, EXIT_OK
from slurm_gpuhealth.evidence import replay, shelf
from slurm_gpuhealth.report.text import clean

EPILOG = """\
example:
  gpuhealth replay 3fa9
  gpuhealth replay ./copy-of-a-folder --set klog.events.0.code=31
  gpuhealth replay 3fa9 --set policy.mode='"full"' --set situation.mode=full

exit codes: 0 the same decision (or none is stored), 2 another one
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("replay", help="make a decision again from its evidence", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="start of the incident's id, name or path of an evidence folder")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="changes",
                        help="change a fact beforehand (situation.X and policy.X change those)")


def run(args, out):
    """Replay and say what comes out; returns the exit code."""
    folder = shelf.find(args.root, args.folder)
    result = replay.replay(folder, args.changes)
    if args.json:
        print(json.dumps({"v": 1, "folder": folder, "same": result.same, "differs": result.differs,
                          "notes": result.notes, "findings": model.to_plain(result.findings),
                          "plan": model.to_plain(result.plan), "stored": result.stored}, indent=1), file=out)
    else:
        _print(result, folder, out)
    return EXIT_FATAL if result.same is False else EXIT_OK


def _print(result, folder, out):
    for note in result.notes:
        print("warning: %s" % clean(note), file=out)
    for finding in result.findings:
        print("finding: %s %s %s%s" % (finding.severity, finding.code, decide.subject_key(finding.subject), " " + clean(
            finding.seen, 80) if finding.seen else ""), file=out)
    if not result.findings:
        print("finding: none", file=out)
    print("decision: " + _in_words(model.to_plain(result.plan)), file=out)
    if result.same is None:
        print("no decision is stored in %s" % clean(folder), file=out)
    elif result.same:
        print("the same as the one that was taken", file=out)
    else:
        print("taken was: " + _in_words(result.stored), file=out)
        print("they differ in: " + ", ".join(result.differs), file=out)


def _in_words(plan):
    """A plan (plain values) in one line."""
    actions = [clean(action.get("kind", "?")) for action in plan.get("actions") or []]
    text = "%s; exit %s" % (", ".join(actions) or "nothing to do", clean(plan.get("exit_code")))
    if plan.get("reason"):
        text += "; %s" % clean(plan["reason"])
    if plan.get("lookups"):
        text += "; would first ask slurmctld for: %s" % ", ".join(map(clean, plan["lookups"]))
    for note in plan.get("notes") or []:
        text += "; " + clean(note)
    return text
