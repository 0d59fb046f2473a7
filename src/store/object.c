/* Derived rows of chunks that are requested in an encoding in which they are not stored: their
 * length in that encoding; and of chunks whose statistics were asked for. A damaged row counts as
 * missing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "collect.h"
#include "db.h"
#include "bases.h"
#include "encoding.h"
#include "removed.h"

/* ==== encoded ================================ */

#define ENCODED_SUM "row_sum('encoded', id, encoding, length, digest)"

int brc_encoded_get(brc_store *store, const brc_oid *id, int64_t encoding, int *found,
                    uint64_t *length, uint64_t *digest, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    *found = 0;
    BRC_TRY(brc_schema_has(store, "encoded", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT length, digest FROM encoded WHERE id=?1 AND encoding=?2"
                     " AND typeof(length)='integer' AND length>=0 AND checksum IS " ENCODED_SUM,
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, encoding);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *found = 1;
    *length = (uint64_t)sqlite3_column_int64(st, 0);
    *digest = (uint64_t)sqlite3_column_int64(st, 1);
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_encoded_drop(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, "encoded", &there, err));
    return there ? brc_exec(store, "DELETE FROM encoded", err) : BRC_OK;
}

int brc_encoded_put(brc_store *store, const brc_oid *id, int64_t encoding, uint64_t length,
                    uint64_t digest, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_need(store, "encoded", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO encoded(id, encoding, length, digest, checksum)"
                     " VALUES (?1, ?2, ?3, ?4, row_sum('encoded', ?1, ?2, ?3, ?4))",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, encoding);
    sqlite3_bind_int64(st, 3, (int64_t)length);
    sqlite3_bind_int64(st, 4, (int64_t)digest);
    return brc_run(store, st, err);
}

/* ==== chunk stats ================================ */

#define CHUNK_STATS_SUM "row_sum('chunk_stats', id, form, summary)"

int brc_chunk_stats_get(brc_store *store, const brc_oid *id, uint64_t form, brc_buf *out,
                        brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    BRC_TRY(brc_schema_has(store, "chunk_stats", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT summary FROM chunk_stats WHERE id=?1 AND form=?2"
                     " AND typeof(summary)='blob' AND checksum IS " CHUNK_STATS_SUM,
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)form);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_buf_append(out, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), err);
    sqlite3_reset(st);
    return rc;
}

