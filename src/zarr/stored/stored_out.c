/* Chunks and shards as the array's codecs have them, out of a repository: what the key view hands
 * out and what an export writes. */
#include "stored_out.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../flow/read.h"
#include "../../store/bases.h"
#include "../array/chunk_cursor.h"

/* ==== stored part ================================ */

/* ---- looking -------------------------------- */

static int open_opaque_part(brc_stored_part *part, const brc_array *a, const uint64_t *index,
                            brc_error *err)
{
    BRC_TRY(brc_opaque_skip(brc_array_store(a), &a->meta, index, &part->object, &part->skip, err));
    part->how = part->skip > 0 ? BRC_STORED_MARKED : BRC_STORED_AS_IS;
    return BRC_OK;
}

/* Finds out how an existing object becomes bytes of the array's codecs. */
static int open_part(brc_stored_part *part, brc_array *a, const uint64_t *index, brc_error *err)
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
        brc_chain_is_identity(part->form->chain) ? BRC_STORED_DECODED : BRC_STORED_ENCODED;
    if (part->how == BRC_STORED_ENCODED) {
        BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
        if (part->object.encoding == encoding) {
            part->how = BRC_STORED_AS_IS;
            return BRC_OK;
        }
    }
    if (brc_object_is_delta(&part->object))
        return BRC_OK;
    BRC_TRY(brc_encoding_chain(store, part->object.encoding, &part->chain, err));
    if (part->object.encoding != 0 && part->chain == NULL)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "it was stored when its codecs were not known: import it again");
    return BRC_OK;
}

/* Sets lengths that the chain fixes, or that equal those of the stored bytes. If the length follows
 * from the codecs, so do the bytes: the id identifies them. */
static int know_part(brc_stored_part *part, const brc_array *a, brc_error *err)
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
    part->len = part->how == BRC_STORED_DECODED ? part->object.size
                                              : brc_chain_describe(part->form->chain)->encoded_len;
    if (part->len != BRC_LEN_VARIES)
        return BRC_OK;
    part->len = part->object.stored;
    part->digest = part->object.checksum;
    if (part->how == BRC_STORED_AS_IS)
        return BRC_OK;
    BRC_TRY(brc_encoding_find(store, part->form->spec, &encoding, err));
    part->is_known = 0;
    if (encoding >= 0)
        BRC_TRY(brc_encoded_get(store, &part->object.id, encoding, &part->is_known, &part->len,
                                &part->digest, err));
    if (part->len > brc_chain_describe(part->form->chain)->encoded_max)
        part->is_known = 0; /* no encoder produces so much */
    return BRC_OK;
}

static int check_found(const brc_stored_part *part, brc_error *err)
{
    if (part->object.found && part->object.kind == BRC_KIND_CHUNK)
        return BRC_OK;
    return brc_object_missing(&part->object.id, err);
}

