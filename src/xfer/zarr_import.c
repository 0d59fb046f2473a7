/*
 * Importing a Zarr v3 directory: groups, arrays and, without re-encoding, their
 * chunks as they are.
 *
 * Documents are handed on whole; only "consolidated_metadata", a copy of other
 * documents that may be out of date, is dropped. Directories without zarr.json may
 * have nodes further down: the groups between them are made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/alloc.h"
#include "../base/file.h"
#include "../zarr/transfer.h"
#include "input.h"
#include "xfer.h"
#include "zarr_dir.h"

#define ZARR_DEPTH_MAX 256

typedef struct zarr_walk {
    brc_session *session;
    const brc_xfer_opts *opts;
    const char *dir;  /* where the walk is ... */
    const char *path; /* ... and what node that is */
    int depth;
} zarr_walk;

int brc_entry_kind(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return BRC_ENTRY_NONE;
    if (S_ISREG(st.st_mode))
        return BRC_ENTRY_FILE;
    if (S_ISDIR(st.st_mode))
        return BRC_ENTRY_DIR;
    if (!S_ISLNK(st.st_mode))
        return BRC_ENTRY_OTHER;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? BRC_ENTRY_LINK_TO_DIR : BRC_ENTRY_LINK;
}

/* *out NULL where the directory has no zarr.json. *file: its name, for messages. */
static int read_document(brc_json **out, char **file, const char *dir, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;

    *out = NULL;
    BRC_TRY(brc_path_join(file, dir, "zarr.json", err));
    if (brc_entry_kind(*file) == BRC_ENTRY_NONE)
        return BRC_OK;
    BRC_GO(brc_regular_read(&text, *file, BRC_JSON_MAX_BYTES, err));
    rc = brc_json_parse(out, (const char *)text.data, text.len, err);
    if (rc < 0)
        brc_context(err, "%s", *file);
done:
    brc_buf_dispose(&text);
    return rc;
}

/* ---- arrays ------------------------------------------------------------------------- */

static int put_chunk_grid(brc_json *doc, const uint64_t *chunk, int ndim, brc_error *err)
{
    brc_json *shape = brc_json_new_array(), *config = brc_json_new_object(),
             *grid = brc_json_new_object();
    int rc = shape && config && grid ? BRC_OK : brc_nomem(err);
    for (int i = 0; i < ndim && rc == BRC_OK; i++)
        rc = brc_json_push(shape, brc_json_new_uint(chunk[i]), err);
    if (rc < 0)
        goto done;
    rc = brc_json_set(config, "chunk_shape", shape, err);
    shape = NULL;
    if (rc == BRC_OK)
        rc = brc_json_set(grid, "name", brc_json_new_string("regular"), err);
    if (rc < 0)
        goto done;
    rc = brc_json_set(grid, "configuration", config, err);
    config = NULL;
    if (rc < 0)
        goto done;
    rc = brc_json_set(doc, "chunk_grid", grid, err);
    grid = NULL;
done:
    brc_json_free(shape);
    brc_json_free(config);
    brc_json_free(grid);
    return rc;
}

/* A copy of the document with the chunks and codecs that the caller asked for. */
static int changed_document(brc_json **out, const brc_json *doc, const char *path,
                            const brc_xfer_opts *opts, brc_error *err)
{
    brc_json *copy = NULL, *codecs = NULL;
    int rc;

    *out = NULL;
    BRC_GO(brc_json_clone(&copy, doc, err));
    if (opts->chunk) {
        size_t ndim = brc_json_count(brc_json_member(doc, "shape"));
        if (opts->nchunk < 0 || (size_t)opts->nchunk != ndim) {
            rc = brc_fail(err, BRC_EINVAL, "%s has %zu axes, the chunk shape %d", path, ndim,
                          opts->nchunk);
            goto done;
        }
        BRC_GO(put_chunk_grid(copy, opts->chunk, opts->nchunk, err));
    }
    if (opts->codecs_json) {
        BRC_GO(brc_json_parse(&codecs, opts->codecs_json, strlen(opts->codecs_json), err));
        rc = brc_json_set(copy, "codecs", codecs, err);
        codecs = NULL;
    }
    if (rc == BRC_OK) {
        *out = copy;
        copy = NULL;
    }
done:
    brc_json_free(codecs);
    brc_json_free(copy);
    return rc;
}

