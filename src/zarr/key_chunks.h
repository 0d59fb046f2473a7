/*
 * The chunk keys of one array, one after the other, as far as they begin with a text. They are looked
 * up as they are asked for: the array may be changed in the meantime, and what is written
 * behind the place that has been reached is among them.
 */
#ifndef BRC_ZARR_KEY_CHUNKS_H
#define BRC_ZARR_KEY_CHUNKS_H

#include "outer_cursor.h"

typedef struct brc_key_chunks {
    brc_array *array;        /* NULL: it is not open                              */
    char *prefix;            /* which keys begin with, within the array           */
    int ndim;
    int nfixed;              /* the prefix says these leading indexes:            */
    uint64_t fixed[BRC_MAX_NDIM];
    brc_outer_cursor cursor; /* of the array as it was then:                      */
    int has_cursor;
    uint64_t version, changes;
    int any;                 /* a place has been reached:                         */
    uint64_t last[BRC_MAX_NDIM];
} brc_key_chunks;

/* `prefix`: of keys as brc_chunk_key_format() gives them. BRC_ENOTFOUND if there is no such array. */
BRC_MUST_USE int brc_key_chunks_open(brc_key_chunks *c, brc_session *s, const char *path, const char *prefix, brc_error *err);
void brc_key_chunks_close(brc_key_chunks *c);
/* A read transaction for some steps: 1, or 0 if the array is gone or is another one. */
BRC_MUST_USE int brc_key_chunks_begin(brc_key_chunks *c, brc_error *err);
void brc_key_chunks_end(brc_key_chunks *c);
/* 1 with the next key in `key`, 0 at the end. */
BRC_MUST_USE int brc_key_chunks_next(brc_key_chunks *c, brc_buf *key, brc_error *err);
/* Past all keys that have the first `n` indexes of the last one. */
void brc_key_chunks_skip(brc_key_chunks *c, int n);

#endif
