/* A dataset of HDF5 as an array. */
#include "hdf5_in.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/node_path.h"
#include "../../codec/registry.h"
#include "../../nd/box.h"
#include "hdf5_netcdf.h"

/* ==== hdf5 in data ================================ */

typedef struct dataset_in {
    const brc_hdf5_in *in;
    const char *label;
    hid_t id, space, plist, file_type;
    brc_hdf5_type type;
    brc_dtype *dtype;
    brc_hdf5_attrs attrs;
    brc_json *notes;
    brc_hdf5_stored stored;
    brc_hdf5_pass *pass; /* NULL: elements are read                          */
    int ndim;                /* of the dataset itself; the type's axes follow            */
    int chunked, undefined_fill, is_null, is_virtual, is_bool;
    uint64_t most[BRC_MAX_NDIM]; /* the largest shape; UINT64_MAX: any              */
    char *names[BRC_MAX_NDIM];
    brc_buf fill;          /* JSON                                                     */
    brc_buf span;          /* the fill value of variable length, as an element         */
    char *attrs_json;
    brc_array_in array;
    /* For a variable of NetCDF-4 alone: */
    brc_netcdf_atts_in atts;
    uint64_t own[BRC_MAX_NDIM]; /* the dataset's shape, which may be shorter than the array's */
    int is_short;
    uint8_t *missing;      /* what is behind its end, as memory has an element           */
    int odd_gaps;          /* what is not stored is not the array's fill value           */
    int writes_gaps;       /* of variable length: chunks that are not stored come as well */
    int is_past_first;     /* ... and this one came last                                 */
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
    if (d->is_null) { /* no elements, and no axes either */
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
        d->array.shape[ndim + i] = d->type.shape[i];
    d->array.ndim = ndim + d->type.ndim;
    return BRC_OK;
}

/* Elements that are not in chunks must all be there: the library does not look. */
static int check_size(const dataset_in *d, brc_error *err)
{
    return d->chunked || d->is_null ? BRC_OK
                                    : brc_hdf5_size_check(d->id, d->file_type, d->ndim,
                                                          d->array.shape, d->label, err);
}

/* Chunks that are too large for us are replaced by our own choice. */
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

/* The largest shape as a note. An export makes room for whole chunks, which says nothing. */
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

/* Where the file's type is what an export makes of the noted data type, that is it. */
static int use_noted_type(dataset_in *d, hid_t file_type, brc_error *err)
{
    const brc_json *noted = brc_json_member(d->attrs.zarr, "data_type");
    brc_error why = BRC_ERROR_INIT;
    brc_hdf5_type made;
    brc_buf text = BRC_BUF_INIT;
    hid_t type = BRC_HDF5_NONE;

    if (!noted)
        return BRC_OK;
    int rc =
        brc_hdf5_type_make(&type, d->in->reg, noted, d->type.note, d->label, &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc < 0 || H5Tequal(type, file_type) <= 0)
        goto done;
    BRC_GO(brc_hdf5_type_read(&made, d->in->reg, type, d->in->how, d->label, err));
    brc_hdf5_type_close(&made);
    BRC_GO(brc_json_write(&text, noted, err));
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
    rc = brc_dtype_open(&d->dtype, d->in->reg, json, err);
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

/* Whether no value means "missing"; an array of Zarr's may say so itself. */
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
        d->array.fill = "0"; /* as HDF5 has it; a new array's is NaT */
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

/* Of a virtual dataset, what no source has: the library counts the elements that sources have, and
 * leaves gaps as they were where sources overlap. */
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

/* The part of the box that the dataset has: 0 if there is none. */
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

/* Reads the whole elements of a box. */
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

/* Reads a part of each element, where the box cuts the axes of an array type. */
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
        if (d->undefined_fill) /* the library leaves what was never written */
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

/* Elements of a part of the box, with the fill value around them. */
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

/* Whether the chunk that begins the box is stored; the library cannot read others where they
 * have a fill value of variable length. */
static int is_stored(const dataset_in *d, const brc_sel *box, brc_error *err)
{
    hsize_t corner[H5S_MAX_RANK];
    brc_hdf5_chunk chunk;
    if (!d->chunked)
        return H5Dget_storage_size(d->id) > 0;
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

/* Visits every chunk of the grid, stored or not. */
static int next_chunk_of_all(void *ctx, brc_sel *box, brc_error *err)
{
    dataset_in *d = ctx;
    uint64_t grid[BRC_MAX_NDIM];
    (void)err;
    for (int i = 0; i < d->array.ndim; i++)
        grid[i] = brc_grid_extent(d->array.shape[i], d->array.chunk[i]);
    if (d->is_past_first && !brc_index_next(d->array.ndim, d->index, grid))
        return 0;
    d->is_past_first = 1;
    brc_chunk_box(box, d->array.ndim, d->array.shape, d->array.chunk, d->index);
    return 1;
}

/* Readers that do not know the note pass over it. */
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
    BRC_TRY(brc_json_parse(&may, "false", 5, err));
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

/* Numbers and structs: what is not stored (the dataset's own fill value) and what is behind its end
 * (the same, or the type's where that is not set) may be another than the array's fill value,
 * which is the attribute, else the dataset's. */
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

static int read_booleans(dataset_in *d, brc_error *err)
{
    int are;
    if (!brc_json_is(brc_json_member(d->atts.attrs, "dtype"), "bool") || d->is_null)
        return BRC_OK;
    BRC_TRY(brc_hdf5_filters_check(d->in->convert, d->plist, d->id, d->label, err));
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
    BRC_TRY(read_booleans(d, err));
    BRC_TRY(brc_netcdf_note_array(&d->atts, &d->array, err));
    return brc_netcdf_atts_text(&d->attrs_json, &d->atts, err);
}

/* An array of so many bytes nobody reads in full. */
#define FULL_BYTES ((uint64_t)1 << 30)

/* Whether what is not stored may be left out, for the array has its value as fill value. Where
 * no value
 * marks what is missing, Zarr v2 has no fill value, and does not say what absent chunks hold: then
 * only such arrays have gaps as nobody would read in full, and their fill value marks. */
static int gaps_may_stay(dataset_in *d)
{
    uint64_t bytes;
    if (!d->in->netcdf || (d->stored.complete && !d->is_short) || d->is_null ||
        brc_shape_count(d->array.ndim, d->array.shape) == 0)
        return 1;
    int large = !brc_shape_bytes(d->array.ndim, d->array.shape, d->type.item, &bytes) ||
                bytes > FULL_BYTES;
    if (d->odd_gaps || (d->array.lacks_fill && (!large || d->stored.all))) {
        d->writes_gaps = d->type.kind != BRC_HDF5_FIXED && d->chunked == d->array.chunked;
        return 0;
    }
    d->array.lacks_fill = 0;
    return 1;
}

/* What can pass does so; of the rest the library must have the filters. */
static int choose_reading(dataset_in *d, int may_leave_gaps, brc_error *err)
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
                               .elsewhere = d->in->paths.from != NULL,
                               .has_gaps = 1,
                               .label = d->label };
    if (d->array.chunked == d->chunked && !d->is_null && d->type.kind == BRC_HDF5_FIXED &&
        d->type.nparts == 0 && !d->is_short && !d->is_bool && may_leave_gaps)
        BRC_TRY(brc_hdf5_pass_open(&d->pass, &layout, err));
    if (!d->pass)
        return brc_hdf5_filters_check(d->in->convert, d->plist, d->id, d->label, err);
    brc_hdf5_pass_describe(d->pass, &d->array);
    return BRC_OK;
}

/* Of a type of variable length with a fill value, only stored chunks are read: the library
 * cannot read others. */
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
    int may = gaps_may_stay(d);
    BRC_TRY(choose_reading(d, may, err));
    d->array.path = path;
    d->array.label = d->label;
    d->array.dtype = d->is_bool ? "bool" : d->type.dtype;
    d->array.attrs_json = d->attrs_json;
    d->array.ctx = d;
    d->array.next_chunk = next_passed;
    d->array.read = read_dataset;
    d->array.read_elements = read_dataset_elements;
    d->array.next = d->writes_gaps && d->chunked ? next_chunk_of_all
                    : d->stored.all || !may      ? NULL
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

/* Imports a dataset of one of Zarr's types, or a ragged one. */
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

static int hdf5_dataset_import(const brc_hdf5_in *in, hid_t dataset, const char *path,
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

/* ==== hdf5 in ================================ */

/*
 * Reading HDF5: the file's root group becomes a group, and what is linked in it its
 * children.
 *
 * Links are paths to objects, and an object may have several: hard links, and soft
 * links by name. Zarr has none, so each path becomes a copy (equal chunks are stored
 * once). A link to a group that holds it has no end, and a soft link to nothing no
 * content: both are refused. A link to another file becomes a copy as well, of what it leads to.
 */

#define GROUP_DEPTH 100
/* Groups and datasets that were met before, and what is below them: each link to a group can
 * double what there is, and each to a dataset is a copy of all its elements. */
#define MOST_COPIES 10000

typedef struct link_list {
    char **names;
    H5L_type_t *types;
    size_t n, names_cap, types_cap;
    int rc;
    brc_error *err;
} link_list;

/* An object of any file that is open. */
typedef struct object_place {
    unsigned long file;
    haddr_t address;
} object_place;

typedef struct group_walk {
    const brc_hdf5_in *in;           /* the file of what is gone through, see go_there() */
    int depth;
    object_place above[GROUP_DEPTH]; /* the groups around                        */
    void *met;                  /* objects met so far: of tsearch()              */
    int in_copy;                /* at or below a group that was met before       */
    size_t copies;
} group_walk;

static int import_object(group_walk *w, hid_t object, const char *path, const char *label,
                         brc_error *err);

/* ---- links -------------------------------- */

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *info, void *ctx)
{
    link_list *list = ctx;
    int rc;
    (void)group;
    BRC_GO(brc_grow_array((void **)&list->names, &list->names_cap, list->n + 1,
                          sizeof(*list->names), list->err));
    BRC_GO(brc_grow_array((void **)&list->types, &list->types_cap, list->n + 1,
                          sizeof(*list->types), list->err));
    BRC_GO(brc_dup(&list->names[list->n], name, list->err));
    list->types[list->n++] = info->type;
done:
    list->rc = rc;
    return rc < 0 ? -1 : 0;
}

static void free_links(link_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->names[i]);
    free(list->names);
    free(list->types);
}

