/* Writes HDF5, and the elements of NetCDF-4; the table of the driver's functions. */
#include "hdf5_out.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../codec/registry.h"
#include "hdf5_driver.h"
#include "hdf5_in.h"

/* ==== committed data types, from a group's note ================================ */

static const brc_json *noted_types(const brc_node_out *group)
{
    const brc_json *attrs = brc_json_member(group->doc, "attributes");
    return brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), "types");
}

/* Makes a committed data type. Does nothing if HDF5 cannot make the type: then an array that has
 * the type describes it by itself. */
static int make_named(const brc_hdf5_out *out, const brc_json *note, const char *path,
                      const char *label, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    hid_t type = BRC_HDF5_NONE, plist;
    if (brc_json_kind(brc_json_member(note, "type")) == BRC_JSON_NULL)
        return BRC_OK;
    int rc = brc_hdf5_tree_make(&type, out->reg, brc_json_member(note, "type"), BRC_HDF5_WRITING,
                                label, &why);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    plist = H5Pcreate(H5P_DATATYPE_CREATE);
    if (plist < 0 || H5Pset_obj_track_times(plist, 0) < 0 ||
        H5Tcommit2(out->id, path, type, out->link_names, plist, H5P_DEFAULT) < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: a committed data type cannot be made", label);
    brc_hdf5_close(plist);
    brc_hdf5_close(type);
    return rc;
}

/* Finds the path of a committed type in the file. Sets *out to NULL if a node of the export has
 * this path, or if HDF5 does not allow the name. */
static int named_path(char **out, const brc_hdf5_out *file, const brc_node_out *group,
                      const char *name, brc_error *err)
{
    *out = NULL;
    if (!*name || strchr(name, '/') || strcmp(name, ".") == 0)
        return BRC_OK;
    char *key;
    BRC_TRY(brc_convert_node_path(&key, file->convert, group->key, name, err));
    int is_node = brc_convert_node_at(file->convert, key + (*key == '/')) != NULL;
    free(key);
    if (is_node)
        return BRC_OK;
    return *group->inner ? brc_node_join(out, group->inner, name, err) : brc_dup(out, name, err);
}

/* Makes the committed data types of a group's note, without their attributes. */
static int hdf5_named_make(const brc_hdf5_out *out, const brc_node_out *group, brc_error *err)
{
    for (const brc_json *t = brc_json_first(noted_types(group)); t; t = brc_json_next(t)) {
        char *path;
        BRC_TRY(named_path(&path, out, group, brc_json_name(t), err));
        int rc = path ? make_named(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* Makes the document of a group whose attributes are those in the note. `doc` is an empty
 * object. */
static int named_doc(brc_json *doc, const brc_json *note, brc_error *err)
{
    static const char *const members[] = { "attributes", "at" };
    brc_json *values, *copy, *notes = brc_json_new_object();
    if (!notes)
        return brc_nomem(err);
    int rc = brc_json_clone(&values, brc_json_member(note, "values"), err);
    if (rc < 0) {
        brc_json_free(notes);
        return rc;
    }
    rc = brc_json_set(doc, "attributes", values, err); /* `doc` owns the values now */
    for (size_t i = 0; i < 2 && rc == BRC_OK; i++) {
        const brc_json *member = brc_json_member(note, members[i]);
        if (member && (rc = brc_json_clone(&copy, member, err)) == BRC_OK)
            rc = brc_json_set(notes, members[i], copy, err);
    }
    if (rc == BRC_OK)
        return brc_json_set(values, BRC_HDF5_GROUP_NOTE, notes, err);
    brc_json_free(notes);
    return rc;
}

static int write_named_attrs(const brc_hdf5_out *out, const brc_json *note, const char *path,
                             const char *label, brc_error *err)
{
    brc_json *doc = brc_json_new_object();
    hid_t type = H5Topen2(out->id, path, H5P_DEFAULT);
    int rc = doc ? named_doc(doc, note, err) : brc_nomem(err);
    if (rc == BRC_OK && type >= 0) /* otherwise the type could not be made */
        rc = brc_hdf5_attrs_write(out, type, path, doc, NULL, NULL, label, err);
    brc_hdf5_close(type);
    brc_json_free(doc);
    return rc;
}

static int hdf5_named_attrs(const brc_hdf5_out *out, const brc_node_out *group, brc_error *err)
{
    for (const brc_json *t = brc_json_first(noted_types(group)); t; t = brc_json_next(t)) {
        char *path;
        if (brc_json_kind(brc_json_member(t, "values")) != BRC_JSON_OBJECT)
            continue;
        BRC_TRY(named_path(&path, out, group, brc_json_name(t), err));
        int rc = path ? write_named_attrs(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* ==== hdf5 out data ================================ */

/* Makes a dataset for an array, and writes its elements. */

typedef struct brc_hdf5_dataset {
    brc_hdf5_out *out;
    const brc_node_out *node;
    const char *path;
    const brc_meta *meta;
    const brc_json *doc;   /* its zarr.json           */
    const brc_json *notes; /* the notes in `doc`, or NULL */
    brc_json *zarr;        /* the facts that only Zarr has */
    const brc_json *data_type;
    const brc_dtype *dtype;
    hid_t file_type, plist, space, id;
    brc_hdf5_type type;
    int is_null;
    int takes_stored; /* whole chunks of the stream are chunks of the dataset */
    const brc_netcdf_type *as; /* the type of a variable of NetCDF-4; NULL: an HDF5 dataset */
} brc_hdf5_dataset;

static int not_written(const brc_hdf5_dataset *d, const char *what, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO, "%s: %s", d->path, what);
}

/* ---- type -------------------------------- */

/* Notes the array's data type if a reader would take the file's type for another one. */
static int note_dtype(brc_hdf5_dataset *d, brc_error *err)
{
    brc_json *read, *copy;
    BRC_TRY(brc_convert_dtype_json(&read, d->type.dtype, err));
    int same = brc_json_equal(read, d->data_type);
    brc_json_free(read);
    if (same)
        return BRC_OK;
    BRC_TRY(brc_json_clone(&copy, d->data_type, err));
    d->zarr = brc_json_new_object();
    if (!d->zarr) {
        brc_json_free(copy);
        return brc_nomem(err);
    }
    return brc_json_set(d->zarr, "data_type", copy, err);
}

static brc_hdf5_writer writer_of(const brc_hdf5_dataset *d, brc_arena *arena)
{
    const char *at = NULL;
    if (!brc_json_text(brc_json_member(d->notes, "at"), &at))
        at = NULL;
    return (brc_hdf5_writer){ d->out, d->node->inner, at, d->path, arena };
}

static int choose_type(brc_hdf5_dataset *d, brc_error *err)
{
    BRC_TRY(brc_hdf5_type_make(&d->file_type, d->out->reg, d->data_type, d->notes, BRC_HDF5_WRITING,
                               d->path, err));
    brc_hdf5_writer writer = writer_of(d, NULL);
    BRC_TRY(brc_hdf5_type_committed(&writer, &d->file_type, brc_json_member(d->notes, "committed"),
                                    err));
    BRC_TRY(
        brc_hdf5_type_read(&d->type, d->out->reg, d->file_type, BRC_HDF5_WRITING, d->path, err));
    if (d->type.ndim != 0 ||
        (d->type.kind == BRC_HDF5_FIXED && d->type.size != d->dtype->item_size))
        return brc_fail(err, BRC_EINTERNAL, "%s: its HDF5 type is of another size", d->path);
    return BRC_OK;
}

/* ---- shape and storage -------------------------------- */

/* Makes the dataspace, with the noted room for growth. HDF5 wants room for whole chunks. */
static int make_space(brc_hdf5_dataset *d, brc_error *err)
{
    const brc_meta *meta = d->meta;
    const brc_json *most = brc_json_member(d->notes, "maxshape");
    int is_null = brc_json_is(brc_json_member(d->notes, "space"), "null");
    hsize_t shape[BRC_MAX_NDIM], limit[BRC_MAX_NDIM];
    int use = brc_json_kind(most) == BRC_JSON_ARRAY && brc_json_count(most) == (size_t)meta->ndim;

    d->is_null = is_null && meta->ndim == 1 && meta->shape[0] == 0;
    for (int i = 0; i < meta->ndim; i++) {
        const brc_json *item = use ? brc_json_item(most, (size_t)i) : NULL;
        uint64_t n = 0;
        shape[i] = meta->shape[i];
        limit[i] = shape[i];
        if (brc_json_kind(item) == BRC_JSON_NULL)
            limit[i] = H5S_UNLIMITED;
        else if (brc_json_uint(item, UINT64_MAX, &n) && n > shape[i])
            limit[i] = n;
        if (limit[i] < meta->grid.chunk[i])
            limit[i] = meta->grid.chunk[i];
    }
    d->space = d->is_null        ? H5Screate(H5S_NULL)
               : meta->ndim == 0 ? H5Screate(H5S_SCALAR)
                                 : H5Screate_simple(meta->ndim, shape, limit);
    return d->space < 0 ? not_written(d, "its shape cannot be made in HDF5", err) : BRC_OK;
}

static int set_filters(const brc_hdf5_dataset *d, brc_error *err)
{
    int64_t level = 4;
    if (d->type.kind != BRC_HDF5_FIXED || /* chunks of texts and lists hold addresses */
        !brc_meta_compression(d->node->codecs, &level) ||
        H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0)
        return BRC_OK;
    if ((d->dtype->item_size > 1 && H5Pset_shuffle(d->plist) < 0) ||
        H5Pset_deflate(d->plist, (unsigned)level) < 0)
        return not_written(d, "its chunks cannot be compressed", err);
    return BRC_OK;
}

static int set_chunks(const brc_hdf5_dataset *d, brc_error *err)
{
    hsize_t chunk[BRC_MAX_NDIM];
    if (d->meta->ndim == 0 || d->is_null)
        return BRC_OK;
    for (int i = 0; i < d->meta->ndim; i++)
        chunk[i] = d->meta->grid.chunk[i];
    if (H5Pset_chunk(d->plist, d->meta->ndim, chunk) < 0)
        return not_written(d, "HDF5 has no chunks of this shape", err);
    return set_filters(d, err);
}

/* ---- fill value -------------------------------- */

static int set_variable_fill(const brc_hdf5_dataset *d, const uint8_t *element, brc_error *err)
{
    uint32_t len = brc_get_u32le(element);
    char *text = NULL;
    hvl_t list = { len, (void *)(uintptr_t)(element + 4) };
    if (len == 0 || d->type.kind == BRC_HDF5_OBJECT || d->type.kind == BRC_HDF5_REGION)
        return BRC_OK; /* references need no fill value, because all are written */
    if (d->type.kind == BRC_HDF5_STRING && memchr(element + 4, 0, len))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: its fill value has U+0000, which HDF5's strings "
                        "cannot have",
                        d->path);
    BRC_TRY(brc_dup_n(&text, (const char *)element + 4, len, err));
    const void *value = d->type.kind == BRC_HDF5_STRING ? (void *)&text : (void *)&list;
    int rc = H5Pset_fill_value(d->plist, d->type.memory, value) < 0
                 ? not_written(d, "its fill value cannot be written", err)
                 : BRC_OK;
    free(text);
    return rc;
}

/* Notes facts about the fill value that the dataset cannot express. For a type of variable length:
 * whether the array has the empty fill value or none. For other types: that the array has no fill
 * value, although the dataset has one. */
static int note_fill(brc_hdf5_dataset *d, int is_set, brc_error *err)
{
    int lacks = brc_meta_lacks_fill(d->doc);
    brc_json *fill = NULL;
    if (is_set != lacks)
        return BRC_OK;
    if (!d->zarr)
        d->zarr = brc_json_new_object();
    if (!lacks)
        BRC_TRY(brc_json_clone(&fill, brc_json_member(d->doc, "fill_value"), err));
    return brc_json_set(d->zarr, "fill_value", lacks ? brc_json_new_null() : fill, err);
}

/* Sets the fill value. HDF5's default is zero bits and marks no missing elements. */
static int set_fill_value(brc_hdf5_dataset *d, brc_error *err)
{
    static const uint8_t zero;
    uint8_t *element;
    if (d->is_null)
        return BRC_OK;
    if (d->type.kind != BRC_HDF5_FIXED) {
        BRC_TRY(note_fill(d, brc_get_u32le(d->meta->fill.data) > 0, err));
        return set_variable_fill(d, d->meta->fill.data, err);
    }
    int is_set = !brc_meta_lacks_fill(d->doc) ||
                 !brc_all_equal(d->meta->fill.data, d->type.size, 1, &zero);
    BRC_TRY(note_fill(d, is_set, err));
    if (!is_set)
        return BRC_OK;
    BRC_TRY(brc_new((void **)&element, d->type.size, err));
    memcpy(element, d->meta->fill.data, d->type.size);
    brc_dtype_native(d->dtype, element, d->type.size);
    if (d->type.swap)
        brc_dtype_swap(d->dtype, element, element, 1);
    int rc = H5Pset_fill_value(d->plist, d->type.memory, element) < 0
                 ? not_written(d, "its fill value cannot be written", err)
                 : BRC_OK;
    free(element);
    return rc;
}

/* ---- elements -------------------------------- */

static int write_box(const brc_hdf5_dataset *d, const brc_sel *box, const void *data,
                     brc_error *err)
{
    hsize_t start[BRC_MAX_NDIM + 1], count[BRC_MAX_NDIM + 1];
    hid_t memory = H5S_ALL;
    int ok = 1, ndim = box->ndim;
    for (int i = 0; i < box->ndim; i++) {
        start[i] = box->start[i];
        count[i] = box->count[i];
    }
    if (d->as && d->as->chars) {
        start[ndim] = 0;
        count[ndim++] = d->as->chars;
    }
    if (ndim > 0) {
        memory = H5Screate_simple(ndim, count, NULL);
        ok = memory >= 0 &&
             H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    }
    ok = ok && H5Dwrite(d->id, d->type.memory, memory, ndim > 0 ? d->space : H5S_ALL, H5P_DEFAULT,
                        data) >= 0;
    int rc = ok ? BRC_OK : not_written(d, "its elements cannot be written", err);
    if (memory != H5S_ALL)
        brc_hdf5_close(memory);
    return rc;
}

static int write_fixed_elements(const brc_hdf5_dataset *d, const brc_sel *box, const void *data,
                                size_t len, brc_error *err)
{
    if (!d->type.swap)
        return write_box(d, box, data, err);
    uint8_t *swapped;
    BRC_TRY(brc_new_big((void **)&swapped, len, err));
    brc_dtype_swap(d->dtype, swapped, data, len / d->type.size);
    int rc = write_box(d, box, swapped, err);
    free(swapped);
    return rc;
}

/* Points to a copy of the text that ends with a zero byte, as texts in memory do. */
static int point_to_text(brc_arena *arena, char **out, const uint8_t *at, uint32_t len,
                         const char *path, brc_error *err)
{
    if (len > 0 && memchr(at, 0, len))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s: an element has U+0000, which HDF5's strings cannot have", path);
    *out = brc_arena_take(arena, (size_t)len + 1);
    if (!*out)
        return brc_nomem(err);
    memcpy(*out, at, len);
    (*out)[len] = 0;
    return BRC_OK;
}

static int point_to_object(const brc_hdf5_dataset *d, void *out, const uint8_t *at, uint32_t len,
                           brc_error *err)
{
    brc_hdf5_writer writer = writer_of(d, NULL);
    char *text;
    BRC_TRY(brc_dup_n(&text, (const char *)at, len, err));
    int rc = strlen(text) == len
                 ? brc_hdf5_reference_put(&writer, d->type.kind == BRC_HDF5_REGION, text, out, err)
                 : 0;
    if (rc == 0)
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "%s: its element \"%.200s\" refers to an object outside this export: export "
                      "the group that holds both, or make the element empty",
                      d->path, text);
    free(text);
    return rc < 0 ? rc : BRC_OK;
}

static int write_variable_elements(const brc_hdf5_dataset *d, const brc_sel *box, const void *data,
                                   size_t len, brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    uint64_t n = brc_shape_count(box->ndim, box->count);
    brc_arena arena = BRC_ARENA_INIT;
    void *elements = NULL;
    int rc;

    BRC_GO(brc_new_array(&elements, n, d->type.size, err));
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *count = brc_read_bytes(&r, 4);
        uint32_t size = count ? brc_get_u32le(count) : 0;
        const uint8_t *at = brc_read_bytes(&r, size);
        if (!count || !at) {
            rc = brc_fail(err, BRC_EINTERNAL, "%s: its elements are too short", d->path);
            goto done;
        }
        if (d->type.kind == BRC_HDF5_STRING)
            BRC_GO(point_to_text(&arena, (char **)elements + i, at, size, d->path, err));
        else if (d->type.kind != BRC_HDF5_BYTES)
            BRC_GO(point_to_object(d, (uint8_t *)elements + i * d->type.size, at, size, err));
        else
            ((hvl_t *)elements)[i] = (hvl_t){ size, (void *)(uintptr_t)at };
    }
    rc = write_box(d, box, elements, err);
done:
    free(elements);
    brc_arena_dispose(&arena);
    return rc;
}

/* ---- elements of NetCDF -------------------------------- */

static int write_wider(const brc_hdf5_dataset *d, const brc_sel *box, const void *data, size_t len,
                       brc_error *err)
{
    size_t n = len / d->dtype->item_size;
    void *wide;
    BRC_TRY(brc_new_array(&wide, n, d->type.size, err));
    brc_netcdf_widen(d->as, wide, data, n);
    int rc = write_box(d, box, wide, err);
    free(wide);
    return rc;
}

/* Appends characters as an element of variable length. The text ends at the first zero, as the
 * library's texts do; surrogates are not characters. */
static int append_utf32(const brc_hdf5_dataset *d, brc_buf *out, const uint8_t *units, size_t n,
                        brc_error *err)
{
    size_t start = out->len;
    uint8_t encoded[4] = { 0 };
    uint32_t c = 0;
    while (n > 0 && memcmp(units + 4 * (n - 1), &c, sizeof(c)) == 0)
        n--;
    BRC_TRY(brc_buf_append(out, encoded, 4, err)); /* room for the length */
    for (; n > 0; n--, units += 4) {
        memcpy(&c, units, sizeof(c));
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "%s: its text has a code point that is not a character, which NetCDF "
                            "cannot store: write Zarr, or take the array out first",
                            d->path);
        BRC_TRY(brc_buf_append(out, encoded, (size_t)brc_utf8_encode(encoded, c), err));
    }
    brc_put_u32le(out->data + start, (uint32_t)(out->len - start - 4));
    return BRC_OK;
}

static int write_utf32(const brc_hdf5_dataset *d, const brc_sel *box, const uint8_t *data,
                       size_t len, brc_error *err)
{
    const size_t size = d->dtype->item_size;
    brc_buf texts = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t at = 0; at < len && rc == BRC_OK; at += size)
        rc = append_utf32(d, &texts, data + at, size / 4, err);
    if (rc == BRC_OK)
        rc = write_variable_elements(d, box, texts.data, texts.len, err);
    brc_buf_dispose(&texts);
    return rc;
}

/* ---- chunks as they come -------------------------------- */

static int has_name(const brc_json *codec, const char *name)
{
    return brc_json_is(brc_json_member(codec, "name"), name);
}

/* Returns whether the stream's chunks are what the filters of a dataset make of its elements. */
static int has_filters_of(const brc_hdf5_dataset *d, hid_t plist)
{
    const brc_json *codecs = brc_json_member(d->doc, "codecs");
    const size_t size = d->dtype->item_size;
    const int n = size > 1 ? 2 : 1;
    int64_t width = 0;
    if (H5Pget_nfilters(plist) != n || brc_json_count(codecs) != (size_t)n + 1 ||
        !has_name(brc_json_item(codecs, 0), "bytes") ||
        !has_name(brc_json_item(codecs, (size_t)n), "numcodecs.zlib"))
        return 0;
    for (int i = 0; i < n; i++) {
        unsigned flags, config;
        size_t none = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &none, NULL, 0, NULL, &config);
        if (id != (i + 1 < n ? H5Z_FILTER_SHUFFLE : H5Z_FILTER_DEFLATE))
            return 0;
    }
    const brc_json *shuffle = brc_json_item(codecs, 1);
    return n == 1 || (has_name(shuffle, "numcodecs.shuffle") &&
                      brc_json_int(brc_json_member(brc_json_member(shuffle, "configuration"),
                                                   "elementsize"), 1, INT64_MAX, &width) &&
                      (uint64_t)width == size);
}

