"""The backend that runs `scontrol` and `squeue`: argument lists, absolute paths, no shell, a time limit each.

How scontrol reads `KEY=VALUE` (scontrol/update_node.c and update_job.c of 22.05.8 and 24.11.5; tried on
24.11.5): the value is everything behind the first `=` of one argument. Of a node's Reason one `"` is taken off
each end, so reasons are sent in quotes and arrive byte for byte; a job's Comment is taken as it is.
"""
from __future__ import annotations

import os
import time

from slurm_gpuhealth import command, paths
from slurm_gpuhealth.errors import DataError, SlurmUnavailable, UsageError
from slurm_gpuhealth.model import Job
from slurm_gpuhealth.parse import scontrol_text
from slurm_gpuhealth.slurm import json_text, protocol
from slurm_gpuhealth.slurm.protocol import Refused

# The longest answers: all nodes of a large cluster, or one job of a thousand nodes as JSON.
_MAX_BYTES = 64 << 20
_MAX_JOBS_ON_NODE = 1024
_JOB_LINE = "%A|%i|%U|%T|%P"     # squeue fields that no user's text gets into


class Scontrol(protocol.Client):
    """Slurm through its command line tools. Works wherever Slurm does; about 6 ms a call."""

    backend = "scontrol"

    def __init__(self, cfg, root="", until=None):
        super().__init__(cfg, root, until)
        self._bin = paths.under(root, cfg["slurm"]["bin_dir"])
        # Times as seconds since the epoch; the answer must not depend on a site's settings for people.
        self._env = {"SLURM_TIME_FORMAT": "%s"}
        conf = paths.under(root, cfg["slurm"]["conf"])
        if os.path.exists(conf):    # where it is not there (configless), Slurm finds it by itself
            self._env["SLURM_CONF"] = conf
        self._has_json = True

    def environment(self):
        """All variables that Slurm's tools (and pyslurm) are given."""
        return dict(command.CLEAN_ENV, **self._env)

    # One try each.

    def _node_once(self, name, left):
        records = scontrol_text.nodes(self._scontrol(["-o", "show", "node", name], left))
        for record in records:
            if record.name == name:
                return record
        # It says so and fails where there is no such node. This is no answer.
        raise SlurmUnavailable("scontrol said nothing about node %s" % name)

    def _all_nodes_once(self, left):
        return scontrol_text.nodes(self._scontrol(["-o", "show", "node"], left))

    def _job_once(self, job_id, node, restart, left):
        end = time.monotonic() + left
        record = self._record(job_id, node, end)
        if "COMPLETING" in record.states or record.doubtful:
            # Only JSON names the state beneath COMPLETING, and tells all texts apart.
            record = self._from_json(int(record.fields["JobId"]), end) or record
        if "Comment" in record.doubtful:
            record = self._with_comment(record, end)
        return scontrol_text.to_job(record, node, restart)

    def _jobs_on_node_once(self, name, left):
        end = time.monotonic() + left
        out = self._squeue(["-h", "-w", name, "-o", _JOB_LINE], left)
        jobs = []
        for line in out.split("\n")[:_MAX_JOBS_ON_NODE]:
            parts = line.split("|")
            if len(parts) != 5 or not parts[0].isdigit():
                continue
            job = self._job_on_node(name, parts, end)
            if job is not None and name in job.nodes:
                jobs.append(job)
        return jobs

    def _job_on_node(self, name, parts, end):
        job_id, target, uid, state, partition = parts
        try:
            out = self._scontrol(["-d", "show", "job", target], self._left(end))
            return scontrol_text.to_job(scontrol_text.one(out, job_id), name)
        except Refused:
            return None     # it has gone since
        except DataError:
            record = self._from_json(int(job_id), end)
        if record is not None:
            return scontrol_text.to_job(record, name)
        return Job(id=int(job_id), uid=int(uid) if uid.isdigit() else None, nodes=(name,), state=state,
                   partition=partition)

    def _ping_once(self, left):
        return " UP" in self._scontrol(["ping"], left)

    def _update_node_once(self, name, state, reason, left):
        argv = ["update", "NodeName=" + name]
        if state:
            argv.append("State=" + state)
        if reason is not None:
            argv.append('Reason="%s"' % reason)
        self._scontrol(argv, left)

    def _requeue_once(self, target, running_only, hold, special, left):
        argv = ["requeuehold" if hold else "requeue"]
        if special:
            argv.append("State=SpecialExit")
        if running_only:
            argv.append("incomplete")
        self._scontrol(argv + [target[0]], left)

    def _update_job_once(self, target, changes, left):
        if "hold" in changes:
            self._scontrol(["hold", target[0]], left)
            return
        argv = ["update", "JobId=" + target[0]]
        if "start" in changes:
            argv.append("StartTime=now+%d" % changes["start"])
        if "comment" in changes:
            argv.append("Comment=" + changes["comment"])
        if "admin_comment" in changes:
            argv.append("AdminComment=" + changes["admin_comment"])
        self._scontrol(argv, left)

    # Records of jobs.

    def _record(self, job_id, node, end):
        """The record of a job that is sure to be this one's, or Refused."""
        out = self._scontrol(["-d", "show", "job", str(job_id)], self._left(end))
        try:
            records = scontrol_text.jobs(out)
            chosen = scontrol_text.choose(records, job_id, node)
            if chosen is not None and len(records) == 1:
                return chosen
            if chosen is not None:
                # All tasks of an array or parts of a heterogeneous job came. Ask for the one alone, so that
                # nothing inside another one's texts can stand for it.
                out = self._scontrol(["-d", "show", "job", scontrol_text.target(chosen)], self._left(end))
                return scontrol_text.one(out, chosen.fields["JobId"])
        except DataError as exc:
            record = self._from_json(job_id, end, node)
            if record is None:
                raise Refused("job %d: %s" % (job_id, exc), protocol.AMBIGUOUS) from exc
            return record
        if not records:
            raise SlurmUnavailable("scontrol said nothing about job %d" % job_id)
        raise Refused("Job %d not found" % job_id)

    def _from_json(self, job_id, end, node=None):
        """The job's record from --json, or None where this Slurm cannot print it (in time)."""
        if not self._has_json:
            return None
        try:
            out = self._scontrol(["--json", "show", "job", str(job_id)], self._left(end))
            return scontrol_text.choose(json_text.jobs(out), job_id, node)
        except Refused as exc:
            # 22.05 without its serializer says so on every call.
            self._has_json = exc.kind != protocol.OTHER
        except (DataError, SlurmUnavailable):
            pass
        return None

    def _with_comment(self, record, end):
        """The record with its comment: squeue printing one field alone leaves no doubt where it ends."""
        fields = record.fields
        target = scontrol_text.target(record)
        out = self._squeue(["-h", "-t", "all", "-j", target, "-o", "%k"], self._left(end))
        comment = out[:-1] if out.endswith("\n") else out
        if comment != "(null)":
            fields["Comment"] = comment
        return record._replace(doubtful=tuple(name for name in record.doubtful if name != "Comment"))

    # Running the tools.

    def _scontrol(self, argv, left):
        return self._run("scontrol", argv, left)

    def _squeue(self, argv, left):
        return self._run("squeue", argv, left)

    def _left(self, end):
        left = end - time.monotonic()
        if left <= 0:
            raise SlurmUnavailable("no time left to ask slurmctld")
        return left

    def _run(self, tool, argv, left):
        """Standard output of one call that went well; SlurmUnavailable or Refused otherwise."""
        if any("\0" in word for word in argv):
            raise UsageError("a text for Slurm holds a NUL byte")
        done = command.run(["%s/%s" % (self._bin, tool)] + argv, left, max_bytes=_MAX_BYTES, env=self._env,
                           grace=0.2)
        if done.timed_out:
            raise SlurmUnavailable("%s gave no answer in %.1f s" % (tool, done.seconds))
        if done.rc == 0:
            return done.out
        said = (done.err.strip() or done.out.strip()).split("\n")[-1][:500]
        if done.rc == 127 or done.rc < 0 or protocol.is_away(done.err):
            raise SlurmUnavailable(said or "%s ended with status %d" % (tool, done.rc))
        raise Refused(said or "%s %s: status %d" % (tool, argv[0], done.rc))
