#include "key_shard.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "key_part.h"

/* ==== key pieces ================================ */

void brc_key_pieces_dispose(brc_key_pieces *pieces)
{
    free(pieces->items);
    free(pieces->indexes);
    memset(pieces, 0, sizeof(*pieces));
}

int brc_key_pieces_add(brc_key_pieces *pieces, const brc_array *a, const brc_key_part *part,
                       const uint64_t *index, brc_key_piece **out, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim, n = pieces->n;
    BRC_TRY(brc_grow_array(&pieces->items, &pieces->cap, n + 1, sizeof(brc_key_piece), err));
    BRC_TRY(brc_grow_array(&pieces->indexes, &pieces->indexes_cap, (n + 1) * ndim,
                           sizeof(uint64_t), err));
    *out = brc_key_piece_at(pieces, n);
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
    const brc_key_pieces *pieces;
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
        items[*n].object = brc_key_piece_at(r->pieces, r->listed)->part.object;
        items[*n].number = r->listed++;
    }
    return BRC_OK;
}

static int key_piece_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    return brc_key_part_item(item, r->a, index_of_piece(r, item->number), err);
}

static int key_piece_place(void *ctx, brc_read_item *item, const uint8_t *data,
                           brc_scratch *scratch, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_key_piece *piece = brc_key_piece_at(r->pieces, item->number);
    const brc_key_part before = piece->part;
    BRC_TRY(brc_key_part_place(item, data, scratch, err));
    brc_key_part_measure(&piece->part, item->out);
    piece->is_other = before.is_known && (item->out.len != before.len ||
                                          piece->part.digest != before.digest);
    piece->is_new = piece->is_other || !before.is_known;
    if (piece->whole != NULL)
        return brc_buf_append(piece->whole, item->out.data, item->out.len, err);
    if (piece->to != NULL && !piece->is_other)
        memcpy(piece->to, item->out.data + piece->start, (size_t)(piece->end - piece->start));
    return BRC_OK;
}

static int key_piece_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    (void)item;
    return brc_store_check_interrupt(brc_array_store(r->a), err);
}

static void key_piece_name(void *ctx, const brc_read_item *item, brc_error *err)
{
    const pieces_reader *r = ctx;
    brc_array_name_chunk(r->a, index_of_piece(r, item->number), err);
}

int brc_key_pieces_read(brc_key_pieces *pieces, brc_array *a, brc_error *err)
{
    pieces_reader r = {a, pieces, 0};
    const brc_read_ops ops = {.ctx = &r,
                              .list = pieces_list,
                              .open = key_piece_open,
                              .place = key_piece_place,
                              .passed = key_piece_passed,
                              .name = key_piece_name};
    return pieces->n > 0 ? brc_flow_read(&a->session->repo->pipe, brc_array_store(a), &ops, err)
                         : BRC_OK;
}

/* Stores new lengths in the derived table. Outside of the transaction. */
static int key_pieces_remember(const brc_key_pieces *pieces, const brc_array *a, brc_error *err)
{
    void *p;
    size_t n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        n += (size_t)brc_key_piece_at(pieces, i)->is_new;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_new_array(&p, n, sizeof(brc_key_part *), err));
    const brc_key_part **parts = p;
    n = 0;
    for (size_t i = 0; i < pieces->n; i++)
        if (brc_key_piece_at(pieces, i)->is_new)
            parts[n++] = &brc_key_piece_at(pieces, i)->part;
    brc_key_parts_remember(a, parts, n);
    free(p);
    return BRC_OK;
}

/* ==== key shard ================================ */

#define LOOK_MOST 256     /* chunks that are looked up at once                      */
#define MISSING_MOST 4096 /* lengths that are learned between two plans             */

/* The properties of a chunk's bytes that were learned by making them. */
typedef struct learned_part {
    uint64_t len, digest;
} learned_part;

