/* Which keys the state file may have, what may stand in each, and what a GPU answers where a key is not set. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpusim.h"

/* FLAG cannot be an error code; the others can. */
enum type { NUMBER, SWITCH, FLAG, TEXT, BDF, CAPABILITY, PROCESSES, PAGES, PLACE };
enum source { CONSTANT, MODEL, OTHER_KEY, COMPUTED };

struct key {
    const char *pattern; /* # is digits, {a|b} one of them */
    enum type type;
    enum source source;
    int64_t constant; /* or the offset in struct model */
    const char *other;
    int64_t (*compute)(int slot);
    int64_t max; /* of a NUMBER; 0: none */
};

static int64_t with_mig(int slot) { return gpu_number(slot, "mig") == 1 ? UNSUPPORTED : 0; }
static int64_t with_mig_links(int slot) { return gpu_number(slot, "mig") != 1; }
static int64_t with_mig_rows(int slot)
{
    return gpu_number(slot, "mig_instances") > 0 ? UNSUPPORTED : model()->remap;
}
static int64_t all_banks(int slot)
{
    int64_t rows = with_mig_rows(slot);
    return rows < 0 ? rows : model()->remap_banks;
}
static int64_t mig_devices(int slot) { return gpu_number(slot, "mig") == 1 ? model()->mig_instances : 0; }
static int64_t switch_links(int slot) { return gpu_number(slot, "nvlinks"); }
static int64_t own_slot(int slot) { return slot; }
static int64_t half_of_slots(int slot) { return slot / 4 % 2; }
static int64_t headroom(int slot) { return gpu_number(slot, "temp.gpu_max") - gpu_number(slot, "temp"); }
static int64_t fabric_state(int slot)
{
    (void)slot;
    return model()->fabric < 0 ? model()->fabric : 3;
}
static int64_t core_clock(int slot) { return gpu_number(slot, "clock.sm"); }
static int64_t max_core_clock(int slot) { return gpu_number(slot, "clock.max.sm"); }

#define FROM_MODEL(field) MODEL, offsetof(struct model, field), NULL, NULL
#define IS(value) CONSTANT, value, NULL, NULL
#define LIKE(key) OTHER_KEY, 0, key, NULL
#define BY(function) COMPUTED, 0, NULL, function