/* Returns whether whole chunks of the stream are chunks of the dataset, byte for byte. */
static int takes_stored(const brc_hdf5_dataset *d)
{
    const brc_meta *meta = d->meta;
    hsize_t chunk[BRC_MAX_NDIM];
    int takes;
    if (d->type.kind != BRC_HDF5_FIXED || d->type.swap || meta->ndim == 0 ||
        (d->as && (d->as->how != BRC_NETCDF_PLAIN || d->as->chars)) ||
        H5Tequal(d->type.memory, d->file_type) <= 0 ||
        H5Tget_order(d->file_type) == H5T_ORDER_BE)
        return 0;
    hid_t plist = H5Dget_create_plist(d->id);
    takes = plist >= 0 && H5Pget_layout(plist) == H5D_CHUNKED &&
            H5Pget_chunk(plist, BRC_MAX_NDIM, chunk) == meta->ndim && has_filters_of(d, plist);
    for (int i = 0; takes && i < meta->ndim; i++)
        takes = chunk[i] == meta->grid.chunk[i];
    brc_hdf5_close(plist);
    return takes;
}

static int hdf5_out_put_stored(void *state, const brc_sel *box, const void *stored, size_t len,
                               brc_error *err)
{
    const brc_hdf5_out *out = state;
    const brc_hdf5_dataset *d = out->dataset;
    hsize_t start[BRC_MAX_NDIM];
    if (out->filled || !d->takes_stored)
        return 0;
    for (int i = 0; i < box->ndim; i++)
        start[i] = box->start[i];
    return H5Dwrite_chunk(d->id, H5P_DEFAULT, 0, start, len, stored) >= 0
               ? 1
               : not_written(d, "its elements cannot be written", err);
}

