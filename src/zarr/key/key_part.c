#include "key_part.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../flow/read.h"
#include "../array/chunk_cursor.h"
#include "../stored/stored.h"
#include "../transfer.h"

/* ==== key part ================================ */

/* ---- looking -------------------------------- */

static int open_opaque_part(brc_key_part *part, const brc_array *a, const uint64_t *index,
                            brc_error *err)
{
    BRC_TRY(brc_opaque_skip(brc_array_store(a), &a->meta, index, &part->object, &part->skip, err));
    part->how = part->skip > 0 ? BRC_PART_MARKED : BRC_PART_AS_IS;
    return BRC_OK;
}

/* Finds out how an existing object becomes bytes of the array's codecs. */
static int open_part(brc_key_part *part, brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    int64_t encoding = -1;
    part->skip = 0;
    part->form = NULL;
    part->chain = NULL;
    if (a->meta.opaque)
        return open_opaque_part(part, a, index, err);
    brc_grid_chunk(&a->meta.grid, index, corner, chunk);
    BRC_TRY(brc_meta_form(&a->meta, chunk, &part->form, err));
    part->how =
        brc_chain_is_identity(part->form->chain) ? BRC_PART_DECODED : BRC_PART_ENCODED;
    if (part->how == BRC_PART_ENCODED) {
        BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
        if (part->object.encoding == encoding) {
            part->how = BRC_PART_AS_IS;
            return BRC_OK;
        }
    }
    BRC_TRY(brc_encoding_chain(store, part->object.encoding, &part->chain, err));
    if (part->object.encoding != 0 && part->chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored when its codecs were not known: import it again");
    return BRC_OK;
}

/* Sets lengths that the chain fixes, or that equal those of the stored bytes. If the length follows
 * from the codecs, so do the bytes: the id identifies them. */
static int know_part(brc_key_part *part, const brc_array *a, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    int64_t encoding;
    part->is_known = 1;
    part->digest = 0;
    if (part->form == NULL) {
        part->len = part->object.stored - part->skip;
        part->digest = part->object.checksum;
        return BRC_OK;
    }
    part->len = part->how == BRC_PART_DECODED ? part->object.size
                                              : brc_chain_encoded_len(part->form->chain);
    if (part->len != BRC_LEN_VARIES)
        return BRC_OK;
    part->len = part->object.stored;
    part->digest = part->object.checksum;
    if (part->how == BRC_PART_AS_IS)
        return BRC_OK;
    BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
    part->is_known = 0;
    if (encoding >= 0)
        BRC_TRY(brc_encoded_get(store, &part->object.id, encoding, &part->is_known, &part->len,
                                &part->digest, err));
    if (part->len > brc_chain_encoded_max(part->form->chain))
        part->is_known = 0; /* no encoder produces so much */
    return BRC_OK;
}

static int check_found(const brc_key_part *part, brc_error *err)
{
    if (part->object.found && part->object.kind == BRC_KIND_CHUNK)
        return BRC_OK;
    return brc_object_missing(&part->object.id, err);
}

static int open_parts(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes,
                      brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t *index = indexes + i * (size_t)a->meta.ndim;
        int rc = check_found(&parts[i], err);
        if (rc == BRC_OK)
            rc = open_part(&parts[i], a, index, err);
        if (rc == BRC_OK)
            rc = know_part(&parts[i], a, err);
        if (rc < 0) {
            brc_array_name_chunk(a, index, err);
            return rc;
        }
    }
    return BRC_OK;
}

int brc_key_parts_look(brc_array *a, brc_key_part *parts, size_t n, const uint64_t *indexes,
                       brc_error *err)
{
    void *p = NULL;
    brc_object *one;
    if (n == 1) {
        one = &parts[0].object;
        BRC_TRY(brc_objects_find(brc_array_store(a), &one, 1, err));
        return open_parts(a, parts, 1, indexes, err);
    }
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_object *), err));
    brc_object **objects = p;
    for (size_t i = 0; i < n; i++)
        objects[i] = &parts[i].object;
    int rc = brc_objects_find(brc_array_store(a), objects, n, err);
    free(p);
    return rc < 0 ? rc : open_parts(a, parts, n, indexes, err);
}

/* ---- fetching and finishing -------------------------------- */

