/*
 * The format of a pack: stored bytes of many objects in one file, which is only appended to.
 *
 *      offset  bytes
 *      0       8      "BRCpack1"
 *      8       32     the repository's id, in hexadecimal digits
 *      40      8      the configuration's pack_bytes: collections of other configurations leave the pack alone
 *      48      8      0
 *      56      8      XXH3-64 of the bytes before
 *      64             records, each at a multiple of 8
 *
 * A record:
 *
 *      0       4      "BRCr"
 *      4       4      0
 *      8       8      number of stored bytes
 *      16      8      their checksum, as in the object's row
 *      24      32     the object's id
 *      56      8      XXH3-64 of the bytes before
 *      64             the stored bytes, then 0 to 7 zeros
 *
 * Numbers are little-endian. An object's row has the offset of its stored bytes. A killed writer may leave a record
 * without its bytes, or bytes without a record; later records follow at the next multiple of 8. So a reader without
 * the rows searches for records, and believes one if its bytes have its checksum.
 */
#ifndef BRC_BACKENDS_PACK_FILE_H
#define BRC_BACKENDS_PACK_FILE_H

#include "../breccia_backend.h"

#define BRC_PACK_HEAD 64
#define BRC_PACK_RECORD 64
#define BRC_PACK_ID 32
/* The remedy in messages about a pack that is damaged or missing. */
#define BRC_PACK_REMEDY                                                                          \
    "put a whole copy of it back, or take good chunks from another repository or a Zarr directory " \
    "('breccia fsck FILE --repair --from OTHER')"

/* Writes the first bytes of a pack. `id` has at most 32 characters. */
void brc_pack_head(uint8_t head[BRC_PACK_HEAD], const char *id, uint64_t pack_bytes);
/* Returns 1 if these are the first bytes of a pack of the repository. */
int brc_pack_is_head(const uint8_t head[BRC_PACK_HEAD], const char *id);
/* The same, and of a configuration with these pack_bytes. */
int brc_pack_is_head_of(const uint8_t head[BRC_PACK_HEAD], const char *id, uint64_t pack_bytes);

/* Returns how many bytes a record of `len` stored bytes takes, or 0 if there is no number for it. */
uint64_t brc_pack_room(uint64_t len);

/* Writes the record of an object into memory of brc_pack_room() bytes. */
void brc_pack_record(uint8_t *to, const brc_stored *item);

/* Writes the records of n objects into an open pack from `offset` on, a multiple of 8. Returns 0 or an errno. */
int brc_pack_write(int fd, uint64_t offset, size_t n, brc_stored *const *items);
/* Reads the stored bytes of n objects, which lie in an open pack in the order of their offsets. Sets each status to
 * BRC_OK, to BRC_ECORRUPT if the pack ends before, or to BRC_EIO, and then *why to the errno. */
void brc_pack_read(int fd, size_t n, brc_stored *const *items, int *why);

/* Calls read() for each run of objects that lie in one place, in the order of their offsets. read() gets `state`, and its
 * result is the status of all objects of the run for which it sets none. The result and err are those of the first
 * run that fails. */
int brc_pack_fetch(size_t n, brc_stored *const *items,
                   int (*read)(void *state, size_t n, brc_stored *const *items, brc_error *err), void *state,
                   brc_error *err);

#endif
