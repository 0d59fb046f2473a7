/*
 * api_slice.c - see api_slice.h; and the question "slice".
 */
#include "api_slice.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../breccia_codec.h"
#include "api_node.h"

#define TEXT_BYTES (4 << 20) /* of elements that become text                            */

enum {
    SLICE_MOST = 8192,    /* of the parameter "max"                            */
    SLICE_USUAL = 1024,
    TEXTS_MOST = 16384,   /* elements as JSON                                  */
    TEXTS_USUAL = 64,
    VARIABLE_BYTES = 64,  /* what an element of variable length counts         */
    ANSWER_SHARE = 4,     /* an answer has this part of the bytes that are decoded */
    DIFFERENCE_BYTES = 16, /* of an element while two versions are subtracted    */
    SMALL_CHUNKS = 64     /* times limits->chunks, if the chunks are small      */
};

/* ---- what a selection costs -------------------------------- */

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns how many chunks the selection meets along an axis. */
static uint64_t touched_along(const serve_grid *grid, const brc_sel *sel, int axis)
{
    const uint64_t count = sel->count[axis];
    uint64_t last, n;

    if (count == 0)
        return 0;
    last = sel->start[axis] + (count - 1) * sel->step[axis];
    n = serve_grid_cell(grid, axis, last) - serve_grid_cell(grid, axis, sel->start[axis]) + 1;
    return n < count ? n : count;
}

static uint64_t item_bytes(const brc_array_info *info)
{
    return info->item_size ? info->item_size : VARIABLE_BYTES;
}

/* Returns the bytes of a chunk, of the longest one if they differ. */
static uint64_t bytes_of_chunk(const brc_array_info *info)
{
    uint64_t bytes = item_bytes(info);

    for (int i = 0; i < info->ndim; i++)
        bytes = times(bytes, info->chunk[i]);
    return bytes;
}

/* Many small chunks are as little work as few large ones. */
static uint64_t chunks_allowed(const brc_array_info *info, const serve_limits *limits)
{
    const uint64_t chunk = bytes_of_chunk(info), most = times(limits->chunks, SMALL_CHUNKS);
    uint64_t n = chunk ? limits->bytes / chunk : most;

    if (n > most)
        n = most;
    return n;
}

static uint64_t chunks_touched(const serve_grid *grid, const brc_sel *sel)
{
    uint64_t n = 1;

    for (int i = 0; i < grid->info->ndim; i++)
        n = times(n, touched_along(grid, sel, i));
    return n;
}

/* ---- cutting -------------------------------- */

/* Widens the step along an axis so that at most `count` elements are left. */
static void widen(serve_cut *cut, const brc_sel *asked, int k, uint64_t count)
{
    const int axis = cut->axes[k];
    const uint64_t all = asked->count[axis];
    uint64_t every = all / count + (all % count != 0);

    if (every <= cut->every[k])
        every = cut->every[k] + 1;
    cut->every[k] = every;
    cut->sel.step[axis] = times(asked->step[axis], every);
    cut->sel.count[axis] = all / every + (all % every != 0);
}

/* Returns the kept axis along which most chunks are met and more than one element is left; -1:
 * there is none. */
static int widest(const serve_cut *cut, const serve_grid *grid)
{
    uint64_t most = 0;
    int found = -1;

    for (int k = 0; k < cut->naxes; k++) {
        const uint64_t n = touched_along(grid, &cut->sel, cut->axes[k]);

        if (cut->sel.count[cut->axes[k]] > 1 && n > most) {
            most = n;
            found = k;
        }
    }
    return found;
}

static uint64_t bytes_of_cut(const serve_cut *cut, const brc_array_info *info)
{
    uint64_t bytes = item_bytes(info) > cut->least ? item_bytes(info) : cut->least;

    for (int i = 0; i < cut->sel.ndim; i++)
        bytes = times(bytes, cut->sel.count[i]);
    return bytes;
}

static int is_too_much(const serve_cut *cut, const serve_grid *grid, const serve_limits *limits)
{
    return chunks_touched(grid, &cut->sel) > chunks_allowed(grid->info, limits) ||
           bytes_of_cut(cut, grid->info) > limits->bytes / ANSWER_SHARE;
}

