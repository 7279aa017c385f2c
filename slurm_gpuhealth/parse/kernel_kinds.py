"""What lines of the kernel log say that do not come from the NVIDIA driver: PCIe, storage, memory, network.

Pure. One row of RULES a shape: a substring that must be there (cheap), then the pattern. Shapes from the
kernel's own source (drivers/pci/pcie/aer.c, fs/ext4/super.c, fs/xfs, net/sunrpc, drivers/nvme/host,
arch/x86/kernel/cpu/mce, drivers/edac, mm/oom_kill.c, kernel/hung_task.c, mlx5) and from public bug reports,
looked up 2026-11-30.
"""
from __future__ import annotations

import re

from slurm_gpuhealth.parse import bdf
from slurm_gpuhealth.parse import xid as nvidia

_BDF = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_AER = r"\S+ (?P<bdf>{bdf}): (?:PCIe Bus Error: (?:severity=)?%s, ?(?:type=(?P<type>[^,(]+))?|" \
       r"AER: (?:Multiple )?%s error (?:message )?received(?: from)?:? ?(?P<from>\S*))"
_CORRECTED = "Correct(?:ed|able)"
_UNCORRECTED = r"Uncorrect(?:ed|able)(?: \((?P<class%d>Fatal|Non-Fatal)\))?"

# (needle, kind, pattern). The first row that matches gives the kind. Patterns match at the start of the text: a name
# that a user chose, printed in the middle of a line, must not look like another line. Named groups go into data, but
# for bdf, pid and process, which are fields of the event. {bdf} stands for a PCI address.
RULES = (
    ("AER: ", "aer_corrected", _AER % (_CORRECTED, _CORRECTED)),
    ("AER: ", "aer_uncorrected", _AER % (_UNCORRECTED % 1, _UNCORRECTED % 2)),
    ("AER: ", "aer_uncorrected", r"\S+ (?P<bdf>{bdf}): AER: can't recover"),
    ("PCIe Bus Error: ", "aer_corrected", _AER % (_CORRECTED, _CORRECTED)),
    ("PCIe Bus Error: ", "aer_uncorrected", _AER % (_UNCORRECTED % 1, _UNCORRECTED % 2)),
    ("read-only", "fs_readonly", r"(?:EXT4-fs|XFS|BTRFS|F2FS-fs|JFS|GFS2)[^(]{0,40}\((?:device )?(?P<device>[^)]+)\):? "
     r".*[Rr]emounting filesystem read-only"),
    ("forced readonly", "fs_readonly", r"BTRFS[^(]{0,40}\(device (?P<device>[^)]+)\).*forced readonly"),
    ("EXT4-fs", "fs_error", r"EXT4-fs (?:error|warning|critical) \(device (?P<device>[^)]+)\)"),
    ("EXT4-fs", "fs_error", r"EXT4-fs \((?P<device>[^)]+)\): (?!mounted|re-mounted).*(?:failed|error|I/O)"),
    ("JBD2", "fs_error", r"JBD2: .*(?:error|failed|aborted)"),
    ("XFS (", "fs_error", r"XFS \((?P<device>[^)]+)\): .*(?:error|[Cc]orruption|[Ss]hutting down|[Ss]hut down)"),
    ("BTRFS", "fs_error", r"BTRFS(?: (?:error|critical))?:? \(device (?P<device>[^)]+)\).*"
     r"(?:error|corrupt|failed|aborted)"),
    ("not responding", "nfs_not_responding", r"nfs: server (?P<server>\S+) not responding"),
    ("Lustre", "lustre_lost", r"(?:LustreError|Lustre): .*(?:was evicted by (?P<target>[\w.-]+)|Connection to"
     r" (?P<target2>\S+) .*was lost|operation \S+ to node (?P<node>\S+) failed|due to network error)"),
    ("LNet", "lustre_lost", r"LNet(?:Error)?: .*(?:Timed out (?:tx|rx|RDMA)|network error)"),
    ("nvme", "nvme", r"nvme (?P<device>nvme\d+): (?:.*(?:fail|timeout|timed out|abort|controller is down|reset)|"
     r"[Dd]isabling|[Rr]emoving)"),
    ("nvme", "nvme", r"block (?P<device>nvme\w+): no (?:available|usable) path"),
    ("I/O error", "block_io", r"Buffer I/O error on (?:dev(?:ice)?) (?P<device>[^\s,]+)"),
    (" error, dev ", "block_io", r"(?:(?:print_req_error|blk_update_request|end_request): )?(?:critical )?"
     r"(?:I/O|medium|target) error, dev (?P<device>[^\s,]+), sector (?P<sector>\d+)"),
    ("Hardware Error", "mce_uncorrected", r"(?:mce: |\{\d+\})?\[Hardware Error\]: .*(?:Uncorrected|[Ff]atal|PANIC|"
     r"Processor context corrupt)"),
    ("Hardware Error", "mce_corrected", r"(?:mce: |\{\d+\})?\[Hardware Error\]: .*(?:Corrected error|"
     r"event severity: corrected)"),
    ("Hardware Error", "mce_logged", r"mce: \[Hardware Error\]: Machine check events logged"),
    ("Hardware Error", "mce_apei", r"\{\d+\}\[Hardware Error\]: event severity: (?P<severity>\w+)"),
    ("EDAC", "edac_uncorrected", r"EDAC \S+: (?P<count>\d+) UE "),
    ("EDAC", "edac_corrected", r"EDAC \S+: (?P<count>\d+) CE "),
    ("ill process", "oom_kill", r"(?:Out of memory: |Memory cgroup out of memory: )?"
     r"Kill process (?P<pid>\d+) \((?P<process>.{0,40}?)\) score"),
    ("illed process", "oom_kill", r"(?:Out of memory: |Memory cgroup out of memory: )?"
     r"Killed process (?P<pid>\d+) \((?P<process>.{0,40}?)\)(?:,| |$)"),
    ("oom-killer", "oom_kill", r"(?P<process>.{1,40}) invoked oom-killer"),
    ("blocked for more than", "hung_task", r"INFO: task (?P<process>.{1,40}):(?P<pid>\d+) blocked for more than"
     r" (?P<seconds>\d+) seconds"),
    ("Link", "link_flap", r"(?P<driver>[\w.-]{1,20}) (?P<bdf>{bdf}):? (?P<device>[\w.-]{1,20}):? (?:NIC )?Link (?:is )?"
     r"(?P<state>[Dd]own|[Uu]p)"),
    ("Link", "link_flap", r"(?P<device>[\w.-]{1,15}): (?:NIC )?Link is (?P<state>[Dd]own|[Uu]p)"),
    ("mlx5_", "mlx5", r"mlx5_\w+(?: (?P<bdf>{bdf}))?.*(?:insufficient power|fail|[Ee]rror|err\(|[Tt]imeout|health)"),
)

