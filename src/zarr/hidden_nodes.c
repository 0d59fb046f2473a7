#include "hidden_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/buf.h"
#include "../base/node_path.h"

static int take_hidden(void *ctx, const char *key, const brc_oid *id, brc_error *err)
{
    brc_hidden_nodes *nodes = ctx;
    brc_buf path = BRC_BUF_INIT;
    size_t len;
    int rc;
    if (id != NULL || !brc_document_key(key, &len))
        return BRC_OK;
    BRC_GO(brc_grow_array(&nodes->paths, &nodes->cap, nodes->n + 1, sizeof(char *), err));
    BRC_GO(brc_buf_printf(&path, err, "/%.*s", (int)len, key));
    BRC_GO(brc_buf_take_text(&path, &((char **)nodes->paths)[nodes->n], err));
    nodes->n++;
done:
    brc_buf_dispose(&path);
    return rc;
}

static int hidden_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int brc_hidden_nodes_read(brc_hidden_nodes *out, brc_store *store, int64_t draft, brc_error *err)
{
    memset(out, 0, sizeof(*out));
    int rc = brc_draft_key_page(store, draft, "", NULL, SIZE_MAX >> 1, take_hidden, out, err);
    if (rc < 0)
        brc_hidden_nodes_dispose(out);
    else if (out->n > 1)
        qsort(out->paths, out->n, sizeof(char *), hidden_order);
    return rc;
}

int brc_is_hidden_node(const brc_hidden_nodes *nodes, const char *path)
{
    return nodes->n > 0 &&
           bsearch(&path, nodes->paths, nodes->n, sizeof(char *), hidden_order) != NULL;
}

void brc_hidden_nodes_dispose(brc_hidden_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++)
        free(((char **)nodes->paths)[i]);
    free(nodes->paths);
    memset(nodes, 0, sizeof(*nodes));
}
