"""Checksums of many pieces on a few processors at once. zlib and hashlib let go of the interpreter lock."""
from __future__ import annotations

import os
import time
from collections import namedtuple

from slurm_gpuhealth.checkpoint.verdict import Bad, Trouble, Unclear

CHUNK = 1 << 20         # bytes a read; larger ones fall out of the processor's cache
MAX_WORKERS = 4
_LOOK_AFTER = 0.5       # seconds of reading before the rate is believed

Piece = namedtuple("Piece", "source offset size kind")
Piece.__doc__ = """Bytes to sum up: a Source, or a function that opens one (a folder has more files than a process
may hold open), where they begin, how many, and "crc32" or "sha256"."""


class Progress:
    """How much of a checksum run is done. Given to `sums`, it may be looked at from `on_step`."""

    def __init__(self, total, on_step=None):
        self.total, self.done = total, 0
        self.started = time.monotonic()
        self.on_step = on_step

    def step(self, count, clock):
        self.done += count
        clock.check()
        left = clock.left()
        spent = time.monotonic() - self.started
        if left is not None and spent > _LOOK_AFTER and self.done:
            # Giving up early leaves the time for the next checkpoint, or for a look at structure only.
            needed = (self.total - self.done) * spent / self.done
            if needed > left * 1.2:
                raise Trouble("time", "not enough time for its checksums: %.0f s needed" % (spent + needed))
        if self.on_step is not None:
            self.on_step(self)


def sums(pieces, clock, on_step=None):
    """Checksum of each Piece, in their order: int for crc32, hex text for sha256.

    Raises what reading raises: Bad, OSError, Trouble("time") at the deadline or when the rate says it will be late.
    """
    progress = Progress(sum(piece.size for piece in pieces), on_step)
    results = [None] * len(pieces)
    # Largest first, so that no processor is left alone with a large one at the end.
    order = sorted(range(len(pieces)), key=lambda at: -pieces[at].size)
    workers = min(MAX_WORKERS, len(os.sched_getaffinity(0)), len(pieces))
    if workers <= 1 or progress.total < 4 * CHUNK:
        for at in order:
            results[at] = _sum(pieces[at], clock, progress)
        return results
    _in_threads(pieces, order, results, workers, clock, progress)
    return results


def _in_threads(pieces, order, results, workers, clock, progress):
    import threading  # not worth its import for the small ones

    todo, failures = iter(order), []    # type: ignore[var-annotated]

    def work():
        # next() of a shared iterator is atomic under the interpreter lock.
        for at in todo:
            if failures:
                return
            try:
                results[at] = _sum(pieces[at], clock, progress, failures)
            except (Bad, Unclear, Trouble, OSError, MemoryError) as exc:
                failures.append(exc)    # raised in the caller's thread below
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    if None in results:     # a thread died of a fault of ours: no checksum is not a wrong checksum
        raise RuntimeError("a checksum was not computed")


def _sum(piece, clock, progress, failures=()):
    if not callable(piece.source):
        return _sum_of(piece.source, piece, clock, progress, failures)
    with piece.source() as source:
        if source.size != piece.size:
            raise Bad("%s changed while it was read" % source.shown)
        return _sum_of(source, piece, clock, progress, failures)


def _sum_of(source, piece, clock, progress, failures):
    if piece.kind == "crc32":
        import zlib
        crc32, value, digest = zlib.crc32, 0, None
    else:
        import hashlib
        digest = hashlib.sha256()
    buffer = bytearray(min(CHUNK, max(piece.size, 1)))
    view = memoryview(buffer)
    at, left = piece.offset, piece.size
    while left:
        count = os.preadv(source.fd, [view[:min(left, len(buffer))]], at)
        if not count:
            raise Bad("%s got shorter while it was read" % source.shown)
        if digest is None:
            value = crc32(view[:count], value)
        else:
            digest.update(view[:count])
        at += count
        left -= count
        progress.step(count, clock)
        if failures:
            return None
    return value if digest is None else digest.hexdigest()
