/*
 * Kerchunk's references: a JSON text that lists the files of a Zarr hierarchy, each with its bytes or with the range
 * of another file in which they lie.
 *
 *   {"version": 1, "templates": {"u": "a/b.nc"},
 *    "refs": {".zgroup": "{...}", "x/0.0": ["{{u}}", OFFSET, LENGTH], "x/0.1": ["b.nc"], "y/0": "base64:..."},
 *    "gen": [{"key": "z/{{i}}", "url": "{{u}}", "offset": "{{i * 100}}", "length": "100",
 *             "dimensions": {"i": {"stop": 5}}}]}
 *
 * Version 0 is the object "refs" alone. (docs/source/spec.rst of kerchunk.) Everything here is hostile. Addresses are
 * only texts here: tree_kerchunk.c says which of them are followed.
 */
#ifndef BRC_XFER_ZARR_KERCHUNK_H
#define BRC_XFER_ZARR_KERCHUNK_H

#include "../../base/alloc.h"
#include "../../base/json.h"

/* The most files of a set, and the most bytes that templates make. */
#define BRC_KERCHUNK_MOST ((size_t)1 << 22)
#define BRC_KERCHUNK_BYTES ((uint64_t)256 << 20)

/* One file of the hierarchy. */
typedef struct brc_kerchunk_ref {
    const char *key; /* its path: "a/b/0.0", without ".", ".." and empty parts */
    size_t key_len;
    const brc_json *data; /* its bytes: a text, or a document; NULL: they lie elsewhere */
    const char *url;      /* the address of the file in which they lie */
    int whole;            /* they are the whole of that file, or the range: */
    uint64_t offset, len;
} brc_kerchunk_ref;

typedef struct brc_kerchunk {
    brc_kerchunk_ref *refs; /* in the order of tree_names.h */
    size_t n, cap;
    brc_json *doc;   /* names and texts belong to it ... */
    brc_arena arena; /* ... or to this                   */
    uint64_t made;   /* bytes that templates have made   */
} brc_kerchunk;

/* Tells whether a file begins as a JSON object does: only the whole file tells whether it is a set. */
int brc_is_kerchunk(const uint8_t *head, size_t n);
/* Reads a set. BRC_EINVAL and BRC_EUNSUPPORTED name the key and the fault; BRC_ELIMIT if there is too much of it.
 * *out is to be disposed of even after a failure. */
BRC_MUST_USE int brc_kerchunk_read(brc_kerchunk *out, const char *text, size_t len, brc_error *err);
/* Appends the bytes of a file that are in the set itself; BRC_ELIMIT past `limit` bytes. */
BRC_MUST_USE int brc_kerchunk_data(brc_buf *out, const brc_kerchunk_ref *ref, uint64_t limit, brc_error *err);
void brc_kerchunk_dispose(brc_kerchunk *refs);

/* ---- templates -------------------------------- */

/* The names that an expression in a text may use. */
typedef struct brc_kerchunk_axis {
    const char *name;
    int64_t value;
} brc_kerchunk_axis;
typedef struct brc_kerchunk_names {
    const brc_json *templates; /* an object of texts; NULL: none */
    const brc_kerchunk_axis *axes;  /* the dimensions of a "gen", which count first */
    size_t naxes;
} brc_kerchunk_names;

/* Appends a text in which each "{{...}}" is replaced by its value. An expression is the name of a template, or one of
 * integers with names, + - * // % and parentheses. BRC_EUNSUPPORTED for everything else that Jinja has. */
BRC_MUST_USE int brc_kerchunk_render(brc_buf *out, const char *text, const brc_kerchunk_names *names, brc_error *err);

#endif
