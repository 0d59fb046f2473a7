/*
 * The formats that can be imported and exported.
 *
 * A format is a folder of src/xfer with a `const brc_format` for each name of the format. The rows
 * are declared here and listed in formats.c; exchange.c and formats.c use formats only through
 * these rows. A format may use the shared files (xfer.h, input.h, elements.h, dest.h, zip.h), which
 * never include a format.
 */
#ifndef BRC_XFER_FORMATS_H
#define BRC_XFER_FORMATS_H

#include "../base/part.h"
#include "input.h"
#include "xfer.h"

/* ---- formats -------------------------------- */

/* A source to import, as far as a format needs to see it. */
typedef struct brc_source {
    const char *name; /* the file or directory, as the caller wrote it                  */
    brc_parts *parts; /* receives the parts of the source that cannot be kept, so that the import goes on */
    int is_dir;
    int is_gzip;      /* a gzip file: `head` is decompressed                            */
    size_t head_len;  /* less than BRC_INPUT_HEAD if the file is shorter; 0 for a directory */
    uint8_t head[BRC_INPUT_HEAD];
} brc_source;

typedef struct brc_format {
    const char *name;           /* brc_xfer_opts.format; NULL: is not exported              */
    const char *source_text;    /* the name of its sources in messages: "IDX"; NULL: is not imported */
    const char *const *endings; /* ".nc", ...; NULL after the last. Exports to such names have this format, and the
                                 * names of nodes lack the ending */
    int is_directory;           /* exports to names without an ending have this format      */
    int consolidates;           /* supports BRC_XFER_CONSOLIDATED                           */
    brc_dimensions_rule dimensions; /* the rule for names of dimensions in an export        */
    int tells_progress;         /* its import finds the total itself, when it has begun     */
    /* Returns the length of a name without further text that the format puts at its end; NULL: there is none. */
    size_t (*stem)(const char *name, size_t len);

    /* Import. Sets *is to 1 if the source's content is in this format; formats are asked in the table's order.
     * NULL: another row imports the source. */
    int (*probe)(int *is, const brc_source *source, brc_error *err);
    /* Sets *is to 1 if the source is a group that an empty root may become. NULL: never. A fault of the source is
     * reported by its import. */
    int (*is_group)(int *is, brc_session *s, const brc_source *source, brc_error *err);
    /* Makes the node `path`, which does not exist yet or is the root. A transaction is open; after a failure it may
     * hold a part of the import. */
    int (*import)(brc_session *s, const brc_source *source, const char *path,
                  const brc_xfer_opts *opts, brc_error *err);
    /* Returns the decoded bytes that the import will bring, from documents and headers, for progress only. Checks
     * documents only as far as needed for that. */
    int (*size)(uint64_t *bytes, brc_session *s, const brc_source *source,
                const brc_xfer_opts *opts, brc_error *err);

    /* Writes the node `path` to `dest`, which has no slashes at its end. No transaction is open. */
    int (*export)(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                  brc_error *err);
} brc_format;

/* The rows of the table. */
extern const brc_format brc_format_zarr3, brc_format_zarr2, brc_format_zarr_zip, brc_format_kerchunk;
extern const brc_format brc_format_npy, brc_format_npz;
extern const brc_format brc_format_idx;
extern const brc_format brc_format_netcdf, brc_format_netcdf3;
extern const brc_format brc_format_hdf5;

/* Returns the row at `i`; NULL after the last. */
const brc_format *brc_format_at(size_t i);

/* Finds the format; BRC_EUNSUPPORTED names the formats that can be imported. */
BRC_MUST_USE int brc_format_of_source(const brc_format **out, const brc_source *source,
                                      brc_error *err);
/* Finds the format with this name, or, if `name` is NULL, the one of dest's ending. BRC_EINVAL names the formats
 * that can be written. */
BRC_MUST_USE int brc_format_of_dest(const brc_format **out, const char *dest, const char *name,
                                    brc_error *err);

/* ---- source -------------------------------- */

/* The source of an import, and the name of the node that it becomes. */

/* Reads a file's first bytes. Leaves nothing open; `name` must outlive the source. */
BRC_MUST_USE int brc_source_look(brc_source *out, const char *name, brc_error *err);
/* Makes a node's name from a file's: "mnist-t10k-images" from "data/mnist-t10k-images-idx3-ubyte.gz". */
BRC_MUST_USE int brc_source_name(char **out, const char *source, brc_error *err);
/* Makes a node's name from a file in a format that only a command knows: "run" from "data/run.grib". */
BRC_MUST_USE int brc_source_name_any(char **out, const char *source, brc_error *err);

#endif
