"""Makes docs/faults.md from table.yaml.

    python tests/faults/make_docs.py
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "faults.md")
sys.path[:0] = [path for path in (ROOT, os.path.join(ROOT, "tests"), HERE) if path not in sys.path]

import faults  # noqa: E402

HEAD = """\
# Faults

Made from `tests/faults/table.yaml` by `python tests/faults/make_docs.py`. Each row is run by `tests/faults/`: the lines
go through the parser, all checks, and the decision of a health check in mode `full`, with a job on all GPUs.

*drains*: whether the node is drained. *job*: what becomes of a job that uses it. *at once*: what `gpuhealth log parse`
says is to be done. *reboot*: *cleared*, the evidence goes with the boot and nothing is found after it; *again*, it is
found for as long as it holds; *stands*, it is kept in the board itself and no reboot clears it.
"""

TITLES = {
    "xids": "Xid lines", "sxids": "SXid lines", "kinds": "Other lines of the kernel log",
    "incidents": "Several lines, one fault", "states": "States of GPUs and node"}


def text():
    """Text of the page."""
    table, out = faults.load(), [HEAD]
    for section in faults.SECTIONS:
        out += ["## " + TITLES[section], "", "| | fault | code | severity | drains | job | at once | reboot |",
                "|---|---|---|---|---|---|---|---|"]
        out += [_row(section, row) for row in table[section]]
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _row(section, row):
    severity = row.get("severity", "")
    what = str(row.get("xid") or row.get("sxid") or row.get("kind") or row.get("case", "").split("/")[0] or "")
    about = faults.fault(row) + (" (%s)" % row["word"] if section == "sxids" else "")
    nothing = row["code"] == "nothing"
    cells = (what, about.replace("|", "\\|"), row["code"], "" if nothing else severity,
             "yes" if severity == "fatal" else "no", row.get("job", ""), row.get("do", ""),
             "" if nothing else row.get("reboot", "cleared"))
    return "| %s |" % " | ".join(cells)


def main():
    """Write the page."""
    with open(PAGE, "w", encoding="utf-8") as handle:
        handle.write(text())


if __name__ == "__main__":
    main()
