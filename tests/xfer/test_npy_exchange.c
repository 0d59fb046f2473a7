/* .npy and .npz into and out of a repository. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/buf.h"
#include "../../src/breccia.h"
#include "../../src/xfer/npy/npy.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(npy_exchange);

#define DO(expr) ck_assert_int_eq((expr), BRC_OK)

static const char *npy_file(exchange_kit *kit, const char *name, const char *dictionary,
                            const void *data, size_t len)
{
    brc_buf bytes = BRC_BUF_INIT;
    exchange_npy(&bytes, dictionary, data, len);
    unlink(exchange_path(kit, name));
    const char *path = exchange_file(kit, name, bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
    return path;
}

static const uint16_t six[6] = { 1, 2, 3, 4, 5, 600 };

CASE("import");

/* ---- import of .npy -------------------------------- */

TEST(orders)
{
    static const uint16_t columns[6] = { 1, 4, 2, 5, 3, 600 };
    static const uint8_t big[12] = { 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 2, 88 };
    exchange_kit kit;
    exchange_start(&kit);
    exchange_import_ok(&kit,
              npy_file(&kit, "c.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }",
                       six, 12),
              NULL, NULL);
    exchange_has(&kit, "/c", six, 12);
    exchange_import_ok(&kit,
              npy_file(&kit, "f.npy", "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3), }",
                       columns, 12),
              NULL, NULL);
    exchange_has(&kit, "/f", six, 12);
    exchange_import_ok(&kit,
              npy_file(&kit, "b.npy", "{'descr': '>u2', 'fortran_order': False, 'shape': (2, 3), }",
                       big, 12),
              NULL, NULL);
    exchange_has(&kit, "/b", six, 12);
    exchange_import_ok(&kit,
              npy_file(&kit, "zero.npy", "{'descr': '>u2', 'fortran_order': False, 'shape': (), }",
                       big + 10, 2),
              NULL, NULL);
    exchange_has(&kit, "/zero", six + 5, 2);
    exchange_import_ok(&kit,
              npy_file(&kit, "none.npy",
                       "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 0, 2), }", "", 0),
              NULL, NULL);
    exchange_has(&kit, "/none", "", 0);
    exchange_stop(&kit);
}

/* Chunks that do not divide the shape, read in Fortran order. */
TEST(fortran_chunks)
{
    static const uint64_t chunk[3] = { 2, 3, 2 };
    exchange_kit kit;
    uint32_t file[4 * 7 * 5], expected[4 * 7 * 5];
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    brc_array *a;

    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t j = 0; j < 7; j++)
            for (uint32_t k = 0; k < 5; k++) {
                expected[(i * 7 + j) * 5 + k] = 100 * i + 10 * j + k;
                file[(k * 7 + j) * 4 + i] = 100 * i + 10 * j + k;
            }
    exchange_start(&kit);
    opts.chunk = chunk;
    opts.nchunk = 3;
    opts.codecs_json = "[{\"name\": \"bytes\", \"configuration\": {\"endian\": \"big\"}}]";
    const char *source =
        npy_file(&kit, "x.npy", "{'descr': '<u4', 'fortran_order': True, 'shape': (4, 7, 5), }",
                 file, sizeof(file));
    exchange_import_ok(&kit, source, "a/b", &opts);
    exchange_has(&kit, "/a/b", expected, sizeof(expected));
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/a/b", NULL), BRC_OK);
    ck_assert_mem_eq(brc_array_describe(a)->chunk, chunk, sizeof(chunk));
    brc_array_free(a);
    opts.nchunk = 2;
    ck_assert_int_eq(brc_import(kit.session, source, "/c", &opts, &kit.err), BRC_EINVAL);
    ck_assert_int_eq(brc_import(kit.session, source, "/a/b", NULL, &kit.err), BRC_EEXISTS);
    exchange_stop(&kit);
}

