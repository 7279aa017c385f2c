/* Small readers that several calls use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpusim.h"

nvmlReturn_t put_uint(int slot, const char *key, unsigned *out)
{
    int64_t value;
    NEED(out != NULL);
    nvmlReturn_t rc = gpu_value(slot, key, &value);
    if (rc == NVML_SUCCESS)
        *out = (unsigned)value;
    return rc;
}

nvmlReturn_t put_ull(int slot, const char *key, unsigned long long *out)
{
    int64_t value;
    NEED(out != NULL);
    nvmlReturn_t rc = gpu_value(slot, key, &value);
    if (rc == NVML_SUCCESS)
        *out = (unsigned long long)value;
    return rc;
}

nvmlReturn_t put_text(const char *text, char *out, unsigned size)
{
    NEED(out != NULL);
    if (strlen(text) >= size)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

nvmlReturn_t put_gpu_text(int slot, const char *key, char *out, unsigned size)
{
    char text[128];
    nvmlReturn_t rc = gpu_text(slot, key, text, sizeof(text));
    return rc == NVML_SUCCESS ? put_text(text, out, size) : rc;
}

static const char *ecc_key(int kind, int when, const char *location, char *key, size_t size)
{
    snprintf(key, size, "ecc.%s.%s%s%s", kind == MEMORY_CORRECTED ? "corrected" : "uncorrected",
             when == ECC_VOLATILE ? "volatile" : "aggregate", location != NULL ? "." : "",
             location != NULL ? location : "");
    return key;
}

static int64_t sum_of_parts(int slot, int kind, int when)
{
    static const char *const parts[] = {"l1", "l2", "regfile", "texture", "texshm", "cbu"};
    char key[KEY_LEN];
    int64_t sum = 0, value;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (gpu_value(slot, ecc_key(kind, when, parts[i], key, sizeof(key)), &value) == NVML_SUCCESS)
            sum += value;
    return sum;
}

/* One ECC counter; location NULL is the total. */
nvmlReturn_t ecc_count(int slot, int kind, int when, const char *location, int64_t *out)
{
    char key[KEY_LEN];
    int64_t mode, sram = 0, dram = 0;
    if (gpu_value(slot, "ecc_mode", &mode) == NVML_SUCCESS && mode == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    ecc_key(kind, when, location, key, sizeof(key));
    if (gpu_raw(slot, key) != NULL)
        return gpu_value(slot, key, out);
    if (location == NULL) {
        if (ecc_count(slot, kind, when, "sram", &sram) == NVML_ERROR_NOT_SUPPORTED)
            sram = sum_of_parts(slot, kind, when); /* V100: no sum over SRAM */
        (void)gpu_value(slot, ecc_key(kind, when, "dram", key, sizeof(key)), &dram);
        *out = sram + dram;
        return NVML_SUCCESS;
    }
    nvmlReturn_t rc = gpu_value(slot, key, out);
    if (rc == NVML_SUCCESS && strcmp(location, "sram") == 0)
        *out = sum_of_parts(slot, kind, when);
    return rc;
}

/* A value of one NVLink, with the answers of NVML where there is no such link. */
nvmlReturn_t link_value(int slot, unsigned link, const char *what, int64_t *out)
{
    char key[KEY_LEN];
    int64_t links;
    nvmlReturn_t rc = gpu_value(slot, "nvlinks", &links);
    if (rc != NVML_SUCCESS)
        return rc;
    if (links == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (link >= links)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof(key), "nvlink.%u.%s", link, what);
    return gpu_value(slot, key, out);
}

nvmlReturn_t link_total(int slot, const char *what, int64_t *out)
{
    int64_t links = gpu_number(slot, "nvlinks"), value;
    *out = 0;
    if (links == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned link = 0; link < links; link++) {
        nvmlReturn_t rc = link_value(slot, link, what, &value);
        if (rc != NVML_SUCCESS)
            return rc;
        *out += value;
    }
    return NVML_SUCCESS;
}

/* Copies the next item of a list with commas; the place behind it, or NULL at the end. */
static const char *next_item(const char *list, char *item, size_t size)
{
    if (list == NULL || *list == '\0')
        return NULL;
    size_t length = strcspn(list, ",");
    snprintf(item, size, "%.*s", (int)length, list);
    return list + length + (list[length] == ',');
}

/* The retired pages of a cause; fills at most `room` and returns how many there are. */
int retired_pages(int slot, const char *cause, unsigned long long *pages, unsigned long long *times, int room)
{
    char key[KEY_LEN], item[64];
    int n = 0;
    snprintf(key, sizeof(key), "retired.%s", cause);
    for (const char *rest = gpu_raw(slot, key); (rest = next_item(rest, item, sizeof(item))) != NULL; n++) {
        char *at = strchr(item, '@');
        if (n >= room)
            continue;
        if (times != NULL)
            times[n] = at != NULL ? strtoull(at + 1, NULL, 0) : 0;
        if (at != NULL)
            *at = '\0';
        pages[n] = strtoull(item, NULL, 0);
    }
    return n;
}

/* The processes under one key; fills at most `room` and returns how many there are. */
int gpu_processes(int slot, const char *key, nvmlProcessInfo_t *out, int room)
{
    char item[64];
    int n = 0;
    for (const char *rest = gpu_raw(slot, key); (rest = next_item(rest, item, sizeof(item))) != NULL; n++) {
        const char *bytes = strchr(item, ':');
        if (n >= room || bytes == NULL)
            continue;
        out[n].pid = (unsigned)strtoul(item, NULL, 10);
        out[n].usedGpuMemory = strcmp(bytes + 1, "-") == 0 ? ~0ULL : strtoull(bytes + 1, NULL, 0);
        out[n].gpuInstanceId = out[n].computeInstanceId = ~0U;
    }
    return n;
}

void mig_profile(int slot, int mig, char *out, size_t size)
{
    const char *rest = gpu_raw(slot, "mig_profiles");
    snprintf(out, size, "1g.10gb");
    for (int i = 0; i <= mig && rest != NULL; i++)
        rest = next_item(rest, out, size);
}

int64_t used_memory(int slot)
{
    static const char *const keys[] = {"proc", "proc.graphics", "proc.mps"};
    nvmlProcessInfo_t list[64];
    int64_t sum = 0;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        int n = gpu_processes(slot, keys[k], list, 64);
        for (int i = 0; i < n && i < 64; i++)
            if (list[i].usedGpuMemory != ~0ULL)
                sum += (int64_t)list[i].usedGpuMemory;
    }
    return sum;
}

void parse_bdf(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
    unsigned function;
    *domain = *bus = *device = 0;
    if (sscanf(text, "%8x:%2x:%2x.%1x", domain, bus, device, &function) < 3) {
        *domain = 0;
        (void)!sscanf(text, "%2x:%2x", bus, device);
    }
}

nvmlReturn_t fill_pci(const char *bdf, int64_t device_id, int64_t subsystem_id, nvmlPciInfo_t *out)
{
    NEED(out != NULL);
    memset(out, 0, sizeof(*out));
    parse_bdf(bdf, &out->domain, &out->bus, &out->device);
    snprintf(out->busIdLegacy, sizeof(out->busIdLegacy), "%04X:%02X:%02X.0", out->domain & 0xffff, out->bus & 0xff,
             out->device & 0x1f);
    snprintf(out->busId, sizeof(out->busId), "%08X:%02X:%02X.0", out->domain, out->bus & 0xff, out->device & 0x1f);
    out->pciDeviceId = (unsigned)device_id;
    out->pciSubSystemId = (unsigned)subsystem_id;
    return NVML_SUCCESS;
}
