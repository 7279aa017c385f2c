"""What a job says of its checkpoints in its Slurm comment, and the hint we leave there.

One token `gpuhealth:key=value,key=value` may stand anywhere in the comment. It ends at white space, `;` or `|`;
such characters inside a value, and commas, are percent-encoded. All other text belongs to the user and is kept
byte for byte. Comments come from users: nothing here raises on bad input, a bad token is a value with one line
that says what is wrong. Pure.

Slurm hands comments over as bytes; Python shows bytes that are not UTF-8 as surrogates (PEP 383), so texts here
may hold them. Lengths are in bytes, as Slurm counts them.
"""
from __future__ import annotations

import re
from collections import namedtuple

from slurm_gpuhealth.parse.lazy import Lazy

PREFIX = "gpuhealth:"
MAX_TOKEN = 512         # bytes of one token (docs/design.md)
MAX_COMMENT = 1024      # bytes of a comment that slurmctld takes (measured on 22.05, 24.11, 26.05)

USER_KEYS = ("ckpt", "requeue", "max-restarts", "total-steps", "when-none")
OUR_KEYS = ("resume", "for", "tries", "start", "step", "level", "fp")
PLACEHOLDERS = ("job_id", "array_job_id", "array_task_id", "job_name", "user")
WHEN_NONE = ("hold", "start-over")

Token = namedtuple("Token", "ckpt requeue max_restarts total_steps when_none hint start end",
                   defaults=("", None, None, None, "", None, 0, 0))
Token.__doc__ = """A good token.

ckpt: pattern of the checkpoint folder, still encoded ("" when the token names none): see `expand`.
requeue: True, False or None (not said). max_restarts, total_steps: int or None. when_none: "hold", "start-over"
or "". hint: Hint or None. start, end: where the token stands in the comment.
"""

BadToken = namedtuple("BadToken", "reason")
BadToken.__doc__ = """Why the comment is refused: one printable line."""

Hint = namedtuple("Hint", "path job restart tries start step level fp",
                  defaults=("", "", 0, 0, None, None, "", ""))
Hint.__doc__ = """What we leave in the token at a requeue of ours.

path: checkpoint that was chosen ("" when none was looked for). job, restart: the start that the hint is for (job id
as text; restart count of that start). tries: requeues of ours so far. start: StartTime that was set, epoch seconds.
step, level: of the checkpoint. fp: fingerprint of its files (checkpoint/find.py), "" when unknown.
"""

Hinted = namedtuple("Hinted", "text kept")
Hinted.__doc__ = """text: the new comment. kept: "all", "counter" (no room for the path) or "none"."""

