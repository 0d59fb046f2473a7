#include "chunk_cursor.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../nd/dtype.h"
#include "../../nd/shape.h"
#include "../../store/bases.h"
#include "../../tree/map.h"

/* ==== opaque ================================ */

/* Random, chosen once: no chunk begins with these bytes by chance. */
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

/* ---- the stored form of an array's chunks -------------------------------- */

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
             "its chunks are kept as they came, when its codecs or its data type were not known: "
             "export the array and import it again to change it");
    BRC_TRY(brc_meta_make_opaque(meta, &why, err));
    return brc_meta_make_readable(meta, err);
}

/* ---- the bytes of a Zarr store -------------------------------- */

/* Compares two configurations; an absent one equals an empty one. */
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

/* Compares a type's name, or the JSON text of its object. */
static int same_type(const char *dtype, const brc_json *json)
{
    brc_buf text = BRC_BUF_INIT;
    if (brc_json_kind(json) == BRC_JSON_STRING)
        return brc_json_is(json, dtype);
    int same = brc_json_write(&text, json, 0, NULL) == BRC_OK && text.len == strlen(dtype) &&
               memcmp(text.data, dtype, text.len) == 0;
    brc_buf_dispose(&text);
    return same;
}

/* Compares with the chunk's own shape in the grid of what Zarr's keys name; an inner chunk of a
 * shard has none there. */
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
    BRC_GO(brc_json_parse(&spec, spec_text, strlen(spec_text), 0, err));
    BRC_GO(brc_json_parse(&codecs, meta->codecs_json, strlen(meta->codecs_json), 0, err));
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

/* ==== frozen rows ================================ */

#define FROZEN_PAGE 4096

static int frozen_keep(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                       brc_error *err)
{
    brc_frozen_rows *out = ctx;
    uint8_t *copy;
    BRC_TRY(brc_grow_array(&out->rows, &out->cap, out->n + 1, sizeof(brc_chunk_row), err));
    BRC_TRY(brc_arena_copy(&out->arena, key, key_len, &copy, err));
    brc_chunk_row *row = &((brc_chunk_row *)out->rows)[out->n++];
    memset(row, 0, sizeof(*row));
    row->key = (brc_span){copy, key_len};
    if (id != NULL)
        row->id = *id;
    return BRC_OK;
}

int brc_frozen_rows_read(brc_frozen_rows *out, brc_store *store, const brc_draft_stack *stack,
                         size_t most, int *all, brc_error *err)
{
    brc_span after = {NULL, 0};
    size_t before;
    int rc = BRC_OK;
    memset(out, 0, sizeof(*out));
    do {
        before = out->n;
        rc = brc_draft_chunk_page(store, stack, after, FROZEN_PAGE, frozen_keep, out, err);
        if (rc == BRC_OK && out->n > 0)
            after = ((const brc_chunk_row *)out->rows)[out->n - 1].key;
    } while (rc == BRC_OK && out->n - before == FROZEN_PAGE && out->n <= most);
    *all = rc == BRC_OK && out->n <= most;
    if (!*all)
        brc_frozen_rows_dispose(out);
    return rc;
}

void brc_frozen_rows_dispose(brc_frozen_rows *rows)
{
    brc_arena_dispose(&rows->arena);
    free(rows->rows);
    memset(rows, 0, sizeof(*rows));
}

/* Compares keys in the order of the map. */
static int chunk_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int frozen_order(const void *key, const void *row)
{
    return chunk_key_order(*(const brc_span *)key, ((const brc_chunk_row *)row)->key);
}

const brc_chunk_row *brc_frozen_rows_find(const brc_frozen_rows *rows, const void *key, size_t len)
{
    const brc_span wanted = {key, len};
    return rows->n > 0
               ? bsearch(&wanted, rows->rows, rows->n, sizeof(brc_chunk_row), frozen_order)
               : NULL;
}

/* ==== chunk item ================================ */