int brc_key_part_fetch(const brc_array *a, const brc_key_part *part, brc_buf *stored,
                       brc_error *err)
{
    size_t len;
    if (!brc_to_size(part->object.stored, &len))
        return brc_fail(err, BRC_ELIMIT, "a chunk is too large for this machine's memory");
    BRC_TRY(brc_buf_reserve(stored, len > 0 ? len : 1, err));
    BRC_TRY(brc_object_fetch(brc_array_store(a), &part->object, stored->data + stored->len, err));
    stored->len += len;
    return BRC_OK;
}

/* Refuses encoded bytes that do not decode to the same elements. Some chains lose more each time
 * ("bitround", and "packbits" with a first bit): bytes that come from another array must not count
 * as this chain's result. */
static int encoded_check(const brc_chain *chain, brc_scratch *scratch, brc_span decoded,
                         brc_span encoded, brc_error *err)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_chain_decode(chain, scratch, encoded, &again, err);
    if (rc == BRC_OK && (again.len != decoded.len ||
                         (again.len > 0 && memcmp(again.data, decoded.data, again.len) != 0)))
        rc = brc_fail(err, BRC_EUNSUPPORTED,
                      "it is stored in another encoding, and the array's codecs, which are "
                      "lossy, would change its elements again");
    brc_buf_dispose(&again);
    return rc;
}

/* Encodes canonical bytes with a form's chain into `out`, which is empty; on any thread. Refuses a
 * chain that loses something each time if the result does not decode to the same bytes. */
static int form_encode(const brc_form *form, brc_span canonical, brc_scratch *scratch, brc_buf *out,
                       brc_error *err)
{
    BRC_TRY(brc_chain_encode(form->chain, scratch, canonical, out, err));
    if (!brc_chain_is_lossy(form->chain))
        return BRC_OK;
    return encoded_check(form->chain, scratch, canonical, (brc_span){out->data, out->len}, err);
}

/* Decodes the stored bytes; *canonical points into them, or into `room`. */
static int part_decode(const brc_key_part *part, brc_scratch *scratch, brc_span stored,
                       brc_buf *room, brc_span *canonical, brc_error *err)
{
    *canonical = stored;
    if (part->chain == NULL)
        return BRC_OK;
    BRC_TRY(brc_chain_decode(part->chain, scratch, stored, room, err));
    if (room->len != part->object.size)
        return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %llu; run 'breccia fsck'",
                        room->len, (unsigned long long)part->object.size);
    *canonical = (brc_span){room->data, room->len};
    return BRC_OK;
}

static int transcode_part(const brc_array *a, const brc_key_part *part, brc_span stored,
                          brc_buf *out, brc_error *err)
{
    brc_scratch *scratch;
    brc_span canonical;
    brc_buf room = BRC_BUF_INIT, encoded = BRC_BUF_INIT;
    brc_pipe *pipe = &a->session->repo->pipe;
    int rc;
    BRC_GO(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    BRC_GO(part_decode(part, scratch, stored, &room, &canonical, err));
    if (part->how == BRC_PART_ENCODED) {
        BRC_GO(form_encode(part->form, canonical, scratch, &encoded, err));
        canonical = (brc_span){encoded.data, encoded.len};
    }
    if (canonical.len > 0)
        rc = brc_buf_append(out, canonical.data, canonical.len, err);
done:
    brc_buf_dispose(&room);
    brc_buf_dispose(&encoded);
    return rc;
}

void brc_key_part_measure(brc_key_part *part, brc_span bytes)
{
    part->is_known = 1;
    if (part->how != BRC_PART_ENCODED ||
        brc_chain_encoded_len(part->form->chain) != BRC_LEN_VARIES)
        return;
    part->len = bytes.len;
    part->digest = brc_hash_stored(&part->object.id, brc_hash_encoding(part->form->spec),
                                   bytes.data, bytes.len);
}

int brc_key_part_passes(const brc_key_part *part)
{
    return part->how <= BRC_PART_MARKED || (part->how == BRC_PART_DECODED && part->chain == NULL);
}

int brc_key_part_check(const brc_key_part *part, brc_buf *stored, brc_error *err)
{
    const size_t len = (size_t)part->object.stored;
    uint8_t *bytes = stored->data + (stored->len - len);
    BRC_TRY(brc_object_verify(&part->object, bytes, err));
    if (part->how != BRC_PART_MARKED)
        return BRC_OK;
    BRC_TRY(brc_opaque_check(bytes, err));
    memmove(bytes, bytes + part->skip, len - part->skip);
    stored->len -= part->skip;
    return BRC_OK;
}

int brc_key_part_transcode(const brc_array *a, brc_key_part *part, const brc_buf *stored,
                           brc_buf *out, brc_error *err)
{
    const size_t start = out->len, len = (size_t)part->object.stored;
    const brc_span bytes = {stored->data + (stored->len - len), len};
    BRC_TRY(brc_object_verify(&part->object, bytes.data, err));
    BRC_TRY(transcode_part(a, part, bytes, out, err));
    brc_key_part_measure(part, (brc_span){out->data + start, out->len - start});
    return BRC_OK;
}

/* ---- many, through a flow -------------------------------- */

int brc_key_part_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_key_part part = {.object = item->object};
    BRC_TRY(open_part(&part, a, index, err));
    item->owner = part.form;
    item->how = part.how;
    item->skip = part.skip;
    item->chain = part.chain;
    if (part.how <= BRC_PART_MARKED)
        item->len = (size_t)item->object.stored - part.skip;
    else
        item->varies = brc_meta_is_variable(&a->meta);
    return BRC_OK;
}

