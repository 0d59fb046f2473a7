/*
 * Elements as Arrow has them: an array of the first axis, in which the further axes are lists of
 * fixed length; and a stream of such arrays, each as the one column of a table.
 *
 * Invariant: an array that was given out keeps its memory itself, so its release() may run on any
 * thread and at any time. What is read from the file is put into Arrow's form at most once:
 * numbers stay where they were read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/sized.h"
#include "arrow.h"

/* ---- schemas -------------------------------- */

typedef struct given_schema {
    struct ArrowSchema child, *children[1];
    char format[32], *name;
} given_schema;

static void schema_release(struct ArrowSchema *self)
{
    given_schema *g = self->private_data;
    if (self->n_children > 0 && g->child.release != NULL)
        g->child.release(&g->child);
    free(g->name);
    free(g);
    self->release = NULL;
}

/* Makes a schema, which has the child of *out if `parent`; the caller fills that in then. */
static int schema_new(struct ArrowSchema *out, const char *format, const char *name, int is_parent,
                      brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(given_schema), err));
    given_schema *g = p;
    const int rc = brc_dup(&g->name, name, err);
    if (rc < 0) {
        free(g);
        return rc;
    }
    snprintf(g->format, sizeof(g->format), "%s", format);
    g->children[0] = &g->child;
    *out = (struct ArrowSchema){.format = g->format,
                                .name = g->name,
                                .n_children = is_parent,
                                .children = is_parent ? g->children : NULL,
                                .release = schema_release,
                                .private_data = g};
    return BRC_OK;
}

/* The lists of fixed length around the values: the axes after the first, and pairs. */
typedef struct list_axes {
    int n;
    uint64_t len[BRC_MAX_NDIM + 1];
} list_axes;

static int schema_of(struct ArrowSchema *out, const brc_arrow_form *form, const list_axes *lists,
                     const char *name, brc_error *err)
{
    struct ArrowSchema *at = out;
    char format[32];
    for (int i = 0; i <= lists->n; i++) {
        const int is_last = i == lists->n;
        snprintf(format, sizeof(format), "+w:%llu",
                 is_last ? 0ULL : (unsigned long long)lists->len[i]);
        const int rc = schema_new(at, is_last ? form->format : format, i == 0 ? name : "item",
                                  !is_last, err);
        if (rc < 0) {
            at->release = NULL;
            if (at != out)
                out->release(out);
            return rc;
        }
        if (is_last && (form->is_optional || form->values == BRC_ARROW_TIME))
            at->flags = BRC_ARROW_NULLABLE;
        at = &((given_schema *)at->private_data)->child;
    }
    return BRC_OK;
}

/* ---- arrays -------------------------------- */

typedef struct given_array {
    struct ArrowArray child, *children[1];
    const void *buffers[3];
    brc_tensor *tensor;        /* has the values; NULL: `own` has them           */
    void *own[3];              /* validity, offsets or bits, bytes               */
} given_array;

static void array_release(struct ArrowArray *self)
{
    given_array *g = self->private_data;
    if (self->n_children > 0 && g->child.release != NULL)
        g->child.release(&g->child);
    brc_tensor_free(g->tensor);
    for (int i = 0; i < 3; i++)
        free(g->own[i]);
    free(g);
    self->release = NULL;
}

static int array_new(struct ArrowArray *out, int64_t length, int is_parent, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(given_array), err));
    given_array *g = p;
    g->children[0] = &g->child;
    *out = (struct ArrowArray){.length = length,
                               .n_buffers = 1, /* no element is null */
                               .n_children = is_parent,
                               .buffers = g->buffers,
                               .children = is_parent ? g->children : NULL,
                               .release = array_release,
                               .private_data = g};
    return BRC_OK;
}

/* Elements that were read, packed. */
typedef struct elements_read {
    brc_tensor *tensor; /* of a fixed size                                       */
    brc_buf packed;     /* of variable length                                    */
    uint64_t n;         /* values                                                */
} elements_read;

static void set_bit(uint8_t *bits, uint64_t i)
{
    bits[i / 8] = (uint8_t)(bits[i / 8] | 1u << i % 8);
}

