/* Every object by itself, on the pool; one at fault does not stop the others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../flow/read.h"
#include "../tree/map.h"
#include "fsck.h"

#define PAGE 1024

typedef struct object_checker {
    breccia *repo;
    int64_t behind;
    int no_decode;
    brc_faults *faults;
    brc_oid after;  /* the last row that was listed */
    uint64_t checked;
    uint64_t unreachable; /* chunks in backends that this build lacks             */
    brc_error lacks;      /* the first of them                                    */
    brc_object rows[PAGE];
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
        return brc_fail(err, BRC_ECORRUPT, "its content does not match its id");
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

/* item->number says how much is checked. */
enum { CHECK_STORED, CHECK_ALL };

/* 1 if its bytes can be asked for. */
static int is_reachable(object_checker *c, const brc_object *o)
{
    brc_error why = BRC_ERROR_INIT;
    brc_store_backend *b;
    if (o->backend == 0 ||
        brc_backend_use(c->repo->store, o->backend, &b, &why) != BRC_EUNSUPPORTED)
        return 1;
    if (c->unreachable++ == 0)
        c->lacks = why;
    return 0;
}

/* One line for all of them: they are not damaged as far as anybody here knows. */
static int report_unreachable(const object_checker *c, brc_error *err)
{
    brc_oid none;
    brc_error found = BRC_ERROR_INIT;
    if (c->unreachable == 0)
        return BRC_OK;
    memset(&none, 0, sizeof(none));
    (void)brc_fail(&found, BRC_EUNSUPPORTED,
                   "the stored bytes of %" PRIu64 " chunks were not checked: %s", c->unreachable,
                   c->lacks.message);
    return brc_faults_add(c->faults, &none, 0, 0, found.message, NULL, err);
}

/* The next rows of the index. Those that contradict themselves are reported at once. */
static int checker_list(void *ctx, brc_read_item *items, size_t cap, size_t *n, brc_error *err)
{
    object_checker *c = ctx;
    size_t rows;
    BRC_TRY(brc_objects_page(c->repo->store, &c->after, c->rows, cap < PAGE ? cap : PAGE, &rows,
                             err));
    for (size_t i = 0; i < rows; i++) {
        c->after = c->rows[i].id;
        if (c->behind > 0 && (c->rows[i].backend != 0 || c->rows[i].place <= c->behind))
            continue;
        c->checked++;
        if (c->rows[i].found && is_reachable(c, &c->rows[i]))
            items[(*n)++].object = c->rows[i];
        else if (!c->rows[i].found)
            BRC_TRY(brc_faults_add(c->faults, &c->rows[i].id, c->rows[i].kind, 0,
                                   "its row in the index contradicts itself", NULL, err));
    }
    return rows > 0 ? BRC_READ_MORE : BRC_OK;
}

static int checker_passed(void *ctx, const brc_read_item *item, brc_error *err)
{
    const object_checker *c = ctx;
    return brc_task_step(c->repo, item != NULL ? item->object.size : 0, err);
}

/* Objects of a build with more codecs than this one are checked as far as possible. */
static int checker_open(void *ctx, brc_read_item *item, brc_error *err)
{
    const object_checker *c = ctx;
    const brc_object *o = &item->object;
    brc_error why = BRC_ERROR_INIT;
    BRC_TRY(brc_object_check_plain(c->repo->store, o, err));
    item->number = CHECK_STORED;
    if (!c->no_decode || o->kind != BRC_KIND_CHUNK) {
        int rc = brc_encoding_chain(c->repo->store, o->encoding, &item->chain, &why);
        if (rc < 0 && rc != BRC_EUNSUPPORTED) {
            if (err != NULL)
                brc_error_copy(err, &why);
            return rc;
        }
        item->number = rc == BRC_OK ? CHECK_ALL : CHECK_STORED;
    }
    if (item->number == CHECK_STORED) {
        item->len = (size_t)o->stored;
        return BRC_OK;
    }
    uint64_t len = item->chain != NULL ? brc_chain_decoded_len(item->chain) : o->stored;
    item->varies = len == BRC_LEN_VARIES; /* then no memory is reserved for what it claims */
    if (len != o->size && !item->varies)
        return brc_fail(err, BRC_ECORRUPT, "its encoding does not decode to its length");
    return BRC_OK;
}

static int checker_place(void *ctx, brc_read_item *item, const uint8_t *data, brc_scratch *scratch,
                         brc_error *err)
{
    (void)scratch;
    if (item->number != CHECK_ALL)
        return BRC_OK;
    if (item->len != item->object.size)
        return brc_fail(err, BRC_ECORRUPT, "it does not decode to the length that its row gives");
    return check_content(ctx, &item->object, data, err);
}

static int checker_failed(void *ctx, const brc_read_item *item, int rc, const brc_error *why,
                          brc_error *err)
{
    const object_checker *c = ctx;
    if (rc == BRC_ESTALE) /* removed since it was listed: that is no fault */
        return BRC_OK;
    const int missing =
        why->detail == BRC_ENOTFOUND && strcmp(why->source, BRC_BACKEND_SOURCE) == 0;
    return brc_faults_add(c->faults, &item->object.id, item->object.kind, missing, why->message,
                          NULL, err);
}

int brc_check_objects(breccia *repo, int64_t after, int no_decode, brc_faults *faults,
                      uint64_t *checked, brc_error *err)
{
    void *p;
    brc_stats stats = BRC_STATS_INIT;
    *checked = 0;
    BRC_TRY(brc_store_totals(repo->store, &stats, err));
    BRC_TRY(brc_new(&p, sizeof(object_checker), err));
    object_checker *c = p;
    c->repo = repo;
    c->behind = after;
    c->no_decode = no_decode;
    c->faults = faults;
    brc_read_ops ops = {.ctx = c,
                        .list = checker_list,
                        .open = checker_open,
                        .place = checker_place,
                        .passed = checker_passed,
                        .failed = checker_failed};
    brc_task task = brc_task_begin(repo, "check", stats.logical_bytes);
    int rc = brc_flow_read(&repo->pipe, repo->store, &ops, err);
    brc_task_end(repo, &task, rc);
    if (rc == BRC_OK)
        rc = report_unreachable(c, err);
    *checked = c->checked;
    free(c);
    return rc;
}
