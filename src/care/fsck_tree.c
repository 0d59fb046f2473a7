/* Stores the faults that fsck has found, by id. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/read.h"
#include "../work/fold.h"
#include "../work/session.h"
#include "../zarr/array/chunk_cursor.h"
#include "../zarr/array/region.h"
#include "../zarr/doc/meta.h"
#include "fsck.h"

/* ==== faults ================================ */

void brc_faults_dispose(brc_faults *faults)
{
    brc_fault *items = faults->items;
    for (size_t i = 0; i < faults->n; i++) {
        for (size_t j = 0; j < items[i].nused_by; j++)
            free(((char **)items[i].used_by)[j]);
        free(items[i].used_by);
        free(items[i].message);
    }
    free(items);
    brc_id_table_dispose(&faults->by_id);
    faults->items = NULL;
    faults->n = faults->cap = 0;
}

brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id)
{
    const size_t *at = brc_oid_is_zero(id) ? NULL : brc_id_table_find(&faults->by_id, id);
    return at != NULL ? &((brc_fault *)faults->items)[*at] : NULL;
}

int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                   const char *message, brc_fault **out, brc_error *err)
{
    void *value;
    size_t known = faults->by_id.n;
    BRC_TRY(brc_grow_array(&faults->items, &faults->cap, faults->n + 1, sizeof(brc_fault), err));
    brc_fault *f = &((brc_fault *)faults->items)[faults->n];
    memset(f, 0, sizeof(*f));
    f->id = *id;
    f->kind = kind;
    f->missing = missing;
    if (!brc_oid_is_zero(id)) {
        BRC_TRY(brc_id_table_add(&faults->by_id, id, &value, err));
        if (faults->by_id.n > known)
            *(size_t *)value = faults->n;
    }
    const char *advice = strstr(message, "; run 'breccia fsck'"); /* this is fsck */
    BRC_TRY(advice != NULL ? brc_dup_n(&f->message, message, (size_t)(advice - message), err)
                           : brc_dup(&f->message, message, err));
    faults->n++;
    if (out != NULL)
        *out = f;
    return BRC_OK;
}

int brc_faults_add_file(brc_faults *faults, const char *message, brc_error *err)
{
    brc_oid none;
    memset(&none, 0, sizeof(none));
    return brc_faults_add(faults, &none, 0, 0, message, NULL, err);
}

int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err)
{
    char *copy;
    if (fault->nused_by > BRC_FAULT_USERS)
        return BRC_OK;
    if (fault->nused_by == BRC_FAULT_USERS)
        text = "and more";
    for (size_t i = 0; i < fault->nused_by; i++)
        if (strcmp(((char **)fault->used_by)[i], text) == 0)
            return BRC_OK;
    BRC_TRY(brc_grow_array(&fault->used_by, &fault->used_by_cap, fault->nused_by + 1,
                           sizeof(char *), err));
    BRC_TRY(brc_dup(&copy, text, err));
    ((char **)fault->used_by)[fault->nused_by++] = copy;
    return BRC_OK;
}

/* ==== check uses ================================ */

/* Records who uses which object, checks that it exists, and reports its faults with its users. */

/* Finds the fault with this id, which is created if the object is missing; NULL: there is none. */
static int fault_of(const brc_check *c, const brc_oid *id, int kind, brc_fault **out,
                    brc_error *err)
{
    brc_object o = { .id = *id }, *one = &o;
    int there = 0;
    *out = brc_faults_find(c->faults, id);
    if (*out != NULL)
        return BRC_OK;
    BRC_TRY(brc_objects_find(c->store, &one, 1, err));
    if (!o.found && kind == BRC_KIND_DOCUMENT)
        BRC_TRY(brc_draft_doc_has(c->store, id, &there, err));
    if (there)
        return BRC_OK;
    if (!o.found)
        return brc_faults_add(c->faults, id, kind, 1, "something refers to it, but it is not "
                                                      "there", out, err);
    if (o.kind != kind)
        return brc_faults_add(c->faults, id, kind, 0, "it is used as an object of another kind",
                              out, err);
    return BRC_OK;
}

static int note_user(const brc_check *c, brc_fault *fault, const char *path, const char *part,
                     brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc = brc_buf_printf(&text, err, "%s: %s%s%s", c->what, path, *part ? " " : "", part);
    if (rc == BRC_OK)
        rc = brc_fault_used_by(fault, (const char *)text.data, err);
    brc_buf_dispose(&text);
    return rc;
}

int brc_check_use(const brc_check *c, const brc_oid *id, int kind, const char *path,
                  const char *part, int *bad, brc_error *err)
{
    brc_fault *fault;
    BRC_TRY(fault_of(c, id, kind, &fault, err));
    *bad = fault != NULL;
    return fault != NULL ? note_user(c, fault, path, part, err) : BRC_OK;
}

int brc_check_fault(const brc_check *c, const brc_oid *id, int kind, const char *path,
                    const char *part, const char *message, brc_error *err)
{
    brc_fault *fault = brc_faults_find(c->faults, id);
    if (fault == NULL)
        BRC_TRY(brc_faults_add(c->faults, id, kind, 0, message, &fault, err));
    return note_user(c, fault, path, part, err);
}

