#include "merge_box.h"

#include <string.h>

#include "../base/buf.h"
#include "shape.h"

/* A run of elements along the last axis, all of which lie in the same sides. */
typedef struct merge_run {
    uint64_t at, n;               /* the first one's number in the chunk, how many */
    const uint8_t *src[BRC_SIDES]; /* NULL: it says nothing here                   */
    size_t step[BRC_SIDES];
} merge_run;

/* Where in a mask the walk is. */
typedef struct mask_place {
    brc_reader r;
    uint64_t from, to; /* of the run of the mask that comes next, or is in progress */
} mask_place;

typedef struct box_walk {
    brc_box_merge *m;
    mask_place mask;
    int is_masked;
    uint64_t row[BRC_MAX_NDIM]; /* index of the row's first element in the chunk */
    uint64_t noted;             /* elements up to here are in `found`, or left out of it */
    uint64_t run_from, run_to;  /* conflicts side by side, not written yet       */
    int too_long;
} box_walk;

/* ---- masks -------------------------------- */

static void mask_next_run(mask_place *p)
{
    uint64_t skip, n;
    if (brc_reader_left(&p->r) == 0) {
        p->from = p->to = UINT64_MAX;
        return;
    }
    skip = brc_read_varint(&p->r);
    n = brc_read_varint(&p->r);
    if (p->r.bad || !brc_add_u64(p->to, skip, &p->from) || !brc_add_u64(p->from, n, &p->to))
        p->from = p->to = UINT64_MAX;
}

/* Elements are asked for in order. */
static int mask_has(mask_place *p, uint64_t at)
{
    while (p->to <= at && p->from != UINT64_MAX)
        mask_next_run(p);
    return at >= p->from && at < p->to;
}

static int write_noted_run(box_walk *w, brc_error *err)
{
    brc_buf *out = &w->m->found;
    if (w->run_to == w->run_from || w->too_long)
        return BRC_OK;
    if (out->len > BRC_MASK_MOST) {
        w->too_long = 1;
        out->len = 0;
        return BRC_OK;
    }
    BRC_TRY(brc_buf_varint(out, w->run_from - w->noted, err));
    BRC_TRY(brc_buf_varint(out, w->run_to - w->run_from, err));
    w->noted = w->run_to;
    return BRC_OK;
}

/* One more element that conflicts: its number in the chunk, and how far it is along the row. */
static int note_conflict(box_walk *w, uint64_t at, uint64_t along, brc_error *err)
{
    brc_box_merge *m = w->m;
    for (int i = 0; i < m->ndim; i++) {
        const uint64_t x = m->corner[i] + (i == m->ndim - 1 ? along : w->row[i]);
        if (m->conflicts == 0 || x < m->first[i])
            m->first[i] = x;
        if (m->conflicts == 0 || x > m->last[i])
            m->last[i] = x;
    }
    m->conflicts++;
    if (at == w->run_to && w->run_to > w->run_from) {
        w->run_to++;
        return BRC_OK;
    }
    BRC_TRY(write_noted_run(w, err));
    w->run_from = at;
    w->run_to = at + 1;
    return BRC_OK;
}

/* ---- elements -------------------------------- */

static inline int same_element(const uint8_t *a, const uint8_t *b, size_t item, int is_spans)
{
    brc_span x, y;
    if (!is_spans)
        return memcmp(a, b, item) == 0;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x.len == y.len && (x.data == y.data || memcmp(x.data, y.data, x.len) == 0);
}

static int is_unknown(box_walk *w, uint64_t at)
{
    return w->m->unknown && (!w->is_masked || mask_has(&w->mask, at));
}

static inline __attribute__((always_inline)) int merge_items(box_walk *w, const merge_run *run,
                                                             uint64_t along, size_t item,
                                                             int is_spans, brc_error *err)
{
    brc_box_merge *m = w->m;
    const uint8_t *b = run->src[BRC_SIDE_BASE], *o = run->src[BRC_SIDE_OURS];
    const uint8_t *t = run->src[BRC_SIDE_THEIRS];
    uint8_t *out = m->out + run->at * item;
    for (uint64_t i = 0; i < run->n; i++, out += item) {
        const uint8_t *from = o;
        if (!same_element(o, t, item, is_spans)) {
            const int known = !is_unknown(w, run->at + i);
            if (known && same_element(b, o, item, is_spans)) {
                from = t;
            } else if (!known || !same_element(b, t, item, is_spans)) {
                from = m->favour == BRC_SIDE_THEIRS ? t : o;
                BRC_TRY(note_conflict(w, run->at + i, along + i, err));
            }
            m->differs[from == o ? BRC_SIDE_THEIRS : BRC_SIDE_OURS] = 1;
        }
        memcpy(out, from, item);
        b += run->step[BRC_SIDE_BASE];
        o += run->step[BRC_SIDE_OURS];
        t += run->step[BRC_SIDE_THEIRS];
    }
    return BRC_OK;
}

static int merge_both(box_walk *w, const merge_run *run, uint64_t along, brc_error *err)
{
    const brc_box_merge *m = w->m;
    if (m->is_spans)
        return merge_items(w, run, along, sizeof(brc_span), 1, err);
    switch (m->item) {
    case 1: return merge_items(w, run, along, 1, 0, err);
    case 2: return merge_items(w, run, along, 2, 0, err);
    case 4: return merge_items(w, run, along, 4, 0, err);
    case 8: return merge_items(w, run, along, 8, 0, err);
    default: return merge_items(w, run, along, m->item, 0, err);
    }
}

