"""The node's clock is disciplined and right.

Nobody disciplines it (the kernel's own flag, which chronyd, ntpd, timesyncd and phc2sys clear), it is off by more
than the limit `offset`, or its possible error passed the limit `max_error`: `GH-CLOCK`, a warning. Logs of two nodes
cannot be laid side by side then, and file times lie. In the first minutes after a boot (limit `settle`) the time
daemon is still looking for its servers.

Unknown: the clock could not be asked; where that is not supported (some sandboxes) the check says nothing.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._node import not_asked, unread
from slurm_gpuhealth.checks._shared import finding
from slurm_gpuhealth.model import NODE

LIMITS = {"offset": (0.1, "seconds that the clock may be off"),
          "max_error": (10, "seconds that its possible error may reach"),
          "settle": (900, "seconds after a boot in which nothing is said")}
_EPERM, _ENOSYS = 1, 38


def check(facts, limits):
    """Findings about the clock. limits: offset, max_error, settle (seconds)."""
    clock = facts.clock
    if not F.is_known(clock):
        if clock.code in (_EPERM, _ENOSYS) or not_asked(facts, clock):
            return []
        return unread("clock", clock)
    if F.is_known(facts.uptime) and facts.uptime < limits["settle"]:
        return []
    about = {"offset": clock.offset, "max_error": clock.max_error}
    # chronyd clears the kernel's flag only with rtcsync: the flag alone, with an error that is small, says nothing.
    if clock.synchronised is False and not (clock.max_error is not None and clock.max_error <= limits["max_error"]):
        return [finding("GH-CLOCK", NODE, "not synchronised", **about)]
    if clock.offset is not None and abs(clock.offset) > limits["offset"]:
        return [finding("GH-CLOCK", NODE, "%.3f s off" % clock.offset, "at most %s s" % limits["offset"], **about)]
    if clock.max_error is not None and clock.max_error > limits["max_error"]:
        return [finding("GH-CLOCK", NODE, "may be %.1f s off" % clock.max_error, "at most %s s" % limits["max_error"],
                        **about)]
    return []
