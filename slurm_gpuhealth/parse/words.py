"""Words for people: what a terminal may be sent, and the name that was probably meant. Pure."""
from __future__ import annotations


def printable(text):
    """`text` with control characters and what a terminal would obey made visible."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
                   for char in str(text))


def nearest(word, names):
    """" (did you mean 'x'?)" for the name most like `word`, or ""."""
    import difflib  # for mistakes only
    close = difflib.get_close_matches(str(word), [str(name) for name in names], n=1, cutoff=0.6)
    return " (did you mean '%s'?)" % close[0] if close else ""
