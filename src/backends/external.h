/*
 * The names that the backend "external" gives to files of others, as places:
 *
 *      SIZE TIME PATH              one file
 *      [N,N,...]S TIME STEM        a file for each chunk of a grid of N x N x ... chunks
 *
 * SIZE is the file's size in bytes and TIME the time of its last change in nanoseconds since 1970-01-01 UTC, both in
 * decimal, as they were when the file was imported. PATH begins with "/", or is relative to the folder of the
 * repository's file. It has no part that is empty, "." or "..".
 *
 * The path of a chunk's file is STEM, then the chunk's index, with S ("/" or ".") between the numbers. An object is
 * a whole file, so the files' sizes are those of the objects, and its offset is the number of the file in row-major
 * order. TIME is that of the file that was changed last.
 */
#ifndef BRC_BACKENDS_EXTERNAL_H
#define BRC_BACKENDS_EXTERNAL_H

#include <sys/stat.h>

#include "../breccia_backend.h"

#define BRC_EXTERNAL "external"
#define BRC_EXTERNAL_SPEC "{\"name\":\"external\"}"

#define BRC_EXTERNAL_PATH 8192 /* the most bytes of a path, with its NUL */

typedef struct brc_external_name {
    int ndim;         /* of the grid of files; 0: one file */
    uint64_t count[BRC_MAX_NDIM];
    char separator;   /* S */
    uint64_t size;    /* of the one file */
    int64_t time_ns;
    const char *path; /* PATH or STEM, in the name that was read */
} brc_external_name;

/* Reads a place's name. Returns 0 if the name is not in the form above: names in a file may be a stranger's. */
int brc_external_parse(brc_external_name *out, const char *place);
/* Appends a place's name, without a NUL. BRC_EINVAL if no place can have this path. */
BRC_MUST_USE int brc_external_write(brc_buf *out, const brc_external_name *name, brc_error *err);
/* Writes the path of the file of an object at this offset, with `folder`, that of the repository's file, if the path is
 * relative. Returns 0 if the path is too long or the grid has no such file. */
int brc_external_path(char path[BRC_EXTERNAL_PATH], const char *folder, const brc_external_name *name, uint64_t offset);
/* Returns 1 if a file with this time can be the one of the name. */
int brc_external_is_time(const brc_external_name *name, int64_t time_ns);
/* Returns the time of a file's last change, in nanoseconds. */
int64_t brc_external_time(const struct stat *file);
/* Opens a regular file and describes it. Never waits, and opens nothing but a regular file. Returns the descriptor,
 * or -1 with *why set to an errno, or to 0 if the path is not that of a regular file. */
int brc_external_open(const char *path, struct stat *file, int *why);
/* Finds the folder of a repository's file, with a "/" at its end, without symbolic links. The caller frees it; NULL:
 * no memory. */
char *brc_external_folder(const char *file);

#endif
