/*
 * The fill value of a variable: its _FillValue, else what the library fills with.
 *
 * The library's own inquiry copies whatever a classic file has as _FillValue, of any
 * type and length, into memory for one value: it is asked of NetCDF-4 files alone.
 */
#include "netcdf_in.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../nd/box.h"
#include "../../nd/shape.h"
#include "netcdf_ragged.h"
#include "netcdf_stored.h"

/* ==== netcdf in fill ================================ */

/* The attribute, where it is one value of the variable's own type. */
static int fill_of_att(int *found, uint8_t *out, int group, int var,
                       const brc_netcdf_type *type, const char *label, brc_error *err)
{
    nc_type is = NC_NAT;
    size_t n = 0;

    *found = nc_inq_att(group, var, BRC_NETCDF_FILL, &is, &n) == NC_NOERR &&
             is == type->id && n == 1;
    if (!*found)
        return BRC_OK;
    int status = nc_get_att(group, var, BRC_NETCDF_FILL, out);
    return status ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read the _FillValue of",
                                    label, err)
                  : BRC_OK;
}

/* A value that was set for unwritten elements, or the type's own; *found 0 if they are
 * left as they are. */
static int fill_of_library(int *found, uint8_t *out, const brc_netcdf_in *in, int group, int var,
                           const brc_netcdf_type *type)
{
    uint8_t standard[8];
    int no_fill = 0;
    size_t size = brc_netcdf_default_fill(type->id, standard);

    *found = 0;
    if (nc_inq_var_fill(group, var, &no_fill, NULL) != NC_NOERR || no_fill)
        return BRC_OK;
    if (in->is_netcdf4) {
        *found = nc_inq_var_fill(group, var, &no_fill, out) == NC_NOERR;
        return BRC_OK;
    }
    *found = size == type->file_size;
    if (*found)
        memcpy(out, standard, size);
    return BRC_OK;
}

/* Of a type without texts and lists: its _FillValue, or what its unwritten elements read
 * as, as it is in the array; NULL if the file says nothing of it. */
static int netcdf_read_fill(uint8_t **out, const brc_netcdf_in *in, int group, int var,
                            const brc_netcdf_type *type, const char *label, brc_error *err)
{
    uint8_t *value = NULL, *packed = NULL;
    int found, rc;

    *out = NULL;
    BRC_GO(brc_new_array((void **)&value, 1, type->file_size + sizeof(double), err));
    BRC_GO(brc_new_array((void **)&packed, 1, type->here_size + 1, err));
    BRC_GO(fill_of_att(&found, value, group, var, type, label, err));
    if (!found)
        BRC_GO(fill_of_library(&found, value, in, group, var, type));
    if (!found)
        goto done;
    if (type->nmoves > 0)
        brc_netcdf_move_in(type, packed, value, 1);
    else
        memcpy(packed, value, type->here_size);
    *out = packed;
    packed = NULL;
done:
    free(value);
    free(packed);
    return rc;
}

/* ==== netcdf in var ================================ */

/* A variable of a NetCDF file as an array. */

/* Texts and lists are read in pieces of this many elements: all of a piece are in memory
 * at once, each allocated by the library. */
#define PIECE_ELEMENTS 1024
/* What is looked through for booleans at once. */
#define BOX_BYTES ((uint64_t)4 << 20)
/* See gaps_may_stay(). */
#define FULL_BYTES ((uint64_t)1 << 30)
/* Each piece of a record variable is a read. */
#define PIECE_LEAST 512
#define MAX_BOX_TEXT ((size_t)1 << 30)

typedef struct var_in {
    const brc_netcdf_in *in;
    int group, var;
    const char *label;
    brc_netcdf_type type;
    brc_netcdf_stored stored;
    brc_array_in array;
    char *names[BRC_MAX_NDIM];
    brc_json *attrs, *note;
    brc_buf attrs_text, fill_text;
} var_in;

static int failed(const var_in *v, int status, const char *what, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, what, v->label, err);
}

/* ---- reading elements ------------------------------------ */

static int get_box(const var_in *v, const brc_sel *box, void *dst, brc_error *err)
{
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    int status = nc_get_vara(v->group, v->var, start, count, dst);
    return status ? failed(v, status, "cannot read", err) : BRC_OK;
}

