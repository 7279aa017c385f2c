"""`gpuhealth evidence list|show|verify|slow|prune`: what was kept of each incident."""
from __future__ import annotations

import argparse
import json
import os

from slurm_gpuhealth.cli import site
from slurm_gpuhealth.errors import EXIT_FATAL, EXIT_OK, EXIT_WARNING, DataError
from slurm_gpuhealth.evidence import manifest as manifests
from slurm_gpuhealth.evidence import shelf
from slurm_gpuhealth.report.text import clean, stamp

EPILOG = """\
example:
  gpuhealth evidence list                 newest last
  gpuhealth evidence show 3fa9            the start of an incident's id is enough
  gpuhealth evidence verify 3fa9          are the files what was collected?

exit codes of verify: 0 all as it was collected, 1 intact but incomplete, 2 changed, gone or added files
"""


def add_parser(subparsers):
    """The parser of this command and its own."""
    parser = subparsers.add_parser("evidence", help="what was kept of each incident", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    inner = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    inner.add_parser("list", help="all folders")
    for name, text in (("show", "what is in a folder, and what is not and why"),
                       ("verify", "compare the files with what was recorded")):
        one = inner.add_parser(name, help=text)
        one.add_argument("id", help="start of the incident's id, name or path of the folder")
    slow = inner.add_parser("slow", help="collect nvidia-bug-report now (for an id, or for all that wait)")
    slow.add_argument("id", nargs="?", help="the incident's id")
    inner.add_parser("prune", help="remove old folders over the configured limits")


def run(args, out):
    """Do it; returns the exit code."""
    return {"list": _list, "show": _show, "verify": _verify, "slow": _slow, "prune": _prune}[args.action](args, out)


def _summary(path):
    """What `list` says of one folder; a folder whose manifest cannot be read says so."""
    _, code, incident = shelf.split_name(os.path.basename(path))
    plain = {"id": incident, "code": code, "path": path, "opened": None, "subject": "", "node": "",
             "state": "unreadable", "kept": 0, "missing": 0, "bytes": 0, "fallback": ""}
    try:
        manifest = manifests.load(path)
    except DataError:
        return plain
    kept = [item for item in manifest["items"] if item["status"] == manifests.ITEM_OK]
    plain.update({key: manifest.get(key, plain[key]) for key in ("opened", "subject", "node", "fallback")})
    plain.update(state="complete" if manifest["state"] == manifests.FINAL else "incomplete", kept=len(kept),
                 missing=len(manifest["items"]) - len(kept), bytes=sum(item["bytes"] for item in kept))
    return plain


def _list(args, out):
    site.need_root("reading evidence", args.root)
    rows = [_summary(path) for path in shelf.all_folders(args.root)]
    if args.json:
        print(json.dumps({"v": 1, "evidence": rows}, indent=1), file=out)
    elif not rows:
        print("No evidence is kept on this node: no incident was found here.", file=out)
    else:
        lines = site.table([(row["id"], stamp(row["opened"]), row["code"], row["subject"], row["state"],
                             "%d kept, %d missing" % (row["kept"], row["missing"]), "%.1f MB" % (row["bytes"] / 1e6),
                             row["path"]) for row in rows],
                           ("ID", "OPENED (UTC)", "CODE", "SUBJECT", "STATE", "FILES", "SIZE", "PATH"))
        print("\n".join(lines), file=out)
    return EXIT_OK


def _show(args, out):
    path = shelf.find(args.root, args.id)
    manifest = manifests.load(path)
    if args.json:
        print(json.dumps({"v": 1, "path": path, "manifest": manifest}, indent=1), file=out)
        return EXIT_OK
    print("%s on %s, %s UTC: %s %s" % (manifest["id"], clean(manifest.get("node", "?")), stamp(manifest.get("opened")),
                                       clean(manifest.get("code", "?")), clean(manifest.get("subject", ""))), file=out)
    print("folder %s, %s" % (clean(path), "complete" if manifest["state"] == manifests.FINAL
                             else "INCOMPLETE: its collection did not end"), file=out)
    for note in manifest["notes"]:
        print("note: %s" % clean(note), file=out)
    print("\n".join(site.table([(item["name"], item["status"], item["bytes"] if item["status"] == "ok" else "",
                                 item["why"]) for item in manifest["items"]],
                               ("FILE", "STATUS", "BYTES", "WHY"))), file=out)
    return EXIT_OK


def _verify(args, out):
    path = shelf.find(args.root, args.id)
    result = manifests.verify(path)
    wrong = result["changed"] + result["missing"] + result["extra"]
    if args.json:
        print(json.dumps(dict(result, v=1, path=path, ok=not wrong), indent=1), file=out)
    else:
        for key, text in (("changed", "changed since it was collected"), ("missing", "gone"),
                          ("extra", "was not collected: added later")):
            for name in result[key]:
                print("%s: %s" % (clean(name), text), file=out)
        if not wrong:
            print("%s: all files are as they were collected" % clean(path), file=out)
        if not result["complete"]:
            print("the folder is incomplete: its collection did not end", file=out)
    return EXIT_FATAL if wrong else EXIT_OK if result["complete"] else EXIT_WARNING


def _slow(args, out):
    from slurm_gpuhealth.evidence import slow
    site.need_root("collecting evidence", args.root)
    cfg = site.configuration(args.root)
    done = {args.id: slow.collect(args.root, cfg, args.id)} if args.id else slow.collect_queued(args.root, cfg)
    if args.json:
        print(json.dumps({"v": 1, "collected": done}), file=out)
    else:
        for incident, why in done.items():
            print("%s: %s" % (clean(incident), clean(why) or "collected"), file=out)
    return EXIT_WARNING if any(done.values()) else EXIT_OK


def _prune(args, out):
    from slurm_gpuhealth.state import State
    site.need_root("removing evidence", args.root)
    incidents, _ = State(args.root).incidents()
    removed = shelf.prune(args.root, site.configuration(args.root), {item.id for item in incidents if not item.closed})
    if args.json:
        print(json.dumps({"v": 1, "removed": removed}), file=out)
    else:
        print("removed %d folder%s" % (len(removed), "" if len(removed) == 1 else "s"), file=out)
    return EXIT_OK
