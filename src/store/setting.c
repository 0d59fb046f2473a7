/* Settings of the whole file: rows of meta. The current branch is one of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db.h"

int brc_meta_put(brc_store *store, const char *key, const void *value, size_t len, int text,
                 brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "INSERT OR REPLACE INTO meta(key, value, checksum)"
                     " VALUES (?1, ?2, row_sum('meta', ?1, ?2))",
                     &st, err));
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    if (text)
        sqlite3_bind_text(st, 2, value, (int)len, SQLITE_STATIC);
    else
        sqlite3_bind_blob(st, 2, value, (int)len, SQLITE_STATIC);
    return brc_run(store, st, err);
}

int brc_meta_find(brc_store *store, const char *key, brc_buf *out, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store,
                     "SELECT value, checksum IS row_sum('meta', key, value) FROM meta WHERE key=?1",
                     &st, err));
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    int rc = brc_step(store, st, err);
    if (rc <= 0)
        return rc;
    rc = brc_row_check(store, st, 1, "a setting", err);
    if (rc == BRC_OK)
        rc = brc_buf_append(out, sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0),
                            err);
    sqlite3_reset(st);
    if (rc == BRC_OK)
        rc = brc_buf_terminate(out, err);
    return rc < 0 ? rc : 1;
}

int brc_meta_get(brc_store *store, const char *key, brc_buf *out, brc_error *err)
{
    int rc = brc_meta_find(store, key, out, err);
    if (rc == 0)
        return brc_fail(err, BRC_ECORRUPT, "%s is damaged: its setting '%s' is missing",
                        store->path, key);
    return rc < 0 ? rc : BRC_OK;
}

int brc_meta_remove(brc_store *store, const char *key, brc_error *err)
{
    sqlite3_stmt *st;
    BRC_TRY(brc_stmt(store, "DELETE FROM meta WHERE key=?1", &st, err));
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    return brc_run(store, st, err);
}

/* ---- settings by name -------------------------------- */

#define SETTING_KEY "config.%.80s"
enum { SETTING_KEY_SIZE = 100 };

int brc_setting_find(brc_store *store, const char *name, brc_buf *out, brc_error *err)
{
    char key[SETTING_KEY_SIZE];
    snprintf(key, sizeof(key), SETTING_KEY, name);
    return brc_meta_find(store, key, out, err);
}

int brc_setting_put(brc_store *store, const char *name, const char *json, brc_error *err)
{
    char key[SETTING_KEY_SIZE];
    snprintf(key, sizeof(key), SETTING_KEY, name);
    return json != NULL ? brc_meta_put(store, key, json, strlen(json), 1, err)
                        : brc_meta_remove(store, key, err);
}

/* ---- what reading checks -------------------------------- */

#define SETTING_VERIFY "verify"

int brc_verify_get(brc_store *store, int *full, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    const int rc = brc_setting_find(store, SETTING_VERIFY, &value, err);
    *full = rc > 0 && strcmp((const char *)value.data, "full") == 0;
    brc_buf_dispose(&value);
    return rc < 0 ? rc : BRC_OK;
}

int brc_verify_set(brc_store *store, int full, brc_error *err)
{
    BRC_TRY(brc_setting_put(store, SETTING_VERIFY, full ? "full" : NULL, err));
    store->verifies_all = full;
    return BRC_OK;
}

int brc_store_verifies_all(const brc_store *store)
{
    return store->verifies_all;
}

/* ---- what writing checks -------------------------------- */

#define SETTING_READBACK "readback"

static const char *const readbacks[] = {
    [BRC_READBACK_ALL] = "all", [BRC_READBACK_SAMPLED] = "sampled", [BRC_READBACK_NONE] = "none"};

static int readback_named(const char *name)
{
    for (int i = BRC_READBACK_ALL; i <= BRC_READBACK_NONE; i++)
        if (strcmp(name, readbacks[i]) == 0)
            return i;
    return 0;
}

const char *brc_readback_name(int readback)
{
    return readbacks[readback];
}

/* A word of a newer build means the default. */
int brc_readback_get(brc_store *store, int *readback, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    const int rc = brc_setting_find(store, SETTING_READBACK, &value, err);
    const int named = rc > 0 ? readback_named((const char *)value.data) : 0;
    *readback = named != 0 ? named : BRC_READBACK_ALL;
    brc_buf_dispose(&value);
    return rc < 0 ? rc : BRC_OK;
}

int brc_store_readback(const brc_store *store)
{
    return store->readback;
}

int brc_readback_set(brc_store *store, const char *value, int *readback, brc_error *err)
{
    *readback = value != NULL ? readback_named(value) : BRC_READBACK_ALL;
    if (*readback == 0)
        return brc_fail(err, BRC_EINVAL,
                        "'readback' is 'all', 'sampled' or 'none', not '%.80s'", value);
    return brc_setting_put(store, SETTING_READBACK,
                           *readback != BRC_READBACK_ALL ? value : NULL, err);
}

/* ---- the current branch -------------------------------- */

int brc_head_get(brc_store *store, const char **branch, brc_error *err)
{
    brc_buf value = BRC_BUF_INIT;
    *branch = NULL;
    int rc = brc_meta_get(store, "head", &value, err);
    if (rc == BRC_OK) {
        free(store->head);
        rc = brc_buf_take_text(&value, &store->head, err);
        if (rc < 0)
            store->head = NULL;
        *branch = store->head;
    }
    brc_buf_dispose(&value);
    return rc;
}

int brc_head_set(brc_store *store, const char *branch, brc_error *err)
{
    return brc_meta_put(store, "head", branch, strlen(branch), 1, err);
}
