#include "opaque.h"

#include <stdlib.h>
#include <string.h>

#include "../nd/named.h"
#include "../tree/chunk_key.h"
#include "../tree/map.h"

/* Random, chosen once: no chunk begins like this by chance. */
static const uint8_t opaque_mark[16] = {0x9e, 0x31, 0xd4, 0x0b, 0x77, 0xc5, 0x2a, 0xf8,
                                        0x13, 0x6d, 0xe0, 0x94, 0x5b, 0xa2, 0x8f, 0x46};

int brc_opaque_mark(brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_reserve(out, sizeof(opaque_mark), err));
    memmove(out->data + sizeof(opaque_mark), out->data, out->len);
    memcpy(out->data, opaque_mark, sizeof(opaque_mark));
    out->len += sizeof(opaque_mark);
    return BRC_OK;
}

/* ---- what an array's chunks were stored as -------------------------------- */

typedef struct any_chunk {
    size_t id_len;
    int there;
    brc_oid id;
} any_chunk;

static int note_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    any_chunk *any = ctx;
    (void)key;
    BRC_TRY(brc_chunk_id_of(value, any->id_len, &any->id, err));
    any->there = 1;
    return BRC_EINTERRUPT; /* one is enough */
}

static int note_row(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                    brc_error *err)
{
    any_chunk *any = ctx;
    (void)key;
    (void)key_len;
    (void)err;
    if (id == NULL)
        return BRC_OK;
    any->id = *id;
    any->there = 1;
    return BRC_EINTERRUPT;
}

static int find_any_chunk(brc_store *store, const brc_oid *map, const brc_draft_stack *rows,
                          any_chunk *any, brc_error *err)
{
    int rc = rows->n > 0 ? brc_draft_chunk_each(store, rows, note_row, any, err) : BRC_OK;
    if (rc == BRC_OK)
        rc = brc_map_each(store, map, note_item, any, err);
    return any->there ? BRC_OK : rc;
}

int brc_opaque_settle(brc_store *store, brc_meta *meta, const brc_oid *map,
                      const brc_draft_stack *rows, brc_error *err)
{
    int64_t encoding;
    brc_error why = BRC_ERROR_INIT;
    any_chunk any = {.id_len = brc_store_id_len(store)};
    if (meta->opaque)
        return BRC_OK;
    BRC_TRY(brc_encoding_find(store, BRC_OPAQUE_SPEC, &encoding, err));
    if (encoding < 0)
        return BRC_OK;
    BRC_TRY(find_any_chunk(store, map, rows, &any, err));
    if (!any.there)
        return BRC_OK;
    brc_object o = {.id = any.id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (!o.found || o.encoding != encoding)
        return BRC_OK;
    brc_fail(&why, BRC_EUNSUPPORTED,
             "its chunks were stored when its codecs or its data type were not known: export the "
             "array and import it again");
    return brc_meta_make_opaque(meta, &why, err);
}

/* ---- what a Zarr store would hold -------------------------------- */

/* Absent and empty are the same. */
static int same_config(const brc_json *a, const brc_json *b)
{
    if (brc_json_count(a) == 0 || brc_json_count(b) == 0)
        return brc_json_count(a) == brc_json_count(b);
    return brc_json_equal(a, b);
}

static int same_codecs(const brc_json *a, const brc_json *b)
{
    brc_named x, y;
    if (brc_json_count(a) != brc_json_count(b))
        return 0;
    for (size_t i = 0; i < brc_json_count(a); i++)
        if (brc_named_read(&x, brc_json_item(a, i), NULL) < 0 ||
            brc_named_read(&y, brc_json_item(b, i), NULL) < 0 || strcmp(x.name, y.name) != 0 ||
            !same_config(x.config, y.config))
            return 0;
    return 1;
}

/* A type's name, or the JSON text of its object. */
static int same_type(const char *dtype, const brc_json *json)
{
    brc_buf text = BRC_BUF_INIT;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return brc_json_is(json, dtype);
    int same = brc_json_write(&text, json, NULL) == BRC_OK && text.len == strlen(dtype) &&
               memcmp(text.data, dtype, text.len) == 0;
    brc_buf_dispose(&text);
    return same;
}

/* The chunk's own shape, in the grid of what Zarr's keys name: an inner chunk of a
 * shard is none of these. */
static int same_shape(const brc_meta *meta, const uint64_t *index, const brc_json *shape)
{
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM], extent;
    brc_grid_chunk(&meta->outer, index, corner, chunk);
    if (brc_json_count(shape) != (size_t)meta->ndim)
        return 0;
    for (int i = 0; i < meta->ndim; i++)
        if (!brc_json_uint(brc_json_item(shape, (size_t)i), INT64_MAX, &extent) ||
            extent != chunk[i])
            return 0;
    return 1;
}

static int is_encoded_so(const brc_meta *meta, const uint64_t *index, const char *spec_text,
                         int *so, brc_error *err)
{
    brc_json *spec = NULL, *codecs = NULL;
    int rc;
    BRC_GO(brc_json_parse(&spec, spec_text, strlen(spec_text), err));
    BRC_GO(brc_json_parse(&codecs, meta->codecs_json, strlen(meta->codecs_json), err));
    *so = same_codecs(brc_json_member(spec, "codecs"), codecs) &&
          same_type(meta->dtype, brc_json_member(spec, "data_type")) &&
          same_shape(meta, index, brc_json_member(spec, "shape"));
done:
    brc_json_free(spec);
    brc_json_free(codecs);
    return rc;
}

static int opaque_damaged(brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "its object is damaged; run 'breccia fsck'");
}

int brc_opaque_check(const uint8_t *stored, brc_error *err)
{
    return memcmp(stored, opaque_mark, sizeof(opaque_mark)) == 0 ? BRC_OK : opaque_damaged(err);
}

int brc_opaque_skip(brc_store *store, const brc_meta *meta, const uint64_t *index,
                    const brc_object *object, size_t *skip, brc_error *err)
{
    const char *spec;
    int so = 0;
    *skip = 0;
    BRC_TRY(brc_encoding_spec(store, object->encoding, &spec, err));
    if (spec != NULL && strcmp(spec, BRC_OPAQUE_SPEC) == 0) {
        *skip = sizeof(opaque_mark);
        return object->stored >= *skip ? BRC_OK : opaque_damaged(err);
    }
    if (spec != NULL)
        BRC_TRY(is_encoded_so(meta, index, spec, &so, err));
    if (so)
        return BRC_OK;
    brc_fail(err, BRC_EUNSUPPORTED, "%s", meta->why.message);
    brc_context(err, "it is not stored as the array's codecs say, and cannot be encoded "
                     "here");
    return BRC_EUNSUPPORTED;
}