int brc_chunk_stats_put(brc_store *store, const brc_oid *id, uint64_t form, brc_span summary,
                        brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_schema_need(store, "chunk_stats", err));
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO chunk_stats(id, form, summary, checksum)"
                     " SELECT ?1, ?2, ?3, row_sum('chunk_stats', ?1, ?2, ?3)"
                     " WHERE EXISTS (SELECT 1 FROM object WHERE id=?1)",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)form);
    sqlite3_bind_blob64(st, 3, summary.data, summary.len, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_chunk_stats_drop(brc_store *store, brc_error *err)
{
    int there;
    BRC_TRY(brc_schema_has(store, "chunk_stats", &there, err));
    return there ? brc_exec(store, "DELETE FROM chunk_stats", err) : BRC_OK;
}

/* ==== node total ================================ */

/* Derived rows of map nodes: the totals of everything under each. */

int brc_node_total_add(brc_node_total *sum, const brc_node_total *more)
{
    return brc_add_u64(sum->arrays, more->arrays, &sum->arrays) &&
           brc_add_u64(sum->groups, more->groups, &sum->groups) &&
           brc_add_u64(sum->chunks, more->chunks, &sum->chunks) &&
           brc_add_u64(sum->size, more->size, &sum->size) &&
           brc_add_u64(sum->stored, more->stored, &sum->stored) && sum->arrays <= INT64_MAX &&
           sum->groups <= INT64_MAX && sum->chunks <= INT64_MAX && sum->size <= INT64_MAX &&
           sum->stored <= INT64_MAX;
}

int brc_node_total_subtract(brc_node_total *sum, const brc_node_total *less)
{
    if (less->arrays > sum->arrays || less->groups > sum->groups || less->chunks > sum->chunks ||
        less->size > sum->size || less->stored > sum->stored)
        return 0;
    sum->arrays -= less->arrays;
    sum->groups -= less->groups;
    sum->chunks -= less->chunks;
    sum->size -= less->size;
    sum->stored -= less->stored;
    return 1;
}

int brc_node_total_equal(const brc_node_total *a, const brc_node_total *b)
{
    return a->arrays == b->arrays && a->groups == b->groups && a->chunks == b->chunks &&
           a->size == b->size && a->stored == b->stored;
}

int brc_store_keeps_totals(const brc_store *store)
{
    return store->write_depth > 0 && !store->scratch;
}

int brc_node_total_get(brc_store *store, const brc_oid *id, int *state, brc_node_total *out,
                       brc_error *err)
{
    sqlite3_stmt *st;
    uint64_t *const columns[] = { &out->arrays, &out->groups, &out->chunks, &out->size,
                                  &out->stored };
    *state = BRC_TOTAL_NONE;
    *out = (brc_node_total){ 0 };
    BRC_TRY(brc_stmt(store,
                     "SELECT arrays, groups, chunks, size, stored FROM node_total WHERE id=?1", &st,
                     err));
    brc_bind_id(store, st, 1, id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    *state = BRC_TOTAL_FOUND;
    for (int i = 0; i < (int)(sizeof(columns) / sizeof(columns[0])); i++) {
        int64_t value = sqlite3_column_int64(st, i);
        if (sqlite3_column_type(st, i) != SQLITE_INTEGER || value < 0)
            *state = BRC_TOTAL_WRONG;
        *columns[i] = (uint64_t)value;
    }
    sqlite3_reset(st);
    return BRC_OK;
}

int brc_node_total_put(brc_store *store, const brc_oid *id, const brc_node_total *total,
                       brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO node_total(id, arrays, groups, chunks, size, stored)"
                     " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                     &st, err));
    brc_bind_id(store, st, 1, id);
    sqlite3_bind_int64(st, 2, (int64_t)total->arrays);
    sqlite3_bind_int64(st, 3, (int64_t)total->groups);
    sqlite3_bind_int64(st, 4, (int64_t)total->chunks);
    sqlite3_bind_int64(st, 5, (int64_t)total->size);
    sqlite3_bind_int64(st, 6, (int64_t)total->stored);
    store->totals_dropped = 0;
    return brc_run(store, st, err);
}

int brc_node_totals_drop(brc_store *store, brc_error *err)
{
    if (store->totals_dropped)
        return BRC_OK;
    BRC_TRY(brc_exec(store, "DELETE FROM node_total", err));
    store->totals_dropped = 1;
    return BRC_OK;
}

/* ==== object ================================ */

/* Objects: the hash index, and small objects whole. */

/* SQLite's own limit for one value: a larger claimed size cannot be true, and must not be
 * allocated. */
#define STORED_MAX 0x7fffffff

#define OBJECT_COLUMNS "kind, encoding, backend, place, offset, size, stored, checksum, guard"
enum { OBJECT_COLUMN_COUNT = 9 };

/* ---- the index -------------------------------- */

static int object_column_size(brc_store *store, sqlite3_stmt *st, int column, uint64_t *out,
                              brc_error *err)
{
    int64_t v = sqlite3_column_int64(st, column);
    if (sqlite3_column_type(st, column) != SQLITE_INTEGER || v < 0)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: an object's row has a wrong size",
                        store->path);
    *out = (uint64_t)v;
    return BRC_OK;
}

/* Returns 0 if the object lies outside of the file neither at a valid offset in a place nor under
 * its canonical name. */
static int is_place_outside(const brc_object *o)
{
    return brc_is_in_file(o->backend) || (o->place == 0 && o->offset == 0) ||
           (o->place > 0 && o->offset <= (uint64_t)INT64_MAX - o->stored);
}

/* Reads OBJECT_COLUMNS from column `at` on and checks their types and ranges: a column keeps
 * any type, and the low 32 bits of a wrong number could look like a kind. */
static int object_from_row(brc_store *store, sqlite3_stmt *st, int at, brc_object *o,
                           brc_error *err)
{
    int integers = 1;
    for (int i = 0; i < OBJECT_COLUMN_COUNT; i++)
        integers &= sqlite3_column_type(st, at + i) == SQLITE_INTEGER;
    int64_t kind = sqlite3_column_int64(st, at);
    o->encoding = sqlite3_column_int64(st, at + 1);
    o->backend = sqlite3_column_int64(st, at + 2);
    o->place = sqlite3_column_int64(st, at + 3);
    BRC_TRY(object_column_size(store, st, at + 4, &o->offset, err));
    BRC_TRY(object_column_size(store, st, at + 5, &o->size, err));
    BRC_TRY(object_column_size(store, st, at + 6, &o->stored, err));
    o->checksum = (uint64_t)sqlite3_column_int64(st, at + 7);
    o->guard = (uint64_t)sqlite3_column_int64(st, at + 8);
    o->kind = kind >= 1 && kind <= BRC_KIND_MAX ? (int)kind : 0;
    if (!integers || o->kind == 0 || o->encoding < 0 || o->stored > STORED_MAX ||
        (o->encoding == 0 && o->size != o->stored) || o->backend < 0 ||
        (!brc_is_in_file(o->backend) && o->kind != BRC_KIND_CHUNK) || !is_place_outside(o))
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: an object's row contradicts itself",
                        store->path);
    if (brc_is_in_file(o->backend))
        BRC_TRY(brc_inline_check_claim(store, o, err));
    int rc = brc_encoding_digest(store, o->encoding, &o->digest, err);
    if (rc == BRC_ECORRUPT) /* without an encoding, the checksum does not match */
        o->digest = UINT64_MAX;
    else if (rc < 0)
        return rc;
    o->found = 1;
    return BRC_OK;
}

