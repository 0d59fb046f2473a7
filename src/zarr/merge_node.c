#include "merge_node.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_array.h"
#include "merge_concat.h"
#include "same_chunks.h"

/* Storage options are one value. */
static int merge_storage(const brc_merge_how *how, const brc_merge_place *place,
                         brc_merged_node *out, brc_clash_list *clashes, brc_error *err)
{
    const brc_oid *base = &place->base.storage, *ours = &place->ours.storage;
    const brc_oid *theirs = &place->theirs.storage;
    const int has_base = place->base.kind != 0;
    const int favour = brc_merge_favour(how, place->path);
    brc_clash *clash;
    out->storage = *ours;
    if (brc_oid_cmp(ours, theirs) == 0 || (has_base && brc_oid_cmp(theirs, base) == 0))
        return BRC_OK;
    if ((has_base && brc_oid_cmp(ours, base) == 0) || favour == BRC_FAVOUR_THEIRS) {
        out->storage = *theirs;
        return BRC_OK;
    }
    if (favour != BRC_FAVOUR_NONE || how->is_virtual)
        return BRC_OK;
    BRC_TRY(brc_clash_add(clashes, place->path, BRC_CLASH_STORAGE, &clash, err));
    return brc_clash_ids(clash, base, ours, theirs, brc_store_id_len(how->repo->store), err);
}

static int merge_group(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    BRC_TRY(brc_doc_merge(&docs->doc[BRC_FORM_MERGED], docs->doc[BRC_FORM_BASE],
                          docs->doc[BRC_FORM_OURS], docs->doc[BRC_FORM_THEIRS], NULL,
                          brc_member_clash, m, err));
    return brc_merged_doc(out, m->place, docs, err);
}

static int node_merge(void *ctx, const brc_merge_place *place, brc_merged_node *out,
                      brc_clash_list *clashes, brc_error *err)
{
    brc_merge_how *how = ctx;
    brc_node_docs docs;
    brc_merge_place laid_out;
    brc_concat_list *concat = how->is_virtual ? NULL : how->concat;
    place = brc_concat_place(concat, place, &laid_out);
    brc_member_merge m = {how, place, clashes, brc_merge_favour(how, place->path), 0};
    int rc;
    /* What another node has stored does not keep others out for as long as this one takes. */
    BRC_TRY(brc_store_rest(how->repo->store, 1, err));
    BRC_TRY(merge_storage(how, place, out, clashes, err));
    BRC_TRY(brc_node_docs_read(&docs, how, place, err));
    if (place->ours.kind == BRC_GROUP)
        rc = merge_group(&m, &docs, out, err);
    else if (concat == NULL || (rc = brc_concat_look(concat, place, &docs, err)) == 0)
        rc = brc_merge_array(&m, &docs, out, err);
    brc_node_docs_dispose(&docs);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- the same data -------------------------------- */

static int documents_same(const brc_json *a, const brc_json *b, int *same, brc_error *err)
{
    static const char *const stored[] = {"codecs", "chunk_grid"};
    brc_json *x = NULL, *y = NULL;
    int rc;
    BRC_GO(brc_json_clone(&x, a, err));
    BRC_GO(brc_json_clone(&y, b, err));
    for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++) {
        brc_json_remove(x, stored[i]);
        brc_json_remove(y, stored[i]);
    }
    *same = brc_json_same(x, y);
done:
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

/* In their elements; padding is never compared. */
static int chunks_same(const brc_merge_how *how, const brc_entry *a, const brc_entry *b, int *same,
                       brc_error *err)
{
    char path[] = "an array";
    brc_node_change c = {.path = path, .a = *a, .b = *b};
    *same = a->kind != BRC_ARRAY || brc_oid_cmp(&a->map, &b->map) == 0;
    if (*same || how->is_virtual || b->kind != BRC_ARRAY)
        return BRC_OK;
    int rc = brc_node_diff(&c, how->repo->store, err);
    if (rc == BRC_OK)
        rc = brc_same_chunks_discount(&c, how->repo, err);
    *same = c.chunks_added + c.chunks_removed + c.chunks_changed == 0;
    c.path = NULL;
    brc_node_change_dispose(&c);
    return rc;
}

static int node_same(void *ctx, const brc_entry *a, const brc_entry *b, int *same, brc_error *err)
{
    const brc_merge_how *how = ctx;
    brc_json *x = NULL, *y = NULL;
    int rc;
    BRC_TRY(chunks_same(how, a, b, same, err));
    if (!*same)
        return BRC_OK;
    *same = brc_oid_cmp(&a->doc, &b->doc) == 0;
    if (*same || a->kind != BRC_ARRAY || how->is_virtual)
        return BRC_OK;
    BRC_GO(brc_entry_doc(how->repo->store, a, &x, err));
    BRC_GO(brc_entry_doc(how->repo->store, b, &y, err));
    if (brc_json_is_unknown(x) || brc_json_kind(x) != BRC_JSON_OBJECT ||
        brc_json_kind(y) != BRC_JSON_OBJECT)
        goto done;
    BRC_GO(documents_same(x, y, same, err));
    if (*same)
        rc = brc_docs_same_grid(how, x, y, same, err);
done:
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

static int node_favour(void *ctx, const char *path)
{
    return brc_merge_favour(ctx, path);
}

void brc_merge_how_ops(brc_merge_ops *out, brc_merge_how *how)
{
    *out = (brc_merge_ops){.ctx = how, .node = node_merge, .same = node_same,
                           .favour = node_favour,
                           .unknown = how->is_virtual ? &how->unknown : NULL};
}
