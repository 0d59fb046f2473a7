/* Files and directories, outside the repository's own file. */
#ifndef BRC_BASE_FILE_H
#define BRC_BASE_FILE_H

#include "buf.h"
#include "error.h"

/* ---- file -------------------------------- */

/* Appends the whole file. BRC_ENOTFOUND if there is none; BRC_ELIMIT past buf->limit. */
BRC_MUST_USE int brc_file_read(brc_buf *out, const char *path, brc_error *err);
/* Writes a new file; BRC_EEXISTS if it exists already. */
BRC_MUST_USE int brc_file_write(const char *path, const void *data, size_t len, brc_error *err);
/* Makes the directory, whose parents must exist. BRC_EEXISTS if it exists already. */
BRC_MUST_USE int brc_dir_make(const char *path, brc_error *err);
/* Makes the missing directories above the file `path`, except those in its first `root` characters. */
BRC_MUST_USE int brc_dir_make_parents(const char *path, size_t root, brc_error *err);
/* 1: a directory, 2: a regular file, 0: nothing, 3: something else. */
int brc_file_kind(const char *path);
/* Calls `found` with each name in the directory, sorted, without "." and "..". */
BRC_MUST_USE int brc_dir_each(const char *path, int (*found)(void *ctx, const char *name, brc_error *err), void *ctx, brc_error *err);
/* The same, asking every thousand names whether to go on; a negative result of `check`
 * ends it and is the result. A directory may have millions. */
typedef struct brc_dir_check {
    int (*check)(void *ctx, brc_error *err);
    void *ctx;
} brc_dir_check;
BRC_MUST_USE int brc_dir_each_checked(const char *path, int (*found)(void *ctx, const char *name, brc_error *err), void *ctx,
                                      const brc_dir_check *check, brc_error *err);
/* Removes a tree that we made: files and directories. Links are not followed. */
void brc_tree_remove(const char *path);
/* "<dir>/<name>" */
BRC_MUST_USE int brc_path_join(char **out, const char *dir, const char *name, brc_error *err);

/* ---- fd -------------------------------- */

/* File descriptors: reads and writes that go on after a signal, and never a SIGPIPE. */

/* Some bytes, at most cap; *n 0 at the end. `name`: for messages, here and below. */
BRC_MUST_USE int brc_fd_read(int fd, void *to, size_t cap, size_t *n, const char *name, brc_error *err);
/* All bytes. A reader that has gone away is an error, BRC_EIO with EPIPE in its
 * detail, and not a signal, whatever the process does about SIGPIPE. */
BRC_MUST_USE int brc_fd_write(int fd, const void *from, size_t len, const char *name, brc_error *err);
/* Exactly len bytes of a regular file at this offset. A file that ends before has become shorter:
 * BRC_EINVAL says so. */
BRC_MUST_USE int brc_fd_read_at(int fd, void *to, size_t len, uint64_t at, const char *name, brc_error *err);
/* All bytes, to this offset. */
BRC_MUST_USE int brc_fd_write_at(int fd, const void *from, size_t len, uint64_t at, const char *name, brc_error *err);
/* One write(2), of some of the bytes and without a signal too; returns what write(2)
 * does. */
ptrdiff_t brc_fd_write_some(int fd, const void *from, size_t len);

#endif
