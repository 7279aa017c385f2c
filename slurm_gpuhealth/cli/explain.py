"""`gpuhealth explain CODE`: what a reason code means, who fixes it, the runbook."""
from __future__ import annotations

import json
import re
import textwrap

from slurm_gpuhealth import catalogue, reason
from slurm_gpuhealth.catalogue import generate, judge, sxid_table
from slurm_gpuhealth.cli.main import nearest
from slurm_gpuhealth.errors import NotFoundError

EPILOG = """\
example:
  gpuhealth explain GH-XID79      one code
  gpuhealth explain 79            the same, by Xid number
  gpuhealth explain sxid 20034    an SXid number of an NVSwitch
  gpuhealth explain "GH-MNT-RO /data read-only [ev=3f2a91]"     a whole reason, as sinfo -R shows it
  gpuhealth explain               all codes
"""


def add_parser(subparsers):
    """The parser of this command."""
    import argparse
    parser = subparsers.add_parser(
        "explain", help="what a reason code means, who fixes it and how", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("code", nargs="*", help="reason code, Xid or SXid number, or a reason; nothing for the list")
    return parser


def run(args, out):
    """Print one code (or the list); raises NotFoundError with the nearest name."""
    source = generate.load_codes()
    if not args.code:
        return print_list(source, args.json, out)
    text = " ".join(args.code)
    number = sxid_number(text)
    entry = describe_sxid(number, source) if number is not None else describe(find(text), source)
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


def sxid_number(text):
    """20034 of "sxid 20034", "20034", or a reason "GH-SXID nvswitch1 20034 ..."; None where no SXid is named."""
    found = re.match(r"\s*(?:s-?xid[\s:]*(\d{1,6})\b|(\d{5,6})\s*$|GH-SXID\s+\S+\s+(\d{4,6})\b)", text, re.IGNORECASE)
    return int(next(filter(None, found.groups()))) if found else None


def describe_sxid(number, source):
    """All that is known of an SXid number: what is known of GH-SXID, and of the number."""
    verdict, fatal = judge.of_sxid(number), judge.of_sxid(number, {"fatal": True})
    entry = describe("GH-SXID", source)
    entry["title"] = "SXid %d: %s" % (number, judge.sxid_title(number))
    entry["severity"], entry["job_action"] = verdict.severity, verdict.job_action
    if fatal.action != "drain":
        entry["cause"] = "The kernel log has an SXid line with this number. It is recorded, and drains nothing."
        entry["runbook"] = ["Nothing has to be done; often on one link: signal quality, cables"]
    entry["sxid"] = {"number": number, "known": number in sxid_table.SXIDS, "class": verdict.why,
                     "action": verdict.action, "at_once": verdict.do, "where_the_line_says_fatal": fatal.action}
    return entry


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
            "user_caused": xid.user_caused, "companions": list(xid.companions), "sources": list(xid.source),
            "at_once": at_once(number), "can_be": list(xid.can_be), "gpus": list(xid.gpus), "asks_since": xid.asks,
            "differs": xid.differs or {}}
    return entry


def at_once(number):
    """What NVIDIA wants done at once about an Xid, or what on its line says so."""
    if catalogue.xid(number).by_value:
        return "by value"
    return "by the line" if number in judge.NVLINK5 else catalogue.xid(number).do


def xid_texts(number, codes):
    """Cause and runbook of one Xid number, from the code that it is like."""
    about = catalogue.xid(number)
    like = generate.load_source("xid.yaml")["xids"].get(number, {}).get("like")
    seen = "The kernel log has an Xid line with this number. "
    if about.user_caused != "no":
        return codes["GH-XID-USER"]
    if number in judge.NVLINK5:
        return {"cause": seen + "A line that says Fatal drains, unless the registers on it are known to need nothing; "
                "a Nonfatal one is recorded, and what Xid 154 says beside it is done.",
                "runbook": codes[catalogue.XID_PREFIX]["runbook"]}
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
        facts += [("Xid action", xid["action"]), ("at once", xid["at_once"]), ("user-caused", xid["user_caused"])]
        if xid["can_be"]:
            facts.append(("comes from", ", ".join(xid["can_be"])))
        if xid["gpus"]:
            facts.append(("on GPUs", ", ".join(xid["gpus"])))
        facts += [("on %s" % family, ", ".join("%s: %s" % item for item in sorted(other.items())))
                  for family, other in sorted(xid["differs"].items())]
        if xid["asks_since"]:
            facts.append(("driver asks by 154", "since branch %d" % xid["asks_since"]))
        if xid["companions"]:
            facts.append(("same event as", ", ".join(map(str, xid["companions"]))))
        if not xid["known"]:
            facts.append(("note", "this version does not know the number; it warns and drains nothing"))
    if "sxid" in entry:
        sxid = entry["sxid"]
        facts += [("SXid class", sxid["class"]), ("SXid action", sxid["action"]), ("at once", sxid["at_once"])]
        if sxid["where_the_line_says_fatal"] != sxid["action"]:
            facts.append(("line says Fatal", sxid["where_the_line_says_fatal"]))
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
