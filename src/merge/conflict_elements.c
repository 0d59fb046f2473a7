#include "conflict_elements.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/dtype.h"
#include "../nd/shape.h"
#include "../zarr/array/chunk_pairs.h"
#include "../zarr/array/region.h"

/* A chunk on its three sides. */
typedef struct three_chunks {
    brc_diff_sides sides;      /* both are the array of the branch            */
    brc_buf *into;             /* of the pair that is read: one for each side */
    brc_buf data[BRC_SIDES];   /* decoded; empty: fill value                  */
    int is_there[BRC_SIDES];
    void *spans[BRC_SIDES];    /* of variable length: each element            */
} three_chunks;

void brc_clash_elements_dispose(brc_clash_elements *e)
{
    free(e->values);
    free(e->memory);
    if (e->array != NULL)
        brc_meta_dispose(&e->array->meta);
    free(e->array);
    memset(e, 0, sizeof(*e));
}

/* ---- the three chunks -------------------------------- */

static int copy_pair(const brc_diff_sides *sides, brc_chunk_pair *pair, const brc_span *x,
                     const brc_span *y, brc_error *err)
{
    const three_chunks *t = (const three_chunks *)sides;
    (void)pair;
    if (x != NULL)
        BRC_TRY(brc_buf_append(&t->into[0], x->data, x->len, err));
    return y != NULL ? brc_buf_append(&t->into[1], y->data, y->len, err) : BRC_OK;
}

static void pair_copied(void *ctx, const brc_chunk_pair *pair)
{
    (void)ctx;
    (void)pair;
}

/* Reads the chunks of n sides, from `first` on, at most two. */
static int read_sides(three_chunks *t, const brc_oid *ids, const uint64_t *index, int first, int n,
                      brc_error *err)
{
    const brc_pair_ops ops = {t, copy_pair, pair_copied};
    brc_chunk_pair pair;
    brc_pairs *pairs;
    memset(&pair, 0, sizeof(pair));
    memcpy(pair.index, index, sizeof(pair.index));
    for (int i = 0; i < n; i++) {
        pair.object[i].id = ids[first + i];
        t->is_there[first + i] = pair.there[i] = !brc_oid_is_zero(&ids[first + i]);
    }
    if (!pair.there[0] && !pair.there[1])
        return BRC_OK;
    t->into = &t->data[first];
    BRC_TRY(brc_pairs_new(&pairs, &t->sides, &ops, err));
    int rc = brc_pairs_add(pairs, &pair, err);
    if (rc == BRC_OK)
        rc = brc_pairs_end(pairs, err);
    brc_pairs_free(pairs);
    return rc;
}

static void read_clash_id(brc_oid *out, const brc_buf *value, size_t id_len)
{
    memset(out, 0, sizeof(*out));
    if (value->data != NULL && value->len == id_len)
        memcpy(out->bytes, value->data, id_len);
}

static int find_texts(three_chunks *t, uint64_t n, brc_error *err)
{
    for (int i = 0; i < BRC_SIDES; i++) {
        if (!t->is_there[i])
            continue;
        BRC_TRY(brc_new_array(&t->spans[i], (size_t)n, sizeof(brc_span), err));
        BRC_TRY(brc_elements_find(t->spans[i], n, (brc_span){t->data[i].data, t->data[i].len},
                                  err));
    }
    return BRC_OK;
}

static brc_span element_at(const three_chunks *t, int side, uint64_t number)
{
    const brc_meta *m = &t->sides.side[0].meta;
    const size_t item = m->type->item_size;
    if (!t->is_there[side])
        return (brc_span){m->fill.data, m->fill.len};
    if (t->spans[side] != NULL)
        return ((const brc_span *)t->spans[side])[number];
    return (brc_span){t->data[side].data + number * item, item};
}

