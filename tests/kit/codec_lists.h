/* Codec lists that say between them what every built-in codec does: the tests and `make
 * kit` go through the registry and ask here, so that no codec is forgotten. */
#ifndef BRC_TESTS_CODEC_LISTS_H
#define BRC_TESTS_CODEC_LISTS_H

#include <stddef.h>

typedef struct codec_list {
    const char *name; /* the codec that it is about                             */
    const char *list; /* as zarr.json has it                                    */
    int ndim;         /* of the chunks; -1: any                                 */
    int tame;         /* KIT_*: the values that it stores                       */
} codec_list;

/* The i-th list about this codec, or NULL. */
const codec_list *codec_list_of(const char *name, size_t i);

#endif
