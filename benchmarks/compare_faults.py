"""The situations that compare.py puts a node into: faults that must drain it, what wants a word, and false alarms.

Each is what a real node shows of it in all places at once: kernel log, NVML, PCI devices in sysfs. The node has eight
H100 on the simulated NVML; gpu3 is 0000:5d:00.0. Wording of the driver's lines: as printed by drivers 470 to 580.
"""
from __future__ import annotations

from collections import namedtuple

DRAIN, WARN, HARMLESS = "drain", "warn", "no"

Fault = namedtuple("Fault", "name title want log nvml pci before rounds extra", defaults=(
    (), (), {}, (), 3, {}))
Fault.__doc__ = """One situation.

want: what should become of the node: drain, warn (somebody should look, jobs may run) or no (nothing is wrong).
log: kernel-log lines, each text or (text, syslog facility). nvml: lines of the simulation's state file. pci: changes of
gpu3's sysfs files, or {"gone": True}. before: state lines of the healthy rounds before. rounds: health checks that ours
gets (at most) to see it. extra: old (driver without newer symbols), fresh (no healthy round before), once (NVML as it
is for one round only), repeat (each log line so often), hang (file system frozen under NVML), holder (a process that
holds gpu3), repaired (the admin resumes the node after the first round; the log keeps its lines)."""

G3 = "PCI:0000:5d:00"
XID = "NVRM: Xid (%s): " % G3
NOBODY = "pid='<unknown>', name=<unknown>, "
USER = "pid=41217, name=python3, "
ALL_ONES = {"config": b"\xff" * 64, "current_link_width": "63", "current_link_speed": "Unknown"}
OFF_BUS = (XID + "79, " + NOBODY + "GPU has fallen off the bus.",
           "NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus.",
           "NVRM: GPU 0000:5d:00.0: GPU serial number is 1650221000123.")
UNCONTAINED = XID + "95, " + NOBODY + "Uncontained: FBHUB. RST: Yes, D-RST: No"
MMU_FAULT = (XID + "31, " + USER + "Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ "
             "0x7f29_5b8c9000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ")
MISMATCH = (
    "NVRM: API mismatch: the client has the version 570.86.15, but",
    "NVRM: this kernel module has the version 550.90.07.  Please",
    "NVRM: make sure that this kernel module and all NVIDIA driver",
    "NVRM: components have the same version.")

