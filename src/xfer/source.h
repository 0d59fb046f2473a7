/* What is to be imported, and what to call the node that it becomes. */
#ifndef BRC_XFER_SOURCE_H
#define BRC_XFER_SOURCE_H

#include "formats.h"

/* Looks at a file's first bytes. Nothing stays open; `name` must outlive the source. */
BRC_MUST_USE int brc_source_look(brc_source *out, const char *name, brc_error *err);
/* A node's name from a file's: "mnist-t10k-images" from
 * "data/mnist-t10k-images-idx3-ubyte.gz". */
BRC_MUST_USE int brc_source_name(char **out, const char *source, brc_error *err);
/* The same of a file in a format that only a command knows: "run" from "data/run.grib". */
BRC_MUST_USE int brc_source_name_any(char **out, const char *source, brc_error *err);

#endif
