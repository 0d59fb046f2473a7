#include "repack.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../zarr/array/array.h"

/* The objects that newer versions use are collected first, if there is a limit of time; then the
 * stages list. */
enum { NEWER_COMMITS, NEWER_DRAFTS, COMMITS, DRAFTS, REST, THE_END };

/* Chunks of a draft that are read together, and objects of the rest. */
enum { WALK_PAGE = 512 };

typedef struct repack_chunk {
    brc_oid id;
    size_t key_len;
    uint8_t key[BRC_CHUNK_KEY_MAX];
} repack_chunk;

static int collects(const brc_repack_walk *w)
{
    return w->stage < COMMITS;
}

/* ---- beginning -------------------------------- */

/* Leaves out commits that only the operation log or a pin names and that are gone. */
static int skips_gone(void *ctx, const brc_oid *id, brc_error *err)
{
    const brc_repack_walk *w = ctx;
    brc_object o = {.id = *id}, *one = &o;
    BRC_TRY(brc_objects_find(w->store, &one, 1, err));
    return !o.found || o.kind != BRC_KIND_COMMIT;
}

static int list_tips(brc_repack_walk *w, brc_error *err)
{
    brc_ref_row *refs;
    size_t n;
    BRC_TRY(brc_ref_list(w->store, "heads/", &refs, &n, err));
    int rc = BRC_OK;
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        if (refs[i].has_target)
            rc = brc_id_table_add(&w->tips, &refs[i].target, NULL, err);
    brc_ref_rows_free(refs, n);
    return rc;
}

static int list_commits(brc_repack_walk *w, brc_error *err)
{
    brc_roots roots = {0};
    brc_log_range range = {INT64_MIN, 0, 0};
    size_t at;
    int rc = brc_roots_named(w->store, &range, 0, &roots, err);
    for (size_t i = 0; i < roots.n && rc == BRC_OK; i++) {
        const brc_root *root = &roots.items[i];
        if ((root->what != BRC_ROOT_COMMIT && root->what != BRC_ROOT_PAST) ||
            brc_oid_is_zero(&root->id))
            continue;
        rc = skips_gone(w, &root->id, err);
        if (rc == 0)
            rc = brc_graph_add(&w->graph, &root->id, &at, err);
        else if (rc > 0)
            rc = BRC_OK;
    }
    for (size_t i = 0; i < w->graph.n && rc == BRC_OK; i++) {
        rc = brc_graph_read(&w->graph, i, err);
        brc_store_breathe(w->store);
    }
    brc_roots_dispose(&roots);
    return rc;
}

int brc_repack_walk_begin(brc_repack_walk *w, brc_error *err)
{
    void *p;
    w->graph = (brc_graph)BRC_GRAPH_INIT;
    w->graph.store = w->store;
    w->graph.skips = skips_gone;
    w->graph.ctx = w;
    w->tips = w->newer = (brc_id_table)BRC_ID_TABLE_INIT(0);
    w->unfit = (brc_error)BRC_ERROR_INIT;
    w->stage = w->older_than != 0 ? NEWER_COMMITS : COMMITS;
    BRC_TRY(brc_new_array(&p, WALK_PAGE, sizeof(brc_object), err));
    w->page = p;
    BRC_TRY(brc_new_array(&p, BRC_REPACK_METAS, sizeof(brc_repack_meta), err));
    w->metas = p;
    BRC_TRY(brc_closure_new(&w->closure, w->store, 0, err));
    BRC_TRY(list_tips(w, err));
    return list_commits(w, err);
}

static void forget_metas(brc_repack_walk *w)
{
    for (size_t i = 0; i < w->nmetas; i++)
        if (w->metas[i].is_usable)
            brc_meta_dispose(&w->metas[i].meta);
    w->nmetas = 0;
    w->meta = NULL;
}

void brc_repack_walk_dispose(brc_repack_walk *w)
{
    if (w->metas != NULL)
        forget_metas(w);
    free(w->metas);
    free(w->page);
    brc_closure_free(w->closure);
    brc_graph_dispose(&w->graph);
    brc_id_table_dispose(&w->tips);
    brc_id_table_dispose(&w->newer);
    free(w->drafts.items);
    brc_draft_nodes_free(w->nodes, w->nnodes);
    brc_buf_dispose(&w->after);
    free(w->chunks);
}

/* ---- the codecs of an array -------------------------------- */