static int list_links(link_list *list, hid_t group, const char *label,
                      brc_error *err)
{
    list->err = err;
    herr_t walked = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_link, list);
    if (list->rc < 0)
        return list->rc;
    if (walked < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its members cannot be read", label);
    return BRC_OK;
}

/* ---- objects that are met again -------------------------------- */

static int by_place(const void *a, const void *b)
{
    const object_place *x = a, *y = b;
    return x->file != y->file ? (x->file > y->file) - (x->file < y->file)
                              : (x->address > y->address) - (x->address < y->address);
}

/* *again: it was met before. */
static int meet_object(group_walk *w, object_place place, int *again, brc_error *err)
{
    object_place *key;
    *again = tfind(&place, &w->met, by_place) != NULL;
    if (*again)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&key, sizeof(*key), err));
    *key = place;
    if (tsearch(key, &w->met, by_place))
        return BRC_OK;
    free(key);
    return brc_nomem(err);
}

/* The group becomes one of those around what is in it. */
static int enter_group(group_walk *w, object_place place, const char *label, brc_error *err)
{
    if (w->depth == GROUP_DEPTH)
        return brc_part_refuse(err, BRC_PART_SIZE, NULL, "%s: groups are nested more than %d deep",
                               label, GROUP_DEPTH);
    for (int i = 0; i < w->depth; i++)
        if (by_place(&w->above[i], &place) == 0)
            return brc_part_refuse(
                err, BRC_PART_LINK, "remove this link, or leave it out with --exclude",
                "%s leads back to a group around it, so it has no end", label);
    w->above[w->depth++] = place;
    return BRC_OK;
}

