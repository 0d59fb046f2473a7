/* Imports a dataset of HDF5 as an array, see hdf5_in.h. */
#include <stdlib.h>
#include <string.h>

#include "../../codec/registry.h"
#include "../../nd/box.h"
#include "hdf5_in.h"
#include "hdf5_netcdf.h"

typedef struct dataset_in {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space, plist, file_type;
    brc_hdf5_type type;
    brc_dtype *dtype;
    brc_hdf5_attrs attrs;
    brc_json *notes;
    brc_hdf5_stored stored;
    brc_hdf5_pass *pass; /* NULL: elements are read by the library */
    int ndim;                /* of the dataset itself; axes of the type follow */
    int chunked, undefined_fill, is_null, is_virtual, is_bool;
    uint64_t most[BRC_MAX_NDIM]; /* the largest shape; UINT64_MAX: no limit */
    char *names[BRC_MAX_NDIM];
    brc_buf fill;          /* the fill value as JSON */
    brc_buf span;          /* the fill value of variable length, as an element */
    char *attrs_json;
    brc_array_in array;
    /* The fields below are for variables of NetCDF-4 alone. */
    brc_netcdf_atts_in atts;
    uint64_t own[BRC_MAX_NDIM]; /* the dataset's shape, which may be shorter than the array's */
    int is_short;
    uint8_t *missing;      /* an element past the dataset's end, as in memory */
    int odd_gaps;          /* elements that are not stored differ from the array's fill value */
    int leaves_gaps;       /* chunks that are not stored are left out */
    int writes_gaps;       /* of variable length: chunks that are not stored are written as well */
    const uint64_t *visits; /* every chunk of this shape is read, stored or not; or NULL */
    int is_past_first;     /* `index` is the chunk that was given last              */
    uint64_t index[BRC_MAX_NDIM];
} dataset_in;

static int dataset_failed(const dataset_in *d, const char *what, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EINVAL, "%s: %s", d->label, what);
}

/* ---- shape -------------------------------- */

static int read_shape(dataset_in *d, brc_error *err)
{
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int ndim = H5Sget_simple_extent_ndims(d->space);
    d->is_null = H5Sget_simple_extent_type(d->space) == H5S_NULL;
    if (d->is_null) { /* a null dataspace has neither elements nor axes */
        d->array.ndim = d->ndim = 1;
        d->array.chunked = 1;
        d->array.chunk[0] = 1;
        return BRC_OK;
    }
    if (ndim < 0 || H5Sget_simple_extent_dims(d->space, dims, most) != ndim)
        return dataset_failed(d, "its shape cannot be read", err);
    if (ndim + d->type.ndim > BRC_MAX_NDIM)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s has more than %d axes", d->label,
                               BRC_MAX_NDIM);
    d->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        d->array.shape[i] = d->own[i] = dims[i];
        d->most[i] = most[i] == H5S_UNLIMITED ? UINT64_MAX : most[i];
    }
    for (int i = 0; i < d->type.ndim; i++)
        d->array.shape[ndim + i] = d->own[ndim + i] = d->type.shape[i];
    d->array.ndim = ndim + d->type.ndim;
    return BRC_OK;
}

/* Checks that elements without chunks are all stored, because the library does not. */
static int check_size(const dataset_in *d, brc_error *err)
{
    return d->chunked || d->is_null ? BRC_OK
                                    : brc_hdf5_size_check(d->id, d->file_type, d->ndim,
                                                          d->array.shape, d->label, err);
}

/* Reads the shape of chunks. Chunks that are too large for an array of Zarr are replaced by a
 * choice of our own. */
static int read_chunk_shape(dataset_in *d, brc_error *err)
{
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t bytes;
    if (!d->chunked || d->is_null)
        return BRC_OK;
    if (H5Pget_chunk(d->plist, d->ndim, chunk) != d->ndim)
        return dataset_failed(d, "its chunk shape cannot be read", err);
    for (int i = 0; i < d->ndim; i++) {
        if (chunk[i] == 0)
            return dataset_failed(d, "its chunk shape cannot be read", err);
        d->array.chunk[i] = chunk[i];
    }
    for (int i = 0; i < d->type.ndim; i++)
        d->array.chunk[d->ndim + i] = d->type.shape[i];
    d->array.chunked =
        brc_shape_bytes(d->array.ndim, d->array.chunk, d->type.item, &bytes) && bytes <= INT32_MAX;
    return BRC_OK;
}

