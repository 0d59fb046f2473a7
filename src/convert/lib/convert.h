/*
 * Converters: programs that turn a file of another format into a Zarr v3 hierarchy, as a
 * tar stream on standard output, and one on standard input into a file. Each format has a
 * driver that speaks with its library (src/convert/hdf5, src/convert/netcdf); what all of
 * them need is here: the command line, the sandbox, the stream, and the cutting of arrays.
 *
 *   FORMAT import [--exclude PATTERN]... [--skip-unsupported] [--hdf5-plugins FOLDERS] FILE
 *   FORMAT export [--classic] [--path PATH] FILE
 *
 * The exit status and the one sentence on standard error are those of
 * src/xfer/foreign/protocol.h. --path is what the node that is exported is called in its
 * repository: messages name nodes by that, and an array by itself gets its last name.
 *
 * One thread, one run, one file: a library may crash, and then the process ends. Memory,
 * files and system calls are limited before the file is opened (sandbox.h).
 */
#ifndef BRC_CONVERT_LIB_CONVERT_H
#define BRC_CONVERT_LIB_CONVERT_H

#include "../../base/json.h"
#include "../../base/node_path.h"
#include "../../base/part.h"
#include "../../nd/shape.h"
#include "../../xfer/tar/tar.h"
#include "../../zarr/doc/meta.h"

typedef struct brc_convert brc_convert; /* one run */

const brc_registry *brc_convert_registry(const brc_convert *c);
/* A data type as a brc_array_spec has it ("float32", or the text of a JSON object) as JSON, and opened. */
BRC_MUST_USE int brc_convert_dtype_json(brc_json **out, const char *dtype, brc_error *err);
BRC_MUST_USE int brc_convert_dtype_open(brc_dtype **out, const brc_registry *reg, const char *dtype, brc_error *err);
/* The file's name, as messages have it. */
const char *brc_convert_file(const brc_convert *c);
/* The folders of HDF5's filters, with ":" between them. */
const char *brc_convert_plugins(const brc_convert *c);

/* The node in the group `path` that a file's group, variable or dataset of this name becomes; a name
 * that no node may have ("..", "a/b", "__x") is escaped. The caller frees it. */
BRC_MUST_USE int brc_convert_node_path(char **out, const brc_convert *c, const char *path, const char *name, brc_error *err);

/* Whether there can be a node "/a/b"; if not, it is such a part too. */
BRC_MUST_USE int brc_convert_place_check(const char *label, const char *node, brc_error *err);

/* The file's path from the root, so that names in it can be taken from its folder; the file's name where
 * that is not known. The caller frees it. */
BRC_MUST_USE int brc_convert_real_path(char **out, const brc_convert *c, brc_error *err);
/* Whether this file may be read, and its size: 0, or -errno; -EACCES where the rule of door.h forbids it. */
int brc_convert_reach(const brc_convert *c, const char *path, uint64_t *size);

/* ---- import -------------------------------- */

/* A driver's walk() goes through its file twice. In the first round every document is
 * written: what cannot be imported fails here, before there is a byte of data. In the
 * second one only arrays count, and only their elements are read. */
enum { BRC_CONVERT_DOCS = 1, BRC_CONVERT_CHUNKS };
int brc_convert_phase(const brc_convert *c);

/* Sets the format of the names in the file (BRC_NAMES_*) from now on, if it is not the driver's. */
void brc_convert_use_names(brc_convert *c, int names);

/* Returns the path in a label: "/a/b" of "x.h5: /a/b". */
const char *brc_convert_path(const brc_convert *c, const char *label);
/* Returns whether this node of the file, "a/b" or "/a/b", is left out: because the caller wants it, or because
 * the first round could not keep the node. */
int brc_convert_is_excluded(brc_convert *c, const char *path);
/* Returns whether the caller wants this attribute of a node left out. */
int brc_convert_lacks_attribute(brc_convert *c, const char *path, const char *name);

/*
 * Handles the result (rc, *err) of importing a node or, if `attribute` is not NULL, one of its attributes. A
 * function that cannot keep a part fails with BRC_EUNSUPPORTED, best by
 *
 *     return brc_part_refuse(err, BRC_PART_STORAGE, "copy it with h5repack", "%s is a virtual dataset", label);
 *
 * and walks, and loops over attributes, hand each such failure to this function. It puts the part into the list
 * and returns 1: the part is left out, and the import goes on with the next. Returns 0 if rc is BRC_OK. All
 * other failures concern the whole file, and are returned. `path` is the path in the file, "/a/b".
 */
BRC_MUST_USE int brc_convert_settle(brc_convert *c, int rc, const char *path, const char *attribute, brc_error *err);

/* Imports a group; attrs_json NULL: it has no attributes. A group comes before its members, the
 * root ("/") first. Does nothing in the second round. */
BRC_MUST_USE int brc_convert_group(brc_convert *c, const char *path, const char *attrs_json, brc_error *err);

/* Bytes that a file stores. A reference to them takes 1.5 KiB in the stream, and a read of its
 * own, so fewer bytes than this are sent themselves. */
#define BRC_CONVERT_REFERRED_LEAST 4096
typedef struct brc_stored_in {
    int refers;          /* 1: the bytes are `range` of the file; 0: `bytes` */
    brc_tar_range range;
    brc_span bytes;
} brc_stored_in;

