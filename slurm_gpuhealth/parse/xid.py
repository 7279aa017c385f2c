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
_LINK_LIMIT = 1000      # characters of a message that link and registers are looked for in

_patterns: dict = {}

_SOURCES = {
    # The code may be the last thing on the line, or be followed by anything.
    "xid": r"NVRM: {1,3}Xid \(([^()]{0,80})\): ?(\d{1,6})(?=(,|\s*$)|\D)",
    "pid": r"\s*pid='?(<unknown>|\d+)'?(?:, |$)",
    # How messages begin, to find the end of a process name that holds ", " itself.
    "opening": r", (?=Ch |Ch$|ch[ia]|Timeout |GPU |errorString|MMU |Row Remap|Contained|Uncontained|An uncorr|NVLink"
               r"|Class |Graphics|GSP |Data |Failed |DRAM|SRAM|intr |CE |PMU |[0-9a-f]{8} )",
    "mig": r" (GPU-I|GPU-CI):(\d+)",
    "caused_by": r"[Cc]aused by previous Xid (\d+)",
    "recovery": r"from 0x([0-9a-fA-F]{1,8})\b.{0,100}?\bto 0x([0-9a-fA-F]{1,8})\b",
    "link": r"\b[Ll]ink (-?\d+)",
    # "<unit> <Fatal|Nonfatal> XC<n> i<injected> Link <n> (<registers>)", the register words maybe cut.
    # A process may be named like a part of it, but 15 bytes cannot hold it up to the link's word.
    "nvlink5": r"(?:(\w{1,32}) +)?\b(Fatal|Non-?fatal)\b(?: +XC(\d))?(?: +i(\d{1,3}))?( +Link\b)?",
    "registers": r"\((0x[0-9a-fA-F]{1,8}(?:[ ,]+0x[0-9a-fA-F]{1,8})*)",
    "sxid": r"nvidia-nvswitch(\d{1,4}): SXid(?: \(([^()]{0,40})\))?: ?(\d{1,6})(?=\D|$)[,: ]*([^\n]*)",
    "nvswitch": r"nvidia-nvswitch(\d{1,4}): (?!SXid)(.{0,120}(?:[Ff]ailed|[Ff]ailure|[Ee]rror|[Tt]imed out|not respond)"
                r".{0,120})",
    "fell_off": r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]{2,20}?):? (?:GPU )?has fallen off the bus",
    "probe_block": r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{2,20})",
    "rm_init": r"NVRM: (?:GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]{2,20}?): )?(?:RmInitAdapter failed!|rm_init_adapter"
               r"(?:\(\d+\))? failed)(.{0,200})",
    "minor": r"(?:device minor number|bearing minor number|rm_init_adapter\() ?(\d{1,9})",
    "cannot_start": r"NVRM: GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]{2,20}?): (?:GPU does not have the necessary (power) "
                    r"cables|No (interrupts) of any type are available)",
    "hint": r"NVRM: GPU (?:at )?(?:PCI:)?([0-9A-Fa-f:.]{2,20}?): Failed to enable (MSI-X|MSI)\b",
    "bar": r"NVRM: BAR(\d) is \d{1,9}M @ 0x[0-9a-fA-F]{1,16} \(PCI:([0-9A-Fa-f:.]{2,20})\)",
    "needs_reset": r"NVRM: Rate limiting GSP RPC error prints for GPU at (?:PCI:)?([0-9A-Fa-f:.]{2,20}) ",
    "uvm_fatal": r"NVRM: .{0,60}uvm encountered global fatal error 0x([0-9a-fA-F]{1,8})",
    "client": r"NVRM: API mismatch: the client '(.{0,64})' \(pid (\d{1,10})\)",
    "mismatch_more": r"(has the version|(?<!has )the version) (\d[\w.]{0,31})",
    "load": r"NVRM: loading NVIDIA .{0,80}?(\d{1,6}\.\d{1,6}(?:\.\d{1,6})?)",
}

# Codes whose line says itself whether they are fatal (NVLink 5 and later).
_SAYS_FATAL = frozenset(range(144, 151))

# Codes whose message matters in each line; of all others GPU and code are the whole story of a burst.
TELLING = _SAYS_FATAL | {45, 74, 154}


def _pattern(name):
    # Compiled when first needed: a healthy node's hook never gets here.
    found = _patterns.get(name)
    if found is None:
        found = _patterns[name] = re.compile(_SOURCES[name], re.ASCII)
    return found


