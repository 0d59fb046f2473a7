#include "merge_array.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/ancestry.h"
#include "../history/commit.h"
#include "../zarr/array/chunk_pairs.h"
#include "../zarr/doc/meta.h"
#include "merge_chunks.h"
#include "merge_doc.h"

/* Documents of one node on three sides, and what is done where members clash. */

enum { FORM_BASE, FORM_OURS, FORM_THEIRS, FORM_MERGED, FORMS };

typedef struct node_docs {
    brc_json *doc[FORMS]; /* NULL: this side has no document */
} node_docs;

typedef struct member_merge {
    brc_merge_how *how;
    const brc_merge_place *place;
    brc_clash_list *clashes;
    int favour;
    int clashed; /* some member was in conflict, settled or not */
} member_merge;

static int concat_look(brc_concat_list *list, const brc_merge_place *place,
                       const node_docs *docs, brc_error *err);
static const brc_merge_place *concat_place(const brc_concat_list *list,
                                           const brc_merge_place *place, brc_merge_place *out);
static int merge_array(member_merge *m, node_docs *docs, brc_merged_node *out,
                       brc_error *err);
static void merge_how_ops(brc_merge_ops *out, brc_merge_how *how);

/* ==== merge run ================================ */

void brc_merge_run_dispose(brc_merge_run *run)
{
    brc_merge_tree_free(run->tree);
    run->tree = NULL;
    brc_move_set_dispose(&run->ours_moves);
    brc_move_set_dispose(&run->theirs_moves);
    if (run->how.made != NULL)
        brc_base_chunks_dispose(run->how.made);
    free(run->how.made);
    run->how.made = NULL;
    if (run->has_scratch)
        brc_store_scratch_end(run->how.repo->store);
    run->has_scratch = 0;
}

/* ---- bases -------------------------------- */

/* Merges the snapshots of two bases, in memory. */
static int merge_two_bases(void *ctx, const brc_oid *base, const brc_oid *ours,
                           const brc_oid *theirs, brc_oid *out, brc_error *err)
{
    brc_merge_how *how = ctx;
    const brc_merge_three in = {.base = *base, .ours = *ours, .theirs = *theirs};
    brc_merge_ops ops;
    brc_merge_tree *tree;
    merge_how_ops(&ops, how);
    BRC_TRY(brc_merge_tree_new(&tree, how->repo->store, &in, &ops, err));
    int rc = brc_merge_tree_put(tree, out, err);
    brc_merge_tree_free(tree);
    return rc;
}

static int fold_bases(brc_merge_run *run, const brc_commit_set *bases, brc_error *err)
{
    static const char text[] = "{\"" BRC_UNKNOWN_MEMBER "\":null}";
    static const brc_base_chunks none = BRC_BASE_CHUNKS_INIT;
    brc_store *store = run->how.repo->store;
    void *made;
    BRC_TRY(brc_new(&made, sizeof(none), err));
    run->how.made = made;
    *run->how.made = none;
    brc_store_scratch_begin(store);
    run->has_scratch = 1;
    run->how.is_virtual = 1;
    run->how.unknown = (brc_entry){.kind = BRC_GROUP};
    int rc = brc_store_put(store, BRC_KIND_DOCUMENT, text, sizeof(text) - 1,
                           &run->how.unknown.doc, err);
    if (rc == BRC_OK)
        rc = brc_merge_base_root(store, bases, merge_two_bases, &run->how, &run->in.base, err);
    run->how.is_virtual = 0;
    brc_store_scratch_pause(store);
    return rc;
}

int brc_moves_along(brc_move_set *out, brc_store *store, const brc_oid *older,
                    const brc_oid *newer, brc_error *err)
{
    int known;
    brc_oid from, to;
    BRC_TRY(brc_commit_root(store, older, &from, err));
    BRC_TRY(brc_commit_root(store, newer, &to, err));
    BRC_TRY(brc_move_set_along(out, &known, store, older, newer, err));
    if (!known)
        brc_move_set_dispose(out);
    int rc = brc_move_set_reduce(out, store, &from, &to, err);
    if (rc < 0)
        brc_move_set_dispose(out);
    return rc;
}