static int fail_too_much(const brc_array_info *info, const serve_limits *limits, brc_error *err)
{
    if (bytes_of_chunk(info) > limits->bytes)
        return brc_fail(err, BRC_ELIMIT,
                        "one chunk of %.200s is %llu bytes, more than the %llu that are decoded "
                        "for one answer: the command reads it",
                        info->path, (unsigned long long)bytes_of_chunk(info),
                        (unsigned long long)limits->bytes);
    return brc_fail(err, BRC_ELIMIT,
                    "the slice of %.200s needs more chunks than the %llu that are decoded for one "
                    "answer: ask for less", info->path,
                    (unsigned long long)chunks_allowed(info, limits));
}

/* Widens steps until the limits are kept. */
static int cut_to_limits(serve_cut *cut, const serve_grid *grid, const brc_sel *asked,
                         serve_call *call)
{
    while (is_too_much(cut, grid, call->limits)) {
        const int k = widest(cut, grid);

        if (k < 0)
            return fail_too_much(grid->info, call->limits, call->err);
        const uint64_t met = touched_along(grid, &cut->sel, cut->axes[k]),
                       count = cut->sel.count[cut->axes[k]];
        widen(cut, asked, k, met > 1 && met < count ? (met + 1) / 2 : (count + 1) / 2);
        cut->by_budget = 1;
    }
    cut->touched = chunks_touched(grid, &cut->sel);
    return BRC_OK;
}

int serve_cut_of(serve_cut *out, serve_call *call, const brc_sel *sel, uint64_t most,
                 uint64_t least)
{
    serve_grid grid;
    int rc;

    *out = (serve_cut){ .sel = *sel, .least = least };
    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1)) {
            out->every[out->naxes] = 1;
            out->axes[out->naxes++] = i;
        }
    for (int k = 0; k < out->naxes; k++)
        if (sel->count[out->axes[k]] > most)
            widen(out, sel, k, most);
    SERVE_TRY(serve_grid_read(&grid, call, 0));
    rc = cut_to_limits(out, &grid, sel, call);
    serve_grid_free(&grid);
    return rc;
}

/* ---- elements -------------------------------- */

/* How elements are sent: numbers as they are in memory, others as doubles or as JSON. */
enum { SERVE_NATIVE = 1, SERVE_AS_DOUBLE, SERVE_AS_JSON };

static brc_registry *known_types;
static pthread_once_t known_once = PTHREAD_ONCE_INIT;

static void make_known_types(void)
{
    if (brc_registry_new(&known_types, NULL) < 0)
        known_types = NULL;
}

/* Opens the data type of an array; *out is NULL if this build does not have it. */
static int open_type(brc_dtype **out, const brc_array_info *info)
{
    brc_json *json = NULL;
    int rc;

    *out = NULL;
    pthread_once(&known_once, make_known_types);
    if (!known_types)
        return BRC_ENOMEM;
    if (info->dtype[0] != '{')
        return brc_dtype_open(out, known_types, NULL, info->dtype, NULL);
    rc = brc_json_parse(&json, info->dtype, strlen(info->dtype), 0, NULL);
    if (rc >= 0)
        rc = brc_dtype_open(out, known_types, json, NULL, NULL);
    brc_json_free(json);
    return rc;
}

/* Sets *name to what is sent: "float32", and "int64" for times; NULL as JSON. */
static int sent_form(int *form, const char **name, const brc_array_info *info)
{
    static const char *const native[] = { "bool", "int8", "int16", "int32", "int64", "uint8",
                                          "uint16", "uint32", "uint64", "float16", "float32",
                                          "float64", "complex64", "complex128" };
    brc_dtype *type;

    *name = NULL;
    *form = SERVE_AS_JSON;
    for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++)
        if (strcmp(info->dtype, native[i]) == 0) {
            *form = SERVE_NATIVE;
            *name = native[i];
            return BRC_OK;
        }
    if (open_type(&type, info) < 0)
        return BRC_OK;
    if (type->klass == BRC_CLASS_TIME && type->item_size == 8) {
        *form = SERVE_NATIVE;
        *name = "int64";
    } else if (type->ops->number && type->item_size > 0 && type->klass != BRC_CLASS_COMPLEX &&
               type->klass != BRC_CLASS_RAW) {
        *form = SERVE_AS_DOUBLE;
        *name = "float64";
    }
    brc_dtype_free(type);
    return BRC_OK;
}

