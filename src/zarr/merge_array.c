#include "merge_array.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "merge_elements.h"
#include "merge_ids.h"
#include "meta.h"

/* ---- the shape -------------------------------- */

/* Axis by axis; 0: one was changed to different lengths, or the ranks differ. */
static int shape_by_axis(const brc_node_docs *docs, int favour, int *ndim, uint64_t *out)
{
    uint64_t base[BRC_MAX_NDIM], theirs[BRC_MAX_NDIM];
    int nb, nt;
    if (!brc_shape_member(docs->doc[BRC_FORM_BASE], &nb, base) ||
        !brc_shape_member(docs->doc[BRC_FORM_OURS], ndim, out) ||
        !brc_shape_member(docs->doc[BRC_FORM_THEIRS], &nt, theirs) || nb != *ndim || nt != *ndim)
        return 0;
    for (int i = 0; i < nb; i++) {
        if (out[i] == theirs[i] || theirs[i] == base[i])
            continue;
        if (out[i] != base[i] && favour == BRC_FAVOUR_NONE)
            return 0;
        if (out[i] == base[i] || favour == BRC_FAVOUR_THEIRS)
            out[i] = theirs[i];
    }
    return 1;
}

static int merge_shape(brc_member_merge *m, brc_node_docs *docs, brc_error *err)
{
    const brc_json *base = brc_json_member(docs->doc[BRC_FORM_BASE], "shape");
    const brc_json *ours = brc_json_member(docs->doc[BRC_FORM_OURS], "shape");
    const brc_json *theirs = brc_json_member(docs->doc[BRC_FORM_THEIRS], "shape");
    brc_json *merged = docs->doc[BRC_FORM_MERGED], *instead = NULL;
    uint64_t shape[BRC_MAX_NDIM];
    int ndim;
    if (brc_json_same(ours, theirs))
        return BRC_OK;
    if (shape_by_axis(docs, m->favour, &ndim, shape))
        return brc_meta_set_shape(merged, ndim, shape, err);
    int takes = brc_member_clash(m, "/shape", base, ours, theirs, &instead, err);
    if (takes > 0)
        BRC_TRY(brc_json_clone(&instead, theirs, err));
    if (takes < 0 || instead == NULL)
        return takes < 0 ? takes : BRC_OK;
    return brc_json_set(merged, "shape", instead, err);
}

/* ---- the form -------------------------------- */

static const char *const form_members[] = {"shape", "data_type", "chunk_grid", "fill_value",
                                           "codecs", "chunk_key_encoding", "dimension_names"};

/* What is said of chunks stays as one side has it, altogether: no mixed array. */
static int form_of_side(brc_node_docs *docs, int side, brc_error *err)
{
    brc_json *merged = docs->doc[BRC_FORM_MERGED], *copy;
    for (size_t i = 0; i < sizeof(form_members) / sizeof(form_members[0]); i++) {
        const brc_json *value = brc_json_member(docs->doc[side], form_members[i]);
        if (value == NULL) {
            brc_json_remove(merged, form_members[i]);
            continue;
        }
        BRC_TRY(brc_json_clone(&copy, value, err));
        BRC_TRY(brc_json_set(merged, form_members[i], copy, err));
    }
    return BRC_OK;
}

/* The member in which the sides' forms differ most. */
static const char *form_pointer(const brc_node_docs *docs)
{
    const char *const names[] = {"data_type", "chunk_grid", "fill_value", "codecs"};
    static const char *const pointers[] = {"/data_type", "/chunk_grid", "/fill_value", "/codecs"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!brc_json_same(brc_json_member(docs->doc[BRC_FORM_OURS], names[i]),
                           brc_json_member(docs->doc[BRC_FORM_THEIRS], names[i])))
            return pointers[i];
    return "/chunk_grid";
}

static int is_ours_whole(const brc_merge_how *how, const char *path)
{
    for (size_t i = 0; i < how->nwhole; i++)
        if (strcmp(how->whole[i], path) == 0)
            return 1;
    return 0;
}

/* Form and chunks cannot be told apart: all of it is one side's. */
static int array_apart(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    const int is_theirs =
        m->favour == BRC_FAVOUR_THEIRS && !is_ours_whole(m->how, m->place->path);
    const int side = is_theirs ? BRC_FORM_THEIRS : BRC_FORM_OURS;
    brc_clash *clash;
    out->map = side == BRC_FORM_OURS ? m->place->ours.map : m->place->theirs.map;
    BRC_TRY(form_of_side(docs, side, err));
    if (m->favour != BRC_FAVOUR_NONE)
        return BRC_OK;
    const char *pointer = form_pointer(docs);
    /* Those of this node are the last. */
    for (size_t i = m->clashes->n;
         i-- > 0 && strcmp(m->clashes->items[i].path, m->place->path) == 0;)
        if (strcmp(m->clashes->items[i].member, pointer) == 0)
            return BRC_OK; /* it is said already */
    BRC_TRY(brc_clash_add(m->clashes, m->place->path, pointer, &clash, err));
    return brc_clash_values(clash, brc_json_member(docs->doc[BRC_FORM_BASE], pointer + 1),
                            brc_json_member(docs->doc[BRC_FORM_OURS], pointer + 1),
                            brc_json_member(docs->doc[BRC_FORM_THEIRS], pointer + 1), err);
}

