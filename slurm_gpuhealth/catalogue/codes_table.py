"""Reason codes. Generated from codes/*.yaml (2026-11-30) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Code = namedtuple(
    "Code", "code title layer severity job_action recoverable subject fixer seen_once detail short rank")
Code.__doc__ = """One reason code; for the fields see codes/README.md. rank 0 leads a reason."""

CODES = {
    'GH-XID': Code(
        'GH-XID', 'The NVIDIA driver reported a fault of the GPU', 'hardware', 'fatal', 'let-finish',
        False, 'gpu', 'hardware', True, '', 'Xid', 0),
    'GH-BUS-OFF': Code(
        'GH-BUS-OFF', 'The GPU has fallen off the bus', 'hardware', 'fatal', 'requeue-now', False, 'gpu',
        'hardware', True, '', 'fell off bus', 1),
    'GH-GPU-LOST': Code(
        'GH-GPU-LOST', 'NVML says that the GPU is lost', 'hardware', 'fatal', 'requeue-now', False, 'gpu',
        'hardware', False, '', 'lost', 2),
    'GH-GPU-BAD': Code(
        'GH-GPU-BAD', 'The GPU is listed but cannot be used', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'admin', False, '', 'unusable', 3),
    'GH-GPU-RESET': Code(
        'GH-GPU-RESET', 'The GPU needs a reset', 'hardware', 'fatal', 'let-finish', False, 'gpu', 'admin',
        False, '', 'reset required', 4),
    'GH-RM-INIT': Code(
        'GH-RM-INIT', 'The driver could not initialise the GPU', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'hardware', True, '', 'RmInit failed', 5),
    'GH-ECC-UNC': Code(
        'GH-ECC-UNC', 'Memory errors that ECC could not correct', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'hardware', True, '', 'uncorrectable ECC', 6),
    'GH-REMAP-FAIL': Code(
        'GH-REMAP-FAIL', 'A bad memory row could not be remapped', 'hardware', 'fatal', 'let-finish',
        False, 'gpu', 'hardware', False, '', 'row remap failed', 7),
    'GH-XID-REPEAT': Code(
        'GH-XID-REPEAT', 'One GPU shows a user-caused Xid in several jobs', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', True, '', 'same Xid in several jobs', 8),
    'GH-NVML-HANG': Code(
        'GH-NVML-HANG', 'NVML does not answer, its caller hangs', 'driver', 'fatal', 'let-finish', False,
        'gpus', 'admin', False, '', 'no answer', 9),
    'GH-NVML-DRV': Code(
        'GH-NVML-DRV', 'The NVIDIA driver is not loaded', 'driver', 'fatal', 'let-finish', True, 'gpus',
        'admin', False, '', 'driver not loaded', 10),
    'GH-NVML-MISM': Code(
        'GH-NVML-MISM', 'NVML library and kernel module are of different versions', 'driver', 'fatal',
        'let-finish', True, 'gpus', 'admin', False, '', 'driver/library mismatch', 11),
    'GH-GPU-COUNT': Code(
        'GH-GPU-COUNT', 'The node shows fewer GPUs than it should have', 'hardware', 'fatal', 'let-finish',
        False, 'gpus', 'hardware', False, '/', 'GPUs missing', 12),
    'GH-PCIE-WIDTH': Code(
        'GH-PCIE-WIDTH', 'The PCIe link of the GPU is narrower than it should be', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', False, '<', 'link too narrow', 13),
    'GH-PCIE-GEN': Code(
        'GH-PCIE-GEN', 'The PCIe link of a busy GPU is slower than it should be', 'hardware', 'warning',
        'none', False, 'gpu', 'hardware', False, '<', 'link too slow', 14),
    'GH-MNT-HANG': Code(
        'GH-MNT-HANG', 'A file system does not answer', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'no answer', 15),
    'GH-MNT-ERR': Code(
        'GH-MNT-ERR', 'A file system gives errors', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'I/O error', 16),
    'GH-MNT-GONE': Code(
        'GH-MNT-GONE', 'A file system is not mounted', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'not mounted', 17),
    'GH-MNT-RO': Code(
        'GH-MNT-RO', 'A file system is read-only and should not be', 'external', 'fatal', 'let-finish',
        True, 'mount', 'storage', False, '', 'read-only', 18),
    'GH-MNT-TYPE': Code(
        'GH-MNT-TYPE', 'Another type of file system is mounted than should be', 'external', 'fatal',
        'let-finish', True, 'mount', 'admin', False, '', 'wrong type', 19),
    'GH-NVML-FAIL': Code(
        'GH-NVML-FAIL', 'NVML could not be read', 'driver', 'unknown', 'none', True, 'gpus', 'admin',
        False, '', 'could not be read', 20),
    'GH-GPU-UNREAD': Code(
        'GH-GPU-UNREAD', "Part of a GPU's state could not be read", 'driver', 'unknown', 'none', True,
        'gpu', 'admin', False, '', 'could not be read', 21),
    'GH-LOG-FAIL': Code(
        'GH-LOG-FAIL', 'The kernel log could not be read', 'scheduling', 'unknown', 'none', True, 'node',
        'admin', False, '', 'kernel log unread', 22),
    'GH-NVML-LATE': Code(
        'GH-NVML-LATE', 'NVML answered too late, once', 'driver', 'warning', 'none', True, 'gpus', 'admin',
        False, '', 'late', 23),
    'GH-MNT-LATE': Code(
        'GH-MNT-LATE', 'A file system answered too late, once', 'external', 'warning', 'none', True,
        'mount', 'storage', False, '', 'late', 24),
    'GH-LOG-LATE': Code(
        'GH-LOG-LATE', 'The kernel log was not read to its end in time', 'scheduling', 'warning', 'none',
        True, 'node', 'admin', False, '', 'late', 25),
    'GH-GPU-SWAP': Code(
        'GH-GPU-SWAP', 'Another GPU sits in this place than before', 'hardware', 'warning', 'none', True,
        'gpu', 'hardware', False, '', 'UUID changed', 26),
    'GH-CONFIG': Code(
        'GH-CONFIG', 'The configuration has a mistake and was not taken over', 'scheduling', 'warning',
        'none', True, 'node', 'admin', False, '', 'configuration not taken over', 27),
    'GH-SELF': Code(
        'GH-SELF', 'The health check itself failed', 'scheduling', 'warning', 'none', True, 'node',
        'developer', False, '', 'internal error', 28),
    'GH-CKPT-NONE': Code(
        'GH-CKPT-NONE', 'No checkpoint of the job can be used', 'data', 'warning', 'none', False, 'job',
        'user', False, '', 'no usable checkpoint', 29),
    'GH-CKPT-BUDGET': Code(
        'GH-CKPT-BUDGET', 'The job was restarted as often as it may be', 'scheduling', 'warning', 'none',
        False, 'job', 'user', False, '', 'restarts used up', 30),
    'GH-CKPT-AWAY': Code(
        'GH-CKPT-AWAY', "The place of the job's checkpoints cannot be reached", 'external', 'warning',
        'none', True, 'job', 'storage', False, '', 'checkpoints unreachable', 31),
    'GH-CKPT-TOKEN': Code(
        'GH-CKPT-TOKEN', "The job's gpuhealth token cannot be understood", 'scheduling', 'warning', 'none',
        False, 'job', 'user', False, '', 'token not understood', 32),
    'GH-XID-USER': Code(
        'GH-XID-USER', "The job's own program caused a GPU error", 'framework', 'note', 'none', True,
        'gpu', 'user', True, '', 'caused by the program', 33),
    'GH-REMAP-PEND': Code(
        'GH-REMAP-PEND', 'A bad memory row waits to be remapped', 'hardware', 'note', 'none', True, 'gpu',
        'admin', False, '', 'remap pending', 34),
    'GH-PAGE-PEND': Code(
        'GH-PAGE-PEND', 'A bad memory page waits to be retired', 'hardware', 'note', 'none', True, 'gpu',
        'admin', False, '', 'page retirement pending', 35),
}
