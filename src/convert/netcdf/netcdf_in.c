/*
 * Reads classic NetCDF: the file becomes a group, and variables become arrays. (NetCDF-4 files are
 * HDF5: ../hdf5/hdf5_netcdf.h.) Dimensions become names of axes. An attribute of the group notes
 * the unlimited dimension, and those that no variable has:
 *
 *   "_nc_note": { "dimensions": { "time": { "unlimited": true, "length": 3 } } }
 */
#include "netcdf_lib.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../nd/box.h"
#include "../../nd/shape.h"

typedef struct brc_netcdf_in {
    brc_netcdf_run run;
    brc_convert *convert;
    const char *label; /* of the root group: "x.nc: /" */
    char *local;       /* the file's name in netCDF-C's form */
    int id;            /* the id of the open file; negative: closed */
    brc_netcdf_places places;
    unsigned char *is_bool; /* by the variable's number; the first round decides */
} brc_netcdf_in;

/* The least bytes of a record variable's piece that is worth a read by itself. */
#define PIECE_LEAST 512
#define NAME_ROOM (4 * NC_MAX_NAME) /* bytes for names that the library gives */

typedef struct var_in {
    brc_netcdf_in *in;
    int var;
    const char *label;
    nc_type type;
    brc_array_in array;
    char *names[BRC_MAX_NDIM];
    brc_netcdf_atts_in atts;
    char *attrs_json;
    brc_buf fill_text;
} var_in;

static int failed(const var_in *v, int status, const char *what, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, what, v->label, err);
}

/* ---- attributes ------------------------------------------ */

#define MAX_ATT_BYTES ((size_t)64 << 20)

static int cannot_read(int status, const char *name, const char *label, brc_error *err)
{
    brc_netcdf_fail(status, BRC_EINVAL, "cannot read an attribute of", label, err);
    brc_context(err, "%s", name);
    return status == NC_ENOMEM ? BRC_ENOMEM : status > 0 ? BRC_EIO : BRC_EINVAL;
}

static int read_att(brc_netcdf_values *out, const brc_netcdf_in *in, int var, const char *name,
                    const char *label, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int status = nc_inq_att(in->id, var, name, &out->type, &out->n);
    size_t size = status ? 0 : brc_netcdf_atomic_size(out->type);
    if (status)
        return cannot_read(status, name, label, err);
    if (size == 0 || out->n > MAX_ATT_BYTES / size)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s: the attribute %s is longer than %lu bytes", label, name,
                               (unsigned long)MAX_ATT_BYTES);
    BRC_TRY(brc_new_array(&out->data, out->n + 1, size, err));
    status = out->n > 0 ? nc_get_att(in->id, var, name, out->data) : 0;
    if (!status)
        return BRC_OK;
    brc_netcdf_values_free(out);
    return cannot_read(status, name, label, err);
}

static int take_att(brc_netcdf_atts_in *atts, const brc_netcdf_in *in, int var, const char *name,
                    brc_error *err)
{
    brc_netcdf_values values;
    if (!brc_utf8_valid(name, strlen(name)))
        return brc_part_refuse(err, BRC_PART_NAME, "rename it",
                               "%s: an attribute's name is not UTF-8", atts->label);
    BRC_TRY(read_att(&values, in, var, name, atts->label, err));
    int rc = brc_netcdf_take_att(atts, name, &values, err);
    brc_netcdf_values_free(&values);
    return rc;
}

/* Reads all attributes of a variable, or of the file (NC_GLOBAL). */
static int take_atts(brc_netcdf_atts_in *atts, const brc_netcdf_in *in, int var, brc_error *err)
{
    const char *path = brc_convert_path(in->convert, atts->label);
    char name[NAME_ROOM];
    int n = 0;
    int status = nc_inq_varnatts(in->id, var, &n);
    if (!status)
        BRC_TRY(brc_attr_check_count((uint64_t)n, atts->label, err));
    atts->attrs = brc_json_new_object();
    if (!atts->attrs)
        return brc_nomem(err);
    for (int i = 0; i < n && !status; i++) {
        status = nc_inq_attname(in->id, var, i, name);
        if (status || brc_convert_lacks_attribute(in->convert, path, name))
            continue;
        int rc = brc_convert_settle(in->convert, take_att(atts, in, var, name, err), path, name,
                                    err);
        if (rc < 0)
            return rc;
    }
    return status ? brc_netcdf_fail(status, BRC_EINVAL, "cannot read the attributes of",
                                    atts->label, err)
                  : BRC_OK;
}

