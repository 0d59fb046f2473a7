/* Programs that write a stream or read one: whatever they do, the caller goes on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/base/part.h"
#include "../../src/xfer/foreign/child.h"
#include "../kit/process_kit.h"
#include "../kit/suite.h"

TEST_SUITE(child);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

static int go_on(void *ctx, brc_error *err)
{
    (void)ctx;
    (void)err;
    return BRC_OK;
}

static brc_child_spec spec_of(const char *script, int feeds)
{
    static const char *const none[] = { NULL };
    return (brc_child_spec){ .command = script,
                             .is_shell = 1,
                             .args = none,
                             .label = "the script",
                             .feeds = feeds,
                             .silence_ms = 60000,
                             .check = go_on };
}

static brc_child *start(const char *script, int feeds)
{
    brc_child_spec spec = spec_of(script, feeds);
    brc_error err = BRC_ERROR_INIT;
    brc_child *c;
    int rc = brc_child_start(&c, &spec, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    return c;
}

/* All that it writes, at most `most` bytes. */
static int read_out(brc_child *c, brc_buf *out, size_t most, brc_error *err)
{
    uint8_t bytes[4096];
    size_t n = 1;
    int rc = BRC_OK;
    while (rc == BRC_OK && n > 0 && out->len < most) {
        rc = brc_child_read(c, bytes, sizeof(bytes), &n, err);
        if (rc == BRC_OK)
            OK(brc_buf_append(out, bytes, n, NULL));
    }
    OK(brc_buf_terminate(out, NULL));
    return rc;
}

/* Runs a script that reads nothing: its status, and what it wrote. */
static int run_script(const char *script, const char *writes)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c = start(script, 0);
    int status = -1;
    OK(read_out(c, &out, SIZE_MAX, &err));
    OK(brc_child_end(c, 0, &status, &err));
    brc_child_free(c);
    if (writes)
        ck_assert_str_eq((char *)out.data, writes);
    brc_buf_dispose(&out);
    return status;
}

static int descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

CASE("ends", .timeout = 60);

/* ---- how they end -------------------------------------------------------------------- */

TEST(statuses_and_bytes_arrive)
{
    int before = descriptors();
    ck_assert_int_eq(run_script("printf abc", "abc"), 0);
    ck_assert_int_eq(run_script("exit 7", ""), 7);
    ck_assert_int_eq(run_script("exit 255", ""), 255);
    ck_assert_int_eq(run_script("(exit 3", ""), 2); /* sh's own, of wrong grammar */
    ck_assert_int_eq(run_script("/no/such/program", ""), 127);
    ck_assert_int_eq(run_script("printf x; kill -SEGV $$", "x"), 128 + SIGSEGV);
    ck_assert_int_eq(run_script("kill -KILL $$", ""), 128 + SIGKILL);
    ck_assert_int_eq(run_script("ulimit -S -t 1; while :; do :; done", ""), 128 + SIGXCPU);
    ck_assert_int_eq(descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    ck_assert_int_eq(errno, ECHILD);
}

TEST(arguments_arrive_as_they_are)
{
    static const char *const args[] = { "a b", "-x", "", "$HOME\n'\"*", NULL };
    brc_child_spec spec = spec_of("printf '%s|' \"$@\"", 0);
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c;
    int status;
    spec.args = args;
    OK(brc_child_start(&c, &spec, &err));
    OK(read_out(c, &out, SIZE_MAX, &err));
    OK(brc_child_end(c, 0, &status, &err));
    ck_assert_str_eq((char *)out.data, "a b|-x||$HOME\n'\"*|");
    brc_child_free(c);
    brc_buf_dispose(&out);

    spec.command = "/usr/bin/printf";
    spec.is_shell = 0;
    spec.args = (const char *const[]){ "%s|", "a b", "-x", NULL };
    OK(brc_child_start(&c, &spec, &err));
    OK(read_out(c, &out, SIZE_MAX, &err));
    OK(brc_child_end(c, 0, &status, &err));
    ck_assert_str_eq((char *)out.data, "a b|-x|");
    ck_assert_int_eq(status, 0);
    brc_child_free(c);
    brc_buf_dispose(&out);
}

/* The library keeps of a child's complaints no more than a list of parts and a little. */
TEST(four_mebibytes_of_complaints_block_nothing)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c = start("head -c 4194304 /dev/zero | tr '\\0' x >&2; echo >&2; printf out;"
                         "echo the last word >&2; echo >&2; exit 1", 0);
    int status;
    OK(read_out(c, &out, SIZE_MAX, &err));
    OK(brc_child_end(c, 0, &status, &err));
    ck_assert_int_eq(status, 1);
    ck_assert_str_eq((char *)out.data, "out");
    ck_assert_str_eq(brc_child_last_line(c), "the last word");
    ck_assert_uint_le(strlen(brc_child_said(c)), BRC_PARTS_BYTES + 65536);
    brc_child_free(c);
    brc_buf_dispose(&out);
}

