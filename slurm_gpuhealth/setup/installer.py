"""`gpuhealth install`: renders the hooks, makes the folders, writes configuration and slurm.conf fragment.

Everything is a list of steps, made first and then done, so that --dry-run shows exactly what would happen.
Each step replaces in one move (a hook may be running, or may be started, at any moment) and does nothing when
the thing is as it should be. What was made is recorded, so that `gpuhealth uninstall` can take it back.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections import namedtuple

from slurm_gpuhealth import __version__, paths
from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.setup import render, slurmconf, wiring
from slurm_gpuhealth.state import write_atomic

RECORD = paths.STATE + "/install.json"
TMPFILES = "/etc/tmpfiles.d/gpuhealth.conf"
UNIT = "/etc/systemd/system/gpuhealth-watch.service"
FRAGMENT = os.path.dirname(paths.CONFIG) + "/gpuhealth.slurm.conf"
DEFAULT_PREFIX = "/usr/libexec/gpuhealth"
CONFIGLESS = "/run/slurm/conf/slurm.conf"

Step = namedtuple("Step", "kind path content mode what", defaults=(b"", 0, ""))
Step.__doc__ = """kind: "folder", "file", "link" (content: its target) or "edit" (of a slurm.conf). content: bytes
or text. what: the word for people: "new", "changed", "same", "kept" (a file that is not ours to replace)."""

Options = namedtuple("Options", "root python prefix slurm_conf apply task_prolog")
Options.__doc__ = """root: prefix of all paths that are written. python: the hooks' interpreter. prefix: folder of
the hooks."""


def find_slurm_conf(root, given=None):
    """The path of slurm.conf that this node uses, or None: what was given, /etc/slurm, or the configless copy."""
    for path in ([given] if given else ["/etc/slurm/slurm.conf", CONFIGLESS]):
        if os.path.exists(paths.under(root, path)):
            return path
    if given:
        raise DataError("%s: no such file" % given)
    return None


def read_record(root):
    """What an earlier install made: dict, or an empty one."""
    try:
        with open(paths.under(root, RECORD), encoding="utf-8") as handle:
            record = json.load(handle)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError("%s is damaged: %s" % (RECORD, error)) from error
    return record if isinstance(record, dict) and record.get("v") == 1 else {}


def plan(options):
    """(steps, wiring or None, notes) of an installation. Raises DataError, UsageError."""
    record = read_record(options.root)
    steps = [_folder(options.root, path, mode) for path, mode in (
        (options.prefix, 0o755), (paths.STATE, 0o700), (paths.EVENTS, 0o700), (paths.EVIDENCE, 0o700),
        (paths.RUN, 0o711), (os.path.dirname(TMPFILES), 0o755), (os.path.dirname(paths.CONFIG), 0o755))]
    folders = render.python_paths()
    for name in render.HOOKS:
        text = render.hook(name, options.python, folders)
        steps.append(_file(options.root, "%s/%s" % (options.prefix, name), text, 0o755))
    steps.append(_file(options.root, options.prefix + "/watch", render.watch(options.python, folders), 0o755))
    if os.path.isdir(paths.under(options.root, os.path.dirname(UNIT))):
        steps.append(_file(options.root, UNIT, render.watch_unit(options.prefix), 0o644))
    steps.append(_file(options.root, TMPFILES, "d %s 0711 root root -\n" % paths.RUN, 0o644))
    steps.append(_file(options.root, FRAGMENT, render.fragment(options.prefix), 0o644))
    steps.append(_configuration(options.root, record))
    wired, notes = _wiring(options)
    if wired is not None:
        for path, target in wired.links:
            parent = os.path.dirname(path)
            if not any(step.path == parent for step in steps):
                steps.append(_folder(options.root, parent, 0o755))
            steps.append(_link(options.root, path, target))
        for path, site in wired.scripts:
            text = render.healthcheck_site(site, options.prefix + "/healthcheck")
            steps.append(_file(options.root, path, text, 0o755))
        if options.apply:
            steps += _edits(options, wired)
        notes += wired.notes
    return steps, wired, list(notes)


def _wiring(options):
    path = find_slurm_conf(options.root, options.slurm_conf)
    if path is None:
        if options.apply:
            raise DataError("no slurm.conf on this machine: add the lines of %s on the controller" % FRAGMENT)
        return None, ("no slurm.conf here: the lines for it are in %s" % FRAGMENT,)
    if path == CONFIGLESS and options.apply:
        raise DataError("%s comes from the controller (configless): add the lines there" % path)
    conf = slurmconf.read(path, options.root)
    wired = wiring.plan(conf, options.prefix, lambda folder: os.path.isdir(paths.under(options.root, folder)),
                        options.task_prolog)
    return wired, ()


def _edits(options, wired):
    """Steps that change slurm.conf and the files it includes."""
    path = find_slurm_conf(options.root, options.slurm_conf)
    conf = slurmconf.read(path, options.root)
    steps = []
    for name, text in conf.files.items():
        lines = wired.lines if name == path else ()
        gone = {number for setting in wired.comment_out if setting.path == name
                for number in range(setting.first, setting.last + 1)}
        wanted = slurmconf.edited(text, sorted(gone), lines).encode("utf-8", "surrogateescape")
        with open(paths.under(options.root, name), "rb") as handle:
            now = handle.read()
        if now != wanted:
            steps.append(Step("edit", name, wanted, 0, "changed"))
    return steps


def _folder(root, path, mode):
    try:
        status = os.stat(paths.under(root, path))
    except FileNotFoundError:
        return Step("folder", path, b"", mode, "new")
    if not stat.S_ISDIR(status.st_mode):
        raise DataError("%s: is there and is not a folder" % path)
    private = mode in (0o700, 0o711) and stat.S_IMODE(status.st_mode) != mode
    return Step("folder", path, b"", mode, "changed" if private else "same")


def _file(root, path, text, mode):
    content = text.encode("utf-8")
    try:
        with open(paths.under(root, path), "rb") as handle:
            same = handle.read() == content and stat.S_IMODE(os.fstat(handle.fileno()).st_mode) == mode
    except FileNotFoundError:
        return Step("file", path, content, mode, "new")
    return Step("file", path, content, mode, "same" if same else "changed")


def _link(root, path, target):
    try:
        now = os.readlink(paths.under(root, path))
    except FileNotFoundError:
        return Step("link", path, target, 0, "new")
    except OSError as error:
        raise DataError("%s: is there and is not a link of ours" % path) from error
    return Step("link", path, target, 0, "same" if now == target else "changed")


def _configuration(root, record):
    """gpuhealth.yaml: never written over an edited one; then the new text goes beside it."""
    text = render.template("gpuhealth.yaml")
    step = _file(root, paths.CONFIG, text, 0o644)
    if step.what != "changed":
        return step
    with open(paths.under(root, paths.CONFIG), "rb") as handle:
        now = handle.read()
    if digest(now) == record.get("files", {}).get(paths.CONFIG, {}).get("sha256"):
        return step             # as an earlier version wrote it
    if now == step.content:
        return step             # only its mode
    beside = _file(root, paths.CONFIG + ".new", text, 0o644)
    return beside._replace(what="kept" if beside.what == "same" else beside.what)


def digest(content):
    """sha256 of bytes, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def apply(options, steps, node):
    """Do the steps and record them. Returns the paths of backups of changed slurm.conf files."""
    record = read_record(options.root)
    files, links = dict(record.get("files", {})), dict(record.get("links", {}))
    folders, edits = list(record.get("folders", [])), dict(record.get("edits", {}))
    backups = []
    for step in steps:
        target = paths.under(options.root, step.path)
        if step.kind == "folder":
            folders += _make_folders(options.root, step)
        elif step.kind == "file":
            about = dict(files.get(step.path, {}))
            if step.what == "changed" and not about:
                about["before"] = _set_aside(target)
            if step.what in ("new", "changed"):
                write_atomic(target, step.content, step.mode, durable=True)
            # What was there before the first install, just as we would write it, is not ours to remove.
            if step.what in ("new", "changed") or about:
                files[step.path] = dict(about, sha256=digest(step.content), mode=step.mode)
        elif step.kind == "link":
            if step.what != "same":
                _place_link(target, step.content)
            links[step.path] = step.content
        elif step.kind == "edit":
            backup = _edit(options.root, step)
            backups.append(backup)
            edits[step.path] = backup
    document = {"v": 1, "version": __version__, "time": time.time(), "python": options.python, "node": node,
                "prefix": options.prefix, "files": files, "links": links, "folders": sorted(set(folders)),
                "edits": edits}
    write_atomic(paths.under(options.root, RECORD), json.dumps(document, indent=1).encode(), 0o600, durable=True)
    return backups


