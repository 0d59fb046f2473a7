/*
 * The registry of codecs, data types and backends, inside the library. Adding to it is in
 * breccia_codec.h and breccia_backend.h. It freezes when the first repository uses it; from then on it
 * is read by any number of threads without locks.
 */
#ifndef BRC_CODEC_REGISTRY_H
#define BRC_CODEC_REGISTRY_H

#include "../breccia_backend.h"
#include "../nd/dtype.h"

void brc_registry_freeze(const brc_registry *reg);

typedef struct brc_codec_entry {
    brc_codec_spec spec;
    const brc_codec_impl *impl; /* the chosen one; NULL: none can run here     */
} brc_codec_entry;
/* NULL if the name is not known. Aliases count. */
const brc_codec_entry *brc_registry_codec(const brc_registry *reg, const char *name);

/* The i-th implementation of all, for listing; 0 past the end. */
int brc_registry_each(const brc_registry *reg, size_t i, brc_codec_info *out);

/* ---- backends: registry_backend.c -------------------------------- */

/* The backend that is the file itself: it is in every registry, but only the store has it. */
#define BRC_INLINE "inline"
#define BRC_INLINE_SPEC "{\"name\":\"inline\"}"

/* A backend that was added; NULL if the name is not known, or BRC_INLINE. */
const brc_backend *brc_registry_backend(const brc_registry *reg, const char *name);
/* The i-th of all, for listing; 0 past the end. */
int brc_registry_each_backend(const brc_registry *reg, size_t i, brc_backend_info *out);
/* What a specification names, borrowed from it; its configuration may be NULL. BRC_EINVAL if it
 * is neither a name nor {"name":...,"configuration":...}. */
BRC_MUST_USE int brc_backend_parse(const brc_json *json, const char **name, const brc_json **config, brc_error *err);
/* Appends a specification in full form, as the backend writes it. BRC_EUNSUPPORTED if its name is
 * not known here, and the message says which names are; BRC_EINVAL if it is wrong. */
BRC_MUST_USE int brc_backend_full(const brc_registry *reg, const brc_json *json, brc_buf *out, brc_error *err);

#endif
