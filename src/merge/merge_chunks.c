#include "merge_decode.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../tree/map.h"
#include "../zarr/array/chunk_cursor.h"

static void merge_plan_close(brc_merge_plan *p);
static int merge_plan_is_plain(const brc_merge_plan *p);
static int merge_plan_open(brc_merge_plan *p, brc_error *err);
static void merge_task_clear(brc_merge_task *t);
static void merge_task_place(const brc_merge_plan *p, brc_merge_task *t);

/* ==== base chunks ================================ */

struct brc_base_form {
    brc_chunk_merge call;
    brc_merge_plan plan;
    struct brc_base_form *next;
    char path[];
};

typedef struct base_chunk {
    const brc_base_form *form; /* NULL: the whole chunk is unknown */
    const uint8_t *key;
    size_t key_len;
    brc_oid of[BRC_SIDES];
} base_chunk;

void brc_base_chunks_dispose(brc_base_chunks *b)
{
    for (brc_base_form *form = b->forms, *next; form != NULL; form = next) {
        next = form->next;
        merge_plan_close(&form->plan);
        free(form);
    }
    brc_id_table_dispose(&b->ids);
    brc_arena_dispose(&b->keys);
    free(b->items);
    b->forms = NULL;
    b->items = NULL;
    b->n = b->cap = 0;
}

/* ---- forms -------------------------------- */

/* Opens the form. A form that makes no array is not an error, because bases need not agree on
 * one. */
static int opens_plainly(brc_base_form *form, int *plain, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = merge_plan_open(&form->plan, &why);
    *plain = rc == BRC_OK && merge_plan_is_plain(&form->plan);
    if (rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

int brc_base_form_new(const brc_base_form **out, brc_base_chunks *b, breccia *repo,
                      const char *path, const brc_entry side[BRC_SIDES], const brc_json *merged,
                      brc_error *err)
{
    static const brc_merge_chunks_ops none;
    void *p;
    int plain = 0;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_base_form) + strlen(path) + 1, err));
    brc_base_form *form = p;
    memcpy(form->path, path, strlen(path) + 1);
    form->call = (brc_chunk_merge){.repo = repo, .path = form->path, .merged = merged,
                                   .ops = &none};
    memcpy(form->call.side, side, sizeof(form->call.side));
    form->plan.call = &form->call;
    form->plan.store = repo->store;
    form->plan.view.repo = repo;
    form->plan.has_base = side[BRC_SIDE_BASE].kind == BRC_ARRAY;
    int rc = opens_plainly(form, &plain, err);
    form->call.merged = NULL; /* it belonged to the caller */
    if (rc < 0 || !plain) {
        merge_plan_close(&form->plan);
        free(form);
        return rc;
    }
    form->next = b->forms;
    b->forms = form;
    *out = form;
    return BRC_OK;
}

/* ---- ids -------------------------------- */

/* Every id is different from all others and from the id of every stored chunk, because a chunk on
 * which the bases disagree is equal to no other. */
int brc_base_chunk_new(brc_base_chunks *b, const brc_base_form *form, brc_store *store,
                       brc_span key, const brc_oid of[BRC_SIDES], brc_oid *id, brc_error *err)
{
    struct {
        brc_oid of[BRC_SIDES];
        uint64_t number;
    } name;
    uint8_t *copy;
    void *value;
    memset(&name, 0, sizeof(name));
    memcpy(name.of, of, sizeof(name.of));
    name.number = b->n;
    *id = brc_hash_object(brc_store_hash(store), BRC_KIND_COMMIT, &name, sizeof(name));
    BRC_TRY(brc_grow_array(&b->items, &b->cap, b->n + 1, sizeof(base_chunk), err));
    BRC_TRY(brc_arena_copy(&b->keys, key.data, key.len, &copy, err));
    BRC_TRY(brc_id_table_add(&b->ids, id, &value, err));
    base_chunk *c = &((base_chunk *)b->items)[b->n++];
    *c = (base_chunk){.form = form, .key = copy, .key_len = key.len};
    memcpy(c->of, of, sizeof(c->of));
    *(size_t *)value = b->n;
    return BRC_OK;
}

/* Returns the chunk's number, or 0. */
static size_t base_chunk_number(const brc_base_chunks *b, const brc_oid *id)
{
    if (brc_oid_is_zero(id))
        return 0;
    const size_t *number = brc_id_table_find(&b->ids, id);
    return number != NULL ? *number : 0;
}

int brc_base_chunk_is(const brc_base_chunks *b, const brc_oid *id)
{
    return base_chunk_number(b, id) != 0;
}

static const base_chunk *chunk_numbered(const brc_base_chunks *b, size_t number)
{
    return &((const base_chunk *)b->items)[number - 1];
}

/* ---- masks -------------------------------- */

typedef struct mask_runs {
    brc_reader r;
    uint64_t from, to; /* the next run; from UINT64_MAX: none */
} mask_runs;

static void mask_run_next(mask_runs *m)
{
    if (brc_reader_left(&m->r) == 0) {
        m->from = m->to = UINT64_MAX;
        return;
    }
    m->from = m->to + brc_read_varint(&m->r);
    m->to = m->from + brc_read_varint(&m->r);
}

