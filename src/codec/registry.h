/*
 * The registry of codecs and data types, inside the library. Adding to it is in
 * breccia_codec.h. It freezes when the first repository uses it; from then on it
 * is read by any number of threads without locks.
 */
#ifndef BRC_CODEC_REGISTRY_H
#define BRC_CODEC_REGISTRY_H

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

#endif