TEST(npy_refused)
{
    exchange_kit kit;
    exchange_start(&kit);
    exchange_import_fails(&kit,
                          npy_file(&kit, "short.npy",
                          "{'descr': '<u2', 'fortran_order': False, 'shape': (7,), }", six, 12),
                          "/made/here", BRC_EINVAL, "short.npy");
    const char *file = npy_file(&kit, "long.npy",
                                "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }", six,
                                12);
    exchange_import_fails(&kit, file, "/made/here", BRC_EINVAL, "long.npy");
    file = npy_file(&kit, "o.npy", "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", six,
                    8);
    exchange_import_fails(&kit, file, "/made/here", BRC_EUNSUPPORTED, "pickles are never read");
    exchange_stop(&kit);
}

/* More than one slab, and what the header does not say is found at the end. */
TEST(gzip_slabs)
{
    exchange_kit kit;
    brc_buf plain = BRC_BUF_INIT, packed = BRC_BUF_INIT;
    size_t len = (size_t)80 << 20;
    uint8_t *data = malloc(len + 1);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len + 1; i++)
        data[i] = (uint8_t)(i >> 16 ^ i >> 7);
    exchange_start(&kit);
    exchange_npy(&plain, "{'descr': '|u1', 'fortran_order': False, 'shape': (1310720, 64), }", data,
                 len + 1);
    exchange_gzip(&packed, plain.data, plain.len);
    exchange_import_fails(&kit, exchange_file(&kit, "long.npy.gz", packed.data, packed.len),
                          "/made/here", BRC_EINVAL, "goes on");
    packed.len = 0;
    exchange_gzip(&packed, plain.data, plain.len - 1);
    exchange_import_ok(&kit, exchange_file(&kit, "whole.npy.gz", packed.data, packed.len), NULL,
                       NULL);
    exchange_has(&kit, "/whole", data, len);
    free(data);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

/* ---- loading and saving -------------------------------- */

static brc_array *new_table(exchange_kit *kit, const char *path, const char *dtype, uint64_t rows,
                            uint64_t columns)
{
    const uint64_t shape[2] = { rows, columns }, chunk[2] = { 2, 2 };
    return scenario_array(kit, path, dtype, 2, shape, chunk, NULL, NULL);
}

static void load_fails(exchange_kit *kit, brc_array *a, const brc_sel *sel, int axis,
                       const char *file, const char *says)
{
    ck_assert_int_eq(brc_array_load_npy(a, sel, axis, file, &kit->err), BRC_EINVAL);
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
}

CASE("load");

