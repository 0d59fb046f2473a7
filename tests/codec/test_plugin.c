/* Plug-ins: loading, refusing, and what they add at work. The shared objects are built
 * from tests/plugins and lie beside the test program. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/codec/registry.h"
#include "../kit/exchange_kit.h"
#include "../kit/plugin_kit.h"
#include "../kit/suite.h"

TEST_SUITE(plugin);

static brc_registry *plug_reg;
static brc_error plug_err;

static void plug_setup(void)
{
    ck_assert_int_eq(brc_registry_new(&plug_reg, &plug_err), BRC_OK);
}

static void plug_teardown(void)
{
    brc_registry_free(plug_reg);
    plug_reg = NULL;
}

static void load_fails(const char *path, int code, const char *says)
{
    int rc = brc_registry_load(plug_reg, path, &plug_err);

    ck_assert_msg(rc == code, "%s: %d, %s", path, rc, rc < 0 ? plug_err.message : "loaded");
    ck_assert_int_eq(plug_err.code, code);
    ck_assert_msg(strstr(plug_err.message, says) != NULL, "\"%s\" is not in \"%s\"", says,
                  plug_err.message);
}

/* The implementation that runs, or "" where the codec is not known. */
static const char *chosen_of(const char *codec, char *name, size_t size, char *owner)
{
    brc_iter *it;
    const brc_codec_info *info;

    name[0] = '\0';
    ck_assert_int_eq(brc_registry_list(&it, plug_reg, BRC_LIST_CODECS, &plug_err), BRC_OK);
    while (brc_next(it, &info, &plug_err) == 1)
        if (strcmp(info->name, codec) == 0 && (info->flags & BRC_IMPL_CHOSEN)) {
            snprintf(name, size, "%s", info->implementation);
            if (owner != NULL)
                snprintf(owner, size, "%s", info->owner);
        }
    brc_iter_free(it);
    return name;
}

/* Returns 1 if the list has the type, and puts the values of its entry into the text. */
static int type_entry(const char *name, char *text, size_t size)
{
    brc_iter *it;
    const brc_dtype_info *info;
    int found = 0;

    ck_assert_int_eq(brc_registry_list(&it, plug_reg, BRC_LIST_DTYPES, &plug_err), BRC_OK);
    while (brc_next(it, &info, &plug_err) == 1)
        if (strcmp(info->name, name) == 0) {
            found++;
            snprintf(text, size, "%s|%s|%llu|%s|%d|%d|%s", info->name, info->kind,
                     (unsigned long long)info->item_size, info->npy != NULL ? info->npy : "-",
                     (info->flags & BRC_DTYPE_FAMILY) != 0,
                     (info->flags & BRC_DTYPE_CONFIGURED) != 0, info->owner);
        }
    brc_iter_free(it);
    return found;
}

static unsigned counter(void *handle, const char *name)
{
    unsigned *value = dlsym(handle, name);

    ck_assert_msg(value != NULL, "%s: %s", name, dlerror());
    return *value;
}

CASE("load", .setup = plug_setup, .teardown = plug_teardown);

TEST(M4_D9_a_plugin_adds_a_codec_a_type_and_an_implementation)
{
    char path[600], name[600], owner[600], text[600];

    plugin_path(path, sizeof(path), "whole");
    ck_assert_str_eq(chosen_of("org.example.invert", name, sizeof(name), NULL), "");
    int rc = brc_registry_load(plug_reg, path, &plug_err);
    ck_assert_msg(rc == BRC_OK, "%s", plug_err.message);
    ck_assert_str_eq(chosen_of("org.example.invert", name, sizeof(name), owner), "portable");
    ck_assert_str_eq(owner, path);
    ck_assert_str_eq(chosen_of("crc32c", name, sizeof(name), owner), "bitwise");
    ck_assert_str_eq(owner, path);
    ck_assert_str_eq(chosen_of("zstd", name, sizeof(name), owner), "libzstd");
    ck_assert_str_eq(owner, "breccia");
    ck_assert_int_eq(type_entry("org.example.word", text, sizeof(text)), 1);
    ck_assert_str_eq(text, "org.example.word|raw|2|-|0|0|the word plug-in");
}

