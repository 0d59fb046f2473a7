/* Documents in one piece of memory, sorted by their nodes' paths. */
#include "stream_docs.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/node_path.h"

static int keep_text(brc_stream_docs *docs, const void *text, size_t len, const char **out,
                     brc_error *err)
{
    char *to = brc_arena_take(&docs->arena, len + 1);
    if (!to)
        return brc_nomem(err);
    if (len > 0)
        memcpy(to, text, len);
    to[len] = '\0';
    *out = to;
    return BRC_OK;
}

int brc_stream_docs_add(brc_stream_docs *docs, const char *inner, size_t inner_len,
                        const brc_buf *text, brc_error *err)
{
    brc_stream_doc doc = { .len = text->len };
    BRC_TRY(brc_grow_array(&docs->items, &docs->cap, docs->n + 1, sizeof(doc), err));
    BRC_TRY(keep_text(docs, inner, inner_len, &doc.inner, err));
    BRC_TRY(keep_text(docs, text->data, text->len, &doc.text, err));
    ((brc_stream_doc *)docs->items)[docs->n++] = doc;
    docs->bytes += sizeof(doc) + inner_len + text->len;
    return BRC_OK;
}

static int doc_order(const void *a, const void *b)
{
    return brc_path_order(((const brc_stream_doc *)a)->inner, ((const brc_stream_doc *)b)->inner);
}

int brc_stream_docs_sort(brc_stream_docs *docs, brc_error *err)
{
    const brc_stream_doc *items = docs->items;
    if (docs->n > 1)
        qsort(docs->items, docs->n, sizeof(*items), doc_order);
    for (size_t i = 1; i < docs->n; i++)
        if (strcmp(items[i - 1].inner, items[i].inner) == 0)
            return brc_fail(err, BRC_EINVAL, "the node '%.300s' has two documents", items[i].inner);
    return BRC_OK;
}

void brc_stream_docs_dispose(brc_stream_docs *docs)
{
    brc_arena_dispose(&docs->arena);
    free(docs->items);
    memset(docs, 0, sizeof(*docs));
}
