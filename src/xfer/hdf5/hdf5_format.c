/* HDF5 in the table of formats. */
#include "hdf5_format.h"

#include <string.h>
#include <unistd.h>

/* An HDF5 file may begin with something else, of 512 bytes or a power of two times
 * that: its signature follows there. */
int brc_hdf5_is_signed(int *is, const brc_source *source, brc_error *err)
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

static int is_hdf5_group(int *is, brc_session *s, const brc_source *source, brc_error *err)
{
    (void)s;
    (void)source;
    (void)err;
    *is = 1;
    return BRC_OK;
}

static int import_hdf5(brc_session *s, const brc_source *source, const char *path,
                       const brc_xfer_opts *opts, brc_error *err)
{
    return brc_hdf5_import(s, source->name, path, opts, err);
}

static int size_hdf5(uint64_t *bytes, brc_session *s, const brc_source *source,
                     const brc_xfer_opts *opts, brc_error *err)
{
    return brc_hdf5_bytes(bytes, s, source->name, opts, err);
}

static int export_hdf5(brc_session *s, const char *path, const char *dest,
                       const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_hdf5_export(s, path, dest, err);
}

static const char *const hdf5_endings[] = { ".h5", ".hdf5", NULL };

const brc_format brc_format_hdf5 = {
    .name = "hdf5",
    .source_text = "HDF5",
    .endings = hdf5_endings,
    .probe = brc_hdf5_is_signed,
    .is_group = is_hdf5_group,
    .import = import_hdf5,
    .size = size_hdf5,
    .export = export_hdf5,
};