TEST(one_that_hangs_is_ended)
{
    brc_child_spec spec = spec_of("echo $$; exec sleep 1000", 0);
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c;
    spec.silence_ms = 300;
    OK(brc_child_start(&c, &spec, &err));
    ck_assert_int_eq(read_out(c, &out, SIZE_MAX, &err), BRC_EIO);
    ck_assert_ptr_nonnull(strstr(err.message, "the script wrote nothing for"));
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
}

TEST(one_that_closes_its_end_and_stays_is_ended)
{
    brc_child_spec spec = spec_of("echo $$; exec >&- 2>&-; exec sleep 1000", 0);
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c;
    int status;
    spec.silence_ms = 500;
    OK(brc_child_start(&c, &spec, &err));
    OK(read_out(c, &out, SIZE_MAX, &err)); /* its end is seen at once */
    ck_assert_int_eq(brc_child_end(c, 0, &status, &err), BRC_EIO);
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
}

TEST(one_that_writes_for_ever_is_left)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c = start("echo $$; exec yes", 0);
    OK(read_out(c, &out, 1 << 20, &err));
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
}

TEST(what_it_started_goes_with_it)
{
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c = start("sleep 1000 & echo $!; wait", 0);
    OK(read_out(c, &out, 1, &err));
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
    /* also where sh is through, and something in the background holds the pipes */
    out = (brc_buf)BRC_BUF_INIT;
    brc_child_spec spec = spec_of("sleep 1000 & echo $!", 0);
    spec.silence_ms = 500;
    OK(brc_child_start(&c, &spec, &err));
    ck_assert_int_eq(read_out(c, &out, SIZE_MAX, &err), BRC_EIO);
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
}

static int stop_now(void *ctx, brc_error *err)
{
    return --*(int *)ctx >= 0 ? BRC_OK : brc_fail(err, BRC_EINTERRUPT, "stopped");
}

TEST(an_interruption_ends_the_wait)
{
    int looks = 3;
    brc_child_spec spec = spec_of("echo $$; exec sleep 1000", 0);
    brc_error err = BRC_ERROR_INIT;
    brc_buf out = BRC_BUF_INIT;
    brc_child *c;
    spec.check = stop_now;
    spec.ctx = &looks;
    OK(brc_child_start(&c, &spec, &err));
    ck_assert_int_eq(read_out(c, &out, SIZE_MAX, &err), BRC_EINTERRUPT);
    brc_child_free(c);
    process_must_go((pid_t)atol((char *)out.data));
    brc_buf_dispose(&out);
}

CASE("reads", .timeout = 60);

/* ---- what they read ------------------------------------------------------------------ */

TEST(what_is_written_is_read)
{
    brc_error err = BRC_ERROR_INIT;
    uint8_t *data = malloc(3 << 20);
    brc_child *c = start("wc -c >&2", 1);
    int gone, status;
    memset(data, 'x', 3 << 20);
    OK(brc_child_write(c, data, 3 << 20, &gone, &err));
    ck_assert_int_eq(gone, 0);
    OK(brc_child_end(c, 0, &status, &err));
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(atol(brc_child_last_line(c)), 3 << 20);
    brc_child_free(c);
    free(data);
}

TEST(one_that_reads_no_more_is_seen)
{
    brc_error err = BRC_ERROR_INIT;
    uint8_t *data = calloc(1, 16 << 20);
    brc_child *c = start("head -c 10 >&-; echo enough >&2; exit 3", 1);
    int gone, status;
    OK(brc_child_write(c, data, 16 << 20, &gone, &err));
    ck_assert_int_eq(gone, 1);
    OK(brc_child_end(c, 0, &status, &err));
    ck_assert_int_eq(status, 3);
    ck_assert_str_eq(brc_child_last_line(c), "enough");
    brc_child_free(c);
    free(data);
}

TEST(one_that_never_reads_is_ended)
{
    brc_child_spec spec = spec_of("exec sleep 1000", 1);
    brc_error err = BRC_ERROR_INIT;
    uint8_t *data = calloc(1, 16 << 20);
    brc_child *c;
    int gone;
    spec.silence_ms = 300;
    OK(brc_child_start(&c, &spec, &err));
    ck_assert_int_eq(brc_child_write(c, data, 16 << 20, &gone, &err), BRC_EIO);
    brc_child_free(c);
    free(data);
}

