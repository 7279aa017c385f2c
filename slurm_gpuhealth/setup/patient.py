"""What the doctor knows of an installation before it looks closer: record, configuration, Slurm's settings."""
from __future__ import annotations

import os
import time
from collections import namedtuple

from slurm_gpuhealth import command, config, config_schema
from slurm_gpuhealth.errors import ConfigError, DataError
from slurm_gpuhealth.setup import installer, slurmconf

Line = namedtuple("Line", "level name text fix", defaults=("",))
Line.__doc__ = """level: "ok", "note" (worth knowing), "warn", "unknown" (could not look), "bad". fix: what to do."""

# Slurm's own defaults, slurm.conf(5), the same from 22.05 to 26.05.
SLURM_DEFAULTS = {"killwait": "30", "messagetimeout": "10", "healthcheckinterval": "0", "jobrequeue": "1",
                  "jobfileappend": "0"}


class Patient:
    """What is known of the installation before it is examined."""

    def __init__(self, root, slurm_conf=None, node="", now=None):
        self.root, self.node = root, node or os.uname().nodename.split(".")[0]
        self.now = time.time() if now is None else now
        self.lines: list = []
        try:
            self.record = installer.read_record(root)
        except (DataError, OSError) as error:
            self.record = {}
            self.lines.append(Line("unknown", "installed", str(error), "run it as root"))
        self.prefix = self.record.get("prefix", installer.DEFAULT_PREFIX)
        self.python = self.record.get("python", "")
        try:
            self.config = config_schema.effective(root, self.node)[0]
        except ConfigError:
            self.config = config.from_compiled(None)[0]     # examined, and said, by configuration()
        self.settings, self.origin = settings(
            root, slurm_conf, self.config["slurm"]["bin_dir"], self.lines)

    def get(self, key):
        """One setting of Slurm, with Slurm's default; "" where there is none."""
        return self.settings.get(key) or SLURM_DEFAULTS.get(key, "")


def live_settings(root, bin_dir="/usr/bin", deadline=5):
    """{key: value} of `scontrol show config`; {} where there is no Slurm, None where it does not answer."""
    program = bin_dir + "/scontrol"
    if root or not os.path.exists(program):
        return {}
    done = command.run([program, "show", "config"], deadline)
    return slurmconf.scontrol_settings(done.out) if done.rc == 0 and not done.timed_out else None


def settings(root, slurm_conf, bin_dir, lines):
    """(settings, where from). Adds lines about how that went."""
    live = {} if slurm_conf else live_settings(root, bin_dir)
    if live:
        return live, "scontrol show config"
    try:
        path = installer.find_slurm_conf(root, slurm_conf)
        if path is None:
            lines.append(Line("bad", "slurm.conf", "no slurm.conf and no slurmctld that answers",
                              "is Slurm installed here? --slurm-conf names another file"))
            return {}, ""
        found = slurmconf.read(path, root, with_ours=True)
    except DataError as error:
        lines.append(Line("unknown", "slurm.conf", str(error)))
        return {}, ""
    values: dict[str, str] = {}
    for item in found.settings:
        several = item.key in ("prolog", "epilog") and values.get(item.key)
        values[item.key] = values[item.key] + "," + item.value if several else item.value
    if live is None:
        lines.append(Line("warn", "slurmctld", "does not answer; %s is believed" % path))
    return values, path + (" (configless copy)" if path == installer.CONFIGLESS else "")