_TOKEN = Lazy(r"(?<![A-Za-z0-9_.%/-])gpuhealth:([^ \t\r\n\f\v;|]*)")
_PERCENT = Lazy(r"%([0-9A-Fa-f]{2})?")
_HOLE = Lazy(r"\{([^{}]*)\}")
_CONTROL = Lazy("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONE_SURROGATE = Lazy("[\ud800-\udc7f\udd00-\udfff]")    # no byte becomes these
_NEEDS_CODING = Lazy(r"""["'`\\<>&$,]""")
_FOR = Lazy(r"([0-9]{1,20})\.([0-9]{1,9})\Z")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+=@:~")


def parse(comment):
    """The token of a job's comment: Token, BadToken, or None where there is no token at all."""
    found = list(_TOKEN.finditer(comment or ""))
    if found and _LONE_SURROGATE.search(comment):
        return BadToken("the comment is not text")
    if not found:
        return None
    if len(found) > 1:
        return BadToken("%d gpuhealth tokens in the comment, there may be one" % len(found))
    match = found[0]
    text = match.group(0)
    if _bytes(text) > MAX_TOKEN:
        return BadToken("the gpuhealth token has %d bytes, at most %d may be" % (_bytes(text), MAX_TOKEN))
    if _CONTROL.search(text):
        return BadToken("control character in the gpuhealth token")
    values = {}
    for item in match.group(1).split(","):
        key, equals, value = item.partition("=")
        if not equals:
            return BadToken("expected key=value, found '%s'" % shown(item))
        if key not in USER_KEYS and key not in OUR_KEYS:
            return BadToken("unknown key '%s'%s" % (shown(key), _nearest(key, USER_KEYS)))
        if key in values:
            return BadToken("key '%s' twice" % key)
        values[key] = value
    bad = _check(values)
    if bad:
        return BadToken(bad)
    return Token(
        ckpt=values.get("ckpt", ""),
        requeue={"yes": True, "no": False, None: None}[values.get("requeue")],
        max_restarts=_int(values.get("max-restarts")), total_steps=_int(values.get("total-steps")),
        when_none=values.get("when-none", ""), hint=_hint(values), start=match.start(), end=match.end())


def expand(ckpt, values):
    """Path of the checkpoint folder from a Token's `ckpt`, or BadToken.

    values: dict of PLACEHOLDERS to what the job has (text, int, None where it has none). What users control is let
    in only as one part of a path: no `/`, no `.` or `..`, no control character.
    """
    pieces, last = [], 0
    for hole in _HOLE.finditer(ckpt):
        name = hole.group(1)
        value = values.get(name)
        if value is None or value == "":
            return BadToken("{%s} in ckpt=, but the job has none" % shown(name))
        value = str(value)
        if "/" in value or value in (".", "..") or _CONTROL.search(value):
            return BadToken("{%s} cannot be part of a path: '%s'" % (shown(name), shown(value)))
        pieces += [decode(ckpt[last:hole.start()]), value]
        last = hole.end()
    path = "".join(pieces + [decode(ckpt[last:])])
    if not path.startswith("/"):
        return BadToken("ckpt= is not an absolute path: '%s'" % shown(path))
    if ".." in path.split("/"):
        return BadToken("ckpt= goes up with '..': '%s'" % shown(path))
    return path


def with_hint(comment, hint):
    """`comment` with `hint` in its token in place of an older one: Hinted.

    Where the user's text leaves too little room, the path is left out first ("counter": for=, tries=, start= stay),
    then all of it. A comment without a token gets one; one with a bad token is left as it is.
    """
    comment = comment or ""
    token = parse(comment)
    if isinstance(token, BadToken):
        return Hinted(comment, "none")
    counter = [("for", "%s.%d" % (hint.job, hint.restart)), ("tries", "%d" % hint.tries)]
    if hint.start is not None:
        counter.append(("start", "%d" % hint.start))
    full = [("resume", hint.path)] + counter if hint.path else list(counter)
    full += [(key, str(value)) for key, value in (("step", hint.step), ("level", hint.level), ("fp", hint.fp))
             if hint.path and value not in (None, "")]
    for kept, items in (("all", full), ("counter", counter), ("none", [])):
        text = _rewrite(comment, token, [(key, encode(value)) for key, value in items])
        if text is not None:
            return Hinted(text, kept)
    return Hinted(comment, "none")


def with_declaration(comment, path):
    """`comment` with ckpt=`path` declared in it, or BadToken when that cannot be.

    A token that names a checkpoint already is left alone. `path` is taken as it is: no placeholders.
    """
    comment = comment or ""
    token = parse(comment)
    if isinstance(token, BadToken) or (token is not None and token.ckpt):
        return comment if not isinstance(token, BadToken) else token
    if not path.startswith("/") or _CONTROL.search(path) or ".." in path.split("/"):
        return BadToken("not an absolute, printable path: '%s'" % shown(path))
    text = _rewrite(comment, token, [("ckpt", encode(path))], keep_ours=True)
    if text is None:
        return BadToken("no room in the job's comment for the checkpoint path")
    return text


def _rewrite(comment, token, items, keep_ours=False):
    """`comment` with `items` behind the user's own items in the token; None where it would be too long."""
    if token is None:
        before, own, after = comment, [], ""
        if before and before[-1] not in " \t\r\n;|":
            before += " "
    else:
        before, after = comment[:token.start], comment[token.end:]
        own = [item for item in comment[token.start + len(PREFIX):token.end].split(",")
               if keep_ours or item.partition("=")[0] not in OUR_KEYS]
    body = ",".join(own + ["%s=%s" % item for item in items])
    if not body:
        return comment if token is None else before + after
    text = before + PREFIX + body + after
    if _bytes(PREFIX + body) > MAX_TOKEN or _bytes(text) > MAX_COMMENT:
        # What the user wrote himself may be longer than we allow; taking ours out must always work.
        return text if not items else None
    return text


def encode(value):
    """`value` percent-encoded, so that it is one piece of a token."""
    raw = value.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if byte in _SAFE else "%%%02X" % byte for byte in raw)


