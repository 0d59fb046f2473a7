/* Documents of arrays and groups: chunk keys, storage options, codecs, and the reading of
 * zarr.json. */
#include "meta.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/buf.h"
#include "../../base/json.h"
#include "../../nd/dtype.h"
#include "../../nd/shape.h"
#include "../array/array.h"
#include "../array/chunk_cursor.h"
#include "../transfer.h"

/* ==== chunk path ================================ */

int brc_chunk_key_format(const brc_array *a, const uint64_t *index, brc_buf *out, brc_error *err)
{
    return brc_meta_key_format(&a->meta, index, out, err);
}

int brc_chunk_key_parse(const brc_array *a, const char *key, uint64_t *index, int *inside)
{
    return brc_meta_key_parse(&a->meta, key, index, inside);
}

/* ==== meta keys ================================ */

/* Chunk keys of a Zarr store: "c/0/1" (default) or "0.1" (v2), by the document's encoding. */

int brc_meta_key_format(const brc_meta *m, const uint64_t *index, brc_buf *out, brc_error *err)
{
    if (!m->v2_keys)
        BRC_TRY(brc_buf_text(out, "c", err));
    else if (m->ndim == 0)
        BRC_TRY(brc_buf_text(out, "0", err));
    for (int i = 0; i < m->ndim; i++) {
        if (i > 0 || !m->v2_keys)
            BRC_TRY(brc_buf_byte(out, (uint8_t)m->separator, err));
        BRC_TRY(brc_buf_printf(out, err, "%" PRIu64, index[i]));
    }
    return brc_buf_terminate(out, err);
}

/* Reads a decimal number without sign or leading zeros. */
static const char *read_coordinate(const char *at, uint64_t *out)
{
    uint64_t v = 0;
    if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!brc_mul_u64(v, 10, &v) || !brc_add_u64(v, (uint64_t)(*at - '0'), &v))
            return NULL;
    *out = v;
    return at;
}

int brc_meta_key_parse(const brc_meta *m, const char *key, uint64_t *index, int *inside)
{
    *inside = 1;
    if (m->ndim == 0)
        return strcmp(key, m->v2_keys ? "0" : "c") == 0;
    if (!m->v2_keys) {
        if (key[0] != 'c' || key[1] != m->separator)
            return 0;
        key += 2;
    }
    for (int i = 0; i < m->ndim; i++) {
        if (i > 0 && *key++ != m->separator)
            return 0;
        key = read_coordinate(key, &index[i]);
        if (key == NULL)
            return 0;
        *inside &= index[i] < m->outer.count[i];
    }
    return *key == '\0';
}

/* ==== meta ignore ================================ */

/*
 * Codecs that a reader need not understand.
 *
 * "must_understand": false lets a reader that does not know a codec leave it out, and says nothing
 * about writers: chunks written without the codec would contradict the list. Such an array is
 * therefore kept like an opaque one, byte for byte, but can be read with the list without these
 * codecs. A codec that is left out maps arrays to arrays if it precedes the array->bytes codec, and
 * bytes to bytes if it follows: the codecs around it fit together without it, and if they do not,
 * the checks of the next codec report that.
 */

/* The first codec that was left out. */
typedef struct left_out {
    const brc_registry *registry;
    brc_buf pointer; /* of the list that is being read: "/codecs"                 */
    brc_buf *first;  /* its text: '"/codecs/1: the codec "x"'                      */
} left_out;

static int known_list(left_out *out, brc_json **known, const brc_json *list, brc_error *err);

/* Copies sharding_indexed with the known ones of its inner codecs. The codecs of its index stay as
 * they are: without one of them the length of the index is unknown. */
static int known_shard(left_out *out, brc_json **known, const brc_named *shard, brc_error *err)
{
    brc_json *inner = NULL, *config = NULL, *item = brc_json_new_object();
    const brc_json *codecs = brc_json_member(shard->config, "codecs");
    size_t before = out->pointer.len;
    int rc;
    BRC_GO(brc_json_clone(&config, shard->config, err));
    BRC_GO(brc_buf_text(&out->pointer, "/configuration/codecs", err));
    BRC_GO(known_list(out, &inner, codecs, err));
    out->pointer.len = before;
    rc = brc_json_set(config, "codecs", inner, err);
    inner = NULL;
    if (rc == BRC_OK && item == NULL)
        rc = brc_nomem(err);
    if (rc == BRC_OK)
        rc = brc_json_set(item, "name", brc_json_new_string(shard->name), err);
    if (rc < 0)
        goto done;
    rc = brc_json_set(item, "configuration", config, err);
    config = NULL;
done:
    brc_json_free(config);
    if (rc < 0)
        brc_json_free(item);
    else
        *known = item;
    return rc;
}

