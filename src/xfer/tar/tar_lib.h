/* What reading and writing have in common in their use of libarchive. */
#ifndef BRC_XFER_TAR_LIB_H
#define BRC_XFER_TAR_LIB_H

#include <locale.h>
#include <stddef.h>

#include "../../base/error.h"

/*
 * libarchive turns names from and to UTF-8 by the locale of the thread that calls it. The
 * program's own may be "C": so calls that look at names are made in a locale of UTF-8, of
 * this thread alone. Where the system has none, names beyond ASCII are refused.
 */
typedef struct brc_tar_locale {
    locale_t utf8, before;
} brc_tar_locale;
void brc_tar_locale_init(brc_tar_locale *l);
void brc_tar_locale_dispose(brc_tar_locale *l);
void brc_tar_locale_enter(brc_tar_locale *l);
void brc_tar_locale_leave(brc_tar_locale *l);

#endif
