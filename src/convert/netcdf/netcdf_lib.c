/* Reads headers of classic NetCDF files; converts names and errors of netCDF-C. */
#include "netcdf_lib.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/alloc.h"

typedef struct classic_var {
    uint64_t bytes; /* of a record, or of all data */
    uint64_t begin;
    int is_record;
} classic_var;

typedef struct classic_header {
    int fd;
    uint64_t size, at; /* the file's size, and the position in it */
    uint8_t piece[4096];
    uint64_t piece_at;
    size_t piece_len;
    int bad; /* the header is truncated or invalid */
    int is_classic, version;
    uint64_t numrecs;
    uint64_t *dims; /* the lengths of dimensions */
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

/* Skips n values and their padding to four bytes. */
static void skip_padded(classic_header *h, uint64_t n, size_t size)
{
    uint64_t bytes, left = h->size - h->at;
    if (!brc_mul_u64(n, size, &bytes) || bytes > left || ((bytes + 3) & ~UINT64_C(3)) > left)
        h->bad = 1;
    else
        h->at += (bytes + 3) & ~UINT64_C(3);
}

/* Reads the head of a list and returns how many items follow. */
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
    (void)take_count(h); /* vsize may be wrong in large files */
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

/* Returns the bytes from one record to the next. A single record variable is not padded. */
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

/* Finds the places of all data. Returns 0 if some lie outside the file. */
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

/* Converts file names and errors of netCDF-C, see netcdf_lib.h. */

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
