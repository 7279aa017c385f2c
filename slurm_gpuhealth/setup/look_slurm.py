"""The doctor's look at Slurm's settings: are our hooks started, early enough, and given the time they need."""
from __future__ import annotations

import glob
import os
import re

from slurm_gpuhealth import paths
from slurm_gpuhealth.setup import slurmconf
from slurm_gpuhealth.setup.patient import Line

OLDEST, NEWEST = (22, 5), (26, 5)
_HOOK_KEYS = {"prolog": "prolog", "epilog": "epilog", "healthcheckprogram": "healthcheck"}


def registered(patient):
    """slurmd starts our hooks, directly, through a pattern or through a script that names them."""
    lines = []
    for key, hook in _HOOK_KEYS.items():
        value = patient.settings.get(key, "")
        ours = "%s/%s" % (patient.prefix, hook)
        if any(leads_to(patient.root, one.strip(), ours) for one in value.split(",") if one.strip()):
            lines.append(Line("ok", key, value))
        else:
            text = "%s does not lead to %s" % (value, ours) if value else "not set"
            lines.append(Line("bad", key, text, "gpuhealth install (prints the lines for slurm.conf)"))
    return lines


def leads_to(root, value, ours):
    """Does a Prolog= value start our hook? A pattern is expanded, a script is searched for our path."""
    if value == ours:
        return True
    for path in sorted(glob.glob(paths.under(root, value)))[:200]:
        target = os.readlink(path) if os.path.islink(path) else ""
        if target == ours:
            return True
        try:
            with open(path, "rb") as handle:
                if ours.encode() in handle.read(65536):
                    return True
        except OSError:
            continue
    return False


def prolog_flags(patient):
    """Prolog must run when the job gets the node."""
    flags = patient.get("prologflags")
    if slurmconf.has_alloc(flags):
        return [Line("ok", "PrologFlags", flags)]
    return [Line("bad", "PrologFlags", "%s: Prolog runs only at the first step of a node" % (flags or "not set"),
                 "PrologFlags=Alloc")]


def health_check(patient):
    """HealthCheckInterval and HealthCheckNodeState."""
    lines = []
    every = slurmconf.seconds(patient.get("healthcheckinterval")) or 0
    if not every:
        lines.append(Line("bad", "HealthCheckInterval", "0: the health check never runs", "HealthCheckInterval=120"))
    elif every > 900:
        lines.append(Line("warn", "HealthCheckInterval", "%d s: a fault may stand that long unseen" % every,
                          "HealthCheckInterval=120"))
    else:
        lines.append(Line("ok", "HealthCheckInterval", "%d s" % every))
    states = {word.strip().upper() for word in patient.get("healthchecknodestate").split(",") if word.strip()}
    if states & {"START_ONLY", "REBOOT_ONLY"}:
        lines.append(Line("bad", "HealthCheckNodeState", ",".join(sorted(states)) + ": not while jobs run",
                          "HealthCheckNodeState=ANY,CYCLE"))
    elif states and not states & {"ANY", "ALLOC", "MIXED", "NONDRAINED_IDLE", "IDLE"}:
        lines.append(Line("unknown", "HealthCheckNodeState", ",".join(sorted(states))))
    elif states and "ANY" not in states and not {"ALLOC", "MIXED"} <= states:
        lines.append(Line("warn", "HealthCheckNodeState", ",".join(sorted(states)) + ": not on nodes with jobs",
                          "HealthCheckNodeState=ANY,CYCLE"))
    elif "CYCLE" not in states:
        lines.append(Line("note", "HealthCheckNodeState", "without CYCLE all nodes start at the same moment",
                          "HealthCheckNodeState=ANY,CYCLE"))
    else:
        lines.append(Line("ok", "HealthCheckNodeState", ",".join(sorted(states))))
    return lines


