/* Reading .npy files, and the two public functions for them. */
#include <stdlib.h>
#include <string.h>

#include "../../nd/shape.h"
#include "../../zarr/bulk_write.h"
#include "../../zarr/repo.h"
#include "../../zarr/transfer.h"
#include "npy.h"
#include "npy_header.h"
#include "npy_out.h"

/* *len: of the text that follows. */
static int read_prefix(brc_input *in, uint32_t *len, brc_error *err)
{
    uint8_t prefix[BRC_NPY_MAGIC_LEN + 2], length[4] = { 0 };
    BRC_TRY(brc_input_exact(in, prefix, sizeof(prefix), err));
    if (memcmp(prefix, BRC_NPY_MAGIC, BRC_NPY_MAGIC_LEN) != 0)
        return brc_fail(err, BRC_EINVAL, "%s does not begin like a .npy file", in->name);
    int major = prefix[BRC_NPY_MAGIC_LEN], minor = prefix[BRC_NPY_MAGIC_LEN + 1];
    if (major < 1 || major > 3 || minor != 0)
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "%s is .npy version %d.%d: 1.0, 2.0 and 3.0 can be read", in->name, major,
                        minor);
    BRC_TRY(brc_input_exact(in, length, major == 1 ? 2 : 4, err));
    *len = brc_get_u32le(length);
    if (in->size != BRC_LEN_VARIES && *len > in->size - in->taken)
        return brc_fail(err, BRC_EINVAL, "%s: its header of %lu bytes is longer than the file",
                        in->name, (unsigned long)*len);
    if (*len > BRC_NPY_HEADER_MAX)
        return brc_fail(err, BRC_ELIMIT, "%s: its header of %lu bytes is longer than %lu", in->name,
                        (unsigned long)*len, (unsigned long)BRC_NPY_HEADER_MAX);
    return BRC_OK;
}

static int open_descr(brc_elements *out, const brc_npy_header *h, const brc_registry *reg,
                      brc_error *err)
{
    char *descr = NULL;
    int shown = h->descr_len < 200 ? (int)h->descr_len : 200;
    size_t kind = h->descr_len > 0 && strchr("<>|=", h->descr[0]) ? 1 : 0;

    if (!h->structured && h->descr_len > kind && h->descr[kind] == 'O')
        return brc_fail(err, BRC_EUNSUPPORTED,
                        "its type %.*s is Python objects: pickles are never read", shown, h->descr);
    if ((!h->structured && h->descr_len >= 64) || memchr(h->descr, 0, h->descr_len))
        return brc_fail(err, BRC_EUNSUPPORTED, "NumPy has no data type like %.*s", shown, h->descr);
    BRC_TRY(brc_dup_n(&descr, h->descr, h->descr_len, err));
    int rc = brc_dtype_open_npy(&out->type, &out->big, reg, descr, err);
    free(descr);
    return rc;
}

int brc_npy_open(brc_elements *out, brc_input *in, const brc_registry *reg, brc_error *err)
{
    brc_npy_header header;
    char *text = NULL;
    uint32_t len = 0;

    memset(out, 0, sizeof(*out));
    BRC_TRY(read_prefix(in, &len, err));
    BRC_TRY(brc_new((void **)&text, len, err));
    int rc = brc_input_exact(in, text, len, err);
    if (rc == BRC_OK) {
        rc = brc_npy_header_parse(&header, text, len, err);
        if (rc == BRC_OK)
            rc = open_descr(out, &header, reg, err);
        if (rc < 0)
            brc_context(err, "%s", in->name);
    }
    free(text);
    BRC_TRY(rc);
    out->fortran = header.fortran;
    out->ndim = header.ndim;
    memcpy(out->shape, header.shape, sizeof(out->shape));
    if (out->type->item_size == 0)
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s: its data type has no fixed size", in->name);
    else
        rc = brc_elements_measure(out, in, err);
    if (rc < 0)
        brc_elements_free(out);
    return rc;
}

int brc_array_save_npy(brc_array *a, const brc_sel *sel, const char *file, brc_error *err)
{
    if (!a || !file)
        return brc_fail(err, BRC_EINVAL, "an array and a file's name are needed");
    return brc_npy_save(a, sel, file, 1, err);
}

int brc_array_stream_npy(brc_array *a, const brc_sel *sel,
                         int (*put)(void *ctx, const void *data, size_t len), void *ctx,
                         brc_error *err)
{
    brc_npy_out o;
    brc_span piece;
    int more;

    if (!a || !put)
        return brc_fail(err, BRC_EINVAL, "an array and a function are needed");
    BRC_TRY(brc_npy_out_start(&o, a, sel, brc_session_registry(brc_array_session(a)), err));
    while ((more = brc_npy_out_next(&o, &piece, err)) > 0) {
        if (put(ctx, piece.data, piece.len) == 0)
            continue;
        more = brc_fail(err, BRC_EINTERRUPT, "stopped on request");
        break;
    }
    brc_npy_out_stop(&o);
    return more;
}

/* ---- loading into an array that is there --------------------------------------- */

