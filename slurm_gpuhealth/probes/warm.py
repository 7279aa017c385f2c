"""The child that asks NVML, started before the hook knows what to ask.

Importing nvidia-ml-py takes as long as all of the hook's own modules. So the child is started first and imports it on
the other core, then waits for its task. Where it gets none (kill switch, a node without GPUs, a hook that was killed)
its pipe ends, and it too; NVML was not touched then.
"""
from __future__ import annotations

import json
import os
import time

from slurm_gpuhealth import supervise

# Device files of the driver: without any of them there is nothing to warm up for.
_SIGNS = ("/dev/nvidiactl", "/dev/nvidia0")
_PATIENCE = 60.0        # seconds; the hook gives the task within a tenth of one


class Warm:
    """A started child and the pipe for its task."""

    def __init__(self, child, fd):
        self._child, self._fd = child, fd

    def go(self, spec, deadline, on_record=None):
        """Give the child its task and its deadline (seconds from now); returns the supervise.Child for `gather`.
        OSError when it is gone already."""
        data = json.dumps(spec).encode()
        try:
            while data:
                data = data[os.write(self._fd, data):]
        finally:
            self.forget()
        child = self._child
        child.started = time.monotonic()
        child.deadline = child.next_step = child.started + deadline
        child.on_record = on_record
        return child

    def forget(self):
        """There is no task: the child ends."""
        if self._fd is not None:
            supervise.may_be_kept(self._fd)
            os.close(self._fd)
            self._fd = None


def start():
    """Warm, or None where there is no sign of a GPU or no child could be started."""
    if not any(os.path.exists(path) for path in _SIGNS):
        return None
    read_end, write_end = os.pipe()
    try:
        child = supervise.start("nvml", _wait_and_read, (read_end, write_end), _PATIENCE)
    except OSError:
        os.close(read_end)
        os.close(write_end)
        return None
    os.close(read_end)
    supervise.keep_from_children(write_end)     # or the end of the pipe would never be seen
    return Warm(child, write_end)


def _wait_and_read(pipe, emit):
    """In the child."""
    read_end, write_end = pipe
    os.close(write_end)
    from slurm_gpuhealth.probes import nvml, nvml_call, nvml_device, nvml_readers  # noqa: F401
    try:
        nvml_call.import_nvml()
    except ImportError:
        pass    # said when it is asked for
    data = b"".join(iter(lambda: os.read(read_end, 65536), b""))
    if data:
        nvml.read(json.loads(data), emit)
