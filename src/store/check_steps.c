#include "check_steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/clock.h"

/* A statement runs so long before it gives way, and twice as long when it is begun again, up to
 * this: about what others wait for it. */
enum { PATIENCE_NS = 2500000, PATIENCE_MOST_NS = 40000000 };
/* How often a range is begun again before it no longer gives way: it is short. */
enum { RANGE_TRIES = 8 };
/* Instructions of SQLite's, and reads of pages, from one look for others to the next. */
enum { LOOK_STEPS = 2000, LOOK_READS = 16 };
/* Lines that are held back until a statement is through. */
#define LINES_MOST ((size_t)1 << 20)

typedef struct check_run {
    brc_store *store;
    const brc_check_lines *lines;
    sqlite3_value *from[2], *next[2]; /* NULL: before all rows; behind the last            */
    int64_t since, patience;
    int gives_way, gave_way;
    unsigned reads;
    brc_buf held; /* each line ends with a zero                                            */
} check_run;

/* ---- giving way -------------------------------- */

static int check_gives_way(void *ctx)
{
    check_run *run = ctx;
    if (!run->gives_way || brc_monotonic_ns() - run->since < run->patience ||
        !brc_vfs_is_awaited(run->store->vfs))
        return 0;
    run->gave_way = 1;
    return 1;
}

/* Within one instruction SQLite may read many pages. */
static void check_page_read(void *ctx)
{
    check_run *run = ctx;
    if (++run->reads % LOOK_READS == 0 && !run->gave_way && check_gives_way(run))
        sqlite3_interrupt(run->store->db);
}

/* In WAL mode nobody waits for readers. */
static void check_watch(check_run *run, int gives_way)
{
    brc_store *store = run->store;
    run->gives_way = gives_way && !brc_vfs_in_wal(store->vfs);
    run->gave_way = 0;
    run->since = brc_monotonic_ns();
    run->held.len = 0;
    sqlite3_progress_handler(store->db, LOOK_STEPS, run->gives_way ? check_gives_way : NULL, run);
    brc_vfs_watch(store->vfs, run->gives_way ? check_page_read : NULL, run);
}

static void check_unwatch(check_run *run)
{
    sqlite3_progress_handler(run->store->db, 0, NULL, NULL);
    brc_vfs_watch(run->store->vfs, NULL, NULL);
}

/* ---- one statement -------------------------------- */

/* SQLite's check goes on where memory runs out in the middle, and tells of it as if the page were
 * damaged: "Page 18: unable to get the page. error code=7", which is SQLITE_NOMEM. */
static int is_out_of_memory(const char *line)
{
    static const char words[] = "unable to get the page. error code=";
    const char *at = strstr(line, words);
    return at != NULL && (strtol(at + strlen(words), NULL, 10) & 0xff) == SQLITE_NOMEM;
}

static int tell_held_lines(check_run *run, brc_error *err)
{
    const char *at = (const char *)run->held.data;
    size_t left = run->held.len;
    run->held.len = 0;
    for (size_t len; left > 0; at += len, left -= len) {
        len = strlen(at) + 1;
        if (run->lines->found(run->lines->ctx, at) != 0)
            return brc_fail(err, BRC_EINTERRUPT, "stopped on request");
    }
    return BRC_OK;
}

static int hold_row(check_run *run, sqlite3_stmt *st, brc_error *err)
{
    const char *line = (const char *)sqlite3_column_text(st, 0);
    if (line == NULL || strcmp(line, "ok") == 0)
        return BRC_OK;
    if (is_out_of_memory(line))
        return brc_nomem(err);
    if (run->held.len > LINES_MOST) { /* then there is damage enough: it goes on to its end */
        run->gives_way = 0;
        BRC_TRY(tell_held_lines(run, err));
    }
    return brc_buf_append(&run->held, line, strlen(line) + 1, err);
}

static int bind_from(check_run *run, sqlite3_stmt *st)
{
    for (int i = 0; i < 2 && sqlite3_bind_parameter_count(st) >= 3 + i; i++)
        if (run->from[i] != NULL)
            sqlite3_bind_value(st, 3 + i, run->from[i]);
        else
            sqlite3_bind_double(st, 3 + i, -HUGE_VAL); /* before all numbers, texts and bytes */
    return SQLITE_OK;
}

