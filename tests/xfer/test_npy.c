/* .npy: the header's grammar, and files made by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/xfer/npy/npy.h"
#include "../kit/exchange_kit.h"
#include "../kit/suite.h"

TEST_SUITE(npy);

#define F4 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

/* ---- the dictionary -------------------------------- */

static const struct {
    const char *text, *descr;
    int fortran, ndim;
    uint64_t shape[3];
} good_headers[] = {
    { F4, "<f4", 0, 2, { 2, 3 } },
    { F4 "                    \n", "<f4", 0, 2, { 2, 3 } },
    { "{'descr': '|b1', 'fortran_order': True, 'shape': (), }", "|b1", 1, 0, { 0 } },
    { "{'descr': '>i8', 'fortran_order': False, 'shape': (7,), }", ">i8", 0, 1, { 7 } },
    { "{'descr':'<c16','fortran_order':False,'shape':(0,5)}", "<c16", 0, 2, { 0, 5 } },
    { "{\"shape\": (1, 2, 3, ), \"descr\": \"<u2\", \"fortran_order\": True}",
      "<u2",
      1,
      3,
      { 1, 2, 3 } },
    { "{'descr': '<f8', 'fortran_order': False, 'shape': (10L, 20L), }\n",
      "<f8",
      0,
      2,
      { 10, 20 } },
    { " { 'descr' : '<f8' , 'fortran_order' : False ,\n'shape' : ( 18446744073709551615 , ) } ",
      "<f8",
      0,
      1,
      { UINT64_MAX } },
};

CASE("header");

