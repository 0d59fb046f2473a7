/* What a registry holds, only for the files that make up the registry. */
#ifndef BRC_CODEC_REGISTRY_SLOTS_H
#define BRC_CODEC_REGISTRY_SLOTS_H

#include <stddef.h>

#include "../nd/dtype_registry.h"
#include "registry.h"

typedef struct brc_codec_slot {
    brc_codec_entry entry; /* its strings belong to the slot                      */
    brc_origin origin;
} brc_codec_slot;

typedef struct brc_impl_slot {
    brc_codec_impl impl;
    int usable; /* what its probe said when it was added                         */
    brc_origin origin;
} brc_impl_slot;

typedef struct brc_alias_slot {
    char *name;
    brc_codec_slot *codec;
    brc_origin origin;
} brc_alias_slot;

typedef struct brc_backend_slot {
    brc_backend backend; /* its strings belong to the slot                        */
    brc_origin origin;
} brc_backend_slot;

/* Each slot has memory of its own: chains and stores keep pointers to slots. */
struct brc_registry {
    brc_dtype_registry dtypes; /* first: see dtype_registry.h                     */
    brc_registrar by;
    brc_codec_slot **codecs; /* in the order in which they were added            */
    size_t ncodecs, codecs_cap;
    brc_alias_slot *aliases;
    size_t naliases, aliases_cap;
    brc_impl_slot **impls; /* by specification's name, then the highest rank first,
                                then as they were added                            */
    size_t nimpls, impls_cap;
    brc_backend_slot **backends; /* in the order in which they were added         */
    size_t nbackends, backends_cap;
    void **plugins; /* handles of shared objects, in the order of loading        */
    size_t nplugins, plugins_cap;
};
_Static_assert(offsetof(struct brc_registry, dtypes) == 0, "src/nd finds the data types there");

/* An empty registry. */
BRC_MUST_USE int brc_registry_new_empty(brc_registry **out, brc_error *err);
/* Removes what the plug-in of this number has added. */
void brc_registry_take_back(brc_registry *reg, size_t plugin);
/* registry_backend.c: of the backends. */
void brc_registry_take_back_backends(brc_registry *reg, size_t plugin);
void brc_registry_free_backends(brc_registry *reg);

#endif
