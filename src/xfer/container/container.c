/* Arrays of other formats in and out, see container.h. */
#include "container.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../history/snapshot.h"
#include "../../zarr/array.h"
#include "../../zarr/meta.h"
#include "../../zarr/transfer.h"

/* The libraries cannot be stopped in the middle of a box, nor said to be half through it. */
#define BOX_BYTES ((uint64_t)4 << 20)
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
static int box_bytes(size_t *out, const brc_sel *box, const brc_array_info *info, brc_error *err)
{
    uint64_t bytes;
    if (!brc_shape_bytes(box->ndim, box->count, info->item_size, &bytes) ||
        !brc_to_size(bytes, out))
        return brc_fail(err, BRC_ELIMIT, "%s: a chunk has more bytes than memory can", info->path);
    return BRC_OK;
}

/* ---- import -------------------------------- */

/* The array with a document that has notes. */
static int create_noted(brc_array **out, brc_session *s, const brc_container_array *from,
                        const brc_array_spec *spec, brc_error *err)
{
    brc_json *doc = NULL, *note = NULL;
    int rc;

    BRC_GO(brc_meta_new_array(&doc, brc_session_registry(s), spec, err));
    if (from->note)
        BRC_GO(brc_json_clone(&note, from->note, err));
    if (from->note)
        BRC_GO(brc_json_set(doc, from->note_name, note, err));
    if (from->lacks_fill)
        BRC_GO(brc_meta_zarr2_note(doc, "fill_value", brc_json_new_null(), err));
    BRC_GO(brc_array_create_doc(out, s, from->path, doc, err));
done:
    brc_json_free(doc);
    return rc;
}

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
    int rc = from->note || from->lacks_fill ? create_noted(out, s, from, &spec, err)
                                            : brc_array_create(out, s, from->path, &spec, err);
    if (rc < 0)
        brc_context(err, "%s", from->label);
    return rc;
}

typedef struct import_walk {
    const brc_container_array *from;
    box_walk boxes;
} import_walk;

/* 1: *box is the next one to read. */
static int next_to_read(import_walk *w, brc_sel *box, brc_error *err)
{
    if (w->from->next)
        return w->from->next(w->from->ctx, box, err);
    if (!boxes_next(&w->boxes))
        return 0;
    *box = w->boxes.box;
    return 1;
}

static int take_fixed(brc_array *a, const brc_container_array *from, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    size_t len = 0, room = 0;
    void *data = NULL;
    import_walk walk = { .from = from };
    brc_sel box;
    int rc;

    boxes_start(&walk.boxes, info);
    while ((rc = next_to_read(&walk, &box, err)) > 0) {
        BRC_GO(box_bytes(&len, &box, info, err));
        if (len > room) { /* most often the first box is the largest */
            free(data);
            data = NULL;
            BRC_GO(brc_new_big(&data, len, err));
            room = len;
        }
        BRC_GO(from->read(from->ctx, &box, data, len, err));
        BRC_GO(brc_array_write(a, &box, data, len, err));
    }
done:
    free(data);
    return rc;
}

