/* An array as a variable of a NetCDF file: its definition. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "netcdf_out.h"

/* HDF5's chunks are below 4 GiB; a smaller bound keeps its memory small as well. */
#define MAX_FILE_CHUNK (UINT64_C(1) << 30)
/* Arrays are compressed fast by default; 4 would take twice the time, for 4 % on winds. */
#define DEFLATE_LEVEL 1
/* The most bytes of one variable, or of one record of it, in a file of version 2. */
#define MAX_VAR_BYTES_2 (UINT64_C(0xFFFFFFFF) - 3)

/* An array while it is looked at. */
typedef struct var_out {
    brc_netcdf_out *out;
    brc_netcdf_var *var;
    const brc_meta *meta;
    const brc_json *doc;
    brc_netcdf_type type;
} var_out;

static int open_var_out(var_out *v, brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err)
{
    *v = (var_out){ .out = out, .var = var, .meta = var->node->meta, .doc = var->node->doc };
    int rc = brc_netcdf_type_out(&v->type, &out->types, v->meta->type, out->classic, err);
    if (rc < 0)
        brc_context(err, "%s", var->node->path);
    return rc;
}

static int refused(const var_out *v, int status, const char *what, brc_error *err)
{
    return brc_netcdf_fail(status, BRC_EUNSUPPORTED, what, v->var->node->path, err);
}

/* ---- attributes ------------------------------------------- */

/* An attribute of another type than it must have, or of several values, cannot be made
 * under this name in a NetCDF-4 file; but files have it, and readers tolerate it. */
static int put_odd_fill(const brc_netcdf_att_place *p, const brc_netcdf_values *values)
{
    static const char other[] = "_FillValue of another type";
    int status = nc_put_att(p->group, p->var, other, values->type, values->n, values->data);
    return status ? status : nc_rename_att(p->group, p->var, other, BRC_ATTR_FILL);
}

/* Writes the _FillValue of a complex number, as two floats or doubles. */
static int put_complex_fill(const brc_netcdf_att_place *p, const brc_netcdf_values *values)
{
    double pair[2];
    float narrow[2];
    size_t size = 0;

    memcpy(pair, values->data, sizeof(pair));
    int status = nc_inq_type(p->group, p->type, NULL, &size);
    for (int i = 0; i < 2; i++)
        narrow[i] = (float)pair[i];
    return status ? status
                  : nc_put_att(p->group, p->var, BRC_ATTR_FILL, p->type, 1,
                                           size == sizeof(narrow) ? (void *)narrow : pair);
}

int brc_netcdf_put_att(void *ctx, const char *name, const brc_netcdf_values *values, brc_error *err)
{
    const brc_netcdf_att_place *p = ctx;
    int status;

    if (p->out->classic && values->type > NC_DOUBLE && values->type != NC_NAT)
        p->out->version = 5;
    if (p->group < 0)
        return BRC_OK;
    if (values->type == NC_NAT)
        status = put_complex_fill(p, values);
    else if (p->var != NC_GLOBAL && strcmp(name, BRC_ATTR_FILL) == 0 &&
             (values->type != p->type || values->n != 1) && !p->out->classic)
        status = put_odd_fill(p, values);
    else
        status =
            nc_put_att(p->group, p->var, name, values->type, values->n, values->data);
    if (status)
        brc_netcdf_fail(status, BRC_EUNSUPPORTED,
                        "remove or rename it: NetCDF cannot have the attribute", name, err);
    return status == NC_ENOMEM ? BRC_ENOMEM
           : status > 0        ? BRC_EIO
           : status            ? BRC_EUNSUPPORTED
                               : BRC_OK;
}

/* An attribute that says what a type was. One of its name that says otherwise would be
 * lost or would lie. */
static int put_text(const var_out *v, brc_netcdf_att_place *place, const char *name,
                    const char *text, brc_error *err)
{
    const brc_json *there = brc_json_member(brc_json_member(v->doc, "attributes"), name);
    brc_netcdf_values values = { NC_CHAR, strlen(text), (void *)(uintptr_t)text, NULL };

    if (there && !brc_json_is(there, text))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: as %s it is written with the attribute %s \"%s\", but has another "
                        "one of that name: remove that",
                        v->var->node->path, v->meta->type->name, name, text);
    return there ? BRC_OK : brc_netcdf_put_att(place, name, &values, err);
}

