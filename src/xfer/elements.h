/* A sequence of elements in an input: its description, as a header gives it, and its import into an array. */
#ifndef BRC_XFER_ELEMENTS_H
#define BRC_XFER_ELEMENTS_H

#include "../codec/registry.h"
#include "input.h"

typedef struct brc_elements {
    brc_dtype *type;
    int big;     /* big-endian                                              */
    int fortran; /* the first axis runs fastest                             */
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    uint64_t bytes; /* of all elements                                         */
} brc_elements;

void brc_elements_free(brc_elements *e);
/* Sets e->bytes, and compares that with what is left of an input of known size. */
BRC_MUST_USE int brc_elements_measure(brc_elements *e, const brc_input *in, brc_error *err);
/* Makes the array `path` from the elements; the input must end after them. */
BRC_MUST_USE int brc_elements_import(brc_session *s, const char *path, const brc_elements *e,
                                     brc_input *in, const brc_xfer_opts *opts, brc_error *err);
/* Writes the elements to the selection. Without the axes that an integer selects, the axes of the selection must
 * have the extents of e->shape. */
BRC_MUST_USE int brc_elements_write(brc_array *a, const brc_sel *sel, const brc_elements *e,
                                    brc_input *in, brc_error *err);
/* Opens the data type that an array's description names. */
BRC_MUST_USE int brc_array_dtype_open(brc_dtype **out, const brc_registry *reg,
                                      const brc_array_info *info, brc_error *err);

/* Reads a file's header, up to the first element. */
typedef int (*brc_elements_open_fn)(brc_elements *out, brc_input *in, const brc_registry *reg,
                                    brc_error *err);
/* Makes the array `path` from a file that holds a single one. */
BRC_MUST_USE int brc_elements_import_file(brc_session *s, const char *file,
                                          brc_elements_open_fn open, const char *path,
                                          const brc_xfer_opts *opts, brc_error *err);
/* Returns the bytes of the file's elements, from its header. */
BRC_MUST_USE int brc_elements_file_bytes(uint64_t *bytes, const brc_session *s, const char *file,
                                         brc_elements_open_fn open, brc_error *err);

#endif
