/*
 * The repositories that are served, and handles on them. A handle belongs to whoever took it, and keeps
 * the versions that it showed last open: what a client asks for next is of the same version.
 *
 * There are two kinds of handles. One that may not wait fails with BRC_EBUSY instead: it is for the
 * threads that answer many clients. One that may wait is for workers.
 *
 * Each time a handle is taken, the file is looked at. Another file in its place is opened anew; no answer
 * is from two files.
 */
#ifndef BRC_SERVE_FILES_H
#define BRC_SERVE_FILES_H

#include "../breccia.h"

typedef struct serve_files serve_files;
typedef struct serve_reader serve_reader;

typedef struct serve_files_opts {
    const char *const *paths; /* the files, or ...                            */
    size_t n;
    const char *root;         /* ... the folder of files that end in ".brc"   */
    const brc_registry *registry; /* NULL: what this build contains           */
    brc_credentials_fn credentials;
    const char *cache;        /* as in brc_open_opts                          */
    uint64_t cache_bytes;
    int wait_ms;              /* of workers                                   */
    size_t memory;            /* as in brc_open_opts                          */
} serve_files_opts;

/* Fails if two files would have one name, or a file cannot be opened. What the options point to must outlive *out. */
BRC_MUST_USE int serve_files_new(serve_files **out, const serve_files_opts *opts, brc_error *err);
/* Nobody may have a reader. */
void serve_files_free(serve_files *files);

/* Appends the names of what is served in a folder of the root ("": the top), sorted, each with a NUL: "data" is a
 * file, "sub/" a folder. BRC_ENOTFOUND: there is no such folder. */
BRC_MUST_USE int serve_files_list(brc_buf *out, serve_files *files, const char *folder, brc_error *err);
/* Sets *name to the name of the only file; BRC_EINVAL if there are several, or a root. */
BRC_MUST_USE int serve_files_only(const char **name, serve_files *files, brc_error *err);

/* Takes a handle. Fails with BRC_ENOTFOUND if there is no such name, and with BRC_EIO if the file has gone away; with
 * BRC_EBUSY if the call may not wait and a file must be opened first. */
BRC_MUST_USE int serve_reader_take(serve_reader **out, serve_files *files, const char *name, int may_wait, brc_error *err);
/* Gives it back; NULL is accepted. `rc`: how the work with it ended, since a handle after some errors is not used again. */
void serve_reader_give(serve_reader *reader, int rc);
breccia *serve_reader_repo(serve_reader *reader);
/* Returns the number of the file, which no other file that was opened has. */
uint64_t serve_reader_number(const serve_reader *reader);
struct serve_cache *serve_reader_cache(serve_reader *reader);
/* Leaves the file's path out of a message. */
void serve_reader_hide(const serve_reader *reader, brc_error *err);
/* Stops what another thread does with the reader; it is not used again then. */
void serve_reader_interrupt(serve_reader *reader);

/* A committed version that a reader shows; valid until the reader's next one, or until it is given back. */
typedef struct serve_version {
    brc_session *session;
    brc_oid id;
    char hex[65];
    int64_t time_us; /* of the commit                                         */
    int named;       /* 1: `rev` was the whole id, which never means something else */
} serve_version;
BRC_MUST_USE int serve_version_open(const serve_version **out, serve_reader *reader, const char *rev, brc_error *err);

#endif