/* Notes the largest shape, unless it is that of whole chunks: an export makes that much room
 * anyway. */
static int note_largest(dataset_in *d, brc_error *err)
{
    int said = 0;
    for (int i = 0; i < d->ndim && !d->is_null; i++)
        said |= d->most[i] != d->array.shape[i] &&
                !(d->most[i] > d->array.shape[i] && d->most[i] == d->array.chunk[i]);
    if (!said)
        return BRC_OK;
    return brc_note_numbers(d->notes, "maxshape", d->most, d->ndim, err);
}

/* ---- type -------------------------------- */

/* Uses the noted data type if an export of it makes the type that the file has. */
static int use_noted_type(dataset_in *d, hid_t file_type, brc_error *err)
{
    const brc_json *noted = brc_json_member(d->attrs.zarr, "data_type");
    brc_error why = BRC_ERROR_INIT;
    brc_hdf5_type made;
    brc_buf text = BRC_BUF_INIT;
    hid_t type = BRC_HDF5_NONE;

    if (!noted)
        return BRC_OK;
    int rc = brc_hdf5_type_make(&type, d->in->reg, noted, d->type.note, BRC_HDF5_WRITING, d->label,
                                &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc < 0 || H5Tequal(type, file_type) <= 0)
        goto done;
    BRC_GO(brc_hdf5_type_read(&made, d->in->reg, type, d->in->how, d->label, err));
    brc_hdf5_type_close(&made);
    BRC_GO(brc_json_write(&text, noted, 0, err));
    char *dtype = NULL;
    int quoted = text.data[0] == '"';
    BRC_GO(brc_dup_n(&dtype, (char *)text.data + quoted, text.len - 2 * (size_t)quoted, err));
    free(d->type.dtype);
    d->type.dtype = dtype;
done:
    brc_hdf5_close(type);
    brc_buf_dispose(&text);
    return rc == BRC_ENOMEM ? rc : BRC_OK;
}

static int read_dataset_type(dataset_in *d, brc_error *err)
{
    brc_json *json = NULL;
    int rc;
    d->file_type = H5Dget_type(d->id);
    if (d->file_type < 0)
        return dataset_failed(d, "its data type cannot be read", err);
    BRC_GO(brc_hdf5_type_read(&d->type, d->in->reg, d->file_type, d->in->how, d->label, err));
    BRC_GO(use_noted_type(d, d->file_type, err));
    BRC_GO(brc_convert_dtype_json(&json, d->type.dtype, err));
    rc = brc_dtype_open(&d->dtype, d->in->reg, json, NULL, err);
    if (rc < 0) {
        brc_context(err, "%s", d->label);
        goto done;
    }
    if (d->type.note) {
        brc_json *note = d->type.note;
        d->type.note = NULL;
        brc_json_free(d->notes);
        d->notes = note;
    }
done:
    brc_json_free(json);
    return rc;
}

/* ---- fill value -------------------------------- */

static int fill_json(dataset_in *d, uint8_t *element, brc_error *err)
{
    const uint8_t *data = element;
    size_t len = d->type.item;
    if (d->type.kind == BRC_HDF5_FIXED) {
        BRC_TRY(brc_hdf5_canonical(&d->type, d->dtype, element, 1, d->label, err));
        if (!brc_all_equal(element, d->type.size / len, len, element))
            return brc_part_refuse(err, BRC_PART_VALUE, NULL,
                                   "%s: its fill value is an array of different values, and Zarr's "
                                   "is one value",
                                   d->label);
    } else {
        d->span.len = 0;
        BRC_TRY(brc_hdf5_memory_span(d->in, &d->type, element, &d->span, d->label, err));
        data = d->span.data;
        len = d->span.len;
    }
    d->fill.len = 0;
    BRC_TRY(d->dtype->ops->print(d->dtype, data, len, BRC_PRINT_FILL, &d->fill, err));
    BRC_TRY(brc_buf_terminate(&d->fill, err));
    d->array.fill = (const char *)d->fill.data;
    return BRC_OK;
}

/* Returns whether no value means "missing". An array that came from Zarr may have noted this
 * itself. */
