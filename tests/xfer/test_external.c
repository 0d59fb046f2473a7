/*
 * The backend "external" and imports that leave chunks in the files of their source: values, what
 * is stored nevertheless, and what is said of files that changed, moved or never were what a place
 * says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../kit/converters.h"
#include "../kit/external_kit.h"
#include "../kit/hdf5_kit.h"
#include "../kit/netcdf_kit.h"
#include "../kit/suite.h"
#include "../kit/versions.h"

TEST_SUITE(external);

static exchange_kit kit;
static brc_buf said; /* the warnings of the last import */

static void external_start(void)
{
    exchange_start(&kit);
    said = (brc_buf)BRC_BUF_INIT;
}

static void external_stop(void)
{
    brc_buf_dispose(&said);
    exchange_stop(&kit);
}

static void open_again(void)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.libexec = converters_folder();
    scenario_open(&kit, &opts, 0);
}

static int lie(const char *source, const char *path, uint32_t flags)
{
    return exchange_import(&kit, source, path, flags, &said);
}

static void lie_ok(const char *source, const char *path)
{
    OK(&kit, lie(source, path, BRC_XFER_EXTERNAL));
}

static int64_t stored(void)
{
    return scenario_ask(&kit, "SELECT count(*) FROM object WHERE kind=1 AND backend=0");
}

static void move_away(const char *path)
{
    ck_assert_int_eq(rename(path, exchange_path(&kit, "away")), 0);
}

/* ---- sources -------------------------------- */

#define ROWS 600
#define COLUMNS 1000

static void npy(const char *name, const char *descr, int fortran, int rows, int columns)
{
    char dictionary[200];
    brc_buf file = BRC_BUF_INIT;
    const size_t len = (size_t)rows * (size_t)columns * 4;
    uint8_t *data = malloc(len);
    uint64_t random = 3;
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < len; i++)
        data[i] = (uint8_t)(scenario_random(&random) >> 40 & 0x3f);
    snprintf(dictionary, sizeof(dictionary),
             "{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }", descr,
             fortran ? "True" : "False", rows, columns);
    exchange_npy(&file, dictionary, data, len);
    exchange_file(&kit, name, file.data, file.len);
    brc_buf_dispose(&file);
    free(data);
}

static void make_c(void)
{
    npy("in", "<f4", 0, ROWS, COLUMNS);
}
static void make_big(void)
{
    npy("in", ">i4", 0, ROWS, COLUMNS);
}
static void make_fortran(void)
{
    npy("in", ">i4", 1, COLUMNS, ROWS);
}
/* 601 is a prime number: the last chunk is cut off. */
static void make_prime(void)
{
    npy("in", "<i4", 0, 601, COLUMNS);
}
static void make_gzip(void)
{
    brc_buf plain, packed = BRC_BUF_INIT;
    npy("plain.npy", "<i4", 0, 20, COLUMNS);
    plain = exchange_read(exchange_path(&kit, "plain.npy"));
    exchange_gzip(&packed, plain.data, plain.len);
    exchange_file(&kit, "in", packed.data, packed.len);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&packed);
}

static void make_idx(void)
{
    brc_buf file = BRC_BUF_INIT;
    static const uint8_t head[] = { 0, 0, 0x0c, 2, 0, 0, 2, 0, 0, 0, 4, 0 };
    OK(&kit, brc_buf_append(&file, head, sizeof(head), &kit.err));
    for (int i = 0; i < 512 * 1024; i++) {
        const uint8_t element[] = { 0, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i };
        OK(&kit, brc_buf_append(&file, element, 4, &kit.err));
    }
    exchange_file(&kit, "in", file.data, file.len);
    brc_buf_dispose(&file);
}

#define GZIP                                                                   \
    "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"            \
    "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]"
#define SHARDS                                                                 \
    "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[10]," \
    "\"codecs\":" GZIP ",\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":" \
    "\"little\"}},{\"name\":\"crc32c\"}]}}]"

