/* One run of a converter, for the files of src/convert/lib. */
#ifndef BRC_CONVERT_LIB_CONVERT_RUN_H
#define BRC_CONVERT_LIB_CONVERT_RUN_H

#include "../../xfer/tar/tar_in.h"
#include "../../xfer/tar/tar_out.h"
#include "convert.h"
#include "door.h"
#include "spool.h"
#include "watch.h"

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
    unsigned char *excluded;   /* which of them were met                         */
    int skips;                 /* --skip-unsupported                             */
    brc_parts parts;           /* that cannot be kept                            */
    brc_tar_out *out;
    brc_tar_in *in;
    brc_node_out *nodes;       /* of an export, in the order of a walk           */
    size_t nnodes, nodes_cap;
    brc_spool spool;           /* of an export; not open where none can be made  */
    brc_watch watch;
    brc_door door;             /* what may be opened beside the file             */
    int has_door;              /* a process outside opens it                     */
    int is_netcdf;             /* see brc_convert_is_netcdf()                    */
};

/* The driver's file as a stream on out. */
BRC_MUST_USE int brc_convert_import(brc_convert *c, const brc_driver *driver, brc_error *err);
/* The stream from in as the driver's file. */
/* Says on standard error what of them was not listed there. */
void brc_convert_tell_more(const brc_convert *c);
BRC_MUST_USE int brc_convert_export(brc_convert *c, const brc_driver *driver, int classic, brc_error *err);
void brc_convert_nodes_free(brc_convert *c);

#endif