static int read_var_box(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    const var_in *v = ctx;
    size_t n = len / v->type.here_size;
    void *laid_out;

    /* of a variable without a fill value, what was never written stays as it was here */
    if (v->type.nmoves == 0) {
        if (v->in->is_netcdf4)
            memset(dst, 0, len);
        return get_box(v, box, dst, err);
    }
    BRC_TRY(brc_new_array(&laid_out, n, v->type.file_size, err));
    int rc = get_box(v, box, laid_out, err);
    if (rc == BRC_OK)
        brc_netcdf_move_in(&v->type, dst, laid_out, n);
    free(laid_out);
    return rc;
}

static int append_element(const var_in *v, brc_buf *out, const void *data, size_t len,
                          brc_error *err)
{
    uint8_t count[4];
    if (len > UINT32_MAX || len > MAX_BOX_TEXT || out->len > MAX_BOX_TEXT)
        return brc_fail(err, BRC_ELIMIT, "%s: its chunks have more than %lu bytes of text",
                        v->label, (unsigned long)MAX_BOX_TEXT);
    brc_put_u32le(count, (uint32_t)len);
    BRC_TRY(brc_buf_append(out, count, sizeof(count), err));
    return len > 0 ? brc_buf_append(out, data, len, err) : BRC_OK;
}

static int append_string(const var_in *v, brc_buf *out, const char *text, brc_error *err)
{
    size_t len = text ? strlen(text) : 0;
    if (len > 0 && !brc_utf8_valid(text, len))
        return brc_part_refuse(err, BRC_PART_VALUE, NULL,
                               "%s: it has text that is not UTF-8, which Zarr's strings are",
                               v->label);
    return append_element(v, out, text, len, err);
}

/* Texts and lists are the library's memory; both are released here. */
static int append_piece(const var_in *v, brc_buf *out, void *data, size_t n, brc_error *err)
{
    int rc = BRC_OK, is_text = v->type.how == BRC_NETCDF_STRINGS;
    char **texts = data;
    nc_vlen_t *lists = data;

    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = is_text ? append_string(v, out, texts[i], err)
                     : append_element(v, out, lists[i].p, lists[i].len, err);
    for (size_t i = 0; i < n; i++)
        free(is_text ? (void *)texts[i] : lists[i].p);
    return rc;
}

static int read_var_elements(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err)
{
    const var_in *v = ctx;
    uint64_t ones[BRC_MAX_NDIM];
    brc_cut pieces;
    void *data;
    int rc = BRC_OK;

    for (int k = 0; k < BRC_MAX_NDIM; k++)
        ones[k] = 1;
    BRC_TRY(brc_new_array(&data, PIECE_ELEMENTS, v->type.file_size, err));
    brc_cut_chunks(&pieces, box, ones, 1, PIECE_ELEMENTS);
    while (brc_cut_next(&pieces)) {
        size_t n = (size_t)pieces.elements;
        memset(data, 0, n * v->type.file_size);
        BRC_GO(get_box(v, &pieces.sel, data, err));
        BRC_GO(append_piece(v, out, data, n, err));
    }
done:
    free(data);
    return rc;
}

/* ---- stored chunks --------------------------------------- */

static int next_var_box(void *ctx, brc_sel *box, brc_error *err)
{
    var_in *v = ctx;
    const brc_array_in *a = &v->array;
    (void)err;
    return brc_hdf5_stored_next(&v->stored.chunks, a->ndim, a->ndim, a->shape, a->chunk, box);
}

/* *is: whether elements that are not stored read as the array's fill value does. The one of
 * the data set, which the library gives, is not always the attribute _FillValue. */
static int gap_is_fill(int *is, const var_in *v, const uint64_t *gap, brc_error *err)
{
    brc_sel one = BRC_SEL_INIT;
    uint8_t *fill = NULL, *found = NULL;
    int rc;

    brc_chunk_box(&one, v->array.ndim, v->array.shape, v->array.chunk, gap);
    for (int k = 0; k < one.ndim; k++)
        one.count[k] = 1;
    BRC_GO(netcdf_read_fill(&fill, v->in, v->group, v->var, &v->type, v->label, err));
    if (!fill)
        BRC_GO(brc_new((void **)&fill, v->type.here_size, err));
    BRC_GO(brc_new((void **)&found, v->type.here_size, err));
    BRC_GO(read_var_box((void *)(uintptr_t)v, &one, found, v->type.here_size, err));
    *is = memcmp(fill, found, v->type.here_size) == 0;
done:
    free(fill);
    free(found);
    return rc;
}

