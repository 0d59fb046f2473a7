#include "key_put.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../store/collect.h"
#include "../array/chunk_cursor.h"
#include "../stored/stored.h"
#include "../transfer.h"
#include "key_part.h"
#include "key_rows.h"

/* ==== key put ================================ */

void brc_put_dispose(brc_put *put)
{
    for (size_t i = 0; i < put->n; i++) {
        brc_put_part *part = &((brc_put_part *)put->parts)[i];
        brc_buf_dispose(&part->room);
        brc_stored_clear(&part->at);
    }
    free(put->parts);
    memset(put, 0, sizeof(*put));
}

/* ---- preparing -------------------------------- */

static int add_put_part(brc_put *put, const uint64_t *index, int ndim, brc_put_part **out,
                    brc_error *err)
{
    BRC_TRY(brc_grow_array(&put->parts, &put->cap, put->n + 1, sizeof(brc_put_part), err));
    brc_put_part *part = &((brc_put_part *)put->parts)[put->n++];
    memset(part, 0, sizeof(*part));
    memcpy(part->index, index, (size_t)ndim * sizeof(*index));
    *out = part;
    return BRC_OK;
}

/* Computes the object of these canonical bytes. */
static void name_part(brc_put_part *part, const brc_store *store, brc_span canonical)
{
    brc_object *o = &part->object;
    o->kind = BRC_KIND_CHUNK;
    o->size = canonical.len;
    o->stored = part->stored.len;
    o->id = brc_hash_object(brc_store_hash(store), BRC_KIND_CHUNK, canonical.data, canonical.len);
    o->guard = brc_hash_guard(brc_store_secret(store), canonical.data, canonical.len);
    o->digest = part->spec != NULL ? brc_hash_encoding(part->spec) : 0;
    o->checksum = brc_hash_stored(&o->id, o->digest, part->stored.data, part->stored.len);
}

/* Prepares a chunk that cannot be decoded here: its object is a mark and the bytes. */
static int prepare_opaque(brc_put_part *part, const brc_array *a, const brc_form *form,
                          brc_span data, brc_error *err)
{
    BRC_TRY(brc_buf_append(&part->room, data.data, data.len, err));
    BRC_TRY(brc_opaque_mark(&part->room, err));
    part->stored = (brc_span){part->room.data, part->room.len};
    part->spec = form->spec;
    name_part(part, brc_array_store(a), part->stored);
    return BRC_OK;
}

static int prepare_part(brc_put_part *part, brc_array *a, brc_scratch *scratch, brc_span data,
                        brc_error *err)
{
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_buf canonical = BRC_BUF_INIT;
    brc_form *form;
    int rc;
    brc_grid_chunk(&a->meta.grid, part->index, corner, chunk);
    BRC_TRY(brc_meta_form(&a->meta, chunk, &form, err));
    if (a->meta.opaque)
        return prepare_opaque(part, a, form, data, err);
    BRC_GO(brc_chain_decode(form->chain, scratch, data, &canonical, err));
    if (!brc_meta_is_variable(&a->meta) && canonical.len != form->bytes) {
        rc = brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %zu", canonical.len,
                      form->bytes);
        goto done;
    }
    part->stored = data;
    part->spec = brc_chain_is_identity(form->chain) ? NULL : form->spec;
    name_part(part, brc_array_store(a), (brc_span){canonical.data, canonical.len});
    if (canonical.len <= BRC_COMPARE_MAX)
        rc = brc_buf_append(&part->room, canonical.data, canonical.len, err);
done:
    brc_buf_dispose(&canonical);
    return rc;
}

static int prepare_shard(brc_put *put, brc_array *a, brc_scratch *scratch, brc_span data,
                         brc_error *err)
{
    brc_shard_parts parts = {0};
    brc_put_part *part;
    int rc = brc_shard_split(&parts, &a->meta, scratch, put->outer, data, err);
    const brc_shard_part *items = parts.items;
    for (size_t i = 0; i < parts.n && rc == BRC_OK; i++) {
        rc = add_put_part(put, items[i].index, a->meta.ndim, &part, err);
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(brc_array_store(a), err);
        if (rc == BRC_OK)
            rc = prepare_part(part, a, scratch, items[i].bytes, err);
    }
    free(parts.items);
    return rc;
}

