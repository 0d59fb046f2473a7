#include "concat.h"

#include <stdlib.h>
#include <string.h>

#include "../nd/cut.h"
#include "../zarr/array.h"
#include "../zarr/fold.h"

enum { COPIED_AT_A_TIME = 32 << 20 };

/* `work` becomes what is wanted; `source` has theirs as it is. */
typedef struct laying_out {
    brc_session *work, *source;
    const brc_oid *tip;
} laying_out;

static int set_length(brc_array *a, int axis, uint64_t length, brc_error *err)
{
    uint64_t shape[BRC_MAX_NDIM];
    memcpy(shape, a->meta.shape, sizeof(uint64_t) * (size_t)a->meta.ndim);
    shape[axis] = length;
    return brc_array_resize(a, shape, err);
}

/* The array as another version has it, in place of the session's own. */
static int put_version(brc_array *a, const brc_entry *entry, brc_error *err)
{
    brc_json *doc = NULL;
    BRC_TRY(brc_array_begin(a, err));
    int rc = brc_entry_doc(brc_array_store(a), entry, &doc, err);
    if (rc == BRC_OK)
        rc = brc_array_put_entry(a, doc, &entry->map, err);
    brc_json_free(doc);
    return brc_array_end(a, rc, err);
}

/* What `from` has from `first` on goes to `to`, `by` further along the axis. */
static int copy_moved(brc_array *to, brc_array *from, int axis, uint64_t first, uint64_t by,
                      brc_error *err)
{
    brc_cut cut;
    brc_sel sel = BRC_SEL_INIT;
    brc_sel_all(&sel, from);
    sel.count[axis] -= first;
    sel.start[axis] = first + by;
    brc_cut_chunks(&cut, &sel, to->meta.grid.chunk, to->meta.type->item_size, COPIED_AT_A_TIME);
    while (brc_cut_next(&cut)) {
        brc_buf elements = BRC_BUF_INIT;
        brc_sel was = cut.sel;
        was.start[axis] -= by;
        int rc = brc_array_read_elements(from, &was, &elements, err);
        if (rc == BRC_OK)
            rc = brc_array_write(to, &cut.sel, elements.data, elements.len, err);
        brc_buf_dispose(&elements);
        BRC_TRY(rc);
    }
    return BRC_OK;
}

/* The entry that a commit of the session's changes would have; the changes go. */
static int take_entry(const laying_out *l, const char *path, brc_entry *out, brc_error *err)
{
    brc_store *store = l->work->repo->store;
    brc_folded folded = {0};
    int rc;
    do
        BRC_GO(brc_fold_ahead(l->work, 1, &folded, err));
    while (!folded.has_root);
    BRC_GO(brc_store_begin_read(store, err));
    rc = brc_snapshot_find(store, &folded.root, path, out, err);
    brc_store_end_read(store);
    if (rc == BRC_OK && (!l->work->draft.has_tip || brc_oid_cmp(&l->work->draft.tip, l->tip) != 0))
        rc = brc_fail(err, BRC_ESTALE, "%s: branch '%s' has moved while it was merged: nothing was "
                                       "changed; merge again",
                      brc_store_path(store), l->work->branch);
    if (rc == BRC_OK)
        rc = brc_session_discard(l->work, err);
done:
    brc_folded_dispose(&folded);
    return rc;
}

static int lay_ours_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    brc_array *a;
    BRC_TRY(brc_array_open(&a, l->work, c->path, err));
    int rc = set_length(a, c->axis, c->base + c->ours + c->theirs, err);
    brc_array_free(a);
    return rc < 0 ? rc : take_entry(l, c->path, &c->laid_out[0], err);
}

static int lay_theirs_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    brc_array *a = NULL, *from = NULL;
    int rc;
    BRC_GO(brc_array_open(&from, l->source, c->path, err));
    BRC_GO(put_version(from, &c->side[1], err));
    BRC_GO(brc_array_open(&a, l->work, c->path, err));
    BRC_GO(put_version(a, &c->side[1], err));
    /* what is cut off becomes fill value */
    BRC_GO(set_length(a, c->axis, c->base, err));
    BRC_GO(set_length(a, c->axis, c->base + c->ours + c->theirs, err));
    BRC_GO(copy_moved(a, from, c->axis, c->base, c->ours, err));
done:
    brc_array_free(a);
    brc_array_free(from);
    return rc < 0 ? rc : take_entry(l, c->path, &c->laid_out[1], err);
}

static int lay_out(const laying_out *l, brc_concat *c, brc_error *err)
{
    BRC_TRY(lay_ours_out(l, c, err));
    BRC_TRY(lay_theirs_out(l, c, err));
    for (int i = 0; i < 2; i++)
        c->laid_out[i].storage = c->side[i].storage;
    return BRC_OK;
}

int brc_concat_lay_out(brc_concat_list *list, breccia *repo, const char *branch, const brc_oid *tip,
                       brc_error *err)
{
    laying_out l = {.tip = tip};
    int rc;
    BRC_GO(brc_session_open(&l.work, repo, branch, BRC_SESSION_PRIVATE, err));
    BRC_GO(brc_session_open(&l.source, repo, branch, BRC_SESSION_PRIVATE, err));
    for (size_t i = 0; i < list->n && rc == BRC_OK; i++)
        rc = lay_out(&l, &list->items[i], err);
done:
    for (int i = 0; i < 2; i++) {
        brc_session *s = i == 0 ? l.work : l.source;
        int dropped = s != NULL ? brc_session_discard(s, rc == BRC_OK ? err : NULL) : BRC_OK;
        rc = rc == BRC_OK ? dropped : rc;
        brc_session_free(s);
    }
    return rc;
}