static int note_left_out(left_out *out, const char *name, brc_error *err)
{
    if (out->first->len > 0)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out->first, out->pointer.data, out->pointer.len, err));
    return brc_buf_printf(out->first, err, ": the codec \"%.80s\"", name);
}

/* *known NULL: the codec is left out. */
static int known_item(left_out *out, brc_json **known, const brc_json *item, brc_error *err)
{
    brc_named named;
    *known = NULL;
    BRC_TRY(brc_named_read(&named, item, err));
    if (named.may_ignore && brc_registry_codec(out->registry, named.name) == NULL)
        return note_left_out(out, named.name, err);
    if (strcmp(named.name, "sharding_indexed") == 0 &&
        brc_json_kind(brc_json_member(named.config, "codecs")) == BRC_JSON_ARRAY)
        return known_shard(out, known, &named, err);
    return brc_json_clone(known, item, err);
}

static int known_list(left_out *out, brc_json **known, const brc_json *list, brc_error *err)
{
    size_t i = 0, before = out->pointer.len;
    brc_json *item, *made = brc_json_new_array();
    int rc = made != NULL ? BRC_OK : brc_nomem(err);
    for (const brc_json *v = brc_json_first(list); v != NULL && rc == BRC_OK;
         v = brc_json_next(v)) {
        BRC_GO(brc_buf_printf(&out->pointer, err, "/%zu", i++));
        BRC_GO(known_item(out, &item, v, err));
        if (item != NULL)
            rc = brc_json_push(made, item, err);
        out->pointer.len = before;
    }
done:
    if (rc < 0)
        brc_json_free(made);
    else
        *known = made;
    return rc;
}

/* Copies the list without codecs that this build does not know and that may be ignored, and writes
 * the first of these for a message: '/codecs/1: the codec "x"'. */
static int meta_known_codecs(brc_json **known, brc_buf *first, const brc_registry *reg,
                             const brc_json *codecs, brc_error *err)
{
    left_out out = {reg, BRC_BUF_INIT, first};
    *known = NULL;
    int rc = brc_buf_text(&out.pointer, "/codecs", err);
    if (rc == BRC_OK)
        rc = known_list(&out, known, codecs, err);
    brc_buf_dispose(&out.pointer);
    return rc;
}

/* ==== storage options ================================ */

/*
 * The storage options of an array say where its new chunks go; they are a document of its entry.
 *
 *     {"backend":{"name":...,"configuration":{...}}}
 *
 * The specification is in full form, so that equal options are one document. The file itself is the
 * default: an array whose chunks go there has no storage options.
 */

/* ---- reading -------------------------------- */

static int storage_damaged(const brc_array *a, brc_error *err)
{
    return brc_fail(err, BRC_ECORRUPT, "%s: its storage options are damaged; run 'breccia fsck'",
                    a->path);
}

