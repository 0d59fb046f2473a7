/* Exporting, and coming back: every data type through every format. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/breccia.h"
#include "../../src/xfer/dest.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(export);

static void create_array(exchange_kit *kit, const char *path, const char *dtype, const char *fill,
                         const void *data, size_t len)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    static const uint64_t shape[2] = { 5, 7 }, chunk[2] = { 2, 3 };
    brc_array *a;
    spec.ndim = 2;
    spec.shape = shape;
    spec.chunk = chunk;
    spec.dtype = dtype;
    spec.fill = fill;
    int rc = brc_array_create(&a, kit->session, path, &spec, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    rc = brc_array_write(a, NULL, data, len, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    brc_array_free(a);
}

static const struct {
    const char *name, *fill;
    size_t size;
} types[] = {
    { "bool", "true", 1 },
    { "int8", "-3", 1 },
    { "uint8", NULL, 1 },
    { "int16", NULL, 2 },
    { "uint16", "65535", 2 },
    { "int32", NULL, 4 },
    { "uint32", NULL, 4 },
    { "int64", NULL, 8 },
    { "uint64", "18446744073709551615", 8 },
    { "float16", "\"NaN\"", 2 },
    { "float32", "\"0x7fc00001\"", 4 },
    { "float64", "-0.0", 8 },
    { "complex64", NULL, 8 },
    { "complex128", NULL, 16 },
    { "r24", NULL, 3 },
};

CASE("round_trip");

EACH(D6_every_type_comes_back, types)
{
    exchange_kit kit;
    uint8_t data[35 * 16];
    size_t len = 35 * types[_i].size;
    uint32_t x = 12345;

    for (size_t i = 0; i < len; i++) {
        x = x * 1103515245 + 12345; /* any bits: NaN payloads and signs count */
        data[i] = types[_i].size == 1 && _i == 0 ? x >> 30 & 1 : (uint8_t)(x >> 16);
    }
    exchange_start(&kit);
    create_array(&kit, "/g/a", types[_i].name, types[_i].fill, data, len);
    exchange_export_ok(&kit, "/g/a", exchange_path(&kit, "a.npy"), NULL, 0);
    exchange_export_ok(&kit, "/g", exchange_path(&kit, "g.npz"), NULL, 0);
    exchange_export_ok(&kit, "/g", exchange_path(&kit, "g.zarr"), NULL, 0);
    exchange_import_ok(&kit, exchange_path(&kit, "a.npy"), "/1", NULL);
    exchange_import_ok(&kit, exchange_path(&kit, "g.npz"), "/2", NULL);
    exchange_import_ok(&kit, exchange_path(&kit, "g.zarr"), "/3", NULL);
    exchange_has(&kit, "/1", data, len);
    exchange_has(&kit, "/2/a", data, len);
    exchange_has(&kit, "/3/a", data, len);
    exchange_export_ok(&kit, "/3", exchange_path(&kit, "again"), NULL, 0);
    ck_assert_int_eq(
        exchange_same_tree(exchange_path(&kit, "g.zarr"), exchange_path(&kit, "again")), 1);
    exchange_stop(&kit);
}

static const uint8_t counted[35] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };

/* A hierarchy that has what a directory needs: groups, attributes, scalars, nothing. */
static void make_hierarchy(exchange_kit *kit)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    brc_array *a;
    uint64_t none[1] = { 0 };
    create_array(kit, "/a", "uint8", NULL, counted, sizeof(counted));
    create_array(kit, "/g/b", "uint8", "7", counted, sizeof(counted));
    ck_assert_int_eq(
        brc_group_create(kit->session, "/g/empty", "{\"big\": 12345678901234567890}", &kit->err),
        BRC_OK);
    spec.dtype = "float64";
    spec.shape = none;
    ck_assert_int_eq(brc_array_create(&a, kit->session, "/scalar", &spec, &kit->err), BRC_OK);
    double pi = 3.14159;
    ck_assert_int_eq(brc_array_write(a, NULL, &pi, sizeof(pi), &kit->err), BRC_OK);
    brc_array_free(a);
    spec.ndim = 1;
    ck_assert_int_eq(brc_array_create(&a, kit->session, "/nothing", &spec, &kit->err), BRC_OK);
    brc_array_free(a);
}

