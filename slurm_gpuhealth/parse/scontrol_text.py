"""What `scontrol show node` and `scontrol -d show job` print, as records. Pure.

Users control a good part of a job's record, and Slurm escapes nothing: a job name or a comment may hold blanks,
`=`, newlines, even a whole record of its own (seen on 22.05.8, 24.11.5 and 26.05.5). So a record is not split
into key and value. It is read around its core, the line that Slurm writes from its own values alone

    JobState=... Reason=... [FailedNode=...] Dependency=...
    Requeue=N Restarts=N BatchFlag=N Reboot=N ExitCode=N:N

The real core is always there. Found once, it is the real one; found twice, somebody wrote the other, and the
record is refused as ambiguous rather than believed. From the core on, Slurm's own fields (times, partition,
nodes, GPUs) come before any text of the user (`Network=`, `Command=`, `WorkDir=`, comments, paths): the first
of each is real. Ask without -o: then each field or group of fields begins a line, and only a newline and three
blanks in a user's text can look like one. The user's own texts are taken where no doubt is left, else left out.

Order of fields: api/job_info.c of 22.05.8, scontrol/info_job.c of 24.11.5, output of 26.05.5 (2026-11-30).
"""
from __future__ import annotations

import re
from collections import namedtuple
from time import mktime

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.model import Job, NodeRecord
from slurm_gpuhealth.parse import hostlist

JobText = namedtuple("JobText", "fields states groups doubtful")
JobText.__doc__ = """One job record. fields: {Slurm's name: text} of what can be trusted; states: tuple of states
("COMPLETING",), several only from --json; groups: tuple of (node list, gres text); doubtful: names of the
user's own fields (Comment, WorkDir, ...) that could not be told apart and are left out of fields."""

_MAX_RECORDS = 100000
_START = re.compile(
    r"^JobId=(?P<JobId>\d+) (?:ArrayJobId=(?P<ArrayJobId>\d+) ArrayTaskId=(?P<ArrayTaskId>\S+) )?"
    r"(?:ArrayTaskThrottle=\d+ )?"
    r"(?:HetJobId=(?P<HetJobId>\d+) HetJobOffset=(?P<HetJobOffset>\d+) )?JobName=", re.MULTILINE)
# Reason and Dependency have no blanks: Slurm puts underscores into a reason's text before it prints it.
_CORE_FORM = (
    r"%(sep)sJobState=(?P<JobState>[A-Z_]+) Reason=(?P<Reason>\S*) (?:[A-Za-z]+=\S* ){0,3}Dependency=\S*"
    r"%(sep)sRequeue=(?P<Requeue>\d+) Restarts=(?P<Restarts>\d+) BatchFlag=(?P<BatchFlag>\d+) Reboot=\d+ "
    r"ExitCode=(?P<ExitCode>\d+:\d+)(?=%(sep)s)")
_USER_FORM = r"%(sep)sUserId=(\S*)\((\d+)\) GroupId=\S*\(\d+\) MCS_label="
_BEHIND_NAME_FORM = r"(?:%(sep)s(?:HetJobIdSet|SLUID)=\S*)+\Z"
# What separates lines: by itself a newline and three blanks, with -o one blank.
_FORMS = tuple({name: re.compile(form % {"sep": sep}) for name, form in (
    ("core", _CORE_FORM), ("user", _USER_FORM), ("behind_name", _BEHIND_NAME_FORM))} for sep in ("\n   ", " "))
_TRUSTED = re.compile(
    r"\s(TimeLimit|StartTime|EndTime|PreemptTime|Partition|NodeList|BatchHost|OverSubscribe|Exclusive)=(\S*)")
_GROUP = re.compile(r"\sNodes=(\S+) CPU_IDs=\S* Mem=\d+ GRES=(\S*)")
# Where the user's texts begin.
_NETWORK = re.compile(r"\sNetwork=")
_USER_KEYS = ("Network", "Command", "SubmitLine", "WorkDir", "AdminComment", "SystemComment", "Comment", "Extra",
              "StdErr", "StdIn", "StdOut")
# Up to 24.11 Slurm writes one blank behind these, 26.05 does not.
_SPACED = ("AdminComment", "SystemComment", "Comment", "Extra")
_LINE_KEY = re.compile(r"\n   ([A-Z][A-Za-z_/:]*)=")
# With -o only names can be looked for: the user's keys and those that may follow them.
_WORD_KEY = re.compile(
    r" (Network|Command|SubmitLine|WorkDir|AdminComment|SystemComment|Comment|Extra|StdErr|StdIn|StdOut|Switches|"
    r"BurstBuffer|BurstBufferState|Power|GresEnforceBind|GresAllowTaskSharing|GresOneTaskPerSharing|"
    r"KillOInInvalidDependent|SpreadJob|OOMKillStep|CpusPerTres|MemPerTres|TresBind|TresFreq|TresPerJob|"
    r"TresPerNode|TresPerSocket|TresPerTask|MailUser|NtasksPerTRES|Container|SELinuxContext|ResvPorts)=")
