/* What stands around every call: the lock, the fresh state, the faults that were asked for, the life of the library. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gpusim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* nvmlInit calls without their nvmlShutdown */
static int attached[MAX_GPUS];
static struct nvmlDevice_st devices[MAX_GPUS][MAX_MIG + 1];

static const char *const calls[] = {
#include "calls.inc"
};

int call_known(const char *name)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(calls[i], name) == 0)
            return 1;
    return 0;
}

nvmlDevice_t device_handle(int slot, int mig)
{
    struct nvmlDevice_st *device = &devices[slot][mig + 1];
    device->slot = slot;
    device->mig = mig;
    return device;
}

static int valid(nvmlDevice_t device)
{
    /* Compared as addresses: a caller may hand us anything. */
    uintptr_t at = (uintptr_t)device, first = (uintptr_t)&devices[0][0];
    return at >= first && at < first + sizeof(devices) && (at - first) % sizeof(devices[0][0]) == 0;
}

int call_sleep_ms(int64_t ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    pthread_mutex_unlock(&lock);
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&lock);
    return state_refresh();
}

/* Is this still one of the first N hangs? They are counted as bytes of a file that all processes share. */
static int hang_left(int64_t times)
{
    char name[4096 + 8];
    struct stat info;
    int left = 0;
    snprintf(name, sizeof(name), "%s.hangs", state_path());
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || flock(fd, LOCK_EX) != 0 || fstat(fd, &info) != 0) {
        fprintf(stderr, "gpusim: %s: %s\n", name, strerror(errno));
    } else {
        if ((info.st_mode & 0666) != 0666)
            (void)!fchmod(fd, 0666); /* users count too; fails where it is not ours, which is fine */
        left = info.st_size < times && write(fd, "x", 1) == 1;
    }
    if (fd >= 0)
        close(fd);
    return left;
}

