/* Libraries that are loaded when a file first needs them, see container.h. */
#include <dlfcn.h>

#include "container.h"

int brc_late_library(void **handle, const char *soname, const char *format, brc_error *err)
{
    *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (*handle)
        return BRC_OK;
    const char *why = dlerror();
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s needs the library %s, which cannot be loaded (%s): install it", format,
                    soname, why ? why : "no reason is given");
}

int brc_late_symbol(void **out, void *handle, const char *soname, const char *symbol,
                    brc_error *err)
{
    *out = dlsym(handle, symbol);
    if (!*out)
        return brc_fail(err, BRC_EUNSUPPORTED, "the library %s has no %s: it is too old", soname,
                        symbol);
    return BRC_OK;
}