EACH(header_good, good_headers)
{
    brc_npy_header h;
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_npy_header_parse(&h, good_headers[_i].text, strlen(good_headers[_i].text), &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    ck_assert_uint_eq(h.descr_len, strlen(good_headers[_i].descr));
    ck_assert_mem_eq(h.descr, good_headers[_i].descr, h.descr_len);
    ck_assert_int_eq(h.structured, 0);
    ck_assert_int_eq(h.fortran, good_headers[_i].fortran);
    ck_assert_int_eq(h.ndim, good_headers[_i].ndim);
    for (int i = 0; i < h.ndim; i++)
        ck_assert_uint_eq(h.shape[i], good_headers[_i].shape[i]);
}

static const struct {
    const char *text;
    int code;
    const char *says;
} bad_headers[] = {
    { "", BRC_EINVAL, "dictionary" },
    { "[]", BRC_EINVAL, "dictionary" },
    { "{", BRC_EINVAL, "string" },
    { "{}", BRC_EINVAL, "missing" },
    { "{'descr': '<f4', 'fortran_order': False, }", BRC_EINVAL, "missing" },
    { "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (), }", BRC_EINVAL,
      "twice" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}", BRC_EINVAL, "other than" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3), }", BRC_EINVAL, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': [3], }", BRC_EINVAL, "tuple" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,,), }", BRC_EINVAL, "whole number" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", BRC_EINVAL, "whole number" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4), }", BRC_EINVAL, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", BRC_EINVAL, "whole number" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,), }", BRC_EINVAL, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (03,), }", BRC_EINVAL, "begins with 0" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,), }", BRC_ELIMIT,
      "64 bits" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (20000000000000000000,), }", BRC_ELIMIT,
      "64 bits" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': "
      "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
      "1,1,1,1,1), }",
      BRC_ELIMIT, "axes" },
    { "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,), }", BRC_EINVAL, "True or False" },
    { "{'descr': '<f4, 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "" },
    { "{'descr': 4, 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "string" },
    { "{'descr': '<\\x664', 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "not allowed" },
    { "{'descr' '<f4', 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "colon" },
    { "{'descr': '<f4' 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "comma" },
    { "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } + exit()", BRC_EINVAL, "after" },
    { "{'descr': [('a', '<f4'), 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "list" },
    { "{'descr': [('a', '<f4')), 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL,
      "brackets" },
    { "{'descr': ['a, 'fortran_order': False, 'shape': (3,), }", BRC_EINVAL, "" },
};

EACH(header_bad, bad_headers)
{
    brc_npy_header h;
    brc_error err = BRC_ERROR_INIT;
    /* an exact copy without a zero after it: reading past the end is found */
    size_t len = strlen(bad_headers[_i].text);
    char *text = malloc(len > 0 ? len : 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, bad_headers[_i].text, len);
    int rc = brc_npy_header_parse(&h, text, len, &err);
    free(text);
    ck_assert_int_eq(rc, bad_headers[_i].code);
    ck_assert_int_eq(err.code, rc);
    ck_assert_msg(strstr(err.message, bad_headers[_i].says), "%s", err.message);
}

/* Every prefix of a good header is bad, and none is read past its end. */
TEST(header_cut)
{
    static const char *const texts[] = { F4, "{'descr': [('a\\'b', '<f4', (2,)), ('c', [('d', "
                                             "'|i1')])], 'fortran_order': True, 'shape': (1,)}" };
    brc_npy_header h;
    for (size_t t = 0; t < 2; t++)
        for (size_t len = 0; len < strlen(texts[t]); len++) {
            char *text = malloc(len > 0 ? len : 1);
            ck_assert_ptr_nonnull(text);
            memcpy(text, texts[t], len);
            ck_assert_int_lt(brc_npy_header_parse(&h, text, len, NULL), 0);
            free(text);
        }
    ck_assert_int_eq(brc_npy_header_parse(&h, texts[1], strlen(texts[1]), NULL), BRC_OK);
    ck_assert_int_eq(h.structured, 1);
    ck_assert_uint_eq(h.descr_len, strlen("[('a\\'b', '<f4', (2,)), ('c', [('d', '|i1')])]"));
}

TEST(header_nested_too_deep)
{
    brc_npy_header h;
    char text[300] = "{'descr': ";
    memset(text + 10, '[', 200);
    ck_assert_int_eq(brc_npy_header_parse(&h, text, 210, NULL), BRC_EINVAL);
}

LOOP(header_written, 0, 4)
{
    static const uint64_t shape[] = { 2, 3, 4 };
    static const char *const expected[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4), }",
    };
    brc_buf out = BRC_BUF_INIT;
    ck_assert_int_eq(brc_npy_header_write(&out, "<f4", _i, shape, NULL), BRC_OK);
    ck_assert_uint_eq(out.len % 64, 0);
    ck_assert_mem_eq(out.data, "\x93NUMPY\1\0", 8);
    ck_assert_uint_eq((size_t)out.data[8] + 256 * (size_t)out.data[9] + 10, out.len);
    ck_assert_mem_eq(out.data + 10, expected[_i], strlen(expected[_i]));
    ck_assert_int_eq(out.data[out.len - 1], '\n');
    brc_npy_header h;
    ck_assert_int_eq(brc_npy_header_parse(&h, (char *)out.data + 10, out.len - 10, NULL), BRC_OK);
    ck_assert_int_eq(h.ndim, _i);
    ck_assert_mem_eq(h.shape, shape, (size_t)_i * sizeof(shape[0]));
    brc_buf_dispose(&out);
}

TEST(header_written_long)
{
    brc_buf out = BRC_BUF_INIT;
    char *descr = malloc(70001);
    ck_assert_ptr_nonnull(descr);
    memset(descr, 'x', 70000);
    descr[70000] = 0;
    ck_assert_int_eq(brc_npy_header_write(&out, descr, 0, NULL, NULL), BRC_OK);
    ck_assert_mem_eq(out.data, "\x93NUMPY\2\0", 8);
    ck_assert_uint_eq(out.len % 64, 0);
    ck_assert_uint_eq(brc_get_u32le(out.data + 8) + 12, out.len);
    brc_buf_dispose(&out);
    free(descr);
}

/* ---- files -------------------------------- */

/* Opens bytes as a file does, with what a repository would know. */
static int open_bytes(exchange_kit *kit, brc_elements *e, brc_input **in, const brc_buf *bytes,
                      brc_registry *reg)
{
    const char *file = exchange_path(kit, "x.npy");
    unlink(file);
    file = exchange_file(kit, "x.npy", bytes->data, bytes->len);
    ck_assert_int_eq(brc_input_open(in, file, &kit->err), BRC_OK);
    return brc_npy_open(e, *in, reg, &kit->err);
}

static void open_fails(const void *data, size_t len, int code, const char *says)
{
    exchange_kit kit;
    brc_elements e;
    brc_input *in;
    brc_registry *reg;
    brc_buf bytes = BRC_BUF_INIT;
    exchange_folder_start(&kit);
    ck_assert_int_eq(brc_registry_new(&reg, NULL), BRC_OK);
    ck_assert_int_eq(brc_buf_append(&bytes, data, len, NULL), BRC_OK);
    ck_assert_int_eq(open_bytes(&kit, &e, &in, &bytes, reg), code);
    ck_assert_msg(strstr(kit.err.message, says), "%s", kit.err.message);
    ck_assert_msg(strstr(kit.err.message, "x.npy"), "the file is not named: %s", kit.err.message);
    brc_input_free(in);
    brc_buf_dispose(&bytes);
    brc_registry_free(reg);
    exchange_stop(&kit);
}

CASE("file");

LOOP(file_versions, 1, 4)
{
    exchange_kit kit;
    brc_elements e;
    brc_input *in;
    brc_registry *reg;
    brc_buf bytes = BRC_BUF_INIT;
    uint8_t rest[24];

    exchange_folder_start(&kit);
    ck_assert_int_eq(brc_registry_new(&reg, NULL), BRC_OK);
    exchange_npy(&bytes, F4, "abcdefghijklmnopqrstuvwx", 24);
    if (_i > 1) { /* the same with a length of four bytes */
        uint8_t zero[2] = { 0 };
        bytes.data[6] = (uint8_t)_i;
        ck_assert_int_eq(brc_buf_append(&bytes, zero, 2, NULL), BRC_OK);
        memmove(bytes.data + 12, bytes.data + 10, bytes.len - 12);
        memset(bytes.data + 10, 0, 2);
    }
    int rc = open_bytes(&kit, &e, &in, &bytes, reg);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_str_eq(e.type->name, "float32");
    ck_assert_int_eq(e.big, 0);
    ck_assert_int_eq(e.ndim, 2);
    ck_assert_uint_eq(e.shape[0], 2);
    ck_assert_uint_eq(e.shape[1], 3);
    ck_assert_uint_eq(e.bytes, 24);
    ck_assert_int_eq(brc_input_exact(in, rest, 24, NULL), BRC_OK);
    ck_assert_mem_eq(rest, "abcdefghijklmnopqrstuvwx", 24);
    ck_assert_int_eq(brc_input_end(in, NULL), BRC_OK);
    brc_elements_free(&e);
    brc_input_free(in);
    brc_buf_dispose(&bytes);
    brc_registry_free(reg);
    exchange_stop(&kit);
}

static const struct {
    const char *descr, *name;
    int big;
} npy_types[] = {
    { "|b1", "bool", 0 },      { "|i1", "int8", 0 },        { "|u1", "uint8", 0 },
    { "<i2", "int16", 0 },     { ">i2", "int16", 1 },       { "<u4", "uint32", 0 },
    { ">u8", "uint64", 1 },    { "<f2", "float16", 0 },     { ">f8", "float64", 1 },
    { "<c8", "complex64", 0 }, { ">c16", "complex128", 1 }, { "|V3", "r24", 0 },
};

EACH(file_types, npy_types)
{
    exchange_kit kit;
    brc_elements e;
    brc_input *in;
    brc_registry *reg;
    brc_buf bytes = BRC_BUF_INIT;
    char text[200];

    exchange_folder_start(&kit);
    ck_assert_int_eq(brc_registry_new(&reg, NULL), BRC_OK);
    snprintf(text, sizeof(text), "{'descr': '%s', 'fortran_order': True, 'shape': (0, 7), }",
             npy_types[_i].descr);
    exchange_npy(&bytes, text, "", 0);
    int rc = open_bytes(&kit, &e, &in, &bytes, reg);
    ck_assert_msg(rc == BRC_OK, "%s", kit.err.message);
    ck_assert_str_eq(e.type->name, npy_types[_i].name);
    ck_assert_int_eq(e.big, npy_types[_i].big);
    ck_assert_int_eq(e.fortran, 1);
    ck_assert_uint_eq(e.bytes, 0);
    brc_elements_free(&e);
    brc_input_free(in);
    brc_buf_dispose(&bytes);
    brc_registry_free(reg);
    exchange_stop(&kit);
}

static void dictionary_fails(const char *dictionary, size_t data, int code, const char *says)
{
    brc_buf bytes = BRC_BUF_INIT;
    static const uint8_t zeros[64];
    exchange_npy(&bytes, dictionary, zeros, data);
    open_fails(bytes.data, bytes.len, code, says);
    brc_buf_dispose(&bytes);
}

TEST(file_bad_types)
{
    dictionary_fails("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8,
                     BRC_EUNSUPPORTED, "pickles are never read");
    dictionary_fails(
        "{'descr': [('a', '<f4', (2,)), ('b', '|i1')], 'fortran_order': False, 'shape': (1,), }", 9,
        BRC_EUNSUPPORTED, "a field that is an array has no counterpart");
    dictionary_fails("{'descr': '<f7', 'fortran_order': False, 'shape': (1,), }", 7,
                     BRC_EUNSUPPORTED, "<f7");
    dictionary_fails("{'descr': '', 'fortran_order': False, 'shape': (1,), }", 7, BRC_EINVAL, "");
    dictionary_fails("{'descr': '<', 'fortran_order': False, 'shape': (1,), }", 7, BRC_EUNSUPPORTED,
                     "<");
    dictionary_fails("{'descr': '|V0', 'fortran_order': False, 'shape': (1,), }", 0,
                     BRC_EUNSUPPORTED, "|V0");
}

TEST(f22_lists_are_nested_64_deep_and_no_deeper)
{
    for (int depth = 63; depth <= 66; depth++) {
        char open[80] = "", close[80] = "", text[300];
        brc_npy_header h;
        brc_error err = BRC_ERROR_INIT;
        for (int i = 0; i < depth; i++) {
            open[i] = i % 2 ? '(' : '[';
            close[depth - 1 - i] = i % 2 ? ')' : ']';
        }
        snprintf(text, sizeof(text), "{'descr': %s%s, 'fortran_order': False, 'shape': (3,), }",
                 open, close);
        int rc = brc_npy_header_parse(&h, text, strlen(text), &err);
        ck_assert_int_eq(rc, depth <= 64 ? BRC_OK : BRC_EINVAL);
        ck_assert(rc == BRC_OK || strstr(err.message, "too deep") != NULL);
    }
}

/* The file is long enough for what it claims, and holds nothing. */
TEST(f22_a_header_of_megabytes_is_not_read)
{
    size_t len = 12 + BRC_NPY_HEADER_MAX + 1;
    uint8_t *bytes = calloc(1, len);
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, "\x93NUMPY\2\0\1\0\x10\0", 12);
    open_fails(bytes, len, BRC_ELIMIT, "longer than 1048576");
    free(bytes);
}

TEST(file_bad_sizes)
{
    dictionary_fails(F4, 23, BRC_EINVAL, "should be");
    dictionary_fails(F4, 25, BRC_EINVAL, "should be");
    dictionary_fails(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0,
        BRC_ELIMIT, "63 bits");
    dictionary_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }",
                     0, BRC_ELIMIT, "63 bits");
    dictionary_fails("{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951,), }",
                     0, BRC_EINVAL, "should be");
}

