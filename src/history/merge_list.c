#include "merge_list.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

/* ==== merge list ================================ */

int brc_clash_add(brc_clash_list *list, const char *path, const char *member, brc_clash **out,
                  brc_error *err)
{
    static const brc_buf empty = BRC_BUF_INIT;
    void *p = list->items;
    int rc = brc_grow_array(&p, &list->cap, list->n + 1, sizeof(*list->items), err);
    list->items = p;
    if (rc < 0)
        return rc;
    brc_clash *clash = &list->items[list->n];
    memset(clash, 0, sizeof(*clash));
    clash->key = clash->base = clash->ours = clash->theirs = empty;
    BRC_TRY(brc_dup(&clash->path, path, err));
    rc = brc_dup(&clash->member, member, err);
    if (rc < 0) {
        free(clash->path);
        return rc;
    }
    list->n++;
    *out = clash;
    return BRC_OK;
}

static int clash_bytes(brc_buf *out, const void *data, size_t len, brc_error *err)
{
    BRC_TRY(brc_buf_append(out, data, len, err));
    return brc_buf_terminate(out, err); /* allocates memory, and makes a text a C string */
}

static int clash_entry(brc_buf *out, const brc_entry *entry, size_t id_len, brc_error *err)
{
    uint8_t bytes[BRC_ENTRY_MAX];
    if (entry->kind == 0)
        return BRC_OK;
    return clash_bytes(out, bytes, brc_entry_encode(bytes, entry, id_len), err);
}

int brc_clash_entries(brc_clash *clash, const brc_entry *base, const brc_entry *ours,
                      const brc_entry *theirs, size_t id_len, brc_error *err)
{
    BRC_TRY(clash_entry(&clash->base, base, id_len, err));
    BRC_TRY(clash_entry(&clash->ours, ours, id_len, err));
    return clash_entry(&clash->theirs, theirs, id_len, err);
}

static int clash_id(brc_buf *out, const brc_oid *id, size_t id_len, brc_error *err)
{
    return brc_oid_is_zero(id) ? BRC_OK : clash_bytes(out, id->bytes, id_len, err);
}

int brc_clash_ids(brc_clash *clash, const brc_oid *base, const brc_oid *ours,
                  const brc_oid *theirs, size_t id_len, brc_error *err)
{
    BRC_TRY(clash_id(&clash->base, base, id_len, err));
    BRC_TRY(clash_id(&clash->ours, ours, id_len, err));
    return clash_id(&clash->theirs, theirs, id_len, err);
}

static int clash_value(brc_buf *out, const brc_json *value, brc_error *err)
{
    if (value == NULL)
        return BRC_OK;
    BRC_TRY(brc_json_write(out, value, 0, err));
    return brc_buf_terminate(out, err);
}

int brc_clash_values(brc_clash *clash, const brc_json *base, const brc_json *ours,
                     const brc_json *theirs, brc_error *err)
{
    BRC_TRY(clash_value(&clash->base, base, err));
    BRC_TRY(clash_value(&clash->ours, ours, err));
    return clash_value(&clash->theirs, theirs, err);
}

int brc_clash_texts(brc_clash *clash, const char *base, const char *ours, const char *theirs,
                    brc_error *err)
{
    if (base != NULL)
        BRC_TRY(clash_bytes(&clash->base, base, strlen(base), err));
    if (ours != NULL)
        BRC_TRY(clash_bytes(&clash->ours, ours, strlen(ours), err));
    if (theirs != NULL)
        BRC_TRY(clash_bytes(&clash->theirs, theirs, strlen(theirs), err));
    return BRC_OK;
}

static int clash_order(const void *a, const void *b)
{
    const brc_clash *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    order = order != 0 ? order : strcmp(x->member, y->member);
    if (order != 0)
        return order;
    const size_t least = x->key.len < y->key.len ? x->key.len : y->key.len;
    order = least > 0 ? memcmp(x->key.data, y->key.data, least) : 0;
    if (order == 0)
        order = (x->key.len > y->key.len) - (x->key.len < y->key.len);
    return order != 0 ? order : (x->draft > y->draft) - (x->draft < y->draft);
}

static void clash_dispose(brc_clash *clash)
{
    free(clash->path);
    free(clash->member);
    brc_buf_dispose(&clash->key);
    brc_buf_dispose(&clash->base);
    brc_buf_dispose(&clash->ours);
    brc_buf_dispose(&clash->theirs);
}

void brc_clash_list_sort(brc_clash_list *list)
{
    size_t n = 0;
    if (list->n < 2)
        return;
    qsort(list->items, list->n, sizeof(*list->items), clash_order);
    for (size_t i = 1; i < list->n; i++) {
        brc_clash *last = &list->items[n], *one = &list->items[i];
        if (clash_order(last, one) != 0) {
            list->items[++n] = *one;
            continue;
        }
        brc_clash *kept = last->base.data == NULL && one->base.data != NULL ? one : last;
        brc_clash more = kept == one ? *last : *one;
        *last = *kept;
        clash_dispose(&more);
    }
    list->n = n + 1;
}

void brc_clash_list_dispose(brc_clash_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        clash_dispose(&list->items[i]);
    free(list->items);
    memset(list, 0, sizeof(*list));
}

/* ==== merge rows ================================ */

static brc_span value_span(const brc_buf *value)
{
    return (brc_span){value->data, value->len};
}

int brc_clash_put(brc_store *store, int64_t draft, const brc_clash *clash, int in_memory,
                  brc_error *err)
{
    static const uint8_t nothing[1];
    const int is_object = strcmp(clash->member, BRC_CLASH_NODE) == 0 ||
                          strcmp(clash->member, BRC_CLASH_CHUNK) == 0 ||
                          strcmp(clash->member, BRC_CLASH_STORAGE) == 0;
    brc_conflict_row row = {.path = clash->path, .member = clash->member,
                            .key = value_span(&clash->key), .base = value_span(&clash->base),
                            .ours = value_span(&clash->ours), .theirs = value_span(&clash->theirs),
                            .state = clash->settled};
    if (in_memory && is_object && row.base.data != NULL)
        row.base = (brc_span){nothing, 0};
    return brc_conflict_put(store, draft, &row, err);
}

int brc_clash_list_put(brc_store *store, int64_t draft, const brc_clash_list *list, int in_memory,
                       brc_error *err)
{
    for (size_t i = 0; i < list->n; i++)
        BRC_TRY(brc_clash_put(store, draft, &list->items[i], in_memory, err));
    return BRC_OK;
}

static int take_side(brc_buf *out, brc_span value, brc_error *err)
{
    if (value.data == NULL)
        return BRC_OK;
    BRC_TRY(brc_buf_append(out, value.data, value.len, err));
    return brc_buf_terminate(out, err);
}

static int add_conflict(void *ctx, const brc_conflict_row *row, brc_error *err)
{
    brc_clash *clash;
    BRC_TRY(brc_clash_add(ctx, row->path, row->member, &clash, err));
    clash->settled = row->state;
    BRC_TRY(take_side(&clash->key, row->key, err));
    BRC_TRY(take_side(&clash->base, row->base, err));
    BRC_TRY(take_side(&clash->ours, row->ours, err));
    return take_side(&clash->theirs, row->theirs, err);
}

int brc_clash_list_read(brc_clash_list *out, brc_store *store, int64_t draft, brc_error *err)
{
    int rc = brc_conflict_each(store, draft, add_conflict, out, err);
    if (rc < 0)
        brc_clash_list_dispose(out);
    return rc;
}
