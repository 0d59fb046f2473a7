/* What a registry holds: for the files that make up the registry, nobody else. */
#ifndef BRC_CODEC_REGISTRY_SLOTS_H
#define BRC_CODEC_REGISTRY_SLOTS_H

#include <stdatomic.h>

#include "registry.h"

typedef struct brc_dtype_slot {
    brc_dtype_spec spec; /* its strings belong to the slot                       */
    int core;
} brc_dtype_slot;

typedef struct brc_codec_slot {
    brc_codec_entry entry;
    int core;
} brc_codec_slot;

typedef struct brc_impl_slot {
    brc_codec_impl impl;
    int usable; /* what its probe said when it was added                         */
    int core;
} brc_impl_slot;

/* Each slot has memory of its own: chains and data types keep pointers to slots. */
struct brc_registry {
    brc_dtype_slot **dtypes; /* in the order in which they were added            */
    size_t ndtypes, dtypes_cap;
    brc_codec_slot **codecs;
    size_t ncodecs, codecs_cap;
    brc_impl_slot **impls; /* by specification's name, then the highest rank first,
                              then as they were added                            */
    size_t nimpls, impls_cap;
    int core; /* what is added now is breccia's own                              */
    atomic_int frozen;
};

/* The data type that the name means: its own name first, then families in the
 * order in which they were added. NULL: none. */
const brc_dtype_slot *brc_registry_dtype(const brc_registry *reg, const char *name);

#endif
