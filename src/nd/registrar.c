#include "registrar.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/utf8.h"

int brc_registrar_admit(const brc_registrar *by, const char *what, const char *name, brc_error *err)
{
    if (name == NULL || name[0] == '\0' || !brc_utf8_valid(name, strlen(name)))
        return brc_fail(err, BRC_EINVAL, "a %s needs a name, in UTF-8", what);
    if (atomic_load(&by->frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the %s \"%s\" comes too late: the registry is in use; add to it before "
                        "the first brc_open()",
                        what, name);
    return BRC_OK;
}

/* A plug-in that does not say who it is, is known by its path. */
int brc_origin_make(brc_origin *out, const brc_registrar *by, const char *owner, brc_error *err)
{
    *out = (brc_origin){ by->core, by->plugin, NULL };
    if (owner == NULL)
        owner = by->loading;
    return owner != NULL ? brc_dup(&out->owner, owner, err) : BRC_OK;
}

void brc_origin_dispose(brc_origin *origin)
{
    free(origin->owner);
    origin->owner = NULL;
}

static const char *origin_text(const brc_origin *origin, const char *own)
{
    if (origin->core)
        return own;
    return origin->owner != NULL ? origin->owner : "a plug-in";
}

const char *brc_origin_name(const brc_origin *origin)
{
    return origin_text(origin, "breccia");
}

const char *brc_origin_words(const brc_origin *origin)
{
    return origin_text(origin, "breccia itself");
}

void brc_table_copy(void *dst, size_t dst_size, const void *src, size_t src_size)
{
    memset(dst, 0, dst_size);
    memcpy(dst, src, src_size < dst_size ? src_size : dst_size);
}
