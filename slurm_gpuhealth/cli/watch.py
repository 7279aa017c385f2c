"""`gpuhealth watch`: the health check at the moment the kernel log or NVML speaks. Runs until it is stopped."""
from __future__ import annotations

import argparse
import json
import os
import time

from slurm_gpuhealth.errors import PermissionDenied
from slurm_gpuhealth.render import printable

EPILOG = """\
example:
  systemctl enable --now gpuhealth-watch     as a service (the unit is made by `gpuhealth install`)
  gpuhealth watch                            in the foreground, to see what it reacts to

It does what slurmd's HealthCheckProgram does, only sooner; keep that one too. `systemctl stop gpuhealth-watch` before a
GPU reset or a change of the MIG mode, as it waits for NVML's events (`watch: nvml_events` in the configuration).
With --json each line is an object: v, time, what (round, nvml-events, configuration), detail.
"""


def add_parser(subparsers):
    """The parser of this command."""
    return subparsers.add_parser("watch", help="run the health check at the moment the kernel log speaks",
                                 epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)


def run(args, out):
    """Watch until SIGTERM or SIGINT."""
    from slurm_gpuhealth import watch
    if not args.root and os.geteuid() != 0:
        raise PermissionDenied("watch must be run by root")

    def say(what, detail):
        if args.json:
            print(json.dumps({"v": 1, "time": time.time(), "what": what, "detail": detail}), file=out, flush=True)
        else:
            print(printable("%s: %s" % (what, detail)), file=out, flush=True)
    watch.Watcher(args.root, say).loop()
    return 0
