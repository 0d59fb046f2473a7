/* Another handle comes while the last one leaves WAL mode: between any two of its locks. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/store/db.h"
#include "../kit/lock_faults.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(wal_leave);

static store_kit kit;

#define OK(call) KIT_OK(&kit, call)

static int change(brc_store *store, const char *value, brc_error *err)
{
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_meta_put(store, "config.test", value, strlen(value), 1, err);
    const int ended = brc_store_end(store, rc == BRC_OK, err);
    return rc < 0 ? rc : ended;
}

static void leave_setup(void)
{
    store_kit_start(&kit);
    OK(brc_journal_set(kit.store, 1, &kit.err));
    store_kit_close(&kit);
}

static void leave_teardown(void)
{
    store_kit_stop(&kit);
}

/* One file, with this value. */
static void at_rest(const char *want)
{
    char path[160];
    brc_buf value = BRC_BUF_INIT;
    snprintf(path, sizeof(path), "%s-wal", kit.file);
    ck_assert_int_eq(brc_file_kind(path), 0);
    snprintf(path, sizeof(path), "%s-shm", kit.file);
    ck_assert_int_eq(brc_file_kind(path), 0);
    OK(store_kit_try(&kit, 0, -1));
    OK(brc_meta_get(kit.store, "config.test", &value, &kit.err));
    ck_assert_str_eq((const char *)value.data, want);
    brc_buf_dispose(&value);
    store_kit_close(&kit);
}

static struct {
    int at, seen, came, is_busy; /* which lock, of those that are seen; somebody comes then */
} coming;

/* In a process of its own, which does not wait. */
static int come_and_change(void)
{
    lock_faults_set(NULL, NULL);
    brc_store *store = NULL;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.wait_ms = -1;
    int rc = brc_store_open(&store, kit.file, &opts, kit.reg, 1, &kit.err);
    if (rc == BRC_OK)
        rc = change(store, "came", &kit.err);
    brc_store_close(store);
    return rc == BRC_OK ? 1 : rc == BRC_EBUSY ? 2 : 3;
}

static int somebody_comes(void *ctx)
{
    int status;
    (void)ctx;
    if (coming.seen++ != coming.at)
        return 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(come_and_change());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 2);
    coming.came = WEXITSTATUS(status) == 1;
    coming.is_busy = WEXITSTATUS(status) == 2;
    return 0;
}

CASE("leave", .setup = leave_setup, .teardown = leave_teardown, .timeout = 120);

/* Between any two locks that a closing handle takes: who comes then is kept out, or what it has
 * committed stays. */
TEST(who_comes_while_the_last_one_goes_loses_nothing)
{
    int came = 0, busy = 0, is_over = 0;
    for (int at = 0; !is_over; at++) {
        memset(&coming, 0, sizeof(coming));
        coming.at = at;
        OK(store_kit_try(&kit, 0, -1));
        OK(change(kit.store, "last", &kit.err));
        lock_faults_set(somebody_comes, NULL);
        store_kit_close(&kit);
        lock_faults_set(NULL, NULL);
        is_over = coming.seen <= at;
        came += coming.came;
        busy += coming.is_busy;
        at_rest(coming.came ? "came" : "last");
    }
    ck_assert_int_gt(came, 0);
    ck_assert_int_gt(busy, 0);
}
