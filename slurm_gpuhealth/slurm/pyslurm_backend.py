"""The backend on pyslurm, where it was built for the Slurm that runs here. An optional import (GPL-2.0).

Written against the API that pyslurm 25.11.2 publishes (its sdist, read 2026-11-30): Node.load, Nodes.load,
Node.modify, Job.load, Jobs.load, Job.requeue, Job.hold, Job.modify(JobSubmitDescription), slurmctld.ping_primary,
RPCError. Each call runs in a child with a deadline: libslurm can block for longer than a hook may last, and ends
the whole process where it finds no configuration.

A job is addressed by its own number here, not as A_T: the RPCs that pyslurm uses carry the number, which names
one record (slurmctld/job_mgr.c job_requeue, update_job). What pyslurm has no call for goes through scontrol:
State=SpecialExit, requeue of running jobs only, an empty comment, texts that are not UTF-8.
"""
from __future__ import annotations

import time

from slurm_gpuhealth import model, supervise
from slurm_gpuhealth.errors import SlurmUnavailable
from slurm_gpuhealth.parse import hostlist, scontrol_text
from slurm_gpuhealth.slurm import protocol
from slurm_gpuhealth.slurm.protocol import Refused
from slurm_gpuhealth.slurm.scontrol import Scontrol

_MAX_JOBS_ON_NODE = 1024


class Pyslurm(protocol.Client):
    """Slurm through libslurm. About 40 ms a call, most of it the import in the child."""

    backend = "pyslurm"

    def __init__(self, cfg, root="", until=None):
        super().__init__(cfg, root, until)
        self._other = Scontrol(cfg, root, until)

    def _node_once(self, name, left):
        return model.from_plain(model.NodeRecord, self._ask("node", left, name=name))

    def _all_nodes_once(self, left):
        return [model.from_plain(model.NodeRecord, plain) for plain in self._ask("nodes", left)]

    def _job_once(self, job_id, node, restart, left):
        return scontrol_text.to_job(_record(self._ask("job", left, job_id=job_id, node=node)), node, restart)

    def _jobs_on_node_once(self, name, left):
        return [scontrol_text.to_job(_record(plain), name) for plain in self._ask("jobs", left, node=name)]

    def _ping_once(self, left):
        return self._ask("ping", left)

    def _update_node_once(self, name, state, reason, left):
        if reason is not None and not _sendable(reason):
            self._other._update_node_once(name, state, reason, left)
        else:
            self._ask("update_node", left, name=name, state=state, reason=reason)

    def _requeue_once(self, target, running_only, hold, special, left):
        if running_only or special:
            self._other._requeue_once(target, running_only, hold, special, left)
        else:
            self._ask("requeue", left, job_id=target[1], hold=hold)

    def _update_job_once(self, target, changes, left):
        if not all(_sendable(value) for value in changes.values() if isinstance(value, str)):
            self._other._update_job_once(target, changes, left)
        else:
            self._ask("update_job", left, job_id=target[1], changes=changes)

    def _ask(self, what, left, **args):
        """Do one thing in a child: what it answers, SlurmUnavailable or Refused."""
        done = supervise.call(_in_child, dict(args, what=what, env=self._other.environment()), left,
                              name="pyslurm", grace=0.1)
        for kind, plain in done.records:
            if kind == "answer":
                return plain
            if kind == "said-no":
                if protocol.is_away(plain):
                    raise SlurmUnavailable(plain)
                raise Refused(plain)
        raise SlurmUnavailable("pyslurm: %s" % (done.status.detail or done.status.outcome))


def unusable(cfg):
    """Why pyslurm cannot be used here, "" when it can. Imports it in a child."""
    done = supervise.call(_in_child, {"what": "version", "env": Scontrol(cfg).environment()},
                          cfg["deadlines"]["slurm"], name="pyslurm", grace=0.1)
    if any(kind == "answer" for kind, _ in done.records):
        return ""
    return done.status.detail or done.status.outcome


def _sendable(text):
    """pyslurm takes an empty text for "no change", and encodes as UTF-8."""
    try:
        return bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def _record(plain):
    return scontrol_text.JobText(plain["fields"], tuple(plain["states"]),
                                 tuple(tuple(group) for group in plain["groups"]), ())


# What runs in the child.


def _in_child(spec, emit):
    import os
    os.environ.clear()      # as for scontrol: a site's or a user's settings must not change the answer
    os.environ.update(spec["env"])
    import pyslurm
    try:
        emit("answer", _ACTIONS[spec["what"]](pyslurm, spec))
    except pyslurm.RPCError as exc:
        emit("said-no", str(exc.msg or exc))