/* The description of an array of a file, and the functions to read it. The caller of
 * brc_convert_array() owns all of it, and it is used during that call alone. The first round ignores
 * the fields for elements (ctx and those after it), except `codecs`, and except for an array that is
 * doubtful. */
typedef struct brc_array_in {
    const char *path;  /* the node that it becomes                             */
    const char *label; /* for messages: "x.nc: /a/b"                           */
    const char *dtype; /* as in a brc_array_spec: "float32", or a JSON object  */
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    int chunked;                  /* 0: chunks are chosen as for a new array     */
    uint64_t chunk[BRC_MAX_NDIM]; /* as the file has it, each at least 1         */
    const char *const *names;     /* ndim of them, each may be NULL; NULL: none  */
    const char *fill;             /* JSON, as in a brc_array_spec; NULL: default */
    int lacks_fill; /* the file marks no value as missing: Zarr v2 then has null */
    const char *attrs_json;       /* NULL: none                                  */
    const char *note_name;        /* a member of zarr.json that readers pass over: what */
    const brc_json *note;         /* the file says and Zarr has no word for; NULL: none */
    int doubtful; /* an element may be such as cannot be kept, a text that is not UTF-8: where parts
                     are skipped, all are read in the first round too                     */
    /* Chunks that pass as the file stores them: the list of codecs that says how, as JSON,
     * and then only next_chunk() is called. NULL: the elements are read. */
    const char *codecs;
    /* With codecs that are `bytes` alone: where in the file all elements lie, in C order, and no
     * chunk is asked for. NULL: there is no such place. */
    const brc_tar_range *elements;
    void *ctx;
    /* 1 and the next stored chunk, 0 at the end. The bytes are valid until the next call. */
    int (*next_chunk)(void *ctx, uint64_t *index, brc_stored_in *stored, brc_error *err);
    /* The elements of a box without steps, packed in C order in native byte order,
     * len bytes. Types of a fixed size. */
    int (*read)(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err);
    /* The same appended, each element as its length (u32le) and its bytes. Types of
     * variable length. */
    int (*read_elements)(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err);
    /* Where the file stores few of the elements: 1 and the next box of them, which is one
     * chunk, cut at the array's edge; 0 at the end. All others have the fill value.
     * NULL: everything is read. */
    int (*next)(void *ctx, brc_sel *box, brc_error *err);
} brc_array_in;

/* The array's document, or its chunks. Elements are read in boxes of whole chunks, of 4 MiB
 * or one chunk, so that memory is bounded whatever a header says and no chunk is met twice. */
BRC_MUST_USE int brc_convert_array(brc_convert *c, const brc_array_in *array, brc_error *err);

/* ---- export -------------------------------- */

/* A node of the stream. */
typedef struct brc_node_out {
    char *path;         /* its name in messages: "/data/a/b", where --path is "/data"     */
    char *inner;        /* below the file's root, by names that the format can have: "a/b"; "" for
                           that itself                                                   */
    char *key;          /* the same as the stream has it                                 */
    brc_json *doc;
    brc_meta *meta;     /* of an array: shape, type, fill value, grid; NULL: a group. It is
                           readable, or the export has failed before the driver sees it.
                           meta->grid.chunk is the edge of chunks, or the longest.       */
    const brc_json *codecs; /* of an array: how it is encoded in its repository, for drivers that
                           compress what was compressed; NULL: not known. The stream's own
                           codecs, in doc, are other ones                                */
    size_t number;      /* its place in the walk, from 0                                 */
} brc_node_out;

/* All nodes, each before what is in it, as the stream has them. */
size_t brc_convert_nodes(const brc_convert *c);
const brc_node_out *brc_convert_node(const brc_convert *c, size_t i);
/* The one with this path in the stream, or NULL. */
const brc_node_out *brc_convert_node_at(const brc_convert *c, const char *key);

/* ---- a driver -------------------------------- */

/* prepare() is what must happen before the sandbox closes: loading libraries; NULL: nothing.
 *
 * State is made by open() or create() and given back to close(), which is also called where
 * these have failed (with NULL if they set nothing). */
typedef struct brc_driver {
    const char *format; /* for messages: "HDF5" */
    int names;          /* BRC_NAMES_* (src/base/node_path.h) */
    int classic;        /* takes --classic      */

    int (*prepare)(const char *plugins, brc_error *err);

    /* Import: opens the file, then walks twice. */
    int (*open)(void **state, brc_convert *c, const char *file, brc_error *err);
    int (*walk)(void *state, brc_error *err);

    /* Export: create() makes the file and all that is in it but elements; it sees all nodes.
     * Then array by array: begin(), put() for each box, end(). *all set to 1 by begin(): put()
     * gets every element; else what is not in the stream has the fill value and is left out.
     * Boxes have no steps; elements are packed in C order in native byte order, those of
     * variable length each as u32le and its bytes. An array without elements has no box.
     * At last finish(), which closes the file. */
    int (*create)(void **state, brc_convert *c, const char *file, int classic, brc_error *err);
    int (*begin)(void *state, const brc_node_out *array, int *all, brc_error *err);
    int (*put)(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err);
    int (*end)(void *state, brc_error *err);
    int (*finish)(void *state, brc_error *err);

    void (*close)(void *state);
} brc_driver;

/* The program: what its main() returns. */
int brc_convert_main(int argc, char **argv, const brc_driver *driver);

#endif