static int bits_new(void **out, uint64_t n, brc_error *err)
{
    return brc_new_array(out, (size_t)(n / 8 + 1), 1, err);
}

/* Makes bits of bytes that are `stride` apart: booleans, or whether optional elements are there. */
static int bits_of_bytes(void **out, const uint8_t *bytes, uint64_t n, size_t stride,
                         int64_t *zeros, brc_error *err)
{
    BRC_TRY(bits_new(out, n, err));
    *zeros = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (bytes[i * stride] != 0)
            set_bit(*out, i);
        else
            ++*zeros;
    }
    return BRC_OK;
}

/* Times that are none become null. */
static int validity_of_times(given_array *g, int64_t *nulls, const uint8_t *values, uint64_t n,
                             brc_error *err)
{
    const int64_t none = INT64_MIN;
    int64_t value;
    *nulls = 0;
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&value, values + i * sizeof(value), sizeof(value));
        *nulls += value == none;
    }
    if (*nulls == 0)
        return BRC_OK;
    BRC_TRY(bits_new(&g->own[0], n, err));
    for (uint64_t i = 0; i < n; i++) {
        memcpy(&value, values + i * sizeof(value), sizeof(value));
        if (value != none)
            set_bit(g->own[0], i);
    }
    return BRC_OK;
}

/* Takes the values out of elements that each begin with a byte. */
static int values_of_optional(given_array *g, struct ArrowArray *out, const brc_arrow_form *form,
                              const uint8_t *elements, brc_error *err)
{
    const uint64_t n = (uint64_t)out->length;
    const size_t stride = form->item + 1;
    int64_t zeros;
    BRC_TRY(bits_of_bytes(&g->own[0], elements, n, stride, &out->null_count, err));
    if (form->values == BRC_ARROW_BITS)
        return bits_of_bytes(&g->own[1], elements + 1, n, stride, &zeros, err);
    BRC_TRY(brc_new_array(&g->own[1], (size_t)n + 1, form->item, err));
    for (uint64_t i = 0; i < n; i++)
        memcpy((uint8_t *)g->own[1] + i * form->item, elements + i * stride + 1, form->item);
    return BRC_OK;
}

static int values_of_fixed(given_array *g, struct ArrowArray *out, const brc_arrow_form *form,
                           elements_read *e, brc_error *err)
{
    const uint8_t *data = e->tensor->info.data;
    int64_t zeros;
    out->n_buffers = 2;
    if (form->is_optional) {
        BRC_TRY(values_of_optional(g, out, form, data, err));
    } else if (form->values == BRC_ARROW_BITS) {
        BRC_TRY(bits_of_bytes(&g->own[1], data, (uint64_t)out->length, 1, &zeros, err));
    } else {
        if (form->values == BRC_ARROW_TIME)
            BRC_TRY(validity_of_times(g, &out->null_count, data, (uint64_t)out->length, err));
        g->tensor = e->tensor;
        e->tensor = NULL;
    }
    g->buffers[0] = g->own[0];
    g->buffers[1] = g->tensor != NULL ? data : g->own[1];
    return BRC_OK;
}

/* Elements of variable length: the bytes without their lengths, which become offsets. */
static int values_of_variable(given_array *g, struct ArrowArray *out, const brc_arrow_form *form,
                              const elements_read *e, brc_error *err)
{
    const uint64_t n = (uint64_t)out->length;
    uint64_t at = 0;
    size_t from = 0;
    out->n_buffers = 3;
    if (form->is_optional)
        BRC_TRY(bits_new(&g->own[0], n, err));
    BRC_TRY(brc_new_array(&g->own[1], (size_t)n + 1, sizeof(int64_t), err));
    BRC_TRY(brc_new_array(&g->own[2], e->packed.len + 1, 1, err));
    int64_t *offsets = g->own[1];
    uint8_t *bytes = g->own[2];
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *element = e->packed.data + from + 4;
        size_t len = brc_get_u32le(e->packed.data + from);
        from += 4 + len;
        const size_t skip = form->is_optional && len > 0;
        if (form->is_optional && len > 0)
            set_bit(g->own[0], i);
        out->null_count += form->is_optional && len == 0;
        if (len > skip)
            memcpy(bytes + at, element + skip, len - skip);
        at += len - skip;
        offsets[i + 1] = (int64_t)at;
    }
    g->buffers[0] = g->own[0];
    g->buffers[1] = offsets;
    g->buffers[2] = bytes;
    return BRC_OK;
}

