"""Reason codes. Generated from codes/*.yaml (2026-11-30) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Code = namedtuple(
    "Code", "code title layer severity job_action recoverable subject fixer seen_once detail short rank")
Code.__doc__ = """One reason code; for the fields see codes/README.md. rank 0 leads a reason."""

CODES = {
    'GH-REMAP-FAIL': Code(
        'GH-REMAP-FAIL', 'A bad memory row could not be remapped', 'hardware', 'fatal', 'let-finish',
        False, 'gpu', 'hardware', False, '', 'row remap failed', 0),
    'GH-SRAM-LIMIT': Code(
        'GH-SRAM-LIMIT', "The GPU's SRAM has had more errors than NVIDIA's limit", 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', False, '', 'SRAM error limit', 1),
    'GH-MEM-BAD': Code(
        'GH-MEM-BAD', 'The GPU has memory that cannot be repaired', 'hardware', 'fatal', 'let-finish',
        False, 'gpu', 'hardware', False, '', 'unrepairable memory', 2),
    'GH-XID': Code(
        'GH-XID', 'The NVIDIA driver reported a fault of the GPU', 'hardware', 'fatal', 'let-finish',
        False, 'gpu', 'hardware', True, '', 'Xid', 3),
    'GH-BUS-OFF': Code(
        'GH-BUS-OFF', 'The GPU has fallen off the bus', 'hardware', 'fatal', 'requeue-now', False, 'gpu',
        'hardware', True, '', 'fell off bus', 4),
    'GH-GPU-LOST': Code(
        'GH-GPU-LOST', 'NVML says that the GPU is lost', 'hardware', 'fatal', 'requeue-now', False, 'gpu',
        'hardware', False, '', 'lost', 5),
    'GH-GPU-BAD': Code(
        'GH-GPU-BAD', 'The GPU is listed but cannot be used', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'admin', False, '', 'unusable', 6),
    'GH-GPU-RESET': Code(
        'GH-GPU-RESET', 'The GPU needs a reset', 'hardware', 'fatal', 'let-finish', False, 'gpu', 'admin',
        False, '', 'reset required', 7),
    'GH-RM-INIT': Code(
        'GH-RM-INIT', 'The driver could not initialise the GPU', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'hardware', True, '', 'RmInit failed', 8),
    'GH-GPU-STUCK': Code(
        'GH-GPU-STUCK', 'The driver says that the GPU likely needs to be reset', 'driver', 'fatal',
        'let-finish', False, 'gpu', 'admin', True, '', 'driver asks for a reset', 9),
    'GH-UVM-FATAL': Code(
        'GH-UVM-FATAL', 'The NVIDIA memory driver stopped for good', 'driver', 'fatal', 'requeue-now',
        False, 'gpus', 'admin', True, '', 'UVM needs a reboot', 10),
    'GH-PCI-POWER': Code(
        'GH-PCI-POWER', 'A function of the GPU does not change its power state', 'hardware', 'warning',
        'none', False, 'gpu', 'hardware', True, '', 'power state refused', 11),
    'GH-INFOROM': Code(
        'GH-INFOROM', 'The InfoROM of the GPU is corrupt', 'hardware', 'warning', 'none', False, 'gpu',
        'hardware', False, '', 'InfoROM corrupt', 12),
    'GH-REPAIR-PEND': Code(
        'GH-REPAIR-PEND', 'A repair of the GPU waits for a reset', 'hardware', 'note', 'none', True, 'gpu',
        'admin', False, '', 'repair pending', 13),
    'GH-ECC-UNC': Code(
        'GH-ECC-UNC', 'Memory errors that ECC could not correct', 'hardware', 'fatal', 'let-finish', False,
        'gpu', 'hardware', True, '', 'uncorrectable ECC', 14),
    'GH-PAGE-LIMIT': Code(
        'GH-PAGE-LIMIT', 'The GPU has retired many memory pages', 'hardware', 'warning', 'none', False,
        'gpu', 'hardware', False, '', 'many pages retired', 15),
    'GH-ECC-COR': Code(
        'GH-ECC-COR', 'Many corrected memory errors', 'hardware', 'warning', 'none', True, 'gpu',
        'hardware', True, '', 'many corrected ECC errors', 16),
    'GH-REMAP-LOW': Code(
        'GH-REMAP-LOW', 'A memory bank has no spare rows left', 'hardware', 'warning', 'none', False,
        'gpu', 'hardware', False, '', 'no spare rows', 17),
    'GH-XID-REPEAT': Code(
        'GH-XID-REPEAT', 'One GPU shows a user-caused Xid in several jobs', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', True, '', 'same Xid in several jobs', 18),
    'GH-SXID': Code(
        'GH-SXID', 'An NVSwitch reported a fault', 'hardware', 'fatal', 'let-finish', False, 'part',
        'hardware', True, '', 'NVSwitch fault', 19),
    'GH-NVSWITCH': Code(
        'GH-NVSWITCH', 'The NVSwitch driver printed an error without a number', 'hardware', 'warning',
        'none', False, 'part', 'hardware', True, '', 'NVSwitch error', 20),
    'GH-FABRIC-DN': Code(
        'GH-FABRIC-DN', 'No GPU of the node has joined the NVSwitch fabric', 'driver', 'fatal',
        'let-finish', True, 'gpus', 'admin', False, '', 'fabric not up', 21),
    'GH-NVLINK-ALL': Code(
        'GH-NVLINK-ALL', 'All NVLinks of all GPUs are down', 'driver', 'fatal', 'let-finish', True, 'gpus',
        'admin', False, '', 'no NVLink up', 22),
    'GH-FABRIC-BAD': Code(
        'GH-FABRIC-BAD', 'The NVSwitch fabric is not usable for this GPU', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', False, '', 'fabric not usable', 23),
    'GH-NVLINK-DN': Code(
        'GH-NVLINK-DN', 'An NVLink of the GPU is down that should be up', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', False, '', 'NVLink down', 24),
    'GH-FABRIC-LIM': Code(
        'GH-FABRIC-LIM', 'The NVSwitch fabric works with less than it should for this GPU', 'hardware',
        'warning', 'none', True, 'gpu', 'hardware', False, '', 'fabric limited', 25),
    'GH-NVLINK-ERR': Code(
        'GH-NVLINK-ERR', 'Errors on an NVLink of the GPU grow', 'hardware', 'warning', 'none', True, 'gpu',
        'hardware', True, '', 'NVLink errors', 26),
    'GH-NVML-HANG': Code(
        'GH-NVML-HANG', 'NVML does not answer, its caller hangs', 'driver', 'fatal', 'let-finish', False,
        'gpus', 'admin', False, '', 'no answer', 27),
    'GH-NVML-DRV': Code(
        'GH-NVML-DRV', 'The NVIDIA driver is not loaded', 'driver', 'fatal', 'let-finish', True, 'gpus',
        'admin', False, '', 'driver not loaded', 28),
    'GH-NVML-MISM': Code(
        'GH-NVML-MISM', 'NVML library and kernel module are of different versions', 'driver', 'fatal',
        'let-finish', True, 'gpus', 'admin', False, '', 'driver/library mismatch', 29),
    'GH-GPU-COUNT': Code(
        'GH-GPU-COUNT', 'The node shows fewer GPUs than it should have', 'hardware', 'fatal', 'let-finish',
        False, 'gpus', 'hardware', False, '/', 'GPUs missing', 30),
    'GH-OVERHEAT': Code(
        'GH-OVERHEAT', 'The GPU is too hot', 'hardware', 'fatal', 'let-finish', True, 'gpu', 'hardware',
        False, ', ', 'too hot', 31),
    'GH-SLOWDOWN': Code(
        'GH-SLOWDOWN', "The hardware holds the GPU's clocks down", 'hardware', 'fatal', 'let-finish', True,
        'gpu', 'hardware', False, '', 'clocks held down', 32),
    'GH-POWER-BRAKE': Code(
        'GH-POWER-BRAKE', "The external power brake holds the GPU's clocks down", 'external', 'fatal',
        'let-finish', True, 'gpu', 'hardware', False, '', 'power brake', 33),
    'GH-THERMAL': Code(
        'GH-THERMAL', 'The GPU is at the limit of its temperature', 'hardware', 'warning', 'none', True,
        'gpu', 'admin', False, '', 'hot', 34),
    'GH-CLOCK-LOW': Code(
        'GH-CLOCK-LOW', 'The GPU works at a low clock without a reason', 'hardware', 'warning', 'none',
        True, 'gpu', 'admin', False, '<', 'clock too low', 35),
    'GH-PCIE-WIDTH': Code(
        'GH-PCIE-WIDTH', 'The PCIe link of the GPU is narrower than it should be', 'hardware', 'fatal',
        'let-finish', False, 'gpu', 'hardware', False, '<', 'link too narrow', 36),
    'GH-PCIE-GEN': Code(
        'GH-PCIE-GEN', 'The PCIe link of a busy GPU is slower than it should be', 'hardware', 'warning',
        'none', False, 'gpu', 'hardware', False, '<', 'link too slow', 37),
    'GH-PCIE-AER': Code(
        'GH-PCIE-AER', 'PCIe errors that were not corrected, at the GPU or the ports above it', 'hardware',
        'fatal', 'let-finish', False, 'gpu', 'hardware', True, '', 'fatal PCIe error', 38),
    'GH-PCIE-CORR': Code(
        'GH-PCIE-CORR', 'Very many corrected PCIe errors', 'hardware', 'warning', 'none', True, 'gpu',
        'hardware', True, '', 'many corrected errors', 39),
    'GH-PCIE-IOMMU': Code(
        'GH-PCIE-IOMMU', 'The IOMMU refused a memory access of the GPU', 'driver', 'warning', 'none', True,
        'gpu', 'admin', True, '', 'IOMMU fault', 40),
    'GH-PCIE-REPLAY': Code(
        'GH-PCIE-REPLAY', 'The PCIe link of the GPU sends much twice', 'hardware', 'warning', 'none', True,
        'gpu', 'hardware', True, '', 'many PCIe replays', 41),
    'GH-EXP-MODEL': Code(
        'GH-EXP-MODEL', 'A GPU of another model than the site expects', 'scheduling', 'fatal',
        'let-finish', True, 'gpu', 'admin', False, ' is not ', 'other model', 42),
    'GH-EXP-DRIVER': Code(
        'GH-EXP-DRIVER', 'Another driver than the site expects', 'driver', 'warning', 'none', True, 'gpus',
        'admin', False, ' is not ', 'other driver', 43),
    'GH-EXP-VBIOS': Code(
        'GH-EXP-VBIOS', 'Another VBIOS than the site expects', 'hardware', 'warning', 'none', True, 'gpu',
        'admin', False, ' is not ', 'other VBIOS', 44),
    'GH-GPU-MIX': Code(
        'GH-GPU-MIX', 'The GPUs of the node differ', 'hardware', 'warning', 'none', True, 'gpus', 'admin',
        False, '', 'GPUs differ', 45),
    'GH-CUDA-NONE': Code(
        'GH-CUDA-NONE', 'There is no libcuda.so.1', 'driver', 'warning', 'none', True, 'gpus', 'admin',
        False, '', 'no libcuda.so.1', 46),
    'GH-CUDA-MISM': Code(
        'GH-CUDA-MISM', 'libcuda and the driver are of different versions', 'driver', 'warning', 'none',
        True, 'gpus', 'admin', False, ' beside ', 'libcuda of another version', 47),
    'GH-COMP-PROH': Code(
        'GH-COMP-PROH', "The GPU's compute mode forbids all programs", 'driver', 'fatal', 'let-finish',
        True, 'gpu', 'admin', False, '', 'compute prohibited', 48),
    'GH-COMP-EXCL': Code(
        'GH-COMP-EXCL', "The GPU's compute mode lets only one process onto it", 'driver', 'warning',
        'none', True, 'gpu', 'admin', False, '', 'exclusive', 49),
    'GH-PERSIST-OFF': Code(
        'GH-PERSIST-OFF', 'Persistence mode is off', 'driver', 'warning', 'none', True, 'gpus', 'admin',
        False, '', 'off', 50),
    'GH-APP-CLOCK': Code(
        'GH-APP-CLOCK', 'The application clocks are below their default', 'driver', 'warning', 'none',
        True, 'gpu', 'admin', False, '<', 'application clocks low', 51),
    'GH-MIG-LAYOUT': Code(
        'GH-MIG-LAYOUT', 'The GPU is not divided as the configuration says', 'driver', 'warning', 'none',
        True, 'gpu', 'admin', False, ' not ', 'other MIG layout', 52),
    'GH-MIG-PEND': Code(
        'GH-MIG-PEND', 'A change of MIG mode waits for a reset', 'driver', 'note', 'none', True, 'gpu',
        'admin', False, ', then ', 'MIG change pending', 53),
    'GH-MNT-HANG': Code(
        'GH-MNT-HANG', 'A file system does not answer', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'no answer', 54),
    'GH-MNT-ERR': Code(
        'GH-MNT-ERR', 'A file system gives errors', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'I/O error', 55),
    'GH-MNT-GONE': Code(
        'GH-MNT-GONE', 'A file system is not mounted', 'external', 'fatal', 'let-finish', True, 'mount',
        'storage', False, '', 'not mounted', 56),
    'GH-MNT-RO': Code(
        'GH-MNT-RO', 'A file system is read-only and should not be', 'external', 'fatal', 'let-finish',
        True, 'mount', 'storage', False, '', 'read-only', 57),
    'GH-MNT-TYPE': Code(
        'GH-MNT-TYPE', 'Another type of file system is mounted than should be', 'external', 'fatal',
        'let-finish', True, 'mount', 'admin', False, '', 'wrong type', 58),
    'GH-MNT-OPT': Code(
        'GH-MNT-OPT', 'A file system is mounted without an option that it should have', 'external',
        'fatal', 'let-finish', True, 'mount', 'admin', False, '', 'wrong options', 59),
    'GH-MNT-FULL': Code(
        'GH-MNT-FULL', 'A file system is full or nearly so', 'external', 'warning', 'none', True, 'mount',
        'storage', False, ' of at least ', 'full', 60),
    'GH-PCI-GONE': Code(
        'GH-PCI-GONE', 'The GPU is not on the PCIe bus', 'hardware', 'fatal', 'requeue-now', False, 'gpu',
        'hardware', False, '', 'off the bus', 61),
    'GH-PCI-DEAD': Code(
        'GH-PCI-DEAD', 'A PCIe device does not answer any more', 'hardware', 'fatal', 'let-finish', False,
        'part', 'hardware', False, '', 'off the bus', 62),
    'GH-FS-RO': Code(
        'GH-FS-RO', 'The kernel made a local file system read-only', 'hardware', 'fatal', 'let-finish',
        False, 'mount', 'hardware', True, '', 'read-only after errors', 63),
    'GH-STORE-BUG': Code(
        'GH-STORE-BUG', 'Lustre stopped at a bug check', 'driver', 'fatal', 'let-finish', False, 'node',
        'storage', True, '', 'LBUG', 64),
    'GH-HOST-UE': Code(
        'GH-HOST-UE', "The node's memory has an uncorrected error", 'hardware', 'fatal', 'let-finish',
        False, 'part', 'hardware', True, '', 'uncorrected error', 65),
    'GH-MCE': Code(
        'GH-MCE', 'A processor reported an uncorrected machine check', 'hardware', 'fatal', 'let-finish',
        False, 'node', 'hardware', True, '', 'machine check', 66),
    'GH-NVME-DEAD': Code(
        'GH-NVME-DEAD', 'An NVMe disk does not answer any more', 'hardware', 'fatal', 'let-finish', False,
        'part', 'hardware', False, '', 'dead', 67),
    'GH-PCI-DRV': Code(
        'GH-PCI-DRV', 'A GPU is not in the hands of the NVIDIA driver', 'driver', 'warning', 'none', False,
        'gpu', 'admin', False, '', 'no driver', 68),
    'GH-FS-ERROR': Code(
        'GH-FS-ERROR', 'A local file system reports errors', 'hardware', 'warning', 'none', False, 'mount',
        'hardware', True, '', 'errors', 69),
    'GH-DISK-IO': Code(
        'GH-DISK-IO', 'A disk gives I/O errors', 'hardware', 'warning', 'none', False, 'part', 'hardware',
        True, '', 'I/O errors', 70),
    'GH-NVME-ERR': Code(
        'GH-NVME-ERR', 'An NVMe disk had to be reset or gave errors', 'hardware', 'warning', 'none', False,
        'part', 'hardware', True, '', 'errors', 71),
    'GH-STORE-LOST': Code(
        'GH-STORE-LOST', 'A server of a network file system went away', 'external', 'warning', 'none',
        True, 'part', 'storage', True, '', 'not answering', 72),
    'GH-HOST-CE': Code(
        'GH-HOST-CE', "The node's memory has many corrected errors", 'hardware', 'warning', 'none', False,
        'part', 'hardware', True, '', 'corrected errors', 73),
    'GH-MCE-CE': Code(
        'GH-MCE-CE', 'Many corrected machine checks', 'hardware', 'warning', 'none', False, 'node',
        'hardware', True, '', 'corrected errors', 74),
    'GH-CLOCK': Code(
        'GH-CLOCK', "The node's clock is not right", 'scheduling', 'warning', 'none', True, 'node',
        'admin', False, '', 'clock', 75),
    'GH-DEV-GONE': Code(
        'GH-DEV-GONE', 'A device file of the NVIDIA driver is missing', 'driver', 'warning', 'none', True,
        'part', 'admin', False, '', 'missing', 76),
    'GH-DEV-PERM': Code(
        'GH-DEV-PERM', 'A device file of the NVIDIA driver may not be opened', 'driver', 'warning', 'none',
        True, 'part', 'admin', False, ' instead of ', 'permissions', 77),
    'GH-SYS-UNREAD': Code(
        'GH-SYS-UNREAD', 'A part of the node could not be read', 'scheduling', 'unknown', 'none', True,
        'part', 'admin', False, '', 'could not be read', 78),
    'GH-LINK-DOWN': Code(
        'GH-LINK-DOWN', 'A network port that should be up is down', 'external', 'fatal', 'let-finish',
        True, 'part', 'admin', False, '', 'down', 79),
    'GH-LINK-SLOW': Code(
        'GH-LINK-SLOW', 'A network port runs slower or narrower than it should', 'external', 'warning',
        'none', True, 'part', 'admin', False, '<', 'slow', 80),
    'GH-LINK-FLAP': Code(
        'GH-LINK-FLAP', 'A network port lost its link several times', 'external', 'warning', 'none', True,
        'part', 'admin', True, '', 'flaps', 81),
    'GH-NIC-ERR': Code(
        'GH-NIC-ERR', 'A network card complains', 'hardware', 'warning', 'none', False, 'part', 'hardware',
        True, '', 'errors', 82),
    'GH-LEFT-STUCK': Code(
        'GH-LEFT-STUCK', 'A process hangs in the GPU driver and cannot be ended', 'driver', 'fatal',
        'let-finish', False, 'gpu', 'admin', False, '', 'process cannot be ended', 83),
    'GH-FABRIC-MGR': Code(
        'GH-FABRIC-MGR', 'Fabric Manager does not run on a node with NVSwitches', 'driver', 'fatal',
        'let-finish', True, 'part', 'admin', False, '', 'not active', 84),
    'GH-SERVICE': Code(
        'GH-SERVICE', 'A service that must run does not', 'external', 'fatal', 'let-finish', True, 'part',
        'admin', False, '', 'not active', 85),
    'GH-PLUGIN': Code(
        'GH-PLUGIN', "A check of the site's own reports a fault", 'external', 'fatal', 'let-finish', True,
        'part', 'admin', False, '', 'critical', 86),
    'GH-LEFTOVER': Code(
        'GH-LEFTOVER', 'A process holds a GPU without a job', 'framework', 'warning', 'none', True, 'gpu',
        'admin', False, '', 'process left over', 87),
    'GH-LEFT-ZOMB': Code(
        'GH-LEFT-ZOMB', 'A zombie process still holds a GPU', 'framework', 'warning', 'none', True, 'gpu',
        'admin', False, '', 'zombie process', 88),
    'GH-IMEX-SVC': Code(
        'GH-IMEX-SVC', 'The IMEX service does not run', 'driver', 'warning', 'none', True, 'part', 'admin',
        False, '', 'not active', 89),
    'GH-PERSIST-SVC': Code(
        'GH-PERSIST-SVC', 'The persistence daemon has failed', 'driver', 'note', 'none', True, 'part',
        'admin', False, '', 'failed', 90),
    'GH-PLUGIN-LATE': Code(
        'GH-PLUGIN-LATE', "A check of the site's own did not answer in time", 'scheduling', 'warning',
        'none', True, 'part', 'admin', False, '', 'late', 91),
    'GH-PLUGIN-FAIL': Code(
        'GH-PLUGIN-FAIL', "A check of the site's own could not be run or understood", 'scheduling',
        'unknown', 'none', True, 'part', 'admin', False, '', 'no usable answer', 92),
    'GH-SVC-UNREAD': Code(
        'GH-SVC-UNREAD', 'Services could not be looked at', 'scheduling', 'unknown', 'none', True, 'node',
        'admin', False, '', 'services unread', 93),
    'GH-PROC-UNREAD': Code(
        'GH-PROC-UNREAD', 'Processes could not be looked at', 'scheduling', 'unknown', 'none', True,
        'node', 'admin', False, '', 'processes unread', 94),
    'GH-NVML-FAIL': Code(
        'GH-NVML-FAIL', 'NVML could not be read', 'driver', 'unknown', 'none', True, 'gpus', 'admin',
        False, '', 'could not be read', 95),
    'GH-GPU-UNREAD': Code(
        'GH-GPU-UNREAD', "Part of a GPU's state could not be read", 'driver', 'unknown', 'none', True,
        'gpu', 'admin', False, '', 'could not be read', 96),
    'GH-LOG-FAIL': Code(
        'GH-LOG-FAIL', 'The kernel log could not be read', 'scheduling', 'unknown', 'none', True, 'node',
        'admin', False, '', 'kernel log unread', 97),
    'GH-NVML-LATE': Code(
        'GH-NVML-LATE', 'NVML answered too late, once', 'driver', 'warning', 'none', True, 'gpus', 'admin',
        False, '', 'late', 98),
    'GH-MNT-LATE': Code(
        'GH-MNT-LATE', 'A file system answered too late, once', 'external', 'warning', 'none', True,
        'mount', 'storage', False, '', 'late', 99),
    'GH-LOG-LATE': Code(
        'GH-LOG-LATE', 'The kernel log was not read to its end in time', 'scheduling', 'warning', 'none',
        True, 'node', 'admin', False, '', 'late', 100),
    'GH-GPU-SWAP': Code(
        'GH-GPU-SWAP', 'Another GPU sits in this place than before', 'hardware', 'warning', 'none', True,
        'gpu', 'hardware', False, '', 'UUID changed', 101),
    'GH-CONFIG': Code(
        'GH-CONFIG', 'The configuration has a mistake and was not taken over', 'scheduling', 'warning',
        'none', True, 'node', 'admin', False, '', 'configuration not taken over', 102),
    'GH-SELF': Code(
        'GH-SELF', 'The health check itself failed', 'scheduling', 'warning', 'none', True, 'node',
        'developer', False, '', 'internal error', 103),
    'GH-CKPT-NONE': Code(
        'GH-CKPT-NONE', 'No checkpoint of the job can be used', 'data', 'warning', 'none', False, 'job',
        'user', False, '', 'no usable checkpoint', 104),
    'GH-CKPT-BUDGET': Code(
        'GH-CKPT-BUDGET', 'The job was restarted as often as it may be', 'scheduling', 'warning', 'none',
        False, 'job', 'user', False, '', 'restarts used up', 105),
    'GH-CKPT-AWAY': Code(
        'GH-CKPT-AWAY', "The place of the job's checkpoints cannot be reached", 'external', 'warning',
        'none', True, 'job', 'storage', False, '', 'checkpoints unreachable', 106),
    'GH-CKPT-TOKEN': Code(
        'GH-CKPT-TOKEN', "The job's gpuhealth token cannot be understood", 'scheduling', 'warning', 'none',
        False, 'job', 'user', False, '', 'token not understood', 107),
    'GH-XID-USER': Code(
        'GH-XID-USER', "The job's own program caused a GPU error", 'framework', 'note', 'none', True,
        'gpu', 'user', True, '', 'caused by the program', 108),
    'GH-REMAP-PEND': Code(
        'GH-REMAP-PEND', 'A bad memory row waits to be remapped', 'hardware', 'note', 'none', True, 'gpu',
        'admin', False, '', 'remap pending', 109),
    'GH-PAGE-PEND': Code(
        'GH-PAGE-PEND', 'A bad memory page waits to be retired', 'hardware', 'note', 'none', True, 'gpu',
        'admin', False, '', 'page retirement pending', 110),
}
