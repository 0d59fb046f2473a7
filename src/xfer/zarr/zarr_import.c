/*
 * Imports a Zarr hierarchy, and finds the chunk files in an array's directory.
 *
 * Only names that are chunk keys within the grid count: other names are skipped, and directories
 * that cannot contain keys are not entered. Chunks are supplied in the grid's order, in which the
 * chunk map is sorted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/alloc.h"
#include "../../base/json.h"
#include "../../base/node_path.h"
#include "../../work/session.h"
#include "../../zarr/array/array.h"
#include "../../zarr/doc/meta.h"
#include "../../zarr/transfer.h"
#include "../documents.h"
#include "../in_place.h"
#include "../xfer.h"
#include "kerchunk.h"
#include "tree_in.h"
#include "zarr2.h"
#include "zarr_hierarchy.h"

/* A Zarr hierarchy that is being imported. */

#define BRC_CHUNK_FILE_MAX ((uint64_t)INT32_MAX) /* bytes of one stored chunk */

typedef struct zarr_walk {
    brc_session *session;
    const brc_xfer_opts *opts;
    brc_parts *parts; /* receives the parts that cannot be kept; NULL: not wanted */
    brc_tree_in *tree;
    const char *dir;  /* the place of the walk ... */
    const char *path; /* ... and its node, before renaming */
    const char *top;  /* the imported node */
    int is_folder;    /* 0: there is no folder, only a copy of its document */
    int depth;
    uint64_t *bytes; /* only counts the bytes of the arrays; NULL: imports them */
    brc_consolidated **copies; /* of this group and those above */
    struct import_sum *sum;
} zarr_walk;

/* The result of importing the whole source. */
typedef struct import_sum {
    brc_import_notes notes;
    uint64_t nodes; /* the number imported, without a group that is the source itself */
    int has_root;   /* the source itself has a document                              */
    int excluded;   /* something is left out at the caller's request                 */
} import_sum;

/* ==== zarr chunks ================================ */

