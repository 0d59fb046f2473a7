/* The documents, as they came in a stream, of the arrays whose chunks are encoded anew. */
#ifndef BRC_XFER_STREAM_SOURCES_H
#define BRC_XFER_STREAM_SOURCES_H

#include "../../base/arena.h"
#include "../../base/hash.h"
#include "../../base/id_table.h"
#include "../../base/json.h"

typedef struct brc_stream_sources {
    brc_arena arena;
    size_t bytes;
    brc_id_table by_node; /* as brc_span, by brc_stream_node_id() */
} brc_stream_sources;

void brc_stream_sources_init(brc_stream_sources *sources);
void brc_stream_sources_dispose(brc_stream_sources *sources);
/* Of the node at the first `len` bytes of the path in the stream. */
brc_oid brc_stream_node_id(const char *inner, size_t len);
/* Keeps what is needed to decode the array's chunks; attributes are not. BRC_ELIMIT past `most` bytes of all. */
BRC_MUST_USE int brc_stream_sources_keep(brc_stream_sources *sources, const char *inner, const brc_json *doc,
                                         uint64_t most, brc_error *err);
BRC_MUST_USE int brc_stream_sources_find(brc_json **out, const brc_stream_sources *sources, const char *inner,
                                         brc_error *err);

#endif