/* A hierarchy in another repository: /g/a in chunks of 40, at the end cut; one of them is fill. */
static void make_zarr(const char *codecs, const char *format)
{
    scenario other;
    uint64_t shape = 990, chunk = 40;
    int32_t data[990];
    scenario_start(&other);
    for (int i = 0; i < 990; i++)
        data[i] = i < 40 ? 0 : 7 * i;
    brc_array_free(scenario_array(&other, "/g/a", "int32", 1, &shape, &chunk, "0", codecs));
    scenario_write(&other, other.session, "/g/a", data, sizeof(data));
    exchange_export_ok(&other, "/g", exchange_path(&kit, "in"), format, 0);
    scenario_stop(&other);
}

static void make_zarr3(void)
{
    make_zarr(GZIP, "zarr3");
}
static void make_shards(void)
{
    make_zarr(SHARDS, "zarr3");
}
static void make_zarr2(void)
{
    make_zarr(GZIP, "zarr2");
}
static void make_zip(void)
{
    make_zarr(GZIP, "zip");
}

static hid_t filtered(int ndim, const hsize_t *chunk)
{
    hid_t plist = hdf5_chunked(ndim, chunk);
    H5(H5Pset_shuffle(plist));
    H5(H5Pset_deflate(plist, 1));
    H5(H5Pset_fletcher32(plist));
    return plist;
}

static int32_t noise[200 * 300];

static void make_noise(void)
{
    uint64_t random = 9;
    for (size_t i = 0; i < sizeof(noise) / sizeof(noise[0]); i++)
        noise[i] = (int32_t)(scenario_random(&random) >> 33);
}

/* Chunks with filters, some of them cut; elements in one piece; compact ones, which are stored. */
static void make_hdf5(void)
{
    static const hsize_t shape[] = { 200, 300 }, chunk[] = { 64, 64 }, few = 5;
    hid_t file = hdf5_new_file(&kit, "in", 0), plist = filtered(2, chunk);
    make_noise();
    H5(H5Dclose(hdf5_new_dataset(file, "chunks", H5T_STD_I32BE, 2, shape, plist, H5T_NATIVE_INT32,
                                 noise)));
    H5(H5Pclose(plist));
    H5(H5Dclose(hdf5_new_dataset(file, "whole", H5T_STD_I32BE, 2, shape, H5P_DEFAULT,
                                 H5T_NATIVE_INT32, noise)));
    plist = H5(H5Pcreate(H5P_DATASET_CREATE));
    H5(H5Pset_layout(plist, H5D_COMPACT));
    H5(H5Dclose(hdf5_new_dataset(file, "compact", H5T_STD_I32LE, 1, &few, plist, H5T_NATIVE_INT32,
                                 noise)));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
}

static void make_netcdf(int mode)
{
    int nc, dims[3], fixed, record, odd;
    make_noise();
    NC(nc_create(exchange_path(&kit, "in"), mode, &nc));
    NC(nc_def_dim(nc, "t", NC_UNLIMITED, &dims[0]));
    NC(nc_def_dim(nc, "x", 2000, &dims[1]));
    NC(nc_def_var(nc, "fixed", NC_INT, 1, &dims[1], &fixed));
    NC(nc_def_var(nc, "record", NC_INT, 2, dims, &record));
    NC(nc_def_var(nc, "odd", NC_SHORT, 1, dims, &odd)); /* records of 2 bytes: they are stored */
    NC(nc_enddef(nc));
    NC(nc_put_var_int(nc, fixed, noise + 20000));
    for (size_t t = 0; t < 7; t++) {
        const size_t start[] = { t, 0 }, count[] = { 1, 2000 };
        NC(nc_put_vara_int(nc, record, start, count, noise + 2000 * t));
        NC(nc_put_vara_int(nc, odd, start, count, &(const int){ (int)t }));
    }
    NC(nc_close(nc));
}

static void make_netcdf3(void)
{
    make_netcdf(NC_64BIT_OFFSET);
}
static void make_netcdf4(void)
{
    make_netcdf(NC_NETCDF4);
}

static const struct source {
    void (*make)(void);
    int lying, stored; /* chunks; -1: that depends on the library */
    const char *says;
} sources[] = {
    { make_c, 3, 0, NULL },
    { make_big, 3, 0, NULL },
    { make_fortran, 3, 0, NULL },
    { make_prime, 2, 1, "/e (1 of 3)" },
    { make_gzip, 0, 1, "/e (1 of 1)" },
    { make_idx, 2, 0, NULL },
    { make_zarr3, 24, 0, NULL },
    { make_shards, 95, 0, NULL },
    { make_zarr2, 24, 0, NULL },
    { make_zip, 0, 24, "/e/a (24 of 24)" },
    { make_hdf5, 21, 1, "/e/compact (1 of 1)" },
    { make_netcdf3, 8, 1, "/e/odd (1 of 1)" },
    { make_netcdf4, -1, -1, NULL },
};
#define N_SOURCES ((int)(sizeof(sources) / sizeof(sources[0])))

