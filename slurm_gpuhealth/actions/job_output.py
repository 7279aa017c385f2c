"""One line in a job's own output file, written by a child that has become the job's user."""
from __future__ import annotations

import os
import stat
import time

from slurm_gpuhealth import supervise


def append_line(ctx, job, text):
    """Append `text` to the job's StdOut. Best effort: an event when it cannot be, nothing more."""
    if not job.stdout or job.uid is None or ctx.time_left(1.0) <= 0:
        return
    line = "gpuhealth: %s %s\n" % (time.strftime("%Y-%m-%d %H:%M:%S"), text)
    result = supervise.call(_append, {"path": job.stdout, "line": line}, min(2.0, ctx.time_left(0.5)),
                            as_user=supervise.AsUser(job.uid), name="job output")
    if result.status.outcome != "ok":
        ctx.event("unacted", action="job output", why=result.status.detail, job=job)


def _append(spec, emit):
    """As the user: a FIFO or a device under that name would block or do harm, so only a plain file is written."""
    fd = os.open(spec["path"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("not a plain file")
        os.write(fd, spec["line"].encode("utf-8", "replace"))
    finally:
        os.close(fd)