static int is_big_endian(void)
{
    const uint16_t one = 1;

    return *(const uint8_t *)&one == 0;
}

/* Appends the elements as they are in memory, and little-endian with `type` not NULL. */
static int read_native(brc_buf *out, brc_array *array, const brc_sel *sel, const brc_dtype *type,
                       brc_error *err)
{
    const size_t item = brc_array_describe(array)->item_size;
    const uint64_t n = brc_sel_count(sel);
    size_t len = (size_t)n * item;

    SERVE_TRY(brc_buf_reserve(out, len, err));
    SERVE_TRY(brc_array_read(array, sel, out->data + out->len, len, err));
    if (type && is_big_endian())
        brc_dtype_swap(type, out->data + out->len, out->data + out->len, (size_t)n);
    out->len += len;
    return BRC_OK;
}

static int fail_no_numbers(const brc_array_info *info, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED, "%.200s has elements that are not numbers", info->path);
}

/* Reads the selected elements as doubles. Fails with BRC_EUNSUPPORTED if they are not numbers. */
static int read_doubles(double **out, brc_array *array, const brc_sel *sel, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(array);
    brc_buf bytes = BRC_BUF_INIT;
    brc_dtype *type;
    size_t n = (size_t)brc_sel_count(sel);
    int rc;

    *out = NULL;
    if (open_type(&type, info) < 0)
        return fail_no_numbers(info, err);
    if (!type->ops->number || type->item_size == 0 || type->klass == BRC_CLASS_RAW) {
        brc_dtype_free(type);
        return fail_no_numbers(info, err);
    }
    rc = read_native(&bytes, array, sel, type, err);
    if (rc >= 0 && n > SIZE_MAX / sizeof(**out) - 1)
        rc = brc_fail(err, BRC_ENOMEM, "out of memory");
    if (rc >= 0) {
        *out = malloc((n + 1) * sizeof(**out));
        rc = *out ? BRC_OK : brc_fail(err, BRC_ENOMEM, "out of memory");
    }
    for (size_t i = 0; rc >= 0 && i < n; i++)
        (*out)[i] = type->ops->number(type, bytes.data + i * type->item_size);
    brc_buf_dispose(&bytes);
    brc_dtype_free(type);
    return rc;
}

/* Writes the selected elements as a JSON list. */
static int put_elements_json(serve_json *json, const char *key, brc_array *array,
                             const brc_sel *sel, uint64_t most_bytes)
{
    const size_t item = brc_array_describe(array)->item_size;
    brc_buf bytes = BRC_BUF_INIT, text = BRC_BUF_INIT;
    brc_io io = BRC_IO_INIT;
    int rc;

    io.array = array;
    io.sel = sel;
    io.out = &bytes;
    bytes.limit = (size_t)most_bytes;
    rc = brc_read(&io, 1, json->err);
    serve_json_open(json, key, '[');
    for (size_t at = 0; at < bytes.len && rc >= 0;) {
        text.len = 0;
        rc = brc_element_format(&text, array, bytes.data + at, BRC_ELEMENT_DATED, json->err);
        serve_json_raw(json, NULL, text.data, text.len);
        at += serve_element_bytes(bytes.data + at, item);
    }
    serve_json_close(json, ']');
    brc_buf_dispose(&bytes);
    brc_buf_dispose(&text);
    return rc;
}

/* Appends doubles, little-endian. */
static int append_doubles(brc_buf *out, double *values, size_t n, brc_error *err)
{
    for (size_t i = 0; i < n && is_big_endian(); i++) {
        uint64_t bits;

        memcpy(&bits, &values[i], sizeof(bits));
        bits = __builtin_bswap64(bits);
        memcpy(&values[i], &bits, sizeof(bits));
    }
    return brc_buf_append(out, values, n * sizeof(*values), err);
}

/* ---- the difference of two versions -------------------------------- */

