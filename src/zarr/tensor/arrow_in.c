/*
 * Elements from Arrow's C data interface.
 *
 * Invariant: lengths, offsets and the nesting of what comes are checked before anything of it is
 * used; the interface does not say how long buffers are, so the pointers have to be believed.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/sized.h"
#include "arrow.h"

/* The values of an array, through all its lists. */
typedef struct arrow_values {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    uint64_t from, n; /* values, counted in its buffers */
} arrow_values;

static int arrow_is_wrong(const brc_array *a, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "%s: the Arrow array %s", a->path, what);
}

/* Tells whether a list or a value is null. */
static int is_null(const struct ArrowArray *x, uint64_t i)
{
    const uint8_t *validity = x->n_buffers > 0 && x->buffers != NULL ? x->buffers[0] : NULL;
    return x->null_count != 0 && validity != NULL && (validity[i / 8] >> i % 8 & 1) == 0;
}

static int check_node(const brc_array *a, const struct ArrowSchema *s, const struct ArrowArray *x,
                      brc_error *err)
{
    if (s == NULL || x == NULL || s->release == NULL || x->release == NULL || s->format == NULL)
        return arrow_is_wrong(a, "was released, or is incomplete", err);
    if (s->dictionary != NULL || x->dictionary != NULL)
        return arrow_is_wrong(a, "has a dictionary: give it the values themselves", err);
    if (x->length < 0 || x->offset < 0 || x->length > INT64_MAX / 2 || x->offset > INT64_MAX / 2 ||
        x->null_count < -1 || x->null_count > x->length || x->n_buffers < 0 || x->n_buffers > 3 ||
        x->n_children < 0 || s->n_children != x->n_children)
        return arrow_is_wrong(a, "has numbers that contradict each other", err);
    if (x->n_buffers > 0 && x->buffers == NULL)
        return arrow_is_wrong(a, "has no buffers", err);
    return BRC_OK;
}

/* Reads the N of "+w:N". */
static int list_length(const char *format, uint64_t *out)
{
    *out = 0;
    if (format[3] == '\0')
        return 0;
    for (const char *at = format + 3; *at != '\0'; at++)
        if (*at < '0' || *at > '9' || !brc_mul_u64(*out, 10, out) ||
            !brc_add_u64(*out, (uint64_t)(*at - '0'), out))
            return 0;
    return 1;
}

/* Steps into a list of fixed length. */
static int enter_list(arrow_values *v, const brc_array *a, uint64_t want, brc_error *err)
{
    uint64_t len;
    if (strncmp(v->schema->format, "+w:", 3) != 0 || !list_length(v->schema->format, &len) ||
        len != want || v->array->n_children != 1 || v->schema->children == NULL ||
        v->array->children == NULL)
        return arrow_is_wrong(a, "does not have the selection's axes as lists of fixed length",
                              err);
    for (uint64_t i = 0; i < v->n && v->array->null_count != 0; i++)
        if (is_null(v->array, v->from + i))
            return arrow_is_wrong(a, "has a list that is null", err);
    v->schema = v->schema->children[0];
    v->array = v->array->children[0];
    BRC_TRY(check_node(a, v->schema, v->array, err));
    uint64_t from, end;
    if (!brc_mul_u64(v->from, len, &from) || !brc_mul_u64(v->n, len, &v->n) ||
        !brc_add_u64(from, v->n, &end) || end > (uint64_t)v->array->length ||
        !brc_add_u64(from, (uint64_t)v->array->offset, &v->from))
        return arrow_is_wrong(a, "has fewer values than its lists need", err);
    return BRC_OK;
}

/* Finds the values of a selection. */
static int find_values(arrow_values *v, const brc_array *a, const brc_sel *sel,
                       const brc_arrow_form *form, brc_error *err)
{
    int axes = 0;
    BRC_TRY(check_node(a, v->schema, v->array, err));
    v->from = (uint64_t)v->array->offset;
    v->n = (uint64_t)v->array->length;
    for (int i = 0; i < sel->ndim; i++) {
        if ((sel->drop >> i & 1) != 0)
            continue;
        if (axes++ > 0)
            BRC_TRY(enter_list(v, a, sel->count[i], err));
        else if (sel->count[i] != v->n)
            return arrow_is_wrong(a, "does not have as many elements as the selection", err);
    }
    if (axes == 0 && v->n != 1)
        return arrow_is_wrong(a, "does not have as many elements as the selection", err);
    return form->pair > 1 ? enter_list(v, a, form->pair, err) : BRC_OK;
}

