#include "move_set.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void brc_move_set_dispose(brc_move_set *set)
{
    brc_moves_free(set->items, set->n);
    free(set->by_from);
    memset(set, 0, sizeof(*set));
}

int brc_move_set_add(brc_move_set *set, const char *from, const char *to, brc_error *err)
{
    void *p = set->items;
    int rc = brc_grow_array(&p, &set->cap, set->n + 1, sizeof(*set->items), err);
    set->items = p;
    if (rc < 0)
        return rc;
    brc_move *move = &set->items[set->n];
    memset(move, 0, sizeof(*move));
    BRC_TRY(brc_dup(&move->to, to, err));
    rc = brc_dup(&move->from, from, err);
    if (rc < 0)
        free(move->to);
    else
        set->n++;
    return rc;
}

/* ---- in order -------------------------------- */

static int move_to_order(const void *a, const void *b)
{
    return strcmp(((const brc_move *)a)->to, ((const brc_move *)b)->to);
}

static int move_from_order(const void *a, const void *b)
{
    return strcmp((*(const brc_move *const *)a)->from, (*(const brc_move *const *)b)->from);
}

static int move_set_index(brc_move_set *set, brc_error *err)
{
    void *p;
    free(set->by_from);
    set->by_from = NULL;
    BRC_TRY(brc_new_array(&p, set->n, sizeof(brc_move *), err));
    set->by_from = p;
    for (size_t i = 0; i < set->n; i++)
        set->by_from[i] = &set->items[i];
    if (set->n > 1)
        qsort(set->by_from, set->n, sizeof(brc_move *), move_from_order);
    return BRC_OK;
}

int brc_move_set_seal(brc_move_set *set, brc_error *err)
{
    if (set->n > 1)
        qsort(set->items, set->n, sizeof(*set->items), move_to_order);
    BRC_TRY(move_set_index(set, err));
    for (size_t i = 1; i < set->n; i++) {
        const brc_move *a = set->by_from[i - 1], *b = set->by_from[i];
        if (strcmp(set->items[i - 1].to, set->items[i].to) == 0)
            return brc_fail(err, BRC_ECORRUPT, "two nodes have moved to %.200s", set->items[i].to);
        if (strcmp(a->from, b->from) == 0)
            return brc_fail(err, BRC_ECORRUPT, "%.200s has moved twice", a->from);
    }
    return BRC_OK;
}

/* ---- looking up -------------------------------- */