static void hang_in_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || pwrite(fd, "x", 1, 0) != 1 || fsync(fd) != 0)
        fprintf(stderr, "gpusim: hang.path %s: %s\n", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static nvmlReturn_t hang(const char *kind, const char *path)
{
    char *copy = path != NULL ? strdup(path) : NULL; /* the state may be read anew while the lock is open */
    int writes = kind != NULL && strcmp(kind, "write") == 0;
    int deaf = kind != NULL && strcmp(kind, "ignoreterm") == 0;
    pthread_mutex_unlock(&lock);
    if (writes) {
        if (copy != NULL)
            hang_in_write(copy);
    } else {
        if (deaf) {
            sigset_t term;
            sigemptyset(&term);
            sigaddset(&term, SIGTERM);
            pthread_sigmask(SIG_BLOCK, &term, NULL);
            signal(SIGTERM, SIG_IGN); /* other threads of this process would take it */
        }
        for (;;)
            pause();
    }
    pthread_mutex_lock(&lock);
    free(copy);
    return NVML_ERROR_UNKNOWN;
}

static int listed(const char *list, const char *name, int spared)
{
    size_t length = strlen(name);
    for (const char *word = list; *word != '\0';) {
        size_t size = strcspn(word, ",");
        if (size == length && strncmp(word, name, size) == 0)
            return 1;
        if (size == 3 && strncmp(word, "all", 3) == 0 && !spared)
            return 1;
        word += size + (word[size] == ',');
    }
    return 0;
}

/* "error.nvmlX", then "error.all"; with a prefix like "gpu3." between. */
static int injected(const char *family, const char *prefix, const char *name, int spared, int64_t *out)
{
    char key[KEY_LEN + 32];
    int64_t none = -1, number;
    snprintf(key, sizeof(key), "%s%s%s", family, prefix, name);
    number = node_number(key, none);
    if (number == none && !spared) {
        snprintf(key, sizeof(key), "%s%sall", family, prefix);
        number = node_number(key, none);
    }
    *out = number;
    return number != none;
}

/* The faults for a call: of the node (slot -1), or those of one GPU. */
static nvmlReturn_t faults(const char *name, int slot)
{
    if (!state_has_faults())
        return NVML_SUCCESS;
    int spared = strcmp(name, "nvmlShutdown") == 0;
    const char *list = node_raw("hang.call");
    int64_t number;
    if (list != NULL && node_number("hang.gpu", -1) == slot && listed(list, name, spared)) {
        int64_t times = node_number("hang.times", -1);
        if (times < 0 || hang_left(times))
            return hang(node_raw("hang.kind"), node_raw("hang.path"));
    }
    if (slot < 0) {
        if (injected("delay.", "", name, spared, &number) && number > 0 && call_sleep_ms(number) != 0)
            return NVML_ERROR_UNKNOWN;
        return injected("error.", "", name, spared, &number) ? (nvmlReturn_t)number : NVML_SUCCESS;
    }
    char prefix[16];
    snprintf(prefix, sizeof(prefix), "gpu%d.", slot);
    if (injected("error.", prefix, name, spared, &number) || injected("error.", "gpu*.", name, spared, &number))
        return (nvmlReturn_t)number;
    return NVML_SUCCESS;
}

static nvmlReturn_t begin(struct call *call, const char *name, int needs_init)
{
    pthread_mutex_lock(&lock);
    call->name = name;
    call->slot = call->mig = -1;
    if (needs_init && users == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (state_refresh() != 0)
        return NVML_ERROR_UNKNOWN;
    return faults(name, -1);
}

void call_begin(struct call *call, const char *name) { call->rc = begin(call, name, 1); }

void call_on_slot(struct call *call, int slot)
{
    call->slot = slot;
    call->rc = faults(call->name, slot);
}

void call_begin_device(struct call *call, const char *name, nvmlDevice_t device, int mig_too)
{
    call->rc = begin(call, name, 1);
    if (call->rc != NVML_SUCCESS)
        return;
    if (!valid(device) || (device->mig >= 0 && !mig_too)) {
        call->rc = NVML_ERROR_INVALID_ARGUMENT;
        return;
    }
    int slot = device->slot;
    call_on_slot(call, slot);
    call->mig = device->mig;
    if (call->rc != NVML_SUCCESS)
        return;
    if (slot >= node_number("gpus", 8) || !gpu_number(slot, "present") || gpu_number(slot, "lost"))
        call->rc = NVML_ERROR_GPU_IS_LOST;
}

void call_end(struct call *call)
{
    (void)call;
    pthread_mutex_unlock(&lock);
}

nvmlReturn_t runtime_init(const char *name)
{
    CALL_SCOPE call = {0};
    const char *path = getenv("GPUSIM_STATE");
    pthread_mutex_lock(&lock);
    state_set_path(path != NULL && *path != '\0' ? path : "/var/lib/gpusim/state");
    pthread_mutex_unlock(&lock);
    call.rc = begin(&call, name, 0);
    if (call.rc == NVML_SUCCESS)
        users++;
    return call.rc;
}

nvmlReturn_t runtime_shutdown(void)
{
    CALL_SCOPE call = {0};
    call.rc = begin(&call, "nvmlShutdown", 1);
    if (call.rc == NVML_SUCCESS && --users == 0)
        memset(attached, 0, sizeof(attached));
    return call.rc;
}

int runtime_attached(int slot)
{
    int before = attached[slot];
    attached[slot] = 1;
    return before;
}

int slots_in_order(int out[MAX_GPUS])
{
    int gpus = (int)node_number("gpus", 8), taken[MAX_GPUS] = {0}, n = 0;
    const char *order = node_raw("order");
    while (order != NULL && *order != '\0') {
        int slot = atoi(order);
        order += strcspn(order, ",");
        order += *order == ',';
        if (slot < gpus && !taken[slot]) {
            taken[slot] = 1;
            if (gpu_number(slot, "present"))
                out[n++] = slot;
        }
    }
    for (int slot = 0; slot < gpus; slot++)
        if (!taken[slot] && gpu_number(slot, "present"))
            out[n++] = slot;
    return n;
}
