/*
 * Importing a Zarr hierarchy, v3 or v2, from a directory or a zip archive: groups,
 * arrays and, without re-encoding, their chunks as they are.
 *
 * Documents of v3 are handed on whole; only "consolidated_metadata", a copy of other
 * documents that may be out of date, is dropped, and .zmetadata is not read for the
 * same reason. Documents of v2 are translated (zarr2.h). Where a folder has both,
 * v3 counts. Folders without any may have nodes further down: the groups between
 * them are made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/name_escape.h"
#include "../../zarr/meta.h"
#include "../../zarr/repo.h"
#include "../../zarr/transfer.h"
#include "../array_doc.h"
#include "../nan_mark.h"
#include "../xfer.h"
#include "zarr2.h"
#include "zarr_dir.h"
#include "zarr_hierarchy.h"

#define ZARR_DEPTH_MAX 256

typedef struct zarr_walk {
    brc_session *session;
    const brc_xfer_opts *opts;
    brc_parts *parts; /* gets what cannot be kept; NULL: nobody wants to know */
    brc_tree_in *tree;
    const char *dir;  /* where the walk is ... */
    const char *path; /* ... and what node that is */
    int depth;
    uint64_t *bytes; /* only those of the arrays are counted; NULL: they are imported */
} zarr_walk;

/* A node's document, as v3 has it. */
typedef struct zarr_node {
    int kind;      /* BRC_GROUP, BRC_ARRAY; 0: there is none  */
    brc_json *doc; /* NULL: there is none                     */
    char *file;    /* what it was read from, for messages     */
} zarr_node;

static void dispose_node(zarr_node *node)
{
    brc_json_free(node->doc);
    free(node->file);
    memset(node, 0, sizeof(*node));
}

/* ---- documents ---------------------------------------------------------------------- */

/* How a document is read: brc_json_parse_document(), or brc_json_parse_nan() for those of v2. */
typedef int (*parse_fn)(brc_json **out, const char *text, size_t len, brc_error *err);

/* *out NULL if the folder has no such file. *label: its name, for messages. */
static int read_file(brc_json **out, char **label, const zarr_walk *at, const char *name,
                     parse_fn parse, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *path = NULL;
    int kind, rc;

    *out = NULL;
    BRC_GO(brc_tree_path(&path, at->dir, name, err));
    BRC_GO(brc_tree_in_label(label, at->tree, path, err));
    BRC_GO(at->tree->kind(at->tree, path, &kind, err));
    if (kind == BRC_ENTRY_NONE || kind == BRC_ENTRY_DIR) /* a folder is a node of that name */
        goto done;
    BRC_GO(at->tree->read(at->tree, path, BRC_JSON_MAX_BYTES, &text, err));
    rc = parse(out, (const char *)text.data, text.len, err);
    if (rc < 0)
        brc_context(err, "%s", *label);
done:
    brc_buf_dispose(&text);
    free(path);
    return rc;
}

static int classify_node(zarr_node *node, brc_error *err)
{
    const brc_json *type = brc_json_member(node->doc, "node_type");
    if (brc_json_is(type, "array"))
        node->kind = BRC_ARRAY;
    else if (brc_json_is(type, "group"))
        node->kind = BRC_GROUP;
    else
        return brc_fail(err, BRC_EINVAL, "%s: its node_type is neither \"array\" nor \"group\"",
                        node->file);
    return BRC_OK;
}

/* What looking for the chunks of a v2 array in its folder found. */
typedef struct key_probe {
    const zarr_walk *at;
    size_t ndim;
    int dots, folders;
} key_probe;

static int probe_name(void *ctx, const char *name, brc_error *err)
{
    key_probe *probe = ctx;
    size_t parts = 1;
    char *path;
    int kind;

    if (strspn(name, "0123456789.") != strlen(name))
        return BRC_OK;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
        parts++;
    probe->dots |= parts == probe->ndim;
    if (parts > 1 || probe->folders)
        return BRC_OK;
    BRC_TRY(brc_tree_path(&path, probe->at->dir, name, err));
    int rc = probe->at->tree->kind(probe->at->tree, path, &kind, err);
    probe->folders = rc == BRC_OK && kind == BRC_ENTRY_DIR;
    free(path);
    return rc;
}

