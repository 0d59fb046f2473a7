/* The document of an array that is imported with other chunks or codecs than its source's. */
#ifndef BRC_XFER_DOCUMENTS_H
#define BRC_XFER_DOCUMENTS_H

#include "../base/alloc.h"
#include "../base/json.h"

/* ---- first names -------------------------------- */

/* Names in a warning: the first few, and the number of the others. */

typedef struct brc_first_names {
    brc_buf text; /* the first names, with commas */
    uint64_t n;   /* the number of all              */
} brc_first_names;

BRC_MUST_USE int brc_first_names_add(brc_first_names *names, const char *name, brc_error *err);
/* Appends "/a, /b and 3 more". */
BRC_MUST_USE int brc_first_names_write(const brc_first_names *names, brc_buf *out, brc_error *err);
void brc_first_names_dispose(brc_first_names *names);

/* ---- array doc -------------------------------- */

/* Copies doc with the chunks and codecs that the caller asked for. `fresh`: codecs that the caller does not name
 * are those of a new array instead of the source's. */
BRC_MUST_USE int brc_array_doc_changed(brc_json **out, brc_session *s, const brc_json *doc,
                                       const char *path, const brc_xfer_opts *opts, int fresh,
                                       brc_error *err);
/* Adds the decoded bytes of the array that the document describes, for progress: a document that is not valid
 * counts as 0, and is reported when it is imported. */
BRC_MUST_USE int brc_add_doc_bytes(uint64_t *sum, const brc_registry *reg, const brc_json *doc,
                                   brc_error *err);

/* ---- nan mark -------------------------------- */

/*
 * Attributes that are NaN or infinite, in documents that any reader of JSON must be able to read.
 *
 * Such a number becomes a value that JSON has, and one attribute says where these numbers are:
 *
 *   "_breccia_numbers": "{\"numbers\":{\"/valid_max\":\"Infinity\",\"/a/0\":\"NaN\"}}"
 *
 * The attribute is a text, because xarray writes no other kind into NetCDF, and has a JSON pointer
 * below the attributes for each number. The value in place of a number is its name as a text, except:
 *
 *   null        for NaN as the missing_value of an array: xarray skips null, and cannot save a text
 *               that it takes for a value; likewise as _FillValue in Zarr v2
 *   base64      for the _FillValue of floats in Zarr v3: the form that xarray has there
 *
 * On the way back, a place that holds anything else is left as it is, because its writer meant that
 * value. If the attributes have an attribute of this name already, the text contains it as "own", so
 * that a user's text is never taken for a mark.
 */

#define BRC_NUMBERS_MARK "_breccia_numbers"

/* The state of one export. */
typedef struct brc_nan_out {
    int tokens;    /* 1: documents keep NaN, Infinity and -Infinity, as zarr-python writes these */
    int version;   /* of Zarr: 2 or 3                                          */
    brc_first_names nodes; /* the nodes whose attributes had such numbers       */
} brc_nan_out;

/* Prepares the attributes of a node's document for the export (the document is Zarr v3, also if v2 is written). */
BRC_MUST_USE int brc_nan_mark(brc_nan_out *out, brc_json *doc, const char *path, brc_error *err);
/* Appends one warning about all such nodes, a line, if there were any. `warnings` may be NULL. */
BRC_MUST_USE int brc_nan_warn(const brc_nan_out *out, brc_buf *warnings, brc_error *err);
void brc_nan_out_dispose(brc_nan_out *out);

/* Restores the numbers that a mark names in an imported document, and removes the mark. */
BRC_MUST_USE int brc_nan_restore(brc_json *doc, brc_error *err);

/* ---- consolidated -------------------------------- */

/*
 * Consolidated metadata: a group's copies of the documents of all nodes under it.
 *
 * In Zarr v2 the copies are in ".zmetadata", by the names of files ("a/.zarray"); in v3 in the
 * member "consolidated_metadata" of the group's document, by the paths of nodes. Some sources have
 * the documents of their nodes nowhere else. A copy may be out of date: if a document exists as
 * well, the document counts.
 *
 * Groups within groups have such copies, too: a `brc_consolidated` points to the one of the group
 * around it, and the inner one counts. Names in copies are hostile: a name that leads out of the
 * source, or that a file cannot have, is skipped and counted.
 */

/* The copies for one node. */
typedef struct brc_copied_node {
    const char *path; /* in the source: "a/b"; "" is its root */
    const brc_json *v3, *zarray, *zgroup, *zattrs; /* NULL: there is none */
    int used; /* for the caller to set */
} brc_copied_node;

typedef struct brc_consolidated brc_consolidated;
struct brc_consolidated {
    brc_consolidated *outer; /* of the next group above with copies; NULL: none */
    void *nodes;             /* brc_copied_node[], sorted by brc_path_order() */
    size_t n, cap, total;    /* total: the copies here and in all outer ones */
    brc_json *value;
    brc_arena arena;
};

/* The findings that an import reports about its source at the end. */
typedef struct brc_import_notes {
    brc_first_names differ; /* nodes whose documents differ from the copies           */
    brc_first_names passed; /* copies of nodes that cannot exist                       */
    brc_first_names unread; /* groups whose copies are not JSON, or not of the right form */
    brc_first_names chunks; /* chunks that belong to no array                          */
    brc_first_names inside; /* of an import that leaves chunks in the source: arrays of which some are stored */
} brc_import_notes;

/* Puts the copies of the group `path` in front of *chain. `value`: a ".zmetadata", or the member of a document of
 * v3 if `version` is 3; it is consumed. A value of another form has no copies, which is noted. BRC_ELIMIT if groups
 * within groups have too many copies. */
BRC_MUST_USE int brc_consolidated_push(brc_consolidated **chain, brc_json *value, int version, const char *path,
                                       brc_import_notes *notes, brc_error *err);
/* Notes that the copies of the group `path` cannot be read. */
BRC_MUST_USE int brc_consolidated_unread(brc_import_notes *notes, const char *path, brc_error *err);
/* Frees the first element of the chain; its outer one becomes the first. */
void brc_consolidated_pop(brc_consolidated **chain);
/* Returns NULL if there is no copy of the node. */
brc_copied_node *brc_consolidated_find(const brc_consolidated *chain, const char *path);
/* Calls each() for each name in the folder `dir` that leads to a copy. */
BRC_MUST_USE int brc_consolidated_each(const brc_consolidated *chain, const char *dir,
                                       int (*each)(void *ctx, const char *name, brc_error *err), void *ctx,
                                       brc_error *err);
/* Sets *differs to 1 if both exist and the copy differs; otherwise leaves it. */
BRC_MUST_USE int brc_copy_differs(int *differs, const brc_json *doc, const brc_json *copy, brc_error *err);
/* Appends a line for each finding. `source`: its name. `warnings` may be NULL. */
BRC_MUST_USE int brc_import_notes_write(const brc_import_notes *notes, const char *source, brc_buf *warnings,
                                        brc_error *err);
/* Tells whether a name could be a chunk's key, or the last part of one: "0.0", "c", "c.0.0". */
int brc_is_like_chunk(const char *name, size_t len);
/* Fails: the source has only chunks that belong to no array. */
BRC_MUST_USE int brc_import_notes_barren(const brc_import_notes *notes, brc_error *err);
void brc_import_notes_dispose(brc_import_notes *notes);

#endif
