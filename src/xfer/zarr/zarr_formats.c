/* Zarr in the table of formats: directories, by version, zip archives, and references. */
#include <stdlib.h>
#include <string.h>

#include "../../base/file.h"
#include "../xfer.h"
#include "../zip.h"
#include "kerchunk.h"
#include "tree_in.h"
#include "zarr_hierarchy.h"

static int probe_directory(int *is, const brc_source *source, brc_error *err)
{
    char *path;

    *is = 0;
    for (size_t i = 0; source->is_dir && !*is && brc_zarr_documents[i]; i++) {
        BRC_TRY(brc_path_join(&path, source->name, brc_zarr_documents[i], err));
        *is = brc_file_kind(path) != 0;
        free(path);
    }
    return BRC_OK;
}

static int probe_zip(int *is, const brc_source *source, brc_error *err)
{
    *is = !source->is_gzip && brc_is_zip(source->head, source->head_len);
    return *is ? brc_zip_holds_zarr(is, source->name, err) : BRC_OK;
}

/* Only the whole file tells what JSON it is: the import says if it is something else. */
static int probe_references(int *is, const brc_source *source, brc_error *err)
{
    (void)err;
    *is = !source->is_dir && brc_is_kerchunk(source->head, source->head_len);
    return BRC_OK;
}

static int export_hierarchy(brc_session *s, const char *path, const char *dest, int version,
                            int zip, const brc_xfer_opts *opts, brc_error *err)
{
    brc_zarr_out_opts out = { version, zip || brc_has_ending(dest, ".zip"),
                              (opts->flags & BRC_XFER_CONSOLIDATED) != 0,
                              (opts->flags & BRC_XFER_NAN_TOKENS) != 0, opts->warnings };
    return brc_zarr_export(s, path, dest, &out, err);
}

static int export_zarr3(brc_session *s, const char *path, const char *dest,
                        const brc_xfer_opts *opts, brc_error *err)
{
    return export_hierarchy(s, path, dest, 3, 0, opts, err);
}

static int export_zarr2(brc_session *s, const char *path, const char *dest,
                        const brc_xfer_opts *opts, brc_error *err)
{
    return export_hierarchy(s, path, dest, 2, 0, opts, err);
}

static int export_zip(brc_session *s, const char *path, const char *dest, const brc_xfer_opts *opts,
                      brc_error *err)
{
    return export_hierarchy(s, path, dest, 3, 1, opts, err);
}

static const char *const zarr_endings[] = { ".zarr", NULL };
static const char *const zip_endings[] = { ".zip", NULL };
static const char *const json_endings[] = { ".json", NULL };

/* The source's documents state its version: this row imports both versions. */
const brc_format brc_format_zarr3 = {
    .name = "zarr3",
    .source_text = "Zarr directories",
    .endings = zarr_endings,
    .is_directory = 1,
    .consolidates = 1,
    .dimensions = BRC_DIMENSIONS_ZARR,
    .probe = probe_directory,
    .is_group = brc_zarr_is_group,
    .import = brc_zarr_import,
    .size = brc_zarr_bytes,
    .export = export_zarr3,
};

const brc_format brc_format_zarr2 = {
    .name = "zarr2",
    .consolidates = 1,
    .dimensions = BRC_DIMENSIONS_ZARR,
    .export = export_zarr2,
};

const brc_format brc_format_zarr_zip = {
    .name = "zip",
    .source_text = ".zip",
    .endings = zip_endings,
    .consolidates = 1,
    .dimensions = BRC_DIMENSIONS_ZARR,
    .probe = probe_zip,
    .is_group = brc_zarr_is_group,
    .import = brc_zarr_import,
    .size = brc_zarr_bytes,
    .export = export_zip,
};

const brc_format brc_format_kerchunk = {
    .source_text = "Kerchunk reference",
    .endings = json_endings,
    .probe = probe_references,
    .is_group = brc_zarr_is_group,
    .import = brc_zarr_import,
    .size = brc_zarr_bytes,
};
