"""The kernel log could be read, so that the Xid check means something.

Late: `GH-LOG-LATE`; not readable, or records were overwritten before anybody read them: `GH-LOG-FAIL`. Both say
"could not look": an unread log is never healthy, and never a reason to drain.

Unknown: this check has no other bad outcome.
"""
from __future__ import annotations

from slurm_gpuhealth import facts as F
from slurm_gpuhealth.checks._shared import HUNG, LATE, finding, source
from slurm_gpuhealth.model import NODE, UNREAD


def check(facts, limits):
    """Findings about the kernel log as a source."""
    status = source(facts, "kmsg")
    if status is not None and status.outcome in (LATE, HUNG):
        return [finding("GH-LOG-LATE", NODE, status.detail or "no answer", severity=UNREAD, rounds=status.rounds)]
    if not F.is_known(facts.klog):
        return [finding("GH-LOG-FAIL", NODE, facts.klog.detail or facts.klog.reason, severity=UNREAD)]
    if status is not None and status.outcome == "failed":
        return [finding("GH-LOG-FAIL", NODE, status.detail, severity=UNREAD)]
    if facts.klog.lost:
        return [finding("GH-LOG-FAIL", NODE, "%d records were lost unread" % facts.klog.lost, severity=UNREAD,
                        lost=facts.klog.lost)]
    return []