static int put_time(const var_out *v, brc_netcdf_att_place *place, int has_fill, brc_error *err)
{
    static const struct {
        const char *unit, *word, *resolution;
    } units[] = {
        { "D", "days", "s" },           { "h", "hours", "s" },
        { "m", "minutes", "s" },        { "s", "seconds", "s" },
        { "ms", "milliseconds", "ms" }, { "us", "microseconds", "us" },
        { "ns", "nanoseconds", "ns" },
    };
    const brc_dtype *type = v->meta->type;
    const char *npy = type->npy ? strchr(type->npy, '[') : NULL; /* "<M8[ns]" */
    int is_date = strcmp(type->name, "numpy.datetime64") == 0;
    int64_t missing = INT64_MIN;
    brc_netcdf_values none = { NC_INT64, 1, &missing, NULL };
    char text[64];
    size_t i = 0, n = sizeof(units) / sizeof(units[0]);

    for (; i < n; i++)
        if (npy && strncmp(npy + 1, units[i].unit, strlen(units[i].unit)) == 0 &&
            npy[1 + strlen(units[i].unit)] == ']')
            break;
    if (i == n)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: CF has no unit for %s: days, hours, minutes, seconds and their parts "
                        "down to nanoseconds can be written",
                        v->var->node->path, type->npy ? type->npy : type->name);
    snprintf(text, sizeof(text), "%s%s", units[i].word, is_date ? " since 1970-01-01" : "");
    BRC_TRY(put_text(v, place, "units", text, err));
    if (!has_fill)
        BRC_TRY(brc_netcdf_put_att(place, BRC_ATTR_FILL, &none, err));
    if (is_date)
        return put_text(v, place, "calendar", "proleptic_gregorian", err);
    snprintf(text, sizeof(text), "timedelta64[%s]", units[i].resolution);
    return put_text(v, place, "dtype", text, err);
}

/* Writes the array's fill value as _FillValue. */
static int put_own_fill(const var_out *v, const brc_netcdf_att_place *place, brc_error *err)
{
    const uint8_t *fill = v->meta->fill.data;
    const brc_netcdf_type *type = &v->type;
    uint8_t *here = NULL, *file = NULL;
    int rc;

    if (place->group < 0 || type->how != BRC_NETCDF_PLAIN || type->chars || !fill)
        return BRC_OK;
    BRC_GO(brc_new_array((void **)&here, 1, type->here_size, err));
    BRC_GO(brc_new_array((void **)&file, 1, type->file_size, err));
    brc_netcdf_lay_out(type, file, fill, here);
    int status =
        nc_put_att(place->group, place->var, BRC_ATTR_FILL, place->type, 1, file);
    rc = status ? refused(v, status, "NetCDF cannot have the _FillValue of", err) : BRC_OK;
done:
    free(here);
    free(file);
    return rc;
}

/* *has_fill: there is a _FillValue of the variable's type. */
static int put_atts(const var_out *v, int group, int id, int *has_fill, brc_error *err)
{
    brc_netcdf_att_place place = { v->out, group, id, v->type.id, v->var->node->path };
    brc_netcdf_atts_out atts = { .label = v->var->node->path,
                                 .of = { .type = v->type.number,
                                         .is_var = 1,
                                         .is_complex = v->type.is_complex,
                                         .is_classic = v->out->classic },
                                 .ctx = &place,
                                 .put = brc_netcdf_put_att };
    int klass = v->meta->type->klass;

    BRC_TRY(brc_netcdf_each_att(&atts, v->doc, err));
    *has_fill = atts.has_fill;
    if (atts.own_fill)
        BRC_TRY(put_own_fill(v, &place, err));
    if (klass == BRC_CLASS_BOOL)
        return put_text(v, &place, "dtype", "bool", err);
    if (v->type.how == BRC_NETCDF_WIDER)
        return put_text(v, &place, "dtype", v->meta->type->name, err);
    if (klass != BRC_CLASS_TIME)
        return BRC_OK;
    BRC_TRY(put_time(v, &place, *has_fill, err));
    *has_fill = 1;
    return BRC_OK;
}

