/* A converter that gets nowhere ends by itself; one that gets on does not. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/convert/lib/sandbox.h"
#include "../../src/convert/lib/spool.h"
#include "../../src/xfer/foreign/protocol.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(watch);

/* So long on the processor, with a sign of progress ten times a second, or without. */
static void work_on(brc_watch *w, clock_t seconds, int progress)
{
    clock_t began = clock(), last = began;
    while (clock() - began < seconds * CLOCKS_PER_SEC)
        if (progress && clock() - last > CLOCKS_PER_SEC / 10) {
            brc_watch_step(w);
            last = clock();
        }
}

/* The exit status of a process that has one second, and what it says, in said[512]. */
static int watched_run(int progress, int sandboxed, char *said)
{
    exchange_kit kit;
    int status = 0, ends[2];
    size_t len = 0;
    ssize_t n;

    exchange_folder_start(&kit);
    const char *file = exchange_text(&kit, "x.h5", "x");
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        brc_watch w;
        brc_error err = BRC_ERROR_INIT;
        dup2(ends[1], STDERR_FILENO);
        if (brc_watch_start(&w, "x.h5", 1, &err) < 0 ||
            (sandboxed && brc_sandbox_enter(file, 0, &err) < 0))
            _exit(1);
        work_on(&w, 2, progress);
        _exit(0);
    }
    close(ends[1]);
    while (len < 511 && (n = read(ends[0], said + len, 511 - len)) > 0)
        len += (size_t)n;
    said[len] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    exchange_stop(&kit);
    ck_assert_msg(WIFEXITED(status), "it ended with status %x", status);
    return WEXITSTATUS(status);
}

CASE("time", .timeout = 60);

LOOP(an_endless_loop_ends_with_a_sentence, 0, 2)
{
    char said[512];
    ck_assert_int_eq(watched_run(0, _i, said), BRC_STATUS_ERROR - BRC_ELIMIT);
    ck_assert_str_eq(said, "x.h5: no progress in 1 s of processor time: the file is damaged\n");
}

LOOP(progress_winds_it_up_again, 0, 2)
{
    char said[512];
    ck_assert_int_eq(watched_run(1, _i, said), 0);
    ck_assert_str_eq(said, "");
}
