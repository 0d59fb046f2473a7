/*
 * Files of groups and arrays in other formats: NetCDF and HDF5. What reading and
 * writing them have in common is here; each format has a driver that speaks with
 * its library (hdf5_*.c, netcdf_*.c).
 *
 * On import a driver makes groups with brc_group_create_doc() or brc_group_create(),
 * describes each array as a brc_container_array and calls brc_container_import();
 * on export it goes through brc_nodes_each(), opens each array and calls
 * brc_container_export(). Both cut the array into boxes of whole chunks, of 4 MiB or
 * one chunk, so that memory is bounded whatever a header says and no chunk is met twice.
 */
#ifndef BRC_XFER_CONTAINER_H
#define BRC_XFER_CONTAINER_H

#include "../../base/json.h"
#include "../../nd/shape.h"
#include "../xfer.h"

/* What a file says of one of its arrays, and reading from it. Not owned: all of it
 * is read during brc_container_import() and stays its caller's. */
typedef struct brc_container_array {
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
    void *ctx;
    /* The elements of a box without steps, packed in C order in native byte order,
     * len bytes. Types of a fixed size. */
    int (*read)(void *ctx, const brc_sel *box, void *dst, size_t len, brc_error *err);
    /* The same appended, each element as its length (u32le) and its bytes. Types of
     * variable length. */
    int (*read_elements)(void *ctx, const brc_sel *box, brc_buf *out, brc_error *err);
    /* Where the file stores few of the elements: 1 and the next box of them, 0 at the
     * end. All others have the fill value. NULL: everything is read. */
    int (*next)(void *ctx, brc_sel *box, brc_error *err);
} brc_container_array;

/* Makes the array, with the chunk shape and codecs of opts where they are named. */
BRC_MUST_USE int brc_container_import(brc_session *s, const brc_container_array *from,
                                      const brc_xfer_opts *opts, brc_error *err);

/* Takes the elements of an array box by box, each packed in C order in native byte
 * order, those of variable length each as u32le and its bytes. An array without
 * elements has no box. */
typedef struct brc_container_sink {
    void *ctx;
    int (*put)(void *ctx, const brc_sel *box, const void *data, size_t len, brc_error *err);
} brc_container_sink;
BRC_MUST_USE int brc_container_export(brc_array *a, const brc_container_sink *sink, brc_error *err);
/* The same, but what holds the fill value alone may be left out. */
BRC_MUST_USE int brc_container_export_stored(brc_array *a, const brc_container_sink *sink, brc_error *err);

/* ---- attributes -------------------------------- */

/* Of a file, to JSON. Each gives a new value, or NULL without memory, as
 * brc_json_push() and brc_json_set() take it. */
brc_json *brc_attr_int(int64_t value);
brc_json *brc_attr_uint(uint64_t value);
/* The shortest decimal that reads back as this double; the strings "NaN", "Infinity" and
 * "-Infinity" for the rest. */
brc_json *brc_attr_float(double value);
/* Bytes that should be text: as they are where they are UTF-8, otherwise read as Latin-1,
 * up to the first zero byte. */
brc_json *brc_attr_text(const char *text, size_t len);

/* The _FillValue of an array of floats: in Zarr base64 of a little-endian double, which is
 * what xarray writes and reads there. The second reads that back: 1 where it is one. */
#define BRC_ATTR_FILL "_FillValue"
int brc_attr_fill_is_packed(const char *dtype); /* of "float32" and its like; NULL: no */
brc_json *brc_attr_fill(double value);
int brc_attr_fill_value(const brc_json *value, double *out);
/* A number, or one of the texts for NaN and the infinities: 1. */
int brc_attr_number(const brc_json *value, double *out);

/* Of JSON, to a file. What a file's attributes cannot hold (an object, null, a list of
 * mixed or nested values) is BRC_ATTR_JSON: its JSON text. */
enum { BRC_ATTR_TEXT = 1, BRC_ATTR_BOOL, BRC_ATTR_INT, BRC_ATTR_UINT, BRC_ATTR_FLOAT, BRC_ATTR_JSON };
typedef struct brc_attr {
    int kind;  /* BRC_ATTR_UINT: at least one value is past INT64_MAX         */
    int list;  /* a JSON list, of n values; else n is 1. An empty list is BRC_ATTR_JSON  */
    size_t n;
    char **texts;    /* TEXT, JSON: UTF-8 without U+0000                        */
    int64_t *ints;   /* INT, BOOL (0 or 1)                                      */
    uint64_t *uints; /* UINT                                                    */
    double *floats;  /* FLOAT: a number with a fraction or exponent, or an integer past 64 bits  */
} brc_attr;
BRC_MUST_USE int brc_attr_open(brc_attr *out, const brc_json *value, brc_error *err);
void brc_attr_close(brc_attr *attr);

/* A name of a file's group, variable, dataset or type as a node's, or BRC_EINVAL with
 * the label: hostile names ("..", "a/b", "", "zarr.json") are refused. */
BRC_MUST_USE int brc_container_name_check(const char *label, const char *name, brc_error *err);

/* Opens a shared library at its first use, so that people who never meet its format do
 * not load it with every command. It stays loaded until the process ends: not all of these
 * libraries can be taken out again. `format` is for the message where it is not there. */
BRC_MUST_USE int brc_late_library(void **handle, const char *soname, const char *format, brc_error *err);
/* The address of a function or variable in it. */
BRC_MUST_USE int brc_late_symbol(void **out, void *handle, const char *soname, const char *symbol, brc_error *err);

#endif