typedef struct chunk_files {
    const brc_meta *meta; /* of the folder's document, which determines the keys */
    brc_tree_in *tree;
    const char *dir;
    int ndim;
    uint64_t *index; /* n times ndim */
    size_t n, cap;
    size_t at;   /* the next one to supply */
    brc_buf key; /* during the walk: the directory's part of the keys, "c/0" */
    int later;   /* the last one was only named */
    int stay;    /* chunks stay in their files, the last one here: */
    brc_chunk_place place;
    brc_buf all; /* the name of the place that all the files are; empty: each file is one */
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

/* Tells whether files below the directory files->key can have chunk keys, by trying to complete the
 * key. */
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

/* Handles an entry that is not a chunk: enters a directory that may contain keys. */
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

/* Finds the one place of all files if the array has no shards, of which a file has many chunks. */
static int find_place(chunk_files *files, brc_error *err)
{
    const brc_meta *m = files->meta;
    const char begin[] = { m->v2_keys ? '\0' : 'c', m->separator, '\0' };
    const brc_external_files all = { .ndim = m->ndim,
                                     .count = m->outer.count,
                                     .separator = m->separator,
                                     .index = files->index,
                                     .n = files->n };
    if (m->nlevels > 0 || files->tree->files_place == NULL)
        return BRC_OK;
    return files->tree->files_place(files->tree, files->dir, begin, &all, &files->all, err);
}

/* Sets the place of the chunk that is read next. */
static int next_place(chunk_files *files, const char *path, brc_error *err)
{
    if (files->all.len == 0)
        return files->tree->place != NULL
                   ? files->tree->place(files->tree, path, &files->place.place,
                                        &files->place.offset, err)
                   : BRC_OK;
    const brc_external_files one = { .ndim = files->ndim, .count = files->meta->outer.count,
                                     .index = files->index };
    files->place.offset = brc_external_number(&one, files->at);
    return brc_buf_append(&files->place.place, files->all.data, files->all.len, err);
}

static int chunk_file(char **path, const chunk_files *files, const uint64_t *index, brc_error *err)
{
    brc_buf key = BRC_BUF_INIT;
    int rc = brc_meta_key_format(files->meta, index, &key, err);
    if (rc == BRC_OK)
        rc = brc_tree_path(path, files->dir, (const char *)key.data, err);
    brc_buf_dispose(&key);
    return rc;
}

/* The load function of brc_chunk_source. */
static int load_chunk(void *ctx, const uint64_t *index, brc_buf *stored, brc_error *err)
{
    const chunk_files *files = ctx;
    char *path;
    BRC_TRY(chunk_file(&path, files, index, err));
    const int rc = files->tree->read(files->tree, path, BRC_CHUNK_FILE_MAX, stored, err);
    free(path);
    return rc;
}

/* Sets files->later if the file can be read when its turn comes. */
static int weigh_chunk(chunk_files *files, const char *path, const uint64_t *index, brc_error *err)
{
    uint64_t bytes;
    if (files->tree->size == NULL)
        return BRC_OK;
    BRC_TRY(files->tree->size(files->tree, path, &bytes, err));
    files->later = brc_chunk_may_wait(files->meta, index, bytes);
    return BRC_OK;
}

/* The next function of brc_chunk_source. */
static int next_chunk(void *ctx, uint64_t *index, brc_buf *stored, brc_error *err)
{
    chunk_files *files = ctx;
    char *path = NULL;
    int rc = BRC_OK;

    if (files->at == files->n)
        return 0;
    memcpy(index, index_at(files, files->at), sizeof(uint64_t) * (size_t)files->ndim);
    BRC_GO(chunk_file(&path, files, index, err));
    if (files->stay)
        BRC_GO(next_place(files, path, err));
    BRC_GO(weigh_chunk(files, path, index, err));
    if (!files->later)
        BRC_GO(files->tree->read(files->tree, path, BRC_CHUNK_FILE_MAX, stored, err));
    files->at++;
    rc = 1;
done:
    free(path);
    return rc;
}

static int take_files(brc_array *a, const brc_json *doc, chunk_files *files, brc_error *err)
{
    const brc_chunk_source source = { .ctx = files, .next = next_chunk,
                                      .at = files->stay ? &files->place : NULL,
                                      .load = load_chunk,
                                      .later = &files->later };
    BRC_TRY(files->tree->each(files->tree, files->dir, visit_entry, files, err));
    if (files->n == 0)
        return BRC_OK;
    if (files->n > 1)
        qsort_r(files->index, files->n, index_size(files), compare_indices, &files->ndim);
    if (files->stay)
        BRC_TRY(find_place(files, err));
    return doc ? brc_array_put_recoded(a, doc, &source, err)
               : brc_array_put_stored(a, &source, err);
}

/* Takes over the chunks in the array's directory `dir`: byte for byte, or, if `doc` is not NULL,
 * from that document's encoding and chunks into those of `a`. */
static int zarr_take_chunks(brc_array *a, const brc_json *doc, const zarr_walk *at, brc_error *err)
{
    brc_meta from = { 0 };
    brc_tree_in *tree = at->tree;
    const char *dir = at->dir;
    chunk_files files = { .meta = doc ? &from : &a->meta, .tree = tree, .dir = dir,
                          .stay = brc_is_external(at->opts) };
    char *label = NULL;
    int rc;

    BRC_GO(brc_tree_in_label(&label, tree, dir, err));
    rc = doc ? brc_meta_open(&from, a->meta.registry, doc, err) : BRC_OK;
    files.ndim = files.meta->ndim;
    if (rc == BRC_OK)
        rc = take_files(a, doc, &files, err);
    if (rc == BRC_OK && files.stay)
        rc = brc_external_note(&at->sum->notes, a, err);
    if (rc < 0)
        brc_context(err, "%s", label);
done:
    free(label);
    brc_buf_dispose(&files.key);
    brc_buf_dispose(&files.place.place);
    brc_buf_dispose(&files.all);
    free(files.index);
    brc_meta_dispose(&from);
    return rc;
}

/* Decodes every chunk. Sets *are to 0 if one cannot be decoded. */
static int try_files(int *are, chunk_files *files, brc_meta *meta, brc_error *err)
{
    brc_buf stored = BRC_BUF_INIT, plain = BRC_BUF_INIT;
    brc_scratch *scratch = NULL;
    brc_error why = BRC_ERROR_INIT;
    brc_form *form;
    uint64_t index[BRC_MAX_NDIM], corner[BRC_MAX_NDIM], shape[BRC_MAX_NDIM];
    int rc;

    BRC_GO(brc_scratch_new(&scratch, err));
    BRC_GO(files->tree->each(files->tree, files->dir, visit_entry, files, err));
    while (*are && (rc = next_chunk(files, index, &stored, err)) == 1) {
        brc_grid_chunk(&meta->grid, index, corner, shape);
        BRC_GO(brc_meta_form(meta, shape, &form, err));
        rc = brc_chain_decode(form->chain, scratch, (brc_span){ stored.data, stored.len }, NULL,
                              &plain, &why);
        if (rc == BRC_ENOMEM)
            BRC_GO(brc_nomem(err));
        *are = rc == BRC_OK;
        stored.len = plain.len = 0;
    }
    rc = rc > 0 || !*are ? BRC_OK : rc;
done:
    brc_scratch_free(scratch);
    brc_buf_dispose(&plain);
    brc_buf_dispose(&stored);
    return rc;
}

/* Tells whether the chunks of an array of objects are what a document of texts says. Nothing else
 * than its chunks tells whether all objects are texts, so each of them is decoded once for that. */
static int are_texts(int *are, const brc_session *s, const brc_json *doc, brc_tree_in *tree,
                     const char *dir, brc_error *err)
{
    brc_meta meta;
    brc_error why = BRC_ERROR_INIT;

    *are = 0;
    int rc = brc_meta_open(&meta, brc_session_registry(s), doc, &why);
    if (rc < 0)
        return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
    chunk_files files = { .meta = &meta, .tree = tree, .dir = dir, .ndim = meta.ndim };
    *are = !meta.opaque;
    if (*are)
        rc = try_files(are, &files, &meta, err);
    brc_buf_dispose(&files.key);
    free(files.index);
    brc_meta_dispose(&meta);
    return rc;
}

/* ==== zarr import ================================ */

/*
 * Imports a Zarr hierarchy, v3 or v2, from a directory, a zip archive or references: groups,
 * arrays and, without encoding them again, their chunks as they are.
 *
 * Documents of v3 are passed on whole, without "consolidated_metadata". Documents of v2 are
 * translated (zarr2.h). If a folder has both, v3 counts. A node without a document is what the
 * consolidated metadata of the groups around it says, whether it has a folder or not. Folders
 * without any metadata may contain nodes further down: the groups between are made.
 */

#define ZARR_DEPTH_MAX 256

/* A node's document, in the form of v3. */
typedef struct zarr_node {
    int kind;      /* BRC_GROUP, BRC_ARRAY; 0: there is none  */
    brc_json *doc; /* NULL: there is none                     */
    brc_json *source; /* describes the chunks as they come; NULL: as `doc` does */
    brc_json *texts; /* describes the array if its objects are texts; NULL: they are not */
    char *file;    /* the file that was read, for messages    */
} zarr_node;

static void dispose_node(zarr_node *node)
{
    brc_json_free(node->doc);
    brc_json_free(node->source);
    brc_json_free(node->texts);
    free(node->file);
    memset(node, 0, sizeof(*node));
}

/* ---- documents ---------------------------------------------------------------------- */

/* The parser of a document: brc_json_parse_document(), or parse_v2(). */
typedef int (*parse_fn)(brc_json **out, const char *text, size_t len, brc_error *err);

static int parse_v2(brc_json **out, const char *text, size_t len, brc_error *err)
{
    return brc_json_parse(out, text, len, BRC_JSON_NAN, err);
}

/* *out is NULL if the folder lacks such a file. *label: its name, for messages. */
static int read_file(brc_json **out, char **label, const zarr_walk *at, const char *name,
                     parse_fn parse, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *path = NULL;
    int kind, rc;

    *out = NULL;
    free(*label);
    *label = NULL;
    BRC_GO(brc_tree_path(&path, at->dir, name, err));
    BRC_GO(brc_tree_in_label(label, at->tree, path, err));
    if (!at->is_folder)
        goto done;
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

/* The result of looking for the chunks of a v2 array in its folder. */
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

/* Finds the separator. Some writers omitted "dimension_separator" although they wrote "0/1": if it
 * is missing, the folder's content decides. */
static int find_separator(char *out, const zarr_walk *at, const brc_json *zarray, brc_error *err)
{
    key_probe probe = { at, brc_json_count(brc_json_member(zarray, "shape")), 0, 0 };
    *out = '.';
    if (at->bytes || !at->is_folder || brc_json_member(zarray, "dimension_separator") ||
        probe.ndim < 2)
        return BRC_OK;
    BRC_TRY(at->tree->each(at->tree, at->dir, probe_name, &probe, err));
    if (!probe.dots && probe.folders)
        *out = '/';
    return BRC_OK;
}

/* Takes the copy if there is no document. Returns 1 if it is taken. */
static int take_copy(brc_json **doc, const brc_json *copy, int *differs, brc_error *err)
{
    if (*doc || !copy)
        return brc_copy_differs(differs, *doc, copy, err);
    BRC_TRY(brc_json_clone(doc, copy, err));
    return 1;
}

/* Documents of v2. */
typedef struct documents2 {
    brc_json *own, *zattrs; /* .zarray or .zgroup */
    int kind;
} documents2;

static void dispose_documents2(documents2 *docs)
{
    brc_json_free(docs->own);
    brc_json_free(docs->zattrs);
}

static int read_own2(documents2 *docs, zarr_node *node, const zarr_walk *at, brc_error *err)
{
    BRC_TRY(read_file(&docs->own, &node->file, at, ".zarray", parse_v2, err));
    docs->kind = docs->own ? BRC_ARRAY : 0;
    if (docs->own)
        return BRC_OK;
    BRC_TRY(read_file(&docs->own, &node->file, at, ".zgroup", parse_v2, err));
    docs->kind = docs->own ? BRC_GROUP : 0;
    return BRC_OK;
}

/* Makes the name, for messages, of a document that is only a copy. */
static int name_copy(zarr_node *node, const zarr_walk *at, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    char *label = NULL;
    int rc;

    free(node->file);
    node->file = NULL;
    BRC_GO(brc_tree_in_label(&label, at->tree, at->dir, err));
    BRC_GO(brc_buf_printf(&text, err, "%s in the consolidated metadata", label));
    rc = brc_buf_take_text(&text, &node->file, err);
done:
    free(label);
    brc_buf_dispose(&text);
    return rc;
}

static int copy_own2(documents2 *docs, zarr_node *node, const zarr_walk *at,
                     const brc_copied_node *copy, brc_error *err)
{
    const brc_json *own = copy->zarray ? copy->zarray : copy->zgroup;
    if (!own)
        return BRC_OK;
    docs->kind = copy->zarray ? BRC_ARRAY : BRC_GROUP;
    BRC_TRY(name_copy(node, at, err));
    return brc_json_clone(&docs->own, own, err);
}

static int translate2(zarr_node *node, const zarr_walk *at, const documents2 *docs, brc_error *err)
{
    char separator;
    int rc;
    if (docs->kind == BRC_GROUP) {
        rc = brc_zarr2_group_read(&node->doc, docs->own, docs->zattrs, err);
    } else {
        BRC_TRY(find_separator(&separator, at, docs->own, err));
        rc = brc_zarr2_array_import(&node->doc, &node->source, docs->own, docs->zattrs, separator,
                                    brc_session_registry(at->session), err);
        if (rc == BRC_OK)
            rc = brc_zarr2_texts_import(&node->texts, docs->own, docs->zattrs, separator,
                                        brc_session_registry(at->session), err);
    }
    if (rc < 0)
        brc_context(err, "%s", node->file);
    node->kind = docs->kind;
    return rc;
}

/* Reads a node of v2, with .zattrs. */
static int read_node2(zarr_node *node, const zarr_walk *at, const brc_copied_node *copy,
                      int *differs, brc_error *err)
{
    const brc_copied_node none = { 0 }, *known = copy ? copy : &none;
    documents2 docs = { 0 };
    char *label = NULL;
    int rc;

    BRC_GO(read_own2(&docs, node, at, err));
    if (!docs.own && known->v3)
        goto done;
    if (docs.own)
        BRC_GO(brc_copy_differs(differs, docs.own,
                                docs.kind == BRC_ARRAY ? known->zarray : known->zgroup, err));
    else
        BRC_GO(copy_own2(&docs, node, at, known, err));
    if (!docs.own)
        goto done;
    BRC_GO(read_file(&docs.zattrs, &label, at, ".zattrs", parse_v2, err));
    BRC_GO(take_copy(&docs.zattrs, known->zattrs, differs, err));
    rc = translate2(node, at, &docs, err);
done:
    free(label);
    dispose_documents2(&docs);
    return rc < 0 ? rc : BRC_OK;
}

/* The folder holds Kerchunk's references as Parquet: without them every chunk would be missing. */
static int refuse_parquet(const char *label, brc_error *err)
{
    return brc_fail(err, BRC_EUNSUPPORTED,
                    "%s says that the chunks are listed in Parquet files (Kerchunk's references), "
                    "which only breccia's Python package reads (session.import_): use that, or "
                    "write the references as JSON",
                    label);
}

/* Reads the copies of all nodes under a group, in its document or beside it. */
static int read_copies_of(const zarr_node *node, const zarr_walk *at, brc_error *err)
{
    const brc_json *member = brc_json_member(node->doc, "consolidated_metadata");
    brc_json *value = NULL;
    char *label = NULL;
    int rc = BRC_OK;

    if (member)
        rc = brc_json_clone(&value, member, err);
    else if (!node->doc)
        rc = read_file(&value, &label, at, ".zmetadata", parse_v2, err);
    if (rc == BRC_EINVAL) /* the documents may all exist */
        rc = brc_consolidated_unread(&at->sum->notes, at->dir, err);
    if (rc == BRC_OK && brc_json_member(value, "record_size"))
        rc = refuse_parquet(label, err);
    free(label);
    if (rc < 0 || !value) {
        brc_json_free(value);
        return rc;
    }
    return brc_consolidated_push(at->copies, value, member ? 3 : 2, at->dir, &at->sum->notes, err);
}

static int find_node_document(zarr_node *node, const zarr_walk *at, brc_error *err)
{
    int differs = 0, found;

    BRC_TRY(read_file(&node->doc, &node->file, at, "zarr.json", brc_json_parse_document, err));
    BRC_TRY(read_copies_of(node, at, err));
    const brc_copied_node *copy = brc_consolidated_find(*at->copies, at->dir);
    const int has_own = node->doc != NULL;
    if (!has_own)
        BRC_TRY(read_node2(node, at, copy, &differs, err));
    if (has_own || !node->doc) {
        found = take_copy(&node->doc, copy ? copy->v3 : NULL, &differs, err);
        if (found < 0)
            return found;
        if (found > 0)
            BRC_TRY(name_copy(node, at, err));
        if (node->doc)
            BRC_TRY(classify_node(node, err));
    }
    return differs ? brc_first_names_add(&at->sum->notes.differ, *at->dir ? at->dir : "/", err)
                   : BRC_OK;
}

/* Reads a node. The copies of a group stay in at->copies. */
static int read_node(zarr_node *node, const zarr_walk *at, brc_error *err)
{
    memset(node, 0, sizeof(*node));
    int rc = find_node_document(node, at, err);
    if (rc == BRC_OK && node->doc)
        rc = brc_nan_restore(node->doc, err);
    if (rc == BRC_OK && node->texts)
        rc = brc_nan_restore(node->texts, err);
    if (rc < 0)
        dispose_node(node);
    return rc;
}

/* ---- arrays ------------------------------------------------------------------------- */

/* Skips the copy of a node in an array. */
static int pass_copy_over(void *ctx, const char *name, brc_error *err)
{
    const zarr_walk *at = ctx;
    char *path;
    BRC_TRY(brc_tree_path(&path, at->dir, name, err));
    int rc = brc_first_names_add(&at->sum->notes.passed, path, err);
    free(path);
    return rc;
}

/* Imports an array as `doc` describes it. */
static int import_array_as(const zarr_walk *at, const zarr_node *node, const brc_json *doc,
                           brc_error *err)
{
    const int change = at->opts && (at->opts->chunk || at->opts->codecs_json);
    const brc_json *source = node->source ? node->source : change ? doc : NULL;
    brc_json *changed = NULL;
    brc_array *a = NULL;
    int rc;

    if (change)
        BRC_GO(brc_array_doc_changed(&changed, at->session, doc, at->path, at->opts, 0, err));
    rc = brc_array_create_doc(&a, at->session, at->path, change ? changed : doc, err);
    if (rc < 0) {
        if (rc != BRC_EEXISTS)
            brc_context(err, "%s", node->file);
        goto done;
    }
    if (at->is_folder)
        BRC_GO(zarr_take_chunks(a, source, at, err));
    at->sum->nodes++;
    rc = brc_consolidated_each(*at->copies, at->dir, pass_copy_over, (void *)(uintptr_t)at, err);
done:
    brc_array_free(a);
    brc_json_free(changed);
    return rc;
}

/* Imports an array: as one of texts if its chunks are those, else as it is. */
static int import_array(const zarr_walk *at, const zarr_node *node, brc_error *err)
{
    int texts = node->texts != NULL;

    if (at->tree->check)
        BRC_TRY(at->tree->check(at->tree, at->dir, err));
    if (texts && at->is_folder)
        BRC_TRY(are_texts(&texts, at->session, node->texts, at->tree, at->dir, err));
    return import_array_as(at, node, texts ? node->texts : node->doc, err);
}

/* ---- groups ------------------------------------------------------------------------- */

static int import_node(const zarr_walk *at, brc_error *err);

/* Tells whether the walk may go there: `kind` is the entry's. */
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

/* `as_copy`: there may be only a copy of the node's document. */
static int visit_node(const zarr_walk *above, const char *name, int as_copy, brc_error *err)
{
    zarr_walk at = *above;
    char *dir = NULL, *path = NULL;
    int kind, rc;

    BRC_GO(brc_store_check_interrupt(brc_session_repo(above->session)->store, err));
    BRC_GO(brc_tree_path(&dir, above->dir, name, err));
    if (brc_is_excluded(above->opts, dir, strlen(dir))) {
        above->sum->excluded = 1;
        goto done;
    }
    BRC_GO(above->tree->kind(above->tree, dir, &kind, err));
    at.is_folder = kind == BRC_ENTRY_DIR || kind == BRC_ENTRY_LINK_TO_DIR;
    if (!at.is_folder && !as_copy) {
        if (brc_is_like_chunk(name, strlen(name)))
            rc = brc_first_names_add(&above->sum->notes.chunks, dir, err);
        goto done;
    }
    if (at.is_folder && as_copy)
        goto done; /* it has been visited */
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

static int visit_child(void *ctx, const char *name, brc_error *err)
{
    return visit_node(ctx, name, 0, err);
}

static int visit_copy(void *ctx, const char *name, brc_error *err)
{
    return visit_node(ctx, name, 1, err);
}

static int visit_children(const zarr_walk *at, brc_error *err)
{
    void *ctx = (void *)(uintptr_t)at;
    if (at->is_folder)
        BRC_TRY(at->tree->each(at->tree, at->dir, visit_child, ctx, err));
    return brc_consolidated_each(*at->copies, at->dir, visit_copy, ctx, err);
}

/* Tells whether the copies in a document must be understood, and are thus more than copies. */
static int must_understand_copies(const brc_json *doc)
{
    const brc_json *copies = brc_json_member(doc, "consolidated_metadata");
    int must = 0;
    return brc_json_bool(brc_json_member(copies, "must_understand"), &must) && must;
}

static int import_group(const zarr_walk *at, zarr_node *node, brc_error *err)
{
    int rc = must_understand_copies(node->doc) ? brc_meta_check_group(node->doc, err) : BRC_OK;
    brc_json_remove(node->doc, "consolidated_metadata");
    if (rc == BRC_OK)
        rc = brc_group_create_doc(at->session, at->path, node->doc, err);
    if (rc < 0 && rc != BRC_EEXISTS)
        brc_context(err, "%s", node->file);
    if (rc == BRC_OK)
        at->sum->nodes += at->depth > 0;
    return rc;
}

/* Makes the node under the name that the caller wants for it. */
static int make_node_of(const zarr_walk *at, zarr_node *node, brc_error *err)
{
    char *path;
    zarr_walk renamed = *at;
    BRC_TRY(brc_dup(&path, at->path, err));
    int rc = brc_path_rename(&path, at->top, at->opts, err);
    renamed.path = path;
    if (rc == BRC_OK)
        rc = node->kind == BRC_ARRAY ? import_array(&renamed, node, err)
                                     : import_group(&renamed, node, err);
    free(path);
    return rc;
}

static int import_node(const zarr_walk *at, brc_error *err)
{
    brc_consolidated *outer = *at->copies;
    zarr_node node = { 0 };
    int rc;

    BRC_GO(read_node(&node, at, err));
    if (at->depth == 0)
        at->sum->has_root = node.doc != NULL;
    if (node.doc)
        BRC_GO(brc_attributes_pick(at->opts, at->dir, node.doc, err));
    if (node.texts)
        BRC_GO(brc_attributes_pick(at->opts, at->dir, node.texts, err));
    if (node.kind == BRC_ARRAY) {
        rc = at->bytes ? brc_add_doc_bytes(at->bytes, brc_session_registry(at->session), node.doc,
                                           err)
                       : make_node_of(at, &node, err);
        goto done;
    }
    if (node.kind == BRC_GROUP && !at->bytes)
        BRC_GO(make_node_of(at, &node, err));
    dispose_node(&node); /* not kept during the descent */
    rc = visit_children(at, err);
done:
    dispose_node(&node);
    while (*at->copies != outer)
        brc_consolidated_pop(at->copies);
    return rc;
}

static int open_tree(brc_tree_in **out, const brc_session *s, const brc_source *source,
                     brc_error *err)
{
    if (source->is_dir)
        return brc_tree_dir_open(out, s, source->name, err);
    return brc_is_kerchunk(source->head, source->head_len)
               ? brc_tree_kerchunk_open(out, s, source->name, err)
               : brc_tree_zip_open(out, source->name, err);
}

/* Refuses an import that brings nothing, even if the source has no fault. */
static int check_brought(const import_sum *sum, const char *name, brc_error *err)
{
    if (sum->nodes > 0 || sum->excluded || (sum->has_root && sum->notes.chunks.n == 0))
        return BRC_OK;
    if (sum->notes.chunks.n == 0)
        return brc_fail(err, BRC_EINVAL, "%s: it has no group and no array", name);
    int rc = brc_import_notes_barren(&sum->notes, err);
    brc_context(err, "%s", name);
    return rc;
}

static int walk_source(brc_session *s, const brc_source *source, const char *path,
                       const brc_xfer_opts *opts, uint64_t *bytes, brc_error *err)
{
    brc_tree_in *tree;
    brc_consolidated *copies = NULL;
    import_sum sum = { 0 };
    BRC_TRY(open_tree(&tree, s, source, err));
    zarr_walk top = { s, opts, source->parts, tree, "", path, path, 1, 0, bytes, &copies, &sum };
    int rc = import_node(&top, err);
    if (rc == BRC_OK && !bytes)
        rc = check_brought(&sum, source->name, err);
    if (rc == BRC_OK && !bytes)
        rc = brc_import_notes_write(&sum.notes, source->name, opts->warnings, err);
    if (rc == BRC_OK && !bytes && tree->warn && opts->warnings)
        rc = tree->warn(tree, opts->warnings, err);
    brc_import_notes_dispose(&sum.notes);
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
    brc_consolidated *copies = NULL;
    import_sum sum = { 0 };
    zarr_node node = { 0 };

    *is_group = 0;
    int rc = open_tree(&tree, s, source, &why);
    zarr_walk top = { .session = s, .tree = tree, .dir = "", .path = "/", .is_folder = 1,
                      .copies = &copies, .sum = &sum };
    if (rc == BRC_OK)
        rc = read_node(&node, &top, &why);
    *is_group = rc == BRC_OK && node.kind != BRC_ARRAY;
    dispose_node(&node);
    brc_consolidated_pop(&copies);
    brc_import_notes_dispose(&sum.notes);
    brc_tree_in_free(tree);
    return rc == BRC_ENOMEM ? brc_nomem(err) : BRC_OK;
}
