"""PCI addresses, written one way everywhere: dddd:bb:dd.f in lower case.

The kernel prints 0000:18:00.0, NVML 00000000:18:00.0, the NVIDIA driver's Xid lines 0000:18:00 (no function)
or, from some drivers, upper case or no domain. A domain of more than four digits is kept when it needs them
(VMD and Hyper-V number theirs from 0x10000 on).
"""
from __future__ import annotations

_known: dict = {}       # what was asked before: a log repeats a few addresses many times


def normalise(text):
    """The address in `text` as dddd:bb:dd.f, or "" when it is none.

    Accepts a leading "PCI:" and what follows in the same word group of a Xid line is the caller's to cut.
    """
    found = _known.get(text)
    if found is None:
        if len(_known) > 4096:
            _known.clear()
        found = _known[text] = _normalise(text) if len(text) < 64 else ""
    return found


def _normalise(text):
    text = text.strip()
    if text[:4].upper() == "PCI:":
        text = text[4:]
    address, dot, function = text.partition(".")
    parts = address.split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    if len(parts) != 3 or len(parts[1]) > 2 or len(parts[2]) > 2:
        return ""       # "0000:18", cut, must not become bus 0
    domain, bus, device = (_hex(part) for part in parts)
    number = _hex(function) if dot else 0
    # 8 bits of bus, 5 of device, 3 of function (PCI Local Bus Specification 3.0, 3.2.2.3.4).
    if domain < 0 or not 0 <= bus <= 0xff or not 0 <= device <= 0x1f or not 0 <= number <= 7:
        return ""
    return "%04x:%02x:%02x.%x" % (domain, bus, device, number)


def _hex(text):
    # int() alone would also take "0x1", "+1", "1_0" and digits of other scripts.
    if not 1 <= len(text) <= 8 or text.strip("0123456789abcdefABCDEF"):
        return -1
    return int(text, 16)
