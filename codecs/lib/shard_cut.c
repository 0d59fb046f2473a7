/* How a shard is cut into inner chunks, and steps through the inner chunks. */
#include "shard_cut.h"

/* ---- the elements of one inner chunk -------------------------------- */

static uint64_t shard_stride(const struct brc_shard_cut *cut, int axis)
{
    uint64_t stride = 1;

    for (int i = axis + 1; i < cut->ndim; i++)
        stride *= cut->shape[i];
    return stride;
}

void brc_shard_walk_start(struct brc_shard_walk *walk, const struct brc_shard_cut *cut,
                          uint64_t number)
{
    uint64_t stride = 1;

    *walk = (struct brc_shard_walk){ .cut = cut, .run = 1, .axes = cut->ndim };
    for (int i = cut->ndim - 1; i >= 0; i--) {
        walk->at += number % cut->grid[i] * cut->inner_shape[i] * stride;
        number /= cut->grid[i];
        stride *= cut->shape[i];
    }
    while (walk->axes > 0 &&
           (walk->axes == cut->ndim || cut->inner_shape[walk->axes] == cut->shape[walk->axes])) {
        walk->axes--;
        walk->run *= cut->inner_shape[walk->axes];
    }
}

int brc_shard_walk_next(struct brc_shard_walk *walk)
{
    const struct brc_shard_cut *cut = walk->cut;

    for (int i = walk->axes - 1; i >= 0; i--) {
        uint64_t stride = shard_stride(cut, i);
        walk->at += stride;
        if (++walk->index[i] < cut->inner_shape[i])
            return 1;
        walk->at -= cut->inner_shape[i] * stride;
        walk->index[i] = 0;
    }
    return 0;
}

/* ---- the inner chunks of one box -------------------------------- */

void brc_shard_met_start(struct brc_shard_met *met, const struct brc_shard_cut *cut,
                         const brc_box *box)
{
    for (int i = 0; i < cut->ndim; i++) {
        uint64_t last = (box->start[i] + box->count[i] - 1) / cut->inner_shape[i];
        met->first[i] = box->start[i] / cut->inner_shape[i];
        met->n[i] = last - met->first[i] + 1;
        met->at[i] = 0;
    }
}

uint64_t brc_shard_met_number(const struct brc_shard_met *met, const struct brc_shard_cut *cut)
{
    uint64_t number = 0;

    for (int i = 0; i < cut->ndim; i++)
        number = number * cut->grid[i] + met->first[i] + met->at[i];
    return number;
}

int brc_shard_met_next(struct brc_shard_met *met, const struct brc_shard_cut *cut)
{
    for (int i = cut->ndim - 1; i >= 0; i--) {
        if (++met->at[i] < met->n[i])
            return 1;
        met->at[i] = 0;
    }
    return 0;
}

void brc_shard_inner_box(const struct brc_shard_cut *cut, uint64_t number, const brc_box *box,
                         brc_box *out)
{
    for (int i = cut->ndim - 1; i >= 0; i--) {
        uint64_t corner = number % cut->grid[i] * cut->inner_shape[i];
        uint64_t end = box->start[i] + box->count[i];
        if (end > corner + cut->inner_shape[i])
            end = corner + cut->inner_shape[i];
        out->start[i] = box->start[i] > corner ? box->start[i] - corner : 0;
        out->count[i] = end - corner - out->start[i];
        number /= cut->grid[i];
    }
}
