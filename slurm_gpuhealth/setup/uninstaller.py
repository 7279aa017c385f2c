"""`gpuhealth uninstall`: takes back what `gpuhealth install` recorded, and nothing else.

Evidence and events stay unless --purge is given. A hook that slurmd still has in its configuration must not
just vanish, as slurmd takes a Prolog that it cannot start for a failed one and drains the node: it is replaced
by a script that does nothing, until slurmd has let go of it.
"""
from __future__ import annotations

import json
import os
import shutil
import stat

from slurm_gpuhealth import paths
from slurm_gpuhealth.errors import NotFoundError
from slurm_gpuhealth.setup import installer, render, slurmconf
from slurm_gpuhealth.state import write_atomic

NOTHING = b"#!/bin/sh\n# slurm-gpuhealth was uninstalled; slurmd still had this hook then. It does nothing.\nexit 0\n"


def still_used(root, record, slurm_settings):
    """True when slurmd may still start our hooks.

    slurm_settings: dict of `scontrol show config`, None where it did not answer, {} where there is no Slurm.
    """
    if slurm_settings is None:
        return True
    named = [slurm_settings.get(key, "") for key in ("prolog", "epilog", "healthcheckprogram", "taskprolog")]
    if any(record["prefix"] + "/" in value for value in named):
        return True
    # A link in the site's own prolog.d goes in the same moment as the hook: slurmd looks there each time.
    conf = installer.find_slurm_conf(root)
    if conf is None:
        return False
    settings = slurmconf.read(conf, root).settings
    return any(record["prefix"] + "/" in setting.value for setting in settings
               if setting.key in ("prolog", "epilog", "healthcheckprogram", "taskprolog"))


def uninstall(root, slurm_settings, purge=False, dry_run=False):
    """Take the installation back. Returns lines that say what was done (or would be, with dry_run).

    Raises NotFoundError when nothing is recorded.
    """
    record = installer.read_record(root)
    if not record:
        raise NotFoundError("nothing is installed here (no %s)" % installer.RECORD)
    said: list[str] = []
    todo = _Doer(root, dry_run, said)
    for path in record.get("edits", {}):
        todo.revert(path)
    used = still_used(root, record, slurm_settings)
    hooks = {"%s/%s" % (record["prefix"], name) for name in render.HOOKS + ("healthcheck-site",)}
    chained = {path for path in record["links"] if path.startswith(record["prefix"] + "/")}
    for path in record["links"]:
        # Of a folder that only we use, the site's own links must go on working as long as slurmd looks there.
        if not (used and path in chained):
            todo.remove_link(path, record["links"][path])
    for path, about in record["files"].items():
        if used and path in hooks:
            todo.neutralise(path, about)
        else:
            todo.remove_file(path, about)
    if used:
        said.append("slurmd may still start the hooks: take their lines out of slurm.conf where they are still there,"
                    " run `scontrol reconfigure`, then `gpuhealth uninstall` again")
        return said
    todo.remove_state(purge)
    for path in sorted(record["folders"], key=len, reverse=True):
        todo.remove_folder(path)
    return said


class _Doer:
    """Does the removals, or only says them."""

    def __init__(self, root, dry_run, said):
        self.root, self.dry_run, self.said = root, dry_run, said

    def revert(self, path):
        real = os.path.realpath(paths.under(self.root, path))
        try:
            with open(real, "rb") as handle:
                now = handle.read().decode("utf-8", "surrogateescape")
                status = os.fstat(handle.fileno())
        except FileNotFoundError:
            return
        before = slurmconf.revert(now)
        if before == now:
            return
        self.said.append("put back: " + path)
        if not self.dry_run:
            write_atomic(real, before.encode("utf-8", "surrogateescape"), stat.S_IMODE(status.st_mode),
                         durable=True, owner=(status.st_uid, status.st_gid))

    def remove_link(self, path, target):
        full = paths.under(self.root, path)
        if os.path.islink(full) and os.readlink(full) == target:
            self._unlink(path, full)

    def remove_file(self, path, about):
        full = paths.under(self.root, path)
        content = self._content(full)
        if content is None:
            return
        if installer.digest(content) != about["sha256"] and content != NOTHING:
            self.said.append("kept, as it was changed since: " + path)
        else:
            self._unlink(path, full)
            self._put_back(path, about.get("before"))

    def _put_back(self, path, before):
        """The file that stood there before the installation."""
        kept = os.path.join(os.path.dirname(paths.under(self.root, path)), before or "")
        if before and os.path.lexists(kept):
            self.said.append("put back: " + path)
            if not self.dry_run:
                os.rename(kept, paths.under(self.root, path))

    def neutralise(self, path, about):
        full = paths.under(self.root, path)
        content = self._content(full)
        if content is None or content == NOTHING or installer.digest(content) != about["sha256"]:
            return
        # The site's own health check goes on through our wrapper.
        if path.endswith("/healthcheck-site"):
            return
        self.said.append("does nothing from now on: " + path)
        if not self.dry_run:
            write_atomic(full, NOTHING, about["mode"])

    def remove_state(self, purge):
        names = [installer.RECORD, paths.COMPILED, paths.CONFIG + ".new"]
        for path in names:
            full = paths.under(self.root, path)
            if os.path.lexists(full):
                self._unlink(path, full)
        for path in (paths.STATE, paths.RUN) if purge else ():
            if os.path.isdir(paths.under(self.root, path)):
                self.said.append("removed with all that is in it: " + path)
                if not self.dry_run:
                    shutil.rmtree(paths.under(self.root, path))

    def remove_folder(self, path):
        full = paths.under(self.root, path)
        try:
            empty = not os.listdir(full)
        except FileNotFoundError:
            return
        if empty:
            self.said.append("removed: " + path)
            if not self.dry_run:
                os.rmdir(full)

    def _content(self, full):
        try:
            with open(full, "rb") as handle:
                return handle.read()
        except FileNotFoundError:
            return None

    def _unlink(self, path, full):
        self.said.append("removed: " + path)
        if not self.dry_run:
            os.unlink(full)


def as_json(lines, dry_run):
    """The JSON document of the command."""
    return json.dumps({"v": 1, "dry_run": dry_run, "done": lines}, indent=2)
