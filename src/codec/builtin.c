/*
 * Plug-ins: adds their entries to a registry, and takes the entries back where a plug-in fails.
 *
 * Invariant: a plug-in's code stays loaded for as long as the registry holds one of its
 * functions. So its handle is closed last, after every destroy(), and a plug-in that
 * fails half-way leaves no entries behind.
 */
#include "../../codecs/builtin.h"
#include "../backends/backends.h"
#include "../base/alloc.h"
#include "../breccia_pipeline.h"
#include "../memory/memory.h"
#include "registry.h"

/* ==== plugin ================================ */

/* Fails with the plug-in's own message after its path. */
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

/* ==== builtin ================================ */

/* The registry of this build's codecs, data types and backends. */

static int (*const builtin_codecs[])(brc_registry *reg, brc_error *err) = {
    brc_codec_astype_register,
    brc_codec_base64_register,
    brc_codec_bitround_register,
    brc_codec_blosc_register,
    brc_codec_bytes_register,
    brc_codec_bz2_register,
    brc_codec_cast_value_register,
    brc_codec_categorize_register,
    brc_codec_checksums_register,
    brc_codec_crc32c_register,
    brc_codec_delta_register,
    brc_codec_fixed_scale_register,
    brc_codec_gzip_register,
    brc_codec_lz4_register,
    brc_codec_lzf_register,
    brc_codec_lzma_register,
    brc_codec_n5_register,
    brc_codec_objects_register,
    brc_codec_optional_register,
    brc_codec_packbits_register,
    brc_codec_packbools_register,
    brc_codec_reshape_register,
    brc_codec_reversed_bytes_register,
    brc_codec_scale_offset_register,
    brc_codec_sharding_register,
    brc_codec_shuffle_register,
    brc_codec_transpose_register,
    brc_codec_vlen_register,
    brc_codec_vlen_offsets_register,
    brc_codec_zfp_register,
    brc_codec_zstd_register,
};

/* Without functions of their own: the library's run. The first is the default. */
static const brc_pipeline builtin_pipelines[] = {
    { .size = sizeof(brc_pipeline), .name = "batched" },
    { .size = sizeof(brc_pipeline), .name = "serial", .flags = BRC_PIPELINE_CALLER },
};

static int add_prototypes(brc_registry *reg, const brc_buffer_prototype *(*of)(size_t *n),
                          brc_error *err)
{
    size_t n;
    const brc_buffer_prototype *p = of(&n);

    for (size_t i = 0; i < n; i++)
        BRC_TRY(brc_registry_add_prototype(reg, &p[i], err));
    return BRC_OK;
}

static int add_builtins(brc_registry *reg, brc_error *err)
{
    size_t ntypes = 0;
    const brc_dtype_spec *types = brc_dtype_builtins(&ntypes);

    for (size_t i = 0; i < ntypes; i++)
        BRC_TRY(brc_registry_add_dtype(reg, &types[i], err));
    for (size_t i = 0; i < sizeof(builtin_codecs) / sizeof(builtin_codecs[0]); i++)
        BRC_TRY(builtin_codecs[i](reg, err));
    for (size_t i = 0; i < sizeof(builtin_pipelines) / sizeof(builtin_pipelines[0]); i++)
        BRC_TRY(brc_registry_add_pipeline(reg, &builtin_pipelines[i], err));
    BRC_TRY(add_prototypes(reg, brc_memory_host, err));
    BRC_TRY(add_prototypes(reg, brc_memory_cuda, err));
    BRC_TRY(brc_backend_pack_register(reg, err));
    BRC_TRY(brc_backend_external_register(reg, err));
    return brc_backend_s3_register(reg, err);
}

int brc_registry_new(brc_registry **out, brc_error *err)
{
    brc_registry *reg;

    *out = NULL;
    BRC_TRY(brc_registry_new_empty(&reg, err));
    reg->by.core = 1;
    int rc = add_builtins(reg, err);
    reg->by.core = 0;
    if (rc < 0)
        brc_registry_free(reg);
    else
        *out = reg;
    return rc;
}

/* ==== nvCOMP ================================ */

/* Adds implementations to the registry, which owns those that it takes. */
static int add_impls(brc_registry *reg, brc_codec_impl *impls, size_t n, const char *why_not,
                     brc_error *err)
{
    int rc = BRC_OK;

    for (size_t i = 0; i < n; i++) {
        impls[i].why_not = why_not;
        if (rc == BRC_OK)
            rc = brc_registry_add_impl(reg, &impls[i], err);
        else
            impls[i].destroy(impls[i].ctx);
    }
    return rc;
}

int brc_registry_use_nvcomp(brc_registry *reg, const char *library, brc_error *err)
{
    brc_codec_impl impls[BRC_NVCOMP_IMPLS];
    brc_error why = BRC_ERROR_INIT;

    if (reg == NULL)
        return brc_fail(err, BRC_EINVAL, "a registry is needed");
    if (atomic_load(&reg->by.frozen))
        return brc_fail(err, BRC_EMISUSE,
                        "nvCOMP comes too late: the registry is in use; name it before the first "
                        "brc_open()");
    const int found = brc_memory_nvcomp(impls, library, &why);
    if (found < 0 && err != NULL)
        brc_error_copy(err, &why);
    if (found == BRC_ENOMEM)
        return found;
    reg->by.core = 1;
    const int rc = add_impls(reg, impls, BRC_NVCOMP_IMPLS, found < 0 ? why.message : NULL, err);
    reg->by.core = 0;
    return rc < 0 ? rc : found;
}
