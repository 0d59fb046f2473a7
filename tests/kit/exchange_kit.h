/* A folder with a repository in it, and files made by hand, for tests of import and
 * export. Everything fails the test that called it. */
#ifndef BRC_TESTS_EXCHANGE_KIT_H
#define BRC_TESTS_EXCHANGE_KIT_H

#include "scenario.h"

/* A scenario whose folder may be on the disk, and whose repository knows the converters. */
typedef scenario exchange_kit;

void exchange_start(exchange_kit *kit);        /* the folder and the repository    */
void exchange_folder_start(exchange_kit *kit); /* the folder alone                 */
/* The folder in a place of folder.h, and the repository with these converters. */
void exchange_folder_in(exchange_kit *kit, int where);
void exchange_open(exchange_kit *kit, const char *libexec);
void exchange_stop(exchange_kit *kit);

/* The path of a name in the folder; valid for 15 more calls on this thread. */
const char *exchange_path(exchange_kit *kit, const char *name);
/* Returns the result of an import of a name in the folder; `said` gets the warnings, terminated. */
int exchange_import(exchange_kit *kit, const char *source, const char *path, uint32_t flags, brc_buf *said);
/* Makes a file in the folder, and the folders that its name needs. */
const char *exchange_file(exchange_kit *kit, const char *name, const void *data, size_t len);
const char *exchange_text(exchange_kit *kit, const char *name, const char *text);
/* The whole of a file; release with brc_buf_dispose(). */
brc_buf exchange_read(const char *path);
int exchange_exists(const char *path);
/* Returns 1 if the two trees have the same files with the same bytes; documents
 * (zarr.json) are compared as JSON. Prints to stderr where they differ. */
int exchange_same_tree(const char *a, const char *b);

/* A .npy file of version 1.0 from the dictionary and the elements, appended. */
void exchange_npy(brc_buf *out, const char *dictionary, const void *data, size_t len);
/* One gzip member, appended. */
void exchange_gzip(brc_buf *out, const void *data, size_t len);

/* A zip archive, made by hand so that it can lie. */
typedef struct exchange_zip {
    brc_buf bytes, directory;
    unsigned n;
    int is_wide; /* headers of members have sizes of 64 bits, as NumPy writes them */
} exchange_zip;
/* claimed: the inflated size that the archive tells. */
void exchange_zip_add(exchange_zip *zip, const char *name, const void *data, size_t len,
                      int deflated, uint32_t claimed);
void exchange_zip_end(exchange_zip *zip);
/* Ends it and writes it into the folder; another one can be begun. */
const char *exchange_zip_file(exchange_kit *kit, const char *name, exchange_zip *zip);

/* The array's elements; the caller frees. */
void *exchange_elements(brc_session *s, const char *path, size_t len);
/* Checks that the array has exactly these bytes. */
void exchange_has(exchange_kit *kit, const char *path, const void *want, size_t len);
int exchange_node(exchange_kit *kit, const char *path); /* BRC_GROUP, BRC_ARRAY or 0: there is none */
void exchange_must_be_clean(exchange_kit *kit);

/* brc_import() and brc_export() of a stream on a descriptor; opts may be NULL. */
int exchange_stream_in(brc_session *s, int fd, const char *path, const brc_xfer_opts *opts,
                       brc_error *err);
int exchange_stream_out(brc_session *s, const char *path, int fd, const brc_xfer_opts *opts,
                        brc_error *err);
/* The calls, which must succeed; opts may be NULL, flags are BRC_XFER_*. */
void exchange_import_ok(exchange_kit *kit, const char *source, const char *path,
                        const brc_xfer_opts *opts);
void exchange_export_ok(exchange_kit *kit, const char *path, const char *dest, const char *format,
                        uint32_t flags);
/* An import that must fail with this code and these words, and leave nothing; its result, likewise. */
void exchange_import_fails(exchange_kit *kit, const char *source, const char *path, int code,
                           const char *says);
void exchange_failed(exchange_kit *kit, int rc, int code, const char *says);
/* A folder with real data, or NULL and a message. */
const char *exchange_data(void);

#endif