static int doc_with_codecs(brc_repack_walk *w, brc_json *doc, brc_error *err)
{
    brc_meta meta;
    BRC_TRY(brc_meta_open(&meta, w->repo->registry, doc, err));
    const int rc = brc_meta_set_codecs(doc, &meta, w->codecs, 0, err);
    brc_meta_dispose(&meta);
    return rc;
}

/* Codecs that do not fit the array leave it as it is. */
static int meta_read(brc_repack_walk *w, brc_repack_meta *m, brc_error *err)
{
    brc_json *doc;
    brc_error why = BRC_ERROR_INIT;
    m->doc = w->entry.doc;
    m->is_usable = 0;
    BRC_TRY(brc_entry_doc(w->store, &w->entry, &doc, err));
    int rc = doc_with_codecs(w, doc, &why);
    if (rc == BRC_OK)
        rc = brc_meta_open(&m->meta, w->repo->registry, doc, &why);
    brc_json_free(doc);
    m->is_usable = rc == BRC_OK;
    w->usable += rc == BRC_OK;
    w->misfits += rc != BRC_OK;
    if (rc == BRC_ENOMEM) {
        brc_error_copy(err, &why);
        return rc;
    }
    if (rc < 0 && w->unfit.code == 0)
        brc_error_copy(&w->unfit, &why);
    return BRC_OK;
}

/* Makes the meaning of the present array's document known. Returns 0 if the list must pause. */
static int need_meta(brc_repack_walk *w, brc_error *err)
{
    w->meta = NULL;
    w->is_due = 0;
    if (w->codecs == NULL || w->entry.kind != BRC_ARRAY || collects(w))
        return 1;
    for (size_t i = 0; i < w->nmetas && w->meta == NULL; i++)
        if (brc_oid_cmp(&w->metas[i].doc, &w->entry.doc) == 0)
            w->meta = &w->metas[i];
    if (w->meta == NULL && w->nmetas == BRC_REPACK_METAS) {
        w->is_due = 1;
        return 0;
    }
    if (w->meta == NULL) {
        w->meta = &w->metas[w->nmetas];
        BRC_TRY(meta_read(w, w->meta, err));
        w->nmetas++;
    }
    return 1;
}

/* Says how a chunk is to be encoded. A chunk whose key is unknown, or wrong, keeps its encoding. */
static int set_encoding(brc_repack_walk *w, brc_span key, brc_again_item *out, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    brc_form *form;
    if (w->meta == NULL || !w->meta->is_usable)
        return BRC_OK;
    brc_meta *m = &w->meta->meta;
    if (brc_chunk_key_decode(key.data, key.len, index) != m->ndim ||
        !brc_meta_has_place(m, index))
        return BRC_OK;
    brc_grid_chunk(&m->grid, index, corner, chunk);
    BRC_TRY(brc_form_of_meta(w->store, m, chunk, &form, &out->as.encoded.encoding, err));
    if (form->chain == NULL)
        return BRC_OK;
    if (brc_chain_is_lossy(form->chain))
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "a lossy chain changes the chunks' content: write them again instead");
    out->as.encoded.chain = form->chain;
    out->as.encoded.spec = out->as.encoded.encoding != 0 ? form->spec : NULL;
    out->as.encoded.digest = form->digest;
    return BRC_OK;
}

/* ---- nodes and chunks -------------------------------- */

/* Begins to walk what is under an entry, and the chunks of the entry itself. Returns 0 if the list
 * must pause. */
static int walk_entry(brc_repack_walk *w, const brc_entry *entry, brc_error *err)
{
    w->entry = *entry;
    w->found |= entry->kind != 0;
    if (entry->kind != 0 && !brc_oid_is_zero(&entry->map)) {
        BRC_TRY(brc_closure_entry(w->closure, w->path, entry, err));
        w->is_walking = 1;
    }
    return need_meta(w, err);
}

/* Makes one step of the closure. Returns 1 with a chunk; *key is valid until the next step. */
static int closure_step(brc_repack_walk *w, brc_oid *id, brc_span *key, int *pauses, brc_error *err)
{
    brc_closure_step at;
    int rc = brc_closure_next(w->closure, &at, err);
    if (rc <= 0) {
        w->is_walking = 0;
        return rc;
    }
    if (at.what == BRC_AT_ENTRY) {
        w->entry = at.node.entry;
        rc = need_meta(w, err);
        *pauses = rc == 0;
        return rc < 0 ? rc : 0;
    }
    if (at.what != BRC_AT_CHUNK)
        return 0;
    *id = at.node.chunk;
    *key = at.node.key;
    return 1;
}

