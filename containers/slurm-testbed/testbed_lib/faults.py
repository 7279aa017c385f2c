"""What can be injected: the words of `testbed inject NODE FAULT ...` -> steps for the node's `gpusim`. Pure.

Keys of the GPU state are those of ../nvml/README.md. Every wrong word is one line that names the nearest right one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from . import klines
from .errors import UsageError


class Step(NamedTuple):
    """One call on the node: `gpusim VERB ARGS` with stdin, or (verb `power`) something done to its container."""

    verb: str
    args: tuple[str, ...] = ()
    stdin: str | None = None


class Node(NamedTuple):
    """What a fault's words are checked against."""

    gpus: int
    state: dict[str, str]  # the node's GPU state file as it is now
    calls: frozenset[str]  # symbols of the simulated NVML


class Fault(NamedTuple):
    name: str
    usage: str
    help: str
    build: Callable[[Node, list[str]], list[Step]]


FAULTS: dict[str, Fault] = {}
MODELS = ("A100", "A100-MIG", "H100", "H200", "L40S", "V100")
MEMORY = ("dram", "sram", "l1", "l2", "regfile", "texture", "texshm", "cbu")
NVLINK_ERRORS = ("recovery", "replay", "crc_flit", "crc_data", "recovery_failed", "recovery_events", "malformed")
HANGS = {"sleep": "sleep", "ignoreterm": "ignoreterm", "dstate": "write"}
HANG_PATH = "/var/lib/gpusim/frozen/nvml"
MOUNTS = ("/data", "/shared")


def fault(
    name: str, usage: str, help: str
) -> Callable[[Callable[[Node, list[str]], list[Step]]], Callable[[Node, list[str]], list[Step]]]:
    def register(build: Callable[[Node, list[str]], list[Step]]) -> Callable[[Node, list[str]], list[Step]]:
        FAULTS[name] = Fault(name, usage, help, build)
        return build

    return register


def parse(node: Node, words: list[str]) -> list[Step]:
    """The steps of one fault. Raises UsageError in one line."""
    if not words:
        raise UsageError(f"which fault? One of: {', '.join(FAULTS)}")
    found = FAULTS.get(words[0])
    if found is None:
        raise UsageError(f"no fault {words[0]!r}{near(words[0], FAULTS)}; `testbed faults` lists them")
    try:
        return found.build(node, words[1:])
    except UsageError as exc:
        raise UsageError(f"{found.name}: {exc} (usage: {found.name} {found.usage})") from None


# -- reading words --


def near(word: str, names: Iterable[str]) -> str:
    match = difflib.get_close_matches(word, list(names), 1, 0.5)
    return f", did you mean {match[0]}?" if match else ""


def take(words: list[str], low: int, high: int) -> None:
    if not low <= len(words) <= high:
        many = str(low) if low == high else f"{low} to {high}"
        raise UsageError(f"takes {many} words, not {len(words)}")


def gpu(node: Node, word: str, every: bool = True) -> str:
    """`gpu3` (checked against the board), or `all` as the key prefix `gpu*`."""
    if word == "all" and every:
        return "gpu*"
    match = re.fullmatch(r"(?:gpu)?(\d+)", word)
    if match is None or int(match[1]) >= node.gpus:
        last = node.gpus - 1
        raise UsageError(
            f"no GPU {word!r}{near(word, [f'gpu{i}' for i in range(node.gpus)])} (gpu0 to gpu{last}"
            f"{', or all' if every else ''})"
        )
    return f"gpu{int(match[1])}"


def number(word: str, what: str, low: int, high: int) -> int:
    try:
        value = int(word, 0)
    except ValueError:
        raise UsageError(f"{what} is a number, not {word!r}") from None
    if not low <= value <= high:
        raise UsageError(f"{what} is {low} to {high}, not {value}")
    return value


