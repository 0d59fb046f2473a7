/* Zarr v2's documents of a node: those of an export, and those of a view of the keys. */
#include "zarr2_view.h"

#include "../../nd/shape.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "zarr2.h"

/* Sets *gaps to 1 if a chunk of the array is absent. */
static int find_gaps(int *gaps, brc_session *s, const char *path, brc_error *err)
{
    uint64_t chunks, bytes;
    brc_array *a;

    BRC_TRY(brc_array_open(&a, s, path, err));
    const brc_array_info *info = brc_array_describe(a);
    int rc = brc_array_stat(&chunks, &bytes, a, err);
    *gaps = rc == BRC_OK && chunks < brc_shape_count(info->ndim, info->grid);
    brc_array_free(a);
    return rc;
}

int brc_zarr2_documents(brc_json **own, brc_json **zattrs, brc_session *s, const char *path,
                        const brc_json *doc, int kind, brc_error *err)
{
    int gaps = 0;

    if (kind != BRC_ARRAY)
        return brc_zarr2_group_write(own, zattrs, doc, err);
    if (brc_meta_lacks_fill(doc))
        BRC_TRY(find_gaps(&gaps, s, path, err));
    return brc_zarr2_array_write(own, zattrs, doc, gaps, brc_session_registry(s), err);
}

int brc_node_json_v2(brc_buf *out, brc_buf *attrs, brc_session *s, const char *path, brc_error *err)
{
    brc_json *doc = NULL, *own = NULL, *zattrs = NULL;
    int rc;

    BRC_GO(brc_node_doc(&doc, s, path, err));
    const int is_array = brc_json_is(brc_json_member(doc, "node_type"), "array");
    rc = brc_zarr2_documents(&own, &zattrs, s, path, doc, is_array ? BRC_ARRAY : BRC_GROUP, err);
    if (rc < 0) {
        brc_context(err, "%s", path);
        goto done;
    }
    BRC_GO(brc_json_write(out, own, 0, err));
    if (zattrs != NULL)
        BRC_GO(brc_json_write(attrs, zattrs, 0, err));
    BRC_GO(brc_buf_terminate(out, err));
    rc = brc_buf_terminate(attrs, err);
done:
    brc_json_free(zattrs);
    brc_json_free(own);
    brc_json_free(doc);
    return rc;
}

int brc_chunk_key(brc_buf *out, const brc_array *a, const uint64_t *index, brc_error *err)
{
    BRC_TRY(brc_chunk_key_format(a, index, out, err));
    return brc_buf_terminate(out, err);
}
