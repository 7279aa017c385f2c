"""The built-in configuration: what holds where the site's file says nothing.

One plain dict, complete, JSON-able. config_schema.py checks the site's file against the same keys (a test
compares them), docs/configuration.md is made from both. Times are seconds, sizes say their unit.
Dict keys are text also where they are numbers (xid: {"79": ...}), as JSON would make them so anyway.
"""

DEFAULTS: dict = {
    "mode": "observe",
    "modes": [],
    "nodes": [],
    "expected_gpus": "auto",
    "kernel_log": "/dev/kmsg",
    "kernel_log_user_facility": False,
    "shared_dir": "",
    "service_user": "",
    "deadlines": {
        "prolog": 20, "epilog": 20, "healthcheck": 40,
        "nvml": 8, "nvml_per_gpu": 3, "kernel_log": 3, "mount": 3, "network_mount": 8,
        "command": 3, "slurm": 3, "grace": 0.5, "evidence": 2, "resume": 8, "notify": 5, "lock": 5,
        "config": 1,
    },
    "mounts": [],
    "on_internal_error": {"prolog": "pass", "epilog": "pass", "healthcheck": "pass"},
    "job_elsewhere": "run",
    "codes": {},
    "xid": {},
    "sxid": {},
    "xid_repeat": {"jobs": 2, "window": 604800},
    "recover": {"clean_rounds": 0, "codes": []},
    "brake": {"percent": 10, "minimum": 1, "window": 3600, "jitter": 15, "send_back": 120},
    "resume": {
        "default_pattern": "", "accepts": ["verified", "structure-only"], "max_restarts": 3, "start_delay": 6,
        "requeue_undeclared": False, "level": "full", "when_none_acceptable": "hold",
    },
    "evidence": {
        "max_folder_mb": 64, "max_folders": 200, "max_total_mb": 4096, "max_age_days": 90, "log_tail_kb": 256,
        "bug_report": False,
    },
    "notify": {"command": [], "webhook": ""},
    "events": {"keep_weeks": 104},
    "slurm": {
        "backend": "auto", "bin_dir": "/usr/bin", "conf": "/etc/slurm/slurm.conf",
        "gres_conf": "/etc/slurm/gres.conf",
    },
    "checks": {"disabled": [], "enabled": []},
    "limits": {},
    "links": [],
    "services": [],
    "plugins": [],
    "expected": {"model": [], "vbios": [], "driver": [], "mig": []},
    "leftover": {"kill": False, "term_seconds": 5},
    "prometheus": "",
    "watch": {"nvml_events": True},
}


def fresh(value=DEFAULTS):
    """A deep copy of the defaults (or of any plain value), for a caller that may change it."""
    if isinstance(value, dict):
        return {key: fresh(item) for key, item in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def overlay(base, change):
    """A new value: `base` with `change` laid over it. Dicts are merged key by key, all else is replaced."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return fresh(change)
    merged = {key: fresh(item) for key, item in base.items()}
    for key, item in change.items():
        merged[key] = overlay(merged[key], item) if key in merged else fresh(item)
    return merged
