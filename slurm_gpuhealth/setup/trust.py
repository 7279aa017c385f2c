"""What root executes must belong to root, all the way up: interpreter, package, hooks."""
from __future__ import annotations

import os
import stat


def weak_points(path):
    """Who else could change what is at `path`: list of texts, empty when only root can.

    Looks at the path itself, at where its links lead, and at every folder above both.
    """
    found = []
    for start in {os.path.abspath(path), os.path.realpath(path)}:
        current = start
        while True:
            wrong = _weak(current)
            if wrong and wrong not in found:
                found.append(wrong)
            if current == "/":
                break
            current = os.path.dirname(current)
    return sorted(found)


def weak_tree(folder, limit=50):
    """Weak points of a folder, of what is above it and of everything below it; at most `limit` texts."""
    found = weak_points(folder)
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            wrong = _weak(os.path.join(base, name))
            if wrong:
                found.append(wrong)
            if len(found) >= limit:
                return found
    return found


def _weak(path):
    try:
        status = os.lstat(path)
    except OSError as error:
        return "%s: %s" % (path, error.strerror)
    if status.st_uid != 0:
        return "%s belongs to uid %d" % (path, status.st_uid)
    if stat.S_ISLNK(status.st_mode):
        return ""       # a link's own mode means nothing; its target is looked at as well
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & 0o022 and not sticky:
        return "%s is writable by others (mode %04o)" % (path, status.st_mode & 0o7777)
    return ""
