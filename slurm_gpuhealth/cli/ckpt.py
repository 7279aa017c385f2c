"""`gpuhealth ckpt verify|latest|list|seal`: checkpoints, judged without executing them."""
from __future__ import annotations

import argparse
import json
import os
import sys
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.checkpoint import content, find
from slurm_gpuhealth.checkpoint.safe import printable
from slurm_gpuhealth.checkpoint.verdict import (
    LEVELS,
    REJECTED,
    STRUCTURE,
    UNKNOWN,
    VERDICTS,
    VERIFIED,
    WEIGHTS,
    Trouble,
)
from slurm_gpuhealth.checkpoint.verify import verify
from slurm_gpuhealth.errors import EXIT_FATAL, EXIT_OK, EXIT_UNKNOWN, EXIT_WARNING, DataError, NotFoundError, UsageError

VERSION = 1     # of the JSON output

EXIT_OF = {VERIFIED: EXIT_OK, STRUCTURE: EXIT_OK, WEIGHTS: EXIT_WARNING, REJECTED: EXIT_FATAL, UNKNOWN: EXIT_UNKNOWN}
EXIT_OF_OUTCOME = {"found": EXIT_OK, "empty": EXIT_WARNING, "none-acceptable": EXIT_FATAL,
                   "could-not-look": EXIT_UNKNOWN}

# What a missing part does to a run that goes on without it.
EFFECTS = {
    "model": "there is nothing to go on with",
    "optimizer": "the optimizer starts cold: the loss shakes for some hundred steps",
    "lr_scheduler": "the learning rate starts again, with a second warm-up",
    "global_step": "logs, schedules and the data position cannot be lined up",
    "grad_scaler": "mixed precision (if used) finds its loss scale again: a few skipped steps",
    "rng_state": "the run goes on, but not bit for bit as it would have",
}

EPILOG = """\
example:
  gpuhealth ckpt verify /ckpt/run7/step-000400
  gpuhealth ckpt latest /ckpt/run7 --json

exit codes: verify 0 whole, 1 weights only, 2 rejected, 3 cannot be judged;
            latest 0 found, 1 no files at all, 2 none acceptable, 3 could not look
"""


def add_parser(subparsers):
    """The arguments of `gpuhealth ckpt`."""
    parser = subparsers.add_parser("ckpt", help="checkpoints: verify, find the newest, seal", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    one = actions.add_parser("verify", help="is this checkpoint whole?")
    one.add_argument("path", metavar="PATH", help="its file or folder")
    one.add_argument("--level", choices=LEVELS, default="full", help="structure: milliseconds; full: checksums too")
    newest = actions.add_parser("latest", help="the newest acceptable checkpoint of a run")
    newest.add_argument("path", metavar="DIR")
    newest.add_argument("--level", choices=LEVELS, default="full")
    newest.add_argument("--accept", metavar="VERDICT", action="append", choices=VERDICTS[:3],
                        help="acceptable verdict, may be repeated (default: verified, structure-only)")
    newest.add_argument("--seconds", type=float, metavar="S", help="answer within S seconds (default: no limit)")
    every = actions.add_parser("list", help="the checkpoints of a run, newest first")
    every.add_argument("path", metavar="DIR")
    seal = actions.add_parser("seal", help="write the manifest of a checkpoint folder that is complete")
    seal.add_argument("path", metavar="DIR")
    seal.add_argument("--step", type=int, metavar="N", help="training step (default: as recorded in its files)")
    seal.add_argument("--world-size", type=int, metavar="N", help="number of ranks that saved it")
    seal.add_argument("--format", default="", metavar="TEXT", help="what it is, free text")
    seal.add_argument("--holds", default="", metavar="PARTS", help="parts in it: %s" % ",".join(content.PARTS))
    seal.add_argument("--note", action="append", default=[], metavar="KEY=VALUE",
                      help="a fact to keep with it (code, configuration, data, environment), may be repeated")
    return parser


def run(args, out):
    """Do one action; returns the exit code."""
    path = paths.under(args.root, os.path.abspath(args.path)) if args.root else args.path
    action = {"verify": _verify, "latest": _latest, "list": _list, "seal": _seal}[args.action]
    return action(path, args, out)


def _verify(path, args, out):
    verdict = verify(path, args.level, on_step=_bar())
    plain = _plain(path, verdict)
    if args.json:
        _json(plain, out)
    else:
        out.write("%s  %s\n" % (verdict.verdict, printable(path)))
        for label, text in _details(verdict):
            out.write("  %-12s%s\n" % (label, printable(text, 400)))
    return EXIT_OF[verdict.verdict]


def _details(verdict):
    """(label, text) lines about a Verdict."""
    if verdict.format:
        yield "format", verdict.format
    if verdict.step is not None:
        yield "step", "%d (%s)" % (verdict.step, verdict.step_key)
    if verdict.world_size is not None:
        yield "world size", str(verdict.world_size)
    yield "size", "%d bytes" % verdict.bytes
    if verdict.keys:
        more = " ..." if len(verdict.keys) > 12 else ""
        yield "keys", ", ".join(verdict.keys[:12]) + more
    if verdict.verdict not in (REJECTED, UNKNOWN):
        for part in verdict.missing:
            yield "missing", "%s: %s" % (part, EFFECTS[part])
    if verdict.reason:
        yield "why", verdict.reason


def _latest(path, args, out):
    until = time.monotonic() + args.seconds if args.seconds is not None else None
    found = find.latest(path, tuple(args.accept or (VERIFIED, STRUCTURE)), args.level, until)
    plain = dict(find.to_plain(found), v=VERSION)
    plain["passed"] = [{"path": old, "reason": reason} for old, reason in found.passed]
    if args.json:
        _json(plain, out)
        return EXIT_OF_OUTCOME[found.outcome]
    for old, reason in found.passed:
        out.write("passed over  %s: %s\n" % (printable(old), printable(reason)))
    if found.chosen is not None:
        step = "" if found.chosen.step is None else "step %d, " % found.chosen.step
        out.write("%s  (%s%s)\n" % (printable(found.chosen.path), step, found.chosen.level))
    else:
        out.write("%s: %s\n" % (found.outcome, printable(found.reason)))
    return EXIT_OF_OUTCOME[found.outcome]


def _list(path, args, out):
    from slurm_gpuhealth.checkpoint.verdict import Clock
    try:
        looked = find.listing(os.path.abspath(path), Clock())
    except Trouble as exc:
        if exc.kind == "missing":
            raise NotFoundError(str(exc)) from None
        raise DataError("cannot look: %s" % exc) from None
    if args.json:
        _json({"v": VERSION, "checkpoints": [_plain(one.path, one.verdict, one.mtime) for one in looked.found],
               "leftovers": [{"path": old, "reason": reason} for old, reason, _ in looked.leftovers],
               "unread": [{"path": old, "reason": reason} for old, reason in looked.troubles]}, out)
        return EXIT_OK
    for one in looked.found:
        step = "-" if one.verdict.step is None else str(one.verdict.step)
        changed = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.mtime))
        line = "%-14s %10s  %s %14d  %s" % (one.verdict.verdict, step, changed, one.verdict.bytes, printable(one.path))
        out.write(line + ("  (%s)\n" % printable(one.verdict.reason) if one.verdict.reason else "\n"))
    for old, reason, _ in looked.leftovers:
        out.write("%-14s %10s  %s  (%s)\n" % ("-", "-", printable(old), printable(reason)))
    for old, reason in looked.troubles:
        out.write("%-14s %10s  %s  (%s)\n" % ("unread", "-", printable(old), printable(reason)))
    return EXIT_OK