/* ---- names of axes -------------------------------- */

/* Returns the names of the axes: those of zarr.json, or those in the attribute that xarray
 * writes. */
static const brc_json *names_of(const brc_hdf5_dataset *d)
{
    const brc_json *names = brc_json_member(d->doc, "dimension_names");
    if (brc_json_kind(names) != BRC_JSON_ARRAY)
        names = brc_json_member(brc_json_member(d->doc, "attributes"), "_ARRAY_DIMENSIONS");
    return brc_json_kind(names) == BRC_JSON_ARRAY && brc_json_count(names) == (size_t)d->meta->ndim
               ? names
               : NULL;
}

static int note_axes(const brc_hdf5_dataset *d, brc_error *err)
{
    const brc_json *attrs = brc_json_member(d->doc, "attributes");
    int scales = !d->is_null && !brc_json_member(attrs, "CLASS") && !brc_json_member(attrs, "NAME");
    return brc_hdf5_item_add(d->out, d->node->inner, d->meta->ndim, d->meta->shape,
                             d->is_null ? NULL : names_of(d), scales, err);
}

/* ---- the dataset -------------------------------- */

static int create_dataset(brc_hdf5_dataset *d, brc_error *err)
{
    d->plist = H5Pcreate(H5P_DATASET_CREATE);
    if (d->plist < 0 || H5Pset_obj_track_times(d->plist, 0) < 0)
        return not_written(d, "it cannot be made in HDF5", err);
    BRC_TRY(choose_type(d, err));
    BRC_TRY(note_dtype(d, err));
    BRC_TRY(make_space(d, err));
    BRC_TRY(set_chunks(d, err));
    BRC_TRY(set_fill_value(d, err));
    d->id = H5Dcreate2(d->out->id, d->node->inner, d->file_type, d->space, d->out->link_names,
                       d->plist, H5P_DEFAULT);
    return d->id < 0 ? not_written(d, "it cannot be made in HDF5", err) : BRC_OK;
}

