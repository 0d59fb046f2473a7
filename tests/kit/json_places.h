/* Documents with one place changed: every value by values of other kinds and by strings
 * with U+0000, every member's name by one with U+0000. */
#ifndef BRC_TESTS_JSON_PLACES_H
#define BRC_TESTS_JSON_PLACES_H

#include "../../src/base/json.h"

typedef struct json_place {
    const char *text;    /* the changed document                                       */
    size_t len;
    const char *pointer; /* where it was changed: "/codecs/0/name"                     */
    int has_nul;         /* the place is a string with U+0000 now ...                  */
    int is_name;         /* ... or a member's name                                     */
} json_place;

typedef void (*json_place_fn)(void *ctx, const json_place *place);

/* Calls for each change of each place, and says how many they were. */
size_t json_places_each(const brc_json *doc, json_place_fn fn, void *ctx);

/* The i-th document that the metadata lists accept (tests/zarr/test_metadata_lists.c); NULL
 * after the last one. The caller frees. */
brc_json *metadata_document(size_t i);
/* The same of the .zarray documents in tests/xfer/test_zarr2.c. */
brc_json *zarr2_document(size_t i);

#endif
