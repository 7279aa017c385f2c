"""Regular expressions that are compiled when they are first used: most rounds of a hook need none of them."""
from __future__ import annotations

import re


class Lazy:
    """Stands for `re.compile(pattern, flags)`."""

    __slots__ = ("_pattern", "_flags", "_compiled")

    def __init__(self, pattern, flags=0):
        self._pattern, self._flags, self._compiled = pattern, flags, None

    def __getattr__(self, name):
        # Only what is not in __slots__ comes here: match, search, sub, finditer, ...
        if self._compiled is None:
            self._compiled = re.compile(self._pattern, self._flags)
        return getattr(self._compiled, name)
