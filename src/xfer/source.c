/*
 * What a source is, and what to call the node that it becomes. A file is known by
 * its first bytes and a directory by what is in it; names only help where that
 * fails, and in messages.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../base/json.h"
#include "../history/snapshot.h"
#include "../zarr/transfer.h"
#include "elements.h"
#include "npy/npy_header.h"
#include "zarr/tree_in.h"
#include "xfer.h"

#define IMPORTABLE \
    "a Zarr directory or .zip, .npy, .npz, IDX, NetCDF and HDF5 files can be imported"

static int has_entry(int *has, const char *dir, const char *name, brc_error *err)
{
    char *path;
    BRC_TRY(brc_path_join(&path, dir, name, err));
    *has = brc_file_kind(path) != 0;
    free(path);
    return BRC_OK;
}

static int directory_kind(int *kind, const char *dir, brc_error *err)
{
    static const char *const names[] = { "zarr.json", ".zarray", ".zgroup", ".zmetadata" };
    int has;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        BRC_TRY(has_entry(&has, dir, names[i], err));
        if (has) {
            *kind = BRC_SOURCE_ZARR;
            return BRC_OK;
        }
    }
    return brc_fail(err, BRC_EUNSUPPORTED, "the directory %s has no zarr.json; %s", dir,
                    IMPORTABLE);
}

/* A zip archive: of .npy files, or of a Zarr hierarchy. */
static int archive_kind(int *kind, const char *file, brc_error *err)
{
    int holds;
    BRC_TRY(brc_zip_holds_zarr(&holds, file, err));
    *kind = holds ? BRC_SOURCE_ZARR : BRC_SOURCE_NPZ;
    return BRC_OK;
}

static int begins_with(const uint8_t *head, size_t n, const char *magic, size_t len)
{
    return n >= len && memcmp(head, magic, len) == 0;
}

static int is_classic_netcdf(const uint8_t *head, size_t n)
{
    return begins_with(head, n, "CDF\1", 4) || begins_with(head, n, "CDF\2", 4) ||
           begins_with(head, n, "CDF\5", 4);
}

/* An HDF5 file may begin with something else, of 512 bytes or a power of two times
 * that: its signature follows there. */
static int find_hdf5(int *found, const char *file, brc_error *err)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char head[8];
    uint64_t size;
    int fd;

    *found = 0;
    BRC_TRY(brc_regular_open(&fd, &size, file, 1, err));
    for (uint64_t at = 0; at < size && !*found; at = at ? at * 2 : 512)
        *found = pread(fd, head, sizeof(head), (off_t)at) == (ssize_t)sizeof(head) &&
                 memcmp(head, signature, sizeof(head)) == 0;
    close(fd);
    return BRC_OK;
}

/* What does not show at the first byte. */
static int hdf5_kind(int *kind, const char *file, int packed, brc_error *err)
{
    int netcdf, found = 0;
    if (!packed)
        BRC_TRY(find_hdf5(&found, file, err));
    if (!found)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s is in no format that is known; %s", file,
                        IMPORTABLE);
    BRC_TRY(brc_hdf5_is_netcdf(&netcdf, file, err));
    *kind = netcdf ? BRC_SOURCE_NETCDF : BRC_SOURCE_HDF5;
    return BRC_OK;
}

static int head_kind(int *kind, const char *file, const uint8_t *head, size_t n, int packed,
                     brc_error *err)
{
    if (begins_with(head, n, BRC_NPY_MAGIC, BRC_NPY_MAGIC_LEN))
        *kind = BRC_SOURCE_NPY;
    else if (brc_is_idx(head, n))
        *kind = BRC_SOURCE_IDX;
    else if (!packed && (begins_with(head, n, "PK\3\4", 4) || begins_with(head, n, "PK\5\6", 4)))
        return archive_kind(kind, file, err);
    else if (!packed && is_classic_netcdf(head, n))
        *kind = BRC_SOURCE_NETCDF;
    else
        return hdf5_kind(kind, file, packed, err);
    return BRC_OK;
}

