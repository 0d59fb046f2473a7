/* Files and directories, outside the repository's own file. */
#ifndef BRC_BASE_FILE_H
#define BRC_BASE_FILE_H

#include "buf.h"

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

#endif
