/* What the files of the simulated NVML share: state (state.c), models (model.c), the frame of a call (call.c). */
#ifndef GPUSIM_H
#define GPUSIM_H

#include <stddef.h>
#include <stdint.h>

#include "nvml_abi.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 16
#define MAX_MIG 7
#define MAX_LINKS 18
#define KEY_LEN 128

/* A default that is an NVML error instead of a number. */
#define AS_ERROR(code) (INT64_MIN + (code))
#define UNSUPPORTED AS_ERROR(NVML_ERROR_NOT_SUPPORTED)

/* What one kind of GPU answers when the state file says nothing. Sources in model.c. */
struct model {
    const char *id, *name, *vbios, *part, *driver, *inforom, *cc;
    int64_t brand, arch, cores, bus_width, cuda;
    int64_t device_id, subsystem_id;
    int64_t mem_total, mem_reserved, bar1_total;
    int64_t pstate, temp, temp_mem, shutdown, slowdown, mem_max, gpu_max;
    int64_t power, power_default, power_min, power_max;
    int64_t clock_sm, clock_mem, clock_video, clock_max_sm, clock_max_mem, clock_max_video, clock_app_sm;
    int64_t pcie_gen, pcie_width, pcie_max_gen;
    int64_t nvlinks, nvlink_version, nvlink_mbps;
    int64_t remap, remap_banks, retired, unrepairable, repair, recovery, fabric, ecc_parts, sram; /* 0 or UNSUPPORTED */
    int64_t mig, mig_instances;
};

/* state.c: the file. All of it is called with the lock of a call held. */
int state_refresh(void);                     /* 0, or -1 when the file cannot be used */
void state_set_path(const char *path);
const char *state_path(void);
int state_has_faults(void);
const char *node_raw(const char *key);       /* text of a node's key, or NULL */
int64_t node_number(const char *key, int64_t otherwise);
const char *gpu_raw(int slot, const char *key);

/* keys.c: which keys there are, and their defaults. */
const char *key_problem(const char *key, const char *value); /* NULL, or what is wrong */
int parse_number(const char *text, int64_t *out);            /* 0, or -1 */
nvmlReturn_t gpu_value(int slot, const char *key, int64_t *out);
nvmlReturn_t gpu_value_or(int slot, const char *key, int64_t otherwise, int64_t *out);
int64_t gpu_number(int slot, const char *key);               /* 0 where the value is an error */
nvmlReturn_t gpu_text(int slot, const char *key, char *out, size_t size);

/* model.c */
const struct model *model(void);
int model_known(const char *id);

/* call.c: what stands around each call. */
struct nvmlDevice_st {
    int slot;
    int mig; /* -1: the GPU itself */
};
struct call {
    nvmlReturn_t rc;
    const char *name;
    int slot, mig;
};
void call_begin(struct call *call, const char *name);
void call_begin_device(struct call *call, const char *name, nvmlDevice_t device, int mig_too);
void call_on_slot(struct call *call, int slot); /* the faults of one GPU, for calls that find it themselves */
void call_end(struct call *call);
int call_sleep_ms(int64_t ms); /* with the lock open; what state_refresh() says then */
nvmlDevice_t device_handle(int slot, int mig);
int call_known(const char *name);
nvmlReturn_t runtime_init(const char *name);
nvmlReturn_t runtime_shutdown(void);
int runtime_attached(int slot);                 /* was it already initialised? From now on it is. */
int slots_in_order(int out[MAX_GPUS]);          /* present ones by NVML index; their number */

#define CALL_SCOPE __attribute__((cleanup(call_end))) struct call
/* Opens a call on the node; the function returns where the call may not go on. */
#define ENTER_NODE() \
    CALL_SCOPE call = {0}; \
    call_begin(&call, __func__); \
    if (call.rc != NVML_SUCCESS) \
        return call.rc
#define ENTER_AS(device, mig_too) \
    CALL_SCOPE call = {0}; \
    call_begin_device(&call, __func__, device, mig_too); \
    if (call.rc != NVML_SUCCESS) \
        return call.rc; \
    const int gpu = call.slot; \
    (void)gpu
#define ENTER(device) ENTER_AS(device, 0)     /* a GPU */
#define ENTER_ANY(device) ENTER_AS(device, 1) /* a GPU or a MIG device */
#define NEED(condition) \
    if (!(condition)) \
        return NVML_ERROR_INVALID_ARGUMENT

/* values.c: small readers that several calls use. */
nvmlReturn_t put_uint(int slot, const char *key, unsigned *out);
nvmlReturn_t put_ull(int slot, const char *key, unsigned long long *out);
nvmlReturn_t put_text(const char *text, char *out, unsigned size);
nvmlReturn_t put_gpu_text(int slot, const char *key, char *out, unsigned size);
nvmlReturn_t ecc_count(int slot, int kind, int when, const char *location, int64_t *out);
nvmlReturn_t link_value(int slot, unsigned link, const char *what, int64_t *out);
nvmlReturn_t link_total(int slot, const char *what, int64_t *out);
int retired_pages(int slot, const char *cause, unsigned long long *pages, unsigned long long *times, int room);
int gpu_processes(int slot, const char *key, nvmlProcessInfo_t *out, int room);
int64_t used_memory(int slot);
void mig_profile(int slot, int mig, char *out, size_t size); /* "1g.10gb" of one MIG device */
void parse_bdf(const char *text, unsigned *domain, unsigned *bus, unsigned *device);
nvmlReturn_t fill_pci(const char *bdf, int64_t device_id, int64_t subsystem_id, nvmlPciInfo_t *out);

#endif