int brc_object_place_order(const brc_object *a, const brc_object *b)
{
    if (a->backend != b->backend)
        return a->backend < b->backend ? -1 : 1;
    if (a->place != b->place)
        return a->place < b->place ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int object_find_one(brc_store *store, brc_object *o, brc_error *err)
{
    sqlite3_stmt *st;
    o->found = 0;
    BRC_TRY(brc_stmt(store, "SELECT " OBJECT_COLUMNS " FROM object WHERE id=?1", &st, err));
    brc_bind_id(store, st, 1, &o->id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = object_from_row(store, st, 0, o, err);
    sqlite3_reset(st);
    return rc;
}

static int object_order(const void *a, const void *b)
{
    const brc_object *x = *(brc_object *const *)a, *y = *(brc_object *const *)b;
    return brc_oid_cmp(&x->id, &y->id);
}

int brc_objects_find(brc_store *store, brc_object *const *objects, size_t n, brc_error *err)
{
    void *p;
    if (n == 1)
        return object_find_one(store, objects[0], err);
    /* Sorted look-ups are several times faster: neighbours share pages. */
    BRC_TRY(brc_new_array(&p, n, sizeof(*objects), err));
    brc_object **sorted = p;
    int rc = BRC_OK;
    if (n > 0)
        memcpy(sorted, objects, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), object_order);
    for (size_t i = 0; i < n && rc == BRC_OK; i++)
        rc = object_find_one(store, sorted[i], err);
    free(sorted);
    return rc;
}

int brc_objects_page(brc_store *store, const brc_oid *after, brc_object *out, size_t cap, size_t *n,
                     brc_error *err)
{
    sqlite3_stmt *st;
    *n = 0;
    BRC_TRY(brc_stmt(store,
                     "SELECT id, " OBJECT_COLUMNS " FROM object WHERE id>?1 AND typeof(id)='blob'"
                     " AND length(id)=?3 ORDER BY id LIMIT ?2",
                     &st, err));
    if (brc_oid_is_zero(after))
        sqlite3_bind_zeroblob(st, 1, 0);
    else
        brc_bind_id(store, st, 1, after);
    sqlite3_bind_int64(st, 2, (int64_t)cap);
    sqlite3_bind_int64(st, 3, (int64_t)store->id_len);
    int rc;
    while ((rc = brc_step(store, st, err)) > 0) {
        brc_object *o = &out[*n];
        memset(o, 0, sizeof(*o));
        BRC_GO(brc_column_id(store, st, 0, &o->id, err));
        rc = object_from_row(store, st, 1, o, err);
        if (rc < 0 && rc != BRC_ECORRUPT)
            break;
        (*n)++;
    }
    rc = rc < 0 && rc != BRC_ECORRUPT ? rc : BRC_OK;
done:
    sqlite3_reset(st);
    return rc;
}

/* Finds the lowest and highest ids that begin with hexadecimal digits like "1a2b3". */
static int hex_bounds(const char *hex, size_t id_len, brc_oid *low, brc_oid *high)
{
    memset(low, 0, sizeof(*low));
    memset(high, 0xff, sizeof(*high));
    for (size_t i = 0; hex[i] != '\0'; i++) {
        char c = hex[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0 || i >= 2 * id_len)
            return 0;
        int shift = i % 2 == 0 ? 4 : 0;
        low->bytes[i / 2] = (uint8_t)(low->bytes[i / 2] | digit << shift);
        high->bytes[i / 2] = (uint8_t)((high->bytes[i / 2] & ~(0xf << shift)) | digit << shift);
    }
    return 1;
}

int brc_objects_by_prefix(brc_store *store, int kind, const char *hex, brc_oid found[2], size_t *n,
                          brc_error *err)
{
    brc_oid low, high;
    sqlite3_stmt *st;
    *n = 0;
    if (!hex_bounds(hex, store->id_len, &low, &high))
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT id FROM object WHERE id BETWEEN ?1 AND ?2 AND kind=?3 LIMIT 2", &st,
                     err));
    brc_bind_id(store, st, 1, &low);
    brc_bind_id(store, st, 2, &high);
    sqlite3_bind_int(st, 3, kind);
    int rc;
    while ((rc = brc_step(store, st, err)) > 0 && *n < 2) {
        rc = brc_column_id(store, st, 0, &found[(*n)++], err);
        if (rc < 0)
            break;
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

static void add_to_total(uint64_t *sum, sqlite3_stmt *st, int column)
{
    const uint64_t n = (uint64_t)sqlite3_column_int64(st, column);
    *sum = *sum > INT64_MAX - n ? INT64_MAX : *sum + n;
}

/* Adds what of some rows lies outside of the file. Files without other backends pay nothing. */
static int add_outside(brc_store *store, const sqlite3_value *after, brc_stats *out,
                       brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    BRC_TRY(brc_schema_has(store, "backend", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "SELECT coalesce(sum(backend<>0),0), cast(total(CASE WHEN backend<>0 AND"
                     " typeof(stored)='integer' AND stored>0 THEN stored END) AS INTEGER) FROM"
                     " (SELECT backend, stored FROM object WHERE id>?1 ORDER BY id LIMIT 16384)",
                     &st, err));
    if (after == NULL)
        sqlite3_bind_double(st, 1, -HUGE_VAL);
    else if (sqlite3_bind_value(st, 1, after) != SQLITE_OK)
        return brc_nomem(err);
    const int rc = brc_step(store, st, err);
    if (rc > 0) {
        add_to_total(&out->outside_chunks, st, 0);
        add_to_total(&out->outside_bytes, st, 1);
    }
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

/* Adds the totals of some rows, so that nobody waits for all of them; *last: where the next step
 * begins. Returns 0 if there are no more rows. */
static int add_totals(brc_store *store, sqlite3_value **last, brc_stats *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(add_outside(store, *last, out, err));
    /* A row may claim any size: a sum that is too large for an integer is reported as the largest.
     * Values that are not sizes count as 0. */
    BRC_TRY(brc_stmt(store,
                     "SELECT count(*), coalesce(sum(kind=1),0),"
                     " cast(total(CASE WHEN typeof(stored)='integer' AND stored>0 THEN stored END)"
                     " AS INTEGER),"
                     " cast(total(CASE WHEN typeof(size)='integer' AND size>0 THEN size END)"
                     " AS INTEGER), max(id) FROM"
                     " (SELECT id, kind, stored, size FROM object WHERE id>?1 ORDER BY id"
                     " LIMIT 16384)",
                     &st, err));
    if (*last == NULL) /* before all numbers, texts and bytes */
        sqlite3_bind_double(st, 1, -HUGE_VAL);
    else if (sqlite3_bind_value(st, 1, *last) != SQLITE_OK)
        return brc_nomem(err);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc < 0 ? rc : brc_fail(err, BRC_EINTERNAL, "no totals");
    add_to_total(&out->objects, st, 0);
    add_to_total(&out->chunks, st, 1);
    add_to_total(&out->stored_bytes, st, 2);
    add_to_total(&out->logical_bytes, st, 3);
    const int any = sqlite3_column_int64(st, 0) > 0;
    sqlite3_value_free(*last);
    *last = any ? sqlite3_value_dup(sqlite3_column_value(st, 4)) : NULL;
    sqlite3_reset(st);
    return any && *last == NULL ? brc_nomem(err) : any;
}

int brc_store_totals(brc_store *store, brc_stats *out, brc_error *err)
{
    sqlite3_value *last = NULL;
    int rc;
    out->objects = out->chunks = out->stored_bytes = out->logical_bytes = 0;
    out->outside_chunks = out->outside_bytes = 0;
    BRC_TRY(brc_delta_totals(store, &out->deltas, &out->delta_depth, err));
    while ((rc = add_totals(store, &last, out, err)) > 0) {
        brc_store_breathe(store);
        rc = brc_store_check_interrupt(store, err);
        if (rc < 0)
            break;
    }
    sqlite3_value_free(last);
    BRC_TRY(rc);
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "SELECT (SELECT page_count FROM pragma_page_count) *"
                            " (SELECT page_size FROM pragma_page_size)",
                     &st, err));
    rc = brc_step(store, st, err);
    out->file_bytes = rc > 0 ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return rc < 0 ? rc : BRC_OK;
}

