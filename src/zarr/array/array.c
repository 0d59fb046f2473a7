#include "array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/sized.h"
#include "../../history/totals.h"
#include "../../tree/map.h"
#include "../../work/bulk_write.h"
#include "../transfer.h"
#include "chunk_cursor.h"

/* ==== array ================================ */

/* ---- keeping up with the session -------------------------------- */

static int array_open_meta(brc_meta *meta, const brc_array *a, const brc_json *doc, brc_error *err)
{
    const brc_registry *reg = a->session->repo->registry;
    brc_json *plain;
    if (!a->plain)
        return brc_meta_open(meta, reg, doc, err);
    BRC_TRY(brc_meta_plain_doc(&plain, reg, doc, a->plain, err));
    int rc = brc_meta_open(meta, reg, plain, err);
    brc_json_free(plain);
    return rc;
}

static int array_read_meta(brc_array *a, brc_error *err)
{
    brc_json *doc;
    brc_meta meta;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = array_open_meta(&meta, a, doc, err);
    brc_json_free(doc);
    if (rc == BRC_OK) {
        rc = brc_opaque_settle(brc_array_store(a), &meta, &a->entry.map,
                               &a->stack, err);
        if (rc == BRC_OK && a->plain && meta.opaque) { /* the codecs are not those of the chunks */
            brc_error_copy(err, &meta.why);
            brc_context(err, "it cannot be converted");
            rc = meta.why.code;
        }
        if (rc < 0)
            brc_meta_dispose(&meta);
    }
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        if (rc == BRC_EINVAL && err != NULL) /* the document was checked when it was stored */
            brc_error_recode(err, BRC_ECORRUPT);
        return rc == BRC_EINVAL ? BRC_ECORRUPT : rc;
    }
    brc_meta_dispose(&a->meta);
    a->meta = meta;
    a->meta_doc = a->entry.doc;
    a->info = (brc_array_info){
        .path = a->path,
        .ndim = a->meta.ndim,
        .shape = a->meta.shape,
        .chunk = a->meta.grid.chunk,
        .grid = a->meta.grid.count,
        .dtype = a->meta.dtype,
        .item_size = a->meta.type != NULL ? a->meta.type->item_size : 0,
        .codecs_json = a->meta.codecs_json,
        .fill = a->meta.fill.data,
        .flags = (!a->meta.opaque || a->meta.readable ? BRC_ARRAY_READABLE : 0) |
                 (!a->meta.opaque ? BRC_ARRAY_WRITABLE : 0) |
                 (a->meta.outer.regular ? BRC_ARRAY_REGULAR : 0),
        .shard = a->meta.nlevels > 0 ? a->meta.outer.chunk : NULL,
        .why = a->meta.opaque ? a->meta.why.message : NULL,
        .backend_json = a->backend != NULL ? a->backend : BRC_INLINE_SPEC,
    };
    return BRC_OK;
}

int brc_array_of_entry(brc_array *out, brc_session *view, char *path, const brc_entry *entry,
                       brc_error *err)
{
    memset(out, 0, sizeof(*out));
    out->session = view;
    out->path = path;
    out->entry = *entry;
    return array_read_meta(out, err);
}

/* Sets the stack of an array in a bulk write: the bulk write's row, and the rows of the session's
 * draft below it. */
static int lie_over_draft(brc_array *a, brc_error *err)
{
    const brc_session *s = a->session;
    brc_draft_node own;
    brc_draft_stack under;
    BRC_TRY(brc_draft_node_get(brc_array_store(a), s->bulk->draft, a->path, &a->is_own, &own, err));
    free(own.entry);
    if (!a->is_own || s->draft.id == 0)
        return BRC_OK;
    int found;
    BRC_TRY(brc_draft_node_get(brc_array_store(a), s->draft.id, a->path, &found, &own, err));
    free(own.entry);
    BRC_TRY(brc_draft_stack_get(brc_array_store(a), found ? own.node : 0, &under, err));
    memcpy(&a->stack.node[1], under.node, under.n * sizeof(under.node[0]));
    a->stack.n = 1 + under.n;
    return BRC_OK;
}

/* Fails if a frozen array must be read from a draft that has changed. Remembered chunks stay
 * valid. */
static int check_frozen(const brc_array *a, brc_error *err)
{
    const brc_draft_head *now = &a->session->draft;
    if (!a->row_has_chunks || a->frozen != NULL || a->is_held ||
        (now->id == a->of.id && now->changes == a->of.changes))
        return BRC_OK;
    return brc_fail(err, BRC_ESTALE,
                    "the uncommitted changes of %s changed while it was being read, and are too "
                    "many to remember: read it again, or commit first",
                    a->path);
}