static int find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs,
                     brc_commit_set *bases, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    brc_commit_set mine = {0};
    BRC_TRY(brc_commit_root(store, ours, &run->in.ours, err));
    BRC_TRY(brc_commit_root(store, theirs, &run->in.theirs, err));
    int rc = brc_commit_set_add(&mine, ours, err);
    if (rc == BRC_OK)
        rc = brc_merge_bases(bases, store, &mine, theirs, err);
    brc_commit_set_dispose(&mine);
    if (rc < 0 || bases->n == 0)
        return rc;
    if (bases->n > 1)
        return fold_bases(run, bases, err);
    BRC_TRY(brc_commit_root(store, &bases->ids[0], &run->in.base, err));
    BRC_TRY(brc_moves_along(&run->ours_moves, store, &bases->ids[0], ours, err));
    return brc_moves_along(&run->theirs_moves, store, &bases->ids[0], theirs, err);
}

int brc_merge_find_base(brc_merge_run *run, const brc_oid *ours, const brc_oid *theirs,
                        brc_commit_set *bases, brc_error *err)
{
    brc_store *store = run->how.repo->store;
    memset(bases, 0, sizeof(*bases));
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = find_base(run, ours, theirs, bases, err);
    brc_store_end_read(store);
    return rc;
}

int brc_merge_work(brc_merge_run *run, brc_error *err)
{
    run->in.ours_moves = &run->ours_moves;
    run->in.theirs_moves = &run->theirs_moves;
    merge_how_ops(&run->ops, &run->how);
    return brc_merge_tree_new(&run->tree, run->how.repo->store, &run->in, &run->ops, err);
}

/* ==== merge member ================================ */

/* Returns the favoured side at a path. */
static int merge_favour(const brc_merge_how *how, const char *path)
{
    if (how->npaths == 0)
        return how->favour;
    const int is = how->is_exact ? brc_paths_have(how->paths, how->npaths, path, NULL)
                                 : brc_paths_cover(how->paths, how->npaths, path, NULL);
    return is ? how->favour : BRC_FAVOUR_NONE;
}

/* ---- members -------------------------------- */

