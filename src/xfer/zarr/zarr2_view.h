/* Zarr v2's documents of a node. */
#ifndef BRC_XFER_ZARR_ZARR2_VIEW_H
#define BRC_XFER_ZARR_ZARR2_VIEW_H

#include "../../base/json.h"

/* Makes the .zarray or .zgroup and the .zattrs (NULL: none needed) of a node, whose document is `doc`. */
BRC_MUST_USE int brc_zarr2_documents(brc_json **own, brc_json **zattrs, brc_session *s, const char *path, const brc_json *doc,
                                     int kind, brc_error *err);

#endif
