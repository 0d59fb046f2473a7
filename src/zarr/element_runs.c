#include "element_runs.h"

#include <stdlib.h>
#include <string.h>

#include "region.h"

/* Elements of variable length may be far longer than they are taken to be. */
#define VARIABLE_BUDGET ((uint64_t)4 << 20)

int brc_element_runs_start(brc_element_runs *runs, brc_array *a, const brc_sel *sel, brc_error *err)
{
    brc_region r;
    memset(runs, 0, sizeof(*runs));
    BRC_TRY(brc_array_begin_read(a, err));
    int rc = brc_array_freeze(&runs->a, a, err);
    if (rc == BRC_OK)
        rc = brc_region_init(&r, runs->a, sel, NULL, NULL, err);
    if (rc == BRC_OK) {
        runs->item = a->meta.type->item_size;
        brc_cut_runs(&runs->cut, &r.sel, a->meta.grid.chunk, runs->item, 0,
                     runs->item > 0 ? BRC_SLAB_BYTES : VARIABLE_BUDGET);
    }
    brc_array_end_read(a);
    return rc;
}

int brc_element_runs_next(brc_element_runs *runs, brc_span *out, brc_error *err)
{
    if (!brc_cut_next(&runs->cut))
        return 0;
    if (runs->item == 0) {
        runs->elements.len = 0;
        BRC_TRY(brc_array_read_elements(runs->a, &runs->cut.sel, &runs->elements, err));
        *out = (brc_span){runs->elements.data, runs->elements.len};
        return 1;
    }
    const size_t len = (size_t)runs->cut.elements * runs->item;
    if (runs->data == NULL)
        BRC_TRY(brc_new_big((void **)&runs->data, (size_t)runs->cut.most * runs->item, err));
    BRC_TRY(brc_array_read(runs->a, &runs->cut.sel, runs->data, len, err));
    *out = (brc_span){runs->data, len};
    return 1;
}

void brc_element_runs_end(brc_element_runs *runs)
{
    brc_array_free(runs->a);
    free(runs->data);
    brc_buf_dispose(&runs->elements);
}

/* ---- the public function -------------------------------- */

int brc_array_stream(brc_array *a, const brc_sel *sel,
                     int (*put)(void *ctx, const void *data, size_t len), void *ctx, brc_error *err)
{
    brc_element_runs runs;
    brc_span run;
    int rc;
    if (a == NULL || put == NULL)
        return brc_fail(err, BRC_EINVAL, "an array and a function are needed");
    rc = brc_element_runs_start(&runs, a, sel, err);
    while (rc >= 0 && (rc = brc_element_runs_next(&runs, &run, err)) > 0) {
        if (put(ctx, run.data, run.len) == 0)
            continue;
        rc = brc_fail(err, BRC_EINTERRUPT, "stopped on request");
        break;
    }
    brc_element_runs_end(&runs);
    return rc;
}
