/* Makes and changes documents, and chooses the codecs of new arrays: those of the repository's
 * setting if the specification names none, and what stands in front of compressors. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../nd/shape.h"
#include "../array/array.h"
#include "../transfer.h"
#include "meta.h"

static int meta_dtype_json(brc_json **out, const char *text, brc_error *err);

/* ==== default codecs ================================ */

/* A default must fit at least one of these types. */
static const char *const probes[] = {"int32", "float32", "float64", "string"};

/* Tells whether an array of this type can have these codecs: BRC_OK, or the reason. */
static int try_codecs(const brc_registry *reg, const char *dtype, const char *codecs,
                      brc_error *err)
{
    const uint64_t shape = 64;
    brc_json *doc;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = 1;
    spec.shape = spec.chunk = &shape;
    spec.dtype = dtype;
    spec.codecs_json = codecs;
    const int rc = brc_meta_new_array(&doc, reg, &spec, err);
    brc_json_free(doc);
    return rc;
}

/* Appends the list after the codec that turns an array of this type into bytes: for lists that only
 * change bytes. */
static int behind_plain(brc_buf *out, const brc_registry *reg, const char *dtype,
                        const char *codecs, brc_error *err)
{
    brc_json *name = NULL;
    brc_dtype *type = NULL;
    int rc;
    const char *rest = codecs + strspn(codecs, " \t\r\n");
    if (*rest != '[')
        return brc_fail(err, BRC_EINVAL, "the codecs are not a list");
    BRC_GO(meta_dtype_json(&name, dtype, err));
    BRC_GO(brc_dtype_open(&type, reg, name, NULL, err));
    BRC_GO(brc_meta_plain_codecs(out, type, err));
    rest += 1 + strspn(rest + 1, " \t\r\n");
    out->len--; /* its bracket */
    if (*rest != ']')
        BRC_GO(brc_buf_text(out, ",", err));
    BRC_GO(brc_buf_text(out, rest, err));
    rc = brc_buf_terminate(out, err);
done:
    brc_dtype_free(type);
    brc_json_free(name);
    return rc;
}

/* Appends the list for arrays of this type: as it is, or after the codec that turns elements into
 * bytes. */
static int fit_codecs(brc_buf *out, const brc_registry *reg, const char *dtype, const char *codecs,
                      brc_error *err)
{
    brc_buf longer = BRC_BUF_INIT;
    int rc = try_codecs(reg, dtype, codecs, err);
    if (rc == BRC_OK)
        return brc_buf_text(out, codecs, err);
    if (behind_plain(&longer, reg, dtype, codecs, NULL) == BRC_OK &&
        try_codecs(reg, dtype, (const char *)longer.data, NULL) == BRC_OK)
        rc = brc_buf_append(out, longer.data, longer.len, err);
    brc_buf_dispose(&longer);
    return rc;
}

static int must_fit_some(const brc_registry *reg, const char *codecs, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = fit_codecs(&text, reg, probes[0], codecs, err);
    for (size_t i = 1; i < sizeof(probes) / sizeof(probes[0]) && rc < 0; i++)
        if (fit_codecs(&text, reg, probes[i], codecs, NULL) == BRC_OK)
            rc = BRC_OK;
    brc_buf_dispose(&text);
    return rc;
}

int brc_default_codecs_set(breccia *repo, const char *codecs, brc_error *err)
{
    brc_json *list = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (codecs != NULL) {
        BRC_TRY(must_fit_some(repo->registry, codecs, err));
        BRC_TRY(brc_json_parse(&list, codecs, strlen(codecs), 0, err));
        BRC_GO(brc_json_write(&text, list, 0, err));
        BRC_GO(brc_buf_terminate(&text, err));
    }
    BRC_GO(brc_store_begin(repo->store, err));
    rc = brc_setting_put(repo->store, BRC_SETTING_CODECS,
                         codecs != NULL ? (const char *)text.data : NULL, err);
    const int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
done:
    brc_json_free(list);
    brc_buf_dispose(&text);
    return rc;
}

