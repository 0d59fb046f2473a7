/*
 * brc_blame(): the units of a selection, chunks or elements, and how two versions of an array
 * differ in them. Which commit they come from is found in zarr/blame_sets.c.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"
#include "../base/sized.h"
#include "../nd/shape.h"
#include "../tree/chunk_key.h"
#include "../zarr/blame_sets.h"
#include "../zarr/chunk_cursor.h"

/* So many elements are told apart at a time. */
#define MOST_ELEMENTS ((uint64_t)1 << 26)

typedef struct blame_list {
    brc_array *a;
    brc_sel sel;
    int elements;
    brc_arena keys_memory;
    void *keys; /* brc_span[]: of the chunks, in order */
    size_t nkeys, keys_cap;
    brc_blame_result result;
    size_t at;
    uint64_t index[BRC_MAX_NDIM];
    brc_blamed now; /* the one that was handed out */
} blame_list;

static void blame_list_dispose(void *state)
{
    blame_list *list = state;
    brc_blame_result_dispose(&list->result);
    free(list->keys);
    brc_arena_dispose(&list->keys_memory);
    brc_array_free(list->a);
}

/* ---- parts of a selection -------------------------------- */

/* Along each axis, which of the selected places are in a box: from `from` on, `n` of them. */
typedef struct sel_part {
    uint64_t from[BRC_MAX_NDIM], n[BRC_MAX_NDIM];
} sel_part;

/* 0 if none is. */
static int sel_part_of(sel_part *out, const brc_sel *sel, const uint64_t *corner,
                   const uint64_t *extent)
{
    for (int i = 0; i < sel->ndim; i++) {
        const uint64_t start = sel->start[i], step = sel->step[i] > 0 ? sel->step[i] : 1;
        const uint64_t end = extent[i] > UINT64_MAX - corner[i] ? UINT64_MAX
                                                                : corner[i] + extent[i];
        uint64_t lo = corner[i] > start ? (corner[i] - start + step - 1) / step : 0;
        uint64_t hi = end > start ? (end - start + step - 1) / step : 0;
        hi = hi < sel->count[i] ? hi : sel->count[i];
        if (lo >= hi)
            return 0;
        out->from[i] = lo;
        out->n[i] = hi - lo;
    }
    return 1;
}

static void part_sel(brc_sel *out, const brc_sel *sel, const sel_part *part)
{
    *out = *sel;
    out->drop = 0;
    for (int i = 0; i < sel->ndim; i++) {
        out->start[i] = sel->start[i] + part->from[i] * sel->step[i];
        out->count[i] = part->n[i];
    }
}

static uint64_t part_count(const sel_part *part, int ndim)
{
    uint64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= part->n[i];
    return n;
}

/* ---- chunks -------------------------------- */

static int key_order(const void *a, const void *b)
{
    const brc_span *x = a, *y = b;
    const size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->data, y->data, len);
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

typedef struct chunk_diff {
    blame_list *list;
    brc_blame_unit_fn differs;
    void *arg;
} chunk_diff;

static int chunk_differs(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    const chunk_diff *d = ctx;
    (void)a;
    (void)b;
    const brc_span *keys = d->list->keys;
    const brc_span *found = bsearch(&key, keys, d->list->nkeys, sizeof(*keys), key_order);
    return found != NULL ? d->differs(d->arg, (size_t)(found - keys), err) : BRC_OK;
}

static int diff_chunks(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                       brc_blame_unit_fn differs, void *arg, brc_error *err)
{
    chunk_diff d = {ctx, differs, arg};
    return brc_map_diff(brc_array_store(d.list->a), &now->entry.map, &before->entry.map,
                        chunk_differs, &d, err);
}

static int keep_key(blame_list *list, const uint64_t *index, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX], *copy;
    size_t len = brc_chunk_key_encode(key, list->sel.ndim, index);
    BRC_TRY(brc_grow_array(&list->keys, &list->keys_cap, list->nkeys + 1, sizeof(brc_span), err));
    BRC_TRY(brc_arena_copy(&list->keys_memory, key, len, &copy, err));
    ((brc_span *)list->keys)[list->nkeys++] = (brc_span){copy, len};
    return BRC_OK;
}

/* Those that are stored and that the selection meets. */
static int blame_list_chunks(blame_list *list, brc_error *err)
{
    void *p;
    brc_oid id;
    sel_part part;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    const brc_grid *grid = &list->a->meta.grid;
    int rc;
    BRC_TRY(brc_new(&p, sizeof(brc_chunk_cursor), err));
    brc_chunk_cursor *cursor = p;
    BRC_GO(brc_chunk_cursor_start(cursor, list->a, err));
    while ((rc = brc_chunk_cursor_next(cursor, index, &id, err)) > 0) {
        if (!brc_grid_has(grid, index))
            continue;
        brc_grid_chunk(grid, index, corner, extent);
        if (sel_part_of(&part, &list->sel, corner, extent))
            BRC_GO(keep_key(list, index, err));
    }
done:
    brc_chunk_cursor_end(cursor);
    free(cursor);
    return rc;
}

