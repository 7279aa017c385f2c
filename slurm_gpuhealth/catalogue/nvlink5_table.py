"""NVLink 5 errors. Generated from nvlink5.yaml (2026-11-30) by catalogue/generate.py: do not edit."""

# Driver branch from which on intrInfo is laid out the new way.
LAYOUT_CHANGED = 575

# (Xid, units, old mask, old value, new mask, new value, {errorStatus: (what to do, who looks)})
RULES = (
    (
        144, ('SAW_MVB',), 66061311, 33, 66060415, 1,
        {1: ('none', 'vendor'),
         2: ('reset', 'vendor'),
         4: ('none', ''),
         8: ('none', 'vendor'),
         16: ('reset', 'vendor'),
         32: ('none', '')}),
    (
        145, ('RLW_CTRL',), 66061311, 98, 66060415, 3, {2147483648: ('none', 'vendor')}),
    (
        145, ('RLW_REMAP',), 66061311, 130, 66060415, 4,
        {1: ('ask-154', 'vendor'),
         2: ('ask-154', 'vendor'),
         4: ('ask-154', 'the link'),
         8: ('ask-154', 'the link'),
         16: ('ask-154', 'the link'),
         32: ('ask-154', 'the link'),
         64: ('reset', 'vendor'),
         128: ('reset', 'vendor'),
         256: ('none', ''),
         512: ('none', ''),
         2147483648: ('none', 'vendor')}),
    (
        145, ('RLW_RSPCOL',), 66061311, 162, 66060415, 5,
        {1: ('none', ''), 2: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        145, ('RLW_RXPIPE',), 66062335, 194, 66060543, 6,
        {1: ('none', 'vendor'), 2: ('none', 'vendor'), 4: ('none', 'vendor')}),
    (
        145, ('RLW_RXPIPE',), 66061311, 194, 66060415, 6,
        {8: ('none', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        145, ('RLW_SRC_TRACK',), 66061311, 226, 66060415, 7,
        {1: ('reset', 'vendor'),
         2: ('none', ''),
         4: ('ask-154', ''),
         8: ('ask-154', ''),
         16: ('reset', 'vendor'),
         32: ('reset', 'vendor'),
         2147483648: ('none', 'vendor')}),
    (
        145, ('RLW_TAGSTATE',), 66061311, 258, 66060415, 8,
        {1: ('none', ''),
         2: ('reset', 'vendor'),
         65536: ('none', ''),
         131072: ('reset', 'vendor'),
         1048576: ('reset', 'vendor'),
         2147483648: ('none', 'vendor')}),
    (
        146, ('TLW_CTRL',), 66061311, 291, 66060415, 9,
        {1: ('none', ''), 2: ('none', 'vendor'), 4: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        146, ('TLW_RX', 'TLW_RX_PIPE0'), 66061311, 323, 66060415, 10,
        {1: ('none', ''), 2: ('none', 'vendor'), 4: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        146, ('TLW_RX', 'TLW_RX_PIPE1'), 66061311, 323, 66060415, 11,
        {1: ('none', ''), 2: ('none', 'vendor'), 4: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        146, ('TLW_TX', 'TLW_TX_PIPE0'), 66061311, 355, 66060415, 12,
        {1: ('none', ''), 2: ('none', 'vendor'), 4: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        146, ('TLW_TX', 'TLW_TX_PIPE1'), 66061311, 355, 66060415, 13,
        {1: ('none', ''), 2: ('none', 'vendor'), 4: ('reset', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        147, ('TREX',), 66061311, 388, 66060415, 14,
        {1: ('none', 'vendor'), 2147483648: ('none', 'vendor')}),
    (
        148, ('NVLPW_CTRL', 'NVLPW'), 66061311, 5, 66060415, 15, {2147483648: ('none', 'vendor')}),
    (
        149, ('NETIR', 'NETIR_INT'), 66061311, 6, 66060415, 24,
        {0: ('reset', 'another fault; alone vendor')}),
    (
        149, ('NETIR_BER_EVENT',), 66061311, 550, 66060415, 19,
        {0: ('none', 'signal quality and cables'),
         1: ('none', 'signal quality and cables'),
         2: ('none', 'signal quality and cables'),
         3: ('none', 'signal quality and cables')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 454, 66060415, 17,
        {0: ('reset', 'another fault; alone vendor')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 1049030, 66060415, 1048593,
        {0: ('reset', 'vendor, when more than once a day')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 2097606, 66060415, 2097169,
        {0: ('reset', 'signal quality')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 4194758, 66060415, 4194321,
        {0: ('reset', 'signal quality')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 10486214, 66060415, 10485777,
        {0: ('reset', 'signal quality')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 15729094, 66060415, 15728657,
        {0: ('reset', 'software')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 16777670, 66060415, 16777233,
        {0: ('reset', 'software, then signal quality')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 17826246, 66060415, 17825809,
        {0: ('reset', 'software')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 18874822, 66060415, 18874385,
        {0: ('reset', 'software, then signal quality')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 22020550, 66060415, 22020113,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 23069126, 66060415, 23068689,
        {0: ('reset', 'software')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 33554886, 66060415, 33554449,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 34603462, 66060415, 34603025,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 35652038, 66060415, 35651601,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 36700614, 66060415, 36700177,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 37749190, 66060415, 37748753,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 38797766, 66060415, 38797329,
        {0: ('reset', 'the other end')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 39846342, 66060415, 39845905,
        {0: ('none', 'software')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 41943494, 66060415, 41943057,
        {0: ('none', 'the host')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 44040646, 66060415, 44040209,
        {0: ('reset', 'signal quality and cables')}),
    (
        149, ('NETIR_LINK_EVT', 'NETIR_LINK_DOWN'), 66061311, 45089222, 66060415, 45088785,
        {0: ('reset', 'signal quality and cables')}),
    (
        149, ('NETIR_MFDE_EVENT',), 66061311, 582, 66060415, 20,
        {1: ('reset', 'vendor'),
         3: ('none', ''),
         4: ('reset', 'vendor'),
         5: ('reset', 'vendor'),
         7: ('reset', 'vendor')}),
    (
        150, ('MSE_WATCHDOG',), 66061311, 0, 66060415, 0, {0: ('reset', 'vendor')}),
)