int brc_key_part_place(brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                       brc_error *err)
{
    item->out = (brc_span){data, item->len};
    if (item->how == BRC_PART_AS_IS)
        return BRC_OK;
    if (item->how == BRC_PART_MARKED)
        return brc_opaque_check(data - item->skip, err);
    if (item->how == BRC_PART_ENCODED)
        BRC_TRY(form_encode(item->owner, (brc_span){data, item->len}, scratch, item->result, err));
    else if (item->chain != NULL)
        BRC_TRY(brc_buf_append(item->result, data, item->len, err));
    else
        return BRC_OK;
    item->out = (brc_span){item->result->data, item->result->len};
    return BRC_OK;
}

/* ---- remembered lengths -------------------------------- */

void brc_key_parts_remember(const brc_array *a, const brc_key_part *const *parts, size_t n)
{
    brc_store *store = brc_array_store(a);
    int64_t encoding;
    int rc = BRC_OK;
    if (n == 0 || !brc_store_try_begin(store))
        return;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const brc_key_part *part = parts[i];
        if (part->how != BRC_PART_ENCODED || part->form == NULL)
            continue;
        rc = brc_encoding_intern(store, part->form->spec, &encoding, NULL);
        if (rc == BRC_OK)
            rc = brc_encoded_put(store, &part->object.id, encoding, part->len, part->digest, NULL);
    }
    (void)!brc_store_end(store, rc == BRC_OK, NULL);
}

/* ==== shard chunks ================================ */

/* A shard with at most SMALL_SHARD places has each place looked up, LOOK_MOST at once. For
 * larger shards, most of whose places may be empty, the chunks are found among those of the row
 * of shards. */
#define SMALL_SHARD 4096
#define LOOK_MOST 256

void brc_shard_chunks_dispose(brc_shard_chunks *chunks)
{
    free(chunks->items);
    memset(chunks, 0, sizeof(*chunks));
}

static int add_shard_chunk(brc_shard_chunks *out, int ndim, const uint64_t *index,
                           const brc_oid *id, brc_error *err)
{
    BRC_TRY(brc_grow_array(&out->items, &out->cap, out->n + 1, sizeof(brc_shard_chunk), err));
    ((brc_shard_chunk *)out->items)[out->n++] = (brc_shard_chunk){
        brc_part_number(ndim, out->first, out->count, index), *id};
    for (int i = 0; i < ndim; i++)
        if (index[i] >= out->end[i])
            out->end[i] = index[i] + 1;
    return BRC_OK;
}

static int look_at_places(brc_shard_chunks *out, brc_array *a, uint64_t places, brc_error *err)
{
    const int ndim = a->meta.ndim;
    uint64_t indexes[LOOK_MOST * BRC_MAX_NDIM];
    brc_oid ids[LOOK_MOST];
    for (uint64_t at = 0; at < places;) {
        size_t n = 0;
        for (; n < LOOK_MOST && at < places; n++, at++)
            brc_part_index(ndim, out->first, out->count, at, indexes + n * (size_t)ndim);
        BRC_TRY(brc_store_check_interrupt(brc_array_store(a), err));
        BRC_TRY(brc_array_chunk_ids(a, n, indexes, ids, err));
        for (size_t i = 0; i < n; i++)
            if (!brc_oid_is_zero(&ids[i]))
                BRC_TRY(add_shard_chunk(out, ndim, indexes + i * (size_t)ndim, &ids[i], err));
    }
    return BRC_OK;
}

