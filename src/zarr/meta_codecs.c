/*
 * What an array's codecs mean: what is stored, the shards around it, and the
 * chains that encode it.
 *
 * A list of nothing but sharding_indexed stores the inner chunks, each by itself;
 * so does a shard inside a shard. With codecs before or after it, a shard has no
 * inner identity of its own, and is one chunk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../nd/named.h"
#include "../nd/shape.h"
#include "opaque.h"

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

/* {"codecs":[...],"data_type":...,["fill_value":...,]"shape":[...]} */
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
    /* Never taken for canonical bytes, not even by a build that knows the codecs. */
    brc_buf spec = BRC_BUF_INIT;
    int rc = brc_buf_text(&spec, BRC_OPAQUE_SPEC, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&spec, &form->spec, err);
    brc_buf_dispose(&spec);
    return rc;
}

/* Then the whole list is one chain, and a shard is one chunk. */
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

int brc_meta_ignore_codecs(brc_meta *meta, const brc_json *codecs, brc_error *err)
{
    brc_json *known = NULL;
    brc_buf first = BRC_BUF_INIT;
    brc_error why = BRC_ERROR_INIT;
    int rc;
    if (meta->type == NULL || meta->fill.len == 0)
        return BRC_OK;
    BRC_GO(brc_meta_known_codecs(&known, &first, meta->registry, codecs, err));
    if (first.len == 0)
        goto done; /* it is something else that this build lacks */
    rc = open_readers(meta, known, &why);
    known = NULL;
    if (rc < 0) {
        rc = rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
        goto done;
    }
    meta->readable = 1;
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

/* The configuration where the list is nothing but one sharding_indexed; else NULL. */
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
        int rc = name != NULL ? brc_dtype_open(&m->index_type, m->registry, name, err)
                              : brc_nomem(err);
        brc_json_free(name);
        if (rc < 0)
            return rc;
    }
    return brc_chain_open(&level->index, m->registry, brc_json_member(config, "index_codecs"),
                          m->ndim + 1, shape, m->index_type, none, err);
}

/* The whole list was opened as a chain before, so that everything in the
 * configuration is known to be right. */
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

int brc_meta_read_codecs(brc_meta *m, const brc_json *codecs, brc_error *err)
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
