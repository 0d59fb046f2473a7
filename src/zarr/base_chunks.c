#include "base_chunks.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_plan.h"

struct brc_base_form {
    brc_chunk_merge call;
    brc_merge_plan plan;
    struct brc_base_form *next;
    char path[];
};

typedef struct base_chunk {
    const brc_base_form *form; /* NULL: unknown as a whole */
    const uint8_t *key;
    size_t key_len;
    brc_oid of[BRC_SIDES];
} base_chunk;

void brc_base_chunks_dispose(brc_base_chunks *b)
{
    for (brc_base_form *form = b->forms, *next; form != NULL; form = next) {
        next = form->next;
        brc_merge_plan_close(&form->plan);
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

/* What makes no array is no fault: bases need not agree on one. */
static int opens_plainly(brc_base_form *form, int *plain, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    int rc = brc_merge_plan_open(&form->plan, &why);
    *plain = rc == BRC_OK && brc_merge_plan_is_plain(&form->plan);
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
    form->call.merged = NULL; /* it was the caller's */
    if (rc < 0 || !plain) {
        brc_merge_plan_close(&form->plan);
        free(form);
        return rc;
    }
    form->next = b->forms;
    b->forms = form;
    *out = form;
    return BRC_OK;
}

/* ---- ids -------------------------------- */

/* No two are the same, and no chunk that is stored has one: what bases do not agree on is equal to
 * nothing. */
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

/* Its number, or 0. */
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
    uint64_t from, to; /* the run that is due; from UINT64_MAX: none */
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

/* Elements that are in either: into an empty buffer. */
static int masks_join(brc_buf *out, brc_span a, brc_span b, brc_error *err)
{
    mask_runs x = runs_of(a), y = runs_of(b);
    uint64_t done = 0;
    while (x.from != UINT64_MAX || y.from != UINT64_MAX) {
        mask_runs *first = x.from <= y.from ? &x : &y;
        const uint64_t from = first->from;
        uint64_t to = first->to;
        mask_run_next(first);
        while (x.from <= to || y.from <= to) { /* what touches it */
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
    size_t uses; /* by those that come after it */
    brc_made_chunk made;
} making;

typedef struct chain_of {
    const brc_base_chunks *b;
    void *items; /* making[], by number */
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

/* All that it is merged of, those first that others are merged of. */
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

/* A side that is such a chunk. *whole: it is unknown altogether, and so is what comes of it; of a
 * base that only means that the others must agree. */
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

/* The result has all that either side holds of the chunk, and either holds something of it: what a
 * smaller shape has cut off is not told apart. */
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
    brc_merge_task_place(p, t);
    return is_held(p, t);
}

/* Elements that were unknown in a side stay so. */
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
    brc_merge_task_clear(task);
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
