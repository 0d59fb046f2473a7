/* The elements of a variable that is written. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../zarr/array.h"
#include "netcdf_out.h"

typedef struct data_out {
    brc_netcdf_out *out;
    const brc_netcdf_var *var;
    brc_netcdf_type type;
} data_out;

static int put_vara(const data_out *d, const brc_sel *box, const void *data, brc_error *err)
{
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    int group = brc_netcdf_group_at(d->out, d->var->group)->id;

    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    if (d->type.chars)
        count[box->ndim] = d->type.chars;
    int status = d->out->lib.nc_put_vara(group, d->var->id, start, count, data);
    return status
               ? brc_netcdf_fail(&d->out->lib, status, BRC_EIO, "cannot write", d->var->path, err)
               : BRC_OK;
}

static int put_fixed(const data_out *d, const brc_sel *box, const void *data, size_t len,
                     brc_error *err)
{
    size_t n = len / d->type.here_size;
    void *other;

    if (d->type.how != BRC_NETCDF_WIDER && d->type.nmoves == 0)
        return put_vara(d, box, data, err);
    BRC_TRY(brc_new_array(&other, n, d->type.file_size, err));
    if (d->type.how == BRC_NETCDF_WIDER)
        brc_netcdf_widen(&d->type, other, data, n);
    else
        brc_netcdf_move_out(&d->type, other, data, n);
    int rc = put_vara(d, box, other, err);
    free(other);
    return rc;
}

/* ---- texts and lists ---------------------------------------- */

static int no_text(const data_out *d, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: it has text with %s, which NetCDF cannot have: "
                    "write Zarr, or take the array out first",
                    d->var->path, what);
}

/* Copies an element's text; *at is where the next one may go. */
static int copy_text(const data_out *d, char **at, const uint8_t *text, size_t len, brc_error *err)
{
    if (len > 0 && memchr(text, 0, len))
        return no_text(d, "U+0000", err);
    if (len > 0)
        memcpy(*at, text, len);
    (*at)[len] = 0;
    *at += len + 1;
    return BRC_OK;
}

static int put_strings(const data_out *d, const brc_sel *box, const uint8_t *data, size_t len,
                       brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_sel_count(box);
    char **texts = NULL, *bytes = NULL, *at;
    int rc;

    BRC_GO(brc_new_array((void **)&texts, n + 1, sizeof(char *), err));
    BRC_GO(brc_new((void **)&bytes, len + 1, err)); /* each has four bytes of its length here */
    at = bytes;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *size = brc_read_bytes(&r, 4);
        uint32_t text_len = size ? brc_get_u32le(size) : 0;
        const uint8_t *text = brc_read_bytes(&r, text_len);
        texts[i] = at;
        BRC_GO(copy_text(d, &at, text, r.bad ? 0 : text_len, err));
    }
    rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: elements are cut off", d->var->path)
               : put_vara(d, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

static int put_lists(const data_out *d, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_sel_count(box);
    nc_vlen_t *lists;

    BRC_TRY(brc_new_array((void **)&lists, n + 1, sizeof(*lists), err));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *size = brc_read_bytes(&r, 4);
        lists[i].len = size ? brc_get_u32le(size) : 0;
        lists[i].p = (void *)(uintptr_t)brc_read_bytes(&r, lists[i].len);
    }
    int rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: elements are cut off", d->var->path)
                   : put_vara(d, box, lists, err);
    free(lists);
    return rc;
}

/* One code point as UTF-8; 0: there is none. */
static size_t put_code_point(char *out, uint32_t c)
{
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return 0;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
    for (size_t i = n; --i > 0; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

static int put_utf32(const data_out *d, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    size_t n = len / d->type.here_size, units = d->type.here_size / 4;
    char **texts = NULL, *bytes = NULL, *at;
    uint32_t c;
    int rc;

    BRC_GO(brc_new_array((void **)&texts, n + 1, sizeof(char *), err));
    BRC_GO(brc_new_array((void **)&bytes, len + n, 1, err)); /* UTF-8 is no longer than UTF-32 */
    at = bytes;
    for (size_t i = 0; i < n; i++, data += d->type.here_size) {
        size_t used = units;
        texts[i] = at;
        for (; used > 0; used--) {
            memcpy(&c, data + 4 * (used - 1), sizeof(c));
            if (c != 0)
                break;
        }
        for (size_t k = 0; k < used; k++) {
            memcpy(&c, data + 4 * k, sizeof(c));
            size_t wrote = put_code_point(at, c);
            if (wrote == 0) {
                rc = no_text(d, c ? "what is no character" : "U+0000", err);
                goto done;
            }
            at += wrote;
        }
        *at++ = 0;
    }
    rc = put_vara(d, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

static int put_box(void *ctx, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    const data_out *d = ctx;
    switch (d->type.how) {
    case BRC_NETCDF_STRINGS:
        return put_strings(d, box, data, len, err);
    case BRC_NETCDF_LISTS:
        return put_lists(d, box, data, len, err);
    case BRC_NETCDF_UTF32:
        return put_utf32(d, box, data, len, err);
    default:
        return put_fixed(d, box, data, len, err);
    }
}

int brc_netcdf_write_var(brc_netcdf_out *out, const brc_netcdf_var *var, brc_error *err)
{
    data_out d = { out, var, { 0 } };
    brc_container_sink sink = { &d, put_box };
    brc_array *a;
    int rc;

    BRC_TRY(brc_array_open(&a, out->session, var->path, err));
    BRC_GO(brc_netcdf_type_out(&d.type, &out->types, a->meta.type, out->classic, err));
    BRC_GO(brc_container_export(a, &sink, err));
done:
    brc_netcdf_type_free(&d.type);
    brc_array_free(a);
    return rc;
}