TEST(data_types_are_listed)
{
    char text[200];

    ck_assert_int_eq(type_entry("float32", text, sizeof(text)), 1);
    ck_assert_str_eq(text, "float32|float|4|<f4|0|0|breccia");
    ck_assert_int_eq(type_entry("bool", text, sizeof(text)), 1);
    ck_assert_str_eq(text, "bool|bool|1||b1|0|0|breccia");
    ck_assert_int_eq(type_entry("r<bits>", text, sizeof(text)), 1);
    ck_assert_str_eq(text, "r<bits>||0|-|1|1|breccia");
    ck_assert_int_eq(type_entry("org.example.word", text, sizeof(text)), 0);
}

TEST(destroy_comes_before_the_code_goes)
{
    char path[600];
    plugin_path(path, sizeof(path), "whole");
    void *watch = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(brc_registry_load(plug_reg, path, &plug_err), BRC_OK);
    ck_assert_uint_eq(counter(watch, "whole_destroyed"), 0);
    brc_registry_free(plug_reg);
    plug_reg = NULL;
    ck_assert_uint_eq(counter(watch, "whole_destroyed"), 4);
    dlclose(watch);
    ck_assert_ptr_null(dlopen(path, RTLD_NOW | RTLD_NOLOAD));
}

TEST(D5_what_failed_half_way_leaves_nothing)
{
    char path[600], name[600];
    plugin_path(path, sizeof(path), "half");
    void *watch = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    ck_assert_ptr_nonnull(watch);
    load_fails(path, BRC_EEXISTS, "half.so: the codec \"zstd\" is already registered");
    ck_assert_ptr_nonnull(strstr(plug_err.message, "breccia itself"));
    /* the codec, the implementation, and the codec that was refused */
    ck_assert_uint_eq(counter(watch, "half_destroyed"), 3);
    ck_assert_str_eq(chosen_of("zstd", name, sizeof(name), NULL), "libzstd");
    ck_assert_ptr_null(brc_registry_codec(plug_reg, "org.example.half.old"));
    ck_assert_ptr_null(brc_registry_codec(plug_reg, "org.example.zstd"));
    dlclose(watch);
    /* and the next one may come */
    plugin_path(path, sizeof(path), "whole");
    ck_assert_int_eq(brc_registry_load(plug_reg, path, &plug_err), BRC_OK);
    ck_assert_str_eq(chosen_of("crc32c", name, sizeof(name), NULL), "bitwise");
}

TEST(the_same_plugin_twice_is_refused_with_its_path)
{
    char path[600], name[600];

    plugin_path(path, sizeof(path), "whole");
    ck_assert_int_eq(brc_registry_load(plug_reg, path, &plug_err), BRC_OK);
    load_fails(path, BRC_EEXISTS, "\"org.example.invert\" is already registered");
    ck_assert_ptr_nonnull(strstr(strstr(plug_err.message, "already"), path));
    ck_assert_str_eq(chosen_of("org.example.invert", name, sizeof(name), NULL), "portable");
}

