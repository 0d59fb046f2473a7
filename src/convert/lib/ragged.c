/* Cuts ragged elements into runs, for import and export, see ragged.h. */
#include "ragged.h"

#include <stdlib.h>
#include <string.h>

#include "convert_program.h"

/* ==== ragged ================================ */

uint64_t brc_ragged_count(const brc_ragged *type)
{
    return brc_shape_count(type->ndim, type->shape);
}

void brc_ragged_free(brc_ragged *type, int self)
{
    if (!type)
        return;
    for (size_t i = 0; i < type->n && type->items; i++)
        brc_ragged_free(&type->items[i], 0);
    free(type->items);
    type->items = NULL;
    if (self)
        free(type);
}

/* The most bytes of a run's elements. A run that takes too much memory is cut into runs of the next
 * budget. */
static const uint64_t run_budgets[BRC_RAGGED_LEVELS] = { 1 << 20, 1 << 16, 1 << 12, 1 };

static void cut_box(brc_ragged_runs *runs, const brc_sel *box)
{
    brc_cut_runs(&runs->cuts[runs->n], box, runs->chunk, runs->size, 0, run_budgets[runs->n]);
    runs->n++;
}

void brc_ragged_runs_start(brc_ragged_runs *runs, const brc_sel *box, const uint64_t *chunk,
                           size_t size)
{
    runs->ndim = box->ndim;
    runs->size = size;
    runs->n = 0;
    for (int i = 0; i < box->ndim; i++)
        runs->chunk[i] = chunk ? chunk[i] : 1;
    cut_box(runs, box);
}

static int is_last_cut(const brc_ragged_runs *runs)
{
    return runs->n == BRC_RAGGED_LEVELS || runs->cuts[runs->n - 1].elements == 1;
}

int brc_ragged_runs_next(brc_ragged_runs *runs, const brc_cut **run, size_t *most)
{
    for (; runs->n > 0; runs->n--)
        if (brc_cut_next(&runs->cuts[runs->n - 1])) {
            *run = &runs->cuts[runs->n - 1];
            *most = is_last_cut(runs) ? BRC_RAGGED_ELEMENT : BRC_RAGGED_RUN;
            return 1;
        }
    return 0;
}

int brc_ragged_runs_cut(brc_ragged_runs *runs)
{
    if (is_last_cut(runs))
        return 0;
    brc_sel box = runs->cuts[runs->n - 1].sel;
    cut_box(runs, &box);
    return 1;
}

/* ==== ragged in ================================ */

/*
 * Imports a dataset of ragged elements as groups and arrays, see ragged.h.
 *
 * Each array takes a pass over the dataset, which reads only the parts that the array needs, run by
 * run. A run whose lists are long is cut again, so that memory is bounded by a run's budget or by
 * the longest element.
 */

/* The most bytes of a chunk whose shape we choose. */
#define CHUNK_BYTES ((uint64_t)1 << 20)

/* An array that is being written. */
typedef struct ragged_column {
    brc_convert *c;
    const brc_ragged_in *in;
    brc_ragged_steps steps;
    const brc_ragged *last;
    int is_flat;      /* the first axis counts items of lists, or offsets */
    uint64_t per_row; /* of variable length: spans of one item of that axis */
    brc_ragged_runs runs;
    brc_buf queue;  /* items that were read */
    size_t at;      /* where the next item to hand on begins */
    int64_t total;  /* the sum of lists' lengths so far */
    uint64_t given; /* rows that were handed on */
} ragged_column;

/* ---- items -------------------------------- */

static int take_ragged_items(ragged_column *col, size_t step, uint8_t *element, brc_error *err);

static int take_ragged_list(ragged_column *col, size_t step, const uint8_t *element, brc_error *err)
{
    const brc_ragged *type = col->steps.at[step];
    brc_ragged_list list;
    uint8_t bytes[8];
    memcpy(&list, element, sizeof(list));
    size_t len = list.p ? list.len : 0;
    if (step + 1 == col->steps.n) {
        if (len > (uint64_t)(INT64_MAX - col->total))
            return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                                   "%s: its lists have more than 2^63 items", col->in->label);
        col->total += (int64_t)len;
        memcpy(bytes, &col->total, sizeof(bytes));
        return brc_buf_append(&col->queue, bytes, sizeof(bytes), err);
    }
    uint8_t *item = list.p;
    for (size_t i = 0; i < len; i++, item += type->items->size)
        BRC_TRY(take_ragged_items(col, step + 1, item, err));
    return BRC_OK;
}

