/* Arrays of other formats in and out, see container.h. */
#include "container.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../history/snapshot.h"
#include "../zarr/transfer.h"

#define BOX_BYTES ((uint64_t)64 << 20)
/* What an element of variable length is taken to have, for the size of a box. */
#define ELEMENT_GUESS 64

/* ---- boxes of whole chunks -------------------------------- */

typedef struct box_walk {
    brc_sel box; /* the one now */
    int ndim, begun;
    const uint64_t *shape;
    uint64_t extent[BRC_MAX_NDIM]; /* of all boxes but those at the edge */
} box_walk;

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t out;
    return brc_mul_u64(a, b, &out) ? out : UINT64_MAX;
}

/* One chunk, and from the last axis on as many chunks as the memory allows: along
 * an axis only where those behind it are covered whole. */
static void boxes_start(box_walk *w, const brc_array_info *info)
{
    uint64_t bytes = info->item_size ? info->item_size : ELEMENT_GUESS;

    memset(w, 0, sizeof(*w));
    w->ndim = info->ndim;
    w->shape = info->shape;
    for (int k = 0; k < w->ndim; k++) {
        w->extent[k] = info->chunk[k] < info->shape[k] ? info->chunk[k] : info->shape[k];
        if (w->extent[k] == 0)
            w->extent[k] = 1;
        bytes = times(bytes, w->extent[k]);
    }
    for (int k = w->ndim; k-- > 0;) {
        uint64_t fit = bytes < BOX_BYTES ? BOX_BYTES / bytes : 1;
        uint64_t chunks = w->shape[k] / w->extent[k] + (w->shape[k] % w->extent[k] != 0);
        uint64_t n = fit < chunks ? fit : chunks;
        if (n > 1) {
            bytes = times(bytes, n);
            w->extent[k] = times(w->extent[k], n);
        }
        if (n < chunks)
            break;
    }
}

/* 1: w->box is the next one. */
static int boxes_next(box_walk *w)
{
    int k = w->ndim;

    if (!w->begun) {
        w->begun = 1;
        w->box.ndim = w->ndim;
        for (k = 0; k < w->ndim; k++)
            if (w->shape[k] == 0)
                return 0;
    } else {
        while (k-- > 0 && w->shape[k] - w->box.start[k] <= w->extent[k])
            w->box.start[k] = 0;
        if (k < 0)
            return 0;
        w->box.start[k] += w->extent[k];
    }
    for (k = 0; k < w->ndim; k++) {
        uint64_t left = w->shape[k] - w->box.start[k];
        w->box.count[k] = left < w->extent[k] ? left : w->extent[k];
        w->box.step[k] = 1;
    }
    return 1;
}

/* Bytes of the box; a box is no larger than memory, or it is refused. */
static int box_bytes(size_t *out, const box_walk *w, const brc_array_info *info, brc_error *err)
{
    uint64_t bytes;
    if (!brc_shape_bytes(w->ndim, w->box.count, info->item_size, &bytes) ||
        !brc_to_size(bytes, out))
        return brc_fail(err, BRC_ELIMIT, "%s: a chunk has more bytes than memory can", info->path);
    return BRC_OK;
}

/* ---- import -------------------------------- */

static int create_array(brc_array **out, brc_session *s, const brc_container_array *from,
                        const brc_xfer_opts *opts, brc_error *err)
{
    brc_array_spec spec = BRC_ARRAY_SPEC_INIT;
    spec.ndim = from->ndim;
    spec.shape = from->shape;
    spec.dtype = from->dtype;
    spec.chunk = from->chunked ? from->chunk : NULL;
    spec.fill = from->fill;
    spec.attrs_json = from->attrs_json;
    spec.dimension_names = from->names;
    if (opts && opts->chunk) {
        if (opts->nchunk != from->ndim)
            return brc_fail(err, BRC_EINVAL, "%s has %d axes, the chunk shape %d", from->label,
                            from->ndim, opts->nchunk);
        spec.chunk = opts->chunk;
    }
    spec.codecs_json = opts ? opts->codecs_json : NULL;
    int rc = brc_array_create(out, s, from->path, &spec, err);
    if (rc < 0)
        brc_context(err, "%s", from->label);
    return rc;
}

static int take_fixed(brc_array *a, const brc_container_array *from, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    size_t len = 0;
    void *data = NULL;
    box_walk walk;
    int rc = BRC_OK;

    boxes_start(&walk, info);
    while (boxes_next(&walk)) {
        BRC_GO(box_bytes(&len, &walk, info, err));
        if (!data) /* the first box is the largest */
            BRC_GO(brc_new_big(&data, len, err));
        BRC_GO(from->read(from->ctx, &walk.box, data, len, err));
        BRC_GO(brc_array_write(a, &walk.box, data, len, err));
    }
done:
    free(data);
    return rc;
}

static int take_variable(brc_array *a, const brc_container_array *from, brc_error *err)
{
    brc_buf data = BRC_BUF_INIT;
    box_walk walk;
    int rc = BRC_OK;

    boxes_start(&walk, brc_array_describe(a));
    while (boxes_next(&walk)) {
        data.len = 0;
        BRC_GO(from->read_elements(from->ctx, &walk.box, &data, err));
        BRC_GO(brc_array_write(a, &walk.box, data.data, data.len, err));
    }
done:
    brc_buf_dispose(&data);
    return rc;
}

int brc_container_import(brc_session *s, const brc_container_array *from, const brc_xfer_opts *opts,
                         brc_error *err)
{
    brc_array *a;
    BRC_TRY(create_array(&a, s, from, opts, err));
    int rc =
        brc_array_describe(a)->item_size ? take_fixed(a, from, err) : take_variable(a, from, err);
    brc_array_free(a);
    return rc;
}

int brc_container_name_check(const char *label, const char *name, brc_error *err)
{
    int rc = brc_name_check(name, strlen(name), err);
    if (rc < 0)
        brc_context(err, "%s", label);
    return rc;
}

/* ---- export -------------------------------- */

static int give_fixed(brc_array *a, const brc_container_sink *sink, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    size_t len = 0;
    void *data = NULL;
    box_walk walk;
    int rc = BRC_OK;

    boxes_start(&walk, info);
    while (boxes_next(&walk)) {
        BRC_GO(box_bytes(&len, &walk, info, err));
        if (!data) /* the first box is the largest */
            BRC_GO(brc_new_big(&data, len, err));
        BRC_GO(brc_array_read(a, &walk.box, data, len, err));
        BRC_GO(sink->put(sink->ctx, &walk.box, data, len, err));
    }
done:
    free(data);
    return rc;
}

static int give_variable(brc_array *a, const brc_container_sink *sink, brc_error *err)
{
    brc_buf data = BRC_BUF_INIT;
    box_walk walk;
    int rc = BRC_OK;

    boxes_start(&walk, brc_array_describe(a));
    while (boxes_next(&walk)) {
        data.len = 0;
        BRC_GO(brc_array_read_elements(a, &walk.box, &data, err));
        BRC_GO(sink->put(sink->ctx, &walk.box, data.data, data.len, err));
    }
done:
    brc_buf_dispose(&data);
    return rc;
}

int brc_container_export(brc_array *a, const brc_container_sink *sink, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    if (!info->readable)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s cannot be read: %s", info->path, info->why);
    return info->item_size ? give_fixed(a, sink, err) : give_variable(a, sink, err);
}
