"""Every key of gpuhealth.yaml: its type and what it does. Cold side only.

docs/configuration.md and the comments of etc/slurm/gpuhealth.yaml are made from this table, the defaults come
from config_defaults.py (a test compares the two).
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth.config_kinds import (
    Choice,
    Either,
    Flag,
    Keys,
    Lines,
    ListOf,
    MapOf,
    Number,
    Scalar,
    Text,
    absolute_path,
    host_list,
    plugin_name,
    reason_code,
    service_name,
    sxid_number,
    url_or_empty,
    xid_number,
)

Key = namedtuple("Key", "name kind doc")

MODE = Choice("observe", "drain", "full")
JOB_ACTION = Choice("requeue-now", "let-finish", "none")
POLICY = Choice("pass", "drain")
_SECONDS = Number(0.1, 86400, "s")
_HOOK_SECONDS = Number(1, 3600, "s")

# What may stand in resume: default_pattern.
PATTERN_NAMES = ("job_id", "array_job_id", "array_task_id", "job_name", "user")


def _pattern(text):
    if not text:
        return ""
    rest = text
    for name in PATTERN_NAMES:
        rest = rest.replace("{%s}" % name, "x")
    if "{" in rest or "}" in rest:
        return "only {%s} may stand in braces" % "}, {".join(PATTERN_NAMES)
    return absolute_path(rest)


DEADLINES = Keys([
    Key("prolog", _HOOK_SECONDS, "Prolog as a whole. Slurm's MessageTimeout and PrologEpilogTimeout must be longer."),
    Key("epilog", _HOOK_SECONDS, "Epilog as a whole."),
    Key("healthcheck", _HOOK_SECONDS,
        "The health check as a whole. slurmd kills it after 60 s (HealthCheckTimeout from 26.05 on)."),
    Key("nvml", _SECONDS, "Asking NVML for all GPUs."),
    Key("nvml_per_gpu", Number(0, 60, "s"),
        "More time for each GPU where persistence mode is off, as the first call then initialises the GPU."),
    Key("kernel_log", _SECONDS, "Reading the kernel log since the last round."),
    Key("mount", _SECONDS, "Looking at one local mount."),
    Key("network_mount", _SECONDS, "Looking at one mount of a network file system."),
    Key("command", _SECONDS, "Any other program, one run."),
    Key("slurm", _SECONDS, "One question to slurmctld."),
    Key("grace", Number(0, 60, "s"), "Between SIGTERM and SIGKILL for a source that is late."),
    Key("evidence", _SECONDS, "The first part of the evidence, which is saved before the node is drained."),
    Key("resume", _SECONDS, "Looking for the checkpoint of a job that starts again."),
    Key("notify", _SECONDS, "The notification."),
    Key("lock", _SECONDS, "Waiting for another hook on this node."),
    Key("config", _SECONDS, "Looking whether the configuration has changed."),
])

MOUNT = Keys([
    Key("path", Text(absolute_path), "Mount point."),
    Key("type", ListOf(Text()), "Accepted file system types, for example [lustre] or [nfs, nfs4]; [] takes any."),
    Key("writable", Flag(), "It must be possible to write there."),
    Key("network", Choice("auto", "true", "false", flags=True),
        "Whether it is a network file system, which gets the longer deadline; auto goes by the type."),
    Key("deadline", Number(0, 86400, "s"), "Time limit for looking at it; 0 goes by the type (deadlines)."),
    Key("options", ListOf(Text()), "Mount options that it must have, such as [rw, vers=4*]; * stands for any text."),
    Key("min_free_gb", Number(0, 10 ** 9, "GB"), "Less free space than this is a warning; 0 for no limit."),
    Key("min_free_percent", Number(0, 100), "The same in percent of its size."),
    Key("min_free_inodes", Number(0, 10 ** 15, whole=True), "The same for files that can still be made."),
], required=("path",), defaults={"type": [], "writable": False, "network": "auto", "deadline": 0, "options": [],
                                 "min_free_gb": 0, "min_free_percent": 0, "min_free_inodes": 0})

LINK = Keys([
    Key("name", Text(), "Port as the kernel names it: mlx5_0/1, mlx5_0 or ib0; * stands for any."),
    Key("speed", Number(0, 10000, "Gb/s"), "Least speed; 0 takes any."),
    Key("width", Number(0, 64, whole=True), "Least number of lanes of an InfiniBand port; 0 takes any."),
], required=("name",), defaults={"speed": 0, "width": 0})

PLUGIN = Keys([
    Key("name", Text(plugin_name), "Name in findings: letters, digits, - and _."),
    Key("command", ListOf(Text()), "Program (absolute path, root's own) and its arguments. No shell."),
    Key("phases", ListOf(Choice("prolog", "epilog", "healthcheck")), "When it runs."),
    Key("deadline", _SECONDS, "It is ended after so long, and that is a warning."),
    Key("fatal", Flag(), "Its critical result drains the node; otherwise it warns."),
], required=("name", "command"), defaults={"phases": ["healthcheck"], "deadline": 10, "fatal": True})

MODES = Keys([
    Key("nodes", Text(host_list), "Host list, for example gpu[001-100,205]."),
    Key("partitions", ListOf(Text()), "Names of partitions."),
    Key("mode", MODE, "Mode for these."),
], required=("mode",))

CODE = Keys([
    Key("severity", Choice("note", "warning", "fatal"), "How serious it is here; only fatal drains."),
    Key("job_action", JOB_ACTION, "What happens to a job that uses the faulty thing."),
    Key("recoverable", Flag(), "The node may be resumed by itself (recover)."),
])

XID = Keys([
    Key("action", Choice("drain", "note", "ignore"), "What one such line does."),
    Key("job_action", JOB_ACTION, "What happens to a job that uses the GPU."),
])

TOP = Keys([
    Key("mode", MODE,
        "observe: findings and events only, nothing is done to nodes or jobs. drain: nodes are drained. full: jobs"
        " are also requeued, resumed and held."),
    Key("modes", Lines(MODES),
        "Other modes for some nodes or partitions. The last entry that fits wins. An entry with partitions counts"
        " where the partition is known (prolog, epilog, and once a fault was found)."),
    Key("expected_gpus", Either(Choice("auto"), Number(0, 1024, whole=True)),
        "Number of GPUs of a node. auto: from gres.conf, else slurm.conf, else the most ever seen. 0 for a node"
        " without GPUs."),
    Key("kernel_log", Text(absolute_path), "Kernel log to read."),
    Key("kernel_log_user_facility", Flag(),
        "Also believe records that a program wrote into the kernel log. For tests only."),
    Key("mounts", Lines(MOUNT), "File systems that must be there."),
    Key("shared_dir", Text(absolute_path, empty=True),
        "Folder that all nodes see, for events, acks and each job's history; empty for none."),
    Key("service_user", Text(), "User that writes there, as root is often squashed; empty for root."),
    Key("deadlines", DEADLINES, "Time limits in seconds."),
    Key("on_internal_error", Keys([
        Key("prolog", POLICY, "pass: the job starts. drain: the node is drained."),
        Key("epilog", POLICY, "The same after a job."),
        Key("healthcheck", POLICY, "The same in the health check."),
    ]), "What a hook does when it fails itself (a mistake of ours, a damaged installation)."),
    Key("job_elsewhere", Choice("run", "refuse"),
        "A job starts on healthy GPUs of a node where another GPU is faulty: run it, or refuse it."),
    Key("codes", MapOf(reason_code, CODE, "CODE"),
        "Changes to reason codes, by code (`gpuhealth explain` lists them)."),
    Key("xid", MapOf(xid_number, XID, "NUMBER"), "Changes to Xid numbers, by number."),
    Key("sxid", MapOf(sxid_number, XID, "NUMBER"), "Changes to SXid numbers (NVSwitches), by number."),
    Key("xid_repeat", Keys([
        Key("jobs", Number(2, 1000, whole=True), "Different jobs with the same user-caused Xid on one GPU..."),
        Key("window", Number(60, 31536000, "s"), "...within this time make it a fault of the GPU."),
    ]), "When a user-caused Xid becomes a fault of the GPU."),
    Key("recover", Keys([
        Key("clean_rounds", Number(0, 10000, whole=True),
            "Clean health checks after which a node that we drained for a recoverable code is resumed; 0 never."),
        Key("codes", ListOf(Text(reason_code)), "Further codes that count as recoverable here."),
    ]), "Resuming nodes by itself."),
    Key("brake", Keys([
        Key("percent", Number(0, 100), "Most nodes of a partition that faults of the outside may drain, in percent."),
        Key("minimum", Number(0, 10000, whole=True), "At least so many nodes may be drained."),
        Key("window", Number(60, 604800, "s"), "Drains of this time count."),
        Key("jitter", Number(0, 50, "s"), "The health check waits up to so long, so that nodes count one another."),
        Key("send_back", Number(1, 86400, "s"),
            "How long a job that was sent back waits; the second time twice as long, then three times."),
    ]), "The brake: an outage of storage or network must not drain the whole cluster."),
    Key("resume", Keys([
        Key("default_pattern", Text(_pattern),
            "Checkpoint folder of jobs that declare none, for example /ckpt/{user}/{job_name}; empty for none."),
        Key("accepts", ListOf(Choice("verified", "structure-only", "weights-only")),
            "What a checkpoint must be to be resumed from."),
        Key("max_restarts", Number(0, 1000, whole=True),
            "How often we requeue one job; after that it is held. The job's own max-restarts goes first."),
        Key("start_delay", Number(1, 3600, "s"), "A requeued job starts so many seconds later."),
        Key("requeue_undeclared", Flag(), "Also requeue running jobs that declared no checkpoint."),
        Key("level", Choice("full", "structure"), "How deep a checkpoint is looked into, time allowing."),
        Key("when_none_acceptable", Choice("hold", "start-over"),
            "There are checkpoints and none is acceptable: hold the job, or start it from the beginning."),
    ]), "Where a job that starts again goes on from."),
    Key("evidence", Keys([
        Key("max_folder_mb", Number(1, 102400, "MB", whole=True), "Largest size of one incident's folder."),
        Key("max_folders", Number(1, 100000, whole=True), "Most folders kept."),
        Key("max_total_mb", Number(1, 10485760, "MB", whole=True), "Largest size of all together."),
        Key("max_age_days", Number(1, 36500, "days"), "Older ones are removed."),
        Key("log_tail_kb", Number(1, 102400, "KB", whole=True), "How much of the job's own log is kept."),
        Key("bug_report", Flag(), "Also run nvidia-bug-report.sh afterwards (minutes, tens of MB)."),
    ]), "What is kept of each incident, under /var/lib/gpuhealth/evidence."),
    Key("notify", Keys([
        Key("command", ListOf(Text()),
            "Program and arguments, run at each drain with the event as JSON on its standard input; [] for none."),
        Key("webhook", Text(url_or_empty), "URL that gets the event as a JSON POST; empty for none."),
    ]), "Telling somebody."),
    Key("events", Keys([
        Key("keep_weeks", Number(1, 10000, whole=True), "Event files are kept so many weeks."),
    ]), "The event log, under /var/lib/gpuhealth/events."),
    Key("slurm", Keys([
        Key("backend", Choice("auto", "scontrol", "pyslurm"), "How slurmctld is asked."),
        Key("bin_dir", Text(absolute_path), "Where scontrol and squeue are."),
        Key("conf", Text(absolute_path), "slurm.conf."),
        Key("gres_conf", Text(absolute_path), "gres.conf."),
    ]), "Slurm on this node."),
    Key("checks", Keys([
        Key("disabled", ListOf(Text()), "Checks that are not run, by name (`gpuhealth check` lists them)."),
        Key("enabled", ListOf(Text()), "Checks that are run although they are off by default."),
    ]), "Which checks run."),
    Key("limits", MapOf(None, MapOf(None, Scalar(), "LIMIT"), "CHECK"),
        "Limits of single checks, by check (checks.md lists them)."),
    Key("links", Lines(LINK), "Network ports that must be up, beside those that were up in an earlier round."),
    Key("services", ListOf(Text(service_name)), "systemd units that must be active."),
    Key("plugins", Lines(PLUGIN), "Checks of the site's own: programs."),
    Key("expected", Keys([
        Key("model", ListOf(Text()), "Accepted GPU models; a part of the name is enough. [] takes any."),
        Key("vbios", ListOf(Text()), "Accepted VBIOS versions. [] takes any."),
        Key("driver", ListOf(Text()), "Accepted driver versions, also only their beginning (550.90). [] takes any."),
        Key("mig", ListOf(Text()), "MIG profiles that each GPU must show, as often as they are named; [\"off\"] for MIG"
            " switched off. [] takes any."),
    ]), "What the GPUs of a node must be."),
    Key("leftover", Keys([
        Key("kill", Flag(), "Epilog ends processes that a job left on its GPUs."),
        Key("term_seconds", Number(0, 60, "s"), "Between SIGTERM and SIGKILL for these."),
    ]), "Processes that hold a GPU after their job."),
    Key("prometheus", Text(absolute_path, empty=True),
        "File that the health check writes for node_exporter's textfile collector, for example"
        " /var/lib/prometheus/node-exporter/gpuhealth.prom; empty for none."),
    Key("watch", Keys([
        Key("nvml_events", Flag(), "`gpuhealth watch` also waits for NVML's events. Its process then holds the GPUs"
            " open: stop the service before a GPU reset or a change of the MIG mode."),
    ]), "The service that runs the health check at once."),
    Key("nodes", Lines(None),
        "Other settings for some nodes: entries of match (host list) and set (any of the keys above). Later"
        " entries win."),
])

# An overlay may set everything except overlays.
OVERLAY = Keys([
    Key("match", Text(host_list), "Host list."),
    Key("set", Keys([key for key in TOP.keys if key.name != "nodes"]), "Settings for these nodes."),
], required=("match", "set"))
TOP.by_name["nodes"].kind.item = OVERLAY
