/*
 * brc_array_stats(): what the elements of an array, of a selection or of a field come to.
 *
 * Chunks are taken in batches, in the grid's order. What a chunk comes to is looked up in table
 * chunk_stats; chunks without a row are decoded and summed up on the pool, and get one. Then the
 * batch's summaries are merged in order, so that the result is the same whatever was kept, and
 * with any number of threads. Chunks that are absent are one element, counted often.
 *
 * A row is about a chunk's elements as the array takes them: its `form` covers the data type, the
 * field, the fill value and, for a chunk that the array's end cuts, the part within the array. Of a
 * chunk that the selection cuts no row is kept: there would be one for each selection.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/hash.h"
#include "../base/sized.h"
#include "../nd/dtype_ops.h"
#include "../nd/shape.h"
#include "../nd/summary.h"
#include "../zarr/array/array.h"
#include "../zarr/array/chunk_cursor.h"
#include "../zarr/array/region.h"

/* Chunks of a batch: their summaries take some MiB at most. */
#define STATS_BATCH 1024
/* Canonical bytes of the smallest chunk that gets a row: another is read as soon as its row. */
#define STATS_KEPT_LEAST 1024
/* Bins that the caller gets. */
enum { SHOWN_BINS = 20 };

typedef struct stats_chunk {
    brc_oid id;
    uint64_t form;
    uint64_t elements; /* that are selected, within the array     */
    int is_cut;        /* others within the array are not         */
    size_t same;       /* the batch's first chunk of this id and form */
    int is_new;        /* it was decoded, and may get a row       */
    brc_span row;      /* data NULL: not known yet                */
    uint64_t size;     /* canonical bytes                         */
    uint64_t index[];  /* one number for each axis                */
} stats_chunk;

typedef struct stats_run {
    brc_array *a;
    brc_region region;   /* the selected elements                 */
    const char *field;   /* the one that is summed up; NULL: the elements have none */
    size_t offset;       /* where it is in an element             */
    const uint8_t *fill; /* the fill value, or what it has there  */
    brc_summary_kind kind;
    brc_summary total;
    uint64_t seen;       /* elements of the chunks that are there */
    brc_chunk_cursor *cursor;
    uint64_t next[BRC_MAX_NDIM]; /* where the next batch begins   */
    int more;            /* there is one                          */
    void *memory;        /* room for STATS_BATCH chunks           */
    size_t each;         /* bytes of one                          */
    size_t n;            /* chunks of the batch                   */
    size_t *order;       /* by id: then those that are to be read */
    size_t nread, at;
    brc_arena rows;
} stats_run;

static stats_chunk *stats_chunk_at(const stats_run *run, size_t i)
{
    return (stats_chunk *)(void *)((char *)run->memory + i * run->each);
}

/* ---- chunks within the selection -------------------------------- */

/* Computes what the summary of such a part depends on, besides the chunk. */
static int form_of_chunk(const stats_run *run, const brc_region_part *part, uint64_t *form,
                         brc_error *err)
{
    static const char version[] = "statistics 1";
    const brc_meta *m = &run->a->meta;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_append(&text, version, sizeof(version), err));
    BRC_GO(brc_buf_append(&text, m->type->json, strlen(m->type->json) + 1, err));
    BRC_GO(brc_buf_append(&text, m->fill.data, m->fill.len, err));
    if (run->field != NULL)
        BRC_GO(brc_buf_append(&text, run->field, strlen(run->field) + 1, err));
    for (int i = 0; i < m->ndim && !part->full; i++) {
        BRC_GO(brc_buf_varint(&text, part->chunk[i], err));
        BRC_GO(brc_buf_varint(&text, part->overlap.count[i], err));
    }
    for (int i = 0; i < m->ndim && !part->overlap.whole; i++) {
        BRC_GO(brc_buf_varint(&text, part->overlap.in_chunk[i], err));
        BRC_GO(brc_buf_varint(&text, run->region.sel.step[i], err));
    }
    *form = brc_hash_bytes(text.data, text.len);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int stats_add_chunk(stats_run *run, const uint64_t *index, const brc_oid *id,
                           brc_error *err)
{
    const int ndim = run->a->meta.ndim;
    brc_region_part part;
    stats_chunk *c = stats_chunk_at(run, run->n);
    memset(c, 0, run->each);
    brc_region_part_at(&part, run->a, &run->region, index);
    c->id = *id;
    c->elements = brc_shape_count(ndim, part.overlap.count);
    if (c->elements == 0) /* the steps pass over the chunk */
        return BRC_OK;
    c->is_cut = !part.overlap.whole;
    c->same = run->n;
    if (ndim > 0)
        memcpy(c->index, index, (size_t)ndim * sizeof(*index));
    BRC_TRY(form_of_chunk(run, &part, &c->form, err));
    run->seen += c->elements;
    run->n++;
    return BRC_OK;
}

