/* Writing .npy, see npy_out.h. */
#include "npy_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../base/fd.h"
#include "../../zarr/transfer.h"
#include "../dest.h"
#include "../elements.h"
#include "npy_header.h"

static int write_header(brc_npy_out *o, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], bytes;
    int ndim = 0;
    for (int i = 0; i < o->sel.ndim; i++)
        if (!(o->sel.drop >> i & 1))
            shape[ndim++] = o->sel.count[i];
    BRC_TRY(brc_npy_header_write(&o->header, o->type->npy, ndim, shape, err));
    if (!brc_shape_bytes(ndim, shape, o->type->item_size, &bytes) ||
        bytes > INT64_MAX - o->header.len)
        return brc_fail(err, BRC_ELIMIT, "the selection has more bytes than a file can hold");
    o->size = o->header.len + bytes;
    return BRC_OK;
}

int brc_npy_out_start(brc_npy_out *out, brc_array *a, const brc_sel *sel, const brc_registry *reg,
                      brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    int rc;

    memset(out, 0, sizeof(*out));
    BRC_GO(brc_array_dtype_open(&out->type, reg, info, err));
    if (!out->type->npy || out->type->item_size == 0) {
        rc = brc_fail(err, BRC_EUNSUPPORTED, "%s: NumPy's .npy has no data type like %s",
                      info->path, info->dtype);
        goto done;
    }
    if (sel)
        BRC_GO(brc_sel_check(sel, info->ndim, info->shape, err));
    if (sel)
        out->sel = *sel;
    else
        brc_sel_of_shape(&out->sel, info->ndim, info->shape);
    BRC_GO(write_header(out, err));
    rc = brc_element_runs_start(&out->runs, a, &out->sel, err);
done:
    if (rc < 0)
        brc_npy_out_stop(out);
    return rc;
}

int brc_npy_out_next(brc_npy_out *o, brc_span *piece, brc_error *err)
{
    if (!o->begun) {
        o->begun = 1;
        *piece = (brc_span){ o->header.data, o->header.len };
        return 1;
    }
    int more = brc_element_runs_next(&o->runs, piece, err);
    if (more > 0)
        brc_dtype_native(o->type, o->runs.data, piece->len); /* back to little-endian */
    return more;
}

void brc_npy_out_stop(brc_npy_out *o)
{
    brc_dtype_free(o->type);
    brc_buf_dispose(&o->header);
    brc_element_runs_end(&o->runs);
    memset(o, 0, sizeof(*o));
}

static int write_pieces(brc_npy_out *o, int fd, const char *name, brc_error *err)
{
    brc_span piece;
    int more;
    while ((more = brc_npy_out_next(o, &piece, err)) > 0)
        BRC_TRY(brc_fd_write(fd, piece.data, piece.len, name, err));
    return more;
}

static int write_file(brc_npy_out *o, const brc_dest *dest, brc_error *err)
{
    const char *file = dest->in_place ? dest->path : dest->temp;
    int fd = open(file, O_WRONLY | O_CLOEXEC | (dest->in_place ? O_TRUNC : O_CREAT | O_EXCL), 0666);
    if (fd < 0)
        return brc_fail_os(err, errno, "cannot make", file);
    int rc = write_pieces(o, fd, file, err);
    if (close(fd) < 0 && rc >= 0)
        rc = brc_fail_os(err, errno, "cannot write", file);
    return rc;
}

int brc_npy_save(brc_array *a, const brc_sel *sel, const char *file, int replace, brc_error *err)
{
    const brc_registry *reg = brc_session_registry(brc_array_session(a));
    brc_dest dest = { 0 };
    brc_npy_out o;

    BRC_TRY(brc_npy_out_start(&o, a, sel, reg, err));
    int rc;
    BRC_GO(brc_dest_open(&dest, brc_array_session(a), file, replace, err));
    BRC_GO(write_file(&o, &dest, err));
    BRC_GO(brc_dest_finish(&dest, replace, err));
done:
    brc_dest_close(&dest);
    brc_npy_out_stop(&o);
    return rc;
}
