/* Writes a file or directory under a temporary name beside its final one, and renames it when it is complete. Every
 * output goes through these functions, which refuse to write over the repository. */
#ifndef BRC_XFER_DEST_H
#define BRC_XFER_DEST_H

#include "../base/error.h"

typedef struct brc_dest {
    char *path; /* without slashes at the end */
    char *temp; /* NULL: nothing to remove    */
    int in_place; /* a pipe, a device or a link such as /dev/stdout, which is written in place */
} brc_dest;

/* Chooses the temporary name; creates nothing yet. BRC_EEXISTS if there is something at `path`, unless `replace`;
 * BRC_EINVAL if the file belongs to the repository. */
BRC_MUST_USE int brc_dest_open(brc_dest *out, const brc_session *s, const char *path, int replace,
                               brc_error *err);
BRC_MUST_USE int brc_dest_finish(brc_dest *dest, int replace, brc_error *err);
/* Removes an unfinished output. */
void brc_dest_close(brc_dest *dest);

#endif