/* ---- looking at it ------------------------------------------ */

static int take_axis_name(char **out, const brc_json *name, brc_error *err)
{
    const char *text;
    return brc_json_text(name, &text) && text[0] ? brc_dup(out, text, err) : BRC_OK;
}

/* dimension_names, else xarray's attribute of Zarr v2. */
static int take_axis_names(const var_out *v, brc_netcdf_axes *axes, int ndim, brc_error *err)
{
    const brc_json *names = brc_json_member(v->doc, "dimension_names");
    char text[32];

    if (brc_json_kind(names) != BRC_JSON_ARRAY)
        names = brc_json_member(brc_json_member(v->doc, "attributes"), "_ARRAY_DIMENSIONS");
    if (brc_json_kind(names) == BRC_JSON_ARRAY && brc_json_count(names) == (size_t)ndim)
        for (int k = 0; k < ndim; k++)
            BRC_TRY(take_axis_name(&axes->names[k], brc_json_item(names, (size_t)k), err));
    if (v->type.chars == 0)
        return BRC_OK;
    snprintf(text, sizeof(text), "string%zu", v->type.chars);
    return brc_dup(&axes->names[ndim], text, err);
}

int brc_netcdf_plan_var(brc_netcdf_out *out, brc_netcdf_var *var, brc_netcdf_axes *axes,
                        brc_error *err)
{
    uint64_t bytes;
    int has_fill, rc;
    var_out v;

    BRC_TRY(open_var_out(&v, out, var, err));
    const brc_meta *meta = v.meta;
    var->ndim = meta->ndim + (v.type.chars > 0);
    memcpy(var->shape, meta->shape, (size_t)meta->ndim * sizeof(*meta->shape));
    if (v.type.chars)
        var->shape[meta->ndim] = v.type.chars;
    BRC_GO(take_axis_names(&v, axes, meta->ndim, err));
    BRC_GO(put_atts(&v, -1, 0, &has_fill, err));
    int large =
        !brc_shape_bytes(var->ndim, var->shape, brc_netcdf_atomic_size(v.type.id), &bytes) ||
        bytes > MAX_VAR_BYTES_2;
    for (int k = 0; k < var->ndim; k++)
        large |= var->shape[k] > INT32_MAX;
    if (out->classic && (large || v.type.id > NC_DOUBLE))
        out->version = 5;
done:
    brc_netcdf_type_free(&v.type);
    return rc;
}

/* ---- chunks and compression ----------------------------------- */

/* The level where it is one of deflate's own; 0: the array is not compressed. */
static int deflate_level(const brc_json *codecs)
{
    static const char *const compressors[] = {
        "gzip", "zlib", "blosc", "zstd", "lz4", "bz2", "lzma"
    };
    const char *name;
    int64_t level;
    int found = 0;

    if (!codecs)
        return DEFLATE_LEVEL;
    for (const brc_json *c = brc_json_first(codecs); c; c = brc_json_next(c)) {
        int has_name = brc_json_text(brc_json_member(c, "name"), &name);
        if (has_name && strncmp(name, "numcodecs.", 10) == 0)
            name += 10;
        const brc_json *config = brc_json_member(c, "configuration");
        for (size_t i = 0; has_name && i < sizeof(compressors) / sizeof(compressors[0]); i++)
            if (strcmp(name, compressors[i]) == 0)
                found = i < 2 && brc_json_int(brc_json_member(config, "level"), 1, 9, &level)
                            ? (int)level
                            : DEFLATE_LEVEL;
    }
    return found;
}

/* The array's chunks as far as the file takes them: no longer than a dimension that does
 * not grow. *one: it is all in one. */