static int arrow_array_of(struct ArrowArray *out, const brc_arrow_form *form,
                          const list_axes *lists, uint64_t length, elements_read *e,
                          brc_error *err)
{
    struct ArrowArray *at = out;
    int rc;
    for (int i = 0; i <= lists->n; i++) {
        rc = array_new(at, (int64_t)length, i < lists->n, err);
        if (rc < 0) {
            at->release = NULL;
            goto failed;
        }
        if (i < lists->n)
            length *= lists->len[i];
        given_array *g = at->private_data;
        if (i == lists->n)
            rc = form->values == BRC_ARROW_BYTES ? values_of_variable(g, at, form, e, err)
                                                 : values_of_fixed(g, at, form, e, err);
        if (rc < 0)
            goto failed;
        at = &g->child;
    }
    return BRC_OK;
failed:
    if (out->release != NULL)
        out->release(out);
    return rc;
}

/* ---- reading -------------------------------- */

/* The length of the first axis, and the lists within; a single element is an array of one. */
static void arrow_axes(const brc_sel *sel, const brc_arrow_form *form, uint64_t *length,
                       list_axes *lists)
{
    int axes = 0;
    *length = 1;
    lists->n = 0;
    for (int i = 0; i < sel->ndim; i++) {
        if ((sel->drop >> i & 1) != 0)
            continue;
        if (axes++ == 0)
            *length = sel->count[i];
        else
            lists->len[lists->n++] = sel->count[i];
    }
    if (form->pair > 1)
        lists->len[lists->n++] = form->pair;
}

static int read_for_arrow(elements_read *e, brc_array *a, const brc_tensor_opts *opts,
                          const brc_arrow_form *form, brc_error *err)
{
    if (form->values == BRC_ARROW_BYTES) {
        const brc_io io = {.size = sizeof(io), .array = a, .sel = opts->sel, .out = &e->packed,
                           .stats = opts->stats};
        return brc_read(&io, 1, err);
    }
    brc_tensor_opts own = *opts;
    own.flags = 0;
    BRC_TRY(brc_tensor_read(&e->tensor, a, &own, err));
    if (e->tensor->info.flags & BRC_TENSOR_HOST)
        return BRC_OK;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: Arrow's data are in the host's memory: name \"host\" or \"pool\"",
                    a->path);
}

/* Reads one selection, which fits the array. */
static int arrow_read_sel(struct ArrowArray *out, brc_array *a, const brc_tensor_opts *opts,
                          const brc_arrow_form *form, brc_error *err)
{
    list_axes lists;
    uint64_t length;
    elements_read e = {NULL, BRC_BUF_INIT, 0};
    int rc = read_for_arrow(&e, a, opts, form, err);
    arrow_axes(opts->sel, form, &length, &lists);
    if (rc == BRC_OK)
        rc = arrow_array_of(out, form, &lists, length, &e, err);
    brc_tensor_free(e.tensor);
    brc_buf_dispose(&e.packed);
    return rc;
}

static const char *name_of(const brc_array *a)
{
    const char *slash = strrchr(a->path, '/');
    return slash != NULL ? slash + 1 : a->path;
}

static int arrow_opts(brc_tensor_opts *out, brc_sel *sel, const brc_array *a,
                      const brc_tensor_opts *given, uint32_t flags, brc_error *err)
{
    BRC_TRY(brc_sized_in(out, sizeof(*out), sizeof(*out), given, "brc_tensor_opts", err));
    BRC_TRY(brc_flags_check(out->flags, flags, "brc_tensor_opts", err));
    if (out->at != NULL)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s: Arrow's data are boxes: positions are not read",
                        a->path);
    if (out->sel != NULL)
        BRC_TRY(brc_sized_in(sel, sizeof(*sel), sizeof(*sel), out->sel, "brc_sel", err));
    else
        brc_sel_of_shape(sel, a->meta.ndim, a->meta.shape);
    BRC_TRY(brc_sel_check(sel, a->meta.ndim, a->meta.shape, err));
    out->sel = sel;
    return BRC_OK;
}

