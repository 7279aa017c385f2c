"""What every Slurm backend can do, and the rules both share.

A backend (scontrol.py, pyslurm_backend.py) fills in the few methods whose names begin with an underscore and
end in `_once`: one try, within a given time. Here is what is the same for all: which id a job is addressed
by, retries within the deadline, and what Slurm's refusals mean.

Each public method raises SlurmUnavailable when slurmctld did not answer in time (the action may be spooled),
and Refused, a SlurmRefused with a `kind`, when it answered and said no.
"""
from __future__ import annotations

import re
import time

from slurm_gpuhealth.errors import SlurmRefused, SlurmUnavailable, UsageError

# Kinds of refusal.
NOT_BATCH = "not-batch"         # srun or salloc: only the hook's exit code speaks
NO_REQUEUE = "no-requeue"       # --no-requeue, JobRequeue=0, or the partition is gone
UNKNOWN_JOB = "unknown-job"     # never was, or purged after MinJobAge
PENDING = "pending"             # asked to requeue what is pending already: somebody did it
NOT_PENDING = "not-pending"     # asked to change what only a pending job allows
DONE = "done"                   # the job has ended
PERMISSION = "permission"
UNKNOWN_NODE = "unknown-node"
TOO_LONG = "too-long"           # a text longer than Slurm takes (comment: 1024 bytes)
AMBIGUOUS = "ambiguous"         # what the job's owner wrote makes the record unreadable for sure
OTHER = "other"

# Slurm's own texts (common/slurm_errno.c of 22.05.8 and 24.11.5; the same words on 26.05.5, 2026-11-30).
_KINDS = (
    ("Only batch jobs are accepted or processed", NOT_BATCH),           # ESLURM_BATCH_ONLY
    ("Requested operation is presently disabled", NO_REQUEUE),          # ESLURM_DISABLED
    ("Invalid job id specified", UNKNOWN_JOB),                          # ESLURM_INVALID_JOB_ID
    ("Job is pending execution", PENDING),                              # ESLURM_JOB_PENDING
    ("Job is no longer pending execution", NOT_PENDING),                # ESLURM_JOB_NOT_PENDING
    ("Job has already finished", DONE),                                 # ESLURM_JOB_FINISHED
    ("Job/step already completing or completed", DONE),                 # ESLURM_ALREADY_DONE
    ("Job is not pending nor running", DONE),                           # ESLURM_JOB_NOT_PENDING_NOR_RUNNING
    ("Access/permission denied", PERMISSION),                           # ESLURM_ACCESS_DENIED
    ("Invalid user id", PERMISSION),                                    # ESLURM_USER_ID_MISSING
    ("Invalid node name", UNKNOWN_NODE),                                # ESLURM_INVALID_NODE_NAME
    ("other parameter too long", TOO_LONG),                             # ESLURM_PATHNAME_TOO_LONG
)
_KINDS_BY_FORM = (
    (re.compile(r"\bJob \d+(?:[_+]\d+)? not found"), UNKNOWN_JOB),      # scontrol/info_job.c
    (re.compile(r"\bNode \S+ (?:not found|does not exist)"), UNKNOWN_NODE),
)
# What means "no answer", to be tried again.
_AWAY = (
    "Unable to contact slurm controller", "Communication connection failure", "Message send failure",
    "Message receive failure", "Communication shutdown failure", "Socket timed out", "Zero Bytes were",
    "Received zero length message", "Failed to send entire message", "backup controller in standby",
    "Controller is in standby mode", "Rate limit exceeded", "Connection refused", "Connection timed out",
    "Connection reset", "No route to host", "Protocol authentication error",
    "Unable to establish a configuration source", "Could not establish a configuration source",
    "Unable to process configuration file", "Job can not be altered now, try again later",
    "Resource temporarily unavailable", "Name or service not known", "Temporary failure in name resolution",
)
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")
_FIRST_PAUSE, _MAX_PAUSE = 0.1, 0.5


class Refused(SlurmRefused):
    """slurmctld said no. kind: one of the constants above; the message is Slurm's own text."""

    def __init__(self, message, kind=None):
        super().__init__(message)
        self.kind = kind or kind_of(message)


def kind_of(text):
    """The kind of a refusal, from Slurm's text."""
    for words, kind in _KINDS:
        if words in text:
            return kind
    for form, kind in _KINDS_BY_FORM:
        if form.search(text):
            return kind
    return OTHER


def is_away(text):
    """True when Slurm's text says that slurmctld could not be reached, so that trying again may help."""
    return any(words in text for words in _AWAY)


def check_node_name(name):
    """`name`, when it can be a node's name; else UsageError. It becomes part of an argument of scontrol."""
    if not _NODE_NAME.match(name):
        raise UsageError("not a node name: %r" % name[:60])
    return name


