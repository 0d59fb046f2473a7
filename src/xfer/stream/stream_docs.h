/* Documents of a stream that wait until they can all become nodes, parents first. */
#ifndef BRC_XFER_STREAM_DOCS_H
#define BRC_XFER_STREAM_DOCS_H

#include "../../base/arena.h"
#include "../../base/buf.h"

/* They wait until there are more bytes of them than this. */
#define BRC_STREAM_DOCS_MOST ((size_t)32 << 20)

typedef struct brc_stream_doc {
    const char *inner; /* the node's path in the stream, "a/b"; "" is its root */
    const char *text;
    size_t len;
} brc_stream_doc;

typedef struct brc_stream_docs {
    brc_arena arena;
    void *items; /* brc_stream_doc[] */
    size_t n, cap, bytes;
} brc_stream_docs;

BRC_MUST_USE int brc_stream_docs_add(brc_stream_docs *docs, const char *inner, size_t inner_len,
                                     const brc_buf *text, brc_error *err);
/* Parents first. BRC_EINVAL if a node has two. */
BRC_MUST_USE int brc_stream_docs_sort(brc_stream_docs *docs, brc_error *err);
void brc_stream_docs_dispose(brc_stream_docs *docs);

#endif
