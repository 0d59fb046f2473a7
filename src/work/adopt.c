#include "adopt.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../history/commit.h"
#include "../store/collect.h"
#include "session_nodes.h"

/* ==== fork keys ================================ */

/* A client that knows its keys in advance has fewer; each child keeps them in its row. */
enum { KEYS_MOST = 4096 };

void brc_fork_keys_dispose(brc_fork_keys *keys)
{
    for (size_t i = 0; i < keys->n; i++)
        free(((brc_fork_key *)keys->items)[i].key);
    free(keys->items);
    memset(keys, 0, sizeof(*keys));
}

static int take_key(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    brc_fork_keys *keys = ctx;
    BRC_TRY(brc_grow_array(&keys->items, &keys->cap, keys->n + 1, sizeof(brc_fork_key), err));
    brc_fork_key *item = (brc_fork_key *)keys->items + keys->n;
    memset(item, 0, sizeof(*item));
    BRC_TRY(brc_dup(&item->key, key, err));
    item->has_id = id != NULL;
    if (id != NULL)
        item->id = *id;
    keys->n++;
    return BRC_OK;
}

int brc_fork_keys_read(brc_fork_keys *out, brc_store *store, int64_t draft, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = brc_draft_key_page(store, draft, "", NULL, SIZE_MAX >> 1, take_key, out, err);
    if (rc < 0)
        brc_fork_keys_dispose(out);
    return rc;
}

/* ---- in a plan -------------------------------- */

int brc_fork_keys_write(brc_buf *out, const brc_fork_keys *keys, brc_error *err)
{
    const brc_fork_key *items = keys->items;
    char hex[65];
    if (keys->n > KEYS_MOST)
        return brc_fail(err, BRC_ELIMIT,
                        "%zu keys of this session are neither a node nor a chunk, and a child can "
                        "begin with at most %d: set the missing keys, or delete these",
                        keys->n, KEYS_MOST);
    BRC_TRY(brc_buf_text(out, "{\"keys\":{", err));
    for (size_t i = 0; i < keys->n; i++) {
        BRC_TRY(brc_buf_text(out, i > 0 ? "," : "", err));
        BRC_TRY(brc_json_quote(out, items[i].key, strlen(items[i].key), err));
        if (items[i].has_id)
            BRC_TRY(brc_buf_printf(out, err, ":\"%s\"", brc_oid_format(hex, &items[i].id)));
        else
            BRC_TRY(brc_buf_text(out, ":null", err));
    }
    return brc_buf_text(out, "}}", err);
}

static int parse_keys(brc_fork_keys *out, const brc_json *object, brc_error *err)
{
    for (const brc_json *at = brc_json_first(object); at != NULL; at = brc_json_next(at)) {
        brc_oid id;
        const char *hex = "";
        const int has_id = brc_json_kind(at) != BRC_JSON_NULL;
        if (has_id && (!brc_json_text(at, &hex) || !brc_oid_parse(&id, hex)))
            return brc_fail(err, BRC_ECORRUPT,
                            "the plan of a session's child is damaged: '%.80s' is not a valid id",
                            hex);
        BRC_TRY(take_key(out, brc_json_name(at), has_id ? &id : NULL, err));
    }
    return BRC_OK;
}

static int fork_key_order(const void *a, const void *b)
{
    return strcmp(((const brc_fork_key *)a)->key, ((const brc_fork_key *)b)->key);
}

int brc_fork_keys_parse(brc_fork_keys *out, const char *plan, brc_error *err)
{
    brc_json *json = NULL;
    memset(out, 0, sizeof(*out));
    if (*plan == '\0')
        return BRC_OK;
    int rc = brc_json_parse(&json, plan, strlen(plan), 0, err);
    if (rc == BRC_OK)
        rc = parse_keys(out, brc_json_member(json, "keys"), err);
    brc_json_free(json);
    if (rc < 0)
        brc_fork_keys_dispose(out);
    else if (out->n > 1)
        qsort(out->items, out->n, sizeof(brc_fork_key), fork_key_order);
    return rc;
}

/* ---- in a draft -------------------------------- */

