"""The list of what is in an evidence folder, and of what could not be collected and why.

manifest.json: {v, id, name, node, code, subject, boot_id, opened, tool, state, fallback, notes, updated,
limit, items: [{name, bytes, sha256, status, why, seconds}]}. state is "open" until everything is there, then
"final": a folder that stays "open" is incomplete, because its writer was killed or the node went down. status
is "ok" (why then says if it was cut) or "missing". Described in docs/evidence.md.
"""
from __future__ import annotations

import hashlib
import json
import os
import stat

from slurm_gpuhealth import __version__
from slurm_gpuhealth.errors import DataError

VERSION = 1
NAME = "manifest.json"
OPEN, FINAL = "open", "final"
ITEM_OK, ITEM_MISSING = "ok", "missing"
TEMPORARY = ".tmp-"         # prefix of files that are being written; what is left of them is no evidence
_MAX_BYTES = 4 << 20
_CHUNK = 1 << 20


def new(incident, name, node, subject):
    """A manifest without items. incident: model.Incident. subject: its short text ("gpu3")."""
    return {"v": VERSION, "id": incident.id, "name": name, "node": node, "code": incident.code,
            "subject": subject, "boot_id": incident.boot_id, "opened": incident.opened, "tool": __version__,
            "state": OPEN, "fallback": "", "limit": 0, "notes": [], "updated": incident.opened, "items": []}


def item(name, data=None, why="", seconds=None):
    """One entry: of `data` (bytes), or of something that could not be had (None), which needs a `why`."""
    entry = {"name": name, "status": ITEM_MISSING if data is None else ITEM_OK, "why": why,
             "bytes": 0 if data is None else len(data),
             "sha256": "" if data is None else hashlib.sha256(data).hexdigest()}
    if seconds is not None:
        entry["seconds"] = round(seconds, 3)
    return entry


def put(manifest, entry):
    """Add an entry, in the place of an older one of the same name."""
    for number, old in enumerate(manifest["items"]):
        if old["name"] == entry["name"]:
            manifest["items"][number] = entry
            return
    manifest["items"].append(entry)


def encode(manifest):
    """Bytes of a manifest, to read as well as to parse."""
    return json.dumps(manifest, indent=1).encode("ascii") + b"\n"


def load(folder):
    """The manifest of a folder. Raises DataError when it is not there or is none."""
    path = os.path.join(folder, NAME)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as exc:
        raise DataError("%s: %s" % (path, exc.strerror)) from exc
    with open(fd, "rb") as handle:
        data = handle.read(_MAX_BYTES)
    try:
        manifest = json.loads(data)
        manifest["state"], manifest["notes"], manifest["id"], manifest["limit"], manifest["fallback"]
        for entry in manifest["items"]:
            name = entry["name"]
            if entry["status"] not in (ITEM_OK, ITEM_MISSING) or "/" in name or name in ("", ".", ".."):
                raise ValueError("bad item %r" % name[:80])
        return manifest
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise DataError("%s: not a manifest: %s" % (path, exc)) from exc


def digest(path):
    """(bytes, sha256) of a plain file. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as handle:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a plain file")
        size, value = 0, hashlib.sha256()
        for chunk in iter(lambda: handle.read(_CHUNK), b""):
            size += len(chunk)
            value.update(chunk)
    return size, value.hexdigest()


def verify(folder):
    """What is wrong with a folder: {"changed": [...], "missing": [...], "extra": [...], "complete": bool}.

    changed: the content is not what was recorded. missing: recorded as collected and gone now. extra: not
    recorded. What the manifest itself says could not be collected is none of these.
    """
    manifest = load(folder)
    result = {"changed": [], "missing": [], "extra": [], "complete": manifest.get("state") == FINAL}
    known = {NAME}
    for entry in manifest["items"]:
        known.add(entry["name"])
        if entry["status"] != ITEM_OK:
            continue
        try:
            if digest(os.path.join(folder, entry["name"])) != (entry["bytes"], entry["sha256"]):
                result["changed"].append(entry["name"])
        except FileNotFoundError:
            result["missing"].append(entry["name"])
        except OSError as exc:
            result["changed"].append("%s (%s)" % (entry["name"], exc.strerror))
    recorded = {entry["name"] for entry in manifest["items"] if entry["status"] == ITEM_OK}
    result["extra"] = sorted(name for name in os.listdir(folder)
                             if name not in recorded and name != NAME and not name.startswith(TEMPORARY))
    return result
