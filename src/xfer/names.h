/* Lists names in a warning: the first few, and the number of the others. */
#ifndef BRC_XFER_NAMES_H
#define BRC_XFER_NAMES_H

#include "../base/buf.h"

typedef struct brc_first_names {
    brc_buf text; /* the first names, with commas */
    uint64_t n;   /* the number of all              */
} brc_first_names;

BRC_MUST_USE int brc_first_names_add(brc_first_names *names, const char *name, brc_error *err);
/* Appends "/a, /b and 3 more". */
BRC_MUST_USE int brc_first_names_write(const brc_first_names *names, brc_buf *out, brc_error *err);
void brc_first_names_dispose(brc_first_names *names);

#endif