/* ---- values -------------------------------- */

static size_t array_bytes(const brc_array_info *info)
{
    size_t len = info->item_size;
    for (int i = 0; i < info->ndim; i++)
        len *= (size_t)info->shape[i];
    return len;
}

static void same_array(const char *a, const char *b)
{
    brc_array *array = scenario_array_at(&kit, kit.session, a);
    const size_t len = array_bytes(brc_array_describe(array));
    brc_array_free(array);
    ck_assert_uint_gt(len, 0);
    void *want = exchange_elements(kit.session, a, len);
    void *got = exchange_elements(kit.session, b, len);
    ck_assert_msg(memcmp(want, got, len) == 0, "%s and %s differ", a, b);
    free(want);
    free(got);
}

/* Each array under /p is the same under /e. */
static int same_arrays(void)
{
    brc_iter *it;
    const brc_node *node;
    char paths[20][100], other[100];
    int n = 0;
    if (exchange_node(&kit, "/p") == BRC_ARRAY) {
        same_array("/p", "/e");
        return 1;
    }
    OK(&kit, brc_list(&it, kit.session, "/p", BRC_LIST_RECURSE, &kit.err));
    while (brc_next(it, &node, &kit.err) == 1)
        if (node->kind == BRC_ARRAY)
            snprintf(paths[n++], sizeof(paths[0]), "%s", node->path);
    brc_iter_free(it);
    for (int i = 0; i < n; i++) {
        snprintf(other, sizeof(other), "/e%s", paths[i] + 2);
        same_array(paths[i], other);
    }
    return n;
}

CASE("values", .setup = external_start, .teardown = external_stop, .timeout = 60);

EACH(values_are_those_of_a_plain_import, sources)
{
    const struct source *from = &sources[_i];
    from->make();
    lie_ok("in", "/e");
    scenario_commit(&kit, "lies there");
    if (from->lying >= 0) {
        ck_assert_int_eq(external_lying(&kit), from->lying);
        ck_assert_int_eq(stored(), from->stored);
    } else {
        ck_assert_int_gt(external_lying(&kit), 0);
    }
    if (from->says != NULL)
        ck_assert_msg(strstr((char *)said.data, from->says) != NULL, "%s", (char *)said.data);
    else if (from->stored == 0)
        ck_assert_str_eq((char *)said.data, "");
    OK(&kit, lie("in", "/p", 0));
    ck_assert_int_gt(same_arrays(), 0);
    scenario_commit(&kit, "both");
    scenario_whole(&kit);
    scenario_reopen(&kit);
    ck_assert_int_gt(same_arrays(), 0);
}

/* Content that the repository's file has already gets no place. */
TEST(content_that_is_stored_stays_where_it_is)
{
    make_c();
    OK(&kit, lie("in", "/p", 0));
    const int64_t before = stored();
    lie_ok("in", "/e");
    ck_assert_int_eq(stored(), before);
    same_arrays();
}

/* The rest of an array is written as that of any other. */
TEST(new_values_go_into_the_file)
{
    make_c();
    lie_ok("in", "/e");
    OK(&kit, lie("in", "/p", 0));
    scenario_commit(&kit, "first");
    const int64_t lay = external_lying(&kit), before = stored();
    const float one = 1;
    scenario_fill(&kit, kit.session, "/e", "[0:2, 0:5]", &one);
    scenario_fill(&kit, kit.session, "/p", "[0:2, 0:5]", &one);
    ck_assert_int_eq(external_lying(&kit), lay);
    ck_assert_int_gt(stored(), before);
    same_arrays();
    scenario_whole(&kit);
}

TEST(a_node_is_replaced)
{
    make_big();
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    move_away(exchange_path(&kit, "in"));
    make_c();
    OK(&kit, lie("in", "/e", BRC_XFER_EXTERNAL | BRC_XFER_REPLACE));
    OK(&kit, lie("in", "/p", 0));
    same_arrays();
    scenario_commit(&kit, "second");
}

