/* .npy and .npz files as sources and as what is written. */
#ifndef BRC_XFER_NPY_H
#define BRC_XFER_NPY_H

#include "../elements.h"
#include "../formats.h"

/* Reads the header, up to the first element; the file's size is checked. */
BRC_MUST_USE int brc_npy_open(brc_elements *out, brc_input *in, const brc_registry *reg,
                              brc_error *err);

/* As brc_format has them. */
BRC_MUST_USE int brc_npz_import(brc_session *s, const brc_source *source, const char *path,
                                const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_npz_bytes(uint64_t *bytes, brc_session *s, const brc_source *source,
                               const brc_xfer_opts *opts, brc_error *err);
BRC_MUST_USE int brc_npz_export(brc_session *s, const char *path, const char *dest,
                                const brc_xfer_opts *opts, brc_error *err);

#endif
