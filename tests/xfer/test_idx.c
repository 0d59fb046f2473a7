/* IDX: files made by hand, and MNIST where the real data is at hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/breccia.h"
#include "../../src/base/buf.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(idx);

/* 2 rows of 3 int16: 1, -2, 256, 3, 4, 32767 */
static const char int16_file[] = "\0\0\x0B\2\0\0\0\2\0\0\0\3\0\1\xff\xfe\1\0\0\3\0\4\x7f\xff";
#define INT16_LEN (sizeof(int16_file) - 1)
static const int16_t int16_values[6] = { 1, -2, 256, 3, 4, 32767 };

static void check_int16(exchange_kit *kit, const char *path)
{
    brc_array *a;
    ck_assert_int_eq(brc_array_open(&a, kit->session, path, &kit->err), BRC_OK);
    const brc_array_info *info = brc_array_describe(a);
    ck_assert_int_eq(info->ndim, 2);
    ck_assert_uint_eq(info->shape[0], 2);
    ck_assert_uint_eq(info->shape[1], 3);
    ck_assert_ptr_nonnull(strstr(info->dtype, "int16"));
    brc_array_free(a);
    int16_t *got = exchange_elements(kit->session, path, sizeof(int16_values));
    ck_assert_mem_eq(got, int16_values, sizeof(int16_values));
    free(got);
}

CASE("made");