static int dataset_lacks_fill(const dataset_in *d, H5D_fill_value_t status)
{
    const brc_json *noted = brc_json_member(d->attrs.zarr, "fill_value");
    if (noted)
        return brc_json_kind(noted) == BRC_JSON_NULL;
    return status != H5D_FILL_VALUE_USER_DEFINED &&
           !brc_json_member(d->attrs.values, BRC_ATTR_FILL);
}

static int read_fill(dataset_in *d, brc_error *err)
{
    H5D_fill_value_t status = H5D_FILL_VALUE_UNDEFINED;
    H5D_fill_time_t when = H5D_FILL_TIME_NEVER;
    int rc, fixed = d->type.kind == BRC_HDF5_FIXED;
    size_t size = fixed ? d->type.size : sizeof(hvl_t);
    uint8_t *element = NULL;

    if (H5Pfill_value_defined(d->plist, &status) < 0 || H5Pget_fill_time(d->plist, &when) < 0)
        return dataset_failed(d, "its fill value cannot be read", err);
    d->undefined_fill = status == H5D_FILL_VALUE_UNDEFINED || when == H5D_FILL_TIME_NEVER;
    d->array.lacks_fill = dataset_lacks_fill(d, status);
    if (d->dtype->klass == BRC_CLASS_TIME)
        d->array.fill = "0"; /* HDF5's default; the default of a new array is NaT */
    if (status != H5D_FILL_VALUE_USER_DEFINED)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&element, size, err));
    if (H5Pget_fill_value(d->plist, d->type.memory, element) < 0) {
        rc = dataset_failed(d, "its fill value cannot be read", err);
    } else {
        rc = fill_json(d, element, err);
    }
    if (!fixed) {
        hid_t scalar = H5Screate(H5S_SCALAR);
        (void)H5Dvlen_reclaim(d->type.memory, scalar, H5P_DEFAULT, element);
        brc_hdf5_close(scalar);
    }
    free(element);
    return rc;
}

/* ---- elements -------------------------------- */

/* Fills the elements of a virtual dataset that no source has. The library does not do so where
 * sources overlap, because it only counts the elements that sources have. */
static int fill_first(const dataset_in *d, hid_t type, hid_t memory, void *dst, brc_error *err)
{
    uint8_t *element = NULL;
    BRC_TRY(brc_new((void **)&element, d->type.size, err));
    if (H5Pget_fill_value(d->plist, type, element) < 0)
        memset(element, 0, d->type.size);
    herr_t status = H5Dfill(element, type, dst, type, memory);
    free(element);
    return status < 0 ? dataset_failed(d, "its elements cannot be read", err) : BRC_OK;
}

/* Clips the box to the dataset. Returns 0 if no element is left. */
static int clip_to_dataset(const dataset_in *d, const brc_sel *box, brc_sel *part)
{
    *part = *box;
    for (int i = 0; i < d->ndim && d->is_short; i++) {
        if (box->start[i] >= d->own[i])
            return 0;
        if (part->count[i] > d->own[i] - box->start[i])
            part->count[i] = d->own[i] - box->start[i];
    }
    return 1;
}

/* Reads whole elements of a box. */
static int read_selected(const dataset_in *d, const brc_sel *box, hid_t type, void *dst,
                         brc_error *err)
{
    brc_sel part;
    int rc = BRC_OK;
    if (!clip_to_dataset(d, box, &part))
        return BRC_OK;
    hid_t memory = brc_hdf5_select(d->space, d->ndim, box, &part);
    if (memory < 0)
        return dataset_failed(d, "its elements cannot be read", err);
    if (d->is_virtual)
        rc = fill_first(d, type, memory, dst, err);
    if (rc == BRC_OK &&
        H5Dread(d->id, type, memory, d->ndim ? d->space : H5S_ALL, H5P_DEFAULT, dst) < 0)
        rc = dataset_failed(d, "its elements cannot be read", err);
    brc_hdf5_close(memory);
    return rc;
}

