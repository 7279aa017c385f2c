/* nvmlDeviceGetFieldValues: one answer and one return code a field. Numbers: NVML_FI_* of the public reference. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpusim.h"

enum { UINT = VALUE_UINT, ULL = VALUE_ULL, SINT = VALUE_SINT };

/* Fields that are a key of the state file. */
static const struct {
    unsigned id, type;
    const char *key;
} plain[] = {
    {1, UINT, "ecc_mode"},
    {2, UINT, "ecc_mode_pending"},
    {31, UINT, "retired.pending"},
    {74, ULL, "violation.power"},
    {75, ULL, "violation.thermal"},
    {76, ULL, "violation.sync_boost"},
    {77, ULL, "violation.board_limit"},
    {78, ULL, "violation.low_util"},
    {79, ULL, "violation.reliability"},
    {82, UINT, "temp_mem"},
    {83, ULL, "energy"},
    {91, UINT, "nvlinks"},
    {94, UINT, "pcie.replay"},
    {142, UINT, "remap.corrected"},
    {143, UINT, "remap.uncorrected"},
    {144, UINT, "remap.pending"},
    {145, UINT, "remap.failure"},
    {169, ULL, "pcie.err.l0_to_recovery"},
    {173, ULL, "pcie.err.correctable"},
    {174, ULL, "pcie.err.naks_received"},
    {175, ULL, "pcie.err.receiver"},
    {176, ULL, "pcie.err.bad_tlp"},
    {177, ULL, "pcie.err.naks_sent"},
    {178, ULL, "pcie.err.bad_dllp"},
    {179, ULL, "pcie.err.non_fatal"},
    {180, ULL, "pcie.err.fatal"},
    {181, ULL, "pcie.err.unsupported_req"},
    {182, ULL, "pcie.err.lcrc"},
    {183, ULL, "pcie.err.lane"},
    {185, UINT, "power"},
    {186, UINT, "power"},
    {187, UINT, "power_limit.min"},
    {188, UINT, "power_limit.max"},
    {189, UINT, "power_limit.default"},
    {190, UINT, "power_limit.enforced"},
    {191, ULL, "energy"},
    {192, UINT, "power_limit"},
    {193, SINT, "tlimit.shutdown"},
    {194, SINT, "tlimit.slowdown"},
    {195, SINT, "tlimit.mem_max"},
    {196, SINT, "tlimit.gpu_max"},
    {230, UINT, "recovery_action"},
    {269, ULL, "violation.sw_thermal"},
    {270, ULL, "violation.hw_thermal"},
    {271, ULL, "violation.hw_power_brake"},
};

/* ECC counters: total, then by place; the ids of single and double bit alternate. */
static const struct {
    unsigned id;
    int kind, when;
    const char *location;
} ecc[] = {
    {3, 0, 0, NULL},       {4, 1, 0, NULL},       {5, 0, 1, NULL},       {6, 1, 1, NULL},
    {7, 0, 0, "l1"},       {8, 1, 0, "l1"},       {9, 0, 0, "l2"},       {10, 1, 0, "l2"},
    {11, 0, 0, "dram"},    {12, 1, 0, "dram"},    {13, 0, 0, "regfile"}, {14, 1, 0, "regfile"},
    {15, 0, 0, "texture"}, {16, 1, 0, "texture"}, {17, 1, 0, "cbu"},     {18, 0, 1, "l1"},
    {19, 1, 1, "l1"},      {20, 0, 1, "l2"},      {21, 1, 1, "l2"},      {22, 0, 1, "dram"},
    {23, 1, 1, "dram"},    {24, 0, 1, "regfile"}, {25, 1, 1, "regfile"}, {26, 0, 1, "texture"},
    {27, 1, 1, "texture"}, {28, 1, 1, "cbu"},
};

/* NVLink counters by link: the first six, their total, the next six. */
static const struct {
    unsigned first, total, next;
    const char *what;
} by_link[] = {
    {32, 38, 96, "err.crc_flit"},
    {39, 45, 102, "err.crc_data"},
    {46, 52, 108, "err.replay"},
    {53, 59, 114, "err.recovery"},
};

