"""`gpuhealth report`: the summary of incidents, drains and restarts."""
from __future__ import annotations

import argparse
import json
import os
import time

from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import EXIT_OK, PermissionDenied, UsageError
from slurm_gpuhealth.report import aggregate, build, text
from slurm_gpuhealth.state import write_atomic

EPILOG = """\
example:
  gpuhealth report                            the last seven days
  gpuhealth report --since 2026-11-01 --format json -o november.json
  gpuhealth report --since all --events /shared/gpuhealth/events
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("report", help="summary of incidents, drains and restarts", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", default="7d", metavar="WHEN",
                        help="12h, 7d, 4w, a date (UTC), or all (default: 7d)")
    parser.add_argument("--events", metavar="DIR", help="folder of event files, or one file (default: the shared"
                        " folder of the configuration, else this node's own)")
    parser.add_argument("--format", choices=("text", "json"), help="default: text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of to standard output")
    parser.add_argument("--list", type=int, default=20, metavar="N", help="name at most N nodes, jobs and codes")


def run(args, out):
    """Make the report; returns the exit code."""
    now = time.time()
    since = site.since(args.since, now)
    folder = site.events_folder(args.root, site.configuration(args.root), args.events)
    try:
        plain, stats = build.build(folder, since, None, now)
    except FileNotFoundError:
        plain, stats = aggregate.aggregate((), since, None, now), {}
    except PermissionError as exc:
        raise PermissionDenied("%s is not readable for this user" % folder) from exc
    plain["source"] = dict(stats, path=folder)
    if args.json or args.format == "json":
        data = json.dumps(plain, indent=1) + "\n"
    else:
        data = text.render(plain, max(1, args.list)) + _reading(stats)
    if args.output:
        try:
            write_atomic(os.path.abspath(args.output), data.encode("utf-8", "backslashreplace"), 0o644)
        except OSError as exc:
            raise UsageError("cannot write %s: %s" % (args.output, exc.strerror)) from exc
    else:
        out.write(data)
    return EXIT_OK


def _reading(stats):
    said = ["%d %s" % (stats[key], word) for key, word in (
        ("bad", "lines could not be read"), ("duplicates", "duplicates"), ("unreadable", "files could not be read"))
        if stats.get(key)]
    return "\n(%s)\n" % ", ".join(said) if said else ""