/* *may: whether what is not stored may be left out, for the array has its value as fill value.
 * Where no value marks what is missing, Zarr v2 has no fill value, and does not say what absent
 * chunks hold: then only such arrays have gaps as nobody would read in full, and their fill
 * value marks. */
static int gaps_may_stay(int *may, const var_in *v, brc_error *err)
{
    uint64_t bytes;
    int large = !brc_shape_bytes(v->array.ndim, v->array.shape, v->type.here_size, &bytes) ||
                bytes > FULL_BYTES;
    *may = !v->array.lacks_fill || (large && !v->stored.chunks.all);
    return *may ? gap_is_fill(may, v, v->stored.gap, err) : BRC_OK;
}

/* Of a classic file, where the elements lie in pieces that are worth a read. */
static void find_classic_elements(var_in *v)
{
    const brc_netcdf_places *places = &v->in->places;
    uint64_t referred, bytes;
    if (v->var < 0 || (size_t)v->var >= places->n || strcmp(v->array.dtype, "bool") == 0)
        return;
    const brc_tar_range *range = &places->ranges[v->var];
    if (range->len < PIECE_LEAST || !brc_tar_range_bytes(range, &referred) ||
        referred < BRC_CONVERT_REFERRED_LEAST ||
        !brc_shape_bytes(v->array.ndim, v->array.shape, v->type.here_size, &bytes) ||
        bytes != referred)
        return;
    v->array.elements = range;
    v->array.codecs = v->type.here_size > 1
                          ? "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"
                          : "[{\"name\":\"bytes\"}]";
}

/* Elements pass as they are stored where they can; where the file stores few chunks, those
 * alone are read. */
static int find_stored_elements(var_in *v, brc_error *err)
{
    int may = 1;
    if (v->type.how != BRC_NETCDF_PLAIN || v->array.ndim == 0)
        return BRC_OK;
    if (!v->in->is_netcdf4) {
        find_classic_elements(v);
        return BRC_OK;
    }
    BRC_TRY(brc_netcdf_stored_open(&v->stored, v->in->local, &v->array, err));
    if (!v->stored.found)
        return BRC_OK;
    if (v->stored.has_gap)
        BRC_TRY(gaps_may_stay(&may, v, err));
    if (!may)
        return BRC_OK;
    if (v->stored.has_gap)
        v->array.lacks_fill = 0;
    if (v->array.chunked && !v->stored.chunks.all)
        v->array.next = next_var_box;
    return brc_netcdf_stored_pass(&v->stored, brc_convert_registry(v->in->convert), &v->type,
                                  &v->array, err);
}

/* ---- its shape ------------------------------------------- */

static int read_dims(var_in *v, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int ids[BRC_MAX_NDIM], ndim = 0;
    size_t length;

    int status = nc_inq_varndims(v->group, v->var, &ndim);
    if (status)
        return failed(v, status, "cannot read", err);
    if (ndim < 0 || ndim > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s has %d dimensions, but an array has at most %d", v->label, ndim,
                               BRC_MAX_NDIM);
    v->array.ndim = ndim;
    status = nc_inq_vardimid(v->group, v->var, ids);
    for (int k = 0; k < ndim && !status; k++) {
        status = nc_inq_dim(v->group, ids[k], name, &length);
        if (status)
            break;
        v->array.shape[k] = length;
        if (!brc_utf8_valid(name, strlen(name)))
            return brc_fail(err, BRC_EINVAL, "%s: a dimension's name is not UTF-8", v->label);
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) != 0)
            BRC_TRY(brc_dup(&v->names[k], name, err));
    }
    if (status)
        return failed(v, status, "cannot read the dimensions of", err);
    for (int k = 0; k < ndim; k++)
        if (v->names[k])
            v->array.names = (const char *const *)v->names;
    return BRC_OK;
}