/* NVLink fields whose link is in scopeId. */
static const struct {
    unsigned id, type;
    const char *what;
} by_scope[] = {
    {161, ULL, "err.replay"},         {162, ULL, "err.recovery"},
    {163, ULL, "err.crc_flit"},       {165, UINT, "state"},
    {206, ULL, "err.malformed"},      {207, ULL, "err.overrun"},
    {208, ULL, "err.rcv"},            {209, ULL, "err.rcv_remote"},
    {210, ULL, "err.rcv_general"},    {211, ULL, "err.integrity"},
    {212, ULL, "err.xmit_discards"},  {213, ULL, "err.recovery_ok"},
    {214, ULL, "err.recovery_failed"}, {215, ULL, "err.recovery_events"},
    {219, ULL, "err.effective"},      {221, ULL, "err.symbol"},
    {220, ULL, "effective_ber"},      {222, ULL, "symbol_ber"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static nvmlReturn_t link_field(int gpu, unsigned id, unsigned scope, unsigned *type, int64_t *out)
{
    *type = ULL;
    for (size_t i = 0; i < COUNT(by_link); i++) {
        if (id >= by_link[i].first && id < by_link[i].first + 6)
            return link_value(gpu, id - by_link[i].first, by_link[i].what, out);
        if (id >= by_link[i].next && id < by_link[i].next + 6)
            return link_value(gpu, id - by_link[i].next + 6, by_link[i].what, out);
        if (id == by_link[i].total)
            return link_total(gpu, by_link[i].what, out);
    }
    for (size_t i = 0; i < COUNT(by_scope); i++)
        if (id == by_scope[i].id) {
            *type = by_scope[i].type;
            return link_value(gpu, scope, by_scope[i].what, out);
        }
    if (id >= 148 && id <= 159)
        return link_value(gpu, id - 148, "err.ecc_data", out);
    if (id == 160)
        return link_total(gpu, "err.ecc_data", out);
    /* speed by link, common speed, speed by scope */
    unsigned link = id >= 84 && id <= 89     ? id - 84
                    : id >= 132 && id <= 137 ? id - 126
                    : id == 90               ? 0
                    : id == 164              ? scope
                                             : MAX_LINKS;
    if (link == MAX_LINKS)
        return NVML_ERROR_NOT_SUPPORTED;
    *type = UINT;
    nvmlReturn_t rc = link_value(gpu, link, "state", out);
    if (rc == NVML_SUCCESS)
        *out = *out != 0 ? model()->nvlink_mbps : 0;
    return rc;
}

static nvmlReturn_t pages_field(int gpu, const char *cause, int64_t *out)
{
    char key[KEY_LEN];
    snprintf(key, sizeof(key), "retired.%s", cause);
    const char *raw = gpu_raw(gpu, key);
    if (raw == NULL || *raw == '!')
        return gpu_value(gpu, key, out);
    *out = retired_pages(gpu, cause, NULL, NULL, 0);
    return NVML_SUCCESS;
}

static nvmlReturn_t field(int gpu, unsigned id, unsigned scope, unsigned *type, int64_t *out)
{
    char key[KEY_LEN];
    snprintf(key, sizeof(key), "field.%u", id);
    *type = UINT;
    for (size_t i = 0; i < COUNT(plain); i++)
        if (plain[i].id == id) {
            *type = plain[i].type;
            return gpu_raw(gpu, key) != NULL ? gpu_value(gpu, key, out) : gpu_value(gpu, plain[i].key, out);
        }
    if (gpu_raw(gpu, key) != NULL) {
        *type = ULL;
        return gpu_value(gpu, key, out);
    }
    for (size_t i = 0; i < COUNT(ecc); i++)
        if (ecc[i].id == id) {
            *type = ULL;
            return ecc_count(gpu, ecc[i].kind, ecc[i].when, ecc[i].location, out);
        }
    switch (id) {
    case 29:
        return pages_field(gpu, "sbe", out);
    case 30:
        return pages_field(gpu, "dbe", out);
    case 95: /* roll-overs of the replay counter */
        *out = 0;
        return NVML_SUCCESS;
    case 147: /* links to a switch */
        return gpu_value(gpu, "nvlink_switches", out);
    case 166: /* version of a link */
        return gpu_number(gpu, "nvlinks") > 0 ? gpu_value(gpu, "nvlink.version", out) : NVML_ERROR_NOT_SUPPORTED;
    default:
        return link_field(gpu, id, scope, type, out);
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    ENTER(device);
    NEED(count > 0 && values != NULL);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *v = &values[i];
        int64_t number = 0;
        v->nvmlReturn = field(gpu, v->fieldId, v->scopeId, &v->valueType, &number);
        v->timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        v->latencyUsec = 0;
        memset(&v->value, 0, sizeof(v->value)); /* an unread field looks like 0, as with the real library */
        if (v->nvmlReturn == NVML_SUCCESS && v->valueType == UINT)
            v->value.uiVal = (unsigned)number;
        else if (v->nvmlReturn == NVML_SUCCESS && v->valueType == SINT)
            v->value.siVal = (int)number;
        else if (v->nvmlReturn == NVML_SUCCESS)
            v->value.ullVal = (unsigned long long)number;
    }
    return NVML_SUCCESS;
}