def _seal(path, args, out):
    from slurm_gpuhealth.checkpoint.seal import seal
    free = {}
    for note in args.note:
        key, equals, value = note.partition("=")
        if not equals or not key:
            raise UsageError("--note is KEY=VALUE, not '%s'" % printable(note))
        free[key] = value
    for name, value in (("--step", args.step), ("--world-size", args.world_size)):
        if value is not None and value < 0:
            raise UsageError("%s is not negative" % name)
    holds = tuple(part.strip() for part in args.holds.split(",") if part.strip())
    try:
        made = seal(path, args.step, args.world_size, args.format, holds, free, _bar())
    except OSError as exc:
        raise DataError("cannot seal %s: %s" % (printable(path), exc.strerror)) from exc
    total = sum(entry.bytes for entry in made.files)
    if args.json:
        _json({"v": VERSION, "path": path, "step": made.step, "files": len(made.files), "bytes": total}, out)
    else:
        step = "" if made.step is None else ", step %d" % made.step
        out.write("sealed %s: %d files, %d bytes%s\n" % (printable(path), len(made.files), total, step))
    return EXIT_OK


def _plain(path, verdict, mtime=None):
    plain = dict(verdict._asdict(), v=VERSION, path=path, missing=list(verdict.missing), keys=list(verdict.keys))
    plain["effects"] = {part: EFFECTS[part] for part in verdict.missing} if verdict.verdict != REJECTED else {}
    if mtime is not None:
        plain["mtime"] = mtime
    return plain


def _json(plain, out):
    json.dump(plain, out, indent=1, sort_keys=True)
    out.write("\n")


def _bar():
    """A function that draws progress on a terminal, or None where there is none."""
    if not sys.stderr.isatty():
        return None
    drawn = [0.0]

    def draw(progress):
        now = time.monotonic()
        spent = now - progress.started
        done = progress.done >= progress.total
        if (spent < 0.5 or now - drawn[0] < 0.2) and not (done and drawn[0]):
            return
        drawn[0] = now
        rate = progress.done / spent
        sys.stderr.write("\r%3d %%  %6.0f MB/s  %5.0f s left \r" % (
            100 * progress.done // max(progress.total, 1), rate / 1e6, (progress.total - progress.done) / rate))
        if done:
            sys.stderr.write(" " * 40 + "\r")
        sys.stderr.flush()
    return draw