/* A brc_doc_clash_fn of a member_merge. */
static int member_clash(void *ctx, const char *pointer, const brc_json *base,
                        const brc_json *ours, const brc_json *theirs, brc_json **instead,
                        brc_error *err)
{
    member_merge *m = ctx;
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

static void node_docs_dispose(node_docs *docs)
{
    for (int i = 0; i < FORMS; i++)
        brc_json_free(docs->doc[i]);
}

static int node_docs_read(node_docs *docs, const brc_merge_how *how,
                          const brc_merge_place *place, brc_error *err)
{
    const brc_entry *sides[] = {&place->base, &place->ours, &place->theirs};
    int rc = BRC_OK;
    memset(docs, 0, sizeof(*docs));
    BRC_TRY(brc_store_begin_read(how->repo->store, err));
    for (int i = 0; i < FORMS - 1 && rc == BRC_OK; i++)
        if (sides[i]->kind != 0)
            rc = brc_entry_doc(how->repo->store, sides[i], &docs->doc[i], err);
    brc_store_end_read(how->repo->store);
    for (int i = 0; i < FORMS - 1 && rc == BRC_OK; i++)
        if (docs->doc[i] != NULL && brc_json_kind(docs->doc[i]) != BRC_JSON_OBJECT)
            rc = brc_fail(err, BRC_ECORRUPT,
                          "the document of %.200s is damaged: it is not a JSON object; run "
                          "'breccia fsck'",
                          place->path);
    if (rc < 0)
        node_docs_dispose(docs);
    return rc;
}

/* Writes the merged document to `out`, unless one side has the same document. */
static int merged_doc(brc_merged_node *out, const brc_merge_place *place,
                      const node_docs *docs, brc_error *err)
{
    out->doc = place->ours.doc;
    if (brc_json_equal(docs->doc[FORM_MERGED], docs->doc[FORM_OURS]))
        return BRC_OK;
    if (brc_json_equal(docs->doc[FORM_MERGED], docs->doc[FORM_THEIRS])) {
        out->doc = place->theirs.doc;
        return BRC_OK;
    }
    return brc_json_write(&out->text, docs->doc[FORM_MERGED], 0, err);
}

/* Checks whether two arrays divide their elements into the same chunks, whatever shards contain the
 * chunks. */
static int docs_same_grid(const brc_merge_how *how, const brc_json *a, const brc_json *b,
                          int *same, brc_error *err)
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

/* Reads the member "shape" of an array's document. Returns 0 if it is missing or invalid. */
static int shape_member(const brc_json *doc, int *ndim, uint64_t *shape)
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

/* ==== merge node ================================ */

/* Merges the storage options, which count as one value. */
static int merge_storage(const brc_merge_how *how, const brc_merge_place *place,
                         brc_merged_node *out, brc_clash_list *clashes, brc_error *err)
{
    const brc_oid *base = &place->base.storage, *ours = &place->ours.storage;
    const brc_oid *theirs = &place->theirs.storage;
    const int has_base = place->base.kind != 0;
    const int favour = merge_favour(how, place->path);
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

static int merge_group(member_merge *m, node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    BRC_TRY(brc_doc_merge(&docs->doc[FORM_MERGED], docs->doc[FORM_BASE],
                          docs->doc[FORM_OURS], docs->doc[FORM_THEIRS], NULL,
                          member_clash, m, err));
    return merged_doc(out, m->place, docs, err);
}

static int node_merge(void *ctx, const brc_merge_place *place, brc_merged_node *out,
                      brc_clash_list *clashes, brc_error *err)
{
    brc_merge_how *how = ctx;
    node_docs docs;
    brc_merge_place laid_out;
    brc_concat_list *concat = how->is_virtual ? NULL : how->concat;
    place = concat_place(concat, place, &laid_out);
    member_merge m = {how, place, clashes, merge_favour(how, place->path), 0};
    int rc;
    /* Other writers must not wait for the chunks of an earlier node while this node is merged. */
    BRC_TRY(brc_store_rest(how->repo->store, 1, err));
    BRC_TRY(merge_storage(how, place, out, clashes, err));
    BRC_TRY(node_docs_read(&docs, how, place, err));
    if (place->ours.kind == BRC_GROUP)
        rc = merge_group(&m, &docs, out, err);
    else if (concat == NULL || (rc = concat_look(concat, place, &docs, err)) == 0)
        rc = merge_array(&m, &docs, out, err);
    node_docs_dispose(&docs);
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

/* Checks whether two arrays have the same elements. Padding is never compared. */
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
        rc = docs_same_grid(how, x, y, same, err);
done:
    brc_json_free(x);
    brc_json_free(y);
    return rc;
}

static int node_favour(void *ctx, const char *path)
{
    return merge_favour(ctx, path);
}

/* Fills in the functions that merge_tree.h needs. `how` is borrowed. */
static void merge_how_ops(brc_merge_ops *out, brc_merge_how *how)
{
    *out = (brc_merge_ops){.ctx = how, .node = node_merge, .same = node_same,
                           .favour = node_favour,
                           .unknown = how->is_virtual ? &how->unknown : NULL};
}

/* ==== merge concat ================================ */

void brc_concat_list_dispose(brc_concat_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (brc_concat_list){NULL, 0, 0};
}

static const brc_concat *concat_at(const brc_concat_list *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->items[i].path, path) == 0)
            return &list->items[i];
    return NULL;
}

/* Returns the place with the laid-out sides, in *out, or `place` itself if the array is not
 * listed. */
static const brc_merge_place *concat_place(const brc_concat_list *list,
                                           const brc_merge_place *place, brc_merge_place *out)
{
    const brc_concat *c = list != NULL ? concat_at(list, place->path) : NULL;
    if (c == NULL || c->laid_out[1].kind == 0)
        return place;
    *out = *place;
    out->ours = c->laid_out[0];
    out->theirs = c->laid_out[1];
    return out;
}

/* Checks that both sides have appended along one axis and that nothing else about the elements has
 * changed. */