/* Reads a part of each element, for a box that cuts the axes of an array type. */
static int read_parts(dataset_in *d, const brc_sel *box, void *dst, brc_error *err)
{
    uint64_t whole[BRC_MAX_NDIM], n = brc_shape_count(d->ndim, box->count);
    int64_t from[BRC_MAX_NDIM], to[BRC_MAX_NDIM], at = 0;
    uint8_t *data;

    BRC_TRY(brc_new_array((void **)&data, n, d->type.size, err));
    for (int i = 0; i < box->ndim; i++)
        whole[i] = i < d->ndim ? box->count[i] : d->array.shape[i];
    brc_strides_packed(box->ndim, whole, d->type.item, from);
    brc_strides_packed(box->ndim, box->count, d->type.item, to);
    for (int i = d->ndim; i < box->ndim; i++)
        at += (int64_t)box->start[i] * from[i];
    int rc;
    BRC_GO(read_selected(d, box, d->type.memory, data, err));
    BRC_GO(brc_hdf5_canonical(&d->type, d->dtype, data, n, d->label, err));
    brc_copy_box(box->ndim, box->count, d->type.item, dst, to, data + at, from);
done:
    free(data);
    return rc;
}

static int read_dataset(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err)
{
    dataset_in *d = ctx;
    uint64_t n = brc_shape_count(d->ndim, box->count);
    int cut = 0;
    for (int i = d->ndim; i < box->ndim; i++)
        cut |= box->count[i] != d->array.shape[i];
    if (cut) {
        BRC_TRY(read_parts(d, box, dst, err));
    } else {
        if (d->undefined_fill) /* the library skips elements that were never written */
            memset(dst, 0, len);
        if (d->is_short)
            brc_fill_run(dst, n, d->type.size, d->missing);
        BRC_TRY(read_selected(d, box, d->type.memory, dst, err));
        BRC_TRY(brc_hdf5_canonical(&d->type, d->dtype, dst, n, d->label, err));
    }
    brc_dtype_native(d->dtype, dst, len);
    return BRC_OK;
}

/* ---- elements of variable length -------------------------------- */

/* Appends the elements of `part`, and the fill value for the rest of the box. */
static int surround(const dataset_in *d, const brc_sel *box, const brc_sel *part,
                    const brc_buf *elements, brc_buf *out, brc_error *err)
{
    static const uint8_t nothing[4];
    uint64_t index[BRC_MAX_NDIM] = { 0 };
    const uint8_t *at = elements->data;
    if (brc_shape_count(box->ndim, box->count) == 0)
        return BRC_OK;
    do {
        int has = elements->len > 0;
        for (int i = 0; i < d->ndim; i++)
            has &= index[i] < part->count[i];
        size_t len = has ? 4 + (size_t)brc_get_u32le(at) : 0;
        if (has)
            BRC_TRY(brc_buf_append(out, at, len, err));
        else if (d->span.len > 0)
            BRC_TRY(brc_buf_append(out, d->span.data, d->span.len, err));
        else
            BRC_TRY(brc_buf_append(out, nothing, sizeof(nothing), err));
        at = at ? at + len : NULL;
    } while (brc_index_next(box->ndim, index, box->count));
    return BRC_OK;
}

static int read_spans(const dataset_in *d, const brc_sel *box, brc_buf *out, brc_error *err)
{
    uint64_t n = brc_shape_count(d->ndim, box->count);
    hid_t memory = brc_hdf5_select(d->space, d->ndim, box, box);
    if (memory < 0)
        return dataset_failed(d, "its elements cannot be read", err);
    int rc = brc_hdf5_spans(d->in, &d->type, d->id, memory, d->ndim ? d->space : H5S_ALL, n, out,
                            d->label, err);
    brc_hdf5_close(memory);
    return rc;
}

/* Returns whether the chunk that begins the box is stored. The library cannot read other chunks if
 * the fill value has a variable length. */
static int is_stored(const dataset_in *d, const brc_sel *box, brc_error *err)
{
    hsize_t corner[H5S_MAX_RANK];
    brc_hdf5_chunk chunk;
    if (!d->chunked)
        return brc_hdf5_is_written(d->id);
    for (int i = 0; i < d->ndim; i++)
        corner[i] = box->start[i];
    BRC_TRY(brc_hdf5_chunk_find(&chunk, d->id, corner, d->label, err));
    return chunk.bytes > 0;
}