/* The file's chunks, where an array can have them. */
static int read_chunks(var_in *v, brc_error *err)
{
    size_t chunk[NC_MAX_VAR_DIMS];
    int storage = NC_CONTIGUOUS;
    uint64_t bytes = 0;
    size_t item = v->type.here_size ? v->type.here_size : 1;

    if (!v->in->is_netcdf4 || v->array.ndim == 0)
        return BRC_OK;
    int status = nc_inq_var_chunking(v->group, v->var, &storage, chunk);
    if (status)
        return failed(v, status, "cannot read the chunks of", err);
    if (storage != NC_CHUNKED)
        return BRC_OK;
    v->array.chunked = 1;
    for (int k = 0; k < v->array.ndim; k++) {
        v->array.chunk[k] = chunk[k];
        v->array.chunked &= chunk[k] > 0;
    }
    if (!brc_shape_bytes(v->array.ndim, v->array.chunk, item, &bytes) ||
        bytes > BRC_MAX_CHUNK_BYTES)
        v->array.chunked = 0;
    return BRC_OK;
}

/* ---- booleans ------------------------------------------- */

/* xarray's booleans: bytes of 0 and 1, with the attribute dtype "bool". They become
 * booleans where they are nothing else. */
static int all_booleans(int *are, var_in *v, brc_error *err)
{
    uint64_t chunk[BRC_MAX_NDIM];
    size_t len, room = 0;
    uint8_t *data = NULL;
    brc_sel all = BRC_SEL_INIT;
    brc_cut boxes;
    int rc = BRC_OK;

    *are = 1;
    for (int k = 0; k < v->array.ndim; k++)
        chunk[k] = v->array.chunked ? v->array.chunk[k] : 1;
    brc_sel_of_shape(&all, v->array.ndim, v->array.shape);
    brc_cut_chunks(&boxes, &all, chunk, 1, BOX_BYTES);
    while (*are && brc_cut_next(&boxes)) {
        len = (size_t)boxes.elements;
        if (len > room) { /* the first box is the largest */
            BRC_GO(brc_new_big((void **)&data, len, err));
            room = len;
        }
        BRC_GO(get_box(v, &boxes.sel, data, err));
        for (size_t i = 0; i < len && *are; i++)
            *are = data[i] <= 1;
    }
done:
    free(data);
    return rc;
}

static int is_boolean(int *is, var_in *v, brc_error *err)
{
    *is = 0;
    if (!brc_json_is(brc_json_member(v->attrs, "dtype"), "bool") || v->type.is_enum ||
        (v->type.id != NC_BYTE && v->type.id != NC_UBYTE) ||
        brc_json_member(v->attrs, BRC_NETCDF_FILL))
        return BRC_OK;
    BRC_TRY(all_booleans(is, v, err));
    if (*is)
        brc_json_remove(v->attrs, "dtype");
    return BRC_OK;
}

/* ---- attributes and fill value --------------------------- */

/* What an enumeration's values mean, as CF says it: flag_values and flag_meanings. */
static int add_meanings(var_in *v, brc_error *err)
{
    brc_json *values = NULL;
    brc_buf meanings = BRC_BUF_INIT;
    size_t size = 0, n = 0;
    int rc = BRC_OK;

    if (!v->type.is_enum || brc_json_member(v->attrs, "flag_values") ||
        brc_json_member(v->attrs, "flag_meanings"))
        return BRC_OK;
    if (nc_inq_enum(v->group, v->type.id, NULL, NULL, &size, &n) || n == 0)
        return BRC_OK;
    values = brc_json_new_array();
    for (size_t i = 0; i < n; i++) {
        char name[BRC_NETCDF_NAME_MAX];
        uint64_t value = 0;
        brc_netcdf_of of = { 0 };
        brc_netcdf_values one = { v->type.number, 1, &value, NULL };
        brc_json *json;
        int status = nc_inq_enum_member(v->group, v->type.id, (int)i, name, &value);
        if (status || !brc_utf8_valid(name, strlen(name))) {
            rc = failed(v, status ? status : NC_EBADNAME, "cannot read the enumeration of", err);
            goto done;
        }
        for (char *c = name; *c; c++)
            if (*c == ' ')
                *c = '_';
        BRC_GO(brc_buf_printf(&meanings, err, "%s%s", i ? " " : "", name));
        BRC_GO(brc_netcdf_att_json(&json, &of, "", &one, err));
        BRC_GO(brc_json_push(values, json, err));
    }
    BRC_GO(brc_buf_terminate(&meanings, err));
    BRC_GO(brc_json_set(v->attrs, "flag_meanings", brc_json_new_string((const char *)meanings.data),
                        err));
    rc = brc_json_set(v->attrs, "flag_values", values, err);
    values = NULL;
done:
    brc_json_free(values);
    brc_buf_dispose(&meanings);
    return rc;
}

