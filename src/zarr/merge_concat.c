#include "merge_concat.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "meta.h"

void brc_concat_list_dispose(brc_concat_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (brc_concat_list){NULL, 0, 0};
}

static const brc_concat *concat_at(const brc_concat_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return &list->items[i];
    return NULL;
}

const brc_merge_place *brc_concat_place(const brc_concat_list *list, const brc_merge_place *place,
                                        brc_merge_place *out)
{
    const brc_concat *c = list != NULL ? concat_at(list, place->path) : NULL;
    if (c == NULL || c->laid_out[1].kind == 0)
        return place;
    *out = *place;
    out->ours = c->laid_out[0];
    out->theirs = c->laid_out[1];
    return out;
}

/* Only one axis has grown, on both sides, and what an element is has not changed. */
static int is_appended(brc_concat *c, const brc_node_docs *docs)
{
    static const char *const same[] = {"data_type", "fill_value"};
    const brc_json *base = docs->doc[BRC_FORM_BASE];
    uint64_t shape[3][BRC_MAX_NDIM];
    int ndim[3], grown = 0;
    for (int s = 0; s < 3; s++)
        if (!brc_shape_member(docs->doc[BRC_FORM_BASE + s], &ndim[s], shape[s]) ||
            ndim[s] != ndim[0])
            return 0;
    for (int s = 1; s < 3; s++)
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
            if (!brc_json_same(brc_json_member(base, same[i]),
                               brc_json_member(docs->doc[BRC_FORM_BASE + s], same[i])))
                return 0;
    for (int i = 0; i < ndim[0]; i++) {
        if (shape[1][i] == shape[0][i] && shape[2][i] == shape[0][i])
            continue;
        if (grown++ || shape[1][i] <= shape[0][i] || shape[2][i] <= shape[0][i] ||
            shape[2][i] - shape[0][i] > UINT64_MAX - shape[1][i])
            return 0;
        c->axis = i;
        c->base = shape[0][i];
        c->ours = shape[1][i] - c->base;
        c->theirs = shape[2][i] - c->base;
    }
    return grown;
}

int brc_concat_look(brc_concat_list *list, const brc_merge_place *place, const brc_node_docs *docs,
                    brc_error *err)
{
    brc_concat c = {.side = {place->ours, place->theirs}};
    void *items = list->items;
    if (place->base.kind != BRC_ARRAY || !is_appended(&c, docs) ||
        concat_at(list, place->path) != NULL)
        return 0;
    /* both have appended the same */
    if (c.ours == c.theirs && brc_oid_cmp(&place->ours.map, &place->theirs.map) == 0)
        return 0;
    int rc = brc_grow_array(&items, &list->cap, list->n + 1, sizeof(c), err);
    list->items = items;
    BRC_TRY(rc);
    BRC_TRY(brc_dup(&c.path, place->path, err));
    list->items[list->n++] = c;
    return 1;
}
