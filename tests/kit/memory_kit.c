/* See memory_kit.h. */
#include "memory_kit.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "plugin_kit.h"

const memory_kind memory_kinds[MEMORY_KINDS] = {
    {"host", BRC_MEMORY_HOST, 1},      {"pool", BRC_MEMORY_HOST, 1},
    {"locked", BRC_MEMORY_LOCKED, 1},  {"managed", BRC_MEMORY_MANAGED, 1},
    {DEVICE, 12, 0},                   {"cuda", BRC_MEMORY_CUDA, 0},
};

/* The driver's functions must be found before those of a driver that the machine may have. */
static void *plugin_open(const char *name, int flags)
{
    char path[4096];
    plugin_path(path, sizeof(path), name);
    void *handle = dlopen(path, RTLD_NOW | flags);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    return handle;
}

static void memory_plugins(memory_kit *k)
{
    char path[4096];
    memset(k, 0, sizeof(*k));
    k->cuda = plugin_open("cuda", RTLD_GLOBAL);
    k->device = plugin_open("device", RTLD_LOCAL);
    OK(&k->t, brc_registry_new(&k->reg, &k->t.err));
    plugin_path(path, sizeof(path), "device");
    OK(&k->t, brc_registry_load(k->reg, path, &k->t.err));
}

static void memory_open(memory_kit *k, unsigned threads, const char *prototype)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    if (threads > 0)
        OK(&k->t, brc_pool_new(&k->pool, threads, &k->t.err));
    scenario_folder(&k->t);
    opts.registry = k->reg;
    opts.pool = k->pool;
    opts.prototype = prototype;
    scenario_open(&k->t, &opts, BRC_OPEN_CREATE);
}

void memory_start(memory_kit *k, unsigned threads, const char *prototype)
{
    memory_plugins(k);
    memory_open(k, threads, prototype);
}

void memory_start_nvcomp(memory_kit *k, unsigned threads, const char *library, int pins)
{
    static const char *const codecs[] = {"zstd", "numcodecs.zstd", "numcodecs.lz4",
                                         "gzip", "numcodecs.gzip", "numcodecs.zlib"};
    char path[4096];
    memory_plugins(k);
    k->nvcomp = plugin_open(library, RTLD_LOCAL);
    plugin_path(path, sizeof(path), library);
    OK(&k->t, brc_registry_use_nvcomp(k->reg, path, &k->t.err));
    for (size_t i = 0; pins && i < sizeof(codecs) / sizeof(codecs[0]); i++)
        OK(&k->t, brc_registry_pin(k->reg, codecs[i], "nvcomp", &k->t.err));
    memory_open(k, threads, NULL);
}

void memory_close(memory_kit *k)
{
    scenario_stop(&k->t);
    brc_pool_free(k->pool);
    brc_registry_free(k->reg);
    k->pool = NULL;
    k->reg = NULL;
}

void memory_stop(memory_kit *k)
{
    memory_close(k);
    ck_assert_uint_eq(*memory_count(k->device, "device_live"), 0);
    ck_assert_uint_eq(*memory_count(k->cuda, "fake_live"), 0);
    ck_assert_uint_eq(*memory_count(k->cuda, "fake_locked"), 0);
    ck_assert_uint_eq(*memory_count(k->cuda, "fake_events"), 0);
    ck_assert_uint_eq(*memory_count(k->cuda, "fake_retained"), 0);
    dlclose(k->device);
    if (k->nvcomp != NULL)
        dlclose(k->nvcomp);
    dlclose(k->cuda);
}

unsigned long *memory_count(void *plugin, const char *name)
{
    unsigned long *found = dlsym(plugin, name);
    ck_assert_msg(found != NULL, "there is no %s", name);
    return found;
}

brc_tensor *memory_read(memory_kit *k, brc_array *a, const char *slice, const char *kind,
                        brc_buffer_stats *stats)
{
    brc_tensor_opts opts = BRC_TENSOR_OPTS_INIT;
    brc_sel sel = BRC_SEL_INIT;
    brc_tensor *out;
    OK(&k->t, brc_sel_parse(&sel, a, slice, &k->t.err));
    opts.sel = &sel;
    opts.prototype = kind;
    opts.stats = stats;
    OK(&k->t, brc_tensor_read(&out, a, &opts, &k->t.err));
    return out;
}

void *memory_bytes(memory_kit *k, brc_tensor *t)
{
    brc_tensor *host;
    OK(&k->t, brc_tensor_to_host(&host, t, NULL, NULL, &k->t.err));
    const brc_tensor_info *info = brc_tensor_describe(host);
    uint8_t *bytes = malloc((size_t)info->bytes + 1);
    ck_assert_ptr_nonnull(bytes);
    if (info->bytes > 0)
        memcpy(bytes, info->data, (size_t)info->bytes);
    brc_tensor_free(host);
    return bytes;
}

void memory_same(memory_kit *k, brc_array *a, const char *slice, brc_tensor *t)
{
    brc_sel sel = BRC_SEL_INIT;
    OK(&k->t, brc_sel_parse(&sel, a, slice, &k->t.err));
    const brc_tensor_info *info = brc_tensor_describe(t);
    ck_assert_uint_eq(info->bytes, brc_sel_count(&sel) * info->item_size);
    uint8_t *want = malloc((size_t)info->bytes + 1), *got = memory_bytes(k, t);
    ck_assert_ptr_nonnull(want);
    OK(&k->t, brc_array_read(a, &sel, want, (size_t)info->bytes, &k->t.err));
    ck_assert_msg(memcmp(want, got, (size_t)info->bytes) == 0, "%s of %s differs",
                  slice != NULL ? slice : "all", info->prototype);
    free(want);
    free(got);
}