static int check_object(const brc_meta *m, const brc_object *o, const brc_chain *chain,
                        uint64_t want, brc_error *err)
{
    const int is_delta = brc_object_is_delta(o);
    if (o->encoding != 0 && chain == NULL && !is_delta)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored when its codecs were not known: import it again");
    if (brc_meta_is_variable(m))
        return o->size <= BRC_MAX_CHUNK_BYTES
                   ? BRC_OK
                   : brc_fail(err, BRC_ELIMIT, "its object has more than 2^31-1 bytes");
    if (o->size == want &&
        (is_delta ||
         (chain != NULL ? brc_chain_describe(chain)->decoded_len == want : o->stored == want)))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "its object has %llu bytes, not %llu; run 'breccia fsck'",
                    (unsigned long long)o->size, (unsigned long long)want);
}

/* Chooses the codecs for chunks that are kept as they came: those of the list that are known. */
static int item_chain_opaque(brc_read_item *item, brc_store *store, brc_meta *m,
                             const uint64_t *index, const uint64_t *chunk, brc_error *err)
{
    brc_form *form;
    BRC_TRY(brc_opaque_skip(store, m, index, &item->object, &item->skip, err));
    BRC_TRY(brc_meta_reader(m, chunk, &form, err));
    item->chain = form->chain;
    item->varies = brc_meta_is_variable(m);
    item->len = form->bytes;
    return BRC_OK;
}

int brc_chunk_item_of(brc_read_item *item, brc_store *store, brc_meta *m, const uint64_t *index,
                      brc_error *err)
{
    const brc_object *o = &item->object;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    if (o->kind != BRC_KIND_CHUNK)
        return brc_fail(err, BRC_ECORRUPT, "its object is not a chunk; run 'breccia fsck'");
    brc_grid_chunk(&m->grid, index, corner, chunk);
    if (m->opaque)
        return item_chain_opaque(item, store, m, index, chunk, err);
    if (!brc_object_is_delta(o))
        BRC_TRY(brc_encoding_chain(store, o->encoding, &item->chain, err));
    return check_object(m, o, item->chain, brc_shape_count(m->ndim, chunk) * m->type->item_size,
                        err);
}

int brc_chunk_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err)
{
    return brc_chunk_item_of(item, brc_array_store(a), &a->meta, index, err);
}

/* ==== chunk cursor ================================ */

