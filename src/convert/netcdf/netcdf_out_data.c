/* The elements of a variable that is written. */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/utf8.h"
#include "netcdf_ragged.h"

static int put_vara(const brc_netcdf_out *out, const brc_sel *box, const void *data, brc_error *err)
{
    size_t start[BRC_MAX_NDIM + 1] = { 0 }, count[BRC_MAX_NDIM + 1] = { 0 };
    int group = brc_netcdf_group_at(out, out->data.var->group)->id;

    for (int k = 0; k < box->ndim; k++) {
        start[k] = (size_t)box->start[k];
        count[k] = (size_t)box->count[k];
    }
    if (out->data.type.chars)
        count[box->ndim] = out->data.type.chars;
    int status = nc_put_vara(group, out->data.var->id, start, count, data);
    return status
               ? brc_netcdf_fail(status, BRC_EIO, "cannot write", out->data.var->node->path, err)
               : BRC_OK;
}

static int put_fixed(const brc_netcdf_out *out, const brc_sel *box, const void *data, size_t len,
                     brc_error *err)
{
    size_t n = len / out->data.type.here_size;
    void *other;

    if (out->data.type.how != BRC_NETCDF_WIDER && out->data.type.nmoves == 0)
        return put_vara(out, box, data, err);
    BRC_TRY(brc_new_array(&other, n, out->data.type.file_size, err));
    if (out->data.type.how == BRC_NETCDF_WIDER)
        brc_netcdf_widen(&out->data.type, other, data, n);
    else
        brc_netcdf_move_out(&out->data.type, other, data, n);
    int rc = put_vara(out, box, other, err);
    free(other);
    return rc;
}

/* ---- texts and lists ---------------------------------------- */

static int no_text(const brc_netcdf_out *out, const char *what, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s: it has text with %s, which NetCDF cannot store: "
                    "write Zarr, or take the array out first",
                    out->data.var->node->path, what);
}

/* Copies an element's text; *at is where the next one may go. */
static int copy_text(const brc_netcdf_out *out, char **at, const uint8_t *text, size_t len,
                     brc_error *err)
{
    if (len > 0 && memchr(text, 0, len))
        return no_text(out, "U+0000", err);
    if (len > 0)
        memcpy(*at, text, len);
    (*at)[len] = 0;
    *at += len + 1;
    return BRC_OK;
}

static int put_strings(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data,
                       size_t len, brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_shape_count(box->ndim, box->count);
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
        BRC_GO(copy_text(out, &at, text, r.bad ? 0 : text_len, err));
    }
    rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: its elements are truncated",
                          out->data.var->node->path)
               : put_vara(out, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

static int put_lists(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    brc_reader r = brc_reader_of(data, len);
    size_t n = (size_t)brc_shape_count(box->ndim, box->count);
    nc_vlen_t *lists;

    BRC_TRY(brc_new_array((void **)&lists, n + 1, sizeof(*lists), err));
    for (size_t i = 0; i < n; i++) {
        const uint8_t *size = brc_read_bytes(&r, 4);
        lists[i].len = size ? brc_get_u32le(size) : 0;
        lists[i].p = (void *)(uintptr_t)brc_read_bytes(&r, lists[i].len);
    }
    const char *path = out->data.var->node->path;
    int rc = r.bad ? brc_fail(err, BRC_EINTERNAL, "%s: its elements are truncated", path)
                   : put_vara(out, box, lists, err);
    free(lists);
    return rc;
}

/* Zero ends the library's texts; surrogates are not characters. */
static int is_character(uint32_t c)
{
    return c != 0 && c <= 0x10FFFF && (c < 0xD800 || c >= 0xE000);
}

static int put_utf32(const brc_netcdf_out *out, const brc_sel *box, const uint8_t *data, size_t len,
                     brc_error *err)
{
    size_t n = len / out->data.type.here_size, units = out->data.type.here_size / 4;
    char **texts = NULL, *bytes = NULL, *at;
    uint32_t c;
    int rc;

    BRC_GO(brc_new_array((void **)&texts, n + 1, sizeof(char *), err));
    BRC_GO(brc_new_array((void **)&bytes, len + n, 1, err)); /* UTF-8 is no longer than UTF-32 */
    at = bytes;
    for (size_t i = 0; i < n; i++, data += out->data.type.here_size) {
        size_t used = units;
        texts[i] = at;
        for (; used > 0; used--) {
            memcpy(&c, data + 4 * (used - 1), sizeof(c));
            if (c != 0)
                break;
        }
        for (size_t k = 0; k < used; k++) {
            memcpy(&c, data + 4 * k, sizeof(c));
            if (!is_character(c)) {
                rc = no_text(out, c ? "something that is not a character" : "U+0000", err);
                goto done;
            }
            at += brc_utf8_encode((uint8_t *)at, c);
        }
        *at++ = 0;
    }
    rc = put_vara(out, box, texts, err);
done:
    free(texts);
    free(bytes);
    return rc;
}

int brc_netcdf_put(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err)
{
    const brc_netcdf_out *out = state;
    if (out->filled)
        return brc_netcdf_put_ragged(out->filled, out->array, box, data, len, err);
    switch (out->data.type.how) {
    case BRC_NETCDF_STRINGS:
        return put_strings(out, box, data, len, err);
    case BRC_NETCDF_LISTS:
        return put_lists(out, box, data, len, err);
    case BRC_NETCDF_UTF32:
        return put_utf32(out, box, data, len, err);
    default:
        return put_fixed(out, box, data, len, err);
    }
}

/* Variables are in the order of their nodes. */
static const brc_netcdf_var *find_var(const brc_netcdf_out *out, const brc_node_out *node)
{
    size_t low = 0, high = out->nvars;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (brc_netcdf_var_at(out, mid)->node->number < node->number)
            low = mid + 1;
        else
            high = mid;
    }
    const brc_netcdf_var *found = low < out->nvars ? brc_netcdf_var_at(out, low) : NULL;
    return found && found->node == node ? found : NULL;
}

