"""The report as text for a terminal or a mail. Names in it come from users: nothing is printed as it is."""
from __future__ import annotations

import time


def clean(value, width=0):
    """`value` as printable text, control characters and escape sequences made visible; cut to `width` if given."""
    text = "".join(char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
                   for char in str(value))
    return text[:width - 1] + "~" if width and len(text) > width else text


def seconds(value):
    """A length of time in words: 0.8 s, 45 s, 12 min, 5.5 h, 3.2 d."""
    if value < 10:
        return "%.1f s" % value
    if value < 120:
        return "%.0f s" % value
    if value < 7200:
        return "%.0f min" % (value / 60)
    return "%.1f h" % (value / 3600) if value < 172800 else "%.1f d" % (value / 86400)


def stamp(value):
    """A time in UTC to the minute, or "?"."""
    if value is None:
        return "?"
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(value))
    except (OverflowError, ValueError, OSError):
        return "?"


def render(report, listed=20):
    """The report (dict of aggregate.aggregate) as text. listed: how many nodes, jobs and codes are named."""
    lines = [_head(report)]
    if not report["events"]:
        lines += ["", "No events in this time: nothing was found, drained or requeued.",
                  "(If that is a surprise: `gpuhealth doctor` checks the set-up.)"]
        return "\n".join(lines) + "\n"
    for part in (_incidents, _out, _jobs, _ourselves):
        lines += part(report, listed)
    return "\n".join(lines) + "\n"


def _head(report):
    if report["since"] is None:
        span = "all there is: %s to %s UTC" % (stamp(report["first"]), stamp(report["last"]))
    else:
        span = "%s to %s UTC" % (stamp(report["since"]), stamp(report["until"]))
    return "GPU health report, %s\n%d event%s from %d node%s" % (
        span, report["events"], _s(report["events"]), report["nodes"], _s(report["nodes"]))


def _s(count):
    return "" if count == 1 else "s"


def _spread(spread, what):
    if spread is None:
        return []
    return ["  %s: median %s, longest %s (%d known)" % (
        what, seconds(spread["median"]), seconds(spread["longest"]), spread["count"])]


def _counts(counts, listed):
    return ", ".join("%s %d" % (clean(key, 60) or "(none)", count) for key, count in list(counts.items())[:listed])


def _more(shown, total):
    return ["  ... and %d more" % (total - shown)] if total > shown else []


def _incidents(report, listed):
    part = report["incidents"]
    layers = " (" + _counts(part["by_layer"], 9) + ")" if part["total"] else ""
    lines = ["", "Incidents: %d%s" % (part["total"], layers)]
    for row in part["by_code"][:listed]:
        lines.append("  %-16s %5d  on %d node%s  %s" % (
            clean(row["code"], 16), row["count"], row["nodes"], _s(row["nodes"]), clean(row["title"], 60)))
    lines += _more(listed, len(part["by_code"]))
    if part["by_node"]:
        lines.append("  nodes: " + _counts(part["by_node"], listed))
    drains = report["drains"]
    lines += ["", "Drains: %d, %d node%s given back" % (drains["total"], drains["resumed"], _s(drains["resumed"]))]
    if drains["total"]:
        lines.append("  " + _counts(drains["by_code"], listed))
    return lines + _spread(drains["seconds_from_fault"], "from the fault to the drain")


def _out(report, listed):
    out = report["out"]
    if not out:
        return []
    lines = ["", "Out at the end of this time: %d" % report["out_total"]]
    for row in out[-listed:]:
        lines.append("  %-16s since %s  %s" % (
            clean(row["node"], 16), stamp(row["since"]), clean(row["reason"] or row["code"], 70)))
    return lines + _more(listed, report["out_total"])


def _jobs(report, listed):
    restarts, lost = report["restarts"], report["gpu_hours_lost"]
    lines = ["", "Jobs: %d requeued, %d held, %d sent back to wait" % (
        report["requeues"]["total"], report["holds"]["total"], report["send_backs"]["total"])]
    lines.append("  restarts: %d resumed%s, %d from the beginning; %d checkpoint%s passed over" % (
        restarts["resumed"], " (" + _counts(restarts["by_level"], 5) + ")" if restarts["by_level"] else "",
        restarts["started_over"], restarts["passed_over"], _s(restarts["passed_over"])))
    lines += _spread(restarts["seconds_from_fault"], "from the fault to the restart")
    if lost["known"] or lost["unknown"]:
        total = lost["total"]
        hours = "%.1f" % total if total >= 1 or not total else "%.3f" % total
        some = " (not known for %d of %d requeues)" % (lost["unknown"], lost["known"] + lost["unknown"])
        lines.append("  GPU-hours between the last checkpoint and the fault: %s%s" % (
            hours, some if lost["unknown"] else ""))
    for row in restarts["jobs"][-listed:]:
        lines += _restart(row)
    lines += _more(listed, restarts["total"])
    for row in report["holds"]["jobs"][-listed:]:
        lines.append("  job %s held: %s %s" % (
            clean(row["job"], 20), clean(row["code"], 20), clean(row["message"], 80)))
    return lines


def _restart(row):
    text = "  job %s" % clean(row["job"], 20)
    if row["time"] is not None:
        text += " requeued on %s (%s)" % (clean(row["node"], 20), clean(row["code"] or row["why"] or "?", 40))
    if row["from_start"]:
        text += ", begins from the start"
    elif row["resume"]:
        text += ", resumes at step %s (%s) from %s" % (
            clean(row["resume"]["step"] if row["resume"]["step"] is not None else "?", 16),
            clean(row["resume"]["level"] or "?", 16), clean(row["resume"]["path"], 80))
    if row["again"] is not None:
        text += " on %s" % clean(row["again_on"], 20)
    lines = [text]
    for one in row["passed"]:
        lines.append("    passed over %s: %s" % (clean(one["path"], 60), clean(one["reason"], 80)))
    return lines


def _ourselves(report, listed):
    lines = []
    if report["unacted"]["total"]:
        lines.append("  left undone %d: %s" % (report["unacted"]["total"], _counts(report["unacted"]["by_why"], 5)))
    if report["brake"]:
        lines.append("  the brake spoke %d time%s" % (report["brake"], _s(report["brake"])))
    if report["spool"]["total"]:
        lines.append("  waited for slurmctld %d: %s" % (
            report["spool"]["total"], _counts(report["spool"]["by_what"], 5)))
    if report["notify_failed"]:
        lines.append("  notifications that failed: %d" % report["notify_failed"])
    if report["internal_errors"]["total"]:
        lines.append("  FAULTS OF THIS TOOL %d: %s" % (
            report["internal_errors"]["total"], _counts(report["internal_errors"]["by_error"], 5)))
    if report.get("unreadable"):
        lines.append("  events that could not be understood: %d" % report["unreadable"])
    return ["", "This tool:"] + lines if lines else []