/* Appends the column's part of the element to the queue. */
static int take_ragged_items(ragged_column *col, size_t step, uint8_t *element, brc_error *err)
{
    const brc_ragged *type = col->steps.at[step];
    uint64_t n;
    switch (type->kind) {
    case BRC_RAGGED_COMPOUND:
        return take_ragged_items(col, step + 1, element + col->steps.at[step + 1]->at, err);
    case BRC_RAGGED_ARRAY:
        n = brc_ragged_count(type);
        for (uint64_t i = 0; i < n; i++, element += type->items->size)
            BRC_TRY(take_ragged_items(col, step + 1, element, err));
        return BRC_OK;
    case BRC_RAGGED_LIST:
        return take_ragged_list(col, step, element, err);
    default:
        return col->in->append(col->in->ctx, type, element, &col->queue, err);
    }
}

/* Appends a run to the queue. Returns 1, or 0 if the run must be cut. */
static int take_ragged_run(ragged_column *col, const brc_cut *run, size_t most, brc_error *err)
{
    const brc_ragged_in *in = col->in;
    uint8_t *elements;
    BRC_TRY(brc_new_array((void **)&elements, run->elements, in->type->size, err));
    int rc = in->read(in->ctx, &run->sel, elements, most, err);
    for (uint64_t i = 0; i < run->elements && rc == 1; i++) {
        int taken = take_ragged_items(col, 0, elements + i * in->type->size, err);
        rc = taken < 0 ? taken : 1;
    }
    in->release(in->ctx);
    free(elements);
    return rc;
}

/* Appends the next run to the queue. Returns 1, or 0 at the end. */
static int take_next(ragged_column *col, brc_error *err)
{
    const brc_cut *run;
    size_t most;
    while (brc_ragged_runs_next(&col->runs, &run, &most)) {
        int taken = take_ragged_run(col, run, most, err);
        if (taken != 0)
            return taken;
        if (!brc_ragged_runs_cut(&col->runs))
            return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                                   "%s: one of its elements has more than %zu MiB", col->in->label,
                                   BRC_RAGGED_ELEMENT >> 20);
    }
    return 0;
}

/* ---- a pass -------------------------------- */

static void start_runs(ragged_column *col, const brc_sel *box)
{
    const brc_ragged_in *in = col->in;
    size_t size = in->type->size > in->weight ? in->type->size : in->weight;
    brc_ragged_runs_start(&col->runs, box, in->chunked ? in->chunk : NULL, size);
}

static int start_pass(ragged_column *col, brc_error *err)
{
    static const uint8_t zero[8];
    const brc_ragged_in *in = col->in;
    brc_sel all = BRC_SEL_INIT;
    brc_sel_of_shape(&all, in->ndim, in->shape);
    start_runs(col, &all);
    col->queue.len = col->at = 0;
    col->total = 0;
    col->given = 0;
    BRC_TRY(in->select(in->ctx, &col->steps, err));
    return col->last->kind == BRC_RAGGED_LIST ? brc_buf_append(&col->queue, zero, sizeof(zero), err)
                                              : BRC_OK;
}

/* Reads the whole column to check it, and keeps nothing. */
static int run_through(ragged_column *col, brc_error *err)
{
    int more;
    BRC_TRY(start_pass(col, err));
    while ((more = take_next(col, err)) > 0) {
        col->queue.len = 0;
        brc_watch_step(&col->c->watch);
    }
    col->queue.len = 0;
    return more;
}

/* Sets *len to the bytes of the next n spans in the queue. Returns 0 if the queue does not have all
 * of them. */
static int spans_length(const ragged_column *col, uint64_t n, size_t *len)
{
    const uint8_t *from = col->queue.data ? col->queue.data + col->at : NULL;
    brc_reader r = brc_reader_of(from, col->queue.len - col->at);
    while (n-- > 0) {
        const uint8_t *count = brc_read_bytes(&r, 4);
        if (!count || !brc_read_bytes(&r, brc_get_u32le(count)))
            return 0;
    }
    *len = from ? (size_t)(r.at - from) : 0;
    return 1;
}

/* Removes items from the queue that were handed on. */
static void shift_queue(ragged_column *col)
{
    if (col->at == 0 || col->at < col->queue.len / 2)
        return;
    memmove(col->queue.data, col->queue.data + col->at, col->queue.len - col->at);
    col->queue.len -= col->at;
    col->at = 0;
}

