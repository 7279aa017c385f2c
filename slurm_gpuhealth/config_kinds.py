"""Types of configuration values: each reads one YAML node and says, with its line, what is wrong with it.

A kind has `read(node, where, problems) -> value`; where is the dotted name for messages, problems a list that
gets (line, text). After a problem the value returned is of no use, as the file is refused then. `say()` is the
type in words, for the documentation.
"""
from __future__ import annotations

import re

import yaml

from slurm_gpuhealth import catalogue
from slurm_gpuhealth.errors import DataError
from slurm_gpuhealth.parse import hostlist
from slurm_gpuhealth.parse.words import nearest

_TAG = "tag:yaml.org,2002:"
# Strict on purpose: YAML 1.1 would read 010 as eight and 1:30 as ninety.
_WHOLE = re.compile(r"(0|[1-9][0-9]{0,15})\Z", re.ASCII)
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,15})(\.[0-9]{1,9})?\Z", re.ASCII)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z", re.ASCII)
# What YAML makes of plain words. Everything else was asked for with a tag, such as !!python/name.
_PLAIN_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")}
MAX_TEXT = 4096


def line_of(node):
    """Line of a YAML node, the first is 1."""
    return node.start_mark.line + 1


def shown(text):
    """A piece of the file for an error message: short, control characters made visible."""
    text = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return text if len(text) <= 60 else text[:57] + "..."


def is_null(node):
    """True for a key without a value ("codes:" and everything below it commented out)."""
    return isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null" and node.style is None


def _plain_text(node, where, problems, wanted):
    """The text of a scalar node, or None after a problem."""
    if not isinstance(node, yaml.ScalarNode):
        problems.append((line_of(node), "%s: must be %s, not a %s" % (where, wanted, node.id)))
        return None
    if is_null(node):
        problems.append((line_of(node), "%s: has no value, must be %s" % (where, wanted)))
        return None
    if node.tag not in _PLAIN_TAGS:
        problems.append((line_of(node), "%s: tag %s is not allowed" % (where, shown(node.tag))))
        return None
    return node.value


class Number:
    """A number from low to high; whole: without a decimal point."""

    def __init__(self, low, high, unit="", whole=False):
        self.low, self.high, self.unit, self.whole = low, high, unit, whole

    def say(self):
        unit = " " + self.unit if self.unit else ""
        return "%s %s to %s%s" % ("whole number" if self.whole else "number", self.low, self.high, unit)

    def read(self, node, where, problems):
        text = _plain_text(node, where, problems, "a number")
        if text is None:
            return None
        if node.style is not None or not (_WHOLE if self.whole else _DECIMAL).match(text):
            problems.append((line_of(node), "%s: must be a %s, not %s" % (
                where, "whole number" if self.whole else "number", shown(repr(text)))))
            return None
        value = int(text) if _WHOLE.match(text) else float(text)
        if not self.low <= value <= self.high:
            problems.append((line_of(node), "%s: must be from %s to %s, is %s"
                             % (where, self.low, self.high, text)))
        return value


class Flag:
    """true or false."""

    def say(self):
        return "true or false"

    def read(self, node, where, problems):
        text = _plain_text(node, where, problems, "true or false")
        if text is None:
            return None
        if node.tag != _TAG + "bool":
            problems.append((line_of(node), "%s: must be true or false, not %s" % (where, shown(repr(text)))))
            return None
        return text.lower() in ("true", "yes", "on")


class Choice:
    """One of some words. flags: true and false, which YAML would make booleans, are among the words."""

    def __init__(self, *words, flags=False):
        self.words, self.flags = words, flags

    def say(self):
        return " or ".join(self.words)

    def read(self, node, where, problems):
        text = _plain_text(node, where, problems, "one of " + ", ".join(self.words))
        if text is None:
            return None
        if self.flags and text.lower() in ("true", "false"):
            return text.lower()
        if text not in self.words:
            problems.append((line_of(node), "%s: must be one of %s, not %s%s" % (
                where, ", ".join(self.words), shown(repr(text)), nearest(text, self.words))))
        return text


class Text:
    """A text. check: function that says what is wrong with it, "" for nothing; empty: "" needs no check."""

    def __init__(self, check=None, empty=False):
        self.check, self.empty = check, empty

    def say(self):
        return {absolute_path: "absolute path", host_list: "host list", reason_code: "reason code",
                url_or_empty: "URL"}.get(self.check, "text")

    def read(self, node, where, problems):
        text = _plain_text(node, where, problems, "text")
        if text is None:
            return None
        if node.tag != _TAG + "str":
            problems.append((line_of(node), "%s: must be text: put %s in quotes" % (where, shown(text))))
        elif len(text) > MAX_TEXT or any(ord(char) < 32 or ord(char) == 127 for char in text):
            problems.append((line_of(node), "%s: has control characters or is too long" % where))
        elif self.check and (text or not self.empty):
            wrong = self.check(text)
            if wrong:
                problems.append((line_of(node), "%s: %s: %s" % (where, shown(text), wrong)))
        return text


