/*
 * Exports a node as a Zarr hierarchy: every group and array with its documents, every stored chunk
 * in a file of its own. Version 3 as the documents are, version 2 if it can express them (zarr2.h).
 *
 * Consolidated metadata is a copy of all documents in one. It is collected as text while the nodes
 * are written; in version 3 the root's document ends with it, so that document is written last.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/file.h"
#include "../../base/node_path.h"
#include "../../nd/shape.h"
#include "../../work/session.h"
#include "../../zarr/transfer.h"
#include "../documents.h"
#include "../xfer.h"
#include "zarr_hierarchy.h"
#include "zarr2.h"
#include "zarr2_view.h"

typedef struct zarr_out {
    brc_session *session;
    const brc_zarr_out_opts *opts;
    brc_tree_out *tree;
    brc_array *array;  /* the array whose chunks are being written ...   */
    const char *inner; /* ... its path below the exported node, "a/b"    */
    char separator;    /* ... and the separator of its keys, in version 2 */
    brc_buf all; /* consolidated: the text between the braces       */
    brc_nan_out nan;
    brc_first_names structs; /* arrays of a type that not all readers of consolidated metadata
                              * know */
} zarr_out;

/* ---- documents -------------------------------- */

/* Writes a document, such as "a/b/zarr.json". */
static int put_document(zarr_out *out, const char *inner, const char *name, const brc_json *doc,
                        brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *path = NULL;
    int rc;

    BRC_GO(brc_json_write(&text, doc, BRC_JSON_PRETTY, err));
    if (text.len == 0 || text.data[text.len - 1] != '\n')
        BRC_GO(brc_buf_byte(&text, '\n', err));
    if (*inner)
        BRC_GO(brc_path_join(&path, inner, name, err));
    else
        BRC_GO(brc_dup(&path, name, err));
    BRC_GO(out->tree->put(out->tree, path, (brc_span){ text.data, text.len }, err));
done:
    free(path);
    brc_buf_dispose(&text);
    return rc;
}

/* Adds one member to the consolidated metadata: "a/b" or "a/b/.zarray". */
static int consolidate(zarr_out *out, const char *inner, const char *name, const brc_json *doc,
                       brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    int rc = BRC_OK;

    if (!out->opts->consolidated)
        return BRC_OK;
    BRC_GO(brc_buf_printf(&key, err, "%s%s%s", inner, *inner && *name ? "/" : "", name));
    if (out->all.len > 0)
        BRC_GO(brc_buf_byte(&out->all, ',', err));
    BRC_GO(brc_json_quote(&out->all, (const char *)key.data, key.len, err));
    BRC_GO(brc_buf_byte(&out->all, ':', err));
    BRC_GO(brc_json_write(&out->all, doc, 0, err));
    if (out->all.len > BRC_JSON_MAX_BYTES)
        rc = brc_fail(err, BRC_ELIMIT,
                      "the consolidated metadata is longer than %zu bytes: export without it",
                      BRC_JSON_MAX_BYTES);
done:
    brc_buf_dispose(&key);
    return rc;
}

static int put_documents3(zarr_out *out, const char *inner, const brc_json *doc, brc_error *err)
{
    if (out->opts->consolidated && *inner == 0)
        return BRC_OK; /* finish_documents() writes it */
    BRC_TRY(consolidate(out, inner, "", doc, err));
    return put_document(out, inner, "zarr.json", doc, err);
}

static int put_documents2(zarr_out *out, const char *path, const char *inner, const brc_json *doc,
                          int kind, brc_error *err)
{
    const char *name = kind == BRC_ARRAY ? ".zarray" : ".zgroup";
    brc_json *own = NULL, *zattrs = NULL;
    int rc;

    BRC_GO(brc_zarr2_documents(&own, &zattrs, out->session, path, doc, kind, err));
    if (kind == BRC_ARRAY)
        out->separator = brc_json_is(brc_json_member(own, "dimension_separator"), "/") ? '/' : '.';
    BRC_GO(put_document(out, inner, name, own, err));
    BRC_GO(consolidate(out, inner, name, own, err));
    if (!zattrs)
        goto done;
    BRC_GO(put_document(out, inner, ".zattrs", zattrs, err));
    BRC_GO(consolidate(out, inner, ".zattrs", zattrs, err));
done:
    brc_json_free(own);
    brc_json_free(zattrs);
    return rc;
}

/* Writes the root's document, or .zmetadata beside it. */
static int finish_documents(zarr_out *out, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    brc_json *doc = NULL, *whole = NULL;
    brc_nan_out root = { .tokens = out->nan.tokens, .version = out->nan.version };
    int rc;

    if (!out->opts->consolidated)
        return BRC_OK;
    if (out->opts->version == 2) {
        BRC_GO(brc_buf_text(&text, "{\"zarr_consolidated_format\":1,\"metadata\":{", err));
    } else {
        BRC_GO(brc_node_doc(&doc, out->session, path, err));
        brc_json_remove(doc, "consolidated_metadata");
        BRC_GO(brc_nan_mark(&root, doc, path, err)); /* write_node() has counted it */
        BRC_GO(brc_json_write(&text, doc, 0, err));
        text.len--; /* the brace at the end */
        BRC_GO(brc_buf_text(&text,
                            ",\"consolidated_metadata\":{\"kind\":\"inline\","
                            "\"must_understand\":false,\"metadata\":{",
                            err));
    }
    BRC_GO(brc_buf_append(&text, out->all.data, out->all.len, err));
    BRC_GO(brc_buf_text(&text, out->opts->version == 2 ? "}}" : "}}}", err));
    BRC_GO(brc_json_parse(&whole, (const char *)text.data, text.len, BRC_JSON_NAN, err));
    BRC_GO(put_document(out, "", out->opts->version == 2 ? ".zmetadata" : "zarr.json", whole, err));
done:
    brc_nan_out_dispose(&root);
    brc_json_free(whole);
    brc_json_free(doc);
    brc_buf_dispose(&text);
    return rc;
}