/* ---- stored bytes -------------------------------- */

int brc_object_gone(brc_store *store, const brc_object *o, const brc_error *gone, brc_error *err)
{
    if (brc_is_in_file(o->backend))
        return brc_inline_missing(store, &o->id, err);
    if (err != NULL) {
        brc_error_copy(err, gone);
        brc_error_recode(err, BRC_ECORRUPT);
        brc_error_source(err, BRC_BACKEND_SOURCE, BRC_ENOTFOUND);
    }
    return BRC_ECORRUPT;
}

/* Finds out whether the object's place has got another name since this handle read it. */
static int place_has_moved(brc_store *store, const brc_object *o, int *moved, brc_error *err)
{
    brc_store_backend *b;
    const char *name;
    char *was;
    *moved = 0;
    if (brc_is_in_file(o->backend) || o->place == 0)
        return BRC_OK;
    BRC_TRY(brc_backend_use(store, o->backend, &b, err));
    BRC_TRY(brc_object_place(b, o, &name, err));
    BRC_TRY(brc_dup(&was, name, err));
    brc_places_forget(b);
    const int rc = brc_object_place(b, o, &name, err);
    *moved = rc == BRC_OK && strcmp(was, name) != 0;
    free(was);
    return rc;
}

int brc_object_find_again(brc_store *store, brc_object *o, const brc_error *gone, brc_error *err)
{
    char hex[65];
    int moved;
    const brc_object before = *o;
    BRC_TRY(object_find_one(store, o, err));
    if (!o->found)
        return brc_fail(err, BRC_ESTALE,
                        "its object %s was removed by a garbage collection during the read, "
                        "because nothing refers to it any more: open a version that still exists",
                        brc_oid_format(hex, &o->id));
    if (brc_object_place_order(&before, o) != 0 || before.stored != o->stored ||
        before.checksum != o->checksum)
        return BRC_OK;
    BRC_TRY(place_has_moved(store, o, &moved, err));
    return moved ? BRC_OK : brc_object_gone(store, o, gone, err);
}