TEST(load_into_selection)
{
    static const uint16_t expected[12] = { 0, 0, 0, 0, 1, 0, 2, 0, 4, 0, 5, 0 };
    static const uint16_t columns[4] = { 1, 4, 2, 5 };
    exchange_kit kit;
    brc_sel sel = BRC_SEL_INIT;
    exchange_start(&kit);
    brc_array *a = new_table(&kit, "/a", "uint16", 3, 4);
    ck_assert_int_eq(brc_sel_parse(&sel, a, "[1:, ::2]", &kit.err), BRC_OK);
    const char *f = npy_file(
        &kit, "f.npy", "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 2), }", columns, 8);
    int rc = brc_array_load_npy(a, &sel, -1, f, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    exchange_has(&kit, "/a", expected, sizeof(expected));

    load_fails(&kit, a, NULL, -1, f, "(2, 2), the selection (3, 4)");
    const char *i2 = npy_file(
        &kit, "i.npy", "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2), }", columns, 8);
    load_fails(&kit, a, &sel, -1, i2, "int16");
    /* an integer takes its axis away */
    ck_assert_int_eq(brc_sel_parse(&sel, a, "[0, :2]", &kit.err), BRC_OK);
    load_fails(&kit, a, &sel, -1, f, "(2, 2), the selection (2)");
    const char *row = npy_file(&kit, "r.npy",
                               "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", six, 4);
    ck_assert_int_eq(brc_array_load_npy(a, &sel, -1, row, &kit.err), BRC_OK);
    uint16_t *got = exchange_elements(kit.session, "/a", sizeof(expected));
    ck_assert_uint_eq(got[0], 1);
    ck_assert_uint_eq(got[1], 2);
    ck_assert_mem_eq(got + 4, expected + 4, 16);
    free(got);
    brc_array_free(a);
    exchange_stop(&kit);
}

TEST(load_appends)
{
    static const uint16_t by_row[9] = { 0, 0, 0, 1, 2, 3, 4, 5, 600 };
    static const uint16_t by_column[15] = { 0, 0, 0, 1, 2, 1, 2, 3, 3, 4, 4, 5, 600, 5, 600 };
    exchange_kit kit;
    exchange_start(&kit);
    brc_array *a = new_table(&kit, "/a", "uint16", 1, 3);
    const char *rows = npy_file(
        &kit, "rows.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", six, 12);
    const char *columns =
        npy_file(&kit, "columns.npy", "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 2), }",
                 six, 12);
    int rc = brc_array_load_npy(a, NULL, 0, rows, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 3);
    exchange_has(&kit, "/a", by_row, sizeof(by_row));

    load_fails(&kit, a, NULL, 0, columns, "(3, 2), which cannot be appended to (3, 3)");
    load_fails(&kit, a, NULL, 2, columns, "no axis 2");
    ck_assert_int_eq(brc_array_load_npy(a, NULL, 1, columns, &kit.err), BRC_OK);
    ck_assert_uint_eq(brc_array_describe(a)->shape[1], 5);
    exchange_has(&kit, "/a", by_column, sizeof(by_column));
    brc_array_free(a);
    exchange_stop(&kit);
}

/* A file that ends too early, which only its gzip data can hide. */
TEST(failed_append_changes_nothing)
{
    exchange_kit kit;
    brc_buf plain = BRC_BUF_INIT, packed = BRC_BUF_INIT;
    static const uint16_t zeros[3];
    exchange_start(&kit);
    brc_array *a = new_table(&kit, "/a", "uint16", 1, 3);
    exchange_npy(&plain, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", six, 11);
    exchange_gzip(&packed, plain.data, plain.len);
    const char *file = exchange_file(&kit, "cut.npy.gz", packed.data, packed.len);
    ck_assert_int_eq(brc_array_load_npy(a, NULL, 0, file, &kit.err), BRC_EINVAL);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 1);
    exchange_has(&kit, "/a", zeros, sizeof(zeros));
    brc_array_free(a);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/a", NULL), BRC_OK);
    ck_assert_uint_eq(brc_array_describe(a)->shape[0], 1);
    brc_array_free(a);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

TEST(save_selection)
{
    exchange_kit kit;
    brc_sel sel = BRC_SEL_INIT;
    exchange_start(&kit);
    brc_array *a = new_table(&kit, "/a", "uint16", 2, 3);
    ck_assert_int_eq(brc_array_write(a, NULL, six, sizeof(six), &kit.err), BRC_OK);
    ck_assert_int_eq(brc_sel_parse(&sel, a, "[1, ::2]", &kit.err), BRC_OK);
    const char *file = exchange_text(&kit, "s.npy", "this is replaced");
    int rc = brc_npy_save(a, &sel, file, 1, &kit.err);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    brc_buf bytes = exchange_read(file);
    ck_assert_uint_eq(bytes.len, 128 + 4);
    static const char header[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }";
    ck_assert_mem_eq(bytes.data, "\x93NUMPY\1\0\x76\0", 10);
    ck_assert_mem_eq(bytes.data + 10, header, sizeof(header) - 1);
    ck_assert_mem_eq(bytes.data + 128, "\4\0\x58\2", 4);
    brc_buf_dispose(&bytes);
    ck_assert_int_eq(brc_npy_save(a, NULL, exchange_path(&kit, "no/where.npy"), 1, &kit.err),
                     BRC_ENOTFOUND);
    brc_array_free(a);
    exchange_stop(&kit);
}

/* ---- .npz -------------------------------- */

static void add_npy(exchange_zip *zip, const char *name, size_t elements, int deflated, int32_t lie)
{
    brc_buf npy = BRC_BUF_INIT;
    exchange_npy(&npy, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", six,
                 2 * elements);
    exchange_zip_add(zip, name, npy.data, npy.len, deflated, (uint32_t)((int64_t)npy.len + lie));
    brc_buf_dispose(&npy);
}

CASE("npz");

TEST(npz)
{
    exchange_kit kit;
    exchange_zip zip = { 0 };
    exchange_start(&kit);
    add_npy(&zip, "x.npy", 6, 0, 0);
    add_npy(&zip, "deep/er/y.npy", 6, 1, 0);
    exchange_zip_add(&zip, "folder/", "", 0, 0, 0);
    exchange_import_ok(&kit, exchange_zip_file(&kit, "both.npz", &zip), NULL, NULL);
    exchange_has(&kit, "/both/x", six, 12);
    exchange_has(&kit, "/both/deep/er/y", six, 12);
    add_npy(&zip, "z.npy", 6, 1, 0);
    ck_assert_int_eq(brc_import(kit.session, exchange_zip_file(&kit, "root.npz", &zip), "/", NULL,
                                &kit.err), BRC_EEXISTS);
    ck_assert_int_eq(brc_node_remove(kit.session, "/both", &kit.err), BRC_OK);
    exchange_import_ok(&kit, exchange_path(&kit, "root.npz"), "/", NULL);
    exchange_has(&kit, "/z", six, 12);
    exchange_stop(&kit);
}

TEST(npz_names)
{
    /* NumPy takes any text for a name: what stands in the archive, and the node */
    static const char *const names[][2] = {
        { "__version__", "/n/%5F_version__" },
        { "../x", "/n/%2E./x" },
        { "a/../../x", "/n/a/%2E./%2E./x" },
        { "/x", "/n/%/x" },
        { "a//x", "/n/a/%/x" },
        { "./x", "/n/%2E/x" },
        { "", "/n/%" },
        { "a/", "/n/a/%" },
        { "%", "/n/%25" },
        { "%2E/x", "/n/%252E/x" },
        { "a\nb", "/n/a%0Ab" },
        { "a\\b", "/n/a\\b" },
        { "\xE9", "/n/%E9" },
        { "zarr.json", "/n/%7Aarr.json" },
    };
    exchange_kit kit;
    exchange_zip zip = { 0 };
    exchange_start(&kit);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char name[40];
        int kind;
        snprintf(name, sizeof(name), "%s.npy", names[i][0]);
        add_npy(&zip, "good.npy", 6, 0, 0);
        add_npy(&zip, name, 6, 0, 0);
        snprintf(name, sizeof(name), "n%zu.npz", i);
        exchange_import_ok(&kit, exchange_zip_file(&kit, name, &zip), "/n", NULL);
        exchange_has(&kit, names[i][1], six, 12);
        /* the archive of the export has the same names */
        snprintf(name, sizeof(name), "out%zu.npz", i);
        const char *out = exchange_path(&kit, name);
        DO(brc_export(kit.session, "/n", out, NULL, &kit.err));
        DO(brc_node_remove(kit.session, "/n", &kit.err));
        exchange_import_ok(&kit, out, "/n", NULL);
        DO(brc_node_kind(&kind, kit.session, names[i][1], &kit.err));
        ck_assert_int_eq(kind, BRC_ARRAY);
        brc_buf bytes = exchange_read(out);
        snprintf(name, sizeof(name), "%s.npy", names[i][0]);
        size_t len = strlen(name), at = 0;
        while (at + len < bytes.len && memcmp(bytes.data + at, name, len) != 0)
            at++;
        ck_assert_msg((at + len < bytes.len) == (names[i][0][0] != '\xE9'), "%s", name);
        brc_buf_dispose(&bytes);
        DO(brc_node_remove(kit.session, "/n", &kit.err));
    }
    add_npy(&zip, "x.npy", 6, 0, 0);
    add_npy(&zip, "x.npy", 6, 0, 0);
    exchange_import_fails(&kit, exchange_zip_file(&kit, "twice.npz", &zip), "/made/here",
                          BRC_EINVAL, "two members named x.npy");
    add_npy(&zip, "x/y.npy", 6, 0, 0);
    add_npy(&zip, "x.npy", 6, 0, 0);
    exchange_import_fails(&kit, exchange_zip_file(&kit, "group.npz", &zip), "/made/here",
                          BRC_EINVAL, "x.npy");
    exchange_zip_add(&zip, "readme.txt", "hello", 5, 0, 5);
    exchange_import_fails(&kit, exchange_zip_file(&kit, "other.npz", &zip), "/made/here",
                          BRC_EUNSUPPORTED, "readme.txt");
    exchange_zip_add(&zip, "zarr.json", "{}", 2, 0, 2);
    exchange_import_fails(&kit, exchange_zip_file(&kit, "store.zip", &zip), "/made/here",
                          BRC_EINVAL, "zarr.json: its node_type");
    exchange_stop(&kit);
}

TEST(npz_lies)
{
    exchange_kit kit;
    exchange_zip zip = { 0 };
    exchange_start(&kit);
    for (int deflated = 0; deflated < 2; deflated++) {
        char file[40];
        static const int32_t lies[] = { -12, -1, 1, 4096 };
        for (int i = 0; i < 4; i++) {
            snprintf(file, sizeof(file), "lie%d-%d.npz", deflated, i);
            add_npy(&zip, "x.npy", 6, deflated, lies[i]);
            exchange_zip_file(&kit, file, &zip);
            ck_assert_int_lt(
                brc_import(kit.session, exchange_path(&kit, file), NULL, NULL, &kit.err), 0);
            ck_assert_msg(strstr(kit.err.message, file), "%s", kit.err.message);
        }
        /* the header and the data do not agree */
        snprintf(file, sizeof(file), "short%d.npz", deflated);
        add_npy(&zip, "x.npy", 5, deflated, 0);
        exchange_import_fails(&kit, exchange_zip_file(&kit, file, &zip), "/made/here", BRC_EINVAL,
                              "should be");
        snprintf(file, sizeof(file), "hidden%d.npz", deflated);
        add_npy(&zip, "x.npy", 5, deflated, 2);
        exchange_zip_file(&kit, file, &zip);
        ck_assert_int_lt(brc_import(kit.session, exchange_path(&kit, file), NULL, NULL, &kit.err),
                         0);
    }
    exchange_stop(&kit);
}

/* One body, two entries: how a small archive becomes a big one. */
TEST(X9_npz_members_that_overlap)
{
    exchange_kit kit;
    exchange_zip zip = { 0 };
    exchange_start(&kit);
    add_npy(&zip, "x.npy", 6, 1, 0);
    add_npy(&zip, "y.npy", 6, 1, 0);
    uint8_t *first = zip.directory.data, *second = first + 46 + strlen("x.npy");
    memcpy(second + 42, first + 42, 4); /* where it lies */
    exchange_import_fails(&kit, exchange_zip_file(&kit, "1.npz", &zip), "/made/here", BRC_EINVAL,
                          "overlaps another one");
    add_npy(&zip, "x.npy", 6, 0, 0);
    memcpy(zip.directory.data + 42, "\xF0\xFF\xFF\x7F", 4);
    exchange_import_fails(&kit, exchange_zip_file(&kit, "2.npz", &zip), "/made/here", BRC_EINVAL,
                          "outside the file");
    exchange_stop(&kit);
}

static void put_end_of_zip(brc_buf *out, const uint8_t *record, size_t len, uint16_t comment)
{
    uint8_t end[22] = { 'P', 'K', 5, 6, 0, 0, 0, 0, 1, 0, 1 };
    brc_put_u32le(end + 12, (uint32_t)len);
    brc_put_u32le(end + 16, (uint32_t)out->len);
    end[20] = (uint8_t)comment;
    ck_assert_int_eq(brc_buf_append(out, record, len, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(out, end, sizeof(end), NULL), BRC_OK);
}

/* A second directory and its end are the comment of the first: libzip takes the one, a reader
 * that looks from the end of the file the other. */
TEST(X9_npz_with_two_directories)
{
    exchange_kit kit;
    exchange_zip zip = { 0 };
    size_t len = 46 + strlen("x.npy");
    exchange_start(&kit);
    add_npy(&zip, "x.npy", 6, 0, 0);
    add_npy(&zip, "y.npy", 6, 0, 0);
    put_end_of_zip(&zip.bytes, zip.directory.data, len, (uint16_t)(len + 22));
    put_end_of_zip(&zip.bytes, zip.directory.data + len, len, 0);
    const char *file = exchange_file(&kit, "two.npz", zip.bytes.data, zip.bytes.len);
    exchange_import_fails(&kit, file, "/made/here", BRC_EINVAL, "can be read in two ways");
    brc_buf_dispose(&zip.bytes);
    brc_buf_dispose(&zip.directory);
    exchange_stop(&kit);
}

/* Every byte of a small archive, damaged one at a time: an error or the right
 * elements, never anything else. */
TEST(npz_damaged)
{
    exchange_kit kit;
    exchange_zip zip = { 0 };
    exchange_start(&kit);
    add_npy(&zip, "x.npy", 6, 1, 0);
    exchange_zip_end(&zip);
    int imported = 0, refused = 0;
    for (size_t i = 0; i < zip.bytes.len; i++) {
        zip.bytes.data[i] ^= 0x5A;
        const char *file = exchange_file(&kit, "d.npz", zip.bytes.data, zip.bytes.len);
        if (brc_import(kit.session, file, "/d", NULL, &kit.err) == BRC_OK) {
            int kind;
            imported++;
            ck_assert_int_eq(brc_node_kind(&kind, kit.session, "/d/x", &kit.err), BRC_OK);
            if (kind == BRC_ARRAY)
                exchange_has(&kit, "/d/x", six, 12);
            ck_assert_int_eq(brc_session_discard(kit.session, &kit.err), BRC_OK);
        } else {
            refused++;
        }
        unlink(file);
        zip.bytes.data[i] ^= 0x5A;
    }
    ck_assert_int_gt(refused, 100);
    ck_assert_int_gt(imported, 0); /* a time, an attribute */
    brc_buf_dispose(&zip.bytes);
    exchange_stop(&kit);
}

CASE("import");

/* ---- real data -------------------------------- */

TEST(era)
{
    static const char *const names[] = { "era-u-wind-f32", "era-z-packed-i16" };
    static const size_t sizes[] = { 2776320, 1388160 };
    const char *dir = exchange_data();
    exchange_kit kit;
    char source[600], path[100];

    if (!dir)
        return;
    exchange_start(&kit);
    for (int i = 0; i < 2; i++) {
        snprintf(source, sizeof(source), "%s/%s.npy", dir, names[i]);
        snprintf(path, sizeof(path), "/%s", names[i]);
        exchange_import_ok(&kit, source, NULL, NULL);
        const char *out = exchange_path(&kit, i == 0 ? "0.npy" : "1.npy");
        int rc = brc_export(kit.session, path, out, NULL, &kit.err);
        ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
        brc_buf before = exchange_read(source), after = exchange_read(out);
        ck_assert_uint_eq(before.len, sizes[i] + 128);
        ck_assert_uint_eq(after.len, before.len);
        ck_assert_int_eq(memcmp(before.data, after.data, before.len), 0); /* as numpy wrote it */
        brc_buf_dispose(&before);
        brc_buf_dispose(&after);
    }
    exchange_stop(&kit);
}