/* Writers left "dimension_separator" out though they wrote "0/1": where it is
 * missing, what the folder holds decides. */
static int find_separator(char *out, const zarr_walk *at, const brc_json *zarray, brc_error *err)
{
    key_probe probe = { at, brc_json_count(brc_json_member(zarray, "shape")), 0, 0 };
    *out = '.';
    if (at->bytes || brc_json_member(zarray, "dimension_separator") || probe.ndim < 2)
        return BRC_OK;
    BRC_TRY(at->tree->each(at->tree, at->dir, probe_name, &probe, err));
    if (!probe.dots && probe.folders)
        *out = '/';
    return BRC_OK;
}

/* .zarray or .zgroup, with .zattrs. */
static int read_node2(zarr_node *node, const zarr_walk *at, brc_error *err)
{
    brc_json *own = NULL, *zattrs = NULL;
    char *label = NULL, separator;
    int rc;

    BRC_GO(read_file(&own, &node->file, at, ".zarray", brc_json_parse_nan, err));
    node->kind = own ? BRC_ARRAY : 0;
    if (!own) {
        free(node->file);
        node->file = NULL;
        BRC_GO(read_file(&own, &node->file, at, ".zgroup", brc_json_parse_nan, err));
        node->kind = own ? BRC_GROUP : 0;
    }
    if (!own)
        goto done;
    BRC_GO(read_file(&zattrs, &label, at, ".zattrs", brc_json_parse_nan, err));
    if (node->kind == BRC_GROUP) {
        rc = brc_zarr2_group_read(&node->doc, own, zattrs, err);
    } else {
        BRC_GO(find_separator(&separator, at, own, err));
        rc = brc_zarr2_array_read(&node->doc, own, zattrs, separator,
                                  brc_session_registry(at->session), err);
    }
    if (rc < 0)
        brc_context(err, "%s", node->file);
done:
    free(label);
    brc_json_free(zattrs);
    brc_json_free(own);
    return rc;
}

static int read_node(zarr_node *node, const zarr_walk *at, brc_error *err)
{
    memset(node, 0, sizeof(*node));
    int rc = read_file(&node->doc, &node->file, at, "zarr.json", brc_json_parse_document, err);
    if (rc == BRC_OK && node->doc) {
        rc = classify_node(node, err);
    } else if (rc == BRC_OK) {
        free(node->file);
        node->file = NULL;
        rc = read_node2(node, at, err);
    }
    if (rc == BRC_OK && node->doc)
        rc = brc_nan_restore(node->doc, err);
    if (rc < 0)
        dispose_node(node);
    return rc;
}

/* ---- arrays ------------------------------------------------------------------------- */

static int import_array(const zarr_walk *at, const zarr_node *node, brc_error *err)
{
    int recode = at->opts && (at->opts->chunk || at->opts->codecs_json);
    brc_json *changed = NULL;
    brc_array *a = NULL;
    int rc;

    if (recode)
        BRC_GO(brc_array_doc_changed(&changed, at->session, node->doc,
                                     at->path, at->opts, 0, err));
    rc = brc_array_create_doc(&a, at->session, at->path, recode ? changed : node->doc, err);
    if (rc < 0) {
        if (rc != BRC_EEXISTS)
            brc_context(err, "%s", node->file);
        goto done;
    }
    rc = brc_zarr_take_chunks(a, recode ? node->doc : NULL, at->tree, at->dir, err);
done:
    brc_array_free(a);
    brc_json_free(changed);
    return rc;
}

/* ---- groups ------------------------------------------------------------------------- */

static int import_node(const zarr_walk *at, brc_error *err);

/* Whether the walk may go there: `kind` is the entry's. */
static int check_child(const zarr_walk *at, int kind, brc_error *err)
{
    char *label;
    int rc = BRC_OK;
    BRC_TRY(brc_tree_in_label(&label, at->tree, at->dir, err));
    if (kind == BRC_ENTRY_LINK_TO_DIR)
        rc = brc_part_refuse(err, BRC_PART_LINK, "put the directory itself there",
                             "%s is a symbolic link to a directory, which is not followed", label);
    else if (at->depth > ZARR_DEPTH_MAX)
        rc = brc_fail(err, BRC_ELIMIT, "%s is more than %d directories deep", label,
                      ZARR_DEPTH_MAX);
    free(label);
    return rc;
}

