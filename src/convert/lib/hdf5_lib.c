/* Errors, ids and files of libhdf5, see hdf5_lib.h. */
#include "hdf5_lib.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../base/buf.h"

int brc_hdf5_start(brc_error *err)
{
    if (H5open() < 0 || H5Eset_auto2(H5E_DEFAULT, NULL, NULL) < 0)
        return brc_fail(err, BRC_EUNSUPPORTED, "the HDF5 library cannot be started");
    return BRC_OK;
}

void brc_hdf5_close(hid_t id)
{
    if (id >= 0)
        (void)H5Idec_ref(id);
}

/* ---- errors -------------------------------- */

/* Called with the innermost error first. */
static herr_t take_reason(unsigned n, const H5E_error2_t *error, void *ctx)
{
    const char **reason = ctx;
    if (n == 0)
        *reason = error->desc;
    return 0;
}

int brc_hdf5_fail(brc_error *err, int code, const char *format, ...)
{
    brc_error own = BRC_ERROR_INIT;
    const char *reason = NULL;
    char text[sizeof(own.message)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &reason);
    if (reason && *reason)
        return brc_fail(err, code, "%s (%s)", text, reason);
    return brc_fail(err, code, "%s", text);
}

/* ---- files -------------------------------- */

/* No link leads out of the file. */
static herr_t refuse_external(const char *parent_file, const char *parent_group,
                              const char *child_file, const char *child_object,
                              unsigned *access_flags, hid_t access, void *ctx)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object;
    (void)access_flags, (void)access, (void)ctx;
    return -1;
}

int brc_hdf5_open_file(hid_t *file, hid_t *links, const char *path,
                       brc_error *err)
{
    int rc = BRC_OK;
    *file = *links = BRC_HDF5_NONE;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    *links = H5Pcreate(H5P_LINK_ACCESS);
    if (access < 0 || *links < 0 || H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_elink_cb(*links, refuse_external, NULL) < 0)
        rc = brc_hdf5_fail(err, BRC_ENOMEM, "%s: cannot prepare to open it", path);
    else
        *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (rc == BRC_OK && *file < 0)
        rc = brc_hdf5_fail(err, BRC_EINVAL, "%s cannot be opened as HDF5", path);
    brc_hdf5_close(access);
    if (rc < 0) {
        brc_hdf5_close(*links);
        *links = BRC_HDF5_NONE;
    }
    return rc;
}

hid_t brc_hdf5_select(hid_t space, int ndim, const brc_sel *box)
{
    hsize_t start[H5S_MAX_RANK], count[H5S_MAX_RANK];
    for (int i = 0; i < ndim; i++) {
        start[i] = box->start[i];
        count[i] = box->count[i];
    }
    if (ndim == 0)
        return H5Screate(H5S_SCALAR);
    hid_t memory = H5Screate_simple(ndim, count, NULL);
    if (memory >= 0 && H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)
        return memory;
    brc_hdf5_close(memory);
    return BRC_HDF5_NONE;
}

int brc_hdf5_label(char **out, const char *file, const char *path, brc_error *err)
{
    brc_buf text = BRC_BUF_INIT;
    int rc;
    BRC_GO(brc_buf_printf(&text, err, "%s: %s", file, path));
    BRC_GO(brc_buf_take_text(&text, out, err));
done:
    brc_buf_dispose(&text);
    return rc;
}