static int open_parts(brc_array *a, brc_stored_part *parts, size_t n, const uint64_t *indexes,
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

int brc_stored_look(brc_array *a, brc_stored_part *parts, size_t n, const uint64_t *indexes,
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

/* ---- making the bytes -------------------------------- */

/* Refuses encoded bytes that do not decode to the same elements. Some chains lose more each time
 * ("bitround", and "packbits" with a first bit): bytes that come from another array must not count
 * as this chain's result. */
static int encoded_check(const brc_chain *chain, brc_scratch *scratch, brc_span decoded,
                         brc_span encoded, brc_error *err)
{
    brc_buf again = BRC_BUF_INIT;
    int rc = brc_chain_decode(chain, scratch, encoded, NULL, &again, err);
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

/* Sets length and digest from the part's bytes, on any thread. The known values may come from a
 * build whose codecs produced different bytes. */
static void part_measure(brc_stored_part *part, brc_span bytes)
{
    part->is_known = 1;
    if (part->how != BRC_STORED_ENCODED ||
        brc_chain_describe(part->form->chain)->encoded_len != BRC_LEN_VARIES)
        return;
    part->len = bytes.len;
    part->digest = brc_hash_stored(&part->object.id, brc_hash_encoding(part->form->spec),
                                   bytes.data, bytes.len);
}

/* Describes the item for a flow's open(): it becomes the chunk's bytes in the encoding of the
 * array's codecs. */
static int part_item(brc_read_item *item, brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_stored_part part = {.object = item->object};
    BRC_TRY(open_part(&part, a, index, err));
    item->owner = part.form;
    item->how = part.how;
    item->skip = part.skip;
    item->chain = part.chain;
    if (part.how <= BRC_STORED_MARKED)
        item->len = (size_t)item->object.stored - part.skip;
    else
        item->varies = brc_meta_is_variable(&a->meta);
    return BRC_OK;
}

/* Leaves those bytes in item->out, for a flow's place(). `into`, which is empty, is the memory for
 * bytes that are made here. */
static int part_place(brc_read_item *item, const uint8_t *data, brc_scratch *scratch, brc_buf *into,
                      brc_error *err)
{
    item->out = (brc_span){data, item->len};
    if (item->how == BRC_STORED_AS_IS)
        return BRC_OK;
    if (item->how == BRC_STORED_MARKED)
        return brc_opaque_check(data - item->skip, err);
    if (item->how == BRC_STORED_ENCODED)
        BRC_TRY(form_encode(item->owner, item->out, scratch, into, err));
    else if (item->chain != NULL)
        BRC_TRY(brc_buf_append(into, data, item->len, err));
    else
        return BRC_OK;
    item->out = (brc_span){into->data, into->len};
    return BRC_OK;
}

/* ---- remembered lengths -------------------------------- */

/* Stores length and digest in the derived table for the next look-up. Does nothing if the file
 * cannot be written at once. */
static void parts_remember(const brc_array *a, const brc_stored_part *const *parts, size_t n)
{
    brc_store *store = brc_array_store(a);
    int64_t encoding;
    int rc = BRC_OK;
    if (n == 0 || !brc_store_try_begin(store))
        return;
    for (size_t i = 0; i < n && rc == BRC_OK; i++) {
        const brc_stored_part *part = parts[i];
        if (part->how != BRC_STORED_ENCODED || part->form == NULL)
            continue;
        rc = brc_encoding_intern(store, part->form->spec, &encoding, NULL);
        if (rc == BRC_OK)
            rc = brc_encoded_put(store, &part->object.id, encoding, part->len, part->digest, NULL);
    }
    (void)!brc_store_end(store, rc == BRC_OK, NULL);
}

/* ==== stored pieces ================================ */

void brc_stored_pieces_dispose(brc_stored_pieces *pieces)
{
    free(pieces->items);
    free(pieces->indexes);
    memset(pieces, 0, sizeof(*pieces));
}

int brc_stored_pieces_add(brc_stored_pieces *pieces, const brc_array *a,
                          const brc_stored_part *part, const uint64_t *index,
                          brc_stored_piece **out, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim, n = pieces->n;
    BRC_TRY(brc_grow_array(&pieces->items, &pieces->cap, n + 1, sizeof(brc_stored_piece), err));
    BRC_TRY(brc_grow_array(&pieces->indexes, &pieces->indexes_cap, (n + 1) * ndim,
                           sizeof(uint64_t), err));
    *out = brc_stored_piece_at(pieces, n);
    memset(*out, 0, sizeof(**out));
    (*out)->part = *part;
    if (ndim > 0)
        memcpy((uint64_t *)pieces->indexes + n * ndim, index, ndim * sizeof(*index));
    pieces->n++;
    return BRC_OK;
}

/* ---- the flow -------------------------------- */

typedef struct pieces_reader {
    brc_array *a;
    const brc_stored_pieces *pieces;
    size_t listed;
} pieces_reader;

static const uint64_t *index_of_piece(const pieces_reader *r, uint64_t i)
{
    static const uint64_t none[1] = {0};
    const size_t ndim = (size_t)r->a->meta.ndim;
    return ndim > 0 ? (const uint64_t *)r->pieces->indexes + i * ndim : none;
}

static int pieces_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    pieces_reader *r = ctx;
    (void)err;
    for (*n = 0; *n < cap && r->listed < r->pieces->n; (*n)++) {
        items[*n].object = brc_stored_piece_at(r->pieces, r->listed)->part.object;
        items[*n].number = r->listed++;
    }
    return BRC_OK;
}

/* A value that is read whole goes straight into its buffer where its length is known. */
static int stored_piece_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_buf *whole = brc_stored_piece_at(r->pieces, item->number)->whole;
    BRC_TRY(part_item(item, r->a, index_of_piece(r, item->number), err));
    if (whole == NULL || item->varies || item->how == BRC_STORED_MARKED ||
        item->how == BRC_STORED_ENCODED)
        return BRC_OK;
    BRC_TRY(brc_buf_reserve(whole, item->len + 1, err));
    whole->len = item->len;
    item->direct = whole->data;
    return BRC_OK;
}

static int stored_piece_place(void *ctx, brc_read_item *item, const uint8_t *data,
                              brc_scratch *scratch, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_stored_piece *piece = brc_stored_piece_at(r->pieces, item->number);
    const brc_stored_part before = piece->part;
    brc_buf *whole = piece->whole;
    BRC_TRY(part_place(item, data, scratch, whole != NULL ? whole : item->result, err));
    part_measure(&piece->part, item->out);
    piece->is_other = before.is_known && (item->out.len != before.len ||
                                          piece->part.digest != before.digest);
    piece->is_new = piece->is_other || !before.is_known;
    if (whole != NULL)
        return whole->len == item->out.len
                   ? BRC_OK
                   : brc_buf_append(whole, item->out.data, item->out.len, err);
    if (piece->to != NULL && !piece->is_other)
        memcpy(piece->to, item->out.data + piece->start, (size_t)(piece->end - piece->start));
    return BRC_OK;
}

static int stored_piece_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    (void)item;
    return brc_store_check_interrupt(brc_array_store(r->a), err);
}