/* ---- objects -------------------------------- */

static int check_link_type(H5L_type_t type, const char *label, brc_error *err)
{
    if (type != H5L_TYPE_HARD && type != H5L_TYPE_SOFT && type != H5L_TYPE_EXTERNAL)
        return brc_part_refuse(err, BRC_PART_LINK, NULL, "%s is a link of a kind that is not known",
                               label);
    return BRC_OK;
}

typedef struct hdf5_link {
    const char *path;  /* the node of its group */
    const char *label; /* "x.h5: /a"            */
    const char *name;  /* of the link               */
    H5L_type_t type;
} hdf5_link;

/* Datasets are opened as such, or the library passes over what the lists say of them alone. */
static int open_link(const brc_hdf5_in *in, hid_t group, const hdf5_link *link, hid_t *out,
                     brc_error *err)
{
    brc_hdf5_forget_link(in->elsewhere);
    *out = H5Oopen(group, link->name, in->links);
    if (H5Iget_type(*out) == H5I_DATASET) {
        hid_t how = brc_hdf5_has_raw_files(*out) ? in->raw : in->links;
        brc_hdf5_close(*out);
        *out = H5Dopen2(group, link->name, how);
    }
    if (*out >= 0)
        return BRC_OK;
    return link->type == H5L_TYPE_HARD
               ? brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened", link->label)
               : brc_hdf5_link_refuse(in->elsewhere, link->label, err);
}

