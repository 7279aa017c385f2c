"""The one place where it is decided what a fault means: findings + situation + policy -> Plan. Pure.

The plan is made in rounds. As long as something must first be asked of slurmctld, the plan names it in
`lookups` and its actions are not to be done yet; run.py asks, puts the answer into the situation and calls
again. With nothing wrong there are no lookups: the healthy path never calls slurmctld.

Order of the actions of a plan, always: evidence, isolate (drain), rest of the evidence, recover (requeue),
record.
"""
from __future__ import annotations

from slurm_gpuhealth import reason as grammar
from slurm_gpuhealth.catalogue import lookup
from slurm_gpuhealth.model import (
    ALL_GPUS,
    DRAIN,
    EPILOG,
    FATAL,
    FULL,
    HEALTHCHECK,
    LET_FINISH,
    MANUAL,
    NAMED,
    NOTE,
    OBSERVE,
    PROLOG,
    REQUEUE_NOW,
    TASKPROLOG,
    UNREAD,
    WARNING,
    Action,
    Finding,
    Plan,
    worst,
)

# "Kill task failed" replaces a standing reason (slurmstepd, update_node; Slurm 22.05 to 26.05).
KILL_TASK_FAILED = "Kill task failed"
EXTERNAL = "external"
# What may be asked of slurmctld, in this order: the drain waits for the first two only.
LOOKUPS = ("node", "brake", "job", "jobs")
NAGIOS = {None: 0, NOTE: 0, WARNING: 1, FATAL: 2, UNREAD: 3}

# How a run must have ended for an epilog to bring it back (a plain requeue resurrects cancelled jobs).
FAILED = ("failed", "node_fail", "out_of_memory")
# Seconds after a drain in which a job may still come that was on its way when the node was drained.
ON_ITS_WAY = 300.0
DO_NOT_REQUEUE_EXIT = "93:"     # NVIDIA's resiliency extension: "do not requeue"


def decide(findings, situation, policy):
    """What to do about `findings` in `situation`. Same input, same Plan.

    findings: what the checks saw. situation: model.Situation. policy: the validated configuration (a dict).
    """
    findings = weigh(findings, situation, policy)
    if situation.phase in (MANUAL, TASKPROLOG):
        return Plan(NAGIOS[worst(findings)], code=findings[0].code if findings else "")
    fatal = [finding for finding in findings if finding.severity == FATAL]
    minor = [finding for finding in findings if finding.severity != FATAL]
    if situation.phase in (HEALTHCHECK, PROLOG):
        fatal += [finding for finding in weigh(standing(situation, fatal), situation, policy)
                  if finding.severity == FATAL]
    moments_ago = weigh(just_drained(situation), situation, policy) \
        if situation.phase == PROLOG and situation.mode != OBSERVE else []
    moments_ago = [finding for finding in moments_ago if finding.severity == FATAL and (
        situation.job is not None and hits(finding.subject, situation.job))]
    if situation.node_record is not None and _drained(situation.node_record):
        fatal += [finding for finding in moments_ago if fault_key(finding) not in map(fault_key, fatal)]
    record = [Action("finding", {"code": finding.code, "subject": subject_key(finding.subject),
                                 "severity": finding.severity, "seen": finding.seen}) for finding in minor]
    record += _end_leftovers(findings, situation, policy)
    if not fatal and moments_ago and situation.node_record is None:
        return Plan(0, tuple(record), lookups=("node",))    # drained still, or resumed by somebody since?
    if not fatal:
        return _quiet(record, findings, situation, policy)
    fatal = grammar.worst_first(fatal)
    if situation.mode == OBSERVE:
        return Plan(0, tuple(record + [_unacted(fatal, "mode is observe")]), code=fatal[0].code)
    return _Fault(fatal, record, situation, policy).plan()


# -- what counts