TEST(directory)
{
    exchange_kit kit;
    exchange_start(&kit);
    make_hierarchy(&kit);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "out/"), NULL, 0);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/zarr.json")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/g/empty/zarr.json")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/a/c/0/0")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/a/c/2/2")), 0); /* all fill: absent */
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/g/b/c/2/2")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/scalar/c")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "out/nothing/c")), 0);
    brc_buf text = exchange_read(exchange_path(&kit, "out/g/empty/zarr.json"));
    ck_assert_int_eq(brc_buf_append(&text, "", 1, NULL), BRC_OK);
    ck_assert_ptr_nonnull(strstr((char *)text.data, "\n  \"")); /* two spaces, for people */
    ck_assert_ptr_nonnull(strstr((char *)text.data, "12345678901234567890"));
    brc_buf_dispose(&text);

    /* into another repository, out of it, and the trees are one */
    exchange_kit other;
    exchange_start(&other);
    exchange_import_ok(&other, exchange_path(&kit, "out"), NULL, NULL);
    exchange_export_ok(&other, NULL, exchange_path(&other, "out"), "zarr3", 0);
    ck_assert_int_eq(exchange_same_tree(exchange_path(&kit, "out"), exchange_path(&other, "out")),
                     1);
    exchange_export_ok(&other, "g/", exchange_path(&other, "g"), NULL, 0);
    ck_assert_int_eq(exchange_same_tree(exchange_path(&kit, "out/g"), exchange_path(&other, "g")),
                     1);
    exchange_export_ok(&other, "/scalar", exchange_path(&other, "scalar"), NULL, 0);
    ck_assert_int_eq(
        exchange_same_tree(exchange_path(&kit, "out/scalar"), exchange_path(&other, "scalar")), 1);
    exchange_stop(&other);
    exchange_stop(&kit);
}

CASE("rules");

TEST(permissions)
{
    exchange_kit kit;
    struct stat st;
    exchange_start(&kit);
    make_hierarchy(&kit);
    mode_t mask = umask(022);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "out"), NULL, 0);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "out.npz"), NULL, 0);
    exchange_export_ok(&kit, "/a", exchange_path(&kit, "a.npy"), NULL, 0);
    umask(mask);
    ck_assert_int_eq(stat(exchange_path(&kit, "out"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0755);
    ck_assert_int_eq(stat(exchange_path(&kit, "out.npz"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0644);
    ck_assert_int_eq(stat(exchange_path(&kit, "a.npy"), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0644);
    exchange_stop(&kit);
}

CASE("round_trip");

TEST(npz_is_reproducible)
{
    exchange_kit kit;
    exchange_start(&kit);
    make_hierarchy(&kit);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "1.npz"), NULL, 0);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "2.npz"), NULL, 0);
    brc_buf one = exchange_read(exchange_path(&kit, "1.npz")),
            two = exchange_read(exchange_path(&kit, "2.npz"));
    ck_assert_uint_eq(one.len, two.len);
    ck_assert_mem_eq(one.data, two.data, one.len);
    ck_assert_mem_eq(one.data + 10, "\0\0\41\0", 4); /* 1980-01-01 00:00, whatever the clock says */
    brc_buf_dispose(&one);
    brc_buf_dispose(&two);
    exchange_import_ok(&kit, exchange_path(&kit, "1.npz"), NULL, NULL);
    exchange_has(&kit, "/1/a", counted, sizeof(counted));
    exchange_has(&kit, "/1/g/b", counted, sizeof(counted));
    double pi = 3.14159;
    exchange_has(&kit, "/1/scalar", &pi, sizeof(pi));
    /* one array by itself */
    exchange_export_ok(&kit, "/g/b", exchange_path(&kit, "b.any"), "npz", 0);
    exchange_import_ok(&kit, exchange_path(&kit, "b.any"), "/back", NULL);
    exchange_has(&kit, "/back/b", counted, sizeof(counted));
    exchange_stop(&kit);
}

static int count_name(void *ctx, const char *name, brc_error *err)
{
    (void)name;
    (void)err;
    ++*(int *)ctx;
    return BRC_OK;
}

static int files_in(exchange_kit *kit)
{
    int n = 0;
    ck_assert_int_eq(brc_dir_each(kit->dir, count_name, &n, NULL), BRC_OK);
    return n;
}

static void export_fails(exchange_kit *kit, const char *path, const char *name, const char *format,
                         int code, const char *says)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    int before = files_in(kit);
    opts.format = format;
    int rc = brc_export(kit->session, path, exchange_path(kit, name), &opts, &kit->err);
    ck_assert_msg(rc == code, "%s: %d instead of %d: %s", name, rc, code,
                  rc < 0 ? kit->err.message : "exported");
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
    ck_assert_int_eq(files_in(kit), before); /* nothing half done */
}

CASE("rules");

