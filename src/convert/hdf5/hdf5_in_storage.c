/* How a dataset is stored, and what of that cannot be read. */
#include "hdf5_in.h"

/* By the number that it is registered with; NULL: not known. */
static const char *filter_name(H5Z_filter_t id)
{
    static const struct {
        H5Z_filter_t id;
        const char *name;
    } names[] = { { H5Z_FILTER_SZIP, "szip" }, { 307, "bzip2" },      { 32000, "LZF" },
                  { 32001, "Blosc" },          { 32004, "LZ4" },      { 32008, "bitshuffle" },
                  { 32013, "ZFP" },            { 32015, "Zstandard" }, { 32017, "SZ" },
                  { 32018, "FCIDECOMP" },      { 32024, "SZ3" },      { 32026, "Blosc2" } };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].id == id)
            return names[i].name;
    return NULL;
}

/* As it is registered, else as the file calls it. */
static int refuse_filter(const brc_convert *c, H5Z_filter_t id, const char *said, const char *label,
                         brc_error *err)
{
    const char *known = filter_name(id), *name = known ? known : said;
    return brc_part_refuse(err, BRC_PART_FILTER,
                           "install it, and name its folder with --hdf5-plugins",
                           "%s needs the HDF5 filter %d (%s), which is not built in and not in %s",
                           label, (int)id, *name ? name : "without a name", brc_convert_plugins(c));
}

int brc_hdf5_filters_check(const brc_convert *c, hid_t plist, const char *label, brc_error *err)
{
    int n = H5Pget_nfilters(plist);
    if (n < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t values = 0;
        char name[64] = "";
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &values, NULL,
                                              sizeof(name) - 1, name, &config);
        if (id < 0)
            return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
        if (H5Zfilter_avail(id) <= 0)
            return refuse_filter(c, id, name, label, err);
    }
    return BRC_OK;
}

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