static mask_runs runs_of(brc_span mask)
{
    mask_runs m = {.r = brc_reader_of(mask.data, mask.len)};
    mask_run_next(&m);
    return m;
}

/* Joins two masks into an empty buffer. */
static int masks_join(brc_buf *out, brc_span a, brc_span b, brc_error *err)
{
    mask_runs x = runs_of(a), y = runs_of(b);
    uint64_t done = 0;
    while (x.from != UINT64_MAX || y.from != UINT64_MAX) {
        mask_runs *first = x.from <= y.from ? &x : &y;
        const uint64_t from = first->from;
        uint64_t to = first->to;
        mask_run_next(first);
        while (x.from <= to || y.from <= to) { /* runs that touch it */
            mask_runs *more = x.from <= to ? &x : &y;
            to = more->to > to ? more->to : to;
            mask_run_next(more);
        }
        BRC_TRY(brc_buf_varint(out, from - done, err));
        BRC_TRY(brc_buf_varint(out, to - from, err));
        done = to;
    }
    return BRC_OK;
}

/* ---- making -------------------------------- */

typedef struct making {
    size_t number;
    size_t uses; /* how many later chunks still need it */
    brc_made_chunk made;
} making;

typedef struct chain_of {
    const brc_base_chunks *b;
    void *items; /* making[], sorted by number */
    size_t n, cap;
    brc_id_table seen;
} chain_of;

static int making_order(const void *x, const void *y)
{
    const making *a = x, *b = y;
    return (a->number > b->number) - (a->number < b->number);
}

static making *making_of(const chain_of *chain, size_t number)
{
    const making key = {.number = number};
    return bsearch(&key, chain->items, chain->n, sizeof(making), making_order);
}

static int chain_add(chain_of *chain, const brc_oid *id, brc_error *err)
{
    void *value;
    const size_t number = base_chunk_number(chain->b, id);
    if (number == 0)
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&chain->seen, id, &value, err));
    if (*(uint8_t *)value)
        return BRC_OK;
    *(uint8_t *)value = 1;
    BRC_TRY(brc_grow_array(&chain->items, &chain->cap, chain->n + 1, sizeof(making), err));
    ((making *)chain->items)[chain->n++] = (making){.number = number, .made = BRC_MADE_CHUNK_INIT};
    return BRC_OK;
}

/* Finds all chunks from which this chunk is merged, sources before the chunks that use them. */
static int chain_find(chain_of *chain, const brc_oid *id, brc_error *err)
{
    BRC_TRY(chain_add(chain, id, err));
    for (size_t i = 0; i < chain->n; i++) {
        const size_t number = ((making *)chain->items)[i].number;
        for (int s = 0; s < BRC_SIDES; s++)
            BRC_TRY(chain_add(chain, &chunk_numbered(chain->b, number)->of[s], err));
    }
    if (chain->n > 1)
        qsort(chain->items, chain->n, sizeof(making), making_order);
    for (size_t i = 0; i < chain->n; i++) {
        const base_chunk *c = chunk_numbered(chain->b, ((making *)chain->items)[i].number);
        for (int s = 0; s < BRC_SIDES; s++) {
            const size_t number = base_chunk_number(chain->b, &c->of[s]);
            if (number != 0)
                making_of(chain, number)->uses++;
        }
    }
    return BRC_OK;
}

/* Takes a side that is itself a merged chunk. Sets *whole if the side is completely unknown, so
 * that the result is too; a completely unknown base only means that ours and theirs must agree. */
static int take_made(const chain_of *chain, brc_merge_task *t, int side, size_t number, int *whole,
                     brc_error *err)
{
    const brc_made_chunk *made = &making_of(chain, number)->made;
    memset(&t->id[side], 0, sizeof(t->id[side]));
    if (made->unknown && made->mask.len == 0) {
        *whole |= side != BRC_SIDE_BASE;
        t->unknown |= side == BRC_SIDE_BASE;
        return BRC_OK;
    }
    if (made->data != NULL) {
        void *copy;
        BRC_TRY(brc_new_big(&copy, made->len > 0 ? made->len : 1, err));
        memcpy(copy, made->data, made->len);
        t->data[side] = copy;
        t->len[side] = made->len;
    }
    if (side != BRC_SIDE_BASE || !made->unknown)
        return BRC_OK;
    t->unknown = 1;
    return brc_buf_append(&t->mask, made->mask.data, made->mask.len, err);
}

/* Says whether the result has everything that either side has of the chunk, and at least one side
 * has something. Parts that a smaller shape has cut off are not distinguished. */
static int is_held(const brc_merge_plan *p, brc_merge_task *t)
{
    for (int i = 0; i < brc_plan_meta(p, BRC_RESULT)->ndim; i++)
        for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS; s++)
            if (t->extent[s][i] > t->extent[BRC_RESULT][i] || t->extent[s][i] == 0)
                return 0;
    for (int i = 0; i < brc_plan_meta(p, BRC_RESULT)->ndim && p->has_base; i++)
        if (t->extent[BRC_SIDE_BASE][i] == 0)
            memset(&t->id[BRC_SIDE_BASE], 0, sizeof(t->id[BRC_SIDE_BASE]));
    return 1;
}

