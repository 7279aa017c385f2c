"""What the node's own state files must look like. Pure.

They are valid JSON in every case that matters here and yet not ours: a disk that lost a block, an older or newer
version, somebody's editor. One value of a wrong type would end every hook of the node with a fault of our own, round
after round, and nobody would look at the GPUs; so a file is believed whole or set aside whole (state.py).
Keys that are not named are let through: a newer version may have written them.
"""
from __future__ import annotations

_MOST = 1 << 63


def number(value):
    """A time or a measure; neither NaN nor infinite, nor a truth value."""
    return type(value) in (int, float) and -_MOST < value < _MOST


def count(value):
    return type(value) is int and 0 <= value < _MOST


def text(value):
    return type(value) is str


def flag(value):
    return type(value) is bool


def plain_dict(value):
    return type(value) is dict


def maybe(kind):
    return lambda value: value is None or kind(value)


def one_of(*values):
    return lambda value: type(value) is str and value in values


def list_of(kind):
    return lambda value: type(value) is list and all(map(kind, value))


def dict_of(kind):
    return lambda value: type(value) is dict and all(map(kind, value.values()))


def _numbers(value):
    return number(value)


def _file(value):
    """[path, mtime in ns, size, inode]"""
    return type(value) is list and len(value) == 4 and text(value[0]) and all(map(count, value[1:]))


def _number_and_time(value):
    """[job id, time] or [rounds in a row, time]"""
    return type(value) is list and len(value) == 2 and count(value[0]) and number(value[1])


class Fields:
    """A dict with these keys: `needed` must be there, no other than the named ones may be if `no_other`."""

    def __init__(self, needed=(), no_other=False, **kinds):
        self.needed, self.no_other, self.kinds = needed, no_other, kinds

    def __call__(self, value):
        return self.wrong(value) == ""

    def wrong(self, value):
        """The first key that is not as it should be, "" when all are."""
        if type(value) is not dict:
            return "the whole"
        for name in self.needed:
            if name not in value:
                return name
        for name, item in value.items():
            kind = self.kinds.get(name)
            if (kind is None and self.no_other) or (kind is not None and not kind(item)):
                return name
        return ""


_CURSOR = maybe(Fields(boot_id=text, inode=count, dev=count, offset=count, fingerprint=count, seq=count, usec=count,
                       booted=number))
_COUNTERS = dict_of(dict_of(_numbers))
_EXPECTED = Fields(("gpus", "origin", "minors"), gpus=lambda value: count(value) or plain_dict(value), origin=text,
                   minors=list_of(count))
_SUBJECT = Fields(("kind",), kind=one_of("gpu", "gpus", "mount", "part", "node"), index=maybe(count),
                  uuid=text, bdf=text, name=text)
_INCIDENT = Fields(("id", "code", "subject"), id=text, key=text, boot_id=text, code=text, subject=_SUBJECT,
                   opened=number, reason=text, evidence=text, drained=flag, jobs=list_of(text), closed=maybe(number),
                   also=list_of(text), pending=flag)
_ACK = Fields(("code",), code=text, subject=text, until=maybe(number), by=text)
_JOB = Fields(("id",), id=count, uid=maybe(count), user=text, partition=text, nodes=list_of(text), batch_host=text,
              gpus=list_of(count), restart=count, comment=text, tries=count, declared=maybe(plain_dict))

# By the file's name, or by the folder that it is one of.
SHAPES = {
    "node.json": Fields(
        clean_rounds=count, pruned=number, said=dict_of(number), sent_back=dict_of(count), rounds=dict_of(count),
        rounds_boot=text,
        cursor=_CURSOR, counters=_COUNTERS, time=maybe(number), boot_id=text, driver=text, persistence=maybe(number),
        gpus=list_of(Fields(no_other=True, index=count, uuid=text, bdf=text, minor=maybe(count), serial=text)),
        xids=dict_of(list_of(_number_and_time)), streaks=dict_of(_number_and_time), streaks_time=number,
        streaks_boot=text, first_seen=dict_of(number),
        links=dict_of(dict_of(_numbers)),
        expected=Fields(("asked", "files", "expected"), asked=plain_dict, files=list_of(_file), expected=_EXPECTED)),
    "incidents.json": Fields(incidents=list_of(_INCIDENT), acks=list_of(_ACK)),
    "left.json": Fields(boot_id=text, left=dict_of(list_of(Fields(
        ("pid", "ticks"), pid=count, ticks=count, since=number)))),
    "jobs": Fields(
        id=count, restart=count, uid=maybe(count), gpus=list_of(count), partition=text, time=number, boot_id=text,
        driver=text, cursor=_CURSOR, counters=_COUNTERS,
        requeued=Fields(("restart", "start"), restart=count, start=number)),
    "spool": Fields(
        ("kind", "args", "time", "job"), kind=one_of("requeue", "hold", "requeued"), time=number, boot_id=text,
        incident=text,
        args=Fields(("job", "tag"), job=count, restart=count, tag=text, code=text, message=text, why=text,
                    if_failed=flag, counts=flag), job=_JOB),
}


def wrong(name, folder, value):
    """What is wrong with `value`, the content of state file `name` in the folder called `folder`; "" for nothing."""
    shape = SHAPES.get(name) or SHAPES.get(folder)
    return shape.wrong(value) if shape is not None else ""
