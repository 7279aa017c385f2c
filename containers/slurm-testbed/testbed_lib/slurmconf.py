"""slurm.conf, gres.conf and cgroup.conf of a test cluster: works on every release, changeable key by key."""

from __future__ import annotations

from .errors import UsageError

# Where containers differ from a site: no cgroups, no task binding, no accounting. The rest is what a GPU site
# that follows our installation guide has (PrologFlags=Alloc, JobFileAppend=1); hooks are empty until installed.
DEFAULTS = {
    "ClusterName": "testbed",
    "SlurmctldHost": "ctl",
    "SlurmUser": "slurm",
    "AuthType": "auth/munge",
    "StateSaveLocation": "/var/spool/slurmctld",
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "SlurmctldPidFile": "/run/slurm/slurmctld.pid",
    "SlurmdPidFile": "/run/slurm/slurmd.pid",
    "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
    "SlurmdLogFile": "/var/log/slurm/slurmd.log",
    "SlurmctldDebug": "verbose",  # requeues, launches and completions of each job are logged
    "SlurmdDebug": "verbose",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "MpiDefault": "none",
    "MailProg": "/bin/true",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "GresTypes": "gpu",
    "SlurmdParameters": "config_overrides",  # sixteen cores whatever the host has
    "ReturnToService": "1",
    "PrologFlags": "Alloc",
    "JobFileAppend": "1",
    "MinJobAge": "3600",  # finished jobs stay readable for a whole test run
    "KillWait": "30",
    "SlurmdTimeout": "300",
    "HealthCheckInterval": "0",
}
# What `gpuhealth install` tells the site to add; the interval is shorter than a site's, as tests wait for it.
HOOKS = {
    "Prolog": "/usr/libexec/gpuhealth/prolog",
    "Epilog": "/usr/libexec/gpuhealth/epilog",
    "HealthCheckProgram": "/usr/libexec/gpuhealth/healthcheck",
    "HealthCheckInterval": "10",
    "HealthCheckNodeState": "ANY",
    "PrologEpilogTimeout": "120",
}
CPUS, MEMORY_MB = 16, 64000
# A reconfigure does not change these: daemons have to be restarted.
NEEDS_RESTART = {
    "AuthType",
    "SelectType",
    "ProctrackType",
    "TaskPlugin",
    "GresTypes",
    "StateSaveLocation",
    "SlurmdSpoolDir",
    "SlurmctldHost",
    "ClusterName",
    "SlurmdParameters",
    "MpiDefault",
}


def node_names(count: int) -> list[str]:
    return [f"n{number}" for number in range(1, count + 1)]


def merged(changes: dict[str, str | None], overrides: dict[str, str]) -> dict[str, str]:
    """Overrides with further changes applied; None goes back to the default (or to nothing)."""
    result = dict(overrides)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif "\n" in value:
            raise UsageError(f"slurm.conf value of {key} has a line break")
        else:
            result[key] = value
    return result


def slurm_conf(nodes: int, gpus: int, overrides: dict[str, str]) -> str:
    """The whole slurm.conf. An override with an empty value drops a default key."""
    keys = {**DEFAULTS, **overrides}
    lines = ["# Written by the test cluster; change it with `testbed conf KEY=VALUE`."]
    lines += [f"{key}={value}" for key, value in keys.items() if value != ""]
    names = f"n[1-{nodes}]" if nodes > 1 else "n1"
    gres = f" Gres=gpu:h100:{gpus}" if gpus else ""
    lines += [
        f"NodeName={names} CPUs={CPUS} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS} ThreadsPerCore=1 "
        f"RealMemory={MEMORY_MB}{gres} State=UNKNOWN",
        f"PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP",
        f"PartitionName=spare Nodes={names} MaxTime=INFINITE State=UP",
    ]
    return "\n".join(lines) + "\n"


def gres_conf(gpus: int) -> str:
    if not gpus:
        return "AutoDetect=off\n"
    files = f"/dev/nvidia[0-{gpus - 1}]" if gpus > 1 else "/dev/nvidia0"
    return f"AutoDetect=off\nName=gpu Type=h100 File={files}\n"


def cgroup_conf(release: str) -> str:
    """Containers have no cgroup of their own to manage; 22.05 does not know the key and needs none."""
    return "" if release.startswith("22.") else "CgroupPlugin=disabled\n"
