/* NumPy's files in the table of formats: .npy and .npz. */
#include <string.h>

#include "../zip_dir.h"
#include "npy.h"
#include "npy_header.h"
#include "npy_out.h"

static int probe_npy(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = source->head_len >= BRC_NPY_MAGIC_LEN &&
          memcmp(source->head, BRC_NPY_MAGIC, BRC_NPY_MAGIC_LEN) == 0;
    return BRC_OK;
}

static int import_npy(brc_session *s, const brc_source *source, const char *path,
                      const brc_xfer_opts *opts, brc_error *err)
{
    return brc_elements_import_file(s, source->name, brc_npy_open, path, opts, err);
}

static int size_npy(uint64_t *bytes, brc_session *s, const brc_source *source,
                    const brc_xfer_opts *opts, brc_error *err)
{
    (void)opts;
    return brc_elements_file_bytes(bytes, s, source->name, brc_npy_open, err);
}

static int export_npy(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                      brc_error *err)
{
    brc_array *a;
    int kind;

    (void)opts;
    BRC_TRY(brc_node_kind(&kind, s, path, err));
    if (kind == BRC_GROUP)
        return brc_fail(err, BRC_EINVAL,
                        "%s is a group and .npy holds one array: write a .npz, or name an array",
                        path);
    BRC_TRY(brc_array_open(&a, s, path, err));
    int rc = brc_npy_save(a, NULL, dest, 0, err);
    brc_array_free(a);
    return rc;
}

/* Any zip archive: the import says if it is not made of .npy files. */
static int probe_npz(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = !source->is_gzip && brc_is_zip(source->head, source->head_len);
    return BRC_OK;
}

static const char *const npy_endings[] = { ".npy", NULL };
static const char *const npz_endings[] = { ".npz", NULL };

const brc_format brc_format_npy = {
    .name = "npy",
    .source_text = ".npy",
    .endings = npy_endings,
    .probe = probe_npy,
    .import = import_npy,
    .size = size_npy,
    .export = export_npy,
};

const brc_format brc_format_npz = {
    .name = "npz",
    .source_text = ".npz",
    .endings = npz_endings,
    .probe = probe_npz,
    .import = brc_npz_import,
    .size = brc_npz_bytes,
    .export = brc_npz_export,
};