/* Opens the array in the other version. `sel` must lie within it. */
static int open_minus(brc_array **out, brc_session **session, serve_call *call, const char *rev,
                      const brc_sel *sel)
{
    const brc_array_info *info = brc_array_describe(call->array);
    const char *path = serve_param(call, "minuspath");

    *out = NULL;
    SERVE_TRY(serve_session(session, call, rev));
    SERVE_TRY(brc_array_open(out, *session, path ? path : info->path, call->err));
    const brc_array_info *other = brc_array_describe(*out);
    if (!(other->flags & BRC_ARRAY_READABLE))
        return brc_fail(call->err, BRC_EUNSUPPORTED, "%.200s cannot be read: %s", other->path,
                        other->why);
    for (int i = 0; i < sel->ndim; i++)
        if (other->ndim != sel->ndim ||
            (sel->count[i] > 0 &&
             sel->start[i] + (sel->count[i] - 1) * sel->step[i] >= other->shape[i]))
            return brc_fail(call->err, BRC_EINVAL,
                            "%.200s has another shape in %.100s, without these elements: there is "
                            "no difference",
                            info->path, rev);
    return BRC_OK;
}

/* Returns a - b, and 0 for two NaNs and equal infinities. */
static double one_minus(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) ? 0 : a - b;
}

/* Appends 1 for each element that differs in a bit, else 0. */
static int put_unequal(serve_call *call, brc_array *other, const brc_sel *sel)
{
    const size_t item = brc_array_describe(call->array)->item_size;
    const size_t n = (size_t)brc_sel_count(sel);
    brc_buf a = BRC_BUF_INIT, b = BRC_BUF_INIT;
    int rc;

    if (item == 0 || item != brc_array_describe(other)->item_size)
        return fail_no_numbers(brc_array_describe(call->array), call->err);
    rc = read_native(&a, call->array, sel, NULL, call->err);
    if (rc >= 0)
        rc = read_native(&b, other, sel, NULL, call->err);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        const uint8_t differs = memcmp(a.data + i * item, b.data + i * item, item) != 0;

        rc = brc_buf_append(&call->out->body, &differs, 1, call->err);
    }
    brc_buf_dispose(&a);
    brc_buf_dispose(&b);
    return rc;
}

static int put_difference(serve_call *call, brc_array *other, const brc_sel *sel)
{
    const size_t n = (size_t)brc_sel_count(sel);
    double *a = NULL, *b = NULL;
    int rc = read_doubles(&a, call->array, sel, call->err);

    if (rc >= 0)
        rc = read_doubles(&b, other, sel, call->err);
    for (size_t i = 0; i < n && rc >= 0; i++)
        a[i] = one_minus(a[i], b[i]);
    if (rc >= 0)
        rc = append_doubles(&call->out->body, a, n, call->err);
    free(a);
    free(b);
    return rc;
}

/* ---- the selection of a question -------------------------------- */

/* Returns the bytes that an element takes at least while it is answered. */
static uint64_t least_bytes(const serve_call *call)
{
    const char *name;
    int form;

    if (serve_param(call, "minus"))
        return DIFFERENCE_BYTES;
    return sent_form(&form, &name, brc_array_describe(call->array)) >= 0 && form == SERVE_AS_DOUBLE
               ? 2 * sizeof(double)
               : 0;
}

static int cut_make(serve_cut *out, serve_call *call, const char *slice, uint64_t most)
{
    const brc_array_info *info = brc_array_describe(call->array);
    brc_sel sel = BRC_SEL_INIT;

    if (!(info->flags & BRC_ARRAY_READABLE))
        return brc_fail(call->err, BRC_EUNSUPPORTED, "%.200s cannot be read: %s", info->path,
                        info->why);
    SERVE_TRY(brc_sel_parse(&sel, call->array, slice, call->err));
    return serve_cut_of(out, call, &sel, most, least_bytes(call));
}

/* ---- levels -------------------------------- */

/* Turns a selection of the finest level into one of an array of another shape. */
static void scale_sel(brc_sel *sel, const uint64_t *from, const uint64_t *to)
{
    for (int i = 0; i < sel->ndim; i++) {
        const double ratio = from[i] ? (double)to[i] / (double)from[i] : 1;
        const uint64_t end = sel->count[i] ? sel->start[i] + (sel->count[i] - 1) * sel->step[i] + 1
                                           : sel->start[i];
        uint64_t first = (uint64_t)((double)sel->start[i] * ratio),
                 last = (uint64_t)ceil((double)end * ratio);

        if (to[i] == from[i])
            continue;
        first = first < to[i] ? first : to[i] ? to[i] - 1 : 0;
        last = last > to[i] ? to[i] : last > first ? last : first + 1;
        sel->start[i] = first;
        sel->count[i] = sel->drop >> i & 1 ? 1 : sel->count[i] ? last - first : 0;
        sel->step[i] = 1;
    }
}