static int same_span(brc_span a, brc_span b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* ---- the elements -------------------------------- */

/* Adds an element to the list, in memory of its own. */
static int keep_value(brc_clash_elements *out, brc_buf *memory, const three_chunks *t, int ndim,
                      const uint64_t *place, const brc_span *side, brc_error *err)
{
    const brc_dtype *type = t->sides.side[0].meta.type;
    size_t at[BRC_SIDES + 1];
    BRC_TRY(brc_buf_append(memory, place, (size_t)ndim * sizeof(*place), err));
    at[0] = memory->len - (size_t)ndim * sizeof(*place);
    for (int i = 0; i < BRC_SIDES; i++) {
        at[1 + i] = memory->len;
        BRC_TRY(brc_buf_append(memory, side[i].data, side[i].len, err));
        brc_dtype_native(type, memory->data + at[1 + i], side[i].len);
    }
    while (memory->len % sizeof(*place) != 0) /* the next index is aligned */
        BRC_TRY(brc_buf_append(memory, "", 1, err));
    memcpy(out->at[out->nvalues++], at, sizeof(at));
    return BRC_OK;
}

/* Counts the elements that both sides changed, to different values, and keeps the first ones. */
static int find_clashing(brc_clash_elements *out, brc_buf *memory, three_chunks *t,
                         const uint64_t *index, brc_error *err)
{
    const brc_meta *m = &t->sides.side[0].meta;
    uint64_t corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    uint64_t at[BRC_MAX_NDIM] = {0}, place[BRC_MAX_NDIM] = {0}, number = 0;
    brc_diff_overlap(&t->sides, &m->grid, index, corner, shape, count);
    const uint64_t n = brc_shape_count(m->ndim, shape);
    if (brc_meta_is_variable(m))
        BRC_TRY(find_texts(t, n, err));
    for (int i = 0; i < BRC_SIDES && !brc_meta_is_variable(m); i++)
        if (t->is_there[i] && t->data[i].len != n * m->type->item_size)
            return BRC_OK; /* the sides have other chunks */
    do {
        brc_span side[BRC_SIDES];
        int inside = 1;
        for (int i = 0; i < m->ndim; i++) {
            place[i] = corner[i] + at[i];
            inside &= at[i] < count[i];
        }
        for (int i = 0; i < BRC_SIDES; i++)
            side[i] = element_at(t, i, number);
        number++;
        if (!inside || same_span(side[BRC_SIDE_OURS], side[BRC_SIDE_THEIRS]) ||
            same_span(side[BRC_SIDE_BASE], side[BRC_SIDE_OURS]) ||
            same_span(side[BRC_SIDE_BASE], side[BRC_SIDE_THEIRS]))
            continue;
        if (out->nvalues < BRC_CLASH_VALUES)
            BRC_TRY(keep_value(out, memory, t, m->ndim, place, side, err));
        out->elements++;
    } while (brc_index_next(m->ndim, at, shape));
    return BRC_OK;
}

/* Points the values into the memory, which does not move any more. */
static int point_values(brc_clash_elements *out, brc_buf *memory, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, out->nvalues, sizeof(brc_differing), err));
    out->values = p;
    out->memory = memory->data;
    for (size_t i = 0; i < out->nvalues; i++) {
        const size_t *at = out->at[i];
        out->values[i] = (brc_differing){(const void *)(out->memory + at[0]), out->memory + at[1],
                                         out->memory + at[2], out->memory + at[3]};
    }
    *memory = (brc_buf)BRC_BUF_INIT;
    return BRC_OK;
}

static int read_three(brc_clash_elements *out, three_chunks *t, const brc_clash *clash,
                      brc_error *err)
{
    const brc_meta *m = &t->sides.side[0].meta;
    const size_t id_len = brc_store_id_len(t->sides.view.repo->store);
    brc_buf memory = BRC_BUF_INIT;
    brc_oid ids[BRC_SIDES];
    uint64_t index[BRC_MAX_NDIM] = {0};
    int rc;
    if (m->opaque || !brc_diff_both_hold(&t->sides) ||
        brc_chunk_key_decode(clash->key.data, clash->key.len, index) != m->ndim ||
        !brc_diff_meets(&t->sides, &m->grid, index))
        return BRC_OK;
    read_clash_id(&ids[BRC_SIDE_BASE], &clash->base, id_len);
    read_clash_id(&ids[BRC_SIDE_OURS], &clash->ours, id_len);
    read_clash_id(&ids[BRC_SIDE_THEIRS], &clash->theirs, id_len);
    BRC_GO(read_sides(t, ids, index, 0, 2, err));
    BRC_GO(read_sides(t, ids, index, 2, 1, err));
    BRC_GO(find_clashing(out, &memory, t, index, err));
    if (out->nvalues > 0)
        rc = point_values(out, &memory, err);
done:
    brc_buf_dispose(&memory);
    for (int i = 0; i < BRC_SIDES; i++) {
        brc_buf_dispose(&t->data[i]);
        free(t->spans[i]);
    }
    return rc;
}

/* ---- the array -------------------------------- */

static int read_from_array(brc_clash_elements *out, brc_session *s, const brc_clash *clash,
                           brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    three_chunks t;
    brc_entry entry;
    int64_t row;
    void *p;
    BRC_TRY(brc_session_find(s, clash->path, &entry, &row, err));
    if (entry.kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(brc_array), err));
    out->array = p;
    BRC_TRY(brc_array_of_entry(out->array, s, clash->path, &entry, err));
    memset(&t, 0, sizeof(t));
    t.sides.view.repo = s->repo;
    for (int i = 0; i < BRC_SIDES; i++)
        t.data[i] = empty;
    int rc = brc_array_of_entry(&t.sides.side[0], &t.sides.view, clash->path, &entry, err);
    if (rc == BRC_OK)
        rc = brc_array_of_entry(&t.sides.side[1], &t.sides.view, clash->path, &entry, err);
    if (rc == BRC_OK)
        rc = read_three(out, &t, clash, err);
    brc_meta_dispose(&t.sides.side[0].meta);
    brc_meta_dispose(&t.sides.side[1].meta);
    out->array->session = NULL; /* nothing is read from it */
    return rc;
}

int brc_clash_elements_read(brc_clash_elements *out, breccia *repo, const char *branch,
                            const brc_clash *clash, brc_error *err)
{
    brc_session *s;
    brc_clash_elements_dispose(out);
    BRC_TRY(brc_session_open(&s, repo, branch, BRC_SESSION_VIEW, err));
    int rc = brc_session_begin_read(s, err);
    if (rc == BRC_OK) {
        rc = read_from_array(out, s, clash, err);
        brc_session_end_read(s);
    }
    brc_session_free(s);
    if (rc < 0)
        brc_clash_elements_dispose(out);
    return rc;
}
