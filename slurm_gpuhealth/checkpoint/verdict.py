"""What a look at a checkpoint came to, and the words its readers use among themselves."""
from __future__ import annotations

import errno
import time
from collections import namedtuple

VERIFIED, STRUCTURE, WEIGHTS = "verified", "structure-only", "weights-only"
REJECTED, UNKNOWN = "rejected", "unknown"
VERDICTS = (VERIFIED, STRUCTURE, WEIGHTS, REJECTED, UNKNOWN)
LEVELS = ("structure", "full")

Verdict = namedtuple("Verdict", "verdict format step missing world_size reason keys level trouble bytes step_key",
                     defaults=("", None, (), None, "", (), "structure", "", 0, ""))
Verdict.__doc__ = """One checkpoint, judged without executing it.

verdict: "verified" (whole, and a recorded checksum says so), "structure-only" (whole as far as sizes and structure
tell), "weights-only" (whole, but nothing to go on training with), "rejected" (not whole), "unknown" (cannot be
judged: unknown format, or it could not be read). format: "torch-zip", "safetensors", "safetensors-sharded",
"sealed", or what it seems to be. step: training step recorded in it, or None; step_key: the name it stood under.
missing: tuple of parts that were not found (of model, optimizer, lr_scheduler, global_step, grad_scaler, rng_state).
world_size: number of ranks where recorded. reason: one line for a person, "" when there is nothing to say.
keys: tuple of top-level names (at most MAX_KEYS). level: how deep it was looked at, "structure" or "full".
trouble: "" or why it could not be looked at: "gone", "denied", "io", "time", "memory". bytes: size of all files.
"""
MAX_KEYS = 200

Content = namedtuple("Content", "keys step step_key missing weights_only part why",
                     defaults=((), None, "", (), False, False, ""))
Content.__doc__ = """What the names in a checkpoint say. part: it is only one part of a checkpoint (optimizer
alone, one shard). why: one line about weights_only or part."""


class Bad(Exception):
    """Not whole: the checkpoint is rejected with this line."""


class Unclear(Exception):
    """Readable, but nobody can say whether it is whole: verdict unknown."""


class Trouble(Exception):
    """It could not be looked at. kind: as in Verdict.trouble."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


_KINDS = {errno.EACCES: "denied", errno.EPERM: "denied", errno.ENOENT: "gone", errno.ENOTDIR: "gone"}


def trouble_of(exc):
    """Trouble for an OSError."""
    what = exc.strerror or str(exc)
    return Trouble(_KINDS.get(exc.errno, "io"), what)


class Clock:
    """When to stop. until: monotonic time, or None for never."""

    def __init__(self, until=None):
        self.until = until

    def left(self):
        """Seconds left (may be negative), or None without a limit."""
        return None if self.until is None else self.until - time.monotonic()

    def check(self):
        """Raise Trouble("time") once it is too late."""
        if self.until is not None and time.monotonic() > self.until:
            raise Trouble("time", "not enough time to look at it")

    def shorter(self, seconds):
        """A clock that ends `seconds` from now, and not later than this one."""
        end = time.monotonic() + seconds
        return Clock(end if self.until is None else min(end, self.until))
