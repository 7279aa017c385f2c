"""`gpuhealth doctor`: looks at an installation, line by line, and changes nothing.

Each examination is a function (Patient) -> list of Line. Settings come from `scontrol show config` where
slurmctld answers (that is what slurmd really has), else from slurm.conf.
"""
from __future__ import annotations

import json
import os
import stat

from slurm_gpuhealth import __version__, command, config, config_schema, paths
from slurm_gpuhealth.errors import ConfigError
from slurm_gpuhealth.setup import look_slurm as look
from slurm_gpuhealth.setup import render, slurmconf, trust
from slurm_gpuhealth.setup.patient import Line

# Exit codes as for checks: unknown is worse than a warning.
EXITS = {"ok": 0, "note": 0, "warn": 1, "unknown": 3, "bad": 2}
ORDER = ("ok", "note", "warn", "unknown", "bad")
_ENOUGH_BYTES = 200 << 20


def examine(patient):
    """All lines, in the order in which a person would look."""
    # Where Slurm's settings are not known, "not set" would be said of each, and would be wrong.
    of_slurm = (look.registered, look.prolog_flags, look.health_check, look.time_limits, look.restarts,
                look.versions, look.task_prolog) if patient.origin else ()
    of_ours = (hook_files, state_folders, python_modules, last_round) if patient.record else ()
    lines = list(patient.lines)
    for step in (installed,) + of_slurm + (configuration, kernel_log, shared_folder) + of_ours:
        lines += step(patient)
    return lines


def installed(patient):
    """Was `gpuhealth install` run, by this version, and is the kill switch off?"""
    lines = []
    if not patient.record:
        lines.append(Line("bad", "installed", "no record of an installation", "gpuhealth install"))
    elif patient.record.get("version") != __version__:
        lines.append(Line("bad", "installed", "hooks of version %s, this is %s"
                          % (patient.record.get("version"), __version__), "gpuhealth install"))
    else:
        lines.append(Line("ok", "installed", "version %s, hooks in %s" % (__version__, patient.prefix)))
    if os.path.lexists(paths.under(patient.root, paths.KILL_SWITCH)):
        lines.append(Line("warn", "kill switch", "%s is there: every hook does nothing" % paths.KILL_SWITCH,
                          "remove it"))
    if patient.origin:
        lines.append(Line("ok", "slurm settings", "from " + patient.origin))
    return lines


def hook_files(patient):
    """The hooks are there, executable, root's alone, of this version, with an interpreter that exists."""
    lines = []
    for name in render.HOOKS:
        path = "%s/%s" % (patient.prefix, name)
        full = paths.under(patient.root, path)
        try:
            with open(full, encoding="utf-8", errors="replace") as handle:
                text = handle.read(65536)
                mode = os.fstat(handle.fileno()).st_mode
        except OSError as error:
            lines.append(Line("bad", "hook " + name, "%s: %s" % (path, error.strerror), "gpuhealth install"))
            continue
        wrong = []
        python = text.split("\n", 1)[0][2:].split(" ")[0]
        if not mode & stat.S_IXUSR:
            wrong.append("not executable")
        if "of slurm-gpuhealth %s." % __version__ not in text:
            wrong.append("not of this version")
        elif not os.path.exists(python):
            wrong.append("its interpreter %s is gone" % python)
        if not patient.root:
            wrong += trust.weak_points(full)
        lines.append(Line("bad", "hook " + name, path + ": " + "; ".join(wrong), "gpuhealth install") if wrong
                     else Line("ok", "hook " + name, path))
    if not patient.root and patient.python:
        weak = trust.weak_points(patient.python)
        for folder in render.python_paths(("slurm_gpuhealth",)):
            weak += trust.weak_tree(os.path.join(folder, "slurm_gpuhealth"), limit=3)
        if weak:
            lines.append(Line("bad", "ownership", "root executes what others can change: " + weak[0],
                              "chown root, chmod go-w"))
    return lines


def configuration(patient):
    """The configuration is right, and its compiled copy is fresh and for this node."""
    lines = []
    path = paths.under(patient.root, paths.CONFIG)
    try:
        text, status = config_schema.read_file(patient.root)
        wrong = config_schema.problems_of(text, path)
    except ConfigError as error:
        wrong, status = [str(error)], None
    if wrong:
        return [Line("bad", "configuration", wrong[0], "gpuhealth config check")]
    lines.append(Line("ok" if status else "note", "configuration", path if status else "no file: built-in values"))
    if patient.config["mode"] == "observe" and not patient.config["modes"]:
        lines.append(Line("note", "mode", "observe: faults are recorded, nothing is done", "mode: in gpuhealth.yaml"))
    try:
        compiled, notes = config.read(patient.root)
    except ConfigError as error:
        return lines + [Line("bad", "compiled configuration", str(error))]
    if compiled is None:
        level = "unknown" if not patient.root and os.geteuid() != 0 else "warn"
        lines.append(Line(level, "compiled configuration", notes[0], "gpuhealth install, or the next health check"))
    elif config.is_stale(compiled, status):
        lines.append(Line("warn", "compiled configuration", "older than the file", "gpuhealth config check"))
    elif compiled["node"] != patient.node:
        lines.append(Line("warn", "compiled configuration", "made for node %s, this is %s"
                          % (compiled["node"], patient.node), "gpuhealth install --node NAME"))
    else:
        lines.append(Line("ok", "compiled configuration", "fresh"))
    return lines