static int check_type(const brc_array_info *info, const brc_elements *e, const brc_registry *reg,
                      const char *file, brc_error *err)
{
    brc_dtype *type;
    BRC_TRY(brc_array_dtype_open(&type, reg, info, err));
    int same = type->npy && e->type->npy && strcmp(type->npy, e->type->npy) == 0;
    brc_dtype_free(type);
    if (!same)
        return brc_fail(err, BRC_EINVAL, "%s holds %s, the array %s is %s", file, e->type->json,
                        info->path, info->dtype);
    return BRC_OK;
}

static int append_shape_text(brc_buf *out, int ndim, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_buf_byte(out, '(', err));
    for (int i = 0; i < ndim; i++)
        BRC_TRY(
            brc_buf_printf(out, err, "%s%llu", i > 0 ? ", " : "", (unsigned long long)shape[i]));
    return brc_buf_byte(out, ')', err);
}

/* "x.npy has the shape (2, 3), the selection (3, 2)" */
static int wrong_shape(const brc_input *in, const brc_elements *e, const char *between, int ndim,
                       const uint64_t *shape, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(append_shape_text(&text, e->ndim, e->shape, err));
    BRC_GO(brc_buf_printf(&text, err, ", %s ", between));
    BRC_GO(append_shape_text(&text, ndim, shape, err));
    BRC_GO(brc_buf_terminate(&text, err));
    rc = brc_fail(err, BRC_EINVAL, "%s has the shape %s", in->name, (const char *)text.data);
done:
    brc_buf_dispose(&text);
    return rc;
}

static int load_selection(brc_array *a, const brc_sel *sel, const brc_elements *e, brc_input *in,
                          brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    uint64_t shape[BRC_MAX_NDIM];
    brc_sel all = BRC_SEL_INIT;
    int ndim = 0;

    if (!sel) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_TRY(brc_sel_check(sel, info->ndim, info->shape, err));
    for (int i = 0; i < sel->ndim; i++)
        if (!(sel->drop >> i & 1))
            shape[ndim++] = sel->count[i];
    if (ndim != e->ndim || memcmp(shape, e->shape, (size_t)ndim * sizeof(shape[0])) != 0)
        return wrong_shape(in, e, "the selection", ndim, shape, err);
    BRC_TRY(brc_elements_write(a, sel, e, in, err));
    return brc_input_end(in, err);
}

/* Grows the array and fills in what it grew by: the same as brc_array_append(), but
 * without having all the data in memory. */
static int load_append(brc_array *a, int axis, const brc_elements *e, brc_input *in, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    uint64_t shape[BRC_MAX_NDIM];
    int ndim = info->ndim;
    brc_sel sel = BRC_SEL_INIT;

    if (axis >= ndim)
        return brc_fail(err, BRC_EINVAL, "%s has %d axes: there is no axis %d", info->path, ndim,
                        axis);
    memcpy(shape, info->shape, (size_t)ndim * sizeof(shape[0]));
    uint64_t old = shape[axis];
    shape[axis] = e->ndim == ndim ? e->shape[axis] : 0;
    if (ndim != e->ndim || memcmp(shape, e->shape, (size_t)ndim * sizeof(shape[0])) != 0)
        return wrong_shape(in, e, "which cannot be appended to", ndim, info->shape, err);
    if (!brc_add_u64(old, e->shape[axis], &shape[axis]))
        return brc_fail(err, BRC_ELIMIT, "%s cannot grow past 64 bits", info->path);
    BRC_TRY(brc_array_resize(a, shape, err));
    brc_sel_all(&sel, a);
    sel.start[axis] = old;
    sel.count[axis] = e->shape[axis];
    BRC_TRY(brc_elements_write(a, &sel, e, in, err));
    return brc_input_end(in, err);
}

static int load_elements(brc_array *a, const brc_sel *sel, int axis, const brc_elements *e,
                         brc_input *in, brc_error *err)
{
    brc_session *s = brc_array_session(a);
    BRC_TRY(brc_bulk_start(s, err));
    int rc = axis >= 0 ? load_append(a, axis, e, in, err) : load_selection(a, sel, e, in, err);
    rc = brc_bulk_end_with(s, rc, err);
    if (rc < 0 && brc_array_begin_read(a, NULL) == BRC_OK)
        brc_array_end_read(a); /* its description has the old shape again */
    return rc;
}

int brc_array_load_npy(brc_array *a, const brc_sel *sel, int axis, const char *file, brc_error *err)
{
    brc_elements e = { 0 };
    brc_input *in = NULL;
    int rc;

    if (!a || !file)
        return brc_fail(err, BRC_EINVAL, "an array and a file's name are needed");
    const brc_registry *reg = brc_session_registry(brc_array_session(a));
    const breccia *repo = brc_session_repo(brc_array_session(a));
    BRC_GO(brc_check_file(brc_store_path(repo->store), file, err));
    BRC_GO(brc_input_open(&in, file, err));
    BRC_GO(brc_npy_open(&e, in, reg, err));
    BRC_GO(check_type(brc_array_describe(a), &e, reg, file, err));
    BRC_GO(load_elements(a, sel, axis, &e, in, err));
done:
    brc_elements_free(&e);
    brc_input_free(in);
    return rc;
}
