/* Every object by itself: in pages, on the pool; a page with a fault is gone
 * through again one by one, so that each fault is told. */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../codec/read_pipeline.h"
#include "../tree/map.h"
#include "fsck.h"

#define PAGE 1024

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
    memset(faults, 0, sizeof(*faults));
}

brc_fault *brc_faults_find(const brc_faults *faults, const brc_oid *id)
{
    brc_fault *items = faults->items;
    for (size_t i = 0; i < faults->n; i++)
        if (items[i].kind != 0 && brc_oid_cmp(&items[i].id, id) == 0)
            return &items[i];
    return NULL;
}

int brc_faults_add(brc_faults *faults, const brc_oid *id, int kind, int missing,
                   const char *message, brc_fault **out, brc_error *err)
{
    BRC_TRY(brc_grow_array(&faults->items, &faults->cap, faults->n + 1, sizeof(brc_fault), err));
    brc_fault *f = &((brc_fault *)faults->items)[faults->n];
    memset(f, 0, sizeof(*f));
    f->id = *id;
    f->kind = kind;
    f->missing = missing;
    BRC_TRY(brc_dup(&f->message, message, err));
    faults->n++;
    if (out != NULL)
        *out = f;
    return BRC_OK;
}

int brc_fault_used_by(brc_fault *fault, const char *text, brc_error *err)
{
    char *copy;
    for (size_t i = 0; i < fault->nused_by; i++)
        if (strcmp(((char **)fault->used_by)[i], text) == 0)
            return BRC_OK;
    BRC_TRY(brc_grow_array(&fault->used_by, &fault->used_by_cap, fault->nused_by + 1,
                           sizeof(char *), err));
    BRC_TRY(brc_dup(&copy, text, err));
    ((char **)fault->used_by)[fault->nused_by++] = copy;
    return BRC_OK;
}

typedef struct object_checker {
    breccia *repo;
    int no_decode;
    brc_object objects[PAGE];
    brc_object *sorted[PAGE];
    uint8_t unknown[PAGE]; /* stored by a build with more codecs than this one */
    size_t rows;           /* of the page, in objects[] ...                      */
    size_t n, at;          /* ... and those to check, in sorted[]                */
} object_checker;

static int no_child(void *ctx, const brc_oid *id, brc_error *err)
{
    (void)ctx;
    (void)id;
    (void)err;
    return BRC_OK;
}

static int no_item(void *ctx, brc_span key, brc_span value, brc_error *err)
{
    (void)ctx;
    (void)key;
    (void)value;
    (void)err;
    return BRC_OK;
}

/* What the canonical bytes of an object must be like. */
static int check_content(const object_checker *c, const brc_object *o, const uint8_t *data,
                         brc_error *err)
{
    brc_store *store = c->repo->store;
    size_t len = (size_t)o->size;
    brc_oid id = brc_hash_object(brc_store_hash(store), o->kind, data, len);
    if (brc_oid_cmp(&id, &o->id) != 0)
        return brc_fail(err, BRC_ECORRUPT, "its content has another hash");
    if (brc_hash_guard(brc_store_secret(store), data, len) != o->guard)
        return brc_fail(err, BRC_ECORRUPT, "its guard does not match its content");
    if (o->kind == BRC_KIND_NODE)
        return brc_map_check_node((brc_span){data, len}, brc_store_id_len(store), no_child, no_item,
                                  NULL, err);
    if (o->kind == BRC_KIND_COMMIT) {
        brc_commit *commit;
        BRC_TRY(brc_commit_parse(&commit, &o->id, (brc_span){ data, len }, brc_store_id_len(store),
                                 err));
        brc_commit_free(commit);
    }
    return BRC_OK;
}

static int checker_next(void *ctx, brc_read_item *item, brc_error *err)
{
    object_checker *c = ctx;
    if (c->at == c->n)
        return 0;
    const brc_object *o = c->sorted[c->at++];
    BRC_TRY(brc_task_step(c->repo, o->size, err));
    item->number = (uint64_t)(o - c->objects);
    item->id = o->id;
    item->blob = o->blob;
    item->checksum = o->checksum;
    item->stored_len = (size_t)o->stored;
    item->len = (size_t)o->size;
    if (c->no_decode && o->kind == BRC_KIND_CHUNK) {
        item->len = item->stored_len;
        return 1;
    }
    int rc = brc_encoding_chain(c->repo->store, o->encoding, &item->chain, err);
    c->unknown[item->number] = rc == BRC_EUNSUPPORTED;
    if (rc == BRC_EUNSUPPORTED) {
        item->len = item->stored_len;
        return 1;
    }
    if (rc < 0)
        return rc;
    uint64_t len = item->chain != NULL ? brc_chain_decoded_len(item->chain) : o->size;
    if (len != o->size && len != BRC_LEN_VARIES)
        return brc_fail(err, BRC_ECORRUPT, "its encoding decodes to another length");
    return 1;
}