int brc_session_default_codecs(brc_buf *out, brc_session *s, const char *dtype, brc_error *err)
{
    const breccia *repo = s->repo;
    brc_buf text = BRC_BUF_INIT;
    const size_t before = out->len;
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_setting_find(repo->store, BRC_SETTING_CODECS, &text, err);
    brc_store_end_read(repo->store);
    if (rc > 0 && fit_codecs(out, repo->registry, dtype, (const char *)text.data, NULL) < 0)
        out->len = before;
    brc_buf_dispose(&text);
    return rc < 0 ? rc : out->len > before ? brc_buf_terminate(out, err) : BRC_OK;
}

static int behind_compressors(brc_buf *out, brc_session *s, const brc_array_spec *spec,
                              brc_error *err)
{
    if (spec->codecs_json != NULL || spec->metadata_json != NULL || spec->dtype == NULL)
        return brc_fail(err, BRC_EINVAL, "compressors go with a data type, and without codecs or a "
                                         "zarr.json: leave one out");
    return behind_plain(out, s->repo->registry, spec->dtype, spec->compressors_json, err);
}

int brc_new_array_doc(brc_json **out, brc_session *s, const brc_array_spec *given, brc_error *err)
{
    brc_array_spec spec;
    brc_buf codecs = BRC_BUF_INIT;
    *out = NULL;
    BRC_TRY(brc_sized_in(&spec, sizeof(spec), offsetof(brc_array_spec, chunk), given,
                         "brc_array_spec", err));
    int rc = BRC_OK;
    if (spec.compressors_json != NULL)
        rc = behind_compressors(&codecs, s, &spec, err);
    else if (spec.codecs_json == NULL && spec.metadata_json == NULL && spec.dtype != NULL)
        rc = brc_session_default_codecs(&codecs, s, spec.dtype, err);
    if (codecs.len > 0)
        spec.codecs_json = (const char *)codecs.data;
    if (rc == BRC_OK)
        rc = brc_meta_new_array(out, s->repo->registry, &spec, err);
    brc_buf_dispose(&codecs);
    return rc;
}

/* ==== meta new ================================ */

/* Makes and changes documents. */

#define CHUNK_TARGET ((uint64_t)1 << 20)

static brc_json *new_shape(int ndim, const uint64_t *shape)
{
    brc_json *list = brc_json_new_array();
    for (int i = 0; list != NULL && i < ndim; i++) {
        if (brc_json_push(list, brc_json_new_uint(shape[i]), NULL) < 0) {
            brc_json_free(list);
            return NULL;
        }
    }
    return list;
}

/* Makes {"name": name, "configuration": {member: value}}; value is consumed. */
static brc_json *new_named(const char *name, const char *member, brc_json *value)
{
    brc_json *object = brc_json_new_object(), *config = brc_json_new_object();
    int rc = config == NULL ? BRC_ENOMEM : brc_json_set(config, member, value, NULL);
    if (config == NULL)
        brc_json_free(value);
    if (rc == BRC_OK && object != NULL)
        rc = brc_json_set(object, "name", brc_json_new_string(name), NULL);
    if (rc < 0 || object == NULL) {
        brc_json_free(config);
        brc_json_free(object);
        return NULL;
    }
    if (brc_json_set(object, "configuration", config, NULL) < 0) {
        brc_json_free(object);
        return NULL;
    }
    return object;
}

/* Sets a member; `value` is the result of parsing, with `rc`. */
static int set_value(brc_json *doc, const char *member, brc_json *value, int rc, brc_error *err)
{
    if (rc < 0) {
        brc_context(err, "%s", member);
        return rc;
    }
    return brc_json_set(doc, member, value, err);
}

static int set_parsed(brc_json *doc, const char *member, const char *json, brc_error *err)
{
    brc_json *value;
    int rc = brc_json_parse(&value, json, strlen(json), 0, err);
    return set_value(doc, member, value, rc, err);
}

static int set_attributes(brc_json *doc, const char *json, brc_error *err)
{
    brc_json *value;
    if (json == NULL)
        return BRC_OK;
    int rc = brc_json_parse(&value, json, strlen(json), BRC_JSON_NAN, err);
    BRC_TRY(set_value(doc, "attributes", value, rc, err));
    if (brc_json_kind(brc_json_member(doc, "attributes")) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "attributes must be a JSON object");
    return BRC_OK;
}

static int set_head(brc_json *doc, const char *node_type, brc_error *err)
{
    BRC_TRY(brc_json_set(doc, "zarr_format", brc_json_new_uint(3), err));
    return brc_json_set(doc, "node_type", brc_json_new_string(node_type), err);
}

