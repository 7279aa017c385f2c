"""`gpuhealth check`: run the checks now and show what they say. Changes nothing but the file of --prometheus."""
from __future__ import annotations

import argparse
import json
import os
import shutil
import time

from slurm_gpuhealth import checks, config, config_schema, decide, gather, model, prometheus, render, render_table
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.errors import NotFoundError, StateError, UsageError
from slurm_gpuhealth.probes import gpus_expected, node
from slurm_gpuhealth.state import State, write_atomic

EPILOG = """\
example:
  gpuhealth check                       a table of GPUs, mounts and findings
  gpuhealth check -v                    also how each check and each source went
  gpuhealth check --json | jq .findings
  gpuhealth check --nagios              one line and exit code 0 to 3 for a monitoring system
  gpuhealth check --prometheus /var/lib/prometheus/node-exporter/gpuhealth.prom
  gpuhealth check --whole-log           judge all that the kernel log still holds, not only what is new

exit codes: 0 ok, 1 warning, 2 fatal finding, 3 could not look
"""
_PIPE_WIDTH = 120       # where there is no terminal


def job_id(text):
    """A job's number as Slurm prints it: int() would take 7_3 for 73."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("check", help="run the checks now and change nothing", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phase", choices=model.PHASES, default=model.MANUAL,
                        help="run the checks of this hook (default: all)")
    parser.add_argument("--job", type=job_id, metavar="ID",
                        help="against the baseline that this job's prolog saved (implies --phase epilog)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--nagios", action="store_true", help="print one line for a monitoring system")
    form.add_argument("--prometheus", metavar="FILE",
                      help="write metrics for node_exporter's textfile collector, - prints them")
    parser.add_argument("-v", "--verbose", action="store_true", help="also show how each check and source went")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto",
                        help="colours (auto: on a terminal, unless NO_COLOR is set)")
    parser.add_argument("--facts", action="store_true", help="with --json: also all that was read")
    parser.add_argument("--whole-log", action="store_true",
                        help="read the kernel log from its start, not from where the last health check ended")
    return parser


def run(args, out):
    """Check this node (or the fixture below --root) and print; returns the worst outcome's exit code."""
    started = time.monotonic()
    if args.json and (args.nagios or args.prometheus):
        raise UsageError("--json, --nagios and --prometheus are three forms of one result: one of them only")
    host = node_name(args.root)
    cfg = config_schema.effective(args.root, host)[0]
    state = State(args.root)
    memory = state.read("node.json")
    if args.whole_log:
        memory = {key: value for key, value in memory.items() if key != "cursor"}
    phase, job = args.phase, None
    if args.job is not None:
        phase, job = model.EPILOG, _job(state, args.job)
    until = started + cfg["deadlines"][model.HEALTHCHECK]
    known = tuple(F.KnownGpu(**entry) for entry in memory.get("gpus", ()))
    expected = gpus_expected.expected(cfg, args.root, host, known)
    gathered = gather.gather_facts(cfg, phase, job, args.root, until, state, memory, host, expected)
    facts = _with_remembered_xids(gathered.facts, memory)
    if job is not None:
        facts = facts._replace(job=job.id)
    results = checks.run_checks(facts, cfg, phase)
    # As the hooks weigh them: with the site's severities, and what was acknowledged as a note.
    about = model.Situation(phase=phase, node=host, now=facts.time, acks=tuple(state.incidents()[1]))
    findings = decide.weigh(checks.merge(results), about, cfg)
    if args.json:
        document = render.document(facts, results, findings, phase)
        if args.facts:
            document["facts"] = F.to_plain(facts)
        print(json.dumps(document, indent=2), file=out)
    elif args.nagios:
        print(render.nagios(facts, findings), file=out)
    elif args.prometheus:
        _metrics(args.prometheus, prometheus.text(facts, results, findings, time.monotonic() - started), out)
    else:
        print("\n".join(render_table.lines(
            facts, results, findings, config.mode_for(cfg), _advice(findings), _colour(args.color, out),
            shutil.get_terminal_size().columns if out.isatty() else _PIPE_WIDTH, args.verbose)), file=out)
    return render.exit_code(findings)


def _metrics(path, text, out):
    if path == "-":
        out.write(text)
        return
    try:
        write_atomic(os.path.abspath(path), text.encode(), mode=0o644)
    except OSError as exc:
        raise StateError("cannot write %s: %s" % (path, exc.strerror)) from exc


def _colour(wanted, out):
    return wanted == "always" or (wanted == "auto" and out.isatty() and not os.environ.get("NO_COLOR"))


def _advice(findings):
    """{code: first step of its runbook} of what was found."""
    if not any(finding.severity != model.NOTE for finding in findings):
        return {}
    from slurm_gpuhealth.catalogue import generate
    from slurm_gpuhealth.cli import explain
    source = generate.load_codes()
    found = {}
    for finding in findings:
        if finding.code in source["codes"] or finding.code.startswith("GH-XID"):
            steps = explain.describe(finding.code, source)["runbook"]
            found[finding.code] = steps[0] if steps else ""
    return found


def node_name(root):
    """Slurm's name of the node: what slurmd says, else the first part of the (fixture's) host name."""
    name = "" if root else os.environ.get("SLURMD_NODENAME", "")
    return name or node.read_node(root)["hostname"].split(".")[0] or os.uname().nodename.split(".")[0]


def _job(state, number):
    saved = state.job(number)
    if not saved:
        raise NotFoundError("no baseline of job %d on this node: its prolog did not run here, or it has ended" % number)
    return model.Job(number, uid=saved.get("uid"), gpus=tuple(saved.get("gpus", ())), restart=saved.get("restart", 0))


def _with_remembered_xids(facts, memory):
    """The jobs that showed user-caused Xids lately, as the hooks have them from the node's memory."""
    xids = {key: [entry[0] for entry in jobs] for key, jobs in memory.get("xids", {}).items()}
    if not xids:
        return facts
    baseline = facts.baseline or F.Baseline(None, facts.boot_id, "", {}, {})
    return facts._replace(baseline=baseline._replace(xids=xids))
