"""What the simulated NVML must answer, key by key, and the names that the asking child has."""

from __future__ import annotations

# Every child starts with this: t() gives a call's value, or "E" and NVML's code.
PRELUDE = """
import ctypes, json, os, sys, threading, time
import pynvml as nv
STATE = os.environ["GPUSIM_STATE"]
def put(*lines):
    with open(STATE + ".tmp", "w") as file:
        file.write("".join(line + "\\n" for line in lines))
    os.replace(STATE + ".tmp", STATE)
def t(call, *args):
    try:
        return call(*args)
    except nv.NVMLError as exc:
        return "E%d" % exc.value
def d(index):
    return nv.nvmlDeviceGetHandleByIndex(index)
def fields(index, *ids):
    values = nv.nvmlDeviceGetFieldValues(d(index), list(ids))
    wide = nv.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
    return [(v.nvmlReturn, v.value.ullVal if v.valueType == wide else v.value.uiVal) for v in values]
def filled(call, index, struct):
    call(d(index), ctypes.byref(struct))
    return struct
def fabric(index):
    f = filled(nv.nvmlDeviceGetGpuFabricInfoV, index, nv.c_nvmlGpuFabricInfo_v3_t())
    return [f.state, f.status, f.cliqueId, f.healthMask, f.healthSummary, bytes(f.clusterUuid).hex()]
def sram(index):
    s = filled(nv.nvmlDeviceGetSramEccErrorStatus, index, nv.c_nvmlEccSramErrorStatus_v1_t())
    return [getattr(s, name) for name, _ in s._fields_[1:]]
def procs(call, index):
    return [(p.pid, p.usedGpuMemory) for p in call(d(index))]
def hist(index):
    h = nv.nvmlDeviceGetRowRemapperHistogram(d(index))
    return [h.max, h.high, h.partial, h.low, h.none]
"""

ECC = "nv.nvmlDeviceGetTotalEccErrors"
PLACE = "nv.nvmlDeviceGetMemoryErrorCounter"
GiB = 1 << 30