static int visit_child(void *ctx, const char *name, brc_error *err)
{
    const zarr_walk *above = ctx;
    zarr_walk at = *above;
    char *dir = NULL, *path = NULL;
    int kind, rc;

    BRC_GO(brc_store_check_interrupt(brc_session_repo(above->session)->store, err));
    BRC_GO(brc_tree_path(&dir, above->dir, name, err));
    if (brc_is_excluded(above->opts, dir, strlen(dir)))
        goto done;
    BRC_GO(above->tree->kind(above->tree, dir, &kind, err));
    if (kind != BRC_ENTRY_DIR && kind != BRC_ENTRY_LINK_TO_DIR)
        goto done;
    BRC_GO(brc_path_escape(&path, above->path, name, BRC_NAMES_FILES, err));
    at.dir = dir;
    at.path = path;
    at.depth++;
    rc = check_child(&at, kind, err);
    if (rc == BRC_OK)
        rc = import_node(&at, err);
    rc = brc_part_settle(at.parts, rc, dir, err);
done:
    free(path);
    free(dir);
    return rc < 0 ? rc : BRC_OK;
}

static int import_group(const zarr_walk *at, zarr_node *node, brc_error *err)
{
    int rc = brc_meta_check_group(node->doc, err);
    brc_json_remove(node->doc, "consolidated_metadata");
    if (rc == BRC_OK)
        rc = brc_group_create_doc(at->session, at->path, node->doc, err);
    if (rc < 0 && rc != BRC_EEXISTS)
        brc_context(err, "%s", node->file);
    return rc;
}

static int import_node(const zarr_walk *at, brc_error *err)
{
    zarr_node node;
    int rc;

    BRC_GO(read_node(&node, at, err));
    if (node.doc)
        BRC_GO(brc_attributes_pick(at->opts, at->dir, node.doc, err));
    if (node.kind == BRC_ARRAY) {
        rc = at->bytes ? brc_add_doc_bytes(at->bytes, brc_session_registry(at->session), node.doc,
                                           err)
                       : import_array(at, &node, err);
        goto done;
    }
    if (node.kind == BRC_GROUP && !at->bytes)
        BRC_GO(import_group(at, &node, err));
    dispose_node(&node); /* not kept while going down */
    BRC_GO(at->tree->each(at->tree, at->dir, visit_child, (void *)(uintptr_t)at, err));
done:
    dispose_node(&node);
    return rc;
}

static int open_tree(brc_tree_in **out, const brc_session *s, const brc_source *source,
                     brc_error *err)
{
    return source->is_dir ? brc_tree_dir_open(out, s, source->name, err)
                          : brc_tree_zip_open(out, source->name, err);
}

static int walk_source(brc_session *s, const brc_source *source, const char *path,
                       const brc_xfer_opts *opts, uint64_t *bytes, brc_error *err)
{
    brc_tree_in *tree;
    BRC_TRY(open_tree(&tree, s, source, err));
    zarr_walk top = { s, opts, source->parts, tree, "", path, 0, bytes };
    int rc = import_node(&top, err);
    brc_tree_in_free(tree);
    return rc;
}

int brc_zarr_import(brc_session *s, const brc_source *source, const char *path,
                    const brc_xfer_opts *opts, brc_error *err)
{
    return walk_source(s, source, path, opts, NULL, err);
}

int brc_zarr_bytes(uint64_t *bytes, brc_session *s, const brc_source *source,
                   const brc_xfer_opts *opts, brc_error *err)
{
    *bytes = 0;
    return walk_source(s, source, "/", opts, bytes, err);
}

int brc_zarr_is_group(int *is_group, brc_session *s, const brc_source *source, brc_error *err)
{
    brc_error why = BRC_ERROR_INIT;
    brc_tree_in *tree = NULL;
    zarr_node node = { 0 };

    *is_group = 0;
    int rc = open_tree(&tree, s, source, &why);
    zarr_walk top = { .session = s, .tree = tree, .dir = "", .path = "/" };
    if (rc == BRC_OK)
        rc = read_node(&node, &top, &why);
    *is_group = rc == BRC_OK && node.kind != BRC_ARRAY;
    dispose_node(&node);
    brc_tree_in_free(tree);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}