TEST(refused)
{
    exchange_kit kit;
    exchange_start(&kit);
    make_hierarchy(&kit);
    exchange_text(&kit, "there.npy", "");
    exchange_text(&kit, "there.npz", "");
    exchange_text(&kit, "there/file", "");
    ck_assert_int_eq(symlink("nowhere", exchange_path(&kit, "link")), 0);
    export_fails(&kit, "/a", "there.npy", NULL, BRC_EEXISTS, "there.npy");
    export_fails(&kit, "/", "there.npz", NULL, BRC_EEXISTS, "there.npz");
    export_fails(&kit, "/", "there", NULL, BRC_EEXISTS, "there");
    export_fails(&kit, "/", "link", NULL, BRC_EEXISTS, "link");
    export_fails(&kit, "/", "no/such/dir", NULL, BRC_ENOTFOUND, "");
    export_fails(&kit, "/", "no/such/dir.npz", NULL, BRC_ENOTFOUND, "");
    export_fails(&kit, "/a", "no/such/dir.npy", NULL, BRC_ENOTFOUND, "");
    export_fails(&kit, "/no/node", "x", NULL, BRC_ENOTFOUND, "/no/node");
    export_fails(&kit, "/no/node", "x.npy", NULL, BRC_ENOTFOUND, "/no/node");
    export_fails(&kit, "/no/node", "x.npz", NULL, BRC_ENOTFOUND, "/no/node");
    export_fails(&kit, "/g", "x.npy", NULL, BRC_EINVAL, "is a group");
    export_fails(&kit, "/g/empty", "x.npz", NULL, BRC_EINVAL, "no arrays");
    export_fails(&kit, "/", "x", "tiff", BRC_EINVAL, "tiff");
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.codecs_json = "[]";
    ck_assert_int_eq(brc_export(kit.session, "/", exchange_path(&kit, "x"), &opts, &kit.err),
                     BRC_EINVAL);
    ck_assert_int_eq(brc_export(kit.session, "/", "", NULL, &kit.err), BRC_EINVAL);
    ck_assert_int_eq(brc_export(kit.session, "/", NULL, NULL, &kit.err), BRC_EINVAL);
    exchange_stop(&kit);
}

/* A disk that fills up half way, which a limit on the size of files plays. */
TEST(no_room)
{
    static const char *const names[] = { "full.npy", "full.npz", "full" };
    exchange_kit kit;
    struct rlimit old, tight;
    uint8_t data[35 * 16];
    int rc[3];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * i * 7 >> 3);
    exchange_start(&kit);
    create_array(&kit, "/z/a", "complex128", NULL, data, sizeof(data));
    int before = files_in(&kit);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    tight = old;
    tight.rlim_cur = 80;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < 3; i++)
        rc[i] = brc_export(kit.session, "/z/a", exchange_path(&kit, names[i]), NULL, &kit.err);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(rc[i] == BRC_EIO, "%s: %d", names[i], rc[i]);
    ck_assert_int_eq(files_in(&kit), before);
    exchange_stop(&kit);
}

/* A file that another process puts there while the export is written stays. */
TEST(f22_what_appeared_meanwhile_is_not_replaced)
{
    for (int folder = 0; folder < 2; folder++) {
        exchange_kit kit;
        brc_dest dest;
        brc_buf there = BRC_BUF_INIT;
        exchange_start(&kit);
        const char *path = exchange_path(&kit, "out");
        ck_assert_int_eq(brc_dest_open(&dest, kit.session, path, 0, &kit.err), BRC_OK);
        if (folder)
            ck_assert_int_eq(brc_dir_make(dest.temp, &kit.err), BRC_OK);
        else
            ck_assert_int_eq(brc_file_write(dest.temp, "ours", 4, &kit.err), BRC_OK);
        if (folder)
            ck_assert_int_eq(brc_dir_make(path, &kit.err), BRC_OK);
        else
            ck_assert_int_eq(brc_file_write(path, "theirs", 6, &kit.err), BRC_OK);
        ck_assert_int_eq(brc_dest_finish(&dest, 0, &kit.err), BRC_EEXISTS);
        char *temp = strdup(dest.temp);
        brc_dest_close(&dest);
        ck_assert_int_eq(brc_file_kind(temp), 0); /* and ours is gone */
        if (!folder) {
            ck_assert_int_eq(brc_file_read(&there, path, &kit.err), BRC_OK);
            ck_assert_uint_eq(there.len, 6);
        }
        ck_assert_int_eq(brc_file_kind(path), folder ? 1 : 2);
        brc_buf_dispose(&there);
        free(temp);
        exchange_stop(&kit);
    }
}

/* A version in the past is exported as it was. */
TEST(committed_version)
{
    exchange_kit kit;
    brc_session *past;
    exchange_start(&kit);
    make_hierarchy(&kit);
    int rc = scenario_commit_of(&kit, kit.session, "first", NULL);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_int_eq(brc_node_remove(kit.session, "/g", &kit.err), BRC_OK);
    rc = brc_session_open(&past, kit.repo, "HEAD", BRC_SESSION_AT, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    rc = brc_export(past, "/", exchange_path(&kit, "past"), NULL, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    exchange_export_ok(&kit, "/", exchange_path(&kit, "now"), NULL, 0);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "past/g/b/zarr.json")), 2);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "now/g")), 0);
    ck_assert_int_eq(brc_file_kind(exchange_path(&kit, "now/a/zarr.json")), 2);
    brc_session_free(past);
    exchange_stop(&kit);
}