_GPU_INDEX = re.compile(r"(?:^|,)gpu(?::[^(),]*)*\(IDX:([0-9,-]+)\)", re.IGNORECASE)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\Z")

# How a run ended, by the state that slurmctld keeps under its COMPLETING flag (slurm.h enum job_states).
_END_OF_STATE = {
    "COMPLETED": "completed", "FAILED": "failed", "CANCELLED": "cancelled", "TIMEOUT": "timeout",
    "DEADLINE": "timeout", "NODE_FAIL": "node_fail", "BOOT_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory", "PREEMPTED": "preempted", "PENDING": "requeued", "REQUEUED": "requeued",
    "REQUEUE_HOLD": "requeued", "REQUEUE_FED": "requeued", "SPECIAL_EXIT": "requeued", "RUNNING": "running",
    "SUSPENDED": "running", "CONFIGURING": "running", "RESIZING": "running", "SIGNALING": "running",
    "STOPPED": "running",
}


def jobs(text, one_line=False):
    """All job records of `scontrol -d show job ...`, as a list of JobText. one_line: it was called with -o.

    Raises DataError when it cannot be told for sure where a record begins and which core is real. A record that
    a user has built whole inside a comment cannot be seen here: a caller that asked for one job must take the
    answer only if it is one record (`one`).
    """
    starts = list(_START.finditer(text))
    forms = _FORMS[one_line]
    cores = list(forms["core"].finditer(text))
    if len(starts) != len(cores) or len(starts) > _MAX_RECORDS:
        raise DataError("job record cannot be read for sure: %d beginnings, %d states" % (
            len(starts), len(cores)))
    records = []
    for number, (start, core) in enumerate(zip(starts, cores)):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        if not start.end() <= core.start() < end:
            raise DataError("job record cannot be read for sure: beginnings and states do not alternate")
        records.append(_record(start, core, text[core.end():end], one_line))
    return records


def target(record):
    """How scontrol addresses this one record: "27+1" in a heterogeneous job, "18_3" in an array, else its id."""
    fields = record.fields
    if "HetJobId" in fields:
        return "%s+%s" % (fields["HetJobId"], fields["HetJobOffset"])
    if _number(fields.get("ArrayTaskId")) is not None:
        return "%s_%s" % (fields["ArrayJobId"], fields["ArrayTaskId"])
    return fields["JobId"]


def one(text, job_id=None, one_line=False):
    """The only record of a text, as JobText; DataError when there is none, several, or one of another job."""
    found = jobs(text, one_line)
    if len(found) != 1:
        raise DataError("job record cannot be read for sure: %d records" % len(found))
    if job_id is not None and found[0].fields["JobId"] != str(job_id):
        raise DataError("job record is that of job %s, not of %s" % (found[0].fields["JobId"], job_id))
    return found[0]


def choose(records, job_id, node=None):
    """The record that is meant by a job id, or None.

    The one with this id, if it is one task (or no array at all): each task that runs has an id of its own. Else,
    when the id is that of an array whose rest still waits under it, the only task that is on `node`. Another
    task is never taken for one that is gone.
    """
    exact = [record for record in records if record.fields["JobId"] == str(job_id)]
    single = [record for record in exact
              if _number(record.fields.get("ArrayTaskId", "0")) is not None]
    here = [record for record in records
            if node is not None and node in _expand(record.fields.get("NodeList", ""))]
    for found in (single, here if exact and not single else []):
        if len(found) == 1:
            return found[0]
    return None


def _record(start, core, rest, one_line):
    forms = _FORMS[one_line]
    fields = {key: value for key, value in start.groupdict().items() if value is not None}
    fields.update(core.groupdict())
    before = start.string[start.end():core.start()]
    users = list(forms["user"].finditer(before))
    doubtful = []
    if len(users) == 1:
        fields["User"], fields["Uid"] = users[0].groups()
        fields["JobName"] = forms["behind_name"].sub("", before[:users[0].start()])
    else:
        doubtful += ["User", "Uid", "JobName"]
    border = _NETWORK.search(rest)
    own = rest[:border.start()] if border else rest
    for key, value in _TRUSTED.findall(own):
        if value != "(null)":
            fields.setdefault(key, value)
    groups = tuple(_GROUP.findall(own))
    if border:
        texts, bad = _user_texts(rest[border.start():], one_line, "Exclusive" not in fields)
        fields.update(texts)
        doubtful += bad
    return JobText(fields, (fields["JobState"],), groups, tuple(doubtful))