/* Zarr's rules, over all members together. */
static int is_whole(const brc_member_merge *m, const brc_node_docs *docs, int *whole,
                    brc_error *err)
{
    brc_meta meta;
    brc_error cause = BRC_ERROR_INIT;
    int rc = brc_meta_open(&meta, m->how->repo->registry, docs->doc[BRC_FORM_MERGED], &cause);
    *whole = rc == BRC_OK;
    if (rc == BRC_OK)
        brc_meta_dispose(&meta);
    if (rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &cause);
    return rc;
}

/* Whether anything that chunks depend on differs between two documents. */
static int same_chunk_form(const brc_json *a, const brc_json *b)
{
    static const char *const names[] = {"shape", "data_type", "chunk_grid", "fill_value"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!brc_json_same(brc_json_member(a, names[i]), brc_json_member(b, names[i])))
            return 0;
    return 1;
}

/* As long, along each axis, as this side has it. */
static int shape_to_hold(brc_node_docs *docs, int side, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], held[BRC_MAX_NDIM];
    int ndim, n;
    if (!brc_shape_member(docs->doc[BRC_FORM_MERGED], &ndim, shape) ||
        !brc_shape_member(docs->doc[side], &n, held) || n != ndim)
        return BRC_OK;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < held[i])
            shape[i] = held[i];
    return brc_meta_set_shape(docs->doc[BRC_FORM_MERGED], ndim, shape, err);
}

/* Who is favoured, or ours while a conflict is open, loses nothing where the other has cut the
 * array: then it is not cut. */
static int merge_by_element(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out,
                            int *apart, brc_error *err)
{
    int lost, whole;
    BRC_TRY(brc_merge_elements(m, docs, out, 1, &lost, apart, err));
    if (!lost)
        return BRC_OK;
    out->nedits = 0;
    BRC_TRY(shape_to_hold(docs, m->favour == BRC_FAVOUR_THEIRS ? BRC_FORM_THEIRS : BRC_FORM_OURS,
                          err));
    BRC_TRY(is_whole(m, docs, &whole, err));
    *apart = !whole;
    return whole ? brc_merge_elements(m, docs, out, 0, &lost, apart, err) : BRC_OK;
}

/* Also of a base whose bases differ in lengths; 0 with `*known` 0: nobody can tell. */
static size_t rank_of(const brc_json *doc, int *known)
{
    const brc_json *list = brc_json_member(doc, "shape");
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        list = brc_json_member(brc_json_member(brc_json_member(doc, "chunk_grid"), "configuration"),
                               "chunk_shape");
    *known = brc_json_kind(list) == BRC_JSON_ARRAY;
    return *known ? brc_json_count(list) : 0;
}

/* Chunks of different ranks are no map together: one key may be the beginning of another. */
static int have_one_rank(const brc_node_docs *docs)
{
    int known, is = 1;
    const size_t rank = rank_of(docs->doc[BRC_FORM_OURS], &is);
    for (int side = BRC_FORM_BASE; side <= BRC_FORM_THEIRS && is; side++)
        is = docs->doc[side] == NULL || (rank_of(docs->doc[side], &known) == rank && known);
    return is;
}

/* Of bases. Those of different ranks agree on nothing. */
static int merge_bases(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    if (have_one_rank(docs))
        return brc_merge_ids(m, docs, out, err);
    brc_json_free(docs->doc[BRC_FORM_MERGED]);
    docs->doc[BRC_FORM_MERGED] = NULL;
    return brc_json_new_unknown(&docs->doc[BRC_FORM_MERGED], err);
}

static int merge_chunk_ids(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out,
                           brc_error *err)
{
    const brc_merge_place *p = m->place;
    const brc_oid *base = &p->base.map, *ours = &p->ours.map, *theirs = &p->theirs.map;
    const int has_base = p->base.kind != 0 && !brc_json_is_unknown(docs->doc[BRC_FORM_BASE]);
    int apart = 0;
    const brc_json *const *doc = (const brc_json *const *)docs->doc;
    const brc_json *merged = doc[BRC_FORM_MERGED];
    const int like_ours = same_chunk_form(doc[BRC_FORM_OURS], merged);
    const int like_theirs = same_chunk_form(doc[BRC_FORM_THEIRS], merged);
    out->map = *ours;
    if (brc_oid_cmp(ours, theirs) == 0 && like_ours && like_theirs)
        return BRC_OK;
    if (has_base && brc_oid_cmp(theirs, base) == 0 && like_ours)
        return BRC_OK;
    if (has_base && brc_oid_cmp(ours, base) == 0 && like_theirs) {
        out->map = *theirs;
        return BRC_OK;
    }
    if (m->how->is_virtual)
        return merge_bases(m, docs, out, err);
    BRC_TRY(merge_by_element(m, docs, out, &apart, err));
    return apart ? array_apart(m, docs, out, err) : BRC_OK;
}

int brc_merge_array(brc_member_merge *m, brc_node_docs *docs, brc_merged_node *out, brc_error *err)
{
    static const char *const skip[] = {"shape", NULL};
    int whole = 1;
    BRC_TRY(brc_doc_merge(&docs->doc[BRC_FORM_MERGED], docs->doc[BRC_FORM_BASE],
                          docs->doc[BRC_FORM_OURS], docs->doc[BRC_FORM_THEIRS], skip,
                          brc_member_clash, m, err));
    BRC_TRY(merge_shape(m, docs, err));
    if (!m->how->is_virtual)
        BRC_TRY(is_whole(m, docs, &whole, err));
    BRC_TRY(whole ? merge_chunk_ids(m, docs, out, err) : array_apart(m, docs, out, err));
    return brc_merged_doc(out, m->place, docs, err);
}