/* Moves an index that is outside the selection's box of chunks to the next one within. Returns 1 if
 * it has moved, 0 if it was within, -1 if the box ends before it. */
static int move_into_box(const brc_region *r, int ndim, uint64_t *index)
{
    int i = 0;
    while (i < ndim && index[i] >= r->first[i] && index[i] - r->first[i] < r->chunks[i])
        i++;
    if (i == ndim)
        return 0;
    if (index[i] >= r->first[i]) {
        do
            i--;
        while (i >= 0 && index[i] - r->first[i] == r->chunks[i] - 1);
        if (i < 0)
            return -1;
        index[i++]++;
    }
    for (; i < ndim; i++)
        index[i] = r->first[i];
    return 1;
}

/* Goes to the next chunk of the selection's box. Returns 0 if there is none. */
static int next_listed(stats_run *run, uint64_t *index, brc_oid *id, brc_error *err)
{
    int rc;
    while ((rc = brc_chunk_cursor_next(run->cursor, index, id, err)) > 0) {
        const int moved = move_into_box(&run->region, run->a->meta.ndim, index);
        if (moved == 0)
            return 1;
        if (moved < 0)
            return 0;
        brc_chunk_cursor_end(run->cursor);
        BRC_TRY(brc_chunk_cursor_start_at(run->cursor, run->a, index, err));
    }
    return rc;
}

/* Lists the next chunks, and notes where the batch behind them begins. */
static int list_batch(stats_run *run, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id;
    int rc;
    run->n = 0;
    run->more = 0;
    BRC_GO(brc_chunk_cursor_start_at(run->cursor, run->a, run->next, err));
    while ((rc = next_listed(run, index, &id, err)) > 0) {
        if (run->n == STATS_BATCH) {
            memcpy(run->next, index, sizeof(run->next));
            run->more = 1;
            break;
        }
        BRC_GO(stats_add_chunk(run, index, &id, err));
    }
done:
    brc_chunk_cursor_end(run->cursor);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- what is known -------------------------------- */

static int stats_chunk_order(const void *x, const void *y, void *ctx)
{
    const size_t i = *(const size_t *)x, j = *(const size_t *)y;
    const stats_chunk *a = stats_chunk_at(ctx, i), *b = stats_chunk_at(ctx, j);
    const int order = brc_oid_cmp(&a->id, &b->id);
    if (order != 0)
        return order;
    return a->form != b->form ? (a->form < b->form ? -1 : 1) : (i > j) - (i < j);
}

/* Looks up a chunk's row. One that cannot be right counts as missing. */
static int look_up_row(stats_run *run, stats_chunk *c, brc_buf *row, brc_error *err)
{
    uint8_t *copy;
    brc_summary summary;
    row->len = 0;
    if (run->a->meta.opaque || c->is_cut) /* opaque: it depends on more than its object */
        return BRC_OK;
    BRC_TRY(brc_chunk_stats_get(brc_array_store(run->a), &c->id, c->form, row, err));
    const brc_span found = {row->data, row->len};
    if (row->len == 0 || !brc_summary_unpack(&summary, &run->kind, found, c->elements))
        return BRC_OK;
    BRC_TRY(brc_arena_copy(&run->rows, found.data, found.len, &copy, err));
    c->row = (brc_span){copy, found.len};
    return BRC_OK;
}

/* Looks up the batch's rows in the order of the ids, and lists the chunks that must be read. */
static int look_up_rows(stats_run *run, brc_error *err)
{
    brc_buf row = BRC_BUF_INIT;
    size_t last = SIZE_MAX;
    int rc = BRC_OK;
    run->nread = run->at = 0;
    for (size_t i = 0; i < run->n; i++)
        run->order[i] = i;
    if (run->n > 1)
        qsort_r(run->order, run->n, sizeof(*run->order), stats_chunk_order, run);
    for (size_t i = 0; i < run->n && rc == BRC_OK; i++) {
        const size_t at = run->order[i];
        stats_chunk *c = stats_chunk_at(run, at);
        const stats_chunk *before = last != SIZE_MAX ? stats_chunk_at(run, last) : NULL;
        if (before != NULL && brc_oid_cmp(&before->id, &c->id) == 0 && before->form == c->form) {
            c->same = last;
            continue;
        }
        last = at;
        rc = look_up_row(run, c, &row, err);
        if (c->row.data == NULL)
            run->order[run->nread++] = at;
    }
    brc_buf_dispose(&row);
    return rc;
}

/* ---- reading -------------------------------- */

static int stats_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    stats_run *run = ctx;
    (void)err;
    for (; *n < cap && run->at < run->nread; run->at++) {
        brc_read_item *item = &items[(*n)++];
        item->number = run->order[run->at];
        item->object.id = stats_chunk_at(run, (size_t)item->number)->id;
    }
    return BRC_OK;
}

