/*
 * Converters: programs that turn a file of another format into a Zarr v3 hierarchy, as a tar stream on standard
 * output, or such a stream on standard input into a file. Each format has a driver that uses the format's library
 * (src/convert/hdf5, src/convert/netcdf). This folder has the parts that all drivers need: the command line, the
 * sandbox, the stream, and the cutting of arrays.
 *
 *   FORMAT import [--exclude PATTERN]... [--skip-unsupported] [--external] [--hdf5-plugins FOLDERS] FILE
 *   FORMAT export [--netcdf] [--path PATH] FILE
 *
 * The exit status and the one sentence on standard error are those of src/xfer/foreign/protocol.h. --path is the
 * exported node's path in its repository: messages name nodes by this path, and a single array is named after its
 * last part. --external: chunks stay in the file, so an array without chunks there gets chunks that are ranges of it.
 *
 * A process has one thread, one run and one file, because a library may crash, which ends the process. Memory, files
 * and system calls are limited before the file is opened (sandbox.h).
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
/* Converts a data type, as in a brc_array_spec ("float32", or the text of a JSON object), to JSON, and opens it. */
BRC_MUST_USE int brc_convert_dtype_json(brc_json **out, const char *dtype, brc_error *err);
BRC_MUST_USE int brc_convert_dtype_open(brc_dtype **out, const brc_registry *reg, const char *dtype, brc_error *err);
/* Returns the file's name for messages. */
const char *brc_convert_file(const brc_convert *c);
/* Returns the folders of HDF5's filters, separated by ":". */
const char *brc_convert_plugins(const brc_convert *c);

/* Makes the path of the node for a group, variable or dataset with this name in the group `path`. A name that no node
 * may have ("..", "a/b", "__x") is escaped. The caller frees the path. */
BRC_MUST_USE int brc_convert_node_path(char **out, const brc_convert *c, const char *path, const char *name, brc_error *err);

/* Checks that there can be a node "/a/b"; if not, the node is a part that cannot be kept. */
BRC_MUST_USE int brc_convert_place_check(const char *label, const char *node, brc_error *err);

/* Finds the file's path from the root, to resolve names in the file from its folder; the file's name if the path is
 * not known. The caller frees the path. */
BRC_MUST_USE int brc_convert_real_path(char **out, const brc_convert *c, brc_error *err);
/* Finds the size of a file that may be read. Returns 0 or -errno; -EACCES if the rule of door.h forbids the file. */
int brc_convert_reach(const brc_convert *c, const char *path, uint64_t *size);

/* ---- import -------------------------------- */

/* A driver's walk() goes through its file twice. The first round writes all documents: an import that cannot work
 * fails here, before there is a byte of data. In the second round only arrays count, and only their elements are
 * read. */
enum { BRC_CONVERT_DOCS = 1, BRC_CONVERT_CHUNKS };
int brc_convert_phase(const brc_convert *c);

/* Sets the format of names in the file (BRC_NAMES_*) from now on, if it differs from the driver's. */
void brc_convert_use_names(brc_convert *c, int names);

/* Returns the path in a label: "/a/b" of "x.h5: /a/b". */
const char *brc_convert_path(const brc_convert *c, const char *label);
/* Returns whether this node of the file, "a/b" or "/a/b", is left out: because the caller excludes the node, or
 * because the first round could not keep it. */
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
 * own, so fewer bytes than brc_convert_refers_from() returns are sent themselves. */
uint64_t brc_convert_refers_from(const brc_convert *c);
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
    const char *path;  /* the path of the array's node */
    const char *label; /* for messages: "x.nc: /a/b"                           */
    const char *dtype; /* as in a brc_array_spec: "float32", or a JSON object  */
    int ndim;
    uint64_t shape[BRC_MAX_NDIM];
    int chunked;                  /* 0: chunks are chosen as for a new array     */
    uint64_t chunk[BRC_MAX_NDIM]; /* as in the file, each at least 1 */
    const char *const *names;     /* ndim of them, each may be NULL; NULL: none  */
    const char *fill;             /* JSON, as in a brc_array_spec; NULL: default */
    int lacks_fill; /* the file marks no value as missing: Zarr v2 then has null as fill value */
    const char *attrs_json;       /* NULL: none                                  */
    const char *note_name;        /* a member of zarr.json with facts that only the file's format has; */
    const brc_json *note;         /* its value, or NULL; readers may ignore it */
    int doubtful; /* an element may be one that cannot be kept, such as a text that is not
                   * UTF-8: if parts are skipped, the first round reads all elements too */
    /* For chunks that pass as the file stores them: the list of their codecs as JSON; then only next_chunk() is
     * called. NULL: the elements are read. */
    const char *codecs;
    /* With `bytes` as the only codec: the place in the file of all elements, in C order; then next_chunk() is not
     * called. NULL: there is no such place. */
    const brc_tar_range *elements;
    void *ctx;
    /* Returns 1 with the next stored chunk, or 0 at the end. The bytes are valid until the next call. */
    int (*next_chunk)(void *ctx, uint64_t *index, brc_stored_in *stored, brc_error *err);
    /* Reads the elements of a box without steps, packed in C order in native byte order, `len` bytes. For types of a
     * fixed size. */
    int (*read)(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err);
    /* Appends the elements of a box, each as its length (u32le) and its bytes. For types of variable length. */
    int (*read_elements)(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err);
    /* For files that store few of the elements: returns 1 with the next box of stored elements, which is one chunk,
     * cut at the array's edge; 0 at the end. All other elements have the fill value. NULL: everything is read. */
    int (*next)(void *ctx, brc_sel *box, brc_error *err);
} brc_array_in;