void brc_object_ask(const brc_object *o, brc_stored *out)
{
    *out = (brc_stored){.size = sizeof(*out),
                        .id = o->id,
                        .sum = o->checksum,
                        .len = o->stored,
                        .offset = o->offset,
                        .number = o->place};
}

int brc_object_fetch(brc_store *store, const brc_object *o, uint8_t *into, brc_error *err)
{
    brc_store_backend *b;
    brc_stored asked, *one = &asked;
    BRC_TRY(brc_backend_use(store, o->backend, &b, err));
    brc_object_ask(o, &asked);
    asked.into = into;
    BRC_TRY(brc_object_place(b, o, &asked.place, err));
    if (!brc_is_in_file(o->backend))
        brc_store_pause_read(store); /* so that others need not wait for the backend */
    if (brc_store_cached(store, b, o, into))
        return BRC_OK;
    BRC_TRY(brc_backend_fetch(b, 1, &one, err));
    if (brc_store_caches(store, b) && brc_object_verify(o, into, NULL) == BRC_OK)
        brc_store_keep(store, b, o, into);
    return BRC_OK;
}

int brc_object_verify(const brc_object *o, const void *stored, brc_error *err)
{
    char hex[65];
    if (brc_hash_stored(&o->id, o->digest, stored, (size_t)o->stored) == o->checksum)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "object %s is damaged: its stored bytes do not match their "
                                       "checksum; run 'breccia fsck'",
                    brc_oid_format(hex, &o->id));
}

int brc_object_verify_in(const brc_object *o, const void *stored, const char *place, brc_error *err)
{
    char hex[65];
    const int rc = brc_object_verify(o, stored, err);
    if (rc != BRC_ECORRUPT || place == NULL)
        return rc;
    return brc_fail(err, BRC_ECORRUPT,
                    "object %s is damaged: its bytes in \"%.300s\" do not match their checksum: "
                    "they have changed since they were stored; put the old ones back, or import "
                    "them again",
                    brc_oid_format(hex, &o->id), place);
}

/* ---- rows -------------------------------- */

