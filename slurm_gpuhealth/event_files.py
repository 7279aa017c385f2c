"""Files of events: reading them, pruning them, copying them to the shared folder. Nothing here is needed by a
healthy hook; events.py is the part that is.
"""
from __future__ import annotations

import contextlib
import json
import os
import stat

from slurm_gpuhealth import paths
from slurm_gpuhealth.events import file_name, week_of
from slurm_gpuhealth.state import write_atomic

WEEK = 7 * 86400
_BLOCK = 1 << 20             # bytes read at a time; no event is longer
_BATCH = 64                 # lines that are parsed at a time
_SCAN = json.JSONDecoder().scan_once        # type: ignore[attr-defined]
_MIRROR_CHUNK = 1 << 20     # bytes of one file copied in one round; what is left follows in the next
_OPEN = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
def files(folder, since=None):
    """Event files of a folder, oldest week first; those that ended well before `since` are left out."""
    first = week_of(since - WEEK) if since is not None else ""    # a week of slack for clocks that step
    found = []
    for name in os.listdir(folder):
        if name.endswith(".jsonl"):
            week = name[-14:-6]
            if not (week[4:6] == "-W" and week < first):
                found.append((week, name))
    return [os.path.join(folder, name) for _, name in sorted(found)]


def read(path, since=None, stats=None):
    """Iterate over the events (dicts) of a file, a list of files, or all *.jsonl of a folder, oldest week first.

    Tolerates lines that were cut or garbled (skipped), unknown versions and kinds (kept as they are),
    duplicates by id (dropped). `stats`, a dict, gets "files", "events", "bad" and "duplicates".
    """
    stats = {} if stats is None else stats
    for key in ("files", "events", "bad", "duplicates", "unreadable"):
        stats.setdefault(key, 0)
    seen: set[str] = set()
    if isinstance(path, (list, tuple)):
        names = path
    else:
        names = files(path, since) if os.path.isdir(path) else [path]
    for name in names:
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            stats["unreadable"] += 1
            continue
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                stats["files"] += 1
                for lines in _blocks(fd):
                    yield from _read_lines(lines, seen, stats, since)
        except OSError:
            stats["unreadable"] += 1        # a disk or a mount that fails in the middle
        finally:
            os.close(fd)


def _blocks(fd):
    """Lists of lines. A piece of more than a block without any line end is no event and is dropped."""
    rest = b""
    while True:
        data = os.read(fd, _BLOCK)
        if not data:
            break
        data = rest + data
        end = data.rfind(b"\n") + 1
        rest = data[end:] if len(data) - end < _BLOCK else b""
        if end:
            yield data[:end - 1].decode("utf-8", "replace").split("\n")
    if rest:
        yield [rest.decode("utf-8", "replace")]


def _read_lines(lines, seen, stats, since):
    events = bad = duplicates = 0
    try:
        for start in range(0, len(lines), _BATCH):
            for one in _parse(lines[start:start + _BATCH]):
                if type(one) is not dict:
                    bad += one
                    continue
                key = one.get("id")
                if type(key) is str:
                    if key in seen:
                        duplicates += 1
                        continue
                    seen.add(key)
                if since is not None:
                    when = one.get("time")
                    if type(when) in (int, float) and when < since:
                        continue
                events += 1
                yield one
    finally:
        stats["events"] += events
        stats["bad"] += bad
        stats["duplicates"] += duplicates


def _parse(lines):
    """The events of some lines; in the place of a line without one, 1 (bad) or 0 (empty).

    All at once is a third faster than one by one: the parser makes each key once. Where that does not give one
    event a line, they are taken one by one.
    """
    text = "[" + ",".join(lines) + "]"
    try:
        found, end = _SCAN(text, 0)
        if end == len(text) and len(found) == len(lines) and all(type(one) is dict for one in found):
            return found
    except (StopIteration, ValueError, RecursionError):
        pass    # said line by line below
    return [_parse_one(line) for line in lines]


def _parse_one(text):
    try:
        one, end = _SCAN(text, 0)
        if end == len(text) and type(one) is dict:
            return one
    except (StopIteration, ValueError, RecursionError):
        pass    # cut or garbled
    one = _salvage(text)
    return one if one is not None else int(bool(text.strip("\0 \r\n")))


