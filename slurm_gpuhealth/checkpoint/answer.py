"""The answer that Prolog leaves for a restarted job, as the job's user reads it: /run/gpuhealth/job-ID.json."""
from __future__ import annotations

import json
import os
import stat

from slurm_gpuhealth import paths, resume

MAX_ANSWER = 1 << 20    # bytes


def read(root, job, restart):
    """resume.Answer for this start, or None: there is none, it is another start's, or it is not to be trusted.

    Trusted is a plain file of root's or of this user's that nobody else can write. job: id as text.
    """
    if not job.isdigit():
        return None
    path = paths.under(root, paths.RUN) + "/job-%s.json" % job
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid not in (0, os.geteuid()) or about.st_mode & 0o022 \
                or about.st_size > MAX_ANSWER:
            return None
        data = os.read(fd, MAX_ANSWER)
    except OSError:
        return None
    finally:
        os.close(fd)
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return resume.from_record(plain, job, restart)