static int is_in_shard(const brc_shard_chunks *out, int ndim, const uint64_t *index)
{
    for (int i = 0; i < ndim; i++)
        if (index[i] < out->first[i] || index[i] - out->first[i] >= out->count[i])
            return 0;
    return 1;
}

static int look_at_row(brc_shard_chunks *out, brc_array *a, brc_error *err)
{
    brc_chunk_cursor c;
    brc_oid id;
    uint64_t index[BRC_MAX_NDIM];
    const int ndim = a->meta.ndim;
    int rc = brc_chunk_cursor_start_at(&c, a, out->first, err);
    while (rc >= 0 && (rc = brc_chunk_cursor_next(&c, index, &id, err)) > 0) {
        if (index[0] - out->first[0] >= out->count[0])
            break;
        if (is_in_shard(out, ndim, index))
            rc = add_shard_chunk(out, ndim, index, &id, err);
    }
    brc_chunk_cursor_end(&c);
    return rc < 0 ? rc : BRC_OK;
}

int brc_shard_chunks_find(brc_shard_chunks *out, brc_array *a, const uint64_t *outer,
                          brc_error *err)
{
    uint64_t places;
    out->n = 0;
    int rc = brc_outer_box(&a->meta, outer, out->first, out->count, &places, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    memcpy(out->end, out->first, sizeof(out->end));
    return places <= SMALL_SHARD ? look_at_places(out, a, places, err) : look_at_row(out, a, err);
}

/* ==== stored out ================================ */

/*
 * Hands out chunks as the array's codecs store them: one for a key of the Zarr store view, all for
 * an export. Stored bytes are passed on if they have that encoding, otherwise transcoded on the
 * pool. A shard is put together when its last inner chunk is there.
 */

#define LIST_MOST 256 /* chunks that are looked up at once */

/* ---- one chunk -------------------------------- */

/* One inner chunk of the shard that is being put together. */
typedef struct shard_piece {
    uint64_t part; /* its number within the shard, in C order */
    size_t offset, len;
} shard_piece;

typedef struct stored_reader {
    brc_array *a;
    const brc_chunk_sink *sink;
    uint64_t chunk_bytes;   /* for progress                                        */
    const uint64_t *only;   /* the only one to hand out; NULL: all                 */
    brc_outer_cursor cursor;
    uint64_t n;             /* the number listed, with the one that is being listed */
    int in_shard, ended;    /* that one is a shard; there are no more              */
    uint64_t *outers;       /* ndim numbers each, by number % window               */
    brc_shard_chunks chunks; /* of the shard that is being listed                   */
    size_t part;             /* the next of these chunks                            */
    uint64_t end[BRC_MAX_NDIM]; /* of the shard that is being put together          */
    uint64_t shard; /* the number of that shard                                    */
    void *pieces; /* shard_piece[]: of that shard                                  */
    size_t npieces, pieces_cap;
    brc_buf bytes, whole;
    brc_shard_layout layout;
} stored_reader;

/* More than the number of items that were looked up and are unfinished. */
#define OUTER_WINDOW 65536

static uint64_t *outer_of(const stored_reader *r, uint64_t number)
{
    return r->outers + number % OUTER_WINDOW * (uint64_t)r->a->meta.ndim;
}

/* The chunks of an outer chunk in the grid: its parts, numbered in C order. */
typedef struct outer_parts {
    uint64_t first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], n;
} outer_parts;

static int parts_of(const stored_reader *r, uint64_t outer, outer_parts *out, brc_error *err)
{
    return brc_outer_box(&r->a->meta, outer_of(r, outer), out->first, out->count, &out->n, err);
}

static int stored_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    uint64_t index[BRC_MAX_NDIM] = {0};
    outer_parts parts;
    BRC_TRY(parts_of(r, item->number, &parts, err));
    brc_part_index(r->a->meta.ndim, parts.first, parts.count, item->part, index);
    return brc_key_part_item(item, r->a, index, err);
}

static int stored_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                        brc_error *err)
{
    (void)ctx;
    return brc_key_part_place(item, data, scratch, err);
}

static void stored_out_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    brc_array_name_chunk(r->a, outer_of(r, item->number), err);
}

/* ---- listing chunks to read -------------------------------- */

