/*
 * Exporting a node as a Zarr v3 directory: every group and array with its zarr.json,
 * every stored chunk in a file of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../base/json.h"
#include "../zarr/transfer.h"
#include "dest.h"
#include "xfer.h"

typedef struct zarr_out {
    brc_session *session;
    const char *root; /* the directory that is being written */
    size_t root_len;
    brc_array *array; /* the one whose chunks are being written ... */
    const char *dir;  /* ... and its directory */
    brc_buf key;
} zarr_out;

static int write_document(zarr_out *out, const char *path, const char *dir, brc_error *err)
{
    brc_json *doc = NULL;
    brc_buf text = BRC_BUF_INIT;
    char *file = NULL;
    int rc;

    BRC_GO(brc_node_doc(&doc, out->session, path, err));
    BRC_GO(brc_json_write_pretty(&text, doc, err));
    if (text.len == 0 || text.data[text.len - 1] != '\n')
        BRC_GO(brc_buf_byte(&text, '\n', err));
    BRC_GO(brc_path_join(&file, dir, "zarr.json", err));
    BRC_GO(brc_file_write(file, text.data, text.len, err));
done:
    free(file);
    brc_buf_dispose(&text);
    brc_json_free(doc);
    return rc;
}

/* brc_chunk_sink's put. */
static int write_chunk(void *ctx, const uint64_t *index, brc_span stored, brc_error *err)
{
    zarr_out *out = ctx;
    char *file = NULL;
    int rc;

    out->key.len = 0;
    BRC_GO(brc_chunk_key_format(out->array, index, &out->key, err));
    BRC_GO(brc_buf_terminate(&out->key, err));
    const char *key = (const char *)out->key.data;
    if (!brc_path_is_safe(key)) {
        rc = brc_fail(err, BRC_EINVAL, "the chunk key %s cannot be a file's name", key);
        goto done;
    }
    BRC_GO(brc_path_join(&file, out->dir, key, err));
    rc = brc_file_write(file, stored.data, stored.len, NULL);
    if (rc == BRC_ENOTFOUND) { /* the first one in its directory */
        BRC_GO(brc_dir_make_parents(file, out->root_len, err));
        rc = brc_file_write(file, stored.data, stored.len, err);
    } else if (rc < 0) {
        rc = brc_file_write(file, stored.data, stored.len, err); /* says why */
    }
done:
    free(file);
    return rc;
}

static int write_array_chunks(zarr_out *out, const char *path, const char *dir, brc_error *err)
{
    brc_chunk_sink sink = { out, write_chunk };
    BRC_TRY(brc_array_open(&out->array, out->session, path, err));
    out->dir = dir;
    int rc = brc_array_get_stored(out->array, &sink, err);
    brc_array_free(out->array);
    out->array = NULL;
    return rc;
}

/* `inner`: the node's path below the exported one, "" for itself. */
static int write_node(zarr_out *out, const char *path, int kind, const char *inner, brc_error *err)
{
    char *dir = NULL;
    int rc;

    if (*inner && !brc_path_is_safe(inner))
        return brc_fail(err, BRC_EINVAL, "%s: a name in it cannot be a directory's", path);
    if (*inner)
        BRC_GO(brc_path_join(&dir, out->root, inner, err));
    else
        BRC_GO(brc_dup(&dir, out->root, err));
    if (*inner)
        BRC_GO(brc_dir_make_parents(dir, out->root_len, err));
    BRC_GO(brc_dir_make(dir, err));
    BRC_GO(write_document(out, path, dir, err));
    if (kind == BRC_ARRAY)
        BRC_GO(write_array_chunks(out, path, dir, err));
done:
    free(dir);
    return rc;
}

static int write_hierarchy(zarr_out *out, const char *path, brc_error *err)
{
    brc_node_list nodes = { 0 };
    int rc;

    BRC_GO(brc_node_list_read(&nodes, out->session, path, err));
    size_t base_len = strlen(nodes.paths[0]);
    for (size_t i = 0; i < nodes.n; i++) {
        const char *inner = nodes.paths[i] + base_len;
        BRC_GO(write_node(out, nodes.paths[i], nodes.kinds[i], inner + (*inner == '/'), err));
    }
done:
    brc_node_list_free(&nodes);
    return rc;
}

int brc_zarr_export(brc_session *s, const char *path, const char *dest, brc_error *err)
{
    zarr_out out = { .session = s };
    brc_dest place;
    int rc;

    BRC_TRY(brc_dest_open(&place, dest, 0, err));
    out.root = place.temp;
    out.root_len = strlen(place.temp);
    BRC_GO(write_hierarchy(&out, path, err));
    BRC_GO(brc_dest_finish(&place, 0, err));
done:
    brc_buf_dispose(&out.key);
    brc_dest_close(&place);
    return rc;
}