static void take_items(const brc_box_merge *m, const merge_run *run, int side)
{
    uint8_t *out = m->out + run->at * m->item;
    if (run->step[side] != 0)
        memcpy(out, run->src[side], (size_t)run->n * m->item);
    else
        brc_fill_run(out, run->n, m->item, run->src[side]);
}

static int merge_this_run(box_walk *w, const merge_run *run, uint64_t along, brc_error *err)
{
    brc_box_merge *m = w->m;
    const int ours = run->src[BRC_SIDE_OURS] != NULL, theirs = run->src[BRC_SIDE_THEIRS] != NULL;
    if (ours && theirs && m->take == 0)
        return merge_both(w, run, along, err);
    const int from = !ours || (theirs && m->take == BRC_SIDE_THEIRS) ? BRC_SIDE_THEIRS
                                                                     : BRC_SIDE_OURS;
    m->differs[from == BRC_SIDE_OURS ? BRC_SIDE_THEIRS : BRC_SIDE_OURS] = 1;
    if (ours || theirs)
        take_items(m, run, from);
    else
        m->differs[from] = 1;
    return BRC_OK;
}

static int count_changed(box_walk *w, const merge_run *run, uint64_t along, int side,
                         brc_error *err)
{
    const brc_box_merge *m = w->m;
    const uint8_t *b = run->src[BRC_SIDE_BASE], *s = run->src[side];
    for (uint64_t i = 0; i < run->n && s != NULL; i++) {
        if (is_unknown(w, run->at + i) || !same_element(b, s, m->item, m->is_spans))
            BRC_TRY(note_conflict(w, run->at + i, along + i, err));
        b += run->step[BRC_SIDE_BASE];
        s += run->step[side];
    }
    return BRC_OK;
}

/* ---- rows -------------------------------- */

static uint64_t row_number(const brc_box_merge *m, const uint64_t *row)
{
    uint64_t at = 0;
    for (int i = 0; i < m->ndim; i++)
        at = at * m->shape[i] + (i == m->ndim - 1 ? 0 : row[i]);
    return at;
}

/* How many elements of a row lie within these extents. */
static uint64_t row_extent(const brc_box_merge *m, const uint64_t *row, const uint64_t *count)
{
    for (int i = 0; i < m->ndim - 1; i++)
        if (row[i] >= count[i])
            return 0;
    return m->ndim > 0 ? count[m->ndim - 1] : 1;
}

static void point_run(merge_run *run, const brc_box_merge *m, const uint64_t *extent,
                      uint64_t along)
{
    for (int s = 0; s < BRC_SIDES; s++) {
        const brc_merge_input *in = &m->in[s];
        const int is_inside = along < extent[s];
        run->step[s] = is_inside && in->data != NULL ? m->item : 0;
        run->src[s] = run->step[s] != 0 ? in->data + run->at * m->item : in->fill;
        if (!is_inside && s != BRC_SIDE_BASE)
            run->src[s] = NULL;
    }
}

/* The elements from..to of a row: side -1 merges them, another counts what it has changed. */
static int walk_row(box_walk *w, uint64_t from, uint64_t to, int side, brc_error *err)
{
    const brc_box_merge *m = w->m;
    uint64_t extent[BRC_SIDES];
    for (int s = 0; s < BRC_SIDES; s++)
        extent[s] = row_extent(m, w->row, m->in[s].count);
    while (from < to) {
        merge_run run = {.at = row_number(m, w->row) + from};
        uint64_t end = to;
        for (int s = 0; s < BRC_SIDES; s++)
            if (extent[s] > from && extent[s] < end)
                end = extent[s];
        run.n = end - from;
        point_run(&run, m, extent, from);
        BRC_TRY(side < 0 ? merge_this_run(w, &run, from, err)
                         : count_changed(w, &run, from, side, err));
        from = end;
    }
    return BRC_OK;
}

static void walk_start(box_walk *w, brc_box_merge *m)
{
    memset(w, 0, sizeof(*w));
    w->m = m;
    w->is_masked = m->mask.len > 0;
    w->mask.r = brc_reader_of(m->mask.data, m->mask.len);
    m->conflicts = 0;
    m->found.len = 0;
    memset(m->differs, 0, sizeof(m->differs));
}

static int walk_end(box_walk *w, brc_error *err)
{
    BRC_TRY(write_noted_run(w, err));
    if (w->too_long)
        w->m->found.len = 0;
    return BRC_OK;
}

/* The next row of a box; 0 behind the last. */
static int next_row(const brc_box_merge *m, uint64_t *row, const uint64_t *count)
{
    return m->ndim > 1 && brc_index_next(m->ndim - 1, row, count);
}

int brc_box_merge_run(brc_box_merge *m, brc_error *err)
{
    box_walk w;
    walk_start(&w, m);
    do
        BRC_TRY(walk_row(&w, 0, row_extent(m, w.row, m->count), -1, err));
    while (next_row(m, w.row, m->count));
    return walk_end(&w, err);
}

int brc_box_merge_changed(brc_box_merge *m, int side, int outside, brc_error *err)
{
    box_walk w;
    const uint64_t *box = outside ? m->in[side].count : m->count;
    walk_start(&w, m);
    do {
        const uint64_t from = outside ? row_extent(m, w.row, m->count) : 0;
        BRC_TRY(walk_row(&w, from, row_extent(m, w.row, box), side, err));
    } while (next_row(m, w.row, box));
    return walk_end(&w, err);
}