/* ---- elements -------------------------------- */

typedef struct element_sides {
    blame_list *list;
    brc_array *now, *before;
    int comparable; /* of one type and rank */
    brc_blame_unit_fn differs;
    void *arg;
} element_sides;

static int open_place(brc_array **out, breccia *repo, const brc_blame_place *place, brc_error *err)
{
    char hex[65];
    brc_session *s;
    BRC_TRY(brc_session_open(&s, repo, brc_oid_format(hex, place->commit), BRC_SESSION_AT, err));
    int rc = brc_array_open(out, s, place->path, err);
    brc_session_free(s); /* the array keeps it */
    return rc;
}

/* The next element of those that were read, with its length in front where that varies. */
static int element_take(brc_span *rest, size_t item, brc_span *out)
{
    size_t len = item;
    if (item == 0) {
        if (rest->len < 4)
            return 0;
        len = 4 + (size_t)brc_get_u32le(rest->data);
    }
    if (rest->len < len)
        return 0;
    *out = (brc_span){rest->data, len};
    rest->data += len;
    rest->len -= len;
    return 1;
}

/* One element of a part of the selection. */
static int element_one(const element_sides *e, const sel_part *part, const uint64_t *at,
                       const uint64_t *common, brc_span rest[2], brc_error *err)
{
    const brc_sel *sel = &e->list->sel;
    brc_span one[2];
    uint64_t unit = 0;
    int inside = common != NULL;
    for (int i = 0; i < sel->ndim; i++) {
        unit = unit * sel->count[i] + part->from[i] + at[i];
        inside = inside && at[i] < common[i];
    }
    if (inside) {
        const size_t item = e->now->info.item_size;
        if (!element_take(&rest[0], item, &one[0]) || !element_take(&rest[1], item, &one[1]))
            return brc_fail(err, BRC_EINTERNAL, "fewer elements were read than there are");
        if (one[0].len == one[1].len && memcmp(one[0].data, one[1].data, one[0].len) == 0)
            return BRC_OK;
    }
    return e->differs(e->arg, (size_t)unit, err);
}

/* Compares a part of the selection, which is inside the newer shape. */
static int compare_part(const element_sides *e, const sel_part *part, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    const int ndim = e->list->sel.ndim;
    brc_sel inner, own;
    sel_part both;
    uint64_t at[BRC_MAX_NDIM] = {0};
    brc_buf bytes[2] = {BRC_BUF_INIT, BRC_BUF_INIT};
    int rc = BRC_OK, shared = 0;
    part_sel(&own, &e->list->sel, part);
    if (e->comparable)
        shared = sel_part_of(&both, &own, origin, e->before->info.shape);
    if (shared) {
        part_sel(&inner, &own, &both);
        BRC_GO(brc_array_read_elements(e->now, &inner, &bytes[0], err));
        BRC_GO(brc_array_read_elements(e->before, &inner, &bytes[1], err));
    }
    brc_span rest[2] = {{bytes[0].data, bytes[0].len}, {bytes[1].data, bytes[1].len}};
    const uint64_t n = part_count(part, ndim);
    for (uint64_t i = 0; i < n; i++) {
        BRC_GO(element_one(e, part, at, shared ? both.n : NULL, rest, err));
        brc_index_next(ndim, at, part->n);
    }
done:
    brc_buf_dispose(&bytes[0]);
    brc_buf_dispose(&bytes[1]);
    return rc;
}

static int compare_chunk(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    const element_sides *e = ctx;
    const brc_grid *grid = &e->now->meta.grid;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    sel_part part;
    (void)a;
    (void)b;
    if (brc_chunk_key_decode(key.data, key.len, index) != grid->ndim || !brc_grid_has(grid, index))
        return BRC_OK;
    brc_grid_chunk(grid, index, corner, extent);
    for (int i = 0; i < grid->ndim; i++)
        if (extent[i] > grid->shape[i] - corner[i])
            extent[i] = grid->shape[i] - corner[i];
    if (!sel_part_of(&part, &e->list->sel, corner, extent))
        return BRC_OK;
    return compare_part(e, &part, err);
}

/* Where the documents are one, only chunks that differ are compared. The map is walked while
 * chunks are read, so their keys are gathered before. */
typedef struct key_list {
    brc_arena memory;
    void *keys;
    size_t n, cap;
} key_list;

static int gather_key(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    key_list *l = ctx;
    uint8_t *copy;
    (void)a;
    (void)b;
    BRC_TRY(brc_grow_array(&l->keys, &l->cap, l->n + 1, sizeof(brc_span), err));
    BRC_TRY(brc_arena_copy(&l->memory, key.data, key.len, &copy, err));
    ((brc_span *)l->keys)[l->n++] = (brc_span){copy, key.len};
    return BRC_OK;
}

