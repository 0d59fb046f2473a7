/* See exchange_kit.h. */
#include "exchange_kit.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "../../src/base/file.h"
#include "../../src/base/json.h"
#include "../../src/base/buf.h"
#include "converters.h"
#include "folder.h"

void exchange_folder_in(exchange_kit *kit, int where)
{
    scenario_folder_in(kit, where);
}

void exchange_folder_start(exchange_kit *kit)
{
    exchange_folder_in(kit, FOLDER_DISK);
}

void exchange_start(exchange_kit *kit)
{
    exchange_folder_start(kit);
    exchange_open(kit, converters_folder());
}

void exchange_open(exchange_kit *kit, const char *libexec)
{
    brc_open_opts opts = BRC_OPEN_OPTS_INIT;
    opts.libexec = libexec;
    scenario_open(kit, &opts, BRC_OPEN_CREATE);
}

void exchange_stop(exchange_kit *kit)
{
    scenario_stop(kit);
}

const char *exchange_path(exchange_kit *kit, const char *name)
{
    static _Thread_local char paths[16][512];
    static _Thread_local unsigned next;
    char text[sizeof(paths[0])];
    int n = snprintf(text, sizeof(text), "%s/%s", kit->dir, name);
    ck_assert(n > 0 && (size_t)n < sizeof(text));
    return memcpy(paths[next++ % 16], text, (size_t)n + 1);
}

int exchange_import(exchange_kit *kit, const char *source, const char *path, uint32_t flags,
                    brc_buf *said)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    said->len = 0;
    opts.flags = flags;
    opts.warnings = said;
    const int rc = brc_import(kit->session, exchange_path(kit, source), path, &opts, &kit->err);
    OK(kit, brc_buf_terminate(said, &kit->err));
    return rc;
}

