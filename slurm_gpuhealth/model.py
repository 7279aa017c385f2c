"""The values that flow through the program: findings, the job, the situation, the plan.

Plain namedtuples (10 types cost 3 ms to define, dataclasses 22 ms) that turn into JSON and back without
loss, so that a decision can be kept with its evidence and made again later. Times are seconds since the
epoch (float), unless a name says otherwise. Nothing here reads a clock or a file.
"""
from __future__ import annotations

from collections import namedtuple

# Outcome of one check. UNKNOWN means "could not look" and never becomes OK; SKIPPED means "was not asked".
OK, BAD, UNKNOWN, SKIPPED = "ok", "bad", "unknown", "skipped"

# Severity of a finding, mildest first. "unknown" is a finding that says that something could not be read.
NOTE, WARNING, UNREAD, FATAL = "note", "warning", "unknown", "fatal"
SEVERITIES = (NOTE, WARNING, UNREAD, FATAL)

# When the checks run. "manual" is `gpuhealth check`, which changes nothing.
PROLOG, EPILOG, HEALTHCHECK, TASKPROLOG, MANUAL = "prolog", "epilog", "healthcheck", "taskprolog", "manual"
PHASES = (PROLOG, EPILOG, HEALTHCHECK, TASKPROLOG, MANUAL)

# What a drain does to the jobs that use the faulty thing (catalogue/codes/*.yaml, key job).
REQUEUE_NOW, LET_FINISH, NO_ACTION = "requeue-now", "let-finish", "none"

# Modes of operation, mildest first (docs/design.md).
OBSERVE, DRAIN, FULL = "observe", "drain", "full"

Subject = namedtuple("Subject", "kind index uuid bdf name", defaults=(None, "", "", ""))
Subject.__doc__ = """What a finding is about.

kind: "gpu" (one GPU), "gpus" (all GPUs of the node), "mount", "part" (a named part of the node: a network port, a
service, an NVSwitch, a disk), "node".
index: gres index of the GPU (the N of gpuN in Slurm's IDX), or None.
uuid, bdf: the GPU's UUID and PCI address (dddd:bb:dd.f, lower case), "" where not known.
name: path of a mount, name of a part ("mlx5_0/1", "nvidia-fabricmanager", "nvswitch1"), or "".
"""

# Kinds of subject that go by their name.
NAMED = ("mount", "part")

NODE = Subject("node")
ALL_GPUS = Subject("gpus")

Finding = namedtuple(
    "Finding", "code severity subject seen expected since confidence data", defaults=("", "", None, 1.0, None))
Finding.__doc__ = """One thing a check saw.

code: reason code of the catalogue (GH-...). severity: one of SEVERITIES, before site policy is applied.
seen, expected: short printable texts for people ("x8", "x16"). since: time it was first seen, or None.
confidence: 0 to 1. data: dict of plain values for machines (xid number, counters), or None.
"""

Job = namedtuple(
    "Job",
    "id uid user partition nodes batch_host gpus restart comment whole_node array_job array_task state end"
    " exit_code reason batch requeue start time_limit name work_dir stdout het_leader declared tries has_baseline",
    defaults=(None, "", "", (), "", (), 0, "", False, None, None, "", "", "", "", None, None, None, None, "",
              "", "", None, None, 0, False))
Job.__doc__ = """A Slurm job as far as it is known; what only slurmctld knows is None until it was asked.

id: job id (int). gpus: tuple of gres indices on this node. nodes: tuple of node names. restart: Slurm's
restart count of the run that this hook belongs to. array_job, array_task: ints or None.
state: "RUNNING", "COMPLETING", ... as slurmctld says. end: how the run ended ("completed", "failed",
"cancelled", "timeout", "requeued", "preempted", "node_fail", "out_of_memory", "running", "" unknown).
exit_code: "exit:signal". batch, requeue: bool or None. start: start time of the run. stdout: path.
het_leader: job id of the leader of a heterogeneous job, or None. declared: Declared, or None when the job said
nothing of checkpoints. tries: requeues of ours that count against its budget. has_baseline: our prolog saw it start.
"""

Declared = namedtuple("Declared", "ckpt requeue max_restarts total_steps when_none",
                      defaults=("", None, None, None, ""))
