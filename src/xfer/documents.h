/* The document of an array that comes in with other chunks or codecs than its source's. */
#ifndef BRC_XFER_DOCUMENTS_H
#define BRC_XFER_DOCUMENTS_H

#include "../base/alloc.h"
#include "../base/json.h"
#include "names.h"

/* ---- array doc -------------------------------- */

/* A copy of doc with the chunks and codecs that the caller asked for. `fresh`: codecs that
 * nobody asked for are those of a new array, and not the source's. */
BRC_MUST_USE int brc_array_doc_changed(brc_json **out, brc_session *s, const brc_json *doc,
                                       const char *path, const brc_xfer_opts *opts, int fresh,
                                       brc_error *err);
/* Adds the decoded bytes of the array that the document describes, for progress: a wrong
 * document counts as nothing, and is reported when it is imported. */
BRC_MUST_USE int brc_add_doc_bytes(uint64_t *sum, const brc_registry *reg, const brc_json *doc,
                                   brc_error *err);

/* ---- nan mark -------------------------------- */

/*
 * Attributes that are NaN or infinite, in documents that any reader of JSON must be able to read.
 *
 * Such a number becomes a value that JSON has, and one attribute says where they are:
 *
 *   "_breccia_numbers": "{\"numbers\":{\"/valid_max\":\"Infinity\",\"/a/0\":\"NaN\"}}"
 *
 * a text, for xarray writes no other kind into NetCDF, with a JSON pointer below the attributes for
 * each number. What stands there is the number's name as a text, but
 *
 *   null        for NaN as the missing_value of an array: xarray passes over null, and cannot save
 *               a text that it takes for a value; likewise as _FillValue in Zarr v2
 *   base64      for the _FillValue of floats in Zarr v3: what xarray has there
 *
 * On the way back a place that holds anything else is left as it is: whoever wrote it meant it.
 * Where the attributes have an attribute of this name already, it is in the text as "own", so that
 * no text which a user set is ever taken for a mark.
 */

#define BRC_NUMBERS_MARK "_breccia_numbers"

/* Of one export. */
typedef struct brc_nan_out {
    int tokens;    /* 1: documents keep NaN, Infinity and -Infinity, as zarr-python writes them */
    int version;   /* of Zarr: 2 or 3                                          */
    brc_first_names nodes; /* whose attributes had such numbers                 */
} brc_nan_out;

/* Makes the attributes of a node's document (of Zarr v3, also where v2 is written) ready to leave. */
BRC_MUST_USE int brc_nan_mark(brc_nan_out *out, brc_json *doc, const char *path, brc_error *err);
/* Appends the one warning about all such nodes, a line, if there were any. `warnings` may be NULL. */
BRC_MUST_USE int brc_nan_warn(const brc_nan_out *out, brc_buf *warnings, brc_error *err);
void brc_nan_out_dispose(brc_nan_out *out);

/* Makes numbers of what a mark names in a document that came, and takes the mark away. */
BRC_MUST_USE int brc_nan_restore(brc_json *doc, brc_error *err);

/* ---- consolidated -------------------------------- */

/*
 * Consolidated metadata: the copies of documents that a group has of all nodes under it.
 *
 * In Zarr v2 they are in ".zmetadata", by the names of files ("a/.zarray"); in v3 in the member
 * "consolidated_metadata" of the group's document, by the paths of nodes. Some sources have documents
 * of their nodes nowhere else. A copy may be out of date: where both are there, the document counts.
 *
 * Groups within groups have such copies, too: a `brc_consolidated` knows the one of the group around
 * it, and the inner one counts. Names in them are hostile: one that leads out of the source, or that
 * no file can have, is passed over and counted.
 */

/* What the copies say of one node. */
typedef struct brc_copied_node {
    const char *path; /* in the source: "a/b"; "" is its root */
    const brc_json *v3, *zarray, *zgroup, *zattrs; /* NULL: there is none */
    int used; /* the caller's to set */
} brc_copied_node;

typedef struct brc_consolidated brc_consolidated;
struct brc_consolidated {
    brc_consolidated *outer; /* of a group around this; NULL: none has any */
    void *nodes;             /* brc_copied_node[], by brc_path_order()     */
    size_t n, cap, total;    /* total: copies in this and those around it  */
    brc_json *value;
    brc_arena arena;
};

/* What an import has to say of its source in the end. */
typedef struct brc_import_notes {
    brc_first_names differ; /* nodes whose documents are others than the copies       */
    brc_first_names passed; /* copies of nodes that cannot be there                    */
    brc_first_names unread; /* groups whose copies are not JSON, or not of the form    */
    brc_first_names chunks; /* that belong to no array                                 */
} brc_import_notes;

/* Puts the copies of the group `path` in front of *chain. `value`: a ".zmetadata", or the member of a
 * document of v3 if `version` is 3; it is consumed. What is not of that form has no copies, which is noted. BRC_ELIMIT
 * if groups within groups have too many. */
BRC_MUST_USE int brc_consolidated_push(brc_consolidated **chain, brc_json *value, int version, const char *path,
                                       brc_import_notes *notes, brc_error *err);
/* Notes that the copies of the group `path` cannot be read. */
BRC_MUST_USE int brc_consolidated_unread(brc_import_notes *notes, const char *path, brc_error *err);
/* Frees the first of the chain, which its outer one takes the place of. */
void brc_consolidated_pop(brc_consolidated **chain);
/* NULL if there is no copy of the node. */
brc_copied_node *brc_consolidated_find(const brc_consolidated *chain, const char *path);
/* Each name in the folder `dir` that leads to a copy. */
BRC_MUST_USE int brc_consolidated_each(const brc_consolidated *chain, const char *dir,
                                       int (*each)(void *ctx, const char *name, brc_error *err), void *ctx,
                                       brc_error *err);
/* *differs becomes 1 if both are there and the copy differs; else it stays. */
BRC_MUST_USE int brc_copy_differs(int *differs, const brc_json *doc, const brc_json *copy, brc_error *err);
/* A line for each thing to know. `source`: its name. `warnings` may be NULL. */
BRC_MUST_USE int brc_import_notes_write(const brc_import_notes *notes, const char *source, brc_buf *warnings,
                                        brc_error *err);
/* Whether a name could be a chunk's, or the last part of one's: "0.0", "c", "c.0.0". */
int brc_is_like_chunk(const char *name, size_t len);
/* Fails: the source has chunks that belong to no array, and nothing else. */
BRC_MUST_USE int brc_import_notes_barren(const brc_import_notes *notes, brc_error *err);
void brc_import_notes_dispose(brc_import_notes *notes);

#endif
