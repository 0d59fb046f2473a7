/*
 * The central directory of a zip archive, read before libzip sees the archive.
 *
 * libzip gives entries by number and does not say where they lie; whether entries
 * overlap, and whether there are as many as the archive says, is found here.
 *
 *   entries ...                       PK\3\4: 30 bytes, name, extra, data
 *   central directory                 PK\1\2: 46 bytes, name, extra, comment; each
 *   zip64 end, its locator            PK\6\6: 56 bytes, PK\6\7: 20 bytes; if needed
 *   end of the central directory      PK\5\6: 22 bytes, comment
 *
 * (PKWARE's APPNOTE.TXT, 4.3 and 4.5.3.)
 */
#ifndef BRC_XFER_ZIP_DIR_H
#define BRC_XFER_ZIP_DIR_H

#include "../base/buf.h"

#define BRC_ZIP_MAX_ENTRIES ((uint64_t)1 << 22)

typedef struct brc_zip_entry {
    const char *name; /* not terminated                                       */
    uint16_t name_len;
    uint16_t method; /* 0: stored, 8: deflated                               */
    uint8_t is_dir, is_link, is_encrypted;
    uint32_t number; /* its place in the directory, which is libzip's         */
    uint64_t size, packed, offset;
} brc_zip_entry;

typedef struct brc_zip_dir {
    brc_zip_entry *entries;
    size_t n;
    uint64_t start;  /* of the central directory in the file */
    brc_buf records; /* the directory: names point into it   */
} brc_zip_dir;

/* By the first bytes. */
int brc_is_zip(const uint8_t *head, size_t n);
/* Reads the directory; entries are in its order. */
BRC_MUST_USE int brc_zip_dir_read(brc_zip_dir *out, int fd, uint64_t file_size, const char *file,
                                  brc_error *err);
/* Refuses names that are unsafe and entries that overlap; entries are then in the order in
 * which they lie. */
BRC_MUST_USE int brc_zip_dir_check(brc_zip_dir *dir, const char *file, brc_error *err);
/* Sorts: by name, with '/' before all other characters, without the entries of folders, and
 * of several with one name the last alone. A file that is also a folder is refused. */
BRC_MUST_USE int brc_zip_dir_sort(brc_zip_dir *dir, const char *file, brc_error *err);
void brc_zip_dir_dispose(brc_zip_dir *dir);

/* The order of the sorted entries. */
int brc_zip_name_compare(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