TEST(what_is_no_plugin_is_refused)
{
    char path[600];
    exchange_kit kit;

    load_fails("whole.so", BRC_EINVAL, "\"./whole.so\"");
    load_fails("", BRC_EINVAL, "needs a path");
    load_fails("./nonesuch.so", BRC_ENOTFOUND, "there is no plug-in ./nonesuch.so");
    load_fails("/", BRC_EINVAL, "not a regular file");
    plugin_path(path, sizeof(path), "stranger");
    load_fails(path, BRC_EINVAL, "no function brc_plugin_init");
    plugin_path(path, sizeof(path), "newer");
    load_fails(path, BRC_EUNSUPPORTED, "plug-in ABI 77, and this breccia has 4");
    ck_assert_ptr_nonnull(strstr(plug_err.message, "newer.so"));
    plugin_path(path, sizeof(path), "silent");
    load_fails(path, BRC_ENOMEM, "silent.so refuses to start");
    exchange_folder_start(&kit);
    load_fails(exchange_text(&kit, "text.so", "a text that is long enough for an object file"),
               BRC_EINVAL, "text.so cannot be loaded: ");
    exchange_stop(&kit);
    ck_assert_int_eq(brc_registry_load(plug_reg, NULL, &plug_err), BRC_EINVAL);
    ck_assert_int_eq(brc_registry_load(NULL, path, NULL), BRC_EINVAL);
}

TEST(D5_a_registry_in_use_takes_no_plugin)
{
    char path[600];
    exchange_kit kit;
    breccia *repo;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;

    exchange_folder_start(&kit);
    opts.flags = BRC_OPEN_CREATE;
    opts.registry = plug_reg;
    ck_assert_int_eq(brc_open(&repo, exchange_path(&kit, "x.brc"), &opts, &plug_err), BRC_OK);
    plugin_path(path, sizeof(path), "whole");
    load_fails(path, BRC_EMISUSE, "too late");
    brc_free(repo);
    exchange_stop(&kit);
}

/* ---- at work -------------------------------- */

TEST(M4_an_array_of_a_plugins_type_and_codecs)
{
    static const uint64_t shape[2] = { 3, 4 }, chunk[2] = { 2, 2 };
    char path[600];
    exchange_kit kit;
    breccia *repo;
    brc_session *s;
    brc_array *a;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_buf text = BRC_BUF_INIT;
    uint16_t in[12], out[12];

    plugin_path(path, sizeof(path), "whole");
    void *watch = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_ptr_nonnull(watch);
    ck_assert_int_eq(brc_registry_load(plug_reg, path, &plug_err), BRC_OK);
    exchange_folder_start(&kit);
    opts.flags = BRC_OPEN_CREATE;
    opts.registry = plug_reg;
    ck_assert_int_eq(brc_open(&repo, exchange_path(&kit, "x.brc"), &opts, &plug_err), BRC_OK);
    ck_assert_int_eq(brc_session_open(&s, repo, NULL, BRC_SESSION_WRITE, &plug_err), BRC_OK);
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = "org.example.word";
    spec.fill = "\"00ff\"";
    spec.codecs_json = "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
                       "{\"name\":\"org.example.invert\"},{\"name\":\"crc32c\"}]";
    int rc = brc_array_create(&a, s, "/a", &spec, &plug_err);
    ck_assert_msg(rc == BRC_OK, "%s", plug_err.message);
    ck_assert_int_eq(brc_array_read(a, NULL, out, sizeof(out), &plug_err), BRC_OK);
    ck_assert_uint_eq(out[11], 0x00ff);
    for (size_t i = 0; i < 12; i++)
        in[i] = (uint16_t)(i * 4099);
    ck_assert_int_eq(brc_array_write(a, NULL, in, sizeof(in), &plug_err), BRC_OK);
    ck_assert_int_eq(brc_array_read(a, NULL, out, sizeof(out), &plug_err), BRC_OK);
    ck_assert_mem_eq(in, out, sizeof(in));
    ck_assert_uint_gt(counter(watch, "whole_checksums"), 0);
    ck_assert_int_eq(brc_element_format(&text, a, &in[3], 0, &plug_err), BRC_OK);
    ck_assert_uint_eq(text.len, 4);
    ck_assert_mem_eq(text.data, "3009", 4);
    brc_buf_dispose(&text);
    brc_array_free(a);
    brc_session_free(s);
    brc_free(repo);
    exchange_stop(&kit);
    dlclose(watch);
}
