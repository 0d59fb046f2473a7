/* The built-in data types, and the functions that all types have in common. */
#ifndef BRC_ND_DTYPE_H
#define BRC_ND_DTYPE_H

#include <stdatomic.h>

#include "../base/error.h"
#include "../base/json.h"

/* ---- dtype -------------------------------- */

/* Returns the static table of the built-in data types. */
const brc_dtype_spec *brc_dtype_builtins(size_t *n);

/* Describes the i-th data type, and opens it into *open if the name alone is enough; else *open is NULL.
 * Returns 0 past the end. */
BRC_MUST_USE int brc_registry_each_dtype(const brc_registry *reg, size_t i, brc_dtype **open, brc_dtype_info *out, brc_error *err);
/* Opens the data type of NumPy's descr, in either byte order; sets *big for ">". */
BRC_MUST_USE int brc_dtype_open_npy(brc_dtype **out, int *big, const brc_registry *reg, const char *descr, brc_error *err);

/* Appends the type's default element: all bits zero unless the type has another default. */
BRC_MUST_USE int brc_dtype_default(const brc_dtype *type, brc_buf *out, brc_error *err);

/* Finds a field of struct or structured: "x", or "position.x" where a field has fields itself. Returns its type, which
 * lasts as long as `type`, and where it is in an element; NULL if there is none. */
const brc_dtype *brc_dtype_field(const brc_dtype *type, const char *field, size_t *offset);

/* Returns the type of field i, counted from 0, and where it is in an element; NULL past the last field, and for a type
 * without fields. */
const brc_dtype *brc_dtype_field_at(const brc_dtype *type, size_t i, size_t *offset);

enum { BRC_PRINT_DATED = 3 }; /* ops.print of a structure: as BRC_ELEMENT_DATED; no other type gets it */
/* Appends the element in one of the forms BRC_PRINT_*; fields: brc_dtype_field_at() finds some. */
BRC_MUST_USE int brc_dtype_print(const brc_dtype *type, const uint8_t *at, size_t len, int how, int fields, brc_buf *out, brc_error *err);

/* Appends the element in the form of BRC_ELEMENT_QUOTED. */
BRC_MUST_USE int brc_dtype_print_quoted(const brc_dtype *type, const uint8_t *element, size_t len, brc_buf *out, brc_error *err);

/* Writes the shortest decimal that reads back as the same value in the type, or "NaN",
 * "Infinity" or "-Infinity". `size` is 2, 4 or 8. Integral values get
 * ".0", large and small values an exponent. out holds BRC_FLOAT_TEXT bytes. */
#define BRC_FLOAT_TEXT 40
void brc_float_text(char out[BRC_FLOAT_TEXT], const uint8_t *element, size_t size);
double brc_half_to_double(uint16_t bits);
/* Rounds correctly, half to even; sets *overflow if a finite text gives infinity. */
uint16_t brc_half_from_text(const char *text, int *overflow);

/* Copies len bytes and reverses each unit of `unit` bytes; dst may be src. */
void brc_swap_units(uint8_t *dst, const uint8_t *src, size_t len, size_t unit);
/* Converts canonical (little-endian) elements to native memory, or back; does nothing on a
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

/* Reads the form; the message of BRC_EINVAL names the fault. A caller that does not allow `may_ignore`
 * (for data types, grids, key encodings) refuses it. */
BRC_MUST_USE int brc_named_read(brc_named *out, const brc_json *json, brc_error *err);

/* ---- registrar -------------------------------- */

/*
* Adding to a registry: the author of an entry, and the time until which entries may be added. Each entry keeps its
 * origin.
 */

/* The state of a registry that applies to each new entry. */
typedef struct brc_registrar {
    int core;            /* new entries are breccia's own                        */
    size_t plugin;       /* number of the plug-in whose entry point runs, from 1; 0: none */
    const char *loading; /* that plug-in's path; NULL: none                      */
    atomic_int frozen;   /* the registry is in use: it takes no more entries     */
} brc_registrar;

/* The origin of an entry. */
typedef struct brc_origin {
    int core;
    size_t plugin;
    char *owner; /* the name that the entry's table gives, a copy; NULL: none   */
} brc_origin;

/* Checks that an entry of this name may be added. `what`: its kind, "codec" for example. */
BRC_MUST_USE int brc_registrar_admit(const brc_registrar *by, const char *what, const char *name, brc_error *err);
/* Makes the origin of a new entry. `owner`: the name that the added table gives, or NULL. */
BRC_MUST_USE int brc_origin_make(brc_origin *out, const brc_registrar *by, const char *owner, brc_error *err);
void brc_origin_dispose(brc_origin *origin);
/* Returns the origin's name for lists: "breccia" for breccia's own entries. */
const char *brc_origin_name(const brc_origin *origin);
/* Returns the origin's name for sentences: "breccia itself" for breccia's own entries. */
const char *brc_origin_words(const brc_origin *origin);

/* Copies a table of functions. A caller built against an older header has a shorter table, whose
 * missing fields become zero; the fields that a newer header adds are dropped. */
void brc_table_copy(void *dst, size_t dst_size, const void *src, size_t src_size);

/* ---- dtype registry -------------------------------- */

/*
* Data types by name. A brc_registry begins with a brc_dtype_registry, so data types that contain
 * others find these in the registry with which they are opened, and this layer does not need to
 * know the rest of the registry.
 */

/* Each slot has memory of its own: open data types keep pointers to slots. */
typedef struct brc_dtype_slot {
    brc_dtype_spec spec; /* the slot owns its strings */
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

/* Does brc_registry_add_dtype() for the registry that begins with `types`. */
BRC_MUST_USE int brc_dtype_registry_add(brc_dtype_registry *types, const brc_registrar *by, const brc_dtype_spec *spec,
                                        brc_error *err);
/* Removes the data types that the plug-in of this number has added. */
void brc_dtype_registry_take_back(brc_dtype_registry *types, size_t plugin);
void brc_dtype_registry_dispose(brc_dtype_registry *types);

/* Opens the slot's type under a name that the type accepts: dtype.c. */
BRC_MUST_USE int brc_dtype_bind(brc_dtype **out, const brc_registry *reg, const brc_dtype_slot *slot, const char *name,
                                const brc_json *config, brc_error *err);

#endif
