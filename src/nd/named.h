/*
 * The one form in which zarr.json names data types, codecs, grids and key
 * encodings: "name", {"name": N} or {"name": N, "configuration": {...}}.
 */
#ifndef BRC_ND_NAMED_H
#define BRC_ND_NAMED_H

#include "../base/json.h"

typedef struct brc_named {
    const char *name;       /* borrowed from the JSON; never NULL                */
    const brc_json *config; /* an object, or NULL                                */
    int may_ignore;         /* "must_understand": false                          */
} brc_named;

/* BRC_EINVAL says what is wrong with the form. Where `may_ignore` is not allowed
 * (data types, grids, key encodings), the caller refuses it. */
BRC_MUST_USE int brc_named_read(brc_named *out, const brc_json *json, brc_error *err);

#endif