static int cursor_key_order(brc_span a, brc_span b)
{
    size_t min = a.len < b.len ? a.len : b.len;
    int order = min > 0 ? memcmp(a.data, b.data, min) : 0;
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* ---- rows -------------------------------- */

static int cursor_keep_row(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                           brc_error *err)
{
    brc_chunk_cursor *c = ctx;
    brc_chunk_row *row = &c->page[c->n];
    uint8_t *copy;
    BRC_TRY(brc_arena_copy(&c->arena, key, key_len, &copy, err));
    memset(row, 0, sizeof(*row));
    row->key = (brc_span){copy, key_len};
    if (id != NULL)
        row->id = *id;
    c->n++;
    return BRC_OK;
}

/* Reads the next page of rows, after the last of the present one. */
static int cursor_read_rows(brc_chunk_cursor *c, brc_error *err)
{
    brc_arena old = c->arena;
    /* a superset: all keys after `from` without its last byte */
    brc_span after = c->n > 0 ? c->rows[c->n - 1].key
                     : c->from_len > 0 ? (brc_span){c->from, c->from_len - 1} : (brc_span){NULL, 0};
    c->arena = (brc_arena)BRC_ARENA_INIT;
    c->n = c->at = 0;
    int rc = brc_draft_chunk_page(brc_array_store(c->a), &c->a->stack, after, BRC_CHUNK_ROWS,
                                  cursor_keep_row, c, err);
    brc_arena_dispose(&old);
    c->rows_end = c->n < BRC_CHUNK_ROWS;
    return rc;
}

static int cursor_look_at_rows(brc_chunk_cursor *c, const brc_chunk_row **row, brc_error *err)
{
    const brc_span from = {c->from, c->from_len};
    for (;; c->at++) {
        if (c->at == c->n && !c->rows_end)
            BRC_TRY(cursor_read_rows(c, err));
        *row = c->at < c->n ? &c->rows[c->at] : NULL;
        if (*row == NULL || c->from_len == 0 || cursor_key_order((*row)->key, from) >= 0)
            return BRC_OK;
    }
}

/* ---- map and rows together -------------------------------- */

int brc_chunk_cursor_start(brc_chunk_cursor *c, const brc_array *a, brc_error *err)
{
    memset(c, 0, sizeof(*c));
    c->a = a;
    c->rows = a->frozen != NULL ? a->frozen->rows : c->page;
    c->n = a->frozen != NULL ? a->frozen->n : 0;
    c->rows_end = a->frozen != NULL || !a->row_has_chunks;
    return brc_map_cursor_start(&c->map, brc_array_store(a), &a->entry.map, err);
}

int brc_chunk_cursor_start_at(brc_chunk_cursor *c, const brc_array *a, const uint64_t *from,
                              brc_error *err)
{
    BRC_TRY(brc_chunk_cursor_start(c, a, err));
    c->from_len = brc_chunk_key_encode(c->from, a->meta.ndim, from);
    return brc_map_cursor_seek(&c->map, c->from, c->from_len, err);
}

void brc_chunk_cursor_end(brc_chunk_cursor *c)
{
    brc_map_cursor_end(&c->map);
    brc_arena_dispose(&c->arena);
}

static int cursor_index(const brc_chunk_cursor *c, brc_span key, uint64_t *index, brc_error *err)
{
    if (brc_chunk_key_decode(key.data, key.len, index) == c->a->meta.ndim)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                    c->a->path);
}

/* Takes what comes next in the map, in the rows, or in both; a row replaces the map's chunk. */
static int cursor_take(brc_chunk_cursor *c, const brc_chunk_row *row, uint64_t *index, brc_oid *id,
                       brc_error *err)
{
    brc_span key = {c->map.head.key, c->map.head.bits / 8};
    int order = row == NULL ? 1 : c->map.at_end ? -1 : chunk_key_order(row->key, key);
    if (order > 0) {
        BRC_TRY(cursor_index(c, key, index, err));
        BRC_TRY(brc_chunk_id_of(c->map.head.value, brc_store_id_len(brc_array_store(c->a)), id,
                                err));
    } else {
        BRC_TRY(cursor_index(c, row->key, index, err));
        *id = row->id;
        c->at++;
    }
    return order >= 0 ? brc_map_cursor_step(&c->map, err) : BRC_OK;
}

int brc_chunk_cursor_next(brc_chunk_cursor *c, uint64_t *index, brc_oid *id, brc_error *err)
{
    const brc_chunk_row *row;
    do {
        BRC_TRY(brc_store_check_interrupt(brc_array_store(c->a), err));
        BRC_TRY(brc_map_cursor_descend(&c->map, err));
        BRC_TRY(cursor_look_at_rows(c, &row, err));
        if (c->map.at_end && row == NULL)
            return 0;
        BRC_TRY(cursor_take(c, row, index, id, err));
    } while (brc_oid_is_zero(id)); /* a zero id: dropped */
    if (!brc_meta_has_place(&c->a->meta, index))
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: a chunk is outside the array's grid; run 'breccia fsck'", c->a->path);
    return 1;
}

/* ==== outer cursor ================================ */

/* The least number of indexes at which a row of shards is tidied. */
#define ROW_LEAST ((size_t)1024)

static int outer_ndim(const brc_outer_cursor *c)
{
    return c->chunks.a->meta.ndim;
}

static int has_shards(const brc_outer_cursor *c)
{
    return c->chunks.a->meta.nlevels > 0 && outer_ndim(c) > 0;
}