/* Tells whether the array's row may be written: not if a savepoint needs it. */
static int find_own(brc_array *a, brc_error *err)
{
    int is_frozen = 0;
    if (a->row != 0 && (a->session->draft.saves || a->session->draft.logs))
        BRC_TRY(brc_draft_row_is_frozen(brc_array_store(a), a->row, &is_frozen, err));
    a->is_own = a->row != 0 && !is_frozen;
    return BRC_OK;
}

int brc_array_sync(brc_array *a, brc_error *err)
{
    brc_session *s = a->session;
    if (a->is_frozen)
        return check_frozen(a, err);
    if (a->is_read && a->version == s->version && a->changes == s->repo->changes)
        return BRC_OK;
    BRC_TRY(brc_session_need(s, a->path, BRC_ARRAY, &a->entry, &a->row, err));
    BRC_TRY(find_own(a, err));
    BRC_TRY(brc_draft_stack_get(brc_array_store(a), a->row, &a->stack, err));
    if (s->bulk != NULL)
        BRC_TRY(lie_over_draft(a, err));
    BRC_TRY(brc_draft_chunk_any(brc_array_store(a), &a->stack, &a->row_has_chunks, err));
    a->has_keys = 0;
    if (s->draft.id != 0)
        BRC_TRY(brc_draft_key_any(brc_array_store(a), s->draft.id, &a->has_keys, err));
    if (!a->is_read || brc_oid_cmp(&a->meta_doc, &a->entry.doc) != 0)
        BRC_TRY(array_read_meta(a, err));
    if (!a->is_read || brc_oid_cmp(&a->storage, &a->entry.storage) != 0)
        BRC_TRY(brc_array_read_storage(a, err));
    a->version = s->version;
    a->changes = s->repo->changes;
    a->is_read = 1;
    return BRC_OK;
}

static int open_array(brc_array **out, brc_session *s, const char *path, int plain, brc_error *err)
{
    void *p;
    brc_buf normal = BRC_BUF_INIT;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_array), err));
    brc_array *a = p;
    a->plain = plain;
    a->session = brc_session_ref(s);
    int rc = brc_path_normal(&normal, path, err);
    if (rc == BRC_OK)
        rc = brc_buf_take_text(&normal, &a->path, err);
    if (rc == BRC_OK)
        rc = brc_array_begin_read(a, err);
    if (rc == BRC_OK)
        brc_array_end_read(a);
    brc_buf_dispose(&normal);
    if (rc < 0)
        brc_array_free(a);
    else
        *out = a;
    return rc;
}

int brc_array_open(brc_array **out, brc_session *s, const char *path, brc_error *err)
{
    return open_array(out, s, path, 0, err);
}

int brc_array_open_plain(brc_array **out, brc_session *s, const char *path, int how, brc_error *err)
{
    return open_array(out, s, path, how, err);
}

/* Freezes the rows that fit into a quarter of the memory budget. */
static int freeze_rows(brc_array *a, brc_error *err)
{
    void *p;
    int all = 0;
    const size_t most = a->session->repo->pipe.memory / 4 / (sizeof(brc_chunk_row) + 16);
    if (!a->row_has_chunks)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(brc_frozen_rows), err));
    int rc = brc_frozen_rows_read(p, brc_array_store(a), &a->stack, most, &all, err);
    if (all)
        a->frozen = p;
    else
        free(p);
    return rc;
}

static int freeze(brc_array **out, brc_array *a, const brc_draft_stack *rows, int is_held,
                  brc_error *err)
{
    void *p;
    *out = NULL;
    BRC_TRY(brc_new(&p, sizeof(brc_array), err));
    brc_array *copy = p;
    copy->session = brc_session_ref(a->session);
    copy->plain = a->plain;
    copy->entry = a->entry;
    copy->row = a->row;
    copy->stack = *rows;
    copy->row_has_chunks = a->row_has_chunks && rows->n > 0;
    copy->is_frozen = 1;
    copy->is_held = is_held;
    copy->of = a->session->draft;
    int rc = brc_dup(&copy->path, a->path, err);
    if (rc == BRC_OK)
        rc = array_read_meta(copy, err);
    if (rc == BRC_OK && !is_held)
        rc = freeze_rows(copy, err);
    if (rc < 0)
        brc_array_free(copy);
    else
        *out = copy;
    return rc;
}