/* ---- reading elements ------------------------------------ */

static int read_var_box(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    const var_in *v = ctx;
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    (void)len;
    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    int status = nc_get_vara(v->in->id, v->var, start, count, dst);
    return status ? failed(v, status, "cannot read", err) : BRC_OK;
}

/* Refers to the elements in the file if their pieces are long enough. */
static void find_classic_elements(var_in *v)
{
    const brc_netcdf_places *places = &v->in->places;
    size_t size = brc_netcdf_atomic_size(v->type);
    uint64_t referred, bytes;
    if ((size_t)v->var >= places->n || v->array.ndim == 0 || strcmp(v->array.dtype, "bool") == 0)
        return;
    const brc_tar_range *range = &places->ranges[v->var];
    if (range->len < PIECE_LEAST || !brc_tar_range_bytes(range, &referred) ||
        referred < brc_convert_refers_from(v->in->convert) ||
        !brc_shape_bytes(v->array.ndim, v->array.shape, size, &bytes) || bytes != referred)
        return;
    v->array.elements = range;
    v->array.codecs = size > 1 ? "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"
                               : "[{\"name\":\"bytes\"}]";
}

/* ---- its shape ------------------------------------------- */

static int read_dims(var_in *v, brc_error *err)
{
    char name[NAME_ROOM];
    int ids[BRC_MAX_NDIM], ndim = 0;
    size_t length;

    int status = nc_inq_varndims(v->in->id, v->var, &ndim);
    if (status)
        return failed(v, status, "cannot read", err);
    if (ndim < 0 || ndim > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL,
                               "%s has %d dimensions, but an array has at most %d", v->label, ndim,
                               BRC_MAX_NDIM);
    v->array.ndim = ndim;
    status = nc_inq_vardimid(v->in->id, v->var, ids);
    for (int k = 0; k < ndim && !status; k++) {
        status = nc_inq_dim(v->in->id, ids[k], name, &length);
        if (status)
            break;
        v->array.shape[k] = length;
        if (!brc_utf8_valid(name, strlen(name)))
            return brc_fail(err, BRC_EINVAL, "%s: a dimension's name is not UTF-8", v->label);
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) == 0)
            continue;
        BRC_TRY(brc_dup(&v->names[k], name, err));
        v->array.names = (const char *const *)v->names;
    }
    return status ? failed(v, status, "cannot read the dimensions of", err) : BRC_OK;
}

/* ---- documents ------------------------------------------- */

/* Reads the variable's _FillValue if it is a single value of the variable's type, otherwise the
 * library's fill value. (The library's own function copies any _FillValue, of any type and length,
 * into memory for one value.) */
static int read_classic_fill(const var_in *v, uint8_t *out, int *found, brc_error *err)
{
    int id = v->in->id, no_fill = 0;
    nc_type is = NC_NAT;
    size_t n = 0;
    if (nc_inq_att(id, v->var, BRC_ATTR_FILL, &is, &n) == NC_NOERR && is == v->type && n == 1) {
        int status = nc_get_att(id, v->var, BRC_ATTR_FILL, out);
        *found = 1;
        return status ? failed(v, status, "cannot read the _FillValue of", err) : BRC_OK;
    }
    *found = nc_inq_var_fill(id, v->var, &no_fill, NULL) == NC_NOERR && !no_fill &&
             brc_netcdf_default_fill(v->type, out) > 0;
    return BRC_OK;
}

static int print_fill(var_in *v, brc_error *err)
{
    uint8_t element[8];
    brc_dtype *type = NULL;
    int found, rc;
    BRC_GO(read_classic_fill(v, element, &found, err));
    if (!found || strcmp(v->array.dtype, "bool") == 0)
        goto done;
    size_t size = brc_netcdf_atomic_size(v->type);
    BRC_GO(
        brc_convert_dtype_open(&type, brc_convert_registry(v->in->convert), v->array.dtype, err));
    brc_dtype_native(type, element, size);
    BRC_GO(type->ops->print(type, element, size, BRC_PRINT_FILL, &v->fill_text, err));
    BRC_GO(brc_buf_terminate(&v->fill_text, err));
    v->array.fill = (const char *)v->fill_text.data;
done:
    brc_dtype_free(type);
    return rc;
}

