/*
 * Reads the central directory of a zip archive before libzip sees the archive.
 *
 * libzip returns entries by number without their offsets; this reader finds out whether entries
 * overlap, and whether there are as many as the archive says.
 *
 *   entries ...                       PK\3\4: 30 bytes, name, extra, data
 *   central directory                 PK\1\2: 46 bytes, name, extra, comment; each
 *   zip64 end, its locator            PK\6\6: 56 bytes, PK\6\7: 20 bytes; if needed
 *   end of the central directory      PK\5\6: 22 bytes, comment
 *
 * (PKWARE's APPNOTE.TXT, 4.3 and 4.5.3.)
 */
#ifndef BRC_XFER_ZIP_H
#define BRC_XFER_ZIP_H

#include <zip.h>

#include "../base/alloc.h"
#include "../base/buf.h"

/* ---- zip dir -------------------------------- */

#define BRC_ZIP_MAX_ENTRIES ((uint64_t)1 << 22)

typedef struct brc_zip_entry {
    const char *name; /* not terminated, without a zero byte                  */
    uint16_t name_len;
    const char *own; /* its name in the archive, if sorting gave it a plainer name */
    uint16_t own_len;
    uint16_t method; /* 0: stored, 8: deflated                               */
    uint8_t is_dir, is_link, is_encrypted;
    uint32_t number; /* its number in the directory, which libzip uses too    */
    uint64_t size, packed, offset;
} brc_zip_entry;

typedef struct brc_zip_dir {
    brc_zip_entry *entries;
    size_t n;
    uint64_t start;  /* the offset of the central directory in the file */
    brc_buf records; /* the directory, into which names point ... */
    brc_arena names; /* ... or the memory of other names       */
} brc_zip_dir;

/* Recognizes a zip archive by its first bytes. */
int brc_is_zip(const uint8_t *head, size_t n);
/* Reads the directory; entries are in its order. */
BRC_MUST_USE int brc_zip_dir_read(brc_zip_dir *out, int fd, uint64_t file_size, const char *file,
                                  brc_error *err);
/* Refuses entries that overlap; sorts entries by offset. Names can be any bytes without a zero byte: they must not
 * be used as names of files. */
BRC_MUST_USE int brc_zip_dir_check(brc_zip_dir *dir, const char *file, brc_error *err);
/* Sorts entries by name, with '/' before all other characters, and removes the entries of folders. Names are paths:
 * empty parts and "." are removed. Of several entries with one name the last in the directory stays, and `replaced`
 * (NULL: none) is called for each of the others; the pointers are valid during the call. Refuses a file that is
 * also a folder. */
typedef int (*brc_zip_replaced_fn)(void *ctx, const brc_zip_entry *old, const brc_zip_entry *by, brc_error *err);
BRC_MUST_USE int brc_zip_dir_sort(brc_zip_dir *dir, const char *file, brc_zip_replaced_fn replaced, void *ctx,
                                  brc_error *err);
void brc_zip_dir_dispose(brc_zip_dir *dir);

/* ---- zip archive -------------------------------- */

/* Archives through libzip: opens one for reading, makes one, and translates libzip's errors. */

/* Fails with an error of reading an archive: "<what> <name>: ...". */
BRC_MUST_USE int brc_zip_fail_read(brc_error *err, zip_error_t *ze, const char *what,
                                   const char *name);
/* Fails with an error of writing an archive. */
BRC_MUST_USE int brc_zip_fail_write(brc_error *err, zip_error_t *ze, const char *name);

/* Opens an archive for reading: reads and checks its directory, then gives the same open file to libzip. After a
 * failure both are closed. */
BRC_MUST_USE int brc_zip_open(zip_t **out, brc_zip_dir *dir, const char *file, brc_error *err);
/* Opens one of the directory's entries, if libzip has the same entry, so that the checked bytes are the ones that
 * are read. `label`: its name in messages. */
BRC_MUST_USE int brc_zip_entry_open(zip_file_t **out, zip_t *archive, const brc_zip_entry *e,
                                    const char *label, brc_error *err);
/* Makes a new archive; `dest`: its name in messages. */
BRC_MUST_USE int brc_zip_make(zip_t **out, const char *file, const char *dest, brc_error *err);
/* Adds an entry that is stored without compression and dated 1980-01-01, zip's first day: equal entries give equal
 * archives. `source` supplies the bytes while the archive is closed; it owns `ctx`, also after a failure. */
BRC_MUST_USE int brc_zip_add(zip_t *archive, const char *name, zip_source_callback source,
                             void *ctx, brc_error *err);
/* Answers ZIP_SOURCE_STAT for a source. */
zip_int64_t brc_zip_stat(void *data, zip_uint64_t len, uint64_t size);

#endif