/* Fails if the bytes are gone: nothing may have named them for a while. */
static int need_bytes(brc_store *store, const brc_fork_key *key, brc_error *err)
{
    brc_object o = {.id = key->id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (o.found)
        return brc_gc_keep(store, &key->id, err);
    return brc_fail(err, BRC_ESTALE, "the bytes of the key '%.200s' were collected: set it again",
                    key->key);
}

static int put_key(brc_store *store, int64_t draft, const brc_fork_key *key, brc_error *err)
{
    if (key->has_id)
        BRC_TRY(need_bytes(store, key, err));
    return brc_draft_key_put(store, draft, key->key, key->has_id ? &key->id : NULL, err);
}

int brc_fork_keys_put(const brc_fork_keys *keys, brc_store *store, int64_t draft, brc_error *err)
{
    for (size_t i = 0; i < keys->n; i++)
        BRC_TRY(put_key(store, draft, (const brc_fork_key *)keys->items + i, err));
    return BRC_OK;
}

/* ---- three ways -------------------------------- */

/* A list that is read side by side with others. */
typedef struct key_walk {
    const brc_fork_keys *list;
    size_t at;
} key_walk;

static const char *least_key(const key_walk *walks, size_t n)
{
    const char *least = NULL;
    for (size_t i = 0; i < n; i++) {
        if (walks[i].at == walks[i].list->n)
            continue;
        const char *key = ((const brc_fork_key *)walks[i].list->items)[walks[i].at].key;
        if (least == NULL || strcmp(key, least) < 0)
            least = key;
    }
    return least;
}

/* Returns the list's entry for the key, and steps past it; NULL if the list has no such entry. */
static const brc_fork_key *take_from(key_walk *walk, const char *key)
{
    const brc_fork_key *item = (const brc_fork_key *)walk->list->items + walk->at;
    if (walk->at == walk->list->n || strcmp(item->key, key) != 0)
        return NULL;
    walk->at++;
    return item;
}

static int same_value(const brc_fork_key *a, const brc_fork_key *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->has_id == b->has_id && (!a->has_id || brc_oid_cmp(&a->id, &b->id) == 0);
}

int brc_fork_keys_join(brc_fork_keys *out, const brc_fork_keys *base, const brc_fork_keys *ours,
                       const brc_fork_keys *theirs, brc_fork_clash_fn clash, void *ctx,
                       brc_error *err)
{
    key_walk walks[3] = {{base, 0}, {ours, 0}, {theirs, 0}};
    const char *key;
    while ((key = least_key(walks, 3)) != NULL) {
        const brc_fork_key *was = take_from(&walks[0], key), *own = take_from(&walks[1], key),
                           *their = take_from(&walks[2], key), *now = own;
        if (same_value(own, was))
            now = their;
        else if (!same_value(their, was) && !same_value(their, own))
            BRC_TRY(clash(ctx, key, was, own, their, err));
        if (now != NULL)
            BRC_TRY(take_key(out, key, now->has_id ? &now->id : NULL, err));
    }
    return BRC_OK;
}

int brc_fork_keys_change(const brc_fork_keys *before, const brc_fork_keys *after, brc_store *store,
                         int64_t draft, brc_error *err)
{
    key_walk walks[2] = {{before, 0}, {after, 0}};
    const char *key;
    while ((key = least_key(walks, 2)) != NULL) {
        const brc_fork_key *was = take_from(&walks[0], key), *now = take_from(&walks[1], key);
        if (same_value(was, now))
            continue;
        BRC_TRY(now != NULL ? put_key(store, draft, now, err)
                            : brc_draft_key_drop(store, draft, key, err));
    }
    return BRC_OK;
}

/* ==== adopt ================================ */

/* ---- room for the rows of a bulk write -------------------------------- */

int brc_stack_make_shorter(brc_store *store, int64_t node, brc_error *err)
{
    BRC_TRY(brc_store_rest(store, 1, err));
    for (int done = 0; !done;) {
        BRC_TRY(brc_store_begin(store, err));
        int rc = brc_draft_stack_shorten(store, node, BRC_DRAFT_STACK_SHORT, &done, err);
        const int ended = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        BRC_TRY(rc < 0 ? rc : ended);
        BRC_TRY(brc_store_rest(store, 1, err));
    }
    return BRC_OK;
}

static int make_room_at(brc_session *onto, const brc_draft_node *row, brc_error *err)
{
    brc_store *store = onto->repo->store;
    brc_draft_stack upper, lower;
    brc_draft_node own;
    int found;
    if (onto->draft.id == 0)
        return BRC_OK;
    BRC_TRY(brc_draft_node_get(store, onto->draft.id, row->path, &found, &own, err));
    free(own.entry);
    BRC_TRY(brc_draft_stack_get(store, row->node, &upper, err));
    BRC_TRY(brc_draft_stack_get(store, found ? own.node : 0, &lower, err));
    if (upper.n + lower.n <= BRC_DRAFT_STACK_MOST)
        return BRC_OK;
    BRC_TRY(brc_stack_make_shorter(store, lower.node[0], err));
    return brc_stack_make_shorter(store, upper.node[0], err);
}

int brc_adopt_make_room(brc_session *onto, int64_t draft, brc_error *err)
{
    enum { PAGE = 256 };
    brc_draft_rows rows = {0};
    size_t before;
    int rc;
    BRC_TRY(brc_session_begin_read(onto, err));
    brc_session_end_read(onto);
    do {
        before = rows.n;
        BRC_GO(brc_draft_node_page(onto->repo->store, draft, &rows, PAGE, err));
        for (size_t i = before; i < rows.n; i++)
            BRC_GO(make_room_at(onto, (const brc_draft_node *)rows.nodes + i, err));
    } while (rows.n - before == PAGE);
    rc = BRC_OK;
done:
    brc_draft_nodes_free(rows.nodes, rows.n);
    return rc;
}

/* ---- differences between the sides -------------------------------- */

static int adopt_conflict(const brc_adoption *ad, const char *path, const char *what,
                          brc_error *err)
{
    return brc_fail(err, BRC_ECONFLICT,
                    "%.300s: %s; draft %lld is kept: commit or drop the other changes, or drop it",
                    path, what, (long long)ad->draft);
}

static const char changed_twice[] = "it was changed differently meanwhile";

/* Says that both sides have changed the same: drafts are merged then, and a bulk write fails. */
static int both_changed(const brc_adoption *ad, const char *path, const char *what, brc_error *err)
{
    return ad->is_bulk ? adopt_conflict(ad, path, what, err) : BRC_ADOPT_MEETS;
}

/* Returns a document without the members that may change while chunks change. */
static int form_of(brc_store *store, const brc_entry *entry, brc_json **out, brc_error *err)
{
    BRC_TRY(brc_entry_doc(store, entry, out, err));
    brc_json_remove(*out, "attributes");
    brc_json_remove(*out, "dimension_names");
    return BRC_OK;
}

/* Tells whether chunks of one document have no place in the other. */
static int form_differs(brc_store *store, const brc_entry *a, const brc_entry *b, int *differs,
                        brc_error *err)
{
    brc_json *x = NULL, *y = NULL;
    int rc = BRC_OK;
    *differs = a->kind != b->kind;
    if (*differs || brc_oid_cmp(&a->doc, &b->doc) == 0)
        return BRC_OK;
    BRC_GO(form_of(store, a, &x, err));
    BRC_GO(form_of(store, b, &y, err));
    *differs = !brc_json_equal(x, y);
done:
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

/* Merges three ids: *out is the one that changed. Returns 0 if both sides changed it. */
static int merge_id(const brc_oid *base, const brc_oid *mine, const brc_oid *now, brc_oid *out)
{
    int mine_same = brc_oid_cmp(mine, base) == 0, now_same = brc_oid_cmp(now, base) == 0;
    *out = mine_same ? *now : *mine;
    return mine_same || now_same || brc_oid_cmp(mine, now) == 0;
}

static int same_entry(const brc_entry *a, const brc_entry *b)
{
    return a->kind == b->kind && (a->kind == 0 || brc_entry_equal(a, b));
}

static int merge_entries(const brc_entry *base, const brc_entry *mine, const brc_entry *now,
                         brc_entry *out)
{
    *out = *mine;
    if (same_entry(mine, now) || same_entry(now, base))
        return 1;
    *out = *now;
    if (same_entry(mine, base))
        return 1;
    return base->kind != 0 && mine->kind == base->kind && now->kind == base->kind &&
           merge_id(&base->doc, &mine->doc, &now->doc, &out->doc) &&
           merge_id(&base->map, &mine->map, &now->map, &out->map) &&
           merge_id(&base->storage, &mine->storage, &now->storage, &out->storage);
}

/* ---- a single node -------------------------------- */

typedef struct adopted_node {
    const char *path;
    brc_entry base, mine, now, merged;
    brc_draft_stack stack; /* the draft's rows                                      */
    int64_t there;         /* the session's own row; 0: none                        */
    brc_draft_stack under; /* and the rows below it                                 */
    int has_chunks, chunks_there;
    int rows_there;        /* the session has rows of nodes under it                */
    int is_replaced;
} adopted_node;

static int find_known(const void *path, const void *known)
{
    return strcmp(path, ((const brc_known_node *)known)->path);
}

static int base_entry(brc_session *s, const brc_adoption *ad, const char *path, brc_entry *out,
                      brc_error *err)
{
    if (!ad->is_bulk)
        return brc_snapshot_find(s->repo->store, &ad->base, path, out, err);
    memset(out, 0, sizeof(*out));
    const brc_known_node *known = ad->nknown == 0 ? NULL
                                                  : bsearch(path, ad->known, ad->nknown,
                                                            sizeof(*known), find_known);
    if (known != NULL)
        *out = known->entry;
    return BRC_OK;
}

static int has_rows_under(brc_session *s, const char *path, int *any, brc_error *err)
{
    brc_draft_node *rows;
    size_t n;
    BRC_TRY(brc_draft_node_list(s->repo->store, s->draft.id, path, 0, &rows, &n, err));
    brc_draft_nodes_free(rows, n);
    *any = n > 0;
    return BRC_OK;
}

static int look_at_adopted(brc_session *s, const brc_adoption *ad, const brc_draft_node *row,
                           adopted_node *node, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_node own;
    int64_t ignored;
    int found;
    memset(node, 0, sizeof(*node));
    node->path = row->path;
    node->is_replaced = ad->replaced != NULL && strcmp(ad->replaced, row->path) == 0;
    BRC_TRY(brc_path_is_normal(row->path, err));
    if (row->entry != NULL)
        BRC_TRY(brc_entry_decode(&node->mine, (brc_span){row->entry, row->entry_len},
                                 brc_store_id_len(store), err));
    BRC_TRY(base_entry(s, ad, row->path, &node->base, err));
    BRC_TRY(brc_session_find(s, row->path, &node->now, &ignored, err));
    BRC_TRY(brc_draft_node_get(store, s->draft.id, row->path, &found, &own, err));
    free(own.entry);
    node->there = found ? own.node : 0;
    BRC_TRY(brc_draft_stack_get(store, row->node, &node->stack, err));
    BRC_TRY(brc_draft_stack_get(store, node->there, &node->under, err));
    BRC_TRY(brc_draft_chunk_any(store, &node->stack, &node->has_chunks, err));
    return brc_draft_chunk_any(store, &node->under, &node->chunks_there, err);
}

static int check_parent(brc_session *s, const brc_adoption *ad, const adopted_node *node,
                        brc_error *err)
{
    brc_entry parent;
    brc_buf path = BRC_BUF_INIT;
    int64_t ignored;
    size_t len = (size_t)(strrchr(node->path, '/') - node->path);
    int rc = BRC_OK;
    if (node->path[1] == '\0' || node->merged.kind == 0)
        return BRC_OK;
    BRC_GO(brc_buf_append(&path, node->path, len > 0 ? len : 1, err));
    BRC_GO(brc_buf_terminate(&path, err));
    BRC_GO(brc_session_find(s, (const char *)path.data, &parent, &ignored, err));
    if (parent.kind != BRC_GROUP)
        rc = both_changed(ad, node->path, "the group above it is gone", err);
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_stack_used(brc_store *store, brc_draft_stack *stack, brc_error *err)
{
    int any = 0;
    size_t at = 0;
    for (; at < stack->n; at++) {
        const brc_draft_stack one = {.n = 1, .node = {stack->node[at]}};
        BRC_TRY(brc_draft_chunk_any(store, &one, &any, err));
        if (any)
            break;
    }
    stack->n -= at;
    memmove(stack->node, stack->node + at, stack->n * sizeof(stack->node[0]));
    return BRC_OK;
}

/* Fails if others have written to the replaced array: the node that was made from it would then be
 * wrong. */
static int check_replaced(brc_session *s, const brc_adoption *ad, const adopted_node *node,
                          brc_error *err)
{
    brc_draft_stack used = node->under;
    BRC_TRY(brc_stack_used(s->repo->store, &used, err));
    return (used.n > 0 ? used.node[0] : 0) == ad->still
               ? BRC_OK : adopt_conflict(ad, node->path, changed_twice, err);
}

/* For a bulk write: checks that the chunks, and the rows of nodes under a group, belong to one form
 * of the node. */
static int check_form(brc_session *s, const brc_adoption *ad, adopted_node *node, brc_error *err)
{
    static const char what[] = "one side has changed its shape or type, and the other its content";
    brc_store *store = s->repo->store;
    int mine, now, is_map = brc_oid_cmp(&node->mine.map, &node->base.map) != 0;
    if (node->is_replaced)
        return check_replaced(s, ad, node, err);
    if (ad->is_quiet || same_entry(&node->mine, &node->now))
        return BRC_OK;
    BRC_TRY(form_differs(store, &node->base, &node->mine, &mine, err));
    BRC_TRY(form_differs(store, &node->base, &node->now, &now, err));
    if (same_entry(&node->now, &node->base))
        mine = 0; /* an array can only have grown: the others' chunks lie within its shape */
    mine |= node->base.kind != 0 && is_map;
    if (mine && node->base.kind != 0)
        BRC_TRY(has_rows_under(s, node->path, &node->rows_there, err));
    if ((mine && (node->chunks_there || node->rows_there)) || (now && node->has_chunks))
        return adopt_conflict(ad, node->path, what, err);
    return BRC_OK;
}

/* Merges the entries of a node that a bulk write wrote. */
static int merge_written(brc_session *s, const brc_adoption *ad, adopted_node *node, brc_error *err)
{
    if (!merge_entries(&node->base, &node->mine, &node->now, &node->merged))
        return adopt_conflict(ad, node->path, changed_twice, err);
    return check_form(s, ad, node, err);
}

/* Returns BRC_OK if the draft's row can be laid over what the session has: the session has not
 * touched the node, or both have the same entry, and do not have the same chunk. */
static int check_apart(brc_session *s, adopted_node *node, brc_error *err)
{
    int meet = 0;
    node->merged = node->mine;
    if (same_entry(&node->mine, &node->now)) {
        if (node->has_chunks && node->chunks_there)
            BRC_TRY(brc_draft_stacks_meet(s->repo->store, &node->stack, &node->under, &meet, err));
        return meet ? BRC_ADOPT_MEETS : BRC_OK;
    }
    if (node->chunks_there || !same_entry(&node->now, &node->base))
        return BRC_ADOPT_MEETS;
    if (node->base.kind == 0 || (node->mine.kind == node->base.kind &&
                                 brc_oid_cmp(&node->mine.map, &node->base.map) == 0))
        return BRC_OK; /* the nodes under it stay */
    BRC_TRY(has_rows_under(s, node->path, &node->rows_there, err));
    return node->rows_there ? BRC_ADOPT_MEETS : BRC_OK;
}

static int lay_over(brc_session *s, adopted_node *node, const uint8_t *entry, size_t len,
                    brc_error *err)
{
    brc_store *store = s->repo->store;
    if (!node->is_replaced && !node->has_chunks &&
        (node->there != 0 || same_entry(&node->merged, &node->now))) {
        BRC_TRY(brc_draft_row_drop(store, node->stack.node[0], err));
        return node->there == 0 ? BRC_OK
                                : brc_draft_node_put(store, s->draft.id, node->path, entry, len,
                                                     NULL, err);
    }
    if (node->there != 0 && (node->is_replaced || !node->chunks_there))
        BRC_TRY(brc_draft_row_drop(store, node->there, err));
    else if (node->there != 0)
        BRC_TRY(brc_draft_stack_lay(store, &node->stack, &node->under, err));
    return brc_draft_row_give(store, &node->stack, s->draft.id, entry, len, err);
}

/* Moves the document of the resulting row along with that row if the document is not an object;
 * others are dropped. */
static int lay_with_document(brc_session *s, adopted_node *node, const uint8_t *entry,
                             size_t len, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_buf text = BRC_BUF_INIT;
    brc_span borrowed;
    brc_draft_node top = {0};
    int any, rc, found = 0, is_there = 0;
    BRC_TRY(brc_draft_docs_any(store, &any, err));
    if (!any)
        return lay_over(s, node, entry, len, err);
    if (entry != NULL)
        BRC_TRY(brc_draft_doc_has(store, &node->merged.doc, &found, err));
    if (found) {
        BRC_GO(brc_store_get(store, BRC_KIND_DOCUMENT, &node->merged.doc, &borrowed, err));
        BRC_GO(brc_buf_append(&text, borrowed.data, borrowed.len, err));
    }
    BRC_GO(brc_draft_doc_drop(store, node->stack.node[0], err));
    BRC_GO(brc_draft_doc_drop(store, node->there, err));
    BRC_GO(lay_over(s, node, entry, len, err));
    if (found)
        BRC_GO(brc_draft_node_get(store, s->draft.id, node->path, &is_there, &top, err));
    rc = is_there ? brc_draft_doc_put(store, top.node, &node->merged.doc,
                                      (brc_span){text.data, text.len}, err)
                  : BRC_OK;
done:
    free(top.entry);
    brc_buf_dispose(&text);
    return rc;
}

/* Tells whether the session has nothing at the path or under it. */
static int is_new_here(brc_session *s, const adopted_node *node, int *is, brc_error *err)
{
    brc_move *moves;
    size_t n;
    int any;
    *is = 0;
    if (node->base.kind != 0 || node->now.kind != 0 || node->mine.kind == 0 || node->there != 0)
        return BRC_OK;
    BRC_TRY(has_rows_under(s, node->path, &any, err));
    if (any)
        return BRC_OK;
    BRC_TRY(brc_draft_move_list(s->repo->store, s->draft.id, node->path, &moves, &n, err));
    brc_moves_free(moves, n);
    *is = n == 0;
    return BRC_OK;
}

static int adopt_node(brc_session *s, const brc_adoption *ad, const brc_draft_node *row,
                      int *new_kind, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    adopted_node node;
    int64_t ignored;
    int is_new;
    BRC_TRY(brc_draft_node_own(s->repo->store, s->draft.id, row->path, &ignored, err));
    BRC_TRY(look_at_adopted(s, ad, row, &node, err));
    int rc = ad->is_bulk ? merge_written(s, ad, &node, err) : check_apart(s, &node, err);
    if (rc == BRC_OK)
        rc = check_parent(s, ad, &node, err);
    if (rc != BRC_OK)
        return rc;
    BRC_TRY(is_new_here(s, &node, &is_new, err));
    *new_kind = is_new ? node.merged.kind : 0;
    size_t len = brc_entry_encode(bytes, &node.merged, brc_store_id_len(s->repo->store));
    BRC_TRY(lay_with_document(s, &node, node.merged.kind != 0 ? bytes : NULL, len, err));
    return node.base.kind == 0 && node.now.kind == 0 && node.merged.kind != 0
               ? brc_note_new(s, node.path, err)
               : BRC_OK;
}

/* ---- groups that only the draft has -------------------------------- */

/* Rows of the draft that have been read, with the stack of new groups above the last one:
 * everything within a new group is new too, and needs no comparison with the session. */
typedef struct adopted_rows {
    brc_draft_rows read;
    const char *group[BRC_DEPTH_MAX];
    size_t depth;
} adopted_rows;

/* Leaves the groups that do not contain this path. Tells whether the path is in the last of the
 * others. */
static int is_in_group(adopted_rows *rows, const char *path)
{
    while (rows->depth > 0) {
        const char *group = rows->group[rows->depth - 1];
        const size_t len = strlen(group);
        if (strncmp(path, group, len) == 0 && path[len] == '/')
            return strchr(path + len + 1, '/') == NULL;
        rows->depth--;
    }
    return 0;
}

static void enter_new_group(adopted_rows *rows, const brc_draft_node *row, int kind)
{
    if (kind == BRC_GROUP && rows->depth < sizeof(rows->group) / sizeof(rows->group[0]))
        rows->group[rows->depth++] = row->path;
}

/* Adopts a row in a new group as it is. */
static int adopt_new(brc_session *s, adopted_rows *rows, const brc_draft_node *row, brc_error *err)
{
    brc_store *store = s->repo->store;
    brc_draft_stack stack;
    brc_entry entry;
    BRC_TRY(brc_path_is_normal(row->path, err));
    BRC_TRY(brc_entry_decode(&entry, (brc_span){row->entry, row->entry_len},
                             brc_store_id_len(store), err));
    BRC_TRY(brc_draft_stack_get(store, row->node, &stack, err));
    BRC_TRY(brc_draft_row_give(store, &stack, s->draft.id, row->entry, row->entry_len, err));
    enter_new_group(rows, row, entry.kind);
    return BRC_OK;
}

static int adopt_row(brc_session *s, const brc_adoption *ad, adopted_rows *rows,
                     const brc_draft_node *row, brc_error *err)
{
    int kind = 0, rc;
    const int in_group = is_in_group(rows, row->path);
    if (in_group && row->entry != NULL)
        rc = adopt_new(s, rows, row, err);
    else
        rc = adopt_node(s, ad, row, &kind, err);
    enter_new_group(rows, row, kind);
    s->repo->changes++;
    s->changes = s->repo->changes; /* base and draft are still up to date */
    return rc;
}

/* ---- moves -------------------------------- */

/* Sets *any to 1 if the session has touched the node or a node under it. */
static int is_touched(brc_session *s, const char *path, int *any, brc_error *err)
{
    brc_draft_node own;
    BRC_TRY(brc_draft_node_get(s->repo->store, s->draft.id, path, any, &own, err));
    free(own.entry);
    return *any ? BRC_OK : has_rows_under(s, path, any, err);
}

/* Returns BRC_ADOPT_MEETS if the session has touched a node that the draft has moved. */
static int check_moved_nodes(brc_session *s, const brc_move *moves, size_t n, brc_error *err)
{
    int to = 0, from = 0;
    for (size_t i = 0; i < n && !to && !from; i++) {
        BRC_TRY(is_touched(s, moves[i].to, &to, err));
        if (*moves[i].from != '\0')
            BRC_TRY(is_touched(s, moves[i].from, &from, err));
    }
    return to || from ? BRC_ADOPT_MEETS : BRC_OK;
}

static int give_moves(brc_session *s, const brc_adoption *ad, const brc_move *moves, size_t n,
                      brc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        BRC_TRY(brc_draft_move_drop(s->repo->store, ad->draft, moves[i].to, err));
        BRC_TRY(brc_draft_move_put(s->repo->store, s->draft.id, moves[i].to, moves[i].from, err));
    }
    return BRC_OK;
}

/* ---- all rows of a draft -------------------------------- */

int brc_session_adopt_rows(brc_session *onto, const brc_adoption *ad, brc_error *err)
{
    enum { PAGE = 2048 };
    brc_store *store = onto->repo->store;
    adopted_rows rows = {0};
    brc_move *moves = NULL;
    size_t n = PAGE, nmoves = 0;
    int rc;
    BRC_GO(brc_draft_move_list(store, ad->draft, "/", &moves, &nmoves, err));
    rc = check_moved_nodes(onto, moves, nmoves, err);
    while (n == PAGE && rc == BRC_OK) {
        const size_t before = rows.read.n;
        BRC_GO(brc_draft_node_page(store, ad->draft, &rows.read, PAGE, err)); /* parents first */
        n = rows.read.n - before;
        for (size_t i = before; i < rows.read.n && rc == BRC_OK; i++) {
            const brc_draft_node *row = (const brc_draft_node *)rows.read.nodes + i;
            BRC_GO(brc_store_check_interrupt(store, err));
            rc = adopt_row(onto, ad, &rows, row, err);
        }
    }
    if (rc == BRC_OK)
        rc = give_moves(onto, ad, moves, nmoves, err);
done:
    brc_draft_nodes_free(rows.read.nodes, rows.read.n);
    brc_moves_free(moves, nmoves);
    return rc;
}

/* ---- a whole draft -------------------------------- */

static int check_same_base(const brc_session *s, const brc_draft_head *draft, brc_error *err)
{
    if (brc_draft_same_version(&s->draft, draft))
        return BRC_OK;
    return brc_fail(err, BRC_ESTALE,
                    "draft %lld lies over another version of branch '%s' than the uncommitted "
                    "changes there: commit or drop those before it is adopted",
                    (long long)draft->id, s->branch);
}

/* Adopts the bytes that are neither a node nor a chunk yet. */
static int adopt_keys(brc_session *onto, int64_t draft, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    brc_store *store = onto->repo->store;
    int rc = brc_draft_keys_meet(store, draft, onto->draft.id, &key, err);
    if (rc > 0)
        rc = brc_fail(err, BRC_ECONFLICT,
                      "both sides have set the key '%.200s', which is not a node or chunk yet, to "
                      "different bytes; draft %lld is kept: commit or drop the other changes, or "
                      "drop it",
                      (const char *)key.data, (long long)draft);
    brc_buf_dispose(&key);
    return rc < 0 ? rc : brc_draft_key_copy(store, draft, "", onto->draft.id, "", err);
}

static int adopt_whole(brc_session *onto, const brc_draft_head *draft, brc_error *err)
{
    brc_adoption ad = {.draft = draft->id};
    if (draft->has_base)
        BRC_TRY(brc_commit_root(onto->repo->store, &draft->base, &ad.base, err));
    BRC_TRY(adopt_keys(onto, draft->id, err));
    const int rc = brc_session_adopt_rows(onto, &ad, err);
    return rc != BRC_OK ? rc : brc_draft_delete(onto->repo->store, draft->id, err);
}

/* Takes the draft over; the session has no row of its own with changes. */
static int take_over(brc_session *onto, const brc_draft_head *draft, brc_error *err)
{
    brc_store *store = onto->repo->store;
    const int is_private = onto->mode == BRC_SESSION_PRIVATE;
    if (onto->draft.id != 0)
        BRC_TRY(brc_draft_delete(store, onto->draft.id, err));
    if (!is_private)
        BRC_TRY(brc_draft_forget(store, onto->branch, err));
    BRC_TRY(brc_draft_give(store, draft->id, is_private ? BRC_DRAFT_PRIVATE : BRC_DRAFT_SHARED,
                           is_private ? onto->owner : NULL, NULL, err));
    BRC_TRY(brc_draft_touch(store, draft->id, err));
    if (is_private)
        onto->draft = *draft;
    onto->is_new = 0;
    onto->is_read = 0;
    return brc_session_log_whole(onto, err);
}

/* Tells whether the session has its own changes. The row of a private draft stays, because others,
 * such as its children, may know its number. After a soft reset changes have no row. */
static int has_own(brc_session *onto, int *has, brc_error *err)
{
    int empty = 1, parent = 0;
    if (onto->draft.id != 0) {
        BRC_TRY(brc_draft_is_empty(onto->repo->store, onto->draft.id, &empty, err));
        BRC_TRY(brc_draft_has_children(onto->repo->store, onto->draft.id, &parent, err));
    }
    *has = !empty || onto->draft.saves || onto->draft.logs || onto->is_handed_out;
    *has |= parent;
    *has |= !brc_draft_follows(&onto->draft, onto->draft.has_base, &onto->draft.base);
    return BRC_OK;
}

int brc_session_adopt(brc_session *onto, const brc_draft_head *draft, int take_only, brc_error *err)
{
    int has;
    BRC_TRY(brc_session_begin_read(onto, err)); /* within the write: to see the session's state */
    brc_session_end_read(onto);
    BRC_TRY(has_own(onto, &has, err));
    if (!has)
        return take_over(onto, draft, err);
    BRC_TRY(check_same_base(onto, draft, err));
    if (take_only)
        return BRC_ADOPT_MEETS;
    BRC_TRY(brc_session_begin(onto, err));
    const int rc = adopt_whole(onto, draft, err);
    const int ended = brc_session_end(onto, rc == BRC_ADOPT_MEETS ? BRC_ECONFLICT : rc, err);
    return rc == BRC_ADOPT_MEETS ? rc : ended;
}

int brc_session_take_written(brc_session *onto, int64_t draft, int *taken, brc_error *err)
{
    brc_draft_head head;
    int has;
    BRC_TRY(brc_draft_get(onto->repo->store, draft, &head, err));
    BRC_TRY(has_own(onto, &has, err));
    *taken = !has && head.id != 0;
    if (*taken)
        BRC_TRY(take_over(onto, &head, err));
    onto->repo->changes += *taken != 0;
    return BRC_OK;
}
