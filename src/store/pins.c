/*
 * Versions that readers have open: locks on bytes far behind the file's end, one a commit, whose
 * number is the beginning of its id. A lock needs no write, may be taken by who may only read, and
 * goes with its process. A collection of garbage asks which there are, in each transaction.
 *
 * It cannot miss one. Its row is in the file before it asks the first time. A reader takes the
 * lock, and then reads: if there is no row, every question comes behind his lock; if there is, he
 * waits for the transaction that may have asked before, by one of his own, and looks whether the
 * commit is still there.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "../base/hash.h"
#include "collect.h"
#include "db.h"
#include "file_lock.h"

/* 2^62, and 56 bits of an id behind it: no file is so long. */
#define PINS_AT (INT64_C(1) << 62)
#define PINS_LEN (INT64_C(1) << 56)
enum { ID_BYTES = 7 };

static int64_t pin_byte(const brc_oid *id)
{
    int64_t n = 0;
    for (int i = 0; i < ID_BYTES; i++)
        n = n << 8 | id->bytes[i];
    return PINS_AT + n;
}

/* ---- readers -------------------------------- */

static brc_pin *pin_find(brc_store *store, int64_t at)
{
    brc_pin *pins = store->pins.items;
    for (size_t i = 0; i < store->pins.n; i++)
        if (pins[i].at == at)
            return &pins[i];
    return NULL;
}

int brc_beside_lock(brc_store *store)
{
    if (!store->beside.is_open) {
        store->beside.is_open = 1;
        brc_vfs_second_lock(store->vfs, &store->beside.lock);
    }
    return store->beside.lock.fd;
}

/* 1: it is taken; 0: there are no such locks here, and a version lasts as long as something else
 * keeps it. */
static int pin_lock(brc_store *store, const brc_oid *id, brc_error *err)
{
    const int64_t at = pin_byte(id);
    brc_pin *pin = pin_find(store, at);
    void *items = store->pins.items;
    if (pin != NULL) {
        pin->n++;
        return 1;
    }
    if (brc_beside_lock(store) < 0)
        return 0;
    int rc = brc_grow_array(&items, &store->pins.cap, store->pins.n + 1, sizeof(brc_pin), err);
    store->pins.items = items;
    BRC_TRY(rc);
    if (brc_bytes_lock(store->beside.lock.fd, F_RDLCK, (off_t)at, 1, SQLITE_IOERR_LOCK) !=
        SQLITE_OK)
        return 0;
    store->pins.items[store->pins.n++] = (brc_pin){at, 1};
    return 1;
}

