"""`gpuhealth config check|show`: reads the configuration as the hooks would, and shows what holds."""
from __future__ import annotations

import argparse
import json
import os

import yaml

from slurm_gpuhealth import config, config_schema, paths
from slurm_gpuhealth.cli.main import printable
from slurm_gpuhealth.errors import ConfigError

EPILOG = """\
example:
  gpuhealth config check                      is the file right, for all nodes?
  gpuhealth config check --file new.yaml      another file, before it is put in place
  gpuhealth config show --node gpu017         what holds on gpu017, defaults and overlays included
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("config", help="check and show the configuration", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", metavar="check|show", required=True)
    for name, text in (("check", "read the file and name every mistake"), ("show", "print what holds")):
        inner = actions.add_parser(name, help=text, epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
        inner.add_argument("--node", default="", help="for this node" + (
            " (check: all)" if name == "check" else " (show: without overlays)"))
        inner.add_argument("--file", default=None, help="another file than /etc/slurm/gpuhealth.yaml")
    return parser


def run(args, out):
    """Exit 0, or ConfigError's code where the file is wrong."""
    path = args.file or paths.under(args.root, paths.CONFIG)
    return check(args, path, out) if args.action == "check" else show(args, path, out)


def check(args, path, out):
    """Name every mistake; with none, renew the compiled copy where it is ours to renew."""
    problems, text, status = [], "", None
    try:
        # Another file is not in force: who owns it does not matter yet.
        text, status = config_schema.read_file(args.root or ("/" if args.file else ""), path)
        if status is None and args.file:
            raise ConfigError("%s: no such file" % path)
        problems = config_schema.problems_of(text, path, args.node, check_names())
    except ConfigError as error:
        problems = [str(error)]
    renewed = not problems and not args.file and not args.node and renew(args.root)
    if args.json:
        print(json.dumps({"v": 1, "file": path, "exists": status is not None, "problems": problems,
                          "renewed": renewed}, indent=2), file=out)
    else:
        for problem in problems:
            print(printable(problem), file=out)
        if not problems:
            print("%s: %s" % (path, "right" if status else "not there; the built-in defaults hold"), file=out)
        if renewed:
            print("compiled copy renewed", file=out)
    return ConfigError.exit_code if problems else 0


def check_names():
    """Names of the checks, for `checks.disabled` and `limits`."""
    from slurm_gpuhealth.checks import CHECKS, known_limits
    return {name: known_limits(name) for name in CHECKS}


def renew(root):
    """Renew the compiled copy of this node where we may write it; True when it was written."""
    if not root and os.geteuid() != 0:
        return False
    compiled = config.read(root)[0]
    if compiled is None:
        # Made by the installer or the first health check, under the name that slurmd uses for this node.
        return False
    return config_schema.refresh(root, compiled["node"])


def show(args, path, out):
    """Print the complete configuration as YAML or JSON."""
    value, status = config_schema.effective(args.root or ("/" if args.file else ""), args.node, path)
    if args.json:
        print(json.dumps({"v": 1, "file": path, "exists": status is not None, "node": args.node,
                          "config": value}, indent=2), file=out)
    else:
        print("# %s%s%s" % (path, "" if status else " is not there: built-in defaults",
                            ", as it holds on %s" % printable(args.node) if args.node else ""), file=out)
        print(yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=100), end="", file=out)
    return 0