static int task_of(const base_chunk *c, brc_merge_task *t, brc_error *err)
{
    const brc_merge_plan *p = &c->form->plan;
    memcpy(t->key, c->key, c->key_len);
    t->key_len = c->key_len;
    memcpy(t->id, c->of, sizeof(t->id));
    t->how = BRC_TASK_MERGE;
    t->unknown = !p->has_base;
    if (brc_chunk_key_decode(c->key, c->key_len, t->index) != brc_plan_meta(p, BRC_RESULT)->ndim)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        c->form->path);
    for (int s = p->has_base ? BRC_SIDE_BASE : BRC_SIDE_OURS; s <= BRC_RESULT; s++)
        if (!brc_grid_has(&brc_plan_meta(p, s)->grid, t->index) && s != BRC_SIDE_BASE)
            return 0;
    merge_task_place(p, t);
    return is_held(p, t);
}

/* Marks elements that were unknown in a side as unknown in the result. */
static int mask_of_result(const chain_of *chain, const base_chunk *c, brc_merge_task *t,
                          brc_made_chunk *out, brc_error *err)
{
    brc_buf found = t->box.found;
    t->box.found = (brc_buf)BRC_BUF_INIT;
    out->unknown = t->box.conflicts > 0;
    int rc = BRC_OK, whole = out->unknown && found.len == 0;
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS && rc == BRC_OK; s++) {
        const size_t number = base_chunk_number(chain->b, &c->of[s]);
        const brc_made_chunk *made = number != 0 ? &making_of(chain, number)->made : NULL;
        if (made == NULL || !made->unknown)
            continue;
        brc_buf both = BRC_BUF_INIT;
        rc = masks_join(&both, (brc_span){found.data, found.len},
                        (brc_span){made->mask.data, made->mask.len}, err);
        brc_buf_dispose(&found);
        found = both;
        out->unknown = 1;
    }
    if (whole)
        found.len = 0;
    out->mask = found;
    return rc;
}

static int make_task(const chain_of *chain, const base_chunk *c, brc_merge_task *t,
                     brc_made_chunk *out, brc_error *err)
{
    brc_merge_plan *p = &((brc_base_form *)(uintptr_t)c->form)->plan;
    brc_buf own = BRC_BUF_INIT;
    int whole = 0, rc = task_of(c, t, err);
    if (rc < 0)
        return rc;
    for (int s = 0; s < BRC_SIDES && rc > 0; s++) {
        const size_t number = base_chunk_number(chain->b, &t->id[s]);
        if (number != 0)
            BRC_TRY(take_made(chain, t, s, number, &whole, err));
    }
    if (rc == 0 || whole) {
        out->unknown = 1;
        return BRC_OK;
    }
    BRC_TRY(brc_merge_task_read(p, t, err));
    rc = brc_merge_task_run(p, t, &own, err);
    if (rc == BRC_OK)
        rc = mask_of_result(chain, c, t, out, err);
    if (rc == BRC_OK && !(out->unknown && out->mask.len == 0)) {
        out->len = own.len;
        out->data = own.data;
        own = (brc_buf)BRC_BUF_INIT;
    }
    brc_buf_dispose(&own);
    return rc;
}

static int make_next(const chain_of *chain, making *m, brc_error *err)
{
    const base_chunk *c = chunk_numbered(chain->b, m->number);
    void *task;
    if (c->form == NULL) {
        m->made.unknown = 1;
        return BRC_OK;
    }
    BRC_TRY(brc_new(&task, sizeof(brc_merge_task), err));
    int rc = make_task(chain, c, task, &m->made, err);
    if (rc < 0)
        brc_context(err, "%s", c->form->path);
    merge_task_clear(task);
    free(task);
    for (int s = 0; s < BRC_SIDES; s++) {
        const size_t number = base_chunk_number(chain->b, &c->of[s]);
        making *of = number != 0 ? making_of(chain, number) : NULL;
        if (of != NULL && --of->uses == 0)
            brc_made_chunk_dispose(&of->made);
    }
    return rc;
}

int brc_base_chunk_make(const brc_base_chunks *b, const brc_oid *id, brc_made_chunk *out,
                        brc_error *err)
{
    chain_of chain = {.b = b, .seen = BRC_ID_TABLE_INIT(1)};
    int rc = chain_find(&chain, id, err);
    making *items = chain.items;
    for (size_t i = 0; i < chain.n && rc == BRC_OK; i++)
        rc = make_next(&chain, &items[i], err);
    for (size_t i = 0; i < chain.n; i++)
        if (rc == BRC_OK && i + 1 == chain.n)
            *out = items[i].made;
        else
            brc_made_chunk_dispose(&items[i].made);
    free(chain.items);
    brc_id_table_dispose(&chain.seen);
    return rc;
}

/* ==== merge keys ================================ */

/*
 * Finds the chunks that a merge must examine, and settles those that ids alone settle.
 *
 * If all shapes and fill values are the same, these are the chunks that theirs changed, and ours is
 * looked up for each of them. Otherwise they are the chunks that differ between ours and theirs,
 * and the base is looked up: a chunk that is the same in both is in the result, whatever it was in
 * the base. There is one exception: if the result has elements that neither side has, such a chunk
 * may hold any values there. Elements that are no longer within the result's shape have a walk of
 * their own.
 */