static const struct key gpu_keys[] = {
    {"present", FLAG, IS(1), 0},
    {"lost", FLAG, IS(0), 0},
    {"lost_at", PLACE, IS(0), 0},
    {"denied", FLAG, IS(0), 0},
    {"uuid", TEXT, IS(0), 0},
    {"serial", TEXT, IS(0), 0},
    {"bdf", BDF, IS(0), 0},
    {"minor", NUMBER, BY(own_slot), 255},
    {"name", TEXT, IS(0), 0},
    {"vbios", TEXT, IS(0), 0},
    {"part", TEXT, IS(0), 0},
    {"brand", NUMBER, FROM_MODEL(brand), 0},
    {"arch", NUMBER, FROM_MODEL(arch), 0},
    {"cc", CAPABILITY, IS(0), 0},
    {"numa", NUMBER, BY(half_of_slots), 255},
    {"persistence", SWITCH, IS(1), 0},
    {"compute_mode", NUMBER, IS(0), 3},
    {"pstate", NUMBER, FROM_MODEL(pstate), 32},
    {"util", NUMBER, BY(with_mig), 100},
    {"util_mem", NUMBER, BY(with_mig), 100},
    {"temp", NUMBER, FROM_MODEL(temp), 0},
    {"temp_mem", NUMBER, FROM_MODEL(temp_mem), 0},
    {"temp.shutdown", NUMBER, FROM_MODEL(shutdown), 0},
    {"temp.slowdown", NUMBER, FROM_MODEL(slowdown), 0},
    {"temp.mem_max", NUMBER, FROM_MODEL(mem_max), 0},
    {"temp.gpu_max", NUMBER, FROM_MODEL(gpu_max), 0},
    {"tlimit.{shutdown|slowdown|mem_max|gpu_max}", NUMBER, IS(UNSUPPORTED), 0},
    {"temp_margin", NUMBER, BY(headroom), 0},
    {"fan", NUMBER, IS(UNSUPPORTED), 0},
    {"power", NUMBER, FROM_MODEL(power), 0},
    {"power_limit", NUMBER, FROM_MODEL(power_default), 0},
    {"power_limit.enforced", NUMBER, LIKE("power_limit"), 0},
    {"power_limit.default", NUMBER, FROM_MODEL(power_default), 0},
    {"power_limit.min", NUMBER, FROM_MODEL(power_min), 0},
    {"power_limit.max", NUMBER, FROM_MODEL(power_max), 0},
    {"energy", NUMBER, IS(123456789), 0},
    {"clock.graphics", NUMBER, BY(core_clock), 0},
    {"clock.sm", NUMBER, FROM_MODEL(clock_sm), 0},
    {"clock.mem", NUMBER, FROM_MODEL(clock_mem), 0},
    {"clock.video", NUMBER, FROM_MODEL(clock_video), 0},
    {"clock.max.graphics", NUMBER, BY(max_core_clock), 0},
    {"clock.max.sm", NUMBER, FROM_MODEL(clock_max_sm), 0},
    {"clock.max.mem", NUMBER, FROM_MODEL(clock_max_mem), 0},
    {"clock.max.video", NUMBER, FROM_MODEL(clock_max_video), 0},
    {"clock.app.graphics", NUMBER, FROM_MODEL(clock_app_sm), 0},
    {"clock.app.mem", NUMBER, FROM_MODEL(clock_max_mem), 0},
    {"clock.app_default.graphics", NUMBER, FROM_MODEL(clock_app_sm), 0},
    {"clock.app_default.mem", NUMBER, FROM_MODEL(clock_max_mem), 0},
    {"clock_reasons", NUMBER, IS(1), 0},
    {"clock_reasons_supported", NUMBER, IS(0x1ff), 0},
    {"violation.{power|thermal|sync_boost|board_limit|low_util|reliability|sw_thermal|hw_thermal|"
     "hw_power_brake}",
     NUMBER, IS(0), 0},
    {"mem.total", NUMBER, FROM_MODEL(mem_total), 0},
    {"mem.used", NUMBER, BY(used_memory), 0},
    {"mem.reserved", NUMBER, FROM_MODEL(mem_reserved), 0},
    {"bar1.total", NUMBER, FROM_MODEL(bar1_total), 0},
    {"bar1.used", NUMBER, IS(1 << 20), 0},
    {"ecc_mode", SWITCH, IS(1), 0},
    {"ecc_mode_pending", SWITCH, LIKE("ecc_mode"), 0},
    {"ecc.{corrected|uncorrected}.{volatile|aggregate}", NUMBER, IS(0), 0},
    {"ecc.{corrected|uncorrected}.{volatile|aggregate}.dram", NUMBER, IS(0), 0},
    {"ecc.{corrected|uncorrected}.{volatile|aggregate}.sram", NUMBER, FROM_MODEL(sram), 0},
    {"ecc.{corrected|uncorrected}.{volatile|aggregate}.{l1|l2|regfile|texture|texshm|cbu}", NUMBER,
     FROM_MODEL(ecc_parts), 0},
    {"sram.unc_parity.{volatile|aggregate}", NUMBER, FROM_MODEL(sram), 0},
    {"sram.{unc_secded|cor}.{volatile|aggregate}", NUMBER, FROM_MODEL(sram), 0},
    {"sram.bucket.{l2|sm|pcie|mcu|other}", NUMBER, FROM_MODEL(sram), 0},
    {"sram.threshold_exceeded", SWITCH, FROM_MODEL(sram), 0},
    {"remap.{corrected|uncorrected}", NUMBER, BY(with_mig_rows), 0},
    {"remap.{pending|failure}", SWITCH, BY(with_mig_rows), 0},
    {"remap.hist.max", NUMBER, BY(all_banks), 0},
    {"remap.hist.{high|partial|low|none}", NUMBER, BY(with_mig_rows), 0},
    {"retired.{sbe|dbe}", PAGES, FROM_MODEL(retired), 0},
    {"retired.pending", SWITCH, FROM_MODEL(retired), 0},
    {"unrepairable", SWITCH, FROM_MODEL(unrepairable), 0},
    {"repair.{channel|tpc}", SWITCH, FROM_MODEL(repair), 0},
    {"pcie.width", NUMBER, FROM_MODEL(pcie_width), 32},
    {"pcie.gen", NUMBER, FROM_MODEL(pcie_gen), 8},
    {"pcie.max_width", NUMBER, FROM_MODEL(pcie_width), 32},
    {"pcie.max_gen", NUMBER, FROM_MODEL(pcie_max_gen), 8},
    {"pcie.gpu_max_gen", NUMBER, FROM_MODEL(pcie_max_gen), 8},
    {"pcie.replay", NUMBER, IS(0), 0},
    {"pcie.{tx|rx}", NUMBER, IS(0), 0},
    {"pcie.err.{l0_to_recovery|correctable|naks_received|receiver|bad_tlp|naks_sent|bad_dllp|non_fatal|fatal|"
     "unsupported_req|lcrc|lane}",
     NUMBER, IS(0), 0},
    {"nvlinks", NUMBER, FROM_MODEL(nvlinks), MAX_LINKS},
    {"nvlink.#.state", NUMBER, BY(with_mig_links), 2},
    {"nvlink.#.err.{replay|recovery|crc_flit|crc_data|ecc_data|malformed|overrun|rcv|rcv_remote|rcv_general|integrity|"
     "xmit_discards|recovery_ok|recovery_failed|recovery_events|effective|symbol}",
     NUMBER, IS(0), 0},
    {"nvlink.#.{effective_ber|symbol_ber}", NUMBER, IS(UNSUPPORTED), 0},
    {"nvlink.#.remote", BDF, IS(0), 0},
    {"nvlink_switches", NUMBER, BY(switch_links), MAX_LINKS},
    {"nvlink.version", NUMBER, FROM_MODEL(nvlink_version), 0},
    {"proc{|.graphics|.mps}", PROCESSES, IS(0), 0},
    {"mig", SWITCH, FROM_MODEL(mig), 0},
    {"mig_pending", SWITCH, LIKE("mig"), 0},
    {"mig_instances", NUMBER, BY(mig_devices), MAX_MIG},
    {"mig_profiles", TEXT, IS(0), 0},
    {"mig_names", FLAG, IS(1), 0},
    {"recovery_action", NUMBER, FROM_MODEL(recovery), 0},
    {"field.#", NUMBER, IS(0), 0},
    {"fabric.state", NUMBER, BY(fabric_state), 3},
    {"fabric.status", NUMBER, IS(0), 0},
    {"fabric.health_mask", NUMBER, IS(0x1aa), 0},
    {"fabric.health_summary", NUMBER, IS(1), 255},
    {"fabric.clique", NUMBER, IS(0), 0},
    {"fabric.cluster_uuid", TEXT, IS(0), 0},
    {"inforom_corrupt", FLAG, IS(0), 0},
    {"inforom.image", TEXT, IS(0), 0},
    {"addressing", NUMBER, IS(0), 2},
    {"xid_event", NUMBER, IS(0), 0},
    {"reset_result", NUMBER, IS(0), 999},
};