int brc_array_freeze(brc_array **out, brc_array *a, brc_error *err)
{
    return freeze(out, a, &a->stack, 0, err);
}

int brc_array_freeze_held(brc_array **out, brc_array *a, const brc_draft_stack *rows,
                          brc_error *err)
{
    return freeze(out, a, rows, 1, err);
}

void brc_array_release(brc_array *a)
{
    if (a->frozen != NULL)
        brc_frozen_rows_dispose(a->frozen);
    free(a->frozen);
    brc_meta_dispose(&a->meta);
    free(a->backend);
    free(a->full);
    free(a->prototype);
    free(a->path);
}

void brc_array_free(brc_array *a)
{
    if (a == NULL)
        return;
    brc_array_release(a);
    brc_session_unref(a->session);
    free(a);
}

const brc_array_info *brc_array_describe(const brc_array *a)
{
    return &a->info;
}

int brc_array_follow(brc_array *a, brc_error *err)
{
    BRC_TRY(brc_session_follow(a->session, err));
    return brc_array_sync(a, err);
}

int brc_array_begin_read(brc_array *a, brc_error *err)
{
    BRC_TRY(brc_session_begin_read(a->session, err));
    int rc = brc_array_sync(a, err);
    if (rc < 0)
        brc_session_end_read(a->session);
    return rc;
}

void brc_array_end_read(brc_array *a)
{
    brc_session_end_read(a->session);
}

int brc_array_refresh(brc_array *a, brc_error *err)
{
    BRC_TRY(brc_array_begin_read(a, err));
    brc_array_end_read(a);
    return BRC_OK;
}

int brc_array_begin(brc_array *a, brc_error *err)
{
    BRC_TRY(brc_session_begin(a->session, err));
    int rc = brc_array_sync(a, err);
    if (rc == BRC_OK && !a->is_own) {
        rc = brc_session_put(a->session, a->path, &a->entry, &a->row, err);
        if (rc == BRC_OK)
            rc = brc_array_sync(a, err);
    }
    if (rc < 0) {
        a->is_read = 0;
        rc = brc_session_end(a->session, rc, err);
    }
    return rc;
}

/* Describes the array as the file has it, after a change was undone (if the file can be read;
 * unchanged parts stay where they are). The next call reads the array again. */
void brc_array_forget(brc_array *a)
{
    if (brc_array_begin_read(a, NULL) == BRC_OK)
        brc_array_end_read(a);
    a->is_read = 0;
}

void brc_array_changed(brc_array *a, int rc)
{
    brc_session_changed(a->session, rc);
    if (rc < 0)
        brc_array_forget(a);
}

static int array_ended(brc_array *a, int rc)
{
    if (rc < 0)
        brc_array_forget(a);
    return rc;
}

int brc_array_end(brc_array *a, int rc, brc_error *err)
{
    return array_ended(a, brc_session_end(a->session, rc, err));
}

int brc_array_bulk_end(brc_array *a, int rc, brc_error *err)
{
    return array_ended(a, brc_bulk_end_with(a->session, rc, err));
}

int brc_array_note_old(brc_array *a, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    const size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    return a->session->bulk == NULL
               ? BRC_OK
               : brc_bulk_note_old(a->session, a->path, a->row, (brc_span){key, len}, id, err);
}

int brc_array_can_write(const brc_array *a, brc_error *err)
{
    int rc = brc_meta_must_encode(&a->meta, err);
    if (rc < 0)
        brc_context(err, "%s cannot be written here", a->path);
    return rc;
}

int brc_array_put_entry(brc_array *a, const brc_json *doc, const brc_oid *map, brc_error *err)
{
    brc_entry entry = a->entry;
    if (map != NULL)
        entry.map = *map;
    BRC_TRY(doc != NULL ? brc_session_put_doc(a->session, a->path, &entry, doc, &a->row, err)
                        : brc_session_put(a->session, a->path, &entry, &a->row, err));
    return brc_array_sync(a, err); /* `changes` has moved on */
}

int brc_form_of_meta(brc_store *store, brc_meta *m, const uint64_t *chunk, brc_form **form,
                     int64_t *encoding, brc_error *err)
{
    BRC_TRY(brc_meta_form(m, chunk, form, err));
    *encoding = 0;
    (*form)->digest = 0;
    if ((*form)->chain != NULL && brc_chain_is_identity((*form)->chain))
        return BRC_OK;
    (*form)->digest = brc_hash_encoding((*form)->spec);
    return brc_encoding_find(store, (*form)->spec, encoding, err);
}

