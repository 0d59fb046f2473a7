/* An array that is cut, or gets chunks of another shape, in many transactions. */
#ifndef BRC_TESTS_REPLACE_KIT_H
#define BRC_TESTS_REPLACE_KIT_H

#include "hooked_kit.h"

#define SHARDS                                                                                   \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[32],"                   \
    "\"codecs\":[" HOOKED_CODECS "],\"index_codecs\":[" LITTLE ",{\"name\":\"crc32c\"}]}}]"

/* More chunks than one transaction goes through; the new end cuts one. */
enum { CHUNK = 64, INNER = 32, LENGTH = 9000 * CHUNK + 7, SHORT = 5000 * CHUNK + 5 };

/* The file of all tests is made once, in an unchecked fixture, and each gets a copy. The elements
 * are 0, 1, 2 ... and uncommitted. */
void replace_make_base(void);
void replace_drop_base(void);
void replace_start(hooked_kit *k);
/* Its chunks are committed, or, uncommitted, some of them laid over others. */
void replace_begin_as(hooked_kit *k, int uncommitted);
/* Cuts it to SHORT, or makes shards of its chunks. */
int replace_change(hooked_kit *k, int cuts);

/* The array has this length, and its elements but for one, which is 7 (-1: none). */
void replace_check_elements(scenario *t, uint64_t length, int32_t seven);
uint64_t replace_chunk_length(hooked_kit *k);
/* There is no private draft and no node but the array. */
void replace_check_drafts(hooked_kit *k);

#endif
