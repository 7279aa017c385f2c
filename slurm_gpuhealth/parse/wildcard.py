"""Names with * in the configuration ("mlx5_*"). Pure; fnmatch would also take [ and ? apart."""
from __future__ import annotations


def matches(name, pattern):
    """Whether `name` fits `pattern`, in which each * stands for any text, also none."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *inner, last = rest
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in inner:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