static void stored_piece_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_array_name_chunk(r->a, index_of_piece(r, item->number), err);
}

int brc_stored_pieces_read(brc_stored_pieces *pieces, brc_array *a, brc_error *err)
{
    pieces_reader r = {a, pieces, 0};
    const brc_read_ops ops = {.ctx = &r,
                              .list = pieces_list,
                              .open = stored_piece_open,
                              .place = stored_piece_place,
                              .passed = stored_piece_passed,
                              .name = stored_piece_name};
    return pieces->n > 0 ? brc_flow_read(&a->session->repo->pipe, brc_array_store(a), &ops, err)
                         : BRC_OK;
}

/* Stores new lengths in the derived table. Outside of the transaction. */
static int pieces_remember(const brc_stored_pieces *pieces, const brc_array *a, brc_error *err)
{
    void *p;
    size_t n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        n += (size_t)brc_stored_piece_at(pieces, i)->is_new;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_stored_part *), err));
    const brc_stored_part **parts = p;
    n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        if (brc_stored_piece_at(pieces, i)->is_new)
            parts[n++] = &brc_stored_piece_at(pieces, i)->part;
    parts_remember(a, parts, n);
    free(p);
    return BRC_OK;
}

/* ==== shard plan ================================ */

#define LOOK_MOST 256     /* chunks that are looked up at once                      */
#define MISSING_MOST 4096 /* lengths that are learned between two plans             */

/* The properties of a chunk's bytes that were learned by making them. */
typedef struct learned_part {
    uint64_t len, digest;
} learned_part;

void brc_shard_plan_dispose(brc_shard_plan *shard)
{
    brc_shard_layout_dispose(&shard->layout);
    brc_stored_pieces_dispose(&shard->missing);
    brc_id_table_dispose(&shard->learned);
    memset(shard, 0, sizeof(*shard));
}

/* ---- the chunks of a shard -------------------------------- */

/* Looks up n chunks, whose ids are given, in the array's encoding. */
static int look_at_parts(const brc_shard_plan *shard, brc_array *a, const uint64_t *indexes,
                         const brc_oid *ids, size_t n, brc_stored_part *parts, brc_error *err)
{
    memset(parts, 0, n * sizeof(*parts));
    for (size_t i = 0; i < n; i++)
        parts[i].object.id = ids[i];
    BRC_TRY(brc_stored_look(a, parts, n, indexes, err));
    for (size_t i = 0; i < n; i++) {
        const learned_part *learned =
            parts[i].is_known && parts[i].how != BRC_STORED_ENCODED
                ? NULL
                : brc_id_table_find(&shard->learned, &parts[i].object.id);
        if (learned == NULL)
            continue;
        parts[i].len = learned->len;
        parts[i].digest = learned->digest;
        parts[i].is_known = 1;
    }
    return BRC_OK;
}

int brc_stored_exists(int *exists, brc_array *a, const uint64_t *outer, brc_error *err)
{
    brc_shard_chunks chunks = {0};
    int rc = brc_shard_chunks_find(&chunks, a, outer, err);
    *exists = chunks.n > 0;
    brc_shard_chunks_dispose(&chunks);
    return rc;
}

/* ---- planning -------------------------------- */

/* Extends the tag by one more chunk: its id, its length and its bytes' checksum. */
static void tag_part(brc_oid *tag, uint64_t number, const brc_stored_part *part)
{
    uint8_t bytes[16 + 32 + 24];
    memcpy(bytes, tag->bytes, 16);
    memcpy(bytes + 16, part->object.id.bytes, 32);
    brc_put_u64le(bytes + 48, number);
    brc_put_u64le(bytes + 56, part->len);
    brc_put_u64le(bytes + 64, part->digest);
    *tag = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, bytes, sizeof(bytes));
}

