/* Small HDF5 files that promise much: sizes, links, nesting and attributes without end. Each is
 * a good import of what is there or one sentence, in little memory and time: the import runs
 * where hostile_confined() puts it, and its converter with it. What leads out of the file, and
 * cycles, see the suite hdf5_files. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "../kit/converters.h"
#include "../kit/hdf5_kit.h"
#include "../kit/hostile_kit.h"
#include "../kit/suite.h"

TEST_SUITE(hdf5_bombs);

/* How many of the things of which there are too many: a number may ask for more of them than
 * the tests have time to make. */
static hsize_t many(hsize_t otherwise)
{
    const char *text = getenv("BRECCIA_BOMBS");
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- sizes ----------------------------------------------------- */

#define ELEMENTS_MOST ((hsize_t)1 << 57) /* of 8 bytes: 2^60 */

static void put_nothing_of_much(hid_t file)
{
    static const hsize_t shape[] = { ELEMENTS_MOST };
    H5(H5Dclose(
        hdf5_new_dataset(file, "d", H5T_IEEE_F64LE, 1, shape, H5P_DEFAULT, 0, NULL)));
}

static void put_one_chunk_of_much(hid_t file)
{
    static const hsize_t shape[] = { ELEMENTS_MOST }, chunk[] = { 4 }, start = ELEMENTS_MOST - 4;
    static const double values[] = { 1, 2, 3, 4 };
    hid_t plist = hdf5_chunked(1, chunk);
    hid_t set = hdf5_new_dataset(file, "d", H5T_IEEE_F64LE, 1, shape, plist, 0, NULL);
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, sizeof(values), values));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
}

/* Elements that are there, in a number that stands nowhere else in the file. */
#define MARKED 7919
static void put_marked(hid_t file)
{
    hdf5_put(file, "d", H5T_STD_I8LE, MARKED, 0, NULL);
    hid_t set = H5(H5Dopen2(file, "d", H5P_DEFAULT));
    int8_t *data = calloc(1, MARKED);
    ck_assert_ptr_nonnull(data);
    H5(H5Dwrite(set, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
    free(data);
    H5(H5Dclose(set));
}

static void put_marked_type(hid_t file, hid_t type)
{
    void *data = calloc(MARKED, H5Tget_size(type));
    ck_assert_ptr_nonnull(data);
    hdf5_put(file, "d", type, MARKED, type, data);
    free(data);
    H5(H5Tclose(type));
}

static hid_t text_type(void)
{
    hid_t text = H5(H5Tcopy(H5T_C_S1));
    H5(H5Tset_size(text, H5T_VARIABLE));
    return text;
}

static void put_marked_texts(hid_t file)
{
    put_marked_type(file, text_type());
}

static void put_marked_lists(hid_t file)
{
    put_marked_type(file, H5(H5Tvlen_create(H5T_NATIVE_INT)));
}

static void put_marked_rows(hid_t file)
{
    hid_t text = text_type(), row = H5(H5Tcreate(H5T_COMPOUND, sizeof(char *)));
    H5(H5Tinsert(row, "text", 0, text));
    H5(H5Tclose(text));
    put_marked_type(file, row);
}

static void put_marked_attribute(hid_t file)
{
    static const hsize_t shape[] = { MARKED };
    int8_t *data = calloc(1, MARKED);
    ck_assert_ptr_nonnull(data);
    hdf5_put_attribute(file, "big", H5T_STD_I8LE, 1, shape, H5T_NATIVE_INT8, data);
    free(data);
}

/* Every place that says the number says 2^60 afterwards, or a GiB. */
static void patch_numbers(brc_buf *bytes, uint64_t to)
{
    const uint64_t from = MARKED;
    int found = 0;
    for (size_t i = 0; i + 8 <= bytes->len; i++)
        if (memcmp(bytes->data + i, &from, 8) == 0) {
            memcpy(bytes->data + i, &to, 8);
            found++;
        }
    ck_assert_int_gt(found, 0);
}
static void patch_2_60(brc_buf *bytes)
{
    patch_numbers(bytes, (uint64_t)1 << 60);
}
static void patch_one_more(brc_buf *bytes)
{
    patch_numbers(bytes, MARKED + 1);
}
static void patch_three_times(brc_buf *bytes)
{
    patch_numbers(bytes, 3 * MARKED);
}
static void patch_gib(brc_buf *bytes)
{
    patch_numbers(bytes, (uint64_t)1 << 30);
}

/* 64 KiB that inflate to 64 MiB, where the chunk has 32 bytes. `filter`: one that Zarr has no
 * codec for, so that the library decodes. */
static void put_inflating(hid_t file, int filter)
{
    static const hsize_t eight = 8, start = 0;
    const size_t len = (size_t)64 << 20;
    uLongf size = compressBound(len);
    uint8_t *zeros = calloc(1, len), *stream = malloc(size);
    ck_assert(zeros && stream && compress(stream, &size, zeros, len) == Z_OK);
    hid_t plist = hdf5_chunked(1, &eight);
    if (filter)
        H5(H5Pset_nbit(plist));
    H5(H5Pset_deflate(plist, 6));
    hid_t set = hdf5_new_dataset(file, "d", H5T_STD_I32LE, 1, &eight, plist, 0, NULL);
    H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &start, size, stream));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    free(zeros);
    free(stream);
}
static void put_inflating_passed(hid_t file)
{
    put_inflating(file, 0);
}
static void put_inflating_read(hid_t file)
{
    put_inflating(file, 1);
}

