"""`gpuhealth log parse`: what a kernel log says about GPUs, PCIe, storage, memory and network."""
from __future__ import annotations

import argparse
import json
import sys

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.errors import DataError, NotFoundError
from slurm_gpuhealth.parse import kmsg, log_lines
from slurm_gpuhealth.render import printable

EPILOG = """\
example:
  dmesg | gpuhealth log parse
  gpuhealth log parse /var/log/kern.log
  journalctl -k -o json | gpuhealth log parse -

one JSON object a line: v, kind, code, bdf, severity, action, line, time, last, count, pid, process, data.
time is null where the log does not say date and zone; then "stamp" (as printed) and "monotonic" (seconds since
boot) are what there is. Lines of one burst (same kind, code and GPU, at most 3 minutes apart) are one event.
"""

_BLOCK = 1 << 20
# What kinds without a Xid number mean: (severity, action). Xids come from the catalogue.
_KINDS = {
    "gpu_fell_off": ("fatal", "reboot"), "rm_init_failed": ("fatal", "reboot"),
    "nvml_version_mismatch": ("warning", "reboot"), "driver_load": ("note", "none"),
    "aer_corrected": ("note", "none"), "aer_uncorrected": ("warning", "none"),
    "fs_error": ("warning", "repair"), "fs_readonly": ("fatal", "repair"),
    "nfs_not_responding": ("warning", "none"), "lustre_lost": ("warning", "none"),
    "nvme": ("warning", "repair"), "block_io": ("warning", "repair"),
    "mce_corrected": ("note", "none"), "mce_uncorrected": ("fatal", "repair"), "mce_logged": ("note", "none"),
    "mce_apei": ("warning", "none"), "edac_corrected": ("note", "none"), "edac_uncorrected": ("fatal", "repair"),
    "oom_kill": ("note", "restart-app"), "hung_task": ("warning", "none"), "link_flap": ("warning", "none"),
    "mlx5": ("warning", "none"),
}
# NVML's recovery actions as Xid 154 gives them.
_RECOVERY = {0: "none", 1: "reset", 2: "reboot", 3: "drain", 4: "drain", 5: "drain", 6: "reset", 7: "reboot"}


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("log", help="what a kernel log says", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="log_command", metavar="COMMAND", required=True)
    parse = commands.add_parser("parse", help="read a kernel log, print its events", epilog=EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("file", nargs="?", default="-",
                       help="a saved kernel log in any common form; - for standard input")
    return parser


def run(args, out):
    """Print the events of a log; 0 also when there are none."""
    if args.file == "-":
        events = read(sys.stdin.buffer)
    else:
        try:
            with open(args.file, "rb") as stream:
                events = read(stream)
        except FileNotFoundError:
            raise NotFoundError("no such file: %s" % args.file) from None
        except OSError as exc:
            raise DataError("cannot read %s: %s" % (args.file, exc.strerror)) from exc
    for event in events:
        print(json.dumps(event), file=out)
    return 0


def read(stream):
    """The events of a binary stream, as the dicts that are printed."""
    bursts = kmsg.Bursts()
    about: dict = {}
    rest = b""
    while True:
        data = stream.read(_BLOCK)
        block, mark, rest = (rest + data).rpartition(b"\n")
        if not data:
            block, mark, rest = rest, b"\n", b""
        if mark:
            for raw in kmsg.interesting(block, log_lines.NEEDLES):
                _take(kmsg.decode(raw), bursts, about)
        if not data:
            return [_described(event, found) for event, found in zip(bursts.events(), about.values())]


def _take(line, bursts, about):
    found, parsed = log_lines.parse_line(line)
    if parsed is None:
        return
    if found.facility:
        # A program wrote it into the kernel's log: shown, and said.
        parsed[5]["injected"] = True
    event = bursts.add(parsed, log_lines.clock(found), found.text, found.seq)
    if bursts.fresh:
        about[id(event)] = found


def _described(event, found):
    data = dict(event.data or {})
    severity, action = judge(event)
    plain = {"v": 1, "kind": event.kind, "code": event.code, "bdf": event.bdf, "severity": severity,
             "action": action, "time": found.time, "last": event.last if found.time is not None else None,
             "count": event.count, "pid": event.pid, "process": printable(event.process),
             "line": printable(event.line), "data": data}
    if found.time is None:
        plain["stamp"], plain["monotonic"] = found.stamp or None, found.monotonic
    if event.kind == "xid" and event.code is not None:
        plain["title"] = catalogue.xid(event.code).title
    return plain


def judge(event):
    """(severity, action) of an event. action: none, restart-app, reset, reboot, repair, drain."""
    if event.kind == "sxid":
        return ("fatal", "drain") if (event.data or {}).get("fatal") else ("note", "none")
    if event.kind != "xid" or event.code is None:
        return _KINDS.get(event.kind, ("unknown", "none"))
    data = event.data or {}
    what, severity, _ = catalogue.xid_policy(event.code, data.get("to"))
    if event.code == 154:
        return severity, _RECOVERY.get(data.get("to", 0), "none")
    if what == "drain":
        return severity, "reboot" if event.code == 79 else "drain"
    return severity, "restart-app" if catalogue.xid(event.code).user_caused != "no" else "none"
