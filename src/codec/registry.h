/*
 * The registry of codecs, data types, backends and pipelines, inside the library; breccia_codec.h,
 * breccia_backend.h and breccia_pipeline.h declare how to add to it. The registry freezes when the first repository uses it;
 * from then on any number of threads read it without locks.
 */
#ifndef BRC_CODEC_REGISTRY_H
#define BRC_CODEC_REGISTRY_H

#include <stddef.h>

#include "../breccia_backend.h"
#include "../breccia_codec.h"
#include "../nd/dtype.h"

/* ---- plugin file -------------------------------- */

/* A plug-in is a shared object. */

typedef int brc_plugin_entry(uint32_t abi, brc_registry *reg, brc_error *err);

/* Checks that the plug-in can be loaded by this path, and that the path is a file. */
BRC_MUST_USE int brc_plugin_file_check(const char *path, brc_error *err);
/* Loads the plug-in, whose code may run from here on. *entry is its brc_plugin_init(). */
BRC_MUST_USE int brc_plugin_file_open(void **handle, brc_plugin_entry **entry, const char *path, brc_error *err);
void brc_plugin_file_close(void *handle);

/* ---- registry -------------------------------- */

void brc_registry_freeze(const brc_registry *reg);

typedef struct brc_codec_entry {
    brc_codec_spec spec;
    const brc_codec_impl *impl; /* the chosen implementation for the host's memory; NULL: none can run here */
    const brc_codec_impl *pinned; /* by brc_registry_pin(), for memory of any kind; NULL: none */
} brc_codec_entry;
/* Finds a codec by its name or an alias. Returns NULL if the name is not known. */
const brc_codec_entry *brc_registry_codec(const brc_registry *reg, const char *name);

/* Finds the chosen implementation for memory of a device, BRC_MEMORY_HOST included. Returns NULL if none can run here. */
const brc_codec_impl *brc_registry_impl(const brc_registry *reg, const brc_codec_entry *entry, int device);
/* Describes the i-th of all implementations, for listing. Returns 0 past the end. */
int brc_registry_each(const brc_registry *reg, size_t i, brc_codec_info *out);

/* ---- backends: registry.c -------------------------------- */

/* The backend that is the file itself: it is in every registry, but only the store has it. */
#define BRC_INLINE "inline"
#define BRC_INLINE_SPEC "{\"name\":\"inline\"}"

/* Finds a backend that was added. Returns NULL if the name is not known, or is BRC_INLINE. */
const brc_backend *brc_registry_backend(const brc_registry *reg, const char *name);
/* Fails with BRC_EUNSUPPORTED if no new chunks can go to the backend of a specification, which is valid. */
BRC_MUST_USE int brc_backend_takes(const brc_registry *reg, const brc_json *spec, brc_error *err);
/* Describes the i-th of all backends, for listing. Returns 0 past the end. */
int brc_registry_each_backend(const brc_registry *reg, size_t i, brc_backend_info *out);
/* Reads the specification of a backend or a pipeline from JSON, or from a bare name. */
BRC_MUST_USE int brc_spec_read(brc_json **out, const char *text, brc_error *err);
/* Reads the name and the configuration of a backend or a pipeline (`what` says which), both borrowed from its
 * specification; the configuration may be NULL. BRC_EINVAL if the JSON is neither a name nor
 * {"name":...,"configuration":...}. */
BRC_MUST_USE int brc_spec_parse(const char *what, const brc_json *json, const char **name, const brc_json **config,
                                 brc_error *err);
/* Appends a specification in full form, as the backend writes it. BRC_EUNSUPPORTED if the name is
 * not known here, with a message that lists the known names; BRC_EINVAL if the specification is wrong. */
BRC_MUST_USE int brc_backend_full(const brc_registry *reg, const brc_json *json, brc_buf *out, brc_error *err);

/* ---- pipelines: registry.c -------------------------------- */

struct brc_pipeline; /* breccia_pipeline.h */

/* Finds a pipeline. BRC_EUNSUPPORTED if the name is not known, with a message that lists the known names. */
BRC_MUST_USE int brc_registry_pipeline(const struct brc_pipeline **out, const brc_registry *reg, const char *name, brc_error *err);
/* Describes the i-th of all pipelines, for listing. Returns 0 past the end. */
int brc_registry_each_pipeline(const brc_registry *reg, size_t i, brc_pipeline_info *out);

/* ---- registry slots -------------------------------- */

/* The entries of a registry, only for the files that make up the registry. */

typedef struct brc_codec_slot {
    brc_codec_entry entry; /* the slot owns its strings                           */
    brc_origin origin;
} brc_codec_slot;

typedef struct brc_impl_slot {
    brc_codec_impl impl;
    int usable; /* the probe's result when the implementation was added          */
    brc_origin origin;
} brc_impl_slot;

typedef struct brc_alias_slot {
    char *name;
    brc_codec_slot *codec;
    brc_origin origin;
} brc_alias_slot;

/* A backend or a pipeline. */
typedef struct brc_named_slot {
    void *table;      /* a copy of the caller's, a brc_backend or a brc_pipeline      */
    const char *name; /* owned, as is what `origin` has: the table points to both     */
    void *ctx;
    void (*destroy)(void *ctx);
    brc_origin origin;
} brc_named_slot;

/* Slots in the order in which they were added. */
typedef struct brc_named_list {
    brc_named_slot **slots;
    size_t n, cap;
} brc_named_list;

/* Buffer prototypes: prototypes.h. */
typedef struct brc_prototype_list {
    struct brc_prototype **slots; /* in the order in which they were added           */
    size_t n, cap;
} brc_prototype_list;

/* Each slot has memory of its own: chains and stores keep pointers to slots. */
struct brc_registry {
    brc_dtype_registry dtypes; /* first: see dtype.h                     */
    brc_registrar by;
    brc_codec_slot **codecs; /* in the order in which they were added            */
    size_t ncodecs, codecs_cap;
    brc_alias_slot *aliases;
    size_t naliases, aliases_cap;
    brc_impl_slot **impls; /* by the specification's name, then the highest rank first,
                                then in the order in which they were added         */
    size_t nimpls, impls_cap;
    size_t nthere; /* of these, those for other memory than the host's           */
    brc_named_list backends, pipelines;
    brc_prototype_list prototypes;
    void **plugins; /* handles of shared objects, in the order of loading        */
    size_t nplugins, plugins_cap;
};
_Static_assert(offsetof(struct brc_registry, dtypes) == 0, "src/nd finds the data types there");

/* Makes an empty registry. */
BRC_MUST_USE int brc_registry_new_empty(brc_registry **out, brc_error *err);
/* Removes the entries that the plug-in of this number has added. */
void brc_registry_take_back(brc_registry *reg, size_t plugin);

#endif
