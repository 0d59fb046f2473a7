/*
 * The header of a classic NetCDF file, looked through before netCDF-C reads it: that
 * library takes counts in it for true, and crashes on some that are not.
 *
 *   file   'C' 'D' 'F' version(1, 2 or 5), numrecs, dims, atts, vars, data
 *   list   tag(u32: 10 dims, 11 vars, 12 atts; 0 where it is empty), count, items
 *   dim    name, length (0: the record dimension)
 *   att    name, type(u32), count, values padded to 4 bytes
 *   var    name, count of dims, their numbers, atts, type(u32), vsize, begin
 *   name   count of bytes, the bytes padded to 4
 *
 * Everything is big-endian. Counts, lengths and numbers of dims are u32, of version 5
 * u64; `begin`, where a variable's data lie in the file, is u32 in version 1 alone.
 * Variables over the record dimension lie interleaved at the end, a record of each after
 * the other. (The Unidata "NetCDF Classic Format Specification".)
 *
 * Invariant: what passes has no count that the file cannot hold, and each variable's
 * data lie within the file. So a file that was cut off is found.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../input.h"
#include "netcdf_lib.h"

enum { TAG_DIMS = 10, TAG_VARS = 11, TAG_ATTS = 12 };

typedef struct classic_var {
    uint64_t bytes; /* of a record, or of all */
    uint64_t begin;
    int is_record;
} classic_var;

typedef struct classic_header {
    brc_input *in;
    int version;
    uint64_t numrecs;
    uint64_t *dims; /* their lengths */
    size_t ndims, dims_cap;
    classic_var *vars;
    size_t nvars, vars_cap;
} classic_header;

static int damaged(const classic_header *h, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EINVAL, "%s is no whole NetCDF file: %s", h->in->name, what);
}

static uint64_t bytes_left(const classic_header *h)
{
    return h->in->size - h->in->taken;
}

static int take_u32(classic_header *h, uint32_t *out, brc_error *err)
{
    uint8_t b[4] = { 0 };
    if (bytes_left(h) < sizeof(b))
        return damaged(h, "it ends in its header", err);
    BRC_TRY(brc_input_exact(h->in, b, sizeof(b), err));
    *out = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    return BRC_OK;
}

static int take_u64(classic_header *h, uint64_t *out, brc_error *err)
{
    uint32_t high, low;
    BRC_TRY(take_u32(h, &high, err));
    BRC_TRY(take_u32(h, &low, err));
    *out = (uint64_t)high << 32 | low;
    return BRC_OK;
}

/* A count or an offset, by its width in this version. */
static int take_width(classic_header *h, int wide, uint64_t *out, brc_error *err)
{
    uint32_t narrow;
    if (wide)
        return take_u64(h, out, err);
    BRC_TRY(take_u32(h, &narrow, err));
    *out = narrow;
    return BRC_OK;
}

static int take_count(classic_header *h, uint64_t *out, brc_error *err)
{
    return take_width(h, h->version == 5, out, err);
}

/* Reads past n bytes and what pads them to four. */
static int skip_padded(classic_header *h, uint64_t n, brc_error *err)
{
    uint8_t piece[4096];
    if (n > bytes_left(h) || ((n + 3) & ~UINT64_C(3)) > bytes_left(h))
        return damaged(h, "something in its header is longer than the file", err);
    for (n = (n + 3) & ~UINT64_C(3); n > 0;) {
        size_t now = n < sizeof(piece) ? (size_t)n : sizeof(piece);
        BRC_TRY(brc_input_exact(h->in, piece, now, err));
        n -= now;
    }
    return BRC_OK;
}

static int skip_name(classic_header *h, brc_error *err)
{
    uint64_t len;
    BRC_TRY(take_count(h, &len, err));
    if (len == 0 || len > NC_MAX_NAME)
        return damaged(h, "a name in its header has no sensible length", err);
    return skip_padded(h, len, err);
}

/* *n: items that follow, each of at least `least` bytes. */
static int take_list(classic_header *h, uint32_t tag, uint64_t least, uint64_t *n, brc_error *err)
{
    uint32_t found;
    BRC_TRY(take_u32(h, &found, err));
    BRC_TRY(take_count(h, n, err));
    if (found != tag && (found != 0 || *n != 0))
        return damaged(h, "a list in its header does not begin as one", err);
    if (*n > bytes_left(h) / least)
        return damaged(h, "a list in its header is longer than the file", err);
    return BRC_OK;
}

static int take_type(classic_header *h, size_t *size, brc_error *err)
{
    uint32_t type;
    BRC_TRY(take_u32(h, &type, err));
    if (type < NC_BYTE || type > (h->version == 5 ? NC_UINT64 : NC_DOUBLE))
        return damaged(h, "its header names a type that there is not", err);
    *size = brc_netcdf_atomic_size((nc_type)type);
    return BRC_OK;
}

static int take_dims(classic_header *h, brc_error *err)
{
    uint64_t n, length, records = 0;
    BRC_TRY(take_list(h, TAG_DIMS, 12, &n, err));
    for (uint64_t i = 0; i < n; i++) {
        BRC_TRY(skip_name(h, err));
        BRC_TRY(take_count(h, &length, err));
        if (length == 0 && ++records > 1)
            return damaged(h, "it has two record dimensions", err);
        if (length > INT64_MAX)
            return damaged(h, "a dimension is longer than 63 bits can count", err);
        BRC_TRY(
            brc_grow_array((void **)&h->dims, &h->dims_cap, h->ndims + 1, sizeof(*h->dims), err));
        h->dims[h->ndims++] = length;
    }
    return BRC_OK;
}