/* Finds the next chunk or shard. Returns 1 with its id, or the zero id if the id is not known. */
static int next_outer(stored_reader *r, brc_oid *id, brc_error *err)
{
    uint64_t *outer = outer_of(r, r->n);
    int rc;
    memset(id, 0, sizeof(*id));
    if (r->ended)
        return 0;
    if (r->only != NULL) {
        memcpy(outer, r->only, (size_t)r->a->meta.ndim * sizeof(*outer));
        rc = 1;
        r->ended = 1;
        if (r->a->meta.nlevels == 0)
            BRC_TRY(brc_array_chunk_ids(r->a, 1, r->only, id, err));
    } else {
        rc = brc_outer_cursor_next(&r->cursor, outer, id, err);
        r->ended = rc <= 0;
    }
    r->n += rc > 0;
    return rc;
}

static int list_unsharded(stored_reader *r, brc_read_item *items, size_t cap, size_t *n,
                          brc_error *err)
{
    brc_oid id;
    int rc = 1;
    while (*n < cap && (rc = next_outer(r, &id, err)) > 0) {
        if (brc_oid_is_zero(&id))
            continue;
        items[*n].object.id = id;
        items[(*n)++].number = r->n - 1;
    }
    return rc < 0 ? rc : BRC_OK;
}

/* Lists the next chunks of the shard that is being listed. They were looked up together, because
 * uncommitted chunks may be written between two batches. */
static int list_shard(stored_reader *r, brc_read_item *items, size_t cap, size_t *n)
{
    const brc_shard_chunk *chunks = r->chunks.items;
    for (; *n < cap && r->part < r->chunks.n; r->part++, (*n)++) {
        items[*n].object.id = chunks[r->part].id;
        items[*n].number = r->n - 1;
        items[*n].part = chunks[r->part].number;
    }
    r->in_shard = r->part < r->chunks.n;
    return BRC_OK;
}

static int list_sharded(stored_reader *r, brc_read_item *items, size_t cap, size_t *n,
                        brc_error *err)
{
    brc_oid none;
    if (!r->in_shard) {
        int rc = next_outer(r, &none, err);
        if (rc <= 0)
            return rc;
        BRC_TRY(brc_shard_chunks_find(&r->chunks, r->a, outer_of(r, r->n - 1), err));
        r->part = 0;
    }
    return list_shard(r, items, cap, n);
}

static int stored_out_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    stored_reader *r = ctx;
    size_t most = cap < LIST_MOST ? cap : LIST_MOST;
    if (!r->in_shard && r->ended)
        return BRC_OK;
    if (r->a->is_frozen)
        BRC_TRY(brc_array_follow(r->a, err));
    BRC_TRY(r->a->meta.nlevels == 0 ? list_unsharded(r, items, most, n, err)
                                    : list_sharded(r, items, most, n, err));
    return BRC_READ_MORE;
}

static int stored_out_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    return brc_task_step(r->a->session->repo, item != NULL ? r->chunk_bytes : 0, err);
}

/* ---- handing over, and shards -------------------------------- */

static int piece_order(const void *a, const void *b)
{
    const shard_piece *x = a, *y = b;
    return (x->part > y->part) - (x->part < y->part);
}

static int piece_part(void *ctx, const uint64_t *index, uint64_t *part, uint64_t *len, int *there,
                      brc_error *err)
{
    const stored_reader *r = ctx;
    outer_parts parts;
    BRC_TRY(parts_of(r, r->shard, &parts, err));
    const shard_piece key = {
        brc_part_number(r->a->meta.ndim, parts.first, parts.count, index), 0, 0};
    const shard_piece *piece =
        bsearch(&key, r->pieces, r->npieces, sizeof(shard_piece), piece_order);
    *there = piece != NULL;
    if (piece == NULL)
        return BRC_OK;
    *part = piece->offset;
    *len = piece->len;
    return BRC_OK;
}

static int fill_layout(stored_reader *r, brc_error *err)
{
    const brc_shard_slot *slots = r->layout.slots;
    r->whole.len = 0;
    for (size_t i = 0; i < r->layout.n; i++) {
        const brc_buf *from = slots[i].is_index ? &r->layout.indexes : &r->bytes;
        if (slots[i].len > 0) /* the pieces of a damaged shard may all be empty */
            BRC_TRY(brc_buf_append(&r->whole, from->data + slots[i].part, (size_t)slots[i].len,
                                   err));
    }
    return BRC_OK;
}