/* ---- the caller's program ------------------------------------------------------------ */

static void reap_all(int sig)
{
    int saved = errno;
    (void)sig;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = saved;
}

CASE("program", .timeout = 120);

TEST(children_may_be_reaped_by_others)
{
    struct sigaction ignore = { .sa_handler = SIG_IGN }, reap = { .sa_handler = reap_all },
                     nowait = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
    const struct sigaction *const all[] = { &ignore, &reap, &nowait };
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sigaction(SIGCHLD, all[i], NULL), 0);
        for (int k = 0; k < 20; k++) {
            ck_assert_int_eq(run_script("printf abc; exit 9", "abc"), 9);
            ck_assert_int_eq(run_script("printf ab; kill -SEGV $$", "ab"), 128 + SIGSEGV);
        }
    }
}

static void *reap_for_ever(void *arg)
{
    atomic_int *stop = arg;
    while (!atomic_load(stop))
        if (waitpid(-1, NULL, WNOHANG) <= 0)
            usleep(100);
    return NULL;
}

TEST(a_thread_may_reap_everything)
{
    atomic_int stop = 0;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, reap_for_ever, &stop), 0);
    for (int k = 0; k < 30; k++)
        ck_assert_int_eq(run_script("printf abc; exit 9", "abc"), 9);
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
}

/* Its own descriptors: the streams, and none of ours. */
TEST(nothing_is_inherited)
{
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_cur < 2048 && files.rlim_max >= 2048) {
        files.rlim_cur = 2048;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    }
    int low = open("/dev/null", O_RDONLY), high = fcntl(low, F_DUPFD, 1500);
    ck_assert_int_ge(high, 1500);
    for (int i = 0; i < 1100; i++) /* ours lie above 1,024 then */
        ck_assert_int_ge(fcntl(low, F_DUPFD, 3), 0);
    ck_assert_int_eq(run_script("i=0; while [ $i -lt 2048 ]; do [ ! -e /proc/$$/fd/$i ] || "
                                "printf '%s ' $i; i=$((i+1)); done", "0 1 2 "), 0);
}

TEST(signals_are_as_in_a_new_program)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    signal(SIGTERM, SIG_IGN);
    ck_assert_int_eq(run_script("kill -TERM $$; sleep 5", ""), 128 + SIGTERM);
    ck_assert_int_eq(run_script("yes | head -n 1", "y\n"), 0); /* SIGPIPE works there */
}

TEST(the_first_descriptors_may_be_closed)
{
    for (int closed = 1; closed < 8; closed++) {
        pid_t pid = fork();
        if (pid == 0) {
            brc_error err = BRC_ERROR_INIT;
            brc_child_spec spec = spec_of("printf abc; echo word >&2; exit 5", 0);
            uint8_t bytes[8];
            size_t n = 0, more = 0;
            int status = 0;
            brc_child *c;
            for (int fd = 0; fd < 3; fd++)
                if (closed & 1 << fd)
                    close(fd);
            int good = brc_child_start(&c, &spec, &err) == BRC_OK &&
                       brc_child_read(c, bytes, 8, &n, &err) == BRC_OK && n == 3 &&
                       brc_child_read(c, bytes, 8, &more, &err) == BRC_OK && more == 0 &&
                       brc_child_end(c, 0, &status, &err) == BRC_OK && status == 5 &&
                       strcmp(brc_child_last_line(c), "word") == 0;
            brc_child_free(c);
            _exit(good ? 0 : 1);
        }
        int status;
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(status == 0, "closed: %d", closed);
    }
}

static void *run_many(void *arg)
{
    brc_error err = BRC_ERROR_INIT;
    atomic_int *bad = arg;
    for (int i = 0; i < 15; i++) {
        brc_child_spec spec = spec_of("head -c 100000 /dev/zero; exit 4", 0);
        brc_child *c;
        uint8_t bytes[8192];
        size_t n = 1, sum = 0;
        int status = 0;
        if (brc_child_start(&c, &spec, &err) < 0) {
            atomic_fetch_add(bad, 1);
            continue;
        }
        while (n > 0 && brc_child_read(c, bytes, sizeof(bytes), &n, &err) == BRC_OK)
            sum += n;
        if (brc_child_end(c, 0, &status, &err) < 0 || status != 4 || sum != 100000)
            atomic_fetch_add(bad, 1);
        brc_child_free(c);
    }
    return NULL;
}

TEST(threads_do_not_disturb_each_other)
{
    pthread_t threads[4];
    atomic_int bad = 0;
    int before = descriptors();
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_many, &bad), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&bad), 0);
    ck_assert_int_eq(descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