static int check_prepare(check_run *run, const char *sql, sqlite3_stmt **st, brc_error *err)
{
    brc_store *store = run->store;
    BRC_TRY(brc_read_resume(store, err));
    int rc = sqlite3_prepare_v2(store->db, sql, -1, st, NULL);
    if (rc != SQLITE_OK)
        return brc_fail_db(store, rc, "check it", err);
    sqlite3_bind_int64(*st, 1, (int64_t)store->id_len);
    sqlite3_bind_int64(*st, 2, BRC_SMALL_MOST);
    bind_from(run, *st);
    return BRC_OK;
}

/* SQLite's check goes on where the disk gives an error, too, and tells of the page, and of all that
 * it misses because of it, as if they were damaged. */
static int hold_rows(check_run *run, const char *sql, brc_error *err)
{
    sqlite3_stmt *st = NULL;
    const uint64_t unread = brc_vfs_unread(run->store->vfs);
    int rc = check_prepare(run, sql, &st, err);
    while (rc == BRC_OK && (rc = brc_step(run->store, st, err)) > 0)
        rc = hold_row(run, st, err);
    sqlite3_finalize(st);
    if (rc == BRC_OK && brc_vfs_unread(run->store->vfs) > unread)
        rc = brc_fail_db(run->store, SQLITE_IOERR_READ, "read all of it", err);
    return rc < 0 ? rc : BRC_OK;
}

static void forget_key(sqlite3_value **key)
{
    for (int i = 0; i < 2; i++) {
        sqlite3_value_free(key[i]);
        key[i] = NULL;
    }
}

static int find_next(check_run *run, const char *sql, brc_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc = check_prepare(run, sql, &st, err);
    forget_key(run->next);
    if (rc == BRC_OK)
        rc = brc_step(run->store, st, err);
    for (int i = 0; rc > 0 && i < sqlite3_column_count(st); i++) {
        run->next[i] = sqlite3_value_dup(sqlite3_column_value(st, i));
        if (run->next[i] == NULL)
            rc = brc_nomem(err);
    }
    sqlite3_finalize(st);
    return rc < 0 ? rc : BRC_OK;
}

/* In one read, so of one state. 1, or 0 if it gave way. */
static int check_once(check_run *run, const char *sql, const char *next, int gives_way,
                      brc_error *err)
{
    check_watch(run, gives_way);
    int rc = hold_rows(run, sql, err);
    if (rc == BRC_OK && next != NULL)
        rc = find_next(run, next, err);
    check_unwatch(run);
    brc_store_pause_read(run->store);
    if (!run->gave_way)
        return rc < 0 ? rc : 1;
    return brc_store_check_interrupt(run->store, err); /* the caller's own counts */
}

/* `insists`: the last one does not give way. */
static int check_tries(check_run *run, const char *sql, const char *next, int tries, int insists,
                       brc_error *err)
{
    int rc = 0;
    brc_error gone = BRC_ERROR_INIT;
    run->patience = PATIENCE_NS;
    for (int i = 0; i < tries && rc == 0; i++) {
        rc = check_once(run, sql, next, !insists || i + 1 < tries, &gone);
        if (run->patience < PATIENCE_MOST_NS)
            run->patience *= 2;
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &gone);
    return rc > 0 && tell_held_lines(run, err) < 0 ? BRC_EINTERRUPT : rc;
}

int brc_check_run(brc_store *store, const char *sql, const char *next, const brc_check_lines *lines,
                  brc_error *err)
{
    check_run run = {.store = store, .lines = lines, .held = BRC_BUF_INIT};
    int rc;
    do {
        rc = check_tries(&run, sql, next, RANGE_TRIES, 1, err);
        forget_key(run.from);
        memcpy(run.from, run.next, sizeof(run.from));
        memset(run.next, 0, sizeof(run.next));
    } while (rc > 0 && run.from[0] != NULL);
    forget_key(run.from);
    brc_buf_dispose(&run.held);
    return rc < 0 ? rc : BRC_OK;
}

int brc_check_try(brc_store *store, const char *sql, int tries, const brc_check_lines *lines,
                  brc_error *err)
{
    check_run run = {.store = store, .lines = lines, .held = BRC_BUF_INIT};
    int rc = check_tries(&run, sql, NULL, tries, 0, err);
    brc_buf_dispose(&run.held);
    return rc;
}