/* Whether no value of the variable means "missing": it has no _FillValue, or one that no
 * element can have, and that only the note keeps. */
static int var_lacks_fill(const var_in *v)
{
    const brc_json *noted =
        brc_json_member(brc_json_member(v->note, "attributes"), BRC_NETCDF_FILL);
    return !brc_json_member(v->attrs, BRC_NETCDF_FILL) &&
           !brc_json_is(brc_json_member(noted, "type"), "own");
}

static int remember_var(brc_netcdf_in *in, int is_bool, int lacks_fill, brc_error *err)
{
    BRC_TRY(brc_grow_array((void **)&in->vars, &in->vars_cap, in->nvars + 1, sizeof(*in->vars),
                           err));
    in->vars[in->nvars++] = (brc_netcdf_seen){ is_bool, lacks_fill };
    return BRC_OK;
}

static int read_attrs(var_in *v, brc_netcdf_in *in, brc_error *err)
{
    brc_netcdf_atts_in atts = {
        .group = v->group,
        .var = v->var,
        .var_type = v->type.id,
        .convert = in->convert,
        .label = v->label,
        .of = { .type = v->type.number, .is_var = 1, .is_complex = v->type.is_complex }
    };
    int is_bool, rc = brc_netcdf_read_atts(&atts, err);
    v->attrs = atts.attrs;
    v->note = atts.note;
    BRC_TRY(rc);
    BRC_TRY(add_meanings(v, err));
    BRC_TRY(is_boolean(&is_bool, v, err));
    BRC_TRY(remember_var(in, is_bool, var_lacks_fill(v), err));
    BRC_TRY(brc_json_write(&v->attrs_text, v->attrs, err));
    BRC_TRY(brc_buf_terminate(&v->attrs_text, err));
    v->array.attrs_json = (const char *)v->attrs_text.data;
    return BRC_OK;
}

/* One element as the fill_value of a zarr.json. */
static int print_fill(var_in *v, uint8_t *element, size_t len, brc_error *err)
{
    const brc_registry *reg = brc_convert_registry(v->in->convert);
    const char *text = v->array.dtype;
    brc_buf quoted = BRC_BUF_INIT;
    brc_json *json = NULL;
    brc_dtype *type = NULL;
    int rc;

    if (text[0] != '{') {
        BRC_GO(brc_json_quote(&quoted, text, strlen(text), err));
        BRC_GO(brc_buf_terminate(&quoted, err));
        text = (const char *)quoted.data;
    }
    BRC_GO(brc_json_parse(&json, text, strlen(text), err));
    BRC_GO(brc_dtype_open(&type, reg, json, err));
    if (type->item_size > 0)
        brc_dtype_native(type, element, len);
    BRC_GO(type->ops->print(type, element, len, BRC_PRINT_FILL, &v->fill_text, err));
    BRC_GO(brc_buf_terminate(&v->fill_text, err));
    v->array.fill = (const char *)v->fill_text.data;
done:
    brc_dtype_free(type);
    brc_json_free(json);
    brc_buf_dispose(&quoted);
    return rc;
}

static int read_fill_text(var_in *v, brc_error *err)
{
    brc_netcdf_values text;
    brc_buf element = BRC_BUF_INIT;
    int rc;

    BRC_TRY(
        brc_netcdf_read_att(&text, v->group, v->var, BRC_NETCDF_FILL, v->label, err));
    if (text.type == NC_STRING && text.n == 1) {
        BRC_GO(append_string(v, &element, text.texts[0], err));
        BRC_GO(print_fill(v, element.data, element.len, err));
    }
    rc = BRC_OK;
done:
    brc_netcdf_values_free(&text);
    brc_buf_dispose(&element);
    return rc;
}

static int read_fill_value(var_in *v, brc_error *err)
{
    uint8_t *element;
    if (v->type.how == BRC_NETCDF_STRINGS)
        return read_fill_text(v, err);
    if (v->type.how != BRC_NETCDF_PLAIN || strcmp(v->array.dtype, "bool") == 0)
        return BRC_OK;
    BRC_TRY(netcdf_read_fill(&element, v->in, v->group, v->var, &v->type, v->label, err));
    int rc = element ? print_fill(v, element, v->type.here_size, err) : BRC_OK;
    free(element);
    return rc;
}

/* ---- all of it ------------------------------------------- */

