/* The library, the driver, and how GPUs are found. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "gpusim.h"

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags; /* without GPUs NVML starts too and counts none */
    return runtime_init(__func__);
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return runtime_init(__func__); }
EXPORT nvmlReturn_t nvmlInit(void) { return runtime_init(__func__); }
EXPORT nvmlReturn_t nvmlShutdown(void) { return runtime_shutdown(); }

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    static const char *const names[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power", "Driver Not Loaded",
        "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found", "Function Not Found",
        "Corrupted infoROM", "GPU is lost", "GPU requires reset", "GPU access blocked by the operating system",
        "Driver/library version mismatch", "In use by another client", "Insufficient Memory", "No data",
        "Not supported with vGPU ECC", "Insufficient Resources", "Frequency not supported",
        "Argument version mismatch", "Deprecated", "Not ready", "GPU not found", "Invalid state",
        "Reset type not supported",
    };
    return code < sizeof(names) / sizeof(names[0]) ? names[code] : "Unknown Error";
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    ENTER_NODE();
    const char *text = node_raw("driver");
    return put_text(text != NULL ? text : model()->driver, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    ENTER_NODE();
    char own[96];
    const char *text = node_raw("nvml"), *driver = node_raw("driver");
    snprintf(own, sizeof(own), "12.%s", driver != NULL ? driver : model()->driver);
    return put_text(text != NULL ? text : own, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned length)
{
    ENTER_NODE();
    NEED(info != NULL);
    if (info->version != STRUCT_VERSION(nvmlSystemDriverBranchInfo_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const char *driver = node_raw("driver");
    unsigned branch = 0;
    (void)!sscanf(driver != NULL ? driver : model()->driver, "%u", &branch);
    char text[32];
    snprintf(text, sizeof(text), "r%u_00", branch);
    return put_text(text, info->branch, length < sizeof(info->branch) ? length : sizeof(info->branch));
}

static nvmlReturn_t cuda_version(int *version)
{
    NEED(version != NULL);
    *version = (int)node_number("cuda", model()->cuda);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    ENTER_NODE();
    return cuda_version(version);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    ENTER_NODE();
    return cuda_version(version);
}

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    ENTER_NODE();
    NEED(name != NULL && length > 0);
    char path[64], target[1024];
    snprintf(path, sizeof(path), "/proc/%u/exe", pid);
    ssize_t size = readlink(path, target, sizeof(target) - 1);
    if (size < 0)
        return access("/proc/self/exe", F_OK) == 0 ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NO_PERMISSION;
    target[size] = '\0';
    snprintf(name, length, "%s", target); /* NVML cuts it too */
    return NVML_SUCCESS;
}

static nvmlReturn_t count_gpus(unsigned *count)
{
    int order[MAX_GPUS];
    NEED(count != NULL);
    *count = (unsigned)slots_in_order(order);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    ENTER_NODE();
    return count_gpus(count);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    ENTER_NODE();
    return count_gpus(count);
}

/* What happens when the handle of a GPU is asked for: faults, refusals, and the driver's slow start of a cold GPU. */
static nvmlReturn_t open_gpu(struct call *call, int slot, nvmlDevice_t *out)
{
    call_on_slot(call, slot);
    if (call->rc != NVML_SUCCESS)
        return call->rc;
    const char *place = gpu_raw(slot, "lost_at");
    if (gpu_number(slot, "lost") && place != NULL && strcmp(place, "handle") == 0)
        return NVML_ERROR_GPU_IS_LOST;
    if (gpu_number(slot, "denied"))
        return NVML_ERROR_NO_PERMISSION;
    int64_t delay = node_number("init_delay_ms", 0);
    if (!runtime_attached(slot) && delay > 0 && !gpu_number(slot, "persistence") && call_sleep_ms(delay) != 0)
        return NVML_ERROR_UNKNOWN;
    *out = device_handle(slot, -1);
    return NVML_SUCCESS;
}

static nvmlReturn_t open_by_index(struct call *call, unsigned index, nvmlDevice_t *device)
{
    int order[MAX_GPUS];
    int n = slots_in_order(order);
    NEED(device != NULL && index < (unsigned)n);
    return open_gpu(call, order[index], device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    ENTER_NODE();
    return open_by_index(&call, index, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    ENTER_NODE();
    return open_by_index(&call, index, device);
}

static nvmlReturn_t open_by_text(struct call *call, const char *key, const char *wanted, nvmlDevice_t *device)
{
    int order[MAX_GPUS];
    char text[128];
    NEED(wanted != NULL && device != NULL);
    int n = slots_in_order(order);
    for (int i = 0; i < n; i++)
        if (gpu_text(order[i], key, text, sizeof(text)) == NVML_SUCCESS && strcmp(text, wanted) == 0)
            return open_gpu(call, order[i], device);
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    ENTER_NODE();
    return open_by_text(&call, "uuid", uuid, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    ENTER_NODE();
    return open_by_text(&call, "serial", serial, device);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    ENTER_NODE();
    NEED(bus_id != NULL && device != NULL);
    unsigned domain, bus, dev, d, b, v;
    int order[MAX_GPUS];
    char text[128];
    int n = slots_in_order(order);
    if (strchr(bus_id, ':') == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    parse_bdf(bus_id, &domain, &bus, &dev);
    for (int i = 0; i < n; i++) {
        if (gpu_text(order[i], "bdf", text, sizeof(text)) != NVML_SUCCESS)
            continue;
        parse_bdf(text, &d, &b, &v);
        if (d == domain && b == bus && v == dev)
            return open_gpu(&call, order[i], device);
    }
    return NVML_ERROR_NOT_FOUND;
}

/* The index that NVML gives this slot now. */
EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    ENTER(device);
    NEED(index != NULL);
    int order[MAX_GPUS];
    int n = slots_in_order(order);
    for (int i = 0; i < n; i++)
        if (order[i] == gpu) {
            *index = (unsigned)i;
            return NVML_SUCCESS;
        }
    return NVML_ERROR_GPU_IS_LOST;
}
