"""The shelf of evidence folders: finding, pruning, and what is still to be collected slowly.

Folders are named `<UTC time>-<code>-<id>` (store.folder_name), hold plain files only and sort by time.
"""
from __future__ import annotations

import contextlib
import os
import time

from slurm_gpuhealth import paths
from slurm_gpuhealth.errors import NotFoundError
from slurm_gpuhealth.evidence import manifest as manifests
from slurm_gpuhealth.state import make_folder, write_atomic


def bases(root):
    """Where evidence may be: the state folder, and the tmpfs."""
    return paths.under(root, paths.EVIDENCE), paths.under(root, paths.RUN_EVIDENCE)


def safe(text):
    """`text` as a part of a file name: ASCII letters, digits, `-` and `_`, at most 60 characters."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in text)[:60]


def split_name(name):
    """(time, code, id) of a folder's name, or None for another folder."""
    first, _, rest = name.partition("-")
    code, _, incident = rest.rpartition("-")
    if len(first) != 16 or first[8] != "T" or not code or not incident:
        return None
    return first, code, incident


def all_folders(root):
    """Paths of all evidence folders, oldest first; the tmpfs' too."""
    found = []
    for base in bases(root):
        try:
            names = os.listdir(base)
        except OSError:
            continue
        found += [(name, os.path.join(base, name)) for name in names if split_name(name)]
    return [path for _, path in sorted(found)]


def find_all(root, incident_id):
    """Folders of exactly this incident."""
    return [path for path in all_folders(root) if split_name(os.path.basename(path))[2] == incident_id]


def find(root, text):
    """The one folder that `text` names: a path, a folder's name, or the start of an incident's id.

    Raises NotFoundError for none and for several.
    """
    if "/" in text or os.path.isfile(os.path.join(text, manifests.NAME)):
        if os.path.isdir(text):
            return text.rstrip("/") or "/"
        raise NotFoundError("no evidence folder %s" % text)
    found = [path for path in all_folders(root) if os.path.basename(path) == text
             or split_name(os.path.basename(path))[2].startswith(text)]
    if not found:
        raise NotFoundError("no evidence with the id %s: see `gpuhealth evidence list`" % text)
    if len({split_name(os.path.basename(path))[2] for path in found}) > 1:
        raise NotFoundError("%s fits %d incidents: %s" % (
            text, len(found), " ".join(os.path.basename(path) for path in found[:5])))
    # An incident whose disk failed has a half folder there and the whole one in the tmpfs.
    return max(found, key=lambda path: (_state(path) == manifests.FINAL, path))


def _state(path):
    try:
        return manifests.load(path).get("state")
    except manifests.DataError:
        return ""


def size_of(path):
    """Bytes of the plain files of a folder."""
    total = 0
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def remove(path):
    """Remove a folder of plain files. Returns True when it is gone."""
    try:
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return False
    return True


def remove_oldest(base, keep, open_ids):
    """Remove all but the `keep` newest folders of `base`; none of an open incident."""
    names = sorted(name for name in os.listdir(base) if split_name(name))
    for name in names[:max(0, len(names) - keep)]:
        if split_name(name)[2] not in open_ids:
            remove(os.path.join(base, name))


def prune(root, cfg, open_ids, now=None):
    """Remove old folders over the limits of age, number and total size, oldest first. Returns their names.

    The folder of an open incident (its id in `open_ids`) is never removed.
    """
    limits, now = cfg["evidence"], time.time() if now is None else now
    base = bases(root)[0]
    try:
        names = sorted((name for name in os.listdir(base) if split_name(name)), reverse=True)
    except OSError:
        return []
    oldest = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now - limits["max_age_days"] * 86400))
    count = total = 0
    removed = []
    for name in names:      # newest first: what is kept counts
        path = os.path.join(base, name)
        stamp, _, incident = split_name(name)
        try:
            size = size_of(path)
        except OSError:
            continue
        fits = stamp >= oldest and count < limits["max_folders"] \
            and total + size <= limits["max_total_mb"] << 20
        if not fits and incident not in open_ids and remove(path):
            removed.append(name)
            continue
        count += 1
        total += size
    return removed


def make_slow_folder(root):
    """The folder of what is still to be collected: its path."""
    folder = paths.under(root, paths.STATE) + "/slow"
    make_folder(folder, 0o700)
    return folder


def queue_slow(root, incident_id):
    """Leave word that the slow part of an incident is still to be collected."""
    write_atomic("%s/%s" % (make_slow_folder(root), safe(incident_id)), b"")


def queued_slow(root):
    """Ids of incidents whose slow part is still to be collected."""
    try:
        return sorted(name for name in os.listdir(paths.under(root, paths.STATE) + "/slow") if name[0] != ".")
    except OSError:
        return []


def done_slow(root, incident_id):
    """Take that word back."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink("%s/slow/%s" % (paths.under(root, paths.STATE), safe(incident_id)))
