"""Kernel-log lines as drivers print them: NVRM Xid and NVSwitch SXid, PCIe AER, file systems. Pure.

Shapes follow lines of public bug reports (NVIDIA 535 to 580 drivers, Linux 5.15 to 6.8), looked at 2026-11-30.
"""

from __future__ import annotations

# Default PCI buses of the simulated board by slot: nvml/README.md, key `bdf`.
BUSES = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db", "19", "2b", "3b", "5e", "9b", "ac", "bb", "dc")
SWITCHES = ("c1", "c2", "c3", "c4", "c5", "c6")
UNKNOWN = "pid='<unknown>', name=<unknown>, "
USER = "pid=4242, name=python3, "

XID_TEXT = {
    13: USER + "Graphics Exception: ESR 0x504730=0x1000e 0x504734=0x20 0x504728=0x4c1eb72 0x50472c=0x174",
    31: USER
    + "Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
    43: USER + "Ch 00000018",
    45: USER + "Ch 0000000a",
    48: UNKNOWN + "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer at "
    "physAddr 0x18f31d80 partition 16, subpartition 3.",
    61: UNKNOWN + "2023b230 20238a3a",
    62: UNKNOWN + "2023b230 20238a3a 2023e8b6 2023eac4 2023ec3c 2023ea86 00000000 00000000",
    63: UNKNOWN + "Row Remapper: New row (0x0000000018f31d80) marked for remapping, reset gpu to activate.",
    64: UNKNOWN + "Row Remapper: Failed to remap row (0x0000000018f31d80)",
    69: USER + "Class Error: ChId 0008, Class 0000cbc0, Offset 00000184, Data ffffffff, ErrorCode 00000004",
    74: UNKNOWN + "NVLink: fatal error detected on link 1",
    79: UNKNOWN + "GPU has fallen off the bus.",
    92: UNKNOWN + "High single-bit ECC error rate",
    94: UNKNOWN + "Contained: SM (0x1). RST: No, D-RST: No",
    95: UNKNOWN + "Uncontained: FBHUB. RST: Yes, D-RST: No",
    109: USER + "Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005",
    119: "pid=4242, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU{slot} GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20801702 0x4).",
    120: UNKNOWN
    + "GSP Error: Task 1 raised error code 0x5 for reason 0x0 at 0x63f01ac (0 more errors skipped)",
    154: "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
}

FILE_SYSTEMS = {
    "ext4": (
        "EXT4-fs error (device {dev}): ext4_find_entry:1612: inode #2: comm python3: reading directory lblock 0",
        "EXT4-fs ({dev}): Remounting filesystem read-only",
    ),
    "xfs": (
        "XFS ({dev}): log I/O error -5",
        "XFS ({dev}): Filesystem has been shut down due to log error (0x2).",
    ),
    "nfs": ("nfs: server {dev} not responding, still trying",),
    "lustre": (
        "LustreError: 11-0: {dev}-OST0000-osc-ffff8f0000000000: operation ost_read to node 10.0.0.1@tcp failed: "
        "rc = -5",
        "Lustre: {dev}-OST0000-osc-ffff8f0000000000: Connection to {dev}-OST0000 (at 10.0.0.1@tcp) was lost; in "
        "progress operations using this service will wait for recovery to complete",
    ),
}


def bdf(gpu: str, state: dict[str, str]) -> str:
    """PCI address (`0000:5d:00.0`) of a slot (`gpu3`), from the state file or the board's default."""
    return state.get(f"{gpu}.bdf", f"0000:{BUSES[int(gpu[3:])]}:00.0")


def xid(number: int, address: str, text: str = "") -> list[str]:
    """The driver prints domain:bus:device without the function."""
    short = address.rsplit(".", 1)[0]
    tail = text or XID_TEXT.get(number, UNKNOWN + "error")
    slot = next((index for index, bus in enumerate(BUSES) if f":{bus}:" in address), 0)
    lines = [f"NVRM: Xid (PCI:{short}): {number}, {tail.replace('{slot}', str(slot))}"]
    if number == 79:
        lines.append(f"NVRM: GPU {address}: GPU has fallen off the bus.")
    return lines


def sxid(number: int, switch: int, fatal: bool) -> list[str]:
    """One SXid is up to three lines: text, severity and engine, data."""
    head = f"nvidia-nvswitch{switch}: SXid (PCI:0000:{SWITCHES[switch]}:00.0): {number}, "
    return [
        head + ("Fatal" if fatal else "Non-fatal") + ", Link 32 LTSSM Fault Up",
        head + f"Severity {1 if fatal else 0} Engine instance 32 Sub-engine instance 00",
        head + "Data {0x50610002, 0x10100030, 0x00000000, 0x10100030, 0x00000000, 0x00000000}",
    ]


def aer(address: str, kind: str) -> list[str]:
    """The root port speaks; the GPU is another address below it. The NVIDIA driver has no recovery callback."""
    port = f"0000:{int(address[5:7], 16) - 1:02x}:00.0"
    if kind == "corrected":
        return [
            f"pcieport {port}: AER: Correctable error message received from {address}",
            f"nvidia {address}: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
            f"nvidia {address}:   device [10de:2330] error status/mask=00000001/0000a000",
            f"nvidia {address}:    [ 0] RxErr                  (First)",
        ]
    name = "Fatal" if kind == "fatal" else "Non-Fatal"
    return [
        f"pcieport {port}: AER: Uncorrectable ({name}) error message received from {address}",
        f"nvidia {address}: PCIe Bus Error: severity=Uncorrectable ({name}), type=Transaction Layer, (Requester ID)",
        f"nvidia {address}:   device [10de:2330] error status/mask=00004000/00000000",
        f"nvidia {address}:    [14] CmpltTO                (First)",
        f"nvidia {address}: AER: can't recover (no error_detected callback)",
        f"pcieport {port}: AER: device recovery failed",
    ]