static int matches(const char *pattern, const char *text)
{
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '#') {
            if (!isdigit((unsigned char)*text))
                return 0;
            while (isdigit((unsigned char)*text))
                text++;
        } else if (*pattern == '{') {
            const char *end = strchr(pattern, '}');
            for (const char *word = pattern + 1; word <= end; word++) {
                size_t length = strcspn(word, "|}");
                if (strncmp(word, text, length) == 0 && matches(end + 1, text + length))
                    return 1;
                word += length;
            }
            return 0;
        } else if (*pattern != *text++) {
            return 0;
        }
    }
    return *text == '\0';
}

static const struct key *find(const char *key)
{
    for (size_t i = 0; i < sizeof(gpu_keys) / sizeof(gpu_keys[0]); i++)
        if (gpu_keys[i].pattern[0] == key[0] && matches(gpu_keys[i].pattern, key))
            return &gpu_keys[i];
    return NULL;
}

int parse_number(const char *text, int64_t *out)
{
    if (!isdigit((unsigned char)text[0]) && !(text[0] == '-' && isdigit((unsigned char)text[1])))
        return -1;
    const char *digits = text + (*text == '-');
    int base = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10;
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, base);
    if (errno != 0 || *end != '\0' || end == text || number < -INT64_C(0x7fffffffffff))
        return -1;
    *out = number;
    return 0;
}

