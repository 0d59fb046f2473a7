/*
 * The links of a NetCDF-4 file, which is an HDF5 file, looked through before netCDF-C
 * reads it: that library follows every link and reads whatever a data set names.
 *
 * Refused: links to other files and data sets whose bytes lie in other files, because
 * a stranger's file shall not bring in files of the reader's; groups that have two names
 * or are linked to by path, because netCDF-C walks in circles there.
 */
#include "netcdf_lib.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/alloc.h"

/* ==== netcdf links ================================ */

typedef struct link_check {
    const char *file;
    int rc;
    brc_error *err;
} link_check;

static int refuse_link(link_check *check, const char *name, const char *what)
{
    check->rc = brc_fail(check->err, BRC_EINVAL, "%s: /%s %s", check->file, name, what);
    return 1; /* ends the walk */
}

static int check_data_set(link_check *check, hid_t group, const char *name)
{
    hid_t set = H5Dopen2(group, name, H5P_DEFAULT);
    hid_t plist = set < 0 ? -1 : H5Dget_create_plist(set);
    int outside = plist >= 0 &&
                  (H5Pget_external_count(plist) != 0 || H5Pget_layout(plist) == H5D_VIRTUAL);
    if (plist >= 0)
        H5Pclose(plist);
    if (set >= 0)
        H5Dclose(set);
    if (plist < 0)
        return refuse_link(check, name, "is a damaged data set");
    if (outside)
        return refuse_link(check, name, "has its data in other files, which are never opened");
    return 0;
}

static herr_t check_link(hid_t group, const char *name, const H5L_info_t *link, void *ctx)
{
    link_check *check = ctx;
    H5O_info_t object;

    if (link->type != H5L_TYPE_HARD && link->type != H5L_TYPE_SOFT)
        return refuse_link(check, name, "is a link to another file, which is never opened");
#if H5_VERSION_GE(1, 12, 0)
    herr_t found = H5Oget_info_by_name(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT);
#else
    herr_t found = H5Oget_info_by_name(group, name, &object, H5P_DEFAULT);
#endif
    if (found < 0)
        return refuse_link(check, name, "leads nowhere");
    if (object.type == H5O_TYPE_GROUP && (link->type == H5L_TYPE_SOFT || object.rc > 1))
        return refuse_link(check, name,
                           "is a group with more than one name, which NetCDF does not have");
    return object.type == H5O_TYPE_DATASET ? check_data_set(check, group, name) : 0;
}

int brc_netcdf_is_hdf5(const char *file)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* it would print, here and later */
    return H5Fis_hdf5(file) > 0;
}

int brc_netcdf_check_links(const char *file, brc_error *err)
{
    link_check check = { .file = file, .err = err };
    hid_t id = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (id < 0)
        return brc_fail(err, BRC_EINVAL, "%s is truncated or damaged: libhdf5 cannot open it",
                        file);
    herr_t walked = H5Lvisit(id, H5_INDEX_NAME, H5_ITER_NATIVE, check_link, &check);
    if (walked < 0 && check.rc == BRC_OK)
        check.rc = brc_fail(err, BRC_EINVAL,
                            "%s is truncated or damaged: its groups cannot be read", file);
    H5Fclose(id);
    return check.rc;
}

/* ==== netcdf length ================================ */

/*
 * Does a classic NetCDF file hold all that its header promises? netCDF-C reads what is missing
 * as zeros, in the header too, and does not say where in the file a variable lies: so the header
 * is read here as well, for the lengths and places in it alone, and first, since that library
 * takes memory for all that is promised before it reads on.
 *
 *   file   'C' 'D' 'F' version(1, 2 or 5), numrecs, dims, atts, vars, data
 *   list   tag(u32), count, items
 *   dim    name, length (0: the record dimension)
 *   att    name, type(u32), count, values padded to 4 bytes
 *   var    name, count of dims, their numbers, atts, type(u32), vsize, begin
 *   name   count of bytes, the bytes padded to 4
 *
 * Everything is big-endian. Counts, lengths and numbers of dims are u32, of version 5
 * u64; `begin`, where a variable's data lie in the file, is u32 in version 1 alone.
 * Variables over the record dimension lie interleaved at the end, a record of each after
 * the other. (The Unidata "NetCDF Classic Format Specification".)
 */

