#include "assembly.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/arena.h"
#include "../flow/write.h"
#include "element_chunk.h"
#include "old_chunks.h"
#include "span_table.h"

#define PIECE_MOST ((size_t)4 << 20)

typedef struct assembly {
    brc_array *a;
    const brc_piece_source *source;
    brc_box_set boxes;
    brc_arena arena;       /* pieces, and their lists of boxes                            */
    brc_piece *free_pieces;
    brc_piece *held;       /* the next one, with its bytes: there was no room for it yet  */
    brc_buf held_bytes;
    uint64_t last[BRC_MAX_NDIM]; /* place of the piece before                             */
    int any, ended;
    int in_turn;           /* pieces are not in order: later ones are laid over earlier ones */
    size_t piece_bytes;    /* of the pieces in a job                                      */
    size_t on_the_way;     /* items that are not done                                     */
    size_t coming, guess;  /* elements of variable length: bytes of the pieces that are not
                              done, about, and of one                                     */
} assembly;

/* Small ones, but not so small that those of one box fill the window. */
static size_t choose_piece_bytes(const assembly *as)
{
    const brc_pipe *pipe = &as->a->session->repo->pipe;
    size_t bytes = as->boxes.bytes / 8 / pipe->nworkers, most = pipe->memory / 8;
    if (bytes < BRC_WRITE_BYTES)
        bytes = BRC_WRITE_BYTES;
    if (bytes > PIECE_MOST)
        bytes = PIECE_MOST;
    return bytes < most ? bytes : most;
}

/* ---- chunks that are complete -------------------------------- */