def decode(value):
    """The text of a percent-encoded value. Good encoding is checked by `parse`."""
    raw = value.encode("utf-8", "surrogateescape")
    out = re.sub(rb"%([0-9A-Fa-f]{2})", lambda match: bytes((int(match.group(1), 16),)), raw)
    return out.decode("utf-8", "surrogateescape")


def shown(value, limit=60):
    """`value` for a person: printable ASCII, short."""
    text = "".join(char if " " <= char <= "~" else ascii(char)[1:-1] for char in value[:limit + 1])
    return text if len(text) <= limit else text[:limit - 3] + "..."


def _check(values):
    """What is wrong with the values, or ""."""
    for key, value in values.items():
        if any(match.group(1) is None for match in _PERCENT.finditer(value)):
            return "bad percent-encoding in %s='%s'" % (key, shown(value))
        if _NEEDS_CODING.search(value):
            return "write quotes and shell characters in %s= as %%XX: '%s'" % (key, shown(value))
        if _CONTROL.search(decode(value)):
            return "control character in %s=" % key
    if values.get("requeue", "yes") not in ("yes", "no"):
        return "requeue= is yes or no, not '%s'" % shown(values["requeue"])
    if values.get("when-none", "hold") not in WHEN_NONE:
        return "when-none= is hold or start-over, not '%s'" % shown(values["when-none"])
    for key in ("max-restarts", "total-steps"):
        if key in values and _int(values[key]) is None:
            return "%s= is a whole number, not '%s'" % (key, shown(values[key]))
    return _check_ckpt(values["ckpt"]) if "ckpt" in values else ""


def _check_ckpt(ckpt):
    for hole in _HOLE.finditer(ckpt):
        if hole.group(1) not in PLACEHOLDERS:
            return "unknown placeholder {%s}%s" % (shown(hole.group(1)), _nearest(hole.group(1), PLACEHOLDERS))
    bare = _HOLE.sub("x", ckpt)
    if "{" in bare or "}" in bare:
        return "lone brace in ckpt='%s' (write { as %%7B, } as %%7D)" % shown(ckpt)
    path = decode(bare)
    if not path.startswith("/"):
        return "ckpt= is not an absolute path: '%s'" % shown(path)
    if ".." in path.split("/"):
        return "ckpt= goes up with '..': '%s'" % shown(path)
    return ""


def _hint(values):
    """The hint in a token. One that somebody edited into nonsense is no hint; it spoils nothing else."""
    owner = _FOR.match(values.get("for", ""))
    tries, start = _int(values.get("tries", "0")), values.get("start")
    path = decode(values.get("resume", ""))
    if not owner or tries is None or (path and not path.startswith("/")):
        return None
    return Hint(path, owner.group(1), int(owner.group(2)), tries, _int(start), _int(values.get("step")),
                decode(values.get("level", "")), decode(values.get("fp", "")))


def _int(text):
    return int(text) if text and len(text) <= 15 and text.isascii() and text.isdigit() else None


def _nearest(word, names):
    import difflib  # only where something is wrong

    near = difflib.get_close_matches(word[:40], names, 1, 0.5)
    return " (did you mean '%s'?)" % near[0] if near else ""


def _bytes(text):
    return len(text.encode("utf-8", "surrogateescape"))