static int compare_chunks(element_sides *e, const brc_oid *now, const brc_oid *before,
                          brc_error *err)
{
    key_list l = {BRC_ARENA_INIT, NULL, 0, 0};
    const brc_span none = {NULL, 0};
    int rc;
    BRC_GO(brc_map_diff(brc_array_store(e->list->a), now, before, gather_key, &l, err));
    for (size_t i = 0; i < l.n; i++)
        BRC_GO(compare_chunk(e, ((brc_span *)l.keys)[i], none, none, err));
done:
    free(l.keys);
    brc_arena_dispose(&l.memory);
    return rc;
}

static int diff_elements(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                         brc_blame_unit_fn differs, void *arg, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    element_sides e = {.list = ctx, .differs = differs, .arg = arg};
    breccia *repo = e.list->a->session->repo;
    sel_part part;
    int rc;
    BRC_GO(open_place(&e.now, repo, now, err));
    BRC_GO(open_place(&e.before, repo, before, err));
    e.comparable = e.now->info.ndim == e.before->info.ndim &&
                   strcmp(e.now->info.dtype, e.before->info.dtype) == 0;
    if (brc_oid_cmp(&now->entry.doc, &before->entry.doc) == 0)
        rc = compare_chunks(&e, &now->entry.map, &before->entry.map, err);
    else if (e.now->info.ndim == e.list->sel.ndim &&
             sel_part_of(&part, &e.list->sel, origin, e.now->info.shape))
        rc = compare_part(&e, &part, err);
done:
    brc_array_free(e.now);
    brc_array_free(e.before);
    return rc;
}

/* ---- the iterator -------------------------------- */

static int blame_start(blame_list *list, brc_array *a, const brc_sel *sel, brc_error *err)
{
    brc_session *s = a->session;
    if (s->mode != BRC_SESSION_AT)
        return brc_fail(err, BRC_EMISUSE, "blame is of a version: open the array in a session of "
                                          "BRC_SESSION_AT");
    list->sel = (brc_sel)BRC_SEL_INIT;
    brc_sel_all(&list->sel, a);
    if (sel != NULL)
        BRC_TRY(brc_sized_in(&list->sel, sizeof(list->sel), sizeof(list->sel), sel, "brc_sel",
                             err));
    BRC_TRY(brc_sel_check(&list->sel, a->meta.ndim, a->meta.shape, err));
    const uint64_t n = list->elements ? brc_sel_count(&list->sel) : 0;
    if (n > MOST_ELEMENTS)
        return brc_fail(err, BRC_ELIMIT, "%s: more than %llu elements cannot be told apart at a "
                                         "time: select fewer, or ask for chunks",
                        a->path, (unsigned long long)MOST_ELEMENTS);
    BRC_TRY(brc_array_open(&list->a, s, a->path, err));
    if (!list->elements)
        BRC_TRY(blame_list_chunks(list, err));
    return brc_blame_run(&list->result, brc_array_store(a), &s->draft.base, a->path,
                         list->elements ? (size_t)n : list->nkeys, list->elements,
                         list->elements ? diff_elements : diff_chunks, list, err);
}

int brc_blame(brc_iter **out, brc_array *a, const brc_sel *sel, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_BLAME_ELEMENTS, "brc_blame()", err));
    BRC_TRY(brc_iter_new(out, BRC_ITER_BLAME, sizeof(blame_list), blame_list_dispose, err));
    blame_list *list = brc_iter_state(*out);
    list->elements = (flags & BRC_BLAME_ELEMENTS) != 0;
    int rc = brc_session_begin_read(a->session, err);
    if (rc == BRC_OK) {
        rc = blame_start(list, a, sel, err);
        brc_session_end_read(a->session);
    }
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

/* The next elements of the last axis that are of one commit. */
static void take_run(blame_list *list)
{
    const brc_sel *sel = &list->sel;
    const uint32_t by = list->result.by[list->at];
    const int last = sel->ndim - 1;
    list->now.count = 0;
    for (int i = 0; i <= last; i++)
        list->now.first[i] = sel->start[i] + list->index[i] * sel->step[i];
    do {
        list->now.count++;
        list->at++;
        brc_index_next(sel->ndim, list->index, sel->count);
    } while (last >= 0 && list->index[last] > 0 && list->result.by[list->at] == by);
}

int brc_blame_next(brc_iter *it, const brc_blamed **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_BLAME, err));
    blame_list *list = brc_iter_state(it);
    if (list->at == list->result.n)
        return 0;
    const brc_blamed_by *by = &list->result.commits[list->result.by[list->at]];
    list->now.ndim = list->sel.ndim;
    list->now.commit = by->commit;
    list->now.time_us = by->time_us;
    list->now.author = by->author;
    list->now.flags = by->before ? BRC_BLAME_BEFORE : 0;
    if (list->elements) {
        take_run(list);
    } else {
        const brc_span key = ((const brc_span *)list->keys)[list->at++];
        list->now.count = 1;
        if (brc_chunk_key_decode(key.data, key.len, list->now.first) != list->sel.ndim)
            return brc_fail(err, BRC_EINTERNAL, "a chunk's key cannot be read again");
    }
    *out = &list->now;
    return 1;
}