enum { COVERS_NONE, COVERS_PART, COVERS_ALL };

static void merge_task_clear(brc_merge_task *t)
{
    for (int s = 0; s < BRC_SIDES; s++)
        free(t->data[s]);
    brc_buf_dispose(&t->mask);
    brc_buf_dispose(&t->box.found);
    memset(t, 0, sizeof(*t));
}

/* ---- one chunk -------------------------------- */

/* Computes how much of the chunk a side has, from the chunk's corner. */
static void extent_of_side(const brc_meta *m, brc_merge_task *t, int side)
{
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t left = m->shape[i] > t->corner[i] ? m->shape[i] - t->corner[i] : 0;
        t->extent[side][i] = left < t->chunk[i] ? left : t->chunk[i];
    }
}

/* Computes the chunk's corner and extents from its index. */
static void merge_task_place(const brc_merge_plan *p, brc_merge_task *t)
{
    const brc_grid *grid = &brc_plan_meta(p, p->losing != 0 ? p->losing : BRC_RESULT)->grid;
    brc_grid_chunk(grid, t->index, t->corner, t->chunk);
    for (int s = 0; s <= BRC_SIDES; s++)
        if (s != BRC_SIDE_BASE || p->has_base)
            extent_of_side(brc_plan_meta(p, s), t, s);
}

/* Returns how much of the result's part of the chunk a side has. */
static int covers(const brc_merge_plan *p, const brc_merge_task *t, int side)
{
    const int ndim = brc_plan_meta(p, BRC_RESULT)->ndim;
    int all = 1;
    for (int i = 0; i < ndim; i++) {
        if (t->extent[side][i] == 0)
            return COVERS_NONE;
        all &= t->extent[side][i] >= t->extent[BRC_RESULT][i];
    }
    if (side == BRC_SIDE_BASE && !p->has_base)
        return COVERS_NONE;
    return all ? COVERS_ALL : COVERS_PART;
}

/* Says whether two sides have the same content, provided that they have the same extent. */
static int same_content(const brc_merge_plan *p, const brc_merge_task *t, int x, int y)
{
    const brc_span *a = &p->spans[x], *b = &p->spans[y];
    if (brc_oid_cmp(&t->id[x], &t->id[y]) != 0)
        return 0;
    return !brc_oid_is_zero(&t->id[x]) ||
           (a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

static int same_extent(const brc_merge_plan *p, const brc_merge_task *t, int x, int y)
{
    const size_t ndim = (size_t)brc_plan_meta(p, BRC_RESULT)->ndim;
    return memcmp(t->extent[x], t->extent[y], ndim * sizeof(uint64_t)) == 0;
}

static void emit_id(brc_merge_task *t, const brc_oid *id)
{
    static const brc_oid none;
    t->emits = 1;
    t->result = id != NULL ? *id : none;
}

/* Takes the chunk of theirs as it is. */
static void take_theirs(brc_merge_task *t)
{
    if (!brc_oid_is_zero(&t->id[BRC_SIDE_THEIRS]))
        emit_id(t, &t->id[BRC_SIDE_THEIRS]);
    else if (t->was_there)
        emit_id(t, NULL);
}

static void conflict_of_unit(const brc_merge_plan *p, brc_merge_task *t, int kind)
{
    t->conflict = kind;
    if (p->call->favour == BRC_SIDE_THEIRS)
        take_theirs(t);
}

/* Settles a chunk whose fill value was changed by a side that does not have the chunk's elements.
 * Returns 1 if the chunk is settled, or needs decoding for that. */
static int meet_new_fill(const brc_merge_plan *p, brc_merge_task *t)
{
    const int differ = brc_oid_cmp(&t->id[BRC_SIDE_OURS], &t->id[BRC_SIDE_THEIRS]) != 0;
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS && differ; s++) {
        const int other = BRC_SIDE_OURS + BRC_SIDE_THEIRS - s;
        if (!p->new_fill[other] || covers(p, t, s) == COVERS_NONE ||
            brc_oid_cmp(&t->id[s], &t->id[BRC_SIDE_BASE]) == 0)
            continue;
        t->by = s;
        if (p->is_unit)
            conflict_of_unit(p, t, BRC_CHUNK_FILL);
        else
            t->how = BRC_TASK_FILL;
        return 1;
    }
    return 0;
}

/* Settles a chunk by ids alone if one side has changed nothing that the other side has not. Returns
 * 1 if it is settled. */
static int meet_by_id(const brc_merge_plan *p, brc_merge_task *t, int ours, int theirs)
{
    const int known = !t->unknown, base = covers(p, t, BRC_SIDE_BASE);
    const int at_edge = (ours == COVERS_PART) + (theirs == COVERS_PART) + (base == COVERS_PART);
    if (theirs == COVERS_NONE && ours == COVERS_NONE) {
        if (t->was_there)
            emit_id(t, NULL);
        return 1;
    }
    if (ours == COVERS_ALL &&
        (theirs == COVERS_NONE || (known && same_content(p, t, BRC_SIDE_THEIRS, BRC_SIDE_BASE) &&
                                   (at_edge == 0 || same_extent(p, t, BRC_SIDE_THEIRS,
                                                                BRC_SIDE_BASE)))))
        return 1;
    if (theirs == COVERS_ALL &&
        (ours == COVERS_NONE || (known && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_BASE) &&
                                 (at_edge == 0 || same_extent(p, t, BRC_SIDE_OURS,
                                                              BRC_SIDE_BASE))))) {
        take_theirs(t);
        return 1;
    }
    return at_edge == 0 && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
}

