/*
 * The chunk files in one array's directory.
 *
 * Only names that are chunk keys within the grid count: what else lies there is
 * passed over, directories that cannot hold keys are not entered. Chunks are given
 * in the grid's order, so that they arrive as the chunk map is sorted.
 */
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../zarr/array.h"
#include "../../zarr/transfer.h"
#include "zarr_dir.h"

typedef struct chunk_files {
    const brc_meta *meta; /* of the folder's document: what the keys are by */
    brc_tree_in *tree;
    const char *dir;
    int ndim;
    uint64_t *index; /* n times ndim */
    size_t n, cap;
    size_t at;   /* the next one to give */
    brc_buf key; /* while walking: the directory's own part, "c/0" */
} chunk_files;

static size_t index_size(const chunk_files *files)
{
    return sizeof(uint64_t) * (size_t)(files->ndim > 0 ? files->ndim : 1);
}

static uint64_t *index_at(const chunk_files *files, size_t i)
{
    return files->index + i * (size_t)(files->ndim > 0 ? files->ndim : 1);
}

static int is_chunk_key(const chunk_files *files, uint64_t *index, int *inside)
{
    *inside = 0;
    return brc_meta_key_parse(files->meta, (const char *)files->key.data, index, inside);
}

/* Whether files below the directory files->key can have chunk keys: asked by
 * trying to complete it. */
static int can_hold_keys(chunk_files *files, int *can, brc_error *err)
{
    uint64_t index[BRC_MAX_NDIM];
    size_t len = files->key.len;
    int inside, rc = BRC_OK;

    *can = 0;
    for (int i = 0; i < files->ndim && !*can && rc == BRC_OK; i++) {
        rc = brc_buf_text(&files->key, "/0", err);
        if (rc == BRC_OK)
            rc = brc_buf_terminate(&files->key, err);
        if (rc == BRC_OK)
            *can = is_chunk_key(files, index, &inside);
    }
    files->key.len = len;
    return rc;
}

static int visit_entry(void *ctx, const char *name, brc_error *err);

/* An entry that is not a chunk: a directory is entered where keys may lie in it. */
static int visit_other(chunk_files *files, brc_error *err)
{
    char *path = NULL, *label = NULL;
    int can, kind, rc;

    BRC_GO(brc_tree_path(&path, files->dir, (const char *)files->key.data, err));
    BRC_GO(files->tree->kind(files->tree, path, &kind, err));
    if (kind != BRC_ENTRY_DIR && kind != BRC_ENTRY_LINK_TO_DIR)
        goto done;
    BRC_GO(can_hold_keys(files, &can, err));
    if (can && kind == BRC_ENTRY_LINK_TO_DIR) {
        BRC_GO(brc_tree_in_label(&label, files->tree, path, err));
        rc = brc_fail(err, BRC_EINVAL, "%s is a symbolic link: it is not followed", label);
    } else if (can) {
        rc = files->tree->each(files->tree, path, visit_entry, files, err);
    }
done:
    free(label);
    free(path);
    return rc;
}

static int visit_entry(void *ctx, const char *name, brc_error *err)
{
    chunk_files *files = ctx;
    size_t len = files->key.len;
    uint64_t index[BRC_MAX_NDIM];
    int inside, rc;

    if (len > 0)
        BRC_GO(brc_buf_byte(&files->key, '/', err));
    BRC_GO(brc_buf_text(&files->key, name, err));
    BRC_GO(brc_buf_terminate(&files->key, err));
    if (!is_chunk_key(files, index, &inside)) {
        BRC_GO(visit_other(files, err));
    } else if (inside) {
        size_t size = index_size(files);
        BRC_GO(brc_grow_array((void **)&files->index, &files->cap, files->n + 1, size, err));
        memcpy(index_at(files, files->n), index, sizeof(uint64_t) * (size_t)files->ndim);
        files->n++;
    }
done:
    files->key.len = len;
    return rc;
}

static int compare_indices(const void *a, const void *b, void *ndim)
{
    return brc_index_order(*(const int *)ndim, a, b);
}

/* brc_chunk_source's next. */
static int next_chunk(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err)
{
    chunk_files *files = ctx;
    char *path = NULL;
    int rc;

    if (files->at == files->n)
        return 0;
    memcpy(index, index_at(files, files->at), sizeof(uint64_t) * (size_t)files->ndim);
    files->key.len = 0;
    BRC_GO(brc_meta_key_format(files->meta, index, &files->key, err));
    BRC_GO(brc_buf_terminate(&files->key, err));
    BRC_GO(brc_tree_path(&path, files->dir, (const char *)files->key.data, err));
    BRC_GO(files->tree->read(files->tree, path, BRC_CHUNK_FILE_MAX, stored, err));
    files->at++;
    rc = 1;
done:
    free(path);
    return rc;
}

static int take_files(brc_array *a, const brc_json *doc, chunk_files *files, brc_error *err)
{
    brc_chunk_source source = { files, next_chunk };
    BRC_TRY(files->tree->each(files->tree, files->dir, visit_entry, files, err));
    if (files->n == 0)
        return BRC_OK;
    if (files->n > 1)
        qsort_r(files->index, files->n, index_size(files), compare_indices, &files->ndim);
    return doc ? brc_array_put_recoded(a, doc, &source, err)
               : brc_array_put_stored(a, &source, err);
}

int brc_zarr_take_chunks(brc_array *a, const brc_json *doc, brc_tree_in *tree, const char *dir,
                         brc_error *err)
{
    brc_meta from = { 0 };
    chunk_files files = { .meta = doc ? &from : &a->meta, .tree = tree, .dir = dir };
    char *label = NULL;
    int rc;

    BRC_GO(brc_tree_in_label(&label, tree, dir, err));
    rc = doc ? brc_meta_open(&from, a->meta.registry, doc, err) : BRC_OK;
    files.ndim = files.meta->ndim;
    if (rc == BRC_OK)
        rc = take_files(a, doc, &files, err);
    if (rc < 0)
        brc_context(err, "%s", label);
done:
    free(label);
    brc_buf_dispose(&files.key);
    free(files.index);
    brc_meta_dispose(&from);
    return rc;
}