/* Appends the specification as the document has it. */
static int storage_spec(const brc_array *a, brc_span text, brc_buf *out, brc_error *err)
{
    const char *name;
    const brc_json *config, *spec;
    brc_json *doc;
    if (brc_json_parse(&doc, (const char *)text.data, text.len, 0, NULL) < 0)
        return storage_damaged(a, err);
    spec = brc_json_member(doc, "backend");
    int rc = brc_spec_parse("backend", spec, &name, &config, NULL);
    rc = rc < 0 ? storage_damaged(a, err) : brc_json_write(out, spec, 0, err);
    brc_json_free(doc);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_array_read_storage(brc_array *a, brc_error *err)
{
    brc_span text;
    brc_buf spec = BRC_BUF_INIT;
    char *found = NULL;
    int rc = BRC_OK;
    if (!brc_oid_is_zero(&a->entry.storage)) {
        BRC_TRY(brc_store_get(brc_array_store(a), BRC_KIND_DOCUMENT, &a->entry.storage, &text,
                              err));
        rc = storage_spec(a, text, &spec, err);
        if (rc == BRC_OK)
            rc = brc_buf_take_text(&spec, &found, err);
        brc_buf_dispose(&spec);
    }
    if (rc < 0)
        return rc;
    free(a->backend);
    free(a->full);
    a->full = NULL;
    a->backend = found;
    a->storage = a->entry.storage;
    a->info.backend_json = found != NULL ? found : BRC_INLINE_SPEC;
    return BRC_OK;
}

/* ---- writing -------------------------------- */

static int read_full(brc_array *a, brc_error *err)
{
    brc_json *spec;
    brc_buf full = BRC_BUF_INIT;
    BRC_TRY(brc_json_parse(&spec, a->backend, strlen(a->backend), 0, err));
    int rc = brc_backend_full(a->session->repo->registry, spec, &full, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&full, &a->full, err);
    if (rc < 0)
        brc_context(err, "%s cannot be written here", a->path);
    brc_json_free(spec);
    brc_buf_dispose(&full);
    return rc;
}

typedef int (*number_fn)(brc_store *store, const char *spec, int64_t *id, brc_error *err);

static int backend_number(brc_array *a, number_fn number, int64_t *backend, brc_error *err)
{
    *backend = 0;
    if (a->backend == NULL)
        return BRC_OK;
    if (a->full == NULL)
        BRC_TRY(read_full(a, err));
    return number(brc_array_store(a), a->full, backend, err);
}

int brc_array_new_chunks(brc_array *a, int64_t *backend, brc_error *err)
{
    return backend_number(a, brc_backend_intern, backend, err);
}

int brc_array_find_backend(brc_array *a, int64_t *backend, brc_error *err)
{
    return backend_number(a, brc_backend_find, backend, err);
}

/* ==== meta codecs ================================ */

/*
 * The meaning of an array's codecs: the stored chunks, the shards around them, and the chains that
 * encode them.
 *
 * A list of nothing but sharding_indexed stores the inner chunks, each by itself; a shard inside a
 * shard is treated in the same way. With codecs before or after sharding_indexed, the inner chunks
 * have no identity of their own, and the whole shard is one chunk.
 */

static void form_free(brc_form *form)
{
    brc_chain_free(form->chain);
    free(form->spec);
    free(form);
}

static void forms_free(brc_form **forms)
{
    while (*forms != NULL) {
        brc_form *form = *forms;
        *forms = form->next;
        form_free(form);
    }
}

void brc_meta_dispose(brc_meta *meta)
{
    forms_free(&meta->forms);
    forms_free(&meta->readers);
    for (int i = 0; i < meta->nlevels; i++)
        brc_chain_free(meta->levels[i].index);
    brc_grid_dispose(&meta->outer);
    brc_grid_dispose(&meta->grid);
    brc_dtype_free(meta->index_type);
    brc_dtype_free(meta->type);
    brc_json_free(meta->codecs);
    brc_buf_dispose(&meta->fill);
    free(meta->dtype);
    free(meta->codecs_json);
    memset(meta, 0, sizeof(*meta));
}

/* ---- forms -------------------------------- */

static int spec_shape(brc_buf *spec, const brc_meta *m, const brc_form *form, brc_error *err)
{
    BRC_TRY(brc_buf_text(spec, ",\"shape\":[", err));
    for (int i = 0; i < m->ndim; i++)
        BRC_TRY(brc_buf_printf(spec, err, "%s%" PRIu64, i > 0 ? "," : "", form->shape[i]));
    return brc_buf_text(spec, "]}", err);
}

static int spec_fill(brc_buf *spec, const brc_meta *m, const brc_form *form, brc_error *err)
{
    if (!brc_chain_needs_fill(form->chain))
        return BRC_OK;
    BRC_TRY(brc_buf_text(spec, ",\"fill_value\":", err));
    return m->type->ops->print(m->type, m->fill.data, m->fill.len, BRC_PRINT_FILL, spec, err);
}

/* Writes {"codecs":[...],"data_type":...,["fill_value":...,]"shape":[...]}. */
static int form_spec(const brc_meta *m, brc_form *form, brc_error *err)
{
    brc_buf spec = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_text(&spec, "{\"codecs\":", err));
    BRC_GO(brc_chain_write(form->chain, &spec, err));
    BRC_GO(brc_buf_printf(&spec, err, ",\"data_type\":%s", m->type->json));
    BRC_GO(spec_fill(&spec, m, form, err));
    BRC_GO(spec_shape(&spec, m, form, err));
    BRC_GO(brc_buf_take_text(&spec, &form->spec, err));
done:
    brc_buf_dispose(&spec);
    return rc;
}

static int check_chunk_bytes(const brc_meta *m, const uint64_t *shape, uint64_t *bytes,
                             brc_error *err)
{
    size_t unit = m->type->item_size > 0 ? m->type->item_size : 1;
    if (!brc_shape_bytes(m->ndim, shape, unit, bytes) || *bytes > BRC_MAX_CHUNK_BYTES)
        return brc_fail(err, BRC_ELIMIT,
                        "/chunk_grid: a chunk would have more than 2^31-1 bytes; use smaller ones");
    return BRC_OK;
}