static int describe_notes(var_in *v, brc_error *err)
{
    BRC_TRY(brc_netcdf_atts_text(&v->attrs_json, &v->atts, err));
    v->array.attrs_json = v->attrs_json;
    return brc_netcdf_note_array(&v->atts, &v->array, err);
}

/* Describes a variable. Attributes, notes and the search for booleans belong to the first round. */
static int describe_var(var_in *v, brc_error *err)
{
    brc_netcdf_in *in = v->in;
    int docs = brc_convert_phase(in->convert) == BRC_CONVERT_DOCS, is_bool;
    int status = nc_inq_vartype(in->id, v->var, &v->type);
    if (status || brc_netcdf_atomic_size(v->type) == 0)
        return failed(v, status ? status : NC_EBADTYPE, "cannot read", err);
    v->array.dtype = brc_netcdf_type_dtype(v->type);
    v->array.ctx = v;
    v->array.read = read_var_box;
    BRC_TRY(read_dims(v, err));
    if (docs) {
        v->atts.of = (brc_netcdf_of){ .type = v->type, .is_var = 1 };
        v->atts.label = v->label;
        BRC_TRY(take_atts(&v->atts, in, v->var, err));
        BRC_TRY(brc_netcdf_find_booleans(&is_bool, &v->atts, &v->array, err));
        in->is_bool[v->var] = (unsigned char)is_bool;
        v->array.lacks_fill = brc_netcdf_lacks_fill(&v->atts);
        BRC_TRY(describe_notes(v, err));
    }
    if (in->is_bool[v->var])
        v->array.dtype = "bool";
    find_classic_elements(v);
    return print_fill(v, err);
}

static void close_var(var_in *v)
{
    for (int k = 0; k < BRC_MAX_NDIM; k++)
        free(v->names[k]);
    brc_json_free(v->atts.attrs);
    brc_json_free(v->atts.note);
    free(v->attrs_json);
    brc_buf_dispose(&v->fill_text);
}

/* The variable becomes the array `path`. */
static int import_var(brc_netcdf_in *in, int var, const char *label, const char *path,
                      brc_error *err)
{
    var_in v = { .in = in, .var = var, .label = label, .array = { .path = path, .label = label } };
    int rc = describe_var(&v, err);
    if (rc == BRC_OK)
        rc = brc_convert_array(in->convert, &v.array, err);
    close_var(&v);
    return rc;
}

/* ---- all variables --------------------------------------- */

static int take_classic_var(brc_netcdf_in *in, int var, const char *name, brc_error *err)
{
    brc_convert *c = in->convert;
    char *path = NULL, *label = NULL;
    int rc;
    BRC_GO(brc_node_join(&label, in->label, name, err));
    BRC_GO(brc_convert_node_path(&path, c, "/", name, err));
    if (brc_convert_is_excluded(c, brc_convert_path(c, label)))
        goto done;
    rc = brc_convert_place_check(label, path, err);
    if (rc == BRC_OK)
        rc = import_var(in, var, label, path, err);
    rc = brc_convert_settle(c, rc, brc_convert_path(c, label), NULL, err);
done:
    free(path);
    free(label);
    return rc < 0 ? rc : BRC_OK;
}

static int bad_file(const brc_netcdf_in *in, int status, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EINVAL, "cannot read", in->label, err);
}

static int take_classic_vars(brc_netcdf_in *in, int nvars, brc_error *err)
{
    char name[NAME_ROOM];
    for (int var = 0; var < nvars; var++) {
        int status = nc_inq_varname(in->id, var, name);
        BRC_TRY(status ? bad_file(in, status, err) : take_classic_var(in, var, name, err));
    }
    return BRC_OK;
}

/* ---- the group ------------------------------------------- */

