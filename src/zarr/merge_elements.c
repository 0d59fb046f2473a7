#include "merge_elements.h"

#include <stdlib.h>
#include <string.h>

#include "merge_chunks.h"

typedef struct element_merge {
    brc_member_merge *m;
    brc_merged_node *out;
    size_t id_len;
} element_merge;

static int merged_chunk_is(void *ctx, brc_span key, const brc_oid *id, brc_error *err)
{
    static const brc_oid none;
    element_merge *e = ctx;
    return brc_merged_chunk(e->out, key, id != NULL ? id : &none, e->id_len, err);
}

/* A chunk of which elements are lost, and which is in conflict too, is one conflict. */
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

/* Chunks that bases are merged into. */
static int is_made_chunk(void *ctx, brc_span key, brc_span *mask, brc_error *err)
{
    const element_merge *e = ctx;
    brc_oid id;
    *mask = (brc_span){NULL, 0};
    BRC_TRY(id_in_base(e, key, &id, err));
    return brc_base_chunk_is(&e->m->how->made, &id) ? BRC_BASE_MADE : BRC_BASE_KNOWN;
}

static int make_chunk(void *ctx, brc_span key, brc_made_chunk *out, brc_error *err)
{
    const element_merge *e = ctx;
    brc_oid id;
    BRC_TRY(id_in_base(e, key, &id, err));
    return brc_base_chunk_make(&e->m->how->made, &id, out, err);
}

static int by_chunk_key(const void *a, const void *b)
{
    const brc_edit *x = a, *y = b;
    const size_t least = x->key_len < y->key_len ? x->key_len : y->key_len;
    const int order = memcmp(x->key, y->key, least);
    return order != 0 ? order : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

/* A base whose form is not known cannot be compared with. */
static int base_form_known(const brc_member_merge *m, const brc_node_docs *docs)
{
    static const char *const names[] = {"shape", "data_type", "chunk_grid", "fill_value", "codecs"};
    const brc_json *base = docs->doc[BRC_FORM_BASE];
    if (m->place->base.kind == 0 || brc_json_is_unknown(base))
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (brc_json_has_unknown(brc_json_member(base, names[i])))
            return 0;
    return 1;
}

int brc_merge_elements(brc_member_merge *m, const brc_node_docs *docs, brc_merged_node *out,
                       int tells, int *lost, int *apart, brc_error *err)
{
    const brc_merge_how *how = m->how;
    const int keeps = m->favour == BRC_FAVOUR_THEIRS ? BRC_SIDE_THEIRS : BRC_SIDE_OURS;
    element_merge e = {m, out, brc_store_id_len(how->repo->store)};
    brc_merge_chunks_ops ops = {.ctx = &e, .chunk = how->is_trial ? NULL : merged_chunk_is,
                                .conflict = tells ? take_conflict : NULL};
    brc_chunk_merge c = {.repo = how->repo, .path = m->place->path,
                         .side = {m->place->base, m->place->ours, m->place->theirs},
                         .merged = docs->doc[BRC_FORM_MERGED], .storage = out->storage,
                         .favour = m->favour, .ops = &ops};
    if (how->made.n > 0) {
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