/* The elements beyond an array's edge are whatever the file has there. */
TEST(a_chunk_whose_edge_is_not_fill_lies_too)
{
    static const hsize_t shape = 1500, chunk = 1200;
    int32_t *data = noise;
    hid_t file = hdf5_new_file(&kit, "in", 0), plist = hdf5_chunked(1, &chunk);
    make_noise();
    hid_t set = hdf5_new_dataset(file, "a", H5T_STD_I32LE, 1, &shape, plist, 0, NULL);
    for (hsize_t at = 0; at < shape; at += chunk)
        H5(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &at, (size_t)chunk * 4, data + at));
    H5(H5Dclose(set));
    H5(H5Pclose(plist));
    H5(H5Fclose(file));
    lie_ok("in", "/e");
    ck_assert_int_eq(external_lying(&kit), 2);
    OK(&kit, lie("in", "/p", 0));
    same_arrays();
    scenario_commit(&kit, "both");
    scenario_whole(&kit);
}

/* ---- what it costs -------------------------------- */

static int64_t file_bytes(void)
{
    struct stat st;
    ck_assert_int_eq(stat(kit.file, &st), 0);
    return st.st_size;
}

/* An HDF5 file with n chunks that do not shrink. */
static void many_chunks(const char *name, uint64_t n, uint64_t *random)
{
    scenario other;
    const uint64_t chunk = 1024, shape = n * chunk;
    int32_t *data = malloc(shape * 4);
    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < shape; i++)
        data[i] = (int32_t)(scenario_random(random) >> 32);
    exchange_start(&other);
    brc_array_free(scenario_array(&other, "/a", "int32", 1, &shape, &chunk, "0", NULL));
    scenario_write(&other, other.session, "/a", data, shape * 4);
    exchange_export_ok(&other, "/", exchange_path(&kit, name), "hdf5", 0);
    exchange_stop(&other);
    free(data);
}

TEST(a_chunk_costs_at_most_100_bytes)
{
    enum { MANY = 3000 };
    uint64_t random = 4;
    many_chunks("few", 10, &random); /* then there are tables, and pages of them */
    many_chunks("many", MANY, &random);
    lie_ok("few", "/first");
    scenario_commit(&kit, "first");
    const int64_t before = file_bytes();
    lie_ok("many", "/e");
    scenario_commit(&kit, "second");
    ck_assert_int_eq(external_lying(&kit), MANY + 10);
    ck_assert_int_le(file_bytes() - before, 100 * MANY);
}

/* ---- the lines of backends that concern reading -------------------------------- */

/* An int32 array "/e" that lies elsewhere, committed, and its elements. */
static int32_t *lying_array(void)
{
    int32_t *data = malloc(ROWS * COLUMNS * sizeof(*data));
    npy("in", "<i4", 0, ROWS, COLUMNS);
    lie_ok("in", "/e");
    scenario_commit(&kit, "lies there");
    scenario_read(&kit, kit.session, "/e", data, ROWS * COLUMNS * sizeof(*data));
    return data;
}

static void has_backend(brc_session *s, const char *name)
{
    brc_array *a = scenario_array_at(&kit, s, "/e");
    const char *spec = brc_array_describe(a)->backend_json;
    ck_assert_msg(strstr(spec, name) != NULL, "%s", spec);
    brc_array_free(a);
}

static void has_elements(brc_session *s, const int32_t *want)
{
    int32_t *got = malloc(ROWS * COLUMNS * sizeof(*got));
    scenario_read(&kit, s, "/e", got, ROWS * COLUMNS * sizeof(*got));
    ck_assert_int_eq(memcmp(got, want, ROWS * COLUMNS * sizeof(*got)), 0);
    free(got);
}

static void lying_rows(brc_buf *out)
{
    scenario_rows(&kit,
                  "SELECT hex(id), encoding, backend, place, offset, stored FROM object WHERE"
                  " backend=(SELECT id FROM backend WHERE spec LIKE '%external%') ORDER BY id",
                  out);
}