static int is_appended(brc_concat *c, const node_docs *docs)
{
    static const char *const same[] = {"data_type", "fill_value"};
    const brc_json *base = docs->doc[FORM_BASE];
    uint64_t shape[3][BRC_MAX_NDIM];
    int ndim[3], grown = 0;
    for (int s = 0; s < 3; s++)
        if (!shape_member(docs->doc[FORM_BASE + s], &ndim[s], shape[s]) ||
            ndim[s] != ndim[0])
            return 0;
    for (int s = 1; s < 3; s++)
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
            if (!brc_json_same(brc_json_member(base, same[i]),
                               brc_json_member(docs->doc[FORM_BASE + s], same[i])))
                return 0;
    for (int i = 0; i < ndim[0]; i++) {
        if (shape[1][i] == shape[0][i] && shape[2][i] == shape[0][i])
            continue;
        if (grown++ || shape[1][i] <= shape[0][i] || shape[2][i] <= shape[0][i] ||
            shape[2][i] - shape[0][i] > UINT64_MAX - shape[1][i])
            return 0;
        c->axis = i;
        c->base = shape[0][i];
        c->ours = shape[1][i] - c->base;
        c->theirs = shape[2][i] - c->base;
    }
    return grown;
}

/* Returns 1 if both sides have appended to the array: it is added to the list and must not be
 * merged now. */
static int concat_look(brc_concat_list *list, const brc_merge_place *place,
                       const node_docs *docs, brc_error *err)
{
    brc_concat c = {.side = {place->ours, place->theirs}};
    void *items = list->items;
    if (place->base.kind != BRC_ARRAY || !is_appended(&c, docs) ||
        concat_at(list, place->path) != NULL)
        return 0;
    /* both have appended the same elements */
    if (c.ours == c.theirs && brc_oid_cmp(&place->ours.map, &place->theirs.map) == 0)
        return 0;
    int rc = brc_grow_array(&items, &list->cap, list->n + 1, sizeof(c), err);
    list->items = items;
    BRC_TRY(rc);
    BRC_TRY(brc_dup(&c.path, place->path, err));
    list->items[list->n++] = c;
    return 1;
}

/* ==== merge ids ================================ */

/* A chunk that theirs has changed since the base. */
typedef struct changed_id {
    uint8_t *key;
    size_t key_len;
    brc_oid base, ours, theirs; /* zero: absent */
} changed_id;

typedef struct changed_ids {
    brc_store *store;
    void *items; /* changed_id[] */
    size_t n, cap;
    brc_arena keys;
} changed_ids;

static int take_id(const changed_ids *c, brc_span value, brc_oid *out, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    return value.data != NULL ? brc_chunk_id_of(value, brc_store_id_len(c->store), out, err)
                              : BRC_OK;
}

static int id_changed(void *ctx, brc_span key, brc_span a, brc_span b, brc_error *err)
{
    changed_ids *c = ctx;
    BRC_TRY(brc_grow_array(&c->items, &c->cap, c->n + 1, sizeof(changed_id), err));
    changed_id *item = &((changed_id *)c->items)[c->n];
    memset(item, 0, sizeof(*item));
    BRC_TRY(brc_arena_copy(&c->keys, key.data, key.len, &item->key, err));
    item->key_len = key.len;
    BRC_TRY(take_id(c, a, &item->base, err));
    BRC_TRY(take_id(c, b, &item->theirs, err));
    c->n++;
    return BRC_OK;
}

static int id_of_ours(void *ctx, size_t i, brc_span value, brc_error *err)
{
    changed_ids *c = ctx;
    return take_id(c, value, &((changed_id *)c->items)[i].ours, err);
}

static int ids_of_ours(changed_ids *c, const brc_oid *map, brc_error *err)
{
    void *p;
    BRC_TRY(brc_new_array(&p, c->n + 1, sizeof(brc_span), err));
    brc_span *keys = p;
    for (size_t i = 0; i < c->n; i++) {
        const changed_id *item = &((changed_id *)c->items)[i];
        keys[i] = (brc_span){item->key, item->key_len};
    }
    int rc = brc_map_get_many(c->store, map, keys, c->n, id_of_ours, c, err);
    free(p);
    return rc;
}

typedef struct id_merge {
    member_merge *m;
    const node_docs *docs;
    brc_merged_node *out;
    const brc_base_form *form;
    int has_form, has_base;
} id_merge;

static int form_of_merge(id_merge *w, brc_error *err)
{
    const brc_merge_how *how = w->m->how;
    const brc_merge_place *p = w->m->place;
    brc_entry side[BRC_SIDES] = {p->base, p->ours, p->theirs};
    if (!w->has_base)
        side[BRC_SIDE_BASE].kind = 0;
    w->has_form = 1;
    BRC_TRY(brc_store_begin_read(how->repo->store, err));
    int rc = brc_base_form_new(&w->form, w->m->how->made, how->repo, p->path, side,
                               w->docs->doc[FORM_MERGED], err);
    brc_store_end_read(how->repo->store);
    return rc;
}