static int arrow_read_now(struct ArrowArray *array, struct ArrowSchema *schema, brc_array *a,
                          const brc_tensor_opts *given, brc_error *err)
{
    brc_tensor_opts opts;
    brc_sel sel;
    brc_arrow_form form;
    list_axes lists;
    uint64_t length;
    BRC_TRY(arrow_opts(&opts, &sel, a, given, 0, err));
    BRC_TRY(brc_arrow_form_of(&form, a, err));
    arrow_axes(&sel, &form, &length, &lists);
    if (schema != NULL)
        BRC_TRY(schema_of(schema, &form, &lists, name_of(a), err));
    const int rc = array != NULL ? arrow_read_sel(array, a, &opts, &form, err) : BRC_OK;
    if (rc < 0 && schema != NULL)
        schema->release(schema);
    return rc;
}

int brc_arrow_read(struct ArrowArray *array, struct ArrowSchema *schema, brc_array *a,
                   const brc_tensor_opts *opts, brc_error *err)
{
    if (array != NULL)
        array->release = NULL;
    if (schema != NULL)
        schema->release = NULL;
    BRC_TRY(brc_array_begin_read(a, err));
    const int rc = arrow_read_now(array, schema, a, opts, err);
    brc_array_end_read(a);
    return rc;
}

/* ---- streams -------------------------------- */

/* A stream of rows along the first axis that is not dropped. */
typedef struct arrow_stream {
    brc_array *array;   /* NULL: everything is in `ready`                        */
    brc_tensor_opts opts;
    brc_sel sel;        /* what is left                                          */
    int axis;           /* -1: one element                                       */
    uint64_t rows, step; /* that are left; of a batch                            */
    brc_arrow_form form;
    struct ArrowSchema schema;
    struct ArrowArray *ready; /* batches that were read, from `at` on            */
    size_t nready, at, cap;
    char *prototype;
    brc_error err;
} arrow_stream;

static void arrow_stream_free(arrow_stream *s)
{
    for (size_t i = s->at; i < s->nready; i++)
        s->ready[i].release(&s->ready[i]);
    if (s->schema.release != NULL)
        s->schema.release(&s->schema);
    free(s->ready);
    free(s->prototype);
    brc_array_free(s->array);
    free(s);
}

/* Rows of whole chunks, of about 1 MiB or one chunk. */
static uint64_t rows_of_batch(const brc_array *a, const brc_sel *sel, int axis)
{
    enum { BATCH = 1 << 20 };
    const uint64_t chunk = brc_grid_round_up(&a->meta.grid, axis, 1), step = sel->step[axis];
    uint64_t rows = chunk > step ? chunk / step : 1, row = a->meta.type->item_size;
    row = row == 0 ? BRC_VARIABLE_BYTES : row;
    for (int i = 0; i < sel->ndim; i++)
        if (i != axis)
            row = brc_mul_capped(row, sel->count[i]);
    while (rows < sel->count[axis] && brc_mul_capped(brc_mul_capped(rows, 2), row) <= BATCH)
        rows *= 2;
    return rows;
}

static int stream_step(arrow_stream *s, struct ArrowArray *out, brc_error *err)
{
    struct ArrowArray column = {.length = 0};
    brc_tensor_opts opts = s->opts;
    brc_sel sel = s->sel;
    const uint64_t rows = s->rows < s->step ? s->rows : s->step;
    out->release = NULL;
    if (s->rows == 0)
        return BRC_OK;
    if (s->axis >= 0)
        sel.count[s->axis] = rows;
    opts.sel = &sel;
    BRC_TRY(arrow_read_sel(&column, s->array, &opts, &s->form, err));
    const int rc = array_new(out, column.length, 1, err);
    if (rc < 0) {
        column.release(&column);
        out->release = NULL;
        return rc;
    }
    ((given_array *)out->private_data)->child = column;
    if (s->axis >= 0)
        s->sel.start[s->axis] += rows * sel.step[s->axis];
    s->rows -= rows;
    return BRC_OK;
}

