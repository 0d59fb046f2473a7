/* What a registry holds: for the files that make up the registry, nobody else. */
#ifndef BRC_CODEC_REGISTRY_SLOTS_H
#define BRC_CODEC_REGISTRY_SLOTS_H

#include <stdatomic.h>

#include "registry.h"

typedef struct brc_dtype_slot {
    brc_dtype_spec spec; /* its strings belong to the slot                       */
    int core;
    size_t plugin; /* the plug-in that added it, counted from 1; 0: none         */
} brc_dtype_slot;

typedef struct brc_codec_slot {
    brc_codec_entry entry;
    int core;
    size_t plugin;
} brc_codec_slot;

typedef struct brc_impl_slot {
    brc_codec_impl impl;
    int usable; /* what its probe said when it was added                         */
    int core;
    size_t plugin;
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
    void **plugins; /* handles of shared objects, in the order of loading        */
    size_t nplugins, plugins_cap;
    const char *loading; /* the plug-in whose entry point runs now; NULL: none   */
    int core; /* what is added now is breccia's own                              */
    atomic_int frozen;
};

/* Takes out what the plug-in of this number has added. */
void brc_registry_take_back(brc_registry *reg, size_t plugin);
/* Closes the shared objects, the last one first; nothing of theirs may be left. */
void brc_registry_close_plugins(brc_registry *reg);

/* The data type that the name means: its own name first, then families in the
 * order in which they were added. NULL: none. */
const brc_dtype_slot *brc_registry_dtype(const brc_registry *reg, const char *name);
/* Opens the slot's type under a name that it takes. */
BRC_MUST_USE int brc_dtype_bind(brc_dtype **out, const brc_registry *reg,
                                const brc_dtype_slot *slot, const char *name,
                                const brc_json *config, brc_error *err);

#endif