static int merge_changed_id(id_merge *w, const changed_id *item, brc_error *err)
{
    const brc_span key = {item->key, item->key_len};
    brc_store *store = w->m->how->repo->store;
    const brc_oid of[BRC_SIDES] = {item->base, item->ours, item->theirs};
    brc_oid id = item->theirs;
    if (brc_oid_cmp(&item->ours, &item->theirs) == 0)
        return BRC_OK;
    if (!w->has_base || brc_oid_cmp(&item->ours, &item->base) != 0) {
        if (!w->has_form)
            BRC_TRY(form_of_merge(w, err));
        BRC_TRY(brc_base_chunk_new(w->m->how->made, w->form, store, key, of, &id, err));
    }
    return brc_merged_chunk(w->out, key, &id, brc_store_id_len(store), err);
}

/* Merges chunks by id, for bases. A chunk that both sides changed is merged only when its elements
 * are needed: see merge_chunks.h. */
static int merge_ids(member_merge *m, const node_docs *docs, brc_merged_node *out,
                     brc_error *err)
{
    brc_store *store = m->how->repo->store;
    const brc_merge_place *p = m->place;
    changed_ids c = {.store = store, .keys = BRC_ARENA_INIT};
    id_merge w = {.m = m, .docs = docs, .out = out,
                  .has_base = p->base.kind != 0 && !brc_json_is_unknown(docs->doc[FORM_BASE])};
    int rc;
    out->map = p->ours.map;
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_map_diff(store, &p->base.map, &p->theirs.map, id_changed, &c, err);
    if (rc == BRC_OK)
        rc = ids_of_ours(&c, &p->ours.map, err);
    brc_store_end_read(store);
    for (size_t i = 0; i < c.n && rc == BRC_OK; i++)
        rc = merge_changed_id(&w, &((changed_id *)c.items)[i], err);
done:
    free(c.items);
    brc_arena_dispose(&c.keys);
    return rc;
}

/* ==== merge elements ================================ */

typedef struct element_merge {
    member_merge *m;
    brc_merged_node *out;
    size_t id_len;
} element_merge;

static int merged_chunk_is(void *ctx, brc_span key, const brc_oid *id, brc_error *err)
{
    static const brc_oid none;
    element_merge *e = ctx;
    return brc_merged_chunk(e->out, key, id != NULL ? id : &none, e->id_len, err);
}

/* Says whether the last conflict is about the same chunk: a chunk with lost elements that is also
 * in conflict is one conflict. */
static int is_last_clash(const brc_clash_list *list, const char *path, brc_span key)
{
    const brc_clash *last = list->n > 0 ? &list->items[list->n - 1] : NULL;
    return last != NULL && strcmp(last->member, BRC_CLASH_CHUNK) == 0 &&
           strcmp(last->path, path) == 0 && last->key.len == key.len &&
           memcmp(last->key.data, key.data, key.len) == 0;
}

static int take_conflict(void *ctx, const brc_chunk_conflict *conflict, brc_error *err)
{
    static const brc_oid none;
    element_merge *e = ctx;
    brc_clash *clash;
    const char *path = e->m->place->path;
    if (is_last_clash(e->m->clashes, path, conflict->key))
        return BRC_OK;
    BRC_TRY(brc_clash_add(e->m->clashes, path, BRC_CLASH_CHUNK, &clash, err));
    BRC_TRY(brc_buf_append(&clash->key, conflict->key.data, conflict->key.len, err));
    return brc_clash_ids(clash, conflict->base != NULL ? conflict->base : &none,
                         conflict->ours != NULL ? conflict->ours : &none,
                         conflict->theirs != NULL ? conflict->theirs : &none, e->id_len, err);
}

static int id_in_base(const element_merge *e, brc_span key, brc_oid *id, brc_error *err)
{
    brc_span value;
    int found;
    memset(id, 0, sizeof(*id));
    BRC_TRY(brc_map_get(e->m->how->repo->store, &e->m->place->base.map, key.data, key.len, &found,
                        &value, err));
    return found ? brc_chunk_id_of(value, e->id_len, id, err) : BRC_OK;
}

