#include "merge_member.h"

#include <stdlib.h>
#include <string.h>

#include "meta.h"

int brc_merge_favour(const brc_merge_how *how, const char *path)
{
    if (how->npaths == 0)
        return how->favour;
    const int is = how->is_exact ? brc_paths_have(how->paths, how->npaths, path, NULL)
                                 : brc_paths_cover(how->paths, how->npaths, path, NULL);
    return is ? how->favour : BRC_FAVOUR_NONE;
}

/* ---- members -------------------------------- */

int brc_member_clash(void *ctx, const char *pointer, const brc_json *base, const brc_json *ours,
                     const brc_json *theirs, brc_json **instead, brc_error *err)
{
    brc_member_merge *m = ctx;
    brc_clash *clash;
    *instead = NULL;
    m->clashed = 1;
    if (m->how->is_virtual)
        return brc_json_new_unknown(instead, err);
    if (m->favour != BRC_FAVOUR_NONE)
        return m->favour == BRC_FAVOUR_THEIRS;
    BRC_TRY(brc_clash_add(m->clashes, m->place->path, pointer, &clash, err));
    return brc_clash_values(clash, base, ours, theirs, err);
}

/* ---- documents of the three -------------------------------- */

void brc_node_docs_dispose(brc_node_docs *docs)
{
    for (int i = 0; i < BRC_FORMS; i++)
        brc_json_free(docs->doc[i]);
}

int brc_node_docs_read(brc_node_docs *docs, const brc_merge_how *how, const brc_merge_place *place,
                       brc_error *err)
{
    const brc_entry *sides[] = {&place->base, &place->ours, &place->theirs};
    int rc = BRC_OK;
    memset(docs, 0, sizeof(*docs));
    BRC_TRY(brc_store_begin_read(how->repo->store, err));
    for (int i = 0; i < BRC_FORMS - 1 && rc == BRC_OK; i++)
        if (sides[i]->kind != 0)
            rc = brc_entry_doc(how->repo->store, sides[i], &docs->doc[i], err);
    brc_store_end_read(how->repo->store);
    for (int i = 0; i < BRC_FORMS - 1 && rc == BRC_OK; i++)
        if (docs->doc[i] != NULL && brc_json_kind(docs->doc[i]) != BRC_JSON_OBJECT)
            rc = brc_fail(err, BRC_ECORRUPT,
                          "the document of %.200s is damaged: it is not a JSON object; run "
                          "'breccia fsck'",
                          place->path);
    if (rc < 0)
        brc_node_docs_dispose(docs);
    return rc;
}

/* The document goes into `out`, if it is not that of one side. */
int brc_merged_doc(brc_merged_node *out, const brc_merge_place *place, const brc_node_docs *docs,
                   brc_error *err)
{
    out->doc = place->ours.doc;
    if (brc_json_equal(docs->doc[BRC_FORM_MERGED], docs->doc[BRC_FORM_OURS]))
        return BRC_OK;
    if (brc_json_equal(docs->doc[BRC_FORM_MERGED], docs->doc[BRC_FORM_THEIRS])) {
        out->doc = place->theirs.doc;
        return BRC_OK;
    }
    return brc_json_write(&out->text, docs->doc[BRC_FORM_MERGED], err);
}

/* Whether both cut what they store the same way, whatever the shards around it. */
int brc_docs_same_grid(const brc_merge_how *how, const brc_json *a, const brc_json *b, int *same,
                       brc_error *err)
{
    brc_meta x, y;
    *same = 0;
    BRC_TRY(brc_meta_open(&x, how->repo->registry, a, err));
    int rc = brc_meta_open(&y, how->repo->registry, b, err);
    if (rc == BRC_OK) {
        *same = !x.opaque && !y.opaque && brc_grid_same(&x.grid, &y.grid);
        brc_meta_dispose(&y);
    }
    brc_meta_dispose(&x);
    return rc;
}

int brc_shape_member(const brc_json *doc, int *ndim, uint64_t *shape)
{
    const brc_json *list = brc_json_member(doc, "shape");
    *ndim = 0;
    if (brc_json_kind(list) != BRC_JSON_ARRAY || brc_json_count(list) > BRC_MAX_NDIM)
        return 0;
    for (const brc_json *v = brc_json_first(list); v != NULL; v = brc_json_next(v))
        if (!brc_json_uint(v, UINT64_MAX, &shape[(*ndim)++]))
            return 0;
    return 1;
}
