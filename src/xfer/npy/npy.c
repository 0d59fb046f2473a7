/* Reads and writes .npy files and their header, see npy.h. */
#include "npy.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/file.h"
#include "../../base/sized.h"
#include "../../nd/shape.h"
#include "../../work/bulk_write.h"
#include "../../work/session.h"
#include "../../zarr/array/array.h"
#include "../../zarr/transfer.h"
#include "../elements.h"

/* ==== npy header ================================ */

#define NPY_NESTING_MAX 64

typedef struct npy_text {
    const char *start, *at, *end;
    brc_error *err;
} npy_text;

static int bad_literal(npy_text *t, const char *what)
{
    return brc_fail(t->err, BRC_EINVAL, "bad .npy header at its byte %zu: %s",
                    (size_t)(t->at - t->start), what);
}

static void skip_blanks(npy_text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\n' || *t->at == '\r'))
        t->at++;
}

/* Returns 1 and steps past the next character if it is `c`. */
static int npy_take_char(npy_text *t, char c)
{
    skip_blanks(t);
    if (t->at == t->end || *t->at != c)
        return 0;
    t->at++;
    return 1;
}

static int npy_take_word(npy_text *t, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) < n || memcmp(t->at, word, n) != 0)
        return 0;
    t->at += n;
    return 1;
}

/* Takes a string in single or double quotes; NumPy never wrote an escape in a key or a simple
 * type. */
static int npy_take_string(npy_text *t, const char **out, size_t *len)
{
    skip_blanks(t);
    if (t->at == t->end || (*t->at != '\'' && *t->at != '"'))
        return bad_literal(t, "a string is expected");
    char quote = *t->at++;
    *out = t->at;
    while (t->at < t->end && *t->at != quote) {
        if (*t->at == '\\' || (unsigned char)*t->at < 0x20)
            return bad_literal(t, "a character that is not allowed in a string");
        t->at++;
    }
    if (t->at == t->end)
        return bad_literal(t, "a string has no end");
    *len = (size_t)(t->at - *out);
    t->at++;
    return BRC_OK;
}

/* Skips a quoted string of any content, in the descr of a structured type. */
static int skip_quoted(npy_text *t)
{
    char quote = *t->at++;
    while (t->at < t->end && *t->at != quote)
        t->at += *t->at == '\\' && t->end - t->at > 1 ? 2 : 1;
    if (t->at == t->end)
        return bad_literal(t, "a string has no end");
    t->at++;
    return BRC_OK;
}

/* Skips a list or tuple. */
static int skip_nested(npy_text *t)
{
    char closing[NPY_NESTING_MAX];
    int depth = 0;
    do {
        if (t->at == t->end)
            return bad_literal(t, "a list has no end");
        char c = *t->at;
        if (c == '\'' || c == '"') {
            BRC_TRY(skip_quoted(t));
            continue;
        }
        if ((c == '[' || c == '(') && depth == NPY_NESTING_MAX)
            return bad_literal(t, "lists are nested too deeply");
        if (c == '[' || c == '(')
            closing[depth++] = c == '[' ? ']' : ')';
        else if ((c == ']' || c == ')') && closing[--depth] != c)
            return bad_literal(t, "brackets do not match");
        t->at++;
    } while (depth > 0);
    return BRC_OK;
}

static int parse_descr(npy_text *t, brc_npy_header *out)
{
    skip_blanks(t);
    if (t->at < t->end && (*t->at == '[' || *t->at == '(')) {
        out->structured = 1;
        out->descr = t->at;
        BRC_TRY(skip_nested(t));
        out->descr_len = (size_t)(t->at - out->descr);
        return BRC_OK;
    }
    return npy_take_string(t, &out->descr, &out->descr_len);
}

static int parse_order(npy_text *t, brc_npy_header *out)
{
    if (npy_take_word(t, "True"))
        out->fortran = 1;
    else if (!npy_take_word(t, "False"))
        return bad_literal(t, "True or False is expected");
    return BRC_OK;
}