int brc_array_item(brc_array *a, const uint64_t *chunk, brc_write_item *item, brc_error *err)
{
    brc_form *form;
    BRC_TRY(brc_meta_form(&a->meta, chunk, &form, err));
    item->chain = form->chain;
    item->spec = NULL;
    item->digest = 0;
    if (form->chain == NULL || !brc_chain_is_identity(form->chain)) {
        item->spec = form->spec;
        item->digest = brc_hash_encoding(form->spec);
    }
    item->elements = form->elements;
    item->fill = brc_meta_absent_chunk(&a->meta);
    return brc_array_new_chunks(a, &item->backend, err);
}

/* ---- chunks -------------------------------- */

typedef struct id_lookup {
    brc_oid *ids;
    const size_t *numbers; /* of the requested keys */
    size_t id_len;
} id_lookup;

static int id_found(void *ctx, size_t i, brc_span value, brc_error *err)
{
    const id_lookup *l = ctx;
    return brc_chunk_id_of(value, l->id_len, &l->ids[l->numbers[i]], err);
}

/* Reads the draft's row of a chunk: *state as in brc_draft_chunk_get(). */
static int id_of_row(brc_array *a, const uint8_t *key, size_t len, int *state, brc_oid *id,
                     brc_error *err)
{
    *state = 0;
    if (!a->row_has_chunks)
        return BRC_OK;
    if (a->frozen == NULL)
        return brc_draft_chunk_get(brc_array_store(a), &a->stack, key, len, state, id, err);
    const brc_chunk_row *row = brc_frozen_rows_find(a->frozen, key, len);
    if (row == NULL)
        return BRC_OK;
    *id = row->id;
    *state = brc_oid_is_zero(id) ? 2 : 1;
    return BRC_OK;
}

static int id_of_one(brc_array *a, const uint64_t *index, brc_oid *id, brc_error *err)
{
    uint8_t key[BRC_CHUNK_KEY_MAX];
    size_t len = brc_chunk_key_encode(key, a->meta.ndim, index);
    int state = 0, found;
    brc_span value;
    memset(id, 0, sizeof(*id));
    BRC_TRY(id_of_row(a, key, len, &state, id, err));
    if (state != 0)
        return BRC_OK;
    BRC_TRY(brc_map_get(brc_array_store(a), &a->entry.map, key, len, &found, &value, err));
    return found ? brc_chunk_id_of(value, brc_store_id_len(brc_array_store(a)), id, err) : BRC_OK;
}

int brc_array_chunk_ids(brc_array *a, size_t n, const uint64_t *indexes, brc_oid *ids,
                        brc_error *err)
{
    brc_store *store = brc_array_store(a);
    int ndim = a->meta.ndim, rc, state = 0;
    void *keys = NULL, *numbers = NULL, *bytes = NULL;
    size_t asked = 0, at = 0;
    if (n == 1)
        return id_of_one(a, indexes, ids, err);
    BRC_GO(brc_new_array(&keys, n, sizeof(brc_span), err));
    BRC_GO(brc_new_array(&numbers, n, sizeof(size_t), err));
    BRC_GO(brc_new_array(&bytes, n, (size_t)9 * (size_t)(ndim > 0 ? ndim : 1), err));
    memset(ids, 0, n * sizeof(*ids));
    for (size_t i = 0; i < n; i++) {
        uint8_t *key = (uint8_t *)bytes + at, full[BRC_CHUNK_KEY_MAX];
        size_t len = brc_chunk_key_encode(full, ndim, indexes + i * (size_t)ndim);
        memcpy(key, full, len);
        BRC_GO(id_of_row(a, key, len, &state, &ids[i], err));
        if (state != 0)
            continue;
        ((brc_span *)keys)[asked] = (brc_span){key, len};
        ((size_t *)numbers)[asked++] = i;
        at += len;
    }
    id_lookup lookup = {ids, numbers, brc_store_id_len(store)};
    rc = brc_map_get_many(store, &a->entry.map, keys, asked, id_found, &lookup, err);
done:
    free(keys);
    free(numbers);
    free(bytes);
    return rc;
}

int brc_array_each_chunk(brc_array *a, brc_chunk_each_fn each, void *ctx, brc_error *err)
{
    brc_chunk_cursor c;
    uint64_t index[BRC_MAX_NDIM];
    brc_oid id;
    int rc = brc_chunk_cursor_start(&c, a, err);
    while (rc >= 0 && (rc = brc_chunk_cursor_next(&c, index, &id, err)) > 0)
        rc = each(ctx, index, &id, err);
    brc_chunk_cursor_end(&c);
    return rc;
}

