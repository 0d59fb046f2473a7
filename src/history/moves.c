#include "moves.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/node_path.h"

/* ==== move set ================================ */

/* The name, under a path that is made anew, from which the new node comes. */
#define MADE_NAME "/\x01"

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

/* Says whether a name can be under the path, so that a line can be written. */
static int has_room(const char *path)
{
    size_t depth = 0;
    for (const char *at = path; *at != '\0'; at++)
        depth += *at == '/';
    return depth < BRC_DEPTH_MAX && strlen(path) + strlen(MADE_NAME) <= BRC_PATH_MAX;
}

int brc_move_set_add_made(brc_move_set *set, const char *to, brc_error *err)
{
    brc_buf from = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (!has_room(to))
        return BRC_OK;
    BRC_GO(brc_buf_printf(&from, err, "%s" MADE_NAME, to));
    BRC_GO(brc_buf_terminate(&from, err));
    rc = brc_move_set_add(set, (const char *)from.data, to, err);
done:
    brc_buf_dispose(&from);
    return rc;
}

int brc_move_is_made(const brc_move *move)
{
    const size_t len = strlen(move->to);
    return strncmp(move->from, move->to, len) == 0 && strcmp(move->from + len, MADE_NAME) == 0;
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

/* Keeps the moves whose `drop` is not set, in order. */
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

/* Drops lines of new nodes whose path may have held a node that has moved. */
static int drop_doubtful(brc_move_set *set, brc_error *err)
{
    void *drop;
    BRC_TRY(brc_new_array(&drop, set->n + 1, 1, err));
    for (size_t i = 1; i < set->n; i++) {
        const brc_move *a = set->by_from[i - 1], *b = set->by_from[i];
        if (strcmp(a->from, b->from) == 0 && brc_move_is_made(a) != brc_move_is_made(b))
            ((uint8_t *)drop)[(brc_move_is_made(a) ? a : b) - set->items] = 1;
    }
    int rc = move_set_keep(set, drop, err);
    free(drop);
    return rc;
}

int brc_move_set_without_made(brc_move_set *set, brc_error *err)
{
    void *drop;
    BRC_TRY(brc_new_array(&drop, set->n + 1, 1, err));
    for (size_t i = 0; i < set->n; i++)
        ((uint8_t *)drop)[i] = (uint8_t)brc_move_is_made(&set->items[i]);
    int rc = move_set_keep(set, drop, err);
    free(drop);
    return rc;
}

int brc_move_set_seal(brc_move_set *set, brc_error *err)
{
    if (set->n > 1)
        qsort(set->items, set->n, sizeof(*set->items), move_to_order);
    BRC_TRY(move_set_index(set, err));
    BRC_TRY(drop_doubtful(set, err));
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

/* Finds the move with the first `len` bytes of the path on one side. */
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
    const brc_move *move = move_find(set, to, strlen(to), 0);
    return move != NULL && !brc_move_is_made(move) ? move : NULL;
}

const brc_move *brc_move_of_from(const brc_move_set *set, const char *from)
{
    const brc_move *move = move_find(set, from, strlen(from), 1);
    return move != NULL && !brc_move_is_made(move) ? move : NULL;
}

int brc_move_has_made(const brc_move_set *set, const char *path)
{
    const brc_move *move = move_find(set, path, strlen(path), 0);
    return move != NULL && brc_move_is_made(move);
}

/* Finds the move of the longest path at or above the path, and returns that path's length in *len;
 * NULL: none. */
static const brc_move *move_above(const brc_move_set *set, const char *path, int is_from, int above,
                                  size_t *len)
{
    const brc_move *move = NULL;
    const size_t whole = strlen(path);
    for (size_t at = whole; at > 0 && set->n > 0 && move == NULL; at--) {
        if (at < whole ? path[at] != '/' : above)
            continue;
        move = move_find(set, path, at, is_from);
        *len = at;
    }
    return move;
}

/* Replaces the longest path at or above the path by the other side of its move. */
static int move_path(brc_buf *out, const brc_move_set *set, const char *path, int is_from,
                     int above, brc_error *err)
{
    size_t len = 0;
    const brc_move *move = move_above(set, path, is_from, above, &len);
    out->len = 0;
    if (move != NULL)
        path += len;
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

static int comes_from_nowhere(const brc_move_set *set, const char *path)
{
    size_t ignored;
    const brc_move *move = move_above(set, path, 0, 0, &ignored);
    return move != NULL && brc_move_is_made(move);
}

int brc_move_origin(brc_buf *out, int *has, const brc_move_set *set, const char *path,
                    brc_error *err)
{
    brc_buf back = BRC_BUF_INIT;
    int rc;
    *has = 0;
    BRC_GO(brc_move_source(out, set, path, 0, err));
    if (comes_from_nowhere(set, path))
        goto done;
    BRC_GO(brc_move_target(&back, set, (const char *)out->data, 0, err));
    *has = strcmp((const char *)back.data, path) == 0;
done:
    brc_buf_dispose(&back);
    return rc;
}

/* ---- joining -------------------------------- */

/* Adds the move of a newer path through both sets, unless it is already there. */
static int join_path(brc_move_set *out, const brc_move_set *older, const brc_move_set *newer,
                     const char *path, brc_error *err)
{
    int has, rc;
    brc_buf middle = BRC_BUF_INIT, first = BRC_BUF_INIT;
    int made;
    BRC_GO(brc_move_origin(&middle, &has, newer, path, err));
    made = !has && comes_from_nowhere(newer, path);
    if (has) {
        BRC_GO(brc_move_origin(&first, &has, older, (const char *)middle.data, err));
        made = !has && comes_from_nowhere(older, (const char *)middle.data);
    }
    if (has)
        BRC_GO(brc_move_set_add(out, (const char *)first.data, path, err));
    if (made)
        BRC_GO(brc_move_set_add_made(out, path, err));
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
        if (move_find(newer, path, strlen(path), 0) == NULL)
            BRC_GO(join_path(out, older, newer, path, err));
    }
    rc = brc_move_set_seal(out, err);
done:
    brc_buf_dispose(&now);
    return rc;
}

int brc_move_set_turn(brc_move_set *out, const brc_move_set *set, brc_error *err)
{
    brc_buf then = BRC_BUF_INIT;
    int rc = BRC_OK;
    for (size_t i = 0; i < set->n; i++) {
        const brc_move *move = &set->items[i];
        if (!brc_move_is_made(move)) {
            BRC_GO(brc_move_set_add(out, move->to, move->from, err));
            continue;
        }
        BRC_GO(brc_move_source(&then, set, move->to, 1, err));
        const char *path = (const char *)then.data;
        if (move_find(set, path, strlen(path), 1) == NULL)
            BRC_GO(brc_move_set_add_made(out, path, err));
    }
    rc = brc_move_set_seal(out, err);
done:
    brc_buf_dispose(&then);
    return rc;
}

/* ---- reducing -------------------------------- */

/* Says whether a move follows from the moves above both its ends. */
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

/* Says whether a line of a new node is unnecessary. It is needed if the node is in the newer
 * version and the older version has another node that would be taken for it. */
static int made_says_nothing(const brc_move_set *set, const brc_move *move, brc_store *store,
                             const brc_oid *older, const brc_oid *newer, int *nothing,
                             brc_error *err)
{
    int rc;
    brc_entry a, b;
    brc_buf then = BRC_BUF_INIT, now = BRC_BUF_INIT;
    BRC_GO(brc_move_source(&then, set, move->to, 1, err));
    BRC_GO(brc_move_target(&now, set, (const char *)then.data, 0, err));
    BRC_GO(brc_snapshot_find(store, older, (const char *)then.data, &a, err));
    BRC_GO(brc_snapshot_find(store, newer, move->to, &b, err));
    *nothing = a.kind == 0 || b.kind == 0 || strcmp((const char *)now.data, move->to) != 0;
done:
    brc_buf_dispose(&then);
    brc_buf_dispose(&now);
    return rc;
}

/* Records new nodes for a move of which one end does not exist: the node at its newer end, and the
 * node where its older path leads without it. */
static int made_by_lost(const brc_move_set *set, const brc_move *move, brc_move_set *made,
                        brc_error *err)
{
    brc_buf now = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_move_set_add_made(made, move->to, err));
    BRC_GO(brc_move_target(&now, set, move->from, 1, err));
    rc = brc_move_set_add_made(made, (const char *)now.data, err);
done:
    brc_buf_dispose(&now);
    return rc;
}

