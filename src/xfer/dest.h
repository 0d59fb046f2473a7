/* A file or directory that is written under a temporary name beside its final one, and
 * renamed when it is complete. Every output goes through here, which refuses to write over
 * the repository. */
#ifndef BRC_XFER_DEST_H
#define BRC_XFER_DEST_H

#include "../base/error.h"

typedef struct brc_dest {
    char *path; /* without slashes at its end */
    char *temp; /* NULL: nothing to remove    */
    int in_place; /* a pipe, a device or a link such as /dev/stdout: written to as it is */
} brc_dest;

/* Chooses the temporary name; nothing is made yet. BRC_EEXISTS if there is
 * something at `path`, unless `replace`; BRC_EINVAL if it is the repository's. */
BRC_MUST_USE int brc_dest_open(brc_dest *out, const brc_session *s, const char *path, int replace,
                               brc_error *err);
BRC_MUST_USE int brc_dest_finish(brc_dest *dest, int replace, brc_error *err);
/* Removes what is unfinished. */
void brc_dest_close(brc_dest *dest);

#endif
