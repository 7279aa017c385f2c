"""`gpuhealth doctor`: checks an installation."""
from __future__ import annotations

import argparse
import json

from slurm_gpuhealth.cli.main import printable
from slurm_gpuhealth.setup import diagnose
from slurm_gpuhealth.setup.patient import Patient

EPILOG = """\
example:
  gpuhealth doctor                    as root, on a compute node
  gpuhealth doctor --json             for monitoring; exit 0 ok, 1 warning, 2 bad, 3 could not look
"""

_MARKS = {"ok": "ok  ", "note": "note", "warn": "WARN", "unknown": "????", "bad": "BAD "}
_COLOURS = {"ok": "32", "note": "36", "warn": "33", "unknown": "35", "bad": "31"}


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("doctor", help="check an installation", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slurm-conf", metavar="PATH", default=None,
                        help="read this slurm.conf instead of asking slurmctld")
    parser.add_argument("--node", metavar="NAME", default="", help="Slurm's name of this node")
    parser.add_argument("--quiet", action="store_true", help="leave out what is right")
    return parser


def run(args, out):
    """Examine, print, and return the worst line's exit code."""
    lines = diagnose.examine(Patient(args.root, args.slurm_conf, args.node))
    worst = max((line.level for line in lines), key=diagnose.ORDER.index, default="ok")
    if args.json:
        print(json.dumps({"v": 1, "worst": worst, "lines": [line._asdict() for line in lines]}, indent=2), file=out)
        return diagnose.EXITS[worst]
    colour = out.isatty() if hasattr(out, "isatty") else False
    for line in lines:
        if args.quiet and line.level == "ok":
            continue
        mark = _MARKS[line.level]
        if colour:
            mark = "\033[%sm%s\033[0m" % (_COLOURS[line.level], mark)
        print("%s  %-24s %s" % (mark, line.name, printable(line.text)), file=out)
        if line.fix and line.level != "ok":
            print("      %-24s -> %s" % ("", printable(line.fix)), file=out)
    return diagnose.EXITS[worst]