static int read_dataset_elements(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err)
{
    const dataset_in *d = ctx;
    brc_buf elements = BRC_BUF_INIT;
    brc_sel part;
    if (!d->is_short && !d->writes_gaps)
        return read_spans(d, box, out, err);
    int has = clip_to_dataset(d, box, &part);
    if (has && d->writes_gaps)
        has = is_stored(d, box, err);
    int rc = has > 0 ? read_spans(d, &part, &elements, err) : has;
    if (rc == BRC_OK)
        rc = surround(d, box, &part, &elements, out, err);
    brc_buf_dispose(&elements);
    return rc;
}

/* ---- the array -------------------------------- */

static int next_stored(void *ctx, brc_sel *box, brc_error *err)
{
    dataset_in *d = ctx;
    (void)err;
    return brc_hdf5_stored_next(&d->stored, d->ndim, d->array.ndim, d->array.shape, d->array.chunk,
                                box);
}

/* Gives every chunk of d->visits, stored or not. */
static int next_chunk_of_all(void *ctx, brc_sel *box, brc_error *err)
{
    dataset_in *d = ctx;
    uint64_t grid[BRC_MAX_NDIM];
    (void)err;
    for (int i = 0; i < d->array.ndim; i++)
        grid[i] = brc_grid_extent(d->visits[i], d->array.chunk[i]);
    if (d->is_past_first && !brc_index_next(d->array.ndim, d->index, grid))
        return 0;
    d->is_past_first = 1;
    brc_chunk_box(box, d->array.ndim, d->array.shape, d->array.chunk, d->index);
    return 1;
}

/* Adds the note to the attributes. Readers that do not know the note ignore it. */
static int finish_note(dataset_in *d, const char *path, brc_error *err)
{
    const char *committed = brc_hdf5_committed(d->in, d->file_type);
    if (committed)
        BRC_TRY(brc_json_set(d->notes, "committed", brc_json_new_string(committed), err));
    if (committed || d->type.kind == BRC_HDF5_OBJECT || d->type.kind == BRC_HDF5_REGION)
        d->attrs.has_paths = 1;
    BRC_TRY(brc_hdf5_filters_note(d->notes, d->plist, err));
    BRC_TRY(brc_hdf5_note_attrs(d->notes, &d->attrs, path, err));
    if (brc_json_count(d->notes) == 0)
        return BRC_OK;
    brc_json *may;
    BRC_TRY(brc_json_parse(&may, "false", 5, 0, err));
    BRC_TRY(brc_json_set(d->notes, "must_understand", may, err));
    d->array.note_name = BRC_HDF5_NOTE;
    d->array.note = d->notes;
    return BRC_OK;
}

static int describe_storage(dataset_in *d, brc_error *err)
{
    BRC_TRY(read_shape(d, err));
    BRC_TRY(check_size(d, err));
    return read_chunk_shape(d, err);
}

static int describe(dataset_in *d, const char *path, brc_error *err)
{
    int named = 0;
    BRC_TRY(brc_hdf5_attrs_read(&d->attrs, d->in, d->id, 1, d->label, err));
    BRC_TRY(read_dataset_type(d, err));
    BRC_TRY(brc_hdf5_fill_attr_in(d->attrs.values, &d->attrs.types, d->dtype, d->in->reg, err));
    BRC_TRY(describe_storage(d, err));
    BRC_TRY(note_largest(d, err));
    if (d->is_null)
        BRC_TRY(brc_json_set(d->notes, "space", brc_json_new_string("null"), err));
    else
        BRC_TRY(read_fill(d, err));
    BRC_TRY(brc_hdf5_names_read(d->names, d->in, d->id, d->ndim, d->attrs.is_scale, path, d->label,
                                err));
    for (int i = 0; i < d->ndim; i++)
        named |= d->names[i] != NULL;
    d->array.names = named ? (const char *const *)d->names : NULL;
    BRC_TRY(finish_note(d, path, err));
    return brc_hdf5_attrs_text(&d->attrs_json, &d->attrs, err);
}

/* ---- variables of NetCDF-4 -------------------------------- */

/* Reads the fill values of numbers and structs. The array's fill value is the attribute _FillValue,
 * or the dataset's fill value. Elements that are not stored have the dataset's own fill value, and
 * elements past its end the same, or the type's default if none is set: either may differ from the
 * array's. */
