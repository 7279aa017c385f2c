"""What is in a pickle, read by its opcodes. Nothing is imported, called or built: where a pickle names a class or
calls a function, an inert `Thing` takes its place.

Opcodes: CPython Lib/pickle.py and Lib/pickletools.py (protocols 0 to 5). Bounded in opcodes, and through them in
memory: every value costs at least one opcode, and shared values are shared, never copied.
"""
from __future__ import annotations

import struct

from slurm_gpuhealth.checkpoint.verdict import Bad, Unclear

MAX_BYTES = 256 << 20   # of one pickle; 10,000 tensors with optimizer take about 10 MB
MAX_OPCODES = 20000000
MAX_NAME = 512          # of a class name
MAX_LONG = 4096         # bytes of an integer worth turning into one
_TICK_MASK = 0xFFFF     # a look at the clock each time that the count of opcodes has none of these bits


class Thing:
    """What stands for an object: a class, a call's result, an instance.

    name: "module.class" of it, or of the function that would have made it. args: what it was called with.
    items: dict of its entries with plain keys (as of a dict subclass). elements: what was appended to it.
    state: what BUILD would have given it. kind: "global", "object", "storage", "tensor", "persistent".
    """

    __slots__ = ("name", "kind", "args", "items", "elements", "state")

    def __init__(self, name, kind, args=()):
        self.name, self.kind, self.args = name, kind, args
        self.items, self.elements, self.state = None, None, None


class Read:
    """Outcome of reading one pickle. root: its value (dicts, lists, tuples, scalars, Things). storages: {key:
    (type name, number of elements)} of the torch storages it names. length: bytes up to and with its STOP."""

    def __init__(self, root, storages, length):
        self.root, self.storages, self.length = root, storages, length


class _Mark:
    __slots__ = ()


_MARK = _Mark()
_PLAIN_KEYS = (str, int, bool, float, bytes, type(None))


def read(data, tick=None):
    """Read the pickle at the start of `data` (bytes). tick: called now and then, may raise.

    Raises Bad when it is not a pickle from beginning to end, Unclear when it is beyond the limits.
    """
    if len(data) > MAX_BYTES:
        raise Unclear("pickle of %d bytes: more than is read without executing it" % len(data))
    machine = _Machine(data)
    try:
        return machine.run(tick)
    except (IndexError, struct.error, ValueError, TypeError, KeyError, OverflowError) as exc:
        # Popping from an empty stack, a cut number, a memo that was never put: all say "not a whole pickle".
        raise Bad("not a whole pickle: %s near byte %d" % (type(exc).__name__, machine.at)) from exc


