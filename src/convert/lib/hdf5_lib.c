/* Errors and ids of libhdf5, see hdf5_lib.h. */
#include "hdf5_lib.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../base/buf.h"

/* Where other files are looked for: not where the environment says, but beside the file. */
static void forget_prefixes(void)
{
    static const char *const names[] = { "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX",
                                         "HDF5_VDS_PREFIX" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]);
}

int brc_hdf5_start(brc_error *err)
{
    forget_prefixes();
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

/* ---- parts of a dataset, and names -------------------------------- */

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