Declared.__doc__ = """What a job says of itself in its comment (parse/comment.py): the pattern of its checkpoint path,
and its wishes; None or "" where it says nothing."""

NodeRecord = namedtuple("NodeRecord", "name state reason reason_user reason_time partitions boot_time",
                        defaults=((), "", "", None, (), None))
NodeRecord.__doc__ = """slurmctld's view of this node.

state: tuple of upper-case flags ("IDLE", "DRAIN", "MAINT", ...)."""

Incident = namedtuple("Incident", "id key boot_id code subject opened reason evidence drained jobs closed also pending",
                      defaults=("", "", "", "", NODE, 0.0, "", "", False, (), None, (), False))
Incident.__doc__ = """One fault on this node, from its first finding to its end.

id: short hex id, the [ev=...] of the reason. key: boot_id, code and subject in one string.
drained: True once the drain of this incident was done by us. jobs: tuple of "JOBID.RESTART" already acted on.
closed: time it ended, or None while open. also: other faults that came with it, "CODE|subject" each.
pending: slurmctld could not say which jobs run here, so what is to happen to them is still to be decided.
"""

Ack = namedtuple("Ack", "code subject until by", defaults=("", None, ""))

Situation = namedtuple(
    "Situation",
    "phase node now boot_id mode job incidents acks clean_rounds node_record jobs shared_drains"
    " partition_size tries dropped whole_node_gpus recent_users",
    defaults=("manual", "", 0.0, "", OBSERVE, None, (), (), 0, None, None, None, None, 0, (), 0, ()))
Situation.__doc__ = """All that a decision depends on besides the findings and the policy.

node_record: NodeRecord, or None when slurmctld was not asked or did not answer. jobs: tuple of Job on
this node as slurmctld sees them, or None when not asked. shared_drains: how many nodes of the partition
we drained lately for the same layer, and partition_size, for the brake; None when not counted.
incidents: tuple of open Incident. acks: tuple of Ack. tries: how often the brake sent this job back.
"""

Action = namedtuple("Action", "kind args", defaults=(None,))
Action.__doc__ = """One step of a plan: kind ("evidence", "drain", "requeue", ...) and a dict of plain values."""

Plan = namedtuple("Plan", "exit_code actions reason code lookups notes", defaults=(0, (), "", "", (), ()))
Plan.__doc__ = """What to do, in order. Same findings, situation and policy: same plan.

exit_code: the hook's exit status. actions: tuple of Action in the order they must happen.
reason: drain reason without the [ev=...] part, "" when nothing is drained. code: the worst code.
lookups: names of what must be asked of slurmctld before the plan is final ("node", "job", "jobs", "brake").
notes: short texts that say why something was not done.
"""

_NESTED = {"subject": Subject, "job": Job, "node_record": NodeRecord, "declared": Declared}
_NESTED_LISTS = {"incidents": Incident, "jobs": Job, "acks": Ack, "actions": Action}


def to_plain(value):
    """Turn a namedtuple (nested as deep as you like) into dicts, lists and scalars that json can write."""
    if hasattr(value, "_fields"):
        return {name: to_plain(item) for name, item in zip(value._fields, value)}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def from_plain(kind, plain):
    """Build a namedtuple of `kind` from what to_plain wrote; unknown keys (a newer version) are dropped."""
    values = {}
    for name in kind._fields:
        if name not in plain:
            continue
        item = plain[name]
        if isinstance(item, dict) and name in _NESTED:
            item = from_plain(_NESTED[name], item)
        elif isinstance(item, list):
            # Incident.jobs is a list of strings, Situation.jobs one of Job: only dicts are rebuilt.
            inner = _NESTED_LISTS.get(name)
            item = tuple(from_plain(inner, one) if inner and isinstance(one, dict) else
                         (tuple(one) if isinstance(one, list) else one) for one in item)
        values[name] = item
    return kind(**values)


def worst(findings):
    """The severity of the worst finding, or None for none."""
    best = -1
    for finding in findings:
        best = max(best, SEVERITIES.index(finding.severity))
    return SEVERITIES[best] if best >= 0 else None