static stats_chunk *chunk_of_item(const stats_run *run, const brc_read_item *item)
{
    return stats_chunk_at(run, (size_t)item->number);
}

static int stats_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const stats_run *run = ctx;
    return brc_chunk_item(item, run->a, chunk_of_item(run, item)->index, err);
}

/* Tells whether the elements follow each other in the chunk. */
static int is_one_run(const brc_region *r, int ndim, const brc_region_part *part)
{
    const uint64_t *count = part->overlap.count;
    int i = 0;
    while (i < ndim && count[i] == 1)
        i++;
    if (i < ndim && r->sel.step[i] != 1)
        return 0;
    for (i++; i < ndim; i++)
        if (part->chunk[i] != count[i])
            return 0;
    return 1;
}

/* Sums up elements of a fixed length, or one of their fields. */
static int sum_up_fixed(const stats_run *run, brc_summary *out, const uint8_t *data,
                        const brc_region_part *part, brc_error *err)
{
    const brc_meta *m = &run->a->meta;
    const uint64_t *count = part->overlap.count;
    const size_t item = run->kind.type->item_size;
    const uint64_t n = brc_shape_count(m->ndim, count);
    int64_t to[BRC_MAX_NDIM];
    void *p;
    data += part->in_chunk + (int64_t)run->offset;
    if (item == m->type->item_size && is_one_run(&run->region, m->ndim, part))
        return brc_summary_make(out, &run->kind, data, n, run->fill, err);
    BRC_TRY(brc_new_array(&p, (size_t)n, item, err));
    brc_strides_packed(m->ndim, count, item, to);
    brc_copy_box(m->ndim, count, item, p, to, data, part->strides);
    const int rc = brc_summary_make(out, &run->kind, p, n, run->fill, err);
    free(p);
    return rc;
}

static int is_in_part(const brc_region *r, int ndim, const uint64_t *at,
                      const brc_region_part *part)
{
    for (int i = 0; i < ndim; i++) {
        const uint64_t from = at[i] - part->overlap.in_chunk[i];
        if (at[i] < part->overlap.in_chunk[i] || from % r->sel.step[i] != 0 ||
            from / r->sel.step[i] >= part->overlap.count[i])
            return 0;
    }
    return 1;
}