/* Settles a chunk that cannot be merged by element. Its bytes count as a whole, the edges
 * included. */
static void meet_as_unit(const brc_merge_plan *p, brc_merge_task *t)
{
    const int known = !t->unknown;
    if (same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_THEIRS) ||
        (known && same_content(p, t, BRC_SIDE_THEIRS, BRC_SIDE_BASE)))
        return;
    if (known && same_content(p, t, BRC_SIDE_OURS, BRC_SIDE_BASE))
        take_theirs(t);
    else
        conflict_of_unit(p, t, BRC_CHUNK_UNIT);
}

static void decide_chunk(const brc_merge_plan *p, brc_merge_task *t)
{
    t->was_there = !brc_oid_is_zero(&t->id[BRC_SIDE_OURS]);
    if (!brc_grid_has(&brc_plan_meta(p, BRC_RESULT)->grid, t->index)) {
        if (t->was_there)
            emit_id(t, NULL);
        return;
    }
    merge_task_place(p, t);
    const int ours = covers(p, t, BRC_SIDE_OURS), theirs = covers(p, t, BRC_SIDE_THEIRS);
    for (int s = 0; s < BRC_SIDES; s++)
        if (covers(p, t, s) == COVERS_NONE)
            memset(&t->id[s], 0, sizeof(t->id[s]));
    if (meet_new_fill(p, t) || meet_by_id(p, t, ours, theirs))
        return;
    if (p->is_unit)
        meet_as_unit(p, t);
    else
        t->how = BRC_TASK_MERGE;
}

/* Decides whether the side that loses elements may have changed some of them. */
static void decide_lost(const brc_merge_plan *p, brc_merge_task *t)
{
    const brc_meta *m = brc_plan_meta(p, p->losing);
    int beyond = 0;
    if (!brc_grid_has(&m->grid, t->index))
        return;
    merge_task_place(p, t);
    for (int i = 0; i < m->ndim; i++)
        beyond |= t->extent[p->losing][i] > t->extent[BRC_RESULT][i];
    if (covers(p, t, BRC_SIDE_BASE) == COVERS_NONE)
        memset(&t->id[BRC_SIDE_BASE], 0, sizeof(brc_oid));
    t->by = p->losing;
    if (!beyond)
        return;
    if (p->is_unit)
        t->conflict = BRC_CHUNK_LOST;
    else
        t->how = BRC_TASK_LOST;
}

/* ---- batches -------------------------------- */

typedef struct key_found {
    brc_merge_plan *p;
    int side;
} key_found;

static int note_id(const brc_merge_plan *p, brc_merge_task *t, int side, brc_span value,
                   brc_error *err)
{
    if (value.data == NULL)
        return BRC_OK;
    int rc = brc_chunk_id_of(value, brc_store_id_len(p->store), &t->id[side], err);
    if (rc < 0)
        brc_context(err, "%s", p->call->path);
    return rc;
}

static int found_key(void *ctx, size_t i, brc_span value, brc_error *err)
{
    const key_found *f = ctx;
    return note_id(f->p, &f->p->tasks[i], f->side, value, err);
}

/* Looks up the chunks in the one side that the walk does not cover. */
static int look_up_side(brc_merge_plan *p, int side, brc_error *err)
{
    brc_span keys[BRC_MERGE_BATCH];
    key_found found = {p, side};
    for (size_t i = 0; i < p->n; i++)
        keys[i] = (brc_span){p->tasks[i].key, p->tasks[i].key_len};
    return brc_map_get_many(p->store, &p->call->side[side].map, keys, p->n, found_key, &found,
                            err);
}

static int ask_unknown(const brc_merge_plan *p, brc_merge_task *t, brc_error *err)
{
    const brc_merge_chunks_ops *ops = p->call->ops;
    brc_span mask = {NULL, 0};
    t->unknown = !p->has_base;
    if (t->unknown || ops->unknown == NULL)
        return BRC_OK;
    int rc = ops->unknown(ops->ctx, (brc_span){t->key, t->key_len}, &mask, err);
    if (rc <= 0)
        return rc;
    t->unknown = 1; /* as far as ids tell */
    t->is_made = rc == BRC_BASE_MADE;
    if (mask.len == 0) /* the base need not have such a chunk */
        memset(&t->id[BRC_SIDE_BASE], 0, sizeof(brc_oid));
    return mask.len > 0 ? brc_buf_append(&t->mask, mask.data, mask.len, err) : BRC_OK;
}

static int run_batch(brc_merge_plan *p, int missing, brc_error *err)
{
    if (p->n == 0)
        return BRC_OK;
    if (missing != BRC_SIDE_BASE || p->has_base)
        BRC_TRY(look_up_side(p, missing, err));
    for (size_t i = 0; i < p->n; i++) {
        BRC_TRY(ask_unknown(p, &p->tasks[i], err));
        if (p->losing != 0)
            decide_lost(p, &p->tasks[i]);
        else
            decide_chunk(p, &p->tasks[i]);
    }
    BRC_TRY(brc_merge_tell(p, 0, p->n, err));
    BRC_TRY(brc_merge_decode(p, err));
    for (size_t i = 0; i < p->n; i++)
        merge_task_clear(&p->tasks[i]);
    p->n = 0;
    return brc_task_step(p->call->repo, 0, err);
}