TEST(B11_B13_B14_B16_B17_B18_B19_new_chunks_go_elsewhere_and_old_ones_stay)
{
    const int32_t value = -5;
    brc_buf before = BRC_BUF_INIT, after = BRC_BUF_INIT;
    int32_t *data = lying_array();
    const int32_t was_there = data[7 * COLUMNS + 9];
    lying_rows(&before);
    scenario_set_backend(&kit, kit.session, "/e", "pack");
    has_elements(kit.session, data);
    scenario_commit(&kit, "packs from now on");
    scenario_fill(&kit, kit.session, "/e", "[7:8,9:10]", &value);
    data[7 * COLUMNS + 9] = value;
    has_elements(kit.session, data);
    scenario_commit(&kit, "one element");
    scenario_reopen(&kit);
    has_elements(kit.session, data);
    has_backend(kit.session, "pack");
    lying_rows(&after);
    ck_assert_uint_eq(before.len, after.len);
    ck_assert_mem_eq(before.data, after.data, before.len);
    ck_assert_int_eq((int)scenario_ask(&kit, "SELECT count(*) FROM object WHERE backend=(SELECT id"
                                             " FROM backend WHERE spec LIKE '%\"pack\"%')"),
                     1);
    brc_session *old = scenario_session(&kit, kit.repo, "main~2", BRC_SESSION_AT);
    data[7 * COLUMNS + 9] = was_there;
    has_backend(old, "inline");
    has_elements(old, data);
    brc_session_free(old);
    brc_buf_dispose(&before);
    brc_buf_dispose(&after);
    free(data);
}

/* One side changes where new chunks go, the other one writes: both are merged, and what lies
 * elsewhere is read by all. */
TEST(B31_B33_B34_branches_of_an_array_that_lies_elsewhere)
{
    const int32_t value = -6;
    int32_t *data = lying_array();
    const int64_t n = external_lying(&kit);
    OK(&kit, brc_ref_create(kit.repo, "side", "main", NULL, 0, &kit.err));
    scenario_set_backend(&kit, kit.session, "/e", "pack");
    scenario_commit(&kit, "packs from now on");
    scenario_be_on(&kit, "side");
    has_backend(kit.session, "inline");
    scenario_fill(&kit, kit.session, "/e", "[7:8,9:10]", &value);
    scenario_commit(&kit, "one element");
    scenario_be_on(&kit, "main");
    has_elements(kit.session, data);
    ck_assert_int_eq(scenario_merge(&kit, "side", 0), BRC_MERGE_MERGED);
    data[7 * COLUMNS + 9] = value;
    scenario_reopen(&kit);
    has_backend(kit.session, "pack");
    has_elements(kit.session, data);
    ck_assert_int_eq(external_lying(&kit), n);
    scenario_whole(&kit);
    free(data);
}

/* ---- files that change -------------------------------- */

static int read_all(void)
{
    static float got[ROWS * COLUMNS];
    brc_array *a = scenario_array_at(&kit, kit.session, "/e");
    const int rc = brc_array_read(a, NULL, got, sizeof(got), &kit.err);
    brc_array_free(a);
    return rc;
}

CASE("files that change", .setup = external_start, .teardown = external_stop, .timeout = 60);

LOOP(a_file_that_changed_is_an_error_that_names_it, 0, EXTERNAL_HAZARDS)
{
    const external_hazard *h = &external_hazards[_i];
    make_c();
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    OK(&kit, read_all());
    external_look(&kit, BRC_BACKENDS_QUICK, NULL);
    external_meets(&kit, h, "in", h->happens == external_poke ? "/e chunk (" : "/in", read_all);
}

LOOP(a_look_at_the_places_sees_what_is_not_the_old_file, 0, EXTERNAL_HAZARDS)
{
    const external_hazard *h = &external_hazards[_i];
    struct stat was;
    make_c();
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    const char *path = exchange_path(&kit, "in");
    ck_assert_int_eq(stat(path, &was), 0);
    h->happens(path, &was);
    external_look(&kit, BRC_BACKENDS_QUICK, h->happens == external_poke ? NULL : h->says);
    external_look(&kit, 0, h->happens == external_poke ? NULL : h->says);
}

/* ---- what a stranger's file says -------------------------------- */

