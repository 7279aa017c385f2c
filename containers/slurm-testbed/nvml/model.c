/*
 * What each kind of GPU answers when nothing is said: names, limits and capabilities as NVIDIA's data sheets, the NVML
 * reference ("supported on") and nvidia-smi output published by users show them; taken down 2026-11-30. Idle values are
 * those of a machine in persistence mode without a job.
 */
#include <string.h>

#include "gpusim.h"

#define MIB (INT64_C(1) << 20)

#define HOPPER_COMMON \
    .driver = "550.90.07", .cuda = 12040, .cc = "9.0", .brand = 14, .arch = 9, .cores = 16896, .pstate = 0, \
    .temp = 31, .temp_mem = 42, .shutdown = 92, .slowdown = 89, .mem_max = 95, .gpu_max = 87, .power = 71000, \
    .power_default = 700000, .power_min = 200000, .power_max = 700000, .clock_sm = 345, .clock_video = 765, \
    .clock_max_sm = 1980, .clock_max_video = 1545, .clock_app_sm = 1980, .pcie_gen = 5, .pcie_width = 16, \
    .pcie_max_gen = 5, .nvlinks = 18, .nvlink_version = 6, .nvlink_mbps = 26562, .retired = UNSUPPORTED, \
    .ecc_parts = UNSUPPORTED, .inforom = "G520.0200.00.05", .bar1_total = 131072 * MIB

#define A100_COMMON \
    .name = "NVIDIA A100-SXM4-80GB", .vbios = "92.00.45.00.03", .part = "692-2G506-0212-002", .driver = "535.183.01", \
    .cuda = 12020, .inforom = "G506.0212.00.02", .cc = "8.0", .brand = 14, .arch = 7, .cores = 6912, \
    .bus_width = 5120, .device_id = 0x20B210DE, .subsystem_id = 0x147F10DE, .mem_total = 81920 * MIB, \
    .mem_reserved = 640 * MIB, .bar1_total = 131072 * MIB, .pstate = 0, .temp = 32, .temp_mem = 38, .shutdown = 92, \
    .slowdown = 89, .mem_max = 95, .gpu_max = 85, .power = 61000, .power_default = 400000, .power_min = 100000, \
    .power_max = 400000, .clock_sm = 210, .clock_mem = 1593, .clock_video = 585, .clock_max_sm = 1410, \
    .clock_max_mem = 1593, .clock_max_video = 1290, .clock_app_sm = 1275, .pcie_gen = 4, .pcie_width = 16, \
    .pcie_max_gen = 4, .nvlink_version = 4, .nvlink_mbps = 25781, .remap_banks = 640, .retired = UNSUPPORTED, \
    .unrepairable = UNSUPPORTED, .fabric = UNSUPPORTED, .ecc_parts = UNSUPPORTED, .nvlinks = 12

static const struct model models[] = {
    {.id = "H100", .name = "NVIDIA H100 80GB HBM3", .vbios = "96.00.74.00.01", .part = "692-2G520-0200-000",
     .device_id = 0x233010DE, .subsystem_id = 0x16C110DE, .bus_width = 5120, .mem_total = 81559 * MIB,
     .mem_reserved = 551 * MIB, .clock_mem = 2619, .clock_max_mem = 2619, .remap_banks = 2560, HOPPER_COMMON},
    {.id = "H200", .name = "NVIDIA H200", .vbios = "96.00.99.00.01", .part = "692-2G520-0280-001",
     .device_id = 0x233510DE, .subsystem_id = 0x18BE10DE, .bus_width = 6144, .mem_total = 143771 * MIB,
     .mem_reserved = 616 * MIB, .clock_mem = 3201, .clock_max_mem = 3201, .remap_banks = 3072, HOPPER_COMMON},
    {.id = "A100", A100_COMMON},
    {.id = "A100-MIG", .mig = 1, .mig_instances = 7, A100_COMMON},
    /* PCIe card: at idle P8 and generation 1; no NVLink, no fabric, no MIG. */
    {.id = "L40S", .name = "NVIDIA L40S", .vbios = "95.02.66.00.02", .part = "900-2G133-0080-000",
     .driver = "550.90.07", .cuda = 12040, .inforom = "G133.0242.00.03", .cc = "8.9", .brand = 14, .arch = 8,
     .cores = 18176, .bus_width = 384, .device_id = 0x26B910DE, .subsystem_id = 0x185110DE, .mem_total = 46068 * MIB,
     .mem_reserved = 600 * MIB, .bar1_total = 65536 * MIB, .pstate = 8, .temp = 34, .temp_mem = UNSUPPORTED,
     .shutdown = 94, .slowdown = 91, .mem_max = UNSUPPORTED, .gpu_max = 88, .power = 34000, .power_default = 350000,
     .power_min = 100000, .power_max = 350000, .clock_sm = 210, .clock_mem = 405, .clock_video = 1185,
     .clock_max_sm = 2520, .clock_max_mem = 9001, .clock_max_video = 1965, .clock_app_sm = 2520, .pcie_gen = 1,
     .pcie_width = 16, .pcie_max_gen = 4, .remap_banks = 192, .retired = UNSUPPORTED, .unrepairable = UNSUPPORTED,
     .fabric = UNSUPPORTED, .ecc_parts = UNSUPPORTED, .mig = UNSUPPORTED},
    /* Before Ampere: pages instead of rows, ECC by part instead of the SRAM sum. */
    {.id = "V100", .name = "Tesla V100-SXM2-32GB", .vbios = "88.00.80.00.01", .part = "900-2G503-0010-000",
     .driver = "535.183.01", .cuda = 12020, .inforom = "G503.0203.00.05", .cc = "7.0", .brand = 2, .arch = 5,
     .cores = 5120, .bus_width = 4096, .device_id = 0x1DB510DE, .subsystem_id = 0x124910DE, .mem_total = 32768 * MIB,
     .mem_reserved = 258 * MIB, .bar1_total = 32768 * MIB, .pstate = 0, .temp = 33, .temp_mem = 32, .shutdown = 90,
     .slowdown = 87, .mem_max = 85, .gpu_max = 83, .power = 41000, .power_default = 300000, .power_min = 150000,
     .power_max = 300000, .clock_sm = 135, .clock_mem = 877, .clock_video = 555, .clock_max_sm = 1530,
     .clock_max_mem = 877, .clock_max_video = 1372, .clock_app_sm = 1290, .pcie_gen = 3, .pcie_width = 16,
     .pcie_max_gen = 3, .nvlinks = 6, .nvlink_version = 2, .nvlink_mbps = 25781, .remap = UNSUPPORTED,
     .unrepairable = UNSUPPORTED, .repair = UNSUPPORTED, .recovery = UNSUPPORTED, .fabric = UNSUPPORTED,
     .sram = UNSUPPORTED, .mig = UNSUPPORTED},
};

static const struct model *find(const char *id)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strcmp(models[i].id, id) == 0)
            return &models[i];
    return NULL;
}

int model_known(const char *id) { return find(id) != NULL; }

const struct model *model(void)
{
    const char *id = node_raw("model");
    return id != NULL ? find(id) : &models[0]; /* key_problem() lets only known ones in */
}