static int start_dataset(brc_hdf5_dataset **out, brc_hdf5_out *file, const brc_node_out *node,
                         brc_error *err)
{
    brc_hdf5_dataset *d;
    BRC_TRY(brc_new((void **)&d, sizeof(*d), err));
    *out = d;
    d->out = file;
    d->node = node;
    d->path = node->path;
    d->meta = node->meta;
    d->doc = node->doc;
    d->notes = brc_json_member(d->doc, BRC_HDF5_NOTE);
    d->data_type = brc_json_member(d->doc, "data_type");
    d->dtype = node->meta->type;
    d->file_type = d->plist = d->space = d->id = d->type.memory = BRC_HDF5_NONE;
    return BRC_OK;
}

static void hdf5_dataset_close(brc_hdf5_dataset *d)
{
    if (!d)
        return;
    brc_hdf5_close(d->id);
    brc_hdf5_close(d->space);
    brc_hdf5_close(d->plist);
    brc_hdf5_type_close(&d->type);
    brc_hdf5_close(d->file_type);
    brc_json_free(d->zarr);
    free(d);
}

/* Makes the dataset, without elements and attributes, and lists it in out->items and out->zarr. */
static int hdf5_dataset_make(brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    brc_hdf5_dataset *d = NULL;
    int rc;
    BRC_GO(start_dataset(&d, out, node, err));
    BRC_GO(create_dataset(d, err));
    out->zarr[node->number] = d->zarr;
    d->zarr = NULL;
    rc = note_axes(d, err);
done:
    hdf5_dataset_close(d);
    return rc;
}

