"""What a line of the kernel log says: GPU, PCIe, storage, memory, network, the kernel itself.

Pure. The rules are in kernel_rules.py, the NVIDIA driver's own lines in xid.py. Which lines are worth a look at all
is decided by their first four bytes (KEYS) and by a few substrings (INSIDE): that costs a fraction of a microsecond.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.parse import bdf
from slurm_gpuhealth.parse import xid as nvidia
from slurm_gpuhealth.parse.kernel_rules import BEHIND_ADDRESS, INSIDE, RULES

TEXT_LIMIT = 4096       # characters looked at; printk makes no longer record, and no pattern may become slow

_NVIDIA = ("NVRM", "nvid")

# The first four characters of the lines that RULES and xid.py know.
KEYS = frozenset(key for row in RULES for key in row[0].split("|") if key) | frozenset(_NVIDIA)

# The kernel prints the name of a process in front in some lines, 15 bytes that a user chose: they are no line of a
# driver, whatever they look like. With its number it stands in most of them; the others are these (arch/*/kernel,
# kernel/signal.c, mm, fs/locks.c, net: "COMM uses obsolete (PF_INET,SOCK_PACKET)"; looked up 2026-11-30).
_BYTE = r"(?:\\x[0-9a-fA-F]{2}|.)"        # a byte that is no letter is printed as \xNN
_COMM_FIRST = (_BYTE + r"{1,15}?(?: ?[\[(/]\d{1,10}(?:[\])](?:: |:$| (?!\[)|$)|[\])]?:? ?(?:segfault|trap|"
               r"general protection|bad frame|unhandled|stack segment|invalid|divide|used greatest|vfork|int3|bounds|"
               r"fatal signal|potentially unexpected))|"
               r" invoked oom-killer|: page allocation|: potentially unexpected|: vmalloc|:? uses? |:? used |"
               r":? is using |:? attempted |:? [Aa]ttempt |: unaligned |: Undefined )")
# As much as a name can hold: a line that is known by no more than that is none, whatever follows.
_COMM = _BYTE + "{0,15}"
# In the middle of a line of ext4: may end at any ": " within 15 bytes.
_COMM_INSIDE = r": comm " + _BYTE + "{1,15}%s: "

_compiled: dict = {}
_by_key: dict = {}

_NUMBERS = frozenset(("count", "seconds", "sector", "rc", "cpu", "bank", "error", "pid"))
_SPARE = (("target2", "target"), ("device2", "device"), ("memcg2", "memcg"), ("server2", "server"),
          ("member2", "member"), ("driver2", "driver"), ("what2", "what"), ("what3", "what"))


class Filter:
    """Finds lines that may hold an event by a quick look at bytes; may give some that hold none."""

    def __init__(self, more=()):
        """more: further substrings (bytes) that make a line of interest."""
        self.keys = frozenset(key.encode() for key in KEYS if key != "{")
        self._needles = tuple(needle.encode() for needle in INSIDE) + (b"}[Hardware Error]: ",) + tuple(more)
        # Of a key all of whose lines hold one of a few substrings: those.
        self.narrow = _narrow()
        self._words = frozenset(word.encode() for word in nvidia.WORDS)
        self._else = nvidia.ELSE.encode()
        self._behind = re.compile(BEHIND_ADDRESS.encode())

    def worth(self, key, line):
        """Whether a line with this key holds a substring that its rules ask for."""
        if key == b"NVRM":
            at = line.find(b"NVRM: ") + 6
            return line[at:at + 3] in self._words or self._else in line
        needles = self.narrow.get(key)
        if needles is None:
            return True
        for needle in needles:
            if needle in line:
                return True
        return False

    def marked(self, block):
        """The lines of `block` (whole lines) that hold one of the substrings. Looked for in the block as a whole, which
        runs at memory speed."""
        found = set()
        for needle in self._needles:
            at = block.find(needle)
            while at >= 0:
                end = block.find(b"\n", at)
                found.add(block[block.rfind(b"\n", 0, at) + 1:end if end >= 0 else len(block)])
                at = block.find(needle, end) if end >= 0 else -1
        for match in self._behind.finditer(block):
            at = match.start()
            end = block.find(b"\n", at)
            found.add(block[block.rfind(b"\n", 0, at) + 1:end if end >= 0 else len(block)])
        return found


def _narrow():
    of_key: dict = {b"NVRM": [nvidia.ELSE]}
    for row in RULES:
        for key in row[0].split("|"):
            if key and key not in _NVIDIA:
                of_key.setdefault(key.encode(), []).append(row[1])
    return {key: tuple(needle.encode() for needle in dict.fromkeys(needles))
            for key, needles in of_key.items() if all(needles)}


def key_of(text):
    """What a text's rules are found by: its first four characters, or the brace of a record of the firmware."""
    return "{" if text[:1] == "{" else text[:4]


def parse(text):
    """(kind, code, bdf, pid, process, data) of one line without stamps, or None for a line of no interest.

    Same shape as slurm_gpuhealth.parse.xid.parse, which is asked first. data["detail"] is True for a line that only
    continues an event before it; data["pending"] names a GPU that the next line is about (slurm_gpuhealth.parse.kmsg
    puts both together).
    """
    if len(text) > TEXT_LIMIT:
        text = text[:TEXT_LIMIT]
    key = key_of(text)
    if key in _NVIDIA:
        found = nvidia.parse(text)
        if found is not None or key == "NVRM":
            return found
    if key not in KEYS:
        key = ""
    rules = _by_key.get(key)
    if rules is None:
        rules = _by_key[key] = tuple((number, row[1], row[2]) for number, row in enumerate(RULES)
                                     if not row[0] or (key and key in row[0].split("|")))
    strict = text
    if ": comm " in text[:400]:
        # What excuses a file system must not be a name; what it suffers from is looked for in all that may be message.
        text, strict = _named("comm?", "?").sub(": ", text, 1), _named("comm", "").sub(": ", text, 1)
    for number, needle, kind in rules:
        if needle in text:
            found = _pattern(number).match(strict if _excuses(RULES[number][4]) else text)
            if found is not None:
                if kind is None or (kind != "oom_kill" and _is_process(text, found.end())):
                    return None
                return _event(kind, found, RULES[number][4])
    return None


