"""How many GPUs a node should have, from the text of gres.conf and slurm.conf. Pure.

Read from Slurm's manual pages and source (22.05.8, 24.11.5): keys are case-insensitive; `NodeName=` in
gres.conf limits a line to some nodes, without it the line holds for all; slurm.conf's `NodeName=DEFAULT`
gives defaults to the lines below it; a line goes on after a backslash; `#` begins a comment; `Include FILE`
takes in another file.
"""
from __future__ import annotations

from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import hostlist
from slurm_gpuhealth.parse.lazy import Lazy

_MAX_INCLUDES = 64
_DEVICE = "/dev/nvidia"
# One expression only: each costs a hook about a millisecond to compile, and this runs in every prolog.
_PAIR = Lazy(r'([A-Za-z]+)\s*=\s*("[^"]*"|\S*)')


def expected(gres_text, slurm_text, node, includes=None):
    """(count, origin) of the physical GPUs that `node` should have, or None when neither text says.

    gres_text, slurm_text: content of gres.conf and slurm.conf, "" where there is none. includes: {path: text}
    of the files they include, keyed as written there (includes_of lists them). origin: "gres.conf" or
    "slurm.conf". slurm.conf knowing the node without any gpu gives (0, "slurm.conf"): a node without GPUs.
    Where both give a number the smaller one holds, as slurmd ignores devices beyond slurm.conf's number.
    Lines of one type are added up; MIG instances count as the GPUs they lie on.
    """
    from_slurm, known = _slurm_count(slurm_text, node, includes or {})
    from_gres = _gres_count(gres_text, node, includes or {})
    if from_slurm == 0 and known:
        return 0, "slurm.conf"
    if from_gres is not None and (from_slurm is None or from_gres <= from_slurm):
        return from_gres, "gres.conf"
    if from_slurm is not None:
        return from_slurm, "slurm.conf"
    return None


def device_order(gres_text, node, includes=None):
    """Device minors in the order of Slurm's gres index: result[gres index] = N of /dev/nvidiaN; or None.

    The order is that of `File=` in gres.conf. None when there is no File= or when AutoDetect is on: then
    slurmd sorts by device file and, where it sees NVLink, by PCI address (gres_gpu.c,
    _merge_system_gres_conf).
    """
    if autodetect(gres_text, node, includes) not in ("", "off"):
        return None
    minors = []
    for pairs in _gpu_lines(gres_text, node, includes or {}):
        for minor in _minors(pairs):
            if minor not in minors:
                minors.append(minor)
    return tuple(minors) or None


def autodetect(gres_text, node, includes=None):
    """The AutoDetect value that holds for `node`, lower case ("nvml", "nvidia", "off"); "" for none."""
    everywhere, here = "", ""
    for pairs in _lines(gres_text, includes or {}):
        value = pairs.get("autodetect")
        if value is None:
            continue
        if "nodename" not in pairs:
            everywhere = value.lower()
        elif _names(pairs["nodename"], node):
            here = value.lower()
    return here or everywhere


def includes_of(text):
    """Paths of the `Include` lines of a text, in order, as written."""
    return [path for path in map(_include, _logical_lines(text)) if path]


def _gres_count(text, node, includes):
    """GPUs of the node by gres.conf, or None when it has no line for it that gives a number."""
    minors, plain, seen = set(), 0, False
    for pairs in _gpu_lines(text, node, includes):
        devices = _minors(pairs)
        mig = _is_mig(pairs.get("type", ""))
        if devices:
            minors.update(devices)
            seen = True
        elif "count" in pairs and not mig and _count(pairs["count"]) is not None:
            plain += _count(pairs["count"])
            seen = True
    return len(minors) + plain if seen else None


def _slurm_count(text, node, includes):
    """(count or None, whether the node is named in the text). None: not named, or only MIG instances."""
    default, found = {}, None
    for pairs in _lines(text, includes):
        if "nodename" not in pairs:
            continue
        if pairs["nodename"].upper() == "DEFAULT":
            default.update(pairs)
        elif _names(pairs["nodename"], node):
            found = dict(default, **pairs)
    if found is None:
        return None, False
    total = 0
    for item in _split_gres(found.get("gres", "")):
        fields = [field for field in item.split(":") if field.lower() != "no_consume"]
        if fields[0].lower() != "gpu":
            continue
        if any(_is_mig(field) for field in fields[1:]):
            return None, True
        number = _count(fields[-1]) if len(fields) > 1 else 1
        total += 1 if number is None else number     # "gpu:h100" without a number is one
    return total, True


def _split_gres(text):
    """Items of "gpu:h100:8(S:0,1),shard:4": split at commas outside brackets, the (S:...) part dropped."""
    items, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            items.append("")
        elif depth == 0 and char != ")":
            items[-1] += char
    return [item.strip() for item in items if item.strip() and item.strip().lower() != "(null)"]


def _gpu_lines(text, node, includes):
    for pairs in _lines(text, includes):
        if pairs.get("name", "").lower() == "gpu" and ("nodename" not in pairs
                                                       or _names(pairs["nodename"], node)):
            yield pairs


def _minors(pairs):
    """Minors of a line's device files, in order; control devices (nvidiactl, nvidia-caps) are none."""
    minors = []
    for key in ("file", "multiplefiles"):
        try:
            paths = hostlist.expand(pairs.get(key, ""), limit=4096)
        except DataError:
            continue
        for path in paths:
            number = path[len(_DEVICE):]
            if path.startswith(_DEVICE) and number.isdigit() and number.isascii():
                minors.append(int(number))
    return minors


def _count(text):
    """"8" or "2K" as a number, None for anything else."""
    power = "_KMGTP".find(text[-1:].upper()) if text else -1
    digits = text[:-1] if power > 0 else text
    if not (digits.isdigit() and digits.isascii()) or len(digits) > 9:
        return None
    return int(digits) * 1024 ** max(0, power)


def _is_mig(text):
    """Is this a MIG profile as the type of a gres, "1g.5gb" or "a100_3g.20gb"? An instance, no GPU of its own."""
    for part in text.lower().split("_"):
        slices, dot, memory = part.partition("g.")
        if dot and slices.isdigit() and memory.split("gb", 1)[0].isdigit() and "gb" in memory:
            return True
    return False


def _names(pattern, node):
    try:
        return hostlist.contains(pattern, node)
    except DataError:
        return False


def _lines(text, includes):
    """{key in lower case: value} of each line, files included in their place."""
    waiting = [iter(_logical_lines(text))]
    taken = 0
    while waiting:
        line = next(waiting[-1], None)
        if line is None:
            waiting.pop()
            continue
        path = _include(line)
        if path:
            taken += 1
            if taken <= _MAX_INCLUDES and path in includes:
                waiting.append(iter(_logical_lines(includes[path])))
            continue
        pairs = {key.lower(): value.strip('"') for key, value in _PAIR.findall(line)}
        if pairs:
            yield pairs


def _include(line):
    """The path of an Include line, else ""."""
    words = line.split(None, 2)
    return words[1].strip('"') if len(words) > 1 and words[0].lower() == "include" else ""


def _logical_lines(text):
    lines = []
    for line in text.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        # A hash behind a backslash is a literal one (parse_config.c).
        line = line.replace("\\#", "\0").split("#", 1)[0].replace("\0", "#").strip()
        if line:
            lines.append(line)
    return lines