static int read_type(var_in *v, brc_error *err)
{
    nc_type type;
    int status = nc_inq_vartype(v->group, v->var, &type);
    if (status)
        return failed(v, status, "cannot read", err);
    return brc_netcdf_type_in(&v->type, v->group, type, v->label, err);
}

static int describe_elements(var_in *v, brc_error *err)
{
    BRC_TRY(read_type(v, err));
    v->array.dtype = (const char *)v->type.dtype.data;
    v->array.doubtful = v->type.how == BRC_NETCDF_STRINGS;
    v->array.ctx = v;
    v->array.read = read_var_box;
    v->array.read_elements = read_var_elements;
    BRC_TRY(read_dims(v, err));
    return read_chunks(v, err);
}

static int describe_notes(var_in *v, brc_error *err)
{
    brc_json *ignorable = NULL;
    if (v->note)
        BRC_TRY(brc_json_parse(&ignorable, "false", 5, err));
    if (v->note)
        BRC_TRY(brc_json_set(v->note, "must_understand", ignorable, err));
    v->array.note_name = BRC_NETCDF_NOTE;
    v->array.note = v->note;
    return BRC_OK;
}

/* Attributes and notes are of the first round alone, and so is the search for booleans. */
static int describe_var(var_in *v, brc_netcdf_in *in, brc_error *err)
{
    int docs = brc_convert_phase(in->convert) == BRC_CONVERT_DOCS;
    BRC_TRY(describe_elements(v, err));
    if (docs)
        BRC_TRY(read_attrs(v, in, err));
    const brc_netcdf_seen *seen = &in->vars[docs ? in->nvars - 1 : in->var_at++];
    if (seen->is_bool)
        v->array.dtype = "bool";
    v->array.lacks_fill = seen->lacks_fill;
    BRC_TRY(read_fill_value(v, err));
    BRC_TRY(find_stored_elements(v, err));
    if (in->is_netcdf4 && !v->array.codecs)
        BRC_TRY(brc_netcdf_set_check(in->convert, in->local, &v->array, err));
    return docs ? describe_notes(v, err) : BRC_OK;
}

static void close_var(var_in *v)
{
    for (int k = 0; k < BRC_MAX_NDIM; k++)
        free(v->names[k]);
    brc_netcdf_type_free(&v->type);
    brc_netcdf_stored_close(&v->stored);
    brc_json_free(v->attrs);
    brc_json_free(v->note);
    brc_buf_dispose(&v->attrs_text);
    brc_buf_dispose(&v->fill_text);
}

/* The variable becomes the array `path`. */
static int netcdf_import_var(brc_netcdf_in *in, int group, int var, const char *label,
                             const char *path, brc_error *err)
{
    var_in v = { .in = in, .group = group, .var = var, .label = label };
    int rc;

    v.array.path = path;
    v.array.label = label;
    brc_netcdf_stored_init(&v.stored);
    BRC_GO(describe_var(&v, in, err));
    BRC_GO(brc_convert_array(in->convert, &v.array, err));
done:
    close_var(&v);
    return rc;
}

/* ==== netcdf in ================================ */

/*
 * Reading NetCDF: groups become groups, variables arrays. Dimensions are names of axes;
 * which of them are unlimited, those that no variable has, and, where there are groups
 * within the root, which group has which of them, are noted in an attribute of the group:
 *
 *   "_nc_note": { "dimensions": { "time": { "unlimited": true, "length": 3 } } }
 */

#define MAX_GROUP_DEPTH 64

typedef struct group_in {
    brc_netcdf_in *in;
    int id, depth;
    const char *path;  /* in the file, and of the group that it becomes: "/a" */
    const char *label; /* "x.nc: /a" */
} group_in;

static int import_netcdf_group(const group_in *g, brc_error *err);

static int bad_group(const group_in *g, int status, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, "cannot read", g->label, err);
}

/* ---- dimensions --------------------------------------- */

/* A list that the library gives the length of first. The caller frees it. */
typedef int (*list_ids_fn)(int group, int *n, int *ids);

static int list_dims(int group, int *n, int *ids)
{
    return nc_inq_dimids(group, n, ids, 0);
}

