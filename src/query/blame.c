/*
 * brc_blame(): the units of a selection, chunks or elements, and how two versions of an array
 * differ in them. query/element_diff.c finds the commit that each unit comes from.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/sized.h"
#include "../nd/shape.h"
#include "../tree/map.h"
#include "../zarr/array/chunk_cursor.h"
#include "../zarr/array/places.h"
#include "element_diff.h"

/* The most elements that one call can trace. */
#define MOST_ELEMENTS ((uint64_t)1 << 26)
/* The most chunks of a selection that are looked up by their keys; with more, all are walked. */
enum { FEW_CHUNKS = 1024 };

typedef struct blame_list {
    brc_array *a;
    brc_sel sel;
    int elements;
    brc_chunk_keys chunks;
    brc_blame_result result;
    size_t at;
    uint64_t index[BRC_MAX_NDIM];
    brc_blamed now; /* the item that was returned last */
} blame_list;

static void blame_list_dispose(void *state)
{
    blame_list *list = state;
    brc_blame_result_dispose(&list->result);
    brc_chunk_keys_dispose(&list->chunks);
    brc_array_free(list->a);
}

/* ---- parts of a selection -------------------------------- */

static void part_sel(brc_sel *out, const brc_sel *sel, const brc_sel_part *part)
{
    *out = *sel;
    out->drop = 0;
    for (int i = 0; i < sel->ndim; i++) {
        out->start[i] = sel->start[i] + part->from[i] * sel->step[i];
        out->count[i] = part->n[i];
    }
}

static uint64_t part_count(const brc_sel_part *part, int ndim)
{
    uint64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= part->n[i];
    return n;
}

/* ---- chunks -------------------------------- */

static int diff_chunks(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                       brc_blame_unit_fn differs, void *arg, brc_error *err)
{
    const blame_list *list = ctx;
    return brc_map_diff_among(brc_array_store(list->a), &now->entry.map, &before->entry.map,
                              list->chunks.keys, list->chunks.n, differs, arg, err);
}

typedef struct found_chunks {
    blame_list *list;
    const brc_chunk_keys *wanted;
} found_chunks;

static int keep_found(void *ctx, size_t i, brc_span value, brc_error *err)
{
    const found_chunks *f = ctx;
    (void)value;
    return brc_chunk_keys_add(&f->list->chunks, f->wanted->keys[i], err);
}

/* Lists all stored chunks. */
static int list_of_all(blame_list *list, brc_error *err)
{
    void *p;
    brc_oid id;
    brc_sel_part part;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    uint8_t key[BRC_CHUNK_KEY_MAX];
    const brc_grid *grid = &list->a->meta.grid;
    int rc;
    BRC_TRY(brc_new(&p, sizeof(brc_chunk_cursor), err));
    brc_chunk_cursor *cursor = p;
    BRC_GO(brc_chunk_cursor_start(cursor, list->a, err));
    while ((rc = brc_chunk_cursor_next(cursor, index, &id, err)) > 0) {
        if (!brc_grid_has(grid, index))
            continue;
        brc_grid_chunk(grid, index, corner, extent);
        const size_t len = brc_chunk_key_encode(key, list->sel.ndim, index);
        if (brc_sel_part_of(&part, &list->sel, corner, extent))
            BRC_GO(brc_chunk_keys_add(&list->chunks, (brc_span){key, len}, err));
    }
done:
    brc_chunk_cursor_end(cursor);
    free(cursor);
    return rc;
}

/* Lists the stored chunks that the selection touches. */
static int blame_list_chunks(blame_list *list, brc_error *err)
{
    brc_chunk_keys wanted = BRC_CHUNK_KEYS_INIT;
    found_chunks f = {list, &wanted};
    int listed, rc;
    BRC_GO(brc_sel_chunks(&wanted, &listed, &list->sel, &list->a->meta.grid, FEW_CHUNKS, err));
    rc = listed ? brc_map_get_many(brc_array_store(list->a), &list->a->entry.map, wanted.keys,
                                   wanted.n, keep_found, &f, err)
                : list_of_all(list, err);
done:
    brc_chunk_keys_dispose(&wanted);
    return rc;
}

/* ---- elements -------------------------------- */

typedef struct element_sides {
    blame_list *list;
    brc_array *now, *before;
    int comparable; /* they have the same type and rank */
    brc_blame_unit_fn differs;
    void *arg;
} element_sides;

static int open_place(brc_array **out, breccia *repo, const brc_blame_place *place, brc_error *err)
{
    char hex[65];
    brc_session *s;
    BRC_TRY(brc_session_open(&s, repo, brc_oid_format(hex, place->commit), BRC_SESSION_AT, err));
    int rc = brc_array_open(out, s, place->path, err);
    brc_session_free(s); /* the array keeps the session */
    return rc;
}

/* Takes the next element that was read, including its length if that is variable. */
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

