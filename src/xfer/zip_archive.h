/* Archives through libzip: opening one to read, making one, and its errors in our words. */
#ifndef BRC_XFER_ZIP_ARCHIVE_H
#define BRC_XFER_ZIP_ARCHIVE_H

#include <zip.h>

#include "zip_dir.h"

/* What failed while an archive was read: "<what> <name>: ...". */
BRC_MUST_USE int brc_zip_fail_read(brc_error *err, zip_error_t *ze, const char *what,
                                   const char *name);
/* The same while one was written. */
BRC_MUST_USE int brc_zip_fail_write(brc_error *err, zip_error_t *ze, const char *name);

/* Opens an archive to read: its directory is read and checked, then libzip gets the same open
 * file. On failure there is neither. */
BRC_MUST_USE int brc_zip_open(zip_t **out, brc_zip_dir *dir, const char *file, brc_error *err);
/* Opens one of the directory's entries, if it is libzip's too: what was checked is what is
 * read. `label`: its name in messages. */
BRC_MUST_USE int brc_zip_entry_open(zip_file_t **out, zip_t *archive, const brc_zip_entry *e,
                                    const char *label, brc_error *err);
/* Makes an archive, which is not there yet; `dest`: its name in messages. */
BRC_MUST_USE int brc_zip_make(zip_t **out, const char *file, const char *dest, brc_error *err);
/* Adds an entry that is stored as it is, dated 1980-01-01, zip's first day: equal entries give
 * equal archives. `source` gives its bytes while the archive is closed; it owns `ctx`, on
 * failure too. */
BRC_MUST_USE int brc_zip_add(zip_t *archive, const char *name, zip_source_callback source,
                             void *ctx, brc_error *err);
/* A source's answer to ZIP_SOURCE_STAT. */
zip_int64_t brc_zip_stat(void *data, zip_uint64_t len, uint64_t size);

#endif