void brc_array_name_chunk(const brc_array *a, const uint64_t *index, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_buf_printf(&text, NULL, "%s chunk (", a->path);
    for (int i = 0; i < a->meta.ndim && rc == BRC_OK; i++)
        rc = brc_buf_printf(&text, NULL, "%s%" PRIu64, i > 0 ? "," : "", index[i]);
    if (rc == BRC_OK && brc_buf_printf(&text, NULL, ")") == BRC_OK &&
        brc_buf_terminate(&text, NULL) == BRC_OK)
        brc_context(err, "%s", (const char *)text.data);
    brc_buf_dispose(&text);
}

/* ---- selections -------------------------------- */

void brc_sel_all(brc_sel *out, const brc_array *a)
{
    brc_sel own = BRC_SEL_INIT;
    brc_sel_of_shape(&own, a->meta.ndim, a->meta.shape);
    /* the next call that takes `out` reports that its size is wrong */
    int rc = brc_sized_out(out, &own, sizeof(own), sizeof(own), "brc_sel", NULL);
    (void)rc;
}

uint64_t brc_sel_count(const brc_sel *sel)
{
    return sel->size >= sizeof(*sel) ? brc_shape_count(sel->ndim, sel->count) : 0;
}

int brc_sel_parse(brc_sel *out, const brc_array *a, const char *text, brc_error *err)
{
    brc_sel own = BRC_SEL_INIT;
    BRC_TRY(brc_sized_check(out->size, sizeof(own), "brc_sel", err));
    if (text == NULL)
        brc_sel_of_shape(&own, a->meta.ndim, a->meta.shape);
    else
        BRC_TRY(brc_sel_read(&own, a->meta.ndim, a->meta.shape, text, err));
    return brc_sized_out(out, &own, sizeof(own), sizeof(own), "brc_sel", err);
}

brc_session *brc_array_session(const brc_array *a)
{
    return a->session;
}

/* ==== array totals ================================ */

/*
 * Counts an array's chunks and their bytes: the sum of the map, corrected by the uncommitted rows.
 * The map's rows of totals are derived: if they cannot be true, or are incomplete, every chunk is
 * read.
 */

enum { DRAFT_PAGE = 512 };

typedef struct array_sum {
    brc_array *a;
    brc_node_total total;
    brc_total_rows kept; /* stored when the read has ended */
    uint64_t version;    /* of the store, when it was read */
} array_sum;

/* ---- every chunk -------------------------------- */

static int stat_chunk(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    array_sum *sum = ctx;
    brc_object o = { .id = *id }, *one = &o;
    (void)index;
    BRC_TRY(brc_objects_find(brc_array_store(sum->a), &one, 1, err));
    sum->total.chunks++;
    sum->total.stored += o.found ? o.stored : 0;
    return BRC_OK;
}

static int stat_each(array_sum *sum, brc_error *err)
{
    sum->total = (brc_node_total){ 0 };
    return brc_array_each_chunk(sum->a, stat_chunk, sum, err);
}

/* ---- the draft's rows -------------------------------- */

typedef struct draft_page {
    array_sum *sum;
    brc_arena arena;
    size_t n;
    brc_span keys[DRAFT_PAGE];
    brc_object now[DRAFT_PAGE], then[DRAFT_PAGE]; /* zero id: no chunk */
} draft_page;

static int page_row(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                    brc_error *err)
{
    draft_page *page = ctx;
    const brc_meta *meta = &page->sum->a->meta;
    uint64_t index[BRC_MAX_NDIM];
    uint8_t *copy;
    const size_t i = page->n;
    const int is_key = brc_chunk_key_decode(key, key_len, index) == meta->ndim;
    const int inside = !is_key || id == NULL || brc_meta_has_place(meta, index);
    if (!is_key)
        return brc_fail(err, BRC_ECORRUPT, "%s: a chunk's key is damaged; run 'breccia fsck'",
                        page->sum->a->path);
    if (!inside)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s: a chunk is outside the array's grid; run 'breccia fsck'",
                        page->sum->a->path);
    BRC_TRY(brc_arena_copy(&page->arena, key, key_len, &copy, err));
    page->keys[i] = (brc_span){ copy, key_len };
    page->now[i] = page->then[i] = (brc_object){ 0 };
    if (id != NULL)
        page->now[i].id = *id;
    page->n++;
    return BRC_OK;
}