/* The move with the first `len` bytes of the path on one side. */
static const brc_move *move_find(const brc_move_set *set, const char *path, size_t len, int is_from)
{
    size_t lo = 0, hi = set->n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        const brc_move *move = is_from ? set->by_from[middle] : &set->items[middle];
        const char *side = is_from ? move->from : move->to;
        int order = strncmp(side, path, len);
        order = order != 0 ? order : side[len] != '\0';
        if (order == 0)
            return move;
        if (order < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return NULL;
}

const brc_move *brc_move_of_to(const brc_move_set *set, const char *to)
{
    return move_find(set, to, strlen(to), 0);
}

const brc_move *brc_move_of_from(const brc_move_set *set, const char *from)
{
    return move_find(set, from, strlen(from), 1);
}

/* The path with the other side in place of the longest one at or above it. */
static int move_path(brc_buf *out, const brc_move_set *set, const char *path, int is_from,
                     int above, brc_error *err)
{
    const brc_move *move = NULL;
    size_t len = strlen(path);
    out->len = 0;
    for (size_t at = len; at > 0 && set->n > 0 && move == NULL; at--) {
        if (at < len ? path[at] != '/' : above)
            continue;
        move = move_find(set, path, at, is_from);
        if (move != NULL)
            path += at;
    }
    if (move != NULL)
        BRC_TRY(brc_buf_text(out, is_from ? move->to : move->from, err));
    BRC_TRY(brc_buf_text(out, path, err));
    return brc_buf_terminate(out, err);
}

int brc_move_source(brc_buf *out, const brc_move_set *set, const char *path, int above,
                    brc_error *err)
{
    return move_path(out, set, path, 0, above, err);
}

int brc_move_target(brc_buf *out, const brc_move_set *set, const char *path, int above,
                    brc_error *err)
{
    return move_path(out, set, path, 1, above, err);
}

int brc_move_origin(brc_buf *out, int *has, const brc_move_set *set, const char *path,
                    brc_error *err)
{
    brc_buf back = BRC_BUF_INIT;
    int rc;
    *has = 0;
    BRC_GO(brc_move_source(out, set, path, 0, err));
    BRC_GO(brc_move_target(&back, set, (const char *)out->data, 0, err));
    *has = strcmp((const char *)back.data, path) == 0;
done:
    brc_buf_dispose(&back);
    return rc;
}

/* ---- joining -------------------------------- */

/* The move of a newer path through both sets; not one that is there already. */
static int join_path(brc_move_set *out, const brc_move_set *older, const brc_move_set *newer,
                     const char *path, brc_error *err)
{
    int has, rc;
    brc_buf middle = BRC_BUF_INIT, first = BRC_BUF_INIT;
    BRC_GO(brc_move_origin(&middle, &has, newer, path, err));
    if (has)
        BRC_GO(brc_move_origin(&first, &has, older, (const char *)middle.data, err));
    if (has)
        BRC_GO(brc_move_set_add(out, (const char *)first.data, path, err));
done:
    brc_buf_dispose(&middle);
    brc_buf_dispose(&first);
    return rc;
}

int brc_move_set_join(brc_move_set *out, const brc_move_set *older, const brc_move_set *newer,
                      brc_error *err)
{
    brc_buf now = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < newer->n; i++)
        BRC_GO(join_path(out, older, newer, newer->items[i].to, err));
    for (size_t i = 0; i < older->n; i++) {
        BRC_GO(brc_move_target(&now, newer, older->items[i].to, 0, err));
        const char *path = (const char *)now.data;
        if (brc_move_of_to(newer, path) == NULL)
            BRC_GO(join_path(out, older, newer, path, err));
    }
    rc = brc_move_set_seal(out, err);
done:
    brc_buf_dispose(&now);
    return rc;
}

/* ---- reducing -------------------------------- */

/* Whether the moves above both its sides say the same. */
static int says_nothing(const brc_move_set *set, const brc_move *move, int *nothing, brc_error *err)
{
    int rc;
    brc_buf other = BRC_BUF_INIT;
    BRC_GO(brc_move_source(&other, set, move->to, 1, err));
    *nothing = strcmp((const char *)other.data, move->from) == 0;
    if (*nothing) {
        BRC_GO(brc_move_target(&other, set, move->from, 1, err));
        *nothing = strcmp((const char *)other.data, move->to) == 0;
    }
done:
    brc_buf_dispose(&other);
    return rc;
}

static int is_in_both(const brc_move *move, brc_store *store, const brc_oid *older,
                      const brc_oid *newer, int *is, brc_error *err)
{
    brc_entry a, b;
    BRC_TRY(brc_snapshot_find(store, older, move->from, &a, err));
    BRC_TRY(brc_snapshot_find(store, newer, move->to, &b, err));
    *is = a.kind != 0 && a.kind == b.kind;
    return BRC_OK;
}

/* Those whose `drop` is not set stay, in their order. */
static int move_set_keep(brc_move_set *set, const uint8_t *drop, brc_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (drop[i]) {
            free(set->items[i].to);
            free(set->items[i].from);
        } else {
            set->items[kept++] = set->items[i];
        }
    }
    set->n = kept;
    return move_set_index(set, err);
}

int brc_move_set_reduce(brc_move_set *set, brc_store *store, const brc_oid *older,
                        const brc_oid *newer, brc_error *err)
{
    int rc, is;
    void *drop;
    BRC_TRY(brc_new_array(&drop, set->n + 1, 1, err));
    for (size_t i = 0; i < set->n; i++) {
        BRC_GO(is_in_both(&set->items[i], store, older, newer, &is, err));
        ((uint8_t *)drop)[i] = !is;
    }
    BRC_GO(move_set_keep(set, drop, err));
    for (size_t i = 0; i < set->n; i++) {
        BRC_GO(says_nothing(set, &set->items[i], &is, err));
        ((uint8_t *)drop)[i] = (uint8_t)is;
    }
    rc = move_set_keep(set, drop, err);
done:
    free(drop);
    return rc;
}