def choice(word: str, names: Iterable[str], what: str) -> str:
    if word in names:
        return word
    raise UsageError(f"no {what} {word!r}{near(word, names)} (one of {', '.join(names)})")


def call_name(node: Node, word: str) -> str:
    if word == "all" or word in node.calls:
        return word
    raise UsageError(f"the simulated NVML has no call {word!r}{near(word, node.calls)}")


def set_keys(**keys: object) -> Step:
    return Step("set", tuple(f"{key}={value}" for key, value in keys.items()))


def sets(*pairs: str) -> Step:
    return Step("set", pairs)


def klog(lines: Iterable[str], prio: int = 4) -> Step:
    return Step("klog", ("--prio", str(prio)), "\n".join(lines) + "\n")


def simple(name: str, usage: str, help: str, *pairs: str) -> None:
    """A fault of one GPU that sets fixed keys."""

    def build(node: Node, words: list[str]) -> list[Step]:
        take(words, 1, 1)
        prefix = gpu(node, words[0])
        return [sets(*(f"{prefix}.{pair}" for pair in pairs))]

    fault(name, usage, help)(build)


# -- GPU state --

simple("gpu-lost", "GPU", "stays in the count, every call on it returns GPU_IS_LOST", "lost=1")
simple("gpu-gone", "GPU", "gone: the count shrinks, the indices behind it move down", "present=0")
simple("gpu-denied", "GPU", "its handle call returns NO_PERMISSION, as behind a device cgroup", "denied=1")
simple("remap-failure", "GPU", "a row remap failed", "remap.failure=1")
simple("remap-pending", "GPU", "a row remap waits for a reset", "remap.pending=1", "remap.uncorrected=1")
simple("remap-low", "GPU", "a memory bank without spare rows", "remap.hist.none=1", "remap.uncorrected=8")
simple("unrepairable", "GPU", "memory that cannot be repaired", "unrepairable=1")
simple("repair-pending", "GPU", "a repair of a memory channel waits for a reset", "repair.channel=1")
simple("inforom", "GPU", "the InfoROM is corrupt", "inforom_corrupt=1")
simple(
    "sram-limit", "GPU", "NVIDIA's limit of SRAM errors", "sram.threshold_exceeded=1", "sram.unc_parity.aggregate=9"
)


@fault("off-bus", "GPU", "a GPU falls off the bus: Xid 79 in the kernel log and GPU_IS_LOST in NVML")
def off_bus(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 1)
    name = gpu(node, words[0], every=False)
    return [sets(f"{name}.lost=1"), klog(klines.xid(79, klines.bdf(name, node.state)))]


@fault(
    "ecc",
    "GPU dram|sram|... COUNT [corrected]",
    "new ECC errors, volatile and aggregate (uncorrected unless said)",
)
def ecc(node: Node, words: list[str]) -> list[Step]:
    take(words, 3, 4)
    prefix = gpu(node, words[0], every=False)
    place = choice(words[1], MEMORY, "memory")
    count = number(words[2], "count", 1, 10**9)
    kind = choice(words[3], ("corrected", "uncorrected"), "kind") if len(words) > 3 else "uncorrected"
    return [
        Step(
            "add", tuple(f"{prefix}.ecc.{kind}.{when}.{place}={count}" for when in ("volatile", "aggregate"))
        )
    ]


@fault("retired-pages", "GPU [COUNT]", "pages retired after double-bit errors, pending (V100)")
def retired_pages(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 2)
    prefix = gpu(node, words[0], every=False)
    count = number(words[1], "count", 1, 64) if len(words) > 1 else 1
    pages = ",".join(f"{0x1F000000 + index * 0x1000:#x}@{1764000000 + index}" for index in range(count))
    return [sets(f"{prefix}.retired.dbe={pages}", f"{prefix}.retired.pending=1")]