class _Machine:
    def __init__(self, data):
        self.data = data
        self.at = 0
        self.stack = []
        self.memo = {}
        self.storages = {}

    def run(self, tick):
        """Go through the opcodes. Those that make up most of a torch pickle are done here rather than in the table,
        as a call for each would double the time; `at` is kept in a local for the same reason."""
        data, stack, memo, table = self.data, self.stack, self.memo, _TABLE
        push, number = stack.append, int.from_bytes
        count = at = 0
        while True:
            if not count & _TICK_MASK:
                self.at = at
                if count > MAX_OPCODES:
                    raise Unclear("pickle of more than %d opcodes" % MAX_OPCODES)
                if tick is not None:
                    tick()
            count += 1
            code = data[at]
            at += 1
            if code == 0x72:        # LONG_BINPUT
                memo[number(data[at:at + 4], "little")] = stack[-1]
                at += 4
            elif code == 0x71:      # BINPUT
                memo[data[at]] = stack[-1]
                at += 1
            elif code == 0x68:      # BINGET
                push(memo[data[at]])
                at += 1
            elif code == 0x6a:      # LONG_BINGET
                push(memo[number(data[at:at + 4], "little")])
                at += 4
            elif code == 0x58:      # BINUNICODE
                end = at + 4 + number(data[at:at + 4], "little")
                if end > len(data):
                    raise Bad("pickle is cut off at byte %d" % len(data))
                push(str(data[at + 4:end], "utf-8", "surrogatepass"))
                at = end
            elif code == 0x4b:      # BININT1
                push(data[at])
                at += 1
            elif code == 0x28:      # MARK
                push(_MARK)
            elif code == 0x74:      # TUPLE
                mark = len(stack) - 1
                while stack[mark] is not _MARK:     # without any mark: IndexError in the end
                    mark -= 1
                stack[mark:] = (tuple(stack[mark + 1:]),)
            elif code == 0x29:      # EMPTY_TUPLE
                push(())
            elif code == 0x4a:      # BININT
                push(number(data[at:at + 4], "little", signed=True))
                at += 4
            elif code == 0x94:      # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif code == 0x2e:      # STOP
                root = stack.pop()
                if stack or root is _MARK:
                    raise Bad("not a whole pickle: %d values left at its end" % len(stack))
                return Read(root, self.storages, at)
            else:
                self.at = at
                handler = table.get(code)
                if handler is None:
                    raise Bad("not a pickle: opcode 0x%02x at byte %d" % (code, at - 1))
                handler(self)
                at = self.at

    # -- bytes

    def take(self, count):
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise Bad("pickle is cut off at byte %d" % len(self.data))
        piece = self.data[self.at:end]
        self.at = end
        return piece

    def number(self, count):
        return int.from_bytes(self.take(count), "little")

    def line(self):
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise Bad("pickle is cut off at byte %d" % len(self.data))
        piece = self.data[self.at:end]
        self.at = end + 1
        return piece

    # -- stack

    def since_mark(self):
        # The marks are on the stack itself: searching back costs no more than what was pushed since.
        stack = self.stack
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise Bad("not a whole pickle: a mark is missing")
        values = stack[at + 1:]
        del stack[at:]
        return values

    def push(self, value):
        self.stack.append(value)

    def top(self):
        if self.stack[-1] is _MARK:
            raise Bad("not a whole pickle: a value is missing")
        return self.stack[-1]

    def pop(self):
        value = self.stack.pop()
        if value is _MARK:
            raise Bad("not a whole pickle: a value is missing")
        return value

    # -- values

    def name(self, raw):
        if len(raw) > MAX_NAME:
            raise Unclear("class name of %d bytes" % len(raw))
        return raw.decode("utf-8", "replace")

    def push_global(self, module, name):
        self.push(Thing("%s.%s" % (module, name), "global"))

    def call(self, func, args):
        """Where a function would be called: what is known about its result, and nothing else."""
        name = func.name if isinstance(func, Thing) else "?"
        if not isinstance(args, tuple):
            args = (args,)
        if name == "_codecs.encode" and len(args) == 2 and args[1] == "latin1" and isinstance(args[0], str):
            return args[0].encode("latin-1", "replace")     # how protocol 2 writes bytes
        made = Thing(name, "object", args)
        first = args[0] if args else None
        if isinstance(first, Thing) and first.kind in ("storage", "tensor") and "_rebuild" in name:
            made.kind = "tensor"
        if name.endswith("OrderedDict") and isinstance(first, (list, tuple)):
            made.items = {pair[0]: pair[1] for pair in first
                          if isinstance(pair, (list, tuple)) and len(pair) == 2 and type(pair[0]) in _PLAIN_KEYS}
        return made

    def persistent(self, pid):
        """torch: ("storage", type, key, location, number of elements), torch/serialization.py persistent_id."""
        made = Thing("persistent id", "persistent", pid if isinstance(pid, tuple) else (pid,))
        if isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage":
            key, numel = pid[2], pid[4]
            kind = pid[1].name if isinstance(pid[1], Thing) else "?"
            if not isinstance(key, str) or type(numel) is not int or numel < 0:
                raise Bad("a storage without a key or size")
            if self.storages.setdefault(key, (kind, numel)) != (kind, numel):
                raise Bad("storage %s is named with two sizes" % key[:40])
            made.kind, made.name = "storage", kind
        return made

    def add_items(self, target, values):
        if len(values) % 2:
            raise Bad("not a whole pickle: a key without a value")
        if isinstance(target, Thing):
            if target.items is None:
                target.items = {}
            target = target.items
        elif not isinstance(target, dict):
            raise Bad("not a whole pickle: items for something that has none")
        for at in range(0, len(values), 2):
            key = values[at]
            # Only plain keys: hashing a tuple that is a million deep would overflow the C stack.
            if type(key) in _PLAIN_KEYS:
                target[key] = values[at + 1]
            else:
                target[("other", id(key))] = values[at + 1]

    def add_elements(self, target, values):
        if isinstance(target, Thing):
            if target.elements is None:
                target.elements = []
            target = target.elements
        elif not isinstance(target, list):
            raise Bad("not a whole pickle: elements for something that has none")
        target.extend(values)


# -- opcodes: small functions of the machine, by their byte

def _text_number(raw):
    if len(raw) > 400:
        return 0    # a number of that length is nothing we look for
    raw = raw.rstrip(b"L")
    return int(raw) if raw else 0


def _int_line(m):
    raw = m.line()
    m.push({b"00": False, b"01": True}.get(raw, None) if raw in (b"00", b"01") else _text_number(raw))


def _long(m, width):
    count = int.from_bytes(m.take(width), "little", signed=width == 4)
    raw = m.take(count)
    m.push(int.from_bytes(raw, "little", signed=True) if count <= MAX_LONG else 0)


def _string_line(m):
    raw = m.line()
    if len(raw) < 2 or raw[:1] != raw[-1:] or raw[:1] not in (b"'", b'"'):
        raise Bad("not a whole pickle: a string without quotes")
    m.push(raw[1:-1].decode("latin-1"))


def _unicode(m, width):
    m.push(m.take(m.number(width)).decode("utf-8", "surrogatepass"))


def _bytes(m, width):
    m.push(m.take(m.number(width)))


def _old_string(m, width):
    # Protocol 0 to 2 of Python 2: bytes that are nearly always names.
    m.push(m.take(m.number(width)).decode("latin-1"))


