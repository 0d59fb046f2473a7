/* Exports to HDF5 whose chunks the host has compressed: the file is the one that the library makes
 * of decoded chunks, byte for byte, and chunks that are not those of a dataset are decoded. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/file.h"
#include "../../src/xfer/stream/stream_out.h"
#include "../../src/zarr/doc/meta.h"
#include "../kit/converters.h"
#include "../kit/hdf5_kit.h"
#include "../kit/suite.h"
#include "../kit/tar_kit.h"

TEST_SUITE(hdf5_stored);

#define ZSTD "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"

static exchange_kit kit;

static void start(void)
{
    exchange_start(&kit);
}

static void stop(void)
{
    exchange_stop(&kit);
}

/* ---- whole exports -------------------------------- */

/* Numbers of each width, other types, chunks over the edge, shards, and absent chunks. */
static const struct {
    const char *path, *dtype, *codecs;
    size_t item;
} stored[] = {
    { "/i1", "int8", "[{\"name\":\"bytes\"}," ZSTD "]", 1 },
    { "/u2", "uint16", "[" LITTLE "," ZSTD "]", 2 },
    { "/i4", "int32", "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":7}}]", 4 },
    { "/f8", "float64",
      "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}," ZSTD "]", 8 },
    { "/g/none", "float32", "[" LITTLE "]", 4 },
    { "/g/zero", "int32", "[" LITTLE ",{\"name\":\"gzip\",\"configuration\":{\"level\":0}}]", 4 },
    { "/g/complex", "complex64", "[" LITTLE "," ZSTD "]", 8 },
    { "/g/bool", "bool", "[{\"name\":\"bytes\"}," ZSTD "]", 1 },
    { "/g/shards", "int64",
      "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[7,4],\"codecs\":[" LITTLE
      "," ZSTD "],\"index_codecs\":[" LITTLE "],\"index_location\":\"end\"}}]", 8 },
};
enum { STORED = sizeof(stored) / sizeof(stored[0]) };

static void make_stored(void)
{
    static const uint64_t shape[2] = { 30, 21 }, chunk[2] = { 7, 8 }, shard[2] = { 14, 8 };
    uint8_t data[30 * 21 * 8];
    for (size_t i = 0; i < STORED; i++) {
        const int is_bool = strcmp(stored[i].dtype, "bool") == 0;
        const int is_float = strncmp(stored[i].dtype, "f", 1) == 0;
        for (size_t k = 0; k < sizeof(data); k++)
            data[k] = is_bool ? k % 3 == 0 : is_float ? (uint8_t)(k % 7) : (uint8_t)(k * k >> 5);
        memset(data, 0, 14 * 21 * stored[i].item); /* the first two rows of chunks */
        brc_array_free(scenario_array(&kit, stored[i].path, stored[i].dtype, 2, shape,
                                      strstr(stored[i].codecs, "shard") ? shard : chunk, NULL,
                                      stored[i].codecs));
        scenario_write(&kit, kit.session, stored[i].path, data, 30 * 21 * stored[i].item);
    }
}

/* Runs the converter on a stream. */
static int convert(const brc_buf *tar, const char *name)
{
    char command[1200];
    const char *from = exchange_file(&kit, "stream.tar", tar->data, tar->len);
    snprintf(command, sizeof(command), "'%s/hdf5' export --path / '%s' <'%s' 2>'%s'",
             converters_folder(), exchange_path(&kit, name), from, exchange_path(&kit, "says"));
    const int status = system(command);
    ck_assert_int_eq(remove(from), 0);
    return status;
}

static void stream_of(brc_buf *out, int how)
{
    brc_tar_out *tar;
    brc_tar_sink sink = tar_kit_sink(out);
    const brc_stream_out_opts opts = { .transport = how };
    OK(&kit, brc_tar_out_open(&tar, &sink, "the stream", &kit.err));
    OK(&kit, brc_stream_export(kit.session, "/", tar, &opts, &kit.err));
    brc_tar_out_free(tar);
}

static void files_are_equal(const char *a, const char *b)
{
    brc_buf x = exchange_read(exchange_path(&kit, a)), y = exchange_read(exchange_path(&kit, b));
    ck_assert_uint_eq(x.len, y.len);
    ck_assert_int_eq(memcmp(x.data, y.data, x.len), 0);
    brc_buf_dispose(&x);
    brc_buf_dispose(&y);
}

static int named(const brc_buf *tar, const char *text)
{
    const uint8_t *at = tar->data, *end = tar->data + tar->len;
    int n = 0;
    while ((at = memmem(at, (size_t)(end - at), text, strlen(text))) != NULL) {
        at++;
        n++;
    }
    return n;
}

CASE("exports", .setup = start, .teardown = stop);

