/* Two handles on one file, and an array of numbers whose codec calls back (hook_codec.h): so that
 * the second does something while the first is at work. */
#ifndef BRC_TESTS_HOOKED_KIT_H
#define BRC_TESTS_HOOKED_KIT_H

#include "hook_codec.h"
#include "scenario.h"

#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define HOOKED_CODECS \
    LITTLE "," HOOK_CODEC ",{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"

typedef struct hooked_kit {
    scenario first, second; /* the second does not wait for a lock */
    brc_registry *reg;
    brc_array *array;       /* "/a" of the first: int32, all -1, uncommitted */
} hooked_kit;

void hooked_start(hooked_kit *k, uint64_t length, uint64_t chunk);
void hooked_stop(hooked_kit *k);

#endif