static int take_extent(npy_text *t, uint64_t *out)
{
    skip_blanks(t);
    const char *first = t->at;
    uint64_t value = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*t->at - '0'), &value))
            return brc_fail(t->err, BRC_ELIMIT,
                            "an extent in the .npy header does not fit 64 bits");
    if (t->at == first)
        return bad_literal(t, "a whole number is expected");
    if (*first == '0' && t->at - first > 1)
        return bad_literal(t, "a number begins with 0");
    if (t->at < t->end && *t->at == 'L') /* Python 2 wrote its long integers like this */
        t->at++;
    *out = value;
    return BRC_OK;
}

/* Parses (), (3,), (3, 4) and (3, 4, ); (3) is a number to Python, not a tuple. */
static int parse_shape(npy_text *t, brc_npy_header *out)
{
    int comma = 1;
    if (!npy_take_char(t, '('))
        return bad_literal(t, "a tuple is expected");
    while (!npy_take_char(t, ')')) {
        if (!comma)
            return bad_literal(t, "a comma is expected");
        if (out->ndim == BRC_MAX_NDIM)
            return brc_fail(t->err, BRC_ELIMIT, "the array has more than %d axes", BRC_MAX_NDIM);
        BRC_TRY(take_extent(t, &out->shape[out->ndim]));
        out->ndim++;
        comma = npy_take_char(t, ',');
    }
    if (out->ndim == 1 && !comma)
        return bad_literal(t, "a tuple of one needs a comma");
    return BRC_OK;
}

static int parse_member(npy_text *t, brc_npy_header *out, unsigned *seen)
{
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    static int (*const values[])(npy_text *, brc_npy_header *) = { parse_descr, parse_order,
                                                                   parse_shape };
    const char *key;
    size_t len;

    BRC_TRY(npy_take_string(t, &key, &len));
    for (unsigned i = 0; i < 3; i++) {
        if (strlen(keys[i]) != len || memcmp(keys[i], key, len) != 0)
            continue;
        if (*seen & 1U << i)
            return bad_literal(t, "a key is there twice");
        *seen |= 1U << i;
        if (!npy_take_char(t, ':'))
            return bad_literal(t, "a colon is expected");
        return values[i](t, out);
    }
    return bad_literal(t, "a key other than descr, fortran_order and shape");
}

int brc_npy_header_parse(brc_npy_header *out, const char *text, size_t len, brc_error *err)
{
    npy_text t = { text, text, text + len, err };
    unsigned seen = 0;
    int comma = 1;

    memset(out, 0, sizeof(*out));
    if (!npy_take_char(&t, '{'))
        return bad_literal(&t, "a dictionary is expected");
    while (!npy_take_char(&t, '}')) {
        if (!comma)
            return bad_literal(&t, "a comma is expected");
        BRC_TRY(parse_member(&t, out, &seen));
        comma = npy_take_char(&t, ',');
    }
    if (seen != 7)
        return bad_literal(&t, "descr, fortran_order or shape is missing");
    skip_blanks(&t);
    if (t.at != t.end)
        return bad_literal(&t, "there is text after the dictionary");
    return BRC_OK;
}

