/*
 * Plug-ins: what they add to a registry, and what is taken back where they fail.
 *
 * Invariant: code of a plug-in is there for as long as the registry holds a function
 * of it. So its handle is closed last, after every destroy(), and a plug-in that
 * fails half-way leaves nothing behind.
 */
#include "../base/alloc.h"
#include "plugin_file.h"
#include "registry_slots.h"

/* The plug-in's own words, behind its path. */
static int plugin_refused(const char *path, int rc, const brc_error *why, brc_error *err)
{
    if (rc > 0)
        return brc_fail(err, BRC_EINVAL, "the plug-in %s: brc_plugin_init returned %d", path, rc);
    if (why->message[0] == '\0')
        return brc_fail(err, rc, "the plug-in %s refuses to start: %s", path, brc_strerror(rc));
    if (err != NULL)
        brc_error_copy(err, why);
    brc_context(err, "the plug-in %s", path);
    return rc;
}

static int plugin_start(brc_registry *reg, brc_plugin_entry *entry, const char *path,
                        brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;

    reg->by.loading = path;
    reg->by.plugin = reg->nplugins + 1;
    int rc = entry(BRC_PLUGIN_ABI, reg, &why);
    reg->by.loading = NULL;
    reg->by.plugin = 0;
    if (rc == BRC_OK)
        return BRC_OK;
    brc_registry_take_back(reg, reg->nplugins + 1);
    return plugin_refused(path, rc, &why, err);
}

int brc_registry_load(brc_registry *reg, const char *path, brc_error *err)
{
    void *handle;
    brc_plugin_entry *entry = NULL;

    if (reg == NULL || path == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry and the path of a plug-in are needed");
    if (atomic_load(&reg->by.frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "the plug-in %s comes too late: the registry is in use; load it before the "
                        "first brc_open()",
                        path);
    if (reg->by.loading != NULL)
        return brc_fail(err, BRC_EMISUSE, "a plug-in cannot load another, %s", path);
    BRC_TRY(brc_plugin_file_check(path, err));
    BRC_TRY(brc_grow_array((void **)&reg->plugins, &reg->plugins_cap, reg->nplugins + 1,
                           sizeof(*reg->plugins), err));
    BRC_TRY(brc_plugin_file_open(&handle, &entry, path, err));
    int rc = plugin_start(reg, entry, path, err);
    if (rc < 0)
        brc_plugin_file_close(handle);
    else
        reg->plugins[reg->nplugins++] = handle;
    return rc;
}
