"""`gpuhealth install`: sets up the hooks on this node."""
from __future__ import annotations

import argparse
import compileall
import json
import os
import sys

from slurm_gpuhealth import config_schema, paths
from slurm_gpuhealth.cli.main import printable
from slurm_gpuhealth.errors import ConfigError, PermissionDenied, UsageError
from slurm_gpuhealth.setup import installer, render, trust

EPILOG = """\
example:
  gpuhealth install --dry-run         what would be done
  gpuhealth install --yes             hooks, folders, configuration (mode observe); prints the lines for slurm.conf
  gpuhealth install --yes --apply     and puts them into slurm.conf (with a backup), beside what is there

Running it again after an upgrade renews the hooks; running jobs are not disturbed. An edited gpuhealth.yaml is
kept, the new one is put beside it as gpuhealth.yaml.new.
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("install", help="set up the hooks on this node", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("--prefix-hooks", metavar="DIR", default=installer.DEFAULT_PREFIX,
                        help="folder for the hooks (default: %(default)s)")
    parser.add_argument("--slurm-conf", metavar="PATH", default=None, help="slurm.conf (default: where Slurm looks)")
    parser.add_argument("--apply", action="store_true", help="also change slurm.conf, after a backup")
    parser.add_argument("--task-prolog", action="store_true", help="also wire the optional TaskProlog")
    parser.add_argument("--python", metavar="PATH", default=sys.executable,
                        help="interpreter of the hooks (default: this one)")
    parser.add_argument("--node", metavar="NAME", default=os.uname().nodename.split(".")[0],
                        help="Slurm's name of this node (default: %(default)s)")
    return parser


def run(args, out):
    """Plan, show, ask, do."""
    if not args.prefix_hooks.startswith("/") or any(char.isspace() for char in args.prefix_hooks):
        raise UsageError("--prefix-hooks: must be an absolute path without spaces")
    if not args.root and not args.dry_run:
        must_be_trusted(args.python)
    options = installer.Options(args.root, args.python, args.prefix_hooks.rstrip("/"), args.slurm_conf, args.apply,
                                args.task_prolog)
    steps, wired, notes = installer.plan(options)
    if not args.json:
        show(steps, wired, notes, args.apply, out)
    if args.dry_run:
        return finish(args, steps, wired, notes, [], out)
    if not args.yes and any(step.what in ("new", "changed") for step in steps):
        confirm(out)
    backups = installer.apply(options, steps, args.node)
    notes = notes + after(args.root, args.node)
    return finish(args, steps, wired, notes, backups, out)


def must_be_trusted(python):
    """Raise PermissionDenied unless we are root and nobody else can change what root will execute."""
    if os.geteuid() != 0:
        raise PermissionDenied("install must be run by root")
    weak = trust.weak_points(python)
    for folder in {os.path.join(folder, "slurm_gpuhealth") for folder in render.python_paths(("slurm_gpuhealth",))}:
        weak += trust.weak_tree(folder, limit=3)
    for folder in render.python_paths():
        weak += [text for text in trust.weak_points(folder) if text not in weak]
    if weak:
        raise PermissionDenied("root would execute what others can change: %s%s" % (
            weak[0], " (and %d more)" % (len(weak) - 1) if len(weak) > 1 else ""))


def confirm(out):
    """Ask on the terminal; UsageError where there is none or the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError("no terminal to ask on: give --yes")
    out.write("Go on? [y/N] ")
    out.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError("nothing was done")


def after(root, node):
    """Byte code for the hooks (they never write any) and the compiled configuration. Returns notes."""
    notes = []
    if not root:
        for folder in render.python_paths(("slurm_gpuhealth",)):
            compileall.compile_dir(os.path.join(folder, "slurm_gpuhealth"), quiet=2)
        for folder in render.python_paths(("pynvml",)):
            compileall.compile_file(os.path.join(folder, "pynvml.py"), quiet=2)
    try:
        config_schema.refresh(root, node, force=True)
    except ConfigError as error:
        notes.append("the configuration is not taken over yet: %s" % error)
    return notes


def show(steps, wired, notes, applied, out):
    """The steps, and what is to be put into slurm.conf by hand."""
    for step in steps:
        line = "%-8s %s" % (step.what, step.path)
        if step.kind == "link":
            line += " -> " + step.content
        print(printable(line), file=out)
    for note in notes:
        print("note: " + printable(note), file=out)
    if wired is not None and not applied and (wired.lines or wired.comment_out):
        print("\nslurm.conf (on the controller, or on all nodes; --apply does it here):", file=out)
        for setting in wired.comment_out:
            print(printable("  take out  %s, line %d: %s=%s"
                            % (setting.path, setting.first + 1, setting.key, setting.value)), file=out)
        for line in wired.lines:
            print(printable("  add       " + line), file=out)
        print("then: scontrol reconfigure", file=out)


def finish(args, steps, wired, notes, backups, out):
    """The last lines, or the JSON document."""
    if args.json:
        document = {
            "v": 1, "dry_run": args.dry_run, "notes": list(notes), "backups": backups,
            "steps": [{"kind": step.kind, "path": step.path, "what": step.what} for step in steps],
            "slurm_conf": None if wired is None else {
                "lines": list(wired.lines),
                "take_out": [{"path": item.path, "line": item.first + 1, "key": item.key, "value": item.value}
                             for item in wired.comment_out]}}
        print(json.dumps(document, indent=2), file=out)
        return 0
    if args.dry_run:
        print("nothing was done (--dry-run)", file=out)
        return 0
    for backup in backups:
        print("backup: " + printable(backup), file=out)
    for note in notes:
        if note.startswith("the configuration"):
            print("note: " + printable(note), file=out)
    print("installed. %sNext: `gpuhealth doctor`. The mode is in %s (it starts in observe)."
          % ("`scontrol reconfigure` makes slurmd take it over. " if backups else "", paths.CONFIG), file=out)
    return 0