/* ---- commits -------------------------------- */

static int is_newer(const brc_repack_walk *w, const brc_commit *commit)
{
    return w->older_than == 0 || commit->time_us >= w->older_than ||
           brc_id_table_find(&w->tips, &commit->id) != NULL;
}

/* Begins to walk the next version of this stage. Returns 0 if there is none, or the list must
 * pause. */
static int next_commit(brc_repack_walk *w, int *pauses, brc_error *err)
{
    brc_commit *commit;
    brc_entry entry;
    while (w->commit < w->graph.n && !w->is_walking) {
        const brc_oid id = brc_graph_at(&w->graph, w->commit++)->id;
        BRC_TRY(brc_commit_get(&commit, w->store, &id, err));
        const int takes = is_newer(w, commit) == (w->stage == NEWER_COMMITS || w->older_than == 0);
        const brc_oid root = commit->root;
        brc_commit_free(commit);
        if (!takes)
            continue;
        BRC_TRY(brc_snapshot_find(w->store, &root, w->path, &entry, err));
        const int rc = walk_entry(w, &entry, err);
        *pauses = rc == 0;
        if (rc <= 0)
            return rc;
    }
    return w->is_walking;
}

/* ---- drafts -------------------------------- */

static int list_draft_chunk(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                     brc_error *err)
{
    brc_repack_walk *w = ctx;
    BRC_TRY(brc_grow_array(&w->chunks, &w->chunks_cap, w->nchunks + 1, sizeof(repack_chunk), err));
    repack_chunk *c = (repack_chunk *)w->chunks + w->nchunks;
    memset(c, 0, sizeof(*c));
    if (id != NULL)
        c->id = *id;
    c->key_len = key_len <= sizeof(c->key) ? key_len : 0;
    memcpy(c->key, key, c->key_len);
    w->nchunks++;
    w->after.len = 0;
    return brc_buf_append(&w->after, key, key_len, err);
}

static int has_chunks(const brc_repack_walk *w)
{
    return w->has_rows || w->chunk < w->nchunks;
}

/* Reads the next page of the present row's chunks. */
static int next_chunks(brc_repack_walk *w, brc_error *err)
{
    const brc_span after = {w->after.len > 0 ? w->after.data : NULL, w->after.len};
    w->nchunks = w->chunk = 0;
    BRC_TRY(brc_draft_chunk_page(w->store, &w->rows, after, WALK_PAGE, list_draft_chunk, w, err));
    w->has_rows = w->nchunks > 0 && w->after.len > 0; /* an array without axes has one chunk */
    return BRC_OK;
}

/* Goes to the next row of the drafts. Returns 0 if the list must pause. */
static int next_node(brc_repack_walk *w, brc_error *err)
{
    const brc_draft_node *node = &w->nodes[w->node++];
    const brc_span bytes = {node->entry, node->entry_len};
    brc_entry entry;
    if (node->entry == NULL || node->entry_len == 0)
        return 1;
    BRC_TRY(brc_entry_decode(&entry, bytes, brc_store_id_len(w->store), err));
    w->after.len = 0;
    w->has_rows = entry.kind == BRC_ARRAY;
    if (w->has_rows)
        BRC_TRY(brc_draft_stack_get(w->store, node->node, &w->rows, err));
    return walk_entry(w, &entry, err);
}

/* Goes to the next row or draft. Returns 0 at the end, or if the list must pause. */
static int next_draft(brc_repack_walk *w, int *pauses, brc_error *err)
{
    while (!w->is_walking && !has_chunks(w)) {
        if (w->node < w->nnodes) {
            const int rc = next_node(w, err);
            *pauses = rc == 0;
            if (rc <= 0)
                return rc;
            continue;
        }
        brc_draft_nodes_free(w->nodes, w->nnodes);
        w->nodes = NULL;
        w->nnodes = w->node = 0;
        if (w->draft == 0)
            BRC_TRY(brc_root_drafts_list(w->store, 0, &w->drafts, err));
        if (w->draft == w->drafts.n)
            return 0;
        const int64_t id = w->drafts.items[w->draft++].id;
        BRC_TRY(brc_draft_node_list(w->store, id, w->path, 1, &w->nodes, &w->nnodes, err));
    }
    return 1;
}