static int error_code(const char *value, int64_t *code)
{
    return *value == '!' && parse_number(value + 1, code) == 0 && *code > 0 && *code <= 999;
}

/* Each item of a list with commas goes through the scan; the item must be used up. */
static int each(const char *value, int (*item)(const char *, size_t))
{
    while (*value != '\0') {
        size_t length = strcspn(value, ",");
        if (!item(value, length))
            return 0;
        value += length;
        if (*value == ',' && *++value == '\0')
            return 0;
    }
    return 1;
}

static int is_process(const char *item, size_t length)
{
    char buffer[64], bytes[32];
    unsigned pid;
    int used = 0;
    int64_t number;
    if (length >= sizeof(buffer))
        return 0;
    memcpy(buffer, item, length);
    buffer[length] = '\0';
    return sscanf(buffer, "%u:%31s%n", &pid, bytes, &used) == 2 && buffer[used] == '\0' &&
           (strcmp(bytes, "-") == 0 || (parse_number(bytes, &number) == 0 && number >= 0));
}

static int is_page(const char *item, size_t length)
{
    char buffer[64];
    int64_t number;
    if (length >= sizeof(buffer))
        return 0;
    memcpy(buffer, item, length);
    buffer[length] = '\0';
    char *at = strchr(buffer, '@');
    if (at != NULL) {
        *at = '\0';
        if (parse_number(at + 1, &number) != 0 || number < 0)
            return 0;
    }
    return parse_number(buffer, &number) == 0 && number >= 0;
}

static int is_slot(const char *item, size_t length)
{
    (void)item;
    return length > 0 && length <= 2 && strspn(item, "0123456789") == length && atoi(item) < MAX_GPUS;
}

static int is_call(const char *item, size_t length)
{
    char name[96];
    if (length >= sizeof(name))
        return 0;
    memcpy(name, item, length);
    name[length] = '\0';
    return strcmp(name, "all") == 0 || call_known(name);
}

static const char *number_problem(const char *value, int64_t low, int64_t high)
{
    int64_t number;
    if (parse_number(value, &number) != 0)
        return "not a number";
    return number < low || number > high ? "number out of range" : NULL;
}