/* Lists the lengths of the elements in the part. `chunk` may hold so many elements. */
static int list_lengths(const stats_run *run, brc_span chunk, const brc_region_part *part,
                        int64_t *lengths, uint64_t *fill, brc_error *err)
{
    const brc_meta *m = &run->a->meta;
    brc_element_cursor cursor = {.packed = chunk};
    uint64_t at[BRC_MAX_NDIM] = {0};
    size_t n = 0;
    brc_span one;
    do {
        BRC_TRY(brc_element_next(&cursor, &one, err));
        if (!is_in_part(&run->region, m->ndim, at, part))
            continue;
        lengths[n++] = (int64_t)(one.len - 4);
        *fill += one.len == m->fill.len && memcmp(one.data, m->fill.data, one.len) == 0;
    } while (brc_index_next(m->ndim, at, part->chunk));
    return brc_elements_end(&cursor, err);
}

static int sum_up_lengths(const stats_run *run, brc_summary *out, brc_span chunk,
                          const brc_region_part *part, brc_error *err)
{
    const uint64_t n = brc_shape_count(run->a->meta.ndim, part->overlap.count);
    uint64_t fill = 0;
    void *p;
    if (part->elements > chunk.len / 4)
        return brc_fail(err, BRC_ECORRUPT, "its elements are damaged; run 'breccia fsck'");
    BRC_TRY(brc_new_array(&p, (size_t)n, sizeof(int64_t), err));
    int rc = list_lengths(run, chunk, part, p, &fill, err);
    if (rc == BRC_OK)
        brc_summary_of_numbers(out, p, (size_t)n, fill);
    free(p);
    return rc == BRC_EINVAL ? brc_fail(err, BRC_ECORRUPT,
                                       "its elements are damaged; run 'breccia fsck'")
                            : rc;
}

static int stats_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                       brc_error *err)
{
    const stats_run *run = ctx;
    brc_region_part part;
    brc_summary summary;
    (void)scratch;
    brc_region_part_at(&part, run->a, &run->region, chunk_of_item(run, item)->index);
    if (brc_meta_is_variable(&run->a->meta))
        BRC_TRY(sum_up_lengths(run, &summary, (brc_span){data, item->len}, &part, err));
    else
        BRC_TRY(sum_up_fixed(run, &summary, data, &part, err));
    BRC_TRY(brc_summary_pack(item->result, &run->kind, &summary, err));
    item->out = (brc_span){item->result->data, item->result->len};
    return BRC_OK;
}

static int stats_done(void *ctx, brc_read_item *item, brc_error *err)
{
    stats_run *run = ctx;
    stats_chunk *c = chunk_of_item(run, item);
    uint8_t *copy;
    BRC_TRY(brc_arena_copy(&run->rows, item->out.data, item->out.len, &copy, err));
    c->row = (brc_span){copy, item->out.len};
    c->size = item->object.size;
    c->is_new = 1;
    return BRC_OK;
}

static int stats_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stats_run *run = ctx;
    return brc_task_step(run->a->session->repo, item != NULL ? item->object.size : 0, err);
}

static void stats_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stats_run *run = ctx;
    brc_array_name_chunk(run->a, chunk_of_item(run, item)->index, err);
}

/* ---- batches -------------------------------- */

static int read_batch(stats_run *run, brc_error *err)
{
    breccia *repo = run->a->session->repo;
    const brc_read_ops ops = {.ctx = run,
                              .list = stats_list,
                              .open = stats_open,
                              .place = stats_place,
                              .done = stats_done,
                              .passed = stats_passed,
                              .name = stats_name};
    BRC_TRY(brc_array_begin_read(run->a, err));
    int rc = list_batch(run, err);
    if (rc == BRC_OK)
        rc = look_up_rows(run, err);
    if (rc == BRC_OK && run->nread > 0)
        rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    brc_array_end_read(run->a);
    return rc;
}

static int may_keep_row(const stats_run *run, const stats_chunk *c)
{
    return c->is_new && !c->is_cut && c->size >= STATS_KEPT_LEAST && !run->a->meta.opaque;
}

