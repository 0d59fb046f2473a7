/* Elements that follow one another in an input: what a header says of them, and
 * taking them over into an array. */
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
    uint64_t bytes; /* of all of them                                          */
} brc_elements;

void brc_elements_free(brc_elements *e);
/* Sets e->bytes, and compares them with what is left of an input whose size is
 * known. */
BRC_MUST_USE int brc_elements_measure(brc_elements *e, const brc_input *in, brc_error *err);
/* Makes the array `path` from them; the input must end after them. */
BRC_MUST_USE int brc_elements_import(brc_session *s, const char *path, const brc_elements *e,
                                     brc_input *in, const brc_xfer_opts *opts, brc_error *err);
/* Writes them to the selection, whose axes have the extents of e->shape when those
 * that an integer selects are left out. */
BRC_MUST_USE int brc_elements_write(brc_array *a, const brc_sel *sel, const brc_elements *e,
                                    brc_input *in, brc_error *err);
/* The data type of an array, as its description names it. */
BRC_MUST_USE int brc_array_dtype_open(brc_dtype **out, const brc_registry *reg,
                                      const brc_array_info *info, brc_error *err);

/* Reads a file's header, up to the first element. */
typedef int (*brc_elements_open_fn)(brc_elements *out, brc_input *in, const brc_registry *reg,
                                    brc_error *err);
/* Makes the array `path` from a file that holds one. */
BRC_MUST_USE int brc_elements_import_file(brc_session *s, const char *file,
                                          brc_elements_open_fn open, const char *path,
                                          const brc_xfer_opts *opts, brc_error *err);
/* The bytes of its elements, as its header says. */
BRC_MUST_USE int brc_elements_file_bytes(uint64_t *bytes, const brc_session *s, const char *file,
                                         brc_elements_open_fn open, brc_error *err);

#endif
