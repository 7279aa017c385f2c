"""Xid numbers. Generated from xid.yaml (2026-11-30) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Xid = namedtuple(
    "Xid", "code title short layer action severity job_action user_caused companions by_value source")
Xid.__doc__ = """One Xid number; for the fields see the head of xid.yaml.

action: drain, note or ignore. severity: of the finding. user_caused: yes, sometimes or no.
companions: numbers of the same event. by_value: {value: action} or None."""

# What Xid 154 and NVML's recovery-action field ask for.
RECOVERY_ACTIONS = {
    0: 'nothing',
    1: 'reset the GPU',
    2: 'reboot the node',
    3: 'stop peer-to-peer jobs and look again',
    4: 'let jobs finish and reset',
    5: 'recover the IMEX domain',
    6: 'reset the bus',
    7: 'reboot the whole system',
}

XIDS = {
    1: Xid(
        1, 'FIFO: bad method or push buffer (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    2: Xid(
        2, 'FIFO: bad software method (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    3: Xid(
        3, 'FIFO: method nobody knows (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    4: Xid(
        4, 'FIFO: channel busy or bad push buffer (older GPUs)', '', 'driver', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    5: Xid(
        5, 'FIFO: runout overflow (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive')),
    6: Xid(
        6, 'FIFO: push buffer does not parse (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    7: Xid(
        7, 'FIFO: push buffer at a bad address (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    8: Xid(
        8, 'channel made no progress within its time', 'channel stalled', 'framework', 'note', 'note',
        'none', 'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud')),
    9: Xid(
        9, 'graphics instance set up wrongly (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    10: Xid(
        10, 'graphics single-step error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive')),
    11: Xid(
        11, 'graphics engine got a bad command stream', '', 'framework', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud')),
    12: Xid(
        12, 'driver failed on a graphics exception (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    13: Xid(
        13, 'compute engine exception: bad address, illegal instruction or the like', 'compute exception',
        'framework', 'note', 'note', 'none', 'yes', (31, 43, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp')),
    14: Xid(
        14, 'test of the error path', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    15: Xid(
        15, 'display scan-line time-out (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive')),
    16: Xid(
        16, 'no vblank callback in time (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    17: Xid(
        17, 'parameter error (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive')),
    18: Xid(
        18, 'bus mastering timed out or is off (older GPUs)', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    19: Xid(
        19, 'display notifier missed (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    20: Xid(
        20, 'MPEG engine: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    21: Xid(
        21, 'motion-estimation engine: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    22: Xid(
        22, 'video processor: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    23: Xid(
        23, 'error logging switched on (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    24: Xid(
        24, 'semaphore not released in time (older GPUs)', '', 'driver', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    25: Xid(
        25, 'illegal notifier or command stream', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud')),
    26: Xid(
        26, 'frame buffer state not reached in time (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    27: Xid(
        27, 'video processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    28: Xid(
        28, 'second video processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    29: Xid(
        29, 'bit-stream processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    30: Xid(
        30, 'semaphore access to a bad address (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    31: Xid(
        31, 'memory fault: access to an address that is not mapped or not allowed', 'MMU fault',
        'framework', 'note', 'note', 'none', 'yes', (13, 43, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp')),
    32: Xid(
        32, 'push-buffer transfer error, mostly signal quality on PCIe', 'PBDMA error', 'hardware', 'note',
        'warning', 'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    33: Xid(
        33, 'security engine error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    34: Xid(
        34, 'video decoder MSVLD exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    35: Xid(
        35, 'video decoder MSPDEC exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    36: Xid(
        36, 'video post-processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    37: Xid(
        37, 'context-switch firmware: method nobody knows', '', 'driver', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud')),
    38: Xid(
        38, 'context-switch firmware: watchdog ran out', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud')),
    39: Xid(
        39, 'copy engine 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    40: Xid(
        40, 'copy engine 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    41: Xid(
        41, 'copy engine 2 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    42: Xid(
        42, 'image compositor error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    43: Xid(
        43, 'channel reset after a fault that software caused; the GPU is fine', 'channel reset',
        'framework', 'note', 'note', 'none', 'yes', (13, 31, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp')),
    44: Xid(
        44, 'fault during a context switch', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    45: Xid(
        45, 'channels torn down: process killed, GPU reset, or an earlier error', 'channels torn down',
        'framework', 'note', 'note', 'none', 'yes', (13, 31, 43), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'kdp', 'sent')),
    46: Xid(
        46, 'an engine of the GPU stopped making progress', 'GPU stopped', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'hv')),
    47: Xid(
        47, 'video encoder 0 error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    48: Xid(
        48, 'double-bit memory error that ECC could not correct', 'double-bit ECC', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (63, 64, 94, 95, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'hv', 'aws', 'az')),
    49: Xid(
        49, 'silent running set by registry (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive')),
    50: Xid(
        50, 'silent running changed after an error (unused)', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gpud', 'archive')),
    51: Xid(
        51, 'number reused: silent-running self-test once, bad channel group now; the text decides', '',
        'driver', 'note', 'warning', 'none', 'no', (), None, ('cat', 'catdoc', 'gpud', 'archive')),
    52: Xid(
        52, 'silent running: temperature step (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive')),
    53: Xid(
        53, 'silent running: clocks lowered (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive')),
    54: Xid(
        54, 'power cable of the board not connected', 'power cable', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'gpud', 'aws')),
    55: Xid(
        55, 'silent running: temperature unread (unused)', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gpud', 'archive')),
    56: Xid(
        56, 'display channel exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive', 'az')),
    57: Xid(
        57, 'memory link training failed (older GPUs)', 'memory link', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive', 'az')),
    58: Xid(
        58, 'memory interface unstable (older GPUs)', 'memory unstable', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az')),
    59: Xid(
        59, 'power micro-controller error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    60: Xid(
        60, 'security or video processor exception', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    61: Xid(
        61, 'power micro-controller stopped at a breakpoint', 'PMU breakpoint', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    62: Xid(
        62, 'power micro-controller halted', 'PMU halted', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (154,), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az')),
    63: Xid(
        63, 'bad memory recorded for remapping or retirement; takes effect at the next reset',
        'remap pending', 'hardware', 'note', 'note', 'none', 'no', (48, 94, 154, 171), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws', 'az')),
    64: Xid(
        64, 'bad memory could not be recorded for remapping or retirement', 'remap not recorded',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (48, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws', 'az')),
    65: Xid(
        65, 'video encoder 1 error (once: ECC handling) (older GPUs)', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az')),
    66: Xid(
        66, 'context-switch firmware: the driver touched a forbidden register', '', 'driver', 'note',
        'note', 'none', 'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud')),
    67: Xid(
        67, 'context-switch firmware: verification failed', '', 'driver', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud')),
    68: Xid(
        68, 'video decoder 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az', 'kdp')),
    69: Xid(
        69, 'command with a class or data that the engine refuses', 'class error', 'framework', 'note',
        'note', 'none', 'sometimes', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az')),
    70: Xid(
        70, 'copy engine 3 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    71: Xid(
        71, 'copy engine 4 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    72: Xid(
        72, 'copy engine 5 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    73: Xid(
        73, 'video encoder 2 error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az')),
    74: Xid(
        74, 'NVLink error (NVLink 2 to 4); the other end may be the cause', 'NVLink error', 'hardware',
        'drain', 'fatal', 'let-finish', 'no', (45, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az')),
    75: Xid(
        75, 'copy engine 6 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    76: Xid(
        76, 'copy engine 7 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    77: Xid(
        77, 'copy engine 8 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    78: Xid(
        78, 'vGPU did not start: host and guest driver do not fit', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    79: Xid(
        79, 'GPU has fallen off the bus: no answer over PCIe', 'fell off bus', 'hardware', 'drain',
        'fatal', 'requeue-now', 'no', (45, 119, 120, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm')),
    80: Xid(
        80, 'command data arrived damaged at the GPU', 'PBDMA CRC', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az')),
    81: Xid(
        81, 'VGA subsystem error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az')),
    82: Xid(
        82, 'JPEG engine 0 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    83: Xid(
        83, 'video decoder 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    84: Xid(
        84, 'video decoder 2 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    85: Xid(
        85, 'copy engine 9 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    86: Xid(
        86, 'optical-flow engine 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    87: Xid(
        87, 'driver telemetry report (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    88: Xid(
        88, 'video decoder 3 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    89: Xid(
        89, 'video decoder 4 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    90: Xid(
        90, 'second-level cache error (unused)', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    91: Xid(
        91, 'reserved number', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    92: Xid(
        92, 'many single-bit memory errors, all corrected', 'many corrected', 'hardware', 'note',
        'warning', 'none', 'no', (63, 64), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az')),
    93: Xid(
        93, 'InfoROM was written more often than it should be', '', 'hardware', 'note', 'note', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    94: Xid(
        94, 'contained memory error: only the program that used the page dies', 'contained ECC',
        'hardware', 'note', 'warning', 'none', 'no', (45, 48, 63, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws')),
    95: Xid(
        95, 'uncontained memory error: every program on the GPU may hold wrong data', 'uncontained ECC',
        'hardware', 'drain', 'fatal', 'requeue-now', 'no', (45, 48, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws')),
    96: Xid(
        96, 'video decoder 5 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    97: Xid(
        97, 'video decoder 6 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    98: Xid(
        98, 'video decoder 7 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    99: Xid(
        99, 'JPEG engine 1 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    100: Xid(
        100, 'JPEG engine 2 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    101: Xid(
        101, 'JPEG engine 3 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    102: Xid(
        102, 'JPEG engine 4 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    103: Xid(
        103, 'JPEG engine 5 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    104: Xid(
        104, 'JPEG engine 6 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    105: Xid(
        105, 'JPEG engine 7 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    106: Xid(
        106, 'out-of-band management test message', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud')),
    107: Xid(
        107, 'out-of-band management test message, quiet', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud')),
    108: Xid(
        108, 'NVLink: address translation failed at the other end', '', 'framework', 'note', 'note',
        'none', 'yes', (31, 137), None, ('cat', 'catdoc', 'drv', 'gpud')),
    109: Xid(
        109, 'context switch took too long', 'context switch', 'framework', 'note', 'note', 'none',
        'sometimes', (45, 119, 154), None, ('cat', 'catdoc', 'gcm', 'gpud', 'aws', 'kdp')),
    110: Xid(
        110, 'security fault in the GPU', 'security fault', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (154,), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws')),
    111: Xid(
        111, 'display bundle error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    112: Xid(
        112, 'display supervisor error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    113: Xid(
        113, 'DisplayPort link training failed (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    114: Xid(
        114, 'display head ran dry (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    115: Xid(
        115, 'display core channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    116: Xid(
        116, 'display window channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    117: Xid(
        117, 'display cursor channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    118: Xid(
        118, 'display pixel pipeline error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive')),
    119: Xid(
        119, 'GPU system processor (GSP) does not answer', 'GSP no answer', 'driver', 'drain', 'fatal',
        'let-finish', 'no', (45, 79, 109, 120, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm')),
    120: Xid(
        120, 'GPU system processor (GSP) crashed', 'GSP crashed', 'driver', 'drain', 'fatal', 'let-finish',
        'no', (45, 79, 119, 154), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm')),
    121: Xid(
        121, 'corrected error on the chip-to-chip link', '', 'hardware', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws')),
    122: Xid(
        122, 'flash memory of the board: read failed', '', 'hardware', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    123: Xid(
        123, 'flash memory of the board: write failed', 'flash write', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    124: Xid(
        124, 'flash memory of the board: erase failed', '', 'hardware', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    125: Xid(
        125, 'InfoROM file system error', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive')),
    126: Xid(
        126, 'copy engine 10 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    127: Xid(
        127, 'copy engine 11 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    128: Xid(
        128, 'copy engine 12 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    129: Xid(
        129, 'copy engine 13 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    130: Xid(
        130, 'copy engine 14 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    131: Xid(
        131, 'copy engine 15 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    132: Xid(
        132, 'copy engine 16 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    133: Xid(
        133, 'copy engine 17 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv')),
    134: Xid(
        134, 'copy engine 18 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    135: Xid(
        135, 'copy engine 19 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    136: Xid(
        136, 'NVLink did not train', 'NVLink training', 'hardware', 'drain', 'fatal', 'let-finish', 'no',
        (154,), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    137: Xid(
        137, 'NVLink: the other GPU refused the access', '', 'framework', 'note', 'note', 'none', 'yes',
        (13, 31, 108), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud')),
    138: Xid(
        138, 'deep-learning accelerator error (embedded)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    139: Xid(
        139, 'optical-flow engine 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'drv', 'gpud')),
    140: Xid(
        140, 'memory error that went past the normal ECC handling', 'ECC unhandled', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (48, 63, 64), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws')),
    141: Xid(
        141, 'error of a CUDA fast-path channel', '', 'driver', 'note', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    142: Xid(
        142, 'video encoder 3 error', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud')),
    143: Xid(
        143, 'GPU did not initialise', 'no init', 'hardware', 'drain', 'fatal', 'let-finish', 'no', (154,),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws')),
    144: Xid(
        144, 'NVLink 5 error in unit SAW; what to do comes as Xid 154', 'NVLink5 SAW', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    145: Xid(
        145, 'NVLink 5 error in unit RLW; what to do comes as Xid 154', 'NVLink5 RLW', 'hardware', 'note',
        'note', 'none', 'sometimes', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    146: Xid(
        146, 'NVLink 5 error in unit TLW; what to do comes as Xid 154', 'NVLink5 TLW', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    147: Xid(
        147, 'NVLink 5 error in unit TREX; what to do comes as Xid 154', 'NVLink5 TREX', 'hardware',
        'note', 'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    148: Xid(
        148, 'NVLink 5 error in unit NVLPW_CTRL; what to do comes as Xid 154', 'NVLink5 NVLPW_CTRL',
        'hardware', 'note', 'warning', 'none', 'no', (45, 154), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    149: Xid(
        149, 'NVLink 5 error in unit NETIR; what to do comes as Xid 154', 'NVLink5 NETIR', 'hardware',
        'note', 'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    150: Xid(
        150, 'NVLink 5 error in unit MSE; what to do comes as Xid 154', 'NVLink5 MSE', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    151: Xid(
        151, 'confidential computing: keys could not be renewed', 'key rotation', 'driver', 'drain',
        'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    152: Xid(
        152, 'deep-learning accelerator: memory management error (embedded)', '', 'driver', 'ignore',
        'note', 'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    153: Xid(
        153, 'deep-learning accelerator: time-out (embedded)', '', 'driver', 'ignore', 'note', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive')),
    154: Xid(
        154, 'the driver asks for another recovery action on this GPU', 'recovery action', 'driver',
        'note', 'warning', 'none', 'no', (),
        {0: 'ignore', 1: 'drain', 2: 'drain', 3: 'drain', 4: 'drain', 5: 'drain', 6: 'drain', 7: 'drain'},
        ('cat', 'catdoc', 'drv', 'gpud')),
    155: Xid(
        155, 'NVLink taken down or marked by software', 'NVLink down', 'hardware', 'note', 'note', 'none',
        'sometimes', (149, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    156: Xid(
        156, 'a faulty unit of the GPU was replaced by a spare; active after a reset', 'unit retired',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (154, 157), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    157: Xid(
        157, 'a faulty unit of the GPU has no spare left', '', 'hardware', 'note', 'warning', 'none', 'no',
        (156,), None, ('cat', 'catdoc', 'drv', 'gpud')),
    158: Xid(
        158, 'fatal time-out of the whole GPU', 'GPU time-out', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (154,), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    159: Xid(
        159, 'coherent link (CHI) error outside data', '', 'hardware', 'note', 'warning', 'none', 'no',
        (154,), None, ('cat', 'catdoc', 'drv', 'gpud')),
    160: Xid(
        160, 'memory channel retired', '', 'hardware', 'note', 'note', 'none', 'no', (154, 161), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'sent')),
    161: Xid(
        161, 'memory channel could not be retired', '', 'hardware', 'note', 'warning', 'none', 'no',
        (154, 160), None, ('cat', 'catdoc', 'drv', 'gpud')),
    162: Xid(
        162, 'power smoothing is back on', '', 'hardware', 'ignore', 'note', 'none', 'no', (163,), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    163: Xid(
        163, 'power smoothing switched itself off', '', 'hardware', 'note', 'note', 'none', 'no',
        (162, 164, 165), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws', 'sent')),
    164: Xid(
        164, 'power smoothing: little life left', '', 'hardware', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    165: Xid(
        165, 'power smoothing: life used up', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    166: Xid(
        166, 'confidential computing: NVLink used before it was encrypted', 'NVLink unencrypted', 'driver',
        'drain', 'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud')),
    167: Xid(
        167, 'fatal PCIe time-out', 'PCIe time-out', 'hardware', 'drain', 'fatal', 'requeue-now', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gpud')),
    168: Xid(
        168, 'usable GPU memory shrank: fault in a protected region, ECC off', 'memory shrank', 'hardware',
        'drain', 'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws')),
    169: Xid(
        169, 'security micro-controller (SEC2) halted', 'SEC2 halted', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud')),
    170: Xid(
        170, 'confidential computing: other NVLink security event', '', 'framework', 'note', 'note',
        'none', 'sometimes', (), None, ('cat', 'catdoc', 'drv', 'gpud')),
    171: Xid(
        171, 'belongs to 48: the error was in DRAM', '48 in DRAM', 'hardware', 'note', 'note', 'none',
        'no', (48,), None, ('cat', 'catdoc', 'drv', 'gpud')),
    172: Xid(
        172, 'belongs to 48: the error was in SRAM', '48 in SRAM', 'hardware', 'note', 'note', 'none',
        'no', (48,), None, ('cat', 'catdoc', 'drv', 'gpud')),
    173: Xid(
        173, 'chip-to-chip link down for good', 'C2C link down', 'hardware', 'drain', 'fatal',
        'requeue-now', 'no', (), None, ('drv', 'gpud')),
    174: Xid(
        174, 'process ended quietly after a channel reset', '', 'framework', 'note', 'note', 'none',
        'sometimes', (), None, ('drv',)),
    175: Xid(
        175, 'memory subsystem error; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('drv',)),
    176: Xid(
        176, 'PCIe errors, corrected; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('drv',)),
    185: Xid(
        185, 'a spare was put to use; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('oge',)),
}
