"""Xid numbers. Generated from xid.yaml (2026-11-30) by catalogue/generate.py: do not edit."""
from collections import namedtuple

Xid = namedtuple(
    "Xid", "code title short layer action severity job_action user_caused companions by_value source do echo can_be"
    " gpus asks differs", defaults=("none", False, (), (), None, None))
Xid.__doc__ = """One Xid number; for the fields see the head of xid.yaml.

action: drain, note or ignore. severity: of the finding. user_caused: yes, sometimes or no.
companions: numbers of the same event. by_value: {value: action} or None. do: what is to be done at once.
echo: it only follows another one. gpus: families, () for all from Ampere on. asks: driver branch or None.
differs: {family: {"severity" or "do": other value}} or None."""

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
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    2: Xid(
        2, 'FIFO: bad software method (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    3: Xid(
        3, 'FIFO: method nobody knows (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    4: Xid(
        4, 'FIFO: channel busy or bad push buffer (older GPUs)', '', 'driver', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'none', False,
        ('driver', 'program', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    5: Xid(
        5, 'FIFO: runout overflow (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive'), 'repair', False, (), ('pre-ampere',), None, None),
    6: Xid(
        6, 'FIFO: push buffer does not parse (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    7: Xid(
        7, 'FIFO: push buffer at a bad address (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    8: Xid(
        8, 'channel made no progress within its time', 'channel stalled', 'framework', 'note', 'note',
        'none', 'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud'), 'restart-app', False,
        ('driver', 'program', 'bus', 'heat'), (), None, None),
    9: Xid(
        9, 'graphics instance set up wrongly (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    10: Xid(
        10, 'graphics single-step error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive'), 'repair', False, (), ('pre-ampere',), None, None),
    11: Xid(
        11, 'graphics engine got a bad command stream', '', 'framework', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud'), 'restart-app', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), (), None, None),
    12: Xid(
        12, 'driver failed on a graphics exception (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    13: Xid(
        13, 'compute engine exception: bad address, illegal instruction or the like', 'compute exception',
        'framework', 'note', 'note', 'none', 'yes', (31, 43, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp'), 'restart-app', False,
        ('hardware', 'driver', 'program', 'host memory', 'bus', 'heat', 'GPU memory'), (), None, None),
    14: Xid(
        14, 'test of the error path', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (), (), None, None),
    15: Xid(
        15, 'display scan-line time-out (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    16: Xid(
        16, 'no vblank callback in time (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    17: Xid(
        17, 'parameter error (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    18: Xid(
        18, 'bus mastering timed out or is off (older GPUs)', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    19: Xid(
        19, 'display notifier missed (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    20: Xid(
        20, 'MPEG engine: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    21: Xid(
        21, 'motion-estimation engine: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    22: Xid(
        22, 'video processor: bad push buffer (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('driver', 'host memory', 'bus', 'GPU memory'), ('pre-ampere',), None, None),
    23: Xid(
        23, 'error logging switched on (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    24: Xid(
        24, 'semaphore not released in time (older GPUs)', '', 'driver', 'note', 'note', 'none',
        'sometimes', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'none', False,
        ('driver', 'program', 'host memory', 'bus', 'heat', 'GPU memory'), ('pre-ampere',), None, None),
    25: Xid(
        25, 'illegal notifier or command stream', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud'), 'restart-app', False,
        ('driver', 'program', 'host memory', 'bus', 'GPU memory'), (), None, None),
    26: Xid(
        26, 'frame buffer state not reached in time (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    27: Xid(
        27, 'video processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    28: Xid(
        28, 'second video processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    29: Xid(
        29, 'bit-stream processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    30: Xid(
        30, 'semaphore access to a bad address (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    31: Xid(
        31, 'memory fault: access to an address that is not mapped or not allowed', 'MMU fault',
        'framework', 'note', 'note', 'none', 'yes', (13, 43, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp'), 'restart-app', False,
        ('hardware', 'driver', 'program'), (), None, None),
    32: Xid(
        32, 'push-buffer transfer error, mostly signal quality on PCIe', 'PBDMA error', 'hardware', 'note',
        'warning', 'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False,
        ('driver', 'host memory', 'bus', 'heat', 'GPU memory'), (), None, None),
    33: Xid(
        33, 'security engine error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',), ('pre-ampere',),
        None, None),
    34: Xid(
        34, 'video decoder MSVLD exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    35: Xid(
        35, 'video decoder MSPDEC exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    36: Xid(
        36, 'video post-processor exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    37: Xid(
        37, 'context-switch firmware: method nobody knows', '', 'driver', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False, ('driver', 'host memory', 'bus'), (), None,
        None),
    38: Xid(
        38, 'context-switch firmware: watchdog ran out', '', 'driver', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False, ('driver',), (), None, None),
    39: Xid(
        39, 'copy engine 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), (), None, None),
    40: Xid(
        40, 'copy engine 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), (), None, None),
    41: Xid(
        41, 'copy engine 2 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), (), None, None),
    42: Xid(
        42, 'image compositor error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',), ('pre-ampere',),
        None, None),
    43: Xid(
        43, 'channel reset after a fault that software caused; the GPU is fine', 'channel reset',
        'framework', 'note', 'note', 'none', 'yes', (13, 31, 45), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'kdp'), 'none', True, ('driver', 'program'), (),
        None, None),
    44: Xid(
        44, 'fault during a context switch', '', 'driver', 'note', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'none', False, ('driver',), (), None, None),
    45: Xid(
        45, 'channels torn down: process killed, GPU reset, or an earlier error', 'channels torn down',
        'framework', 'note', 'note', 'none', 'yes', (13, 31, 43), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'kdp', 'sent'), 'none', True, ('driver',), (), None, None),
    46: Xid(
        46, 'an engine of the GPU stopped making progress', 'GPU stopped', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (45, 154), None, ('cat', 'catdoc', 'gcm', 'gpud', 'hv'), 'reset', False,
        ('driver',), (), None, None),
    47: Xid(
        47, 'video encoder 0 error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',), ('pre-ampere',),
        None, None),
    48: Xid(
        48, 'double-bit memory error that ECC could not correct', 'double-bit ECC', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (63, 64, 94, 95, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'hv', 'aws', 'az'), 'reset', False, ('hardware',),
        (), 565, None),
    49: Xid(
        49, 'silent running set by registry (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    50: Xid(
        50, 'silent running changed after an error (unused)', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    51: Xid(
        51, 'number reused: silent-running self-test once, bad channel group now; the text decides', '',
        'driver', 'note', 'warning', 'none', 'no', (), None, ('cat', 'catdoc', 'gpud', 'archive'), 'none',
        False, (), ('pre-ampere',), None, None),
    52: Xid(
        52, 'silent running: temperature step (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    53: Xid(
        53, 'silent running: clocks lowered (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    54: Xid(
        54, 'power cable of the board not connected', 'power cable', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'gpud', 'aws'), 'repair', False, (),
        ('ampere', 'hopper', 'blackwell'), None, None),
    55: Xid(
        55, 'silent running: temperature unread (unused)', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    56: Xid(
        56, 'display channel exception (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive', 'az'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    57: Xid(
        57, 'memory link training failed (older GPUs)', 'memory link', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive', 'az'), 'repair', False,
        ('hardware', 'driver', 'GPU memory'), ('pre-ampere',), None, None),
    58: Xid(
        58, 'memory interface unstable (older GPUs)', 'memory unstable', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az'), 'repair',
        False, ('hardware', 'driver'), ('pre-ampere',), None, None),
    59: Xid(
        59, 'power micro-controller error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('driver',),
        ('pre-ampere',), None, None),
    60: Xid(
        60, 'security or video processor exception', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('driver',), (), None, None),
    61: Xid(
        61, 'power micro-controller stopped at a breakpoint', 'PMU breakpoint', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'repair',
        False, (), ('pre-ampere',), None, None),
    62: Xid(
        62, 'power micro-controller halted', 'PMU halted', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (13, 31, 43, 45, 154), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az'), 'reset', False,
        ('hardware', 'driver', 'heat'), (), 565, None),
    63: Xid(
        63, 'bad memory recorded for remapping or retirement; takes effect at the next reset',
        'remap pending', 'hardware', 'note', 'note', 'none', 'no', (48, 94, 95, 154, 171), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws', 'az'), 'none', False,
        ('hardware', 'driver', 'GPU memory'), (), 565,
        {'pre-ampere': {'severity': 'warning', 'do': 'reboot'}}),
    64: Xid(
        64, 'bad memory could not be recorded for remapping or retirement', 'remap not recorded',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (48, 94, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws', 'az'), 'reset', False,
        ('hardware', 'driver'), (), 565, {'pre-ampere': {'do': 'reboot'}}),
    65: Xid(
        65, 'video encoder 1 error (once: ECC handling) (older GPUs)', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az'), 'repair', False,
        ('hardware', 'driver'), ('pre-ampere',), None, None),
    66: Xid(
        66, 'context-switch firmware: the driver touched a forbidden register', '', 'driver', 'note',
        'note', 'none', 'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False,
        ('driver', 'program'), (), None, None),
    67: Xid(
        67, 'context-switch firmware: verification failed', '', 'driver', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False, ('driver', 'program'), (), None, None),
    68: Xid(
        68, 'video decoder 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az', 'kdp'), 'restart-app', False, ('hardware', 'driver'),
        (), None, None),
    69: Xid(
        69, 'command with a class or data that the engine refuses', 'class error', 'framework', 'note',
        'note', 'none', 'sometimes', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az'),
        'restart-app', False, ('hardware', 'driver'), (), None, None),
    70: Xid(
        70, 'copy engine 3 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    71: Xid(
        71, 'copy engine 4 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    72: Xid(
        72, 'copy engine 5 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    73: Xid(
        73, 'video encoder 2 error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    74: Xid(
        74, 'NVLink error (NVLink 2 to 4); the other end may be the cause', 'NVLink error', 'hardware',
        'drain', 'fatal', 'let-finish', 'no', (45, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az'), 'reset', False,
        ('hardware', 'driver', 'bus'), ('ampere', 'hopper'), 565, None),
    75: Xid(
        75, 'copy engine 6 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    76: Xid(
        76, 'copy engine 7 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    77: Xid(
        77, 'copy engine 8 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    78: Xid(
        78, 'vGPU did not start: host and guest driver do not fit', '', 'driver', 'note', 'warning',
        'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'repair', False, ('driver',), (),
        None, None),
    79: Xid(
        79, 'GPU has fallen off the bus: no answer over PCIe', 'fell off bus', 'hardware', 'drain',
        'fatal', 'requeue-now', 'no', (45, 119, 120, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm'), 'reboot', False,
        ('hardware', 'driver', 'host memory', 'bus', 'heat'), (), 565, None),
    80: Xid(
        80, 'command data arrived damaged at the GPU', 'PBDMA CRC', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'az'), 'restart-app', False,
        ('hardware', 'driver', 'host memory', 'bus', 'GPU memory'), ('ampere', 'hopper'), None, None),
    81: Xid(
        81, 'VGA subsystem error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive', 'az'), 'repair', False, ('hardware',),
        ('pre-ampere',), None, None),
    82: Xid(
        82, 'JPEG engine 0 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    83: Xid(
        83, 'video decoder 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    84: Xid(
        84, 'video decoder 2 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    85: Xid(
        85, 'copy engine 9 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    86: Xid(
        86, 'optical-flow engine 0 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (),
        None, None),
    87: Xid(
        87, 'driver telemetry report (unused)', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',), None, None),
    88: Xid(
        88, 'video decoder 3 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    89: Xid(
        89, 'video decoder 4 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'), (), None,
        None),
    90: Xid(
        90, 'second-level cache error (unused)', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    91: Xid(
        91, 'reserved number', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'none', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    92: Xid(
        92, 'many single-bit memory errors, all corrected', 'many corrected', 'hardware', 'note', 'note',
        'none', 'no', (63, 64), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az'), 'none', False,
        ('hardware', 'driver'), (), None, None),
    93: Xid(
        93, 'InfoROM was written more often than it should be', '', 'hardware', 'note', 'note', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'none', False, ('driver', 'program'),
        ('ampere',), None, None),
    94: Xid(
        94, 'contained memory error: only the program that used the page dies', 'contained ECC',
        'hardware', 'note', 'warning', 'none', 'no', (45, 48, 63, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws'), 'restart-app', False,
        ('hardware', 'driver', 'GPU memory'), (), 565, None),
    95: Xid(
        95, 'uncontained memory error: every program on the GPU may hold wrong data', 'uncontained ECC',
        'hardware', 'drain', 'fatal', 'requeue-now', 'no', (45, 48, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws'), 'reset', False,
        ('hardware', 'driver', 'GPU memory'), (), 565, {'ampere': {'do': 'reboot'}}),
    96: Xid(
        96, 'video decoder 5 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    97: Xid(
        97, 'video decoder 6 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    98: Xid(
        98, 'video decoder 7 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    99: Xid(
        99, 'JPEG engine 1 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    100: Xid(
        100, 'JPEG engine 2 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    101: Xid(
        101, 'JPEG engine 3 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    102: Xid(
        102, 'JPEG engine 4 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    103: Xid(
        103, 'JPEG engine 5 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    104: Xid(
        104, 'JPEG engine 6 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    105: Xid(
        105, 'JPEG engine 7 error', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'restart-app', False, ('hardware', 'driver'),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    106: Xid(
        106, 'out-of-band management test message', '', 'driver', 'ignore', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False, ('program',), (), None, None),
    107: Xid(
        107, 'out-of-band management test message, quiet', '', 'driver', 'ignore', 'note', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud'), 'none', False, ('program',), (), None, None),
    108: Xid(
        108, 'NVLink: address translation failed at the other end', '', 'framework', 'note', 'note',
        'none', 'yes', (31, 137), None, ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (), (), None,
        None),
    109: Xid(
        109, 'context switch took too long', 'context switch', 'framework', 'note', 'note', 'none',
        'sometimes', (45, 119, 154), None, ('cat', 'catdoc', 'gcm', 'gpud', 'aws', 'kdp'), 'restart-app',
        False, ('hardware', 'driver', 'program', 'host memory', 'bus', 'heat', 'GPU memory'), (), 570,
        None),
    110: Xid(
        110, 'security fault in the GPU', 'security fault', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (154,), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws'), 'reset', False, ('hardware',),
        ('hopper', 'blackwell', 'grace-blackwell'), 565, None),
    111: Xid(
        111, 'display bundle error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver', 'bus'),
        ('pre-ampere',), None, None),
    112: Xid(
        112, 'display supervisor error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    113: Xid(
        113, 'DisplayPort link training failed (older GPUs)', '', 'driver', 'note', 'warning', 'none',
        'no', (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('hardware', 'driver'), ('pre-ampere',), None, None),
    114: Xid(
        114, 'display head ran dry (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver', 'GPU memory'),
        ('pre-ampere',), None, None),
    115: Xid(
        115, 'display core channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    116: Xid(
        116, 'display window channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    117: Xid(
        117, 'display cursor channel error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    118: Xid(
        118, 'display pixel pipeline error (older GPUs)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    119: Xid(
        119, 'GPU system processor (GSP) does not answer', 'GSP no answer', 'driver', 'drain', 'fatal',
        'let-finish', 'no', (45, 79, 109, 120, 154), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm'), 'reset', False,
        ('hardware', 'driver', 'host memory', 'bus', 'heat', 'GPU memory'), (), None, None),
    120: Xid(
        120, 'GPU system processor (GSP) crashed', 'GSP crashed', 'driver', 'drain', 'fatal', 'let-finish',
        'no', (45, 79, 119, 154), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws', 'az', 'dcgm'),
        'reset', False, ('hardware', 'driver', 'host memory', 'bus', 'heat', 'GPU memory'), (), 565, None),
    121: Xid(
        121, 'corrected error on the chip-to-chip link', '', 'hardware', 'note', 'note', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws'), 'none', False, ('hardware', 'bus'),
        ('grace-blackwell',), None, None),
    122: Xid(
        122, 'flash memory of the board: read failed', '', 'hardware', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    123: Xid(
        123, 'flash memory of the board: write failed', 'flash write', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('hardware', 'driver'), ('pre-ampere',), None, None),
    124: Xid(
        124, 'flash memory of the board: erase failed', '', 'hardware', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False,
        ('hardware', 'driver'), ('pre-ampere',), None, None),
    125: Xid(
        125, 'InfoROM file system error', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'archive'), 'repair', False, ('hardware', 'driver'),
        ('pre-ampere',), None, None),
    126: Xid(
        126, 'copy engine 10 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'restart-app', False, (),
        ('blackwell', 'grace-blackwell'), None, None),
    127: Xid(
        127, 'copy engine 11 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    128: Xid(
        128, 'copy engine 12 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    129: Xid(
        129, 'copy engine 13 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    130: Xid(
        130, 'copy engine 14 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    131: Xid(
        131, 'copy engine 15 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    132: Xid(
        132, 'copy engine 16 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    133: Xid(
        133, 'copy engine 17 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None, None),
    134: Xid(
        134, 'copy engine 18 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    135: Xid(
        135, 'copy engine 19 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    136: Xid(
        136, 'NVLink did not train', 'NVLink training', 'hardware', 'drain', 'fatal', 'let-finish', 'no',
        (154,), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reset', False, (), ('hopper',), 565, None),
    137: Xid(
        137, 'NVLink: the other GPU refused the access', '', 'framework', 'note', 'note', 'none', 'yes',
        (13, 31, 108), None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud'), 'none', False,
        ('hardware', 'driver', 'program'), (), None, None),
    138: Xid(
        138, 'deep-learning accelerator error (embedded)', '', 'driver', 'note', 'warning', 'none', 'no',
        (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'repair', False, (), ('pre-ampere',), None,
        None),
    139: Xid(
        139, 'optical-flow engine 1 exception', '', 'framework', 'note', 'note', 'none', 'sometimes', (),
        None, ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (), ('blackwell', 'grace-blackwell'),
        None, None),
    140: Xid(
        140, 'memory error that went past the normal ECC handling', 'ECC unhandled', 'hardware', 'drain',
        'fatal', 'let-finish', 'no', (48, 63, 64, 154, 171, 172), None,
        ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'mem', 'aws'), 'reset', False,
        ('hardware', 'driver', 'GPU memory'), (), None, None),
    141: Xid(
        141, 'error of a CUDA fast-path channel', '', 'driver', 'note', 'note', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (), ('hopper', 'blackwell', 'grace-blackwell'),
        None, None),
    142: Xid(
        142, 'video encoder 3 error', '', 'driver', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'repair', False, (), ('grace-blackwell',), None, None),
    143: Xid(
        143, 'GPU did not initialise', 'no init', 'hardware', 'drain', 'fatal', 'let-finish', 'no', (154,),
        None, ('cat', 'catdoc', 'drv', 'gcm', 'gpud', 'aws'), 'reset', False,
        ('hardware', 'driver', 'GPU memory'), ('hopper', 'blackwell', 'grace-blackwell'), 575, None),
    144: Xid(
        144, 'NVLink 5 error in unit SAW; what to do comes as Xid 154', 'NVLink5 SAW', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False,
        (), ('blackwell', 'grace-blackwell'), 565, None),
    145: Xid(
        145, 'NVLink 5 error in unit RLW; what to do comes as Xid 154', 'NVLink5 RLW', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False,
        (), ('blackwell', 'grace-blackwell'), 565, None),
    146: Xid(
        146, 'NVLink 5 error in unit TLW; what to do comes as Xid 154', 'NVLink5 TLW', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False,
        (), ('blackwell', 'grace-blackwell'), 565, None),
    147: Xid(
        147, 'NVLink 5 error in unit TREX; what to do comes as Xid 154', 'NVLink5 TREX', 'hardware',
        'note', 'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none',
        False, (), ('blackwell', 'grace-blackwell'), 565, None),
    148: Xid(
        148, 'NVLink 5 error in unit NVLPW_CTRL; what to do comes as Xid 154', 'NVLink5 NVLPW_CTRL',
        'hardware', 'note', 'warning', 'none', 'no', (45, 154), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False, (), ('blackwell', 'grace-blackwell'), 565,
        None),
    149: Xid(
        149, 'NVLink 5 error in unit NETIR; what to do comes as Xid 154', 'NVLink5 NETIR', 'hardware',
        'note', 'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none',
        False, (), ('blackwell', 'grace-blackwell'), 565, None),
    150: Xid(
        150, 'NVLink 5 error in unit MSE; what to do comes as Xid 154', 'NVLink5 MSE', 'hardware', 'note',
        'warning', 'none', 'no', (45, 154), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False,
        (), ('blackwell', 'grace-blackwell'), 565, None),
    151: Xid(
        151, 'confidential computing: keys could not be renewed', 'key rotation', 'driver', 'drain',
        'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reboot', False,
        (), ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    152: Xid(
        152, 'deep-learning accelerator: memory management error (embedded)', '', 'driver', 'ignore',
        'note', 'none', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'none', False, (),
        ('pre-ampere',), None, None),
    153: Xid(
        153, 'deep-learning accelerator: time-out (embedded)', '', 'driver', 'ignore', 'note', 'none',
        'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'archive'), 'none', False, (), ('pre-ampere',),
        None, None),
    154: Xid(
        154, 'the driver asks for another recovery action on this GPU', 'recovery action', 'driver',
        'note', 'warning', 'none', 'no', (),
        {0: 'ignore', 1: 'drain', 2: 'drain', 3: 'drain', 4: 'drain', 5: 'drain', 6: 'drain', 7: 'drain'},
        ('cat', 'catdoc', 'drv', 'gpud'), 'none', True, (), (), None, None),
    155: Xid(
        155, 'NVLink taken down or marked by software, by a fault or on purpose', 'NVLink down',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (149, 154), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reset', False, (), ('blackwell', 'grace-blackwell'), 565,
        None),
    156: Xid(
        156, 'a faulty unit of the GPU was replaced by a spare; active after a reset', 'unit retired',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (154, 157), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reset', False, (),
        ('hopper', 'blackwell', 'grace-blackwell'), 565, None),
    157: Xid(
        157, 'a faulty unit of the GPU has no spare left', '', 'hardware', 'note', 'warning', 'none', 'no',
        (156,), None, ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    158: Xid(
        158, 'fatal time-out of the whole GPU', 'GPU time-out', 'hardware', 'drain', 'fatal', 'let-finish',
        'no', (154,), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reset', False, (), (), 565, None),
    159: Xid(
        159, 'coherent link (CHI) error outside data', '', 'hardware', 'note', 'warning', 'none', 'no',
        (154,), None, ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (),
        ('blackwell', 'grace-blackwell'), 565, None),
    160: Xid(
        160, 'memory channel retired', '', 'hardware', 'note', 'note', 'none', 'no', (154, 161), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'sent'), 'none', False, (), ('blackwell', 'grace-blackwell'), 575,
        None),
    161: Xid(
        161, 'memory channel could not be retired', '', 'hardware', 'note', 'warning', 'none', 'no',
        (154, 160), None, ('cat', 'catdoc', 'drv', 'gpud'), 'none', False, (),
        ('blackwell', 'grace-blackwell'), 575, None),
    162: Xid(
        162, 'power smoothing is back on', '', 'hardware', 'ignore', 'note', 'none', 'no', (163,), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    163: Xid(
        163, 'power smoothing switched itself off', '', 'hardware', 'note', 'note', 'none', 'no',
        (162, 164, 165), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws', 'sent'), 'none', False, (),
        ('blackwell', 'grace-blackwell'), None, None),
    164: Xid(
        164, 'power smoothing: little life left', '', 'hardware', 'note', 'warning', 'none', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False, (), ('blackwell', 'grace-blackwell'),
        None, None),
    165: Xid(
        165, 'power smoothing: life used up', '', 'hardware', 'note', 'warning', 'none', 'no', (), None,
        ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'none', False, (), ('blackwell', 'grace-blackwell'), None,
        None),
    166: Xid(
        166, 'confidential computing: NVLink used before it was encrypted', 'NVLink unencrypted', 'driver',
        'drain', 'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud'), 'reset', False,
        (), ('blackwell', 'grace-blackwell'), None, None),
    167: Xid(
        167, 'fatal PCIe time-out', 'PCIe time-out', 'hardware', 'drain', 'fatal', 'requeue-now', 'no', (),
        None, ('cat', 'catdoc', 'drv', 'gpud'), 'reboot', False, (),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    168: Xid(
        168, 'usable GPU memory shrank: fault in a protected region, ECC off', 'memory shrank', 'hardware',
        'drain', 'fatal', 'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud', 'aws'), 'reset',
        False, (), (), None, None),
    169: Xid(
        169, 'security micro-controller (SEC2) halted', 'SEC2 halted', 'hardware', 'drain', 'fatal',
        'let-finish', 'no', (), None, ('cat', 'catdoc', 'drv', 'gpud'), 'reset', False, (),
        ('hopper', 'blackwell', 'grace-blackwell'), None, None),
    170: Xid(
        170, 'confidential computing: other NVLink security event', '', 'framework', 'note', 'note',
        'none', 'sometimes', (), None, ('cat', 'catdoc', 'drv', 'gpud'), 'restart-app', False, (),
        ('blackwell', 'grace-blackwell'), None, None),
    171: Xid(
        171, 'memory error that ECC could not correct, in DRAM; comes with 48', 'DRAM uncorrectable',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (48, 63, 64, 94, 95, 154), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'reset', True, (), (), None, None),
    172: Xid(
        172, 'memory error that ECC could not correct, in SRAM; comes with 48', 'SRAM uncorrectable',
        'hardware', 'drain', 'fatal', 'let-finish', 'no', (48, 63, 64, 94, 95, 154), None,
        ('cat', 'catdoc', 'drv', 'gpud'), 'reset', True, (), (), None, None),
    173: Xid(
        173, 'chip-to-chip link down for good', 'C2C link down', 'hardware', 'drain', 'fatal',
        'requeue-now', 'no', (), None, ('drv', 'gpud'), 'reboot', False, (), (), None, None),
    174: Xid(
        174, 'process ended quietly after a channel reset', '', 'framework', 'note', 'note', 'none',
        'sometimes', (), None, ('drv',), 'none', True, (), (), None, None),
    175: Xid(
        175, 'memory subsystem error; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('drv',), 'none', False, (), (), None, None),
    176: Xid(
        176, 'PCIe errors, corrected; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('drv',), 'none', False, (), (), None, None),
    185: Xid(
        185, 'a spare was put to use; no more is known of it', '', 'hardware', 'note', 'warning', 'none',
        'no', (), None, ('oge',), 'none', False, (), (), None, None),
}