/* Tells whether an error is about the bytes, and not about the machine. */
static int is_about_bytes(int rc)
{
    return rc == BRC_ECORRUPT || rc == BRC_EINVAL || rc == BRC_ELIMIT || rc == BRC_EUNSUPPORTED;
}

int brc_put_prepare(brc_put *put, brc_array *a, const uint64_t *outer, brc_span data,
                    brc_error *err)
{
    brc_scratch *scratch;
    brc_put_part *part;
    brc_pipe *pipe = &a->session->repo->pipe;
    brc_put_dispose(put);
    memcpy(put->outer, outer, (size_t)a->meta.ndim * sizeof(*outer));
    put->doc = a->meta_doc;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    int rc = BRC_OK;
    if (a->meta.nlevels > 0)
        rc = prepare_shard(put, a, scratch, data, err);
    else if ((rc = add_put_part(put, outer, a->meta.ndim, &part, err)) == BRC_OK)
        rc = prepare_part(part, a, scratch, data, err);
    put->is_ready = rc == BRC_OK;
    if (rc == BRC_OK)
        return 1;
    brc_array_name_chunk(a, outer, err);
    return is_about_bytes(rc) ? 0 : rc;
}

/* ---- putting objects into a backend without a lock -------------------------------- */

static void describe_put(brc_stored *at, const brc_put_part *part)
{
    *at = (brc_stored){.size = sizeof(*at),
                       .id = part->object.id,
                       .sum = part->object.checksum,
                       .len = part->stored.len,
                       .data = part->stored.len > 0 ? part->stored.data : (const uint8_t *)""};
}

/* Finds the parts that are not stored yet, and the backend: NULL if it is the file itself, or has
 * no number yet, which it gets within a transaction. Within a read. */
static int find_new(brc_put *put, brc_array *a, brc_put_part **fresh, size_t *n,
                    brc_store_backend **into, int64_t *number, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_object there;
    brc_object *one = &there;
    *n = 0;
    *into = NULL;
    BRC_TRY(brc_array_find_backend(a, number, err));
    if (*number <= 0)
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, *number, into, err));
    for (size_t i = 0; i < put->n; i++) {
        brc_put_part *part = &((brc_put_part *)put->parts)[i];
        there = (brc_object){.id = part->object.id};
        BRC_TRY(brc_objects_find(store, &one, 1, err));
        if (!there.found)
            fresh[(*n)++] = part;
    }
    return BRC_OK;
}

int brc_put_ahead(brc_put *put, brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_store_backend *into = NULL;
    void *p;
    size_t n = 0;
    int64_t number = 0;
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, put->n, sizeof(brc_put_part *), err));
    brc_put_part **fresh = p;
    int rc = brc_gc_puts_begin(store, &put->since, err);
    if (rc == BRC_OK)
        rc = brc_array_begin_read(a, err);
    if (rc == BRC_OK) {
        put->is_ready = brc_oid_cmp(&put->doc, &a->meta_doc) == 0; /* otherwise: prepare again */
        rc = put->is_ready ? find_new(put, a, fresh, &n, &into, &number, err) : BRC_OK;
        brc_array_end_read(a);
    }
    for (size_t i = 0; rc == BRC_OK && into != NULL && i < n; i++) {
        brc_stored *at = &fresh[i]->at;
        describe_put(at, fresh[i]);
        rc = brc_backend_put(into, 1, &at, err);
        fresh[i]->is_put = rc == BRC_OK;
        fresh[i]->backend = number;
    }
    free(p);
    return rc;
}

int brc_put_flush(brc_store *store, const brc_put *put, brc_error *err)
{
    brc_store_backend *into;
    for (size_t i = 0; i < put->n; i++) {
        const brc_put_part *part = &((const brc_put_part *)put->parts)[i];
        if (!part->is_put)
            continue;
        BRC_TRY(brc_backend_use(store, part->backend, &into, err));
        BRC_TRY(brc_backend_flush_puts(into, err));
    }
    return BRC_OK;
}

