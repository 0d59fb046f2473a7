#include "doc_diff.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"

void brc_pointers_dispose(brc_pointers *pointers)
{
    for (size_t i = 0; i < pointers->n; i++)
        free(pointers->items[i]);
    free(pointers->items);
    memset(pointers, 0, sizeof(*pointers));
}

static int pointer_add(brc_pointers *out, const char *base, const char *name, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    void *p = out->items;
    int rc;
    BRC_GO(brc_grow_array(&p, &out->cap, out->n + 1, sizeof(char *), err));
    out->items = p;
    BRC_GO(brc_buf_text(&text, base, err));
    BRC_GO(brc_json_pointer_step(&text, name, err));
    BRC_GO(brc_buf_take_text(&text, &out->items[out->n], err));
    out->n++;
done:
    brc_buf_dispose(&text);
    return rc;
}

/* An empty "attributes" means the same as none, and so does an empty
 * "storage_transformers". */
static int member_says_nothing(const brc_json *value)
{
    int kind = brc_json_kind(value);
    return kind == BRC_JSON_ABSENT || kind == BRC_JSON_NULL ||
           ((kind == BRC_JSON_OBJECT || kind == BRC_JSON_ARRAY) && brc_json_count(value) == 0);
}

/* A stranger's documents are not checked yet: an array's items have no names. */
static int has_members(const brc_json *value)
{
    int kind = brc_json_kind(value);
    return kind == BRC_JSON_OBJECT || kind == BRC_JSON_ABSENT;
}

static int members_diff(brc_pointers *out, const char *base, const brc_json *a, const brc_json *b,
                        brc_error *err);

static int member_diff(brc_pointers *out, const char *base, const char *name, const brc_json *x,
                       const brc_json *y, brc_error *err)
{
    int top = *base == '\0';
    if (brc_json_equal(x, y) || (top && member_says_nothing(x) && member_says_nothing(y)))
        return BRC_OK;
    if (top && strcmp(name, "attributes") == 0 && has_members(x) && has_members(y))
        return members_diff(out, "/attributes", x, y, err);
    return pointer_add(out, base, name, err);
}

static int members_compare(brc_pointers *out, const char *base, const brc_json *a,
                           const brc_json *b, const brc_json_index *in_a,
                           const brc_json_index *in_b, brc_error *err)
{
    for (const brc_json *v = brc_json_first(a); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        BRC_TRY(member_diff(out, base, name, v, brc_json_index_find(in_b, name), err));
    }
    for (const brc_json *v = brc_json_first(b); v != NULL; v = brc_json_next(v)) {
        const char *name = brc_json_own_name(v);
        if (brc_json_index_find(in_a, name) == NULL)
            BRC_TRY(member_diff(out, base, name, NULL, v, err));
    }
    return BRC_OK;
}

static int members_diff(brc_pointers *out, const char *base, const brc_json *a, const brc_json *b,
                        brc_error *err)
{
    brc_json_index in_a, in_b = {NULL, 0};
    int rc = brc_json_index_make(&in_a, a, err);
    if (rc == BRC_OK)
        rc = brc_json_index_make(&in_b, b, err);
    if (rc == BRC_OK)
        rc = members_compare(out, base, a, b, &in_a, &in_b, err);
    brc_json_index_dispose(&in_a);
    brc_json_index_dispose(&in_b);
    return rc;
}

int brc_doc_diff(brc_pointers *out, const brc_json *a, const brc_json *b, brc_error *err)
{
    if (!has_members(a) || !has_members(b))
        return brc_fail(err, BRC_ECORRUPT,
                        "a node's document is damaged: it is not a JSON object; run 'breccia "
                        "fsck'");
    return members_diff(out, "", a, b, err);
}
