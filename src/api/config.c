#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/alloc.h"
#include "../base/process.h"
#include "../base/sized.h"
#include "../care/gc.h"
#include "../history/commit.h"
#include "../work/session.h"
#include "../zarr/array/array.h"

/* Settings of the repository, by name. */

/* ---- journal -------------------------------- */

static int journal_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int wal;
    BRC_TRY(brc_journal_get(repo->store, &wal, err));
    return brc_buf_text(out, wal ? "wal" : "rollback", err);
}

static int journal_set(breccia *repo, const char *value, brc_error *err)
{
    int wal = value != NULL && strcmp(value, "wal") == 0;
    if (value != NULL && !wal && strcmp(value, "rollback") != 0)
        return brc_fail(err, BRC_EINVAL, "the journal is 'rollback' or 'wal', not '%.80s'", value);
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "the journal cannot be set within a transaction");
    return brc_journal_set(repo->store, wal, err);
}

/* ---- backend -------------------------------- */

static int backend_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int rc = brc_setting_find(repo->store, BRC_SETTING_BACKEND, out, err);
    return rc == 0 ? brc_buf_text(out, BRC_INLINE_SPEC, err) : rc < 0 ? rc : BRC_OK;
}

/* The file itself is the default of the default, so it is not stored. */
static int backend_set(breccia *repo, const char *value, brc_error *err)
{
    brc_buf full = BRC_BUF_INIT;
    int rc = brc_backend_of_text(repo->registry, value != NULL ? value : BRC_INLINE, &full, err);
    if (rc == BRC_OK)
        rc = brc_store_begin(repo->store, err);
    if (rc == BRC_OK) {
        const char *json = (const char *)full.data;
        rc = brc_setting_put(repo->store, BRC_SETTING_BACKEND,
                             strcmp(json, BRC_INLINE_SPEC) != 0 ? json : NULL, err);
        int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
        rc = rc < 0 ? rc : end;
    }
    brc_buf_dispose(&full);
    return rc;
}

/* ---- codecs -------------------------------- */

static int codecs_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int rc = brc_setting_find(repo->store, BRC_SETTING_CODECS, out, err);
    return rc == 0 ? brc_buf_text(out, "chosen", err) : rc < 0 ? rc : BRC_OK;
}

static int codecs_set(breccia *repo, const char *value, brc_error *err)
{
    const int chosen = value == NULL || strcmp(value, "chosen") == 0;
    return brc_default_codecs_set(repo, chosen ? NULL : value, err);
}

/* ---- verify -------------------------------- */

static int verify_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int full;
    BRC_TRY(brc_verify_get(repo->store, &full, err));
    return brc_buf_text(out, full ? "full" : "stored", err);
}

static int verify_set(breccia *repo, const char *value, brc_error *err)
{
    const int full = value != NULL && strcmp(value, "full") == 0;
    if (value != NULL && !full && strcmp(value, "stored") != 0)
        return brc_fail(err, BRC_EINVAL, "'verify' is 'stored' or 'full', not '%.80s'",
                        value);
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = brc_verify_set(repo->store, full, err);
    const int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    return rc < 0 ? rc : end;
}

/* ---- readback -------------------------------- */

static int readback_get(brc_buf *out, breccia *repo, brc_error *err)
{
    int readback;
    BRC_TRY(brc_readback_get(repo->store, &readback, err));
    return brc_buf_text(out, brc_readback_name(readback), err);
}

static int readback_set(breccia *repo, const char *value, brc_error *err)
{
    int readback;
    BRC_TRY(brc_store_begin(repo->store, err));
    int rc = brc_readback_set(repo->store, value, &readback, err);
    const int end = brc_store_end(repo->store, rc == BRC_OK, rc == BRC_OK ? err : NULL);
    rc = rc < 0 ? rc : end;
    if (rc == BRC_OK && repo->readback == 0)
        repo->pipe.readback = readback;
    return rc;
}

/* ---- window -------------------------------- */

static int window_get(brc_buf *out, breccia *repo, brc_error *err)
{
    return brc_window_text(repo->store, out, err);
}

static int window_set(breccia *repo, const char *value, brc_error *err)
{
    return brc_window_set(repo->store, value, err);
}

/* ---- by name -------------------------------- */

static const struct {
    const char *name;
    int (*get)(brc_buf *out, breccia *repo, brc_error *err);
    int (*set)(breccia *repo, const char *value, brc_error *err);
} settings[] = {{"journal", journal_get, journal_set}, {"backend", backend_get, backend_set},
              {"codecs", codecs_get, codecs_set}, {"verify", verify_get, verify_set},
              {"readback", readback_get, readback_set},
              {"window", window_get, window_set}};

static int find_setting(const char *name, size_t *i, brc_error *err)
{
    for (*i = 0; *i < sizeof(settings) / sizeof(settings[0]); ++*i)
        if (strcmp(settings[*i].name, name) == 0)
            return BRC_OK;
    return brc_fail(err, BRC_ENOTFOUND,
                    "there is no setting '%.80s': 'journal', 'backend', 'codecs', 'verify', "
                    "'readback' and 'window' are the settings", name);
}

int brc_config_get(brc_buf *out, breccia *repo, const char *name, brc_error *err)
{
    size_t i;
    BRC_TRY(find_setting(name, &i, err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = settings[i].get(out, repo, err);
    brc_store_end_read(repo->store);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_config_set(breccia *repo, const char *name, const char *value, brc_error *err)
{
    size_t i;
    BRC_TRY(find_setting(name, &i, err));
    return settings[i].set(repo, value, err);
}