typedef struct classic_var {
    uint64_t bytes; /* of a record, or of all */
    uint64_t begin;
    int is_record;
} classic_var;

typedef struct classic_header {
    int fd;
    uint64_t size, at; /* of the file, and in it */
    uint8_t piece[4096];
    uint64_t piece_at;
    size_t piece_len;
    int bad; /* it ends before its header does, or says what cannot be */
    int is_classic, version;
    uint64_t numrecs;
    uint64_t *dims; /* their lengths */
    size_t ndims, dims_cap;
    classic_var *vars;
    size_t nvars, vars_cap;
} classic_header;

static uint8_t take_byte(classic_header *h)
{
    if (h->bad || h->at >= h->size) {
        h->bad = 1;
        return 0;
    }
    if (h->at < h->piece_at || h->at - h->piece_at >= h->piece_len) {
        ssize_t n = pread(h->fd, h->piece, sizeof(h->piece), (off_t)h->at);
        h->piece_at = h->at;
        h->piece_len = n > 0 ? (size_t)n : 0;
        h->bad = n <= 0;
    }
    return h->bad ? 0 : h->piece[h->at++ - h->piece_at];
}

static uint64_t take_big_endian(classic_header *h, int bytes)
{
    uint64_t out = 0;
    while (bytes-- > 0)
        out = out << 8 | take_byte(h);
    return out;
}

static uint64_t take_count(classic_header *h)
{
    return take_big_endian(h, h->version == 5 ? 8 : 4);
}

/* Past n values, and what pads them to four bytes. */
static void skip_padded(classic_header *h, uint64_t n, size_t size)
{
    uint64_t bytes, left = h->size - h->at;
    if (!brc_mul_u64(n, size, &bytes) || bytes > left || ((bytes + 3) & ~UINT64_C(3)) > left)
        h->bad = 1;
    else
        h->at += (bytes + 3) & ~UINT64_C(3);
}

/* Of a list: how many items follow. */
static uint64_t take_list(classic_header *h)
{
    (void)take_big_endian(h, 4);
    return take_count(h);
}

static size_t take_size(classic_header *h)
{
    size_t size = brc_netcdf_atomic_size((nc_type)take_big_endian(h, 4));
    h->bad |= size == 0;
    return size;
}

static void skip_atts(classic_header *h)
{
    for (uint64_t n = take_list(h); n > 0 && !h->bad; n--) {
        skip_padded(h, take_count(h), 1);
        size_t size = take_size(h);
        skip_padded(h, take_count(h), size);
    }
}

static int take_dims(classic_header *h, brc_error *err)
{
    for (uint64_t n = take_list(h); n > 0 && !h->bad; n--) {
        skip_padded(h, take_count(h), 1);
        BRC_TRY(
            brc_grow_array((void **)&h->dims, &h->dims_cap, h->ndims + 1, sizeof(*h->dims), err));
        h->dims[h->ndims++] = take_count(h);
    }
    return BRC_OK;
}

static void take_var(classic_header *h, classic_var *var)
{
    *var = (classic_var){ .bytes = 1 };
    skip_padded(h, take_count(h), 1);
    for (uint64_t n = take_count(h); n > 0 && !h->bad; n--) {
        uint64_t dim = take_count(h);
        uint64_t length = dim < h->ndims ? h->dims[dim] : 0;
        var->is_record |= length == 0;
        h->bad |= dim >= h->ndims || !brc_mul_u64(var->bytes, length ? length : 1, &var->bytes);
    }
    skip_atts(h);
    h->bad |= !brc_mul_u64(var->bytes, take_size(h), &var->bytes);
    (void)take_count(h); /* vsize: may be wrong in large files */
    var->begin = take_big_endian(h, h->version == 1 ? 4 : 8);
}