# What any line of interest holds somewhere: looked for in whole blocks of a log first, which runs at memory speed.
# A superset of RULES; tests/parse/test_kmsg.py sees to that.
NEEDLES = (
    "NVRM: ", "Xid (", "AER: ", "PCIe Bus Error: ", "EXT4-fs", "XFS (", "BTRFS", "JBD2", "read-only", "I/O error",
    "critical ", "nfs: server", "Lustre", "LNet", "nvme", "Hardware Error", "EDAC", "ill process", "illed process",
    "oom-killer", "blocked for more than", "Link", "mlx5_")

# The same for raw records, whose text begins behind the first ";": how the lines begin, and what stands further in.
STARTS = (r";(?:NVRM: |nvidia-nvs|EXT4-fs|XFS|BTRFS|F2FS-fs|JFS|GFS2|JBD2|nfs: server|Lustre|LNet|nvme |block nvme"
          r"|Buffer I/O|blk_update|I/O error|critical |print_req_e|end_request|\{\d+\}\[Hard|mce: \[|\[Hardware|EDAC "
          r"|Out of mem|Memory cgroup out|Kill|INFO: task|mlx5_)")
INSIDE = ("AER: ", "PCIe Bus Error: ", "oom-killer", "Link")

_compiled: dict = {}


def parse(text):
    """(kind, code, bdf, pid, process, data) of one line without stamps, or None for a line of no interest.

    Same shape as slurm_gpuhealth.parse.xid.parse, which is asked first.
    """
    if text.startswith(("NVRM: ", "nvidia-nvswitch")):
        return nvidia.parse(text)
    for number, (needle, kind, _) in enumerate(RULES):
        if needle not in text:
            continue
        pattern = _compiled.get(number)
        if pattern is None:
            pattern = _compiled[number] = re.compile(RULES[number][2].replace("{bdf}", _BDF))
        found = pattern.match(text)
        if found is not None:
            return _event(kind, found)
    return None


def _event(kind, found):
    groups = {name: value for name, value in found.groupdict().items() if value}
    where = bdf.normalise(groups.pop("bdf", ""))
    pid = int(groups.pop("pid", "0")[:10]) or None
    process = groups.pop("process", "")[:64]
    for spare, name in (("target2", "target"), ("class1", "class"), ("class2", "class")):
        if spare in groups:     # one name may stand only once in a pattern
            groups[name] = groups.pop(spare)
    data: dict = {name: (int(value[:18]) if name in ("count", "seconds", "sector") else value[:100])
            for name, value in groups.items()}
    if "state" in data:
        data["state"] = data["state"].lower()
    return (kind, None, where, pid, process, data)
