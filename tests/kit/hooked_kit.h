/* Files with arrays whose codec calls back (hook_codec.h). */
#ifndef BRC_TESTS_HOOKED_KIT_H
#define BRC_TESTS_HOOKED_KIT_H

#include "hook_codec.h"
#include "scenario.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
/* Chunks that zstd does not make smaller are stored as they are, and never decoded. */
#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define HOOKED_CODECS LITTLE "," HOOK_CODEC "," ZSTD

/* The registry and the pool of a handle that knows the codec. */
typedef struct hooked_parts {
    brc_registry *reg;
    brc_pool *pool;
} hooked_parts;

/* A new file. threads: of a pool of its own; 0: none. */
void hooked_file_start(scenario *t, hooked_parts *parts, unsigned threads);
/* Nothing calls back any more. */
void hooked_file_stop(scenario *t, hooked_parts *parts);
/* For hook_decode() and hook_encode(): adds 1 to an int. */
void hooked_count(void *ctx);

/* Two handles on one file, and an array of numbers: so that the second does something while the
 * first is at work. */
typedef struct hooked_kit {
    scenario first, second; /* the second does not wait for a lock */
    hooked_parts parts;
    brc_array *array;       /* "/a" of the first: int32, all -1, uncommitted */
} hooked_kit;

void hooked_start(hooked_kit *k, uint64_t length, uint64_t chunk);
/* The same on a copy of a file that has the array. */
void hooked_start_from(hooked_kit *k, const brc_buf *content);
void hooked_stop(hooked_kit *k);

#endif