static int take_header(classic_header *h, brc_error *err)
{
    h->is_classic = take_big_endian(h, 3) == 0x434446; /* "CDF" */
    h->version = take_byte(h);
    h->is_classic &= h->version == 1 || h->version == 2 || h->version == 5;
    if (!h->is_classic)
        return BRC_OK;
    h->numrecs = take_count(h);
    BRC_TRY(take_dims(h, err));
    skip_atts(h);
    for (uint64_t n = take_list(h); n > 0 && !h->bad; n--) {
        BRC_TRY(
            brc_grow_array((void **)&h->vars, &h->vars_cap, h->nvars + 1, sizeof(*h->vars), err));
        take_var(h, &h->vars[h->nvars++]);
    }
    return BRC_OK;
}

/* Bytes from one record to the next: a lone record variable is not padded. */
static uint64_t record_bytes(classic_header *h)
{
    uint64_t padded, sum = 0, count = 0, lone = 0;
    for (size_t i = 0; i < h->nvars; i++) {
        if (!h->vars[i].is_record)
            continue;
        count++;
        lone = h->vars[i].bytes;
        h->bad |= !brc_add_u64(lone, 3, &padded) || !brc_add_u64(sum, padded & ~UINT64_C(3), &sum);
    }
    return count == 1 ? lone : sum;
}

/* 1: all data lie within the file, and there. */
static int find_data(classic_header *h, brc_tar_range *places)
{
    uint64_t record = record_bytes(h), bytes;
    for (size_t i = 0; i < h->nvars; i++) {
        const classic_var *v = &h->vars[i];
        brc_tar_range *r = &places[i];
        *r = (brc_tar_range){ v->begin, v->bytes, record, v->is_record ? h->numrecs : 1 };
        if (v->bytes == 0 || (v->is_record && h->numrecs == 0))
            continue;
        if (!brc_tar_range_bytes(r, &bytes) ||
            v->begin + record * (r->pieces - 1) + v->bytes > h->size)
            return 0;
    }
    return 1;
}

static int open_header(classic_header *h, const char *file, brc_error *err)
{
    struct stat is = { 0 };
    h->fd = open(file, O_RDONLY | O_CLOEXEC);
    if (h->fd < 0 || fstat(h->fd, &is) < 0) {
        int rc = brc_fail_os(err, errno, "cannot open", file);
        if (h->fd >= 0)
            close(h->fd);
        return rc;
    }
    h->size = (uint64_t)is.st_size;
    return BRC_OK;
}

static int check_header(classic_header *h, const char *file, brc_netcdf_places *out, brc_error *err)
{
    BRC_TRY(take_header(h, err));
    BRC_TRY(brc_new_array((void **)&out->ranges, h->nvars + 1, sizeof(*out->ranges), err));
    int whole = !h->bad && find_data(h, out->ranges);
    if (!h->is_classic)
        return brc_fail(err, BRC_EINVAL, "%s is not a NetCDF file", file);
    if (h->bad)
        return brc_fail(err, BRC_EINVAL, "%s is truncated or damaged: its header is incomplete",
                        file);
    if (!whole)
        return brc_fail(err, BRC_EINVAL,
                        "%s is truncated or damaged: it is shorter than its header says; was it "
                        "copied in full?",
                        file);
    out->n = h->nvars;
    return BRC_OK;
}

int brc_netcdf_check_length(brc_netcdf_places *places, const char *file, brc_error *err)
{
    classic_header h = { 0 };
    *places = (brc_netcdf_places){ 0 };
    BRC_TRY(open_header(&h, file, err));
    int rc = check_header(&h, file, places, err);
    if (rc < 0)
        brc_netcdf_places_free(places);
    free(h.dims);
    free(h.vars);
    close(h.fd);
    return rc;
}