class Client:
    """Base of the backends.

    until: monotonic time after which no call may go on (the end of the hook), or None. It may be set at any
    time. Each method takes at most `deadlines.slurm` seconds of the configuration, retries included.
    """

    backend = ""

    def __init__(self, cfg, root="", until=None):
        self.cfg = cfg
        self.root = root
        self.until = until

    # What is read.

    def node(self, name):
        """model.NodeRecord of one node. Refused "unknown-node" when Slurm does not know it."""
        check_node_name(name)
        return self._try(lambda left: self._node_once(name, left))

    def all_nodes(self):
        """Tuple of model.NodeRecord of all nodes. One call; slurmctld sends all of them to any client."""
        return tuple(self._try(self._all_nodes_once))

    def partition_nodes(self, partition):
        """Tuple of model.NodeRecord of the nodes that are in `partition`."""
        return tuple(record for record in self.all_nodes() if partition in record.partitions)

    def job(self, job_id, node=None, restart=None):
        """model.Job of a job id; of a job array the task that has this id, or else the one running on `node`.

        node: whose GPUs `gpus` names (default: the batch host). restart: the restart count that the hook was
        given; a higher one now means that the run ended by a requeue. Refused "unknown-job" when there is none,
        "ambiguous" when its owner's texts make the record unreadable for sure.
        """
        return self._try(lambda left: self._job_once(int(job_id), node, restart, left))

    def jobs_on_node(self, name):
        """Tuple of model.Job of all jobs that hold something on the node, `gpus` being those there.

        Jobs whose nodes were given back already (a requeue that waits) are not among them. A job that cannot be
        read for sure is there with its id, state and nodes only.
        """
        check_node_name(name)
        return tuple(self._try(lambda left: self._jobs_on_node_once(name, left)))

    def ping(self):
        """True when the controller answers, False when it does not."""
        try:
            return self._try(self._ping_once)
        except SlurmUnavailable:
            return False

    # What is changed. Each returns None unless it says otherwise.

    def drain(self, name, reason):
        """Set a node to DRAIN with this reason. It replaces a reason that stands there: look first."""
        self._update_node(name, "DRAIN", reason)

    def resume(self, name):
        """Put a drained node back. Slurm takes its reason away (of one that does not respond, once it does)."""
        self._update_node(name, "RESUME", None)

    def set_reason(self, name, reason):
        """Replace the reason of a node and leave its state as it is."""
        self._update_node(name, None, reason)

    def requeue(self, job, running_only=False):
        """Requeue a job. True when this call did it, False when it was requeued already.

        running_only: does nothing to a job that has ended meanwhile (and returns True all the same), as a plain
        requeue would run a completed job again and one that its user cancelled; not for Epilog, where every job
        counts as ended.
        """
        return self._requeue(job, running_only, hold=False, special=False)

    def requeue_hold(self, job, special_exit=True):
        """Requeue a job into a held state: SpecialExit (SE) or plainly held. Returns as requeue.

        Where it was requeued already and waits, it is held as it is (JobHeldAdmin), and False comes back.
        """
        if self._requeue(job, running_only=False, hold=True, special=special_exit):
            return True
        target = self.target(job)
        self._try(lambda left: self._update_job_once(target, {"hold": True}, left))
        return False

    def set_start(self, job, seconds_from_now):
        """Set when a pending (just requeued) job may start, in whole seconds from now."""
        seconds = max(0, int(seconds_from_now))
        target = self.target(job)
        self._try(lambda left: self._update_job_once(target, {"start": seconds}, left))

    def set_comment(self, job, text):
        """Set the comment of a job that has not ended (or was requeued since), byte for byte."""
        target = self.target(job)
        self._try(lambda left: self._update_job_once(target, {"comment": text}, left))

    def set_admin_comment(self, job, text):
        """Set the AdminComment of a job; it survives a requeue."""
        target = self.target(job)
        self._try(lambda left: self._update_job_once(target, {"admin_comment": text}, left))

    # What is shared.

    def target(self, job):
        """(id as text, numeric id) that addresses this job and nothing else.

        A task of an array is A_T: a bare id that is also the array's would address the whole array. A component
        of a heterogeneous job is addressed through its leader. Whether a job is either is known to slurmctld
        alone, so a job that was only read from a hook's environment (state "") is looked up first.
        """
        if not job.state and job.het_leader is None and job.array_task is None:
            job = self.job(job.id)
        if job.het_leader is not None:
            return str(job.het_leader), job.het_leader
        if job.array_job is not None:
            if job.array_task is None:
                raise Refused("job %d stands for all waiting tasks of an array" % job.id, OTHER)
            return "%d_%d" % (job.array_job, job.array_task), job.id
        return str(job.id), job.id

    def _requeue(self, job, running_only, hold, special):
        target = self.target(job)
        try:
            self._try(lambda left: self._requeue_once(target, running_only, hold, special, left))
        except Refused as exc:
            if exc.kind == PENDING:
                return False
            raise
        return True

    def _update_node(self, name, state, reason):
        check_node_name(name)
        self._try(lambda left: self._update_node_once(name, state, reason, left))

    def _try(self, once):
        """Call once(seconds left) until it answers; SlurmUnavailable when time is up."""
        end = time.monotonic() + self.cfg["deadlines"]["slurm"]
        if self.until is not None:
            end = min(end, self.until)
        pause = _FIRST_PAUSE
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise SlurmUnavailable("no time left to ask slurmctld")
            try:
                return once(left)
            except SlurmUnavailable:
                if end - time.monotonic() <= pause:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE)

    # One try each, in the backends.

    def _node_once(self, name, left):
        raise NotImplementedError

    def _all_nodes_once(self, left):
        raise NotImplementedError

    def _job_once(self, job_id, node, restart, left):
        raise NotImplementedError

    def _jobs_on_node_once(self, name, left):
        raise NotImplementedError

    def _ping_once(self, left):
        raise NotImplementedError

    def _update_node_once(self, name, state, reason, left):
        raise NotImplementedError

    def _requeue_once(self, target, running_only, hold, special, left):
        raise NotImplementedError

    def _update_job_once(self, target, changes, left):
        raise NotImplementedError
