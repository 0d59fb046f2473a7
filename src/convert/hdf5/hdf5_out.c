/* Committed data types, from a group's note: see hdf5_out.h. */
#include "hdf5_out.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"
#include "../../codec/registry.h"

/* ==== hdf5 out named ================================ */

static const brc_json *noted_types(const brc_node_out *group)
{
    const brc_json *attrs = brc_json_member(group->doc, "attributes");
    return brc_json_member(brc_json_member(attrs, BRC_HDF5_GROUP_NOTE), "types");
}

/* A type that HDF5 does not make is passed over: what has it says of it what is needed. */
static int make_named(const brc_hdf5_out *out, const brc_json *note, const char *path,
                      const char *label, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    hid_t type = BRC_HDF5_NONE, plist;
    if (brc_json_kind(brc_json_member(note, "type")) == BRC_JSON_NULL)
        return BRC_OK;
    int rc = brc_hdf5_tree_make(&type, out->reg, brc_json_member(note, "type"), label, &why);
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

/* The object's path in the file; NULL in *out where a node of the export has this place, or the
 * name is none of HDF5's. */
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

/* The committed data types of a group's note, and, when all objects are there, their attributes. */
static int hdf5_named_make(const brc_hdf5_out *out, const brc_node_out *group, brc_error *err)
{
    for (const brc_json *t = brc_json_first(noted_types(group)); t; t = brc_json_next(t)) {
        char *path;
        BRC_TRY(named_path(&path, out, group, brc_json_own_name(t), err));
        int rc = path ? make_named(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* A group with what the note says as its attributes; doc is an object. */
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
    rc = brc_json_set(doc, "attributes", values, err); /* which owns it */
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
    if (rc == BRC_OK && type >= 0) /* else it could not be made */
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
        BRC_TRY(named_path(&path, out, group, brc_json_own_name(t), err));
        int rc = path ? write_named_attrs(out, t, path, group->path, err) : BRC_OK;
        free(path);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* ==== hdf5 out data ================================ */

/* An array as a dataset of HDF5. */

typedef struct brc_hdf5_dataset {
    brc_hdf5_out *out;
    const brc_node_out *node;
    const char *path;
    const brc_meta *meta;
    const brc_json *doc;   /* its zarr.json           */
    const brc_json *notes; /* in it, or NULL          */
    brc_json *zarr;        /* what only Zarr says     */
    const brc_json *data_type;
    const brc_dtype *dtype;
    hid_t file_type, plist, space, id;
    brc_hdf5_type type;
    int is_null;
} brc_hdf5_dataset;

static int not_written(const brc_hdf5_dataset *d, const char *what, brc_error *err)
{
    return brc_hdf5_fail(err, BRC_EIO, "%s: %s", d->path, what);
}

/* ---- type -------------------------------- */

/* Where a reader would take the type for another, the file says which it is. */
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
    BRC_TRY(
        brc_hdf5_type_make(&d->file_type, d->out->reg, d->data_type, d->notes, d->path, err));
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

/* Room for growth as noted; whole chunks fit in any case, which HDF5 asks for. */
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

/* A codec that compresses, and its level; also inside shards. */
static int find_compression(const brc_json *codecs, int depth, int64_t *level)
{
    static const char *const names[] = { "zstd",           "gzip",           "blosc",
                                         "numcodecs.zlib", "numcodecs.bz2",  "numcodecs.lz4",
                                         "numcodecs.lzma", "numcodecs.zstd", "numcodecs.gzip",
                                         "numcodecs.blosc" };
    for (const brc_json *c = brc_json_first(codecs); c; c = brc_json_next(c)) {
        const brc_json *name_json =
            brc_json_kind(c) == BRC_JSON_STRING ? c : brc_json_member(c, "name");
        const brc_json *config = brc_json_member(c, "configuration");
        const char *name;
        int has_name = brc_json_text(name_json, &name);
        for (size_t i = 0; has_name && i < sizeof(names) / sizeof(names[0]); i++) {
            if (strcmp(name, names[i]) != 0)
                continue;
            if (strstr(name, "gzip") || strstr(name, "zlib")) /* whose levels these are */
                (void)brc_json_int(brc_json_member(config, "level"), 0, 9, level);
            return 1;
        }
        if (depth < 4 && find_compression(brc_json_member(config, "codecs"), depth + 1, level))
            return 1;
    }
    return 0;
}

static int set_filters(const brc_hdf5_dataset *d, brc_error *err)
{
    int64_t level = 4;
    if (d->type.kind != BRC_HDF5_FIXED || /* then chunks hold addresses */
        !find_compression(d->node->codecs, 0, &level) ||
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
        return BRC_OK; /* of references all are written */
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

/* Notes the facts about the fill value that the dataset cannot express: for a type of variable
 * length, whether the array has the empty fill value or none; for others, that the array has none
 * though the dataset has one set. */
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

/* HDF5's own default is zero bits: it says that there is no fill value. */
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
    hsize_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    hid_t memory = H5S_ALL;
    int ok = 1;
    for (int i = 0; i < box->ndim; i++) {
        start[i] = box->start[i];
        count[i] = box->count[i];
    }
    if (box->ndim > 0) {
        memory = H5Screate_simple(box->ndim, count, NULL);
        ok = memory >= 0 &&
             H5Sselect_hyperslab(d->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
    }
    ok = ok && H5Dwrite(d->id, d->type.memory, memory, box->ndim > 0 ? d->space : H5S_ALL,
                             H5P_DEFAULT, data) >= 0;
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

/* Texts end with a zero byte in memory. */
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
                      "%s: its element \"%.200s\" is a reference to what is not in this export: "
                      "export the group that holds both, or make the element empty",
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

/* ---- names of axes -------------------------------- */

/* zarr.json's, or those that xarray notes in an attribute. */
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

/* The array as a dataset without elements and attributes, noted in out->items and out->zarr. */
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

int brc_hdf5_out_begin(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    brc_hdf5_out *out = state;
    out->filled = brc_hdf5_ragged_of_node(out, array);
    out->array = array;
    *all = 1;
    if (out->filled)
        return BRC_OK;
    BRC_TRY(start_dataset(&out->dataset, out, array, err));
    brc_hdf5_dataset *d = out->dataset;
    BRC_TRY(choose_type(d, err));
    d->id = H5Dopen2(out->id, array->inner, H5P_DEFAULT);
    d->space = d->id < 0 ? BRC_HDF5_NONE : H5Dget_space(d->id);
    /* of lists and strings, the library reads a fill value only where it is stored */
    *all = d->type.kind != BRC_HDF5_FIXED && brc_get_u32le(d->meta->fill.data) > 0;
    return d->space < 0 ? not_written(d, "it cannot be opened again", err) : BRC_OK;
}

int brc_hdf5_out_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    const brc_hdf5_out *out = state;
    const brc_hdf5_dataset *d = out->dataset;
    if (out->filled)
        return brc_hdf5_ragged_put(out->filled, out->array, box, data, len, err);
    return d->type.kind == BRC_HDF5_FIXED ? write_fixed_elements(d, box, data, len, err)
                                          : write_variable_elements(d, box, data, len, err);
}

int brc_hdf5_out_end(void *state, brc_error *err)
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
 * Writing HDF5: groups, then what is in them, then the dimension scales, which lead
 * from one dataset to another. Times are not written, so equal nodes give equal files.
 */

/* HDF5 1.8 and later can read the file. */
static int create_file(brc_hdf5_out *out, brc_error *err)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    out->link_names = H5Pcreate(H5P_LINK_CREATE);
    out->attr_names = H5Pcreate(H5P_ATTRIBUTE_CREATE);
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

/* The library writes much of the file only now. */
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

/* inner "": the file's root group, which is there. */
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
    free(out);
}

/* Committed data types are there before the datasets that have them. */
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
        struct brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
        if (ragged && brc_hdf5_ragged_is_group(ragged, node))
            BRC_TRY(brc_hdf5_ragged_make(out, ragged, err));
        else if (!ragged && node->meta)
            BRC_TRY(hdf5_dataset_make(out, node, err));
    }
    return BRC_OK;
}

static int write_node_attrs(brc_hdf5_out *out, const brc_node_out *node, brc_error *err)
{
    const struct brc_hdf5_ragged *ragged = brc_hdf5_ragged_of_node(out, node);
    const char *inner = ragged ? brc_hdf5_ragged_inner(ragged) : node->inner;
    if (ragged && !brc_hdf5_ragged_is_group(ragged, node))
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

/* When all objects are there, as references lead to them. */
static int write_all_attrs(brc_hdf5_out *out, brc_convert *c, brc_error *err)
{
    for (size_t i = 0; i < brc_convert_nodes(c); i++)
        BRC_TRY(write_node_attrs(out, brc_convert_node(c, i), err));
    return BRC_OK;
}

int brc_hdf5_out_create(void **state, brc_convert *c, const char *file, int classic, brc_error *err)
{
    brc_hdf5_out *out;
    (void)classic;

    BRC_TRY(brc_new((void **)&out, sizeof(*out), err));
    *state = out;
    out->head.close = close_export;
    out->convert = c;
    out->reg = brc_convert_registry(c);
    out->file = file;
    out->id = out->link_names = out->attr_names = BRC_HDF5_NONE;
    BRC_TRY(brc_hdf5_start(err));
    BRC_TRY(create_file(out, err));
    out->nzarr = brc_convert_nodes(c);
    BRC_TRY(brc_new_array((void **)&out->zarr, out->nzarr, sizeof(*out->zarr), err));
    BRC_TRY(brc_hdf5_ragged_find(out, err));
    BRC_TRY(make_groups(out, c, err));
    BRC_TRY(make_datasets(out, c, err));
    return write_all_attrs(out, c, err);
}

int brc_hdf5_out_finish(void *state, brc_error *err)
{
    brc_hdf5_out *out = state;
    BRC_TRY(brc_hdf5_scales_write(out, err));
    return close_file(out, err);
}
