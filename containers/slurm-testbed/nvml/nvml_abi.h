/*
 * The part of NVML's binary interface that this library answers: numbers and layouts, written from the public reference
 * (NVIDIA Management Library API reference) and checked against nvidia-ml-py 13.615.71, 2026-11-30. Only 64-bit Linux.
 */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#include <stdint.h>

typedef unsigned int nvmlReturn_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
};

/* Each versioned struct says its size in the low 24 bits and its version above. */
#define STRUCT_VERSION(type, n) ((unsigned)sizeof(type) | ((unsigned)(n) << 24))

enum { MEMORY_CORRECTED = 0, MEMORY_UNCORRECTED = 1 };
enum { ECC_VOLATILE = 0, ECC_AGGREGATE = 1 };
enum { EVENT_SBE = 0x1, EVENT_DBE = 0x2, EVENT_XID = 0x8 };
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEM = 2, CLOCK_VIDEO = 3 };
enum { VALUE_DOUBLE = 0, VALUE_UINT = 1, VALUE_ULL = 3, VALUE_SINT = 5 };
enum { NVLINK_REMOTE_GPU = 0, NVLINK_REMOTE_SWITCH = 2 };

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned long long l1Cache, l2Cache, deviceMemory, registerFile;
} nvmlEccErrorCounts_t;

typedef struct {
    unsigned version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
    unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
    unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie;
    unsigned long long aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned bThresholdExceeded;
} nvmlEccSramErrorStatus_t;

typedef struct {
    unsigned max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;

typedef struct {
    unsigned corrActive, corrInactive, uncActive, uncInactive, bPending, bFailureOccurred;
} nvmlRemappedRowsInfo_v2_t;

typedef struct {
    unsigned version, bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_t;

/* One layout for three: addressing mode, unrepairable memory flag, distance to the temperature limit. */
typedef struct {
    unsigned version;
    int value;
} nvmlVersionedValue_t;

typedef struct {
    unsigned version, sensorType;
    int temperature;
} nvmlTemperature_t;

typedef struct {
    unsigned long long referenceTime, violationTime;
} nvmlViolationTime_t;

typedef union {
    double dVal;
    unsigned uiVal;
    unsigned long long ullVal;
    int siVal;
} nvmlValue_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
    unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_t;

typedef struct {
    unsigned version, mode, numProcArrayEntries;
    nvmlProcessDetail_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount, sharedJpegCount;
    unsigned sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId, state;
} nvmlGpuFabricInfo_t;

typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId, state, healthMask;
} nvmlGpuFabricInfo_v2_t;

typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId, state, healthMask;
    unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    unsigned version;
    char branch[80];
} nvmlSystemDriverBranchInfo_t;

_Static_assert(sizeof(nvmlPciInfo_t) == 68, "pci info");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "memory");
_Static_assert(sizeof(nvmlEccSramErrorStatus_t) == 104, "sram status");
_Static_assert(sizeof(nvmlRemappedRowsInfo_v2_t) == 24, "remapped rows");
_Static_assert(sizeof(nvmlRepairStatus_t) == 12, "repair status");
_Static_assert(sizeof(nvmlVersionedValue_t) == 8, "versioned value");
_Static_assert(sizeof(nvmlTemperature_t) == 12, "temperature");
_Static_assert(sizeof(nvmlFieldValue_t) == 40, "field value");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24, "process");
_Static_assert(sizeof(nvmlProcessDetail_t) == 32, "process detail");
_Static_assert(sizeof(nvmlProcessDetailList_t) == 24, "process detail list");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "attributes");
_Static_assert(sizeof(nvmlEventData_t) == 32, "event");
_Static_assert(sizeof(nvmlGpuFabricInfo_t) == 28, "fabric v1");
_Static_assert(sizeof(nvmlGpuFabricInfo_v2_t) == 36, "fabric v2");
_Static_assert(sizeof(nvmlGpuFabricInfo_v3_t) == 40, "fabric v3");
_Static_assert(sizeof(nvmlSystemDriverBranchInfo_t) == 84, "driver branch");

#endif