TEST(plain_and_gzipped)
{
    exchange_kit kit;
    brc_buf packed = BRC_BUF_INIT;
    exchange_start(&kit);
    exchange_import_ok(&kit, exchange_file(&kit, "pairs-idx2-short", int16_file, INT16_LEN), NULL,
                       NULL);
    check_int16(&kit, "/pairs");
    exchange_gzip(&packed, int16_file, INT16_LEN);
    /* the content decides, not the name */
    exchange_import_ok(&kit, exchange_file(&kit, "anything.bin", packed.data, packed.len),
                       "/deep/er", NULL);
    check_int16(&kit, "/deep/er");
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

static const struct {
    uint8_t code;
    const char *dtype, *file, *native;
    size_t len;
} idx_elements[] = {
    { 0x08, "uint8", "\x80\x01", "\x80\x01", 2 },
    { 0x09, "int8", "\x80\x01", "\x80\x01", 2 },
    { 0x0C, "int32", "\xff\xff\xff\xfe\0\0\0\1", "\xfe\xff\xff\xff\1\0\0\0", 8 },
    { 0x0D, "float32", "\x3f\x80\0\0\x7f\xc0\0\1", "\0\0\x80\x3f\1\0\xc0\x7f", 8 },
    { 0x0E, "float64", "\x3f\xf0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0",
      "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x80", 16 },
};

EACH(types, idx_elements)
{
    exchange_kit kit;
    brc_array *a;
    uint8_t file[64] = { 0, 0, idx_elements[_i].code, 1, 0, 0, 0, 2 };
    size_t len = idx_elements[_i].len;

    exchange_start(&kit);
    memcpy(file + 8, idx_elements[_i].file, len);
    exchange_import_ok(&kit, exchange_file(&kit, "x.idx", file, 8 + len), NULL, NULL);
    ck_assert_int_eq(brc_array_open(&a, kit.session, "/x", NULL), BRC_OK);
    ck_assert_ptr_nonnull(strstr(brc_array_describe(a)->dtype, idx_elements[_i].dtype));
    brc_array_free(a);
    uint8_t *got = exchange_elements(kit.session, "/x", len);
    int big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    ck_assert_mem_eq(got, big ? idx_elements[_i].file : idx_elements[_i].native, len);
    free(got);
    exchange_stop(&kit);
}

static void import_fails(exchange_kit *kit, const char *name, const void *data, size_t len,
                         int code, const char *says)
{
    int kind;
    const char *source = exchange_file(kit, name, data, len);
    ck_assert_int_eq(brc_import(kit->session, source, "/made/x", NULL, &kit->err), code);
    ck_assert_msg(strstr(kit->err.message, says), "%s", kit->err.message);
    ck_assert_msg(strstr(kit->err.message, name), "the file is not named: %s", kit->err.message);
    /* nothing of it stays, not even the parent group */
    ck_assert_int_eq(brc_node_kind(&kind, kit->session, "/made", NULL), BRC_OK);
    ck_assert_int_eq(kind, 0);
}

TEST(broken)
{
    exchange_kit kit;
    brc_buf packed = BRC_BUF_INIT;
    char long_file[sizeof(int16_file)];

    exchange_start(&kit);
    import_fails(&kit, "short", int16_file, INT16_LEN - 1, BRC_EINVAL, "should be");
    memcpy(long_file, int16_file, sizeof(int16_file));
    import_fails(&kit, "long", long_file, INT16_LEN + 1, BRC_EINVAL, "should be");
    import_fails(&kit, "header", int16_file, 7, BRC_EINVAL, "too early");
    import_fails(&kit, "type", "\0\0\x0A\1\0\0\0\0", 8, BRC_EUNSUPPORTED, "not in a known format");
    import_fails(&kit, "axes", "\0\0\x08\x21\0\0\0\0", 8, BRC_ELIMIT, "33 axes");
    import_fails(&kit, "none", "\0\0\x08\0\1", 5, BRC_EUNSUPPORTED, "not in a known format");
    import_fails(&kit, "overflow", "\0\0\x0E\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16,
                 BRC_ELIMIT, "63 bits");
    exchange_gzip(&packed, int16_file, INT16_LEN - 1);
    import_fails(&kit, "short.gz", packed.data, packed.len, BRC_EINVAL, "too early");
    packed.len = 0;
    exchange_gzip(&packed, long_file, INT16_LEN + 1);
    import_fails(&kit, "long.gz", packed.data, packed.len, BRC_EINVAL, "goes on");
    packed.len = 0;
    exchange_gzip(&packed, int16_file, INT16_LEN);
    import_fails(&kit, "cut.gz", packed.data, packed.len - 1, BRC_EINVAL, "truncated");
    import_fails(&kit, "begun.gz", packed.data, 5, BRC_EINVAL, "truncated");
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

/* A few KiB that inflate to 16 MiB: no more of it is inflated than the header
 * says, which is one byte here. */
TEST(bomb)
{
    exchange_kit kit;
    brc_buf packed = BRC_BUF_INIT;
    size_t len = (size_t)16 << 20;
    uint8_t *zeros = calloc(1, len);
    static const uint8_t header[] = { 0, 0, 8, 1, 0, 0, 0, 1 };

    ck_assert_ptr_nonnull(zeros);
    exchange_start(&kit);
    memcpy(zeros, header, sizeof(header));
    exchange_gzip(&packed, zeros, len);
    import_fails(&kit, "bomb.gz", packed.data, packed.len, BRC_EINVAL, "goes on");
    free(zeros);
    brc_buf_dispose(&packed);
    exchange_stop(&kit);
}

CASE("real");

TEST(mnist)
{
    exchange_kit kit;
    brc_array *a;
    char path[600];
    const char *dir = exchange_data();
    static const uint8_t first_labels[] = { 7, 2, 1, 0, 4, 1, 4, 9, 5, 9 };

    if (!dir)
        return;
    exchange_start(&kit);
    snprintf(path, sizeof(path), "%s/mnist-t10k-images-idx3-ubyte.gz", dir);
    exchange_import_ok(&kit, path, NULL, NULL);
    snprintf(path, sizeof(path), "%s/mnist-t10k-labels-idx1-ubyte.gz", dir);
    exchange_import_ok(&kit, path, NULL, NULL);
    uint8_t *labels = exchange_elements(kit.session, "/mnist-t10k-labels", 10000);
    ck_assert_mem_eq(labels, first_labels, sizeof(first_labels));
    free(labels);

    ck_assert_int_eq(brc_array_open(&a, kit.session, "/mnist-t10k-images", NULL), BRC_OK);
    const brc_array_info *info = brc_array_describe(a);
    ck_assert_int_eq(info->ndim, 3);
    ck_assert_uint_eq(info->shape[0], 10000);
    ck_assert_uint_eq(info->shape[1], 28);
    ck_assert_uint_eq(info->shape[2], 28);
    brc_array_free(a);
    uint8_t *images = exchange_elements(kit.session, "/mnist-t10k-images", 7840000);
    uint64_t sum = 0;
    for (size_t i = 0; i < 7840000; i++)
        sum += images[i];
    ck_assert_uint_eq(sum, 264923200);         /* counted from the unpacked file */
    ck_assert_uint_eq(images[28 * 7 + 6], 84); /* the bar of the first 7 */
    free(images);
    exchange_stop(&kit);
}
