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

/* The device that has the memory of a buffer: DLPack's numbers, other devices than these included.
 * Only the host is 0 here, so that it is the default; DLPack's 1 means the same. */
enum {
    BRC_MEMORY_HOST = 0,
    BRC_MEMORY_CUDA = 2,
    BRC_MEMORY_LOCKED = 3,  /* of the host, page-locked for CUDA                */
    BRC_MEMORY_MANAGED = 13 /* of CUDA, which the host reaches too              */
};

/* Counts what became of the elements of calls. A call adds to it; the caller sets it to zero. */
typedef struct brc_buffer_stats {
    size_t size;
    uint64_t direct;    /* chunks that were decoded straight into the caller's memory, or taken from it as they
                         * are                                                */
    uint64_t moved;     /* chunks that were copied within the host's memory, because they do not lie in one
                         * piece there, or the caller wants a part            */
    uint64_t copies;    /* copies between the host and a device                */
    uint64_t copied;    /* the bytes of these copies                           */
    uint64_t filled;    /* chunks that are not stored: the fill value, written by the memory's own means */
    uint64_t blocks;    /* pieces of memory that the call took from prototypes */
    uint64_t allocations; /* of these, those that the system had to give       */
    uint64_t spilled;   /* of these, those that are other memory than asked for, because the device was full */
    uint64_t there;     /* chunks of which codecs of the device decoded the last part */
} brc_buffer_stats;
#define BRC_BUFFER_STATS_INIT { sizeof(brc_buffer_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Memory of the caller that holds elements of a fixed size. The first selected element is `offset`
 * bytes after `data`. All elements must lie within the `len` bytes at `data`. */
typedef struct brc_buffer {
    size_t size;
    void *data;
    size_t len;
    size_t offset;
    const int64_t *strides; /* bytes from one element to the next along each axis of the selection, dropped
                             * axes included; may be negative. NULL: packed, from `offset` to the end */
    uint32_t device; /* BRC_MEMORY_*, or another number of DLPack: a buffer prototype of that device copies */
    uint32_t flags;  /* BRC_BUFFER_*                                          */
    void *owner;     /* for the caller: the object that keeps the memory alive */
    uint32_t device_id; /* which of these devices                             */
    uint32_t reserved;  /* 0                                                  */
    const char *prototype; /* the buffer prototype that copies, by name; NULL: the first of the registry that has
                            * the device. Memory of the host needs none       */
    void *stream;    /* the stream of the device in which the copies are made; NULL: its default */
} brc_buffer;
#define BRC_BUFFER_INIT { sizeof(brc_buffer), 0, 0, 0, 0, BRC_MEMORY_HOST, 0, 0, 0, 0, 0, 0 }
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
    brc_buffer_stats *stats; /* NULL: nothing is counted                      */
} brc_io;
#define BRC_IO_INIT { sizeof(brc_io), 0, 0, 0, 0, 0, 0 }

/* ---- tensors ------------------------------------------------------------------------- */

/* Elements of a fixed size in memory of any kind. Tensors are counted: they may be freed on any
 * thread, and after the repository and the registry. */
typedef struct brc_tensor brc_tensor;

/* A description of a tensor, which belongs to the tensor. */
typedef struct brc_tensor_info {
    size_t size;
    void *data;          /* the first element; an address of the device unless BRC_TENSOR_HOST */
    uint64_t bytes;      /* of all elements                                   */
    int ndim;
    uint32_t flags;      /* BRC_TENSOR_*                                      */
    const uint64_t *shape;
    const int64_t *strides; /* in bytes                                       */
    uint32_t item_size;
    uint32_t device;     /* BRC_MEMORY_*, or another number of DLPack         */
    uint32_t device_id;
    uint32_t reserved;   /* 0                                                 */
    const char *dtype;   /* the name in zarr.json, as of brc_array_info; "": DLPack has no name for it */
    const char *prototype; /* that allocated it; "": memory of others         */
} brc_tensor_info;
enum {
    BRC_TENSOR_HOST = 1,     /* the processor may read the memory             */
    BRC_TENSOR_READONLY = 2,
    BRC_TENSOR_SPILLED = 4   /* the device was full: this is other memory     */
};

/* Options of a read or a write. */
typedef struct brc_tensor_opts {
    size_t size;
    const brc_sel *sel;  /* a box; NULL: the whole array, or `at`             */
    const brc_at *at;    /* positions; NULL: none                             */
    const char *prototype; /* the memory of the result: "pool", "cuda", or "cuda:1" for the device of that number;
                          * NULL: that of the array, else of the repository, else "host" */
    void *stream;        /* of the device                                     */
    uint32_t flags;      /* BRC_READ_*                                        */
    uint32_t reserved;   /* 0                                                 */
    brc_buffer_stats *stats; /* NULL: nothing is counted                      */
} brc_tensor_opts;
#define BRC_TENSOR_OPTS_INIT { sizeof(brc_tensor_opts), 0, 0, 0, 0, 0, 0, 0 }
enum {
    BRC_READ_SPILL = 1,  /* if the device is full, the result may be in other memory, as the tensor then says */
    BRC_READ_NOW = 2     /* brc_arrow_stream(): everything is read before the call returns */
};
enum { BRC_DLPACK_OLD = 1 }; /* a DLManagedTensor, as before DLPack 1.0     */

/* The structures of DLPack and of the Arrow C data interface, which others define too. */
struct ArrowSchema;
struct ArrowArray;
struct ArrowArrayStream;

#ifdef __cplusplus
}
#endif

#endif