static int checker_fetch(void *ctx, const brc_read_item *item, uint8_t *into, brc_error *err)
{
    const object_checker *c = ctx;
    return brc_object_fetch(c->repo->store, &c->objects[item->number], into, err);
}

static int checker_check(void *ctx, const brc_read_item *item, const uint8_t *stored,
                         brc_error *err)
{
    const object_checker *c = ctx;
    return brc_object_verify(&c->objects[item->number], stored, err);
}

static int checker_place(void *ctx, const brc_read_item *item, const uint8_t *data, brc_error *err)
{
    const object_checker *c = ctx;
    const brc_object *o = &c->objects[item->number];
    if ((c->no_decode && o->kind == BRC_KIND_CHUNK) || c->unknown[item->number])
        return BRC_OK;
    return check_content(c, o, data, err);
}

static int run_checker(object_checker *c, brc_error *err)
{
    brc_read_ops ops = {c, checker_next, checker_fetch, checker_check, checker_place, NULL, NULL};
    return brc_read_pipeline(&c->repo->pipe, &ops, err);
}

/* One object at a time; what is wrong becomes a fault. */
static int check_one_by_one(object_checker *c, brc_faults *faults, brc_error *err)
{
    for (size_t i = 0; i < c->rows; i++) {
        brc_error found = BRC_ERROR_INIT;
        if (!c->objects[i].found)
            continue; /* told already */
        c->sorted[0] = &c->objects[i];
        c->n = 1;
        c->at = 0;
        int rc = run_checker(c, &found);
        if (rc == BRC_ENOMEM || rc == BRC_EINTERRUPT || rc == BRC_EBUSY || rc == BRC_EIO) {
            if (err != NULL)
                *err = found;
            return rc;
        }
        if (rc < 0)
            BRC_TRY(brc_faults_add(faults, &c->objects[i].id, c->objects[i].kind, 0, found.message,
                                   NULL, err));
    }
    return BRC_OK;
}

static int checker_blob_order(const void *x, const void *y)
{
    const brc_object *a = *(brc_object *const *)x, *b = *(brc_object *const *)y;
    return (a->blob > b->blob) - (a->blob < b->blob);
}

/* The page's objects in the order of their bytes; what has a row to go by. */
static int sort_page(object_checker *c, brc_faults *faults, brc_error *err)
{
    c->n = c->at = 0;
    for (size_t i = 0; i < c->rows; i++) {
        if (c->objects[i].found)
            c->sorted[c->n++] = &c->objects[i];
        else
            BRC_TRY(brc_faults_add(faults, &c->objects[i].id, c->objects[i].kind, 0,
                                   "its row in the index contradicts itself", NULL, err));
    }
    qsort(c->sorted, c->n, sizeof(c->sorted[0]), checker_blob_order);
    return BRC_OK;
}

int brc_check_objects(breccia *repo, int no_decode, brc_faults *faults, uint64_t *checked,
                      brc_error *err)
{
    void *p;
    brc_oid after;
    brc_stats stats;
    memset(&after, 0, sizeof(after));
    *checked = 0;
    BRC_TRY(brc_store_totals(repo->store, &stats, err));
    BRC_TRY(brc_new(&p, sizeof(object_checker), err));
    object_checker *c = p;
    c->repo = repo;
    c->no_decode = no_decode;
    int rc;
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    for (;;) {
        BRC_GO(brc_task_step(repo, 0, err));
        BRC_GO(brc_objects_page(repo->store, &after, c->objects, PAGE, &c->rows, err));
        if (c->rows == 0)
            break;
        after = c->objects[c->rows - 1].id;
        BRC_GO(sort_page(c, faults, err));
        if (run_checker(c, NULL) < 0)
            BRC_GO(check_one_by_one(c, faults, err));
        *checked += c->rows;
    }
done:
    brc_task_end(repo, &task, rc);
    free(c);
    return rc;
}
