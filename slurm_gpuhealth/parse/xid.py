"""Lines of the NVIDIA driver in the kernel log: Xid, SXid, off the bus, failed initialisation, version mismatch.

Pure. What a reader must accept is written down in tests/parse/test_xid.py; the shapes come from public bug
reports and from the driver's own source (open-gpu-kernel-modules, nv-reg.h and nvswitch, 595 series, looked
up 2026-11-30). Names of processes are whatever their users chose: they may hold colons, brackets, commas
and blanks, and are cut by the kernel at 15 bytes.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.parse import bdf

_TASK_COMM_LEN = 16     # linux/sched.h: a process name is at most 15 bytes
_MESSAGE_LIMIT = 200

_patterns: dict = {}

_SOURCES = {
    # The code may be the last thing on the line, or be followed by anything.
    "xid": r"NVRM: Xid \(([^()]*)\): (\d{1,6})(?:\D|$)",
    "pid": r"\s*pid='?(<unknown>|\d+)'?(?:, |$)",
    # How messages begin, to find the end of a process name that holds ", " itself.
    "opening": r", (?=Ch |Ch$|ch[ia]|Timeout |GPU |errorString|MMU |Row Remap|Contained|Uncontained|An uncorr|NVLink"
               r"|Class |Graphics|GSP |Data |Failed |DRAM|SRAM|intr |CE |PMU |[0-9a-f]{8} )",
    "mig": r" (GPU-I|GPU-CI):(\d+)",
    "caused_by": r"[Cc]aused by previous Xid (\d+)",
    "recovery": r"from 0x([0-9a-fA-F]{1,8})\b.*?\bto 0x([0-9a-fA-F]{1,8})\b",
    "link": r"\b[Ll]ink (-?\d+)",
    "nvlink5": r"\b(Fatal|Nonfatal)\b",
    "sxid": r"nvidia-nvswitch(\d+): SXid \(([^()]*)\): (\d{1,6})(?:, ?(.*))?$",
    "fell_off": r"NVRM: GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]+?):? (?:GPU )?has fallen off the bus",
    "rm_init": r"NVRM: GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]+?): (?:RmInitAdapter failed!|rm_init_adapter failed)(.*)",
    "minor": r"device minor number (\d+)",
    "mismatch": r"NVRM: API mismatch: the client (?:'?([^'()]*)'? )?(?:\(pid (\d+)\))?",
    "mismatch_more": r"(has the version|the version) (\d[\w.]*)",
    "load": r"NVRM: loading NVIDIA .*?(\d+\.\d+(?:\.\d+)?)",
}

# Codes whose line says itself whether they are fatal (NVLink 5 and later).
_SAYS_FATAL = frozenset(range(144, 151))

# Codes whose message matters in each line; of all others GPU and code are the whole story of a burst.
TELLING = _SAYS_FATAL | {45, 74, 154}


def _pattern(name):
    # Compiled when first needed: a healthy node's hook never gets here.
    found = _patterns.get(name)
    if found is None:
        found = _patterns[name] = re.compile(_SOURCES[name])
    return found


def parse(text):
    """What one line of the kernel log (without stamps) says about a GPU or an NVSwitch.

    Returns (kind, code, bdf, pid, process, data) or None. kind: "xid", "sxid", "gpu_fell_off",
    "rm_init_failed", "nvml_version_mismatch", "driver_load". pid: int or None. data: dict, maybe empty;
    data["detail"] is True for a line that only continues the event before it.
    """
    # Only at the start: a process may be named "NVRM: Xid (): 8", and other lines print names of processes.
    if text.startswith("NVRM: "):
        if text.startswith("NVRM: Xid ("):
            return _xid(text)
        if "fallen off the bus" in text:
            found = _pattern("fell_off").match(text)
            return ("gpu_fell_off", None, bdf.normalise(found[1]) if found else "", None, "", {})
        if "nit" in text and "dapter failed" in text:
            return _rm_init(text)
        if "version" in text or "API mismatch" in text:
            return _mismatch(text)
        if "NVRM: loading NVIDIA" in text:
            found = _pattern("load").match(text)
            return ("driver_load", None, "", None, "", {"version": found[1]} if found else {})
        return None
    if text.startswith("nvidia-nvswitch"):
        return _sxid(text)
    return None


def _xid(text):
    found = _pattern("xid").match(text)
    if found is None:
        return None
    where, code = found[1], int(found[2])
    rest = text[found.end(2):].lstrip(", ")
    data = {}
    address = where.split(" ", 1)[0]
    if len(address) != len(where):
        for key, number in _pattern("mig").findall(where):
            data["gpu_instance" if key == "GPU-I" else "compute_instance"] = int(number[:9])
    pid, process, message = _who(rest)
    _message_data(code, message, data)
    return ("xid", code, bdf.normalise(address), pid, process, data)


def _who(rest):
    """(pid, process name, message) of what follows the code."""
    pid, process = None, ""
    found = _pattern("pid").match(rest)
    if found is not None:
        if found[1] != "<unknown>":
            pid = int(found[1][:10])
        rest = rest[found.end():]
    if rest.startswith("name="):
        rest = rest[5:]
        end = _pattern("opening").search(rest)
        if end is not None and end.start() < _TASK_COMM_LEN:
            cut = end.start()
        else:
            cut = rest.find(", ")
        if cut < 0:
            process, rest = rest[:64], ""
        else:
            process, rest = rest[:cut], rest[cut + 2:]
        if process in ("<unknown>", "'<unknown>'"):
            process = ""
    return pid, process, rest


def _message_data(code, message, data):
    if message:
        data["message"] = message[:_MESSAGE_LIMIT]
    if "aused by previous Xid" in message:
        found = _pattern("caused_by").search(message)
        if found is not None:
            data["caused_by"] = int(found[1][:6])
    if code == 154:
        # The words were renamed in the 610 driver; the numbers were not.
        found = _pattern("recovery").search(message)
        if found is not None:
            data["from"], data["to"] = int(found[1], 16), int(found[2], 16)
    elif code == 74 or code in _SAYS_FATAL:
        found = _pattern("link").search(message)
        if found is not None:
            data["link"] = int(found[1][:4])
        if code in _SAYS_FATAL:
            found = _pattern("nvlink5").search(message)
            if found is not None:
                data["fatal"] = found[1] == "Fatal"


def _sxid(text):
    found = _pattern("sxid").match(text)
    if found is None:
        return None
    message = found[4] or ""
    data: dict = {"switch": int(found[1][:4])}
    if message.startswith(("Severity ", "Data {")):
        data["detail"] = True
    else:
        data["message"] = message[:_MESSAGE_LIMIT]
        word = message.split(",", 1)[0]
        if word in ("Fatal", "Non-fatal"):
            data["fatal"] = word == "Fatal"
        link = _pattern("link").search(message)
        if link is not None:
            data["link"] = int(link[1][:4])
    return ("sxid", int(found[3]), bdf.normalise(found[2]), None, "", data)


def _rm_init(text):
    found = _pattern("rm_init").match(text)
    if found is None:
        return None
    data: dict = {}
    minor = _pattern("minor").search(found[2])
    if minor is not None:
        data["minor"] = int(minor[1][:5])
    else:
        data["message"] = found[2].strip()[:_MESSAGE_LIMIT]
    return ("rm_init_failed", None, bdf.normalise(found[1]), None, "", data)


def _mismatch(text):
    """An API mismatch is five lines, in one record (0x0a written as \\x0a) or in five."""
    found = _pattern("mismatch").match(text)
    versions = _pattern("mismatch_more").findall(text)
    if found is None and not versions:
        return None
    data: dict = {} if found is not None else {"detail": True}
    for phrase, version in versions:
        data["client_version" if phrase == "has the version" else "module_version"] = version.rstrip(".")
    process = (found[1] or "").strip() if found is not None else ""
    pid = int(found[2][:10]) if found is not None and found[2] else None
    return ("nvml_version_mismatch", None, "", pid, process, data)