static int column_is_short(const ragged_column *col, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "%s: its lists have other lengths than when they were counted",
                    col->in->label);
}

/* Reads until the queue has the next `rows` rows of a flat column: *len bytes, which is `fixed` if
 * that is not 0. */
static int queue_rows(ragged_column *col, uint64_t rows, size_t fixed, size_t *len, brc_error *err)
{
    uint64_t spans;
    if (!fixed && !brc_mul_u64(rows, col->per_row, &spans))
        return column_is_short(col, err);
    *len = fixed;
    while (fixed ? col->queue.len - col->at < fixed : !spans_length(col, spans, len)) {
        shift_queue(col);
        int more = take_next(col, err);
        BRC_TRY(more);
        if (more == 0)
            return column_is_short(col, err);
    }
    return BRC_OK;
}

/* Reads a whole box of a column that has the dataset's axes. */
static int queue_box(ragged_column *col, const brc_sel *box, brc_error *err)
{
    brc_sel own = BRC_SEL_INIT;
    int more;
    own.ndim = col->in->ndim;
    for (int i = 0; i < own.ndim; i++) {
        own.start[i] = box->start[i];
        own.count[i] = box->count[i];
        own.step[i] = 1;
    }
    col->queue.len = col->at = 0;
    start_runs(col, &own);
    while ((more = take_next(col, err)) > 0)
        if (col->queue.len > BRC_RAGGED_ELEMENT)
            return brc_fail(err, BRC_ELIMIT, "%s: the elements of a chunk have more than %zu MiB",
                            col->in->label, BRC_RAGGED_ELEMENT >> 20);
    return more;
}

/* Reads until the box's bytes are the next in the queue. */
static int queue_part(ragged_column *col, const brc_sel *box, size_t fixed, size_t *len,
                      brc_error *err)
{
    if (!col->is_flat) {
        BRC_TRY(queue_box(col, box, err));
        *len = col->queue.len;
    } else {
        if (box->start[0] != col->given)
            return brc_fail(err, BRC_EINTERNAL, "%s: its lists are not read in order",
                            col->in->label);
        BRC_TRY(queue_rows(col, box->count[0], fixed, len, err));
        col->given += box->count[0];
    }
    return fixed > 0 && *len != fixed ? column_is_short(col, err) : BRC_OK;
}

static int read_column(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    ragged_column *col = ctx;
    size_t found;
    BRC_TRY(queue_part(col, box, len, &found, err));
    if (len > 0)
        memcpy(dst, col->queue.data + col->at, len);
    col->at += len;
    return BRC_OK;
}

static int read_column_spans(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err)
{
    ragged_column *col = ctx;
    size_t len = 0;
    BRC_TRY(queue_part(col, box, 0, &len, err));
    size_t at = col->at;
    col->at += len;
    return len > 0 ? brc_buf_append(out, col->queue.data + at, len, err) : BRC_OK;
}

/* ---- nodes -------------------------------- */

enum { TAKE_COUNTS = 1, TAKE_NODES };

typedef struct ragged_walk {
    brc_convert *c;
    const brc_ragged_in *in;
    int what; /* TAKE_COUNTS or TAKE_NODES */
    brc_ragged_steps steps;
    int in_list;
    int ndim; /* axes around the type */
    uint64_t shape[BRC_MAX_NDIM];
    const char *attrs; /* for the first group */
    int64_t *totals;   /* of each list of the type, in the order of the walk */
    size_t nlists, cap, list;
} ragged_walk;

static int take_type(ragged_walk *w, const brc_ragged *type, const char *path, brc_error *err);

static int too_many_axes(const ragged_walk *w, brc_error *err)
{
    return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s has more than %d axes", w->in->label,
                           BRC_MAX_NDIM);
}

static int add_axes(ragged_walk *w, int ndim, const uint64_t *shape, brc_error *err)
{
    if (w->ndim + ndim > BRC_MAX_NDIM)
        return too_many_axes(w, err);
    for (int i = 0; i < ndim; i++)
        w->shape[w->ndim++] = shape[i];
    return BRC_OK;
}

/* Chooses chunks in which all axes but the first `outer` ones are whole. `file` has the file's
 * chunks of these; NULL: we choose. */