/* ---- walks -------------------------------- */

typedef struct key_walk {
    brc_merge_plan *p;
    int a, b, missing; /* the sides whose maps are walked, and the third side */
    int corners;       /* visit only chunks that both sides share and that may hold elements of
                        * neither */
} key_walk;

/* Says whether the result has elements of the chunk that this side does not have. */
static int reaches_past(const brc_merge_plan *p, const brc_merge_task *t, int side)
{
    for (int i = 0; i < brc_plan_meta(p, BRC_RESULT)->ndim; i++)
        if (t->extent[BRC_RESULT][i] > t->extent[side][i])
            return 1;
    return 0;
}

static int is_corner(const brc_merge_plan *p, brc_merge_task *t)
{
    if (brc_oid_cmp(&t->id[BRC_SIDE_OURS], &t->id[BRC_SIDE_THEIRS]) != 0 ||
        !brc_grid_has(&brc_plan_meta(p, BRC_RESULT)->grid, t->index))
        return 0;
    merge_task_place(p, t);
    return reaches_past(p, t, BRC_SIDE_OURS) && reaches_past(p, t, BRC_SIDE_THEIRS);
}

static int walk_key(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    const key_walk *w = ctx;
    brc_merge_plan *p = w->p;
    brc_merge_task *t = &p->tasks[p->n];
    if (key.len > sizeof(t->key) ||
        brc_chunk_key_decode(key.data, key.len, t->index) != brc_plan_meta(p, BRC_RESULT)->ndim)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        p->call->path);
    memcpy(t->key, key.data, key.len);
    t->key_len = key.len;
    BRC_TRY(note_id(p, t, w->a, a, err));
    BRC_TRY(note_id(p, t, w->b, b, err));
    if (w->corners && !is_corner(p, t)) {
        merge_task_clear(t);
        return BRC_OK;
    }
    return ++p->n == BRC_MERGE_BATCH ? run_batch(p, w->missing, err) : BRC_OK;
}

static int walk_sides(brc_merge_plan *p, int a, int b, int corners, brc_error *err)
{
    key_walk w = {p, a, b, BRC_SIDE_BASE + BRC_SIDE_OURS + BRC_SIDE_THEIRS - a - b, corners};
    const brc_oid *x = &p->call->side[a].map, *y = &p->call->side[b].map;
    BRC_TRY(corners ? brc_map_both(p->store, x, y, walk_key, &w, err)
                    : brc_map_diff(p->store, x, y, walk_key, &w, err));
    return run_batch(p, w.missing, err);
}

static int extends_past(const brc_merge_plan *p, int side, int other)
{
    const brc_meta *a = brc_plan_meta(p, side), *b = brc_plan_meta(p, other);
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] > b->shape[i])
            return 1;
    return 0;
}

static int walk_lost(brc_merge_plan *p, brc_error *err)
{
    int rc = BRC_OK;
    for (int s = BRC_SIDE_OURS; s <= BRC_SIDE_THEIRS && rc == BRC_OK; s++) {
        if (!p->has_base || !extends_past(p, s, BRC_RESULT))
            continue;
        p->losing = s;
        rc = walk_sides(p, BRC_SIDE_BASE, s, 0, err);
        p->losing = 0;
    }
    return rc;
}

/* Walks the maps. Must be called within a read of the store. */
static int merge_keys(brc_merge_plan *p, brc_error *err)
{
    int simple = p->has_base && p->call->ops->unknown == NULL && !p->new_fill[BRC_SIDE_OURS] &&
                 !p->new_fill[BRC_SIDE_THEIRS];
    for (int s = 0; s < BRC_SIDES && simple; s++)
        simple = !extends_past(p, s, BRC_RESULT) && !extends_past(p, BRC_RESULT, s);
    if (simple)
        return walk_sides(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS, 0, err);
    BRC_TRY(walk_sides(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS, 0, err));
    if (extends_past(p, BRC_RESULT, BRC_SIDE_OURS) && extends_past(p, BRC_RESULT, BRC_SIDE_THEIRS))
        BRC_TRY(walk_sides(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS, 1, err));
    return walk_lost(p, err);
}

/* ==== merge chunks ================================ */

/* ---- the sides -------------------------------- */

static int open_result(brc_merge_plan *p, brc_error *err)
{
    const brc_chunk_merge *call = p->call;
    brc_array *a = &p->array[BRC_RESULT];
    memset(a, 0, sizeof(*a));
    a->session = &p->view;
    a->path = (char *)(uintptr_t)call->path;
    a->entry = (brc_entry){.kind = BRC_ARRAY,
                           .map = call->side[BRC_SIDE_OURS].map,
                           .storage = call->storage};
    int rc = brc_meta_open(&a->meta, call->repo->registry, call->merged, err);
    if (rc == BRC_OK)
        rc = brc_opaque_settle(p->store, &a->meta, &a->entry.map, &a->stack, err);
    if (rc == BRC_OK)
        rc = brc_array_read_storage(a, err);
    if (rc < 0)
        brc_context(err, "%s", call->path);
    return rc;
}

