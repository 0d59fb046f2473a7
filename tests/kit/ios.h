/* Packed memory as a brc_io takes it, for as long as the block lasts. */
#ifndef BRC_TESTS_IOS_H
#define BRC_TESTS_IOS_H

#include "../../src/breccia.h"

#define PACKED(memory, bytes) \
    &(brc_buffer){ .size = sizeof(brc_buffer), .data = (memory), .len = (bytes) }
#define IO_OF(array_, sel_, memory, bytes) \
    { .size = sizeof(brc_io), .array = (array_), .sel = (sel_), .buffer = PACKED(memory, bytes) }

/* The same with a buffer of the caller's, for items that are made in a loop. */
static inline brc_io io_in(brc_buffer *room, brc_array *array, const brc_sel *sel, void *memory,
                           size_t bytes)
{
    *room = (brc_buffer){ .size = sizeof(*room), .data = memory, .len = bytes };
    return (brc_io){ .size = sizeof(brc_io), .array = array, .sel = sel, .buffer = room };
}

/* Selects the whole array. */
static inline void sel_all(brc_sel *out, const brc_array *a)
{
    const int rc = brc_sel_parse(out, a, NULL, NULL);
    (void)rc; /* the call that takes the selection says if its size is wrong */
}

/* Appends the selected elements, of any data type. */
static inline int io_elements(brc_array *a, const brc_sel *sel, brc_buf *out, brc_error *err)
{
    const brc_io io = {.size = sizeof(io), .array = a, .sel = sel, .out = out};
    return brc_read(&io, 1, err);
}

/* Elements at positions read into memory, and written from it. */
static inline int io_take(brc_array *a, const brc_at *at, const brc_buffer *dst, brc_error *err)
{
    const brc_io io = {.size = sizeof(io), .array = a, .at = at, .buffer = dst};
    return brc_read(&io, 1, err);
}

static inline int io_place(brc_array *a, const brc_at *at, const brc_buffer *src, brc_error *err)
{
    const brc_io io = {.size = sizeof(io), .array = a, .at = at, .buffer = src};
    return brc_write(&io, 1, err);
}

#endif