def _salvage(text):
    """The event in a line with zero bytes before it (a power cut) or glued to a cut one, or None."""
    start = text.rfind('{"v":')
    try:
        one = json.loads(text[start:].strip("\0 \r\n")) if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    return one if isinstance(one, dict) else None


def prune(folder, keep_weeks, now):
    """Remove event files of weeks older than `keep_weeks`. Returns their names."""
    oldest = week_of(now - keep_weeks * WEEK)
    removed: list[str] = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return removed
    for name in sorted(names):
        week = name[-14:-6]
        if name.endswith(".jsonl") and week[4:6] == "-W" and week < oldest:
            os.unlink(os.path.join(folder, name))
            removed.append(name)
    return removed


def mirror(root, cfg, node, deadline=5.0):
    """Copy this node's new event lines to `shared_dir`/events, as `service_user`. Returns "" or why not.

    The local files are read here, as root may be squashed on the shared folder and the service user may not
    read the local ones; only the writing happens in a child, which may hang on a dead mount and is then left
    behind. Both files are the same bytes at the same place, so a copy that is done twice changes nothing.
    """
    from slurm_gpuhealth import supervise
    if not cfg.get("shared_dir"):
        return ""
    offsets_file = paths.under(root, paths.EVENTS) + "/.mirror.json"
    offsets = _load_offsets(offsets_file)
    batch = _mirror_batch(paths.under(root, paths.EVENTS), node, offsets)
    if not batch:
        return ""
    as_user = None
    if cfg.get("service_user") and os.geteuid() == 0:
        import pwd
        try:
            entry = pwd.getpwnam(cfg["service_user"])
        except KeyError:
            return "there is no user %s" % cfg["service_user"]
        as_user = supervise.AsUser(entry.pw_uid, entry.pw_gid) if entry.pw_uid else None
    spec = {"folder": os.path.join(cfg["shared_dir"], "events"), "files": batch}
    result = supervise.call(_mirror_write, spec, deadline, as_user, "mirror")
    for kind, plain in result.records:
        if kind == "mirrored":
            offsets[plain["name"]] = plain["size"]
    _save_offsets(offsets_file, offsets)
    return "" if result.status.outcome == "ok" else result.status.detail


def _mirror_batch(folder, node, offsets):
    """[{name, offset, data}] of this node's two newest files: whole lines that were not copied yet."""
    prefix = file_name(node, 0)[:-14]
    batch: list[dict] = []
    try:
        own = sorted(name for name in os.listdir(folder) if name[:-14] == prefix and name.endswith(".jsonl"))
    except OSError:
        return batch
    for name in own[-2:]:
        try:
            with open(os.path.join(folder, name), "rb") as handle:
                size = os.fstat(handle.fileno()).st_size
                offset = offsets.get(name, 0) if offsets.get(name, 0) <= size else 0
                handle.seek(offset)
                data = handle.read(_MIRROR_CHUNK)
        except OSError:
            continue
        data = data[:data.rfind(b"\n") + 1]
        if data:
            batch.append({"name": name, "offset": offset, "data": data.decode("utf-8", "surrogateescape")})
    return batch


def _mirror_write(spec, emit):
    """In the child: put each piece at its own offset; where the copy is shorter, say so and start there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(spec["folder"], 0o755)
    for piece in spec["files"]:
        data = piece["data"].encode("utf-8", "surrogateescape")
        fd = os.open(os.path.join(spec["folder"], piece["name"]), os.O_WRONLY | os.O_CREAT | _OPEN, 0o644)
        try:
            size = os.fstat(fd).st_size
            if size < piece["offset"]:
                emit("mirrored", {"name": piece["name"], "size": size})
                continue
            done = os.pwrite(fd, data, piece["offset"])
            os.fsync(fd)
        finally:
            os.close(fd)
        emit("mirrored", {"name": piece["name"], "size": piece["offset"] + done})


def _load_offsets(name):
    try:
        with open(name, encoding="ascii") as handle:
            plain = json.load(handle)
    except (OSError, ValueError):
        return {}
    if not isinstance(plain, dict):
        return {}
    return {key: value for key, value in plain.items() if isinstance(value, int)}


def _save_offsets(name, offsets):
    newest = dict(sorted(offsets.items(), key=lambda item: item[0][-14:])[-8:])
    # Not saved: copied again next time, which changes nothing.
    with contextlib.suppress(OSError):
        write_atomic(name, json.dumps(newest).encode("ascii"))