/* Keeps what is new, if the file can be written at once. */
static void keep_stats_rows(const stats_run *run)
{
    brc_store *store = brc_array_store(run->a);
    int rc = BRC_OK, any = 0;
    for (size_t i = 0; i < run->n; i++)
        any |= may_keep_row(run, stats_chunk_at(run, i));
    if (!any || !brc_store_try_begin(store))
        return;
    for (size_t i = 0; i < run->n && rc == BRC_OK; i++) {
        const stats_chunk *c = stats_chunk_at(run, i);
        if (may_keep_row(run, c))
            rc = brc_chunk_stats_put(store, &c->id, c->form, c->row, NULL);
    }
    (void)!brc_store_end(store, rc == BRC_OK, NULL);
}

static int merge_batch(stats_run *run, brc_error *err)
{
    brc_summary one;
    for (size_t i = 0; i < run->n; i++) {
        const stats_chunk *c = stats_chunk_at(run, i);
        const brc_span row = stats_chunk_at(run, c->same)->row;
        if (!brc_summary_unpack(&one, &run->kind, row, c->elements))
            return brc_fail(err, BRC_EINTERNAL,
                            "%s: the statistics of a chunk cannot be read again", run->a->path);
        brc_summary_merge(&run->total, &run->kind, &one);
    }
    return BRC_OK;
}

static int sum_up_batches(stats_run *run, brc_error *err)
{
    int rc;
    do {
        brc_arena_dispose(&run->rows);
        run->rows = (brc_arena)BRC_ARENA_INIT;
        rc = read_batch(run, err);
        if (rc == BRC_OK)
            keep_stats_rows(run);
        if (rc == BRC_OK)
            rc = merge_batch(run, err);
    } while (rc == BRC_OK && run->more);
    return rc;
}

/* Adds the elements that no chunk holds. */
static int sum_up_absent(stats_run *run, uint64_t n, brc_error *err)
{
    const brc_meta *m = &run->a->meta;
    brc_summary fill;
    const int64_t length = (int64_t)m->fill.len - 4;
    if (n == 0)
        return BRC_OK;
    if (brc_meta_is_variable(m))
        brc_summary_of_numbers(&fill, &length, 1, 1);
    else
        BRC_TRY(brc_summary_make(&fill, &run->kind, run->fill, 1, run->fill, err));
    brc_summary_repeat(&fill, n);
    brc_summary_merge(&run->total, &run->kind, &fill);
    return BRC_OK;
}