def weigh(findings, situation, policy):
    """Findings with the site's severities, known (acked) faults turned into notes, worst first."""
    weighed = []
    for finding in findings:
        severity = policy["codes"].get(finding.code, {}).get("severity") or finding.severity
        if finding.severity == NOTE and (finding.data or {}).get("streak"):
            severity = NOTE     # not believed yet: it has to stand for some rounds first
        if any(ack.code in (finding.code, "*") and (not ack.subject or ack.subject == subject_key(finding.subject))
               and (ack.until is None or ack.until > situation.now) for ack in situation.acks):
            severity = NOTE
        weighed.append(finding._replace(severity=severity))
    return grammar.worst_first(weighed)


def subject_key(subject):
    """A subject as one short text: "gpu3", "gpus", "/data", "mlx5_0/1", "node"."""
    if subject.kind == "gpu":
        return "gpu%s" % ("?" if subject.index is None else subject.index)
    return subject.name if subject.kind in NAMED else subject.kind


def fault_key(finding):
    """Code and subject of a finding (or an incident) in one text."""
    return "%s|%s" % (finding.code, subject_key(finding.subject))


def in_words(finding):
    """What is wrong, for the job's user: "gpu3 fell off bus"."""
    return ("%s %s" % (subject_key(finding.subject), grammar.detail_text(finding))).strip()


def taken_in(findings):
    """Keys of the faults of all GPUs that checks.merge took into one of the findings, as fault_key makes them."""
    return tuple("%s|%s" % (part["code"], ALL_GPUS.kind) for finding in findings
                 for part in (finding.data or {}).get("merged", ()) if part.get("all_gpus"))


def incident_key(boot_id, finding):
    """What makes two findings the same incident: boot, code and subject."""
    return "%s|%s" % (boot_id, fault_key(finding))


def incident_of(finding, situation):
    """The open incident of this boot that `finding` belongs to, or None.

    By subject, not by code: a GPU that fell off the bus (79) and is then seen as lost is one incident, and a
    missing GPU makes the count wrong too.
    """
    named, gpu_gone = subject_key(finding.subject), None
    one_gpu = finding.subject.kind == "gpu" and finding.subject.index is not None
    for incident in situation.incidents:
        if incident.closed or incident.boot_id != situation.boot_id:
            continue
        for fault in (fault_key(incident),) + tuple(incident.also):
            code, _, subject = fault.partition("|")
            if subject == named and (code == finding.code or one_gpu):
                return incident
        if gpu_gone is None and incident.subject.kind == "gpu":
            gpu_gone = incident
    return gpu_gone if finding.subject == ALL_GPUS and finding.code == "GH-GPU-COUNT" else None


def not_covered(fatal, situation):
    """Those of the findings that belong to no open incident yet, in their order."""
    return [finding for finding in fatal if incident_of(finding, situation) is None]


def standing(situation, seen):
    """Findings for open incidents of this boot that we could not drain yet and that no check can see again.

    A Xid is read from the kernel log once, and a counter is compared with the last round's once. If slurmctld was away
    then, the incident itself is what is left. A reboot is a repair: what still holds after it is found again.
    """
    again = []
    keys = {subject_key(finding.subject) for finding in seen}
    for incident in situation.incidents:
        if incident.closed or incident.drained and not incident.pending or incident.boot_id != situation.boot_id \
                or not lookup(incident.code).seen_once:
            continue
        if subject_key(incident.subject) not in keys:
            seen_text = "seen before, its jobs not asked yet" if incident.drained else "seen before, not drained yet"
            again.append(Finding(incident.code, FATAL, incident.subject, seen_text, since=incident.opened))
    return again


def just_drained(situation):
    """Findings for what this node was drained for moments ago: a job that was on its way then must not start on it,
    also where the fault (a line of the kernel log, read by now) cannot be seen again."""
    return [Finding(incident.code, FATAL, incident.subject, "drained for it just now", since=incident.opened)
            for incident in situation.incidents
            if incident.drained and not incident.closed and incident.boot_id == situation.boot_id
            and 0 <= situation.now - incident.opened < ON_ITS_WAY]


def hits(subject, job):
    """True when `job` uses what `subject` names."""
    if subject.kind == "gpu":
        return bool(job.gpus) and (subject.index is None or subject.index in job.gpus)
    if subject.kind == "gpus":
        return bool(job.gpus)
    return True


