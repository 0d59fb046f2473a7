/* Settings of the repository, by name. */
#include <string.h>

#include "../base/iter.h"
#include "../zarr/repo.h"

static int check_setting(const char *name, brc_error *err)
{
    return strcmp(name, "journal") == 0
               ? BRC_OK
               : brc_fail(err, BRC_ENOTFOUND, "there is no setting '%.80s': 'journal' is one",
                          name);
}

int brc_config_get(brc_buf *out, breccia *repo, const char *name, brc_error *err)
{
    int wal;
    BRC_TRY(check_setting(name, err));
    BRC_TRY(brc_store_begin_read(repo->store, err));
    int rc = brc_journal_get(repo->store, &wal, err);
    brc_store_end_read(repo->store);
    if (rc == BRC_OK)
        rc = brc_buf_text(out, wal ? "wal" : "rollback", err);
    return rc == BRC_OK ? brc_buf_terminate(out, err) : rc;
}

int brc_config_set(breccia *repo, const char *name, const char *value, brc_error *err)
{
    BRC_TRY(check_setting(name, err));
    int wal = value != NULL && strcmp(value, "wal") == 0;
    if (value != NULL && !wal && strcmp(value, "rollback") != 0)
        return brc_fail(err, BRC_EINVAL, "the journal is 'rollback' or 'wal', not '%.80s'", value);
    if (brc_store_in_write(repo->store))
        return brc_fail(err, BRC_EMISUSE, "the journal cannot be set within a transaction");
    return brc_journal_set(repo->store, wal, err);
}