/* The same import, where it goes on with an object of perhaps another file; `label`: of the link to
 * the object. *there is valid as long as the label. */
static int go_there(brc_hdf5_in *there, const brc_hdf5_in *in, hid_t object, const char *label,
                    brc_error *err)
{
    const brc_hdf5_other *other;
    H5O_info_t info;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: it cannot be read", label);
    *there = info.fileno == in->number ? *in : *in->first;
    if (info.fileno == there->number)
        return BRC_OK;
    BRC_TRY(brc_hdf5_other_find(&other, in->elsewhere, object, info.fileno, in->links, label, err));
    const char *from = brc_hdf5_path_of_object(&other->paths, object);
    there->id = other->id;
    there->number = other->number;
    there->paths = other->paths;
    there->paths.from = from ? from : "?"; /* which no path begins with */
    there->paths.to = brc_convert_path(in->convert, label);
    if (there->netcdf)
        there->netcdf = &brc_hdf5_netcdf_elsewhere;
    return BRC_OK;
}

static const char *shown_name(const brc_hdf5_in *in, const char *link)
{
    return in->netcdf ? brc_hdf5_variable_name(link) : link;
}

static int follow_link(group_walk *w, hid_t group, const hdf5_link *link, brc_error *err)
{
    const brc_hdf5_in *in = w->in;
    brc_hdf5_in there;
    hid_t object = BRC_HDF5_NONE;
    char *node = NULL;
    int rc;

    BRC_GO(brc_convert_node_path(&node, in->convert, link->path, shown_name(in, link->name), err));
    BRC_GO(brc_convert_place_check(link->label, node, err));
    BRC_GO(check_link_type(link->type, link->label, err));
    BRC_GO(open_link(in, group, link, &object, err));
    BRC_GO(go_there(&there, in, object, link->label, err));
    if (brc_hdf5_is_dimension(&there, object))
        goto done;
    w->in = &there;
    rc = import_object(w, object, node, link->label, err);
    w->in = in;
done:
    brc_hdf5_close(object);
    free(node);
    return rc;
}

/* `above`: the group's label, "x.h5: /a". */
static int import_link(group_walk *w, hid_t group, const char *path, const char *above,
                       const char *name, H5L_type_t type, brc_error *err)
{
    const brc_hdf5_in *in = w->in;
    char *label = NULL;
    int rc;

    BRC_GO(brc_node_join(&label, above, shown_name(in, name), err));
    if (brc_convert_is_excluded(in->convert, brc_convert_path(in->convert, label)))
        goto done;
    rc = follow_link(w, group, &(hdf5_link){ path, label, name, type }, err);
    rc = brc_convert_settle(in->convert, rc, brc_convert_path(in->convert, label), NULL, err);
done:
    free(label);
    return rc;
}

/* ---- groups -------------------------------- */