static int write_dictionary(brc_buf *out, const char *descr, int ndim, const uint64_t *shape,
                            brc_error *err)
{
    const char *quote = descr[0] == '[' ? "" : "'"; /* a list of fields is written without quotes */
    BRC_TRY(brc_buf_text(out, "{'descr': ", err));
    BRC_TRY(brc_buf_text(out, quote, err));
    BRC_TRY(brc_buf_text(out, descr, err));
    BRC_TRY(brc_buf_text(out, quote, err));
    BRC_TRY(brc_buf_text(out, ", 'fortran_order': False, 'shape': (", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(
            brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "", (unsigned long long)shape[i]));
    return brc_buf_text(out, ndim == 1 ? ",), }" : "), }", err);
}

int brc_npy_header_write(brc_buf *out, const char *descr, int ndim, const uint64_t *shape,
                         brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    uint8_t prefix[BRC_NPY_MAGIC_LEN + 6] = BRC_NPY_MAGIC;
    size_t prefix_len = BRC_NPY_MAGIC_LEN + 4;
    int rc;

    BRC_GO(write_dictionary(&text, descr, ndim, shape, err));
    if (prefix_len + text.len + 64 > UINT16_MAX)
        prefix_len += 2;
    while ((prefix_len + text.len + 1) % 64 != 0)
        BRC_GO(brc_buf_byte(&text, ' ', err));
    BRC_GO(brc_buf_byte(&text, '\n', err));
    prefix[BRC_NPY_MAGIC_LEN] = prefix_len == BRC_NPY_MAGIC_LEN + 4 ? 1 : 2;
    uint8_t length[4];
    brc_put_u32le(length, (uint32_t)text.len);
    memcpy(prefix + BRC_NPY_MAGIC_LEN + 2, length, prefix_len - BRC_NPY_MAGIC_LEN - 2);
    BRC_GO(brc_buf_append(out, prefix, prefix_len, err));
    BRC_GO(brc_buf_append(out, text.data, text.len, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ==== npy ================================ */

/* Reads .npy files, with the two public functions for them. */

/* Reads the bytes before the header. Sets *len to the length of the header's text. */
static int read_prefix(brc_input *in, uint32_t *len, brc_error *err)
{
    uint8_t prefix[BRC_NPY_MAGIC_LEN + 2], length[4] = { 0 };
    BRC_TRY(brc_input_exact(in, prefix, sizeof(prefix), err));
    if (memcmp(prefix, BRC_NPY_MAGIC, BRC_NPY_MAGIC_LEN) != 0)
        return brc_fail(err, BRC_EINVAL, "%s does not begin like a .npy file", in->name);
    int major = prefix[BRC_NPY_MAGIC_LEN], minor = prefix[BRC_NPY_MAGIC_LEN + 1];
    if (major < 1 || major > 3 || minor != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is .npy version %d.%d: 1.0, 2.0 and 3.0 can be read", in->name, major,
                        minor);
    BRC_TRY(brc_input_exact(in, length, major == 1 ? 2 : 4, err));
    *len = brc_get_u32le(length);
    if (in->size != BRC_LEN_VARIES && *len > in->size - in->taken)
        return brc_fail(err, BRC_EINVAL, "%s: its header of %lu bytes is longer than the file",
                        in->name, (unsigned long)*len);
    if (*len > BRC_NPY_HEADER_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: its header of %lu bytes is longer than %lu", in->name,
                        (unsigned long)*len, (unsigned long)BRC_NPY_HEADER_MAX);
    return BRC_OK;
}

static int open_descr(brc_elements *out, const brc_npy_header *h, const brc_registry *reg,
                      brc_error *err)
{
    char *descr = NULL;
    int shown = h->descr_len < 200 ? (int)h->descr_len : 200;
    size_t kind = h->descr_len > 0 && strchr("<>|=", h->descr[0]) ? 1 : 0;

    if (!h->structured && h->descr_len > kind && h->descr[kind] == 'O')
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "its type %.*s is Python objects: pickles are never read", shown, h->descr);
    if ((!h->structured && h->descr_len >= 64) || memchr(h->descr, 0, h->descr_len))
        return brc_fail(err, BRC_EUNSUPPORTED, "NumPy has no data type like %.*s", shown, h->descr);
    BRC_TRY(brc_dup_n(&descr, h->descr, h->descr_len, err));
    int rc = brc_dtype_open_npy(&out->type, &out->big, reg, descr, err);
    free(descr);
    return rc;
}

int brc_npy_open(brc_elements *out, brc_input *in, const brc_registry *reg, brc_error *err)
{
    brc_npy_header header;
    char *text = NULL;
    uint32_t len = 0;

    memset(out, 0, sizeof(*out));
    BRC_TRY(read_prefix(in, &len, err));
    BRC_TRY(brc_new((void **)&text, len, err));
    int rc = brc_input_exact(in, text, len, err);
    if (rc == BRC_OK) {
        rc = brc_npy_header_parse(&header, text, len, err);
        if (rc == BRC_OK)
            rc = open_descr(out, &header, reg, err);
        if (rc < 0)
            brc_context(err, "%s", in->name);
    }
    free(text);
    BRC_TRY(rc);
    out->fortran = header.fortran;
    out->ndim = header.ndim;
    memcpy(out->shape, header.shape, sizeof(out->shape));
    if (out->type->item_size == 0)
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s: its data type has no fixed size", in->name);
    else
        rc = brc_elements_measure(out, in, err);
    if (rc < 0)
        brc_elements_free(out);
    return rc;
}

/* ---- loading into an existing array --------------------------------------- */

static int check_type(const brc_array_info *info, const brc_elements *e, const brc_registry *reg,
                      const char *file, brc_error *err)
{
    brc_dtype *type;
    BRC_TRY(brc_array_dtype_open(&type, reg, info, err));
    int same = type->npy && e->type->npy && strcmp(type->npy, e->type->npy) == 0;
    brc_dtype_free(type);
    if (!same)
        return brc_fail(err, BRC_EINVAL, "%s holds %s, the array %s is %s", file, e->type->json,
                        info->path, info->dtype);
    return BRC_OK;
}

static int append_shape_text(brc_buf *out, int ndim, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '(', err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(
            brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "", (unsigned long long)shape[i]));
    return brc_buf_byte(out, ')', err);
}

/* Fails with "x.npy has the shape (2, 3), the selection (3, 2)". */
static int wrong_shape(const brc_input *in, const brc_elements *e, const char *between, int ndim,
                       const uint64_t *shape, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(append_shape_text(&text, e->ndim, e->shape, err));
    BRC_GO(brc_buf_printf(&text, err, ", %s ", between));
    BRC_GO(append_shape_text(&text, ndim, shape, err));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = brc_fail(err, BRC_EINVAL, "%s has the shape %s", in->name, (const char *)text.data);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int load_selection(brc_array *a, const brc_sel *sel, const brc_elements *e, brc_input *in,
                          brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    uint64_t shape[BRC_MAX_NDIM];
    brc_sel all = BRC_SEL_INIT;
    int ndim = 0;

    if (!sel) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_TRY(brc_sel_check(sel, info->ndim, info->shape, err));
    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1))
            shape[ndim++] = sel->count[i];
    if (ndim != e->ndim || memcmp(shape, e->shape, (size_t)ndim * sizeof(shape[0])) != 0)
        return wrong_shape(in, e, "the selection", ndim, shape, err);
    BRC_TRY(brc_elements_write(a, sel, e, in, err));
    return brc_input_end(in, err);
}

/* Grows the array and writes the new part, like brc_array_append(), but without having all the data
 * in memory. */
static int load_append(brc_array *a, int axis, const brc_elements *e, brc_input *in, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    uint64_t shape[BRC_MAX_NDIM];
    int ndim = info->ndim;
    brc_sel sel = BRC_SEL_INIT;

    if (axis >= ndim)
        return brc_fail(err, BRC_EINVAL, "%s has %d axes: there is no axis %d", info->path, ndim,
                        axis);
    memcpy(shape, info->shape, (size_t)ndim * sizeof(shape[0]));
    uint64_t old = shape[axis];
    shape[axis] = e->ndim == ndim ? e->shape[axis] : 0;
    if (ndim != e->ndim || memcmp(shape, e->shape, (size_t)ndim * sizeof(shape[0])) != 0)
        return wrong_shape(in, e, "which cannot be appended to", ndim, info->shape, err);
    if (!brc_add_u64(old, e->shape[axis], &shape[axis]))
        return brc_fail(err, BRC_ELIMIT, "%s cannot grow past 64 bits", info->path);
    BRC_TRY(brc_array_resize(a, shape, err));
    brc_sel_all(&sel, a);
    sel.start[axis] = old;
    sel.count[axis] = e->shape[axis];
    BRC_TRY(brc_elements_write(a, &sel, e, in, err));
    return brc_input_end(in, err);
}

static int load_elements(brc_array *a, const brc_sel *sel, int axis, const brc_elements *e,
                         brc_input *in, brc_error *err)
{
    brc_session *s = brc_array_session(a);
    BRC_TRY(brc_bulk_start(s, err));
    int rc = axis >= 0 ? load_append(a, axis, e, in, err) : load_selection(a, sel, e, in, err);
    rc = brc_bulk_end_with(s, rc, err);
    if (rc < 0 && brc_array_begin_read(a, NULL) == BRC_OK)
        brc_array_end_read(a); /* its description has the old shape again */
    return rc;
}

int brc_array_load_npy(brc_array *a, const brc_sel *sel, int axis, const char *file, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    if (!a || !file)
        return brc_fail(err, BRC_EINVAL, "an array and a file's name are needed");
    const brc_registry *reg = brc_session_registry(brc_array_session(a));
    const breccia *repo = brc_session_repo(brc_array_session(a));
    BRC_GO(brc_check_file(brc_store_path(repo->store), file, err));
    BRC_GO(brc_input_open(&in, file, err));
    BRC_GO(brc_npy_open(&e, in, reg, err));
    BRC_GO(check_type(brc_array_describe(a), &e, reg, file, err));
    BRC_GO(load_elements(a, sel, axis, &e, in, err));
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}

/* ==== npy out ================================ */

/* Writes .npy, see npy.h. */

static int write_header(brc_npy_out *o, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], bytes;
    int ndim = 0;
    for (int i = 0; i < o->sel.ndim; i++)
        if (!(o->sel.drop >> i & 1))
            shape[ndim++] = o->sel.count[i];
    BRC_TRY(brc_npy_header_write(&o->header, o->type->npy, ndim, shape, err));
    if (!brc_shape_bytes(ndim, shape, o->type->item_size, &bytes) ||
        bytes > INT64_MAX - o->header.len)
        return brc_fail(err, BRC_ELIMIT, "the selection has more bytes than a file can hold");
    o->size = o->header.len + bytes;
    return BRC_OK;
}

