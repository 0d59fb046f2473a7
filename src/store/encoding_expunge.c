/* gc --expunge: the specifications of encodings that no object has any more. */
#include <stdlib.h>

#include "collect.h"
#include "db.h"

#define ENCODINGS_MOST 65536 /* beyond that the numbers are no longer small, and all stay */
/* In place of the last one, whose number must not be given again: others may have it in memory. */
#define NO_SPEC "{\"codecs\":[{\"name\":\"crc32c\"}],\"removed\":true}"

typedef struct used_encodings {
    int64_t last;     /* the largest number             */
    uint8_t *is_used; /* [0, last]: some object has it  */
} used_encodings;

static int find_used(brc_store *store, used_encodings *used, brc_error *err)
{
    brc_oid after = {{0}};
    sqlite3_stmt *st;
    int rc = 1;
    while (rc > 0) {
        int n = 0;
        BRC_TRY(brc_store_check_interrupt(store, err));
        BRC_TRY(brc_stmt(store,
                         "SELECT id, encoding FROM object WHERE id>?1 ORDER BY id LIMIT 4096", &st,
                         err));
        brc_bind_id(store, st, 1, &after);
        while ((rc = brc_step(store, st, err)) > 0) {
            const int64_t encoding = sqlite3_column_int64(st, 1);
            n++;
            rc = brc_column_id(store, st, 0, &after, err);
            if (rc < 0)
                break;
            if (encoding >= 0 && encoding <= used->last)
                used->is_used[encoding] = 1;
        }
        sqlite3_reset(st);
        if (rc < 0)
            return rc;
        rc = n == 4096;
    }
    return BRC_OK;
}

static int remove_spec(brc_store *store, int64_t id, int is_last, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     is_last ? "UPDATE encoding SET spec='" NO_SPEC "' WHERE id=?1"
                             : "DELETE FROM encoding WHERE id=?1",
                     &st, err));
    sqlite3_bind_int64(st, 1, id);
    return brc_run(store, st, err);
}

static int remove_unused(brc_store *store, const used_encodings *used, brc_error *err)
{
    int64_t documents;
    BRC_TRY(brc_encoding_find(store, BRC_DOCUMENT_SPEC, &documents, err));
    for (int64_t id = 1; id <= used->last; id++)
        if (!used->is_used[id] && id != documents)
            BRC_TRY(remove_spec(store, id, id == used->last, err));
    brc_encoding_cache_forget(&store->encodings);
    return brc_encoded_drop(store, err);
}

/* Does that in one transaction, unless the file is not as it was when `used` was found. */
static int remove_unchanged(brc_store *store, uint64_t version, const used_encodings *used,
                            brc_error *err)
{
    uint64_t now;
    BRC_TRY(brc_store_begin(store, err));
    int rc = brc_store_version(store, &now, err);
    if (rc == BRC_OK && now != version)
        rc = brc_fail(err, BRC_EBUSY,
                      "%s: the types and codecs of arrays that were removed are still in the "
                      "file, because another process has written to it meanwhile: run "
                      "'gc --expunge' again when it is done",
                      store->path);
    if (rc == BRC_OK)
        rc = remove_unused(store, used, err);
    int end = brc_store_end(store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

int brc_encodings_expunge(brc_store *store, brc_error *err)
{
    void *is_used;
    uint64_t version;
    sqlite3_stmt *st;
    used_encodings used = {0, NULL};
    BRC_TRY(brc_store_version(store, &version, err));
    BRC_TRY(brc_stmt(store, "SELECT coalesce(max(id), 0) FROM encoding", &st, err));
    BRC_TRY(brc_ask_number(store, st, &used.last, err));
    if (used.last < 1 || used.last >= ENCODINGS_MOST)
        return BRC_OK;
    BRC_TRY(brc_new(&is_used, (size_t)used.last + 1, err));
    used.is_used = is_used;
    int rc = find_used(store, &used, err);
    if (rc == BRC_OK)
        rc = remove_unchanged(store, version, &used, err);
    free(is_used);
    return rc;
}