static int skip_atts(classic_header *h, brc_error *err)
{
    uint64_t n, count, bytes;
    size_t size;
    BRC_TRY(take_list(h, TAG_ATTS, 16, &n, err));
    for (uint64_t i = 0; i < n; i++) {
        BRC_TRY(skip_name(h, err));
        BRC_TRY(take_type(h, &size, err));
        BRC_TRY(take_count(h, &count, err));
        if (!brc_mul_u64(count, size, &bytes))
            return damaged(h, "an attribute is longer than the file", err);
        BRC_TRY(skip_padded(h, bytes, err));
    }
    return BRC_OK;
}

static int take_var(classic_header *h, brc_error *err)
{
    classic_var var = { 1, 0, 0 };
    uint64_t ndims, dim, vsize;
    size_t size;

    BRC_TRY(skip_name(h, err));
    BRC_TRY(take_count(h, &ndims, err));
    if (ndims > NC_MAX_VAR_DIMS)
        return damaged(h, "a variable has more than 1024 dimensions", err);
    for (uint64_t i = 0; i < ndims; i++) {
        BRC_TRY(take_count(h, &dim, err));
        if (dim >= h->ndims || (h->dims[dim] == 0 && i > 0))
            return damaged(h, "a variable names a dimension that it cannot have", err);
        if (h->dims[dim] == 0)
            var.is_record = 1;
        else if (!brc_mul_u64(var.bytes, h->dims[dim], &var.bytes))
            return damaged(h, "a variable is longer than 64 bits can count", err);
    }
    BRC_TRY(skip_atts(h, err));
    BRC_TRY(take_type(h, &size, err));
    BRC_TRY(take_count(h, &vsize, err)); /* may be wrong in large files: not used */
    BRC_TRY(take_width(h, h->version != 1, &var.begin, err));
    if (!brc_mul_u64(var.bytes, size, &var.bytes))
        return damaged(h, "a variable is longer than 64 bits can count", err);
    BRC_TRY(brc_grow_array((void **)&h->vars, &h->vars_cap, h->nvars + 1, sizeof(*h->vars), err));
    h->vars[h->nvars++] = var;
    return BRC_OK;
}

/* Bytes from one record to the next: a lone record variable is not padded. */
static int record_bytes(const classic_header *h, uint64_t *out, brc_error *err)
{
    uint64_t padded, count = 0, lone = 0;
    *out = 0;
    for (size_t i = 0; i < h->nvars; i++) {
        if (!h->vars[i].is_record)
            continue;
        count++;
        lone = h->vars[i].bytes;
        if (!brc_add_u64(lone, 3, &padded) || !brc_add_u64(*out, padded & ~UINT64_C(3), out))
            return damaged(h, "its records are longer than 64 bits can count", err);
    }
    if (count == 1)
        *out = lone;
    return BRC_OK;
}

/* Whether the data lie within the file, behind its header. */
static int check_places(const classic_header *h, uint64_t header_end, brc_error *err)
{
    uint64_t record, last, end;
    BRC_TRY(record_bytes(h, &record, err));
    for (size_t i = 0; i < h->nvars; i++) {
        const classic_var *v = &h->vars[i];
        if (v->bytes == 0 || (v->is_record && h->numrecs == 0))
            continue;
        if (v->begin < header_end)
            return damaged(h, "a variable's data begin within the header", err);
        if (!brc_mul_u64(record, v->is_record ? h->numrecs - 1 : 0, &last) ||
            !brc_add_u64(v->begin, last, &end) || !brc_add_u64(end, v->bytes, &end) ||
            end > h->in->size)
            return damaged(h, "it is shorter than its header says; was it copied in full?", err);
    }
    return BRC_OK;
}

static int check_header(classic_header *h, brc_error *err)
{
    uint8_t magic[4] = { 0 };
    uint64_t n;

    if (h->in->size == BRC_LEN_VARIES)
        return damaged(h, "it is compressed as a whole: unpack it first", err);
    if (bytes_left(h) < sizeof(magic))
        return damaged(h, "it ends in its header", err);
    BRC_TRY(brc_input_exact(h->in, magic, sizeof(magic), err));
    h->version = magic[3];
    if (memcmp(magic, "CDF", 3) != 0 || (h->version != 1 && h->version != 2 && h->version != 5))
        return damaged(h, "it does not begin as one of version 1, 2 or 5", err);
    BRC_TRY(take_count(h, &h->numrecs, err));
    BRC_TRY(take_dims(h, err));
    BRC_TRY(skip_atts(h, err));
    BRC_TRY(take_list(h, TAG_VARS, 32, &n, err));
    for (uint64_t i = 0; i < n; i++)
        BRC_TRY(take_var(h, err));
    return check_places(h, h->in->taken, err);
}

int brc_netcdf_check_classic(const char *file, brc_error *err)
{
    classic_header h = { 0 };
    BRC_TRY(brc_input_open(&h.in, file, err));
    int rc = check_header(&h, err);
    brc_input_free(h.in);
    free(h.dims);
    free(h.vars);
    return rc;
}
