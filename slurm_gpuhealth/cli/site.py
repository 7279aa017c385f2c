"""What several commands need: the configuration, the events, times and tables for people."""
from __future__ import annotations

import os
import re
import time

from slurm_gpuhealth import config_schema, event_files, paths
from slurm_gpuhealth.config_defaults import DEFAULTS, fresh
from slurm_gpuhealth.errors import ConfigError, NotFoundError, PermissionDenied, UsageError
from slurm_gpuhealth.report.text import clean

_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_LENGTH = re.compile(r"(\d{1,6})([mhdw])\Z", re.ASCII)


def node_name(root=""):
    """Slurm's name of this node, as the hooks know it; of a fixture node, its own host name."""
    name = "" if root else os.environ.get("SLURMD_NODENAME", "")
    if not name and root:
        try:
            with open(paths.under(root, "/proc/sys/kernel/hostname"), encoding="utf-8") as handle:
                name = handle.read().strip()
        except OSError:
            name = ""
    return (name or os.uname().nodename).split(".")[0]


def configuration(root=""):
    """The site's configuration for this node; the built-in one where the file cannot be read or used."""
    try:
        return config_schema.effective(root, node_name(root))[0]
    except (ConfigError, OSError, PermissionDenied):
        return fresh(DEFAULTS)


def events_folder(root, cfg, given=None):
    """Where to read events: what was given, else the shared folder, else this node's own.

    Raises NotFoundError for a given folder that is not there.
    """
    if given:
        if not os.path.exists(given):
            raise NotFoundError("there is no %s" % given)
        return given
    shared = os.path.join(cfg["shared_dir"], "events") if cfg["shared_dir"] else ""
    return shared if shared and os.path.isdir(shared) else paths.under(root, paths.EVENTS)


def read_events(folder, since=None):
    """(list of events, note or ""), of a folder that may not be there or not be for this user."""
    try:
        return list(event_files.read(folder, since)), ""
    except FileNotFoundError:
        return [], ""
    except PermissionError:
        return [], "%s is not readable for this user" % folder


def since(text, now):
    """The time that "7d", "12h", "2026-11-23", "2026-11-23T08:00" or "all" (None) means. Dates are UTC."""
    if text == "all":
        return None
    match = _LENGTH.match(text)
    if match:
        return now - int(match.group(1)) * _UNITS[match.group(2)]
    return moment(text)


def until(text, now):
    """The time that "7d" (from now) or a date means."""
    match = _LENGTH.match(text)
    return now + int(match.group(1)) * _UNITS[match.group(2)] if match else moment(text)


def moment(text):
    """The time of a date in UTC."""
    import calendar
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"):
        try:
            return float(calendar.timegm(time.strptime(text, form)))
        except ValueError:
            continue
    raise UsageError("not a time: %s (try 12h, 7d, 4w, 2026-11-23 or 2026-11-23T08:00)" % text[:40])


def table(rows, heads):
    """Text lines of a table: rows of values, made harmless for a terminal; the last column may be long."""
    texts = [list(heads)] + [[clean(value) for value in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(heads))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in texts]


def need_root(what, root=""):
    """Raise PermissionDenied unless this process may do `what` (a fixture node is anybody's)."""
    if os.geteuid() != 0 and not root:
        raise PermissionDenied("%s needs root" % what)