/* ---- the driver -------------------------------- */

/* Sets *all to 0 if chunks that hold the array's fill value alone need not be written, because
 * elements that are not stored read as this value. */
static int find_variable_gaps(const brc_hdf5_dataset *d, int *all, brc_error *err)
{
    const brc_buf *fill = &d->meta->fill;
    hid_t plist = H5Dget_create_plist(d->id);
    H5D_fill_value_t kind = H5D_FILL_VALUE_UNDEFINED;
    uint8_t *memory = NULL;
    int rc = BRC_OK;
    *all = 1;
    if (plist >= 0 && d->type.kind == BRC_HDF5_FIXED && d->as->how == BRC_NETCDF_PLAIN &&
        !d->as->chars && fill->len == d->type.size && H5Pget_layout(plist) == H5D_CHUNKED &&
        H5Pfill_value_defined(plist, &kind) >= 0 && kind == H5D_FILL_VALUE_USER_DEFINED) {
        BRC_GO(brc_new_array((void **)&memory, 2, fill->len, err));
        uint8_t *theirs = memory, *ours = memory + fill->len;
        memcpy(ours, fill->data, fill->len);
        brc_dtype_native(d->dtype, ours, fill->len);
        *all = H5Pget_fill_value(plist, d->type.memory, theirs) < 0 ||
               memcmp(theirs, ours, fill->len) != 0;
    }
done:
    free(memory);
    brc_hdf5_close(plist);
    return rc;
}