int brc_object_record(brc_store *store, const brc_object *o, const brc_stored *at, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t place;
    uint64_t offset;
    BRC_TRY(brc_backend_recorded(store, o->backend, at, &place, &offset, err));
    BRC_TRY(brc_stmt(store,
                     "INSERT INTO object(id, kind, encoding, backend, place, offset, size, stored,"
                     " checksum, guard) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                     &st, err));
    brc_bind_id(store, st, 1, &o->id);
    sqlite3_bind_int(st, 2, o->kind);
    sqlite3_bind_int64(st, 3, o->encoding);
    sqlite3_bind_int64(st, 4, o->backend);
    sqlite3_bind_int64(st, 5, place);
    sqlite3_bind_int64(st, 6, (int64_t)offset);
    sqlite3_bind_int64(st, 7, (int64_t)o->size);
    sqlite3_bind_int64(st, 8, (int64_t)o->stored);
    sqlite3_bind_int64(st, 9, (int64_t)o->checksum);
    sqlite3_bind_int64(st, 10, (int64_t)o->guard);
    BRC_TRY(brc_run(store, st, err));
    brc_store_inserted(store, o->stored);
    return brc_gc_keep_stored(store, o->kind, &o->id, err);
}

static int object_collected(brc_store *store, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ESTALE,
                    "%s: object %s was removed by a garbage collection, because nothing referred "
                    "to it",
                    store->path, brc_oid_format(hex, id));
}

/* Drops the stored bytes that the object has now; `o` is the object as it will be. Other backends
 * keep bytes under their canonical name until a collection finds that they belong to this file
 * alone: copies of the file may share them. */
static int drop_stored(brc_store *store, const brc_object *o, brc_error *err)
{
    sqlite3_stmt *st;
    brc_object left = {.id = o->id};
    BRC_TRY(brc_stmt(store, "SELECT backend, place, stored FROM object WHERE id=?1", &st, err));
    brc_bind_id(store, st, 1, &o->id);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    left.backend = sqlite3_column_int64(st, 0);
    left.place = sqlite3_column_int64(st, 1);
    left.stored = (uint64_t)sqlite3_column_int64(st, 2);
    sqlite3_reset(st);
    if (left.stored != o->stored)
        BRC_TRY(brc_node_totals_drop(store, err));
    return left.place != 0 ? brc_removed_note(store, &left, err) : BRC_OK;
}

/* Notes what the object builds on now. An object that was moved as it is keeps its base. */
static int replace_delta(brc_store *store, const brc_object *o, const brc_oid *base,
                         brc_error *err)
{
    uint64_t digest;
    BRC_TRY(brc_encoding_digest(store, o->encoding, &digest, err));
    if (digest != BRC_DELTA_DIGEST || base != NULL)
        BRC_TRY(brc_delta_note(store, &o->id, base, err));
    return BRC_OK;
}

int brc_object_replace_on(brc_store *store, const brc_object *o, const brc_stored *at,
                          const brc_oid *base, brc_error *err)
{
    sqlite3_stmt *st;
    int64_t place;
    uint64_t offset;
    BRC_TRY(drop_stored(store, o, err));
    BRC_TRY(brc_backend_recorded(store, o->backend, at, &place, &offset, err));
    BRC_TRY(brc_stmt(store,
                     "UPDATE object SET encoding=?2, backend=?3, place=?4, offset=?5, stored=?6,"
                     " checksum=?7 WHERE id=?1",
                     &st, err));
    brc_bind_id(store, st, 1, &o->id);
    sqlite3_bind_int64(st, 2, o->encoding);
    sqlite3_bind_int64(st, 3, o->backend);
    sqlite3_bind_int64(st, 4, place);
    sqlite3_bind_int64(st, 5, (int64_t)offset);
    sqlite3_bind_int64(st, 6, (int64_t)o->stored);
    sqlite3_bind_int64(st, 7, (int64_t)o->checksum);
    brc_store_inserted(store, o->stored);
    BRC_TRY(brc_run(store, st, err));
    if (sqlite3_changes(store->db) == 0)
        return object_collected(store, &o->id, err);
    BRC_TRY(replace_delta(store, o, base, err));
    return brc_gc_keep_stored(store, o->kind, &o->id, err); /* its new place must not be dropped */
}

int brc_object_replace(brc_store *store, const brc_object *o, const brc_stored *at, brc_error *err)
{
    return brc_object_replace_on(store, o, at, NULL, err);
}

/* ---- whole objects -------------------------------- */

static int object_check_id(brc_store *store, const brc_object *o, const void *data, size_t len,
                           brc_error *err)
{
    char hex[65];
    brc_oid id = brc_hash_object(store->hash, o->kind, data, len);
    if (brc_oid_cmp(&id, &o->id) == 0)
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "object %s is damaged: its content does not match its id; "
                                       "run "
                                       "'breccia fsck'",
                    brc_oid_format(hex, &o->id));
}

int brc_object_check_plain(brc_store *store, const brc_object *o, brc_error *err)
{
    const brc_chain *chain;
    char hex[65];
    if (o->kind == BRC_KIND_CHUNK || o->encoding == 0)
        return BRC_OK;
    BRC_TRY(brc_encoding_chain(store, o->encoding, &chain, err));
    if (o->kind == BRC_KIND_DOCUMENT && chain != NULL && brc_chain_takes_bytes(chain))
        return BRC_OK;
    return brc_fail(err, BRC_ECORRUPT, "object %s is damaged: it has an encoding of chunks",
                    brc_oid_format(hex, &o->id));
}