int brc_source_kind(int *kind, const char *source, brc_error *err)
{
    brc_input *in = NULL;
    const uint8_t *head;
    size_t n;
    int rc;

    int what = brc_file_kind(source);
    if (what == 0)
        return brc_fail(err, BRC_ENOTFOUND, "%s: there is no such file or directory", source);
    if (what == 1)
        return directory_kind(kind, source, err);
    BRC_GO(brc_input_open(&in, source, err));
    BRC_GO(brc_input_peek(in, &head, &n, err));
    BRC_GO(head_kind(kind, source, head, n, in->size == BRC_LEN_VARIES, err));
done:
    brc_input_free(in);
    return rc;
}

/* Up to the first element. */
static int open_single(brc_input **in, brc_elements *e, brc_session *s, int kind, const char *file,
                       brc_error *err)
{
    const brc_registry *reg = brc_session_registry(s);
    BRC_TRY(brc_input_open(in, file, err));
    return kind == BRC_SOURCE_NPY ? brc_npy_open(e, *in, reg, err) : brc_idx_open(e, *in, reg, err);
}

int brc_single_bytes(uint64_t *bytes, brc_session *s, int kind, const char *file, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    BRC_GO(open_single(&in, &e, s, kind, file, err));
    *bytes = e.bytes;
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}

int brc_single_import(brc_session *s, int kind, const char *file, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    BRC_GO(open_single(&in, &e, s, kind, file, err));
    BRC_GO(brc_elements_import(s, path, &e, in, opts, err));
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}

/* ---- names -------------------------------- */

int brc_name_is_safe(const char *name, size_t len)
{
    return brc_name_check(name, len, NULL) == BRC_OK;
}

int brc_path_is_safe(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (!brc_name_is_safe(path, len))
            return 0;
        if (path[len] == 0)
            return 1;
        path += len + 1;
    }
}

/* The length without the ending, which is compared without case; something must
 * be left. */
static size_t without_ending(const char *name, size_t len, const char *ending)
{
    size_t n = strlen(ending);
    if (len <= n)
        return len;
    for (size_t i = 0; i < n; i++) {
        char c = name[len - n + i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != ending[i])
            return len;
    }
    return len - n;
}

/* "-idx3-ubyte" and ".idx3-ubyte", as the MNIST files have them. */
static size_t without_idx_ending(const char *name, size_t len)
{
    static const char *const types[] = { "-ubyte", "-byte", "-short", "-int", "-float", "-double" };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t n = without_ending(name, len, types[i]);
        if (n == len)
            continue;
        size_t digits = n;
        while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
            digits--;
        size_t shorter = without_ending(name, digits, "-idx");
        if (shorter == digits)
            shorter = without_ending(name, digits, ".idx");
        return shorter < digits ? shorter : len;
    }
    return without_ending(name, len, ".idx");
}

static size_t base_length(const char *name, size_t len)
{
    static const char *const endings[] = { ".npy", ".npz", ".zip", ".zarr", ".nc",
                                           ".nc4", ".cdf", ".h5",  ".hdf5" };
    len = without_ending(name, len, ".gz");
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        size_t n = without_ending(name, len, endings[i]);
        if (n < len)
            return n;
    }
    return without_idx_ending(name, len);
}

/* Zarr reserves "__" at the front and forbids names of periods alone; control
 * characters, backslashes and what is no UTF-8 make bad names anywhere. */
static void make_node_name(char *name)
{
    size_t len = strlen(name);
    int valid = brc_utf8_valid(name, len);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7F || c == '\\' || c == '/' || (!valid && c >= 0x80))
            name[i] = '-';
    }
    if (strspn(name, ".") == len)
        memset(name, '-', len);
    if (len >= 2 && memcmp(name, "__", 2) == 0)
        name[0] = name[1] = '-';
    if (!brc_name_is_safe(name, len))
        name[0] = '-';
}

int brc_source_name(char **out, const char *source, brc_error *err)
{
    size_t end = strlen(source);
    while (end > 0 && source[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && source[start - 1] != '/')
        start--;
    if (start + strspn(source + start, ".") >= end)
        return brc_fail(err, BRC_EINVAL, "%s gives no name for a node: name a path to import into",
                        source);
    BRC_TRY(brc_dup_n(out, source + start, base_length(source + start, end - start), err));
    make_node_name(*out);
    return BRC_OK;
}

int brc_node_join(char **out, const char *path, const char *name, brc_error *err)
{
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        len--;
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_append(&text, path, len, err));
    BRC_GO(brc_buf_byte(&text, '/', err));
    BRC_GO(brc_buf_text(&text, name, err));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