static int begin_variable(brc_hdf5_dataset *d, int *all, brc_error *err)
{
    const brc_netcdf_var *var = brc_netcdf_plan_var(d->out->plan, d->node);
    char *path;
    if (!var)
        return brc_fail(err, BRC_EINTERNAL, "%s was not planned", d->path);
    BRC_TRY(brc_hdf5_variable_path(&path, d->out->plan, var, err));
    d->as = &var->type;
    d->id = H5Dopen2(d->out->id, path, H5P_DEFAULT);
    free(path);
    d->file_type = d->id < 0 ? BRC_HDF5_NONE : H5Dget_type(d->id);
    d->space = d->id < 0 ? BRC_HDF5_NONE : H5Dget_space(d->id);
    if (d->file_type < 0 || d->space < 0)
        return not_written(d, "it cannot be opened again", err);
    BRC_TRY(brc_hdf5_type_read(&d->type, d->out->reg, d->file_type, BRC_HDF5_NETCDF, d->path, err));
    if (d->type.kind == BRC_HDF5_FIXED && d->as->how == BRC_NETCDF_PLAIN &&
        d->type.size != (d->as->chars ? 1 : d->dtype->item_size))
        return brc_fail(err, BRC_EINTERNAL, "%s: its type in the file is of another size", d->path);
    d->takes_stored = takes_stored(d);
    return find_variable_gaps(d, all, err);
}