static int form_open(const brc_meta *m, brc_form *form, brc_error *err)
{
    uint64_t bytes;
    BRC_TRY(check_chunk_bytes(m, form->shape, &bytes, err));
    form->elements = brc_shape_count(m->ndim, form->shape);
    form->bytes = m->type->item_size > 0 ? (size_t)bytes : 0;
    BRC_TRY(brc_chain_open(&form->chain, m->registry, m->codecs, m->ndim, form->shape, m->type,
                           (brc_span){m->fill.data, m->fill.len}, err));
    return form_spec(m, form, err);
}

static int form_add(const brc_meta *m, brc_form **forms, const uint64_t *shape, int decodes,
                    brc_form **out, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new(&p, sizeof(brc_form), err));
    brc_form *form = p;
    memcpy(form->shape, shape, (size_t)m->ndim * sizeof(*shape));
    int rc = decodes ? form_open(m, form, err) : BRC_OK;
    if (rc < 0) {
        form_free(form);
        return rc;
    }
    form->next = *forms;
    *forms = form;
    *out = form;
    return BRC_OK;
}

int brc_meta_form(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err)
{
    size_t len = (size_t)meta->ndim * sizeof(*shape);
    for (brc_form *f = meta->forms; f != NULL; f = f->next) {
        if (meta->opaque || memcmp(f->shape, shape, len) == 0) {
            *out = f;
            return BRC_OK;
        }
    }
    return form_add(meta, &meta->forms, shape, !meta->opaque, out, err);
}

int brc_meta_reader(brc_meta *meta, const uint64_t *shape, brc_form **out, brc_error *err)
{
    for (brc_form *f = meta->readers; f != NULL; f = f->next) {
        if (memcmp(f->shape, shape, (size_t)meta->ndim * sizeof(*shape)) == 0) {
            *out = f;
            return BRC_OK;
        }
    }
    return form_add(meta, &meta->readers, shape, 1, out, err);
}

int brc_meta_must_encode(const brc_meta *meta, brc_error *err)
{
    if (!meta->opaque)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &meta->why);
    return BRC_EUNSUPPORTED;
}

int brc_meta_must_decode(const brc_meta *meta, brc_error *err)
{
    return meta->readable ? BRC_OK : brc_meta_must_encode(meta, err);
}

int brc_meta_make_opaque(brc_meta *meta, const brc_error *why, brc_error *err)
{
    brc_form *form;
    forms_free(&meta->forms);
    for (int i = 0; i < meta->nlevels; i++)
        brc_chain_free(meta->levels[i].index);
    meta->nlevels = 0;
    meta->opaque = 1;
    meta->why = *why;
    brc_grid_dispose(&meta->grid);
    BRC_TRY(brc_grid_copy(&meta->grid, &meta->outer, err));
    BRC_TRY(form_add(meta, &meta->forms, meta->outer.chunk, 0, &form, err));
    /* never equal to canonical bytes, even in a build that knows the codecs */
    brc_buf spec = BRC_BUF_INIT;
    int rc = brc_buf_text(&spec, BRC_OPAQUE_SPEC, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&spec, &form->spec, err);
    brc_buf_dispose(&spec);
    return rc;
}

/* Opens the whole list as one chain; a shard is one chunk then. */
static int open_readers(brc_meta *m, brc_json *known, brc_error *err)
{
    uint64_t bytes;
    brc_form *form;
    brc_json_free(m->codecs);
    m->codecs = known;
    if (!m->outer.regular) /* chunks of the longest edges may not even exist */
        return BRC_OK;
    BRC_TRY(check_chunk_bytes(m, m->outer.chunk, &bytes, err));
    return brc_meta_reader(m, m->outer.chunk, &form, err);
}

int brc_meta_make_readable(brc_meta *meta, brc_error *err)
{
    brc_json *codecs;
    brc_error why = BRC_ERROR_INIT;
    const size_t len = strlen(meta->codecs_json);
    BRC_TRY(brc_json_parse(&codecs, meta->codecs_json, len, 0, err));
    const int rc = open_readers(meta, codecs, &why);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc == BRC_OK)
        meta->readable = BRC_READABLE_NOW;
    return BRC_OK;
}

