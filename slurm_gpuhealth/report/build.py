"""The report over a folder of event files, on as many processors as there are (two are enough for a year)."""
from __future__ import annotations

import gc
import os

from slurm_gpuhealth import event_files
from slurm_gpuhealth.report import aggregate

_WORTH_IT = 8 << 20     # bytes; a second process costs a tenth of a second


def build(path, since=None, until=None, now=None, workers=None):
    """(report, stats of reading) over the events in `path`, a file or a folder."""
    names = event_files.files(path, since) if os.path.isdir(path) else [path]
    workers = min(4, len(os.sched_getaffinity(0))) if workers is None else workers
    if workers > 1 and len(names) > 1 and sum(map(_size, names)) >= _WORTH_IT:
        parts = _in_parallel(names, since, until, workers)
        nodes = set().union(*(tally.nodes for tally, _ in parts))
        if len(nodes) == sum(len(tally.nodes) for tally, _ in parts):
            total, stats = parts[0]
            for tally, more in parts[1:]:
                total.add(tally)
                stats = {key: stats.get(key, 0) + more.get(key, 0) for key in {**stats, **more}}
            return total.report(since, until if until is not None else now), stats
        # A node's events stand in several files, perhaps twice: only one process can tell.
    tally, stats = _count(names, since, until)
    return tally.report(since, until if until is not None else now), stats


def _size(name):
    try:
        return os.path.getsize(name)
    except OSError:
        return 0


def _in_parallel(names, since, until, workers):
    """[(Tally, stats)] of the files, split by node so that one node's files are counted by one process."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context
    groups: dict = {}
    for name in names:
        groups.setdefault(os.path.basename(name)[:-14], []).append(name)
    shares: list = [[0, []] for _ in range(workers)]
    for _, group in sorted(groups.items(), key=lambda item: -sum(map(_size, item[1]))):
        least = min(shares, key=lambda share: share[0])
        least[0] += sum(map(_size, group)) + 1
        least[1] += group
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        jobs = [pool.submit(_count, share, since, until) for _, share in shares if share]
        return [job.result() for job in jobs]


def _count(names, since, until):
    """Tally of some files, and what reading them was like."""
    tally = aggregate.Tally()
    stats: dict = {}
    # Nothing here makes cycles, and a million short-lived dicts make the collector run in vain.
    was_on = gc.isenabled()
    gc.disable()
    try:
        tally.see(event_files.read(names, since, stats), until)
    finally:
        if was_on:
            gc.enable()
    return tally, stats
