/* One run of a converter, for the files of src/convert/lib. */
#ifndef BRC_CONVERT_LIB_CONVERT_PROGRAM_H
#define BRC_CONVERT_LIB_CONVERT_PROGRAM_H

#include "../../base/json.h"
#include "../../base/part.h"
#include "../../xfer/tar/tar.h"
#include "convert.h"
#include "door.h"
#include "spool.h"

/* ---- convert run -------------------------------- */

struct brc_convert {
    const char *file;
    const char *path;          /* --path, or "/"                                 */
    const char *plugins;       /* folders of HDF5's filters                      */
    brc_registry *registry;
    brc_scratch *scratch;
    int phase;                 /* of an import                                   */
    int names;                 /* of the file's format: BRC_NAMES_*              */
    const char **exclude;
    size_t nexclude;
    unsigned char *excluded;   /* which of the patterns have matched */
    int skips;                 /* --skip-unsupported                             */
    int is_external;           /* --external                                     */
    brc_parts parts;           /* parts that cannot be kept */
    brc_tar_out *out;
    brc_tar_in *in;
    brc_node_out *nodes;       /* of an export, in the order of a walk           */
    size_t nnodes, nodes_cap;
    brc_spool spool;           /* of an export; not open if no file can be made */
    brc_watch watch;
    brc_door door;             /* the rule which other files may be opened */
    int has_door;              /* a process outside of the sandbox opens files */
};

/* Writes the driver's file as a stream to `out`. */
BRC_MUST_USE int brc_convert_import(brc_convert *c, const brc_driver *driver, brc_error *err);
/* Writes the stream from `in` as the driver's file. */
BRC_MUST_USE int brc_convert_export(brc_convert *c, const brc_driver *driver, int netcdf, brc_error *err);
void brc_convert_nodes_free(brc_convert *c);

/* ---- convert attr -------------------------------- */

/* Converts attributes between JSON and the typed lists that files have. */

/* From a file to JSON. Each function returns a new value, or NULL without memory, for brc_json_push() and
 * brc_json_set(). */
brc_json *brc_attr_int(int64_t value);
brc_json *brc_attr_uint(uint64_t value);
/* Returns a number: the shortest decimal that reads back as this double, or NaN, Infinity, -Infinity. */
brc_json *brc_attr_float(double value);
/* Returns a text of bytes up to the first zero byte: as they are if they are UTF-8, otherwise read as Latin-1. */
brc_json *brc_attr_text(const char *text, size_t len);

/* Add a list to a note: of n numbers, with UINT64_MAX as null, or of n texts, with NULL as null. */
BRC_MUST_USE int brc_note_numbers(brc_json *note, const char *member, const uint64_t *numbers, int n, brc_error *err);
BRC_MUST_USE int brc_note_texts(brc_json *note, const char *member, char *const *texts, int n, brc_error *err);

/* The most attributes of an object in a file: each one is compared with those before it. More
 * are BRC_EUNSUPPORTED. */
#define BRC_ATTR_MOST 50000
BRC_MUST_USE int brc_attr_check_count(uint64_t n, const char *label, brc_error *err);

/* The _FillValue of an array of floats: in Zarr it is base64 of a little-endian double, which xarray writes and
 * reads. brc_attr_fill_value() returns 1 if a value is one. */
#define BRC_ATTR_FILL "_FillValue"
int brc_attr_fill_is_packed(const char *dtype); /* for "float32" and the like; NULL: returns 0 */
brc_json *brc_attr_fill(double value);
int brc_attr_fill_value(const brc_json *value, double *out);

/* From JSON to a file. A value that a file's attributes cannot hold (an object, null, a list of mixed or nested
 * values) is BRC_ATTR_JSON: its JSON text. */
enum { BRC_ATTR_TEXT = 1, BRC_ATTR_BOOL, BRC_ATTR_INT, BRC_ATTR_UINT, BRC_ATTR_FLOAT, BRC_ATTR_JSON };
typedef struct brc_attr {
    int kind;  /* BRC_ATTR_UINT: at least one value is past INT64_MAX         */
    int list;  /* a JSON list, of n values; otherwise n is 1. An empty list is BRC_ATTR_JSON */
    size_t n;
    char **texts;    /* TEXT, JSON: UTF-8 without U+0000                        */
    int64_t *ints;   /* INT, BOOL (0 or 1)                                      */
    uint64_t *uints; /* UINT                                                    */
    double *floats;  /* FLOAT: a number with a fraction or exponent, NaN or an infinity, or an
                        integer past 64 bits                                  */
} brc_attr;
BRC_MUST_USE int brc_attr_open(brc_attr *out, const brc_json *value, brc_error *err);
void brc_attr_close(brc_attr *attr);

#endif
