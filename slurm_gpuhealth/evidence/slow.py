"""The slow part of the evidence, nvidia-bug-report.sh, long after the hook is over.

A process that a hook leaves behind may be ended with it, so it is started by
systemd-run where that exists; elsewhere word is left, and the next `gpuhealth evidence slow` does it.
"""
from __future__ import annotations

import os
import sys
import time

from slurm_gpuhealth import command, events, paths
from slurm_gpuhealth.errors import NotFoundError
from slurm_gpuhealth.evidence import collectors, shelf, store

LIMIT = 600.0           # seconds; the report takes one to three minutes on a node with eight GPUs
NAME = "nvidia-bug-report.log.gz"
_SYSTEMD_RUN = ("/usr/bin/systemd-run", "/bin/systemd-run")


def start(root, cfg, incident_id):
    """Get the slow part of an incident under way. Returns "started", "queued" or "off" (evidence.bug_report)."""
    if not cfg["evidence"]["bug_report"]:
        return "off"
    runner = next((path for path in _SYSTEMD_RUN if os.access(path, os.X_OK)), None)
    if runner and os.path.isdir("/run/systemd/system") and not root:
        done = command.run([runner, "--no-block", "--collect", "--quiet", "--unit=gpuhealth-slow-%s" % incident_id,
                            "--property=RuntimeMaxSec=%d" % (LIMIT + 60)] + own_command(incident_id),
                           cfg["deadlines"]["command"])
        if done.rc == 0:
            return "started"
    shelf.queue_slow(root, incident_id)
    return "queued"


def own_command(incident_id):
    """This interpreter, isolated, running `gpuhealth evidence slow ID`."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from slurm_gpuhealth.cli.main import main; " \
           "sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-I", "-c", code, package, "evidence", "slow", incident_id]


def collect(root, cfg, incident_id, bin_dirs=collectors.BIN_DIRS, limit=LIMIT):
    """Run nvidia-bug-report.sh into the folder of an incident. Returns "" or why there is none.

    --safe-mode leaves out what is known to hang on a broken GPU. While an NVML call of ours hangs it is not run.
    """
    found = shelf.find_all(root, incident_id)
    if not found:
        raise NotFoundError("no evidence with the id %s" % incident_id)
    folder = store.reopen(root, found[-1], again=True)
    why = _collect(folder, root, bin_dirs, limit)
    if why:
        folder.lack(NAME, why)
    shelf.done_slow(root, incident_id)
    return why


def _collect(folder, root, bin_dirs, limit):
    facts = folder.facts()
    hung = collectors.nvml_hung(facts) if facts is not None else ""
    if hung:
        return hung
    program = next((os.path.join(place, "nvidia-bug-report.sh") for place in bin_dirs
                    if os.access(os.path.join(place, "nvidia-bug-report.sh"), os.X_OK)), None)
    if program is None:
        return "nvidia-bug-report.sh is not installed"
    scratch = os.path.join(paths.under(root, paths.STATE), "slow", ".report-%s-%d" % (folder.id, os.getpid()))
    shelf.make_slow_folder(root)
    started = time.monotonic()
    try:
        done = command.run([program, "--safe-mode", "--output-file", scratch], limit, max_bytes=1 << 16)
        for name in (scratch, scratch + ".gz"):
            if os.path.isfile(name):
                with open(name, "rb") as handle:
                    data = handle.read(folder.manifest["limit"])
                folder.keep(NAME, data, "timed out" if done.timed_out else "", time.monotonic() - started)
                return ""
        return "timed out" if done.timed_out else "ended with %s and left nothing" % done.rc
    finally:
        for name in (scratch, scratch + ".gz"):
            if os.path.exists(name):
                os.unlink(name)


def collect_queued(root, cfg):
    """Do what is queued. Returns {id: "" or why not}."""
    outcomes = {}
    for incident_id in shelf.queued_slow(root):
        try:
            outcomes[incident_id] = collect(root, cfg, incident_id)
        except NotFoundError as exc:
            outcomes[incident_id] = events.bound(str(exc), 200)
            shelf.done_slow(root, incident_id)
    return outcomes
