"""The files that an installation consists of, rendered for one interpreter and one place."""
from __future__ import annotations

import importlib.util
import os
import shlex

from slurm_gpuhealth import __version__
from slurm_gpuhealth.errors import UsageError

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "install_data")
HOOKS = ("healthcheck", "prolog", "epilog", "taskprolog")
# The kernel reads this much of a script's first line (Linux before 5.1; 256 since).
_SHEBANG = 127


def template(name):
    """Text of one file of install_data/."""
    with open(os.path.join(DATA, name), encoding="utf-8") as handle:
        return handle.read()


def python_paths(modules=("slurm_gpuhealth", "pynvml", "yaml")):
    """Folders that must be on sys.path for the hooks: those of this package and of what it imports.

    A module that is not installed is left out; the doctor says so.
    """
    folders = []
    for name in modules:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            continue
        folder = os.path.dirname(os.path.abspath(spec.origin))
        # A package lives in its own folder below the one that sys.path needs; a single-file module does not.
        folder = os.path.dirname(folder) if spec.submodule_search_locations else folder
        if folder not in folders:
            folders.append(folder)
    return folders


def hook(name, python, folders):
    """Text of one hook. Raises UsageError where the interpreter's path cannot stand in a first line."""
    return _script("hooks/" + name, python, folders)


def watch(python, folders):
    """Text of the executable that the service starts. Raises as `hook`."""
    return _script("watch", python, folders)


def watch_unit(prefix):
    """Text of the systemd unit of the service."""
    return template("gpuhealth-watch.service").replace("@PREFIX@", prefix).replace("@VERSION@", __version__)


def _script(name, python, folders):
    first = "#!%s -IS" % python
    if any(char.isspace() for char in python) or not python.startswith("/") or len(first) > _SHEBANG:
        raise UsageError("%s: a hook's first line cannot name this interpreter (spaces, or more than %d"
                         " characters)" % (python, _SHEBANG - 6))
    text = template(name)
    return text.replace("@PYTHON@", python).replace("@VERSION@", __version__).replace("@PATHS@", repr(folders))


def healthcheck_site(site, ours):
    """Text of the HealthCheckProgram that runs the site's own program first and keeps its exit status."""
    return template("healthcheck-site").replace("@VERSION@", __version__).replace(
        "@SITE@", shlex.quote(site)).replace("@OURS@", shlex.quote(ours))


def fragment(prefix):
    """Text of the slurm.conf fragment."""
    return template("slurm.conf.fragment").replace("@PREFIX@", prefix).replace("@VERSION@", __version__)