static int chunk_name(brc_buf *out, int ndim, const uint64_t *index, brc_error *err)
{
    out->len = 0;
    BRC_TRY(brc_buf_text(out, "chunk (", err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(brc_buf_printf(out, err, "%s%" PRIu64, i > 0 ? "," : "", index[i]));
    BRC_TRY(brc_buf_text(out, ")", err));
    return brc_buf_terminate(out, err);
}

/* Reports the faults of one chunk of the array at `path`, and that the array uses the chunk. */
static int check_chunk_use(const brc_check *c, const char *path, const brc_chunk_check *chunk,
                           int *bad, brc_error *err)
{
    brc_buf part = BRC_BUF_INIT;
    int rc = BRC_OK;
    *bad = 0;
    if (chunk->looked_up && chunk->fault == NULL)
        return BRC_OK;
    BRC_GO(chunk_name(&part, chunk->ndim, chunk->index, err));
    const char *name = (const char *)part.data;
    if (!chunk->looked_up) {
        rc = brc_check_use(c, &chunk->object.id, BRC_KIND_CHUNK, path, name, bad, err);
    } else {
        *bad = 1;
        rc = brc_check_fault(c, &chunk->object.id, BRC_KIND_CHUNK, path, name,
                             chunk->fault->message, err);
    }
done:
    brc_buf_dispose(&part);
    return rc;
}

/* ==== check array ================================ */

/* Checks one array: that its document is valid, and that its chunks are what a reader will ask
 * for. */

static void array_check_free(brc_array_check *a)
{
    if (a == NULL)
        return;
    if (a->meta != NULL)
        brc_meta_dispose(a->meta);
    free(a->meta);
    free(a->path);
    free(a);
}

/* Computes the array's context. Chunks of one length are right for every array with chunks of that
 * length; other chunks that are right for one array are right for those with the same document. */
static int set_context(brc_array_check *a, brc_store *store, const brc_entry *entry, brc_error *err)
{
    const brc_meta *m = a->meta;
    brc_form *form;
    a->context = entry->doc;
    a->context.bytes[0] ^= (uint8_t)m->opaque;
    if (m->opaque || !m->grid.regular || brc_meta_is_variable(m))
        return BRC_OK;
    BRC_TRY(brc_meta_form(a->meta, m->grid.chunk, &form, err));
    uint64_t fixed[2] = { (uint64_t)m->ndim, form->bytes };
    a->context = brc_hash_object(brc_store_hash(store), BRC_KIND_DOCUMENT, fixed, sizeof(fixed));
    return BRC_OK;
}

static int open_meta(const brc_check *c, brc_array_check *a, const brc_entry *entry, int64_t row,
                     brc_error *err)
{
    brc_json *doc;
    brc_error ignored = BRC_ERROR_INIT;
    brc_draft_stack rows;
    BRC_TRY(brc_entry_doc(c->store, entry, &doc, err));
    int rc = brc_meta_open(a->meta, c->repo->registry, doc, err);
    brc_json_free(doc);
    if (rc < 0) {
        memset(a->meta, 0, sizeof(*a->meta));
        return rc;
    }
    a->open = 1;
    /* damage further down is reported where it is met */
    rc = brc_draft_stack_get(c->store, row, &rows, &ignored);
    if (rc == BRC_OK)
        rc = brc_opaque_settle(c->store, a->meta, &entry->map, &rows, &ignored);
    return rc < 0 && rc != BRC_ECORRUPT ? brc_fail(err, rc, "%s", ignored.message)
                                        : set_context(a, c->store, entry, err);
}

static int array_check_new(const brc_check *c, const char *path, const brc_entry *entry,
                           int64_t row, brc_array_check **out, int *bad, brc_error *err)
{
    void *p;
    int rc;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(brc_new(&p, sizeof(brc_array_check), err));
    brc_array_check *a = p;
    BRC_GO(brc_new(&p, sizeof(brc_meta), err));
    a->meta = p;
    BRC_GO(brc_dup(&a->path, path, err));
    BRC_GO(brc_check_use(c, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json", bad, err));
    if (!*bad) {
        rc = open_meta(c, a, entry, row, &found);
        if (rc == BRC_EINVAL || rc == BRC_ECORRUPT) {
            *bad = 1;
            rc = brc_check_fault(c, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json",
                                 found.message, err);
        } else if (rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT) {
            rc = BRC_OK; /* every command reports the document, and none calls it damaged */
        } else if (rc < 0 && err != NULL) {
            brc_error_copy(err, &found);
        }
    }
    a->bad = *bad;
done:
    if (rc < 0)
        array_check_free(a);
    else
        *out = a;
    return rc;
}

/* ---- chunks -------------------------------- */

/* Decodes the chunks that are known to be right only after decoding. */
typedef struct chunk_decoder {
    const brc_check *c;
    brc_array_check *a;
    brc_chunk_check *chunks;
    size_t n, at;
} chunk_decoder;

static int decoder_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    chunk_decoder *d = ctx;
    (void)err;
    for (; d->at < d->n && *n < cap; d->at++) {
        if (!d->chunks[d->at].decodes)
            continue;
        items[*n].object = d->chunks[d->at].object;
        items[(*n)++].number = d->at;
    }
    return BRC_OK;
}

static int decoder_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const chunk_decoder *d = ctx;
    return brc_chunk_item_of(item, d->c->store, d->a->meta, d->chunks[item->number].index, err);
}

/* Checks that there are exactly as many elements as the chunk has. */
static int check_elements(uint64_t n, brc_span packed, brc_error *err)
{
    brc_element_cursor cursor = { packed, 0, 0 };
    brc_span element;
    int rc = BRC_OK;
    for (uint64_t i = 0; i < n && rc == BRC_OK; i++)
        rc = brc_element_next(&cursor, &element, NULL);
    if (rc == BRC_OK)
        rc = brc_elements_end(&cursor, NULL);
    return rc < 0 ? brc_fail(err, BRC_ECORRUPT, "its elements are damaged") : BRC_OK;
}

static int decoder_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                         brc_error *err)
{
    const chunk_decoder *d = ctx;
    const brc_meta *m = d->a->meta;
    uint64_t corner[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    (void)scratch;
    if (item->skip > 0)
        BRC_TRY(brc_opaque_check(item->stored.data, err));
    if (!brc_meta_is_variable(m))
        return BRC_OK;
    brc_grid_chunk(&m->grid, d->chunks[item->number].index, corner, chunk);
    return check_elements(brc_shape_count(m->ndim, chunk), (brc_span){ data, item->len }, err);
}

/* Keeps a fault. A chunk that this build cannot decode is not damaged because of that, and neither
 * is one that was removed meanwhile. */
static int keep_fault(brc_chunk_check *chunk, int rc, const brc_error *found, brc_error *err)
{
    void *p;
    if (rc == BRC_EUNSUPPORTED || rc == BRC_ELIMIT || rc == BRC_ESTALE || rc == BRC_OK)
        return BRC_OK;
    if (rc != BRC_ECORRUPT) {
        if (err != NULL)
            brc_error_copy(err, found);
        return rc;
    }
    BRC_TRY(brc_new(&p, sizeof(*chunk->fault), err));
    chunk->fault = p;
    *chunk->fault = *found;
    return BRC_OK;
}

static int decoder_failed(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                          brc_error *err)
{
    const chunk_decoder *d = ctx;
    return keep_fault(&d->chunks[item->number], rc, why, err);
}

/* Checks what the chunk's row and the document say. */
static int check_row(const brc_check *c, brc_array_check *a, brc_chunk_check *chunk, brc_error *err)
{
    brc_read_item item;
    brc_meta *m = a->meta;
    brc_error found = BRC_ERROR_INIT;
    if (!brc_meta_has_place(m, chunk->index))
        return BRC_OK; /* it is reported for the array */
    if (m->opaque && !m->readable)
        return BRC_OK;
    memset(&item, 0, sizeof(item));
    item.object = chunk->object;
    int rc = brc_chunk_item_of(&item, c->store, m, chunk->index, &found);
    chunk->decodes = rc == BRC_OK && !c->no_decode && (m->opaque || brc_meta_is_variable(m));
    return keep_fault(chunk, rc, &found, err);
}

/* Checks whether the objects are right for the chunks at these indexes, for those that were looked
 * up, together. */
static int array_check_chunks(const brc_check *c, brc_array_check *a, brc_chunk_check *chunks,
                              size_t n, brc_error *err)
{
    chunk_decoder d = { .c = c, .a = a, .chunks = chunks, .n = n };
    brc_read_ops ops = { .ctx = &d,
                         .list = decoder_list,
                         .open = decoder_open,
                         .place = decoder_place,
                         .failed = decoder_failed };
    int any = 0;
    for (size_t i = 0; i < n && a->open; i++) {
        if (chunks[i].looked_up)
            BRC_TRY(check_row(c, a, &chunks[i], err));
        any |= chunks[i].decodes;
    }
    return any ? brc_flow_read(&c->repo->pipe, c->store, &ops, err) : BRC_OK;
}

/* ==== check tree ================================ */

/*
 * Checks the contents of versions: map nodes, entries, documents, chunks. Every object is checked
 * once, however many paths and versions lead to it, because everything that its users need is
 * remembered with the node: its facts, the depth of the hierarchy under it, the longest path in it,
 * the greatest chunk index, and its totals, which are compared with the derived row of totals, if
 * there is one. A bad object is checked again a few times, so that its users are reported; its
 * totals are not compared.
 */

#define LOOKS_AT_BAD 8
/* The number of chunks that are remembered as right: each takes 48 bytes and a third more. */
#define CHUNKS_KNOWN ((size_t)1 << 20)

typedef struct node_memo {
    uint64_t facts;
    uint32_t extent;  /* index in c->extents, from 1; 0: none      */
    uint16_t longest; /* bytes of the longest path under it        */
    uint8_t height;   /* number of names of the deepest path under it */
    uint8_t bad;      /* 0: good; else how often it was checked    */
    brc_node_total total;
} node_memo;

/* The result for an array that was met before. */
typedef struct array_memo {
    uint64_t looks; /* 0: good; else how often it was found bad */
    brc_node_total total;
} array_memo;

typedef struct node_level {
    brc_oid id;
    int bad;
    size_t height, longest, path_len;
    uint64_t extent[BRC_MAX_NDIM]; /* of chunks: one more than the greatest index */
    brc_node_total total;
} node_level;

/* The sizes of a chunk that is right. */
typedef struct chunk_sizes {
    uint64_t size, stored;
} chunk_sizes;

/* The chunks of one leaf. */
typedef struct chunk_batch {
    size_t n;
    brc_chunk_check chunks[BRC_NODE_MAX];
} chunk_batch;

int brc_tree_check_new(brc_tree_check *c, breccia *repo, int no_decode, brc_faults *faults,
                       brc_error *err)
{
    void *p;
    *c = (brc_tree_check){ .check = { repo, repo->store, faults, no_decode, "" },
                           .arrays = BRC_ID_TABLE_INIT(sizeof(array_memo)),
                           .docs = BRC_ID_TABLE_INIT(sizeof(uint64_t)),
                           .chunks = BRC_ID_TABLE_INIT(sizeof(chunk_sizes)) };
    c->chunks.max = CHUNKS_KNOWN;
    BRC_TRY(brc_new(&p, sizeof(chunk_batch), err));
    c->batch = p;
    BRC_TRY(brc_store_others(repo->store, &c->others, err));
    return brc_closure_new(&c->walk, repo->store, sizeof(node_memo), err);
}

void brc_tree_check_dispose(brc_tree_check *c)
{
    brc_closure_free(c->walk);
    array_check_free(c->array);
    brc_id_table_dispose(&c->arrays);
    brc_id_table_dispose(&c->docs);
    brc_id_table_dispose(&c->chunks);
    free(c->levels);
    free(c->extents);
    free(c->batch);
}

/* ---- levels and memory -------------------------------- */

static node_level *level_at(const brc_tree_check *c, size_t i)
{
    return (node_level *)c->levels + i;
}

static uint64_t facts_digest(const brc_tree_check *c, unsigned level, unsigned count, uint64_t keys,
                             const uint8_t *prefix, size_t bits)
{
    uint8_t bytes[24 + BRC_KEY_MAX] = { 0 };
    uint64_t head[3] = { (uint64_t)level << 32 | count, keys, bits }, digest;
    memcpy(bytes, head, sizeof(head));
    memcpy(bytes + sizeof(head), prefix, brc_bits_bytes(bits));
    if (bits % 8 != 0) /* the bits after the prefix in its last byte belong to a key */
        bytes[sizeof(head) + bits / 8] &= (uint8_t)(0xff << (8 - bits % 8));
    brc_oid id = brc_hash_object(brc_store_hash(c->check.store), BRC_KIND_NODE, bytes,
                                 sizeof(head) + brc_bits_bytes(bits));
    memcpy(&digest, id.bytes, sizeof(digest));
    return digest;
}

static const char *part_of(const brc_node_step *at)
{
    return at->kind == 0 ? "snapshot" : "map";
}

static const char *path_of(const brc_node_step *at)
{
    return at->path_len > 0 ? at->path : "/";
}

/* Adds totals. A sum that cannot be counted is bad, because a row could not hold it. */
static void count_in(node_level *level, const brc_node_total *more)
{
    level->bad |= !brc_node_total_add(&level->total, more);
}

static void count_chunk(node_level *leaf, uint64_t size, uint64_t stored)
{
    brc_node_total one = { .chunks = 1, .size = size, .stored = stored };
    count_in(leaf, &one);
}

/* Compares the totals with the node's row. A missing row is not a fault, because readers then
 * count. */
static int check_total(brc_tree_check *c, const brc_node_step *at, const node_level *own,
                       brc_error *err)
{
    brc_node_total row;
    int64_t others;
    int state;
    if (own->bad)
        return BRC_OK;
    BRC_TRY(brc_node_total_get(c->check.store, &at->id, &state, &row, err));
    if (state == BRC_TOTAL_FOUND && !brc_node_total_equal(&row, &own->total)) {
        BRC_TRY(brc_store_others(c->check.store, &others, err));
        if (others != c->others) /* chunks may have been re-encoded since they were counted */
            row.stored = own->total.stored;
    }
    if (state == BRC_TOTAL_NONE ||
        (state == BRC_TOTAL_FOUND && brc_node_total_equal(&row, &own->total)))
        return BRC_OK;
    return brc_check_fault(&c->check, &at->id, BRC_KIND_NODE, path_of(at), part_of(at),
                           "its derived row (node_total) does not match the nodes under it",
                           err);
}

static size_t path_bytes(size_t len)
{
    return len > 1 ? len : 0; /* the root's slash belongs to its children */
}

/* Passes the results of a node up to the node above; from the root of a map they go one level of
 * the hierarchy higher. */
static void merge_up(brc_tree_check *c, const brc_node_step *at, size_t height, size_t longest,
                     const uint64_t *extent, const brc_node_total *total)
{
    node_level *above = level_at(c, at->level);
    size_t names = 0, bytes = 0;
    count_in(above, total);
    if (at->is_root && at->level > 0 && at->kind == BRC_GROUP && at->depth > 0) {
        names = 1;
        bytes = path_bytes(at->path_len) - path_bytes(above->path_len);
    }
    if (height + names > above->height)
        above->height = height + names;
    if (longest + bytes > above->longest)
        above->longest = longest + bytes;
    for (int i = 0; extent != NULL && c->array->open && i < c->array->meta->ndim; i++)
        if (extent[i] > above->extent[i])
            above->extent[i] = extent[i];
}

static const uint64_t *memo_extent(const brc_tree_check *c, const node_memo *memo)
{
    return memo->extent > 0 ? (uint64_t *)c->extents + (memo->extent - 1) : NULL;
}

static int keep_extent(brc_tree_check *c, const uint64_t *extent, uint32_t *out, brc_error *err)
{
    int ndim = c->array->open ? c->array->meta->ndim : 0;
    *out = 0;
    if (ndim == 0 || c->nextents > UINT32_MAX - BRC_MAX_NDIM - 1)
        return BRC_OK;
    BRC_TRY(brc_grow_array(&c->extents, &c->extents_cap, c->nextents + BRC_MAX_NDIM,
                           sizeof(uint64_t), err));
    memset((uint64_t *)c->extents + c->nextents, 0, BRC_MAX_NDIM * sizeof(uint64_t));
    memcpy((uint64_t *)c->extents + c->nextents, extent, (size_t)ndim * sizeof(uint64_t));
    *out = (uint32_t)c->nextents + 1;
    c->nextents += (size_t)ndim;
    return BRC_OK;
}

/* ---- chunks -------------------------------- */

static int tell_chunks(brc_tree_check *c, node_level *leaf, brc_error *err)
{
    for (size_t i = 0; i < c->batch->n; i++) {
        const brc_chunk_check *chunk = &c->batch->chunks[i];
        int bad;
        BRC_TRY(check_chunk_use(&c->check, c->array->path, chunk, &bad, err));
        brc_oid key = brc_id_in_context(&chunk->object.id, &c->array->context);
        leaf->bad |= bad;
        if (bad)
            continue;
        void *sizes;
        BRC_TRY(brc_id_table_add(&c->chunks, &key, &sizes, err));
        *(chunk_sizes *)sizes = (chunk_sizes){ chunk->object.size, chunk->object.stored };
        count_chunk(leaf, chunk->object.size, chunk->object.stored);
    }
    return BRC_OK;
}

/* Looks up, and if necessary decodes, the chunks of a leaf that are not yet known to be right or at
 * fault, together. */
static int flush_chunks(brc_tree_check *c, node_level *leaf, brc_error *err)
{
    chunk_batch *b = c->batch;
    brc_object *ask[BRC_NODE_MAX];
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++)
        if (brc_faults_find(c->check.faults, &b->chunks[i].object.id) == NULL)
            ask[n++] = &b->chunks[i].object;
    int rc = brc_objects_find(c->check.store, ask, n, err);
    for (size_t i = 0; i < b->n; i++) {
        const brc_object *o = &b->chunks[i].object;
        b->chunks[i].looked_up = o->found && o->kind == BRC_KIND_CHUNK;
    }
    if (rc == BRC_OK)
        rc = array_check_chunks(&c->check, c->array, b->chunks, b->n, err);
    if (rc == BRC_OK)
        rc = tell_chunks(c, leaf, err);
    for (size_t i = 0; i < b->n; i++)
        free(b->chunks[i].fault);
    b->n = 0;
    return rc;
}

/* Returns what is wrong with the key, or NULL if it can be a chunk of the array. */
static const char *key_fault(const brc_tree_check *c, int ndim, int has_id)
{
    if (ndim < 0 || !has_id)
        return "a chunk's key or id in it is damaged";
    if (c->array->open && ndim != c->array->meta->ndim)
        return "a chunk in it does not have as many dimensions as its array";
    return NULL;
}

/* Adds one item of an array's map, or one row of a draft. `holder` is the node or document that has
 * the fault if the item itself is wrong. */
static int add_chunk(brc_tree_check *c, node_level *leaf, const brc_oid *holder, int holder_kind,
                     brc_span at_key, const brc_oid *id, brc_error *err)
{
    chunk_batch *b = c->batch;
    brc_chunk_check *chunk = &b->chunks[b->n];
    uint64_t *index = chunk->index;
    int ndim = brc_chunk_key_decode(at_key.data, at_key.len, index);
    const char *why = key_fault(c, ndim, !brc_oid_is_zero(id));
    if (why != NULL) {
        leaf->bad = 1;
        return brc_check_fault(&c->check, holder, holder_kind, c->array->path, "map", why, err);
    }
    for (int i = 0; i < ndim; i++)
        if (index[i] >= leaf->extent[i])
            leaf->extent[i] = index[i] == UINT64_MAX ? index[i] : index[i] + 1;
    brc_oid key = brc_id_in_context(id, &c->array->context);
    const chunk_sizes *sizes = brc_id_table_find(&c->chunks, &key);
    if (sizes != NULL) {
        count_chunk(leaf, sizes->size, sizes->stored);
        return BRC_OK;
    }
    chunk->object = (brc_object){ .id = *id };
    chunk->ndim = ndim;
    chunk->decodes = 0;
    chunk->fault = NULL;
    b->n++;
    return b->n < BRC_NODE_MAX ? BRC_OK : flush_chunks(c, leaf, err);
}

static int step_chunk(brc_tree_check *c, const brc_node_step *at, brc_error *err)
{
    node_level *leaf = level_at(c, at->level);
    return add_chunk(c, leaf, &leaf->id, BRC_KIND_NODE, at->key, &at->chunk, err);
}

/* ---- nodes -------------------------------- */

/* Checks that a known node matches what is said of it here, and is within the limits here. */
static int use_known(brc_tree_check *c, const brc_node_step *at, const node_memo *memo,
                     brc_error *err)
{
    node_level *above = level_at(c, at->level);
    const brc_item *says = at->claim;
    char hex[65], message[160];
    brc_error found = BRC_ERROR_INIT;
    if (memo->bad) {
        above->bad = 1;
        return BRC_OK;
    }
    if (says != NULL && facts_digest(c, says->level, says->weight, says->keys, says->key,
                                     says->bits) != memo->facts) {
        above->bad = 1;
        snprintf(message, sizeof(message), "map node %.8s under it does not match its entry",
                 brc_oid_format(hex, &at->id));
        return brc_check_fault(&c->check, &above->id, BRC_KIND_NODE, path_of(at), part_of(at),
                               message, err);
    }
    if (brc_path_is_stored(path_of(at), path_bytes(at->path_len) + memo->longest,
                           at->depth + memo->height, &found) < 0) {
        above->bad = 1;
        return brc_check_fault(&c->check, &at->id, BRC_KIND_NODE, path_of(at), part_of(at),
                               found.message, err);
    }
    merge_up(c, at, memo->height, memo->longest, memo_extent(c, memo), &memo->total);
    return BRC_OK;
}

/* Begins an array, and separates faults in its chunks from earlier faults. */
static void begin_array(brc_tree_check *c, const brc_node_step *at)
{
    node_level *in = level_at(c, at->level);
    c->array->bad |= in->bad << 1;
    in->bad = 0;
    memset(in->extent, 0, sizeof(in->extent));
    c->array->before = in->total;
}

/* Checks a node. Sets *skipped to 1 if the node is not read. */
static int step_node(brc_tree_check *c, const brc_closure_step *step, int *skipped, brc_error *err)
{
    const brc_node_step *at = &step->node;
    const node_memo *memo = step->known;
    int bad = 0;
    BRC_TRY(brc_grow_array(&c->levels, &c->levels_cap, at->level + 2, sizeof(node_level), err));
    if (at->kind == BRC_ARRAY && at->is_root)
        begin_array(c, at);
    *skipped = memo != NULL && (memo->bad == 0 || memo->bad == LOOKS_AT_BAD);
    if (*skipped)
        return use_known(c, at, memo, err);
    BRC_TRY(brc_check_use(&c->check, &at->id, BRC_KIND_NODE, path_of(at), part_of(at), &bad, err));
    if (bad) {
        level_at(c, at->level)->bad = 1;
        *skipped = memo == NULL; /* a node that is damaged itself cannot be followed */
    }
    if (*skipped)
        brc_closure_skip(c->walk);
    else
        brc_closure_again(c->walk);
    node_level *own = level_at(c, at->level + 1);
    memset(own, 0, sizeof(*own));
    own->id = at->id;
    own->bad = bad;
    own->path_len = at->path_len;
    return BRC_OK;
}

static int step_leave(brc_tree_check *c, const brc_closure_step *step, brc_error *err)
{
    const brc_node_step *at = &step->node;
    node_level *own = level_at(c, at->level + 1);
    node_memo *memo = step->keep;
    uint32_t extent = 0;
    if (at->kind == BRC_ARRAY) {
        BRC_TRY(flush_chunks(c, own, err));
        BRC_TRY(keep_extent(c, own->extent, &extent, err));
    }
    uint8_t looks = memo->bad;
    *memo = (node_memo){ .facts = facts_digest(c, at->facts->level, at->facts->count,
                                               at->facts->keys, at->facts->prefix, at->facts->bits),
                         .extent = extent,
                         .longest = (uint16_t)own->longest,
                         .height = (uint8_t)own->height,
                         .bad = own->bad ? (uint8_t)(looks + 1) : 0,
                         .total = own->total };
    level_at(c, at->level)->bad |= own->bad;
    merge_up(c, at, own->height, own->longest, at->kind == BRC_ARRAY ? own->extent : NULL,
             &own->total);
    return check_total(c, at, own, err);
}

/* ---- entries -------------------------------- */

/* Checks a group's document, and remembers whether it is good. */
static int check_group_doc(brc_tree_check *c, const char *path, const brc_entry *entry, int *bad,
                           brc_error *err)
{
    brc_json *doc = NULL;
    void *value;
    brc_error found = BRC_ERROR_INIT;
    BRC_TRY(brc_check_use(&c->check, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json", bad, err));
    if (*bad || brc_id_table_find(&c->docs, &entry->doc) != NULL)
        return BRC_OK;
    int rc = brc_entry_doc(c->check.store, entry, &doc, &found);
    if (rc == BRC_OK)
        rc = brc_meta_check_group(doc, &found);
    brc_json_free(doc);
    if (rc == BRC_ENOMEM)
        return brc_nomem(err);
    if (rc == BRC_OK)
        return brc_id_table_add(&c->docs, &entry->doc, &value, err);
    *bad = 1;
    return brc_check_fault(&c->check, &entry->doc, BRC_KIND_DOCUMENT, path, "zarr.json",
                           found.message, err);
}

/* Says whether the array was met before; its chunks are then not walked again. */
static int array_is_known(brc_tree_check *c, const brc_entry *entry, brc_oid *key,
                          brc_node_total *total, int *bad)
{
    brc_oid ids[3] = { entry->doc, entry->map, entry->storage };
    *key = brc_hash_object(brc_store_hash(c->check.store), BRC_KIND_NODE, ids, sizeof(ids));
    const array_memo *memo = brc_id_table_find(&c->arrays, key);
    *bad = memo != NULL && memo->looks > 0;
    if (memo != NULL)
        *total = memo->total;
    return memo != NULL && (memo->looks == 0 || memo->looks >= LOOKS_AT_BAD);
}

/* Checks an entry. *total is set for an array that is known. */
static int check_entry(brc_tree_check *c, const char *path, const brc_entry *entry, int64_t row,
                       int *bad, int *known, brc_node_total *total, brc_error *err)
{
    brc_oid key = { { 0 } };
    int one = 0;
    *known = 0;
    if (!brc_oid_is_zero(&entry->storage))
        BRC_TRY(brc_check_use(&c->check, &entry->storage, BRC_KIND_DOCUMENT, path, "storage", bad,
                              err));
    if (entry->kind == BRC_GROUP)
        BRC_TRY(check_group_doc(c, path, entry, &one, err));
    *bad |= one;
    if (entry->kind == BRC_GROUP)
        return BRC_OK;
    *known = row == 0 && array_is_known(c, entry, &key, total, &one);
    *bad |= *known && one;
    if (*known)
        return BRC_OK;
    array_check_free(c->array);
    c->array = NULL;
    BRC_TRY(array_check_new(&c->check, path, entry, row, &c->array, &one, err));
    c->array->key = key;
    brc_closure_context(c->walk, &c->array->context);
    *bad |= one;
    return BRC_OK;
}

/* Ends an array after everything under it was walked: checks that its chunks are within its
 * grid. */
static int end_array(brc_tree_check *c, const brc_oid *map, int kind, const uint64_t *extent,
                     int *bad, brc_error *err)
{
    brc_array_check *a = c->array;
    uint64_t last[BRC_MAX_NDIM] = {0};
    for (int i = 0; a->open && i < a->meta->ndim; i++) {
        if (extent[i] == 0)
            return BRC_OK;
        last[i] = extent[i] - 1;
    }
    if (!a->open || brc_meta_has_place(a->meta, last))
        return BRC_OK;
    *bad = 1;
    return brc_check_fault(&c->check, map, kind, a->path, "map",
                           "a chunk in it is outside the array's grid", err);
}

static int remember_array(brc_tree_check *c, int bad, const brc_node_total *total, brc_error *err)
{
    void *value;
    if (brc_oid_is_zero(&c->array->key)) /* its uncommitted chunks are checked separately */
        return BRC_OK;
    BRC_TRY(brc_id_table_add(&c->arrays, &c->array->key, &value, err));
    array_memo *memo = value;
    memo->looks = bad ? memo->looks + 1 : 0;
    memo->total = *total;
    return BRC_OK;
}

static int step_entry(brc_tree_check *c, const brc_node_step *at, brc_error *err)
{
    node_level *in = level_at(c, at->level);
    int bad = 0, known;
    brc_node_total one = { .arrays = at->entry.kind == BRC_ARRAY,
                           .groups = at->entry.kind == BRC_GROUP };
    brc_node_total under = { 0 };
    BRC_TRY(check_entry(c, at->path, &at->entry, 0, &bad, &known, &under, err));
    in->bad |= bad;
    count_in(in, &one);
    size_t bytes = path_bytes(at->path_len) - path_bytes(in->path_len);
    if (at->kind != 0 && in->height < 1)
        in->height = 1;
    if (at->kind != 0 && in->longest < bytes)
        in->longest = bytes;
    if (at->entry.kind == BRC_ARRAY && known) {
        count_in(in, &under);
        brc_closure_skip(c->walk);
    } else if (at->entry.kind == BRC_ARRAY && brc_oid_is_zero(&at->entry.map)) {
        BRC_TRY(remember_array(c, bad, &under, err));
    }
    return BRC_OK;
}

/* ---- the walk -------------------------------- */

/* Handles a step that failed because of damage, in the node or in what the node above says about
 * it. */
static int step_failed(brc_tree_check *c, const brc_node_step *at, const brc_error *found,
                       brc_error *err)
{
    char hex[65], message[sizeof(found->message) + 64];
    node_level *in = level_at(c, at->what == BRC_AT_NODE ? at->level : at->level + 1);
    in->bad = 1;
    if (at->what != BRC_AT_NODE || at->claim == NULL)
        return brc_check_fault(&c->check, &at->id, BRC_KIND_NODE, path_of(at), part_of(at),
                               found->message, err);
    if (brc_faults_find(c->check.faults, &at->id) != NULL)
        return BRC_OK; /* it was reported */
    snprintf(message, sizeof(message), "map node %.8s under it: %s", brc_oid_format(hex, &at->id),
             found->message);
    return brc_check_fault(&c->check, &in->id, BRC_KIND_NODE, path_of(at), part_of(at), message,
                           err);
}

/* Handles the end of an array's map. */
static int after_array(brc_tree_check *c, const brc_node_step *at, brc_error *err)
{
    node_level *in = level_at(c, at->level);
    int bad = in->bad | (c->array->bad & 1);
    BRC_TRY(end_array(c, &at->id, BRC_KIND_NODE, in->extent, &bad, err));
    in->bad |= bad | c->array->bad >> 1;
    brc_node_total total = in->total; /* it includes the totals of the map */
    if (!brc_node_total_subtract(&total, &c->array->before))
        return brc_fail(err, BRC_EINTERNAL, "totals that shrink");
    return remember_array(c, bad, &total, err);
}

/* Handles a step of the walk. Sets *behind to 1 if nothing more of the step's node follows. */
static int tree_step(brc_tree_check *c, const brc_closure_step *at, int *behind, brc_error *err)
{
    switch (at->what) {
    case BRC_AT_NODE:
        return step_node(c, at, behind, err);
    case BRC_AT_ENTRY:
        return step_entry(c, &at->node, err);
    case BRC_AT_CHUNK:
        return step_chunk(c, &at->node, err);
    default:
        *behind = 1;
        return step_leave(c, at, err);
    }
}

/* Begins a snapshot or entry, and separates its faults from earlier ones. */
static int begin_tree(brc_tree_check *c, brc_error *err)
{
    BRC_TRY(brc_grow_array(&c->levels, &c->levels_cap, 1, sizeof(node_level), err));
    memset(c->levels, 0, sizeof(node_level));
    return BRC_OK;
}

/* Returns 1 with a step, or 0 at the end. */
static int check_step(brc_tree_check *c, brc_closure_step *at, brc_error *err)
{
    brc_error found = BRC_ERROR_INIT;
    brc_store_breathe(c->check.store);
    int behind = 0, rc = brc_closure_next(c->walk, at, &found);
    if (rc < 0 && (rc != BRC_ECORRUPT || at->what == BRC_AT_COMMIT)) {
        if (err != NULL)
            brc_error_copy(err, &found);
        return rc;
    }
    if (rc == 0 || at->what == BRC_AT_COMMIT)
        return rc;
    if (at->what == BRC_AT_VERSION)
        rc = begin_tree(c, err);
    else if (rc > 0)
        rc = tree_step(c, at, &behind, err);
    else {
        rc = step_failed(c, &at->node, &found, err);
        behind = at->what == BRC_AT_NODE;
    }
    if (rc == BRC_OK && behind && at->node.kind == BRC_ARRAY && at->node.is_root)
        rc = after_array(c, &at->node, err);
    return rc < 0 ? rc : 1;
}

int brc_tree_check_next(brc_tree_check *c, brc_closure_step *at, brc_error *err)
{
    int rc;
    do
        rc = check_step(c, at, err);
    while (rc > 0 && at->what != BRC_AT_COMMIT && at->what != BRC_AT_VERSION);
    if (rc < 0)
        brc_closure_drop(c->walk);
    return rc;
}

int brc_tree_check_snapshot(brc_tree_check *c, const brc_oid *root, brc_error *err)
{
    brc_closure_step at;
    BRC_TRY(begin_tree(c, err));
    BRC_TRY(brc_closure_snapshot(c->walk, root, err));
    return brc_tree_check_next(c, &at, err);
}

/* ---- drafts -------------------------------- */

typedef struct draft_array {
    brc_tree_check *c;
    const brc_oid *doc;
} draft_array;

static int draft_chunk(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    const draft_array *d = ctx;
    brc_oid id;
    memset(&id, 0, sizeof(id));
    if (value.len == brc_store_id_len(d->c->check.store)) /* else it stays without an id */
        memcpy(id.bytes, value.data, value.len);
    return add_chunk(d->c, level_at(d->c, 0), d->doc, BRC_KIND_DOCUMENT, key, &id, err);
}

/* Handles a dropped chunk, of which only the key is left. */
static int draft_row_key(void *ctx, const uint8_t *key, size_t key_len, const brc_oid *id,
                         brc_error *err)
{
    const draft_array *d = ctx;
    uint64_t index[BRC_MAX_NDIM];
    const char *why = key_fault(d->c, brc_chunk_key_decode(key, key_len, index), 1);
    return why == NULL || id != NULL ? BRC_OK
                                     : brc_check_fault(&d->c->check, d->doc, BRC_KIND_DOCUMENT,
                                                       d->c->array->path, "map", why, err);
}

/* Checks the chunks as the draft has them; chunks that its rows hide are not checked. */
static int check_draft_chunks(brc_tree_check *c, const brc_entry *entry, int64_t row,
                              brc_error *err)
{
    draft_array d = { c, &entry->doc };
    node_level *level = level_at(c, 0);
    brc_draft_stack rows;
    brc_oid map;
    int bad = 0;
    memset(level, 0, sizeof(*level));
    brc_store_scratch_begin(c->check.store);
    int rc = brc_draft_stack_get(c->check.store, row, &rows, err);
    if (rc == BRC_OK)
        rc = brc_draft_chunk_each(c->check.store, &rows, draft_row_key, &d, err);
    if (rc == BRC_OK)
        rc = brc_fold_chunks(c->check.store, entry, &rows, &map, err);
    if (rc == BRC_OK)
        rc = brc_map_each(c->check.store, &map, draft_chunk, &d, err);
    brc_store_scratch_end(c->check.store);
    if (rc == BRC_OK)
        rc = flush_chunks(c, level_at(c, 0), err);
    return rc < 0 ? rc : end_array(c, &entry->doc, BRC_KIND_DOCUMENT, level_at(c, 0)->extent, &bad,
                                   err);
}

int brc_tree_check_entry(brc_tree_check *c, const char *path, const brc_entry *entry, int64_t row,
                         brc_error *err)
{
    int bad = 0, known, open = 0;
    brc_node_total under;
    brc_closure_step at;
    BRC_TRY(begin_tree(c, err));
    BRC_TRY(check_entry(c, path, entry, row, &bad, &known, &under, err));
    if (entry->kind == BRC_ARRAY) { /* only the nodes */
        open = c->array->open;
        c->array->open = 0;
    }
    BRC_TRY(brc_closure_entry(c->walk, path, entry, err));
    BRC_TRY(brc_tree_check_next(c, &at, err));
    if (entry->kind != BRC_ARRAY || level_at(c, 0)->bad)
        return BRC_OK;
    c->array->open = open;
    return check_draft_chunks(c, entry, row, err);
}