static const struct {
    const char *name; /* NULL: the name stays */
    const char *sql, *says;
} hostile[] = {
    { "", NULL, "is not valid" },
    { "x", NULL, "is not the name of a file" },
    { "4 5", NULL, "is not the name of a file" },
    { "4 5 ", NULL, "is not the name of a file" },
    { "04 5 in", NULL, "is not the name of a file" },
    { "4 05 in", NULL, "is not the name of a file" },
    { "4 -0 in", NULL, "is not the name of a file" },
    { "+4 5 in", NULL, "is not the name of a file" },
    { "99999999999999999999 5 in", NULL, "is not the name of a file" },
    { "4 5 ../in", NULL, "is not the name of a file" },
    { "4 5 /a/../in", NULL, "is not the name of a file" },
    { "4 5 ./in", NULL, "is not the name of a file" },
    { "4 5 a//in", NULL, "is not the name of a file" },
    { "4 5 in/", NULL, "is not the name of a file" },
    { "4 5 /", NULL, "is not the name of a file" },
    { "2400128 5 /dev/zero", NULL, "is not a file any more" },
    { "4 5 in", NULL, "has no byte" },
    { "9000000 5 in", NULL, "has changed since" },
    { NULL, "UPDATE object SET offset=9000000 WHERE backend>0", "has no byte" },
    { NULL, "UPDATE object SET offset=offset+1 WHERE backend>0", "" },
    { NULL, "UPDATE object SET place=0, offset=0 WHERE backend>0", "an object has no place" },
    { NULL, "UPDATE object SET place=77 WHERE backend>0", "has no place 77" },
};

CASE("strangers", .setup = external_start, .teardown = external_stop, .timeout = 60);

EACH(names_of_a_stranger, hostile)
{
    char sql[500];
    make_c();
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    scenario_close(&kit);
    snprintf(sql, sizeof(sql),
             "UPDATE place SET name='%s',"
             " checksum=row_sum('place', seq, backend, '%s', size, facts)",
             hostile[_i].name != NULL ? hostile[_i].name : "",
             hostile[_i].name != NULL ? hostile[_i].name : "");
    scenario_sql(&kit, hostile[_i].name != NULL ? sql : hostile[_i].sql);
    open_again();
    FAILS(&kit, BRC_ECORRUPT, read_all());
    external_said(&kit, hostile[_i].says);
}

/* A pack's number and a file's are not confused, and no array sends its chunks here. */
TEST(nothing_is_put_there)
{
    make_c();
    lie_ok("in", "/e");
    brc_array *a = scenario_array_at(&kit, kit.session, "/e");
    FAILS(&kit, BRC_EUNSUPPORTED, brc_array_set_backend(a, "external", &kit.err));
    external_said(&kit, "is read-only");
    brc_array_free(a);
    FAILS(&kit, BRC_EUNSUPPORTED, brc_config_set(kit.repo, "backend", "external", &kit.err));
}

/* ---- where files lie -------------------------------- */

static void copy_to(const char *from, const char *to)
{
    brc_buf bytes = exchange_read(exchange_path(&kit, from));
    exchange_file(&kit, to, bytes.data, bytes.len);
    brc_buf_dispose(&bytes);
}

static void open_at(const char *name)
{
    snprintf(kit.file, sizeof(kit.file), "%s", exchange_path(&kit, name));
    open_again();
}

#define NAMED "SELECT count(*) FROM place WHERE name LIKE "

CASE("where files lie", .setup = external_start, .teardown = external_stop, .timeout = 60);

TEST(a_file_beneath_the_folder_moves_with_it)
{
    make_c();
    exchange_text(&kit, "data/x", "x");
    ck_assert_int_eq(rename(exchange_path(&kit, "in"), exchange_path(&kit, "data/in")), 0);
    lie_ok("data/in", "/e");
    scenario_commit(&kit, "first");
    scenario_close(&kit);
    ck_assert_int_eq(scenario_ask(&kit, NAMED "'% data/in'"), 1);
    exchange_text(&kit, "new/x", "x");
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "new/data")), 0);
    copy_to("test.brc", "new/test.brc");
    open_again();
    FAILS(&kit, BRC_ECORRUPT, read_all());
    external_said(&kit, "there is no file");
    scenario_close(&kit);
    open_at("new/test.brc");
    OK(&kit, read_all());
    /* through a link to the repository's file */
    scenario_close(&kit);
    ck_assert_int_eq(symlink("new/test.brc", exchange_path(&kit, "link.brc")), 0);
    open_at("link.brc");
    OK(&kit, read_all());
}