FAULTS = (
    # -- a GPU is gone
    Fault("off-bus", "GPU fell off the bus (Xid 79), NVML says lost", DRAIN, OFF_BUS, ("gpu3.lost=1",), ALL_ONES),
    Fault("off-bus-no-xid", "GPU fell off the bus, the driver printed no Xid", DRAIN,
          ("NVRM: GPU at 0000:5d:00.0 has fallen off the bus.",), ("gpu3.lost=1", "gpu3.lost_at=handle"), ALL_ONES),
    Fault("off-bus-log-only", "Fell-off line without a Xid, NVML still answers from what it knows", DRAIN,
          ("NVRM: GPU at 0000:5d:00.0 has fallen off the bus.",)),
    Fault("gone", "GPU missing from NVML's count and from the bus, nothing in the log", DRAIN, (),
          ("gpu3.present=0",), {"gone": True}),
    Fault("wrong-count", "Node came up with 7 of 8 GPUs, never seen healthy", DRAIN, (), ("gpu3.present=0",),
          {"gone": True}, extra={"fresh": True}),
    # -- memory
    Fault("ecc-uncorrected", "2 new uncorrectable ECC errors", DRAIN, (),
          ("gpu3.ecc.uncorrected.volatile.dram=2", "gpu3.ecc.uncorrected.aggregate.dram=2")),
    Fault("ecc-after-reload", "2 uncorrectable ECC errors, then the driver was reloaded (volatile counters 0)", DRAIN,
          (), ("gpu3.ecc.uncorrected.aggregate.dram=2",)),
    Fault("remap-failed", "Row remap failed", DRAIN, (), ("gpu3.remap.failure=1",)),
    Fault("ecc-burst", "Xid 48 + 63 + 94 burst, remap pending", DRAIN, (
        XID + "48, " + NOBODY + "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer "
        "at physAddr 0x18f31d80 partition 16, subpartition 3.",
        XID + "63, " + NOBODY + "Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to "
        "activate.",
        XID + "94, " + NOBODY + "Contained: SM (0x1). RST: No, D-RST: No"),
        ("gpu3.ecc.uncorrected.volatile.dram=1", "gpu3.ecc.uncorrected.aggregate.dram=1", "gpu3.remap.pending=1",
         "gpu3.remap.uncorrected=1", "gpu3.recovery_action=4")),
    Fault("xid64", "Xid 64, a row could not be recorded", DRAIN, (
        XID + "64, " + NOBODY + "Row Remapper: Failed to record the row (0x0000000018f31d80)",)),
    Fault("uncontained", "Xid 95, uncontained memory error", DRAIN, (UNCONTAINED,)),
    Fault("sram-limit", "SRAM error threshold passed", DRAIN, (),
          ("gpu3.sram.threshold_exceeded=1", "gpu3.sram.unc_secded.aggregate=7")),
    Fault("unrepairable", "Unrepairable memory flag", DRAIN, (), ("gpu3.unrepairable=1",)),
    # -- driver and firmware
    Fault("gsp", "Xid 119, GSP does not answer, calls on that GPU fail (999)", DRAIN, (
        XID + "119, pid=2391, name=nvc:[driver], Timeout after 6s of waiting for RPC response from GPU3 GSP! Expected "
        "function 76 (GSP_RM_CONTROL) (0x20801702 0x4).",), ("error.gpu3.all=999",)),
    Fault("gsp-slow", "GSP gone: each NVML call takes 6 s, then fails (999)", DRAIN, (
        XID + "119, pid=2391, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU3 GSP! Expected "
        "function 76 (GSP_RM_CONTROL) (0x20801702 0x4).",), ("delay.all=6000", "error.all=999"), rounds=2),
    Fault("hang-sleep", "An NVML call never returns (S state), nothing in the log", DRAIN, (),
          ("hang.call=nvmlDeviceGetTotalEccErrors", "hang.kind=sleep")),
    Fault("hang-deaf", "The same, SIGTERM blocked", DRAIN, (),
          ("hang.call=nvmlDeviceGetTotalEccErrors", "hang.kind=ignoreterm")),
    Fault("hang-d", "The same in D state, cannot be killed", DRAIN, (),
          ("hang.call=nvmlDeviceGetTotalEccErrors", "hang.kind=write", "hang.path=@frozen@/x"), extra={"hang": True}),
    Fault("mismatch", "Driver updated under a running module (library mismatch)", DRAIN, MISMATCH,
          ("error.nvmlInitWithFlags=18",)),
    Fault("not-loaded", "Driver not loaded", DRAIN, (), ("error.nvmlInitWithFlags=9",)),
    Fault("reset-required", "NVML says reset required (16)", DRAIN, (), ("error.gpu3.nvmlDeviceGetTotalEccErrors=16",)),
    Fault("recovery", "Recovery action field says reboot, nothing in the log", DRAIN, (), ("gpu3.recovery_action=2",)),
    Fault("xid154", "Xid 154, recovery action changed to reboot", DRAIN, (
        XID + "154, GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)",), ("gpu3.recovery_action=2",)),
    Fault("xid62", "Xid 62, micro-controller halted", DRAIN, (
        XID + "62, " + NOBODY + "2023b230 20238a3a 2023e8b6 2023eac4 2023ec3c 2023ea86 00000000 00000000",)),
    Fault("rm-init", "The driver cannot initialise the GPU (RmInitAdapter failed)", DRAIN, (
        "NVRM: GPU 0000:5d:00.0: RmInitAdapter failed! (0x62:0x40:2477)",
        "NVRM: GPU 0000:5d:00.0: rm_init_adapter failed, device minor number 3"), ("error.gpu3.all=999",)),
    Fault("gpu-unknown", "Each NVML call on one GPU fails (999), nothing in the log", DRAIN, (),
          ("error.gpu3.all=999",)),
    Fault("nvml-unknown", "NVML does not start (999), nothing in the log", DRAIN, (), ("error.nvmlInitWithFlags=999",)),
    # -- links, heat
    Fault("nvlink", "Xid 74 and the NVLink is down", DRAIN, (
        XID + "74, " + NOBODY + "NVLink: fatal error detected on link 5(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",),
        ("gpu3.nvlink.5.state=0",)),
    Fault("nvlink-quiet", "NVLink down, nothing in the log", DRAIN, (), ("gpu3.nvlink.5.state=0",)),
    Fault("fabric", "Fabric Manager not started: no GPU has a fabric", DRAIN, (),
          ("gpu*.fabric.state=1", "gpu*.fabric.health_summary=0")),
    Fault("sxid", "Fatal NVSwitch error (SXid 20034)", DRAIN, (
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Severity 1 Engine instance 48 Sub-engine instance 00")),
    Fault("pcie-width", "PCIe link trained to x8 of x16", DRAIN, (), ("gpu3.pcie.width=8",),
          {"current_link_width": "8"}),
    Fault("hot", "GPU above its own slowdown temperature", DRAIN, (),
          ("gpu3.temp=94", "gpu3.util=95", "gpu3.pstate=0")),
    Fault("hw-thermal", "Hardware thermal slowdown at load, standing", DRAIN, (),
          ("gpu3.clock_reasons=0x48", "gpu3.util=95", "gpu3.pstate=0")),
    Fault("flood", "100,000 lines of one Xid 95", DRAIN, (UNCONTAINED,), extra={"repeat": 100_000}),
    # -- somebody should look
    Fault("inforom", "InfoROM corrupt", WARN, (), ("gpu3.inforom_corrupt=1",)),
    Fault("leftover", "A process of an ended job still holds the GPU (epilog)", WARN, (), (), extra={"holder": True}),
    # -- nothing is wrong
    Fault("healthy", "Healthy node", HARMLESS),
    Fault("old-driver", "Healthy, driver that lacks newer symbols", HARMLESS, extra={"old": True}),
    Fault("slow-start", "Persistence mode off: the driver needs 1.5 s for each GPU", HARMLESS, (),
          ("gpu*.persistence=0", "init_delay_ms=1500"), before=("gpu*.persistence=0", "init_delay_ms=1500")),
    Fault("late-once", "One NVML call hangs once, and never again", HARMLESS, (),
          ("hang.call=nvmlDeviceGetCount_v2", "hang.times=1")),
    Fault("ecc-corrected", "20 corrected ECC errors", HARMLESS, (),
          ("gpu3.ecc.corrected.volatile.dram=20", "gpu3.ecc.corrected.aggregate.dram=20")),
    Fault("aer-corrected", "One corrected PCIe error", HARMLESS, (
        "pcieport 0000:5c:01.0: AER: Corrected error received: 0000:5d:00.0",
        "nvidia 0000:5d:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
        "nvidia 0000:5d:00.0:   device [10de:2330] error status/mask=00000001/0000a000",
        "nvidia 0000:5d:00.0:    [ 0] RxErr                  (First)")),
    Fault("remap-pending", "Row remap pending: takes effect at the next reset, endangers nothing", HARMLESS, (),
          ("gpu3.remap.pending=1", "gpu3.remap.uncorrected=1")),
    Fault("xid31", "User's program: Xid 31", HARMLESS, (MMU_FAULT,)),
    Fault("xid13", "User's program: Xid 13, 43 and 45", HARMLESS, (
        XID + "13, " + USER + "Graphics SM Warp Exception on (GPC 1, TPC 0, SM 1): Out Of Range Address",
        XID + "43, " + USER + "Ch 00000010", XID + "45, " + USER + "Ch 00000010")),
    Fault("idle-gen1", "Idle GPU with its PCIe link at generation 1", HARMLESS, (),
          ("gpu3.pcie.gen=1", "gpu3.pstate=8"), {"current_link_speed": "2.5 GT/s PCIe"}),
    Fault("power-cap", "Power cap by software, at load", HARMLESS, (),
          ("gpu3.clock_reasons=0x4", "gpu3.util=98", "gpu3.pstate=0")),
    Fault("slowdown-once", "Hardware slowdown seen once (change of performance state)", HARMLESS, (),
          ("gpu3.clock_reasons=0x8", "gpu3.util=60", "gpu3.pstate=0"), extra={"once": True}),
    Fault("mig", "GPUs in MIG mode, seven instances each", HARMLESS, (), ("gpu*.mig=1", "gpu*.mig_instances=7"),
          before=("gpu*.mig=1", "gpu*.mig_instances=7")),
    Fault("echo", "A program wrote a Xid line into the kernel log itself", HARMLESS, ((OFF_BUS[0], 1),)),
    Fault("comm", "The kernel names a user's program that is called like a Xid", HARMLESS, (
        "Out of memory: Killed process 41217 (NVRM: Xid (PCI:) total-vm:9411220kB, anon-rss:8123048kB, file-rss:0kB, "
        "shmem-rss:0kB, UID:2001 pgtables:16384kB oom_score_adj:0",)),
    Fault("sxid-minor", "NVSwitch error that is only counted (SXid 20009, non-fatal)", HARMLESS, (
        "nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20009, Non-fatal, Link 04 RX Short Error Rate",)),
    Fault("repaired", "Xid 95 of this boot, GPU was reset and the node resumed; the log keeps the line", HARMLESS,
          (UNCONTAINED,), extra={"repaired": True}),
    Fault("user-flood", "100,000 lines of one user's Xid 31", HARMLESS, (MMU_FAULT,), extra={"repeat": 100_000}),
)