/* Compares one element of a part of the selection. */
static int element_one(const element_sides *e, const brc_sel_part *part, const uint64_t *at,
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
static int compare_part(const element_sides *e, const brc_sel_part *part, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    const int ndim = e->list->sel.ndim;
    brc_sel inner, own;
    brc_sel_part both;
    uint64_t at[BRC_MAX_NDIM] = {0};
    brc_buf bytes[2] = {BRC_BUF_INIT, BRC_BUF_INIT};
    int rc = BRC_OK, shared = 0;
    part_sel(&own, &e->list->sel, part);
    if (e->comparable)
        shared = brc_sel_part_of(&both, &own, origin, e->before->info.shape);
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

static int compare_chunk(const element_sides *e, brc_span key, brc_error *err)
{
    const brc_grid *grid = &e->now->meta.grid;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], extent[BRC_MAX_NDIM];
    brc_sel_part part;
    if (brc_chunk_key_decode(key.data, key.len, index) != grid->ndim || !brc_grid_has(grid, index))
        return BRC_OK;
    brc_grid_chunk(grid, index, corner, extent);
    for (int i = 0; i < grid->ndim; i++)
        if (extent[i] > grid->shape[i] - corner[i])
            extent[i] = grid->shape[i] - corner[i];
    if (!brc_sel_part_of(&part, &e->list->sel, corner, extent))
        return BRC_OK;
    return compare_part(e, &part, err);
}

/* The keys of chunks that differ. If both documents are equal, only these chunks are compared. The
 * keys are collected first, because a map is not walked while chunks are read. */
typedef struct differing {
    brc_chunk_keys wanted, keys;
} differing;

static int gather_key(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    differing *d = ctx;
    (void)a;
    (void)b;
    return brc_chunk_keys_add(&d->keys, key, err);
}

static int gather_wanted(void *ctx, size_t i, brc_error *err)
{
    differing *d = ctx;
    return brc_chunk_keys_add(&d->keys, d->wanted.keys[i], err);
}

static int compare_chunks(element_sides *e, const brc_oid *now, const brc_oid *before,
                          brc_error *err)
{
    brc_store *store = brc_array_store(e->list->a);
    differing d = {BRC_CHUNK_KEYS_INIT, BRC_CHUNK_KEYS_INIT};
    int listed, rc;
    BRC_GO(brc_sel_chunks(&d.wanted, &listed, &e->list->sel, &e->now->meta.grid, FEW_CHUNKS, err));
    BRC_GO(listed ? brc_map_diff_among(store, now, before, d.wanted.keys, d.wanted.n,
                                       gather_wanted, &d, err)
                  : brc_map_diff(store, now, before, gather_key, &d, err));
    for (size_t i = 0; i < d.keys.n; i++)
        BRC_GO(compare_chunk(e, d.keys.keys[i], err));
done:
    brc_chunk_keys_dispose(&d.wanted);
    brc_chunk_keys_dispose(&d.keys);
    return rc;
}

static int diff_elements(void *ctx, const brc_blame_place *now, const brc_blame_place *before,
                         brc_blame_unit_fn differs, void *arg, brc_error *err)
{
    static const uint64_t origin[BRC_MAX_NDIM];
    element_sides e = {.list = ctx, .differs = differs, .arg = arg};
    breccia *repo = e.list->a->session->repo;
    brc_sel_part part;
    int rc;
    BRC_GO(open_place(&e.now, repo, now, err));
    BRC_GO(open_place(&e.before, repo, before, err));
    e.comparable = e.now->info.ndim == e.before->info.ndim &&
                   strcmp(e.now->info.dtype, e.before->info.dtype) == 0;
    if (brc_oid_cmp(&now->entry.doc, &before->entry.doc) == 0)
        rc = compare_chunks(&e, &now->entry.map, &before->entry.map, err);
    else if (e.now->info.ndim == e.list->sel.ndim &&
             brc_sel_part_of(&part, &e.list->sel, origin, e.now->info.shape))
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
        return brc_fail(err, BRC_EMISUSE, "blame needs a committed version: open the array in a "
                                          "session of BRC_SESSION_AT");
    list->sel = (brc_sel)BRC_SEL_INIT;
    brc_sel_all(&list->sel, a);
    if (sel != NULL)
        BRC_TRY(brc_sized_in(&list->sel, sizeof(list->sel), sizeof(list->sel), sel, "brc_sel",
                             err));
    BRC_TRY(brc_sel_check(&list->sel, a->meta.ndim, a->meta.shape, err));
    const uint64_t n = list->elements ? brc_sel_count(&list->sel) : 0;
    if (n > MOST_ELEMENTS)
        return brc_fail(err, BRC_ELIMIT, "%s: more than %llu elements are too many for one "
                                         "blame: select fewer, or ask for chunks",
                        a->path, (unsigned long long)MOST_ELEMENTS);
    BRC_TRY(brc_array_open(&list->a, s, a->path, err));
    if (!list->elements)
        BRC_TRY(blame_list_chunks(list, err));
    return brc_blame_run(&list->result, brc_array_store(a), &s->draft.base, a->path,
                         list->elements ? (size_t)n : list->chunks.n, list->elements,
                         list->elements ? diff_elements : diff_chunks, list, err);
}

/* Takes the next elements along the last axis that come from one commit. */
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

static int blame_next(void *state, const void **out, brc_error *err)
{
    blame_list *list = state;
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
        const brc_span key = list->chunks.keys[list->at++];
        list->now.count = 1;
        if (brc_chunk_key_decode(key.data, key.len, list->now.first) != list->sel.ndim)
            return brc_fail(err, BRC_EINTERNAL, "a chunk's key cannot be read again");
    }
    *out = &list->now;
    return 1;
}

int brc_blame(brc_iter **out, brc_array *a, const brc_sel *sel, uint32_t flags, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_flags_check(flags, BRC_BLAME_ELEMENTS, "brc_blame()", err));
    BRC_TRY(brc_iter_new(out, blame_next, sizeof(blame_list), blame_list_dispose, err));
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
