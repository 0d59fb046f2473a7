/* How a dataset is stored, and whether all of it is there. */
#include "hdf5_in.h"

int brc_hdf5_storage_check(int *chunked, hid_t plist, const char *label, brc_error *err)
{
    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: how it is stored cannot be read", label);
    *chunked = layout == H5D_CHUNKED;
    return BRC_OK;
}

/* An element of variable length is a length of 4 bytes, an address, and a number of 4 bytes (the
 * format's specification, "Global Heap ID"): at least what its pointers have in memory. */
#define HEAP_ID_BYTES 16 /* with addresses of 8 bytes */
static int has_long_addresses(hid_t dataset)
{
    size_t address = 0, length;
    hid_t file = H5Iget_file_id(dataset), plist = file < 0 ? -1 : H5Fget_create_plist(file);
    if (plist < 0 || H5Pget_sizes(plist, &address, &length) < 0)
        address = 0;
    brc_hdf5_close(plist);
    brc_hdf5_close(file);
    return address == 8;
}

int brc_hdf5_size_check(hid_t dataset, hid_t type, int ndim, const uint64_t *shape,
                        const char *label, brc_error *err)
{
    if (brc_hdf5_is_virtual(dataset)) /* that of its sources counts */
        return BRC_OK;
    uint64_t bytes, stored = H5Dget_storage_size(dataset);
    int is_one = H5Tget_class(type) == H5T_VLEN || H5Tis_variable_str(type) > 0;
    int varies = H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0;
    if (stored == 0 || (varies && !has_long_addresses(dataset)) ||
        (brc_shape_bytes(ndim, shape, is_one ? HEAP_ID_BYTES : H5Tget_size(type), &bytes) &&
         bytes <= stored))
        return BRC_OK;
    return brc_fail(err, BRC_EINVAL, "%s: its elements have %llu bytes, fewer than its shape needs",
                    label, (unsigned long long)stored);
}
