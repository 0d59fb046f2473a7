/* Filters of datasets, see hdf5_filters.h. */
#include "hdf5_filters.h"

#include "hdf5_lzf.h"

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

static int64_t stored_size(hid_t type, int64_t reference);

/* By how many bytes a compound's fields are longer in the file than in memory. */
static int64_t more_in_fields(hid_t type, int64_t reference)
{
    int64_t more = 0;
    int n = H5Tget_nmembers(type);
    for (int i = 0; i < n; i++) {
        hid_t field = H5Tget_member_type(type, (unsigned)i);
        more += stored_size(field, reference) - (int64_t)H5Tget_size(field);
        brc_hdf5_close(field);
    }
    return more;
}

/* The bytes of an element in the file, where one of variable length is a reference. The library
 * tells what it has in memory. */
static int64_t stored_size(hid_t type, int64_t reference)
{
    int64_t size = (int64_t)H5Tget_size(type), inner;
    switch (H5Tget_class(type)) {
    case H5T_VLEN:
        return reference;
    case H5T_STRING:
        return H5Tis_variable_str(type) > 0 ? reference : size;
    case H5T_COMPOUND:
        return size + more_in_fields(type, reference);
    case H5T_ARRAY: {
        hid_t item = H5Tget_super(type);
        inner = (int64_t)H5Tget_size(item);
        size = inner > 0 ? size / inner * stored_size(item, reference) : 0;
        brc_hdf5_close(item);
        return size;
    }
    default:
        return size;
    }
}

/* ... of a dataset; 0: not known. */
static uint64_t element_bytes(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset), file = H5Iget_file_id(dataset);
    hid_t create = H5Fget_create_plist(file);
    size_t address = 0, length = 0;
    int64_t size = 0;
    if (type >= 0 && create >= 0 && H5Pget_sizes(create, &address, &length) >= 0)
        size = stored_size(type, 8 + (int64_t)address); /* a length, an address, an index */
    brc_hdf5_close(create);
    brc_hdf5_close(file);
    brc_hdf5_close(type);
    return size > 0 ? (uint64_t)size : 0;
}

/* Whether its elements are texts or lists of variable length. */
static int has_variable_items(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    int is = H5Tget_class(type) == H5T_VLEN || H5Tis_variable_str(type) > 0;
    brc_hdf5_close(type);
    return is;
}

/* The filter must decode to the bytes of one chunk: see BRC_HDF5_LZF_BYTES. */
static int check_lzf(hid_t plist, hid_t dataset, const unsigned *values, size_t n,
                     const char *label, brc_error *err)
{
    hsize_t chunk[H5S_MAX_RANK];
    uint64_t bytes = 0, edges[H5S_MAX_RANK];
    int ndim = H5Pget_chunk(plist, H5S_MAX_RANK, chunk);
    for (int i = 0; i < ndim; i++)
        edges[i] = chunk[i];
    uint64_t told = n > BRC_HDF5_LZF_BYTES ? values[BRC_HDF5_LZF_BYTES] : 0;
    if (ndim < 0 || !brc_shape_bytes(ndim, edges, element_bytes(dataset), &bytes) ||
        (told > 0 ? bytes != told : bytes > BRC_HDF5_LZF_ROOM || !has_variable_items(dataset)))
        return brc_fail(err, BRC_EINVAL, "%s: its filter LZF is for chunks of another size", label);
    return BRC_OK;
}

/* libhdf5's own have numbers up to this. */
#define OWN_FILTERS 255

int brc_hdf5_filters_note(brc_json *notes, hid_t plist, brc_error *err)
{
    brc_json *list = NULL, *one = NULL;
    int n = H5Pget_nfilters(plist), rc = BRC_OK;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0;
        size_t count = 0;
        H5Z_filter_t id =
            H5Pget_filter2(plist, (unsigned)i, &flags, &count, NULL, 0, NULL, &config);
        if (id <= OWN_FILTERS)
            continue;
        one = brc_json_new_object();
        if (!one || (!list && !(list = brc_json_new_array()))) {
            rc = brc_nomem(err);
            goto done;
        }
        BRC_GO(brc_json_set(one, "number", brc_json_new_uint((uint64_t)id), err));
        if (filter_name(id))
            BRC_GO(brc_json_set(one, "name", brc_json_new_string(filter_name(id)), err));
        brc_json *given = one;
        one = NULL;
        BRC_GO(brc_json_push(list, given, err));
    }
    if (list) {
        brc_json *given = list;
        list = NULL;
        rc = brc_json_set(notes, "filters", given, err);
    }
done:
    brc_json_free(one);
    brc_json_free(list);
    return rc;
}

int brc_hdf5_filters_check(const brc_convert *c, hid_t plist, hid_t dataset, const char *label,
                           brc_error *err)
{
    int n = H5Pget_nfilters(plist);
    if (n < 0)
        return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0, values[4] = { 0 };
        size_t count = 4;
        char name[64] = "";
        H5Z_filter_t id = H5Pget_filter2(plist, (unsigned)i, &flags, &count, values,
                                              sizeof(name) - 1, name, &config);
        if (id < 0)
            return brc_hdf5_fail(err, BRC_EINVAL, "%s: its filters cannot be read", label);
        if (H5Zfilter_avail(id) <= 0)
            return refuse_filter(c, id, name, label, err);
        if (id == BRC_HDF5_LZF)
            BRC_TRY(check_lzf(plist, dataset, values, count, label, err));
    }
    return BRC_OK;
}