static int import_array(const zarr_walk *at, const brc_json *doc, const char *file, brc_error *err)
{
    int recode = at->opts && (at->opts->chunk || at->opts->codecs_json);
    const brc_registry *reg = brc_session_registry(at->session);
    brc_json *changed = NULL;
    brc_array *a = NULL;
    int rc;

    if (recode)
        BRC_GO(changed_document(&changed, doc, at->path, at->opts, err));
    rc = brc_array_create_doc(&a, at->session, at->path, recode ? changed : doc, err);
    if (rc < 0) {
        if (rc != BRC_EEXISTS)
            brc_context(err, "%s", file);
        goto done;
    }
    rc =
        recode ? brc_zarr_recode(a, doc, reg, at->dir, err) : brc_zarr_take_chunks(a, at->dir, err);
done:
    brc_array_free(a);
    brc_json_free(changed);
    return rc;
}

/* ---- groups ------------------------------------------------------------------------- */

static int import_node(const zarr_walk *at, brc_error *err);

static int visit_child(void *ctx, const char *name, brc_error *err)
{
    const zarr_walk *above = ctx;
    zarr_walk at = *above;
    char *dir = NULL, *path = NULL;
    int rc;

    BRC_GO(brc_path_join(&dir, above->dir, name, err));
    int kind = brc_entry_kind(dir);
    if (kind == BRC_ENTRY_LINK_TO_DIR)
        rc = brc_fail(err, BRC_EINVAL, "%s is a symbolic link to a directory: it is not followed",
                      dir);
    if (kind != BRC_ENTRY_DIR)
        goto done;
    if (above->depth == ZARR_DEPTH_MAX) {
        rc =
            brc_fail(err, BRC_ELIMIT, "%s lies more than %d directories deep", dir, ZARR_DEPTH_MAX);
        goto done;
    }
    BRC_GO(brc_node_join(&path, above->path, name, err));
    at.dir = dir;
    at.path = path;
    at.depth++;
    BRC_GO(import_node(&at, err));
done:
    free(path);
    free(dir);
    return rc;
}

static int import_group(const zarr_walk *at, brc_json *doc, const char *file, brc_error *err)
{
    brc_json_remove(doc, "consolidated_metadata");
    int rc = brc_group_create_doc(at->session, at->path, doc, err);
    if (rc < 0 && rc != BRC_EEXISTS)
        brc_context(err, "%s", file);
    return rc;
}

static int import_node(const zarr_walk *at, brc_error *err)
{
    brc_json *doc = NULL;
    char *file = NULL;
    int rc;

    BRC_GO(read_document(&doc, &file, at->dir, err));
    const char *type = brc_json_text(brc_json_member(doc, "node_type"));
    if (doc && (!type || (strcmp(type, "array") != 0 && strcmp(type, "group") != 0))) {
        rc =
            brc_fail(err, BRC_EINVAL, "%s: its node_type is neither \"array\" nor \"group\"", file);
        goto done;
    }
    if (doc && strcmp(type, "array") == 0) {
        rc = import_array(at, doc, file, err);
        goto done;
    }
    if (doc)
        BRC_GO(import_group(at, doc, file, err));
    brc_json_free(doc); /* not kept while going down */
    doc = NULL;
    BRC_GO(brc_dir_each(at->dir, visit_child, (void *)(uintptr_t)at, err));
done:
    brc_json_free(doc);
    free(file);
    return rc;
}

int brc_zarr_import(brc_session *s, const char *dir, const char *path, const brc_xfer_opts *opts,
                    brc_error *err)
{
    zarr_walk top = { s, opts, dir, path, 0 };
    return import_node(&top, err);
}