# (lines of the state file, expression in the child, value)
CASES: list[tuple[str, str, object]] = [
    ("", "nv.nvmlDeviceGetCount()", 8),
    ("gpus=4", "nv.nvmlDeviceGetCount()", 4),
    ("gpus=0", "[nv.nvmlDeviceGetCount(), t(d, 0)]", [0, "E2"]),
    (
        "driver=570.1.2",
        "[nv.nvmlSystemGetDriverVersion(), nv.nvmlSystemGetDriverBranch().branch]",
        ["570.1.2", "r570_00"],
    ),
    ("driver=570.1.2", "nv.nvmlSystemGetNVMLVersion()", "12.570.1.2"),
    ("nvml=13.1", "nv.nvmlSystemGetNVMLVersion()", "13.1"),
    (
        "cuda=13000",
        "[nv.nvmlSystemGetCudaDriverVersion(), nv.nvmlSystemGetCudaDriverVersion_v2()]",
        [13000, 13000],
    ),
    ("node=a", "nv.nvmlSystemGetProcessName(os.getpid()) == os.readlink('/proc/self/exe')", True),
    ("", "nv.nvmlErrorString(15)", "GPU is lost"),
    ("", "nv.nvmlErrorString(999)", "Unknown Error"),
    ("gpu3.uuid=GPU-x", "nv.nvmlDeviceGetUUID(d(3))", "GPU-x"),
    ("gpu3.uuid=GPU-x", "nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByUUID('GPU-x'))", 3),
    ("gpu3.serial=77", "nv.nvmlDeviceGetSerial(d(3))", "77"),
    ("gpu3.serial=77", "nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleBySerial(b'77'))", 3),
    ("", "t(nv.nvmlDeviceGetHandleByUUID, 'GPU-none')", "E6"),
    ("gpu3.bdf=0001:5e:00.0", "nv.nvmlDeviceGetPciInfo(d(3)).busId", "00000001:5E:00.0"),
    ("gpu3.bdf=0001:5e:00.0", "nv.nvmlDeviceGetPciInfo(d(3)).domain", 1),
    ("", "nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(b'00000000:5D:00.0'))", 3),
    ("", "nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetHandleByPciBusId(b'0000:5d:00.0'))", 3),
    ("", "t(nv.nvmlDeviceGetHandleByPciBusId, b'0000:77:00.0')", "E6"),
    ("gpu0.minor=5", "nv.nvmlDeviceGetMinorNumber(d(0))", 5),
    ("gpu3.name=NVIDIA X", "nv.nvmlDeviceGetName(d(3))", "NVIDIA X"),
    ("gpu3.vbios=1.2", "nv.nvmlDeviceGetVbiosVersion(d(3))", "1.2"),
    ("gpu3.part=699-1", "nv.nvmlDeviceGetBoardPartNumber(d(3))", "699-1"),
    (
        "gpu3.brand=2\ngpu3.arch=10",
        "[nv.nvmlDeviceGetBrand(d(3)), nv.nvmlDeviceGetArchitecture(d(3))]",
        [2, 10],
    ),
    ("gpu3.cc=10.0", "nv.nvmlDeviceGetCudaComputeCapability(d(3))", [10, 0]),
    ("gpu3.numa=7", "nv.nvmlDeviceGetNumaNodeId(d(3))", 7),
    ("gpu3.persistence=0", "[nv.nvmlDeviceGetPersistenceMode(d(i)) for i in (2, 3)]", [1, 0]),
    ("gpu3.compute_mode=3", "nv.nvmlDeviceGetComputeMode(d(3))", 3),
    ("gpu3.pstate=2", "[nv.nvmlDeviceGetPerformanceState(d(3)), nv.nvmlDeviceGetPowerState(d(3))]", [2, 2]),
    (
        "gpu3.util=90\ngpu3.util_mem=40",
        "[getattr(nv.nvmlDeviceGetUtilizationRates(d(3)), k) for k in ('gpu', 'memory')]",
        [90, 40],
    ),
    (
        "gpu3.temp=88",
        "[nv.nvmlDeviceGetTemperature(d(3), 0), nv.nvmlDeviceGetTemperatureV(d(3), 0)]",
        [88, 88],
    ),
    ("gpu3.temp=88", "nv.nvmlDeviceGetMarginTemperature(d(3))", -1),
    ("gpu3.temp_margin=12", "nv.nvmlDeviceGetMarginTemperature(d(3))", 12),
    (
        "gpu3.tlimit.slowdown=-2",
        "[(v.nvmlReturn, v.value.siVal, v.valueType) for v in nv.nvmlDeviceGetFieldValues(d(3), [193, 194])]",
        [[3, 0, 5], [0, -2, 5]],
    ),
    (
        "gpu3.clock.app_default.graphics=1500\ngpu3.clock.app_default.mem=2000",
        "[nv.nvmlDeviceGetDefaultApplicationsClock(d(3), k) for k in (0, 2)]"
        " + [nv.nvmlDeviceGetApplicationsClock(d(3), 0)]",
        [1500, 2000, 1980],
    ),
    (
        "gpu3.nvlink.4.effective_ber=0x30f\ngpu3.nvlink.4.symbol_ber=0xfff\ngpu3.nvlink_switches=6"
        "\ngpu3.nvlink.2.state=2",
        "fields(3, (220, 4), (222, 4), (222, 5), 147, (165, 2))",
        [[0, 0x30F], [0, 0xFFF], [3, 0], [0, 6], [0, 2]],
    ),
    (
        "model=A100-MIG\ngpu3.mig_instances=2\ngpu3.mig_profiles=3g.40gb,2g.20gb\ngpu2.mig_names=0",
        "[nv.nvmlDeviceGetName(nv.nvmlDeviceGetMigDeviceHandleByIndex(d(g), i)) for g, i in ((3, 0), (3, 1), (2, 0))]"
        " + [(a.gpuInstanceSliceCount, a.memorySizeMB) for a in"
        " [nv.nvmlDeviceGetAttributes_v2(nv.nvmlDeviceGetMigDeviceHandleByIndex(d(3), 0))]]",
        [
            "NVIDIA A100-SXM4-80GB MIG 3g.40gb",
            "NVIDIA A100-SXM4-80GB MIG 2g.20gb",
            "NVIDIA A100-SXM4-80GB",
            [3, 40448],
        ],
    ),
    ("gpu3.temp_mem=97", "fields(3, 82)", [[0, 97]]),
    (
        "gpu3.temp.shutdown=1\ngpu3.temp.slowdown=2\ngpu3.temp.mem_max=3\ngpu3.temp.gpu_max=4",
        "[t(nv.nvmlDeviceGetTemperatureThreshold, d(3), k) for k in range(5)]",
        [1, 2, 3, 4, "E3"],
    ),
    ("gpu3.fan=55", "[t(nv.nvmlDeviceGetFanSpeed, d(i)) for i in (2, 3)]", ["E3", 55]),
    ("gpu3.power=650000", "[nv.nvmlDeviceGetPowerUsage(d(3)), *fields(3, 186)]", [650000, [0, 650000]]),
    (
        "gpu3.power_limit=300000\ngpu3.power_limit.min=1\ngpu3.power_limit.max=2\ngpu3.power_limit.default=3",
        "[nv.nvmlDeviceGetPowerManagementLimit(d(3)), nv.nvmlDeviceGetEnforcedPowerLimit(d(3)),"
        " nv.nvmlDeviceGetPowerManagementLimitConstraints(d(3)), nv.nvmlDeviceGetPowerManagementDefaultLimit(d(3))]",
        [300000, 300000, [1, 2], 3],
    ),
    ("gpu3.power_limit.enforced=9", "nv.nvmlDeviceGetEnforcedPowerLimit(d(3))", 9),
    (
        "gpu3.energy=0x100000000",
        "[nv.nvmlDeviceGetTotalEnergyConsumption(d(3)), *fields(3, 83)]",
        [1 << 32, [0, 1 << 32]],
    ),
    (
        "gpu3.clock.sm=1000\ngpu3.clock.mem=2\ngpu3.clock.video=3",
        "[nv.nvmlDeviceGetClockInfo(d(3), k) for k in range(4)]",
        [1000, 1000, 2, 3],
    ),
    ("gpu3.clock.graphics=7", "nv.nvmlDeviceGetClock(d(3), 0, 0)", 7),
    (
        "gpu3.clock.max.graphics=1\ngpu3.clock.max.sm=2\ngpu3.clock.max.mem=3\ngpu3.clock.max.video=4",
        "[nv.nvmlDeviceGetMaxClockInfo(d(3), k) for k in range(4)]",
        [1, 2, 3, 4],
    ),
    (
        "gpu3.clock.app.graphics=5\ngpu3.clock.app.mem=6",
        "[nv.nvmlDeviceGetApplicationsClock(d(3), k) for k in (0, 2)]",
        [5, 6],
    ),
    ("gpu3.clock_reasons=0x88", "nv.nvmlDeviceGetCurrentClocksEventReasons(d(3))", 0x88),
    ("gpu3.clock_reasons=0x88", "nv.nvmlDeviceGetCurrentClocksThrottleReasons(d(3))", 0x88),
    ("gpu3.clock_reasons_supported=0xff", "nv.nvmlDeviceGetSupportedClocksEventReasons(d(3))", 0xFF),
    *(
        (f"gpu3.violation.{name}=123", f"nv.nvmlDeviceGetViolationStatus(d(3), {number}).violationTime", 123)
        for number, name in enumerate(
            ["power", "thermal", "sync_boost", "board_limit", "low_util", "reliability"]
        )
    ),
    (
        "gpu3.violation.sw_thermal=1\ngpu3.violation.hw_thermal=2\ngpu3.violation.hw_power_brake=3",
        "fields(3, 269, 270, 271)",
        [[0, 1], [0, 2], [0, 3]],
    ),
    (
        f"gpu3.mem.total={80 * GiB}\ngpu3.mem.used={GiB}\ngpu3.mem.reserved={GiB}",
        "[[getattr(nv.nvmlDeviceGetMemoryInfo(d(3)), k) for k in ('total', 'free', 'used')],"
        " [getattr(nv.nvmlDeviceGetMemoryInfo(d(3), nv.nvmlMemory_v2), k)"
        " for k in ('total', 'reserved', 'free', 'used')]]",
        [[80 * GiB, 78 * GiB, 2 * GiB], [80 * GiB, GiB, 78 * GiB, GiB]],
    ),
    ("", "t(nv.nvmlDeviceGetMemoryInfo, d(3), 0x01000028)", "E25"),
    (
        "gpu3.bar1.total=9\ngpu3.bar1.used=4",
        "[getattr(nv.nvmlDeviceGetBAR1MemoryInfo(d(3)), k) for k in ('bar1Total', 'bar1Free', 'bar1Used')]",
        [9, 5, 4],
    ),
    (
        "gpu3.ecc_mode=0",
        f"[t(nv.nvmlDeviceGetEccMode, d(3)), t({ECC}, d(3), 0, 0), t({ECC}, d(2), 0, 0)]",
        [[0, 0], "E3", 0],
    ),
    ("gpu3.ecc_mode=!3", "t(nv.nvmlDeviceGetEccMode, d(3))", "E3"),
    (
        "gpu3.ecc_mode_pending=0",
        "[nv.nvmlDeviceGetEccMode(d(3)), *fields(3, 1, 2)]",
        [[1, 0], [0, 1], [0, 0]],
    ),
    *(
        (f"gpu3.ecc.{kind}.{when}=7", f"[{ECC}(d(3), {k}, {w}), *fields(3, {3 + k + 2 * w})]", [7, [0, 7]])
        for k, kind in enumerate(["corrected", "uncorrected"])
        for w, when in enumerate(["volatile", "aggregate"])
    ),
    *(
        (
            f"gpu3.ecc.uncorrected.volatile.{place}=5",
            f"[t({PLACE}, d(3), 1, 0, {number}), {ECC}(d(3), 1, 0)]",
            [5, 5],
        )
        for number, place in enumerate(["l1", "l2", "dram", "regfile", "texture", "texshm", "cbu", "sram"])
    ),
    ("gpu3.ecc.corrected.aggregate.l2=2\ngpu3.ecc.corrected.aggregate.cbu=1", f"{PLACE}(d(3), 0, 1, 7)", 3),
    ("gpu3.ecc.corrected.aggregate.l2=2\ngpu3.ecc.corrected.aggregate.dram=1", f"{ECC}(d(3), 0, 1)", 3),
    ("gpu3.ecc.uncorrected.volatile.dram=5", "nv.nvmlDeviceGetDetailedEccErrors(d(3), 1, 0).deviceMemory", 5),
    ("gpu3.ecc.uncorrected.aggregate=!999", f"t({ECC}, d(3), 1, 1)", "E999"),
    (
        "gpu3.sram.unc_parity.aggregate=1\ngpu3.sram.unc_secded.aggregate=2\ngpu3.sram.cor.aggregate=3\n"
        "gpu3.sram.unc_parity.volatile=4\ngpu3.sram.unc_secded.volatile=5\ngpu3.sram.cor.volatile=6\n"
        "gpu3.sram.bucket.l2=7\ngpu3.sram.bucket.sm=8\ngpu3.sram.bucket.pcie=9\ngpu3.sram.bucket.mcu=10\n"
        "gpu3.sram.bucket.other=11\ngpu3.sram.threshold_exceeded=1",
        "sram(3)",
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1],
    ),
    ("gpu3.ecc.uncorrected.aggregate.sram=4", "sram(3)[1]", 4),
    (
        "gpu3.remap.corrected=1\ngpu3.remap.uncorrected=2\ngpu3.remap.pending=1\ngpu3.remap.failure=1",
        "[nv.nvmlDeviceGetRemappedRows(d(3)), *fields(3, 142, 143, 144, 145)]",
        [[1, 2, 1, 1], [0, 1], [0, 2], [0, 1], [0, 1]],
    ),
    (
        "gpu3.remap.uncorrected=2",
        "(lambda r: [r.corrActiveRemaps, r.uncActiveRemaps, r.bPending])"
        "(filled(nv.nvmlDeviceGetRemappedRows_v2, 3, nv.c_nvmlRemappedRowsInfo_v2_t()))",
        [0, 2, 0],
    ),
    (
        "gpu3.remap.hist.max=1\ngpu3.remap.hist.high=2\ngpu3.remap.hist.partial=3\n"
        "gpu3.remap.hist.low=4\ngpu3.remap.hist.none=5",
        "hist(3)",
        [1, 2, 3, 4, 5],
    ),
    ("gpu3.unrepairable=1", "nv.nvmlDeviceGetUnrepairableMemoryFlag_v1(d(3))", 1),
    ("gpu3.repair.channel=1", "nv.nvmlDeviceGetRepairStatus(d(3))", [1, 0]),
    ("gpu3.repair.tpc=1", "nv.nvmlDeviceGetRepairStatus(d(3))", [0, 1]),
    (
        "gpu3.pcie.width=8",
        "[nv.nvmlDeviceGetCurrPcieLinkWidth(d(3)), nv.nvmlDeviceGetMaxPcieLinkWidth(d(3))]",
        [8, 16],
    ),
    ("gpu3.pcie.max_width=8", "nv.nvmlDeviceGetMaxPcieLinkWidth(d(3))", 8),
    (
        "gpu3.pcie.gen=1",
        "[nv.nvmlDeviceGetCurrPcieLinkGeneration(d(3)), nv.nvmlDeviceGetPcieSpeed(d(3))]",
        [1, 2500],
    ),
    (
        "gpu3.pcie.max_gen=4",
        "[nv.nvmlDeviceGetMaxPcieLinkGeneration(d(3)), nv.nvmlDeviceGetGpuMaxPcieLinkGeneration(d(3))]",
        [4, 5],
    ),
    ("gpu3.pcie.gpu_max_gen=6", "nv.nvmlDeviceGetGpuMaxPcieLinkGeneration(d(3))", 6),
    ("gpu3.pcie.replay=31", "[nv.nvmlDeviceGetPcieReplayCounter(d(3)), *fields(3, 94)]", [31, [0, 31]]),
    ("gpu3.pcie.tx=1\ngpu3.pcie.rx=2", "[nv.nvmlDeviceGetPcieThroughput(d(3), k) for k in (0, 1)]", [1, 2]),
    *(
        (f"gpu3.pcie.err.{name}=3", f"fields(3, {number})", [[0, 3]])
        for number, name in [
            (169, "l0_to_recovery"),
            (173, "correctable"),
            (174, "naks_received"),
            (175, "receiver"),
        ]
        + [(176, "bad_tlp"), (177, "naks_sent"), (178, "bad_dllp"), (179, "non_fatal"), (180, "fatal")]
        + [(181, "unsupported_req"), (182, "lcrc"), (183, "lane")]
    ),
    (
        "gpu3.nvlinks=4",
        "[[t(nv.nvmlDeviceGetNvLinkState, d(3), k) for k in (3, 4)], *fields(3, 91)]",
        [[1, "E2"], [0, 4]],
    ),
    (
        "gpu3.nvlink.5.state=0",
        "[[nv.nvmlDeviceGetNvLinkState(d(3), k) for k in (4, 5)], *fields(3, (165, 5), (165, 4), 89)]",
        [[1, 0], [0, 0], [0, 1], [0, 0]],
    ),
    *(
        (
            f"gpu3.nvlink.7.err.{name}=9",
            f"[nv.nvmlDeviceGetNvLinkErrorCounter(d(3), 7, {number}), *fields(3, {by_link}, {total})]",
            [9, [0, 9], [0, 9]],
        )
        for number, name, by_link, total in [
            (0, "replay", 109, 52),
            (1, "recovery", 115, 59),
            (2, "crc_flit", 97, 38),
            (3, "crc_data", 103, 45),
            (4, "ecc_data", 155, 160),
        ]
    ),
    *(
        (f"gpu3.nvlink.7.err.{name}=9", f"fields(3, ({number}, 7), ({number}, 6))", [[0, 9], [0, 0]])
        for number, name in [
            (206, "malformed"),
            (207, "overrun"),
            (208, "rcv"),
            (209, "rcv_remote"),
            (210, "rcv_general"),
        ]
        + [(211, "integrity"), (212, "xmit_discards"), (213, "recovery_ok"), (214, "recovery_failed")]
        + [(215, "recovery_events"), (219, "effective"), (221, "symbol")]
    ),
    (
        "gpu3.nvlink.2.remote=0000:9a:00.0",
        "nv.nvmlDeviceGetNvLinkRemotePciInfo(d(3), 2).busId",
        "00000000:9A:00.0",
    ),
    ("gpu3.nvlink.version=7", "nv.nvmlDeviceGetNvLinkVersion(d(3), 2)", 7),
    (
        f"gpu3.proc=100:{GiB},200:-",
        "procs(nv.nvmlDeviceGetComputeRunningProcesses, 3)",
        [[100, GiB], [200, None]],
    ),
    (f"gpu3.proc=100:{GiB}", "procs(nv.nvmlDeviceGetComputeRunningProcesses_v2, 3)", [[100, GiB]]),
    (f"gpu3.proc=100:{GiB},200:-", "nv.nvmlDeviceGetMemoryInfo(d(3), nv.nvmlMemory_v2).used", GiB),
    ("gpu3.proc.graphics=7:1", "procs(nv.nvmlDeviceGetGraphicsRunningProcesses, 3)", [[7, 1]]),
    ("gpu3.proc.mps=8:1", "procs(nv.nvmlDeviceGetMPSComputeRunningProcesses, 3)", [[8, 1]]),
    (
        "gpu3.proc=1:1\ngpu3.proc.mps=8:1",
        "[p.pid for p in nv.nvmlDeviceGetRunningProcessDetailList(d(3), nv.nvmlProcessDetailList_v1, 3)]",
        [1, 8],
    ),
    ("gpu3.proc=!4", "t(nv.nvmlDeviceGetComputeRunningProcesses, d(3))", "E4"),
    ("", "nv.nvmlDeviceGetComputeRunningProcesses(d(3))", []),
    (
        "gpu3.mig=1",
        "[nv.nvmlDeviceGetMigMode(d(3)), t(nv.nvmlDeviceGetUtilizationRates, d(3))]",
        [[1, 1], "E3"],
    ),
    ("gpu3.mig_pending=1", "nv.nvmlDeviceGetMigMode(d(3))", [0, 1]),
    (
        "gpu3.mig=1\ngpu3.mig_instances=2",
        "[t(nv.nvmlDeviceGetMigDeviceHandleByIndex, d(3), 2), t(nv.nvmlDeviceGetRemappedRows, d(3))]",
        ["E6", "E3"],
    ),
    ("gpu3.recovery_action=4", "fields(3, 230)", [[0, 4]]),
    ("gpu3.recovery_action=!3", "fields(3, 230, 1)", [[3, 0], [0, 1]]),
    ("gpu3.field.230=!15\ngpu3.field.99=6", "fields(3, 230, 99, 1)", [[15, 0], [0, 6], [0, 1]]),
    ("", "fields(3, 226, 227, 307)", [[3, 0], [3, 0], [3, 0]]),
    ("gpu3.fabric.state=1", "fabric(3)[0]", 1),
    (
        "gpu3.fabric.status=6\ngpu3.fabric.clique=2\ngpu3.fabric.health_mask=0x1a9\ngpu3.fabric.health_summary=2\n"
        "gpu3.fabric.cluster_uuid=00112233-4455-6677-8899-aabbccddeeff",
        "fabric(3)",
        [3, 6, 2, 0x1A9, 2, "00112233445566778899aabbccddeeff"],
    ),
    ("gpu3.fabric.state=0", "fabric(3)", [0, 0, 0, 0, 0, "0" * 32]),
    ("", "filled(nv.nvmlDeviceGetGpuFabricInfo, 3, nv.c_nvmlGpuFabricInfo_t()).state", 3),
    ("", "filled(nv.nvmlDeviceGetGpuFabricInfoV, 3, nv.c_nvmlGpuFabricInfoV_t()).healthMask", 0x1AA),
    (
        "gpu3.inforom_corrupt=1",
        "[t(nv.nvmlDeviceValidateInforom, d(i)) for i in (2, 3)] + [t(nv.nvmlDeviceGetInforomImageVersion, d(3))]",
        [None, "E14", "E14"],
    ),
    ("gpu3.inforom.image=G1", "nv.nvmlDeviceGetInforomImageVersion(d(3))", "G1"),
    ("gpu3.addressing=2", "nv.nvmlDeviceGetAddressingMode(d(3))", 2),
    ("gpu*.temp=50\ngpu3.temp=60", "[nv.nvmlDeviceGetTemperature(d(i), 0) for i in (2, 3)]", [50, 60]),
    ("gpu3.temp=60\ngpu3.temp=61", "nv.nvmlDeviceGetTemperature(d(3), 0)", 61),
    ("# a comment\n\n  gpu3.temp = 60  ", "nv.nvmlDeviceGetTemperature(d(3), 0)", 60),
    # what may happen to a GPU
    ("gpu3.present=0", "[nv.nvmlDeviceGetCount(), nv.nvmlDeviceGetMinorNumber(d(3)), t(d, 7)]", [7, 4, "E2"]),
    ("gpu3.present=0", "t(nv.nvmlDeviceGetHandleByPciBusId, b'0000:5d:00.0')", "E6"),
    ("order=3,1,0", "[nv.nvmlDeviceGetMinorNumber(d(i)) for i in range(8)]", [3, 1, 0, 2, 4, 5, 6, 7]),
    (
        "order=3,1,0\ngpu1.present=0",
        "[nv.nvmlDeviceGetMinorNumber(d(i)) for i in range(7)]",
        [3, 0, 2, 4, 5, 6, 7],
    ),
    ("order=3,1,0", "[nv.nvmlDeviceGetIndex(d(i)) for i in range(8)]", list(range(8))),
    (
        "gpu3.lost=1",
        "[nv.nvmlDeviceGetCount(), t(nv.nvmlDeviceGetTemperature, d(3), 0), t(nv.nvmlDeviceGetUUID, d(3))]",
        [8, "E15", "E15"],
    ),
    (
        "gpu3.lost=1",
        "[t(nv.nvmlDeviceGetFieldValues, d(3), [230]), t(nv.nvmlDeviceGetTemperature, d(2), 0)]",
        ["E15", 31],
    ),
    ("gpu3.lost=1\ngpu3.lost_at=handle", "[nv.nvmlDeviceGetCount(), t(d, 3)]", [8, "E15"]),
    ("gpu3.denied=1", "[nv.nvmlDeviceGetCount(), t(d, 3)]", [8, "E4"]),
    # faults by call
    (
        "error.nvmlDeviceGetTemperature=999",
        "[t(nv.nvmlDeviceGetTemperature, d(i), 0) for i in (2, 3)]",
        ["E999", "E999"],
    ),
    (
        "error.gpu3.nvmlDeviceGetTemperature=10",
        "[t(nv.nvmlDeviceGetTemperature, d(i), 0) for i in (2, 3)]",
        [31, "E10"],
    ),
    (
        "error.gpu*.nvmlDeviceGetTemperature=10",
        "[t(nv.nvmlDeviceGetTemperature, d(i), 0) for i in (2, 3)]",
        ["E10", "E10"],
    ),
    ("error.gpu3.all=16", "[t(d, 2) and 0, t(d, 3)]", [0, "E16"]),
    ("error.all=17", "[t(nv.nvmlDeviceGetCount), t(nv.nvmlSystemGetDriverVersion)]", ["E17", "E17"]),
    ("error.nvmlDeviceGetHandleByIndex_v2=17", "[t(d, 0), nv.nvmlDeviceGetCount()]", ["E17", 8]),
    ("error.nvmlInitWithFlags=9", "t(nv.nvmlInit)", "E9"),
    ("error.nvmlInitWithFlags=18", "t(nv.nvmlInit)", "E18"),
    ("error.nvmlDeviceGetTemperature=31", "t(nv.nvmlDeviceGetTemperature, d(0), 0)", "E31"),
    # models
    ("", "nv.nvmlDeviceGetName(d(0))", "NVIDIA H100 80GB HBM3"),
    (
        "model=H200",
        "[nv.nvmlDeviceGetName(d(0)), nv.nvmlDeviceGetMemoryInfo(d(0)).total >> 20]",
        ["NVIDIA H200", 143771],
    ),
    (
        "model=A100",
        "[nv.nvmlDeviceGetName(d(0)), *fields(0, 91), nv.nvmlDeviceGetMigMode(d(0))]",
        ["NVIDIA A100-SXM4-80GB", [0, 12], [0, 0]],
    ),
    (
        "model=A100",
        "[t(fabric, 0), t(nv.nvmlDeviceGetUnrepairableMemoryFlag_v1, d(0)), nv.nvmlDeviceGetRepairStatus(d(0))]",
        ["E3", "E3", [0, 0]],
    ),
    (
        "model=A100",
        f"[t({PLACE}, d(0), 0, 0, k) for k in range(8)]",
        ["E3", "E3", 0, "E3", "E3", "E3", "E3", 0],
    ),
    (
        "model=A100-MIG",
        "[nv.nvmlDeviceGetMigMode(d(0)), t(nv.nvmlDeviceGetRemappedRows, d(0)), t(hist, 0),"
        " t(nv.nvmlDeviceGetUtilizationRates, d(0)), t(nv.nvmlDeviceGetEncoderUtilization, d(0)),"
        " *fields(0, 143, 230),"
        f" {ECC}(d(0), 1, 0), nv.nvmlDeviceGetCount()]",
        [[1, 1], "E3", "E3", "E3", "E3", [3, 0], [0, 0], 0, 8],
    ),
    (
        "model=A100-MIG",
        "(lambda m: [nv.nvmlDeviceIsMigDeviceHandle(m).value, nv.nvmlDeviceGetUUID(m)[:4],"
        " t(nv.nvmlDeviceGetTemperature, m, 0),"
        " nv.nvmlDeviceGetIndex(nv.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(m)),"
        " nv.nvmlDeviceGetMaxMigDeviceCount(d(0)),"
        " nv.nvmlDeviceGetGpuInstanceId(m), nv.nvmlDeviceGetMemoryInfo(m).total >> 30])"
        "(nv.nvmlDeviceGetMigDeviceHandleByIndex(d(3), 6))",
        [1, "MIG-", "E2", 3, 7, 13, 10],
    ),
    (
        "model=L40S",
        "[nv.nvmlDeviceGetPerformanceState(d(0)), nv.nvmlDeviceGetCurrPcieLinkGeneration(d(0)),"
        " nv.nvmlDeviceGetCurrPcieLinkWidth(d(0)), nv.nvmlDeviceGetMaxPcieLinkGeneration(d(0)), t(fabric, 0),"
        " t(nv.nvmlDeviceGetNvLinkState, d(0), 0), t(nv.nvmlDeviceGetNvLinkErrorCounter, d(0), 0, 0),"
        " t(nv.nvmlDeviceGetMigMode, d(0)), nv.nvmlDeviceGetRemappedRows(d(0)), *fields(0, 82, 38, 91),"
        " t(nv.nvmlDeviceGetRetiredPages, d(0), 0)]",
        [8, 1, 16, 4, "E3", "E3", "E3", "E3", [0, 0, 0, 0], [3, 0], [3, 0], [0, 0], "E3"],
    ),
    (
        "model=L40S\ngpu*.pstate=0\ngpu*.pcie.gen=4",
        "[nv.nvmlDeviceGetPerformanceState(d(0)), nv.nvmlDeviceGetCurrPcieLinkGeneration(d(0))]",
        [0, 4],
    ),
    (
        "model=V100",
        "[nv.nvmlDeviceGetRetiredPages(d(0), 0), nv.nvmlDeviceGetRetiredPages_v2(d(0), 1),"
        " nv.nvmlDeviceGetRetiredPagesPendingStatus(d(0)), t(nv.nvmlDeviceGetRemappedRows, d(0)), t(hist, 0),"
        " t(sram, 0), t(nv.nvmlDeviceGetRepairStatus, d(0)), t(nv.nvmlDeviceGetMigMode, d(0)),"
        " *fields(0, 230, 29, 142)]",
        [[], [], 0, "E3", "E3", "E3", "E3", "E3", [3, 0], [0, 0], [3, 0]],
    ),
    ("model=V100", f"[t({PLACE}, d(0), 0, 0, k) for k in range(8)]", [0, 0, 0, 0, 0, 0, 0, "E3"]),
    (
        "model=V100\ngpu3.ecc.uncorrected.volatile.l2=2\ngpu3.ecc.uncorrected.volatile.dram=1",
        f"{ECC}(d(3), 1, 0)",
        3,
    ),
    (
        "model=V100\ngpu3.retired.sbe=0x10,0x20@1700000000\ngpu3.retired.dbe=0x30\ngpu3.retired.pending=1",
        "[nv.nvmlDeviceGetRetiredPages(d(3), 0), nv.nvmlDeviceGetRetiredPages_v2(d(3), 0),"
        " nv.nvmlDeviceGetRetiredPages(d(3), 1), nv.nvmlDeviceGetRetiredPagesPendingStatus(d(3)),"
        " *fields(3, 29, 30, 31)]",
        [
            [16, 32],
            [{"address": 16, "timestamp": 0}, {"address": 32, "timestamp": 1700000000}],
            [48],
            1,
            [0, 2],
            [0, 1],
            [0, 1],
        ],
    ),
]