static int choose_chunk(const ragged_walk *w, brc_array_in *array, int outer, uint64_t item,
                        const uint64_t *file, brc_error *err)
{
    uint64_t row, bytes;
    if (!brc_shape_bytes(array->ndim - outer, array->shape + outer, item, &row) ||
        row > BRC_MAX_CHUNK_BYTES)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: its elements have more than 2^31 bytes", w->in->label);
    array->chunked = 1;
    for (int i = outer; i < array->ndim; i++)
        array->chunk[i] = array->shape[i] > 0 ? array->shape[i] : 1;
    bytes = row > 0 ? row : 1;
    for (int i = outer; i-- > 0;) {
        uint64_t fit = CHUNK_BYTES / bytes, n = array->shape[i] > 0 ? array->shape[i] : 1;
        array->chunk[i] = fit == 0 ? 1 : n < fit ? n : fit;
        bytes *= array->chunk[i];
    }
    if (file && brc_shape_bytes(outer, file, row > 0 ? row : 1, &bytes) &&
        bytes <= BRC_MAX_CHUNK_BYTES)
        memcpy(array->chunk, file, (size_t)outer * sizeof(*array->chunk));
    return BRC_OK;
}

static ragged_column column_of(const ragged_walk *w, const brc_ragged *last)
{
    ragged_column col = { .c = w->c, .in = w->in, .steps = w->steps, .last = last };
    col.queue = (brc_buf)BRC_BUF_INIT;
    col.is_flat = w->in_list || last->kind == BRC_RAGGED_LIST;
    return col;
}

static int put_column(ragged_walk *w, ragged_column *col, brc_array_in *array, brc_error *err)
{
    BRC_TRY(brc_convert_place_check(w->in->label, array->path, err));
    array->label = w->in->label;
    array->ctx = col;
    array->read = read_column;
    array->read_elements = read_column_spans;
    BRC_TRY(start_pass(col, err));
    return brc_convert_array(w->c, array, err);
}

/* Copies a leaf's note. Readers that do not know the note ignore it. Sets *out to NULL if there is
 * no note. */
static int note_of(brc_json **out, const brc_ragged *leaf, brc_error *err)
{
    brc_json *may;
    *out = NULL;
    if (!leaf->note)
        return BRC_OK;
    BRC_TRY(brc_json_clone(out, leaf->note, err));
    BRC_TRY(brc_json_parse(&may, "false", 5, 0, err));
    return brc_json_set(*out, "must_understand", may, err);
}

static int take_leaf(ragged_walk *w, const brc_ragged *leaf, const char *path, brc_error *err)
{
    brc_json *note = NULL;
    const char *names[BRC_MAX_NDIM] = { NULL };
    ragged_column col = column_of(w, leaf);
    brc_array_in array = { .path = path, .dtype = leaf->dtype };
    int outer = w->in_list ? 1 : w->in->ndim, rc = BRC_OK;

    if (w->what == TAKE_COUNTS) {
        /* every part that an element refuses must be known before documents are written */
        if (leaf->doubtful && w->c->skips)
            rc = run_through(&col, err);
        goto done;
    }
    BRC_GO(add_axes(w, leaf->ndim, leaf->shape, err));
    array.ndim = w->ndim;
    memcpy(array.shape, w->shape, sizeof(array.shape));
    col.per_row = brc_shape_count(array.ndim - outer, array.shape + outer);
    for (int i = 0; i < w->in->ndim && w->in->names && !w->in_list; i++)
        names[i] = w->in->names[i];
    array.names = w->in->names && !w->in_list ? names : NULL;
    array.note_name = w->in->note_name;
    BRC_GO(note_of(&note, leaf, err));
    array.note = note;
    if (leaf->type->klass == BRC_CLASS_TIME)
        array.fill = "0";
    BRC_GO(choose_chunk(w, &array, outer,
                        leaf->type->item_size ? leaf->type->item_size : BRC_VARIABLE_BYTES,
                        w->in->chunked && !w->in_list ? w->in->chunk : NULL, err));
    rc = put_column(w, &col, &array, err);
done:
    brc_json_free(note);
    brc_buf_dispose(&col.queue);
    return rc;
}

/* Sets *number to the list's number in the walk. */
static int number_list(ragged_walk *w, size_t *number, brc_error *err)
{
    *number = w->list++;
    if (*number < w->nlists)
        return BRC_OK;
    BRC_TRY(brc_grow_array((void **)&w->totals, &w->cap, w->nlists + 1, sizeof(*w->totals), err));
    w->totals[w->nlists++] = 0;
    return BRC_OK;
}