static int stream_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    arrow_stream *s = self->private_data;
    list_axes lists;
    uint64_t length;
    out->release = NULL;
    arrow_axes(&s->sel, &s->form, &length, &lists);
    int rc = schema_new(out, "+s", "", 1, &s->err);
    if (rc < 0) {
        out->release = NULL;
        return ENOMEM;
    }
    rc = schema_of(&((given_schema *)out->private_data)->child, &s->form, &lists, s->schema.name,
                   &s->err);
    if (rc == BRC_OK)
        return 0;
    out->release(out);
    return ENOMEM;
}

static int stream_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    arrow_stream *s = self->private_data;
    if (s->array == NULL) {
        out->release = NULL;
        if (s->at < s->nready)
            *out = s->ready[s->at++];
        return 0;
    }
    int rc = brc_array_begin_read(s->array, &s->err);
    if (rc == BRC_OK) {
        rc = stream_step(s, out, &s->err);
        brc_array_end_read(s->array);
    }
    return rc == BRC_OK ? 0 : rc == BRC_ENOMEM ? ENOMEM : rc == BRC_EINVAL ? EINVAL : EIO;
}

static const char *stream_error(struct ArrowArrayStream *self)
{
    const arrow_stream *s = self->private_data;
    return s->err.message[0] != '\0' ? s->err.message : NULL;
}

static void stream_release(struct ArrowArrayStream *self)
{
    arrow_stream_free(self->private_data);
    self->release = NULL;
}

/* Reads all batches. */
static int stream_fill(arrow_stream *s, brc_error *err)
{
    while (s->rows > 0) {
        BRC_TRY(brc_grow_array((void **)&s->ready, &s->cap, s->nready + 1, sizeof(*s->ready), err));
        BRC_TRY(stream_step(s, &s->ready[s->nready], err));
        s->nready++;
    }
    return BRC_OK;
}

static int stream_begin(arrow_stream *s, brc_array *a, const brc_tensor_opts *given, brc_error *err)
{
    BRC_TRY(arrow_opts(&s->opts, &s->sel, a, given, BRC_READ_NOW, err));
    BRC_TRY(brc_arrow_form_of(&s->form, a, err));
    BRC_TRY(schema_new(&s->schema, "+s", name_of(a), 0, err));
    if (s->opts.prototype != NULL) {
        BRC_TRY(brc_dup(&s->prototype, s->opts.prototype, err));
        s->opts.prototype = s->prototype;
    }
    s->axis = -1;
    s->rows = s->step = 1;
    for (int i = s->sel.ndim - 1; i >= 0; i--)
        if ((s->sel.drop >> i & 1) == 0)
            s->axis = i;
    if (s->axis >= 0) {
        s->rows = s->sel.count[s->axis];
        s->step = rows_of_batch(a, &s->sel, s->axis);
    }
    const int now = (s->opts.flags & BRC_READ_NOW) != 0;
    s->opts.flags = 0;
    if (!now) {
        s->opts.stats = NULL; /* the caller's may be gone by then */
        return brc_array_freeze(&s->array, a, err);
    }
    s->array = a;
    const int rc = stream_fill(s, err);
    s->array = NULL;
    return rc;
}

int brc_arrow_stream(struct ArrowArrayStream *out, brc_array *a, const brc_tensor_opts *opts,
                     brc_error *err)
{
    void *p;
    out->release = NULL;
    BRC_TRY(brc_new(&p, sizeof(arrow_stream), err));
    arrow_stream *s = p;
    s->err = (brc_error)BRC_ERROR_INIT;
    int rc = brc_array_begin_read(a, err);
    if (rc == BRC_OK) {
        rc = stream_begin(s, a, opts, err);
        brc_array_end_read(a);
    }
    if (rc < 0) {
        arrow_stream_free(s);
        return rc;
    }
    *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
    return BRC_OK;
}
