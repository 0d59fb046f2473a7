/* gzip around another input. */
#ifndef BRC_XFER_GZIP_INPUT_H
#define BRC_XFER_GZIP_INPUT_H

#include "input.h"

int brc_is_gzip(const uint8_t *head, size_t n);
/* What `packed` inflates to, members one after the other; it is taken over, on
 * failure too. Anything but zeros after the last member is an error. */
BRC_MUST_USE int brc_gzip_open(brc_input **out, brc_input *packed, brc_error *err);

#endif