TEST(a_file_elsewhere_keeps_its_path)
{
    make_c();
    scenario_close(&kit);
    exchange_text(&kit, "own/x", "x");
    ck_assert_int_eq(rename(kit.file, exchange_path(&kit, "own/test.brc")), 0);
    open_at("own/test.brc");
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    ck_assert_int_eq(scenario_ask(&kit, NAMED "'% /%/in'"), 1);
    scenario_close(&kit);
    exchange_text(&kit, "other/x", "x");
    ck_assert_int_eq(rename(kit.file, exchange_path(&kit, "other/test.brc")), 0);
    open_at("other/test.brc");
    OK(&kit, read_all());
}

/* ---- who removes what -------------------------------- */

TEST(a_collection_removes_rows_and_no_file)
{
    brc_gc_report report = BRC_GC_REPORT_INIT;
    brc_expire_opts opts = BRC_EXPIRE_OPTS_INIT;
    brc_expire_report expired = BRC_EXPIRE_REPORT_INIT;
    make_c();
    scenario_no_window(&kit);
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    OK(&kit, brc_node_remove(kit.session, "/e", &kit.err));
    scenario_commit(&kit, "second");
    opts.keep_last = 1;
    OK(&kit, brc_expire(&expired, NULL, kit.repo, &opts, &kit.err));
    for (int i = 0; i < 2; i++)
        OK(&kit, brc_gc(kit.repo, NULL, &report, &kit.err));
    ck_assert_int_eq(external_lying(&kit), 0);
    ck_assert_int_eq(scenario_ask(&kit, "SELECT count(*) FROM place"), 0);
    ck_assert_int_eq(exchange_exists(exchange_path(&kit, "in")), 1);
    lie_ok("in", "/e");
    OK(&kit, read_all());
    scenario_whole(&kit);
}

TEST(a_backup_reads_the_same_files)
{
    make_c();
    lie_ok("in", "/e");
    scenario_commit(&kit, "first");
    OK(&kit, brc_backup(NULL, kit.repo, exchange_path(&kit, "copy.brc"), &kit.err));
    scenario_close(&kit);
    open_at("copy.brc");
    OK(&kit, read_all());
    scenario_whole(&kit);
}

/* ---- files that moved -------------------------------- */

static uint64_t moved, compared;

static int rebase(const char *from, const char *to)
{
    return external_rebase(&kit, from, to, &moved, &compared);
}

/* Two files beneath data, and their values beneath /e. */
static void make_two(void)
{
    exchange_text(&kit, "data/x", "x");
    make_big();
    ck_assert_int_eq(rename(exchange_path(&kit, "in"), exchange_path(&kit, "data/in")), 0);
    make_prime();
    ck_assert_int_eq(rename(exchange_path(&kit, "in"), exchange_path(&kit, "data/b")), 0);
    lie_ok("data/in", "/e");
    lie_ok("data/b", "/b");
    OK(&kit, lie("data/in", "/f", 0));
    scenario_commit(&kit, "first");
}

CASE("files that moved", .setup = external_start, .teardown = external_stop, .timeout = 60);

TEST(a_tree_that_moved)
{
    breccia *other;
    make_two();
    other = scenario_handle(&kit, 1000);
    brc_session *s = scenario_session(&kit, other, NULL, BRC_SESSION_WRITE);
    void *before = exchange_elements(s, "/e", ROWS * COLUMNS * 4);
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "new")), 0);
    FAILS(&kit, BRC_ECORRUPT, read_all());
    external_said(&kit, "--rebase");
    OK(&kit, rebase("data", "new"));
    ck_assert_uint_eq(moved, 2);
    ck_assert_uint_eq(compared, 0);
    OK(&kit, read_all());
    scenario_whole(&kit);
    /* a handle that knew the old names */
    void *after = exchange_elements(s, "/e", ROWS * COLUMNS * 4);
    ck_assert_mem_eq(before, after, ROWS * COLUMNS * 4);
    free(before);
    free(after);
    brc_session_free(s);
    brc_free(other);
    ck_assert_int_eq(scenario_ask(&kit, NAMED "'% new/%'"), 2);
    FAILS(&kit, BRC_ENOTFOUND, rebase("data", "new"));
    FAILS(&kit, BRC_ENOTFOUND, rebase("ne", "data"));
    /* one file, to where a link leads */
    ck_assert_int_eq(rename(exchange_path(&kit, "new/b"), exchange_path(&kit, "b")), 0);
    OK(&kit, rebase("new/b", "b"));
    ck_assert_uint_eq(moved, 1);
    scenario_whole(&kit);
}

