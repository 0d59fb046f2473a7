#include "key_shard.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

#define LOOK_MOST 256     /* chunks that are looked up at once                      */
#define MISSING_MOST 4096 /* lengths that are learned between two plans             */
#define FETCH_BYTES ((size_t)16 << 20) /* stored bytes that are fetched in one transaction */

/* What is known of a chunk's bytes by having made them. */
typedef struct learned_part {
    uint64_t len, digest;
} learned_part;

void brc_key_shard_dispose(brc_key_shard *shard)
{
    brc_shard_layout_dispose(&shard->layout);
    free(shard->missing);
    free(shard->missing_at);
    brc_id_table_dispose(&shard->learned);
    memset(shard, 0, sizeof(*shard));
}

/* ---- the chunks of a shard -------------------------------- */

static int set_box(brc_key_shard *shard, const brc_array *a, const uint64_t *outer, uint64_t *n,
                   brc_error *err)
{
    memcpy(shard->outer, outer, (size_t)a->meta.ndim * sizeof(*outer));
    int rc = brc_outer_box(&a->meta, outer, shard->first, shard->count, n, err);
    if (rc < 0)
        brc_context(err, "%s", a->path);
    return rc;
}

/* Looks up n chunks of the shard that there are: parts[i] and indexes of `numbers`. */
static int look_at_parts(const brc_key_shard *shard, brc_array *a, const uint64_t *numbers,
                         size_t n, brc_key_part *parts, uint64_t *indexes, uint64_t *there,
                         size_t *nthere, brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim;
    brc_oid ids[LOOK_MOST];
    for (size_t i = 0; i < n; i++)
        brc_part_index(a->meta.ndim, shard->first, shard->count, numbers[i], indexes + i * ndim);
    BRC_TRY(brc_array_chunk_ids(a, n, indexes, ids, err));
    *nthere = 0;
    for (size_t i = 0; i < n; i++) {
        if (brc_oid_is_zero(&ids[i]))
            continue;
        memset(&parts[*nthere], 0, sizeof(parts[0]));
        parts[*nthere].object.id = ids[i];
        memmove(indexes + *nthere * ndim, indexes + i * ndim, ndim * sizeof(*indexes));
        there[(*nthere)++] = numbers[i];
    }
    BRC_TRY(brc_key_parts_look(a, parts, *nthere, indexes, err));
    for (size_t i = 0; i < *nthere; i++) {
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
    brc_key_shard shard = {0};
    uint64_t n, indexes[LOOK_MOST * BRC_MAX_NDIM];
    brc_oid ids[LOOK_MOST];
    *exists = 0;
    BRC_TRY(set_box(&shard, a, outer, &n, err));
    for (uint64_t at = 0; at < n && !*exists;) {
        size_t take = 0;
        for (; take < LOOK_MOST && at < n; take++, at++)
            brc_part_index(a->meta.ndim, shard.first, shard.count, at,
                          indexes + take * (size_t)a->meta.ndim);
        BRC_TRY(brc_array_chunk_ids(a, take, indexes, ids, err));
        for (size_t i = 0; i < take; i++)
            *exists |= !brc_oid_is_zero(&ids[i]);
    }
    return BRC_OK;
}

/* ---- planning -------------------------------- */

#define ABSENT UINT64_MAX

typedef struct shard_lengths {
    const brc_key_shard *shard;
    int ndim;
    uint64_t *of; /* each chunk's, by its number; ABSENT: there is none */
} shard_lengths;

static int length_of_part(void *ctx, const uint64_t *index, uint64_t *part, uint64_t *len,
                          int *there, brc_error *err)
{
    const shard_lengths *l = ctx;
    (void)err;
    *part = brc_part_number(l->ndim, l->shard->first, l->shard->count, index);
    *there = l->of[*part] != ABSENT;
    *len = *there ? l->of[*part] : 0;
    return BRC_OK;
}

/* The tag so far, and one more chunk: its id, its length and its bytes' checksum. */
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

static int note_missing(brc_key_shard *shard, const brc_key_part *part, const uint64_t *index,
                        size_t ndim, brc_error *err)
{
    void *p;
    if (shard->nmissing == MISSING_MOST)
        return BRC_OK;
    if (shard->missing == NULL) {
        BRC_TRY(brc_new_array(&p, MISSING_MOST, sizeof(brc_key_part), err));
        shard->missing = p;
    }
    if (shard->missing_at == NULL) {
        BRC_TRY(brc_new_array(&p, MISSING_MOST * ndim, sizeof(uint64_t), err));
        shard->missing_at = p;
    }
    memcpy(shard->missing_at + shard->nmissing * ndim, index, ndim * sizeof(*index));
    shard->missing[shard->nmissing++] = *part;
    return BRC_OK;
}

/* Every chunk's length, the tag, and what is missing. */
static int measure_shard(brc_key_shard *shard, brc_array *a, uint64_t n, uint64_t *lengths,
                         brc_error *err)
{
    const size_t ndim = (size_t)a->meta.ndim;
    void *parts = NULL, *indexes = NULL;
    uint64_t numbers[LOOK_MOST], there[LOOK_MOST];
    size_t nthere;
    int rc;
    BRC_GO(brc_new_array(&parts, LOOK_MOST, sizeof(brc_key_part), err));
    BRC_GO(brc_new_array(&indexes, LOOK_MOST * ndim, sizeof(uint64_t), err));
    memset(&shard->tag, 0, sizeof(shard->tag));
    shard->nmissing = 0;
    for (uint64_t at = 0; at < n; at += LOOK_MOST) {
        const size_t take = n - at < LOOK_MOST ? (size_t)(n - at) : LOOK_MOST;
        for (size_t i = 0; i < take; i++) {
            numbers[i] = at + i;
            lengths[at + i] = ABSENT;
        }
        BRC_GO(brc_store_check_interrupt(brc_array_store(a), err));
        BRC_GO(look_at_parts(shard, a, numbers, take, parts, indexes, there, &nthere, err));
        for (size_t i = 0; i < nthere; i++) {
            const brc_key_part *part = (brc_key_part *)parts + i;
            if (!part->is_known)
                BRC_GO(note_missing(shard, part, (uint64_t *)indexes + i * ndim, ndim, err));
            lengths[there[i]] = part->len;
            tag_part(&shard->tag, there[i], part);
        }
    }
done:
    free(parts);
    free(indexes);
    return rc;
}

static int plan_shard(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err)
{
    void *lengths = NULL;
    brc_scratch *scratch;
    uint64_t n;
    int rc;
    brc_pipe *pipe = &a->session->repo->pipe;
    BRC_GO(set_box(shard, a, outer, &n, err));
    BRC_GO(brc_new_array(&lengths, (size_t)n, sizeof(uint64_t), err));
    BRC_GO(measure_shard(shard, a, n, lengths, err));
    if (shard->nmissing > 0)
        goto done;
    shard_lengths l = {shard, a->meta.ndim, lengths};
    const brc_shard_source source = {&l, length_of_part};
    BRC_GO(brc_pipe_scratch(pipe, brc_pipe_caller(pipe), &scratch, err));
    BRC_GO(brc_shard_lay_out(&shard->layout, &a->meta, scratch, outer, &source, err));
    shard->version = a->version;
    shard->changes = a->changes;
    shard->is_planned = 1;
done:
    free(lengths);
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

/* As many of the missing parts from `from` on as fit into one fetch; within the transaction. */
static int fetch_missing(brc_key_shard *shard, const brc_array *a, size_t from, size_t *to,
                         brc_buf *stored, brc_error *err)
{
    stored->len = 0;
    for (*to = from; *to < shard->nmissing; (*to)++) {
        if (stored->len > 0 && stored->len + shard->missing[*to].object.stored > FETCH_BYTES)
            break;
        BRC_TRY(brc_key_part_fetch(a, &shard->missing[*to], stored, err));
    }
    return BRC_OK;
}

static int learn_fetched(brc_key_shard *shard, const brc_array *a, size_t from, size_t to,
                         const brc_buf *stored, brc_error *err)
{
    brc_buf out = BRC_BUF_INIT;
    size_t at = 0;
    int rc = BRC_OK;
    for (size_t i = from; i < to && rc == BRC_OK; i++) {
        brc_key_part *part = &shard->missing[i];
        brc_buf bytes = {.data = stored->data + at,
                         .len = (size_t)part->object.stored,
                         .flags = BRC_BUF_FIXED};
        at += bytes.len;
        out.len = 0;
        rc = brc_key_part_transcode(a, part, &bytes, &out, err);
        if (rc < 0)
            brc_array_name_chunk(a, shard->missing_at + i * (size_t)a->meta.ndim, err);
        else
            rc = learn_part(shard, part, err);
    }
    brc_buf_dispose(&out);
    return rc;
}

/* Ends the transaction. No two objects have one id, so what is read in several transactions is
 * as right as in one. */
static int learn_missing(brc_key_shard *shard, brc_array *a, brc_error *err)
{
    brc_buf stored = BRC_BUF_INIT;
    size_t from = 0, to;
    int rc = BRC_OK;
    while (rc == BRC_OK && from < shard->nmissing) {
        rc = fetch_missing(shard, a, from, &to, &stored, err);
        brc_array_end_read(a);
        if (rc == BRC_OK)
            rc = learn_fetched(shard, a, from, to, &stored, err);
        if (rc == BRC_OK)
            brc_key_parts_remember(a, shard->missing + from, to - from);
        from = to;
        if (rc == BRC_OK && from < shard->nmissing)
            rc = brc_store_begin_read(brc_array_store(a), err);
    }
    brc_buf_dispose(&stored);
    return rc;
}

int brc_key_shard_plan(brc_key_shard *shard, brc_array *a, const uint64_t *outer, brc_error *err)
{
    if (shard->is_planned && shard->version == a->version && shard->changes == a->changes &&
        memcmp(shard->outer, outer, (size_t)a->meta.ndim * sizeof(*outer)) == 0)
        return 1;
    shard->is_planned = 0;
    if (brc_oid_cmp(&shard->doc, &a->meta_doc) != 0) /* other codecs, perhaps */
        brc_id_table_dispose(&shard->learned);
    shard->doc = a->meta_doc;
    int rc = plan_shard(shard, a, outer, err);
    if (rc < 0) {
        brc_array_end_read(a);
        return rc;
    }
    return shard->is_planned ? 1 : learn_missing(shard, a, err);
}

/* ---- reading -------------------------------- */

/* What a range takes of one slot. */
typedef struct slot_piece {
    const brc_shard_slot *slot;
    brc_key_part part;
    uint64_t index[BRC_MAX_NDIM];
    size_t stored_at; /* in the fetched bytes */
} slot_piece;

typedef struct shard_range {
    brc_key_shard *shard;
    brc_array *a;
    uint64_t start, end;
    slot_piece *pieces; /* chunks among the slots that the range meets */
    size_t n;
    size_t first, last; /* those slots */
    brc_buf stored;
} shard_range;

/* The first slot that ends behind `start`. */
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

static int find_slots(shard_range *r, brc_error *err)
{
    void *p;
    const brc_shard_slot *slots = r->shard->layout.slots;
    size_t n = 0;
    r->first = first_slot(&r->shard->layout, r->start);
    for (r->last = r->first; r->last < r->shard->layout.n && slots[r->last].at < r->end; r->last++)
        n += !slots[r->last].is_index;
    BRC_TRY(brc_new_array(&p, n, sizeof(slot_piece), err));
    r->pieces = p;
    for (size_t i = r->first; i < r->last; i++)
        if (!slots[i].is_index)
            r->pieces[r->n++].slot = &slots[i];
    return BRC_OK;
}

/* Within the transaction: what the range needs of the file. */
static int fetch_pieces(shard_range *r, brc_error *err)
{
    for (size_t i = 0; i < r->n; i++) {
        slot_piece *piece = &r->pieces[i];
        const uint64_t number = piece->slot->part;
        uint64_t there;
        size_t nthere;
        BRC_TRY(look_at_parts(r->shard, r->a, &number, 1, &piece->part, piece->index, &there,
                              &nthere, err));
        if (nthere == 0)
            return brc_fail(err, BRC_EINTERNAL, "a planned shard has lost a chunk");
        piece->stored_at = r->stored.len;
        int rc = brc_key_part_fetch(r->a, &piece->part, &r->stored, err);
        if (rc < 0) {
            brc_array_name_chunk(r->a, piece->index, err);
            return rc;
        }
    }
    return BRC_OK;
}

/* Appends what the range takes of a slot, whose bytes are `data`. */
static int give_slot(const shard_range *r, const brc_shard_slot *slot, const uint8_t *data,
                     brc_buf *out, brc_error *err)
{
    const uint64_t from = r->start > slot->at ? r->start - slot->at : 0;
    const uint64_t to = r->end - slot->at < slot->len ? r->end - slot->at : slot->len;
    return from < to ? brc_buf_append(out, data + from, (size_t)(to - from), err) : BRC_OK;
}

/* 0 where the chunk has other bytes than was thought. */
static int give_piece(const shard_range *r, slot_piece *piece, brc_buf *room, brc_buf *out,
                      brc_error *err)
{
    brc_buf stored = {.data = r->stored.data + piece->stored_at,
                      .len = (size_t)piece->part.object.stored,
                      .flags = BRC_BUF_FIXED};
    const brc_buf *bytes = &stored;
    const uint64_t digest = piece->part.digest;
    if (brc_key_part_passes(&piece->part)) {
        BRC_TRY(brc_key_part_check(&piece->part, &stored, err));
    } else {
        room->len = 0;
        BRC_TRY(brc_key_part_transcode(r->a, &piece->part, &stored, room, err));
        bytes = room;
    }
    if (bytes->len != piece->slot->len || piece->part.digest != digest) {
        BRC_TRY(learn_part(r->shard, &piece->part, err));
        brc_key_parts_remember(r->a, &piece->part, 1);
        return 0;
    }
    BRC_TRY(give_slot(r, piece->slot, bytes->data, out, err));
    return 1;
}

static int give_range(const shard_range *r, brc_buf *out, brc_error *err)
{
    const brc_shard_slot *slots = r->shard->layout.slots;
    brc_buf room = BRC_BUF_INIT;
    slot_piece *piece = r->pieces;
    int rc = 1;
    for (size_t i = r->first; i < r->last && rc > 0; i++) {
        if (slots[i].is_index) {
            rc = give_slot(r, &slots[i], r->shard->layout.indexes.data + slots[i].part, out, err);
            rc = rc < 0 ? rc : 1;
            continue;
        }
        rc = give_piece(r, piece, &room, out, err);
        if (rc < 0)
            brc_array_name_chunk(r->a, piece->index, err);
        piece++;
    }
    brc_buf_dispose(&room);
    return rc;
}

int brc_key_shard_read(brc_key_shard *shard, brc_array *a, uint64_t start, uint64_t end,
                       brc_buf *out, brc_error *err)
{
    shard_range r = {.shard = shard, .a = a, .start = start, .end = end};
    const size_t before = out->len;
    int rc = find_slots(&r, err);
    if (rc == BRC_OK)
        rc = fetch_pieces(&r, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        rc = give_range(&r, out, err);
    if (rc == 0) {
        shard->is_planned = 0;
        out->len = before;
    }
    free(r.pieces);
    brc_buf_dispose(&r.stored);
    return rc;
}
