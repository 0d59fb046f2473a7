/*
 * Memory of regions that the processor does not reach: elements are copied there, and from there, by a buffer
 * prototype. Chunks are decoded into staging memory of the host, which is used again once the copies from it are
 * done.
 */
#ifndef BRC_ZARR_DEVICE_H
#define BRC_ZARR_DEVICE_H

#include "../../codec/prototypes.h"
#include "../../nd/shape.h"
#include "array.h"

typedef struct brc_device {
    brc_prototype *by; /* NULL: the memory is the host's                        */
    brc_block block;
    size_t origin;     /* of the first element in the block                     */
    void *stream;
    brc_buffer_stats *stats; /* NULL: nothing is counted                        */
} brc_device;

/* Adds to a count, on any thread. */
static inline void brc_count(uint64_t *n, uint64_t more)
{
    (void)__atomic_fetch_add(n, more, __ATOMIC_RELAXED);
}

/* Fails with BRC_EINVAL if the caller's structure cannot be counted in. */
BRC_MUST_USE int brc_stats_check(const brc_buffer_stats *stats, brc_error *err);
/* Sets the device of a memory; out->by is NULL if the processor reaches the memory. BRC_EUNSUPPORTED: no prototype
 * of the registry copies there. The registry must outlive `out`. */
BRC_MUST_USE int brc_device_of(brc_device *out, const brc_array *a, const brc_memory *memory, brc_buffer_stats *stats,
                               brc_error *err);
/* Copies a box of elements to the device, or from there. `at` and `strides` are of the device's memory, from the first
 * element of the region. The copies may not be done when these return. */
BRC_MUST_USE int brc_device_put(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                                const int64_t *strides, const uint8_t *host, const int64_t *host_strides, brc_error *err);
BRC_MUST_USE int brc_device_get(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                                const int64_t *strides, uint8_t *host, const int64_t *host_strides, brc_error *err);
/* Writes one element everywhere in the box, likewise. */
BRC_MUST_USE int brc_device_fill(const brc_device *d, int ndim, const uint64_t *count, size_t item, int64_t at,
                                 const int64_t *strides, const uint8_t *element, brc_error *err);
/* Waits for all that was started. */
BRC_MUST_USE int brc_device_wait(const brc_device *d, brc_error *err);

/* ---- staging -------------------------------- */

typedef struct brc_staging brc_staging;
typedef struct brc_stage brc_stage;

/* Makes staging memory for copies to a device by so many threads: of the host, or of the device itself for what is
 * decoded there. */
BRC_MUST_USE int brc_staging_new(brc_staging **out, const brc_device *device, const brc_registry *reg, unsigned threads,
                                 brc_error *err);
BRC_MUST_USE int brc_staging_there(brc_staging **out, const brc_device *device, unsigned threads, brc_error *err);
/* Takes `len` bytes of it from which nothing is being copied. Any thread, which has at most two pieces of a device's. */
BRC_MUST_USE int brc_staging_take(brc_staging *s, size_t len, brc_stage **out, uint8_t **memory, brc_error *err);
/* Gives them back, once all copies from there have been started. */
BRC_MUST_USE int brc_staging_give(brc_staging *s, brc_stage *stage, brc_error *err);
/* Waits for all copies and frees the memory. Returns `rc`, or if that is BRC_OK an error of the copies. s NULL: returns
 * rc. */
int brc_staging_end(brc_staging *s, int rc, brc_error *err);
/* Copies bytes to a stage of the device's memory, as brc_device_put() does. */
BRC_MUST_USE int brc_stage_put(const brc_staging *s, const brc_stage *stage, brc_span from, brc_error *err);

#endif