@fault("pcie-width", "GPU LANES", "current link width")
def pcie_width(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    choice(words[1], ("1", "2", "4", "8", "16"), "link width")
    return [sets(f"{gpu(node, words[0])}.pcie.width={words[1]}")]


@fault("pcie-gen", "GPU GEN [busy]", "current link generation; busy: while the GPU works (P0, 90 %)")
def pcie_gen(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 3)
    prefix = gpu(node, words[0])
    pairs = [f"{prefix}.pcie.gen={number(words[1], 'generation', 1, 6)}"]
    if len(words) > 2:
        choice(words[2], ("busy",), "word")
        pairs += [f"{prefix}.pstate=0", f"{prefix}.util=90"]
    return [sets(*pairs)]


@fault("pcie-replay", "GPU COUNT", "so many packets more were sent twice")
def pcie_replay(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    prefix = gpu(node, words[0], every=False)
    return [Step("add", (f"{prefix}.pcie.replay={number(words[1], 'count', 1, 10**9)}",))]


@fault("swap", "GPU", "another board in this place: its UUID and serial number change")
def swap(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 1)
    name = gpu(node, words[0], every=False)
    slot = int(name[3:])
    return [sets(f"{name}.uuid=GPU-5a3b0000-0000-4000-8000-{slot:012d}", f"{name}.serial=17{slot:011d}")]


@fault("vbios", "GPU|all VERSION", "VBIOS version")
def vbios(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    if not re.fullmatch(r"[0-9A-Fa-f]{2}(\.[0-9A-Fa-f]{2}){4}", words[1]):
        raise UsageError(f"not a VBIOS version: {words[1]!r}")
    return [sets(f"{gpu(node, words[0])}.vbios={words[1]}")]


@fault("mig", "GPU|all [INSTANCES]", "MIG mode on with so many instances (7)")
def mig(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 2)
    prefix = gpu(node, words[0])
    count = number(words[1], "instances", 0, 7) if len(words) > 1 else 7
    return [sets(f"{prefix}.mig=1", f"{prefix}.mig_instances={count}")]


@fault("model", "|".join(MODELS), "what all GPUs of the node are")
def model(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 1)
    return [sets(f"model={choice(words[0], MODELS, 'model')}")]


@fault(
    "nvml-hang",
    "[sleep|ignoreterm|dstate] [CALL|all] [GPU] [times=N]",
    "a call never returns; dstate: it waits in D on a frozen file system, whatever signal it is sent",
)
def nvml_hang(node: Node, words: list[str]) -> list[Step]:
    take(words, 0, 4)
    kind, call, pairs = "sleep", "all", []
    for word in words:
        if word in HANGS:
            kind = word
        elif word.startswith("times="):
            pairs.append(f"hang.times={number(word[6:], 'times', 1, 10**6)}")
        elif word.startswith("nvml") or word == "all":
            call = call_name(node, word)
        elif word.startswith("gpu"):
            pairs.append(f"hang.gpu={gpu(node, word, every=False)[3:]}")
        else:
            raise UsageError(f"what is {word!r}{near(word, [*HANGS, *node.calls])}")
    pairs += [f"hang.kind={HANGS[kind]}", f"hang.call={call}"]
    if kind != "dstate":
        return [sets(*pairs)]
    return [Step("freeze"), sets(f"hang.path={HANG_PATH}", *pairs)]


@fault("nvml-slow", "CALL|all MILLISECONDS", "a call takes so long")
def nvml_slow(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    return [sets(f"delay.{call_name(node, words[0])}={number(words[1], 'milliseconds', 0, 3_600_000)}")]


@fault("nvml-error", "CALL|all CODE [GPU]", "a call returns this NVML error code")
def nvml_error(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 3)
    where = f"{gpu(node, words[2], every=False)}." if len(words) > 2 else ""
    return [sets(f"error.{where}{call_name(node, words[0])}={number(words[1], 'code', 1, 999)}")]


@fault(
    "no-symbol", "SYMBOL...", "an old driver: the library lacks these symbols (processes started from now on)"
)
def no_symbol(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 64)
    return [Step("library", tuple(call_name(node, word) for word in words))]


@fault(
    "driver", "VERSION|old [CUDA]", "driver version, e.g. 535.54.03 12020; old: the library of a 470 driver"
)
def driver(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 2)
    if words == ["old"]:
        return [Step("library", ("old",)), sets("driver=470.256.02", "cuda=11040")]
    if not re.fullmatch(r"\d+(\.\d+)+", words[0]):
        raise UsageError(f"not a driver version: {words[0]!r}")
    pairs = [f"driver={words[0]}"]
    if len(words) > 1:
        pairs.append(f"cuda={number(words[1], 'CUDA version', 1000, 99990)}")
    return [sets(*pairs)]


def measure(name: str, key: str, usage: str, help: str, high: int, factor: int = 1) -> None:
    """A fault that sets one number of one GPU (or of all)."""

    def build(node: Node, words: list[str]) -> list[Step]:
        take(words, 2, 2)
        return [sets(f"{gpu(node, words[0])}.{key}={number(words[1], key, 0, high) * factor}")]

    fault(name, usage, help)(build)


measure("temp", "temp", "GPU DEGREES", "temperature in degrees C", 200)
measure("power", "power", "GPU WATTS", "power draw in W", 2000, 1000)
measure(
    "clock-reasons",
    "clock_reasons",
    "GPU MASK",
    "clock event reasons, e.g. 0x40 for hardware thermal slowdown",
    0xFFFF,
)
measure(
    "recovery-action",
    "recovery_action",
    "GPU ACTION",
    "recovery action field: 1 reset, 2 reboot, 4 drain and reset",
    7,
)
measure(
    "fabric", "fabric.state", "GPU|all STATE", "fabric state: 1 not started, 2 in progress, 3 completed", 3
)
measure(
    "fabric-health",
    "fabric.health_summary",
    "GPU|all SUMMARY",
    "fabric health: 1 healthy, 2 unhealthy, 3 limited",
    3,
)


measure(
    "fabric-status", "fabric.status", "GPU|all CODE", "the fabric's registration ended with this error, e.g. 23", 999
)
measure("temp-mem", "temp_mem", "GPU DEGREES", "memory temperature in degrees C", 200)
measure("compute-mode", "compute_mode", "GPU|all MODE", "compute mode: 0 default, 2 prohibited, 3 exclusive", 3)
measure("persistence", "persistence", "GPU|all MODE", "persistence mode: 0 off, 1 on", 1)
measure("app-clock", "clock.app.graphics", "GPU|all MHZ", "application clock of the cores", 5000)


@fault("clocks", "GPU MHZ", "current graphics and SM clock")
def clocks(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    prefix, value = gpu(node, words[0]), number(words[1], "clock", 0, 5000)
    return [sets(f"{prefix}.clock.graphics={value}", f"{prefix}.clock.sm={value}")]


@fault("nvlink-down", "GPU LINK", "one NVLink is down")
def nvlink_down(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    return [sets(f"{gpu(node, words[0])}.nvlink.{number(words[1], 'link', 0, 17)}.state=0")]


@fault("nvlink-errors", "GPU LINK recovery|replay|crc_flit|... COUNT", "errors of one NVLink grow by so many")
def nvlink_errors(node: Node, words: list[str]) -> list[Step]:
    take(words, 4, 4)
    prefix, link = gpu(node, words[0], every=False), number(words[1], "link", 0, 17)
    kind = choice(words[2], NVLINK_ERRORS, "counter")
    return [Step("add", (f"{prefix}.nvlink.{link}.err.{kind}={number(words[3], 'count', 1, 10**9)}",))]


@fault("slowdown", "GPU MASK", "a working GPU (98 %) whose clocks are held down, e.g. 0x48 thermal, 0x88 brake")
def slowdown(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 2)
    prefix, mask = gpu(node, words[0]), number(words[1], "mask", 0, 0xFFFF)
    return [sets(f"{prefix}.util=98", f"{prefix}.clock_reasons={mask}")]


@fault("process", "GPU PID BYTES", "a process that holds GPU memory")
def process(node: Node, words: list[str]) -> list[Step]:
    take(words, 3, 3)
    holder = f"{number(words[1], 'pid', 1, 2**22)}:{number(words[2], 'bytes', 0, 2**45)}"
    return [sets(f"{gpu(node, words[0], every=False)}.proc={holder}")]


@fault("set", "KEY=VALUE...", "any key of the GPU state (nvml/README.md); an empty value drops it")
def raw_set(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 64)
    for word in words:
        if not re.fullmatch(r"[A-Za-z0-9_.*-]+=[^\n]*", word):
            raise UsageError(f"not KEY=VALUE: {word!r}")
    return [sets(*words)]


# -- kernel log --


@fault(
    "xid", "NUMBER GPU [TEXT...]", "the driver's line(s) for this Xid; TEXT replaces what follows the number"
)
def xid(node: Node, words: list[str]) -> list[Step]:
    take(words, 2, 64)
    name = gpu(node, words[1], every=False)
    return [
        klog(klines.xid(number(words[0], "Xid", 1, 999), klines.bdf(name, node.state), " ".join(words[2:])))
    ]


@fault("sxid", "NUMBER [SWITCH] [fatal]", "an NVSwitch's line(s) for this SXid")
def sxid(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 3)
    fatal = "fatal" in words
    rest = [word for word in words[1:] if word != "fatal"]
    switch = number(rest[0], "switch", 0, 5) if rest else 0
    return [klog(klines.sxid(number(words[0], "SXid", 1, 99999), switch, fatal))]


@fault("aer", "GPU [corrected|nonfatal|fatal]", "PCIe errors above this GPU (nonfatal unless said)")
def aer(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 2)
    name = gpu(node, words[0], every=False)
    kind = choice(words[1], ("corrected", "nonfatal", "fatal"), "kind") if len(words) > 1 else "nonfatal"
    return [klog(klines.aer(klines.bdf(name, node.state), kind))]


@fault("fs-error", "DEVICE [ext4|xfs|nfs|lustre]", "a file system reports errors (ext4 unless said)")
def fs_error(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 2)
    if not re.fullmatch(r"[\w.:/-]+", words[0]):
        raise UsageError(f"not a device: {words[0]!r}")
    kind = choice(words[1], tuple(klines.FILE_SYSTEMS), "file system") if len(words) > 1 else "ext4"
    return [klog([line.format(dev=words[0]) for line in klines.FILE_SYSTEMS[kind]], 3)]


@fault("klog", "TEXT...", "any line in the kernel log")
def raw_klog(node: Node, words: list[str]) -> list[Step]:
    take(words, 1, 256)
    return [klog([" ".join(words)])]


# -- mounts and power --


def mount_fault(kind: str, help: str) -> None:
    def build(node: Node, words: list[str]) -> list[Step]:
        take(words, 1, 1)
        return [Step("mount", (kind, choice(words[0], MOUNTS, "mount")))]

    fault(f"mount-{kind}", "/data|/shared", help)(build)


mount_fault("gone", "not mounted any more")
mount_fault("ro", "mounted read-only")
mount_fault("hang", "a stat of it never returns (a FUSE daemon that takes the request and never answers)")
mount_fault("back", "mounted again, whatever was done to it")


def power_fault(name: str, help: str) -> None:
    def build(node: Node, words: list[str]) -> list[Step]:
        take(words, 0, 0)
        return [Step("power", (name,))]

    fault(name, "", help)(build)


power_fault("kill", "the container is killed hard, as by a power cut")
power_fault("reboot", "power cycle: new boot id, kernel log and volatile GPU state anew")
power_fault("slurmd-stop", "slurmd is stopped, the node stays up")
power_fault("slurmd-start", "slurmd is started again")
