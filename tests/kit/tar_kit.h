/* Tar streams for tests: whole ones in memory, and members as an enemy writes them. */
#ifndef BRC_TESTS_TAR_KIT_H
#define BRC_TESTS_TAR_KIT_H

#include "../../src/xfer/tar/tar.h"

/* A sink that appends to `buf`. */
brc_tar_sink tar_kit_sink(brc_buf *buf);
/* A source of these bytes, `step` at a time (0: as many as are asked for). */
typedef struct tar_kit_bytes {
    const uint8_t *data;
    size_t len, step;
} tar_kit_bytes;
brc_tar_source tar_kit_source(tar_kit_bytes *bytes);

/* Appends a ustar header with this type flag and its bytes, padded; `size` is what the
 * header says. Names of at most 100 characters. */
void tar_kit_member(brc_buf *buf, char type, const char *name, const char *link, uint64_t size,
                    const void *bytes, size_t len);
void tar_kit_file(brc_buf *buf, const char *name, const char *text);
/* A member without bytes, with this text as its attribute BRC_TAR_RANGE. */
void tar_kit_range(brc_buf *buf, const char *name, const char *range);
/* The two blocks of zeros. */
void tar_kit_end(brc_buf *buf);

#endif