class Scalar:
    """A number, true or false, or a word: for limits, whose meaning only their check knows."""

    def say(self):
        return "number, text, or true or false"

    def read(self, node, where, problems):
        text = _plain_text(node, where, problems, "a number, text, or true or false")
        if text is None:
            return None
        if node.tag == _TAG + "bool":
            return text.lower() in ("true", "yes", "on")
        if node.tag in (_TAG + "int", _TAG + "float"):
            return Number(0, 10 ** 15).read(node, where, problems)
        return Text().read(node, where, problems)


class Either:
    """A word, or what another kind takes."""

    def __init__(self, word, other):
        self.word, self.other = word, other

    def say(self):
        return "%s, or %s" % (self.word.say(), self.other.say())

    def read(self, node, where, problems):
        if isinstance(node, yaml.ScalarNode) and node.value in self.word.words:
            return node.value
        if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "str":
            return self.word.read(node, where, problems)
        return self.other.read(node, where, problems)


class ListOf:
    """A list of one kind."""

    def __init__(self, item):
        self.item = item

    def say(self):
        return "list of " + self.item.say()

    def read(self, node, where, problems):
        if is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            problems.append((line_of(node), "%s: must be a list" % where))
            return []
        return [self.item.read(one, "%s[%d]" % (where, number), problems)
                for number, one in enumerate(node.value)]


class Lines(ListOf):
    """A list of entries with keys of their own."""

    def say(self):
        return "list of entries"


class MapOf:
    """A mapping with names that are not fixed. check: says what is wrong with a name; None takes any word."""

    def __init__(self, check, value, placeholder):
        self.check, self.value, self.placeholder = check, value, placeholder

    def say(self):
        return "map"

    def read(self, node, where, problems):
        values = {}
        for name, key, value in pairs(node, where, problems):
            wrong = self.check(name) if self.check else "" if _NAME.match(name) else "not a name"
            if wrong:
                problems.append((line_of(key), "%s: %s: %s" % (where, shown(name), wrong)))
            values[name] = self.value.read(value, "%s.%s" % (where, shown(name)), problems)
        return values


class Keys:
    """A mapping with fixed keys; reads to a dict of those that are there, plus `defaults`."""

    def __init__(self, keys, required=(), defaults=None):
        self.keys, self.required, self.defaults = keys, required, defaults or {}
        self.by_name = {key.name: key for key in keys}

    def say(self):
        return "map"

    def read(self, node, where, problems):
        values = {name: list(value) if isinstance(value, list) else value
                  for name, value in self.defaults.items()}
        for name, key, value in pairs(node, where, problems):
            known = self.by_name.get(name)
            if known is None:
                problems.append((line_of(key), "unknown key '%s'%s%s" % (
                    shown(name), " in %s" % where if where else "", nearest(name, self.by_name))))
                continue
            # A section whose keys are all commented out leaves everything as it is.
            if is_null(value) and isinstance(known.kind, (Keys, MapOf)):
                continue
            inner = "%s.%s" % (where, name) if where else name
            values[name] = known.kind.read(value, inner, problems)
        for name in self.required:
            if name not in values:
                problems.append((line_of(node), "%s: key '%s' is missing" % (where, name)))
        return values


def pairs(node, where, problems):
    """(name, key node, value node) of a mapping, in order; says duplicates and names that are not text."""
    if is_null(node):
        return []
    if not isinstance(node, yaml.MappingNode):
        problems.append((line_of(node), "%s: must be keys with values" % (where or "the file")))
        return []
    found = []
    seen: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            problems.append((line_of(key), "%s: a key must be a word" % (where or "the file")))
            continue
        if key.value in seen:
            problems.append((line_of(key), "key '%s' is there twice (first in line %d)"
                             % (shown(key.value), seen[key.value])))
            continue
        seen[key.value] = line_of(key)
        found.append((key.value, key, value))
    return found


# -- checks of texts: "" when right, else what is wrong

def absolute_path(text):
    """A normal absolute path."""
    if not text.startswith("/"):
        return "must be an absolute path"
    if ".." in text.split("/"):
        return "must not contain .."
    return ""


def host_list(text):
    """A host list as Slurm writes it."""
    try:
        hostlist.contains(text, "")
        return "" if text.strip() else "must name a node"
    except DataError as error:
        return str(error)


def reason_code(text):
    """A code of the catalogue; GH-XID79 and so on are known by the family."""
    if text == catalogue.XID_PREFIX or not catalogue.known(text):
        return "no such reason code" + nearest(text, catalogue.CODES)
    return ""


def xid_number(text):
    """A number as the driver prints it."""
    return "" if _WHOLE.match(text) and 0 < int(text) < 10000 else "not an Xid number"


def sxid_number(text):
    """A number as the NVSwitch driver prints it."""
    return "" if _WHOLE.match(text) and 0 < int(text) < 100000 else "not an SXid number"


def service_name(text):
    """The name of a systemd unit."""
    return "" if re.match(r"[A-Za-z0-9][\w.@:-]{0,200}\Z", text, re.ASCII) else "not the name of a service"


def plugin_name(text):
    """A short word."""
    return "" if re.match(r"[A-Za-z0-9][\w-]{0,31}\Z", text, re.ASCII) else "letters, digits, - and _, at most 32"


def url_or_empty(text):
    """An http or https URL, or nothing."""
    return "" if not text or re.match(r"https?://[^/\s]+\S*\Z", text) else "must be a URL with http:// or https://"
