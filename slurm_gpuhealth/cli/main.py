"""The command `gpuhealth`: finds the subcommand's module, runs it, turns errors into one line and a code.

Only the module of the subcommand that was asked for is imported, so that a small command stays quick and a
missing optional package cannot break another one. Each module has `add_parser(subparsers)`, which returns its
parser or adds exactly one named as in COMMANDS, and `run(args, out) -> exit code`; `out` is the text stream
that results go to. `--root` and `--json` are added here to every command and nested command: args.root is ""
and args.json False where they were not given.
"""
from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
import traceback

from slurm_gpuhealth import __version__
from slurm_gpuhealth.errors import GpuHealthError, UsageError
from slurm_gpuhealth.parse.words import nearest, printable

# Subcommand -> (module below slurm_gpuhealth.cli, what it does). In the order of `gpuhealth -h`.
COMMANDS = {
    "check": ("check", "run the checks now and change nothing"),
    "status": ("status", "the cluster: which nodes are out, why, since when"),
    "job": ("job", "what happened to a job, and where it resumes"),
    "explain": ("explain", "what a reason code means, who fixes it and how"),
    "node": ("node", "state of this node; drain, resume, acknowledge a fault"),
    "evidence": ("evidence", "what was kept of each incident: list, show, verify, slow, prune"),
    "replay": ("replay", "make a decision again from its evidence"),
    "events": ("events", "the event log"),
    "report": ("report", "summary of incidents, drains and restarts"),
    "log": ("log_cmd", "what a kernel log says, one event a line"),
    "watch": ("watch", "run the health check at the moment the kernel log speaks, as a service"),
    "ckpt": ("ckpt", "checkpoints: verify, find the newest that can be used, seal"),
    "run": ("run_cmd", "run a job's command with its resume point"),
    "config": ("config_cmd", "check and show the configuration"),
    "install": ("install", "set up the hooks on this node"),
    "uninstall": ("uninstall", "take the hooks away again"),
    "doctor": ("doctor", "check an installation"),
}

EXIT_BUG = 70
EXIT_OUTPUT = 74         # EX_IOERR of sysexits.h
EXIT_INTERRUPTED = 130
# What a shell shows for a process that SIGPIPE ended.
EXIT_PIPE = 141

EPILOG = """\
example:
  gpuhealth check --json          what the checks say about this node, changing nothing
  gpuhealth COMMAND -h            more about one command, with an example

exit codes: 0 ok, 1 warning, 2 fatal finding, 3 could not look, 64 and above errors of usage or of our own
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose mistakes are UsageErrors (exit 64): argparse's own 2 means "fatal finding"."""

    def error(self, message):
        raise UsageError("%s (see `%s -h`)" % (message, self.prog))


def build_parser(command=None):
    """The parser; with `command` its module is imported and its own arguments are there."""
    parser = Parser(
        prog="gpuhealth", description="GPU health checks for Slurm.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version="gpuhealth %s" % __version__)
    add_common(parser)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    module = None
    for name, (module_name, text) in COMMANDS.items():
        if name == command:
            module = importlib.import_module("slurm_gpuhealth.cli." + module_name)
            module.add_parser(subparsers)
            add_common(subparsers.choices[name])
        else:
            subparsers.add_parser(name, help=text, add_help=False)
    return parser, module


def add_common(parser):
    """Add --root and --json to a parser and to the parsers of its own subcommands, where they lack them."""
    known = parser._option_string_actions
    # SUPPRESS: an inner parser must not put its default over what an outer one has read.
    if "--root" not in known:
        parser.add_argument("--root", metavar="DIR", default=argparse.SUPPRESS,
                            help="work on the fixture node below DIR instead of this machine")
    if "--json" not in known:
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS,
                            help="print one JSON document")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                add_common(inner)


def find_command(arguments):
    """The subcommand in a command line, or None. Raises UsageError for a name that is not one."""
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word == "--root":
            skip = True
        elif not word.startswith("-"):
            if word in COMMANDS:
                return word
            raise UsageError("no command '%s'%s (see `gpuhealth -h`)" % (word, nearest(word, COMMANDS)))
    return None


def dispatch(arguments, out):
    """Parse `arguments` and run the subcommand; returns its exit code, raises GpuHealthError."""
    if arguments[:1] == ["run"]:
        # A job's own command follows, with options of its own: it is not argparse's business.
        from slurm_gpuhealth.cli import run_cmd
        code = run_cmd.fast_main(arguments[1:])
        if code is not None:
            return code
    command = find_command(arguments)
    parser, module = build_parser(command)
    args = parser.parse_args(arguments)
    if module is None:
        parser.print_help(sys.stderr)
        return UsageError.exit_code
    args.root = os.path.abspath(args.root) if getattr(args, "root", "") else ""
    args.root = "" if args.root == "/" else args.root
    args.json = getattr(args, "json", False)
    return module.run(args, out)


def main(argv=None, out=None):
    """Run one command line; returns the exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None:      # it was closed before we were started
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    out = sys.stdout if out is None else out
    try:
        code = dispatch(arguments, out)
        out.flush()
        return code
    except GpuHealthError as error:
        print("gpuhealth: %s" % printable(error), file=sys.stderr)
        return error.exit_code
    except SystemExit as request:
        # argparse ends -h and --version this way.
        return request.code if isinstance(request.code, int) else 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone. The stream must not be flushed again at the interpreter's end.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return EXIT_PIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF) or error.filename is not None:
            traceback.print_exc()
            print("gpuhealth: internal error (see above)", file=sys.stderr)
            return EXIT_BUG
        # /dev/full, a full disk behind a redirection: ours to say, not ours to mend.
        print("gpuhealth: cannot write the output: %s" % error.strerror, file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        return EXIT_OUTPUT
    except Exception:
        # A bug of ours. Python's own exit code for it is 1, which would read as "warning" to a monitor.
        traceback.print_exc()
        print("gpuhealth: internal error (see above)", file=sys.stderr)
        return EXIT_BUG


if __name__ == "__main__":
    sys.exit(main())