static int read_fixed_fill(dataset_in *d, const brc_hdf5_netcdf_var *var, brc_error *err)
{
    size_t size = d->type.size;
    uint8_t *gap, *own, standard[8];
    int found;
    BRC_TRY(brc_new_array((void **)&gap, 2, size, err));
    own = gap + size;
    int rc = BRC_OK;
    if (d->array.fill && H5Pget_fill_value(d->plist, d->type.memory, own) < 0)
        rc = dataset_failed(d, "its fill value cannot be read", err);
    if (!d->undefined_fill)
        memcpy(gap, own, size);
    BRC_GO(rc);
    BRC_GO(brc_hdf5_netcdf_fill(&found, own, d->id, var, d->label, err));
    memcpy(d->missing, own, size);
    if (!found && !d->array.fill && brc_netcdf_default_fill(d->atts.of.type, standard) == size)
        memcpy(d->missing, standard, size);
    d->odd_gaps =
        memcmp(gap, own, size) != 0 || (d->is_short && memcmp(d->missing, own, size) != 0);
    rc = found ? fill_json(d, own, err) : BRC_OK;
done:
    free(gap);
    return rc;
}

static int read_netcdf_fill(dataset_in *d, const brc_hdf5_netcdf_var *var, brc_error *err)
{
    size_t size = d->type.kind == BRC_HDF5_FIXED ? d->type.size : sizeof(hvl_t);
    int found;
    BRC_TRY(read_fill(d, err));
    d->array.lacks_fill = brc_netcdf_lacks_fill(&d->atts);
    BRC_TRY(brc_new((void **)&d->missing, size, err));
    if (d->type.kind == BRC_HDF5_FIXED)
        return read_fixed_fill(d, var, err);
    BRC_TRY(brc_hdf5_netcdf_fill(&found, d->missing, d->id, var, d->label, err));
    if (!found)
        return BRC_OK;
    int rc = fill_json(d, d->missing, err);
    hid_t scalar = H5Screate(H5S_SCALAR);
    (void)H5Dvlen_reclaim(d->type.memory, scalar, H5P_DEFAULT, d->missing);
    brc_hdf5_close(scalar);
    return rc;
}

static int describe_netcdf_variable(dataset_in *d, brc_error *err)
{
    BRC_TRY(read_dataset_type(d, err));
    const brc_hdf5_netcdf_var var = { d->file_type, &d->type, d->notes, d->dtype };
    BRC_TRY(brc_hdf5_netcdf_atts(&d->atts, d->in, d->id, &var, d->label, err));
    BRC_TRY(describe_storage(d, err));
    if (!d->is_null) {
        BRC_TRY(
            brc_hdf5_netcdf_axes(d->names, d->array.shape, d->in, d->id, d->ndim, d->label, err));
        for (int i = 0; i < d->ndim; i++) {
            d->is_short |= d->array.shape[i] != d->own[i];
            if (d->names[i])
                d->array.names = (const char *const *)d->names;
        }
        BRC_TRY(read_netcdf_fill(d, &var, err));
    }
    return BRC_OK;
}

/* Arrays of more than FULL_BYTES of which little is stored are not read in full by anybody, and
 * arrays of more than MOST_BYTES are not written. */
#define FULL_BYTES ((uint64_t)1 << 30)
#define MOST_BYTES ((uint64_t)1 << 44)

/* Returns whether some elements of the array are not stored. Sets *bytes to the bytes of all
 * elements. */
static int has_gaps(const dataset_in *d, uint64_t *bytes)
{
    if (!brc_shape_bytes(d->array.ndim, d->array.shape, d->type.item, bytes))
        *bytes = UINT64_MAX;
    return !d->is_null && (!d->stored.complete || d->is_short) && *bytes > 0;
}

/* Checks that the library can read the elements: it must have the filters, and no chunk may be
 * longer than an axis can ever be. The library does not create such chunks, and where a filter
 * gives fewer bytes than the chunk has, it reads beyond them. The host decodes chunks that pass as
 * they are, and checks their length. */
static int check_readable(const dataset_in *d, brc_error *err)
{
    for (int i = 0; i < d->ndim && d->chunked && !d->is_null; i++)
        if (d->array.chunk[i] > d->most[i] && d->most[i] > 0)
            return dataset_failed(d, "its chunks are longer than its largest shape", err);
    return brc_hdf5_filters_check(d->in->convert, d->plist, d->id, d->label, err);
}