static int object_fetch_whole(brc_store *store, const brc_object *o, brc_buf *into, brc_error *err)
{
    size_t len;
    char hex[65];
    into->len = 0;
    if (!brc_to_size(o->stored, &len))
        return brc_fail(err, BRC_ELIMIT, "object %s is too large for this machine",
                        brc_oid_format(hex, &o->id));
    BRC_TRY(brc_buf_reserve(into, len + 1, err));
    BRC_TRY(brc_object_fetch(store, o, into->data, err));
    into->len = len;
    return BRC_OK;
}

int brc_object_load(brc_store *store, brc_object *o, brc_buf *into, brc_error *err)
{
    brc_error moved = BRC_ERROR_INIT;
    int rc = object_fetch_whole(store, o, into, &moved);
    if (rc == BRC_ESTALE) {
        BRC_TRY(brc_object_find_again(store, o, &moved, err));
        rc = object_fetch_whole(store, o, into, &moved);
    }
    if (rc == BRC_ESTALE)
        return brc_object_gone(store, o, &moved, err);
    if (rc < 0 && err != NULL)
        brc_error_copy(err, &moved);
    return rc;
}

static int object_decode_document(brc_store *store, brc_buf *data, const brc_object *o,
                                  brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    const brc_span stored = {data->data, data->len};
    int rc = brc_document_decode(store, o->encoding, stored, &text, err);
    brc_buf_dispose(data);
    *data = text;
    return rc;
}

/* Loads the bytes of an object that is not a chunk. */
static int object_load_plain(brc_store *store, brc_object *o, int verify, brc_buf *out,
                             brc_error *err)
{
    BRC_TRY(brc_object_load(store, o, out, err));
    BRC_TRY(brc_object_check_plain(store, o, err));
    BRC_TRY(brc_object_verify(o, out->data, err));
    if (o->encoding != 0)
        BRC_TRY(object_decode_document(store, out, o, err));
    return verify ? object_check_id(store, o, out->data, out->len, err) : BRC_OK;
}

int brc_object_missing(const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ECORRUPT, "its object %s is missing; run 'breccia fsck'",
                    brc_oid_format(hex, id));
}

int brc_object_collides(const brc_store *store, const brc_oid *id, brc_error *err)
{
    char hex[65];
    return brc_fail(err, BRC_ECOLLISION,
                    "%s already holds other content under the hash %s, so nothing was stored: run "
                    "'breccia fsck'; if it finds no damage, such data was made to collide, and "
                    "needs a repository with a cryptographic hash",
                    store->path, brc_oid_format(hex, id));
}

/* Checks that an object that exists already is the same as the one to store. Small objects are
 * compared byte by byte, because they can be forged to have the same hash and guard. */
static int object_same(brc_store *store, brc_object *o, const void *data, size_t len,
                       uint64_t guard, brc_error *err)
{
    if (o->size != len || o->guard != guard)
        return brc_object_collides(store, &o->id, err);
    if (len > BRC_COMPARE_MAX)
        return BRC_OK;
    brc_buf there = BRC_BUF_INIT;
    int rc = object_load_plain(store, o, 0, &there, err);
    if (rc == BRC_OK && len > 0 && memcmp(there.data, data, len) != 0)
        rc = brc_object_collides(store, &o->id, err);
    brc_buf_dispose(&there);
    return rc;
}

static int object_insert_small(brc_store *store, brc_object *o, const void *data, brc_error *err)
{
    brc_buf encoded = BRC_BUF_INIT;
    const brc_span text = {data, (size_t)o->size};
    brc_stored stored, *one = &stored;
    int rc;
    if (o->kind == BRC_KIND_DOCUMENT)
        BRC_GO(brc_document_encode(store, text, &encoded, &o->encoding, err));
    if (o->encoding != 0) {
        o->stored = encoded.len;
        BRC_GO(brc_encoding_digest(store, o->encoding, &o->digest, err));
        data = encoded.data;
    }
    o->checksum = brc_hash_stored(&o->id, o->digest, data, (size_t)o->stored);
    brc_object_ask(o, &stored);
    stored.data = data;
    BRC_GO(brc_backend_put(&store->inline_backend, 1, &one, err));
    rc = brc_object_record(store, o, &stored, err);
done:
    brc_buf_dispose(&encoded);
    return rc;
}