/* Opens the finest level that needs no wider steps, or the coarsest. */
static int open_level(serve_call *call, const serve_levels *levels, uint64_t most, serve_cut *cut,
                      int *level)
{
    const char *slice = serve_param(call, "slice");
    brc_sel asked = BRC_SEL_INIT;
    uint64_t shape[BRC_MAX_NDIM];
    int ndim = 0;

    for (*level = 0; *level < levels->n; ++*level) {
        const brc_array_info *info;
        brc_sel sel;

        brc_array_free(call->array);
        call->array = NULL;
        SERVE_TRY(serve_open_array(call, levels->paths[*level]));
        info = brc_array_describe(call->array);
        if (*level == 0) {
            SERVE_TRY(brc_sel_parse(&asked, call->array, slice, call->err));
            ndim = info->ndim;
            memcpy(shape, info->shape, (size_t)ndim * sizeof(shape[0]));
        }
        if (info->ndim != ndim || !(info->flags & BRC_ARRAY_READABLE))
            return brc_fail(call->err, BRC_EUNSUPPORTED, "%.200s is a level that cannot be read",
                            info->path);
        sel = asked;
        scale_sel(&sel, shape, info->shape);
        const int rc = serve_cut_of(cut, call, &sel, most, least_bytes(call));
        int is_exact = rc >= 0;
        for (int k = 0; k < cut->naxes && is_exact; k++)
            is_exact = cut->every[k] == 1;
        if (is_exact || *level == levels->n - 1)
            return rc;
    }
    return BRC_OK;
}

/* Opens the array of the question and cuts its selection. */
static int open_cut(serve_call *call, uint64_t most, serve_cut *cut, int *level)
{
    const char *path = serve_path_param(call);
    serve_levels levels;
    int kind, rc;

    *level = -1;
    SERVE_TRY(brc_node_kind(&kind, call->session, path, call->err));
    if (kind != BRC_GROUP) {
        SERVE_TRY(serve_open_array(call, path));
        return cut_make(cut, call, serve_param(call, "slice"), most);
    }
    rc = serve_levels_read(&levels, call, path);
    if (rc >= 0)
        rc = levels.n > 0 ? open_level(call, &levels, most, cut, level)
                          : brc_fail(call->err, BRC_EINVAL,
                                     "%.200s is a group without multiscales: name an array", path);
    serve_levels_free(&levels);
    return rc;
}

/* ---- the answer -------------------------------- */

static void put_cut(serve_json *json, const serve_cut *cut)
{
    uint64_t of_axis[4][BRC_MAX_NDIM], axes[BRC_MAX_NDIM];

    for (int k = 0; k < cut->naxes; k++) {
        axes[k] = (uint64_t)cut->axes[k];
        of_axis[0][k] = cut->sel.count[cut->axes[k]];
        of_axis[1][k] = cut->sel.start[cut->axes[k]];
        of_axis[2][k] = cut->sel.step[cut->axes[k]];
        of_axis[3][k] = cut->every[k];
    }
    serve_json_dims(json, "axes", axes, cut->naxes);
    serve_json_dims(json, "shape", of_axis[0], cut->naxes);
    serve_json_dims(json, "start", of_axis[1], cut->naxes);
    serve_json_dims(json, "step", of_axis[2], cut->naxes);
    serve_json_dims(json, "every", of_axis[3], cut->naxes);
    serve_json_dims(json, "at", cut->sel.start, cut->sel.ndim);
    serve_json_uint(json, "chunks", cut->touched);
    serve_json_bool(json, "by_budget", cut->by_budget);
}

static void put_head(serve_call *call, const serve_cut *cut, int level, const char *dtype)
{
    const brc_array_info *info = brc_array_describe(call->array);
    serve_json *json = &call->json;

    serve_json_open(json, NULL, '{');
    serve_put_version(call);
    serve_json_text(json, "path", info->path);
    serve_json_text(json, "dtype", dtype);
    serve_json_text(json, "type", info->dtype);
    if (level >= 0) {
        serve_json_int(json, "level", level);
        serve_json_dims(json, "of", info->shape, info->ndim);
    }
    put_cut(json, cut);
}