/* Makes an opaque array readable if leaving such codecs out is enough. */
static int meta_ignore_codecs(brc_meta *meta, const brc_json *codecs, brc_error *err)
{
    brc_json *known = NULL;
    brc_buf first = BRC_BUF_INIT;
    brc_error why = BRC_ERROR_INIT;
    int rc;
    if (meta->type == NULL || meta->fill.len == 0)
        return BRC_OK;
    BRC_GO(meta_known_codecs(&known, &first, meta->registry, codecs, err));
    if (first.len == 0)
        goto done; /* this build lacks something else */
    rc = open_readers(meta, known, &why);
    known = NULL;
    if (rc < 0) {
        rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    meta->readable = BRC_READABLE_IN_PART;
    BRC_GO(brc_buf_terminate(&first, err));
    brc_fail(&meta->why, BRC_EUNSUPPORTED,
             "%s is not known to this build: \"must_understand\": false lets it be left out "
             "when chunks are read, but none can be written without it",
             (const char *)first.data);
done:
    brc_json_free(known);
    brc_buf_dispose(&first);
    return rc;
}

/* ---- shards -------------------------------- */

/* Returns the configuration if the list is nothing but one sharding_indexed; otherwise NULL. */
static const brc_json *only_sharding(const brc_json *codecs)
{
    brc_named named;
    if (brc_json_count(codecs) != 1 || brc_named_read(&named, brc_json_item(codecs, 0), NULL) < 0 ||
        strcmp(named.name, "sharding_indexed") != 0)
        return NULL;
    return named.config;
}

static int level_open_index(brc_meta *m, brc_shard_level *level, const brc_json *config,
                            brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM];
    brc_span none = {NULL, 0};
    memcpy(shape, level->grid, sizeof(shape));
    if (m->ndim >= BRC_MAX_NDIM)
        return brc_fail(err, BRC_ELIMIT, "shards can have at most %d dimensions", BRC_MAX_NDIM - 1);
    shape[m->ndim] = 2;
    level->at_start = brc_json_is(brc_json_member(config, "index_location"), "start");
    if (m->index_type == NULL) {
        brc_json *name = brc_json_new_string("uint64");
        int rc = name != NULL ? brc_dtype_open(&m->index_type, m->registry, name, NULL, err)
                              : brc_nomem(err);
        brc_json_free(name);
        if (rc < 0)
            return rc;
    }
    return brc_chain_open(&level->index, m->registry, brc_json_member(config, "index_codecs"),
                          m->ndim + 1, shape, m->index_type, none, err);
}

/* Reads one level. The whole list was opened as a chain before, so the configuration is known to be
 * valid. */
static int level_read(brc_meta *m, uint64_t *shape, const brc_json *config, brc_error *err)
{
    brc_shard_level *level = &m->levels[m->nlevels];
    const brc_json *inner = brc_json_member(config, "chunk_shape");
    int i = 0;
    memset(level, 0, sizeof(*level));
    memcpy(level->shape, shape, (size_t)m->ndim * sizeof(*shape));
    level->entries = 1;
    for (const brc_json *v = brc_json_first(inner); v != NULL && i < m->ndim;
         v = brc_json_next(v), i++) {
        if (!brc_json_uint(v, INT64_MAX, &shape[i]) || shape[i] == 0 ||
            level->shape[i] % shape[i] != 0)
            return brc_fail(err, BRC_EINVAL, "/codecs/0/configuration/chunk_shape: does not divide "
                                             "the shard's shape");
        level->grid[i] = level->shape[i] / shape[i];
        if (!brc_mul_u64(level->entries, level->grid[i], &level->entries))
            return brc_fail(err, BRC_ELIMIT, "/codecs/0: a shard has too many chunks");
    }
    BRC_TRY(level_open_index(m, level, config, err));
    m->nlevels++;
    return BRC_OK;
}

/* Reads the codecs: the stored chunks, the shards around them, and the first form. BRC_EUNSUPPORTED
 * if this build lacks a codec. Part of brc_meta_open(). */
static int meta_read_codecs(brc_meta *m, const brc_json *codecs, brc_error *err)
{
    brc_chain *whole;
    brc_form *form;
    uint64_t shape[BRC_MAX_NDIM];
    const brc_json *config;
    uint64_t bytes;
    memcpy(shape, m->outer.chunk, sizeof(shape));
    if (only_sharding(codecs) == NULL)
        BRC_TRY(check_chunk_bytes(m, shape, &bytes, err));
    BRC_TRY(brc_chain_open(&whole, m->registry, codecs, m->ndim, shape, m->type,
                           (brc_span){m->fill.data, m->fill.len}, err));
    brc_chain_free(whole);
    while (m->outer.regular && m->nlevels < BRC_MAX_SHARD_LEVELS &&
           (config = only_sharding(codecs)) != NULL) {
        BRC_TRY(level_read(m, shape, config, err));
        codecs = brc_json_member(config, "codecs");
    }
    BRC_TRY(brc_json_clone(&m->codecs, codecs, err));
    if (m->nlevels > 0) {
        brc_grid_regular(&m->grid, m->ndim, m->shape, shape);
    } else {
        BRC_TRY(brc_grid_copy(&m->grid, &m->outer, err));
    }
    if (!m->outer.regular) /* chunks of the longest edges may not even exist */
        return BRC_OK;
    return brc_meta_form(m, m->grid.chunk, &form, err);
}