TEST(a_copy_with_other_times_is_compared)
{
    make_two();
    copy_to("data/in", "new/in");
    copy_to("data/b", "new/b");
    OK(&kit, rebase("data", "new/"));
    ck_assert_uint_eq(moved, 2);
    ck_assert_uint_eq(compared, (uint64_t)external_lying(&kit));
    scenario_whole(&kit);
    OK(&kit, rebase("new", "new"));
    ck_assert_uint_eq(compared, 0);
}

TEST(a_file_that_was_only_touched)
{
    make_two();
    const char *path = exchange_path(&kit, "data/in");
    struct stat was;
    ck_assert_int_eq(stat(path, &was), 0);
    external_touch(path, &was);
    FAILS(&kit, BRC_ECORRUPT, read_all());
    OK(&kit, rebase("data/in", "data/in"));
    ck_assert_uint_eq(moved, 1);
    ck_assert_uint_gt(compared, 0);
    OK(&kit, read_all());
    scenario_whole(&kit);
}

/* Nothing changes if one file is missing, has another size or other bytes. */
LOOP(all_files_must_be_there, 0, 4)
{
    static const char *const says[] = { "cannot open", "the file is another",
                                        "do not match their checksum", "is not a regular file" };
    external_change *const happens[] = { external_remove, external_cut, external_poke,
                                         external_to_fifo };
    struct stat was;
    make_two();
    const char *path = exchange_path(&kit, "new/in");
    copy_to("data/b", "new/b");
    copy_to("data/in", "new/in");
    ck_assert_int_eq(stat(path, &was), 0);
    happens[_i](path, &was);
    ck_assert_int_lt(rebase("data", "new"), 0);
    external_said(&kit, says[_i]);
    ck_assert_int_eq(scenario_ask(&kit, NAMED "'% data/%'"), 2);
    OK(&kit, read_all());
    scenario_whole(&kit);
}

/* Within a program's transaction the change is a part of it. */
TEST(a_change_that_is_undone)
{
    make_two();
    ck_assert_int_eq(rename(exchange_path(&kit, "data"), exchange_path(&kit, "new")), 0);
    OK(&kit, brc_begin(kit.repo, &kit.err));
    OK(&kit, rebase("data", "new"));
    OK(&kit, brc_end(kit.repo, 0, &kit.err));
    ck_assert_int_eq(rename(exchange_path(&kit, "new"), exchange_path(&kit, "data")), 0);
    OK(&kit, read_all());
    scenario_whole(&kit);
}

/* ---- what is refused -------------------------------- */

static int import_with(const brc_xfer_opts *opts)
{
    return brc_import(kit.session, exchange_path(&kit, "in"), "/e", opts, &kit.err);
}

TEST(streams_and_other_chunks_are_refused)
{
    static const uint64_t chunk[] = { 10, 10 };
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    make_c();
    opts.flags = BRC_XFER_EXTERNAL;
    FAILS(&kit, BRC_EINVAL, exchange_stream_in(kit.session, 0, "/e", &opts, &kit.err));
    external_said(&kit, "lie in no file");
    opts.with = "cat";
    FAILS(&kit, BRC_EINVAL, import_with(&opts));
    opts.with = NULL;
    opts.chunk = chunk;
    opts.nchunk = 2;
    FAILS(&kit, BRC_EINVAL, import_with(&opts));
    external_said(&kit, "keep their shape");
    opts.chunk = NULL;
    opts.codecs_json = GZIP;
    FAILS(&kit, BRC_EINVAL, import_with(&opts));
    opts.codecs_json = NULL;
    FAILS(&kit, BRC_EINVAL,
          brc_export(kit.session, "/", exchange_path(&kit, "out.zarr"), &opts, &kit.err));
    exchange_must_be_clean(&kit);
}
