"""`gpuhealth uninstall`: takes the hooks away and puts back what was there."""
from __future__ import annotations

import argparse
import os
import sys

from slurm_gpuhealth.cli.main import printable
from slurm_gpuhealth.errors import PermissionDenied, UsageError
from slurm_gpuhealth.setup import patient, uninstaller

EPILOG = """\
example:
  gpuhealth uninstall --dry-run       what would be taken away
  gpuhealth uninstall --yes           evidence and events stay
  gpuhealth uninstall --yes --purge   nothing stays

Lines that `install --apply` put into slurm.conf are taken out again; others must be taken out by hand first. As
long as slurmd may still start a hook, it stays as a script that does nothing.
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("uninstall", help="take the hooks away again", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--purge", action="store_true", help="also remove evidence, events and state")
    return parser


def run(args, out):
    """Take everything back that the record names."""
    if not args.root and os.geteuid() != 0 and not args.dry_run:
        raise PermissionDenied("uninstall must be run by root")
    if not args.yes and not args.dry_run:
        if not sys.stdin.isatty():
            raise UsageError("no terminal to ask on: give --yes")
        out.write("Take gpuhealth away%s? [y/N] " % (" with all evidence and events" if args.purge else ""))
        out.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UsageError("nothing was done")
    lines = uninstaller.uninstall(args.root, patient.live_settings(args.root), args.purge, args.dry_run)
    if args.json:
        print(uninstaller.as_json(lines, args.dry_run), file=out)
    else:
        for line in lines:
            print(printable(line), file=out)
        if args.dry_run:
            print("nothing was done (--dry-run)", file=out)
    return 0
