/*
 * parts.c - cuts a selection along one axis: the axes after it are whole, and those
 * before it are taken one index at a time.
 */
#include "parts.h"

#include <string.h>

void cli_parts_begin(struct cli_parts *parts, const brc_sel *sel, const brc_array_info *info,
                     uint64_t budget)
{
    uint64_t inner = info->item_size ? info->item_size : 64; /* a guess: they vary */
    int axis = sel->ndim;

    memset(parts, 0, sizeof(*parts));
    parts->whole = *sel;
    parts->done = brc_sel_count(sel) == 0;
    if (parts->done)
        return;
    while (axis > 0 && inner <= budget / sel->count[axis - 1])
        inner *= sel->count[--axis];
    parts->axis = axis - 1;
    if (axis == 0)
        return;
    parts->rows = inner < budget ? budget / inner : 1;
    parts->chunk = sel->step[axis - 1] == 1 ? info->chunk[axis - 1] : 1;
}

/* How many rows the next part takes: up to a border between chunks if one is near. */
static uint64_t part_rows(const struct cli_parts *parts)
{
    int axis = parts->axis;
    uint64_t left = parts->whole.count[axis] - parts->at[axis];
    uint64_t begin = parts->whole.start[axis] + parts->at[axis];
    uint64_t over;

    if (left <= parts->rows)
        return left;
    over = parts->chunk ? (begin + parts->rows) % parts->chunk : 0;
    return over < parts->rows ? parts->rows - over : parts->rows;
}

/* Moves on along the axes before the cut one. */
static void advance_outer_axes(struct cli_parts *parts)
{
    int axis = parts->axis;

    parts->at[axis--] = 0;
    for (; axis >= 0; axis--) {
        if (++parts->at[axis] < parts->whole.count[axis])
            return;
        parts->at[axis] = 0;
    }
    parts->done = 1;
}

int cli_parts_next(struct cli_parts *parts)
{
    uint64_t rows;

    if (parts->done)
        return 0;
    parts->part = parts->whole;
    if (parts->axis < 0) {
        parts->count = brc_sel_count(&parts->whole);
        parts->done = 1;
        return 1;
    }
    rows = part_rows(parts);
    for (int i = 0; i <= parts->axis; i++) {
        parts->part.start[i] += parts->at[i] * parts->whole.step[i];
        parts->part.count[i] = i == parts->axis ? rows : 1;
    }
    parts->count = brc_sel_count(&parts->part);
    parts->at[parts->axis] += rows;
    if (parts->at[parts->axis] == parts->whole.count[parts->axis])
        advance_outer_axes(parts);
    return 1;
}
