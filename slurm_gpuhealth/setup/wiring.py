"""How our hooks come into slurm.conf beside what a site has there: what to link, and which lines to change.

Pure: reads a Conf, returns a Wiring. Installer and doctor act on it.
"""
from __future__ import annotations

import fnmatch
import os
from collections import namedtuple

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.setup import slurmconf

Wiring = namedtuple("Wiring", "lines comment_out links scripts notes", defaults=((), (), (), (), ()))
Wiring.__doc__ = """How the hooks come into slurm.conf.

lines: to add to slurm.conf. comment_out: tuple of Settings whose lines go. links: tuple of (path, target),
symbolic links to make. scripts: tuple of (path, site program), wrappers to make. notes: for people."""

# A name that a site's pattern is likely to take, and that comes first in reverse order.
_LINK_NAMES = ("zz-gpuhealth", "zz-gpuhealth.sh", "99-gpuhealth", "99-gpuhealth.sh")


def plan(conf, prefix, folder_exists, task_prolog=False):
    """The Wiring for a slurm.conf. prefix: folder of our hooks. folder_exists(path): is it a folder on this node?

    Raises DataError where a line cannot be changed without harm; the text says what to do by hand.
    """
    parts = [_chain(conf, "Prolog", "prolog", prefix, folder_exists),
             _chain(conf, "Epilog", "epilog", prefix, folder_exists),
             _healthcheck(conf, prefix), _flags(conf), _timeouts(conf)]
    if task_prolog:
        parts.append(_task_prolog(conf, prefix))
    merged = [tuple(item for part in parts for item in part[number]) for number in range(len(Wiring._fields))]
    wiring = Wiring(*merged)
    for setting in wiring.comment_out:
        if not setting.alone:
            raise DataError("%s, line %d: has other settings beside %s: give each a line of its own"
                            % (setting.path, setting.first + 1, setting.key))
    return wiring


def _values(conf, key):
    """Settings of a key that name a program, relative ones made absolute as slurmd does."""
    found = []
    for setting in conf.all(key):
        if setting.value:
            value = setting.value
            if not value.startswith("/"):
                value = os.path.join(os.path.dirname(conf.path), value)
            found.append((setting, value))
    return found


def _chain(conf, key, hook, prefix, folder_exists):
    ours = "%s/%s" % (prefix, hook)
    found = _values(conf, key)
    if any(value == ours for _, value in found):
        return Wiring()
    if not found:
        return Wiring(lines=("%s=%s" % (key, ours),))
    for _, value in found:
        folder, pattern = os.path.split(value)
        if _is_pattern(pattern) and not _is_pattern(folder) and folder_exists(folder):
            for name in _LINK_NAMES:
                if fnmatch.fnmatchcase(name, pattern):
                    return Wiring(links=(("%s/%s" % (folder, name), ours),))
    if any(_is_pattern(value) for _, value in found):
        raise DataError("%s=%s: our hook does not fit this pattern; link %s to a name that does"
                        % (key, ",".join(value for _, value in found), ours))
    folder = "%s/%s.d" % (prefix, hook)
    # slurmd goes through them in reverse alphabetical order: ours first (it must see the node as the job left
    # it), then the site's in the order in which they stood.
    links = [("%s/zz-gpuhealth" % folder, ours)]
    for number, (_, value) in enumerate(found):
        links.append(("%s/site-%02d" % (folder, 99 - number), value))
    return Wiring(lines=("%s=%s/*" % (key, folder),), comment_out=tuple(setting for setting, _ in found),
                  links=tuple(links), notes=("%s: yours runs after ours, through %s" % (key, folder),))


def _is_pattern(text):
    return any(char in text for char in "*?[")


def _healthcheck(conf, prefix):
    found = _values(conf, "HealthCheckProgram")
    ours, wrapper = prefix + "/healthcheck", prefix + "/healthcheck-site"
    if any(value in (ours, wrapper) for _, value in found):
        return Wiring()
    wanted = []
    if not slurmconf.seconds(conf.get("HealthCheckInterval")):
        wanted.append("HealthCheckInterval=120")
    if not conf.get("HealthCheckNodeState"):
        wanted.append("HealthCheckNodeState=ANY,CYCLE")
    zero = tuple(setting for setting in conf.all("HealthCheckInterval") if not slurmconf.seconds(setting.value))
    if not found:
        return Wiring(lines=("HealthCheckProgram=" + ours,) + tuple(wanted), comment_out=zero)
    site = found[-1][1]
    return Wiring(
        lines=("HealthCheckProgram=" + wrapper,) + tuple(wanted),
        comment_out=tuple(setting for setting, _ in found) + zero, scripts=((wrapper, site),),
        notes=("HealthCheckProgram: %s runs first, then ours; slurmd ends both after 60 s together, so"
               " deadlines: healthcheck may have to be shorter" % site,))


def _flags(conf):
    flags = conf.get("PrologFlags")
    if slurmconf.has_alloc(flags):
        return Wiring()
    return Wiring(lines=("PrologFlags=" + (flags + ",Alloc" if flags else "Alloc"),),
                  comment_out=tuple(conf.all("PrologFlags")))


def _timeouts(conf):
    if conf.get("PrologEpilogTimeout") or conf.get("PrologTimeout"):
        return Wiring()
    return Wiring(lines=("PrologEpilogTimeout=120",))


def _task_prolog(conf, prefix):
    ours = prefix + "/taskprolog"
    found = _values(conf, "TaskProlog")
    if any(value == ours for _, value in found):
        return Wiring()
    if found:
        return Wiring(notes=("TaskProlog: %s stays; let it call %s and print what that prints"
                             % (found[-1][1], ours),))
    return Wiring(lines=("TaskProlog=" + ours,))