/* Finds the shard of the next chunk. */
static int outer_look(brc_outer_cursor *c, brc_error *err)
{
    brc_oid id;
    c->has_next = brc_chunk_cursor_next(&c->chunks, c->next, &id, err);
    for (int i = 0; i < outer_ndim(c); i++)
        c->next[i] /= c->ratio[i];
    return c->has_next;
}

int brc_outer_cursor_start(brc_outer_cursor *c, const brc_array *a, const uint64_t *from,
                           brc_error *err)
{
    const brc_meta *m = &a->meta;
    uint64_t row[BRC_MAX_NDIM] = {0};
    memset(c, 0, sizeof(*c));
    for (int i = 0; i < m->ndim; i++)
        c->ratio[i] = m->nlevels > 0 ? m->outer.chunk[i] / m->grid.chunk[i] : 1;
    c->chunks.a = a; /* has_shards() needs it */
    if (from != NULL && has_shards(c)) {
        row[0] = brc_mul_capped(from[0], c->ratio[0]);
        from = row;
    }
    BRC_TRY(from != NULL ? brc_chunk_cursor_start_at(&c->chunks, a, from, err)
                         : brc_chunk_cursor_start(&c->chunks, a, err));
    return has_shards(c) && outer_look(c, err) < 0 ? c->has_next : BRC_OK;
}

void brc_outer_cursor_end(brc_outer_cursor *c)
{
    brc_chunk_cursor_end(&c->chunks);
    free(c->row);
}

static int index_order(const void *a, const void *b, void *width)
{
    return brc_index_order((int)*(const size_t *)width, a, b);
}

/* Sorts the row, and keeps each shard once. */
static void outer_tidy(brc_outer_cursor *c)
{
    size_t ndim = (size_t)outer_ndim(c), kept = 0;
    uint64_t *row = c->row;
    if (c->n > 1)
        qsort_r(row, c->n, ndim * sizeof(*row), index_order, &ndim);
    for (size_t i = 0; i < c->n; i++)
        if (i == 0 || memcmp(row + (kept - 1) * ndim, row + i * ndim, ndim * sizeof(*row)) != 0)
            memmove(row + kept++ * ndim, row + i * ndim, ndim * sizeof(*row));
    c->n = kept;
    c->tidy_at = 2 * kept > ROW_LEAST ? 2 * kept : ROW_LEAST;
}

/* Reads a row of shards. Chunks come in the grid's order, so the chunks of one shard come in
 * several runs, but all of a row of shards come before those of the next row. */
static int outer_read_row(brc_outer_cursor *c, brc_error *err)
{
    const size_t ndim = (size_t)outer_ndim(c), bytes = ndim * sizeof(uint64_t);
    const uint64_t row = c->next[0];
    c->n = c->at = 0;
    c->tidy_at = ROW_LEAST;
    while (c->has_next > 0 && c->next[0] == row) {
        uint64_t *last = c->n > 0 ? (uint64_t *)c->row + (c->n - 1) * ndim : NULL;
        if (last == NULL || memcmp(last, c->next, bytes) != 0) {
            if (c->n == c->tidy_at)
                outer_tidy(c);
            BRC_TRY(brc_grow_array(&c->row, &c->cap, (c->n + 1) * ndim, sizeof(uint64_t), err));
            memcpy((uint64_t *)c->row + c->n++ * ndim, c->next, bytes);
        }
        BRC_TRY(outer_look(c, err));
    }
    outer_tidy(c);
    return BRC_OK;
}

int brc_outer_cursor_next(brc_outer_cursor *c, uint64_t *outer, brc_oid *id, brc_error *err)
{
    const size_t ndim = (size_t)outer_ndim(c), bytes = ndim * sizeof(uint64_t);
    memset(id, 0, sizeof(*id));
    if (!has_shards(c))
        return brc_chunk_cursor_next(&c->chunks, outer, id, err);
    if (c->at == c->n && c->has_next > 0)
        BRC_TRY(outer_read_row(c, err));
    if (c->at == c->n)
        return 0;
    memcpy(outer, (const uint64_t *)c->row + c->at++ * ndim, bytes);
    return 1;
}