static int list_ids(int **out, int *n, const group_in *g, list_ids_fn list, brc_error *err)
{
    *out = NULL;
    *n = 0;
    int status = list(g->id, n, NULL);
    if (status || *n < 0)
        return bad_group(g, status ? status : NC_EINVAL, err);
    BRC_TRY(brc_new_array((void **)out, (size_t)*n + 1, sizeof(int), err));
    status = *n > 0 ? list(g->id, n, *out) : 0;
    return status ? bad_group(g, status, err) : BRC_OK;
}

static int is_among(int id, const int *ids, int n)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id)
            return 1;
    return 0;
}

/* *used: whether a variable of this very group has the dimension. */
static int dim_is_used(int *used, const group_in *g, int dim, const int *vars, int nvars,
                       brc_error *err)
{
    int ids[NC_MAX_VAR_DIMS], n = 0;
    *used = 0;
    for (int i = 0; i < nvars && !*used; i++) {
        int status = nc_inq_varndims(g->id, vars[i], &n);
        if (!status && n <= NC_MAX_VAR_DIMS)
            status = nc_inq_vardimid(g->id, vars[i], ids);
        if (status)
            return bad_group(g, status, err);
        *used = n <= NC_MAX_VAR_DIMS && is_among(dim, ids, n);
    }
    return BRC_OK;
}

static int note_dims(brc_json **note, const group_in *g, brc_error *err)
{
    int *dims = NULL, *unlimited = NULL, *vars = NULL, ndims, nunlimited = 0, nvars, used, rc;
    char name[BRC_NETCDF_NAME_MAX];
    size_t length;

    BRC_GO(list_ids(&dims, &ndims, g, list_dims, err));
    BRC_GO(list_ids(&vars, &nvars, g, nc_inq_varids, err));
    BRC_GO(list_ids(&unlimited, &nunlimited, g, nc_inq_unlimdims, err));
    for (int i = 0; i < ndims; i++) {
        int status = nc_inq_dim(g->id, dims[i], name, &length);
        int grows = is_among(dims[i], unlimited, nunlimited);
        if (status || !brc_utf8_valid(name, strlen(name))) {
            rc = bad_group(g, status ? status : NC_EBADNAME, err);
            goto done;
        }
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) == 0)
            continue;
        BRC_GO(dim_is_used(&used, g, dims[i], vars, nvars, err));
        if (grows || !used || g->in->has_groups)
            BRC_GO(brc_netcdf_note_dim(note, name, length, grows, err));
    }
done:
    free(dims);
    free(vars);
    free(unlimited);
    return rc;
}

/* ---- groups ------------------------------------------- */

static int make_netcdf_group(const group_in *g, brc_error *err)
{
    brc_netcdf_atts_in atts = {
        .convert = g->in->convert, .group = g->id, .var = NC_GLOBAL, .label = g->label
    };
    brc_buf text = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_netcdf_read_atts(&atts, err));
    BRC_GO(note_dims(&atts.note, g, err));
    if (atts.note) {
        rc = brc_json_set(atts.attrs, BRC_NETCDF_GROUP_NOTE, atts.note, err);
        atts.note = NULL;
        BRC_GO(rc);
    }
    BRC_GO(brc_json_write(&text, atts.attrs, err));
    BRC_GO(brc_buf_terminate(&text, err));
    BRC_GO(brc_convert_group(g->in->convert, g->path, (const char *)text.data, err));
done:
    brc_buf_dispose(&text);
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

/* A child of a group: where it is, and what it is called in messages. */
typedef struct child_in {
    char *path, *label;
    int excluded;
} child_in;

static void child_free(child_in *child)
{
    free(child->path);
    free(child->label);
}

/* By its path in the file, where names are not escaped. */
static int settle_child(const group_in *g, const child_in *child, int rc, brc_error *err)
{
    brc_convert *c = g->in->convert;
    return brc_convert_settle(c, rc, brc_convert_path(c, child->label), NULL, err);
}

static int child_open(child_in *out, const group_in *g, const char *name, brc_error *err)
{
    int rc;

    memset(out, 0, sizeof(*out));
    brc_convert *c = g->in->convert;
    BRC_GO(brc_node_join(&out->label, g->label, name, err));
    BRC_GO(brc_convert_node_path(&out->path, c, g->path, name, err));
    out->excluded = brc_convert_is_excluded(c, brc_convert_path(c, out->label));
    if (out->excluded)
        goto done;
    rc = settle_child(g, out, brc_convert_place_check(out->label, out->path, err), err);
    out->excluded = rc == 1;
done:
    if (rc < 0)
        child_free(out);
    return rc < 0 ? rc : BRC_OK;
}

