#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hash.h"
#include "json.h"

/* ==== clock ================================ */

int64_t brc_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t brc_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ==== process ================================ */

typedef struct process_facts {
    char machine[64], boot[64]; /* "" if unknown */
    int64_t space, pid, start;  /* 0 if unknown  */
} process_facts;

/* Reads the first line of a small file; "" if the file cannot be read. */
static void read_line(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

/* Returns when a process started, in ticks since the boot, or 0 if there is no such process. This
 * is the 22nd field of stat in proc(5); the second is the program's name in parentheses, which may
 * contain any character. */
static int64_t start_of(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    read_line(path, text, sizeof(text));
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    return at != NULL ? strtoll(at, NULL, 10) : 0;
}

/* Keeps an id only if it consists of hexadecimal digits and dashes, as in these files. */
static void keep_id(char *text)
{
    if (text[strspn(text, "0123456789abcdef-")] != '\0')
        *text = '\0';
}

static void look_at_self(process_facts *out)
{
    struct stat space;
    memset(out, 0, sizeof(*out));
    read_line("/etc/machine-id", out->machine, sizeof(out->machine));
    read_line("/proc/sys/kernel/random/boot_id", out->boot, sizeof(out->boot));
    keep_id(out->machine);
    keep_id(out->boot);
    if (stat("/proc/self/ns/pid", &space) == 0)
        out->space = (int64_t)space.st_ino;
    out->pid = getpid();
    out->start = start_of(out->pid);
}

static int describe_facts(const process_facts *facts, brc_buf *out, brc_error *err)
{
    uint8_t token[BRC_PROCESS_TOKEN / 2];
    BRC_TRY(brc_random(token, sizeof(token), err));
    BRC_TRY(brc_buf_text(out, "{", err));
    if (*facts->machine)
        BRC_TRY(brc_buf_printf(out, err, "\"machine\":\"%s\",", facts->machine));
    if (facts->space)
        BRC_TRY(brc_buf_printf(out, err, "\"pid_namespace\":%" PRId64 ",", facts->space));
    if (*facts->boot)
        BRC_TRY(brc_buf_printf(out, err, "\"boot\":\"%s\",", facts->boot));
    BRC_TRY(brc_buf_printf(out, err, "\"pid\":%" PRId64 ",", facts->pid));
    if (facts->start)
        BRC_TRY(brc_buf_printf(out, err, "\"start\":%" PRId64 ",", facts->start));
    BRC_TRY(brc_buf_text(out, "\"token\":\"", err));
    for (size_t i = 0; i < sizeof(token); i++)
        BRC_TRY(brc_buf_printf(out, err, "%02x", token[i]));
    return brc_buf_text(out, "\"}", err);
}

int brc_process_describe(brc_buf *out, brc_error *err)
{
    process_facts self;
    look_at_self(&self);
    return describe_facts(&self, out, err);
}

/* ---- somebody else's -------------------------------- */

static void owner_text(char *out, size_t size, const brc_json *from, const char *name)
{
    const char *text = "";
    const brc_json *member = brc_json_member(from, name);
    if (member == NULL || brc_json_text(member, &text) < 0)
        text = "";
    snprintf(out, size, "%s", text);
}

static int64_t owner_number(const brc_json *from, const char *name)
{
    int64_t out = 0;
    const brc_json *member = brc_json_member(from, name);
    return member != NULL && brc_json_int(member, 1, INT64_MAX, &out) ? out : 0;
}

static void take_facts(const brc_json *json, process_facts *out)
{
    memset(out, 0, sizeof(*out));
    owner_text(out->machine, sizeof(out->machine), json, "machine");
    owner_text(out->boot, sizeof(out->boot), json, "boot");
    out->space = owner_number(json, "pid_namespace");
    out->pid = owner_number(json, "pid");
    out->start = owner_number(json, "start");
}

/* Reads a description. Returns 0 if the text is not one. */
static int read_owner(const char *owner, process_facts *out)
{
    brc_json *json;
    memset(out, 0, sizeof(*out));
    if (owner == NULL || brc_json_parse(&json, owner, strlen(owner), 0, NULL) < 0)
        return 0;
    take_facts(json, out);
    brc_json_free(json);
    return 1;
}

int brc_process_state(const char *owner)
{
    process_facts self, it;
    look_at_self(&self);
    if (!read_owner(owner, &it) || *it.machine == '\0' || *it.boot == '\0' || it.pid == 0 ||
        strcmp(it.machine, self.machine) != 0)
        return BRC_PROCESS_UNKNOWN;
    if (*self.boot && strcmp(it.boot, self.boot) != 0)
        return BRC_PROCESS_DEAD;
    if (it.space == 0 || it.space != self.space || it.start == 0)
        return BRC_PROCESS_UNKNOWN;
    return start_of(it.pid) == it.start ? BRC_PROCESS_ALIVE : BRC_PROCESS_DEAD;
}

int64_t brc_process_id(const char *owner)
{
    process_facts it;
    return read_owner(owner, &it) ? it.pid : 0;
}

int brc_process_is_this(const char *owner)
{
    return brc_process_id(owner) == (int64_t)getpid() &&
           brc_process_state(owner) == BRC_PROCESS_ALIVE;
}

/* Parses a description from the file: BRC_ECORRUPT if it is wrong, BRC_ENOMEM without memory. */
static int parse_owner(const char *owner, brc_json **out, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_json_parse(out, owner, strlen(owner), 0, &why);
    if (rc == BRC_ENOMEM && err != NULL)
        brc_error_copy(err, &why);
    return rc == BRC_ENOMEM || rc == BRC_OK
               ? rc : brc_fail(err, BRC_ECORRUPT, "the owner of uncommitted changes is damaged");
}

int brc_process_describe_as(brc_buf *out, const char *owner, brc_error *err)
{
    process_facts it;
    brc_json *json;
    BRC_TRY(parse_owner(owner, &json, err));
    take_facts(json, &it);
    brc_json_free(json);
    keep_id(it.machine);
    keep_id(it.boot);
    return describe_facts(&it, out, err);
}

int brc_process_token(char out[BRC_PROCESS_TOKEN + 1], const char *owner, brc_error *err)
{
    brc_json *json;
    const char *text = NULL;
    BRC_TRY(parse_owner(owner, &json, err));
    const brc_json *member = brc_json_member(json, "token");
    const int has = member != NULL && brc_json_text(member, &text) &&
                    strspn(text, "0123456789abcdef") == BRC_PROCESS_TOKEN &&
                    text[BRC_PROCESS_TOKEN] == '\0';
    memset(out, 0, BRC_PROCESS_TOKEN + 1);
    if (has)
        memcpy(out, text, BRC_PROCESS_TOKEN);
    brc_json_free(json);
    return has;
}
