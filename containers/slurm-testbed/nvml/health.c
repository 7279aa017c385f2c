/* One GPU: its errors and its links. */
#include <stdio.h>
#include <string.h>

#include "gpusim.h"

/* ---- ECC ---- */

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    ENTER(device);
    nvmlReturn_t rc = put_uint(gpu, "ecc_mode", current);
    return rc == NVML_SUCCESS ? put_uint(gpu, "ecc_mode_pending", pending) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, unsigned *mode)
{
    ENTER(device);
    NEED(mode != NULL);
    *mode = 1;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_ecc(int gpu, unsigned kind, unsigned when, const char *location, unsigned long long *out)
{
    int64_t count;
    NEED(kind < 2 && when < 2 && out != NULL);
    nvmlReturn_t rc = ecc_count(gpu, (int)kind, (int)when, location, &count);
    if (rc == NVML_SUCCESS)
        *out = (unsigned long long)count;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned kind, unsigned when,
                                                unsigned long long *out)
{
    ENTER(device);
    return put_ecc(gpu, kind, when, NULL, out);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned kind, unsigned when,
                                                    unsigned location, unsigned long long *out)
{
    ENTER(device);
    static const char *const names[] = {"l1", "l2", "dram", "regfile", "texture", "texshm", "cbu", "sram"};
    NEED(location < 8);
    return put_ecc(gpu, kind, when, names[location], out);
}

EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned kind, unsigned when,
                                                   nvmlEccErrorCounts_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    memset(out, 0, sizeof(*out));
    nvmlReturn_t rc = put_ecc(gpu, kind, when, "dram", &out->deviceMemory);
    (void)put_ecc(gpu, kind, when, "l1", &out->l1Cache); /* parts that the GPU has not stay 0 */
    (void)put_ecc(gpu, kind, when, "l2", &out->l2Cache);
    (void)put_ecc(gpu, kind, when, "regfile", &out->registerFile);
    return rc;
}

/* A key of the SRAM status, or the counter that stands for it. */
static nvmlReturn_t sram_part(int gpu, const char *key, int kind, int when, unsigned long long *out)
{
    if (gpu_raw(gpu, key) != NULL)
        return put_ull(gpu, key, out);
    return put_ecc(gpu, (unsigned)kind, (unsigned)when, "sram", out);
}

EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    if (out->version != STRUCT_VERSION(nvmlEccSramErrorStatus_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    struct {
        const char *key;
        unsigned long long *out;
    } plain[] = {
        {"sram.unc_parity.aggregate", &out->aggregateUncParity},
        {"sram.unc_parity.volatile", &out->volatileUncParity},
        {"sram.bucket.l2", &out->aggregateUncBucketL2},
        {"sram.bucket.sm", &out->aggregateUncBucketSm},
        {"sram.bucket.pcie", &out->aggregateUncBucketPcie},
        {"sram.bucket.mcu", &out->aggregateUncBucketMcu},
        {"sram.bucket.other", &out->aggregateUncBucketOther},
    };
    nvmlReturn_t rc = put_uint(gpu, "sram.threshold_exceeded", &out->bThresholdExceeded);
    for (size_t i = 0; rc == NVML_SUCCESS && i < sizeof(plain) / sizeof(plain[0]); i++)
        rc = put_ull(gpu, plain[i].key, plain[i].out);
    if (rc == NVML_SUCCESS)
        rc = sram_part(gpu, "sram.unc_secded.aggregate", MEMORY_UNCORRECTED, ECC_AGGREGATE, &out->aggregateUncSecDed);
    if (rc == NVML_SUCCESS)
        rc = sram_part(gpu, "sram.unc_secded.volatile", MEMORY_UNCORRECTED, ECC_VOLATILE, &out->volatileUncSecDed);
    if (rc == NVML_SUCCESS)
        rc = sram_part(gpu, "sram.cor.aggregate", MEMORY_CORRECTED, ECC_AGGREGATE, &out->aggregateCor);
    if (rc == NVML_SUCCESS)
        rc = sram_part(gpu, "sram.cor.volatile", MEMORY_CORRECTED, ECC_VOLATILE, &out->volatileCor);
    return rc;
}

/* ---- rows, pages, repairs ---- */

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
                                              unsigned *pending, unsigned *failure)
{
    ENTER(device);
    nvmlReturn_t rc = put_uint(gpu, "remap.corrected", corrected);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.uncorrected", uncorrected);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.pending", pending);
    return rc == NVML_SUCCESS ? put_uint(gpu, "remap.failure", failure) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    memset(out, 0, sizeof(*out));
    nvmlReturn_t rc = put_uint(gpu, "remap.corrected", &out->corrActive);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.uncorrected", &out->uncActive);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.pending", &out->bPending);
    return rc == NVML_SUCCESS ? put_uint(gpu, "remap.failure", &out->bFailureOccurred) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    nvmlReturn_t rc = put_uint(gpu, "remap.hist.max", &out->max);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.hist.high", &out->high);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.hist.partial", &out->partial);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "remap.hist.low", &out->low);
    return rc == NVML_SUCCESS ? put_uint(gpu, "remap.hist.none", &out->none) : rc;
}