/* Looks up chunks that were merged from several bases. */
static int is_made_chunk(void *ctx, brc_span key, brc_span *mask, brc_error *err)
{
    const element_merge *e = ctx;
    brc_oid id;
    *mask = (brc_span){NULL, 0};
    BRC_TRY(id_in_base(e, key, &id, err));
    return brc_base_chunk_is(e->m->how->made, &id) ? BRC_BASE_MADE : BRC_BASE_KNOWN;
}

static int make_chunk(void *ctx, brc_span key, brc_made_chunk *out, brc_error *err)
{
    const element_merge *e = ctx;
    brc_oid id;
    BRC_TRY(id_in_base(e, key, &id, err));
    return brc_base_chunk_make(e->m->how->made, &id, out, err);
}

static int by_chunk_key(const void *a, const void *b)
{
    const brc_edit *x = a, *y = b;
    const size_t least = x->key_len < y->key_len ? x->key_len : y->key_len;
    const int order = memcmp(x->key, y->key, least);
    return order != 0 ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* Says whether the base's form is known; otherwise the sides cannot be compared with it. */
static int base_form_known(const member_merge *m, const node_docs *docs)
{
    static const char *const names[] = {"shape", "data_type", "chunk_grid", "fill_value", "codecs"};
    const brc_json *base = docs->doc[FORM_BASE];
    if (m->place->base.kind == 0 || brc_json_is_unknown(base))
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (brc_json_has_unknown(brc_json_member(base, names[i])))
            return 0;
    return 1;
}

/* Merges the chunks of an array. Sets *apart, and does nothing, if the form of one side and the
 * chunks of the other cannot be combined. Sets *lost if the side that must not lose elements (the
 * favoured side, else ours) has changed elements outside the merged document's shape: the merge
 * must then be repeated with a shape that contains them. If `tells` is 0, conflicts are not
 * reported, because they have been before. */
static int merge_elements(member_merge *m, const node_docs *docs, brc_merged_node *out,
                          int tells, int *lost, int *apart, brc_error *err)
{
    const brc_merge_how *how = m->how;
    const int keeps = m->favour == BRC_FAVOUR_THEIRS ? BRC_SIDE_THEIRS : BRC_SIDE_OURS;
    element_merge e = {m, out, brc_store_id_len(how->repo->store)};
    brc_merge_chunks_ops ops = {.ctx = &e, .chunk = how->is_trial ? NULL : merged_chunk_is,
                                .conflict = tells ? take_conflict : NULL};
    brc_chunk_merge c = {.repo = how->repo, .path = m->place->path,
                         .side = {m->place->base, m->place->ours, m->place->theirs},
                         .merged = docs->doc[FORM_MERGED], .storage = out->storage,
                         .favour = m->favour, .ops = &ops};
    if (how->made != NULL && how->made->n > 0) {
        ops.unknown = is_made_chunk;
        ops.make = make_chunk;
    }
    if (!base_form_known(m, docs))
        memset(&c.side[BRC_SIDE_BASE], 0, sizeof(c.side[BRC_SIDE_BASE]));
    BRC_TRY(brc_merge_chunks(&c, err));
    *apart = c.map == BRC_CHUNKS_APART;
    *lost = !*apart && c.lost[keeps] > 0;
    out->map = c.map == BRC_CHUNKS_THEIRS ? m->place->theirs.map : m->place->ours.map;
    if (out->nedits > 1)
        qsort(out->edits, out->nedits, sizeof(brc_edit), by_chunk_key);
    return BRC_OK;
}

/* ==== merge array ================================ */

/* ---- the shape -------------------------------- */

/* Merges the shape axis by axis. Returns 0 if both sides changed an axis to different lengths, or
 * if the ranks differ. */
static int shape_by_axis(const node_docs *docs, int favour, int *ndim, uint64_t *out)
{
    uint64_t base[BRC_MAX_NDIM], theirs[BRC_MAX_NDIM];
    int nb, nt;
    if (!shape_member(docs->doc[FORM_BASE], &nb, base) ||
        !shape_member(docs->doc[FORM_OURS], ndim, out) ||
        !shape_member(docs->doc[FORM_THEIRS], &nt, theirs) || nb != *ndim || nt != *ndim)
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

static int merge_shape(member_merge *m, node_docs *docs, brc_error *err)
{
    const brc_json *base = brc_json_member(docs->doc[FORM_BASE], "shape");
    const brc_json *ours = brc_json_member(docs->doc[FORM_OURS], "shape");
    const brc_json *theirs = brc_json_member(docs->doc[FORM_THEIRS], "shape");
    brc_json *merged = docs->doc[FORM_MERGED], *instead = NULL;
    uint64_t shape[BRC_MAX_NDIM];
    int ndim;
    if (brc_json_same(ours, theirs))
        return BRC_OK;
    if (shape_by_axis(docs, m->favour, &ndim, shape))
        return brc_meta_set_shape(merged, ndim, shape, err);
    int takes = member_clash(m, "/shape", base, ours, theirs, &instead, err);
    if (takes > 0)
        BRC_TRY(brc_json_clone(&instead, theirs, err));
    if (takes < 0 || instead == NULL)
        return takes < 0 ? takes : BRC_OK;
    return brc_json_set(merged, "shape", instead, err);
}

/* ---- the form -------------------------------- */

static const char *const form_members[] = {"shape", "data_type", "chunk_grid", "fill_value",
                                           "codecs", "chunk_key_encoding", "dimension_names"};

/* Takes all members that describe chunks from one side, so that no array is mixed. */
static int form_of_side(node_docs *docs, int side, brc_error *err)
{
    brc_json *merged = docs->doc[FORM_MERGED], *copy;
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

/* Returns the member in which the forms of the two sides differ most. */
static const char *form_pointer(const node_docs *docs)
{
    const char *const names[] = {"data_type", "chunk_grid", "fill_value", "codecs"};
    static const char *const pointers[] = {"/data_type", "/chunk_grid", "/fill_value", "/codecs"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!brc_json_same(brc_json_member(docs->doc[FORM_OURS], names[i]),
                           brc_json_member(docs->doc[FORM_THEIRS], names[i])))
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

/* Takes the whole array from one side, because form and chunks cannot be merged separately. */
static int array_apart(member_merge *m, node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    const int is_theirs =
        m->favour == BRC_FAVOUR_THEIRS && !is_ours_whole(m->how, m->place->path);
    const int side = is_theirs ? FORM_THEIRS : FORM_OURS;
    brc_clash *clash;
    out->map = side == FORM_OURS ? m->place->ours.map : m->place->theirs.map;
    BRC_TRY(form_of_side(docs, side, err));
    if (m->favour != BRC_FAVOUR_NONE)
        return BRC_OK;
    const char *pointer = form_pointer(docs);
    /* the conflicts of this node are the last ones */
    for (size_t i = m->clashes->n;
         i-- > 0 && strcmp(m->clashes->items[i].path, m->place->path) == 0;)
        if (strcmp(m->clashes->items[i].member, pointer) == 0)
            return BRC_OK; /* the conflict is already in the list */
    BRC_TRY(brc_clash_add(m->clashes, m->place->path, pointer, &clash, err));
    return brc_clash_values(clash, brc_json_member(docs->doc[FORM_BASE], pointer + 1),
                            brc_json_member(docs->doc[FORM_OURS], pointer + 1),
                            brc_json_member(docs->doc[FORM_THEIRS], pointer + 1), err);
}

/* Checks the merged document as a whole by the rules of Zarr. */
static int is_whole(const member_merge *m, const node_docs *docs, int *whole,
                    brc_error *err)
{
    brc_meta meta;
    brc_error cause = BRC_ERROR_INIT;
    int rc = brc_meta_open(&meta, m->how->repo->registry, docs->doc[FORM_MERGED], &cause);
    *whole = rc == BRC_OK;
    if (rc == BRC_OK)
        brc_meta_dispose(&meta);
    if (rc == BRC_OK || rc == BRC_EINVAL || rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT)
        return BRC_OK;
    if (err != NULL)
        brc_error_copy(err, &cause);
    return rc;
}

/* Says whether two documents agree in everything that chunks depend on. */
static int same_chunk_form(const brc_json *a, const brc_json *b)
{
    static const char *const names[] = {"shape", "data_type", "chunk_grid", "fill_value"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!brc_json_same(brc_json_member(a, names[i]), brc_json_member(b, names[i])))
            return 0;
    return 1;
}

/* Extends the merged shape along each axis to at least the length of this side. */
static int shape_to_hold(node_docs *docs, int side, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], held[BRC_MAX_NDIM];
    int ndim, n;
    if (!shape_member(docs->doc[FORM_MERGED], &ndim, shape) ||
        !shape_member(docs->doc[side], &n, held) || n != ndim)
        return BRC_OK;
    for (int i = 0; i < ndim; i++)
        if (shape[i] < held[i])
            shape[i] = held[i];
    return brc_meta_set_shape(docs->doc[FORM_MERGED], ndim, shape, err);
}

/* Merges an array by element. The favoured side, or ours while a conflict is open, loses no
 * elements if the other side has shrunk the array: the array is then not shrunk. */
static int merge_by_element(member_merge *m, node_docs *docs, brc_merged_node *out,
                            int *apart, brc_error *err)
{
    int lost, whole;
    BRC_TRY(merge_elements(m, docs, out, 1, &lost, apart, err));
    if (!lost)
        return BRC_OK;
    out->nedits = 0;
    BRC_TRY(shape_to_hold(docs, m->favour == BRC_FAVOUR_THEIRS ? FORM_THEIRS : FORM_OURS,
                          err));
    BRC_TRY(is_whole(m, docs, &whole, err));
    *apart = !whole;
    return whole ? merge_elements(m, docs, out, 0, &lost, apart, err) : BRC_OK;
}

/* Returns an array's rank, also of a base whose own bases differ in lengths. Sets *known to 0 and
 * returns 0 if the rank cannot be determined. */
static size_t rank_of(const brc_json *doc, int *known)
{
    const brc_json *list = brc_json_member(doc, "shape");
    if (brc_json_kind(list) != BRC_JSON_ARRAY)
        list = brc_json_member(brc_json_member(brc_json_member(doc, "chunk_grid"), "configuration"),
                               "chunk_shape");
    *known = brc_json_kind(list) == BRC_JSON_ARRAY;
    return *known ? brc_json_count(list) : 0;
}

/* Says whether all sides have the same rank. Chunks of different ranks cannot be in one map,
 * because one key may be the beginning of another. */
static int have_one_rank(const node_docs *docs)
{
    int known, is = 1;
    const size_t rank = rank_of(docs->doc[FORM_OURS], &is);
    for (int side = FORM_BASE; side <= FORM_THEIRS && is; side++)
        is = docs->doc[side] == NULL || (rank_of(docs->doc[side], &known) == rank && known);
    return is;
}

/* Merges an array of two bases. Bases of different ranks agree on nothing. */
static int merge_bases(member_merge *m, node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    if (have_one_rank(docs))
        return merge_ids(m, docs, out, err);
    brc_json_free(docs->doc[FORM_MERGED]);
    docs->doc[FORM_MERGED] = NULL;
    return brc_json_new_unknown(&docs->doc[FORM_MERGED], err);
}

static int merge_chunk_ids(member_merge *m, node_docs *docs, brc_merged_node *out,
                           brc_error *err)
{
    const brc_merge_place *p = m->place;
    const brc_oid *base = &p->base.map, *ours = &p->ours.map, *theirs = &p->theirs.map;
    const int has_base = p->base.kind != 0 && !brc_json_is_unknown(docs->doc[FORM_BASE]);
    int apart = 0;
    const brc_json *const *doc = (const brc_json *const *)docs->doc;
    const brc_json *merged = doc[FORM_MERGED];
    const int like_ours = same_chunk_form(doc[FORM_OURS], merged);
    const int like_theirs = same_chunk_form(doc[FORM_THEIRS], merged);
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

static int merge_array(member_merge *m, node_docs *docs, brc_merged_node *out,
                       brc_error *err)
{
    static const char *const skip[] = {"shape", NULL};
    int whole = 1;
    BRC_TRY(brc_doc_merge(&docs->doc[FORM_MERGED], docs->doc[FORM_BASE],
                          docs->doc[FORM_OURS], docs->doc[FORM_THEIRS], skip,
                          member_clash, m, err));
    BRC_TRY(merge_shape(m, docs, err));
    if (!m->how->is_virtual)
        BRC_TRY(is_whole(m, docs, &whole, err));
    BRC_TRY(whole ? merge_chunk_ids(m, docs, out, err) : array_apart(m, docs, out, err));
    return merged_doc(out, m->place, docs, err);
}