TEST(file_bad_prefix)
{
    open_fails("\x93NUMPY\1\0\x10\0{}", 12, BRC_EINVAL, "longer than the file");
    open_fails("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, BRC_EINVAL, "longer than the file");
    open_fails("\x93NUMPY\4\0\2\0{}", 12, BRC_EUNSUPPORTED, "version 4.0");
    open_fails("\x93NUMPY\1\1\2\0{}", 12, BRC_EUNSUPPORTED, "version 1.1");
    open_fails("\x93NUMPY\1", 7, BRC_EINVAL, "ends too early");
    open_fails("\x93NUMPY\1\0\2", 9, BRC_EINVAL, "ends too early");
    open_fails("\x93NUMPX\1\0\2\0{}", 12, BRC_EINVAL, "begin");
    open_fails("\x93NUMPY\1\0\2\0{}", 12, BRC_EINVAL, "missing");
    open_fails("", 0, BRC_EINVAL, "ends too early");
}

TEST(file_gzip)
{
    exchange_kit kit;
    brc_elements e;
    brc_input *in;
    brc_registry *reg;
    brc_buf plain = BRC_BUF_INIT, packed = BRC_BUF_INIT;
    uint8_t rest[24];

    exchange_folder_start(&kit);
    ck_assert_int_eq(brc_registry_new(&reg, NULL), BRC_OK);
    exchange_npy(&plain, F4, "abcdefghijklmnopqrstuvwx", 24);
    exchange_gzip(&packed, plain.data, 30); /* two members, cut anywhere */
    exchange_gzip(&packed, plain.data + 30, plain.len - 30);
    ck_assert_int_eq(brc_buf_append(&packed, "\0\0\0", 3, NULL), BRC_OK);
    ck_assert_int_eq(open_bytes(&kit, &e, &in, &packed, reg), BRC_OK);
    ck_assert_int_eq(brc_input_exact(in, rest, 24, NULL), BRC_OK);
    ck_assert_mem_eq(rest, "abcdefghijklmnopqrstuvwx", 24);
    ck_assert_int_eq(brc_input_end(in, NULL), BRC_OK);
    brc_elements_free(&e);
    brc_input_free(in);
    for (int how = 0; how < 3; how++) { /* cut off, wrong checksum, something behind */
        size_t len = packed.len;
        packed.len = how == 0 ? len - 8 : len;
        packed.data[len - 10] ^= how == 1 ? 1 : 0; /* the last member's CRC-32 */
        packed.data[len - 1] = how == 2 ? 'x' : 0;
        ck_assert_int_eq(open_bytes(&kit, &e, &in, &packed, reg), BRC_OK);
        int rc = brc_input_exact(in, rest, 24, &kit.err); /* may find it already */
        if (rc == BRC_OK)
            rc = brc_input_end(in, &kit.err);
        ck_assert_int_eq(rc, BRC_EINVAL);
        ck_assert_msg(strstr(kit.err.message, "x.npy"), "%s", kit.err.message);
        brc_elements_free(&e);
        brc_input_free(in);
        packed.data[len - 10] ^= how == 1 ? 1 : 0;
        packed.len = len;
    }
    brc_buf_dispose(&plain);
    brc_buf_dispose(&packed);
    brc_registry_free(reg);
    exchange_stop(&kit);
}
