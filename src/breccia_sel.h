/*
 * breccia_sel.h - selections of an array's elements, and memory of the caller.
 * breccia.h includes it. breccia_types.h says how versions of the structures work together.
 */
#ifndef BRECCIA_SEL_H
#define BRECCIA_SEL_H

#include "breccia_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A box with steps. brc_sel_parse() reads one from Python's "[0:10, :, ::2]". */
typedef struct brc_sel {
    size_t size;
    int ndim;
    uint32_t drop; /* bit i: axis i has an integer index and is left out of the result's shape */
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM];
} brc_sel;
#define BRC_SEL_INIT { sizeof(brc_sel), 0, 0, { 0 }, { 0 }, { 0 } }

/* The device that has the memory of a buffer. */
enum { BRC_MEMORY_HOST = 0 };

/* Memory of the caller that holds elements of a fixed size. The first selected element is `offset`
 * bytes after `data`. All elements must lie within the `len` bytes at `data`. */
typedef struct brc_buffer {
    size_t size;
    void *data;
    size_t len;
    size_t offset;
    const int64_t *strides; /* bytes from one element to the next along each axis of the selection, dropped
                             * axes included; may be negative. NULL: packed, from `offset` to the end */
    uint32_t device; /* BRC_MEMORY_*; other devices than the host are BRC_EUNSUPPORTED */
    uint32_t flags;  /* BRC_BUFFER_*                                          */
    void *owner;     /* for the caller: the object that keeps the memory alive */
} brc_buffer;
#define BRC_BUFFER_INIT { sizeof(brc_buffer), 0, 0, 0, 0, BRC_MEMORY_HOST, 0, 0 }
enum { BRC_BUFFER_READONLY = 1 }; /* the library must not read elements into it */

/* Positions of elements. Along each axis they are the `count` numbers of an index array, which
 * count from the end if they are negative and may repeat, or, if the index array is NULL, start,
 * start + step and so on. The selection is the product of the axes. With BRC_AT_POINTS, element k
 * is at the k-th number of each index array; all index arrays have the same length, and the memory
 * has one axis. The library only reads the index arrays, which belong to the caller. */
typedef struct brc_at {
    size_t size;
    int ndim;
    uint32_t flags; /* BRC_AT_*                                               */
    const int64_t *index[BRC_MAX_NDIM];
    uint64_t start[BRC_MAX_NDIM], count[BRC_MAX_NDIM], step[BRC_MAX_NDIM];
} brc_at;
#define BRC_AT_INIT { sizeof(brc_at), 0, 0, { 0 }, { 0 }, { 0 }, { 0 } }
enum { BRC_AT_POINTS = 1 };

/* One read or write of elements: which ones, and where they are in memory. */
typedef struct brc_io {
    size_t size;
    brc_array *array;
    const brc_sel *sel; /* NULL: the whole array, or `at`                     */
    const brc_buffer *buffer; /* NULL: `out`                                  */
    const brc_at *at;   /* positions instead of a box; NULL: none             */
    brc_buf *out;       /* reads of any data type: the elements are appended here in the form that
                         * brc_array_write() takes; NULL: `buffer`            */
} brc_io;
#define BRC_IO_INIT { sizeof(brc_io), 0, 0, 0, 0, 0 }

#ifdef __cplusplus
}
#endif

#endif
