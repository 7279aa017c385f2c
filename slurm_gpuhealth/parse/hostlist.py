"""Slurm's host lists: `n[1-3,07],r[1-2]c[01-16]`. Pure text, cheap to import; hooks use `first`, `contains`.

Grammar as Slurm's own (src/common/hostlist.c, read in 22.05.8 and 24.11.5): names separated by commas
outside brackets; a bracket holds numbers and ranges; a number's leading zeros give the width of the whole
range; several brackets in one name multiply; nesting is not allowed.
"""
from __future__ import annotations

from slurm_gpuhealth.errors import DataError

# Ten thousand nodes are a large cluster; a list of more than this is a mistake or an attack.
MAX_NAMES = 65536
# A number longer than this is no node number (Slurm's own limit is lower still).
_MAX_DIGITS = 18


def expand(text, limit=MAX_NAMES):
    """All names of a host list, in its order, as a list of str.

    Raises DataError when the text is not a host list, or stands for more than `limit` names; nothing is built
    before the number is known to be within it.
    """
    names: list[str] = []
    for item in _items(text):
        parts = _parts(item)
        count = 1
        for part in parts:
            count *= 1 if isinstance(part, str) else sum(high - low + 1 for low, high, _ in part)
            if len(names) + count > limit:
                raise DataError("host list stands for more than %d names" % limit)
        heads = [""]
        for part in parts:
            if isinstance(part, str):
                heads = [head + part for head in heads]
            else:
                numbers = ["%0*d" % (width, number) for low, high, width in part
                           for number in range(low, high + 1)]
                heads = [head + number for head in heads for number in numbers]
        names.extend(heads)
    return names


def first(text):
    """The first name of a host list, without expanding it ("" for an empty one).

    The batch host of a job is the first of SLURM_JOB_NODELIST (measured on 22.05, 24.11 and 26.05). Tolerant:
    a list that is cut off or malformed gives what can be read of its first name.
    """
    name = ""
    start = 0
    text = text.strip()
    while start < len(text):
        if text[start] == ",":
            break
        if text[start] != "[":
            name += text[start]
            start += 1
            continue
        end = text.find("]", start)
        inside = text[start + 1:end if end >= 0 else len(text)]
        name += inside.split(",", 1)[0].split("-", 1)[0]
        if end < 0:
            break
        start = end + 1
    return name


def contains(pattern, name):
    """True when `name` is one of the names of the host list `pattern`; the list is not expanded.

    Raises DataError when the pattern is not a host list.
    """
    return any(_match(_parts(item), name) for item in _items(pattern))


def fold(names):
    """The shortest host list of the given names: sorted by name and number, duplicates dropped.

    Only the last number of a name is folded. `expand(fold(names))` gives the same set of names.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for name in set(names):
        prefix, digits, suffix = _split_number(name)
        groups.setdefault((prefix, suffix), []).append(digits)
    out: list = []
    for (prefix, suffix), numbers in sorted(groups.items()):
        padded = {len(number) for number in numbers if number.startswith("0") and len(number) > 1}
        by_width: dict[int, list[int]] = {}
        for number in numbers:
            if number == "":
                out.append(prefix + suffix)
            else:
                width = len(number) if len(number) in padded else 0
                by_width.setdefault(width, []).append(int(number))
        for width, values in sorted(by_width.items()):
            out.append(prefix + _ranges(sorted(values), width) + suffix)
    return ",".join(out)


def numbers(text, limit=MAX_NAMES):
    """The numbers of "0,1,3-5" (as in SLURM_JOB_GPUS or IDX) as a tuple of int; DataError if it is none."""
    out: list = []
    for low, high, _ in _ranges_of(text):
        if len(out) + high - low + 1 > limit:
            raise DataError("list stands for more than %d numbers" % limit)
        out.extend(range(low, high + 1))
    return tuple(out)


def _items(text):
    """The names of the list with their brackets: split at the commas outside brackets."""
    items, start, depth = [], 0, 0
    for position, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
        if depth not in (0, 1):
            raise DataError("brackets of a host list do not match")
    if depth:
        raise DataError("brackets of a host list do not match")
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()]


def _parts(item):
    """["r", [(1, 2, 0)], "n", [(1, 16, 2)]]: texts and lists of (low, high, width)."""
    parts = []
    for number, piece in enumerate(item.split("[")):
        if number:
            inside, _, piece = piece.partition("]")
            parts.append(_ranges_of(inside))
        if piece:
            parts.append(piece)
    return parts


def _ranges_of(text):
    ranges = []
    for piece in text.split(","):
        low, dash, high = piece.strip().partition("-")
        high = high if dash else low
        if not (_is_number(low) and _is_number(high)):
            raise DataError("not a number or range: %r" % piece[:40])
        width = len(low) if low.startswith("0") and len(low) > 1 else 0
        if int(high) < int(low):
            raise DataError("range runs backwards: %r" % piece[:40])
        ranges.append((int(low), int(high), width))
    return ranges


def _is_number(text):
    # str.isdigit alone also takes superscripts and other scripts' digits.
    return text.isdigit() and text.isascii() and len(text) <= _MAX_DIGITS


def _match(parts, rest):
    """Does `rest` consist of exactly these parts? Each length of a number is tried, for "n[1-20]5"."""
    if not parts:
        return rest == ""
    head = parts[0]
    if isinstance(head, str):
        return rest.startswith(head) and _match(parts[1:], rest[len(head):])
    length = 0
    while length < len(rest) and length < _MAX_DIGITS and "0" <= rest[length] <= "9":
        length += 1
        number = int(rest[:length])
        for low, high, width in head:
            if low <= number <= high and rest[:length] == "%0*d" % (width, number) \
                    and _match(parts[1:], rest[length:]):
                return True
    return False


def _split_number(name):
    end = len(name)
    while end and not "0" <= name[end - 1] <= "9":
        end -= 1
    start = end
    while start and "0" <= name[start - 1] <= "9" and end - start < _MAX_DIGITS:
        start -= 1
    return name[:start], name[start:end], name[end:]


def _ranges(values, width):
    pieces = []
    start = last = values[0]
    for value in values[1:] + [None]:
        if value is not None and value == last + 1 and (not width or len(str(value)) <= width):
            last = value
            continue
        low, high = "%0*d" % (width, start), "%0*d" % (width, last)
        pieces.append(low if start == last else low + "-" + high)
        start = last = value
    if len(pieces) == 1 and "-" not in pieces[0]:
        return pieces[0]
    return "[" + ",".join(pieces) + "]"