/* Adds each line of a new node once, unless its path has a line already. */
static int add_all_made(brc_move_set *set, brc_move_set *made, brc_error *err)
{
    const size_t n = set->n;
    if (made->n > 1)
        qsort(made->items, made->n, sizeof(*made->items), move_to_order);
    for (size_t i = 0; i < made->n; i++) {
        const char *to = made->items[i].to;
        const brc_move_set before = {.items = set->items, .n = n};
        if ((i == 0 || strcmp(made->items[i - 1].to, to) != 0) &&
            move_find(&before, to, strlen(to), 0) == NULL)
            BRC_TRY(brc_move_set_add_made(set, to, err));
    }
    return brc_move_set_seal(set, err);
}

static int drop_half_moves(brc_move_set *set, brc_store *store, const brc_oid *older,
                           const brc_oid *newer, brc_error *err)
{
    int rc, is;
    void *drop;
    brc_move_set made = {0};
    BRC_TRY(brc_new_array(&drop, set->n + 1, 1, err));
    for (size_t i = 0; i < set->n; i++) {
        if (brc_move_is_made(&set->items[i]))
            continue;
        BRC_GO(is_in_both(&set->items[i], store, older, newer, &is, err));
        ((uint8_t *)drop)[i] = !is;
        if (!is)
            BRC_GO(made_by_lost(set, &set->items[i], &made, err));
    }
    BRC_GO(move_set_keep(set, drop, err));
    rc = add_all_made(set, &made, err);
done:
    brc_move_set_dispose(&made);
    free(drop);
    return rc;
}