def parse(text):
    """What one line of the kernel log (without stamps) says about a GPU or an NVSwitch.

    Returns (kind, code, bdf, pid, process, data) or None. kind: "xid", "sxid", "gpu_fell_off", "rm_init_failed",
    "gpu_needs_reset", "uvm_fatal", "nvml_version_mismatch", "driver_load", "no_gpu_found", "nvswitch_error", or
    "gpu_probe" for the beginning of a block whose next lines say what is wrong, and for what may be the reason of a
    failure that follows. pid: int or None. data: dict, maybe
    empty; data["detail"] is True for a line that only continues the event before it.
    """
    # Only at the start: a process may be named "NVRM: Xid (): 8", and other lines print names of processes.
    if text.startswith("NVRM: "):
        if text.startswith(("NVRM: Xid (", "NVRM:  Xid (")):
            return _xid(text)
        for needle, reader in _OF_DRIVER:
            if needle in text:
                found = reader(text)
                if found is not None:
                    return found
        return None
    if text.startswith("nvidia-nvswitch"):
        return _sxid(text) if ": SXid" in text[:30] else _switch(text)
    return None


def _xid(text):
    found = _pattern("xid").match(text)
    if found is None:
        return None
    where, code = found[1], int(found[2])
    rest = text[found.end(2):].lstrip(", ")
    data = {}
    printed = where.split(" ", 1)[0]
    address = _address(printed)
    if not address and found[3] is None:
        return None     # "NVRM: Xid (): 8[1234]: segfault": the name of a process, followed by the kernel's own text
    if len(printed) != len(where):
        for key, number in _pattern("mig").findall(where):
            data["gpu_instance" if key == "GPU-I" else "compute_instance"] = int(number[:9])
    pid, process, message = _who(rest)
    # So much of what looks like the message may still be the name of the process, cut at a ", " of its own.
    _message_data(code, message, data, max(0, _TASK_COMM_LEN - 1 - len(process) - 2) if process else 0)
    return ("xid", code, address, pid, process, data)


def _address(printed):
    """The address within the parentheses of a Xid; drivers before 2010 wrote the bus with four digits."""
    if len(printed) == 7 and printed[:2] == "00" and printed[4] == ":":
        printed = printed[2:]
    return bdf.normalise(printed)


def _who(rest):
    """(pid, process name, message) of what follows the code."""
    pid, process = None, ""
    found = _pattern("pid").match(rest)
    if found is not None:
        if found[1] != "<unknown>":
            pid = int(found[1][:10]) or None
        rest = rest[found.end():]
    if rest.startswith("name="):
        rest = rest[5:]
        end = _pattern("opening").search(rest, 0, 400)
        if end is not None and end.start() < _TASK_COMM_LEN:
            cut = end.start()
        else:
            cut = rest.find(", ")
        if cut < 0:
            process, rest = rest[:64], ""
        else:
            process, rest = rest[:cut][:64], rest[cut + 2:]
        if process in ("<unknown>", "'<unknown>'"):
            process = ""
    return pid, process, rest


def _message_data(code, message, data, spare):
    if message:
        data["message"] = message[:_MESSAGE_LIMIT]
    if "aused by previous Xid" in message:
        found = _pattern("caused_by").search(message)
        if found is not None:
            data["caused_by"] = int(found[1][:6])
    if code == 154:
        # The words were renamed in the 610 driver; the numbers were not.
        found = _pattern("recovery").search(message, max(0, message.rfind("from 0x")))
        if found is not None:
            data["from"], data["to"] = int(found[1], 16), int(found[2], 16)
    elif code == 74 or code in _SAYS_FATAL:
        _link_data(code, message[:_LINK_LIMIT], data, spare)


def _last(name, message, spare):
    """The last match that is not within the first `spare` characters, or None: a user may have chosen those."""
    found = None
    for match in _pattern(name).finditer(message):
        if match.end() > spare:
            found = match
    return found


def _link_data(code, message, data, spare):
    found = _last("link", message, spare)
    if found is not None:
        data["link"] = int(found[1][:4])
    found = _last("registers", message, spare)
    if found is not None:
        data["registers"] = [int(word, 16) for word in found[1].replace(",", " ").split()][:16]
    if code in _SAYS_FATAL:
        found = _last("nvlink5", message, spare)
        if found is not None:
            data["fatal"] = found[2] == "Fatal"
            for name, value in (("unit", found[1]), ("xc", found[3]), ("injected_error", found[4])):
                if value is not None:
                    data[name] = value if name == "unit" else int(value)


def _sxid(text):
    found = _pattern("sxid").match(text)
    if found is None:
        return None
    message = found[4]
    data: dict = {"switch": int(found[1])}
    if message.startswith(("Severity ", "Data {")):
        data["detail"] = True
    elif message:
        data["message"] = message[:_MESSAGE_LIMIT]
        word = message.split(",", 1)[0].strip()
        if word in ("Fatal", "Non-fatal", "Non-Fatal", "Nonfatal"):
            data["fatal"] = word == "Fatal"
        link = _pattern("link").search(message)
        if link is not None:
            data["link"] = int(link[1][:4])
    return ("sxid", int(found[3]), bdf.normalise(found[2] or ""), None, "", data)


