/* From nodes and chunks to members. */
#include "stream_out.h"

#include <stdlib.h>

#include "../../base/name_escape.h"
#include "../../zarr/meta.h"
#include "../../zarr/transfer.h"
#include "../foreign/protocol.h"
#include "../nan_mark.h"
#include "../xfer.h"

typedef struct stream_writer {
    brc_session *session;
    brc_tar_out *tar;
    int transport;
    brc_nan_out nan;
    brc_array *array; /* whose chunks are written            */
    brc_buf key;      /* of a member, which begins with ...  */
    size_t base;      /* ... so many bytes of the node's path */
} stream_writer;

/* "a/b/" for the node at "a/b", and nothing for the first. Converters take escapes back themselves,
 * as their formats can have other names than a tar stream. */
static int begin_key(stream_writer *w, const char *inner, brc_error *err)
{
    char *place = NULL;
    int rc = BRC_OK;

    w->key.len = 0;
    if (*inner && !w->transport)
        BRC_GO(brc_path_unescape(&place, inner, BRC_NAMES_FILES, err));
    if (*inner)
        BRC_GO(brc_buf_printf(&w->key, err, "%s/", place ? place : inner));
    w->base = w->key.len;
done:
    free(place);
    return rc;
}

/* ---- documents ----------------------------------------------------------------------- */

/* What the array's codecs are where it comes from. */
static int note_codecs(brc_json *plain, const brc_json *doc, brc_error *err)
{
    brc_json *note = NULL, *codecs = NULL;
    int rc;
    BRC_GO(brc_json_parse(&note, "{\"must_understand\":false}", 25, err));
    BRC_GO(brc_json_clone(&codecs, brc_json_member(doc, "codecs"), err));
    rc = brc_json_set(note, "codecs", codecs, err);
    codecs = NULL;
    if (rc < 0)
        goto done;
    rc = brc_json_set(plain, BRC_EXPORT_NOTE, note, err);
    note = NULL;
done:
    brc_json_free(codecs);
    brc_json_free(note);
    return rc;
}

static int plain_document(brc_json **out, const stream_writer *w, const brc_json *doc,
                          brc_error *err)
{
    BRC_TRY(brc_meta_plain_doc(out, brc_session_registry(w->session), doc, err));
    int rc = note_codecs(*out, doc, err);
    if (rc < 0) {
        brc_json_free(*out);
        *out = NULL;
    }
    return rc;
}

static int put_zarr_json(stream_writer *w, const brc_json *doc, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_text(&w->key, "zarr.json", err));
    BRC_GO(brc_buf_terminate(&w->key, err));
    BRC_GO(brc_json_write_pretty(&text, doc, err));
    rc = brc_tar_put(w->tar, (const char *)w->key.data, (brc_span){ text.data, text.len }, err);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* brc_nodes_each() */
static int write_document(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    stream_writer *w = ctx;
    brc_json *doc = NULL, *plain = NULL;
    int rc;

    BRC_GO(brc_node_doc(&doc, w->session, path, err));
    if (!w->transport)
        BRC_GO(brc_nan_mark(&w->nan, doc, path, err));
    if (w->transport && kind == BRC_ARRAY)
        BRC_GO(plain_document(&plain, w, doc, err));
    BRC_GO(begin_key(w, inner, err));
    rc = put_zarr_json(w, plain ? plain : doc, err);
done:
    if (rc < 0)
        brc_context(err, "%s", path);
    brc_json_free(plain);
    brc_json_free(doc);
    return rc;
}

/* ---- chunks -------------------------------------------------------------------------- */

/* brc_chunk_sink's put. */
static int write_stored(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    stream_writer *w = ctx;
    w->key.len = w->base;
    BRC_TRY(brc_chunk_key_format(w->array, index, &w->key, err));
    BRC_TRY(brc_buf_terminate(&w->key, err));
    return brc_tar_put(w->tar, (const char *)w->key.data, stored, err);
}

/* brc_nodes_each() */
static int write_chunks(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    stream_writer *w = ctx;
    brc_chunk_sink sink = { w, write_stored };
    if (kind != BRC_ARRAY)
        return BRC_OK;
    BRC_TRY(begin_key(w, inner, err));
    BRC_TRY(w->transport ? brc_array_open_plain(&w->array, w->session, path, err)
                         : brc_array_open(&w->array, w->session, path, err));
    int rc = brc_array_get_stored(w->array, &sink, err);
    brc_array_free(w->array);
    w->array = NULL;
    return rc;
}

int brc_stream_export(brc_session *s, const char *path, brc_tar_out *tar,
                      const brc_stream_out_opts *opts, brc_error *err)
{
    stream_writer w = { .session = s, .tar = tar, .transport = opts->transport,
                        .nan = { .tokens = opts->nan_tokens, .version = 3 } };
    int rc;
    BRC_GO(brc_nodes_each(s, path, write_document, &w, err));
    BRC_GO(brc_nodes_each(s, path, write_chunks, &w, err));
    BRC_GO(brc_tar_finish(tar, err));
    rc = brc_nan_warn(&w.nan, opts->warnings, err);
done:
    brc_nan_out_dispose(&w.nan);
    brc_buf_dispose(&w.key);
    return rc;
}
