/* The nodes under a path, those of a source that stay out, and how many bytes arrays are. */
#include <string.h>

#include "../base/iter.h"
#include "../base/node_path.h"
#include "../nd/shape.h"
#include "xfer.h"

static int visit_nodes(brc_session *s, const char *path, brc_node_fn each, void *ctx,
                       brc_error *err)
{
    brc_iter *it = NULL;
    const brc_node *node;
    size_t base = 0, n = 0;
    int rc;

    BRC_GO(brc_list(&it, s, path, BRC_LIST_RECURSE, err));
    while ((rc = brc_list_next(it, &node, err)) > 0) {
        if (n++ == 0)
            base = strlen(node->path);
        const char *inner = node->path + base;
        if (each)
            BRC_GO(each(ctx, node->path, inner + (*inner == '/'), node->kind, err));
    }
done:
    brc_iter_free(it);
    return rc;
}

int brc_nodes_each(brc_session *s, const char *path, brc_node_fn each, void *ctx, brc_error *err)
{
    BRC_TRY(visit_nodes(s, path, NULL, NULL, err));
    return visit_nodes(s, path, each, ctx, err);
}

void brc_add_array_bytes(uint64_t *sum, int ndim, const uint64_t *shape, size_t item)
{
    uint64_t bytes, more;
    if (brc_shape_bytes(ndim, shape, item > 0 ? item : 1, &bytes) &&
        brc_add_u64(*sum, bytes, &more))
        *sum = more;
}

int brc_is_excluded(const brc_xfer_opts *opts, const char *path, size_t len)
{
    for (size_t i = 0; opts && i < opts->nexclude; i++)
        if (brc_path_is_same(path, len, opts->exclude[i])) {
            if (opts->excluded)
                opts->excluded[i] = 1;
            return 1;
        }
    return 0;
}