def _node(pyslurm, spec):
    return _plain_node(pyslurm.Node.load(spec["name"]))


def _nodes(pyslurm, spec):
    return [_plain_node(node) for node in pyslurm.Nodes.load().values()]


def _plain_node(node):
    return model.to_plain(model.NodeRecord(
        name=node.name, state=scontrol_text.node_state((node.state or "").split("+")),
        reason=node.reason or "", reason_user=node.reason_user or "", reason_time=node.reason_time,
        partitions=tuple(node.partitions or ()), boot_time=node.boot_time))


def _job(pyslurm, spec):
    """Job.load gives the first record of what slurmctld sends: for the id of an array that may be another task."""
    job = pyslurm.Job.load(spec["job_id"])
    if job.id == spec["job_id"] and job.array_tasks_waiting is None:
        return _plain_job(job)
    records = [_plain_job(one) for one in pyslurm.Jobs.load().values()
               if spec["job_id"] in (one.id, one.array_id)]
    chosen = scontrol_text.choose([_record(plain) for plain in records], spec["job_id"], spec["node"])
    if chosen is None:
        raise pyslurm.RPCError(msg="Invalid job id specified")
    return {"fields": chosen.fields, "states": chosen.states, "groups": chosen.groups}


def _jobs(pyslurm, spec):
    found: list = []
    for job in pyslurm.Jobs.load().values():
        if len(found) < _MAX_JOBS_ON_NODE and job.allocated_nodes and job.state in _HOLDING \
                and hostlist.contains(job.allocated_nodes, spec["node"]):
            found.append(_plain_job(job))
    return found


_HOLDING = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "RESIZING", "SIGNALING")


def _plain_job(job):
    """The same fields as scontrol prints, so that one reader (scontrol_text.to_job) serves all backends."""
    def number(value):
        return None if value is None else str(int(value))

    task = job.array_tasks_waiting or number(job.array_task_id)
    if job.array_id and task is None:
        task = "0"      # pyslurm takes task 0 for "not set" (utils/uint.pyx u32_parse)
    fields = {
        "JobId": number(job.id), "ArrayJobId": number(job.array_id or None),
        "ArrayTaskId": task, "HetJobId": number(job.heterogeneous_id or None),
        "JobName": job.name, "User": job.user_name, "Uid": number(job.user_id), "Reason": job.state_reason,
        "Requeue": number(job.is_requeueable), "Restarts": number(job.requeue_count),
        "BatchFlag": number(job.is_batch_job),
        "ExitCode": "%d:%d" % (job.exit_code or 0, job.exit_code_signal or 0),
        "StartTime": number(job.start_time), "EndTime": number(job.end_time) or "Unknown",
        "TimeLimit": None if job.time_limit is None else "%d:00" % job.time_limit,
        "Partition": job.partition, "NodeList": job.allocated_nodes, "BatchHost": job.batch_host,
        "Comment": job.comment, "AdminComment": job.admin_comment,
        "WorkDir": job.working_directory, "StdOut": job.standard_output,
    }
    if not fields["ArrayJobId"]:
        fields["ArrayTaskId"] = None
    groups = []
    for node, held in job.get_resource_layout_per_node().items():
        texts = ["%s:%s(IDX:%s)" % (name, one.get("count", 0), one.get("indexes", ""))
                 for name, one in (held.get("gres") or {}).items() if isinstance(one, dict)]
        groups.append((node, ",".join(texts)))
    return {"fields": {key: value for key, value in fields.items() if value}, "states": [job.state],
            "groups": groups}


def _update_node(pyslurm, spec):
    changes = {key: spec[key] for key in ("state", "reason") if spec[key] is not None}
    pyslurm.Node(spec["name"]).modify(pyslurm.Node(**changes))


def _requeue(pyslurm, spec):
    pyslurm.Job(spec["job_id"]).requeue(hold=spec["hold"])


def _update_job(pyslurm, spec):
    changes = spec["changes"]
    if "hold" in changes:
        pyslurm.Job(spec["job_id"]).hold()
        return
    values = {key: changes[key] for key in ("comment", "admin_comment") if key in changes}
    if "start" in changes:
        values["begin_time"] = int(time.time()) + changes["start"]
    pyslurm.Job(spec["job_id"]).modify(pyslurm.JobSubmitDescription(**values))


def _ping(pyslurm, spec):
    return bool(pyslurm.slurmctld.ping_primary().is_responding)


def _version(pyslurm, spec):
    return str(pyslurm.__version__)


_ACTIONS = {"node": _node, "nodes": _nodes, "job": _job, "jobs": _jobs, "update_node": _update_node,
            "requeue": _requeue, "update_job": _update_job, "ping": _ping, "version": _version}
