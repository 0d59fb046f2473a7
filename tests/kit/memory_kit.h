/* Repositories whose registry has memory of all kinds: the host's, a device that is none (tests/plugins/device.c), and
 * CUDA's over a driver that is none (tests/plugins/cuda.c). */
#ifndef BRC_TESTS_MEMORY_KIT_H
#define BRC_TESTS_MEMORY_KIT_H

#include "scenario.h"

#define DEVICE "org.example.device"

typedef struct memory_kind {
    const char *name;
    uint32_t device;
    int is_host;
} memory_kind;
enum { MEMORY_KINDS = 6 };
extern const memory_kind memory_kinds[MEMORY_KINDS];

typedef struct memory_kit {
    scenario t;
    brc_registry *reg;
    brc_pool *pool;
    void *device, *cuda, *nvcomp; /* the shared objects, for memory_count() */
} memory_kit;

/* threads: of a pool of its own; 0: none. `prototype`: that of the repository, or NULL. */
void memory_start(memory_kit *k, unsigned threads, const char *prototype);
/* The same with codecs of nvCOMP, by a library of tests/plugins ("nvcomp5"); `pins`: they are pinned. */
void memory_start_nvcomp(memory_kit *k, unsigned threads, const char *library, int pins);
void memory_stop(memory_kit *k);
/* Frees everything but the plug-ins, and counts nothing. */
void memory_close(memory_kit *k);
/* A counter of a plug-in. */
unsigned long *memory_count(void *plugin, const char *name);

/* Reads a selection ("[1:5]"; NULL: all) of an array into memory of a kind. */
brc_tensor *memory_read(memory_kit *k, brc_array *a, const char *slice, const char *kind, brc_buffer_stats *stats);
/* The bytes of a tensor, packed; the caller frees them. */
void *memory_bytes(memory_kit *k, brc_tensor *t);
/* The tensor must have the same elements as the selection has by brc_array_read(). */
void memory_same(memory_kit *k, brc_array *a, const char *slice, brc_tensor *t);

#endif