int brc_meta_new_group(brc_json **out, const char *attrs_json, brc_error *err)
{
    *out = NULL;
    brc_json *doc = brc_json_new_object();
    if (doc == NULL)
        return brc_nomem(err);
    int rc = set_head(doc, "group", err);
    if (rc == BRC_OK)
        rc = set_attributes(doc, attrs_json, err);
    if (rc < 0)
        brc_json_free(doc);
    else
        *out = doc;
    return rc;
}

/* Chooses chunks of about CHUNK_TARGET bytes, whole trailing axes first: the last axes stay
 * together because frames, images and rows are read in that way. */
static void choose_chunks(int ndim, const uint64_t *shape, uint64_t item, uint64_t *chunk)
{
    uint64_t left = CHUNK_TARGET / (item > 0 ? item : 64); /* a guess: lengths vary */
    for (int i = ndim - 1; i >= 0; i--) {
        uint64_t extent = shape[i] > 0 ? shape[i] : 1;
        if (left < 1)
            left = 1;
        if (extent <= left) {
            chunk[i] = extent;
        } else { /* even parts instead of one large and one small */
            uint64_t parts = brc_grid_extent(extent, left);
            chunk[i] = brc_grid_extent(extent, parts);
        }
        left /= chunk[i];
    }
}

/* Appends the codec that turns elements of this type into bytes. */
static int default_to_bytes(brc_buf *text, const brc_dtype *type, brc_error *err)
{
    if (type->klass == BRC_CLASS_OPTIONAL) {
        BRC_TRY(brc_buf_text(text, "{\"name\":\"zarrs.optional\",\"configuration\":{"
                                   "\"mask_codecs\":[{\"name\":\"packbits\"}],\"data_codecs\":[",
                             err));
        BRC_TRY(default_to_bytes(text, type->inner, err));
        return brc_buf_text(text, "]}}", err);
    }
    if (type->item_size == 0)
        return brc_buf_printf(text, err, "{\"name\":\"%s\"}",
                              type->klass == BRC_CLASS_STRING ? "vlen-utf8" : "vlen-bytes");
    if (type->swap_unit > 1 || type->klass == BRC_CLASS_STRUCT)
        return brc_buf_text(
            text, "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}", err);
    return brc_buf_text(text, "{\"name\":\"bytes\"}", err);
}

int brc_meta_plain_codecs(brc_buf *out, const brc_dtype *type, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(default_to_bytes(out, type, err));
    return brc_buf_byte(out, ']', err);
}

/* The block size of new arrays. c-blosc chooses 32 KiB for these, with a new zstd context for each
 * stream of each block: larger blocks are encoded and decoded half as fast again
 * (docs/PERFORMANCE.md). */
#define BLOSC_BLOCK ((size_t)512 << 10)

/* Chooses byte shuffle and fast zstd for elements of two or more bytes, which on measured data is
 * smaller and two to three times faster than zstd alone; otherwise zstd. */
int brc_meta_default_codecs(brc_buf *out, const brc_dtype *type, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '[', err));
    BRC_TRY(default_to_bytes(out, type, err));
    if (type->item_size >= 2 && type->item_size <= 255 && type->klass != BRC_CLASS_OPTIONAL)
        BRC_TRY(brc_buf_printf(
            out, err,
            ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
            "\"shuffle\":\"shuffle\",\"typesize\":%zu,\"blocksize\":%zu}}]",
            type->item_size, BLOSC_BLOCK));
    else
        BRC_TRY(
            brc_buf_text(out, ",{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]", err));
    return brc_buf_terminate(out, err);
}

static int set_default_codecs(brc_json *doc, const brc_dtype *type, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_meta_default_codecs(&text, type, err);
    if (rc == BRC_OK)
        rc = set_parsed(doc, "codecs", (const char *)text.data, err);
    brc_buf_dispose(&text);
    return rc;
}

