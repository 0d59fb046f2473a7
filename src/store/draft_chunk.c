/*
 * Chunks of a draft: those of an array that were written or dropped since the base. They belong to
 * the number of a row of draft_node. That row may lie on others (draft_stack.c): for each key the
 * uppermost row counts that has it, also where it says that the chunk was dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/arena.h"
#include "collect.h"
#include "db.h"

#define CHUNK_OK "checksum IS row_sum('draft_chunk', node, key, id)"

/* Keys of a stack that are read at a time. */
enum { STACK_PAGE = 1024 };

static const char chunk_row[] = "an uncommitted chunk";

static int draft_bind_key(sqlite3_stmt *st, int64_t node, const void *key, size_t key_len)
{
    sqlite3_bind_int64(st, 1, node);
    return sqlite3_bind_blob64(st, 2, key_len > 0 ? key : "", key_len, SQLITE_STATIC);
}

int brc_draft_chunk_put(brc_store *store, int64_t node, const void *key, size_t key_len,
                        const brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO draft_chunk(node, key, id, checksum)"
                     " VALUES (?1, ?2, ?3, row_sum('draft_chunk', ?1, ?2, ?3))",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    brc_bind_id(store, st, 3, id);
    BRC_TRY(brc_run(store, st, err));
    return id != NULL ? brc_gc_keep(store, id, err) : BRC_OK;
}

static int chunk_of_row(brc_store *store, int64_t node, const void *key, size_t key_len, int *state,
                        brc_oid *id, brc_error *err)
{
    sqlite3_stmt *st;
    *state = 0;
    BRC_TRY(brc_stmt(store, "SELECT id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key=?2",
                     &st, err));
    draft_bind_key(st, node, key, key_len);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = sqlite3_column_type(st, 0) == SQLITE_NULL ? 2 : 1;
    rc = brc_row_check(store, st, 1, chunk_row, err);
    if (rc == BRC_OK && *state == 1)
        rc = brc_column_id(store, st, 0, id, err);
    sqlite3_reset(st);
    return rc;
}

int brc_draft_chunk_get(brc_store *store, const brc_draft_stack *stack, const void *key,
                        size_t key_len, int *state, brc_oid *id, brc_error *err)
{
    *state = 0;
    for (size_t i = 0; i < stack->n && *state == 0; i++)
        BRC_TRY(chunk_of_row(store, stack->node[i], key, key_len, state, id, err));
    return BRC_OK;
}

/* ---- in order -------------------------------- */

static int draft_each_chunk_row(brc_store *store, sqlite3_stmt *st, brc_draft_chunk_fn each,
                                void *ctx, brc_error *err)
{
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_oid id;
        int dropped = sqlite3_column_type(st, 1) == SQLITE_NULL;
        rc = brc_row_check(store, st, 2, chunk_row, err);
        if (rc == BRC_OK && !dropped)
            rc = brc_column_id(store, st, 1, &id, err);
        if (rc == BRC_OK)
            rc = each(ctx, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
                      dropped ? NULL : &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

static int page_of_row(brc_store *store, int64_t node, brc_span after, size_t most,
                       brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT key, id, " CHUNK_OK " FROM draft_chunk WHERE node=?1 AND key>?2"
                     " ORDER BY key LIMIT ?3",
                     &st, err));
    sqlite3_bind_int64(st, 1, node);
    if (after.data != NULL)
        sqlite3_bind_blob64(st, 2, after.data, after.len, SQLITE_STATIC);
    else
        sqlite3_bind_int(st, 2, 0); /* which comes before every blob */
    sqlite3_bind_int64(st, 3, (int64_t)most);
    return draft_each_chunk_row(store, st, each, ctx, err);
}

/* A chunk of one row of a stack. */
typedef struct stacked_chunk {
    brc_span key;
    size_t level; /* 0: the uppermost */
    int dropped;
    brc_oid id;
} stacked_chunk;

typedef struct stacked_page {
    brc_arena arena;
    size_t level, n, cap;
    void *chunks; /* stacked_chunk[] */
} stacked_page;

static int stack_take(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    stacked_page *page = ctx;
    uint8_t *copy;
    BRC_TRY(brc_grow_array(&page->chunks, &page->cap, page->n + 1, sizeof(stacked_chunk), err));
    BRC_TRY(brc_arena_copy(&page->arena, key, key_len, &copy, err));
    stacked_chunk *c = &((stacked_chunk *)page->chunks)[page->n++];
    memset(c, 0, sizeof(*c));
    c->key = (brc_span){copy, key_len};
    c->level = page->level;
    c->dropped = id == NULL;
    if (id != NULL)
        c->id = *id;
    return BRC_OK;
}

static int stacked_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int stacked_order(const void *a, const void *b)
{
    const stacked_chunk *x = a, *y = b;
    int order = stacked_key_order(x->key, y->key);
    return order != 0 ? order : (x->level > y->level) - (x->level < y->level);
}

/* Each row gives its first `most` keys: then the first `most` of all are among them. */
static int stack_page(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                      stacked_page *page, brc_error *err)
{
    size_t kept = 0;
    page->n = 0;
    for (page->level = 0; page->level < stack->n; page->level++)
        BRC_TRY(page_of_row(store, stack->node[page->level], after, most, stack_take, page, err));
    stacked_chunk *chunks = page->chunks;
    if (page->n > 1)
        qsort(chunks, page->n, sizeof(*chunks), stacked_order);
    for (size_t i = 0; i < page->n && kept < most; i++)
        if (kept == 0 || stacked_key_order(chunks[kept - 1].key, chunks[i].key) != 0)
            chunks[kept++] = chunks[i];
    page->n = kept;
    return BRC_OK;
}

