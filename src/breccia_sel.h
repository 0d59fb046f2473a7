/*
 * breccia_sel.h - where elements are: selections of an array, and memory of the caller's.
 * breccia.h includes it. How structures of different versions go together is in breccia_types.h.
 */
#ifndef BRECCIA_SEL_H
#define BRECCIA_SEL_H

#include "breccia_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A box with steps.  brc_sel_parse() reads Python's "[0:10, :, ::2]". */
typedef struct brc_sel {
    size_t size;
    int ndim;
    uint32_t drop; /* bit i: axis i has an integer index and is not in the result's shape */
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM];
} brc_sel;
#define BRC_SEL_INIT { sizeof(brc_sel), 0, 0, { 0 }, { 0 }, { 0 } }

/* Where a buffer's memory is. */
enum { BRC_MEMORY_HOST = 0 };

/* Memory of the caller's with elements of a fixed size: the first selected one lies `offset`
 * bytes after data. All must lie within the `len` bytes at data. */
typedef struct brc_buffer {
    size_t size;
    void *data;
    size_t len;
    size_t offset;
    const int64_t *strides; /* bytes from one element to the next along each of the selection's
                               axes, dropped ones included, also negative; NULL: packed, from
                               offset to the end */
    uint32_t device; /* BRC_MEMORY_*; others than the host's are BRC_EUNSUPPORTED */
    uint32_t flags;  /* BRC_BUFFER_*                                          */
    void *owner;     /* yours: who keeps the memory alive                     */
} brc_buffer;
#define BRC_BUFFER_INIT { sizeof(brc_buffer), 0, 0, 0, 0, BRC_MEMORY_HOST, 0, 0 }
enum { BRC_BUFFER_READONLY = 1 }; /* nothing is to be read into it           */

/* Elements by their positions: along each axis those in an index array of `count` numbers, which count from
 * the end where they are negative and may repeat, or, where it is NULL, start, start + step, ... What is
 * selected is the product of the axes. BRC_AT_POINTS: element k has the k-th number of each index array;
 * all have as many, and memory has one axis. Index arrays are yours, and are only read. */
typedef struct brc_at {
    size_t size;
    int ndim;
    uint32_t flags; /* BRC_AT_*                                               */
    const int64_t *index[BRC_MAX_NDIM];
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM];
} brc_at;
#define BRC_AT_INIT { sizeof(brc_at), 0, 0, { 0 }, { 0 }, { 0 }, { 0 } }
enum { BRC_AT_POINTS = 1 };

/* One read or write of a batch. */
typedef struct brc_io {
    size_t size;
    brc_array *array;
    const brc_sel *sel; /* NULL: the whole array, or `at`                     */
    const brc_buffer *buffer;
    const brc_at *at;   /* positions in place of a box; NULL: none            */
} brc_io;
#define BRC_IO_INIT { sizeof(brc_io), 0, 0, 0, 0 }

#ifdef __cplusplus
}
#endif

#endif