/* Puts together the pieces of a shard, and hands the shard over. */
static int give_shard(stored_reader *r, brc_error *err)
{
    brc_scratch *scratch;
    const uint64_t *outer = outer_of(r, r->shard);
    const brc_shard_source source = {r, r->end, piece_part};
    if (r->npieces == 0)
        return BRC_OK;
    brc_pipe *pipe = &r->a->session->repo->pipe;
    BRC_TRY(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    int rc = brc_shard_lay_out(&r->layout, &r->a->meta, scratch, outer, &source, err);
    if (rc == BRC_OK)
        rc = fill_layout(r, err);
    if (rc < 0) {
        brc_array_name_chunk(r->a, outer, err);
        return rc;
    }
    r->npieces = 0;
    r->bytes.len = 0;
    return r->sink->put(r->sink->ctx, outer, (brc_span){r->whole.data, r->whole.len}, err);
}

static int take_piece(stored_reader *r, const brc_read_item *item, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM] = {0};
    outer_parts parts;
    if (item->number != r->shard)
        BRC_TRY(give_shard(r, err));
    BRC_TRY(parts_of(r, item->number, &parts, err));
    brc_part_index(r->a->meta.ndim, parts.first, parts.count, item->part, index);
    for (int i = 0; i < r->a->meta.ndim; i++)
        if (r->npieces == 0 || index[i] >= r->end[i])
            r->end[i] = index[i] + 1;
    r->shard = item->number;
    BRC_TRY(brc_grow_array(&r->pieces, &r->pieces_cap, r->npieces + 1, sizeof(shard_piece), err));
    ((shard_piece *)r->pieces)[r->npieces++] =
        (shard_piece){item->part, r->bytes.len, item->out.len};
    return brc_buf_append(&r->bytes, item->out.data, item->out.len, err);
}

static int stored_out_done(void *ctx, brc_read_item *item, brc_error *err)
{
    stored_reader *r = ctx;
    if (r->a->meta.nlevels > 0)
        return take_piece(r, item, err);
    return r->sink->put(r->sink->ctx, outer_of(r, item->number), item->out, err);
}

/* ---- the functions -------------------------------- */

static int read_stored(stored_reader *r, brc_error *err)
{
    breccia *repo = r->a->session->repo;
    brc_read_ops ops = {.ctx = r,
                        .ordered = 1,
                        .list = stored_out_list,
                        .open = stored_open,
                        .place = stored_place,
                        .done = stored_out_done,
                        .passed = stored_out_passed,
                        .name = stored_out_name};
    uint64_t all;
    brc_stored_bytes(r->a, &r->chunk_bytes, &all);
    brc_task task = brc_task_begin(repo, "export", all);
    int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    if (rc == BRC_OK)
        rc = give_shard(r, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

/* Hands out within a transaction. only NULL: all. */
static int give_outers(brc_array *a, const uint64_t *only, const brc_chunk_sink *sink,
                       brc_error *err)
{
    void *p, *outers = NULL;
    int rc;
    const size_t width = (size_t)(a->meta.ndim > 0 ? a->meta.ndim : 1);
    BRC_TRY(brc_new(&p, sizeof(stored_reader), err));
    stored_reader *r = p;
    r->a = a;
    r->only = only;
    r->sink = sink;
    BRC_GO(brc_new_array(&outers, only != NULL ? width : OUTER_WINDOW * width, sizeof(uint64_t),
                         err));
    r->outers = outers;
    if (only == NULL)
        BRC_GO(brc_outer_cursor_start(&r->cursor, a, NULL, err));
    rc = read_stored(r, err);
done:
    brc_outer_cursor_end(&r->cursor);
    brc_buf_dispose(&r->bytes);
    brc_buf_dispose(&r->whole);
    brc_shard_layout_dispose(&r->layout);
    free(r->outers);
    brc_shard_chunks_dispose(&r->chunks);
    free(r->pieces);
    free(r);
    return rc;
}

typedef struct one_chunk {
    brc_buf *out;
    int there;
} one_chunk;

static int keep_chunk(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    one_chunk *one = ctx;
    (void)index;
    one->there = 1;
    return brc_buf_append(one->out, stored.data, stored.len, err);
}

int brc_stored_chunk(brc_array *a, const uint64_t *outer, brc_buf *out, int *there, brc_error *err)
{
    one_chunk one = {.out = out};
    brc_chunk_sink sink = {&one, keep_chunk};
    out->len = 0;
    BRC_TRY(give_outers(a, outer, &sink, err));
    *there = one.there;
    return BRC_OK;
}

int brc_array_get_stored(brc_array *a, const brc_chunk_sink *sink, brc_error *err)
{
    brc_array *now = NULL;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_freeze(&now, a, err);
    if (rc == BRC_OK)
        rc = give_outers(now, NULL, sink, err);
    brc_array_end_read(a);
    brc_array_free(now);
    return rc;
}