static int list_complete(assembly *as, brc_box_of_chunks *box, uint64_t number,
                         brc_write_item *item, brc_old_chunks *old, brc_error *err)
{
    brc_region_part part;
    uint64_t index[BRC_MAX_NDIM];
    const int over_old = box->chunks[number] == BRC_CHUNK_READ;
    brc_box_index(&as->boxes, box, number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    BRC_TRY(brc_array_item(as->a, part.chunk, item, err));
    item->len = as->boxes.room;
    item->owner = box;
    item->number = number;
    box->chunks[number] = BRC_CHUNK_LISTED;
    box->writing++;
    as->on_the_way++;
    /* Elements of a fixed size are already laid over what was there. */
    if (as->boxes.is_table ? part.overlap.whole && !over_old : part.overlap.whole || over_old)
        return BRC_OK;
    return brc_old_add(old, as->a, item, index, err);
}

/* Boxes in the order in which they were closed; a job's worth of chunks. */
static int list_closed(assembly *as, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    brc_old_chunks old = {.n = 0};
    brc_box_of_chunks *box;
    size_t bytes = 0;
    while (*n < cap && bytes < BRC_WRITE_BYTES && (box = brc_boxes_closed(&as->boxes)) != NULL &&
           box->pieces == 0) {
        uint64_t number = box->next++;
        if (box->chunks[number] == BRC_CHUNK_TOUCHED || box->chunks[number] == BRC_CHUNK_READ) {
            BRC_TRY(list_complete(as, box, number, &items[(*n)++], &old, err));
            bytes += as->boxes.room;
        }
        brc_box_leave(&as->boxes, box);
    }
    return brc_old_find(&old, as->a, err);
}

/* ---- pieces -------------------------------- */

static int piece_new(assembly *as, brc_piece **out, brc_error *err)
{
    brc_piece *piece = as->free_pieces;
    if (piece != NULL) {
        as->free_pieces = piece->next_free;
    } else {
        piece = brc_arena_take(&as->arena, sizeof(*piece));
        if (piece == NULL)
            return brc_nomem(err);
        piece->boxes = NULL;
        piece->boxes_cap = 0;
    }
    piece->nboxes = 0;
    piece->after = 0;
    piece->offset = 0;
    piece->kept = NULL;
    piece->chain = NULL;
    piece->skip = 0;
    memset(&piece->object, 0, sizeof(piece->object));
    piece->len = as->piece_bytes;
    *out = piece;
    return BRC_OK;
}

static void piece_free(assembly *as, brc_piece *piece)
{
    piece->next_free = as->free_pieces;
    as->free_pieces = piece;
}

/* The decoded bytes of elements of variable length, if the source does not know them. */
static size_t guess_len(const assembly *as, const brc_piece *piece)
{
    const size_t stored = as->held_bytes.len + (size_t)piece->object.stored;
    size_t len = piece->len > 0 ? piece->len : as->guess;
    return len > stored ? len : stored;
}

/* The longest of the recent ones. */
static void learn_len(assembly *as, size_t len)
{
    as->guess = len > as->guess ? len : as->guess - (as->guess - len) / 8;
}

/* as->held is the next piece: 1; 0 at the end, where all boxes are closed. */
static int piece_pull(assembly *as, brc_error *err)
{
    brc_piece *piece = NULL;
    if (as->held != NULL)
        return 1;
    BRC_TRY(piece_new(as, &piece, err));
    as->held_bytes.len = 0;
    int rc = as->source->next(as->source->ctx, piece, &as->held_bytes, err);
    if (rc <= 0) {
        as->ended = rc == 0;
        brc_boxes_close(&as->boxes, NULL);
        return rc;
    }
    if (as->any && brc_index_order(as->a->meta.ndim, piece->at, as->last) < 0)
        as->boxes.again = as->in_turn = 1;
    if (as->boxes.is_table)
        piece->len = guess_len(as, piece);
    as->any = 1;
    as->in_turn |= piece->after;
    memcpy(as->last, piece->at, sizeof(as->last));
    as->boxes.piece++;
    brc_boxes_close(&as->boxes, piece->at);
    brc_boxes_met(&as->boxes, &piece->region, piece->first, piece->count);
    as->held = piece;
    return 1;
}

/* Room for the list of boxes that it meets. */
static int piece_boxes(assembly *as, brc_piece *piece, brc_error *err)
{
    uint64_t n = brc_shape_count(as->a->meta.ndim, piece->count);
    piece->nboxes = 0;
    if (n <= piece->boxes_cap)
        return BRC_OK;
    if (n > SIZE_MAX / sizeof(*piece->boxes) / 2)
        return brc_nomem(err);
    piece->boxes = brc_arena_take(&as->arena, (size_t)n * sizeof(*piece->boxes));
    if (piece->boxes == NULL)
        return brc_nomem(err);
    piece->boxes_cap = (size_t)n;
    return BRC_OK;
}

/* 1 if all boxes are open that it meets, 0 if it must wait. */
static int piece_open(assembly *as, brc_piece *piece, brc_error *err)
{
    uint64_t at[BRC_MAX_NDIM] = {0}, box[BRC_MAX_NDIM];
    if (as->boxes.is_table && !brc_boxes_have_room(&as->boxes, as->coming, piece->len))
        return 0;
    BRC_TRY(piece_boxes(as, piece, err));
    do {
        for (int i = 0; i < as->a->meta.ndim; i++)
            box[i] = piece->first[i] + at[i];
        brc_box_of_chunks **out = &piece->boxes[piece->nboxes];
        int rc = brc_boxes_open(&as->boxes, &as->source->order, box, out, err);
        if (rc <= 0)
            return rc;
        if (as->in_turn && (*out)->pieces > 0)
            return 0;
        piece->nboxes++;
    } while (brc_index_next(as->a->meta.ndim, at, piece->count));
    for (size_t i = 0; i < piece->nboxes; i++)
        BRC_TRY(brc_boxes_touch(&as->boxes, piece->boxes[i], &piece->region, err));
    return 1;
}

/* Its bytes go straight into the chunk, which is then complete. */
static int list_in_place(assembly *as, brc_piece *piece, brc_write_item *item, brc_error *err)
{
    brc_old_chunks old = {.n = 0};
    brc_box_of_chunks *box = piece->boxes[0];
    const uint64_t *index = piece->region.first;
    uint64_t number = brc_box_number(&as->boxes, box, index);
    uint8_t *data = brc_box_chunk(&as->boxes, box, index);
    BRC_TRY(as->source->read(as->source->ctx, data, piece->len, err));
    if (as->source->swaps)
        brc_dtype_swap(as->a->meta.type, data, data, piece->len / as->boxes.unit);
    piece_free(as, piece);
    BRC_TRY(list_complete(as, box, number, item, &old, err));
    return brc_old_find(&old, as->a, err);
}

static int list_piece(assembly *as, brc_piece *piece, brc_write_item *item, brc_error *err)
{
    brc_buf bytes = item->stored;
    item->stored = as->held_bytes;
    as->held_bytes = bytes;
    item->is_piece = 1;
    item->owner = piece;
    item->old = piece->object;
    if (as->source->read != NULL) {
        BRC_TRY(brc_buf_reserve(&item->stored, piece->len, err));
        BRC_TRY(as->source->read(as->source->ctx, item->stored.data, piece->len, err));
        item->stored.len = piece->len;
    }
    item->len = piece->chain != NULL ? piece->len : 0;
    if (as->boxes.is_table)
        BRC_TRY(brc_boxes_keep(piece->boxes, piece->nboxes, &piece->kept, err));
    for (size_t i = 0; i < piece->nboxes; i++)
        piece->boxes[i]->pieces++;
    as->coming += piece->len;
    as->on_the_way++;
    return BRC_OK;
}

static int list_pieces(assembly *as, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    size_t bytes = 0;
    while (*n < cap && bytes < as->piece_bytes && !as->ended) {
        int rc = piece_pull(as, err);
        if (rc > 0)
            rc = piece_open(as, as->held, err);
        if (rc <= 0)
            return rc;
        brc_piece *piece = as->held;
        bytes += piece->len;
        as->held = NULL;
        BRC_TRY(as->source->is_chunk ? list_in_place(as, piece, &items[*n], err)
                                     : list_piece(as, piece, &items[*n], err));
        ++*n;
    }
    return BRC_OK;
}

/* Complete chunks first, because others wait for their memory. */
static int assembly_list(void *ctx, brc_write_item *items, size_t cap, size_t *n, brc_error *err)
{
    assembly *as = ctx;
    *n = 0;
    BRC_TRY(brc_task_step(as->a->session->repo, 0, err));
    for (;;) {
        BRC_TRY(list_closed(as, items, cap, n, err));
        if (*n == 0)
            BRC_TRY(list_pieces(as, items, cap, n, err));
        if (*n > 0 || (as->ended && as->boxes.active == 0))
            return BRC_OK;
        if (as->on_the_way > 0)
            return BRC_WINDOW_LATER;
    }
}

/* ---- on the pool -------------------------------- */

/* Where a chunk of a piece is in the piece's boxes. */
static uint8_t *chunk_of_piece(const assembly *as, const brc_piece *piece, const uint64_t *index)
{
    const brc_box_set *set = &as->boxes;
    size_t number = 0;
    for (int i = 0; i < as->a->meta.ndim; i++)
        number = number * (size_t)piece->count[i] +
                 (size_t)((index[i] - set->region.first[i]) / set->extent[i] - piece->first[i]);
    return brc_box_chunk(set, piece->boxes[number], index);
}

/* The elements, or their spans, to where the chunks of the piece's boxes are. */
static void lay_elements(const assembly *as, const brc_piece *piece, const uint8_t *elements)
{
    const brc_region *r = &piece->region;
    brc_region_part part;
    for (uint64_t i = 0; i < r->nchunks; i++) {
        brc_region_part_of(&part, as->a, r, i);
        uint8_t *chunk = chunk_of_piece(as, piece, part.index);
        brc_copy_box(as->a->meta.ndim, part.overlap.count, as->boxes.unit, chunk + part.in_chunk,
                     part.strides, elements + part.in_memory, r->strides);
    }
}

/* The bytes change hands: the boxes keep them. */
static int lay_spans(const assembly *as, const brc_piece *piece, brc_buf *bytes, brc_error *err)
{
    void *table;
    piece->kept->bytes = *bytes;
    *bytes = (brc_buf)BRC_BUF_INIT;
    const brc_span packed = {piece->kept->bytes.data, piece->kept->bytes.len};
    BRC_TRY(brc_new_array(&table, (size_t)piece->elements, sizeof(brc_span), err));
    int rc = brc_elements_find(table, piece->elements, packed, NULL);
    if (rc < 0)
        rc = brc_fail(err, BRC_ECORRUPT, "its elements are damaged");
    else
        lay_elements(as, piece, (const uint8_t *)table + piece->offset);
    free(table);
    return rc;
}

/* *bytes, which are the stored ones, become the decoded ones. */
static int decode_piece(const assembly *as, brc_write_item *item, brc_scratch *scratch,
                        brc_buf **bytes, brc_error *err)
{
    const brc_piece *piece = item->owner;
    brc_buf *stored = &item->stored;
    if (item->old.found)
        BRC_TRY(brc_object_verify(&item->old, stored->data, err));
    if (piece->skip > 0) {
        stored->len -= piece->skip;
        memmove(stored->data, stored->data + piece->skip, stored->len);
    }
    if (piece->chain == NULL)
        return BRC_OK;
    *bytes = &item->own;
    if (!as->boxes.is_table)
        BRC_TRY(brc_buf_reserve(&item->own, piece->len, err));
    return brc_chain_decode(piece->chain, scratch, (brc_span){stored->data, stored->len},
                            &item->own, err);
}

static int lay_down(const assembly *as, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const brc_piece *piece = item->owner;
    brc_buf *bytes = &item->stored;
    BRC_TRY(decode_piece(as, item, scratch, &bytes, err));
    if (as->boxes.is_table)
        return lay_spans(as, piece, bytes, err);
    if (bytes->len != piece->len)
        return brc_fail(err, BRC_ECORRUPT, "it decodes to %zu bytes, not %zu", bytes->len,
                        piece->len);
    if (as->source->swaps)
        brc_dtype_swap(as->a->meta.type, bytes->data, bytes->data, bytes->len / as->boxes.unit);
    lay_elements(as, piece, bytes->data + piece->offset);
    return BRC_OK;
}

/* What is selected of the chunk, laid over what was there. */
static int gather_over(const assembly *as, brc_write_item *item, const brc_region_part *part,
                       const uint8_t *data, brc_scratch *scratch, brc_error *err)
{
    BRC_TRY(brc_write_old(item, scratch, &item->own, err));
    if (item->own.len != item->len)
        return brc_fail(err, BRC_ECORRUPT, "its bytes have the wrong length");
    brc_copy_box(as->a->meta.ndim, part->overlap.count, as->boxes.unit,
                 item->own.data + part->in_chunk, part->strides, data + part->in_chunk,
                 part->strides);
    return BRC_OK;
}

static int assembly_gather(void *ctx, brc_write_item *item, brc_scratch *scratch, brc_error *err)
{
    const assembly *as = ctx;
    const brc_dtype *type = as->a->meta.type;
    const brc_box_of_chunks *box = item->owner;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_part part;
    if (item->is_piece)
        return lay_down(as, item, scratch, err);
    brc_box_index(&as->boxes, box, item->number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    uint8_t *data = brc_box_chunk(&as->boxes, box, index);
    if (as->boxes.is_table)
        return brc_gather_elements(item, (brc_span *)(void *)data, &as->a->meta, scratch, err);
    item->len = (size_t)part.elements * as->boxes.unit;
    if (item->old.found) {
        BRC_TRY(gather_over(as, item, &part, data, scratch, err));
        data = item->own.data;
    }
    if (brc_dtype_normalizes(type)) /* bits that carry no value must not make equal chunks differ */
        brc_dtype_normalize(type, data, (size_t)part.elements);
    item->data = data;
    return BRC_OK;
}

/* ---- behind the flow -------------------------------- */

static int piece_done(assembly *as, brc_piece *piece)
{
    as->coming -= piece->len;
    if (piece->kept != NULL) {
        learn_len(as, piece->kept->bytes.len);
        brc_boxes_count(&as->boxes, piece->kept);
    }
    for (size_t i = 0; i < piece->nboxes; i++) {
        piece->boxes[i]->pieces--;
        brc_box_leave(&as->boxes, piece->boxes[i]);
    }
    piece_free(as, piece);
    return BRC_OK;
}

static int assembly_done(void *ctx, const brc_write_item *item, brc_error *err)
{
    assembly *as = ctx;
    uint64_t index[BRC_MAX_NDIM];
    brc_region_part part;
    as->on_the_way--;
    if (item->is_piece)
        return piece_done(as, item->owner);
    brc_box_of_chunks *box = item->owner;
    brc_box_index(&as->boxes, box, item->number, index);
    brc_region_part_at(&part, as->a, &as->boxes.region, index);
    BRC_TRY(brc_array_put_chunk(as->a, index, item->is_fill ? NULL : &item->id, err));
    box->writing--;
    brc_box_leave(&as->boxes, box);
    const size_t item_size = as->boxes.is_table ? 1 : as->boxes.unit; /* as progress counts */
    return brc_task_step(as->a->session->repo,
                         brc_shape_count(as->a->meta.ndim, part.overlap.count) * item_size, err);
}

static void assembly_name(void *ctx, const brc_write_item *item, brc_error *err)
{
    const assembly *as = ctx;
    uint64_t index[BRC_MAX_NDIM];
    if (item->is_piece) {
        if (as->source->name != NULL)
            as->source->name(as->source->ctx, item->owner, err);
        return;
    }
    brc_box_index(&as->boxes, item->owner, item->number, index);
    brc_array_name_chunk(as->a, index, err);
}

int brc_array_assemble(brc_array *a, const brc_sel *sel, const brc_piece_source *source,
                       brc_error *err)
{
    brc_pipe *pipe = &a->session->repo->pipe;
    assembly as = {.a = a, .source = source};
    int rc = brc_boxes_init(&as.boxes, a, sel, &source->order, pipe->memory, err);
    if (rc < 0 || as.boxes.region.nchunks == 0)
        return rc;
    as.boxes.covered = source->covers;
    as.piece_bytes = choose_piece_bytes(&as);
    size_t held = as.boxes.bytes * as.boxes.most + as.boxes.most_kept + source->held;
    const size_t most_held = pipe->memory / 2;
    brc_write_ops ops = {
        .ctx = &as,
        .held = held < most_held ? held : most_held,
        .list = assembly_list,
        .gather = assembly_gather,
        .done = assembly_done,
        .name = assembly_name,
    };
    brc_task task =
        brc_task_begin(a->session->repo, "write", brc_region_bytes(a, &as.boxes.region));
    rc = brc_flow_write(pipe, brc_array_store(a), &ops, err);
    brc_task_end(a->session->repo, &task, rc);
    brc_boxes_dispose(&as.boxes);
    brc_arena_dispose(&as.arena);
    brc_buf_dispose(&as.held_bytes);
    return rc;
}