/* Writes the array's document, or its chunks. Elements are read in boxes of whole chunks, of 4 MiB or one chunk: so
 * memory is bounded whatever a header claims, and no chunk is read twice. */
BRC_MUST_USE int brc_convert_array(brc_convert *c, const brc_array_in *array, brc_error *err);

/* ---- export -------------------------------- */

/* A node of the stream. */
typedef struct brc_node_out {
    char *path;         /* the path in messages: "/data/a/b", if --path is "/data" */
    char *inner;        /* the path in the file, of names that the format allows: "a/b"; "" for the root */
    char *key;          /* the path in the stream */
    brc_json *doc;
    brc_meta *meta;     /* of an array: shape, type, fill value, grid; NULL: a group. It is
                         * valid, otherwise the export has failed before the driver sees it.
                         * meta->grid.chunk is the edge of chunks, or of the longest */
    const brc_json *codecs; /* of an array: its codecs in the repository, for drivers that
                             * compress arrays that were compressed; NULL: not known. The
                             * stream's own codecs, in doc, differ */
    size_t number;      /* the number in the walk, from 0 */
} brc_node_out;

/* Returns the number of nodes. In the stream's order, a node comes before the nodes in it. */
size_t brc_convert_nodes(const brc_convert *c);
const brc_node_out *brc_convert_node(const brc_convert *c, size_t i);
/* Returns the node with this path in the stream, or NULL. */
const brc_node_out *brc_convert_node_at(const brc_convert *c, const char *key);

/* ---- a driver -------------------------------- */

/* prepare() does what must happen before the process enters the sandbox, such as loading libraries; NULL: nothing.
 *
 * open() or create() makes the state, and close() frees it, also if these have failed (with NULL if they have set
 * nothing). */
typedef struct brc_driver {
    const char *format; /* for messages: "HDF5" */
    int names;          /* BRC_NAMES_* (src/base/node_path.h) */
    int netcdf;         /* takes --netcdf: writes NetCDF-4 */

    int (*prepare)(const char *plugins, brc_error *err);

    /* Import: opens the file, then walks through it twice. */
    int (*open)(void **state, brc_convert *c, const char *file, brc_error *err);
    int (*walk)(void *state, brc_error *err);

    /* Export: create() makes the file with everything except elements; it sees all nodes. Then for each array:
     * begin(), put() for each box, end(). If begin() sets *all to 1, put() gets every element; otherwise elements
     * that are not in the stream have the fill value and are left out. Boxes have no steps. Elements are packed in C
     * order in native byte order; those of variable length are u32le and bytes. An array without elements has no box.
     * finish() comes last and closes the file. */
    int (*create)(void **state, brc_convert *c, const char *file, int netcdf, brc_error *err);
    int (*begin)(void *state, const brc_node_out *array, int *all, brc_error *err);
    int (*put)(void *state, const brc_sel *box, const void *data, size_t len, brc_error *err);
    /* Takes a chunk as the codecs of the stream's document have it, and returns 1; or returns 0, and the chunk is decoded
     * for put(). The elements of a chunk over the array's edge have the fill value there. NULL: as 0. */
    int (*put_stored)(void *state, const brc_sel *box, const void *stored, size_t len, brc_error *err);
    int (*end)(void *state, brc_error *err);
    int (*finish)(void *state, brc_error *err);

    void (*close)(void *state);
} brc_driver;

/* Runs the program. Returns the result of main(). */
int brc_convert_main(int argc, char **argv, const brc_driver *driver);

#endif
