/* Changing what an array is: its shape, its codecs, its past. */
#include <stdlib.h>
#include <string.h>

#include "array_shrink.h"
#include "bulk_write.h"
#include "fold.h"

/* ---- shape -------------------------------- */

static int set_shape(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_json *doc;
    BRC_TRY(brc_entry_doc(brc_array_store(a), &a->entry, &doc, err));
    int rc = brc_meta_set_shape(doc, a->meta.ndim, shape, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, NULL, err);
    brc_json_free(doc);
    return rc;
}

/* What a new shape keeps, and how many chunks that is along each axis. */
static int plan_resize(const brc_array *a, const uint64_t *shape, uint64_t *keep, uint64_t *count,
                       int *shrinks, brc_error *err)
{
    const brc_grid *grid = &a->meta.grid;
    int same = 1;
    *shrinks = 0;
    for (int i = 0; i < a->meta.ndim; i++) {
        if (shape[i] > INT64_MAX)
            return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
        *shrinks |= shape[i] < a->meta.shape[i];
        same &= shape[i] == a->meta.shape[i];
        keep[i] = shape[i] < a->meta.shape[i] ? shape[i] : a->meta.shape[i];
    }
    int rc = brc_grid_can_hold(grid, shape, err);
    if (rc < 0) {
        brc_context(err, "%s", a->path);
        return rc;
    }
    for (int i = 0; i < a->meta.ndim; i++)
        count[i] = keep[i] > 0 ? brc_grid_find(grid, i, keep[i] - 1) + 1 : 0;
    return !same;
}

/* Within a change. */
static int resize_array(brc_array *a, const uint64_t *shape, brc_error *err)
{
    brc_store *store = brc_array_store(a);
    uint64_t keep[BRC_MAX_NDIM], count[BRC_MAX_NDIM];
    int shrinks;
    if (brc_meta_must_encode(&a->meta, err) < 0) {
        brc_context(err, "%s cannot be resized here", a->path);
        return BRC_EUNSUPPORTED;
    }
    int differs = plan_resize(a, shape, keep, count, &shrinks, err);
    if (differs <= 0)
        return differs;
    if (shrinks) {
        brc_oid map;
        BRC_TRY(brc_bulk_check_none(a->session, "no array can be cut", err));
        BRC_TRY(brc_fold_chunks(store, &a->entry, &a->stack, &map, err));
        BRC_TRY(brc_chunks_drop_outside(store, a->meta.ndim, count, &map, err));
        BRC_TRY(brc_draft_chunk_clear_all(store, a->row, err));
        BRC_TRY(brc_array_put_entry(a, NULL, &map, err));
    } else {
        BRC_TRY(brc_array_drop_beyond(a, shape, err));
    }
    BRC_TRY(brc_array_clean_edges(a, keep, shape, err));
    return set_shape(a, shape, err);
}

int brc_array_resize(brc_array *a, const uint64_t *shape, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, resize_array(a, shape, err), err);
}

static int append_elements(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                           brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM], before;
    brc_sel sel = BRC_SEL_INIT;
    if (axis < 0 || axis >= a->meta.ndim)
        return brc_fail(err, BRC_EINVAL, "%s has no axis %d: it has %d", a->path, axis,
                        a->meta.ndim);
    memcpy(shape, a->meta.shape, sizeof(shape));
    before = shape[axis];
    if (!brc_add_u64(before, count, &shape[axis]))
        return brc_fail(err, BRC_ELIMIT, "%s: an extent is larger than 2^63-1", a->path);
    BRC_TRY(resize_array(a, shape, err));
    brc_sel_all(&sel, a);
    sel.start[axis] = before;
    sel.count[axis] = count;
    return brc_array_write(a, &sel, data, len, err);
}

int brc_array_append(brc_array *a, int axis, uint64_t count, const void *data, size_t len,
                     brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, append_elements(a, axis, count, data, len, err), err);
}

/* ---- as it was -------------------------------- */

static int check_same_form(const brc_array *a, const brc_array *then, const brc_sel *sel,
                           brc_error *err)
{
    if (strcmp(a->meta.dtype, then->meta.dtype) != 0 || a->meta.ndim != then->meta.ndim)
        return brc_fail(err, BRC_EINVAL,
                        "%s had a different data type or number of dimensions then: restore all of "
                        "it",
                        a->path);
    int rc = brc_sel_check(sel, then->meta.ndim, then->meta.shape, err);
    if (rc < 0)
        brc_context(err, "%s had a different shape then", a->path);
    return rc;
}

static int restore_region(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    brc_session *s = NULL;
    brc_array *then = NULL;
    brc_sel all = BRC_SEL_INIT;
    int rc;
    if (sel == NULL) {
        brc_sel_all(&all, a);
        sel = &all;
    }
    BRC_GO(brc_session_open(&s, a->session->repo, rev != NULL ? rev : a->session->branch,
                            BRC_SESSION_AT, err));
    BRC_GO(brc_array_open(&then, s, a->path, err));
    BRC_GO(check_same_form(a, then, sel, err));
    BRC_GO(brc_array_can_write(a, err));
    rc = brc_array_recut(a, then, sel, err);
done:
    brc_array_free(then);
    brc_session_free(s);
    return rc;
}

int brc_array_restore(brc_array *a, const brc_sel *sel, const char *rev, brc_error *err)
{
    BRC_TRY(brc_array_begin(a, err));
    return brc_array_end(a, restore_region(a, sel, rev, err), err);
}