/* Finds a null where the array cannot have one. */
static int check_nulls(const arrow_values *v, const brc_array *a, brc_error *err)
{
    for (uint64_t i = 0; i < v->n && v->array->null_count != 0; i++)
        if (is_null(v->array, v->from + i))
            return brc_fail(err, BRC_EINVAL,
                            "%s: value %llu of the Arrow array is null, which elements of %s "
                            "cannot be",
                            a->path, (unsigned long long)i, a->meta.type->name);
    return BRC_OK;
}

/* ---- elements -------------------------------- */

static int64_t offset_at(const void *offsets, int is_large, uint64_t i)
{
    int32_t small;
    int64_t large;
    if (is_large) {
        memcpy(&large, (const uint8_t *)offsets + i * sizeof(large), sizeof(large));
        return large;
    }
    memcpy(&small, (const uint8_t *)offsets + i * sizeof(small), sizeof(small));
    return small;
}

static int put_packed(brc_buf *out, const uint8_t *data, uint64_t len, int is_optional,
                       brc_error *err)
{
    const uint64_t whole = len + (uint64_t)is_optional;
    const uint8_t head[5] = {(uint8_t)whole, (uint8_t)(whole >> 8), (uint8_t)(whole >> 16),
                             (uint8_t)(whole >> 24), 1};
    if (whole > UINT32_MAX)
        return brc_fail(err, BRC_ELIMIT, "an element has more than 2^32 - 1 bytes");
    BRC_TRY(brc_buf_append(out, head, 4 + (size_t)is_optional, err));
    return len > 0 ? brc_buf_append(out, data, (size_t)len, err) : BRC_OK;
}

/* Packs elements of variable length. */
static int pack_variable(brc_buf *out, const arrow_values *v, const brc_array *a,
                         const brc_arrow_form *form, brc_error *err)
{
    const char f = v->schema->format[0];
    const int is_large = f == 'U' || f == 'Z';
    const int is_text = f == 'U' || f == 'u';
    if (strchr("UuZz", f) == NULL || f == '\0' || v->schema->format[1] != '\0' ||
        (form->format[0] == 'U' && !is_text))
        return arrow_is_wrong(a, "has elements of another type", err);
    const void *offsets = v->array->n_buffers == 3 ? v->array->buffers[1] : NULL;
    const uint8_t *data = v->array->n_buffers == 3 ? v->array->buffers[2] : NULL;
    if (v->n > 0 && offsets == NULL)
        return arrow_is_wrong(a, "has no offsets", err);
    for (uint64_t i = v->from; i < v->from + v->n; i++) {
        const int64_t at = offset_at(offsets, is_large, i);
        const int64_t end = offset_at(offsets, is_large, i + 1);
        if (at < 0 || end < at || (end > at && data == NULL))
            return arrow_is_wrong(a, "has offsets that decrease, or no bytes", err);
        const int none = form->is_optional && is_null(v->array, i);
        BRC_TRY(none ? put_packed(out, NULL, 0, 0, err)
                     : put_packed(out, data != NULL ? data + at : NULL, (uint64_t)(end - at),
                                   form->is_optional, err));
    }
    return BRC_OK;
}

/* Makes elements that do not lie as the array has them: of bits, and optional ones. */
static void make_fixed(uint8_t *to, const arrow_values *v, const brc_arrow_form *form)
{
    const uint8_t *data = v->array->buffers[1];
    const size_t stride = form->item + (size_t)form->is_optional;
    for (uint64_t k = 0; k < v->n; k++, to += stride) {
        const uint64_t i = v->from + k;
        if (form->is_optional && is_null(v->array, i)) {
            memset(to, 0, stride);
            continue;
        }
        to[0] = 1;
        if (form->values == BRC_ARROW_BITS)
            to[form->is_optional] = data[i / 8] >> i % 8 & 1;
        else
            memcpy(to + form->is_optional, data + i * form->item, form->item);
    }
}

