/* How a dataset is stored, and what of that cannot be read. */
#include "hdf5_in.h"

int brc_hdf5_storage_check(int *chunked, hid_t plist, const char *label, brc_error *err)
{
    H5D_layout_t layout = H5Pget_layout(plist);
    if (layout < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: how it is stored cannot be read", label);
    if (layout == H5D_VIRTUAL)
        return brc_part_refuse(err, BRC_PART_STORAGE, "copy it with its elements first (h5repack)",
                               "%s is a virtual dataset, whose elements are in others", label);
    if (layout == H5D_CONTIGUOUS && H5Pget_external_count(plist) != 0)
        return brc_part_refuse(err, BRC_PART_STORAGE, "copy it with its elements first (h5repack)",
                               "%s has its elements in another file", label);
    *chunked = layout == H5D_CHUNKED;
    return BRC_OK;
}