def _tuple1(m):
    m.stack[-1] = (m.top(),)


def _tuple2(m):
    second, first = m.pop(), m.pop()
    m.stack.append((first, second))


def _tuple3(m):
    third, second, first = m.pop(), m.pop(), m.pop()
    m.stack.append((first, second, third))


def _global_line(m):
    module, name = m.name(m.line()), m.name(m.line())
    m.push_global(module, name)


def _stack_global(m):
    name, module = m.pop(), m.pop()
    if not isinstance(name, str) or not isinstance(module, str) or len(name) + len(module) > MAX_NAME:
        raise Bad("not a whole pickle: a class without a name")
    m.push_global(module, name)


def _reduce(m):
    args, func = m.pop(), m.pop()
    m.stack.append(m.call(func, args))


def _newobj_ex(m):
    m.pop()
    _reduce(m)


def _build(m):
    state, target = m.pop(), m.top()
    if isinstance(target, Thing):
        target.state = state


def _inst(m):
    module, name = m.name(m.line()), m.name(m.line())
    m.push(m.call(Thing("%s.%s" % (module, name), "global"), tuple(m.since_mark())))


def _obj(m):
    values = m.since_mark()
    m.push(m.call(values[0], tuple(values[1:])))


def _dict_of_mark(m):
    values = m.since_mark()
    made: dict = {}
    m.add_items(made, values)
    m.push(made)


def _setitem(m):
    value, key = m.pop(), m.pop()
    m.add_items(m.top(), [key, value])


def _setitems(m):
    values = m.since_mark()
    m.add_items(m.top(), values)


def _append(m):
    value = m.pop()
    m.add_elements(m.top(), [value])


def _appends(m):
    values = m.since_mark()
    m.add_elements(m.top(), values)


def _additems(m):
    values = m.since_mark()
    target = m.top()
    if not isinstance(target, (Thing, list)):
        raise Bad("not a whole pickle: elements for something that has none")
    m.add_elements(target, values)


def _pop(m):
    m.stack.pop()


def _set_of_mark(m):
    made = Thing("builtins.frozenset", "object")
    made.elements = m.since_mark()
    m.push(made)


def _extension(m, width):
    m.push(Thing("extension %d" % m.number(width), "global"))


_TABLE = {
    0x30: _pop, 0x31: lambda m: m.since_mark(), 0x32: lambda m: m.push(m.top()),
    0x46: lambda m: m.push(float(m.line()[:400])), 0x49: _int_line,
    0x4c: lambda m: m.push(_text_number(m.line())),
    0x4d: lambda m: m.push(m.number(2)), 0x4e: lambda m: m.push(None),
    0x50: lambda m: m.push(m.persistent(m.line().decode("latin-1"))),
    0x51: lambda m: m.push(m.persistent(m.pop())), 0x52: _reduce, 0x53: _string_line,
    0x54: lambda m: _old_string(m, 4), 0x55: lambda m: _old_string(m, 1),
    0x56: lambda m: m.push(m.line().decode("raw-unicode-escape")), 0x61: _append,
    0x62: _build, 0x63: _global_line, 0x64: _dict_of_mark, 0x7d: lambda m: m.push({}), 0x65: _appends,
    0x67: lambda m: m.push(m.memo[_text_number(m.line())]), 0x69: _inst,
    0x6c: lambda m: m.push(m.since_mark()),
    0x5d: lambda m: m.push([]), 0x6f: _obj, 0x70: lambda m: m.memo.__setitem__(_text_number(m.line()), m.top()),
    0x73: _setitem, 0x75: _setitems,
    0x47: lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
    0x80: lambda m: _protocol(m), 0x81: _reduce, 0x82: lambda m: _extension(m, 1), 0x83: lambda m: _extension(m, 2),
    0x84: lambda m: _extension(m, 4), 0x85: _tuple1, 0x86: _tuple2, 0x87: _tuple3,
    0x88: lambda m: m.stack.append(True), 0x89: lambda m: m.stack.append(False),
    0x8a: lambda m: _long(m, 1), 0x8b: lambda m: _long(m, 4), 0x42: lambda m: _bytes(m, 4),
    0x43: lambda m: _bytes(m, 1), 0x8c: lambda m: _unicode(m, 1), 0x8d: lambda m: _unicode(m, 8),
    0x8e: lambda m: _bytes(m, 8), 0x8f: lambda m: m.push(_empty_set()), 0x90: _additems, 0x91: _set_of_mark,
    0x92: _newobj_ex, 0x93: _stack_global, 0x95: lambda m: m.take(8) and None, 0x96: lambda m: _bytes(m, 8),
    0x97: lambda m: m.push(Thing("buffer", "object")), 0x98: lambda m: None,
}


def _protocol(m):
    if m.number(1) > 5:
        raise Bad("not a pickle: protocol above 5")


def _empty_set():
    made = Thing("builtins.set", "object")
    made.elements = []
    return made