/* Puts sharding_indexed around the present codecs. */
static int put_in_shards(brc_json *doc, int ndim, const uint64_t *chunk, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_text(
        &text, "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[", err));
    for (int i = 0; i < ndim; i++)
        BRC_GO(brc_buf_printf(&text, err, "%s%" PRIu64, i > 0 ? "," : "", chunk[i]));
    BRC_GO(brc_buf_text(&text, "],\"codecs\":", err));
    BRC_GO(brc_json_write(&text, brc_json_member(doc, "codecs"), 0, err));
    BRC_GO(brc_buf_printf(&text, err,
                          ",\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":"
                          "{\"endian\":\"little\"}},{\"name\":\"crc32c\"}],"
                          "\"index_location\":\"end\"}}]"));
    rc = set_parsed(doc, "codecs", (const char *)text.data, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Appends the caller's element as it is stored: little-endian, with bits that carry no value
 * cleared. */
static int take_element(brc_buf *out, const brc_dtype *type, const void *given, brc_error *err)
{
    const size_t len = type->item_size > 0 ? type->item_size : 4 + (size_t)brc_get_u32le(given);
    BRC_TRY(brc_buf_append(out, given, len, err));
    if (type->item_size == 0)
        return BRC_OK;
    brc_dtype_native(type, out->data, len);
    if (type->ops->normalize != NULL)
        type->ops->normalize(type, out->data, 1);
    return BRC_OK;
}

static int set_fill(brc_json *doc, const brc_dtype *type, const brc_array_spec *spec,
                    brc_error *err)
{
    brc_buf element = BRC_BUF_INIT, text = BRC_BUF_INIT;
    int rc;
    if (spec->fill != NULL && spec->fill_element != NULL)
        return brc_fail(err, BRC_EINVAL, "the fill value is given twice: set fill or fill_element");
    if (spec->fill_element != NULL)
        BRC_GO(take_element(&element, type, spec->fill_element, err));
    else if (spec->fill == NULL && type->klass != BRC_CLASS_TIME)
        BRC_GO(brc_dtype_default(type, &element, err));
    else
        BRC_GO(brc_dtype_parse_text(type, spec->fill != NULL ? spec->fill : "NaT", &element, err));
    rc = type->ops->print(type, element.data, element.len, BRC_PRINT_FILL, &text, err);
    if (rc == BRC_ECORRUPT) /* BRC_ECORRUPT would be right for stored elements only */
        rc = brc_fail(err, BRC_EINVAL, "the fill value's bytes are not a valid %s",
                      type->name);
    if (rc < 0)
        goto done;
    BRC_GO(brc_buf_terminate(&text, err));
    rc = set_parsed(doc, "fill_value", (const char *)text.data, err);
done:
    brc_buf_dispose(&element);
    brc_buf_dispose(&text);
    return rc;
}

static int set_dimension_names(brc_json *doc, int ndim, const char *const *names, brc_error *err)
{
    if (names == NULL)
        return BRC_OK;
    brc_json *list = brc_json_new_array();
    if (list == NULL)
        return brc_nomem(err);
    for (int i = 0; i < ndim; i++) {
        int rc = brc_json_push(list, names[i] != NULL ? brc_json_new_string(names[i])
                                                      : brc_json_new_null(), err);
        if (rc < 0) {
            brc_json_free(list);
            return rc;
        }
    }
    return brc_json_set(doc, "dimension_names", list, err);
}

/* Makes a data type as documents have it, from "float32" or from the text of a JSON object. */
static int meta_dtype_json(brc_json **out, const char *text, brc_error *err)
{
    if (text == NULL)
        return brc_fail(err, BRC_EINVAL, "a data type is needed");
    if (text[0] == '{' || text[0] == '"')
        return brc_json_parse(out, text, strlen(text), 0, err);
    if (!brc_utf8_valid(text, strlen(text)))
        return brc_fail(err, BRC_EINVAL, "the data type's name is not valid UTF-8");
    *out = brc_json_new_string(text);
    return *out != NULL ? BRC_OK : brc_nomem(err);
}

int brc_meta_set_chunks(brc_json *doc, int ndim, const uint64_t *chunk, brc_error *err)
{
    return brc_json_set(doc, "chunk_grid",
                        new_named("regular", "chunk_shape", new_shape(ndim, chunk)), err);
}

static int find_compressor(const brc_json *codecs, int depth, int64_t *level)
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
        if (depth < 4 && find_compressor(brc_json_member(config, "codecs"), depth + 1, level))
            return 1;
    }
    return 0;
}

int brc_meta_compression(const brc_json *codecs, int64_t *level)
{
    return find_compressor(codecs, 0, level);
}