/* A committed data type: its tree, or null where it cannot be made again; its attributes. */
static int describe_named(brc_json **out, const brc_hdf5_in *in, hid_t type, const char *path,
                          const char *label, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_hdf5_attrs attrs = { 0 };
    brc_hdf5_tree tree;
    brc_json *json = NULL, *note = brc_json_new_object();
    int rc =
        note ? brc_hdf5_tree_read(&tree, in->reg, type, BRC_HDF5_READING, label, &why) : BRC_ENOMEM;
    if (rc == BRC_OK) {
        rc = brc_hdf5_tree_json(&json, &tree, &why);
        brc_hdf5_tree_close(&tree);
    }
    if (rc == BRC_ENOMEM) {
        rc = brc_nomem(err);
        goto done;
    }
    BRC_GO(brc_json_set(note, "type", json ? json : brc_json_new_null(), err));
    json = NULL;
    BRC_GO(brc_hdf5_attrs_read(&attrs, in, type, 0, label, err));
    if (brc_json_count(attrs.values) > 0) {
        BRC_GO(brc_json_set(note, "values", attrs.values, err));
        attrs.values = NULL;
    }
    rc = brc_hdf5_note_attrs(note, &attrs, path, err);
done:
    brc_hdf5_attrs_free(&attrs);
    brc_json_free(json);
    if (rc < 0) {
        brc_json_free(note);
        note = NULL;
    }
    *out = note;
    return rc;
}

/* The committed data types that are linked in the group: *out is NULL without one. */
static int note_named(brc_json **out, const brc_hdf5_in *in, hid_t group, const char *above,
                      brc_error *err)
{
    brc_json *types = NULL, *type = NULL;
    int rc = BRC_OK;
    size_t n;
    char *const *names = brc_hdf5_named_in(&in->paths, group, &n);
    for (size_t i = 0; i < n; i++) {
        char *label;
        hid_t object = brc_utf8_valid(names[i], strlen(names[i]))
                           ? H5Oopen(group, names[i], in->links)
                           : BRC_HDF5_NONE;
        if (object < 0)
            continue;
        rc = brc_node_join(&label, above, names[i], err);
        if (rc == BRC_OK) { /* of which the file's name is no part */
            const char *path = label + strlen(in->file) + strlen(": ");
            rc = describe_named(&type, in, object, path, label, err);
            free(label);
        }
        brc_hdf5_close(object);
        BRC_GO(rc);
        if (!types && !(types = brc_json_new_object())) {
            brc_json_free(type);
            rc = brc_nomem(err);
            goto done;
        }
        BRC_GO(brc_json_set(types, names[i], type, err));
    }
done:
    if (rc < 0)
        brc_json_free(types);
    else
        *out = types;
    return rc;
}

static int make_hdf5_group(const brc_hdf5_in *in, hid_t group, const char *path, const char *label,
                           brc_error *err)
{
    brc_hdf5_attrs attrs;
    brc_json *types = NULL, *note = NULL;
    char *text = NULL;
    int rc;

    if (in->netcdf)
        return brc_hdf5_netcdf_group(in, group, path, label, err);
    BRC_TRY(brc_hdf5_attrs_read(&attrs, in, group, 0, label, err));
    BRC_GO(note_named(&types, in, group, label, err));
    note = brc_json_new_object();
    rc = note ? brc_hdf5_note_attrs(note, &attrs, path, err) : brc_nomem(err);
    BRC_GO(rc);
    if (types) {
        brc_json *given = types;
        types = NULL;
        BRC_GO(brc_json_set(note, "types", given, err));
    }
    brc_json *given = note;
    note = NULL;
    BRC_GO(brc_hdf5_note_group(&attrs, given, label, err));
    BRC_GO(brc_hdf5_attrs_text(&text, &attrs, err));
    BRC_GO(brc_convert_group(in->convert, path, text, err));
done:
    free(text);
    brc_json_free(types);
    brc_json_free(note);
    brc_hdf5_attrs_free(&attrs);
    return rc;
}

static int take_members(group_walk *w, hid_t group, const char *path, const char *label,
                        brc_error *err)
{
    link_list links = { 0 };
    int rc;
    BRC_GO(list_links(&links, group, label, err));
    for (size_t i = 0; i < links.n; i++)
        BRC_GO(import_link(w, group, path, label, links.names[i], links.types[i], err));
    rc = BRC_OK;
done:
    free_links(&links);
    return rc;
}

