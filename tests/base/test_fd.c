/* Descriptors: whole reads and writes at a place, whatever the file does meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/folder.h"
#include "../kit/suite.h"

TEST_SUITE(fd);

#define OK(expr) ck_assert_int_eq((expr), BRC_OK)

static char root[64];

static void make_fd_root(void)
{
    folder_make(root, sizeof(root), FOLDER_FAST);
}

static void remove_fd_root(void)
{
    brc_tree_remove(root);
}

static int open_in_root(const char *name, int flags)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

CASE("places", .setup = make_fd_root, .teardown = remove_fd_root);

TEST(places_are_written_and_read)
{
    char got[8] = "";
    size_t n;
    int fd = open_in_root("f", O_RDWR | O_CREAT);
    OK(brc_fd_write_at(fd, "world", 5, 6, "f", NULL));
    OK(brc_fd_write_at(fd, "hello ", 6, 0, "f", NULL));
    OK(brc_fd_write_at(fd, "", 0, 100, "f", NULL)); /* nothing is written there */
    OK(brc_fd_read_at(fd, got, 7, 4, "f", NULL));
    ck_assert_mem_eq(got, "o world", 7);
    OK(brc_fd_read_at(fd, got, 0, 100, "f", NULL));
    OK(brc_fd_read(fd, got, 5, &n, "f", NULL)); /* the descriptor's own place has not moved */
    ck_assert_uint_eq(n, 5);
    ck_assert_mem_eq(got, "hello", 5);
    OK(brc_fd_read(fd, got, 8, &n, "f", NULL));
    ck_assert_uint_eq(n, 6);
    OK(brc_fd_read(fd, got, 8, &n, "f", NULL));
    ck_assert_uint_eq(n, 0);
    close(fd);
}

TEST(a_file_that_became_shorter_is_told)
{
    brc_error err = BRC_ERROR_INIT;
    char got[8];
    int fd = open_in_root("f", O_RDWR | O_CREAT);
    OK(brc_fd_write_at(fd, "hello", 5, 0, "f", NULL));
    ck_assert_int_eq(brc_fd_read_at(fd, got, 6, 0, "the file", &err), BRC_EINVAL);
    ck_assert_str_eq(err.message, "the file became shorter while it was read");
    ck_assert_int_eq(brc_fd_read_at(fd, got, 1, 5, "the file", &err), BRC_EINVAL);
    close(fd);
}

TEST(failures_name_the_file_and_the_cause)
{
    brc_error err = BRC_ERROR_INIT;
    char got[8];
    size_t n = 9;
    int in = open_in_root("f", O_RDONLY | O_CREAT), out = open_in_root("f", O_WRONLY);
    ck_assert_int_eq(brc_fd_read(out, got, 8, &n, "the file", &err), BRC_EIO);
    ck_assert_int_eq(err.detail, EBADF);
    ck_assert_str_eq(err.message, "cannot read the file: Bad file descriptor");
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(brc_fd_read_at(out, got, 1, 0, "the file", &err), BRC_EIO);
    ck_assert_str_eq(err.message, "cannot read the file: Bad file descriptor");
    ck_assert_int_eq(brc_fd_write(in, "x", 1, "the file", &err), BRC_EIO);
    ck_assert_str_eq(err.message, "cannot write the file: Bad file descriptor");
    ck_assert_int_eq(brc_fd_write_at(in, "x", 1, 0, "the file", &err), BRC_EIO);
    ck_assert_str_eq(err.message, "cannot write the file: Bad file descriptor");
    close(in);
    close(out);
}

/* ---- signals -------------------------------- */

static void take_signal(int number)
{
    (void)number;
}

typedef struct pipe_side {
    int fd;
    pthread_t other;
    size_t len;
} pipe_side;

/* Takes bytes a few at a time, each after a signal to the writer, which waits for room. */
static void *drain_with_signals(void *ctx)
{
    pipe_side *side = ctx;
    char some[4096];
    ssize_t n;
    do {
        pthread_kill(side->other, SIGUSR1);
        n = read(side->fd, some, sizeof(some));
        side->len += n > 0 ? (size_t)n : 0;
    } while (n > 0);
    return NULL;
}

CASE("signals");

/* Writes that are cut short by signals go on where they were. */
TEST(signals_do_not_end_a_write)
{
    struct sigaction action = { .sa_handler = take_signal }; /* no SA_RESTART */
    size_t len = (size_t)4 << 20;
    char *bytes = calloc(1, len);
    pthread_t thread;
    int fds[2];
    ck_assert_ptr_nonnull(bytes);
    sigaction(SIGUSR1, &action, NULL);
    ck_assert_int_eq(pipe(fds), 0);
    pipe_side side = { fds[0], pthread_self(), 0 };
    ck_assert_int_eq(pthread_create(&thread, NULL, drain_with_signals, &side), 0);
    OK(brc_fd_write(fds[1], bytes, len, "it", NULL));
    close(fds[1]);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(side.len, len);
    close(fds[0]);
    free(bytes);
}
