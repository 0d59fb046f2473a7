/* See convert_kit.h. */
#include "convert_kit.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/xfer/foreign/protocol.h"

#define MOST_SECONDS 1 /* of processor time, a hundred times what a run takes: then it is ended */
#define MOST_MIB 1500

static _Noreturn void run_child(const brc_driver *driver, const char *file, int says)
{
    char format[] = "converter", verb[] = "import", name[512];
    char *args[] = { format, verb, name, NULL };
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct rlimit cpu = { MOST_SECONDS, MOST_SECONDS };

    snprintf(name, sizeof(name), "%s", file);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(says, STDERR_FILENO) < 0 ||
        setrlimit(RLIMIT_CPU, &cpu) < 0)
        _exit(1);
    _exit(brc_convert_main(3, args, driver));
}

static int is_part_line(const char *line)
{
    return strncmp(line, BRC_SAYS_LEFT_OUT, strlen(BRC_SAYS_LEFT_OUT)) == 0;
}

void convert_import(convert_ending *out, const brc_driver *driver, const char *file)
{
    int ends[2], status;
    size_t len = 0;
    ssize_t n;
    struct rusage used;

    memset(out, 0, sizeof(*out));
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        run_child(driver, file, ends[1]);
    close(ends[1]);
    while ((n = read(ends[0], out->says + len, sizeof(out->says) - 1 - len)) > 0) {
        len += (size_t)n;
        char *line = len > sizeof(out->says) / 2 ? memchr(out->says, '\n', len) : NULL;
        while (line && line + 1 < out->says + len && is_part_line(out->says)) { /* words count */
            len -= (size_t)(line + 1 - out->says);
            memmove(out->says, line + 1, len);
            line = memchr(out->says, '\n', len);
        }
        memset(out->says + len, 0, sizeof(out->says) - len);
    }
    close(ends[0]);
    ck_assert_int_eq(wait4(child, &status, 0, &used), child);
    out->crashed = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->endless = out->crashed == SIGXCPU || out->crashed == SIGKILL;
    out->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->mib = used.ru_maxrss / 1024;
}

/* One line, and it ends as one; before it, others may tell what cannot be kept. */
static int is_sentence(const char *text)
{
    const char *end = strchr(text, '\n');
    while (end && is_part_line(text)) {
        text = end + 1;
        end = strchr(text, '\n');
    }
    return end && end > text && end[1] == '\0';
}

/* Returns whether a sanitizer's report blames the format's library, called by us or by itself, and
 * not our own code. */
static int is_in_library(const char *report)
{
    const char *frame = strstr(report, "#0 "), *end = frame ? strstr(frame, "#2 ") : NULL;
    for (; frame && end && frame < end; frame++)
        if (strncmp(frame, "/libhdf5", 8) == 0 || strncmp(frame, "/libnetcdf", 10) == 0)
            return 1;
    return 0;
}

int convert_check(const convert_ending *run, const char *what, size_t at)
{
    if (strstr(run->says, "ERROR: AddressSanitizer"))
        ck_assert_msg(run->crashed && is_in_library(run->says), "%s %zu: %s", what, at, run->says);
    ck_assert_msg(run->mib < MOST_MIB, "%s %zu: %ld MiB", what, at, run->mib);
    if (run->crashed)
        return 0;
    if (run->status == BRC_STATUS_GOOD) {
        ck_assert_msg(run->says[0] == '\0', "%s %zu: %s", what, at, run->says);
        return 1;
    }
    ck_assert_msg(brc_code_of_status(run->status) != 0 && is_sentence(run->says),
                  "%s %zu: status %d: %s", what, at, run->status, run->says);
    ck_assert_msg(brc_code_of_status(run->status) != BRC_EINTERNAL, "%s %zu: %s", what, at,
                  run->says);
    return 0;
}

static void try_bytes(convert_damage *out, const brc_driver *driver, const char *dir,
                      const uint8_t *data, size_t len, const char *what, size_t at)
{
    char path[512];
    convert_ending run;
    snprintf(path, sizeof(path), "%s/damaged", dir);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert(len == 0 || fwrite(data, len, 1, f) == 1);
    ck_assert_int_eq(fclose(f), 0);
    convert_import(&run, driver, path);
    if (convert_check(&run, what, at))
        out->good++;
    else if (run.crashed)
        out->crashed++;
    else
        out->refused++;
}

void convert_flip_all(convert_damage *out, const brc_driver *driver, const char *dir,
                      const uint8_t *data, size_t len, size_t step)
{
    static const uint8_t flips[] = { 0x01, 0x80, 0x10, 0xff };
    uint8_t *copy = malloc(len);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, data, len);
    for (size_t i = 0; i < len; i += step) {
        uint8_t flip = flips[i / step % 4];
        copy[i] ^= flip;
        try_bytes(out, driver, dir, copy, len, "flipped at byte", i);
        copy[i] ^= flip;
    }
    free(copy);
}

void convert_cut_all(convert_damage *out, const brc_driver *driver, const char *dir,
                     const uint8_t *data, size_t len, size_t step)
{
    for (size_t i = 0; i < len; i += step)
        try_bytes(out, driver, dir, data, i, "cut at byte", i);
}
