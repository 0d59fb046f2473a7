/*
 * Writing arrays: the public functions.
 *
 * A write whose chunks fit into one batch is prepared without a lock and stored in one transaction
 * (flow/write_together.c). A larger one is a bulk write. Within brc_begin() and brc_end(), and
 * within a bulk write of the caller's, it is a part of that.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "array_turn.h"
#include "bulk_write.h"
#include "region_write.h"
#include "span_table.h"

/* ---- within one transaction -------------------------------- */

typedef struct write_call {
    const brc_io *io;
    brc_region_write *writes;
    size_t n;
    size_t begun;   /* arrays whose change has begun     */
    size_t reading; /* ... or that are being read        */
    brc_task task;  /* of a small write                  */
    int is_task;
} write_call;

static brc_array *array_at(const write_call *c, size_t i)
{
    return brc_io_at(c->io, i)->array;
}

static int begin_arrays(write_call *c, brc_error *err)
{
    int rc = BRC_OK;
    while (c->begun < c->n && rc == BRC_OK) {
        rc = brc_array_begin(array_at(c, c->begun), err);
        c->begun += rc == BRC_OK;
    }
    return rc;
}

static int end_arrays(write_call *c, int rc, brc_error *err)
{
    while (c->begun > 0)
        rc = brc_array_end(array_at(c, --c->begun), rc, err);
    return rc;
}

static void end_writes(write_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        brc_region_end(&c->writes[i].r);
}

static int describe_all(write_call *c, brc_error *err)
{
    end_writes(c);
    for (size_t i = 0; i < c->n; i++) {
        memset(&c->writes[i], 0, sizeof(c->writes[i]));
        BRC_TRY(brc_region_write_of(&c->writes[i], brc_io_at(c->io, i), NULL, err));
    }
    return BRC_OK;
}

static uint64_t bytes_of_writes(const write_call *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n; i++)
        if (!brc_add_u64(bytes, brc_region_bytes(c->writes[i].a, &c->writes[i].r), &bytes))
            return UINT64_MAX;
    return bytes;
}

static int write_told(write_call *c, brc_error *err)
{
    breccia *repo = array_at(c, 0)->session->repo;
    brc_task task = brc_task_begin(repo, "write", bytes_of_writes(c));
    int rc = brc_regions_write(c->writes, c->n, NULL, err);
    brc_task_end(repo, &task, rc);
    return rc;
}

static int is_small(const write_call *c)
{
    uint64_t chunks = 0, sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        const brc_region_write *rw = &c->writes[i];
        const uint64_t bytes = brc_chunks_memory(rw->a, rw->r.nchunks);
        if (!brc_add_u64(sum, bytes, &sum) || !brc_add_u64(chunks, rw->r.nchunks, &chunks))
            return 0;
    }
    return chunks == 1 || sum <= BRC_SMALL_BYTES;
}

/* All arrays are begun before any is described: beginning one may bring another up to date. */
static int write_locked(write_call *c, brc_error *err)
{
    int rc = begin_arrays(c, err);
    if (rc == BRC_OK)
        rc = describe_all(c, err);
    if (rc == BRC_OK && !is_small(c)) /* in a bulk write others get in, while a batch is made */
        rc = brc_store_rest(brc_array_store(array_at(c, 0)), 1, err);
    if (rc == BRC_OK)
        rc = write_told(c, err);
    return end_arrays(c, rc, err);
}

/* ---- a small write: nothing is locked until it is stored -------------------------------- */

/* A backend that has no number yet is given one within a transaction. */
static int has_backend(brc_array *a, brc_error *err)
{
    int64_t backend;
    BRC_TRY(brc_array_find_backend(a, &backend, err));
    return backend >= 0;
}

static int begin_reading(write_call *c, brc_error *err)
{
    int rc = BRC_OK;
    while (c->reading < c->n && rc == BRC_OK) {
        rc = brc_array_begin_read(array_at(c, c->reading), err);
        c->reading += rc == BRC_OK;
    }
    return rc;
}

static void end_reading(write_call *c)
{
    while (c->reading > 0)
        brc_array_end_read(array_at(c, --c->reading));
}

/* Whether the array is the one that was described. What loose keys say of its chunks may have
 * changed with the draft. */
static int is_as_described(const brc_region_write *rw)
{
    const brc_array *a = rw->a;
    return brc_oid_cmp(&a->meta_doc, &rw->doc) == 0 &&
           brc_oid_cmp(&a->storage, &rw->storage) == 0 &&
           (!a->has_keys || a->version == rw->version);
}

static int begin_turn(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    brc_store *store = brc_array_store(array_at(c, 0));
    int rc = BRC_OK;
    end_reading(c);
    BRC_TRY(brc_store_begin(store, err));
    for (size_t i = 0; i < c->n && rc == BRC_OK; i++) {
        rc = brc_array_follow(array_at(c, i), err);
        if (rc == BRC_OK && !is_as_described(&c->writes[i]))
            rc = BRC_WRITE_ANEW;
    }
    if (rc != BRC_OK)
        (void)!brc_store_end(store, 0, NULL);
    return rc;
}

static void undo_turn(void *ctx)
{
    const write_call *c = ctx;
    (void)!brc_store_end(brc_array_store(array_at(c, 0)), 0, NULL);
}

