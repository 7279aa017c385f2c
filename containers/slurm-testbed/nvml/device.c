/* One GPU: what it is, how it runs. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpusim.h"

#define GPU_UINT(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *out) \
    { \
        ENTER(device); \
        return put_uint(gpu, key, out); \
    }
#define GPU_ULL(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned long long *out) \
    { \
        ENTER(device); \
        return put_ull(gpu, key, out); \
    }
#define GPU_TEXT(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *out, unsigned size) \
    { \
        ENTER(device); \
        return put_gpu_text(gpu, key, out, size); \
    }
#define GPU_FIXED(function, value) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *out) \
    { \
        ENTER(device); \
        NEED(out != NULL); \
        *out = (unsigned)(value); \
        return NVML_SUCCESS; \
    }

GPU_TEXT(nvmlDeviceGetSerial, "serial")
GPU_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
GPU_TEXT(nvmlDeviceGetBoardPartNumber, "part")
GPU_UINT(nvmlDeviceGetBrand, "brand")
GPU_UINT(nvmlDeviceGetArchitecture, "arch")
GPU_UINT(nvmlDeviceGetMinorNumber, "minor")
GPU_UINT(nvmlDeviceGetNumaNodeId, "numa")
GPU_UINT(nvmlDeviceGetPersistenceMode, "persistence")
GPU_UINT(nvmlDeviceGetComputeMode, "compute_mode")
GPU_UINT(nvmlDeviceGetPerformanceState, "pstate")
GPU_UINT(nvmlDeviceGetPowerState, "pstate")
GPU_UINT(nvmlDeviceGetFanSpeed, "fan")
GPU_UINT(nvmlDeviceGetPowerUsage, "power")
GPU_UINT(nvmlDeviceGetPowerManagementLimit, "power_limit")
GPU_UINT(nvmlDeviceGetPowerManagementDefaultLimit, "power_limit.default")
GPU_UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit.enforced")
GPU_ULL(nvmlDeviceGetTotalEnergyConsumption, "energy")
GPU_ULL(nvmlDeviceGetCurrentClocksEventReasons, "clock_reasons")
GPU_ULL(nvmlDeviceGetCurrentClocksThrottleReasons, "clock_reasons")
GPU_ULL(nvmlDeviceGetSupportedClocksEventReasons, "clock_reasons_supported")
GPU_ULL(nvmlDeviceGetSupportedClocksThrottleReasons, "clock_reasons_supported")
GPU_FIXED(nvmlDeviceGetNumGpuCores, model()->cores)
GPU_FIXED(nvmlDeviceGetMemoryBusWidth, model()->bus_width)
GPU_FIXED(nvmlDeviceGetModuleId, gpu + 1)
GPU_FIXED(nvmlDeviceGetBoardId, 0x1800 + gpu)
GPU_FIXED(nvmlDeviceGetMultiGpuBoard, 0)
GPU_FIXED(nvmlDeviceGetPowerManagementMode, 1)
GPU_FIXED(nvmlDeviceGetDisplayMode, 0)
GPU_FIXED(nvmlDeviceGetDisplayActive, 0)
GPU_FIXED(nvmlDeviceGetVirtualizationMode, 0)
GPU_FIXED(nvmlDeviceGetBusType, 2)

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned size)
{
    ENTER_ANY(device);
    char text[128];
    nvmlReturn_t rc = gpu_text(gpu, "name", text, 80);
    if (rc == NVML_SUCCESS && call.mig >= 0 && gpu_number(gpu, "mig_names")) {
        strcat(text, " MIG ");
        mig_profile(gpu, call.mig, text + strlen(text), 24);
    }
    return rc == NVML_SUCCESS ? put_text(text, name, size) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ENTER(device);
    char bdf[64];
    nvmlReturn_t rc = gpu_text(gpu, "bdf", bdf, sizeof(bdf));
    return rc == NVML_SUCCESS ? fill_pci(bdf, model()->device_id, model()->subsystem_id, pci) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    ENTER(device);
    char text[32];
    NEED(major != NULL && minor != NULL);
    nvmlReturn_t rc = gpu_text(gpu, "cc", text, sizeof(text));
    if (rc == NVML_SUCCESS && sscanf(text, "%d.%d", major, minor) != 2)
        rc = NVML_ERROR_UNKNOWN;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *version, unsigned size)
{
    ENTER(device);
    return gpu_number(gpu, "inforom_corrupt") ? NVML_ERROR_CORRUPTED_INFOROM
                                              : put_gpu_text(gpu, "inforom.image", version, size);
}

EXPORT nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned object, char *version, unsigned size)
{
    ENTER(device);
    static const char *const versions[] = {"2.1", "7.16", NULL, NULL};
    NEED(object < 4);
    if (gpu_number(gpu, "inforom_corrupt"))
        return NVML_ERROR_CORRUPTED_INFOROM;
    return versions[object] != NULL ? put_text(versions[object], version, size) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned *checksum)
{
    ENTER(device);
    NEED(checksum != NULL);
    if (gpu_number(gpu, "inforom_corrupt"))
        return NVML_ERROR_CORRUPTED_INFOROM;
    *checksum = 0x5a17c3e0u + (unsigned)gpu;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    ENTER(device);
    return gpu_number(gpu, "inforom_corrupt") ? NVML_ERROR_CORRUPTED_INFOROM : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned size, unsigned long *set)
{
    ENTER(device);
    NEED(set != NULL && size > 0);
    memset(set, 0, size * sizeof(*set));
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long cpu = 0; cpu < cpus && cpu < (long)size * 64; cpu++)
        set[cpu / 64] |= 1UL << (cpu % 64);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlVersionedValue_t *mode)
{
    ENTER(device);
    NEED(mode != NULL);
    if (mode->version != STRUCT_VERSION(nvmlVersionedValue_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_uint(gpu, "addressing", (unsigned *)&mode->value);
}

EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    ENTER(device);
    const char *driver = node_raw("driver");
    return put_text(driver != NULL ? driver : model()->driver, version, 64);
}

EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned *enabled, unsigned *by_default)
{
    ENTER(device);
    NEED(enabled != NULL && by_default != NULL);
    *enabled = *by_default = model()->arch >= 7;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t device, unsigned *enabled, unsigned *by_default)
{
    ENTER(device);
    (void)enabled, (void)by_default;
    return NVML_ERROR_NOT_SUPPORTED; /* Kepler and Maxwell only */
}

