/* Ragged elements, for import and export: see ragged.h. */
#include "ragged.h"

#include <stdlib.h>
#include <string.h>

uint64_t brc_ragged_count(const brc_ragged *type)
{
    return brc_shape_count(type->ndim, type->shape);
}

void brc_ragged_free(brc_ragged *type, int self)
{
    if (!type)
        return;
    for (size_t i = 0; i < type->n && type->items; i++)
        brc_ragged_free(&type->items[i], 0);
    free(type->items);
    type->items = NULL;
    if (self)
        free(type);
}

/* Bytes of the elements of a run: where it takes too much, it is cut into such of the next. */
static const uint64_t run_budgets[BRC_RAGGED_LEVELS] = { 1 << 20, 1 << 16, 1 << 12, 1 };

static void cut_box(brc_ragged_runs *runs, const brc_sel *box)
{
    brc_cut_runs(&runs->cuts[runs->n], box, runs->chunk, runs->size, 0, run_budgets[runs->n]);
    runs->n++;
}

void brc_ragged_runs_start(brc_ragged_runs *runs, const brc_sel *box, const uint64_t *chunk,
                           size_t size)
{
    runs->ndim = box->ndim;
    runs->size = size;
    runs->n = 0;
    for (int i = 0; i < box->ndim; i++)
        runs->chunk[i] = chunk ? chunk[i] : 1;
    cut_box(runs, box);
}

static int is_last_cut(const brc_ragged_runs *runs)
{
    return runs->n == BRC_RAGGED_LEVELS || runs->cuts[runs->n - 1].elements == 1;
}

int brc_ragged_runs_next(brc_ragged_runs *runs, const brc_cut **run, size_t *most)
{
    for (; runs->n > 0; runs->n--)
        if (brc_cut_next(&runs->cuts[runs->n - 1])) {
            *run = &runs->cuts[runs->n - 1];
            *most = is_last_cut(runs) ? BRC_RAGGED_ELEMENT : BRC_RAGGED_RUN;
            return 1;
        }
    return 0;
}

int brc_ragged_runs_cut(brc_ragged_runs *runs)
{
    if (is_last_cut(runs))
        return 0;
    brc_sel box = runs->cuts[runs->n - 1].sel;
    cut_box(runs, &box);
    return 1;
}