/* The keys after `after` in pages of at most `most`: the first page, or all of them. */
static int stack_pages(brc_store *store, const brc_draft_stack *stack, brc_span after, size_t most,
                       int all, brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    stacked_page page = {.arena = BRC_ARENA_INIT};
    int rc;
    do {
        brc_arena old = page.arena; /* `after` is in it */
        page.arena = (brc_arena)BRC_ARENA_INIT;
        rc = stack_page(store, stack, after, most, &page, err);
        brc_arena_dispose(&old);
        const stacked_chunk *chunks = page.chunks;
        for (size_t i = 0; i < page.n && rc == BRC_OK; i++)
            rc = each(ctx, chunks[i].key.data, chunks[i].key.len,
                      chunks[i].dropped ? NULL : &chunks[i].id, err);
        if (rc == BRC_OK && page.n > 0)
            after = chunks[page.n - 1].key;
    } while (all && rc == BRC_OK && page.n == most);
    brc_arena_dispose(&page.arena);
    free(page.chunks);
    return rc;
}

/* What the caller wants of a page of one row, and its last key. */
typedef struct row_page {
    brc_draft_chunk_fn each;
    void *ctx;
    size_t n;
    brc_buf last;
} row_page;

static int row_page_take(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                         brc_error *err)
{
    row_page *page = ctx;
    page->n++;
    page->last.len = 0;
    BRC_TRY(brc_buf_append(&page->last, key, key_len, err));
    return page->each(page->ctx, key, key_len, id, err);
}

/* No statement reads a row's chunks to the end, however many they are. */
static int row_pages(brc_store *store, int64_t node, brc_draft_chunk_fn each, void *ctx,
                     brc_error *err)
{
    row_page page = {.each = each, .ctx = ctx, .last = BRC_BUF_INIT};
    brc_buf after = BRC_BUF_INIT;
    int rc;
    do {
        const brc_span from = {after.len > 0 || page.n > 0 ? after.data : NULL, after.len};
        page.n = 0;
        rc = page_of_row(store, node, from, STACK_PAGE, row_page_take, &page, err);
        const brc_buf swap = after;
        after = page.last;
        page.last = swap;
    } while (rc == BRC_OK && page.n == STACK_PAGE);
    brc_buf_dispose(&page.last);
    brc_buf_dispose(&after);
    return rc;
}

int brc_draft_chunk_each(brc_store *store, const brc_draft_stack *stack, brc_draft_chunk_fn each,
                         void *ctx, brc_error *err)
{
    const brc_span start = {NULL, 0};
    return stack->n == 1 ? row_pages(store, stack->node[0], each, ctx, err)
                         : stack_pages(store, stack, start, STACK_PAGE, 1, each, ctx, err);
}

int brc_draft_chunk_page(brc_store *store, const brc_draft_stack *stack, brc_span after,
                         size_t most, brc_draft_chunk_fn each, void *ctx, brc_error *err)
{
    return stack->n == 1 ? page_of_row(store, stack->node[0], after, most, each, ctx, err)
                         : stack_pages(store, stack, after, most, 0, each, ctx, err);
}

typedef struct chunk_copy {
    brc_store *store;
    int64_t into;
    brc_buf *after;
    size_t n;
} chunk_copy;

static int copy_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                      brc_error *err)
{
    chunk_copy *c = ctx;
    c->n++;
    c->after->len = 0;
    BRC_TRY(brc_buf_append(c->after, key, key_len, err));
    return brc_draft_chunk_put(c->store, c->into, c->after->data, c->after->len, id, err);
}

int brc_draft_chunk_copy(brc_store *store, const brc_draft_stack *stack, int64_t into,
                         brc_buf *after, size_t *n, brc_error *err)
{
    chunk_copy c = {store, into, after, 0};
    brc_buf from = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_append(&from, after->data, after->len, err));
    const brc_span start = {after->len > 0 ? from.data : NULL, from.len};
    rc = brc_draft_chunk_page(store, stack, start, BRC_DRAFT_COPY_STEP, copy_chunk, &c, err);
    *n = c.n;
done:
    brc_buf_dispose(&from);
    return rc;
}

int brc_draft_chunk_any(brc_store *store, const brc_draft_stack *stack, int *any, brc_error *err)
{
    sqlite3_stmt *st;
    *any = 0;
    for (size_t i = 0; i < stack->n && !*any; i++) {
        BRC_TRY(brc_stmt(store, "SELECT 1 FROM draft_chunk WHERE node=?1 LIMIT 1", &st, err));
        sqlite3_bind_int64(st, 1, stack->node[i]);
        BRC_TRY(brc_ask_any(store, st, any, err));
    }
    return BRC_OK;
}

int brc_draft_chunk_clear(brc_store *store, int64_t node, const void *key, size_t key_len,
                          brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "DELETE FROM draft_chunk WHERE node=?1 AND key=?2", &st, err));
    draft_bind_key(st, node, key, key_len);
    return brc_run(store, st, err);
}
