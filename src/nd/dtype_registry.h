/*
 * Data types by name. A brc_registry begins with one of these: so data types that hold
 * others find them in the registry that they are opened with, and nothing in this layer
 * knows what else is in it.
 */
#ifndef BRC_ND_DTYPE_REGISTRY_H
#define BRC_ND_DTYPE_REGISTRY_H

#include "dtype.h"
#include "registrar.h"

/* Each slot has memory of its own: open data types keep pointers to slots. */
typedef struct brc_dtype_slot {
    brc_dtype_spec spec; /* its strings belong to the slot */
    brc_origin origin;
} brc_dtype_slot;

typedef struct brc_dtype_registry {
    brc_dtype_slot **slots; /* in the order in which they were added */
    size_t n, cap;
} brc_dtype_registry;

static inline const brc_dtype_registry *brc_dtypes_of(const brc_registry *reg)
{
    return (const brc_dtype_registry *)(const void *)reg;
}

/* brc_registry_add_dtype() of the registry that begins with this one. */
BRC_MUST_USE int brc_dtype_registry_add(brc_dtype_registry *types, const brc_registrar *by, const brc_dtype_spec *spec,
                                        brc_error *err);
/* Removes what the plug-in of this number has added. */
void brc_dtype_registry_take_back(brc_dtype_registry *types, size_t plugin);
void brc_dtype_registry_dispose(brc_dtype_registry *types);
/* The data type that the name means: its own name first, then families in the
 * order in which they were added. NULL: none. */
const brc_dtype_slot *brc_dtype_registry_find(const brc_dtype_registry *types, const char *name);

/* Opens the slot's type under a name that it takes: dtype_open.c. */
BRC_MUST_USE int brc_dtype_bind(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot, const char *name,
                                const brc_json *config, brc_error *err);

#endif