void brc_netcdf_places_free(brc_netcdf_places *places)
{
    free(places->ranges);
    *places = (brc_netcdf_places){ 0 };
}

/* ==== netcdf lib ================================ */

/* File names, errors and types of netCDF-C, see netcdf_lib.h. */

int brc_netcdf_path(char **out, const char *file, brc_error *err)
{
    brc_buf path = BRC_BUF_INIT;
    int rc = BRC_OK;

    if (file[0] != '/')
        BRC_GO(brc_buf_text(&path, "./", err));
    for (size_t i = 0; file[i]; i++)
        if (file[i] != '/' || i == 0 || file[i - 1] != '/')
            BRC_GO(brc_buf_byte(&path, (uint8_t)file[i], err));
    BRC_GO(brc_buf_take_text(&path, out, err));
done:
    brc_buf_dispose(&path);
    return rc;
}

int brc_netcdf_fail(int status, int code, const char *what, const char *label, brc_error *err)
{
    if (status == NC_ENOMEM)
        return brc_nomem(err);
    if (status > 0)
        return brc_fail_os(err, status, what, label);
    const char *why = nc_strerror(status);
    if (strncmp(why, "NetCDF: ", 8) == 0)
        why += 8;
    return brc_fail(err, code, "%s %s: %s", what, label, why);
}

/* ---- types -------------------------------- */

static const struct {
    nc_type type;
    size_t size;
    const char *name;
} atomic_types[] = {
    { NC_BYTE, 1, "byte" },   { NC_CHAR, 1, "char" },     { NC_SHORT, 2, "short" },
    { NC_INT, 4, "int" },     { NC_FLOAT, 4, "float" },   { NC_DOUBLE, 8, "double" },
    { NC_UBYTE, 1, "ubyte" }, { NC_USHORT, 2, "ushort" }, { NC_UINT, 4, "uint" },
    { NC_INT64, 8, "int64" }, { NC_UINT64, 8, "uint64" }, { NC_STRING, sizeof(char *), "string" },
};
#define N_ATOMIC_TYPES (sizeof(atomic_types) / sizeof(atomic_types[0]))

size_t brc_netcdf_atomic_size(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].size;
    return 0;
}

const char *brc_netcdf_type_name(nc_type type)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (atomic_types[i].type == type)
            return atomic_types[i].name;
    return NULL;
}

nc_type brc_netcdf_type_named(const char *name)
{
    for (size_t i = 0; i < N_ATOMIC_TYPES; i++)
        if (strcmp(atomic_types[i].name, name) == 0)
            return atomic_types[i].type;
    return NC_NAT;
}

size_t brc_netcdf_default_fill(nc_type type, uint8_t out[8])
{
#define FILL(constant, c_type, value)     \
    case constant: {                      \
        c_type fill = value;              \
        memcpy(out, &fill, sizeof(fill)); \
        return sizeof(fill);              \
    }
    memset(out, 0, 8);
    switch (type) {
        FILL(NC_BYTE, signed char, NC_FILL_BYTE)
        FILL(NC_CHAR, char, NC_FILL_CHAR)
        FILL(NC_SHORT, int16_t, NC_FILL_SHORT)
        FILL(NC_INT, int32_t, NC_FILL_INT)
        FILL(NC_FLOAT, float, NC_FILL_FLOAT)
        FILL(NC_DOUBLE, double, NC_FILL_DOUBLE)
        FILL(NC_UBYTE, uint8_t, NC_FILL_UBYTE)
        FILL(NC_USHORT, uint16_t, NC_FILL_USHORT)
        FILL(NC_UINT, uint32_t, NC_FILL_UINT)
        FILL(NC_INT64, int64_t, NC_FILL_INT64)
        FILL(NC_UINT64, uint64_t, NC_FILL_UINT64)
    default:
        return 0;
    }
#undef FILL
}
