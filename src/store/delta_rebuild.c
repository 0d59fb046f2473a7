#include "delta_rebuild.h"

#include <string.h>

#include "bases.h"
#include "db.h"

enum { REBUILD_PAGE = 256 };

/* A difference, and the base that its stored bytes name. */
typedef struct stored_base {
    brc_object object;
    brc_oid base;
} stored_base;

/* Drops rows that cannot be right. A row of an object whose stored bytes are damaged stays: nothing
 * else says what it builds on. */
static int drop_wrong_rows(brc_store *store, int64_t encoding, brc_error *err)
{
    sqlite3_stmt *st;
    int there;
    BRC_TRY(brc_schema_has(store, "delta", &there, err));
    if (!there)
        return BRC_OK;
    BRC_TRY(brc_stmt(store,
                     "DELETE FROM delta WHERE typeof(id)<>'blob' OR length(id)<>?1"
                     " OR typeof(base)<>'blob' OR length(base)<>?1 OR base=id OR NOT EXISTS"
                     " (SELECT 1 FROM object o WHERE o.id=delta.id AND o.encoding=?2)",
                     &st, err));
    sqlite3_bind_int64(st, 1, (int64_t)store->id_len);
    sqlite3_bind_int64(st, 2, encoding);
    return brc_run(store, st, err);
}

/* Reads what the stored bytes of an object say. Bytes that cannot be read say nothing. */
static int read_stored_base(brc_store *store, brc_object *o, brc_buf *bytes, brc_oid *base,
                            int *known, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    *known = 0;
    int rc = brc_object_load(store, o, bytes, &why);
    if (rc == BRC_OK)
        rc = brc_object_verify(o, bytes->data, &why);
    if (rc == BRC_ENOMEM || rc == BRC_EINTERRUPT) {
        brc_error_copy(err, &why);
        return rc;
    }
    if (rc < 0 || bytes->len <= store->id_len)
        return BRC_OK;
    memset(base, 0, sizeof(*base));
    memcpy(base->bytes, bytes->data, store->id_len);
    *known = brc_oid_cmp(base, &o->id) != 0;
    return BRC_OK;
}

/* Lists the differences among the objects that follow *after. */
static int read_stored_bases(brc_store *store, brc_oid *after, stored_base *out, size_t *nout,
                             size_t *n, brc_error *err)
{
    brc_object page[REBUILD_PAGE];
    brc_buf bytes = BRC_BUF_INIT;
    *nout = 0;
    int rc = brc_objects_page(store, after, page, REBUILD_PAGE, n, err);
    for (size_t i = 0; i < *n && rc == BRC_OK; i++) {
        int known = 0;
        *after = page[i].id;
        if (!page[i].found || !brc_object_is_delta(&page[i]))
            continue;
        rc = read_stored_base(store, &page[i], &bytes, &out[*nout].base, &known, err);
        out[*nout].object = page[i];
        *nout += known ? 1 : 0;
    }
    brc_buf_dispose(&bytes);
    return rc;
}

/* Notes a base, unless the object was stored again since it was read. */
static int note_stored_base(brc_store *store, const stored_base *one, brc_error *err)
{
    brc_object now = {.id = one->object.id}, *o = &now;
    BRC_TRY(brc_objects_find(store, &o, 1, err));
    return now.found && brc_object_is_delta(&now) && now.checksum == one->object.checksum
               ? brc_delta_note(store, &now.id, &one->base, err)
               : BRC_OK;
}

/* Reads the objects that follow without a lock, and notes their bases in a transaction. */
static int rebuild_page(brc_store *store, brc_oid *after, size_t *n, brc_error *err)
{
    stored_base found[REBUILD_PAGE];
    size_t nfound;
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = read_stored_bases(store, after, found, &nfound, n, err);
    brc_store_end_read(store);
    if (rc < 0 || nfound == 0)
        return rc;
    BRC_TRY(brc_store_begin(store, err));
    for (size_t i = 0; i < nfound && rc == BRC_OK; i++)
        rc = note_stored_base(store, &found[i], err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_deltas_rebuild(brc_store *store, brc_error *err)
{
    int64_t encoding;
    size_t n = REBUILD_PAGE;
    brc_oid after = {{0}};
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_encoding_find(store, BRC_DELTA_SPEC, &encoding, err);
    if (rc == BRC_OK)
        rc = drop_wrong_rows(store, encoding, err);
    const int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    while (rc == BRC_OK && encoding >= 0 && n == REBUILD_PAGE)
        rc = rebuild_page(store, &after, &n, err);
    return rc;
}

/* ==== what is lost ================================ */

/* Looks at the objects that follow *after. */
static int check_page(brc_store *store, brc_object *page, brc_oid *after, size_t *n, brc_error *err)
{
    char hex[65];
    brc_oid base;
    int found;
    BRC_TRY(brc_objects_page(store, after, page, REBUILD_PAGE, n, err));
    for (size_t i = 0; i < *n; i++) {
        *after = page[i].id;
        if (!page[i].found || !brc_object_is_delta(&page[i]))
            continue;
        BRC_TRY(brc_delta_base(store, &page[i].id, &found, &base, err));
        if (!found)
            return brc_fail(err, BRC_ECORRUPT,
                            "%s: table delta does not say what object %s builds on, and a "
                            "collection would remove that: let 'breccia fsck --repair' make the "
                            "table anew first",
                            store->path, brc_oid_format(hex, &page[i].id));
    }
    return BRC_OK;
}

int brc_deltas_check(brc_store *store, brc_error *err)
{
    int64_t encoding;
    size_t n = REBUILD_PAGE;
    brc_oid after = {{0}};
    brc_object page[REBUILD_PAGE];
    BRC_TRY(brc_store_begin_read(store, err));
    int rc = brc_encoding_find(store, BRC_DELTA_SPEC, &encoding, err);
    brc_store_end_read(store);
    while (rc == BRC_OK && encoding >= 0 && n == REBUILD_PAGE) {
        rc = brc_store_begin_read(store, err);
        if (rc == BRC_OK) {
            rc = check_page(store, page, &after, &n, err);
            brc_store_end_read(store);
        }
        if (rc == BRC_OK)
            rc = brc_store_check_interrupt(store, err);
    }
    return rc;
}