def state_folders(patient):
    """Rights and space of the folders of state."""
    lines = []
    for path, mode in ((paths.STATE, 0o700), (paths.EVENTS, 0o700), (paths.EVIDENCE, 0o700), (paths.RUN, 0o711)):
        full = paths.under(patient.root, path)
        try:
            status = os.stat(full)
            space = os.statvfs(full)
        except OSError as error:
            level = "unknown" if isinstance(error, PermissionError) else "bad"
            lines.append(Line(level, path, error.strerror, "gpuhealth install"))
            continue
        have = stat.S_IMODE(status.st_mode)
        free = space.f_bavail * space.f_frsize
        if have != mode or (not patient.root and status.st_uid != 0):
            lines.append(Line("bad", path, "mode %04o of uid %d, should be %04o of root"
                              % (have, status.st_uid, mode), "gpuhealth install"))
        elif space.f_flag & os.ST_RDONLY:
            lines.append(Line("bad", path, "read-only file system"))
        elif free < _ENOUGH_BYTES or (space.f_files and space.f_favail < 1000):
            lines.append(Line("warn", path, "%d MB and %d inodes free" % (free >> 20, space.f_favail)))
        else:
            lines.append(Line("ok", path, "mode %04o, %d MB free" % (have, free >> 20)))
    return lines


def python_modules(patient):
    """The hooks' interpreter finds its modules as slurmd starts it, and NVML answers."""
    if patient.root or not patient.python:
        return []
    base = "import sys; sys.path += %r; " % (render.python_paths(),)
    done = command.run([patient.python, "-IS", "-c", base + "import slurm_gpuhealth.hook, pynvml, yaml"], 10)
    if done.rc != 0:
        return [Line("bad", "python", "with -IS: " + last_line(done),
                     "pip install nvidia-ml-py PyYAML; gpuhealth install")]
    lines = [Line("ok", "python", patient.python + " -IS finds all modules")]
    if patient.config["expected_gpus"] == 0:
        return lines
    code = base + "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetCount(), n.nvmlSystemGetDriverVersion())"
    done = command.run([patient.python, "-IS", "-c", code], patient.config["deadlines"]["nvml"])
    if done.timed_out:
        lines.append(Line("bad", "NVML", "no answer in %s s" % patient.config["deadlines"]["nvml"],
                          "gpuhealth explain GH-NVML-HANG"))
    elif done.rc != 0:
        lines.append(Line("bad", "NVML", last_line(done), "driver installed? expected_gpus: 0 where there is no GPU"))
    else:
        lines.append(Line("ok", "NVML", "%s GPUs, driver %s" % tuple((done.out.split() + ["?", "?"])[:2])))
    return lines


def last_line(done):
    """The last thing a program said."""
    said = (done.err or done.out).strip().split("\n")[-1]
    return said or ("was ended after its time" if done.timed_out else "exit status %s" % done.rc)


def kernel_log(patient):
    """The kernel log can be opened."""
    path = patient.config["kernel_log"]
    try:
        os.close(os.open(paths.under(patient.root, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError as error:
        return [Line("unknown" if os.geteuid() else "bad", "kernel log", "%s: %s" % (path, error.strerror),
                     "run it as root; in a container: capability SYSLOG")]
    except OSError as error:
        return [Line("bad", "kernel log", "%s: %s" % (path, error.strerror), "kernel_log: in gpuhealth.yaml")]
    lines = [Line("ok", "kernel log", path)]
    if patient.config["kernel_log_user_facility"]:
        lines.append(Line("warn", "kernel_log_user_facility", "true: any root program can forge faults",
                          "for tests only"))
    return lines


def shared_folder(patient):
    """shared_dir can be written, by the user that the hooks become."""
    folder, user = patient.config["shared_dir"], patient.config["service_user"]
    if not folder:
        return []
    from slurm_gpuhealth import supervise
    full = paths.under(patient.root, folder)

    def look(spec, emit):
        emit("writable", os.access(spec["path"], os.W_OK | os.X_OK))
    as_user = None
    if user and not patient.root:
        import pwd
        try:
            as_user = supervise.AsUser(pwd.getpwnam(user).pw_uid)
        except KeyError:
            return [Line("bad", "shared_dir", "service_user %s does not exist" % user,
                         "service_user: in gpuhealth.yaml")]
    result = supervise.call(look, {"path": full}, patient.config["deadlines"]["network_mount"], as_user)
    who = user or "root"
    if ("writable", True) in result.records:
        return [Line("ok", "shared_dir", "%s, writable for %s" % (folder, who))]
    if result.records:
        return [Line("bad", "shared_dir", "%s: not there or not writable for %s" % (folder, who),
                     "service_user: or the folder's rights")]
    return [Line("bad", "shared_dir", "%s: %s" % (folder, result.status.detail or result.status.outcome))]


def last_round(patient):
    """When the last health check wrote its state."""
    try:
        with open(paths.under(patient.root, paths.STATE + "/node.json"), encoding="utf-8") as handle:
            when = json.load(handle).get("time")
    except FileNotFoundError:
        return [Line("warn", "last health check", "none has run yet", "scontrol reconfigure; wait one interval")]
    except PermissionError:
        return [Line("unknown", "last health check", "the state cannot be read", "run it as root")]
    except (OSError, ValueError, AttributeError) as error:
        return [Line("warn", "last health check", "node.json cannot be read: %s" % error)]
    if not isinstance(when, (int, float)):
        return [Line("warn", "last health check", "none has run yet")]
    every = slurmconf.seconds(patient.get("healthcheckinterval")) or 0
    ago = patient.now - when
    if every and ago > max(3 * every, 300):
        return [Line("bad", "last health check", "%d s ago, every %d s" % (ago, every),
                     "slurmd's log; run %s/healthcheck by hand" % patient.prefix)]
    return [Line("ok", "last health check", "%d s ago" % ago)]
