/* The corpus's .npz archives, made by hand: see corpus.h. */
#include <check.h>
#include <string.h>

#include "../../src/base/buf.h"
#include "corpus.h"

typedef struct npz_member {
    const char *name, *dictionary;
    const void *data;
    size_t len;
} npz_member;

static void put_bytes(brc_buf *out, const void *data, size_t len)
{
    ck_assert_int_eq(brc_buf_append(out, data, len, NULL), BRC_OK);
}

/* Writes a header of any version: version 1 has its length in two bytes, the others in four. */
static void put_npy(brc_buf *out, int version, const char *dictionary, const void *data, size_t len)
{
    uint8_t count[4];
    if (version == 1) {
        exchange_npy(out, dictionary, data, len);
        return;
    }
    brc_put_u32le(count, (uint32_t)strlen(dictionary));
    put_bytes(out, "\x93NUMPY", 6);
    put_bytes(out, version == 2 ? "\2\0" : "\3\0", 2);
    put_bytes(out, count, 4);
    put_bytes(out, dictionary, strlen(dictionary));
    put_bytes(out, data, len);
}

static void put_members(exchange_kit *kit, const char *file, int version, int is_wide,
                        const npz_member *members, size_t n)
{
    exchange_zip zip = {.is_wide = is_wide};
    for (size_t i = 0; i < n; i++) {
        brc_buf npy = BRC_BUF_INIT;
        put_npy(&npy, version, members[i].dictionary, members[i].data, members[i].len);
        exchange_zip_add(&zip, members[i].name, npy.data, npy.len, i % 2 == 1, (uint32_t)npy.len);
        brc_buf_dispose(&npy);
    }
    exchange_zip_end(&zip);
    exchange_file(kit, file, zip.bytes.data, zip.bytes.len);
    brc_buf_dispose(&zip.bytes);
}

#define PUT(kit, file, version, members) \
    put_members(kit, file, version, 0, members, sizeof(members) / sizeof((members)[0]))
#define DICT(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"

static const npz_member plain[] = {
    {"i2.npy", DICT("'<i2'", "False", "(3,)"), "\1\0\xfe\xff\3\0", 6},
    {"f8.npy", DICT("'<f8'", "False", "(1, 1)"), "\0\0\0\0\0\0\xf8\x3f", 8},
    {"u1.npy", DICT("'|u1'", "False", "(0,)"), "", 0},
};

static void put_first(exchange_kit *kit, const char *file)
{
    PUT(kit, file, 1, plain);
}

static void put_second(exchange_kit *kit, const char *file)
{
    PUT(kit, file, 2, plain);
}

static void put_wide(exchange_kit *kit, const char *file)
{
    put_members(kit, file, 1, 1, plain, sizeof(plain) / sizeof(plain[0]));
}

static void put_third(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"r.npy", DICT("[('h\xc3\xa9', '<i2'), ('x', '<f4')]", "False", "(1,)"),
         "\1\0\0\0\0\x3f", 6},
        {"i2.npy", DICT("'<i2'", "False", "(3,)"), "\1\0\xfe\xff\3\0", 6},
    };
    PUT(kit, file, 3, members);
}

static void put_orders(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"f.npy", DICT("'<u2'", "True", "(2, 3)"), "\1\0\4\0\2\0\5\0\3\0\6\0", 12},
        {"c.npy", DICT("'<u2'", "False", "(2, 3)"), "\1\0\2\0\3\0\4\0\5\0\6\0", 12},
        {"big.npy", DICT("'>u2'", "False", "(2,)"), "\0\1\1\0", 4},
        {"both.npy", DICT("'>i4'", "True", "(2, 2)"), "\0\0\0\1\0\0\0\3\0\0\0\2\0\0\0\4", 16},
        {"none.npy", DICT("'<i4'", "False", "()"), "\7\0\0\0", 4},
    };
    PUT(kit, file, 1, members);
}

static void put_records(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"rows.npy", DICT("[('n', '<i2'), ('in', [('u', '|u1'), ('x', '<f4')])]", "False", "(2,)"),
         "\1\0\7\0\0\0\x3f\xfe\xff\xff\0\0\0\xbf", 14},
    };
    PUT(kit, file, 1, members);
}

