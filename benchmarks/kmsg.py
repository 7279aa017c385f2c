#!/usr/bin/env python3
"""How long a kernel log takes: one million mixed lines, and a second look from where the first one ended.

    python benchmarks/kmsg.py [--lines 1000000] [--json]
    python benchmarks/kmsg.py --fuzz 1000000 [--seed 1]     damaged lines: nothing crashes, every field is right

One line in a hundred is of interest, taken from the samples of tests/corpus; the others are what a node usually says.
`log parse` reads the log as dmesg and as rsyslog print it; the hooks' reader reads it as records of /dev/kmsg from a
file, and after that only what was added. CPU time of this process. Memory is the peak of the process.

Budget (docs/contributing.md, Budgets): one million lines 2 s, from the cursor 20 ms. Exit status 1 when over it.
"""
import argparse
import io
import json
import os
import random
import resource
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "tests", "corpus"))

import fuzz  # noqa: E402

from slurm_gpuhealth.cli import log_cmd  # noqa: E402
from slurm_gpuhealth.parse import log_lines  # noqa: E402
from slurm_gpuhealth.probes import kmsg  # noqa: E402

BUDGET_S, BUDGET_AGAIN_MS = 2.0, 20.0
DULL = (
    "usb 1-1: new high-speed USB device number %d using xhci_hcd",
    "audit: type=1400 audit(1719.1:%d): apparmor=\"STATUS\" operation=\"profile_load\" profile=\"unconfined\"",
    "IPv6: ADDRCONF(NETDEV_CHANGE): veth%d: link becomes ready", "systemd[1]: Started Session %d of user root.",
    "docker0: port 1(veth%d) entered disabled state", "device veth%d entered promiscuous mode",
    "perf: interrupt took too long (%d > 2500), lowering kernel.perf_event_max_sample_rate to 79750",
    "python3[%d]: segfault at 0 ip 0000000000400f00 sp 00007ffc error 4 in a.out[400000+1000]",
    "NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask %d!",
    "nfs: Deprecated parameter 'intr' %d",
)


def texts(count):
    """`count` texts without stamps."""
    chance = random.Random(7)
    telling = [text for text in (log_lines.split(line).text for line in fuzz.samples()) if text and "\x1b" not in text]
    return [chance.choice(telling) if number % 100 == 0 else chance.choice(DULL) % number for number in range(count)]


def cpu(work):
    """(seconds of CPU that `work` took, what it returned)."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def probe(path, cursor):
    """One look of the hooks' reader: (events, cursor)."""
    records = []
    kmsg.read({"root": "", "path": path, "cursor": cursor, "boot_id": "b"}, lambda kind, plain: records.append(plain))
    return records[-1]["events"], records[-1]["cursor"]


def measure(count):
    """Seconds by what was measured."""
    lines = texts(count)
    found = {}
    forms = (("dmesg", "[%5d.%06d] %s"), ("rsyslog", "May 27 16:50:10 node001 kernel: [%5d.%06d] %s"))
    for name, form in forms:
        data = "\n".join(form % (n // 100, n % 100 * 10000, text) for n, text in enumerate(lines)).encode()
        found[name], events = cpu(lambda data=data: log_cmd.read(io.BytesIO(data)))
        found[name + "_events"] = len(events)
        del data
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kmsg")
        with open(path, "w", encoding="utf-8") as handle:
            handle.writelines("6,%d,%d,-;%s\n" % (n, n * 100, text) for n, text in enumerate(lines))
        found["records"], (events, cursor) = cpu(lambda: probe(path, None))
        found["records_events"] = len(events)
        with open(path, "a", encoding="utf-8") as handle:
            handle.writelines("6,%d,%d,-;%s\n" % (count + n, (count + n) * 100, lines[n]) for n in range(100))
        found["again"], _ = cpu(lambda: probe(path, cursor))
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def damage(count, seed):
    """Damaged lines through `log parse`: returns how many events came out; raises with what is wrong."""
    events, slowest = 0, 0.0
    for lines in fuzz.batches(count, seed):
        seconds, found = cpu(lambda lines=lines: log_cmd.read(io.BytesIO(b"\n".join(lines))))
        slowest = max(slowest, seconds)
        for event in found:
            if fuzz.wrong(event):
                raise SystemExit("%s\n%r" % (fuzz.wrong(event), event))
        events += len(found)
    return events, slowest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1000000)
    parser.add_argument("--fuzz", type=int, metavar="LINES", help="damaged lines instead of a measurement")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.fuzz:
        events, slowest = damage(args.fuzz, args.seed)
        print("%d damaged lines, %d events, all well formed; slowest thousand lines %.0f ms" % (
            args.fuzz, events, slowest * 1000))
        return 0
    found = measure(args.lines)
    if args.json:
        print(json.dumps(found))
    else:
        for name in ("dmesg", "rsyslog"):
            print("log parse, %-8s %8.2f s   %d events" % (name, found[name], found[name + "_events"]))
        print("hooks' reader       %8.2f s   %d events" % (found["records"], found["records_events"]))
        print("from the cursor     %8.1f ms" % (found["again"] * 1000))
        print("peak memory         %8.0f MB (with the lines themselves)" % found["peak_mb"])
    scale = args.lines / 1e6
    over = max(found["dmesg"], found["rsyslog"], found["records"]) > BUDGET_S * scale \
        or found["again"] * 1000 > BUDGET_AGAIN_MS
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