int brc_move_set_reduce(brc_move_set *set, brc_store *store, const brc_oid *older,
                        const brc_oid *newer, brc_error *err)
{
    int rc, is;
    void *drop;
    BRC_TRY(drop_half_moves(set, store, older, newer, err));
    BRC_TRY(brc_new_array(&drop, set->n + 1, 1, err));
    for (size_t i = 0; i < set->n; i++) {
        const brc_move *move = &set->items[i];
        BRC_GO(brc_move_is_made(move)
                   ? made_says_nothing(set, move, store, older, newer, &is, err)
                   : says_nothing(set, move, &is, err));
        ((uint8_t *)drop)[i] = (uint8_t)is;
    }
    rc = move_set_keep(set, drop, err);
done:
    free(drop);
    return rc;
}

/* ==== move text ================================ */

/* Says whether a line cannot contain the byte as it is. */
static int is_escaped(unsigned char byte)
{
    return byte <= ' ' || byte == '%' || byte == 0x7f;
}

static int move_path_write(brc_buf *out, const char *path, brc_error *err)
{
    for (const char *at = path; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        BRC_TRY(is_escaped(byte) ? brc_buf_printf(out, err, "%%%02X", byte)
                                 : brc_buf_byte(out, byte, err));
    }
    return BRC_OK;
}

int brc_move_lines_write(brc_buf *out, const brc_move_set *set, brc_error *err)
{
    if (set->n > BRC_MAX_MOVES)
        return brc_fail(err, BRC_ELIMIT,
                        "a commit can list at most %zu moves, and here are %zu: commit before "
                        "more nodes are moved",
                        BRC_MAX_MOVES, set->n);
    for (size_t i = 0; i < set->n; i++) {
        BRC_TRY(brc_buf_text(out, "move ", err));
        BRC_TRY(move_path_write(out, set->items[i].from, err));
        BRC_TRY(brc_buf_byte(out, ' ', err));
        BRC_TRY(move_path_write(out, set->items[i].to, err));
        BRC_TRY(brc_buf_byte(out, '\n', err));
    }
    return BRC_OK;
}

/* Returns 0 to 15 for "0" to "F", else -1. */
static int upper_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Unescapes a path in place. There is only one way to write a path: a byte is escaped if and only
 * if it must be. */
static int move_path_read(char *path, brc_error *err)
{
    char *to = path;
    for (const char *at = path; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '%') {
            int high = upper_hex(at[1]), low = high < 0 ? -1 : upper_hex(at[2]);
            byte = (unsigned char)(low < 0 ? 0 : high << 4 | low);
            if (byte == 0 || !is_escaped(byte))
                return brc_fail(err, BRC_EINVAL, "a path of a move has a wrong escape");
            at += 2;
        } else if (is_escaped(byte)) {
            return brc_fail(err, BRC_EINVAL, "a path of a move has a byte that must be escaped");
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    BRC_TRY(brc_path_is_normal(path, err));
    return path[1] != '\0' ? BRC_OK : brc_fail(err, BRC_EINVAL, "the root node cannot move");
}

int brc_move_line_read(brc_move_set *set, char *line, brc_error *err)
{
    char *space = strchr(line, ' ');
    if (space == NULL || set->n == BRC_MAX_MOVES)
        return brc_fail(err, BRC_EINVAL, "a move lacks a path, or there are too many");
    *space = '\0';
    BRC_TRY(move_path_read(line, err));
    BRC_TRY(move_path_read(space + 1, err));
    if (set->n > 0 && strcmp(set->items[set->n - 1].to, space + 1) >= 0)
        return brc_fail(err, BRC_EINVAL, "its moves are not in order");
    return brc_move_set_add(set, line, space + 1, err);
}