static int look_with_lock(brc_store *store, const brc_oid *id, int *busy, brc_error *err)
{
    int rc = brc_store_begin(store, err);
    *busy = rc == BRC_EBUSY;
    BRC_TRY(rc);
    rc = brc_gc_commit_is_there(store, id, err);
    int end = brc_store_end(store, 0, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

static int look_to_read(brc_store *store, const brc_oid *id, int64_t *run, brc_error *err)
{
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_gc_commit_is_there(store, id, err);
    if (rc == BRC_OK)
        rc = brc_gc_running(store, run, err);
    brc_store_end_read(store);
    return rc;
}

/* Whoever has had the lock for all of the time to wait is no collection, whose steps are short. */
static int look_behind_lock(brc_store *store, const brc_oid *id, brc_error *err)
{
    int64_t run = 0;
    int busy = 0;
    BRC_TRY(look_to_read(store, id, &run, err));
    if (run == 0 || store->readonly)
        return BRC_OK;
    int rc = look_with_lock(store, id, &busy, err);
    return busy ? look_to_read(store, id, &run, err) : rc;
}

int brc_pin_take(brc_store *store, const brc_oid *id, brc_error *err)
{
    int rc = pin_lock(store, id, err);
    if (rc <= 0 || store->write_depth > 0 || store->bulk.on) /* then nobody collects now */
        return rc < 0 ? rc : BRC_OK;
    rc = look_behind_lock(store, id, err);
    if (rc < 0)
        brc_pin_let_go(store, id);
    return rc;
}

void brc_pin_let_go(brc_store *store, const brc_oid *id)
{
    brc_pin *pin = pin_find(store, pin_byte(id));
    if (pin == NULL || --pin->n > 0 || brc_store_is_forked(store))
        return;
    (void)!brc_bytes_lock(store->beside.lock.fd, F_UNLCK, (off_t)pin->at, 1, SQLITE_IOERR_UNLOCK);
    *pin = store->pins.items[--store->pins.n];
}

void brc_pins_close(brc_store *store)
{
    if (store->beside.is_open && brc_store_is_forked(store))
        brc_file_lock_leave(&store->beside.lock);
    else if (store->beside.is_open)
        brc_file_lock_close(&store->beside.lock);
    free(store->pins.items);
}

/* ---- a collection -------------------------------- */

typedef struct pin_range {
    int64_t at, len;
} pin_range;

/* Locks of others, one by one: the system says one of a range, whichever it likes. */
static int each_pin(brc_store *store, int (*each)(void *ctx, int64_t at, brc_error *err), void *ctx,
                    brc_error *err)
{
    void *todo = NULL;
    size_t cap = 0, n = 1;
    int rc = brc_grow_array(&todo, &cap, 1, sizeof(pin_range), err);
    if (rc == BRC_OK)
        ((pin_range *)todo)[0] = (pin_range){PINS_AT, PINS_LEN};
    while (rc == BRC_OK && n > 0) {
        const pin_range range = ((pin_range *)todo)[--n];
        pin_range got;
        if (range.len <= 0 ||
            !brc_vfs_find_lock(store->vfs, range.at, range.len, &got.at, &got.len))
            continue;
        if (got.len > 16) { /* no reader's: ids are not so close */
            rc = brc_fail(err, BRC_EBUSY,
                          "%s: another process has locked all of its versions: end it first",
                          store->path);
            break;
        }
        for (int64_t i = 0; i < got.len && rc == BRC_OK; i++)
            rc = each(ctx, got.at + i, err);
        if (rc == BRC_OK)
            rc = brc_grow_array(&todo, &cap, n + 2, sizeof(pin_range), err);
        if (rc < 0)
            break;
        const int64_t behind = got.at + got.len;
        ((pin_range *)todo)[n++] = (pin_range){range.at, got.at - range.at};
        ((pin_range *)todo)[n++] = (pin_range){behind, range.at + range.len - behind};
    }
    free(todo);
    return rc;
}

static int add_to_digest(void *ctx, int64_t at, brc_error *err)
{
    (void)err;
    *(uint64_t *)ctx += brc_hash_bytes(&at, sizeof(at));
    return BRC_OK;
}

int brc_pins_digest(brc_store *store, uint64_t *out, brc_error *err)
{
    *out = 0;
    return each_pin(store, add_to_digest, out, err);
}

typedef struct pin_reader {
    brc_store *store;
    int (*each)(void *ctx, const brc_oid *commit, brc_error *err);
    void *ctx;
} pin_reader;

/* All commits whose ids begin so: one, but for chance. */
static int pinned_commits(void *ctx, int64_t at, brc_error *err)
{
    const pin_reader *r = ctx;
    brc_oid low, high, id;
    sqlite3_stmt *st;
    int rc;
    memset(&low, 0, sizeof(low));
    memset(&high, 0xff, sizeof(high));
    for (int i = ID_BYTES - 1; i >= 0; i--, at >>= 8)
        low.bytes[i] = high.bytes[i] = (uint8_t)at;
    BRC_TRY(brc_stmt(r->store, "SELECT id FROM object WHERE id>=?1 AND id<=?2 AND kind=4", &st,
                     err));
    brc_bind_id(r->store, st, 1, &low);
    brc_bind_id(r->store, st, 2, &high);
    while ((rc = brc_step(r->store, st, err)) > 0) {
        rc = brc_column_id(r->store, st, 0, &id, err);
        if (rc == BRC_OK)
            rc = r->each(r->ctx, &id, err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

int brc_pins_each(brc_store *store, int (*each)(void *ctx, const brc_oid *commit, brc_error *err),
                  void *ctx, brc_error *err)
{
    pin_reader r = {store, each, ctx};
    return each_pin(store, pinned_commits, &r, err);
}
