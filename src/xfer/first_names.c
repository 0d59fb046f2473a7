/* See first_names.h. */
#include "first_names.h"

#define NAMES_MOST 5 /* that are named */

int brc_first_names_add(brc_first_names *names, const char *name, brc_error *err)
{
    if (names->n++ < NAMES_MOST)
        return brc_buf_printf(&names->text, err, "%s%.300s", names->text.len > 0 ? ", " : "", name);
    return BRC_OK;
}

int brc_first_names_write(const brc_first_names *names, brc_buf *out, brc_error *err)
{
    BRC_TRY(brc_buf_append(out, names->text.data, names->text.len, err));
    if (names->n > NAMES_MOST)
        BRC_TRY(brc_buf_printf(out, err, " and %llu more",
                               (unsigned long long)(names->n - NAMES_MOST)));
    return BRC_OK;
}

void brc_first_names_dispose(brc_first_names *names)
{
    brc_buf_dispose(&names->text);
}