static int note_missing(brc_shard_plan *shard, const brc_array *a, const brc_stored_part *part,
                        const uint64_t *index, brc_error *err)
{
    brc_stored_piece *piece;
    return shard->missing.n < MISSING_MOST
               ? brc_stored_pieces_add(&shard->missing, a, part, index, &piece, err)
               : BRC_OK;
}

/* Describes every chunk for the layout, computes the tag, and lists the missing lengths. */
static int measure_shard(brc_shard_plan *shard, brc_array *a, const brc_shard_chunks *chunks,
                         brc_shard_inner *inner, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim;
    const brc_shard_chunk *all = chunks->items;
    const size_t most = chunks->n < LOOK_MOST ? chunks->n : LOOK_MOST;
    void *room = NULL;
    uint64_t indexes[LOOK_MOST * BRC_MAX_NDIM];
    brc_oid ids[LOOK_MOST];
    int rc;
    BRC_GO(brc_new_array(&room, most, sizeof(brc_stored_part), err));
    const brc_stored_part *parts = room;
    memset(&shard->tag, 0, sizeof(shard->tag));
    shard->missing.n = 0;
    for (size_t at = 0, n; at < chunks->n; at += n) {
        n = chunks->n - at < LOOK_MOST ? chunks->n - at : LOOK_MOST;
        for (size_t i = 0; i < n; i++) {
            ids[i] = all[at + i].id;
            brc_part_index((int)ndim, chunks->first, chunks->count, all[at + i].number,
                           indexes + i * ndim);
        }
        BRC_GO(brc_store_check_interrupt(brc_array_store(a), err));
        BRC_GO(look_at_parts(shard, a, indexes, ids, n, room, err));
        for (size_t i = 0; i < n; i++) {
            if (!parts[i].is_known)
                BRC_GO(note_missing(shard, a, &parts[i], indexes + i * ndim, err));
            const uint64_t number = all[at + i].number;
            inner[at + i] = (brc_shard_inner){number, parts[i].len, number};
            tag_part(&shard->tag, all[at + i].number, &parts[i]);
        }
    }
done:
    free(room);
    return rc;
}