static void file_chunks(const var_out *v, size_t *chunk, int *one)
{
    int ndim = v->var->ndim;
    uint64_t shape[BRC_MAX_NDIM + 1], bytes;

    *one = 1;
    for (int k = 0; k < ndim; k++) {
        const brc_netcdf_dim *d = brc_netcdf_dim_at(v->out, v->var->dims[k]);
        uint64_t n = k < v->meta->ndim ? v->meta->grid.chunk[k] : v->type.chars;
        if (n > d->length && (!d->unlimited || n > INT32_MAX))
            n = d->length;
        shape[k] = n > 0 ? n : 1;
        *one &= !d->unlimited && shape[k] == d->length;
    }
    while (!brc_shape_bytes(ndim, shape, v->type.file_size, &bytes) || bytes > MAX_FILE_CHUNK) {
        int largest = 0;
        for (int k = 1; k < ndim; k++)
            if (shape[k] > shape[largest])
                largest = k;
        if (shape[largest] == 1)
            break; /* one element alone is larger */
        shape[largest] = (shape[largest] + 1) / 2;
        *one = 0;
    }
    for (int k = 0; k < ndim; k++)
        chunk[k] = (size_t)shape[k];
}

static int set_storage(const var_out *v, int group, int id, brc_error *err)
{
    size_t chunk[BRC_MAX_NDIM + 1] = { 0 };
    int one, status;

    if (v->out->classic || v->var->ndim == 0)
        return BRC_OK;
    int level = v->type.how == BRC_NETCDF_PLAIN || v->type.how == BRC_NETCDF_WIDER
                    ? deflate_level(v->var->node->codecs)
                    : 0; /* of lists and texts HDF5 compresses the addresses alone */
    file_chunks(v, chunk, &one);
    status = level == 0 && one ? nc_def_var_chunking(group, id, NC_CONTIGUOUS, NULL)
                               : nc_def_var_chunking(group, id, NC_CHUNKED, chunk);
    if (!status && level > 0)
        status = nc_def_var_deflate(group, id, v->type.file_size > 1, 1, level);
    return status ? refused(v, status, "NetCDF cannot have the chunks of", err) : BRC_OK;
}

/* Unwritten elements do not occur, and Zarr's fill value marks nothing as missing: where
 * there is no _FillValue, the variable is one without a fill value, so that no reader takes
 * elements for missing. But where the fill value is the one that NetCDF has for the type,
 * it came from there, and is meant so. */
static int set_fill_mode(const var_out *v, int group, int id, int has_fill, brc_error *err)
{
    const uint8_t *fill = v->meta->fill.data;
    uint8_t standard[8], element[8];
    size_t n = brc_netcdf_default_fill(v->type.id, standard);

    if (v->out->classic || has_fill || v->type.how == BRC_NETCDF_STRINGS ||
        v->type.how == BRC_NETCDF_LISTS || v->type.how == BRC_NETCDF_UTF32)
        return BRC_OK;
    if (v->type.how == BRC_NETCDF_PLAIN && n > 0 && n == v->type.here_size && fill) {
        memcpy(element, fill, n);
        brc_dtype_native(v->type.from, element, n);
        if (memcmp(element, standard, n) == 0)
            return BRC_OK;
    }
    int status = nc_def_var_fill(group, id, NC_NOFILL, NULL);
    return status ? refused(v, status, "NetCDF cannot have", err) : BRC_OK;
}

/* ---- defining it ------------------------------------------------ */

static int define_it(var_out *v, brc_error *err)
{
    int group = brc_netcdf_group_at(v->out, v->var->group)->id, ids[BRC_MAX_NDIM + 1] = { 0 };
    int has_fill = 0;

    for (int k = 0; k < v->var->ndim; k++)
        ids[k] = brc_netcdf_dim_at(v->out, v->var->dims[k])->id;
    int status =
        nc_def_var(group, v->var->name, v->type.id, v->var->ndim, ids, &v->var->id);
    if (status)
        return refused(v, status, "move or rename it: NetCDF cannot have the variable", err);
    BRC_TRY(put_atts(v, group, v->var->id, &has_fill, err));
    BRC_TRY(set_fill_mode(v, group, v->var->id, has_fill || v->type.id == NC_NAT, err));
    return set_storage(v, group, v->var->id, err);
}

int brc_netcdf_define_var(brc_netcdf_out *out, brc_netcdf_var *var, brc_error *err)
{
    var_out v;
    BRC_TRY(open_var_out(&v, out, var, err));
    int rc = define_it(&v, err);
    brc_netcdf_type_free(&v.type);
    return rc;
}
