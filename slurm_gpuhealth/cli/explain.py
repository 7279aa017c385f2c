"""`gpuhealth explain CODE`: what a reason code means, who fixes it, the runbook."""
from __future__ import annotations

import json
import textwrap

from slurm_gpuhealth import catalogue, reason
from slurm_gpuhealth.catalogue import generate
from slurm_gpuhealth.cli.main import nearest
from slurm_gpuhealth.errors import NotFoundError

EPILOG = """\
example:
  gpuhealth explain GH-XID79      one code
  gpuhealth explain 79            the same, by Xid number
  gpuhealth explain "GH-MNT-RO /data read-only [ev=3f2a91]"     a whole reason, as sinfo -R shows it
  gpuhealth explain               all codes
"""


def add_parser(subparsers):
    """The parser of this command."""
    import argparse
    parser = subparsers.add_parser(
        "explain", help="what a reason code means, who fixes it and how", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", nargs="*", help="reason code, Xid number, or a reason; nothing for the list")
    return parser


def run(args, out):
    """Print one code (or the list); raises NotFoundError with the nearest name."""
    source = generate.load_codes()
    if not args.code:
        return print_list(source, args.json, out)
    entry = describe(find(" ".join(args.code)), source)
    if args.json:
        print(json.dumps({"v": 1, **entry}, indent=2), file=out)
    else:
        print("\n".join(as_text(entry)), file=out)
    return 0


def find(text):
    """The code that a text names: "GH-XID79 gpu3 ...", "gh-xid79", "xid79", "79". Raises NotFoundError."""
    word = (text.split() or [""])[0]
    parsed = reason.parse(text)
    if parsed:
        return parsed[0]
    upper = word.upper()
    for candidate in (upper, "GH-" + upper, catalogue.XID_PREFIX + upper):
        if catalogue.known(candidate):
            return candidate
    names = list(catalogue.CODES)
    hint = nearest(upper, names) or nearest("GH-" + upper, names)
    raise NotFoundError("no reason code '%s'%s" % (word[:40], hint))


def describe(code, source):
    """All that is known of a code as one dict; the keys are the JSON output's."""
    about = catalogue.lookup(code)
    number = catalogue.xid_number(code)
    written = source["codes"][code] if number is None else xid_texts(number, source["codes"])
    entry = {
        "code": code, "title": about.title, "layer": about.layer, "severity": about.severity,
        "job_action": about.job_action, "recoverable": about.recoverable, "subject": about.subject,
        "fixer": generate.FIXERS[about.fixer], "cause": written["cause"].strip(),
        "runbook": [" ".join(step.split()) for step in written["runbook"]],
    }
    if number is not None:
        xid = catalogue.xid(number)
        entry["xid"] = {
            "number": number, "known": number in catalogue.XIDS, "action": "by value" if xid.by_value else xid.action,
            "user_caused": xid.user_caused, "companions": list(xid.companions), "sources": list(xid.source)}
    return entry


def xid_texts(number, codes):
    """Cause and runbook of one Xid number, from the code that it is like."""
    about = catalogue.xid(number)
    like = generate.load_source("xid.yaml")["xids"].get(number, {}).get("like")
    seen = "The kernel log has an Xid line with this number. "
    if about.user_caused != "no":
        return codes["GH-XID-USER"]
    if about.by_value:
        return {"cause": seen + "Its last number says what the driver wants: " + ", ".join(
            "%d %s" % item for item in sorted(catalogue.RECOVERY_ACTIONS.items())) + ". Everything but 0 drains.",
            "runbook": codes["GH-GPU-RESET"]["runbook"]}
    if about.action == "drain":
        return {"cause": seen + "The GPU must not get another job before it was reset or repaired.",
                "runbook": codes[like or catalogue.XID_PREFIX]["runbook"]}
    return {"cause": seen + "It is recorded, and drains nothing.",
            "runbook": codes[like]["runbook"] if like else
            ["Nothing has to be done at once; often on one GPU: open a case with the vendor"]}


def as_text(entry):
    """The lines that a person reads."""
    lines = ["%s: %s" % (entry["code"], entry["title"]), ""]
    lines += textwrap.wrap(entry["cause"], 96) + [""]
    facts = [("layer", entry["layer"]), ("severity", entry["severity"]), ("subject", entry["subject"]),
             ("job using it", entry["job_action"]), ("who fixes it", entry["fixer"]),
             ("resumed by itself", "possible (recover:)" if entry["recoverable"] else "no")]
    if "xid" in entry:
        xid = entry["xid"]
        facts += [("Xid action", xid["action"]), ("user-caused", xid["user_caused"])]
        if xid["companions"]:
            facts.append(("same event as", ", ".join(map(str, xid["companions"]))))
        if not xid["known"]:
            facts.append(("note", "this version does not know the number; it warns and drains nothing"))
    lines += ["  %-18s %s" % fact for fact in facts] + ["", "Runbook:"]
    for number, step in enumerate(entry["runbook"], 1):
        lines += textwrap.wrap(step, 96, initial_indent="  %d. " % number, subsequent_indent="     ",
                               break_on_hyphens=False, break_long_words=False)
    return lines


def print_list(source, as_json, out):
    """All codes, one a line."""
    if as_json:
        entries = [describe(code, source) for code in catalogue.CODES]
        print(json.dumps({"v": 1, "codes": entries}, indent=2), file=out)
        return 0
    for code, about in catalogue.CODES.items():
        name = code + "<n>" if code == catalogue.XID_PREFIX else code
        print("%-15s %-8s %-11s %s" % (name, about.severity, about.layer, about.title), file=out)
    return 0
