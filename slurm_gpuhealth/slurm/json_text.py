"""What `scontrol --json show job` prints, as the same records as the text form (parse/scontrol_text.py). Pure.

JSON escapes, so nothing a user wrote can be taken for anything else; and job_state is a list that also names
the state beneath COMPLETING. It needs Slurm's JSON serializer, which some builds lack (Debian's 22.05), and it
is long (each core of each node), so it is asked only where the text does not do.

Forms read: job_state a word (to 23.02) or a list (from 23.11); numbers plain or {"set", "infinite", "number"}.
Seen on 24.11.5 and 26.05.5 (2026-11-30).
"""
from __future__ import annotations

import json

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import hostlist
from slurm_gpuhealth.parse.scontrol_text import JobText

_TEXTS = (
    ("User", "user_name"), ("Partition", "partition"), ("NodeList", "nodes"), ("BatchHost", "batch_host"),
    ("Reason", "state_reason"), ("JobName", "name"), ("Comment", "comment"), ("AdminComment", "admin_comment"),
    ("WorkDir", "current_working_directory"), ("StdOut", "stdout_expanded"), ("StdOut", "standard_output"))
_NUMBERS = (
    ("JobId", "job_id"), ("Uid", "user_id"), ("Restarts", "restart_cnt"), ("ArrayTaskId", "array_task_id"),
    ("HetJobOffset", "het_job_offset"))
_IDS = (("ArrayJobId", "array_job_id"), ("HetJobId", "het_job_id"), ("StartTime", "start_time"),
        ("EndTime", "end_time"))    # 0 stands for none
_NO_VAL = 0xfffffffe    # slurm.h: from here on "not set"; some releases print it as a number


def jobs(text):
    """All job records as a list of JobText. Raises DataError when the text is not such JSON."""
    try:
        plain = json.loads(text)
        found = plain["jobs"]
        if not isinstance(found, list):
            raise DataError("no list of jobs in Slurm's JSON")
        return [_record(job) for job in found]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise DataError("Slurm's JSON cannot be read: %s" % type(exc).__name__) from exc


def _record(job):
    fields = {"JobId": str(int(job["job_id"]))}
    for name, key in _TEXTS:
        if isinstance(job.get(key), str) and job[key]:
            fields.setdefault(name, job[key])
    for name, key in _NUMBERS + _IDS:
        number = _number(job.get(key))
        if number is not None and (number or (name, key) not in _IDS):
            fields[name] = str(number)
    if "ArrayJobId" not in fields:
        fields.pop("ArrayTaskId", None)
    elif "ArrayTaskId" not in fields:
        fields["ArrayTaskId"] = str(job.get("array_task_string"))   # the tasks that still wait, "3-20%2"
    fields.setdefault("EndTime", "Unknown")
    for name, key in (("Requeue", "requeue"), ("BatchFlag", "batch_flag")):
        if isinstance(job.get(key), (bool, int)):
            fields[name] = str(int(job[key]))
    limit = _number(job.get("time_limit"))      # minutes
    if limit is not None:
        fields["TimeLimit"] = "%d:00" % limit
    fields["ExitCode"] = _exit_code(job.get("exit_code"))
    if _whole(job):
        fields["OverSubscribe"] = "NO"
    states = job.get("job_state", ())
    states = (states,) if isinstance(states, str) else tuple(str(state) for state in states)
    # slurmctld prints the state first and its flags behind; COMPLETING is what the text form says.
    return JobText(fields, states or ("",), _groups(job), ())


def _groups(job):
    held = _held(job)
    # A dict with the list in it from 23.11 on, before that text.
    names = held.get("list") if isinstance(held, dict) else held
    try:
        nodes = hostlist.expand(names if isinstance(names, str) else job.get("nodes") or "")
    except DataError:
        return ()
    return tuple(zip(nodes, (str(gres) for gres in job.get("gres_detail") or ())))


def _whole(job):
    """True for --exclusive."""
    held = _held(job)
    shared = job.get("shared")
    return bool(isinstance(held, dict) and held.get("whole") is True or isinstance(shared, list) and "none" in shared)


def _held(job):
    resources = job.get("job_resources")
    return resources.get("nodes") if isinstance(resources, dict) else None


def _exit_code(value):
    """"exit:signal" from {"return_code": N, "signal": {"id": N}} of any release, or a raw wait status."""
    if isinstance(value, int):
        return "%d:%d" % (value >> 8 & 0xff, value & 0x7f)
    if not isinstance(value, dict):
        return ""
    signal = value.get("signal")
    if isinstance(signal, dict):
        signal = signal.get("id", signal.get("signal_id"))
    return "%d:%d" % (_number(value.get("return_code")) or 0, _number(signal) or 0)


def _number(value):
    """A number of either form, or None where it is not set."""
    if isinstance(value, dict):
        if not value.get("set", True) or value.get("infinite"):
            return None
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _NO_VAL:
        return None
    return int(value)