void brc_key_shard_dispose(brc_key_shard *shard)
{
    brc_shard_layout_dispose(&shard->layout);
    brc_key_pieces_dispose(&shard->missing);
    brc_id_table_dispose(&shard->learned);
    memset(shard, 0, sizeof(*shard));
}

/* ---- the chunks of a shard -------------------------------- */

/* Looks up n chunks, whose ids are given, in the array's encoding. */
static int look_at_parts(const brc_key_shard *shard, brc_array *a, const uint64_t *indexes,
                         const brc_oid *ids, size_t n, brc_key_part *parts, brc_error *err)
{
    memset(parts, 0, n * sizeof(*parts));
    for (size_t i = 0; i < n; i++)
        parts[i].object.id = ids[i];
    BRC_TRY(brc_key_parts_look(a, parts, n, indexes, err));
    for (size_t i = 0; i < n; i++) {
        const learned_part *learned =
            parts[i].is_known && parts[i].how != BRC_PART_ENCODED
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

int brc_key_chunk_exists(int *exists, brc_array *a, const uint64_t *outer, brc_error *err)
{
    brc_shard_chunks chunks = {0};
    int rc = brc_shard_chunks_find(&chunks, a, outer, err);
    *exists = chunks.n > 0;
    brc_shard_chunks_dispose(&chunks);
    return rc;
}

/* ---- planning -------------------------------- */

typedef struct shard_lengths {
    const brc_shard_chunks *chunks;
    int ndim;
    uint64_t *of; /* of each chunk */
} shard_lengths;

static int chunk_number_order(const void *a, const void *b)
{
    const brc_shard_chunk *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static int length_of_part(void *ctx, const uint64_t *index, uint64_t *part, uint64_t *len,
                          int *there, brc_error *err)
{
    const shard_lengths *l = ctx;
    const brc_shard_chunk *all = l->chunks->items;
    const brc_shard_chunk key = {
        .number = brc_part_number(l->ndim, l->chunks->first, l->chunks->count, index)};
    (void)err;
    const brc_shard_chunk *one =
        l->chunks->n > 0 ? bsearch(&key, all, l->chunks->n, sizeof(key), chunk_number_order) : NULL;
    *part = key.number;
    *there = one != NULL;
    *len = one != NULL ? l->of[one - all] : 0;
    return BRC_OK;
}

/* Extends the tag by one more chunk: its id, its length and its bytes' checksum. */
static void tag_part(brc_oid *tag, uint64_t number, const brc_key_part *part)
{
    uint8_t bytes[16 + 32 + 24];
    memcpy(bytes, tag->bytes, 16);
    memcpy(bytes + 16, part->object.id.bytes, 32);
    brc_put_u64le(bytes + 48, number);
    brc_put_u64le(bytes + 56, part->len);
    brc_put_u64le(bytes + 64, part->digest);
    *tag = brc_hash_object(BRC_HASH_XXH128, BRC_KIND_LOOSE, bytes, sizeof(bytes));
}

static int note_missing(brc_key_shard *shard, const brc_array *a, const brc_key_part *part,
                        const uint64_t *index, brc_error *err)
{
    brc_key_piece *piece;
    return shard->missing.n < MISSING_MOST
               ? brc_key_pieces_add(&shard->missing, a, part, index, &piece, err)
               : BRC_OK;
}

/* Computes every chunk's length and the tag, and lists the missing lengths. */
static int measure_shard(brc_key_shard *shard, brc_array *a, const brc_shard_chunks *chunks,
                         uint64_t *lengths, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim;
    const brc_shard_chunk *all = chunks->items;
    const size_t most = chunks->n < LOOK_MOST ? chunks->n : LOOK_MOST;
    void *room = NULL;
    uint64_t indexes[LOOK_MOST * BRC_MAX_NDIM];
    brc_oid ids[LOOK_MOST];
    int rc;
    BRC_GO(brc_new_array(&room, most, sizeof(brc_key_part), err));
    const brc_key_part *parts = room;
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
            lengths[at + i] = parts[i].len;
            tag_part(&shard->tag, all[at + i].number, &parts[i]);
        }
    }
done:
    free(room);
    return rc;
}

static int plan_shard(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err)
{
    brc_shard_chunks chunks = {0};
    void *lengths = NULL;
    brc_scratch *scratch;
    int rc;
    brc_pipe *pipe = &a->session->repo->pipe;
    BRC_GO(brc_shard_chunks_find(&chunks, a, outer, err));
    memcpy(shard->outer, outer, (size_t)a->meta.ndim * sizeof(*outer));
    memcpy(shard->first, chunks.first, sizeof(shard->first));
    memcpy(shard->count, chunks.count, sizeof(shard->count));
    BRC_GO(brc_new_array(&lengths, chunks.n, sizeof(uint64_t), err));
    BRC_GO(measure_shard(shard, a, &chunks, lengths, err));
    if (shard->missing.n > 0)
        goto done;
    shard_lengths l = {&chunks, a->meta.ndim, lengths};
    const brc_shard_source source = {&l, chunks.end, length_of_part};
    BRC_GO(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    BRC_GO(brc_shard_lay_out(&shard->layout, &a->meta, scratch, outer, &source, err));
    shard->version = a->version;
    shard->changes = a->changes;
    shard->is_planned = 1;
done:
    free(lengths);
    brc_shard_chunks_dispose(&chunks);
    return rc;
}

/* ---- learning -------------------------------- */

static int learn_part(brc_key_shard *shard, const brc_key_part *part, brc_error *err)
{
    void *value;
    shard->learned.value_size = sizeof(learned_part);
    BRC_TRY(brc_id_table_add(&shard->learned, &part->object.id, &value, err));
    *(learned_part *)value = (learned_part){part->len, part->digest};
    return BRC_OK;
}

int brc_key_shard_settle(brc_key_shard *shard, const brc_array *a, const brc_key_pieces *pieces,
                         brc_error *err)
{
    int rc = 1;
    for (size_t i = 0; i < pieces->n; i++) {
        const brc_key_piece *piece = brc_key_piece_at(pieces, i);
        if (piece->is_new)
            BRC_TRY(learn_part(shard, &piece->part, err));
        if (piece->is_other)
            rc = shard->is_planned = 0;
    }
    BRC_TRY(key_pieces_remember(pieces, a, err));
    return rc;
}

/* Learns lengths. No two objects have one id, so a learned length stays valid whatever happens
 * meanwhile. */
int brc_key_shard_learn(brc_key_shard *shard, brc_array *a, brc_error *err)
{
    int rc = brc_key_pieces_read(&shard->missing, a, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = brc_key_shard_settle(shard, a, &shard->missing, err);
    return rc < 0 ? rc : BRC_OK;
}

int brc_key_shard_plan(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err)
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
    brc_key_part *parts;
    uint64_t *indexes;
} slot_batch;

typedef struct shard_range {
    brc_key_shard *shard;
    brc_array *a;
    uint64_t start, end;
    uint8_t *to;
    size_t request;
    brc_key_pieces *pieces;
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
    brc_key_piece *piece;
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
        BRC_TRY(brc_key_pieces_add(r->pieces, r->a, &b->parts[i], b->indexes + i * ndim, &piece,
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
        rc = brc_new_array(&p[1], b->most, sizeof(brc_key_part), err);
    if (rc == BRC_OK)
        rc = brc_new_array(&p[2], b->most * (ndim > 0 ? ndim : 1), sizeof(uint64_t), err);
    b->slots = p[0];
    b->parts = p[1];
    b->indexes = p[2];
    return rc;
}

int brc_key_shard_pieces(brc_key_shard *shard, brc_array *a, uint64_t start, uint64_t end,
                         uint8_t *to, size_t request, brc_key_pieces *pieces, brc_error *err)
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