static const char *gpu_problem(const char *key, const char *value)
{
    const struct key *known = find(key);
    int64_t code;
    unsigned a, b, c, d;
    int used = 0;
    if (known == NULL)
        return "unknown key";
    if (known->type != FLAG && known->type != PLACE && *value == '!')
        return error_code(value, &code) ? NULL : "not an error code";
    switch (known->type) {
    case NUMBER:
        return number_problem(value, INT64_MIN, known->max ? known->max : INT64_MAX);
    case SWITCH:
    case FLAG:
        return number_problem(value, 0, 1);
    case TEXT:
        return strlen(value) < 80 ? NULL : "text too long";
    case BDF:
        return sscanf(value, "%8x:%2x:%2x.%1x%n", &a, &b, &c, &d, &used) == 4 && value[used] == '\0'
                   ? NULL
                   : "not a PCI address like 0000:18:00.0";
    case CAPABILITY:
        return sscanf(value, "%2u.%2u%n", &a, &b, &used) == 2 && value[used] == '\0' ? NULL : "not like 9.0";
    case PROCESSES:
        return each(value, is_process) ? NULL : "not a list of pid:bytes";
    case PAGES:
        return each(value, is_page) ? NULL : "not a list of addresses";
    case PLACE:
        return strcmp(value, "call") == 0 || strcmp(value, "handle") == 0 ? NULL : "not call or handle";
    }
    return "unknown key";
}

/* "gpu3.rest" or "gpu*.rest": the rest, else NULL. */
static const char *behind_slot(const char *key)
{
    if (strncmp(key, "gpu", 3) != 0)
        return NULL;
    size_t digits = strspn(key + 3, "0123456789");
    if (digits > 2 || (digits > 0 && atoi(key + 3) >= MAX_GPUS) || (digits == 2 && key[3] == '0'))
        return NULL;
    const char *dot = digits > 0 ? key + 3 + digits : key[3] == '*' ? key + 4 : key + 3;
    return dot > key + 3 && *dot == '.' ? dot + 1 : NULL;
}

const char *key_problem(const char *key, const char *value)
{
    const char *rest = behind_slot(key);
    if (rest != NULL)
        return gpu_problem(rest, value);
    if (strncmp(key, "error.", 6) == 0) {
        rest = behind_slot(key + 6) != NULL ? behind_slot(key + 6) : key + 6;
        return is_call(rest, strlen(rest)) ? number_problem(value, 0, 999) : "unknown call";
    }
    if (strncmp(key, "delay.", 6) == 0)
        return is_call(key + 6, strlen(key + 6)) ? number_problem(value, 0, INT_MAX) : "unknown call";
    if (strcmp(key, "hang.call") == 0)
        return each(value, is_call) && *value != '\0' ? NULL : "unknown call";
    if (strcmp(key, "hang.kind") == 0)
        return strcmp(value, "sleep") == 0 || strcmp(value, "ignoreterm") == 0 || strcmp(value, "write") == 0
                   ? NULL
                   : "not sleep, ignoreterm or write";
    if (strcmp(key, "hang.path") == 0)
        return *value == '/' ? NULL : "not an absolute path";
    if (strcmp(key, "hang.gpu") == 0)
        return number_problem(value, 0, MAX_GPUS - 1);
    if (strcmp(key, "gpus") == 0)
        return number_problem(value, 0, MAX_GPUS);
    if (strcmp(key, "hang.times") == 0 || strcmp(key, "cuda") == 0 || strcmp(key, "init_delay_ms") == 0)
        return number_problem(value, 0, INT_MAX);
    if (strcmp(key, "model") == 0)
        return model_known(value) ? NULL : "unknown model";
    if (strcmp(key, "order") == 0)
        return each(value, is_slot) ? NULL : "not a list of slots";
    if (strcmp(key, "driver") == 0 || strcmp(key, "nvml") == 0 || strcmp(key, "node") == 0)
        return strlen(value) < 80 ? NULL : "text too long";
    return "unknown key";
}

