"""Facts: one frozen value with all that was read from the node, and what could not be read and why.

Every field that was looked for and not read holds an Unknown, which is neither true nor false nor
comparable with a number: code that forgets to ask gets a TypeError, not a healthy node.
Units: bytes, watts, degrees Celsius, MHz, seconds; times are seconds since the epoch.
"""
from __future__ import annotations

from collections import namedtuple

from slurm_gpuhealth.facts_node import RECORDS, Clock

# Why something could not be read.
ABSENT, UNSUPPORTED, DENIED, TIMEOUT, HUNG, ERROR, NOT_READ = (
    "absent", "unsupported", "denied", "timeout", "hung", "error", "not-read")


class Unknown(namedtuple("Unknown", "reason detail code", defaults=("", None))):
    """A value that could not be read. reason: one of the constants above; detail: for people; code: the NVML
    or errno number where there is one.

    It has no truth value and no order, on purpose.
    """

    __slots__ = ()

    def __bool__(self):
        raise TypeError("an Unknown is neither true nor false: ask is_known() first")

    def _no_order(self, other):
        raise TypeError("an Unknown cannot be compared: ask is_known() first")

    __lt__ = __le__ = __gt__ = __ge__ = _no_order


UNASKED = Unknown(NOT_READ, "was not asked for")


def is_known(value):
    """True when `value` was really read."""
    return not isinstance(value, Unknown)


SourceStatus = namedtuple("SourceStatus", "name outcome seconds detail pid rounds starved",
                          defaults=(0.0, "", None, 0, False))
SourceStatus.__doc__ = """How reading one source went.

outcome: "ok"; "late" (no answer by its deadline; what came until then is kept); "hung" (its child is in D
state, or a child of an earlier round still is); "failed" (it said why in detail); "skipped".
rounds: how many rounds in a row, this one included, were late or hung. pid: of the child left behind.
starved: late because it was given hardly any processor time: says nothing about the source, and counts no round.
"""

Gpu = namedtuple(
    "Gpu",
    "index nvml_index minor uuid serial bdf name error"          # identity; error: why the handle is unusable
    " persistence compute_mode mig_mode pstate utilization processes"
    " ecc_mode ecc_uncorrected_volatile ecc_corrected_volatile ecc_uncorrected_aggregate ecc_corrected_aggregate"
    " remap_corrected remap_uncorrected remap_pending remap_failure retired_pages retired_pending"
    " pcie_width pcie_width_max pcie_gen pcie_gen_max pcie_gen_gpu_max pcie_replay"
    " temperature power power_limit clock_sm clock_reasons memory_total memory_used recovery_action"
    # what only some GPUs and drivers have
    " ecc_locations sram_threshold sram_counts remap_histogram retired_counts unrepairable repair_pending"
    " inforom vbios part_number nvlinks fabric temperature_memory temperature_limits violations"
    " clock_memory clock_sm_max clock_app clock_app_default mig_devices accounting pcie_width_slot mig_pending"
    " reason_samples",
    defaults=[UNASKED] * 63)  # type: ignore[misc]
Gpu.__doc__ = """One GPU as NVML and sysfs show it. Field names say what; each may be an Unknown.

index: gres index (Slurm's). nvml_index: NVML's own order now, or None for a GPU known from before that NVML
no longer lists. error: None when usable, else an Unknown with the NVML code (15 = GPU_IS_LOST).
processes: tuple of (pid, used_bytes). *_max of pcie: the most that GPU and slot allow together;
pcie_gen_gpu_max: the GPU alone. clock_reasons: NVML bit mask.
ecc_locations: {"volatile_uncorrected": {"dram": n, "sram": n, ...}, ...}. sram_threshold: 1 when NVIDIA's own limit of
SRAM errors is passed. sram_counts: {name: n}. remap_histogram: {"max", "high", "partial", "low", "none": banks with so
many spare rows}. retired_counts: {"sbe": n, "dbe": n}. unrepairable: 1 when memory cannot be repaired.
repair_pending: {"channel": 0 or 1, "tpc": 0 or 1}. inforom: checksum as text, or Unknown with code 14 when it is
corrupt. nvlinks: tuple of {"link", "state" (0 down, 1 up, 2 asleep), "remote" ("switch" or missing), "errors": {name:
n}} of the links that there are; errors in rounds only. fabric: {"state", "status", "health_mask", "health_summary"},
the last two None where the driver is too old. temperature_limits: {"slowdown", "shutdown", "gpu_max", "memory_max": C}.
violations: {reason: nanoseconds for which clocks were held down since the driver was loaded}. reason_samples: tuple of
clock_reasons, three of them 0.1 s apart where the hardware holds the clocks down. mig_pending: MIG mode after the next
reset. clock_app, clock_app_default: {"sm": MHz, "memory": MHz}. mig_devices: tuple of
profile names ("1g.10gb"). pcie_width_slot: lanes of the port above as sysfs says, asked for only where the link is
narrower than pcie_width_max.
"""

KernelEvent = namedtuple("KernelEvent", "kind code bdf time line count last pid process seq data",
                         defaults=("", None, "", None, "", 1, None, None, "", None, None))