const char *exchange_file(exchange_kit *kit, const char *name, const void *data, size_t len)
{
    const char *path = exchange_path(kit, name);
    int rc = brc_dir_make_parents(path, strlen(kit->dir), &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    rc = brc_file_write(path, data, len, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
    return path;
}

const char *exchange_text(exchange_kit *kit, const char *name, const char *text)
{
    return exchange_file(kit, name, text, strlen(text));
}

brc_buf exchange_read(const char *path)
{
    brc_buf out = BRC_BUF_INIT;
    brc_error err = BRC_ERROR_INIT;
    int rc = brc_file_read(&out, path, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    return out;
}

int exchange_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- comparing trees -------------------------------- */

typedef struct tree_pair {
    const char *a, *b;
    int only_names; /* whether b has what a has */
    int same;
} tree_pair;

static int same_json(const brc_buf *a, const brc_buf *b)
{
    brc_json *x, *y;
    ck_assert_int_eq(brc_json_parse(&x, (const char *)a->data, a->len, 0, NULL), BRC_OK);
    ck_assert_int_eq(brc_json_parse(&y, (const char *)b->data, b->len, 0, NULL), BRC_OK);
    int same = brc_json_equal(x, y);
    brc_json_free(x);
    brc_json_free(y);
    return same;
}

static int same_file(const char *a, const char *b)
{
    brc_buf x = exchange_read(a), y = exchange_read(b);
    size_t n = strlen(a);
    int same = x.len == y.len && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0);
    if (!same && n > 9 && strcmp(a + n - 9, "zarr.json") == 0)
        same = same_json(&x, &y);
    brc_buf_dispose(&x);
    brc_buf_dispose(&y);
    return same;
}

static int compare_entry(void *ctx, const char *name, brc_error *err)
{
    tree_pair *above = ctx;
    tree_pair here = { NULL, NULL, above->only_names, 1 };
    char *a, *b;
    ck_assert_int_eq(brc_path_join(&a, above->a, name, err), BRC_OK);
    ck_assert_int_eq(brc_path_join(&b, above->b, name, err), BRC_OK);
    int kind = brc_file_kind(a);
    here.a = a;
    here.b = b;
    if (kind != brc_file_kind(b))
        here.same = 0;
    else if (kind == 1)
        ck_assert_int_eq(brc_dir_each(a, compare_entry, &here, err), BRC_OK);
    else if (!above->only_names)
        here.same = same_file(a, b);
    if (!here.same)
        fprintf(stderr, "%s and %s differ\n", a, b);
    above->same &= here.same;
    free(a);
    free(b);
    return BRC_OK;
}

int exchange_same_tree(const char *a, const char *b)
{
    tree_pair forth = { a, b, 0, 1 }, back = { b, a, 1, 1 };
    ck_assert_int_eq(brc_dir_each(a, compare_entry, &forth, NULL), BRC_OK);
    ck_assert_int_eq(brc_dir_each(b, compare_entry, &back, NULL), BRC_OK);
    return forth.same && back.same;
}

/* ---- formats made by hand -------------------------------- */

static void put(brc_buf *out, const void *data, size_t len)
{
    ck_assert_int_eq(brc_buf_append(out, data, len, NULL), BRC_OK);
}

static void put_le(brc_buf *out, uint64_t value, unsigned bytes)
{
    uint8_t le[16] = { 0 };
    ck_assert_uint_le(bytes, sizeof(le));
    brc_put_u64le(le, value);
    put(out, le, bytes);
}

void exchange_npy(brc_buf *out, const char *dictionary, const void *data, size_t len)
{
    put(out, "\x93NUMPY\1\0", 8);
    put_le(out, strlen(dictionary), 2);
    put(out, dictionary, strlen(dictionary));
    put(out, data, len);
}

static void put_deflated(brc_buf *out, const void *data, size_t len, int window)
{
    z_stream z = { 0 };
    size_t room = len + len / 100 + 1000;
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(brc_buf_reserve(out, room, NULL), BRC_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)len;
    z.next_out = out->data + out->len;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len += room - z.avail_out;
    deflateEnd(&z);
}

void exchange_gzip(brc_buf *out, const void *data, size_t len)
{
    put_deflated(out, data, len, 16 + MAX_WBITS);
}

/* The fields that a local header and the directory's share, from "version needed" on. */
static void put_zip_fields(brc_buf *out, const char *name, int deflated, uint32_t crc,
                           size_t packed, uint32_t claimed, int is_wide)
{
    put_le(out, is_wide ? 45 : 20, 2);
    put_le(out, brc_utf8_valid(name, strlen(name)) ? 0x800 : 0, 2); /* the name is UTF-8 */
    put_le(out, deflated ? 8 : 0, 2);
    put_le(out, 0, 2);
    put_le(out, 0x21, 2);
    put_le(out, crc, 4);
    put_le(out, is_wide ? UINT32_MAX : packed, 4);
    put_le(out, is_wide ? UINT32_MAX : claimed, 4);
    put_le(out, strlen(name), 2);
    put_le(out, is_wide ? 20 : 0, 2);
}

static void put_wide_sizes(brc_buf *out, size_t packed, uint32_t claimed)
{
    put_le(out, 1, 2);
    put_le(out, 16, 2);
    put_le(out, claimed, 8);
    put_le(out, packed, 8);
}

void exchange_zip_add(exchange_zip *zip, const char *name, const void *data, size_t len,
                      int deflated, uint32_t claimed)
{
    brc_buf packed = BRC_BUF_INIT;
    uint32_t crc = (uint32_t)crc32(0, data, (uInt)len);
    size_t offset = zip->bytes.len;

    if (deflated)
        put_deflated(&packed, data, len, -MAX_WBITS);
    else
        put(&packed, data, len);
    put(&zip->bytes, "PK\3\4", 4);
    put_zip_fields(&zip->bytes, name, deflated, crc, packed.len, claimed, zip->is_wide);
    put(&zip->bytes, name, strlen(name));
    if (zip->is_wide)
        put_wide_sizes(&zip->bytes, packed.len, claimed);
    put(&zip->bytes, packed.data, packed.len);
    put(&zip->directory, "PK\1\2", 4);
    put_le(&zip->directory, 20, 2);
    put_zip_fields(&zip->directory, name, deflated, crc, packed.len, claimed, 0);
    put_le(&zip->directory, 0, 10); /* no comment, first disk, no attributes */
    put_le(&zip->directory, offset, 4);
    put(&zip->directory, name, strlen(name));
    zip->n++;
    brc_buf_dispose(&packed);
}

void exchange_zip_end(exchange_zip *zip)
{
    size_t offset = zip->bytes.len;
    put(&zip->bytes, zip->directory.data, zip->directory.len);
    put(&zip->bytes, "PK\5\6", 4);
    put_le(&zip->bytes, 0, 4);
    put_le(&zip->bytes, zip->n, 2);
    put_le(&zip->bytes, zip->n, 2);
    put_le(&zip->bytes, zip->directory.len, 4);
    put_le(&zip->bytes, offset, 4);
    put_le(&zip->bytes, 0, 2);
    brc_buf_dispose(&zip->directory);
}

const char *exchange_zip_file(exchange_kit *kit, const char *name, exchange_zip *zip)
{
    exchange_zip_end(zip);
    const char *path = exchange_file(kit, name, zip->bytes.data, zip->bytes.len);
    brc_buf_dispose(&zip->bytes);
    memset(zip, 0, sizeof(*zip));
    return path;
}

/* ---- reading back -------------------------------- */

void *exchange_elements(brc_session *s, const char *path, size_t len)
{
    brc_error err = BRC_ERROR_INIT;
    brc_array *a;
    int rc = brc_array_open(&a, s, path, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    void *data = malloc(len > 0 ? len : 1);
    ck_assert_ptr_nonnull(data);
    rc = brc_array_read(a, NULL, data, len, &err);
    ck_assert_msg(rc == BRC_OK, "%s", err.message);
    brc_array_free(a);
    return data;
}

const char *exchange_data(void)
{
    const char *dir = getenv("BRECCIA_TEST_DATA");
    if (!dir)
        dir = "../shared/data";
    if (brc_file_kind(dir) == 1)
        return dir;
    fprintf(stderr, "the folder of real data %s is missing: that part of the test is left out\n",
            dir);
    return NULL;
}

void exchange_has(exchange_kit *kit, const char *path, const void *want, size_t len)
{
    void *got = exchange_elements(kit->session, path, len);
    if (len > 0)
        ck_assert_mem_eq(got, want, len);
    free(got);
}

int exchange_node(exchange_kit *kit, const char *path)
{
    int kind = -1;
    ck_assert_int_eq(brc_node_kind(&kind, kit->session, path, &kit->err), BRC_OK);
    return kind;
}

void exchange_must_be_clean(exchange_kit *kit)
{
    int clean = 0;
    ck_assert_int_eq(brc_session_clean(&clean, kit->session, NULL), BRC_OK);
    ck_assert_int_eq(clean, 1);
}

void exchange_import_ok(exchange_kit *kit, const char *source, const char *path,
                        const brc_xfer_opts *opts)
{
    int rc = brc_import(kit->session, source, path, opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

void exchange_export_ok(exchange_kit *kit, const char *path, const char *dest, const char *format,
                        uint32_t flags)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    opts.format = format;
    opts.flags |= flags;
    int rc = brc_export(kit->session, path, dest, &opts, &kit->err);
    ck_assert_msg(rc == BRC_OK, "%s", kit->err.message);
}

void exchange_failed(exchange_kit *kit, int rc, int code, const char *says)
{
    ck_assert_msg(rc == code, "%d instead of %d: %s", rc, code,
                  rc < 0 ? kit->err.message : "it succeeded");
    ck_assert_msg(strstr(kit->err.message, says), "\"%s\" is not in \"%s\"", says,
                  kit->err.message);
    exchange_must_be_clean(kit);
}

void exchange_import_fails(exchange_kit *kit, const char *source, const char *path, int code,
                           const char *says)
{
    exchange_failed(kit, brc_import(kit->session, source, path, NULL, &kit->err), code, says);
}

static brc_xfer_opts on_stream(const brc_xfer_opts *given, int fd)
{
    brc_xfer_opts opts = BRC_XFER_OPTS_INIT;
    if (given != NULL)
        opts = *given;
    opts.flags |= BRC_XFER_STREAM;
    opts.fd = fd;
    return opts;
}

int exchange_stream_in(brc_session *s, int fd, const char *path, const brc_xfer_opts *given,
                       brc_error *err)
{
    const brc_xfer_opts opts = on_stream(given, fd);
    return brc_import(s, NULL, path, &opts, err);
}

int exchange_stream_out(brc_session *s, const char *path, int fd, const brc_xfer_opts *given,
                        brc_error *err)
{
    const brc_xfer_opts opts = on_stream(given, fd);
    return brc_export(s, path, NULL, &opts, err);
}