static int open_sides(brc_merge_plan *p, brc_error *err)
{
    char *path = (char *)(uintptr_t)p->call->path;
    for (int s = 0; s < BRC_SIDES; s++)
        if (s != BRC_SIDE_BASE || p->has_base)
            BRC_TRY(brc_array_of_entry(&p->array[s], &p->view, path, &p->call->side[s], err));
    return open_result(p, err);
}

static void merge_plan_close(brc_merge_plan *p)
{
    for (int s = 0; s <= BRC_SIDES; s++) {
        brc_meta_dispose(&p->array[s].meta);
        free(p->array[s].backend);
        free(p->array[s].full);
    }
}

/* ---- what they have in common -------------------------------- */

static uint64_t chunk_begin(const brc_grid *grid, int axis, uint64_t i)
{
    return grid->starts[axis] != NULL ? grid->starts[axis][i] : i * grid->chunk[axis];
}

/* Says whether two grids cut an axis the same way, as far as both go. */
static int axis_cut_same(const brc_grid *a, const brc_grid *b, int axis)
{
    const uint64_t n = a->count[axis] < b->count[axis] ? a->count[axis] : b->count[axis];
    if (a->starts[axis] == NULL && b->starts[axis] == NULL)
        return a->chunk[axis] == b->chunk[axis];
    for (uint64_t i = 1; i <= n; i++)
        if (chunk_begin(a, axis, i) != chunk_begin(b, axis, i))
            return 0;
    return 1;
}

/* Says whether a chunk of one side could be a chunk of the other. */
static int same_form(const brc_merge_plan *p, int x, int y)
{
    const brc_meta *a = brc_plan_meta(p, x), *b = brc_plan_meta(p, y);
    if (a->ndim != b->ndim || a->opaque != b->opaque || strcmp(a->dtype, b->dtype) != 0)
        return 0;
    for (int i = 0; i < a->ndim; i++)
        if (!axis_cut_same(&a->grid, &b->grid, i))
            return 0;
    return 1;
}

static int shape_is(const brc_merge_plan *p, int x, int y)
{
    const brc_meta *a = brc_plan_meta(p, x), *b = brc_plan_meta(p, y);
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(*a->shape)) == 0;
}

static int same_fill(const brc_merge_plan *p, int x, int y)
{
    const brc_buf *a = &brc_plan_meta(p, x)->fill, *b = &brc_plan_meta(p, y)->fill;
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static int same_map(const brc_merge_plan *p, int x, int y)
{
    return brc_oid_cmp(&p->call->side[x].map, &p->call->side[y].map) == 0;
}

/* Says whether shards are inside other codecs; such shards have no chunks of their own. */
static int has_inner_shards(const brc_json *codecs)
{
    for (size_t i = 0; i < brc_json_count(codecs); i++) {
        const brc_json *codec = brc_json_item(codecs, i);
        const int is_long = brc_json_kind(codec) == BRC_JSON_OBJECT;
        if (brc_json_is(is_long ? brc_json_member(codec, "name") : codec, "sharding_indexed"))
            return 1;
    }
    return 0;
}

/* ---- what is known without looking at a chunk -------------------------------- */

static int settle_whole(brc_merge_plan *p)
{
    const int with_base = p->has_base && p->call->ops->unknown == NULL;
    if (!same_form(p, BRC_SIDE_OURS, BRC_RESULT) || !same_form(p, BRC_SIDE_THEIRS, BRC_RESULT) ||
        (p->has_base && !same_form(p, BRC_SIDE_BASE, BRC_RESULT))) {
        if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS) &&
            same_form(p, BRC_SIDE_OURS, BRC_RESULT) && shape_is(p, BRC_SIDE_OURS, BRC_RESULT))
            return BRC_CHUNKS_OURS;
        if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS) &&
            same_form(p, BRC_SIDE_THEIRS, BRC_RESULT) && shape_is(p, BRC_SIDE_THEIRS, BRC_RESULT))
            return BRC_CHUNKS_THEIRS;
        p->call->why = brc_plan_meta(p, BRC_SIDE_OURS)->opaque !=
                               brc_plan_meta(p, BRC_SIDE_THEIRS)->opaque
                           ? "one side's chunks cannot be decoded here"
                           : "the chunk grid or the data type differs, and chunks have changed";
        return BRC_CHUNKS_APART;
    }
    if (!shape_is(p, BRC_SIDE_OURS, BRC_RESULT) || !shape_is(p, BRC_SIDE_THEIRS, BRC_RESULT) ||
        (p->has_base && !shape_is(p, BRC_SIDE_BASE, BRC_RESULT)))
        return BRC_CHUNKS_MIXED;
    if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_THEIRS))
        return p->new_fill[BRC_SIDE_THEIRS] && !same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS)
                   ? BRC_CHUNKS_MIXED
                   : BRC_CHUNKS_OURS;
    if (with_base && same_map(p, BRC_SIDE_BASE, BRC_SIDE_OURS))
        return p->new_fill[BRC_SIDE_OURS] ? BRC_CHUNKS_MIXED : BRC_CHUNKS_THEIRS;
    return same_map(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS) &&
                   same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS)
               ? BRC_CHUNKS_OURS
               : BRC_CHUNKS_MIXED;
}