int brc_store_put(brc_store *store, int kind, const void *data, size_t len, brc_oid *id,
                  brc_error *err)
{
    char hex[65];
    brc_object o = {.kind = kind, .size = len, .stored = len};
    o.id = *id = brc_hash_object(store->hash, kind, data, len);
    const brc_cached *held = brc_cache_find(&store->cache, id);
    if (store->scratch && held != NULL && held->blob->len == len &&
        (len == 0 || memcmp(held->blob->data, data, len) == 0))
        return BRC_OK;
    if (store->scratch)
        return brc_cache_add(&store->cache, id, kind, data, len, 1, NULL, err);
    BRC_TRY(brc_bulk_resume(store, NULL, err)); /* nobody adds it between look-up and insert */
    BRC_TRY(object_find_one(store, &o, err));
    uint64_t guard = brc_hash_guard(store->secret, data, len);
    if (o.found && o.kind != kind)
        return brc_fail(err, BRC_ECORRUPT,
                        "%s is damaged: object %s is not of the kind that its id says; run "
                        "'breccia fsck'",
                        store->path, brc_oid_format(hex, id));
    if (o.found)
        BRC_TRY(object_same(store, &o, data, len, guard, err));
    if (o.found)
        return brc_gc_keep_stored(store, kind, id, err);
    o = (brc_object){.id = *id, .kind = kind, .size = len, .stored = len, .guard = guard};
    BRC_TRY(object_insert_small(store, &o, data, err));
    return brc_cache_add(&store->cache, id, kind, data, len, 0, NULL, err);
}

static const char *object_kind_name(int kind)
{
    static const char *const names[] = {"object",   "chunk",  "document",
                                        "map node", "commit", "loose object"};
    return kind >= 1 && kind <= BRC_KIND_MAX ? names[kind] : names[0];
}

/* Loads a document that only a draft has. The cache holds it like other data that is not stored as
 * an object: pinned, and only the last one, unless all will be dropped together soon. */
static int store_load_draft_doc(brc_store *store, const brc_oid *id, int *found,
                                const brc_cached **out, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    const brc_object o = {.id = *id, .kind = BRC_KIND_DOCUMENT};
    int rc = brc_draft_doc_get(store, id, found, &text, err);
    if (rc == BRC_OK && *found)
        rc = object_check_id(store, &o, text.data, text.len, err);
    if (rc == BRC_OK && *found && !store->scratch)
        brc_cache_drop_pinned(&store->cache);
    if (rc == BRC_OK && *found)
        rc = brc_cache_add(&store->cache, id, o.kind, text.data, text.len, 1, out, err);
    brc_buf_dispose(&text);
    return rc;
}

static int store_load_small(brc_store *store, int kind, const brc_oid *id, const brc_cached **out,
                            brc_error *err)
{
    char hex[65];
    brc_object o = {.id = *id};
    brc_buf data = BRC_BUF_INIT;
    brc_blob *blob = NULL;
    int rc, found = 0;
    if (brc_shared_find(store->shared, id, kind, &blob)) {
        rc = brc_cache_add_blob(&store->cache, id, kind, blob, 0, out, err);
        goto done;
    }
    BRC_GO(object_find_one(store, &o, err));
    if (!o.found && kind == BRC_KIND_DOCUMENT)
        BRC_GO(store_load_draft_doc(store, id, &found, out, err));
    if (found)
        goto done;
    if (!o.found || o.kind != kind) {
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: %s %s is missing; run 'breccia fsck'",
                      store->path, object_kind_name(kind), brc_oid_format(hex, id));
        goto done;
    }
    if (o.size > BRC_OBJECT_MAX) {
        rc = brc_fail(err, BRC_ECORRUPT, "%s is damaged: %s %s is too large", store->path,
                      object_kind_name(kind), brc_oid_format(hex, id));
        goto done;
    }
    BRC_GO(object_load_plain(store, &o, 1, &data, err));
    BRC_GO(brc_blob_new(&blob, data.data, data.len, err));
    BRC_GO(brc_cache_add_blob(&store->cache, id, kind, blob, 0, out, err));
    if (store->write_depth == 0) /* inside a write the object may be undone with the transaction */
        brc_shared_add(store->shared, id, kind, blob);
done:
    brc_blob_unref(blob);
    brc_buf_dispose(&data);
    return rc;
}

int brc_store_get(brc_store *store, int kind, const brc_oid *id, brc_span *out, brc_error *err)
{
    const brc_cached *held = brc_cache_find(&store->cache, id);
    if (held == NULL || held->kind != kind)
        BRC_TRY(store_load_small(store, kind, id, &held, err));
    *out = (brc_span){held->blob->data, held->blob->len};
    return BRC_OK;
}

void brc_store_scratch_begin(brc_store *store)
{
    store->scratch = 1;
}

void brc_store_scratch_pause(brc_store *store)
{
    store->scratch = 0;
}

void brc_store_scratch_end(brc_store *store)
{
    store->scratch = 0;
    brc_cache_drop_pinned(&store->cache);
}
