/* IDX files as sources. */
#ifndef BRC_XFER_IDX_H
#define BRC_XFER_IDX_H

#include "../elements.h"
#include "../formats.h"

/* Reads the header, up to the first element, and checks the file's size. */
BRC_MUST_USE int brc_idx_open(brc_elements *out, brc_input *in, const brc_registry *reg,
                              brc_error *err);

#endif