def _make_folders(root, step):
    """Make a folder and what is missing above it; returns the paths that were made."""
    made = []
    missing = step.path
    while missing != "/" and not os.path.isdir(paths.under(root, missing)):
        made.append(missing)
        missing = os.path.dirname(missing)
    for path in reversed(made):
        mode = step.mode if path == step.path else 0o755
        os.mkdir(paths.under(root, path), mode)
        os.chmod(paths.under(root, path), mode)
    if step.what == "changed":
        os.chmod(paths.under(root, step.path), step.mode)
    return made


def _set_aside(target):
    """Keep a file of somebody else's that stands where one of ours must be; returns its new name."""
    kept = os.path.basename(target) + ".before-gpuhealth"
    beside = os.path.join(os.path.dirname(target), kept)
    if not os.path.lexists(beside):
        # A second name and not a move: slurmd may start what stands there at any moment.
        os.link(target, beside, follow_symlinks=False)
    return kept


def _place_link(target, content):
    temporary = target + ".tmp"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(content, temporary)
    os.rename(temporary, target)


def _edit(root, step):
    """Replace a slurm.conf, keeping owner and mode, after a backup beside it; returns the backup's path."""
    real = os.path.realpath(paths.under(root, step.path))
    with open(real, "rb") as handle:
        old = handle.read()
        status = os.fstat(handle.fileno())
    owner = (status.st_uid, status.st_gid)
    backup = "%s.gpuhealth-%s" % (real, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    write_atomic(backup, old, stat.S_IMODE(status.st_mode), durable=True, owner=owner)
    write_atomic(real, step.content, stat.S_IMODE(status.st_mode), durable=True, owner=owner)
    return backup[len(root):] if root and backup.startswith(root) else backup