def concerns(finding, job):
    """True when `job` uses what is faulty: what the finding names, or any GPU where all of the node are hit with it
    (data["node_wide"] of checks.merge)."""
    return hits(finding.subject, job) or bool(job.gpus and (finding.data or {}).get("node_wide"))


def may_requeue(job):
    """None when `job` may be requeued, else why not (short, for the event)."""
    if job.batch is False:
        return "not a batch job"
    if job.requeue is False:
        return "submitted with --no-requeue"
    if job.declared is not None and job.declared.requeue is False:
        return "requeue=no in its comment"
    if job.exit_code.startswith(DO_NOT_REQUEUE_EXIT):
        return "exit code 93 asks for no requeue"
    return None


def job_action(finding, policy):
    """What a drain for `finding` does to a job: the site's word for the code, else what the check said (a Xid's own
    action, the site's table and the value of 154 considered), else the catalogue's."""
    site = policy["codes"].get(finding.code, {}).get("job_action")
    return site or (finding.data or {}).get("job_action") or lookup(finding.code).job_action


def action_on(job, finding, policy):
    """What a drain for `finding` does to `job`: on another GPU than the named one, what the fault of all GPUs asks."""
    wide = (finding.data or {}).get("node_wide")
    if not wide or job_action(finding, policy) == REQUEUE_NOW and hits(finding.subject, job):
        return job_action(finding, policy)
    return wide


def _end_leftovers(findings, situation, policy):
    """Where the site wants it: epilog ends the processes without a job that still hold the job's GPUs."""
    if situation.phase != EPILOG or situation.mode == OBSERVE or not policy["leftover"]["kill"]:
        return []
    left = {process["pid"]: process for finding in findings if finding.code == "GH-LEFTOVER"
            for process in (finding.data or {}).get("processes", ())}
    return [Action("end-processes", {"processes": [left[pid] for pid in sorted(left)]})] if left else []


# -- nothing fatal

def _quiet(record, findings, situation, policy):
    """Nothing to drain for. Healthcheck counts clean rounds and may give back a node that we drained."""
    ours = [incident for incident in situation.incidents if not incident.closed]
    unread = any(finding.severity == UNREAD for finding in findings)
    if situation.phase != HEALTHCHECK or not ours:
        return Plan(0, tuple(record))
    if situation.node_record is None:
        return Plan(0, tuple(record), lookups=("node",))
    drained_here = _drained(situation.node_record)
    if not drained_here:
        record.append(Action("close", {"ids": [incident.id for incident in ours], "why": "node was resumed"}))
        return Plan(0, tuple(record))
    if situation.mode == OBSERVE or "MAINT" in situation.node_record.state:
        return Plan(0, tuple(record))
    node_reason = situation.node_record.reason
    drained_by_us = [incident for incident in ours if incident.drained]
    if node_reason.startswith(KILL_TASK_FAILED) and drained_by_us:
        record.append(Action("restore-reason", {"reason": drained_by_us[-1].reason}))
        return Plan(0, tuple(record))
    rounds = policy["recover"]["clean_rounds"]
    recoverable = all(lookup(incident.code).recoverable or incident.code in policy["recover"]["codes"]
                      or policy["codes"].get(incident.code, {}).get("recoverable") for incident in ours)
    if rounds and not unread and recoverable and situation.clean_rounds >= rounds \
            and grammar.is_ours(node_reason) and drained_by_us:
        record.append(Action("resume-node", {"ids": [incident.id for incident in ours],
                                             "why": "%d clean rounds" % situation.clean_rounds}))
    return Plan(0, tuple(record))


def _drained(record):
    return any(flag.startswith("DRAIN") for flag in record.state)


def is_down(record):
    """True for a node that Slurm or an admin has taken down: its reason is about that, not left over."""
    return any(flag.startswith(("DOWN", "FAIL", "ERROR", "FUTURE", "UNKNOWN")) for flag in record.state)


def _unacted(fatal, why):
    return Action("unacted", {"code": fatal[0].code, "subject": subject_key(fatal[0].subject), "why": why,
                              "findings": [_brief(finding) for finding in fatal]})


def _brief(finding):
    return {"code": finding.code, "subject": subject_key(finding.subject), "seen": finding.seen,
            "expected": finding.expected, "since": finding.since, "data": finding.data}


