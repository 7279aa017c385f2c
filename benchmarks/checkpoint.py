#!/usr/bin/env python3
"""How long judging a checkpoint takes: structure of a 10 GB torch file, and full verification against `sha256sum`.

    python benchmarks/checkpoint.py [--size-mb 2048] [--folder DIR]

Budgets (docs/contributing.md, Budgets): structure within 50 ms; full 1.8 times as fast as one sha256sum, on two cores.
The 10 GB file is sparse: its structure is that of a real one (1,000 tensors, model and Adam), its data are holes.
Exit status 1 when over budget.
"""
import argparse
import hashlib
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from slurm_gpuhealth.checkpoint.seal import seal  # noqa: E402
from slurm_gpuhealth.checkpoint.verify import verify  # noqa: E402

TENSORS = 1000
STRUCTURE_BUDGET, FULL_BUDGET = 0.050, 1.8


def pickled(numel):
    """data.pkl of {"model": {...}, "optimizer": {...}, "step": 1} with TENSORS storages of `numel` floats."""
    def text(word):
        return b"X" + struct.pack("<I", len(word)) + word

    def tensor(number):
        return (b"h\x01((h\x02h\x03" + text(b"%d" % number) + text(b"cpu") + b"J" + struct.pack("<i", numel)
                + b"tQK\x00J" + struct.pack("<i", numel) + b"\x85K\x01\x85\x89h\x04)RtR")
    head = (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x010" + text(b"storage") +
            b"q\x020ctorch\nFloatStorage\nq\x030" + b"ccollections\nOrderedDict\nq\x040")
    third = TENSORS // 3
    model = b"".join(text(b"layers.%d.weight" % number) + tensor(number) for number in range(third))
    states = b"".join(b"J" + struct.pack("<i", number) + b"}(" + text(b"exp_avg") + tensor(third + 2 * number)
                      + text(b"exp_avg_sq") + tensor(third + 2 * number + 1) + b"u" for number in range(third))
    return (head + b"}(" + text(b"model") + b"}(" + model + b"u" + text(b"optimizer") + b"}(" + text(b"state") + b"}("
            + states + b"u" + text(b"param_groups") + b"]u" + text(b"step") + b"K\x01u."), 3 * third


def sparse_torch_file(path, total):
    """A torch archive of `total` bytes as torch lays it out, with holes for data."""
    numel = total // TENSORS // 4
    raw, count = pickled(numel)
    records = [("data.pkl", raw, len(raw)), ("byteorder", b"little", 6)]
    records += [("data/%d" % number, None, 4 * numel) for number in range(count)] + [("version", b"3\n", 2)]
    central, at = bytearray(), 0
    with open(path, "wb") as handle:
        for name, data, size in records:
            full = b"big/" + name.encode()
            crc = zlib.crc32(data) if data is not None else 1
            zip64 = struct.pack("<HHQ", 1, 8, at) if at >= 0xFFFFFFFF else b""
            padding = -(at + 30 + len(full) + len(zip64) + 4) % 64
            extra = zip64 + b"FB" + struct.pack("<H", padding) + b"Z" * padding
            handle.seek(at)
            handle.write(struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 0, 0x0808, 0, 0, 0, 0, 0, 0, len(full),
                         len(extra)) + full + extra + (data or b""))
            start = at + 30 + len(full) + len(extra)
            handle.seek(start + size)
            handle.write(struct.pack("<4sIQQ" if zip64 else "<4sIII", b"PK\x07\x08", crc, size, size))
            central += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 0, 0, 0x0808, 0, 0, 0, crc, size, size,
                                   len(full), len(zip64), 0, 0, 0, 0, min(at, 0xFFFFFFFF)) + full + zip64
            at = start + size + (24 if zip64 else 16)
        handle.seek(at)
        number = len(records)
        handle.write(bytes(central))
        size, short = len(central), min(at, 0xFFFFFFFF)
        handle.write(struct.pack("<4sQHHIIQQQQ", b"PK\x06\x06", 44, 0x031E, 45, 0, 0, number, number, size, at))
        handle.write(struct.pack("<4sIQI", b"PK\x06\x07", 0, at + size, 1))
        handle.write(struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, number, number, size, short, 0))


def timed(func, rounds):
    """Median and all seconds of `rounds` calls."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        func()
        spent.append(time.perf_counter() - started)
    return statistics.median(spent), spent


def structure(folder):
    path = os.path.join(folder, "big.pt")
    sparse_torch_file(path, 10 * 10 ** 9)
    found = verify(path, "structure")
    if found.verdict != "structure-only":
        raise SystemExit("the benchmark's own file is not whole: %s" % (found,))
    median, spent = timed(lambda: verify(path, "structure"), 15)
    print("structure, torch file of %.1f GB, %d tensors: median %.1f ms, worst %.1f ms (budget %.0f ms)" % (
        os.path.getsize(path) / 1e9, TENSORS, median * 1e3, max(spent) * 1e3, STRUCTURE_BUDGET * 1e3))
    os.unlink(path)
    return median <= STRUCTURE_BUDGET


def full(folder, megabytes):
    parts = 8
    for number in range(parts):
        block = os.urandom(1 << 20)
        with open(os.path.join(folder, "part-%d.bin" % number), "wb") as handle:
            for _ in range(megabytes // parts):
                handle.write(block)
    seal(folder, step=1)
    names = ["part-%d.bin" % number for number in range(parts)]
    ours = verify(folder)
    if ours.verdict != "verified":
        raise SystemExit("the benchmark's own folder is not verified: %s" % (ours,))

    def sha256sum():
        subprocess.run(["sha256sum"] + names, cwd=folder, stdout=subprocess.DEVNULL, check=True)

    def one_core():
        for name in names:
            with open(os.path.join(folder, name), "rb") as handle:
                digest = hashlib.sha256()
                while True:
                    data = handle.read(1 << 20)
                    if not data:
                        break
                    digest.update(data)
    theirs, _ = timed(sha256sum, 3)
    mine, _ = timed(lambda: verify(folder), 3)
    one, _ = timed(one_core, 3)
    size = megabytes / 1024
    print("full, sealed folder of %.1f GiB in %d files, %d cores: %.2f s (%.2f GiB/s); sha256sum %.2f s (%.2f GiB/s);"
          " ratio %.2f (budget %.1f)" % (size, parts, len(os.sched_getaffinity(0)), mine, size / mine, theirs,
                                         size / theirs, theirs / mine, FULL_BUDGET))
    # sha256sum may lack what the processor can do; this is against the same code on one core.
    print("      against one core of Python's own hashlib: %.2f s, ratio %.2f" % (one, one / mine))
    return theirs / mine >= FULL_BUDGET or len(os.sched_getaffinity(0)) < 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size-mb", type=int, default=2048, help="size of the folder for full verification")
    parser.add_argument("--folder", help="where to write (default: a temporary folder)")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(dir=args.folder)
    try:
        kept = [structure(folder), full(folder, args.size_mb)]
    finally:
        shutil.rmtree(folder)
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