static int hdf5_out_begin(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    brc_hdf5_out *out = state;
    out->filled = brc_hdf5_ragged_of_node(out, array);
    out->array = array;
    *all = 1;
    if (out->filled)
        return BRC_OK;
    BRC_TRY(start_dataset(&out->dataset, out, array, err));
    brc_hdf5_dataset *d = out->dataset;
    if (out->plan)
        return begin_variable(d, all, err);
    BRC_TRY(choose_type(d, err));
    d->id = H5Dopen2(out->id, array->inner, H5P_DEFAULT);
    d->space = d->id < 0 ? BRC_HDF5_NONE : H5Dget_space(d->id);
    /* if the fill value has lists or texts, the library reads it only where it is stored */
    *all = d->type.kind != BRC_HDF5_FIXED && brc_get_u32le(d->meta->fill.data) > 0;
    if (d->space < 0)
        return not_written(d, "it cannot be opened again", err);
    d->takes_stored = takes_stored(d);
    return BRC_OK;
}

static int hdf5_out_put(void *state, const brc_sel *box, const void *data, size_t len,
                        brc_error *err)
{
    const brc_hdf5_out *out = state;
    const brc_hdf5_dataset *d = out->dataset;
    if (out->filled)
        return brc_hdf5_ragged_put(out->filled, out->array, box, data, len, err);
    if (d->as && d->as->how == BRC_NETCDF_WIDER)
        return write_wider(d, box, data, len, err);
    if (d->as && d->as->how == BRC_NETCDF_UTF32)
        return write_utf32(d, box, data, len, err);
    return d->type.kind == BRC_HDF5_FIXED ? write_fixed_elements(d, box, data, len, err)
                                          : write_variable_elements(d, box, data, len, err);
}

static int hdf5_out_end(void *state, brc_error *err)
{
    brc_hdf5_out *out = state;
    brc_hdf5_dataset *d = out->dataset;
    if (out->filled)
        return brc_hdf5_ragged_end(out->filled, out->array, err);
    hid_t id = d->id;
    d->id = BRC_HDF5_NONE;
    int rc = H5Dclose(id) < 0 ? not_written(d, "its elements cannot be written", err) : BRC_OK;
    hdf5_dataset_close(d);
    out->dataset = NULL;
    return rc;
}

/* ==== hdf5 out ================================ */

/*
 * Writes HDF5: first groups, then the objects in them, then dimension scales, which lead from one
 * dataset to another. No times are written, so equal nodes give equal files.
 */

/* Creates a file that HDF5 1.8 and later read. */
static int create_file(brc_hdf5_out *out, brc_error *err)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    out->link_names = H5Pcreate(H5P_LINK_CREATE);
    out->attr_names = H5Pcreate(H5P_ATTRIBUTE_CREATE);
    if (out->plan && create >= 0 &&
        (H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) < 0 ||
         H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) < 0)) {
        brc_hdf5_close(create);
        create = BRC_HDF5_NONE;
    }
    if (create >= 0 && access >= 0 && out->link_names >= 0 && out->attr_names >= 0 &&
        H5Pset_obj_track_times(create, 0) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_char_encoding(out->link_names, H5T_CSET_UTF8) >= 0 &&
        H5Pset_char_encoding(out->attr_names, H5T_CSET_UTF8) >= 0)
        out->id = H5Fcreate(out->file, H5F_ACC_EXCL, create, access);
    int rc = out->id < 0 ? brc_hdf5_fail(err, BRC_EIO, "cannot make %s", out->file) : BRC_OK;
    brc_hdf5_close(create);
    brc_hdf5_close(access);
    return rc;
}

/* Closes the file. The library writes much of the file only now. */
static int close_file(brc_hdf5_out *out, brc_error *err)
{
    hid_t id = out->id;
    out->id = BRC_HDF5_NONE;
    int failed = H5Fflush(id, H5F_SCOPE_LOCAL) < 0;
    int rc = failed ? brc_hdf5_fail(err, BRC_EIO, "cannot write %s", out->file) : BRC_OK;
    if (H5Fclose(id) < 0 && rc == BRC_OK)
        rc = brc_hdf5_fail(err, BRC_EIO, "cannot write %s", out->file);
    return rc;
}

/* Makes a group. The root group (inner "") exists already. */
static int make_hdf5_group_out(const brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    hid_t group = out->id, plist = BRC_HDF5_NONE;
    int rc = BRC_OK;

    if (*node->inner) {
        plist = H5Pcreate(H5P_GROUP_CREATE);
        group = plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0
                    ? H5Gcreate2(out->id, node->inner, out->link_names, plist, H5P_DEFAULT)
                    : BRC_HDF5_NONE;
    }
    if (group < 0)
        rc = brc_hdf5_fail(err, BRC_EIO, "%s: the group cannot be made in HDF5", node->path);
    if (*node->inner)
        brc_hdf5_close(group);
    brc_hdf5_close(plist);
    return rc;
}