/* What the first round has seen of a variable that stays out does not count in the second. */
static int bring_var(const group_in *g, int var, const child_in *child, brc_error *err)
{
    size_t seen = g->in->nvars;
    int rc = brc_netcdf_is_ragged(g->id, var, child->label, err);
    if (rc == 1)
        rc = brc_netcdf_import_ragged(g->in, g->id, var, child->label, child->path, err);
    else if (rc == 0)
        rc = netcdf_import_var(g->in, g->id, var, child->label, child->path, err);
    rc = settle_child(g, child, rc, err);
    if (rc == 1 && brc_convert_phase(g->in->convert) == BRC_CONVERT_DOCS)
        g->in->nvars = seen;
    return rc;
}

static int import_vars(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, nc_inq_varids, err);
    for (int i = 0; i < n && rc >= 0; i++) {
        child_in child;
        int status = nc_inq_varname(g->id, ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        if (!child.excluded)
            rc = bring_var(g, ids[i], &child, err);
        child_free(&child);
    }
    free(ids);
    return rc < 0 ? rc : BRC_OK;
}

static int import_groups(const group_in *g, brc_error *err)
{
    char name[BRC_NETCDF_NAME_MAX];
    int *ids, n;
    int rc = list_ids(&ids, &n, g, nc_inq_grps, err);
    for (int i = 0; i < n && rc >= 0; i++) {
        child_in child;
        int status = nc_inq_grpname(ids[i], name);
        rc = status ? bad_group(g, status, err) : child_open(&child, g, name, err);
        if (rc < 0)
            break;
        group_in below = { g->in, ids[i], g->depth + 1, child.path, child.label };
        if (!child.excluded)
            rc = settle_child(g, &child, import_netcdf_group(&below, err), err);
        child_free(&child);
    }
    free(ids);
    return rc < 0 ? rc : BRC_OK;
}

static int import_netcdf_group(const group_in *g, brc_error *err)
{
    if (g->depth > MAX_GROUP_DEPTH)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: its groups are nested too deep",
                               g->label);
    if (brc_convert_phase(g->in->convert) == BRC_CONVERT_DOCS)
        BRC_TRY(make_netcdf_group(g, err));
    BRC_TRY(import_vars(g, err));
    return g->in->is_netcdf4 ? import_groups(g, err) : BRC_OK;
}

/* ---- the file ------------------------------------------ */

static int read_format(brc_netcdf_in *in, brc_error *err)
{
    int format = 0;
    int status = nc_inq_format(in->id, &format);

    in->is_netcdf4 =
        !status && (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC);
    if (in->is_netcdf4)
        status = nc_inq_grps(in->id, &in->has_groups, NULL);
    const char *name = brc_convert_file(in->convert);
    return status ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read", name, err) : BRC_OK;
}

static void close_in(void *state)
{
    brc_netcdf_in *in = state;
    if (in->id >= 0)
        (void)nc_close(in->id);
    brc_netcdf_places_free(&in->places);
    free(in->local);
    free(in->vars);
    free(in);
}

int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err)
{
    brc_netcdf_in *in;

    BRC_TRY(brc_new(state, sizeof(*in), err));
    in = *state;
    *in = (brc_netcdf_in){ .run = { close_in }, .convert = c, .id = -1 };
    BRC_TRY(brc_netcdf_is_hdf5(file) ? brc_netcdf_check_links(file, err)
                                     : brc_netcdf_check_length(&in->places, file, err));
    BRC_TRY(brc_netcdf_path(&in->local, file, err));
    int status = nc_open(in->local, NC_NOWRITE, &in->id);
    if (status) {
        in->id = -1;
        return brc_netcdf_fail(status, BRC_EINVAL, "cannot open", brc_convert_file(c), err);
    }
    return read_format(in, err);
}

int brc_netcdf_walk(void *state, brc_error *err)
{
    brc_netcdf_in *in = state;
    brc_buf label = BRC_BUF_INIT;
    int rc;

    BRC_GO(brc_buf_printf(&label, err, "%s: /", brc_convert_file(in->convert)));
    BRC_GO(brc_buf_terminate(&label, err));
    group_in root = { in, in->id, 0, "/", (const char *)label.data };
    BRC_GO(import_netcdf_group(&root, err));
done:
    brc_buf_dispose(&label);
    return rc;
}