def time_limits(patient):
    """Our deadlines must end before Slurm's."""
    lines, ours = [], patient.config["deadlines"]
    longest = max(ours["prolog"], ours["epilog"])
    for key, name, need in (("prologepilogtimeout", "PrologEpilogTimeout", longest),
                            ("prologtimeout", "PrologTimeout", ours["prolog"]),
                            ("epilogtimeout", "EpilogTimeout", ours["epilog"])):
        limit = slurmconf.seconds(patient.get(key))
        if limit is not None and limit <= need:
            lines.append(Line("bad", name, "%d s, our deadline is %s s: slurmd would kill the hook and drain the node"
                              % (limit, need), "%s=120, or a shorter deadline in gpuhealth.yaml" % name))
        elif limit is not None:
            lines.append(Line("ok", name, "%d s, ours %s s" % (limit, need)))
    if not lines:
        lines.append(Line("warn", "PrologEpilogTimeout", "not set: slurmd waits for other prologs for ever",
                          "PrologEpilogTimeout=120"))
    # 60 s are built in; HealthCheckTimeout exists from 26.05 on.
    limit = slurmconf.seconds(patient.get("healthchecktimeout")) or 60
    wrapped = patient.settings.get("healthcheckprogram", "").endswith("/healthcheck-site")
    if ours["healthcheck"] >= limit:
        lines.append(Line("bad", "health check time", "slurmd ends it after %d s, our deadline is %s s"
                          % (limit, ours["healthcheck"]), "deadlines: healthcheck in gpuhealth.yaml"))
    elif wrapped and ours["healthcheck"] > limit - 30:
        lines.append(Line("warn", "health check time", "the site's own check has only %d s of slurmd's %d s before ours"
                          % (limit - ours["healthcheck"], limit), "deadlines: healthcheck: %d" % (limit - 30)))
    else:
        lines.append(Line("ok", "health check time", "%s s of %d s" % (ours["healthcheck"], limit)))
    limit = slurmconf.seconds(patient.get("messagetimeout"))
    if limit is not None and limit <= ours["prolog"]:
        lines.append(Line("note", "MessageTimeout", "%d s: a prolog on a faulty node may take %s s"
                          % (limit, ours["prolog"]), "MessageTimeout=%d" % (int(ours["prolog"]) + 10)))
    return lines


def restarts(patient):
    """What becomes of jobs that start again."""
    lines = []
    if patient.get("jobrequeue") == "0":
        lines.append(Line("warn", "JobRequeue", "0: only jobs with --requeue are started again", "JobRequeue=1"))
    if patient.get("jobfileappend") == "0":
        lines.append(Line("warn", "JobFileAppend", "0: a restarted job overwrites its first output",
                          "JobFileAppend=1, or --open-mode=append in the jobs"))
    wait = slurmconf.seconds(patient.get("killwait"))
    if wait is None or wait > 60:
        lines.append(Line("warn", "KillWait", "%s: a requeue waits that long for processes that ignore SIGTERM"
                          % (patient.get("killwait") or "not set"), "KillWait=30"))
    else:
        lines.append(Line("ok", "KillWait", "%d s" % wait))
    lines.append(Line("ok", "SchedulerParameters", "nohold_on_prolog_fail is not needed: our prolog requeues first"))
    return lines


def versions(patient):
    """Slurm's release."""
    match = re.match(r"(\d+)\.(\d+)", patient.settings.get("slurm_version", ""))
    if not match:
        return []
    release = (int(match.group(1)), int(match.group(2)))
    text = patient.settings["slurm_version"]
    if not OLDEST <= release <= NEWEST:
        return [Line("warn", "Slurm", "%s: tried are 22.05 to 26.05" % text)]
    return [Line("ok", "Slurm", text)]


def task_prolog(patient):
    """pyxis and TaskProlog: tasks have failed with status 127 on 24.11 (NVIDIA/pyxis issue 163)."""
    ours = patient.prefix + "/taskprolog"
    value = patient.settings.get("taskprolog", "")
    if not value or not leads_to(patient.root, value, ours):
        return []
    found = patient.settings.get("plugstackconfig") or "/etc/slurm/plugstack.conf"
    for path in [found] + sorted(glob.glob(paths.under(patient.root, os.path.dirname(found) + "/plugstack.conf.d/*"))):
        full = path if path.startswith(patient.root) and patient.root else paths.under(patient.root, path)
        try:
            with open(full, encoding="utf-8", errors="replace") as handle:
                words = [line.partition("#")[0] for line in handle.read(1 << 20).split("\n")]
        except OSError:
            continue
        if any("pyxis" in line for line in words):
            return [Line("warn", "TaskProlog", "pyxis is in %s: tasks may fail with status 127" % path,
                         "leave TaskProlog out; `gpuhealth run` needs it not")]
    return [Line("ok", "TaskProlog", value)]
