/*
 * Loading plug-ins: shared objects that add to a registry.
 *
 * Invariant: code of a plug-in is there for as long as the registry holds a function
 * of it. So its handle is closed last, after every destroy(), and a plug-in that
 * fails half-way leaves nothing behind.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "registry_slots.h"

typedef int plugin_entry(uint32_t abi, brc_registry *reg, brc_error *err);

/* Without a "/" the dynamic linker would search the system's folders for the name. */
static int plugin_check_path(const char *path, brc_error *err)
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

/* dlerror() begins with the path in most cases, and ends the text in all. */
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

static int plugin_open(void **handle, plugin_entry **entry, const char *path, brc_error *err)
{
    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle == NULL)
        return plugin_cannot_load(path, err);
    void *found = dlsym(*handle, "brc_plugin_init");
    if (found == NULL) {
        dlclose(*handle);
        return brc_fail(err, BRC_EINVAL,
                        "%s is no plug-in of breccia: it has no function brc_plugin_init", path);
    }
    memcpy(entry, &found, sizeof(found)); /* POSIX: both are of one size */
    return BRC_OK;
}

/* The plug-in's own words, behind its path. */
static int plugin_refused(const char *path, int rc, const brc_error *why, brc_error *err)
{
    if (rc > 0)
        return brc_fail(err, BRC_EINVAL, "the plug-in %s: brc_plugin_init returned %d", path, rc);
    if (why->message[0] == '\0')
        return brc_fail(err, rc, "the plug-in %s refuses to start: %s", path, brc_strerror(rc));
    if (err != NULL)
        *err = *why;
    brc_context(err, "the plug-in %s", path);
    return rc;
}

static int plugin_start(brc_registry *reg, plugin_entry *entry, const char *path, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;

    reg->loading = path;
    int rc = entry(BRC_PLUGIN_ABI, reg, &why);
    reg->loading = NULL;
    if (rc == BRC_OK)
        return BRC_OK;
    brc_registry_take_back(reg, reg->nplugins + 1);
    return plugin_refused(path, rc, &why, err);
}

int brc_registry_load(brc_registry *reg, const char *path, brc_error *err)
{
    void *handle;
    plugin_entry *entry = NULL;

    if (reg == NULL || path == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and the path of a plug-in are needed");
    if (atomic_load(&reg->frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the plug-in %s comes too late: the registry is in use; load it before the "
                        "first brc_open()",
                        path);
    if (reg->loading != NULL)
        return brc_fail(err, BRC_EMISUSE, "a plug-in cannot load another, %s", path);
    BRC_TRY(plugin_check_path(path, err));
    BRC_TRY(brc_grow_array((void **)&reg->plugins, &reg->plugins_cap, reg->nplugins + 1,
                           sizeof(*reg->plugins), err));
    BRC_TRY(plugin_open(&handle, &entry, path, err));
    int rc = plugin_start(reg, entry, path, err);
    if (rc < 0)
        dlclose(handle);
    else
        reg->plugins[reg->nplugins++] = handle;
    return rc;
}

void brc_registry_close_plugins(brc_registry *reg)
{
    while (reg->nplugins > 0)
        dlclose(reg->plugins[--reg->nplugins]);
    free(reg->plugins);
}