/* ==== meta ================================ */

/* Reads zarr.json: strictly where the specification is strict, leniently where existing files need
 * it. */

static int meta_bad(brc_error *err, const char *pointer, const char *why)
{
    return brc_fail(err, BRC_EINVAL, "%s: %s", pointer, why);
}

int brc_meta_kind(const brc_json *doc, int *kind, brc_error *err)
{
    if (brc_json_kind(doc) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "it is not a JSON object");
    const brc_json *type = brc_json_member(doc, "node_type");
    if (brc_json_is(type, "group"))
        *kind = BRC_GROUP;
    else if (brc_json_is(type, "array"))
        *kind = BRC_ARRAY;
    else
        return meta_bad(err, "/node_type", "must be \"array\" or \"group\"");
    return BRC_OK;
}

/* ---- members that both kinds have --------------------------------------------------- */

static int meta_is_listed(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return 0;
}

/* Fails with "/a~1b: text", for a name that a stranger chose. */
static int meta_bad_member(brc_error *err, const char *before, const char *name, const char *why)
{
    brc_buf pointer = BRC_BUF_INIT;
    int rc = brc_json_pointer_step(&pointer, name, err);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(&pointer, err);
    if (rc == BRC_OK)
        rc = brc_fail(err, BRC_EINVAL, "%s%.120s%s", before, (const char *)pointer.data, why);
    brc_buf_dispose(&pointer);
    return rc;
}

/* Refuses the document unless each unknown member is an object that says that it may be ignored. */
static int meta_unknown_members(const brc_json *doc, const char *const *names, size_t n,
                                brc_error *err)
{
    for (const brc_json *v = brc_json_first(doc); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_name(v);
        int must = 1;
        if (meta_is_listed(name, names, n))
            continue;
        const brc_json *says = brc_json_member(v, "must_understand");
        if (brc_json_kind(v) != BRC_JSON_OBJECT || !brc_json_bool(says, &must) || must)
            return meta_bad_member(err, "", name,
                                   ": an unknown member must be an object with "
                                   "\"must_understand\": false");
    }
    return BRC_OK;
}

static int meta_attributes(const brc_json *doc, brc_error *err)
{
    int kind = brc_json_kind(brc_json_member(doc, "attributes"));
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL || kind == BRC_JSON_OBJECT)
        return BRC_OK;
    return meta_bad(err, "/attributes", "must be an object");
}

static int meta_format(const brc_json *doc, int want, brc_error *err)
{
    int kind;
    int64_t format;
    if (brc_json_kind(doc) != BRC_JSON_OBJECT)
        return brc_fail(err, BRC_EINVAL, "it is not a JSON object");
    if (!brc_json_int(brc_json_member(doc, "zarr_format"), 3, 3, &format))
        return meta_bad(err, "/zarr_format", "must be the integer 3");
    BRC_TRY(brc_meta_kind(doc, &kind, err));
    if (kind != want)
        return meta_bad(err, "/node_type", want == BRC_ARRAY ? "must be \"array\" here"
                                                             : "must be \"group\" here");
    return BRC_OK;
}

static int meta_consolidated(const brc_json *doc, brc_error *err)
{
    const brc_json *c = brc_json_member(doc, "consolidated_metadata");
    int must = 0;
    if (brc_json_kind(c) == BRC_JSON_ABSENT || brc_json_kind(c) == BRC_JSON_NULL)
        return BRC_OK;
    if (brc_json_kind(c) != BRC_JSON_OBJECT)
        return meta_bad(err, "/consolidated_metadata", "must be an object");
    if (!brc_json_is(brc_json_member(c, "kind"), "inline"))
        return meta_bad(err, "/consolidated_metadata/kind", "must be \"inline\"");
    if (!brc_json_bool(brc_json_member(c, "must_understand"), &must) || must)
        return meta_bad(err, "/consolidated_metadata/must_understand", "must be false");
    const brc_json *nodes = brc_json_member(c, "metadata");
    if (brc_json_kind(nodes) != BRC_JSON_OBJECT)
        return meta_bad(err, "/consolidated_metadata/metadata", "must be an object");
    for (const brc_json *v = brc_json_first(nodes); v != NULL; v = brc_json_next(v))
        if (brc_json_kind(brc_json_member(v, "node_type")) != BRC_JSON_STRING)
            return meta_bad_member(err, "/consolidated_metadata/metadata", brc_json_name(v),
                                   "/node_type: must be there and be a string");
    return BRC_OK;
}