static nvmlReturn_t number_or_code(const char *value, int64_t *out)
{
    int64_t code;
    if (error_code(value, &code))
        return (nvmlReturn_t)code;
    return parse_number(value, out) == 0 ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

static nvmlReturn_t given(int64_t otherwise, int64_t *out)
{
    if (otherwise < INT64_MIN + 1000)
        return (nvmlReturn_t)(otherwise - INT64_MIN);
    *out = otherwise;
    return NVML_SUCCESS;
}

nvmlReturn_t gpu_value_or(int slot, const char *key, int64_t otherwise, int64_t *out)
{
    const char *value = gpu_raw(slot, key);
    return value != NULL ? number_or_code(value, out) : given(otherwise, out);
}

nvmlReturn_t gpu_value(int slot, const char *key, int64_t *out)
{
    const char *value = gpu_raw(slot, key);
    if (value != NULL)
        return number_or_code(value, out);
    const struct key *known = find(key);
    if (known == NULL)
        return NVML_ERROR_UNKNOWN;
    switch (known->source) {
    case CONSTANT:
        return given(known->constant, out);
    case MODEL:
        return given(*(const int64_t *)((const char *)model() + known->constant), out);
    case OTHER_KEY:
        return gpu_value(slot, known->other, out);
    case COMPUTED:
        return given(known->compute(slot), out);
    }
    return NVML_ERROR_UNKNOWN;
}

int64_t gpu_number(int slot, const char *key)
{
    int64_t number = 0;
    return gpu_value(slot, key, &number) == NVML_SUCCESS ? number : 0;
}

/* A number of 64 bits that is the same for one node, slot and purpose: UUIDs and serials differ between nodes. */
static uint64_t fingerprint(int slot, unsigned purpose)
{
    char host[256] = "";
    const char *node = node_raw("node");
    if (node == NULL) {
        gethostname(host, sizeof(host) - 1);
        node = host;
    }
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ ((uint64_t)purpose << 32 | (unsigned)slot);
    for (int round = 0; round < 4; round++) {
        const char *c = node;
        do
            hash = (hash ^ (unsigned char)*c ^ (unsigned)round) * UINT64_C(0x100000001b3);
        while (*c++ != '\0');
    }
    return hash ^ hash >> 29;
}

nvmlReturn_t gpu_text(int slot, const char *key, char *out, size_t size)
{
    static const char *const buses = "18,2a,3a,5d,9a,ab,ba,db,19,2b,3b,5e,9b,ac,bb,dc";
    const char *value = gpu_raw(slot, key);
    const struct model *m = model();
    int64_t code;
    if (value != NULL && error_code(value, &code))
        return (nvmlReturn_t)code;
    if (value != NULL) {
        snprintf(out, size, "%s", value);
    } else if (strcmp(key, "uuid") == 0 || strcmp(key, "fabric.cluster_uuid") == 0) {
        int cluster = *key == 'f';
        uint64_t a = cluster ? UINT64_C(0x6b1f3c2a9d584e07) : fingerprint(slot, 1);
        uint64_t b = cluster ? UINT64_C(0x8a2e5d7c41f09b63) : fingerprint(slot, 2);
        snprintf(out, size, "%s%08x-%04x-%04x-%04x-%012llx", cluster ? "" : "GPU-", (unsigned)(a >> 32),
                 (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xffff, (unsigned)(b >> 48),
                 (unsigned long long)(b & UINT64_C(0xffffffffffff)));
    } else if (strcmp(key, "serial") == 0) {
        snprintf(out, size, "165%010llu", (unsigned long long)(fingerprint(slot, 3) % UINT64_C(10000000000)));
    } else if (strcmp(key, "bdf") == 0) {
        snprintf(out, size, "0000:%.2s:00.0", buses + 3 * (slot % MAX_GPUS));
    } else {
        const char *text = strcmp(key, "name") == 0            ? m->name
                           : strcmp(key, "vbios") == 0         ? m->vbios
                           : strcmp(key, "part") == 0          ? m->part
                           : strcmp(key, "inforom.image") == 0 ? m->inforom
                           : strcmp(key, "cc") == 0            ? m->cc
                                                               : NULL;
        if (text == NULL)
            return NVML_ERROR_UNKNOWN;
        snprintf(out, size, "%s", text);
    }
    return NVML_SUCCESS;
}