/* Treats the base's absent chunks as having the new fill value if both sides have the same new
 * one. */
static void settle_fill(brc_merge_plan *p)
{
    const int ours = p->has_base && !same_fill(p, BRC_SIDE_OURS, BRC_SIDE_BASE);
    const int theirs = p->has_base && !same_fill(p, BRC_SIDE_THEIRS, BRC_SIDE_BASE);
    const int both = ours && theirs && same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
    p->new_fill[BRC_SIDE_OURS] = ours && !both;
    p->new_fill[BRC_SIDE_THEIRS] = theirs && !both;
    for (int s = 0; s <= BRC_SIDES; s++) {
        const int from = s == BRC_SIDE_BASE && (both || !p->has_base) ? BRC_SIDE_OURS : s;
        const brc_buf *fill = &brc_plan_meta(p, from)->fill;
        p->spans[s] = (brc_span){fill->data, fill->len};
        if (s < BRC_SIDES)
            p->fill[s] = brc_meta_is_variable(brc_plan_meta(p, BRC_RESULT))
                             ? (const uint8_t *)&p->spans[s]
                             : fill->data;
    }
}

/* Opens the sides and the result that p->call, p->store and p->view name. The caller must close the
 * plan, even after a failure. */
static int merge_plan_open(brc_merge_plan *p, brc_error *err)
{
    const brc_meta *m = brc_plan_meta(p, BRC_RESULT);
    BRC_TRY(open_sides(p, err));
    settle_fill(p);
    p->is_unit = m->opaque || has_inner_shards(m->codecs);
    return BRC_OK;
}

/* Says whether chunks of all sides can be merged by element: the sides have one form and no new
 * fill value. */
static int merge_plan_is_plain(const brc_merge_plan *p)
{
    for (int s = p->has_base ? BRC_SIDE_BASE : BRC_SIDE_OURS; s < BRC_SIDES; s++)
        if (!same_form(p, s, BRC_RESULT))
            return 0;
    return !p->is_unit && !p->new_fill[BRC_SIDE_OURS] && !p->new_fill[BRC_SIDE_THEIRS] &&
           same_fill(p, BRC_SIDE_OURS, BRC_SIDE_THEIRS);
}

static int plan_sides(brc_merge_plan *p, brc_error *err)
{
    BRC_TRY(merge_plan_open(p, err));
    p->call->map = settle_whole(p);
    if (p->call->map == BRC_CHUNKS_MIXED && !p->is_unit && p->call->ops->chunk != NULL)
        BRC_TRY(brc_array_can_write(&p->array[BRC_RESULT], err));
    return BRC_OK;
}

/* ---- transactions -------------------------------- */

static int merge_in_read(brc_merge_plan *p, brc_error *err)
{
    void *tasks = NULL;
    BRC_TRY(brc_store_begin_read(p->store, err));
    int rc = plan_sides(p, err);
    if (rc == BRC_OK && p->call->map == BRC_CHUNKS_MIXED) {
        rc = brc_new_array(&tasks, BRC_MERGE_BATCH, sizeof(brc_merge_task), err);
        p->tasks = tasks;
        if (rc == BRC_OK)
            rc = merge_keys(p, err);
        for (size_t i = 0; tasks != NULL && i < BRC_MERGE_BATCH; i++)
            merge_task_clear(&p->tasks[i]);
        free(tasks);
    }
    merge_plan_close(p);
    brc_store_end_read(p->store);
    return rc;
}

/* Merges in a bulk write. Everything that it stores is garbage until the caller of chunk() names
 * it. If ids alone settle everything, nothing is stored and no transaction begins. */
static int merge_in_bulk(brc_merge_plan *p, brc_error *err)
{
    BRC_TRY(brc_store_bulk_begin(p->store, err));
    const int before = brc_store_bulk_admit(p->store, 1);
    int rc = merge_in_read(p, err);
    (void)brc_store_bulk_admit(p->store, before);
    if (rc == BRC_OK && p->wrote)
        rc = brc_store_bulk_finish(p->store, err);
    if (rc < 0 || !p->wrote) {
        brc_store_bulk_cancel(p->store);
        return rc;
    }
    return brc_store_end(p->store, 1, err);
}

int brc_merge_chunks(brc_chunk_merge *merge, brc_error *err)
{
    void *memory;
    BRC_TRY(brc_new(&memory, sizeof(brc_merge_plan), err));
    brc_merge_plan *p = memory;
    p->call = merge;
    p->store = merge->repo->store;
    p->view.repo = merge->repo;
    p->has_base = merge->side[BRC_SIDE_BASE].kind == BRC_ARRAY;
    merge->map = 0;
    merge->why = NULL;
    merge->conflicts = merge->changed = merge->merged_chunks = 0;
    memset(merge->lost, 0, sizeof(merge->lost));
    const int is_part = merge->ops->chunk == NULL || brc_store_in_write(p->store) ||
                        brc_store_in_bulk(p->store);
    int rc = is_part ? merge_in_read(p, err) : merge_in_bulk(p, err);
    free(p);
    return rc;
}