/* Times that are null become not-a-time. */
static void make_times(uint8_t *to, const arrow_values *v)
{
    const int64_t none = INT64_MIN;
    const uint8_t *data = v->array->buffers[1];
    for (uint64_t k = 0; k < v->n; k++) {
        const uint64_t i = v->from + k;
        memcpy(to + k * sizeof(none),
               is_null(v->array, i) ? (const uint8_t *)&none : data + i * sizeof(none),
               sizeof(none));
    }
}

static int write_fixed(brc_array *a, const arrow_values *v, const brc_arrow_form *form, brc_io *io,
                       brc_buffer *buffer, brc_error *err)
{
    void *made = NULL;
    const size_t element = form->item + (size_t)form->is_optional;
    const int has_nulls = v->array->null_count != 0;
    uint64_t len;
    if (strcmp(v->schema->format, form->format) != 0)
        return arrow_is_wrong(a, "has elements of another type", err);
    if (v->array->n_buffers != 2 || (v->n > 0 && v->array->buffers[1] == NULL))
        return arrow_is_wrong(a, "has no values", err);
    if (!brc_mul_u64(v->n, element, &len) || !brc_to_size(len, &buffer->len))
        return brc_fail(err, BRC_ELIMIT, "%s: the Arrow array is too large for memory", a->path);
    if (!form->is_optional && form->values != BRC_ARROW_TIME)
        BRC_TRY(check_nulls(v, a, err));
    if (form->is_optional || form->values == BRC_ARROW_BITS ||
        (form->values == BRC_ARROW_TIME && has_nulls)) {
        BRC_TRY(brc_new_array(&made, (size_t)v->n + 1, element, err));
        if (form->values == BRC_ARROW_TIME && !form->is_optional)
            make_times(made, v);
        else
            make_fixed(made, v, form);
        buffer->data = made;
    } else if (v->n > 0) { /* straight from Arrow's memory */
        buffer->data = (uint8_t *)(uintptr_t)v->array->buffers[1] + v->from * form->item;
    }
    const int rc = brc_write(io, 1, err);
    free(made);
    return rc;
}

static int write_variable(brc_array *a, const arrow_values *v, const brc_arrow_form *form,
                          brc_io *io, brc_buffer *buffer, brc_error *err)
{
    brc_buf packed = BRC_BUF_INIT;
    int rc = form->is_optional ? BRC_OK : check_nulls(v, a, err);
    if (rc == BRC_OK)
        rc = pack_variable(&packed, v, a, form, err);
    buffer->data = packed.data;
    buffer->len = packed.len;
    if (rc == BRC_OK)
        rc = brc_write(io, 1, err);
    brc_buf_dispose(&packed);
    return rc;
}

int brc_arrow_write(brc_array *a, const struct ArrowSchema *schema, const struct ArrowArray *array,
                    const brc_tensor_opts *given, brc_error *err)
{
    brc_tensor_opts opts;
    brc_sel sel;
    brc_arrow_form form;
    arrow_values v = {schema, array, 0, 0};
    BRC_TRY(brc_array_begin_read(a, err));
    brc_array_end_read(a);
    BRC_TRY(brc_sized_in(&opts, sizeof(opts), sizeof(opts), given, "brc_tensor_opts", err));
    if (opts.at != NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: an Arrow array is written to a box, not to positions", a->path);
    if (opts.sel != NULL)
        BRC_TRY(brc_sized_in(&sel, sizeof(sel), sizeof(sel), opts.sel, "brc_sel", err));
    else
        brc_sel_of_shape(&sel, a->meta.ndim, a->meta.shape);
    BRC_TRY(brc_sel_check(&sel, a->meta.ndim, a->meta.shape, err));
    BRC_TRY(brc_arrow_form_of(&form, a, err));
    BRC_TRY(find_values(&v, a, &sel, &form, err));
    brc_buffer buffer = {.size = sizeof(buffer)};
    brc_io io = {.size = sizeof(io), .array = a, .sel = &sel, .buffer = &buffer,
                 .stats = opts.stats};
    return form.values == BRC_ARROW_BYTES ? write_variable(a, &v, &form, &io, &buffer, err)
                                          : write_fixed(a, &v, &form, &io, &buffer, err);
}