static int sum_up_selected(stats_run *run, brc_error *err)
{
    const brc_meta *m = &run->a->meta;
    const uint64_t n = brc_shape_count(m->ndim, run->region.sel.count);
    void *p = NULL, *order = NULL;
    int rc = BRC_OK;
    if (n == UINT64_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s has more elements than can be counted", run->a->path);
    run->each = sizeof(stats_chunk) + (size_t)m->ndim * sizeof(uint64_t);
    if (n == 0)
        return BRC_OK;
    BRC_GO(brc_new_array(&run->memory, STATS_BATCH, run->each, err));
    BRC_GO(brc_new_array(&order, STATS_BATCH, sizeof(size_t), err));
    BRC_GO(brc_new(&p, sizeof(brc_chunk_cursor), err));
    run->order = order;
    run->cursor = p;
    BRC_GO(sum_up_batches(run, err));
    rc = sum_up_absent(run, n - run->seen, err);
done:
    brc_arena_dispose(&run->rows);
    free(run->memory);
    free(order);
    free(p);
    return rc;
}

/* ==== the result ================================ */

typedef struct bin_list {
    brc_arena arena;
    brc_stats_bin *bins;
    size_t n, at;
} bin_list;

static void set_stats_text(char out[BRC_STATS_TEXT], const brc_buf *text)
{
    const size_t len = text->len < BRC_STATS_TEXT ? text->len : BRC_STATS_TEXT - 1;
    memcpy(out, text->data, len);
    out[len] = '\0';
}

/* Appends a double as JSON. */
static int real_text(brc_buf *out, double v, brc_error *err)
{
    char text[BRC_FLOAT_TEXT];
    uint8_t bytes[8];
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    brc_store_le(bytes, sizeof(bytes), bits);
    brc_float_text(text, bytes, sizeof(bytes));
    return brc_buf_printf(out, err, v - v == 0 ? "%s" : "\"%s\"", text);
}

/* Appends an integer of up to 65 bits. */
static int whole_text(brc_buf *out, brc_wide_int v, brc_error *err)
{
    const uint64_t part = UINT64_C(1000000000000000000);
    const brc_wide_int size = v < 0 ? -v : v;
    const char *sign = v < 0 ? "-" : "";
    if (size < (brc_wide_int)part)
        return brc_buf_printf(out, err, "%s%" PRIu64, sign, (uint64_t)size);
    return brc_buf_printf(out, err, "%s%" PRIu64 "%018" PRIu64, sign, (uint64_t)(size / part),
                          (uint64_t)(size % part));
}

/* Appends a number of the array's type as its elements are printed: float32 in few digits. */
static int element_text(brc_buf *out, const brc_summary_kind *kind, double v, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT, element = BRC_BUF_INIT;
    int rc;
    BRC_GO(real_text(&text, v, err));
    BRC_GO(brc_buf_terminate(&text, err));
    BRC_GO(brc_dtype_parse_text(kind->type, (const char *)text.data, &element, err));
    rc = kind->type->ops->print(kind->type, element.data, element.len, BRC_PRINT_JSON, out, err);
done:
    brc_buf_dispose(&text);
    brc_buf_dispose(&element);
    return rc;
}

static int is_truth(const brc_summary_kind *kind)
{
    return kind->of == BRC_STATS_VALUES && kind->type->klass == BRC_CLASS_BOOL;
}

/* Appends one of the elements: `whole` of integers, less the offset, else `real`. */
static int stats_value_text(brc_buf *out, const brc_summary_kind *kind, int64_t whole, double real,
                      brc_error *err)
{
    if (is_truth(kind))
        return brc_buf_printf(out, err, whole != 0 ? "true" : "false");
    if (kind->is_integer)
        return whole_text(out, (brc_wide_int)whole + (brc_wide_int)kind->offset, err);
    return kind->of == BRC_STATS_VALUES ? element_text(out, kind, real, err)
                                        : real_text(out, real, err);
}

static int ends_text(brc_array_summary *out, const brc_summary_kind *kind, const brc_summary *s,
                     brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    if (s->count == s->nan)
        return BRC_OK;
    const double min = s->low > 0 ? -INFINITY : s->n > 0 ? s->min : INFINITY;
    const double max = s->high > 0 ? INFINITY : s->n > 0 ? s->max : -INFINITY;
    BRC_GO(stats_value_text(&text, kind, s->least, min, err));
    set_stats_text(out->min, &text);
    text.len = 0;
    BRC_GO(stats_value_text(&text, kind, s->greatest, max, err));
    set_stats_text(out->max, &text);
    text.len = 0;
    if (kind->has_nat)
        BRC_GO(whole_text(&text, (brc_wide_int)llrint(out->mean), err));
    else
        BRC_GO(real_text(&text, out->mean, err));
    set_stats_text(out->mean_text, &text);
done:
    brc_buf_dispose(&text);
    return rc;
}

static void means_of(brc_array_summary *out, const brc_summary_kind *kind, const brc_summary *s)
{
    out->infinite = s->low + s->high;
    out->mean = brc_summary_mean(s, kind);
    out->std = brc_summary_std(s);
    if (out->infinite == 0)
        return;
    out->mean = s->low == 0 ? INFINITY : s->high == 0 ? -INFINITY : NAN;
    out->std = NAN;
}

/* Appends the beginning of bin `j`. */
static int edge_text(brc_buf *out, double *number, const brc_summary_kind *kind, int scale,
                     brc_wide_int j, brc_error *err)
{
    if (!kind->is_integer) {
        *number = ldexp((double)j, scale);
        return real_text(out, *number, err);
    }
    const brc_wide_int edge = j * ((brc_wide_int)1 << scale) + (brc_wide_int)kind->offset;
    *number = (double)edge;
    return whole_text(out, edge, err);
}

static int keep_bin_text(bin_list *list, const brc_buf *text, const char **out, brc_error *err)
{
    uint8_t *copy;
    BRC_TRY(brc_arena_copy(&list->arena, text->data, text->len + 1, &copy, err));
    *out = (const char *)copy;
    return BRC_OK;
}

static int add_bin(bin_list *list, const brc_summary_kind *kind, const brc_summary *s, size_t i,
                   brc_error *err)
{
    brc_stats_bin *bin = &list->bins[list->n++];
    const brc_wide_int j = (brc_wide_int)s->first + (brc_wide_int)i;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    bin->count = s->bins[i];
    BRC_GO(edge_text(&text, &bin->low, kind, s->scale, j, err));
    BRC_GO(keep_bin_text(list, &text, &bin->from, err));
    text.len = 0;
    BRC_GO(edge_text(&text, &bin->high, kind, s->scale, j + 1, err));
    rc = keep_bin_text(list, &text, &bin->to, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int add_value(bin_list *list, const brc_summary_kind *kind, const brc_summary *s, size_t i,
                     brc_error *err)
{
    brc_stats_bin *bin = &list->bins[list->n++];
    const int64_t value = s->first + (int64_t)i;
    brc_buf text = BRC_BUF_INIT;
    bin->count = s->bins[i];
    bin->low = bin->high = (double)((brc_wide_int)value + (brc_wide_int)kind->offset);
    int rc = stats_value_text(&text, kind, value, 0, err);
    if (rc == BRC_OK)
        rc = keep_bin_text(list, &text, &bin->from, err);
    brc_buf_dispose(&text);
    return rc;
}

/* Says whether each bin is one value of the array's. */
static int values_are_known(const brc_summary_kind *kind, const brc_summary *s)
{
    return kind->is_integer && kind->of == BRC_STATS_VALUES && s->nbins > 0 && s->scale == 0;
}

static int fill_bin_list(bin_list *list, const brc_summary_kind *kind, const brc_summary *s,
                     brc_error *err)
{
    brc_summary shown = *s;
    void *p;
    brc_summary_coarsen(&shown, SHOWN_BINS);
    BRC_TRY(brc_new_array(&p, shown.nbins + s->nbins + 1, sizeof(brc_stats_bin), err));
    list->bins = p;
    for (size_t i = 0; i < shown.nbins; i++)
        BRC_TRY(add_bin(list, kind, &shown, i, err));
    for (size_t i = 0; i < s->nbins && values_are_known(kind, s); i++)
        if (s->bins[i] > 0)
            BRC_TRY(add_value(list, kind, s, i, err));
    return BRC_OK;
}

static void bin_list_dispose(void *state)
{
    bin_list *list = state;
    brc_arena_dispose(&list->arena);
    free(list->bins);
}

static int bin_next(void *state, const void **out, brc_error *err)
{
    bin_list *list = state;
    (void)err;
    if (list->at == list->n)
        return 0;
    *out = &list->bins[list->at++];
    return 1;
}

static int list_bins(brc_iter **out, const brc_summary_kind *kind, const brc_summary *s,
                     brc_error *err)
{
    BRC_TRY(brc_iter_new(out, bin_next, sizeof(bin_list), bin_list_dispose, err));
    bin_list *list = brc_iter_state(*out);
    list->arena = (brc_arena)BRC_ARENA_INIT;
    const int rc = fill_bin_list(list, kind, s, err);
    if (rc < 0) {
        brc_iter_free(*out);
        *out = NULL;
    }
    return rc;
}

static int result_of(brc_array_summary *out, const brc_summary_kind *kind, const brc_summary *s,
                     brc_error *err)
{
    brc_summary shown = *s;
    brc_summary_coarsen(&shown, SHOWN_BINS);
    out->of = kind->of;
    out->nbins = (int)shown.nbins;
    out->count = s->count;
    out->nan = s->nan;
    out->fill = s->fill;
    for (size_t i = 0; i < s->nbins && values_are_known(kind, s); i++)
        out->nvalues += s->bins[i] > 0;
    means_of(out, kind, s);
    return ends_text(out, kind, s, err);
}

/* ==== the public function ================================ */

/* Refuses types whose elements have no order. */
static int stats_kind(stats_run *run, brc_error *err)
{
    const brc_array *a = run->a;
    const brc_dtype *type = a->meta.type;
    if (run->field == NULL && type->klass == BRC_CLASS_STRUCT)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s: its elements have fields, and there are only "
                                               "statistics of one of these: name a field",
                        a->path);
    if (run->field != NULL)
        type = brc_dtype_field(type, run->field, &run->offset);
    if (type == NULL)
        return brc_fail(err, BRC_EINVAL, "%s: its elements have no field \"%s\"", a->path,
                        run->field);
    run->fill = (const uint8_t *)a->meta.fill.data + run->offset;
    if (brc_summary_kind_of(&run->kind, type))
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED, "%s: there are no statistics of the data type %s",
                    a->path, type->name);
}

/* Freezes the array, and checks what is asked for. */
static int freeze_for_stats(stats_run *run, brc_array *a, const brc_sel *sel, brc_error *err)
{
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_freeze(&run->a, a, err);
    if (rc == BRC_OK) /* refuses what cannot be read */
        rc = brc_region_init(&run->region, run->a, sel, NULL, NULL, err);
    if (rc == BRC_OK)
        rc = stats_kind(run, err);
    brc_array_end_read(a);
    return rc;
}

/* Returns the bytes of the chunks that are there, at most those of the selection, for progress; 0
 * if that is not known. */
static uint64_t bytes_to_read(const stats_run *run, uint64_t chunks)
{
    uint64_t bytes;
    const brc_meta *m = &run->a->meta;
    chunks = chunks < run->region.nchunks ? chunks : run->region.nchunks;
    if (brc_meta_is_variable(m) || !m->grid.regular ||
        !brc_shape_bytes(m->ndim, m->grid.chunk, m->type->item_size, &bytes) ||
        !brc_mul_u64(bytes, chunks, &bytes))
        return 0;
    return bytes;
}

static int sum_up_with(stats_run *run, brc_array *a, const brc_array_stats_opts *opts,
                       brc_error *err)
{
    breccia *repo = a->session->repo;
    uint64_t chunks, stored;
    BRC_TRY(brc_array_stat(&chunks, &stored, a, err));
    run->rows = (brc_arena)BRC_ARENA_INIT;
    run->field = opts->field;
    BRC_TRY(freeze_for_stats(run, a, opts->sel, err));
    brc_task task = brc_task_begin(repo, "statistics", bytes_to_read(run, chunks));
    const int rc = sum_up_selected(run, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

int brc_array_stats(brc_array_summary *given, brc_iter **bins, brc_array *a,
                    const brc_array_stats_opts *wanted, brc_error *err)
{
    brc_array_summary own = BRC_ARRAY_SUMMARY_INIT;
    brc_array_stats_opts opts;
    void *p;
    if (bins != NULL)
        *bins = NULL;
    BRC_TRY(brc_sized_check(given->size, offsetof(brc_array_summary, of), "brc_array_summary",
                            err));
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), offsetof(brc_array_stats_opts, sel), wanted,
                         "brc_array_stats_opts", err));
    BRC_TRY(brc_new(&p, sizeof(stats_run), err));
    stats_run *run = p;
    int rc = sum_up_with(run, a, &opts, err);
    if (rc == BRC_OK)
        rc = result_of(&own, &run->kind, &run->total, err);
    if (rc == BRC_OK)
        rc = brc_sized_out(given, &own, sizeof(own), offsetof(brc_array_summary, of),
                           "brc_array_summary", err);
    if (rc == BRC_OK && bins != NULL)
        rc = list_bins(bins, &run->kind, &run->total, err);
    brc_array_free(run->a);
    free(run);
    return rc;
}