/* Marks the dimensions that variables have. */
static int find_used_dims(const brc_netcdf_in *in, unsigned char *used, int ndims, int nvars,
                     brc_error *err)
{
    int ids[NC_MAX_VAR_DIMS], n = 0;
    for (int var = 0; var < nvars; var++) {
        int status = nc_inq_varndims(in->id, var, &n);
        if (!status && n <= NC_MAX_VAR_DIMS)
            status = nc_inq_vardimid(in->id, var, ids);
        if (status)
            return bad_file(in, status, err);
        for (int k = 0; k < n && n <= NC_MAX_VAR_DIMS; k++)
            if (ids[k] >= 0 && ids[k] < ndims)
                used[ids[k]] = 1;
    }
    return BRC_OK;
}

static int note_classic_dims(brc_json **note, const brc_netcdf_in *in, int ndims, int nvars,
                             brc_error *err)
{
    unsigned char *used;
    char name[NAME_ROOM];
    int unlimited = -1, rc;
    size_t length;
    BRC_TRY(brc_new_array((void **)&used, (size_t)ndims + 1, 1, err));
    BRC_GO(find_used_dims(in, used, ndims, nvars, err));
    (void)nc_inq_unlimdim(in->id, &unlimited);
    for (int i = 0; i < ndims; i++) {
        int status = nc_inq_dim(in->id, i, name, &length);
        if (status || !brc_utf8_valid(name, strlen(name))) {
            rc = bad_file(in, status ? status : NC_EBADNAME, err);
            goto done;
        }
        if (strncmp(name, BRC_NETCDF_NAMELESS, strlen(BRC_NETCDF_NAMELESS)) != 0 &&
            (i == unlimited || !used[i]))
            BRC_GO(brc_netcdf_note_dim(note, name, length, i == unlimited, err));
    }
done:
    free(used);
    return rc;
}

static int make_classic_group(const brc_netcdf_in *in, int ndims, int nvars, brc_error *err)
{
    brc_netcdf_atts_in atts = { .label = in->label };
    char *text = NULL;
    int rc;

    BRC_GO(take_atts(&atts, in, NC_GLOBAL, err));
    BRC_GO(note_classic_dims(&atts.note, in, ndims, nvars, err));
    BRC_GO(brc_netcdf_note_group(&atts, err));
    BRC_GO(brc_netcdf_atts_text(&text, &atts, err));
    BRC_GO(brc_convert_group(in->convert, "/", text, err));
done:
    free(text);
    brc_json_free(atts.attrs);
    brc_json_free(atts.note);
    return rc;
}

/* ---- the file ------------------------------------------ */

static void close_in(void *state)
{
    brc_netcdf_in *in = state;
    if (in->id >= 0)
        (void)nc_close(in->id);
    brc_netcdf_places_free(&in->places);
    free((void *)(uintptr_t)in->label);
    free(in->local);
    free(in->is_bool);
    free(in);
}

int brc_netcdf_open(void **state, brc_convert *c, const char *file, brc_error *err)
{
    brc_netcdf_in *in;
    brc_buf label = BRC_BUF_INIT;
    char *text = NULL;
    int rc;

    BRC_TRY(brc_new(state, sizeof(*in), err));
    in = *state;
    *in = (brc_netcdf_in){ .run = { close_in }, .convert = c, .id = -1 };
    BRC_GO(brc_buf_printf(&label, err, "%s: /", brc_convert_file(c)));
    BRC_GO(brc_buf_take_text(&label, &text, err));
    in->label = text;
    BRC_GO(brc_netcdf_check_length(&in->places, file, err));
    BRC_GO(brc_netcdf_path(&in->local, file, err));
    int status = nc_open(in->local, NC_NOWRITE, &in->id);
    if (status) {
        in->id = -1;
        rc = brc_netcdf_fail(status, BRC_EINVAL, "cannot open", brc_convert_file(c), err);
    }
done:
    brc_buf_dispose(&label);
    return rc;
}

int brc_netcdf_walk(void *state, brc_error *err)
{
    brc_netcdf_in *in = state;
    int ndims = 0, nvars = 0;
    int status = nc_inq(in->id, &ndims, &nvars, NULL, NULL);
    if (status || ndims < 0 || nvars < 0)
        return bad_file(in, status ? status : NC_EINVAL, err);
    if (!in->is_bool)
        BRC_TRY(brc_new_array((void **)&in->is_bool, (size_t)nvars + 1, 1, err));
    if (brc_convert_phase(in->convert) == BRC_CONVERT_DOCS)
        BRC_TRY(make_classic_group(in, ndims, nvars, err));
    return take_classic_vars(in, nvars, err);
}