static nvmlReturn_t pages(int gpu, unsigned cause, unsigned *count, unsigned long long *out, unsigned long long *times)
{
    char key[KEY_LEN];
    int64_t unused;
    NEED(cause < 2 && count != NULL);
    const char *name = cause == 0 ? "sbe" : "dbe";
    snprintf(key, sizeof(key), "retired.%s", name);
    const char *raw = gpu_raw(gpu, key);
    if (raw == NULL || *raw == '!') {
        nvmlReturn_t rc = gpu_value(gpu, key, &unused);
        if (rc != NVML_SUCCESS)
            return rc;
    }
    int room = out != NULL ? (int)*count : 0, n = retired_pages(gpu, name, out, times, room);
    *count = (unsigned)n;
    return n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned *count,
                                              unsigned long long *out)
{
    ENTER(device);
    return pages(gpu, cause, count, out, NULL);
}

/* nvidia-ml-py passes no array of times on its first call. */
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned cause, unsigned *count,
                                                 unsigned long long *out, unsigned long long *times)
{
    ENTER(device);
    return pages(gpu, cause, count, out, out != NULL ? times : NULL);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned *pending)
{
    ENTER(device);
    return put_uint(gpu, "retired.pending", pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device, nvmlVersionedValue_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    if (out->version != STRUCT_VERSION(nvmlVersionedValue_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return put_uint(gpu, "unrepairable", (unsigned *)&out->value);
}

EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *out)
{
    ENTER(device);
    NEED(out != NULL);
    if (out->version != STRUCT_VERSION(nvmlRepairStatus_t, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = put_uint(gpu, "repair.channel", &out->bChannelRepairPending);
    return rc == NVML_SUCCESS ? put_uint(gpu, "repair.tpc", &out->bTpcRepairPending) : rc;
}

/* ---- PCIe ---- */

#define LINK_UINT(function, key) \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *out) \
    { \
        ENTER(device); \
        return put_uint(gpu, key, out); \
    }

LINK_UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
LINK_UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.gen")
LINK_UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie.max_width")
LINK_UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.max_gen")
LINK_UINT(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gpu_max_gen")
LINK_UINT(nvmlDeviceGetPcieReplayCounter, "pcie.replay")
LINK_UINT(nvmlDeviceGetPcieLinkMaxSpeed, "pcie.max_gen")

/* In Mbit/s a lane: 2500, 5000, 8000, then doubling. */
EXPORT nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned *out)
{
    ENTER(device);
    unsigned generation = 0;
    NEED(out != NULL);
    nvmlReturn_t rc = put_uint(gpu, "pcie.gen", &generation);
    if (rc == NVML_SUCCESS)
        *out = generation <= 2 ? 2500u * generation : 8000u << (generation - 3);
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned counter, unsigned *out)
{
    ENTER(device);
    NEED(counter < 2);
    return put_uint(gpu, counter == 0 ? "pcie.tx" : "pcie.rx", out);
}

/* ---- NVLink ---- */

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, unsigned *active)
{
    ENTER(device);
    int64_t value;
    NEED(active != NULL);
    nvmlReturn_t rc = link_value(gpu, link, "state", &value);
    if (rc == NVML_SUCCESS)
        *active = (unsigned)value;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *version)
{
    ENTER(device);
    int64_t state;
    nvmlReturn_t rc = link_value(gpu, link, "state", &state);
    return rc == NVML_SUCCESS ? put_uint(gpu, "nvlink.version", version) : rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link, unsigned counter,
                                                    unsigned long long *out)
{
    ENTER(device);
    static const char *const names[] = {"err.replay", "err.recovery", "err.crc_flit", "err.crc_data", "err.ecc_data"};
    int64_t value;
    NEED(out != NULL && counter < 5);
    nvmlReturn_t rc = link_value(gpu, link, names[counter], &value);
    if (rc == NVML_SUCCESS)
        *out = (unsigned long long)value;
    return rc;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
    ENTER(device);
    char key[KEY_LEN], own[32];
    int64_t state;
    nvmlReturn_t rc = link_value(gpu, link, "state", &state);
    if (rc != NVML_SUCCESS)
        return rc;
    snprintf(key, sizeof(key), "nvlink.%u.remote", link);
    snprintf(own, sizeof(own), "0000:%02x:00.0", 0xc1 + link % 4); /* four NVSwitches */
    const char *remote = gpu_raw(gpu, key);
    if (remote != NULL && *remote == '!')
        return gpu_value(gpu, key, &state);
    return fill_pci(remote != NULL ? remote : own, 0x22A310DE, 0, pci);
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, unsigned *type)
{
    ENTER(device);
    char key[KEY_LEN];
    int64_t state;
    NEED(type != NULL);
    nvmlReturn_t rc = link_value(gpu, link, "state", &state);
    snprintf(key, sizeof(key), "nvlink.%u.remote", link);
    if (rc == NVML_SUCCESS)
        *type = gpu_raw(gpu, key) != NULL ? NVLINK_REMOTE_GPU : NVLINK_REMOTE_SWITCH;
    return rc;
}

/* ---- fabric ---- */

static nvmlReturn_t fabric(int gpu, nvmlGpuFabricInfo_v3_t *out)
{
    char uuid[80];
    unsigned summary = 0, n = 0;
    memset(out->clusterUuid, 0, sizeof(out->clusterUuid));
    nvmlReturn_t rc = put_uint(gpu, "fabric.state", &out->state);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "fabric.status", &out->status);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "fabric.clique", &out->cliqueId);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "fabric.health_mask", &out->healthMask);
    if (rc == NVML_SUCCESS)
        rc = put_uint(gpu, "fabric.health_summary", &summary);
    if (rc == NVML_SUCCESS)
        rc = gpu_text(gpu, "fabric.cluster_uuid", uuid, sizeof(uuid));
    if (rc != NVML_SUCCESS)
        return rc;
    out->healthSummary = (unsigned char)summary;
    if (out->state == 0) /* no fabric: NVML leaves all else empty */
        out->status = out->cliqueId = out->healthMask = out->healthSummary = 0;
    for (const char *c = uuid; out->state == 3 && *c != '\0' && n < 32; c++) {
        unsigned digit = 0;
        if (sscanf((char[]){*c, '\0'}, "%1x", &digit) == 1) {
            out->clusterUuid[n / 2] = (unsigned char)(out->clusterUuid[n / 2] << 4 | digit);
            n++;
        }
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *out)
{
    ENTER(device);
    nvmlGpuFabricInfo_v3_t all = {0};
    NEED(out != NULL);
    nvmlReturn_t rc = fabric(gpu, &all);
    if (rc == NVML_SUCCESS) {
        memcpy(out->clusterUuid, all.clusterUuid, sizeof(out->clusterUuid));
        out->status = all.status;
        out->cliqueId = all.cliqueId;
        out->state = all.state;
    }
    return rc;
}

/* Versions 2 and 3 differ by their last byte. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *out)
{
    ENTER(device);
    nvmlGpuFabricInfo_v3_t all = {0};
    NEED(out != NULL);
    all.version = out->version;
    if (out->version != STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2) &&
        out->version != STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t rc = fabric(gpu, &all);
    if (rc == NVML_SUCCESS)
        memcpy(out, &all, out->version & 0xffffff);
    return rc;
}