int brc_meta_check_group(const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"zarr_format", "node_type", "attributes",
                                          "consolidated_metadata"};
    BRC_TRY(meta_format(doc, BRC_GROUP, err));
    BRC_TRY(meta_unknown_members(doc, members, sizeof(members) / sizeof(members[0]), err));
    BRC_TRY(meta_attributes(doc, err));
    return meta_consolidated(doc, err);
}

/* ---- arrays ------------------------------------------------------------------------ */

static int meta_shape(const brc_json *list, const char *pointer, uint64_t min, int *ndim,
                      uint64_t *shape, brc_error *err)
{
    int n = 0;
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        return meta_bad(err, pointer, "must be a list of integers");
    if (brc_json_count(list) > BRC_MAX_NDIM)
        return brc_fail(err, BRC_ELIMIT, "%s: more than %d dimensions", pointer, BRC_MAX_NDIM);
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), n++) {
        if (!brc_json_uint(v, INT64_MAX, &shape[n]) || shape[n] < min)
            return brc_fail(err, BRC_EINVAL, "%s/%d: must be an integer from %" PRIu64 " to 2^63-1",
                            pointer, n, min);
    }
    *ndim = n;
    return BRC_OK;
}

/* Reads the name and configuration of an extension that must be understood. */
static int meta_extension(const brc_json *doc, const char *member, const char *pointer,
                          brc_named *out, brc_error *err)
{
    int rc = brc_named_read(out, brc_json_member(doc, member), err);
    if (rc < 0) {
        brc_context(err, "%s", pointer);
        return rc;
    }
    if (out->may_ignore)
        return meta_bad(err, pointer, "\"must_understand\": false is not allowed here");
    return BRC_OK;
}

static int meta_keys(brc_meta *m, const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"separator"}, *const separators[] = {".", "/"};
    brc_named keys;
    BRC_TRY(meta_extension(doc, "chunk_key_encoding", "/chunk_key_encoding", &keys, err));
    m->v2_keys = strcmp(keys.name, "v2") == 0;
    if (!m->v2_keys && strcmp(keys.name, "default") != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "/chunk_key_encoding: \"%.60s\" is not known; \"default\" and \"v2\" are",
                        keys.name);
    if (brc_json_allow(keys.config, members, 1, err) < 0) {
        brc_context(err, "/chunk_key_encoding/configuration");
        return BRC_EINVAL;
    }
    const brc_json *separator = brc_json_member(keys.config, "separator");
    m->separator = m->v2_keys ? '.' : '/';
    if (separator == NULL)
        return BRC_OK;
    int which = brc_json_choice(separator, separators, 2);
    if (which < 0)
        return meta_bad(err, "/chunk_key_encoding/configuration/separator",
                        "must be \".\" or \"/\"");
    m->separator = separators[which][0];
    return BRC_OK;
}

static int meta_dimension_names(const brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *names = brc_json_member(doc, "dimension_names");
    int kind = brc_json_kind(names);
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    if (kind != BRC_JSON_ARRAY)
        return meta_bad(err, "/dimension_names", "must be a list");
    if (brc_json_count(names) != (size_t)m->ndim)
        return meta_bad(err, "/dimension_names", "must have one item per dimension");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(names); v != NULL; v = brc_json_next(v), i++)
        if (brc_json_kind(v) != BRC_JSON_STRING && brc_json_kind(v) != BRC_JSON_NULL)
            return brc_fail(err, BRC_EINVAL, "/dimension_names/%zu: must be a string or null", i);
    return BRC_OK;
}

static int meta_transformers(const brc_json *doc, brc_error *err)
{
    const brc_json *list = brc_json_member(doc, "storage_transformers");
    int kind = brc_json_kind(list);
    if (kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL)
        return BRC_OK;
    if (kind != BRC_JSON_ARRAY)
        return meta_bad(err, "/storage_transformers", "must be a list");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v), i++) {
        brc_named t;
        int rc = brc_named_read(&t, v, err);
        if (rc < 0) {
            brc_context(err, "/storage_transformers/%zu", i);
            return rc;
        }
        if (!t.may_ignore)
            return brc_fail(err, BRC_EUNSUPPORTED,
                            "/storage_transformers/%zu: \"%.60s\" is not known to this build, so "
                            "nothing says where the chunks are",
                            i, t.name);
    }
    return BRC_OK;
}

