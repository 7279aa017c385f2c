"""Random and damaged kernel-log lines made of the samples, and what every event must be like, whatever it came from."""
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
ACTIONS = {"none", "restart-app", "reset", "reboot", "repair", "drain"}
SEVERITIES = {"note", "warning", "fatal", "unknown"}
_BITS = ("\x00", "\x1b[31m", "\n", "\r", "\\x0a", ";", ",", "(", ")", "[", "]", "{", "}", '"', ": ", "PCI:", "0x", "-1",
         "%s", "\u202e", "\ud800", "\u0661", "\U0001f4a5", "9" * 40, "a" * 300, "NVRM: Xid (", "kernel: ", "error", " ",
         "\t", "4,1,2,-;", "<4>", "[    1.000000] ", "May 27 16:50:10 n1 kernel: ")


def samples():
    """All lines of the corpus."""
    lines = []
    for name in ("kmsg_samples.txt", "variants.txt"):
        with open(os.path.join(HERE, name), encoding="utf-8") as handle:
            lines += [line.rstrip("\n") for line in handle if line.strip() and not line.startswith("#")]
    return lines


def damaged(lines, chance):
    """One line, as bytes without a newline: a sample that something was done to. chance: random.Random."""
    line = chance.choice(lines)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(line) + 1)
        what = chance.randrange(8)
        if what == 0:
            line = line[:at]
        elif what == 1:
            line = line[at:]
        elif what == 2:
            line = line[:at] + chance.choice(_BITS) + line[at:]
        elif what == 3:
            other = chance.choice(lines)
            line = line[:at] + other[chance.randrange(len(other) + 1):]
        elif what == 4:
            line = line[:at] + chr(chance.randrange(1, 0x300)) + line[at + 1:]
        elif what == 5:
            line = line[:at] + line[max(0, at - 20):at] * chance.randrange(1, 20) + line[at:]
        elif what == 6:
            line = chance.choice(_BITS) + line
        else:
            line = "".join(chance.choice(line or "x") for _ in range(min(len(line), 80)))
    data = line.encode("utf-8", "surrogatepass")
    if not chance.randrange(20):
        data = bytes(chance.randrange(256) for _ in range(chance.randrange(120)))
    return data.replace(b"\n", b" ")


def wrong(event):
    """What is wrong with an event of `log parse`, or "": each field has its type and can be printed."""
    shape = {"v": int, "kind": str, "code": (int, type(None)), "bdf": str, "severity": str, "action": str,
             "time": (float, int, type(None)), "last": (float, int, type(None)), "count": int, "pid": (int, type(None)),
             "process": str, "line": str, "data": dict}
    for name, kind in shape.items():
        if name not in event or not isinstance(event[name], kind) or isinstance(event[name], bool):
            return "%s is %r" % (name, event.get(name))
    texts = [event["kind"], event["bdf"], event["process"], event["line"]]
    for key, value in event["data"].items():
        texts.append(key)
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            if not all(isinstance(one, int) for one in value):
                return "%s is %r" % (key, value)
        elif not isinstance(value, (int, bool)):
            return "%s is %r" % (key, value)
    for text in texts:
        if not text.isprintable():
            return "%r cannot be printed" % text
    if event["severity"] not in SEVERITIES or event["action"] not in ACTIONS or event["count"] < 1:
        return "severity, action or count: %r" % event
    if event["bdf"] and (len(event["bdf"]) < 12 or event["bdf"] != event["bdf"].lower()):
        return "bdf is %r" % event["bdf"]
    return ""


def batches(count, seed, size=1000):
    """Lists of `size` damaged lines, `count` lines in all."""
    chance, lines = random.Random(seed), samples()
    for _ in range(0, count, size):
        yield [damaged(lines, chance) for _ in range(size)]
