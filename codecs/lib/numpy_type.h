/* Data types as the configurations of numcodecs name them. */
#ifndef BRC_CODECS_LIB_NUMPY_TYPE_H
#define BRC_CODECS_LIB_NUMPY_TYPE_H

#include "../../src/breccia_codec.h"

/* Opens the data type in member `name` of a configuration: "<f4", "|u1", or a name of Zarr.
 * Ignores the byte order: elements are little-endian here, and the array->bytes codec says
 * how they are stored. *out is NULL if the member is absent or null. */
BRC_MUST_USE int brc_numpy_type_open(brc_dtype **out, const brc_registry *reg,
                                     const brc_json *config, const char *name, brc_error *err);
/* Fails with BRC_EINVAL if elements of `type` and of `array` differ in length. */
BRC_MUST_USE int brc_numpy_type_check(const brc_dtype *type, const brc_dtype *array,
                                      const char *name, brc_error *err);

#endif