int brc_meta_lacks_fill(const brc_json *doc)
{
    const brc_json *note = brc_json_member(doc, BRC_ZARR2_NOTE);
    return brc_json_kind(brc_json_member(note, "fill_value")) == BRC_JSON_NULL;
}

static int meta_fill(brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *fill = brc_json_member(doc, "fill_value");
    int rc = m->type->ops->parse(m->type, fill, &m->fill, err);
    m->keeps_fill = brc_meta_lacks_fill(doc);
    if (rc < 0)
        brc_context(err, "/fill_value");
    return rc;
}

static int meta_texts(brc_meta *m, const brc_json *doc, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_json_write(&text, brc_json_member(doc, "codecs"), 0, err));
    BRC_GO(brc_buf_take_text(&text, &m->codecs_json, err));
    const brc_json *type = brc_json_member(doc, "data_type");
    const char *name;
    if (brc_json_text(type, &name))
        BRC_GO(brc_buf_text(&text, name, err));
    else
        BRC_GO(brc_json_write(&text, type, 0, err));
    BRC_GO(brc_buf_take_text(&text, &m->dtype, err));
done:
    brc_buf_dispose(&text);
    return rc;
}

/* Reads type, fill value and codecs, which this build may lack. */
static int meta_meaning(brc_meta *m, const brc_json *doc, brc_error *err)
{
    const brc_json *type = brc_json_member(doc, "data_type");
    int rc = brc_dtype_open(&m->type, m->registry, type, NULL, err);
    if (rc < 0) {
        brc_context(err, "/data_type");
        return rc;
    }
    BRC_TRY(meta_fill(m, doc, err));
    return meta_read_codecs(m, brc_json_member(doc, "codecs"), err);
}

/* Checks that the codecs have the form of a list, also for an opaque array. */
static int meta_check_list(const brc_json *codecs, brc_error *err)
{
    if (brc_json_kind(codecs) != BRC_JSON_ARRAY || brc_json_count(codecs) == 0)
        return meta_bad(err, "/codecs", "must be a list with an array->bytes codec");
    size_t i = 0;
    for (const brc_json *v = brc_json_first(codecs); v != NULL; v = brc_json_next(v), i++) {
        brc_named named;
        int rc = brc_named_read(&named, v, err);
        if (rc < 0) {
            brc_context(err, "/codecs/%zu", i);
            return rc;
        }
    }
    return BRC_OK;
}

static int meta_required(const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {"shape", "data_type", "chunk_grid", "chunk_key_encoding",
                                          "fill_value", "codecs"};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        if (brc_json_member(doc, members[i]) == NULL)
            return meta_bad_member(err, "", members[i], ": is missing");
    return BRC_OK;
}

static int meta_parts(brc_meta *m, const brc_json *doc, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(meta_required(doc, err));
    BRC_TRY(meta_shape(brc_json_member(doc, "shape"), "/shape", 0, &m->ndim, m->shape, err));
    BRC_TRY(brc_grid_read(&m->outer, doc, m->ndim, m->shape, err));
    BRC_TRY(meta_keys(m, doc, err));
    BRC_TRY(meta_dimension_names(m, doc, err));
    BRC_TRY(meta_attributes(doc, err));
    BRC_TRY(meta_transformers(doc, err));
    BRC_TRY(meta_check_list(brc_json_member(doc, "codecs"), err));
    BRC_TRY(meta_texts(m, doc, err));
    int rc = meta_meaning(m, doc, &why);
    if (rc == BRC_EUNSUPPORTED) {
        BRC_TRY(brc_meta_make_opaque(m, &why, err));
        return meta_ignore_codecs(m, brc_json_member(doc, "codecs"), err);
    }
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &why);
    return rc;
}

int brc_meta_open(brc_meta *out, const brc_registry *reg, const brc_json *doc, brc_error *err)
{
    static const char *const members[] = {
        "zarr_format",         "node_type",  "shape",  "data_type",  "chunk_grid",
        "chunk_key_encoding",  "fill_value", "codecs", "attributes", "dimension_names",
        "storage_transformers"
    };
    memset(out, 0, sizeof(*out));
    BRC_TRY(meta_format(doc, BRC_ARRAY, err));
    BRC_TRY(meta_unknown_members(doc, members, sizeof(members) / sizeof(members[0]), err));
    out->registry = reg;
    int rc = meta_parts(out, doc, err);
    if (rc < 0)
        brc_meta_dispose(out);
    return rc;
}