static int read_booleans(dataset_in *d, brc_error *err)
{
    uint64_t bytes;
    int are;
    if (!brc_json_is(brc_json_member(d->atts.attrs, "dtype"), "bool") || d->is_null ||
        (has_gaps(d, &bytes) && bytes > FULL_BYTES))
        return BRC_OK;
    BRC_TRY(check_readable(d, err));
    d->array.ctx = d;
    d->array.read = read_dataset;
    BRC_TRY(brc_netcdf_find_booleans(&are, &d->atts, &d->array, err));
    if (!are)
        return BRC_OK;
    d->is_bool = 1;
    d->array.fill = NULL;
    d->odd_gaps = d->missing[0] != 0;
    return BRC_OK;
}

/* Decides whether elements that are not stored are left out (d->leaves_gaps), because they read as
 * the array's fill value. If no value marks missing elements, then Zarr v2 has no fill value and
 * does not say what absent chunks hold. Then gaps stay only in arrays that nobody would read in
 * full, and their fill value marks missing elements. */
static int settle_gaps(dataset_in *d, brc_error *err)
{
    uint64_t bytes;
    int mostly = d->stored.all && !d->is_short;
    if (!has_gaps(d, &bytes))
        return BRC_OK;
    d->leaves_gaps = !d->odd_gaps && (!d->array.lacks_fill || (bytes > FULL_BYTES && !mostly));
    if (d->leaves_gaps) {
        d->array.lacks_fill = 0;
        if (d->is_short && d->stored.all && d->array.chunked)
            d->visits = d->own;
        return BRC_OK;
    }
    if (bytes > MOST_BYTES && !mostly)
        return brc_part_refuse(err, BRC_PART_SIZE,
                               "give the dataset the fill value of the attribute",
                               "%s has more than %d TiB of elements that are not stored, and they "
                               "do not read as its _FillValue",
                               d->label, (int)(MOST_BYTES >> 40));
    d->writes_gaps = d->type.kind != BRC_HDF5_FIXED && d->chunked == d->array.chunked;
    if (d->writes_gaps && d->chunked)
        d->visits = d->array.shape;
    return BRC_OK;
}

static int finish_netcdf_variable(dataset_in *d, brc_error *err)
{
    BRC_TRY(read_booleans(d, err));
    BRC_TRY(settle_gaps(d, err));
    BRC_TRY(brc_netcdf_note_array(&d->atts, &d->array, err));
    return brc_netcdf_atts_text(&d->attrs_json, &d->atts, err);
}

/* Chooses how to read. Chunks that can be stored as they are pass as they are; for others the
 * library must have the filters. */
static int choose_reading(dataset_in *d, brc_error *err)
{
    brc_hdf5_layout layout = { .reg = d->in->reg,
                               .dataset = d->id,
                               .plist = d->plist,
                               .file_type = d->file_type,
                               .memory = d->type.memory,
                               .item = d->type.item,
                               .swap = d->type.swap,
                               .dtype = d->dtype,
                               .ndim = d->ndim,
                               .array_ndim = d->array.ndim,
                               .shape = d->array.shape,
                               .chunk = d->chunked ? d->array.chunk : NULL,
                               .refers_from = brc_convert_refers_from(d->in->convert),
                               .elsewhere = d->in->paths.from != NULL,
                               .has_gaps = 1,
                               .label = d->label };
    if (d->array.chunked == d->chunked && !d->is_null && d->type.kind == BRC_HDF5_FIXED &&
        d->type.nparts == 0 && !d->is_short && !d->is_bool && d->leaves_gaps)
        BRC_TRY(brc_hdf5_pass_open(&d->pass, &layout, err));
    if (!d->pass)
        return check_readable(d, err);
    brc_hdf5_pass_describe(d->pass, &d->array);
    return BRC_OK;
}

/* Finds the stored chunks. If a type of variable length has a fill value, only these are read,
 * because the library cannot read others. */
static int find_stored(dataset_in *d, brc_error *err)
{
    int exact = d->type.kind != BRC_HDF5_FIXED && d->array.fill;
    d->array.doubtful = brc_hdf5_is_doubtful(&d->type);
    if (d->is_null || (brc_convert_phase(d->in->convert) != BRC_CONVERT_CHUNKS &&
                       !d->array.doubtful && !d->in->netcdf))
        return BRC_OK;
    return brc_hdf5_stored_read(&d->stored, d->id, d->ndim, d->own,
                                d->chunked && d->array.chunked ? d->array.chunk : NULL, exact,
                                d->label, err);
}