/* Ends the line of JSON in front of the elements, so that they begin at a multiple of 8 bytes. */
static int end_line(serve_call *call)
{
    brc_buf *body = &call->out->body;

    serve_json_close(&call->json, '}');
    SERVE_TRY(call->json.rc);
    while ((body->len + 1) % 8 != 0)
        SERVE_TRY(brc_buf_append(body, " ", 1, call->err));
    return brc_buf_append(body, "\n", 1, call->err);
}

static int put_doubles(serve_call *call, const brc_sel *sel)
{
    double *values;
    int rc = read_doubles(&values, call->array, sel, call->err);

    if (rc >= 0)
        rc = append_doubles(&call->out->body, values, (size_t)brc_sel_count(sel), call->err);
    free(values);
    return rc;
}

static int slice_minus(serve_call *call, const serve_cut *cut, int level, const char *rev)
{
    brc_session *session = NULL;
    brc_array *other;
    const char *name, *other_name;
    int form, other_form, rc;

    SERVE_TRY(sent_form(&form, &name, brc_array_describe(call->array)));
    rc = open_minus(&other, &session, call, rev, &cut->sel);
    if (rc >= 0)
        rc = sent_form(&other_form, &other_name, brc_array_describe(other));
    if (rc >= 0) {
        const int numbers = form != SERVE_AS_JSON && other_form != SERVE_AS_JSON &&
                            strncmp(name, "complex", 7) != 0;

        put_head(call, cut, level, numbers ? "float64" : "bool");
        serve_json_text(&call->json, "minus", rev);
        rc = end_line(call);
        if (rc >= 0)
            rc = numbers ? put_difference(call, other, &cut->sel)
                         : put_unequal(call, other, &cut->sel);
    }
    brc_array_free(other);
    brc_session_free(session);
    call->out->immutable = 0;
    return rc;
}

static int slice_as_json(serve_call *call, const serve_cut *cut, int level)
{
    put_head(call, cut, level, NULL);
    SERVE_TRY(put_elements_json(&call->json, "values", call->array, &cut->sel, TEXT_BYTES));
    serve_json_close(&call->json, '}');
    return call->json.rc;
}

static int slice_as_bytes(serve_call *call, const serve_cut *cut, int level, int form,
                          const char *name)
{
    const brc_array_info *info = brc_array_describe(call->array);
    brc_dtype *type;
    int rc;

    call->out->type = "application/octet-stream";
    put_head(call, cut, level, name);
    SERVE_TRY(end_line(call));
    if (form == SERVE_AS_DOUBLE)
        return put_doubles(call, &cut->sel);
    if (open_type(&type, info) < 0)
        return fail_no_numbers(info, call->err);
    rc = read_native(&call->out->body, call->array, &cut->sel, type, call->err);
    brc_dtype_free(type);
    return rc;
}

/* Reads "max", which for texts also bounds the number of all elements. */
static int read_most(serve_call *call, int as_text, uint64_t *most)
{
    *most = as_text ? TEXTS_USUAL : SLICE_USUAL;
    return serve_uint_param(call, "max", 1, as_text ? TEXTS_MOST : SLICE_MOST, most);
}

int serve_slice(serve_call *call)
{
    const char *minus = serve_param(call, "minus"), *as = serve_param(call, "form"), *name;
    const int as_text = as && strcmp(as, "json") == 0;
    uint64_t most;
    serve_cut cut;
    int form, level;

    SERVE_TRY(read_most(call, as_text, &most));
    SERVE_TRY(serve_open_version(call));
    SERVE_TRY(open_cut(call, most, &cut, &level));
    if (minus) {
        call->out->type = "application/octet-stream";
        return slice_minus(call, &cut, level, minus);
    }
    SERVE_TRY(sent_form(&form, &name, brc_array_describe(call->array)));
    if (!as_text && form != SERVE_AS_JSON)
        return slice_as_bytes(call, &cut, level, form, name);
    if (brc_sel_count(&cut.sel) > TEXTS_MOST)
        return brc_fail(call->err, BRC_ELIMIT, "more than %d elements as text: ask for less",
                        TEXTS_MOST);
    return slice_as_json(call, &cut, level);
}
