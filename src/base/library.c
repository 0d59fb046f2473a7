/*
 * Libraries that are loaded at their first use. Nothing is kept here: a library stays loaded until
 * the process ends, and the dynamic linker locks for itself.
 */
#include <dlfcn.h>
#include <string.h>

#include "../breccia_codec.h"
#include "error.h"
#include "sized.h"

#ifdef BRC_STATIC

int brc_library_load(const brc_library *library, void *functions, brc_error *err)
{
    (void)functions;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "this breccia is linked statically and loads no %s, %s; use one that is not",
                    library->name, library->use);
}

#else

/* Returns what to look in: all that the program, or the module of which this is a part, was linked
 * with, or the first of the library's files. NULL: neither has the functions. */
static void *library_find(const brc_library *library, int *is_linked)
{
    void *handle = NULL;

    *is_linked = dlsym(RTLD_DEFAULT, library->functions[0]) != NULL;
    for (size_t i = 0; !*is_linked && library->files[i] != NULL && handle == NULL; i++)
        handle = dlopen(library->files[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return handle;
}

int brc_library_load(const brc_library *library, void *functions, brc_error *err)
{
    int is_linked, is_whole = 1;

    BRC_TRY(brc_sized_check(library->size, sizeof(*library), "brc_library", err));
    void *handle = library_find(library, &is_linked);
    if (handle == NULL && !is_linked)
        return brc_fail(err, BRC_EUNSUPPORTED, "there is no %s, %s: install it (Debian: %s)",
                        library->name, library->use, library->package);
    for (size_t i = 0; library->functions[i] != NULL; i++) {
        void *found = dlsym(is_linked ? RTLD_DEFAULT : handle, library->functions[i]);
        is_whole &= found != NULL;
        /* POSIX: pointers to functions are of the same size. */
        memcpy((char *)functions + i * sizeof(found), &found, sizeof(found));
    }
    if (handle != NULL)
        dlclose(handle); /* RTLD_NODELETE: it stays */
    if (!is_whole)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s, %s, is too old: install a newer one (Debian: %s)", library->name,
                        library->use, library->package);
    return BRC_OK;
}

#endif