def _named(name, lazy):
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = re.compile(_COMM_INSIDE % lazy, re.ASCII)
    return found


def _excuses(more):
    return more is not None and ("full" in more or "history" in more)


def _pattern(number):
    # Compiled when first needed: a healthy node's hook compiles a few.
    found = _compiled.get(number)
    if found is None:
        found = _compiled[number] = re.compile(RULES[number][3], re.ASCII)
    return found


def _is_process(text, end):
    """Whether a line begins with the name of a process, as far as one can tell, or is known by no more than a name can
    hold. end: where the pattern of its rule ended."""
    if end <= 15 or "\\" in text[:end]:
        if end <= _prefix("name", _COMM).match(text).end() and end < len(text):
            return True
    return _prefix("comm-first", _COMM_FIRST).match(text) is not None


def _prefix(name, source):
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = re.compile(source, re.ASCII | re.DOTALL)
    return found


def _event(kind, found, more):
    groups = {name: value for name, value in found.groupdict().items() if value}
    where = bdf.normalise(groups.pop("bdf", ""))
    pid = int(groups.pop("pid", "0")) or None
    process = groups.pop("process", "")[:64]
    for spare, name in _SPARE:
        if spare in groups:     # one name may stand only once in a pattern
            groups.setdefault(name, groups.pop(spare))
    data: dict = {name: (int(value[:18]) if name in _NUMBERS else value.strip()[:200])
                  for name, value in groups.items()}
    refine = _REFINE.get(kind)
    if refine is not None:
        kind = refine(data, where, found.string) or kind
    if more:
        data.update(more)
    return (kind, None, where, pid, process, data)


def _mce_status(data, where, text):
    """Bits of IA32_MCi_STATUS: 61 uncorrected, 57 context corrupt (Intel SDM volume 3B, 17.3.2.2); the AMD layout
    is the same there, with 44 for deferred."""
    status = int(data["status"], 16)
    if status >> 61 & 1:
        data["context_corrupt"] = bool(status >> 57 & 1)
        return "mce_uncorrected"
    return "mce_deferred" if status >> 44 & 1 and "MC%d_STATUS[" % data.get("bank", -1) in text else "mce_corrected"


def _mce_severity(data, where, text):
    return {"fatal": "mce_uncorrected", "corrected": "mce_corrected"}.get(data["severity"], "mce_apei")


def _link(data, where, text):
    data["state"] = data["now"] = "down" if data["state"].lower() == "down" else "up"
    if data.get("device") == "Port":
        del data["device"]      # "Port: 1 Link DOWN" without a name
    data["downs"] = 1 if data["state"] == "down" else 0


_NVME_WHAT = (("tim", "timeout"), ("device not", "failed"), ("disabling", "gone"), ("removing", "gone"),
              ("controller is", "gone"), ("reconnect", "fabric"), ("error rec", "fabric"), ("keep", "fabric"),
              ("reset", "reset"), ("frozen", "reset"), ("i/o", "media"), ("path", "path"))


def _nvme(data, where, text):
    what = data.get("what", "").lower()
    data["what"] = next((name for start, name in _NVME_WHAT if what.startswith(start)), "failed")


_MLX5_WHAT = (("insuff", "power"), ("health", "health"), ("fatal", "health"), ("recovery", "health"),
              ("sensor", "temperature"), ("temp", "temperature"), ("port", "module"), ("cable", "module"),
              ("access", "command"), ("err(", "command"), ("dump", "cqe"), ("error cqe", "cqe"),
              ("timeout", "timeout"))


def _mlx5(data, where, text):
    what = data.get("what", "").lower()
    data["what"] = next((name for start, name in _MLX5_WHAT if what.startswith(start)), "other")


def _oom(data, where, text):
    if " invoked oom-killer" in text:
        data["invoker"] = text.partition(" invoked oom-killer")[0][:64]
    found = _compiled.get("job")
    if found is None:
        # slurmstepd's cgroups, version 1 and 2.
        found = _compiled["job"] = re.compile(r"/(?:slurm\w*|system\.slice/[\w.-]{0,80}slurmstepd\.scope)/"
                                              r"(?:uid_\d{1,10}/)?job_(\d{1,10})(?:/|$)", re.ASCII)
    job = found.match(data.get("memcg", ""))
    if job is not None:
        data["job"] = int(job[1])


def _fs(data, where, text):
    data["fs"] = data.get("fs", "").lower().replace("journal commit", "jbd2")
    device = data.get("device", "").rstrip(".:")
    if device:
        data["device"] = device[:-2] if device.endswith("-8") else device      # the journal's inode, ext4's


def _iommu(data, where, text):
    if "reason" in data:
        data["reason"] = data["reason"].lower()


# Kinds whose data is made out of more than one group; returns another kind, or None to keep it.
_REFINE = {
    "mce_status": _mce_status, "mce_severity": _mce_severity, "link_flap": _link, "nvme": _nvme, "mlx5": _mlx5,
    "oom_kill": _oom, "fs_error": _fs, "fs_readonly": _fs, "iommu_fault": _iommu,
}