static void put_texts(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"s.npy", DICT("'|S3'", "False", "(2,)"), "ab\0cde", 6},
        {"u.npy", DICT("'<U2'", "False", "(2,)"), "h\0\0\0\xe9\0\0\0x\0\0\0\0\0\0\0", 16},
        {"v.npy", DICT("'>U1'", "False", "(1,)"), "\0\0\0\xe9", 4},
        {"raw.npy", DICT("'|V2'", "False", "(1,)"), "\1\2", 2},
    };
    PUT(kit, file, 1, members);
}

static void put_kinds(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"b.npy", DICT("'|b1'", "False", "(2,)"), "\1\0", 2},
        {"z.npy", DICT("'<c8'", "False", "(1,)"), "\0\0\x80\x3f\0\0\0\xc0", 8},
        {"h.npy", DICT("'<f2'", "False", "(2,)"), "\0\x3e\0\x7c", 4},
        {"when.npy", DICT("'<M8[s]'", "False", "(2,)"), "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80", 16},
        {"span.npy", DICT("'<m8[D]'", "False", "(1,)"), "\xff\xff\xff\xff\xff\xff\xff\xff", 8},
    };
    PUT(kit, file, 1, members);
}

static void put_names(exchange_kit *kit, const char *file)
{
    static const npz_member members[] = {
        {"__version__.npy", DICT("'|u1'", "False", "(1,)"), "\1", 1},
        {"a/b.npy", DICT("'|u1'", "False", "(1,)"), "\2", 1},
        {"arr 0.npy", DICT("'|u1'", "False", "(1,)"), "\3", 1},
        {"50%.npy", DICT("'|u1'", "False", "(1,)"), "\4", 1},
        {"./x.npy", DICT("'|u1'", "False", "(1,)"), "\5", 1},
    };
    PUT(kit, file, 1, members);
}

#define PLAIN_CHECKS {"/i2", "[1,-2,3]", "/f8", "[1.5]", "/u1", "[]"}

static const corpus_entry entries[] = {
    {.cause = "npz: headers of version 1", .file = "x.npz", .other = put_first,
     .checks = PLAIN_CHECKS},
    {.cause = "npz: headers of version 2", .file = "x.npz", .other = put_second,
     .checks = PLAIN_CHECKS},
    {.cause = "npz: members with sizes of 64 bits", .file = "x.npz", .other = put_wide,
     .checks = PLAIN_CHECKS},
    {.cause = "npz: headers of version 3", .file = "x.npz", .other = put_third,
     .refused = "/r: NumPy's .npy has no data type like",
     .checks = {"/r", "[{\"h\xc3\xa9\":1,\"x\":0.5}]", "/i2", "[1,-2,3]"}},
    {.cause = "npz: orders of elements and bytes, no axes", .file = "x.npz", .other = put_orders,
     .checks = {"/f", "[1,2,3,4,5,6]", "/c", "[1,2,3,4,5,6]", "/big", "[1,256]", "/both",
                "[1,2,3,4]", "/none", "[7]"}},
    {.cause = "npz: records in records", .file = "x.npz", .other = put_records,
     .checks = {"/rows", "[{\"n\":1,\"in\":{\"u\":7,\"x\":0.5}},"
                         "{\"n\":-2,\"in\":{\"u\":255,\"x\":-0.5}}]"}},
    {.cause = "npz: texts and raw bytes", .file = "x.npz", .other = put_texts,
     .checks = {"/s", "[\"YWIA\",\"Y2Rl\"]", "/u", "[\"h\xc3\xa9\",\"x\"]", "/v", "[\"\xc3\xa9\"]",
                "/raw", "[[1,2]]"}},
    {.cause = "npz: truth values, complex numbers, times", .file = "x.npz", .other = put_kinds,
     .checks = {"/b", "[true,false]", "/z", "[[1.0,-2.0]]", "/h", "[1.5,\"Infinity\"]", "/when",
                "[1,\"NaT\"]", "/span", "[-1]"}},
    {.cause = "npz: names", .file = "x.npz", .other = put_names,
     .checks = {"/%5F_version__", "[1]", "/a/b", "[2]", "/arr 0", "[3]", "/50%", "[4]", "/%2E/x",
                "[5]"}},
};

corpus_table corpus_npy(void)
{
    return (corpus_table){entries, sizeof(entries) / sizeof(entries[0])};
}
