/* Data types as the configurations of numcodecs name them. */
#ifndef BRC_CODECS_LIB_NUMPY_TYPE_H
#define BRC_CODECS_LIB_NUMPY_TYPE_H

#include "../../src/breccia_codec.h"

/* The member `name` of a configuration: "<f4", "|u1", or a name of Zarr's own. Byte
 * order plays no part: elements here are little-endian, and the codec that follows
 * says how they are stored. *out is NULL if the member is absent or null. */
BRC_MUST_USE int brc_numpy_type_open(brc_dtype **out, const brc_registry *reg,
                                     const brc_json *config, const char *name, brc_error *err);
/* BRC_EINVAL if its elements do not have the length of the array's. */
BRC_MUST_USE int brc_numpy_type_check(const brc_dtype *type, const brc_dtype *array,
                                      const char *name, brc_error *err);

#endif
