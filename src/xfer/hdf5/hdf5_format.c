/* HDF5 in the table of formats. Its converter reads NetCDF-4 files, which are HDF5, as such. */
#include "../formats.h"

#include <string.h>
#include <unistd.h>

#include "../../zarr/transfer.h"
#include "../foreign/foreign.h"

/* An HDF5 file may begin with something else, of 512 bytes or a power of two times
 * that: its signature follows there. */
static int probe_hdf5(int *is, const brc_source *source, brc_error *err)
{
    static const char signature[] = "\x89HDF\r\n\x1a\n";
    char head[8];
    uint64_t size;
    int fd;

    *is = 0;
    if (source->is_dir || source->is_gzip)
        return BRC_OK;
    BRC_TRY(brc_regular_open(&fd, &size, source->name, 1, err));
    for (uint64_t at = 0; at < size && !*is; at = at ? at * 2 : 512)
        *is = pread(fd, head, sizeof(head), (off_t)at) == (ssize_t)sizeof(head) &&
              memcmp(head, signature, sizeof(head)) == 0;
    close(fd);
    return BRC_OK;
}

static int import_hdf5(brc_session *s, const brc_source *source, const char *path,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s,
                         .converter = "hdf5",
                         .file = source->name,
                         .opts = opts,
                         .parts = source->parts };
    return brc_foreign_import(&what, path, err);
}

static int size_hdf5(uint64_t *bytes, brc_session *s, const brc_source *source,
                     const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "hdf5", .file = source->name, .opts = opts };
    return brc_foreign_bytes(bytes, &what, err);
}

static int export_hdf5(brc_session *s, const char *path, const char *dest,
                       const brc_xfer_opts *opts, brc_error *err)
{
    brc_foreign what = { .session = s, .converter = "hdf5", .file = dest, .opts = opts };
    return brc_foreign_export(&what, path, 0, err);
}

static const char *const hdf5_endings[] = { ".h5", ".hdf5", NULL };

const brc_format brc_format_hdf5 = {
    .name = "hdf5",
    .source_text = "HDF5",
    .endings = hdf5_endings,
    .probe = probe_hdf5,
    .is_group = brc_foreign_is_group,
    .import = import_hdf5,
    .size = size_hdf5,
    .tells_progress = 1,
    .export = export_hdf5,
};
