#include "conflicts.h"

#include <inttypes.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/iter.h"

typedef struct conflict_iter {
    brc_clash_list list;
    size_t at;
    brc_buf key;
    brc_conflict now; /* the one that was handed out */
} conflict_iter;

static void conflict_iter_dispose(void *state)
{
    conflict_iter *it = state;
    brc_clash_list_dispose(&it->list);
    brc_buf_dispose(&it->key);
}

int brc_conflict_list(brc_iter **out, brc_clash_list *list, brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    BRC_TRY(brc_iter_new(out, BRC_ITER_CONFLICTS, sizeof(conflict_iter), conflict_iter_dispose,
                         err));
    conflict_iter *it = brc_iter_state(*out);
    it->key = empty;
    if (list != NULL) {
        it->list = *list;
        memset(list, 0, sizeof(*list));
    }
    return BRC_OK;
}

int brc_conflict_list_open(brc_iter **out, brc_clash_list *list, brc_error *err)
{
    brc_clash_list settled = {0};
    size_t open = 0;
    void *p;
    BRC_TRY(brc_new_array(&p, list->n + 1, sizeof(brc_clash), err));
    settled.items = p;
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i].settled == 0)
            list->items[open++] = list->items[i];
        else
            settled.items[settled.n++] = list->items[i];
    }
    list->n = open;
    brc_clash_list_dispose(&settled);
    return brc_conflict_list(out, list, err);
}

static const char *conflict_kind(const brc_clash *clash)
{
    if (strcmp(clash->member, BRC_CLASH_CHUNK) == 0)
        return "chunk";
    if (strcmp(clash->member, BRC_CLASH_PLACE) == 0)
        return "moved";
    if (strcmp(clash->member, BRC_CLASH_STORAGE) == 0 || strcmp(clash->member, "/codecs") == 0)
        return "storage";
    if (*clash->member != '\0')
        return "metadata";
    if (clash->base.data == NULL)
        return "added";
    return clash->ours.data == NULL || clash->theirs.data == NULL ? "deleted" : "replaced";
}

static int conflict_key(const brc_clash *clash, brc_buf *out, const char **key, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    *key = *clash->member == '/' ? clash->member : NULL;
    if (strcmp(clash->member, BRC_CLASH_CHUNK) != 0)
        return BRC_OK;
    out->len = 0;
    const int ndim = brc_chunk_key_decode(clash->key.data, clash->key.len, index);
    BRC_TRY(brc_buf_text(out, "c", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(brc_buf_printf(out, err, "/%" PRIu64, index[i]));
    *key = (const char *)out->data;
    return brc_buf_terminate(out, err);
}

/* Of rows the state; what has just been merged is open. */
static int settled_as(int state)
{
    static const int as[] = {0, BRC_MERGE_OURS, BRC_MERGE_THEIRS, 1};
    return state >= 0 && state <= 3 ? as[state] : 0;
}

int brc_conflicts_next(brc_iter *it, const brc_conflict **out, brc_error *err)
{
    *out = NULL;
    BRC_TRY(brc_iter_check(it, BRC_ITER_CONFLICTS, err));
    conflict_iter *list = brc_iter_state(it);
    if (list->at == list->list.n)
        return 0;
    const brc_clash *clash = &list->list.items[list->at++];
    list->now = (brc_conflict){.path = clash->path, .kind = conflict_kind(clash),
                               .settled = settled_as(clash->settled),
                               .draft = clash->draft};
    BRC_TRY(conflict_key(clash, &list->key, &list->now.key, err));
    list->now.key = strcmp(clash->member, BRC_CLASH_CHUNK) == 0 ? (const char *)list->key.data
                                                                : list->now.key;
    *out = &list->now;
    return 1;
}