/* ---- memory, utilisation ---- */

static nvmlReturn_t memory(int gpu, int mig, nvmlMemory_v2_t *out)
{
    int64_t total, used, reserved;
    nvmlReturn_t rc = gpu_value(gpu, "mem.total", &total);
    if (rc == NVML_SUCCESS)
        rc = gpu_value(gpu, "mem.used", &used);
    if (rc == NVML_SUCCESS)
        rc = gpu_value(gpu, "mem.reserved", &reserved);
    if (rc != NVML_SUCCESS)
        return rc;
    if (mig >= 0) {
        total /= 8;
        used = reserved = 0;
    }
    out->total = (unsigned long long)total;
    out->reserved = (unsigned long long)reserved;
    out->used = (unsigned long long)used;
    out->free = total > used + reserved ? (unsigned long long)(total - used - reserved) : 0;
    return NVML_SUCCESS;
}

/* The first version counts what the driver holds as used. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
    ENTER_ANY(device);
    nvmlMemory_v2_t all;
    NEED(out != NULL);
    nvmlReturn_t rc = memory(gpu, call.mig, &all);
    if (rc == NVML_SUCCESS)
        *out = (nvmlMemory_t){all.total, all.free, all.used + all.reserved};
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
    ENTER_ANY(device);
    NEED(out != NULL);
    if (out->version != STRUCT_VERSION(nvmlMemory_v2_t, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return memory(gpu, call.mig, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    nvmlReturn_t rc = put_ull(gpu, "bar1.total", &out->bar1Total);
    if (rc == NVML_SUCCESS)
        rc = put_ull(gpu, "bar1.used", &out->bar1Used);
    if (rc == NVML_SUCCESS)
        out->bar1Free = out->bar1Total - out->bar1Used;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    nvmlReturn_t rc = put_uint(gpu, "util", &out->gpu);
    return rc == NVML_SUCCESS ? put_uint(gpu, "util_mem", &out->memory) : rc;
}

static nvmlReturn_t idle_engine(int gpu, unsigned *percent, unsigned *period)
{
    NEED(percent != NULL && period != NULL);
    if (gpu_number(gpu, "mig") == 1)
        return NVML_ERROR_NOT_SUPPORTED;
    *percent = 0;
    *period = 167000;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *percent, unsigned *period)
{
    ENTER(device);
    return idle_engine(gpu, percent, period);
}

EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *percent, unsigned *period)
{
    ENTER(device);
    return idle_engine(gpu, percent, period);
}

/* ---- temperature, power, clocks ---- */

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *out)
{
    ENTER(device);
    NEED(sensor == 0);
    return put_uint(gpu, "temp", out);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out)
{
    ENTER(device);
    NEED(out != NULL && out->sensorType == 0);
    if (out->version != STRUCT_VERSION(nvmlTemperature_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_uint(gpu, "temp", (unsigned *)&out->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned which, unsigned *out)
{
    ENTER(device);
    static const char *const keys[] = {"temp.shutdown", "temp.slowdown", "temp.mem_max", "temp.gpu_max"};
    return which < 4 ? put_uint(gpu, keys[which], out) : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlVersionedValue_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    if (out->version != STRUCT_VERSION(nvmlVersionedValue_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_uint(gpu, "temp_margin", (unsigned *)&out->value);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned *low, unsigned *high)
{
    ENTER(device);
    nvmlReturn_t rc = put_uint(gpu, "power_limit.min", low);
    return rc == NVML_SUCCESS ? put_uint(gpu, "power_limit.max", high) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned policy, nvmlViolationTime_t *out)
{
    ENTER(device);
    static const char *const keys[] = {"violation.power",       "violation.thermal",  "violation.sync_boost",
                                       "violation.board_limit", "violation.low_util", "violation.reliability"};
    struct timespec now;
    NEED(out != NULL && policy < 12);
    if (policy >= 6)
        return NVML_ERROR_NOT_SUPPORTED;
    clock_gettime(CLOCK_REALTIME, &now);
    out->referenceTime = (unsigned long long)now.tv_sec * 1000000ULL + (unsigned long long)now.tv_nsec / 1000;
    return put_ull(gpu, keys[policy], &out->violationTime);
}

static nvmlReturn_t a_clock(int gpu, const char *family, unsigned type, unsigned *out)
{
    static const char *const types[] = {"graphics", "sm", "mem", "video"};
    char key[KEY_LEN];
    NEED(type < 4);
    if (strncmp(family, "app", 3) == 0) {
        if (type == CLOCK_VIDEO)
            return NVML_ERROR_NOT_SUPPORTED;
        type = type == CLOCK_SM ? CLOCK_GRAPHICS : type;
    }
    snprintf(key, sizeof(key), "clock.%s%s", family, types[type]);
    return put_uint(gpu, key, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *out)
{
    ENTER(device);
    return a_clock(gpu, "", type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *out)
{
    ENTER(device);
    return a_clock(gpu, "max.", type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned type, unsigned *out)
{
    ENTER(device);
    return a_clock(gpu, "app.", type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned type, unsigned *out)
{
    ENTER(device);
    return a_clock(gpu, "app_default.", type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned type, unsigned *out)
{
    ENTER(device);
    return a_clock(gpu, "max.", type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned type, unsigned which, unsigned *out)
{
    ENTER(device);
    static const char *const families[] = {"", "app.", "app_default.", "max."};
    NEED(which < 4);
    return a_clock(gpu, families[which], type, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count, unsigned *clocks)
{
    ENTER(device);
    NEED(count != NULL);
    if (clocks == NULL || *count < 1) {
        *count = 1;
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    *count = 1;
    return put_uint(gpu, "clock.max.mem", clocks);
}