/* *may: chunks that have the array's fill value alone need not be written, since they read as
 * that. An unlimited dimension is as long as what is written. */
static int may_leave_gaps(int *may, const brc_netcdf_out *out, brc_error *err)
{
    const brc_netcdf_var *v = out->data.var;
    const brc_netcdf_type *type = &out->data.type;
    const brc_buf *fill = &v->node->meta->fill;
    int group = brc_netcdf_group_at(out, v->group)->id, storage = NC_CONTIGUOUS, no_fill = 1;
    uint8_t *memory;

    *may = !out->classic && type->how == BRC_NETCDF_PLAIN && !type->chars &&
           fill->len == type->here_size &&
           nc_inq_var_chunking(group, v->id, &storage, NULL) == NC_NOERR && storage == NC_CHUNKED;
    for (int k = 0; k < v->ndim; k++)
        *may &= !brc_netcdf_dim_at(out, v->dims[k])->unlimited;
    if (!*may)
        return BRC_OK;
    BRC_TRY(brc_new_array((void **)&memory, 3, type->file_size + type->here_size, err));
    uint8_t *theirs = memory, *ours = theirs + type->file_size;
    brc_netcdf_lay_out(type, ours, fill->data, ours + type->file_size);
    *may = nc_inq_var_fill(group, v->id, &no_fill, theirs) == NC_NOERR && !no_fill &&
           memcmp(theirs, ours, type->file_size) == 0;
    free(memory);
    return BRC_OK;
}

int brc_netcdf_begin(void *state, const brc_node_out *array, int *all, brc_error *err)
{
    brc_netcdf_out *out = state;
    int gaps;

    out->array = array;
    out->filled = brc_netcdf_ragged_of(out, array);
    *all = 1;
    if (out->filled)
        return BRC_OK;
    out->data.var = find_var(out, array);
    if (!out->data.var)
        return brc_fail(err, BRC_EINTERNAL, "%s was not planned", array->path);
    BRC_TRY(
        brc_netcdf_type_out(&out->data.type, &out->types, array->meta->type, out->classic, err));
    BRC_TRY(may_leave_gaps(&gaps, out, err));
    *all = !gaps;
    return BRC_OK;
}

int brc_netcdf_end(void *state, brc_error *err)
{
    brc_netcdf_out *out = state;
    if (out->filled)
        return brc_netcdf_end_ragged(out->filled, out->array, err);
    brc_netcdf_type_free(&out->data.type);
    out->data.var = NULL;
    return BRC_OK;
}