def _switch(text):
    found = _pattern("nvswitch").match(text)
    if found is None:
        return None
    return ("nvswitch_error", None, "", None, "", {"switch": int(found[1]), "message": found[2][:_MESSAGE_LIMIT]})


def _fell_off(text):
    found = _pattern("fell_off").match(text)
    if found is not None:
        return ("gpu_fell_off", None, bdf.normalise(found[1]), None, "", {})
    found = _pattern("probe_block").match(text)
    if found is not None:       # the block of three lines in one record
        return ("gpu_fell_off", None, bdf.normalise(found[1]), None, "", {"at_probe": True})
    if text.startswith("NVRM: fallen off the bus"):
        return ("gpu_fell_off", None, "", None, "", {"at_probe": True, "pending": True})
    if "has fallen off the bus" in text and not text.startswith("NVRM: Xid"):
        return ("gpu_fell_off", None, "", None, "", {})
    return None


def _probe_block(text):
    found = _pattern("probe_block").match(text)
    where = bdf.normalise(found[1]) if found is not None else ""
    return ("gpu_probe", None, where, None, "", {}) if where else None


def _rm_init(text):
    found = _pattern("rm_init").match(text)
    if found is None:
        return None
    data: dict = {}
    minor = _pattern("minor").search(text)
    if minor is not None:
        data["minor"] = int(minor[1][:5])
    elif found[2].strip():
        data["message"] = found[2].strip()[:_MESSAGE_LIMIT]
    return ("rm_init_failed", None, bdf.normalise(found[1] or ""), None, "", data)


def _cannot_start(text):
    found = _pattern("cannot_start").match(text)
    if found is None:
        return None
    reason = "no power cables" if found[2] else "no interrupts"
    return ("rm_init_failed", None, bdf.normalise(found[1]), None, "", {"reason": reason})


def _hint(text):
    """Without MSI the driver takes the wired interrupts: no failure by itself (nv-msi.c), but maybe the reason of one
    that follows."""
    found = _pattern("hint").match(text)
    return found and ("gpu_probe", None, bdf.normalise(found[1]), None, "", {"reason": "no " + found[2]})


def _bar(text):
    found = _pattern("bar").match(text)
    return found and ("rm_init_failed", None, bdf.normalise(found[2]), None, "", {"reason": "BAR%s" % found[1]})


def _needs_reset(text):
    found = _pattern("needs_reset").match(text)
    return found and ("gpu_needs_reset", None, bdf.normalise(found[1].rstrip(":")), None, "", {})


def _uvm_fatal(text):
    found = _pattern("uvm_fatal").match(text)
    return found and ("uvm_fatal", None, "", None, "", {"error": int(found[1], 16)})


def _mismatch(text):
    """An API mismatch is five lines, in one record (0x0a written as \\x0a) or in five."""
    first = text.startswith("NVRM: API mismatch: the client")
    versions = _pattern("mismatch_more").findall(text, 0, 800)
    if not first and (not versions or not text.startswith(("NVRM: has the", "NVRM: the v", "NVRM: this ker"))):
        return None
    data: dict = {} if first else {"detail": True}
    for phrase, version in versions:
        name = "client_version" if phrase == "has the version" and "client_version" not in data else "module_version"
        if text.startswith("NVRM: this ker"):
            name = "module_version"
        data[name] = version.rstrip(".,")
    found = _pattern("client").match(text)
    pid, process = (int(found[2]) or None, found[1].strip()) if found is not None else (None, "")
    return ("nvml_version_mismatch", None, "", pid, process, data)


def _load(text):
    found = _pattern("load").match(text)
    return ("driver_load", None, "", None, "", {"version": found[1]} if found else {})


def _no_gpu(text):
    if text.startswith(("NVRM: No NVIDIA GPU found", "NVRM: No NVIDIA devices probed",
                        "NVRM: No NVIDIA graphics adapter", "NVRM: None of the NVIDIA")):
        return ("no_gpu_found", None, "", None, "", {})
    return None


# (substring, reader) of the driver's lines that are no Xid.
_OF_DRIVER = (
    ("fallen off the bus", _fell_off), ("The NVIDIA GPU ", _probe_block), ("dapter failed", _rm_init),
    ("rm_init_adapter(", _rm_init), ("necessary power cables", _cannot_start), ("Failed to enable MSI", _hint),
    ("No interrupts of", _cannot_start),
    ("NVRM: BAR", _bar), ("likely needs to be reset", _needs_reset), ("global fatal error", _uvm_fatal),
    ("API mismatch", _mismatch), (" version ", _mismatch), ("loading NVIDIA", _load), ("NVRM: No", _no_gpu))

# How the driver's lines that say something go on behind "NVRM: "; of any other only this substring is of interest.
WORDS = frozenset(("Xid", " Xi", "GPU", "The", "fal", "RmI", "rm_", "BAR", "Rat", "nvG", "uvm", "API", "has", "the",
                   "thi", "loa", "No ", "Non"))
ELSE = "fallen off the bus"