static int page_then(void *ctx, size_t i, brc_span value, brc_error *err)
{
    draft_page *page = ctx;
    return brc_chunk_id_of(value, brc_store_id_len(brc_array_store(page->sum->a)),
                           &page->then[i].id, err);
}

/* Sums a page. *right is 0 if the map has less than the rows replace. */
static int page_sum(draft_page *page, int *right, brc_error *err)
{
    brc_object *ask[2 * DRAFT_PAGE];
    brc_node_total more = { 0 }, less = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++) {
        if (!brc_oid_is_zero(&page->now[i].id))
            ask[n++] = &page->now[i];
        if (!brc_oid_is_zero(&page->then[i].id))
            ask[n++] = &page->then[i];
    }
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_objects_find(brc_array_store(page->sum->a), ask, n, err));
    for (size_t i = 0; i < n; i++) {
        const int is_now = ask[i] >= page->now && ask[i] < page->now + DRAFT_PAGE;
        brc_node_total one = { .chunks = 1, .size = ask[i]->found ? ask[i]->size : 0,
                               .stored = ask[i]->found ? ask[i]->stored : 0 };
        *right &= brc_node_total_add(is_now ? &more : &less, &one);
    }
    *right &= brc_node_total_add(&page->sum->total, &more) &&
              brc_node_total_subtract(&page->sum->total, &less);
    return BRC_OK;
}

static int next_page(draft_page *page, int *right, brc_error *err)
{
    brc_array *a = page->sum->a;
    brc_arena old = page->arena;
    brc_span after = page->n > 0 ? page->keys[page->n - 1] : (brc_span){ NULL, 0 };
    page->arena = (brc_arena)BRC_ARENA_INIT;
    page->n = 0;
    int rc = brc_store_check_interrupt(brc_array_store(a), err);
    if (rc == BRC_OK)
        rc = brc_draft_chunk_page(brc_array_store(a), &a->stack, after, DRAFT_PAGE, page_row,
                                  page, err);
    if (rc == BRC_OK)
        rc = brc_map_get_many(brc_array_store(a), &a->entry.map, page->keys, page->n, page_then,
                              page, err);
    if (rc == BRC_OK)
        rc = page_sum(page, right, err);
    brc_arena_dispose(&old);
    return rc;
}

static int stat_draft(array_sum *sum, int *right, brc_error *err)
{
    void *p;
    int rc;
    if (!sum->a->row_has_chunks)
        return BRC_OK;
    BRC_TRY(brc_new(&p, sizeof(draft_page), err));
    draft_page *page = p;
    page->sum = sum;
    page->arena = (brc_arena)BRC_ARENA_INIT;
    page->n = 0;
    do
        rc = next_page(page, right, err);
    while (rc == BRC_OK && *right && page->n == DRAFT_PAGE);
    brc_arena_dispose(&page->arena);
    free(page);
    return rc;
}

/* ---- the map and the rows -------------------------------- */

/* Sums the map. *right is 0 if totals are missing or cannot be true. */
static int stat_map(array_sum *sum, int *right, brc_error *err)
{
    brc_store *store = brc_array_store(sum->a);
    uint64_t keys;
    BRC_TRY(brc_store_version(store, &sum->version, err));
    BRC_TRY(brc_map_total(store, &sum->a->entry.map, &sum->kept, &sum->total, right, err));
    BRC_TRY(brc_map_count(store, &sum->a->entry.map, &keys, err));
    *right &= keys == sum->total.chunks && sum->total.arrays == 0 && sum->total.groups == 0;
    return BRC_OK;
}

static int stat_sum(array_sum *sum, brc_error *err)
{
    int right = 1;
    BRC_TRY(stat_map(sum, &right, err));
    if (right)
        BRC_TRY(stat_draft(sum, &right, err));
    return right ? BRC_OK : stat_each(sum, err);
}

int brc_array_stat(uint64_t *chunks, uint64_t *stored_bytes, brc_array *a, brc_error *err)
{
    array_sum sum = { .a = a };
    *chunks = *stored_bytes = 0;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = stat_sum(&sum, err);
    brc_array_end_read(a);
    if (rc == BRC_OK)
        brc_total_rows_put(brc_array_store(a), &sum.kept, sum.version);
    brc_total_rows_dispose(&sum.kept);
    *chunks = sum.total.chunks;
    *stored_bytes = sum.total.stored;
    return rc;
}
