/*
 * The formats that can be imported and exported.
 *
 * A format is a folder of src/xfer with a `const brc_format` for each way to name it. The
 * rows are declared here and listed in formats.c; exchange.c and formats.c know formats
 * through them alone. A format uses what formats share (xfer.h, input.h, elements.h,
 * dest.h, zip.h), which never includes a format.
 */
#ifndef BRC_XFER_FORMATS_H
#define BRC_XFER_FORMATS_H

#include "../base/part.h"
#include "input.h"
#include "xfer_nodes.h"

/* ---- formats -------------------------------- */

/* What is to be imported, as far as a format shows. */
typedef struct brc_source {
    const char *name; /* the file or directory, as the caller wrote it                  */
    brc_parts *parts; /* of an import: gets what of it cannot be kept, and the import goes on */
    int is_dir;
    int is_gzip;      /* a gzip file: `head` is what it inflates to                     */
    size_t head_len;  /* less than BRC_INPUT_HEAD if the file is shorter; 0 of a directory */
    uint8_t head[BRC_INPUT_HEAD];
} brc_source;

typedef struct brc_format {
    const char *name;           /* brc_xfer_opts.format; NULL: is not exported              */
    const char *source_text;    /* what it imports, in messages: "IDX"; NULL: is not imported */
    const char *const *endings; /* ".nc", ...; NULL after the last. Exports to such names are in
                                   this format, and nodes are named without them            */
    int is_directory;           /* exports to names without an ending are in this format    */
    int consolidates;           /* knows BRC_XFER_CONSOLIDATED                              */
    brc_dimensions_rule dimensions; /* what holds for the names of dimensions in an export  */
    int tells_progress;         /* its import knows the total by itself, when it has begun  */
    /* The length of a name without what else the format puts at its end; NULL: nothing else. */
    size_t (*stem)(const char *name, size_t len);

    /* Import. probe: *is 1 if the source is in this format, as its content says; formats
     * are asked in the table's order. NULL: the source of another row. */
    int (*probe)(int *is, const brc_source *source, brc_error *err);
    /* *is 1 if the source is a group that an empty root may become. NULL: it never is.
     * What is wrong with the source is reported by its import. */
    int (*is_group)(int *is, brc_session *s, const brc_source *source, brc_error *err);
    /* Makes the node `path`, which is not there yet or is the root. A transaction is open, and
     * what failed is left half done to it. */
    int (*import)(brc_session *s, const brc_source *source, const char *path,
                  const brc_xfer_opts *opts, brc_error *err);
    /* The decoded bytes that the import will bring, as far as documents and headers say: for
     * progress alone. They are not checked further than that takes. */
    int (*size)(uint64_t *bytes, brc_session *s, const brc_source *source,
                const brc_xfer_opts *opts, brc_error *err);

    /* Writes the node `path` to `dest`, which has no slashes at its end. No transaction is
     * open. */
    int (*export)(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                  brc_error *err);
} brc_format;

/* The rows. */
extern const brc_format brc_format_zarr3, brc_format_zarr2, brc_format_zarr_zip;
extern const brc_format brc_format_npy, brc_format_npz;
extern const brc_format brc_format_idx;
extern const brc_format brc_format_netcdf, brc_format_netcdf3;
extern const brc_format brc_format_hdf5;

/* The row at `i`; NULL after the last. */
const brc_format *brc_format_at(size_t i);

/* BRC_EUNSUPPORTED says what can be imported. */
BRC_MUST_USE int brc_format_of_source(const brc_format **out, const brc_source *source,
                                      brc_error *err);
/* The format with this name (NULL: none is given); else the one of dest's ending. BRC_EINVAL
 * says what can be written. */
BRC_MUST_USE int brc_format_of_dest(const brc_format **out, const char *dest, const char *name,
                                    brc_error *err);

/* ---- source -------------------------------- */

/* What is to be imported, and what to call the node that it becomes. */

/* Looks at a file's first bytes. Nothing stays open; `name` must outlive the source. */
BRC_MUST_USE int brc_source_look(brc_source *out, const char *name, brc_error *err);
/* A node's name from a file's: "mnist-t10k-images" from
 * "data/mnist-t10k-images-idx3-ubyte.gz". */
BRC_MUST_USE int brc_source_name(char **out, const char *source, brc_error *err);
/* The same of a file in a format that only a command knows: "run" from "data/run.grib". */
BRC_MUST_USE int brc_source_name_any(char **out, const char *source, brc_error *err);

#endif