/* ---- chunks -------------------------------- */

/* Makes a key such as "0.1" or "0/1", and "0" if there are no axes. */
static int key_of_version2(brc_buf *key, const zarr_out *out, const uint64_t *index, brc_error *err)
{
    int ndim = brc_array_describe(out->array)->ndim;
    for (int i = 0; i < ndim; i++) {
        if (i > 0)
            BRC_TRY(brc_buf_byte(key, (uint8_t)out->separator, err));
        BRC_TRY(brc_buf_printf(key, err, "%" PRIu64, index[i]));
    }
    return ndim > 0 ? BRC_OK : brc_buf_byte(key, '0', err);
}

/* The put function of brc_chunk_sink. */
static int write_chunk(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    const zarr_out *out = ctx;
    brc_buf key = BRC_BUF_INIT;
    int rc = BRC_OK;
    if (*out->inner)
        BRC_GO(brc_buf_printf(&key, err, "%s/", out->inner));
    const size_t base = key.len;
    BRC_GO(out->opts->version == 2 ? key_of_version2(&key, out, index, err)
                                   : brc_chunk_key_format(out->array, index, &key, err));
    BRC_GO(brc_buf_terminate(&key, err));
    const char *path = (const char *)key.data;
    rc = brc_path_is_safe(path + base)
             ? out->tree->put(out->tree, path, stored, err)
             : brc_fail(err, BRC_EINVAL, "the chunk key %s cannot be a file's name", path + base);
done:
    brc_buf_dispose(&key);
    return rc;
}

static int write_array_chunks(zarr_out *out, const char *path, const char *inner, brc_error *err)
{
    brc_chunk_sink sink = { out, write_chunk, out->tree->any_thread };
    BRC_TRY(brc_array_open(&out->array, out->session, path, err));
    out->inner = inner;
    int rc = brc_array_get_stored(out->array, &sink, err);
    brc_array_free(out->array);
    out->array = NULL;
    return rc;
}

/* ---- nodes -------------------------------- */

/* Notes a type that makes some readers fail: a reader that does not know a type in the consolidated
 * metadata fails for the whole group. */
static int note_struct(zarr_out *out, const char *path, const brc_json *doc, brc_error *err)
{
    const brc_json *name = brc_json_member(brc_json_member(doc, "data_type"), "name");
    return out->opts->consolidated && out->opts->version == 3 && brc_json_is(name, "struct")
               ? brc_first_names_add(&out->structs, path, err)
               : BRC_OK;
}

static int warn_of_structs(const zarr_out *out, brc_error *err)
{
    brc_buf *warnings = out->opts->warnings;
    if (out->structs.n == 0 || !warnings)
        return BRC_OK;
    BRC_TRY(brc_first_names_write(&out->structs, warnings, err));
    BRC_TRY(brc_buf_text(warnings,
                         ": zarr-python before 3.2.0 does not know the data type struct and cannot "
                         "open a group whose consolidated metadata has it; for these versions, "
                         "export without --consolidated, or with --format zarr2\n",
                         err));
    return brc_buf_terminate(warnings, err);
}

/* brc_nodes_each() */
static int write_node(void *ctx, const char *path, const char *inner, int kind, brc_error *err)
{
    zarr_out *out = ctx;
    brc_json *doc = NULL;
    char *place = NULL; /* by its name in the file from which it was imported */
    int rc;

    if (*inner == 0 && out->opts->consolidated && kind != BRC_GROUP)
        return brc_fail(err, BRC_EINVAL,
                        "%s is an array: only groups have consolidated metadata", path);
    BRC_GO(brc_path_unescape(&place, inner, BRC_NAMES_FILES, err));
    BRC_GO(brc_node_doc(&doc, out->session, path, err));
    BRC_GO(brc_nan_mark(&out->nan, doc, path, err));
    BRC_GO(note_struct(out, path, doc, err));
    BRC_GO(out->tree->folder(out->tree, place, err));
    rc = out->opts->version == 2 ? put_documents2(out, path, place, doc, kind, err)
                                 : put_documents3(out, place, doc, err);
    if (rc < 0) {
        brc_context(err, "%s", path);
        goto done;
    }
    if (kind == BRC_ARRAY)
        BRC_GO(write_array_chunks(out, path, place, err));
done:
    free(place);
    brc_json_free(doc);
    return rc;
}

int brc_zarr_export(brc_session *s, const char *path, const char *dest,
                    const brc_zarr_out_opts *opts, brc_error *err)
{
    zarr_out out = { .session = s, .opts = opts,
                     .nan = { .tokens = opts->nan_tokens, .version = opts->version } };
    int rc;

    BRC_GO(opts->zip ? brc_tree_out_zip(&out.tree, s, dest, err)
                     : brc_tree_out_dir(&out.tree, s, dest, err));
    BRC_GO(brc_nodes_each(s, path, write_node, &out, err));
    BRC_GO(finish_documents(&out, path, err));
    BRC_GO(out.tree->finish(out.tree, err));
    BRC_GO(brc_nan_warn(&out.nan, opts->warnings, err));
    rc = warn_of_structs(&out, err);
done:
    brc_nan_out_dispose(&out.nan);
    brc_first_names_dispose(&out.structs);
    brc_buf_dispose(&out.all);
    brc_tree_out_free(out.tree);
    return rc;
}
