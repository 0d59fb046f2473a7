/* See stream_sources.h. */
#include "stream_sources.h"

#include <string.h>

void brc_stream_sources_init(brc_stream_sources *sources)
{
    memset(sources, 0, sizeof(*sources));
    sources->by_node = (brc_id_table)BRC_ID_TABLE_INIT(sizeof(brc_span));
}

void brc_stream_sources_dispose(brc_stream_sources *sources)
{
    brc_arena_dispose(&sources->arena);
    brc_id_table_dispose(&sources->by_node);
}

brc_oid brc_stream_node_id(const char *inner, size_t len)
{
    return brc_hash_object(BRC_HASH_XXH128, BRC_KIND_DOCUMENT, inner, len);
}

int brc_stream_sources_keep(brc_stream_sources *sources, const char *inner, const brc_json *doc,
                            uint64_t most, brc_error *err)
{
    brc_oid id = brc_stream_node_id(inner, strlen(inner));
    brc_json *copy;
    brc_buf text = BRC_BUF_INIT;
    void *place;
    uint8_t *kept;
    int rc;
    BRC_TRY(brc_json_clone(&copy, doc, err));
    brc_json_remove(copy, "attributes");
    BRC_GO(brc_json_write(&text, copy, err));
    BRC_GO(brc_arena_copy(&sources->arena, text.data, text.len, &kept, err));
    BRC_GO(brc_id_table_add(&sources->by_node, &id, &place, err));
    *(brc_span *)place = (brc_span){ kept, text.len };
    sources->bytes += text.len + 4 * sizeof(brc_oid);
    if (sources->bytes > most)
        rc = brc_fail(err, BRC_ELIMIT,
                      "the documents of its arrays need more than %llu MiB of memory to re-encode "
                      "them: import it in parts",
                      (unsigned long long)(most >> 20));
done:
    brc_json_free(copy);
    brc_buf_dispose(&text);
    return rc;
}

int brc_stream_sources_find(brc_json **out, const brc_stream_sources *sources, const char *inner,
                            brc_error *err)
{
    const brc_oid id = brc_stream_node_id(inner, strlen(inner));
    const brc_span *doc = brc_id_table_find(&sources->by_node, &id);
    if (!doc)
        return brc_fail(err, BRC_EINTERNAL, "the document of %s is lost", inner);
    return brc_json_parse(out, (const char *)doc->data, doc->len, err);
}