static int plan_shard(brc_shard_plan *shard, brc_array *a, const uint64_t *outer, brc_error *err)
{
    brc_shard_chunks chunks = {0};
    void *inner = NULL;
    brc_scratch *scratch;
    int rc;
    brc_pipe *pipe = &a->session->repo->pipe;
    BRC_GO(brc_shard_chunks_find(&chunks, a, outer, err));
    memcpy(shard->outer, outer, (size_t)a->meta.ndim * sizeof(*outer));
    memcpy(shard->first, chunks.first, sizeof(shard->first));
    memcpy(shard->count, chunks.count, sizeof(shard->count));
    BRC_GO(brc_new_array(&inner, chunks.n, sizeof(brc_shard_inner), err));
    BRC_GO(measure_shard(shard, a, &chunks, inner, err));
    if (shard->missing.n > 0)
        goto done;
    BRC_GO(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    BRC_GO(brc_shard_lay_out(&shard->layout, &a->meta, scratch, outer, inner, chunks.n, err));
    shard->version = a->version;
    shard->changes = a->changes;
    shard->is_planned = 1;
done:
    free(inner);
    brc_shard_chunks_dispose(&chunks);
    return rc;
}

/* ---- learning -------------------------------- */

static int learn_part(brc_shard_plan *shard, const brc_stored_part *part, brc_error *err)
{
    void *value;
    shard->learned.value_size = sizeof(learned_part);
    BRC_TRY(brc_id_table_add(&shard->learned, &part->object.id, &value, err));
    *(learned_part *)value = (learned_part){part->len, part->digest};
    return BRC_OK;
}

int brc_shard_plan_settle(brc_shard_plan *shard, const brc_array *a,
                          const brc_stored_pieces *pieces, brc_error *err)
{
    int rc = 1;
    for (size_t i = 0; i < pieces->n; i++) {
        const brc_stored_piece *piece = brc_stored_piece_at(pieces, i);
        if (piece->is_new && a->meta.nlevels > 0)
            BRC_TRY(learn_part(shard, &piece->part, err));
        if (piece->is_other)
            rc = shard->is_planned = 0;
    }
    BRC_TRY(pieces_remember(pieces, a, err));
    return rc;
}

/* Reads stored bytes that are the value, without the pool. */
static int part_read_in_place(const brc_stored_part *part, brc_array *a, const uint64_t *index,
                         brc_buf *out, brc_error *err)
{
    size_t len;
    int rc = BRC_OK;
    if (!brc_to_size(part->object.stored, &len))
        rc = brc_fail(err, BRC_ELIMIT, "a chunk is too large for this machine's memory");
    if (rc == BRC_OK)
        rc = brc_buf_reserve(out, len > 0 ? len : 1, err);
    if (rc == BRC_OK)
        rc = brc_object_fetch(brc_array_store(a), &part->object, out->data, err);
    brc_array_end_read(a);
    out->len = rc == BRC_OK ? len : 0;
    if (rc == BRC_OK)
        rc = brc_object_verify(&part->object, out->data, err);
    if (rc < 0)
        brc_array_name_chunk(a, index, err);
    return rc;
}

int brc_stored_part_read(brc_stored_part *part, brc_array *a, const uint64_t *index, brc_buf *out,
                         brc_shard_plan *plan, brc_error *err)
{
    brc_stored_pieces pieces = {0};
    brc_stored_piece *piece;
    const int passes = part->how == BRC_STORED_AS_IS ||
                       (part->how == BRC_STORED_DECODED && part->chain == NULL &&
                        !brc_object_is_delta(&part->object));
    if (out != NULL && passes && !brc_store_verifies_all(brc_array_store(a)))
        return part_read_in_place(part, a, index, out, err);
    int rc = brc_stored_pieces_add(&pieces, a, part, index, &piece, err);
    if (rc == BRC_OK) {
        piece->whole = out;
        rc = brc_stored_pieces_read(&pieces, a, err);
    }
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_shard_plan_settle(plan, a, &pieces, err);
    if (rc >= 0)
        *part = brc_stored_piece_at(&pieces, 0)->part;
    brc_stored_pieces_dispose(&pieces);
    return rc < 0 ? rc : BRC_OK;
}

/* Learns lengths. No two objects have one id, so a learned length stays valid whatever happens
 * meanwhile. */
int brc_shard_plan_learn(brc_shard_plan *shard, brc_array *a, brc_error *err)
{
    int rc = brc_stored_pieces_read(&shard->missing, a, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_shard_plan_settle(shard, a, &shard->missing, err);
    return rc < 0 ? rc : BRC_OK;
}

int brc_shard_plan_make(brc_shard_plan *shard, brc_array *a, const uint64_t *outer, brc_error *err)
{
    if (shard->is_planned && shard->version == a->version && shard->changes == a->changes &&
        memcmp(shard->outer, outer, (size_t)a->meta.ndim * sizeof(*outer)) == 0)
        return 1;
    shard->is_planned = 0;
    if (brc_oid_cmp(&shard->doc, &a->meta_doc) != 0) /* the codecs may differ */
        brc_id_table_dispose(&shard->learned);
    shard->doc = a->meta_doc;
    BRC_TRY(plan_shard(shard, a, outer, err));
    return shard->is_planned;
}

/* ---- parts of a shard -------------------------------- */

/* Returns the first slot that ends after `start`. */
static size_t first_slot(const brc_shard_layout *layout, uint64_t start)
{
    const brc_shard_slot *slots = layout->slots;
    size_t lo = 0, hi = layout->n;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (slots[middle].at + slots[middle].len <= start)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Up to LOOK_MOST slots of chunks, which are looked up together. */
typedef struct slot_batch {
    size_t n, most;
    const brc_shard_slot **slots;
    brc_stored_part *parts;
    uint64_t *indexes;
} slot_batch;

typedef struct shard_range {
    brc_shard_plan *shard;
    brc_array *a;
    uint64_t start, end;
    uint8_t *to;
    size_t request;
    brc_stored_pieces *pieces;
    slot_batch batch;
} shard_range;

/* Returns the range's part of a slot, from *from to before *end, and where that part goes. */
static uint8_t *place_of_slot(const shard_range *r, const brc_shard_slot *slot, uint64_t *from,
                              uint64_t *end)
{
    *from = r->start > slot->at ? r->start - slot->at : 0;
    *end = r->end - slot->at < slot->len ? r->end - slot->at : slot->len;
    return r->to + (slot->at + *from - r->start);
}

/* Orders slots as the grid does, in which order chunks are looked up: the slots of nested shards
 * have another order. */
static int slot_part_order(const void *a, const void *b)
{
    const brc_shard_slot *x = *(const brc_shard_slot *const *)a,
                         *y = *(const brc_shard_slot *const *)b;
    return (x->part > y->part) - (x->part < y->part);
}

static int add_slots(shard_range *r, brc_error *err)
{
    slot_batch *b = &r->batch;
    const size_t ndim = (size_t)r->a->meta.ndim;
    brc_oid ids[LOOK_MOST];
    brc_stored_piece *piece;
    qsort(b->slots, b->n, sizeof(*b->slots), slot_part_order);
    for (size_t i = 0; i < b->n; i++)
        brc_part_index((int)ndim, r->shard->first, r->shard->count, b->slots[i]->part,
                       b->indexes + i * ndim);
    BRC_TRY(brc_array_chunk_ids(r->a, b->n, b->indexes, ids, err));
    for (size_t i = 0; i < b->n; i++)
        if (brc_oid_is_zero(&ids[i]))
            return brc_fail(err, BRC_EINTERNAL, "a planned shard has lost a chunk");
    BRC_TRY(look_at_parts(r->shard, r->a, b->indexes, ids, b->n, b->parts, err));
    for (size_t i = 0; i < b->n; i++) {
        b->parts[i].is_known = 1; /* the length that the plan assumed */
        b->parts[i].len = b->slots[i]->len;
        BRC_TRY(brc_stored_pieces_add(r->pieces, r->a, &b->parts[i], b->indexes + i * ndim, &piece,
                                   err));
        piece->request = r->request;
        piece->to = place_of_slot(r, b->slots[i], &piece->start, &piece->end);
    }
    b->n = 0;
    return BRC_OK;
}

static int take_slot(shard_range *r, const brc_shard_slot *slot, brc_error *err)
{
    uint64_t from, end;
    if (!slot->is_index) {
        r->batch.slots[r->batch.n++] = slot;
        return r->batch.n == r->batch.most ? add_slots(r, err) : BRC_OK;
    }
    uint8_t *to = place_of_slot(r, slot, &from, &end);
    memcpy(to, r->shard->layout.indexes.data + slot->part + from, (size_t)(end - from));
    return BRC_OK;
}

static int batch_new(slot_batch *b, size_t slots, size_t ndim, brc_error *err)
{
    void *p[3] = {NULL, NULL, NULL};
    b->most = slots < LOOK_MOST ? slots : LOOK_MOST;
    int rc = brc_new_array(&p[0], b->most, sizeof(brc_shard_slot *), err);
    if (rc == BRC_OK)
        rc = brc_new_array(&p[1], b->most, sizeof(brc_stored_part), err);
    if (rc == BRC_OK)
        rc = brc_new_array(&p[2], b->most * (ndim > 0 ? ndim : 1), sizeof(uint64_t), err);
    b->slots = p[0];
    b->parts = p[1];
    b->indexes = p[2];
    return rc;
}

int brc_shard_plan_pieces(brc_shard_plan *shard, brc_array *a, uint64_t start, uint64_t end,
                         uint8_t *to, size_t request, brc_stored_pieces *pieces, brc_error *err)
{
    const brc_shard_slot *slots = shard->layout.slots;
    shard_range r = {.shard = shard, .a = a, .start = start, .end = end, .to = to,
                     .request = request, .pieces = pieces};
    size_t first, last;
    if (start >= end)
        return BRC_OK;
    first = last = first_slot(&shard->layout, start);
    while (last < shard->layout.n && slots[last].at < end)
        last++;
    int rc = batch_new(&r.batch, last - first, (size_t)a->meta.ndim, err);
    for (; first < last && rc == BRC_OK; first++)
        rc = take_slot(&r, &slots[first], err);
    if (rc == BRC_OK && r.batch.n > 0)
        rc = add_slots(&r, err);
    free(r.batch.slots);
    free(r.batch.parts);
    free(r.batch.indexes);
    return rc;
}
/* ==== stored out ================================ */

/*
 * Hands out whole values: all of an array, or one. A shard is put together when its last inner
 * chunk has been read.
 *
 * A sink that takes values on any thread gets a chunk from the worker that has checked it or made
 * its bytes, which are in the processor's cache then. A shard is put together and handed over by a
 * job of its own, while the chunks of the next one are read.
 */

/* A shard that is put together. */
typedef struct shard_out {
    brc_job job; /* must be first */
    struct stored_reader *r;
    uint64_t number; /* of the shard                                                  */
    void *inner;     /* brc_shard_inner[]: its chunks; their bytes are in `bytes`     */
    size_t ninner, inner_cap;
    brc_buf bytes, whole;
    brc_shard_layout layout;
    int submitted, rc;
    brc_error err;
} shard_out;

typedef struct stored_reader {
    brc_array *a;
    const brc_chunk_sink *sink;
    uint64_t chunk_bytes;   /* for progress                                        */
    const uint64_t *only;    /* the only chunk or shard to hand out; NULL: all      */
    brc_outer_cursor cursor;
    uint64_t n;              /* chunks or shards listed, with the present one       */
    int in_shard, ended;     /* the present one is a shard; there are no more       */
    uint64_t *outers;        /* ndim numbers each, by number % window               */
    brc_shard_chunks chunks; /* of the shard that is being listed                   */
    size_t part;             /* the next of these chunks                            */
    shard_out shards[2];     /* the one that gets chunks, and the one before it     */
    int turn;                /* which of them gets chunks                           */
    brc_group *group;        /* of jobs that put shards together; NULL: the caller does it */
    int at_once;             /* the sink gets a chunk from the worker that read it  */
} stored_reader;

/* More than the number of items that were looked up and are unfinished. */
#define OUTER_WINDOW 65536

static uint64_t *outer_of(const stored_reader *r, uint64_t number)
{
    return r->outers + number % OUTER_WINDOW * (uint64_t)r->a->meta.ndim;
}

static int stored_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    const brc_meta *m = &r->a->meta;
    uint64_t index[BRC_MAX_NDIM] = {0}, first[BRC_MAX_NDIM], count[BRC_MAX_NDIM], places;
    BRC_TRY(brc_outer_box(m, outer_of(r, item->number), first, count, &places, err));
    brc_part_index(m->ndim, first, count, item->part, index);
    BRC_TRY(part_item(item, r->a, index, err));
    if (r->at_once && item->how == BRC_STORED_ENCODED)
        item->makes = item->len;
    return BRC_OK;
}

/* Hands a chunk over. A message of the sink names what it could not write. */
static int stored_give(const stored_reader *r, brc_read_item *item, brc_error *err)
{
    const int rc = r->sink->put(r->sink->ctx, outer_of(r, item->number), item->out, err);
    item->part = rc < 0;
    return rc;
}

static int stored_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                        brc_error *err)
{
    const stored_reader *r = ctx;
    if (r->at_once && item->how == BRC_STORED_DECODED)
        item->out = (brc_span){data, item->len};
    else
        BRC_TRY(part_place(item, data, scratch, item->result, err));
    return r->at_once ? stored_give(r, item, err) : BRC_OK;
}

static void stored_out_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const stored_reader *r = ctx;
    if (!r->at_once || !item->part)
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
    size_t most = cap < LOOK_MOST ? cap : LOOK_MOST;
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

static int fill_layout(shard_out *shard, brc_error *err)
{
    const brc_shard_slot *slots = shard->layout.slots;
    shard->whole.len = 0;
    for (size_t i = 0; i < shard->layout.n; i++) {
        const brc_buf *from = slots[i].is_index ? &shard->layout.indexes : &shard->bytes;
        if (slots[i].len > 0) /* the pieces of a damaged shard may all be empty */
            BRC_TRY(brc_buf_append(&shard->whole, from->data + slots[i].part, (size_t)slots[i].len,
                                   err));
    }
    return BRC_OK;
}

/* Puts together the pieces of a shard, and hands the shard over, on any thread. */
static int shard_put(shard_out *shard, unsigned worker, brc_error *err)
{
    brc_scratch *scratch;
    const stored_reader *r = shard->r;
    const uint64_t *outer = outer_of(r, shard->number);
    BRC_TRY(brc_pipe_scratch(&r->a->session->repo->pipe, worker, &scratch, err));
    int rc = brc_shard_lay_out(&shard->layout, &r->a->meta, scratch, outer, shard->inner,
                               shard->ninner, err);
    if (rc == BRC_OK)
        rc = fill_layout(shard, err);
    if (rc < 0) {
        brc_array_name_chunk(r->a, outer, err);
        return rc;
    }
    return r->sink->put(r->sink->ctx, outer, (brc_span){shard->whole.data, shard->whole.len}, err);
}

static void shard_run(brc_job *job, unsigned worker)
{
    shard_out *shard = (shard_out *)job;
    shard->rc = shard_put(shard, worker, &shard->err);
}

/* Waits for a shard that was submitted, and empties it. */
static int shard_settle(stored_reader *r, shard_out *shard, brc_error *err)
{
    int rc = BRC_OK;
    if (shard->submitted) {
        brc_group_wait(r->group, &shard->job);
        rc = shard->rc;
        if (rc < 0 && err != NULL)
            brc_error_copy(err, &shard->err);
    }
    shard->submitted = 0;
    shard->ninner = 0;
    shard->bytes.len = 0;
    return rc;
}

/* Returns whether the next shard may be read while this one is put together: both must fit. */
static int shard_may_wait(const stored_reader *r, const shard_out *shard)
{
    return r->group != NULL && shard->bytes.len <= r->a->session->repo->pipe.memory / 8;
}

/* Has the shard whose chunks are all there put together. */
static int give_shard(stored_reader *r, brc_error *err)
{
    shard_out *shard = &r->shards[r->turn];
    if (shard->ninner == 0)
        return BRC_OK;
    shard->r = r;
    if (!shard_may_wait(r, shard)) {
        BRC_TRY(shard_settle(r, &r->shards[!r->turn], err));
        BRC_TRY(shard_put(shard, brc_pipe_caller(&r->a->session->repo->pipe), err));
        return shard_settle(r, shard, err);
    }
    shard->err = (brc_error)BRC_ERROR_INIT;
    shard->job.run = shard_run;
    shard->submitted = 1;
    brc_group_submit(r->group, &shard->job);
    r->turn = !r->turn;
    return shard_settle(r, &r->shards[r->turn], err);
}

static int take_inner(stored_reader *r, const brc_read_item *item, brc_error *err)
{
    if (item->number != r->shards[r->turn].number)
        BRC_TRY(give_shard(r, err));
    shard_out *shard = &r->shards[r->turn];
    shard->number = item->number;
    BRC_TRY(brc_grow_array(&shard->inner, &shard->inner_cap, shard->ninner + 1,
                           sizeof(brc_shard_inner), err));
    ((brc_shard_inner *)shard->inner)[shard->ninner++] =
        (brc_shard_inner){item->part, item->out.len, shard->bytes.len};
    return brc_buf_append(&shard->bytes, item->out.data, item->out.len, err);
}

static int stored_out_done(void *ctx, brc_read_item *item, brc_error *err)
{
    stored_reader *r = ctx;
    if (r->a->meta.nlevels > 0)
        return take_inner(r, item, err);
    return r->sink->put(r->sink->ctx, outer_of(r, item->number), item->out, err);
}

/* ---- the functions -------------------------------- */

void brc_stored_bytes(const brc_array *a, uint64_t *chunk, uint64_t *all)
{
    const brc_meta *m = &a->meta;
    size_t item = m->type != NULL && m->type->item_size > 0 ? m->type->item_size : 1;
    if (!brc_shape_bytes(m->ndim, m->grid.chunk, item, chunk))
        *chunk = 0;
    if (!brc_shape_bytes(m->ndim, a->info.shape, item, all))
        *all = 0;
}

static int read_stored(stored_reader *r, brc_error *err)
{
    breccia *repo = r->a->session->repo;
    brc_read_ops ops = {.ctx = r,
                        .ordered = 1,
                        .list = stored_out_list,
                        .open = stored_open,
                        .place = stored_place,
                        .done = r->at_once ? NULL : stored_out_done,
                        .passed = stored_out_passed,
                        .name = stored_out_name};
    uint64_t all;
    brc_stored_bytes(r->a, &r->chunk_bytes, &all);
    brc_task task = brc_task_begin(repo, "export", all);
    int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    if (rc == BRC_OK)
        rc = give_shard(r, err);
    for (int i = 0; i < 2 && rc == BRC_OK; i++)
        rc = shard_settle(r, &r->shards[(r->turn + i) % 2], err);
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
    r->at_once = sink->any_thread && a->meta.nlevels == 0;
    if (sink->any_thread && a->meta.nlevels > 0)
        BRC_GO(brc_group_new(&r->group, a->session->repo->pipe.pool, err));
    if (only == NULL)
        BRC_GO(brc_outer_cursor_start(&r->cursor, a, NULL, err));
    rc = read_stored(r, err);
done:
    brc_group_free(r->group); /* waits for what is under way */
    brc_outer_cursor_end(&r->cursor);
    for (int i = 0; i < 2; i++) {
        brc_buf_dispose(&r->shards[i].bytes);
        brc_buf_dispose(&r->shards[i].whole);
        brc_shard_layout_dispose(&r->shards[i].layout);
        free(r->shards[i].inner);
    }
    free(r->outers);
    brc_shard_chunks_dispose(&r->chunks);
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
    const brc_chunk_sink sink = {&one, keep_chunk, 0};
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