/* Appends the codecs that do what HDF5's filters do, if they are those of an export. */
static int deflated_codecs(brc_buf *codecs, const brc_json *doc, const brc_meta *meta,
                           brc_error *err)
{
    const brc_dtype *type = meta->type;
    int64_t level = 4;
    const int is_number = type->klass == BRC_CLASS_INT || type->klass == BRC_CLASS_UINT ||
                          type->klass == BRC_CLASS_FLOAT;
    if (!is_number || type->item_size == 0 || meta->ndim == 0 ||
        !brc_meta_compression(brc_json_member(doc, "codecs"), &level) || level == 0)
        return BRC_OK;
    codecs->len--; /* the bracket at the end */
    if (type->item_size > 1)
        BRC_TRY(brc_buf_printf(codecs, err,
                               ",{\"name\":\"numcodecs.shuffle\",\"configuration\":"
                               "{\"elementsize\":%zu}}",
                               type->item_size));
    return brc_buf_printf(codecs, err,
                          ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":%d}}]",
                          (int)level);
}

static int make_plain(brc_json *doc, const brc_meta *meta, int how, brc_error *err)
{
    brc_buf codecs = BRC_BUF_INIT;
    int rc = brc_meta_must_encode(meta, err);
    if (rc < 0)
        brc_context(err, meta->readable ? "it cannot be converted: export it as .npy and import "
                                          "that, for its elements can be read"
                                        : "it cannot be converted");
    if (rc == BRC_OK && meta->nlevels > 0)
        rc = brc_meta_set_chunks(doc, meta->ndim, meta->grid.chunk, err);
    if (rc == BRC_OK)
        rc = brc_meta_plain_codecs(&codecs, meta->type, err);
    if (rc == BRC_OK && how == BRC_PLAIN_DEFLATED)
        rc = deflated_codecs(&codecs, doc, meta, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&codecs, err);
    if (rc == BRC_OK)
        rc = set_parsed(doc, "codecs", (const char *)codecs.data, err);
    brc_buf_dispose(&codecs);
    return rc;
}