# -- something fatal

class _Fault:
    """One fault being decided. Only here to share the inputs between the steps; holds no state of its own."""

    def __init__(self, fatal, record, situation, policy):
        self.fatal, self.situation, self.policy = fatal, situation, policy
        self.record, self.notes, self.lookups = record, [], []
        self.job = situation.job
        self.mine = [finding for finding in fatal if self.job and concerns(finding, self.job)]
        self.external = all(lookup(finding.code).layer == EXTERNAL for finding in fatal)

    def plan(self):
        before, drain, after = [], self.drain(), []
        braked = any(action.kind == "brake" for action in drain)
        exit_code, jobs = self.jobs(braked)
        new = not_covered(self.fatal, self.situation)
        if new:
            before = [Action("incident", {"code": new[0].code, "subject": subject_key(new[0].subject),
                                          "findings": [_brief(finding) for finding in self.fatal]}),
                      Action("evidence", {})]
            after = [Action("evidence-rest", {})]
        actions = before + drain + after + jobs + self.record
        if any(action.kind == "drain" for action in drain):
            actions.append(Action("notify", {}))
        return Plan(exit_code, tuple(actions), grammar.write(self.fatal, ""), self.fatal[0].code,
                    tuple(name for name in LOOKUPS if name in self.lookups), tuple(self.notes))

    # isolate

    def drain(self):
        """The actions on the node: drain, brake, restore our reason, or nothing (and a note why)."""
        node = self.situation.node_record
        if node is None:
            self.lookups.append("node")
            return [Action("drain", {"brake": self.external})]
        if "MAINT" in node.state:
            return self.leave("node is in a MAINT reservation")
        if _drained(node):
            known = [item for item in self.situation.incidents if item.drained and not item.closed]
            if node.reason.startswith(KILL_TASK_FAILED) and known:
                return [Action("restore-reason", {"reason": known[-1].reason})]
            if grammar.is_ours(node.reason):
                return [Action("already-drained", {"reason": node.reason})]
            return self.leave("node is drained by somebody else")
        if node.reason and not grammar.is_ours(node.reason) and is_down(node):
            # Slurm's own word, or an admin's, about a node that is down. On a node in service it is left over from an
            # earlier drain: State=RESUME keeps it, and nothing empties it (measured on 24.11.5).
            return self.leave("node has a reason that is not ours")
        if not self.external:
            return [Action("drain", {"brake": False})]
        return self.brake()

    def leave(self, why):
        self.notes.append(why)
        return [_unacted(self.fatal, why)]

    def brake(self):
        """An external fault may be everywhere at once: drain only while few nodes of the partition are."""
        if self.situation.shared_drains is None:
            self.lookups.append("brake")
            return [Action("drain", {"brake": True})]
        limit = brake_limit(self.situation.partition_size, self.policy)
        if self.situation.shared_drains < limit:
            return [Action("drain", {"brake": True, "limit": limit})]
        self.notes.append("brake: %d nodes drained, limit %d" % (self.situation.shared_drains, limit))
        return [Action("brake", {"limit": limit, "drained": self.situation.shared_drains,
                                 "findings": [_brief(finding) for finding in self.fatal]})]

    # recover

    def jobs(self, braked):
        """(exit code, actions on jobs)."""
        if self.situation.phase == PROLOG:
            return self.prolog(braked)
        if self.situation.phase == EPILOG:
            return 0, self.epilog()
        return 0, self.healthcheck()

    def prolog(self, braked):
        if self.job is None:
            return 0, []
        if self.situation.node_record is not None and "MAINT" in self.situation.node_record.state:
            return 0, []    # exit 1 would drain the node that an admin is working on
        whole = bool(self.situation.whole_node_gpus) and len(self.job.gpus) >= self.situation.whole_node_gpus
        if not (self.mine or whole or self.policy["job_elsewhere"] == "refuse"):
            self.notes.append("the job does not use what is faulty")
            return 0, []
        if self.situation.mode == DRAIN:
            return (0 if braked else 1), []
        job = self.asked_job()
        if job is None:
            return 1, []
        refusal = may_requeue(job)
        if refusal:
            self.notes.append("job is not requeued: " + refusal)
            return (0 if braked else 1), [self.job_event(job, refusal)]
        if job_tag(job) in self.dealt_with():
            self.notes.append("another hook has sent the job away already")
            return (0, [Action("linger", {"job": job.id})]) if braked else (1, [])
        if braked:
            delay = self.policy["brake"]["send_back"] * (self.situation.tries + 1)
            return 0, [Action("send-back", self.job_args(job, start_in=delay, tries=self.situation.tries + 1)),
                       Action("linger", {"job": job.id})]
        return 1, [Action("requeue", self.job_args(job, why="found by prolog", counts=False))]

    def epilog(self):
        if self.job is None or not self.mine or self.situation.mode != FULL:
            return []
        job = self.asked_job()
        if job is None:
            return []
        if job.end not in FAILED:
            self.notes.append("job is not requeued: it ended as %s" % (job.end or "nobody can tell"))
            return []
        if not any(self.is_new(finding, job) for finding in self.mine):
            self.notes.append("job is not requeued: the fault stood before it started")
            return []
        return self.bring_back(job, "failed and the fault is new")

    def is_new(self, finding, job):
        """True when `finding` cannot have stood before this run of the job.

        A finding without a time is new only if the job's own prolog looked (it saved a baseline): it would not
        have let the job start on a faulty GPU.
        """
        if finding.since is not None:
            return job.start is None or finding.since >= job.start - 1
        return job.has_baseline

    def healthcheck(self):
        if self.situation.mode != FULL:
            return []
        wanted = [finding for finding in self.fatal if job_action(finding, self.policy) != "none"]
        if not wanted:
            return []
        if self.situation.jobs is None:
            self.lookups.append("jobs")
            return []
        done = self.dealt_with()
        actions = []
        for job in self.situation.jobs:
            hit = [finding for finding in wanted if concerns(finding, job)]
            if not hit or job_tag(job) in done:
                continue
            if job.state != "RUNNING":
                continue    # its epilog, or slurmctld, has it already
            if not any(action_on(job, finding, self.policy) == REQUEUE_NOW for finding in hit):
                actions.append(self.job_event(job, LET_FINISH))
                continue
            if job.declared is None and not self.policy["resume"]["requeue_undeclared"]:
                actions.append(self.job_event(job, "declared no checkpoint: it runs on"))
                continue
            actions += self.bring_back(job, in_words(hit[0]))
        return actions

    def bring_back(self, job, why):
        """Requeue within the budget, else hold."""
        refusal = may_requeue(job)
        if refusal:
            self.notes.append("job %s is not requeued: %s" % (job.id, refusal))
            return [self.job_event(job, refusal)]
        budget = self.policy["resume"]["max_restarts"]
        if job.declared is not None and job.declared.max_restarts is not None:
            budget = job.declared.max_restarts
        if job.tries >= budget:
            return [Action("hold", self.job_args(job, code="GH-CKPT-BUDGET",
                                                 message="%d restarts, budget %d" % (job.tries, budget)))]
        return [Action("requeue", self.job_args(job, why=why, counts=True))]

    def dealt_with(self):
        """Tags of the runs of jobs that a hook has requeued, held or sent back for an open incident."""
        return {tag for incident in self.situation.incidents for tag in incident.jobs}

    def asked_job(self):
        """The job as slurmctld knows it, or None while it must still be asked for."""
        for job in self.situation.jobs or ():
            if job.id == self.job.id:
                return job
        if self.situation.jobs is None:
            self.lookups.append("job")
        return None

    def job_args(self, job, **more):
        plain = {"job": job.id, "restart": job.restart, "tag": job_tag(job)}
        plain.update(more)
        return plain

    def job_event(self, job, why):
        return Action("job-left", self.job_args(job, why=why))


def job_tag(job):
    """One run of one job."""
    return "%s.%s" % (job.id, job.restart)


def brake_limit(partition_size, policy):
    """How many nodes of a partition may be drained by us for external faults at one time."""
    return max(policy["brake"]["minimum"], int(partition_size * policy["brake"]["percent"] / 100))
