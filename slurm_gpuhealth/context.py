"""What one run of a hook carries from step to step; no decisions here."""
from __future__ import annotations

import time

from slurm_gpuhealth import events, memory, supervise
from slurm_gpuhealth.errors import StateError


class Context:
    """One run of one hook on one node.

    phase, root, host: as everywhere. cfg: the configuration. state: State. memory: dict of node.json, changed in
    place and written once at the end. job: Job or None. until: monotonic time at which everything must be over.
    tell(kind, value): to the guard. facts, findings, situation, plan: filled in as they come to be.
    """

    def __init__(self, phase, root, host, cfg, state, until, tell):
        self.phase, self.root, self.host, self.cfg = phase, root, host, cfg
        self.state, self.until, self.tell = state, until, tell
        self.memory = state.read("node.json")
        self.incidents, self.acks = state.incidents()
        self.job = None
        self.early_boot_id = ""     # before the Facts are there
        self.facts = self.situation = self.plan = None
        self.findings = ()          # of all checks, each fault once
        self.seen = ()              # the same before they were merged
        self.gathered = None
        self.warm = None            # the child that waits to ask NVML, or None
        self.expected = None        # facts.Expected, or None: not asked yet, or /etc did not answer
        self.etc_answers = False
        self.dirty = set()          # "memory", "incidents": what must be written
        self.incident = None        # the incident of this run, once there is one
        self.folder = None          # its evidence folder
        self.client = None
        self.unreachable = False    # slurmctld did not answer in this run
        self.mode = "observe"
        self.woken = False          # a round out of turn: nothing is counted that has to stand for some rounds
        self.epilog_restart = None  # the restart count that slurmd gave an epilog (one higher after a requeue)

    @property
    def boot_id(self):
        return self.facts.boot_id if self.facts is not None else self.early_boot_id

    def time_left(self, reserve=0.0):
        """Seconds until this hook must be over, less `reserve`; never below zero."""
        return max(0.0, self.until - time.monotonic() - reserve)

    def event(self, kind, code="", subject="", action="", job=None, **detail):
        """Append an event; when that fails (disk full) the line goes to the system log instead."""
        about = job if job is not None else self.job
        line = events.event(
            kind, self.host, boot_id=self.boot_id, incident=self.incident.id if self.incident else "", code=code,
            subject=subject, job=about.id if about else None, restart=about.restart if about else None,
            action=action, detail=detail)
        events.record(self.root, line, self.cfg)
        return line

    def say_once(self, key, text, code=""):
        """An event about ourselves (configuration, state), once a day and not once a round."""
        if memory.is_news(self.memory, key + "|" + text, time.time()):
            self.dirty.add("memory")
            self.event("internal-error", code=code or "GH-CONFIG", error=text, phase=self.phase)

    def finding_once(self, plain):
        """An event for a finding that drains nothing, once a day while it stands."""
        key = "%s|%s|%s" % (plain["code"], plain["subject"], plain["severity"])
        if memory.is_news(self.memory, key, time.time()):
            self.dirty.add("memory")
            self.event("finding", code=plain["code"], subject=plain["subject"],
                       **{name: plain[name] for name in plain if name not in ("code", "subject")})

    def hangs(self, path):
        """True when `path` lies on a mount that did not answer in this round: nobody else of ours is sent there."""
        for status in self.facts.sources if self.facts is not None else ():
            kind, _, mount = status.name.partition(":")
            if kind == "mount" and status.outcome in ("late", "hung") \
                    and (path + "/").startswith(mount.rstrip("/") + "/"):
                return True
        return False

    def shared_hangs(self):
        """True when the shared folder does not answer, or one that wrote to it still hangs there."""
        return self.hangs(self.cfg["shared_dir"]) or self.still_left("shared")

    def still_left(self, name):
        """True while a process that `remember_left` was told of hangs."""
        return any(supervise.still_there(entry["pid"], entry["ticks"])
                   for entry in self.state.left_behind(self.boot_id).get(name, ()))

    def remember_left(self, name, pid):
        """Keep in mind a process of ours that no signal ends, so that no second one follows it while it lives."""
        found = supervise.process_start(pid) if pid is not None else None
        if found is None:
            return
        left = self.state.left_behind(self.boot_id)
        left.setdefault(name, []).append({"pid": pid, "ticks": found[1], "since": int(time.time())})
        try:
            self.state.save_left_behind(self.boot_id, left)
        except StateError as exc:
            self.say_once("state", str(exc), code="GH-SELF")

    def slurm(self):
        """The client for slurmctld, made when it is first needed."""
        if self.client is None:
            from slurm_gpuhealth import slurm
            self.client = slurm.client(self.cfg, self.root, self.until - 0.2)
        return self.client

    def history(self, job, what, **entry):
        """Add to what `gpuhealth job ID` shows the job's owner (in a child: the shared folder may be dead)."""
        entry.update(time=time.time(), restart=job.restart, what=what, node=self.host)
        if job.uid is None:
            return

        cfg = dict(self.cfg, shared_dir="") if self.shared_hangs() else self.cfg

        def write(spec, emit):
            emit("notes", events.append_history(self.root, cfg, job.uid, -1, job.id, entry))
        result = supervise.call(write, None, min(3.0, self.time_left(0.5)), name="job history")
        self.remember_left("shared", result.status.pid)