int brc_meta_plain_doc(brc_json **out, const brc_registry *reg, const brc_json *doc, int how,
                       brc_error *err)
{
    brc_meta meta;
    *out = NULL;
    BRC_TRY(brc_meta_open(&meta, reg, doc, err));
    int rc = brc_json_clone(out, doc, err);
    if (rc == BRC_OK)
        rc = make_plain(*out, &meta, how, err);
    brc_meta_dispose(&meta);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

static int new_array_members(brc_json *doc, const brc_array_spec *spec, const brc_dtype *type,
                             brc_json **dtype_json, brc_error *err)
{
    uint64_t chunk[BRC_MAX_NDIM];
    const char *keys = spec->chunk_key_encoding != NULL ? spec->chunk_key_encoding : "default";
    if (spec->chunk == NULL)
        choose_chunks(spec->ndim, spec->shard != NULL ? spec->shard : spec->shape,
                      type->item_size, chunk);
    for (int i = 0; spec->chunk == NULL && spec->shard != NULL && i < spec->ndim; i++)
        while (spec->shard[i] % chunk[i] != 0)
            chunk[i]--;
    const uint64_t *chunks = spec->chunk != NULL ? spec->chunk : chunk;
    BRC_TRY(set_head(doc, "array", err));
    BRC_TRY(brc_json_set(doc, "shape", new_shape(spec->ndim, spec->shape), err));
    brc_json *t = *dtype_json;
    *dtype_json = NULL;
    BRC_TRY(brc_json_set(doc, "data_type", t, err));
    const uint64_t *outer = spec->shard != NULL ? spec->shard : chunks;
    BRC_TRY(brc_meta_set_chunks(doc, spec->ndim, outer, err));
    if (strcmp(keys, "default") != 0 && strcmp(keys, "v2") != 0)
        return brc_fail(err, BRC_EINVAL,
                        "the chunk key encoding must be 'default' or 'v2', not '%.40s'", keys);
    BRC_TRY(brc_json_set(doc, "chunk_key_encoding",
                         new_named(keys, "separator",
                                   brc_json_new_string(strcmp(keys, "v2") == 0 ? "." : "/")),
                         err));
    BRC_TRY(set_fill(doc, type, spec, err));
    if (spec->codecs_json != NULL)
        BRC_TRY(set_parsed(doc, "codecs", spec->codecs_json, err));
    else
        BRC_TRY(set_default_codecs(doc, type, err));
    if (spec->shard != NULL)
        BRC_TRY(put_in_shards(doc, spec->ndim, chunks, err));
    BRC_TRY(set_attributes(doc, spec->attrs_json, err));
    return set_dimension_names(doc, spec->ndim, spec->dimension_names, err);
}

/* Writes codecs that were given in short form in full. */
static int complete_codecs(brc_json *doc, const brc_registry *reg, brc_error *err)
{
    brc_meta meta;
    BRC_TRY(brc_meta_open(&meta, reg, doc, err));
    int rc = brc_meta_must_encode(&meta, err);
    if (rc == BRC_OK)
        rc = brc_meta_set_codecs(doc, &meta, meta.codecs_json, 0, err);
    brc_meta_dispose(&meta);
    return rc;
}

int brc_meta_new_array(brc_json **out, const brc_registry *reg, const brc_array_spec *given,
                       brc_error *err)
{
    brc_array_spec full, *spec = &full;
    brc_json *doc = NULL, *dtype_json = NULL;
    brc_dtype *type = NULL;
    int rc;
    *out = NULL;
    BRC_TRY(brc_sized_in(spec, sizeof(full), offsetof(brc_array_spec, chunk), given,
                         "brc_array_spec", err));
    if (spec->metadata_json != NULL)
        return brc_json_parse_document(out, spec->metadata_json, strlen(spec->metadata_json), err);
    if (spec->ndim < 0 || spec->ndim > BRC_MAX_NDIM || (spec->ndim > 0 && spec->shape == NULL))
        return brc_fail(err, BRC_EINVAL, "an array has 0 to %d dimensions", BRC_MAX_NDIM);
    BRC_GO(meta_dtype_json(&dtype_json, spec->dtype, err));
    BRC_GO(brc_dtype_open(&type, reg, dtype_json, NULL, err));
    doc = brc_json_new_object();
    if (doc == NULL) {
        rc = brc_nomem(err);
        goto done;
    }
    BRC_GO(new_array_members(doc, spec, type, &dtype_json, err));
    BRC_GO(complete_codecs(doc, reg, err));
    *out = doc;
    doc = NULL;
done:
    brc_json_free(doc);
    brc_json_free(dtype_json);
    brc_dtype_free(type);
    return rc;
}

int brc_meta_set_shape(brc_json *doc, int ndim, const uint64_t *shape, brc_error *err)
{
    return brc_json_set(doc, "shape", new_shape(ndim, shape), err);
}

/* Refuses a change of the stored chunks' shape. */
static int check_rechunk(const brc_json *doc, const brc_meta *meta, brc_error *err)
{
    brc_meta then;
    BRC_TRY(brc_meta_open(&then, meta->registry, doc, err));
    int rc = brc_meta_must_encode(&then, err);
    if (rc == BRC_OK && memcmp(then.grid.chunk, meta->grid.chunk,
                               (size_t)meta->ndim * sizeof(meta->grid.chunk[0])) != 0)
        rc = brc_fail(err, BRC_EINVAL,
                      "these codecs change the shape of the stored chunks: that needs --rewrite");
    brc_meta_dispose(&then);
    return rc;
}

/* ---- a list of compressors alone -------------------------------- */

static int codec_kind(const brc_registry *reg, const brc_json *codec)
{
    brc_named named;
    if (brc_named_read(&named, codec, NULL) < 0)
        return -1;
    const brc_codec_entry *entry = brc_registry_codec(reg, named.name);
    return entry == NULL ? -1 : entry->spec.kind;
}

static int are_compressors(const brc_registry *reg, const brc_json *list)
{
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        return 0;
    for (const brc_json *item = brc_json_first(list); item != NULL; item = brc_json_next(item))
        if (codec_kind(reg, item) != BRC_BYTES_TO_BYTES)
            return 0;
    return 1;
}

static int push_clone(brc_json *list, const brc_json *item, brc_error *err)
{
    brc_json *copy;
    BRC_TRY(brc_json_clone(&copy, item, err));
    return brc_json_push(list, copy, err);
}

static int with_compressors(brc_json **out, const brc_registry *reg, const brc_json *present,
                            const brc_json *compressors, brc_error *err);

/* Appends a sharding codec whose inner chunks have these compressors. */
static int push_sharding(brc_json *list, const brc_registry *reg, const brc_json *sharding,
                         const brc_json *compressors, brc_error *err)
{
    const brc_json *config = brc_json_member(sharding, "configuration");
    brc_json *copy = NULL, *new_config = NULL, *inner = NULL;
    int rc;
    BRC_GO(with_compressors(&inner, reg, brc_json_member(config, "codecs"), compressors, err));
    BRC_GO(brc_json_clone(&new_config, config, err));
    BRC_GO(brc_json_clone(&copy, sharding, err));
    rc = brc_json_set(new_config, "codecs", inner, err);
    inner = NULL;
    if (rc == BRC_OK) {
        rc = brc_json_set(copy, "configuration", new_config, err);
        new_config = NULL;
    }
    if (rc == BRC_OK) {
        rc = brc_json_push(list, copy, err);
        copy = NULL;
    }
done:
    brc_json_free(inner);
    brc_json_free(new_config);
    brc_json_free(copy);
    return rc;
}

/* Makes the present list with other compressors: of the inner chunks, where there are shards. */
static int with_compressors(brc_json **out, const brc_registry *reg, const brc_json *present,
                            const brc_json *compressors, brc_error *err)
{
    int is_sharded = 0, rc = BRC_OK;
    *out = brc_json_new_array();
    if (*out == NULL)
        return brc_nomem(err);
    for (const brc_json *c = brc_json_first(present); c && rc == BRC_OK; c = brc_json_next(c)) {
        const int sharding = brc_json_is(brc_json_member(c, "name"), "sharding_indexed");
        is_sharded |= sharding;
        if (sharding)
            rc = push_sharding(*out, reg, c, compressors, err);
        else if (is_sharded || codec_kind(reg, c) != BRC_BYTES_TO_BYTES)
            rc = push_clone(*out, c, err);
    }
    for (const brc_json *c = brc_json_first(compressors); c && rc == BRC_OK && !is_sharded;
         c = brc_json_next(c))
        rc = push_clone(*out, c, err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

/* Replaces a list that has only compressors by the document's list with these. */
static int keep_all_but_compressors(brc_json **codecs, const brc_registry *reg,
                                    const brc_json *doc, brc_error *err)
{
    brc_json *all;
    if (!are_compressors(reg, *codecs))
        return BRC_OK;
    BRC_TRY(with_compressors(&all, reg, brc_json_member(doc, "codecs"), *codecs, err));
    brc_json_free(*codecs);
    *codecs = all;
    return BRC_OK;
}

int brc_meta_set_codecs(brc_json *doc, const brc_meta *meta, const char *codecs_json, int rechunk,
                        brc_error *err)
{
    brc_json *codecs = NULL;
    brc_chain *chain = NULL;
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_json_parse(&codecs, codecs_json, strlen(codecs_json), 0, err);
    if (rc < 0) {
        brc_context(err, "codecs");
        return rc;
    }
    BRC_GO(brc_meta_must_encode(meta, err));
    BRC_GO(keep_all_but_compressors(&codecs, meta->registry, doc, err));
    BRC_GO(brc_chain_open(&chain, meta->registry, codecs, meta->ndim, meta->outer.chunk, meta->type,
                          (brc_span){meta->fill.data, meta->fill.len}, err));
    BRC_GO(brc_chain_write(chain, &text, err));
    BRC_GO(brc_buf_terminate(&text, err));
    BRC_GO(set_parsed(doc, "codecs", (const char *)text.data, err));
    if (!rechunk)
        rc = check_rechunk(doc, meta, err);
done:
    brc_json_free(codecs);
    brc_chain_free(chain);
    brc_buf_dispose(&text);
    return rc;
}

int brc_meta_zarr2_note(brc_json *doc, const char *name, brc_json *value, brc_error *err)
{
    const brc_json *there = brc_json_member(doc, BRC_ZARR2_NOTE);
    brc_json *note = NULL;
    int rc;

    BRC_GO(there ? brc_json_clone(&note, there, err)
                 : brc_json_parse(&note, "{\"must_understand\":false}", 25, 0, err));
    rc = brc_json_set(note, name, value, err);
    value = NULL;
    if (rc < 0)
        goto done;
    rc = brc_json_set(doc, BRC_ZARR2_NOTE, note, err);
    note = NULL;
done:
    brc_json_free(note);
    brc_json_free(value);
    return rc;
}