KernelEvent.__doc__ = """One event of the kernel log, a burst folded into one.

kind: see `gpuhealth log parse` ("xid", "gpu_fell_off", ...). code: Xid number or None. bdf: dddd:bb:dd.f of
the GPU, "" when none was named. time, last: wall time of the first and last line of the burst. count: lines.
pid, process: as the line says (hostile text). data: more, by kind.
"""

KernelLog = namedtuple("KernelLog", "events cursor lost lines", defaults=((), None, 0, 0))
KernelLog.__doc__ = """What the kernel log said since the cursor. lost: records that were overwritten unread."""

Mount = namedtuple("Mount", "path present fstype options source writable seconds error free_bytes free_inodes"
                   " total_bytes total_inodes",
                   defaults=("", UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, 0.0, None, UNASKED, UNASKED, UNASKED,
                             UNASKED))
Mount.__doc__ = """One configured mount. present: it is in mountinfo. writable: a probe file could be made (only
asked when it should be). error: None, or an Unknown that says why the path did not answer. free_bytes, free_inodes:
for users other than root; total_inodes: 0 where the file system has no fixed number of them."""

Expected = namedtuple("Expected", "gpus origin minors", defaults=(UNASKED, "", ()))
Expected.__doc__ = """How many GPUs the node should have. origin: "config", "gres.conf", "slurm.conf", "most seen".
minors: device minors in gres order (File= of gres.conf), () when it does not say."""

KnownGpu = namedtuple("KnownGpu", "index uuid bdf minor serial", defaults=(None, "", "", None, ""))

Baseline = namedtuple("Baseline", "time boot_id driver counters xids streaks first_seen links",
                      defaults=(None, "", "", None, None, None, None, None))
Baseline.__doc__ = """What stood before, of the job (its prolog's) in epilog, of the node otherwise.

counters: {GPU's UUID, or name of a part: {counter: number}}. Always the node's: xids: {"uuid/code": job ids that saw
it}; streaks: {key: [rounds in a row, time of the first]} of findings with data["streak"]; first_seen: {key: time} of
what stands since an earlier round; links: {port: {"speed", "width"}} of ports that were up in a healthy round."""

Facts = namedtuple(
    "Facts",
    "v node time boot_id uptime kernel hostname driver cuda nvml gpu_count gpus expected known_gpus klog"
                " mounts baseline sources job_gpus"
                " pci links memory_controllers nvme devices clock processes services plugins phase"
                " filesystems libraries jobs job",
    defaults=(
    1, "", 0.0, "", UNASKED, "", "", UNASKED, UNASKED, UNASKED, UNASKED, (), Expected(), (), UNASKED, (),
    None, (), (), UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, UNASKED, "", UNASKED, UNASKED,
    UNASKED, None))
Facts.__doc__ = """All that was read in one round. gpu_count: what NVML counts, or Unknown. gpus: tuple of Gpu.
known_gpus: identities saved in healthy rounds. klog: KernelLog or Unknown. mounts: tuple of Mount.
baseline: Baseline or None. sources: tuple of SourceStatus. job_gpus: gres indices of the job. phase: of the round.
pci, links, memory_controllers, nvme, devices, filesystems, processes, services, plugins: tuples of the records of
facts_node.py, clock: its Clock; each UNASKED where no check of this round needs it. libraries: {"module": version of
the loaded kernel module, "libcuda": versions of the libcuda.so.1 that are installed} or UNASKED.
jobs: tuple of {"id", "uid", "gpus"} of the jobs that a prolog saw start here and no epilog saw end; job: id of the
hook's job, or None; both filled with processes."""

_NESTED = {"expected": Expected, "klog": KernelLog, "baseline": Baseline, "clock": Clock}
_LISTS = {"gpus": Gpu, "known_gpus": KnownGpu, "mounts": Mount, "sources": SourceStatus, "events": KernelEvent,
          **RECORDS}


def to_plain(value):
    """Facts (or any part) as dicts, lists and scalars; an Unknown becomes {"unknown": reason, ...}."""
    if isinstance(value, Unknown):
        plain = {"unknown": value.reason}
        if value.detail:
            plain["detail"] = value.detail
        if value.code is not None:
            plain["code"] = value.code
        return plain
    if hasattr(value, "_fields"):
        return {name: to_plain(item) for name, item in zip(value._fields, value)}
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _item_from_plain(name, item):
    if isinstance(item, dict):
        if "unknown" in item:
            return Unknown(item["unknown"], item.get("detail", ""), item.get("code"))
        if name in _NESTED:
            return from_plain(item, _NESTED[name])
        return {key: _item_from_plain("", inner) for key, inner in item.items()}
    if isinstance(item, list):
        kind = _LISTS.get(name)
        return tuple(from_plain(one, kind) if kind and isinstance(one, dict) and "unknown" not in one
                     else _item_from_plain("", one) for one in item)
    return item


def from_plain(plain, kind=Facts):
    """The inverse of to_plain; keys of a newer version that we do not know are dropped."""
    return kind(**{name: _item_from_plain(name, plain[name]) for name in kind._fields if name in plain})
