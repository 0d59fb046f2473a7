/* The built-in data types, and what all types have in common. */
#ifndef BRC_ND_DTYPE_H
#define BRC_ND_DTYPE_H

#include <stdatomic.h>

#include "../base/error.h"
#include "../base/json.h"

/* ---- dtype -------------------------------- */

/* A static table. */
const brc_dtype_spec *brc_dtype_builtins(size_t *n);

/* The i-th data type, opened into *open where its name alone says all; else NULL. 0 past
 * the end. */
BRC_MUST_USE int brc_registry_each_dtype(const brc_registry *reg, size_t i, brc_dtype **open, brc_dtype_info *out, brc_error *err);
/* Looks up by NumPy's descr, either byte order; *big set for ">". */
BRC_MUST_USE int brc_dtype_open_npy(brc_dtype **out, int *big, const brc_registry *reg, const char *descr, brc_error *err);

/* Appends the type's default element: all bits zero unless the type says else. */
BRC_MUST_USE int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err);

/* Appends the element as BRC_ELEMENT_QUOTED has it. */
BRC_MUST_USE int brc_dtype_print_quoted(const brc_dtype *type, const uint8_t *element, size_t len, brc_buf *out, brc_error *err);

/* Shortest decimal that reads back as the same value in the type; "NaN",
 * "Infinity", "-Infinity" for the rest. `size` is 2, 4 or 8. Integral values get
 * ".0"; large and small ones an exponent. out holds BRC_FLOAT_TEXT bytes. */
#define BRC_FLOAT_TEXT 40
void brc_float_text(char out[BRC_FLOAT_TEXT], const uint8_t *element, size_t size);
double brc_half_to_double(uint16_t bits);
/* Correctly rounded, half to even; *overflow set where a finite text gives infinity. */
uint16_t brc_half_from_text(const char *text, int *overflow);

/* n elements, each swap_unit reversed; dst may be src. */
void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit);
/* Canonical (little-endian) to native memory and back; nothing to do on a
 * little-endian host. */
void brc_dtype_native(const brc_dtype *type, uint8_t *data, size_t len);

/* ---- named -------------------------------- */

/*
 * The one form in which zarr.json names data types, codecs, grids and key
 * encodings: "name", {"name": N} or {"name": N, "configuration": {...}}.
 */

typedef struct brc_named {
    const char *name;       /* borrowed from the JSON; never NULL                */
    const brc_json *config; /* an object, or NULL                                */
    int may_ignore;         /* "must_understand": false                          */
} brc_named;

/* BRC_EINVAL says what is wrong with the form. Where `may_ignore` is not allowed
 * (data types, grids, key encodings), the caller refuses it. */
BRC_MUST_USE int brc_named_read(brc_named *out, const brc_json *json, brc_error *err);

/* ---- registrar -------------------------------- */

/*
 * Adding to a registry: who does, and until when. What is added keeps where it came from.
 */

/* Of a registry: what holds now for everything that is added to it. */
typedef struct brc_registrar {
    int core;            /* it is breccia's own                                  */
    size_t plugin;       /* number of the plug-in whose entry point runs, from 1; 0: none */
    const char *loading; /* that plug-in's path; NULL: none                      */
    atomic_int frozen;   /* the registry is in use: nothing is added any more    */
} brc_registrar;

/* Of an entry: where it came from. */
typedef struct brc_origin {
    int core;
    size_t plugin;
    char *owner; /* who registered it, in its own memory; NULL: it did not say  */
} brc_origin;

/* May something of this name be added? `what` is what it is: "codec". */
BRC_MUST_USE int brc_registrar_admit(const brc_registrar *by, const char *what, const char *name, brc_error *err);
/* `owner`: what the added table says of itself, or NULL. */
BRC_MUST_USE int brc_origin_make(brc_origin *out, const brc_registrar *by, const char *owner, brc_error *err);
void brc_origin_dispose(brc_origin *origin);
/* For lists: "breccia" where it is its own. */
const char *brc_origin_name(const brc_origin *origin);
/* For sentences: "breccia itself". */
const char *brc_origin_words(const brc_origin *origin);

/* A caller built against an older header has a shorter table: what it lacks is zero. What
 * a newer one adds is not known here. */
void brc_table_copy(void *dst, size_t dst_size, const void *src, size_t src_size);

/* ---- dtype registry -------------------------------- */

/*
 * Data types by name. A brc_registry begins with one of these: so data types that hold
 * others find them in the registry that they are opened with, and nothing in this layer
 * knows what else is in it.
 */

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

/* Opens the slot's type under a name that it takes: dtype.c. */
BRC_MUST_USE int brc_dtype_bind(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot, const char *name,
                                const brc_json *config, brc_error *err);

#endif