TEST(the_file_is_the_same_whoever_compresses)
{
    brc_buf decoded = BRC_BUF_INIT, deflated = BRC_BUF_INIT;
    make_stored();
    stream_of(&decoded, BRC_PLAIN_DECODED);
    stream_of(&deflated, BRC_PLAIN_DEFLATED);
    ck_assert_int_eq(convert(&decoded, "decoded.h5"), 0);
    ck_assert_int_eq(convert(&deflated, "deflated.h5"), 0);
    files_are_equal("decoded.h5", "deflated.h5");
    hdf5_export_ok(&kit, "/", "one.h5");
    files_are_equal("decoded.h5", "one.h5");
    ck_assert_int_eq(named(&decoded, "numcodecs.zlib"), 0);
    ck_assert_int_eq(named(&deflated, "numcodecs.zlib"), 5);   /* i1 u2 i4 f8 shards */
    ck_assert_int_eq(named(&deflated, "numcodecs.shuffle"), 4); /* but i1 */
    brc_buf_dispose(&decoded);
    brc_buf_dispose(&deflated);
}

TEST(threads_make_the_same_file)
{
    brc_pool *pool;
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    make_stored();
    scenario_commit(&kit, "made");
    hdf5_export_ok(&kit, "/", "one.h5");
    scenario_close(&kit);
    OK(&kit, brc_pool_new(&pool, 4, &kit.err));
    opts.pool = pool;
    opts.libexec = converters_folder();
    scenario_open(&kit, &opts, 0);
    hdf5_export_ok(&kit, "/", "four.h5");
    scenario_close(&kit);
    brc_pool_free(pool);
    files_are_equal("one.h5", "four.h5");
}

/* ---- streams made by hand -------------------------------- */

#define DOCUMENT                                                                                   \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[6],\"data_type\":\"uint16\","           \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"               \
    "\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"       \
    "\"fill_value\":0,\"codecs\":[%s],"                                                            \
    "\"breccia_export\":{\"must_understand\":false,\"codecs\":[" LITTLE "%s]}}"

/* zlib without compression: two bytes, a stored block, and the checksum. */
static const uint8_t shuffled[] = { 0x78, 1, 1, 8, 0, 0xf7, 0xff, 1, 2, 3, 4, 0, 0, 0, 0,
                                    0,    0x44, 0, 0x0b };
static const uint8_t plain[] = { 0x78, 1, 1, 8, 0, 0xf7, 0xff, 1, 0, 2, 0, 3, 0, 4, 0,
                                 0,    0x30, 0, 0x0b };

static const struct {
    const char *codecs, *noted;
    const uint8_t *chunk;
    hsize_t size; /* of the first chunk in the file, or 0: the library has compressed it */
} by_hand[] = {
#define SHUFFLE(n) "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":" n "}},"
#define ZLIB "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":1}}"
    { LITTLE "," SHUFFLE("2") ZLIB, "," ZSTD, shuffled, sizeof(shuffled) },
    { LITTLE "," ZLIB, "," ZSTD, plain, 0 },                /* the dataset is shuffled */
    { LITTLE "," SHUFFLE("1") ZLIB, "," ZSTD, plain, 0 },   /* in another way          */
    { LITTLE "," SHUFFLE("2") ZLIB, "", shuffled, 8 },      /* the dataset has no filters */
};

static void stream_by_hand(brc_buf *tar, int i, size_t chunk)
{
    char doc[1200];
    snprintf(doc, sizeof(doc), DOCUMENT, by_hand[i].codecs, by_hand[i].noted);
    tar_kit_file(tar, "zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}");
    tar_kit_file(tar, "a/zarr.json", doc);
    tar_kit_member(tar, '0', "a/c/0", NULL, chunk, by_hand[i].chunk, chunk);
    tar_kit_member(tar, '0', "a/c/1", NULL, chunk, by_hand[i].chunk, chunk);
    tar_kit_end(tar);
}

CASE("streams", .setup = start, .teardown = stop);

EACH(only_chunks_of_the_dataset_are_taken_as_they_come, by_hand)
{
    brc_buf tar = BRC_BUF_INIT;
    uint16_t got[6] = { 9, 9, 9, 9, 9, 9 };
    hsize_t first = 0, second = 4, size = 0;
    stream_by_hand(&tar, _i, sizeof(shuffled));
    ck_assert_int_eq(convert(&tar, "x.h5"), 0);
    hid_t file = H5Fopen(exchange_path(&kit, "x.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t a = H5Dopen2(file, "a", H5P_DEFAULT);
    H5(H5Dread(a, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, got));
    for (uint16_t i = 0; i < 6; i++)
        ck_assert_uint_eq(got[i], i % 4 + 1);
    H5(H5Dget_chunk_storage_size(a, &first, &size));
    if (by_hand[_i].size > 0)
        ck_assert_uint_eq(size, by_hand[_i].size);
    else
        ck_assert_uint_ne(size, sizeof(plain));
    /* over the edge there are elements that nobody must meet, so the library writes this chunk */
    H5(H5Dget_chunk_storage_size(a, &second, &size));
    ck_assert_uint_ne(size, sizeof(shuffled));
    H5(H5Dclose(a));
    H5(H5Fclose(file));
    brc_buf_dispose(&tar);
}
