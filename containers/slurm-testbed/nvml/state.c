/* The state file: read when it has changed, kept sorted, looked up by key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fcntl.h>

#include "gpusim.h"

#define MAX_BYTES (1 << 20)

struct entry {
    const char *key, *value;
    int line;
};

static char path[4096] = "/var/lib/gpusim/state";
static char *text;            /* the file's bytes; the entries point into them */
static struct entry *entries; /* sorted by key, one each */
static size_t count;
static int for_all; /* does any key start with gpu*? */
static int faults;  /* does any key ask for an error, a delay or a hang? */
static struct stat seen;
static enum { NEVER, ABSENT, READ, BROKEN } status = NEVER;

static void forget(void)
{
    free(text);
    free(entries);
    text = NULL;
    entries = NULL;
    count = 0;
    for_all = faults = 0;
}

void state_set_path(const char *new_path)
{
    if (strlen(new_path) < sizeof(path) && strcmp(new_path, path) != 0) {
        strcpy(path, new_path);
        forget();
        status = NEVER;
    }
}

const char *state_path(void) { return path; }
int state_has_faults(void) { return faults; }

static int broken(int line, const char *key, const char *why)
{
    /* Once for each version of the file, as this is called only when it has changed. */
    char shown[61];
    size_t n = 0;
    for (; key[n] != '\0' && n < sizeof(shown) - 1; n++)
        shown[n] = key[n] >= ' ' && key[n] < 127 ? key[n] : '?';
    shown[n] = '\0';
    if (line > 0)
        fprintf(stderr, "gpusim: %s, line %d, %s: %s\n", path, line, shown, why);
    else
        fprintf(stderr, "gpusim: %s: %s\n", path, why);
    forget();
    status = BROKEN;
    return -1;
}

static int by_key_then_line(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : x->line - y->line;
}

static char *trim(char *s)
{
    while (*s == ' ' || *s == '\t')
        s++;
    char *end = s + strlen(s);
    while (end > s && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    *end = '\0';
    return s;
}

static int add_line(char *line, int number, size_t *room)
{
    line = trim(line);
    if (*line == '\0' || *line == '#')
        return 0;
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return broken(number, line, "no '='");
    *equals = '\0';
    const char *key = trim(line), *value = trim(equals + 1);
    const char *problem = strlen(key) >= KEY_LEN ? "key too long" : key_problem(key, value);
    if (problem != NULL)
        return broken(number, key, problem);
    if (count == *room) {
        *room = *room ? *room * 2 : 64;
        struct entry *more = realloc(entries, *room * sizeof(*more));
        if (more == NULL)
            return broken(0, "", "out of memory");
        entries = more;
    }
    entries[count++] = (struct entry){key, value, number};
    for_all |= strncmp(key, "gpu*.", 5) == 0;
    faults |= strncmp(key, "error.", 6) == 0 || strncmp(key, "delay.", 6) == 0 || strncmp(key, "hang.", 5) == 0;
    return 0;
}

static int parse(void)
{
    size_t room = 0;
    int number = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (add_line(line, ++number, &room) != 0)
            return -1;
    if (count == 0)
        return 0;
    qsort(entries, count, sizeof(*entries), by_key_then_line);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) /* the last of equal keys counts */
        if (i + 1 == count || strcmp(entries[i].key, entries[i + 1].key) != 0)
            entries[kept++] = entries[i];
    count = kept;
    return 0;
}

static int load(int fd)
{
    if (fstat(fd, &seen) != 0)
        return broken(0, "", strerror(errno));
    if (seen.st_size > MAX_BYTES)
        return broken(0, "", "too large");
    text = malloc((size_t)seen.st_size + 1);
    if (text == NULL)
        return broken(0, "", "out of memory");
    size_t have = 0;
    ssize_t got;
    while (have < (size_t)seen.st_size && (got = read(fd, text + have, (size_t)seen.st_size - have)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return broken(0, "", strerror(errno));
        have += (size_t)got;
    }
    text[have] = '\0';
    if (strlen(text) != have)
        return broken(0, "", "has a zero byte");
    status = READ;
    return parse();
}

static int same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int state_refresh(void)
{
    struct stat now;
    if (stat(path, &now) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            forget();
            status = ABSENT;
            return 0;
        }
        if (status == BROKEN)
            return -1;
        return broken(0, "", strerror(errno));
    }
    if ((status == READ || status == BROKEN) && same(&now, &seen))
        return status == READ ? 0 : -1;
    forget();
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        seen = now;
        return broken(0, "", strerror(errno));
    }
    int result = S_ISREG(now.st_mode) ? load(fd) : broken(0, "", "not a file");
    close(fd);
    return result;
}

static int against_entry(const void *key, const void *entry)
{
    return strcmp(key, ((const struct entry *)entry)->key);
}

const char *node_raw(const char *key)
{
    if (count == 0)
        return NULL;
    const struct entry *found = bsearch(key, entries, count, sizeof(*entries), against_entry);
    return found != NULL ? found->value : NULL;
}

int64_t node_number(const char *key, int64_t otherwise)
{
    const char *value = node_raw(key);
    int64_t number;
    return value != NULL && parse_number(value, &number) == 0 ? number : otherwise;
}

/* Built by hand: this is what a call spends its time on. */
const char *gpu_raw(int slot, const char *key)
{
    char full[KEY_LEN + 16] = "gpu";
    size_t at = 3, length = strlen(key);
    if (count == 0 || length >= KEY_LEN)
        return NULL;
    if (slot >= 10)
        full[at++] = (char)('0' + slot / 10);
    full[at++] = (char)('0' + slot % 10);
    full[at] = '.';
    memcpy(full + at + 1, key, length + 1);
    const char *value = node_raw(full);
    if (value == NULL && for_all) {
        full[3] = '*';
        full[4] = '.';
        memcpy(full + 5, key, length + 1);
        value = node_raw(full);
    }
    return value;
}
