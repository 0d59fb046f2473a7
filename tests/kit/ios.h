/* Packed memory as a brc_io takes it, for as long as the block lasts. */
#ifndef BRC_TESTS_IOS_H
#define BRC_TESTS_IOS_H

#include "../../src/breccia.h"

#define PACKED(memory, bytes) \
    &(brc_buffer){ .size = sizeof(brc_buffer), .data = (memory), .len = (bytes) }
#define IO_OF(array, sel, memory, bytes) { sizeof(brc_io), array, sel, PACKED(memory, bytes), NULL }

/* The same with a buffer of the caller's, for items that are made in a loop. */
static inline brc_io io_in(brc_buffer *room, brc_array *array, const brc_sel *sel, void *memory,
                           size_t bytes)
{
    *room = (brc_buffer){ .size = sizeof(*room), .data = memory, .len = bytes };
    return (brc_io){ sizeof(brc_io), array, sel, room, NULL };
}

#endif