def _user_texts(rest, one_line, spaced):
    """({key: value}, doubtful keys) of the part of a record that holds the user's own texts."""
    # The record's own end, an empty last line or a blank, belongs to no value.
    if one_line:
        rest = re.sub(r"\s*\Z", "", rest)
        marks = list(_WORD_KEY.finditer(rest))
    else:
        # "Network=" stands inside a line, behind "Licenses=...".
        rest = "\n   " + re.sub(r"\n\s*\Z", "", rest.lstrip())
        marks = list(_LINE_KEY.finditer(rest))
    texts, last = {}, -1
    for number, mark in enumerate(marks):
        key = mark.group(1)
        if key not in _USER_KEYS:
            if last >= 0 and any(later.group(1) in _USER_KEYS for later in marks[number:]):
                return {}, list(_USER_KEYS)     # a line of somebody's own between the keys we know
            break
        place = _USER_KEYS.index(key)
        if place <= last:
            return {}, list(_USER_KEYS)
        last = place
        end = marks[number + 1].start() if number + 1 < len(marks) else len(rest)
        value = rest[mark.end():end]
        if spaced and key in _SPACED and value.endswith(" "):
            value = value[:-1]
        if value != "(null)":
            texts[key] = value
    return texts, []


def to_job(record, node=None, restart=None):
    """A JobText as model.Job. node: whose GPUs `gpus` names (default: the batch host). restart: the restart count
    that the hook was given, to see that the job was requeued since."""
    get = record.fields.get
    nodes = _expand(get("NodeList", ""))
    batch_host = get("BatchHost") or (nodes[0] if nodes else "")
    task = get("ArrayTaskId", "")
    # Of several (--json) the one that the text form shows (common/slurm_protocol_defs.c job_state_string).
    state = next((flag for flag in ("COMPLETING", "SPECIAL_EXIT") if flag in record.states), record.states[0])
    return Job(
        id=int(get("JobId")),
        uid=_number(get("Uid")),
        user=get("User", ""),
        partition=get("Partition", ""),
        nodes=nodes,
        batch_host=batch_host,
        gpus=gpus_on(record.groups, node or batch_host),
        restart=_number(get("Restarts")) or 0,
        comment=get("Comment", ""),
        whole_node=_whole(record.fields),
        array_job=_number(get("ArrayJobId")),
        array_task=_number(task),
        state=state,
        end=ended(record, restart),
        exit_code=get("ExitCode", ""),
        reason=get("Reason", ""),
        batch=_flag(get("BatchFlag")),
        requeue=_flag(get("Requeue")),
        start=when(get("StartTime", "")),
        time_limit=seconds(get("TimeLimit", "")),
        name=get("JobName", ""),
        work_dir=get("WorkDir", ""),
        stdout=get("StdOut", ""),
        het_leader=_number(get("HetJobId")),
    )


def ended(record, restart=None):
    """How the run ended: one of the values of Job.end, "" when that is not sure.

    restart: restart count of the run that is asked about; a higher one in the record means that it was requeued.
    While a job is COMPLETING the text shows only that; what lies beneath was measured on 22.05.8, 24.11.5 and
    26.05.5 (2026-11-30): Reason and ExitCode tell most ends apart, and EndTime=Unknown says that it was
    requeued. --json names the state beneath (several states), and then that is believed.
    """
    states = [state for state in record.states if state != "COMPLETING"]
    if restart is not None and (_number(record.fields.get("Restarts")) or 0) > restart:
        return "requeued"
    for state in states:
        if state in _END_OF_STATE:
            return _END_OF_STATE[state]
    if states or "COMPLETING" not in record.states:
        return ""
    return _end_while_completing(record.fields)


def _end_while_completing(fields):
    reason, exit_code = fields.get("Reason", ""), fields.get("ExitCode", "")
    if fields.get("EndTime") == "Unknown":
        return "requeued"
    if when(fields.get("PreemptTime", "")) is not None:
        return "preempted"      # else it looks like one that its user cancelled
    if reason == "TimeLimit":
        return "timeout"
    if reason == "NonZeroExitCode" and exit_code.endswith(":0") and exit_code != "0:0":
        return "failed"
    if reason.startswith("RaisedSignal"):
        return "failed"
    if reason == "JobLaunchFailure" and exit_code.startswith("0:") and exit_code != "0:0":
        return "failed"         # 22.05 says this of a script that a signal ended
    if reason == "OutOfMemory":
        return "out_of_memory"
    if reason == "NodeDown":
        return "node_fail"
    if reason == "None" and exit_code == "0:0":
        return "completed"
    if reason == "None" and exit_code == "0:15":
        return "cancelled"
    # A cancelled job whose script had its own way with SIGTERM keeps Reason=None too, with any exit code.
    return ""