/* ---- storing -------------------------------- */

/* Checks that the content stored under the id is the same. Short contents are compared byte by
 * byte, because an attacker can construct two with one hash and guard. */
static int check_same(const brc_put_part *part, brc_store *store, brc_object *there,
                      brc_scratch *scratch, brc_error *err)
{
    const brc_chain *chain;
    brc_buf stored = BRC_BUF_INIT, canonical = BRC_BUF_INIT;
    const brc_buf *is = &stored;
    int rc;
    if (there->kind != BRC_KIND_CHUNK || there->size != part->object.size ||
        there->guard != part->object.guard)
        return brc_object_collides(store, &there->id, err);
    if (part->object.size > BRC_COMPARE_MAX)
        return BRC_OK;
    BRC_GO(brc_object_load(store, there, &stored, err));
    BRC_GO(brc_object_verify(there, stored.data, err));
    BRC_GO(brc_encoding_chain(store, there->encoding, &chain, err));
    if (chain != NULL) {
        BRC_GO(brc_chain_decode(chain, scratch, (brc_span){stored.data, stored.len}, &canonical,
                                err));
        is = &canonical;
    }
    if (is->len != part->room.len ||
        (is->len > 0 && memcmp(is->data, part->room.data, is->len) != 0))
        rc = brc_object_collides(store, &there->id, err);
done:
    brc_buf_dispose(&stored);
    brc_buf_dispose(&canonical);
    return rc;
}

/* Stores new bytes where the array's new chunks go; in most cases they are there already. */
static int store_new(const brc_put *put, const brc_put_part *part, brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    int stands = 0;
    brc_store_backend *backend;
    brc_object fresh = part->object;
    brc_stored at, *one = &at;
    if (part->spec != NULL)
        BRC_TRY(brc_encoding_intern(store, part->spec, &fresh.encoding, err));
    BRC_TRY(brc_array_new_chunks(a, &fresh.backend, err));
    if (part->is_put && part->backend == fresh.backend)
        BRC_TRY(brc_gc_puts_stand(store, put->since, &stands, err));
    if (stands)
        return brc_object_record(store, &fresh, &part->at, err);
    BRC_TRY(brc_backend_use(store, fresh.backend, &backend, err));
    describe_put(&at, part);
    int rc = brc_backend_put(backend, 1, &one, err);
    if (rc == BRC_OK)
        rc = brc_object_record(store, &fresh, &at, err);
    brc_stored_clear(&at);
    return rc;
}

static int store_part(const brc_put *put, const brc_put_part *part, brc_array *a,
                      brc_scratch *scratch, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    brc_object there = {.id = part->object.id}, *one = &there;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    BRC_TRY(there.found ? check_same(part, store, &there, scratch, err)
                        : store_new(put, part, a, err));
    return brc_array_put_chunk(a, part->index, &part->object.id, err);
}

static int part_number_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Drops the existing chunks of the shard that are not among the parts (NULL: all). */
static int drop_others(const brc_put *put, brc_array *a, const uint64_t *outer, brc_error *err)
{
    const size_t n = put != NULL ? put->n : 0;
    brc_shard_chunks there = {0};
    uint64_t index[BRC_MAX_NDIM] = {0}, *numbers = NULL;
    void *p = NULL;
    int rc;
    BRC_GO(brc_shard_chunks_find(&there, a, outer, err));
    BRC_GO(brc_new_array(&p, n, sizeof(uint64_t), err));
    numbers = p;
    for (size_t i = 0; i < n; i++)
        numbers[i] = brc_part_number(a->meta.ndim, there.first, there.count,
                                     ((brc_put_part *)put->parts)[i].index);
    if (n > 0)
        qsort(numbers, n, sizeof(*numbers), part_number_order);
    for (size_t i = 0; i < there.n; i++) {
        const brc_shard_chunk *chunk = (brc_shard_chunk *)there.items + i;
        if (n > 0 &&
            bsearch(&chunk->number, numbers, n, sizeof(*numbers), part_number_order) != NULL)
            continue;
        brc_part_index(a->meta.ndim, there.first, there.count, chunk->number, index);
        BRC_GO(brc_array_put_chunk(a, index, NULL, err));
    }
done:
    free(p);
    brc_shard_chunks_dispose(&there);
    return rc;
}