static int next_passed(void *ctx, uint64_t *index, brc_stored_in *bytes, brc_error *err)
{
    dataset_in *d = ctx;
    return brc_hdf5_pass_next(d->pass, &d->stored, index, bytes, err);
}

static int take_dataset(dataset_in *d, const char *path, brc_error *err)
{
    BRC_TRY(brc_hdf5_storage_check(&d->chunked, d->plist, d->label, err));
    d->is_virtual = brc_hdf5_is_virtual(d->id);
    BRC_TRY(d->in->netcdf ? describe_netcdf_variable(d, err) : describe(d, path, err));
    BRC_TRY(find_stored(d, err));
    if (d->in->netcdf)
        BRC_TRY(finish_netcdf_variable(d, err));
    BRC_TRY(choose_reading(d, err));
    d->array.path = path;
    d->array.label = d->label;
    d->array.dtype = d->is_bool ? "bool" : d->type.dtype;
    d->array.attrs_json = d->attrs_json;
    d->array.ctx = d;
    d->array.next_chunk = next_passed;
    d->array.read = read_dataset;
    d->array.read_elements = read_dataset_elements;
    d->array.next = d->visits                             ? next_chunk_of_all
                    : d->stored.all || !d->leaves_gaps ? NULL
                                                       : next_stored;
    return brc_convert_array(d->in->convert, &d->array, err);
}

static int open_dataset(dataset_in **out, const brc_hdf5_in *in, hid_t dataset, const char *label,
                        brc_error *err)
{
    dataset_in *d;

    BRC_TRY(brc_new((void **)&d, sizeof(*d), err));
    *out = d;
    d->in = in;
    d->label = label;
    d->id = dataset;
    d->leaves_gaps = 1;
    d->type.memory = d->file_type = BRC_HDF5_NONE;
    d->notes = brc_json_new_object();
    if (!d->notes)
        return brc_nomem(err);
    d->space = H5Dget_space(dataset);
    d->plist = H5Dget_create_plist(dataset);
    return d->space < 0 || d->plist < 0 ? dataset_failed(d, "it cannot be read", err) : BRC_OK;
}

static void close_dataset(dataset_in *d)
{
    if (!d)
        return;
    brc_hdf5_close(d->space);
    brc_hdf5_close(d->plist);
    brc_hdf5_close(d->file_type);
    brc_hdf5_type_close(&d->type);
    brc_dtype_free(d->dtype);
    brc_hdf5_attrs_free(&d->attrs);
    brc_json_free(d->notes);
    brc_hdf5_pass_close(d->pass);
    brc_hdf5_stored_free(&d->stored);
    for (int i = 0; i < BRC_MAX_NDIM; i++)
        free(d->names[i]);
    brc_buf_dispose(&d->fill);
    brc_buf_dispose(&d->span);
    brc_json_free(d->atts.attrs);
    brc_json_free(d->atts.note);
    free(d->missing);
    free(d->attrs_json);
    free(d);
}

/* Imports a dataset as an array, or as a group if its type is not one of Zarr's. */
static int import_any(const brc_hdf5_in *in, hid_t dataset, const char *path, const char *label,
                      brc_error *err)
{
    dataset_in *d = NULL;
    hid_t type = H5Dget_type(dataset);
    int is_ragged = type >= 0 && !brc_hdf5_is_one_type(type, in->how);
    brc_hdf5_close(type);
    if (is_ragged)
        return brc_hdf5_ragged_import(in, dataset, path, label, err);
    int rc = open_dataset(&d, in, dataset, label, err);
    if (rc == BRC_OK)
        rc = take_dataset(d, path, err);
    close_dataset(d);
    return rc;
}

int brc_hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path,
                            const char *label, brc_error *err)
{
    brc_hdf5_sources *sources;
    int rc = brc_hdf5_sources_open(&sources, in, dataset, label, err);
    if (rc == BRC_OK)
        rc = import_any(in, dataset, path, label, err);
    if (rc == BRC_OK)
        rc = brc_hdf5_sources_stay(sources, err);
    brc_hdf5_sources_close(sources);
    return rc;
}