/* The arrays' own changes are in the turn's transaction, which ends with them. */
static int enter_turn(void *ctx, brc_error *err)
{
    write_call *c = ctx;
    int rc = begin_arrays(c, err);
    if (rc == BRC_OK)
        return brc_store_end(brc_array_store(array_at(c, 0)), 1, err);
    undo_turn(c);
    return rc;
}

static int read_and_write(write_call *c, brc_error *err)
{
    const brc_write_turn turn = {c, begin_turn, undo_turn, enter_turn};
    for (size_t i = 0; i < c->n; i++)
        BRC_TRY(brc_session_can_change(array_at(c, i)->session, err));
    BRC_TRY(brc_store_writable(brc_array_store(array_at(c, 0)), err));
    BRC_TRY(begin_reading(c, err));
    BRC_TRY(describe_all(c, err));
    for (size_t i = 0; i < c->n; i++) {
        brc_region_write *rw = &c->writes[i];
        rw->doc = rw->a->meta_doc;
        rw->storage = rw->a->storage;
        rw->version = rw->a->version;
        int rc = has_backend(rw->a, err);
        if (rc <= 0)
            return rc < 0 ? rc : BRC_WRITE_MUCH;
    }
    if (!is_small(c))
        return BRC_WRITE_MUCH;
    c->task = brc_task_begin(array_at(c, 0)->session->repo, "write", bytes_of_writes(c));
    c->is_task = 1;
    return brc_regions_write(c->writes, c->n, &turn, err);
}

/* May give BRC_WRITE_ANEW or BRC_WRITE_MUCH. */
static int write_small(write_call *c, brc_error *err)
{
    int rc = read_and_write(c, err);
    end_reading(c);
    if (c->begun > 0)
        rc = end_arrays(c, rc, err);
    if (c->is_task) /* whoever listens may take long: the lock is free again */
        brc_task_end(array_at(c, 0)->session->repo, &c->task, rc > 0 ? BRC_ESTALE : rc);
    c->is_task = 0;
    return rc;
}

/* ---- which of them -------------------------------- */

/* Times that a write which is in others' way is made anew before it locks them out. */
#define WRITE_TRIES 3

static int is_one_session(const write_call *c)
{
    int is = 1;
    for (size_t i = 1; i < c->n; i++)
        is &= array_at(c, i)->session == array_at(c, 0)->session;
    return is;
}

/* is_last: where it meets others' changes, that is an error, and its draft stays. */
static int write_bulk(write_call *c, int is_last, brc_error *err)
{
    brc_array *a = array_at(c, 0);
    BRC_TRY(brc_bulk_start(a->session, err));
    if (!is_last)
        brc_bulk_drops(a->session);
    int rc = write_locked(c, err), ended = brc_array_bulk_end(a, rc, err);
    return rc == BRC_OK && !is_last && (ended == BRC_ECONFLICT || ended == BRC_ESTALE)
               ? BRC_WRITE_ANEW
               : ended;
}

static int write_all(write_call *c, brc_error *err)
{
    brc_store *store = brc_array_store(array_at(c, 0));
    if (brc_store_in_write(store) || brc_store_in_bulk(store))
        return write_locked(c, err);
    for (int tries = 1;; tries++) {
        int rc = write_small(c, err);
        if (rc == BRC_WRITE_MUCH && is_one_session(c))
            rc = write_bulk(c, tries == WRITE_TRIES && bytes_of_writes(c) > BRC_TURN_BYTES, err);
        if (rc <= 0)
            return rc;
        if (rc == BRC_WRITE_MUCH || tries == WRITE_TRIES)
            return write_locked(c, err);
    }
}

int brc_write_batch(const brc_io *io, size_t n, brc_error *err)
{
    brc_region_write one = {0};
    void *p = &one;
    if (n == 0)
        return BRC_OK;
    BRC_TRY(brc_io_check(io, n, err));
    if (n > 1)
        BRC_TRY(brc_new_array(&p, n, sizeof(brc_region_write), err));
    write_call c = {.io = io, .writes = p, .n = n};
    int rc = write_all(&c, err);
    end_writes(&c);
    if (n > 1)
        free(p);
    return rc;
}

int brc_array_write(brc_array *a, const brc_sel *sel, const void *src, size_t len, brc_error *err)
{
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)src, .len = len};
    brc_io io = {sizeof(io), a, sel, &buffer, NULL};
    return brc_write_batch(&io, 1, err);
}

int brc_array_put(brc_array *a, const brc_at *at, const brc_buffer *src, brc_error *err)
{
    brc_io io = {sizeof(io), a, NULL, src, at};
    return brc_write_batch(&io, 1, err);
}

int brc_array_fill(brc_array *a, const brc_sel *sel, const void *element, brc_error *err)
{
    static const int64_t still[BRC_MAX_NDIM];
    size_t len = a->info.item_size; /* 0: the element carries its own length */
    if (len == 0)
        len = 4 + (size_t)brc_get_u32le(element);
    brc_buffer buffer = {.size = sizeof(buffer), .data = (void *)(uintptr_t)element, .len = len,
                         .strides = still};
    brc_io io = {sizeof(io), a, sel, &buffer, NULL};
    return brc_write_batch(&io, 1, err);
}