static int take_variable(brc_array *a, const brc_container_array *from, brc_error *err)
{
    brc_buf data = BRC_BUF_INIT;
    import_walk walk = { .from = from };
    brc_sel box;
    int rc;

    boxes_start(&walk.boxes, brc_array_describe(a));
    while ((rc = next_to_read(&walk, &box, err)) > 0) {
        data.len = 0;
        BRC_GO(from->read_elements(from->ctx, &box, &data, err));
        BRC_GO(brc_array_write(a, &box, data.data, data.len, err));
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

/* The boxes to write: all of them, or of an array that stores few of its chunks these. */
typedef struct export_walk {
    brc_array *array;
    box_walk boxes;
    int stored_only;
    uint64_t *chunks; /* indices of stored chunks */
    size_t n, cap, at;
} export_walk;

static int take_stored(void *ctx, const uint64_t *index, const brc_oid *id, brc_error *err)
{
    export_walk *w = ctx;
    size_t ndim = (size_t)w->boxes.ndim;
    (void)id;
    BRC_TRY(brc_grow_array((void **)&w->chunks, &w->cap, w->n + 1, ndim * sizeof(*w->chunks), err));
    memcpy(w->chunks + w->n++ * ndim, index, ndim * sizeof(*index));
    return BRC_OK;
}

static int export_start(export_walk *w, brc_array *a, int sparse, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    uint64_t stored, bytes;

    memset(w, 0, sizeof(*w));
    w->array = a;
    boxes_start(&w->boxes, info);
    if (!sparse || info->ndim == 0 || !info->regular)
        return BRC_OK;
    BRC_TRY(brc_array_stat(&stored, &bytes, a, err));
    if (brc_shape_count(info->ndim, info->grid) / 4 <= stored)
        return BRC_OK;
    w->stored_only = 1;
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_each_chunk(a, take_stored, w, err);
    brc_array_end_read(a);
    return rc;
}

/* 1: *box is the next one to write. */
static int next_to_write(export_walk *w, brc_sel *box)
{
    const brc_array_info *info = brc_array_describe(w->array);
    if (!w->stored_only) {
        int more = boxes_next(&w->boxes);
        *box = w->boxes.box;
        return more;
    }
    if (w->at == w->n)
        return 0;
    const uint64_t *index = w->chunks + w->at++ * (size_t)info->ndim;
    memset(box, 0, sizeof(*box));
    box->ndim = info->ndim;
    for (int i = 0; i < info->ndim; i++) {
        box->start[i] = index[i] * info->chunk[i];
        uint64_t left = info->shape[i] - box->start[i];
        box->count[i] = left < info->chunk[i] ? left : info->chunk[i];
        box->step[i] = 1;
    }
    return 1;
}

static int give_fixed(export_walk *w, const brc_container_sink *sink, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(w->array);
    size_t len = 0, room = 0;
    void *data = NULL;
    brc_sel box;
    int rc = BRC_OK;

    while (next_to_write(w, &box)) {
        BRC_GO(box_bytes(&len, &box, info, err));
        if (len > room) {
            free(data);
            data = NULL;
            BRC_GO(brc_new_big(&data, len, err));
            room = len;
        }
        BRC_GO(brc_array_read(w->array, &box, data, len, err));
        BRC_GO(sink->put(sink->ctx, &box, data, len, err));
    }
done:
    free(data);
    return rc;
}

static int give_variable(export_walk *w, const brc_container_sink *sink, brc_error *err)
{
    brc_buf data = BRC_BUF_INIT;
    brc_sel box;
    int rc = BRC_OK;

    while (next_to_write(w, &box)) {
        data.len = 0;
        BRC_GO(brc_array_read_elements(w->array, &box, &data, err));
        BRC_GO(sink->put(sink->ctx, &box, data.data, data.len, err));
    }
done:
    brc_buf_dispose(&data);
    return rc;
}

static int give_array(brc_array *a, const brc_container_sink *sink, int sparse, brc_error *err)
{
    const brc_array_info *info = brc_array_describe(a);
    export_walk walk;
    if (!info->readable)
        return brc_fail(err, BRC_EUNSUPPORTED, "%s cannot be read: %s", info->path, info->why);
    int rc = export_start(&walk, a, sparse, err);
    if (rc == BRC_OK)
        rc = info->item_size ? give_fixed(&walk, sink, err) : give_variable(&walk, sink, err);
    free(walk.chunks);
    return rc;
}

int brc_container_export(brc_array *a, const brc_container_sink *sink, brc_error *err)
{
    return give_array(a, sink, 0, err);
}

int brc_container_export_stored(brc_array *a, const brc_container_sink *sink, brc_error *err)
{
    return give_array(a, sink, 1, err);
}