/* ---- all -------------------------------- */

/* Takes the next chunk of what is being walked. Returns 0 if there is none. */
static int walk_take(brc_repack_walk *w, brc_oid *id, brc_span *key, int *pauses, brc_error *err)
{
    while (w->is_walking && !*pauses) {
        const int rc = closure_step(w, id, key, pauses, err);
        if (rc != 0)
            return rc;
        brc_store_breathe(w->store);
    }
    while (has_chunks(w) && !*pauses) {
        if (w->chunk == w->nchunks)
            BRC_TRY(next_chunks(w, err));
        while (w->chunk < w->nchunks) {
            const repack_chunk *c = (const repack_chunk *)w->chunks + w->chunk++;
            *id = c->id;
            *key = (brc_span){c->key, c->key_len};
            if (!brc_oid_is_zero(id))
                return 1;
        }
    }
    return 0;
}

/* Goes to the next version, row or stage. Returns 0 at the end of all, or if the list must
 * pause. */
static int go_to_next(brc_repack_walk *w, int *pauses, brc_error *err)
{
    while (w->stage < REST) {
        const int is_drafts = w->stage == DRAFTS || w->stage == NEWER_DRAFTS;
        const int rc = is_drafts ? next_draft(w, pauses, err) : next_commit(w, pauses, err);
        if (rc != 0 || *pauses)
            return rc;
        w->stage++;
        w->commit = w->draft = 0;
        if (w->stage == DRAFTS && w->older_than != 0) /* drafts are newer */
            w->stage = THE_END;
    }
    return 0;
}

/* Lists the objects that follow, which no version names. */
static int next_rest(brc_repack_walk *w, brc_again_item *out, brc_error *err)
{
    if (w->stage != REST || w->backend < 0 || strcmp(w->path, "/") != 0)
        return 0;
    for (;;) {
        if (w->at == w->npage) {
            w->at = 0;
            BRC_TRY(brc_objects_page(w->store, &w->last, w->page, WALK_PAGE, &w->npage, err));
            if (w->npage == 0)
                return 0;
            w->last = w->page[w->npage - 1].id;
        }
        const brc_object *o = &w->page[w->at++];
        if (!o->found || o->kind != BRC_KIND_CHUNK || o->backend == w->backend)
            continue;
        out->id = o->id;
        return 1;
    }
}

int brc_repack_walk_newer(brc_repack_walk *w, brc_error *err)
{
    brc_oid id;
    brc_span key;
    int pauses = 0;
    for (unsigned n = 1; collects(w); n++) {
        int rc = walk_take(w, &id, &key, &pauses, err);
        if (rc > 0)
            rc = brc_id_table_add(&w->newer, &id, NULL, err);
        else if (rc == 0)
            rc = go_to_next(w, &pauses, err);
        if (rc < 0)
            return rc;
        if (n % 256 == 0)
            BRC_TRY(brc_store_check_interrupt(w->store, err));
    }
    return BRC_OK;
}

int brc_repack_walk_next(brc_repack_walk *w, brc_again_item *out, brc_error *err)
{
    brc_span key;
    int pauses = 0;
    *out = (brc_again_item){.kind = BRC_AGAIN_ENCODE,
                            .as.encoded.backend = w->backend,
                            .as.encoded.moves = w->backend >= 0};
    if (w->is_due) {
        const int rc = need_meta(w, err);
        if (rc <= 0)
            return rc;
    }
    for (unsigned n = 1;; n++) {
        int rc = walk_take(w, &out->id, &key, &pauses, err);
        if (rc == 0 && !pauses) {
            rc = go_to_next(w, &pauses, err);
            if (rc > 0)
                continue;
        }
        if (rc < 0 || pauses)
            return rc < 0 ? rc : 0;
        if (rc == 0)
            return next_rest(w, out, err);
        if (n % 256 == 0)
            BRC_TRY(brc_store_check_interrupt(w->store, err));
        if (collects(w))
            BRC_TRY(brc_id_table_add(&w->newer, &out->id, NULL, err));
        else if (w->older_than == 0 || brc_id_table_find(&w->newer, &out->id) == NULL)
            break;
    }
    BRC_TRY(set_encoding(w, key, out, err));
    return 1;
}

int brc_repack_walk_resume(brc_repack_walk *w)
{
    if (!w->is_due)
        return 0;
    forget_metas(w);
    return 1;
}
