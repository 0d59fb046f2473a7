/*
 * A small repository, and edits of its rows with all hashes answered right: what an
 * enemy who knows the format can write. An edit of an object's content gives it its new
 * id, and everything that named the old one, up to commits, refs and drafts, the new one
 * too; checksums and guards are computed again with the file's secret. Rows that have a checksum
 * of their own get the right one at the end, unless an edit says that they do not.
 *
 * Edits are a program of bytes, so that a fuzzer and a random generator can write them:
 *
 *   u8 op   u8 table   u8 column   u8 value   u16le row   u16le at   u8 cut   u8 len
 *   `len` bytes
 *
 * Every number is taken modulo what there is, so every program does something.
 */
#ifndef BRC_TESTS_ROW_EDITS_H
#define BRC_TESTS_ROW_EDITS_H

#include "../../src/base/buf.h"

enum {
    ROW_SET,     /* a cell gets the value                                          */
    ROW_SPLICE,  /* of a cell's text or bytes, `cut` at `at` become the bytes      */
    ROW_CONTENT, /* the same of an object's content (where it is encoded, of its
                    stored bytes, which keep their id), and all follows             */
    ROW_SPEC,    /* the same of an encoding's specification; checksums follow      */
    ROW_COPY,    /* a row again, with another value in one column                  */
    ROW_DELETE,
    ROW_INSERT,  /* a new row: the value in its column, and 1 in all others        */
    ROW_BROKEN,  /* checksums of rows stay as they are, as after damage            */
    ROW_OPS
};
enum { /* the value of a cell */
    ROW_NULL,
    ROW_SMALL,  /* `at` as an integer                                              */
    ROW_EDGE,   /* an integer at the edge of some width                            */
    ROW_REAL,
    ROW_TEXT,   /* the bytes                                                       */
    ROW_BLOB,
    ROW_OTHER,  /* what the row `at` has in this column                            */
    ROW_VALUES
};

/* Tables in the order of the number `table`; the count of them behind the last. */
enum {
    ROW_META, ROW_OBJECT, ROW_BLOBS, ROW_ENCODING, ROW_REF, ROW_OPLOG, ROW_DRAFT, ROW_DRAFT_NODE,
    ROW_DRAFT_CHUNK, ROW_COMMIT_INFO, ROW_SEQUENCE, ROW_DRAFT_DOC, ROW_DRAFT_KEY, ROW_DRAFT_MOVE,
    ROW_CONFLICT, ROW_DELTA, ROW_BACKEND, ROW_PLACE, ROW_BOUNDARY, ROW_PIN, ROW_GC, ROW_GC_KEPT,
    ROW_NODE_TOTAL, ROW_ENCODED, ROW_REMOVED, ROW_TABLES
};

#define ROW_EDIT_HEAD 10
#define ROW_EDITS_MAX 16 /* of a program that are done; the rest is not read */

/* The bytes of sample_repo.h's repository, made at the path `scratch`, with small pages.
 * Release with brc_buf_dispose(). */
brc_buf row_edits_base(const char *scratch);
/* Does the edits to the file at `path`, which is base's. */
void row_edits_apply(const char *path, const uint8_t *program, size_t len);

/* A program like this one: an edit more, one less, or one that is slightly different. It
 * has room for `max` bytes; the new length. `random` is splitmix64's state. */
size_t row_edits_mutate(uint8_t *program, size_t len, size_t max, uint64_t *random);

#endif