/* ---- numbers --------------------------------------------------- */

static void put_links(hid_t file)
{
    const int32_t value = 7;
    char name[32];
    hsize_t n = many(20000);
    hdf5_put(file, "d", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
    for (hsize_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "l%llu", (unsigned long long)i);
        H5(H5Lcreate_hard(file, "d", file, name, H5P_DEFAULT, H5P_DEFAULT));
    }
}

static void put_soft_links(hid_t file)
{
    const int32_t value = 7;
    char name[32];
    hdf5_put(file, "d", H5T_STD_I32LE, 1, H5T_NATIVE_INT32, &value);
    for (hsize_t i = 0, n = many(20000); i < n; i++) {
        snprintf(name, sizeof(name), "l%llu", (unsigned long long)i);
        H5(H5Lcreate_soft("/d", file, name, H5P_DEFAULT, H5P_DEFAULT));
    }
}

static void put_nested(hid_t file)
{
    hid_t at = H5(H5Gopen2(file, "/", H5P_DEFAULT));
    for (hsize_t i = 0, n = many(20000); i < n; i++) {
        hid_t inner = H5(H5Gcreate2(at, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5(H5Gclose(at));
        at = inner;
    }
    H5(H5Gclose(at));
}

static void put_attributes(hid_t file)
{
    const int64_t value = 7;
    char name[32];
    hid_t group = H5(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (hsize_t i = 0, n = many(50001); i < n; i++) {
        snprintf(name, sizeof(name), "a%llu", (unsigned long long)i);
        hdf5_put_attribute(group, name, H5T_STD_I64LE, 0, NULL, H5T_NATIVE_INT64, &value);
    }
    H5(H5Gclose(group));
}

/* ---- each ------------------------------------------------------ */

static const struct {
    void (*put)(hid_t file);
    void (*patch)(brc_buf *bytes);
    int code;
    const char *says;
    int old; /* the format that can hold it, or that has no checksum over what is patched */
} bombs[] = {
    { put_nothing_of_much, NULL, BRC_OK, "", 0 },
    { put_one_chunk_of_much, NULL, BRC_OK, "", 0 },
    { put_marked, patch_2_60, BRC_EINVAL, "x.h5: /d", 1 },
    { put_marked_texts, patch_one_more, BRC_EINVAL, "fewer than its shape needs", 1 },
    { put_marked_lists, patch_one_more, BRC_EINVAL, "fewer than its shape needs", 1 },
    { put_marked_rows, patch_three_times, BRC_EINVAL, "fewer than its shape needs", 1 },
    { put_marked_attribute, patch_gib, BRC_EINVAL, "x.h5", 1 },
    { put_inflating_passed, NULL, BRC_EINVAL, "x.h5: /bad/d chunk (0)", 0 },
    { put_inflating_read, NULL, BRC_OK, "", 0 }, /* what is behind is not looked at */
    { put_links, NULL, BRC_ELIMIT, "more than 10000 copies of groups and datasets", 0 },
    { put_soft_links, NULL, BRC_ELIMIT, "more than 10000 copies of groups and datasets", 0 },
    { put_nested, NULL, BRC_EUNSUPPORTED, "is more than 64 names deep", 0 },
    { put_attributes, NULL, BRC_EUNSUPPORTED, "attributes, and at most 50000 can be imported", 0 },
};
#define N_BOMBS ((int)(sizeof(bombs) / sizeof(bombs[0])))

/* In a process of its own, where little is to be had: what it says is a line of the test's. */
static void import_bomb(void *ctx)
{
    const int i = *(const int *)ctx;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    brc_session *session;
    brc_error err = BRC_ERROR_INIT;
    breccia *repo;
    int clean;

    opts.libexec = converters_folder();
    if (brc_open(&repo, "test.brc", &opts, &err) < 0 ||
        brc_session_open(&session, repo, NULL, BRC_SESSION_WRITE, &err) < 0)
        _exit(2);
    int rc = brc_import(session, "x.h5", "/bad", NULL, &err);
    if (rc != bombs[i].code || (rc < 0 && !strstr(err.message, bombs[i].says)) ||
        strchr(err.message, '\n')) {
        fprintf(stderr, "bomb %d: %d, %s\n", i, rc, err.message);
        _exit(3);
    }
    if (brc_session_clean(&clean, session, &err) < 0 || clean != (rc < 0))
        _exit(4);
    brc_session_free(session);
    brc_free(repo);
}

CASE("bombs", .timeout = 600);

LOOP(held, 0, N_BOMBS)
{
    exchange_kit kit;
    exchange_start(&kit);
    hid_t file = hdf5_new_file(&kit, "x.h5", bombs[_i].old);
    bombs[_i].put(file);
    H5(H5Fclose(file));
    if (bombs[_i].patch) {
        const char *path = exchange_path(&kit, "x.h5");
        brc_buf bytes = exchange_read(path);
        bombs[_i].patch(&bytes);
        ck_assert_int_eq(unlink(path), 0);
        exchange_file(&kit, "x.h5", bytes.data, bytes.len);
        brc_buf_dispose(&bytes);
    }
    ck_assert_int_eq(chdir(kit.dir), 0);
    ck_assert_int_eq(hostile_confined(import_bomb, &_i), 0);
    ck_assert_int_eq(chdir("/"), 0);
    exchange_stop(&kit);
}