static int take_group(group_walk *w, hid_t group, object_place place, int again, const char *path,
                      const char *label, brc_error *err)
{
    int in_copy = w->in_copy;
    BRC_TRY(enter_group(w, place, label, err));
    w->in_copy |= again;
    int rc = brc_convert_phase(w->in->convert) == BRC_CONVERT_DOCS
                 ? make_hdf5_group(w->in, group, path, label, err)
                 : BRC_OK;
    if (rc == BRC_OK)
        rc = take_members(w, group, path, label, err);
    w->depth--;
    w->in_copy = in_copy;
    return rc;
}

static int count_copy(group_walk *w, const char *label, brc_error *err)
{
    if (++w->copies <= MOST_COPIES)
        return BRC_OK;
    return brc_fail(err, BRC_ELIMIT,
                    "%s: through its links the file has more than %d copies of groups "
                    "and datasets: remove links, or leave them out",
                    label, MOST_COPIES);
}

static int import_object(group_walk *w, hid_t object, const char *path, const char *label,
                         brc_error *err)
{
    H5O_info_t info;
    int again = 0;
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: it cannot be read", label);
    object_place place = { info.fileno, info.addr };
    BRC_TRY(meet_object(w, place, &again, err));
    if (again || w->in_copy)
        BRC_TRY(count_copy(w, label, err));
    switch (info.type) {
    case H5O_TYPE_GROUP:
        return take_group(w, object, place, again, path, label, err);
    case H5O_TYPE_DATASET:
        return hdf5_dataset_import(w->in, object, path, label, err);
    case H5O_TYPE_NAMED_DATATYPE:
        return BRC_OK; /* noted in its group, and by what has it */
    default:
        return brc_part_refuse(err, BRC_PART_OBJECT, NULL, "%s is neither a group nor a dataset",
                               label);
    }
}

/* ---- files -------------------------------- */

int brc_hdf5_in_walk(void *state, brc_error *err)
{
    const brc_hdf5_in *in = state;
    group_walk w = { .in = in };
    char *label;
    BRC_TRY(brc_hdf5_label(&label, in->file, "/", err));
    hid_t root = H5Oopen(in->id, "/", in->links);
    int rc = root < 0 ? brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened", label)
                      : import_object(&w, root, "/", label, err);
    brc_hdf5_close(root);
    tdestroy(w.met, free);
    free(label);
    return rc;
}

static void close_import(void *state)
{
    brc_hdf5_in *in = state;
    brc_hdf5_netcdf_free(in->netcdf);
    brc_hdf5_elsewhere_free(in->elsewhere);
    free(in->elsewhere);
    brc_hdf5_close(in->id);
    brc_hdf5_close(in->links);
    brc_hdf5_close(in->raw);
    brc_hdf5_paths_free(&in->paths);
    free(in);
}

int brc_hdf5_in_open(void **state, brc_convert *c, const char *file, brc_error *err)
{
    brc_hdf5_in *in;
    BRC_TRY(brc_new((void **)&in, sizeof(*in), err));
    *state = in;
    in->head.close = close_import;
    in->convert = c;
    in->reg = brc_convert_registry(c);
    in->file = file;
    in->id = in->links = in->raw = BRC_HDF5_NONE;
    in->first = in;
    BRC_TRY(brc_hdf5_start(err));
    BRC_TRY(brc_new((void **)&in->elsewhere, sizeof(*in->elsewhere), err));
    in->elsewhere->convert = c;
    BRC_TRY(brc_hdf5_file_open(&in->id, &in->links, &in->raw, in->elsewhere, file, err));
    H5O_info_t root;
    if (H5Oget_info2(in->id, &root, H5O_INFO_BASIC) >= 0)
        in->number = root.fileno;
    BRC_TRY(brc_hdf5_paths_read(&in->paths, in->id, in->links, file, err));
    return brc_hdf5_is_netcdf(in) ? brc_hdf5_netcdf_open(in, err) : BRC_OK;
}
