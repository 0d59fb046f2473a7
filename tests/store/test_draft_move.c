/* Rows of moves: set, found, moved with the nodes above them, dropped with the draft, checked. */
#include <stdlib.h>
#include <string.h>

#include "../../src/store/db.h"
#include "../kit/seal.h"
#include "../kit/store_kit.h"
#include "../kit/suite.h"

TEST_SUITE(draft_move);

static store_kit kit;
static int64_t draft;

#define OK(call) KIT_OK(&kit, call)
#define FAILS(code, words, call) KIT_FAILS(&kit, code, words, call)

static void draft_move_setup(void)
{
    store_kit_start(&kit);
    OK(brc_store_begin(kit.store, &kit.err));
    draft = store_kit_draft(&kit, "main", NULL);
}

static void draft_move_teardown(void)
{
    store_kit_stop(&kit);
}

static void put_row(const char *path, const char *source)
{
    OK(brc_draft_move_put(kit.store, draft, path, source, &kit.err));
}

/* "/b</a " of each row. */
static void rows_are(int64_t of, const char *path, const char *want)
{
    brc_move *rows;
    size_t n;
    brc_buf text = BRC_BUF_INIT;
    OK(brc_draft_move_list(kit.store, of, path, &rows, &n, &kit.err));
    for (size_t i = 0; i < n; i++)
        OK(brc_buf_printf(&text, &kit.err, "%s<%s ", rows[i].to, rows[i].from));
    OK(brc_buf_terminate(&text, &kit.err));
    ck_assert_str_eq((const char *)text.data, want);
    brc_buf_dispose(&text);
    brc_moves_free(rows, n);
}

CASE("rows", .setup = draft_move_setup, .teardown = draft_move_teardown);

TEST(rows_are_set_and_found)
{
    char *source;
    put_row("/b", "/a");
    put_row("/b/x", "");
    put_row("/b-c", "/d");
    put_row("/b/x", "/q");
    rows_are(draft, "/", "/b</a /b-c</d /b/x</q ");
    rows_are(draft, "/b", "/b</a /b/x</q ");
    rows_are(draft, "/b/x", "/b/x</q ");
    rows_are(draft, "/a", "");
    OK(brc_draft_move_get(kit.store, draft, "/b/x", &source, &kit.err));
    ck_assert_str_eq(source, "/q");
    free(source);
    OK(brc_draft_move_get(kit.store, draft, "/b/y", &source, &kit.err));
    ck_assert_ptr_null(source);
    OK(brc_draft_move_drop(kit.store, draft, "/b", &kit.err));
    rows_are(draft, "/", "/b-c</d /b/x</q ");
    put_row("/b", "/a");
    OK(brc_draft_move_clear(kit.store, draft, "/b", &kit.err));
    rows_are(draft, "/", "/b-c</d ");
    OK(brc_store_end(kit.store, 1, &kit.err));
}

TEST(rows_move_with_the_nodes_above_them)
{
    put_row("/b", "/a");
    put_row("/b/x", "");
    put_row("/b/x/y", "/q");
    put_row("/b-c", "/d");
    OK(brc_draft_move_rename(kit.store, draft, "/b", "/e/f", &kit.err));
    rows_are(draft, "/", "/b-c</d /e/f</a /e/f/x< /e/f/x/y</q ");
    OK(brc_draft_move_rename(kit.store, draft, "/e/f", "/b-c/b", &kit.err));
    rows_are(draft, "/", "/b-c</d /b-c/b</a /b-c/b/x< /b-c/b/x/y</q ");
    OK(brc_store_end(kit.store, 1, &kit.err));
    ck_assert_int_eq(store_kit_ask(&kit, "SELECT count(*) FROM draft_move WHERE checksum IS"
                                         " row_sum('draft_move', draft, path, source)"), 4);
}

TEST(rows_go_with_their_draft)
{
    int64_t other = store_kit_draft(&kit, "other", NULL);
    put_row("/b", "/a");
    OK(brc_draft_move_put(kit.store, other, "/z", "/y", &kit.err));
    OK(brc_draft_empty(kit.store, draft, &kit.err));
    rows_are(draft, "/", "");
    put_row("/b", "/a");
    OK(brc_draft_delete(kit.store, draft, &kit.err));
    rows_are(draft, "/", "");
    rows_are(other, "/", "/z</y ");
    OK(brc_store_end(kit.store, 1, &kit.err));
}

static const char *const bad_rows[] = {
    "UPDATE draft_move SET source='/z'",
    "UPDATE draft_move SET source='..';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source='/';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source='/a//b';" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source=CAST('/a' || char(0) || 'b' AS TEXT);" SEAL_DRAFT_MOVE,
    "UPDATE draft_move SET source=CAST('/' || x'ff' AS TEXT);" SEAL_DRAFT_MOVE,
};

EACH(damaged_rows_are_refused, bad_rows)
{
    brc_move *rows;
    char *source;
    size_t n;
    put_row("/b/x", "/a");
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_sql(&kit, bad_rows[_i]);
    FAILS(BRC_ECORRUPT, "", brc_draft_move_list(kit.store, draft, "/", &rows, &n, &kit.err));
    ck_assert_uint_eq(n, 0);
    FAILS(BRC_ECORRUPT, "", brc_draft_move_get(kit.store, draft, "/b/x", &source, &kit.err));
    OK(brc_store_begin(kit.store, &kit.err));
    FAILS(BRC_ECORRUPT, "", brc_draft_move_rename(kit.store, draft, "/b", "/c", &kit.err));
    OK(brc_draft_empty(kit.store, draft, &kit.err)); /* it can be got rid of */
    rows_are(draft, "/", "");
    OK(brc_store_end(kit.store, 1, &kit.err));
}

TEST(a_damaged_path_is_refused)
{
    brc_move *rows;
    size_t n;
    put_row("/b/x", "/a");
    OK(brc_store_end(kit.store, 1, &kit.err));
    store_kit_sql(&kit, "UPDATE draft_move SET path='/b/../x';" SEAL_DRAFT_MOVE);
    FAILS(BRC_ECORRUPT, "name", brc_draft_move_list(kit.store, draft, "/", &rows, &n, &kit.err));
}