static int take_offsets(ragged_walk *w, const brc_ragged *list, size_t number, const char *path,
                        brc_error *err)
{
    ragged_column col = column_of(w, list);
    brc_array_in array = { .dtype = "int64", .ndim = 1 };
    uint64_t n = brc_shape_count(w->ndim, w->shape);
    char *node = NULL;
    int rc;

    if (w->what == TAKE_COUNTS) {
        rc = run_through(&col, err);
        w->totals[number] = col.total;
        goto done;
    }
    if (n >= INT64_MAX) {
        rc = brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s has more than 2^63 lists", w->in->label);
        goto done;
    }
    BRC_GO(brc_convert_node_path(&node, w->c, path, BRC_RAGGED_OFFSETS, err));
    array.path = node;
    array.shape[0] = n + 1;
    BRC_GO(choose_chunk(w, &array, 1, sizeof(int64_t), NULL, err));
    BRC_GO(put_column(w, &col, &array, err));
    if (brc_convert_phase(w->c) == BRC_CONVERT_CHUNKS)
        w->totals[number] = col.total;
done:
    free(node);
    brc_buf_dispose(&col.queue);
    return rc;
}

static int take_group_of(ragged_walk *w, const char *path, brc_error *err)
{
    const char *attrs = w->attrs;
    if (w->what == TAKE_COUNTS)
        return BRC_OK;
    w->attrs = NULL;
    BRC_TRY(brc_convert_place_check(w->in->label, path, err));
    return brc_convert_group(w->c, path, attrs, err);
}

static int take_ragged_child(ragged_walk *w, const brc_ragged *type, const char *path,
                             const char *name, brc_error *err)
{
    char *node;
    BRC_TRY(brc_convert_node_path(&node, w->c, path, name, err));
    int rc = take_type(w, type, node, err);
    free(node);
    return rc;
}

static int take_list_type(ragged_walk *w, const brc_ragged *list, const char *path, brc_error *err)
{
    size_t number;
    BRC_TRY(number_list(w, &number, err));
    BRC_TRY(take_offsets(w, list, number, path, err));
    w->in_list = 1;
    w->ndim = 1;
    w->shape[0] = (uint64_t)w->totals[number];
    return take_ragged_child(w, list->items, path, BRC_RAGGED_VALUES, err);
}

static int take_any_type(ragged_walk *w, const brc_ragged *type, const char *path, brc_error *err)
{
    switch (type->kind) {
    case BRC_RAGGED_LEAF:
        return take_leaf(w, type, path, err);
    case BRC_RAGGED_ARRAY:
        BRC_TRY(add_axes(w, type->ndim, type->shape, err));
        return take_type(w, type->items, path, err);
    case BRC_RAGGED_LIST:
        BRC_TRY(take_group_of(w, path, err));
        return take_list_type(w, type, path, err);
    default:
        BRC_TRY(take_group_of(w, path, err));
        for (size_t i = 0; i < type->n; i++)
            BRC_TRY(take_ragged_child(w, &type->items[i], path, type->items[i].name, err));
        return BRC_OK;
    }
}

/* Takes a type, and leaves the state of the walk as it was. */
static int take_type(ragged_walk *w, const brc_ragged *type, const char *path, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM];
    int in_list = w->in_list, ndim = w->ndim;
    if (w->steps.n == BRC_RAGGED_DEPTH)
        return brc_part_refuse(err, BRC_PART_TYPE, NULL,
                               "%s: its data type is nested more than %d deep", w->in->label,
                               BRC_RAGGED_DEPTH);
    memcpy(shape, w->shape, sizeof(shape));
    w->steps.at[w->steps.n++] = type;
    int rc = take_any_type(w, type, path, err);
    w->steps.n--;
    w->in_list = in_list;
    w->ndim = ndim;
    memcpy(w->shape, shape, sizeof(shape));
    return rc;
}

int brc_convert_ragged(brc_convert *c, const brc_ragged_in *in, brc_error *err)
{
    ragged_walk w = { .c = c, .in = in, .ndim = in->ndim, .attrs = in->attrs_json };
    int rc = BRC_OK;
    memcpy(w.shape, in->shape, sizeof(w.shape));
    /* the documents need the numbers of items; elements are counted while they are written */
    w.what = brc_convert_phase(c) == BRC_CONVERT_DOCS ? TAKE_COUNTS : TAKE_NODES;
    for (; w.what <= TAKE_NODES && rc == BRC_OK; w.what++) {
        w.list = 0;
        rc = take_type(&w, in->type, in->path, err);
    }
    free(w.totals);
    return rc;
}
