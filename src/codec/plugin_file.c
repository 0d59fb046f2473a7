/* The shared object that a plug-in is: checked, loaded, closed. */
#include <dlfcn.h>
#include <string.h>

#include "../base/file.h"
#include "registry.h"

/* Without a "/" the dynamic linker would search the system's folders for the name. */
int brc_plugin_file_check(const char *path, brc_error *err)
{
    if (path[0] == '\0')
        return brc_fail(err, BRC_EINVAL, "a plug-in needs a path");
    if (strchr(path, '/') == NULL)
        return brc_fail(err, BRC_EINVAL,
                        "the plug-in \"%s\" must be named by its path: \"./%s\" is the one in the "
                        "current folder",
                        path, path);
    switch (brc_file_kind(path)) {
    case 0:
        return brc_fail(err, BRC_ENOTFOUND, "there is no plug-in %s", path);
    case 2:
        return BRC_OK;
    default:
        return brc_fail(err, BRC_EINVAL, "the plug-in %s is not a regular file", path);
    }
}

#ifdef BRC_STATIC

/* A static program has no functions that a plug-in could find, nor what loads it. */
int brc_plugin_file_open(void **handle, brc_plugin_entry **entry, const char *path, brc_error *err)
{
    *handle = NULL;
    *entry = NULL;
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "the plug-in %s cannot be loaded: this breccia is linked statically and takes "
                    "no plug-ins; use one that is not",
                    path);
}

void brc_plugin_file_close(void *handle)
{
    (void)handle;
}

#else

/* Fails with the text of dlerror(), which begins with the path in most cases. */
static int plugin_cannot_load(const char *path, brc_error *err)
{
    const char *why = dlerror();
    const char *remedy = "";
    size_t len = strlen(path);

    if (why == NULL)
        why = "no reason is given";
    if (strncmp(why, path, len) == 0 && strncmp(why + len, ": ", 2) == 0)
        why += len + 2;
    if (strstr(why, "undefined symbol: brc_") != NULL)
        remedy = "; it needs a newer breccia, or a program that is linked with -rdynamic";
    return brc_fail(err, BRC_EINVAL, "the plug-in %s cannot be loaded: %s%s", path, why, remedy);
}

int brc_plugin_file_open(void **handle, brc_plugin_entry **entry, const char *path, brc_error *err)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL)
        return plugin_cannot_load(path, err);
    void *found = dlsym(*handle, "brc_plugin_init");
    if (found == NULL) {
        dlclose(*handle);
        return brc_fail(err, BRC_EINVAL,
                        "%s is not a breccia plug-in: it has no function brc_plugin_init", path);
    }
    memcpy(entry, &found, sizeof(found)); /* POSIX: both are of one size */
    return BRC_OK;
}

void brc_plugin_file_close(void *handle)
{
    dlclose(handle);
}

#endif
