"""`gpuhealth check`: run the checks now and show what they say. Changes nothing."""
from __future__ import annotations

import argparse
import json
import os
import time

from slurm_gpuhealth import checks, config_schema, gather, model, render
from slurm_gpuhealth import facts as F
from slurm_gpuhealth.errors import NotFoundError
from slurm_gpuhealth.probes import gpus_expected, node
from slurm_gpuhealth.state import State

EPILOG = """\
example:
  gpuhealth check                       a table of GPUs, mounts and findings
  gpuhealth check --json | jq .findings
  gpuhealth check --nagios              one line and exit code 0 to 3 for a monitoring system
  gpuhealth check --whole-log           judge all that the kernel log still holds, not only what is new

exit codes: 0 ok, 1 warning, 2 fatal finding, 3 could not look
"""


def add_parser(subparsers):
    """The parser of this command."""
    parser = subparsers.add_parser("check", help="run the checks now and change nothing", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phase", choices=model.PHASES, default=model.MANUAL,
                        help="run the checks of this hook (default: all)")
    parser.add_argument("--job", type=int, metavar="ID",
                        help="against the baseline that this job's prolog saved (implies --phase epilog)")
    parser.add_argument("--nagios", action="store_true", help="print one line for a monitoring system")
    parser.add_argument("--facts", action="store_true", help="with --json: also all that was read")
    parser.add_argument("--whole-log", action="store_true",
                        help="read the kernel log from its start, not from where the last health check ended")
    return parser


def run(args, out):
    """Check this node (or the fixture below --root) and print; returns the worst outcome's exit code."""
    host = node_name(args.root)
    cfg = config_schema.effective(args.root, host)[0]
    state = State(args.root)
    memory = state.read("node.json")
    if args.whole_log:
        memory = {key: value for key, value in memory.items() if key != "cursor"}
    phase, job = args.phase, None
    if args.job is not None:
        phase, job = model.EPILOG, _job(state, args.job)
    until = time.monotonic() + cfg["deadlines"][model.HEALTHCHECK]
    known = tuple(F.KnownGpu(**entry) for entry in memory.get("gpus", ()))
    expected = gpus_expected.expected(cfg, args.root, host, known)
    gathered = gather.gather_facts(cfg, phase, job, args.root, until, state, memory, host, expected)
    facts = _with_remembered_xids(gathered.facts, memory)
    results = checks.run_checks(facts, cfg, phase)
    findings = checks.merge(results)
    if args.json:
        document = render.document(facts, results, findings, phase)
        if args.facts:
            document["facts"] = F.to_plain(facts)
        print(json.dumps(document, indent=2), file=out)
    elif args.nagios:
        print(render.nagios(facts, findings), file=out)
    else:
        colour = out.isatty() and "NO_COLOR" not in os.environ
        print("\n".join(render.table(facts, results, findings, colour)), file=out)
    return render.exit_code(findings)


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