static void close_export(void *state)
{
    brc_hdf5_out *out = state;
    hdf5_dataset_close(out->dataset);
    brc_hdf5_ragged_close(out);
    if (out->id >= 0)
        (void)H5Fclose(out->id);
    brc_hdf5_close(out->link_names);
    brc_hdf5_close(out->attr_names);
    for (size_t i = 0; i < out->n; i++) {
        brc_hdf5_item *item = &out->items[i];
        for (int k = 0; item->names && k < item->ndim; k++)
            free(item->names[k]);
        free(item->names);
        free(item->inner);
    }
    free(out->items);
    for (size_t i = 0; i < out->nzarr && out->zarr; i++)
        brc_json_free(out->zarr[i]);
    free(out->zarr);
    if (out->plan)
        brc_netcdf_plan_free(out->plan);
    free(out->plan);
    free(out);
}

/* Makes the groups, and the committed data types, which datasets need. */
static int make_groups(brc_hdf5_out *out, brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++) {
        const brc_node_out *node = brc_convert_node(c, i);
        if (node->meta || (i > 0 && brc_hdf5_ragged_of_node(out, node)))
            continue;
        BRC_TRY(make_hdf5_group_out(out, node, err));
        BRC_TRY(hdf5_named_make(out, node, err));
    }
    return BRC_OK;
}

static int make_datasets(brc_hdf5_out *out, const brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++) {
        const brc_node_out *node = brc_convert_node(c, i);
        brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
        if (ragged && ragged->group == node)
            BRC_TRY(brc_hdf5_ragged_make(out, ragged, err));
        else if (!ragged && node->meta)
            BRC_TRY(hdf5_dataset_make(out, node, err));
    }
    return BRC_OK;
}

static int write_node_attrs(brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    const brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
    const char *inner = ragged ? ragged->inner : node->inner;
    if (ragged && ragged->group != node)
        return BRC_OK;
    hid_t object = H5Oopen(out->id, *inner ? inner : "/", H5P_DEFAULT);
    if (object < 0)
        return brc_hdf5_fail(err, BRC_EIO, "%s: it cannot be opened again", node->path);
    brc_json *zarr = out->zarr[node->number];
    out->zarr[node->number] = NULL;
    int rc = brc_hdf5_attrs_write(out, object, inner, node->doc,
                                  node->meta ? node->meta->type : NULL, zarr, node->path, err);
    brc_hdf5_close(object);
    return rc == BRC_OK && !node->meta && !ragged ? hdf5_named_attrs(out, node, err) : rc;
}

/* Writes the attributes. All objects must exist before, because references lead to objects. */
static int write_all_attrs(brc_hdf5_out *out, brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++)
        BRC_TRY(write_node_attrs(out, brc_convert_node(c, i), err));
    return BRC_OK;
}

static int create_netcdf(brc_hdf5_out *out, brc_error *err)
{
    BRC_TRY(brc_new((void **)&out->plan, sizeof(*out->plan), err));
    BRC_TRY(brc_hdf5_ragged_find(out, err));
    BRC_TRY(brc_hdf5_netcdf_plan(out, err));
    BRC_TRY(create_file(out, err));
    return brc_hdf5_netcdf_write(out, err);
}

static int hdf5_out_create(void **state, brc_convert *c, const char *file, int netcdf,
                           brc_error *err)
{
    brc_hdf5_out *out;

    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    *state = out;
    out->head.close = close_export;
    out->convert = c;
    out->reg = brc_convert_registry(c);
    out->file = file;
    out->id = out->link_names = out->attr_names = BRC_HDF5_NONE;
    BRC_TRY(brc_hdf5_start(err));
    if (netcdf)
        return create_netcdf(out, err);
    BRC_TRY(create_file(out, err));
    out->nzarr = brc_convert_nodes(c);
    BRC_TRY(brc_new_array((void **)&out->zarr, out->nzarr, sizeof(*out->zarr), err));
    BRC_TRY(brc_hdf5_ragged_find(out, err));
    BRC_TRY(make_groups(out, c, err));
    BRC_TRY(make_datasets(out, c, err));
    return write_all_attrs(out, c, err);
}

static int hdf5_out_finish(void *state, brc_error *err)
{
    brc_hdf5_out *out = state;
    if (!out->plan)
        BRC_TRY(brc_hdf5_scales_write(out, err));
    return close_file(out, err);
}

/* ==== the driver ================================ */

/* Closes the state of an import or of an export. */
static void close_hdf5(void *state)
{
    brc_hdf5_file *file = state;
    if (file)
        file->close(file);
}

const brc_driver brc_hdf5_driver = {
    .names = BRC_NAMES_HDF5,
    .format = "HDF5",
    .netcdf = 1,
    .prepare = brc_hdf5_plugins_load,
    .open = brc_hdf5_in_open,
    .walk = brc_hdf5_in_walk,
    .create = hdf5_out_create,
    .begin = hdf5_out_begin,
    .put = hdf5_out_put,
    .put_stored = hdf5_out_put_stored,
    .end = hdf5_out_end,
    .finish = hdf5_out_finish,
    .close = close_hdf5,
};
