/* Files and directories, outside the repository's own file. */
#ifndef BRC_BASE_FILE_H
#define BRC_BASE_FILE_H

#include "buf.h"
#include "error.h"

/* ---- file -------------------------------- */

/* Appends the whole file. BRC_ENOTFOUND if the file does not exist; BRC_ELIMIT if it is longer than buf->limit allows. */
BRC_MUST_USE int brc_file_read(brc_buf *out, const char *path, brc_error *err);
/* Writes a new file; BRC_EEXISTS if it exists already. */
BRC_MUST_USE int brc_file_write(const char *path, const void *data, size_t len, brc_error *err);
/* Makes the directory, whose parents must exist. BRC_EEXISTS if it exists already. */
BRC_MUST_USE int brc_dir_make(const char *path, brc_error *err);
/* Makes the missing directories above the file `path`, except those in its first `root` characters. */
BRC_MUST_USE int brc_dir_make_parents(const char *path, size_t root, brc_error *err);
/* Returns 1 for a directory, 2 for a regular file, 3 for something else, 0 if nothing is there. */
int brc_file_kind(const char *path);
/* Calls `found` with each name in the directory, sorted, without "." and "..". */
BRC_MUST_USE int brc_dir_each(const char *path, int (*found)(void *ctx, const char *name, brc_error *err), void *ctx, brc_error *err);
/* Does the same, and calls `check` every thousand names, because a directory may have millions of names. A
 * negative result of `check` ends the walk and is returned. */
typedef struct brc_dir_check {
    int (*check)(void *ctx, brc_error *err);
    void *ctx;
} brc_dir_check;
BRC_MUST_USE int brc_dir_each_checked(const char *path, int (*found)(void *ctx, const char *name, brc_error *err), void *ctx,
                                      const brc_dir_check *check, brc_error *err);
/* Removes a tree of files and directories that the library made. Does not follow links. */
void brc_tree_remove(const char *path);
/* Makes "<dir>/<name>", which the caller frees. */
BRC_MUST_USE int brc_path_join(char **out, const char *dir, const char *name, brc_error *err);

/* ---- fd -------------------------------- */

/* File descriptors: reads and writes that go on after a signal, and never a SIGPIPE. */

/* Reads some bytes, at most cap; *n is 0 at the end. `name`: for messages, here and below. */
BRC_MUST_USE int brc_fd_read(int fd, void *to, size_t cap, size_t *n, const char *name, brc_error *err);
/* Writes all bytes. A reader that has gone away gives an error (BRC_EIO with EPIPE in its
 * detail) instead of a signal, whatever the process does about SIGPIPE. */
BRC_MUST_USE int brc_fd_write(int fd, const void *from, size_t len, const char *name, brc_error *err);
/* Reads exactly len bytes of a regular file at this offset. BRC_EINVAL if the file ends before: it has
 * become shorter. */
BRC_MUST_USE int brc_fd_read_at(int fd, void *to, size_t len, uint64_t at, const char *name, brc_error *err);
/* Writes all bytes to this offset. */
BRC_MUST_USE int brc_fd_write_at(int fd, const void *from, size_t len, uint64_t at, const char *name, brc_error *err);
/* Does one write(2) of some of the bytes, without a signal. Returns the result of write(2). */
ptrdiff_t brc_fd_write_some(int fd, const void *from, size_t len);

#endif