def gpus_on(groups, node):
    """Gres indices of a job's GPUs on `node`, sorted, from its groups (node list, gres text)."""
    found: set[int] = set()
    for nodes, gres in groups:
        try:
            if hostlist.contains(nodes, node):
                for text in _GPU_INDEX.findall(gres):
                    found.update(hostlist.numbers(text.rstrip(","), 1024))
        except DataError:
            continue
    return tuple(sorted(found))


def nodes(text):
    """All node records of `scontrol -o show node ...` (one a line) or of the form with many lines: NodeRecords.

    What stands in Reason, Comment and Extra comes from administrators, so the first of each field is real. A
    reason of several lines is put together with newlines again; blanks at the lines' ends are lost.
    """
    records = []
    for piece in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        name = re.match(r"NodeName=(\S+)\s", piece)
        if name:
            records.append(_node(name.group(1), piece))
    return records


def _node(name, piece):
    def field(key):
        found = re.search(r"\s%s=(\S*)" % key, piece)
        return found.group(1) if found and found.group(1) != "(null)" else ""

    reason, user, since = _node_reason(piece)
    return NodeRecord(
        name=name, state=node_state(field("State").split("+")), reason=reason, reason_user=user,
        reason_time=since, partitions=tuple(filter(None, field("Partitions").split(","))),
        boot_time=when(field("BootTime")))


def _node_reason(piece):
    """(reason, user, time): the text before the " [user@time]" that Slurm puts behind the first line."""
    found = re.search(r"\s+Reason=(.*?) \[([^\s\[\]]*)@([^\s\[\]]+)\]([ \n]*\Z|\s+(?=Comment=|Extra=|Instance|"
                      r"ReservationName=)|\n? {7,}.*)", piece, re.DOTALL)
    if not found:
        bare = re.search(r"\sReason=([^\n]*)", piece)
        return (bare.group(1).strip() if bare else ""), "", None
    reason, user, stamp, more = found.groups()
    lines = re.split(r"\s+(?:Comment|Extra|InstanceId|InstanceType|ReservationName)=", more)[0]
    # Slurm prints the further lines of a reason behind seven blanks (and the separator before them).
    rest = [line.strip(" ") for line in re.split(r"\n {10}| {8,}", lines) if line.strip()]
    return "\n".join([reason] + [line.rstrip() for line in rest]), user, when(stamp)


def node_state(names):
    """States of a node as upper-case flags, in Slurm's order: ("IDLE", "DRAIN"). Long and short forms are one.

    "IDLE*" (not responding), "DRAINING" and "DRAINED" (as sinfo says) and "MAINTENANCE" become IDLE and
    NOT_RESPONDING, DRAIN, MAINT.
    """
    flags = []
    for name in names:
        bare = re.sub(r"[^A-Z_]", "", name.upper())
        if bare in ("DRAINING", "DRAINED"):
            bare = "DRAIN"
        elif bare == "MAINTENANCE":
            bare = "MAINT"
        if bare and bare not in flags:
            flags.append(bare)
        if "*" in name and "NOT_RESPONDING" not in flags:
            flags.append("NOT_RESPONDING")
    return tuple(flags)


def when(text):
    """Seconds since the epoch of a time that Slurm printed, or None for "Unknown", "None", "N/A".

    With SLURM_TIME_FORMAT=%s it is that number; else local time, as ISO 8601 without a zone.
    """
    if text.isdigit() and text.isascii() and len(text) < 12:
        return float(text)
    found = _ISO.match(text)
    if not found:
        return None
    try:
        year, month, day, hour, minute, second = (int(part) for part in found.groups())
        return mktime((year, month, day, hour, minute, second, 0, 0, -1))
    except (OverflowError, ValueError):
        return None


def seconds(text):
    """Seconds of a duration "[days-]hh:mm:ss" or "mm:ss", or None ("UNLIMITED", "Partition_Limit")."""
    found = re.match(r"(?:(\d{1,6})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d\d)\Z", text)
    if not found:
        return None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def _whole(fields):
    """--exclusive: up to 24.11 OverSubscribe=NO says it; on 26.05 that is the ordinary case, and Exclusive= does."""
    if "Exclusive" in fields:
        return fields["Exclusive"] not in ("NO", "USER", "MCS")
    return fields.get("OverSubscribe") == "NO"


def _expand(text):
    try:
        return tuple(hostlist.expand(text))
    except DataError:
        return ()


def _number(text):
    return int(text) if text and text.isdigit() and text.isascii() and len(text) < 12 else None


def _flag(text):
    number = _number(text)
    return None if number is None else number != 0
