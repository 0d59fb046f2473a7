#include "fork_keys.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/json.h"
#include "../store/collect.h"

/* More than these nobody has who knows what his keys will be; each child has them in its row. */
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
                        "%zu keys of this session are no node or chunk, and a child can begin with "
                        "%d at most: set what is missing, or delete them",
                        keys->n, KEYS_MOST);
    BRC_TRY(brc_buf_text(out, "{", err));
    for (size_t i = 0; i < keys->n; i++) {
        BRC_TRY(brc_buf_text(out, i > 0 ? "," : "", err));
        BRC_TRY(brc_json_quote(out, items[i].key, strlen(items[i].key), err));
        if (items[i].has_id)
            BRC_TRY(brc_buf_printf(out, err, ":\"%s\"", brc_oid_format(hex, &items[i].id)));
        else
            BRC_TRY(brc_buf_text(out, ":null", err));
    }
    return brc_buf_text(out, "}", err);
}

static int parse_keys(brc_fork_keys *out, const brc_json *object, brc_error *err)
{
    for (const brc_json *at = brc_json_first(object); at != NULL; at = brc_json_next(at)) {
        brc_oid id;
        const char *hex = "";
        const int has_id = brc_json_kind(at) != BRC_JSON_NULL;
        if (has_id && (!brc_json_text(at, &hex) || !brc_oid_parse(&id, hex)))
            return brc_fail(err, BRC_ECORRUPT,
                            "the plan of a session's child is damaged: '%.80s' is no id", hex);
        BRC_TRY(take_key(out, brc_json_own_name(at), has_id ? &id : NULL, err));
    }
    return BRC_OK;
}

static int fork_key_order(const void *a, const void *b)
{
    return strcmp(((const brc_fork_key *)a)->key, ((const brc_fork_key *)b)->key);
}

int brc_fork_keys_parse(brc_fork_keys *out, const brc_json *object, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = parse_keys(out, object, err);
    if (rc < 0)
        brc_fork_keys_dispose(out);
    else if (out->n > 1)
        qsort(out->items, out->n, sizeof(brc_fork_key), fork_key_order);
    return rc;
}

/* ---- in a draft -------------------------------- */

/* Nothing may have named them for a while. */
static int need_bytes(brc_store *store, const brc_fork_key *key, brc_error *err)
{
    brc_object o = {.id = key->id}, *one = &o;
    BRC_TRY(brc_objects_find(store, &one, 1, err));
    if (o.found)
        return brc_gc_keep(store, &key->id, err);
    return brc_fail(err, BRC_ESTALE, "what was at the key '%.200s' was collected: set it again",
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

/* Lists that are read side by side. */
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

/* What it says of the key, behind which it goes; NULL: nothing. */
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