static int store_parts(const brc_put *put, brc_array *a, brc_error *err)
{
    brc_scratch *scratch;
    brc_pipe *pipe = &a->session->repo->pipe;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    for (size_t i = 0; i < put->n; i++) {
        const brc_put_part *part = &((const brc_put_part *)put->parts)[i];
        int rc = store_part(put, part, a, scratch, err);
        if (rc < 0) {
            brc_array_name_chunk(a, part->index, err);
            return rc;
        }
    }
    return a->meta.nlevels > 0 ? drop_others(put, a, put->outer, err) : BRC_OK;
}

int brc_put_store(const brc_put *put, brc_array *a, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, store_parts(put, a, err), err);
}

int brc_put_drop(brc_array *a, const uint64_t *outer, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    int rc = a->meta.nlevels > 0 ? drop_others(NULL, a, outer, err)
                                 : brc_array_put_chunk(a, outer, NULL, err);
    return brc_array_end(a, rc, err);
}

/* ==== key loose ================================ */

/* Bytes that are neither a node nor a chunk yet, and chunks that become such bytes. */

int brc_loose_put(brc_session *s, const char *key, brc_span data, brc_error *err)
{
    brc_oid id;
    if (data.len > BRC_MAX_CHUNK_BYTES)
        return brc_fail(err, BRC_ELIMIT, "a value has at most 2^31-1 bytes, not %zu", data.len);
    BRC_TRY(brc_store_put(s->repo->store, BRC_KIND_LOOSE,
                          data.len > 0 ? data.data : (const uint8_t *)"", data.len, &id, err));
    return brc_draft_key_put(s->repo->store, s->draft.id, key, &id, err);
}

static int loosen_one(brc_array *a, const uint64_t *outer, brc_buf *key, brc_buf *value,
                      brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int there, rc;
    key->len = 0;
    BRC_GO(brc_chunk_key_format(a, outer, key, err));
    BRC_GO(brc_stored_chunk(a, outer, value, &there, err));
    BRC_GO(brc_buf_printf(&full, err, "%s%s%s", a->path + 1, a->path[1] != '\0' ? "/" : "",
                          (const char *)key->data));
    if (there)
        BRC_GO(brc_loose_put(a->session, (const char *)full.data,
                             (brc_span){value->data, value->len}, err));
    rc = brc_put_drop(a, outer, err);
done:
    brc_buf_dispose(&full);
    return rc;
}

int brc_loose_chunks(brc_array *a, brc_error *err)
{
    brc_outer_cursor c;
    brc_buf key = BRC_BUF_INIT, value = BRC_BUF_INIT;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0) {
        rc = loosen_one(a, outer, &key, &value, err);
        if (rc >= 0)
            rc = 1;
    }
    brc_outer_cursor_end(&c);
    brc_buf_dispose(&key);
    brc_buf_dispose(&value);
    return rc;
}

static int is_beyond(const brc_meta *meta, const uint64_t *outer)
{
    for (int i = 0; i < meta->ndim; i++)
        if (outer[i] >= meta->outer.count[i])
            return 1;
    return 0;
}

int brc_drop_chunks_beyond(brc_array *a, const brc_meta *meta, brc_error *err)
{
    brc_outer_cursor c;
    uint64_t outer[BRC_MAX_NDIM] = {0};
    brc_oid id;
    int rc = brc_outer_cursor_start(&c, a, NULL, err);
    while (rc >= 0 && (rc = brc_outer_cursor_next(&c, outer, &id, err)) > 0)
        if (is_beyond(meta, outer) && (rc = brc_put_drop(a, outer, err)) < 0)
            break;
    brc_outer_cursor_end(&c);
    return rc < 0 ? rc : BRC_OK;
}