int brc_npy_out_start(brc_npy_out *out, brc_array *a, const brc_sel *sel, const brc_registry *reg,
                      brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_GO(brc_array_dtype_open(&out->type, reg, info, err));
    if (!out->type->npy || out->type->item_size == 0) {
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s: NumPy's .npy has no data type like %s",
                      info->path, info->dtype);
        goto done;
    }
    if (sel)
        BRC_GO(brc_sel_check(sel, info->ndim, info->shape, err));
    if (sel)
        out->sel = *sel;
    else
        brc_sel_of_shape(&out->sel, info->ndim, info->shape);
    BRC_GO(write_header(out, err));
    rc = brc_element_runs_start(&out->runs, a, &out->sel, err);
done:
    if (rc < 0)
        brc_npy_out_stop(out);
    return rc;
}

int brc_npy_out_next(brc_npy_out *o, brc_span *piece, brc_error *err)
{
    if (!o->begun) {
        o->begun = 1;
        *piece = (brc_span){ o->header.data, o->header.len };
        return 1;
    }
    int more = brc_element_runs_next(&o->runs, piece, err);
    if (more > 0)
        brc_dtype_native(o->type, o->runs.data, piece->len); /* back to little-endian */
    return more;
}

void brc_npy_out_stop(brc_npy_out *o)
{
    brc_dtype_free(o->type);
    brc_buf_dispose(&o->header);
    brc_element_runs_end(&o->runs);
    memset(o, 0, sizeof(*o));
}
