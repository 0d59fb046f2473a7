/* Three versions of an array, its chunks merged, and the result as a node "/m". */
#ifndef BRC_TESTS_MERGE_KIT_H
#define BRC_TESTS_MERGE_KIT_H

#include "../../src/merge/merge_chunks.h"
#include "scenario.h"

/* Elements are numbers of the values that the test gives the kit. */
#define MERGE_VALUES 4
#define MERGE_ELEMENTS 4096

typedef struct merge_type {
    const char *dtype, *to_bytes; /* as zarr.json has them                     */
    const char *values[MERGE_VALUES];
} merge_type;

typedef struct merge_version {
    int is_there, ndim;
    uint64_t shape[BRC_MAX_NDIM], chunk[BRC_MAX_NDIM];
    uint64_t shard; /* chunks in a shard along each axis; 0: no shards           */
    int fill;
    const char *more; /* codecs behind the others: ",{...}"; NULL: none         */
    uint8_t values[MERGE_ELEMENTS]; /* in C order */
} merge_version;

typedef struct merge_kit {
    scenario t;
    const merge_type *type;
    merge_version v[BRC_SIDES];
    brc_entry side[BRC_SIDES];
    /* what the next merge is like */
    unsigned stored;
    int swapped, favour, is_trial, stops_after;
    int (*unknown)(void *ctx, brc_span key, brc_span *mask, brc_error *err);
    /* what the last has said */
    brc_chunk_merge merge;
    brc_buf keys;        /* chunk() was called with these: length, key, id      */
    size_t calls, conflicts, kinds[BRC_CHUNK_LOST + 1];
    uint64_t elements;   /* of all conflicts                                    */
    uint64_t first[BRC_MAX_NDIM], last[BRC_MAX_NDIM]; /* of the last of them    */
    brc_buf mask;
} merge_kit;

void merge_kit_start(merge_kit *k, const merge_type *type);
void merge_kit_stop(merge_kit *k);
/* One version as the session's "/a", and its entry. */
void merge_kit_store(merge_kit *k, int side);
/* The entry that the session's "/a" has now, committed. */
void merge_kit_keep(merge_kit *k, int side);
/* Merges into an array of this shape and fill value. */
int merge_kit_try(merge_kit *k, const merge_version *result);
/* The same, which succeeds and makes "/m". */
void merge_kit_run(merge_kit *k, const merge_version *result);
/* "/m" has these elements. */
void merge_kit_check(merge_kit *k, const merge_version *want, const char *label);

#endif
