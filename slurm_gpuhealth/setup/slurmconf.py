"""slurm.conf: what it says, and changing a few lines of it so that the change can be taken back byte for byte.

Read from slurm.conf(5), 22.05 to 26.05: keys are case-insensitive, "#" begins a comment, a backslash at the end
continues a line, "Include FILE" takes another file (relative to the file that includes it), a later value of a
single setting replaces an earlier one. Prolog= and Epilog= take a glob pattern in every release, several lines
only in newer ones; so a pattern is what we use. slurmd runs the programs of a pattern in reverse alphabetical
order and stops at the first that fails.
"""
from __future__ import annotations

import os
import re
from collections import namedtuple

from slurm_gpuhealth import paths
from slurm_gpuhealth.errors import DataError

Setting = namedtuple("Setting", "key value path first last alone")
Setting.__doc__ = """One setting: key in lower case, where it stands (line numbers from 0, first to last because of
continued lines), alone: no other setting is in these lines."""

BEGIN = "# >>> gpuhealth: written by `gpuhealth install`, taken out by `gpuhealth uninstall`"
NO_NEWLINE = " (the line before had no end)"
END = "# <<< gpuhealth"
WAS = "#gpuhealth-was#"

_PAIR = re.compile(r'([A-Za-z][A-Za-z0-9_]*)\s*=\s*("[^"]*"|\S*)')
_INCLUDE = re.compile(r"\s*include\s+(\S+)", re.IGNORECASE)
_MAX_FILES = 64
_MAX_BYTES = 16 << 20

# PrologFlags that bring Alloc with them (slurm.conf(5)); naming Alloc as well would do no harm.
IMPLY_ALLOC = ("alloc", "contain", "x11", "forcerequeueonfail", "runinjob")


class Conf:
    """All settings of slurm.conf and what it includes, in order."""

    def __init__(self, path, settings, files):
        self.path, self.settings, self.files = path, settings, files

    def all(self, key):
        """The Settings of one key, in order."""
        return [item for item in self.settings if item.key == key.lower()]

    def get(self, key, default=""):
        """The value that holds: the last one."""
        found = self.all(key)
        return found[-1].value if found else default


def read(path, root="", with_ours=False):
    """Conf of a slurm.conf; our own changes count only with `with_ours`. Raises DataError when it is unreadable."""
    files: dict[str, str] = {}
    settings: list = []
    _read_file(path, root, settings, files, with_ours)
    return Conf(path, settings, files)


def _read_file(path, root, settings, files, with_ours):
    if path in files or len(files) >= _MAX_FILES:
        return
    try:
        with open(paths.under(root, path), encoding="utf-8", errors="surrogateescape", newline="") as handle:
            text = handle.read(_MAX_BYTES)
        text = text if with_ours else revert(text)
    except OSError as error:
        raise DataError("%s: %s" % (path, error.strerror)) from error
    files[path] = text
    for first, last, line in logical_lines(text):
        include = _INCLUDE.match(line)
        if include:
            target = include.group(1)
            if not target.startswith("/"):
                target = os.path.join(os.path.dirname(path), target)
            _read_file(target, root, settings, files, with_ours)
            continue
        pairs = _PAIR.findall(line)
        for key, value in pairs:
            settings.append(Setting(key.lower(), value.strip('"'), path, first, last, len(pairs) == 1))


def logical_lines(text):
    """(first line, last line, text without comment) of each line, continued ones joined."""
    held, start = "", None
    for number, line in enumerate(text.split("\n")):
        start = number if start is None else start
        line = line.rstrip("\r")
        body = re.sub(r"(?<!\\)#.*", "", line)
        if body.endswith("\\"):
            held += body[:-1]
            continue
        yield start, number, held + body
        held, start = "", None
    if held:
        yield start, number, held


def edited(text, comment_out, lines):
    """`text` with the numbered lines commented out and `lines` added at its end, in our marks."""
    if not comment_out and not lines:
        return text
    old = text.split("\n")
    for number in comment_out:
        old[number] = WAS + old[number]
    body = "\n".join(old)
    begin = BEGIN
    if body and not body.endswith("\n"):
        begin += NO_NEWLINE
        body += "\n"
    return body + "\n".join([begin] + list(lines) + [END]) + "\n"


def revert(text):
    """`text` as it was before edited(): our marks and what is between them gone, lines we commented out back.

    What an admin changed elsewhere since then stays.
    """
    if BEGIN not in text and WAS not in text:
        return text
    kept, inside, cut = [], False, False
    for line in text.split("\n"):
        bare = line.rstrip("\r")
        if bare in (BEGIN, BEGIN + NO_NEWLINE):
            inside, cut = True, cut or bare.endswith(NO_NEWLINE)
        elif inside:
            inside = bare != END
        else:
            kept.append(line[len(WAS):] if line.startswith(WAS) else line)
    out = "\n".join(kept)
    return out[:-1] if cut and out.endswith("\n") else out


def scontrol_settings(text):
    """{key in lower case: value} of the output of `scontrol show config`; "(null)" is "".

    Newer releases number what may be there several times (Prolog[0]); those values are joined by commas.
    """
    values: dict[str, str] = {}
    for line in text.split("\n"):
        key, equal, value = line.partition("=")
        name = re.sub(r"\[[0-9]+\]\Z", "", key.strip()).lower()
        if not equal or not re.match(r"[a-z][a-z0-9_]*\Z", name):
            continue
        value = "" if value.strip() == "(null)" else value.strip()
        values[name] = values[name] + "," + value if values.get(name) and value else value or values.get(name, "")
    return values


def seconds(value):
    """Seconds in a value such as "30", "30 sec", "INFINITE", "65534"; None for "never" and for nothing."""
    match = re.match(r"\s*([0-9]+)", value or "")
    if not match or int(match.group(1)) in (65534, 65535, 4294967294, 4294967295):
        return None
    return int(match.group(1))


def has_alloc(flags):
    """True when PrologFlags make Prolog run at the allocation, and not at the first step."""
    return any(flag.strip().lower() in IMPLY_ALLOC for flag in flags.split(","))
