/* Processes on a GPU, MIG devices, events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpusim.h"

static nvmlReturn_t processes(int gpu, int mig, const char *key, unsigned *count, nvmlProcessInfo_t *out)
{
    int64_t code;
    NEED(count != NULL);
    const char *raw = gpu_raw(gpu, key);
    if (raw != NULL && *raw == '!')
        return gpu_value(gpu, key, &code);
    int room = out != NULL ? (int)*count : 0, n = mig >= 0 ? 0 : gpu_processes(gpu, key, out, room);
    *count = (unsigned)n;
    return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESSES(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *out) \
    { \
        ENTER_ANY(device); \
        return processes(gpu, call.mig, key, count, out); \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "proc")
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "proc")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "proc.graphics")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "proc.graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, "proc.mps")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "proc.mps")

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t *list)
{
    ENTER(device);
    static const char *const keys[] = {"proc", "proc.graphics", "proc.mps"};
    NEED(list != NULL && list->mode < 4);
    if (list->version != STRUCT_VERSION(nvmlProcessDetailList_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlProcessInfo_t found[256];
    int n = 0, room = list->procArray != NULL ? (int)list->numProcArrayEntries : 0;
    for (unsigned k = 0; k < 3; k++)
        if (list->mode == 3 || list->mode == k) {
            int more = gpu_processes(gpu, keys[k], found + n, 256 - n);
            n += more < 256 - n ? more : 256 - n;
        }
    for (int i = 0; i < n && i < room; i++)
        list->procArray[i] = (nvmlProcessDetail_t){found[i].pid, found[i].usedGpuMemory, ~0U, ~0U, 0};
    list->numProcArrayEntries = (unsigned)n;
    return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* ---- MIG ---- */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    ENTER(device);
    nvmlReturn_t rc = put_uint(gpu, "mig", current);
    return rc == NVML_SUCCESS ? put_uint(gpu, "mig_pending", pending) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is_mig)
{
    ENTER_ANY(device);
    NEED(is_mig != NULL);
    *is_mig = call.mig >= 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
    ENTER(device);
    int64_t mig;
    NEED(count != NULL);
    *count = gpu_value(gpu, "mig", &mig) == NVML_SUCCESS ? MAX_MIG : 0; /* what the GPU could have */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *out)
{
    ENTER(device);
    int64_t mig;
    NEED(out != NULL && index < MAX_MIG);
    nvmlReturn_t rc = gpu_value(gpu, "mig", &mig);
    if (rc != NVML_SUCCESS)
        return rc;
    if (mig == 0 || index >= gpu_number(gpu, "mig_instances"))
        return NVML_ERROR_NOT_FOUND;
    *out = device_handle(gpu, (int)index);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *out)
{
    ENTER_ANY(device);
    NEED(out != NULL && call.mig >= 0);
    *out = device_handle(gpu, -1);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id)
{
    ENTER_ANY(device);
    NEED(id != NULL && call.mig >= 0);
    *id = 7 + (unsigned)call.mig; /* the ids of small instances start behind those of larger ones */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id)
{
    ENTER_ANY(device);
    NEED(id != NULL && call.mig >= 0);
    *id = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    ENTER_ANY(device);
    char profile[24];
    unsigned slices = 1, gigabytes = 10;
    NEED(out != NULL && call.mig >= 0);
    mig_profile(gpu, call.mig, profile, sizeof(profile));
    (void)!sscanf(profile, "%ug.%ugb", &slices, &gigabytes);
    memset(out, 0, sizeof(*out));
    out->multiprocessorCount = 14 * slices;
    out->gpuInstanceSliceCount = out->computeInstanceSliceCount = slices;
    out->memorySizeMB = 1024ULL * gigabytes - 512; /* a little less than its name says */
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned size)
{
    ENTER_ANY(device);
    char text[128], own[160];
    nvmlReturn_t rc = gpu_text(gpu, "uuid", text, sizeof(text));
    if (rc != NVML_SUCCESS || call.mig < 0)
        return rc == NVML_SUCCESS ? put_text(text, uuid, size) : rc;
    const char *rest = strncmp(text, "GPU-", 4) == 0 ? text + 4 : text;
    snprintf(own, sizeof(own), "MIG-%s", rest);
    if (strlen(own) > 4)
        own[4] = (char)('a' + call.mig); /* another one for each instance */
    return put_text(own, uuid, size);
}

/* ---- events ---- */

#define MAGIC 0x45565453u

struct nvmlEventSet_st {
    unsigned magic;
    unsigned long long wanted[MAX_GPUS];
    int64_t delivered[MAX_GPUS]; /* the Xid that this set has seen last */
};

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    ENTER(device);
    NEED(types != NULL);
    *types = EVENT_SBE | EVENT_DBE | EVENT_XID;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    ENTER_NODE();
    NEED(set != NULL);
    *set = calloc(1, sizeof(**set));
    if (*set == NULL)
        return NVML_ERROR_MEMORY;
    (*set)->magic = MAGIC;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    ENTER(device);
    NEED(set != NULL && set->magic == MAGIC);
    if (types & ~(unsigned long long)(EVENT_SBE | EVENT_DBE | EVENT_XID))
        return NVML_ERROR_NOT_SUPPORTED;
    set->wanted[gpu] |= types;
    set->delivered[gpu] = gpu_number(gpu, "xid_event"); /* only what comes from now on */
    return NVML_SUCCESS;
}

static int next_event(nvmlEventSet_t set, nvmlEventData_t *data)
{
    for (int slot = 0; slot < MAX_GPUS; slot++) {
        int64_t xid = gpu_number(slot, "xid_event");
        if (!(set->wanted[slot] & EVENT_XID) || xid == set->delivered[slot])
            continue;
        set->delivered[slot] = xid;
        if (xid == 0)
            continue;
        *data = (nvmlEventData_t){device_handle(slot, -1), EVENT_XID, (unsigned long long)xid, ~0U, ~0U};
        return 1;
    }
    return 0;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    ENTER_NODE();
    NEED(set != NULL && set->magic == MAGIC && data != NULL);
    for (unsigned waited = 0;; waited += 10) {
        if (next_event(set, data))
            return NVML_SUCCESS;
        if (waited >= timeout_ms)
            return NVML_ERROR_TIMEOUT;
        unsigned left = timeout_ms - waited;
        if (call_sleep_ms(left < 10 ? left : 10) != 0)
            return NVML_ERROR_UNKNOWN;
        if (left < 10)
            waited = timeout_ms - 10;
    }
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    ENTER_NODE();
    NEED(set != NULL && set->magic == MAGIC);
    set->magic = 0;
    free(set);
    return NVML_SUCCESS;
}
